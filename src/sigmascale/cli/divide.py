"""``sigmascale divide``: a calibration set and a test set from one table."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..exceptions import InvalidInputError
from .app import app, say, show_json
from .files import about, named, refuse_input, write_table
from .options import IN_MEMORY, AsJson, Files, Groups, Seed, example, gather

HALF = 0.5


@app.command(
    epilog=example(
        "sigmascale divide demo-output/test.csv --calibration a.csv --test b.csv",
        "sigmascale fit a.csv --all-features -o scaler.json",
        "sigmascale apply scaler.json b.csv -o recalibrated.csv",
    )
)
@gather(reading=IN_MEMORY)
def divide(
    files: Files,
    reading: Any,
    calibration: Annotated[
        str, typer.Option(help="Table to learn from.", metavar="FILE")
    ],
    test: Annotated[str, typer.Option(help="Table to judge by.", metavar="FILE")],
    share: Annotated[
        float | None,
        typer.Option(
            help="Share of the rows to learn from, taken at random; 0.5 if not given.",
            metavar="SHARE",
        ),
    ] = None,
    first_where: Annotated[
        str | None,
        typer.Option(
            help="Or learn from the rows that meet this condition, see --where.",
            metavar="CONDITION",
        ),
    ] = None,
    groups: Groups = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Divide the rows of a table in two: to learn from, to judge by.

    Columns and the order of rows stay as they are. Rows of one group stay together.
    """
    import numpy as np
    import polars as pl

    from .table import Columns, random_rows, read_columns

    for output in (calibration, test):
        refuse_input(output, files)
    table = read_columns(files, reading)
    with about(named(files)):
        if reading.where is not None:
            table = table.where(reading.where)
        n_rows = table.frame.height
        if first_where is None:
            labels = None if groups is None else table.groups(groups).to_numpy()
            wanted = HALF if share is None else share
            is_first = random_rows(n_rows, labels, wanted, seed, "--share")
        elif share is not None or groups is not None:
            msg = "--first-where says which rows: pass it without --share and --groups."
            raise InvalidInputError(msg)
        else:
            rows = Columns(table.frame, table.decimal)
            is_first = np.zeros(n_rows, bool)
            is_first[rows.where(first_where, "--first-where").places] = True
        if is_first.all() or not is_first.any():
            msg = "one of the two parts has no rows. Choose another share or condition."
            raise InvalidInputError(msg)
    told: dict[str, Any] = {}
    style = {"separator": reading.separator, "decimal": reading.decimal}
    parts = {"calibration": (calibration, is_first), "test": (test, ~is_first)}
    for what, (output, which) in parts.items():
        write_table(table.frame.filter(pl.Series(which)), output, **style)
        told |= {what: output, f"{what}_rows": int(which.sum())}
    if as_json:
        show_json(told)
        return
    say(f"To learn from: {calibration} ({told['calibration_rows']} rows).")
    say(f"To judge by: {test} ({told['test_rows']} rows).")
