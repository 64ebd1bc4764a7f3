"""Isotonic distributional regression on u, as in EasyUQ (doi:10.1137/22M1541915).

Isotonic regressions of the indicators error <= t at each threshold t. Errors spread as
u grows: the share below t falls with u for t > 0, and grows for t < 0. The standard
deviation is that of the law smoothed by a kernel of Silverman's width.
"""

import numpy as np
from sklearn.isotonic import IsotonicRegression

from benchmarks.arena.parts import LEVELS

NAME = "EasyUQ (IDR on u)"
PACKAGE = "scikit-learn"
FEATURES = False
THRESHOLDS = 300


def fit(train):
    levels = np.linspace(0, 1, min(THRESHOLDS, len(train)))
    thresholds = np.unique(np.quantile(train.error, levels))
    models = [
        IsotonicRegression(increasing=bool(t < 0), out_of_bounds="clip").fit(
            train.u, train.error <= t
        )
        for t in thresholds
    ]
    width = 0.9 * np.std(train.error) * len(train) ** -0.2
    return thresholds, models, width


def predict(state, new):
    thresholds, models, width = state
    cdf = np.maximum.accumulate([model.predict(new.u) for model in models])
    chances = np.diff(cdf, axis=0, prepend=0.0)
    mean = thresholds @ chances
    variance = thresholds**2 @ chances - mean**2
    return {
        "mean": mean,
        "std": np.sqrt(np.maximum(variance, 0) + width**2),
        "quantiles": np.array([thresholds[_places(column)] for column in cdf.T]),
    }


def _places(cdf):
    """Return where each level is reached, up to rounding."""
    return np.searchsorted(cdf, LEVELS - 1e-9).clip(max=len(cdf) - 1)
