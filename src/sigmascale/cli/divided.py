"""The two parts of a table: rows to learn from, and rows to judge by."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..exceptions import InvalidInputError
from ..roles import known
from .tables.files import write_table
from .tables.filesets import about
from .tables.reading import Reading
from .tables.values import RawTable
from .tables.where import Where

HALF = 0.5


def divide_table(
    file: str,
    table: RawTable,
    reading: Reading,
    calibration: str,
    test: str,
    *,
    share: float | None = None,
    first_where: str | None = None,
    groups: str | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Write the two parts of a table; return what is told of them."""
    import polars as pl

    with about(file):
        if reading.where is not None:
            table = Where.parse(reading.where).keep(table)
        if first_where is None:
            is_first = _random_rows(
                table, HALF if share is None else share, groups, seed
            )
        elif share is not None or groups is not None:
            msg = "--first-where says which rows: pass it without --share and --groups."
            raise InvalidInputError(msg)
        else:
            kept = Where.parse(first_where).keep(RawTable(table.frame, table.decimal))
            is_first = np.zeros(table.frame.height, bool)
            is_first[kept.places] = True
        if is_first.all() or not is_first.any():
            msg = "one of the two parts has no rows. Choose another share or condition."
            raise InvalidInputError(msg)
    for output, rows in ((calibration, is_first), (test, ~is_first)):
        write_table(
            table.frame.filter(pl.Series(rows)),
            output,
            separator=reading.separator,
            decimal=reading.decimal,
        )
    return {
        "calibration": calibration,
        "calibration_rows": int(is_first.sum()),
        "test": test,
        "test_rows": int((~is_first).sum()),
    }


def _random_rows(
    table: RawTable, share: float, groups: str | None, seed: int
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return whether each row is among a random share of them; groups stay whole."""
    if not 0 < share < 1:
        msg = f"--share must lie between 0 and 1; found {share:g}."
        raise InvalidInputError(msg)
    codes = np.arange(table.frame.height)
    if groups is not None:
        labels = table.labels(known(groups, table.frame.columns, "--groups"))
        if labels.has_nulls():
            msg = f"--groups needs a label in each row; column {groups!r} lacks some."
            raise InvalidInputError(msg)
        codes = np.unique(labels.to_numpy(), return_inverse=True)[1]
    sizes = np.bincount(codes)
    order = np.random.default_rng(seed).permutation(sizes.size)
    # whole groups, until the share is reached as nearly as it can be
    n_taken = 1 + int(
        np.searchsorted(np.cumsum(sizes[order]), share * codes.size - 0.5)
    )
    return np.isin(codes, order[:n_taken])
