"""Bounded scores: where their mean over any rows reaches a target, from counts.

A score ψ of a row is a function of ln|z|, or of ln of what its interval must be
stretched by. Of any rows, the shift t for which ⟨ψ(x − t)⟩ has the value that it has
over all rows is by what factor these rows are off: an M-estimator, whose limits are
where the mean leaves what chance allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._support.checks import Floats, Ints

N_BINS = 256  # of ln|z|
SHIFTS = np.linspace(-3, 3, 121)  # logarithms of factors that are looked at
STEP = float(SHIFTS[1] - SHIFTS[0])
ZERO = SHIFTS.size // 2  # the place of no shift


@dataclass(frozen=True, eq=False)
class Score:
    """A bounded score ψ(x) of rows, on bins of x and on shifts.

    Attributes
    ----------
    bin : array of int, shape (n,)
        The bin of x of each row.
    psi : array of shape (n,)
        ψ(x) of each row.
    curve : array of shape (N_BINS, SHIFTS.size)
        ψ(x − t) in the middle of each bin, at each shift t.
    share : array of shape (N_BINS,)
        The share of the weight that each bin has.
    is_log : bool
        Whether means are interpolated between shifts by their logarithms.
    """

    bin: Ints
    psi: Floats
    curve: Floats
    share: Floats
    is_log: bool

    @classmethod
    def of(
        cls,
        x: Floats,
        w: Floats,
        psi: Callable[[Floats], Floats],
        ends: tuple[float, float],
        *,
        is_log: bool = False,
    ) -> Score:
        """Put x into bins between two ends; what lies beyond counts as the ends."""
        low, high = ends
        step = (high - low) / (N_BINS - 1)
        code = np.clip(np.rint((x - low) / step), 0, N_BINS - 1).astype(np.int64)
        middles = low + step * np.arange(N_BINS)
        share = np.bincount(code, w, N_BINS) / w.sum()
        return cls(code, psi(x), psi(middles[:, None] - SHIFTS), share, is_log)

    @cached_property
    def mean(self) -> float:
        """The mean of ψ over all rows."""
        return float(self.share @ self.curve[:, ZERO])

    @cached_property
    def variance(self) -> float:
        """The variance of ψ over all rows."""
        return float(self.share @ (self.curve[:, ZERO] - self.mean) ** 2)

    @cached_property
    def skewness(self) -> float:
        """The skewness of ψ over all rows."""
        third = float(self.share @ (self.curve[:, ZERO] - self.mean) ** 3)
        return float(third / max(self.variance, 1e-200) ** 1.5)

    @cached_property
    def slope(self) -> float:
        """By how much the mean of ψ falls as all rows are shifted."""
        fall = self.share @ (self.curve[:, ZERO - 1] - self.curve[:, ZERO + 1])
        return max(float(fall) / (2 * STEP), 1e-9)

    def shift_to(self, means: Floats, target: Floats) -> Floats:
        """Return where `means[region, shift]`, which fall, reach a target of each."""
        i = np.arange(len(means))
        j = np.clip((means > target[:, None]).sum(1), 1, SHIFTS.size - 1)
        before, after = means[i, j - 1], means[i, j]
        if self.is_log:
            before, after, target = (
                np.log(np.maximum(x, 1e-300)) for x in (before, after, target)
            )
        step = np.clip((before - target) / np.maximum(before - after, 1e-12), 0, 1)
        return np.asarray(SHIFTS[j - 1] + step * STEP)


def by_chance(t: Floats, skewness: Floats) -> Floats:
    """Return how many standard errors a mean is off by chance, at Student's t.

    The mean is a gamma variate, by Wilson and Hilferty's cube root (1931), with the
    skewness g of the mean: (2 / g) [(1 + g t / 6 − g² / 36)³ − 1].
    """
    g = np.clip(skewness, -1.9, 1.9)
    g = np.where(np.abs(g) < 1e-4, 1e-4, g)
    return np.asarray(2 / g * (np.maximum(1 + g * t / 6 - g * g / 36, 0) ** 3 - 1))
