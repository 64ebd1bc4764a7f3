"""``sigmascale divide``: a calibration set and a test set from one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..exceptions import InvalidInputError
from .app import app, say, show_json
from .files import about, named, refuse_input, write_table
from .options import IN_MEMORY, AsJson, Files, Groups, Seed, example, gather

if TYPE_CHECKING:
    from .columns import Columns

HALF = 0.5


@app.command(
    epilog=example(
        "sigmascale divide demo-output/test.csv --calibration a.csv --test b.csv",
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
            help="Share of the rows to learn from, taken at random; 0.5 if nothing "
            "is said.",
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
    """Divide the rows of a table in two: to learn from, and to judge by.

    Columns and the order of rows stay as they are. Rows of one group stay together.
    """
    from .table import read_columns

    for output in (calibration, test):
        refuse_input(output, files)
    told = divide_table(
        named(files),
        read_columns(files, reading),
        reading,
        calibration,
        test,
        share=share,
        first_where=first_where,
        groups=groups,
        seed=seed,
    )
    if as_json:
        show_json(told)
        return
    say(f"To learn from: {calibration} ({told['calibration_rows']} rows).")
    say(f"To judge by: {test} ({told['test_rows']} rows).")


def divide_table(
    file: str,
    table: Columns,
    reading: Any,
    calibration: str,
    test: str,
    *,
    share: float | None = None,
    first_where: str | None = None,
    groups: str | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Write the two parts of a table; return what is told of them."""
    import numpy as np
    import polars as pl

    from .columns import Columns
    from .table import random_rows

    with about(file):
        if reading.where is not None:
            table = table.where(reading.where)
        if first_where is None:
            n_rows, wanted = table.frame.height, HALF if share is None else share
            labels = None if groups is None else table.groups(groups).to_numpy()
            is_first = random_rows(n_rows, labels, wanted, seed, "--share")
        elif share is not None or groups is not None:
            msg = "--first-where says which rows: pass it without --share and --groups."
            raise InvalidInputError(msg)
        else:
            kept = Columns(table.frame, table.decimal).where(
                first_where, "--first-where"
            )
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
