"""Whether rows that follow each other resemble each other, so that alarms mean little.

Ranks among earlier rows are a fair game only if rows could have come in any order. Rows
that belong together, such as frames of a trajectory, could not. To notice it, rows are
laid out line by line in a square, and read again column by column. If any order were as
likely, each way of reading would be as likely to have the more similar neighbours: a
fair coin, whatever the law of z. Bets on the first way are a test martingale as those
on changes are. A change affects the coins of one window, and is no dependence.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import special

from .._support.checks import Floats

SIDES = (4, 20)  # of the squares, for rows that resemble each other nearby and far
WINDOW = 400  # rows, a whole number of squares of each kind
_MOST = 3.0  # z-scores beyond so many mean sizes count as these


@dataclass
class Dependence:
    """Bets on the similarity of rows that follow each other.

    Attributes
    ----------
    waiting : array of shape (2, n)
        z and abs(z) of the rows since the last whole window.
    heads, tosses : array of shape (2, 2)
        How often neighbours were more similar as they came, and in how many squares;
        by z or abs(z), and by side.
    log_evidence : float
        The logarithm of the largest evidence so far.
    """

    waiting: Floats = field(default_factory=lambda: np.empty((2, 0)))
    heads: Floats = field(default_factory=lambda: np.zeros((2, len(SIDES))))
    tosses: Floats = field(default_factory=lambda: np.zeros((2, len(SIDES))))
    log_evidence: float = 0.0

    def take(self, z: Floats, size: Floats) -> None:
        """Look at more rows, or at groups as one row each."""
        rows = np.hstack([self.waiting, [z, size]])
        n = rows.shape[1] // WINDOW
        self.waiting = rows[:, n * WINDOW :]
        if not n:
            return
        windows = rows[:, : n * WINDOW].reshape(2, n, WINDOW)
        # what does not depend on the order within a window leaves the coin fair
        most = _MOST * windows[1].mean(axis=1, keepdims=True)
        windows = np.clip(windows, -most, most)
        windows -= windows.mean(axis=2, keepdims=True)
        found = [_toss(windows, side) for side in SIDES]
        heads, tosses = (np.stack(each, axis=2) for each in zip(*found, strict=True))
        heads = self.heads + np.cumsum(heads, axis=1).swapaxes(0, 1)
        tosses = self.tosses + np.cumsum(tosses, axis=1).swapaxes(0, 1)
        self.heads, self.tosses = heads[-1], tosses[-1]
        logs = _log_bets(heads, tosses).reshape(n, -1)
        mean = np.logaddexp.reduce(logs, axis=1) - np.log(logs.shape[1])
        self.log_evidence = max(self.log_evidence, float(mean.max()))

    @property
    def is_sound(self) -> bool:
        """Whether counts fit together, for those that come from a file."""
        counts = self.heads, self.tosses
        return (
            all(each.shape == (2, len(SIDES)) for each in counts)
            and bool((self.heads <= self.tosses).all())
            and self.waiting.ndim == len(self.waiting) == 2
        )


def _toss(windows: Floats, side: int) -> tuple[Floats, Floats]:
    """Return heads and tosses of the squares in each window, shape (2, windows)."""
    squares = windows.reshape(*windows.shape[:2], -1, side, side)
    lines, columns = (
        np.sum(each[..., 1:] * each[..., :-1], axis=-1)
        for each in (
            squares.reshape(*squares.shape[:3], -1),
            squares.swapaxes(3, 4).reshape(*squares.shape[:3], -1),
        )
    )
    counts: list[Floats] = [
        each.astype(np.float64).sum(axis=2)
        for each in (lines > columns, lines != columns)
    ]
    return counts[0], counts[1]


def _log_bets(heads: Floats, tosses: Floats) -> Floats:
    """Return what bets on heads have made of 1, over all chances from 1/2 to 1.

    It is the mean of (2 p)^heads (2 - 2 p)^tails over these chances p.
    """
    a, b = heads + 1, tosses - heads + 1
    above = special.betainc(b, a, 0.5)  # the share of p above 1/2
    return np.asarray((tosses + 1) * np.log(2) + special.betaln(a, b) + np.log(above))
