"""The one place where input is checked: arrays come out right, or a clear error.

Public functions call :func:`check_pair`, :func:`check_variable` and
:func:`check_features`; estimators call :func:`check_table` and
:func:`check_target`. What these return is trusted everywhere else.
"""

from __future__ import annotations

import datetime
import reprlib
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array, column_or_1d

from .exceptions import InvalidInputError, NotANumberError, ZeroUncertaintyWarning

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Labels = npt.NDArray[Any]

# Fourth powers of values within these bounds, and sixth powers of z-scores, stay
# finite; nothing that anyone has measured lies outside.
LARGEST, SMALLEST, LARGEST_Z = 1e70, 1e-70, 1e45

# The names of scores (S_cal, S_con, ...) and verdicts that are not of a feature.
RESERVED = frozenset({"u", "cal", "con", "ada", "tot", "average"})


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


def check_fraction(value: Any, name: str) -> float:
    """Return `value` as a float strictly between 0 and 1."""
    real = isinstance(value, (int, float, np.integer, np.floating))
    if not real or not 0 < value < 1:
        msg = f"`{name}` must lie strictly between 0 and 1; found {value!r}."
        raise InvalidInputError(msg)
    return float(value)


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(f'"{choice}"' for choice in choices)
        msg = f"`{name}` must be one of {listed}; found {value!r}."
        raise InvalidInputError(msg)
    return str(value)


