"""The one place where input is checked: arrays come out right, or a clear error.

`Predictions` are made from what these functions return, and trusted everywhere else.
"""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from ..exceptions import InvalidInputError, NotANumberError
from .labels import label_of, object_array
from .notices import row_number
from .text import quoted, shorten

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Fourth powers of values within these bounds, and sixth powers of z-scores, stay
# finite; nothing that anyone has measured lies outside.
LARGEST = 1e70
SMALLEST = 1e-70
LARGEST_Z = 1e45
IN_CACHE = 2**15  # numbers that are worked on at a time
EXACT = 2**53  # up to which float64 tells all whole numbers apart
_SHAPES = {1: "(n,)", 2: "(n, d)", 3: "(n, m, d)"}


# -- parameters ------------------------------------------------------------------------


def need(is_right: bool, name: str, must: str, value: Any, code: str = "") -> None:
    """Refuse an argument that is not what it must be."""
    if not is_right:
        msg = f"`{shorten(name)}` must {must}; found {quoted(value)}."
        raise InvalidInputError(msg, code)


def rng_from(rng: int | np.random.Generator | None) -> np.random.Generator:
    """Return a generator; an integer is a seed, None takes fresh entropy."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as problem:
        msg = f"`rng` must be a seed, a numpy Generator or None; found {quoted(rng)}."
        raise InvalidInputError(msg) from problem


def check_count(value: Any, name: str, *, least: int = 1) -> int:
    """Return `value` as an integer of at least `least`."""
    is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    need(is_whole and value >= least, name, f"be an integer of at least {least}", value)
    return int(value)


def is_real(value: Any) -> bool:
    """Return whether a value is one real number."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_nonnegative(value: Any, name: str) -> float:
    """Return `value` as a finite float of at least 0."""
    is_right = is_real(value) and 0 <= value < np.inf
    need(is_right, name, "be a finite number of at least 0", value)
    return float(value)


