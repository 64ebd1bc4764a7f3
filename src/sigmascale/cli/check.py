"""``sigmascale check``: judge the uncertainties of a file."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from ..exceptions import InvalidInputError
from .app import CANNOT_TELL, FAILED, PASSED, app
from .options import (
    COLUMNS,
    READING,
    AsJson,
    Files,
    FormatOption,
    Groups,
    Parts,
    Report,
    SampleSize,
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
    show_words,
    tell_guesses,
    tell_written,
)


class Tolerated(StrEnum):
    """Answers that a pipeline may put up with."""

    cannot_tell = "cannot-tell"
    no = "no"


CLOSING = {
    "yes": "Passed.",
    "no": "Not passed.",
    "cannot tell": "Cannot tell: nothing is plainly wrong, but little is proven.",
}


@app.command(
    epilog=example(
        "sigmascale check demo-output/test.csv --all-features",
        "sigmascale check demo-output/test.csv --feature mass --report check.html",
        'sigmascale check demo-output/test.csv --where "mass < 120"',
        "sigmascale check demo-output/test.csv --weight mass",
    )
)
@gather(choice=COLUMNS, reading=READING)
def check(
    files: Files,
    choice: Any,
    reading: Any,
    groups: Groups = None,
    tolerance: Annotated[
        float,
        typer.Option(
            help="A failure that must not hide behind a yes: the factor by which the "
            "uncertainties of a tenth of the rows may be too small.",
            metavar="FACTOR",
        ),
    ] = 2.0,
    confidence: Annotated[
        float,
        typer.Option(
            help="One minus the chance that calibrated rows get a no.", metavar="SHARE"
        ),
    ] = 0.95,
    tolerate: Annotated[
        Tolerated | None,
        typer.Option(
            help="End with code 0 also if the answer is this: cannot-tell, or no.",
            metavar="ANSWER",
        ),
    ] = None,
    bins: Annotated[
        int | None, typer.Option(help="Bins of each variable.", min=1, metavar="N")
    ] = None,
    scaler: Annotated[
        str | None,
        typer.Option(
            help="Judge also what this recalibrator, made by fit, makes of the "
            "uncertainties; the exit code is about these.",
            metavar="SCALER",
        ),
    ] = None,
    calibration: Annotated[
        str | None,
        typer.Option(
            help="The set that it was fitted on: the report tells whether they differ.",
            metavar="CALIBRATION",
        ),
    ] = None,
    time: Annotated[
        str | None,
        column_option(
            "When rows came, numbers or dates: tells whether calibration has changed."
        ),
    ] = None,
    report: Report = None,
    parts: Parts = None,
    sample: SampleSize = None,
    seed: Seed = 0,
    format: FormatOption = None,
    as_json: AsJson = False,
) -> None:
    """Judge uncertainties as they are: on average, at every level, for every input.

    Exit code: 0 all answers are yes, 1 one of them is no, 4 none is no, but for one
    nothing can be told; 2 bad input, 3 a defect. --tolerate cannot-tell ends with 0
    instead of 4, --tolerate no also instead of 1.
    """
    from .judged import expected_by, judge_table
    from .several import check_reports, holds_targets, judge_targets, refuse_options
    from .tables.memory import MemoryTable
    from .tables.opening import open_table
    from .tables.patterns import names_several

    check_format(format, as_json)
    if report is not None:
        check_output(report, HTML, files)
    for option, value, needs, other in (
        ("--parts", parts, "--report", report),
        ("--calibration", calibration, "--scaler", scaler),
    ):
        if value is not None and other is None:
            msg = f"{option} is for {needs}; pass that, too."
            raise InvalidInputError(msg)
    if names_several(choice) or (scaler is not None and holds_targets(scaler)):
        refuse_options(parts=parts, calibration=calibration, sample=sample)
        check_reports(report)
        several = judge_targets(
            files,
            reading,
            choice,
            scaler,
            groups=groups,
            seed=seed,
            n_bins=bins,
            tolerance=tolerance,
            confidence=confidence,
        )
        paths = [] if report is None else several.write_reports(report, seed)
        _show_targets(several, format, as_json)
        if paths and not as_json and format is None:
            say(f"\nReports: {', '.join(map(str, paths))}")
        raise typer.Exit(_exit_code(several.final.answer, tolerate))
    expected = choice if scaler is None else expected_by(scaler, choice)
    data = open_table(files, reading, expected, sample)
    if scaler is not None:
        data.require_memory("--scaler", "Judge some of them")
    judged = judge_table(
        data,
        scaler=scaler,
        groups=groups,
        bins=bins,
        seed=seed,
        time=time,
        tolerance=tolerance,
        confidence=confidence,
    )
    found = judged.found
    if report is not None:
        learned_from = None
        if calibration is not None:
            learned_from = MemoryTable.open([calibration], reading, expected)
        judged.write_report(report, calibration=learned_from, parts=parts)
    if as_json:
        show_json(judged.to_dict())
    elif format in (TableFormat.markdown, TableFormat.latex):
        show_table(judged.final, format)
    else:
        tell_guesses(choice, data)
        say()
        if judged.recalibrated is not None:
            show_verdicts(found, "Before")
            say()
        show_verdicts(judged.final, "After" if judged.recalibrated else "")
        say("\n" + str(judged.final).split("\n\n", 1)[1])
        in_time = "" if judged.over_time is None else judged.over_time.words
        for words in (judged.final.sampled, judged.final.tails, in_time):
            if words:
                show_words(words)
        say(f"\n{CLOSING[judged.final.answer]}")
        tell_written(report)
    raise typer.Exit(_exit_code(judged.final.answer, tolerate))


def _show_targets(judged: Any, format: TableFormat | None, as_json: bool) -> None:
    """Print the verdicts on several targets."""
    if as_json:
        show_json(judged.to_dict())
        return
    if format in (TableFormat.markdown, TableFormat.latex):
        show_table(judged.final, format)
        return
    show_words(str(judged.data))
    if judged.recalibrated is not None:
        say(f"\nBefore\n{judged.found.to_table()}\n\nAfter")
    else:
        say()
    say(judged.final.to_table())
    say()
    show_words(*judged.final.summary.splitlines())
    say(f"\n{CLOSING[judged.final.answer]}")


def _exit_code(answer: str, tolerate: Tolerated | None) -> int:
    """Return what a pipeline is told."""
    if answer == "yes" or tolerate == Tolerated.no:
        return PASSED
    if answer == "cannot tell":
        return PASSED if tolerate == Tolerated.cannot_tell else CANNOT_TELL
    return FAILED
