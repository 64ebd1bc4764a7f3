"""Local statistics: one number of each bin of a variable, with its interval.

The field draws four of them (P. Pernot's ErrViewLib calls the pictures LZMS, LZM, LCP
and LRCE): <Z²>, the mean of Z, the coverage of intervals, and the relative calibration
error. Each is a function of means, so that one bootstrap and one closed form serve all
but coverage, which has the interval of a share.

Bins of equal size share their bootstrap weights, so that the resampled means of all of
them are one matrix product. Rows that come in groups, or have weights, get the interval
of a mean that counts groups, and effective rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from .._support.numerals import fixed, number
from .._support.render import Cells, Result
from .._support.weighting import mean_of
from ..exceptions import FewerBinsWarning, InvalidInputError
from ..predictions.bins import Bins, bins_of, check_ties, cut
from ..predictions.predictions import Predictions, check_predictions
from ..scores.intervals import (
    Estimate,
    Mean,
    abc_limits,
    renumbered,
    wilson_limits,
)
from ..scores.losses_by_row import is_held

Method = Literal["bca", "moments"]
Statistic = Literal["zms", "mean_z", "coverage", "rce"]
MIN_ROWS = 5  # fewer rows in a bin say next to nothing about their mean's spread
LARGE_BIN = 500  # rows from which the closed form replaces the bootstrap
STEPS_OF_A_WINDOW = 10  # by which a sliding window moves on

# Bootstrap weights are made in blocks that stay in the cache, but of so many resamples
# that the values of large bins are not read from memory again and again.
_LARGEST_WEIGHTS = 2**14
_LEAST_RESAMPLES = 32
_MEANS_AT_ONCE = 2**21  # resampled means, of some bins, that are held in memory


# -- the statistics --------------------------------------------------------------------


class MeanSquaredZ:
    """<Z²>, the local ZMS: the squared factor by which u is too small. Best is 1."""

    words = "⟨Z²⟩"
    least = 0.0
    target: float | None = 1.0  # None where it is the nominal coverage

    def columns(self, p: Predictions, coverage: float) -> list[Floats]:
        """Return the columns whose means matter."""
        return [p.z2]

    def of_means(self, means: Sequence[Any]) -> Any:
        """Return the statistic of the means of the columns."""
        return means[0]

    def by_row(self, columns: Sequence[Any], means: Sequence[Any]) -> Any:
        """Return what each row stands for: numbers whose mean is the statistic."""
        return columns[0]


class MeanZ(MeanSquaredZ):
    """<Z>, the local mean of z: a bias in units of u. Best is 0."""

    words = "⟨Z⟩"
    least = -np.inf
    target = 0.0

    def columns(self, p: Predictions, coverage: float) -> list[Floats]:
        """Return the columns whose means matter."""
        return [p.z]


class LocalCoverage(MeanSquaredZ):
    """The share of true values within intervals, the local PICP; best is `coverage`."""

    words = "coverage"
    target = None

    def columns(self, p: Predictions, coverage: float) -> list[Floats]:
        """Return the columns whose means matter."""
        return [is_held(p, coverage).astype(np.float64)]


class RelativeCalibrationError(MeanSquaredZ):
    """(RMV − RMSE) / RMV, the local RCE: positive where u is too large. Best is 0."""

    words = "RCE"
    least = -np.inf
    target = 0.0

    def columns(self, p: Predictions, coverage: float) -> list[Floats]:
        """Return the columns whose means matter, in units of the largest u."""
        unit = p.y_std.max()
        return [(p.y_std / unit) ** 2, p.squared_error / unit**2]

    def of_means(self, means: Sequence[Any]) -> Any:
        """Return the statistic of the means of the columns."""
        return 1 - np.sqrt(means[1] / means[0])

    def by_row(self, columns: Sequence[Any], means: Sequence[Any]) -> Any:
        """Return what each row stands for: numbers whose mean is the statistic.

        With r = RMSE / RMV, a row moves r by r/2 (E² / <E²> − u² / <u²>) over n.
        """
        u2, e2 = columns
        mean_u2, mean_e2 = means
        ratio = np.sqrt(mean_e2 / mean_u2)
        e2_over_mean = np.divide(e2, mean_e2, out=np.ones_like(e2), where=mean_e2 > 0)
        return 1 - ratio - ratio / 2 * (e2_over_mean - u2 / mean_u2)


STATISTICS: dict[str, MeanSquaredZ] = {
    "zms": MeanSquaredZ(),
    "mean_z": MeanZ(),
    "coverage": LocalCoverage(),
    "rce": RelativeCalibrationError(),
}


@dataclass(frozen=True, kw_only=True)
class LocalStatistics(Result):
    """A statistic of each bin, with its interval, and how many of these are valid.

    Attributes
    ----------
    statistic : str
        "zms", "mean_z", "coverage" or "rce".
    target : float
        Its best value: 1, 0, the level of the intervals, or 0.
    name : str
        The variable that was binned.
    value, low, high : array of shape (n_bins,)
        The statistic of each bin and the limits of its confidence interval.
    valid : array of bool, shape (n_bins,)
        Whether the interval contains the target.
    n : array of int, shape (n_bins,)
        Rows in each bin.
    x, x_min, x_max : array of shape (n_bins,)
        Median and range of the variable in each bin; of labels, the labels.
    fraction_valid : float
        f_v, the fraction of valid bins. It is about `confidence` if all is right;
        where errors have heavy tails, intervals hold less than they claim: about 0.90
        of 0.95 for "zms" with Student's t of 5 degrees of freedom and 100 rows a bin.
    fraction_interval : tuple of float
        Its binomial interval (Wilson, with continuity correction).
    overall : tuple of float
        The statistic of all rows, with the limits of its interval.
    confidence : float
        Coverage of all intervals.
    method : str
        How the intervals of the bins were computed.
    n_groups : array of int, shape (n_bins,), or None
        Groups that have rows in each bin, if rows came in groups.
    """

    statistic: str
    target: float
    name: str
    value: Floats
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

    @property
    def words(self) -> str:
        """The statistic as it is written beside an axis."""
        return STATISTICS[self.statistic].words

    def _cells(self) -> Cells:
        rows = []
        for i, start in enumerate(self.x_min):
            cells = (
                label_text(start) if self.is_labelled else number(start, 4),
                f"{self.n[i]}",
                fixed(self.value[i], 3),
                f"[{fixed(self.low[i], 3)}, {fixed(self.high[i], 3)}]",
                "yes" if self.valid[i] else "no",
            )
            rows.append(cells)
        words = self.words.replace("⟨", "<").replace("⟩", ">")
        return (f"{self.name} from", "rows", words, "interval", "valid"), rows


def local_statistics(
    p: Predictions,
    *,
    statistic: Statistic = "zms",
    by: str | int = "u",
    n_bins: int | None = None,
    slide: bool = False,
    coverage: float = 0.95,
    method: Method = "bca",
    ties: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 1500,
    rng: int | np.random.Generator | None = 0,
) -> LocalStatistics:
    """Return a statistic of each bin of a variable, with its confidence interval.

    The share of bins whose interval holds the target is f_v, the fraction of valid
    bins, with which the paper validates consistency (bins of u) and adaptivity (bins of
    a feature).

    Parameters
    ----------
    p : Predictions
        Rows with known errors, numbers or vectors. If they have weights, bins have
        equal weights.
    statistic : {"zms", "mean_z", "coverage", "rce"}, default "zms"
        <Z²>, whose target is 1 (LZMS analysis); the mean of Z, 0 (LZM); the share of
        true values within intervals, `coverage` (LCP); or (RMV − RMSE) / RMV, 0 (LRCE).
    by : str or int, default "u"
        The column to bin by: a number makes equal-size bins, a label one bin each.
    n_bins : int, optional
        Number of bins; by default they have 30 rows (or groups) or more, and there are
        at most 100. Labels and bins with fewer than 5 rows, or rows of fewer than 5
        groups, are left out, with a warning.
    slide : bool, default False
        Take a window as large as a bin that slides by a tenth of it, in place of bins.
    coverage : float, default 0.95
        The nominal coverage of the intervals of "coverage".
    method : {"bca", "moments"}, default "bca"
        How intervals are made: by the bias-corrected and accelerated bootstrap, or by
        its closed form (ABC), which agrees with it. Bins of 500 rows or more get the
        latter in any case. If rows have groups or weights, intervals count groups
        rather than rows, and effective rows, by a closed form of their own. Coverage
        has the binomial interval of a share (Wilson's, with continuity correction).
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
    LocalStatistics

    References
    ----------
    P. Pernot, arXiv:2309.06240 and arXiv:2310.11978 (2023); T. DiCiccio and B. Efron,
    Biometrika 79, 231 (1992), doi:10.1093/biomet/79.2.231

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 10_000)
    >>> p = ss.Predictions(y_std=u, error=rng.normal(scale=u))
    >>> ss.scores.local_statistics(p).fraction_valid
    0.95
    >>> ss.scores.local_statistics(p, statistic="coverage", n_bins=4).value.round(2)
    array([0.95, 0.95, 0.96, 0.95])
    """
    name = check_choice(statistic, "statistic", get_args(Statistic))
    p = check_predictions(p, complete=True, vectors=name != "mean_z")
    checked_method: Any = check_choice(method, "method", get_args(Method))
    settings = IntervalSettings(
        checked_method,
        check_fraction(confidence, "confidence"),
        check_count(n_resamples, "n_resamples", least=20),
        name,
    )
    coverage = check_fraction(coverage, "coverage")
    kind = "rows" if p.groups is None else "groups"
    n_units = p.n_rows if p.groups is None else int(p.groups.max()) + 1
    if n_units < 2:
        msg = f"An interval needs at least 2 {kind}; found {n_units}. Add {kind}."
        raise InvalidInputError(msg)

    # bins, or windows that overlap
    n_bins = bins_of(n_bins, min(p.n_effective, n_units))
    ties = check_ties(ties, p)
    if slide and p.is_labelled(p.position(by)):
        msg = f"`slide` needs numbers; {by!r} has labels. Leave `slide` out."
        raise InvalidInputError(msg)
    if slide:
        (whole,) = cut(p, 1, by=by, ties=ties).values()
        bins = _windows(whole, n_bins)
    else:
        (bins,) = cut(p, n_bins, by=by, ties=ties, min_size=MIN_ROWS).values()
    bins, n_groups = _large_enough(bins, p.groups)

    drawn = STATISTICS[name]
    columns = drawn.columns(p, coverage)
    target = coverage if drawn.target is None else drawn.target
    generator = rng_from(rng)
    value, low, high = binned_statistic(columns, bins, p.groups, settings, generator)
    fraction = valid_fraction(low, high, target, settings.confidence)
    fraction_interval = fraction.low, fraction.high
    if slide:  # as many count as would not overlap
        n_valid = round(fraction.value * n_bins)
        fraction_interval = wilson_limits(n_valid, n_bins, settings.confidence)

    # all rows are one bin, whose interval has the closed form
    whole = Bins("", p.y_std, np.arange(p.n_rows), np.array([p.n_rows]), p.weights)
    closed = replace(settings, method="moments")
    all_rows = binned_statistic(columns, whole, p.groups, closed, generator)
    of_all, low_of_all, high_of_all = (float(of_bin[0]) for of_bin in all_rows)
    smallest, median, largest = bins.first_middle_last()
    return LocalStatistics(
        statistic=name,
        target=target,
        name=bins.name,
        value=value,
        low=low,
        high=high,
        valid=(low <= target) & (high >= target),
        n=bins.sizes,
        x=median,
        x_min=smallest,
        x_max=largest,
        fraction_valid=fraction.value,
        fraction_interval=fraction_interval,
        overall=(of_all, low_of_all, high_of_all),
        confidence=settings.confidence,
        method=settings.method,
        n_groups=n_groups,
        _origin=p.origin,
    )


def _windows(whole: Bins, n_bins: int) -> Bins:
    """Return windows of a bin's size that slide along all rows: bins that overlap."""
    n_rows = whole.order.size
    size = max(min(MIN_ROWS, n_rows), n_rows // n_bins)
    step = max(1, size // STEPS_OF_A_WINDOW)
    # whole numbers
    starts = np.unique(np.append(np.arange(0, n_rows - size, step), n_rows - size))
    pieces = (starts[:, None] + np.arange(size)).ravel()
    return replace(
        whole,
        order=whole.order[pieces],
        sizes=np.full(starts.size, size),
        weights=None if whole.weights is None else whole.weights[pieces],
    )


@dataclass(frozen=True)
class IntervalSettings:
    """Which statistic, and how its intervals are made."""

    method: Method = "bca"
    confidence: float = 0.95
    n_resamples: int = 1500
    statistic: str = "zms"


CLOSED_FORM = IntervalSettings("moments")


def valid_fraction(
    low: Floats, high: Floats, target: float, confidence: float
) -> Estimate:
    """Return f_v, the share of intervals that hold a target, with its own interval."""
    n_valid = int(np.count_nonzero((low <= target) & (high >= target)))
    limits = wilson_limits(n_valid, low.size, confidence)
    return Estimate(n_valid / low.size, *limits, confidence)


def valid_fractions(p: Predictions, bins: Mapping[str, Bins]) -> dict[str, Estimate]:
    """Return f_v of <Z²> of some variables, where bins are large enough for intervals.

    Intervals have the closed form. Bins that are too small for one do not count.
    """
    fractions = {}
    rng = np.random.default_rng(0)  # which a closed form does not need
    for name, of_variable in bins.items():
        n_groups = _groups_of(of_variable, p.groups)
        n_units = of_variable.sizes if n_groups is None else n_groups
        is_large = n_units >= MIN_ROWS
        if not is_large.any():
            continue
        large = of_variable if is_large.all() else of_variable.some(is_large)
        _, low, high = binned_statistic([p.z2], large, p.groups, CLOSED_FORM, rng)
        fractions[name] = valid_fraction(low, high, 1.0, CLOSED_FORM.confidence)
    return fractions


def _groups_of(bins: Bins, groups: Ints | None) -> Ints | None:
    """Return how many groups have rows in each bin, if rows come in groups."""
    if groups is None:
        return None
    # whole numbers
    return np.array([np.unique(groups[rows]).size for rows in bins.rows])


def _large_enough(bins: Bins, groups: Ints | None) -> tuple[Bins, Ints | None]:
    """Return the bins that are large enough for an interval, and what units they have.

    These are the numbers of groups in each, or None where rows have no groups. The
    others are left out with a warning; if all are too small, this is refused.
    """
    n_groups = _groups_of(bins, groups)
    n_units = bins.sizes if n_groups is None else n_groups
    is_large = n_units >= MIN_ROWS
    if n_units.size == 1 or is_large.all():
        return bins, n_groups
    kind = "rows" if groups is None else "groups"
    if not is_large.any():
        remedy = "Merge labels." if bins.labels is not None else "Pass fewer `n_bins`."
        msg = (
            f"A bin of `{bins.name}` must have at least {MIN_ROWS} {kind}, for an "
            f"interval; the largest of {n_units.size} has {n_units.max()}. {remedy}"
        )
        raise InvalidInputError(msg)
    warn(
        f"{np.count_nonzero(~is_large)} of {is_large.size} bins of `{bins.name}` have "
        f"less than {MIN_ROWS} {kind}, too few for an interval, and are left out.",
        FewerBinsWarning,
        stacklevel=3,
    )
    return bins.some(is_large), None if n_groups is None else n_groups[is_large]


# -- intervals of bins -----------------------------------------------------------------


def binned_statistic(
    columns: Sequence[Floats],
    bins: Bins,
    groups: Ints | None,
    settings: IntervalSettings,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Floats]:
    """Return a statistic of bins, a function of means of columns, with its limits."""
    kind = STATISTICS[settings.statistic]
    means = [bins.means(column) for column in columns]
    value = np.asarray(kind.of_means(means))
    if settings.statistic == "coverage":
        return value, *_limits_of_shares(columns[0], bins, groups, settings.confidence)

    # what each row stands for, bin by bin: the statistic is its mean
    in_order = [column[bins.order] for column in columns]
    mean_of_row = [np.repeat(mean, bins.sizes) for mean in means]
    by_row = np.asarray(kind.by_row(in_order, mean_of_row))
    if groups is not None or bins.weights is not None:
        low, high = _limits_of_units(by_row, bins, groups, settings.confidence)
    elif settings.method == "moments" or bins.sizes.min() >= LARGE_BIN:
        # of many rows, the bootstrap gives what its closed form gives at once
        low, high = closed_limits(by_row, value, bins.sizes, settings.confidence)
    else:
        low, high = _bootstrapped(kind, in_order, by_row, value, bins, settings, rng)
    return value, np.maximum(kind.least, low), high


def _limits_of_shares(
    held: Floats, bins: Bins, groups: Ints | None, confidence: float
) -> tuple[Floats, Floats]:
    """Return the binomial limits of shares of bins, which count effective rows."""
    limits = []
    for rows, weights in zip(bins.rows, bins.weights_of_rows, strict=True):
        n_effective = float(rows.size)
        if groups is not None or weights is not None:
            mean = Mean.of(held[rows], renumbered(groups, rows), weights)
            n_effective = mean.n_effective
        n_trials = max(1, round(n_effective))
        n_held = round(mean_of(held[rows], weights) * n_trials)
        limits.append(wilson_limits(n_held, n_trials, confidence))
    low, high = np.array(limits).T
    return low, high


def _limits_of_units(
    by_row: Floats, bins: Bins, groups: Ints | None, confidence: float
) -> tuple[Floats, Floats]:
    """Return limits of bins that count groups, and effective rows, by a closed form.

    `by_row` is what each row stands for, bin by bin; the statistic is its mean.
    """
    of_bins = np.split(by_row, np.cumsum(bins.sizes)[:-1])
    limits = []
    of_rows = zip(of_bins, bins.rows, bins.weights_of_rows, strict=True)
    for values, rows, weights in of_rows:
        mean = Mean.of(values, renumbered(groups, rows), weights)
        interval = mean.interval(confidence, skewed=True)
        limits.append((interval.low, interval.high))
    low, high = np.array(limits).T
    return low, high


def closed_limits(
    by_row: Floats, value: Floats, sizes: Ints, confidence: float
) -> tuple[Floats, Floats]:
    """Return ABC limits of bins from what their rows, bin by bin, stand for."""
    starts = np.cumsum(sizes) - sizes
    d = by_row - np.repeat(value, sizes)
    second = np.add.reduceat(d**2, starts)
    third = np.add.reduceat(d**3, starts)
    return abc_limits(sizes, value, second, third, normal_quantile(confidence))


def _bootstrapped(
    kind: MeanSquaredZ,
    in_order: Sequence[Floats],
    by_row: Floats,
    value: Floats,
    bins: Bins,
    settings: IntervalSettings,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return BCa limits of bins; those of equal size share the resampled rows.

    Parameters
    ----------
    kind : MeanSquaredZ
        The statistic, a function of means of columns.
    in_order : sequence of array of shape (n_pieces,)
        These columns, bin by bin.
    by_row : array of shape (n_pieces,)
        What each row stands for, of which influences are made.
    value : array of shape (n_bins,)
        The statistic of each bin.
    bins, settings, rng
        As for :func:`binned_statistic`.
    """
    sizes = bins.sizes
    starts = np.cumsum(sizes) - sizes
    quantile = normal_quantile(settings.confidence)
    low = np.empty(sizes.size)
    high = np.empty(sizes.size)
    at_once = max(1, _MEANS_AT_ONCE // settings.n_resamples)
    for size in np.unique(sizes).tolist():  # whole numbers
        of_size = np.flatnonzero(sizes == size)
        drawn = list(bootstrap_weights(size, rng, settings.n_resamples))
        # bins may be nearly as many as rows, and each has a mean for every resample
        n_blocks = -(-of_size.size // at_once)
        for block in np.array_split(of_size, n_blocks):
            rows = starts[block][:, None] + np.arange(size)
            means = []
            for column in in_order:
                means.append(_resampled_means(column[rows], drawn, settings))
            low[block], high[block] = bca_limits(
                kind.of_means(means),
                value[block],
                by_row[rows] - value[block][:, None],
                quantile,
            )
    return low, high


def _resampled_means(
    rows: Floats, drawn: list[tuple[slice, Floats]], settings: IntervalSettings
) -> Floats:
    """Return the mean of each bin (a row) in each resample (a column)."""
    means = np.empty((len(rows), settings.n_resamples))
    for resamples, weights in drawn:
        np.matmul(rows / rows.shape[1], weights, out=means[:, resamples])
    return means


def bca_limits(
    resampled: Floats, value: Floats, centred: Floats, quantile: float
) -> tuple[Floats, Floats]:
    """Return BCa limits of values, a row each, from resampled ones and influences.

    The resampled ones are sorted in place.
    """
    count = resampled.shape[1]
    # the bias z₀: how far the value is from the median of the resamples, ties by halves
    at = value[:, None]
    below = 0.5 * ((resampled < at).sum(axis=1) + (resampled <= at).sum(axis=1))
    bias = special.ndtri(np.clip(below, 0.5, count - 0.5) / count)

    # the acceleration a: the skewness of the influences d, Σd³ / (6 (Σd²)^1.5)
    cubes = (centred**3).sum(axis=1)
    spread = np.sqrt((centred**2).sum(axis=1))
    a = np.divide(cubes, 6 * spread**3, out=np.zeros_like(cubes), where=spread > 0)

    # the levels Φ(z₀ + w / (1 − a w)) with w = z₀ ± quantile
    resampled.sort(axis=1)
    row = np.arange(value.size)
    limits = []
    for w in (bias - quantile, bias + quantile):
        level = special.ndtr(bias + w / np.maximum(1 - a * w, 1e-3))
        # interpolated at the rank level × (count + 1)
        rank = np.clip(level * (count + 1), 1, count) - 1
        below_rank = np.floor(rank).astype(np.int64)
        left = resampled[row, below_rank]
        right = resampled[row, np.minimum(below_rank + 1, count - 1)]
        limits.append(left + (rank - below_rank) * (right - left))
    return limits[0], limits[1]


def bootstrap_weights(
    n: int, rng: np.random.Generator, n_resamples: int
) -> Iterator[tuple[slice, Floats]]:
    """Yield how often each of n is drawn (n × resamples), some resamples at a time."""
    block = max(_LEAST_RESAMPLES, _LARGEST_WEIGHTS // n)
    for start in range(0, n_resamples, block):
        n_drawn = min(block, n_resamples - start)
        drawn = rng.integers(n, size=(n_drawn, n))
        # each resample counts in bins of its own
        drawn += n * np.arange(n_drawn)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=n_drawn * n)
        weights = counts.reshape(n_drawn, n).T.astype(np.float64)
        yield slice(start, start + n_drawn), weights


def normal_quantile(confidence: float) -> float:
    """Return the quantile at the upper end of a central interval."""
    return float(special.ndtri(0.5 + confidence / 2))
