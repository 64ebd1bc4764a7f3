"""A linear law for the variance."""

from __future__ import annotations

import numpy as np

from .._support.checks import Floats, Ints
from ..maps import UNCERTAINTY, Constant, Hypotenuse, Node, Product
from .base import VarianceScaler
from .summaries import Summaries


class LinearScaling(VarianceScaler):
    """Rescale u to sqrt(a² u² + b²), with a and b of maximum likelihood.

    The factor `a` mends a wrong scale, the floor `b` uncertainties that are too small
    where they are smallest. Two numbers can be learned from a few dozen rows.

    Attributes
    ----------
    a_, b_ : float
        The factor, and the floor in the unit of the error; both are at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(0, 1, 20_000)
    >>> scaler = LinearScaling().fit(u, rng.normal(scale=np.hypot(2 * u, 0.5)))
    >>> round(scaler.a_, 1), round(scaler.b_, 1)
    (2.0, 0.5)
    """

    does = "every u is replaced by sqrt(a² u² + b²) with a and b of maximum likelihood"

    def _learn_from_sums(self, data: Summaries) -> Node:
        found = data.variances()
        self.a_, self.b_ = linear_law(found.u2, found.e2, found.n)
        return Hypotenuse(Product((Constant(self.a_), UNCERTAINTY)), Constant(self.b_))

    def _learned_words(self) -> str:
        return f"a = {self.a_:.4g} and b = {self.b_:.4g}, in the error's unit."


def linear_law(u2: Floats, e2: Floats, n: Ints | None) -> tuple[float, float]:
    """Return a and b of maximum likelihood from squares of rows, or means of n rows."""
    u_unit, e_unit = (np.sqrt(np.average(x, weights=n)) for x in (u2, e2))
    slope, floor = _fit_variance(u2 / u_unit**2, e2 / e_unit**2, n)
    a, b = np.sqrt(slope) * e_unit / u_unit, np.sqrt(floor) * e_unit
    return float(a), float(b)


def scored_law(u2: Floats, e2: Floats, n: Ints) -> tuple[float, float]:
    """Return the slope and floor of the variance, by a few steps of Fisher scoring.

    It is the law of :func:`linear_law` to a few digits, in a hundredth of the time: for
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


def _fit_variance(u2: Floats, e2: Floats, n: Ints | None) -> tuple[float, float]:
    """Return (slope, floor) that minimise <ln v + e²/v>, v = slope u² + floor.

    Both u² and e² have unit mean; each is that of one row, or of n.
    """
    from scipy import optimize

    def mean(x: Floats) -> float:
        return float(np.average(x, weights=n))

    def loss(log_parameters: Floats) -> tuple[float, Floats]:
        slope, floor = np.exp(log_parameters)
        v = slope * u2 + floor
        pull = (1 - e2 / v) / v
        gradient = np.array([slope * mean(pull * u2), floor * mean(pull)])
        return mean(np.log(v) + e2 / v), gradient

    # The edges of the parameters' range have solutions of their own: a factor with no
    # floor, and a floor with no factor. What is searched must beat them to be kept.
    factor = mean(e2 / u2)
    candidates = [
        (factor, 0.0, np.log(factor) + mean(np.log(u2)) + 1),
        (0.0, 1.0, 1.0),
    ]
    for start in ((0.5, 0.5), (min(factor, 1e3), 1e-3), (1e-2, 0.9)):
        found = optimize.minimize(
            loss,
            np.log(start),
            jac=True,
            method="L-BFGS-B",
            bounds=[(-60, 120), (-60, 5)],
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 500},
        )
        slope, floor = np.exp(found.x)
        candidates.append((float(slope), float(floor), float(found.fun)))
    best = candidates[0]
    for candidate in candidates[1:]:
        if candidate[2] < best[2] - 1e-12 * max(1, abs(best[2])):
            best = candidate
    return best[0], best[1]
