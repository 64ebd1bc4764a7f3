"""LightGBM: gamma boosting of z², with a cross-validated number of trees.

The law is that of the z-scores of unseen rows.
"""

from __future__ import annotations

import lightgbm as lgb
import numpy as np

from benchmarks.arena.parts import with_law

NAME = "LightGBM, gamma"
PACKAGE = "lightgbm"
FEATURES = True
OPTIONS = {
    **{"objective": "gamma", "learning_rate": 0.05, "num_leaves": 8},
    **{"min_data_in_leaf": 20, "num_threads": 1, "verbose": -1, "seed": 0},
}


def fit(train):
    z2 = (train.error / train.u) ** 2
    data = lgb.Dataset(train.X, np.maximum(z2 / z2.mean(), 1e-6), free_raw_data=False)
    folds = list(train.folds())
    found = lgb.cv(
        OPTIONS,
        data,
        num_boost_round=1000,
        folds=folds,
        callbacks=[lgb.early_stopping(30, verbose=False)],
        return_cvbooster=True,
    )
    boosters = found["cvbooster"]
    z = np.empty(len(train))
    for (_, unseen), booster in zip(folds, boosters.boosters, strict=True):
        part = train.take(unseen)
        factor = booster.predict(part.X, num_iteration=boosters.best_iteration)
        z[unseen] = part.error / (part.u * np.sqrt(factor))
    return lgb.train(OPTIONS, data, boosters.best_iteration), z


def predict(state, new):
    model, z = state
    return with_law(new.u * np.sqrt(model.predict(new.X)), z)
