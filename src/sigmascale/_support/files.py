"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from ..exceptions import InvalidInputError
from .progress import working

if os.name == "nt":
    import msvcrt
else:
    import fcntl

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
    with _beside(path, path.suffix) as (part, place, mode):
        # of the permissions of a new file, the system leaves what the user's mask does
        allowed = 0o666 if mode is None else mode | 0o600  # to be written now
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, allowed))
        yield part
        _put_in_place(part, place, mode)


@contextmanager
def locked(path: Path | None) -> Iterator[None]:
    """Let nobody else change a file from when it is read until it is replaced.

    Others that lock it wait until then. The lock is on a file beside it, which is gone
    afterwards, and ends with the process. Without a path nothing is locked.
    """
    if path is None:
        yield
        return
    place = Path(os.path.realpath(path))
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.parent / f"{PREFIX}{place.name}.lock"
    try:
        with working(f"waiting for another run that changes {path}"):
            handle = _lock(beside)
    except OSError as problem:  # nobody knows the name of the lock
        raise OSError(problem.errno, problem.strerror, str(path)) from problem
    _unfinished.add(beside)
    try:
        yield
    finally:
        _remove(beside)  # while it is locked: whoever waits makes another
        os.close(handle)
        if os.name == "nt":  # which removes no open file
            _remove(beside)


def _lock(path: Path) -> int:
    """Return the handle of a file that only this process has locked."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if os.name == "nt":
                msvcrt.locking(handle, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined, unused-ignore]
            else:
                fcntl.flock(handle, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except OSError as problem:
            if problem.errno in (errno.ENOLCK, errno.ENOTSUP):
                return handle  # a file system without locks
            if problem.errno not in (errno.ENOENT, errno.EDEADLK):
                os.close(handle)
                raise
        os.close(handle)  # it was removed by whoever had it, or waited for too long


@contextmanager
def whole_file_or_folder(path: Path) -> Iterator[Path]:
    """Yield a path for a file or a folder, which takes the place of `path` on success.

    For writers that choose for themselves which of the two it is, and that may write
    files of their own beside it.
    """
    with _beside(path, "") as (folder, place, mode):
        folder.mkdir(0o700)
        part = folder / place.name
        yield part
        if part.is_dir() and place.exists():
            place.unlink()  # a folder cannot take the place of a file
        _put_in_place(part, place, mode)


@contextmanager
def _beside(path: Path, suffix: str) -> Iterator[tuple[Path, Path, int | None]]:
    """Yield a temporary name, the place to take, and the permissions of what is there.

    What this run has made under that name is removed at the end, and nothing else.
    """
    place = Path(os.path.realpath(path))  # a link stays, its target is replaced
    if place.exists() and not place.is_file():
        msg = f"{path}: is not a file, and is never replaced. Choose another name."
        raise InvalidInputError(msg)
    place.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(place.stat().st_mode) & 0o777 if place.exists() else None
    part = place.parent / f"{PREFIX}{secrets.token_hex(8)}{suffix}"
    _unfinished.add(part)
    try:
        yield part, place, mode
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


def _put_in_place(part: Path, path: Path, mode: int | None) -> None:
    if part.is_dir():
        if mode is not None:  # who may read a file may open a folder of files
            part.chmod(mode | (mode & 0o444) >> 2)
    else:
        if mode is not None:
            part.chmod(mode)
        with part.open("rb") as written:
            os.fsync(written.fileno())  # or a power cut may leave an empty file
    os.replace(part, path)


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


def as_pattern(path: str | Path) -> str:
    """Return the pattern of the files that a file, a folder or a pattern stands for.

    What is there is no pattern, whatever its name; a folder stands for its Parquet
    files.

    >>> as_pattern("run/*.parquet")
    'run/*.parquet'
    """
    if not str(path):  # which would be the current folder
        msg = "The name of a file is empty. Name a file, a folder or a pattern."
        raise InvalidInputError(msg)
    pattern = escape(str(path)) if Path(path).exists() else str(path)
    return str(Path(pattern) / "*.parquet") if Path(path).is_dir() else pattern


def is_utf8(name: str) -> bool:
    r"""Return whether a name is text; names of files may be any bytes.

    >>> is_utf8("a.csv"), is_utf8(os.fsdecode(b"\xff.csv"))
    (True, False)
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
