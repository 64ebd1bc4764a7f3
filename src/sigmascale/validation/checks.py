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
from .questions.question import Limits
from .regions import Regions
from .results import Check, CheckOutcome, Doubt, Note, Subgroup, outcome
from .values import Values

AS_CLEAR = 0.85  # of the distance: then a pair of columns is named, not trees
OF_ALL_ROWS = 0.2  # of the error rate of a FAIL, that limits of all rows take
# families of regions beside columns: what trees expect, pairs of columns, short runs
TREES = -1
PAIRS = -2
SHORT = -3


@dataclass(frozen=True, eq=False)
class Looked:
    """All regions, and limits of all of them by one question.

    Attributes
    ----------
    question : Question
        The question.
    estimates : Estimates
        How far regions are off.
    alone : Limits
        One-sided limits of each.
    at_once : Limits
        Limits that hold for all at once, which reach as far as those at least.
    """

    question: Question
    estimates: Estimates
    alone: Limits
    at_once: Limits
    level_of_all: float


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
    looked : tuple of Looked
        The limits of all regions, by question; none without regions.
    """

    values: Values
    tolerance: float
    confidence: float
    doubt: Doubt
    questions: Sequence[Question]
    columns: list[Column]
    regions: Regions | None = None
    looked: tuple[Looked, ...] = ()

    @cached_property
    def checks(self) -> dict[str, Check]:
        """The checks, by name."""
        looked = self.looked or [None] * len(self.questions)
        made = {}
        for question, of_question in zip(self.questions, looked, strict=True):
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
    looked = _look(regions, questions, len(columns), confidence, rng)
    return replace(tested, regions=regions, looked=looked)


def _look(
    regions: Regions,
    questions: Sequence[Question],
    n_columns: int,
    confidence: float,
    rng: np.random.Generator,
) -> tuple[Looked, ...]:
    """Return the limits of all regions, by question: alone, and all at once.

    The error rate of those that hold at once is shared by families of regions: all rows
    by each question take a fifth, each column, what trees expect, all pairs of columns
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

    looked = []
    for number, question in enumerate(questions):
        estimates = question.estimates(regions)
        level = np.full(family.size, float(special.ndtr(5.0)))  # of no use
        for key, reached in critical.items():
            if key[0] == number:
                level[families[key]] = special.ndtr(reached)
        level = np.maximum(level, confidence)
        alone = estimates.limits(confidence, is_moderated=False)
        at_once = estimates.limits(level, is_moderated=True)
        at_once = replace(
            at_once,
            low=np.minimum(at_once.low, alone.low),
            high=np.maximum(at_once.high, alone.high),
        )
        looked.append(Looked(question, estimates, alone, at_once, level_of_all))
    return tuple(looked)


def _families(question: Question, family: Ints) -> dict[int, Bools]:
    """Return which regions share a part of the error rate, by one question."""
    if question.has_one_family:
        return {0: (family >= 0) | (family == SHORT)}
    known = np.unique(family).tolist()
    if not question.is_by_column:
        known = [k for k in known if k not in (TREES, PAIRS)]
    return {k: family == k for k in known}


# -- the checks of a question ----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Candidates:
    """The subgroups of a check: regions, and all rows as the number −1."""

    region: Ints
    off: Floats
    one_sided: Floats  # [low or high, candidate]
    at_once: Floats
    bound: Floats  # what counts in T
    is_part: Bools

    @cached_property
    def far(self) -> Floats:
        """The farther one-sided limit."""
        return np.asarray(np.maximum(-self.one_sided[0], self.one_sided[1]))

    @cached_property
    def outward(self) -> Floats:
        """How far off it is at least, by simultaneous limits; below 0 if maybe not."""
        return np.asarray(np.maximum(self.at_once[0], -self.at_once[1]))


