"""The interval view: how many errors lie within their limits, and how wide these are.

An interval is an array of two columns, the lower and the upper limit of the error: what
``predict_interval`` returns, or :func:`normal_interval` makes of uncertainties.
Local coverage is for intervals what local calibration is for variances, in the same
bins.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from .._support.checks import (
    Floats,
    Ints,
    as_array,
    check_column,
    check_count,
    check_fraction,
    check_interval,
    check_uncertainty,
)
from .._support.render import Cells, Result
from .._support.weights import check_weights, effective_number, mean_of
from ..predictions import Predictions
from .binning import VariableBins, bin_variables, check_ties, groups_of_bins, judged_by
from .intervals import (
    MIN_ROWS,
    GroupSums,
    clopper_pearson_limits,
    wilson_limits,
    within_groups,
)
from .local import ByBin


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
    return mean_of(_inside(e, limits), weights)


@dataclass(frozen=True)
class IntervalScores(Result):
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
    mean_width : float
        The mean width of the intervals; of two with equal coverage, less is better.
    interval_score : float
        The mean interval score (Winkler); lower is better.
    """

    n_rows: int
    target: float
    picp: float
    picp_low: float
    picp_high: float
    mean_width: float
    interval_score: float

    def _cells(self) -> Cells:
        spread = f"[{self.picp_low:.3f}, {self.picp_high:.3f}]"
        return ("score", "value"), [
            ("coverage", f"{self.picp:.3f} {spread}, target {self.target:g}"),
            ("mean width", f"{self.mean_width:.4g}"),
            ("interval score", f"{self.interval_score:.4g}"),
            ("rows", f"{self.n_rows}"),
        ]


def interval_scores(
    error: Any,
    interval: Any,
    *,
    coverage: float = 0.9,
    confidence: float = 0.95,
    sample_weight: Any = None,
) -> IntervalScores:
    """Return coverage with its confidence interval, mean width and interval score.

    The interval score is (high − low) + 2 / (1 − coverage) × the distance by which an
    error lies outside. It is proper: nothing beats the true quantiles at
    (1 ± coverage) / 2.

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
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter. The confidence
        interval is that of the rows in effect.

    Returns
    -------
    IntervalScores

    References
    ----------
    R. L. Winkler, J. Am. Stat. Assoc. 67, 187 (1972),
    doi:10.1080/01621459.1972.10481224; T. Gneiting and A. E. Raftery, ibid. 102, 359
    (2007), doi:10.1198/016214506000001437

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
    e, limits, weights = _check(error, interval, sample_weight)
    target = check_fraction(coverage, "coverage")
    level = check_fraction(confidence, "confidence")
    inside = mean_of(_inside(e, limits), weights)
    n = float(e.size) if weights is None else effective_number(weights)
    picp_low, picp_high = wilson_limits(inside * n, n, level)
    low, high = limits.T
    outside = np.maximum(low - e, 0) + np.maximum(e - high, 0)
    return IntervalScores(
        n_rows=e.size,
        target=target,
        picp=inside,
        picp_low=picp_low,
        picp_high=picp_high,
        mean_width=mean_of(high - low, weights),
        interval_score=mean_of(high - low + 2 / (1 - target) * outside, weights),
    )


def _check(
    error: Any, interval: Any, sample_weight: Any
) -> tuple[Floats, Floats, Floats | None]:
    e = check_column(error, "error")
    limits = check_interval(interval, e)
    kept, weights = check_weights(sample_weight, e, "error")
    return (e, limits, weights) if kept is None else (e[kept], limits[kept], weights)


def _inside(error: Floats, limits: Floats) -> npt.NDArray[np.bool_]:
    """Return which errors lie within their limits, both checked."""
    result: npt.NDArray[np.bool_] = (limits[:, 0] <= error) & (error <= limits[:, 1])
    return result


@dataclass(frozen=True, kw_only=True)
class LocalCoverage(ByBin):
    """The coverage of each bin, with its confidence interval.

    Attributes
    ----------
    name : str
        The variable that was binned.
    target : float
        The coverage that the intervals were made for.
    coverage, low, high : array of shape (n_bins,)
        Fraction of errors within their limits, and its exact (Clopper-Pearson)
        confidence interval; of the effective number of rows, if these come in groups.
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

    target: float
    coverage: Floats = field(repr=False)

    _shown = ("coverage", "coverage")


