"""The law of z: how errors are distributed beside their shift and their scale.

A law is normal, or *empirical*: a table of quantiles of the z-scores of rows that a fit
has not seen, linear between them. Of n rows, the i-th z-score stands for the level
i / (n + 1), and what lies beyond the first and the last is at these. Everything about a
table is exact: its mean, its spread, its cumulative distribution, its ranked score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._support.checks import Floats, Ints
from .._support.notices import warn
from .._support.weights import total_of
from ..bins.partitions import EqualSizeBins
from ..exceptions import FewRowsWarning

MOST_QUANTILES = 1001  # of all tables of a law together


@dataclass(frozen=True)
class NormalLaw:
    """Errors are normal, with the scale for their standard deviation."""

    words = "normal"

    def codes(self, scale: Floats) -> Ints:
        """Return which table is whose: there is none but one."""
        return np.zeros(scale.shape, dtype=np.int64)

    def quantiles(self, levels: Floats, codes: Ints) -> Floats:
        """Return quantiles of z, a row for each code."""
        from scipy import special

        found: Floats = special.ndtri(levels)
        return np.broadcast_to(found, (codes.size, found.size))

    def draws(self, levels: Floats, codes: Ints) -> Floats:
        """Return the quantiles at levels of each row's own, shape (n, k)."""
        from scipy import special

        return np.asarray(special.ndtri(levels))

    def cdf(self, z: Floats, codes: Ints) -> Floats:
        """Return the probability of what is at most z."""
        from scipy import special

        return np.asarray(special.ndtr(z))

    def below(self, z: Floats, codes: Ints) -> Floats:
        """Return the probability of what is less than z."""
        return self.cdf(z, codes)

    def ranked_scores(self, z: Floats, codes: Ints) -> Floats:
        """Return the continuous ranked probability scores of z."""
        from scipy import special

        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        # 2 Φ(z) − 1 is erf(z / √2), which does not cancel near 0
        parts = z * special.erf(z / np.sqrt(2)) + 2 * density - 1 / np.sqrt(np.pi)
        return np.asarray(parts)

    def mean(self, codes: Ints) -> Floats:
        """Return the mean of z."""
        return np.zeros(codes.shape)

    def std(self, codes: Ints) -> Floats:
        """Return the standard deviation of z."""
        return np.ones(codes.shape)


