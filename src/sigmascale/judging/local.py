"""Local calibration: <Z²> of each bin of a variable, with its confidence interval.

All that a bin knows are its groups of rows that belong together: the sum S and the
number (or weight) n of the rows of each. The mean is m = ΣS / Σn, and d = S − m n is
what a group contributes to its error. A row that belongs to no other is a group of one,
whose n needs no array: its d is its deviation from the mean.

Intervals are those of the BCa bootstrap, or of its closed form from three moments.
Bins of equally many groups share their bootstrap weights, so that the resampled means
of all of them are one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from .._support.checks import (
    Floats,
    Ints,
    check_choice,
    check_count,
    check_fraction,
    rng_from,
)
from .._support.labels import label_text
from .._support.notices import warn
from .._support.render import Cells, Result
from ..bins import Bins, bins_of, check_ties, cut
from ..exceptions import FewerBinsWarning, InvalidInputError
from ..predictions import Predictions, check_predictions
from .intervals import abc_limits, wilson_limits

Method = Literal["bca", "moments"]
MIN_ROWS = 5  # fewer rows in a bin say next to nothing about their mean's spread
LARGE_BIN = 500  # rows from which the closed form replaces the bootstrap

# Bootstrap weights are made in blocks that stay in the cache, but of so many resamples
# that the values of large bins are not read from memory again and again.
_LARGEST_WEIGHTS = 2**14
_LEAST_RESAMPLES = 32
_MEANS_AT_ONCE = 2**21  # resampled means, of some bins, that are held in memory


@dataclass(frozen=True, kw_only=True)
class LocalZMS(Result):
    """The mean squared z-score of each bin, with its interval; the target is 1.

    Attributes
    ----------
    name : str
        The variable that was binned.
    zms, low, high : array of shape (n_bins,)
        <Z²> of each bin and the limits of its confidence interval.
    valid : array of bool, shape (n_bins,)
        Whether the interval contains 1.
    n : array of int, shape (n_bins,)
        Rows in each bin.
    x, x_min, x_max : array of shape (n_bins,)
        Median and range of the variable in each bin; of labels, the labels.
    fraction_valid : float
        Fraction of valid bins. The target is about `confidence`; where errors have
        heavy tails, intervals hold less than they claim: about 0.90 of 0.95 with
        Student's t of 5 degrees of freedom and 100 rows a bin.
    fraction_interval : tuple of float
        Its interval (Wilson, with continuity correction).
    overall : tuple of float
        <Z²> of all rows, with the limits of its interval.
    confidence : float
        Coverage of all intervals.
    method : str
        How the intervals of the bins were computed.
    n_groups : array of int, shape (n_bins,), or None
        Groups that have rows in each bin, if rows came in groups.
    """

    name: str
    zms: Floats
    low: Floats
    high: Floats
    valid: npt.NDArray[np.bool_]
    n: Ints
    x: npt.NDArray[Any]
    x_min: npt.NDArray[Any]
    x_max: npt.NDArray[Any]
    fraction_valid: float
    fraction_interval: tuple[float, float]
    overall: tuple[float, float, float]
    confidence: float
    method: str
    n_groups: Ints | None = None

    @property
    def is_labelled(self) -> bool:
        """Whether the bins are those of labels rather than ranges of a number."""
        return self.x.dtype.kind != "f"

    def _cells(self) -> Cells:
        first = map(label_text if self.is_labelled else "{:.4g}".format, self.x_min)
        rows = [
            (
                start,
                f"{self.n[i]}",
                f"{self.zms[i]:.3f}",
                f"[{self.low[i]:.3f}, {self.high[i]:.3f}]",
                "yes" if self.valid[i] else "no",
            )
            for i, start in enumerate(first)
        ]
        return (f"{self.name} from", "rows", "<Z²>", "interval", "valid"), rows


def local_zms(
    p: Predictions,
    *,
    by: str | int = "u",
    n_bins: int | None = None,
    method: Method = "bca",
    ties: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 1500,
    rng: int | np.random.Generator | None = 0,
) -> LocalZMS:
    """Return <Z²> of each bin with its confidence interval; every target is 1.

    Parameters
    ----------
    p : Predictions
        Rows with known errors, numbers or vectors. If they have groups, intervals count
        groups rather than rows; if they have weights, bins have equal weights, and a
        row counts as one, however large its weight.
    by : str or int, default "u"
        The column to bin by: a number makes equal-size bins, a label one bin each.
    n_bins : int, optional
        Number of bins; by default they have 30 rows (or groups) or more, and there are
        at most 100. Labels and bins with fewer than 5 rows, or rows of fewer than 5
        groups, are left out, with a warning.
    method : {"bca", "moments"}, default "bca"
        How intervals are made: by the bias-corrected and accelerated bootstrap, or by
        its closed form (ABC), which agrees with it. Bins of 500 rows or more get the
        latter in any case.
    ties : array-like of shape (n,), optional
        Orders the rows with equal `by`. By default the uncertainty.
    confidence : float, default 0.95
        Coverage of the intervals.
    n_resamples : int, default 1500
        Bootstrap draws of "bca".
    rng : int, Generator or None, default 0
        Seed of the bootstrap: the same data get the same intervals.

    Returns
    -------
    LocalZMS

    References
    ----------
    P. Pernot, arXiv:2309.06240 (2023); T. DiCiccio and B. Efron, Biometrika 79, 231
    (1992), doi:10.1093/biomet/79.2.231

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 10_000)
    >>> p = ss.Predictions(y_std=u, error=rng.normal(scale=u))
    >>> ss.scores.local_zms(p).fraction_valid
    0.95
    """
    p = check_predictions(p, complete=True)
    groups = p.groups
    n_units = p.total if groups is None else min(p.total, int(groups.max()) + 1)
    settings = IntervalSettings.checked(method, confidence, n_resamples)
    order = check_ties(ties, p)
    bins = cut(p, bins_of(n_bins, n_units), by=by, ties=order, min_size=MIN_ROWS)
    (found,) = local_zms_of(p, bins, settings, rng_from(rng)).values()
    return found


@dataclass(frozen=True)
class IntervalSettings:
    """How intervals of means are made."""

    method: Method = "bca"
    confidence: float = 0.95
    n_resamples: int = 1500

    @classmethod
    def checked(
        cls, method: Any, confidence: Any, n_resamples: Any
    ) -> IntervalSettings:
        """Return checked settings."""
        return cls(
            check_choice(method, "method", get_args(Method)),  # type: ignore[arg-type]
            check_fraction(confidence, "confidence"),
            check_count(n_resamples, "n_resamples", least=20),
        )


def local_zms_of(
    p: Predictions,
    bins: Mapping[str, Bins],
    settings: IntervalSettings,
    rng: np.random.Generator,
) -> dict[str, LocalZMS]:
    """Return the local <Z²> of checked rows in the bins of some variables."""
    groups = p.groups
    n_units = p.n_rows if groups is None else int(groups.max()) + 1
    if n_units < 2:
        kind = "rows" if groups is None else "groups"
        msg = f"An interval needs at least 2 {kind}; found {n_units}. Add {kind}."
        raise InvalidInputError(msg)
    everything = np.arange(p.n_rows), np.array([p.n_rows])
    together = Bins("", p.y_std, *everything, p.weights)
    of_all = GroupSums.of_bins(together, p.z2, groups)
    low, high = of_all.moments_limits(settings.confidence)
    overall = float(of_all.mean[0]), float(low[0]), float(high[0])
    results = {}
    for name, each in bins.items():
        sums = GroupSums.of_bins(each, p.z2, groups)
        if (enough := _enough(sums.sizes, each, groups)) is not None:
            each = each.some(enough)
            sums = GroupSums.of_bins(each, p.z2, groups)
        low, high = sums.limits(settings, rng)
        valid = (low <= 1) & (high >= 1)
        count = int(np.count_nonzero(valid))
        first, middle, last = each.first_middle_last()
        results[name] = LocalZMS(
            name=name,
            zms=sums.mean,
            low=low,
            high=high,
            valid=valid,
            n=each.sizes,
            x=middle,
            x_min=first,
            x_max=last,
            fraction_valid=count / valid.size,
            fraction_interval=wilson_limits(count, valid.size, settings.confidence),
            overall=overall,
            confidence=settings.confidence,
            method=settings.method,
            n_groups=None if groups is None else sums.sizes,
        )
    return results


def _enough(
    sizes: Ints, bins: Bins, groups: Ints | None
) -> npt.NDArray[np.bool_] | None:
    """Return which bins are large enough for an interval, unless all are; warn."""
    if sizes.size == 1 or (groups is None and bins.labels is None):
        return None
    enough: npt.NDArray[np.bool_] = sizes >= MIN_ROWS
    kind = "rows" if groups is None else "groups"
    if not enough.any():
        msg = (
            f"A bin of `{bins.name}` must have at least {MIN_ROWS} {kind}, for an "
            f"interval; the largest of {sizes.size} has {sizes.max()}. "
            + ("Merge labels." if bins.labels is not None else "Pass fewer `n_bins`.")
        )
        raise InvalidInputError(msg)
    if enough.all():
        return None
    warn(
        f"{np.count_nonzero(~enough)} of {enough.size} bins of `{bins.name}` have less "
        f"than {MIN_ROWS} {kind}, too few for an interval, and are left out.",
        FewerBinsWarning,
        stacklevel=3,
    )
    return enough


# -- intervals of means of bins --------------------------------------------------------


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
    def of_bins(cls, bins: Bins, values: Floats, groups: Ints | None) -> GroupSums:
        """Sum the values of all rows by bin and group."""
        values, counts = values[bins.order], bins.weights
        if counts is not None:
            values = counts * values
        if groups is None:
            return cls(values, counts, bins.sizes)
        codes, groups = bins.codes, groups[bins.order]
        order = np.lexsort((groups, codes))
        codes, groups = codes[order], groups[order]
        new = np.append(True, (np.diff(codes) != 0) | (np.diff(groups) != 0))
        starts = np.flatnonzero(new)
        if counts is None:
            counts = np.diff(starts, append=values.size).astype(np.float64)
        else:
            counts = np.add.reduceat(counts[order], starts)
        n_groups = np.bincount(codes[starts], minlength=bins.sizes.size)
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
        return np.asarray(np.add.reduceat(self.counts, self.starts))

    @property
    def mean(self) -> Floats:
        """The mean of each bin."""
        mean: Floats = np.add.reduceat(self.totals, self.starts) / self.n
        return mean

    def limits(
        self, settings: IntervalSettings, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Return limits of the means of bins, of values that are at least 0."""
        # of many rows, the bootstrap gives what its closed form gives at once
        if settings.method == "moments" or self.sizes.min() >= LARGE_BIN:
            return self.moments_limits(settings.confidence)
        low, high = np.empty(self.sizes.size), np.empty(self.sizes.size)
        for which, totals, counts, weights in self._to_resample(
            rng, settings.n_resamples
        ):
            low[which], high[which] = _bca(totals, counts, weights, settings)
        return np.maximum(0.0, low), high

    def moments_limits(self, confidence: float) -> tuple[Floats, Floats]:
        """Return ABC limits, what those of the bootstrap tend to."""
        means: Floats = np.repeat(self.mean, self.sizes)
        quantile: Any = normal_quantile(confidence)
        if self.counts is not None:
            means, quantile = means * self.counts, few_groups(self.sizes, confidence)
        d = self.totals - means
        second = np.add.reduceat(d * d, self.starts)
        third = np.add.reduceat(d * d * d, self.starts)
        low, high = abc_limits(self.n, self.mean, second, third, quantile)
        return np.maximum(0.0, low), high

    def _to_resample(
        self, rng: np.random.Generator, n_resamples: int
    ) -> Iterator[tuple[Ints, Floats, Floats | None, list[tuple[slice, Floats]]]]:
        """Yield some bins of equally many groups at a time, and the weights they get.

        Bins may be nearly as many as rows, and each has a mean for every resample.
        """
        at_once, starts = max(1, _MEANS_AT_ONCE // n_resamples), self.starts
        for size in np.unique(self.sizes).tolist():
            bins = np.flatnonzero(self.sizes == size)
            weights = list(bootstrap_weights(size, rng, n_resamples))
            for start in range(0, bins.size, at_once):
                which = bins[start : start + at_once]
                rows = starts[which][:, None] + np.arange(size)
                counts = None if self.counts is None else self.counts[rows]
                yield which, self.totals[rows], counts, weights


def _bca(
    totals: Floats,
    counts: Floats | None,
    drawn: list[tuple[slice, Floats]],
    settings: IntervalSettings,
) -> tuple[Floats, Floats]:
    """Return BCa limits of bins with equally many groups, a bin a row."""
    n_groups = totals.shape[1]
    means = np.empty((totals.shape[0], settings.n_resamples))
    if counts is None:
        quantile = normal_quantile(settings.confidence)
        mean, shares = totals.mean(axis=1), totals / n_groups
        centred = totals - mean[:, None]
        for which, weights in drawn:
            np.matmul(shares, weights, out=means[:, which])
    else:
        quantile = float(few_groups(np.array([n_groups]), settings.confidence)[0])
        mean = totals.sum(axis=1) / counts.sum(axis=1)
        centred = totals - mean[:, None] * counts
        for which, weights in drawn:
            means[:, which] = (totals @ weights) / (counts @ weights)
    return bca_limits(means, mean, centred, quantile)


def bca_limits(
    resampled: Floats, value: Floats, centred: Floats, quantile: float
) -> tuple[Floats, Floats]:
    """Return BCa limits of values, a row each, from resampled ones and influences.

    The resampled ones are sorted in place.
    """
    count = resampled.shape[1]
    # the bias: how far the value is from the median of the resamples, ties by halves
    at = value[:, None]
    below = 0.5 * ((resampled < at).sum(axis=1) + (resampled <= at).sum(axis=1))
    bias = special.ndtri(np.clip(below, 0.5, count - 0.5) / count)
    # the acceleration: the skewness of the influences
    cubes, spread = (centred**3).sum(axis=1), np.sqrt((centred**2).sum(axis=1))
    a = np.divide(cubes, 6 * spread**3, out=np.zeros_like(cubes), where=spread > 0)
    resampled.sort(axis=1)
    row, limits = np.arange(value.size), []
    for w in (bias - quantile, bias + quantile):
        level = special.ndtr(bias + w / np.maximum(1 - a * w, 1e-3))
        # interpolated at the rank level × (count + 1)
        rank = np.clip(level * (count + 1), 1, count) - 1
        first = np.floor(rank).astype(np.int64)
        left = resampled[row, first]
        right = resampled[row, np.minimum(first + 1, count - 1)]
        limits.append(left + (rank - first) * (right - left))
    return limits[0], limits[1]


def bootstrap_weights(
    n: int, rng: np.random.Generator, n_resamples: int
) -> Iterator[tuple[slice, Floats]]:
    """Yield how often each of n is drawn (n × resamples), some resamples at a time."""
    block = max(_LEAST_RESAMPLES, _LARGEST_WEIGHTS // n)
    for start in range(0, n_resamples, block):
        count = min(block, n_resamples - start)
        drawn = rng.integers(n, size=(count, n))
        drawn += n * np.arange(count)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=count * n)
        weights = counts.reshape(count, n).T.astype(np.float64)
        yield slice(start, start + count), weights


def normal_quantile(confidence: float) -> float:
    """Return the quantile at the upper end of a central interval."""
    return float(special.ndtri(0.5 + confidence / 2))


def few_groups(sizes: Ints, confidence: float) -> Floats:
    """Return what takes the place of the normal quantile for so many groups.

    With few of them, the sum of d² is too small on average and varies much: it is
    sqrt(G / (G − 1)) times Student's quantile for G − 1 degrees of freedom.
    """
    df = np.maximum(1, sizes - 1)
    quantile: Floats = stats.t.ppf(0.5 + confidence / 2, df) * np.sqrt((df + 1) / df)
    return quantile
