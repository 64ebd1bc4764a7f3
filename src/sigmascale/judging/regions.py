"""The worst region of a variable, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.checks import Floats
from .local import LocalZMS

SMALLEST = 1e-3  # least <Z²> that is told from 0: beyond, all that counts is the rows


@dataclass(frozen=True)
class Region:
    """A run of bins whose uncertainties are wrong in the same direction.

    Attributes
    ----------
    where : str
        The region in words, such as "X1 above 125" or "X1 between 3 and 4".
    low, high : float, str or None
        Its limits; None where it is open. For a group, its label.
    zms : float
        <Z²> of its rows.
    n : int
        Number of its rows.
    """

    where: str
    low: Any
    high: Any
    zms: float
    n: int

    @property
    def sentence(self) -> str:
        """What is wrong there."""
        return f"uncertainties are {off_by(self.zms)} for {self.where}"


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

    >>> how_far_off(4.0), how_far_off(0.25)
    ('50 % too small', '2.0 times too large')
    """
    if zms == 0:
        return "too large (all errors are 0)"
    ratio = 1 / np.sqrt(zms)  # of the uncertainty to what it should be
    if ratio >= 2:
        return f"{ratio:.1f} times too large"
    if ratio >= 1:
        return f"{100 * (ratio - 1):.0f} % too large"
    return f"{100 * (1 - ratio):.0f} % too small"


def worst_region(local: LocalZMS) -> Region:
    """Return the run of bins, or the group, that deviates most from <Z²> = 1.

    Deviation is the gamma deviance n (<Z²> - 1 - ln <Z²>): it needs no intervals, which
    in heavy tails are widest where <Z²> is largest.
    """
    n = local.n.astype(np.float64)
    if local.is_grouped:
        worst = int(np.argmax(_deviance(n, local.zms)))
        label = str(local.x[worst])
        where = f"{local.name} = {label}"
        return Region(where, label, label, float(local.zms[worst]), int(n[worst]))
    # all runs of bins first..last at once, from cumulative sums
    rows, total = (
        np.concatenate([[0.0], np.cumsum(values)]) for values in (n, n * local.zms)
    )
    count = np.maximum(rows[None, 1:] - rows[:-1, None], 0.0)
    mean = (total[None, 1:] - total[:-1, None]) / np.maximum(count, 1.0)
    deviation = _deviance(count, mean)
    first, last = np.unravel_index(int(np.argmax(deviation)), deviation.shape)
    low = float(local.x_min[first]) if first > 0 else None
    high = float(local.x_max[last]) if last < n.size - 1 else None
    zms, size = float(mean[first, last]), int(count[first, last])
    return Region(_words(local.name, low, high), low, high, zms, size)


def _deviance(count: Floats, zms: Floats) -> Floats:
    positive = np.maximum(zms, SMALLEST)
    deviance: Floats = count * (positive - 1 - np.log(positive))
    return deviance


def _words(name: str, low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return f"all {name}"
    if high is None:
        return f"{name} above {low:.4g}"
    if low is None:
        return f"{name} below {high:.4g}"
    if f"{low:.4g}" == f"{high:.4g}":
        return f"{name} near {low:.4g}"
    return f"{name} between {low:.4g} and {high:.4g}"
