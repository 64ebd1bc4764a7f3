"""Tables in files: CSV, TSV, Parquet, Feather, JSON lines and NumPy archives.

A delimited text file is read as text, column by column: a value that nobody asks a
number of is written back just as it was.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import stat
import sys
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

import numpy as np

from ..._support.files import whole_file
from ..._support.render import shorten
from ...exceptions import InvalidInputError

if TYPE_CHECKING:
    import polars as pl

FileFormat = Literal["csv", "tsv", "parquet", "arrow", "ndjson", "npz"]


class Style(TypedDict):
    """How delimited text is written."""

    separator: str
    decimal_comma: bool


STANDARD = "-"  # standard input or output
HEAD = 1 << 16  # bytes of a text file that are looked at before it is read
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
TO_UTF8 = "Save it as UTF-8, or convert it: iconv -f LATIN1 -t UTF-8"
MOST_NAMES = 12  # of columns in a message


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


def read_table(
    path: str,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    as_text: bool = True,
) -> pl.DataFrame:
    """Return the table of a file, or of standard input where `path` is ``-``.

    Parameters
    ----------
    path : str
        The file. Its format is told by its name, or else by its first bytes.
    separator : str, optional
        What stands between the columns of a text file; a comma, or a tab in TSV.
    decimal : str, optional
        The decimal mark of a text file, a point or a comma.
    as_text : bool, default True
        Whether the columns of CSV and TSV files stay text.
    """
    part, _ = read_part(path, separator, decimal, as_text=as_text)
    return with_rows(path, part)


def with_rows(path: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table, which must have rows."""
    if not frame.height:
        msg = f"{path}: there are columns ({listed(frame.columns)}), but no rows."
        raise InvalidInputError(msg)
    return frame


def read_part(
    path: str, separator: str | None, decimal: str | None, *, as_text: bool
) -> tuple[pl.DataFrame, FileFormat]:
    """Return the table of a file, maybe without rows, and the file's format."""
    import polars as pl

    source, head = _open(path)
    kind = _kind(path, head)
    try:
        if kind in ("csv", "tsv"):
            between = separator or ("\t" if kind == "tsv" else ",")
            _check_header(path, head, between)
            frame = pl.read_csv(
                source,
                separator=between,
                infer_schema=not as_text,
                infer_schema_length=None,
                decimal_comma=decimal == ",",
                glob=False,  # a name with brackets is no pattern
            )
            filled = frame.select(~pl.all_horizontal(pl.all().is_null())).to_series()
            if not filled.all():  # blank lines at the end are no rows
                frame = frame[: 1 + max(filled.arg_true(), default=-1)]
        elif kind == "parquet":
            frame = pl.read_parquet(source, glob=False)
        elif kind == "arrow":
            with _opened(source) as file:
                frame = pl.read_ipc(file)
        elif kind == "ndjson":
            with _opened(source) as file:
                frame = pl.read_ndjson(file)
        else:
            frame = _read_npz(path, source)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        what = str(problem).strip().splitlines()[0] + " (Is it a whole file?)"
        if kind in ("csv", "tsv"):
            what = _why_unreadable(source, between) or what
        msg = f"{path}: cannot be read as {kind.upper()}: {what}."
        raise InvalidInputError(msg) from problem
    return frame, kind


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
    try:
        if path == STANDARD:
            # older versions of Polars would not say that the disk behind it is full
            sys.stdout.buffer.write(frame.write_csv(**style).encode())
            sys.stdout.buffer.flush()
            return
        with whole_file(Path(path)) as part:
            if path.lower().endswith(".gz"):
                # without the time, so that the same table gives the same bytes
                with part.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, 0) as file:
                    _write(frame, file, kind, style)
            else:
                _write(frame, part, kind, style)
    except pl.exceptions.PolarsError as problem:
        what = str(problem).strip().splitlines()[0]
        msg = f"{path}: cannot be written as {kind.upper()} ({what})."
        raise InvalidInputError(msg) from problem


def _write(frame: pl.DataFrame, file: Any, kind: FileFormat, style: Style) -> None:
    if kind == "npz":
        _write_npz(frame, file)
    elif kind in ("csv", "tsv"):
        frame.write_csv(file, **style)
    elif kind == "parquet":
        frame.write_parquet(file)
    elif kind == "arrow":
        frame.write_ipc(file)
    else:
        frame.write_ndjson(file)


