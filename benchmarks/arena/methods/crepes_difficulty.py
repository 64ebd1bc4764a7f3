"""crepes: a predictive system normalised by u times the difficulty of near rows.

The difficulty, the mean abs(z) of the 25 nearest rows, is learned from one half of the
rows, and the law from the other.
"""

import numpy as np
from crepes import ConformalPredictiveSystem
from crepes.extras import DifficultyEstimator
from sklearn.preprocessing import StandardScaler

from benchmarks.arena.methods.crepes_normalised import laws

NAME = "crepes, difficulty"
PACKAGE = "crepes"
FEATURES = True


def fit(train):
    z = train.error / train.u
    z /= np.mean(np.abs(z))  # the constant that crepes adds to difficulties is 0.01
    one, other = next(train.folds(2))
    scaler = StandardScaler().fit(train.X)
    difficulty = DifficultyEstimator()
    difficulty.fit(X=scaler.transform(train.X[one]), residuals=z[one])

    def sigmas(part):
        return part.u * difficulty.apply(scaler.transform(part.X))

    rest = train.take(other)
    system = ConformalPredictiveSystem()
    system.fit(residuals=rest.error, sigmas=sigmas(rest), seed=0)
    return sigmas, system, len(rest)


def predict(state, new):
    sigmas, system, n = state
    return laws(system, n, sigmas(new))
