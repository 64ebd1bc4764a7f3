"""``sigmascale fit``: learn how to recalibrate, and save what was learned."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any

import typer

from .app import app
from .learned import range_in_words
from .methods import AUTO
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
from .printing import say, show_json, show_words, tell_guesses


class Law(StrEnum):
    """Laws of errors that a recalibrator can learn."""

    normal = "normal"
    student = "student"


CALIBRATION = "sigmascale fit demo-output/calibration.csv"


@app.command(
    epilog=example(
        f"{CALIBRATION} --all-features -o scaler.json",
        f"{CALIBRATION} --method binwise --bins 9 -o b.json",
        f"{CALIBRATION} --method category --by OxNy -o g.json",
        f"{CALIBRATION} --conformal-share 0.2 -o c.json",
        f"{CALIBRATION} --weight mass -o w.json",
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
    method: MethodName = None,
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
    shift_to: Annotated[
        str | None,
        typer.Option(
            help="Rows of other inputs, errors unknown: weigh the calibration set so "
            "that it stands for these.",
            metavar="NEW",
        ),
    ] = None,
    sample: SampleSize = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn from known errors how to recalibrate, and save what was learned."""
    from ..persistence import dumps, save
    from .learned import learn, weigh_for
    from .several import learn_targets, refuse_options
    from .tables.opening import open_table
    from .tables.patterns import names_several
    from .tables.sources import standard_output
    from .tables.targets import source_of

    if output != "-":
        check_output(output, (".json",), files)
    law = None if distribution is None else distribution.value
    aim = None if loss is None else loss.value
    if names_several(choice):
        refuse_options(
            conformal_share=conformal_share, sample=sample, shift_to=shift_to
        )
        table, targets = learn_targets(
            files,
            reading,
            replace(choice, by=tuple(by)),
            method,
            bins=bins,
            by=by,
            loss=aim,
            distribution=law,
            groups=groups,
            seed=seed,
        )
        source = source_of(table.roles)
        if output == "-":
            standard_output().write(dumps(targets, source).encode())
            return
        save(targets, output, source=source)
        _tell_targets(table, targets, output, as_json)
        return
    data = open_table(files, reading, replace(choice, by=tuple(by)), sample)
    shift = None
    if shift_to is not None:
        data, shift = weigh_for(data, shift_to, choice, seed)
    learned = learn(
        data,
        method or AUTO,
        bins=bins,
        by=by,
        loss=aim,
        distribution=law,
        groups=groups,
        conformal_share=conformal_share,
        seed=seed,
    )
    scaler: Any = learned.scaler
    source = data.roles.to_dict()
    if output == "-":
        standard_output().write(dumps(scaler, source).encode())
        return
    save(scaler, output, source=source)
    told = learned.to_dict() | {"output": output}
    if shift is not None:
        told["shift"] = {"file": shift_to, "n_effective": shift.n_effective}
    if as_json:
        show_json(told)
        return
    tell_guesses(choice, data)
    if "chosen" in told:
        say(f"\nChosen by cross-validation: {told['chosen']}.\n")
        say(scaler.explain())
    say()
    if shift is not None:
        show_words(f"Weighed to stand for {shift_to}: {shift.sentence}")
    show_words(told["words"])
    if "factors" in told:
        show_words(range_in_words(told["factors"]))
    if "held_back" in told:
        show_words(f"Held back for intervals: {told['held_back']} rows.")
    say(f"\nSaved: {output}. Judge it on other rows than these:")
    say(f"  sigmascale apply {output} NEW.csv -o OUT.csv")


def _tell_targets(table: Any, targets: Any, output: str, as_json: bool) -> None:
    """Print what was learned of several targets."""
    if as_json:
        learned = {
            name: {
                "rows": each.n_samples_fit_,
                "own_factor": each.own_factor_,
                "factor": each.factor_,
                "own_weight": each.own_weight_,
            }
            for name, each in targets.scalers_.items()
        }
        told = {"data": table.to_dict(), "words": targets.describe()}
        show_json(told | {"learned": learned, "output": output})
        return
    show_words(str(table))
    say()
    show_words(targets.describe())
    say(f"\n{targets.to_table()}")
    say(f"\nSaved: {output}. Judge it on other rows than these:")
    say(f"  sigmascale apply {output} NEW.csv -o OUT.csv")
