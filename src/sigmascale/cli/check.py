"""``sigmascale check``: judge the uncertainties of a table."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

from .._support.files import write_text
from .._support.progress import working
from .._support.text import WIDTH, visible
from ..predictions.roles import Roles
from .options import (
    CANNOT_TELL,
    FAILED,
    OF_READING,
    PASSED,
    CommandResult,
    Reading,
    option,
    tables,
    wrapped,
)

if TYPE_CHECKING:
    from ..predictions.schema import Schema
    from ..validation.validation import Validation


# Options that `validate` takes as they are.
JUDGING = ("tolerance", "claim", "level", "confidence")


@dataclass(frozen=True, kw_only=True)
class Check(Roles, Reading):
    """Judge uncertainties on average, at every level and for every input.

    Ends with 0 if all answers are yes, 1 if one is no, 4 if one cannot be told.
    """

    examples = ("sigmascale check demo-output/test.csv --all-features --report r.html",)

    files: tuple[str, ...] = tables()
    recalibrator: str | None = option(
        "judge also what this recalibrator makes of it", "JSON", common=True
    )
    report: str | None = option("write a report to this file", "HTML", common=True)
    card: str | None = option(
        "write a card: the evidence on one page (.html, .md, .json)", "FILE"
    )
    badge: str | None = option("write how right u is, as a badge", "SVG")
    tolerance: float = option(
        "factor that is small enough for a yes", "FACTOR", 1.25, common=True
    )
    claim: Literal["both", "u", "intervals"] = option(
        "what is judged: both, u or intervals",
        "CLAIM",
        "both",
        common=True,
    )
    level: float = option("coverage of the intervals", "SHARE", 0.95)
    confidence: float = option(
        "level of T, and 1 minus the chance of a wrong no", "SHARE", 0.95
    )
    tolerate: Literal["cannot-tell", "no"] | None = option(
        "end with 0 also for this answer: cannot-tell, or no", "ANSWER"
    )
    scores: bool = option("print all scores, too, with their targets", default=False)
    seed: int = option("seed of all random numbers", "N", 0)

    def run(self) -> CommandResult:
        """Judge a table, and what a recalibrator makes of it."""
        from ..validation.advice import validate
        from .table import InputTable, load_fitted
        from .tables import refuse_input

        for output, endings in (
            (self.report, (".html", ".htm")),
            (self.card, (".html", ".htm", ".md", ".json")),
            (self.badge, (".svg",)),
        ):
            if output is not None:
                refuse_input(output, self.files, *endings)

        # the rows
        recalibrator = was = after = None
        if self.recalibrator is not None:
            recalibrator, was = load_fitted(self.recalibrator)
        table = InputTable.open(self.files, self, was)
        p = table.predictions()

        # their verdicts, and those of what the recalibrator makes of them
        judging = {name: getattr(self, name) for name in JUDGING} | {"rng": self.seed}
        with table.told(), working("judging the uncertainties"):
            before = validate(p, **judging)
            if recalibrator is not None:
                after = validate(recalibrator.apply(p), **judging)
        final = before if after is None else after

        # all of it in words, and for machines
        told = {"data": table.to_dict(), **self._told(before)}
        words = [wrapped(*table.about_columns()), ""]
        if after is not None:
            told |= {"recalibrated": self._told(after)}
            told["headline_after"] = after.compared_with(before)
            words += [wrapped(told["headline_after"]), ""]
            words += [wrapped(f"Before: {before.headline}"), ""]
            words += [*after.certificate.picture(before.certificate), "", "After:"]
        remembered = None if recalibrator is None else table.schema
        words.append(in_options(final, self, remembered))
        if self.time is not None:
            from ..monitoring import over_time

            with table.told():
                state = over_time(final.rows, confidence=self.confidence).state
            told["time"] = state.to_dict()
            words += ["", wrapped(f"Over time: {state.words}")]
        if self.scores:
            words += ["", str(final.scores)]

        # files that were asked for
        words += reported(self, before, after, recalibrator)
        words += self._cards(table, before, after, recalibrator)
        code = self._code(final.answer)
        return CommandResult(told, "\n".join(words), code, before, after, recalibrator)

    def _cards(self, table: Any, before: Any, after: Any, recalibrator: Any) -> Any:
        """Write the card and badge that were asked for; return lines that say so."""
        from ..report import badge, write_card

        final = after or before
        words = [""]
        if self.card is not None:
            about = {
                "command": ["sigmascale", *self.words()],
                "options": judging_options(self),
                "seed": self.seed,
                "left_out": table.schema.left_out,
                "file": ", ".join(Path(file).name for file in self.files),
                "file_sha256": _sha256_of_files(self.files),
            }
            stages = {"before": before if after else None, "recalibrator": recalibrator}
            with working("writing the card"):
                write_card(self.card, final, **stages, about=about)
            words.append(f"Card: {self.card}")
        if self.badge is not None:
            write_text(Path(self.badge), badge(final))
            words.append(f"Badge: {self.badge}")
        return words if len(words) > 1 else []

    def _told(self, validation: Validation) -> dict[str, Any]:
        """Return verdicts for machines, which get all scores, too."""
        scores = {"scores": validation.scores.to_dict()} if self.json else {}
        return {**validation.to_dict(), **scores}

    def _code(self, answer: str) -> int:
        """Return what a pipeline is told."""
        if answer == "yes" or self.tolerate == "no":
            return PASSED
        if answer == "cannot tell":
            return PASSED if self.tolerate else CANNOT_TELL
        return FAILED


def judging_options(command: Check) -> dict[str, Any]:
    """Return what a card must know of a command to have its numbers found again.

    Only how columns are read and judged: no file is named, and none is written.
    """
    names = {*OF_READING, *JUDGING, "seed"}
    said = command.to_json()
    return {name: value for name, value in said.items() if name in names}


def _sha256_of_files(files: tuple[str, ...]) -> str | None:
    """Return the hash of files, one after the other; None of what cannot be read."""
    digest = hashlib.sha256()
    for file in files:
        if not Path(file).is_file():
            return None
        with Path(file).open("rb") as opened:
            while block := opened.read(2**20):
                digest.update(block)
    return digest.hexdigest()


def in_options(
    validation: Validation, command: Roles, remembered: Schema | None = None
) -> str:
    """Return verdicts as they are printed, with next steps as lines to copy.

    Columns that a recalibrator has `remembered` are named in these lines.
    """
    from .fit import Fit

    # the options of the command, and what a fit needs beside them
    said: dict[str, Any] = {}
    for name in OF_READING:
        said[name] = getattr(command, name)
    if remembered is not None:
        said |= {field.name: field.default for field in fields(Roles)}
        said |= remembered.as_choice()
    said["files"] = getattr(command, "files", ())
    said["output"] = "r.json"
    said["test_share"] = 0.3

    # each step as words, or as a line of a fit
    steps = []
    for step in validation.next_steps:
        if step.how is None:
            steps.append(f"{step.what}.")
        else:
            line = typed(Fit(**(said | step.how)).words())
            steps.append(f"{step.what}:\n{line}")
    return validation.text(steps)


def reported(command: Any, *judged: Any) -> list[str]:
    """Write the report that was asked for, if any; return the line that says so."""
    if command.report is None:
        return []
    from ..report import write_report

    before, after, recalibrator = judged
    title = visible(f"Uncertainties of {', '.join(command.files)}")
    with working("writing the report"):
        how = {"title": title, "recalibrator": recalibrator}
        write_report(command.report, before, after, **how)
    return ["", f"Report: {command.report}"]


def typed(words: list[str]) -> str:
    """Return a line to copy, which goes on in a second one where it is long."""
    lines = ["  sigmascale"]
    for word in map(quote, words):
        if len(lines[-1]) + len(word) > WIDTH - 4:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {word}"
    return "\n".join(lines)
