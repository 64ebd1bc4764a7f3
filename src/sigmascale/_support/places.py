"""Places of numbers among ascending edges, by a table in place of a binary search.

A binary search guesses, at each step, what a processor cannot foresee, and waits some
twenty nanoseconds a number. Here the range of the edges is cut into many cells of equal
width. A table says how many edges lie before each cell; the few edges within the cell
are compared one after the other. It is exact: a number and the edges are assigned to
cells by the same steps, none of which changes their order.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from .checks import Floats, Ints

N_CELLS = 4096
MOST_IN_A_CELL = 3  # edges; where there are more, a binary search is as fast
FEW_NUMBERS = 2048  # for which the overhead of the steps is not worth it
PLACED_AT_A_TIME = 2**13  # numbers at a time, so that all of it stays in the cache


class Places:
    """How many of some ascending edges lie below a number, or at it.

    Parameters
    ----------
    edges : array of shape (n_edges,)
        The edges; equal ones are welcome, and so is −inf, below all numbers.

    Examples
    --------
    >>> places = Places(np.array([1.0, 2.0, 2.0, 5.0]))
    >>> places.of(np.array([0.5, 2.0, 9.0])), places.of(np.array([2.0]), side="left")
    (array([0, 3, 4]), array([1]))
    """

    def __init__(self, edges: Any) -> None:
        self.edges: Floats = np.asarray(edges, dtype=np.float64)

    @cached_property
    def _cells(self) -> _EqualCells | None:
        """The cells, made when many numbers are placed."""
        return _EqualCells.of(self.edges)

    def of(self, x: Any, *, side: str = "right") -> Ints:
        """Return the places of numbers, as `numpy.searchsorted` has them.

        Those of NaN, and of −inf, are any.
        """
        is_column = x.ndim == 1 and x.dtype == np.float64
        if not is_column or x.size < FEW_NUMBERS or self._cells is None:
            return np.searchsorted(self.edges, x, side=side)  # type: ignore[call-overload, no-any-return]
        places = np.empty(x.size, dtype=np.int64)
        for start in range(0, x.size, PLACED_AT_A_TIME):
            rows = slice(start, start + PLACED_AT_A_TIME)
            places[rows] = self._cells.places(np.ascontiguousarray(x[rows]), side)
        return places


class _EqualCells:
    """Cells of equal width, and how many edges lie before each.

    Attributes
    ----------
    low, per_unit : float
        Where the first cell begins, and how many there are in a unit.
    n_before : array of int, shape (N_CELLS,)
        The edges in all cells before each.
    most : int
        The edges of the cell that has most of them.
    edges : array
        The edges, and NaN, which nothing lies beyond.
    """

    def __init__(self, edges: Floats, n_infinite: int, per_unit: float) -> None:
        self.low = float(edges[n_infinite])
        self.per_unit = per_unit
        cell_of_edge = self._cell(edges[n_infinite:])
        n_finite_before = np.searchsorted(cell_of_edge, np.arange(N_CELLS))
        self.n_before = n_infinite + n_finite_before
        self.most = int(np.bincount(cell_of_edge).max())
        self.edges = np.append(edges, np.nan)

    @classmethod
    def of(cls, edges: Floats) -> _EqualCells | None:
        """Return the cells of edges; None where a binary search is as fast."""
        n_infinite = int(np.count_nonzero(edges == -np.inf))
        if edges.size - n_infinite < 4:
            return None
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            per_unit = float(N_CELLS / (edges[-1] - edges[n_infinite]))
        if not np.isfinite(per_unit) or not per_unit:
            return None
        cells = cls(edges, n_infinite, per_unit)
        return cells if cells.most <= MOST_IN_A_CELL else None

    def _cell(self, x: Floats) -> Ints:
        """Return the cell of each number; each step keeps their order.

        What lies below the first cell has a number below 0, as has NaN.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            position = x - self.low
            position *= self.per_unit
            np.minimum(position, N_CELLS - 1.0, out=position)
            return position.astype(np.int64)

    def places(self, x: Floats, side: str) -> Ints:
        """Return how many edges lie below each number."""
        is_beyond = np.greater_equal if side == "right" else np.greater
        place = self.n_before.take(self._cell(x), mode="clip")
        for _ in range(self.most):
            place += is_beyond(x, self.edges.take(place, mode="wrap"))
        return place
