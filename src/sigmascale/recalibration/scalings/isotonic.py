"""The isotonic fit of squared errors, each step of it shrunk towards a line."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._support.checks import Floats, Ints, check_nonnegative, rounded
from ..._support.weighting import ones_if_none
from ...predictions.predictions import Predictions
from ..additive import Additive, Base
from .scaling import Learned, Scaling

N_SWEEPS = 12  # of Fisher scoring, each of which squares what is left of the error
TINY = 1e-12  # relative to the mean, or to the largest: nothing


class IsotonicScaling(Scaling):
    """Replace u² by the isotonic (non-decreasing) fit of the squared errors.

    The fit alone gives its first steps, often of one or two rows, whatever variance
    these rows happen to have, and new rows there can have enormous z-scores. Every step
    is therefore shrunk towards the line of :class:`LinearScaling`, as if it had more
    rows that follow that line.

    Parameters
    ----------
    prior_rows : float, default 12
        How many rows of the line each step gets. 0 is the isotonic fit alone, in which
        steps of only zero errors are raised to the next one.

    Notes
    -----
    A step of n rows with the mean squared error m, at whose rows the line has the mean
    variance l, gets (n m + k l) / (n + k), with k prior rows. Steps that are then out
    of order are pooled again. Between steps, the variance is linear in u².

    With errors from N(0, 1.5 u) and 200 sets of 200 rows to learn from, <Z²> of new
    rows is, in the mean over the sets and in the worst of them:

    =========  ============  ============
    u          k = 0         k = 12
    =========  ============  ============
    lognormal  4.57 (531)    1.08 (1.41)
    uniform    1.54 (34.7)   1.08 (1.44)
    gamma      1.85 (99.2)   1.10 (1.38)
    =========  ============  ============

    References
    ----------
    J. Busk et al., Mach. Learn.: Sci. Technol. 3, 015012 (2022),
    doi:10.1088/2632-2153/ac3eb3

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.Predictions(y_std=[1.0, 2.0, 3.0, 4.0], error=[2.0, 1.0, 3.0, 3.0])
    >>> ss.IsotonicScaling(prior_rows=0).learn(p).map.of_rows(p)[[0, -1]].round(2)
    array([1.58, 3.  ])
    >>> ss.IsotonicScaling().learn(p).map.of_rows(p)[[0, -1]].round(2)
    array([1.86, 2.81])
    """

    N_POINTS = 500  # means that the line is fitted to: it has but two parameters

    def __init__(self, *, prior_rows: float = 12.0) -> None:
        self.prior_rows = prior_rows

    def learn(self, rows: Predictions) -> Learned:
        """Return what is learned of rows; see :class:`Scaling`."""
        from sklearn.isotonic import isotonic_regression

        prior_rows = check_nonnegative(self.prior_rows, "prior_rows")
        # rows of equal u² are one point
        u2, point = np.unique(rounded(rows.y_std**2), return_inverse=True)  # rounded
        weights = ones_if_none(rows.weights, rows.n_rows)
        n: Any = np.bincount(point, weights)
        e2 = np.bincount(point, weights * rows.squared_error) / n
        variance = isotonic_regression(e2, sample_weight=n)
        if prior_rows:
            variance = self._shrunk(u2, e2, n, variance, prior_rows)
        # a step is told by its two ends
        changes = np.diff(variance) != 0
        is_end = np.append(True, changes) | np.append(changes, True)
        positive = np.maximum(variance[is_end], variance[variance > 0].min())
        return Learned(Additive(Base(knots=u2[is_end], values=positive)))

    def _shrunk(
        self, u2: Floats, e2: Floats, n: Floats, variance: Floats, prior_rows: float
    ) -> Floats:
        """Return steps that are shrunk towards the line: (n m + k l) / (n + k)."""
        from sklearn.isotonic import isotonic_regression

        # equal shares of the rows, so that many rows take no more time than a few
        share = _run_numbers((np.cumsum(n) - 1) * self.N_POINTS // n.sum())
        n_share: Any = np.bincount(share, n)
        slope, floor = _scored_line(_means(share, n, u2), _means(share, n, e2), n_share)

        # n, m and l of each step
        step = _run_numbers(variance)
        n_step = np.bincount(step, n)
        m = _means(step, n, variance)
        line = _means(step, n, slope * u2 + floor)
        shrunk = (n_step * m + prior_rows * line) / (n_step + prior_rows)
        # where thin steps follow the line more than thick ones, order is restored
        ordered = isotonic_regression(shrunk, sample_weight=n_step + prior_rows)
        return np.asarray(ordered[step])


def _run_numbers(values: Floats) -> Ints:
    """Return the number of the run of equal neighbours that each value belongs to.

    >>> _run_numbers(np.array([3.0, 3.0, 5.0, 3.0]))
    array([0, 0, 1, 2])
    """
    return np.cumsum(np.diff(values, prepend=values[0]) != 0)


def _means(code: Ints, n: Floats, values: Floats) -> Floats:
    """Return weighted means over each code."""
    return np.asarray(np.bincount(code, n * values) / np.bincount(code, n))


def _scored_line(u2: Floats, e2: Floats, n: Floats) -> tuple[float, float]:
    """Return the slope and floor of the variance, by a few steps of Fisher scoring.

    It is the line of `LinearScaling` to a few digits, in a hundredth of the time: for
    those who need it as a guide only. Each step is a weighted least-squares fit of
    e² = slope u² + floor, whose weights n / v² come from the variance before it.
    """
    # in units in which both have the mean 1, so that no square overflows
    u2_unit = float(np.average(u2, weights=n))
    e2_unit = float(np.average(e2, weights=n))
    u2 = u2 / u2_unit
    e2 = e2 / e2_unit
    slope_alone = float(np.average(e2 / np.maximum(u2, TINY), weights=n))
    slope = 1.0
    floor = 0.0
    for _ in range(N_SWEEPS):
        v = slope * u2 + floor
        w = n / np.maximum(v, TINY * v.max()) ** 2
        # the normal equations of y = e² and x = u²
        s_1 = w.sum()
        s_x = w @ u2
        s_xx = w @ u2**2
        s_y = w @ e2
        s_xy = w @ (u2 * e2)
        determinant = s_1 * s_xx - s_x * s_x
        if determinant <= TINY * s_1 * s_xx:  # all uncertainties are equal
            break
        slope = (s_1 * s_xy - s_x * s_y) / determinant
        floor = (s_xx * s_y - s_x * s_xy) / determinant
        # neither may be negative: the other alone, by maximum likelihood
        if slope < 0:
            slope = 0.0
            floor = 1.0
        elif floor < 0:
            slope = slope_alone
            floor = 0.0
    return float(slope * e2_unit / u2_unit), float(floor * e2_unit)
