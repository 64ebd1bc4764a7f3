"""quantile-forest: quantiles of z by a forest, its leaves chosen out of bag."""

import numpy as np
from quantile_forest import RandomForestQuantileRegressor

NAME = "quantile forest"
PACKAGE = "quantile-forest"
LEAGUE = "corrected"
LEAVES, TRIED = (5, 20), [0.05, 0.25, 0.5, 0.75, 0.95]


def fit(train):
    z = train.error / train.u
    tried = [
        RandomForestQuantileRegressor(
            100, min_samples_leaf=leaf, random_state=0, n_jobs=1
        ).fit(train.X, z)
        for leaf in LEAVES
    ]
    return min(tried, key=lambda model: _loss(model, train.X, z))


def _loss(model, X, z):
    off = z[:, None] - model.predict(X, quantiles=TRIED, oob_score=True)
    return np.nanmean(np.maximum(off * TRIED, off * (np.array(TRIED) - 1)))


def predict_quantiles(model, new, levels):
    return new.u[:, None] * model.predict(new.X, quantiles=list(levels))