@dataclass(frozen=True)
class QuantileTable:
    """A distribution by some of its quantiles, linear between them.

    Attributes
    ----------
    levels : array of shape (k,)
        Probabilities, ascending.
    values : array of shape (k,)
        The quantiles; what lies beyond the outermost levels is at the outermost values.
    """

    levels: Floats
    values: Floats

    @property
    def is_sound(self) -> bool:
        """Whether these are quantiles, for those that come from a file."""
        p, q = self.levels, self.values
        return bool(
            p.ndim == 1
            and p.shape == q.shape
            and p.size > 0
            and np.isfinite(q).all()
            and (np.diff(q) >= 0).all()
            and (np.diff(p) > 0).all()
            and p[0] > 0
            and p[-1] < 1
        )

    @classmethod
    def learn(cls, z: Floats, weights: Floats | None, most: int) -> QuantileTable:
        """Return the table of z-scores; of more than `most`, of so many quantiles.

        These are closer to each other in the tails, where a line between two of them
        would say least.
        """
        n_rows = total_of(z.size, weights)
        if weights is None:
            values = np.sort(z)
            ranks = np.arange(1.0, z.size + 1)
        else:
            order = np.argsort(z, kind="stable")
            w = weights[order]
            ends = np.cumsum(w)
            # a weight of 3 is a step from the rank of the first repeat to the last's;
            # what weighs at most 1 is in the middle of its room
            inside = 0.5 - np.minimum(w, 1) / 2
            ranks = np.column_stack([ends - w + 1 - inside, ends + inside])
            there = np.column_stack([np.ones(w.size, dtype=bool), w > 1])
            values, ranks = np.repeat(z[order], 2)[there.ravel()], ranks[there]
        levels = ranks / (n_rows + 1)
        if max(levels.size, n_rows) > most:
            part = np.sin(np.linspace(0, np.pi / 2, most)) ** 2
            wanted = levels[0] + (levels[-1] - levels[0]) * part
            values, levels = np.interp(wanted, levels, values), wanted
        return cls(levels, values)

    def quantiles(self, levels: Floats) -> Floats:
        """Return the quantiles at some levels."""
        return np.interp(levels, self.levels, self.values)

    @cached_property
    def _with_ends(self) -> tuple[Floats, Floats]:
        """Levels from 0 to 1, and the values there."""
        q = self.values
        return np.concatenate([[0.0], self.levels, [1.0]]), q[[0, *range(q.size), -1]]

    @cached_property
    def mean(self) -> float:
        """The mean."""
        p, q = self._with_ends
        return float(np.diff(p) @ (q[1:] + q[:-1]) / 2)

    @cached_property
    def std(self) -> float:
        """The standard deviation."""
        p, q = self._with_ends
        a, b = q[:-1] - self.mean, q[1:] - self.mean
        return float(np.sqrt(np.diff(p) @ (a * a + a * b + b * b) / 3))

    @cached_property
    def _mean_difference(self) -> float:
        """The mean of (X − X')⁺ of two draws: the integral of (2p − 1) Q(p)."""
        p, q = self._with_ends
        middle, half, step = (p[1:] + p[:-1]) / 2, np.diff(p) / 2, np.diff(q)
        inner = (2 * middle - 1) * (q[1:] + q[:-1]) / 2 + half * step / 3
        return float(np.diff(p) @ inner)

    @cached_property
    def _areas(self) -> Floats:
        """The area below the cumulative distribution, up to each value."""
        p, q = self.levels, self.values
        return np.concatenate([[0.0], np.cumsum(np.diff(q) * (p[1:] + p[:-1]) / 2)])

    def _segment(self, x: Floats, side: Any = "right") -> tuple[Ints, Floats]:
        """Return the last value up to x, or -1, and the level there or beyond it."""
        p, q = self.levels, self.values
        at = np.searchsorted(q, x, side=side) - 1
        left = np.clip(at, 0, max(0, q.size - 2))
        right = np.minimum(left + 1, q.size - 1)
        width = q[right] - q[left]
        share = np.divide(x - q[left], width, out=np.zeros(x.shape), where=width > 0)
        level = p[left] + np.clip(share, 0, 1) * (p[right] - p[left])
        return at, level

    def cdf(self, x: Floats) -> Floats:
        """Return the probability of what is at most x."""
        at, level = self._segment(x)
        return np.where(at < 0, 0.0, np.where(at >= self.values.size - 1, 1.0, level))

    def below(self, x: Floats) -> Floats:
        """Return the probability of what is less than x."""
        at, level = self._segment(x, "left")
        return np.where(at < 0, 0.0, np.where(at >= self.values.size - 1, 1.0, level))

    def ranked_scores(self, x: Floats) -> Floats:
        """Return the continuous ranked probability scores of x.

        It is E abs(X − x) − E abs(X − X') / 2, and E abs(X − x) follows from the area
        below the cumulative distribution, up to x.
        """
        at, level = self._segment(x)
        first = np.maximum(at, 0)
        beyond = x - self.values[first]
        inside = at < self.values.size - 1
        height = np.where(inside, (self.levels[first] + level) / 2, 1.0)
        area = np.where(at < 0, 0.0, self._areas[first] + beyond * height)
        return 2 * area + (self.mean - x) - self._mean_difference


