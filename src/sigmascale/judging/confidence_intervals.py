"""Confidence intervals of the mean of each bin, and of a fraction.

All methods answer for every bin at once. Bins of one size share their bootstrap
weights, so that the resampled means of all of them are one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, get_args

import numpy as np
from scipy import special, stats

from .._support.checks import Floats, Ints, check_count, check_fraction
from ..exceptions import InvalidInputError

IntervalMethod = Literal["bca", "bootstrap-t", "student", "moments"]
METHODS: tuple[str, ...] = get_args(IntervalMethod)
RESAMPLED = ("bca", "bootstrap-t")  # these depend on the order of rows in a bin
MIN_ROWS = 5  # fewer rows in a bin say next to nothing about their mean's spread

# Bootstrap weights are made in blocks that stay in the cache, but of so many resamples
# that the values of large bins are not read from memory again and again.
_LARGEST_WEIGHTS = 2**14
_LEAST_RESAMPLES = 32
_MEANS_AT_ONCE = 2**21  # resampled means, of some bins, that are held in memory

Weights = tuple[slice, Floats]  # some of the resamples, and their weights


def wilson_interval(
    successes: int, trials: int, *, confidence: float = 0.95
) -> tuple[float, float]:
    """Return the Wilson interval, with continuity correction, of a fraction.

    Parameters
    ----------
    successes, trials : int
        Number of successes and of trials.
    confidence : float, default 0.95
        Coverage of the interval.

    References
    ----------
    R. G. Newcombe, Statist. Med. 17, 857 (1998),
    doi:10.1002/(SICI)1097-0258(19980430)17:8<857::AID-SIM777>3.0.CO;2-E

    Examples
    --------
    >>> low, high = wilson_interval(88, 100)
    >>> round(low, 4), round(high, 4)
    (0.796, 0.9337)
    """
    k, n = check_count(successes, "successes", least=0), check_count(trials, "trials")
    if k > n:
        msg = f"`successes` must not exceed `trials`; found {k} of {n}."
        raise InvalidInputError(msg)
    return wilson_limits(k, n, check_fraction(confidence, "confidence"))


def wilson_limits(k: float, n: float, confidence: float) -> tuple[float, float]:
    """Return the Wilson interval of checked numbers, which need not be whole."""
    p, q = k / n, 1 - k / n
    z = _normal_quantile(0.5 + confidence / 2)
    middle, width = 2 * k + z**2, 2 * (n + z**2)
    low = middle - 1 - z * np.sqrt(max(0.0, z**2 - 2 - 1 / n + 4 * p * (n * q + 1)))
    high = middle + 1 + z * np.sqrt(max(0.0, z**2 + 2 - 1 / n + 4 * p * (n * q - 1)))
    return (
        0.0 if k == 0 else max(0.0, float(low / width)),
        1.0 if k == n else min(1.0, float(high / width)),
    )


def moments_interval(
    n: Ints, sum1: Floats, sum2: Floats, sum3: Floats, *, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """Return the ABC interval of a mean from the sums of x, x² and x³.

    With a = Σ(x−m)³ / (6 (Σ(x−m)²)^1.5), w = a + z_α and λ = w / (1 − a w)², the limit
    is m + λ sqrt(Σ(x−m)²) / n: what the BCa bootstrap tends to, without resampling.

    References
    ----------
    T. DiCiccio and B. Efron, Biometrika 79, 231 (1992), doi:10.1093/biomet/79.2.231
    """
    mean = sum1 / n
    second = np.maximum(0.0, sum2 - n * mean**2)
    third = sum3 - 3 * mean * sum2 + 2 * n * mean**3
    quantile = _normal_quantile(0.5 + confidence / 2)
    return abc_limits(n, mean, second, third, quantile)


def abc_limits(
    n: Ints | Floats,
    mean: Floats,
    second: Floats,
    third: Floats,
    quantile: float | Floats,
) -> tuple[Floats, Floats]:
    """Return ABC limits from the sums of squares and cubes of what is summed."""
    spread = np.sqrt(second)
    # the ratio is at most 1 in size; rounding must not push it beyond
    a = np.clip(ratio_or_zero(third, spread**3), -1, 1) / 6
    low, high = (
        mean + w / denominator(a, w) ** 2 * spread / n
        for w in (a - quantile, a + quantile)
    )
    return np.maximum(0.0, low), high


def student_interval(
    values: Floats, sizes: Ints, *, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """Return mean ± t × standard error for consecutive bins of `values`."""
    mean, error = _mean_and_standard_error(values, sizes)
    half = stats.t.ppf(0.5 + confidence / 2, np.maximum(1, sizes - 1)) * error
    return np.maximum(0.0, mean - half), mean + half


def bca_interval(
    values: Floats,
    sizes: Ints,
    rng: np.random.Generator,
    *,
    confidence: float = 0.95,
    n_resamples: int = 1500,
) -> tuple[Floats, Floats]:
    """Return the bias-corrected and accelerated bootstrap interval of each bin's mean.

    References
    ----------
    T. J. DiCiccio and B. Efron, Statist. Sci. 11, 189 (1996),
    doi:10.1214/ss/1032280214
    """
    low, high = np.empty(sizes.size), np.empty(sizes.size)
    quantile = _normal_quantile(0.5 + confidence / 2)
    for which, rows, weights in _to_resample(values, sizes, rng, n_resamples):
        mean = rows.mean(axis=1)
        means, _ = _resample(rows, weights, n_resamples)
        low[which], high[which] = bca_limits(
            means, mean, rows - mean[:, None], quantile
        )
    return low, high


def bca_limits(
    means: Floats, mean: Floats, centred: Floats, quantile: float
) -> tuple[Floats, Floats]:
    """Return BCa limits of bins, a row each, from resampled means and influences."""
    n_resamples = means.shape[1]
    below = 0.5 * (
        (means < mean[:, None]).sum(axis=1) + (means <= mean[:, None]).sum(axis=1)
    )
    bias = special.ndtri(np.clip(below, 0.5, n_resamples - 0.5) / n_resamples)
    squares = centred * centred
    spread = np.sqrt(squares.sum(axis=1))
    a = ratio_or_zero((squares * centred).sum(axis=1), 6 * spread**3)
    levels = (
        special.ndtr(bias + w / denominator(a, w))
        for w in (bias - quantile, bias + quantile)
    )
    return order_statistics(means, *levels)


def bootstrap_t_interval(
    values: Floats,
    sizes: Ints,
    rng: np.random.Generator,
    *,
    confidence: float = 0.95,
    n_resamples: int = 1500,
) -> tuple[Floats, Floats]:
    """Return the studentised bootstrap interval of each bin's mean.

    It keeps its coverage better than BCa when z is heavy-tailed.
    """
    low, high = np.empty(sizes.size), np.empty(sizes.size)
    for which, rows, weights in _to_resample(values, sizes, rng, n_resamples):
        n = rows.shape[1]
        mean = rows.mean(axis=1, keepdims=True)
        # centred values, so that the variance of a resample does not cancel
        first, second = _resample(rows - mean, weights, n_resamples, squares=True)
        spread = np.sqrt(np.maximum(0.0, second - first**2))
        own = rows.std(axis=1, keepdims=True)
        # a resample of one value repeated has no spread: its t is as extreme as can be
        floor = 1e-3 * np.where(own > 0, own, 1)
        t = first / np.maximum(spread, floor)
        levels = (0.5 - confidence / 2, 0.5 + confidence / 2)
        lower, upper = order_statistics(t, *(np.full(t.shape[0], p) for p in levels))
        # t is in units of the spread: both it and the resample's carry sqrt(n)
        low[which] = (mean - upper[:, None] * own)[:, 0] if n > 1 else mean[:, 0]
        high[which] = (mean - lower[:, None] * own)[:, 0] if n > 1 else mean[:, 0]
    return np.maximum(0.0, low), high


def mean_interval(
    method: IntervalMethod,
    values: Floats,
    sizes: Ints,
    *,
    confidence: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return limits of the means of consecutive bins, none empty, of `values` >= 0."""
    match method:
        case "student":
            return student_interval(values, sizes, confidence=confidence)
        case "moments":
            starts = np.cumsum(sizes) - sizes
            squares = values * values
            powers = (values, squares, squares * values)
            sums = (np.add.reduceat(power, starts) for power in powers)
            return moments_interval(sizes, *sums, confidence=confidence)
    resampled = bca_interval if method == "bca" else bootstrap_t_interval
    return resampled(values, sizes, rng, confidence=confidence, n_resamples=n_resamples)


