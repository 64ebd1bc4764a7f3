"""Columns of rows, each checked once: features, groups, weights, times, members.

Members of an ensemble and quantiles say a prediction and a standard uncertainty; what
else they say is not kept.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from ..exceptions import FewMembersWarning, InvalidInputError
from .checks import (
    Floats,
    Ints,
    as_array,
    as_floats,
    check_column,
    check_count,
    check_numbers,
    check_same_length,
    is_missing,
    is_real,
    need,
    refuse_values,
    rounded,
)
from .labels import Categories, Label
from .notices import row_number, warn
from .text import quoted

Column = npt.NDArray[Any]  # numbers as float64, or codes of labels as int64
TypedColumn = tuple[Column, tuple[Label, ...] | None]  # and the labels, of codes
FEW_MEMBERS = 10  # of an ensemble: their spread is off by a quarter
EQUAL = 1e-9  # of two levels
NOTHING = 1e-100  # times the largest weight: as good as 0


def typed_column(values: Any, name: str) -> TypedColumn:
    """Return a feature as numbers, or as the codes of labels and these.

    Text is labels, and so are booleans, if there is nothing else in the column.
    """
    if not isinstance(values, Categories):
        column = as_array(values, name)
        kinds = {column.dtype.type}
        if column.dtype.kind == "O":
            kinds = {type(x) for x in column.tolist() if not is_missing(x)}
        texts = all(issubclass(each, str) for each in kinds)
        flags = all(issubclass(each, bool | np.bool_) for each in kinds)
        if not kinds or not (texts or flags):
            numbers = as_floats(column, name)
            must, remedy = "finite, not inf", "Drop or repair these rows."
            refuse_values(np.isinf(numbers), numbers, name, must, remedy, "infinite")
            return numbers, None
        values = Categories.of(column)
    return values.codes, values.labels


def group_codes(groups: Any, rows: Floats) -> Ints:
    """Return the number of each row's group, from 0 and without gaps."""
    column = as_array(groups, "groups")
    check_same_length("y_std", rows, "groups", column)
    if column.dtype.kind in "iu":
        return np.unique(column, return_inverse=True)[1]
    found = Categories.of(column)
    if None in found.labels:
        # as a label it would make one large group of rows that have nothing in common
        missing = found.codes == found.labels.index(None)
        remedy = "Give a row that belongs to no other a label of its own."
        must = "a label for every row"
        refuse_values(missing, column, "groups", must, remedy, "missing")
    return found.codes


def effective_weights(weights: Any, rows: Floats) -> tuple[Ints, Floats | None]:
    """Return which rows have a weight, and their weights; None if all are equal.

    The unit is the one in which their sum is the effective number of rows,
    (Σw)² / Σw²: whatever counts rows, as shrinkage of thin bins does, then counts what
    there is to learn from.
    """
    w = check_column(weights, "weights")
    check_same_length("y_std", rows, "weights", w)
    remedy = "Give these rows the weight 0."
    refuse_values(w < 0, w, "weights", "at least 0", remedy, "negative")
    kept = np.flatnonzero(w > NOTHING * w.max())
    if not kept.size:
        msg = (
            f"`weights` must have a positive value; all {w.size} are zero. Leave them "
            "out to weigh all rows alike."
        )
        raise InvalidInputError(msg)
    w = w[kept]
    if w.min() == w.max():
        return kept, None
    unit = w.max()  # so that no square overflows
    factor = np.sum(w / unit) / np.sum((w / unit) ** 2) / unit
    return kept, w if abs(factor - 1) < 1e-12 else w * factor


def check_time(time: Any, rows: Floats) -> npt.NDArray[Any]:
    """Return times as numbers, or as dates; in UTC if all have a time zone."""
    column = as_array(time, "time")
    check_same_length("y_std", rows, "time", column)
    if column.dtype.kind == "M":
        remedy = "Drop or repair these rows."
        missing = np.isnat(column)
        refuse_values(missing, column, "time", "a time", remedy, "missing")
        return column.copy()
    cells = column.tolist()
    if all(is_real(value) or is_missing(value) for value in cells):
        return check_column(column, "time")
    found = np.empty(len(cells), dtype="datetime64[us]")
    zoned = set()
    for row, value in enumerate(cells):
        try:
            when = _as_time(value)
            zoned.add(when.tzinfo is not None)
            if len(zoned) > 1:
                raise ValueError
            utc = when.astimezone(datetime.UTC) if when.tzinfo else when
            found[row] = utc.replace(tzinfo=None)
        except (TypeError, ValueError, OverflowError) as problem:
            number = row_number(row)
            msg = (
                "`time` must hold numbers, or dates and text such as 2024-05-01T12:00, "
                "with a time zone in all rows or in none; row "
                f"{number} is {quoted(value)}. Convert or drop it."
            )
            raise InvalidInputError(msg, "time", name="time", row=number) from problem
    return found


def _as_time(value: Any) -> datetime.datetime:
    """Return a date, or text, as a time."""
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value.strip())
    if not isinstance(value, datetime.date) or is_missing(value):
        raise TypeError
    if isinstance(value, datetime.datetime):
        return value
    return datetime.datetime.combine(value, datetime.time())


def of_members(members: Any, ddof: int = 1) -> tuple[Floats, Floats]:
    """Return the mean and the spread of an ensemble's members."""
    table = check_numbers(members, "members", (2, 3))
    n_members, lost = table.shape[1], check_count(ddof, "ddof", least=0)
    least = max(2, lost + 1)
    must = f"have at least {least} columns, one a member"
    need(n_members >= least, "members", must, n_members)
    if n_members < FEW_MEMBERS:
        off = 100 / np.sqrt(2 * max(1, n_members - 1))
        warn(
            f"The spread of {n_members} members is off by some {off:.0f} % by "
            "chance, row by row, and what they share it does not show at all: "
            "recalibrate it.",
            FewMembersWarning,
            stacklevel=3,
        )
    with np.errstate(over="ignore", invalid="ignore"):  # which is refused later
        apart = table - table[:, :1]  # equal members have a spread of exactly 0
        spread = apart.std(axis=1, ddof=lost)
        if spread.ndim == 2:
            spread = rounded(np.sqrt((spread**2).mean(axis=1)))
        return table.mean(axis=1), spread


def of_quantiles(levels: Any, quantiles: Any) -> tuple[Floats, Floats]:
    """Return the middle of quantiles, and their width in units of a normal one."""
    from scipy.special import ndtri

    p = check_column(levels, "levels")
    table = check_numbers(quantiles, "quantiles", (2,))
    ascends = bool(((p > 0) & (p < 1)).all() and (np.diff(p) > 0).all())
    need(ascends, "levels", "ascend, between 0 and 1", p.tolist())
    must = f"have a column for each of {p.size} levels"
    need(table.shape[1] == p.size, "quantiles", must, table.shape[1])
    pairs = [
        (i, j) for i in range(p.size) for j in range(i) if abs(p[i] + p[j] - 1) < EQUAL
    ]
    must = "have a symmetric pair, such as 0.05 and 0.95"
    need(bool(pairs), "levels", must, p.tolist())
    high, low = max(pairs)
    # the median, or the quantiles on both sides of it
    after = int(p.searchsorted(0.5 - EQUAL))
    before = after if abs(p[after] - 0.5) < EQUAL else after - 1
    with np.errstate(over="ignore", invalid="ignore"):  # which is refused later
        u = (table[:, high] - table[:, low]) / (2 * ndtri(p[high]))
        return table[:, [before, after]].mean(axis=1), u
