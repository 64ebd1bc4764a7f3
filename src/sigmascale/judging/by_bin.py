"""What results by bin share: a value, its interval and a verdict for each bin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints, Labels
from .._support.labels import label_array, label_text
from .._support.render import html_table, plain, text_table
from .._support.telling import warn
from ..bins.partitions import BinnedRows
from ..bins.quantiles import order_statistics
from ..exceptions import FewerBinsWarning, InvalidInputError
from .binning import VariableBins
from .confidence_intervals import MIN_ROWS, wilson_interval


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
        """Whether the bins are named groups rather than ranges of a number."""
        return self.x.dtype.kind != "f"

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, arrays as lists."""
        return plain(self)

    def _cells(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        field_name, title = self._shown
        rows: list[tuple[str, ...]] = [
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

    def _start(self, i: int) -> str:
        x = self.x_min[i]
        return label_text(x) if self.is_grouped else f"{x:.4g}"

    def __str__(self) -> str:
        """Return one line a bin."""
        return text_table(*self._cells())

    def _repr_html_(self) -> str:
        return html_table(*self._cells())


def first_middle_last(
    bins: VariableBins, binned: BinnedRows, *, is_sorted: bool = False
) -> tuple[Labels, Labels, Labels]:
    """Return the smallest, middle and largest value of each bin; labels are equal.

    Pieces of weighted rows are sorted already.
    """
    ends = np.cumsum(binned.sizes)
    ranks = np.array(
        [ends - binned.sizes, ends - (binned.sizes + 1) // 2, ends - 1], dtype=np.int64
    )
    if bins.labels is not None:
        found = label_array(bins.labels)[bins.values[binned.order[ranks]]]
    elif is_sorted:
        found = bins.values[binned.order[ranks]]
    else:
        found = order_statistics(bins.values, ranks)
    return found[0], found[1], found[2]


def rows_of_bins(
    bins: VariableBins, groups: Ints | None = None
) -> tuple[BinnedRows, Floats | None]:
    """Return the rows bin by bin, without bins that are too small for an interval.

    Equal-size bins are large enough; labels may have too few rows, and either of them
    rows of too few groups. Of weighted rows, the weights are returned, too.
    """
    binned = bins.rows
    if groups is not None:
        enough = with_enough_groups(groups_of_bins(binned, groups), bins.name)
    elif bins.are_groups:
        enough = large_groups(binned.sizes, bins.name)
    else:
        return binned, bins.weights
    kept = np.repeat(enough, binned.sizes)
    weights = None if bins.weights is None else bins.weights[kept]
    return BinnedRows(binned.order[kept], binned.sizes[enough]), weights


def groups_of_bins(binned: BinnedRows, groups: Ints) -> Ints:
    """Return of how many groups each bin has rows."""
    bins = np.repeat(np.arange(binned.sizes.size), binned.sizes)
    pairs = np.unique(bins * (int(groups.max()) + 1) + groups[binned.order])
    return np.bincount(pairs // (int(groups.max()) + 1), minlength=binned.sizes.size)


def with_enough_groups(n_groups: Ints, name: str) -> npt.NDArray[np.bool_]:
    """Return which bins have enough groups for an interval; warn of the others."""
    enough = n_groups >= MIN_ROWS
    if enough.all() or n_groups.size == 1:
        return np.ones(n_groups.size, dtype=bool)
    if not enough.any():
        msg = (
            f"`groups` must have at least {MIN_ROWS} labels in a bin of `{name}`, for "
            f"an interval; found up to {n_groups.max()}. Judge fewer bins, or rows of "
            "more groups."
        )
        raise InvalidInputError(msg)
    warn(
        f"{np.count_nonzero(~enough)} of {enough.size} bins of `{name}` have rows of "
        f"fewer than {MIN_ROWS} groups, too few for an interval, and do not count in "
        "the fraction of valid bins.",
        FewerBinsWarning,
        stacklevel=2,
    )
    return enough


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
    warn(
        f"{np.count_nonzero(~large)} of {large.size} groups of `{name}` have fewer "
        f"than {MIN_ROWS} rows, too few for an interval, and do not count in the "
        "fraction of valid bins.",
        FewerBinsWarning,
        stacklevel=2,
    )
    return large
