"""One target among several."""

from __future__ import annotations

from typing import NoReturn

from ..exceptions import InvalidInputError
from ..predictions import Predictions
from .base import Distribution, VarianceScaler


class TargetScaling(VarianceScaler):
    """The recalibrator of one target, which leans on those of the others.

    :class:`~sigmascale.RecalibratedTargets` makes one for each of its targets. It is a
    recalibrator like all others: it predicts, can be saved, watched and exported.

    Parameters
    ----------
    distribution : {"normal", "student"}, default "normal"
        The law of errors.

    Attributes
    ----------
    target_ : str
        The name of the target.
    own_factor_, factor_ : float
        The factor of the target beside what all targets share: as its own rows have it,
        and as it is used, nearer to that of the others the fewer these rows are.
    own_weight_ : float
        The share of the variance that the target's own fit decides on, between 0 and 1;
        the rest is what all targets share, times the factor.

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, (500, 2))
    >>> error = rng.normal(scale=u * [2.0, 3.0])
    >>> targets = ss.RecalibratedTargets(names=["gap", "dipole"]).fit(u, error)
    >>> scaler = targets.scalers_["dipole"]
    >>> round(scaler.factor_, 1), scaler.predict(u[:2, 1]).shape
    (3.1, (2,))
    """

    def __init__(self, *, distribution: Distribution = "normal") -> None:
        self.distribution = distribution

    does = (
        "uncertainties of one target of several are recalibrated by what all targets "
        "share, times a factor of its own, and by its own fit as far as its rows "
        "justify that"
    )

    target_: str
    own_factor_: float
    factor_: float
    own_weight_: float

    def _learn(self, rows: Predictions) -> NoReturn:
        msg = (
            "TargetScaling is one of several, and is not fitted alone. Fit all targets "
            "with RecalibratedTargets, or one with another recalibrator."
        )
        raise InvalidInputError(msg)

    def _learned_words(self) -> str:
        return (
            f"The target is {self.target_!r}; its factor is {self.factor_:.4g} (from "
            f"its own rows alone {self.own_factor_:.4g}), and its own fit has a weight "
            f"of {self.own_weight_:.2g}."
        )
