"""crepes: a conformal predictive system, normalised by u."""

import numpy as np
from crepes import ConformalPredictiveSystem

from benchmarks.arena.parts import LEVELS

NAME = "crepes, normalised"
PACKAGE = "crepes"
FEATURES = False


def fit(train):
    system = ConformalPredictiveSystem()
    return system.fit(residuals=train.error, sigmas=train.u, seed=0)


def predict(system, new):
    return laws(system, len(system.alphas), new.u)


def laws(system, n, sigmas, bins=None):
    """Return quantiles as far as n rows tell, and moments, of a predictive system."""
    least = (1 + 1e-9) / (n + 1)
    levels = 100 * LEVELS.clip(least, 1 - least)
    rows = {"y_hat": 0 * sigmas, "sigmas": sigmas, "bins": bins}
    quantiles = system.predict_percentiles(
        **rows,
        lower_percentiles=list(levels[LEVELS < 0.5]),
        higher_percentiles=list(levels[LEVELS >= 0.5]),
    )
    cpds = system.predict_cpds(**rows)
    mean = np.array([np.mean(values) for values in cpds])
    std = np.array([np.std(values) for values in cpds])
    return {"quantiles": quantiles, "mean": mean, "std": std}
