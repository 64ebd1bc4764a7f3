"""One factor for all uncertainties."""

from __future__ import annotations

import numpy as np

from .._support.checks import Floats, Labels
from .._support.tables import Table
from .base import VarianceScaler


class TemperatureScaling(VarianceScaler):
    """Multiply all uncertainties by one factor, s = sqrt(<Z²>).

    This makes them right on average, and changes nothing else.

    Attributes
    ----------
    factor_ : float
        The factor.

    References
    ----------
    D. Levi et al., Sensors 22, 5540 (2022), doi:10.3390/s22155540

    Examples
    --------
    >>> scaler = TemperatureScaling().fit([1.0, 1.0, 2.0], [2.0, -2.0, 4.0])
    >>> scaler.predict([1.0, 3.0])
    array([2., 6.])
    """

    def _learn(
        self, table: Table, uncertainty: Floats, error: Floats, groups: Labels | None
    ) -> None:
        self.factor_ = float(np.sqrt(np.mean((error / uncertainty) ** 2)))

    def _rescale(self, table: Table, uncertainty: Floats) -> Floats:
        return self.factor_ * uncertainty
