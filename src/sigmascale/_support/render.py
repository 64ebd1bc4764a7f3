"""Results as text, HTML and plain values; nothing is computed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from typing import Any

import numpy as np

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


class Result:
    """What results share, which are frozen dataclasses: plain values, tables, HTML.

    A subclass says what its table holds in `_cells`, and nothing else.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Let results show themselves as their table; dataclasses keep a repr."""
        super().__init_subclass__(**options)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Result.__repr__  # type: ignore[method-assign]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, arrays as lists and results within as their own fields."""
        return _plain_fields(self)

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
    names = [field.name for field in fields(value)]
    return {name: as_plain(getattr(value, name)) for name in names}
