"""Tables in files: every format, letter by letter, and what is wrong with a file."""

import datetime
import gzip
import io
import json
import pickle
import re
import time
import zipfile
from pathlib import Path

import numpy as np
import openpyxl
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sigmascale.cli.file_formats import PLACE, read, write
from sigmascale.cli.input_table import preview
from sigmascale.cli.options import Reading

HEADER = "E,u,mass"
ROWS = [
    (f"{(i % 7 - 3) / 10}", f"{0.1 + i % 5 / 10}", f"{i * 7 % 11}") for i in range(40)
]


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def text(header=HEADER, rows=ROWS, separator=",", end="\n"):
    return "".join(x + end for x in (header, *(separator.join(row) for row in rows)))


def csv(*arguments, encoding="utf-8", **options):
    return "a.csv", text(*arguments, **options).encode(encoding)


def cell(column, value, row=16, encoding="utf-8"):
    """Return the good table with another value in one cell."""
    rows = [list(each) for each in ROWS]
    rows[row][column] = value
    return csv(HEADER, rows, encoding=encoding)


def column(position, value):
    """Return the good table with one value in all of a column."""
    rows = [tuple(value if j == position else x for j, x in enumerate(r)) for r in ROWS]
    return csv(HEADER, rows)


def written(frame, kind):
    buffer = io.BytesIO()
    getattr(frame, f"write_{kind}")(buffer)
    return buffer.getvalue()


def sheet(rows, top=1, left=1):
    """Return a workbook whose first sheet has these rows at a place."""
    book, buffer = openpyxl.Workbook(), io.BytesIO()
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            if value is not None:
                book.active.cell(top + i, left + j).value = value
    book.save(buffer)
    return "a.xlsx", buffer.getvalue()


def parquet(**columns):
    return "a.parquet", written(FRAME.with_columns(**columns), "parquet")


def no_workbook():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return "a.xlsx", buffer.getvalue()


