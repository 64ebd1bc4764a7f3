"""Where new z-scores fall among those of a calibration set.

The gaps between the m sorted values of a calibration set are m + 1. A new value of the
same law falls into each of them with the same probability, and a second one into a gap
where i of t new values lie already with probability (1 + i) / (m + 1 + t). For bins of
neighbouring gaps the same holds with their numbers of gaps: this is Pólya's urn, exact
for every continuous law and every m, and counts by bin are all that it needs. Equal
values are put in a random order, which makes it exact for laws with ties, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._support.checks import Floats, Ints

# Shares of the calibration set below the limits of bins, finer in the tails.
_TAILS = np.array([1 / 128, 1 / 64])
SHARES = np.concatenate([_TAILS, np.arange(1, 32) / 32, 1 - _TAILS[::-1]])


@dataclass(frozen=True)
class Ranks:
    """Bins of neighbouring gaps between the sorted values of a calibration set.

    Attributes
    ----------
    n_values : int
        The size of the calibration set.
    positions : array of int
        How many gaps lie below each limit.
    limits, ties : array of float
        The limits, values of the calibration set, and where each stands in the random
        order of values that equal it, from 0 to 1.
    """

    n_values: int
    positions: Ints
    limits: Floats
    ties: Floats

    @classmethod
    def of(cls, values: Floats, rng: np.random.Generator) -> Ranks:
        """Return the bins of a calibration set."""
        ties = rng.random(values.size)
        order = np.lexsort((ties, values))
        gaps = values.size + 1
        positions = np.unique(np.rint(SHARES * gaps).astype(np.int64))
        positions = positions[(positions > 0) & (positions < gaps)]
        at = order[positions - 1]
        return cls(values.size, positions, values[at], ties[at])

    @property
    def edges(self) -> Floats:
        """The shares of gaps at the limits of bins, with 0 and 1."""
        gaps = self.n_values + 1
        return np.concatenate([[0.0], self.positions / gaps, [1.0]])

    def bins(self, values: Floats, rng: np.random.Generator) -> Ints:
        """Return the bin of each value; one that equals a limit draws its order."""
        low = np.searchsorted(self.limits, values, side="left")
        high = np.searchsorted(self.limits, values, side="right")
        for row in np.flatnonzero(low < high):
            among = self.ties[low[row] : high[row]]
            low[row] += np.searchsorted(among, rng.random())
        return low

    @property
    def is_sound(self) -> bool:
        """Whether limits ascend, for those that come from a file."""
        inner = self.positions
        return (
            inner.shape == self.limits.shape == self.ties.shape == (inner.size,)
            and bool((np.diff([0, *inner, self.n_values + 1]) > 0).all())
            and bool((np.diff(self.limits) >= 0).all())
        )
