"""A table as it was read, and its columns as numbers or labels."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...exceptions import InvalidInputError

if TYPE_CHECKING:
    import polars as pl

MISSING_TEXTS = ("", "na", "nan", "n/a", "null", "none", "-")


@dataclass(frozen=True)
class RawTable:
    """The columns of a file; those of a text file are what it says, letter by letter.

    Attributes
    ----------
    frame : DataFrame
        The columns.
    decimal : str
        The decimal mark of numbers that are text, a point or a comma.
    untyped : bool
        Whether the columns are text because the file says no types.
    places : Series or None
        Which rows of the file these are, if some were left out.
    """

    frame: pl.DataFrame
    decimal: str = "."
    untyped: bool = False
    places: pl.Series | None = None

    def filter(self, kept: pl.Series) -> RawTable:
        """Return some of the rows; messages still tell their place in the file."""
        places = kept.arg_true() if self.places is None else self.places.filter(kept)
        return replace(self, frame=self.frame.filter(kept), places=places)

    def numbers(self, name: str) -> pl.Series:
        """Return a column as finite numbers; what is missing is null."""
        import polars as pl

        column = self.frame[name]
        if column.dtype == pl.String:
            values = self._parsed(column)
        elif column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null):
            values = column.cast(pl.Float64)
        else:
            msg = f"column {name!r} must hold numbers; it holds {column.dtype}."
            raise InvalidInputError(msg)
        values = values.fill_nan(None)
        infinite = "is infinite; a number must be finite"
        self.refuse(values.is_infinite(), values, infinite)
        return values.rechunk()  # into one array, as it will be used

    def exact(self, name: str, rows: npt.NDArray[np.intp]) -> list[Fraction]:
        """Return some values of a column of numbers, as exact as the file has them."""
        import polars as pl

        column = self.frame[name][rows]
        if column.dtype == pl.String:
            column = self._with_points(column.str.strip_chars())
        return [Fraction(value) for value in column]

    def labels(self, name: str) -> pl.Series:
        """Return a column as text; what is missing is null."""
        import polars as pl

        column = self.frame[name]
        kind = column.dtype
        if kind.is_nested() or kind in (pl.Binary, pl.Object, pl.Duration):
            msg = f"column {name!r} must hold labels or numbers; it holds {kind}."
            raise InvalidInputError(msg)
        return column.cast(pl.String)

    def values(
        self, numbers: Iterable[str], labels: Iterable[str]
    ) -> dict[str, pl.Series]:
        """Return some columns as numbers, and others as labels."""
        found = {name: self.numbers(name) for name in dict.fromkeys(numbers)}
        return found | {name: self.labels(name) for name in labels}

    def with_types(
        self, numbers: Collection[str], labels: Collection[str]
    ) -> pl.DataFrame:
        """Return the columns of a text file with types, for a format that has them.

        `numbers` are columns that are known to be numbers. Any other but `labels`
        becomes one of numbers where these would be written letter by letter as they
        are: "01" and "1.50" stay text.
        """
        schema = self.frame.schema
        found = {name: self._typed(name) for name in schema if name not in labels}
        for name in set(numbers).intersection(found):
            if found[name].dtype == schema[name]:
                with suppress(InvalidInputError):  # where it is not used
                    found[name] = self.numbers(name)
        return self.frame.with_columns(found.values())

    def _typed(self, name: str) -> pl.Series:
        import polars as pl

        column = self.frame[name]
        if column.dtype != pl.String:  # which was added
            return column
        text = self._with_points(column)
        if text.null_count() > column.null_count():
            return column
        for kind in (pl.Int64, pl.Float64):
            values = text.cast(kind, strict=False)
            if values.cast(pl.String).equals(text) and not values.is_null().all():
                return values
        return column

    @property
    def names(self) -> list[str]:
        """What the columns are called."""
        return self.frame.columns

    def counts_rows(self, name: str) -> bool:
        """Return whether a column holds 0, 1, 2, ... or 1, 2, 3, ... and no more."""
        import polars as pl

        column = self.frame[name].cast(pl.Int64, strict=False)
        if len(column) < 3 or column.is_null().any() or column[0] not in (0, 1):
            return False
        return bool((column.diff().drop_nulls() == 1).all())

    def is_numeric(self, name: str) -> bool:
        """Return whether a column holds numbers."""
        import polars as pl

        dtype = self.frame[name].dtype  # a schema would be made of all columns
        if dtype != pl.String:
            return bool(dtype.is_numeric())
        try:
            return not self.numbers(name).is_null().all()
        except InvalidInputError as problem:
            return "infinite" in str(problem)  # of numbers, which are refused later

    def refuse(self, bad: pl.Series, column: pl.Series, what: str) -> None:
        """Refuse a column in which some values are bad; show the first of them."""
        count = int(bad.sum() or 0)
        if count:
            row = int(np.argmax(bad.fill_null(False).to_numpy()))
            place = row if self.places is None else int(self.places[row])
            more = "" if count == 1 else f" So are {count - 1} more."
            msg = (
                f"column {column.name!r}, row {place + 1} (not counting the header): "
                f"{column[row]!r} {what}.{more}"
            )
            raise InvalidInputError(msg)

    def _parsed(self, column: pl.Series) -> pl.Series:
        import polars as pl

        values = self._cast(column)
        odd = values.is_null() & column.is_not_null()
        if odd.any():
            text = column.str.strip_chars()
            values = self._cast(text)
            bad = values.is_null() & text.is_not_null()
            bad &= ~text.str.to_lowercase().is_in(MISSING_TEXTS)
            self.refuse(bad, column, self._hint(column.filter(bad)))
        return values.cast(pl.Float64)

    def _cast(self, text: pl.Series) -> pl.Series:
        """Return text as numbers, and null where it is no number."""
        import polars as pl

        return self._with_points(text).cast(pl.Float64, strict=False)

    def _with_points(self, text: pl.Series) -> pl.Series:
        """Return text with decimal points, and null where it would have others."""
        if self.decimal == ".":
            return text
        # a point would stand between thousands, or for another decimal mark
        pointed = text.str.contains(".", literal=True)
        return text.set(pointed, None).str.replace(",", ".", literal=True)

    def _hint(self, bad: pl.Series) -> str:
        first = str(bad[0]) if bad.len() else ""
        if self.decimal == "." and "," in first:
            return "is not a number (is the comma a decimal point? Pass --decimal ,)"
        if self.decimal == "," and "." in first:
            return "has a point, and --decimal , says that commas are the decimal mark"
        return "is not a number"
