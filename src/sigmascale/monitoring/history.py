"""Evidence over time, in a number of points that does not grow with the stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._support.checks import Floats, Ints

MOST_POINTS = 500
COLUMNS = ("too small", "too large", "biased up", "biased down", "region")


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
    stride : int
        Looks from one point to the next.
    """

    rows: list[int] = field(default_factory=list)
    times: list[float | str | None] = field(default_factory=list)
    evidence: list[list[float | None]] = field(default_factory=list)
    stride: int = 1

    def add(self, rows: Ints, times: Sequence[Any], log10: Floats, block: int) -> None:
        """Add what was seen after each block of rows, one column for each kind."""
        for i in np.flatnonzero(rows // block % self.stride == 0).tolist():
            self.rows.append(int(rows[i]))
            self.times.append(times[i])
            self.evidence.append([None if np.isnan(e) else float(e) for e in log10[i]])
            if len(self.rows) > MOST_POINTS:
                return self._thin_out(i, rows, times, log10, block)
        return None

    def _thin_out(
        self, i: int, rows: Ints, times: Sequence[Any], log10: Floats, block: int
    ) -> None:
        """Keep every second point, and go on after row i with twice the stride."""
        self.stride *= 2
        keep = [j for j, r in enumerate(self.rows) if r // block % self.stride == 0]
        self.rows = [self.rows[j] for j in keep]
        self.times = [self.times[j] for j in keep]
        self.evidence = [self.evidence[j] for j in keep]
        rest = slice(i + 1, None)
        self.add(rows[rest], times[rest], log10[rest], block)

    @property
    def is_sound(self) -> bool:
        """Whether all points are whole, for those that come from a file."""
        n_points = len(self.rows)
        return (
            len(self.times) == len(self.evidence) == n_points
            and all(len(point) == len(COLUMNS) for point in self.evidence)
            and self.stride > 0
        )


def plain_time(time: Any) -> float | str | None:
    """Return a time as JSON knows it: a number, or text."""
    if time is None or isinstance(time, str):
        return time
    if isinstance(time, (int, float, np.integer, np.floating)):
        return float(time)
    return str(time)
