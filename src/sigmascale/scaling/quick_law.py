"""A law of the variance that is found at once, for those who need it as a guide."""

from __future__ import annotations

import numpy as np

from .._support.checks import Floats, Ints


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
