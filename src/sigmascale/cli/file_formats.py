"""Tables in files: which formats there are, and how they are read and written.

Text files are read as text, column by column: a value that nobody asks a number of is
written back just as it was. Rows are known by their place: the number of the file, and
the row in it, counted from 1 without the header; in a sheet, as the sheet counts.
"""

from __future__ import annotations

import csv
import errno
import gzip
import io
import os
import re
import stat
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, time
from glob import escape
from os.path import realpath
from pathlib import Path
from typing import Any

import polars as pl

from .._support.files import parse_json, whole_file
from .._support.notices import warn
from .._support.text import listed, quoted
from ..exceptions import HiddenSheetWarning, InvalidInputError
from .options import STANDARD, refuse

FORMATS = {
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "parquet": (".parquet", ".pq"),
    "ipc": (".feather", ".arrow", ".ipc"),
    "ndjson": (".jsonl", ".ndjson", ".json"),
    "excel": (".xlsx",),
}
MAGIC = {b"PAR1": "parquet", b"ARROW1": "ipc", b"PK\x03\x04": "excel", b"{": "ndjson"}
UNTYPED = ("csv", "tsv")  # these do not say what is a number
HEAD = 1 << 16  # bytes of a file that are looked at before it is read
COMMENTED = "Its first line seems to be a comment; leave such lines out: grep -v '^#'"
TO_UTF8 = "Save it as UTF-8, or convert it: iconv -f LATIN1 -t UTF-8"
PLACE = "place of the row"
OF_A_FILE = 1 << 40  # places in one file
MOST_SHEET_CELLS = 50_000_000
MOST_SHEET_ROWS = 1_048_576
FAILURES = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
Source = str | io.BytesIO
# In a sheet: the cells that are merged, as D2:D31, and the last row of them.
_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^<>]*?ref="([A-Z]+\d+:[A-Z]+(\d+))"')


def called(file: str, standard: str = "standard input") -> str:
    """Return the name of a file in words."""
    return standard if file == STANDARD else file


def named(files: Sequence[str]) -> str:
    """Return what to call files in a message.

    >>> named(["a.csv"]), named(["a.csv", "-"])
    ('a.csv', 'a.csv, standard input')
    """
    return listed(map(called, files), most=3)


@contextmanager
def about(files: Sequence[str]) -> Iterator[None]:
    """Put the names of files in front of what is wrong with them, whoever finds it."""
    try:
        yield
    except InvalidInputError as problem:
        if not str(problem).startswith(tuple(f"{called(file)}: " for file in files)):
            problem.args = (f"{named(files)}: {problem}", *problem.args[1:])
        raise


@contextmanager
def reading(files: Sequence[str], what: str = "cannot be read") -> Iterator[None]:
    """Say that files `cannot be read` where the library that reads them says so.

    Nothing else may be done in here: a defect of ours is not the fault of a file.
    """
    try:
        with about(files):
            yield
    except (*FAILURES, OSError) as problem:
        _refuse_shortage(problem)
        if getattr(problem, "strerror", None):
            raise  # which names its file
        msg = f"{named(files)}: {what}: {first_line(problem)}."
        raise InvalidInputError(msg) from problem


def _refuse_shortage(problem: BaseException) -> None:
    """Say that memory was short, where a library says so in its words."""
    words = str(problem).lower()
    if os.strerror(errno.ENOMEM).lower() in words or "out of memory" in words:
        raise MemoryError from problem


def first_line(problem: BaseException) -> str:
    """Return what a library has to say, in one line and without the last stop."""
    lines = str(problem).strip().splitlines() or [type(problem).__name__]
    return lines[0].rstrip(".")[:200]


def row_of(place: int, files: Sequence[str]) -> str:
    """Return in words which row a place is.

    >>> row_of(17, ["a.csv"]), row_of(OF_A_FILE + 3, ["a.csv", "b.csv"])
    ('row 17', 'row 3 of b.csv')
    """
    number, row = divmod(place, OF_A_FILE)
    return f"row {row} of {called(files[number])}" if len(files) > 1 else f"row {row}"


