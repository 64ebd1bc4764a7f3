"""Temperature scaling: u times one factor of maximum likelihood, with normal errors."""

import numpy as np

from benchmarks.arena.rivals.raw import log_density, predict_quantiles

__all__ = ["log_density", "predict_quantiles"]
NAME = "temperature scaling"
PACKAGE = None
LEAGUE = "kept"


def fit(train):
    return float(np.sqrt(np.mean((train.error / train.u) ** 2)))
