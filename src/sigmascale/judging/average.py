"""The average of z², with an interval that knows what heavy tails can hide.

The mean of a sample of z² says little about rare, enormous errors that the sample does
not have. Two intervals are made, and what is shown reaches as far as either of them:

* the closed form from the set's own moments (ABC), which needs no law, but knows only
  the errors that are there;
* that of a Student's t whose number of degrees of freedom was fitted to the set: the
  mean of z², divided by its true value, then has a known distribution. Its upper limit
  is that of the heaviest tail that the set does not rule out.

A lower limit is also taken from sets whose largest z² were reduced, which can only make
the mean smaller: a few more enormous errors never make uncertainties look better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, special, stats

from .._support.checks import Floats
from .._support.weights import effective_number, mean_of, quantile_of
from ..predictions import Predictions
from .intervals import interval_of_all

SIMULATED = 2500  # means of z² behind the quantiles of a law
LARGEST_VALUES = 60  # of a simulated sample; the others are summed by their moments
LIGHT = 200.0  # degrees of freedom beyond which errors are as good as normal
MOST_FITTED = 10_000  # rows that a law is fitted to
REDUCED = (0.01, 0.05, 0.2)  # shares of the largest z² that are reduced
HEAVIER = 9.0  # twice the log-likelihood that the heaviest tail not ruled out may lose


@dataclass(frozen=True)
class Average:
    """The mean of z², its interval, and the law behind it.

    Attributes
    ----------
    zms, low, high : float
        The mean of z² and the limits of its interval.
    level : float
        The coverage of the interval.
    nu, nu_low : float
        Degrees of freedom of the Student's t that fits best, and of the heaviest one
        that is not ruled out; infinite for normal errors.
    n_effective : float
        The number of independent rows that would determine the mean as well.
    """

    zms: float
    low: float
    high: float
    level: float
    nu: float
    nu_low: float
    n_effective: float

    @property
    def is_off(self) -> bool:
        """Whether the interval excludes 1."""
        return not self.low <= 1 <= self.high

    def __str__(self) -> str:
        """Return the mean and its interval."""
        return f"<Z²> = {self.zms:.2f} [{self.low:.2f}, {self.high:.2f}]"


def average_of(rows: Predictions, level: float, rng: np.random.Generator) -> Average:
    """Return the mean of z² of all rows, with an interval of that coverage."""
    z2, groups, weights = rows.z2, rows.group_codes, rows.weights
    mean = rows.mean(z2)
    if mean == 0:
        return Average(0.0, 0.0, 0.0, level, np.inf, np.inf, float(rows.total))
    low, high, n_effective = interval_of_all(z2, groups, level, weights)
    low = max(0.0, low)
    nu, nu_low = fit_nu(rows.z, weights)
    upper = 0.5 + level / 2
    n = max(2, round(n_effective))
    low = min(low, mean / _mean_quantiles(nu, n, upper, rng)[1])
    high = max(high, mean / _mean_quantiles(nu_low, n, upper, rng)[0])
    for share in REDUCED:
        limited = np.minimum(z2, quantile_of(z2, 1 - share, weights))
        low = max(low, interval_of_all(limited, groups, level, weights)[0])
    return Average(mean, low, high, level, nu, nu_low, n_effective)


def fit_nu(z: Floats, weights: Floats | None = None) -> tuple[float, float]:
    """Return the degrees of freedom of a Student's t, and the least not ruled out.

    Errors of exactly 0 tell nothing about the tails, and do not count.
    """
    x, w = np.abs(z[z != 0]), None if weights is None else weights[z != 0]
    if x.size < 5:
        return np.inf, 2.01
    if x.size > MOST_FITTED:  # more do not make it more certain than it needs to be
        some = slice(None, None, -(-x.size // MOST_FITTED))
        if w is None:
            x = np.sort(x)[some]
        else:
            order = np.argsort(x)
            x, w = x[order][some], w[order][some]
    squares = (x / np.median(x)) ** 2
    n_rows = x.size if w is None else effective_number(w)

    def loss(log_excess: float) -> float:
        """Return minus twice the log-likelihood, with the best scale."""
        nu = 2 + np.exp(log_excess)
        variance = 0.5  # by a few steps of the fixed point of maximum likelihood
        for _ in range(12):
            variance = (nu + 1) * mean_of(squares / (nu + squares / variance), w)
        tails = (nu + 1) * mean_of(np.log1p(squares / (nu * variance)), w)
        constant = special.gammaln((nu + 1) / 2) - special.gammaln(nu / 2)
        return float(n_rows * (tails + np.log(nu * variance) - 2 * constant))

    found = optimize.minimize_scalar(
        loss, bounds=(-4, 9), method="bounded", options={"xatol": 0.02}
    )
    best, least = float(found.x), float(found.fun)
    low = -4.0
    if loss(low) - least > HEAVIER:
        low = optimize.brentq(
            lambda value: loss(value) - least - HEAVIER, low, best, xtol=0.02
        )
    nu, nu_low = (2 + float(np.exp(value)) for value in (best, low))
    return (np.inf if nu > LIGHT else nu), nu_low


def _mean_quantiles(
    nu: float, n: int, upper: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Return two quantiles, 1 - upper and upper, of the mean of n z² of unit mean."""
    if nu > LIGHT:
        chi2 = stats.chi2.ppf([1 - upper, upper], n) / n
        return float(chi2[0]), float(chi2[1])
    means = _simulated_means(nu, n, rng)
    low, high = np.quantile(means, [1 - upper, upper])
    return float(low), float(high)


def _simulated_means(nu: float, n: int, rng: np.random.Generator) -> Floats:
    """Draw means of n squares of a Student's t of unit variance.

    The largest squares decide: those beyond a threshold are drawn one by one, and the
    sum of the others is as good as normal.
    """
    unit = (nu - 2) / nu
    share = min(1.0, LARGEST_VALUES / n)
    # t² as a function of its upper tail probability, on a fine grid
    tail = np.geomspace(1e-12, share, 1000)
    squares = special.stdtrit(nu, 1 - tail / 2) ** 2 * unit
    if share == 1.0:
        counts, body = np.full(SIMULATED, n), np.zeros(SIMULATED)
    else:
        counts = rng.binomial(n, share, SIMULATED)
        # the moments of what is below the threshold
        p = (np.arange(5000) + 0.5) / 5000 * (1 - share)
        below = special.stdtrit(nu, 0.5 + p / 2) ** 2 * unit
        rest = n - counts
        noise = rng.standard_normal(SIMULATED)
        body = rest * below.mean() + np.sqrt(rest) * below.std() * noise
    drawn = (1 - rng.random(int(counts.sum()))) * share  # never 0
    logs = np.log(np.maximum(squares, 1e-300))
    values = np.exp(np.interp(np.log(drawn), np.log(tail), logs))
    ends = np.cumsum(counts)
    tails: Any = np.add.reduceat(np.append(values, 0.0), ends - counts)
    means: Floats = (body + np.where(counts > 0, tails, 0.0)) / n
    return means
