"""Answers: yes by a certificate, no by the search, and "cannot tell" between them.

*Yes*: T of fifths lies within the tolerance, and no run, alone, lies beyond it by its
own limit. *No*: a simultaneous limit of some run or label lies beyond the tolerance
itself. *Cannot tell*: else; then T, and what is suspected, are said all the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from .._support.checks import Floats, Ints
from ..diagnostics import leaked_rows
from ..predictions import Predictions
from ..scores.intervals import Estimate
from ..scores.student import StudentProfile
from .certificate import (
    Asked,
    Certificate,
    Certified,
    Claim,
    Worst,
    certificate_of,
    perfect_reach,
)
from .joint import learn_jointly
from .parts import ASKED, FINENESS
from .questions import FEWEST, Bias, Coverage, SizeOfU, Values
from .search import Finding, Inquiry, Search, search, shuffled_rows
from .variables import Variable
from .worth import gain_of_u

Answer = Literal["yes", "no", "cannot tell"]
ROWS_OF_TREES = 150  # that a yes to "joint" takes, a unit of likelihood
UNJUDGED = 0.01  # share of the rows whose labels may go unjudged
HOPELESS = 1e4  # times as many rows: nobody knows how many
OUTLIERS, DECIDE = 0.02, 0.4  # share of the largest errors, and of z², if they decide
FEW_DECIDE, THEIR_PART = 0.01, 0.25  # share of the largest errors, and of z²
TAILS = 6.0  # degrees of freedom below which tails are heavy
TIME = "time"


@dataclass(frozen=True, eq=False)
class Answered:
    """The answer to one question, and what it rests on.

    Attributes
    ----------
    asked : Asked
        The question.
    answer : {"yes", "no", "cannot tell"}
        The answer.
    bound : float
        How far off parts may be.
    worst : dict of int to Worst
        The part whose limit is T, by fineness.
    shown, proved : int
        The fineness of a sentence, and the finest that is proved; 0 if none is.
    fault, suspect : Finding or None
        What is surely beyond the bound, and what is off, and may be beyond it.
    note : str
        Why there is no yes.
    counts : bool
        Whether a "cannot tell" counts; that of combinations does not where rows are
        too few to look at them.
    needed : int or None
        About how many rows, or groups, would tell.
    """

    asked: Asked
    answer: Answer
    bound: float
    worst: dict[int, Worst]
    shown: int
    proved: int
    fault: Finding | None = None
    suspect: Finding | None = None
    note: str = ""
    counts: bool = True
    needed: int | None = None

    @property
    def name(self) -> str:
        """The name of the question."""
        return self.asked.name

    @property
    def T(self) -> float:
        """T of fifths, in the unit that people read."""
        return self.asked.question.as_read(self.worst[ASKED].far)


@dataclass(frozen=True, eq=False)
class Judged:
    """All that is known of some rows.

    Attributes
    ----------
    values : Values
        The rows.
    tolerance : float
        The factor that u, or the width of intervals, may be off by.
    variables : dict of str to Variable
        u, the features, and time.
    expected : tuple of arrays, or None
        The logarithm of the z² that trees expect, and weights of rows.
    search : Search or None
        Limits of all regions; None where rows are too few to tell anything.
    certified : Certified or None
        Limits of all parts.
    certificate : Certificate
        T.
    answers : dict of str to Answered
        By question.
    repeats : str
        What looks like repeats though no groups were given, or nothing.
    """

    values: Values
    tolerance: float
    variables: dict[str, Variable]
    expected: tuple[Floats, Floats] | None
    search: Search | None
    certified: Certified | None
    certificate: Certificate
    answers: dict[str, Answered]
    repeats: str = ""

    @property
    def rows(self) -> Predictions:
        """The rows."""
        return self.values.rows

    @property
    def unit(self) -> str:
        """What is counted: rows, or groups."""
        return "rows" if self.values.groups is None else "groups"

    @cached_property
    def df(self) -> float:
        """The degrees of freedom of Student's t that describe the tails of z."""
        weights = self.rows.weights
        tails = StudentProfile.of(self.values.z2, self.values.n_units, weights)
        return math.inf if tails is None else tails.best

    @property
    def is_heavy_tailed(self) -> bool:
        """Whether rare large errors matter, by their part of ⟨Z²⟩ or by the tails."""
        return bool(self.few_decide) or self.df < TAILS

    @cached_property
    def gain_of_u(self) -> Estimate | None:
        """By how many per cent CRPS is lower with u than with a constant."""
        return gain_of_u(self.rows)

    @cached_property
    def zeros(self) -> float:
        """The share of errors that are exactly 0."""
        return float(np.average(self.values.z2 == 0, weights=self.values.w))

    @cached_property
    def leaked(self) -> Ints:
        """The rows that the model has learned from, it seems, in ascending order.

        None of recalibrated rows, whose u no longer knows which errors are tiny.
        """
        if self.rows.distributions is not None:
            return np.empty(0, dtype=np.intp)
        return np.sort(leaked_rows(self.rows))

    @cached_property
    def few_decide(self) -> float:
        """The share of ⟨Z²⟩ that the largest errors hold, 1 % of all; 0 if little."""
        z2, w = self.values.z2, self.values.w
        if z2.size < 1 / FEW_DECIDE:
            return 0.0
        largest = z2 > np.quantile(z2, 1 - FEW_DECIDE)
        share = float(w[largest] @ z2[largest] / (w @ z2))
        return share if share > THEIR_PART else 0.0

    @cached_property
    def outliers(self) -> float | None:
        """The share of the largest errors that alone make u too small, if so."""
        z2, w = self.values.z2, self.values.w
        rest = z2 <= np.quantile(z2, 1 - OUTLIERS)
        if rest.all() or w[~rest] @ z2[~rest] < DECIDE * (w @ z2):
            return None
        mean = float(np.average(z2[rest], weights=w[rest]))
        share = float(w[z2 > 12 * mean].sum() / w.sum())
        return share if mean < self.tolerance and 0 < share <= OUTLIERS else None


