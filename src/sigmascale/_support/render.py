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
    lines = [[visible(cell, keep="") for cell in row] for row in (header, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    found = []
    for first, *others in lines:
        cells = [x.rjust(width) for x, width in zip(others, widths[1:], strict=True)]
        found.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    found.insert(1, "-" * max(map(len, found)))
    return "\n".join(found)


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an HTML table; every cell is escaped."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


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
        plain: dict[str, Any] = as_plain(
            {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        )
        return plain

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
        return {str(name): as_plain(each) for name, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [as_plain(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: as_plain(getattr(value, each.name)) for each in fields(value)
        }
    return value
