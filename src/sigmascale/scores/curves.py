"""The curves that papers print: calibration, PIT, reliability and confidence.

The *probability integral transform* (PIT) says where a true value lies in its predicted
distribution: 0 at its lower end, 1/2 at the median, 1 at its upper end; of
vectors it is the probability of the ball that reaches it. If distributions are
right, PITs are uniform.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from scipy import special

from .._support.checks import (
    Floats,
    Ints,
    check_choice,
    check_count,
    check_fraction,
    for_order,
)
from .._support.numerals import fixed, number, percent
from .._support.render import Cells, Result
from .._support.weighting import WeightLine, ones_if_none
from ..paper.references import Squares, simulated_squares, stream_from
from ..paper.valid_bins import MIN_ROWS, IntervalSettings, binned_statistic
from ..predictions.bins import bins_of, cut, cut_positions
from ..predictions.predictions import Predictions, check_predictions
from .intervals import within_groups
from .losses_by_row import claimed_of_errors

CurveKind = Literal["interval", "quantile"]
ErrorStatistic = Literal["rmse", "mae"]

SIMULATED = 2000  # calibration curves of calibrated sets, behind the band
MOST_DRAWN_BINS = 20  # of a picture that nobody asked for more
SIMULATED_ROWS = 20_000_000  # rows of simulated sets behind what is attainable, at most


def depths_of(p: Predictions, kind: CurveKind) -> Floats:
    """Return the lowest level at which the interval, or quantile, covers it."""
    if kind == "quantile":
        check_predictions(p, vectors=False)
    distributions, truth = claimed_of_errors(p)
    pit = distributions.pit(truth)
    return pit if kind == "quantile" or p.is_vector else np.abs(2 * pit - 1)


def rows_in_effect(p: Predictions, values: Floats) -> int:
    """Return how many independent rows of equal weight would tell as much."""
    # (Σw)² / Σw²; with the correlation r within groups, (1 − r) Σw² + r Σ (Σ_group w)²
    weights = ones_if_none(p.weights, p.n_rows)
    squares = float(np.sum(weights**2))
    if p.groups is not None:
        r = within_groups(values - values.mean(), p.groups)
        by_group = np.bincount(p.groups, weights)
        squares = (1 - r) * squares + r * float(np.sum(by_group**2))
    return max(1, round(float(weights.sum()) ** 2 / squares))


@dataclass(frozen=True)
class CalibrationCurve(Result):
    """Observed against nominal coverage, with the band of calibrated sets.

    Attributes
    ----------
    coverage : array of shape (n_levels,)
        Nominal coverage, from 0 to 1.
    observed : array of shape (n_levels,)
        The fraction of true values within the intervals of that coverage, or below its
        quantiles.
    low, high : array of shape (n_levels,)
        Where the whole curve of a calibrated set of as many rows lies, with the
        probability `confidence`.
    kind : {"interval", "quantile"}
        Whether central intervals or quantiles were counted.
    confidence : float
        Of the band.
    """

    coverage: Floats
    observed: Floats
    low: Floats
    high: Floats
    kind: CurveKind
    confidence: float

    @property
    def area(self) -> float:
        """The miscalibration area, between the curve and the diagonal.

        Points are joined by straight lines; pieces that cross the diagonal count with
        both their triangles.
        """
        a = self._off[:-1]
        b = self._off[1:]
        trapezoids = np.abs(a) + np.abs(b)
        # triangles of heights |a| and |b| share the width as their heights do: their
        # area, like that of a trapezoid, is half of (a² + b²) / (|a| + |b|)
        triangles = (a**2 + b**2) / np.where(trapezoids > 0, trapezoids, 1)
        heights = np.where(a * b < 0, triangles, trapezoids)
        return float(np.sum(heights) / (2 * a.size))

    @property
    def mean_absolute_error(self) -> float:
        """The mean distance from the diagonal (MACE), over the levels."""
        return float(np.mean(np.abs(self._off)))

    @property
    def root_mean_squared_error(self) -> float:
        """The rms distance from the diagonal (RMSCE), over the levels."""
        return float(np.sqrt(np.mean(self._off**2)))

    @property
    def is_within(self) -> bool:
        """Whether the whole curve lies in the band, but for its ends at 0 and 1."""
        inside = (self.low <= self.observed) & (self.observed <= self.high)
        return bool(inside[1:-1].all())

    @property
    def _off(self) -> Floats:
        """How far the curve is above the diagonal."""
        return self.observed - self.coverage

    def _cells(self) -> Cells:
        columns = zip(self.coverage, self.observed, self.low, self.high, strict=True)
        rows = [
            (
                fixed(level, 3),
                fixed(observed, 3),
                f"[{fixed(low, 3)}, {fixed(high, 3)}]",
            )
            for level, observed, low, high in columns
        ]
        return ("nominal", "observed", "band"), rows


def calibration_curve(
    p: Predictions,
    *,
    n_levels: int = 100,
    kind: CurveKind = "interval",
    confidence: float = 0.95,
) -> CalibrationCurve:
    """Return observed against nominal coverage; best is the diagonal.

    Below the diagonal, intervals cover too few true values: the uncertainties are too
    small, the model is overconfident. The band holds the whole curve of a calibrated
    set, at all levels at once, so that leaving it anywhere is evidence.

    Parameters
    ----------
    p : Predictions
        Rows with known errors. Those that have distributions
        (:meth:`sigmascale.Recalibrator.apply`) are scored by these, others as normal.
        Groups that resemble each other, and weights, make the band wider.
    n_levels : int, default 100
        Number of levels from 0 to 1.
    kind : {"interval", "quantile"}, default "interval"
        Whether to count the true values within central intervals (balls, of vectors) or
        those below quantiles, which shows a bias, too.
    confidence : float, default 0.95
        The probability that the curve of a calibrated set lies in the band.

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
    >>> import sigmascale as ss
    >>> error = np.random.default_rng(0).normal(size=1000)
    >>> right = ss.Predictions(y_std=np.ones(1000), error=error)
    >>> ss.scores.calibration_curve(right).is_within
    True
    >>> too_large = ss.Predictions(y_std=np.full(1000, 2.0), error=error)
    >>> curve = ss.scores.calibration_curve(too_large, n_levels=11)
    >>> round(float(curve.observed[5]), 2)
    0.84
    """
    p = check_predictions(p)
    levels = np.linspace(0, 1, check_count(n_levels, "n_levels", least=2))
    checked_kind: Any = check_choice(kind, "kind", get_args(CurveKind))
    confidence = check_fraction(confidence, "confidence")

    # the share of true values covered at each level, from the lowest that covers
    depths = depths_of(p, checked_kind)
    lowest = np.searchsorted(levels, depths)  # levels
    counts = np.bincount(lowest, p.weights, minlength=levels.size)[: levels.size]
    observed = np.cumsum(counts) / p.n_effective
    low, high = _band(rows_in_effect(p, depths), levels.size, confidence)
    return CalibrationCurve(
        levels, observed, low, high, checked_kind, confidence, _origin=p.origin
    )


@lru_cache(maxsize=16)
def _band(n: int, n_levels: int, confidence: float) -> tuple[Floats, Floats]:
    """Return the limits of the fractions of n uniform numbers, at all levels at once.

    Simulated sets tell how unlikely, at its most unlikely level, the curve of a
    calibrated set is: the limits at each level are the quantiles of that probability.
    """
    from scipy import stats

    # how many of n numbers lie below each inner level, in each simulated set
    levels = np.linspace(0, 1, n_levels)
    inner = levels[1:-1]
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(n, np.diff(levels), size=SIMULATED)
    counts = np.cumsum(drawn, axis=1)[:, :-1]

    # the probability of so few, or so many: the smaller one, at the rarest level
    few = special.bdtr(counts, n, inner)
    many = np.where(counts == 0, 1.0, special.bdtrc(counts - 1, n, inner))
    rarest = np.minimum(few, many).min(axis=1, initial=1.0)
    tail = float(np.quantile(rarest, 1 - confidence, method="lower"))

    low = levels.copy()  # the ends are certain
    high = levels.copy()
    low[1:-1] = stats.binom.ppf(tail, n, inner) / n
    high[1:-1] = stats.binom.isf(tail, n, inner) / n
    low.flags.writeable = high.flags.writeable = False  # they are kept
    return low, high


@dataclass(frozen=True)
class PITHistogram(Result):
    """How often true values lie in each part of their predicted distributions.

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

    edges: Floats
    density: Floats
    low: float
    high: float
    n_rows: int
    confidence: float

    @property
    def is_within(self) -> bool:
        """Whether all bins lie in the band."""
        return bool(np.all((self.low <= self.density) & (self.density <= self.high)))

    def _columns(self) -> dict[str, Floats]:
        columns = {"left": self.edges[:-1], "right": self.edges[1:]}
        columns |= {"density": self.density}
        band = np.broadcast_to([self.low, self.high], (self.density.size, 2))
        return columns | {"low": band[:, 0], "high": band[:, 1]}

    def _cells(self) -> Cells:
        rows = [
            (
                fixed(left, 3),
                fixed(density, 3),
                f"[{fixed(self.low, 3)}, {fixed(self.high, 3)}]",
            )
            for left, density in zip(self.edges, self.density, strict=False)
        ]
        return ("PIT from", "density", "band"), rows


