"""What every question knows: its statistic, what is accepted, limits of any rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from ..._support.checks import Floats
from ...predictions.predictions import Predictions
from ..regions import Regions
from ..values import Values

FAR = 4.0  # logarithm of a factor of which nothing is known


@dataclass(frozen=True, eq=False)
class AllRows:
    """How far all rows are off, with the distances of limits, which may be arrays."""

    off: float
    down: Floats
    up: Floats

    def plus(self, d: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return limits of rows that differ by d, which has limits of its own.

        Distances of both add up as squares: G. Y. Zou and A. Donner, Stat. Med. 27,
        1693 (2008), doi:10.1002/sim.3095.
        """
        return (
            self.off + d - np.hypot(d - low, self.down),
            self.off + d + np.hypot(high - d, self.up),
        )


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of regions: of how far they are off, and differ from all rows.

    The farthest that counts in T is `far`; by default that of low and high.
    """

    low: Floats
    high: Floats
    low_difference: Floats
    high_difference: Floats
    far: Floats | None = None


class Question:
    """What is asked of any rows, and how far these are *off*, with limits.

    Off is 0 for what is ideal, and `bound` for what is just accepted; what people read
    is `as_read`. The size of u and coverage are off by the logarithm of a factor.

    Parameters
    ----------
    values : Values
        The rows.

    Attributes
    ----------
    kind : str
        What its check is called; where it has one of each column, that of all rows.
    statistic, unit : str
        What is estimated; "" for a factor, "share", or "u".
    scopes : tuple of str
        The values of `scope` for which it is asked.
    is_by_column : bool
        Whether each column is a check of its own, and all rows are one.
    has_one_family : bool
        Whether regions of all columns share what one column of others has of the error
        rate.
    counts_in_bound : bool
        Whether its limits are factors, of which the largest is T.
    """

    kind: ClassVar[str]
    statistic: ClassVar[str]
    unit: ClassVar[str] = ""
    scopes: ClassVar[tuple[str, ...]] = ("u", "intervals", "both")
    is_by_column: ClassVar[bool] = False
    has_one_family: ClassVar[bool] = False
    counts_in_bound: ClassVar[bool] = True

    def __init__(self, values: Values) -> None:
        self.values = values

    @classmethod
    def is_asked(cls, rows: Predictions, scope: str) -> bool:
        """Return whether it is asked of rows."""
        return scope in cls.scopes

    @property
    def ideal(self) -> float:
        """The ideal value, as it is read."""
        return self.as_read(0.0)

    def bound(self, tolerance: float) -> float:
        """Return how far off rows may be."""
        return math.log(tolerance)

    def as_read(self, off: float) -> float:
        """Return how far off rows are, in the unit that people read."""
        return math.exp(min(off, 700.0))

    def as_factor(self, off: float, tolerance: float) -> float:
        """Return how far off rows are as a factor."""
        return math.exp(min(max(off, -700.0), 700.0))

    def as_bound(self, T: float) -> float:
        """Return how far off rows are at most, in the unit that people read."""
        return math.exp(T) if T < 700 else math.inf

    @property
    def influence(self) -> Floats:
        """The score of each row: what correlates the estimates of regions."""
        raise NotImplementedError

    def all_rows(self, level: Floats | float) -> AllRows:
        """Return how far all rows are off, with one-sided limits of some level(s)."""
        if np.ndim(level) == 0:
            return self._all_rows(float(level))
        levels, which = np.unique(level, return_inverse=True)
        limits = [self._all_rows(float(x)) for x in levels]
        down = np.array([x.down for x in limits])
        up = np.array([x.up for x in limits])
        return AllRows(limits[0].off, down[which], up[which])

    def _all_rows(self, level: float) -> AllRows:
        """Return the same of one level."""
        raise NotImplementedError

    def estimates(self, regions: Regions) -> Estimates:
        """Return how far regions are off."""
        raise NotImplementedError


class Estimates:
    """How far regions are off, by one question.

    Attributes
    ----------
    off : array of shape (n_regions,)
        The estimates.
    difference : array of shape (n_regions,)
        How much farther off they are than all rows.
    se : array of shape (n_regions,)
        The standard error of the difference, but for the share of the region.
    """

    off: Floats
    difference: Floats
    se: Floats

    def limits(self, level: Floats | float, *, is_moderated: bool) -> Limits:
        """Return one-sided limits of a level, or of one for each region.

        Degrees of freedom are those of a region, or moderated ones.
        """
        raise NotImplementedError


def student_t(regions: Regions, level: Floats | float, *, is_moderated: bool) -> Floats:
    """Return the quantile of Student's t for each region."""
    df = regions.moderated_df if is_moderated else regions.df
    # many regions have as many rows
    distinct, which = np.unique(df + 1j * np.asarray(level), return_inverse=True)
    return np.asarray(special.stdtrit(distinct.real, distinct.imag)[which])
