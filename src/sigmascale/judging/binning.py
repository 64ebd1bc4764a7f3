"""The bins of judged rows: each variable is cut once, and all that is judged shares it.

Numbers make equal-size bins by their ranks, labels make one bin each. Scores need the
bin of every row and nothing else; intervals that are resampled need the rows in an
order that the data alone determine, so that the same rows get the same interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from .._support.checks import Floats, Ints, Labels, check_column, check_variable
from .._support.rows import Rows, judged_rows
from ..bins.partitions import BinnedRows, feasible_bins, rank_bins, rank_codes


@dataclass(frozen=True, eq=False)
class VariableBins:
    """The bins of one variable of a set.

    Attributes
    ----------
    name : str
        The variable; "u" is the uncertainty.
    values : array of shape (n,)
        Its values: numbers, or labels.
    codes : array of int, shape (n,)
        The bin of each row.
    n_bins : int
        The number of bins.
    in_order : BinnedRows or None
        Rows bin by bin in an order that the data alone determine, if it was asked for.
    """

    name: str
    values: Labels
    codes: Ints
    n_bins: int
    in_order: BinnedRows | None = None

    @property
    def are_groups(self) -> bool:
        """Whether the bins are named groups rather than ranges of a number."""
        return self.values.dtype.kind != "f"

    @property
    def rows(self) -> BinnedRows:
        """The rows bin by bin, in the order that was asked for or as they came."""
        if self.in_order is not None:
            return self.in_order
        return BinnedRows.from_codes(self.codes, self.n_bins)


def judged_by(error: Any, uncertainty: Any, by: Any) -> tuple[Rows, int]:
    """Check rows that are binned by one variable; return the position of its column."""
    features = None if by is None else {"by": by}
    rows = judged_rows(error, uncertainty, features)
    return rows, len(rows.columns) - 1


def check_ties(ties: Any, rows: npt.NDArray[Any]) -> Floats | None:
    """Return the variable that orders rows with equal values, if there is one."""
    if ties is None:
        return None
    return check_column(check_variable(ties, "ties", rows), "ties")


def bin_variable(
    rows: Rows,
    position: int,
    n_bins: int,
    *,
    ties: Floats | None = None,
    min_size: int = 1,
    in_order: bool = False,
) -> VariableBins:
    """Cut the rows into bins of one column; `ties`, or else u, orders equal values."""
    name, x, u = rows.names[position], rows.columns[position], rows.uncertainty
    if ties is None and position > 0:
        ties = u
    # rows that are only simulated have no errors; any other numbers tell them apart
    error = u if rows.error is None else rows.error
    if not in_order:
        codes, n_bins = rank_codes(
            x, n_bins, ties=ties, error=error, uncertainty=u, min_size=min_size
        )
        return VariableBins(name, x, codes, n_bins)
    binned = rank_bins(
        x, n_bins, ties=ties, error=error, uncertainty=u, min_size=min_size
    )
    return VariableBins(name, x, binned.codes, binned.sizes.size, binned)


def bin_variables(
    rows: Rows,
    n_bins: int,
    *,
    ties: Floats | None = None,
    min_size: int = 1,
    in_order: bool = False,
) -> dict[str, VariableBins]:
    """Cut the rows into bins of every column, by name."""
    # here, so that one warning says it for all variables
    n_bins = feasible_bins(rows.n_rows, n_bins, min_size)
    return {
        name: bin_variable(rows, position, n_bins, ties=ties, in_order=in_order)
        for position, name in enumerate(rows.names)
    }
