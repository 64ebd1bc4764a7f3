"""Tables in files: which formats there are, and how they are read and written.

Delimited text is read as text, column by column: a value that nobody asks a number of
is written back just as it was.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import stat
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import glob, has_magic, iglob
from itertools import takewhile
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from .._support.files import as_pattern, whole_file
from ..exceptions import InvalidInputError
from ..roles import listed

if TYPE_CHECKING:
    import polars as pl

Source = Path | io.BytesIO

STANDARD = "-"  # standard input or output
HTML = (".html", ".htm")
PACKED = b"\x1f\x8b"  # how gzip begins
HEAD = 1 << 16  # bytes of a file that are looked at before it is read
ENDINGS = {
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
    ".xlsx": "excel",
}
READ_ONLY = (".xlsx",)
WRITTEN = {end: kind for end, kind in ENDINGS.items() if end not in READ_ONLY}
MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK\x03\x04": "excel", b"{": "ndjson"}
TEXT = ("csv", "tsv", "ndjson")
UNTYPED = ("csv", "tsv")  # these do not say what is a number
BINARY = ("parquet", "arrow")  # these hold all but objects of Python
TO_UTF8 = "Save it as UTF-8, or convert it: iconv -f LATIN1 -t UTF-8"


# -- which file is what -------------------------------------------------------------


def format_of(path: str) -> str:
    """Return the format that a file is written in by its name; ``-`` is CSV.

    >>> format_of("data/new.tsv.gz")
    'tsv'
    """
    if path == STANDARD:
        return "csv"
    known = WRITTEN.get(Path(path.lower().removesuffix(".gz")).suffix)
    if known is None or (path.lower().endswith(".gz") and known not in TEXT):
        msg = (
            f"{path}: the ending of the name says no format that can be written. Use "
            f"one of {', '.join(WRITTEN)}; .csv, .tsv and .jsonl also with .gz."
        )
        raise InvalidInputError(msg)
    return known


def kind_of(path: str, head: bytes) -> str:
    """Return the format that a name, or else the first bytes of a file stand for."""
    ending = Path(path.lower().removesuffix(".gz")).suffix
    if ending in ENDINGS:
        return ENDINGS[ending]
    if ending == ".json":  # which can be read if it has one object a line
        return "ndjson"
    for magic, kind in MAGIC.items():
        if head.startswith(magic):
            return kind
    first = head.split(b"\n", 1)[0]
    return "tsv" if b"\t" in first and b"," not in first else "csv"


def matching(files: Sequence[str]) -> list[str]:
    """Return the files that files, patterns and folders of Parquet files stand for."""
    found = []
    for file in files:
        if Path(file).is_file():  # whatever its name, it is no pattern
            found.append(file)
            continue
        there = [
            path
            for path in sorted(glob(as_pattern(file), recursive=True))
            if not Path(path).is_dir() or path.endswith(".parquet")
        ]
        if not there and Path(file).is_dir():
            msg = f"{file}: is a folder without Parquet files. Name a file in it."
            raise InvalidInputError(msg)
        if not there and has_magic(file):
            msg = f"{file}: no file is there. Is the path right?"
            raise InvalidInputError(msg)
        found += there or [file]  # standard input, or what reading will tell
    twice = [path for path, count in Counter(map(realpath, found)).items() if count > 1]
    if twice:
        msg = f"{Path(twice[0]).name}: is given twice; its rows would count twice."
        raise InvalidInputError(msg)
    return found


def named(files: Sequence[str]) -> str:
    """Return what to call files in a message.

    >>> named(["a.csv"]), named(["a.csv", "b.csv"])
    ('a.csv', 'a.csv, b.csv (as one table)')
    """
    if len(files) == 1:
        return files[0]
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return f"{', '.join(files[:3])}{more} (as one table)"


@contextmanager
def about(file: str) -> Iterator[None]:
    """Put the name of a file in front of what is wrong with it."""
    try:
        yield
    except InvalidInputError as problem:
        problem.args = (f"{file}: {problem}", *problem.args[1:])
        raise


def load_saved(file: str, *, one: bool = False, needs_roles: bool = True) -> Any:
    """Return what a file says of recalibrators, or of `one`, and checked columns.

    Those that were not fitted to files know no columns, and not all need them.
    """
    from ..persistence import load_map, load_maps

    saved: Any = load_map(file) if one else load_maps(file)
    with about(file):
        if needs_roles or saved.source is not None:
            _ = saved.roles
    return saved


def check_output(
    output: str | Path, endings: tuple[str, ...], inputs: Sequence[str]
) -> None:
    """Refuse an output that is one of the inputs, or that has another's ending."""
    if Path(output).suffix.lower() not in endings:
        msg = (
            f"{output}: is written as {endings[0][1:].upper()}. Name it *{endings[0]}."
        )
        raise InvalidInputError(msg)
    refuse_input(output, inputs)


