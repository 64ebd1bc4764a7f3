"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from ..exceptions import InvalidInputError

HAS_LOCKS: bool = os.name == "posix"
if HAS_LOCKS:
    import fcntl

PREFIX = ".sigmascale-"
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
    path = _replaceable(path)
    _remove_abandoned(path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=PREFIX, suffix=path.suffix)
    part = Path(name)
    _unfinished.add(part)
    if not HAS_LOCKS:
        os.close(handle)  # Windows renames no file that is open
    try:
        _lock(handle)
        yield part
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        part.chmod(mode)
        _put_in_place(part, path)
    finally:
        _remove(part)
        if HAS_LOCKS:
            os.close(handle)


@contextmanager
def whole_file_or_folder(path: Path) -> Iterator[Path]:
    """Yield a path for a file or a folder, which takes the place of `path` on success.

    For writers that choose for themselves which of the two it is, and that may write
    files of their own beside it.
    """
    path = _replaceable(path)
    _remove_abandoned(path.parent)
    folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=PREFIX))
    _unfinished.add(folder)
    handle = os.open(folder, os.O_RDONLY) if HAS_LOCKS else None
    try:
        if handle is not None:
            _lock(handle)
        part = folder / path.name
        yield part
        if part.is_dir() and path.exists():
            path.unlink()  # a folder cannot take the place of a file
        _put_in_place(part, path)
    finally:
        _remove(folder)
        if handle is not None:
            os.close(handle)


def _put_in_place(part: Path, path: Path) -> None:
    if part.is_file():
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


def as_pattern(path: str | Path) -> str:
    """Return the pattern of the files that a file, a folder or a pattern stands for.

    What is there is no pattern, whatever its name; a folder stands for its Parquet
    files.

    >>> as_pattern("run/*.parquet")
    'run/*.parquet'
    """
    pattern = escape(str(path)) if Path(path).exists() else str(path)
    return str(Path(pattern) / "*.parquet") if Path(path).is_dir() else pattern


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def _lock(handle: int) -> None:
    """Show that a file is being written; the lock ends with the process."""
    if HAS_LOCKS:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
