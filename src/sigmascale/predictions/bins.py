"""Rank bins: rows in the order of a variable, cut into bins of equal size.

The scores of the paper cut the *scored* set by the ranks of its own rows, so that every
bin has its share of them, whatever the ties. Labels make one bin each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints, check_column, check_count, check_same_length
from .._support.hashing import hash_of_positions
from .._support.labels import Label, object_array
from .._support.notices import warn
from .._support.numerals import number
from ..exceptions import FewerBinsWarning
from .ordering import canonical_order
from .predictions import Predictions

# if nobody asks for a number of bins
MOST_BINS = 100
ROWS_OF_A_BIN = 30
_ROUNDING = 1e-9  # by which sums of weights may differ, relatively


def cut_positions(n_rows: int | float, n_bins: int) -> npt.NDArray[Any]:
    """Return the first sorted row of each of `n_bins` bins of nearly equal size.

    Of weighted rows, `n_rows` is the sum of the weights, and positions are sums, too.

    >>> cut_positions(10, 4)
    array([0, 3, 5, 8])
    """
    # floor(k n / N + 1/2) = floor((2 k n + N) / 2 N), in exact integer arithmetic
    slack = 0 if isinstance(n_rows, int) else _ROUNDING * n_rows * n_bins
    return (2 * np.arange(n_bins) * n_rows + n_bins + slack) // (2 * n_bins)


def bins_of(n_bins: Any, n_rows: int | float, name: str = "n_bins") -> int:
    """Return the number of bins that was asked for, or as many as suit the rows.

    If nobody asks for a number, there are as many bins of 30 rows or more as there can
    be, up to 100: for all scores, intervals and pictures, so that they can be compared.

    >>> bins_of(None, 400), bins_of(None, 10**6), bins_of(None, 12), bins_of(7, 400)
    (13, 100, 1, 7)
    """
    if n_bins is None:
        return max(1, min(MOST_BINS, _bins_of_size(ROWS_OF_A_BIN, n_rows)))
    return check_count(n_bins, name)


def feasible_bins(n_rows: int | float, n_bins: int, min_size: int = 1) -> int:
    """Return how many bins of at least `min_size` rows there can be, up to `n_bins`."""
    feasible = max(1, min(n_bins, _bins_of_size(min_size, n_rows)))
    if feasible < n_bins:
        rows = f"{n_rows} rows"
        if not isinstance(n_rows, int):
            rows = f"weights of {number(n_rows, 4)} rows"
        warn(
            f"{n_bins} bins were asked for, but {rows} give at most {feasible} "
            f"of {min_size} or more rows; {feasible} are used.",
            FewerBinsWarning,
            stacklevel=2,
        )
    return feasible


def _bins_of_size(size: int, n_rows: int | float) -> int:
    """Return how many bins of a size there can be; a sum of weights has rounding."""
    slack = 0 if isinstance(n_rows, int) else _ROUNDING * n_rows
    return int((n_rows + slack) // size)


@dataclass(frozen=True, eq=False)
class Bins:
    """The rows of a set, bin by bin, in an order that the data alone determine.

    Attributes
    ----------
    name : str
        The variable; "u" is the uncertainty.
    values : array of shape (n,)
        Its values: numbers, or codes of labels.
    order : array of int, shape (n_pieces,)
        Rows, bin by bin. A limit between bins of equal weight parts the row that it
        falls into, which then stands on both sides.
    sizes : array of int, shape (n_bins,)
        Rows, or pieces of rows, in each bin; none is empty.
    weights : array of shape (n_pieces,), or None
        Weights in that order.
    labels : tuple or None
        What the codes of labels stand for.
    """

    name: str
    values: npt.NDArray[Any]
    order: Ints
    sizes: Ints
    weights: Floats | None = None
    labels: tuple[Label, ...] | None = None

    @property
    def codes(self) -> Ints:
        """The bin of each piece, in order."""
        return np.repeat(np.arange(self.sizes.size), self.sizes)

    @property
    def rows(self) -> list[Ints]:
        """The rows of each bin."""
        return np.split(self.order, np.cumsum(self.sizes)[:-1])

    @property
    def weights_of_rows(self) -> list[Floats | None]:
        """The weights of the rows of each bin."""
        if self.weights is None:
            return [None] * self.sizes.size
        return list(np.split(self.weights, np.cumsum(self.sizes)[:-1]))

    def sums(self, values: Floats) -> Floats:
        """Return the sum of values of all rows, by bin."""
        in_order = values[self.order]
        if self.weights is not None:
            in_order = self.weights * in_order
        sums: Floats = np.add.reduceat(in_order, np.cumsum(self.sizes) - self.sizes)
        return sums

    def means(self, values: Floats) -> Floats:
        """Return the mean of values of all rows, by bin."""
        weights: Any = self.sizes
        if self.weights is not None:
            weights = self.sums(np.ones(values.size))
        return np.asarray(self.sums(values) / weights)

    def first_middle_last(self) -> tuple[npt.NDArray[Any], ...]:
        """Return the smallest, middle and largest value of bins; labels are equal."""
        # pieces of a bin stand in the order of their values
        ends = np.cumsum(self.sizes)
        first = ends - self.sizes
        middle = ends - (self.sizes + 1) // 2
        last = ends - 1

        values = self.values[self.order[np.array([first, middle, last])]]
        if self.labels is not None:
            values = object_array(self.labels)[values]
        return tuple(values)

    def some(self, which: npt.NDArray[np.bool_]) -> Bins:
        """Return some of the bins: those for which `which` is true."""
        pieces = np.repeat(which, self.sizes)
        return replace(
            self,
            order=self.order[pieces],
            sizes=self.sizes[which],
            weights=None if self.weights is None else self.weights[pieces],
        )


def check_ties(ties: Any, p: Predictions) -> Floats | None:
    """Return the variable that orders rows with equal values, if there is one."""
    if ties is None:
        return None
    column = check_column(ties, "ties")
    if p.places is not None and column.size > p.places[-1]:
        column = column[p.places]  # rows without weight were left out
    check_same_length("y_std", p.y_std, "ties", column)
    return column


def cut(
    p: Predictions,
    n_bins: int,
    *,
    by: str | int | None = None,
    ties: Floats | None = None,
    min_size: int = 1,
) -> dict[str, Bins]:
    """Cut the rows into bins of every column, or of the one that is named.

    Rows with equal values are ordered by `ties`, or else by u. `n_bins` is asked for;
    rows may suffice for fewer of `min_size` or more.
    """
    positions = range(len(p.names)) if by is None else [p.position(by)]
    if any(p.categories[j] is None for j in positions):
        n_bins = feasible_bins(p.n_effective, n_bins, min_size)  # one warning for all
    if p.error is None or (p.groups is None and p.weights is None):
        return {p.names[j]: _cut_column(p, j, n_bins, ties) for j in positions}

    # rows that are alike may differ in group or weight: their order must not matter
    canonical = canonical_order(p)
    rows = p.take(canonical)
    if ties is not None:
        ties = ties[canonical]
    bins = {}
    for j in positions:
        of_column = _cut_column(rows, j, n_bins, ties)
        # in these bins rows have their old places again
        order = canonical[of_column.order]
        bins[p.names[j]] = replace(of_column, values=p.columns[j], order=order)
    return bins


def _cut_column(p: Predictions, j: int, n_bins: int, ties: Floats | None) -> Bins:
    """Return the bins of a column: one of each label, or `n_bins` of numbers.

    Rows with equal values are ordered by `ties`; without, those of features by u.
    """
    if ties is None and j > 0:
        ties = p.y_std
    # what else tells rows apart: any numbers do where errors are not known
    size = p.y_std if p.error is None else p.squared_error
    if p.categories[j] is not None:
        return _bins_of_labels(p, j, ties, size)

    order = rank_order(p.columns[j], ties, size, p.y_std)
    cuts = cut_positions(p.n_effective, n_bins)
    if p.weights is None:
        sizes = np.diff(cuts, append=p.n_rows)
        return Bins(p.names[j], p.columns[j], order, sizes)
    return _bins_of_equal_weight(p, j, order, cuts)


def _bins_of_labels(p: Predictions, j: int, ties: Floats | None, size: Floats) -> Bins:
    """Return a bin of each label of column j, its rows by ties, size and u."""
    codes = p.columns[j]
    # the last key counts first
    if ties is None or ties is p.y_std:
        order = np.lexsort((size, p.y_std, codes))  # as given
    else:
        order = np.lexsort((p.y_std, size, ties, codes))  # as given
    return Bins(
        p.names[j],
        codes,
        order,
        sizes=np.unique(codes, return_counts=True)[1],  # whole numbers
        weights=None if p.weights is None else p.weights[order],
        labels=p.categories[j],
    )


def _bins_of_equal_weight(p: Predictions, j: int, order: Ints, cuts: Floats) -> Bins:
    """Return bins of column j whose limits, sums of weights, part the rows they hit."""
    assert p.weights is not None
    # rows side by side, each as long as its weight: row i covers starts[i] to ends[i]
    ends = np.cumsum(p.weights[order])
    starts = np.append(0.0, ends[:-1])
    cuts = _snapped(cuts.astype(np.float64), starts)

    # pieces begin where a row or a bin does
    pieces = np.union1d(starts, cuts)  # snapped
    first_of_bin = np.searchsorted(pieces, cuts)  # snapped
    row_of_piece = np.searchsorted(starts, pieces, side="right") - 1  # snapped
    return Bins(
        p.names[j],
        p.columns[j],
        order[row_of_piece],
        sizes=np.diff(first_of_bin, append=pieces.size),
        weights=np.diff(pieces, append=ends[-1]),
    )


def rank_order(x: Floats, ties: Floats | None, size: Floats, u: Floats) -> Ints:
    """Return rows sorted by x, then by `ties`.

    Those still equal are shuffled by a fixed pseudo-random permutation of their ranks
    by (size, u), sizes being those of errors: the result depends neither on the order
    of the rows nor on the unit, and is not biased as sorting by the error would be.
    """
    order = np.argsort(x)  # as given
    ordered = x[order]
    same = ordered[1:] == ordered[:-1]
    if not same.any():
        return order

    # places of rows that have an equal neighbour, and the run of equal x each is in
    places = np.flatnonzero(np.append(same, False) | np.append(False, same))
    run = np.append(0, np.cumsum(~same))[places]

    # in each run by ties, size and u; where these are equal, too, as rows came
    rows = order[places]
    keys = [rows, u[rows], size[rows]]
    if ties is not None:
        keys.append(ties[rows])
    rows = rows[np.lexsort((*keys, run))]  # as given

    # runs of rows that are equal in x and in ties are shuffled
    starts_run = run[1:] != run[:-1]
    if ties is not None:
        starts_run |= ties[rows][1:] != ties[rows][:-1]
    run = np.append(0, np.cumsum(starts_run))
    order[places] = rows[np.lexsort((hash_of_positions(places), run))]  # whole numbers
    return order


def _snapped(cuts: Floats, starts: Floats) -> Floats:
    """Return cuts; one that is the start of a row but for rounding is that start."""
    after = np.minimum(np.searchsorted(starts, cuts), starts.size - 1)  # snapped
    tolerance = _ROUNDING * float(starts[-1])
    for near in (after, np.maximum(after - 1, 0)):
        cuts = np.where(np.abs(starts[near] - cuts) <= tolerance, starts[near], cuts)
    return cuts