def _normal_quantile(level: float) -> float:
    return float(special.ndtri(level))


def ratio_or_zero(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; 0 where the denominator is 0, or too small to be told from it."""
    result = np.zeros_like(numerator)
    return np.divide(numerator, denominator, out=result, where=denominator > 0)


def denominator(a: Floats, w: Floats) -> Floats:
    """Return 1 − a w, which is positive for every confidence below 99.999 %."""
    return np.maximum(1 - a * w, 1e-3)


def _mean_and_standard_error(values: Floats, sizes: Ints) -> tuple[Floats, Floats]:
    starts = np.cumsum(sizes) - sizes
    mean = np.add.reduceat(values, starts) / sizes
    square = np.add.reduceat((values - np.repeat(mean, sizes)) ** 2, starts)
    return mean, np.sqrt(square / (sizes * np.maximum(1, sizes - 1)))


def bins_by_size(values: Floats, sizes: Ints) -> Iterator[tuple[Ints, Floats]]:
    """Yield the bins of each size: their numbers, and their values one bin a row."""
    starts = np.cumsum(sizes) - sizes
    for size in np.unique(sizes):
        which = np.flatnonzero(sizes == size)
        yield which, values[starts[which][:, None] + np.arange(size)]


def _to_resample(
    values: Floats, sizes: Ints, rng: np.random.Generator, n_resamples: int
) -> Iterator[tuple[Ints, Floats, Iterable[Weights]]]:
    """Yield some bins of one size at a time, and the weights that they all get.

    Bins may be nearly as many as rows, and each has a mean for every resample.
    """
    at_once = max(1, _MEANS_AT_ONCE // n_resamples)
    for which, rows in bins_by_size(values, sizes):
        weights: Iterable[Weights] = bootstrap_weights(rows.shape[1], rng, n_resamples)
        if which.size > at_once:
            weights = list(weights)
        for start in range(0, which.size, at_once):
            some = slice(start, start + at_once)
            yield which[some], rows[some], weights


def _resample(
    rows: Floats, drawn: Iterable[Weights], n_resamples: int, *, squares: bool = False
) -> tuple[Floats, Floats]:
    """Return bootstrap means (bins × resamples) of values and, if asked, squares."""
    n = rows.shape[1]
    first = np.empty((rows.shape[0], n_resamples))
    second = np.empty_like(first) if squares else first
    shares = rows / n
    squared = shares * rows if squares else shares
    for which, weights in drawn:
        np.matmul(shares, weights, out=first[:, which])
        if squares:
            np.matmul(squared, weights, out=second[:, which])
    return first, second


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
    return _interpolate(resamples, low), _interpolate(resamples, high)


def _interpolate(ordered: Floats, rank: Floats) -> Floats:
    below = np.floor(rank).astype(np.int64)
    above = np.minimum(below + 1, ordered.shape[1] - 1)
    row = np.arange(ordered.shape[0])
    left: Floats = ordered[row, below]
    result: Floats = left + (rank - below) * (ordered[row, above] - left)
    return result
