"""The worst region of a variable, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize

from .._support.checks import Floats
from .scans import LEAST_ROWS, LEAST_SHARE, ScannedVariable, variance_ratios

SMALLEST = 1e-3  # least <Z²> that is told from 0: beyond, all that counts is the rows


@dataclass(frozen=True)
class Region:
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
    interval : tuple of float, or None
        The interval of the factor that its uncertainties should be multiplied by, which
        holds for all regions that were looked at.
    """

    where: str
    low: Any
    high: Any
    zms: float
    n: int
    interval: tuple[float, float] | None = None

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


def worst_region(
    variable: ScannedVariable, sums: Floats, critical: float
) -> Region | None:
    """Return the region of a variable that differs most from the rest of the rows.

    Parameters
    ----------
    variable : ScannedVariable
        The variable in fine bins.
    sums : array of shape (n_bins,)
        Sums of z² by bin.
    critical : float
        The likelihood ratio that the largest of all regions exceeds by chance at the
        level of the test: it makes the interval of the factor hold for all of them.
    """
    n = variable.sizes.astype(np.float64)
    inside = _most_deviant(variable, sums, float(np.median(sums / n)))
    if inside is None:
        return None
    # where the rest is further from right, it is the rest that is wrong
    if _distance(sums, n, ~inside) > _distance(sums, n, inside):
        if variable.labels is not None or _is_run(~inside):
            inside = ~inside
        else:
            inside = _most_deviant(variable, sums, 1.0)
            assert inside is not None
    mean = float(sums[inside].sum() / n[inside].sum())
    where, low, high = words_of(variable, inside)
    rows = int(n[inside].sum())
    return Region(where, low, high, mean, rows, _factors(mean, rows, critical))


def _distance(sums: Floats, n: Floats, inside: npt.NDArray[np.bool_]) -> float:
    """Return how far the <Z²> of some bins is from 1."""
    mean = float(sums[inside].sum() / max(n[inside].sum(), 1.0))
    return abs(float(np.log(max(mean, SMALLEST))))


def _most_deviant(
    variable: ScannedVariable, sums: Floats, usual: float
) -> npt.NDArray[np.bool_] | None:
    """Return the bins of the region that deviates most from the usual <Z²>.

    All runs of bins count here, whatever their length, so that the limits are exact;
    deviation is the gamma deviance, n (r − 1 − ln r) with r = <Z²> over the usual one.
    """
    if variable.labels is not None:
        return most_different(variable, variance_ratios(variable, sums[None]), sums)
    rows, total = (
        np.concatenate([[0.0], np.cumsum(values)]) for values in (variable.sizes, sums)
    )
    count = rows[None, 1:] - rows[:-1, None]
    least = max(LEAST_ROWS, LEAST_SHARE * rows[-1])
    allowed = (count >= least) & (rows[-1] - count >= least)
    if not allowed.any():
        return None
    ratio = (total[None, 1:] - total[:-1, None]) / np.maximum(count, 1.0)
    ratio = np.maximum(ratio / max(usual, SMALLEST), SMALLEST)
    deviance = np.where(allowed, count * (ratio - 1 - np.log(ratio)), -1.0)
    first, last = np.unravel_index(int(np.argmax(deviance)), deviance.shape)
    inside = np.zeros(variable.n_bins, dtype=np.bool_)
    inside[first : last + 1] = True
    return inside


def most_different(
    variable: ScannedVariable, ratios: Floats, sums: Floats
) -> npt.NDArray[np.bool_] | None:
    """Return the bins of the region with the largest ratio, of one set."""
    if not ratios.shape[1]:
        return None
    best = int(np.argmax(ratios[0]))
    inside = np.zeros(variable.n_bins, dtype=np.bool_)
    if variable.labels is None:
        start, stop = variable.runs
        inside[start[best] : stop[best]] = True
    else:
        order = np.argsort(sums / variable.sizes, kind="stable")
        inside[order[: best + 1]] = True
    return inside


def _is_run(inside: npt.NDArray[np.bool_]) -> bool:
    """Return whether bins are neighbours."""
    at = np.flatnonzero(inside)
    return bool(at.size and at[-1] - at[0] == at.size - 1)


def words_of(
    variable: ScannedVariable, inside: npt.NDArray[np.bool_]
) -> tuple[str, Any, Any]:
    """Return bins in words, and their limits."""
    at = np.flatnonzero(inside)
    if variable.labels is not None:
        names = [variable.labels[i] for i in at]
        shown = ", ".join(names[:3]) + (
            f" and {len(names) - 3} more" if len(names) > 3 else ""
        )
        return f"{variable.name} = {shown}", names[0], names[-1]
    assert variable.low is not None
    assert variable.high is not None
    low = float(variable.low[at[0]]) if at[0] > 0 else None
    high = float(variable.high[at[-1]]) if at[-1] < variable.n_bins - 1 else None
    return _words(variable.name, low, high), low, high


def _factors(zms: float, n: int, critical: float) -> tuple[float, float] | None:
    """Return the interval of the factor, from the likelihood ratio that is exceeded.

    The true mean μ is within it where n (r − 1 − ln r) ≤ `critical`, with r = <Z²>/μ.
    """
    if zms <= 0:
        return None

    def excess(log_ratio: float) -> float:
        return float(np.expm1(log_ratio) - log_ratio - critical / n)

    high = optimize.brentq(excess, 1e-9, 50.0) if excess(50.0) > 0 else 50.0
    low = optimize.brentq(excess, -1e6, -1e-9) if excess(-1e6) > 0 else -1e6
    limits = np.sqrt(zms) * np.exp(np.array([-high, -low]) / 2)
    return float(limits[0]), float(min(limits[1], 1e6))


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
