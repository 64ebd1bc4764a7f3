"""Columns of rows: features, groups, weights and times, each checked once."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from ..exceptions import InvalidInputError, NotANumberError
from .checks import (
    EXACT,
    TIMES,
    Floats,
    Ints,
    as_column,
    as_floats,
    check_column,
    check_same_length,
    is_real,
    no_dates,
    refuse_values,
)
from .labels import Categories, Label
from .notices import row_number
from .text import quoted, shorten

Column = npt.NDArray[Any]  # numbers as float64, or codes of labels as int64


def typed_column(values: Any, name: str) -> tuple[Column, tuple[Label, ...] | None]:
    """Return a feature as numbers, or as the codes of labels and these."""
    if isinstance(values, Categories):
        return values.codes, values.labels
    column = as_column(values, name)
    kind = column.dtype.kind
    if kind == "O":
        cells = [x for x in column.tolist() if not _is_missing(x)]
        kinds = {type(x) for x in cells}
        if any(issubclass(each, TIMES) for each in kinds):
            raise NotANumberError(no_dates(name), "dates", name=name)
        labels = [each for each in kinds if issubclass(each, (str, bool, np.bool_))]
        if labels and len(kinds) > 1 and not all(issubclass(k, str) for k in kinds):
            odd = next(i for i, x in enumerate(column) if type(x) in labels)
            row, found = row_number(odd), quoted(column[odd])
            msg = (
                f"`{shorten(name)}` must hold numbers or labels, not both; row {row} "
                f"is {found} among others. Convert or drop it."
            )
            raise NotANumberError(msg, "mixed", name=name, row=row)
        kind = "U" if labels else "i" if cells and kinds <= {int} else "O"
    if kind in "bUT" or (kind in "iu" and not _is_exact(column)):
        found_labels = Categories.of(column)
        return found_labels.codes, found_labels.labels
    numbers = as_floats(column, name)
    must, remedy = "finite, not inf", "Drop or repair these rows."
    refuse_values(np.isinf(numbers), numbers, name, must, remedy, "infinite")
    return numbers, None


def _is_exact(column: npt.NDArray[Any]) -> bool:
    """Return whether float64 tells the whole numbers of a column apart."""
    known = column
    if column.dtype.kind == "O":
        known = np.array([x for x in column if not _is_missing(x)], dtype=object)
    if max(int(known.max()), -int(known.min())) <= EXACT:
        return True
    return all(int(float(x)) == int(x) for x in known)


def _is_missing(value: Any) -> bool:
    """Return whether a cell of an array of objects is empty."""
    if value is None or (isinstance(value, float) and value != value):
        return True
    return type(value).__name__ in {"NAType", "NaTType"}  # of pandas


def group_codes(groups: Any, rows: Floats) -> Ints:
    """Return the number of each row's group, from 0 and without gaps."""
    column = as_column(groups, "groups")
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
    kept = np.flatnonzero(w)
    if not kept.size:
        msg = (
            f"`weights` must have a positive value; all {w.size} are zero. Leave them "
            "out to weigh all rows alike."
        )
        raise InvalidInputError(msg)
    w = w[kept]
    if w.min() == w.max():
        return kept, None
    unit = 2.0 ** np.frexp(w.max())[1]  # no square overflows, and halving is exact
    v = w / unit
    factor = v.sum() / np.sum(v**2) / unit
    return kept, w if abs(factor - 1) < 1e-12 else w * factor


def check_time(time: Any, rows: Floats) -> npt.NDArray[Any]:
    """Return times as numbers, or as dates in UTC, of one kind and none missing."""
    column = as_column(time, "time")
    check_same_length("y_std", rows, "time", column)
    if column.dtype.kind in "fiu":
        return check_column(column, "time")
    if column.dtype.kind == "M":
        remedy = "Drop or repair these rows."
        missing = np.isnat(column)
        refuse_values(missing, column, "time", "a time", remedy, "missing")
        return column.copy()
    found, kinds = [], set()
    for row, value in enumerate(column.tolist()):
        try:
            when, kind = _as_time(value)
        except (TypeError, ValueError) as problem:
            msg = (
                "`time` must hold numbers, dates, or text such as 2024-05-01T12:00; "
                f"row {row_number(row)} is {quoted(value)}. Convert or drop it."
            )
            code = {"name": "time", "row": row_number(row)}
            raise InvalidInputError(msg, "time", **code) from problem
        found.append(when)
        kinds.add(kind)
        if len(kinds) > 1:
            msg = (
                f"`time` must be of one kind; row {row_number(row)} is {quoted(value)} "
                f"and not as those before: {' and '.join(sorted(kinds))}. Convert all "
                "of them to one."
            )
            raise InvalidInputError(msg, "time", name="time", row=row_number(row))
    return np.array(found, dtype=float if kinds == {"numbers"} else "datetime64[us]")


def _as_time(value: Any) -> tuple[Any, str]:
    """Return one time, and of which kind it is."""
    if is_real(value) and np.isfinite(value):
        return value, "numbers"
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value.strip())
    if not isinstance(value, datetime.date) or _is_missing(value):
        raise TypeError
    if not isinstance(value, datetime.datetime):
        return datetime.datetime.combine(value, datetime.time()), "dates without a zone"
    if value.tzinfo is None:
        return value, "dates without a zone"
    return value.astimezone(datetime.UTC).replace(tzinfo=None), "dates with a time zone"
