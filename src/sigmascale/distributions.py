"""Predictive distributions: what a truth, or an error, is likely to be, row by row.

The distribution of z = (error − bias) / scale is normal, or *empirical*: a table of
quantiles of z-scores that no fit has seen, linear between them, in a few bins of the
scale. Of n rows, the i-th z-score stands for the level i / (n + 1). Everything about a
table is exact: mean, spread, cumulative distribution, ranked score, with bounds and
without. Of vectors the table holds radii, |error| / (scale √d), and directions are
uniform.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy import special

from ._support.checks import (
    Floats,
    Ints,
    check_count,
    check_fraction,
    check_numbers,
    check_same_length,
    rng_from,
)
from ._support.notices import warn
from ._support.render import html_table
from ._support.text import quoted
from .additive import quantile_edges
from .exceptions import FewRowsWarning, InfiniteIntervalWarning, InvalidInputError
from .persistence import flag, floats, index, many, optional, refuse_if, stored

if TYPE_CHECKING:
    from .predictions import Predictions

MOST_QUANTILES = 1001  # of all tables of a distribution together
N_RADII = 256  # radii that stand for the distribution of them, in the energy score
Bounds = tuple[float | None, float | None]


# -- the distribution of z -------------------------------------------------------------


class Normal:
    """The standard normal distribution, with the methods of a table."""

    mean, second_moment, mean_difference = 0.0, 1.0, 1 / math.sqrt(math.pi)

    def quantile(self, levels: Floats) -> Floats:
        """Return quantiles."""
        return np.asarray(special.ndtri(levels))

    def cdf(self, x: Floats) -> Floats:
        """Return the probability of what is at most x."""
        return np.asarray(special.ndtr(x))

    within, below = quantile, cdf

    def crps(self, x: Floats) -> Floats:
        """Return continuous ranked probability scores."""
        # 2 Φ(x) − 1 is erf(x / √2), which does not cancel near 0
        spread = x * special.erf(x / np.sqrt(2)) + 2 * _density(x)
        return np.asarray(spread - self.mean_difference)

    def integrals(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return integrals up to x: of the cdf, of that, and of the cdf's square."""
        p, density = special.ndtr(x), _density(x)
        first = x * p + density
        second = ((x * x + 1) * p + x * density) / 2
        both = special.ndtr(x * np.sqrt(2)) / np.sqrt(np.pi)
        return first, second, x * p**2 + 2 * density * p - both

    def reflected(self) -> Normal:
        """Return the distribution of −z."""
        return self


