"""What comes from the browser: files straight to the disk, whole or not at all."""

from __future__ import annotations

import asyncio
import gzip
import os
import re
import time
import unicodedata
import zipfile
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..exceptions import InvalidInputError

if TYPE_CHECKING:
    from starlette.requests import Request

PATIENCE = 10.0  # seconds without a byte after which nobody waits any longer
SLOWEST = 10_000  # bytes a second that a body must have on average ...
GRACE = 20.0  # ... after so many seconds
LONGEST_NAME = 80
CHUNK = 1 << 20  # bytes that are unpacked at a time
_UNSAFE = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')


class SlowBodyError(InvalidInputError):
    """A body that does not arrive."""


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


async def pieces(request: Request, largest: int, what: str) -> AsyncIterator[bytes]:
    """Yield the body of a request, which must arrive, and must not be too large."""
    too_large = (
        f"{what} has more than {largest / 2**20:,.0f} MiB, the most that this page "
        "takes. Use the command line, which knows no limit."
    )
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > largest:
        raise LargeBodyError(too_large)
    size, started = 0, time.monotonic()
    stream = request.stream().__aiter__()
    while True:
        try:
            piece = await asyncio.wait_for(anext(stream), PATIENCE)
        except StopAsyncIteration:
            return
        except TimeoutError as problem:
            msg = f"{what} did not arrive. Try again."
            raise SlowBodyError(msg) from problem
        size += len(piece)
        if size > largest:
            raise LargeBodyError(too_large)
        seconds = time.monotonic() - started
        if seconds > GRACE and size < SLOWEST * seconds:
            msg = f"{what} arrives too slowly. Try again."
            raise SlowBodyError(msg)
        yield piece


async def receive(request: Request, path: Path, largest: int) -> None:
    """Write the body of a request to a file."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            async for piece in pieces(request, largest, "The file"):
                await asyncio.to_thread(file.write, piece)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def refuse_bomb(file: str, largest: int) -> None:
    """Refuse a packed file that holds more than `largest` bytes.

    Gzip is unpacked piece by piece, and nothing of it is kept. What is no whole archive
    is for the reader of tables to tell.
    """
    path = Path(file)
    if not path.is_file():
        return
    with path.open("rb") as opened:
        magic = opened.read(4)
    size = 0
    if magic.startswith(b"\x1f\x8b"):
        try:
            with gzip.open(path) as packed:
                while size <= largest and (piece := packed.read(CHUNK)):
                    size += len(piece)
        except (OSError, EOFError, zlib.error):
            return
    elif magic == b"PK\x03\x04":
        try:
            with zipfile.ZipFile(path) as archive:
                size = sum(entry.file_size for entry in archive.infolist())
        except (zipfile.BadZipFile, OSError, ValueError):
            return
    if size > largest:
        msg = (
            f"{file}: holds more than {largest / 2**20:,.0f} MiB when unpacked, which "
            "is the most that this page takes. Use the command line."
        )
        raise InvalidInputError(msg)
