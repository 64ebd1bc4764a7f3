"""How columns are cut into bins to learn a factor for each: at ranks, or at quantiles.

Two ways are needed. The bins of the paper are cut by rank, at the smallest value of the
next bin. All others are cut halfway between values, so that a row whose last bits
differ, as in a CSV file, falls into the same bin.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._support.checks import Floats, rounded
from ..._support.notices import warn
from ..._support.text import quoted
from ..._support.weighting import WeightLine, weights_of
from ...exceptions import FewerBinsWarning
from ...predictions.ordering import order_of
from ...predictions.predictions import Predictions
from ..additive import Axis, between, quantile_edges

U = 0  # the column of the uncertainty


# -- bins of equal size, as in the paper -----------------------------------------------


def equal_size_axis(
    rows: Predictions, column: int, n_bins: int, *, parts_ties: bool
) -> Axis:
    """Return bins of equally many rows; each label of a category is one.

    Where ties are parted, rows with equal values of a feature are ordered by u.
    """
    if rows.is_labelled(column):
        return Axis(column, labels=rows.labels(column).compact().labels)
    starts = _starts_of_bins(rows.n_effective, n_bins)
    if parts_ties and column != U:
        axis = _axis_of_pairs(rows, column, starts)
    else:
        axis = _axis_of_values(rows, column, starts)
    n_made = axis.n_codes - 1
    if n_made < n_bins:
        warn(
            f"{n_bins} bins of {quoted(rows.names[column])} were asked for, but its "
            f"values make {n_made}; these are used.",
            FewerBinsWarning,
            stacklevel=6,
        )
    return axis


def _starts_of_bins(total: int | float, n_bins: int) -> Any:
    """Return where bins but the first begin: floor(k N / n + 1/2), in whole numbers."""
    n = max(1, min(n_bins, int(total)))
    k = np.arange(1, n)
    return (2 * k * total + n) // (2 * n)  # with N = total


def _axis_of_values(rows: Predictions, column: int, starts: Any) -> Axis:
    """Return bins cut at the values of the rows that begin them."""
    x = rows.numbers(column)
    if rows.weights is None:
        first_values = np.sort(x)[starts] if starts.size else x[:0]
    else:
        order = np.argsort(x, kind="stable")  # as given
        line = WeightLine(rows.weights[order])
        first_values = x[order[line.after(starts)]]
    edges = np.unique(first_values)  # as given
    return Axis(column, edges[edges > x.min()])  # the first bin is open


def _axis_of_pairs(rows: Predictions, column: int, starts: Any) -> Axis:
    """Return bins cut at pairs (x, u), compared lexicographically."""
    x = rows.numbers(column)
    u = rows.y_std
    order = np.lexsort((u, x))  # as given
    if rows.weights is not None:
        starts = WeightLine(rows.weights[order]).after(starts)
    pairs = np.column_stack([x, u])[order]
    edges = np.unique(pairs[starts.astype(np.int64)], axis=0)  # as given
    edges = edges[(edges != pairs[0]).any(axis=1)]  # the first bin is open
    return Axis(column, edges[:, 0].copy(), edges[:, 1].copy())


# -- bins at quantiles -----------------------------------------------------------------


def quantile_axes(
    rows: Predictions,
    n_bins: int,
    *,
    least_rows: int,
    most_labels: int,
    by_group: bool = False,
) -> list[Axis]:
    """Return bins of all columns: at quantiles, or of the most frequent labels.

    Parameters
    ----------
    rows : Predictions
        The rows.
    n_bins : int
        The bins of a column of numbers, at most.
    least_rows : int
        The rows of a bin, at least.
    most_labels : int
        The labels of a category that are told apart.
    by_group : bool, default False
        Let values of each group count once, and give a bin two at least: a column that
        tells groups apart then does not give each group a bin of its own.
    """
    n_most = min(n_bins, int(rows.n_effective // least_rows))
    axes = []
    for column in range(len(rows.columns)):
        if rows.is_labelled(column):
            axes.append(_axis_of_labels(rows, column, most_labels))
        elif by_group and rows.groups is not None:
            axes.append(_axis_of_groups(rows, column, n_most))
        else:
            known = np.flatnonzero(~np.isnan(rows.columns[column]))
            x = rounded(rows.columns[column][known])  # one ulp parts no rows
            weights = weights_of(rows.weights, known)
            axes.append(Axis(column, _quantile_or_value_edges(x, weights, n_most)))
    # what all rows have in common tells nothing, and would share in what is learned
    return [axis for axis in axes if axis.column == 0 or _varies(rows, axis.column)]


def _varies(rows: Predictions, column: int) -> bool:
    """Return whether a column has two values, of which one may be that it has none."""
    if rows.is_labelled(column):
        codes = rows.labels(column).codes
        return bool((codes != codes[0]).any())
    x = rows.columns[column]
    return bool(((x != x[0]) & ~(np.isnan(x) & np.isnan(x[0]))).any())


def _axis_of_labels(rows: Predictions, column: int, most_labels: int) -> Axis:
    """Return an axis of the most frequent labels; rarer ones are unknown."""
    labels = rows.labels(column).compact()
    frequency = np.bincount(labels.codes, rows.weights)
    most_frequent = order_of(-frequency.astype(np.float64))[:most_labels]
    in_order = np.sort(most_frequent)
    return Axis(column, labels=tuple(labels.labels[code] for code in in_order))


def _axis_of_groups(rows: Predictions, column: int, n_most: int) -> Axis:
    """Return bins in which each value of a group counts once."""
    assert rows.groups is not None
    known = np.flatnonzero(~np.isnan(rows.columns[column]))
    x = rounded(rows.columns[column][known])
    pairs = np.unique(np.stack([rows.groups[known], x]), axis=1)  # rounded
    values = pairs[1]
    n_most = min(n_most, values.size // 2)
    return Axis(column, _quantile_or_value_edges(values, None, n_most))


def _quantile_or_value_edges(x: Floats, weights: Floats | None, n_most: int) -> Floats:
    """Return edges at quantiles; between all values, where these are few."""
    values = np.unique(x)  # rounded
    if values.size <= n_most:
        return between(values, values[1:])
    return quantile_edges(x, weights, max(1, n_most))
