"""The private folder of a server: gone when it ends, or when the next one starts."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

HAS_LOCKS: bool = os.name == "posix"
if HAS_LOCKS:
    import fcntl

PREFIX = "sigmascale-app-"


@contextmanager
def private_folder() -> Iterator[Path]:
    """Yield a folder that only this user can look into, and remove it at the end.

    Folders that killed servers have left are removed first: nobody holds their lock.
    """
    _remove_abandoned(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    handle = os.open(folder, os.O_RDONLY) if HAS_LOCKS else None
    try:
        if handle is not None:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _remove_abandoned(parent: Path) -> None:
    if not HAS_LOCKS:
        return
    for left in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            about = left.lstat()
            if about.st_uid != os.getuid() or left.is_symlink():
                continue
            handle = os.open(left, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left)
            finally:
                os.close(handle)
