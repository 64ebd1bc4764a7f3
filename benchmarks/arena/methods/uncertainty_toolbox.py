"""uncertainty-toolbox: its factor of u, and its isotonic quantiles."""

import numpy as np
from uncertainty_toolbox.recalibration import (
    get_quantile_recalibrator,
    get_std_recalibrator,
)

from benchmarks.arena.parts import LEVELS

NAME = "uncertainty-toolbox"
PACKAGE = "uncertainty-toolbox"
FEATURES = False


def fit(train):
    rows = np.zeros(len(train)), train.u, train.error
    return get_std_recalibrator(*rows), get_quantile_recalibrator(*rows)


def predict(state, new):
    factor, quantile = state
    zero = np.zeros(len(new))
    levels = LEVELS.clip(0.005, 0.995)
    found = np.column_stack([quantile(zero, new.u, level) for level in levels])
    return {"std": factor(new.u), "quantiles": found}
