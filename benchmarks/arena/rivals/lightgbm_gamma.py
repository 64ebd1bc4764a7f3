"""LightGBM: gamma boosting of z² with cross-validated trees, z-scores out of fold."""

import lightgbm as lgb
import numpy as np

from benchmarks.arena.parts import scaled

NAME = "LightGBM, gamma"
PACKAGE = "lightgbm"
LEAGUE = "kept"
OPTIONS = {
    **{"learning_rate": 0.05, "num_leaves": 8, "min_data_in_leaf": 20},
    **{"num_threads": 1, "verbose": -1, "seed": 0},
}


def boosted(X, y, folds, objective):
    """Return a booster, and what those of folds say of rows that they have not seen."""
    data, options = lgb.Dataset(X, y, free_raw_data=False), OPTIONS.copy()
    options["objective"] = objective
    found = lgb.cv(
        options,
        data,
        num_boost_round=1000,
        folds=folds,
        callbacks=[lgb.early_stopping(30, verbose=False)],
        return_cvbooster=True,
    )
    boosters, out = found["cvbooster"], np.empty(len(y))
    for (_, rows), booster in zip(folds, boosters.boosters, strict=True):
        out[rows] = booster.predict(X[rows], num_iteration=boosters.best_iteration)
    return lgb.train(options, data, boosters.best_iteration), out


def scale_of(X, z, folds):
    z2 = z**2
    model, out = boosted(X, np.maximum(z2 / z2.mean(), 1e-6), folds, "gamma")
    return model, z / np.sqrt(out)


def fit(train):
    return scale_of(train.X, train.error / train.u, list(train.folds()))


def predict_quantiles(state, new, levels):
    model, z = state
    return scaled(new.u * np.sqrt(model.predict(new.X)), z, levels)
