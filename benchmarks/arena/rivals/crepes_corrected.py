"""crepes on a forest that corrects predictions, with difficulty by features.

A random forest learns the error from one half of the rows; its out-of-bag residuals
tell `DifficultyEstimator` what is difficult; the other half calibrates the system.
"""

import numpy as np
from crepes import WrapRegressor
from crepes.extras import DifficultyEstimator
from sklearn.ensemble import RandomForestRegressor
from sklearn.preprocessing import StandardScaler

NAME = "crepes, forest and difficulty"
PACKAGE = "crepes"
LEAGUE = "corrected"


def fit(train):
    one, other = next(train.folds(2))
    scaler = StandardScaler().fit(train.X)
    X, unit = scaler.transform(train.X), np.std(train.error) + 1e-300
    y = train.error / unit
    forest = RandomForestRegressor(100, min_samples_leaf=5, oob_score=True)
    model = WrapRegressor(forest.set_params(random_state=0))
    model.fit(X[one], y[one])
    difficulty = DifficultyEstimator()
    residuals = y[one] - model.learner.oob_prediction_
    difficulty.fit(X=X[one], residuals=residuals, scaler=True)
    model.calibrate(X[other], y[other], de=difficulty, cps=True)
    return model, scaler, unit, len(other)


def predict_quantiles(state, new, levels):
    model, scaler, unit, n = state
    least = (1 + 1e-9) / (n + 1)
    asked = 100 * np.clip(levels, least, 1 - least)
    return unit * model.predict_percentiles(
        scaler.transform(new.X),
        lower_percentiles=list(asked[levels < 0.5]),
        higher_percentiles=list(asked[levels >= 0.5]),
    )
