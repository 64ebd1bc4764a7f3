"""What a map must be, and where its values lie: proof that it predicts numbers.

Nodes are checked where they come from a file; what was learned is right already.

Every kind of node rises or falls with each of its inputs, so that the ends of its range
follow from the ends of theirs, in the same floating-point arithmetic as the values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from .._support.checks import LARGEST, SMALLEST
from ..bins.partitions import EqualSizeBins, LabelBins
from ..exceptions import InvalidInputError
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
    require,
)
from .trees import Trees

Range = tuple[float, float]

_LARGEST_FLOAT = float(np.finfo(np.float64).max)
_ANYTHING = (-_LARGEST_FLOAT, _LARGEST_FLOAT)
_UNDERFLOW, _OVERFLOW = -700.0, 700.0  # of exponents, with room for rounding
_LARGEST_SUM = 1e300  # of the leaves of trees
_ROUNDING = 1e-9  # far more than functions are off by


def check_map(root: Node, n_columns: int, *, signed: bool = False) -> None:
    """Refuse a map that does not predict finite positive numbers for every row.

    Parameters
    ----------
    root : Node
        The map.
    n_columns : int
        The number of columns of the conditioning table.
    signed : bool
        Whether its numbers may be of either sign, as those of a shift are.
    """
    kinds: dict[int, str] = {0: "number"}
    ranges: dict[int, Range] = {}
    for number, node in enumerate(in_order(root)):
        try:
            if isinstance(node, Column):
                require(
                    node.position < n_columns,
                    f"the map reads column {node.position} of {n_columns}",
                )
                kind = kinds.setdefault(node.position, node.kind)
                require(
                    kind == node.kind,
                    f"column {node.position} is read both as {kind} and {node.kind}",
                )
            computed_from = (node.ties,) if isinstance(node, Code) else node.inputs
            require(
                not any(map(_may_be_missing, computed_from)),
                "nothing is computed from what may be missing",
            )
            if not node.gives_codes:
                inputs = [ranges.get(id(each), _ANYTHING) for each in node.inputs]
                with np.errstate(all="ignore"):
                    ranges[id(node)] = _range(node, inputs)
        except InvalidInputError as problem:
            msg = f"node {number}, a {type(node).__name__}: {problem}"
            raise InvalidInputError(msg) from problem
    require(id(root) in ranges and not _may_be_missing(root), "a map must give numbers")
    low, high = ranges[id(root)]
    require(
        signed or (low >= 0 and high > 0),
        f"uncertainties must be positive; those of the map lie between {low:g} and "
        f"{high:g}",
    )


def check_node(node: Node) -> None:
    """Refuse a node whose parts, of the types that it declares, make no sense."""
    match node:
        case Constant():
            require(abs(node.value) < np.inf, "a constant must be finite")
        case Code():
            labelled = isinstance(node.x, Column) and node.x.kind == "label"
            require(
                isinstance(node.partition, LabelBins if labelled else EqualSizeBins),
                "labels are coded by labels, and numbers by limits",
            )
            pairs = getattr(node.partition, "tie_limits", None) is not None
            require(pairs == (node.ties is not None), "pairs of limits need pairs")
            _require_numbers(node.inputs[1:] if labelled else node.inputs)
        case Lookup():
            shape = tuple(code.n_codes for code in node.codes)
            require(
                bool(shape) and node.table.shape == shape,
                f"a table must have the shape {shape} of its codes, not "
                f"{node.table.shape}",
            )
            require(bool(np.isfinite(node.table).all()), "a table must be finite")
        case Trees():
            _check_trees(node)
        case Column():
            require(node.position >= 0, "a column's position must not be negative")
        case _:
            require(bool(node.inputs), "there must be something to compute from")
            _require_numbers(node.inputs)
    if isinstance(node, Clip):
        require(node.low <= node.high, "limits must be in ascending order")
    if isinstance(node, Interpolation):
        _check_interpolation(node)


def _require_numbers(nodes: Sequence[Node]) -> None:
    for node in nodes:
        is_label = isinstance(node, Column) and node.kind == "label"
        numbers = not node.gives_codes and not is_label
        require(numbers, "a number is computed from numbers")


def _check_interpolation(node: Interpolation) -> None:
    knots, values = node.knots, node.values
    require(
        knots.ndim == 1 and knots.shape == values.shape,
        "there must be a value at each knot",
    )
    finite = np.isfinite(knots).all() and np.isfinite(values).all()
    require(bool(finite), "knots and values must be finite")
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        steps, rises = np.diff(knots), np.diff(values)
        slopes = rises / steps
    require(knots.size > 0 and bool((steps > 0).all()), "knots must ascend")
    require(bool((rises >= 0).all()), "values must not fall")
    finite = np.isfinite(steps).all() and np.isfinite(slopes).all()
    require(bool(finite), "slopes must be finite")


def _check_trees(node: Trees) -> None:
    require(bool(node.codes), "trees look at codes")
    require(
        node.feature.ndim == 2 and node.feature.shape[0] > 0, "trees must have nodes"
    )
    n_trees, n_nodes = node.feature.shape
    widest = max(code.n_codes for code in node.codes)
    require(
        node.left.shape == (n_trees, n_nodes, widest)
        and node.value.shape == (n_trees, n_nodes + 1)
        and (n_nodes + 1).bit_count() == 1
        and n_nodes > 0,
        "trees must be complete, with a side for each code",
    )
    within = (node.feature >= 0) & (node.feature < len(node.codes))
    require(bool(within.all()), "trees must look at columns that there are")
    with np.errstate(over="ignore"):
        largest = np.abs(node.value).max(axis=1).sum()
    # not only finite: sums of any leaves, in any order, are to be numbers
    require(bool(largest < _LARGEST_SUM), "leaves must be finite, and so their sum")
    require(0 < node.divisor < np.inf, "a divisor must be positive")


def _may_be_missing(node: Node | None) -> bool:
    """Return whether a node is a column of labels, or of numbers with gaps."""
    return isinstance(node, Column) and node.kind != "number"


def _range(node: Node, inputs: Sequence[Range]) -> Range:
    """Return the range of a node's values, of the ranges of its inputs."""
    match node:
        case Column():
            return (SMALLEST, LARGEST) if node.position == 0 else _ANYTHING
        case Constant():
            return float(node.value), float(node.value)
        case Sum():
            return reduce(_plus, inputs)
        case Product():
            return reduce(_times, inputs)
        case Hypotenuse():
            (a, b), (c, d) = map(_size, inputs)
            return float(np.hypot(a, c)), float(np.hypot(b, d))
        case Root():
            low, high = inputs[0]
            require(low >= 0, f"there is no root of numbers as low as {low:g}")
            return math.sqrt(low), math.sqrt(high)
        case Exponential():
            low, high = inputs[0]
            return (
                0.0 if low < _UNDERFLOW else float(np.exp(low)) * (1 - _ROUNDING),
                math.inf if high > _OVERFLOW else float(np.exp(high)) * (1 + _ROUNDING),
            )
        case Clip():
            low, high = (float(np.clip(x, node.low, node.high)) for x in inputs[0])
            return low, high
        case Lookup():
            return float(node.table.min()), float(node.table.max())
        case Interpolation():
            return float(node.values[0]), float(node.values[-1] * (1 + _ROUNDING))
        case Trees():
            low = float(node.value.min(axis=1).sum() / np.float64(node.divisor))
            return low, float(node.value.max(axis=1).sum() / np.float64(node.divisor))
    return -math.inf, math.inf


def _size(x: Range) -> Range:
    """Return the range of absolute values."""
    low, high = x
    return max(0.0, low, -high), max(abs(low), abs(high))


def _plus(x: Range, y: Range) -> Range:
    require(
        not (-x[0] == y[1] == math.inf or x[1] == -y[0] == math.inf),
        "infinite numbers of both signs may be added",
    )
    return float(np.add(x[0], y[0])), float(np.add(x[1], y[1]))


def _times(x: Range, y: Range) -> Range:
    for a, b in ((x, y), (y, x)):
        require(
            not (a[0] <= 0 <= a[1] and math.inf in map(abs, b)),
            "0 may be multiplied by an infinite number",
        )
    products = [float(np.multiply(a, b)) for a in x for b in y]
    return min(products), max(products)
