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
    Floats,
    check_column,
    check_pair,
    check_same_length,
    refuse_reserved,
    refuse_values,
)
from ..exceptions import InvalidInputError
from ..predictions import (
    Columns,
    Predictions,
    default_names,
    with_positive_uncertainty,
)
from .libraries import Array, Library, is_device_array, library_of
from .partitions import rank_codes
from .sums import TERMS, BinSums


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


def column_beside(library: Library, values: Any, name: str, rows: Array) -> Array:
    """Return a column that has as many rows as another one."""
    column = _column(library, values, name, "X")
    check_same_length("X", rows, name, column)
    return column


def finite_range(library: Library, x: Array, name: str) -> tuple[float, float]:
    """Return the range of numbers that must all be finite."""
    low, high = library.range_of(x)
    if not (low > -np.inf and high < np.inf):
        check_column(_host(library, x), name)  # which says what is wrong, and where
    return low, high


def _host(library: Library, column: Array) -> Floats:
    return library.to_host(library.floats(column))


@dataclass(frozen=True, eq=False)
class DeviceRows(Columns):
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
            check_same_length("error", e, "uncertainty", u)
            _check_pair(library, e, u)
            columns = {
                name: _column(library, each, name, "error")
                for name, each in _named(library, features).items()
            }
            for name, each in columns.items():
                check_same_length("error", e, name, each)
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
        known = library.detached(column)
        if library.numbers(library.xp.any(library.xp.isinf(known)))[0]:
            found = _host(library, known)
            must = "finite or missing, not inf|Replace these values by NaN."
            refuse_values(np.isinf(found), found, self.shown(position), must)
        return column

    def positive(self, *, smallest: float | None = None) -> Self:
        """Return rows whose uncertainties are positive and can be squared.

        All others are refused, or those of 0 lifted to `smallest`, as of rows in
        memory.
        """
        library, xp = self.library, self.library.xp
        u = self.columns[0]
        known = library.detached(u)
        low, high = finite_range(library, known, self.shown(0))
        if low >= SMALLEST and high <= LARGEST:
            return self
        host = Predictions.of((_host(library, known),), self.names[:1])
        with_positive_uncertainty(host, smallest=smallest)
        u = library.floats(u)
        u = xp.where(u == 0, smallest + 0 * u, u)
        return replace(self, columns=(u, *self.columns[1:]))

    def to_host(self) -> Predictions:
        """Return the rows in memory, for what no device can do."""
        columns = [_host(self.library, each) for each in self.columns]
        error = None if self.error is None else _host(self.library, self.error)
        return Predictions.of(columns, self.names, error)

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
            check_same_length("error", e, "ties", ties)
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
    low, high = finite_range(library, u, "uncertainty")
    e_low, e_high = finite_range(library, e, "error")
    right = low >= SMALLEST and high <= LARGEST
    if not right or max(e_high, -e_low) > min(LARGEST, LARGEST_Z * low):
        check_pair(_host(library, e), _host(library, u))
