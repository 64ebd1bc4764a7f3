"""Delimited text, such as CSV: its columns as text, and what is wrong with it."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ...exceptions import InvalidInputError
from ...roles import listed
from .sources import Source, first_line, opened

if TYPE_CHECKING:
    import polars as pl

TO_UTF8 = "Save it as UTF-8, or convert it: iconv -f LATIN1 -t UTF-8"


def read_delimited(
    path: str, source: Source, head: bytes, separator: str
) -> pl.DataFrame:
    """Return the columns of a delimited text as text; `head` are its first bytes."""
    import polars as pl

    _check_head(path, head)
    names, header = _header(path, source, separator)
    _check_names(path, names, header, head, separator)
    whole = source
    if any('"' in name for name in names):
        # Polars takes a quote within a name for the start of what runs over lines
        with opened(source) as file:
            rest = file.read()[len(header.encode()) + 3 * _has_mark(head) :]
        stand_ins = separator.join(f"column{i}" for i in range(len(names)))
        whole = io.BytesIO(f"{stand_ins}\n".encode() + rest)
    try:
        frame = pl.read_csv(
            whole,
            separator=separator,
            infer_schema=False,  # a value is what the file says
            glob=False,  # a name with brackets is no pattern
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        what = _why_unreadable(source, separator) or first_line(problem)
        msg = f"{path}: cannot be read as delimited text: {what}."
        raise InvalidInputError(msg) from problem
    if frame.width != len(names):
        msg = f"{path}: the quotes in its header do not tell where its columns end."
        raise InvalidInputError(msg)
    frame.columns = names
    filled = frame.select(~pl.all_horizontal(pl.all().is_null())).to_series()
    if not filled.all():  # blank lines at the end are no rows
        frame = frame[: 1 + max(filled.arg_true(), default=-1)]
    return frame


def _check_head(path: str, head: bytes) -> None:
    """Refuse what would be read as something else than its writer meant."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head:
        msg = f"{path}: is UTF-16 or no text at all. Save it as CSV in UTF-8."
        raise InvalidInputError(msg)
    if b"\r" in head.rstrip(b"\r") and b"\n" not in head:  # it may end within "\r\n"
        msg = (
            f"{path}: its lines end in carriage returns alone. Convert it: "
            f"tr '\\r' '\\n' < {path}"
        )
        raise InvalidInputError(msg)


def _has_mark(head: bytes) -> bool:
    """Return whether a text starts with the mark of UTF-8."""
    return head.startswith(b"\xef\xbb\xbf")


def _header(path: str, source: Source, separator: str) -> tuple[list[str], str]:
    """Return the names of the columns, and the text up to the end of their record."""
    read: list[str] = []

    def note(line: str) -> str:
        read.append(line)
        return line

    with (
        opened(source) as raw,
        # what is not UTF-8 further down is found, and told, by those who read it
        io.TextIOWrapper(raw, "utf-8-sig", "surrogateescape", newline="") as text,
    ):
        rows = csv.reader(map(note, text), delimiter=separator, strict=True)
        try:
            names = next((row for row in rows if row), [])
        except csv.Error as problem:
            what = str(problem)
            if "end of data" in what or "field limit" in what:
                what = "a quote is never closed"
            msg = f"{path}: the names of the columns cannot be read: {what}."
            raise InvalidInputError(msg) from problem
    for name in names:
        odd = next((mark for mark in name if "\udc80" <= mark <= "\udcff"), None)
        if odd is not None:
            byte = ord(odd) - 0xDC00
            msg = (
                f"{path}: the names of the columns are not UTF-8 (byte {byte:#04x}). "
                f"{TO_UTF8}."
            )
            raise InvalidInputError(msg)
    return names, "".join(read)


def _check_names(
    path: str, names: list[str], header: str, head: bytes, separator: str
) -> None:
    """Refuse names that occur twice, and a single one that holds other separators."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        msg = f"{path}: more than one column has the name {listed(repeated)}."
        raise InvalidInputError(msg)
    other = [mark for mark in ";\t|," if mark != separator and mark in header]
    if len(names) == 1 and other:
        has_commas = other[0] != "," and re.search(rb"\d,\d", head)
        commas = ", and --decimal , as commas stand in numbers" if has_commas else ""
        msg = (
            f"{path}: has one column, {listed(names)}; its columns seem to be "
            f"separated by {other[0]!r}. Pass --separator {_shell(other[0])}{commas}."
        )
        raise InvalidInputError(msg)


def _shell(mark: str) -> str:
    return "$'\\t'" if mark == "\t" else f"'{mark}'"


def _why_unreadable(source: Source, separator: str) -> str:
    """Return what is wrong with a delimited text, and where; nothing if unknown."""
    raw = source.read_bytes() if isinstance(source, Path) else source.getvalue()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        return f"line {line} is not UTF-8. {TO_UTF8}"
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line, width, quoted = 1, 0, 0
    try:
        for row in rows:
            width = width or len(row)
            if len(row) > width:
                return f"line {line} has {len(row)} fields; the header has {width}"
            if not quoted and any('"' in cell for cell in row):
                quoted = line
            line = rows.line_num + 1
    except csv.Error as problem:
        if "end of data" in str(problem):
            return f"a quote in line {line} is never closed"
        return f"line {line}: {problem}"
    if quoted:
        return (
            f"line {quoted} has a quote within a field. Put the field into quotes, and "
            "double those within it"
        )
    return ""
