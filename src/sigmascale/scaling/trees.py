"""Small regression trees of binned columns, grown for a gamma deviance with log link.

Trees of up to 8 leaves on columns of at most 255 bins are grown from histograms with
NumPy alone. They accept ratios of exactly 0, and are plain numbers: the trees of a
booster become one node of a map.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints
from ..bins.partitions import EqualSizeBins, LabelBins, sum_by_code

Bools = npt.NDArray[np.bool_]
MISSING_CODE = 0  # of a missing value, or of a label that was not learned


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
    codes: Ints,
    ratio: Floats,
    columns: Sequence[EqualSizeBins | LabelBins],
    options: TreeOptions,
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
    columns: Sequence[EqualSizeBins | LabelBins],
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
        keep = 1.0 if isinstance(column, LabelBins) else 0.0
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
                goes_left[MISSING_CODE] = side if missing_count[node, 0] else larger
                goes_left[1 + order[node, : cut[node] + 1]] = True
                found[int(node)] = (j, goes_left)
    return found
