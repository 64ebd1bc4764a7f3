"""Sheets of workbooks (.xlsx): cells as they are, in the rows that the sheet counts."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl

from .._support.text import listed, quoted
from ..exceptions import InvalidInputError
from .options import refuse
from .tables import PLACE, first_line, refuse_twice

MOST_CELLS = 10**8
MOST_ROWS = 1_048_576  # that a sheet can have
_IN = {"a": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
_TAG = f"{{{_IN['a']}}}"
_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_LITERAL = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')  # of formats of numbers
_DATES = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}


def read_sheet(file: Any) -> pl.LazyFrame:
    """Return the first sheet of a workbook, with the sheet's numbers of its rows.

    A column of numbers alone, of truth values or of dates has that type. In any other
    column cells are text, as they are in a text file, so that TRUE or "n/a" among
    numbers is found where these are used.
    """
    damaged = (
        *(zipfile.BadZipFile, zlib.error, ElementTree.ParseError, EOFError),
        *(LookupError, ValueError, NotImplementedError),  # of what is in it
    )
    try:
        with zipfile.ZipFile(file) as book:
            texts, is_date, epoch, sheet = _workbook(book)
            with book.open(sheet) as content:
                rows = dict(_rows(content, texts, is_date, epoch))
    except InvalidInputError:
        raise
    except damaged as problem:
        what = first_line(problem)
        refuse(f"cannot be read as EXCEL: {what}. (Is it a whole workbook?)")
    if not rows:
        refuse("the first sheet is empty.")
    top, end = min(rows), max(rows)
    header = rows.pop(top)
    first, last = min(header), max(header)
    names = [header.get(x, ("", ""))[1] for x in range(first, last + 1)]
    refuse_twice(names)
    if (end - top) * len(names) > MOST_CELLS:
        refuse(f"its first sheet claims {(end - top) * len(names):,} cells: too many.")
    for row, cells in rows.items():
        if outside := [x for x in cells if not first <= x <= last]:
            place = f"row {row}, column {outside[0] + 1} of the sheet"
            refuse(f"{place}: a value stands outside the columns that have names.")
    if not rows:
        refuse(f"there are columns ({listed(map(quoted, names))}), but no rows.")
    places = range(top + 1, end + 1)
    empty: dict[int, Any] = {}
    found = [pl.Series(PLACE, places, pl.UInt32)]
    for x, name in enumerate(names, start=first):
        column = [rows.get(row, empty).get(x, (None, None)) for row in places]
        kinds = {kind for kind, _ in column if kind}
        found.append(_column(name, kinds, [value for _, value in column]))
    frame = pl.DataFrame([x.alias(str(i)) for i, x in enumerate(found)])
    frame.columns = [x.name for x in found]  # of which one may be empty
    return frame.lazy()


def _column(name: str, kinds: set[str], values: list[str | None]) -> pl.Series:
    """Return a column of a sheet, of one type if its cells are of one kind."""
    text = pl.Series(name, values, pl.String)
    if kinds == {"number"}:
        whole = text.cast(pl.Int64, strict=False)
        exact = whole.null_count() == text.null_count()
        return whole if exact else text.cast(pl.Float64)
    if kinds == {"truth"}:
        return text == "TRUE"
    if kinds == {"date"}:
        days = text.str.len_chars().max() == len("2020-01-01")
        return text.str.to_date() if days else text.str.to_datetime()
    return text


def _workbook(book: zipfile.ZipFile) -> tuple[list[str], list[bool], datetime, str]:
    """Return shared texts, which styles are dates, day 0, and where the sheet is."""
    root = ElementTree.fromstring(book.read("xl/workbook.xml"))
    key = root.findall("a:sheets/a:sheet", _IN)[0].attrib[_ID]
    links = ElementTree.fromstring(book.read("xl/_rels/workbook.xml.rels"))
    targets = {x.attrib["Id"]: x.attrib["Target"] for x in links}
    sheet = targets[key].lstrip("/").removeprefix("xl/")
    about = root.find("a:workbookPr", _IN)
    old = about is not None and about.get("date1904") in ("1", "true")
    epoch = datetime(1904, 1, 1) if old else datetime(1899, 12, 30)
    texts, is_date = [], []
    if "xl/sharedStrings.xml" in book.namelist():
        shared = ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
        texts = [_text(each) for each in shared.iterfind("a:si", _IN)]
    if "xl/styles.xml" in book.namelist():
        styles = ElementTree.fromstring(book.read("xl/styles.xml"))
        own = {
            int(x.attrib["numFmtId"]): re.sub(
                r'"[^"]*"|\[[^\]]*\]|\\.', "", x.attrib["formatCode"]
            )
            for x in styles.iterfind("a:numFmts/a:numFmt", _IN)
        }
        for each in styles.iterfind("a:cellXfs/a:xf", _IN):
            number = int(each.get("numFmtId", 0))
            code = own.get(number, "")
            is_date.append(number in _DATES or bool(re.search("[ymdhs]", code.lower())))
    return texts, is_date, epoch, f"xl/{sheet}"


def _rows(
    content: Any, texts: list[str], is_date: list[bool], epoch: datetime
) -> Iterator[tuple[int, dict[int, tuple[str, str]]]]:
    """Yield the numbers of rows that hold something, and their cells by column."""
    number, seen = 0, 0
    for _, row in ElementTree.iterparse(content):
        if row.tag != f"{_TAG}row":
            continue
        number = int(row.get("r", number + 1))
        column, cells = -1, {}
        for cell in row.iterfind("a:c", _IN):
            column += 1
            if place := re.match("[A-Z]{1,3}", cell.get("r", "")):
                column = -1
                for letter in place[0]:
                    column = 26 * (column + 1) + ord(letter) - ord("A")
            found = _cell(cell, texts, is_date, epoch)
            if found is not None:
                cells[column] = found
        if number > MOST_ROWS or (seen := seen + len(cells)) > MOST_CELLS:
            refuse("its first sheet has too many cells.")
        if cells:
            yield number, cells
        row.clear()


def _cell(
    cell: Any, texts: list[str], is_date: list[bool], epoch: datetime
) -> tuple[str, str] | None:
    """Return the kind and the text of a cell, if there is something in it."""
    kind, value = cell.get("t", "n"), cell.findtext("a:v", None, _IN)
    if kind == "inlineStr":
        inline = cell.find("a:is", _IN)
        value = None if inline is None else _text(inline)
    if not value:
        return None
    if kind == "s":
        text = texts[int(value)]
        return ("text", text) if text else None
    if kind == "b":
        return "truth", "TRUE" if value == "1" else "FALSE"
    if kind == "d":
        return "date", value
    style = int(cell.get("s", 0))
    if kind == "n" and style < len(is_date) and is_date[style]:
        moment = epoch + timedelta(seconds=round(86400 * float(value)))
        return "date", moment.isoformat().removesuffix("T00:00:00")
    return ("number" if kind == "n" else "text"), value


def _text(item: Any) -> str:
    """Return the text of an item, which may have parts in several fonts."""
    parts = [
        x.text for x in (*item.iterfind("a:t", _IN), *item.iterfind("a:r/a:t", _IN))
    ]
    return "".join(filter(None, parts))


def write_sheet(lazy: pl.LazyFrame, part: Path, path: str) -> None:
    """Write a workbook of one sheet, in which text is text, whatever it looks like."""
    from xlsxwriter import Workbook  # type: ignore[import-untyped]

    table = lazy.collect()
    if table.height >= MOST_ROWS:
        refuse(f"{path}: a sheet has room for {MOST_ROWS:,} rows. Write .parquet.")
    how = {"constant_memory": True, "default_date_format": "yyyy-mm-dd"}
    how |= dict.fromkeys(("strings_to_formulas", "strings_to_urls"), False)
    with Workbook(part, how) as book:
        sheet = book.add_worksheet()
        for number, row in enumerate([table.columns, *table.rows()]):
            sheet.write_row(number, 0, row)
