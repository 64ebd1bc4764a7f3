"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from ..exceptions import InvalidInputError

HAS_LOCKS: bool = os.name == "posix"
if HAS_LOCKS:
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
    given, path = path, _replaceable(path)
    mode = _mode(path)

    def make(part: Path) -> int | None:
        # of the permissions of a new file, the system leaves what the user's mask does
        allowed = 0o666 if mode is None else mode | 0o600  # to be written now
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, allowed)
        if HAS_LOCKS:
            return handle
        os.close(handle)  # Windows renames no file that is open
        return None

    with _named_if_full(given), _temporary(path.parent, path.suffix, make) as part:
        yield part
        _put_in_place(part, path, mode)


@contextmanager
def whole_file_or_folder(path: Path) -> Iterator[Path]:
    """Yield a path for a file or a folder, which takes the place of `path` on success.

    For writers that choose for themselves which of the two it is, and that may write
    files of their own beside it.
    """
    given, path = path, _replaceable(path)
    mode = _mode(path)

    def make(folder: Path) -> int | None:
        folder.mkdir(0o700)
        return os.open(folder, os.O_RDONLY) if HAS_LOCKS else None

    with _named_if_full(given), _temporary(path.parent, "", make) as folder:
        part = folder / path.name
        yield part
        if part.is_dir() and path.exists():
            path.unlink()  # a folder cannot take the place of a file
        _put_in_place(part, path, mode)


@contextmanager
def _named_if_full(path: Path) -> Iterator[None]:
    """Say which file could not be written: libraries have errors without its name."""
    try:
        yield
    except Exception as problem:
        for number in FULL:
            if os.strerror(number) in str(problem):
                raise OSError(number, os.strerror(number), str(path)) from problem
        raise


@contextmanager
def _temporary(
    folder: Path, suffix: str, make: Callable[[Path], int | None]
) -> Iterator[Path]:
    """Yield a temporary file or folder that no other process removes; remove it.

    `make` makes what it is given the name of, and opens it. Others may take it for
    abandoned between its making and its locking: then there is another one.
    """
    _remove_abandoned(folder)
    while True:
        part = folder / f"{PREFIX}{secrets.token_hex(8)}{suffix}"
        _unfinished.add(part)
        try:
            handle = make(part)
        except OSError as problem:
            _remove(part)
            if isinstance(problem, FileNotFoundError) and folder.is_dir():
                continue  # it was removed before it was opened
            raise
        try:
            if handle is None or _is_locked(handle, part):
                yield part
                return
        finally:
            _remove(part)
            if handle is not None:
                os.close(handle)


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


def _replaceable(path: Path) -> Path:
    """Return where to write; what is there must be a file, or nothing."""
    path = Path(os.path.realpath(path))  # a link stays, its target is replaced
    if path.exists() and not path.is_file():
        msg = f"{path}: is not a file, and is never replaced. Choose another name."
        raise InvalidInputError(msg)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _mode(path: Path) -> int | None:
    """Return the permissions of a file that is to be replaced, if there is one."""
    with suppress(FileNotFoundError):
        return stat.S_IMODE(path.stat().st_mode) & 0o777
    return None


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


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def _is_locked(handle: int, part: Path) -> bool:
    """Lock what was just made, until the process ends; return whether it is there."""
    with suppress(OSError):  # a file system without locks, where nobody removes it
        fcntl.flock(handle, fcntl.LOCK_EX)  # wait for one who is removing it
    try:
        return os.path.samestat(os.fstat(handle), part.stat())
    except FileNotFoundError:
        return False


def _remove_abandoned(folder: Path) -> None:
    """Remove temporary files and folders whose writer was killed.

    Nobody holds their lock.
    """
    if not HAS_LOCKS:
        return
    for left in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):
            handle = os.open(left, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(left)
            finally:
                os.close(handle)


def _remove(left: Path) -> None:
    """Remove a temporary file or folder, unless it has taken its place already."""
    with suppress(OSError):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    _unfinished.discard(left)


def remove_unfinished() -> None:
    """Remove what this process was writing, before it ends without further ado.

    One Ctrl-C may be reported twice, by Python and by a library, and the second time
    in the middle of a clean-up.
    """
    for left in list(_unfinished):
        _remove(left)
