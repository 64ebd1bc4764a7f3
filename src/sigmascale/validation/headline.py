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
        # all verdicts say why nothing can be told
        why = next(iter(verdicts.values())).sentence
        return Headline(f"{why}.", (_as_repeats(repeats),) if repeats else ())
    text, remedy = _headline(judged, words, verdicts)
    if repeats:
        text = f"Rows look like repeats: pass groups. If they were independent: {text}"
        remedy = ""
    headline = f"{text}. {remedy}." if remedy else f"{text}."
    return Headline(headline, tuple(_oddities(judged, repeats)))


def _headline(
    judged: Judged, words: Words, verdicts: dict[str, Verdict]
) -> tuple[str, str]:
    """Return the worst fault or what is suspected, where it is, and T; and a remedy."""
    worst = worst_verdict(verdicts)
    bias = verdicts.get("bias")
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
        named = " and ".join(shorten(name, 30) for name in columns[:2])
        return f"Recalibrate by {named}"
    return "One factor mends it" if is_off else "Recalibrate"


def column_of_intervals(judged: Judged) -> str | None:
    """Return the column in whose parts recalibrated intervals fail.

    None if they hold, or hold what they claim in parts already; of time and of
    combinations of columns, too, whose parts cannot be asked for.
    """
    distributions = judged.rows.distributions
    coverage = judged.answers.get("coverage")
    if distributions is None or distributions.z.is_stretched or coverage is None:
        return None
    finding = coverage.fault or coverage.suspect
    if finding is None or finding.limits is None:
        return None
    name = finding.limits.variable.name
    return name if name in judged.rows.names else None


def is_size_blamed(judged: Judged) -> bool:
    """Return whether u itself is off somewhere, or is suspected to be."""
    for name, answered in judged.answers.items():
        is_blamed = answered.fault is not None or answered.suspect is not None
        if is_blamed and name not in ("bias", "coverage"):
            return True
    return False


def _look_at_largest(judged: Judged) -> str:
    """Return what to do where a few errors decide."""
    rows = _largest_rows(judged)
    return f"Look at rows {' and '.join(rows[:2])}, or use intervals"


def columns_at_fault(judged: Judged, words: Words) -> list[str]:
    """Return the columns that tell which rows are off; those suspected if none are."""
    answers = judged.answers
    if all(answered.fault is None for answered in answers.values()):
        return _columns_suspected(judged)

    # columns along which the size of u is at fault, alone or together
    columns = []
    for name, answered in answers.items():
        is_of_column = name not in ("bias", "average", "coverage", "joint")
        fault = answered.fault
        if is_of_column and fault is not None and fault.contrast > 0:
            columns.append(name)
    if words.described is not None:
        _, together = words.described
        columns += [name for name in together if name not in columns]

    # else the one along which intervals, or predictions, are
    average = answers.get("average")
    if columns or (average is not None and average.fault is not None):
        return columns
    for name in ("coverage", "bias"):
        fault = answers[name].fault if name in answers else None
        if fault is not None and fault.limits is not None:
            return [fault.limits.variable.name]
    return []


def _columns_suspected(judged: Judged) -> list[str]:
    """Return the column along which a fault is most surely suspected, if any is."""
    suspects = []
    for answered in judged.answers.values():
        if answered.suspect is not None and answered.suspect.limits is not None:
            suspects.append(answered)
    if not suspects:
        return []
    suspect = max(suspects, key=_how_sure).suspect
    assert suspect is not None
    assert suspect.limits is not None
    name = suspect.limits.variable.name
    return [] if name == "joint" else [name]


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
        subject = "u is"
        if judged.certificate.claim == "intervals":
            subject = f"{100 * judged.certificate.level:g} % intervals are"
        return f"; {subject} right to within {_T(judged)}"
    return f"; no fifth is off by more than {at_most(T)} times"


