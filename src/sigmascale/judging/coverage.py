"""The interval view: how many errors lie within their limits, and how wide these are.

An interval is an array of two columns, the lower and the upper limit of the error: what
``predict_interval`` returns, or :func:`normal_interval` makes of uncertainties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from .._support.checks import (
    Floats,
    check_column,
    check_fraction,
    check_interval,
    check_uncertainty,
)
from .._support.render import html_table, plain
from .._support.weights import check_weights, effective_number, mean_of
from ..maps.laws import StudentLaw
from .confidence_intervals import wilson_interval, wilson_limits


def normal_interval(uncertainty: Any, coverage: float = 0.9) -> Floats:
    """Return the limits ± u Φ⁻¹((1 + coverage) / 2) that uncertainties claim.

    They cover what they say if errors are normal and uncertainties right, which nothing
    guarantees; ``predict_interval`` of a recalibrator has a guarantee.

    Parameters
    ----------
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    coverage : float, default 0.9
        Probability that an error lies within its limits.

    Returns
    -------
    array of shape (n, 2)

    Examples
    --------
    >>> normal_interval([1.0, 2.0], coverage=0.95)
    array([[-1.96,  1.96],
           [-3.92,  3.92]])
    """
    u = check_uncertainty(uncertainty)
    half = u * special.ndtri(0.5 + check_fraction(coverage, "coverage") / 2)
    return np.column_stack([-half, half])


def picp(error: Any, interval: Any, *, sample_weight: Any = None) -> float:
    """Return the fraction of errors within their limits; best is the nominal coverage.

    It is known as the prediction interval coverage probability. Limits belong to the
    interval.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    interval : array-like of shape (n, 2)
        Lower and upper limits of the errors.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter.

    References
    ----------
    A. Khosravi et al., IEEE Trans. Neural Netw. 22, 1341 (2011),
    doi:10.1109/TNN.2011.2162110

    Examples
    --------
    >>> picp([0.5, -3.0], [[-1.0, 1.0], [-2.0, 2.0]])
    0.5
    """
    e, limits, weights = _check(error, interval, sample_weight)
    return mean_of(inside_limits(e, limits), weights)


def mean_width(interval: Any, *, sample_weight: Any = None) -> float:
    """Return the mean width of intervals; of two with equal coverage, less is better.

    Parameters
    ----------
    interval : array-like of shape (n, 2)
        Lower and upper limits of the errors.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter.

    Examples
    --------
    >>> mean_width([[-1.0, 1.0], [-2.0, 2.0]])
    3.0
    """
    limits = check_interval(interval)
    kept, weights = check_weights(sample_weight, limits, "interval")
    return _mean_width(limits if kept is None else limits[kept], weights)


def interval_score(
    error: Any, interval: Any, coverage: float = 0.9, *, sample_weight: Any = None
) -> float:
    """Return the mean interval score (Winkler); lower is better.

    S = (high − low) + 2 / (1 − coverage) × the distance by which an error lies outside.
    It is a proper score: nothing beats the true quantiles at (1 ± coverage) / 2.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    interval : array-like of shape (n, 2)
        Lower and upper limits of the errors.
    coverage : float, default 0.9
        The coverage that the interval was made for.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter.

    References
    ----------
    R. L. Winkler, J. Am. Stat. Assoc. 67, 187 (1972),
    doi:10.1080/01621459.1972.10481224; T. Gneiting and A. E. Raftery, ibid. 102, 359
    (2007), doi:10.1198/016214506000001437

    Examples
    --------
    >>> round(interval_score([0.5, -3.0], [[-1.0, 1.0], [-2.0, 2.0]], 0.9), 6)
    13.0
    """
    e, limits, weights = _check(error, interval, sample_weight)
    return _interval_score(e, limits, check_fraction(coverage, "coverage"), weights)


@dataclass(frozen=True)
class IntervalScores:
    """How good the intervals of one set are.

    Attributes
    ----------
    n_rows : int
        Size of the set.
    target : float
        The coverage that the intervals were made for.
    picp : float
        The fraction of errors within their limits; best is `target`.
    picp_low, picp_high : float
        Its confidence interval (Wilson, with continuity correction).
    mean_width, interval_score : float
        Lower is better.
    """

    n_rows: int
    target: float
    picp: float
    picp_low: float
    picp_high: float
    mean_width: float
    interval_score: float

    def to_dict(self) -> dict[str, Any]:
        """Return all fields."""
        return plain(self)

    def _rows(self) -> list[tuple[str, str]]:
        spread = f"[{self.picp_low:.3f}, {self.picp_high:.3f}]"
        return [
            ("coverage", f"{self.picp:.3f} {spread}, target {self.target:g}"),
            ("mean width", f"{self.mean_width:.4g}"),
            ("interval score", f"{self.interval_score:.4g}"),
            ("rows", f"{self.n_rows}"),
        ]

    def __str__(self) -> str:
        """Return one line a score."""
        return "\n".join(f"{name:<15} {value}" for name, value in self._rows())

    def _repr_html_(self) -> str:
        return html_table(("score", "value"), self._rows())


def law_interval(uncertainty: Any, law: StudentLaw, coverage: float = 0.9) -> Floats:
    """Return the central limits of a law of errors.

    Parameters
    ----------
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    law : StudentLaw
        The law, such as ``law_`` of a recalibrator with ``distribution="student"``.
    coverage : float, default 0.9
        Probability that an error lies within its limits.

    Returns
    -------
    array of shape (n, 2)

    Examples
    --------
    >>> import sigmascale as ss
    >>> law_interval([1.0, 2.0], ss.StudentLaw(df=3.0, scale=0.5)).round(2)
    array([[-1.18,  1.18],
           [-2.35,  2.35]])
    """
    u = check_uncertainty(uncertainty)
    half = u * law.quantiles(0.5 + check_fraction(coverage, "coverage") / 2)
    return np.column_stack([-half, half])


def interval_scores(
    error: Any,
    interval: Any,
    *,
    coverage: float = 0.9,
    confidence: float = 0.95,
    law: StudentLaw | None = None,
    sample_weight: Any = None,
) -> IntervalScores:
    """Return coverage with its confidence interval, mean width and interval score.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    interval : array-like of shape (n, 2)
        Lower and upper limits of the errors.
    coverage : float, default 0.9
        The coverage that the interval was made for.
    confidence : float, default 0.95
        Coverage of the confidence interval of the fraction.
    law : StudentLaw, optional
        The law of the errors; `interval` then is the uncertainty, of shape (n,), and
        the limits are those of :func:`law_interval`.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter. The confidence
        interval is that of the rows in effect.

    Returns
    -------
    IntervalScores

    Examples
    --------
    >>> import numpy as np
    >>> u = np.linspace(1, 2, 1000)
    >>> error = np.random.default_rng(0).normal(scale=u)
    >>> print(interval_scores(error, normal_interval(u, 0.9), coverage=0.9))
    coverage        0.914 [0.894, 0.930], target 0.9
    mean width      4.935
    interval score  6.114
    rows            1000
    """
    if law is not None:
        interval = law_interval(interval, law, coverage)
    e, limits, weights = _check(error, interval, sample_weight)
    target = check_fraction(coverage, "coverage")
    inside = inside_limits(e, limits)
    low, high = fraction_limits(inside, weights, confidence)
    return IntervalScores(
        n_rows=e.size,
        target=target,
        picp=mean_of(inside, weights),
        picp_low=low,
        picp_high=high,
        mean_width=_mean_width(limits, weights),
        interval_score=_interval_score(e, limits, target, weights),
    )


def fraction_limits(
    inside: npt.NDArray[np.bool_], weights: Floats | None, confidence: float
) -> tuple[float, float]:
    """Return the Wilson interval of the fraction of rows that are inside."""
    if weights is None:
        return wilson_interval(int(inside.sum()), inside.size, confidence=confidence)
    n = effective_number(weights)
    level = check_fraction(confidence, "confidence")
    return wilson_limits(mean_of(inside, weights) * n, n, level)


def _check(
    error: Any, interval: Any, sample_weight: Any
) -> tuple[Floats, Floats, Floats | None]:
    e = check_column(error, "error")
    limits = check_interval(interval, e)
    kept, weights = check_weights(sample_weight, e, "error")
    return (e, limits, weights) if kept is None else (e[kept], limits[kept], weights)


def inside_limits(error: Floats, limits: Floats) -> npt.NDArray[np.bool_]:
    """Return which errors lie within their limits, both checked."""
    result: npt.NDArray[np.bool_] = (limits[:, 0] <= error) & (error <= limits[:, 1])
    return result


def _mean_width(limits: Floats, weights: Floats | None) -> float:
    return mean_of(limits[:, 1] - limits[:, 0], weights)


def _interval_score(
    error: Floats, limits: Floats, coverage: float, weights: Floats | None
) -> float:
    low, high = limits.T
    outside = np.maximum(low - error, 0) + np.maximum(error - high, 0)
    return mean_of(high - low + 2 / (1 - coverage) * outside, weights)
