"""Local calibration: <Z²> of each bin of a variable, with its confidence interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import (
    Floats,
    Ints,
    Labels,
    check_choice,
    check_count,
    check_fraction,
    rng_from,
)
from ..bins.devices import DeviceRows, on_device
from ..bins.partitions import bins_of
from ..bins.quantiles import order_statistics
from ..bins.sums import BinSums
from ..exceptions import InvalidInputError
from ..predictions import Predictions
from .binning import VariableBins, bin_variable, bin_variables, check_ties, judged_by
from .by_bin import (
    ByBin,
    first_middle_last,
    groups_of_bins,
    large_groups,
    rows_of_bins,
)
from .confidence_intervals import (
    METHODS,
    MIN_ROWS,
    RESAMPLED,
    IntervalMethod,
    mean_interval,
    moments_interval,
)
from .grouped_intervals import GroupSums, grouped_mean_interval
from .scores import Scorecard, refuse_weights_on_device, score


@dataclass(frozen=True, kw_only=True)
class LocalZMS(ByBin):
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
        Median and range of the variable in each bin; for groups, the labels.
    fraction_valid : float
        Fraction of valid bins. The target is about `confidence`; heavy-tailed errors
        attain less (see :func:`reference_scores`).
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
    n_effective : array of shape (n_bins,), or None
        Of weighted rows, how many of equal weight would tell as much, in each bin; if
        rows came in groups, how many groups.
    """

    zms: Floats = field(repr=False)
    method: str
    n_groups: Ints | None = field(default=None, repr=False)
    n_effective: Floats | None = field(default=None, repr=False)

    _shown = ("zms", "<Z²>")

    @classmethod
    def from_limits(
        cls,
        name: str,
        zms: Floats,
        limits: tuple[Floats, Floats],
        n: Ints,
        values: tuple[Labels, Labels, Labels],
        overall: tuple[float, float, float],
        settings: BinSettings,
        n_groups: Ints | None = None,
        n_effective: Floats | None = None,
    ) -> LocalZMS:
        """Judge bins by the limits of their <Z²>."""
        return cls.judged(
            name,
            limits,
            n,
            values,
            wanted=1.0,
            overall=overall,
            confidence=settings.confidence,
            zms=zms,
            method=settings.method,
            n_groups=n_groups,
            n_effective=n_effective,
        )

    def says_nothing(self, tolerance: float) -> npt.NDArray[np.bool_]:
        """Return the bins whose u could be off by a factor, both ways.

        Parameters
        ----------
        tolerance : float
            The factor of u, above 1.

        Returns
        -------
        array of bool, shape (n_bins,)
        """
        real = isinstance(tolerance, (int, float, np.integer, np.floating))
        if not real or not 1 < tolerance < np.inf:
            msg = (
                "`tolerance` must be a factor of the uncertainty above 1; found "
                f"{tolerance!r}."
            )
            raise InvalidInputError(msg)
        limit = tolerance**2
        return (self.low <= 1 / limit) & (self.high >= limit)