def _fault(judged: Judged, worst: Verdict, region: Region) -> str:
    """Return the worst fault of size in words: of a region, or of all rows alike."""
    if worst.name == "coverage" or region.where == "all rows":
        average = judged.answers.get("average")
        if worst.name != "coverage" and average is not None and average.answer == "no":
            return Words(judged).verdict(average).sentence
        return worst.sentence
    if worst.name == "joint" and region.column is None and " and " not in region.where:
        return worst.sentence
    return f"u is {off_by(region.estimate)} for {region.where}"


def _without_fault(judged: Judged, words: Words) -> tuple[str, str]:
    """Return T, and what stands against a yes; and what to do.

    What counts first is said: a suspect, what is odd, that there is nothing but the
    average to look at, heavy tails, few rows, a bias that may be, labels left out.
    """
    unsure = []
    for answered in judged.answers.values():
        if answered.counts and answered.answer == "cannot tell":
            unsure.append(answered)
    count = f"{judged.rows.n_rows:,} rows"
    T = _T(judged)
    right = "Right to within"
    if judged.certificate.claim == "intervals":
        right = f"{words.level} {words.intervals} are right to within"

    # a suspect, what is odd, or nothing to look at but the average
    suspects = [answered for answered in unsure if answered.suspect is not None]
    if suspects:
        start = f"{right} {T}" if T else f"{count} are few"
        most = max(suspects, key=_how_sure)
        remedy = _remedy(judged, words)
        if most.name == "bias":
            remedy = "Correct the bias"
        return f"{start}, but {words.subject(most)} {words.suspected(most)}", remedy
    if odd := _odd(judged):
        oddity, remedy = odd
        start = f"{right} {T}" if T else "No fault found"
        return f"{start}, but {oddity} ({count})", remedy
    if _nothing_else(judged) and T:
        return _on_average(judged, count), "Judge again with features"
    if not unsure:
        return f"{right} {T} ({count})", ""

    # heavy tails or few rows, of which nothing can be told
    more_rows = _more_rows(judged, unsure)
    coverage = judged.answers.get("coverage")
    average = judged.answers.get("average")
    if average is not None and words.is_heavy(average):
        if coverage is not None and math.exp(coverage.worst[ASKED].far) < UNKNOWN:
            return _only_intervals(judged, words, coverage), more_rows
        if judged.few_decide:
            text = f"The size of u cannot be told, as {_few_decide(judged)} ({count})"
            return text, "Judge intervals, which need no ⟨Z²⟩"
    if not T:
        return _few_rows(judged, count), more_rows

    # T, and what hinders a yes: a bias, labels, or that rows are few
    unsure_of_size = [answered for answered in unsure if answered.name != "bias"]
    if not unsure_of_size:
        bias = u_words(math.ceil(100 * unsure[0].worst[ASKED].far) / 100)
        return (
            f"{right} {T}, but a bias of up to {bias} cannot be excluded ({count})",
            more_rows,
        )
    notes = [answered.note for answered in unsure_of_size if answered.note]
    if judged.tolerance >= judged.certificate.T and notes:
        return f"{right} {T}, but {notes[0]}", ""
    remedy = more_rows if judged.outliers is None else _look_at_largest(judged)
    return f"{right} {T}{_limit(judged)} ({count})", remedy


def _odd(judged: Judged) -> tuple[str, str] | None:
    """Return what is odd about rows that no question is about, and what to do."""
    if judged.leaked.size:
        rows = f"some {judged.leaked.size:,} rows"
        return f"the model has learned from {rows}, it seems", "Leave them out"
    if judged.zeros >= ZEROS:
        zeros = f"{percent(judged.zeros)} of the errors are exactly 0"
        return zeros, "Judge the others apart, or use intervals"
    gain = judged.gain_of_u
    if gain is not None and gain.low <= 0 and gain.high < USELESS:
        useless = "u does not show which errors are large"
        return useless, "A constant would serve as well"
    return None