def kind_of(path: str, head: bytes = b"") -> str:
    """Return the format that a name, or else the first bytes of a file stand for."""
    name = path.lower().removesuffix(".gz")
    for kind, endings in FORMATS.items():
        if name.endswith(endings):
            return kind
    for magic, kind in MAGIC.items():
        if head.startswith(magic):
            return kind
    first_row = head.split(b"\n", 1)[0]
    return "tsv" if b"\t" in first_row and b"," not in first_row else "csv"


def written_kind(path: str) -> str:
    """Return the format that a file is written in by its name; ``-`` is CSV."""
    if path == STANDARD:
        return "csv"
    kind = kind_of(path, b"{?")
    is_packed = path.lower().endswith(".gz")
    ending = Path(path.lower().removesuffix(".gz")).suffix
    is_known = any(ending in endings for endings in FORMATS.values())
    if not is_known or (is_packed and kind in ("parquet", "ipc", "excel")):
        endings = ", ".join(of_kind[0] for of_kind in FORMATS.values())
        refuse(
            f"{path}: the ending of the name says no format that can be written. Use "
            f"one of {endings}; text also with .gz."
        )
    return kind


def to_standard_output(text: str) -> None:
    """Write data to standard output, which must be open."""
    if getattr(sys.stdout, "name", "") == os.devnull:  # what takes the place of none
        refuse("-: standard output is closed. Name a file to write.")
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


# -- reading ---------------------------------------------------------------------------


def read(
    files: Sequence[str], separator: str | None, most: int
) -> tuple[pl.LazyFrame, set[str]]:
    """Return some files as one frame with the places of rows, and their kinds.

    Those of up to `most` rows are in memory. All must have the same columns, of the
    same types, but whole numbers may be real ones elsewhere.
    """
    for path, times in Counter(map(realpath, files)).items():
        if times > 1:
            name = called(Path(path).name)
            refuse(f"{name}: is given twice; its rows would count twice.")

    # each file as a frame; the number of the file is part of a place
    frames = []
    kinds = set()
    for number, file in enumerate(files):
        with reading([file]):
            lazy, kind = _read(file, separator, most)
        kinds.add(kind)
        place = pl.col(PLACE).cast(pl.Int64) + number * OF_A_FILE
        frames.append(lazy.with_columns(place))

    # all as one, in the order of the first one's columns
    schema = frames[0].collect_schema()
    for file, frame in zip(files[1:], frames[1:], strict=True):
        _check_alike(files[0], schema, file, frame.collect_schema())
    if len(frames) == 1:
        return frames[0], kinds
    frames = [frame.select(schema.names()) for frame in frames]
    return pl.concat(frames, how="vertical_relaxed"), kinds


def _check_alike(file: str, schema: pl.Schema, other: str, its: pl.Schema) -> None:
    """Refuse tables whose columns differ; one without a value has any type."""
    differences: dict[str, list[str]] = {
        "lacks": [],
        "also has": [name for name in its if name not in schema],
        "has other types in": [],
    }
    for name, dtype in schema.items():
        if name not in its:
            differences["lacks"].append(name)
        elif not _are_alike(dtype, its[name]):
            differences["has other types in"].append(name)

    words = []
    for what, names in differences.items():
        if names:
            words.append(f"{what} {listed(map(quoted, names))}")
    if words:
        refuse(f"{called(other)}: unlike {called(file)}, it {' and '.join(words)}.")


def _are_alike(one: pl.DataType, other: pl.DataType) -> bool:
    """Return whether columns of two types may be one column."""
    if pl.Null in (one, other):
        return True
    return one == other or (one.is_numeric() and other.is_numeric())


