"""The one place where input is checked: arrays come out right, or a clear error.

Public functions call :func:`check_pair`, :func:`check_variable` and
:func:`check_features`; estimators call :func:`check_table` and
:func:`check_target`. What these return is trusted everywhere else.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
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
    if not isinstance(value, (int, float, np.number)) or not 0 < value < 1:
        msg = f"`{name}` must lie strictly between 0 and 1; found {value!r}."
        raise InvalidInputError(msg)
    return float(value)


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`."""
    if value not in choices:
        listed = ", ".join(f'"{choice}"' for choice in choices)
        msg = f"`{name}` must be one of {listed}; found {value!r}."
        raise InvalidInputError(msg)
    return str(value)


def _from_series(values: Any) -> Any:
    """Turn a pandas, Polars or PyArrow series into NumPy; leave the rest alone."""
    series = nw.from_native(values, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        return values
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return series.cast(nw.Float64).to_numpy()
    return np.array(series.to_list(), dtype=object)


def _as_column(values: Any, name: str) -> npt.NDArray[Any]:
    array = np.asarray(_from_series(values))
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
        msg = f"`{name}` must hold real numbers; complex data are not supported."
        raise InvalidInputError(msg)
    try:
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as problem:
        for row, value in enumerate(array):
            try:
                float(value)
            except (TypeError, ValueError) as cause:
                msg = (
                    f"`{name}` must hold numbers; row {row} is {value!r}. "
                    f"Convert or drop it ({cause})."
                )
                raise NotANumberError(msg) from problem
        raise  # pragma: no cover - some element must have failed


def _refuse(bad: npt.NDArray[np.bool_], values: Floats, name: str, must: str) -> None:
    """Raise an error that counts the bad values and shows the first."""
    count = int(np.count_nonzero(bad))
    if count:
        row = int(np.argmax(bad))
        requirement, remedy = must.split("|")
        msg = (
            f"`{name}` must be {requirement}; {count} of {bad.size} "
            f"value{'s are' if count > 1 else ' is'} not "
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


def _check_same_length(**columns: npt.NDArray[Any]) -> None:
    lengths = {name: column.shape[0] for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        names = " and ".join(f"`{name}`" for name in lengths)
        sizes = " and ".join(str(size) for size in lengths.values())
        msg = (
            f"{names} must have the same number of rows; found {sizes}. "
            "Pass columns of one table."
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
    _check_same_length(error=e, uncertainty=u)
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
    return np.array([_label(value) for value in values], dtype=str)


def check_variable(values: Any, name: str, rows: npt.NDArray[Any]) -> Labels:
    """Return a variable to bin by: finite numbers, or labels of named groups."""
    column = _as_column(values, name)
    _check_same_length(**{"error": rows, name: column})
    if column.dtype.kind in "OUST":
        try:
            column = column.astype(np.float64)
        except (TypeError, ValueError):
            return as_labels(column)
    return check_column(column, name)


def check_groups(groups: Any, rows: npt.NDArray[Any]) -> Labels:
    """Return labels of the groups that rows belong to."""
    column = _as_column(groups, "groups")
    _check_same_length(X=rows, groups=column)
    return as_labels(column)


def check_features(features: Any, rows: npt.NDArray[Any]) -> dict[str, Labels]:
    """Return named columns from None, a mapping, a data frame or an array."""
    if features is None:
        return {}
    frame = nw.from_native(features, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        columns = {str(c.name): c.to_native() for c in frame.iter_columns()}
    elif isinstance(features, Mapping):
        columns = {str(name): values for name, values in features.items()}
    else:
        table = np.asarray(_from_series(features))
        if table.ndim == 1:
            table = table[:, None]
        if table.ndim != 2:
            msg = (
                f"`features` must be a table of columns; found shape {table.shape}. "
                "Pass a data frame, a dict of columns or a two-dimensional array."
            )
            raise InvalidInputError(msg)
        columns = {f"X{i + 1}": column for i, column in enumerate(table.T)}
    if "u" in columns:
        msg = '`features` must not have a column named "u", the uncertainty. Rename it.'
        raise InvalidInputError(msg)
    return {
        name: check_variable(values, name, rows) for name, values in columns.items()
    }


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

    def position(self, key: int | str) -> int:
        """Return the position of the column that `key` names or counts."""
        if isinstance(key, str):
            if key in self.names:
                return self.names.index(key)
            known = ", ".join(self.names)
            msg = f"`by` must name a column of X; found {key!r}. Columns are: {known}."
            raise InvalidInputError(msg)
        if isinstance(key, (bool, np.bool_)) or not isinstance(key, (int, np.integer)):
            msg = f"`by` must be a column's number or name; found {key!r}."
            raise InvalidInputError(msg)
        if not -len(self.columns) <= key < len(self.columns):
            msg = (
                f"`by` must be a column of X, which has {len(self.columns)} feature(s)"
                f"; found {key}. Column 0 is the uncertainty."
            )
            raise InvalidInputError(msg)
        return int(key) % len(self.columns)

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
            if column.dtype.kind != "f" or position in categorical:
                columns.append(as_labels(column))
                continue
            name = f"X[:, {self.names[position]}]"
            infinite = "finite or missing, not inf|Replace these values by NaN."
            _refuse(np.isinf(column), column, name, infinite)
            columns.append(column)
        return columns

    def labels(self, key: int | str) -> Labels:
        """Return a column as group labels."""
        return as_labels(self.columns[self.position(key)])


def check_table(X: Any) -> Table:
    """Return the conditioning table from an array or any data frame."""
    frame = nw.from_native(X, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        if not frame.columns or not len(frame):
            msg = (
                f"X has {len(frame)} sample(s) and {len(frame.columns)} feature(s) "
                f"(shape={frame.shape}) while a minimum of 1 is required."
            )
            raise InvalidInputError(msg)
        return Table(
            tuple(
                np.asarray(_from_series(c.to_native())) for c in frame.iter_columns()
            ),
            tuple(str(c) for c in frame.columns),
        )
    if isinstance(frame, nw.Series):
        return Table((_as_column(X, "uncertainty"),), ("u",))
    array = check_array(X, dtype=None, ensure_all_finite=False, ensure_2d=False)
    if array.ndim == 1:
        array = array[:, None]
    if array.dtype.kind == "O":
        array = _numeric_columns(array)
        return Table(tuple(array), ("u", *(f"X{i}" for i in range(1, len(array)))))
    columns = array.astype(np.float64, copy=False)
    names = ("u", *(f"X{i}" for i in range(1, columns.shape[1])))
    return Table(tuple(columns.T), names)


def _numeric_columns(array: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Split an object array; columns that are numbers become float64."""
    columns: list[npt.NDArray[Any]] = []
    for column in array.T:
        try:
            columns.append(column.astype(np.float64))
        except (TypeError, ValueError):
            columns.append(column)
    return columns


def check_target(y: Any, n_rows: int, estimator: str) -> Floats:
    """Return the errors an estimator is fitted or scored with."""
    if y is None:
        msg = (
            f"This {estimator} estimator requires y to be passed, but the target y is "
            "None. Pass the errors of the calibration set."
        )
        raise InvalidInputError(msg)
    array = np.asarray(_from_series(y))
    if array.dtype.kind == "c":
        msg = "Complex data not supported: y must hold real errors."
        raise InvalidInputError(msg)
    column = _as_floats(_as_column(column_or_1d(array, warn=True), "y"), "y")
    bad = ~np.isfinite(column)
    if bad.any():
        # The first sentence is the one that scikit-learn's own checks look for.
        what = "NaN" if np.isnan(column[bad][0]) else "infinity"
        row = int(np.argmax(bad))
        msg = (
            f"Input y contains {what} or a value too large for dtype('float64'). "
            f"y (the errors) must be finite; {np.count_nonzero(bad)} of {bad.size} "
            f"values are not (first at row {row}: {column[row]:g}). "
            "Drop or repair these rows."
        )
        raise InvalidInputError(msg)
    if column.shape[0] != n_rows:
        msg = (
            f"X and y must have the same number of rows; found {n_rows} and "
            f"{column.shape[0]}."
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
