"""Rows that look like repeats of one sample, noticed where no groups were given.

Values of a continuous variable hardly ever meet by chance. Where nearly all of them do,
and about equally often, rows repeat what they belong to: a sample that was measured
again, the conformers of a molecule, the frames of a trajectory. Three kinds of ties
mean nothing and are told from it: those of rounded numbers, which lie on a grid; those
of whole numbers and labels; and those of isomers and the like, of which some values
have many rows and most have few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..exceptions import RepeatedRowsWarning
from ..predictions import Predictions
from .checks import Floats
from .telling import warn

CHECKED = 20_000  # rows; of more, those whose values fall into a share are looked at
LEAST_DISTINCT = 20  # values or rows, below which there are but few
MOST_ROWS = {"u": 10, "feature": 30}  # a value, beyond which it is rather a level
UNEVEN = 0.35  # squared coefficient of variation of the rows a value
DUPLICATES = 0.1  # share of rows that are the same as another
DIGITS = 4  # a number with more of them was not rounded for people to read
FINE = 0.8  # share of values that have more digits
ON_A_GRID = 8  # the median gap of neighbours in units of the smallest, at most

_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio


def warn_of_repeats(rows: Predictions, stacklevel: int = 2) -> None:
    """Warn if rows look like repeats and nothing says which of them belong together."""
    if rows.groups is not None:
        return
    found = repeats_found(rows)
    if found:
        warn(
            f"Rows look like repeats: {found}. Rows that belong together are not "
            "independent, and count for more than they know. Pass `groups`, a label "
            "for each row, equal for those that belong together; or silence this "
            "warning (RepeatedRowsWarning) if they are independent.",
            RepeatedRowsWarning,
            stacklevel=stacklevel + 1,
        )


def repeats_found(rows: Predictions) -> str:
    """Return what looks like repeats, in words, or nothing."""
    numbers = {
        name: column
        for name, column in zip(rows.names, rows.columns, strict=True)
        if column.dtype.kind == "f"
    }
    features = dict(list(numbers.items())[1:])
    if rows.error is not None:
        same = _share_of_duplicates([*numbers.values(), rows.error])
        if same >= DUPLICATES and _is_continuous(_some(rows.error, rows.error)):
            return f"{same:.0%} have the error and all numbers of another row"
    for name, x in numbers.items():
        kind = "u" if name == rows.names[0] else "feature"
        some = _some(x, x)
        if _is_even(some, MOST_ROWS[kind]) and _is_continuous(some):
            return f"`{name}` has {_counted(some, x.size)}"
    if len(features) > 1:
        key = _key(list(features.values()))
        some = _some(key, key)
        if _is_even(some, MOST_ROWS["feature"]) and any(
            _is_continuous(_some(x, x)) for x in features.values()
        ):
            return f"the features have {_counted(some, key.size)}"
    return ""


def _counted(some: npt.NDArray[Any], n_rows: int) -> str:
    each = some.size / np.unique(some).size
    return (
        f"about {n_rows / each:.0f} different values in {n_rows} rows, each in "
        f"{each:.3g} of them on average and about equally often"
    )


def _bits(x: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    if x.dtype.kind == "f":
        x = x + 0.0  # there is no -0.0
    return x.view(np.uint64)


def _key(columns: Sequence[Floats]) -> npt.NDArray[np.uint64]:
    """Return a number for each row, the same where all columns are the same."""
    key = np.zeros(columns[0].size, dtype=np.uint64)
    for column in columns:
        key = (key ^ _bits(column)) * _MIX
        key ^= key >> np.uint64(29)
    return key


def _some(values: npt.NDArray[Any], key: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the finite values of few rows: all those of a share of the values."""
    if values.size > CHECKED:
        mixed = (_bits(key) * _MIX) >> np.uint64(32)
        values = values[mixed < np.uint64(2**32 * CHECKED // values.size)]
    return values[np.isfinite(values)] if values.dtype.kind == "f" else values


def _share_of_duplicates(columns: Sequence[Floats]) -> float:
    """Return the share of rows with an error that are the same as another row."""
    key = _key([column[columns[-1] != 0] for column in columns])
    some = _some(key, key)
    if not some.size:
        return 0.0
    counts = np.unique(some, return_counts=True)[1]
    repeated = int(counts[counts > 1].sum())
    return repeated / some.size if repeated >= LEAST_DISTINCT else 0.0


def _is_even(values: npt.NDArray[Any], most: int) -> bool:
    """Return whether many values have several rows each, and about equally many."""
    counts = np.unique(values, return_counts=True)[1]
    if counts.size < LEAST_DISTINCT:
        return False
    each = values.size / counts.size
    return 2 <= each <= most and bool(counts.var() <= UNEVEN * each**2)


def _is_continuous(values: npt.NDArray[Any]) -> bool:
    """Return whether numbers have many values, unrounded and not on a grid."""
    distinct = np.unique(values).astype(np.float64)
    if distinct.size < LEAST_DISTINCT:
        return False
    # more digits than rounded numbers have
    size = np.abs(distinct[distinct != 0])
    digits = size / 10.0 ** (np.floor(np.log10(size)) - DIGITS + 1)
    if np.mean(np.abs(digits - np.round(digits)) > 1e-6) < FINE:
        return False
    gaps = np.diff(distinct)
    gaps = gaps[gaps > 1e-9 * (distinct[-1] - distinct[0])]
    return bool(np.median(gaps) > ON_A_GRID * gaps.min())
