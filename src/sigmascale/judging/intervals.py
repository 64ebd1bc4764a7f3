"""Confidence intervals of the mean of each bin, of the average, and of fractions.

All that a bin knows are its groups of rows that belong together: the sum S and the
number (or weight) n of the rows of each. The mean is m = ΣS / Σn, and d = S − m n is
what a group contributes to its error. A row that belongs to no other is a group of one,
whose n needs no array: its d is its deviation from the mean.

All methods answer for every bin at once. Bins of equally many groups share their
bootstrap weights, so that the resampled means of all of them are one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy import optimize, special, stats

from .._support.checks import Floats, Ints
from .._support.render import Cells, Result
from .._support.weights import (
    effective_number,
    mean_of,
    quantile_of,
    some_of,
    total_of,
)
from ..bins.partitions import sum_by_code
from ..predictions import Predictions

IntervalMethod = Literal["bca", "bootstrap-t", "student", "moments"]
METHODS: tuple[str, ...] = get_args(IntervalMethod)
RESAMPLED = ("bca", "bootstrap-t")  # these depend on the order of rows in a bin
MIN_ROWS = 5  # fewer rows in a bin say next to nothing about their mean's spread

# Bootstrap weights are made in blocks that stay in the cache, but of so many resamples
# that the values of large bins are not read from memory again and again.
_LARGEST_WEIGHTS = 2**14
_LEAST_RESAMPLES = 32
_MEANS_AT_ONCE = 2**21  # resampled means, of some bins, that are held in memory
_MOST_PARTS = 10_000  # of a set, that are resampled as a whole

# What heavy tails can hide from the mean of z²
SIMULATED = 2500  # means of z² behind the quantiles of a law
LARGEST_VALUES = 60  # of a simulated sample; the others are summed by their moments
LIGHT = 200.0  # degrees of freedom beyond which errors are as good as normal
MOST_FITTED = 10_000  # rows that a law is fitted to
REDUCED = (0.01, 0.05, 0.2)  # shares of the largest z² that are reduced
ALIKE = 0.05  # chance by which laws that are alike look as different, at least
SKEWED = 2.81  # by chance, laws that are symmetric look so in one per cent
# twice the log-likelihood that the heaviest tail not ruled out may lose; more of rows
# that were chosen, times minus the logarithm of their share
HEAVIER, CHOSEN = 9.0, 6.0

Weights = tuple[slice, Floats]  # some of the resamples, and their weights


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums by bin and group, bin after bin.

    Attributes
    ----------
    totals : array of shape (n_sums,)
        The sum of the values of a group in a bin.
    counts : array of shape (n_sums,), or None
        The number, or the weight, of its rows; None if each group is one row.
    sizes : array of int, shape (n_bins,)
        Groups in each bin, none of which is empty.
    """

    totals: Floats
    counts: Floats | None
    sizes: Ints

    @classmethod
    def of_rows(
        cls,
        values: Floats,
        sizes: Ints,
        groups: Ints | None = None,
        weights: Floats | None = None,
    ) -> GroupSums:
        """Sum consecutive bins of values by the numbers of their groups.

        Weighted rows, of which there may be pieces, need groups.
        """
        if groups is None:
            return cls(values, None, sizes)
        bins = np.repeat(np.arange(sizes.size), sizes)
        order = np.lexsort((groups, bins))
        bins, groups = bins[order], groups[order]
        new = np.append(True, (np.diff(bins) != 0) | (np.diff(groups) != 0))
        starts = np.flatnonzero(new)
        n_groups = np.bincount(bins[starts], minlength=sizes.size)
        if weights is None:
            counts = np.diff(starts, append=values.size).astype(np.float64)
        else:
            counts = np.add.reduceat(weights[order], starts)
            values = weights * values
        return cls(np.add.reduceat(values[order], starts), counts, n_groups)

    @property
    def starts(self) -> Ints:
        """Where the groups of each bin begin."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def n(self) -> npt.NDArray[Any]:
        """Rows in each bin, or their weight."""
        if self.counts is None:
            return self.sizes
        return np.add.reduceat(self.counts, self.starts)

    @property
    def mean(self) -> Floats:
        """The mean of each bin."""
        mean: Floats = np.add.reduceat(self.totals, self.starts) / self.n
        return mean

    @property
    def squared_counts(self) -> npt.NDArray[Any]:
        """The sum of the squared numbers, or weights, of a bin's groups."""
        if self.counts is None:
            return self.sizes
        return np.add.reduceat(self.counts**2, self.starts)

    @property
    def n_effective(self) -> Floats:
        """How many groups of equal weight would tell as much, in each bin."""
        number: Floats = self.n**2 / self.squared_counts
        return number

    @property
    def contributions(self) -> Floats:
        """What each group contributes to the error of its bin's mean, times n."""
        means = np.repeat(self.mean, self.sizes)
        return self.totals - (means if self.counts is None else means * self.counts)


