"""Piecewise functions as expressions: the bin of a row, or its factor.

An engine evaluates all branches of a condition for all rows, so that a function of n
pieces costs n comparisons a row, however they are nested; a balanced tree of them
keeps expressions shallow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import narwhals as nw

from .._support.labels import Label
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
    x: nw.Expr,
    labels: Sequence[Label],
    values: Sequence[Value],
    otherwise: Value,
    *,
    text: bool,
) -> nw.Expr:
    """Return the value of each row's label, or `otherwise` if it is not among them."""
    # text is not a number
    known: list[Any] = [x for x in labels if x is not None]
    known = [x for x in known if isinstance(x, str) == text]
    value = dict(zip(labels, values, strict=True))
    leaves = [
        nw.when(x == nw.lit(label))
        .then(literal(value[label]))
        .otherwise(literal(otherwise))
        for label in known
    ]
    found = literal(otherwise)
    if leaves:
        found = pick(lambda i: x < nw.lit(known[i + 1]), leaves)
    missing = x.is_null() if text else is_missing(x)
    of_missing = literal(value.get(None, otherwise))
    return nw.when(missing).then(of_missing).otherwise(found)
