"""Local calibration: <Z²> of each bin of a variable, with its confidence interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

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
from .._support.labels import label_text
from .._support.notebook import chart, log_ticks_of, ticks_of
from .._support.render import Cells, Result
from ..bins.devices import DeviceRows
from ..bins.libraries import on_device
from ..bins.partitions import bins_of
from ..bins.quantiles import order_statistics
from ..bins.sums import BinSums
from ..exceptions import InvalidInputError
from ..predictions import Predictions
from .binning import (
    VariableBins,
    bin_variables,
    check_ties,
    groups_of_bins,
    judged_by,
    with_enough_rows,
)
from .intervals import (
    METHODS,
    MIN_ROWS,
    RESAMPLED,
    GroupSums,
    IntervalMethod,
    mean_interval,
    moments_interval,
    wilson_limits,
)
from .scores import Scorecard, refuse_weights_on_device, score

LARGE_BIN = 500  # rows from which the closed form replaces the bootstrap


@dataclass(frozen=True, kw_only=True)
class ByBin(Result):
    """What results with a value and an interval for each bin have in common."""

    _shown: ClassVar[tuple[str, str]]  # the field of the values, and what it is called

    name: str
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

    @classmethod
    def judged(
        cls,
        limits: tuple[Floats, Floats],
        values: tuple[Labels, Labels, Labels],
        *,
        wanted: float,
        confidence: float,
        **own: Any,
    ) -> Self:
        """Judge bins by their limits: those that contain the value wanted are valid.

        `values` are the smallest, the middle and the largest one of the variable; `own`
        are all other fields.
        """
        low, high = limits
        valid = (low <= wanted) & (wanted <= high)
        count = int(np.count_nonzero(valid))
        return cls(
            low=low,
            high=high,
            valid=valid,
            x_min=values[0],
            x=values[1],
            x_max=values[2],
            fraction_valid=count / valid.size,
            fraction_interval=wilson_limits(count, valid.size, confidence),
            confidence=confidence,
            **own,
        )

    @property
    def is_grouped(self) -> bool:
        """Whether the bins are named groups rather than ranges of a number."""
        return self.x.dtype.kind != "f"

    def _cells(self) -> Cells:
        field_name, title = self._shown
        rows = [
            (
                label_text(self.x_min[i])
                if self.is_grouped
                else f"{self.x_min[i]:.4g}",
                f"{self.n[i]}",
                f"{value:.3f}",
                f"[{self.low[i]:.3f}, {self.high[i]:.3f}]",
                "yes" if self.valid[i] else "no",
            )
            for i, value in enumerate(getattr(self, field_name))
        ]
        return (f"{self.name} from", "rows", title, "interval", "valid"), rows


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
        limit = check_tolerance(tolerance) ** 2
        return (self.low <= 1 / limit) & (self.high >= limit)

    def chart(self) -> str:
        """Return a small figure of the bins of u for notebooks, as SVG."""
        floor = self.zms.min(where=self.zms > 0, initial=1) / 4
        drawn = np.log(np.maximum([self.zms, self.low, self.high], floor))
        ends = np.array([self.x.min(), self.x.max()])
        return chart(
            self.x,
            drawn[0],
            labels=("uncertainty u", "local ⟨Z²⟩"),
            ticks=(ticks_of(self.x), log_ticks_of(drawn)),
            bars=(drawn[1], drawn[2]),
            wrong=~self.valid,
            lines=[(ends, np.zeros(2))],
        )


def local_zms(
    error: Any,
    uncertainty: Any = None,
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
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    by : array-like of shape (n,), optional
        The variable to bin by: numbers make equal-size bins, labels make groups. By
        default the uncertainty. Of Predictions, the name of a column.
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
        refuse_weights_on_device(sample_weight)
        how = (n_bins, method, confidence, n_resamples)
        return _local_zms_device(error, uncertainty, by, groups, how, ties)
    rows, position = judged_by(error, uncertainty, by, groups, sample_weight)
    count = bins_of(n_bins, rows.total)
    settings = check_settings(count, method, confidence, n_resamples)
    order = check_ties(ties, rows)
    bins = settings.bins(rows, order, only=position)
    return local_zms_of(rows, bins, settings, rng_from(rng))[rows.names[position]]


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

    def bins(
        self, rows: Predictions, ties: Floats | None, only: int | None = None
    ) -> dict[str, VariableBins]:
        """Cut rows into bins that are large enough for intervals."""
        refuse_one(rows)
        return bin_variables(
            rows,
            self.n_bins,
            only=only,
            ties=ties,
            min_size=MIN_ROWS,
            in_order=self.is_resampled,
        )

    def interval(
        self, sums: GroupSums, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Return the limits of the mean of each bin."""
        # of many rows, the bootstrap gives what its closed form gives at once
        is_large = self.method == "bca" and sums.sizes.min() >= LARGE_BIN
        return mean_interval(
            "moments" if is_large else self.method,
            sums,
            confidence=self.confidence,
            n_resamples=self.n_resamples,
            rng=rng,
        )


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