def _on_average(judged: Judged, count: str) -> str:
    """Return what is known where there is nothing but the average."""
    T = at_most(judged.certificate.T)
    return f"Right to within {T} times on average; nothing else was looked at ({count})"


def _more_rows(judged: Judged, unsure: list[Answered]) -> str:
    """Return how many rows would show the tolerance, if somebody knows."""
    needed = [answered.needed or 0 for answered in unsure]
    most = max(needed, default=0)
    if not most:
        return ""
    return f"About {most:,} {judged.unit} would show {judged.tolerance:g}"


def _how_sure(answered: Answered) -> float:
    """Return how clearly something is off; one column comes before several."""
    suspect = answered.suspect
    assert suspect is not None
    precedence = {"joint": 0.25, "coverage": 0.5, "bias": 0.75}
    priority = precedence.get(answered.name, 1.0)
    return priority * suspect.contrast + 1e-6 * abs(suspect.off)


def _only_intervals(judged: Judged, words: Words, coverage: Answered) -> str:
    """Return what intervals are worth where the size of u cannot be told."""
    T = at_most(math.exp(coverage.worst[ASKED].far))
    why = f"as tails are {_like_student(judged)}"
    if judged.few_decide:
        why = f"as {_few_decide(judged)}"
    intervals = f"{words.level} {words.intervals} are right to within {T} times"
    return f"{intervals} {IN_WORDS[ASKED]}; the size of u cannot be told, {why}"


def _few_decide(judged: Judged) -> str:
    """Return how much of ⟨Z²⟩ the largest errors hold."""
    return f"1 % of the errors make up {percent(judged.few_decide)} of ⟨Z²⟩"


def _few_rows(judged: Judged, count: str) -> str:
    """Return what rows tell that are too few for fifths: T on average, if anything."""
    # T on average, of the size and of intervals
    factors = []
    for answered in judged.answers.values():
        if answered.asked.with_whole and answered.name != "bias":
            factors.append(math.exp(min(answered.worst[1].far, 9)))
    T = max(factors, default=math.inf)

    units = count
    if judged.values.groups is not None:
        units = f"{judged.values.n_units:.0f} groups in effect"
    few = f"{units} are too few to tell of {IN_WORDS[ASKED].removeprefix('in ')}"
    if T < UNKNOWN:
        return f"Right to within {at_most(T)} times on average; {few}"
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
    """Return how heavy tails are."""
    return f"as heavy as those of Student's t({judged.df:.2g})"


def _nothing_else(judged: Judged) -> bool:
    """Return whether nothing but the average was looked at."""
    return all(v.n_bins == 1 for v in judged.variables.values())


def worst_verdict(verdicts: dict[str, Verdict]) -> Verdict | None:
    """Return the verdict of the worst fault of size; one column before several."""
    wrong: dict[str, Verdict] = {}
    for name, verdict in verdicts.items():
        if verdict.answer == "no" and verdict.worst is not None and name != "bias":
            wrong[name] = verdict
    intervals = wrong.pop("coverage", None)
    joint = wrong.pop("joint", None)
    if not wrong:
        return intervals if joint is None else joint

    def size(verdict: Verdict) -> float:
        assert verdict.worst is not None
        return abs(math.log(max(verdict.worst.estimate, 1e-300)))

    worst = max(wrong.values(), key=size)
    if joint is None or joint.worst is None or worst.worst is None:
        return worst
    # several columns are at fault if their rows are surely worse than those of one
    factor = worst.worst.estimate
    together = joint.worst
    is_worse = together.low > max(factor, 1) or together.high < min(factor, 1)
    return joint if is_worse and together.column is None else worst


