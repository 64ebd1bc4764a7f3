"""Columns of rows, each checked once: features, groups, weights and times."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from ..exceptions import InvalidInputError
from .checks import (
    Floats,
    Ints,
    as_array,
    as_floats,
    check_column,
    check_same_length,
    is_missing,
    is_real,
    refuse_values,
)
from .labels import Categories, Label
from .notices import row_number
from .text import quoted

Column = npt.NDArray[Any]  # numbers as float64, or codes of labels as int64
TypedColumn = tuple[Column, tuple[Label, ...] | None]  # and the labels, of codes
NEGLIGIBLE = 1e-14  # of the sum of all weights: too little to tell levels apart


def typed_column(values: Any, name: str) -> TypedColumn:
    """Return a feature as numbers, or as the codes of labels and these.

    Text is labels, and so are booleans, if there is nothing else in the column.
    """
    if not isinstance(values, Categories):
        column = as_array(values, name)
        kinds = {column.dtype.type}
        if column.dtype.kind == "O":
            kinds = {type(cell) for cell in column.tolist() if not is_missing(cell)}
        are_texts = all(issubclass(kind, str) for kind in kinds)
        are_flags = all(issubclass(kind, bool | np.bool_) for kind in kinds)
        if not kinds or not (are_texts or are_flags):
            numbers = as_floats(column, name)
            is_bad = np.isinf(numbers)
            remedy = "Drop or repair these rows."
            refuse_values(is_bad, numbers, name, "finite, not inf", remedy, "infinite")
            return numbers, None
        values = Categories.of(column)
    return values.codes, values.labels


def group_codes(groups: Any, rows: Floats) -> Ints:
    """Return the number of each row's group, from 0 and without gaps."""
    column = as_array(groups, "groups")
    check_same_length("y_std", rows, "groups", column)
    if column.dtype.kind in "iu":
        _, codes = np.unique(column, return_inverse=True)
        return codes
    names = Categories.of(column)
    if None in names.labels:
        # as a label it would make one large group of rows that have nothing in common
        missing = names.codes == names.labels.index(None)
        remedy = "Give a row that belongs to no other a label of its own."
        must = "a label for every row"
        refuse_values(missing, column, "groups", must, remedy, "missing")
    return names.codes


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

    # rows that count, by ratios to the largest: no sum and no square overflows
    unit = w.max() or 1.0
    rows_left = np.flatnonzero(w / unit > NEGLIGIBLE * np.sum(w / unit))
    if not rows_left.size:
        msg = (
            f"`weights` must have a positive value; all {w.size} are zero. Leave them "
            "out to weigh all rows alike."
        )
        raise InvalidInputError(msg)
    w = w[rows_left]
    if w.min() == w.max():
        return rows_left, None

    # times Σw / Σw², their sum is (Σw)² / Σw²
    ratios = np.sort(w) / unit  # or sums would depend on the order of rows
    factor = np.sum(ratios) / np.sum(ratios**2) / unit
    return rows_left, w if abs(factor - 1) < 1e-12 else w * factor


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

    # objects and text as times, all of them with a zone, or none
    times = np.empty(len(cells), dtype="datetime64[us]")
    have_zones = set()
    for row, value in enumerate(cells):
        try:
            when = _as_time(value)
            have_zones.add(when.tzinfo is not None)
            if len(have_zones) > 1:
                raise ValueError
            if when.tzinfo is not None:
                when = when.astimezone(datetime.UTC)
            times[row] = when.replace(tzinfo=None)
        except (TypeError, ValueError, OverflowError) as problem:
            number = row_number(row)
            msg = (
                "`time` must hold numbers, or dates and text such as 2024-05-01T12:00, "
                "with a time zone in all rows or in none; row "
                f"{number} is {quoted(value)}. Convert or drop it."
            )
            raise InvalidInputError(msg, "time", name="time", row=number) from problem
    return times


def _as_time(value: Any) -> datetime.datetime:
    """Return a date, a period of pandas by its start, or text, as a time."""
    if hasattr(value, "to_timestamp"):
        value = value.to_timestamp()
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value.strip())
    if not isinstance(value, datetime.date) or is_missing(value):
        raise TypeError
    if isinstance(value, datetime.datetime):
        return value
    return datetime.datetime.combine(value, datetime.time())