GOOD = text().encode()
FRAME = pl.read_csv(GOOD)
PARQUET, ARROW = written(FRAME, "parquet"), written(FRAME, "ipc")
LINE = b'{"E":0.1,"u":1}\n'
NUMBERS = [[float(x) for x in row] for row in ROWS]
# What is wrong with them is in the uncertainties or in the whole file, so that every
# command refuses these: what the message must say.
BROKEN = {
    "semicolons": (csv("E;u;mass", separator=";"), "--separator ';'"),
    "tabs": (csv("E\tu\tmass", separator="\t"), r"--separator \$'\\t'"),
    "spaces": (csv("E u mass", separator=" "), "'?E u mass'?"),
    "no header": (("a.csv", GOOD.split(b"\n", 1)[1]), "-0.3.*0.1"),
    "a comment first": (("a.csv", b"# mine\n" + GOOD), "'# mine'.*grep -v"),
    "commas in it": (("a.csv", b"# mine, k=2\n" + GOOD), "row 1 .*comment.*grep -v"),
    "units below the header": (
        ("a.csv", GOOD.replace(b"\n", b"\neV,eV,Da\n", 1)),
        "'u', row 1 .*'eV'",
    ),
    "a web page": (("a.csv", b"<!DOCTYPE html>\n<html>404</html>\n"), "DOCTYPE html"),
    "no uncertainty": (csv("E,sdv,mass"), "sdv"),
    "text in a number": (cell(1, "bad"), "'u', row 17 .*'bad'"),
    "a long text": (cell(1, "x" * 5000), "'u', row 17 .*'xxx"),
    "decimal comma": (cell(1, '"0,5"'), "row 17 .*--decimal ,"),
    "decimal commas": (
        csv("E;u;mass", [tuple(x.replace(".", ",") for x in r) for r in ROWS], ";"),
        "--separator ';'.*--decimal ,",
    ),
    "a unit in a cell": (cell(1, "0.5 eV"), "row 17 .*'0.5 eV'"),
    "negative": (cell(1, "-0.1"), "'u', row 17 .*-0.1.*negative"),
    "infinite": (cell(1, "inf"), "'u', row 17 .*inf"),
    "too large for a number": (cell(1, "1e999"), "row 17 .*infinite"),
    "all missing": (column(1, "NA"), "40 of 40 rows"),
    "header alone": (csv(HEADER, []), "'mass'.*no rows"),
    "header without an end": (("a.csv", HEADER.encode()), "no rows"),
    "empty": (("a.csv", b""), "empty"),
    "blank lines alone": (("a.csv", b"\n \n\n"), "empty"),
    "names twice": (csv("E,u,u"), "more than one .*'u'"),
    "a name for all columns": (csv("E,u,*"), r"'\*'.*Rename"),
    "names twice, quoted": (csv('E,u,"u"'), "more than one .*'u'"),
    "Latin-1 name": (csv("E,u,größe", encoding="latin-1"), "UTF-8"),
    "Latin-1 cell": (cell(2, "größe", encoding="latin-1"), "row 17 .*UTF-8"),
    "UTF-16": (csv(encoding="utf-16"), "UTF-16"),
    "UTF-16 without a mark": (csv(encoding="utf-16-le"), "UTF-16"),
    "zero bytes": (cell(2, "\0"), "no text"),
    "too many fields": (cell(2, "1,2"), "row 17 .*4 .* header .*3"),
    "a cut line": (("a.csv", GOOD[: GOOD.rindex(b",0.")]), "row 40 .*1 .* header .*3"),
    "an open quote": (cell(2, '"oops'), "row 17.* quote"),
    "a quote within": (cell(2, 'oo"ps'), "row 17.* quote"),
    "an open quote in the header": (csv('E,u,"mass'), "quote"),
    "lines of an old Mac": (csv(end="\r"), "carriage returns"),
    "cut gzip": (("a.csv.gz", gzip.compress(GOOD)[:-20]), "unpacked"),
    "damaged gzip": (("a.csv.gz", gzip.compress(GOOD)[:30] + bytes(99)), "unpacked"),
    "gzip of nothing": (("a.csv.gz", gzip.compress(b"")), "empty"),
    "cut Parquet": (("a.parquet", PARQUET[:-30]), "PARQUET"),
    "damaged Parquet": (
        ("a.parquet", PARQUET[:40] + bytes(200) + PARQUET[240:]),
        "PARQUET",
    ),
    "CSV called Parquet": (("a.parquet", GOOD), "PARQUET"),
    "Parquet called CSV": (("a.csv", PARQUET), "no text"),
    "cut Feather": (("a.feather", ARROW[:-30]), "IPC"),
    "dates": (parquet(u=pl.date(2020, 1, 1)), "'u' .*numbers.*Date"),
    "truth values": (parquet(u=pl.lit(True)), "'u' .*numbers.*Boolean"),
    "lists": (parquet(u=pl.concat_list("E", "u")), "'u' .*numbers.*List"),
    "no values at all": (parquet(u=pl.lit(None)), "40 of 40 rows"),
    "a pickle": (("a.pkl", pickle.dumps([1])), "no text"),
    "nested JSON": (("a.jsonl", 40 * b'{"E":1,"u":{"a":1}}\n'), "'u' .*Struct"),
    "a JSON array": (("a.json", b'[{"E":1,"u":2}]'), "row 1 .*object"),
    "broken JSON": (("a.jsonl", 9 * LINE + b'{"E":1,'), "row 10"),
    "a key twice": (
        ("a.jsonl", 9 * LINE + b'{"u":1,"E":1,"u":2}\n'),
        "row 10.*'u'.*twice",
    ),
    "true in JSON": (
        ("a.jsonl", 40 * LINE + b'{"E":1,"u":true}\n'),
        "'u', row 41.*True",
    ),
    "text in JSON": (
        ("a.jsonl", 40 * LINE + b'{"E":1,"u":"x"}\n'),
        "'u', row 41 .*'x'",
    ),
    "no workbook": (no_workbook(), "EXCEL"),
    "CSV called Excel": (("a.xlsx", GOOD), "EXCEL"),
    "an empty sheet": (sheet([]), "sheet is empty"),
    "a sheet without rows": (sheet([["E", "u"]]), "no rows"),
    "TRUE among numbers": (
        sheet([["E", "u", "m"], *NUMBERS[:9], [0.1, True]], 3, 2),
        "'u', row 13 .*sheet.*'TRUE'",
    ),
    "text among the numbers of a sheet": (
        sheet([["E", "u", "m"], *NUMBERS[:9], [0.1, "bad"]]),
        "'u', row 11 .*sheet.*'bad'",
    ),
    "names twice in a sheet": (
        sheet([["E", "u", "u"], *NUMBERS]),
        "more than one .*'u'",
    ),
    "a cell beside the sheet's columns": (
        sheet([["E", "u"], *[x[:2] for x in NUMBERS], [1, 2, 3]]),
        "row 42 .*sheet",
    ),
}
# These can be recalibrated, but they cannot be judged or learned from.
BROKEN_ERRORS = {
    "no error": (csv("thing,u,mass"), "error"),
    "text in an error": (cell(0, "bad"), "'E', row 17 .*'bad'"),
    "an infinite error": (cell(0, "-Infinity"), "'E', row 17 .*-Inf"),
    "one row": (csv(HEADER, ROWS[:1]), "1 row .*too few"),
    "four rows": (csv(HEADER, ROWS[:4]), "4 rows .*too few"),
    "no uncertainty but 0": (column(1, "0"), "'u', row 1 .*positive.* 39 more"),
    "not a number": (cell(1, "NaN"), "1 of 40 rows .*'u' 1.*--drop-missing"),
    "missing": (cell(1, ""), "1 of 40 rows .*'u' 1.*--drop-missing"),
    "text in a feature": (cell(2, "bad"), "'mass', row 17 .*'bad'.*--label mass"),
    "lacking in JSON": (("a.jsonl", 40 * LINE + b'{"E":1}\n'), "1 of 41 rows"),
    "blank lines between": (
        ("a.csv", GOOD.replace(b"\n", b"\n\n")),
        "40 of 80 rows .*'E' 40",
    ),
    "blank rows in a sheet": (
        sheet([["E", "u"], *[x[:2] for x in NUMBERS], [], [], [0.1, 0.2]]),
        "2 of 43 rows .*'E' 2.*--drop-missing",
    ),
}