def _read(path: str, separator: str | None, most: int) -> tuple[pl.LazyFrame, str]:
    """Return a file as a frame with places, in memory if it is small; and its kind."""
    source, head = _source(path)
    kind = kind_of(path, head)
    if kind == "excel":
        with _opened(source) as file:
            return _read_sheet(file, path), kind
    mark = separator or ("\t" if kind == "tsv" else ",")
    try:
        lazy = _scan(kind, source, head, mark)
        table = lazy.head(most + 1).collect(engine="streaming")
        if table.height <= most:
            lazy = table.lazy()

        # what Polars reads without a word, and we do not
        if kind in UNTYPED:
            lazy = _without_blank_end(lazy, source, mark)
        elif kind == "ndjson":
            _check_lines(source)
        if not lazy.head(1).collect(engine="streaming").height:
            columns = listed(map(quoted, lazy.drop(PLACE).collect_schema().names()))
            refuse(f"there are columns ({columns}), but no rows.")
    except FAILURES as problem:
        _refuse_shortage(problem)
        what = first_line(problem)
        if kind in UNTYPED:
            what = _odd_row(source, mark) or what
        elif kind == "ndjson":
            _check_lines(source)
        is_commented = kind in UNTYPED and head.startswith((b"#", b"\xef\xbb\xbf#"))
        remedy = COMMENTED if is_commented else "Is it a whole file?"
        msg = f"cannot be read as {kind.upper()}: {what}. ({remedy})"
        raise InvalidInputError(msg) from problem
    return lazy, kind


def _source(path: str) -> tuple[Source, bytes]:
    """Return what to read, a path or unpacked bytes, and its first bytes."""
    if "://" in path:  # Polars knows how to get there
        return path, b""
    if path != STANDARD and Path(path).is_dir():
        refuse("is a folder. Name the files in it.")

    # all bytes where they cannot be read from the path: of a pipe, of a packed file,
    # and of one whose name is not UTF-8, which Polars does not open
    if path == STANDARD:
        content = sys.stdin.buffer.read()
        is_whole = True
    else:
        with Path(path).open("rb") as file:
            content = file.read(HEAD)
            is_regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            is_packed = content.startswith(b"\x1f\x8b")
            is_whole = not is_regular or is_packed or bool(_not_utf8([path]))
            if is_whole:
                content += file.read()

    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as problem:
            refuse(f"cannot be unpacked ({problem}). Is it a whole file?")
    if not content.strip():
        refuse("is empty, or was read before." if path == STANDARD else "is empty.")
    return (io.BytesIO(content) if is_whole else path), content[:HEAD]


def _scan(kind: str, source: Source, head: bytes, mark: str) -> pl.LazyFrame:
    """Return a lazy frame with the places of its rows."""
    if kind in UNTYPED:
        names = _names(source, head, mark)
        lazy = pl.scan_csv(source, separator=mark, infer_schema=False, glob=False)
        names_by_polars = lazy.collect_schema().names()
        lazy = lazy.rename(dict(zip(names_by_polars, names, strict=True)))
    else:
        settings = {"infer_schema_length": None} if kind == "ndjson" else {}
        is_path = isinstance(source, str) and "://" not in source
        literal = escape(str(source)) if is_path else source  # "a[1].parquet" is one
        lazy = getattr(pl, f"scan_{kind}")(literal, **settings)
        refuse_names(lazy.collect_schema().names())
    return lazy.with_row_index(PLACE, offset=1)


def _check_lines(source: Source) -> None:
    """Refuse lines that are no JSON objects, or have a key twice; true is no number."""
    kinds: dict[str, bool] = {}
    with _opened(source) as file:
        for number, line in enumerate(filter(bytes.strip, file), start=1):
            try:
                row = parse_json(line)
            except InvalidInputError as problem:
                refuse(f"cannot be read as NDJSON: row {number}: {problem}")
            if not isinstance(row, dict):
                refuse(
                    f"cannot be read as NDJSON: row {number} is no JSON object; there "
                    "must be one a line."
                )
            for key, value in row.items():
                is_odd = isinstance(value, bool | dict | list)
                if value is not None and kinds.setdefault(key, is_odd) != is_odd:
                    refuse(
                        f"column {quoted(key)}, row {number}: {quoted(value)} is of "
                        "another kind than what stands in other rows."
                    )


def _opened(source: Source) -> Any:
    """Return a file to read from the start, and to close."""
    if isinstance(source, str):
        return Path(source).open("rb")
    return io.BytesIO(source.getvalue())  # which copies nothing