def check_fraction(value: Any, name: str) -> float:
    """Return `value` as a float strictly between 0 and 1."""
    is_right = is_real(value) and 0 < value < 1
    need(is_right, name, "lie strictly between 0 and 1", value)
    return float(value)


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`."""
    in_quotes = ", ".join(f'"{choice}"' for choice in choices)
    is_right = isinstance(value, str) and value in choices
    need(is_right, name, f"be one of {in_quotes}", value)
    return str(value)


# -- arrays of any library -------------------------------------------------------------


def as_frame(values: Any, name: str) -> nw.DataFrame[Any] | None:
    """Return a data frame of any library, or None if it is not one."""
    if type(values) is np.ndarray:  # the most common, and quickly told
        return None
    try:
        frame = nw.from_native(values, pass_through=True)
    except ValueError as problem:
        msg = f"`{name}` must have columns of different names. Rename them."
        raise InvalidInputError(msg) from problem
    if isinstance(frame, nw.LazyFrame):
        msg = (
            f"`{name}` must be in memory; found a lazy frame. Take rows of it with "
            "sigmascale.frames.sample, or apply a recalibrator to it with "
            "sigmascale.frames.apply."
        )
        raise InvalidInputError(msg)
    return frame if isinstance(frame, nw.DataFrame) else None


def from_series(values: Any) -> Any:
    """Turn a series of pandas, Polars or PyArrow into NumPy; leave the rest alone.

    Booleans and categories are labels, and come back as objects.
    """
    if type(values) is np.ndarray:
        return values
    if isinstance(values, np.ma.MaskedArray):
        return np.array(values.tolist(), dtype=object)  # None is what is masked
    series = nw.from_native(values, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        return values

    # numbers, and times without a zone, are what NumPy has
    kind = series.dtype
    if kind.is_numeric():
        is_wide = kind in (nw.Int128, nw.UInt128)  # which NumPy has not
        has_gaps = series.is_null().any()
        if not kind.is_integer() or is_wide or has_gaps:
            series = series.cast(nw.Float64)
        return series.to_numpy()
    if kind == nw.Datetime and getattr(kind, "time_zone", None) is None:
        return series.to_numpy()

    # all else are objects
    cells = series.to_list()
    if kind in (nw.Categorical, nw.Enum):  # labels, even if they are numbers
        cells = [label_of(cell) for cell in cells]
    return object_array(cells)


def detached(values: Any) -> Any:
    """Return a tensor in main memory and without gradients; leave the rest alone.

    A list of tensors is that of an ensemble.
    """
    if isinstance(values, list | tuple) and values and hasattr(values[0], "detach"):
        return [detached(value) for value in values]
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        return values.detach().cpu()
    return values


def as_array(
    values: Any, name: str, dimensions: Collection[int] | None = (1,)
) -> npt.NDArray[Any]:
    """Return rows as an array, whatever library they come from.

    It has one of the numbers of `dimensions`, or any if that is None.
    """
    # what the library has, as an array
    values = detached(values)
    frame = as_frame(values, name)
    values = from_series(values) if frame is None else frame.to_numpy()
    is_list = isinstance(values, (list, tuple))
    if is_list and any(isinstance(value, (str, bool)) for value in values):
        values = object_array(values)  # nothing turns into text
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as problem:
        why = str(problem).splitlines()[0][:200]
        msg = (
            f"`{shorten(name)}` must be an array in memory, with rows of equal length "
            f"({why}). Copy it to a NumPy array first."
        )
        raise InvalidInputError(msg) from problem

    # in one of the shapes that are asked for, and with rows
    if dimensions is not None:
        if set(dimensions) == {1} and array.shape[1:] == (1,):
            array = array.reshape(-1)  # a column, as many models return it
        shapes = " or ".join(_SHAPES[n_dimensions] for n_dimensions in dimensions)
        fits = array.ndim in dimensions
        need(fits, name, f"have shape {shapes}", array.shape, "shape")
    must = "have at least 1 row (is the file empty?)"
    need(array.size > 0, name, must, array.shape, "empty")
    return array


# -- numbers ---------------------------------------------------------------------------


def rounded(x: Floats, bits: int = 44) -> Floats:
    """Return numbers of 44 bits: those that differ by rounding alone are the same.

    Where a number lies halfway, the one whose last bit is 0 is taken.
    """
    last = np.int64(1) << np.int64(53 - bits)  # the last bit that is kept
    whole = np.array(x, dtype=np.float64).view(np.int64)
    for start in range(0, whole.size, IN_CACHE):
        part = whole.reshape(-1)[start : start + IN_CACHE]
        is_odd = (part >> np.int64(53 - bits)) & np.int64(1)
        part += is_odd
        part += last // 2 - 1
        part &= -last
    return whole.view(np.float64)


def for_order(x: Floats) -> Floats:
    """Return numbers of 26 bits, by which rows are put in order and drawn.

    Errors are differences: 12.3 - 12.1 and 1012.3 - 1012.1 have 40 bits in common, and
    are 0.2 both.
    """
    return rounded(x, 26)


def as_floats(array: npt.NDArray[Any], name: str) -> Floats:
    """Return numbers as a new array of float64; what is missing is NaN, −0 is 0."""
    numbers = _new_floats(array, name)
    numbers += 0.0
    return numbers


def _new_floats(array: npt.NDArray[Any], name: str) -> Floats:
    """Return numbers, or objects that are such, as a new array of float64."""
    if array.dtype.kind in "fiu":
        if array.dtype.kind != "f":
            large = (array > EXACT) | (array < -EXACT)  # float64 has some of these only
            remedy = "Pass what tells rows apart as text, or subtract a constant."
            refuse_values(large, array, name, "within ±2^53", remedy, "too-large")
        with np.errstate(over="ignore"):  # of long doubles; infinity is refused later
            return array.astype(np.float64)

    # objects one by one, unless NumPy, which is faster, knows them all
    if {type(value) for value in array.flat} <= {float, type(None)}:
        return array.astype(np.float64)
    numbers = np.empty(array.shape)
    for place, value in np.ndenumerate(array):
        try:
            numbers[place] = _as_number(value)
        except (TypeError, ValueError, OverflowError) as problem:
            row = row_number(place[0] if place else 0)
            msg = (
                f"`{shorten(name)}` must hold numbers; row {row} is {quoted(value)}. "
                "Convert or drop it."
            )
            raise NotANumberError(msg, "not-a-number", name=name, row=row) from problem
    return numbers


def _as_number(value: Any) -> float:
    """Return a cell of an array of objects as a number."""
    if is_missing(value):
        return np.nan
    if not is_real(value) and not isinstance(value, Decimal):
        raise TypeError
    return float(value)


def is_missing(value: Any) -> bool:
    """Return whether a cell of an array of objects is empty."""
    if value is None or (isinstance(value, float) and value != value):
        return True
    return type(value).__name__ in {"NAType", "NaTType"}  # of pandas


def refuse_values(
    bad: Bools, values: npt.NDArray[Any], name: str, must: str, remedy: str, code: str
) -> None:
    """Raise an error that counts the bad values and shows the first."""
    count = int(np.count_nonzero(bad))
    if count:
        first = int(np.argmax(bad))
        number = row_number(first)
        (value,) = values[first : first + 1].tolist()
        msg = (
            f"`{shorten(name)}` must be {must}; {count} of {bad.size} "
            f"{'are' if count > 1 else 'is'} not (first at row {number}: "
            f"{quoted(value)}). {remedy}"
        )
        raise InvalidInputError(msg, code, name=name, row=number, count=count)


def check_numbers(
    values: Any, name: str, dimensions: Collection[int] = (1, 2)
) -> Floats:
    """Return finite numbers, one or a vector of them a row, as new float64."""
    numbers = as_floats(as_array(values, name, dimensions), name)
    if not (numbers.min() > -np.inf and numbers.max() < np.inf):  # as is none of NaN
        bad = np.any(~np.isfinite(numbers.reshape(len(numbers), -1)), axis=1)
        must = "finite, not NaN or inf"
        remedy = "Drop or repair these rows."
        refuse_values(bad, numbers, name, must, remedy, "not-finite")
    return numbers


def check_column(values: Any, name: str) -> Floats:
    """Return one column of finite numbers as new float64."""
    return check_numbers(values, name, (1,))


def check_same_length(
    first: str, rows: npt.NDArray[Any], second: str, column: npt.NDArray[Any]
) -> None:
    """Refuse two columns that cannot be of one table."""
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
    first_name, first_index = "", None
    for name, values in columns.items():
        if not hasattr(values, "iloc"):  # as pandas has alone
            continue
        index = values.index
        if first_index is None:
            first_name, first_index = name, index
            continue
        if len(index) != len(first_index) or index.equals(first_index):
            continue
        try:
            is_reordered = index.sort_values().equals(first_index.sort_values())
        except TypeError:  # of labels that have no order
            is_reordered = False
        if is_reordered:
            msg = (
                f"`{first_name}` and `{name}` have the same index in another order, "
                "and rows are paired by position. Align them first: "
                f"{name} = {name}.loc[{first_name}.index], or drop both indexes with "
                "reset_index(drop=True) if position is what counts."
            )
            raise InvalidInputError(msg, "other-order", columns=[first_name, name])