def check_tolerance(tolerance: Any) -> float:
    """Return a factor by which uncertainties may be off."""
    real = isinstance(tolerance, (int, float, np.integer, np.floating))
    if not real or not 1 < tolerance < np.inf:
        msg = (
            "`tolerance` must be a factor of the uncertainty above 1; found "
            f"{tolerance!r}."
        )
        raise InvalidInputError(msg)
    return float(tolerance)


def refuse_one(rows: Predictions) -> None:
    """Refuse a set whose rows, or groups, are too few for any interval."""
    _refuse_one_row(rows.n_rows)
    if rows.groups is not None and (rows.groups == rows.groups[0]).all():
        msg = (
            "`groups` must have at least 2 labels, for an interval; found 1. Leave it "
            "out if rows are independent."
        )
        raise InvalidInputError(msg)


def _refuse_one_row(n_rows: int) -> None:
    if n_rows < 2:
        msg = "An interval needs at least 2 rows; found n_samples = 1."
        raise InvalidInputError(msg)


def local_zms_of(
    rows: Predictions,
    bins: Mapping[str, VariableBins],
    settings: BinSettings,
    rng: np.random.Generator,
) -> dict[str, LocalZMS]:
    """Return the local <Z²> of checked rows in the bins of some variables."""
    z2, groups = rows.z2, rows.group_codes
    together = GroupSums.of_rows(z2, np.array([z2.size]), groups, rows.weights)
    overall = overall_interval(together, settings.confidence)
    results = {}
    for name, each in bins.items():
        binned, weights = each.for_intervals(groups)
        codes = None if groups is None else groups[binned.order]
        sums = GroupSums.of_rows(z2[binned.order], binned.sizes, codes, weights)
        n, n_effective = binned.sizes, None
        if weights is not None:
            n = groups_of_bins(binned, np.arange(rows.n_rows))  # without their pieces
            n_effective = sums.n_effective
        results[name] = LocalZMS.judged(
            settings.interval(sums, rng),
            each.first_middle_last(binned),
            wanted=1.0,
            name=name,
            n=n,
            zms=sums.mean,
            overall=overall,
            confidence=settings.confidence,
            method=settings.method,
            n_groups=None if rows.groups is None else sums.sizes,
            n_effective=n_effective,
        )
    return results


def overall_interval(sums: GroupSums, confidence: float) -> tuple[float, float, float]:
    """Return <Z²> of all rows, which make one bin, and its interval."""
    # that interval is narrow enough for the closed form
    low, high = mean_interval("moments", sums, confidence=confidence)
    return float(sums.mean[0]), float(low[0]), float(high[0])


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
    _refuse_one_row(int(total.n[0]))
    which = np.ones(sums.n.size, dtype=bool)
    if values[0].dtype.kind != "f":
        which = with_enough_rows(sums.n, name)
    (low, high), (all_low, all_high) = (
        moments_interval(
            each.n, each.z2, each.z4, each.z6, confidence=settings.confidence
        )
        for each in (sums, total)
    )
    return LocalZMS.judged(
        (low[which], high[which]),
        (values[0][which], values[1][which], values[2][which]),
        wanted=1.0,
        name=name,
        n=sums.n[which],
        zms=sums.zms[which],
        overall=(float(total.zms[0]), float(all_low[0]), float(all_high[0])),
        confidence=settings.confidence,
        method=settings.method,
    )


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
    bins = settings.bins(rows, ties)
    local = local_zms_of(rows, bins, settings, rng)
    return Measured(bins, score(rows, bins, settings.n_bins), local)
