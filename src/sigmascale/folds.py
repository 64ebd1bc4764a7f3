"""Order, folds and comparisons of rows that a fit has not seen.

Nothing here depends on the order in which rows came, on the names of their groups or on
the unit of their errors: rows are put in an order of their own by what they hold, and
losses are compared relative to their size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

import numpy as np

from ._support.checks import Floats, Ints, rounded
from .exceptions import InvalidInputError

if TYPE_CHECKING:
    from .predictions import Predictions

N_FOLDS = 5
SAME = 1e-9  # share of a mean loss; what differs by less is the same
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio
_Name = TypeVar("_Name")


def mean(x: Floats, weights: Floats | None) -> float:
    """Return a mean, weighted if there are weights."""
    return float(x.mean() if weights is None else weights @ x / weights.sum())


def some(weights: Floats | None, which: Ints) -> Floats | None:
    """Return the weights of some rows, if there are any."""
    return None if weights is None else weights[which]


def canonical_order(p: Predictions, *first: Floats) -> Ints:
    """Return an order of rows with errors that does not depend on how they came.

    Parameters
    ----------
    p : Predictions
        Rows with errors.
    *first : array of shape (n,)
        What else tells rows apart, such as the sign of their errors.

    Returns
    -------
    array of int
        By the size of the error, what is `first`, columns and weights, all of which
        are the same if they differ by rounding alone; rows that are the same in all of
        it, by what their groups hold.
    """
    last = [] if p.weights is None else [p.weights]
    # what is missing comes last, and is equal to what is missing
    columns = [np.where(x == x, x, np.inf) for x in p.columns[1:]]
    keys = [rounded(p.e2)]
    order = np.argsort(keys[0], kind="stable")
    differ = np.diff(keys[0][order]) != 0
    if not differ.all():
        keys += map(rounded, [*first, p.y_std, *columns, *last])
        order = np.lexsort(keys[::-1])
        ordered = [key[order] for key in keys]
        differ = np.logical_or.reduce([each[1:] != each[:-1] for each in ordered])
    if p.groups is None or differ.all():
        return order
    rank = np.empty(p.n_rows, dtype=np.uint64)
    rank[order] = np.append(0, np.cumsum(differ))
    # a sum of whole numbers, which is the same in whatever order rows are added
    holds = np.zeros(int(p.groups.max()) + 1, dtype=np.uint64)
    mixed = rank * _GOLDEN
    np.add.at(holds, p.groups, (mixed ^ (mixed >> np.uint64(32))) * _GOLDEN)
    return np.lexsort((holds[p.groups], rank))


def make_folds(size: Floats, p: Predictions, seed: int, n_folds: int = N_FOLDS) -> Ints:
    """Return the fold of each row, of rows in canonical order.

    Rows are dealt out in the order of `size`, so that each fold gets its share of the
    large ones. Groups stay together: large ones are dealt first, each to the emptiest
    fold. Weights do not matter.
    """
    rng = np.random.default_rng(seed)
    if p.groups is None:
        rounds = -(-size.size // n_folds)
        deal = rng.permuted(np.tile(np.arange(n_folds), (rounds, 1)), axis=1).ravel()
        fold = np.empty(size.size, dtype=np.int64)
        # sizes whose last bits differ, as those in another unit do, are equal
        nearly = np.round(np.log(np.maximum(size, 1e-300)), 9)
        fold[np.argsort(nearly, kind="stable")] = deal[: size.size]
        return fold
    code = in_order_of_appearance(p.groups)
    count, filled = np.bincount(code), np.zeros(n_folds)
    order = rng.permutation(count.size)
    of_group = np.empty(count.size, dtype=np.int64)
    for group in order[np.argsort(-count[order], kind="stable")]:
        of_group[group] = np.argmin(filled)
        filled[of_group[group]] += count[group]
    return of_group[code]


def in_order_of_appearance(groups: Ints) -> Ints:
    """Return the number of each row's group, counted as they come."""
    _, first, code = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[code]


def largest_counted(z2: Floats, weights: Floats | None) -> float:
    """Return up to which value a z² counts, so that no row decides alone.

    It is so many times the mean of what counts: at least 20 (normal errors stay below
    2 ln n, about 20 for 20,000 rows), and sqrt(n) / 2 for larger sets, where single
    rows matter less. Where nearly all errors are exactly 0 the others are no outliers.
    """
    ratio, level = largest_ratio(z2, weights), mean(z2, weights)
    while (counted := mean(np.minimum(z2, ratio * level), weights)) < 0.999 * level:
        level = counted
    return ratio * level


def largest_ratio(z2: Floats, weights: Floats | None) -> float:
    """Return the largest ratio of a z² to their mean that counts in full."""
    n = float(z2.size if weights is None else weights.sum())
    other = float(np.count_nonzero(z2) if weights is None else weights[z2 != 0].sum())
    return max(20.0, 0.5 * float(np.sqrt(n)), 2 * n / max(1.0, other))


def capped(r: Floats, cap: float) -> Floats:
    """Return r up to `cap`, which grows as its logarithm beyond."""
    return np.minimum(r, cap) + cap * np.log(np.maximum(r, cap) / cap)


def standard_error(d: Floats, p: Predictions) -> float:
    """Return the standard error of a mean over rows, or over rows in groups."""
    if p.groups is None and p.weights is None:
        return float(d.std() / np.sqrt(d.size))
    centred = d - p.mean(d)
    sums: Any = centred if p.weights is None else p.weights * centred
    if p.groups is not None:
        sums = np.bincount(p.groups, sums)
    few = sums.size / max(1, sums.size - 1)  # of few groups the sum is too small
    return float(np.sqrt(few * np.sum(sums**2)) / p.total)


def simplest(losses: dict[_Name, Floats], p: Predictions) -> _Name:
    """Return the first of the losses within one standard error of the best."""
    best = min(losses, key=lambda name: p.mean(losses[name]))
    least = SAME * p.mean(np.abs(losses[best]))
    for name, loss in losses.items():
        d = loss - losses[best]
        if p.mean(d) <= max(standard_error(d, p), least):
            return name
    return best  # pragma: no cover - which is within its own standard error


def divided(p: Predictions, share: float, seed: int) -> tuple[Ints, Ints]:
    """Return which rows stay, and which are held out: about a share, whole groups.

    Rows come in the order of their errors, so that what they hold seeds the draw, too:
    else the same ranks would be held out of every set.
    """
    order = canonical_order(p, p.e)
    code = np.arange(p.n_rows)
    if p.groups is not None:
        code = in_order_of_appearance(p.groups[order])
    sizes = np.bincount(code)
    if sizes.size < 2:
        msg = "At least 2 rows, or groups, must be there to hold some out; found 1."
        raise InvalidInputError(msg)
    key = crc32(np.sort(np.round(p.z2, 3)).tobytes())
    drawn = np.random.default_rng([seed, key]).permutation(sizes.size)
    # until the share is reached as nearly as it can be
    ends = np.cumsum(sizes[drawn]) - 0.5 * sizes[drawn]
    n_held = max(1, int(np.searchsorted(ends, share * p.n_rows)))
    is_held = np.zeros(sizes.size, dtype=np.bool_)
    is_held[drawn[: min(n_held, sizes.size - 1)]] = True
    out = np.sort(order[is_held[code]])
    return np.setdiff1d(np.arange(p.n_rows), out), out
