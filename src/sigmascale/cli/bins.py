"""``sigmascale bins``: what the number of bins does."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from .app import app, check_format, say, show_json, show_table, tell_guesses
from .options import (
    IN_MEMORY,
    WITHOUT_WEIGHTS,
    AsJson,
    CalibrationFile,
    FormatOption,
    Seed,
    TableFormat,
    TestFile,
    example,
    gather,
)

SIMULATED_SETS = 200  # behind each point of a scan; 1000 would take minutes


@app.command(
    epilog=example(
        "sigmascale bins demo-output/calibration.csv demo-output/test.csv --by mass"
    )
)
@gather(choice=WITHOUT_WEIGHTS, reading=IN_MEMORY)
def bins(
    calibration: CalibrationFile,
    test: TestFile,
    choice: Any,
    reading: Any,
    by: Annotated[
        str | None,
        typer.Option(
            help="Column to bin by; the uncertainty if not given.", metavar="COLUMN"
        ),
    ] = None,
    seed: Seed = 0,
    format: FormatOption = None,
    as_json: AsJson = False,
) -> None:
    """Show what the number of bins does, and which one to prefer."""
    from ..judging.bin_numbers import choose_n_bins, scan_bins
    from .table import read_pair

    check_format(format, as_json)
    choice = replace(choice, by=(by,) if by else ())
    learned_from, judged = read_pair(calibration, test, choice, reading)
    column = by or 0
    best = choose_n_bins(learned_from.X, learned_from.error, by=column, rng=seed)
    scan = scan_bins(
        (learned_from.X, learned_from.error),
        (judged.X, judged.error),
        n_bins=[int(n) for n in best.candidates],
        by=column,
        n_draws=SIMULATED_SETS,
        rng=seed,
    )
    if as_json:
        show_json({"choice": best.to_dict(), "scan": scan.to_dict()})
        return
    if format in (TableFormat.markdown, TableFormat.latex):
        show_table(scan, format)
        return
    tell_guesses(choice, learned_from)
    say(f"\nScores on {test} of bin-wise scaling, by its number of bins:\n")
    say(scan)
    chosen = "1 bin" if best.n_bins == 1 else f"{best.n_bins} bins"
    say(f"\nCross-validation on {calibration} alone prefers {chosen}.")
