"""Where the bytes of a table come from, and what to call its parts in messages."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from pathlib import Path
from typing import BinaryIO

from ..._support.files import is_utf8
from ...exceptions import InvalidInputError

Source = Path | io.BytesIO

STANDARD = "-"  # standard input or output
PACKED = b"\x1f\x8b"  # how gzip begins
HEAD = 1 << 16  # bytes of a file that are looked at before it is read


def find_source(path: str) -> tuple[Source, bytes]:
    """Return what to read, a path or unpacked bytes, and its first bytes."""
    if path != STANDARD and Path(path).is_dir():
        msg = f"{path}: is a folder. Name a file in it."
        raise InvalidInputError(msg)
    if path == STANDARD:
        content = sys.stdin.buffer.read()
    else:
        with Path(path).open("rb") as file:
            head = file.read(HEAD)
            seekable = stat.S_ISREG(os.fstat(file.fileno()).st_mode)  # no pipe
            if seekable and is_utf8(path) and not head.startswith(PACKED):
                if not head.strip():
                    msg = f"{path}: the file is empty."
                    raise InvalidInputError(msg)
                return Path(path), head
            content = head + file.read()
    content = unpacked(path, content)
    if not content.strip():
        what = "standard input" if path == STANDARD else "the file"
        msg = f"{path}: {what} is empty."
        raise InvalidInputError(msg)
    return io.BytesIO(content), content[:HEAD]


def unpacked(path: str, content: bytes) -> bytes:
    """Return bytes that gzip may have packed."""
    if not content.startswith(PACKED):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as problem:
        msg = f"{path}: cannot be unpacked ({problem}). Is it a whole file?"
        raise InvalidInputError(msg) from problem


def standard_output() -> BinaryIO:
    """Return standard output, for data; it must be open."""
    if getattr(sys.stdout, "name", "") == os.devnull:  # what stands for a closed one
        msg = "-: standard output is closed. Name a file to write."
        raise InvalidInputError(msg)
    return sys.stdout.buffer


def opened(source: Source) -> BinaryIO:
    """Return a file to read from the start, and to close."""
    if isinstance(source, Path):
        return source.open("rb")
    return io.BytesIO(source.getvalue())  # which copies nothing


def first_line(problem: BaseException) -> str:
    """Return what a library has to say, in one line and without the last stop."""
    lines = str(problem).strip().splitlines() or [type(problem).__name__]
    return lines[0].rstrip(".")
