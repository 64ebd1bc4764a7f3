"""Middle, width and shape of z, drawn towards normal where few rows support them.

A table of n normal z-scores loses 1/n of the CRPS of the true distribution: half of it
by its middle (a bias that nobody asked for), an eighth by its width, and the rest by
its shape. What is noise is taken out of all three:

1. Middle m and width s are those of the normal distribution of the lowest mean CRPS,
   which no row moves far. m and ln s are shrunk towards 0 by their own standard errors,
   as James and Stein do.
2. The shape, that of (z − m) / s, is mixed with pseudo-rows of a normal distribution,
   the more of them, the less it is beyond what normal z-scores show.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from ..._support.checks import Floats, Ints
from ..._support.weighting import levels_of_rows, ones_if_none
from ...predictions.ordering import ascending

MANY_ROWS = 10_000  # beyond which a table is taken as it is
LEAST_GROUPS = 10  # fewer do not tell what is noise
PSEUDO_ROWS = 50.0  # that a table has at least
# n ∫(F − Φ)² of n normal z-scores whose middle and width were fitted; its mean is the
# same at 60 and at 250 rows
DISTANCE_OF_NORMAL = 0.176
ATOM = 0.05  # share of rows that are all the same, which no normal distribution has
SAME_VALUE = 1e-9  # of the largest z: what differs by less differs by rounding
LEAST_WIDTH = 1e-3  # of the root mean square; what is narrower is nearly an atom
# Newton's method
MOST_STEPS = 50
SURE_STEP = 1e-4  # shorter ones need not lower the loss, which hardly moves
SETTLED = 1e-12


def drawn_to_normal(z: Floats, weights: Floats | None, groups: Ints | None) -> Floats:
    """Return z-scores without what is noise of their distribution, in their order.

    Examples
    --------
    >>> z = np.random.default_rng(0).normal(0.05, 1, 100)
    >>> bool(abs(drawn_to_normal(z, None, None).mean()) < abs(z.mean()))
    True
    """
    w = ones_if_none(weights, z.size)
    n = float(w.sum())
    n_groups = z.size if groups is None else np.count_nonzero(np.bincount(groups))
    if n >= MANY_ROWS or n_groups < LEAST_GROUPS:
        return z
    order, ordered = ascending(z)
    differ = np.diff(ordered) > SAME_VALUE * np.abs(ordered).max()
    value_of_row = np.append(0, np.cumsum(differ))
    if np.bincount(value_of_row, w[order]).max() > max(1, ATOM * n):
        return z  # as many errors are exactly 0, and must stay so
    fitted = _fitted_normal(z, w)
    if fitted is None:
        return z
    middle, width, influence = fitted
    error = _standard_errors(influence, w, groups)

    # the shape: pseudo-rows of the distance that is no chance
    x = (ordered - middle) / width
    levels = levels_of_rows(z.size, None if weights is None else w[order])
    distance = _distance_to_normal(x, w[order])
    own_share = max(1e-3, 1 - DISTANCE_OF_NORMAL / distance)
    pseudo_rows = PSEUDO_ROWS + n * (1 - own_share) / own_share
    shape = _mixed(x, levels, n, pseudo_rows)

    # middle and width
    middle = shrunk(middle, 2 * error[0] ** 2)
    width = np.exp(shrunk(np.log(width), error[1] ** 2))
    drawn = np.empty(z.size)
    drawn[order] = middle + width * shape
    return drawn


def shrunk(value: float, variance: float) -> float:
    """Return a number drawn towards 0 by what is noise of its square."""
    return value * max(0.0, 1 - variance / value**2) if value else 0.0


def _fitted_normal(z: Floats, w: Floats) -> tuple[float, float, Floats] | None:
    """Return middle and width of the normal distribution of the lowest mean CRPS.

    Each row has an influence on the middle and on the logarithm of the width; their
    means are 0. There is no such distribution where most rows are nearly the same.
    The loss is convex in both, s (x (2 Φ(x) − 1) + 2 φ(x) − 1/√π), x = (z − m) / s.
    """
    share = w / w.sum()
    m = float(share @ z)
    size = float(np.sqrt(share @ (z * z)))
    log_s = float(np.log(np.sqrt(share @ (z - m) ** 2) or 1.0))

    def at(m: float, log_s: float) -> tuple[float, Floats, Floats]:
        """Return the loss, the slope of each row and the curvature."""
        s = np.exp(log_s)
        x = (z - m) / s
        two_density = np.exp(-x * x / 2) * np.sqrt(2 / np.pi)
        along_m = -special.erf(x / np.sqrt(2))
        along_s = s * (two_density - 1 / np.sqrt(np.pi))
        loss = float(share @ (along_s - s * x * along_m))
        mixed = share @ (two_density * x)
        of_s = share @ (along_s + s * two_density * x * x)
        curvature = np.array([[share @ two_density / s, mixed], [mixed, of_s]])
        return loss, np.stack([along_m, along_s]), curvature

    loss, slopes, curvature = at(m, log_s)
    for _ in range(MOST_STEPS):
        # downhill also where the loss, as a function of ln s, is not convex
        values, vectors = np.linalg.eigh(curvature)
        values = np.maximum(np.abs(values), 1e-3 * np.abs(values).max())
        inverse = (vectors / values) @ vectors.T
        step: Any = inverse @ (slopes @ share)
        step[1] = np.clip(step[1], -1, 1)
        while True:
            tried = at(m - step[0], log_s - step[1])
            if tried[0] <= loss or np.abs(step).max() < SURE_STEP:
                break
            step = step / 2
        m -= float(step[0])
        log_s -= float(step[1])
        loss, slopes, curvature = tried
        if np.abs(step).max() < SETTLED:
            break
        if np.exp(log_s) < LEAST_WIDTH * size:
            return None
    return m, float(np.exp(log_s)), inverse @ slopes


def _standard_errors(influence: Floats, w: Floats, groups: Ints | None) -> Floats:
    """Return the standard errors of middle and width, by their rows or groups."""
    sums = w * influence
    if groups is not None:
        sums = np.stack([np.bincount(groups, sums_of_rows) for sums_of_rows in sums])
    n_units = int(np.count_nonzero(sums.any(axis=0)))
    few = n_units / max(1, n_units - 1)  # of few the sum is too small
    return np.asarray(np.sqrt(few * (sums**2).sum(axis=1)) / w.sum())


def _distance_to_normal(x: Floats, w: Floats) -> float:
    """Return n ∫(F − Φ)² of ascending rows: their mean CRPS less half their spread."""
    share = w / w.sum()
    of_normal = x * special.erf(x / np.sqrt(2)) - 1 / np.sqrt(np.pi)
    of_normal = of_normal + np.exp(-x * x / 2) * np.sqrt(2 / np.pi)
    half_spread = share @ (x * (2 * np.cumsum(share) - share - 1))
    return max(float(w.sum() * (share @ of_normal - half_spread)), 1e-12)


def _mixed(x: Floats, levels: Floats, n: float, pseudo_rows: float) -> Floats:
    """Return quantiles, at their levels, of n rows and pseudo-rows of a normal."""
    normal = special.ndtri(levels)
    values = np.concatenate([x, normal])
    of_rows = np.concatenate([levels, np.interp(normal, x, levels, left=0, right=1)])
    order = np.argsort(values, kind="stable")  # of itself alone
    values = values[order]
    probability = n * of_rows[order] + pseudo_rows * special.ndtr(values)
    probability = np.maximum.accumulate(probability / (n + pseudo_rows))
    return np.asarray(np.interp(levels, probability, values))
