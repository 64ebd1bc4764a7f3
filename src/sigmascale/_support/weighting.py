"""Positions in sorted rows that have weights: one rule for all quantiles and cuts.

Picture sorted rows side by side on a line, each as long as its weight. Row i covers the
stretch from end[i − 1] to end[i]. A quantile at the share p is the row that *reaches*
the position p · total; a cut there has the next bin begin with the first row that ends
*after* it. Without weights all rows have the length 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .checks import Floats, Ints

# A file may have rounded its weights to six digits: a position that is reached but for
# this share of the total is reached.
ROUNDING_OF_SUMS = 1e-6


class WeightLine:
    """Sorted rows side by side, each as long as its weight.

    Parameters
    ----------
    weights : array of shape (n,)
        The weights of the rows, in sorted order.

    Examples
    --------
    >>> line = WeightLine(np.array([1.0, 1.0, 2.0]))
    >>> int(line.reaching(0.5 * line.total)), int(line.after(0.5 * line.total))
    (1, 2)
    """

    def __init__(self, weights: Floats) -> None:
        self.ends = np.cumsum(weights)
        self.total = float(self.ends[-1])

    def reaching(self, position: Any) -> Ints:
        """Return the first row that ends at a position, or beyond it."""
        row = np.searchsorted(
            self.ends, position - ROUNDING_OF_SUMS * self.total, side="left"
        )
        return np.asarray(np.minimum(row, self.ends.size - 1))

    def after(self, position: Any) -> Ints:
        """Return the first row that ends beyond a position; the last if none does."""
        row = np.searchsorted(
            self.ends, position + ROUNDING_OF_SUMS * self.total, side="right"
        )
        return np.asarray(np.minimum(row, self.ends.size - 1))


def ones_if_none(weights: Floats | None, n_rows: int) -> Floats:
    """Return the weights of rows; where none were given, all are 1."""
    return np.ones(n_rows) if weights is None else weights


def mean_of(x: Floats, weights: Floats | None) -> float:
    """Return a mean, weighted if there are weights."""
    return float(x.mean() if weights is None else weights @ x / weights.sum())


def weights_of(weights: Floats | None, rows: Ints) -> Floats | None:
    """Return the weights of some rows, if there are any."""
    return None if weights is None else weights[rows]


def levels_of_rows(n_rows: int, weights: Floats | None) -> Floats:
    """Return the levels that sorted rows stand for: of n, the i-th for i / (n + 1).

    A weighted row has room for its weight, and stands for the middle of it.
    """
    if weights is None:
        return np.arange(1.0, n_rows + 1) / (n_rows + 1)
    ends = np.cumsum(weights)
    return np.asarray((ends - weights / 2 + 0.5) / (weights.sum() + 1))


def pair_products(
    x: Floats, groups: Ints, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return Σ x x' over the ordered pairs of rows of each group, and their number.

    (Σ x)² has all pairs, and each row with itself. Weights multiply rows.

    >>> pair_products(np.array([1.0, 2.0, 5.0]), np.array([0, 0, 1]))
    (array([4., 0.]), array([2., 0.]))
    """
    w = np.ones(x.size) if weights is None else weights
    products = np.bincount(groups, w * x) ** 2 - np.bincount(groups, (w * x) ** 2)
    pairs = np.bincount(groups, w) ** 2 - np.bincount(groups, w**2)
    return np.asarray(products, np.float64), np.asarray(pairs, np.float64)
