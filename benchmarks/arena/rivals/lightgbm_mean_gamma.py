"""LightGBM for the mean of z, and gamma boosting of what that leaves."""

import numpy as np

from benchmarks.arena.parts import scaled
from benchmarks.arena.rivals.lightgbm_gamma import boosted, scale_of

NAME = "LightGBM, mean and gamma"
PACKAGE = "lightgbm"
LEAGUE = "corrected"


def fit(train):
    folds, z = list(train.folds()), train.error / train.u
    mean, out = boosted(train.X, z, folds, "regression")
    return mean, *scale_of(train.X, z - out, folds)


def predict_quantiles(state, new, levels):
    mean, model, z = state
    centre = new.u * mean.predict(new.X)
    scale = new.u * np.sqrt(model.predict(new.X))
    return centre[:, None] + scaled(scale, z, levels)