def bias_is_cause(judged: Judged, worst: Verdict | None) -> bool:
    """Return whether it is a bias that makes u look too small."""
    bias = judged.answers["bias"].fault
    if worst is None or worst.worst is None or bias is None:
        return True
    if worst.worst.estimate < 1:
        return False
    # without the bias of its region, is the fault gone from the rows that have it?
    words = Words(judged)
    z = judged.values.z
    z2 = np.where(words.inside(bias), z - bias.off, z) ** 2
    fault = judged.answers[worst.name].fault
    is_at_fault = np.ones(z.size, dtype=np.bool_)
    if fault is not None and worst.name != "joint":
        is_at_fault = words.inside(fault)
    mean = np.average(z2[is_at_fault], weights=judged.values.w[is_at_fault])
    return math.log(max(mean, 1e-300)) < math.log(worst.worst.estimate)


# -- what is odd -----------------------------------------------------------------------


def _as_repeats(repeats: str) -> str:
    """Return the note on what looks like repeats."""
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
        why = "u is constant, and there are no features"
        if len(rows.names) > 1:
            why = "u and all features are constant"
        notes.append(
            f"Nothing but the average was looked at: {why}. For some rows u may be "
            "far too small or too large: judge again with features."
        )
    has_fault = any(answered.fault for answered in judged.answers.values())
    if judged.few_decide:
        notes.append(f"{_tails(judged)}{_outliers(judged)}")
    elif judged.df < TAILS and not has_fault:
        notes.append(_tails(judged).strip())
    if words := _worth_of_u(judged):
        notes.append(words)
    return notes


def _leaked(judged: Judged) -> str:
    """Return which rows look as if the model had learned from them, if any do."""
    rows = judged.rows
    leaked = judged.leaked
    if not leaked.size:
        return ""
    places = leaked if rows.places is None else np.sort(rows.places[leaked])
    named = ", ".join(f"{row_number(place)}" for place in places[:ROWS_NAMED])
    if leaked.size > ROWS_NAMED:
        named += f" and {leaked.size - ROWS_NAMED:,} more"
    others = np.delete(rows.squared_error, leaked)
    smaller = math.sqrt(np.median(others) / np.median(rows.squared_error[leaked]))
    return (
        f"About {leaked.size:,} of {rows.n_rows:,} rows have errors some {smaller:.0e} "
        f"times smaller than the others: rows {named}. The model has learned from "
        "them, it seems: leave them out, u and T mean nothing for them."
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
    return [f"{row_number(place)}" for place in places]


def _outliers(judged: Judged) -> str:
    """Return the rows of the largest errors."""
    largest = np.sort(judged.rows.abs_z)[::-1][:ROWS_NAMED]
    sizes = ", ".join(f"{size:.2g}" for size in largest)
    numbers = ", ".join(_largest_rows(judged))
    return f"{_few_decide(judged)}; the largest are in rows {numbers} ({sizes} u)."


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
    if judged.search is None:
        return ""
    n_units = judged.rows.n_rows
    if judged.values.groups is not None:
        n_units = int(judged.values.groups.max()) + 1
    units = f"{n_units:,} {judged.unit}"

    certificate = judged.certificate
    sentences = [f"You have {units}."]
    if certificate.T < UNKNOWN and not _nothing_else(judged):
        sure = f"{100 * certificate.confidence:g} % sure"
        words = f"T = {at_most(certificate.T)} in fifths, {sure}, of {units}"
        if certificate.perfect < UNKNOWN:
            words += f"; a perfect u would reach {at_most(certificate.perfect)}"
        sentences = [f"{words}."]

    unsure = []
    for answered in judged.answers.values():
        if answered.counts and answered.answer == "cannot tell":
            unsure.append(answered)
    if more := _more_rows(judged, unsure):
        sentences.append(f"{more}.")
    gain = judged.gain_of_u
    if gain is not None and gain.low > 0:
        half = (gain.high - gain.low) / 2
        sentences.append(
            "u tells which errors are large: CRPS is "
            f"{gain.value:.2g} ± {half:.1g} % lower than with a constant u."
        )
    return " ".join(sentences)
