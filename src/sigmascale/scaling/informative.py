"""Rows to learn from: errors can be squared, and are not all 0."""

from __future__ import annotations

import numpy as np

from .._support.checks import LARGEST, LARGEST_Z, SMALLEST, largest_size
from .._support.telling import warn
from ..exceptions import DegenerateFitWarning
from ..predictions import Predictions


def informative(rows: Predictions, *, replaced: bool = True) -> Predictions:
    """Return rows whose errors can be squared and, unless they may be, are not all 0.

    Errors that are all 0 are told, and replaced by the uncertainties.
    """
    rows = bounded(rows)
    if rows.errors.any():
        return rows
    warn_of_zero_errors(rows.n_rows)
    return rows.changed(error=rows.uncertainty) if replaced else rows


def bounded(rows: Predictions) -> Predictions:
    """Return rows whose errors can be squared."""
    error, u = rows.errors, rows.uncertainty
    # beyond these bounds, squares would overflow or vanish
    if largest_size(error) > min(LARGEST, LARGEST_Z * u.min()):
        bound = np.minimum(LARGEST, LARGEST_Z * u)
        error = np.clip(error, -bound, bound)
    tiny = np.abs(error) < SMALLEST
    if tiny.any():
        error = np.where(tiny, 0.0, error)
    return rows.changed(error=error)


def warn_of_zero_errors(n_rows: int) -> None:
    """Say that errors which are all 0 teach nothing."""
    warn(
        f"All {n_rows} errors are 0: nothing can be learned from them, and "
        "uncertainties will be left as they are.",
        DegenerateFitWarning,
        stacklevel=4,
    )
