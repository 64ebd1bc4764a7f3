"""``sigmascale fit``: learn how to recalibrate, and save what was learned."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any

import typer

from .app import app
from .methods import AUTO, make_scaler
from .options import (
    COLUMNS,
    READING,
    AsJson,
    By,
    CalibrationFiles,
    Groups,
    Loss,
    MethodName,
    SampleSize,
    Seed,
    example,
    gather,
)
from .outputs import check_output
from .printing import show_json, show_words, tell_guesses


class Law(StrEnum):
    """Laws of errors that a recalibrator can learn."""

    normal = "normal"
    student = "student"


CALIBRATION = "sigmascale fit demo-output/calibration.csv"


@app.command(
    epilog=example(
        f"{CALIBRATION} --all-features -o scaler.json",
        f"{CALIBRATION} --method binwise --bins 9 -o b.json",
        f"{CALIBRATION} --method group --by OxNy -o g.json",
        f"{CALIBRATION} --conformal-share 0.2 -o c.json",
    )
)
@gather(choice=COLUMNS, reading=READING)
def fit(
    files: CalibrationFiles,
    choice: Any,
    reading: Any,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="File for the recalibrator; - is standard output.",
            metavar="JSON",
        ),
    ],
    method: MethodName = AUTO,
    bins: Annotated[
        int | None,
        typer.Option(help="Bins, for methods that have them.", min=1, metavar="N"),
    ] = None,
    by: By = [],  # noqa: B006
    loss: Annotated[
        Loss | None,
        typer.Option(
            help=f"What factors of binwise minimise: {', '.join(Loss)}; nll if not "
            "given.",
            metavar="LOSS",
        ),
    ] = None,
    distribution: Annotated[
        Law | None,
        typer.Option(
            help="The law of errors: normal, or student, whose tails are learned.",
            metavar="LAW",
        ),
    ] = None,
    groups: Groups = None,
    conformal_share: Annotated[
        float | None,
        typer.Option(
            help="Hold back this share of the rows, such as 0.2, for intervals: see "
            "apply --coverage.",
            metavar="SHARE",
        ),
    ] = None,
    sample: SampleSize = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn from known errors how to recalibrate, and save what was learned."""
    from ..persistence import dumps, save
    from .tables.opening import open_table

    check_output(output, (".json",), files)
    data = open_table(files, reading, replace(choice, by=tuple(by)), sample)
    scaler: Any = make_scaler(
        method,
        data.roles,
        bins=bins,
        by=by,
        loss=None if loss is None else loss.value,
        distribution=None if distribution is None else distribution.value,
        seed=seed,
    )
    told: dict[str, Any] = {"method": method, "output": output}
    if conformal_share is None:
        data.fit(scaler, groups)
    else:
        rest, held_back = data.hold_back(conformal_share, groups, seed)
        rest.fit(scaler, groups)
        held_back.conformalize(scaler)
        told["held_back"] = held_back.n_rows
    source = data.roles.to_dict()
    if output == "-":
        print(dumps(scaler, source), end="")
        return
    save(scaler, output, source=source)
    factors = data.factors(scaler)
    words = scaler.describe()
    has_chosen = scaler.chosen is not scaler
    if as_json:
        told |= {"data": data.to_dict(), "words": words}
        told |= {"factors": factors} if factors else {}
        if has_chosen:
            told |= {"chosen": scaler.name_, "candidates": scaler.cv_results_}
        show_json(told)
        return
    tell_guesses(choice, data)
    if has_chosen:
        print(f"\nChosen by cross-validation: {scaler.name_}.\n\n{scaler.explain()}")
    print()
    show_words(words)
    if factors:
        show_words(_range_in_words(factors))
    if "held_back" in told:
        show_words(f"Held back for intervals: {told['held_back']} rows.")
    print(f"\nSaved: {output}. Judge it on other rows than these:")
    print(f"  sigmascale apply {output} NEW.csv -o OUT.csv")


def _range_in_words(factors: dict[str, float]) -> str:
    least, low, median, high, most = (f"{value:.3g}" for value in factors.values())
    if least == most:
        return f"All uncertainties are multiplied by {median}."
    return (
        f"Uncertainties are multiplied by {least} to {most}: 90 % of them by "
        f"{low} to {high}, by {median} in the median."
    )
