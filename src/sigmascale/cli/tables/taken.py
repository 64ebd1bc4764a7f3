"""What was taken from a file into memory, whether of one target or of several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._support.progress import working
from ...exceptions import InvalidInputError
from ...roles import known
from ..outputs import refuse_input
from .files import UNTYPED, format_of, write_table
from .filesets import about, named, read_tables
from .reading import Reading
from .values import RawTable

if TYPE_CHECKING:
    import polars as pl

LEAST_ROWS = 5  # fewer cannot show anything


@dataclass(frozen=True, kw_only=True)
class TakenTable:
    """Checked rows of a file, or of several as one table.

    Attributes
    ----------
    files : tuple of str
        Its name, or those of several.
    reading : Reading
        How it was read.
    rows : RawTable
        The rows with all columns of the file, as they were read.
    X : DataFrame
        The conditioning table: uncertainties first, then the features.
    n_read : int
        Rows of the file, with those that `--where` left out.
    dropped : int
        Rows left out because of missing values.
    new : tuple of str
        Columns that were added, the recalibrated uncertainties first.
    """

    files: tuple[str, ...]
    reading: Reading
    rows: RawTable
    X: pl.DataFrame
    n_read: int
    dropped: int = 0
    new: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """What to call the file, or all of them."""
        return named(self.files)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.X.height

    def labels(self, name: str, asked_by: str) -> Any:
        """Return any column of the file as labels of groups."""
        with about(self.file):
            column = self.rows.labels(known(name, self.rows.frame.columns, asked_by))
            if column.has_nulls():
                msg = (
                    f"{asked_by} needs a label in each row; column {name!r} lacks some."
                )
                raise InvalidInputError(msg)
        return column.to_numpy()

    def groups(self, name: str | None) -> Any:
        """Return the column of `--groups` as labels, if there is one."""
        return None if name is None else self.labels(name, "--groups")

    def _write(
        self, output: str, numbers: Iterable[str], labels: Sequence[str]
    ) -> dict[str, Any]:
        """Write the rows with all their columns; return what is told of them.

        `numbers` and `labels` are columns that were used as such: a format that knows
        types gets them so.
        """
        if len(self.files) > 1 or not Path(self.files[0]).is_file():
            refuse_input(output, self.files)
        frame = self.rows.frame
        if self.rows.untyped and format_of(output) not in UNTYPED:
            frame = self.rows.with_types(dict.fromkeys(numbers), labels)
        style = self.reading
        write_table(frame, output, separator=style.separator, decimal=style.decimal)
        return {"rows": self.n_rows, "dropped": self.dropped}

    def _counted(self, what: str, n_rows: int, n_read: int, dropped: int) -> str:
        """Return in words what was taken from a file of which this may be a part."""
        kept = ""
        if self.reading.where is not None:
            kept = f" of {n_read}, where {self.reading.where}"
        left_out = f"; {dropped} rows with missing values left out" if dropped else ""
        return f"{self.file}: {n_rows} rows{kept}; {what}{left_out}."

    def _facts(self) -> dict[str, Any]:
        """Return how many rows were taken from which files, for machines."""
        several = len(self.files) > 1
        return {
            **({"files": list(self.files)} if several else {"file": self.file}),
            "rows": self.n_rows,
            "rows_read": self.n_read,
            "where": self.reading.where,
            "dropped": self.dropped,
        }


def read_raw(files: Sequence[str], reading: Reading) -> RawTable:
    """Read a file, or several as one table; nothing in it is checked."""
    with working("reading the table"):
        frame, untyped = read_tables(files, separator=reading.separator)
    return RawTable(frame, reading.decimal or ".", untyped)


def where_asked(table: RawTable, reading: Reading) -> RawTable:
    """Return the rows that meet the conditions of `--where`, if there are any."""
    if reading.where is None:
        return table
    from .where import Where

    return Where.parse(reading.where).keep(table)


def complete_rows(
    table: RawTable, values: dict[str, pl.Series], reading: Reading
) -> tuple[RawTable, dict[str, pl.Series], int]:
    """Return the rows in which no value is missing, these values, and how many are not.

    They are left out if the user has said so, or else refused.
    """
    import polars as pl

    missing = {name: series.is_null() for name, series in values.items()}
    if not missing:
        return table, values, 0
    anywhere = pl.DataFrame(list(missing.values())).select(pl.any_horizontal("*"))
    lost = anywhere.to_series()
    dropped = int(lost.sum())
    if dropped and not reading.drop_missing:
        counts = ", ".join(
            f"{name!r} {each.sum()}" for name, each in missing.items() if each.any()
        )
        msg = (
            f"{dropped} of {table.frame.height} rows have missing values, by column: "
            f"{counts}. Fill them in, or leave these rows out with --drop-missing."
        )
        raise InvalidInputError(msg)
    if dropped:
        table = table.filter(~lost)
        values = {name: series.filter(~lost) for name, series in values.items()}
    return table, values, dropped


def refuse_few(table: RawTable, least: int) -> None:
    """Refuse a table with fewer rows."""
    count = table.frame.height
    if count < least:
        found = "1 row" if count == 1 else f"{count} rows"
        msg = f"{found} with all values: too few. At least {least} are needed."
        raise InvalidInputError(msg)
