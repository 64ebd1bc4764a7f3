"""What a user says of how tables are read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ...exceptions import InvalidInputError


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
    """

    where: str | None = None
    drop_missing: bool = False
    separator: str | None = None
    decimal: str | None = None
    engine: Engine | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        """Refuse what is no decimal mark, and what is no separator."""
        if self.decimal not in (None, ".", ","):
            msg = f"--decimal must be a point or a comma; found {self.decimal!r}."
            raise InvalidInputError(msg)
        mark = self.separator
        if mark is not None and (
            len(mark) != 1 or not mark.isascii() or mark in '"\r\n'
        ):
            msg = f"--separator must be one character; found {mark!r}."
            raise InvalidInputError(msg)
