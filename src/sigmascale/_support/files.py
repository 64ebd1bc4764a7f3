"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import platform
import secrets
import shutil
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from zlib import crc32

from ..exceptions import DamagedFileError, InvalidInputError
from .processes import is_gone
from .text import quoted, shorten

PREFIX = ".sigmascale-"
# What systems say where nothing can be written, and never where something is read.
FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS)
_unfinished: set[Path] = set()  # what this process is writing


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, which takes its place on success only.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with whole_file(folder / "a.txt") as part:
    ...     _ = part.write_text("all of it")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    place = Path(os.path.realpath(path))  # a link stays, its target is replaced
    if os.path.lexists(place) and not place.is_file():  # or a link to itself
        msg = f"{path}: is not a file, and is never replaced. Choose another name."
        raise InvalidInputError(msg)
    place.parent.mkdir(parents=True, exist_ok=True)
    mode = None  # of the file that is there
    if place.exists():
        mode = stat.S_IMODE(place.stat().st_mode) & 0o777
    _remove_leftovers(place.parent)
    part = place.parent / f"{_mark()}{os.getpid()}-{secrets.token_hex(8)}{path.suffix}"
    _unfinished.add(part)
    try:
        # of the permissions of a new file, the system leaves what the user's mask does
        allowed = 0o666 if mode is None else mode | 0o600  # to be written now
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, allowed))
        yield part
        if mode is not None:
            part.chmod(mode)
        with part.open("rb") as written:
            os.fsync(written.fileno())  # or a power cut may leave an empty file
        os.replace(part, place)
    except Exception as problem:
        for number in FULL:  # libraries have errors without the name of the file
            if os.strerror(number) in str(problem):
                raise OSError(number, os.strerror(number), str(path)) from problem
        if getattr(problem, "filename", None) == str(part):  # nobody knows that name
            code = problem.errno  # type: ignore[attr-defined]
            raise OSError(code, os.strerror(code), str(path)) from problem
        raise
    finally:
        _remove(part)


def _remove(part: Path) -> None:
    """Remove a temporary file or folder, unless it has taken its place already."""
    with suppress(OSError):
        shutil.rmtree(part) if part.is_dir() else part.unlink()
    _unfinished.discard(part)


def _mark() -> str:
    """Return how names of temporary files begin on this machine."""
    return f"{PREFIX}{crc32(platform.node().encode()):08x}-"


def _remove_leftovers(folder: Path) -> None:
    """Remove what processes of this machine were writing here when they were killed."""
    mark = _mark()
    for name in os.listdir(folder):
        if name.startswith(mark):
            process = name.removeprefix(mark).partition("-")[0]
            if is_gone(process):
                _remove(folder / name)


def remove_unfinished() -> None:
    """Remove what this process was writing, before it ends without further ado.

    One Ctrl-C may be reported twice, by Python and by a library, and the second time
    in the middle of a clean-up.
    """
    for part in list(_unfinished):
        _remove(part)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def parse_json(text: str | bytes) -> Any:
    """Return what JSON holds; names given twice, NaN and infinity are refused.

    >>> parse_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    try:
        return json.loads(text, object_pairs_hook=_named, parse_constant=_no_constant)
    except (ValueError, RecursionError) as problem:
        msg = f"This is not JSON as it should be: {shorten(str(problem))}."
        raise DamagedFileError(msg, "json") from problem


def _named(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object; refuse a name that stands twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        times_of = Counter(name for name, _ in pairs)
        twice = next(name for name, times in times_of.items() if times > 1)
        msg = f"{quoted(twice)} stands twice"
        raise ValueError(msg)
    return members


def _no_constant(text: str) -> Any:
    """Refuse NaN and infinity, which Python takes for JSON."""
    msg = f"{text} is no number of JSON"
    raise ValueError(msg)
