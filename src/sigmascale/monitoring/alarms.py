"""What a monitor says: the change that it has found, and what there is to do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from .._support import numerals
from .._support.render import as_plain
from ..recalibration.persistence import (
    index,
    number,
    one_of,
    optional,
    plain,
    stored,
    text,
)

Change = Literal["too small", "too large", "biased", "region"]
UnitKind = Literal["rows", "groups"]
CHANGES: tuple[Change, ...] = ("too small", "too large", "biased", "biased")


@stored(
    **dict.fromkeys(("since", "row"), index),
    **dict.fromkeys(("size", "evidence", "confidence"), number),
    **dict.fromkeys(("caution", "column", "region"), optional(text)),
    **dict.fromkeys(("since_time", "time"), plain),
    kind=one_of(*CHANGES, "region"),
    units=one_of("rows", "groups"),
)
@dataclass(frozen=True)
class Alarm:
    """A change since the rows that show what is normal, and what to do about it.

    Attributes
    ----------
    kind : str
        "too small" or "too large" uncertainties, "biased" predictions, or uncertainties
        that are wrong in a "region" of a feature.
    since : int
        The row of the stream, counted from 0, at which the change most likely began.
    size : float
        How much: the factor by which errors have grown relative to u, so that
        multiplying u by it would make up for it; or, if predictions are biased, how far
        the mean of error / u has moved.
    row : int
        How many rows had been seen when it was found.
    evidence : float
        How many times over the evidence speaks for a change; the alarm is raised at
        1 / (1 − confidence).
    confidence : float
        That of the monitor.
    units : {"rows", "groups"}
        What could have come in any order while nothing changes.
    caution : str or None
        What speaks against that: neighbours that are alike.
    since_time, time : number, str or None
        When the first row of the change came, and that which raised the alarm.
    column, region : str or None
        The feature, and which of its values, if the kind is "region".
    """

    kind: Change
    since: int
    size: float
    row: int
    evidence: float
    confidence: float
    units: UnitKind
    caution: str | None = None
    since_time: float | str | None = None
    time: float | str | None = None
    column: str | None = None
    region: str | None = None

    @property
    def words(self) -> str:
        """What has happened, how much and since when, in a sentence."""
        when = f"row {self.since}"
        if self.since_time is not None:
            time = self.since_time
            when += f" ({time if isinstance(time, str) else f'time {time:.10g}'})"
        seen = f"since about {when}; seen at row {self.row}"
        if self.kind == "biased":
            way = "low" if self.size > 0 else "high"
            return (
                f"Predictions have become too {way}, by {abs(self.size):.2g} u on "
                f"average, {seen}."
            )
        where = f" for {self.region}" if self.kind == "region" else ""
        way, factor = "small", self.size
        if self.size <= 1:
            way, factor = "large", 1 / self.size if self.size else math.inf
        return f"u has become too {way} by a factor of {factor:.2f}{where}, {seen}."

    @property
    def guarantee(self) -> str:
        """When the alarm may be false, in a sentence or two."""
        words = (
            f"{false_alarms(self.confidence)}, provided that their {self.units} could "
            "as well have come in any order."
        )
        return words if self.caution is None else f"{words} {self.caution}"

    @property
    def suggestion(self) -> str:
        """What to do, in a sentence."""
        if self.kind == "biased":
            return (
                "Retrain the model, or fit the recalibrator anew on the rows since "
                'then, with bias="auto".'
            )
        if self.kind == "region":
            return (
                f"Fit the recalibrator anew on the rows since then, with {self.column} "
                "as a feature."
            )
        return (
            "Fit the recalibrator anew on the rows since then; until there are enough, "
            f"multiply u by {self.size:.2f}."
        )

    def __str__(self) -> str:
        """Return what has happened, what to do, and when that may be false."""
        return f"{self.words} {self.suggestion} {self.guarantee}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, with the words."""
        words = ("words", "suggestion", "guarantee")
        return {**vars(self), **{name: getattr(self, name) for name in words}}


@dataclass(frozen=True)
class MonitorState:
    """What a monitor says at some moment.

    Attributes
    ----------
    n_rows : int
        Rows that have arrived.
    evidence, limit : float
        The evidence for a change, and that at which an alarm is raised.
    alarm : Alarm or None
        The change that was found.
    caution : str or None
        Why the guarantee may not hold: neighbours that are alike.
    missing : int
        Rows, or groups, that are still needed to know what is normal.
    """

    n_rows: int
    evidence: float
    limit: float
    alarm: Alarm | None
    caution: str | None
    missing: int

    @property
    def answer(self) -> Literal["yes", "no", "inconclusive"]:
        """Whether something has changed: "yes", "no" or "inconclusive"."""
        if self.alarm is not None:
            return "yes"
        return "inconclusive" if self.missing else "no"

    @property
    def words(self) -> str:
        """What is known, in sentences."""
        if self.alarm is not None:
            return str(self.alarm)
        if self.missing:
            return (
                f"Inconclusive: {self.n_rows:,} rows have come, and {self.missing} "
                "more are needed to know what is normal."
            )
        words = (
            f"No change found in {self.n_rows:,} rows: the evidence for one is "
            f"{self.evidence:.2g}, and an alarm is raised at {self.limit:.3g}."
        )
        return words if self.caution is None else f"{words} {self.caution}"

    def __str__(self) -> str:
        """Return what is known, in sentences."""
        return self.words

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, with the words."""
        alarm = None if self.alarm is None else self.alarm.to_dict()
        words = {"answer": self.answer, "words": self.words}
        return {**as_plain(vars(self)), "alarm": alarm, **words}


def false_alarms(confidence: float) -> str:
    """Return how rare false alarms are, as the beginning of a sentence.

    >>> false_alarms(0.95)
    'While nothing changes, at most 5 % of streams ever raise an alarm'
    """
    share = numerals.level(1 - confidence)
    return f"While nothing changes, at most {share} of streams ever raise an alarm"


def rounded_number(value: float) -> float:
    """Return a number without the digits that depend on how rows were divided."""
    return float(f"{value:.9g}")
