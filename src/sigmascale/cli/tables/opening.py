"""Files as one table: in memory, or left where they are and only queried."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...exceptions import InvalidInputError
from ...roles import Choice, Expected
from .filesets import matching
from .lazy import LazyTable
from .memory import MemoryTable
from .reading import Engine, Reading

LARGE = 2**29  # bytes of Parquet files, beyond which they are not read into memory


def open_table(
    files: Sequence[str],
    reading: Reading,
    choice: Choice | Expected,
    sample: int | None = None,
) -> MemoryTable | LazyTable:
    """Return files as one table whose columns have the roles that were chosen.

    `sample` is how many rows may be drawn, if they stay where they are.
    """
    if stays_lazy(files, reading.engine, reading.scheduler):
        return LazyTable.open(files, reading, choice, sample)
    if sample is not None:
        msg = (
            "--sample is for files that are not read into memory, such as with "
            "--engine polars; all rows of these are used."
        )
        raise InvalidInputError(msg)
    return MemoryTable.open(files, reading, choice)


def stays_lazy(
    files: Sequence[str], engine: Engine | None, scheduler: str | None = None
) -> bool:
    """Return whether files are left where they are, and only queried."""
    lazy = _stays_lazy(files, engine)
    if not lazy and scheduler is not None:
        msg = "--scheduler is for --engine dask or spark."
        raise InvalidInputError(msg)
    return lazy


def _stays_lazy(files: Sequence[str], engine: Engine | None) -> bool:
    if engine is not None:
        return engine != Engine.memory
    if any("://" in file for file in files):
        return True
    there = [Path(file) for file in matching(files)]
    if not all(path.suffix.lower() in (".parquet", ".pq") for path in there):
        return False
    return sum(path.stat().st_size for path in there if path.is_file()) > LARGE
