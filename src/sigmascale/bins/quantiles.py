"""Order statistics, searches among limits, and sorting, of arrays of any library.

All lay a fine grid over the values: a map from numbers to cells that keeps their
order. Of a rank, counting rows by cell tells the cell, and only the rows of such cells
are sorted. In NumPy, whose rows are best taken a cache at a time, so are searches and
sorting. Of a limit, a row is compared with those in its own cell only, of which there
is at most one as a rule. To sort all rows, those of neighbouring cells are brought
together and then sorted, a few at a time. Results are exact whatever the grid: one that
crowds rows or limits into few cells costs time only, at worst that of sorting or
searching all rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints
from .libraries import Array, Library, library_of

_SORTED_AT_ONCE = 2**17  # rows for which piles to be sorted one by one do not pay
_PILE, _MOST_PILES = 2**11, 2**14  # rows in a pile, unless these were too many piles
_STATISTIC_BITS, _SEARCH_BITS = 16, 14  # at most 2^bits cells


def ends_of_runs(values: Floats) -> Ints:
    """Return where runs of equal values end."""
    return np.flatnonzero(values != np.append(values[1:], np.nan)) + 1


def order_statistics(x: Array, ranks: Ints, grid: Grid | None = None) -> Floats:
    """Return ``np.sort(x)[ranks]``; a grid over x may be at hand."""
    library, xp = library_of(x), library_of(x).xp
    grid = grid or Grid.over(x)
    if grid is None:
        near, places = library.floats(x), ranks
    else:
        cell_of_rank = np.searchsorted(np.cumsum(grid.counts), ranks, side="right")
        wanted = np.zeros(grid.counts.size, dtype=np.bool_)
        wanted[cell_of_rank] = True
        places = ranks - np.cumsum(np.where(wanted, 0, grid.counts))[cell_of_rank]
        table = library.here(wanted)
        some = (library.floats(x[rows]) for rows in library.chunks(x.shape[0]))
        near = xp.concat(
            [each[xp.take(table, grid.cells(each), axis=0)] for each in some]
        )
    found = xp.take(xp.sort(near), library.here(places.ravel()), axis=0)
    return library.to_host(found).reshape(ranks.shape)


@dataclass(frozen=True)
class Limits:
    """Ascending limits that numbers are searched among, in any library.

    Attributes
    ----------
    values : array
        The limits.
    first : int
        The result for numbers below all of them, 0 or 1.
    """

    values: Floats
    first: int = 0

    def __array__(self, dtype: Any = None, copy: Any = None) -> Floats:
        """Return the limits for libraries that have a search of their own."""
        return np.append(np.full(self.first, -np.inf), self.values)

    def prepared(self, n_rows: int) -> Search:
        """Return NumPy's own search among the limits, for so many rows."""
        return Search(self.values, n_rows, self.first)


def reached(xp: Any, limits: Any, x: Array) -> Array:
    """Return how many limits each number reaches, if a library has made them ready.

    In NumPy a number that is NaN may get any result.
    """
    if isinstance(limits, Search):
        return limits(x)
    return xp.searchsorted(limits, x, side="right")


class Search:
    """NumPy's search among limits, prepared for so many rows; call it with some."""

    def __init__(self, limits: Floats, n_rows: int, first: int = 0) -> None:
        ends = ends_of_runs(limits)
        # of equal limits, one needs to be searched for
        self._limits = limits if ends.size == limits.size else limits[ends - 1]
        self._ranks = None if ends.size == limits.size else np.append(0, ends)
        self._first = first
        self._grid = Grid.on(self._limits, n_rows, _SEARCH_BITS)
        if self._grid is not None:
            counts = np.bincount(self._grid.cells(self._limits))
            self._most = int(counts.max())
            self._limits_before = np.cumsum(counts) - counts
            self._next_limit = np.append(self._limits, np.nan)  # below which all are
            if self._most > self._limits.size.bit_length():
                self._grid = None  # a binary search takes fewer steps

    def __call__(self, x: Floats) -> Ints:
        """Return ``first + np.searchsorted(limits, x, side="right")``."""
        if self._grid is None:
            found: Ints = np.searchsorted(self._limits, x, side="right")
        else:
            cells = self._grid.cells(np.clip(x, self._limits[0], self._limits[-1]))
            # all are within, and "clip" is faster than checking that
            found = np.take(self._limits_before, cells, mode="clip")
            for _ in range(self._most):
                found += x >= np.take(self._next_limit, found, mode="clip")
        if self._ranks is not None:
            found = self._ranks[found]
        if self._first:
            found += self._first
        return found