def _open(path: str) -> tuple[Any, bytes]:
    """Return what to read, a path or unpacked bytes, and its first bytes."""
    if path != STANDARD and Path(path).is_dir():
        msg = f"{path}: is a folder. Name a file in it."
        raise InvalidInputError(msg)
    if path == STANDARD:
        content = sys.stdin.buffer.read()
    else:
        with Path(path).open("rb") as file:
            head = file.read(HEAD)
            seekable = stat.S_ISREG(os.fstat(file.fileno()).st_mode)  # no pipe
            if seekable and not head.startswith(b"\x1f\x8b"):  # not gzip
                if not head.strip():
                    msg = f"{path}: the file is empty."
                    raise InvalidInputError(msg)
                return Path(path), head
            content = head + file.read()
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as problem:
            msg = f"{path}: cannot be unpacked ({problem}). Is it a whole file?"
            raise InvalidInputError(msg) from problem
    if not content.strip():
        what = "standard input" if path == STANDARD else "the file"
        msg = f"{path}: {what} is empty."
        raise InvalidInputError(msg)
    return io.BytesIO(content), content[:HEAD]


def _opened(source: Any) -> Any:
    return source.open("rb") if isinstance(source, Path) else source


def _kind(path: str, head: bytes) -> FileFormat:
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


def _check_header(path: str, head: bytes, separator: str) -> None:
    """Refuse what would be read as something else than its writer meant."""
    if len(separator.encode()) != 1:
        msg = f"`--separator` must be one character; found {separator!r}."
        raise InvalidInputError(msg)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head:
        msg = f"{path}: is UTF-16 or no text at all. Save it as CSV in UTF-8."
        raise InvalidInputError(msg)
    if b"\r" in head and b"\n" not in head:
        msg = (
            f"{path}: its lines end in carriage returns alone. Convert it: "
            f"tr '\\r' '\\n' < {path}"
        )
        raise InvalidInputError(msg)
    try:
        line = head.lstrip(b"\r\n").splitlines()[0]
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        msg = (
            f"{path}: the names of the columns are not UTF-8 "
            f"(byte {line[problem.start]:#04x}). {TO_UTF8}."
        )
        raise InvalidInputError(msg) from problem
    names = next(csv.reader([text], delimiter=separator))
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        msg = f"{path}: more than one column has the name {listed(repeated)}."
        raise InvalidInputError(msg)
    other = [mark for mark in ";\t|," if mark != separator and mark in text]
    if len(names) == 1 and other:
        has_commas = other[0] != "," and re.search(rb"\d,\d", head)
        commas = ", and --decimal , as commas stand in numbers" if has_commas else ""
        msg = (
            f"{path}: has one column, {listed(names)}; its columns seem to be "
            f"separated by {other[0]!r}. Pass --separator {_shell(other[0])}{commas}."
        )
        raise InvalidInputError(msg)


def _shell(mark: str) -> str:
    return "$'\\t'" if mark == "\t" else f"'{mark}'"


def _read_npz(path: str, source: Any) -> pl.DataFrame:
    import polars as pl

    try:
        # np.load itself would leave a broken archive open
        with _opened(source) as file, np.load(file, allow_pickle=False) as archive:
            columns = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, KeyError) as problem:
        msg = (
            f"{path}: cannot be read as NPZ. It must be a whole file, made by "
            "numpy.savez from arrays of numbers or text, not of objects."
        )
        raise InvalidInputError(msg) from problem
    # what is in the archive and no array comes as bytes
    shapes = {name: getattr(each, "shape", None) for name, each in columns.items()}
    if len(set(shapes.values())) != 1 or len(shapes.popitem()[1] or ()) != 1:
        found = [f"{name} {getattr(c, 'shape', '?')}" for name, c in columns.items()]
        msg = (
            f"{path}: must hold columns, one-dimensional arrays of one length; found "
            f"{listed(found) or 'nothing'}."
        )
        raise InvalidInputError(msg)
    return pl.DataFrame(columns)


def _write_npz(frame: pl.DataFrame, path: Path) -> None:
    # not by numpy.savez, whose own arguments cannot be names of columns
    with zipfile.ZipFile(path, "w") as archive:
        for column in frame:
            values = column.to_numpy()
            if values.dtype.kind == "O":
                values = np.array(["" if c is None else str(c) for c in column])
            # without the time, so that the same table gives the same bytes
            entry = zipfile.ZipInfo(f"{column.name}.npy")
            with archive.open(entry, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, values, allow_pickle=False)


def _why_unreadable(source: Any, separator: str) -> str:
    """Return what is wrong with a delimited text, and where; nothing if unknown."""
    raw = source.read_bytes() if isinstance(source, Path) else source.getvalue()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        return f"line {line} is not UTF-8. {TO_UTF8}"
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line, width = 1, 0
    try:
        for row in rows:
            width = width or len(row)
            if len(row) > width:
                return f"line {line} has {len(row)} fields; the header has {width}"
            line = rows.line_num + 1
    except csv.Error as problem:
        if "end of data" in str(problem):
            return f"a quote in line {line} is never closed"
        return f"line {line}: {problem}"
    return ""


def listed(names: list[str]) -> str:
    """Return names for a message; long ones, and many, are cut short.

    >>> listed(["u", "mass"])
    "'u', 'mass'"
    """
    shown = ", ".join(repr(shorten(name, 40)) for name in names[:MOST_NAMES])
    more = len(names) - MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