def mean_interval(
    method: IntervalMethod,
    sums: GroupSums,
    *,
    confidence: float = 0.95,
    n_resamples: int = 1500,
    rng: np.random.Generator | None = None,
) -> tuple[Floats, Floats]:
    """Return limits of the means of bins, none empty, of values that are at least 0.

    "moments" are the ABC limits, what the BCa bootstrap ("bca") tends to; "bootstrap-t"
    is the studentised bootstrap, which keeps its coverage better when values have heavy
    tails; "student" is the mean ± t × standard error.

    References
    ----------
    T. DiCiccio and B. Efron, Biometrika 79, 231 (1992), doi:10.1093/biomet/79.2.231 and
    Statist. Sci. 11, 189 (1996), doi:10.1214/ss/1032280214; of groups: K.-Y. Liang and
    S. L. Zeger, Biometrika 73, 13 (1986), doi:10.1093/biomet/73.1.13; C. A. Field and
    A. H. Welsh, J. R. Stat. Soc. B 69, 369 (2007),
    doi:10.1111/j.1467-9868.2007.00593.x
    """
    if method == "moments" and sums.counts is None:
        squares = sums.totals * sums.totals
        powers = (sums.totals, squares, squares * sums.totals)
        of_bins = (np.add.reduceat(power, sums.starts) for power in powers)
        return moments_interval(sums.sizes, *of_bins, confidence=confidence)
    if method in ("moments", "student"):
        d = sums.contributions
        second = np.add.reduceat(d * d, sums.starts)
        quantile = few_groups_quantile(sums.sizes, confidence)
        if method == "student":
            half = quantile * np.sqrt(second) / sums.n
            low, high = sums.mean - half, sums.mean + half
        else:
            third = np.add.reduceat(d * d * d, sums.starts)
            low, high = abc_limits(sums.n, sums.mean, second, third, quantile)
    else:
        rng = rng or np.random.default_rng(0)
        resampled = _bca if method == "bca" else _bootstrap_t
        low, high = np.empty(sums.sizes.size), np.empty(sums.sizes.size)
        for which, totals, counts, weights in _to_resample(sums, rng, n_resamples):
            low[which], high[which] = resampled(
                totals, counts, weights, n_resamples, confidence
            )
    return np.maximum(0.0, low), high