def _density(x: Floats) -> Floats:
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
        order = np.argsort(z, kind="stable")
        values = z[order]
        if weights is None:
            levels = np.arange(1.0, z.size + 1) / (z.size + 1)
        else:
            ends = np.cumsum(weights[order])
            levels = (ends - weights[order] / 2 + 0.5) / (ends[-1] + 1)
        if z.size > most:  # closer in the tails, where a line would say least
            part = np.sin(np.linspace(0, np.pi / 2, most)) ** 2
            wanted = levels[0] + (levels[-1] - levels[0]) * part
            new = cls(levels, values, infinite)
            values, levels = new.quantile(wanted), wanted
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
        p, q = self.levels, self.values
        wrong: Any = p.ndim != 1 or p.shape != q.shape or not p.size
        wrong = wrong or p[0] <= 0 or p[-1] >= 1 or (np.diff(p) <= 0).any()
        refuse_if(wrong, "levels of quantiles must ascend between 0 and 1")
        refuse_if((np.diff(q) < 0).any(), "quantiles must not descend")

    def quantile(self, levels: Floats) -> Floats:
        """Return quantiles."""
        if not self.infinite:
            return self.within(levels)
        # the next row outwards; what differs by rounding is the same level
        q = np.concatenate([[-np.inf], self.values, [np.inf]])
        down = np.searchsorted(self.levels, levels + 1e-12, side="right")
        up = np.searchsorted(self.levels, levels - 1e-12, side="left") + 1
        return np.asarray(q[np.where(levels < 0.5, down, up)])

    def within(self, levels: Floats) -> Floats:
        """Return quantiles within what was observed, never infinite."""
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
    def second_moment(self) -> float:
        """The mean square."""
        p, q = self._with_ends
        a, b = q[:-1] - self.mean, q[1:] - self.mean
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

    def _segment(self, x: Floats, side: Any) -> tuple[Ints, Floats]:
        """Return the last value up to x, or -1, and the level there or beyond it."""
        p, q = self.levels, self.values
        at = np.searchsorted(q, x, side=side) - 1
        left = np.clip(at, 0, max(0, q.size - 2))
        right = np.minimum(left + 1, q.size - 1)
        width = q[right] - q[left]
        share = np.divide(x - q[left], width, out=np.zeros(x.shape), where=width > 0)
        return at, p[left] + np.clip(share, 0, 1) * (p[right] - p[left])

    def cdf(self, x: Floats, side: str = "right") -> Floats:
        """Return the probability of what is at most x."""
        at, level = self._segment(x, side)
        return np.where(at < 0, 0.0, np.where(at >= self.values.size - 1, 1.0, level))

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
        """Return the integral of the cdf up to x, and what it was found from."""
        at, level = self._segment(x, "right")
        first, inside = np.maximum(at, 0), at < self.values.size - 1
        # beyond the last value the cdf is 1 from there on
        height = np.where(inside, (self.levels[first] + level) / 2, 1.0)
        width = np.where(at < 0, 0.0, x - self.values[first])
        area = np.where(at < 0, 0.0, self._areas[first] + width * height)
        return area, first, width, np.where(inside, level, 1.0)

    def integrals(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return integrals up to x: of the cdf, of that, and of the cdf's square."""
        p, step = self.levels, np.diff(self.values)
        a, b = p[:-1], p[1:]
        squares = np.append(0.0, np.cumsum(step * (a * a + a * b + b * b) / 3))
        inner = self._areas[:-1] * step + step**2 * (2 * a + b) / 6
        seconds = np.append(0.0, np.cumsum(inner))
        area, first, width, level = self._area(x)
        low = np.where(first < p.size - 1, p[first], 1.0)
        second = seconds[first] + self._areas[first] * width
        second = second + width**2 * (2 * low + level) / 6
        square = squares[first] + width * (low**2 + low * level + level**2) / 3
        return area, second, square

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
    """

    tables: tuple[QuantileTable, ...] = ()
    edges: Floats = field(default_factory=lambda: np.empty(0))
    n_rows: tuple[int, ...] = ()
    dim: int | None = None

    @classmethod
    def learn(
        cls,
        z: Floats,
        scale: Floats,
        weights: Floats | None,
        n_bins: int,
        dim: int | None = None,
    ) -> ZDistribution:
        """Return the tables of z-scores, by bins of about equally many rows."""
        edges = quantile_edges(scale, weights, n_bins)
        code = np.searchsorted(edges, scale, side="right")
        tables, sizes = [], []
        for k in range(edges.size + 1):
            own = np.flatnonzero(code == k)
            w = None if weights is None else weights[own]
            tables.append(QuantileTable.learn(z[own], w, MOST_QUANTILES // n_bins))
            sizes.append(max(1, int(own.size if w is None else w.sum())))
        return cls(tuple(tables), edges, tuple(sizes), dim)

    def check(self) -> None:
        """Refuse tables that do not fit the bins."""
        n_tables = len(self.tables)
        wrong: Any = n_tables != (self.edges.size + 1 if n_tables else self.edges.size)
        refuse_if(wrong, "a distribution must have a table for each bin of the scale")
        wrong = len(self.n_rows) != n_tables or self.edges.ndim != 1 or self.dim == 0
        refuse_if(wrong, "a distribution must have a number of rows for each table")
        wrong = (np.diff(self.edges) <= 0).any()
        refuse_if(wrong, "edges of bins of the scale must ascend")
        wrong = self.dim is not None and any(x.values[0] < 0 for x in self.tables)
        refuse_if(wrong, "radii must be at least 0")

    @property
    def words(self) -> str:
        """What it is, in words."""
        if not self.tables:
            return "normal"
        what = "z-scores" if self.dim is None else "radii"
        rows = "rows held out" if self.tables[0].infinite else "rows out of fold"
        many = len(self.tables)
        where = f", in {many} bins of the uncertainty" if many > 1 else ""
        return f"empirical: the {what} of {sum(self.n_rows)} {rows}{where}"

    @property
    def parts(self) -> tuple[Any, ...]:
        """The tables, or the normal distribution."""
        return self.tables or (Normal(),)

    def codes(self, scale: Floats) -> Ints:
        """Return which table is whose."""
        return np.searchsorted(self.edges, scale, side="right")

    def of_rows(self, codes: Ints) -> Iterator[tuple[Any, Ints]]:
        """Yield each table, and the rows that are its own."""
        for k, part in enumerate(self.parts):
            yield part, np.flatnonzero(codes == k)

    def by_table(self, name: str, codes: Ints, values: Floats) -> Floats:
        """Return what a method of each table says of the rows that are its own."""
        if len(self.parts) == 1:
            return np.asarray(getattr(self.parts[0], name)(values))
        found = np.empty(values.shape)
        for part, own in self.of_rows(codes):
            found[own] = getattr(part, name)(values[own])
        return found

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
        return np.array([each.quantile(levels) for each in self.parts])

    def _warn_of_few(self, levels: Floats) -> None:
        """Say which levels lie beyond what rows can tell, and how many could."""
        if not self.tables or not levels.size:
            return
        low = min(float(each.levels[-1]) for each in self.tables)
        high = max(float(each.levels[0]) for each in self.tables)
        beyond = levels[(levels > low + 1e-12) | (levels < high - 1e-12)]
        if self.dim is not None:
            beyond = beyond[beyond > 0.5]
        if not beyond.size:
            return
        tail = float(np.minimum(beyond, 1 - beyond).min())
        # of ±z, half as many do
        first = min(self.tables, key=lambda each: each.levels.size)
        share = (1 - first.levels[-1]) * (min(self.n_rows) + 1)
        needed = math.ceil(round(min(share, 1.0) / tail, 6)) - 1
        infinite = self.tables[0].infinite
        what = "they are infinite" if infinite else "the outermost is taken for them"
        more = "hold out more" if infinite else "fit with more"
        warn(
            f"Quantiles at the level {tail:.3g}, or {1 - tail:.6g}, lie beyond what "
            f"{min(self.n_rows)} rows can tell: {what}. They need {needed} rows; "
            f"{more}, or ask for less.",
            InfiniteIntervalWarning if infinite else FewRowsWarning,
            stacklevel=4,
        )


# -- the distributions of rows ---------------------------------------------------------


class Distributions:
    """Predictive distributions of several rows: location + scale × z.

    :meth:`sigmascale.Recalibrator.apply` makes them, as the `distributions` of its
    predictions. They are distributions of the truth, or of the error where predictions
    are not known. Of vectors they are those of points about the prediction, in all
    directions alike.

    Parameters
    ----------
    location : array-like of shape (n,) or (n, d)
        Predictions, with their bias corrected.
    scale : array-like of shape (n,)
        Recalibrated standard uncertainties, positive.
    z : ZDistribution, optional
        The distribution of (truth − location) / scale; normal if not given.
    bounds : pair of float or None, default (None, None)
        What the truth cannot be below, and above. Quantiles, intervals and draws stay
        within; CRPS and PIT are those of the censored distribution, which has the
        probability of what lies beyond a bound at the bound.

    Notes
    -----
    `mean` and `std` are those of the distribution. An empirical distribution may be
    skewed, so that its mean is not the prediction; the standard uncertainty of
    `predict` is the root mean square of the error about the prediction. Of rows held
    out, quantiles beyond the outermost level are infinite, while CRPS, mean and std use
    the range that was observed.

    Examples
    --------
    >>> import sigmascale as ss
    >>> d = ss.Distributions([1.0, 2.0], [0.1, 0.2])
    >>> d.interval(0.9).round(2)
    array([[0.84, 1.16],
           [1.67, 2.33]])
    >>> d[1].crps([2.1]).round(4)
    array([0.0663])
    """

    def __init__(
        self,
        location: Any,
        scale: Any,
        z: ZDistribution | None = None,
        *,
        bounds: Bounds = (None, None),
    ) -> None:
        self.location: Floats = check_numbers(location, "location")
        self.scale: Floats = check_numbers(scale, "scale")
        check_same_length("location", self.location, "scale", self.scale)
        if self.scale.ndim != 1 or not (self.scale > 0).all():
            msg = "`scale` must be one positive number a row."
            raise InvalidInputError(msg)
        dim = self.location.shape[1] if self.location.ndim == 2 else None
        self.z = ZDistribution(dim=dim) if z is None else z
        self.bounds = check_bounds(bounds)
        self.fitted_share = 0.0

    @classmethod
    def of(
        cls,
        location: Floats,
        scale: Floats,
        z: ZDistribution,
        bounds: Bounds = (None, None),
        fitted_share: float = 0.0,
    ) -> Distributions:
        """Return distributions of what is known to be right."""
        new = cls.__new__(cls)
        new.location, new.scale, new.z = location, scale, z
        new.bounds, new.fitted_share = bounds, fitted_share
        return new

    @classmethod
    def normal(cls, p: Predictions) -> Distributions:
        """Return what raw uncertainties claim: normal errors, with u their spread.

        Parameters
        ----------
        p : Predictions
            Without predictions, distributions are those of errors, about 0.
        """
        z = ZDistribution(dim=p.components)
        location = z.centre(p.n_rows) if p.y_pred is None else p.y_pred
        return cls.of(location, p.y_std, z)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.scale.size

    def __getitem__(self, rows: Any) -> Distributions:
        """Return the distributions of some rows."""
        which = np.atleast_1d(np.arange(len(self))[rows])
        location, scale = self.location[which], self.scale[which]
        return Distributions.of(location, scale, self.z, self.bounds, self.fitted_share)

    @cached_property
    def _codes(self) -> Ints:
        return self.z.codes(self.scale)

    # -- in words ----------------------------------------------------------------------

    def __repr__(self) -> str:
        """Return what there is, in words."""
        vectors = "" if self.z.dim is None else f" of {self.z.dim} components"
        return f"Distributions of {len(self)} rows{vectors}; z is {self.z.words}."

    def _repr_html_(self) -> str:
        rows = np.unique(np.linspace(0, len(self) - 1, min(len(self), 10)).astype(int))
        some = self[rows]
        if self.z.dim is None:
            levels = (0.05, 0.25, 0.5, 0.75, 0.95)
            header = ["row", "mean", "std", *(f"{100 * p:g} %" for p in levels)]
            numbers = np.column_stack([some.mean, some.std, some.quantile(levels)])
        else:
            header = ["row", "radius that holds 50 %", "90 %"]
            numbers = np.column_stack([some.radius(0.5), some.radius(0.9)])
        lines = [
            [str(row), *(f"{x:.4g}" for x in line)]
            for row, line in zip(rows, numbers, strict=True)
        ]
        return f"<p>{self!r}</p>{html_table(header, lines)}"

    # -- numbers -----------------------------------------------------------------------

    @property
    def mean(self) -> Floats:
        """The mean of each distribution; of vectors the prediction."""
        if self.z.dim is not None:
            return self.location
        return self._moments()[0]

    @property
    def std(self) -> Floats:
        """The standard deviation of each distribution, about its mean.

        Of vectors it is the root of the mean variance of components.
        """
        return self._moments()[1]

    def _moments(self) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of each row, within bounds."""
        if self.z.dim is not None and not self.z.tables:
            return self.location, self.scale
        first = np.array([each.mean for each in self.z.parts])[self._codes]
        square = np.array([each.second_moment for each in self.z.parts])[self._codes]
        if self.z.dim is not None:
            return self.location, self.scale * np.sqrt(square)
        for sign, bound in ((1.0, self.bounds[0]), (-1.0, self.bounds[1])):
            if bound is not None:  # of what lies beyond, all moves to the bound
                at = sign * self._standardised(np.full(len(self), bound))
                area, second, _ = self._integrals(at, sign)
                first = first + sign * area
                square = square + 2 * at * area - 2 * second
        spread = np.sqrt(np.maximum(square - first**2, 0.0))
        return self.location + self.scale * first, self.scale * spread

    def quantile(self, levels: Any) -> Floats:
        """Return quantiles.

        Parameters
        ----------
        levels : float or array-like of shape (k,)
            Probabilities between 0 and 1. Beyond what rows can tell, the outermost
            z-score is taken, with a warning; of rows held out, quantiles are infinite
            there.

        Returns
        -------
        array of shape (n,), or (n, k)
        """
        self._needs_sign("quantile", "radius")
        p = check_levels(levels)
        z = self.z.quantiles(np.atleast_1d(p))[self._codes]
        found = self.location[:, None] + self.scale[:, None] * z
        found = np.clip(found, *self.bounds) if any_bound(self.bounds) else found
        return np.asarray(found if p.ndim else found[:, 0])

    def interval(self, coverage: float = 0.9) -> Floats:
        """Return the central limits that hold the truth with some probability.

        Parameters
        ----------
        coverage : float, default 0.9
            The probability.

        Returns
        -------
        array of shape (n, 2)
        """
        self._needs_sign("interval", "radius")
        share = check_coverage(coverage)
        return self.quantile([(1 - share) / 2, (1 + share) / 2])

    def cdf(self, y: Any) -> Floats:
        """Return the probability of what is at most y.

        Parameters
        ----------
        y : array-like of shape (n,)
            A value of each row.

        Returns
        -------
        array of shape (n,)
        """
        return self._cdf(self._values(y, "cdf", "contains"), "cdf")

    def pit(self, y: Any) -> Floats:
        """Return the probability integral transform of truths: uniform, if all is well.

        Where a value has a probability of its own, as errors of exactly 0 or truths at
        a bound have, it is the middle of the step. Of vectors it is the probability of
        the ball that reaches the truth.

        Parameters
        ----------
        y : array-like of shape (n,) or (n, d)
            The truth of each row.

        Returns
        -------
        array of shape (n,)
        """
        if self.z.dim is not None:
            r = self._distance(y) / self.scale
            if not self.z.tables:
                return np.asarray(special.gammainc(self.z.dim / 2, r**2 / 2))
            r = r / np.sqrt(self.z.dim)
            both = self._by_table("cdf", r) + self._by_table("below", r)
            return np.asarray(both / 2)
        values = self._values(y, "pit", "contains")
        return np.asarray((self._cdf(values, "cdf") + self._cdf(values, "below")) / 2)

    def crps(self, y: Any) -> Floats:
        """Return the continuous ranked probability score of each row; less is better.

        It is exact, for tables and with bounds, too.

        Parameters
        ----------
        y : array-like of shape (n,)
            The truth of each row.

        Returns
        -------
        array of shape (n,)
        """
        values = self._values(y, "crps", "energy_score")
        if not any_bound(self.bounds):
            return self.scale * self._by_table("crps", self._standardised(values))
        inside = np.clip(values, *self.bounds)
        score = self._by_table("crps", self._standardised(inside))
        for sign, bound in ((1.0, self.bounds[0]), (-1.0, self.bounds[1])):
            if bound is not None:  # what lies beyond the bound is no longer missed
                at = sign * self._standardised(np.full(len(self), bound))
                score = score - self._integrals(at, sign)[2]
        return self.scale * score + np.abs(values - inside)

    def sample(self, n: int, *, rng: Any = 0) -> Floats:
        """Return random draws.

        Parameters
        ----------
        n : int
            How many of each row.
        rng : int or Generator, default 0
            Seed.

        Returns
        -------
        array of shape (n_rows, n), or (n_rows, n, d) of vectors
        """
        generator, count = rng_from(rng), check_count(n, "n")
        p = generator.random((len(self), count))
        if self.z.dim is not None:
            directions = generator.normal(size=(len(self), count, self.z.dim))
            if self.z.tables:
                directions /= np.linalg.norm(directions, axis=2, keepdims=True)
                radii = np.sqrt(self.z.dim) * self._by_table("within", p)
                directions *= radii[:, :, None]
            return self.location[:, None] + self.scale[:, None, None] * directions
        draws = self._by_table("within", p)
        found = self.location[:, None] + self.scale[:, None] * draws
        return np.clip(found, *self.bounds) if any_bound(self.bounds) else found

    # -- vectors -----------------------------------------------------------------------

    def radius(self, coverage: float = 0.9) -> Floats:
        """Return the radius of the ball that holds the truth with some probability.

        Parameters
        ----------
        coverage : float, default 0.9
            The probability.

        Returns
        -------
        array of shape (n,)

        Examples
        --------
        >>> import sigmascale as ss
        >>> d = ss.Distributions([[0.0, 0.0, 0.0]], [1.0])
        >>> d.radius(0.9).round(2)
        array([2.5])
        """
        dim = self._needs_vectors("radius", "interval")
        share = check_coverage(coverage)
        radii = self.z.quantiles(np.array([share]))[self._codes, 0]
        return np.asarray(self.scale * np.sqrt(dim) * radii)

    def contains(self, y: Any, coverage: float = 0.9) -> Any:
        """Return whether the balls hold the truths.

        Parameters
        ----------
        y : array-like of shape (n, d)
            The truth of each row.
        coverage : float, default 0.9
            The probability that a ball claims.

        Returns
        -------
        array of bool, shape (n,)
        """
        radii = self.radius(coverage)
        return self._distance(y) <= radii

    def energy_score(self, y: Any) -> Floats:
        """Return the energy score of each row; less is better.

        It is E‖X − y‖ − E‖X − X'‖ / 2, for independent draws X and X'.
        Of normal distributions it is exact. Of a table the mean over directions is
        exact, and that over radii is one over 256 quantiles.

        Parameters
        ----------
        y : array-like of shape (n, d)
            The truth of each row.

        Returns
        -------
        array of shape (n,)

        References
        ----------
        T. Gneiting and A. E. Raftery, J. Am. Stat. Assoc. 102, 359 (2007),
        doi:10.1198/016214506000001437
        """
        dim = self._needs_vectors("energy_score", "crps")
        r = self._distance(y) / self.scale
        if not self.z.tables:
            # of the normal distribution of d components, by its moments
            size = np.exp(special.gammaln((dim + 1) / 2) - special.gammaln(dim / 2))
            apart = np.sqrt(2) * size * special.hyp1f1(-0.5, dim / 2, -(r**2) / 2)
            return np.asarray(self.scale * (apart - size))
        levels = (np.arange(N_RADII) + 0.5) / N_RADII
        score = np.empty(len(self))
        for table, own in self.z.of_rows(self._codes):
            radii = np.sqrt(dim) * table.within(levels)
            between_draws = _mean_distance(radii[:, None], radii, dim).mean()
            for rows in np.array_split(own, max(1, own.size // 2**12)):
                apart = _mean_distance(r[rows, None], radii, dim).mean(axis=1)
                score[rows] = apart - between_draws / 2
        return self.scale * score

    # -- parts -------------------------------------------------------------------------

    def _by_table(self, name: str, values: Floats) -> Floats:
        return self.z.by_table(name, self._codes, values)

    def _integrals(self, at: Floats, sign: float) -> tuple[Floats, Floats, Floats]:
        """Return integrals of the cdf of z, or of −z, up to a number of each row."""
        found = np.empty((3, len(self)))
        for part, own in self.z.of_rows(self._codes):
            part = part if sign > 0 else part.reflected()
            found[:, own] = part.integrals(at[own])
        return found[0], found[1], found[2]

    def _cdf(self, y: Floats, name: str) -> Floats:
        """Return the probability of what is at most y, or below it, within bounds."""
        found = self._by_table(name, self._standardised(y))
        low, high = self.bounds
        # at a bound, all that lies beyond it
        if low is not None:
            found = np.where(y < low if name == "cdf" else y <= low, 0.0, found)
        if high is not None:
            found = np.where(y >= high if name == "cdf" else y > high, 1.0, found)
        return found

    def _standardised(self, y: Floats) -> Floats:
        return np.asarray((y - self.location) / self.scale)

    def _values(self, y: Any, name: str, instead: str) -> Floats:
        """Return one number a row, for a method that needs a sign."""
        self._needs_sign(name, instead)
        values = check_numbers(np.atleast_1d(np.asarray(y)), "y")
        check_same_length("location", self.location, "y", values)
        if values.ndim != 1:
            msg = f"`y` must have one number a row; found shape {values.shape}."
            raise InvalidInputError(msg)
        return values

    def _distance(self, y: Any) -> Floats:
        """Return the distance of truths from predictions."""
        values = check_numbers(y, "y")
        if values.shape != self.location.shape:
            msg = (
                f"`y` must have the shape {self.location.shape} of the predictions; "
                f"found {values.shape}."
            )
            raise InvalidInputError(msg)
        return np.asarray(np.linalg.norm(values - self.location, axis=1))

    def _needs_sign(self, name: str, instead: str) -> None:
        if self.z.dim is not None:
            _refuse(f"`{name}` needs numbers, as vectors have no sign. Use {instead}.")

    def _needs_vectors(self, name: str, instead: str) -> int:
        if self.z.dim is None:
            _refuse(f"`{name}` is for vectors. Of numbers, use {instead}.")
        return self.z.dim


def _mean_distance(r: Floats, radius: Floats, dim: int) -> Floats:
    """Return the mean distance of a point at r from those on a sphere about 0."""
    far = np.maximum(r, radius)
    share = np.divide(
        np.minimum(r, radius), far, out=np.zeros(far.shape), where=far > 0
    )
    if dim == 3:
        return far * (1 + share**2 / 3)
    return np.asarray(far * special.hyp2f1(-0.5, -(dim - 1) / 2, dim / 2, share**2))


def _refuse(words: str) -> NoReturn:
    raise InvalidInputError(words, "vectors")


def any_bound(bounds: Bounds) -> bool:
    """Return whether there is a bound."""
    return bounds[0] is not None or bounds[1] is not None


def check_bounds(bounds: Any) -> Bounds:
    """Return what a truth cannot be below and above; None where there is no bound."""
    if bounds is None:
        return None, None
    pair = tuple(bounds) if isinstance(bounds, (tuple, list)) else ()
    numbers = [
        each
        for each in pair
        if isinstance(each, (int, float, np.number)) and np.isfinite(each)
    ]
    none = [each for each in pair if each is None]
    if len(pair) != 2 or len(numbers) + len(none) != 2 or sorted(numbers) != numbers:
        msg = (
            "`bounds` must be a pair such as (0, None): the lowest and the highest "
            f"value a truth can have, None without one; found {quoted(bounds)}."
        )
        raise InvalidInputError(msg)
    low, high = (None if each is None else float(each) for each in pair)
    return low, high


def check_levels(levels: Any) -> Floats:
    """Return probabilities between 0 and 1, one or several."""
    p = np.asarray(levels, dtype=np.float64)
    if p.ndim > 1 or not p.size or not ((p > 0) & (p < 1)).all():
        msg = f"`levels` must lie between 0 and 1; found {quoted(levels)}."
        raise InvalidInputError(msg)
    return p


def check_coverage(coverage: Any) -> float:
    """Return a share between 0 and 1, as it was written.

    >>> check_coverage(np.float32(0.9))
    0.9
    """
    check_fraction(coverage, "coverage")
    share = float(str(coverage))
    if not 1e-7 <= share <= 1 - 1e-7:  # no set of rows tells less
        msg = (
            "`coverage` must lie between 0 and 1, such as 0.9; found "
            f"{quoted(coverage)}."
        )
        raise InvalidInputError(msg)
    return share
