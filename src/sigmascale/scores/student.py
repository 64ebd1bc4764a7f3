"""Student's t as a description of z-scores: how heavy their tails are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from .._support.checks import Floats
from .._support.weighting import WeightLine

LEAST_DF, MOST_DF = 0.1, 1000.0  # Student's t with more is normal
POINTS = 1000  # quantiles that stand for more rows, where the tails are looked at
RULED_OUT = 9.0  # twice the log-likelihood that a Student's t may lose
DF = 2 + np.geomspace(0.01, 500, 24)  # degrees of freedom that are looked at


def fit_student(z: Floats, weights: Floats | None = None) -> tuple[float, float]:
    """Return the degrees of freedom and the scale of the highest likelihood.

    Parameters
    ----------
    z : array of shape (n,)
        z-scores, not all 0, about 0.
    weights : array of shape (n,), optional
        Their weights.

    Returns
    -------
    df, scale : float
        Infinite degrees of freedom are those of a normal distribution. The standard
        deviation is scale · sqrt(df / (df − 2)), if df > 2.

    Examples
    --------
    >>> df, scale = fit_student(np.random.default_rng(0).standard_t(4, 20_000))
    >>> round(df, 1), round(scale, 2)
    (4.0, 0.99)
    """
    w = np.ones(z.size) if weights is None else weights
    w = w / w.sum()
    unit = float(np.abs(z).max())  # of which squares neither overflow nor vanish
    z2 = (z / unit) ** 2
    mean = float(w @ z2)
    z2 = z2 / mean
    # with fewer degrees of freedom, errors of exactly 0 would have all the likelihood
    least = max(LEAST_DF, 1.1 * (1 / float(w @ (z2 > 0)) - 1))

    def slope(log_df: float) -> float:
        """Return the slope of the log-likelihood by df, with the best scale."""
        df = np.exp(log_df)
        scale2 = best_scale2(z2, w, np.array([df]), 1e-14)[0]
        expected = special.digamma((df + 1) / 2) - special.digamma(df / 2)
        return float(expected - w @ np.log1p(z2 / (df * scale2)))

    if least >= MOST_DF or slope(np.log(MOST_DF)) >= 0:
        return float("inf"), unit * float(np.sqrt(mean))
    df = least
    if slope(np.log(least)) > 0:
        from scipy import optimize

        bounds = np.log(least), np.log(MOST_DF)
        df = float(np.exp(optimize.brentq(slope, *bounds, xtol=1e-13)))
    scale2 = float(best_scale2(z2, w, np.array([df]), 1e-14)[0])
    return df, unit * float(np.sqrt(mean * scale2))


def best_scale2(z2: Floats, shares: Floats, df: Floats, exact: float) -> Floats:
    """Return the squared scales of the highest likelihood, for degrees of freedom.

    They solve Σ share (df + 1) z² / (df scale² + z²) = 1, whose left side falls: by
    steps of the fixed point, which cannot fail, and where it is near by Newton's in the
    logarithm.
    """
    nu = df[:, None]
    scale2 = (df + 1) / (2 * df) * float(shares @ z2)
    for _ in range(100):
        part = z2 / (nu * scale2[:, None] + z2)
        value = (df + 1) * (part @ shares)
        off = value - 1
        if np.abs(off).max() < exact:
            break
        fall = (df + 1) * ((part - part * part) @ shares)
        newton = np.exp(np.clip(off / np.maximum(fall, 1e-300), -1, 1))
        scale2 = scale2 * np.where(np.abs(off) < 0.2, newton, value)
    return scale2


@dataclass(frozen=True, eq=False)
class StudentProfile:
    """How well each Student's t describes some z-scores, light and heavy ones.

    Attributes
    ----------
    n : float
        Independent errors, other than 0.
    loss : array
        What each loses against the best, as twice the logarithm of the likelihood.
    log_mean : array
        The logarithm of the mean of z² that each says.
    """

    n: float
    loss: Floats
    log_mean: Floats

    @classmethod
    def of(
        cls, z2: Floats, n_effective: float, weights: Floats | None = None
    ) -> StudentProfile | None:
        """Compare all; None if nearly all errors are exactly 0, which tell nothing."""
        x = _representative(z2, weights)
        nonzero = float(np.count_nonzero(x)) / x.size
        x = x[x > 0]
        if x.size < 5:
            return None
        n, nu, shares = n_effective * nonzero, DF, np.full(x.size, 1 / x.size)
        scale2 = best_scale2(x, shares, nu, 1e-4)
        loss = (nu + 1) * (np.log1p(x / (nu * scale2)[:, None]) @ shares)
        loss += np.log(nu * scale2)
        loss += 2 * (special.gammaln(nu / 2) - special.gammaln((nu + 1) / 2))
        log_mean = np.log(nonzero * scale2 * nu / (nu - 2))
        return cls(n, n * (loss - loss.min()), log_mean)

    def lost_by(self, df: float) -> float:
        """Return what tails lose that have so many degrees of freedom, or more."""
        return float(self.loss[df <= DF].min())

    @property
    def best(self) -> float:
        """The degrees of freedom of the best."""
        return float(DF[np.argmin(self.loss)])

    @property
    def heaviest(self) -> float:
        """The degrees of freedom of the heaviest that is not ruled out."""
        return float(DF[np.argmax(self.loss <= RULED_OUT)])

    def upper(
        self, confidence: float, most: float = RULED_OUT, least: float = 0.0
    ) -> float:
        """Return the upper limit of the mean of z² by all that lose at most so much.

        Of each, the logarithm of the variance is known to ± q sqrt(2 (1 + 3 / ν) / n),
        as its scale is. Tails with fewer than the `least` degrees of freedom
        are ruled out by something else.
        """
        possible = (self.loss <= most) & (least <= DF)
        possible[np.argmin(self.loss)] = True
        q = float(special.ndtri(0.5 + confidence / 2))
        high = (self.log_mean + q * np.sqrt(2 * (1 + 3 / DF) / self.n))[possible].max()
        return float(np.exp(np.minimum(high, 600)))


def _representative(x: Floats, weights: Floats | None) -> Floats:
    """Return values that stand for all of them: quantiles at equal steps."""
    n = min(x.size, POINTS)
    if weights is None and x.size == n:
        return x
    if weights is None:
        rows = ((np.arange(n) + 0.5) * (x.size / n)).astype(np.int64)
        return np.asarray(np.sort(x)[rows])
    order = np.argsort(x, kind="stable")
    line = WeightLine(weights[order])
    middles = (np.arange(n) + 0.5) / n * line.total
    return np.asarray(x[order[line.reaching(middles)]])
