"""Local coverage: the fraction of errors within their limits in each bin of a variable.

What `judging.local` is for variances, this is for intervals, in the same bins.
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
    check_count,
    check_fraction,
    check_interval,
)
from ..predictions import Predictions
from .binning import VariableBins, bin_variable, check_ties, judged_by
from .by_bin import ByBin, first_middle_last, groups_of_bins, rows_of_bins
from .confidence_intervals import MIN_ROWS, wilson_interval, wilson_limits
from .coverage import inside_limits
from .grouped_intervals import GroupSums, design_effect, within_groups


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
    uncertainty: Any,
    interval: Any,
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
    limits = check_interval(interval, as_array(error, "error"))
    if rows.places is not None:
        limits = limits[rows.places]
    target = check_fraction(coverage, "coverage")
    n_bins = check_count(n_bins, "n_bins")
    confidence = check_fraction(confidence, "confidence")
    order = check_ties(ties, rows)
    bins = bin_variable(rows, position, n_bins, ties=order, min_size=MIN_ROWS)
    inside = inside_limits(rows.errors, limits)
    if rows.weights is not None:
        return _weighted_coverage_of(inside, bins, rows, target, confidence)
    return _coverage_of(inside, bins, rows.group_codes, target, confidence)


def _weighted_coverage_of(
    inside: npt.NDArray[np.bool_],
    bins: VariableBins,
    rows: Predictions,
    target: float,
    confidence: float,
) -> LocalCoverage:
    """Return the weighted coverage of each bin."""
    clusters, every = rows.group_codes, np.arange(rows.n_rows)
    assert clusters is not None
    share = inside.astype(np.float64)
    r = 0.0
    if rows.groups is not None:
        r = within_groups(share - share.mean(), clusters)

    def effective(row: Ints, sizes: Ints, weights: Floats | None) -> GroupSums:
        return GroupSums.of_rows(share[row], sizes, clusters[row], weights)

    def trials(row: Ints, sizes: Ints, weights: Floats | None) -> Floats:
        by_row = GroupSums.of_rows(share[row], sizes, every[row], weights)
        by_group = effective(row, sizes, weights)
        squares = (1 - r) * by_row.squared_counts + r * by_group.squared_counts
        found: Floats = by_row.n**2 / squares
        return found

    binned, weights = rows_of_bins(bins, clusters)
    n = trials(binned.order, binned.sizes, weights)
    fraction = effective(binned.order, binned.sizes, weights).mean
    mean = rows.mean(share)
    of_all = float(trials(every, np.array([every.size]), rows.weights)[0])
    return LocalCoverage.judged(
        bins.name,
        clopper_pearson_interval(fraction * n, n, confidence=confidence),
        groups_of_bins(binned, every),
        first_middle_last(bins, binned, is_sorted=True),
        wanted=target,
        overall=(mean, *wilson_limits(mean * of_all, of_all, confidence)),
        confidence=confidence,
        target=target,
        coverage=fraction,
    )


def _coverage_of(
    inside: npt.NDArray[np.bool_],
    bins: VariableBins,
    groups: Ints | None,
    target: float,
    confidence: float,
) -> LocalCoverage:
    """Return the coverage of each bin, from which errors are inside their limits."""
    binned, _ = rows_of_bins(bins, groups)
    n = binned.sizes
    sorted_inside = inside[binned.order].astype(np.float64)
    fraction = binned.reduce(np.add, sorted_inside) / n
    count: Floats = binned.reduce(np.add, sorted_inside)
    if groups is None:
        trials: Floats = n.astype(np.float64)
        total = wilson_interval(int(inside.sum()), inside.size, confidence=confidence)
    else:
        codes = groups[binned.order]
        correlation = within_groups(sorted_inside - np.repeat(fraction, n), codes)
        sums = GroupSums.of_rows(sorted_inside, n, codes)
        trials = n / design_effect(sums, correlation)
        count = fraction * trials
        all_rows = np.array([inside.size])
        together = GroupSums.of_rows(inside.astype(np.float64), all_rows, groups)
        effective = float(inside.size / design_effect(together, correlation)[0])
        total = wilson_limits(inside.mean() * effective, effective, confidence)
    return LocalCoverage.judged(
        bins.name,
        clopper_pearson_interval(count, trials, confidence=confidence),
        n,
        first_middle_last(bins, binned),
        wanted=target,
        overall=(float(inside.mean()), *total),
        confidence=confidence,
        target=target,
        coverage=fraction,
    )


def clopper_pearson_interval(
    successes: Floats, trials: Floats, *, confidence: float
) -> tuple[Floats, Floats]:
    """Return the exact confidence interval of each of several fractions."""
    tail = (1 - confidence) / 2
    # at 0 and n, where the beta function has no such parameter, the limits are known
    failures = trials - successes
    low = special.betaincinv(np.where(successes > 0, successes, 1), failures + 1, tail)
    high = special.betaincinv(
        successes + 1, np.where(failures > 0, failures, 1), 1 - tail
    )
    return (
        np.where(successes == 0, 0.0, low),
        np.where(successes == trials, 1.0, high),
    )
