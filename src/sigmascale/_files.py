"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .exceptions import InvalidInputError

HAS_LOCKS: bool = os.name == "posix"
if HAS_LOCKS:
    import fcntl

PREFIX = ".sigmascale-"


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
    if not HAS_LOCKS:
        os.close(handle)  # Windows renames no file that is open
    try:
        _lock(handle)
        yield part
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        part.chmod(mode)
        with part.open("rb") as written:
            os.fsync(written.fileno())  # or a power cut may leave an empty file
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    finally:
        if HAS_LOCKS:
            os.close(handle)


@contextmanager
def whole_file_or_folder(path: Path) -> Iterator[Path]:
    """Yield a path for a file or a folder, which takes the place of `path` on success.

    For writers that choose for themselves which of the two it is, and that may write
    files of their own beside it.
    """
    path = _replaceable(path)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=PREFIX) as folder:
        part = Path(folder) / path.name
        yield part
        if part.is_dir() and path.exists():
            path.unlink()  # a folder cannot take the place of a file
        os.replace(part, path)


def _replaceable(path: Path) -> Path:
    """Return where to write; what is there must be a file, or nothing."""
    path = Path(os.path.realpath(path))  # a link stays, its target is replaced
    if path.exists() and not path.is_file():
        msg = f"{path}: is not a file, and is never replaced. Choose another name."
        raise InvalidInputError(msg)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


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
    """Remove temporary files whose writer was killed: nobody holds their lock."""
    if not HAS_LOCKS:
        return
    for left in folder.glob(f"{PREFIX}*"):
        with suppress(OSError), left.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
