"""MAPIE: ConditionalSplitConformalRegressor, valid in every bin of u and each feature.

The conformity score is abs(z); the feature map has a constant and the thirds of every
column (Gibbs, Cherian, Candès 2025). Only the limits of 90 % intervals are asked for.
"""

import numpy as np
from mapie.conditional_conformal_prediction import ConditionalSplitConformalRegressor
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
    edges = [np.unique(np.quantile(x, [1 / 3, 2 / 3])) for x in train.X.T]

    def bins(X):
        parts = [np.ones((len(X), 1))]
        for x, e in zip(X.T, edges, strict=True):
            parts.append(x[:, None] > e)
        return np.hstack(parts).astype(float)

    model = ConditionalSplitConformalRegressor(
        bins, _Zero(), confidence_level=0.9, prefit=True, exact=False
    )
    return model.conformalize(train.X, train.error / train.u)


def predict_quantiles(model, new, levels):
    _, limits = model.predict_interval(new.X)
    found = np.full((len(new), len(levels)), np.nan)
    found[:, np.isclose(levels, 0.05)] = (new.u * limits[:, 0, 0])[:, None]
    found[:, np.isclose(levels, 0.95)] = (new.u * limits[:, 1, 0])[:, None]
    return found
