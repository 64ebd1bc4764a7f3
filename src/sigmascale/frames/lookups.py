"""Piecewise functions as expressions: the bin of a row, or its factor.

An engine evaluates all branches of a condition for all rows, so that a function of n
pieces costs n comparisons a row, however they are nested; a balanced tree of them
keeps expressions shallow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count, islice
from typing import Any

import narwhals as nw
import numpy as np

from .._support.checks import Floats, Labels
from ..bins.partitions import Cells, EqualSizeBins
from ..bins.quantiles import chunks
from .lazy_rows import Frame, is_missing

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


def compute(
    frame: Frame, inputs: Sequence[nw.Expr], function: Callable[..., Floats]
) -> tuple[Frame, str]:
    """Add a column that NumPy computes of others, some rows at a time.

    For Polars only. The function gets a Series for each input. The name of the column
    is new to the frame.
    """
    import polars as pl

    known = frame.collect_schema()
    free = (n for n in map("computed {}".format, count()) if n not in known)
    names = list(islice(free, len(inputs)))

    def apply(batch: Any) -> Any:
        return pl.Series(function(*batch.struct.unnest().iter_columns()))

    given = frame.with_columns(
        *(x.alias(n) for x, n in zip(inputs, names, strict=True))
    )
    computed = pl.struct(names).map_batches(
        apply, return_dtype=pl.Float64, is_elementwise=True
    )
    native = given.to_native().with_columns(computed.alias(names[0])).drop(names[1:])
    return nw.from_native(native), names[0]


def in_chunks(function: Callable[[Floats], Floats]) -> Callable[[Any], Floats]:
    """Return a function of a Series, computed in the cache; NaN gives some value.

    A fifth of the time of an expression with 40 pieces.
    """

    def apply(series: Any) -> Floats:
        values, found = series.to_numpy(), np.empty(len(series))
        for rows in chunks(values.size):
            part = values[rows]
            found[rows] = function(
                np.nan_to_num(part) if np.isnan(part.min()) else part
            )
        return found

    return apply


def pick_by_bins(
    bins: EqualSizeBins | Cells,
    columns: Sequence[nw.Expr],
    uncertainty: nw.Expr,
    values: Sequence[Value],
    of_one_column: Callable[[nw.Expr, Any, Sequence[Value]], nw.Expr],
) -> nw.Expr:
    """Return the value of each row's bin or cell.

    `of_one_column` picks by limits that no ties need.
    """
    if isinstance(bins, Cells):
        first, second = bins.first, bins.second
        rows = [
            pick_by_limits(
                columns[1],
                second.limits,
                values[i * second.n_bins : (i + 1) * second.n_bins],
            )
            for i in range(first.n_bins)
        ]
        return pick_by_limits(columns[0], first.limits, rows)
    x, ties = columns[0], bins.tie_limits
    if ties is None:
        return of_one_column(x, bins.limits, values)

    def is_below(i: int) -> nw.Expr:
        limit, tie = float(bins.limits[i]), float(ties[i])
        return (x < limit) | ((x == limit) & (uncertainty < tie))

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
