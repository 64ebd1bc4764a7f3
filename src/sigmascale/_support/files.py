"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import stat
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..exceptions import DamagedFileError, InvalidInputError
from .text import quoted, shorten

if sys.platform != "win32":  # where what a killed process has left stays
    import fcntl

PREFIX = ".sigmascale-part-"
# What systems say where nothing can be written, and never where something is read.
FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS)
MOST_BRACKETS = 1_000_000  # of JSON; each takes twenty times as many bytes when parsed
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
    for name in os.listdir(place.parent):
        if name.startswith(PREFIX):
            remove_leftover(place.parent / name)
    name = f"{secrets.token_hex(8)}{path.suffix}"
    new = place.parent / f".sigmascale-new-{name}"
    part = place.parent / f"{PREFIX}{name}"
    _unfinished.update((new, part))
    claim = None
    try:
        # of the permissions of a new file, the system leaves what the user's mask does
        allowed = 0o666 if mode is None else mode | 0o600  # to be written now
        os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, allowed))
        claim = claimed(new)
        os.rename(new, part)  # only now may others ask whether it is a leftover
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
        if getattr(problem, "filename", None) in (
            str(new),
            str(part),
        ):  # nobody knows that name
            code = problem.errno  # type: ignore[attr-defined]
            raise OSError(code, os.strerror(code), str(path)) from problem
        raise
    finally:
        _remove(new)
        _remove(part)
        if claim is not None:
            os.close(claim)


def claimed(path: Path) -> int | None:
    """Lock a file or folder for this process; None if another one has, or it is gone.

    The lock ends when its number is closed, or with the process: however that ends, and
    in whichever container it runs.
    """
    if sys.platform == "win32":
        return None
    number = None
    with suppress(OSError):  # a link, or a place without locks, where nothing is ours
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(number), path.lstat()):
            return number
    if number is not None:
        os.close(number)
    return None


def remove_leftover(path: Path) -> None:
    """Remove a file or folder whose process was killed, if it is of this user."""
    claim = claimed(path)
    if claim is not None:
        if os.fstat(claim).st_uid == os.getuid():
            _remove(path)
        os.close(claim)


def _remove(part: Path) -> None:
    """Remove a temporary file or folder, unless it has taken its place already."""
    with suppress(OSError):
        shutil.rmtree(part) if part.is_dir() else part.unlink()
    _unfinished.discard(part)


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
    brackets = ("[", "{") if isinstance(text, str) else (b"[", b"{")
    if sum(map(text.count, brackets)) > MOST_BRACKETS:  # type: ignore[arg-type]
        msg = f"This is no JSON of ours: it has more than {MOST_BRACKETS:,} brackets."
        raise DamagedFileError(msg, "json")
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
