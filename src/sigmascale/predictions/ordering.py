"""An order of rows that depends on what they hold alone, not on how they came.

Rows are put in this order once, where they are fitted or tested. From there on sums add
up in the same way, and folds and draws are the same, however a table was sorted and
whatever its groups are called; nobody behind that door need think of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._support.checks import Bools, Floats, Ints, for_order
from .._support.hashing import hash_of_positions
from .._support.sorting import stable_order

if TYPE_CHECKING:
    from .predictions import Predictions


def order_of(x: Floats) -> Ints:
    """Return the order of computed numbers, none of them NaN.

    What differs by rounding alone stays as it comes: in another unit, ties are ties.
    """
    return stable_order(for_order(x))


def ascending(x: Floats) -> tuple[Ints, Floats]:
    """Return that order, and the numbers in it, none below the one before it."""
    order = order_of(x)
    return order, np.maximum.accumulate(x[order])


def in_canonical_order(p: Predictions) -> Predictions:
    """Return rows in canonical order, and groups in the order of their rows.

    They know where they were in the table that was passed: see `places`. No frame is
    made of them, so that they need no index.
    """
    order = canonical_order(p)
    rows = p._with(origin=None).take(order)
    groups = None if rows.groups is None else in_order_of_appearance(rows.groups)
    places = order if p.places is None else p.places[order]
    return rows._with(places=places, groups=groups)


def canonical_order(p: Predictions) -> Ints:
    """Return an order of rows with errors that does not depend on how they came.

    Nor does it depend on the unit, the zero or the sign of what is predicted.

    Parameters
    ----------
    p : Predictions
        Rows with errors.

    Returns
    -------
    array of int
        By the size of the error, columns, weights and the sign of the error, all of
        which are the same if they differ by rounding alone; rows that are the same in
        all of it, by what their groups hold.
    """
    # the size of the error tells nearly all rows apart: other keys are often not needed
    size = for_order(p.squared_error)
    order = stable_order(size)
    differ = _changes(size[order])
    if not differ.all():
        # rows that have the size of their neighbour, before or after
        alike = np.flatnonzero(~(np.append(True, differ) & np.append(differ, True)))
        rows = order[alike]
        keys = [size[rows], *_other_keys(p, rows)]
        by_all_keys = np.lexsort(keys[::-1])
        order[alike] = rows[by_all_keys]
        # neighbours among these are neighbours among all, or differ in size
        differ_alike = np.logical_or.reduce(
            [_changes(key[by_all_keys]) for key in keys]
        )
        differ[alike[1:] - 1] = differ_alike
    if p.groups is None or differ.all():
        return order
    return _equal_rows_by_group(p.groups, order, differ)


def _other_keys(p: Predictions, rows: Ints) -> list[Floats]:
    """Return what orders rows whose errors are of one size, first keys first."""
    keys = [for_order(p.y_std[rows])]
    for column in p.columns[1:]:
        # what is missing comes last, and is equal to what is missing
        values = np.where(np.isnan(column[rows]), np.inf, column[rows])
        keys.append(for_order(values))
    if p.weights is not None:
        keys.append(for_order(p.weights[rows]))
    keys.append(_sides(p.signed_error)[rows])
    return keys


def _sides(error: Floats) -> Floats:
    """Return the sign of each error; that of their sum is positive.

    So it stays where the sign of all errors changes. The sum is one of whole numbers,
    and the same in whatever order rows are added.
    """
    largest = float(np.abs(error).max()) or 1.0
    total = np.rint(error / largest * 2.0**30).astype(np.int64).sum()
    return np.sign(error) if total >= 0 else -np.sign(error)


def _changes(values: Floats) -> Bools:
    """Return where a value differs from the one before it, but for the first."""
    return np.asarray(values[1:] != values[:-1])


def _equal_rows_by_group(groups: Ints, order: Ints, differ: Bools) -> Ints:
    """Return an order in which rows that are the same follow what their groups hold.

    `order` is one by what rows hold, and `differ` tells where a row of it is not the
    same as the one before. Names of groups do not matter.
    """
    # rows that are the same have one rank
    rank = np.empty(groups.size, dtype=np.int64)
    rank[order] = np.append(0, np.cumsum(differ))
    # a sum of whole numbers, which is the same in whatever order rows are added
    held_by_group = np.zeros(int(groups.max()) + 1, dtype=np.uint64)
    np.add.at(held_by_group, groups, hash_of_positions(rank))
    return np.lexsort((held_by_group[groups], rank))


def in_order_of_appearance(groups: Ints) -> Ints:
    """Return the number of each row's group, counted as they come."""
    _, first_row, code = np.unique(groups, return_index=True, return_inverse=True)
    place_of_code = np.argsort(np.argsort(first_row))
    return place_of_code[code]
