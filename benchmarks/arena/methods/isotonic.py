"""Isotonic regression of squared errors on u, with the law of unseen rows' z-scores."""

import numpy as np
from sklearn.isotonic import IsotonicRegression

from benchmarks.arena.parts import crossfitted, with_law

NAME = "isotonic"
PACKAGE = "scikit-learn"
FEATURES = False


def fit(train):
    return crossfitted(train, _learn)


def _learn(part):
    model = IsotonicRegression(out_of_bounds="clip").fit(part.u, part.error**2)
    values = model.predict(part.u)
    least = np.min(values[values > 0], initial=np.mean(values) or 1.0)
    return lambda new: np.sqrt(np.maximum(model.predict(new.u), least))


def predict(state, new):
    scale, z = state
    return with_law(scale(new), z)
