"""What the cross-fitted recalibrators share: folds, and a loss that no row can own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints, Labels
from .._support.weights import mean_of
from ..bins.quantiles import in_order


def largest_ratio(z2: Floats, weights: Floats | None = None) -> float:
    """Return the largest ratio of a squared error to its variance that counts in full.

    At least 20 (normal errors stay below 2 ln n, about 20 for 20,000 rows), and
    sqrt(n) / 2 for larger sets, where single rows matter less. Where nearly all errors
    are exactly 0 the others are no outliers, and it is higher.
    """
    return largest_ratio_of(*counted_squares(z2, weights))


def counted_squares(z2: Floats, weights: Floats | None) -> tuple[float, float]:
    """Return the number of rows and of nonzero errors, or the weights of both."""
    if weights is None:
        return z2.size, int(np.count_nonzero(z2))
    return float(weights.sum()), float(weights[z2 != 0].sum())


def largest_ratio_of(n_rows: float, n_nonzero: float) -> float:
    """Return :func:`largest_ratio` from the number of rows and of nonzero errors."""
    return max(20.0, 0.5 * float(np.sqrt(n_rows)), 2 * n_rows / max(1, n_nonzero))


def largest_counted(z2: Floats, weights: Floats | None = None) -> float:
    """Return up to which value a z² counts: so many times the mean of what counts.

    A few enormous errors make the mean their own, but not this one.
    """
    ratio, mean = largest_ratio(z2, weights), mean_of(z2, weights)
    while (counted := mean_of(np.minimum(z2, ratio * mean), weights)) < 0.999 * mean:
        mean = counted
    return ratio * mean


def deviance(ratio: Floats, log_factor: Floats, cap: float) -> Floats:
    """Return the Huberised gamma deviance of each row, h(r) + f with r = ratio exp(-f).

    h(r) = r up to `cap` and cap (1 + ln(r / cap)) beyond. Its gradient in f is
    1 - min(r, cap): one enormous error cannot decide alone, yet a region whose
    variance really is large still gets it, because f grows until r is below the cap.
    """
    r = ratio * np.exp(np.minimum(-log_factor, 600))  # where it would overflow, r is 0
    return capped(r, cap) + log_factor


def capped(r: Floats, cap: float) -> Floats:
    """Return h(r), which is r up to `cap` and grows as its logarithm beyond."""
    h = np.minimum(r, cap)
    beyond = np.flatnonzero(r > cap)
    h[beyond] += cap * np.log(r[beyond] / cap)
    return h


def make_folds(
    size: Floats,
    n_folds: int,
    rng: np.random.Generator,
    groups: Labels | None,
    weights: Floats | None = None,
) -> Ints:
    """Return the fold of each row.

    Rows are dealt out in the order of `size`, so that each fold gets its share of the
    large ones. With groups, a whole group goes to one fold: large groups first, each
    to the emptiest fold. Weighted rows are dealt out as groups of so many repeats.
    """
    n_rows = size.size
    fold = np.empty(n_rows, dtype=np.int64)
    if groups is None and weights is not None:
        groups = np.arange(n_rows)
    if groups is None:
        rounds = -(-n_rows // n_folds)
        deal = rng.permuted(np.tile(np.arange(n_folds), (rounds, 1)), axis=1).ravel()
        fold[in_order(size, np.arange(n_rows))[1]] = deal[:n_rows]
        return fold
    code = in_order_of_appearance(groups)
    count = np.bincount(code, weights)
    order = rng.permutation(count.size)
    of_group, filled = np.empty(count.size, dtype=np.int64), np.zeros(n_folds)
    for group in order[np.argsort(-count[order], kind="stable")]:
        of_group[group] = int(np.argmin(filled))
        filled[of_group[group]] += count[group]
    return of_group[code]


def in_order_of_appearance(labels: Labels) -> Ints:
    """Return the number of each label, counted as they come."""
    _, first, code = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty_like(first)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[code]


def phase(e: Any, u: Any, e2: float, u2: float, seed: int = 0) -> Any:
    """Return a number for each row whose fractional part is as good as random.

    It is a sum of multiples of E² and u², whose means are given, for rows whose order
    nobody knows: columns of a lazy frame, or arrays of a device. Units are powers of
    two: the last bits of a mean depend on the order in which an engine adds up, and
    powers of two do not.
    """
    units = [2.0 ** -np.round(np.log2(max(mean, 1e-290))) for mean in (e2, u2)]
    of_e, of_u = (
        float(1e4 * irrational * unit)
        for irrational, unit in zip(
            (0.6180339887498949, 0.4142135623730951), units, strict=True
        )
    )
    return 0.7548776662466927 * seed + e * e * of_e + u * u * of_u


def canonical_order(
    columns: Sequence[npt.NDArray[np.generic]],
    error: Floats,
    weights: Floats | None = None,
) -> npt.NDArray[np.intp]:
    """Return an order of the rows that does not depend on the order they came in."""
    keys = (np.abs(error), *columns, *([] if weights is None else [weights]))
    return in_order(*keys, np.arange(error.size), n_keys=len(keys))[-1]
