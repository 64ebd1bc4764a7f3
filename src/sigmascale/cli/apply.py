"""``sigmascale apply``: add recalibrated uncertainties to a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from ..exceptions import InvalidInputError
from .app import app, open_table, say, show_json
from .files import format_of, load_saved
from .options import (
    READING,
    AsJson,
    Engine,
    Files,
    SavedScaler,
    column_option,
    example,
    gather,
    make_choice,
    refuse_for_several,
)


@app.command(
    epilog=example(
        "sigmascale fit demo-output/calibration.csv --all-features -o scaler.json",
        "sigmascale apply scaler.json demo-output/test.csv -o recalibrated.csv",
    )
)
@gather(reading=READING)
def apply(
    scaler: SavedScaler,
    files: Files,
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
            help="The new column; UNCERTAINTY_recalibrated if not given. Of several "
            "targets, a pattern such as 'new_*'.",
            metavar="COLUMN",
        ),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            help="Add limits, NAME_low and NAME_high, that hold this share of the "
            "values, such as 0.9; or of the errors, if there is no prediction.",
            metavar="SHARE",
        ),
    ] = None,
    uncertainty: Annotated[
        list[str], column_option("Uncertainties, if named otherwise than in fit.")
    ] = [],  # noqa: B006
    variance: Annotated[
        list[str], column_option("Variances, if named otherwise than in fit.")
    ] = [],  # noqa: B006
    prediction: Annotated[
        str | None,
        column_option("Predictions to put limits around, see --coverage."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add recalibrated uncertainties to a table; all its columns are kept.

    Where the recalibrator was fitted with variances, the new column is a variance.
    Where files are queried without reading them whole, values that cannot be used,
    such as missing ones, give an empty one instead of an error.
    """
    from ..roles import Expected

    if prediction is not None and coverage is None:
        msg = "--prediction is for --coverage: limits are put around predictions."
        raise InvalidInputError(msg)
    saved = load_saved(scaler)
    if saved.is_several:
        refuse_for_several(coverage=coverage)
    if coverage is not None:
        from ..maps.conformal import check_coverage

        check_coverage(coverage)  # is checked before anything is read
        if saved.conformal is None:
            msg = (
                f"{scaler}: --coverage needs rows that were held back for intervals, "
                "and there were none. Fit with --conformal-share 0.2."
            )
            raise InvalidInputError(msg)
    format_of(output)  # is checked before anything is read
    if reading.engine is None and "://" in output:  # memory is written to files only
        reading = replace(reading, engine=Engine.polars)
    choice = make_choice(uncertainty, variance, prediction=prediction)
    expected = Expected(saved.roles, choice, with_prediction=coverage is not None)
    data = open_table(files, reading, expected).recalibrate(saved.maps, name, coverage)
    told = data.write(output, saved.roles) | {"output": output}
    if saved.is_several:
        told["columns"] = list(data.new)
    else:
        told["column"] = data.new[0]
    if coverage is not None:
        of = "error" if data.first.prediction is None else "value"
        told |= {"limits": list(data.new[1:]), "limits_of": of}
    if as_json:
        show_json(told, to_stderr=output == "-")
    elif output != "-":
        say(f"Written: {output} ({_in_words(told)}).")


def _in_words(told: dict[str, Any]) -> str:
    """Return what was written, without the name of the file."""
    facts = [f"{told['rows']} rows"] if "rows" in told else []
    if told.get("dropped"):
        facts.append(f"{told['dropped']} with missing values left out")
    if "columns" in told:
        facts.append(f"columns {', '.join(told['columns'])}")
    else:
        facts.append(f"column {told['column']}")
    if "limits" in told:
        limits = " and ".join(told["limits"])
        facts.append(f"limits of the {told['limits_of']} {limits}")
    return "; ".join(facts)
