"""``sigmascale fit``: learn how to recalibrate, and save what was learned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..exceptions import InvalidInputError
from .app import app, open_table, say, show_json, show_words, tell_guesses
from .files import check_output, standard_output
from .methods import AUTO, make_scaler
from .options import (
    COLUMNS,
    MORE,
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
    refuse_for_several,
)

if TYPE_CHECKING:
    from ..judging.covariates import CovariateWeights
    from ..roles import Choice
    from .lazy_table import LazyTable
    from .table import Table

LINEAR = "linear"  # of several targets, if nobody says anything else
BOOSTED = "boosted"  # of one


class Law(StrEnum):
    """Laws of errors."""

    empirical = "empirical"
    normal = "normal"


class ShiftOption(StrEnum):
    """What predictions may be shifted by."""

    none = "none"
    constant = "constant"
    auto = "auto"


@app.command(
    epilog=example(
        "sigmascale divide demo-output/test.csv --calibration a.csv --test b.csv",
        "sigmascale fit a.csv --all-features -o scaler.json",
        "sigmascale apply scaler.json b.csv -o recalibrated.csv",
        "sigmascale fit a.csv --method category --by OxNy -o g.json",
        "sigmascale fit a.csv --conformal-share 0.2 --weight mass -o c.json",
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
        typer.Option(
            help="Bins, for methods that have them.",
            min=1,
            metavar="N",
            rich_help_panel=MORE,
        ),
    ] = None,
    by: By = [],  # noqa: B006
    loss: Annotated[
        Loss | None,
        typer.Option(
            help=f"What factors of binwise minimise: {', '.join(Loss)}; nll if not "
            "given.",
            metavar="LOSS",
            rich_help_panel=MORE,
        ),
    ] = None,
    law: Annotated[
        Law,
        typer.Option(
            help="Of errors: empirical, normal.",
            metavar="LAW",
            rich_help_panel=MORE,
        ),
    ] = Law.empirical,
    shift: Annotated[
        ShiftOption,
        typer.Option(
            help="Shift predictions, for apply --shift: none, constant, or auto, what "
            "unseen rows gain from.",
            metavar="SHIFT",
            rich_help_panel=MORE,
        ),
    ] = ShiftOption.none,
    groups: Groups = None,
    conformal_share: Annotated[
        float | None,
        typer.Option(
            help="Hold back this share of the rows, such as 0.2, for apply --coverage.",
            metavar="SHARE",
            rich_help_panel=MORE,
        ),
    ] = None,
    weigh_for: Annotated[
        str | None,
        typer.Option(
            help="Weigh rows so that they stand for those of this file, whose errors "
            "are unknown.",
            metavar="FILE",
            rich_help_panel=MORE,
        ),
    ] = None,
    sample: SampleSize = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn from known errors how to recalibrate, and save it."""
    from ..persistence import dumps, save
    from ..roles import source_of

    if output != "-":
        check_output(output, (".json",), files)
    if choice.names_several:
        refuse_for_several(
            conformal_share=conformal_share, sample=sample, weigh_for=weigh_for
        )
    data = open_table(files, reading, replace(choice, by=tuple(by), gaps=True), sample)
    weighed = None
    if weigh_for is not None:
        data, weighed = weigh(data, weigh_for, choice, seed)
    learned = learn(
        data,
        method,
        bins=bins,
        by=by,
        loss=None if loss is None else loss.value,
        law=law.value,
        shift=None if shift == ShiftOption.none else shift.value,
        groups=groups,
        conformal_share=conformal_share,
        seed=seed,
    )
    scaler: Any = learned.scaler
    source = source_of(data.roles)
    if output == "-":
        standard_output().write(dumps(scaler, source).encode())
        return
    save(scaler, output, source=source)
    told = learned.to_dict() | {"output": output}
    if weighed is not None:
        told["weighed"] = {"file": weigh_for, "n_effective": weighed.n_effective}
    if as_json:
        show_json(told)
        return
    tell_guesses(choice, data)
    if "chosen" in told:
        say(f"\nChosen by cross-validation: {told['chosen']}.\n")
        say(scaler.scaling_.explain())
    say()
    if weighed is not None:
        show_words(f"Weighed to stand for {weigh_for}: {weighed.sentence}")
    show_words(told["words"])
    if data.is_several:
        say(f"\n{scaler.to_table()}")
    if "factors" in told and (words := range_in_words(told["factors"])):
        show_words(words)
    if "held_back" in told:
        show_words(f"Held back for intervals: {told['held_back']} rows.")
    if "advice" in told:
        show_words(told["advice"])
    say(f"\nSaved: {output}. Judge it on other rows than these, then use it:")
    say(f"  sigmascale check TEST.csv --scaler {output}")
    say(f"  sigmascale apply {output} NEW.csv -o OUT.csv")