# -- delimited text --------------------------------------------------------------------


def _as_text(source: Source) -> io.TextIOWrapper:
    """Return a text in which bytes that are not UTF-8 are single characters."""
    return io.TextIOWrapper(_opened(source), "utf-8-sig", "surrogateescape", newline="")


def _not_utf8(cells: Sequence[str]) -> str:
    """Return the first byte that is not UTF-8, in words, if there is one."""
    for cell in cells:
        for character in cell:
            if "\udc80" <= character <= "\udcff":  # as "surrogateescape" has them
                return f"byte {ord(character) - 0xDC00:#04x}"
    return ""


def _names(source: Source, head: bytes, mark: str) -> list[str]:
    """Return the names of columns; refuse a head that is no such text."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head:
        refuse("is UTF-16 or no text at all. Save it as CSV in UTF-8.")
    if b"\r" in head.rstrip(b"\r") and b"\n" not in head:  # it may end within "\r\n"
        refuse("its lines end in carriage returns alone. Convert it: tr '\\r' '\\n'")
    with _as_text(source) as text:
        try:
            rows = csv.reader(text, delimiter=mark, strict=True)
            names = next((row for row in rows if row), [])
        except csv.Error as problem:
            refuse(
                f"the names of the columns cannot be read: {problem}. Is a quote never "
                "closed?"
            )
    if odd := _not_utf8(names):
        refuse(f"the names of the columns are not UTF-8 ({odd}). {TO_UTF8}.")
    if any('"' in name for name in names):
        refuse(f"a quote is part of the names {listed(map(quoted, names))}. Rename it.")
    refuse_names(names)
    if len(names) == 1 and names[0].startswith("#"):
        refuse(f"has one column, {quoted(names[0])}. {COMMENTED}")
    if len(names) == 1:
        _refuse_other_separator(names[0], head, mark)
    return names


def _refuse_other_separator(name: str, head: bytes, mark: str) -> None:
    """Refuse a text of one column whose name another sign seems to divide."""
    sign = next((sign for sign in ";\t|," if sign != mark and sign in name), None)
    if sign is None:
        return
    has_decimal_commas = sign != "," and re.search(rb"\d,\d", head)
    more = ", and --decimal , as commas stand in numbers" if has_decimal_commas else ""
    typed = "$'\\t'" if sign == "\t" else f"'{sign}'"
    refuse(
        f"has one column, {quoted(name)}; its columns seem to be separated by "
        f"{sign!r}. Pass --separator {typed}{more}.",
        "separator",
        separator=sign,
        decimal="," if has_decimal_commas else ".",
    )


def refuse_names(names: Sequence[str]) -> None:
    """Refuse a name that more than one column has, or that stands for others."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        refuse(f"more than one column has the name {listed(map(quoted, repeated))}.")
    for name in names:
        if name in (PLACE, "*") or (name.startswith("^") and name.endswith("$")):
            refuse(f"a column cannot have the name {quoted(name)}. Rename it.")


def _without_blank_end(lazy: pl.LazyFrame, source: Source, mark: str) -> pl.LazyFrame:
    """Return rows without blank lines at the end; refuse those that lack fields."""
    columns = [name for name in lazy.collect_schema().names() if name != PLACE]
    is_filled = ~pl.all_horizontal(pl.col(columns).is_null())
    last_filled = pl.col(PLACE).filter(is_filled).max()
    lacks_last = pl.col(columns[-1]).is_null() & is_filled
    asked = lazy.select(pl.len(), last_filled, lacks_last.any().alias("lacks"))
    n_rows, end, may_lack_fields = asked.collect(engine="streaming").row(0)

    # Polars fills in fields that a row lacks; only the text itself tells
    if may_lack_fields and len(columns) > 1:
        odd = _odd_row(source, mark)
        if "fields" in odd:
            refuse(f"{odd}.")
    end = end or 0
    return lazy.filter(pl.col(PLACE) <= end) if end < n_rows else lazy