def refuse_input(output: str | Path, inputs: Sequence[str], remedy: str = "") -> None:
    """Refuse an output that is one of the inputs, or would be the next time.

    An input may be a file, a folder of Parquet files, or a pattern. There may be
    another `remedy` than another name.
    """
    if str(output) == STANDARD:
        return
    path = Path(output).resolve()
    for file in inputs:
        if "://" not in file and _is_or_matches(path, file):
            other = ", ".join(filter(None, ("Choose another name or folder", remedy)))
            msg = f"{output}: is what is read, {file}. {other}."
            raise InvalidInputError(msg)


def _is_or_matches(path: Path, file: str) -> bool:
    pattern = Path(as_pattern(Path(file).resolve()))
    if path in (Path(found).resolve() for found in iglob(str(pattern), recursive=True)):
        return True
    # it would be read the next time; ** stands for any number of folders
    root = Path(*takewhile(lambda part: part != "**", pattern.parts))
    if root != pattern:
        return path.is_relative_to(root) and path.match(pattern.name)
    return path.match(str(pattern))


# -- bytes --------------------------------------------------------------------------


def find_source(path: str) -> tuple[Source, bytes]:
    """Return what to read, a path or unpacked bytes, and its first bytes."""
    if path != STANDARD and Path(path).is_dir():
        msg = f"{path}: is a folder. Name a file in it."
        raise InvalidInputError(msg)
    source: Source = Path(path)
    if path == STANDARD:
        content = sys.stdin.buffer.read()
    else:
        with Path(path).open("rb") as file:
            content = file.read(HEAD)
            seekable = stat.S_ISREG(os.fstat(file.fileno()).st_mode)  # no pipe
            if not seekable or _not_utf8(path) or content.startswith(PACKED):
                content += file.read()
                source = io.BytesIO()
    if path == STANDARD or not isinstance(source, Path):
        content = unpacked(path, content)
        source = io.BytesIO(content)
    if not content.strip():
        what = "standard input" if path == STANDARD else "the file"
        msg = f"{path}: {what} is empty."
        raise InvalidInputError(msg)
    return source, content[:HEAD]


def unpacked(path: str, content: bytes) -> bytes:
    """Return bytes that gzip may have packed."""
    if not content.startswith(PACKED):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as problem:
        msg = f"{path}: cannot be unpacked ({problem}). Is it a whole file?"
        raise InvalidInputError(msg) from problem


def _opened(source: Source) -> BinaryIO:
    """Return a file to read from the start, and to close."""
    if isinstance(source, Path):
        return source.open("rb")
    return io.BytesIO(source.getvalue())  # which copies nothing


def standard_output() -> BinaryIO:
    """Return standard output, for data; it must be open."""
    if getattr(sys.stdout, "name", "") == os.devnull:  # what stands for a closed one
        msg = "-: standard output is closed. Name a file to write."
        raise InvalidInputError(msg)
    return sys.stdout.buffer


