"""Conditions on rows, such as ``split == 'test' and mass < 120``, and what they keep.

A condition compares one column with one literal. The language is small enough to be
read here, so that nothing a user types is ever executed.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...exceptions import InvalidInputError
from ...roles import known
from .values import RawTable

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl

COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
COLUMN = re.compile(r"`(?P<quoted>[^`]+)`|(?P<plain>[^\W\d][\w.]*)")
COMPARISON = re.compile("|".join(COMPARISONS))
LITERAL = re.compile(
    r"""(?P<number>[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?(?![\w.]))
    | '(?P<single>[^']*)' | "(?P<double>[^"]*)" """,
    re.VERBOSE,
)
AND = re.compile(r"and\b", re.IGNORECASE)
SPACE = re.compile(r"\s*")


@dataclass(frozen=True)
class Condition:
    """A column, how it is compared, and a number or a text that it is compared with."""

    column: str
    comparison: str
    value: float | str

    def of(self, column: Any) -> Any:
        """Return whether the values of a column, of any library, meet the condition."""
        return COMPARISONS[self.comparison](column, self.value)


@dataclass(frozen=True)
class Where:
    """Conditions that rows must meet, all of them.

    Attributes
    ----------
    text : str
        What the user typed.
    conditions : tuple of Condition
        What it means.
    """

    text: str
    conditions: tuple[Condition, ...]

    @classmethod
    def parse(cls, text: str) -> Where:
        """Return the conditions that a text stands for.

        >>> Where.parse("`my split` == 'test' and mass < 1.2e2").conditions
        (Condition(column='my split', comparison='==', value='test'),
         Condition(column='mass', comparison='<', value=120.0))
        """
        reader = _Reader(text)
        conditions = [reader.condition()]
        while not reader.is_at_end():
            reader.read(AND, "`and` and another condition, or the end")
            conditions.append(reader.condition())
        return cls(text, tuple(conditions))

    def keep(self, table: RawTable) -> RawTable:
        """Return the rows that meet the conditions; missing values meet none."""
        height = table.frame.height
        for condition in self.conditions:
            known(condition.column, table.frame.columns, "--where")
            met: pl.Series = condition.of(self._values(table, condition))
            table = table.filter(met.fill_null(False))
        if not table.frame.height:
            msg = f"--where {self.text!r} keeps none of {height} rows."
            raise InvalidInputError(msg)
        return table

    def _values(self, table: RawTable, condition: Condition) -> pl.Series:
        if isinstance(condition.value, float):
            return table.numbers(condition.column)
        if table.frame.schema[condition.column].is_numeric():
            self._refuse_quotes(condition)
        return table.labels(condition.column)

    def keep_lazily(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Return the rows of a lazy frame that meet the conditions."""
        from ...frames.lazy import is_finite, label, number

        schema = frame.collect_schema()
        for condition in self.conditions:
            name = known(condition.column, list(schema), "--where")
            if isinstance(condition.value, float):
                x = number(schema, name)
                # engines differ in what they take for larger than NaN
                frame = frame.filter(is_finite(x) & condition.of(x))
                continue
            if schema[name].is_numeric():
                self._refuse_quotes(condition)
            frame = frame.filter(condition.of(label(frame, schema, name)))
        return frame

    def _refuse_quotes(self, condition: Condition) -> None:
        msg = (
            f"--where {self.text!r}: column {condition.column!r} holds numbers. "
            "Compare it with a number, without quotes."
        )
        raise InvalidInputError(msg)


class _Reader:
    """Reads a text from left to right, and says where it is not what it must be."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._skip_space()

    def condition(self) -> Condition:
        """Return the condition that comes next."""
        column = self.read(COLUMN, "a column (in backticks if its name is odd)")
        comparison = self.read(COMPARISON, f"one of {' '.join(COMPARISONS)}")
        wanted = "a number, or text in quotes"
        literal = self.read(LITERAL, wanted)
        if literal["number"] is not None:
            value: float | str = float(literal["number"])
        else:
            value = literal["single"] or literal["double"] or ""
        return Condition(column["quoted"] or column["plain"], comparison[0], value)

    def is_at_end(self) -> bool:
        """Return whether all was read."""
        return self._place == len(self._text)

    def read(self, pattern: re.Pattern[str], wanted: str) -> re.Match[str]:
        """Return what a pattern finds at this place, and go on behind it."""
        found = pattern.match(self._text, self._place)
        if found is None:
            rest = self._text[self._place :]
            there = f"found {rest!r}" if rest else "found the end"
            msg = (
                f"--where {self._text!r}, character {self._place + 1}: there must be "
                f"{wanted}; {there}. An example: \"split == 'test' and mass < 120\"."
            )
            raise InvalidInputError(msg)
        self._place = found.end()
        self._skip_space()
        return found

    def _skip_space(self) -> None:
        space = SPACE.match(self._text, self._place)
        self._place = space.end() if space else self._place
