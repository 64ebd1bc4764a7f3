"""From rows to checks: limits of all regions, and the result that follows from each.

A check *passes* if the one-sided limits of all its parts, and of all rows where it asks
them, lie within the accepted range: no correction is needed, as every part must (an
intersection-union test: R. L. Berger, Technometrics 24, 295 (1982)). The farthest of
them is T. It *fails* if the simultaneous limits of any region lie outside. Else it is
inconclusive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from .._support.checks import Bools, Floats, Ints
from ..predictions.predictions import Predictions
from .chance import critical_values
from .columns import FEWEST, N_PARTS, Column, Condition, columns_of
from .combinations import (
    COMBINATIONS,
    LEARNABLE,
    combined,
    described,
    has_combinations,
    rows_of_trees,
)
from .questions import QUESTIONS, Estimates, Question
from .questions.question import AllRows, Limits
from .regions import Regions
from .results import Check, CheckOutcome, Doubt, Note, Subgroup, outcome
from .values import Values

AS_CLEAR = 0.85  # of the distance: then a pair of columns is named, not trees
OF_ALL_ROWS = 0.2  # of the error rate of a FAIL, that limits of all rows take
# families of regions beside columns: what trees predict, pairs of columns, short runs
TREES = -1
PAIRS = -2
SHORT = -3


@dataclass(frozen=True, eq=False)
class AllLimits:
    """Limits of all regions by one question; the last region is all rows.

    Attributes
    ----------
    question : Question
        The question.
    estimates : Estimates
        How far regions are off.
    off : array of shape (n_regions + 1,)
        The same, and how far all rows are off.
    alone : array of shape (2, n_regions + 1)
        The lower and the upper one-sided limits of each.
    at_once : array of shape (2, n_regions + 1)
        Limits that hold for all at once, which reach as far as those at least.
    bound : array of shape (n_regions + 1,)
        The farther one-sided limits that count in T.
    differs : array of bool, shape (n_regions,)
        Which regions differ from all rows, by limits that hold for all at once.
    """

    question: Question
    estimates: Estimates
    off: Floats
    alone: Floats
    at_once: Floats
    bound: Floats
    differs: Bools

    @cached_property
    def far(self) -> Floats:
        """The farther one-sided limits."""
        return np.asarray(np.maximum(-self.alone[0], self.alone[1]))

    @cached_property
    def outward(self) -> Floats:
        """How far off rows are at least, by limits at once; below 0 if maybe not."""
        return np.asarray(np.maximum(self.at_once[0], -self.at_once[1]))


@dataclass(frozen=True, eq=False)
class Tested:
    """All that is known of some rows.

    Attributes
    ----------
    values : Values
        The rows.
    questions : sequence of Question
        What is asked.
    columns : list of Column
        u, the features and time; those of combinations are in `regions`.
    regions : Regions or None
        All regions; None where rows are too few to tell anything.
    limits : tuple of AllLimits
        The limits of all regions, by question; none without regions.
    """

    values: Values
    tolerance: float
    confidence: float
    doubt: Doubt
    questions: Sequence[Question]
    columns: list[Column]
    regions: Regions | None = None
    limits: tuple[AllLimits, ...] = ()

    @cached_property
    def checks(self) -> dict[str, Check]:
        """The checks, by name."""
        limits = self.limits or [None] * len(self.questions)
        made = {}
        for question, of_question in zip(self.questions, limits, strict=True):
            for check in _Checks(self, question, of_question).all():
                made[check.name] = check
        return made


def test_rows(
    rows: Predictions,
    *,
    tolerance: float,
    confidence: float,
    coverage: float,
    scope: str,
    doubt: Doubt,
    rng: np.random.Generator,
) -> Tested:
    """Return all checks of rows in canonical order."""
    values = Values(rows, coverage)
    questions = [q(values) for q in QUESTIONS if q.is_asked(rows, scope)]
    columns = columns_of(values)
    tested = Tested(values, tolerance, confidence, doubt, questions, columns)
    if values.mean_z2 == 0 or values.n_units < 2:
        return tested

    # combinations are columns, too
    every = list(columns)
    is_learnable = values.n_units >= LEARNABLE and has_combinations(columns)
    if is_learnable and any(q.is_by_column for q in questions):
        every += combined(columns, values, rng)
    regions = Regions(every, values)
    limits = _all_limits(regions, questions, len(columns), confidence, rng)
    return replace(tested, regions=regions, limits=limits)


def _all_limits(
    regions: Regions,
    questions: Sequence[Question],
    n_columns: int,
    confidence: float,
    rng: np.random.Generator,
) -> tuple[AllLimits, ...]:
    """Return the limits of all regions, by question: alone, and all at once.

    The error rate of those that hold at once is shared by families of regions: all rows
    by each question take a fifth, each column, what trees predict, all pairs of columns
    and all short runs, by each question, the rest.
    """
    family = regions.owner.copy()
    for i, column in enumerate(regions.columns[n_columns:], n_columns):
        family[regions.owner == i] = TREES if column.kind == "trees" else PAIRS
    family[regions.is_short] = SHORT
    families: dict[tuple[int, int], Bools] = {}
    for number, question in enumerate(questions):
        for k, is_of_family in _families(question, family).items():
            families[number, k] = is_of_family
    influences = {i: question.influence for i, question in enumerate(questions)}
    error_rate = 1 - confidence
    spent = error_rate * (1 - OF_ALL_ROWS)
    critical = critical_values(regions, influences, families, spent, rng)
    level_of_all = 1 - error_rate * OF_ALL_ROWS / (2 * len(questions))

    made = []
    for number, question in enumerate(questions):
        estimates = question.estimates(regions)
        level = np.full(family.size, float(special.ndtr(5.0)))  # of no use
        for key, reached in critical.items():
            if key[0] == number:
                level[families[key]] = special.ndtr(reached)
        level = np.maximum(level, confidence)
        one_sided = estimates.limits(confidence, is_moderated=False)
        simultaneous = estimates.limits(level, is_moderated=True)
        whole = question.all_rows(confidence)
        alone = _with_all_rows(one_sided, whole)
        at_once = _with_all_rows(simultaneous, question.all_rows(level_of_all))
        at_once[0] = np.minimum(at_once[0], alone[0])
        at_once[1] = np.maximum(at_once[1], alone[1])
        bound = np.maximum(-alone[0], alone[1])
        if one_sided.bound is not None:
            bound[:-1] = one_sided.bound
        low, high = simultaneous.low_difference, simultaneous.high_difference
        off = np.append(estimates.off, whole.off)
        differs = (low > 0) | (high < 0)
        all_limits = AllLimits(question, estimates, off, alone, at_once, bound, differs)
        made.append(all_limits)
    return tuple(made)


def _with_all_rows(limits: Limits, whole: AllRows) -> Floats:
    """Return limits of regions and of all rows: [low or high, region]."""
    of_all = [[whole.off - whole.down], [whole.off + whole.up]]
    return np.hstack([[limits.low, limits.high], np.array(of_all, dtype=np.float64)])


def _families(question: Question, family: Ints) -> dict[int, Bools]:
    """Return which regions share a part of the error rate, by one question."""
    if question.has_one_family:
        return {0: (family >= 0) | (family == SHORT)}
    known = np.unique(family).tolist()
    if not question.is_by_column:
        known = [k for k in known if k not in (TREES, PAIRS)]
    return {k: family == k for k in known}


# -- the checks of a question ----------------------------------------------------------


class _Checks:
    """Makes the checks of one question."""

    def __init__(
        self, tested: Tested, question: Question, limits: AllLimits | None
    ) -> None:
        self.tested = tested
        self.values = tested.values
        self.question = question
        self.bound = question.bound(tested.tolerance)
        low, high = sorted(question.as_read(x) for x in (-self.bound, self.bound))
        self.accepted = (low, high)
        self.is_known = limits is not None
        if limits is not None and tested.regions is not None:
            self.limits = limits
            self.regions = tested.regions
            self.is_part = np.append(tested.regions.is_part, True)

    def all(self) -> list[Check]:
        """Return the checks."""
        question = self.question
        columns = self.tested.columns
        if not question.is_by_column:
            return [self._check(question.kind, None, range(len(columns)))]
        checks = [self._check(question.kind, None, ())]
        for i, column in enumerate(columns):
            kind = "consistency" if i == 0 else "adaptivity"
            checks.append(self._check(kind, column, (i,)))
        if has_combinations(columns):
            checks.append(self._combinations())
        return checks

    def _usable(self, mine: Bools, *, with_all: bool) -> Ints:
        """Return the numbers of usable regions, and of all rows, which come last."""
        return np.flatnonzero(np.append(mine & self.regions.is_usable, with_all))

    def _check(self, kind: str, column: Column | None, of: Sequence[int]) -> Check:
        """Return a check of some columns, and of all rows unless it is of one."""
        if not self.is_known:
            return self._made(kind, column, result="inconclusive", note="few units")
        limits, regions, bound = self.limits, self.regions, self.bound
        mine = np.isin(regions.owner, of)
        which = self._usable(mine, with_all=column is None)
        parts = which[self.is_part[which]]
        T = float(limits.bound[parts].max()) if parts.size else math.inf
        n_left = np.count_nonzero(mine & regions.is_part & ~regions.is_usable)
        has_few = self.values.rows.n_effective < FEWEST * N_PARTS or n_left > 0
        if has_few and of:
            T = math.inf

        # the region that is significantly off by most, if any; else the farthest part
        fails = which[limits.outward[which] > bound]
        note, note_share = self._note(column)
        result: CheckOutcome = "inconclusive"
        decides = parts[np.argmax(limits.far[parts])] if parts.size else None
        if fails.size:
            result = "FAIL"
            decides = fails[np.argmax(limits.outward[fails])]
        elif parts.size and limits.far[parts].max() <= bound and math.isfinite(T):
            result = "pass"
        elif math.isinf(T) and not note:
            note = "few units"
        if note == "rare labels" and result == "FAIL":
            note = ""
        elif note:
            result = "inconclusive"
        subgroup = None
        if decides is not None:
            subgroup = self._subgroup(decides, is_simultaneous=result != "pass")
        return self._made(
            kind,
            column,
            result=result,
            subgroup=subgroup,
            subgroups=self._subgroups(mine),
            same_as_all_rows=self._is_same(mine),
            bound=self.question.as_bound(T),
            note=note,
            note_share=note_share,
        )

    def _combinations(self) -> Check:
        """Return the check of combinations, which never passes: it may miss some."""
        needed = rows_of_trees(self.tested.tolerance)
        if not self.is_known:
            return self._made(
                COMBINATIONS,
                None,
                result="not tested",
                note="few units",
                note_share=needed,
                counts=False,
            )
        limits = self.limits
        mine = self.regions.owner >= len(self.tested.columns)
        which = self._usable(mine, with_all=False)
        fails = which[limits.outward[which] > self.bound]
        note: Note = ""
        result: CheckOutcome = "no fault found"
        decides = which[np.argmax(limits.outward[which])] if which.size else None
        if self.values.n_units < needed:
            result, note = "not tested", "few rows for trees"
        if fails.size:
            result, note = "FAIL", ""
            # a pair of columns that is about as far off says more than trees
            is_by_trees = [self._column(i).kind == "trees" for i in fails]
            outward = limits.outward[fails] * np.where(is_by_trees, AS_CLEAR, 1)
            decides = fails[np.argmax(outward)]
        forced, _ = self._note(None)
        if forced and result == "FAIL":
            result, note = "inconclusive", forced
        subgroup = None
        if decides is not None:
            subgroup = self._subgroup(decides, is_simultaneous=True)
            column = self._column(decides)
            if result == "FAIL" and column.kind == "trees":
                subgroup = self._described(subgroup, column)
        T = float(limits.far[which[self.is_part[which]]].max(initial=0.0))
        return self._made(
            COMBINATIONS,
            None,
            result=result,
            subgroup=subgroup,
            same_as_all_rows=self._is_same(mine),
            bound=self.question.as_bound(T),
            note=note,
            note_share=needed,
            counts=result == "FAIL",
        )

    def _made(self, kind: str, column: Column | None, **found: Any) -> Check:
        """Return a check with what all checks of the question have."""
        question = self.question
        column_name = None if column is None else column.name
        return Check(
            f"{kind}: {column_name}" if kind == "adaptivity" else kind,
            kind,
            column_name,
            statistic=question.statistic,
            unit=question.unit,
            ideal=question.ideal,
            accepted=self.accepted,
            all_rows=self._all_rows if self.is_known else None,
            counts_in_bound=question.counts_in_bound,
            is_time=column is not None and column.kind == "time",
            **found,
        )

    def _note(self, column: Column | None) -> tuple[Note, float]:
        """Return what keeps a check from a result, and a share of rows."""
        if self.tested.doubt:
            return self.tested.doubt, 0.0
        if self.values.n_units < FEWEST * (1 - 1e-9):
            return "few units", 0.0
        if column is not None and column.left_out:
            return "rare labels", column.left_out
        return "", 0.0

    def _is_same(self, mine: Bools) -> bool:
        """Return whether there are regions, and none differs significantly."""
        use = mine & self.regions.is_usable
        return bool(mine.any() and not self.limits.differs[use].any())

    # -- subgroups ---------------------------------------------------------------------

    @cached_property
    def _all_rows(self) -> Subgroup:
        """All rows, with simultaneous limits unless they pass."""
        number = self.regions.owner.size
        return self._subgroup(number, is_simultaneous=self.limits.far[-1] > self.bound)

    def _subgroup(self, region: int, *, is_simultaneous: Any) -> Subgroup:
        """Return a region, or all rows, with numbers in the unit that people read."""
        limits = self.limits
        off = float(limits.off[region])
        ends = (limits.at_once if is_simultaneous else limits.alone)[:, region]
        question = self.question
        low, high = sorted(question.as_read(end) for end in ends.tolist())
        # equal but for rounding
        estimate = min(max(question.as_read(off), low), high)
        tolerance = self.tested.tolerance
        factor, *factors = (question.as_factor(x, tolerance) for x in (off, *ends))
        conditions: tuple[Condition, ...] = ()
        n_rows, share = self.values.rows.n_rows, 1.0
        if region < self.regions.owner.size:
            column = self._column(region)
            first = self.regions.first_cell[self.regions.owner[region]]
            cells = np.arange(self.regions.start[region], self.regions.stop[region])
            conditions = (column.condition(cells - first),)
            n_rows = int(self.regions.n_rows[region])
            share = float(self.regions.share[region])
            if column.rows is not None:  # of some rows, which stand for all
                share /= float(self.values.w[column.rows].sum() / self.values.w.sum())
        return Subgroup(
            conditions,
            n_rows,
            share,
            estimate,
            low,
            high,
            outcome(low, high, self.accepted),
            (factor, min(factors), max(factors)),
            bool(is_simultaneous),
        )

    def _subgroups(self, mine: Bools) -> tuple[Subgroup, ...]:
        """Return parts of columns with simultaneous limits: tenths if they can be."""
        regions = self.regions
        subgroups = []
        for i in np.unique(regions.owner[mine]):
            of_column = mine & (regions.owner == i)
            shown = of_column & regions.is_tenth
            if not shown.any() or not regions.is_usable[shown].all():
                shown = of_column & regions.is_part & regions.is_usable
            for k in np.flatnonzero(shown).tolist():
                subgroups.append(self._subgroup(k, is_simultaneous=True))
        return tuple(subgroups)

    def _column(self, region: int) -> Column:
        """Return the column of a region."""
        column: Column = self.regions.columns[self.regions.owner[region]]
        return column

    def _described(self, subgroup: Subgroup, by_trees: Column) -> Subgroup:
        """Return rows that trees tell with a few conditions that most fulfil."""
        rows = slice(None) if by_trees.rows is None else by_trees.rows
        w = np.zeros(self.values.z2.size)
        w[rows] = self.values.w[rows]
        value = np.zeros(self.values.z2.size)
        sign = 1 if subgroup.estimate > self.question.ideal else -1
        value[rows] = sign * by_trees.code
        conditions = described(self.tested.columns, self.values.z2, value, w)
        return replace(subgroup, described=conditions)
