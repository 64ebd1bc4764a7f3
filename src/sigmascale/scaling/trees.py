"""Small regression trees of binned columns, for a gamma deviance with log link.

Trees of up to 8 leaves on columns of at most 255 bins are grown from histograms with
NumPy alone. They accept ratios of exactly 0, and are plain numbers: nothing but
arrays is needed to predict, so that a model can be saved as text.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints, Labels
from ..bins.partitions import Groups, sum_by_code
from ..bins.quantiles import search

Bools = npt.NDArray[np.bool_]
BLOCK = 1 << 16  # rows that a thread takes at once
THREADS = 8  # at most
FEW = 2000  # rows for which tables do not pay
CELL_BITS = 15  # of the number of a cell, so that the cache has room for a table
AT_ONCE, KEY_BITS = 4, 63  # cells, and nodes, that make one integer
MISSING = 0  # the code of a missing value, or of a label that was not learned


@dataclass(frozen=True)
class NumberCodes:
    """Codes of a numeric column: 0 is missing, bin i of its quantiles is i + 1."""

    limits: Floats

    @classmethod
    def learn(cls, x: Floats, max_bins: int) -> NumberCodes:
        """Learn limits between distinct values, or quantiles where there are many."""
        values, counts = np.unique(x[~np.isnan(x)], return_counts=True)
        if values.size > max_bins:
            rank = np.arange(1, max_bins) * counts.sum() / max_bins
            values = values[np.searchsorted(np.cumsum(counts), rank, side="left")]
            return cls(np.unique(values[values > np.nanmin(x)]))
        return cls(values[1:])

    @property
    def n_codes(self) -> int:
        """The number of codes."""
        return self.limits.size + 2

    @property
    def categorical(self) -> bool:
        """Whether the order of the codes means nothing."""
        return False

    def codes(self, x: Floats) -> Ints:
        """Return the code of each row."""
        missing = np.isnan(x)
        if missing.any():
            return np.where(missing, MISSING, self.codes(np.where(missing, 0.0, x)))
        return 1 + search(self.limits, x)


@dataclass(frozen=True)
class LabelCodes:
    """Codes of a column of labels: 0 is a label that was not learned."""

    groups: Groups

    @classmethod
    def learn(cls, labels: Labels, max_labels: int) -> LabelCodes:
        """Learn the most frequent labels."""
        return cls.most_frequent(*np.unique(labels, return_counts=True), max_labels)

    @classmethod
    def most_frequent(
        cls, labels: Labels, counts: Ints | Floats, max_labels: int
    ) -> LabelCodes:
        """Keep the most frequent of distinct labels."""
        frequent = np.argsort(-counts, kind="stable")[:max_labels]
        return cls(Groups(np.sort(labels[frequent])))

    @property
    def n_codes(self) -> int:
        """The number of codes."""
        return self.groups.n_bins

    @property
    def categorical(self) -> bool:
        """Whether the order of the codes means nothing."""
        return True

    def codes(self, labels: Labels) -> Ints:
        """Return the code of each row."""
        return (self.groups.codes(labels) + 1) % self.groups.n_bins


Columns = list[NumberCodes | LabelCodes]


@dataclass(frozen=True)
class Tree:
    """A complete binary tree: the children of node i are 2 i + 1 and 2 i + 2.

    Attributes
    ----------
    feature : array of int, shape (n_nodes,)
        The column that a node looks at.
    left : array of bool, shape (n_nodes, n_codes)
        Whether a row with that code goes left; a node that does not split sends all
        rows left.
    value : array of shape (n_nodes + 1,)
        The value of each leaf.
    """

    feature: Ints
    left: Bools
    value: Floats

    def predict(self, codes: Ints) -> Floats:
        """Return the value of each row."""
        rows = np.arange(codes.shape[0])
        node = np.zeros(codes.shape[0], dtype=np.int64)
        for _ in range(self.depth):
            code = codes[rows, self.feature[node]]
            node = 2 * node + 2 - self.left[node, code]
        return self.value[node - self.feature.size]

    @property
    def depth(self) -> int:
        """The number of levels of splits."""
        return self.value.size.bit_length() - 1


def sum_of_trees(
    trees: Sequence[Tree], n_rows: int, codes_of: Callable[[slice], Sequence[Ints]]
) -> Floats:
    """Return the sum of the values that trees give to each row.

    Of each column, a few trees tell only a few codes apart. Rows with codes that they
    do not tell apart are in one cell, and the sum of these trees is looked up by cell.
    Rows are taken in blocks, of which `codes_of` returns the columns, by threads. Each
    row is a sum of its own, in an order that the trees alone determine.
    """
    total = np.zeros(n_rows)
    n_columns = len(codes_of(slice(0, 1)))
    groups = list(_groups(trees, n_columns))
    lookups: list[tuple[Ints, list[Floats]]] = []
    if n_rows > FEW and max(tree.feature.size for tree in trees) <= CELL_BITS:
        tables = [_tables(some, n_columns) for some in groups]
        for i in range(0, len(tables), AT_ONCE):
            cells, sums = zip(*tables[i : i + AT_ONCE], strict=True)
            shifted = [each << j * CELL_BITS for j, each in enumerate(cells)]
            lookups.append((np.sum(shifted, axis=0), list(sums)))

    def add(start: int) -> None:
        rows = slice(start, start + BLOCK)
        columns, block = codes_of(rows), total[rows]
        if not lookups:
            codes = np.column_stack(columns)
            for some in groups:
                block += sum(tree.predict(codes) for tree in some)
        for tables, sums in lookups:
            cell = tables[0].take(columns[0])
            for table, column in zip(tables[1:], columns[1:], strict=True):
                cell += table.take(column)
            for values in sums:
                block += values.take(cell & ((1 << CELL_BITS) - 1))
                cell >>= CELL_BITS

    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as pool:
        list(pool.map(add, range(0, n_rows, BLOCK)))
    return total


def _groups(trees: Sequence[Tree], n_columns: int) -> Iterator[list[Tree]]:
    """Yield a few trees at a time, so that there are few enough cells.

    The nodes of a column divide its codes into at most 2^nodes kinds, and at most as
    many as there are runs of codes that no node tells apart.
    """
    some: list[Tree] = []
    nodes: Ints = np.zeros(n_columns, dtype=np.int64)
    ends = np.zeros((n_columns, trees[0].left.shape[1] - 1), dtype=bool)
    for tree in trees:
        own_nodes = np.bincount(tree.feature, minlength=n_columns)
        own_ends = np.zeros_like(ends)
        changes = tree.left[:, 1:] != tree.left[:, :-1]
        for column, change in zip(tree.feature, changes, strict=True):
            own_ends[column] |= change
        nodes, ends = nodes + own_nodes, ends | own_ends
        bits = np.minimum(nodes, np.log2(1 + np.count_nonzero(ends, axis=1))).sum()
        if some and (bits > CELL_BITS or nodes.sum() > KEY_BITS):
            yield some
            some, nodes, ends = [], own_nodes, own_ends
        some.append(tree)
    yield some


def _tables(trees: Sequence[Tree], n_columns: int) -> tuple[Ints, Floats]:
    """Return two tables of a few trees.

    The first has a number for each column and code; those of a row add up to its cell.
    The second has the sum of the trees in each cell.
    """
    feature = np.concatenate([tree.feature for tree in trees])
    lefts = np.concatenate([tree.left for tree in trees])
    powers = 1 << np.arange(feature.size)
    cells = np.zeros((n_columns, lefts.shape[1]), dtype=np.int64)
    shape: list[int] = []
    codes = {}  # one of each kind, laid out so that all combinations arise
    for j in sorted(set(feature.tolist())):
        nodes = feature == j
        key = powers[nodes] @ lefts[nodes]
        _, first, kind = np.unique(key, return_index=True, return_inverse=True)
        cells[j] = kind * math.prod(shape)
        codes[j] = first.reshape(-1, *[1] * len(shape))
        shape.insert(0, first.size)

    def value(tree: Tree, node: int) -> Any:
        if node >= tree.feature.size:
            return tree.value[node - tree.feature.size]
        left = tree.left[node][codes[tree.feature[node]]]
        return np.where(left, value(tree, 2 * node + 1), value(tree, 2 * node + 2))

    sums = np.zeros(shape)
    for tree in trees:
        sums += value(tree, 0)
    return cells, sums.ravel()


@dataclass(frozen=True)
class TreeOptions:
    """How trees grow.

    Attributes
    ----------
    depth : int
        Number of levels of splits.
    min_rows : int
        Least number of rows in a leaf.
    pseudo_rows : float
        Strength of the shrinkage: rows with a ratio of 1 that each leaf gets for free.
    rate : float
        Share of the best step that a leaf takes.
    """

    depth: int
    min_rows: int
    pseudo_rows: float
    rate: float


def grow(
    codes: Ints, ratio: Floats, columns: Columns, options: TreeOptions
) -> tuple[Tree, Floats]:
    """Grow one tree on the ratios of z² to its mean; return it and its prediction.

    A leaf's value is rate × ln((Σ ratio + k) / (n + k)): the maximum-likelihood step,
    shrunk towards 0, and finite when all ratios are 0. Splits maximise the reduction
    of the gamma deviance by such leaves.
    """
    k = options.pseudo_rows
    n_nodes = 2**options.depth - 1
    feature = np.zeros(n_nodes, dtype=np.int64)
    left = np.ones((n_nodes, max(column.n_codes for column in columns)), dtype=bool)
    place = np.zeros(ratio.size, dtype=np.int64)  # of each row, within its level
    for level in range(options.depth):
        first, width = 2**level - 1, 2**level
        found = _best_splits(codes, ratio, columns, options, place, width)
        if level == 0 and not found:
            return Tree(feature, left, np.zeros(n_nodes + 1)), np.zeros(ratio.size)
        for node, (column, goes_left) in found.items():
            feature[first + node] = column
            left[first + node] = False
            left[first + node, : goes_left.size] = goes_left
        at = first + place
        row_codes = codes[np.arange(ratio.size), feature[at]]
        place = 2 * place + 1 - left[at, row_codes]
    sums = sum_by_code(place, ratio, n_nodes + 1)
    counts = np.bincount(place, minlength=n_nodes + 1)
    value = options.rate * np.log((sums + k) / (counts + k))
    return Tree(feature, left, value), value[place]


def _best_splits(
    codes: Ints,
    ratio: Floats,
    columns: Columns,
    options: TreeOptions,
    place: Ints,
    width: int,
) -> dict[int, tuple[int, Bools]]:
    """Return the best split of each node of a level: column, and codes that go left."""
    k = options.pseudo_rows

    def reduction(total: Floats, count: Floats) -> Floats:
        value = np.log((total + k) / (count + k))
        return -total * np.expm1(-value) - count * value

    all_total = sum_by_code(place, ratio, width)[:, None]
    all_count = np.bincount(place, minlength=width)[:, None].astype(np.float64)
    unsplit = reduction(all_total, all_count)
    best = np.zeros(width)
    found: dict[int, tuple[int, Bools]] = {}
    nodes = np.arange(width)
    for j, column in enumerate(columns):
        b = column.n_codes
        if b < 3:  # a constant column
            continue
        key = place * b + codes[:, j]
        total = sum_by_code(key, ratio, width * b).reshape(width, b)
        count = np.bincount(key, minlength=width * b).reshape(width, b).astype(float)
        missing_total, missing_count = total[:, :1], count[:, :1]
        total, count = total[:, 1:], count[:, 1:]
        # the best split of labels is among those that keep the order of their means
        keep = 1.0 if column.categorical else 0.0
        order = np.argsort(keep * (total + k) / (count + k), axis=1, kind="stable")
        total = np.cumsum(np.take_along_axis(total, order, 1), axis=1)
        count = np.cumsum(np.take_along_axis(count, order, 1), axis=1)
        for side in (False, True) if missing_count.any() else (False,):
            left_total = total + side * missing_total
            left_count = count + side * missing_count
            right_total = np.maximum(all_total - left_total, 0.0)
            right_count = all_count - left_count
            gain = reduction(left_total, left_count)
            gain += reduction(right_total, right_count) - unsplit
            small = np.minimum(left_count, right_count) < options.min_rows
            gain[small] = -np.inf
            cut = np.argmax(gain, axis=1)
            for node in np.flatnonzero(gain[nodes, cut] > best):
                best[node] = gain[node, cut[node]]
                goes_left = np.zeros(b, dtype=bool)
                # values missing only at prediction time follow the larger side
                larger = left_count[node, cut[node]] >= right_count[node, cut[node]]
                goes_left[MISSING] = side if missing_count[node, 0] else larger
                goes_left[1 + order[node, : cut[node] + 1]] = True
                found[int(node)] = (j, goes_left)
    return found
