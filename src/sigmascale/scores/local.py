"""Local calibration: <Z²> of each bin of a variable, with its confidence interval.

Intervals are those of the BCa bootstrap, or of its closed form from three moments.
Bins of equal size share their bootstrap weights, so that the resampled means of all of
them are one matrix product. Rows that come in groups, or have weights, get the interval
of a mean that verdicts have, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy import special

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
from .intervals import abc_limits, mean_interval, renumbered, wilson_limits

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
        Rows with known errors, numbers or vectors. If they have weights, bins have
        equal weights.
    by : str or int, default "u"
        The column to bin by: a number makes equal-size bins, a label one bin each.
    n_bins : int, optional
        Number of bins; by default they have 30 rows (or groups) or more, and there are
        at most 100. Labels and bins with fewer than 5 rows, or rows of fewer than 5
        groups, are left out, with a warning.
    method : {"bca", "moments"}, default "bca"
        How intervals are made: by the bias-corrected and accelerated bootstrap, or by
        its closed form (ABC), which agrees with it. Bins of 500 rows or more get the
        latter in any case. If rows have groups or weights, intervals count groups
        rather than rows, and effective rows, by a closed form of their own.
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
    n_units = (
        p.n_effective if groups is None else min(p.n_effective, int(groups.max()) + 1)
    )
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
    n_units = p.n_rows if p.groups is None else int(p.groups.max()) + 1
    if n_units < 2:
        kind = "rows" if p.groups is None else "groups"
        msg = f"An interval needs at least 2 {kind}; found {n_units}. Add {kind}."
        raise InvalidInputError(msg)
    closed = replace(settings, method="moments")
    everything = np.arange(p.n_rows), np.array([p.n_rows])
    together = Bins("", p.y_std, *everything, p.weights)
    low, high = mean_limits(p.z2, together, p.groups, closed, rng)
    overall = p.mean(p.z2), float(low[0]), float(high[0])
    results = {}
    for name, each in bins.items():
        each, n_groups = _large_enough(each, p.groups)
        low, high = mean_limits(p.z2, each, p.groups, settings, rng)
        valid = (low <= 1) & (high >= 1)
        count = int(np.count_nonzero(valid))
        first, middle, last = each.first_middle_last()
        results[name] = LocalZMS(
            name=name,
            zms=each.means(p.z2),
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
            n_groups=n_groups,
        )
    return results


def _large_enough(bins: Bins, groups: Ints | None) -> tuple[Bins, Ints | None]:
    """Return bins with enough rows, and groups, for an interval; and their groups."""
    n_groups = None
    if groups is not None:
        n_groups = np.array([np.unique(groups[rows]).size for rows in bins.rows])
    units = bins.sizes if n_groups is None else n_groups
    enough = units >= MIN_ROWS
    if units.size == 1 or enough.all():
        return bins, n_groups
    kind = "rows" if groups is None else "groups"
    if not enough.any():
        msg = (
            f"A bin of `{bins.name}` must have at least {MIN_ROWS} {kind}, for an "
            f"interval; the largest of {units.size} has {units.max()}. "
            + ("Merge labels." if bins.labels is not None else "Pass fewer `n_bins`.")
        )
        raise InvalidInputError(msg)
    warn(
        f"{np.count_nonzero(~enough)} of {enough.size} bins of `{bins.name}` have less "
        f"than {MIN_ROWS} {kind}, too few for an interval, and are left out.",
        FewerBinsWarning,
        stacklevel=3,
    )
    return bins.some(enough), None if n_groups is None else n_groups[enough]


# -- intervals of the means of bins ----------------------------------------------------


def mean_limits(
    values: Floats,
    bins: Bins,
    groups: Ints | None,
    settings: IntervalSettings,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return limits of the means of bins, of values that are at least 0."""
    if groups is not None or bins.weights is not None:
        found = [
            mean_interval(
                values[rows],
                confidence=settings.confidence,
                groups=renumbered(groups, rows),
                weights=weights,
                skewed=True,
            )
            for rows, weights in zip(bins.rows, bins.weights_of_rows, strict=True)
        ]
        low, high = np.array([[each.low, each.high] for each in found]).T
        return np.maximum(0.0, low), high
    x, sizes = values[bins.order], bins.sizes
    starts = np.cumsum(sizes) - sizes
    quantile = normal_quantile(settings.confidence)
    # of many rows, the bootstrap gives what its closed form gives at once
    if settings.method == "moments" or sizes.min() >= LARGE_BIN:
        mean = bins.means(values)
        d = x - np.repeat(mean, sizes)
        second, third = (np.add.reduceat(d**k, starts) for k in (2, 3))
        low, high = abc_limits(sizes, mean, second, third, quantile)
        return np.maximum(0.0, low), high
    low, high = np.empty(sizes.size), np.empty(sizes.size)
    at_once = max(1, _MEANS_AT_ONCE // settings.n_resamples)
    for size in np.unique(sizes).tolist():
        same = np.flatnonzero(sizes == size)
        drawn = list(bootstrap_weights(size, rng, settings.n_resamples))
        # bins may be nearly as many as rows, and each has a mean for every resample
        for which in np.array_split(same, -(-same.size // at_once)):
            rows = x[starts[which][:, None] + np.arange(size)]
            means = np.empty((which.size, settings.n_resamples))
            for some, weights in drawn:
                np.matmul(rows / size, weights, out=means[:, some])
            mean = rows.mean(axis=1)
            low[which], high[which] = bca_limits(
                means, mean, rows - mean[:, None], quantile
            )
    return np.maximum(0.0, low), high


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
