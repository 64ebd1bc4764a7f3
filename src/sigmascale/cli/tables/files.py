"""Tables in files: CSV, TSV, Parquet, Feather, JSON lines and NumPy archives.

A delimited text file is read as text, column by column: a value that nobody asks a
number of is written back just as it was.
"""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypedDict, get_args

from ..._support.files import whole_file
from ...exceptions import InvalidInputError
from ...roles import listed
from .delimited import read_delimited
from .json_lines import read_json_lines
from .npz import read_npz, write_npz
from .parquet_claims import check_claims
from .sources import (
    STANDARD,
    Source,
    find_source,
    first_line,
    opened,
    standard_output,
)

if TYPE_CHECKING:
    import polars as pl

FileFormat = Literal["csv", "tsv", "parquet", "arrow", "ndjson", "npz"]


class Style(TypedDict):
    """How delimited text is written."""

    separator: str
    decimal_comma: bool


ENDINGS: dict[str, FileFormat] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".jsonl": "ndjson",
    ".ndjson": "ndjson",
    ".npz": "npz",
}
MAGIC: dict[bytes, FileFormat] = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"PK\x03\x04": "npz",
    b"{": "ndjson",
}
TEXT = ("csv", "tsv", "ndjson")
UNTYPED = ("csv", "tsv")  # these do not say what is a number
BINARY = ("parquet", "arrow")  # these hold all but objects of Python


def format_of(path: str) -> FileFormat:
    """Return the format that a file's name stands for; ``-`` is CSV.

    >>> format_of("data/new.tsv.gz")
    'tsv'
    """
    if path == STANDARD:
        return "csv"
    known = ENDINGS.get(Path(path.lower().removesuffix(".gz")).suffix)
    if known is None or (path.lower().endswith(".gz") and known not in TEXT):
        msg = (
            f"{path}: the ending of the name says no format that can be written. Use "
            f"one of {', '.join(ENDINGS)}; .csv, .tsv and .jsonl also with .gz."
        )
        raise InvalidInputError(msg)
    return known


def read_table(path: str, *, separator: str | None = None) -> pl.DataFrame:
    """Return the table of a file, or of standard input where `path` is ``-``.

    Parameters
    ----------
    path : str
        The file. Its format is told by its name, or else by its first bytes. The
        columns of CSV and TSV files stay text.
    separator : str, optional
        What stands between the columns of a text file; a comma, or a tab in TSV.
    """
    return with_rows(path, read_part(path, separator)[0])


def with_rows(path: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table, which must have rows."""
    if not frame.height:
        msg = f"{path}: there are columns ({listed(frame.columns)}), but no rows."
        raise InvalidInputError(msg)
    return frame


def read_part(
    path: str, separator: str | None = None
) -> tuple[pl.DataFrame, FileFormat]:
    """Return the table of a file, maybe without rows, and the file's format."""
    return read_source(path, *find_source(path), separator)


def read_source(
    path: str, source: Source, head: bytes, separator: str | None
) -> tuple[pl.DataFrame, FileFormat]:
    """Return the table of a path or of bytes, which begin with `head`."""
    import polars as pl

    kind = kind_of(path, head)
    if kind in UNTYPED:
        between = separator or ("\t" if kind == "tsv" else ",")
        return read_delimited(path, source, head, between), kind
    if kind == "ndjson":
        return read_json_lines(path, source), kind
    if kind == "npz":
        return read_npz(path, source), kind
    try:
        if kind == "parquet":
            check_claims(path, source)
            return pl.read_parquet(source, glob=False), kind
        with opened(source) as file:
            return pl.read_ipc(file), kind
    except (InvalidInputError, MemoryError):
        raise
    except (Exception, pl.exceptions.PanicException) as problem:
        what = first_line(problem)
        msg = f"{path}: cannot be read as {kind.upper()}: {what} (Is it a whole file?)."
        raise InvalidInputError(msg) from problem


def write_table(
    frame: pl.DataFrame,
    path: str,
    *,
    separator: str | None = None,
    decimal: str | None = None,
) -> None:
    """Write a table in the format of the file's name, whole or not at all.

    `separator` stands between the columns of CSV, instead of a comma; `decimal` is the
    decimal mark, a point if it is not given.
    """
    import polars as pl

    kind = format_of(path)
    usual = "\t" if kind == "tsv" else ","
    style: Style = {
        "separator": separator or usual,
        "decimal_comma": decimal == ",",
    }
    _refuse_types(frame, path, kind)
    try:
        if path == STANDARD:
            # older versions of Polars would not say that the disk behind it is full
            output = standard_output()
            output.write(frame.write_csv(**style).encode())
            output.flush()
            return
        with whole_file(Path(path)) as part, part.open("wb") as raw:
            if path.lower().endswith(".gz"):
                # without the time, so that the same table gives the same bytes
                with gzip.GzipFile("", "wb", 6, raw, 0) as file:
                    _write(frame, file, kind, style)
            else:
                _write(frame, raw, kind, style)
    except pl.exceptions.PolarsError as problem:
        msg = f"{path}: cannot be written as {kind.upper()} ({first_line(problem)})."
        raise InvalidInputError(msg) from problem


class Through(io.RawIOBase):
    """A file to which others write through Python, which says when a disk is full.

    Of a plain file, Polars takes the number, and some versions keep errors to
    themselves.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def writable(self) -> bool:
        """Return that one can write to it."""
        return True

    def write(self, data: Any) -> int:
        """Write bytes."""
        return self._file.write(data)


def _refuse_types(frame: pl.DataFrame, path: str, kind: FileFormat) -> None:
    """Refuse columns of types that a format has no place for."""
    import polars as pl

    for name, dtype in frame.schema.items():
        odd = dtype == pl.Object
        if kind not in BINARY:
            odd |= "Binary" in str(dtype)  # also within lists
        if kind in (*UNTYPED, "npz"):
            odd |= dtype.is_nested()
        if kind in UNTYPED:
            odd |= dtype == pl.Duration
        if odd:
            msg = (
                f"{path}: cannot be written as {kind.upper()}, which has no place for "
                f"{dtype}, as column {name!r} holds. Convert or drop it, or write "
                ".parquet."
            )
            raise InvalidInputError(msg)


def _write(frame: pl.DataFrame, file: Any, kind: FileFormat, style: Style) -> None:
    through: Any = Through(file)
    if kind == "npz":
        write_npz(frame, file)
    elif kind in UNTYPED:
        frame.write_csv(through, **style)
    elif kind == "parquet":
        frame.write_parquet(through)
    elif kind == "arrow":
        frame.write_ipc(through)
    else:
        frame.write_ndjson(through)


def kind_of(path: str, head: bytes) -> FileFormat:
    """Return the format that a name, or else the first bytes of a file stand for."""
    ending = Path(path.lower().removesuffix(".gz")).suffix
    if ending in ENDINGS:
        return ENDINGS[ending]
    if ending == ".json":  # which can be read if it has one object a line
        return "ndjson"
    found = next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), "")
    if found in get_args(FileFormat):
        return found  # type: ignore[return-value]
    first = head.split(b"\n", 1)[0]
    return "tsv" if b"\t" in first and b"," not in first else "csv"