def _odd_row(source: Source, mark: str) -> str:
    """Return what is wrong with a delimited text, and where; nothing if unknown."""
    row = -1  # of the header
    width = 0  # of the header, in fields
    inner = 0  # the first row with a quote within a field
    with _as_text(source) as text:
        rows = csv.reader(text, delimiter=mark, strict=True)
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
                if not inner and any('"' in cell for cell in cells):
                    inner = row
        except csv.Error as problem:
            open_quote = "end of data" in str(problem)
            what = "a quote is never closed" if open_quote else problem
            return f"row {row + 1}: {what}"
    if inner:
        return (
            f"row {inner} has a quote within a field. Put the field into quotes, and "
            "double those within it"
        )
    return ""


# -- sheets ----------------------------------------------------------------------------


def _read_sheet(file: Any, path: str) -> pl.LazyFrame:
    """Return the first sheet of a workbook, with the sheet's numbers of its rows.

    Columns of numbers alone, of truth values or of dates have that type. In others,
    cells are text as they are in a text file, so that TRUE or "n/a" among numbers is
    found where these are used.
    """
    from openpyxl import load_workbook

    with _reading_excel():
        book = load_workbook(file, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # which are claims
        rows = _cells(sheet.iter_rows(values_only=True))
    if sheet.sheet_state != "visible":
        warn(
            f"{path}: the first sheet, {quoted(sheet.title)}, is what is read, and it "
            "is hidden.",
            HiddenSheetWarning,
        )
    if not rows:
        refuse("the first sheet is empty.")

    # the first row that holds something has the names
    top, *others = rows
    _refuse_merged(sheet, top)
    first, last = _filled(rows[top])
    header = rows[top][first : last + 1]
    names = ["" if cell is None else str(cell) for cell in header]
    refuse_names(names)

    # the others have values below them, and nowhere else
    if not others:
        refuse(f"there are columns ({listed(map(quoted, names))}), but no rows.")
    for row in others:
        start, end = _filled(rows[row])
        if start < first or end > last:
            refuse(f"row {row} of the sheet has a value in a column without a name.")
    places = range(top + 1, others[-1] + 1)
    n_cells = len(places) * len(names)
    if n_cells > MOST_SHEET_CELLS:
        refuse(f"its first sheet claims {n_cells:,} cells: too many.")

    # a column for each name; blank rows are missing values
    columns = [pl.Series("0", places)]
    for i in range(first, last + 1):
        cells = []
        for place in places:
            of_row = rows.get(place, ())
            cells.append(of_row[i] if i < len(of_row) else None)
        columns.append(_column(cells).alias(str(len(columns))))
    frame = pl.DataFrame(columns)
    frame.columns = [PLACE, *names]  # of which one may be empty
    return frame.lazy()


@contextmanager
def _reading_excel() -> Iterator[None]:
    """Say that a file cannot be read where openpyxl, which has many errors, says so."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles that it does not know
            yield
    except (InvalidInputError, MemoryError):
        raise
    except Exception as problem:
        msg = f"cannot be read as EXCEL: {first_line(problem)}. (Is it a whole file?)"
        raise InvalidInputError(msg) from problem


def _refuse_merged(sheet: Any, top: int) -> None:
    """Refuse cells below the names that are merged: only the first has a value."""
    end = b""
    with _reading_excel(), sheet._get_source() as xml:
        merged: set[tuple[str, int]] = set()
        while block := xml.read(HEAD):
            found = _MERGED.findall(end + block)
            merged.update((cells.decode(), int(row)) for cells, row in found)
            end = (end + block)[-200:]
    below = sorted(cells for cells, row in merged if row > top)
    if below:
        refuse(
            f"cells {listed(below, 3)} are merged, so that only the first of them has "
            "a value. Unmerge them, and fill in the others."
        )


def _cells(rows: Iterator[Sequence[Any]]) -> dict[int, Sequence[Any]]:
    """Return the cells of rows that hold something, by the sheet's number."""
    cells_of_row: dict[int, Sequence[Any]] = {}
    n_cells = 0
    for number, cells in enumerate(rows, start=1):
        n_cells += len(cells)
        if n_cells > MOST_SHEET_CELLS:
            refuse(
                f"its first sheet has more than {MOST_SHEET_CELLS:,} cells: too many."
            )
        cells = [None if cell == "" else cell for cell in cells]
        if any(cell is not None for cell in cells):
            cells_of_row[number] = cells
    return cells_of_row


def _filled(cells: Sequence[Any]) -> tuple[int, int]:
    """Return the first and the last cell that hold something."""
    filled = [i for i, cell in enumerate(cells) if cell is not None]
    return filled[0], filled[-1]


def _column(cells: list[Any]) -> pl.Series:
    """Return a column of a sheet, of one type if its cells are of one kind."""
    filled = [cell for cell in cells if cell is not None]
    kinds = {type(cell) for cell in filled}
    if kinds == {int, float}:
        return pl.Series(cells, dtype=pl.Float64, strict=False)
    if kinds == {datetime} and all(cell.time() == time() for cell in filled):
        return pl.Series([cell and cell.date() for cell in cells])
    if len(kinds) == 1 and kinds <= {int, float, bool, str, datetime}:
        return pl.Series(cells)
    return pl.Series([_as_in_text(cell) for cell in cells], dtype=pl.String)


def _as_in_text(cell: Any) -> str | None:
    """Return a cell as a text file would have it."""
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    return None if cell is None else str(cell)


def _write_sheet(lazy: pl.LazyFrame, part: Path, path: str) -> None:
    """Write a workbook of one sheet, in which text is text, whatever it looks like."""
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    table = lazy.collect()
    if table.height >= MOST_SHEET_ROWS:
        refuse(
            f"{path}: a sheet has room for {MOST_SHEET_ROWS:,} rows. Write .parquet."
        )
    for column in table.select(pl.col(pl.String)):
        odd = column.filter(column.str.contains(r"[\x00-\x08\x0b\x0c\x0e-\x1f]"))
        if odd.len():
            refuse(f"{path}: a sheet has no place for {quoted(odd[0])}.")
    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    try:
        for row in (table.columns, *table.rows()):
            cells = [WriteOnlyCell(sheet, value) for value in row]
            for cell in cells:
                if isinstance(cell.value, str):
                    cell.data_type = "s"  # and no formula
            sheet.append(cells)
        # in memory: what is half written would be written again when it is forgotten
        whole = io.BytesIO()
        book.save(whole)
        part.write_bytes(whole.getbuffer())
    except OSError:
        # the rows are in a temporary file, which cannot be closed on a full disk
        for close in (sheet.close, sheet._writer.close):
            with suppress(Exception):
                close()
        raise


# -- writing ---------------------------------------------------------------------------


def write(
    lazy: pl.LazyFrame, path: str, separator: str | None = None, decimal: str = "."
) -> None:
    """Write a table in the format of the file's name, whole or not at all."""
    kind = written_kind(path)

    # columns of types that the format does not have
    for name, dtype in lazy.collect_schema().items():
        has_no_place = dtype == pl.Object
        if kind not in ("parquet", "ipc"):
            has_no_place |= "Binary" in str(dtype)
        if kind in (*UNTYPED, "excel"):
            has_no_place |= dtype.is_nested() or dtype == pl.Duration
        if has_no_place:
            refuse(
                f"{path}: cannot be written as {kind.upper()}, which has no place for "
                f"{dtype}, as column {quoted(name)} holds. Drop it, or write .parquet."
            )

    # a whole file in its format, packed if its name says so
    settings: dict[str, Any] = {}
    if kind in UNTYPED:
        settings["separator"] = separator or ("\t" if kind == "tsv" else ",")
        settings["decimal_comma"] = decimal == ","
    if path.lower().endswith(".gz"):
        settings |= {"compression": "gzip", "check_extension": False}
    sink = getattr(lazy, f"sink_{'csv' if kind == 'tsv' else kind}", None)
    with reading([path], f"cannot be written as {kind.upper()}"):
        if path == STANDARD:
            return to_standard_output(lazy.collect().write_csv(**settings))
        with whole_file(Path(path)) as part:
            if sink is None:
                _write_sheet(lazy, part, path)
            else:
                sink(part, **settings)