def first_line(problem: BaseException) -> str:
    """Return what a library has to say, in one line and without the last stop."""
    lines = str(problem).strip().splitlines() or [type(problem).__name__]
    return lines[0].rstrip(".")


# -- reading ------------------------------------------------------------------------


def read_files(
    files: Sequence[str], separator: str | None = None
) -> tuple[pl.DataFrame, bool]:
    """Return the rows of some files as one table.

    Also return whether all columns are text that says no types. Patterns such as
    ``run/*.parquet``, and folders of Parquet files, stand for the files there. All must
    have the same columns, of the same types, but whole numbers may be real ones
    elsewhere; parts without rows do no harm.
    """
    import polars as pl

    read = {path: read_file(path, separator) for path in matching(files)}
    untyped = all(kind in UNTYPED for _, kind in read.values())
    filled = {path: table for path, (table, _) in read.items() if table.height}
    if not filled:
        columns = next(iter(read.values()))[0].columns
        msg = f"{named(files)}: there are columns ({listed(columns)}), but no rows."
        raise InvalidInputError(msg)
    first, *others = filled
    if not others:
        return filled[first], untyped
    for other in others:
        _check_alike(first, filled[first], other, filled[other])
    tables = [table.select(filled[first].columns) for table in filled.values()]
    frame = pl.concat(tables, how="vertical_relaxed")
    for name, dtype in frame.schema.items():
        for x in (table[name] for table in tables if table[name].dtype != dtype):
            large = x.dtype.is_integer() and not x.is_between(-(2**53), 2**53).all()
            if (large and dtype.is_float()) or (
                x.dtype.is_numeric() and not dtype.is_numeric()
            ):
                msg = (
                    f"{named(files)}: column {name!r} has types in these files "
                    f"({x.dtype} in one) that only {dtype} could hold, not exactly. "
                    "Convert it first."
                )
                raise InvalidInputError(msg)
    return frame, untyped


def _check_alike(
    first: str, table: pl.DataFrame, other: str, its_table: pl.DataFrame
) -> None:
    """Refuse tables whose columns differ; one without a value has any type."""
    known, its = (
        {n: "number" if t.is_numeric() else str(t) for n, t in each.schema.items()}
        for each in (table, its_table)
    )
    unlike = [
        name
        for name in known.keys() & its.keys()
        if known[name] != its[name] and "Null" not in (known[name], its[name])
    ]
    differences = {
        "lacks": [*known.keys() - its.keys()],
        "also has": [*its.keys() - known.keys()],
        "has other types in": unlike,
    }
    words = [f"{word} {listed(sorted(n))}" for word, n in differences.items() if n]
    if words:
        msg = (
            f"{other}: unlike {first}, it {' and '.join(words)}. Files that are read "
            "together must have the same columns, of the same types."
        )
        raise InvalidInputError(msg)


def read_file(path: str, separator: str | None = None) -> tuple[pl.DataFrame, str]:
    """Return the table of a file, maybe without rows, and the file's format.

    `path` may be ``-``, standard input. Columns of CSV and TSV stay text.
    """
    return read_source(path, *find_source(path), separator)


def read_source(
    path: str, source: Source, head: bytes, separator: str | None
) -> tuple[pl.DataFrame, str]:
    """Return the table of a path or of bytes, which begin with `head`."""
    import polars as pl

    kind = kind_of(path, head)
    if kind in UNTYPED:
        between = separator or ("\t" if kind == "tsv" else ",")
        return _read_delimited(path, source, head, between), kind
    try:
        if kind == "parquet":
            return pl.read_parquet(source, glob=False), kind
        with _opened(source) as file:
            if kind == "arrow":
                return pl.read_ipc(file), kind
            if kind == "excel":
                return _read_excel(file), kind
            # the first lines need not have all keys, nor numbers of all types
            return pl.read_ndjson(file, infer_schema_length=None), kind
    except (InvalidInputError, MemoryError, ImportError):
        raise
    except (Exception, pl.exceptions.PanicException) as problem:
        what = first_line(problem)
        if kind == "ndjson":
            what = _no_object(source) or what
        msg = f"{path}: cannot be read as {kind.upper()}: {what} (Is it a whole file?)."
        raise InvalidInputError(msg) from problem