def pit_histogram(
    p: Predictions, *, n_bins: int | None = None, confidence: float = 0.95
) -> PITHistogram:
    """Return the histogram of the probability integral transform; best is flat.

    A U says that uncertainties are too small (overconfident), a hill that they are too
    large, a slope that predictions are biased.

    Parameters
    ----------
    p : Predictions
        Rows with known errors. Those that have distributions
        (:meth:`sigmascale.Recalibrator.apply`) are scored by these, others as normal.
        Groups that resemble each other, and weights, make the band wider.
    n_bins : int, optional
        Number of bins; by default at most 20, fewer for less than 1,000 rows.
    confidence : float, default 0.95
        The probability that all bins of a calibrated set lie in the band.

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
    >>> import sigmascale as ss
    >>> error = np.random.default_rng(0).normal(size=1000)
    >>> p = ss.Predictions(y_std=np.full(1000, 0.5), error=error)
    >>> ss.scores.pit_histogram(p, n_bins=4).density.round(1)
    array([1.6, 0.6, 0.5, 1.4])
    """
    from scipy import stats

    p = check_predictions(p)
    confidence = check_fraction(confidence, "confidence")
    if n_bins is None:
        n_bins = min(MOST_DRAWN_BINS, max(2, round(2 * p.n_rows ** (1 / 3))))
    n_bins = check_count(n_bins, "n_bins")
    distributions, truth = claimed_of_errors(p)
    pit = distributions.pit(truth)
    counts, edges = np.histogram(pit, n_bins, (0, 1), weights=p.weights)

    # binomial counts of all bins at once, by Bonferroni
    n = rows_in_effect(p, pit)
    tail = (1 - confidence) / 2 / n_bins
    return PITHistogram(
        edges=edges,
        density=counts * (n_bins / p.n_effective),
        low=float(stats.binom.ppf(tail, n, 1 / n_bins)) * n_bins / n,
        high=float(stats.binom.isf(tail, n, 1 / n_bins)) * n_bins / n,
        n_rows=p.n_rows,
        confidence=confidence,
        _origin=p.origin,
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
    low: Floats
    high: Floats
    attainable_low: Floats
    attainable_high: Floats
    n: Ints
    ence: float
    attainable_ence: float
    confidence: float

    def _cells(self) -> Cells:
        rows = [
            (
                number(rmv, 4),
                f"{n}",
                number(rmse, 4),
                f"[{number(low, 4)}, {number(high, 4)}]",
            )
            for rmv, n, rmse, low, high in zip(
                self.rmv, self.n, self.rmse, self.low, self.high, strict=True
            )
        ]
        return ("RMV", "rows", "RMSE", "interval"), rows


def reliability_diagram(
    p: Predictions,
    *,
    n_bins: int | None = None,
    confidence: float = 0.95,
    rng: int | np.random.Generator | None = 0,
) -> ReliabilityDiagram:
    """Return RMSE against root mean variance in bins of u; best is the diagonal.

    Above the diagonal, uncertainties are too small (overconfident). A flat diagram says
    that u does not tell large errors from small ones.

    Parameters
    ----------
    p : Predictions
        Rows with known errors. If they have groups, intervals count groups rather than
        rows; if they have weights, bins have equal weights. Of vectors, the root mean
        square of the components counts.
    n_bins : int, optional
        Number of equal-size bins. By default they have 30 rows or more, and there are
        at most 20.
    confidence : float, default 0.95
        Coverage of the intervals.
    rng : int, Generator or None, default 0
        Seed of the simulated sets that say what is attainable.

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
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 2000)
    >>> p = ss.Predictions(y_std=2 * u, error=rng.normal(scale=u))
    >>> diagram = ss.scores.reliability_diagram(p, n_bins=4)
    >>> (diagram.rmse / diagram.rmv).round(1)
    array([0.5, 0.5, 0.5, 0.5])
    """
    p = check_predictions(p)
    confidence = check_fraction(confidence, "confidence")
    generator = stream_from(rng)
    count = bins_of(n_bins, p.n_effective)
    if n_bins is None:
        count = min(count, MOST_DRAWN_BINS)
    (bins,) = cut(p, count, by=0, min_size=MIN_ROWS).values()

    # root means of u² and E² of each bin, and limits of these
    u2 = p.y_std**2
    rmv = np.sqrt(bins.means(u2))
    rmse = np.sqrt(bins.means(p.squared_error))
    closed = IntervalSettings("moments", confidence)
    columns = [p.squared_error]
    _, low, high = binned_statistic(columns, bins, p.groups, closed, generator)

    # the same of sets whose errors are u times the z-scores of any row
    draw = simulated_squares(p, Squares.of("empirical", p), generator)
    n_sets = int(np.clip(SIMULATED_ROWS // p.n_rows, 50, 500))
    simulated = np.sqrt([bins.means(draw(1)[0] * u2) for _ in range(n_sets)])
    tail = (1 - confidence) / 2
    attainable = np.quantile(simulated, (tail, 1 - tail), axis=0)
    return ReliabilityDiagram(
        rmv=rmv,
        rmse=rmse,
        low=np.sqrt(low),
        high=np.sqrt(high),
        attainable_low=attainable[0],
        attainable_high=attainable[1],
        n=bins.sizes,
        ence=float(np.mean(np.abs(rmv - rmse) / rmv)),
        attainable_ence=float(np.mean(np.abs(rmv - simulated) / rmv)),
        confidence=confidence,
        _origin=p.origin,
    )


@dataclass(frozen=True)
class ConfidenceCurve(Result):
    """The error of what is left as the most uncertain rows are pruned.

    Attributes
    ----------
    pruned : array of shape (n_points,)
        Fraction of rows removed, from 0.
    error : array of shape (n_points,)
        The statistic of the remaining errors.
    oracle : array of shape (n_points,)
        The same when rows are removed by their true absolute error: the lowest curve.
    reference, reference_low, reference_high : array of shape (n_points,)
        Mean and interval of the curve for errors drawn from N(0, u), the
        *probabilistic reference* that honest uncertainties of normal errors follow.
    statistic : {"rmse", "mae"}
        What is computed of the errors that are left.
    """

    pruned: Floats
    error: Floats
    oracle: Floats
    reference: Floats
    reference_low: Floats
    reference_high: Floats
    statistic: ErrorStatistic

    @property
    def relative(self) -> Floats:
        """The curve divided by its first value, the error of all rows."""
        of_all = self.error[0]
        return self.error / of_all if of_all > 0 else np.zeros_like(self.error)

    @property
    def area_to_oracle(self) -> float:
        """The mean distance from the oracle, as a share of the error of all rows.

        It is known as AUCO. 0 would be the oracle, which knows the errors.
        """
        of_all = self.error[0]
        distance = np.mean(self.error - self.oracle)
        return float(distance / of_all) if of_all > 0 else 0.0

    def _cells(self) -> Cells:
        shown = np.linspace(0, self.pruned.size - 1, min(11, self.pruned.size))
        rows = [
            (
                percent(self.pruned[i]),
                number(self.error[i], 4),
                number(self.oracle[i], 4),
                number(self.reference[i], 4),
            )
            for i in shown.astype(int)
        ]
        return ("pruned", self.statistic, "oracle", "reference"), rows


def confidence_curve(
    p: Predictions,
    *,
    statistic: ErrorStatistic = "rmse",
    n_points: int = 100,
    n_draws: int = 500,
    confidence: float = 0.95,
    rng: int | np.random.Generator | None = 0,
) -> ConfidenceCurve:
    """Return the confidence curve with its oracle and probabilistic reference.

    A curve that falls steadily shows that large uncertainties go with large errors. It
    does not depend on the scale of the uncertainties; its reference does.

    Parameters
    ----------
    p : Predictions
        Rows with known errors. Of vectors, the root mean square of the components is
        the error of a row.
    statistic : {"rmse", "mae"}, default "rmse"
        What is computed from the errors that are left.
    n_points : int, default 100
        Number of points: pruned fractions 0, 1/n_points, 2/n_points, ...
    n_draws : int, default 500
        Simulated sets behind the reference.
    confidence : float, default 0.95
        Coverage of the reference band.
    rng : int, Generator or None, default 0
        Seed of the simulation.

    Returns
    -------
    ConfidenceCurve

    References
    ----------
    P. Pernot, arXiv:2206.15272 (2022); of the area to the oracle: G. Scalia et al.,
    J. Chem. Inf. Model. 60, 2697 (2020), doi:10.1021/acs.jcim.9b00975

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 5, 1000)
    >>> p = ss.Predictions(y_std=u, error=rng.normal(scale=u))
    >>> curve = ss.scores.confidence_curve(p, n_draws=50)
    >>> bool(curve.error[90] < 0.6 * curve.error[0])
    True
    """
    p = check_predictions(p)
    checked_statistic: Any = check_choice(
        statistic, "statistic", get_args(ErrorStatistic)
    )
    n_points = min(check_count(n_points, "n_points"), p.n_rows)
    n_draws = check_count(n_draws, "n_draws")
    tail = (1 - check_fraction(confidence, "confidence")) / 2
    generator = stream_from(rng)
    pruned = cut_positions(p.n_rows, n_points) / p.n_rows
    weights = ones_if_none(p.weights, p.n_rows)
    is_rmse = checked_statistic == "rmse"

    def curve(size: Floats, order: Ints) -> Floats:
        """Return the statistic of the first rows of an order, as fewer are kept."""
        line = WeightLine(weights[order])
        last = line.reaching((1 - pruned) * line.total)
        values = size[order] ** 2 if is_rmse else size[order]
        means = np.cumsum(weights[order] * values)[last] / line.ends[last]
        return np.asarray(np.sqrt(means) if is_rmse else means)

    # in one bin, rows are sorted by u, and equal ones shuffled by a fixed rule
    (whole,) = cut(p._with(weights=None), 1, by=0).values()
    by_u = whole.order
    size = np.sqrt(p.squared_error)
    # equal errors by their weights, or the order of rows would tell what is left
    by_error = np.lexsort((weights, for_order(size)))  # rounded

    # the curves of errors that are u times normal numbers
    squares = Squares("normal", p.dim)
    curves = []
    for _ in range(n_draws):
        (z2,) = squares.draw(generator, (1, p.n_rows))
        curves.append(curve(np.sqrt(z2) * p.y_std, by_u))
    simulated = np.array(curves)
    return ConfidenceCurve(
        pruned=pruned,
        error=curve(size, by_u),
        oracle=curve(size, by_error),
        reference=simulated.mean(axis=0),
        reference_low=np.quantile(simulated, tail, axis=0),
        reference_high=np.quantile(simulated, 1 - tail, axis=0),
        statistic=checked_statistic,
        _origin=p.origin,
    )