def _from_series(values: Any) -> Any:
    """Turn a pandas, Polars or PyArrow series into NumPy; leave the rest alone."""
    if isinstance(values, np.ma.MaskedArray) and values.mask.any():
        filled = values.data.astype(object)
        filled[values.mask] = None
        return filled
    series = nw.from_native(values, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        return values
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return series.cast(nw.Float64).to_numpy()
    values = series.to_list()
    if series.dtype in (nw.Categorical, nw.Enum):  # labels, even if they are numbers
        values = [None if value is None else str(value) for value in values]
    column = np.array(values, dtype=object)
    # a column of objects is not text: numbers and None, for example
    return _number_or_text(column) if series.dtype == nw.Object else column


def _as_array(values: Any, name: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(_from_series(values))
    except ValueError as problem:
        msg = f"`{name}` must have rows of equal length ({problem}). Pad or drop some."
        raise InvalidInputError(msg) from problem


def _as_column(values: Any, name: str) -> npt.NDArray[Any]:
    array = _as_array(values, name)
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


def _as_floats(array: npt.NDArray[Any], name: str) -> Floats:
    if np.iscomplexobj(array):
        msg = (
            f"`{name}` must hold real numbers; complex data are not supported. "
            "Pass the real part or the absolute value."
        )
        raise InvalidInputError(msg)
    if array.dtype.kind in "mM":
        raise NotANumberError(_no_dates(name))
    try:
        with np.errstate(over="ignore"):  # of long doubles; infinity is refused later
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as problem:
        for row, value in enumerate(array):
            try:
                float(value)
            except (TypeError, ValueError, OverflowError) as cause:
                found = reprlib.repr(array[row : row + 1].tolist()[0])
                msg = (
                    f"`{name}` must hold numbers; row {row} is {found}. "
                    f"Convert or drop it ({cause})."
                )
                raise NotANumberError(msg) from problem
        raise  # pragma: no cover - some element must have failed


def _no_dates(name: str) -> str:
    return (
        f"`{name}` must hold numbers; found dates or times. Convert them, for example "
        "to days since the first."
    )


def _refuse(bad: npt.NDArray[np.bool_], values: Floats, name: str, must: str) -> None:
    """Raise an error that counts the bad values and shows the first."""
    count = int(np.count_nonzero(bad))
    if count:
        row = int(np.argmax(bad))
        requirement, remedy = must.split("|")
        msg = (
            f"`{name}` must be {requirement}; {count} of {bad.size} values "
            f"{'are' if count > 1 else 'is'} not "
            f"(first at row {row}: {values[row]:g}). {remedy}"
        )
        raise InvalidInputError(msg)


def check_column(values: Any, name: str) -> Floats:
    """Return one column of finite numbers as float64."""
    column = _as_floats(_as_column(values, name), name)
    bad = ~np.isfinite(column)
    if bad.any():
        _refuse(bad, column, name, "finite, not NaN or inf|Drop or repair these rows.")
    return column


def _check_same_length(
    first: str, rows: npt.NDArray[Any], second: str, column: npt.NDArray[Any]
) -> None:
    if rows.shape[0] != column.shape[0]:
        msg = (
            f"`{first}` and `{second}` must have the same number of rows; found "
            f"{rows.shape[0]} and {column.shape[0]}. Pass columns of one table."
        )
        raise InvalidInputError(msg)


def check_uncertainty(uncertainty: Any) -> Floats:
    """Return strictly positive uncertainties, of a size whose square is a number."""
    u = check_column(uncertainty, "uncertainty")
    _refuse(
        u <= 0,
        u,
        "uncertainty",
        "strictly positive|Drop these rows; if the column is a variance or a "
        "logarithm, transform it first.",
    )
    _refuse(
        (u < SMALLEST) | (u > LARGEST),
        u,
        "uncertainty",
        f"between {SMALLEST:g} and {LARGEST:g}|Choose another unit.",
    )
    return u


def check_pair(error: Any, uncertainty: Any) -> tuple[Floats, Floats]:
    """Return errors and strictly positive uncertainties of the same length."""
    e = check_column(error, "error")
    u = check_uncertainty(uncertainty)
    _check_same_length("error", e, "uncertainty", u)
    _refuse(
        (np.abs(e) > LARGEST) | (np.abs(e) > LARGEST_Z * u),
        e,
        "error",
        f"below {LARGEST:g} in size and {LARGEST_Z:g} times its uncertainty|"
        "Are both in the same unit?",
    )
    return e, u


def _label(value: Any) -> str:
    missing = value is None or (isinstance(value, float) and np.isnan(value))
    return "missing" if missing or str(value) in {"<NA>", "NaT"} else str(value)


def as_labels(values: npt.NDArray[Any]) -> Labels:
    """Return labels that sort and compare: numbers stay, the rest become strings."""
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    if values.dtype.kind == "U":
        return values
    return np.array([_label(value) for value in values], dtype=str)


_TIMES = (datetime.date, datetime.time, datetime.timedelta)


def check_variable(values: Any, name: str, rows: npt.NDArray[Any]) -> Labels:
    """Return a variable to bin by: finite numbers, or labels of named groups."""
    column = _as_column(values, name)
    _check_same_length("error", rows, name, column)
    if column.dtype.kind in "UST":
        return as_labels(column)
    if column.dtype.kind == "O":
        kinds = {type(value) for value in column}
        if any(issubclass(kind, str) for kind in kinds):
            return as_labels(column)
        if any(issubclass(kind, _TIMES) for kind in kinds):
            raise NotANumberError(_no_dates(name))
    return check_column(column, name)


def check_groups(groups: Any, rows: npt.NDArray[Any]) -> Labels:
    """Return labels of the groups that rows belong to."""
    column = _as_column(groups, "groups")
    _check_same_length("X", rows, "groups", column)
    return as_labels(column)


def check_features(features: Any, rows: npt.NDArray[Any]) -> dict[str, Labels]:
    """Return named columns from None, a mapping, a data frame or an array."""
    if features is None:
        return {}
    frame = _as_frame(features, "features")
    named: list[tuple[str, Any]]
    if frame is not None:
        named = [(str(c.name), c.to_native()) for c in frame.iter_columns()]
    elif isinstance(features, Mapping):
        named = [(str(name), values) for name, values in features.items()]
    else:
        table = _as_array(features, "features")
        if table.ndim == 1:
            table = table[:, None]
        if table.ndim != 2:
            msg = (
                f"`features` must be a table of columns; found shape {table.shape}. "
                "Pass a data frame, a dict of columns or a two-dimensional array."
            )
            raise InvalidInputError(msg)
        named = [(f"X{i + 1}", column) for i, column in enumerate(table.T)]
    columns = dict(named)
    if len(columns) < len(named):
        msg = "`features` must have columns of different names. Rename them."
        raise InvalidInputError(msg)
    reserved = RESERVED.intersection(columns)
    if reserved:
        name = min(reserved)
        msg = (
            f'`features` must not have a column named "{name}": S_{name} is a score of '
            "its own. Rename it."
        )
        raise InvalidInputError(msg)
    return {
        name: check_variable(values, name, rows) for name, values in columns.items()
    }


def _as_frame(values: Any, name: str) -> nw.DataFrame[Any] | None:
    """Return a data frame of any library, or None if it is not one."""
    try:
        frame = nw.from_native(values, eager_only=True, pass_through=True)
    except ValueError as problem:
        found = " ".join(str(problem).split())
        msg = f"`{name}` must have columns of different names ({found}). Rename them."
        raise InvalidInputError(msg) from problem
    return frame if isinstance(frame, nw.DataFrame) else None


@dataclass(frozen=True)
class Table:
    """The conditioning table: the first column is u, the others are features."""

    columns: tuple[npt.NDArray[Any], ...]
    names: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.columns[0].shape[0])

    def rows(self, which: npt.NDArray[Any]) -> Table:
        """Return some of the rows."""
        return Table(tuple(column[which] for column in self.columns), self.names)

    def position(self, key: Any, argument: str = "by") -> int:
        """Return the position of the column that `key` names or counts."""
        if isinstance(key, str):
            if key in self.names:
                return self.names.index(key)
            known = ", ".join(self.names)
            msg = (
                f"`{argument}` must name a column of X; found {key!r}. Columns are: "
                f"{known}."
            )
            raise InvalidInputError(msg)
        if isinstance(key, (bool, np.bool_)) or not isinstance(key, (int, np.integer)):
            msg = f"`{argument}` must be a column's number or name; found {key!r}."
            raise InvalidInputError(msg)
        if not -len(self.columns) <= key < len(self.columns):
            msg = (
                f"`{argument}` must be a column of X, which has {len(self.columns)} "
                f"feature(s); found {key}. Column 0 is the uncertainty."
            )
            raise InvalidInputError(msg)
        return int(key) % len(self.columns)

    def positions(self, keys: Any, argument: str) -> list[int]:
        """Return the positions of several columns; None stands for none of them."""
        if keys is None:
            return []
        if isinstance(keys, str) or not isinstance(keys, Iterable):
            msg = f"`{argument}` must be a list of columns; found {keys!r}."
            raise InvalidInputError(msg)
        return [self.position(key, argument) for key in keys]

    def numbers(self, key: int | str) -> Floats:
        """Return a column as finite numbers."""
        position = self.position(key)
        return check_column(self.columns[position], f"X[:, {self.names[position]}]")

    def variable(self, key: int | str) -> Labels:
        """Return a column to bin by: finite numbers, or labels of named groups."""
        position = self.position(key)
        column = self.columns[position]
        return check_variable(column, f"X[:, {self.names[position]}]", column)

    def features(self, categorical: set[int]) -> list[Labels]:
        """Return the other columns: numbers, which may be missing, or labels."""
        columns = []
        for position in range(1, len(self.columns)):
            column = self.columns[position]
            name = f"X[:, {self.names[position]}]"
            if column.dtype.kind != "f" or position in categorical:
                columns.append(as_labels(column))
                continue
            infinite = "finite or missing, not inf|Replace these values by NaN."
            _refuse(np.isinf(column), column, name, infinite)
            columns.append(column)
        return columns

    def labels(self, key: int | str) -> Labels:
        """Return a column as group labels."""
        return as_labels(self.columns[self.position(key)])


def check_table(X: Any) -> Table:
    """Return the conditioning table from an array or any data frame."""
    frame = _as_frame(X, "X")
    if frame is not None:
        if not frame.columns or not len(frame):
            msg = (
                f"X has {len(frame)} sample(s) and {len(frame.columns)} feature(s) "
                f"(shape={frame.shape}) while a minimum of 1 is required. "
                "Is the file empty?"
            )
            raise InvalidInputError(msg)
        return Table(
            tuple(
                np.asarray(_from_series(c.to_native())) for c in frame.iter_columns()
            ),
            tuple(str(c) for c in frame.columns),
        )
    try:
        array = check_array(
            _from_series(X), dtype=None, ensure_all_finite=False, ensure_2d=False
        )
    except (TypeError, ValueError) as problem:
        # the words are those that scikit-learn's own checks look for
        msg = (
            f"X must be a table, the uncertainty first: {str(problem).splitlines()[0]} "
            "Pass a data frame or a two-dimensional array."
        )
        raise InvalidInputError(msg) from problem
    if array.dtype.kind == "U" and not isinstance(X, np.ndarray):
        array = np.array(X, dtype=object)  # NumPy made text of the numbers, too
    if array.ndim == 1:
        array = array[:, None]
    names = ("u", *(f"X{i}" for i in range(1, array.shape[1])))
    return Table(tuple(_number_or_text(column) for column in array.T), names)


def _number_or_text(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a column as float64 if it can be; objects of text stay text."""
    if column.dtype.kind == "O" and any(isinstance(value, str) for value in column):
        return column
    try:
        return _as_floats(column, "X")
    except InvalidInputError:
        return column


def check_target(y: Any, n_rows: int, estimator: str) -> Floats:
    """Return the errors an estimator is fitted or scored with."""
    if y is None:
        msg = (
            f"This {estimator} estimator requires y to be passed, but the target y is "
            "None. Pass the errors of the calibration set."
        )
        raise InvalidInputError(msg)
    array = _as_array(y, "y")
    if array.dtype.kind == "c":
        msg = "Complex data not supported: y must hold real errors."
        raise InvalidInputError(msg)
    try:
        array = column_or_1d(array, warn=True)
    except ValueError as problem:
        msg = f"{problem} Pass one column of errors."
        raise InvalidInputError(msg) from problem
    column = _as_floats(_as_column(array, "y"), "y")
    bad = ~np.isfinite(column)
    if bad.any():
        # The first sentence is the one that scikit-learn's own checks look for.
        what = "NaN" if np.isnan(column[bad][0]) else "infinity"
        row = int(np.argmax(bad))
        msg = (
            f"Input y contains {what} or a value too large for dtype('float64'). "
            f"y (the errors) must be finite; {np.count_nonzero(bad)} of {bad.size} "
            f"are not (first at row {row}: {column[row]:g}). "
            "Drop or repair these rows."
        )
        raise InvalidInputError(msg)
    if column.shape[0] != n_rows:
        msg = (
            f"X and y must have the same number of rows; found {n_rows} and "
            f"{column.shape[0]}. Pass columns of one table."
        )
        raise InvalidInputError(msg)
    return column


def check_nonnegative_uncertainty(u: Floats, *, smallest: float | None) -> Floats:
    """Return positive uncertainties for an estimator.

    Zeros are common in ensembles whose members all agree. They are raised to
    `smallest`, or to the smallest positive value in `u` when that is None, with a
    warning that counts them.
    """
    _refuse(
        u < 0,
        u,
        "uncertainty",
        "positive (the first column of X is the uncertainty)|Negative values in data "
        "passed to an estimator that needs uncertainties: drop these rows.",
    )
    zeros = int(np.count_nonzero(u == 0))
    if not zeros:
        return u
    if smallest is None:
        if zeros == u.size:
            msg = (
                f"`uncertainty` must have a positive value; all {u.size} are 0. "
                "Is the right column the first one of X?"
            )
            raise InvalidInputError(msg)
        smallest = float(u[u > 0].min())
    warnings.warn(
        f"{zeros} of {u.size} uncertainties are exactly 0; they were raised to "
        f"{smallest:g}, the smallest positive one seen in fit.",
        ZeroUncertaintyWarning,
        stacklevel=4,
    )
    return np.where(u == 0, smallest, u)
