"""uncertainty-toolbox: its isotonic recalibration of quantiles."""

import numpy as np
from uncertainty_toolbox.recalibration import get_quantile_recalibrator

NAME = "uncertainty-toolbox"
PACKAGE = "uncertainty-toolbox"
LEAGUE = "kept"


def fit(train):
    return get_quantile_recalibrator(np.zeros(len(train)), train.u, train.error)


def predict_quantiles(quantile, new, levels):
    zero = np.zeros(len(new))
    inner = np.clip(levels, 0.005, 0.995)
    return np.column_stack([quantile(zero, new.u, level) for level in inner])
