"""Local calibration: <Z²> of each bin of a variable, with its confidence interval."""

from __future__ import annotations

import warnings
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
    check_features,
    check_fraction,
    check_pair,
    check_variable,
    for_frames,
    refuse_for_frames,
    rng_from,
)
from .._support.render import html_table, plain, text_table
from ..bins.partitions import BinnedRows
from ..bins.quantiles import order_statistics
from ..exceptions import FewerBinsWarning, InvalidInputError
from .confidence_intervals import (
    METHODS,
    MIN_ROWS,
    RESAMPLED,
    IntervalMethod,
    mean_interval,
    moments_interval,
    wilson_interval,
)
from .scores import bin_for_scores, check_ties, codes_for_scores


@dataclass(frozen=True, kw_only=True)
class ByBin:
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
        name: str,
        limits: tuple[Floats, Floats],
        n: Ints,
        values: tuple[Labels, Labels, Labels],
        *,
        wanted: float,
        overall: tuple[float, float, float],
        confidence: float,
        **own: Any,
    ) -> Self:
        """Judge bins by their limits: those that contain the value wanted are valid.

        `values` are the smallest, the middle and the largest one of the variable; `own`
        are the fields that other results do not have.
        """
        low, high = limits
        valid = (low <= wanted) & (wanted <= high)
        count = int(np.count_nonzero(valid))
        x_min, middle, x_max = values
        return cls(
            name=name,
            low=low,
            high=high,
            valid=valid,
            n=n,
            x=middle,
            x_min=x_min,
            x_max=x_max,
            fraction_valid=count / valid.size,
            fraction_interval=wilson_interval(count, valid.size, confidence=confidence),
            overall=overall,
            confidence=confidence,
            **own,
        )

    @property
    def is_grouped(self) -> bool:
        """Whether the bins are named groups rather than intervals."""
        return self.x.dtype.kind != "f"

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, arrays as lists."""
        return plain(self)

    def _cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        field_name, title = self._shown
        rows: list[tuple[str, ...]] = [
            (
                str(self.x_min[i]) if self.is_grouped else f"{self.x_min[i]:.4g}",
                f"{self.n[i]}",
                f"{value:.3f}",
                f"[{self.low[i]:.3f}, {self.high[i]:.3f}]",
                "yes" if self.valid[i] else "no",
            )
            for i, value in enumerate(getattr(self, field_name))
        ]
        return (f"{self.name} from", "rows", title, "interval", "valid"), rows

    def __str__(self) -> str:
        """Return one line a bin."""
        return text_table(*self._cells())

    def _repr_html_(self) -> str:
        return html_table(*self._cells())


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
    """

    zms: Floats = field(repr=False)
    method: str

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
        settings: Settings,
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
        )


