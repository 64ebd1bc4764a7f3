"""Caps: up to which size a squared z-score counts, so that no row decides alone."""

from __future__ import annotations

import numpy as np

from ..._support.checks import Floats
from ..._support.weighting import mean_of

LEAST_RATIO = 0.01  # share of the mean z² that a row or bin has: no factor is 0


def largest_counted(z2: Floats, weights: Floats | None) -> float:
    """Return up to which value a z² counts, so that no row decides alone.

    It is so many times the mean of what counts: at least 20 (normal errors stay below
    2 ln n, about 20 for 20,000 rows), and sqrt(n) / 2 for larger sets, where single
    rows matter less. Where nearly all errors are exactly 0 the others are no outliers.
    """
    ratio = largest_ratio(z2, weights)
    level = mean_of(z2, weights)
    # the cap lowers the mean, which lowers the cap, until neither moves
    while True:
        counted = mean_of(np.minimum(z2, ratio * level), weights)
        if counted >= 0.999 * level:
            return ratio * level
        level = counted


def largest_ratio(z2: Floats, weights: Floats | None) -> float:
    """Return the largest ratio of a z² to their mean that counts in full."""
    if weights is None:
        n = float(z2.size)
        n_nonzero = float(np.count_nonzero(z2))
    else:
        n = float(weights.sum())
        n_nonzero = float(weights[z2 != 0].sum())
    return max(20.0, 0.5 * float(np.sqrt(n)), 2 * n / max(1.0, n_nonzero))


def slowly_beyond(ratio: Floats, cap: float) -> Floats:
    """Return ratios up to a cap, which grow as their logarithm beyond."""
    slowly = np.minimum(ratio, cap)
    beyond = np.flatnonzero(ratio > cap)
    slowly[beyond] += cap * np.log(ratio[beyond] / cap)
    return slowly
