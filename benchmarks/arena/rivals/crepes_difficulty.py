"""crepes: a predictive system normalised by u times the difficulty of near rows.

`DifficultyEstimator` on standardised columns, from one half; the system from the other.
"""

import numpy as np
from crepes import ConformalPredictiveSystem
from crepes.extras import DifficultyEstimator
from sklearn.preprocessing import StandardScaler

from benchmarks.arena.rivals.crepes_mondrian import percentiles

NAME = "crepes, difficulty"
PACKAGE = "crepes"
LEAGUE = "kept"


def fit(train):
    z = train.error / train.u
    z = z / np.mean(np.abs(z))  # the constant that crepes adds to difficulties is 0.01
    one, other = next(train.folds(2))
    scaler = StandardScaler().fit(train.X)
    difficulty = DifficultyEstimator()
    difficulty.fit(X=scaler.transform(train.X[one]), residuals=z[one])

    def sigmas(part):
        return part.u * difficulty.apply(scaler.transform(part.X))

    rest, system = train.take(other), ConformalPredictiveSystem()
    system.fit(residuals=rest.error, sigmas=sigmas(rest), seed=0)
    return sigmas, system, len(rest)


def predict_quantiles(state, new, levels):
    sigmas, system, n = state
    return percentiles(system, n, sigmas(new), levels)
