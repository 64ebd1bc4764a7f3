"""Numbers, questions, answers and tables as text, for the report and the app alike."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._support.drawing import printable
from .._support.render import shorten_middle
from ..comparison import Comparison
from ..judging.intervals import Estimate
from ..judging.tails import (
    NORMAL_BEYOND,
    SKEWED_E2,
    SKEWED_U2,
    SKEWED_Z2,
    TailStatistics,
)
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
from .results import Results, Stage

NO_BREAK = "\u00a0"  # a space at which no line breaks
_SPACES = f" \n\t{NO_BREAK}"
_RIGHT_TO_LEFT = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+"
_RUN = re.compile(rf"{_RIGHT_TO_LEFT}(?: {_RIGHT_TO_LEFT})*")


def clean(text: str) -> str:
    """Return text that every encoding can carry and that keeps its direction to itself.

    What cannot be printed is replaced, and words written from right to left are
    isolated: they must not turn around the words beside them.
    """
    shown = "".join(c if c in _SPACES else printable(c) for c in text)
    return _RUN.sub("\u2068\\g<0>\u2069", shown)


def number(value: float) -> str:
    """Return a number that has no unit, such as a score.

    >>> number(0.12345), number(2e-16), number(12345.6), number(float("inf"))
    ('0.123', '0.000', '1.23e+04', '∞')
    """
    if not math.isfinite(value):
        return f"{value}".replace("inf", "∞")
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.2e}"


def with_spread(value: float, spread: float) -> str:
    """Return such a number and its standard deviation.

    >>> with_spread(0.161, 0.012)
    '0.161 ± 0.012'
    """
    return f"{number(value)} ± {number(spread)}"


def scaled(value: float, spread: float | None = None) -> str:
    """Return a number in some unit, which may be large or small, and its spread.

    >>> scaled(1.423e-4), scaled(1.423e-4, 2.1e-5), scaled(0.5, 0.1)
    ('1.42e-04', '(1.42 ± 0.21)e-04', '0.500 ± 0.100')
    """
    if value == 0 or 0.01 <= abs(value) < 1000 or not math.isfinite(value):
        return number(value) if spread is None else with_spread(value, spread)
    if spread is None:
        return f"{value:.2e}"
    exponent = math.floor(math.log10(abs(value)))
    unit = 10.0**exponent
    return f"({value / unit:.2f} ± {spread / unit:.2f})e{exponent:+03d}"


def percent(share: float, digits: int = 0) -> str:
    """Return a share in per cent.

    >>> percent(0.1234).replace(NO_BREAK, " "), percent(0.0111, 1).split(NO_BREAK)
    ('12 %', ['1.1', '%'])
    """
    return f"{100 * share:.{digits}f}{NO_BREAK}%"


def short(name: str, longest: int = 60) -> str:
    """Return a name that fits a table or a sentence."""
    return shorten_middle(name, longest)


def variable(name: str) -> str:
    """Return what a variable is called in a sentence."""
    return "uncertainty u" if name == "u" else short(name)


# -- questions and answers -------------------------------------------------------------

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


def headline(results: Results) -> str:
    """Return how many questions have which answer, before and after."""
    last = _counted(results.final.validation)
    if not results.recalibrated:
        return f"{last[0].upper()}{last[1:]}."
    first = _counted(results.stages[0].validation)
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
    parts = []
    if verdict.interval is not None and (
        verdict.name == AVERAGE or (verdict.name == BIAS and verdict.answer != "no")
    ):
        share = BIAS_SHARE if verdict.name == BIAS else AVERAGE_SHARE
        level = 100 * (1 - share * (1 - confidence))
        parts.append(f"interval at {level:.4g}{NO_BREAK}%")
    if verdict.region is not None:
        low, high = verdict.region.interval
        parts.append(
            f"the factor for these {verdict.region.n:,} rows is between {low:.2g} and "
            f"{high:.2g}, relative to the average (this holds for all regions that "
            "were looked at)"
        )
    elif verdict.at_most is not None:
        where = "" if verdict.name == AVERAGE else ", in any tenth of the rows"
        factor = f"a factor of {verdict.at_most:.3g}"
        parts.append(f"u may be off by {factor} at most{where}")
    if verdict.p_adjusted is not None:
        parts.append(f"corrected p = {verdict.p_adjusted:.3f}")
    if verdict.score is not None:
        parts.append(score_words(verdict, verdict.score))
    return "; ".join(parts)


def score_words(verdict: Verdict, score: float) -> str:
    """Return a score, and that of perfectly calibrated sets with its spread."""
    attainable = "unknown"
    if verdict.target is not None and verdict.target_sd is not None:
        attainable = with_spread(verdict.target, verdict.target_sd)
    return f"S = {number(score)}, attainable {attainable}"


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
            "uncertainties are right within the tolerance, a factor of "
            f"{factor}: on average, and in every tenth of the rows, ordered by u, a "
            "feature, or what can be learned from all of them."
        ),
        "no": (
            f"there is a fault. Of sets whose z-scores have one law everywhere, as "
            f"they should, at most {error_rate} get a no to any of these questions."
        ),
        "cannot tell": (
            "no fault was found, but one larger than the tolerance could hide: there "
            "are too few rows, or the tails of the errors are too heavy."
        ),
    }


# -- tables ----------------------------------------------------------------------------

MANY_FEATURES = 4  # more columns than this do not fit on paper
LONGEST_HEAD = 20  # of a column


@dataclass(frozen=True)
class Cell:
    """A number or prose in a table; the chosen one of several has a tick."""

    text: str
    chosen: bool = False
    prose: bool = False


TableRow = tuple[str, str, list[Cell]]  # its name, a note below, and the cells


@dataclass(frozen=True)
class TableView:
    """A table as text; the first cell of a row names it, with a note below."""

    header: list[str]
    rows: list[TableRow]


def tabulate_scores(
    results: Results, prefixes: tuple[str, ...], *, wanted: bool
) -> TableView:
    """Return scores beside what is attainable, with or without those of a kind."""
    final, stages = results.final.validation, results.stages
    header = ["score"]
    for stage in stages:
        header += [stage.name, "attainable"]

    def row(
        name: str, note: str, cells: Callable[[Validation, str], list[Cell]], key: str
    ) -> TableRow:
        return name, note, [c for stage in stages for c in cells(stage.validation, key)]

    rows = [
        row(short(name), meaning_of(name), score_cells, name)
        for name in final.scores.to_dict()
        if name.startswith(prefixes) == wanted
    ]
    if not wanted:
        rows += [
            row(f"valid bins of {short(name)}", "", valid_cells, name)
            for name in final.local
        ]
    return TableView(header, rows)


def tabulate_distributions(results: Results) -> TableView | None:
    """Return the scores of distributions, and their law, of rows in memory."""
    found = [stage.validation.distribution for stage in results.stages]
    known = [each for each in found if each is not None]
    if not known:
        return None
    rows: list[TableRow] = [
        ("CRPS", "", [Cell(f"{each.crps:.4g}") for each in known]),
        *(
            (
                f"held by intervals of {100 * level:g} %",
                "",
                [Cell(percent(each.coverage[level])) for each in known],
            )
            for level in known[0].coverage
        ),
        ("mean width of 90 %", "", [Cell(f"{each.width:.4g}") for each in known]),
        ("law", "", [Cell(each.law) for each in known]),
    ]
    return TableView(["score", *(stage.name for stage in results.stages)], rows)


def score_cells(validation: Validation, name: str) -> list[Cell]:
    """Return a score, and what is attainable."""
    mean, sd = validation.reference.mean[name], validation.reference.sd[name]
    if name.startswith("UCE_"):  # in the unit of the squared error
        return [Cell(scaled(validation.scores[name])), Cell(scaled(mean, sd))]
    return [Cell(number(validation.scores[name])), Cell(with_spread(mean, sd))]


def valid_cells(validation: Validation, name: str) -> list[Cell]:
    """Return the share of valid bins of a variable, and what is attainable."""
    local = validation.local[name]
    attainable = validation.verdicts[name].attainable
    low, high = local.fraction_interval
    share = f"{percent(local.fraction_valid)} [{100 * low:.0f}, {100 * high:.0f}]"
    return [Cell(share), Cell("" if attainable is None else percent(attainable))]


def meaning_of(name: str) -> str:
    """Return what a score means, in a few words."""
    fixed = {
        "NLL": "negative log-likelihood of normal errors; lower is better",
        "ZMS": "⟨Z²⟩ of all rows; 1 is right",
        "S_cal": "|ln ⟨Z²⟩|, average calibration",
        "S_u": "consistency",
        "S_con": "S_cal + S_u",
        "S_ada": "S_cal + those of the features",
        "S_tot": "S_cal + S_u + those of the features",
    }
    if name in fixed:
        return fixed[name]
    return "adaptivity" if name.startswith("S_") else ""


def tabulate_tails(results: Results) -> TableView | None:
    """Return the tails of each stage; None where there are too few rows for them.

    The means of z and z² are not among them: verdicts have these, with intervals that
    know of heavy tails.
    """
    found = [stage.tails for stage in results.stages if stage.tails is not None]
    if not found:
        return None
    lines: list[tuple[str, str, Callable[[TailStatistics], str], str]] = [
        (
            "errors beyond 3u",
            "share of the rows",
            lambda each: percent(each.beyond, 2),
            f"{percent(NORMAL_BEYOND, 2)} if normal",
        ),
        (
            "errors within 1.96u",
            "share of the rows, with its interval",
            lambda each: (
                f"{percent(each.coverage.picp, 1)} [{100 * each.coverage.low:.1f}, "
                f"{100 * each.coverage.high:.1f}]"
            ),
            percent(0.95),
        ),
        (
            "degrees of freedom",
            "of the Student's t that suits z; the fewer, the heavier the tails",
            lambda each: (
                f"{each.shape.df:.3g}" if math.isfinite(each.shape.df) else "∞"
            ),
            "above 4",
        ),
        (
            "skewness of z²",
            "if larger, a few rows decide on ⟨Z²⟩",
            lambda each: number(each.skewness_z2),
            f"at most {SKEWED_Z2:g}",
        ),
        (
            "skewness of u²",
            "if larger, a few rows decide on RCE",
            lambda each: number(each.skewness_u2),
            f"at most {SKEWED_U2:g}",
        ),
        (
            "skewness of E²",
            "if larger, a few rows decide on RCE",
            lambda each: number(each.skewness_e2),
            f"at most {SKEWED_E2:g}",
        ),
        (
            "RCE",
            "relative difference of the root mean squares of u and E",
            lambda each: (
                f"{number(each.rce.value)} [{number(each.rce.low)}, "
                f"{number(each.rce.high)}]"
            ),
            "0",
        ),
        (
            "rank correlation of |E| and u",
            "in parentheses: with normal errors and right u",
            lambda each: _beside(
                each.rank_correlation, each.rank_correlation_reference
            ),
            "as in parentheses",
        ),
        (
            "area to the oracle",
            "of the confidence curve; in parentheses: as above",
            lambda each: _beside(each.area_to_oracle, each.area_to_oracle_reference),
            "as in parentheses",
        ),
    ]
    rows = [
        (name, note, [*(Cell(tell(each)) for each in found), Cell(right)])
        for name, note, tell, right in lines
    ]
    return TableView(["", *(s.name for s in results.stages), "right"], rows)


def _beside(value: float, reference: Estimate) -> str:
    return f"{value:.3f} ({reference.low:.3f} to {reference.high:.3f})"


def tabulate_candidates(found: dict[str, list[Any]], chosen: str | None) -> TableView:
    """Return candidates as a selection keeps them, with a tick at the chosen one."""
    columns = ("candidate", "verdict", "loss", "nll", "difference", "standard_error")
    rows = []
    for name, verdict, loss, nll, worse, error in zip(
        *(found[column] for column in columns), strict=True
    ):
        cells = [
            Cell("–" if loss is None else f"{loss:.4f}"),
            Cell("–" if loss is None else f"{worse:.4f} ± {error:.4f}"),
            Cell("–" if nll is None else f"{nll:.4f}"),
            Cell(verdict, name == chosen, prose=True),
        ]
        rows.append((str(name), "", cells))
    header = ["candidate", "loss", "difference", "NLL of unseen rows", "verdict"]
    return TableView(header, rows)


def tabulate_comparison(comparison: Comparison) -> TableView:
    """Return the scores of each method; of many features, the worst."""
    variables = list(comparison.rows[0].test.s)
    many = len(variables) > MANY_FEATURES + 1
    each = variables[:1] if many else variables
    header = [
        "method",
        "NLL",
        "S_cal",
        *(f"S_{short(name, LONGEST_HEAD)}" for name in each),
    ]
    header += ["S_ada"] * many + ["S_tot"]
    header += [f"valid {short(name, LONGEST_HEAD)}" for name in each] + [
        "least valid"
    ] * many
    header.append("CRPS, difference")
    rows = []
    for row in comparison.rows:
        card, local = row.test, row.test_local
        numbers = [card.nll, card.s_cal, *(card.s[name] for name in each)]
        numbers += [card.s_ada] * many + [card.s_tot]
        shares = [local[name].fraction_valid for name in each]
        shares += [min(r.fraction_valid for r in local.values())] * many
        cells = [Cell(number(v)) for v in numbers] + [Cell(percent(v)) for v in shares]
        first = row is comparison.rows[0]
        cells.append(Cell("–" if first else row.differences["crps"].signed))
        rows.append((row.name, "", cells))
    return TableView(header, rows)
