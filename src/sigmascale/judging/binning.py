"""The bins of judged rows: each variable is cut once, and all that is judged shares it.

Numbers make equal-size bins by their ranks, labels make one bin each. Scores need the
bin of every row and nothing else; intervals that are resampled need the rows in an
order that the data alone determine, so that the same rows get the same interval.
Intervals of rows that come in groups need several groups in a bin: bins are fewer then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import (
    Floats,
    Ints,
    check_column,
    check_same_length,
)
from .._support.labels import Label
from .._support.telling import warn
from .._support.weights import total_of
from ..bins.partitions import (
    BinnedRows,
    cut_positions,
    feasible_bins,
    rank_bins,
    rank_codes,
    weighted_bins,
)
from ..bins.sums import BinSums
from ..exceptions import FewerBinsWarning
from ..predictions import Predictions, as_predictions

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

    @property
    def are_groups(self) -> bool:
        """Whether the bins are named groups rather than ranges of a number."""
        return self.labels is not None

    @property
    def rows(self) -> BinnedRows:
        """The rows bin by bin, in the order that was asked for or as they came."""
        if self.in_order is not None:
            return self.in_order
        return BinnedRows.from_codes(self.codes, self.n_bins)

    def sums(self, error: Floats, uncertainty: Floats) -> BinSums:
        """Return the sums of the rows of each bin."""
        if self.weights is None:
            return BinSums.from_codes(self.codes, self.n_bins, error, uncertainty)
        return BinSums.from_rows(self.rows, error, uncertainty, weights=self.weights)


def judged_by(
    error: Any, uncertainty: Any, by: Any, groups: Any = None, sample_weight: Any = None
) -> tuple[Predictions, int]:
    """Check rows that are binned by one variable; return the position of its column."""
    features = None if by is None else {"by": by}
    rows = as_predictions(error, uncertainty, features, groups, sample_weight)
    return rows, len(rows.columns) - 1


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


def bin_variable(
    rows: Predictions,
    position: int,
    n_bins: int,
    *,
    ties: Floats | None = None,
    min_size: int = 1,
    in_order: bool = False,
) -> VariableBins:
    """Cut the rows into bins of one column; `ties`, or else u, orders equal values."""
    if min_size > 1 and rows.columns[position].dtype.kind == "f":
        n_bins = _bins_that_carry(rows, [position], n_bins, ties, min_size)
    return _cut(rows, position, n_bins, ties, in_order=in_order)


def bin_variables(
    rows: Predictions,
    n_bins: int,
    *,
    ties: Floats | None = None,
    min_size: int = 1,
    in_order: bool = False,
) -> dict[str, VariableBins]:
    """Cut the rows into bins of every column, by name."""
    # here, so that one warning says it for all variables
    every = range(len(rows.names))
    n_bins = _bins_that_carry(rows, list(every), n_bins, ties, min_size)
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
    name, x = rows.names[position], rows.columns[position]
    labels = rows.categories[position]
    if rows.weights is not None:
        keys = _tie_breakers(rows, position, ties)
        binned, weights = weighted_bins(x, n_bins, rows.weights, **keys)
        codes = np.repeat(np.arange(binned.sizes.size), binned.sizes)
        return VariableBins(name, x, codes, binned.sizes.size, binned, weights, labels)
    if not in_order:
        codes, n_bins = rank_codes(x, n_bins, **_tie_breakers(rows, position, ties))
        return VariableBins(name, x, codes, n_bins, labels=labels)
    binned = rank_bins(x, n_bins, **_tie_breakers(rows, position, ties))
    return VariableBins(name, x, binned.codes, binned.sizes.size, binned, labels=labels)


def _tie_breakers(
    rows: Predictions, position: int, ties: Floats | None
) -> dict[str, Any]:
    u = rows.uncertainty
    if ties is None and position > 0:
        ties = u
    # rows that are only simulated have no errors; any other numbers tell them apart
    error = u if rows.error is None else rows.error
    return {"ties": ties, "error": error, "uncertainty": u}


def _bins_that_carry(
    rows: Predictions,
    positions: list[int],
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
        x = rows.columns[position]
        if x.dtype.kind == "f":
            keys = _tie_breakers(rows, position, ties)
            weights = None
            if rows.weights is None:
                order = rank_bins(x, 1, **keys).order
            else:
                pieces, weights = weighted_bins(x, 1, rows.weights, **keys)
                order = pieces.order
            n_bins = _bins_with_groups(groups[order], weights, n_bins, min_size)
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
