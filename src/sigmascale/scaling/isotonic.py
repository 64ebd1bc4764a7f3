"""A monotonic law for the variance."""

from __future__ import annotations

import numpy as np

from .._support.checks import Floats, Ints, Labels
from .._support.tables import Table
from ..bins.quantiles import ends_of_runs, in_order
from .base import VarianceScaler


class IsotonicScaling(VarianceScaler):
    """Replace u² by the isotonic (non-decreasing) fit of the squared errors.

    Attributes
    ----------
    variances_in_, variances_out_ : array of shape (n_knots,)
        The fitted step function, u² to variance; linear in between and constant
        outside. Steps of only zero errors are raised to the next one.

    References
    ----------
    J. Busk et al., Mach. Learn.: Sci. Technol. 3, 015012 (2022),
    doi:10.1088/2632-2153/ac3eb3

    Examples
    --------
    >>> scaler = IsotonicScaling().fit([1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 3.0, 3.0])
    >>> scaler.predict([1.0, 4.0]).round(2)
    array([1.58, 3.  ])
    """

    def _learn(
        self, table: Table, uncertainty: Floats, error: Floats, groups: Labels | None
    ) -> None:
        # not by IsotonicRegression, which takes u² less than 1e-15 apart for equal,
        # whatever their unit
        u2, e2 = in_order(uncertainty**2, error**2)
        ends = ends_of_runs(u2)
        n = np.diff(ends, prepend=0)
        u2 = u2[ends - 1]
        self._fit_steps(u2, u2, np.add.reduceat(e2, ends - n) / n, n)

    def _fit_steps(self, low: Floats, high: Floats, e2: Floats, n: Ints) -> None:
        """Fit the mean e² of n rows each, with u² from low to high, ascending."""
        from sklearn.isotonic import isotonic_regression

        out = isotonic_regression(e2, sample_weight=n)
        change = np.diff(out) != 0
        first, last = np.append(True, change), np.append(change, True)
        ends = np.concatenate([low[first], high[last]])
        self.variances_in_, which = np.unique(ends, return_index=True)
        steps = np.concatenate([out[first], out[last]])[which]
        self.variances_out_ = np.maximum(steps, out[out > 0].min())

    def _rescale(self, table: Table, uncertainty: Floats) -> Floats:
        variance = np.interp(uncertainty**2, self.variances_in_, self.variances_out_)
        result: Floats = np.sqrt(variance)
        return result
