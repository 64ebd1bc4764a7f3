"""What a recalibrator keeps of its rows, so that more of them can follow.

Sums of disjoint rows add up. A fit that keeps its sums and the limits of its bins goes
on without the old rows: those of new rows are added, and the map is learned anew from
all of them by the same code that learned the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from .._support.checks import Floats, Ints
from .._support.labels import Label, in_label_order
from ..bins.partitions import Cells, EqualSizeBins, LabelBins
from ..bins.sums import BinSums
from ..exceptions import InvalidInputError
from ..predictions import NamedColumns, Predictions

Limits = EqualSizeBins | Cells | LabelBins
NOTHING = 1e-100  # rows; what has faded so far is forgotten


@dataclass(frozen=True)
class KeptSums:
    """Sums by bin, and the limits of these bins.

    Attributes
    ----------
    partition : EqualSizeBins, Cells, LabelBins or None
        The limits; None stands for one bin of all rows. Of labels, all have sums of
        their own, and there are none beside them.
    positions : tuple of int
        The columns of the conditioning table that are binned.
    sums : BinSums
        The sums.
    """

    partition: Limits | None
    positions: tuple[int, ...]
    sums: BinSums

    @property
    def is_sound(self) -> bool:
        """Whether the parts fit together, for those that come from a file."""
        bins: Any = self.partition
        sums: Any = self.sums
        if not isinstance(sums, BinSums) or not isinstance(bins, Limits | None):
            return False
        n_bins = 1 if bins is None else bins.n_bins
        if isinstance(bins, LabelBins):
            n_bins = len(bins.labels)
        n_columns = 0 if bins is None else 2 if isinstance(bins, Cells) else 1
        return sums.n.size == n_bins and len(self.positions) == n_columns

    def of_rows(self, rows: Predictions, forget: float) -> KeptSums:
        """Return the sums of other rows in the same bins; their last counts in full.

        Each row counts `forget` times as much as the next.
        """
        partition, codes = self._codes(rows)
        n_bins = 1 if partition is None else partition.n_bins
        if isinstance(partition, LabelBins):
            n_bins = len(partition.labels)
        weights = None
        if forget < 1:
            weights = forget ** np.arange(rows.n_rows - 1.0, -1.0, -1.0)
        e, u = rows.errors, rows.uncertainty
        sums = BinSums.from_codes(codes, n_bins, e, u, weights)
        return KeptSums(partition, self.positions, sums)

    def _codes(self, rows: Predictions) -> tuple[Limits | None, Ints]:
        """Return the bin of each row; of labels, with those that there are."""
        bins = self.partition
        if bins is None:
            return None, np.zeros(rows.n_rows, dtype=np.int64)
        if isinstance(bins, LabelBins):
            labels = rows.labels(self.positions[0]).compact()
            return LabelBins(labels.labels), labels.codes
        columns = [rows.numbers(position) for position in self.positions]
        if isinstance(bins, Cells):
            return bins, bins.codes(columns[0], columns[1])
        return bins, bins.codes(columns[0], rows.uncertainty)

    def faded(self, forget: float, n_rows: int) -> KeptSums:
        """Return the sums as they are after more rows, each of which fades them.

        An endless stream that fades has the weight of 1 / (1 - forget) rows, the last
        of which counts in full. No set has more, or a large one would stay for long.
        """
        if forget == 1:
            return self
        most = 1 / (1 - forget)
        factor = forget**n_rows * min(1.0, most / float(self.sums.n.sum()))
        left = np.where(self.sums.n * factor > NOTHING, factor, 0.0)
        return replace(self, sums=_scaled(self.sums, left))

    def plus(self, other: KeptSums) -> KeptSums:
        """Return the sums of both, which must not share rows; labels are united."""
        a, b = self.partition, other.partition
        if not isinstance(a, LabelBins) or not isinstance(b, LabelBins):
            return replace(self, sums=self.sums + other.sums)
        both = LabelBins(united(a.labels, b.labels))
        codes = both.bins_of((*a.labels, *b.labels))
        sums = joined([self.sums, other.sums]).regrouped(codes, len(both.labels))
        return replace(self, partition=both, sums=sums)

    def has_limits_of(self, other: KeptSums) -> bool:
        """Return whether the bins are the same; labels need not be."""
        a, b = self.partition, other.partition
        if isinstance(a, LabelBins) and isinstance(b, LabelBins):
            return True
        limits = [_limits(each) for each in (a, b)]
        return len(limits[0]) == len(limits[1]) and all(
            np.array_equal(x, y) for x, y in zip(*limits, strict=True)
        )


class KeptSummaries(NamedColumns):
    """Kept sums in place of rows, for `_learn_from_sums`.

    It answers those questions of `Summaries` that were answered before, and so had
    sums to keep.
    """

    def __init__(self, names: tuple[str, ...], kept: KeptSums) -> None:
        self.names = names
        self._kept = kept

    def total(self) -> BinSums:
        """Return the sums of all rows."""
        return self._kept.sums.total

    def by_bins(self, position: int, n_bins: int) -> tuple[Any, BinSums]:
        """Return the kept bins, whatever their number, and their sums."""
        return self._kept.partition, self._kept.sums

    def by_cells(self, positions: Any, n_bins: Any) -> tuple[Any, BinSums]:
        """Return the kept cells, whatever their number, and their sums."""
        return self._kept.partition, self._kept.sums

    def by_labels(self, position: int) -> tuple[tuple[Label, ...], BinSums]:
        """Return the labels, sorted, and the sums of each."""
        partition: Any = self._kept.partition
        return partition.labels, self._kept.sums


def fading(forget: Any, half_life: Any) -> float:
    """Return by which factor sums fade with every row."""
    if not is_real(forget) or not 0 < forget <= 1:
        msg = f"`forget` must be a number above 0, and at most 1; found {forget!r}."
        raise InvalidInputError(msg)
    if half_life is None:
        return float(forget)
    if not is_real(half_life) or not 0 < half_life < np.inf:
        msg = f"`half_life` must be a finite number above 0; found {half_life!r}."
        raise InvalidInputError(msg)
    if forget != 1:
        msg = (
            "Pass `forget` or `half_life`, not both: sums fade by the factor `forget` "
            "with every row, and to one half in `half_life` rows; found "
            f"{forget!r} and {half_life!r}."
        )
        raise InvalidInputError(msg)
    return float(0.5 ** (1 / half_life))


def is_real(value: Any) -> bool:
    """Return whether a value is a number."""
    real = isinstance(value, (int, float, np.integer, np.floating))
    return real and not isinstance(value, bool)


def united(a: tuple[Label, ...], b: tuple[Label, ...]) -> tuple[Label, ...]:
    """Return the labels of both, if they are of one kind: numbers, or text."""
    kinds = [
        {"text" if isinstance(label, str) else "numbers" for label in each} - {None}
        for each in ([x for x in labels if x is not None] for labels in (a, b))
    ]
    if kinds[0] and kinds[1] and kinds[0] != kinds[1]:
        msg = (
            f"Labels must be {min(kinds[0])}, as they were in fit; found "
            f"{min(kinds[1])}. Read the column as it was read then."
        )
        raise InvalidInputError(msg)
    return in_label_order({*a, *b})


def joined(parts: Sequence[BinSums]) -> BinSums:
    """Return the bins of several summaries side by side."""
    each_part = [_by_name(part) for part in parts]
    return BinSums(
        **{
            name: np.concatenate([part[name] for part in each_part])
            for name in each_part[0]
        }
    )


def taken(sums: BinSums, which: Any) -> BinSums:
    """Return some of the bins."""
    return BinSums(**{name: each[which] for name, each in _by_name(sums).items()})


def _by_name(sums: Any) -> dict[str, Any]:
    if not isinstance(sums, BinSums):  # but something else, in a file
        msg = f"sums are a {type(sums).__name__}."
        raise TypeError(msg)
    return {each.name: getattr(sums, each.name) for each in fields(sums)}


def _scaled(sums: BinSums, factor: Floats) -> BinSums:
    """Return sums of rows that count by a factor; the range of u is what it was."""
    scaled = {
        name: each * factor
        for name, each in _by_name(sums).items()
        if name not in ("x_min", "x_max")
    }
    return replace(sums, **scaled)


def _limits(bins: Any) -> list[Any]:
    """Return the numbers that a partition consists of."""
    if bins is None:
        return []
    if isinstance(bins, Cells):
        return [*_limits(bins.first), *_limits(bins.second)]
    return [bins.limits, np.empty(0) if bins.tie_limits is None else bins.tie_limits]