class _Checks:
    """Makes the checks of one question."""

    def __init__(
        self, tested: Tested, question: Question, looked: Looked | None
    ) -> None:
        self.tested = tested
        self.values = tested.values
        self.question = question
        self.bound = question.bound(tested.tolerance)
        low, high = sorted(question.as_read(x) for x in (-self.bound, self.bound))
        self.accepted = (low, high)
        self.is_known = looked is not None
        if looked is not None and tested.regions is not None:
            self.looked = looked
            self.regions = tested.regions

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

    def _candidates(self, mine: Bools, with_all: bool) -> Candidates:
        """Return the subgroups of a check."""
        looked = self.looked
        use = np.flatnonzero(mine & self.regions.is_usable)
        off = looked.estimates.off[use]
        one_sided = np.array([looked.alone.low[use], looked.alone.high[use]])
        at_once = np.array([looked.at_once.low[use], looked.at_once.high[use]])
        is_part = self.regions.is_part[use]
        bound = np.maximum(-one_sided[0], one_sided[1])
        if looked.alone.far is not None:
            bound = looked.alone.far[use]
        if with_all:
            alone = self.question.all_rows(self.tested.confidence)
            wide = self.question.all_rows(looked.level_of_all)
            ends = [[alone.off - alone.down], [alone.off + alone.up]]
            wide_ends = [[wide.off - wide.down], [wide.off + wide.up]]
            use = np.append(use, -1)
            off = np.append(off, alone.off)
            one_sided = np.hstack([one_sided, np.array(ends, dtype=np.float64)])
            at_once = np.hstack([at_once, np.array(wide_ends, dtype=np.float64)])
            is_part = np.append(is_part, True)
            bound = np.append(bound, max(alone.down - alone.off, alone.off + alone.up))
        return Candidates(use, off, one_sided, at_once, bound, is_part)

    def _check(self, kind: str, column: Column | None, of: Sequence[int]) -> Check:
        """Return a check of some columns, and of all rows unless it is of one."""
        if not self.is_known:
            return self._made(kind, column, result="inconclusive", note="few units")
        mine = np.isin(self.regions.owner, of)
        c = self._candidates(mine, with_all=column is None)
        bound = self.bound
        parts = np.flatnonzero(c.is_part)
        T = float(c.bound[parts].max()) if parts.size else math.inf
        n_left = np.count_nonzero(mine & self.regions.is_part & ~self.regions.is_usable)
        has_few = self.values.rows.n_effective < FEWEST * N_PARTS or n_left > 0
        if has_few and of:
            T = math.inf

        # the region that surely is off by most, if one is; else the farthest part
        fails = np.flatnonzero(c.outward > bound)
        note, note_share = self._note(column)
        result: CheckOutcome = "inconclusive"
        decides = parts[np.argmax(c.far[parts])] if parts.size else None
        if fails.size:
            result = "FAIL"
            decides = fails[np.argmax(c.outward[fails])]
        elif parts.size and c.far[parts].max() <= bound and math.isfinite(T):
            result = "pass"
        elif math.isinf(T) and not note:
            note = "few units"
        if note == "rare labels" and result == "FAIL":
            note = ""
        elif note:
            result = "inconclusive"

        is_simultaneous = result != "pass"
        subgroup = None
        if decides is not None:
            subgroup = self._subgroup(c, int(decides), is_simultaneous)
        return self._made(
            kind,
            column,
            result=result,
            subgroup=subgroup,
            subgroups=self._subgroups(mine),
            same_as_all_rows=bool(mine.any()) and not self._differs(mine),
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
        mine = self.regions.owner >= len(self.tested.columns)
        c = self._candidates(mine, with_all=False)
        fails = np.flatnonzero(c.outward > self.bound)
        note: Note = ""
        result: CheckOutcome = "no fault found"
        decides: int | None = None
        if self.values.n_units < needed:
            result, note = "not tested", "few rows for trees"
        if c.outward.size:
            decides = int(np.argmax(c.outward))
        if fails.size:
            result, note = "FAIL", ""
            # a pair of columns that is about as far off says more than trees
            is_by_trees = [self._column(i).kind == "trees" for i in c.region[fails]]
            outward = c.outward[fails] * np.where(is_by_trees, AS_CLEAR, 1)
            decides = int(fails[np.argmax(outward)])
        forced, _ = self._note(None)
        if forced and result == "FAIL":
            result, note = "inconclusive", forced
        subgroup = None
        if decides is not None:
            subgroup = self._subgroup(c, decides, True)
            column = self._column(c.region[decides])
            if result == "FAIL" and column.kind == "trees":
                subgroup = self._described(subgroup, column)
        return self._made(
            COMBINATIONS,
            None,
            result=result,
            subgroup=subgroup,
            same_as_all_rows=bool(mine.any()) and not self._differs(mine),
            bound=self.question.as_bound(float(c.far[c.is_part].max(initial=0.0))),
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

    def _differs(self, mine: Bools) -> bool:
        """Return whether any region surely differs from all rows."""
        use = mine & self.regions.is_usable
        limits = self.looked.at_once
        low, high = limits.low_difference[use], limits.high_difference[use]
        return bool(((low > 0) | (high < 0)).any())

    # -- subgroups ---------------------------------------------------------------------

    @cached_property
    def _all_rows(self) -> Subgroup:
        """All rows, with simultaneous limits unless they pass."""
        none = np.zeros(self.regions.owner.size, dtype=np.bool_)
        c = self._candidates(none, with_all=True)
        return self._subgroup(c, 0, bool(c.far[0] > self.bound))

    def _subgroup(self, c: Candidates, i: int, is_simultaneous: bool) -> Subgroup:
        """Return a candidate as people read it."""
        ends = (c.at_once if is_simultaneous else c.one_sided)[:, i]
        return self._read(int(c.region[i]), float(c.off[i]), ends, is_simultaneous)

    def _read(
        self, region: int, off: float, ends: Floats, is_simultaneous: bool
    ) -> Subgroup:
        """Return a region, or all rows, with numbers in the unit that people read."""
        question = self.question
        low, high = sorted(question.as_read(end) for end in ends.tolist())
        # equal but for rounding
        estimate = min(max(question.as_read(off), low), high)
        tolerance = self.tested.tolerance
        factor, *limits = (question.as_factor(x, tolerance) for x in (off, *ends))
        conditions: tuple[Condition, ...] = ()
        n_rows, share = self.values.rows.n_rows, 1.0
        if region >= 0:
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
            (factor, min(limits), max(limits)),
            is_simultaneous,
        )

    def _subgroups(self, mine: Bools) -> tuple[Subgroup, ...]:
        """Return parts of columns with simultaneous limits: tenths if they can be."""
        regions = self.regions
        at_once = self.looked.at_once
        off = self.looked.estimates.off
        subgroups = []
        for i in np.unique(regions.owner[mine]):
            of_column = mine & (regions.owner == i)
            shown = of_column & regions.is_tenth
            if not shown.any() or not regions.is_usable[shown].all():
                shown = of_column & regions.is_part & regions.is_usable
            for k in np.flatnonzero(shown).tolist():
                ends = np.array([at_once.low[k], at_once.high[k]])
                subgroups.append(self._read(k, float(off[k]), ends, True))
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