def _read_excel(file: BinaryIO) -> pl.DataFrame:
    """Return the first sheet of a workbook."""
    import polars as pl

    try:
        return pl.read_excel(
            file, engine="calamine", read_options={"schema_sample_rows": None}
        )
    except ImportError as problem:
        msg = (
            'Excel files need the package fastexcel: pip install ".[cli]" in a '
            "checkout; or save the sheet as CSV in UTF-8."
        )
        raise ImportError(msg) from problem


def _no_object(source: Source) -> str:
    """Return which line is no JSON object, if one is not."""
    with _opened(source) as file:
        for number, line in enumerate(filter(bytes.strip, file), start=1):
            try:
                is_object = isinstance(json.loads(line), dict)
            except (ValueError, RecursionError):
                is_object = False
            if not is_object:
                return f"row {number} is no JSON object; there must be one a line"
    return ""


def _read_delimited(
    path: str, source: Source, head: bytes, separator: str
) -> pl.DataFrame:
    """Return the columns of a delimited text as text; `head` are its first bytes."""
    import polars as pl

    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head:
        msg = f"{path}: is UTF-16 or no text at all. Save it as CSV in UTF-8."
        raise InvalidInputError(msg)
    if b"\r" in head.rstrip(b"\r") and b"\n" not in head:  # it may end within "\r\n"
        msg = (
            f"{path}: its lines end in carriage returns alone. Convert it: "
            f"tr '\\r' '\\n' < {path}"
        )
        raise InvalidInputError(msg)
    names, header = _header(path, source, separator)
    _check_names(path, names, header, head, separator)
    if quoted := [name for name in names if '"' in name]:
        msg = f"{path}: a quote is part of the name {listed(quoted)}. Rename it."
        raise InvalidInputError(msg)
    try:
        frame = pl.read_csv(
            source,
            separator=separator,
            infer_schema=False,  # a value is what the file says
            glob=False,  # a name with brackets is no pattern
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        what = _odd_row(source, separator) or first_line(problem)
        msg = f"{path}: cannot be read as delimited text: {what}."
        raise InvalidInputError(msg) from problem
    frame.columns = names
    # where fields are lacking, the last column has no value
    if frame.width > 1 and frame.to_series(-1).has_nulls():
        what = _odd_row(source, separator)
        if "fields" in what:
            msg = f"{path}: {what}."
            raise InvalidInputError(msg)
    filled = frame.select(~pl.all_horizontal(pl.all().is_null())).to_series()
    if not filled.all():  # blank lines at the end are no rows
        frame = frame[: 1 + max(filled.arg_true(), default=-1)]
    return frame


def _header(path: str, source: Source, separator: str) -> tuple[list[str], str]:
    """Return the names of the columns, and the text up to the end of their record."""
    read: list[str] = []

    def note(line: str) -> str:
        read.append(line)
        return line

    with _as_text(source) as text:
        rows = csv.reader(map(note, text), delimiter=separator, strict=True)
        try:
            names = next((row for row in rows if row), [])
        except csv.Error as problem:
            what = str(problem)
            if "end of data" in what or "field limit" in what:
                what = "a quote is never closed"
            msg = f"{path}: the names of the columns cannot be read: {what}."
            raise InvalidInputError(msg) from problem
    if odd := _not_utf8(names):
        msg = f"{path}: the names of the columns are not UTF-8 ({odd}). {TO_UTF8}."
        raise InvalidInputError(msg)
    return names, "".join(read)


def _as_text(source: Source) -> io.TextIOWrapper:
    """Return a text to read, in which bytes that are not UTF-8 are single characters.

    They are found, and told, by those who read them.
    """
    return io.TextIOWrapper(_opened(source), "utf-8-sig", "surrogateescape", newline="")


def _not_utf8(cells: Sequence[str]) -> str:
    """Return the first byte that is not UTF-8, in words, if there is one."""
    for cell in cells:
        for mark in cell:
            if "\udc80" <= mark <= "\udcff":
                return f"byte {ord(mark) - 0xDC00:#04x}"
    return ""


def _check_names(
    path: str, names: list[str], header: str, head: bytes, separator: str
) -> None:
    """Refuse names that occur twice, and a single one that holds other separators."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        msg = f"{path}: more than one column has the name {listed(repeated)}."
        raise InvalidInputError(msg)
    other = [mark for mark in ";\t|," if mark != separator and mark in header]
    if len(names) == 1 and other:
        has_commas = other[0] != "," and re.search(rb"\d,\d", head)
        commas = ", and --decimal , as commas stand in numbers" if has_commas else ""
        mark = "$'\\t'" if other[0] == "\t" else f"'{other[0]}'"
        msg = (
            f"{path}: has one column, {listed(names)}; its columns seem to be "
            f"separated by {other[0]!r}. Pass --separator {mark}{commas}."
        )
        raise InvalidInputError(
            msg, "separator", separator=other[0], decimal="," if has_commas else "."
        )


def _odd_row(source: Source, separator: str) -> str:
    """Return what is wrong with a delimited text, and where; nothing if unknown.

    Rows are counted from 1, without the header.
    """
    row, width, quoted = -1, 0, 0
    with _as_text(source) as text:
        rows = csv.reader(text, delimiter=separator, strict=True)
        try:
            for cells in rows:
                if not width and not cells:
                    continue  # blank lines before the header
                row += 1
                width = width or len(cells)
                if odd := _not_utf8(cells):
                    return f"row {row} is not UTF-8 ({odd}). {TO_UTF8}"
                if cells and len(cells) != width:
                    return (
                        f"row {row} has {len(cells)} fields; the header has {width} "
                        "(rows are counted without it)"
                    )
                if not quoted and any('"' in cell for cell in cells):
                    quoted = row
        except csv.Error as problem:
            if "end of data" in str(problem):
                return f"a quote in row {row + 1} is never closed"
            return f"row {row + 1}: {problem}"
    if quoted:
        return (
            f"row {quoted} has a quote within a field. Put the field into quotes, and "
            "double those within it"
        )
    return ""


# -- writing ------------------------------------------------------------------------


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
    style: dict[str, Any] = {
        "separator": separator or ("\t" if kind == "tsv" else ","),
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


def _refuse_types(frame: pl.DataFrame, path: str, kind: str) -> None:
    """Refuse columns of types that a format has no place for."""
    import polars as pl

    for name, dtype in frame.schema.items():
        odd = dtype == pl.Object
        if kind not in BINARY:
            odd |= "Binary" in str(dtype)  # also within lists
        if kind in UNTYPED:
            odd |= dtype.is_nested() or dtype == pl.Duration
        if odd:
            msg = (
                f"{path}: cannot be written as {kind.upper()}, which has no place for "
                f"{dtype}, as column {name!r} holds. Convert or drop it, or write "
                ".parquet."
            )
            raise InvalidInputError(msg)


class _Through(io.RawIOBase):
    """A file to which others write through Python, which says when a disk is full.

    Of a plain file, Polars takes the number, and some versions keep errors to
    themselves.
    """

    def __init__(self, file: Any) -> None:
        self._file = file

    def writable(self) -> bool:
        """Return that one can write to it."""
        return True

    def write(self, data: Any) -> int:
        """Write bytes."""
        written: int = self._file.write(data)
        return written


def _write(frame: pl.DataFrame, file: Any, kind: str, style: dict[str, Any]) -> None:
    through: Any = _Through(file)
    if kind in UNTYPED:
        frame.write_csv(through, **style)
    elif kind == "parquet":
        frame.write_parquet(through)
    elif kind == "arrow":
        frame.write_ipc(through)
    else:
        frame.write_ndjson(through)
