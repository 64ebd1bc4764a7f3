"""Learning from more rows without the old ones, where sums say all that is learned.

Sums of disjoint rows add up. A fit that keeps its sums and the limits of its bins goes
on without the old rows: those of new rows are added, and the map is learned anew from
all of them by the same code that learned the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._support.checks import Floats, Ints
from .._support.labels import Label, in_label_order
from .._support.notices import warn
from ..bins.partitions import Cells, EqualSizeBins, LabelBins
from ..bins.sums import BinSums
from ..exceptions import ForgottenIntervalsWarning, InvalidInputError
from ..oddities import Profile, squarable, warn_of_oddities, warn_of_zero_errors
from ..predictions import (
    Columns,
    Predictions,
    fitted_names,
)
from .devices import on_host

Limits = EqualSizeBins | Cells | LabelBins
NOTHING = 1e-100  # rows; what has faded so far is forgotten


class Updating(BaseEstimator):
    """The part of a recalibrator that learns from more rows, or from another fit."""

    n_samples_fit_: int
    min_uncertainty_: float
    seen_: Profile

    @property
    def is_updatable(self) -> bool:
        """Whether `update` and `merge` can go on from a fit: sums say all of it."""
        return type(self)._kept is not Updating._kept

    def _kept(self) -> KeptSums:
        """Return the sums that determine what was learned, for `update`."""
        raise NotImplementedError

    def _why_not_updatable(self) -> str:
        """Return why sums do not do; a clause without a full stop."""
        return "what it learns follows from all rows, not from sums by fixed bins"

    def update(
        self,
        X: Any,
        y: Any = None,
        *,
        forget: float = 1.0,
        half_life: float | None = None,
    ) -> Self:
        """Learn from more rows, without those of `fit`.

        What was learned is that of a fit to all rows, however they were divided; the
        limits of bins stay those of the first fit. This needs a recalibrator that
        sums determine (see `is_updatable`); others say what to do instead.

        Intervals need `conformalize` again: what it learned was for the map before.

        Parameters
        ----------
        X : Predictions, array-like or data frame of shape (n, n_columns)
            Conditioning table with the columns seen in `fit`, rows in the order in
            which they came.
        y : array-like of shape (n,), optional
            Errors, reference minus prediction; Predictions have their own.
        forget : float, default 1.0
            By which factor what was learned before a row fades with that row: 1
            forgets nothing.
        half_life : float, optional
            The same in other words: after so many rows, an old one counts one half.
            All rows before the first that fade count at most as much as an endless
            stream that fades does: as 1 / (1 − forget) rows, or 1.44 half-lives.

        Returns
        -------
        self

        Notes
        -----
        With a half-life, the factor follows a step in the size of errors. Three
        half-lives after it, 7/8 of <Z²> are those of new rows: where errors have
        grown, by however much, the factor is at most 6.5 % too small; where they have
        shrunk to one half it is 17 % too large, and 9 % after four half-lives.

        Examples
        --------
        >>> import sigmascale as ss
        >>> scaler = ss.TemperatureScaling().fit([1.0, 1.0], [2.0, -2.0])
        >>> round(scaler.update([1.0, 1.0], [4.0, 4.0]).factor_, 3)
        3.162
        >>> round(scaler.update([1.0] * 30, [5.0] * 30, half_life=10).factor_, 2)
        4.94
        """
        check_is_fitted(self)
        fade = fading(forget, half_life)
        kept = self._kept_sums()
        rows = self._with_errors(*on_host(X, y)).changed(names=fitted_names(self))
        if rows.weights is not None:
            msg = "`update` takes no weights: those of rows fade by `forget`."
            raise InvalidInputError(msg)
        profile = Profile.of(rows, warn_of_oddities(rows))
        smallest = min(self.min_uncertainty_, float(rows.uncertainty.min()))
        kept = kept.faded(fade, rows.n_rows).plus(kept.of_rows(squarable(rows), fade))
        self._learn_again(kept, profile, rows.n_rows, smallest)
        return self

    def merge(self, other: Any) -> Self:
        """Add what another fit has learned from other rows.

        Parameters
        ----------
        other : recalibrator
            One of the same kind, with the same parameters, columns and limits of bins
            (labels may differ), that was fitted to other rows. It is not changed.

        Returns
        -------
        self

        Examples
        --------
        >>> import sigmascale as ss
        >>> one = ss.TemperatureScaling().fit([1.0, 1.0], [2.0, -2.0])
        >>> other = ss.TemperatureScaling().fit([1.0, 1.0], [4.0, 4.0])
        >>> round(one.merge(other).factor_, 3)
        3.162
        """
        check_is_fitted(self)
        kept = self._kept_sums()
        own = type(self).__name__
        if type(other) is not type(self) or not hasattr(other, "map_"):
            msg = (
                f"`other` must be a fitted {own}, as this is; found "
                f"{type(other).__name__}."
            )
            raise InvalidInputError(msg)
        added = other._kept_sums()
        mine, others = self.get_params(), other.get_params()
        for name in mine:
            if repr(mine[name]) != repr(others[name]):
                msg = (
                    f"`other` must have the same parameters; {name} is "
                    f"{mine[name]!r} here and {others[name]!r} there. Fit both alike."
                )
                raise InvalidInputError(msg)
        columns = [", ".join(fitted_names(each)) for each in (self, other)]
        if columns[0] != columns[1]:
            msg = (
                f"`other` must have the same columns; found {columns[0]} here and "
                f"{columns[1]} there. Fit both to the same ones."
            )
            raise InvalidInputError(msg)
        if not kept.has_limits_of(added):
            msg = (
                "`other` must have the same limits of bins, and each fit learns its "
                "own. Fit one of both, and update it with the rows of the other."
            )
            raise InvalidInputError(msg)
        smallest = min(self.min_uncertainty_, other.min_uncertainty_)
        seen = getattr(other, "seen_", None)
        self._learn_again(kept.plus(added), seen, other.n_samples_fit_, smallest)
        return self

    def _kept_sums(self) -> KeptSums:
        """Return the sums that determine what was learned, if there are such."""
        name = type(self).__name__
        if not self.is_updatable:
            msg = (
                f"This {name} cannot be updated: {self._why_not_updatable()}. Fit it "
                "again with old and new rows together, or use one that sums "
                "determine: TemperatureScaling, BinwiseScaling or CategoryScaling."
            )
            raise InvalidInputError(msg)
        return self._kept()

    def _learn_again(
        self, kept: KeptSums, seen: Profile | None, n_new: int, smallest: float
    ) -> None:
        """Learn from sums of old and new rows together, and what else is known."""
        data: Any = KeptSummaries(fitted_names(self), kept)
        if not kept.sums.z2.any():
            warn_of_zero_errors(self.n_samples_fit_ + n_new)
        learned = copy(self)  # or what goes wrong would leave half of it
        learned.map_ = learned._learn_from_sums(data)
        self.__dict__.update(learned.__dict__)
        warn_of_forgotten(self)
        self._forget()
        if seen is None:
            self.__dict__.pop("seen_", None)
        elif hasattr(self, "seen_"):
            self.seen_ = self.seen_.plus(seen, self.n_samples_fit_, n_new)
        self.n_samples_fit_ += n_new
        self.min_uncertainty_ = smallest


def warn_of_forgotten(fitted: Any) -> None:
    """Warn that intervals were for what was learned before, if there are any."""
    if hasattr(fitted, "conformal_"):
        warn(
            "Intervals are forgotten: what held-back rows have taught was for the "
            "recalibrator before. Hold back others for it.",
            ForgottenIntervalsWarning,
            stacklevel=4,
        )


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


class KeptSummaries(Columns):
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
