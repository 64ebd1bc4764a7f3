"""``sigmascale check``: judge the uncertainties of a file."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .._support.progress import working
from .app import FAILED, PASSED, app
from .options import (
    COLUMNS,
    READING,
    AsJson,
    Files,
    FormatOption,
    Report,
    Seed,
    TableFormat,
    example,
    gather,
)
from .outputs import HTML, check_output
from .printing import (
    check_format,
    show_json,
    show_table,
    show_verdicts,
    show_words,
    tell_guesses,
    tell_written,
)


@app.command(
    epilog=example(
        "sigmascale check demo-output/test.csv --all-features",
        "sigmascale check demo-output/test.csv --feature mass --report check.html",
        'sigmascale check demo-output/test.csv --where "mass < 120"',
    )
)
@gather(choice=COLUMNS, reading=READING)
def check(
    files: Files,
    choice: Any,
    reading: Any,
    bins: Annotated[
        int | None, typer.Option(help="Bins of each variable.", min=1, metavar="N")
    ] = None,
    report: Report = None,
    seed: Seed = 0,
    format: FormatOption = None,
    as_json: AsJson = False,
) -> None:
    """Judge uncertainties as they are: on average, at every level, for every input.

    Exit code: 0 they pass, 1 they do not, 2 bad input.
    """
    from .tables.opening import open_table

    check_format(format, as_json)
    if report is not None:
        check_output(report, HTML, files)
    data = open_table(files, reading, choice)
    if report is not None:
        data.require_memory("--report", "Report on some of them")
    found = data.validate(bins, seed)
    if report is not None:
        from ..report import write_report

        with working("writing the report"):
            title = f"Uncertainties of {data.file}"
            write_report(report, found, title=title, rng=seed)
    if as_json:
        show_json({"data": data.to_dict(), **found.to_dict()})
    elif format in (TableFormat.markdown, TableFormat.latex):
        show_table(found, format)
    else:
        tell_guesses(choice, data)
        print()
        show_verdicts(found)
        print("\n" + str(found).split("\n\n", 1)[1])
        show_words(*data.doubts())
        print("\nPassed." if found.passed else "\nNot passed.")
        tell_written(report)
    raise typer.Exit(PASSED if found.passed else FAILED)
