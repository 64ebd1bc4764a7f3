"""A monotonic law for the variance."""

from __future__ import annotations

import numpy as np

from .._support.citations import BUSK
from ..maps import UNCERTAINTY, Interpolation, Node, Product, Root
from .base import VarianceScaler
from .summaries import Summaries


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

    does = "every u² is replaced by an isotonic fit of the squared errors"
    references = (BUSK,)

    def _learn_from_sums(self, data: Summaries) -> Node:
        from sklearn.isotonic import isotonic_regression

        # not by IsotonicRegression, which takes u² less than 1e-15 apart for equal,
        # whatever their unit
        levels = data.levels()
        out = isotonic_regression(levels.e2, sample_weight=levels.n)
        change = np.diff(out) != 0
        first, last = np.append(True, change), np.append(change, True)
        ends = np.concatenate([levels.low[first], levels.high[last]])
        self.variances_in_, which = np.unique(ends, return_index=True)
        steps = np.concatenate([out[first], out[last]])[which]
        self.variances_out_ = np.maximum(steps, out[out > 0].min())
        u2 = Product((UNCERTAINTY, UNCERTAINTY))
        return Root(Interpolation(u2, self.variances_in_, self.variances_out_))

    def _learned_words(self) -> str:
        return f"The fit has {self.variances_in_.size} knots."
