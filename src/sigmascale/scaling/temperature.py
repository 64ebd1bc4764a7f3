"""One factor for all uncertainties, or none."""

from __future__ import annotations

from .._support.citations import LEVI
from ..maps import UNCERTAINTY, Node, scaled
from .base import VarianceScaler
from .summaries import Summaries
from .updating import KeptSums


class TemperatureScaling(VarianceScaler):
    """Multiply all uncertainties by one factor, s = sqrt(<Z²>).

    This makes them right on average, and changes nothing else.

    Attributes
    ----------
    factor_ : float
        The factor.
    sums_ : BinSums
        Summary of the calibration set, to which `update` adds.

    References
    ----------
    D. Levi et al., Sensors 22, 5540 (2022), doi:10.3390/s22155540

    Examples
    --------
    >>> scaler = TemperatureScaling().fit([1.0, 1.0, 2.0], [2.0, -2.0, 4.0])
    >>> scaler.predict([1.0, 3.0])
    array([2., 6.])
    """

    does = "all uncertainties are multiplied by one factor"
    references = (LEVI,)

    def _learn_from_sums(self, data: Summaries) -> Node:
        self.sums_ = data.total()
        self.factor_ = float(self.sums_.scaling_factors()[0])
        return scaled(self.factor_)

    def _kept(self) -> KeptSums:
        return KeptSums(None, (), self.sums_)

    def _learned_words(self) -> str:
        return f"The factor is {self.factor_:.4g}."


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
