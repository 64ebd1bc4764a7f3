"""scikit-learn: gamma boosting of z², with a cross-validated number of trees.

The law is that of the z-scores of unseen rows.
"""

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.arena.parts import with_law

NAME = "scikit-learn, gamma"
PACKAGE = "scikit-learn"
FEATURES = True
MOST = 200


def _trees(count):
    return HistGradientBoostingRegressor(
        loss="gamma",
        learning_rate=0.05,
        max_iter=count,
        max_leaf_nodes=8,
        early_stopping=False,
        random_state=0,
    )


def fit(train):
    z2 = (train.error / train.u) ** 2
    ratio = np.maximum(z2 / z2.mean(), 1e-6)
    unseen = np.empty((MOST, len(train)))
    for one, other in train.folds():
        model = _trees(MOST).fit(train.X[one], ratio[one])
        unseen[:, other] = list(model.staged_predict(train.X[other]))
    best = np.argmin(np.mean(ratio / unseen + np.log(unseen), axis=1))
    z = train.error / (train.u * np.sqrt(unseen[best]))
    return _trees(best + 1).fit(train.X, ratio), z


def predict(state, new):
    model, z = state
    return with_law(new.u * np.sqrt(model.predict(new.X)), z)
