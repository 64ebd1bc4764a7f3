"""Trees, and their sum, fast: row by row for few rows, from tables for many.

Trees are taken a few at a time, in *bunches*. Of each column, the trees of a bunch tell
only a few codes apart. Rows with codes that they do not tell apart are in one *cell*,
and the sum of the bunch is the same for all rows of a cell: it is computed once, kept
in a table, and looked up. Bunches are so small that the cache has room for a table.

Both ways add up the same numbers in the same order, first within a bunch and then over
the bunches, so that the value of a row never depends on how many others there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints
from ..bins.libraries import Array
from ..bins.partitions import Kernel
from .nodes import Code, Node

FEW = 2000  # rows for which tables do not pay
CELL_BITS = 15  # of the number of a cell, so that the cache has room for a table
AT_ONCE, KEY_BITS = 4, 63  # cells, and nodes, that make one integer
AT_A_TIME = 2**18  # values of trees for rows that are held in memory
CELLS_IN_ALL, CELLS_A_ROW = 2**23, 32  # that tables may have

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Trees(Node):
    """The sum of what regression trees give to a row, divided by a number.

    All trees are complete: the children of node i are 2 i + 1 and 2 i + 2, and leaf k
    follows the last node.

    Attributes
    ----------
    codes : tuple of Code
        The columns that trees look at.
    feature : array of int, shape (n_trees, n_nodes)
        Which of them a node looks at.
    left : array of bool, shape (n_trees, n_nodes, n_codes)
        Whether a row with that code goes left; a node that does not split sends all
        rows left.
    value : array of shape (n_trees, n_nodes + 1)
        The value of each leaf.
    divisor : float
        What the sum is divided by, such as the number of boosters it is a mean of.
    """

    input_fields = ("codes",)

    codes: tuple[Code, ...]
    feature: Ints
    left: Bools
    value: Floats
    divisor: float = 1.0

    @property
    def depth(self) -> int:
        """The number of levels of splits."""
        return int(self.value.shape[1]).bit_length() - 1

    @cached_property
    def lookups(self) -> list[tuple[Ints, list[Floats]]]:
        """Tables to look sums up by the cells of rows, for shallow trees.

        A row's cell is a sum of numbers, one for each column. The numbers of several
        bunches share one integer, 15 bits each, so that they are added up together; the
        sums of each bunch by cell stand beside them.
        """
        tables = [_tables(self, bunch) for bunch in self.bunched[0]]
        lookups: list[tuple[Ints, list[Floats]]] = []
        for i in range(0, len(tables), AT_ONCE):
            cells, sums_of_cells = zip(*tables[i : i + AT_ONCE], strict=True)
            shifted = [each << j * CELL_BITS for j, each in enumerate(cells)]
            lookups.append((np.sum(shifted, axis=0), list(sums_of_cells)))
        return lookups

    @cached_property
    def bunched(self) -> tuple[list[slice], float]:
        """Which trees are taken together, and at most how many cells there are in all.

        The nodes of a column divide its codes into at most 2^nodes kinds, and at most
        as many as there are runs of codes that no node tells apart.
        """
        # where neighbouring codes part, as the bits of one integer for each node
        parted = self.left[:, :, 1:] != self.left[:, :, :-1]
        as_bytes = np.packbits(parted, axis=2)
        bunches, start, cells, last = [], 0, 0.0, 0.0
        nodes: dict[int, int] = {}  # of the bunch so far, by column
        ends: dict[int, int] = {}
        for tree, (features, rows) in enumerate(
            zip(self.feature.tolist(), as_bytes, strict=True)
        ):
            own_nodes: dict[int, int] = {}
            own_ends: dict[int, int] = {}
            for j, bits in zip(features, rows, strict=True):
                own_nodes[j] = own_nodes.get(j, 0) + 1
                own_ends[j] = own_ends.get(j, 0) | int.from_bytes(bits.tobytes())
            for j in own_nodes:
                nodes[j] = nodes.get(j, 0) + own_nodes[j]
                ends[j] = ends.get(j, 0) | own_ends[j]
            cell_bits = _cell_bits(nodes, ends)
            too_many = cell_bits > CELL_BITS or sum(nodes.values()) > KEY_BITS
            if too_many and tree > start:
                bunches.append(slice(start, tree))
                cells += last
                start, nodes, ends = tree, own_nodes, own_ends
                cell_bits = _cell_bits(nodes, ends)
            last = 2.0**cell_bits
        return [*bunches, slice(start, self.feature.shape[0])], cells + last


def _cell_bits(nodes: dict[int, int], ends: dict[int, int]) -> float:
    """Return the logarithm of the number of cells, by nodes and ends of runs."""
    return sum(min(nodes[j], math.log2(1 + ends[j].bit_count())) for j in nodes)


def tree_kernel(trees: Trees, n_rows: int | None) -> tuple[list[Any], Kernel]:
    """Return constants and the kernel that sums trees, from the codes of rows.

    It is made for so many rows in NumPy, or for devices if `n_rows` is None.
    """
    # tables are kept for all cells at once, and are not to outweigh the rows by far
    shallow = trees.feature.shape[1] <= CELL_BITS
    if shallow and (
        n_rows is None
        or (n_rows > FEW and trees.bunched[1] <= CELLS_IN_ALL + CELLS_A_ROW * n_rows)
    ):
        constants, sums = _by_cell(trees)
    else:
        constants, sums = _by_row(trees) if n_rows is not None else _by_tree(trees)
    divisor = trees.divisor
    return constants, lambda xp, c, *codes: sums(xp, c, *codes) / divisor


def _by_row(trees: Trees) -> tuple[list[Any], Kernel]:
    """Send each row down all trees at once: NumPy's way for few rows, or deep trees."""
    n_trees, n_nodes = trees.feature.shape
    every_tree = np.arange(n_trees)
    # bunches side by side, padded with zeros: a cumulative sum adds from left to right,
    # as adding up tables does
    bunches, _ = trees.bunched
    longest = max(bunch.stop - bunch.start for bunch in bunches)
    padded = np.full((len(bunches), longest), n_trees)
    for i, bunch in enumerate(bunches):
        padded[i, : bunch.stop - bunch.start] = every_tree[bunch]

    def some(codes: Ints) -> Floats:
        node = np.zeros((codes.shape[0], n_trees), dtype=np.int64)
        row = np.arange(codes.shape[0])[:, None]
        for _ in range(trees.depth):
            code = codes[row, trees.feature[every_tree, node]]
            node = 2 * node + 2 - trees.left[every_tree, node, code]
        values = np.zeros((codes.shape[0], n_trees + 1))
        values[:, :-1] = trees.value[every_tree, node - n_nodes]
        by_bunch = np.cumsum(values[:, padded], axis=2)[:, :, -1]
        total: Floats = np.cumsum(by_bunch, axis=1)[:, -1]
        return total

    def sums(xp: Any, c: Sequence[Array], *columns: Ints) -> Floats:
        codes = np.column_stack(columns)
        step = max(1, AT_A_TIME // padded.size)
        parts = [some(codes[i : i + step]) for i in range(0, codes.shape[0], step)]
        return np.concatenate([np.empty(0), *parts])

    return [], sums


def _by_tree(trees: Trees) -> tuple[list[Any], Kernel]:
    """Send all rows down one tree after another: the way of devices for deep trees."""
    n_trees, n_nodes = trees.feature.shape
    width = trees.left.shape[2]
    constants = [
        trees.feature.astype(np.int64),
        trees.left.reshape(n_trees, -1).astype(np.int64),
        trees.value,
    ]
    depth = trees.depth

    def sums(xp: Any, c: Sequence[Array], *codes: Array) -> Array:
        columns, total = xp.stack(list(codes)), 0 * c[2][0, 0]
        n_rows = columns.shape[1]
        row = xp.arange(n_rows, dtype=xp.int64, device=columns.device)
        flat = xp.reshape(columns, (-1,))
        for tree in range(n_trees):
            node = 0 * codes[0]
            for _ in range(depth):
                feature = xp.take(c[0][tree, ...], node, axis=0)
                code = xp.take(flat, feature * n_rows + row, axis=0)
                goes_left = xp.take(c[1][tree, ...], node * width + code, axis=0)
                node = 2 * node + 2 - goes_left
            total = total + xp.take(c[2][tree, ...], node - n_nodes, axis=0)
        return total

    return constants, sums


def _by_cell(trees: Trees) -> tuple[list[Any], Kernel]:
    """Look the sum of each bunch up by the cell of a row."""
    constants: list[Any] = []
    for numbers, sums_of_cells in trees.lookups:
        constants += [*numbers, *sums_of_cells]
    plan = [(len(numbers), len(sums)) for numbers, sums in trees.lookups]

    def sums(xp: Any, c: Sequence[Array], *codes: Array) -> Array:
        total: Array = None
        i = 0
        for n_columns, n_bunches in plan:
            cell = xp.take(c[i], codes[0], axis=0)
            for number, code in zip(c[i + 1 : i + n_columns], codes[1:], strict=True):
                cell += xp.take(number, code, axis=0)
            i += n_columns
            for table in c[i : i + n_bunches]:
                found = xp.take(table, cell & ((1 << CELL_BITS) - 1), axis=0)
                total = found if total is None else total + found
                cell >>= CELL_BITS
            i += n_bunches
        return total

    return constants, sums


def _tables(trees: Trees, bunch: slice) -> tuple[Ints, Floats]:
    """Return two tables of a bunch of trees.

    The first has a number for each column and code; those of a row add up to its cell.
    The second has the sum of the trees in each cell.
    """
    features, lefts = trees.feature[bunch], trees.left[bunch]
    n_nodes = features.shape[1]
    feature = features.ravel()
    left = lefts.reshape(feature.size, -1)
    powers = 1 << np.arange(feature.size)
    cells = np.zeros((len(trees.codes), left.shape[1]), dtype=np.int64)
    shape: list[int] = []
    codes = {}  # one of each kind, laid out so that all combinations arise
    for j in sorted(set(feature.tolist())):
        nodes = feature == j
        # codes of one kind go the same way at every node that looks at this column
        key = powers[nodes] @ left[nodes]
        _, first, kind = np.unique(key, return_index=True, return_inverse=True)
        cells[j] = kind * math.prod(shape)
        codes[j] = first.reshape(-1, *[1] * len(shape))
        shape.insert(0, first.size)
    sums = np.zeros(shape)
    for which, values in zip(range(features.shape[0]), trees.value[bunch], strict=True):
        # from the leaves up: a node's value is that of the child its codes go to
        below = list(values)
        for node in range(n_nodes - 1, -1, -1):
            goes_left = lefts[which, node][codes[features[which, node]]]
            right, other = below.pop(), below.pop()
            below.insert(0, np.where(goes_left, other, right))
        sums += below[0]
    return cells, sums.ravel()
