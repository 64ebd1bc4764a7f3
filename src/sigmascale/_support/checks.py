"""The one place where input is checked: arrays come out right, or a clear error.

`Predictions` are made from what :func:`check_pair` and :func:`check_column` return. It
is trusted everywhere else.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from ..exceptions import InvalidInputError, NotANumberError
from .notices import row_number

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Labels = npt.NDArray[Any]

# Fourth powers of values within these bounds, and sixth powers of z-scores, stay
# finite; nothing that anyone has measured lies outside.
LARGEST, SMALLEST, LARGEST_Z = 1e70, 1e-70, 1e45

EXACT = 2**53  # up to which float64 tells all whole numbers apart

NOT_FINITE = "not-finite"  # the code of what is said of missing numbers

# The names of scores (S_cal, S_con, ...) and verdicts that are not of a feature.
RESERVED = frozenset(
    {"u", "cal", "con", "ada", "tot", "average", "bias", "joint", "coverage"}
)


def rng_from(rng: int | np.random.Generator | None) -> np.random.Generator:
    """Return a generator; an integer is a seed, None takes fresh entropy."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as problem:
        msg = f"`rng` must be a seed, a numpy Generator or None; found {rng!r}."
        raise InvalidInputError(msg) from problem


def check_count(value: Any, name: str, *, least: int = 1) -> int:
    """Return `value` as an integer of at least `least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        msg = f"`{name}` must be an integer; found {value!r}."
        raise InvalidInputError(msg)
    if value < least:
        msg = f"`{name}` must be at least {least}; found {value}."
        raise InvalidInputError(msg)
    return int(value)


def check_nonnegative(value: Any, name: str) -> float:
    """Return `value` as a finite float of at least 0."""
    real = isinstance(value, (int, float, np.integer, np.floating))
    if not real or isinstance(value, bool) or not 0 <= value < np.inf:
        msg = f"`{name}` must be a finite number of at least 0; found {value!r}."
        raise InvalidInputError(msg)
    return float(value)


def check_fraction(value: Any, name: str) -> float:
    """Return `value` as a float strictly between 0 and 1."""
    real = isinstance(value, (int, float, np.integer, np.floating))
    if not real or not 0 < value < 1:
        msg = f"`{name}` must lie strictly between 0 and 1; found {value!r}."
        raise InvalidInputError(msg)
    return float(value)


def check_counts(values: Any, name: str) -> list[int]:
    """Return several integers of at least 1."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        msg = f"`{name}` must be a list of integers; found {values!r}."
        raise InvalidInputError(msg)
    counts = [check_count(value, name) for value in values]
    if not counts:
        msg = f"`{name}` must hold at least one integer; found none."
        raise InvalidInputError(msg)
    return counts


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(f'"{choice}"' for choice in choices)
        msg = f"`{name}` must be one of {listed}; found {value!r}."
        raise InvalidInputError(msg)
    return str(value)


