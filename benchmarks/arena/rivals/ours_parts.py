"""`Recalibrator(parts=...)`: intervals that hold in fifths of u and of two columns.

The columns are those whose ranks go most with those of abs(z), as for MAPIE's
conditional regressor.
"""

import warnings

import numpy as np
from scipy.stats import spearmanr

import sigmascale as ss
from benchmarks.arena.rivals.ours import log_density, predict_quantiles

__all__ = ["log_density", "predict_quantiles"]
NAME = "sigmascale, parts"
PACKAGE = "sigmascale"
LEAGUE = "kept"
MOST = 2  # columns beside u


def fit(train):
    rows = train.predictions
    numbers = [name for name in rows.names[1:] if not rows.is_labelled(name)]
    told = [_rank_correlation(rows.features[name], rows.abs_z) for name in numbers]
    named = [numbers[k] for k in np.argsort(told)[::-1][:MOST]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ss.exceptions.FewRowsWarning)
        return ss.Recalibrator(parts=["u", *named]).fit(rows)


def _rank_correlation(column, abs_z):
    known = ~np.isnan(column)
    if np.unique(column[known]).size < 2:
        return 0.0
    return abs(spearmanr(column[known], abs_z[known]).statistic)
