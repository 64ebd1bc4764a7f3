"""The curves that papers print: reliability diagram, calibration curve, PIT histogram.

The *probability integral transform* (PIT) says where a truth lies in the distribution
that was predicted for it: 0 at its lower end, 1/2 at the median, 1 at its upper end.
If distributions are right, PITs are uniform, which is all that the last two ask about.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from scipy import special, stats

from .._support.checks import (
    Floats,
    Ints,
    check_choice,
    check_count,
    check_fraction,
    rng_from,
)
from .._support.render import Cells, Result
from .._support.weights import quantile_of, total_of
from ..bins.partitions import bins_of
from ..maps.distributions import distributions_of
from ..predictions import Predictions, as_predictions
from .intervals import GroupSums, within_groups
from .local import check_settings
from .references import ZDistribution, simulated_squares

Curve = Literal["interval", "quantile"]

SIMULATED = 2000  # calibration curves of calibrated sets, behind the band
MOST_BINS = 20  # of a picture that nobody asked for more
DRAWN = 20_000_000  # rows of simulated sets behind what is attainable, at most
ROWS_OF_A_QUANTILE = 100  # in a bin, for quantiles of its errors


def pit_of(rows: Predictions) -> Floats:
    """Return the PIT of each row; a bare uncertainty stands for a normal law."""
    return distributions_of(rows).pit(rows.truth)


def depths_of(rows: Predictions, kind: Curve) -> Floats:
    """Return the lowest level at which the interval, or quantile, holds each truth."""
    pit = pit_of(rows)
    return pit if kind == "quantile" else np.abs(2 * pit - 1)


def fractions_within(
    levels: Floats, depths: Floats, weights: Floats | None = None
) -> Floats:
    """Return the fraction of rows whose depth is at most each of ascending levels."""
    first = np.searchsorted(levels, depths)
    counts = np.bincount(first, weights, minlength=levels.size)[: levels.size]
    fractions: Floats = np.cumsum(counts) / total_of(depths.size, weights)
    return fractions


def area_between(deviation: Floats) -> float:
    """Return the area between a curve and the diagonal, from its distances."""
    left, right = deviation[:-1], deviation[1:]
    both = np.abs(left) + np.abs(right)
    # two triangles of heights |left| and |right| share the width as their heights do
    crossing = (left**2 + right**2) / np.where(both > 0, both, 1)
    heights = np.where(left * right < 0, crossing, both)
    return float(np.sum(heights) / (2 * (deviation.size - 1)))


def interval_of(rows: Predictions, coverage: float) -> Floats:
    """Return the central interval of each error, of shape (n, 2)."""
    found = distributions_of(rows)
    return found.interval(coverage) - found.location[:, None]


@dataclass(frozen=True)
class CalibrationCurve(Result):
    """Observed against nominal coverage, with the band of calibrated sets.

    Attributes
    ----------
    level : array of shape (n_levels,)
        Nominal coverage, from 0 to 1.
    observed : array of shape (n_levels,)
        The fraction of truths within the intervals of that level, or below its
        quantiles.
    low, high : array of shape (n_levels,)
        Where the whole curve of a calibrated set of as many rows lies, with the
        probability `confidence`.
    kind : {"interval", "quantile"}
        Whether central intervals or quantiles were counted.
    confidence : float
        Of the band.
    """

    level: Floats
    observed: Floats
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)
    kind: Curve
    confidence: float

    @property
    def area(self) -> float:
        """The miscalibration area, between the curve and the diagonal."""
        return area_between(self.observed - self.level)

    @property
    def is_within(self) -> bool:
        """Whether the whole curve lies in the band, but for its ends at 0 and 1."""
        inside = (self.low <= self.observed) & (self.observed <= self.high)
        return bool(inside[1:-1].all())

    def _cells(self) -> Cells:
        rows = [
            (f"{level:.3f}", f"{observed:.3f}", f"[{low:.3f}, {high:.3f}]")
            for level, observed, low, high in zip(
                self.level, self.observed, self.low, self.high, strict=True
            )
        ]
        return ("nominal", "observed", "band"), rows


def calibration_curve(
    error: Any,
    uncertainty: Any = None,
    *,
    groups: Any = None,
    n_levels: int = 100,
    kind: Curve = "interval",
    confidence: float = 0.95,
    sample_weight: Any = None,
) -> CalibrationCurve:
    """Return observed against nominal coverage; best is the diagonal.

    Below the diagonal, intervals hold less than they claim: the uncertainties are too
    small, the model is overconfident. The band holds the whole curve of a calibrated
    set, at all levels at once, so that leaving it anywhere is evidence.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    groups : array-like of shape (n,), optional
        Labels; rows with the same label belong together, as repeats of one sample do.
        The band is then wider, as far as they resemble each other.
    n_levels : int, default 100
        Number of levels from 0 to 1.
    kind : {"interval", "quantile"}, default "interval"
        Whether to count the truths within central intervals or those below quantiles,
        which shows a bias, too.
    confidence : float, default 0.95
        The probability that the curve of a calibrated set lies in the band.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter. The band is that of
        the rows in effect.

    Returns
    -------
    CalibrationCurve

    References
    ----------
    V. Kuleshov, N. Fenner and S. Ermon, ICML (2018), arXiv:1807.00263; the band:
    T. Säilynoja, P.-C. Bürkner and A. Vehtari, Stat. Comput. 32, 32 (2022),
    doi:10.1007/s11222-022-10090-6

    Examples
    --------
    >>> import numpy as np
    >>> error = np.random.default_rng(0).normal(size=1000)
    >>> calibration_curve(error, np.ones(1000)).is_within
    True
    >>> too_large = calibration_curve(error, np.full(1000, 2.0), n_levels=11)
    >>> round(float(too_large.observed[5]), 2)
    0.84
    """
    rows = as_predictions(error, uncertainty, None, groups, sample_weight)
    levels = np.linspace(0, 1, check_count(n_levels, "n_levels", least=2))
    counted = check_choice(kind, "kind", get_args(Curve))
    level = check_fraction(confidence, "confidence")
    depths = depths_of(rows, counted)  # type: ignore[arg-type]
    low, high = _band(_rows_in_effect(rows, depths), levels.size, level)
    return CalibrationCurve(
        level=levels,
        observed=fractions_within(levels, depths, rows.weights),
        low=low,
        high=high,
        kind=counted,  # type: ignore[arg-type]
        confidence=level,
    )


def _rows_in_effect(rows: Predictions, values: Floats) -> int:
    """Return how many independent rows of equal weight would tell as much."""
    weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    squares = float(np.sum(weights**2))
    if rows.groups is not None:
        r = within_groups(values - values.mean(), rows.groups)
        by_group = np.bincount(rows.groups, weights)
        squares = (1 - r) * squares + r * float(np.sum(by_group**2))
    return max(1, round(float(weights.sum()) ** 2 / squares))


@lru_cache(maxsize=16)
def _band(n: int, n_levels: int, confidence: float) -> tuple[Floats, Floats]:
    """Return the limits of the fractions of n uniform numbers, at all levels at once.

    Simulated sets tell how unlikely, at its most unlikely level, the curve of a
    calibrated set is: the limits at each level are the quantiles of that probability.
    """
    levels = np.linspace(0, 1, n_levels)
    inner = levels[1:-1]
    drawn = np.random.default_rng(0).multinomial(n, np.diff(levels), size=SIMULATED)
    counts = np.cumsum(drawn, axis=1)[:, :-1]
    below, above = special.bdtr(counts, n, inner), special.bdtrc(counts - 1, n, inner)
    above = np.where(counts == 0, 1.0, above)
    rarest = np.minimum(below, above).min(axis=1, initial=1.0)
    tail = float(np.quantile(rarest, 1 - confidence, method="lower"))
    low, high = levels.copy(), levels.copy()  # the ends are certain
    low[1:-1] = stats.binom.ppf(tail, n, inner) / n
    high[1:-1] = stats.binom.isf(tail, n, inner) / n
    low.flags.writeable = high.flags.writeable = False  # they are kept
    return low, high


@dataclass(frozen=True)
class PITHistogram(Result):
    """How often truths lie in each part of their predicted distributions.

    Attributes
    ----------
    edges : array of shape (n_bins + 1,)
        From 0 to 1.
    density : array of shape (n_bins,)
        The share of rows in each bin, times the number of bins: 1 is uniform.
    low, high : float
        Where the densities of all bins of a calibrated set of as many rows lie, with a
        probability of `confidence` or more.
    n_rows : int
        Size of the set.
    confidence : float
        Of the band.
    """

    edges: Floats = field(repr=False)
    density: Floats
    low: float
    high: float
    n_rows: int
    confidence: float

    @property
    def is_within(self) -> bool:
        """Whether all bins lie in the band."""
        return bool(np.all((self.low <= self.density) & (self.density <= self.high)))

    def _cells(self) -> Cells:
        rows = [
            (f"{left:.3f}", f"{density:.3f}", f"[{self.low:.3f}, {self.high:.3f}]")
            for left, density in zip(self.edges, self.density, strict=False)
        ]
        return ("PIT from", "density", "band"), rows


def pit_histogram(
    error: Any,
    uncertainty: Any = None,
    *,
    groups: Any = None,
    n_bins: int | None = None,
    confidence: float = 0.95,
    sample_weight: Any = None,
) -> PITHistogram:
    """Return the histogram of the probability integral transform; best is flat.

    A U says that uncertainties are too small (overconfident), a hill that they are too
    large, a slope that predictions are biased.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    groups : array-like of shape (n,), optional
        Labels; rows with the same label belong together, as repeats of one sample do.
        The band is then wider, as far as they resemble each other.
    n_bins : int, optional
        Number of bins; by default at most 20, fewer for less than 1,000 rows.
    confidence : float, default 0.95
        The probability that all bins of a calibrated set lie in the band.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter. The band is that of
        the rows in effect.

    Returns
    -------
    PITHistogram

    References
    ----------
    T. Gneiting, F. Balabdaoui and A. E. Raftery, J. R. Stat. Soc. B 69, 243 (2007),
    doi:10.1111/j.1467-9868.2007.00587.x

    Examples
    --------
    >>> import numpy as np
    >>> error = np.random.default_rng(0).normal(size=1000)
    >>> pit_histogram(error, np.ones(1000)).is_within
    True
    >>> pit_histogram(error, np.full(1000, 0.5), n_bins=4).density.round(1)
    array([1.6, 0.6, 0.5, 1.4])
    """
    rows = as_predictions(error, uncertainty, None, groups, sample_weight)
    level = check_fraction(confidence, "confidence")
    if n_bins is None:
        count = min(MOST_BINS, max(2, round(2 * rows.n_rows ** (1 / 3))))
    else:
        count = check_count(n_bins, "n_bins")
    pit = pit_of(rows)
    counts, edges = np.histogram(pit, count, (0, 1), weights=rows.weights)
    n = _rows_in_effect(rows, pit)
    tail = (1 - level) / 2 / count  # all bins at once, by Bonferroni
    return PITHistogram(
        edges=edges,
        density=counts * (count / total_of(rows.n_rows, rows.weights)),
        low=float(stats.binom.ppf(tail, n, 1 / count)) * count / n,
        high=float(stats.binom.isf(tail, n, 1 / count)) * count / n,
        n_rows=rows.n_rows,
        confidence=level,
    )


@dataclass(frozen=True)
class ReliabilityDiagram(Result):
    """The RMSE of bins of u against their root mean variance; best is the diagonal.

    Attributes
    ----------
    rmv : array of shape (n_bins,)
        Root mean variance: the root mean square of u in each bin.
    rmse, low, high : array of shape (n_bins,)
        Root mean squared error of each bin, and its confidence interval.
    attainable_low, attainable_high : array of shape (n_bins,)
        Between which limits the RMSE of a bin would lie, with the probability
        `confidence`, if uncertainties were right and the z-scores those of the set.
    n : array of int, shape (n_bins,)
        Rows in each bin.
    ence : float
        The expected normalised calibration error of these bins.
    attainable_ence : float
        Its mean over calibrated sets.
    confidence : float
        Of all intervals.
    """

    rmv: Floats
    rmse: Floats
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)
    attainable_low: Floats = field(repr=False)
    attainable_high: Floats = field(repr=False)
    n: Ints = field(repr=False)
    ence: float
    attainable_ence: float
    confidence: float

    def _cells(self) -> Cells:
        rows = [
            (f"{rmv:.4g}", f"{n}", f"{rmse:.4g}", f"[{low:.4g}, {high:.4g}]")
            for rmv, n, rmse, low, high in zip(
                self.rmv, self.n, self.rmse, self.low, self.high, strict=True
            )
        ]
        return ("RMV", "rows", "RMSE", "interval"), rows


def reliability_diagram(
    error: Any,
    uncertainty: Any = None,
    *,
    groups: Any = None,
    n_bins: int | None = None,
    confidence: float = 0.95,
    rng: int | np.random.Generator | None = 0,
    sample_weight: Any = None,
) -> ReliabilityDiagram:
    """Return RMSE against root mean variance in bins of u; best is the diagonal.

    Above the diagonal, uncertainties are too small (overconfident). A flat diagram says
    that u does not tell large errors from small ones.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    groups : array-like of shape (n,), optional
        Labels; rows with the same label belong together, as repeats of one sample do.
        Intervals then count groups rather than rows.
    n_bins : int, optional
        Number of equal-size bins. By default they have 30 rows or more, and there are
        at most 20.
    confidence : float, default 0.95
        Coverage of the intervals.
    rng : int, Generator or None, default 0
        Seed of the simulated sets that say what is attainable.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter. Bins then have equal
        weights.

    Returns
    -------
    ReliabilityDiagram

    References
    ----------
    D. Levi et al., Sensors 22, 5540 (2022), doi:10.3390/s22155540; what is attainable:
    P. Pernot, arXiv:2310.11978 (2023)

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 2000)
    >>> diagram = reliability_diagram(rng.normal(scale=u), 2 * u, n_bins=4)
    >>> (diagram.rmse / diagram.rmv).round(1)
    array([0.5, 0.5, 0.5, 0.5])
    """
    rows = as_predictions(error, uncertainty, None, groups, sample_weight)
    count = bins_of(n_bins, rows.total)
    count = min(count, MOST_BINS) if n_bins is None else count
    settings = check_settings(count, "moments", confidence)
    generator = rng_from(rng)
    bins = settings.bins(rows, None, only=0)[rows.names[0]]
    codes = rows.group_codes
    binned, weights = bins.for_intervals(codes)
    order, sizes = binned.order, binned.sizes
    by_group = None if codes is None else codes[order]

    def sums(values: Floats) -> GroupSums:
        return GroupSums.of_rows(values[order], sizes, by_group, weights)

    squares, variances = sums(rows.errors**2), sums(rows.uncertainty**2)
    low, high = settings.interval(squares, generator)
    rmse, rmv = np.sqrt(squares.mean), np.sqrt(variances.mean)
    draw = simulated_squares(rows, ZDistribution.of("empirical", rows), generator)
    simulated = np.sqrt(
        [
            sums(draw(1)[0] * rows.uncertainty**2).mean
            for _ in range(int(np.clip(DRAWN // rows.n_rows, 50, 500)))
        ]
    )
    tail = (1 - settings.confidence) / 2
    attainable = np.quantile(simulated, (tail, 1 - tail), axis=0)
    return ReliabilityDiagram(
        rmv=rmv,
        rmse=rmse,
        low=np.sqrt(low),
        high=np.sqrt(high),
        attainable_low=attainable[0],
        attainable_high=attainable[1],
        n=sizes,
        ence=float(np.mean(np.abs(rmv - rmse) / rmv)),
        attainable_ence=float(np.mean(np.abs(rmv - simulated) / rmv)),
        confidence=settings.confidence,
    )


def error_quantiles(rows: Predictions, levels: tuple[float, ...]) -> tuple[Floats, ...]:
    """Return the median u of bins, and quantiles of the errors of their rows."""
    count = max(1, min(MOST_BINS // 2, rows.n_rows // ROWS_OF_A_QUANTILE))
    parts = np.array_split(np.argsort(rows.uncertainty, kind="stable"), count)

    def of_parts(values: Floats, level: float) -> Floats:
        weights = [None if rows.weights is None else rows.weights[p] for p in parts]
        return np.array(
            [
                quantile_of(values[p], level, w)
                for p, w in zip(parts, weights, strict=True)
            ]
        )

    middle = of_parts(rows.uncertainty, 0.5)
    return middle, *(of_parts(rows.errors, level) for level in levels)
