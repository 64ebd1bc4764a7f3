"""Results as text, HTML and plain values; nothing is computed here."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with the first column on the left and numbers on the right."""
    lines = [list(header), *[list(row) for row in rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    out = []
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True)]
        out.append("  ".join(cells).rstrip())
    out.insert(1, "-" * max(len(line) for line in out))
    return "\n".join(out)


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an HTML table; every cell is escaped."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def shorten(name: str, length: int = 9) -> str:
    """Return a name that is short enough for the column of a table."""
    return name if len(name) <= length else name[: length - 1] + "…"


def plain(result: Any) -> dict[str, Any]:
    """Return the fields of a result by name, arrays as lists."""
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(result).items()
    }
