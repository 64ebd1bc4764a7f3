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
from ..predictions.predictions import Predictions
from ..scores.intervals import Mean, renumbered, size_interval, some_of, sums_of
from ..scores.losses import claimed_of_errors
from ..scores.student import StudentProfile
from .variables import Variable

FEWEST = 20  # rows, or groups, below which nothing can be told
CAP = 12.0  # times the mean; of larger z², so much is compared
ALIKE = 0.05  # chance by which distributions that are alike look as different
NO_HEAVIER = 2.0  # twice the log-likelihood that tails may lose which are no heavier
ROWS_THAT_TELL_TAILS = 8000  # rows that tell whether they are
BIAS_COSTS = 4 / 3  # a bias of so many times (tolerance − 1) u costs as much as u does
STRETCH = np.geomspace(0.02, 50.0, 161)  # factors of a width that are looked at
LOG_STRETCH = np.log(STRETCH)
# columns of `Values.by_bin`; that of a square follows its own
CAPPED = 0
Z = 2
HELD = 4
Z2 = 5
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
        """How many independent rows, or groups, there are in effect, (Σw)² / Σw²."""
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
            distributions, target = claimed_of_errors(rows)
            if rows.is_vector:
                lengths: Floats = np.sqrt(rows.squared_error * rows.dim)
                radii = distributions.radius(self.level)
                return lengths / np.maximum(radii, 1e-300)
            low, high = distributions.interval(self.level).T
        is_finite = np.isfinite(low) & np.isfinite(high)
        low = np.where(is_finite, low, 0.0)
        high = np.where(is_finite, high, 0.0)
        distances = np.abs(target - (low + high) / 2)
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
        """The columns of which the search takes sums: x and x² of each question.

        They stand where `CAPPED`, `Z` and `HELD` say, each with its square behind it;
        that of what is held is the same.
        """
        capped = self.capped
        z = self.z
        return np.column_stack([capped, capped * capped, z, z * z, self.held])

    @cached_property
    def _sums(self) -> dict[int, Floats]:
        """What `by_bin` has made, by the identity of variables."""
        return {}

    def by_bin(self, v: Variable) -> Floats:
        """Return the sums of all columns, and of z² (`Z2`), by the bins of a variable.

        They are made once of each variable, for all questions.
        """
        if id(v) not in self._sums:
            sums = [v.sums(column) for column in self.columns.T]
            of_z2 = v.sums(self.z2) if self.rows.is_vector else sums[Z + 1]
            self._sums[id(v)] = np.column_stack([*sums, of_z2])
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

        # z of a sample of the rows, and of the rest
        step = -(-inside.size // ROWS_THAT_TELL_TAILS)
        z = np.sqrt(self.z2[::step]) if self.rows.is_vector else self.z[::step]
        is_inside = inside[::step]
        z_inside = z[is_inside]
        z_rest = z[~is_inside]
        if min(z_inside.size, z_rest.size) < FEWEST:
            return 0.0

        # alike but for their scale, by Kolmogorov and Smirnov
        test = stats.ks_2samp(_scaled(z_inside), _scaled(z_rest), method="asymp")
        if test.pvalue <= ALIKE:
            return 0.0

        # the heaviest tails of the rest, if those of the rows are no heavier
        of_rest = StudentProfile.of(z_rest**2, z_rest.size)
        of_inside = StudentProfile.of(z_inside**2, z_inside.size)
        if of_rest is None or of_inside is None:
            return 0.0
        fewest_df = of_rest.heaviest
        return fewest_df if of_inside.lost_by(fewest_df) <= NO_HEAVIER else 0.0


def _scaled(z: Floats) -> Floats:
    """Return z-scores in units of their mean size."""
    return z / max(float(np.abs(z).mean()), 1e-300)


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

    first = CAPPED  # of its columns in `Values.columns`
    is_share = False  # whether it is asked of what is held or not
    behind = 0.0  # by which its differences count less in the search, in spreads
    share_of_all = 0.025  # of the error rate, that the limits of all rows take

    def bound(self, tolerance: float) -> float:
        """Return how far off rows may be."""
        return math.log(tolerance)

    def as_read(self, off: float) -> float:
        """Return how far off rows are, in the unit that people read."""
        return math.exp(off) if off < 600 else math.inf

    def moments(self, x: Floats, x2: Floats, n: Floats, mean: Floats) -> Triple:
        """Return the centre of x, its variance, and the unit of the overall variance.

        `x` and `x2` are sums of x and x² over `n` rows; `mean` is that of x over all.
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

    share_of_all = 0.15

    def moments(self, x: Floats, x2: Floats, n: Floats, mean: Floats) -> Triple:
        """Return ln ⟨x⟩, of variance n Σx² / (Σx)² − 1, and the unit ⟨x⟩².

        Rows without errors count as if they had half the mean.
        """
        x = np.maximum(x, 0.5 * mean)
        return np.log(x / n), x2 * n / (x * x) - 1, mean * mean

    def whole(self, values: Values, level: float) -> Whole:
        """Return the limits of capped z², or those of z² where they reach farther."""
        groups = values.groups
        weights = values.rows.weights
        size = size_interval(values.z2, level, groups, weights)
        capped = Mean.of(values.capped, groups, weights).interval(level, skewed=True)

        # distances that those of regions are added to, as regions compare capped z²
        lower = max(min(capped.low, size.low), 1e-300)
        upper = max(size.likely, capped.high)
        tail = 0.0
        if math.isfinite(size.likely):
            tail = max(0.0, half_log(size.high) - half_log(size.likely))
        return Whole(
            off=half_log(size.mean),
            low=half_log(size.low),
            high=half_log(size.high),
            down=math.log(capped.value / lower) / 2,
            up=math.log(upper / capped.value) / 2,
            tail=tail,
        )

    def absolute(
        self, values: Values, v: Variable, sums: Floats, relative: Triple, whole: Whole
    ) -> Triple:
        """Return the factors of u: relative ones with those of all rows.

        With the share s of a region, m_all = s m_in + (1 − s) m_out, and a difference
        d = ln m_in / m_out from the rest is one of −ln(s + (1 − s) exp(−d)) from all.
        """
        share = v.shares

        def from_all(difference: Floats) -> Floats:  # ln of a root of means, so halved
            return np.asarray(-np.log(share + (1 - share) * np.exp(-difference)) / 2)

        with np.errstate(over="ignore"):
            off, low, high = (from_all(difference) for difference in relative)

        # around capped z², distances add up as squares; they reach z² itself
        n = v.summed(v.sizes)
        capped = np.log(np.maximum(v.summed(sums[:, CAPPED]), 1e-300) / n) / 2
        value = np.log(np.maximum(v.summed(sums[:, Z2]), 1e-300) / n) / 2
        lower = capped - np.hypot(off - low, whole.down)
        upper = capped + np.hypot(high - off, whole.up) + whole.tail
        return value, np.minimum(lower, value), np.maximum(upper, value)

    def own_limits(
        self, values: Values, inside: Bools, share: float, level: float
    ) -> tuple[float, float]:
        """Return limits that know what heavy tails hide."""
        size = size_interval(
            values.z2[inside],
            level,
            renumbered(values.groups, inside),
            some_of(values.rows.weights, inside),
            share=share,
            least_df=values.known_tails(inside),
        )
        return half_log(size.low), half_log(size.high)


class Bias(Question):
    """Are predictions unbiased? Off is the mean of z, in units of u."""

    first = Z
    behind = 0.3

    def bound(self, tolerance: float) -> float:
        """Return how large a bias may be."""
        return BIAS_COSTS * (tolerance - 1)

    def as_read(self, off: float) -> float:
        """Return the bias, in units of u."""
        return float(off)

    def moments(self, x: Floats, x2: Floats, n: Floats, mean: Floats) -> Triple:
        """Return ⟨x⟩, of variance ⟨x²⟩ − ⟨x⟩², and the unit 1."""
        return x / n, x2 / n - (x / n) ** 2, np.ones_like(mean)

    def whole(self, values: Values, level: float) -> Whole:
        """Return the mean of z."""
        mean = values.mean_z
        interval = mean.interval(level, skewed=False)
        return Whole(
            off=mean.value,
            low=interval.low,
            high=interval.high,
            down=mean.value - interval.low,
            up=interval.high - mean.value,
        )

    def absolute(
        self, values: Values, v: Variable, sums: Floats, relative: Triple, whole: Whole
    ) -> Triple:
        """Return means of z.

        With the share s of a region, one that differs by d from the rest differs by
        (1 − s) d from all rows; this distance and that of all add up as squares.
        """
        off, low, high = relative
        value = v.summed(sums[:, Z]) / v.summed(v.sizes)
        down = np.hypot((1 - v.shares) * (off - low), whole.down)
        up = np.hypot((1 - v.shares) * (high - off), whole.up)
        return value, value - down, value + up

    def own_limits(
        self, values: Values, inside: Bools, share: float, level: float
    ) -> tuple[float, float]:
        """Return those of the mean of their own z."""
        groups = renumbered(values.groups, inside)
        weights = some_of(values.rows.weights, inside)
        mean = Mean.of(values.z[inside], groups, weights)
        interval = mean.interval(level, skewed=False)
        return interval.low, interval.high


class Coverage(Question):
    """Do intervals hold what they claim? Off is ln of the stretch that they want."""

    first = HELD
    is_share = True

    def whole(self, values: Values, level: float) -> Whole:
        """Return the stretch of all intervals, and where chance may hide it."""
        half = _half_share(values.mean_held, values.level, level)
        counts = np.bincount(values.stretch_codes, values.w, STRETCH.size + 1)
        held = np.cumsum(counts)[:-1] / values.w.sum()
        halves = np.full(1, half)
        ends = stretches(held[None, :], values.level, halves, halves)
        off, low, high = (end.item() for end in ends)
        return Whole(off, low, high, off - low, high - off, half_share=half)

    def absolute(
        self, values: Values, v: Variable, sums: Floats, relative: Triple, whole: Whole
    ) -> Triple:
        """Return by what intervals must be stretched to hold what they claim.

        Limits of a stretch are where the share that it holds differs from the claim by
        as much as chance does.
        """
        # by how much the share held in a region may be more, and less, by chance
        off, low, high = relative
        more = np.hypot((1 - v.shares) * (high - off), whole.half_share)
        less = np.hypot((1 - v.shares) * (off - low), whole.half_share)

        # the share that each stretch holds, region by region
        n_codes = STRETCH.size + 1  # the last is of what no stretch holds
        codes = v.codes * n_codes + values.stretch_codes
        by_bin = sums_of(codes, v.w, v.n_bins * n_codes).reshape(v.n_bins, n_codes)
        held_by_bin = np.cumsum(by_bin, axis=1)[:, :-1]
        held = v.summed(held_by_bin) / v.summed(v.sizes)[:, None]
        return stretches(held, values.level, more, less)

    def own_limits(
        self, values: Values, inside: Bools, share: float, level: float
    ) -> tuple[float, float]:
        """Return between which order statistics the stretch lies."""
        # by how much the share held may differ from the claim by chance
        groups = renumbered(values.groups, inside)
        weights = some_of(values.rows.weights, inside)
        stretch = values.stretch[inside]
        holds = (stretch <= 1).astype(np.float64)
        half = _half_share(Mean.of(holds, groups, weights), values.level, level)

        # the stretches that hold so much less, and so much more; infinite beyond all
        order = np.argsort(stretch)
        ascending = np.append(stretch[order], np.inf)
        w = values.w[inside]
        shares = np.cumsum(w[order]) / w.sum()
        ends = np.searchsorted(shares, [values.level - half, values.level + half])
        low, high = ascending[ends].tolist()
        return math.log(max(low, 1e-300)), math.log(max(high, 1e-300))


def _half_share(held: Mean, claim: float, level: float) -> float:
    """Return by how much the share held may differ from the claim by chance."""
    n = max(1.0, held.n_effective)
    quantile = float(special.ndtri(0.5 + level / 2))
    return quantile * math.sqrt(claim * (1 - claim) / n) + 0.5 / n


def stretches(held: Floats, claim: float, down: Floats, up: Floats) -> Triple:
    """Return logarithms of the stretches that hold a claim, and less, and more.

    `held` has a region a row, and the shares within each stretch; `down` and `up` are
    how much less and more of it. What lies beyond all stretches has no limit.
    """
    least = LOG_STRETCH[0]
    most = LOG_STRETCH[-1]
    return (
        _stretch_holding(claim + 0 * up, held, least, most),
        _stretch_holding(claim - down, held, -np.inf, most),
        _stretch_holding(claim + up, held, least, np.inf),
    )


def _stretch_holding(target: Floats, held: Floats, least: float, most: float) -> Floats:
    """Return where shares, interpolated in the logarithm of a stretch, reach a target.

    It is `least` where the smallest stretch holds it, and `most` where none does.
    """
    row = np.arange(target.size)
    is_reached = held >= target[:, None]
    right = np.argmax(is_reached, axis=1)
    left = np.maximum(right - 1, 0)
    rise = np.maximum(held[row, right] - held[row, left], 1e-12)
    step = np.clip((target - held[row, left]) / rise, 0, 1)
    log = LOG_STRETCH[left] + step * (LOG_STRETCH[right] - LOG_STRETCH[left])
    log = np.where(right == 0, least, log)
    return np.where(is_reached.any(axis=1), log, most)


def half_log(x: float) -> float:
    """Return the logarithm of the root of a mean of z²."""
    return math.log(max(x, 1e-300)) / 2 if math.isfinite(x) else math.inf
