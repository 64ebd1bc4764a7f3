"""Regions in words: which rows they are, and how far their uncertainties are off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.render import Cells, Result


@dataclass(frozen=True)
class Region(Result):
    """A part of the rows whose uncertainties are wrong in the same direction.

    Attributes
    ----------
    where : str
        The region in words, such as "X1 above 125" or "X1 between 3 and 4".
    low, high : float, str or None
        Its limits; None where it is open. For labels, these.
    zms : float
        <Z²> of its rows.
    n : int
        Number of its rows.
    factor : float
        What its uncertainties should be multiplied by, relative to the average.
    interval : tuple of float
        The limits of the factor, which hold for all regions that were looked at.
    """

    where: str
    low: Any
    high: Any
    zms: float
    n: int
    factor: float
    interval: tuple[float, float]

    @property
    def sentence(self) -> str:
        """What is wrong there."""
        off = off_by(self.factor**2 if self.zms else 0.0)
        return f"uncertainties are {off} for {self.where}"

    def _cells(self) -> Cells:
        return ("region", "rows", "<Z²>"), [
            (self.where, f"{self.n}", f"{self.zms:.3g}")
        ]


def off_by(zms: float) -> str:
    """Return in words how far uncertainties with that <Z²> are off, and the remedy.

    >>> off_by(4.0), off_by(0.25)
    ('50 % too small (multiply by 2)', '2.0 times too large (multiply by 0.5)')
    """
    if zms == 0:
        return how_far_off(zms)
    factor = float(f"{np.sqrt(zms):.2g}")  # two digits are enough
    return f"{how_far_off(zms)} (multiply by {factor:g})"


def how_far_off(zms: float) -> str:
    """Return in words how far uncertainties with that <Z²> are from right ones.

    >>> how_far_off(4.0), how_far_off(0.25), how_far_off(1e4)
    ('50 % too small', '2.0 times too large', '100 times too small')
    """
    if zms == 0:
        return "too large (all errors are 0)"
    ratio = 1 / np.sqrt(zms)  # of the uncertainty to what it should be
    if ratio >= 2:
        return f"{ratio:.1f} times too large"
    if ratio >= 1:
        return f"{100 * (ratio - 1):.0f} % too large"
    if ratio <= 0.1:
        return f"{1 / ratio:,.0f} times too small"
    return f"{100 * (1 - ratio):.0f} % too small"


def range_words(name: str, low: float | None = None, high: float | None = None) -> str:
    """Return a range of a variable in words; it is open where a limit is None.

    >>> range_words("mass", 3.0), range_words("mass", 3.0, 4.5)
    ('mass above 3', 'mass between 3 and 4.5')
    """
    if low is None and high is None:
        return f"all {name}"
    if high is None:
        return f"{name} above {low:.4g}"
    if low is None:
        return f"{name} below {high:.4g}"
    if f"{low:.4g}" == f"{high:.4g}":
        return f"{name} near {low:.4g}"
    return f"{name} between {low:.4g} and {high:.4g}"


def label_words(name: str, labels: Sequence[str]) -> str:
    """Return some labels of a variable in words.

    >>> label_words("kind", ["a", "b", "c", "d", "e"])
    'kind = a, b, c and 2 more'
    """
    more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
    return f"{name} = {', '.join(labels[:3])}{more}"
