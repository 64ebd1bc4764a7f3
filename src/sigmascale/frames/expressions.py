"""A map as an expression of lazy frames, in operations that all engines have."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add, mul
from typing import Any

import narwhals as nw
import numpy as np

from ..bins.partitions import LabelBins
from ..exceptions import InvalidInputError
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
)
from .lazy_rows import is_finite, is_missing, is_text, number
from .lookups import Value, literal, pick_by_label, pick_by_limits, pick_by_pairs


class Expressions:
    """Turns the nodes of a map into expressions.

    Attributes
    ----------
    needed : dict of str to Expr
        The columns that are read as numbers and must be finite.
    """

    def __init__(self, schema: Any, names: Sequence[str], uncertainty: nw.Expr) -> None:
        self._schema, self._names, self._u = schema, names, uncertainty
        self.needed: dict[str, nw.Expr] = {}

    def of(self, node: Node) -> nw.Expr:
        """Return the expression of a node that is a number."""
        match node:
            case Column():
                return self._column(node)
            case Constant():
                return nw.lit(node.value)
            case Sum():
                return reduce(add, map(self.of, node.terms))
            case Product():
                return reduce(mul, map(self.of, node.factors))
            case Hypotenuse():
                x, y = self.of(node.x), self.of(node.y)
                return (x * x + y * y).sqrt()
            case Root():
                return self.of(node.x).sqrt()
            case Exponential():
                return self.of(node.x).exp()
            case Clip():
                return self.of(node.x).clip(node.low, node.high)
            case Lookup():
                return self._lookup(list(node.codes), node.table)
            case Interpolation():
                return self._interpolation(node)
        msg = (
            f"A recalibrator with {type(node).__name__.lower()} can be applied to lazy "
            "frames of Polars only, and not of this engine. Use frames.scan(...) with "
            "Polars, or `predict` on rows in memory."
        )
        raise InvalidInputError(msg)

    def _column(self, column: Column) -> nw.Expr:
        if column.position == 0:
            return self._u
        name = self._names[column.position]
        x = number(self._schema, name)
        if column.kind == "number":
            self.needed[name] = x
        return x

    def _lookup(self, codes: list[Code], table: Any) -> nw.Expr:
        """Return the entries of a table, along its first dimension one by one."""
        code, *rest = codes
        entries: list[Value] = (
            [self._lookup(rest, row) for row in table] if rest else table.tolist()
        )
        unknown, known = entries[0], entries[1:]
        partition = code.partition
        if isinstance(partition, LabelBins):
            assert isinstance(code.x, Column)
            return self._by_label(code.x.position, partition.labels, known, unknown)
        x = self.of(code.x)
        if code.ties is not None:
            pairs = partition.limits, partition.tie_limits
            return pick_by_pairs(x, self.of(code.ties), *pairs, known)
        found = pick_by_limits(x, partition.limits, known)
        if isinstance(code.x, Column) and code.x.kind == "optional":
            found = nw.when(is_finite(x)).then(found)
            found = nw.when(is_missing(x)).then(literal(unknown)).otherwise(found)
        return found

    def _by_label(
        self, position: int, labels: Any, values: Sequence[Value], otherwise: Value
    ) -> nw.Expr:
        name = self._names[position]
        text = is_text(self._schema[name])
        x = nw.col(name).cast(nw.String) if text else number(self._schema, name)
        return pick_by_label(x, labels, values, otherwise, text=text)

    def _interpolation(self, node: Interpolation) -> nw.Expr:
        """Return a function that is linear between knots, constant outside."""
        x, knots, values = self.of(node.x), node.knots, node.values
        slope = np.concatenate([[0.0], np.diff(values) / np.diff(knots), [0.0]])
        value = np.append(values[0], values)  # at the lower end of each piece
        start = np.append(knots[0], knots)
        pieces = [
            nw.lit(float(v)) if s == 0 else (x - float(x0)) * float(s) + float(v)
            for x0, v, s in zip(start, value, slope, strict=True)
        ]
        return pick_by_limits(x, knots, pieces)