@dataclass(frozen=True)
class Grid:
    """A map from the numbers between `low` and `high` to cells, in the same order.

    The bits of positive numbers, read as integers, are in the same order, and nearly a
    logarithm: every factor of 2 has its share of the grid.

    Attributes
    ----------
    first, steps : int
        The bits of `low`, and how many floating-point numbers lie above it up to
        `high`; no steps if numbers are not positive, or their bits are hidden.
    bits : int
        There are at most 2^bits cells.
    counts : array of int
        The rows of each cell, if they were counted.
    """

    library: Library
    low: float
    high: float
    first: int
    steps: int
    bits: int
    counts: Ints

    @classmethod
    def on(cls, values: Array, n_rows: int, most_bits: int) -> Grid | None:
        """Lay a grid on values for so many rows, unless there is no point in it."""
        library = library_of(values)
        if n_rows <= library.few or values.shape[0] < 2:
            return None
        low, high = library.range_of(values)
        if not 0 < high - low < np.inf:  # all are equal, or too far apart
            return None
        by_bits = low > 0 and library.bits(library.floats(values[:1])) is not None
        first, last = np.array([low, high]).view(np.int64).tolist()
        steps = last - first if by_bits else 0
        bits = min(most_bits, max(2, n_rows.bit_length()) - 1)
        none = np.zeros(0, dtype=np.int64)
        return cls(library, low, high, first, steps, bits, none)

    @classmethod
    def over(cls, x: Array) -> Grid | None:
        """Lay a grid on the values of all rows, and count the rows of each cell."""
        grid = cls.on(x, x.shape[0], _STATISTIC_BITS)
        if grid is None:
            return None
        library, n_cells = grid.library, 2**grid.bits
        counts = np.zeros(n_cells, dtype=np.int64)
        for rows in library.chunks(x.shape[0], n_cells):
            counts += library.counts(grid.cells(library.floats(x[rows])), n_cells)
        return replace(grid, counts=counts)

    def positions(self, x: Array) -> Array:
        """Return the position of each number, 0 to 1; neighbours may share theirs."""
        if self.steps:
            return (self.library.bits(x) - self.first) / self.steps
        return (x - self.low) / (self.high - self.low)

    def cells(self, x: Array) -> Array:
        """Return the cell of each number."""
        if not self.steps:
            xp = self.library.xp
            return xp.astype(self.positions(x) * (2**self.bits - 1), xp.int64)
        found = self.library.bits(x) - self.first
        found >>= max(0, self.steps.bit_length() - self.bits)
        return found


def in_order(*columns: npt.NDArray[Any], n_keys: int = 1) -> list[npt.NDArray[Any]]:
    """Return columns with their rows sorted by the first of them, numbers.

    Rows in which it is equal are sorted by the next of `n_keys` columns, and keep their
    order if all of these are equal: as by ``np.lexsort``, but much faster where rows do
    not fit the cache, since none is fetched from far away.
    """
    x = columns[0]
    grid = Grid.over(x) if x.size >= _SORTED_AT_ONCE else None
    if grid is None:
        return _in_order_at_once(columns, n_keys)
    # A pile is a run of cells with about as many rows as are to be sorted at a time.
    last_row = np.cumsum(grid.counts) - 1
    pile_of_cell = (last_row // max(_PILE, x.size // _MOST_PILES)).astype(np.uint16)
    sizes = np.bincount(pile_of_cell, weights=grid.counts).astype(np.int64)
    ends = np.cumsum(sizes)
    free = ends - sizes  # the place of the next row of each pile
    result = [np.empty_like(column) for column in columns]
    for rows in library_of(x).chunks(x.size, sizes.size):
        piles = pile_of_cell[grid.cells(x[rows])]
        by_pile = np.argsort(piles, kind="stable")
        added = np.bincount(piles, minlength=sizes.size)
        place = np.repeat(free - (np.cumsum(added) - added), added)
        place += np.arange(piles.size)
        for column, into in zip(columns, result, strict=True):
            into[place] = column[rows][by_pile]
        free += added
    for start, end in itertools.pairwise([0, *ends[sizes > 0].tolist()]):
        pile = [column[start:end] for column in result]
        for column, ordered in zip(pile, _in_order_at_once(pile, n_keys), strict=True):
            column[:] = ordered
    return result


def _in_order_at_once(
    columns: Sequence[npt.NDArray[Any]], n_keys: int
) -> list[npt.NDArray[Any]]:
    x, *others = columns
    order = np.argsort(x)  # not stable, but fast
    ordered = x[order]
    if np.any(ordered[1:] == ordered[:-1]):
        order = np.lexsort(columns[:n_keys][::-1])
        ordered = x[order]  # 0.0 and -0.0 are equal, too
    return [ordered, *(column[order] for column in others)]
