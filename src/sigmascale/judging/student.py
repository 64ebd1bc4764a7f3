"""Student's t as a description of z-scores: how heavy their tails are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.checks import Floats
from .._support.weights import mean_of, quantile_of, some_of, spread_of, total_of

_LEAST_DF, _MOST_DF = 0.1, 1000.0  # Student's t with more is normal
ENOUGH = 0.05  # by which the log score of a law must be higher to be worth words
TAIL = 0.01  # share of the errors that words about tails speak of
COVERAGE = 0.9  # of the intervals that they compare


@dataclass(frozen=True)
class StudentLaw:
    """Errors are `scale` times u times a number from Student's t.

    Attributes
    ----------
    df : float
        Degrees of freedom, ν; infinite for normal errors.
    scale : float
        The scale in units of the uncertainty u. Where the standard deviation is u,
        which takes more than 2 degrees of freedom, it is sqrt((ν − 2) / ν).

    Examples
    --------
    >>> law = StudentLaw(df=3.0, scale=0.5)
    >>> law.quantiles([0.05, 0.95]).round(3)
    array([-1.177,  1.177])
    """

    df: float
    scale: float

    @classmethod
    def learn(cls, z: Floats, weights: Floats | None = None) -> StudentLaw:
        """Return the law of the highest likelihood for z-scores that are not all 0."""
        from scipy import optimize, special

        unit = float(np.abs(z).max())  # of which squares neither overflow nor vanish
        z2 = (z / unit) ** 2
        mean = mean_of(z2, weights)
        z2 = z2 / mean
        # with fewer degrees of freedom, errors of exactly 0 would have all the
        # likelihood
        nonzero = total_of(int(np.count_nonzero(z2)), some_of(weights, z2 != 0))
        least = max(_LEAST_DF, 1.1 * (total_of(z2.size, weights) / nonzero - 1))

        def slope(log_df: float) -> float:
            """Return the slope of the log-likelihood by df, with the best scale."""
            df = float(np.exp(log_df))
            expected = special.digamma((df + 1) / 2) - special.digamma(df / 2)
            scale2 = _best_scale2(z2, df, weights)
            return float(expected - mean_of(np.log1p(z2 / (df * scale2)), weights))

        if least >= _MOST_DF or slope(np.log(_MOST_DF)) >= 0:
            return cls(float("inf"), unit * float(np.sqrt(mean)))
        df = least
        if slope(np.log(least)) > 0:
            bounds = np.log(least), np.log(_MOST_DF)
            df = float(np.exp(optimize.brentq(slope, *bounds, xtol=1e-13)))
        return cls(df, unit * float(np.sqrt(mean * _best_scale2(z2, df, weights))))

    def quantiles(self, levels: Any) -> Floats:
        """Return quantiles of the error in units of u.

        Parameters
        ----------
        levels : array-like
            Probabilities between 0 and 1.
        """
        from scipy import special

        p = np.asarray(levels, dtype=np.float64)
        unit = special.ndtri(p) if np.isinf(self.df) else special.stdtrit(self.df, p)
        return np.asarray(self.scale * unit)

    def losses(self, z: Floats) -> Floats:
        """Return the negative logarithm of the density of z-scores."""
        from scipy import special

        t = z / self.scale
        if np.isinf(self.df):
            unit = 0.5 * t**2 + 0.5 * np.log(2 * np.pi)
        else:
            half = 0.5 * (self.df + 1)
            log_norm = special.gammaln(half) - special.gammaln(0.5 * self.df)
            log_norm -= 0.5 * np.log(self.df * np.pi)
            unit = half * np.log1p(t**2 / self.df) - log_norm
        return np.asarray(unit + np.log(self.scale))


NORMAL = StudentLaw(float("inf"), 1.0)


def poor_normal(z: Floats, weights: Floats | None = None) -> str:
    """Return why a normal law describes z-scores poorly, in words; or nothing.

    The z-scores are E / u, with u right on average.
    """
    if z.size < 2 or not np.any(z):
        return ""
    z = z / np.sqrt(mean_of(z**2, weights))
    with np.errstate(over="ignore", invalid="ignore"):  # one z among tiny ones
        law = StudentLaw.learn(z, weights)
        gain = NORMAL.losses(z) - law.losses(z)
        error = spread_of(gain, weights) / np.sqrt(total_of(z.size, weights))
    if not mean_of(gain, weights) > max(ENOUGH, 2 * error):
        return ""
    beyond = quantile_of(np.abs(z), 1 - TAIL, weights)
    level = 0.5 + COVERAGE / 2
    width = float(law.quantiles(level) / NORMAL.quantiles(level))
    return (
        f"A normal law is a poor description: {100 * TAIL:g} % of the errors are "
        f"beyond {beyond:.2g} u; intervals of {100 * COVERAGE:g} % from Student's t "
        f"with ν = {law.df:.2g} would be {width:.2g} times as wide."
    )


def _best_scale2(z2: Floats, df: float, weights: Floats | None) -> float:
    """Return the squared scale of Student's t with the highest likelihood."""
    from scipy import optimize

    def slope(log_scale2: float) -> float:
        shares = (df + 1) * z2 / (df * np.exp(log_scale2) + z2)
        return mean_of(shares, weights) - 1

    high = np.log((df + 1) / df * mean_of(z2, weights))
    low = high - 1
    while slope(low) < 0:
        low -= 2 * (high - low)
    return float(np.exp(optimize.brentq(slope, low, high, xtol=1e-14)))
