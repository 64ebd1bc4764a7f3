"""NGBoost: normal laws of z by natural gradient boosting of u and features."""

from __future__ import annotations

from ngboost import NGBRegressor

NAME = "NGBoost"
PACKAGE = "ngboost"
FEATURES = True


def fit(train):
    z = train.error / train.u
    seen, unseen = next(train.folds())
    model = NGBRegressor(random_state=0, verbose=False)
    return model.fit(
        train.X[seen],
        z[seen],
        X_val=train.X[unseen],
        Y_val=z[unseen],
        early_stopping_rounds=20,
    )


def predict(model, new):
    found = model.pred_dist(new.X)  # of the best number of trees
    return {"mean": new.u * found.params["loc"], "std": new.u * found.params["scale"]}
