"""``sigmascale check``: test the uncertainties of a table."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

from .._support.progress import working
from .._support.text import TOPIC, WIDTH, visible
from ..predictions.roles import Roles
from .options import (
    FAILED,
    INCONCLUSIVE,
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
TESTING = ("tolerance", "scope", "coverage", "confidence")
OTHER_ROWS = "CALIBRATION.csv"  # a file that is to be named
CODES = {"pass": PASSED, "FAIL": FAILED, "inconclusive": INCONCLUSIVE}


@dataclass(frozen=True, kw_only=True)
class Check(Roles, Reading):
    """Test whether uncertainties are calibrated, also in subgroups.

    Exit status: 0 all checks pass, 1 a check fails, 4 inconclusive, 2 bad input.
    """

    examples = ("sigmascale check demo-output/test.csv --all-features --report r.html",)

    files: tuple[str, ...] = tables()
    recalibrator: str | None = option(
        "test before and after this recalibrator: did it help?", "JSON", common=True
    )
    report: str | None = option(
        *("write a report to this file", "HTML"),
        common=True,
        endings=(".html", ".htm"),
    )
    card: str | None = option(
        *("write a card: the results on one page (.html, .md, .json)", "FILE"),
        endings=(".html", ".htm", ".md", ".json"),
    )
    tolerance: float = option(
        "accepted factor: RMS z from 1/FACTOR to FACTOR", "FACTOR", 1.25, common=True
    )
    scope: Literal["both", "u", "intervals"] = option(
        "what is tested: u, intervals or both",
        "SCOPE",
        "both",
        common=True,
    )
    coverage: float = option("nominal coverage of the intervals", "SHARE", 0.95)
    confidence: float = option("level of one-sided limits", "SHARE", 0.95)
    tolerate: Literal["inconclusive", "FAIL"] | None = option(
        "exit with 0 also for this result: inconclusive, or FAIL", "RESULT"
    )
    accept_limit: float | None = option(
        "up to which u are errors no larger than this?", "NUMBER"
    )
    accept_share: float = option("but for this share of them", "SHARE", 0.05)
    cost: bool = option(
        "what recalibration would gain in CRPS, cross-validated", default=False
    )
    scores: bool = option("print all scores, too, with their targets", default=False)
    seed: int = option("seed of all random numbers", "N", 0)

    def run(self) -> CommandResult:
        """Test a table, and what a recalibrator makes of it."""
        from ..validation.advice import validate
        from .input_table import InputTable, load_fitted

        self.check_outputs()

        # the rows
        recalibrator = was = before = None
        if self.recalibrator is not None:
            recalibrator, was = load_fitted(self.recalibrator)
        table = InputTable.open(self.files, self, was)
        rows = table.predictions()

        # what is found of them, or of what the recalibrator makes of them
        testing = {name: getattr(self, name) for name in TESTING} | {"rng": self.seed}
        with table.naming_rows():
            if recalibrator is not None:
                before, rows = rows, recalibrator.apply(rows)
            v = validate(rows, before=before, cost=self.cost, **testing)

        # all of it for machines, and in words
        told = {"data": table.to_dict(), **found(v)}
        if self.json:
            told["scores"] = v.scores.to_dict()
        remembered = None if recalibrator is None else table.schema
        steps = typed_steps(v, self, remembered)
        words = [table.about_columns(), "", v.text(steps, about_rows=False)]
        if self.time is not None:
            from ..monitoring import over_time

            with table.naming_rows():
                state = over_time(v.rows, confidence=self.confidence).state
            told["time"] = state.to_dict()
            words.append(wrapped(f"{'Time':<{TOPIC}}{state.words}"))
        if self.accept_limit is not None:
            from ..validation.acceptance import accept

            asked = {"limit": self.accept_limit, "share": self.accept_share}
            accepted = accept(v.rows, **asked, confidence=self.confidence)
            told["acceptance"] = accepted.to_dict()
            words += ["", str(accepted)]
        if self.scores:
            words += ["", str(v.scores)]

        # files that were asked for
        words.append("")
        words += reported(self, v, recalibrator, steps)
        if self.card is not None:
            self._write_card(table, v, recalibrator)
            words.append(f"Card: {self.card}")
        code = CODES[v.result]
        if self.tolerate == "FAIL" or (self.tolerate and code == INCONCLUSIVE):
            code = PASSED
        plots = "" if self.report is not None else " With plots: --report report.html"
        words.append(f"Exit status {code} ({v.result}).{plots}")
        return CommandResult(told, "\n".join(words), code, v, recalibrator)

    def _write_card(self, table: Any, v: Validation, recalibrator: Any) -> None:
        """Write the card that was asked for."""
        from ..report import write_card
        from .file_formats import called

        about = {
            "command": ["sigmascale", *self.argv()],
            "options": testing_options(self),
            "seed": self.seed,
            "left_out": table.schema.left_out,
            "file": ", ".join(Path(called(file)).name for file in self.files),
            "file_sha256": _sha256_of_files(self.files),
        }
        with working("writing the card"):
            write_card(self.card or "", v, recalibrator=recalibrator, about=about)


def found(v: Validation) -> dict[str, Any]:
    """Return results for machines, with those before recalibration if there are any."""
    before = {} if v.before is None else {"before": v.before.to_dict()}
    return v.to_dict() | before


def testing_options(command: Check) -> dict[str, Any]:
    """Return what a card must know of a command to have its numbers found again.

    Only how columns are read and tested: no file is named, and none is written.
    """
    names = {*OF_READING, *TESTING, "seed"}
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


def typed_steps(
    v: Validation, command: Any, remembered: Schema | None = None
) -> list[str]:
    """Return what to do next, with the whole command to type.

    Columns that a recalibrator has `remembered` are named in it. No fit is of the rows
    that were tested: a file of others takes their place.
    """
    from .fit import Fit

    reading = {name: getattr(command, name) for name in OF_READING}
    if remembered is not None:
        reading |= {field.name: field.default for field in fields(Roles)}
        reading |= remembered.as_choice()

    steps = []
    for step in v.next_steps:
        words: list[str] = []
        if step.verb == "fit":
            fit = {"files": (OTHER_ROWS,), "output": "r.json", **step.options}
            words = Fit(**(reading | fit)).argv()
        elif step.verb == "apply":
            saved = getattr(command, "recalibrator", None) or command.output
            words = ["apply", saved, "NEW.csv", "-o", "OUT.csv"]
        elif step.verb == "groups" and isinstance(command, Check):
            words = replace(command, groups="COLUMN").argv()
        elif step.verb == "check" and isinstance(command, Check):
            words = replace(command, **step.options).argv()
        steps.append(f"{step.what}:\n{typed(words)}" if words else f"{step.what}.")
    return steps


def reported(
    command: Any, v: Validation, recalibrator: Any, steps: list[str]
) -> list[str]:
    """Write the report that was asked for, if any; return the line that says so."""
    if command.report is None:
        return []
    from ..report import write_report
    from .file_formats import called

    title = visible(", ".join(map(called, command.files)))
    how: dict[str, Any] = {"title": title, "recalibrator": recalibrator}
    with working("writing the report"):
        write_report(command.report, v, **how, steps=steps)
    return [f"Report: {command.report}"]


def typed(words: list[str]) -> str:
    """Return a line to copy, which goes on in a second one where it is long."""
    indent = " " * TOPIC
    lines = [f"{indent}sigmascale"]
    for word in map(quote, words):
        if len(lines[-1]) + len(word) > WIDTH - 4:
            lines[-1] += " \\"
            lines.append(f"{indent} ")
        lines[-1] += f" {word}"
    return "\n".join(lines)
