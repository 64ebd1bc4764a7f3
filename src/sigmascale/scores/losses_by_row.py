"""Losses by row: each is written once, for scores, comparisons and checks."""

from __future__ import annotations

import numpy as np

from .._support.checks import Bools, Floats
from .._support.notices import quiet
from ..predictions.predictions import Predictions
from ..recalibration.distributions import Distributions

COVERAGES = (0.5, 0.8, 0.9, 0.95)  # of the intervals that scores look at


def claimed_of_errors(p: Predictions) -> tuple[Distributions, Floats]:
    """Return distributions and true values; of rows with shapes, straightened errors.

    These have no atoms, and their distributions depend on z alone.
    """
    if p.shape is None:
        return p.distributions, p.target
    return p.distributions.of_errors, p.errors


def claimed_intervals(p: Predictions, coverage: float) -> Floats:
    """Return the limits of central intervals; of levels beyond the rows, infinite."""
    with quiet():  # the limits say so themselves
        return p.distributions.interval(coverage)


def normal_nll(p: Predictions) -> Floats:
    """Return the negative log-likelihood of normal errors in d dimensions.

    It is d/2 × (z² + ln u² + ln 2π).
    """
    return np.asarray(p.dim * (p.z2 + 2 * np.log(p.y_std) + np.log(2 * np.pi)) / 2)


def energy_scores(p: Predictions) -> Floats:
    """Return the CRPS, or the energy score of vectors."""
    if p.is_vector:
        return p.distributions.energy_score(p.target)
    return p.distributions.crps(p.target)


def is_held(p: Predictions, coverage: float) -> Bools:
    """Return whether central intervals, or balls, cover the value; limits belong."""
    if p.is_vector:
        return p.distributions.contains(p.target, coverage)
    low, high = claimed_intervals(p, coverage).T
    return np.asarray((low <= p.target) & (p.target <= high))


def interval_scores(p: Predictions, coverage: float) -> Floats:
    """Return the interval scores: width, and 2 / (1 − coverage) × what is outside."""
    low, high = claimed_intervals(p, coverage).T
    outside = np.maximum(low - p.target, 0) + np.maximum(p.target - high, 0)
    return np.asarray(high - low + 2 / (1 - coverage) * outside)
