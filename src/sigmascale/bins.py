"""Rank bins: rows in the order of a variable, cut into bins of equal size.

The scores of the paper cut the *scored* set by the ranks of its own rows, so that every
bin has its share of them, whatever the ties. Labels make one bin each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ._support.checks import Floats, Ints, check_column, check_count, check_same_length
from ._support.hashing import hash_of_positions
from ._support.labels import Label, object_array
from ._support.notices import warn
from .exceptions import FewerBinsWarning
from .ordering import canonical_order
from .predictions import Predictions

MOST_BINS, ROWS_OF_A_BIN = 100, 30  # if nobody asks for a number of bins
_ROUNDING = 1e-9  # by which sums of weights may differ, relatively


def cut_positions(n_rows: int | float, n_bins: int) -> npt.NDArray[Any]:
    """Return the first sorted row of each of `n_bins` bins of nearly equal size.

    Of weighted rows, `n_rows` is the sum of the weights, and positions are sums, too.

    >>> cut_positions(10, 4)
    array([0, 3, 5, 8])
    """
    # floor(k n / N + 1/2) in exact integer arithmetic; a sum of weights has rounding
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
        whole = isinstance(n_rows, int)
        found = f"{n_rows} rows" if whole else f"weights of {n_rows:.4g} rows"
        warn(
            f"{n_bins} bins were asked for, but {found} give at most {feasible} "
            f"of {min_size} or more rows; {feasible} are used.",
            FewerBinsWarning,
            stacklevel=2,
        )
    return feasible


def _bins_of_size(size: int, n_rows: int | float) -> int:
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
        ends, sizes = np.cumsum(self.sizes), self.sizes
        rows = self.order[np.array([ends - sizes, ends - (sizes + 1) // 2, ends - 1])]
        found = self.values[rows]
        return tuple(found if self.labels is None else object_array(self.labels)[found])

    def some(self, which: npt.NDArray[np.bool_]) -> Bins:
        """Return some of the bins."""
        kept = np.repeat(which, self.sizes)
        weights = None if self.weights is None else self.weights[kept]
        order, sizes = self.order[kept], self.sizes[which]
        return replace(self, order=order, sizes=sizes, weights=weights)


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
    if not all(p.categories[j] is not None for j in positions):
        n_bins = feasible_bins(p.n_effective, n_bins, min_size)  # one warning for all
    if p.error is None or (p.groups is None and p.weights is None):
        return {p.names[j]: _cut_column(p, j, n_bins, ties) for j in positions}
    # rows that are alike may differ in group or weight: their order must not matter
    first = canonical_order(p)
    q, ties = p.take(first), None if ties is None else ties[first]
    bins = {p.names[j]: _cut_column(q, j, n_bins, ties) for j in positions}
    return {
        name: replace(each, values=p.columns[j], order=first[each.order])
        for j, (name, each) in zip(positions, bins.items(), strict=True)
    }


def _cut_column(p: Predictions, j: int, n_bins: int, ties: Floats | None) -> Bins:
    name, x, labels = p.names[j], p.columns[j], p.categories[j]
    u = p.y_std
    size = u if p.error is None else p.squared_error  # any numbers tell rows apart
    ties = u if ties is None and j > 0 else ties
    if labels is not None:
        keys = (size, u) if ties is u or ties is None else (u, size, ties)
        order = np.lexsort((*keys, x))
        sizes = np.unique(x, return_counts=True)[1]
        weights = None if p.weights is None else p.weights[order]
        return Bins(name, x, order, sizes, weights, labels)
    order = rank_order(x, ties, size, u)
    cuts = cut_positions(p.n_effective, n_bins)
    if p.weights is None:
        return Bins(name, x, order, np.diff(cuts, append=p.n_rows))
    # bins of equal weight: limits part rows
    ends = np.cumsum(p.weights[order])
    starts = np.append(0.0, ends[:-1])
    parts = np.union1d(starts, cuts := _snapped(cuts.astype(np.float64), starts))
    sizes = np.diff(np.searchsorted(parts, cuts), append=parts.size)
    order = order[np.searchsorted(starts, parts, side="right") - 1]
    return Bins(name, x, order, sizes, np.diff(parts, append=ends[-1]))


def rank_order(x: Floats, ties: Floats | None, size: Floats, u: Floats) -> Ints:
    """Return rows sorted by x, then by `ties`.

    Those still equal are shuffled by a fixed pseudo-random permutation of their ranks
    by (size, u), sizes being those of errors: the result depends neither on the order
    of the rows nor on the unit, and is not biased as sorting by the error would be.
    """
    order = np.argsort(x)
    ordered = x[order]
    same = ordered[1:] == ordered[:-1]
    if not same.any():
        return order
    # rows that have an equal neighbour, and the run of equal ones that each is in
    places = np.flatnonzero(np.append(same, False) | np.append(False, same))
    run = np.append(0, np.cumsum(~same))[places]
    rows, keys = order[places], [u, size] if ties is None else [u, size, ties]
    # where nothing tells rows apart, in the order in which they came
    rows = rows[np.lexsort((rows, *(key[rows] for key in keys), run))]
    new = run[1:] != run[:-1]
    if ties is not None:
        new |= ties[rows][1:] != ties[rows][:-1]
    run = np.append(0, np.cumsum(new))
    order[places] = rows[np.lexsort((hash_of_positions(places), run))]
    return order


def _snapped(cuts: Floats, starts: Floats) -> Floats:
    """Return cuts; one that is the start of a row but for rounding is that start."""
    after = np.minimum(np.searchsorted(starts, cuts), starts.size - 1)
    tolerance = _ROUNDING * float(starts[-1])
    for near in (after, np.maximum(after - 1, 0)):
        cuts = np.where(np.abs(starts[near] - cuts) <= tolerance, starts[near], cuts)
    return cuts