def from_series(values: Any) -> Any:
    """Turn a pandas, Polars or PyArrow series into NumPy; leave the rest alone."""
    if type(values) is np.ndarray:  # the most common, and quickly told
        return values
    if isinstance(values, np.ma.MaskedArray) and values.mask.any():
        filled = values.data.astype(object)
        filled[values.mask] = None
        return filled
    series = nw.from_native(values, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        return values
    wide = series.dtype in (nw.Int128, nw.UInt128)  # which NumPy has not
    if series.dtype.is_integer() and not wide and not series.is_null().any():
        return series.to_numpy()
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return series.cast(nw.Float64).to_numpy()
    values = series.to_list()
    if series.dtype in (nw.Categorical, nw.Enum):  # labels, even if they are numbers
        missing = series.is_null().to_list()
        pairs = zip(values, missing, strict=True)
        values = [None if is_missing else str(value) for value, is_missing in pairs]
    column = np.array(values, dtype=object)
    # a column of objects is not text: numbers and None, for example
    return number_or_text(column) if series.dtype == nw.Object else column


def refuse_lazy(values: Any, name: str) -> None:
    """Refuse a lazy frame, and say where lazy frames go."""
    if type(values) is np.ndarray:  # the most common, and quickly told
        return
    try:
        lazy = isinstance(nw.from_native(values, pass_through=True), nw.LazyFrame)
    except ValueError:  # columns of the same name, which are refused elsewhere
        return
    if lazy:
        msg = (
            f"`{name}` must be in memory; found a lazy frame. Lazy frames go to the "
            "functions of sigmascale.frames: fit, predict, scorecard, local_zms and "
            "validate."
        )
        raise InvalidInputError(msg)


def as_array(values: Any, name: str) -> npt.NDArray[Any]:
    """Return values as an array, whatever library they come from."""
    refuse_lazy(values, name)
    values = from_series(values)
    if isinstance(values, (list, tuple)) and any(isinstance(v, str) for v in values):
        values = np.array([*values, None], dtype=object)[:-1]
    try:
        return np.asarray(values)
    except ValueError as problem:
        msg = f"`{name}` must have rows of equal length ({problem}). Pad or drop some."
        raise InvalidInputError(msg) from problem


def as_column(values: Any, name: str) -> npt.NDArray[Any]:
    array = values if type(values) is np.ndarray else as_array(values, name)
    if array.ndim != 1:
        msg = (
            f"`{name}` must be one-dimensional; found shape {array.shape}. "
            "Pass one column."
        )
        raise InvalidInputError(msg)
    if not array.size:
        msg = f"`{name}` must have at least 1 row; found 0. Is the file empty?"
        raise InvalidInputError(msg)
    return array


def as_floats(array: npt.NDArray[Any], name: str) -> Floats:
    if np.iscomplexobj(array):
        msg = (
            f"`{name}` must hold real numbers; complex data are not supported. "
            "Pass the real part or the absolute value."
        )
        raise InvalidInputError(msg)
    if array.dtype.kind in "mM":
        raise NotANumberError(no_dates(name))
    try:
        if array.dtype.kind in "OSTU" and any(map(_is_odd_text, array.flat)):
            raise ValueError
        with np.errstate(over="ignore"):  # of long doubles; infinity is refused later
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as problem:
        for row, value in enumerate(array):
            try:
                if _is_odd_text(value):
                    msg = "text is a number if it is as in 1000 or 1.5e3"
                    raise ValueError(msg)
                float(value)
            except (TypeError, ValueError, OverflowError) as cause:
                found = reprlib.repr(array[row : row + 1].tolist()[0])
                msg = (
                    f"`{name}` must hold numbers; row {row_number(row)} is {found}. "
                    f"Convert or drop it ({cause})."
                )
                raise NotANumberError(msg) from problem
        raise  # pragma: no cover - some element must have failed


def _is_odd_text(value: Any) -> bool:
    """Return whether text is no number to most, even if Python takes it for one."""
    return isinstance(value, bytes) or (
        isinstance(value, str) and ("_" in value or not value.isascii())
    )


def no_dates(name: str) -> str:
    """Return that dates are no numbers, and the remedy."""
    return (
        f"`{name}` must hold numbers; found dates or times. Convert them, for example "
        "to days since the first."
    )


def refuse_values(
    bad: npt.NDArray[np.bool_], values: Floats, name: str, must: str, code: str = ""
) -> None:
    """Raise an error that counts the bad values and shows the first."""
    count = int(np.count_nonzero(bad))
    if count:
        row = int(np.argmax(bad))
        requirement, remedy = must.split("|")
        msg = (
            f"`{name}` must be {requirement}; {count} of {bad.size} values "
            f"{'are' if count > 1 else 'is'} not "
            f"(first at row {row_number(row)}: {values[row]:g}). {remedy}"
        )
        raise InvalidInputError(msg, code)


def check_column(values: Any, name: str) -> Floats:
    """Return one column of finite numbers as float64."""
    column = as_floats(as_column(values, name), name)
    if not (column.min() > -np.inf and column.max() < np.inf):  # as is none of NaN
        must = "finite, not NaN or inf|Drop or repair these rows."
        refuse_values(~np.isfinite(column), column, name, must, NOT_FINITE)
    return column


def check_same_length(
    first: str, rows: npt.NDArray[Any], second: str, column: npt.NDArray[Any]
) -> None:
    if rows.shape[0] != column.shape[0]:
        msg = (
            f"`{first}` and `{second}` must have the same number of rows; found "
            f"{rows.shape[0]} and {column.shape[0]}. Pass columns of one table."
        )
        raise InvalidInputError(msg)


def refuse_other_order(**columns: Any) -> None:
    """Refuse pandas columns with the same index in another order.

    Rows are paired by their position, and would be paired with those of others.
    """
    indexed = {
        name: values.index
        for name, values in columns.items()
        if hasattr(values, "iloc")  # as pandas has alone
    }
    if len(indexed) < 2:
        return
    (first, index), *others = indexed.items()
    for name, other in others:
        if len(other) != len(index) or other.equals(index):
            continue
        try:
            reordered = other.sort_values().equals(index.sort_values())
        except TypeError:  # of labels that have no order
            reordered = False
        if reordered:
            msg = (
                f"`{first}` and `{name}` have the same index in another order, and "
                "rows are paired by position. Align them first: "
                f"{name} = {name}.loc[{first}.index], or drop both indexes with "
                "reset_index(drop=True) if position is what counts."
            )
            raise InvalidInputError(msg)


def largest_size(values: Floats) -> float:
    """Return the largest absolute value."""
    return max(float(values.max()), -float(values.min()))


def check_uncertainty(
    uncertainty: Any, name: str = "uncertainty", error: Floats | None = None
) -> Floats:
    """Return strictly positive uncertainties, of a size whose square is a number."""
    u = check_column(uncertainty, name)
    if error is not None:
        check_same_length("error", error, name, u)
    if u.min() >= SMALLEST and u.max() <= LARGEST:
        return u
    if error is not None:
        refuse_swapped(error, u, name)
    refuse_values(
        u <= 0,
        u,
        name,
        "strictly positive|Drop these rows, or lift them to a minimum with "
        "Predictions(..., minimum=...). If the column is a variance or a logarithm, "
        "transform it first.",
    )
    refuse_values(
        (u < SMALLEST) | (u > LARGEST),
        u,
        name,
        f"between {SMALLEST:g} and {LARGEST:g}|Choose another unit.",
    )
    return u


def refuse_swapped(error: Floats, u: Floats, name: str = "uncertainty") -> None:
    """Refuse uncertainties of both signs beside errors of one: they are swapped."""
    negative = np.count_nonzero(u < 0)
    if u.size >= 10 and negative > 0.1 * u.size and error.min() > 0:
        msg = (
            f"`error` and `{name}` look swapped: {negative} of {u.size} uncertainties "
            "are negative, and no error is. Swap them."
        )
        raise InvalidInputError(msg)


def check_pair(
    error: Any, uncertainty: Any, name: str = "uncertainty"
) -> tuple[Floats, Floats]:
    """Return errors and strictly positive uncertainties of the same length."""
    e = check_column(error, "error")
    u = check_uncertainty(uncertainty, name, e)
    if largest_size(e) <= min(LARGEST, LARGEST_Z * u.min()):
        return e, u
    refuse_values(
        (np.abs(e) > LARGEST) | (np.abs(e) > LARGEST_Z * u),
        e,
        "error",
        f"below {LARGEST:g} in size and {LARGEST_Z:g} times its uncertainty|"
        "Are both in the same unit?",
    )
    return e, u


def check_interval(interval: Any, error: Floats | None = None) -> Floats:
    """Return lower and upper limits, which may be infinite, one pair per error."""
    frame = as_frame(interval, "interval")
    limits = as_array(interval if frame is None else frame.to_numpy(), "interval")
    if limits.ndim != 2 or limits.shape[1] != 2:
        msg = (
            "`interval` must have two columns, the lower and the upper limit; found "
            f"shape {limits.shape}. Pass what predict_interval returns."
        )
        raise InvalidInputError(msg)
    if error is not None:
        check_same_length("error", error, "interval", limits)
    low, high = (as_floats(limits[:, i], "interval").copy() for i in (0, 1))
    for limit in (low, high):
        refuse_values(
            np.isnan(limit), limit, "interval", "numbers, not NaN|Repair them."
        )
    refuse_values(
        low > high,
        low,
        "interval",
        "a lower and an upper limit, in this order|Swap the columns.",
    )
    return np.column_stack([low, high])


def refuse_reserved(features: Iterable[str]) -> None:
    """Refuse names of features that scores and verdicts have for something else."""
    reserved = RESERVED.intersection(features)
    if reserved:
        name = min(reserved)
        msg = (
            f'`features` must not have a column named "{name}": S_{name} is a score of '
            "its own. Rename it."
        )
        raise InvalidInputError(msg)


def as_frame(values: Any, name: str) -> nw.DataFrame[Any] | None:
    """Return a data frame of any library, or None if it is not one."""
    try:
        frame = nw.from_native(values, eager_only=True, pass_through=True)
    except ValueError as problem:
        found = " ".join(str(problem).split())
        msg = f"`{name}` must have columns of different names ({found}). Rename them."
        raise InvalidInputError(msg) from problem
    return frame if isinstance(frame, nw.DataFrame) else None


def is_label(value: Any) -> bool:
    """Return whether a value is text, or a whole number that float64 may not hold."""
    return isinstance(value, str) or (isinstance(value, int) and abs(value) > EXACT)


def number_or_text(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a column as float64 if it can be; objects that are labels stay so."""
    if column.dtype.kind == "O" and any(map(is_label, column)):
        return column
    try:
        return as_floats(column, "X")
    except InvalidInputError:
        return column
