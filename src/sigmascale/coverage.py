"""The interval view: how many errors lie within their limits, where, and how wide.

An interval is an array of two columns, the lower and the upper limit of the error: what
``predict_interval`` returns, or :func:`normal_interval` makes of uncertainties.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from ._checks import (
    Floats,
    Ints,
    Labels,
    check_column,
    check_count,
    check_fraction,
    check_interval,
    check_pair,
    check_uncertainty,
    check_variable,
)
from ._render import html_table, plain, text_table
from .intervals import MIN_ROWS, wilson_interval
from .local import _large_groups
from .scores import bin_for_scores, check_ties


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


def picp(error: Any, interval: Any) -> float:
    """Return the fraction of errors within their limits; best is the nominal coverage.

    It is known as the prediction interval coverage probability. Limits belong to the
    interval.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    interval : array-like of shape (n, 2)
        Lower and upper limits of the errors.

    References
    ----------
    A. Khosravi et al., IEEE Trans. Neural Netw. 22, 1341 (2011),
    doi:10.1109/TNN.2011.2162110

    Examples
    --------
    >>> picp([0.5, -3.0], [[-1.0, 1.0], [-2.0, 2.0]])
    0.5
    """
    return float(_inside(*_check(error, interval)).mean())


def mean_width(interval: Any) -> float:
    """Return the mean width of intervals; of two with equal coverage, less is better.

    Parameters
    ----------
    interval : array-like of shape (n, 2)
        Lower and upper limits of the errors.

    Examples
    --------
    >>> mean_width([[-1.0, 1.0], [-2.0, 2.0]])
    3.0
    """
    return _mean_width(check_interval(interval))


def interval_score(error: Any, interval: Any, coverage: float = 0.9) -> float:
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
    e, limits = _check(error, interval)
    return _interval_score(e, limits, check_fraction(coverage, "coverage"))


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


def interval_scores(
    error: Any, interval: Any, *, coverage: float = 0.9, confidence: float = 0.95
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
    e, limits = _check(error, interval)
    target = check_fraction(coverage, "coverage")
    inside = _inside(e, limits)
    low, high = wilson_interval(int(inside.sum()), e.size, confidence=confidence)
    return IntervalScores(
        n_rows=e.size,
        target=target,
        picp=float(inside.mean()),
        picp_low=low,
        picp_high=high,
        mean_width=_mean_width(limits),
        interval_score=_interval_score(e, limits, target),
    )


@dataclass(frozen=True)
class LocalCoverage:
    """The coverage of each bin, with its confidence interval.

    Attributes
    ----------
    name : str
        The variable that was binned.
    target : float
        The coverage that the intervals were made for.
    coverage, low, high : array of shape (n_bins,)
        Fraction of errors within their limits, and its exact (Clopper-Pearson)
        confidence interval.
    valid : array of bool, shape (n_bins,)
        Whether the confidence interval contains `target`.
    n : array of int, shape (n_bins,)
        Rows in each bin.
    x, x_min, x_max : array of shape (n_bins,)
        Median and range of the variable in each bin; for groups, the labels.
    fraction_valid : float
        Fraction of valid bins. The target is `confidence` or a little more, as exact
        intervals of counts are never too narrow.
    fraction_interval : tuple of float
        Its interval (Wilson, with continuity correction).
    overall : tuple of float
        Coverage of all rows, with the limits of its interval (Wilson).
    confidence : float
        Coverage of all confidence intervals.
    """

    name: str
    target: float
    coverage: Floats = field(repr=False)
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)
    valid: npt.NDArray[np.bool_] = field(repr=False)
    n: Ints = field(repr=False)
    x: Labels = field(repr=False)
    x_min: Labels = field(repr=False)
    x_max: Labels = field(repr=False)
    fraction_valid: float
    fraction_interval: tuple[float, float]
    overall: tuple[float, float, float]
    confidence: float

    @property
    def is_grouped(self) -> bool:
        """Whether the bins are named groups rather than intervals."""
        return self.x.dtype.kind != "f"

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, arrays as lists."""
        return plain(self)

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                str(self.x_min[i]) if self.is_grouped else f"{self.x_min[i]:.4g}",
                f"{self.n[i]}",
                f"{self.coverage[i]:.3f}",
                f"[{self.low[i]:.3f}, {self.high[i]:.3f}]",
                "yes" if self.valid[i] else "no",
            )
            for i in range(self.coverage.size)
        ]

    def __str__(self) -> str:
        """Return one line a bin."""
        return text_table((f"{self.name} from", *_HEADER), self._rows())

    def _repr_html_(self) -> str:
        return html_table((f"{self.name} from", *_HEADER), self._rows())


