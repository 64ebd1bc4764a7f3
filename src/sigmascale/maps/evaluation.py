"""NumPy's way to evaluate a map: chunk by chunk, within the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints
from .._support.labels import Categories
from ..bins.partitions import LabelBins
from ..bins.quantiles import chunks
from .nodes import (
    Clip,
    Code,
    Column,
    Constant,
    Exponential,
    Hypotenuse,
    Interpolation,
    Lookup,
    Node,
    Product,
    Root,
    Sum,
    in_order,
)
from .trees import Trees, tree_sums

Array = npt.NDArray[Any] | Categories
Kernel = Callable[..., Any]  # of the values of a node's inputs


def evaluate(root: Node, columns: Sequence[Array | None], n_rows: int) -> Floats:
    """Return the value of a map for each row, in an array of its own.

    Parameters
    ----------
    root : Node
        The map.
    columns : sequence of arrays
        The columns of the table, as the map wants them: numbers, or labels. Those that
        it does not read may be None.
    n_rows : int
        The number of rows.

    Returns
    -------
    array of shape (n_rows,)

    Examples
    --------
    >>> from sigmascale.maps import scaled
    >>> evaluate(scaled(2.0), [np.array([1.0, 3.0])], 2)
    array([2., 6.])
    """
    nodes = in_order(root)
    # each node is computed once, from the places where its inputs are
    place = {id(node): i for i, node in enumerate(nodes)}
    inputs = [[place[id(each)] for each in node.inputs] for node in nodes]
    kernels = [_kernel(node, n_rows) for node in nodes]
    result = np.empty(n_rows)
    for rows in chunks(n_rows):
        values: list[Any] = []
        for node, kernel, needed in zip(nodes, kernels, inputs, strict=True):
            if isinstance(node, Column):
                column = columns[node.position]
                assert column is not None
                values.append(column[rows])
            else:
                values.append(kernel(*(values[i] for i in needed)))
        result[rows] = values[-1]
    return result


def _kernel(node: Node, n_rows: int) -> Kernel:
    """Return what computes a node from its inputs, prepared for so many rows."""
    match node:
        case Constant():
            return lambda: node.value
        case Sum():
            return lambda *terms: reduce(np.add, terms)
        case Product():
            return lambda *factors: reduce(np.multiply, factors)
        case Hypotenuse():
            return np.hypot
        case Root():
            return np.sqrt
        case Exponential():
            return np.exp
        case Clip():
            return lambda x: np.clip(x, node.low, node.high)
        case Code():
            return _code_kernel(node, n_rows)
        case Lookup() if len(node.codes) == 1:
            return lambda code: node.table.take(code)
        case Lookup():
            return lambda *codes: node.table[codes]
        case Interpolation():
            return lambda x: np.interp(x, node.knots, node.values)
        case Trees():
            return tree_sums(node, n_rows)
    return lambda: None  # a column, which is given


def _label_kernel(partition: LabelBins) -> Kernel:
    """Return the codes of labels, which are the same tuple in all chunks."""
    codes: Ints | None = None

    def code(x: Categories) -> Ints:
        nonlocal codes
        if codes is None:
            codes = (partition.bins_of(x.labels) + 1) % partition.n_bins
        return codes[x.codes]

    return code


def _code_kernel(node: Code, n_rows: int) -> Kernel:
    """Return the codes of numbers or labels: 0 is missing or unknown."""
    partition = node.partition
    if isinstance(partition, LabelBins):
        return _label_kernel(partition)
    find = partition.finder(n_rows)
    may_be_missing = isinstance(node.x, Column) and node.x.kind == "optional"

    def code(x: Floats, ties: Floats | None = None) -> Ints:
        if may_be_missing:
            missing = np.isnan(x)
            if missing.any():
                found = find(np.where(missing, 0.0, x), ties)
                found += 1
                found[missing] = 0
                return found
        found = find(x, ties)
        found += 1
        return found

    return code
