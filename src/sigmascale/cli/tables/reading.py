"""How tables are read: into memory, or left where they are and only queried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from ...exceptions import InvalidInputError

if TYPE_CHECKING:
    from .lazy import LazyTable
    from .memory import MemoryTable
    from .roles import Choice, Expected

LARGE = 2**29  # bytes of Parquet files, beyond which they are not read into memory


class Engine(StrEnum):
    """What does the work: this process in memory, or queries of lazy frames."""

    memory = "memory"
    polars = "polars"
    duckdb = "duckdb"
    dask = "dask"
    spark = "spark"


@dataclass(frozen=True)
class Reading:
    """What a user says of how tables are read; None stands for what is not said.

    Attributes
    ----------
    where : str or None
        Conditions on rows; the others are left out.
    drop_missing : bool
        Whether rows with missing values are left out.
    separator, decimal : str or None
        What stands between the columns of text files, and the decimal mark.
    engine, scheduler : Engine, str or None
        What does the work, and where.
    as_text : bool
        Whether the columns of text files stay text.
    """

    where: str | None = None
    drop_missing: bool = False
    separator: str | None = None
    decimal: str | None = None
    engine: Engine | None = None
    scheduler: str | None = None
    as_text: bool = True

    def __post_init__(self) -> None:
        """Refuse what is no decimal mark."""
        if self.decimal not in (None, ".", ","):
            msg = f"--decimal must be a point or a comma; found {self.decimal!r}."
            raise InvalidInputError(msg)


def open_table(
    files: Sequence[str], reading: Reading, choice: Choice | Expected
) -> MemoryTable | LazyTable:
    """Return files as one table whose columns have the roles that were chosen."""
    if stays_lazy(files, reading.engine, reading.scheduler):
        from .lazy import LazyTable

        return LazyTable.open(files, reading, choice)
    from .memory import MemoryTable

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
    from .filesets import matching

    if engine is not None:
        return engine != Engine.memory
    if any("://" in file for file in files):
        return True
    there = [Path(file) for file in matching(files)]
    if not all(path.suffix.lower() in (".parquet", ".pq") for path in there):
        return False
    return sum(path.stat().st_size for path in there if path.is_file()) > LARGE