_HEADER = ("rows", "coverage", "interval", "valid")


def local_coverage(
    error: Any,
    uncertainty: Any,
    interval: Any,
    *,
    coverage: float = 0.9,
    by: Any = None,
    n_bins: int = 20,
    ties: Any = None,
    confidence: float = 0.95,
) -> LocalCoverage:
    """Return the coverage of each bin; every target is the nominal coverage.

    The bins are those of :func:`local_zms`, so that both views can be compared.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    interval : array-like of shape (n, 2)
        Lower and upper limits of the errors.
    coverage : float, default 0.9
        The coverage that the interval was made for.
    by : array-like of shape (n,), optional
        The variable to bin by: numbers make equal-size bins, labels make groups. By
        default the uncertainty.
    n_bins : int, default 20
        Number of bins: a fraction near 1 needs more rows a bin than <Z²>. Fewer, with a
        warning, where a bin would have under 5 rows. Groups of under 5 rows are left
        out, with a warning.
    ties : array-like of shape (n,), optional
        Orders the rows with equal `by`. By default the uncertainty.
    confidence : float, default 0.95
        Coverage of the confidence intervals of the fractions.

    Returns
    -------
    LocalCoverage

    References
    ----------
    C. J. Clopper and E. S. Pearson, Biometrika 26, 404 (1934),
    doi:10.1093/biomet/26.4.404

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 10_000)
    >>> result = local_coverage(rng.normal(scale=u), u, normal_interval(u, 0.9))
    >>> result.fraction_valid
    1.0
    >>> wrong = normal_interval(np.full_like(u, 1.5), 0.9)
    >>> local_coverage(rng.normal(scale=u), u, wrong).fraction_valid
    0.25
    """
    e, u = check_pair(error, uncertainty)
    limits = check_interval(interval, e)
    target = check_fraction(coverage, "coverage")
    level = check_fraction(confidence, "confidence")
    x = None if by is None else check_variable(by, "by", e)
    binned = bin_for_scores(
        e,
        u,
        x,
        check_count(n_bins, "n_bins"),
        check_ties(ties, e),
        min_size=MIN_ROWS,
    )
    if x is not None and x.dtype.kind != "f":
        binned = _large_groups(binned, "by")
    inside = _inside(e, limits)
    n = binned.sizes
    count = binned.reduce(np.add, inside[binned.order].astype(np.float64))
    low, high = clopper_pearson_interval(count, n, confidence=level)
    valid = (low <= target) & (target <= high)
    n_valid = int(np.count_nonzero(valid))
    values = (u if x is None else x)[binned.order]
    ends = np.cumsum(n)
    total = wilson_interval(int(inside.sum()), e.size, confidence=level)
    return LocalCoverage(
        name="u" if x is None else "by",
        target=target,
        coverage=count / n,
        low=low,
        high=high,
        valid=valid,
        n=n,
        x=values[ends - (n + 1) // 2],
        x_min=values[ends - n],
        x_max=values[ends - 1],
        fraction_valid=n_valid / valid.size,
        fraction_interval=wilson_interval(n_valid, valid.size, confidence=level),
        overall=(float(inside.mean()), *total),
        confidence=level,
    )


def clopper_pearson_interval(
    successes: Floats, trials: Ints, *, confidence: float
) -> tuple[Floats, Floats]:
    """Return the exact confidence interval of each of several fractions."""
    tail = (1 - confidence) / 2
    # at 0 and n, where the beta function has no such parameter, the limits are known
    low = special.betaincinv(np.maximum(successes, 1), trials - successes + 1, tail)
    high = special.betaincinv(
        successes + 1, np.maximum(trials - successes, 1), 1 - tail
    )
    return (
        np.where(successes == 0, 0.0, low),
        np.where(successes == trials, 1.0, high),
    )


def _check(error: Any, interval: Any) -> tuple[Floats, Floats]:
    e = check_column(error, "error")
    return e, check_interval(interval, e)


def _inside(error: Floats, limits: Floats) -> npt.NDArray[np.bool_]:
    result: npt.NDArray[np.bool_] = (limits[:, 0] <= error) & (error <= limits[:, 1])
    return result


def _mean_width(limits: Floats) -> float:
    return float(np.mean(limits[:, 1] - limits[:, 0]))


def _interval_score(error: Floats, limits: Floats, coverage: float) -> float:
    low, high = limits.T
    outside = np.maximum(low - error, 0) + np.maximum(error - high, 0)
    return float(np.mean(high - low + 2 / (1 - coverage) * outside))
