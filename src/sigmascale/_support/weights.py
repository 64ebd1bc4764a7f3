"""Weights of rows: checked, and in a unit in which they count rows.

Only the ratios of weights matter, so that they are brought to a unit of their own.
Whole multiples of one number are how often rows were seen: they are made whole, and
their sum is the number of rows that repeats would make. Of all others, the sum is the
number of rows in effect, (Σw)² / Σw²: whatever counts rows, as shrinkage of thin bins
does, then counts what there is to learn from. Weights that are all equal are none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..exceptions import InvalidInputError
from .checks import Floats, Ints, check_column, check_same_length, refuse_values

SMALLEST_MULTIPLE = 4  # that the smallest weight may be of the unit of whole ones
LARGEST_MULTIPLE = 100  # that the largest one may be
_WHOLE = 1e-9  # by which a multiple may differ from a whole number


def check_weights(
    sample_weight: Any, rows: Any, rows_name: str, name: str = "sample_weight"
) -> tuple[Ints | None, Floats | None]:
    """Return the rows that have a weight, and their weights in a unit of their own.

    Parameters
    ----------
    sample_weight : array-like of shape (n,) or None
        Weights, at least 0.
    rows : array of n rows
        What they must be as many as.
    rows_name, name : str
        What the rows and the weights are called.

    Returns
    -------
    kept : array of int, or None
        Rows whose weight is not 0; None if that are all.
    weights : array, or None
        Their weights; None if all are equal.
    """
    if sample_weight is None:
        return None, None
    w = check_column(sample_weight, name)
    check_same_length(rows_name, rows, name, w)
    refuse_values(w < 0, w, name, "at least 0|Give these rows the weight 0.")
    largest = float(w.max())
    if largest == 0:
        msg = (
            f"`{name}` must have a positive value; all {w.size} weights are "
            "zero. Leave it out to weigh all rows alike."
        )
        raise InvalidInputError(msg)
    w = w / largest  # no square of it overflows, nor does any that counts vanish
    kept = None if (w > 0).all() else np.flatnonzero(w > 0)
    return kept, in_unit(w if kept is None else w[kept])


def in_unit(weights: Floats) -> Floats | None:
    """Return positive weights in a unit of their own; None if all are equal.

    >>> in_unit(np.array([0.5, 1.0, 1.5]))
    array([1., 2., 3.])
    >>> in_unit(np.array([1.0, 0.1, 0.2718])).round(3)
    array([1.266, 0.127, 0.344])
    """
    smallest = float(weights.min())
    if smallest == weights.max():
        return None
    for multiple in range(1, 1 + SMALLEST_MULTIPLE):
        counts = weights * (multiple / smallest)
        whole = np.round(counts)
        if whole.max() > LARGEST_MULTIPLE:
            break
        if (np.abs(counts - whole) <= _WHOLE * whole).all():
            return whole
    scaled: Floats = weights * (weights.sum() / np.sum(weights**2))
    return scaled


def effective_number(weights: Floats, groups: Ints | None = None) -> float:
    """Return (Σw)² / Σw²: so many rows, or groups, of equal weight would tell as much.

    >>> effective_number(np.array([1.0, 1.0, 0.0]))
    2.0
    """
    if groups is not None:
        weights = np.asarray(np.bincount(groups, weights), dtype=np.float64)
    return float(weights.sum() ** 2 / np.sum(weights**2))


def total_of(n_rows: int, weights: Floats | None) -> int | float:
    """Return the number of rows, or the sum of their weights."""
    return n_rows if weights is None else float(weights.sum())


def some_of(weights: Floats | None, which: Any) -> Floats | None:
    """Return the weights of some rows."""
    return None if weights is None else weights[which]


def mean_of(values: npt.NDArray[Any], weights: Floats | None) -> float:
    """Return the mean of values, weighted if there are weights."""
    if weights is None:
        return float(values.mean())
    return float(weights @ values / weights.sum())


def spread_of(values: Floats, weights: Floats | None) -> float:
    """Return the standard deviation of values, weighted if there are weights."""
    if weights is None:
        return float(values.std())
    return float(np.sqrt(mean_of((values - mean_of(values, weights)) ** 2, weights)))


def quantile_of(values: Floats, level: float, weights: Floats | None) -> float:
    """Return a quantile, which is interpolated as that of repeated rows.

    With weights, a row takes as much room among the sorted ones as its weight, but for
    the largest one, which takes 1 less.
    """
    if weights is None:
        return float(np.quantile(values, level))
    order = np.argsort(values, kind="stable")
    x, w = values[order], weights[order]
    ends = np.cumsum(w)
    # each row is a step, flat over all but one unit of its weight
    starts = ends - w
    rank = level * (ends[-1] - 1)
    places = np.column_stack([starts, np.maximum(starts, ends - 1)]).ravel()
    return float(np.interp(rank, np.maximum.accumulate(places), np.repeat(x, 2)))
