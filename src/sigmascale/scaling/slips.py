"""Likely slips in what a recalibrator is fitted to, told in a sentence.

Each is something that no check of single values can find: numbers that are fine by
themselves, but are hardly errors, or hardly uncertainties.
"""

from __future__ import annotations

import re

import numpy as np

from .._support.checks import LARGEST, SMALLEST, Floats
from .._support.telling import warn
from ..exceptions import (
    AbsoluteErrorsWarning,
    ConstantUncertaintyWarning,
    TargetsNotErrorsWarning,
    VarianceNotUncertaintyWarning,
)
from ..predictions import Predictions
from .quick_law import scored_law

LEAST_ROWS = 100  # fewer show nothing
MANY_U = 3  # uncertainties that the median error is off by
MANY_WIDTHS = 0.5  # half-widths of the middle of the errors that it is off by
OFF = 5.0  # factor by which <z²> is off, as that of variances in place of u is
RIGHT = 2.0  # factor within which it is about right
NATS = 10.0  # of likelihood by which errors follow the root of u rather than u
_VARIANCE = re.compile(r"(^|[^a-z])(var|variance|variances)([^a-z]|$)|[a-z](\^2|²)$")


def warn_of_slips(rows: Predictions, stacklevel: int = 2) -> None:
    """Warn of errors and uncertainties that look like something else."""
    error, u = rows.errors, rows.uncertainty
    # errors whose squares are 0 count as 0
    if rows.n_rows < LEAST_ROWS or np.abs(error).max() < np.finfo(float).tiny ** 0.5:
        return
    low, middle, high = np.quantile(error, [0.25, 0.5, 0.75])
    typical = float(np.median(u))
    if abs(middle) > max(MANY_U * typical, MANY_WIDTHS * (high - low)):
        warn(
            f"The median error is {middle:.3g}, {abs(middle) / typical:.2g} times the "
            "median uncertainty. Are these targets or predictions rather than errors, "
            "reference minus prediction? If they are errors, the model is biased: "
            "mend that first.",
            TargetsNotErrorsWarning,
            stacklevel=stacklevel + 1,
        )
    elif error.min() >= 0:
        warn(
            f"None of {error.size} errors is negative. Are they absolute errors? Pass "
            "reference minus prediction, with its sign: bias and intervals need it.",
            AbsoluteErrorsWarning,
            stacklevel=stacklevel + 1,
        )
    if u.min() == u.max():
        warn(
            f"All {u.size} uncertainties are {u[0]:.3g}. Is the first column of X the "
            "uncertainty? A constant one says nothing of which rows to trust.",
            ConstantUncertaintyWarning,
            stacklevel=stacklevel + 1,
        )
    elif _looks_like_a_variance(error, u, rows.names[0]):
        warn(
            f"The uncertainties, {rows.names[0]!r}, look like variances: pass their "
            "square root.",
            VarianceNotUncertaintyWarning,
            stacklevel=stacklevel + 1,
        )


def _looks_like_a_variance(error: Floats, u: Floats, name: str) -> bool:
    """Return whether u is a variance by its name, or by how errors follow it."""
    u = np.clip(u, SMALLEST, LARGEST)
    e2 = np.clip(error, -LARGEST, LARGEST) ** 2
    as_u, as_variance = float(np.mean(e2 / u**2)), float(np.mean(e2 / u))
    if 1 / RIGHT <= as_u <= RIGHT:
        return False
    if _VARIANCE.search(name.lower()):
        return True
    right = 1 / RIGHT <= as_variance <= RIGHT and not 1 / OFF <= as_u <= OFF
    # log-likelihoods of errors that follow the root of u, or nothing
    root = -np.log(as_variance) - float(np.mean(np.log(u))) - 1
    none = -np.log(float(np.mean(e2))) - 1
    enough = 2 * NATS / u.size
    return right and root - none > enough and root - _of_law(u**2, e2) > enough


def _of_law(u2: Floats, e2: Floats) -> float:
    """Return the log-likelihood of the law a² u² + b², which u with a floor follows."""
    slope, floor = scored_law(u2, e2, np.ones(u2.size, dtype=np.int64))
    variance = np.maximum(slope * u2 + floor, np.finfo(np.float64).tiny)
    return -float(np.mean(np.log(variance) + e2 / variance))
