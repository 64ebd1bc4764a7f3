"""Are predictions unbiased? The mean of z; ideally 0."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from scipy import special

from ..._support.checks import Floats
from ...predictions.predictions import Predictions
from ...scores.intervals import Mean
from ..regions import PRIOR, Regions
from ..scores import by_chance
from .question import AllRows, Estimates, Limits, Question, student_t

COSTS = 4 / 3  # a bias of so many times (tolerance − 1) u costs what a factor does


class Bias(Question):
    """Off is the mean of z itself, in units of u."""

    kind = "bias"
    statistic = "mean z"
    unit = "u"
    counts_in_bound = False

    @classmethod
    def is_asked(cls, rows: Predictions, scope: str) -> bool:
        """Return whether errors have a sign."""
        return not rows.is_vector

    def bound(self, tolerance: float) -> float:
        """Return how large a bias may be."""
        return COSTS * (tolerance - 1)

    def as_read(self, off: float) -> float:
        """Return the bias."""
        return float(off)

    def as_factor(self, off: float, tolerance: float) -> float:
        """Return a factor that is at the tolerance where the bias is at its bound."""
        log_factor = off / self.bound(tolerance) * math.log(tolerance)
        return super().as_factor(log_factor, tolerance)

    def as_bound(self, T: float) -> float:
        """Return how large a bias is at most."""
        return T

    @property
    def influence(self) -> Floats:
        """The z-scores."""
        return self.values.rows.z

    @cached_property
    def _mean(self) -> Mean:
        return Mean.of(self.values.rows.z, self.values.groups, self.values.rows.weights)

    def _all_rows(self, level: float) -> AllRows:
        """Return ⟨z⟩ with Student's t."""
        half = special.stdtrit(self._mean.df, level) * math.sqrt(self._mean.second)
        return AllRows(self._mean.value, np.asarray(half), np.asarray(half))

    def estimates(self, regions: Regions) -> Estimates:
        """Return ⟨z⟩ of regions."""
        return BiasEstimates(self, regions)


class BiasEstimates(Estimates):
    """⟨z⟩ of regions ± the longer side of chance.

    Where z is skewed, a region may lack the rare large errors of one sign that others
    have: it has at least the variance that its scale makes of ⟨z²⟩ of all rows.
    """

    def __init__(self, question: Bias, regions: Regions) -> None:
        values = question.values
        z, w = values.rows.z, values.w
        self.regions = regions
        self.off = regions.means(z)
        mean = float(np.average(z, weights=w))
        variance_of_all = float(np.average((z - mean) ** 2, weights=w))
        third = float(np.average((z - mean) ** 3, weights=w))
        skewness = third / max(variance_of_all, 1e-200) ** 1.5
        self.difference = self.off - mean

        q = regions.variance_of_mean(z)
        own_variance = np.maximum(regions.means(z * z) - self.off**2, 0)
        variance = (own_variance / q + PRIOR * variance_of_all) / (1 / q + PRIOR)
        square = (variance_of_all + mean**2) * np.exp(
            2 * regions.shifts(values.capped).d
        )
        variance = np.maximum(variance, square - self.off**2)
        self.se = np.sqrt(variance * q)
        self.skewness = skewness * np.sqrt(q)

    def limits(self, level: Floats | float, *, is_moderated: bool) -> Limits:
        """Return limits of ⟨z⟩."""
        t = student_t(self.regions, level, is_moderated=is_moderated)
        longer = np.maximum(by_chance(t, self.skewness), -by_chance(-t, self.skewness))
        half = longer * self.se
        half_difference = half * np.sqrt(np.maximum(1 - self.regions.share, 0))
        return Limits(
            self.off - half,
            self.off + half,
            self.difference - half_difference,
            self.difference + half_difference,
        )
