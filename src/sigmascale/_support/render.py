"""Results as text, HTML and plain values; nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from html import escape
from typing import Any

import numpy as np

from .origin import Origin, make_frame
from .text import visible

Cells = tuple[Sequence[str], Sequence[Sequence[str]]]  # a header, and rows below it


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with the first column on the left and numbers on the right."""
    # columns as wide as their widest cell
    columns: list[list[str]] = []
    for cells in zip(header, *rows, strict=True):
        shown = [visible(cell, keep="") for cell in cells]
        width = max(map(len, shown))
        justify = str.rjust if columns else str.ljust
        columns.append([justify(cell, width) for cell in shown])

    # lines, with a rule below the header
    lines = ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join(lines)


def html_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, n_left: int = 1
) -> str:
    """Return an HTML table; every cell is escaped.

    The first `n_left` columns are words, and begin at the left; numbers end at the
    right. Each cell says so, as each front end of notebooks has another habit.
    """

    def line(tag: str, row: Sequence[str]) -> str:
        cells = []
        for column, cell in enumerate(row):
            side = "left" if column < n_left else "right"
            style = f'style="text-align: {side}"'
            cells.append(f"<{tag} {style}>{escape(cell)}</{tag}>")
        return f"<tr>{''.join(cells)}</tr>"

    body = "".join(line("td", row) for row in rows)
    head = line("th", header)
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


def html_lines(text: str) -> str:
    """Return lines of text as paragraphs of HTML, escaped."""
    return "".join(f"<p>{escape(line)}</p>" for line in text.split("\n"))


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What results share, which are frozen dataclasses: plain values, tables, HTML.

    A subclass says what its printed table holds in `_cells`; and where a data frame is
    to hold other than its arrays, or its numbers, in `_columns`.
    """

    # of the rows that were tested or scored
    _origin: Origin | None = field(
        default=None, kw_only=True, repr=False, compare=False
    )

    def __init_subclass__(cls, **options: Any) -> None:
        """Let results show themselves as their table; dataclasses keep a repr."""
        super().__init_subclass__(**options)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Result.__repr__  # type: ignore[method-assign]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, arrays as lists and results within as their own fields."""
        return _plain_fields(self)

    def to_frame(self) -> Any:
        """Return the numbers as a data frame of the library that the rows came from.

        Returns
        -------
        data frame
            Of pandas, Polars or PyArrow; of rows that came in arrays, of pandas, or of
            Polars where that is missing.
        """
        return make_frame(self._columns(), self._origin, by_row=False)

    def _columns(self) -> Mapping[str, Any]:
        """Return the columns of the data frame: arrays, or one row of numbers."""
        arrays = {}
        for name in _shown(self):
            values = getattr(self, name)
            if isinstance(values, np.ndarray) and values.ndim == 1:
                arrays[name] = values
        return arrays or {name: [value] for name, value in _flat(self.to_dict())}

    def _cells(self) -> Cells:
        """Return the header and the rows of the table."""
        raise NotImplementedError

    def __str__(self) -> str:
        """Return the table as text."""
        return text_table(*self._cells())

    def __repr__(self) -> str:
        """Return what `print` shows."""
        return str(self)

    def _repr_html_(self) -> str:
        return html_table(*self._cells())


def as_plain(value: Any) -> Any:
    """Return a value as what JSON holds: arrays as lists, results as their fields."""
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(name): as_plain(member) for name, member in value.items()}
    if isinstance(value, (tuple, list)):
        return [as_plain(member) for member in value]
    if is_dataclass(value) and not isinstance(value, type):
        return _plain_fields(value)
    return value


def _plain_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, as what JSON holds."""
    return {name: as_plain(getattr(value, name)) for name in _shown(value)}


def _shown(value: Any) -> list[str]:
    """Return the names of the fields of a dataclass that are not private."""
    return [field.name for field in fields(value) if not field.name.startswith("_")]


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield all single values, those of results within by both names.

    >>> dict(_flat({"zms": {"value": 1.1, "low": 0.9}, "nu": 4, "draws": [1, 2]}))
    {'zms': 1.1, 'zms_low': 0.9, 'nu': 4}
    """
    for name, value in values.items():
        if isinstance(value, Mapping):
            for inner, x in _flat(value):
                yield (name if inner == "value" else f"{name}_{inner}"), x
        elif not isinstance(value, list):
            yield name, value
