"""A power of u times the line: where large u tell more, or less, than they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._support.checks import Floats, Ints
from ..._support.weighting import mean_of, weights_of
from ...predictions.predictions import Predictions
from ..additive import Base
from ..folds import by_fold, simplest
from .outlier_caps import largest_counted

NO_WIDTH = 1e-6  # of ln u: all uncertainties are equal
# Newton's method
MOST_STEPS = 50
LARGEST_STEP = 2.0
SETTLED = 1e-6  # a step that is as good as none
LEAST_SPREAD = 1e-3  # of ln u, from 0 to 1, where large errors are: no step explodes


def line_or_power(rows: Predictions, line: Base, z2: Floats, fold: Ints) -> Base:
    """Return the line, times a power of u if rows out of fold gain from that.

    Where u tells large errors from small ones better, or worse, than in proportion, one
    number says what trees would say in many steps, and says it of the largest u, too,
    of which there are too few for a leaf. It is learned from z² up to a cap, and tested
    by all of z²: a few enormous errors decide for the line.

    Parameters
    ----------
    rows : Predictions
        The rows.
    line : Base
        The line, sqrt(a² u² + b²).
    z2 : array of shape (n,)
        The squared errors over those of the line.
    fold : array of int
        The fold of each row.
    """
    # ln u from 0 to 1, and z² up to a cap
    weights = rows.weights
    log_u = np.log(rows.y_std)
    lowest = float(log_u.min())
    highest = float(log_u.max())
    if highest - lowest < NO_WIDTH:
        return line
    t = (log_u - lowest) / (highest - lowest)
    counted = np.minimum(z2, largest_counted(z2, weights))

    # the logarithm of the variance that the power adds, of rows out of fold
    log_out = np.zeros(t.size)
    for seen, unseen in by_fold(fold):
        if not counted[seen].any():
            return line
        q = _best_power(t[seen], counted[seen], weights_of(weights, seen))
        log_out[unseen] = q * t[unseen]

    # all of z² decides
    losses = {
        "line": _deviance(z2, np.zeros(t.size), weights),
        "power": _deviance(z2, log_out, weights),
    }
    if simplest(losses, rows) == "line":
        return line
    # q belongs to variances and to ln u from 0 to 1
    power = 0.5 * _best_power(t, counted, weights) / (highest - lowest)
    span = float(rows.y_std.min()), float(rows.y_std.max())
    return replace(line, power=power, span=span)


def _deviance(z2: Floats, log_variance: Floats, weights: Floats | None) -> Floats:
    """Return the gamma deviance of each row, r / <r> + ln v + ln <r>, r = z² / v."""
    r = z2 * np.exp(-log_variance)
    level = mean_of(r, weights)
    return np.asarray(r / level + log_variance + np.log(level))


def _best_power(t: Floats, z2: Floats, weights: Floats | None) -> float:
    """Return the q of maximum likelihood of variances s exp(q t), with the best s.

    The loss is ln <r> + q <t>, where r = z² exp(−q t). With <·>_r for means weighted by
    r, its slope is <t> − <t>_r and its curvature the variance <(t − <t>_r)²>_r: it is
    convex, and Newton's method finds the minimum if no step is too long.
    """
    mean_t = mean_of(t, weights)
    q = 0.0
    for _ in range(MOST_STEPS):
        r = z2 * np.exp(-q * t)
        level = mean_of(r, weights)
        mean_t_of_r = mean_of(r * t, weights) / level
        spread = mean_of(r * (t - mean_t_of_r) ** 2, weights) / level
        newton = (mean_t_of_r - mean_t) / max(spread, LEAST_SPREAD)
        step = float(np.clip(newton, -LARGEST_STEP, LARGEST_STEP))
        q += step
        if abs(step) < SETTLED:
            break
    return q
