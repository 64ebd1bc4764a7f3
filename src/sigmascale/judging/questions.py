"""What is asked of rows: are predictions unbiased, is u right, do intervals hold.

Every question takes one number of each row, and tells of some of the rows how far they
are *off*:

    SizeOfU    z²                the logarithm of the factor that u wants
    Bias       z                 its mean
    Coverage   is it held?       the logarithm of the factor that intervals want

All three follow one protocol (:class:`Question`), so that parts, runs and words know no
more of them than is said here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from .._support.checks import Bools, Floats, Ints
from .._support.notices import quiet
from ..distributions import Distributions
from ..predictions import Predictions
from ..scores.intervals import Mean, renumbered, size_interval, sums_of
from ..scores.student import StudentProfile
from .variables import Variable

FEWEST = 20  # rows, or groups, below which nothing can be told
CAP = 12.0  # times the mean; of larger z², so much is compared
ALIKE = 0.05  # chance by which distributions that are alike look as different
NO_HEAVIER = 2.0  # twice the log-likelihood that tails may lose which are no heavier
ROWS_THAT_TELL_TAILS = 8000  # rows that tell whether they are
BIAS_COSTS = 4 / 3  # a bias of so many times (tolerance − 1) u costs as much as u does
STRETCH = np.geomspace(0.02, 50.0, 161)  # factors of a width that are looked at
Triple = tuple[Floats, Floats, Floats]


@dataclass(frozen=True, eq=False)
class Values:
    """The rows that are judged, and what is made of them once.

    Attributes
    ----------
    rows : Predictions
        The rows, in canonical order.
    level : float
        The share of errors that the intervals claim to hold.
    """

    rows: Predictions
    level: float

    @cached_property
    def w(self) -> Floats:
        """The weight of each row."""
        weights = self.rows.weights
        return np.ones(self.rows.n_rows) if weights is None else weights

    @property
    def groups(self) -> Ints | None:
        """The number of the group of each row."""
        return self.rows.groups

    @cached_property
    def z2(self) -> Floats:
        """The squared z-scores; of vectors, the mean over components."""
        return self.rows.z2

    @cached_property
    def z(self) -> Floats:
        """The z-scores; 0 of vectors, which have no sign."""
        rows = self.rows
        return np.zeros(rows.n_rows) if rows.is_vector else rows.z

    @cached_property
    def mean(self) -> float:
        """The mean of z²."""
        return self.rows.mean(self.z2)

    @cached_property
    def n_units(self) -> float:
        """How many independent rows, or groups, there are in effect."""
        of_units = self.w
        if self.groups is not None:
            of_units = sums_of(self.groups, self.w)
        return float(of_units.sum() ** 2 / (of_units @ of_units))

    @property
    def enough(self) -> bool:
        """Whether anything can be told."""
        return self.n_units >= FEWEST and self.mean > 0

    @cached_property
    def stretch(self) -> Floats:
        """How far errors are from the middle of intervals, in half widths.

        Infinite intervals, of which rows held out are too few, hold anything.
        """
        rows = self.rows
        with quiet():  # of levels beyond the rows of a table
            given = rows.distributions or Distributions.normal(rows)
            if rows.is_vector:
                lengths: Floats = np.sqrt(rows.squared_error * rows.dim)
                return lengths / np.maximum(given.radius(self.level), 1e-300)
            low, high = given.interval(self.level).T
        is_finite = np.isfinite(low) & np.isfinite(high)
        low, high = (np.where(is_finite, x, 0.0) for x in (low, high))
        distances = np.abs(rows.target - (low + high) / 2)
        stretch = 2 * distances / np.maximum(high - low, 1e-300)
        return np.where(is_finite, stretch, 0.0)

    @cached_property
    def capped(self) -> Floats:
        """The squared z-scores without what exceeds a cap."""
        return np.minimum(self.z2, CAP * self.mean)

    @cached_property
    def held(self) -> Floats:
        """Whether intervals hold each error that are stretched to hold as they claim.

        What is equal but for its last bits, as in another unit, is equal.
        """
        reach = float(np.quantile(self.stretch, self.level))
        return (self.stretch <= reach * (1 + 1e-9)).astype(np.float64)

    @cached_property
    def mean_z(self) -> Mean:
        """The mean of z."""
        return Mean.of(self.z, self.groups, self.rows.weights)

    @cached_property
    def mean_held(self) -> Mean:
        """The mean of what is held."""
        return Mean.of(self.held, self.groups, self.rows.weights)

    @cached_property
    def columns(self) -> Floats:
        """The columns of which the search takes sums: x and x² of each question."""
        x, z = self.capped, self.z
        return np.column_stack([x, x * x, z, z * z, self.held])

    @cached_property
    def _sums(self) -> dict[int, Floats]:
        return {}

    def by_bin(self, v: Variable) -> Floats:
        """Return the sums of all columns, and of z², by the bins of a variable."""
        if id(v) not in self._sums:
            sums = [v.sums(x) for x in self.columns.T]
            z2 = v.sums(self.z2) if self.rows.is_vector else sums[3]
            self._sums[id(v)] = np.column_stack([*sums, z2])
        return self._sums[id(v)]

    @cached_property
    def stretch_codes(self) -> Ints:
        """Which of the factors `STRETCH` each row needs to be held."""
        return np.searchsorted(STRETCH, self.stretch)

    def known_tails(self, inside: Bools) -> float:
        """Return the fewest degrees of freedom that the rest of the rows leave.

        They tell how heavy tails may be if the distributions of z are alike but for
        their scale, and the tails of the rows no heavier. A sample of rows tells it.
        """
        from scipy import stats  # to import it takes longer than to judge few rows

        step = -(-inside.size // ROWS_THAT_TELL_TAILS)
        sizes = np.sqrt(self.z2[::step]) if self.rows.is_vector else self.z[::step]
        within = inside[::step]
        here, rest = sizes[within], sizes[~within]
        if min(here.size, rest.size) < FEWEST:
            return 0.0
        units = [x / max(float(np.abs(x).mean()), 1e-300) for x in (here, rest)]
        if stats.ks_2samp(*units, method="asymp").pvalue <= ALIKE:
            return 0.0
        known, own = (
            StudentProfile.of(rest**2, rest.size),
            StudentProfile.of(here**2, here.size),
        )
        if known is None or own is None:
            return 0.0
        least = known.heaviest
        return least if own.lost_by(least) <= NO_HEAVIER else 0.0


@dataclass(frozen=True)
class Whole:
    """How far all rows are off.

    Attributes
    ----------
    off, low, high : float
        The estimate, and its limits.
    down, up : float
        The distances of limits that those of regions add to their own.
    tail : float
        What upper limits add for rarer, larger errors to come.
    half_share : float
        Of coverage: by how much the share held may differ from the claim by chance.
    """

    off: float
    low: float
    high: float
    down: float
    up: float
    tail: float = 0.0
    half_share: float = 0.0


class Question:
    """What every question knows; off is a logarithm of a factor unless it says so."""

    first = 0  # of the columns of `Values`
    sign = 1  # −1 where a larger column is a smaller factor
    behind = 0.0  # by which its differences count less in the search, in spreads
    share_of_all = 0.025  # of the error rate, that the limits of all rows take

    def bound(self, tolerance: float) -> float:
        """Return how far off rows may be."""
        return math.log(tolerance)

    def told(self, off: float) -> float:
        """Return how far off rows are, in the unit that people read."""
        return math.exp(off) if off < 600 else math.inf

    def moments(self, x: Floats, xx: Floats, n: Floats, mean: Floats) -> Triple:
        """Return the centre, the own relative variance and the unit of the overall.

        `x` and `xx` are sums of the two columns over `n` rows; `mean` is the first
        column's over all rows.
        """
        raise NotImplementedError

    def whole(self, values: Values, level: float) -> Whole:
        """Return how far all rows are off, with an interval of a level."""
        raise NotImplementedError

    def absolute(
        self, values: Values, v: Variable, sums: Floats, relative: Triple, whole: Whole
    ) -> Triple:
        """Return how far regions are off, with limits, from how they differ.

        `sums` are those by bin (:meth:`Values.by_bin`); `relative` the difference of
        each region from the rest of the rows, with its limits.
        """
        raise NotImplementedError

    def own_limits(
        self, values: Values, inside: Bools, share: float, level: float
    ) -> tuple[float, float]:
        """Return limits of some rows that do not rest on the shape of others."""
        raise NotImplementedError


class SizeOfU(Question):
    """Is the size of u right? Off is ln sqrt ⟨Z²⟩, the logarithm of a factor."""

    first, share_of_all = 0, 0.15

    def moments(self, x: Floats, xx: Floats, n: Floats, mean: Floats) -> Triple:
        """Return ln ⟨x⟩; rows without errors count as if they had half the mean."""
        x = np.maximum(x, 0.5 * mean)
        return np.log(x / n), xx * n / (x * x) - 1, mean * mean

    def whole(self, values: Values, level: float) -> Whole:
        """Return the limits of capped z², or those of z² where they reach farther."""
        groups, weights = values.groups, values.rows.weights
        size = size_interval(values.z2, level, groups, weights)
        capped = Mean.of(values.capped, groups, weights).interval(level, skewed=True)
        down = math.log(capped.value / max(min(capped.low, size.low), 1e-300)) / 2
        up = math.log(max(size.likely, capped.high) / capped.value) / 2
        tail = 0.0
        if math.isfinite(size.likely):
            tail = max(0.0, half_log(size.high) - half_log(size.likely))
        low, high = half_log(size.low), half_log(size.high)
        return Whole(half_log(size.mean), low, high, down, up, tail)

    def absolute(
        self, values: Values, v: Variable, sums: Floats, relative: Triple, whole: Whole
    ) -> Triple:
        """Return the factors of u: relative ones with those of all rows."""
        off, low, high = relative
        share, n = v.shares, v.summed(v.sizes)

        def of_all(x: Floats) -> Floats:  # ln m_in / m_out -> ln m_in / m_all, halved
            return np.asarray(-np.log(share + (1 - share) * np.exp(-x)) / 2)

        centre = np.log(np.maximum(v.summed(sums[:, 0]), 1e-300) / n) / 2
        value = np.log(np.maximum(v.summed(sums[:, 5]), 1e-300) / n) / 2
        with np.errstate(over="ignore"):
            down, up = of_all(off) - of_all(low), of_all(high) - of_all(off)
        lower = np.minimum(centre - np.hypot(down, whole.down), value)
        upper = np.maximum(centre + np.hypot(up, whole.up) + whole.tail, value)
        return value, lower, upper

    def own_limits(
        self, values: Values, inside: Bools, share: float, level: float
    ) -> tuple[float, float]:
        """Return limits that know what heavy tails hide."""
        weights = values.rows.weights
        size = size_interval(
            values.z2[inside],
            level,
            renumbered(values.groups, inside),
            None if weights is None else weights[inside],
            share=share,
            least_df=values.known_tails(inside),
        )
        return half_log(size.low), half_log(size.high)


class Bias(Question):
    """Are predictions unbiased? Off is the mean of z, in units of u."""

    first, behind = 2, 0.3

    def bound(self, tolerance: float) -> float:
        """Return how large a bias may be."""
        return BIAS_COSTS * (tolerance - 1)

    def told(self, off: float) -> float:
        """Return the bias, in units of u."""
        return float(off)

    def moments(self, x: Floats, xx: Floats, n: Floats, mean: Floats) -> Triple:
        """Return means."""
        return x / n, xx / n - (x / n) ** 2, np.ones_like(mean)

    def whole(self, values: Values, level: float) -> Whole:
        """Return the mean of z."""
        mean = values.mean_z
        interval = mean.interval(level, skewed=False)
        low, high = interval.low, interval.high
        return Whole(mean.value, low, high, mean.value - low, high - mean.value)

    def absolute(
        self, values: Values, v: Variable, sums: Floats, relative: Triple, whole: Whole
    ) -> Triple:
        """Return means of z."""
        off, low, high = relative
        value = v.summed(sums[:, 2]) / v.summed(v.sizes)
        down = np.hypot((1 - v.shares) * (off - low), whole.down)
        up = np.hypot((1 - v.shares) * (high - off), whole.up)
        return value, value - down, value + up

    def own_limits(
        self, values: Values, inside: Bools, share: float, level: float
    ) -> tuple[float, float]:
        """Return those of the mean of their own z."""
        weights, groups = values.rows.weights, renumbered(values.groups, inside)
        weights = None if weights is None else weights[inside]
        interval = Mean.of(values.z[inside], groups, weights).interval(
            level, skewed=False
        )
        return interval.low, interval.high


class Coverage(Question):
    """Do intervals hold what they claim? Off is ln of the stretch that they want."""

    first, sign = 4, -1

    def whole(self, values: Values, level: float) -> Whole:
        """Return the stretch of all intervals, and where chance may hide it."""
        half = _half_share(values.mean_held, values.level, level)
        counts = np.bincount(values.stretch_codes, values.w, STRETCH.size + 1)
        held = np.cumsum(counts)[:-1][None, :] / values.w.sum()
        halves = np.full(1, half)
        ends = stretches(held, values.level, halves, halves)
        off, low, high = (float(x[0]) for x in ends)
        return Whole(off, low, high, off - low, high - off, half_share=half)

    def absolute(
        self, values: Values, v: Variable, sums: Floats, relative: Triple, whole: Whole
    ) -> Triple:
        """Return by what intervals must be stretched to hold what they claim.

        Limits of a stretch are where the share that it holds differs from the claim by
        as much as chance does.
        """
        off, low, high = relative
        down = np.hypot((1 - v.shares) * (high - off), whole.half_share)
        up = np.hypot((1 - v.shares) * (off - low), whole.half_share)
        by_bin = v.codes * (STRETCH.size + 1) + values.stretch_codes
        counts = sums_of(by_bin, v.w, v.n_bins * (STRETCH.size + 1))
        counts = np.cumsum(counts.reshape(v.n_bins, -1), axis=1)[:, :-1]
        held = v.summed(counts) / v.summed(v.sizes)[:, None]
        return stretches(held, values.level, down, up)

    def own_limits(
        self, values: Values, inside: Bools, share: float, level: float
    ) -> tuple[float, float]:
        """Return between which order statistics the stretch lies."""
        weights, groups = values.rows.weights, renumbered(values.groups, inside)
        needed = values.stretch[inside]
        w = None if weights is None else weights[inside]
        holds = (needed <= 1).astype(np.float64)
        half = _half_share(Mean.of(holds, groups, w), values.level, level)
        order = np.argsort(needed)
        shares = np.cumsum(values.w[inside][order]) / values.w[inside].sum()
        ends = np.searchsorted(shares, [values.level - half, values.level + half])
        low, high = (needed[order[i]] if i < order.size else np.inf for i in ends)
        return math.log(max(low, 1e-300)), math.log(max(high, 1e-300))


def _half_share(held: Mean, claim: float, level: float) -> float:
    """Return by how much the share held may differ from the claim by chance."""
    n = max(1.0, held.n_effective)
    quantile = float(special.ndtri(0.5 + level / 2))
    return quantile * math.sqrt(claim * (1 - claim) / n) + 0.5 / n


def stretches(held: Floats, claim: float, down: Floats, up: Floats) -> Triple:
    """Return logarithms of the stretches that hold a claim, and less, and more.

    `held` has a region a row, and the shares within each stretch.
    """
    log, row = np.log(STRETCH), np.arange(up.size)
    ends = ((log[0], log[-1]), (-np.inf, log[-1]), (log[0], np.inf))
    found = []
    for by, (least, most) in zip((0 * up, -down, up), ends, strict=True):
        target = claim + by
        enough = held >= target[:, None]
        at = np.argmax(enough, axis=1)
        before = np.maximum(at - 1, 0)
        left, right = held[row, before], held[row, at]
        part = np.clip((target - left) / np.maximum(right - left, 1e-12), 0, 1)
        between = log[before] + part * (log[at] - log[before])
        between = np.where(at == 0, least, between)
        found.append(np.where(enough.any(axis=1), between, most))
    return found[0], found[1], found[2]


def half_log(x: float) -> float:
    """Return the logarithm of the root of a mean of z²."""
    return math.log(max(x, 1e-300)) / 2 if math.isfinite(x) else math.inf