@pytest.fixture(scope="module")
def recalibrator(tmp_path_factory, sigmascale):
    folder = tmp_path_factory.mktemp("fitted")
    (folder / "calibration.csv").write_bytes(GOOD)
    path = folder / "linear.json"
    done = sigmascale(
        "fit", folder / "calibration.csv", "--scaling", "linear", "-o", path
    )
    assert done.code == 0, done.err
    return path


def commands(file, recalibrator, features):
    return {
        "check": ("check", file, *features, "--json"),
        "check of more than fits": ("check", file, *features, "--most", "7"),
        "fit": ("fit", file, *features, "--scaling", "linear", "-o", "out.json"),
        "apply": ("apply", recalibrator, file, "-o", "out.csv"),
        "apply to more than fits": (
            *("apply", recalibrator, file, "-o", "out.csv"),
            *("--most", "7"),
        ),
    }


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def refused(done, match):
    """Assert that a command said in one line what is wrong, and nothing else."""
    assert done.code == 2, done
    assert done.out == "" or json.loads(done.out)["error"]["exit_code"] == 2
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1, done.err
    assert len(done.err) < 500
    assert re.search(match, done.err), done.err


@pytest.mark.parametrize("name", [*BROKEN, *BROKEN_ERRORS])
def test_a_broken_file_is_refused_in_one_line_and_nothing_is_written(
    name, tmp_path, sigmascale, recalibrator
):
    (file, content), match = (BROKEN | BROKEN_ERRORS)[name]
    (tmp_path / file).write_bytes(content)
    old = {f"out.{ending}": b"old" for ending in ("json", "csv")}
    for each, was in old.items():
        (tmp_path / each).write_bytes(was)
    feature = name == "text in a feature"
    features = ["--feature", "mass"] if feature else ["--all-features"]
    for run, arguments in commands(file, recalibrator, features).items():
        if name in BROKEN_ERRORS and run.startswith("apply"):
            continue
        unlike = name in ("spaces", "no header", "a web page", "no uncertainty")
        words = "'u'" if unlike and run.startswith("apply") else match
        done = sigmascale(*arguments)
        refused(done, words)
        assert file in done.err
    assert contents(tmp_path) == {file: content, **old}


