"""Folds: rows that a fit has not seen, and what can be told by them.

Nothing here depends on the order in which rows came, on the names of their groups or on
the unit of their errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

import numpy as np

from .._support.checks import Floats, Ints, for_order
from .._support.sorting import stable_order
from ..exceptions import InvalidInputError
from ..predictions.ordering import canonical_order, in_order_of_appearance

if TYPE_CHECKING:
    from ..predictions.predictions import Predictions

N_FOLDS = 5
# Three from so many rows on take 0.6 to 0.7 of the time, and cost 0.01 % of CRPS there.
MANY_ROWS = 30_000
N_FOLDS_OF_MANY = 3
SAME_LOSS = 1e-9  # share of a mean loss; what differs by less is the same
_Name = TypeVar("_Name")


def number_of_folds(n_rows: int) -> int:
    """Return into how many folds so many rows are dealt."""
    return N_FOLDS if n_rows < MANY_ROWS else N_FOLDS_OF_MANY


def make_folds(size: Floats, p: Predictions, seed: int) -> Ints:
    """Return the fold of each row, of rows in canonical order.

    Rows are dealt out in the order of `size`, so that each fold gets its share of the
    large ones. Groups stay together: large ones are dealt first, each to the emptiest
    fold. Weights do not matter.
    """
    rng = np.random.default_rng(seed)
    n_folds = number_of_folds(p.n_rows)
    if p.groups is None:
        return _dealt_rows(size, n_folds, rng)
    group = in_order_of_appearance(p.groups)
    return _dealt_groups(np.bincount(group), n_folds, rng)[group]


def fold_numbers(fold: Ints) -> list[int]:
    """Return the numbers of the folds that have rows."""
    return np.flatnonzero(np.bincount(fold)).tolist()


def by_fold(fold: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield the rows outside each fold, of which a single one has none, and its own."""
    for k in fold_numbers(fold):
        yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


def _dealt_rows(size: Floats, n_folds: int, rng: np.random.Generator) -> Ints:
    """Return folds of rows: of each five that follow in size, one to each fold."""
    # each round has every fold once, in an order of its own
    n_rounds = -(-size.size // n_folds)
    rounds = np.tile(np.arange(n_folds), (n_rounds, 1))
    dealt = rng.permuted(rounds, axis=1).ravel()

    fold = np.empty(size.size, dtype=np.int64)
    fold[stable_order(for_order(size))] = dealt[: size.size]
    return fold


def _dealt_groups(n_rows: Ints, n_folds: int, rng: np.random.Generator) -> Ints:
    """Return folds of groups: the largest first, each to the emptiest fold."""
    shuffled = rng.permutation(n_rows.size)
    # whole numbers
    largest_first = shuffled[np.argsort(-n_rows[shuffled], kind="stable")]
    fold = np.empty(n_rows.size, dtype=np.int64)
    filled = np.zeros(n_folds)
    for group in largest_first:
        fold[group] = np.argmin(filled)
        filled[fold[group]] += n_rows[group]
    return fold


def divided(p: Predictions, share: float, seed: int) -> tuple[Ints, Ints]:
    """Return which rows stay, and which are held out: about a share, whole groups.

    Rows come in the order of their errors, so that what they hold seeds the draw, too:
    else the same ranks would be held out of every set. Means of z-scores seed it, which
    do not depend on the last bits of any row.
    """
    # what is held out together: a row, or a group
    order = canonical_order(p)
    unit = np.arange(p.n_rows)
    if p.groups is not None:
        unit = in_order_of_appearance(p.groups[order])
    sizes = np.bincount(unit)
    if sizes.size < 2:
        msg = "At least 2 rows, or groups, must be there to hold some out; found 1."
        raise InvalidInputError(msg)

    # units in an order that seed and rows draw
    means = for_order(np.array([p.abs_z.mean(), p.z2.mean()]))
    rng = np.random.default_rng([seed, crc32(means.tobytes())])
    drawn = rng.permutation(sizes.size)

    # until the share is reached as nearly as it can be, and one unit stays at least
    middles = np.cumsum(sizes[drawn]) - 0.5 * sizes[drawn]
    n_held = max(1, int(np.searchsorted(middles, share * p.n_rows)))  # levels
    is_held = np.zeros(sizes.size, dtype=np.bool_)
    is_held[drawn[: min(n_held, sizes.size - 1)]] = True
    held_out = np.sort(order[is_held[unit]])
    return np.setdiff1d(np.arange(p.n_rows), held_out), held_out  # whole numbers


# -- comparisons of losses of rows out of fold -----------------------------------------


def simplest(losses: dict[_Name, Floats], p: Predictions) -> _Name:
    """Return the first of the losses within one standard error of the best.

    Parameters
    ----------
    losses : dict of array of shape (n,)
        The loss of each row, by the name of what was tried; simple ones come first.
    p : Predictions
        The rows, whose groups and weights count.
    """
    best = min(losses, key=lambda name: p.mean(losses[name]))
    same = SAME_LOSS * p.mean(np.abs(losses[best]))
    for name, loss in losses.items():
        excess = loss - losses[best]
        if p.mean(excess) <= max(standard_error(excess, p), same):
            return name
    return best  # pragma: no cover - which is within its own standard error


def standard_error(values: Floats, p: Predictions) -> float:
    """Return the standard error of a mean over rows, or over rows in groups.

    It is √(k / (k − 1) Σ s²) / Σ w; each of k rows or groups has s = Σ w (x − ⟨x⟩).
    """
    if p.groups is None and p.weights is None:
        return float(values.std() / np.sqrt(values.size))
    sums: Any = values - p.mean(values)
    if p.weights is not None:
        sums = p.weights * sums
    if p.groups is not None:
        sums = np.bincount(p.groups, sums)
    few = sums.size / max(1, sums.size - 1)  # of few groups the sum is too small
    return float(np.sqrt(few * np.sum(sums**2)) / p.n_effective)
