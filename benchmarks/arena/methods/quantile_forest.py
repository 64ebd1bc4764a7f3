"""quantile-forest: quantiles of z by a forest of u and features.

The size of leaves is the one whose out-of-bag quantiles have the least pinball loss.
"""

import numpy as np
from quantile_forest import RandomForestQuantileRegressor

from benchmarks.arena.parts import LEVELS

NAME = "quantile-forest"
PACKAGE = "quantile-forest"
FEATURES = True
LEAVES = (5, 20, 50)
TRIED = [0.05, 0.25, 0.5, 0.75, 0.95]


def fit(train):
    z = train.error / train.u
    tried = [_forest(leaf).fit(train.X, z) for leaf in LEAVES]
    return min(tried, key=lambda model: _loss(model, train.X, z))


def _forest(leaf):
    return RandomForestQuantileRegressor(
        100, min_samples_leaf=leaf, oob_score=True, bootstrap=True, random_state=0
    )


def _loss(model, X, z):
    off = z[:, None] - model.predict(X, quantiles=TRIED, oob_score=True)
    return np.nanmean(np.maximum(off * TRIED, off * (np.array(TRIED) - 1)))


def predict(model, new):
    found = model.predict(new.X, quantiles=list(LEVELS))
    return {"quantiles": new.u[:, None] * found}