UNUSUAL = {
    "BOM": ("a.csv", b"\xef\xbb\xbf" + GOOD),
    "BOM and quotes": ("a.csv", b'\xef\xbb\xbf"E","u","mass"' + GOOD[len(HEADER) :]),
    "Windows": ("a.csv", GOOD.replace(b"\n", b"\r\n")),
    "blank lines": ("a.csv", b"\n\n" + GOOD + b"\n\r\n"),
    "no last line end": ("a.csv", GOOD.rstrip(b"\n")),
    "spaces": ("a.csv", GOOD.replace(b",", b" , ")),
    "not gzip, whatever its name": ("a.csv.gz", GOOD),
    "gzip, whatever its name": ("a.csv", gzip.compress(GOOD)),
    "tabs": ("a.txt", GOOD.replace(b",", b"\t")),
    "a name with brackets": ("data[1].csv", GOOD),
    "Parquet with brackets": ("data[1].parquet", PARQUET),
    "Arrow with brackets": ("data*.feather", ARROW),
    "lines of JSON": ("[1].jsonl", written(FRAME, "ndjson")),
    "a sheet": sheet([HEADER.split(","), *NUMBERS], 3, 2),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_what_is_merely_unusual_gives_the_same_numbers(
    name, tmp_path, sigmascale, recalibrator
):
    file, content = UNUSUAL[name]
    (tmp_path / "plain.csv").write_bytes(GOOD)
    (tmp_path / file).write_bytes(content)
    options = ["--uncertainty", " u "] if name == "spaces" else []
    for (source, named), target in (
        (("plain.csv", []), "x.csv"),
        ((file, options), "y.csv"),
    ):
        done = sigmascale("apply", recalibrator, source, "-o", target, *named)
        assert (done.code, done.err) == (0, "")
    x, y = (pl.read_csv(tmp_path / each) for each in ("x.csv", "y.csv"))
    assert x.height == y.height == 40
    assert x[:, 3].to_list() == y[:, 3].to_list()


# -- letter by letter ------------------------------------------------------------------

CELL = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=5)


@given(
    names=st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters='\0\r\n"'), max_size=4),
        min_size=2,
        max_size=4,
        unique=True,
    ),
    data=st.data(),
)
@example(names=["a", ""], data=None)
def test_every_cell_of_a_csv_file_comes_back_as_it_was(names, data, tmp_path_factory):
    names = [x for x in names if x.strip() and x != PLACE] or ["a", "b"]
    names = ["a", *(x for x in names if x != "a")]
    rows = [["01"] * len(names)] * 3
    if data is not None:
        cells = st.lists(CELL, min_size=len(names), max_size=len(names))
        rows = data.draw(st.lists(cells, min_size=1, max_size=4))
    rows = [["x", *row[1:]] for row in rows]
    folder = tmp_path_factory.mktemp("cells")
    frame = pl.DataFrame(rows, schema=names, orient="row")
    frame.write_csv(folder / "a.csv")
    before = (folder / "a.csv").read_bytes()
    for most in (1, 10**6):
        lazy, kinds = read([str(folder / "a.csv")], None, most)
        write(lazy.drop(PLACE), str(folder / "b.csv"))
        assert kinds == {"csv"}
        assert (folder / "b.csv").read_bytes() == before


