"""Uncertainties as they are."""

from __future__ import annotations

from ..maps import UNCERTAINTY, Node
from .base import VarianceScaler
from .summaries import Summaries
from .updating import KeptSums


class NoScaling(VarianceScaler):
    """Leave uncertainties as they are: the recalibrator to beat.

    Examples
    --------
    >>> NoScaling().fit([1.0, 2.0], [3.0, 4.0]).predict([1.0, 2.0])
    array([1., 2.])
    """

    sets_average = False
    does = "uncertainties are left as they are"

    def _learn_from_sums(self, data: Summaries) -> Node:
        self.sums_ = data.total()
        return UNCERTAINTY

    def _kept(self) -> KeptSums:
        return KeptSums(None, (), self.sums_)
