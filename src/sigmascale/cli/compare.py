"""``sigmascale compare``: recalibrators, or uncertainties of models, side by side."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from .._support.progress import working
from .._support.terminal import visible
from ..exceptions import InvalidInputError
from ..scaling.registry import methods
from .app import (
    app,
    check_format,
    say,
    show_json,
    show_table,
    show_verdicts,
    tell_guesses,
    tell_written,
)
from .files import HTML, check_output
from .methods import AUTO, COMPONENT, NONE, make_scaler, takes_labels
from .options import (
    COLUMNS,
    IN_MEMORY,
    MORE,
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

if TYPE_CHECKING:
    from ..judging.validation import Validation
    from ..roles import Choice
    from .table import Table

MEANING = (
    "NLL (of a normal law), CRPS and S: lower is better. Valid bins: 95 % is ideal."
)
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
        column_option(
            "Uncertainties; of one file, repeat it for each model.", first=True
        ),
    ] = [],  # noqa: B006
    variance: Annotated[
        list[str], column_option("Squares, instead of uncertainties.")
    ] = [],  # noqa: B006
    groups: Groups = None,
    bins: Annotated[
        int | None,
        typer.Option(
            help="Bins of the scores; 100, or what leaves 5 rows in each.",
            min=1,
            metavar="N",
            rich_help_panel=MORE,
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
    how: dict[str, Any] = {"groups": groups, "bins": bins, "seed": seed}
    if test is None:
        if len(columns) < 2 or report is not None:
            msg = (
                f"{calibration} alone: name at least two columns to compare, each with "
                "--uncertainty or --variance; recalibrators, and --report, need a TEST "
                "file, too."
            )
            raise InvalidInputError(msg)
        choices = [replace(choice, **each) for each in columns]
        choice = choices[0]
        found = compare_columns(calibration, choices, reading, **how)
    else:
        if len(columns) > 1:
            msg = (
                f"{calibration} and {test}: recalibrators are compared for one column "
                "of uncertainties. To compare columns, name one file."
            )
            raise InvalidInputError(msg)
        if report is not None:
            check_output(report, HTML, [calibration, test])
        choice = replace(choice, **(columns[0] if columns else {}))
        files = (calibration, test)
        found = compare_recalibrators(files, choice, reading, report, **how)
    if as_json:
        show_json(found.told)
    elif format in (TableFormat.markdown, TableFormat.latex):
        show_table(found, format)
    else:
        tell_guesses(choice, found.data)
        say(f"\n{found.words}")
        for title, verdicts in found.validations.items():
            say()
            show_verdicts(verdicts, title)
        tell_written(report)


class Compared(NamedTuple):
    """What was compared, for people and for machines.

    Attributes
    ----------
    data : Table
        What was read first.
    told : dict
        Scores and verdicts, for machines.
    to_table : callable
        Takes a format, and returns the scores as a table.
    words : str
        The scores, in words.
    validations : dict of str to Validation
        The verdicts, each with its title.
    """

    data: Table
    told: dict[str, Any]
    to_table: Callable[[Any], str]
    words: str
    validations: dict[str, Validation]


def compare_recalibrators(
    files: tuple[str, str],
    choice: Choice,
    reading: Any,
    report: Path | None,
    *,
    groups: str | None,
    bins: int | None,
    seed: int,
) -> Compared:
    """Fit every recalibrator on one file, and judge all on another."""
    from sklearn.frozen import FrozenEstimator

    from ..comparison import compare as compare_scalers
    from ..persistence.files import saved_map
    from ..recalibrator import Recalibrator
    from .table import read_pair

    data, judged = read_pair(*files, choice, reading)
    if data.columns.frame.equals(judged.columns.frame):
        warnings.warn(
            f"{judged.file} holds the rows of {data.file}: judged on what they were "
            "fitted on, all recalibrators look better than they are.",
            UserWarning,
            stacklevel=1,
        )

    def recalibrator(method: str) -> Recalibrator:
        scaling = make_scaler(method, data.first, seed=seed)
        return Recalibrator(scaling, random_state=seed)

    scalers: dict[str, Any] = {
        each: recalibrator(each)
        for each in methods()
        if each not in (AUTO, NONE, COMPONENT) and not takes_labels(each)
    }
    auto: Any = recalibrator(AUTO)
    data.fit(auto, groups)
    scalers[AUTO] = FrozenEstimator(auto)  # fitted once
    table = compare_scalers(
        scalers,
        *(
            (each.X, each.error, each.groups(groups), each.weights)
            for each in (data, judged)
        ),
        n_bins=bins,
        rng=seed,
    )
    before, after = (
        judged.validate(maps, groups=groups, n_bins=bins, rng=seed).targets[""]
        for maps in (None, {"": saved_map(auto)})
    )
    if report is not None:
        from ..report import write_report

        title = f"Uncertainties of {judged.file}, recalibrated with {data.file}"
        with working("writing the report"):
            write_report(
                report,
                before,
                recalibrated=after,
                scaler=auto,
                calibration=(data.X, data.error),
                comparison=table,
                title=visible(title),
                rng=seed,
            )
    told = {
        "calibration": data.to_dict(),
        "test": judged.to_dict(),
        "chosen": auto.scaling_.name_,
        "comparison": table.to_dict(),
        "told": table.sentence,
        "before": before.to_dict(),
        "after": after.to_dict(),
    }
    words = (
        f"Scores on {judged.file}, with {table['none'].test.n_bins} bins:\n\n"
        f"{table}\n\n{MEANING}\n\n"
        f"auto is: {auto.scaling_.name_}, chosen by cross-validation on {data.file}."
    )
    validations = {"Before": before, "After, with auto": after}
    return Compared(data, told, table.to_table, words, validations)


def compare_columns(
    file: str,
    choices: Sequence[Choice],
    reading: Any,
    *,
    groups: str | None,
    bins: int | None,
    seed: int,
) -> Compared:
    """Judge the uncertainties of each choice on the rows that all of them have.

    A column that is judged is no feature of another.
    """
    from ..comparison import compare as compare_models
    from ..predictions import read_pair as pair_of
    from .table import Table, read_columns

    names = [str(each.uncertainty or each.variance) for each in choices]
    if len(set(names)) < len(names):
        msg = f"{file}: a column of uncertainties is given twice."
        raise InvalidInputError(msg)
    columns = read_columns([file], reading)
    tables = {}
    for name, choice in zip(names, choices, strict=True):
        if choice.all_features:
            choice = replace(choice, exclude=(*choice.exclude, *names))
        tables[name] = Table.take([file], reading, columns, choice, names)
    found = {
        name: table.validate(groups=groups, n_bins=bins, rng=seed).targets[""]
        for name, table in tables.items()
    }
    with tables[names[0]].told():
        models = {
            name: pair_of((each.X, each.error, each.groups(groups), each.weights), name)
            for name, each in tables.items()
        }
        table = compare_models(models, n_bins=bins, rng=seed)
    data = tables[names[0]]
    told = {
        name: {"scores": each.scores.to_dict(), **each.to_dict()}
        for name, each in found.items()
    }
    return Compared(
        data,
        {
            "data": data.to_dict(),
            "uncertainties": told,
            "comparison": table.to_dict(),
            "told": table.sentence,
        },
        table.to_table,
        f"{table}\n\n{MEANING}",
        found,
    )
