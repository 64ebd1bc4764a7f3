"""``sigmascale apply``: add recalibrated uncertainties to a table."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Annotated, Any

import typer

from ..exceptions import AbsurdScaleWarning
from .app import app, open_table, show_json, show_words
from .files import format_of, load_saved, refuse_input
from .options import (
    MORE,
    OF_NEW,
    READING,
    AsJson,
    Coverage,
    Engine,
    Files,
    Quantiles,
    SavedScaler,
    Shifted,
    Wanted,
    example,
    gather,
    refuse_for_several,
)


@app.command(
    epilog=example(
        "sigmascale fit demo-output/calibration.csv --all-features -o scaler.json",
        "sigmascale apply scaler.json demo-output/test.csv -o recalibrated.csv",
    )
)
@gather(choice=OF_NEW, reading=READING)
def apply(
    scaler: SavedScaler,
    files: Files,
    choice: Any,
    reading: Any,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="Table to write; - is standard output.",
            metavar="FILE",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            help="The new column, and how others begin; u_recalibrated if not given, "
            "'new_*' of several targets.",
            metavar="COLUMN",
        ),
    ] = None,
    coverage: Coverage = None,
    quantiles: Quantiles = None,
    shift: Shifted = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Write onto the table itself, if --output names it.",
            rich_help_panel=MORE,
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Add recalibrated uncertainties to a table.

    All its columns are kept. Where the recalibrator was fitted with variances, the
    new column is a variance.
    """
    from ..roles import Expected

    if not force:
        refuse_input(output, files, "or pass --force")
    wanted = Wanted.of(coverage, quantiles, shift=shift, prediction=choice.prediction)
    saved = load_saved(scaler)
    if saved.is_several:
        refuse_for_several(coverage=coverage, quantiles=quantiles, shift=shift or None)
    wanted.refuse_unlearned(scaler, saved)
    for each in saved.maps.values():
        if each.caution:
            warnings.warn(f"{scaler}: {each.caution}", AbsurdScaleWarning, stacklevel=1)
    format_of(output)  # is checked before anything is read
    if reading.engine is None and "://" in output:  # memory is written to files only
        reading = replace(reading, engine=Engine.polars)
    expected = Expected(
        saved.roles, choice, with_prediction=bool(wanted.endings), gaps=True
    )
    data = open_table(files, reading, expected).recalibrate(saved.maps, name, wanted)
    told = data.write(output, saved.roles) | {"output": output}
    if saved.is_several:
        told["columns"] = list(data.new)
    else:
        told["column"] = data.new[0]
    if wanted.endings:
        of = "error" if data.first.prediction is None else "value"
        told |= {"distribution": list(data.new[1:]), "distribution_of": of}
    if as_json:
        show_json(told, to_stderr=output == "-")
    elif output != "-":
        show_words(f"Written: {output} ({_in_words(told)}).")


def _in_words(told: dict[str, Any]) -> str:
    """Return what was written, without the name of the file."""
    facts = [f"{told['rows']} rows"] if "rows" in told else []
    if told.get("dropped"):
        facts.append(f"{told['dropped']} with missing values left out")
    if "columns" in told:
        facts.append(f"columns {', '.join(told['columns'])}")
    else:
        facts.append(f"column {told['column']}")
    if "distribution" in told:
        columns = ", ".join(told["distribution"])
        facts.append(f"of the distribution of the {told['distribution_of']}: {columns}")
    return "; ".join(facts)
