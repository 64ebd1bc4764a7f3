"""Student's t as a description of z-scores: how heavy their tails are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from .._support.checks import Floats
from .._support.weighting import WeightLine, ones_if_none

LEAST_DF = 0.1
MOST_DF = 1000.0  # Student's t with more is normal
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
    shares = ones_if_none(weights, z.size)
    shares = shares / shares.sum()
    # in units of the largest, of which squares neither overflow nor vanish
    unit = float(np.abs(z).max())
    z2 = (z / unit) ** 2
    mean = float(shares @ z2)
    z2 = z2 / mean
    # with fewer degrees of freedom, errors of exactly 0 would have all the likelihood
    least = max(LEAST_DF, 1.1 * (1 / float(shares @ (z2 > 0)) - 1))

    def slope(log_df: float) -> float:
        """Return the slope of the log-likelihood by df, with the best scale."""
        df = np.exp(log_df)
        scale2 = best_scale2(z2, shares, np.array([df]), 1e-14)[0]
        expected = special.digamma((df + 1) / 2) - special.digamma(df / 2)
        return float(expected - shares @ np.log1p(z2 / (df * scale2)))

    if least >= MOST_DF or slope(np.log(MOST_DF)) >= 0:
        return float("inf"), unit * float(np.sqrt(mean))
    df = least
    if slope(np.log(least)) > 0:
        from scipy import optimize

        bounds = np.log(least), np.log(MOST_DF)
        df = float(np.exp(optimize.brentq(slope, *bounds, xtol=1e-13)))
    scale2 = float(best_scale2(z2, shares, np.array([df]), 1e-14)[0])
    return df, unit * float(np.sqrt(mean * scale2))


def best_scale2(z2: Floats, shares: Floats, df: Floats, exact: float) -> Floats:
    """Return the squared scales of the highest likelihood, for degrees of freedom.

    They solve Σ share (ν + 1) z² / (ν scale² + z²) = 1, whose left side falls: by
    steps of the fixed point, which cannot fail, and where it is near by Newton's in the
    logarithm.
    """
    nu = df[:, None]
    scale2 = (df + 1) / (2 * df) * float(shares @ z2)
    for _ in range(100):
        # with f = z² / (ν scale² + z²), the left side is (ν + 1) ⟨f⟩
        fraction = z2 / (nu * scale2[:, None] + z2)
        left_side = (df + 1) * (fraction @ shares)
        excess = left_side - 1
        if np.abs(excess).max() < exact:
            break
        # and its slope in ln scale² is −(ν + 1) ⟨f − f²⟩
        fall = (df + 1) * ((fraction - fraction * fraction) @ shares)
        newton = np.exp(np.clip(excess / np.maximum(fall, 1e-300), -1, 1))
        scale2 = scale2 * np.where(np.abs(excess) < 0.2, newton, left_side)
    return scale2


def profile_losses(
    z2: Floats, shares: Floats, n: float, df: Floats, exact: float
) -> tuple[Floats, Floats]:
    """Return the best squared scale of each Student's t, and what each t loses.

    The loss against the best of them is −2 ln L of n rows, with the density of z,
    Γ((ν + 1) / 2) / Γ(ν / 2) / √(ν s²) · (1 + z² / (ν s²))^(−(ν + 1) / 2) but for a
    constant.
    """
    scale2 = best_scale2(z2, shares, df, exact)
    loss = (df + 1) * (np.log1p(z2 / (df * scale2)[:, None]) @ shares)
    loss += np.log(df * scale2)
    loss += 2 * (special.gammaln(df / 2) - special.gammaln((df + 1) / 2))
    return scale2, n * (loss - loss.min())


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
        sample = _representative(z2, weights)
        nonzero = float(np.count_nonzero(sample)) / sample.size
        sample = sample[sample > 0]
        if sample.size < 5:
            return None

        n = n_effective * nonzero
        shares = np.full(sample.size, 1 / sample.size)
        scale2, loss = profile_losses(sample, shares, n, DF, 1e-4)
        log_mean = np.log(nonzero * scale2 * DF / (DF - 2))
        return cls(n, loss, log_mean)

    @property
    def best(self) -> float:
        """The degrees of freedom of the best."""
        return float(DF[np.argmin(self.loss)])

    def upper(self, confidence: float) -> float:
        """Return the upper limit of the mean of z² by all that are not ruled out.

        Of each, the logarithm of the variance is known to ± q sqrt(2 (1 + 3 / ν) / n),
        as its scale is.
        """
        is_possible = self.loss <= RULED_OUT
        q = float(special.ndtri(0.5 + confidence / 2))
        limits = self.log_mean + q * np.sqrt(2 * (1 + 3 / DF) / self.n)
        highest = limits[is_possible].max()
        return float(np.exp(np.minimum(highest, 600)))


def _representative(values: Floats, weights: Floats | None) -> Floats:
    """Return values that stand for all of them: quantiles at equal steps."""
    n = min(values.size, POINTS)
    if weights is None and values.size == n:
        return values
    if weights is None:
        rows = ((np.arange(n) + 0.5) * (values.size / n)).astype(np.int64)
        return np.asarray(np.sort(values)[rows])
    order = np.argsort(values, kind="stable")  # of itself alone
    line = WeightLine(weights[order])
    middles = (np.arange(n) + 0.5) / n * line.total
    return np.asarray(values[order[line.reaching(middles)]])