# -- what is asked ---------------------------------------------------------------------


def variables_of(values: Values) -> dict[str, Variable]:
    """Return u, the features and time, in bins."""
    rows, w = values.rows, values.w
    variables = {v.name: v for v in Variable.all_of(rows, w)}
    if rows.time is not None and _has_times(rows):
        is_date = rows.time.dtype.kind == "M"
        at = (
            rows.time.astype("datetime64[us]").astype(np.int64)
            if is_date
            else rows.time
        )
        time = Variable.of_numbers(TIME, at.astype(np.float64), w)
        variables[TIME] = replace(time, is_date=is_date)
    return variables


def _has_times(rows: Predictions) -> bool:
    """Return whether time is one more variable."""
    if rows.time is None or TIME in rows.names:
        return False
    return bool(rows.time.min() < rows.time.max())


def asked_of(
    rows: Predictions, variables: dict[str, Variable], claim: Claim
) -> list[Asked]:
    """Return the questions that a claim is about; that of combinations comes last."""
    every = tuple(variables.values())
    size, asked = SizeOfU(), []
    if not rows.is_vector:
        asked.append(Asked("bias", Bias(), every, True))
    if claim != "intervals":
        asked.append(Asked("average", size, (), True))
        asked += [Asked(name, size, (v,), False) for name, v in variables.items()]
        # what one column says alone needs no other question
        if sum(x.min() < x.max() for x in rows.columns) > 1:
            asked.append(Asked("joint", size, (), False))
    if claim != "u":
        asked.append(Asked("coverage", Coverage(), every, True))
    return asked


def judge(
    rows: Predictions,
    *,
    tolerance: float,
    confidence: float,
    level: float,
    claim: Claim,
    rng: np.random.Generator,
    repeats: str = "",
) -> Judged:
    """Answer all questions about rows in canonical order."""
    values = Values(rows, level)
    variables = variables_of(values) if values.enough else {}
    asked = asked_of(rows, variables, claim)
    if not values.enough:
        known = [*rows.names, TIME] if _has_times(rows) else rows.names
        names = asked_of(rows, dict.fromkeys(known), claim)  # type: ignore[arg-type]
        nothing = _nothing(values, names, tolerance, confidence, claim)
        return replace(nothing, repeats=repeats)
    # what u and the features say together is one more variable
    expected = None
    if any(x.name == "joint" for x in asked):
        expected = learn_jointly(rows, rng)
    if expected is not None:
        joint = (Variable.of_numbers("joint", *expected),)
        asked = [
            Asked(x.name, x.question, joint, False) if x.name == "joint" else x
            for x in asked
        ]
    families = [Inquiry(x.name, x.question, v) for x in asked for v in x.variables]
    questions = list({type(x.question): x.question for x in asked}.values())
    searched = search(values, families, questions, 2 * (1 - confidence), rng)
    certified = Certified(values, asked, confidence)
    judged = [_answer(x, searched, certified, tolerance) for x in asked]
    counted = [x.name for x in judged if x.counts]
    some = shuffled_rows(values, values.w, rng)
    certificate = certificate_of(
        certified,
        {key: x for each in asked for key, x in _at_least(each, searched)},
        perfect_reach(certified, some, counted, rng),
        counted,
        tolerance=tolerance,
        claim=claim,
    )
    answers = {x.name: x for x in judged}
    return Judged(
        values,
        tolerance,
        variables,
        expected,
        searched,
        certified,
        certificate,
        answers,
        repeats,
    )


def _nothing(
    values: Values,
    asked: list[Asked],
    tolerance: float,
    confidence: float,
    claim: Claim,
) -> Judged:
    """Return what is known where rows are too few, or all errors 0."""
    unknown = Worst(math.inf, -math.inf, math.inf, 0.0, None, -1)
    worst = dict.fromkeys(FINENESS, unknown)
    answers = {
        x.name: Answered(x, "cannot tell", x.question.bound(tolerance), worst, 1, 0)
        for x in asked
    }
    level = values.level
    none = Certificate((), math.inf, math.inf, tolerance, confidence, level, claim)
    return Judged(values, tolerance, {}, None, None, None, none, answers)


