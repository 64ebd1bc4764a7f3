"""The distribution of z = (error − bias) / scale: normal, or tables of quantiles.

It is normal, or *empirical*: a table of quantiles of z-scores that no fit has seen,
linear between them, in a few bins of the scale. Of n rows, the i-th z-score stands for
the level i / (n + 1). Everything about a table is exact: mean, spread, cumulative
distribution, ranked score. Of vectors the table holds radii, |error| / (scale √d).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from ..._support.checks import Floats, Ints
from ..._support.notices import warn
from ..._support.numerals import number
from ..._support.places import Places
from ..._support.weighting import levels_of_rows, weights_of
from ...exceptions import FewRowsWarning, InfiniteIntervalWarning
from ...predictions.ordering import ascending
from ..additive import quantile_edges
from ..persistence import flag, floats, index, many, optional, refuse_if, stored
from .shrinkage import drawn_to_normal

MOST_QUANTILES = 1001  # of all tables of a distribution together


class Normal:
    """The standard normal distribution, with the methods of a table."""

    mean = 0.0
    second_moment = 1.0
    mean_difference = 1 / math.sqrt(math.pi)

    def quantile(self, levels: Floats) -> Floats:
        """Return quantiles."""
        return np.asarray(special.ndtri(levels))

    def cdf(self, x: Floats) -> Floats:
        """Return the probability of what is at most x."""
        return np.asarray(special.ndtr(x))

    within = quantile
    below = cdf

    def crps(self, x: Floats) -> Floats:
        """Return continuous ranked probability scores."""
        # 2 Φ(x) − 1 is erf(x / √2), which does not cancel near 0
        spread = x * special.erf(x / np.sqrt(2)) + 2 * _density(x)
        return np.asarray(spread - self.mean_difference)

    def integrals(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return integrals up to x: of the cdf, of that, and of the cdf's square."""
        p = special.ndtr(x)
        density = _density(x)
        # by parts, as the density's derivative is −x times the density
        of_cdf = x * p + density
        of_that = ((x * x + 1) * p + x * density) / 2
        of_square = x * p**2 + 2 * density * p
        of_square -= special.ndtr(x * np.sqrt(2)) / np.sqrt(np.pi)
        return of_cdf, of_that, of_square

    def reflected(self) -> Normal:
        """Return the distribution of −z."""
        return self


def _density(x: Floats) -> Floats:
    """Return the standard normal density."""
    return np.asarray(np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))


