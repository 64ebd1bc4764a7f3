"""Results as text, HTML and plain values; nothing is computed here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from html import escape
from typing import Any, Literal

import numpy as np

from .terminal import visible

WIDTH = 80  # characters in a line of a terminal
TableFormat = Literal["text", "markdown", "latex"]
_LATEX = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    **{
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    },
    **{"<": "$<$", ">": "$>$", "±": r"$\pm$", "²": "$^2$", "…": r"\ldots{}"},
    **{"−": "$-$", "⟨": r"$\langle$", "⟩": r"$\rangle$"},
}


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with the first column on the left and numbers on the right.

    One that is wider than a terminal goes on below, with the first column again.
    """
    lines = [[visible(cell, keep="") for cell in row] for row in (header, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    blocks: list[list[int]] = [[]]
    room = WIDTH - widths[0]
    for column, width in enumerate(widths[1:], start=1):
        room -= 2 + width
        if room < 0 and blocks[-1]:
            blocks.append([])
            room = WIDTH - widths[0] - 2 - width
        blocks[-1].append(column)
    return "\n\n".join(_block(lines, widths, block) for block in blocks)


def _block(lines: list[list[str]], widths: list[int], columns: list[int]) -> str:
    out = []
    for line in lines:
        cells = [line[0].ljust(widths[0]), *(line[i].rjust(widths[i]) for i in columns)]
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


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; cells are taken as they are."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def latex_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    r"""Return a LaTeX table for the package booktabs; every cell is escaped.

    >>> print(latex_table(["", "S_u"], [["50 %", "-1.2"]]))
    \begin{tabular}{lr}
    \toprule
     & S\_u \\
    \midrule
    50 \% & $-$1.2 \\
    \bottomrule
    \end{tabular}
    """
    head, *body = (
        " & ".join(_latex(cell) for cell in line) + r" \\" for line in (header, *rows)
    )
    return "\n".join(
        [
            rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _latex(cell: str) -> str:
    # the minus of a number is longer than a hyphen
    sign, rest = ("$-$", cell[1:]) if _is_negative(cell) else ("", cell)
    return sign + "".join(_LATEX.get(mark, mark) for mark in rest)


def _is_negative(cell: str) -> bool:
    return len(cell) > 1 and cell[0] == "-" and cell[1].isdigit()


def as_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], format: TableFormat
) -> str:
    """Return a table as text for a terminal, as Markdown or as LaTeX."""
    if format == "text":
        return text_table(header, rows)
    if format == "latex":
        return latex_table(header, rows)
    lines = [[cell.replace("|", r"\|") for cell in line] for line in (header, *rows)]
    return markdown_table(lines[0], lines[1:])


def shorten(name: str, length: int = 9) -> str:
    """Return a name that is short enough for the column of a table."""
    return name if len(name) <= length else name[: length - 1] + "…"


def shorten_middle(name: str, longest: int) -> str:
    """Shorten a name in the middle: what tells names apart may stand at either end.

    >>> shorten_middle("temperature", 6)
    'tem…ure'
    """
    half = longest // 2
    return name if len(name) <= longest else f"{name[:half]}…{name[-half:]}"


Cells = tuple[Sequence[str], Sequence[Sequence[str]]]  # a header, and rows below it


class Result:
    """What results share, which are dataclasses: plain values, tables and HTML."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, arrays as lists and results within as their own fields."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        return {name: _as_plain(value) for name, value in values.items()}

    def to_table(self, format: TableFormat = "text") -> str:
        """Return a table of text, Markdown or LaTeX.

        Parameters
        ----------
        format : {"text", "markdown", "latex"}, default "text"
            How the table is written; LaTeX needs the package booktabs.

        Returns
        -------
        str
        """
        return as_table(*self._cells(), format)

    def _cells(self) -> Cells:
        """Return the header and the rows of the table."""
        raise NotImplementedError

    def __str__(self) -> str:
        """Return the table as text; names and values need no header."""
        header, rows = self._cells()
        if len(header) > 2:
            return text_table(header, rows)
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)

    def _repr_html_(self) -> str:
        return html_table(*self._cells())


def _as_plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.to_dict() if isinstance(value, Result) else value
