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
    check_choice,
    check_count,
    check_fraction,
)
from .._support.notices import quiet
from .._support.render import Cells, Result
from .._support.weights import total_of
from ..maps.distributions import Distributions
from ..maps.laws import NORMAL
from ..predictions import Predictions, as_predictions
from .intervals import within_groups

Curve = Literal["interval", "quantile"]

SIMULATED = 2000  # calibration curves of calibrated sets, behind the band
MOST_PIT_BINS = 20


def distributions_of(rows: Predictions) -> Distributions:
    """Return what rows say; a bare uncertainty stands for a normal law."""
    location = np.zeros(rows.n_rows) if rows.y_pred is None else rows.y_pred
    return Distributions.of(location, rows.uncertainty, rows.law or NORMAL)


def pit_of(rows: Predictions) -> Floats:
    """Return the PIT of each row."""
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
    def is_within(self) -> bool:
        """Whether the whole curve lies in the band."""
        return bool(np.all((self.low <= self.observed) & (self.observed <= self.high)))

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
    n_levels : int, default 100
        Number of levels from 0 to 1.
    kind : {"interval", "quantile"}, default "interval"
        Whether to count the truths within central intervals or those below quantiles,
        which shows a bias, too.
    confidence : float, default 0.95
        The probability that the curve of a calibrated set lies in the band.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter. The band is that of
        the rows in effect, as it is where rows come in groups.

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
    rows = as_predictions(error, uncertainty, sample_weight=sample_weight)
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
    n_bins : int, optional
        Number of bins; by default at most 20, fewer for less than 1,000 rows.
    confidence : float, default 0.95
        The probability that all bins of a calibrated set lie in the band.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter. The band is that of
        the rows in effect, as it is where rows come in groups.

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
    rows = as_predictions(error, uncertainty, sample_weight=sample_weight)
    level = check_fraction(confidence, "confidence")
    if n_bins is None:
        count = min(MOST_PIT_BINS, max(2, round(2 * rows.n_rows ** (1 / 3))))
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


COVERAGES = (0.5, 0.8, 0.9, 0.95)
PINBALL_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class DistributionScores(Result):
    """What predictive distributions are worth: ranked score, coverage and width.

    Attributes
    ----------
    law : str
        The law that was judged, in words.
    crps : float
        The mean continuous ranked probability score; lower is better.
    coverage : dict of float to float
        The fraction of truths within central intervals, by what these claim to hold.
    width : float
        The mean width of intervals of 90 %: the *sharpness*; of two that hold what they
        claim, the narrower is better.
    pinball : dict of float to float
        The mean pinball (quantile) loss, by the level of the quantile.
    """

    law: str
    crps: float
    coverage: dict[float, float]
    width: float
    pinball: dict[float, float] = field(repr=False)

    @property
    def sentence(self) -> str:
        """The scores in a sentence."""
        claimed = ", ".join(f"{100 * level:g}" for level in self.coverage)
        held = ", ".join(f"{100 * share:.0f}" for share in self.coverage.values())
        return (
            f"CRPS {self.crps:.4g}; intervals of {claimed} % hold {held} % of the "
            f"errors (law: {self.law})."
        )

    def _cells(self) -> Cells:
        rows = [("CRPS", f"{self.crps:.4g}")]
        rows += [
            (f"within {100 * level:g} %", f"{100 * share:.1f} %")
            for level, share in self.coverage.items()
        ]
        return ("score", "value"), [*rows, ("width of 90 %", f"{self.width:.4g}")]


def distribution_scores(
    error: Any, uncertainty: Any = None, *, sample_weight: Any = None
) -> DistributionScores:
    """Score predictive distributions: CRPS, coverage, sharpness and pinball loss.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which may carry a law
        (:meth:`sigmascale.Recalibrator.apply`). Without one, errors are normal.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter.

    Returns
    -------
    DistributionScores

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 10_000)
    >>> found = ss.distribution_scores(rng.normal(scale=u), u)
    >>> round(found.coverage[0.9], 2)
    0.9
    """
    rows = as_predictions(error, uncertainty, sample_weight=sample_weight)
    found, y = distributions_of(rows), rows.truth
    levels = sorted({(1 + sign * c) / 2 for c in COVERAGES for sign in (-1, 1)})
    levels = sorted({*levels, *PINBALL_LEVELS})
    with quiet():  # of levels beyond the rows
        quantiles = dict(zip(levels, found.quantile(levels).T, strict=True))

    def ends(coverage: float) -> tuple[Floats, Floats]:
        return quantiles[(1 - coverage) / 2], quantiles[(1 + coverage) / 2]

    coverage = {}
    for share in COVERAGES:
        low, high = ends(share)
        coverage[share] = rows.mean((y >= low) & (y <= high))
    pinball = {
        level: rows.mean((level - (y < quantiles[level])) * (y - quantiles[level]))
        for level in PINBALL_LEVELS
    }
    low, high = ends(0.9)
    return DistributionScores(
        law=found.law.words,
        crps=rows.mean(found.crps(y)),
        coverage=coverage,
        width=rows.mean(high - low),
        pinball=pinball,
    )
