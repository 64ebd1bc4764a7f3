"""The inverse gamma law of squared uncertainties: fit it, and draw from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from .._support.checks import Floats

_MOST_DF = 1e6  # with more, uncertainties hardly differ


@dataclass(frozen=True)
class InverseGamma:
    """u² / scale² follows InvGamma(df / 2, df / 2).

    Attributes
    ----------
    df : float
        Degrees of freedom: normal errors of these u follow Student's t with as many.
    scale : float
        In the unit of u.
    """

    df: float
    scale: float

    @classmethod
    def fit(cls, u: Floats) -> InverseGamma:
        """Return the law of maximum likelihood.

        1 / u² follows a gamma law, whose shape a solves ln a − ψ(a) = ln <x> − <ln x>.
        """
        unit = float(np.exp(np.mean(np.log(u))))
        x = (unit / u) ** 2
        mean = float(x.mean())
        spread = float(np.log(mean) - np.log(x).mean())

        def excess(log_shape: float) -> float:
            return float(log_shape - special.digamma(np.exp(log_shape)) - spread)

        most = np.log(_MOST_DF / 2)
        # its left side falls from infinity to about 1 / (2 a)
        if excess(most) >= 0:
            shape = _MOST_DF / 2
        else:
            shape = float(np.exp(optimize.brentq(excess, -20, most, xtol=1e-13)))
        return cls(2 * shape, unit / float(np.sqrt(mean)))

    def draw_like(self, u: Floats, rng: np.random.Generator) -> Floats:
        """Draw as many uncertainties as in `u`, each in the place of its rank."""
        x = rng.gamma(self.df / 2, 2 / self.df, u.size)
        drawn = np.empty(u.size)
        drawn[np.argsort(u, kind="stable")] = np.sort(self.scale / np.sqrt(x))
        return drawn
