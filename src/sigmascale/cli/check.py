"""``sigmascale check``: judge the uncertainties of a file."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from .._support.progress import working
from .._support.terminal import visible
from ..exceptions import InvalidInputError, SharedRowsWarning
from .app import (
    CANNOT_TELL,
    FAILED,
    PASSED,
    app,
    check_format,
    open_table,
    say,
    show_json,
    show_table,
    show_verdicts,
    show_words,
    tell_guesses,
)
from .files import HTML, about, check_output, load_saved
from .options import (
    COLUMNS,
    MORE,
    READING,
    AsJson,
    FormatOption,
    Groups,
    MaybeFiles,
    Parts,
    Report,
    SampleSize,
    Seed,
    TableFormat,
    column_option,
    example,
    gather,
    refuse_for_several,
)

if TYPE_CHECKING:
    from ..judging.validation import Validations
    from ..monitoring.over_time import OverTime
    from ..roles import Choice, Expected
    from .lazy_table import LazyTable
    from .table import Table

SHARED = 0.02  # of the calibration set: rows that are the same by chance are rare


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
        "sigmascale check demo-output/test.csv --feature mass --plan 1.2",
    )
)
@gather(choice=COLUMNS, reading=READING)
def check(
    choice: Any,
    reading: Any,
    files: MaybeFiles = None,
    groups: Groups = None,
    tolerance: Annotated[
        float,
        typer.Option(
            help="A yes excludes that u is off by this factor in a tenth of the rows.",
            metavar="FACTOR",
            rich_help_panel=MORE,
        ),
    ] = 2.0,
    plan: Annotated[
        float | None,
        typer.Option(
            help="Say how many rows (or groups) a yes takes at this tolerance, with "
            "tails as in the table; without a table, of normal errors with three "
            "features.",
            metavar="FACTOR",
            rich_help_panel=MORE,
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            help="One minus the chance that calibrated rows get a no.",
            metavar="SHARE",
            rich_help_panel=MORE,
        ),
    ] = 0.95,
    tolerate: Annotated[
        Tolerated | None,
        typer.Option(
            help="End with 0 also for this: cannot-tell, or no.",
            metavar="ANSWER",
            rich_help_panel=MORE,
        ),
    ] = None,
    bins: Annotated[
        int | None,
        typer.Option(
            help="Bins of each variable.", min=1, metavar="N", rich_help_panel=MORE
        ),
    ] = None,
    scaler: Annotated[
        str | None,
        typer.Option(
            help="Judge also what this recalibrator makes of them; the exit code is "
            "about that.",
            metavar="SCALER",
        ),
    ] = None,
    calibration: Annotated[
        str | None,
        typer.Option(
            help="What --scaler was fitted on, for the report.",
            metavar="FILE",
            rich_help_panel=MORE,
        ),
    ] = None,
    time: Annotated[
        str | None,
        column_option("When rows came: has calibration changed?"),
    ] = None,
    report: Report = None,
    parts: Parts = None,
    sample: SampleSize = None,
    seed: Seed = 0,
    format: FormatOption = None,
    as_json: AsJson = False,
) -> None:
    """Judge uncertainties on average, at every level, for every input.

    Exit code: 0 all answers are yes, 1 one is no, 4 none is no but one cannot be
    told; 2 bad input, 3 a defect.
    """
    from .table import Table

    check_format(format, as_json)
    if not files:
        if plan is None:
            msg = "FILE..., a table to be judged, is missing."
            raise typer.BadParameter(msg)
        _tell_plan({"": None}, plan, confidence, seed, as_json=as_json)
        return
    if report is not None:
        check_output(report, HTML, files)
    for option, value, needs, other in (
        ("--parts", parts, "--report", report),
        ("--calibration", calibration, "--scaler", scaler),
    ):
        if value is not None and other is None:
            msg = f"{option} is for {needs}; pass that, too."
            raise InvalidInputError(msg)
    expected, several, saved = choice, choice.names_several, None
    if scaler is not None:
        saved = load_saved(scaler)
        expected = expected_by(scaler, saved, choice)
        several |= saved.is_several
    if several:
        refuse_for_several(
            parts=parts, calibration=calibration, sample=sample, time=time
        )
    data = open_table(files, reading, expected, sample)
    if plan is not None:
        data.require_memory("--plan", "Plan by some of them")
        if isinstance(data, Table):
            known = data.judged_rows(None, groups)
            _tell_plan(known, plan, confidence, seed, as_json=as_json)
        return
    if saved is not None:
        data.require_memory("--scaler", "Judge some of them")
    paths, learned_from = {}, None
    if report is not None:  # is checked before anything is judged
        paths = _report_paths(report, data.roles)
        if calibration is not None:
            learned_from = Table.open([calibration], reading, expected)

    options: dict[str, Any] = {"tolerance": tolerance, "confidence": confidence}
    options |= {"groups": groups, "n_bins": bins, "rng": seed}
    times = None if time is None else data.times(time)
    found = final = data.validate(**options)
    stages = {"": found}
    if saved is not None and isinstance(data, Table):
        warn_of_shared(
            data.shared(saved.maps),
            str(scaler),
            "those to be judged, where it is better than on new ones. Judge it on "
            "other rows",
        )
        final = data.validate(saved.maps, **options)
        stages = {"Before": found, "After": final}
    in_time = None
    if times is not None:
        from ..monitoring.over_time import over_time

        rows: Any = final.targets[""].rows
        with about(data.file):
            in_time = over_time(rows, times, confidence=final.confidence)
    if paths:
        told: dict[str, Any] = {"time": times, "parts": parts, "rng": seed}
        _write_reports(paths, data.file, stages, scaler, learned_from, **told)

    advice = ""
    judged = None if scaler or data.is_several else final.targets[""]
    if judged is not None and not judged.verdicts["bias"].passed:
        advice = data.shift_advice(groups, seed)
    if as_json:
        show_json(Judged(data, found, final if scaler else None, in_time, advice))
    elif format in (TableFormat.markdown, TableFormat.latex):
        show_table(final.targets.get("", final), format)
    else:
        tell_guesses(choice, data)
        say()
        _tell(stages)
        for words in ("" if in_time is None else in_time.words, advice):
            if words:
                say()
                show_words(words)
        say(f"\n{CLOSING[final.answer]}")
        if paths:
            what = "Reports" if data.is_several else "Report"
            say(f"\n{what}: {', '.join(map(str, paths.values()))}")
    raise typer.Exit(_exit_code(final.answer, tolerate))


def _tell_plan(
    rows: Any, tolerance: float, confidence: float, seed: int, *, as_json: bool
) -> None:
    """Say how many rows a yes takes, to each target."""
    from ..judging.verdicts import rows_needed

    options: dict[str, Any] = {"confidence": confidence, "rng": seed}
    with working("planning"):
        needed = {
            name: rows_needed(tolerance, predictions=each, **options)
            for name, each in rows.items()
        }
    if as_json:
        show_json({"tolerance": tolerance, "rows_needed": needed.get("", needed)})
        return
    for name, each in rows.items():
        unit = "rows" if each is None or each.groups is None else "groups"
        words = (
            f"If u is right within a factor of {tolerance:g} everywhere, about "
            f"{needed[name]:,} {unit} are enough for a yes."
        )
        show_words(f"{name}: {words}" if name else words)


def _tell(stages: dict[str, Validations]) -> None:
    """Print the verdicts: on one target in sentences, of several a line on each."""
    for title, each in stages.items():
        if title == "After":
            say()
        if "" in each.targets:
            show_verdicts(each.targets[""], title)
        else:
            say(f"{title}\n{each.to_table()}" if title else each.to_table())
    say()
    if "" not in each.targets:
        show_words(*each.summary.splitlines())
        return
    one = each.targets[""]
    say(str(one).split("\n\n", 1)[1])
    scores = [
        f"{title}: {scored.sentence}" if title else scored.sentence
        for title, stage in stages.items()
        if (scored := stage.targets[""].distribution) is not None
    ]
    for words in filter(None, (*scores, one.sampled, one.tails)):
        say()
        show_words(words)


def _exit_code(answer: str, tolerate: Tolerated | None) -> int:
    """Return what a pipeline is told."""
    if answer == "yes" or tolerate == Tolerated.no:
        return PASSED
    if answer == "cannot tell":
        return PASSED if tolerate == Tolerated.cannot_tell else CANNOT_TELL
    return FAILED


class Judged(NamedTuple):
    """Verdicts on a table, on what a recalibrator makes of it, over time, advice."""

    data: Table | LazyTable
    found: Validations
    recalibrated: Validations | None
    over_time: OverTime | None
    advice: str

    def to_dict(self) -> dict[str, Any]:
        """Return what was taken from the file, and all verdicts, for machines."""
        told = {"data": self.data.to_dict(), **_in_full(self.found)}
        if self.recalibrated is not None:
            told["recalibrated"] = _in_full(self.recalibrated)
        if self.over_time is not None:
            told["time"] = self.over_time.to_dict()
        if self.advice:
            told["advice"] = self.advice
        return told


def _write_reports(
    paths: dict[str, Path],
    file: str,
    stages: dict[str, Validations],
    scaler: str | None,
    calibration: Table | None,
    **options: Any,
) -> None:
    """Write a report on each target."""
    from ..persistence import load
    from ..report import write_report

    found, *after = (each.targets for each in stages.values())
    fitted: Any = None if scaler is None else load(scaler)
    of = f"of {file}"
    if calibration is not None:
        of += f", recalibrated with {calibration.file}"
        options["calibration"] = calibration.X, calibration.error
    for name, path in paths.items():
        if after:
            options["recalibrated"] = after[0][name]
            options["scaler"] = fitted.recalibrators_[name] if name else fitted
        title = f"{name}: uncertainties {of}" if name else f"Uncertainties {of}"
        with working("writing the report"):
            write_report(path, found[name], title=visible(title), **options)


def _report_paths(report: Path, targets: Any) -> dict[str, Path]:
    """Return where reports go; the name of a target takes the place of a star."""
    if list(targets) == [""]:
        return {"": report}
    if report.name.count("*") != 1:
        msg = (
            f"--report {str(report)!r} must have one star, for the names of targets: "
            "--report 'report_*.html'."
        )
        raise InvalidInputError(msg)
    paths = {
        name: report.with_name(report.name.replace("*", re.sub(r"[^\w.+-]", "_", name)))
        for name in targets
    }
    if len(set(paths.values())) < len(paths):
        msg = "--report: names of targets are too much alike for those of files."
        raise InvalidInputError(msg)
    return paths


def _in_full(found: Validations) -> dict[str, Any]:
    """Return verdicts; on one target with all scores, and what is attainable."""
    one = found.targets.get("")
    if one is None:
        return found.to_dict()
    scores, reference = one.scores.to_dict(), one.reference
    attainable = {
        name: {"mean": reference.mean[name], "sd": reference.sd[name]}
        for name in scores
    }
    told: dict[str, Any] = {"scores": scores, "attainable": attainable}
    told["tails"] = one.tails
    if one.distribution is not None:
        told["distribution"] = one.distribution.to_dict()
    return {**one.to_dict(), **told}


def expected_by(scaler: str, saved: Any, choice: Choice) -> Expected:
    """Return what a recalibrator expects of a table whose errors are known."""
    from ..roles import Expected

    named = (*choice.features, *choice.labels, *choice.exclude)
    if named or choice.all_features or choice.formula is not None:
        msg = (
            f"{scaler}: features are those that it was fitted with. Pass --scaler "
            "without --feature, --all-features, --exclude, --label and --formula."
        )
        raise InvalidInputError(msg)
    return Expected(saved.roles, choice, with_error=True)


def warn_of_shared(share: float, scaler: str, which: str) -> None:
    """Warn if a share of what a recalibrator was fitted on is among new rows."""
    from .._support.notices import warn

    if share >= SHARED:
        warn(
            f"About {share:.0%} of the rows that {scaler} was fitted on are among "
            f"{which}.",
            SharedRowsWarning,
            stacklevel=2,
        )
