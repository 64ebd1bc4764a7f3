"""From a file to checked errors, uncertainties and features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._support.checks import Floats
from ..._support.progress import working
from ...exceptions import InvalidInputError
from .columns import (
    Choice,
    Columns,
    find_columns,
    find_error,
    known,
    labels,
    take_rows,
)
from .filesets import named, read_tables

if TYPE_CHECKING:
    import polars as pl


@contextmanager
def about(file: str) -> Iterator[None]:
    """Put the name of a file in front of what is wrong with it."""
    try:
        yield
    except InvalidInputError as problem:
        msg = f"{file}: {problem}"
        raise InvalidInputError(msg) from problem


@dataclass(frozen=True)
class LoadedSet:
    """The checked rows of a file, or of several as one table, with errors.

    Attributes
    ----------
    files : tuple of str
        Its name, or those of several.
    columns : Columns
        Which of its columns are used.
    frame : DataFrame
        The rows with all columns of the file.
    X : DataFrame
        The conditioning table: uncertainty first, then the features.
    error : array of shape (n,)
        Errors.
    error_columns : tuple of str
        The column they come from, or those of reference and prediction.
    dropped : int
        Rows left out because of missing values.
    """

    files: tuple[str, ...]
    columns: Columns
    frame: pl.DataFrame
    X: pl.DataFrame
    error: Floats
    error_columns: tuple[str, ...]
    dropped: int

    @classmethod
    def read(
        cls,
        files: Sequence[str],
        choice: Choice,
        *,
        by: Iterable[str] = (),
        columns: Columns | None = None,
        drop_missing: bool = False,
        separator: str | None = None,
        positive: bool = False,
    ) -> LoadedSet:
        """Read and check a file, or several as one table.

        `by` are features that a recalibrator bins by; `columns` are those of another
        set, which this one must have, too; uncertainties of 0 are refused if they must
        be `positive`.
        """
        with working("reading the table"):
            frame = read_tables(files, separator=separator)
        with about(named(files)):
            error = find_error(choice, frame.columns)
            if columns is None:
                columns = find_columns(choice, frame, error, by)
            rows = take_rows(
                frame, columns, error, drop_missing=drop_missing, positive=positive
            )
        errors: Any = rows.error
        given = tuple(files)
        return cls(given, columns, rows.frame, rows.X, errors, error, rows.dropped)

    @property
    def file(self) -> str:
        """What to call the file, or all of them."""
        return named(self.files)

    @property
    def uncertainty(self) -> Floats:
        """The uncertainties."""
        u: Floats = self.X[self.columns.uncertainty].to_numpy()
        return u

    @property
    def features(self) -> pl.DataFrame | None:
        """The features, if there are any."""
        return self.X.drop(self.columns.uncertainty) if self.X.width > 1 else None

    def labels(self, name: str, asked_by: str) -> Any:
        """Return any column of the file as labels of groups."""
        with about(self.file):
            column = labels(self.frame, known(name, self.frame.columns, asked_by))
            if column.has_nulls():
                msg = (
                    f"{asked_by} needs a label in each row; column {name!r} lacks some."
                )
                raise InvalidInputError(msg)
        return column.to_numpy()

    def __str__(self) -> str:
        """Return what was taken from the file, in words."""
        used = self.columns.words(self.error_columns)
        lost = f"; {self.dropped} rows with missing values left out"
        left_out = lost if self.dropped else ""
        return f"{self.file}: {self.X.height} rows; {used}{left_out}."

    def to_dict(self) -> dict[str, Any]:
        """Return what was taken from the file, for machines."""
        several = len(self.files) > 1
        return {
            **({"files": list(self.files)} if several else {"file": self.file}),
            "rows": self.X.height,
            "dropped": self.dropped,
            "error": list(self.error_columns),
            **self.columns.to_dict(),
        }


def read_pair(
    cal: str,
    test: str,
    choice: Choice,
    *,
    by: Iterable[str] = (),
    drop_missing: bool = False,
    separator: str | None = None,
) -> tuple[LoadedSet, LoadedSet]:
    """Read a calibration set, and a test set with the same columns."""

    def read(file: str, columns: Columns | None) -> LoadedSet:
        return LoadedSet.read(
            [file],
            choice,
            by=by,
            columns=columns,
            drop_missing=drop_missing,
            separator=separator,
            positive=True,
        )

    training = read(cal, None)
    return training, read(test, training.columns)
