"""``sigmascale compare``: recalibrators, or uncertainties of models, side by side."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._support.progress import working
from .._support.terminal import visible
from ..exceptions import InvalidInputError
from ..scaling.registry import methods
from .app import app
from .methods import AUTO, COMPONENT, NONE, make_scaler, takes_labels
from .options import (
    COLUMNS,
    IN_MEMORY,
    AsJson,
    FormatOption,
    Groups,
    Report,
    Seed,
    TableFormat,
    column_option,
    example,
    gather,
)
from .outputs import HTML, check_output
from .printing import (
    check_format,
    say,
    show_json,
    show_table,
    show_verdicts,
    tell_guesses,
    tell_written,
)

if TYPE_CHECKING:
    from ..roles import Choice
    from .side_by_side import SideBySide

PAIR = "demo-output/calibration.csv demo-output/test.csv"


@app.command(
    epilog=example(
        f"sigmascale compare {PAIR}",
        f"sigmascale compare {PAIR} --bins 20",
        "sigmascale fit demo-output/calibration.csv -o s.json",
        "sigmascale apply s.json demo-output/test.csv -o new.csv",
        "sigmascale compare new.csv --uncertainty u --uncertainty u_recalibrated",
    )
)
@gather(choice=COLUMNS.without("uncertainty", "variance"), reading=IN_MEMORY)
def compare(
    calibration: Annotated[
        str,
        typer.Argument(
            metavar="CALIBRATION",
            help="Calibration set, with known errors; or the only file.",
        ),
    ],
    choice: Any,
    reading: Any,
    test: Annotated[
        str | None,
        typer.Argument(
            metavar="TEST",
            help="Set to judge by, with known errors.",
            show_default=False,
        ),
    ] = None,
    uncertainty: Annotated[
        list[str],
        column_option("Uncertainties; of one file, repeat it for each model."),
    ] = [],  # noqa: B006
    variance: Annotated[list[str], column_option("Or their squares, variances.")] = [],  # noqa: B006
    groups: Groups = None,
    bins: Annotated[
        int | None,
        typer.Option(
            help="Bins of the scores; 100, or what leaves 5 rows in each.",
            min=1,
            metavar="N",
        ),
    ] = None,
    report: Report = None,
    seed: Seed = 0,
    format: FormatOption = None,
    as_json: AsJson = False,
) -> None:
    """Fit every recalibrator on one set, and judge all on another.

    With one file, and several columns of uncertainties: judge these side by side.
    """
    check_format(format, as_json)
    columns = [{"uncertainty": each} for each in uncertainty]
    columns += [{"variance": each} for each in variance]
    if test is None:
        if len(columns) < 2 or report is not None:
            msg = (
                f"{calibration} alone: name at least two columns to compare, each with "
                "--uncertainty or --variance; recalibrators, and --report, need a TEST "
                "file, too."
            )
            raise InvalidInputError(msg)
        choices = [replace(choice, **each) for each in columns]
        _show_side_by_side(
            calibration, choices, reading, groups, bins, seed, format, as_json
        )
        return
    if len(columns) > 1:
        msg = (
            f"{calibration} and {test}: recalibrators are compared for one column of "
            "uncertainties. To compare columns, name one file."
        )
        raise InvalidInputError(msg)
    if report is not None:
        check_output(report, HTML, [calibration, test])
    choice = replace(choice, **(columns[0] if columns else {}))
    _show_recalibrators(
        (calibration, test),
        choice,
        reading,
        groups,
        bins,
        report,
        seed,
        format,
        as_json,
    )


def _show_recalibrators(
    files: tuple[str, str],
    choice: Choice,
    reading: Any,
    groups: str | None,
    bins: int | None,
    report: Any,
    seed: int,
    format: TableFormat | None,
    as_json: bool,
) -> None:
    """Fit and judge every recalibrator, and print what came out."""
    from sklearn.frozen import FrozenEstimator

    from ..comparison import compare as compare_scalers
    from ..judging.verdicts import validate
    from .pairs import read_pair
    from .tables.filesets import about

    calibration, test = files
    learned_from, judged = read_pair(calibration, test, choice, reading)
    if learned_from.rows.frame.equals(judged.rows.frame):
        warnings.warn(
            f"{test} holds the rows of {calibration}: judged on what they were fitted "
            "on, all recalibrators look better than they are.",
            UserWarning,
            stacklevel=1,
        )
    scalers: dict[str, Any] = {
        each: make_scaler(each, learned_from.roles, seed=seed)
        for each in methods()
        if each not in (AUTO, NONE, COMPONENT) and not takes_labels(each)
    }
    auto: Any = make_scaler(AUTO, learned_from.roles, seed=seed)
    learned_from.fit(auto, groups)
    together = [
        None if groups is None else each.labels(groups, "--groups")
        for each in (learned_from, judged)
    ]
    scalers[AUTO] = FrozenEstimator(auto)  # fitted once
    table = compare_scalers(
        scalers,
        (learned_from.X, learned_from.error, together[0], learned_from.weights),
        (judged.X, judged.error, together[1], judged.weights),
        n_bins=bins,
        rng=seed,
    )
    with about(test), working("judging the uncertainties"):
        before, after = (
            validate(
                judged.error,
                u,
                judged.features,
                groups=together[1],
                n_bins=bins,
                ties=judged.uncertainty,
                rng=seed,
                sample_weight=judged.weights,
            )
            for u in (judged.uncertainty, auto.predict(judged.X))
        )
    if report is not None:
        from ..report import write_report

        with working("writing the report"):
            write_report(
                report,
                before,
                recalibrated=after,
                scaler=auto,
                calibration=(learned_from.X, learned_from.error),
                comparison=table,
                title=visible(
                    f"Uncertainties of {test}, recalibrated with {calibration}"
                ),
                rng=seed,
            )
    if as_json:
        show_json(
            {
                "calibration": learned_from.to_dict(),
                "test": judged.to_dict(),
                "chosen": auto.name_,
                "comparison": table.to_dict(),
                "before": before.to_dict(),
                "after": after.to_dict(),
            }
        )
        return
    if format in (TableFormat.markdown, TableFormat.latex):
        show_table(table, format)
        return
    tell_guesses(choice, learned_from)
    say(f"\nScores on {test}, with {bins} bins:\n\n{table}")
    say("NLL and S: lower is better. Valid bins: 95 % is ideal.")
    say(f"\nauto is: {auto.name_}, chosen by cross-validation on {calibration}.\n")
    show_verdicts(before, "Before")
    say()
    show_verdicts(after, "After, with auto")
    tell_written(report)


def _show_side_by_side(
    file: str,
    choices: list[Choice],
    reading: Any,
    groups: str | None,
    bins: int | None,
    seed: int,
    format: TableFormat | None,
    as_json: bool,
) -> None:
    """Judge several columns of uncertainties, and print what came out."""
    from .side_by_side import judge_columns

    found: SideBySide = judge_columns(file, choices, reading, groups, bins, seed)
    if as_json:
        show_json(found.to_dict())
        return
    if format in (TableFormat.markdown, TableFormat.latex):
        show_table(found, format)
        return
    tell_guesses(choices[0], found.first)
    say(f"\n{found}")
    say("NLL and S: lower is better.")
    for name, each in found.validations.items():
        say()
        show_verdicts(each, name)
