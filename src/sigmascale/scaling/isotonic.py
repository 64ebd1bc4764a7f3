"""A monotonic law for the variance."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression

from .._checks import Floats, Labels, Table
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
        fit = IsotonicRegression(out_of_bounds="clip").fit(uncertainty**2, error**2)
        self.variances_in_ = fit.X_thresholds_
        out = fit.y_thresholds_
        self.variances_out_ = np.maximum(out, out[out > 0].min())

    def _rescale(self, table: Table, uncertainty: Floats) -> Floats:
        variance = np.interp(uncertainty**2, self.variances_in_, self.variances_out_)
        result: Floats = np.sqrt(variance)
        return result