def _at_least(
    asked: Asked, searched: Search
) -> Iterator[tuple[tuple[str, int], float]]:
    """Yield how far some rows of each share are off at least, by fineness."""
    whole = searched.whole(asked.question)
    floor = max(0.0, whole.low, -whole.high)
    for fineness in FINENESS:
        least = floor
        if fineness > 1:
            least = max(floor, searched.at_least(asked.name, 1 / fineness, floor))
        yield (asked.name, fineness), least


# -- the rules -------------------------------------------------------------------------


def _answer(
    asked: Asked, searched: Search, certified: Certified, tolerance: float
) -> Answered:
    """Answer one question."""
    bound = asked.question.bound(tolerance)
    worst = {k: certified.worst(asked, k) for k in FINENESS}
    fault = _fault(asked, searched, bound)
    suspect = None if fault is not None else _suspect(asked, searched, certified, bound)
    note, counts, needed = _hindered(asked, certified, tolerance), True, None
    if asked.name == "joint" and "combinations" in note:
        counts = fault is not None
    answer: Answer = "cannot tell"
    if fault is not None:
        answer = "no"
    elif worst[ASKED].far <= bound and not note and suspect is None:
        answer = "yes"
    if answer == "cannot tell" and suspect is None:
        needed = _needed(asked, worst, certified, bound)
    proved = certified.proved(asked, bound)
    shown = certified.shown(asked)
    return Answered(
        asked,
        answer,
        bound,
        worst,
        shown,
        proved,
        fault,
        suspect,
        note,
        counts,
        needed,
    )


def _fault(asked: Asked, searched: Search, bound: float) -> Finding | None:
    """Return what is surely beyond the bound: a region, or all rows alike."""
    whole = searched.whole(asked.question)
    fault = searched.fault(asked.name, bound)
    alike = asked.with_whole if fault is None else fault.contrast <= 0
    return whole if alike and whole.beyond(bound) else fault


def _suspect(
    asked: Asked, searched: Search, certified: Certified, bound: float
) -> Finding | None:
    """Return what is off, and may be beyond the bound."""
    suspect = searched.suspect(asked.name, bound)
    if suspect is None and asked.with_whole:
        alone = certified.whole(asked)
        if alone.off - alone.down > bound or alone.off + alone.up < -bound:
            whole = searched.whole(asked.question)
            return whole if whole.beyond(0.0) else None
    return suspect


def _hindered(asked: Asked, certified: Certified, tolerance: float) -> str:
    """Return why no yes is possible, or nothing."""
    if asked.name == "joint":
        enough = rows_of_trees(tolerance)
        if not asked.variables or enough > certified.values.n_units:
            needed = math.ceil(enough / 100) * 100
            unit = "rows" if certified.values.groups is None else "groups"
            return f"combinations were not looked at: that takes {needed:,} {unit}"
        return ""
    if asked.with_whole or not isinstance(asked.question, SizeOfU):
        return ""
    (v,) = asked.variables
    if v.labels is None:
        return ""
    parts = certified.parts.get((v.name, ASKED))
    if parts is None:
        few = v.n_rare and v.rare_share > UNJUDGED
        words = f"{v.n_rare:,} labels have fewer than {FEWEST} rows: too fine to judge"
        return words if few else ""
    if parts.rest is not None:
        share = float(v.sizes[parts.of_bin == parts.rest].sum() / v.sizes.sum())
        if share > 1 / ASKED:
            return (
                f"{100 * share:.0f} % of the rows have labels too rare to judge alone"
            )
    if parts.unjudged >= UNJUDGED:
        rare = f"{100 * parts.unjudged:.2g} % of the rows"
        return f"rare labels ({rare}) were not judged"
    return ""


def rows_of_trees(tolerance: float) -> float:
    """Return how many rows trees take to find combinations that are so far off."""
    gain = math.log((tolerance**2 + tolerance**-2) / 2)
    return ROWS_OF_TREES / gain


def _needed(
    asked: Asked, worst: dict[int, Worst], certified: Certified, bound: float
) -> int | None:
    """Return about how many rows would show the tolerance: T falls as a root of them.

    None where nothing is known, or nobody knows.
    """
    far, units = worst[ASKED].far, certified.values.n_units
    least = rows_of_trees(math.exp(bound)) if asked.name == "joint" else 0.0
    if not math.isfinite(far):
        return None
    times_as_many = max(1.0, far / bound) ** 2
    needed = max(least, times_as_many * units) * (1 + 1e-9)
    if not units * (1 + 1e-6) < needed <= HOPELESS * units:
        return None
    digit = 10 ** max(0, math.floor(math.log10(needed)) - 1)
    return int(digit * math.ceil(needed / digit))