def test_every_format_is_written_and_read(tmp_path):
    frame = FRAME.with_columns(text=pl.lit("01"), empty=pl.lit(None, pl.String))
    day = frame.with_columns(day=pl.lit(datetime.date(2020, 2, 29)))
    for ending in (
        "csv",
        "tsv",
        "parquet",
        "feather",
        "jsonl",
        "xlsx",
        "csv.gz",
        "jsonl.gz",
    ):
        write(day.lazy(), f"o.{ending}")
        found = read([f"o.{ending}"], None, 10**6)[0].collect()
        assert found.drop(PLACE).columns == day.columns
        assert found["text"].to_list() == ["01"] * 40
        assert found["empty"].null_count() == 40
        assert found["E"].cast(pl.Float64).to_list() == FRAME["E"].to_list()
        assert found["day"].cast(pl.String)[0] == "2020-02-29"
        first = 2 if ending == "xlsx" else 1
        assert found[PLACE].to_list() == list(range(first, 40 + first))
    assert (tmp_path / "o.csv.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_text_of_a_sheet_stays_text_whatever_it_looks_like():
    frame = pl.DataFrame({"t": ["=1+1", "01", None, "http://x"], "n": [1, 2, 3, 4]})
    write(frame.lazy(), "o.xlsx")
    assert read(["o.xlsx"], None, 9)[0].drop(PLACE).collect().equals(frame)
    with pytest.raises(ValueError, match=r"o\.xlsx.*place"):
        write(pl.LazyFrame({"t": ["\x01"]}), "o.xlsx")


def test_a_sheet_keeps_dates_truth_values_and_exact_numbers():
    content = sheet(
        [
            ["d", "t", "x", "when", "mixed"],
            [datetime.datetime(2020, 1, 1), True, 1e-17, None, 1],
            [
                datetime.datetime(2020, 1, 2),
                False,
                3,
                datetime.datetime(2020, 1, 1, 6),
                "n/a",
            ],
        ]
    )[1]
    Path("a.xlsx").write_bytes(content)
    found = read(["a.xlsx"], None, 9)[0].collect()
    assert found["d"].dtype == pl.Date
    assert found["t"].to_list() == [True, False]
    assert found["x"].to_list() == [1e-17, 3.0]
    assert found["when"][1].hour == 6
    assert found["mixed"].to_list() == ["1", "n/a"]


def test_a_sheet_that_claims_billions_of_cells_is_refused(sigmascale):
    header = [f"c{i}" for i in range(16_384)]
    header[:2] = ["E", "u"]
    book = openpyxl.Workbook()
    book.active.append(header)
    book.active.cell(1_048_576, 2).value = 1.0
    book.save("a.xlsx")
    refused(sigmascale("check", "a.xlsx"), r"a\.xlsx.*cells")


# -- several files, streams, outputs ---------------------------------------------------


def test_files_are_one_table_and_a_row_is_told_with_its_file(sigmascale, tmp_path):
    (tmp_path / "a.csv").write_bytes(GOOD)
    (tmp_path / "b.parquet").write_bytes(PARQUET)
    FRAME.select("mass", "E", "u").write_csv("c.csv")
    done = sigmascale("check", "a.csv", "c.csv", "--json")
    assert json.loads(done.out)["data"]["rows"] == 80
    assert json.loads(done.out)["data"]["files"] == ["a.csv", "c.csv"]
    (tmp_path / "bad.csv").write_bytes(cell(1, "bad")[1])
    refused(sigmascale("check", "a.csv", "bad.csv"), r"'u', row 17 of bad\.csv .*'bad'")
    FRAME.rename({"mass": "m"}).write_csv("other.csv")
    done = sigmascale("check", "a.csv", "other.csv")
    refused(done, r"other\.csv.*lacks 'mass'.*also has 'm'")
    refused(sigmascale("check", "a.csv", "b.parquet"), "types in")
    refused(sigmascale("check", "a.csv", "./a.csv"), "twice")
    refused(sigmascale("check", "nowhere.csv"), r"nowhere\.csv: No such file")
    (tmp_path / "folder").mkdir()
    refused(sigmascale("check", "folder"), "folder: is a folder")


def test_whole_numbers_in_one_file_and_real_ones_in_another_are_one_table(sigmascale):
    FRAME.with_columns(mass=pl.lit(1)).write_parquet("a.parquet")
    FRAME.with_columns(mass=pl.lit(1.5)).write_parquet("b.parquet")
    done = sigmascale("check", "a.parquet", "b.parquet", "--feature", "mass", "--json")
    assert json.loads(done.out)["data"]["numbers"] == ["mass"]


def test_standard_input_may_hold_any_format(sigmascale):
    sheets = UNUSUAL["a sheet"][1]
    lines = written(FRAME, "ndjson")
    told = set()
    for content in (GOOD, PARQUET, ARROW, lines, sheets, gzip.compress(GOOD)):
        done = sigmascale("check", "-", "--json", stdin=content)
        assert done.code in (0, 1, 4), done.err
        told.add(json.loads(done.out)["headline"])
    assert len(told) == 1
    for content in (b"", b"\n\n", HEADER.encode(), b"\x1f\x8b\x08"):
        done = sigmascale("check", "-", stdin=content)
        refused(done, "^error: standard input: .*(empty|no rows|unpacked)")


@pytest.mark.parametrize(
    ("output", "match"),
    [
        ("good.csv/out.csv", "Not a directory|File exists"),
        ("folder.csv", r"folder\.csv: .*not a file"),
        ("out", "out: .*ending"),
        ("out.parquet.gz", "ending"),
        ("out.txt", "ending"),
        ("./good.csv", "is what is read"),
        ("", "empty"),
    ],
)
def test_an_output_that_cannot_be_is_refused(
    output, match, tmp_path, sigmascale, recalibrator
):
    (tmp_path / "good.csv").write_bytes(GOOD)
    (tmp_path / "folder.csv").mkdir()
    refused(sigmascale("apply", recalibrator, "good.csv", "-o", output), match)
    assert contents(tmp_path) == {"good.csv": GOOD}


def test_types_that_a_format_has_no_place_for_are_refused(tmp_path):
    frame = FRAME.with_columns(d=pl.duration(seconds=1)).lazy()
    for ending in ("csv", "xlsx"):
        with pytest.raises(ValueError, match=r"'d'.*parquet"):
            write(frame, f"o.{ending}")
    write(frame, "o.parquet")
    assert [x.name for x in tmp_path.iterdir()] == ["o.parquet"]


def test_what_is_in_a_file_is_told_to_those_who_choose_columns(tmp_path):
    frame = FRAME.with_columns(kind=pl.lit("a"), mass=pl.lit("n/a"))
    frame.write_csv("a.csv")
    found = preview(["a.csv"], Reading())
    columns = {x["name"]: x for x in found["columns"]}
    assert found["rows"] == 40
    assert columns["u"]["kind"] == "number"
    assert columns["u"]["role"] == "uncertainty"
    assert columns["E"]["role"] == "error"
    assert columns["kind"]["role"] is None  # one label
    assert columns["kind"]["first"][0] == "a"
    FRAME.with_columns(E=pl.Series([None, *FRAME["E"][1:]])).write_csv("b.csv")
    gaps = {x["name"]: x["missing"] for x in preview(["b.csv"], Reading())["columns"]}
    assert gaps == {"E": 1, "u": 0, "mass": 0}


# -- sheets that show something else than they hold ------------------------------------


def changed_sheet(change, name="s.xlsx"):
    """Write a workbook whose sheet holds rows and labels, after a change."""
    book = openpyxl.Workbook()
    page = book.active
    page.append(["E", "u", "kind"])
    for i in range(40):
        page.append([(-1) ** i * 0.5, 0.5, "a" if i < 20 else "b"])
    change(book, page)
    book.save(name)
    return name


def test_cells_that_are_merged_below_the_names_are_refused(
    sigmascale, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    check = ("check", "s.xlsx", "--label", "kind")
    changed_sheet(
        lambda book, page: (page.merge_cells("C2:C21"), page.merge_cells("C22:C41"))
    )
    refused(sigmascale(*check), "C22:C41, C2:C21 are merged.*Unmerge")
    changed_sheet(lambda book, page: page.merge_cells("C1:C2"))
    refused(sigmascale(*check), "C1:C2 are merged")
    changed_sheet(lambda book, page: page.merge_cells("C1:D1"))
    assert sigmascale(*check).code in (0, 1, 4)


def test_a_hidden_sheet_that_is_read_is_named(sigmascale, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for state, is_told in (("hidden", True), ("veryHidden", True), ("visible", False)):

        def hide(book, page, state=state):
            page.title = "drafts"
            page.sheet_state = state
            book.create_sheet("results")

        changed_sheet(hide)
        done = sigmascale("check", "s.xlsx", "--label", "kind")
        assert done.says("s.xlsx: the first sheet, 'drafts',.*hidden") is is_told


# -- very many columns -----------------------------------------------------------------


def seconds_of_check(sigmascale, n_columns):
    """Return how long a table with so many columns that nobody asks for takes."""
    names = [f"{kind}_{i}" for i in range(n_columns // 2) for kind in ("bit", "lo")]
    rows = [f"{(-1) ** i * 0.5},0.5{',1,0' * (n_columns // 2)}" for i in range(20)]
    Path("wide.csv").write_text("\n".join([",".join(["E", "u", *names]), *rows]))
    start = time.process_time()
    done = sigmascale("check", "wide.csv", "--json")
    assert done.code in (0, 1, 4), done.err
    assert json.loads(done.out)["data"]["rows"] == 20
    return time.process_time() - start


@pytest.mark.skipif(
    int(pl.__version__.split(".")[0]) < 2,
    reason="Polars before 2.0 plans columns in a time that grows with their square",
)
def test_columns_that_nobody_asks_for_cost_their_number_and_no_more(
    sigmascale, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    seconds_of_check(sigmascale, 10)  # modules are loaded
    fixed = seconds_of_check(sigmascale, 10)
    few = seconds_of_check(sigmascale, 1000) - fixed
    # linear is 5, quadratic 25
    assert seconds_of_check(sigmascale, 5000) - fixed < 11 * few


# -- values that are changed where they are read ---------------------------------------


@pytest.mark.parametrize("most", [1_000_000, 1000, 70])
def test_what_is_changed_is_told_once_for_all_rows_with_rows_of_the_file(
    most, sigmascale, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    n = 4000
    rng = np.random.default_rng(0)
    u = rng.lognormal(size=n)
    error = u * rng.normal(size=n)
    low, high = -1.645 * u, 1.645 * u
    crossing = np.arange(2243, n, 60)
    low[crossing], high[crossing] = high[crossing], low[crossing]
    small = u < 0.2
    frame = pl.DataFrame({"y": error, "q05": low, "q95": high, "u": u, "m": error * 0})
    frame.write_csv("t.csv")
    pair = ("--reference", "y", "--prediction", "m")
    interval = ("--interval", "q05", "--interval", "q95", "--interval-coverage", "0.9")
    told = {
        interval: rf"cross in {crossing.size} of {n} rows \(first at row 2244\)",
        ("--uncertainty", "u", "--min-std", "0.2"): (
            rf"\b{small.sum()} of {n} uncertainties were below 0\.2"
        ),
    }
    fit = ("--scaling", "linear", "-o", "r.json")
    watch = ("watch", "r.json", "t.csv", "--most", most)
    for columns, match in told.items():
        check = ("check", "t.csv", *pair, *columns, "--most", most)
        done = sigmascale(*check)
        assert len(re.findall(match, done.err)) == 1, done.err
        assert done.err.count("cross") + done.err.count("below") == 1
        assert sigmascale("fit", "t.csv", *pair, *columns, *fit).code == 0
        done = sigmascale(*watch)
        assert len(re.findall(match, done.err)) == 1, done.err
        assert done.err.count("cross") + done.err.count("below") == 1


def test_rows_of_a_sample_are_named_as_the_file_has_them(
    sigmascale, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    u = rng.lognormal(size=5000)
    error = u * rng.normal(size=5000)
    error[4000:4010] = 1e4 * u[4000:4010]
    pl.DataFrame({"E": error, "u": u}).write_csv("t.csv")
    done = sigmascale("check", "t.csv", "--most", "2500")
    words = " ".join(done.out.split())
    found = re.search(r"Largest \|z\|: rows (\d+), (\d+), (\d+)", words)
    named = [int(row) for row in found.groups()]
    assert all(4001 <= row <= 4010 for row in named)


# -- columns of ours beside those of the user ------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "xlsx"])
def test_columns_that_are_called_as_ours_are_kept(
    ending, sigmascale, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    u = rng.lognormal(size=60)
    pred = rng.normal(size=60)
    table = {"y": pred + u + u * rng.normal(size=60), "p": pred, "u": u}
    ours = [
        f"{name} {PLACE}{more}" for name in "pu" for more in ("", "_", "_recalibrated")
    ]
    ours += ["new columns", "New columns", "hash of the row"]
    for i, name in enumerate(ours):
        table[name] = np.arange(60) + i
    write(pl.LazyFrame(table), f"t.{ending}")
    columns = ("--uncertainty", "u", "--prediction", "p", "--reference", "y")
    fit = ("--scaling", "linear", "--bias", "constant", "-o", "r.json")
    assert sigmascale("fit", f"t.{ending}", *columns, *fit).code == 0
    apply = ("apply", "r.json", f"t.{ending}", "-o")
    for most in (1000, 20):
        done = sigmascale(*apply, "o.parquet", "--most", most)
        assert done.code == 0, done.err
        found = pl.read_parquet("o.parquet")
        assert found.columns[: len(table)] == list(table)
        for i, name in enumerate(ours):
            assert found[name].to_list() == [k + i for k in range(60)], name
        assert len(found.columns) == len(table) + 4
    assert sigmascale("check", f"t.{ending}", *columns, "--most", 30).code in (0, 1, 4)


def test_two_new_columns_of_one_name_are_refused(sigmascale, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_bytes(GOOD)
    fit = ("--scaling", "linear", "--bias", "constant", "-o", "r.json")
    assert sigmascale("fit", "t.csv", *fit).code == 0
    for options in (
        ("--quantiles", "0.1,0.1"),
        ("--quantiles", "0.1234567,0.1234568"),
    ):
        done = sigmascale("apply", "r.json", "t.csv", "-o", "o.csv", *options)
        refused(done, "two new columns .*--quantiles")
