"""A factor for every bin of every column at once, by raking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..._support import numerals
from ..._support.checks import (
    Floats,
    Ints,
    check_choice,
    check_count,
    check_nonnegative,
)
from ..._support.notices import warn
from ..._support.weighting import mean_of, ones_if_none
from ...exceptions import DegenerateFitWarning
from ...predictions.predictions import Predictions
from ..additive import Additive, Base, Table, trimmed
from ..folds import fold_numbers, make_folds
from .axes import quantile_axes
from .linear import linear_base
from .outlier_caps import LEAST_RATIO, largest_counted, largest_ratio
from .scaling import Learned, Scaling

GAIN_PRIOR = 20.0  # rows, by which factors shrink that tell how much a column gains


class RakedScaling(Scaling):
    """Multiply uncertainties by a factor for their bin of u and of every feature.

    Factors are found by raking (iterative proportional fitting): cycle over the
    variables, multiply the variance of each bin by its current <Z²>, until no bin
    moves. At the end every bin of every variable is calibrated at once, but for the
    shrinkage of thin bins and a cap on enormous errors.

    Parameters
    ----------
    n_bins : int, default 20
        Number of equal-size bins of each column of numbers. Each label of a category is
        a bin, as is a missing value.
    base : {"u", "linear"}, default "u"
        What the factors multiply: u as it is, or that of :class:`LinearScaling`, which
        is safer where some u are much too small.
    prior_rows : float, optional
        Rows with <Z²> = 1 that each bin gets, so that thin bins stay near a factor of
        1; by default the number that rows out of fold gain most from.
    random_state : int, default 0
        Seed of the folds.

    References
    ----------
    W. E. Deming and F. F. Stephan, Ann. Math. Statist. 11, 427 (1940),
    doi:10.1214/aoms/1177731829

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u, x = rng.uniform(1, 2, 10_000), rng.integers(0, 2, 10_000)
    >>> error = rng.normal(scale=u**2 * np.where(x == 1, 3.0, 1.0))
    >>> p = ss.Predictions(y_std=u, error=error, features={"x": x})
    >>> f = ss.RakedScaling(n_bins=4).learn(p).map.tables[1].values
    >>> float(np.exp(f[2] - f[1]).round(1))
    2.9
    """

    GRID = (np.inf, 1000.0, 320.0, 160.0, 80.0, 40.0, 20.0, 10.0, 5.0, 0.0)
    MOST_ROWS = 20_000  # that shrinkage is chosen by; the factors are learned from all
    MOST_VARIABLES = 20  # that are raked; of more, those that tell most

    def __init__(
        self,
        n_bins: int = 20,
        *,
        base: Literal["u", "linear"] = "u",
        prior_rows: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_bins = n_bins
        self.base = base
        self.prior_rows = prior_rows
        self.random_state = random_state

    def learn(self, rows: Predictions) -> Learned:
        """Return what is learned of rows; see :class:`Scaling`."""
        n_bins = check_count(self.n_bins, "n_bins")
        seed = check_count(self.random_state, "random_state", least=0)
        on_line = check_choice(self.base, "base", ("u", "linear")) == "linear"
        weights = rows.weights

        # what the factors multiply, and the squared z-scores that it leaves
        base = linear_base(rows, subtract=False) if on_line else Base()
        start = base(rows.y_std)
        z2 = (np.sqrt(rows.squared_error) / start) ** 2
        if on_line:
            cap = largest_counted(z2, weights)
        else:
            cap = largest_ratio(z2, weights) * mean_of(z2, weights)

        # factors of the variance: of the folds, to set the level, and of all rows
        axes = quantile_axes(rows, n_bins, least_rows=10, most_labels=1000)
        n = ones_if_none(weights, z2.size)
        cells = _CodedRows(
            codes=np.column_stack([axis.codes_of(rows) for axis in axes]),
            sizes=[axis.n_codes for axis in axes],
            n=n,
            z2=n * np.minimum(z2, cap),
        )
        folds = _RakedFolds(cells, make_folds(z2, rows, seed))
        prior_rows, prior_rows_of_folds = self._prior_rows(folds)
        log_factor, _ = folds.out_of_fold(prior_rows_of_folds)
        factors = cells.rake(prior_rows, tolerance=1e-10, max_sweeps=1000)

        # the level makes <Z²> of rows out of fold 1
        level = 0.5 * float(np.log(mean_of(z2 * np.exp(-log_factor), weights)))
        out_of_fold = start * np.exp(level + 0.5 * log_factor)
        tables = [Table.of((j,), 0.5 * factor) for j, factor in enumerate(factors)]
        axes_used, tables_used = trimmed(axes, tables)
        return Learned(Additive(base, level, axes_used, tables_used), out_of_fold)

    def _prior_rows(self, folds: _RakedFolds) -> tuple[float, list[float]]:
        """Return the prior rows of all rows, and those without each of the folds.

        Rows of a fold are tested with those that are best for the others, or choosing
        would flatter them.
        """
        if self.prior_rows is not None:
            given = check_nonnegative(self.prior_rows, "prior_rows")
            return given, [given] * folds.n_folds
        if folds.n_folds == 1:  # nothing is out of fold
            return np.inf, [np.inf]

        # what rows out of fold say of each; each starts where the one before has ended
        sampled = folds.some(self.MOST_ROWS)
        sums = {}
        for prior_rows in self.GRID:
            _, sums[prior_rows] = sampled.out_of_fold([prior_rows] * folds.n_folds)

        # of equals, min takes the first: the one that shrinks most
        best = min(self.GRID, key=lambda k: sums[k].deviance())
        best_without = []
        for fold in range(folds.n_folds):
            deviances = [sums[k].deviance(without=fold) for k in self.GRID]
            best_without.append(self.GRID[int(np.argmin(deviances))])
        return best, best_without


@dataclass(frozen=True)
class _FoldSums:
    """What rows out of fold say of log-factors f, a number for each fold.

    Attributes
    ----------
    z2_left : array of shape (n_folds,)
        Σ n z² exp(−f), of capped z².
    log_factor : array of shape (n_folds,)
        Σ n f.
    n : array of shape (n_folds,)
        Σ n.
    """

    z2_left: Floats
    log_factor: Floats
    n: Floats

    def deviance(self, without: int | None = None) -> float:
        """Return the gamma deviance with the best constant, ln <z² exp(−f)> + <f>."""
        counted = np.arange(self.n.size) != without
        n = self.n[counted].sum()
        mean_ratio = self.z2_left[counted].sum() / n
        mean_log_factor = self.log_factor[counted].sum() / n
        return float(np.log(mean_ratio) + mean_log_factor)


@dataclass(frozen=True)
class _CodedRows:
    """Rows by their codes, with what counts of their z².

    Attributes
    ----------
    codes : array of int, shape (n, n_variables)
        The bin of each row along each variable.
    sizes : list of int
        The number of bins of each variable.
    n, z2 : array of shape (n,)
        The weight of each row, and its weight times its capped z².
    """

    codes: Ints
    sizes: list[int]
    n: Floats
    z2: Floats

    def take(self, which: Any) -> _CodedRows:
        """Return some of the rows."""
        return _CodedRows(self.codes[which], self.sizes, self.n[which], self.z2[which])

    def log_factors(self, factors: list[Floats]) -> Floats:
        """Return the logarithm of the variance factor of each row."""
        total = np.zeros(self.n.size)
        for factor, code in zip(factors, self.codes.T, strict=True):
            total += factor[code]
        return total

    def sums(self, variable: int, values: Floats) -> Floats:
        """Return the sums of a value of each row over the bins of a variable."""
        n_bins = self.sizes[variable]
        return np.asarray(np.bincount(self.codes[:, variable], values, n_bins))

    def active(self) -> list[int]:
        """Return which variables are raked: of very many, those that tell most."""
        variables = list(range(len(self.sizes)))
        if len(variables) <= RakedScaling.MOST_VARIABLES or not self.z2.any():
            return variables
        gains = [self._gain(variable) for variable in variables]
        least = np.sort(gains)[-RakedScaling.MOST_VARIABLES]
        return [variable for variable in variables if gains[variable] >= least]

    def _gain(self, variable: int) -> float:
        """Return the likelihood that the shrunk factors of one variable gain."""
        n = self.sums(variable, self.n)
        v = self.sums(variable, self.z2) / (self.z2.sum() / self.n.sum())
        log_factor = np.log((v + GAIN_PRIOR) / (n + GAIN_PRIOR))
        return -float(np.sum(v * np.expm1(-log_factor) + n * log_factor))

    def rake(
        self,
        prior_rows: float,
        start: list[Floats] | None = None,
        *,
        tolerance: float = 1e-4,
        max_sweeps: int = 100,
    ) -> list[Floats]:
        """Cycle over the variables; multiply each bin's variance by its current <Z²>.

        With k prior rows of <Z²> = 1, a bin of n rows and sum S gets (S + k) / (n + k):
        infinite k leaves all as it is. k = 0 is raking proper, the maximum-likelihood
        gamma model with log link that is additive in the bins; with k > 0 it is
        penalised, and the limit is unique. It is reached sooner from factors that are
        nearly right, the `start`.
        """
        factors = [np.zeros(size) for size in self.sizes]
        if np.isinf(prior_rows) or not self.z2.any():
            return factors

        active = self.active()
        if start is not None:
            for variable in active:
                factors[variable] = start[variable].copy()
        n_by_bin = {variable: self.sums(variable, self.n) for variable in active}
        total = self.n.sum()
        z2_left = self.z2 * np.exp(-self.log_factors(factors))

        # z2_left is z² over all factors so far
        for _ in range(max_sweeps):
            largest_move = 0.0
            for variable in active:
                old = factors[variable]
                sums = self.sums(variable, z2_left)
                level = sums.sum() / total
                # of <Z²> = 1, and left by the factors of the other variables alone
                sums_of_others = sums * np.exp(old) / level
                raked = _factors_of_bins(sums_of_others, n_by_bin[variable], prior_rows)
                largest_move = max(largest_move, float(np.abs(raked - old).max()))
                z2_left *= np.exp(old - raked)[self.codes[:, variable]]
                factors[variable] = raked
            if largest_move < tolerance:
                return factors

        if tolerance < 1e-6:
            warn(
                f"Raking still moved a factor by {numerals.number(largest_move, 1)} in "
                f"its last of {max_sweeps} cycles. Use fewer bins, or more "
                "`prior_rows`.",
                DegenerateFitWarning,
                stacklevel=5,
            )
        return factors


def _factors_of_bins(sums: Floats, n: Floats, prior_rows: float) -> Floats:
    """Return the log-factors ln (S + k) / (n + k) of bins, whose mean is 0.

    Parameters
    ----------
    sums, n : array of shape (n_bins,)
        The sum S of z² in each bin, and its n rows.
    prior_rows : float
        The k rows of <Z²> = 1 that each bin gets.
    """
    filled = n > 0
    n = n[filled]
    at_least = np.maximum(sums[filled], LEAST_RATIO * n)
    log_factors = np.log((at_least + prior_rows) / (n + prior_rows))
    # the overall level is not the variable's: it is set at the end
    of_bins = np.zeros(sums.size)
    of_bins[filled] = log_factors - np.average(log_factors, weights=n)
    return of_bins


class _RakedFolds:
    """Raking of all folds but one, tested by the rows of that one, for each fold."""

    def __init__(self, cells: _CodedRows, fold: Ints) -> None:
        self.cells = cells
        self.fold = fold
        self.numbers = fold_numbers(fold)
        self._last_factors: list[list[Floats] | None] = [None] * len(self.numbers)

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return len(self.numbers)

    def some(self, most: int) -> _RakedFolds:
        """Return so many of the rows at most, chosen at random."""
        if self.fold.size <= most:
            return _RakedFolds(self.cells, self.fold)
        which = np.random.default_rng(0).permutation(self.fold.size) < most
        return _RakedFolds(self.cells.take(which), self.fold[which])

    def out_of_fold(self, prior_rows: list[float]) -> tuple[Floats, _FoldSums]:
        """Return the log-factor of each row out of fold, and what it says by fold."""
        log_factor = np.zeros(self.fold.size)
        sums = []  # Σ n z² exp(−f), Σ n f and Σ n
        for i, number in enumerate(self.numbers):
            is_out = self.fold == number
            seen = self.cells if self.n_folds == 1 else self.cells.take(~is_out)
            factors = seen.rake(prior_rows[i], self._last_factors[i])
            self._last_factors[i] = factors
            unseen = self.cells.take(is_out)
            f = unseen.log_factors(factors)
            log_factor[is_out] = f
            sums.append((unseen.z2 @ np.exp(-f), unseen.n @ f, unseen.n.sum()))
        return log_factor, _FoldSums(*np.array(sums).T)
