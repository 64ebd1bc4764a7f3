"""Verdicts: the answers as results, which pictures and reports show."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from .._support.render import Cells, Result
from .answers import Answer
from .questions import Bias

State = Literal["kept", "broken", "open"]
MARKS = {"yes": "✓", "no": "✗", "cannot tell": "?"}
QUESTIONS = {
    "bias": "Are predictions unbiased, on average and everywhere?",
    "average": "Is u right on average?",
    "u": "Is u right at every level of u?",
    "joint": "Is u right for every combination of u and the features?",
    "coverage": "Do the intervals hold what they claim, on average and everywhere?",
}


@dataclass(frozen=True, repr=False)
class Region(Result):
    """Some of the rows, and how far they are off.

    Attributes
    ----------
    where : str
        Which rows, in words: "all rows", "kind = alloy", "mass above 126".
    column : str or None
        The column that tells them; None if it is not one.
    low_value, high_value : float, str or None
        Its limits in that column, None where it is open; for a label, that label.
    n_rows : int
        How many rows.
    estimate, low, high : float
        What u should be multiplied by, and limits that hold for all regions at once; of
        coverage, what the width of intervals should be multiplied by; of bias, the mean
        of z, in units of u.
    state : {"kept", "broken", "open"}
        Whether it lies within the tolerance, outside, or cannot be told.
    """

    where: str
    column: str | None
    low_value: Any
    high_value: Any
    n_rows: int
    estimate: float
    low: float
    high: float
    state: State

    def _cells(self) -> Cells:
        numbers = (f"{x:.3g}" for x in (self.estimate, self.low, self.high))
        header = ("where", "rows", "estimate", "low", "high", "state")
        return header, [(self.where, str(self.n_rows), *numbers, self.state)]


@dataclass(frozen=True, repr=False)
class Verdict(Result):
    """The answer to one question, and what it rests on.

    Attributes
    ----------
    name : str
        The question: "bias", "average", "u", the name of a feature, "time", "joint" or
        "coverage".
    answer : {"yes", "no", "cannot tell"}
        Whether uncertainties are right in this respect.
    sentence : str
        The answer in words, of at most 140 characters.
    T : float
        The tolerance that the rows prove, in fifths: no part is off by more. A factor;
        of the bias, in units of u. Infinite where nothing is known.
    worst : Region or None
        The region that the sentence is about: what is at fault or suspected, else the
        part that may be off by most.
    suspect : Region or None
        What is off, and may be beyond the tolerance.
    regions : tuple of Region
        All rows, parts or labels, in order: what a picture shows.
    limits : tuple of float, or None
        Between which all parts lie, of which the farther one is T.
    rows_needed : int or None
        About how many rows, or groups, would show the tolerance; None where nothing is
        to be told, or nobody knows.
    counts : bool
        Whether a "cannot tell" counts: combinations do not where they were not looked
        at.
    """

    name: str
    answer: Answer
    sentence: str
    T: float = math.inf
    worst: Region | None = None
    suspect: Region | None = None
    regions: tuple[Region, ...] = field(default=(), repr=False)
    limits: tuple[float, float] | None = None
    rows_needed: int | None = None
    counts: bool = True

    @property
    def passed(self) -> bool:
        """Whether the answer is "yes"."""
        return self.answer == "yes"

    @property
    def question(self) -> str:
        """The question in words."""
        return QUESTIONS.get(self.name, f"Is u right for every value of {self.name}?")

    def _cells(self) -> Cells:
        return ("question", "answer", ""), [(self.name, self.answer, self.sentence)]

    def __str__(self) -> str:
        """Return the sentence."""
        return self.sentence


def as_factor(value: float, name: str, tolerance: float) -> float:
    """Return where a value stands; a bias at its tolerance where a factor at its own.

    >>> as_factor(1.1, "average", 1.25), round(as_factor(1 / 3, "bias", 1.25), 3)
    (1.1, 1.25)
    """
    if name == "bias":
        at = value / Bias().bound(tolerance) * math.log(tolerance)
        value = math.exp(min(max(at, -9.0), 9.0))
    return min(max(value, 1e-3), 1e3)  # limits may be 0, or infinite
