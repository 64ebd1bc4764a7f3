"""What a Parquet file says of its own pages, before a reader trusts it.

A reader asks for as much memory as a page claims to have values, and a process that
is denied it ends at once. Pages of a damaged file may claim anything.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

from ...exceptions import InvalidInputError
from .sources import Source

MAGIC = b"PAR1"
TAIL = 8  # bytes: the length of the footer, and the magic word
# Fields of Parquet's structures, by number.
ROW_GROUPS, COLUMNS, META = 4, 1, 3  # of a file, of a row group, of a column
N_VALUES, SIZE, FIRST_DATA, DICTIONARY = 5, 7, 9, 11  # of a column's meta data
UNPACKED, PACKED = 2, 3  # sizes of a page
DATA, DICTIONARY_HEADER, NEWER_DATA = 5, 7, 8  # what is in a page
COUNT = 1  # of the values of a page


def check_claims(path: str, source: Source) -> None:
    """Refuse a Parquet file whose pages claim sizes or counts that cannot be."""
    if not isinstance(source, Path):
        _check(path, source.getvalue())
        return
    if source.stat().st_size == 0:
        return  # which the reader will tell
    with (
        source.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        _check(path, content)


def _check(path: str, content: Any) -> None:
    start = len(content) - TAIL - int.from_bytes(content[-TAIL:-4], "little")
    if content[-4:] != MAGIC or start < len(MAGIC):
        return  # which the reader will tell
    try:
        footer = Thrift(content, start).structure()
        columns = [
            column[META] for group in footer[ROW_GROUPS] for column in group[COLUMNS]
        ]
        fits = all(_has_pages_that_fit(content, column) for column in columns)
    except (LookupError, TypeError, RecursionError):
        fits = False  # cut, or of another structure
    if not fits:
        msg = (
            f"{path}: cannot be read as PARQUET: its pages are not what it says that "
            "they are (Is it a whole file?)."
        )
        raise InvalidInputError(msg)


def _has_pages_that_fit(content: Any, column: dict[int, Any]) -> bool:
    """Return whether the pages of a column lie in the file, with its values."""
    first, n_values = column[FIRST_DATA], column[N_VALUES]
    if n_values == 0:
        return True  # there are no pages
    place = min(first, column.get(DICTIONARY) or first)
    end = place + column[SIZE]
    if not len(MAGIC) <= place <= end <= len(content):
        return False
    while place < end:
        reader = Thrift(content, place)
        page = reader.structure()
        place = reader.place + page[PACKED]
        if page[PACKED] < 0 or page[UNPACKED] < 0 or place > len(content):
            return False
        # each value of a dictionary takes a byte or more
        most = {DATA: n_values, NEWER_DATA: n_values, DICTIONARY_HEADER: page[UNPACKED]}
        if not all(0 <= page[k][COUNT] <= n for k, n in most.items() if k in page):
            return False
    return True


class Thrift:
    """Reads Thrift's compact protocol, in which Parquet's headers are written."""

    def __init__(self, content: Any, place: int) -> None:
        self._content = content
        self.place = place

    def structure(self) -> dict[int, Any]:
        """Return the fields of a structure by number."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else self._integer()
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        match kind:
            case 1 | 2 | 3:  # a truth value in a list, or a byte
                return self._byte()
            case 4 | 5 | 6:
                return self._integer()
            case 7:
                return self._bytes(8)
            case 8:
                return self._bytes(self._unsigned())
            case 9 | 10:
                head = self._byte()
                size = head >> 4 if head < 0xF0 else self._unsigned()
                return [self._value(head & 15) for _ in range(size)]
            case 12:
                return self.structure()
        msg = f"no kind {kind}"
        raise LookupError(msg)

    def _byte(self) -> int:
        self.place += 1
        byte: int = self._content[self.place - 1]
        return byte

    def _bytes(self, count: int) -> bytes:
        self.place += count
        if self.place > len(self._content):
            msg = "beyond the end"
            raise LookupError(msg)
        found: bytes = self._content[self.place - count : self.place]
        return found

    def _unsigned(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 128:
            value |= (byte & 127) << shift
            shift += 7
        return value | byte << shift

    def _integer(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)