def local_zms(
    error: Any,
    uncertainty: Any,
    *,
    by: Any = None,
    groups: Any = None,
    n_bins: int | None = None,
    method: IntervalMethod = "bca",
    ties: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 1500,
    rng: int | np.random.Generator | None = 0,
    sample_weight: Any = None,
) -> LocalZMS:
    """Return <Z²> of each bin with its confidence interval; every target is 1.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    by : array-like of shape (n,), optional
        The variable to bin by: numbers make equal-size bins, labels make groups. By
        default the uncertainty.
    groups : array-like of shape (n,), optional
        Labels; rows with the same label belong together, as repeats of one sample do.
        Intervals then count groups rather than rows. Without them, all rows count as
        independent.
    n_bins : int, optional
        Number of bins; by default they have 30 rows or more, and there are at most 100.
        Fewer, with a warning, where a bin would have under 5 rows, or rows of under 5
        of `groups`. Labels of `by` with fewer are left out, with a
        warning.
    method : {"bca", "bootstrap-t", "student", "moments"}, default "bca"
        How intervals are made. "moments" needs no resampling and agrees with "bca";
        "bootstrap-t" keeps its coverage better under heavy tails.
    ties : array-like of shape (n,), optional
        Orders the rows with equal `by`. By default the uncertainty.
    confidence : float, default 0.95
        Coverage of the intervals.
    n_resamples : int, default 1500
        Bootstrap draws of "bca" and "bootstrap-t".
    rng : int, Generator or None, default 0
        Seed of the bootstrap: the same data get the same verdict.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter. Bins then have equal
        weights, and intervals count a row, however large its weight, as one.

    Returns
    -------
    LocalZMS

    References
    ----------
    P. Pernot, arXiv:2309.06240 (2023).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 10_000)
    >>> result = local_zms(rng.normal(scale=u), u)
    >>> result.fraction_valid
    0.95
    """
    if on_device(error, uncertainty, by, groups):
        if sample_weight is not None:
            refuse_weights_on_device()
        how = (n_bins, method, confidence, n_resamples)
        return _local_zms_device(error, uncertainty, by, groups, how, ties)
    rows, position = judged_by(error, uncertainty, by, groups, sample_weight)
    count = bins_of(n_bins, rows.total)
    settings = check_settings(count, method, confidence, n_resamples)
    order, generator = check_ties(ties, rows), rng_from(rng)
    refuse_one(rows)
    bins = bin_variable(
        rows,
        position,
        settings.n_bins,
        ties=order,
        min_size=MIN_ROWS,
        in_order=settings.is_resampled,
    )
    return local_zms_of(rows, {bins.name: bins}, settings, generator)[bins.name]


