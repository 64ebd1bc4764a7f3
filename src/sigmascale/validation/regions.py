"""All regions of all columns: what adds their cells up, and their shifts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .._support.checks import Bools, Floats, Ints
from .._support.threads import in_threads
from .columns import FEWEST, Column
from .scores import N_BINS, SHIFTS, STEP, ZERO, Score, by_chance
from .values import Values

PRIOR = 100.0  # rows of the variance of all rows that are added to a region's own
OWN_SHAPE = 2.5  # standard errors beyond which a region has a shape of its own


class Regions:
    """Parts and runs of all columns, and what does not depend on the question.

    Parameters
    ----------
    columns : sequence of Column
        The columns.
    values : Values
        The rows.

    Attributes
    ----------
    owner : array of int
        The column of each region.
    start, stop : array of int
        Its first cell among those of all columns, and the one after its last.
    is_part, is_short, is_tenth : arrays of bool
        Which regions T is about, which are runs of one or two cells, and which are runs
        of a tenth.
    weight, share : arrays
        The weight of each region, and its share of all.
    df : array
        Degrees of freedom of a region's own variance.
    moderated_df : array
        The same with those of all rows that stabilise it.
    """

    def __init__(self, columns: Sequence[Column], values: Values) -> None:
        self.columns = columns
        self.values = values
        self._shifts: dict[int, Shifts] = {}
        self.first_cell = np.cumsum([0, *(column.n_cells for column in columns)])
        ranges = []
        owner = []
        kind = []
        is_tenth = []
        for i, column in enumerate(columns):
            kinds = (column.parts, column.runs, column.short_runs)
            mine = np.concatenate(kinds)
            ranges.append(mine + self.first_cell[i])
            owner.append(np.full(len(mine), i))
            kind.append(np.repeat(np.arange(3), [len(x) for x in kinds]))
            is_same = (mine[:, None] == column.tenths).all(axis=2).any(axis=1)
            is_tenth.append(is_same & (kind[-1] == 1))
        self.owner = np.concatenate(owner)
        self.start, self.stop = np.concatenate(ranges).T
        self.is_part: Bools = np.concatenate(kind) == 0
        self.is_short: Bools = np.concatenate(kind) == 2
        self.is_tenth: Bools = np.concatenate(is_tenth)

        # what regions weigh, and their share of all rows
        w = values.w
        self.weight = self.sums(w)
        self.squares = self.weight
        if values.rows.weights is not None:
            self.squares = self.sums(w * w)
        self.share = self.weight / w.sum()

        # rows in effect, and independent units: variances have `PRIOR` rows of the
        # overall one, and the correlation within groups is that of all groups
        self.rows = self.weight**2 / self.squares
        self.units = self.rows
        if values.groups is not None:
            self.units = self.weight**2 / self._squares_of_groups
        self.df = np.maximum(self.units - 1, 1)
        self.moderated_df = self.df + PRIOR
        if values.groups is not None:
            self.moderated_df = np.maximum(self.df, float(values.unit.max()))

    @cached_property
    def is_usable(self) -> Bools:
        """Which regions have enough rows, and more than one unit."""
        enough = FEWEST * (1 - 1e-9)
        return np.asarray((self.rows >= enough) & (self.units >= 2))

    @cached_property
    def n_rows(self) -> Ints:
        """The number of rows of each region."""
        counts = [np.bincount(c.code, minlength=c.n_cells) for c in self.columns]
        return np.asarray(self.added(cumulative(np.concatenate(counts))), np.int64)

    def sums(self, x: Floats) -> Floats:
        """Return the sums of x over the rows of each region, cell by cell."""

        def by_cell(c: Column) -> Floats:
            return np.bincount(c.code, c.of_rows(x), c.n_cells).astype(np.float64)

        cells = np.concatenate([*in_threads(by_cell, self.columns, x.size), [0.0]])
        ends = np.column_stack([self.start, self.stop]).ravel()
        return np.asarray(np.add.reduceat(cells, ends)[::2])

    def added(self, total: Any, which: Ints | None = None) -> Any:
        """Return sums over regions, or some, as differences of cumulative sums.

        This is for numbers of one size: with others, digits would be lost.
        """
        start = self.start if which is None else self.start[which]
        stop = self.stop if which is None else self.stop[which]
        return total[stop] - total[start]

    def means(self, x: Floats) -> Floats:
        """Return the weighted means of x over the rows of each region."""
        return self.sums(self.values.w * x) / self.weight

    def counts(self, score: Score) -> Floats:
        """Return the weight by cell and bin of a score."""
        weights = self.values.rows.weights

        def counts(c: Column) -> Floats:
            both = c.code * N_BINS + c.of_rows(score.bin)
            w = None if weights is None else c.of_rows(weights)
            return np.bincount(both, w, c.n_cells * N_BINS).astype(np.float64)

        by_column = in_threads(counts, self.columns, score.bin.size)
        return np.concatenate(by_column).reshape(-1, N_BINS)

    @cached_property
    def _squares_of_groups(self) -> Floats:
        """Σ over groups of (Σ_R w)², from products of the weights of two cells."""
        values = self.values
        out = np.empty(self.owner.size)
        for i, column in enumerate(self.columns):
            shape = (column.n_cells, int(values.unit.max()) + 1)
            place = (column.code, column.of_rows(values.unit))
            weights = sparse.csr_matrix((column.of_rows(values.w), place), shape)
            products = np.zeros((column.n_cells + 1, column.n_cells + 1))
            products[1:, 1:] = (weights @ weights.T).toarray()
            corner = products.cumsum(axis=0).cumsum(axis=1)
            mine = self.owner == i
            a = self.start[mine] - self.first_cell[i]
            b = self.stop[mine] - self.first_cell[i]
            out[mine] = corner[b, b] - 2 * corner[a, b] + corner[a, a]
        return out

    def variance_of_mean(self, x: Floats) -> Floats:
        """Return the variance of the mean of x in a region, over that of a row.

        It is q = [(1 − ρ) Σw² + ρ Σ_g (Σ_g w)²] / (Σw)², with ρ the correlation of x
        within groups g: of all pairs of rows, or of those of each group with the same
        weight a row, whichever is larger.
        """
        values = self.values
        alone = self.squares / self.weight**2
        if values.groups is None:
            return alone
        d = x - np.average(x, weights=values.w)
        n = np.bincount(values.unit)
        products = np.bincount(values.unit, d) ** 2 - np.bincount(values.unit, d * d)
        several = n > 1
        if not several.any():
            return alone
        by_pair = products.sum() / (n * (n - 1.0)).sum()
        by_row = (products[several] / (n[several] - 1)).sum() / n[several].sum()
        variance = max(float(d @ d) / d.size, 1e-300)
        r = float(np.clip(max(by_pair, by_row) / variance, 0, 1))
        return ((1 - r) * self.squares + r * self._squares_of_groups) / self.weight**2

    def shifts(self, score: Score) -> Shifts:
        """Return the shifts of all regions by a score; they are estimated once."""
        if id(score) not in self._shifts:
            self._shifts[id(score)] = Shifts.of(self, score)
        return self._shifts[id(score)]


def cumulative(by_cell: Any) -> Any:
    """Return cumulative sums along the first axis, which begin with 0."""
    total = np.zeros((len(by_cell) + 1, *by_cell.shape[1:]), by_cell.dtype)
    np.cumsum(by_cell, axis=0, out=total[1:])
    return total


@dataclass(frozen=True, eq=False)
class Shifts:
    """Shifts d with ⟨ψ(x − d)⟩ in a region = ⟨ψ(x)⟩ of all rows, and their limits.

    The variance of the mean is σ² q (1 − share), with σ² that of ψ(x − d) in the
    region, to which `PRIOR` rows of the overall one are added.
    """

    regions: Regions
    score: Score
    means: Floats  # [region, shift]
    d: Floats
    q: Floats
    se_of_mean: Floats
    slope: Floats

    @classmethod
    def of(cls, regions: Regions, score: Score) -> Shifts:
        """Estimate the shifts of all regions."""
        counts = regions.counts(score)
        weight = regions.weight[:, None]
        means = regions.added(cumulative(counts @ score.curve)) / weight
        squares = regions.added(cumulative(counts @ score.curve**2)) / weight
        mean = score.mean
        d = score.shift_to(means, np.full(len(means), mean))
        nearest = np.clip(np.rint(d / STEP).astype(int) + ZERO, 1, SHIFTS.size - 2)

        i = np.arange(len(d))
        own_variance = np.maximum(squares[i, nearest] - mean * mean, 0)
        q = regions.variance_of_mean(score.psi)
        variance = (own_variance / q + PRIOR * score.variance) / (1 / q + PRIOR)
        rest = np.maximum(1 - regions.share, 0.01)
        slope = (means[i, nearest - 1] - means[i, nearest + 1]) / (2 * STEP)
        return cls(
            regions,
            score,
            means,
            d,
            q,
            se_of_mean=np.sqrt(variance * q * rest),
            slope=np.maximum(slope, 1e-9),
        )

    @cached_property
    def se(self) -> Floats:
        """The standard error of a shift."""
        return self.se_of_mean / self.slope

    def limits(self, t: Floats) -> tuple[Floats, Floats]:
        """Return the shifts at which means leave what chance allows, at Student's t."""
        skewness = self.score.skewness * np.sqrt(self.q)
        ends = []
        for sign in (1, -1):
            reached = self.score.mean + by_chance(sign * t, skewness) * self.se_of_mean
            ends.append(self.score.shift_to(self.means, reached))
        return np.minimum(ends[0], self.d), np.maximum(ends[1], self.d)

    def has_own_shape(self, off: Floats, influence: Floats) -> Bools:
        """Return which regions have a statistic that their shift does not tell.

        `off` is the region's own statistic, `influence` that of each row on it; the
        spread of its difference from the shift is that of the difference of both.
        """
        of_shift = (self.score.psi - self.score.mean) / self.score.slope
        w = self.regions.values.w
        variance = np.average((influence - of_shift) ** 2, weights=w)
        rest = np.maximum(1 - self.regions.share, 0)
        spread = np.sqrt(variance * self.q * rest)
        return np.asarray(np.abs(off - self.d) > OWN_SHAPE * spread)