def local_coverage(
    error: Any,
    uncertainty: Any = None,
    interval: Any = None,
    *,
    coverage: float = 0.9,
    by: Any = None,
    groups: Any = None,
    n_bins: int = 20,
    ties: Any = None,
    confidence: float = 0.95,
    sample_weight: Any = None,
) -> LocalCoverage:
    """Return the coverage of each bin; every target is the nominal coverage.

    The bins are those of :func:`local_zms`, so that both views can be compared.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    interval : array-like of shape (n, 2)
        Lower and upper limits of the errors.
    coverage : float, default 0.9
        The coverage that the interval was made for.
    by : array-like of shape (n,), optional
        The variable to bin by: numbers make equal-size bins, labels make groups. By
        default the uncertainty. Of Predictions, the name of a column.
    groups : array-like of shape (n,), optional
        Labels; rows with the same label belong together, as repeats of one sample do.
        A bin then counts with its effective number of rows, see *Notes*.
    n_bins : int, default 20
        Number of bins: a fraction near 1 needs more rows a bin than <Z²>. Fewer, with a
        warning, where a bin would have under 5 rows, or rows of under 5 of `groups`.
        Labels of `by` with fewer are left out, with a warning.
    ties : array-like of shape (n,), optional
        Orders the rows with equal `by`. By default the uncertainty.
    confidence : float, default 0.95
        Coverage of the confidence intervals of the fractions.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter. Bins then have equal
        weights, and count with their effective number of rows.

    Returns
    -------
    LocalCoverage

    Notes
    -----
    With groups, r is the correlation, within groups, of whether an error lies within
    its limits, estimated from all rows and at least 0. The n rows of a bin, n_g of
    each group, count as n / (1 + r (Σ n_g² / n − 1)) independent ones, of which the
    same fraction lies within the limits. With weights w, and W_g their sums by group,
    they count as (Σ w)² / ((1 − r) Σ w² + r Σ W_g²).

    References
    ----------
    C. J. Clopper and E. S. Pearson, Biometrika 26, 404 (1934),
    doi:10.1093/biomet/26.4.404; E. L. Korn and B. I. Graubard, Survey Methodology 24,
    193 (1998)

    Examples
    --------
    >>> import numpy as np
    >>> from sigmascale import normal_interval
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 10_000)
    >>> result = local_coverage(rng.normal(scale=u), u, normal_interval(u, 0.9))
    >>> result.fraction_valid
    1.0
    >>> wrong = normal_interval(np.full_like(u, 1.5), 0.9)
    >>> local_coverage(rng.normal(scale=u), u, wrong).fraction_valid
    0.25
    """
    rows, position = judged_by(error, uncertainty, by, groups, sample_weight)
    given = rows.errors if isinstance(error, Predictions) else as_array(error, "error")
    limits = check_interval(interval, given)
    if limits.shape[0] > rows.n_rows:
        limits = limits[rows.places]
    target = check_fraction(coverage, "coverage")
    n_bins = check_count(n_bins, "n_bins")
    confidence = check_fraction(confidence, "confidence")
    order = check_ties(ties, rows)
    bins = bin_variables(rows, n_bins, only=position, ties=order, min_size=MIN_ROWS)
    inside = _inside(rows.errors, limits).astype(np.float64)
    return _coverage_of(inside, bins[rows.names[position]], rows, target, confidence)


def _coverage_of(
    inside: Floats,
    bins: VariableBins,
    rows: Predictions,
    target: float,
    confidence: float,
) -> LocalCoverage:
    """Return the coverage of each bin, from which errors are inside their limits."""
    groups = rows.group_codes
    every: Any = slice(None) if rows.weights is None else np.arange(rows.n_rows)
    binned, weights = bins.for_intervals(groups)
    order, n = binned.order, binned.sizes
    correlation = 0.0
    if rows.groups is not None and groups is not None:
        if rows.weights is None:
            means = np.repeat(binned.reduce(np.add, inside[order]) / n, n)
            correlation = within_groups(inside[order] - means, groups[order])
        else:
            correlation = within_groups(inside - inside.mean(), groups)

    def summed(row: Any, sizes: Ints, weights: Floats | None) -> tuple[Floats, Floats]:
        """Return the coverage of bins, and how many rows they count as."""
        pieces = None if weights is None else row  # of weighted rows there may be some
        by_row = GroupSums.of_rows(inside[row], sizes, pieces, weights)
        squares: Floats = by_row.squared_counts
        if correlation and groups is not None:
            by_group = GroupSums.of_rows(inside[row], sizes, groups[row], weights)
            squares = (1 - correlation) * squares
            squares = squares + correlation * by_group.squared_counts
        return by_row.mean, by_row.n**2 / squares

    fraction, trials = summed(order, n, weights)
    mean, of_all = summed(every, np.array([rows.n_rows]), rows.weights)
    return LocalCoverage.judged(
        clopper_pearson_limits(fraction * trials, trials, confidence),
        bins.first_middle_last(binned),
        wanted=target,
        name=bins.name,
        n=n if weights is None else groups_of_bins(binned, every),
        overall=(
            float(mean[0]),
            *wilson_limits(float(mean[0] * of_all[0]), float(of_all[0]), confidence),
        ),
        confidence=confidence,
        target=target,
        coverage=fraction,
    )
