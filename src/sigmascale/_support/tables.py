"""The conditioning table of the estimators, checked."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from ..exceptions import InvalidInputError, ZeroUncertaintyWarning
from .checks import (
    Floats,
    Labels,
    _as_array,
    _as_column,
    _as_floats,
    _as_frame,
    _from_series,
    _number_or_text,
    _refuse,
    as_labels,
    check_column,
    check_variable,
)

Features = Iterable[int | str] | Callable[[Any], Any] | None


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


def is_lazy(values: Any) -> bool:
    """Return whether `values` is a lazy frame of a library that Narwhals knows."""
    try:
        return isinstance(nw.from_native(values, pass_through=True), nw.LazyFrame)
    except ValueError:  # columns of the same name, which are refused later
        return False


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
    from sklearn.utils import check_array

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
    columns = tuple(_number_or_text(column) for column in array.T)
    return Table(columns, default_names(array.shape[1]))


def default_names(n_columns: int) -> tuple[str, ...]:
    """Return the names of the columns of a table that has none.

    >>> default_names(3)
    ('u', 'X1', 'X2')
    """
    return ("u", *(f"X{i}" for i in range(1, n_columns)))


def check_target(
    y: Any, n_rows: int, estimator: str, *, what: str = "errors"
) -> Floats:
    """Return the errors, or `what` else, an estimator is fitted or scored with."""
    if y is None:
        msg = (
            f"This {estimator} estimator requires y to be passed, but the target y is "
            f"None. Pass the {what} of the calibration set."
        )
        raise InvalidInputError(msg)
    from sklearn.utils import column_or_1d

    array = _as_array(y, "y")
    if array.dtype.kind == "c":
        msg = f"Complex data not supported: y must hold real {what}."
        raise InvalidInputError(msg)
    try:
        array = column_or_1d(array, warn=True)
    except ValueError as problem:
        msg = f"{problem} Pass one column of {what}."
        raise InvalidInputError(msg) from problem
    column = _as_floats(_as_column(array, "y"), "y")
    bad = ~np.isfinite(column)
    if bad.any():
        # The first sentence is the one that scikit-learn's own checks look for.
        kind = "NaN" if np.isnan(column[bad][0]) else "infinity"
        row = int(np.argmax(bad))
        msg = (
            f"Input y contains {kind} or a value too large for dtype('float64'). "
            f"y (the {what}) must be finite; {np.count_nonzero(bad)} of {bad.size} "
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
    if u.min() > 0:
        return u
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
        stacklevel=5,
    )
    return np.where(u == 0, smallest, u)


def some_rows(X: Any, rows: npt.NDArray[Any]) -> Any:
    """Return some rows of an array, a sparse matrix, a list or any data frame."""
    from sklearn.utils import _safe_indexing

    frame = _as_frame(X, "X")
    return _safe_indexing(X, rows) if frame is None else frame[rows].to_native()


def conditioning_table(
    u: Floats, X: Any, features: Features, names: list[str], n_columns: int
) -> Any:
    """Return uncertainties beside some columns of a model's input X.

    `features` names or counts these columns, or is a function of X that returns them;
    `names` and `n_columns` say what the columns of X were in `fit`.
    """
    if features is None:
        return u
    if callable(features):
        part = features(X)
    else:
        part = _some_columns(X, _positions(features, names, n_columns))
    frame = _as_frame(part, "features")
    if frame is None:
        return np.column_stack([u, part])
    name = "uncertainty" if "u" in frame.columns else "u"
    columns = {name: u, **{str(c.name): c for c in frame.iter_columns()}}
    return nw.from_dict(columns, backend=frame.implementation).to_native()


def _positions(features: Any, names: list[str], n_columns: int) -> list[int]:
    if isinstance(features, str) or not isinstance(features, Iterable):
        msg = f"`features` must be a list of columns or a callable; found {features!r}."
        raise InvalidInputError(msg)
    positions: list[int] = []
    for key in features:
        if isinstance(key, str) and key in names:
            positions.append(names.index(key))
        elif isinstance(key, (int, np.integer)) and 0 <= key < n_columns:
            positions.append(int(key))
        else:
            known = ", ".join(names) if names else "none"
            msg = (
                f"`features` must hold names or numbers of columns of X, which has "
                f"{n_columns} (named: {known}); found {key!r}."
            )
            raise InvalidInputError(msg)
    return positions


def _some_columns(X: Any, positions: list[int]) -> Any:
    from scipy.sparse import issparse

    frame = _as_frame(X, "X")
    if frame is not None:
        return frame[:, positions].to_native()
    return X[:, positions].toarray() if issparse(X) else np.asarray(X)[:, positions]
