"""Questions, answers and their small print, as the head of a report has them."""

from __future__ import annotations

import math

from ..judging.scan import FACTORS
from ..judging.tails import SKEWED_Z2
from ..judging.validation import (
    AVERAGE,
    BIAS,
    COVERAGE,
    JOINT,
    UNCERTAINTY,
    Answer,
    Validation,
    Verdict,
)
from ..judging.verdicts import AVERAGE_SHARE, BIAS_SHARE
from .evidence import Evidence, Stage
from .text import number, percent, short, with_spread

# The sign, and the class of the page's style sheet. The word stands beside the sign.
MARKS: dict[Answer, tuple[str, str]] = {
    "yes": ("✓", "yes"),
    "no": ("✗", "no"),
    "cannot tell": ("?", "unsure"),
}
_QUESTIONS = {
    BIAS: "Are the errors free of bias?",
    AVERAGE: "Are uncertainties right on average?",
    UNCERTAINTY: "Are they right at every level of uncertainty?",
    JOINT: "Are they right for every combination of these?",
    COVERAGE: "Does one multiple of u hold 95 % of the errors everywhere?",
}


def question_of(name: str) -> str:
    """Return the question that a verdict answers."""
    return _QUESTIONS.get(name, f"Are they right for every value of {short(name)}?")


def headline(evidence: Evidence) -> str:
    """Return how many questions have which answer, before and after."""
    last = _counted(evidence.final.validation)
    if not evidence.recalibrated:
        return f"{last[0].upper()}{last[1:]}."
    first = _counted(evidence.stages[0].validation)
    return f"After recalibration {last}. Before it, {first}."


def _counted(validation: Validation) -> str:
    answers = [verdict.answer for verdict in validation.verdicts.values()]
    yes, no, unsure = (answers.count(each) for each in MARKS)
    total = len(answers)
    if total in (yes, no):
        return f"all {total} questions are answered {'yes' if yes else 'no'}"
    if unsure == total:
        return f"none of the {total} questions can be answered"
    words = f"{yes or 'none'} of {total} questions {'is' if yes < 2 else 'are'} "
    words += "answered yes"
    if no:
        words += f", {no} no"
    if unsure:
        words += f", {unsure} cannot be told"
    return words


def small_print(verdict: Verdict, confidence: float) -> str:
    """Return the numbers behind a verdict, in one line."""
    parts = [
        *_interval(verdict, confidence),
        *_factor(verdict),
        *_seen(verdict),
        *_p_value(verdict),
        *_score(verdict),
    ]
    return "; ".join(parts)


def _interval(verdict: Verdict, confidence: float) -> list[str]:
    if verdict.interval is None or verdict.name not in (BIAS, AVERAGE):
        return []
    share = BIAS_SHARE if verdict.name == BIAS else AVERAGE_SHARE
    return [f"interval at {100 * (1 - share * (1 - confidence)):.4g}\u00a0%"]


def _factor(verdict: Verdict) -> list[str]:
    """Return the interval of the factor of the region that fails."""
    if verdict.region is None or verdict.region.interval is None:
        return []
    low, high = verdict.region.interval
    return [
        f"the factor for these {verdict.region.n:,} rows is between {low:.2g} and "
        f"{high:.2g} (this holds for all regions that were looked at)"
    ]


def _seen(verdict: Verdict) -> list[str]:
    """Return the failure that would have been found."""
    if verdict.seen is None or verdict.answer == "no":
        return []
    if verdict.name == AVERAGE:
        return [f"u could be off by a factor of {verdict.seen:.3g}, but not by more"]
    if not math.isfinite(verdict.seen):
        return [f"even a factor of {FACTORS[-1]:g} in a tenth of the rows could hide"]
    return [
        f"a factor of {verdict.seen:.3g} in a tenth of the rows would have been seen"
    ]


def _p_value(verdict: Verdict) -> list[str]:
    if verdict.p_adjusted is None:
        return []
    # the bias of all rows is judged by its interval
    what = "corrected p of regions" if verdict.name == BIAS else "corrected p"
    return [f"{what} = {verdict.p_adjusted:.3f}"]


def _score(verdict: Verdict) -> list[str]:
    if verdict.score is None:
        return []
    return [f"S = {number(verdict.score)}, attainable {attainable_score(verdict)}"]


def attainable_score(verdict: Verdict) -> str:
    """Return the score of perfectly calibrated sets, with its spread."""
    if verdict.target is None or verdict.target_sd is None:
        return "unknown"
    return with_spread(verdict.target, verdict.target_sd)


def doubt_of_average(stage: Stage) -> str:
    """Return why the verdict on the average is not to be trusted; or nothing."""
    found = stage.tails
    if found is None or found.zms_is_reliable:
        return ""
    words = (
        "A few rows decide on the mean of z² where tails are as heavy as these "
        f"(skewness of z² {found.skewness_z2:.2f}, above {SKEWED_Z2:g})."
    )
    if found.coverage_is_reliable:
        return f"{words} The share of errors within 1.96u depends less on them."
    return f"{words} Not even the share of errors within 1.96u says much."


def meaning_of_answers(validation: Validation) -> dict[str, str]:
    """Return what each answer means, in a sentence."""
    factor = f"{validation.tolerance:g}"
    error_rate = percent(1 - validation.confidence)
    return {
        "yes": (
            "no fault was found, and a large one would have been seen. Large are "
            "uncertainties that are off by the tolerance, a factor of "
            f"{factor}: on average, or too small in a tenth of the rows, ordered by u "
            "or a feature. For combinations and for intervals, yes only means that no "
            "fault was found."
        ),
        "no": (
            f"there is a fault. Of sets without any, at most {error_rate} get a no to "
            "any of these questions."
        ),
        "cannot tell": (
            "no fault was found, but a large one could hide: there are too few rows, "
            "or the tails of the errors are too heavy."
        ),
    }
