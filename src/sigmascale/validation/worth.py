"""What u is worth, and what recalibration would gain, on rows that were held out."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy import special

from .._support.checks import Floats, Ints
from .._support.notices import quiet
from .._support.weighting import ones_if_none
from ..predictions.predictions import Predictions
from ..scores.intervals import Estimate, mean_interval, sums_of
from ..scores.losses_by_row import energy_scores
from .columns import FEWEST

N_FOLDS = 5
N_BINS = 20  # of u, of which the mean errors are made monotone
MOST_COMPARED = 20_000  # rows that tell what u is worth
MOST_FITTED = 20_000  # rows that tell what recalibration gains
NORMAL_MEAN = math.sqrt(2 / math.pi)  # of |z|


def gain_of_u(rows: Predictions, confidence: float) -> Estimate | None:
    """Return by how many per cent a monotone function of u lowers CRPS.

    It is compared with a constant u: both are made of the other folds, as mean |error|
    by u and over all rows, and have normal distributions. What counts is the order of
    u, not its size. None of vectors, of a constant u and of few rows.
    """
    if rows.is_vector or rows.y_std.min() == rows.y_std.max():
        return None
    rows = _some(rows, MOST_COMPARED)
    sizes = np.abs(rows.errors)
    if not sizes.any() or rows.n_rows < FEWEST:
        return None
    w = ones_if_none(rows.weights, rows.n_rows)
    log_u = np.log(rows.y_std)
    by_u = np.empty(rows.n_rows)
    constant = np.empty(rows.n_rows)
    for learned, tested in _folds(rows):
        x, y = _monotone(log_u[learned], sizes[learned], w[learned])
        by_u[tested] = np.interp(log_u[tested], x, y)
        constant[tested] = np.average(sizes[learned], weights=w[learned])
    of_u = _normal_crps(sizes, np.maximum(by_u / NORMAL_MEAN, 1e-300))
    of_constant = _normal_crps(sizes, np.maximum(constant / NORMAL_MEAN, 1e-300))
    return _change(of_constant, of_constant - of_u, rows, confidence)


def gain_of_recalibration(rows: Predictions, confidence: float) -> Estimate | None:
    """Return by how many per cent the default recalibrator changes CRPS.

    It is fitted on the other folds; below 0 is a gain. None of few rows.
    """
    from ..recalibration.recalibrator import Recalibrator

    rows = _some(rows, MOST_FITTED)
    if rows.n_effective < FEWEST * N_FOLDS or not rows.squared_error.any():
        return None
    change = np.empty(rows.n_rows)
    as_it_is = energy_scores(rows)
    with quiet():
        for learned, tested in _folds(rows):
            recalibrator = Recalibrator().fit(rows.take(learned))
            after = recalibrator.apply(rows.take(tested))
            change[tested] = energy_scores(after) - as_it_is[tested]
    return _change(as_it_is, change, rows, confidence)


def _some(rows: Predictions, most: int) -> Predictions:
    """Return few enough rows, groups together."""
    if rows.n_rows <= most:
        return rows
    rng = np.random.default_rng(0)
    unit = np.arange(rows.n_rows) if rows.groups is None else rows.groups
    chance = rng.random(int(unit.max()) + 1)[unit]
    return rows.take(np.flatnonzero(chance < most / rows.n_rows))


def _folds(rows: Predictions) -> Iterator[tuple[Ints, Ints]]:
    """Yield the rows that are learned from and those that are tested, by fold."""
    rng = np.random.default_rng(0)
    unit = np.arange(rows.n_rows) if rows.groups is None else rows.groups
    fold = rng.permutation(int(unit.max()) + 1)[unit] % N_FOLDS
    for k in range(N_FOLDS):
        if (fold == k).any() and (fold != k).any():
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


def _monotone(x: Floats, y: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Return means of x in bins of equally many rows, and those of y made monotone."""
    from sklearn.isotonic import isotonic_regression

    order = np.argsort(x, kind="stable")
    starts = np.arange(N_BINS) * order.size // N_BINS
    starts = np.unique(starts)
    of_bin = np.add.reduceat(w[order], starts)
    middle = np.add.reduceat((w * x)[order], starts) / of_bin
    mean = np.add.reduceat((w * y)[order], starts) / of_bin
    rising = isotonic_regression(mean, sample_weight=of_bin)
    # a value of x that fills several bins is one point
    points, which = np.unique(middle, return_inverse=True)
    share = sums_of(which, of_bin, points.size)
    return points, sums_of(which, of_bin * rising, points.size) / share


def _change(
    crps: Floats, change: Floats, rows: Predictions, confidence: float
) -> Estimate:
    """Return the mean of a paired change, in per cent of the mean CRPS."""
    return mean_interval(
        100 * change / rows.mean(crps),
        confidence=confidence,
        groups=rows.groups,
        weights=rows.weights,
    )


def _normal_crps(sizes: Floats, u: Floats) -> Floats:
    """Return the CRPS of normal distributions, u (z (2 Φ(z) − 1) + 2 φ(z) − 1/√π)."""
    z = sizes / u
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    share = 2 * special.ndtr(z) - 1
    return np.asarray(u * (z * share + 2 * density - 1 / math.sqrt(math.pi)))
