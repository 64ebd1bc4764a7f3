"""Small regression trees of binned columns, for a gamma deviance with log link.

Trees of up to 8 leaves on columns of at most 255 bins are grown from histograms with
NumPy alone. They accept ratios of exactly 0, and are plain numbers: nothing but
arrays is needed to predict, so that a model can be saved as text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._checks import Floats, Ints, Labels
from ..partitions import Groups, sum_by_code

Bools = npt.NDArray[np.bool_]
BLOCK = 1 << 16  # rows that a thread takes at once
THREADS = 8  # at most
TABLE_BITS = 15  # of the longest table of leaves
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
        found = 1 + np.searchsorted(self.limits, x, side="right")
        return np.where(np.isnan(x), MISSING, found)


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
    trees: Sequence[Tree], n_rows: int, codes_of: Callable[[slice], Ints]
) -> Floats:
    """Return the sum of the values that trees of one depth give to each row.

    Whether a row goes left at a node is one bit that depends on one code. The bits of
    all nodes of several trees make one integer, which is looked up once a column; the
    bits of a few trees tell the sum of their leaves. Rows are taken in blocks, by
    threads; each block is a sum of its own, so that these do not change the result.
    """
    n_nodes = trees[0].feature.size
    total = np.zeros(n_rows)
    together = max(1, TABLE_BITS // n_nodes)  # trees whose sums make one table
    at_once = together * (63 // (n_nodes * together))  # trees in one integer
    groups = []
    if n_nodes <= TABLE_BITS:  # else the table of leaves would be too long
        leaf = _leaf_of_bits(n_nodes)
        n_columns = codes_of(slice(0, 1)).shape[1]
        for i in range(0, len(trees), at_once):
            group = trees[i : i + at_once]
            sums = [
                _sums_of_leaves(group[j : j + together], leaf)
                for j in range(0, len(group), together)
            ]
            groups.append((_pack(group, n_columns), sums))

    def add(start: int) -> None:
        rows = slice(start, start + BLOCK)
        codes, block = codes_of(rows), total[rows]
        if not groups:
            for tree in trees:
                block += tree.predict(codes)
            return
        columns = np.ascontiguousarray(codes.T)
        for tables, sums in groups:
            bits = np.zeros_like(columns[0])
            for table, column in zip(tables, columns, strict=True):
                bits |= table.take(column)
            for values in sums:
                block += values.take(bits & (values.size - 1))
                bits >>= n_nodes * together

    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as pool:
        list(pool.map(add, range(0, n_rows, BLOCK)))
    return total


def _sums_of_leaves(trees: Sequence[Tree], leaf: Ints) -> Floats:
    """Return the sum of some trees' leaves by their bits, those of the first lowest."""
    sums = np.zeros(1)
    for tree in trees:
        sums = (tree.value[leaf][:, None] + sums).ravel()
    return sums


def _leaf_of_bits(n_nodes: int) -> Ints:
    """Return the leaf that is reached when bit i tells to go left at node i."""
    bits = np.arange(1 << n_nodes)
    node = np.zeros_like(bits)
    while node[0] < n_nodes:
        node = 2 * node + 2 - (bits >> node & 1)
    return node - n_nodes


def _pack(trees: Sequence[Tree], n_columns: int) -> Ints:
    """Return, for each column and code, the bits of the nodes that look at it."""
    n_nodes, n_codes = trees[0].left.shape
    tables = np.zeros((n_columns, n_codes), dtype=np.int64)
    for i, tree in enumerate(trees):
        for node, (column, left) in enumerate(
            zip(tree.feature, tree.left, strict=True)
        ):
            tables[column] |= left.astype(np.int64) << (i * n_nodes + node)
    return tables


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
