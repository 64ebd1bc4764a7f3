"""What is made of each row once: z-scores, whether its interval covers, its unit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._support.checks import Floats, Ints
from .._support.notices import quiet
from .._support.weighting import WeightLine, ones_if_none
from ..predictions.predictions import Predictions
from ..scores.intervals import sums_of
from ..scores.losses_by_row import claimed_of_errors
from .scores import Score

CAP = 6.0  # times ⟨z²⟩: of larger z², so much counts


@dataclass(frozen=True, eq=False)
class Values:
    """The rows that are tested, and what is made of them once.

    Attributes
    ----------
    rows : Predictions
        The rows, in canonical order.
    coverage : float
        The nominal coverage of their prediction intervals.
    """

    rows: Predictions
    coverage: float

    @cached_property
    def w(self) -> Floats:
        """The weight of each row."""
        return ones_if_none(self.rows.weights, self.rows.n_rows)

    @property
    def groups(self) -> Ints | None:
        """The number of the group of each row, if there are groups."""
        return self.rows.groups

    @cached_property
    def unit(self) -> Ints:
        """The number of the independent unit of each row: itself, or its group."""
        return np.arange(self.rows.n_rows) if self.groups is None else self.groups

    @property
    def z2(self) -> Floats:
        """The squared z-scores; of vectors, the mean over components."""
        return self.rows.z2

    @cached_property
    def mean_z2(self) -> float:
        """The mean of z²."""
        return self.rows.mean(self.z2)

    @cached_property
    def capped(self) -> Score:
        """The score of the size of u, ψ(ln|z|) = min(z², 6 ⟨z²⟩)."""
        cap = 0.5 * np.log(CAP * self.mean_z2)
        x = 0.5 * np.log(np.maximum(self.z2, 1e-12 * self.mean_z2))

        def psi(x: Floats) -> Floats:
            return np.asarray(np.exp(2 * np.minimum(x, cap)))

        return Score.of(x, self.w, psi, (cap - 4, cap + 3), is_log=True)

    @cached_property
    def n_units(self) -> float:
        """How many independent units there are in effect."""
        of_units = self.w if self.groups is None else sums_of(self.groups, self.w)
        return float(of_units.sum() ** 2 / (of_units @ of_units))

    @cached_property
    def stretch(self) -> Floats:
        """How far errors are from the middle of intervals, in half widths.

        Infinite intervals, of which rows held out are too few, cover anything.
        """
        rows = self.rows
        with quiet():  # of levels beyond the rows of a table
            distributions, target = claimed_of_errors(rows)
            if rows.is_vector:
                lengths: Floats = np.sqrt(rows.squared_error * rows.dim)
                radii = distributions.radius(self.coverage)
                return lengths / np.maximum(radii, 1e-300)
            low, high = distributions.interval(self.coverage).T
        is_finite = np.isfinite(low) & np.isfinite(high)
        low = np.where(is_finite, low, 0.0)
        high = np.where(is_finite, high, 0.0)
        distances = np.abs(target - (low + high) / 2)
        stretch = 2 * distances / np.maximum(high - low, 1e-300)
        return np.where(is_finite, stretch, 0.0)

    @cached_property
    def is_covered(self) -> Floats:
        """Whether each true value lies in its interval, but for rounding."""
        return (self.stretch <= 1 + 1e-9).astype(np.float64)

    def quantiles(self, x: Floats, shares: Floats) -> Floats:
        """Return quantiles of some numbers of rows, weighted."""
        if self.rows.weights is None:
            return np.quantile(x, shares)
        order = np.argsort(x, kind="stable")
        line = WeightLine(self.w[order])
        return np.asarray(x[order[line.reaching(shares * line.total)]])
