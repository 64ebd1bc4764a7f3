"""Validation: the checks of some rows, and what stands beside them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._support.checks import Bools, Ints, check_choice
from .._support.notices import quiet
from .._support.render import Cells, Result
from ..predictions.diagnostics import leaked_rows
from ..predictions.predictions import Predictions
from ..scores.intervals import Estimate
from ..scores.student import StudentProfile
from . import words
from .arguments import Scope
from .change import Change
from .checks import Tested
from .planning import rows_to_pass
from .results import Check, Doubt, Outcome, Subgroup, Variation
from .steps import Step, next_steps
from .worth import gain_of_recalibration, gain_of_u

if TYPE_CHECKING:
    from ..recalibration.recalibrator import Recalibrator
    from ..scores import Scorecard, Summary

# share of the largest errors, and of z² that they hold, from which it is worth a word
FEW = 0.01
DECIDE = 0.25
MOST_NAMED = 10  # rows of these
DOUBTED = 0.05  # share of rows that the model has learned from, which leaves doubt


@dataclass(frozen=True, repr=False)
class DecidingRows(Result):
    """The rows of the largest errors, where these hold much of the sum of z².

    Attributes
    ----------
    share_of_rows, share_of_z2 : float
        The share of the rows, and of the sum of z² that they hold.
    rows : tuple of int
        The positions of the largest, as rows came, the largest first.
    abs_z : tuple of float
        Their absolute z-scores.
    """

    share_of_rows: float
    share_of_z2: float
    rows: tuple[int, ...]
    abs_z: tuple[float, ...]

    def _cells(self) -> Cells:
        rows = [
            (f"{row}", f"{z:.3g}") for row, z in zip(self.rows, self.abs_z, strict=True)
        ]
        return ("row", "|z|"), rows


@dataclass(frozen=True, eq=False, repr=False)
class Validation(Result):
    """The checks of some rows: are their uncertainties calibrated, overall and in part.

    Attributes
    ----------
    checks : dict of str to Check
        By name: "calibration", "consistency", "adaptivity: mass" (a check a feature),
        "combinations", "coverage" and "bias"; those of the scope.
    variation : Variation or None
        How much RMS z varies between fifths of the column where it varies most.
    tolerance : float
        The factor that RMS z of any subgroup may be off by.
    confidence : float
        The level of one-sided limits.
    coverage : float
        The nominal coverage of the intervals that were tested.
    scope : {"u", "intervals", "both"}
        What was tested.
    doubt : {"", "repeats", "fitted", "leaked"}
        What makes every check inconclusive.
    repeats : str
        What looks like repeats though no groups were given, or nothing.
    rows : Predictions
        The rows that were tested.
    tested : object
        What the checks were made from; for the library's own use.
    before : Validation or None
        That of the same rows before they were recalibrated, where it was given.
    change : Change or None
        The paired change of the CRPS against `before`.
    with_cost : bool
        Whether the cost is among what is printed.
    """

    checks: dict[str, Check]
    variation: Variation | None
    tolerance: float
    confidence: float
    coverage: float
    scope: Scope
    doubt: Doubt
    repeats: str
    rows: Predictions = field(compare=False)
    tested: Tested = field(compare=False)
    before: Validation | None = field(default=None, compare=False)
    change: Change | None = None
    with_cost: bool = False

    @property
    def headline(self) -> str:
        """The first line: what recalibration changed, or the worst result."""
        return words.headline(self)

    @property
    def outcome(self) -> str:
        """The worst result in a line, whatever recalibration has changed."""
        word, rest = words.outcome(self)
        return f"{word.upper()}: {rest}"

    @property
    def result(self) -> Outcome:
        """The worst result that counts: "FAIL", then "inconclusive", then "pass"."""
        results = {check.result for check in self.checks.values() if check.counts}
        worst_first: tuple[Outcome, ...] = ("FAIL", "inconclusive", "pass")
        return next(result for result in worst_first if result in results)

    @property
    def varies(self) -> str:
        """By how much RMS z varies, and along which column: "39 % along u"."""
        return words.varies(self)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that were tested: u, the features, and the time of the rows."""
        return tuple(column.name for column in self.tested.columns)

    @property
    def passed(self) -> bool:
        """Whether every check that counts passes."""
        return self.result == "pass"

    @property
    def bound(self) -> float:
        """T: the largest factor by which a tested subgroup may be off.

        It is the largest one-sided limit of the parts of all checks that count, but the
        bias, which has a unit of its own; infinite where nothing is known.
        """
        checks = self.checks.values()
        bounds = [x.bound for x in checks if x.counts and x.counts_in_bound]
        return max(bounds, default=math.inf)

    @property
    def n_units(self) -> float:
        """How many independent rows, or groups, there are in effect."""
        return self.tested.values.n_units

    @cached_property
    def rows_needed(self) -> int | None:
        """About how many rows, or groups, pass with a probability of 0.8.

        If the estimates stand, that is. None where a check fails or all pass, and where
        an estimate lies near an end of the accepted range, or nothing is known.
        """
        if self.result != "inconclusive" or self.doubt:
            return None
        return rows_to_pass(self.tested)

    def rows_of(self, subgroup: Subgroup) -> Bools:
        """Return which rows, as they came, are in a subgroup.

        Of combinations of more than 50,000 rows, these are among those that were drawn.

        Parameters
        ----------
        subgroup : Subgroup
            One of its checks.

        Returns
        -------
        array of bool, shape (n,)

        Examples
        --------
        >>> import sigmascale as ss
        >>> v = ss.validate(ss.datasets.load_diabetes().test)
        >>> s = v.checks["consistency"].subgroup
        >>> int(v.rows_of(s).sum()) == s.n_rows
        True
        """
        columns = [] if self.tested.regions is None else self.tested.regions.columns
        is_in = np.ones(self.rows.n_rows, dtype=np.bool_)
        for condition in subgroup.conditions:
            column = next(
                c
                for c in columns
                if (c.name, c.kind) == (condition.column, condition.kind)
            )
            has_cell = np.isin(column.code, column.cells_of(condition))
            of_column = np.zeros_like(is_in)
            of_column[slice(None) if column.rows is None else column.rows] = has_cell
            is_in &= of_column
        as_they_came = np.empty_like(is_in)
        as_they_came[self.tested.values.rows.places] = is_in
        return as_they_came

    # -- made when it is asked for -----------------------------------------------------

    @cached_property
    def gain_of_u(self) -> Estimate | None:
        """By how many per cent a monotone function of u lowers CRPS of a constant u.

        Both are made out of fold. None of vectors, and of a constant u.
        """
        return gain_of_u(self.tested.values.rows, self.confidence)

    @cached_property
    def cost(self) -> Estimate | None:
        """By how many per cent recalibration changes CRPS, cross-fitted on these rows.

        Below 0 is a gain. It takes five fits. None of few rows.
        """
        return gain_of_recalibration(self.tested.values.rows, self.confidence)

    @cached_property
    def next_steps(self) -> tuple[Step, ...]:
        """What to do next, at most two steps; none where all checks pass."""
        return next_steps(self)

    @cached_property
    def rows_that_decide(self) -> DecidingRows | None:
        """The rows of the largest errors, if they hold much of the sum of z²."""
        rows = self.tested.values.rows
        addends = self.tested.values.w * rows.z2
        n = int(FEW * rows.n_rows)
        if n < 1 or not addends.any():
            return None
        largest = np.argsort(-addends, kind="stable")[:n]
        share = float(addends[largest].sum() / addends.sum())
        if share <= DECIDE:
            return None
        assert rows.places is not None
        named = largest[:MOST_NAMED]
        places = tuple(rows.places[named].tolist())
        return DecidingRows(FEW, share, places, tuple(rows.abs_z[named].tolist()))

    @cached_property
    def tails_df(self) -> float:
        """The degrees of freedom of Student's t that describe the tails of z."""
        values = self.tested.values
        tails = StudentProfile.of(values.z2, values.n_units, values.rows.weights)
        return math.inf if tails is None else tails.best

    @cached_property
    def zeros(self) -> float:
        """The share of errors that are exactly 0."""
        values = self.tested.values
        return float(np.average(values.z2 == 0, weights=values.w))

    @cached_property
    def leaked(self) -> Ints:
        """The rows, as they came, that the model has learned from, it seems."""
        return np.sort(leaked_of(self.rows))

    @cached_property
    def scores(self) -> Scorecard:
        """All scores of the rows; see :func:`sigmascale.scores.scorecard`."""
        from ..scores import scorecard

        with quiet():
            return scorecard(self.rows)

    def summary(self) -> Summary:
        """Return the numbers of a table of a paper, each with its interval.

        Of RMS z and coverage, these are the estimates and limits of the checks.

        Returns
        -------
        Summary
            See :func:`sigmascale.scores.summary`.

        Examples
        --------
        >>> import sigmascale as ss
        >>> s = ss.validate(ss.datasets.load_diabetes().test).summary()
        >>> f"{s['CRPS'].value:.1f}", f"{s['coverage'].value:.3f}"
        ('32.0', '0.896')
        """
        return self._summary

    @cached_property
    def _summary(self) -> Summary:
        from ..scores import summary

        rows = self.tested.values.rows
        with quiet():
            made = summary(rows, confidence=self.confidence, coverage=self.coverage)
        estimates = dict(made.estimates)
        for name, check in (("RMS z", "calibration"), ("coverage", "coverage")):
            s = self.checks[check].all_rows if check in self.checks else None
            if s is not None:
                estimates[name] = Estimate(s.estimate, s.low, s.high, self.confidence)
        return replace(made, estimates=estimates, _origin=self.rows.origin)

    # -- as data and text --------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the checks and what they rest on, as plain values."""
        return {
            "headline": self.headline,
            "result": self.result,
            "passed": self.passed,
            "bound": self.bound,
            "tolerance": self.tolerance,
            "confidence": self.confidence,
            "coverage": self.coverage,
            "scope": self.scope,
            "doubt": self.doubt,
            "repeats": self.repeats,
            "n_rows": self.rows.n_rows,
            "n_units": self.n_units,
            "rows_needed": self.rows_needed,
            "checks": {name: x.to_dict() for name, x in self.checks.items()},
            "variation": None if self.variation is None else self.variation.to_dict(),
            "change": None if self.change is None else self.change.to_dict(),
            "summary": self.summary().to_dict(),
            "statements": [list(said) for said in words.statements(self)],
            "next_steps": [str(step) for step in self.next_steps],
        }

    def _columns(self) -> dict[str, list[Any]]:
        rows = [check.row() for check in self.checks.values()]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def describe(self, kind: Literal["paper"] = "paper") -> str:
        """Return what a referee asks, in a few sentences for a paper.

        Parameters
        ----------
        kind : {"paper"}, default "paper"
            What the sentences are for.

        Examples
        --------
        >>> import sigmascale as ss
        >>> v = ss.validate(ss.datasets.load_diabetes().test)
        >>> v.describe("paper").split(" for ")[0]
        'Uncertainties of 221 rows were tested with sigmascale 0.1.0'
        """
        check_choice(kind, "kind", ("paper",))
        return words.for_a_paper(self)

    def card(
        self,
        path: str | os.PathLike[str],
        *,
        recalibrator: Recalibrator | None = None,
        **others: Any,
    ) -> None:
        """Write a card: the results on one page, which travels and can be verified.

        Parameters
        ----------
        path : path-like
            A file that ends in .html, .md or .json.
        recalibrator : Recalibrator, optional
            What recalibrated the rows.
        **others
            As for :func:`sigmascale.report.write_card`.

        Examples
        --------
        >>> import tempfile
        >>> import sigmascale as ss
        >>> v = ss.validate(ss.datasets.load_diabetes().test)
        >>> v.card(tempfile.mkdtemp() + "/card.md")
        """
        # pages are made by rooms below, which know results: by name, when asked for
        report = import_module("sigmascale.report")
        report.write_card(path, self, recalibrator=recalibrator, **others)

    def text(self, steps: Iterable[str] | None = None, **how: Any) -> str:
        """Return what is printed, with other words for what to do next.

        Parameters
        ----------
        steps : iterable of str, optional
            What to do next; by default in Python.
        **how
            ``about_rows=False`` leaves out the line that says what was tested.
        """
        if steps is None:
            steps = [step.printed for step in self.next_steps]
        return words.as_text(self, steps, **how)

    def __str__(self) -> str:
        """Return the first line, the tables, the statements, and what to do next."""
        return self.text()

    def _repr_html_(self) -> str:
        return words.as_html(self, map(str, self.next_steps))


def leaked_of(rows: Predictions) -> Ints:
    """Return the rows that the model has learned from, it seems.

    None of recalibrated rows, whose u no longer knows which errors are tiny.
    """
    if rows.recalibrated is not None:
        return np.empty(0, dtype=np.intp)
    return leaked_rows(rows)
