"""What to do next: what, and how, for each front end to say in its own language."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from .._support import numerals
from .._support.notices import row_number
from .._support.text import TOPIC, WIDTH
from .words import LARGEST_NAMED, effect, is_same, outcome, unit

if TYPE_CHECKING:
    from .validation import Validation

Verb = Literal["fit", "check", "apply", "groups", ""]


@dataclass(frozen=True)
class Step:
    """What to do next.

    Attributes
    ----------
    what : str
        What to do, in words that need no options.
    verb : {"fit", "check", "apply", "groups", ""}
        The command that does it: fit a recalibrator to other rows than these, check
        these again, apply the recalibrator, or declare groups; none if no command does.
    options : dict
        The options of that command.
    """

    what: str
    verb: Verb = ""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def python(self) -> str:
        """The line of Python that does it; empty where none does."""
        options = ", ".join(f"{k}={_literal(x)}" for k, x in self.options.items())
        return {
            "fit": f"ss.Recalibrator({options}).fit(calibration)",
            "check": f"ss.validate(p, {options})",
            "apply": "recalibrator.apply(new)",
            "groups": "ss.Predictions(..., groups=sample_id)",
            "": "",
        }[self.verb]

    def __str__(self) -> str:
        """Return what to do, and the line of Python that does it."""
        return f"{self.what}: {self.python}" if self.python else f"{self.what}."

    @property
    def printed(self) -> str:
        """The same; Python has a line of its own where both are too long for one."""
        indent = " " * TOPIC
        words = str(self)
        if len(words) <= WIDTH - TOPIC or not self.python:
            return words
        return f"{self.what}:\n{indent}{self.python}"


def _literal(value: Any) -> str:
    """Return a value as Python has it."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_literal, value))}]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def next_steps(v: Validation) -> tuple[Step, ...]:
    """Return what to do next, in at most two steps; none where all checks pass."""
    if v.doubt:
        return (_of_doubt(v),)
    steps = []
    if v.change is not None:
        word, _ = effect(v.change)
        if word == "Recalibration helped":
            steps.append(Step("use the recalibrated uncertainties", "apply"))
        elif word == "Recalibration made it worse":
            return (Step("keep the original u, or calibrate with more rows"),)
    if v.result == "FAIL":
        steps.append(_of_fault(v))
    elif v.result == "inconclusive":
        steps.append(_of_few_rows(v))
    return tuple(steps)


def _of_doubt(v: Validation) -> Step:
    """Return what lets rows be tested at all."""
    if v.doubt == "repeats":
        return Step("declare which rows repeat the same sample", "groups")
    if v.doubt == "fitted":
        return Step("test on rows that the recalibrator was not fitted on")
    return Step("test on rows that the model was not trained on")


def _of_fault(v: Validation) -> Step:
    """Return what corrects the worst fault."""
    if outcome(v)[0] == "Biased":
        return Step("correct the bias, by other rows", "fit", {"bias": "auto"})
    failing = [check for check in v.checks.values() if check.result == "FAIL"]
    of_columns = [x for x in failing if x.column is not None and not is_same(v, x)]
    if of_columns and all(check.is_time for check in of_columns):
        return Step("recalibrate on the latest rows, as u changes over time", "fit")
    if v.rows.recalibrated is None:
        return Step("recalibrate, on other rows", "fit")
    return _of_coverage(v) or Step(
        "calibrate with more rows, or with rows more like these"
    )


def _of_coverage(v: Validation) -> Step | None:
    """Return the step that guarantees the coverage of a column that has another.

    That can be done after recalibration alone.
    """
    check = v.checks.get("coverage")
    if check is None or check.passed or check.subgroup is None:
        return None
    low, high = check.accepted
    column = check.subgroup.column
    is_outside = not low <= check.subgroup.estimate <= high
    if v.rows.recalibrated is None or not is_outside or column not in v.rows.names:
        return None
    part = "label" if v.rows.is_labelled(column) else "fifth"
    what = f"guarantee coverage in each {part} of {column}"
    return Step(what, "fit", {"parts": (column,)})


def _of_few_rows(v: Validation) -> Step:
    """Return what would decide inconclusive checks."""
    few = v.rows_that_decide
    calibration = v.checks.get("calibration")
    if few is not None and calibration is not None and not calibration.passed:
        rows = ", ".join(f"{row_number(row)}" for row in few.rows[:LARGEST_NAMED])
        what = f"check rows {rows}; or test the intervals alone"
        return Step(what, "check", {"scope": "intervals"})
    if (step := _of_coverage(v)) is not None:
        return step
    if v.rows_needed is not None and v.rows_needed > v.n_units:
        n = numerals.about(v.rows_needed)
        return Step(
            f"test more rows; if the estimates stand, about {n} {unit(v)} decide"
        )
    return Step("test more rows: some estimates are close to the accepted limits")
