"""Rows: checked columns, uncertainty first, with errors and groups where there are any.

Everything in memory is one kind of rows. :func:`read_table` makes them of the
conditioning table of an estimator, whose features are checked where they are used;
:func:`judged_rows` of the arguments of a score, which are checked at once. Lazy frames
have rows of their own (`frames.lazy_rows`), which answer to the same names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..exceptions import InvalidInputError, ZeroUncertaintyWarning
from .checks import (
    Floats,
    Ints,
    Labels,
    as_array,
    as_column,
    as_floats,
    as_frame,
    as_labels,
    check_column,
    check_features,
    check_pair,
    check_together,
    check_variable,
    from_series,
    number_or_text,
    refuse_lazy,
    refuse_other_order,
    refuse_values,
)
from .telling import warn
from .weights import check_weights, mean_of, total_of

Data = tuple[Any, ...]  # (X, y), (X, y, groups), or (X, y, groups, sample_weight)


class NamedColumns:
    """Columns that can be named or counted; the first is the uncertainty."""

    names: tuple[str, ...]

    def position(self, key: Any, argument: str = "by") -> int:
        """Return the position of the column that `key` names or counts."""
        n_columns = len(self.names)
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
        if not -n_columns <= key < n_columns:
            msg = (
                f"`{argument}` must be a column of X, which has {n_columns} "
                f"feature(s); found {key}. Column 0 is the uncertainty."
            )
            raise InvalidInputError(msg)
        return int(key) % n_columns

    def positions(self, keys: Any, argument: str) -> list[int]:
        """Return the positions of several columns; None stands for none of them."""
        if keys is None:
            return []
        if isinstance(keys, str) or not isinstance(keys, Iterable):
            msg = f"`{argument}` must be a list of columns; found {keys!r}."
            raise InvalidInputError(msg)
        return [self.position(key, argument) for key in keys]


@dataclass(frozen=True)
class Columns(NamedColumns):
    """The names of columns, without rows.

    Attributes
    ----------
    names : tuple of str
        What the columns are called.
    """

    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Rows(NamedColumns):
    """Rows in memory.

    Attributes
    ----------
    columns : tuple of array
        The uncertainty, and then the features: numbers, or labels.
    names : tuple of str
        What the columns are called.
    error : array or None
        Errors, where they are known.
    groups : array or None
        Labels of rows that belong together.
    weights : array or None
        Positive weights, in a unit in which they count rows (see `weights.py`).
    places : array of int or None
        Where rows were in the table, if those of weight 0 were left out.
    """

    columns: tuple[npt.NDArray[Any], ...]
    names: tuple[str, ...]
    error: Floats | None = None
    groups: Labels | None = None
    weights: Floats | None = None
    places: Ints | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.columns[0].shape[0])

    @property
    def total(self) -> int | float:
        """The number of rows, or the sum of their weights, which stands for it."""
        return total_of(self.n_rows, self.weights)

    def mean(self, values: npt.NDArray[Any]) -> float:
        """Return the mean of a value of each row, weighted if rows are."""
        return mean_of(values, self.weights)

    @property
    def uncertainty(self) -> Floats:
        """The first column."""
        return self.columns[0]

    @property
    def errors(self) -> Floats:
        """The errors of rows that have them."""
        assert self.error is not None
        return self.error

    @property
    def group_codes(self) -> Ints | None:
        """The number of each row's group, in the order of the labels."""
        labels = self.clusters
        return None if labels is None else np.unique(labels, return_inverse=True)[1]

    @property
    def clusters(self) -> Labels | None:
        """The groups; a weighted row without one is its own, of so many repeats."""
        if self.groups is None and self.weights is not None:
            return np.arange(self.n_rows)
        return self.groups

    @property
    def features(self) -> dict[str, npt.NDArray[Any]]:
        """The other columns by name."""
        return dict(zip(self.names[1:], self.columns[1:], strict=True))

    def take(self, which: npt.NDArray[Any]) -> Self:
        """Return some of the rows."""
        return replace(
            self,
            columns=tuple(column[which] for column in self.columns),
            error=None if self.error is None else self.error[which],
            groups=None if self.groups is None else self.groups[which],
            weights=None if self.weights is None else self.weights[which],
            places=None if self.places is None else self.places[which],
        )

    def weighted(self, sample_weight: Any, rows_name: str = "X") -> Self:
        """Return rows with weights, without those whose weight is 0."""
        kept, weights = check_weights(sample_weight, self.columns[0], rows_name)
        rows = self
        if kept is not None:
            rows = replace(self, places=np.arange(self.n_rows)).take(kept)
        return rows if weights is None else replace(rows, weights=weights)

    def with_uncertainty(self, uncertainty: Floats) -> Self:
        """Return the same rows with other uncertainties."""
        return replace(self, columns=(uncertainty, *self.columns[1:]))

    def numbers(self, key: int | str) -> Floats:
        """Return a column as finite numbers."""
        position = self.position(key)
        return check_column(self.columns[position], self._shown(position))

    def numbers_or_missing(self, key: int | str) -> Floats:
        """Return a column as numbers, of which some may be missing (NaN)."""
        position = self.position(key)
        column = as_floats(self.columns[position], self._shown(position))
        infinite = "finite or missing, not inf|Replace these values by NaN."
        refuse_values(np.isinf(column), column, self._shown(position), infinite)
        return column

    def labels(self, key: int | str) -> Labels:
        """Return a column as labels."""
        return as_labels(self.columns[self.position(key)])

    def variable(self, key: int | str) -> Labels:
        """Return a column to bin by: finite numbers, or labels of named groups."""
        position = self.position(key)
        column = self.columns[position]
        return check_variable(column, self._shown(position), column)

    def is_labelled(self, key: int | str) -> bool:
        """Return whether a column holds labels rather than numbers."""
        return self.columns[self.position(key)].dtype.kind != "f"

    def _shown(self, position: int) -> str:
        return f"X[:, {self.names[position]}]"


