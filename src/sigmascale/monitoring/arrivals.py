"""Rows that have arrived and wait for enough others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._support.checks import Floats, Labels


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

    @property
    def is_sound(self) -> bool:
        """Whether columns have the same length, for those that come from a file."""
        columns = self.features.values()
        return len(self.times) == len(self) and all(
            each.shape == self.z.shape == (len(self),) for each in (self.z, *columns)
        )


def as_column(values: Any) -> Labels:
    """Return numbers as numbers, and everything else as text."""
    column = np.asarray(values)
    return column.astype(float) if column.dtype.kind in "biuf" else column.astype(str)