@dataclass(frozen=True)
class Learned:
    """A fitted recalibrator, and what it was fitted on.

    Attributes
    ----------
    data : Table or LazyTable
        The table.
    method : str
        What the recalibrator is called on the command line.
    scaler : Recalibrator or RecalibratedTargets
        Fitted.
    n_held_back : int or None
        Rows that were held back for intervals.
    advice : str
        That a shift is worth while, if it is and was not learned.
    """

    data: Table | LazyTable
    method: str
    scaler: Any
    n_held_back: int | None
    advice: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return what was learned, for machines."""
        told: dict[str, Any] = {"method": self.method}
        if self.n_held_back is not None:
            told["held_back"] = self.n_held_back
        told |= {"data": self.data.to_dict(), "words": self.scaler.describe()}
        if self.data.is_several:
            told["learned"] = {
                name: {
                    "rows": each.n_samples_fit_,
                    "own_factor": each.own_factor_,
                    "factor": each.factor_,
                    "own_weight": each.own_weight_,
                }
                for name, each in self.scaler.scalings.items()
            }
            return told
        factors = self.data.factors(self.scaler)
        told |= {"factors": factors} if factors else {}
        scaling = self.scaler.scaling_
        if scaling._chosen is not scaling:
            told["chosen"] = scaling.name_
            told["candidates"] = scaling.cv_results_
        if self.advice:
            told["advice"] = self.advice
        return told


def learn(
    data: Table | LazyTable,
    method: str | None,
    *,
    groups: str | None = None,
    conformal_share: float | None = None,
    law: str = "empirical",
    shift: str | None = None,
    seed: int = 0,
    **options: Any,
) -> Learned:
    """Fit the recalibrator that the options describe; of several targets, all."""
    from ..recalibrator import Recalibrator

    if method is None:
        method = LINEAR if data.is_several else BOOSTED
        if data.first.components:
            method = AUTO  # which knows that parts add up
    scaling = make_scaler(method, data.first, seed=seed, **options)
    parts: dict[str, Any] = {"law": law, "shift": shift, "random_state": seed}
    scaler: Any = Recalibrator(scaling, **parts)
    if data.is_several:
        from ..targets.recalibrated import RecalibratedTargets

        scaler = RecalibratedTargets(scaling, names=list(data.roles), **parts)
    advice = data.shift_advice(groups, seed) if shift is None else ""
    if conformal_share is None:
        data.fit(scaler, groups)
        return Learned(data, method, scaler, None, advice)
    rest, held_back = data.hold_back(conformal_share, groups, seed)
    rest.fit(scaler, groups)
    held_back.conformalize(scaler, groups)
    return Learned(data, method, scaler, held_back.n_rows, advice)


def weigh(
    data: Table | LazyTable, file: str, choice: Choice, seed: int
) -> tuple[Table, CovariateWeights]:
    """Weigh a calibration set so that it stands for the rows of another file."""
    from ..judging.covariates import covariate_weights
    from ..roles import Expected
    from .table import Table

    data.require_memory("--weigh-for")
    table: Any = data
    if table.weights is not None:
        msg = "--weigh-for finds the weights itself: pass it without --weight."
        raise InvalidInputError(msg)
    new = Table.open([file], table.reading, Expected(table.roles, choice))
    with new.told():
        found = covariate_weights(table.X, new.X, random_state=seed)
    return replace(table, weights=found.weights), found


def range_in_words(factors: dict[str, float]) -> str:
    """Return what rows' uncertainties are multiplied by, unless one factor says it."""
    least, low, median, high, most = (f"{value:.3g}" for value in factors.values())
    if least == most:
        return ""
    return (
        f"The factors of these rows are {least} to {most}: 90 % of them {low} to "
        f"{high}, {median} in the median."
    )
