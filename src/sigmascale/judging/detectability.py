"""What a test would have seen: the smallest failure of a tenth of the rows.

In shuffled sets, which are calibrated, the uncertainties of a tenth of the rows, side
by side along a variable, are made too small by a factor. The smallest factor that is
found nearly always, wherever the tenth is, is what a "yes" is worth. (Uncertainties too
large, the lesser evil, are harder to see: a few small errors prove little.)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats
from .scans import ScannedVariable, variance_scan

SHARE = 0.1  # of the rows that are made wrong
POWER = 0.85  # of the sets in which they must be found
FACTORS = (1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0, 2.5, 3.0, 4.0, 6.0)


def smallest_seen(
    variable: ScannedVariable,
    sums: Floats,
    critical: float,
    rng: np.random.Generator,
) -> float:
    """Return the smallest factor that would be found; infinite if none of them is.

    Parameters
    ----------
    variable : ScannedVariable
        The variable in fine bins.
    sums : array of shape (n_sets, n_bins)
        Sums of z² of shuffled sets.
    critical : float
        The statistic beyond which a set is found wrong.
    rng : Generator
        Where the tenths are.
    """
    tenth = _tenths(variable, sums.shape[0], rng)

    def is_seen(factor: float) -> bool:
        """Return whether uncertainties too small by a factor are found."""
        found = variance_scan(variable, np.where(tenth, factor**2 * sums, sums))
        return float(np.mean(found >= critical)) >= POWER

    # larger factors are found more often: halve what is left to look at
    first, last = 0, len(FACTORS)
    while first < last:
        middle = (first + last) // 2
        if is_seen(FACTORS[middle]):
            last = middle
        else:
            first = middle + 1
    return FACTORS[first] if first < len(FACTORS) else float("inf")


def _tenths(
    variable: ScannedVariable, n_sets: int, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Return the bins that are made wrong: a run of numbers, or some labels."""
    share = variable.sizes / variable.sizes.sum()
    chosen = np.zeros((n_sets, variable.n_bins), dtype=np.bool_)
    for each in chosen:
        if variable.labels is None:
            start = int(rng.integers(variable.n_bins))
            order = np.arange(start, variable.n_bins)
            if share[order].sum() < SHARE:  # too near the end: go the other way
                order = np.arange(variable.n_bins - 1, -1, -1)
        else:
            order = rng.permutation(variable.n_bins)
        enough = int(np.searchsorted(np.cumsum(share[order]), SHARE - 1e-9)) + 1
        each[order[:enough]] = True
    return chosen
