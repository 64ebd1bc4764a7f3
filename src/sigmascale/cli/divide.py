"""``sigmascale divide``: a calibration set and a test set from one table."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .app import app
from .options import IN_MEMORY, AsJson, Files, Groups, Seed, example, gather
from .outputs import refuse_input
from .printing import say, show_json


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
            help="Or learn from the rows that meet these conditions, see --where.",
            metavar="CONDITIONS",
        ),
    ] = None,
    groups: Groups = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Divide the rows of a table in two: to learn from, and to judge by.

    Columns and the order of rows stay as they are. Rows of one group stay together.
    """
    from .divided import divide_table
    from .tables.filesets import named
    from .tables.taken import read_raw

    for output in (calibration, test):
        refuse_input(output, files)
    told = divide_table(
        named(files),
        read_raw(files, reading),
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
