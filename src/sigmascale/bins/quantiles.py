"""Order statistics, searches among limits, and sorting, within the processor's cache.

All lay a fine grid over the values: a map from numbers to cells that keeps their
order. Of a rank, counting rows by cell tells the cell, and only the rows of such cells
are sorted. Of a limit, a row is compared with those in its own cell only, of which
there is at most one as a rule. To sort all rows, those of neighbouring cells are
brought together and then sorted, a few at a time. Results are exact whatever the grid:
one that crowds rows or limits into few cells costs time only, at worst that of sorting
or searching all rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints

# rows at a time, so that intermediate results stay in the cache, and so small that the
# allocator keeps their memory: fresh pages from the system take longer than the work
CHUNK = 10_000
_FEW = 2**8  # rows for which a grid does not pay
_SORTED_AT_ONCE = 2**17  # rows for which piles to be sorted one by one do not pay
_PILE, _MOST_PILES = 2**11, 2**14  # rows in a pile, unless these were too many piles
_STATISTIC_BITS, _SEARCH_BITS = 16, 14  # at most 2^bits cells


def chunks(n_rows: int, least: int = 1) -> Iterator[slice]:
    """Yield slices that cover `n_rows` rows, of at least `least` but for the last."""
    size = max(CHUNK, least)
    return (slice(start, start + size) for start in range(0, n_rows, size))


def ends_of_runs(values: Floats) -> Ints:
    """Return where runs of equal values end."""
    return np.flatnonzero(values != np.append(values[1:], np.nan)) + 1


def order_statistics(x: Floats, ranks: Ints) -> Floats:
    """Return ``np.sort(x)[ranks]``."""
    grid = _Grid.over(x, x.size, _STATISTIC_BITS)
    if grid is None:
        return np.asarray(np.sort(x)[ranks])
    cells = np.empty(x.size, dtype=np.uint16)
    for rows in chunks(x.size):
        cells[rows] = grid.cells(x[rows])
    counts = np.bincount(cells)
    ends = np.cumsum(counts)
    cell_of_rank = np.searchsorted(ends, ranks, side="right")
    wanted = np.zeros(counts.size, dtype=np.bool_)
    wanted[cell_of_rank] = True
    near = np.concatenate(
        [x[rows][wanted.take(cells[rows])] for rows in chunks(x.size)]
    )
    near.sort()
    left_out = np.cumsum(np.where(wanted, 0, counts))
    return np.asarray(near[ranks - left_out[cell_of_rank]])


def search(limits: Floats, x: Floats) -> Ints:
    """Return ``np.searchsorted(limits, x, side="right")``; no x may be NaN."""
    found = Search(limits, x.size)
    codes = np.empty(x.size, dtype=np.int64)
    for rows in chunks(x.size):
        codes[rows] = found(x[rows])
    return codes


class Search:
    """A search among limits, prepared for so many rows; call it with some at a time."""

    def __init__(self, limits: Floats, n_rows: int) -> None:
        ends = ends_of_runs(limits)
        # of equal limits, one needs to be searched for
        self._limits = limits if ends.size == limits.size else limits[ends - 1]
        self._ranks = None if ends.size == limits.size else np.append(0, ends)
        self._grid = _Grid.over(self._limits, n_rows, _SEARCH_BITS)
        if self._grid is not None:
            counts = np.bincount(self._grid.cells(self._limits))
            self._most = int(counts.max())
            self._limits_before = np.cumsum(counts) - counts
            self._next_limit = np.append(self._limits, np.nan)  # below which all are
            if self._most > self._limits.size.bit_length():
                self._grid = None  # a binary search takes fewer steps

    def __call__(self, x: Floats) -> Ints:
        """Return ``np.searchsorted(limits, x, side="right")``; no x may be NaN."""
        if self._grid is None:
            found: Ints = np.searchsorted(self._limits, x, side="right")
        else:
            cells = self._grid.cells(np.clip(x, self._limits[0], self._limits[-1]))
            # all are within, and "clip" is faster than checking that
            found = np.take(self._limits_before, cells, mode="clip")
            for _ in range(self._most):
                found += x >= np.take(self._next_limit, found, mode="clip")
        return found if self._ranks is None else self._ranks[found]


@dataclass(frozen=True)
class Scale:
    """A map from the numbers between `low` and `high` to 0 .. 1, in the same order."""

    low: float
    high: float

    @classmethod
    def over(cls, values: Floats) -> Scale | None:
        """Return a scale of all values, unless they are equal or too far apart."""
        low, high = float(values.min()), float(values.max())
        return cls(low, high) if 0 < high - low < np.inf else None

    def positions(self, x: Floats) -> Floats:
        """Return the position of each number; neighbours may share theirs."""
        if self.low <= 0:
            return (x - self.low) / (self.high - self.low)
        positions: Floats = self._steps(x) / self._length
        return positions

    def cells(self, x: Floats, bits: int) -> Ints:
        """Return the cell of each number, of at most 2^bits."""
        if self.low <= 0:
            cells: Ints = (self.positions(x) * (2**bits - 1)).astype(np.int64)
            return cells
        steps = self._steps(x)
        steps >>= max(0, self._length.bit_length() - bits)
        return steps

    def _steps(self, x: Floats) -> Ints:
        """Return how many floating-point numbers lie between `low` and each number.

        The bits of positive numbers, read as integers, are in the same order, and
        nearly a logarithm: every factor of 2 has its share of the scale.
        """
        steps: Ints = x.view(np.int64) - _bits(self.low)
        return steps

    @property
    def _length(self) -> int:
        return _bits(self.high) - _bits(self.low)


@dataclass(frozen=True)
class _Grid:
    """A scale that is divided into cells."""

    scale: Scale
    bits: int

    @classmethod
    def over(cls, values: Floats, n_rows: int, most_bits: int) -> _Grid | None:
        """Lay a grid over all values, unless there is no point in it."""
        if n_rows <= _FEW or values.size < 2:
            return None
        scale = Scale.over(values)
        bits = min(most_bits, max(2, n_rows.bit_length()) - 1)
        return None if scale is None else cls(scale, bits)

    def cells(self, x: Floats) -> Ints:
        """Return the cell of each number."""
        return self.scale.cells(x, self.bits)


def _bits(x: float) -> int:
    return int(np.float64(x).view(np.int64))


def in_order(*columns: npt.NDArray[Any], n_keys: int = 1) -> list[npt.NDArray[Any]]:
    """Return columns with their rows sorted by the first of them, numbers.

    Rows in which it is equal are sorted by the next of `n_keys` columns, and keep their
    order if all of these are equal: as by ``np.lexsort``, but much faster where rows do
    not fit the cache, since none is fetched from far away.
    """
    x = columns[0]
    grid = _Grid.over(x, x.size, _STATISTIC_BITS)
    if grid is None or x.size < _SORTED_AT_ONCE:
        return _in_order_at_once(columns, n_keys)
    cells = np.empty(x.size, dtype=np.uint16)
    for rows in chunks(x.size):
        cells[rows] = grid.cells(x[rows])
    # A pile is a run of cells with about as many rows as are to be sorted at a time.
    counts = np.bincount(cells)
    last_row = np.cumsum(counts) - 1
    pile_of_cell = (last_row // max(_PILE, x.size // _MOST_PILES)).astype(np.uint16)
    sizes = np.bincount(pile_of_cell, weights=counts).astype(np.int64)
    ends = np.cumsum(sizes)
    free = ends - sizes  # the place of the next row of each pile
    result = [np.empty_like(column) for column in columns]
    for rows in chunks(x.size, sizes.size):
        piles = pile_of_cell[cells[rows]]
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
