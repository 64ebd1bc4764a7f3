"""Raking: factors for the bins of several variables at once, from sums over cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._support.checks import Floats, Ints
from ..bins.partitions import sum_by_code
from ..bins.sums import CellSums

FLOOR = (
    0.01  # share of the mean z² added to each row: bins of zero errors stay positive
)

MOST_VARIABLES = 20  # that are raked; of more, those that tell most
PSEUDO_ROWS = 20.0  # of each bin, when variables are compared


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
    start: Sequence[Floats] | None = None,
    tolerance: float = 1e-10,
    max_sweeps: int = 1000,
) -> Raking:
    """Cycle over the variables, multiplying each bin's variance by its current <Z²>.

    With k pseudo-rows of <Z²> = 1, a bin of n rows and sum S gets (S + k) / (n + k):
    thin bins are shrunk towards 1, and infinite k leaves a variable out. k = 0 is
    raking proper, the maximum-likelihood gamma model with log link that is additive in
    the bins; with k > 0 it is penalised, and the limit is unique. It is reached sooner
    from factors that are nearly right, which can be given as `start`.
    """
    if not cells.capped.any():  # a fold without an error says nothing
        return Raking([np.zeros(b) for b in n_codes], 0.0, 0, 0.0)
    counts = [sum_by_code(cells.codes[:, j], cells.n, b) for j, b in enumerate(n_codes)]
    n_rows = cells.n.sum()
    factors = [np.zeros(b) for b in n_codes]
    active = [j for j, k in enumerate(pseudo_rows) if np.isfinite(k)]
    # the sum of z² of a cell over the factors so far
    current = cells.capped.copy()
    if start is not None:
        for j in active:
            factors[j] = start[j].copy()
            current *= np.exp(-factors[j])[cells.codes[:, j]]
    change, n_sweeps = np.inf, 0
    while change >= tolerance and n_sweeps < max_sweeps:
        n_sweeps += 1
        change = 0.0
        for j in active:
            code, k = cells.codes[:, j], pseudo_rows[j]
            sums = sum_by_code(code, current, n_codes[j])
            level = sums.sum() / n_rows
            # of the other variables' factors alone
            sums = np.maximum(sums * np.exp(factors[j]) / level, FLOOR * counts[j])
            filled = counts[j] > 0
            new = np.zeros(n_codes[j])
            new[filled] = np.log((sums[filled] + k) / (counts[j][filled] + k))
            # the overall level lives in the mean
            new[filled] -= np.average(new[filled], weights=counts[j][filled])
            change = max(change, float(np.abs(new - factors[j]).max()))
            current *= np.exp(factors[j] - new)[code]
            factors[j] = new
    log_mean = float(np.log(current.sum() / n_rows))
    return Raking(factors, log_mean, n_sweeps, change)


class CrossRaking:
    """Raking of all folds but one, judged by the cells of that one, for each fold.

    Each raking starts where the one before it, with other shrinkage, has ended.
    """

    def __init__(self, cells: CellSums, n_codes: Sequence[int]) -> None:
        self.folds = [int(k) for k in np.unique(cells.fold)]
        self.rakings: list[Raking] = []
        self._n_rows = float(cells.n.sum())
        self._n_codes = n_codes
        if len(self.folds) > 1:
            self._parts = [
                (cells.rows(cells.fold != k), cells.rows(cells.fold == k))
                for k in self.folds
            ]
        else:  # nothing is unseen
            self._parts = [(cells, cells)]
        self._telling = [telling(rest, n_codes) for rest, _ in self._parts]

    def judge(
        self,
        pseudo_rows: Sequence[Sequence[float]],
        *,
        tolerance: float = 1e-4,
        max_sweeps: int = 100,
    ) -> UnseenSums:
        """Rake with the pseudo-rows of each fold, and return what unseen rows say."""
        starts: list[list[Floats] | None] = [None] * len(self._parts)
        if self.rakings:
            starts = [each.log_factors for each in self.rakings]
        self.rakings = []
        found = []
        for (rest, unseen), active, start, pseudo in zip(
            self._parts, self._telling, starts, pseudo_rows, strict=True
        ):
            raking = rake(
                rest,
                self._n_codes,
                [k if a else np.inf for k, a in zip(pseudo, active, strict=True)],
                start=start,
                tolerance=tolerance,
                max_sweeps=max_sweeps,
            )
            self.rakings.append(raking)
            f = raking.log_variance_factor(unseen.codes) - raking.log_mean
            weight = np.exp(-f)
            sums = (unseen.z2 @ weight, unseen.capped @ weight, unseen.n @ f)
            found.append([float(each) / self._n_rows for each in sums])
        return UnseenSums(*np.array(found).T)


@dataclass(frozen=True)
class UnseenSums:
    """What the unseen rows of each fold say, as parts of a mean over all rows.

    Attributes
    ----------
    z2, capped : array of shape (n_folds,)
        Of z² over its factor, in full and with each counted up to a cap.
    log_factor : array of shape (n_folds,)
        Of the logarithm of the factor.
    """

    z2: Floats
    capped: Floats
    log_factor: Floats

    def deviance(self, without: int | None = None) -> float:
        """Return the deviance of all folds, or of all but one."""
        folds = np.arange(self.z2.size) != without
        share = 1.0 if without is None else np.mean(folds)
        capped, log_factor = self.capped[folds].sum(), self.log_factor[folds].sum()
        return float(np.log(capped / share) + log_factor / share)


def telling(cells: CellSums, n_codes: Sequence[int]) -> list[bool]:
    """Return which variables are raked: of very many, those whose bins differ most."""
    if len(n_codes) <= MOST_VARIABLES:
        return [True] * len(n_codes)
    gains = np.zeros(len(n_codes))
    mean = cells.capped.sum() / cells.n.sum()
    for j, b in enumerate(n_codes):
        code = cells.codes[:, j]
        n = sum_by_code(code, cells.n, b)
        v = sum_by_code(code, cells.capped, b) / (mean or 1.0)
        log_factor = np.log((v + PSEUDO_ROWS) / (n + PSEUDO_ROWS))
        gains[j] = -np.sum(v * np.expm1(-log_factor) + n * log_factor)
    least = np.sort(gains)[-MOST_VARIABLES]
    return [bool(gain >= least) for gain in gains]
