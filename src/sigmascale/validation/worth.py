"""What u is worth: whether it tells which errors are large, against a constant."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from .._support.checks import Floats
from ..predictions.predictions import Predictions
from ..scores.intervals import Estimate, mean_interval
from .search import by_unit

ROWS_COMPARED = 20_000  # rows that tell it
NORMAL_MEAN = math.sqrt(2 / math.pi)  # of |z|


def gain_of_u(rows: Predictions) -> Estimate | None:
    """Return by how many per cent CRPS is lower with u than with a constant.

    Both are normal, with the factor that their mean |z| wants; the difference is
    paired. None of vectors, and of a constant u.
    """
    if rows.is_vector or rows.y_std.min() == rows.y_std.max():
        return None
    # few enough rows, groups together
    chance = by_unit(rows.groups, rows.n_rows, np.random.default_rng(0))
    compared = np.flatnonzero(chance < ROWS_COMPARED / rows.n_rows)
    if compared.size < rows.n_rows:
        rows = rows.take(compared)
    sizes = np.abs(rows.errors)
    if not sizes.any():
        return None

    # u, and a constant, each times the factor that gives normal |z| the right mean
    u = rows.y_std * (rows.mean(sizes / rows.y_std) / NORMAL_MEAN)
    constant = np.full(sizes.size, rows.mean(sizes) / NORMAL_MEAN)
    by_u = _normal_crps(sizes, u)
    by_constant = _normal_crps(sizes, constant)
    per_cent_lower = 100 * (by_constant - by_u) / rows.mean(by_constant)
    return mean_interval(
        per_cent_lower, confidence=0.95, groups=rows.groups, weights=rows.weights
    )


def _normal_crps(sizes: Floats, u: Floats) -> Floats:
    """Return the CRPS of normal distributions, u (z (2 Φ(z) − 1) + 2 φ(z) − 1/√π)."""
    z = sizes / u
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    held = 2 * special.ndtr(z) - 1
    return np.asarray(u * (z * held + 2 * density - 1 / math.sqrt(math.pi)))