def local_zms(
    error: Any,
    uncertainty: Any,
    *,
    by: Any = None,
    n_bins: int = 100,
    method: IntervalMethod = "bca",
    ties: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 1500,
    rng: int | np.random.Generator | None = 0,
    data: Any = None,
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
    n_bins : int, default 100
        Number of bins; fewer, with a warning, where a bin would have under 5 rows.
        Groups of under 5 rows are left out, with a warning.
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
    data : data frame or lazy frame, optional
        The frame whose columns `error`, `uncertainty` and `by` name; see
        `sigmascale.frames`.

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
    if data is not None:
        refuse_for_frames(ties=ties, method=method)
        of_frame: LocalZMS = for_frames().local_zms(
            data,
            error=error,
            uncertainty=uncertainty,
            by=by,
            n_bins=n_bins,
            confidence=confidence,
        )
        return of_frame
    e, u = check_pair(error, uncertainty)
    variable: dict[str, Labels | None] = {"u": None}
    if by is not None:
        variable = {"by": check_variable(by, "by", e)}
    settings = check_settings(n_bins, method, confidence, n_resamples)
    (result,) = local_zms_of(
        e, u, variable, settings, ties=check_ties(ties, e), rng=rng_from(rng)
    ).values()
    return result


def local_zms_by_variable(
    error: Any,
    uncertainty: Any,
    features: Any = None,
    *,
    n_bins: int = 100,
    method: IntervalMethod = "bca",
    ties: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 1500,
    rng: int | np.random.Generator | None = 0,
) -> dict[str, LocalZMS]:
    """Return :func:`local_zms` of u and of every feature, by name."""
    e, u = check_pair(error, uncertainty)
    return local_zms_of(
        e,
        u,
        {"u": None, **check_features(features, e)},
        check_settings(n_bins, method, confidence, n_resamples),
        ties=check_ties(ties, e),
        rng=rng_from(rng),
    )


@dataclass(frozen=True)
class Settings:
    """How bins and their intervals are made, checked."""

    n_bins: int
    method: IntervalMethod
    confidence: float
    n_resamples: int


def check_settings(
    n_bins: Any, method: Any, confidence: Any, n_resamples: Any
) -> Settings:
    """Return checked settings."""
    return Settings(
        check_count(n_bins, "n_bins"),
        check_choice(method, "method", METHODS),  # type: ignore[arg-type]
        check_fraction(confidence, "confidence"),
        check_count(n_resamples, "n_resamples", least=20),
    )


def local_zms_of(
    error: Floats,
    uncertainty: Floats,
    variables: dict[str, Labels | None],
    settings: Settings,
    *,
    ties: Floats | None,
    rng: np.random.Generator,
) -> dict[str, LocalZMS]:
    """Return the local <Z²> of several variables (None is u) of checked rows."""
    return {
        name: _local_zms(error, uncertainty, name, x, settings, ties=ties, rng=rng)
        for name, x in variables.items()
    }


def _local_zms(
    error: Floats,
    uncertainty: Floats,
    name: str,
    x: Labels | None,
    settings: Settings,
    *,
    ties: Floats | None,
    rng: np.random.Generator,
) -> LocalZMS:
    refuse_one_row(error.size)
    values = uncertainty if x is None else x
    rows = (error, uncertainty, x, settings.n_bins, ties)
    if settings.method in RESAMPLED:
        binned = bin_for_scores(*rows, min_size=MIN_ROWS)
    else:
        binned = BinnedRows.from_codes(*codes_for_scores(*rows, min_size=MIN_ROWS))
    if values.dtype.kind != "f":
        binned = keep_large_groups(binned, name)
    z2 = (error / uncertainty) ** 2
    in_bins = z2[binned.order]
    limits = mean_interval(
        settings.method,
        in_bins,
        binned.sizes,
        confidence=settings.confidence,
        n_resamples=settings.n_resamples,
        rng=rng,
    )
    # the interval of all rows is narrow enough for the closed form
    squares = z2 * z2
    total = moments_interval(
        np.array([z2.size]),
        *(np.array([power.sum()]) for power in (z2, squares, squares * z2)),
        confidence=settings.confidence,
    )
    overall = (float(z2.mean()), float(total[0][0]), float(total[1][0]))
    return LocalZMS.from_limits(
        name,
        binned.reduce(np.add, in_bins) / binned.sizes,
        limits,
        binned.sizes,
        first_middle_last(values, binned),
        overall,
        settings,
    )


def refuse_one_row(n_rows: int) -> None:
    """Refuse a set that is too small for any interval."""
    if n_rows < 2:
        msg = "An interval needs at least 2 rows; found n_samples = 1."
        raise InvalidInputError(msg)


def first_middle_last(
    values: Labels, binned: BinnedRows
) -> tuple[Labels, Labels, Labels]:
    """Return the smallest, middle and largest value of each bin; labels are equal."""
    ends = np.cumsum(binned.sizes)
    ranks = np.array(
        [ends - binned.sizes, ends - (binned.sizes + 1) // 2, ends - 1], dtype=np.int64
    )
    grouped = values.dtype.kind != "f"
    found = values[binned.order[ranks]] if grouped else order_statistics(values, ranks)
    return found[0], found[1], found[2]


def keep_large_groups(binned: BinnedRows, name: str) -> BinnedRows:
    """Leave out the groups with too few rows for an interval."""
    large = large_groups(binned.sizes, name)
    return BinnedRows(binned.order[np.repeat(large, binned.sizes)], binned.sizes[large])


def large_groups(sizes: Ints, name: str) -> npt.NDArray[np.bool_]:
    """Return which groups have enough rows for an interval; warn of the others."""
    large = sizes >= MIN_ROWS
    if large.all():
        return large
    if not large.any():
        msg = (
            f"`{name}` must have a label with at least {MIN_ROWS} rows, for an "
            f"interval; the largest of {large.size} groups has {sizes.max()}. "
            "Merge labels."
        )
        raise InvalidInputError(msg)
    warnings.warn(
        f"{np.count_nonzero(~large)} of {large.size} groups of `{name}` have fewer "
        f"than {MIN_ROWS} rows, too few for an interval, and do not count in the "
        "fraction of valid bins.",
        FewerBinsWarning,
        stacklevel=2,
    )
    return large
