"""Conformalized quantile regression: LightGBM's quantiles, by MAPIE.

Only the limits of 90 % intervals are asked for; there is no distribution.
"""

import numpy as np
from lightgbm import LGBMRegressor
from mapie.regression import ConformalizedQuantileRegressor

NAME = "CQR (MAPIE)"
PACKAGE = "mapie"
LEAGUE = "corrected"


def fit(train):
    within, held = next(train.folds(2))
    z = train.error / train.u
    model = LGBMRegressor(
        objective="quantile",
        alpha=0.5,
        n_estimators=100,
        learning_rate=0.05,
        num_leaves=8,
        n_jobs=1,
        verbose=-1,
        random_state=0,
    )
    found = ConformalizedQuantileRegressor(model, confidence_level=0.9)
    found.fit(train.X[within], z[within])
    return found.conformalize(train.X[held], z[held])


def predict_quantiles(model, new, levels):
    _, limits = model.predict_interval(new.X)
    found = np.full((len(new), len(levels)), np.nan)
    found[:, np.isclose(levels, 0.05)] = (new.u * limits[:, 0, 0])[:, None]
    found[:, np.isclose(levels, 0.95)] = (new.u * limits[:, 1, 0])[:, None]
    return found
