"""A linear law for the variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._support.checks import Floats, Ints
from ..maps import UNCERTAINTY, Clip, Constant, Hypotenuse, Node, Product, Root, Sum
from .base import VarianceScaler
from .summaries import Summaries, Variances

SMALL = 0.05  # share of the uncertainties that count as small
LEAST_SHARE = 0.25  # of a² u², for a small u, that is left where b² is subtracted
PER_DECADE = 4  # values of b² that are tried
NEGATIVE = 24  # values of b² < 0 that are tried
MANY = 4096  # rows beyond which means of neighbours show where to look
BETTER = 1e-12  # by which a loss must be lower
CLEARLY = 2.0  # by which the log-likelihood must be higher if b² is subtracted


class LinearScaling(VarianceScaler):
    """Rescale u to sqrt(a² u² ± b²), with a and b of maximum likelihood.

    The factor `a` mends a wrong scale, and `b` uncertainties that are too small where
    they are smallest. Where these are plainly too large, because u has a part that
    errors do not have, b² is subtracted; what is left of the smallest uncertainties is
    bounded from below. Two numbers can be learned from a few dozen rows.

    Parameters
    ----------
    subtract : bool, default True
        Whether b² may be subtracted.

    Attributes
    ----------
    a_, b_ : float
        The factor, which is at least 0, and the root of what is added to the variance,
        in the unit of the error; b² is subtracted where `b_` is negative.
    least_ : float
        What results are at least, in the unit of the error: where b² is subtracted,
        half of a u for the u that 5 % of the uncertainties are below; else 0.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(0, 1, 20_000)
    >>> scaler = LinearScaling().fit(u, rng.normal(scale=np.hypot(2 * u, 0.5)))
    >>> round(scaler.a_, 1), round(scaler.b_, 1)
    (2.0, 0.5)
    """

    def __init__(self, *, subtract: bool = True) -> None:
        self.subtract = subtract

    does = (
        "every u is replaced by sqrt(a² u² + b²), or sqrt(a² u² - b²) where the errors "
        "want that, with a and b of maximum likelihood"
    )

    def _learn_from_sums(self, data: Summaries) -> Node:
        law = linear_law(data.variances(), subtract=self.subtract)
        self.a_, self.b_, self.least_ = law.a, law.b, law.least
        return law.map

    def _learned_words(self) -> str:
        words = f"a = {self.a_:.4g} and b = {abs(self.b_):.4g}, in the error's unit"
        if self.b_ >= 0:
            return f"{words}."
        return f"{words}; b² is subtracted, and the result at least {self.least_:.4g}."


@dataclass(frozen=True)
class LinearLaw:
    """The law sqrt(a² u² + b²), or sqrt(max(a² u² - b², least²)) where b is negative.

    Attributes
    ----------
    a, b, least : float
        Its numbers.
    """

    a: float
    b: float
    least: float

    @property
    def map(self) -> Node:
        """The law as a map."""
        au = Product((Constant(self.a), UNCERTAINTY))
        if self.b >= 0:
            return Hypotenuse(au, Constant(self.b))
        variance = Sum((Product((au, au)), Constant(-(self.b**2))))
        return Root(Clip(variance, self.least**2, float(np.finfo(np.float64).max)))


def linear_law(data: Variances, *, subtract: bool) -> LinearLaw:
    """Return the law of maximum likelihood, of squares of rows or means of n rows.

    For v = s (u² + c) the best s is that of one factor, <E² / (u² + c)>. So one number
    is searched: the best of many values of c, and the root of the slope next to it.
    """
    u_unit, e_unit = (
        float(np.sqrt(np.average(x, weights=data.n))) for x in (data.u2, data.e2)
    )
    u2, e2 = data.u2 / u_unit**2, data.e2 / e_unit**2
    rows = _Profile(u2, e2, data.n, LEAST_SHARE * _small(u2, data.n))
    means = rows.of_neighbours() if u2.size > MANY else rows
    low, high = float(u2.min()) / 10, float(u2.max()) * 1e4
    n_tried = 2 + int(PER_DECADE * np.log10(high / low))
    added = np.concatenate([[0.0], np.geomspace(low, high, n_tried)])
    share = np.linspace(1, 1 / NEGATIVE, NEGATIVE)
    subtracted = -(1 / LEAST_SHARE - 1) * rows.least * share
    searched = [added, subtracted] if subtract else [added]
    # A factor alone comes first, then a value alone: what is searched must beat them.
    best, best_loss = 0.0, rows.loss(0.0)
    found = (np.inf, *(_lowest(rows, means, each) for each in searched))
    n_rows = u2.size if data.n is None else float(np.sum(data.n))
    for c in found:
        loss = rows.loss(c)
        better = BETTER * max(1, abs(best_loss)) if c >= 0 else 2 * CLEARLY / n_rows
        if loss < best_loss - better:
            best, best_loss = c, loss
    if best == np.inf:
        return LinearLaw(0.0, e_unit, 0.0)
    a = np.sqrt(rows.slope_for(best)) * e_unit / u_unit
    b = np.sign(best) * np.sqrt(abs(best)) * u_unit * a
    least = np.sqrt(rows.least) * u_unit * a if best < 0 else 0.0
    return LinearLaw(float(a), float(b), float(least))


@dataclass(frozen=True)
class _Profile:
    """The likelihood of v = s (u² + c) with the best s, as a function of c.

    Both u² and e² have unit mean, and each is that of one row, or of n. Where c is
    negative, u² + c is at least `least`.
    """

    u2: Floats
    e2: Floats
    n: Ints | Floats | None
    least: float

    def _mean(self, x: Floats) -> float:
        return float(np.average(x, weights=self.n))

    def _shape(self, c: float) -> Floats:
        shape: Floats = self.u2 + c
        return np.maximum(shape, self.least, out=shape) if c < 0 else shape

    def slope_for(self, c: float) -> float:
        """Return the best s."""
        return self._mean(self.e2 / self._shape(c))

    def loss(self, c: float) -> float:
        """Return the lowest <ln v + e²/v> - 1; that of a constant v for c = inf."""
        if c == np.inf:
            return 0.0
        shape = self._shape(c)
        return float(np.log(self._mean(self.e2 / shape))) + self._mean(np.log(shape))

    def gradient(self, c: float) -> float:
        """Return the derivative of the loss, up to a positive factor."""
        shape = self._shape(c)
        pull = shape.min() / shape  # no square of it overflows
        ratio = self.e2 * pull
        if c < 0:
            pull[shape <= self.least] = 0.0
        return self._mean(pull) * self._mean(ratio) - self._mean(ratio * pull)

    def of_neighbours(self) -> _Profile:
        """Return that of the means of rows of nearly equal u."""
        log = np.log(self.u2)
        low, width = float(log.min()), float(np.ptp(log)) / MANY or 1.0
        code = ((log - low) / width).astype(np.int64)
        ones = np.ones(self.u2.size) if self.n is None else self.n
        n = np.bincount(code, ones)
        u2, e2 = (np.bincount(code, ones * x) for x in (self.u2, self.e2))
        some = n > 0
        return _Profile(u2[some] / n[some], e2[some] / n[some], n[some], self.least)


def _lowest(rows: _Profile, means: _Profile, tried: Floats) -> float:
    """Return the best of ascending values, or of those between it and the next."""
    from scipy import optimize

    at = int(np.argmin([means.loss(float(c)) for c in tried]))
    best = float(tried[at])
    slope = rows.gradient(best)
    next_to = at - int(np.sign(slope))
    if not slope or not 0 <= next_to < tried.size:
        return best
    end = float(tried[next_to])
    if rows.gradient(end) * slope >= 0:
        return best
    # where sizes differ absurdly it may not converge, and is near enough all the same
    between: float = optimize.brentq(
        rows.gradient, best, end, xtol=1e-15 * abs(best - end), disp=False
    )
    return between


def _small(u2: Floats, n: Ints | Floats | None) -> float:
    """Return the u² that 5 % of the rows are below."""
    if n is None:
        rank = int(SMALL * (u2.size - 1))
        return float(np.partition(u2, rank)[rank])
    order = np.argsort(u2)
    ends = np.cumsum(n[order])
    rank = int(np.searchsorted(ends, np.floor(SMALL * (ends[-1] - 1)), side="right"))
    return float(u2[order[rank]])


def scored_law(u2: Floats, e2: Floats, n: Ints | Floats) -> tuple[float, float]:
    """Return the slope and floor of the variance, by a few steps of Fisher scoring.

    It is the law of `LinearScaling` to a few digits, in a hundredth of the time: for
    those who need it as a guide only.
    """
    # in units in which both have the mean 1, so that no square overflows
    u_unit, e_unit = float(np.average(u2, weights=n)), float(np.average(e2, weights=n))
    if not 0 < e_unit < np.inf:
        return 0.0, e_unit
    u2, e2 = u2 / u_unit, e2 / e_unit
    no_floor = float(np.average(e2 / np.maximum(u2, 1e-12), weights=n))
    slope, floor = 1.0, 0.0
    for _ in range(12):
        v = np.maximum(slope * u2 + floor, 1e-12 * np.max(slope * u2 + floor))
        weights = n / v**2
        # the normal equations of e² = slope u² + floor with these weights
        w, x = float(weights.sum()), float(weights @ u2)
        xx, y, xy = (
            float(weights @ u2**2),
            float(weights @ e2),
            float(weights @ (u2 * e2)),
        )
        determinant = w * xx - x * x
        if determinant <= 1e-12 * w * xx:  # all uncertainties are equal
            break
        slope, floor = (w * xy - x * y) / determinant, (xx * y - x * xy) / determinant
        if slope < 0:  # of one kind only, by maximum likelihood
            slope, floor = 0.0, 1.0
        elif floor < 0:
            slope, floor = no_floor, 0.0
    return slope * e_unit / u_unit, floor * e_unit
