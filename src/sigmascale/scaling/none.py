"""Uncertainties as they are."""

from __future__ import annotations

from .._support.checks import Floats, Labels
from .._support.tables import Table
from .base import VarianceScaler


class NoScaling(VarianceScaler):
    """Leave uncertainties as they are: the recalibrator to beat.

    Examples
    --------
    >>> NoScaling().fit([1.0, 2.0], [3.0, 4.0]).predict([1.0, 2.0])
    array([1., 2.])
    """

    def _learn(
        self, table: Table, uncertainty: Floats, error: Floats, groups: Labels | None
    ) -> None:
        pass

    def _rescale(self, table: Table, uncertainty: Floats) -> Floats:
        return uncertainty.copy()