@stored(levels=floats, values=floats, infinite=flag)
@dataclass(frozen=True, eq=False)
class QuantileTable:
    """A distribution by some of its quantiles, linear between them.

    Attributes
    ----------
    levels : array of shape (k,)
        Probabilities, ascending.
    values : array of shape (k,)
        The quantiles.
    infinite : bool
        Whether quantiles are steps outwards, and infinite beyond the outermost levels:
        those of rows held out, of which intervals have a guarantee. If not, they are
        those of the outermost levels there.
    """

    levels: Floats
    values: Floats
    infinite: bool = False

    @classmethod
    def learn(
        cls, z: Floats, weights: Floats | None, most: int, *, infinite: bool = False
    ) -> QuantileTable:
        """Return the table of z-scores; of more than `most`, of so many quantiles.

        Each row has room for its weight among the sorted ones, and stands for the
        middle of it: of equal rows the i-th of n for i / (n + 1).
        """
        if weights is None:
            values = np.sort(z)
            levels = levels_of_rows(z.size, None)
        else:
            order, values = ascending(z)
            levels = levels_of_rows(z.size, weights[order])
        if z.size > most:  # closer in the tails, where a line would say least
            share = np.sin(np.linspace(0, np.pi / 2, most)) ** 2
            fewer_levels = levels[0] + (levels[-1] - levels[0]) * share
            of_all_rows = cls(levels, values, infinite)
            return cls(fewer_levels, of_all_rows.quantile(fewer_levels), infinite)
        return cls(levels, values, infinite)

    @classmethod
    def symmetric(
        cls, size: Floats, weights: Floats | None, *, infinite: bool = False
    ) -> QuantileTable:
        """Return the table of ±z, of sizes of z: few rows do not tell the sign apart.

        The i-th of n sizes stands for the coverage i / (n + 1) of an interval ±z.
        """
        half = cls.learn(size, weights, MOST_QUANTILES)
        levels = np.concatenate([(1 - half.levels[::-1]) / 2, (1 + half.levels) / 2])
        values = np.concatenate([-half.values[::-1], half.values])
        return cls(levels, values, infinite)

    def check(self) -> None:
        """Refuse what are no quantiles."""
        p = self.levels
        if p.ndim != 1 or p.shape != self.values.shape or not p.size:
            ascend = False
        else:
            ascend = bool(p[0] > 0 and p[-1] < 1 and (np.diff(p) > 0).all())
        refuse_if(not ascend, "levels of quantiles must ascend between 0 and 1")
        refuse_if((np.diff(self.values) < 0).any(), "quantiles must not descend")

    def quantile(self, levels: Floats) -> Floats:
        """Return quantiles."""
        if not self.infinite:
            return self.within(levels)
        # the next row outwards; what differs by rounding is the same level
        values = np.append(-np.inf, self.values)
        down = np.searchsorted(self.levels, levels + 1e-12, side="right")  # levels
        return np.where(levels < 0.5, values[down], self.upwards(levels))

    def upwards(self, levels: Floats) -> Floats:
        """Return quantiles of what has one side, as radii have: outwards is upwards."""
        if not self.infinite:
            return self.within(levels)
        up = np.searchsorted(self.levels, levels - 1e-12, side="left")  # levels
        return np.asarray(np.append(self.values, np.inf)[up])

    def within(self, levels: Floats) -> Floats:
        """Return quantiles within what was observed, never infinite."""
        return np.interp(levels, self.levels, self.values)

    @cached_property
    def _with_ends(self) -> tuple[Floats, Floats]:
        """Levels from 0 to 1, and the values there."""
        levels = np.concatenate([[0.0], self.levels, [1.0]])
        values = np.concatenate([self.values[:1], self.values, self.values[-1:]])
        return levels, values

    @cached_property
    def mean(self) -> float:
        """The mean."""
        p, q = self._with_ends
        return float(np.diff(p) @ (q[1:] + q[:-1]) / 2)

    @cached_property
    def second_moment(self) -> float:
        """The mean square."""
        p, q = self._with_ends
        # about the mean, so that nothing cancels; the mean of x² from a to b
        a = q[:-1] - self.mean
        b = q[1:] - self.mean
        return float(np.diff(p) @ (a * a + a * b + b * b) / 3) + self.mean**2

    @cached_property
    def mean_difference(self) -> float:
        """The mean of (X − X')⁺ of two draws: the integral of (2p − 1) Q(p)."""
        p, q = self._with_ends
        inner = (p[1:] + p[:-1] - 1) * (q[1:] + q[:-1]) / 2
        return float(np.diff(p) @ (inner + np.diff(p) * np.diff(q) / 6))

    @cached_property
    def _areas(self) -> Floats:
        """The area below the cumulative distribution, up to each value."""
        heights = (self.levels[1:] + self.levels[:-1]) / 2
        return np.append(0.0, np.cumsum(np.diff(self.values) * heights))

    @cached_property
    def _places(self) -> Places:
        """Finds how many values lie below a number, or at it."""
        return Places(self.values)

    def _segment(self, x: Floats, side: str) -> tuple[Ints, Floats]:
        """Return the last value up to x, or -1, and the level there or beyond it."""
        p = self.levels
        q = self.values
        at = self._places.of(x, side=side) - 1
        left = np.clip(at, 0, max(0, q.size - 2))
        right = np.minimum(left + 1, q.size - 1)
        width = q[right] - q[left]
        share = np.divide(x - q[left], width, out=np.zeros(x.shape), where=width > 0)
        return at, p[left] + np.clip(share, 0, 1) * (p[right] - p[left])

    def cdf(self, x: Floats, side: str = "right") -> Floats:
        """Return the probability of what is at most x."""
        at, level = self._segment(x, side)
        level = np.where(at >= self.values.size - 1, 1.0, level)
        return np.where(at < 0, 0.0, level)

    def below(self, x: Floats) -> Floats:
        """Return the probability of what is less than x."""
        return self.cdf(x, "left")

    def crps(self, x: Floats) -> Floats:
        """Return continuous ranked probability scores.

        It is E abs(X − x) − E abs(X − X') / 2, and E abs(X − x) follows from the area
        below the cumulative distribution, up to x.
        """
        area, *_ = self._area(x)
        return np.asarray(2 * area + (self.mean - x) - self.mean_difference)

    def _area(self, x: Floats) -> tuple[Floats, Ints, Floats, Floats]:
        """Return the integral of the cdf up to x, and what it was found from.

        That is the last value up to x (or the first of all), how far x is from it, and
        the cdf at x.
        """
        at, level = self._segment(x, "right")
        before = np.maximum(at, 0)
        is_inside = at < self.values.size - 1
        # beyond the last value the cdf is 1 from there on
        height = np.where(is_inside, (self.levels[before] + level) / 2, 1.0)
        width = np.where(at < 0, 0.0, x - self.values[before])
        area = np.where(at < 0, 0.0, self._areas[before] + width * height)
        return area, before, width, np.where(is_inside, level, 1.0)

    def integrals(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return integrals up to x: of the cdf, of that, and of the cdf's square."""
        # up to each value, where the cdf rises from a to b in each step
        step = np.diff(self.values)
        a = self.levels[:-1]
        b = self.levels[1:]
        squares = np.append(0.0, np.cumsum(step * (a * a + a * b + b * b) / 3))
        of_steps = self._areas[:-1] * step + step**2 * (2 * a + b) / 6
        areas_of_areas = np.append(0.0, np.cumsum(of_steps))

        # and from there to x, where it rises from low to level
        area, before, width, level = self._area(x)
        low = np.where(before < self.levels.size - 1, self.levels[before], 1.0)
        area_of_area = areas_of_areas[before] + self._areas[before] * width
        area_of_area = area_of_area + width**2 * (2 * low + level) / 6
        square = squares[before] + width * (low**2 + low * level + level**2) / 3
        return area, area_of_area, square

    def reflected(self) -> QuantileTable:
        """Return the distribution of −z."""
        return QuantileTable(1 - self.levels[::-1], -self.values[::-1], self.infinite)


@stored(
    tables=many(QuantileTable), edges=floats, n_rows=many(index), dim=optional(index)
)
@dataclass(frozen=True, eq=False)
class ZDistribution:
    """The distribution of z: normal, or one table for each bin of the scale.

    Attributes
    ----------
    tables : tuple of QuantileTable
        One for each bin; none stands for a normal distribution.
    edges : array
        Where bins of the scale are cut.
    n_rows : tuple of int
        Rows behind each table.
    dim : int or None
        Of vectors, the number of their components; tables then are those of radii.
    of : str
        What it is in words, where its tables do not say it.
    """

    tables: tuple[QuantileTable, ...] = ()
    edges: Floats = field(default_factory=lambda: np.empty(0))
    n_rows: tuple[int, ...] = ()
    dim: int | None = None
    of: str = ""

    @classmethod
    def learn(
        cls,
        z: Floats,
        scale: Floats,
        weights: Floats | None,
        n_bins: int,
        dim: int | None = None,
        groups: Ints | None = None,
        *,
        as_it_is: bool = False,
    ) -> ZDistribution:
        """Return the tables of z-scores, by bins of about equally many rows.

        What is noise of few rows is taken out, if they are not to stay as they are;
        radii, which have no middle, would gain nothing.
        """
        edges = quantile_edges(scale, weights, n_bins)
        code = np.searchsorted(edges, scale, side="right")  # halfway between values
        most = MOST_QUANTILES // n_bins
        tables = []
        sizes = []
        for k in range(edges.size + 1):
            rows = np.flatnonzero(code == k)
            w = weights_of(weights, rows)
            z_of_bin = z[rows]
            if not as_it_is and dim is None:
                g = None if groups is None else groups[rows]
                z_of_bin = drawn_to_normal(z_of_bin, w, g)
            tables.append(QuantileTable.learn(z_of_bin, w, most))
            sizes.append(max(1, int(rows.size if w is None else w.sum())))
        return cls(tuple(tables), edges, tuple(sizes), dim)

    def check(self) -> None:
        """Refuse tables that do not fit the bins."""
        n_tables = len(self.tables)
        n_bins = self.edges.size + 1
        lacks_tables = n_tables != (n_bins if n_tables else self.edges.size)
        must = "a distribution must have a table for each bin of the scale"
        refuse_if(lacks_tables, must)
        lacks_sizes = len(self.n_rows) != n_tables
        must = "a distribution must have a number of rows for each table"
        refuse_if(lacks_sizes or self.edges.ndim != 1 or self.dim == 0, must)
        do_not_ascend = (np.diff(self.edges) <= 0).any()
        refuse_if(do_not_ascend, "edges of bins of the scale must ascend")
        if self.dim is not None:
            are_negative = any(table.values[0] < 0 for table in self.tables)
            refuse_if(are_negative, "radii must be at least 0")

    @property
    def words(self) -> str:
        """What it is, in words."""
        if self.of:
            return self.of
        if not self.tables:
            return "normal"
        what = "z-scores" if self.dim is None else "radii"
        kind = "held-out" if self.tables[0].infinite else "cross-validated"
        many = len(self.tables)
        where = f", in {many} bins of the uncertainty" if many > 1 else ""
        return f"empirical: {kind} {what} of {sum(self.n_rows):,} rows{where}"

    @property
    def parts(self) -> tuple[Any, ...]:
        """The tables, or the normal distribution."""
        return self.tables or (Normal(),)

    def codes(self, scale: Floats) -> Ints:
        """Return which table is whose."""
        # halfway between values
        return np.searchsorted(self.edges, scale, side="right")

    def of_rows(self, codes: Ints) -> Iterator[tuple[Any, Ints]]:
        """Yield each table, and the rows that are its own."""
        order = np.argsort(codes, kind="stable")  # whole numbers
        # whole numbers
        ends = np.searchsorted(codes[order], np.arange(1, len(self.parts)))
        yield from zip(self.parts, np.split(order, ends), strict=True)

    def by_table(self, name: str, codes: Ints, values: Floats) -> Floats:
        """Return what a method of each table says of the rows that are its own."""
        if len(self.parts) == 1:
            return np.asarray(getattr(self.parts[0], name)(values))
        results = np.empty(values.shape)
        for table, rows in self.of_rows(codes):
            results[rows] = getattr(table, name)(values[rows])
        return results

    def centre(self, n_rows: int) -> Floats:
        """Return the locations of rows without predictions: 0."""
        return np.zeros(n_rows if self.dim is None else (n_rows, self.dim))

    def quantiles(self, levels: Floats) -> Floats:
        """Return quantiles of z, or of radii, a row for each table.

        Parameters
        ----------
        levels : array of shape (k,)
            Probabilities.

        Returns
        -------
        array of shape (n_tables, k)
        """
        if self.dim is not None and not self.tables:
            radii = np.sqrt(special.chdtri(self.dim, 1 - levels) / self.dim)
            return np.asarray(radii)[None]
        self._warn_of_few(levels)
        if self.dim is not None:
            return np.array([table.upwards(levels) for table in self.tables])
        return np.array([table.quantile(levels) for table in self.parts])

    def _warn_of_few(self, levels: Floats) -> None:
        """Say which levels lie beyond what rows can tell, and how many could."""
        if not self.tables or not levels.size:
            return
        # levels beyond those of which all tables tell quantiles
        lowest = max(float(table.levels[0]) for table in self.tables)
        highest = min(float(table.levels[-1]) for table in self.tables)
        beyond = levels[(levels > highest + 1e-12) | (levels < lowest - 1e-12)]
        if self.dim is not None:
            beyond = beyond[beyond > 0.5]
        if not beyond.size:
            return

        # the rows that would tell the farthest of them
        tail = float(np.minimum(beyond, 1 - beyond).min())
        # of ±z, half as many do
        smallest = min(self.tables, key=lambda table: table.levels.size)
        share = (1 - smallest.levels[-1]) * (min(self.n_rows) + 1)
        needed = math.ceil(round(min(share, 1.0) / tail, 6)) - 1
        effect = "the outermost is taken for them"
        remedy = "fit with more"
        category: type[Warning] = FewRowsWarning
        if self.tables[0].infinite:
            effect = "they are infinite"
            remedy = "hold out more"
            category = InfiniteIntervalWarning
        warn(
            f"Quantiles at the level {number(tail)}, or {number(1 - tail, 6)}, lie "
            f"beyond what {min(self.n_rows)} rows can tell: {effect}. They need "
            f"{needed} rows; {remedy}, or ask for less.",
            category,
            stacklevel=4,
        )
