"""Isotonic regression of squared errors on u, and z-scores of rows out of fold."""

import numpy as np
from sklearn.isotonic import IsotonicRegression

from benchmarks.arena.parts import crossfitted, scaled

NAME = "isotonic"
PACKAGE = "scikit-learn"
LEAGUE = "kept"


def fit(train):
    return crossfitted(train, _learn)


def _learn(part):
    model = IsotonicRegression(out_of_bounds="clip").fit(part.u, part.error**2)
    values = model.predict(part.u)
    least = np.min(values[values > 0], initial=np.mean(values) or 1.0)
    return lambda new: np.sqrt(np.maximum(model.predict(new.u), least))


def predict_quantiles(state, new, levels):
    scale, z = state
    return scaled(scale(new), z, levels)
