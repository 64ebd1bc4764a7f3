"""Packed files that would not fit when unpacked."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from pathlib import Path

from ..exceptions import InvalidInputError

CHUNK = 1 << 20


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
