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

from .._support.checks import Bools, Floats, Ints
from ..scores.intervals import TRIMMED, Mean, renumbered, sums_of
from ..scores.student import DF, profile_losses
from .parts import Partition, stacked
from .questions import Z2, Bias, Coverage, Question, SizeOfU, Values, Z, half_log
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
LOPSIDED = 0.3  # their share of z²
ONE_SIGN = 0.8  # their share of one sign
STRICTER = 5.0  # so much smaller is the rate of the average of lopsided rows


@dataclass(frozen=True)
class OneSided:
    """How far all rows are off, and the distances of the limits of one level."""

    off: float
    down: float
    up: float

    @property
    def low(self) -> float:
        """The lower limit."""
        return self.off - self.down

    @property
    def high(self) -> float:
        """The upper limit."""
        return self.off + self.up

    @property
    def far(self) -> float:
        """How far from 0 the farther limit is."""
        return max(-self.low, self.high)


# -- all rows --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WholeLimits:
    """One-sided limits of all rows, of any question and level.

    Attributes
    ----------
    values : Values
        The rows.
    """

    values: Values

    def of(self, question: Question, level: float) -> OneSided:
        """Return the estimate of a question, and how far its limits are from it."""
        if isinstance(question, SizeOfU):
            stricter = STRICTER if self.is_lopsided else 1.0
            return self._size(1 - (1 - level) / stricter)
        if isinstance(question, Bias):
            return self._mean(level)
        return self._stretch(level)

    @cached_property
    def is_lopsided(self) -> bool:
        """Whether rare large errors of one sign decide: moments then tell too much."""
        z2 = self.values.z2
        n_largest = max(10, int(LARGEST_SHARE * z2.size))
        if self.values.rows.is_vector or z2.size <= 5 * n_largest:
            return False
        largest = np.argpartition(z2, -n_largest)[-n_largest:]
        they_decide = z2[largest].sum() > LOPSIDED * z2.sum()
        n_of_one_sign = abs(float(np.sign(self.values.z[largest]).sum()))
        return bool(they_decide and n_of_one_sign >= ONE_SIGN * n_largest)

    @cached_property
    def _mean_z2(self) -> Mean:
        """The mean of z²."""
        return Mean.of(self.values.z2, self.values.groups, self.values.rows.weights)

    @cached_property
    def _mean_trimmed(self) -> Mean:
        """The mean of z² of which the largest count as much as a quantile."""
        z2 = self.values.z2
        trimmed = np.minimum(z2, np.quantile(z2, TRIMMED))
        return Mean.of(trimmed, self.values.groups, self.values.rows.weights)

    def _size(self, level: float) -> OneSided:
        """Return ln sqrt ⟨Z²⟩; a few more enormous errors never make u look better."""
        of_moments = self._mean_z2.interval(2 * level - 1, skewed=True)
        of_trimmed = self._mean_trimmed.interval(2 * level - 1, skewed=True)
        centre = math.log(self._mean_z2.value)

        # limits of ln ⟨Z²⟩
        low = math.log(max(of_moments.low, of_trimmed.low, 1e-300))
        high = centre + BEYOND_MOMENTS
        if math.isfinite(of_moments.high):
            high = math.log(of_moments.high)
        high = max(high, self._heaviest(float(special.ndtri(level))))

        # those of ln sqrt ⟨Z²⟩ are half as far
        down = max(0.0, centre - low) / 2
        up = max(0.0, high - centre) / 2
        return OneSided(centre / 2, down, up)

    @cached_property
    def _stand_ins(self) -> tuple[Floats, Floats]:
        """Values of z² that stand for all, and shares; the largest are as they are."""
        # in ascending order
        weights = self.values.rows.weights
        if weights is None:
            z2 = np.sort(self.values.z2)
            w = np.ones(z2.size)
        else:
            order = np.argsort(self.values.z2, kind="stable")
            z2 = self.values.z2[order]
            w = weights[order]
        if z2.size <= 3 * KEPT_EXACT:
            return z2, w / w.sum()

        # the middle row of each of many runs stands for its run
        head = z2.size - KEPT_EXACT
        starts = np.linspace(0, head, KEPT_EXACT + 1).astype(int)[:-1]
        middles = np.minimum(starts + (head // KEPT_EXACT) // 2, head - 1)
        z2 = np.append(z2[middles], z2[head:])
        w = np.append(np.add.reduceat(w[:head], starts), w[head:])
        return z2, w / w.sum()

    def _heaviest(self, quantile: float) -> float:
        """Return the upper limit of ln ⟨Z²⟩ by all Student's t that are not ruled out.

        A ν is not ruled out where its loss, twice its profile likelihood below the
        best, is at most that of a `quantile` of the normal distribution, squared. What
        it leaves is for the scale, whose logarithm has a variance of 2 (1 + 3 / ν) / n.
        """
        # errors of exactly 0 have no tails
        z2, share = self._stand_ins
        is_wrong = z2 > 0
        share_wrong = float(share[is_wrong].sum())
        z2 = z2[is_wrong]
        share = share[is_wrong] / max(share_wrong, 1e-300)
        if z2.size < 5:
            return -math.inf
        n = self._mean_trimmed.n_effective * share_wrong

        # once over all ν, and once more finely where it matters
        _, loss = profile_losses(z2, share, n, DF, 1e-5)
        near = np.flatnonzero(loss <= quantile**2 + 4)
        fewest = DF[max(near[0] - 1, 0)]
        most = DF[min(near[-1] + 1, DF.size - 1)]
        nu = 2 + np.geomspace(fewest - 2, most - 2, 32)
        scale2, loss = profile_losses(z2, share, n, nu, 1e-5)

        # ln ⟨Z²⟩ = ln s² ν / (ν − 2), and as far as is left for ln s²
        is_possible = loss <= quantile**2
        left = np.maximum(quantile**2 - loss, 0)
        reach = np.sqrt(left * 2 * (1 + 3 / nu) / n)
        high = np.log(share_wrong * scale2 * nu / (nu - 2)) + reach
        return float(np.where(is_possible, high, -np.inf).max())

    def _mean(self, level: float) -> OneSided:
        """Return the mean of z."""
        mean = self.values.mean_z
        half = float(special.stdtrit(mean.df, level)) * math.sqrt(mean.second)
        return OneSided(mean.value, half, half)

    @cached_property
    def _stretches(self) -> tuple[Floats, Floats | None]:
        """What intervals need in order, and shares of weight up to each.

        Without weights, which need no shares, these are None.
        """
        s = self.values.stretch
        weights = self.values.rows.weights
        if weights is None:
            return np.sort(s), None
        order = np.argsort(s, kind="stable")
        return s[order], np.cumsum(weights[order]) / weights.sum()

    def _stretch(self, level: float) -> OneSided:
        """Return ln of the stretch that all intervals want, by order statistics."""
        # by how much the share held may differ from the claim by chance
        claim = self.values.level
        held = self.values.mean_held
        n = held.n_effective
        half = special.stdtrit(held.df, level) * math.sqrt(claim * (1 - claim) / n)
        half += 0.5 / n

        # the stretches that hold the claim, and so much less and more
        s, shares = self._stretches
        targets = np.array([claim, claim - half, claim + half])
        if shares is None:
            rows = np.maximum(np.ceil(targets * s.size - 1e-9).astype(int) - 1, 0)
        else:
            rows = np.searchsorted(shares, targets)
        log = [math.log(max(s[min(i, s.size - 1)], 1e-300)) for i in rows.tolist()]
        off, low, high = log
        if rows[2] >= s.size:
            high = off + BEYOND_MOMENTS
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
        self.is_log = is_log
        self.psi_of_rows: Floats = psi(log_s)

        # the bin of each row, and psi at the middle of each bin and shift
        step = (high - low) / (BINS - 1)
        codes = np.rint((log_s - low) / step)
        self.codes: Ints = np.clip(codes, 0, BINS - 1).astype(np.int64)
        middles = low + step * np.arange(BINS)
        self.curve: Floats = psi(middles[:, None] - SHIFTS)  # bins × shifts
        self.squares = self.curve**2

        # moments of psi of all rows, and how fast its mean rises with ln s
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
        # ln s; intervals that need next to nothing need a little
        s = values.stretch
        least = 1e-9 * max(float(np.quantile(s, values.level)), 1e-300)
        log_s = np.log(np.maximum(s, least))

        # the two quantiles between which psi rises from 0 to 1
        missed = 1 - values.level
        shares = max(1 - 3 * missed, values.level / 4), 1 - 0.3 * missed
        if values.rows.weights is None:
            low, high = np.quantile(log_s, shares)
        else:
            order = np.argsort(log_s, kind="stable")
            shares_up_to = np.cumsum(values.w[order]) / values.w.sum()
            rows = np.minimum(np.searchsorted(shares_up_to, shares), log_s.size - 1)
            low, high = log_s[order[rows]]
        high = max(high, low + 1e-6)

        def psi(x: Floats) -> Floats:
            return np.asarray(np.clip((x - low) / (high - low), 0, 1))

        return cls(log_s, values.w, psi, low - 3, high + 3)

    def shift_to(self, means: Floats, target: Floats) -> Floats:
        """Return the shifts at which the means of parts have reached a target.

        `means` has a part a row and a shift a column; means fall with the shift.
        """
        if self.is_log:
            means = np.log(np.maximum(means, 1e-300))
            target = np.log(np.maximum(target, 1e-300))

        # between which shifts it is, by linear interpolation
        n_above = np.count_nonzero(means > target[:, None], axis=1)
        right = np.clip(n_above, 1, SHIFTS.size - 1)
        part = np.arange(target.size)
        left_mean = means[part, right - 1]
        right_mean = means[part, right]
        fall = np.maximum(left_mean - right_mean, 1e-300)
        step = np.clip((left_mean - target) / fall, 0, 1)
        shifts = SHIFTS[right - 1] + step * (SHIFTS[1] - SHIFTS[0])

        # beyond all shifts nothing is known
        shifts = np.where(n_above == 0, -FARTHEST_LN, shifts)
        return np.asarray(np.where(n_above == SHIFTS.size, FARTHEST_LN, shifts))

    def pooled_shift_to(self, target: Floats) -> Floats:
        """Return the shifts at which rows that are as all others have a mean."""
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
    # a gamma variate of shape k = 4 / skewness² has the mean k and the variance k
    skewness = np.clip(skewness, -1.9, 1.9)
    shape = 4 / np.maximum(np.abs(skewness), 1e-3) ** 2
    lower = (special.gammaincinv(shape, 1 - level) - shape) / np.sqrt(shape)
    upper = (special.gammaincinv(shape, level) - shape) / np.sqrt(shape)

    # skewness to the left is its mirror image
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


@dataclass(frozen=True, eq=False)
class GroupsInParts:
    """The rows that groups have in the parts of one partition.

    Attributes
    ----------
    part : array of int
        The part, of each pair of a group and a part that share rows.
    w, w2 : array of float
        The sum of the weights of these rows, and that of their squares.
    """

    part: Ints
    w: Floats
    w2: Floats


@dataclass(frozen=True, eq=False)
class PartSums:
    """Sums over all parts of all variables, of which limits are made.

    Attributes
    ----------
    values : Values
        The rows.
    parts : sequence of Partition
        All parts, those of a variable side by side.
    """

    values: Values
    parts: Sequence[Partition]

    @cached_property
    def scores(self) -> dict[type[Question], Score]:
        """The scores of questions about a factor."""
        return {
            SizeOfU: Score.of_size(self.values),
            Coverage: Score.of_stretch(self.values),
        }

    @cached_property
    def places(self) -> list[slice]:
        """Where the parts of each partition stand in arrays of all parts."""
        ends = np.cumsum([0, *(partition.n for partition in self.parts)]).tolist()
        return [slice(start, stop) for start, stop in pairwise(ends)]

    @cached_property
    def variables(self) -> list[tuple[Variable, Floats]]:
        """Each variable, with the matrix that makes sums by part of sums by bin."""
        by_variable: dict[int, list[Partition]] = {}
        for partition in self.parts:
            by_variable.setdefault(id(partition.variable), []).append(partition)
        variables = []
        for partitions in by_variable.values():
            variables.append((partitions[0].variable, stacked(partitions)))
        return variables

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
        """Return means over parts of a column of :meth:`Values.by_bin`."""
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
        groups = self.values.groups
        if groups is None:
            return 0.0
        deviations = x - np.average(x, weights=self.values.w)
        variance = float(deviations @ deviations) / deviations.size
        n = np.bincount(groups)
        has_pairs = n > 1
        if not has_pairs.any() or not variance:
            return 0.0

        # of each group, Σ d_i d_j over i ≠ j is (Σ d)² − Σ d²
        products = np.bincount(groups, deviations) ** 2
        products -= np.bincount(groups, deviations * deviations)
        by_pairs = products.sum() / (n * (n - 1.0)).sum()
        of_a_row = products[has_pairs] / (n[has_pairs] - 1)
        by_rows = of_a_row.sum() / n[has_pairs].sum()
        return float(np.clip(max(by_pairs, by_rows) / variance, 0, 1))

    def units(self, correlation: float) -> EffectiveSizes:
        """Return what the rows of parts are worth: sums over rows, or over groups.

        Of rows v = w²; of a group v = (1 − r) Σw² + r (Σw)². Then q = Σv / (Σw)², the
        factor of the skewness is Σ v^(3/2) / (Σv)^(3/2), and df = (Σv)² / Σv² − 1.
        """
        w1 = self.weights
        if self.values.groups is None:
            w2, w3, w4 = self._powers
            return EffectiveSizes(w2 / w1**2, w3 / w2**1.5, w2**2 / w4 - 1)

        v1 = np.zeros(w1.size)
        v15 = np.zeros(w1.size)
        v2 = np.zeros(w1.size)
        for place, groups in zip(self.places, self._by_group, strict=True):
            v = (1 - correlation) * groups.w2 + correlation * groups.w**2
            n_parts = place.stop - place.start
            v1[place] = np.bincount(groups.part, v, n_parts)
            v15[place] = np.bincount(groups.part, v**1.5, n_parts)
            v2[place] = np.bincount(groups.part, v * v, n_parts)
        return EffectiveSizes(v1 / w1**2, v15 / v1**1.5, v1**2 / v2 - 1)

    @cached_property
    def _powers(self) -> tuple[Floats, Floats, Floats]:
        """Sums of squares, cubes and fourth powers of weights."""
        if self.values.rows.weights is None:  # all of them are 1, or 0
            return self.weights, self.weights, self.weights
        w2, w3, w4 = (self.powers(power) for power in (2, 3, 4))
        return w2, w3, w4

    @cached_property
    def _by_group(self) -> list[GroupsInParts]:
        """The groups of each partition, each as often as parts have rows of it."""
        groups = self.values.groups
        assert groups is not None
        tables = []
        for partition in self.parts:
            part = partition.of_bin[partition.variable.codes]
            w = partition.variable.w
            is_judged = (part >= 0) & (w > 0)
            w = w[is_judged]
            # each pair of a group and a part has a key of its own
            keys = groups[is_judged] * partition.n + part[is_judged]
            w_of_keys = sums_of(keys, w)
            used = np.flatnonzero(w_of_keys)
            tables.append(
                GroupsInParts(
                    part=used % partition.n,
                    w=w_of_keys[used],
                    w2=sums_of(keys, w * w)[used],
                )
            )
        return tables

    # -- limits ------------------------------------------------------------------------

    def scale_limits(
        self, question: Question, wholes: Sequence[OneSided], levels: Sequence[float]
    ) -> tuple[Limits, Floats]:
        """Return limits of factors by a score, and factors relative to all rows."""
        # the shift of each part at which psi has the mean that it has over all rows
        score = self.scores[type(question)]
        units = self.units(self.correlation(score.psi_of_rows))
        counts = self.counts(score) / self.weights[:, None]
        means = counts @ score.curve
        relative = score.shift_to(means, np.full(self.share.size, score.mean))

        # the variance of psi of the part at that shift, and some rows of the overall
        grid_step = SHIFTS[1] - SHIFTS[0]
        nearest = np.rint((relative - SHIFTS[0]) / grid_step)
        nearest = np.clip(nearest, 0, SHIFTS.size - 1).astype(int)
        squares = np.einsum("ij,ji->i", counts, score.squares[:, nearest])
        own = np.maximum(squares - score.mean**2, 0)
        variance = (units.rows * own + PRIOR * score.variance) / (units.rows + PRIOR)
        se = np.sqrt(variance * units.q * np.maximum(1 - self.share, 0.01))

        # shifts at which that mean leaves chance: a larger one has a smaller mean
        ends = []
        for whole, level in zip(wholes, levels, strict=True):
            low_t, high_t = by_chance(level, score.skewness * units.cube, units.df)
            lower = score.shift_to(means, score.mean + high_t * se)
            upper = score.shift_to(means, score.mean + low_t * se)
            down = relative - np.minimum(lower, relative)
            up = np.maximum(upper, relative) - relative
            centre = whole.off + relative
            ends.append(centre - np.hypot(down, whole.down))
            ends.append(centre + np.hypot(up, whole.up))
        return Limits(wholes[0].off + relative, *ends), relative

    def size_limits(
        self, wholes: Sequence[OneSided], levels: Sequence[float]
    ) -> tuple[Limits, Floats]:
        """Return limits of the factors of u, and factors relative to all rows.

        They reach as far as the part's own factor, and where its shape differs from
        that of all rows, as far as the limits of its own z².
        """
        limits, relative = self.scale_limits(SizeOfU(), wholes, levels)
        own = np.log(np.maximum(self.mean_of(Z2), 1e-300)) / 2
        low = np.minimum(limits.low, own)
        high = np.maximum(limits.high, own)
        all_low = np.minimum(limits.all_low, own)
        all_high = np.maximum(limits.all_high, own)

        # parts whose shape is their own, by how far their rms is from what scales tell
        level, level_of_all = levels
        has_own_shape = self._has_own_shape(own - wholes[0].off - relative)
        for part in np.flatnonzero(has_own_shape):
            mean = self._own_mean(int(part))
            alone = mean.interval(2 * level - 1, skewed=True)
            low[part] = min(low[part], half_log(alone.low))
            high[part] = max(high[part], half_log(alone.high))
            of_all = mean.interval(2 * level_of_all - 1, skewed=True)
            all_low[part] = min(all_low[part], half_log(of_all.low))
            all_high[part] = max(all_high[part], half_log(of_all.high))
        return Limits(own, low, high, all_low, all_high), relative

    def _has_own_shape(self, differences: Floats) -> Bools:
        """Return which parts have a rms that their scale does not tell.

        A row moves ln rms of all rows by (z² / ⟨Z²⟩ − 1) / 2, and the shift by (psi −
        ⟨psi⟩) / slope: the spread of their difference tells how far chance reaches.
        """
        score = self.scores[SizeOfU]
        by_rms = (self.values.z2 / self.values.mean - 1) / 2
        by_scale = (score.psi_of_rows - score.mean) / score.slope
        spread = math.sqrt(np.average((by_rms - by_scale) ** 2, weights=self.values.w))
        q = self.units(self.correlation(score.psi_of_rows)).q
        far = DIFFERENT * spread * np.sqrt(q * np.maximum(1 - self.share, 0))
        return np.asarray(np.abs(differences) > far)

    def _own_mean(self, part: int) -> Mean:
        """Return the mean of z² of one part, by its place among all parts."""
        at = next(i for i, place in enumerate(self.places) if part < place.stop)
        partition = self.parts[at]
        inside = partition.inside(part - self.places[at].start)
        groups = renumbered(self.values.groups, inside)
        return Mean.of(self.values.z2[inside], groups, partition.variable.w[inside])

    def bias_limits(self, levels: Sequence[float], relative: Floats) -> Limits:
        """Return means of z; a part has at least the variance that its scale tells.

        `relative` is that scale, its factor relative to all rows.
        """
        z = self.values.z
        units = self.units(self.correlation(z))
        mean = self.mean_of(Z)

        # the variance of each part, with some rows of the overall; one without its
        # large errors has a mean and a variance that are too low
        _, overall, skewness = moments(z, self.values.w)
        own = np.maximum(self.mean_of(Z + 1) - mean**2, 0)
        variance = (units.rows * own + PRIOR * overall) / (units.rows + PRIOR)
        variance = np.maximum(variance, overall * np.exp(2 * np.minimum(relative, 50)))
        se = np.sqrt(variance * units.q)

        ends = []
        for level in levels:
            reach = either_way(level, skewness * units.cube, units.df) * se
            ends += [mean - reach, mean + reach]
        return Limits(mean, *ends)
