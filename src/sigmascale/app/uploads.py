"""What comes from the browser: files straight to the disk, whole or not at all."""

from __future__ import annotations

import asyncio
import gzip
import os
import re
import unicodedata
import zipfile
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..exceptions import InvalidInputError

if TYPE_CHECKING:
    from starlette.requests import Request

LONGEST_NAME = 80
CHUNK = 1 << 20  # bytes that are unpacked at a time
_UNSAFE = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')


class LargeBodyError(InvalidInputError):
    """A body that is too large."""


def safe_name(name: str, taken: set[str]) -> str:
    """Return the name that a file gets in the folder: a plain one, not yet taken.

    >>> safe_name("../../etc/passwd", set()), safe_name("-rf.csv", {"rf.csv"})
    ('passwd', 'rf-2.csv')
    """
    name = unicodedata.normalize("NFC", name).replace("\\", "/").rsplit("/", 1)[-1]
    name = "".join(each for each in _UNSAFE.sub("_", name) if each.isprintable())
    name = name.encode("utf-8", "ignore").decode().strip().lstrip(".-~ ")
    if len(name.encode()) > LONGEST_NAME:
        name = name.encode()[-LONGEST_NAME:].decode("utf-8", "ignore").lstrip(".-~ ")
    name = name or "table.csv"
    stem, dot, rest = name.partition(".")
    number = 1
    while name.casefold() in {each.casefold() for each in taken}:
        number += 1
        name = f"{stem}-{number}{dot}{rest}"
    return name


def _too_large(largest: int) -> LargeBodyError:
    size = f"{largest / 2**20:,.0f} MiB"
    msg = (
        f"This page takes at most {size}, packed or unpacked. Use the command line, "
        "which knows no limit."
    )
    return LargeBodyError(msg, "too-large", largest=largest)


async def pieces(request: Request, largest: int) -> AsyncIterator[bytes]:
    """Yield the body of a request, which must not be too large."""
    declared, size = request.headers.get("content-length", ""), 0
    if declared.isdigit() and int(declared) > largest:
        raise _too_large(largest)
    async for piece in request.stream():
        size += len(piece)
        if size > largest:
            raise _too_large(largest)
        yield piece


async def receive(request: Request, path: Path, largest: int) -> None:
    """Write the body of a request to a file, of which nothing is left if it fails."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            async for piece in pieces(request, largest):
                await asyncio.to_thread(file.write, piece)
        if await asyncio.to_thread(unpacked_size, path, largest) > largest:
            raise _too_large(largest)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def unpacked_size(path: Path, largest: int) -> int:
    """Return how many bytes a packed file holds, or the first number beyond `largest`.

    Gzip is unpacked piece by piece, and nothing of it is kept. What is no whole archive
    is for the reader of tables to tell.
    """
    with path.open("rb") as opened:
        magic = opened.read(4)
    size = 0
    try:
        if magic.startswith(b"\x1f\x8b"):
            with gzip.open(path) as packed:
                while size <= largest and (piece := packed.read(CHUNK)):
                    size += len(piece)
        elif magic == b"PK\x03\x04":
            with zipfile.ZipFile(path) as archive:
                size = sum(entry.file_size for entry in archive.infolist())
    except (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile):
        pass
    return size