def _local_zms_device(
    error: Any, uncertainty: Any, by: Any, groups: Any, how: tuple[Any, ...], ties: Any
) -> LocalZMS:
    rows = DeviceRows.judged(error, uncertainty, None if by is None else {"by": by})
    n_bins, *others = how
    settings = check_settings(bins_of(n_bins, rows.n_rows), *others)
    if settings.method != "moments" or groups is not None:
        msg = (
            'Rows on a device are judged by sums: pass method="moments" and no '
            f"groups; found method={settings.method!r}. Or copy them to NumPy."
        )
        raise InvalidInputError(msg)
    position = len(rows.columns) - 1
    with rows.library.in_64_bits():
        terms = ("z2", "z4", "z6")
        sums = rows.ranked_sums(position, settings.n_bins, terms, ties, MIN_ROWS)
        ends = np.cumsum(sums.n)
        ranks = np.array([ends - sums.n, ends - (sums.n + 1) // 2, ends - 1])
        values = order_statistics(rows.columns[position], ranks)
    return local_zms_of_sums(
        rows.names[position], sums, (values[0], values[1], values[2]), settings
    )


@dataclass(frozen=True)
class BinSettings:
    """How many bins there are and how their intervals are made, checked."""

    n_bins: int
    method: IntervalMethod
    confidence: float
    n_resamples: int

    @property
    def is_resampled(self) -> bool:
        """Whether intervals depend on the order of the rows in a bin."""
        return self.method in RESAMPLED


def check_settings(
    n_bins: int, method: Any, confidence: Any = 0.95, n_resamples: Any = 1500
) -> BinSettings:
    """Return checked settings."""
    return BinSettings(
        n_bins,
        check_choice(method, "method", METHODS),  # type: ignore[arg-type]
        check_fraction(confidence, "confidence"),
        check_count(n_resamples, "n_resamples", least=20),
    )


def refuse_one_row(n_rows: int) -> None:
    """Refuse a set that is too small for any interval."""
    if n_rows < 2:
        msg = "An interval needs at least 2 rows; found n_samples = 1."
        raise InvalidInputError(msg)


def refuse_one(rows: Predictions) -> None:
    """Refuse a set whose rows, or groups, are too few for any interval."""
    refuse_one_row(rows.n_rows)
    if rows.groups is not None and (rows.groups == rows.groups[0]).all():
        msg = (
            "`groups` must have at least 2 labels, for an interval; found 1. Leave it "
            "out if rows are independent."
        )
        raise InvalidInputError(msg)


def local_zms_of(
    rows: Predictions,
    bins: Mapping[str, VariableBins],
    settings: BinSettings,
    rng: np.random.Generator,
) -> dict[str, LocalZMS]:
    """Return the local <Z²> of checked rows in the bins of some variables."""
    z2 = (rows.errors / rows.uncertainty) ** 2
    groups = rows.group_codes
    overall = _overall(z2, settings.confidence, groups, rows.weights)
    results = {}
    for name, each in bins.items():
        binned, weights = rows_of_bins(each, groups)
        in_bins = z2[binned.order]
        how: dict[str, Any] = {
            "confidence": settings.confidence,
            "n_resamples": settings.n_resamples,
            "rng": rng,
        }
        n, n_groups, n_effective = binned.sizes, None, None
        zms = binned.reduce(np.add, in_bins) / n
        if groups is None:
            limits = mean_interval(settings.method, in_bins, n, **how)
        else:
            codes = groups[binned.order]
            sums = GroupSums.of_rows(in_bins, n, codes, weights)
            limits = grouped_mean_interval(settings.method, sums, **how)
            n_groups = None if rows.groups is None else sums.sizes
        if weights is not None:
            zms, n_effective = sums.mean, sums.n_effective
            n = groups_of_bins(binned, np.arange(rows.n_rows))  # without their pieces
        results[name] = LocalZMS.from_limits(
            name,
            zms,
            limits,
            n,
            first_middle_last(each, binned, is_sorted=weights is not None),
            overall,
            settings,
            n_groups,
            n_effective,
        )
    return results


def local_zms_of_sums(
    name: str,
    sums: BinSums,
    values: tuple[Labels, Labels, Labels],
    settings: BinSettings,
) -> LocalZMS:
    """Return the local <Z²> of rows that were summed elsewhere.

    `values` are the smallest, middle and largest value of each bin, or its label.
    """
    total = sums.total
    refuse_one_row(int(total.n[0]))
    which = np.ones(sums.n.size, dtype=bool)
    if values[0].dtype.kind != "f":
        which = large_groups(sums.n, name)
    (low, high), (all_low, all_high) = (
        moments_interval(
            each.n, each.z2, each.z4, each.z6, confidence=settings.confidence
        )
        for each in (sums, total)
    )
    return LocalZMS.from_limits(
        name,
        sums.zms[which],
        (low[which], high[which]),
        sums.n[which],
        (values[0][which], values[1][which], values[2][which]),
        (float(total.zms[0]), float(all_low[0]), float(all_high[0])),
        settings,
    )


def _overall(
    z2: Floats, confidence: float, groups: Ints | None, weights: Floats | None
) -> tuple[float, float, float]:
    """Return <Z²> of all rows, and its interval."""
    # that interval is narrow enough for the closed form
    if groups is not None:
        sums = GroupSums.of_rows(z2, np.array([z2.size]), groups, weights)
        return overall_of_groups(sums, confidence)
    squares = z2 * z2
    low, high = moments_interval(
        np.array([z2.size]),
        *(np.array([power.sum()]) for power in (z2, squares, squares * z2)),
        confidence=confidence,
    )
    return float(z2.mean()), float(low[0]), float(high[0])


def overall_of_groups(sums: GroupSums, confidence: float) -> tuple[float, float, float]:
    """Return <Z²> of all groups, which make one bin, and its interval."""
    low, high = grouped_mean_interval(
        "moments",
        sums,
        confidence=confidence,
        n_resamples=0,
        rng=np.random.default_rng(0),
    )
    return float(sums.mean[0]), float(low[0]), float(high[0])


@dataclass(frozen=True, eq=False)
class Measured:
    """The scores and the local <Z²> of a set, both from the same bins."""

    bins: dict[str, VariableBins]
    scores: Scorecard
    local: dict[str, LocalZMS]


def measure(
    rows: Predictions,
    settings: BinSettings,
    rng: np.random.Generator,
    *,
    ties: Floats | None = None,
) -> Measured:
    """Cut checked rows into bins of u and every feature, once, and measure them."""
    refuse_one(rows)
    bins = bin_variables(
        rows,
        settings.n_bins,
        ties=ties,
        min_size=MIN_ROWS,
        in_order=settings.is_resampled,
    )
    local = local_zms_of(rows, bins, settings, rng)
    return Measured(bins, score(rows, bins, settings.n_bins), local)
