"""One-sided limits of all rows, and of parts: closed forms, and no shuffles.

*All rows*: the mean of z² has ABC limits, upwards also those of every Student's t that
its profile likelihood does not rule out; a mean of z has Student's; the stretch of
intervals lies between order statistics.

*Parts* are compared with all rows by a score psi whose mean tells their scale if z is
distributed alike but for it:

    size of u   psi = min(z², 6 ⟨Z²⟩)
    coverage    psi = ln s, s the stretch of a row, clipped between two quantiles

The factor of a part is where the mean of psi(ln s − d) over its rows is that of all
rows; its limits are where that mean leaves chance, a gamma variate of the skewness of
psi. Distances of a part and of all rows add up as squares. A part whose shape differs
clearly takes the limits of its own z², too.

A row of a group of correlated rows counts for less: with correlation r a unit has the
variance v = (1 − r) Σw² + r (Σw)², and degrees of freedom are (Σv)² / Σv² − 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import special

from .._support.checks import Floats, Ints
from ..scores.intervals import TRIMMED, Mean, renumbered, sums_of
from ..scores.student import DF, best_scale2
from .parts import Partition, stacked
from .questions import Bias, Coverage, Question, SizeOfU, Values
from .search import PRIOR
from .variables import Variable

BINS = 256  # of ln s
SHIFTS = np.linspace(-3, 3, 81)  # shifts of ln s that are looked at
FARTHEST_LN = 27.0  # ln of a factor of which nothing is known
LIKELIHOOD_CAP = 6.0  # times the mean; larger z² count so much
DIFFERENT = 2.5  # standard errors from which a part's shape is its own
KEPT_EXACT = 1000  # largest z² that are kept as they are in likelihoods
BEYOND_MOMENTS = 4.0  # ln of a factor, where moments have no limit
LARGEST_SHARE = 0.01  # of the errors, which may decide
LOPSIDED, ONE_SIGN = 0.3, 0.8  # their share of z², and of one sign
STRICTER = 5.0  # so much smaller is the rate of the average of lopsided rows


@dataclass(frozen=True)
class OneSided:
    """How far all rows are off, and the distances of the limits of one level."""

    off: float
    down: float
    up: float

    @property
    def far(self) -> float:
        """How far from 0 the farther limit is."""
        return max(self.down - self.off, self.off + self.up)


# -- all rows --------------------------------------------------------------------------


class WholeLimits:
    """One-sided limits of all rows, of any question and level."""

    def __init__(self, values: Values) -> None:
        self.values = values

    def of(self, question: Question, level: float) -> OneSided:
        """Return the estimate of a question, and how far its limits are from it."""
        if isinstance(question, SizeOfU):
            stricter = STRICTER if self.is_lopsided else 1.0
            return self._size(1 - (1 - level) / stricter)
        return self._mean(level) if isinstance(question, Bias) else self._stretch(level)

    @cached_property
    def is_lopsided(self) -> bool:
        """Whether rare large errors of one sign decide: moments then tell too much."""
        z2, n = self.values.z2, max(10, int(LARGEST_SHARE * self.values.z2.size))
        if self.values.rows.is_vector or z2.size <= 5 * n:
            return False
        largest = np.argpartition(z2, -n)[-n:]
        of_one_sign = abs(float(np.sign(self.values.z[largest]).sum()))
        decide = z2[largest].sum() > LOPSIDED * z2.sum()
        return bool(decide and of_one_sign >= ONE_SIGN * n)

    @cached_property
    def _means(self) -> tuple[Mean, Mean]:
        """The mean of z², and that of z² without the largest."""
        groups, weights, z2 = (
            self.values.groups,
            self.values.rows.weights,
            self.values.z2,
        )
        trimmed = np.minimum(z2, np.quantile(z2, TRIMMED))
        return Mean.of(z2, groups, weights), Mean.of(trimmed, groups, weights)

    def _size(self, level: float) -> OneSided:
        """Return ln sqrt ⟨Z²⟩; a few more enormous errors never make u look better."""
        mean, trimmed = self._means
        own = mean.interval(2 * level - 1, skewed=True)
        least = trimmed.interval(2 * level - 1, skewed=True).low
        centre = math.log(mean.value)
        low = math.log(max(own.low, least, 1e-300))
        high = centre + BEYOND_MOMENTS
        if math.isfinite(own.high):
            high = math.log(own.high)
        high = max(high, self._heaviest(float(special.ndtri(level))))
        return OneSided(
            centre / 2, max(0.0, centre - low) / 2, max(0.0, high - centre) / 2
        )

    @cached_property
    def _stand_ins(self) -> tuple[Floats, Floats]:
        """Values of z² that stand for all, and shares; the largest are as they are."""
        z2, weights = self.values.z2, self.values.rows.weights
        if weights is None:
            z2, w = np.sort(z2), np.ones(z2.size)
        else:
            order = np.argsort(z2, kind="stable")
            z2, w = z2[order], weights[order]
        if z2.size > 3 * KEPT_EXACT:
            head = z2.size - KEPT_EXACT
            starts = np.linspace(0, head, KEPT_EXACT + 1).astype(int)[:-1]
            middles = np.minimum(starts + (head // KEPT_EXACT) // 2, head - 1)
            w = np.append(np.add.reduceat(w[:head], starts), w[head:])
            z2 = np.append(z2[middles], z2[head:])
        return z2, w / w.sum()

    def _heaviest(self, quantile: float) -> float:
        """Return the upper limit of ln ⟨Z²⟩ by all Student's t that are not ruled out.

        The profile likelihood of its degrees of freedom, with the scale of each known
        to a variance of 2 (1 + 3 / ν) / n, once over all and once where it matters.
        """
        z2, share = self._stand_ins
        other = float(share[z2 > 0].sum())
        share, z2 = share[z2 > 0] / max(other, 1e-300), z2[z2 > 0]
        if z2.size < 5:
            return -math.inf
        n, nu = self._means[1].n_effective * other, DF
        for is_last in (False, True):
            scale2 = best_scale2(z2, share, nu, 1e-5)
            loss = (nu + 1) * (np.log1p(z2 / (nu * scale2)[:, None]) @ share)
            loss += np.log(nu * scale2)
            loss += 2 * (special.gammaln(nu / 2) - special.gammaln((nu + 1) / 2))
            loss = n * (loss - loss.min())
            if not is_last:
                near = np.flatnonzero(loss <= quantile**2 + 4)
                first, last = max(near[0] - 1, 0), min(near[-1] + 1, nu.size - 1)
                nu = 2 + np.geomspace(nu[first] - 2, nu[last] - 2, 32)
        room = np.maximum(quantile**2 - loss, 0)
        reach = np.sqrt(room * 2 * (1 + 3 / nu) / n)
        high = np.log(other * scale2 * nu / (nu - 2)) + reach
        return float(np.where(loss <= quantile**2, high, -np.inf).max())

    def _mean(self, level: float) -> OneSided:
        """Return the mean of z."""
        mean = self.values.mean_z
        half = float(special.stdtrit(mean.df, level)) * math.sqrt(mean.second)
        return OneSided(mean.value, half, half)

    @cached_property
    def _stretches(self) -> tuple[Floats, Floats | None]:
        """What intervals need in order, and shares of weight up to each."""
        s, weights = self.values.stretch, self.values.rows.weights
        if weights is None:
            return np.sort(s), None
        order = np.argsort(s, kind="stable")
        return s[order], np.cumsum(weights[order]) / weights.sum()

    def _stretch(self, level: float) -> OneSided:
        """Return ln of the stretch that all intervals want, by order statistics."""
        s, shares = self._stretches
        claim, held = self.values.level, self.values.mean_held
        n = held.n_effective
        half = special.stdtrit(held.df, level) * math.sqrt(claim * (1 - claim) / n)
        half += 0.5 / n
        targets = np.array([claim, claim - half, claim + half])
        if shares is None:
            ends = np.maximum(np.ceil(targets * s.size - 1e-9).astype(int) - 1, 0)
        else:
            ends = np.searchsorted(shares, targets)
        off, low, high = (
            math.log(max(s[min(i, s.size - 1)], 1e-300)) for i in ends.tolist()
        )
        high = high if ends[2] < s.size else off + BEYOND_MOMENTS
        return OneSided(off, off - low, high - off)


# -- scores ----------------------------------------------------------------------------


class Score:
    """The mean of psi(ln s − d) by shift d, of any rows, from counts of ln s.

    Parameters
    ----------
    log_s : array of shape (n,)
        Logarithms of what is scaled.
    w : array of shape (n,)
        The weight of each row.
    psi : callable
        What is averaged.
    low, high : float
        Between which psi changes.
    is_log : bool
        Whether means are compared by their logarithms.
    """

    def __init__(
        self,
        log_s: Floats,
        w: Floats,
        psi: Any,
        low: float,
        high: float,
        *,
        is_log: bool = False,
    ) -> None:
        step = (high - low) / (BINS - 1)
        codes = np.rint((log_s - low) / step)
        self.codes: Ints = np.clip(codes, 0, BINS - 1).astype(np.int64)
        self.is_log = is_log
        middles = low + step * np.arange(BINS)
        self.curve: Floats = psi(middles[:, None] - SHIFTS)  # bins × shifts
        self.squares = self.curve**2
        self.x: Floats = psi(log_s)
        # moments of all rows
        counts = sums_of(self.codes, w, BINS)
        self.share: Floats = counts / counts.sum()
        self.mean, self.variance, self.skewness = moments(psi(middles), self.share)
        rise = psi(middles + 0.05) - psi(middles - 0.05)
        self.slope = float(self.share @ rise) / 0.1

    @classmethod
    def of_size(cls, values: Values) -> Score:
        """Return the score of z²."""
        rms = math.sqrt(values.mean)
        log_s = np.log(np.maximum(np.sqrt(values.z2), 1e-6 * rms))
        capped = math.log(LIKELIHOOD_CAP * values.mean) / 2

        def psi(x: Floats) -> Floats:
            return np.asarray(np.exp(2 * np.minimum(x, capped)))

        return cls(log_s, values.w, psi, capped - 4, capped + 3, is_log=True)

    @classmethod
    def of_stretch(cls, values: Values) -> Score:
        """Return the score of what intervals need, around the level that they claim."""
        s, missed = values.stretch, 1 - values.level
        least = 1e-9 * max(float(np.quantile(s, values.level)), 1e-300)
        log_s = np.log(np.maximum(s, least))
        ends = max(1 - 3 * missed, values.level / 4), 1 - 0.3 * missed
        low, high = np.quantile(log_s, ends)
        if values.rows.weights is not None:
            order = np.argsort(log_s, kind="stable")
            shares = np.cumsum(values.w[order]) / values.w.sum()
            at = np.minimum(np.searchsorted(shares, ends), log_s.size - 1)
            low, high = log_s[order[at]]
        high = max(high, low + 1e-6)

        def psi(x: Floats) -> Floats:
            return np.asarray(np.clip((x - low) / (high - low), 0, 1))

        return cls(log_s, values.w, psi, low - 3, high + 3)

    def shift_to(self, means: Floats, target: Floats) -> Floats:
        """Return the shifts at which rows of falling means have a mean."""
        if self.is_log:
            means = np.log(np.maximum(means, 1e-300))
            target = np.log(np.maximum(target, 1e-300))
        above = np.count_nonzero(means > target[:, None], axis=1)
        right = np.clip(above, 1, SHIFTS.size - 1)
        row = np.arange(target.size)
        left_mean, right_mean = means[row, right - 1], means[row, right]
        fall = np.maximum(left_mean - right_mean, 1e-300)
        part = np.clip((left_mean - target) / fall, 0, 1)
        found = SHIFTS[right - 1] + part * (SHIFTS[1] - SHIFTS[0])
        found = np.where(above == 0, -FARTHEST_LN, found)
        return np.asarray(np.where(above == SHIFTS.size, FARTHEST_LN, found))

    def pooled_shift_to(self, target: Floats) -> Floats:
        """Return the shifts at which rows that are as all have a mean."""
        means = self.share @ self.curve
        if self.is_log:
            means = np.log(np.maximum(means, 1e-300))
            target = np.log(np.maximum(target, 1e-300))
        shifts = np.interp(
            -target, -means, SHIFTS, left=-FARTHEST_LN, right=FARTHEST_LN
        )
        return np.asarray(shifts)


def moments(x: Floats, w: Floats) -> tuple[float, float, float]:
    """Return mean, variance and skewness, which is 0 where all values are alike."""
    mean = float(np.average(x, weights=w))
    variance = float(np.average((x - mean) ** 2, weights=w))
    third = float(np.average((x - mean) ** 3, weights=w))
    return mean, variance, third / max(variance**1.5, 1e-300)


def by_chance(level: float, skewness: Floats, df: Floats) -> tuple[Floats, Floats]:
    """Return between which numbers of standard errors a mean lies, each with a level.

    Gamma variates have the skewness; Student's t widens both.
    """
    skewness = np.clip(skewness, -1.9, 1.9)
    shape = 4 / np.maximum(np.abs(skewness), 1e-3) ** 2
    lower, upper = (
        (special.gammaincinv(shape, p) - shape) / np.sqrt(shape)
        for p in (1 - level, level)
    )
    low = np.where(skewness < 0, -upper, lower)
    high = np.where(skewness < 0, -lower, upper)
    wider = special.stdtrit(np.maximum(df, 1.0), level) / special.ndtri(level)
    return low * wider, high * wider


def either_way(level: float, skewness: Floats, df: Floats) -> Floats:
    """Return how many standard errors a mean reaches on the longer side of chance.

    A part that lacks large errors by chance has a mean and a variance that are both too
    small: the side that skewness shortens if the variance is known is then as long.
    """
    low, high = by_chance(level, skewness, df)
    return np.maximum(-low, high)


# -- parts -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EffectiveSizes:
    """What the rows of parts are worth, counting weights and groups.

    Attributes
    ----------
    q : array of shape (n,)
        The variance of a mean, in units of that of a row.
    cube : array of shape (n,)
        What the skewness of a row is multiplied by.
    df : array of shape (n,)
        Degrees of freedom.
    """

    q: Floats
    cube: Floats
    df: Floats

    @property
    def rows(self) -> Floats:
        """Rows in effect."""
        return np.asarray(1 / self.q)


@dataclass(frozen=True, eq=False)
class Limits:
    """How far parts are off, with one-sided limits of two levels.

    Attributes
    ----------
    off : array of shape (n,)
        How far each is off.
    low, high : array of shape (n,)
        Its limits, each of the level of a certificate.
    all_low, all_high : array of shape (n,)
        Limits that hold for all shown parts at once.
    """

    off: Floats
    low: Floats
    high: Floats
    all_low: Floats
    all_high: Floats

    @property
    def far(self) -> Floats:
        """How far from 0 the farther limit of each is."""
        return np.asarray(np.maximum(-self.low, self.high))


class PartSums:
    """Sums over all parts of all variables, of which limits are made.

    Parameters
    ----------
    values : Values
        The rows.
    parts : sequence of Partition
        All parts, those of a variable side by side.
    """

    def __init__(self, values: Values, parts: Sequence[Partition]) -> None:
        self.values, self.parts = values, parts
        self.scores = {
            SizeOfU: Score.of_size(values),
            Coverage: Score.of_stretch(values),
        }
        ends = np.cumsum([0, *(x.n for x in parts)]).tolist()
        self.places = [slice(first, stop) for first, stop in pairwise(ends)]
        self.variables: list[tuple[Variable, Floats]] = []
        by_variable: dict[int, list[Partition]] = {}
        for x in parts:
            by_variable.setdefault(id(x.variable), []).append(x)
        for group in by_variable.values():
            self.variables.append((group[0].variable, stacked(group)))

    def powers(self, power: int) -> Floats:
        """Return sums over parts of weights to a power."""
        sums = []
        for v, matrix in self.variables:
            sums.append(matrix @ sums_of(v.codes, v.w**power, v.n_bins))
        return np.concatenate(sums)

    @cached_property
    def _sums(self) -> Floats:
        """Sums over parts of the columns of the rows, and of z²."""
        by_variable = [matrix @ self.values.by_bin(v) for v, matrix in self.variables]
        return np.concatenate(by_variable)

    def mean_of(self, column: int) -> Floats:
        """Return means over parts of a column of the rows; the fifth is z²."""
        return np.asarray(self._sums[:, column] / self.weights)

    @cached_property
    def weights(self) -> Floats:
        """The weight of each part."""
        return np.concatenate([matrix @ v.sizes for v, matrix in self.variables])

    @cached_property
    def share(self) -> Floats:
        """The share of the rows of each part."""
        totals = [np.full(m.shape[0], v.sizes.sum()) for v, m in self.variables]
        return np.asarray(self.weights / np.concatenate(totals))

    def counts(self, score: Score) -> Floats:
        """Return how much weight each part has in the bins of a score."""
        counts = []
        for v, matrix in self.variables:
            at = v.codes * BINS + score.codes
            by_bin = v.counts(at, v.n_bins * BINS)
            counts.append(matrix @ by_bin.reshape(v.n_bins, BINS))
        return np.concatenate(counts)

    def correlation(self, x: Floats) -> float:
        """Return the correlation of a value within groups: by pairs, or by rows."""
        groups, w = self.values.groups, self.values.w
        if groups is None:
            return 0.0
        deviations = x - np.average(x, weights=w)
        squares = float(deviations @ deviations) / deviations.size
        n = np.bincount(groups)
        several = n > 1
        if not several.any() or not squares:
            return 0.0
        products = np.bincount(groups, deviations) ** 2
        products -= np.bincount(groups, deviations * deviations)
        by_pairs = products.sum() / (n * (n - 1.0)).sum()
        by_rows = (products[several] / (n[several] - 1)).sum() / n[several].sum()
        return float(np.clip(max(by_pairs, by_rows) / squares, 0, 1))

    def units(self, correlation: float) -> EffectiveSizes:
        """Return what the rows of parts are worth."""
        w1 = self.weights
        if self.values.groups is None:
            w2, w3, w4 = self._powers
            return EffectiveSizes(w2 / w1**2, w3 / w2**1.5, w2**2 / w4 - 1)
        v1, v15, v2 = (np.zeros(w1.size) for _ in range(3))
        for place, (home, of_groups, of_rows) in zip(
            self.places, self._by_group, strict=True
        ):
            v = (1 - correlation) * of_rows + correlation * of_groups**2
            n = place.stop - place.start
            v1[place] = np.bincount(home, v, n)
            v15[place] = np.bincount(home, v**1.5, n)
            v2[place] = np.bincount(home, v * v, n)
        return EffectiveSizes(v1 / w1**2, v15 / v1**1.5, v1**2 / v2 - 1)

    @cached_property
    def _powers(self) -> tuple[Floats, Floats, Floats]:
        """Sums of squares, cubes and fourth powers of weights."""
        if self.values.rows.weights is None:  # all of them are 1, or 0
            return self.weights, self.weights, self.weights
        w2, w3, w4 = (self.powers(power) for power in (2, 3, 4))
        return w2, w3, w4

    @cached_property
    def _by_group(self) -> list[tuple[Any, Any, Any]]:
        """The part of each group within a part, its weight and that of squares."""
        groups = self.values.groups
        assert groups is not None
        tables = []
        for x in self.parts:
            part, w = x.of_bin[x.variable.codes], x.variable.w
            used = (part >= 0) & (w > 0)
            keys, w = groups[used] * x.n + part[used], w[used]
            of_groups = np.bincount(keys, w)
            there = np.flatnonzero(of_groups)
            of_rows = np.bincount(keys, w * w)[there]
            tables.append((there % x.n, of_groups[there], of_rows))
        return tables

    # -- limits ------------------------------------------------------------------------

    def scale_limits(
        self, question: Question, wholes: Sequence[OneSided], levels: Sequence[float]
    ) -> tuple[Limits, Floats]:
        """Return limits of factors by a score, and factors relative to all rows."""
        score = self.scores[type(question)]
        units = self.units(self.correlation(score.x))
        counts = self.counts(score) / self.weights[:, None]
        means = counts @ score.curve
        relative = score.shift_to(means, np.full(self.share.size, score.mean))
        # the variance of the part at its own scale, and some rows of the overall
        nearest = np.clip(
            np.rint((relative - SHIFTS[0]) / (SHIFTS[1] - SHIFTS[0])),
            0,
            SHIFTS.size - 1,
        ).astype(int)
        squares = np.einsum("ij,ji->i", counts, score.squares[:, nearest])
        own = np.maximum(squares - score.mean**2, 0)
        variance = (units.rows * own + PRIOR * score.variance) / (units.rows + PRIOR)
        se = np.sqrt(variance * units.q * np.maximum(1 - self.share, 0.01))
        ends = []
        for whole, level in zip(wholes, levels, strict=True):
            low_t, high_t = by_chance(level, score.skewness * units.cube, units.df)
            up = score.shift_to(means, score.mean + low_t * se)
            down = score.shift_to(means, score.mean + high_t * se)
            down, up = np.minimum(down, relative), np.maximum(up, relative)
            centre = whole.off + relative
            ends.append(centre - np.hypot(relative - down, whole.down))
            ends.append(centre + np.hypot(up - relative, whole.up))
        return Limits(wholes[0].off + relative, *ends), relative

    def size_limits(
        self, wholes: Sequence[OneSided], levels: Sequence[float]
    ) -> tuple[Limits, Floats]:
        """Return limits of the factors of u, and factors relative to all rows.

        They reach as far as the part's own factor, and where its shape differs from
        that of all rows, as far as the limits of its own z².
        """
        limits, relative = self.scale_limits(SizeOfU(), wholes, levels)
        own = np.log(np.maximum(self.mean_of(5), 1e-300)) / 2
        low, high = np.minimum(limits.low, own), np.maximum(limits.high, own)
        all_low = np.minimum(limits.all_low, own)
        all_high = np.maximum(limits.all_high, own)
        for at in np.flatnonzero(self._has_own_shape(own - wholes[0].off - relative)):
            mean = self._own_mean(int(at))
            ends = [mean.interval(2 * x - 1, skewed=True) for x in levels]
            logs = [math.log(max(x, 1e-300)) / 2 for e in ends for x in (e.low, e.high)]
            low[at], high[at] = min(low[at], logs[0]), max(high[at], logs[1])
            all_low[at] = min(all_low[at], logs[2])
            all_high[at] = max(all_high[at], logs[3])
        return Limits(own, low, high, all_low, all_high), relative

    def _has_own_shape(self, differences: Floats) -> Any:
        """Return which parts have a rms that their scale does not tell."""
        score, z2 = self.scores[SizeOfU], self.values.z2
        by_rms = (z2 / self.values.mean - 1) / 2
        by_scale = (score.x - score.mean) / score.slope
        spread = math.sqrt(np.average((by_rms - by_scale) ** 2, weights=self.values.w))
        q = self.units(self.correlation(score.x)).q
        far = DIFFERENT * spread * np.sqrt(q * np.maximum(1 - self.share, 0))
        return np.abs(differences) > far

    def _own_mean(self, at: int) -> Mean:
        """Return the mean of z² of one part."""
        of = next(i for i, place in enumerate(self.places) if at < place.stop)
        parts = self.parts[of]
        here = parts.inside(at - self.places[of].start)
        groups = renumbered(self.values.groups, here)
        return Mean.of(self.values.z2[here], groups, parts.variable.w[here])

    def bias_limits(
        self, wholes: Sequence[OneSided], levels: Sequence[float], relative: Floats
    ) -> Limits:
        """Return means of z; a part has at least the variance that its scale tells."""
        z, w = self.values.z, self.values.w
        units = self.units(self.correlation(z))
        mean = self.mean_of(2)
        _, spread, skewness = moments(z, w)
        # a part without its large errors has a mean and a variance that are too low
        own = np.maximum(self.mean_of(3) - mean**2, 0)
        variance = (units.rows * own + PRIOR * spread) / (units.rows + PRIOR)
        variance = np.maximum(variance, spread * np.exp(2 * np.minimum(relative, 50)))
        se, ends = np.sqrt(variance * units.q), []
        for level in levels:
            reach = either_way(level, skewness * units.cube, units.df) * se
            ends += [mean - reach, mean + reach]
        return Limits(mean, *ends)
