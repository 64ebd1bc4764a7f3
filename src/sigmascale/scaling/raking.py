"""Raking: factors for the bins of several variables at once, from sums over cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._support.checks import Floats, Ints
from ..bins.cells import CellSums
from ..bins.partitions import sum_by_code

FLOOR = (
    0.01  # share of the mean z² added to each row: bins of zero errors stay positive
)


@dataclass(frozen=True)
class Raking:
    """Factors of the variance, and how they converged.

    Attributes
    ----------
    log_factors : list of array
        Logarithm of the variance factor of each bin, by variable; their mean over rows
        is 0.
    log_mean : float
        Logarithm of the factor of all rows.
    n_sweeps : int
        Number of cycles over the variables.
    change : float
        Largest change of a log-factor in the last cycle.
    """

    log_factors: list[Floats]
    log_mean: float
    n_sweeps: int
    change: float

    def log_variance_factor(self, codes: Ints) -> Floats:
        """Return the logarithm of the variance factor of each row or cell."""
        total = np.full(codes.shape[0], self.log_mean)
        for j, factors in enumerate(self.log_factors):
            total += factors[codes[:, j]]
        return total


def rake(
    cells: CellSums,
    n_codes: Sequence[int],
    pseudo_rows: Sequence[float],
    *,
    tolerance: float = 1e-10,
    max_sweeps: int = 1000,
) -> Raking:
    """Cycle over the variables, multiplying each bin's variance by its current <Z²>.

    With k pseudo-rows of <Z²> = 1, a bin of n rows and sum S gets (S + k) / (n + k):
    thin bins are shrunk towards 1, and infinite k leaves a variable out. k = 0 is
    raking proper, the maximum-likelihood gamma model with log link that is additive in
    the bins; with k > 0 it is penalised, and the limit is unique.
    """
    if not cells.capped.any():  # a fold without an error says nothing
        return Raking([np.zeros(b) for b in n_codes], 0.0, 0, 0.0)
    counts = [sum_by_code(cells.codes[:, j], cells.n, b) for j, b in enumerate(n_codes)]
    n_rows = cells.n.sum()
    factors = [np.zeros(b) for b in n_codes]
    eta = np.zeros(cells.n.size)
    active = [j for j, k in enumerate(pseudo_rows) if np.isfinite(k)]
    change, n_sweeps = np.inf, 0
    while change >= tolerance and n_sweeps < max_sweeps:
        n_sweeps += 1
        change = 0.0
        for j in active:
            code, k = cells.codes[:, j], pseudo_rows[j]
            level = np.sum(cells.capped * np.exp(-eta)) / n_rows
            others = eta - factors[j][code]
            current = sum_by_code(code, cells.capped * np.exp(-others), n_codes[j])
            current = np.maximum(current / level, FLOOR * counts[j])
            filled = counts[j] > 0
            new = np.zeros(n_codes[j])
            new[filled] = np.log((current[filled] + k) / (counts[j][filled] + k))
            # the overall level lives in the mean
            new[filled] -= np.average(new[filled], weights=counts[j][filled])
            change = max(change, float(np.abs(new - factors[j]).max()))
            factors[j] = new
            eta = others + new[code]
    log_mean = float(np.log(np.sum(cells.capped * np.exp(-eta)) / n_rows))
    return Raking(factors, log_mean, n_sweeps, change)
