"""A map as a column of a Polars frame: NumPy evaluates it, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, islice
from typing import Any

import narwhals as nw
import numpy as np

from .._support.checks import Floats
from ..maps import Node
from ..maps.nodes import columns_of
from ..maps.prediction import in_range, rescale
from ..predictions import Predictions, read_table
from .lazy_rows import Frame, is_finite, is_missing, is_text, number


def with_column(
    frame: Frame, new: str, root: Node, names: Sequence[str], smallest: float
) -> Frame:
    """Return a Polars frame with the values of a map as a new column.

    Rows with a value that cannot be used, such as an infinite one, get a null.
    """
    import polars as pl

    schema = frame.collect_schema()
    kinds = {0: "number"} | {c.position: c.kind for c in columns_of(root)}
    usable, inputs = nw.lit(True), {}
    for position, kind in kinds.items():
        name = names[position]
        if kind == "label" and is_text(schema[name]):
            inputs[position] = nw.col(name).cast(nw.String)
            continue
        x = inputs[position] = number(schema, name)
        if kind == "number":
            usable = usable & is_finite(x)
        elif kind == "optional":
            usable = usable & (is_missing(x) | is_finite(x))
    u = inputs[0]
    usable = usable & (u >= 0)
    inputs[0] = nw.when(u == 0).then(nw.lit(smallest)).otherwise(u)

    free = (n for n in map("computed {}".format, count()) if n not in schema)
    flag, *temporary = islice(free, 1 + len(inputs))
    positions = list(inputs)
    n_columns = len(names)

    def evaluate(batch: Any) -> Any:
        table = batch.struct.unnest()
        chosen = table[flag].fill_null(False).to_numpy()
        found = np.full(len(batch), np.nan)
        if chosen.any():
            some = table if chosen.all() else table.filter(chosen)
            found[chosen] = _values(root, some, temporary, positions, n_columns)
        return pl.Series(found, nan_to_null=True)

    given = frame.with_columns(
        usable.alias(flag),
        *(x.alias(n) for x, n in zip(inputs.values(), temporary, strict=True)),
    ).to_native()
    computed = pl.struct([flag, *temporary]).map_batches(
        evaluate, return_dtype=pl.Float64, is_elementwise=True
    )
    with_new = given.with_columns(computed.alias(new)).drop([flag, *temporary])
    result: Frame = nw.from_native(with_new)
    return result


def _values(
    root: Node,
    table: Any,
    temporary: Sequence[str],
    positions: Sequence[int],
    n_columns: int,
) -> Floats:
    """Return the values of a map for rows that can be used."""
    read = read_table(table.select(temporary))
    columns: list[Any] = [np.empty(0)] * n_columns
    categories: list[Any] = [None] * n_columns
    for i, position in enumerate(positions):
        columns[position], categories[position] = read.columns[i], read.categories[i]
    columns[0] = in_range(columns[0])
    names = [str(i) for i in range(n_columns)]
    return rescale(root, Predictions.of(columns, names, categories=categories))
