"""Piecewise functions as expressions: the bin of a row, or its factor.

An engine evaluates all branches of a condition for all rows, so that a function of n
pieces costs n comparisons a row, however they are nested; a balanced tree of them
keeps expressions shallow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from .._support.checks import Labels
from .lazy_rows import is_missing

Value = nw.Expr | float | int


def literal(value: Value) -> nw.Expr:
    """Return a value as an expression."""
    return value if isinstance(value, nw.Expr) else nw.lit(value)


def pick(is_below: Callable[[int], nw.Expr], values: Sequence[Value]) -> nw.Expr:
    """Return values[i], where i is the first limit that the row is below."""

    def among(first: int, last: int) -> nw.Expr:
        if first == last:
            return literal(values[first])
        middle = (first + last) // 2
        below, above = among(first, middle), among(middle + 1, last)
        return nw.when(is_below(middle)).then(below).otherwise(above)

    return among(0, len(values) - 1)


def pick_by_limits(
    x: nw.Expr, limits: Sequence[float] | Any, values: Sequence[Value]
) -> nw.Expr:
    """Return values[i] where limits[i - 1] <= x < limits[i]."""
    return pick(lambda i: x < float(limits[i]), values)


def pick_by_pairs(
    x: nw.Expr, ties: nw.Expr, limits: Any, tie_limits: Any, values: Sequence[Value]
) -> nw.Expr:
    """Return values[i] where (x, ties) lies between pairs of limits i - 1 and i."""

    def is_below(i: int) -> nw.Expr:
        limit, tie = float(limits[i]), float(tie_limits[i])
        return (x < limit) | ((x == limit) & (ties < tie))

    return pick(is_below, values)


def pick_by_label(
    x: nw.Expr, labels: Labels, values: Sequence[Value], otherwise: Value
) -> nw.Expr:
    """Return the value of each row's label, or `otherwise` if it is not among them."""
    known = labels.tolist()
    if labels.dtype.kind == "f" and labels.size and np.isnan(labels[-1]):
        # a missing number is a label of its own, and sorts last
        missing, known, values = values[-1], known[:-1], values[:-1]
        rest = pick_by_label(x, labels[:-1], values, otherwise)
        return nw.when(is_missing(x)).then(literal(missing)).otherwise(rest)
    if not known:
        return literal(otherwise)
    leaves = [
        nw.when(x == nw.lit(label)).then(literal(value)).otherwise(literal(otherwise))
        for label, value in zip(known, values, strict=True)
    ]
    return pick(lambda i: x < nw.lit(known[i + 1]), leaves)
