"""puncc: locally adaptive intervals, whose dispersion a forest learns.

The forest learns abs(error) from u and features, as in puncc's documentation; the
prediction, which is given, stays. Four fifths of the rows are for the forest.
"""

import numpy as np
from deel.puncc.api.prediction import MeanVarPredictor
from deel.puncc.regression import LocallyAdaptiveCP
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor

from benchmarks.arena.parts import LEVELS

NAME = "puncc"
PACKAGE = "puncc"
FEATURES = True


def fit(train):
    given = DummyRegressor(strategy="constant", constant=0.0)
    spread = RandomForestRegressor(100, min_samples_leaf=10, random_state=0)
    model = LocallyAdaptiveCP(MeanVarPredictor(models=[given, spread]))
    one, other = next(train.folds())
    model.fit(
        X_fit=train.X[one],
        y_fit=train.error[one],
        X_calib=train.X[other],
        y_calib=train.error[other],
    )
    return model, len(other)


def predict(state, new):
    model, n = state
    coverages = (2 * LEVELS[LEVELS > 0.5] - 1).clip(max=1 - 1.5 / (n + 1))
    _, _, high = model.predict(new.X, alpha=0.1)
    # intervals of other coverages are these times a number, the same in all rows
    rows = new.X[:2]  # of one row, puncc takes mean and spread for two rows
    steps = np.array([model.predict(rows, alpha=1 - c)[2][0] for c in coverages])
    upper = np.multiply.outer(high, steps / high[0])
    return {"quantiles": np.hstack([-upper[:, ::-1], 0 * upper[:, :1], upper])}
