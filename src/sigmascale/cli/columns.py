"""The columns of a file as they were read, and as numbers, labels and conditions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ..exceptions import InvalidInputError
from ..roles import known, listed
from .files import first_line

MISSING_TEXTS = ("", "na", "nan", "n/a", "null", "none", "-")


@dataclass(frozen=True)
class Columns:
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

    @property
    def names(self) -> list[str]:
        """What the columns are called."""
        return self.frame.columns

    def filter(self, kept: pl.Series) -> Columns:
        """Return some of the rows; messages still tell their place in the file."""
        places = kept.arg_true() if self.places is None else self.places.filter(kept)
        return replace(self, frame=self.frame.filter(kept), places=places)

    def where(self, text: str, option: str = "--where") -> Columns:
        """Return the rows that meet a condition in SQL; missing values meet none."""
        condition = read_condition(text, self.names, option)
        used = dict.fromkeys(condition.meta.root_names())
        failures = (pl.exceptions.PolarsError, pl.exceptions.PanicException, TypeError)
        try:
            met = self._met(condition, map(self._comparable, used))
        except failures:
            try:  # text that could be numbers is compared with text
                met = self._met(condition, ())
            except failures as problem:
                raise bad_condition(text, self.names, option, problem) from problem
        kept = self.filter(met)
        if not kept.frame.height:
            msg = f"{option} {text!r} keeps none of {self.frame.height} rows."
            raise InvalidInputError(msg)
        return kept

    def _met(self, condition: pl.Expr, columns: Iterable[pl.Series]) -> pl.Series:
        frame = self.frame.with_columns(*columns)
        series = frame.select(condition).to_series()
        if series.dtype != pl.Boolean:
            msg = f"it is {series.dtype}, and neither true nor false"
            raise TypeError(msg)
        if series.len() != frame.height:  # of all rows together
            series = pl.repeat(bool(series[0]), frame.height, eager=True)
        return series.fill_null(False)

    def _comparable(self, name: str) -> pl.Series:
        """Return a column as numbers, if it holds any."""
        column = self.frame[name]
        if column.dtype == pl.String and self.is_numeric(name):
            return self._parsed(column).fill_nan(None)
        return column.fill_nan(None) if column.dtype.is_float() else column

    def numbers(self, name: str) -> pl.Series:
        """Return a column as finite numbers; what is missing is null."""
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

    def groups(self, name: str, option: str = "--groups") -> pl.Series:
        """Return a column of labels, of which none is missing."""
        column = self.labels(known(name, self.names, option))
        if column.has_nulls():
            msg = f"{option} needs a label in each row; column {name!r} lacks some."
            raise InvalidInputError(msg)
        return column

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

    def counts_rows(self, name: str) -> bool:
        """Return whether a column holds 0, 1, 2, ... or 1, 2, 3, ... and no more."""
        column = self.frame[name].cast(pl.Int64, strict=False)
        if len(column) < 3 or column.is_null().any() or column[0] not in (0, 1):
            return False
        return bool((column.diff().drop_nulls() == 1).all())

    def is_numeric(self, name: str) -> bool:
        """Return whether a column holds numbers."""
        dtype = self.frame[name].dtype  # a schema would be made of all columns
        if dtype != pl.String:
            return bool(dtype.is_numeric())
        try:
            return not self._parsed(self.frame[name]).is_null().all()
        except InvalidInputError:
            return False

    def refuse(
        self, bad: pl.Series, column: pl.Series, what: str, code: str = "value"
    ) -> None:
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
            raise InvalidInputError(
                msg, code, column=column.name, row=place + 1, count=count
            )

    def _parsed(self, column: pl.Series) -> pl.Series:
        values = self.parse(column)
        odd = values.is_null() & column.is_not_null()
        if odd.any():
            text = column.str.strip_chars()
            values = self.parse(text)
            bad = values.is_null() & text.is_not_null()
            bad &= ~text.str.to_lowercase().is_in(MISSING_TEXTS)
            self.refuse(bad, column, *self._hint(column.filter(bad)))
        return values

    def parse(self, text: pl.Series) -> pl.Series:
        """Return text as numbers, and null where it is no number."""
        return self._with_points(text).cast(pl.Float64, strict=False)

    def _with_points(self, text: pl.Series) -> pl.Series:
        """Return text with decimal points, and null where it would have others."""
        if self.decimal == ".":
            return text
        # a point would stand between thousands, or for another decimal mark
        pointed = text.str.contains(".", literal=True)
        return text.set(pointed, None).str.replace(",", ".", literal=True)

    def _hint(self, bad: pl.Series) -> tuple[str, str]:
        """Return what is wrong with texts that are no numbers, and a code for it."""
        first = str(bad[0]) if bad.len() else ""
        if self.decimal == "." and "," in first:
            hint = "(is the comma a decimal point? Pass --decimal ,)"
            return f"is not a number {hint}", "decimal-comma"
        if self.decimal == "," and "." in first:
            mark = "--decimal , says that commas are the decimal mark"
            return f"has a point, and {mark}", "decimal-point"
        return "is not a number", "no-number"


def read_condition(text: str, names: list[str], option: str) -> pl.Expr:
    """Return a condition in SQL as Polars has it, of columns that are there."""
    failures = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
    try:
        condition = pl.sql_expr(text)
        used = condition.meta.root_names()
    except (*failures, UnicodeError) as problem:
        raise bad_condition(text, names, option, problem) from problem
    for name in used:
        known(name, names, f"{option} {text!r}")
    return condition


def bad_condition(
    text: str, names: list[str], option: str, problem: Any
) -> InvalidInputError:
    """Return what is said of a condition that an engine cannot read."""
    return InvalidInputError(
        f"{option} {text!r} cannot be used: {first_line(problem)}. It is a condition "
        "such as \"split = 'test' AND mass < 120\": numbers are compared with numbers, "
        "text in single quotes with text, and odd names of columns stand in double "
        f"ones. The columns are: {listed(names)}.",
        "condition",
        columns=names,
    )