def moments_interval(
    n: Ints, sum1: Floats, sum2: Floats, sum3: Floats, *, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """Return the ABC interval of the mean of rows from the sums of x, x² and x³."""
    mean = sum1 / n
    second = np.maximum(0.0, sum2 - n * mean**2)
    third = sum3 - 3 * mean * sum2 + 2 * n * mean**3
    low, high = abc_limits(n, mean, second, third, _normal_quantile(confidence))
    return np.maximum(0.0, low), high


def interval_of_all(
    values: Floats,
    groups: Ints | None,
    level: float,
    weights: Floats | None = None,
    *,
    skewed: bool = True,
) -> tuple[float, float, float]:
    """Return the ABC interval of the mean of a set, and the rows in effect.

    Values that are not `skewed`, such as differences, get the mean ± t × standard
    error, which then holds better.

    Contributions d are those of rows, or of groups without gaps in their numbers. Of
    rows or groups of weights w, the quantile is that of Student's t with
    (Σw²)² / Σw⁴ − 1 degrees of freedom (Satterthwaite's).
    """
    n, mean = total_of(values.size, weights), mean_of(values, weights)
    d = values - mean
    by_row = float(d @ (d if weights is None else weights * d))
    if by_row == 0:
        return mean, mean, float(n)
    of_units = weights
    if weights is not None:
        d = weights * d
    if groups is not None:
        n_groups = int(groups.max()) + 1
        d = sum_by_code(groups, d, n_groups)
        if weights is not None:
            of_units = sum_by_code(groups, weights, n_groups)
    if of_units is None:
        second = float(d @ d) * d.size / max(1, d.size - 1)
        df = max(1.0, d.size - 1)
    else:
        # a heavy row, or group, draws the mean towards itself
        second = float(np.sum(d * d / np.maximum(1 - of_units / n, 1e-3)))
        df = max(1.0, effective_number(of_units**2) - 1)
    # of few groups, or few that weigh much, the spread is not known well
    quantile = float(stats.t.ppf(0.5 + level / 2, df))
    third = d @ (d * d) if skewed else 0.0
    low, high = abc_limits(n, mean, second, third, quantile)
    effective = n * min(1.0, by_row / max(second, 1e-300))
    return float(low), float(high), effective


def abc_limits(
    n: Any, mean: Any, second: Any, third: Any, quantile: Any
) -> tuple[Floats, Floats]:
    """Return ABC limits from the sums of squares and cubes of what is summed.

    With a = Σd³ / (6 (Σd²)^1.5), w = a ± quantile and λ = w / (1 − a w)², they are
    m + λ sqrt(Σd²) / n.
    """
    spread = np.sqrt(second)
    # the ratio is at most 1 in size; rounding must not push it beyond
    a = np.clip(_ratio_or_zero(np.asarray(third), spread**3), -1, 1) / 6
    # 1 − a w is positive for every confidence below 99.999 %
    low, high = (
        mean + w / np.maximum(1 - a * w, 1e-3) ** 2 * spread / n
        for w in (a - quantile, a + quantile)
    )
    return low, high


def bca_limits(
    means: Floats, mean: Floats, centred: Floats, quantile: float
) -> tuple[Floats, Floats]:
    """Return BCa limits of bins, a row each, from resampled means and influences."""
    n_resamples = means.shape[1]
    # the bias: how far the mean is from the median of the resamples, ties by halves
    below = 0.5 * (
        (means < mean[:, None]).sum(axis=1) + (means <= mean[:, None]).sum(axis=1)
    )
    bias = special.ndtri(np.clip(below, 0.5, n_resamples - 0.5) / n_resamples)
    # the acceleration: the skewness of the influences
    squares = centred * centred
    spread = np.sqrt(squares.sum(axis=1))
    a = _ratio_or_zero((squares * centred).sum(axis=1), 6 * spread**3)
    levels = (
        special.ndtr(bias + w / np.maximum(1 - a * w, 1e-3))
        for w in (bias - quantile, bias + quantile)
    )
    return order_statistics(means, *levels)


def few_groups_quantile(sizes: Ints, confidence: float) -> Floats:
    """Return what takes the place of the normal quantile for so many groups.

    With few of them, the sum of d² is too small on average and varies much: it is
    sqrt(G / (G − 1)) times Student's quantile for G − 1 degrees of freedom.
    """
    df = np.maximum(1, sizes - 1)
    quantile: Floats = stats.t.ppf(0.5 + confidence / 2, df) * np.sqrt((df + 1) / df)
    return quantile


def within_groups(deviations: Floats, groups: Ints) -> float:
    """Return the correlation of deviations, of mean 0, within groups; at least 0."""
    sizes = np.bincount(groups)
    pairs = float(np.sum(sizes * (sizes - 1.0)))
    squares = float(np.sum(deviations**2))
    if not pairs or not squares:
        return 0.0
    # a product for each ordered pair: (Σd)² has all of them, and each with itself
    products = float(np.sum(np.bincount(groups, deviations) ** 2)) - squares
    return min(1.0, max(0.0, products / pairs / (squares / groups.size)))


def _normal_quantile(confidence: float) -> float:
    return float(special.ndtri(0.5 + confidence / 2))


def _ratio_or_zero(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; 0 where the denominator is 0, or too small to be told from it."""
    result = np.zeros_like(numerator)
    return np.divide(numerator, denominator, out=result, where=denominator > 0)


def _bca(
    totals: Floats,
    counts: Floats | None,
    drawn: Iterable[Weights],
    n_resamples: int,
    confidence: float,
) -> tuple[Floats, Floats]:
    """Return BCa limits of bins with equally many groups, a bin a row."""
    n_groups = totals.shape[1]
    means = np.empty((totals.shape[0], n_resamples))
    if counts is None:
        quantile, shares = _normal_quantile(confidence), totals / n_groups
        mean = totals.mean(axis=1)
        centred = totals - mean[:, None]
        for which, weights in drawn:
            np.matmul(shares, weights, out=means[:, which])
    else:
        quantile = float(few_groups_quantile(np.array([n_groups]), confidence)[0])
        mean = totals.sum(axis=1) / counts.sum(axis=1)
        centred = totals - mean[:, None] * counts
        for which, weights in drawn:
            means[:, which] = (totals @ weights) / (counts @ weights)
    return bca_limits(means, mean, centred, quantile)


def _bootstrap_t(
    totals: Floats,
    counts: Floats | None,
    drawn: Iterable[Weights],
    n_resamples: int,
    confidence: float,
) -> tuple[Floats, Floats]:
    """Return studentised limits of bins with equally many groups, a bin a row."""
    n = totals.shape[1] if counts is None else counts.sum(axis=1, keepdims=True)
    mean = totals.sum(axis=1, keepdims=True) / n
    d = totals - (mean if counts is None else mean * counts)
    own = np.sqrt((d * d).sum(axis=1, keepdims=True))
    # a resample of one group repeated has no spread: its t is as extreme as can be
    floor = 1e-3 * np.where(own > 0, own, 1)
    t = np.empty((totals.shape[0], n_resamples))
    for which, weights in drawn:
        off = d @ weights
        if counts is None:
            rows, products, squared_counts = n, off, n
        else:
            rows, products = counts @ weights, (d * counts) @ weights
            squared_counts = (counts * counts) @ weights
        by_row = off / rows  # the resampled mean minus the mean
        # Σ w (d − by_row n)², the squared error of the resampled mean times rows²
        square = (d * d) @ weights
        square -= 2 * by_row * products - by_row * by_row * squared_counts
        t[:, which] = off / np.maximum(np.sqrt(np.maximum(0, square)), floor)
    levels = (0.5 - confidence / 2, 0.5 + confidence / 2)
    lower, upper = order_statistics(t, *(np.full(t.shape[0], p) for p in levels))
    low, high = (mean - each[:, None] * own / n for each in (upper, lower))
    return low[:, 0], high[:, 0]


def _to_resample(
    sums: GroupSums, rng: np.random.Generator, n_resamples: int
) -> Iterator[tuple[Ints, Floats, Floats | None, Iterable[Weights]]]:
    """Yield some bins of equally many groups at a time, and the weights they all get.

    Bins may be nearly as many as rows, and each has a mean for every resample.
    """
    at_once, starts = max(1, _MEANS_AT_ONCE // n_resamples), sums.starts
    for size in np.unique(sums.sizes).tolist():
        bins = np.flatnonzero(sums.sizes == size)
        weights: Iterable[Weights] = bootstrap_weights(size, rng, n_resamples)
        if bins.size > at_once:
            weights = list(weights)
        for start in range(0, bins.size, at_once):
            which = bins[start : start + at_once]
            rows = starts[which][:, None] + np.arange(size)
            counts = None if sums.counts is None else sums.counts[rows]
            yield which, sums.totals[rows], counts, weights


def bootstrap_weights(
    n: int, rng: np.random.Generator, n_resamples: int
) -> Iterator[Weights]:
    """Yield how often each of n is drawn (n × resamples), some resamples at a time."""
    block = max(_LEAST_RESAMPLES, _LARGEST_WEIGHTS // n)
    for start in range(0, n_resamples, block):
        count = min(block, n_resamples - start)
        drawn = rng.integers(n, size=(count, n))
        drawn += n * np.arange(count)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=count * n)
        weights = counts.reshape(count, n).T.astype(np.float64)
        yield slice(start, start + count), weights


def order_statistics(
    resamples: Floats, low_level: Floats, high_level: Floats
) -> tuple[Floats, Floats]:
    """Interpolate each row of resamples at ranks level × (count + 1); sorts in place.

    Of two levels with resamples in between, these need not be sorted.
    """
    count = resamples.shape[1]
    low, high = (
        np.clip(level * (count + 1), 1, count) - 1 for level in (low_level, high_level)
    )
    end, start = int(low.max()) + 2, int(high.min())
    if end < start:
        resamples.partition((end - 1, start), axis=1)
        resamples[:, :end].sort(axis=1)
        resamples[:, start:].sort(axis=1)
    else:
        resamples.sort(axis=1)
    row = np.arange(resamples.shape[0])
    limits = []
    for rank in (low, high):
        below = np.floor(rank).astype(np.int64)
        left = resamples[row, below]
        right = resamples[row, np.minimum(below + 1, count - 1)]
        limits.append(left + (rank - below) * (right - left))
    return limits[0], limits[1]


def wilson_limits(
    k: float, n: float, confidence: float = 0.95, *, continuity: bool = True
) -> tuple[float, float]:
    """Return the Wilson interval of a fraction k / n, which need not be whole numbers.

    By default it is the one with continuity correction.

    References
    ----------
    R. G. Newcombe, Statist. Med. 17, 857 (1998),
    doi:10.1002/(SICI)1097-0258(19980430)17:8<857::AID-SIM777>3.0.CO;2-E
    """
    p, q = k / n, 1 - k / n
    z = _normal_quantile(confidence)
    middle, width = 2 * k + z**2, 2 * (n + z**2)
    if not continuity:
        half = z * np.sqrt(z**2 + 4 * k * q)
        return float((middle - half) / width), float((middle + half) / width)
    low = middle - 1 - z * np.sqrt(max(0.0, z**2 - 2 - 1 / n + 4 * p * (n * q + 1)))
    high = middle + 1 + z * np.sqrt(max(0.0, z**2 + 2 - 1 / n + 4 * p * (n * q - 1)))
    return (
        0.0 if k == 0 else max(0.0, float(low / width)),
        1.0 if k == n else min(1.0, float(high / width)),
    )


def clopper_pearson_limits(
    successes: Floats, trials: Floats, confidence: float
) -> tuple[Floats, Floats]:
    """Return the exact confidence interval of each of several fractions."""
    tail = (1 - confidence) / 2
    # at 0 and n, where the beta function has no such parameter, the limits are known
    failures = trials - successes
    low = special.betaincinv(np.where(successes > 0, successes, 1), failures + 1, tail)
    high = special.betaincinv(
        successes + 1, np.where(failures > 0, failures, 1), 1 - tail
    )
    return (
        np.where(successes == 0, 0.0, low),
        np.where(successes == trials, 1.0, high),
    )


@dataclass(frozen=True)
class Estimate(Result):
    """A number with its confidence interval.

    Attributes
    ----------
    value : float
        The number.
    low, high : float
        The limits of its interval.
    confidence : float
        The coverage of the interval.
    """

    value: float
    low: float
    high: float
    confidence: float

    def zeta(self, reference: float) -> float:
        """Return the zeta-score against what the number should be.

        It is the distance from the reference in units of that from the number to its
        limit on the reference's side; between -1 and 1 is valid.

        Parameters
        ----------
        reference : float
            What the number should be.

        References
        ----------
        P. Pernot, arXiv:2403.00423 (2024).
        """
        off = self.value - reference
        half = abs(self.value - (self.low if off >= 0 else self.high))
        if half == 0:
            return 0.0 if off == 0 else float(np.copysign(np.inf, off))
        return off / half

    def __str__(self) -> str:
        """Return the number and its interval."""
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"

    @property
    def signed(self) -> str:
        """The same of a difference, with signs."""
        return f"{self.value:+.3g} [{self.low:+.3g}, {self.high:+.3g}]"

    def _cells(self) -> Cells:
        cells = tuple(f"{x:.4g}" for x in (self.value, self.low, self.high))
        return ("value", "low", "high"), [cells]


def bca_of_means(
    values: Floats,
    statistic: Callable[[Floats], Floats],
    *,
    confidence: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> Estimate:
    """Return a function of the means of several columns, with its BCa interval.

    `values` has a row for each column; `statistic` takes an array whose rows are the
    means, of one resample or of many. Rows beyond ten thousand are first summed in as
    many random parts, which are then resampled: that is as good, and takes no longer.
    """
    n_rows = values.shape[1]
    part = np.arange(n_rows)
    if n_rows > _MOST_PARTS:
        part = rng.permutation(n_rows) % _MOST_PARTS
        values = np.array([np.bincount(part, weights=column) for column in values])
    sizes = np.bincount(part)
    total = values.sum(axis=1, keepdims=True)
    value = statistic(total / n_rows)
    means = np.empty((values.shape[0], n_resamples))
    for which, weights in bootstrap_weights(sizes.size, rng, n_resamples):
        means[:, which] = (values @ weights) / (sizes @ weights)
    # the influence of a part is what the value gains from it
    lacking = statistic((total - values) / (n_rows - sizes))
    centred = lacking.mean() - lacking
    largest = np.abs(centred).max()
    centred /= largest if largest > 0 else 1.0  # or cubes might leave the range
    resampled, quantile = statistic(means)[None], _normal_quantile(confidence)
    low, high = bca_limits(resampled, value, centred[None], quantile)
    return Estimate(float(value[0]), float(low[0]), float(high[0]), confidence)


@dataclass(frozen=True)
class Average:
    """The mean of z², its interval, and the law behind it.

    Attributes
    ----------
    zms, low, high : float
        The mean of z² and the limits of its interval.
    level : float
        The coverage of the interval.
    nu, nu_low : float
        Degrees of freedom of the Student's t that fits best, and of the heaviest one
        that is not ruled out; infinite for normal errors.
    n_effective : float
        The number of independent rows that would determine the mean as well.
    """

    zms: float
    low: float
    high: float
    level: float
    nu: float
    nu_low: float
    n_effective: float

    @property
    def is_off(self) -> bool:
        """Whether the interval excludes 1."""
        return not self.low <= 1 <= self.high

    def __str__(self) -> str:
        """Return the mean and its interval."""
        return f"<Z²> = {self.zms:.2f} [{self.low:.2f}, {self.high:.2f}]"


def average_of(
    rows: Predictions,
    level: float,
    rng: np.random.Generator,
    rest: Predictions | None = None,
    sides: Predictions | None = None,
) -> Average:
    """Return the mean of z² of all rows, with an interval of that coverage.

    The mean of a sample of z² says little about rare, enormous errors that the sample
    does not have. Two intervals are made, and what is shown reaches as far as either:

    * the closed form from the set's own moments (ABC), which needs no law, but knows
      only the errors that are there;
    * that of a Student's t whose degrees of freedom were fitted to the set: the mean of
      z², divided by its true value, then has a known distribution. Its upper limit is
      that of the heaviest tail that the set does not rule out.

    A lower limit is also taken from sets whose largest z² were reduced, which can only
    make the mean smaller: a few more enormous errors never make uncertainties look
    better.

    Rows may have been chosen, for the size of their errors, from others: the `rest`.
    Then fewer tails are ruled out, and of skewed errors those of the side that has most
    of the sum of z² count. The rest tell how heavy tails may be, if their law is alike,
    but for its scale, and tails of the chosen rows, and of these with those at their
    `sides`, are not heavier.
    """
    z2, groups, weights = rows.z2, rows.group_codes, rows.weights
    mean = rows.mean(z2)
    if mean == 0:
        return Average(0.0, 0.0, 0.0, level, np.inf, np.inf, float(rows.total))
    low, high, n_effective = interval_of_all(z2, groups, level, weights)
    low = max(0.0, low)
    if rest is None:
        nu, nu_low = fit_nu(rows.z, weights)
    else:
        nu, nu_low = _tails_of_chosen(rows, rest, sides)
    upper = 0.5 + level / 2
    n = max(2, round(n_effective))
    low = min(low, mean / _mean_quantiles(nu, n, upper, rng)[1])
    high = max(high, mean / _mean_quantiles(nu_low, n, upper, rng)[0])
    for share in REDUCED:
        limited = np.minimum(z2, quantile_of(z2, 1 - share, weights))
        low = max(low, interval_of_all(limited, groups, level, weights)[0])
    return Average(mean, low, high, level, nu, nu_low, n_effective)


def _tails_of_chosen(
    rows: Predictions, rest: Predictions, sides: Predictions | None
) -> tuple[float, float]:
    """Return degrees of freedom as :func:`fit_nu` does, of rows that were chosen."""
    weights = rows.weights
    most = HEAVIER + CHOSEN * np.log1p(rest.total / rows.total)
    nu, nu_low = fit_nu(rows.z, weights, most)
    side = _heavier_side(rows.z, weights)
    if side is not None:
        nu_low = min(nu_low, fit_nu(rows.z[side], some_of(weights, side), most)[1])
    if _are_alike(rows.z, rest.z):
        known = fit_nu(rest.z, rest.weights)[1]
        beside = np.empty(0) if sides is None else _of_unit_size(sides.z)
        together = np.append(_of_unit_size(rows.z), beside)
        if min(nu, fit_nu(together)[0]) >= known:
            nu_low = max(nu_low, known)
    return nu, nu_low


def _heavier_side(z: Floats, weights: Floats | None) -> npt.NDArray[np.bool_] | None:
    """Return the z-scores of the side that has most of z², if sides are not alike.

    The test is that of symmetry about 0: the largest difference of the shares beyond x
    and beyond -x, for any x, is like that of a Wiener process from 0.

    References
    ----------
    C. C. Butler, Ann. Math. Statist. 40, 2209 (1969).
    """
    some = slice(None, None, -(-z.size // MOST_FITTED))
    signed = np.sign(z[some]) * (1 if weights is None else weights[some])
    order = np.argsort(-np.abs(z[some]))
    off = float(np.abs(np.cumsum(signed[order])).max())
    if off <= SKEWED * np.sqrt(np.sum(signed**2)):
        return None
    above = bool(np.sum(signed * z[some] ** 2) > 0)
    return z > 0 if above else z < 0


def _are_alike(z: Floats, others: Floats) -> bool:
    """Return whether z-scores may have the same law, but for their scale."""
    laws = _of_unit_size(z), _of_unit_size(others)
    return float(stats.ks_2samp(*laws, method="asymp").pvalue) > ALIKE


def _of_unit_size(z: Floats) -> Floats:
    return z / max(float(np.abs(z).sum()), 1e-300) * z.size


def fit_nu(
    z: Floats, weights: Floats | None = None, heavier: float = HEAVIER
) -> tuple[float, float]:
    """Return the degrees of freedom of a Student's t, and the least not ruled out.

    Errors of exactly 0 tell nothing about the tails, and do not count.
    """
    x, w = np.abs(z[z != 0]), None if weights is None else weights[z != 0]
    if x.size < 5:
        return np.inf, 2.01
    if x.size > MOST_FITTED:  # more do not make it more certain than it needs to be
        some = slice(None, None, -(-x.size // MOST_FITTED))
        if w is None:
            x = np.sort(x)[some]
        else:
            order = np.argsort(x)
            x, w = x[order][some], w[order][some]
    squares = (x / np.median(x)) ** 2
    n_rows = x.size if w is None else effective_number(w)

    def loss(log_excess: float) -> float:
        """Return minus twice the log-likelihood, with the best scale."""
        nu = 2 + np.exp(log_excess)
        variance = 0.5  # by a few steps of the fixed point of maximum likelihood
        for _ in range(12):
            variance = (nu + 1) * mean_of(squares / (nu + squares / variance), w)
        tails = (nu + 1) * mean_of(np.log1p(squares / (nu * variance)), w)
        constant = special.gammaln((nu + 1) / 2) - special.gammaln(nu / 2)
        return float(n_rows * (tails + np.log(nu * variance) - 2 * constant))

    found = optimize.minimize_scalar(
        loss, bounds=(-4, 9), method="bounded", options={"xatol": 0.02}
    )
    best, least = float(found.x), float(found.fun)
    low = -4.0
    if loss(low) - least > heavier:
        low = optimize.brentq(
            lambda value: loss(value) - least - heavier, low, best, xtol=0.02
        )
    nu, nu_low = (2 + float(np.exp(value)) for value in (best, low))
    return (np.inf if nu > LIGHT else nu), nu_low


def _mean_quantiles(
    nu: float, n: int, upper: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Return two quantiles, 1 - upper and upper, of the mean of n z² of unit mean.

    They are squares of a Student's t. The largest squares decide: those beyond a
    threshold are drawn one by one, and the sum of the others is as good as normal.
    """
    levels = [1 - upper, upper]
    if nu > LIGHT:
        low, high = stats.chi2.ppf(levels, n) / n
        return float(low), float(high)
    unit = (nu - 2) / nu
    share = min(1.0, LARGEST_VALUES / n)
    # t² as a function of its upper tail probability, on a fine grid
    tail = np.geomspace(1e-12, share, 1000)
    squares = special.stdtrit(nu, 1 - tail / 2) ** 2 * unit
    if share == 1.0:
        counts, body = np.full(SIMULATED, n), np.zeros(SIMULATED)
    else:
        counts = rng.binomial(n, share, SIMULATED)
        # the moments of what is below the threshold
        p = (np.arange(5000) + 0.5) / 5000 * (1 - share)
        below = special.stdtrit(nu, 0.5 + p / 2) ** 2 * unit
        rest = n - counts
        noise = rng.standard_normal(SIMULATED)
        body = rest * below.mean() + np.sqrt(rest) * below.std() * noise
    drawn = (1 - rng.random(int(counts.sum()))) * share  # never 0
    logs = np.log(np.maximum(squares, 1e-300))
    values = np.exp(np.interp(np.log(drawn), np.log(tail), logs))
    ends = np.cumsum(counts)
    tails: Any = np.add.reduceat(np.append(values, 0.0), ends - counts)
    means = (body + np.where(counts > 0, tails, 0.0)) / n
    low, high = np.quantile(means, levels)
    return float(low), float(high)
