"""Checks as results: the subgroup that decides, its estimate, and its limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from .._support.render import Cells, Result
from .columns import Condition

Outcome = Literal["pass", "FAIL", "inconclusive"]
CheckOutcome = Literal["pass", "FAIL", "inconclusive", "no fault found", "not tested"]
# what leaves every check inconclusive: rows that look like repeats without groups, that
# the recalibrator was fitted on, or that the model has learned from
Doubt = Literal["", "repeats", "fitted", "leaked"]
Note = Literal[
    "", "repeats", "fitted", "leaked", "few units", "few rows for trees", "rare labels"
]


def outcome(low: float, high: float, accepted: tuple[float, float]) -> Outcome:
    """Return the result that an interval and an accepted range have.

    >>> outcome(0.9, 1.1, (0.8, 1.25)), outcome(1.3, 1.6, (0.8, 1.25))
    ('pass', 'FAIL')
    """
    if accepted[0] <= low and high <= accepted[1]:
        return "pass"
    return "FAIL" if low > accepted[1] or high < accepted[0] else "inconclusive"


@dataclass(frozen=True, repr=False)
class Subgroup(Result):
    """Some rows, and one statistic of them with its limits.

    Attributes
    ----------
    conditions : tuple of Condition
        What the rows have in common; none of all rows.
    n_rows : int
        How many rows.
    share : float
        Their share of all, by weight.
    estimate, low, high : float
        The statistic, in the unit of its check, and limits around it.
    result : {"pass", "FAIL", "inconclusive"}
        Whether these limits lie within the accepted range, outside, or across an end.
    factors : tuple of float
        Estimate, low and high as factors by which u, or normal errors, are off: what an
        axis for all checks shows. A bias is at the tolerance where it is at its bound.
    is_simultaneous : bool
        Whether the limits hold for all subgroups at once; else they are one-sided ones
        of this subgroup alone.
    described : tuple of Condition
        Of rows that trees tell: a few conditions that most of them fulfil.
    """

    conditions: tuple[Condition, ...]
    n_rows: int
    share: float
    estimate: float
    low: float
    high: float
    result: Outcome
    factors: tuple[float, float, float]
    is_simultaneous: bool
    described: tuple[Condition, ...] = ()

    @property
    def where(self) -> str:
        """The rows in words."""
        conditions = self.described or self.conditions
        return " and ".join(x.text for x in conditions) or "all rows"

    @property
    def column(self) -> str | None:
        """The column of its only condition."""
        return self.conditions[0].column if len(self.conditions) == 1 else None

    def _cells(self) -> Cells:
        numbers = (f"{x:.3g}" for x in (self.estimate, self.low, self.high))
        header = ("subgroup", "rows", "estimate", "low", "high", "result")
        return header, [(self.where, f"{self.n_rows}", *numbers, self.result)]


@dataclass(frozen=True, repr=False)
class Check(Result):
    """One check: its result, and the subgroup that decides.

    Attributes
    ----------
    name : str
        What it is called: "calibration", "consistency", "adaptivity: mass",
        "combinations", "coverage" or "bias".
    kind : str
        The same without the column.
    column : str or None
        The only column that it is about.
    result : str
        "pass": the interval of the subgroup lies within the accepted range; "FAIL":
        outside; "inconclusive": across an end, or `note` says why. Combinations never
        pass: "no fault found", or "not tested".
    statistic : {"RMS z", "coverage", "mean z"}
        What is estimated.
    unit : {"", "share", "u"}
        Its unit.
    ideal : float
        Its ideal value.
    accepted : tuple of float
        The accepted range.
    subgroup : Subgroup or None
        The subgroup that decides; None where nothing can be told.
    all_rows : Subgroup or None
        The same statistic of all rows.
    subgroups : tuple of Subgroup
        Disjoint subgroups of each column, with simultaneous limits: tenths, fifths of
        few rows, values, or labels.
    same_as_all_rows : bool
        Whether no subgroup differs from all rows, by limits that hold for all at once.
    bound : float
        The largest one-sided limit of the subgroups, as a factor; infinite where
        nothing is known.
    note : str
        Why it is inconclusive, or not tested.
    note_share : float
        The share of the rows with rare labels; the units that trees need.
    counts, counts_in_bound : bool
        Whether it counts in the result of the set, and its bound, a factor, in T.
    is_time : bool
        Whether its column is the time of the rows, not a feature.
    """

    name: str
    kind: str
    column: str | None
    result: CheckOutcome
    statistic: str
    unit: str
    ideal: float
    accepted: tuple[float, float]
    subgroup: Subgroup | None = None
    all_rows: Subgroup | None = None
    subgroups: tuple[Subgroup, ...] = field(default=(), repr=False)
    same_as_all_rows: bool = False
    bound: float = math.inf
    note: Note = ""
    note_share: float = 0.0
    counts: bool = True
    counts_in_bound: bool = True
    is_time: bool = False

    @property
    def passed(self) -> bool:
        """Whether it passes."""
        return self.result == "pass"

    def row(self) -> dict[str, Any]:
        """Return it as a row of a table."""
        s = self.subgroup
        return {
            "check": self.kind,
            "column": self.column,
            "result": self.result,
            "statistic": self.statistic,
            "subgroup": None if s is None else s.where,
            "share": math.nan if s is None else s.share,
            "estimate": math.nan if s is None else s.estimate,
            "low": math.nan if s is None else s.low,
            "high": math.nan if s is None else s.high,
            "accepted_low": self.accepted[0],
            "accepted_high": self.accepted[1],
            "bound": self.bound,
        }

    def _columns(self) -> dict[str, list[Any]]:
        return {name: [value] for name, value in self.row().items()}

    def _cells(self) -> Cells:
        row = self.row()
        cells = [f"{x:.3g}" if isinstance(x, float) else x or "" for x in row.values()]
        return tuple(row), [tuple(cells)]


@dataclass(frozen=True, repr=False)
class Variation(Result):
    """How much RMS z varies between fifths, or values, of a column.

    Attributes
    ----------
    column : str
        The column along which it varies most.
    sd, low, high : float
        The standard deviation of ln RMS z beyond chance, and its limits.
    confidence : float
        The coverage of the limits.
    """

    column: str
    sd: float
    low: float
    high: float
    confidence: float

    def _cells(self) -> Cells:
        numbers = (f"{x:.3g}" for x in (self.sd, self.low, self.high))
        return ("column", "SD", "low", "high"), [(self.column, *numbers)]
