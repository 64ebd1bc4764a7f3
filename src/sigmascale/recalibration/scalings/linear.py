"""Functions of u alone, by maximum likelihood: sqrt(a² u² ± b²)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._support.checks import Floats
from ..._support.weighting import WeightLine, mean_of, ones_if_none
from ...predictions.predictions import Predictions
from ..additive import Additive, Base
from .scaling import Learned, Scaling

SMALL = 0.05  # share of the uncertainties that count as small
LEAST_SHARE = 0.25  # of a² u², for a small u, that is left where b² is subtracted
PER_DECADE = 4  # positive values of c that are tried
N_NEGATIVE = 24  # negative values of c that are tried
NEIGHBOURHOODS = 4096  # rows beyond which means of neighbours show where to look
BETTER = 1e-12  # by which a loss must be lower
# By which the log-likelihood must be higher if b² is subtracted: of 40 sets of 300 rows
# whose u is right, 2 subtract it; with 0, 20 do (test_decisions.py).
CLEARLY = 2.0


class LinearScaling(Scaling):
    """Rescale u to sqrt(a² u² ± b²), with a and b of maximum likelihood.

    The factor `a` corrects a wrong scale, and `b` uncertainties that are too small
    where they are smallest. Where these are too large by more than chance, because u
    has a part that errors do not have, b² is subtracted; what is left of the smallest
    uncertainties is bounded from below. Two numbers can be learned from a few dozen
    rows.

    Parameters
    ----------
    subtract : bool, default True
        Whether b² may be subtracted.

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(0, 1, 20_000)
    >>> p = ss.Predictions(y_std=u, error=rng.normal(scale=np.hypot(2 * u, 0.5)))
    >>> base = ss.LinearScaling().learn(p).map.base
    >>> round(base.a, 1), round(base.b, 1)
    (2.0, 0.5)
    """

    def __init__(self, *, subtract: bool = True) -> None:
        self.subtract = subtract

    def learn(self, rows: Predictions) -> Learned:
        """Return what is learned of rows; see :class:`Scaling`."""
        return Learned(Additive(linear_base(rows, subtract=self.subtract)))


def linear_base(rows: Predictions, *, subtract: bool) -> Base:
    """Return sqrt(a² u² ± b²) of maximum likelihood.

    For v = s (u² + c) the best s is that of one factor, <E² / (u² + c)>. So one number
    is searched, c = ±b² / a²: the best of many values, and the root of the slope next
    to it.
    """
    weights = rows.weights
    u2 = rows.y_std**2
    e2 = rows.squared_error
    # in units in which both have the mean 1, so that no square leaves the range
    u2_unit = mean_of(u2, weights)
    e2_unit = mean_of(e2, weights)
    u2 = u2 / u2_unit
    e2 = e2 / e2_unit

    # the best c
    least = LEAST_SHARE * _small(u2, weights)
    likelihood = _LineLikelihood(u2, e2, weights, least)
    c = _best_offset(likelihood, rows.n_effective, subtract=subtract)

    # a = sqrt(s) and b = a sqrt(c), in the units of u and e
    if c == np.inf:  # a value alone, whatever u is
        return Base(0.0, float(np.sqrt(e2_unit)))
    a = float(np.sqrt(likelihood.slope_for(c) * (e2_unit / u2_unit)))
    b = float(np.sign(c) * np.sqrt(abs(c) * u2_unit) * a)
    if c >= 0:
        return Base(a, b)
    return Base(a, b, float(np.sqrt(least * u2_unit) * a))


def _best_offset(
    likelihood: _LineLikelihood, n_effective: float, *, subtract: bool
) -> float:
    """Return the best c; 0 is a factor alone, infinity a value alone."""
    u2 = likelihood.u2
    means = likelihood.of_neighbours() if u2.size > NEIGHBOURHOODS else likelihood
    # the best of the positive values, and of the negative ones
    low = float(u2.min()) / 10
    high = float(u2.max()) * 1e4
    n_tried = 2 + int(PER_DECADE * np.log10(high / low))
    positive = np.append(0.0, np.geomspace(low, high, n_tried))
    candidates = [np.inf, _lowest(likelihood, means, positive)]
    if subtract:
        # so far that LEAST_SHARE of the variance of a small u is left
        farthest = (1 / LEAST_SHARE - 1) * likelihood.least
        negative = -farthest * np.linspace(1, 1 / N_NEGATIVE, N_NEGATIVE)
        candidates.append(_lowest(likelihood, means, negative))

    # a factor alone comes first, then a value alone: what is searched must beat them
    best = 0.0
    best_loss = likelihood.loss(0.0)
    for c in candidates:
        loss = likelihood.loss(c)
        gain_needed = BETTER * max(1, abs(best_loss))
        if c < 0:
            gain_needed = 2 * CLEARLY / n_effective
        if loss < best_loss - gain_needed:
            best = c
            best_loss = loss
    return best


@dataclass(frozen=True)
class _LineLikelihood:
    """The likelihood of v = s (u² + c) with the best s, as a function of c.

    Attributes
    ----------
    u2, e2 : array of shape (n,)
        Squared uncertainties and errors, both of unit mean.
    weights : array of shape (n,) or None
        The rows that each stands for.
    least : float
        What u² + c is at least, where c is negative.
    """

    u2: Floats
    e2: Floats
    weights: Floats | None
    least: float

    def _shape(self, c: float) -> Floats:
        """Return u² + c."""
        shape: Floats = self.u2 + c
        return np.maximum(shape, self.least, out=shape) if c < 0 else shape

    def slope_for(self, c: float) -> float:
        """Return the best s, <E² / (u² + c)>."""
        return mean_of(self.e2 / self._shape(c), self.weights)

    def loss(self, c: float) -> float:
        """Return the lowest <ln v + E²/v> − 1; that of a constant v for c = inf."""
        if c == np.inf:
            return 0.0
        shape = self._shape(c)
        log_s = float(np.log(mean_of(self.e2 / shape, self.weights)))
        return log_s + mean_of(np.log(shape), self.weights)

    def gradient(self, c: float) -> float:
        """Return the derivative of the loss by c, up to a positive factor.

        With w = 1 / (u² + c) it is <w> <E² w> − <E² w²>; each w is taken relative to
        the largest, so that no square of it overflows.
        """
        shape = self._shape(c)
        w = shape.min() / shape
        e2_w = self.e2 * w
        if c < 0:
            w[shape <= self.least] = 0.0  # where c changes nothing
        product_of_means = mean_of(w, self.weights) * mean_of(e2_w, self.weights)
        return product_of_means - mean_of(e2_w * w, self.weights)

    def of_neighbours(self) -> _LineLikelihood:
        """Return that of the means of rows of nearly equal u."""
        log_u2 = np.log(self.u2)
        width = float(np.ptp(log_u2)) / NEIGHBOURHOODS or 1.0
        bin_of_row = ((log_u2 - float(log_u2.min())) / width).astype(np.int64)
        weights = ones_if_none(self.weights, self.u2.size)
        n: Any = np.bincount(bin_of_row, weights)
        sum_u2 = np.bincount(bin_of_row, weights * self.u2)
        sum_e2 = np.bincount(bin_of_row, weights * self.e2)
        filled = n > 0
        n = n[filled]
        return _LineLikelihood(sum_u2[filled] / n, sum_e2[filled] / n, n, self.least)


def _lowest(rows: _LineLikelihood, means: _LineLikelihood, tried: Floats) -> float:
    """Return the best of ascending values of c, or of those between it and the next.

    The loss of `means` shows where to look, and the slope of `rows` which way.
    """
    from scipy import optimize

    at = int(np.argmin([means.loss(float(c)) for c in tried]))
    best = float(tried[at])
    slope = rows.gradient(best)
    neighbour = at - int(np.sign(slope))
    if not slope or not 0 <= neighbour < tried.size:
        return best
    end = float(tried[neighbour])
    if rows.gradient(end) * slope >= 0:
        return best
    # where sizes differ absurdly it may not converge, and is near enough all the same
    root: float = optimize.brentq(
        rows.gradient, best, end, xtol=1e-15 * abs(best - end), disp=False
    )
    return root


def _small(u2: Floats, weights: Floats | None) -> float:
    """Return the u² that 5 % of the rows are below."""
    if weights is None:
        rank = int(SMALL * (u2.size - 1))
        return float(np.partition(u2, rank)[rank])
    order = np.argsort(u2, kind="stable")  # as given
    line = WeightLine(weights[order])
    return float(u2[order[line.after(SMALL * line.total)]])
