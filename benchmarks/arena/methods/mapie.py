"""MAPIE: split conformal intervals, normalised by u as the estimate of residuals."""

import numpy as np
from mapie.conformity_scores import ResidualNormalisedScore
from mapie.regression import SplitConformalRegressor
from sklearn.base import BaseEstimator, RegressorMixin

from benchmarks.arena.parts import LEVELS

NAME = "MAPIE"
PACKAGE = "mapie"
FEATURES = False
COVERAGES = 2 * LEVELS[LEVELS > 0.5] - 1


class _Column(RegressorMixin, BaseEstimator):
    """A fitted model that returns the first column, times a factor."""

    def __init__(self, factor=1.0):
        self.factor = factor
        self.fitted_ = True

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.factor * X[:, 0]


def fit(train):
    score = ResidualNormalisedScore(residual_estimator=_Column(), prefit=True)
    most = 1 - 1.5 / (len(train) + 1)  # the most that so few rows can promise
    model = SplitConformalRegressor(
        estimator=_Column(0.0),
        confidence_level=list(COVERAGES.clip(max=most)),
        conformity_score=score,
        prefit=True,
    )
    return model.conformalize(train.X[:, :1], train.error)


def predict(model, new):
    _, intervals = model.predict_interval(new.X[:, :1])
    low, high = intervals[:, 0], intervals[:, 1]  # (n, coverages)
    return {"quantiles": np.hstack([low[:, ::-1], 0 * low[:, :1], high])}
