"""Rows that have arrived and wait for enough others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._support.checks import Floats, Labels
from .history import plain_time


@dataclass(frozen=True)
class Arrivals:
    """Some rows of a stream.

    Attributes
    ----------
    z : array of shape (n,)
        Their z-scores.
    features : dict of str to array
        The columns of features by name.
    times : list
        Numbers or text; None where there are none.
    """

    z: Floats = field(default_factory=lambda: np.empty(0))
    features: dict[str, Labels] = field(default_factory=dict)
    times: list[float | str | None] = field(default_factory=list)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.z.size

    def plus(self, later: Arrivals) -> Arrivals:
        """Return these rows and later ones."""
        if not len(self):
            return later
        together = {
            name: np.concatenate([column, later.features[name]])
            for name, column in self.features.items()
        }
        z = np.concatenate([self.z, later.z])
        return Arrivals(z, together, self.times + later.times)

    def split(self, n: int) -> tuple[Arrivals, Arrivals]:
        """Return the first n rows, and the others."""
        return self._slice(slice(n)), self._slice(slice(n, None))

    def _slice(self, which: slice) -> Arrivals:
        features = {name: column[which] for name, column in self.features.items()}
        return Arrivals(self.z[which], features, self.times[which])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as numbers, text and lists."""
        return {
            "z": self.z.tolist(),
            "features": {name: each.tolist() for name, each in self.features.items()},
            "times": self.times,
        }

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Arrivals:
        """Return what :meth:`to_dict` wrote."""
        z = np.array(found["z"], dtype=float)
        features = {
            str(name): as_column(column) for name, column in found["features"].items()
        }
        times = [plain_time(time) for time in found["times"]]
        if any(each.shape != z.shape for each in features.values()) or z.ndim != 1:
            msg = "the rows that wait are damaged."
            raise ValueError(msg)
        if len(times) != z.size:
            msg = "the times of the rows that wait are damaged."
            raise ValueError(msg)
        return cls(z, features, times)


def as_column(values: Any) -> Labels:
    """Return numbers as numbers, and everything else as text."""
    column = np.asarray(values)
    return column.astype(float) if column.dtype.kind in "biuf" else column.astype(str)