@dataclass(frozen=True)
class EmpiricalLaw:
    """Errors are distributed as the z-scores of rows that the fit has not seen.

    Attributes
    ----------
    tables : tuple of QuantileTable
        One, or one for each bin of the scale.
    bins : EqualSizeBins
        The bins of the scale.
    n_rows : int
        Rows that the smallest table was learned from.
    """

    tables: tuple[QuantileTable, ...]
    bins: EqualSizeBins
    n_rows: int

    @property
    def is_sound(self) -> bool:
        """Whether there is a table for each bin, for those that come from a file."""
        return len(self.tables) == self.bins.n_bins and self.n_rows > 0

    @property
    def words(self) -> str:
        """What it is, in words."""
        n = len(self.tables)
        where = f", in {n} bins of the uncertainty" if n > 1 else ""
        return f"empirical: the z-scores of unseen rows{where}"

    @classmethod
    def learn(
        cls, z: Floats, scale: Floats, weights: Floats | None, n_bins: int
    ) -> EmpiricalLaw:
        """Return the law of z-scores, by bins of the scale."""
        bins = EqualSizeBins(np.empty(0))
        if n_bins > 1:
            bins = EqualSizeBins.quantiles(scale, n_bins, weights)
            # halfway to the row before: where the last bits of the scale differ, as in
            # ONNX, no row falls into another bin
            ordered = np.sort(scale)
            before = ordered[np.maximum(0, np.searchsorted(ordered, bins.limits) - 1)]
            middle = (before + bins.limits) / 2
            bins = EqualSizeBins(np.where(middle > before, middle, bins.limits))
        codes = bins.codes(scale)
        tables, sizes = [], []
        for code in range(bins.n_bins):
            own = codes == code
            w = None if weights is None else weights[own]
            tables.append(QuantileTable.learn(z[own], w, MOST_QUANTILES // n_bins))
            sizes.append(int(np.count_nonzero(own) if w is None else w.sum()))
        return cls(tuple(tables), bins, max(1, min(sizes)))

    def codes(self, scale: Floats) -> Ints:
        """Return which table is whose."""
        if len(self.tables) == 1:
            return np.zeros(scale.shape, dtype=np.int64)
        return np.asarray(self.bins.codes(scale))

    def _by_table(self, name: str, codes: Ints, *values: Floats) -> Floats:
        """Return what a method of each table says of the rows that are its own."""
        if len(self.tables) == 1:
            return np.asarray(getattr(self.tables[0], name)(*values))
        found = np.empty(values[0].shape)
        for code, table in enumerate(self.tables):
            own = np.flatnonzero(codes == code)
            found[own] = getattr(table, name)(*(each[own] for each in values))
        return found

    def quantiles(self, levels: Floats, codes: Ints) -> Floats:
        """Return quantiles of z, a row for each code."""
        self._warn_of_few(levels)
        found = np.array([table.quantiles(levels) for table in self.tables])
        return found[codes]

    def draws(self, levels: Floats, codes: Ints) -> Floats:
        """Return the quantiles at levels of each row's own, shape (n, k)."""
        return self._by_table("quantiles", codes, levels)

    def _warn_of_few(self, levels: Floats) -> None:
        """Say which levels lie beyond what rows can tell, and how many could."""
        tail = float(np.minimum(levels, 1 - levels).min(initial=0.5))
        needed = math.ceil(round(1 / tail, 6)) - 1
        if self.n_rows < needed:
            warn(
                f"Quantiles at the level {tail:.3g}, or {1 - tail:.6g}, lie beyond "
                f"what {self.n_rows} rows can tell: the outermost z-score is taken "
                f"for them. They need {needed} rows; fit with more, or ask for less.",
                FewRowsWarning,
                stacklevel=4,
            )

    def cdf(self, z: Floats, codes: Ints) -> Floats:
        """Return the probability of what is at most z."""
        return self._by_table("cdf", codes, z)

    def below(self, z: Floats, codes: Ints) -> Floats:
        """Return the probability of what is less than z."""
        return self._by_table("below", codes, z)

    def ranked_scores(self, z: Floats, codes: Ints) -> Floats:
        """Return the continuous ranked probability scores of z."""
        return self._by_table("ranked_scores", codes, z)

    def mean(self, codes: Ints) -> Floats:
        """Return the mean of z."""
        return np.array([table.mean for table in self.tables])[codes]

    def std(self, codes: Ints) -> Floats:
        """Return the standard deviation of z."""
        return np.array([table.std for table in self.tables])[codes]


Law = NormalLaw | EmpiricalLaw
NORMAL = NormalLaw()
