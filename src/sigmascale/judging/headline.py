"""The headline, what is odd about rows, and how many rows would show the tolerance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._support.notices import row_number
from .._support.text import shorten
from .answers import TAILS, Answered, Judged
from .parts import ASKED, IN_WORDS
from .verdicts import Region, Verdict
from .words import UNKNOWN, Words, at_most, off_by, percent, u_words

ZEROS = 0.05  # share of errors that are exactly 0, from which it is worth words
USELESS = 1.0  # per cent of CRPS: a u that is worth less than it is as good as constant
ROWS_NAMED = 3  # of outliers


@dataclass(frozen=True)
class Headline:
    """What is said of all rows.

    Attributes
    ----------
    words : str
        The headline.
    notes : tuple of str
        What is odd about the rows, a sentence each.
    """

    words: str
    notes: tuple[str, ...]


def headline_of(judged: Judged, words: Words, verdicts: dict[str, Verdict]) -> Headline:
    """Return the headline, which alone says what to do, and the notes."""
    repeats = judged.repeats
    if judged.search is None:
        notes = (_as_repeats(repeats),) if repeats else ()
        return Headline(f"{next(iter(verdicts.values())).sentence}.", notes)
    text, remedy = _headline(judged, words, verdicts)
    if repeats:
        text = f"Rows look like repeats: pass groups. If they were independent: {text}"
        remedy = ""
    text = f"{text}. {remedy}." if remedy else f"{text}."
    return Headline(text, tuple(_oddities(judged, repeats)))


def _headline(
    judged: Judged, words: Words, verdicts: dict[str, Verdict]
) -> tuple[str, str]:
    """Return the worst fault or what is suspected, where it is, and T; and a remedy."""
    worst, bias = worst_verdict(verdicts), verdicts.get("bias")
    if bias is not None and bias.answer == "no" and bias_is_cause(judged, worst):
        return f"{bias.sentence}{_and_T(judged)}", "Correct the bias"
    if worst is not None and worst.worst is not None:
        text = f"{_fault(judged, worst, worst.worst)}{_and_T(judged)}"
        return text, _remedy(judged, words)
    return _without_fault(judged, words)


def _remedy(judged: Judged, words: Words) -> str:
    """Return what mends a fault, in a few words."""
    average = judged.answers.get("average")
    is_off = average is not None and bool(average.fault or average.suspect)
    if is_off and judged.outliers is not None:
        return _look_at_largest(judged)
    part = column_of_intervals(judged)
    if part is not None and not is_size_blamed(judged):
        return f"Intervals can be made to hold in each part of {shorten(part, 30)}"
    columns = columns_at_fault(judged, words)
    if columns == ["time"]:
        return "Recalibrate by the latest rows, and watch those to come"
    if judged.rows.distributions is not None:
        return "More rows to fit would tell what is left" if columns else ""
    if columns:
        return f"Recalibrate by {' and '.join(shorten(x, 30) for x in columns[:2])}"
    return "One factor mends it" if is_off else "Recalibrate"


def column_of_intervals(judged: Judged) -> str | None:
    """Return the column in whose parts recalibrated intervals fail.

    None if they hold, or hold what they claim in parts already; of time and of
    combinations of columns, too, whose parts cannot be asked for.
    """
    distributions, coverage = judged.rows.distributions, judged.answers.get("coverage")
    if distributions is None or distributions.z.is_stretched or coverage is None:
        return None
    finding = coverage.fault or coverage.suspect
    if finding is None or finding.limits is None:
        return None
    name = finding.limits.variable.name
    return name if name in judged.rows.names else None


def is_size_blamed(judged: Judged) -> bool:
    """Return whether u itself is off somewhere, or is suspected to be."""
    return any(
        a.fault is not None or a.suspect is not None
        for name, a in judged.answers.items()
        if name not in ("bias", "coverage")
    )


def _look_at_largest(judged: Judged) -> str:
    rows = _largest_rows(judged)
    return f"Look at rows {' and '.join(rows[:2])}, or use intervals"


def columns_at_fault(judged: Judged, words: Words) -> list[str]:
    """Return the columns that tell which rows are off; those suspected if none are."""
    answers = judged.answers
    whole = ("bias", "average", "coverage", "joint")
    columns: dict[str, None] = {}
    for name, a in answers.items():
        if name not in whole and a.fault is not None and a.fault.contrast > 0:
            columns[name] = None
    if words.described is not None:
        columns |= dict.fromkeys(words.described[1])
    average = answers.get("average")
    is_off = average is not None and average.fault is not None
    for name in ("coverage", "bias"):
        fault = answers[name].fault if name in answers and not is_off else None
        if not columns and fault is not None and fault.limits is not None:
            columns[fault.limits.variable.name] = None
    if columns or any(a.fault is not None for a in answers.values()):
        return list(columns)
    suspects = [a for a in answers.values() if a.suspect is not None]
    suspects = [a for a in suspects if a.suspect is not None and a.suspect.limits]
    for a in sorted(suspects, key=_how_sure, reverse=True)[:1]:
        assert a.suspect is not None
        assert a.suspect.limits is not None
        columns[a.suspect.limits.variable.name] = None
    columns.pop("joint", None)
    return list(columns)


def _T(judged: Judged) -> str:
    """Return T in words, or nothing."""
    T = judged.certificate.T
    return f"{at_most(T)} times {IN_WORDS[ASKED]}" if T < UNKNOWN else ""


def _and_T(judged: Judged) -> str:
    """Return T after a fault."""
    T = judged.certificate.T
    if not T < UNKNOWN:
        return ""
    if judged.tolerance >= T:
        what = "u is"
        if judged.certificate.claim == "intervals":
            what = f"{100 * judged.certificate.level:g} % intervals are"
        return f"; {what} right to within {_T(judged)}"
    return f"; no fifth is off by more than {at_most(T)} times"


def _fault(judged: Judged, worst: Verdict, region: Region) -> str:
    """Return the worst fault."""
    if worst.name == "coverage" or region.where == "all rows":
        average = judged.answers.get("average")
        if worst.name != "coverage" and average is not None and average.answer == "no":
            return Words(judged).verdict(average).sentence
        return worst.sentence
    if worst.name == "joint" and region.column is None and " and " not in region.where:
        return worst.sentence
    return f"u is {off_by(region.estimate)} for {region.where}"


def _without_fault(judged: Judged, words: Words) -> tuple[str, str]:
    """Return T, and what stands against a yes; and what would show more."""
    answers = [x for x in judged.answers.values() if x.counts]
    unsure = [x for x in answers if x.answer == "cannot tell"]
    suspects = [x for x in unsure if x.suspect is not None]
    count = f"{judged.rows.n_rows:,} rows"
    right = "Right to within"
    if judged.certificate.claim == "intervals":
        right = f"{words.level} {words.intervals} are right to within"
    start = f"{right} {_T(judged)}"
    if suspects:
        most = max(suspects, key=_how_sure)
        start = start if _T(judged) else f"{count} are few"
        remedy = _remedy(judged, words)
        if most.name == "bias":
            remedy = "Correct the bias"
        subject = words.subject(most)
        return f"{start}, but {subject} {words.suspected(most)}", remedy
    if odd := _odd(judged):
        what, remedy = odd
        start = start if _T(judged) else "No fault found"
        return f"{start}, but {what} ({count})", remedy
    if _nothing_else(judged) and _T(judged):
        return _on_average(judged, count), "Judge again with features"
    if not unsure:
        return f"{start} ({count})", ""
    coverage, size = judged.answers.get("coverage"), judged.answers.get("average")
    heavy = size is not None and words.is_heavy(size)
    if coverage is not None and heavy and math.exp(coverage.worst[ASKED].far) < UNKNOWN:
        return _only_intervals(judged, words, coverage), _more_rows(judged, unsure)
    if heavy and judged.few_decide:
        text = f"The size of u cannot be told, as {_few_decide(judged)} ({count})"
        return text, "Judge intervals, which need no ⟨Z²⟩"
    if not _T(judged):
        return _few_rows(judged, count), _more_rows(judged, unsure)
    others = [x for x in unsure if x.name != "bias"]
    if not others:
        bias = u_words(math.ceil(100 * unsure[0].worst[ASKED].far) / 100)
        text = f"{start}, but a bias of up to {bias} cannot be excluded ({count})"
        return text, _more_rows(judged, unsure)
    noted = [x for x in others if x.note]
    if judged.tolerance >= judged.certificate.T and noted:
        return f"{start}, but {noted[0].note}", ""
    remedy = _more_rows(judged, unsure)
    if judged.outliers is not None:
        remedy = _look_at_largest(judged)
    return f"{start}{_limit(judged)} ({count})", remedy


def _odd(judged: Judged) -> tuple[str, str] | None:
    """Return what is odd about rows that no question is about, and what to do."""
    if judged.leaked.size:
        what = f"the model has learned from some {judged.leaked.size:,} rows, it seems"
        return what, "Leave them out"
    if judged.zeros >= ZEROS:
        what = f"{percent(judged.zeros)} of the errors are exactly 0"
        return what, "Judge the others apart, or use intervals"
    gain = judged.gain_of_u
    if gain is not None and gain.low <= 0 and gain.high < USELESS:
        what = "u does not show which errors are large"
        return what, "A constant would serve as well"
    return None


def _on_average(judged: Judged, count: str) -> str:
    """Return what is known where there is nothing but the average."""
    T = at_most(judged.certificate.T)
    return f"Right to within {T} times on average; nothing else was looked at ({count})"


def _more_rows(judged: Judged, unsure: list[Answered]) -> str:
    """Return how many rows would show the tolerance, if somebody knows."""
    needed = [x.needed for x in unsure if x.needed is not None]
    if not needed:
        return ""
    tolerance = f"{judged.tolerance:g}"
    return f"About {max(needed):,} {judged.unit} would show {tolerance}"


def _how_sure(a: Answered) -> float:
    """Return how clearly something is off; one column comes before several."""
    assert a.suspect is not None
    first = {"joint": 0.25, "coverage": 0.5, "bias": 0.75}.get(a.name, 1.0)
    return first * a.suspect.contrast + 1e-6 * abs(a.suspect.off)


def _only_intervals(judged: Judged, words: Words, coverage: Answered) -> str:
    """Return what intervals are worth where the size of u cannot be told."""
    T = at_most(math.exp(coverage.worst[ASKED].far))
    why = f"as tails are {_like_student(judged)}"
    if judged.few_decide:
        why = f"as {_few_decide(judged)}"
    intervals = f"{words.level} {words.intervals} are right to within {T} times"
    return f"{intervals} {IN_WORDS[ASKED]}; the size of u cannot be told, {why}"


def _few_decide(judged: Judged) -> str:
    return f"1 % of the errors make up {percent(judged.few_decide)} of ⟨Z²⟩"


def _few_rows(judged: Judged, count: str) -> str:
    """Return what few rows tell."""
    wholes = [
        x for x in judged.answers.values() if x.asked.with_whole and x.name != "bias"
    ]
    far = max((math.exp(min(x.worst[1].far, 9)) for x in wholes), default=math.inf)
    few = f"{count} are too few to tell of {IN_WORDS[ASKED].removeprefix('in ')}"
    if judged.values.groups is not None:
        units = f"{judged.values.n_units:.0f} groups in effect"
        few = f"{units} are too few to tell of every fifth"
    if far < UNKNOWN:
        return f"Right to within {at_most(far)} times on average; {few}"
    return f"No fault found, but {few}"


def _limit(judged: Judged) -> str:
    """Return whether u is the limit, or tails and rows are."""
    perfect = judged.certificate.perfect
    if perfect <= judged.tolerance:
        return f"; a perfect u would reach {at_most(perfect)}"
    if judged.df < TAILS:
        return f", with tails {_like_student(judged)}"
    return ""


def _like_student(judged: Judged) -> str:
    return f"as heavy as those of Student's t({judged.df:.2g})"


def _nothing_else(judged: Judged) -> bool:
    """Return whether nothing but the average was looked at."""
    return all(v.n_bins == 1 for v in judged.variables.values())


def worst_verdict(verdicts: dict[str, Verdict]) -> Verdict | None:
    """Return the verdict of the worst fault of size; one column before several."""
    wrong = {
        name: v
        for name, v in verdicts.items()
        if v.answer == "no" and v.worst is not None and name != "bias"
    }
    intervals, joint = wrong.pop("coverage", None), wrong.pop("joint", None)
    if not wrong:
        return joint or intervals

    def size(v: Verdict) -> float:
        assert v.worst is not None
        return abs(math.log(max(v.worst.estimate, 1e-300)))

    best = max(wrong.values(), key=size)
    if joint is None or joint.worst is None or best.worst is None:
        return best
    # several columns are at fault if their rows are surely worse than those of one
    factor, there = best.worst.estimate, joint.worst
    is_worse = there.low > max(factor, 1) or there.high < min(factor, 1)
    return joint if is_worse and there.column is None else best


def bias_is_cause(judged: Judged, worst: Verdict | None) -> bool:
    """Return whether it is a bias that makes u look too small."""
    bias = judged.answers["bias"].fault
    if worst is None or worst.worst is None or bias is None:
        return True
    if worst.worst.estimate < 1:
        return False
    words, z, w = Words(judged), judged.values.z, judged.values.w
    # without the bias of that region, is the fault gone?
    z2 = np.where(words.inside(bias), z - bias.off, z) ** 2
    fault = judged.answers[worst.name].fault
    there = np.ones(z.size, dtype=np.bool_)
    if fault is not None and worst.name != "joint":
        there = words.inside(fault)
    left = math.log(max(np.average(z2[there], weights=w[there]), 1e-300))
    return left < math.log(worst.worst.estimate)


# -- what is odd -----------------------------------------------------------------------


def _as_repeats(repeats: str) -> str:
    return (
        f"Rows look like repeats: {repeats}. They were judged as independent, so that "
        "a no comes too easily: pass groups, equal for rows that belong together."
    )


def _oddities(judged: Judged, repeats: str) -> list[str]:
    """Return what is odd about rows, a sentence each."""
    rows = judged.rows
    notes = [_as_repeats(repeats)] if repeats else []
    if judged.zeros >= ZEROS:
        notes.append(
            f"{percent(judged.zeros)} of the errors are exactly 0: one u cannot fit "
            "these and the others, and the average stands for neither."
        )
    if words := _leaked(judged):
        notes.append(words)
    if _nothing_else(judged):
        what = "u is constant, and there are no features"
        if len(rows.names) > 1:
            what = "u and all features are constant"
        notes.append(
            f"Nothing but the average was looked at: {what}. For some rows u may be "
            "far too small or too large: judge again with features."
        )
    if judged.few_decide:
        notes.append(f"{_tails(judged)}{_outliers(judged)}")
    elif judged.df < TAILS and all(a.fault is None for a in judged.answers.values()):
        notes.append(_tails(judged).strip())
    return [*notes, *filter(None, [_worth_of_u(judged)])]


def _leaked(judged: Judged) -> str:
    """Return which rows look as if the model had learned from them, if any do."""
    rows, which = judged.rows, judged.leaked
    if not which.size:
        return ""
    places = which if rows.places is None else np.sort(rows.places[which])
    named = ", ".join(f"{row_number(x)}" for x in places[:ROWS_NAMED])
    more = f" and {which.size - ROWS_NAMED:,} more" if which.size > ROWS_NAMED else ""
    rest = np.delete(rows.squared_error, which)
    times = math.sqrt(np.median(rest) / np.median(rows.squared_error[which]))
    return (
        f"About {which.size:,} of {rows.n_rows:,} rows have errors some {times:.0e} "
        f"times smaller than the others: rows {named}{more}. The model has learned "
        "from them, it seems: leave them out, u and T mean nothing for them."
    )


def _tails(judged: Judged) -> str:
    """Return heavy tails by their name."""
    if judged.df >= TAILS:
        return ""
    return (
        f"Errors have heavy tails, like Student's t with about {judged.df:.2g} degrees "
        "of freedom. "
    )


def _largest_rows(judged: Judged) -> list[str]:
    """Return the numbers of the rows of the largest errors."""
    rows = judged.rows
    largest = np.argsort(-rows.abs_z)[:ROWS_NAMED]
    places = largest if rows.places is None else rows.places[largest]
    return [f"{row_number(x)}" for x in places]


def _outliers(judged: Judged) -> str:
    """Return the rows of the largest errors."""
    sizes = np.sort(judged.rows.abs_z)[::-1][:ROWS_NAMED]
    numbers = ", ".join(_largest_rows(judged))
    of_u = ", ".join(f"{x:.2g}" for x in sizes)
    return f"{_few_decide(judged)}; the largest are in rows {numbers} ({of_u} u)."


def _worth_of_u(judged: Judged) -> str:
    """Return that u tells nothing of the sizes of errors, if so."""
    gain = judged.gain_of_u
    if gain is None or gain.low > 0:
        return ""
    half = (gain.high - gain.low) / 2
    if gain.high < 0:
        return (
            "u says nothing of which errors are large: with a constant one, CRPS is "
            f"{-gain.value:.2g} ± {half:.1g} % lower."
        )
    change = f"{gain.value:+.1f}".replace("-", "−")
    return (
        "u does not show which errors are large: a constant would serve as well (CRPS "
        f"{change} ± {half:.1f} %)."
    )


# -- how many rows ---------------------------------------------------------------------


def closing_of(judged: Judged) -> str:
    """Return T, what a perfect u would reach, how many rows would show more."""
    certificate, count = judged.certificate, judged.rows.n_rows
    if judged.search is None:
        return ""
    if judged.values.groups is not None:
        count = int(judged.values.groups.max()) + 1
    sentences = [f"You have {count:,} {judged.unit}."]
    if certificate.T < UNKNOWN and not _nothing_else(judged):
        sure = f"{100 * certificate.confidence:g} % sure"
        words = f"T = {at_most(certificate.T)} in fifths, {sure}, of {count:,} "
        words += judged.unit
        if certificate.perfect < UNKNOWN:
            words += f"; a perfect u would reach {at_most(certificate.perfect)}"
        sentences = [f"{words}."]
    unsure = [x for x in judged.answers.values() if x.answer == "cannot tell"]
    if more := _more_rows(judged, [x for x in unsure if x.counts]):
        sentences.append(f"{more}.")
    gain = judged.gain_of_u
    if gain is not None and gain.low > 0:
        half = (gain.high - gain.low) / 2
        sentences.append(
            "u tells which errors are large: CRPS is "
            f"{gain.value:.2g} ± {half:.1g} % lower than with a constant u."
        )
    return " ".join(sentences)
