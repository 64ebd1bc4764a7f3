"""``sigmascale compare``: recalibrators, or uncertainties of models, side by side."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

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
    found: Recalibrators | SideBySide
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
        found = judge_columns(calibration, choices, reading, groups, bins, seed)
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
        found = judge_recalibrators(
            (calibration, test), choice, reading, groups, bins, seed
        )
        if report is not None:
            found.write_report(report, seed)
    if as_json:
        show_json(found.to_dict())
    elif format in (TableFormat.markdown, TableFormat.latex):
        show_table(found, format)
    else:
        tell_guesses(choice, found.data)
        found.tell()
        tell_written(report)


@dataclass(frozen=True)
class Recalibrators:
    """Every recalibrator, fitted on one set and judged on another.

    Attributes
    ----------
    data, judged : Table
        The two sets.
    auto : recalibrator
        The one that cross-validation has chosen.
    table : Comparison
        The scores of all.
    before, after : Validation
        The verdicts on uncertainties as they are, and with `auto`.
    """

    data: Table
    judged: Table
    auto: Any
    table: Any
    before: Validation
    after: Validation

    def to_dict(self) -> dict[str, Any]:
        """Return scores and verdicts, for machines."""
        return {
            "calibration": self.data.to_dict(),
            "test": self.judged.to_dict(),
            "chosen": self.auto.scaling_.name_,
            "comparison": self.table.to_dict(),
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
        }

    def to_table(self, format: Any = "text") -> str:
        """Return the scores as a table of text, Markdown or LaTeX."""
        table: str = self.table.to_table(format)
        return table

    def tell(self) -> None:
        """Print the scores, what was chosen, and the verdicts."""
        n_bins = self.table["none"].test.n_bins
        say(f"\nScores on {self.judged.file}, with {n_bins} bins:\n\n{self.table}")
        say(
            "NLL (of a normal law), CRPS and S: lower is better. Valid bins: 95 % is "
            "ideal."
        )
        say(
            f"\nauto is: {self.auto.scaling_.name_}, chosen by cross-validation on "
            f"{self.data.file}.\n"
        )
        show_verdicts(self.before, "Before")
        say()
        show_verdicts(self.after, "After, with auto")

    def write_report(self, path: Any, seed: int) -> None:
        """Write a report on the recalibrator that was chosen."""
        from ..report import write_report

        title = f"Uncertainties of {self.judged.file}, recalibrated with "
        with working("writing the report"):
            write_report(
                path,
                self.before,
                recalibrated=self.after,
                scaler=self.auto,
                calibration=(self.data.X, self.data.error),
                comparison=self.table,
                title=visible(title + self.data.file),
                rng=seed,
            )


def judge_recalibrators(
    files: tuple[str, str],
    choice: Choice,
    reading: Any,
    groups: str | None,
    bins: int | None,
    seed: int,
) -> Recalibrators:
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
    return Recalibrators(data, judged, auto, table, before, after)


@dataclass(frozen=True)
class SideBySide:
    """Verdicts on several columns of uncertainties, for the same rows.

    Attributes
    ----------
    data : Table
        What was read for the first column.
    validations : dict of str to Validation
        By the name of the column.
    """

    data: Table
    validations: dict[str, Validation]

    def to_table(self, format: Any = "text") -> str:
        """Return the scores as a table of text, Markdown or LaTeX."""
        from .._support.render import as_table, shorten

        cards = {name: found.scores for name, found in self.validations.items()}
        header = ["uncertainty", "NLL", "S_cal"]
        header += [f"S_{shorten(name)}" for name in next(iter(cards.values())).s]
        rows = []
        for name, card in cards.items():
            numbers = [card.nll, card.s_cal, *card.s.values(), card.s_tot]
            answer = self.validations[name].answer
            rows.append([name, *(f"{value:.3f}" for value in numbers), answer])
        return as_table([*header, "S_tot", "answer"], rows, format)

    def to_dict(self) -> dict[str, Any]:
        """Return scores and verdicts by column."""
        return {
            "data": self.data.to_dict(),
            "uncertainties": {
                name: {"scores": found.scores.to_dict(), **found.to_dict()}
                for name, found in self.validations.items()
            },
        }

    def tell(self) -> None:
        """Print the scores, and the verdicts on each column."""
        say(f"\n{self.to_table()}")
        say("NLL and S: lower is better.")
        for name, each in self.validations.items():
            say()
            show_verdicts(each, name)


def judge_columns(
    file: str,
    choices: Sequence[Choice],
    reading: Any,
    groups: str | None,
    bins: int | None,
    seed: int,
) -> SideBySide:
    """Judge the uncertainties of each choice on the rows that all of them have.

    A column that is judged is no feature of another.
    """
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
    return SideBySide(
        tables[names[0]],
        {
            name: table.validate(groups=groups, n_bins=bins, rng=seed).targets[""]
            for name, table in tables.items()
        },
    )
