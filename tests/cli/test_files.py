import csv
import gzip
import io
import json
import os
import sys
import threading

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigmascale.cli.files import (
    UNTYPED,
    WRITTEN,
    format_of,
    read_file,
    read_files,
    write_table,
)
from sigmascale.cli.table import Columns
from sigmascale.exceptions import InvalidInputError
from sigmascale.roles import listed

FRAME = pl.DataFrame(
    {
        "u": [0.1, 1e-300, 1 / 3],
        "id": ["007", "a,b", 'say "ü"\n'],
        "n": [1, -2, 3],
        "💡 <b>": ["", " x ", "NA"],
    }
)
# No text file can tell a line end in the last place, a lone "\r" from a line end, or
# text from the mark that stands for nothing at all.
CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8)


def read_typed(path):
    """Return a table as it would be written to a format that has types."""
    frame, kind = read_file(path)
    return Columns(frame).with_types([], []) if kind in UNTYPED else frame


def read_table(path, separator=None):
    """Return the table of one file."""
    return read_files([path], separator)[0]


def write_with_python(path, header, rows, **style):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, **style).writerows([header, *rows])


def read_with_python(path, **style):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, **style))


@given(
    st.lists(st.tuples(st.just("0.10"), CELLS, CELLS), min_size=1, max_size=5),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_every_text_comes_back_as_it_was(
    tmp_path_factory, rows, separator, quoting, end
):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    style = {"delimiter": separator, "quoting": quoting, "lineterminator": end}
    write_with_python(path, ["u", "x", "y"], rows, **style)
    frame = read_table(str(path), separator=separator)
    assert frame.select(pl.all().fill_null("")).rows() == rows
    write_table(frame, str(path))
    assert read_with_python(path) == [["u", "x", "y"], *map(list, rows)]


def test_a_plain_csv_file_is_written_byte_for_byte(tmp_path):
    content = 'u,id,name\n0.10,007,"a,b"\n1e-3,,"say ""x"""\n+1.50,-0, x \n'
    (tmp_path / "a.csv").write_text(content)
    write_table(read_table(str(tmp_path / "a.csv")), str(tmp_path / "b.csv"))
    assert (tmp_path / "b.csv").read_text() == content


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("ending", WRITTEN)
def test_every_format_is_written_and_read(ending, packed, tmp_path):
    path = str(tmp_path / f"a{ending.upper()}{packed}")
    if packed and WRITTEN[ending] in ("parquet", "arrow"):
        with pytest.raises(InvalidInputError, match="says no format"):
            write_table(FRAME, path)
        assert not list(tmp_path.iterdir())
        return
    write_table(FRAME, path)
    found = read_typed(path)
    if ending in (".csv", ".tsv", ".tab"):  # which read an empty text as a missing one
        found = found.with_columns(pl.col("💡 <b>").fill_null(""))
    assert found.equals(FRAME)
    assert found.schema == FRAME.schema


def test_the_same_table_gives_the_same_packed_bytes(tmp_path, monkeypatch):
    write_table(FRAME, str(tmp_path / "a.csv.gz"))
    monkeypatch.setattr("time.time", lambda: 1e9)
    write_table(FRAME, str(tmp_path / "b.csv.gz"))
    a, b = ((tmp_path / f"{name}.csv.gz").read_bytes() for name in "ab")
    assert a == b
    assert gzip.decompress(a).startswith(b"u,id")


@pytest.mark.parametrize(
    "content", ["csv", "tsv", "csv.gz", "parquet", "arrow", "jsonl"]
)
def test_standard_input_may_hold_any_format(content, tmp_path, monkeypatch):
    path = tmp_path / f"a.{content}"
    write_table(FRAME, str(path))
    stdin = io.TextIOWrapper(io.BytesIO(path.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    found = read_typed("-")
    assert found["u"].to_list() == FRAME["u"].to_list()
    assert found["id"].to_list() == FRAME["id"].to_list()


def test_standard_output_is_csv(monkeypatch):
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", stdout)
    write_table(FRAME[:1], "-")
    assert stdout.buffer.getvalue().decode() == 'u,id,n,💡 <b>\n0.1,007,1,""\n'


def test_missing_values_survive_in_every_format(tmp_path):
    frame = pl.DataFrame({"u": [0.5, None, 2.5], "t": ["a", "x", None]})
    for ending in ("csv", "tsv", "parquet", "feather", "jsonl"):
        path = str(tmp_path / f"a.{ending}")
        write_table(frame, path)
        assert read_typed(path).equals(frame)


def test_no_row_is_lost_but_blank_lines_at_the_end(tmp_path):
    (tmp_path / "a.csv").write_text("u,x\n1,a\n,\n\n2,b\n,\n\n")
    assert read_table(str(tmp_path / "a.csv")).rows() == [
        ("1", "a"),
        (None, None),
        (None, None),
        ("2", "b"),
    ]


def test_the_first_bytes_tell_a_format_that_the_name_does_not(tmp_path):
    for content in ("csv", "tsv", "parquet", "arrow", "jsonl", "jsonl.gz"):
        write_table(FRAME.select("u", "n"), str(tmp_path / f"a.{content}"))
        data = (tmp_path / f"a.{content}").read_bytes()
        (tmp_path / "data").write_bytes(data)
        found = read_typed(str(tmp_path / "data"))
        assert found.equals(FRAME.select("u", "n"))


def test_json_with_one_object_a_line_is_read_whatever_its_ending(tmp_path):
    lines = [{"u": 1.5, "x": "a"}, {"u": 2, "x": None}]
    (tmp_path / "a.json").write_text("\n".join(map(json.dumps, lines)))
    assert read_table(str(tmp_path / "a.json")).to_dicts() == lines


def test_a_column_without_a_name_is_kept(tmp_path):
    """pandas writes its index so."""
    (tmp_path / "a.csv").write_text(",E,u\n0,0.5,1\n1,0.25,2\n")
    frame = read_table(str(tmp_path / "a.csv"))
    write_table(frame, str(tmp_path / "b.csv"))
    assert (tmp_path / "b.csv").read_text() == '"",E,u\n0,0.5,1\n1,0.25,2\n'


def test_a_table_that_a_format_cannot_hold_is_refused_and_nothing_is_left(tmp_path):
    frame = pl.DataFrame({"u": [[1.0, 2.0]]})
    with pytest.raises(InvalidInputError, match="cannot be written as CSV"):
        write_table(frame, str(tmp_path / "a.csv"))
    assert not list(tmp_path.iterdir())


def test_the_ending_must_tell_what_to_write():
    assert format_of("-") == "csv"
    assert format_of("A.B.Parquet") == "parquet"
    for name in ("out", "out.txt", "out.xlsx", ".csv.bz2"):
        with pytest.raises(InvalidInputError, match="says no format"):
            format_of(name)


def test_many_and_long_names_are_cut_short_in_messages():
    assert listed(["a\n", "b"]) == r"'a\n', 'b'"
    assert listed([str(i) for i in range(20)]).endswith("'11' and 8 more")
    assert len(listed(["x" * 1000])) == 42


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes")
def test_a_pipe_is_read_once_and_whole(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    text = "u\n" + "0.5\n" * 100_000
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(text,))
    writer.start()
    assert read_table(str(tmp_path / "pipe")).height == 100_000
    writer.join()


@pytest.mark.parametrize(
    ("text", "row", "fields"),
    [
        ("u,x,y\n1,a,b\n2,c\n3,d,e\n", 2, 2),
        ("u,x,y\n1\n2,c,d\n", 1, 1),
        ('u,x,y\n1,"a\nb",\n2,c\n', 2, 2),  # rows are no lines
        ("u,x,y\n1,a,b\n2,c,d,e\n", 2, 4),
    ],
)
def test_a_row_with_too_few_or_too_many_fields_is_told(text, row, fields, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InvalidInputError, match=f"row {row} has {fields} fields.* 3"):
        read_file(str(tmp_path / "a.csv"))


def test_empty_fields_in_the_last_column_are_no_error(tmp_path):
    (tmp_path / "a.csv").write_text("u,x\n1,\n2,b\n3,\n")
    assert read_table(str(tmp_path / "a.csv"))["x"].to_list() == [None, "b", None]
