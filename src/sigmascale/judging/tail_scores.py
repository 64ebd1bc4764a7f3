"""Scores that say whether tails let a mean of squares be believed, and what else may.

Means of u², E² and z² are at the mercy of a few rows where tails are heavy, and so are
all statistics that compare variances. These functions measure the tails, and give what
does not depend on them so much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from .._support.checks import (
    check_column,
    check_count,
    check_fraction,
    rng_from,
)
from .._support.render import html_table, plain
from .._support.weights import check_weights, effective_number, mean_of, quantile_of
from ..exceptions import InvalidInputError
from ..maps.laws import StudentLaw
from ..predictions import as_predictions
from .coverage import fraction_limits
from .estimates import Estimate, bca_of_means

SKEWED_U2 = 0.6  # skewness_gm of u² above which the mean of u² says little
SKEWED_E2 = 0.8  # the same of E²
SKEWED_Z2 = 0.8  # and of z²; 0.63 for normal z
SKEWED_COVERAGE = 0.85  # of z², above which not even the share within 1.96 u is safe
REACH = 1.96  # of an interval at 95 %, in units of u
EQUIVALENT = (0.945, 0.955)  # coverages that are 0.95 for all purposes


def relative_calibration_error(
    error: Any,
    uncertainty: Any,
    *,
    confidence: float = 0.95,
    n_resamples: int = 1500,
    rng: int | np.random.Generator | None = 0,
    sample_weight: Any = None,
) -> Estimate:
    """Return (RMV − RMSE) / RMV with its confidence interval; best is 0.

    RMV is the root of the mean u², RMSE that of the mean E². Positive values say that
    uncertainties are too large. The few largest u and errors decide on it: believe it
    only where :func:`skewness_gm` of u² is at most 0.6 and that of E² at most 0.8.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction; at least 2.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    confidence : float, default 0.95
        Coverage of the interval, which is that of the BCa bootstrap of rows.
    n_resamples : int, default 1500
        Number of bootstrap resamples.
    rng : int, Generator or None, default 0
        Seed of the bootstrap.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter.

    Returns
    -------
    Estimate

    References
    ----------
    P. Pernot, arXiv:2402.10043 (2024); T. J. DiCiccio and B. Efron, Statist. Sci. 11,
    189 (1996), doi:10.1214/ss/1032280214

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 1000)
    >>> print(relative_calibration_error(rng.normal(scale=2 * u), u))
    -1.037 [-1.132, -0.9499]
    """
    rows = as_predictions(error, uncertainty, sample_weight=sample_weight)
    e, u = rows.errors, rows.uncertainty
    confidence = check_fraction(confidence, "confidence")
    n_resamples = check_count(n_resamples, "n_resamples")
    generator = rng_from(rng)
    if e.size < 2:
        msg = "`error` must have at least 2 rows for an interval; found 1. Add rows."
        raise InvalidInputError(msg)
    # of a unit in which the mean u² is 1, so that no square leaves the range of numbers
    unit = np.sqrt(np.mean((u / u.max()) ** 2)) * u.max()
    squares = np.stack([(u / unit) ** 2, (e / unit) ** 2])
    return bca_of_means(
        squares if rows.weights is None else rows.weights * squares,
        lambda means: 1 - np.sqrt(means[1] / means[0]),
        confidence=confidence,
        n_resamples=n_resamples,
        rng=generator,
    )


def skewness_gm(values: Any, *, sample_weight: Any = None) -> float:
    """Return the robust skewness of Groeneveld and Meeden, from -1 to 1.

    It is (mean − median) / mean(abs(x − median)): 0 of a symmetric distribution, 0.63
    of squares of normal numbers. A mean, its confidence interval, and whatever is made
    of them, say little above 0.6 for u², and above 0.8 for E² and for z².

    Parameters
    ----------
    values : array-like of shape (n,)
        Numbers, for example squared z-scores.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter.

    References
    ----------
    R. A. Groeneveld and G. Meeden, The Statistician 33, 391 (1984),
    doi:10.2307/2987742; P. Pernot, arXiv:2402.10043 (2024), which has the limits and
    computes the median by the estimator of Harrell and Davis.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> round(skewness_gm(rng.normal(size=10_000) ** 2), 2)
    0.63
    >>> round(skewness_gm(rng.standard_t(2, size=10_000) ** 2), 2)
    0.96
    """
    x = check_column(values, "values")
    kept, weights = check_weights(sample_weight, x, "values")
    x = x if kept is None else x[kept]
    distance = x - (np.median(x) if weights is None else quantile_of(x, 0.5, weights))
    spread = mean_of(np.abs(distance), weights)
    return mean_of(distance, weights) / spread if spread > 0 else 0.0


@dataclass(frozen=True)
class StudentShape:
    """Student's t that suits z-scores best.

    Attributes
    ----------
    df : float
        Degrees of freedom; infinite if no tails are heavier than normal ones.
    scale : float
        The factor: z is `scale` times a number from Student's t.
    """

    df: float
    scale: float

    def to_dict(self) -> dict[str, Any]:
        """Return all fields."""
        return plain(self)

    def __str__(self) -> str:
        """Return both numbers."""
        return f"{self.scale:.3g} × t({self.df:.3g})"

    def _repr_html_(self) -> str:
        return html_table(("df", "scale"), [(f"{self.df:.3g}", f"{self.scale:.3g}")])


def student_shape(
    error: Any, uncertainty: Any, *, sample_weight: Any = None
) -> StudentShape:
    """Return Student's t that suits z = error / u best, by maximum likelihood.

    z² / scale² follows F(1, df). With df above 30 or so, z is normal for all purposes;
    with 4 or fewer, the mean of z² has no standard error.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction; not all 0.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter.

    Returns
    -------
    StudentShape

    References
    ----------
    P. Pernot, arXiv:2408.13089 (2024), which fits the same law by the least distance
    of Kolmogorov and Smirnov.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 20_000)
    >>> shape = student_shape(u * rng.standard_t(4, size=20_000), u)
    >>> round(shape.df, 1), round(shape.scale, 2)
    (3.9, 1.0)
    """
    rows = as_predictions(error, uncertainty, sample_weight=sample_weight)
    e, u = rows.errors, rows.uncertainty
    if not np.any(e):
        msg = "`error` must not be 0 in every row: the z-scores have no distribution."
        raise InvalidInputError(msg)
    law = StudentLaw.learn(e / u, rows.weights)
    return StudentShape(law.df, law.scale)


@dataclass(frozen=True)
class CoverageAt95:
    """The share of errors within 1.96 u, and whether it is 0.95 for all purposes.

    Attributes
    ----------
    n_rows : int
        Size of the set.
    picp : float
        The share of errors within 1.96 u; best is 0.95.
    low, high : float
        Its confidence interval, of Wilson with continuity correction.
    plain_low, plain_high : float
        The same without continuity correction, which is a little narrower.
    valid : bool
        Whether the interval overlaps [0.945, 0.955].
    confidence : float
        The coverage of the intervals.
    """

    n_rows: int
    picp: float
    low: float
    high: float
    plain_low: float
    plain_high: float
    valid: bool
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """Return all fields."""
        return plain(self)

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("within 1.96 u", f"{self.picp:.4g} [{self.low:.4g}, {self.high:.4g}]"),
            ("is 0.95", "yes" if self.valid else "no"),
            ("rows", f"{self.n_rows}"),
        ]

    def __str__(self) -> str:
        """Return one line a number."""
        return "\n".join(f"{name:<14} {value}" for name, value in self._rows())

    def _repr_html_(self) -> str:
        return html_table(("what", "value"), self._rows())


def coverage_at_95(
    error: Any,
    uncertainty: Any,
    *,
    confidence: float = 0.95,
    sample_weight: Any = None,
) -> CoverageAt95:
    """Return the share of errors within 1.96 u and its interval; best is 0.95.

    Of all multiples of u, 1.96 depends least on the tails: it holds 95 % of normal
    errors, and between 94.5 and 95.5 % of those from Student's t of unit variance with
    3.2 or more degrees of freedom. The share is therefore safe where <Z²> is not.
    :func:`local_coverage` with ``normal_interval(u, 0.95)`` has it by bins.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    confidence : float, default 0.95
        Coverage of the intervals.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter. The interval is that
        of the rows in effect.

    Returns
    -------
    CoverageAt95

    References
    ----------
    P. Pernot, arXiv:2408.13089 (2024); R. G. Newcombe, Statist. Med. 17, 857 (1998),
    doi:10.1002/(SICI)1097-0258(19980430)17:8<857::AID-SIM777>3.0.CO;2-E

    Examples
    --------
    >>> error = np.random.default_rng(0).normal(size=1000)
    >>> print(coverage_at_95(error, np.ones(1000)))
    within 1.96 u  0.96 [0.9454, 0.9709]
    is 0.95        yes
    rows           1000
    """
    rows = as_predictions(error, uncertainty, sample_weight=sample_weight)
    inside = np.abs(rows.errors) <= REACH * rows.uncertainty
    low, high = fraction_limits(inside, rows.weights, confidence)
    picp, n = rows.mean(inside), float(rows.n_rows)
    if rows.weights is not None:
        n = effective_number(rows.weights)
    plain_low, plain_high = _wilson(picp, n, confidence)
    return CoverageAt95(
        n_rows=rows.n_rows,
        picp=picp,
        low=low,
        high=high,
        plain_low=plain_low,
        plain_high=plain_high,
        valid=low <= EQUIVALENT[1] and high >= EQUIVALENT[0],
        confidence=confidence,
    )


def _wilson(p: float, trials: float, confidence: float) -> tuple[float, float]:
    """Return the Wilson interval, without continuity correction, of a fraction."""
    z = special.ndtri(0.5 + confidence / 2)
    middle = p + z**2 / (2 * trials)
    half = z * np.sqrt(p * (1 - p) / trials + z**2 / (4 * trials**2))
    whole = 1 + z**2 / trials
    return float((middle - half) / whole), float((middle + half) / whole)
