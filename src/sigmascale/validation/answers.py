"""Answers: yes by a certificate, no by the search, and "cannot tell" between them.

*Yes*: T of fifths lies within the tolerance, and no run, alone, lies beyond it by its
own limit. *No*: a simultaneous limit of some run or label lies beyond the tolerance
itself. *Cannot tell*: else; then T, and what is suspected, are said all the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from .._support.checks import Floats, Ints
from ..predictions.diagnostics import leaked_rows
from ..predictions.predictions import Predictions
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
from .parts import ASKED, FINENESS, Partition
from .questions import FEWEST, Bias, Coverage, Question, SizeOfU, Values
from .search import Finding, Inquiry, Search, search, shuffled_rows
from .variables import Variable
from .worth import gain_of_u

Answer = Literal["yes", "no", "cannot tell"]
ROWS_OF_TREES = 150  # that a yes to "joint" takes, a unit of likelihood
UNJUDGED = 0.01  # share of the rows whose labels may go unjudged
HOPELESS = 1e4  # times as many rows: nobody knows how many
# share of the largest errors, and of z² that they hold, if they decide on the average
OUTLIERS = 0.02
DECIDE = 0.4
# share of the largest errors, and of z² that they hold, if this is worth words
FEW_DECIDE = 0.01
THEIR_PART = 0.25
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
        z2 = self.values.z2
        w = self.values.w
        if z2.size < 1 / FEW_DECIDE:
            return 0.0
        is_largest = z2 > np.quantile(z2, 1 - FEW_DECIDE)
        share = float(w[is_largest] @ z2[is_largest] / (w @ z2))
        return share if share > THEIR_PART else 0.0

    @cached_property
    def outliers(self) -> float | None:
        """The share of the largest errors that alone make u too small, if so."""
        z2 = self.values.z2
        w = self.values.w
        is_rest = z2 <= np.quantile(z2, 1 - OUTLIERS)
        if is_rest.all() or w[~is_rest] @ z2[~is_rest] < DECIDE * (w @ z2):
            return None
        # u is right for the rest, and few errors are far beyond it
        mean = float(np.average(z2[is_rest], weights=w[is_rest]))
        share = float(w[z2 > 12 * mean].sum() / w.sum())
        return share if mean < self.tolerance and 0 < share <= OUTLIERS else None


# -- what is asked ---------------------------------------------------------------------


def variables_of(values: Values) -> dict[str, Variable]:
    """Return u, the features and time, in bins."""
    rows = values.rows
    variables = {v.name: v for v in Variable.all_of(rows, values.w)}
    if rows.time is not None and _has_times(rows):
        is_date = rows.time.dtype.kind == "M"
        when = rows.time
        if is_date:
            when = when.astype("datetime64[us]").astype(np.int64)
        time = Variable.of_numbers(TIME, when.astype(np.float64), values.w)
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
    """Return the questions that a claim is about; that of combinations comes last.

    Where rows are too few for variables there are none, and questions have names alone.
    """
    size = SizeOfU()
    of_all = tuple(variables.values())
    asked = []
    if not rows.is_vector:
        asked.append(Asked("bias", Bias(), of_all, with_whole=True))
    if claim != "intervals":
        asked.append(Asked("average", size, (), with_whole=True))
        for name in (*rows.names, TIME) if _has_times(rows) else rows.names:
            of_one = (variables[name],) if name in variables else ()
            asked.append(Asked(name, size, of_one, with_whole=False))
        # what one column says alone needs no other question
        n_varying = sum(column.min() < column.max() for column in rows.columns)
        if n_varying > 1:
            asked.append(Asked("joint", size, (), with_whole=False))
    if claim != "u":
        asked.append(Asked("coverage", Coverage(), of_all, with_whole=True))
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
        nothing = _nothing(values, asked, tolerance, confidence, claim)
        return replace(nothing, repeats=repeats)

    # what u and the features say together is one more variable
    expected = None
    if any(each.name == "joint" for each in asked):
        expected = learn_jointly(rows, rng)
    if expected is not None:
        joint = Variable.of_numbers("joint", *expected)
        asked = [_of_joint(each, joint) for each in asked]

    # limits of all regions, and of all parts
    error_rate = 2 * (1 - confidence)
    searched = search(values, *_inquiries(asked), error_rate, rng)
    certified = Certified(values, asked, confidence)

    answers = {}
    at_least: dict[tuple[str, int], float] = {}
    for each in asked:
        answers[each.name] = _answer(each, searched, certified, tolerance)
        at_least |= _at_least(each, searched)

    counted = [name for name, answered in answers.items() if answered.counts]
    permuted = shuffled_rows(values, values.w, rng)
    certificate = certificate_of(
        certified,
        at_least,
        perfect_reach(certified, permuted, counted, rng),
        counted,
        tolerance=tolerance,
        claim=claim,
    )
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


def _of_joint(asked: Asked, joint: Variable) -> Asked:
    """Return a question; that of combinations is one of the joint variable."""
    return replace(asked, variables=(joint,)) if asked.name == "joint" else asked


def _inquiries(asked: list[Asked]) -> tuple[list[Inquiry], list[Question]]:
    """Return what is searched: each question of each variable; and the questions."""
    inquiries = []
    questions: dict[type[Question], Question] = {}
    for each in asked:
        questions[type(each.question)] = each.question
        for v in each.variables:
            inquiries.append(Inquiry(each.name, each.question, v))
    return inquiries, list(questions.values())


def _nothing(
    values: Values,
    asked: list[Asked],
    tolerance: float,
    confidence: float,
    claim: Claim,
) -> Judged:
    """Return what is known where rows are too few, or all errors 0."""
    unknown = Worst(math.inf, -math.inf, math.inf, 0.0)
    answers = {}
    for each in asked:
        answers[each.name] = Answered(
            each,
            "cannot tell",
            each.question.bound(tolerance),
            dict.fromkeys(FINENESS, unknown),
            shown=1,
            proved=0,
        )
    return Judged(
        values,
        tolerance,
        variables={},
        expected=None,
        search=None,
        certified=None,
        certificate=Certificate(
            (), math.inf, math.inf, tolerance, confidence, values.level, claim
        ),
        answers=answers,
    )


def _at_least(asked: Asked, searched: Search) -> dict[tuple[str, int], float]:
    """Return how far some rows of each share are off at least, by fineness."""
    whole = searched.whole(asked.question)
    floor = max(0.0, whole.low, -whole.high)
    at_least = {(asked.name, 1): floor}
    for fineness in FINENESS[1:]:
        least = searched.at_least(asked.name, 1 / fineness, floor)
        at_least[asked.name, fineness] = max(floor, least)
    return at_least


# -- the rules -------------------------------------------------------------------------


def _answer(
    asked: Asked, searched: Search, certified: Certified, tolerance: float
) -> Answered:
    """Answer one question: no by the search, yes by the certificate, or neither."""
    bound = asked.question.bound(tolerance)
    worst = {k: certified.worst(asked, k) for k in FINENESS}

    # no: a fault; yes: T within the bound, no suspect, and nothing left unjudged
    fault = _fault(asked, searched, bound)
    suspect = None
    if fault is None:
        suspect = _suspect(asked, searched, certified, bound)
    note = _hindered(asked, certified, tolerance)
    answer: Answer = "cannot tell"
    if fault is not None:
        answer = "no"
    elif worst[ASKED].far <= bound and not note and suspect is None:
        answer = "yes"

    needed = None
    if answer == "cannot tell" and suspect is None:
        needed = _needed(asked, worst, certified, bound)
    was_not_looked_at = asked.name == "joint" and "combinations" in note
    return Answered(
        asked,
        answer,
        bound,
        worst,
        shown=certified.shown(asked),
        proved=certified.proved(asked, bound),
        fault=fault,
        suspect=suspect,
        note=note,
        counts=fault is not None or not was_not_looked_at,
        needed=needed,
    )


def _fault(asked: Asked, searched: Search, bound: float) -> Finding | None:
    """Return what is surely beyond the bound: a region, or all rows alike."""
    whole = searched.whole(asked.question)
    fault = searched.fault(asked.name, bound)
    # all rows stand for a region that does not differ from the rest of them
    may_be_whole = asked.with_whole if fault is None else fault.contrast <= 0
    return whole if may_be_whole and whole.beyond(bound) else fault


def _suspect(
    asked: Asked, searched: Search, certified: Certified, bound: float
) -> Finding | None:
    """Return what is off, and may be beyond the bound.

    By one limit of its own it is beyond: that of a region which did not have to be
    found among many, or that of all rows.
    """
    suspect = searched.suspect(asked.name, bound)
    if suspect is not None or not asked.with_whole:
        return suspect
    # all rows, if their own one-sided limits are beyond it
    limits = certified.whole(asked)
    whole = searched.whole(asked.question)
    is_beyond = limits.low > bound or limits.high < -bound
    return whole if is_beyond and whole.beyond(0.0) else None


def _hindered(asked: Asked, certified: Certified, tolerance: float) -> str:
    """Return why no yes is possible, or nothing."""
    if asked.name == "joint":
        return _too_few_for_combinations(asked, certified, tolerance)
    if asked.with_whole:
        return ""
    (v,) = asked.variables
    if v.labels is None:
        return ""
    return _labels_left(v, certified.parts.get((v.name, ASKED)))


def _too_few_for_combinations(
    asked: Asked, certified: Certified, tolerance: float
) -> str:
    """Return that rows are too few for trees to find combinations, if they are."""
    enough = rows_of_trees(tolerance)
    if asked.variables and enough <= certified.values.n_units:
        return ""
    needed = math.ceil(enough / 100) * 100
    unit = "rows" if certified.values.groups is None else "groups"
    return f"combinations were not looked at: that takes {needed:,} {unit}"


def _labels_left(v: Variable, parts: Partition | None) -> str:
    """Return which labels of a variable its parts do not judge, if they are many."""
    if parts is None:
        if not v.n_rare or v.rare_share <= UNJUDGED:
            return ""
        return f"{v.n_rare:,} labels have fewer than {FEWEST} rows: too fine to judge"
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
    """Return how many rows trees take to find combinations that are so far off.

    Where u is t times too small in one half and as much too large in the other, to tell
    them apart gains ln((t² + t⁻²) / 2) a row, as twice a log-likelihood.
    """
    gain = math.log((tolerance**2 + tolerance**-2) / 2)
    return ROWS_OF_TREES / gain


def _needed(
    asked: Asked, worst: dict[int, Worst], certified: Certified, bound: float
) -> int | None:
    """Return about how many rows, or groups, would show the tolerance.

    ln T falls as one over the root of the rows: (ln T / bound)² times as many bring it
    to the bound. None where nothing is known, where rows suffice, or nobody knows.
    """
    far = worst[ASKED].far
    if not math.isfinite(far):
        return None
    n_units = certified.values.n_units
    times_as_many = max(1.0, far / bound) ** 2
    least = rows_of_trees(math.exp(bound)) if asked.name == "joint" else 0.0
    needed = max(least, times_as_many * n_units) * (1 + 1e-9)
    if not n_units * (1 + 1e-6) < needed <= HOPELESS * n_units:
        return None
    # to two digits, rounded up
    digit = 10 ** max(0, math.floor(math.log10(needed)) - 1)
    return int(digit * math.ceil(needed / digit))
