"""Evidence for changes of several kinds, each a mixture over sizes and start times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._support.checks import Floats, Ints
from .bets import not_started

_NOTHING = -1e9  # the logarithm of what was bet before the first row


class Path(NamedTuple):
    """Evidence after each block of rows.

    `kinds` has the logarithm of the evidence by block and kind, and `sizes` that by
    block, kind and size.
    """

    kinds: Floats
    sizes: Floats

    def until(self, end: int) -> Path:
        """Return the first blocks."""
        return Path(self.kinds[:end], self.sizes[:end])


@dataclass
class Evidence:
    """Stakes on kinds of change, and where each most likely started.

    All arrays have the shape (kinds, sizes), with a last axis for sums.

    Attributes
    ----------
    rows : int
        How many rows were bet on, or could have been.
    stakes : array
        Logarithm of the share of the evidence that each has; shares sum to the share
        of all kinds.
    started : array
        Logarithm of what those that have started betting own.
    growth, lowest : array
        The sum of all logarithms of payoffs, and the lowest it has been: the most
        likely start of a change, if there is one, is where it was lowest.
    sums, sums_before : array
        Sums over rows, now and at that start: how many there are, z, abs(z), and what
        else is summed.
    start : array of int
        The row of that start.
    """

    rows: int
    stakes: Floats
    started: Floats
    growth: Floats
    lowest: Floats
    sums: Floats
    sums_before: Floats
    start: Ints

    @classmethod
    def begin(cls, shares: Floats, row: int, weights: Any, n_sums: int = 3) -> Evidence:
        """Return no evidence, for kinds with these shares, from a row on."""
        stakes = np.log(np.multiply.outer(shares, weights))
        zeros = np.zeros(stakes.shape)
        return cls(
            rows=0,
            stakes=stakes,
            started=zeros + _NOTHING,
            growth=zeros,
            lowest=zeros.copy(),
            sums=np.zeros((*stakes.shape, n_sums)),
            sums_before=np.zeros((*stakes.shape, n_sums)),
            start=np.full(stakes.shape, row),
        )

    def follow(self, growth: Floats, block: int) -> Path:
        """Return the evidence after each block of rows; nothing is changed.

        Parameters
        ----------
        growth : array of shape (blocks, kinds, sizes)
            Logarithms of what the rows of each block pay.
        block : int
            Rows in a block.
        """
        left = not_started(self.rows + block * np.arange(len(growth) + 1.0))
        since = np.cumsum(growth, axis=0)
        # each start time's part of the stake, as if it had been there from the first
        parts = np.log(left[:-1] - left[1:])[:, None, None] - (since - growth)
        parts[0] = np.logaddexp(parts[0], self.started)
        sizes = since + np.logaddexp.accumulate(parts, axis=0)
        owned = np.logaddexp.reduce(sizes + self.stakes, axis=2)
        share = np.logaddexp.reduce(self.stakes, axis=1)
        waiting = np.log(left[1:])[:, None] + share
        return Path(np.logaddexp(owned, waiting), sizes)

    def keep(
        self, path: Path, growth: Floats, sums: Floats, row: int, block: int
    ) -> None:
        """Take over the end of a path.

        Parameters
        ----------
        path : Path
            What :meth:`follow` returned for `growth`, or its beginning.
        growth : array of shape (blocks, kinds, sizes)
            Logarithms of what the rows of each block pay.
        sums : array of shape (blocks, kinds or 1, n_sums)
            The number of rows in each block, and what else is summed.
        row, block : int
            The first row, and the number of rows in a block.
        """
        before = np.cumsum(growth, axis=0) - growth
        at = before.argmin(axis=0)
        least = self.growth + np.take_along_axis(before, at[None], axis=0)[0]
        lower = least < self.lowest
        totals = np.cumsum(sums, axis=0)
        earlier = np.broadcast_to(
            totals - sums, (len(sums), self.stakes.shape[0], sums.shape[2])
        )
        there = self.sums + earlier[at, np.arange(len(self.stakes))[:, None]]
        self.lowest = np.where(lower, least, self.lowest)
        self.start = np.where(lower, row + block * at, self.start)
        self.sums_before = np.where(lower[..., None], there, self.sums_before)
        self.growth = self.growth + growth.sum(axis=0)
        self.sums = self.sums + totals[-1][:, None, :]
        self.started = path.sizes[-1]
        self.rows += block * len(growth)

    def best_size(self, kind: int) -> int:
        """Return the size of a change that has the most evidence."""
        return int(np.argmax(self.started[kind] + self.stakes[kind]))

    @property
    def gained(self) -> Floats:
        """What the rows since the likely start of each kind say for it, at its best.

        It is a logarithm, without stakes: these are for whether there is a change, and
        not for which.
        """
        gained: Floats = (self.growth - self.lowest).max(axis=1)
        return gained

    def sums_since(self, kind: int) -> tuple[float, float, float, Floats]:
        """Return the sums since the likely start: rows, z, abs(z), and the rest."""
        at = kind, self.best_size(kind)
        n, z, size, *rest = (self.sums[at] - self.sums_before[at]).tolist()
        return n, z, size, np.array(rest)

    @property
    def is_sound(self) -> bool:
        """Whether arrays fit together and are finite, for those from a file."""
        shape, n_sums = self.stakes.shape, self.sums.shape[2:]
        arrays = {
            shape: (self.stakes, self.started, self.growth, self.lowest, self.start),
            (*shape, *n_sums): (self.sums, self.sums_before),
        }
        return len(shape) == 2 and all(
            each.shape == wanted and bool(np.isfinite(each).all())
            for wanted, several in arrays.items()
            for each in several
        )
