"""MAPIE: ConditionalSplitConformalRegressor, valid in thirds of u and four features.

The conformity score is abs(z). The feature map has a constant and the thirds of u and
of the four columns whose ranks go most with those of the score (Gibbs, Cherian, Candès
2025). A threshold takes milliseconds and depends on the map only: it is asked for once
for each row of the map that differs; an infinite one is the largest score. Only the
limits of 90 % intervals are asked for.
"""

import numpy as np
from mapie.conditional_conformal_prediction import ConditionalSplitConformalRegressor
from scipy.stats import spearmanr
from sklearn.base import BaseEstimator, RegressorMixin

NAME = "MAPIE, conditional"
PACKAGE = "mapie"
LEAGUE = "kept"


class _Zero(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def __sklearn_is_fitted__(self):
        return True


def fit(train):
    z = train.error / train.u
    told = [abs(spearmanr(x, abs(z)).statistic) for x in train.X.T[1:]]
    used = [0, *(1 + np.argsort(np.nan_to_num(told))[::-1][:4])]
    edges = [np.unique(np.quantile(train.X[:, k], [1 / 3, 2 / 3])) for k in used]

    def bins(X):
        parts = [X[:, [k]] > e for k, e in zip(used, edges, strict=True)]
        return np.hstack([np.ones((len(X), 1)), *parts]).astype(float)

    model = ConditionalSplitConformalRegressor(bins, _Zero(), confidence_level=0.9)
    return model.conformalize(train.X, z), bins, abs(z).max()


def predict_quantiles(state, new, levels):
    model, bins, most = state
    _, first, same = np.unique(
        bins(new.X), axis=0, return_index=True, return_inverse=True
    )
    try:
        _, limits = model.predict_interval(new.X[first])
    except np.linalg.LinAlgError:  # then by bisection, which takes longer
        model.exact = False
        _, limits = model.predict_interval(new.X[first])
    limits = np.clip(limits, -most, most)
    found = np.full((len(new), len(levels)), np.nan)
    for k, level in enumerate((0.05, 0.95)):
        found[:, np.isclose(levels, level)] = (new.u * limits[same, k, 0])[:, None]
    return found
