"""Rows on a device: checked columns, the uncertainty first, and errors if any.

They answer to the names of `Predictions`, which are in memory, as far as both do the
same. What is wrong is said in the same words, with the place and the remedy. Rows stay
where they are; only sums and limits come to the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from .._support.checks import (
    LARGEST,
    LARGEST_Z,
    SMALLEST,
    refuse_reserved,
)
from .._support.notices import warn
from ..exceptions import InvalidInputError, ZeroUncertaintyWarning
from ..predictions import NamedColumns, Predictions, default_names
from .libraries import Array, Library, is_device_array, library_of
from .partitions import rank_codes
from .sums import TERMS, BinSums


def on_device(*arguments: Any) -> bool:
    """Return whether some of the arguments, or columns in them, are device arrays."""
    return any(
        any(map(is_device_array, each.values()))
        if isinstance(each, Mapping)
        else is_device_array(each)
        for each in arguments
    )


def _kind(values: Any) -> str:
    if is_device_array(values):
        return str(library_of(values))
    return f"{type(values).__module__.partition('.')[0]}.{type(values).__name__}"


def _same(library: Library, values: Any, name: str, first: str) -> Array:
    """Return an array of real numbers that is where the first one is."""
    if not is_device_array(values) or library_of(values) != library:
        msg = (
            f"`{first}` and `{name}` must be arrays of one library on one device; "
            f"found {library} and {_kind(values)}. Move one to the other first."
        )
        raise InvalidInputError(msg)
    if library.has_kind(values, "complex floating"):
        msg = (
            f"`{name}` must hold real numbers; found {values.dtype}. Pass the real "
            "part or the absolute value."
        )
        raise InvalidInputError(msg)
    return values


def _column(library: Library, values: Any, name: str, first: str) -> Array:
    array = library.detached(_same(library, values, name, first))
    if array.ndim != 1:
        msg = (
            f"`{name}` must be one-dimensional; found shape {tuple(array.shape)}. "
            "Pass one column."
        )
        raise InvalidInputError(msg)
    if not array.shape[0]:
        msg = f"`{name}` must have at least 1 row; found 0. Is the array empty?"
        raise InvalidInputError(msg)
    return array if library.has_kind(array, "real floating") else library.floats(array)


def _same_length(first: str, rows: Array, second: str, column: Array) -> None:
    if rows.shape[0] != column.shape[0]:
        msg = (
            f"`{first}` and `{second}` must have the same number of rows; found "
            f"{rows.shape[0]} and {column.shape[0]}. Pass columns of one table."
        )
        raise InvalidInputError(msg)


def column_beside(library: Library, values: Any, name: str, rows: Array) -> Array:
    """Return a column that has as many rows as another one."""
    column = _column(library, values, name, "X")
    _same_length("X", rows, name, column)
    return column


def refuse(library: Library, bad: Array, values: Array, name: str, must: str) -> None:
    """Raise an error that counts the bad values and shows the first."""
    xp = library.xp
    ones = xp.astype(bad, xp.int64)
    count, row = library.numbers(xp.sum(ones), xp.argmax(ones))
    if count:
        value = library.numbers(values[int(row)])[0]
        requirement, remedy = must.split("|")
        msg = (
            f"`{name}` must be {requirement}; {count:.0f} of {bad.shape[0]} values "
            f"{'are' if count > 1 else 'is'} not (first at row {row:.0f}: {value:g}). "
            f"{remedy}"
        )
        raise InvalidInputError(msg)


def finite_range(library: Library, x: Array, name: str) -> tuple[float, float]:
    """Return the range of numbers that must all be finite."""
    low, high = library.numbers(*library.extremes(x))
    if not (np.isfinite(low) and np.isfinite(high)):
        must = "finite, not NaN or inf|Drop or repair these rows."
        refuse(library, ~library.xp.isfinite(x), x, name, must)
    return low, high


@dataclass(frozen=True, eq=False)
class DeviceRows(NamedColumns):
    """Rows on a device.

    Attributes
    ----------
    library : Library
        Whose arrays they are, and where.
    columns : tuple of array
        The uncertainty, and then the features.
    names : tuple of str
        What the columns are called.
    error : array or None
        Errors, where they are known.
    """

    library: Library
    columns: tuple[Array, ...]
    names: tuple[str, ...]
    error: Array | None = None
    weights: None = None  # which rows on a device never have

    @classmethod
    def judged(cls, error: Any, uncertainty: Any, features: Any = None) -> DeviceRows:
        """Return rows that are scored: everything is checked."""
        given = error if is_device_array(error) else uncertainty
        if not is_device_array(given):
            msg = (
                "`error`, `uncertainty` and `features` must be arrays of one library "
                f"on one device; found {_kind(error)} and device arrays. Move them."
            )
            raise InvalidInputError(msg)
        library = library_of(given)
        with library.in_64_bits():
            e = _column(library, error, "error", "uncertainty")
            u = _column(library, uncertainty, "uncertainty", "error")
            _same_length("error", e, "uncertainty", u)
            _check_pair(library, e, u)
            columns = {
                name: _column(library, each, name, "error")
                for name, each in _named(library, features).items()
            }
            for name, each in columns.items():
                _same_length("error", e, name, each)
                finite_range(library, each, name)
        refuse_reserved(columns)
        return cls(library, (u, *columns.values()), ("u", *columns), e)

    @classmethod
    def table(cls, X: Any) -> DeviceRows:
        """Return the rows of a conditioning table; features are checked where used."""
        if not is_device_array(X):
            msg = (
                "X and y must be arrays of one library on one device; found "
                f"{_kind(X)} and a device array. Move one to the other first."
            )
            raise InvalidInputError(msg)
        library = library_of(X)
        array = _same(library, X, "X", "X")
        if array.ndim not in (1, 2) or 0 in array.shape:
            msg = (
                f"X has shape={tuple(array.shape)} while a minimum of 1 row and 1 "
                "column is required. Pass a table, the uncertainty first."
            )
            raise InvalidInputError(msg)
        n_columns = 1 if array.ndim == 1 else array.shape[1]
        columns = (
            (array,)
            if array.ndim == 1
            else tuple(array[:, j] for j in range(n_columns))
        )
        return cls(library, columns, default_names(n_columns))

    def with_target(self, y: Any) -> Self:
        """Return the same rows with errors."""
        error = column_beside(self.library, y, "y", self.columns[0])
        finite_range(self.library, error, "y")
        return replace(self, error=error)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.columns[0].shape[0])

    @property
    def uncertainty(self) -> Array:
        """The first column."""
        return self.columns[0]

    @property
    def errors(self) -> Array:
        """The errors of rows that have them."""
        assert self.error is not None
        return self.error

    def shown(self, position: int) -> str:
        """Return what messages call a column."""
        return f"X[:, {self.names[position]}]"

    def detached(self) -> Self:
        """Return the same rows without what computes gradients."""
        columns = tuple(self.library.detached(each) for each in self.columns)
        return replace(self, columns=columns)

    def numbers(self, key: int | str) -> Array:
        """Return a column of finite numbers."""
        position = self.position(key)
        finite_range(self.library, self.columns[position], self.shown(position))
        return self.columns[position]

    def numbers_or_missing(self, key: int | str) -> Array:
        """Return a column of numbers, of which some may be missing (NaN)."""
        library, position = self.library, self.position(key)
        column = self.columns[position]
        infinite = library.xp.isinf(library.detached(column))
        must = "finite or missing, not inf|Replace these values by NaN."
        refuse(library, infinite, column, self.shown(position), must)
        return column

    def nonnegative(self, *, smallest: float | None) -> Self:
        """Return rows whose uncertainties are positive and can be squared.

        Those of 0 are raised to `smallest`, or to the smallest positive one when that
        is None, with a warning that counts them.
        """
        library, xp = self.library, self.library.xp
        u = self.columns[0]
        known = library.detached(u)
        low, high = finite_range(library, known, self.shown(0))
        if low <= 0:
            must = (
                "positive (the first column of X is the uncertainty)|Negative values "
                "in data passed to an estimator that needs uncertainties: drop these "
                "rows."
            )
            refuse(library, known < 0, known, "uncertainty", must)
            zeros = library.numbers(xp.sum(xp.astype(known == 0, xp.int64)))[0]
            if smallest is None:
                if high == 0:
                    msg = (
                        f"`uncertainty` must have a positive value; all {self.n_rows} "
                        "are 0. Is the right column the first one of X?"
                    )
                    raise InvalidInputError(msg)
                positive = xp.where(known > 0, known, high + 0 * known)
                smallest = library.numbers(xp.min(positive))[0]
            warn(
                f"{zeros:.0f} of {self.n_rows} uncertainties are exactly 0; they were "
                f"raised to {smallest:g}, the smallest positive one seen in fit.",
                ZeroUncertaintyWarning,
                stacklevel=4,
            )
            u = library.floats(u)
            u = xp.where(u == 0, smallest + 0 * u, u)
        if low < SMALLEST or high > LARGEST:
            u = xp.clip(library.floats(u), SMALLEST, LARGEST)
        return replace(self, columns=(u, *self.columns[1:]))

    def to_host(self) -> Predictions:
        """Return the rows in memory, for what no device can do."""
        library = self.library

        def host(column: Array) -> Any:
            return library.to_host(library.floats(column))

        error = None if self.error is None else host(self.error)
        return Predictions.of(tuple(map(host, self.columns)), self.names, error)

    @property
    def total(self) -> int:
        """The number of rows: those on a device have no weights."""
        return self.n_rows

    def sums(self, terms: tuple[str, ...] = TERMS) -> BinSums:
        """Return the sums of all rows."""
        return BinSums.of_all(self.errors, self.uncertainty, terms=terms)

    def ranked_sums(
        self,
        position: int,
        n_bins: int,
        terms: tuple[str, ...],
        ties: Any = None,
        min_size: int = 1,
    ) -> BinSums:
        """Return the sums of equal-size bins of a column, by the ranks of the rows."""
        e, u = self.errors, self.uncertainty
        if ties is not None:
            ties = _column(self.library, ties, "ties", "error")
            _same_length("error", e, "ties", ties)
            finite_range(self.library, ties, "ties")
        elif position > 0:
            ties = u
        x, others = self.columns[position], {"error": e, "uncertainty": u}
        codes, n_bins = rank_codes(x, n_bins, ties=ties, min_size=min_size, **others)
        return BinSums.from_codes(codes, n_bins, e, u, terms=terms)


def _named(library: Library, features: Any) -> dict[str, Any]:
    """Return columns by name, from None, a mapping or an array."""
    if features is None:
        return {}
    if isinstance(features, Mapping):
        return {str(name): values for name, values in features.items()}
    table = _same(library, features, "features", "error")
    if table.ndim == 1:
        return {"X1": table}
    if table.ndim != 2:
        msg = (
            f"`features` must be a table of columns; found shape {tuple(table.shape)}. "
            "Pass a dict of columns or a two-dimensional array."
        )
        raise InvalidInputError(msg)
    return {f"X{j + 1}": table[:, j] for j in range(table.shape[1])}


def _check_pair(library: Library, e: Array, u: Array) -> None:
    """Refuse errors and uncertainties that no score can be computed from."""
    xp = library.xp
    low, high = finite_range(library, u, "uncertainty")
    if low < SMALLEST or high > LARGEST:
        must = (
            "strictly positive|Drop these rows; if the column is a variance or a "
            "logarithm, transform it first."
        )
        refuse(library, u <= 0, u, "uncertainty", must)
        outside = (u < SMALLEST) | (u > LARGEST)
        must = f"between {SMALLEST:g} and {LARGEST:g}|Choose another unit."
        refuse(library, outside, u, "uncertainty", must)
    e_low, e_high = finite_range(library, e, "error")
    if max(e_high, -e_low) > min(LARGEST, LARGEST_Z * low):
        must = (
            f"below {LARGEST:g} in size and {LARGEST_Z:g} times its uncertainty|"
            "Are both in the same unit?"
        )
        size = xp.abs(library.floats(e))
        too_large = (size > LARGEST) | (size > LARGEST_Z * library.floats(u))
        refuse(library, too_large, e, "error", must)
