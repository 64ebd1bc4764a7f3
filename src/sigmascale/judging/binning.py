"""The bins of judged rows: each variable is cut once, and all that is judged shares it.

Numbers make equal-size bins by their ranks, labels make one bin each. Scores need the
bin of every row and nothing else; intervals that are resampled need the rows in an
order that the data alone determine, so that the same rows get the same interval.
Intervals of rows that come in groups need several groups in a bin: bins are fewer then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints, Labels, check_column, check_same_length
from .._support.labels import Label, label_array
from .._support.notices import warn
from .._support.weights import total_of
from ..bins.partitions import (
    BinnedRows,
    cut_positions,
    feasible_bins,
    rank_bins,
    rank_codes,
    weighted_bins,
)
from ..bins.quantiles import order_statistics
from ..bins.sums import BinSums
from ..exceptions import FewerBinsWarning, InvalidInputError
from ..predictions import Predictions, as_predictions
from .intervals import MIN_ROWS

LEFT_OUT = 0.1  # the share of bins that may have too few groups for an interval


@dataclass(frozen=True, eq=False)
class VariableBins:
    """The bins of one variable of a set.

    Attributes
    ----------
    name : str
        The variable; "u" is the uncertainty.
    values : array of shape (n,)
        Its values: numbers, or codes of labels.
    codes : array of int, shape (n,)
        The bin of each row.
    n_bins : int
        The number of bins.
    in_order : BinnedRows or None
        Rows bin by bin in an order that the data alone determine, if it was asked for.
        Of weighted rows there may be several pieces of a row, of different bins even.
    weights : array or None
        Weights of the pieces, in that order. The codes are those of pieces, too.
    labels : tuple or None
        What the codes of labels stand for.
    """

    name: str
    values: npt.NDArray[Any]
    codes: Ints
    n_bins: int
    in_order: BinnedRows | None = None
    weights: Floats | None = None
    labels: tuple[Label, ...] | None = None

    @cached_property
    def rows(self) -> BinnedRows:
        """The rows bin by bin, in the order that was asked for or as they came."""
        return self.in_order or BinnedRows.from_codes(self.codes, self.n_bins)

    def sums(self, rows: Predictions) -> BinSums:
        """Return the sums of the rows of each bin."""
        e, u = rows.errors, rows.uncertainty
        if self.weights is None:
            return BinSums.from_codes(self.codes, self.n_bins, e, u)
        return BinSums.from_rows(self.rows, e, u, weights=self.weights)

    def for_intervals(self, groups: Ints | None) -> tuple[BinnedRows, Floats | None]:
        """Return the rows bin by bin, without bins that are too small for an interval.

        Equal-size bins are large enough; labels may have too few rows, and either of
        them rows of too few groups. Of weighted rows, the weights are returned, too.
        """
        binned = self.rows
        if groups is not None:
            enough = with_enough_groups(groups_of_bins(binned, groups), self.name)
        elif self.labels is not None:
            enough = with_enough_rows(binned.sizes, self.name)
        else:
            return binned, self.weights
        kept = np.repeat(enough, binned.sizes)
        weights = None if self.weights is None else self.weights[kept]
        return BinnedRows(binned.order[kept], binned.sizes[enough]), weights

    def first_middle_last(self, binned: BinnedRows) -> tuple[Labels, Labels, Labels]:
        """Return the smallest, middle and largest value of bins; labels are equal."""
        ends, sizes = np.cumsum(binned.sizes), binned.sizes
        ranks = np.array([ends - sizes, ends - (sizes + 1) // 2, ends - 1])
        if self.labels is not None:
            found = label_array(self.labels)[self.values[binned.order[ranks]]]
        elif self.in_order is not None:
            found = self.values[binned.order[ranks]]
        else:  # some bins may have been left out
            values = self.values
            kept = values if binned is self.rows else values[binned.order]
            found = order_statistics(kept, ranks)
        return found[0], found[1], found[2]


def judged_by(
    error: Any, uncertainty: Any, by: Any, groups: Any = None, sample_weight: Any = None
) -> tuple[Predictions, int]:
    """Check rows that are binned by one variable; return the position of its column.

    Of predictions, `by` is the name or the number of a column.
    """
    if isinstance(error, Predictions):
        rows = as_predictions(error, uncertainty, None, groups, sample_weight)
        return rows, 0 if by is None else rows.position(by)
    features = None if by is None else {"by": by}
    rows = as_predictions(error, uncertainty, features, groups, sample_weight)
    return rows, len(rows.columns) - 1


def unweighted(error: Any, uncertainty: Any) -> Predictions:
    """Check rows for what counts them all alike."""
    rows = as_predictions(error, uncertainty)
    if rows.weights is not None:
        msg = "This counts all rows alike: pass predictions without weights."
        raise InvalidInputError(msg)
    return rows


def check_ties(ties: Any, rows: Predictions) -> Floats | None:
    """Return the variable that orders rows with equal values, if there is one.

    It has as many rows as were given, of which those without weight are left out.
    """
    if ties is None:
        return None
    column = check_column(ties, "ties")
    if rows.places is not None and column.size > rows.places[-1]:
        column = column[rows.places]
    check_same_length("error", rows.uncertainty, "ties", column)
    return column


def bin_variables(
    rows: Predictions,
    n_bins: int,
    *,
    only: int | None = None,
    ties: Floats | None = None,
    min_size: int = 1,
    in_order: bool = False,
) -> dict[str, VariableBins]:
    """Cut the rows into bins of every column, or of `only` one of them, by name.

    `ties`, or else u, orders equal values. Bins of `min_size` rows or more have rows
    of as many groups, if there are any.
    """
    every = range(len(rows.names)) if only is None else [only]
    if only is None or (min_size > 1 and not rows.is_labelled(only)):
        # here, so that one warning says it for all variables
        n_bins = _bins_that_carry(rows, every, n_bins, ties, min_size)
    return {
        rows.names[position]: _cut(rows, position, n_bins, ties, in_order=in_order)
        for position in every
    }


def _cut(
    rows: Predictions,
    position: int,
    n_bins: int,
    ties: Floats | None,
    *,
    in_order: bool,
) -> VariableBins:
    name, x, labels = (
        rows.names[position],
        rows.columns[position],
        rows.categories[position],
    )
    u, weights = rows.uncertainty, None
    # rows that are only simulated have no errors; any other numbers tell them apart
    keys: dict[str, Any] = {
        "ties": u if ties is None and position > 0 else ties,
        "error": u if rows.error is None else rows.error,
        "uncertainty": u,
    }
    if rows.weights is not None:
        binned, weights = weighted_bins(x, n_bins, rows.weights, **keys)
        codes = np.repeat(np.arange(binned.sizes.size), binned.sizes)
    elif in_order:
        binned = rank_bins(x, n_bins, **keys)
        codes = binned.codes
    else:
        codes, n_bins = rank_codes(x, n_bins, **keys)
        return VariableBins(name, x, codes, n_bins, labels=labels)
    return VariableBins(name, x, codes, binned.sizes.size, binned, weights, labels)


def _bins_that_carry(
    rows: Predictions,
    positions: Iterable[int],
    n_bins: int,
    ties: Floats | None,
    min_size: int,
) -> int:
    """Return how many bins of some columns have enough rows, and groups, each."""
    n_bins = feasible_bins(rows.total, n_bins, min_size)
    groups = rows.group_codes
    if groups is None or min_size == 1:
        return n_bins
    wanted = n_bins
    for position in positions:
        if not rows.is_labelled(position):
            one = _cut(rows, position, 1, ties, in_order=True)
            in_order = groups[one.rows.order]
            n_bins = _bins_with_groups(in_order, one.weights, n_bins, min_size)
    if n_bins < wanted:
        warn_of_few_groups(wanted, n_bins, min_size)
    return n_bins


def warn_of_few_groups(wanted: int, n_bins: int, least: int) -> None:
    """Say that there are fewer bins than wanted, so that each has enough groups."""
    warn(
        f"{wanted} bins were asked for, but rows in groups give {n_bins} with rows of "
        f"{least} or more groups; {n_bins} are used.",
        FewerBinsWarning,
        stacklevel=5,
    )


def _bins_with_groups(
    groups: Ints, weights: Floats | None, n_bins: int, least: int
) -> int:
    """Return how many bins of sorted rows have enough groups, nearly all of them."""
    # a row is the first of its group in a bin if the one before it is in another bin
    by_group = np.argsort(groups, kind="stable")
    same = np.diff(groups[by_group]) == 0
    before = np.full(groups.size, -1)
    before[by_group[1:][same]] = by_group[:-1][same]
    while n_bins > 1:
        starts = cut_positions(total_of(groups.size, weights), n_bins)
        if weights is not None:  # at the pieces that the limits part
            starts = np.searchsorted(np.cumsum(weights), starts, side="right")
        sizes = np.diff(starts, append=groups.size)
        found = np.add.reduceat(before < np.repeat(starts, sizes), starts, dtype=int)
        if np.mean(found < least) <= LEFT_OUT:
            break
        n_bins = min(n_bins - 1, n_bins * 9 // 10)
    return max(1, n_bins)


def groups_of_bins(binned: BinnedRows, groups: Ints) -> Ints:
    """Return of how many groups each bin has rows."""
    bins = np.repeat(np.arange(binned.sizes.size), binned.sizes)
    pairs = np.unique(bins * (int(groups.max()) + 1) + groups[binned.order])
    return np.bincount(pairs // (int(groups.max()) + 1), minlength=binned.sizes.size)


def with_enough_groups(n_groups: Ints, name: str) -> npt.NDArray[np.bool_]:
    """Return which bins have enough groups for an interval; warn of the others."""
    if n_groups.size == 1:
        return np.ones(1, dtype=bool)
    return _enough(
        n_groups,
        f"bins of `{name}` have rows of fewer than {MIN_ROWS} groups",
        f"`groups` must have at least {MIN_ROWS} labels in a bin of `{name}`, for an "
        f"interval; found up to {n_groups.max()}. Judge fewer bins, or rows of more "
        "groups.",
    )


def with_enough_rows(sizes: Ints, name: str) -> npt.NDArray[np.bool_]:
    """Return which labels have enough rows for an interval; warn of the others."""
    return _enough(
        sizes,
        f"groups of `{name}` have fewer than {MIN_ROWS} rows",
        f"`{name}` must have a label with at least {MIN_ROWS} rows, for an interval; "
        f"the largest of {sizes.size} groups has {sizes.max()}. Merge labels.",
    )


def _enough(counts: Ints, few: str, none: str) -> npt.NDArray[np.bool_]:
    enough: npt.NDArray[np.bool_] = counts >= MIN_ROWS
    if not enough.any():
        raise InvalidInputError(none)
    if not enough.all():
        warn(
            f"{np.count_nonzero(~enough)} of {enough.size} {few}, too few for an "
            "interval, and do not count in the fraction of valid bins.",
            FewerBinsWarning,
            stacklevel=3,
        )
    return enough