def default_names(n_columns: int) -> tuple[str, ...]:
    """Return the names of the columns of a table that has none.

    >>> default_names(3)
    ('u', 'X1', 'X2')
    """
    return ("u", *(f"X{i}" for i in range(1, n_columns)))


def fitted_names(estimator: Any) -> tuple[str, ...]:
    """Return the names of the columns that an estimator was fitted on."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        return tuple(str(name) for name in names)
    return default_names(getattr(estimator, "n_features_in_", 1))


def judged_rows(
    error: Any,
    uncertainty: Any,
    features: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
) -> Rows:
    """Return rows that are scored or judged: everything is checked."""
    refuse_other_order(
        error=error,
        uncertainty=uncertainty,
        features=features,
        groups=groups,
        sample_weight=sample_weight,
    )
    e, u = check_pair(error, uncertainty)
    columns = check_features(features, e)
    labels = check_together(groups, e, "error")
    rows = Rows((u, *columns.values()), ("u", *columns), e, labels)
    return rows.weighted(sample_weight, "error")


def read_table(X: Any) -> Rows:
    """Return the rows of a conditioning table, an array or any data frame."""
    frame = as_frame(X, "X")
    if frame is not None:
        if not frame.columns or not len(frame):
            msg = (
                f"X has {len(frame)} sample(s) and {len(frame.columns)} feature(s) "
                f"(shape={frame.shape}) while a minimum of 1 is required. "
                "Is the file empty?"
            )
            raise InvalidInputError(msg)
        return Rows(
            tuple(np.asarray(from_series(c.to_native())) for c in frame.iter_columns()),
            tuple(str(c) for c in frame.columns),
        )
    refuse_lazy(X, "X")
    from sklearn.utils import check_array

    try:
        array = check_array(
            from_series(X), dtype=None, ensure_all_finite=False, ensure_2d=False
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
    columns = tuple(number_or_text(column) for column in array.T)
    return Rows(columns, default_names(array.shape[1]))


def read_pair(data: Any, name: str, *, weighted: bool = False) -> Rows:
    """Return the rows of (X, y) or (X, y, groups), with positive uncertainties.

    There may be weights, too, if that is `weighted`.
    """
    try:
        X, y, *others = data
        groups, sample_weight = [*others, None, None][: max(2, len(others))]
        if sample_weight is not None and not weighted:
            raise ValueError
    except (TypeError, ValueError) as problem:
        weights = " or (X, y, groups, sample_weight)" if weighted else ""
        msg = (
            f"`{name}` must be a pair (X, y), the conditioning table and errors, or "
            f"(X, y, groups), with labels of rows that belong together{weights}."
        )
        raise InvalidInputError(msg) from problem
    refuse_other_order(X=X, y=y, groups=groups, sample_weight=sample_weight)
    rows = read_table(X)
    u = rows.numbers(0)
    refuse_negative_uncertainty(u)
    rows = with_target(rows.with_uncertainty(u), y, groups, "compare")
    rows = rows.weighted(sample_weight)
    u = check_nonnegative_uncertainty(rows.uncertainty, smallest=None)
    return rows.with_uncertainty(u)


def some_features(rows: Rows, keys: Sequence[int | str] | None) -> Rows:
    """Return rows with some of their features; None stands for all."""
    if keys is None:
        return rows
    positions = [0, *rows.positions(keys, "features")]
    return replace(
        rows,
        columns=tuple(rows.columns[i] for i in positions),
        names=tuple(rows.names[i] for i in positions),
    )


def with_target(rows: Rows, y: Any, groups: Any, estimator: str) -> Rows:
    """Return rows with the errors and groups that an estimator is fitted with."""
    error = check_target(y, rows.n_rows, estimator)
    labels = check_together(groups, error, "X")
    return replace(rows, error=error, groups=labels)


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

    array = as_array(y, "y")
    if array.dtype.kind == "c":
        msg = f"Complex data not supported: y must hold real {what}."
        raise InvalidInputError(msg)
    try:
        array = column_or_1d(array, warn=True)
    except ValueError as problem:
        msg = f"{problem} Pass one column of {what}."
        raise InvalidInputError(msg) from problem
    column = as_floats(as_column(array, "y"), "y")
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


def refuse_negative_uncertainty(u: Floats) -> None:
    """Refuse uncertainties below 0."""
    refuse_values(
        u < 0,
        u,
        "uncertainty",
        "positive (the first column of X is the uncertainty)|Negative values in data "
        "passed to an estimator that needs uncertainties: drop these rows.",
    )


def check_nonnegative_uncertainty(u: Floats, *, smallest: float | None) -> Floats:
    """Return positive uncertainties for an estimator.

    Zeros are common in ensembles whose members all agree. They are raised to
    `smallest`, or to the smallest positive value in `u` when that is None, with a
    warning that counts them.
    """
    if u.min() > 0:
        return u
    refuse_negative_uncertainty(u)
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
    warn(
        f"{zeros} of {u.size} uncertainties are exactly 0; they were raised to "
        f"{smallest:g}, the smallest positive one seen in fit.",
        ZeroUncertaintyWarning,
        stacklevel=5,
    )
    return np.where(u == 0, smallest, u)
