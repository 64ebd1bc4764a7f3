"""Standard input as it comes: tables of the rows that have arrived."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from typing import Any

from ...exceptions import InvalidInputError
from .files import TEXT, UNTYPED, kind_of, read_source, with_rows
from .reading import Reading
from .sources import HEAD, PACKED, STANDARD, unpacked
from .values import RawTable

PIECE = 1 << 20  # bytes that are taken at once, if so many are there
FIRST = 8  # bytes that tell a format


def live_tables(reading: Reading) -> Iterator[RawTable]:
    """Yield the rows of standard input whenever whole lines of text have come.

    Formats that are no lines of text are read to their end first. Whoever interrupts
    it (Ctrl-C) ends the input.
    """
    content, header, n_rows = b"", b"", 0
    for piece in _pieces():
        content += piece
        if len(content) < FIRST and b"\n" not in content:
            continue
        kind = kind_of(STANDARD, (header + content)[:HEAD])
        if kind not in TEXT or content.startswith(PACKED):
            content += b"".join(_pieces())
            break
        has_header = kind in UNTYPED
        end = _end_of_lines(content, quoted=has_header)
        if has_header and not header:
            header = _first_line(content[:end])
            content, end = content[len(header) :], end - len(header)
        if content[:end].strip():
            table = _table(header + content[:end], reading, n_rows)
            content = content[end:]
            n_rows += table.frame.height
            yield table
    if content.strip() or not n_rows:
        table = _table(header + content, reading, n_rows)
        with_rows(STANDARD, table.frame)
        yield table


def _pieces() -> Iterator[bytes]:
    """Yield what has come, as soon as something has."""
    stream: Any = sys.stdin.buffer
    try:
        while piece := stream.read1(PIECE):
            yield piece
    except KeyboardInterrupt:
        return


def _end_of_lines(content: bytes, *, quoted: bool) -> int:
    """Return where the last whole line ends; or else 0.

    Where texts are `quoted`, these may have several lines, and it is not within them.
    """
    end = content.rfind(b"\n") + 1
    while quoted and end and content.count(b'"', 0, end) % 2:
        end = content.rfind(b"\n", 0, end - 1) + 1
    return end


def _first_line(lines: bytes) -> bytes:
    """Return the first line with something in it, and blank ones before it."""
    at = len(lines) - len(lines.lstrip())
    end = at
    while (end := lines.find(b"\n", end) + 1) and lines.count(b'"', 0, end) % 2:
        continue
    return lines[:end]


def _table(content: bytes, reading: Reading, n_before: int) -> RawTable:
    """Return the table of some bytes; messages count rows from the first of all."""
    import polars as pl

    if not content.strip():
        msg = f"{STANDARD}: standard input is empty."
        raise InvalidInputError(msg)
    content = unpacked(STANDARD, content)
    source, head = io.BytesIO(content), content[:HEAD]
    frame, kind = read_source(STANDARD, source, head, reading.separator)
    places = pl.int_range(n_before, n_before + frame.height, eager=True)
    return RawTable(frame, reading.decimal or ".", kind in UNTYPED, places)
