"""What a monitor has found: an alarm in words, and the evidence over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._support.checks import Floats, Ints

KINDS = ("too small", "too large", "biased", "region")
MOST_POINTS = 500
COLUMNS = ("too small", "too large", "biased up", "biased down", "region")


@dataclass(frozen=True)
class Alarm:
    """A change since the calibration set, and what to do about it.

    Attributes
    ----------
    kind : str
        "too small" or "too large" uncertainties, "biased" predictions, or uncertainties
        that are wrong in a "region" of a feature.
    since : int
        The row of the stream, counted from 0, at which the change most likely began.
    size : float
        How much: the factor by which errors have grown relative to uncertainties, so
        that multiplying uncertainties by it would make up for it; or, if predictions
        are biased, how far the mean of error / uncertainty has moved.
    row : int
        How many rows had been seen when it was found.
    evidence : float
        How many times over the evidence speaks for a change; the alarm is raised at
        1 / (1 − confidence).
    since_time, time : number, str or None
        The times of the first row of the change, and of the row that raised the
        alarm, if times were given.
    feature, region : str or None
        The feature, and which of its values, if the kind is "region".
    """

    kind: str
    since: int
    size: float
    row: int
    evidence: float
    since_time: float | str | None = None
    time: float | str | None = None
    feature: str | None = None
    region: str | None = None

    @property
    def words(self) -> str:
        """What has happened, since when and how much, in a sentence."""
        when = f"row {self.since}"
        if self.since_time is not None:
            time = self.since_time
            when += f" (time {time if isinstance(time, str) else f'{time:.10g}'})"
        seen = f"seen at row {self.row}"
        if self.kind == "biased":
            way = "low" if self.size > 0 else "high"
            return (
                f"Predictions have been too {way} since about {when}, by "
                f"{abs(self.size):.2g} uncertainties on average ({seen})."
            )
        where = f" for {self.region}" if self.kind == "region" else ""
        small = self.size > 1
        factor = self.size if small else 1 / self.size if self.size else float("inf")
        return (
            f"Uncertainties have been too {'small' if small else 'large'}{where} since "
            f"about {when}, by a factor of {factor:.2f} ({seen})."
        )

    @property
    def suggestion(self) -> str:
        """What to do, in a sentence."""
        if self.kind == "biased":
            return (
                "Retrain the model, or correct the bias: add the mean error of the "
                "rows since then to predictions, and recalibrate after that."
            )
        if self.kind == "region":
            return (
                f"Fit the recalibrator anew on the rows since then, with {self.feature}"
                " as a feature (RakedScaling, BoostedScaling)."
            )
        return (
            "Update the recalibrator with the rows since then, or fit it anew; until "
            f"then multiply uncertainties by {self.size:.2f}."
        )

    def __str__(self) -> str:
        """Return what has happened and what to do."""
        return f"{self.words} {self.suggestion}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, with the words."""
        return {**vars(self), "words": self.words, "suggestion": self.suggestion}

    @property
    def is_sound(self) -> bool:
        """Whether the kind is known, for those that come from a file."""
        return self.kind in KINDS


@dataclass
class History:
    """The evidence after some rows; every second point goes when there are too many.

    Attributes
    ----------
    rows : list of int
        How many rows had arrived.
    times : list
        The times of the last of them, or None.
    evidence : list of list of float
        Logarithms to base 10 of the evidence for too small and too large uncertainties,
        for a bias up and down, and for the region with the most, or None.
    stride, looks : int
        Looks from one point to the next, and how many there were.
    """

    rows: list[int] = field(default_factory=list)
    times: list[float | str | None] = field(default_factory=list)
    evidence: list[list[float | None]] = field(default_factory=list)
    stride: int = 1
    looks: int = 0

    def add(self, rows: Ints, times: Sequence[Any], log10: Floats) -> None:
        """Add what was seen at each look, one column for each kind."""
        points = log10.astype(object)
        points[np.isnan(log10)] = None
        # every look whose number is a multiple of the stride is kept
        new = slice(-(self.looks + 1) % self.stride, None, self.stride)
        self.looks += rows.size
        self.rows += rows[new].tolist()
        self.times += times[new]
        self.evidence += points[new].tolist()
        while len(self.rows) > MOST_POINTS:
            self.stride *= 2
            for kept in (self.rows, self.times, self.evidence):
                del kept[::2]

    @property
    def is_sound(self) -> bool:
        """Whether all points are whole, for those that come from a file."""
        n_points = len(self.rows)
        return (
            len(self.times) == len(self.evidence) == n_points
            and all(len(point) == len(COLUMNS) for point in self.evidence)
            and self.stride > 0 <= self.looks
        )
