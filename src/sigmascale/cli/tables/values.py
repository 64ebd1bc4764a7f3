"""A table as it was read, and its columns as numbers or labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...exceptions import InvalidInputError

if TYPE_CHECKING:
    import polars as pl

MISSING_TEXTS = ("", "na", "nan", "n/a", "null", "none", "-")


@dataclass(frozen=True)
class RawTable:
    """The columns of a file, of which those of text files are still text.

    Attributes
    ----------
    frame : DataFrame
        The columns.
    decimal : str
        The decimal mark of numbers that are text, a point or a comma.
    places : Series or None
        Which rows of the file these are, if some were left out.
    """

    frame: pl.DataFrame
    decimal: str = "."
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

    def labels(self, name: str) -> pl.Series:
        """Return a column as text; what is missing is null."""
        import polars as pl

        column = self.frame[name]
        kind = column.dtype
        if kind.is_nested() or kind in (pl.Binary, pl.Object):
            msg = f"column {name!r} must hold labels or numbers; it holds {kind}."
            raise InvalidInputError(msg)
        return column.cast(pl.String)

    def is_numeric(self, name: str) -> bool:
        """Return whether a column holds numbers."""
        import polars as pl

        dtype = self.frame.schema[name]
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

        if self.decimal == ",":
            # a point would stand between thousands, or for another decimal mark
            pointed = text.str.contains(".", literal=True)
            text = text.set(pointed, None).str.replace(",", ".", literal=True)
        return text.cast(pl.Float64, strict=False)

    def _hint(self, bad: pl.Series) -> str:
        first = str(bad[0]) if bad.len() else ""
        if self.decimal == "." and "," in first:
            return "is not a number (is the comma a decimal point? Pass --decimal ,)"
        if self.decimal == "," and "." in first:
            return "has a point, and --decimal , says that commas are the decimal mark"
        return "is not a number"
