"""A map as a program of array functions, which any library of arrays can run.

A program knows no library: it is given the functions of the array API standard, its
constants as arrays on a device, and columns. Devices run it on chunks of rows, and a
PyTorch module runs it with its buffers for constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.labels import numbers_of
from ..bins.partitions import EqualSizeBins, LabelBins
from ..maps import (
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
    Trees,
    in_order,
)
from ..maps.trees import CELL_BITS
from .libraries import Array

Constants = list[npt.NDArray[Any]]
# Of the functions of a library, the constants there, and the values of the inputs.
Kernel = Callable[..., Array]


class Program:
    """A map that is ready to run.

    Parameters
    ----------
    root : Node
        The map.
    positions_of_text : bool
        Whether a column whose labels are text holds their positions among the labels,
        since device arrays hold no text. If not, no text is known.

    Attributes
    ----------
    constants : list of array
        What the program needs on the device.
    """

    def __init__(self, root: Node, *, positions_of_text: bool = False) -> None:
        self._made_from = root, positions_of_text
        nodes = in_order(root)
        place = {id(node): i for i, node in enumerate(nodes)}
        self.constants: Constants = []
        self._steps: list[tuple[int | None, Any, slice, list[int]]] = []
        for node in nodes:
            if isinstance(node, Column):
                self._steps.append((node.position, None, slice(0, 0), []))
                continue
            constants, kernel = _kernel(node, positions_of_text)
            start = len(self.constants)
            self.constants += constants
            inputs = [place[id(each)] for each in node.inputs]
            which = slice(start, len(self.constants))
            self._steps.append((None, kernel, which, inputs))

    def __reduce__(self) -> Any:
        """Say how to make it again: functions cannot be copied to another process."""
        return _program, self._made_from

    def __call__(
        self, xp: Any, constants: Sequence[Array], columns: Sequence[Array]
    ) -> Array:
        """Return the value of each row; columns are float64, labels too."""
        values: list[Array] = []
        for position, kernel, which, inputs in self._steps:
            if position is not None:
                values.append(columns[position])
            else:
                given = [values[i] for i in inputs]
                values.append(kernel(xp, constants[which], *given))
        return values[-1]


def _program(root: Node, positions_of_text: bool) -> Program:
    return Program(root, positions_of_text=positions_of_text)


def _kernel(node: Node, positions_of_text: bool) -> tuple[Constants, Kernel]:
    """Return the constants of a node, and what computes it."""
    match node:
        case Constant():
            return [np.array(node.value)], lambda xp, c: c[0]
        case Sum():
            return [], lambda xp, c, *terms: reduce(add, terms)
        case Product():
            return [], lambda xp, c, *factors: reduce(mul, factors)
        case Hypotenuse():
            return [], lambda xp, c, x, y: xp.sqrt(x * x + y * y)
        case Root():
            return [], lambda xp, c, x: xp.sqrt(x)
        case Exponential():
            return [], lambda xp, c, x: xp.exp(x)
        case Clip(low=low, high=high):
            return [], lambda xp, c, x: xp.clip(x, low, high)
        case Code():
            partition = node.partition
            if isinstance(partition, LabelBins) and partition.are_text:
                known = len(partition.labels) if positions_of_text else 0
                partition = LabelBins(tuple(range(known)))
            optional = isinstance(node.x, Column) and node.x.kind == "optional"
            return finder(partition, missing_allowed=optional)
        case Lookup():
            return _lookup(node)
        case Interpolation():
            return _interpolation(node)
        case Trees():
            return _tables_of_trees(node) if node.are_shallow else _walk(node)
    msg = f"no program for {type(node).__name__}"  # pragma: no cover
    raise NotImplementedError(msg)


def finder(
    partition: EqualSizeBins | LabelBins, *, missing_allowed: bool = True
) -> tuple[Constants, Kernel]:
    """Return the constants and the kernel that codes rows; 0 is missing or unknown."""
    if isinstance(partition, LabelBins):
        return _find_label(numbers_of(partition.labels))
    if partition.tie_limits is not None:
        return _find_pair(partition.limits, partition.tie_limits)
    limits = np.append(-np.inf, partition.limits)

    def find(xp: Any, c: Sequence[Array], x: Array, ties: Array | None = None) -> Array:
        found = xp.searchsorted(c[0], x, side="right")
        return xp.where(xp.isnan(x), 0 * found, found) if missing_allowed else found

    return [limits], find


def _find_label(labels: npt.NDArray[Any]) -> tuple[Constants, Kernel]:
    numbers = labels[~np.isnan(labels)]
    missing_code = labels.size if numbers.size < labels.size else 0
    # one that no number equals, so that there always is something to compare with
    known = np.append(numbers, np.nan)

    def find(xp: Any, c: Sequence[Array], x: Array, ties: Array | None = None) -> Array:
        found = xp.searchsorted(c[0][:-1], x, side="left")
        none = 0 * found
        equal = xp.take(c[0], found, axis=0) == x
        code = xp.where(equal, found + 1, none)
        return xp.where(xp.isnan(x), none + missing_code, code)

    return [known], find


def _find_pair(
    limits: npt.NDArray[Any], tie_limits: npt.NDArray[Any]
) -> tuple[Constants, Kernel]:
    steps = limits.size.bit_length()
    beyond = np.full(2**steps - 1 - limits.size, np.nan)  # which no number reaches
    constants = [np.append(limits, beyond), np.append(tie_limits, beyond)]

    def find(xp: Any, c: Sequence[Array], x: Array, ties: Array) -> Array:
        # a binary search for all rows at once
        found = xp.astype(xp.zeros_like(x), xp.int64)
        for step in (2**k for k in reversed(range(steps))):
            limit = xp.take(c[0], found + (step - 1), axis=0)
            tie_limit = xp.take(c[1], found + (step - 1), axis=0)
            reached = (x > limit) | ((x == limit) & (ties >= tie_limit))
            found = found + step * xp.astype(reached, xp.int64)
        return found + 1  # pairs have no missing x

    return constants, find


def _lookup(node: Lookup) -> tuple[Constants, Kernel]:
    sizes = node.table.shape[1:]

    def look_up(xp: Any, c: Sequence[Array], code: Array, *others: Array) -> Array:
        for size, other in zip(sizes, others, strict=True):
            code = code * size + other
        return xp.take(c[0], code, axis=0)

    return [node.table.ravel()], look_up


def _interpolation(node: Interpolation) -> tuple[Constants, Kernel]:
    knots, values = node.knots, node.values
    if knots.size == 1:
        return [values], lambda xp, c, x: c[0][0] + 0 * x
    slopes = np.diff(values) / np.diff(knots)
    low, high, last = float(knots[0]), float(knots[-1]), slopes.size - 1

    def interpolate(xp: Any, c: Sequence[Array], x: Array) -> Array:
        x = xp.clip(x, low, high)
        # of the inner knots, so that the last segment ends with the last knot
        found = xp.searchsorted(c[0][1:-1], x, side="right") if last else None
        if found is None:
            return c[1][0] + c[2][0] * (x - c[0][0])
        at = [xp.take(each, found, axis=0) for each in (c[0], c[1], c[2])]
        return at[1] + at[2] * (x - at[0])

    return [knots, values, slopes], interpolate


def _tables_of_trees(trees: Trees) -> tuple[Constants, Kernel]:
    lookups = trees.lookups
    constants: Constants = []
    for numbers, sums_of_cells in lookups:
        constants += [*numbers, *sums_of_cells]
    plan = [(len(numbers), len(sums)) for numbers, sums in lookups]
    divisor, mask = trees.divisor, (1 << CELL_BITS) - 1

    def look_up(xp: Any, c: Sequence[Array], *codes: Array) -> Array:
        total: Array = None
        i = 0
        for n_columns, n_bunches in plan:
            cell = reduce(
                add,
                [
                    xp.take(number, code, axis=0)
                    for number, code in zip(c[i : i + n_columns], codes, strict=True)
                ],
            )
            i += n_columns
            for k, sums in enumerate(c[i : i + n_bunches]):
                if k:
                    cell = cell >> CELL_BITS
                found = xp.take(sums, cell & mask, axis=0)
                total = found if total is None else total + found
            i += n_bunches
        return total / divisor

    return constants, look_up


def _walk(trees: Trees) -> tuple[Constants, Kernel]:
    """Send rows down one deep tree after another."""
    n_trees, n_nodes = trees.feature.shape
    width = trees.left.shape[2]
    constants = [
        trees.feature.astype(np.int64),
        trees.left.reshape(n_trees, -1).astype(np.int64),
        trees.value,
    ]
    depth, divisor = trees.depth, trees.divisor

    def walk(xp: Any, c: Sequence[Array], *codes: Array) -> Array:
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
        return total / divisor

    return constants, walk
