"""Labels, and all columns without a part, are what the file says, letter by letter."""

import csv
import json
from datetime import datetime
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigmascale.cli.files import read_files, write_table
from sigmascale.cli.table import Columns
from sigmascale.exceptions import InvalidInputError

# Texts that a reader might take for a number, or for another one of them.
TEXTS = [
    *("01", "007", "1", "1.0", "1.50", "1.5", "+1", "-0", "0", "1e5", "100000.0"),
    *("1_000", "0x10", " 1", "12345678901234567890", "NaN", "inf", "true", "True"),
    *("2020-01-01", "a,b", 'say "x"', "ü", "\x1b[31m"),
]
REPEATS = 12
FACTORS = np.arange(1.0, 1 + len(TEXTS))
TABLE = pl.DataFrame(
    {
        "E": np.outer(np.tile([1.0, -1.0], REPEATS // 2), FACTORS).ravel(),
        "u": np.ones(REPEATS * len(TEXTS)),
        "label": TEXTS * REPEATS,
        "id": [f"{i:05d}" for i in range(REPEATS * len(TEXTS))],
        "size": [str(i / 4) for i in range(REPEATS * len(TEXTS))],
        "code": TEXTS[::-1] * REPEATS,
    }
)
FORMATS = ["csv", "tsv.gz", "parquet", "feather", "jsonl"]
GROUP = ("--method", "category", "--label", "label")


def read_table(path):
    """Return the table of one file."""
    return read_files([path])[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, sigmascale):
    """The table in all formats, and a recalibrator from each of them."""
    folder = tmp_path_factory.mktemp("labels")
    for each in FORMATS:
        write_table(TABLE, str(folder / f"a.{each}"))
        fit = ("fit", folder / f"a.{each}", *GROUP, "-o", folder / f"{each}.json")
        assert sigmascale(*fit).code == 0
    return folder


@pytest.mark.parametrize(("source", "target"), [*product(FORMATS, FORMATS)])
def test_labels_and_other_columns_are_what_the_file_says(
    source, target, folder, tmp_path, sigmascale
):
    fitted = FORMATS[(FORMATS.index(source) + 1) % len(FORMATS)]  # elsewhere
    out = tmp_path / f"out.{target}"
    done = sigmascale(
        "apply", folder / f"{fitted}.json", folder / f"a.{source}", "-o", out
    )
    assert (done.code, done.err) == (0, "")
    found = read_table(str(out))
    factors = np.tile(FACTORS, REPEATS)
    recalibrated = found["u_recalibrated"].cast(pl.Float64)
    np.testing.assert_allclose(recalibrated, factors, rtol=1e-9)
    for name in ("label", "id", "size", "code"):
        assert found[name].cast(pl.String).equals(TABLE[name]), name
    if target not in ("csv", "tsv.gz"):
        assert found["u"].dtype == found["E"].dtype == pl.Float64


@pytest.mark.parametrize("source", FORMATS)
def test_check_and_conditions_take_labels_for_what_the_file_says(
    source, folder, sigmascale
):
    where = ("--where", "label == '01'", "--label", "code", "--json")
    done = sigmascale("check", folder / f"a.{source}", *where)
    assert json.loads(done.out)["data"]["rows"] == REPEATS


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
def test_labels_of_files_that_are_only_queried_are_those_of_memory(
    engine, folder, tmp_path, sigmascale
):
    path, scaler, out = (
        folder / "a.parquet",
        tmp_path / "s.json",
        tmp_path / "out.parquet",
    )
    fit = ("fit", path, *GROUP, "--engine", engine, "-o", scaler)
    assert sigmascale(*fit).code == 0
    for by, which in (("memory", engine), (engine, "memory")):
        used = scaler if by == engine else folder / "csv.json"
        apply = ("apply", used, path, "--engine", which, "-o", out)
        assert sigmascale(*apply).code == 0
        found = read_table(str(next(out.glob("*"))) if out.is_dir() else str(out))
        np.testing.assert_allclose(
            found["u_recalibrated"], np.tile(FACTORS, REPEATS), rtol=1e-9
        )
        assert found["label"].equals(TABLE["label"])
        if out.is_dir():
            for part in out.iterdir():
                part.unlink()
            out.rmdir()


@pytest.mark.parametrize("engine", ["memory", "polars", "duckdb", "dask"])
def test_whole_numbers_and_truth_values_are_labels_alike_for_every_engine(
    engine, tmp_path, sigmascale
):
    n_rows = 40
    table = pl.DataFrame(
        {
            "E": [1.0, -3.0] * (n_rows // 2),
            "u": np.ones(n_rows),
            "n": [1, 2] * (n_rows // 2),
            "flag": [True, False] * (n_rows // 2),
        }
    )
    table.write_csv(tmp_path / "a.csv")
    # a missing one elsewhere makes some readers take them for real numbers
    more = table.with_columns(n=pl.Series([None, *table["n"][1:]]))
    pl.concat([table, more]).write_parquet(tmp_path / "a.parquet")
    for name in ("n", "flag"):
        fit = ("fit", tmp_path / "a.csv", "--method", "category", "--label", name)
        assert sigmascale(*fit, "-o", tmp_path / "s.json").code == 0
        out = tmp_path / f"{name}.parquet"
        options = ("--engine", engine, "--drop-missing", "-o", out)
        done = sigmascale(
            "apply", tmp_path / "s.json", tmp_path / "a.parquet", *options
        )
        assert done.code == 0
        assert "not seen" not in done.err
        found = pl.read_parquet(out)
        expected = (
            found[name]
            .cast(pl.String)
            .replace_strict(
                {"1": 1.0, "2": 3.0, "true": 1.0, "false": 3.0}, return_dtype=pl.Float64
            )
        )
        np.testing.assert_allclose(found["u_recalibrated"], expected, rtol=1e-9)


def test_real_numbers_are_labels_only_where_they_are_written_as_in_memory(
    tmp_path, sigmascale
):
    table = pl.DataFrame(
        {"E": [1.0, -3.0] * 20, "u": [1.0] * 40, "x": [1e-5, 2.5] * 20}
    )
    table.write_parquet(tmp_path / "a.parquet")
    fit = ("fit", tmp_path / "a.parquet", "--method", "category", "--label", "x")
    for engine, code in (("memory", 0), ("polars", 0), ("duckdb", 2), ("dask", 2)):
        done = sigmascale(*fit, "--engine", engine, "-o", tmp_path / "s.json")
        assert done.code == code
        if code:
            assert done.says("`x` .*labels.*Float64")


NUMBER_LIKE = st.one_of(
    st.sampled_from(TEXTS),
    st.integers().map(str),
    st.floats().map(repr),
    st.from_regex(r"\A[-+]?[0-9]{1,4}(\.[0-9]{0,3})?(e-?[0-9]{1,2})?\Z"),
)


@pytest.mark.parametrize("engine", [(), ("--engine", "polars")])
@pytest.mark.parametrize("source", ["csv", "parquet", "jsonl"])
def test_whole_numbers_that_float64_rounds_are_labels_and_no_numbers(
    source, engine, tmp_path, sigmascale
):
    if engine and source != "parquet":
        pytest.skip("engines read Parquet files")
    whole = 2**60 + pl.int_range(TABLE.height, eager=True) % 4
    write_table(TABLE.select("E", "u", whole=whole), str(tmp_path / f"a.{source}"))
    fit = ("fit", tmp_path / f"a.{source}", *engine, "-o", tmp_path / "a.json")
    refused = sigmascale(*fit, "--method", "binwise", "--by", "whole", "--bins", "4")
    assert refused.code == 2
    assert "whole" in refused.err
    assert sigmascale(*fit, "--method", "category", "--label", "whole").code == 0
    assert f'"{2**60 + 1}"' in (tmp_path / "a.json").read_text()


@pytest.mark.parametrize("source", ["csv", "parquet", "feather", "jsonl"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_dates_with_a_time_are_labels_in_no_format(source, zone, tmp_path, sigmascale):
    days = pl.datetime_range(
        datetime(2024, 10, 26), datetime(2024, 10, 29), "12h", eager=True
    )
    at = pl.Series([days[i % 7] for i in range(TABLE.height)])
    table = TABLE.select("E", "u", day=at.dt.date(), at=at.dt.replace_time_zone(zone))
    write_table(table, str(tmp_path / f"a.{source}"))
    fit = ("fit", tmp_path / f"a.{source}", "--method", "category")
    refused = sigmascale(*fit, "--label", "at", "-o", tmp_path / "a.json")
    assert refused.code == 2
    assert "'at', row 1 (not counting the header)" in refused.err
    assert "is a date with a time" in refused.err
    assert sigmascale(*fit, "--label", "day", "-o", tmp_path / "a.json").code == 0
    assert '"2024-10-27"' in (tmp_path / "a.json").read_text()


@given(st.lists(NUMBER_LIKE, min_size=1, max_size=4), st.sampled_from(".,"))
def test_a_text_becomes_a_number_only_if_it_is_written_the_same(texts, decimal):
    frame = pl.DataFrame({"x": [text.replace(".", decimal) for text in texts]})
    found = Columns(frame, decimal, untyped=True).with_types([], [])["x"]
    again = found.cast(pl.String)
    if found.dtype.is_numeric():
        again = again.str.replace(".", decimal, literal=True)
    assert again.to_list() == frame["x"].to_list()


def test_numbers_become_numbers_and_those_of_the_fit_do_in_any_case():
    frame = pl.DataFrame(
        {
            "n": ["1", "-2"],
            "x": ["0.5", "1e-7"],
            "y": ["0.50", "NA"],
            "z": ["0.50", "?"],
        }
    )
    table = Columns(frame, untyped=True)
    assert table.with_types([], ["n"]).dtypes == [
        *(pl.String, pl.Float64, pl.String, pl.String)
    ]
    found = table.with_types(["y", "z", "none"], [])
    assert found.dtypes == [pl.Int64, pl.Float64, pl.Float64, pl.String]
    assert found["y"].to_list() == [0.5, None]


def test_columns_may_have_the_names_of_arguments(tmp_path, sigmascale):
    names = ["self", "exprs", "E", "u"]
    write_rows(tmp_path / "a.csv", [names, *[["01", "a", "1", "2"]] * 20])
    scaler, out = tmp_path / "s.json", tmp_path / "o.parquet"
    fit = ("fit", tmp_path / "a.csv", "--method", "temperature", "-o", scaler)
    assert sigmascale(*fit).code == 0
    apply = ("apply", scaler, tmp_path / "a.csv", "-o", out, "--name", "named_exprs")
    assert sigmascale(*apply).code == 0
    assert read_table(str(out)).columns == [*names, "named_exprs"]


# --- headers


def write_rows(path, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.mark.parametrize(
    "names",
    [
        ["E", "u", *(f"column {i}" for i in range(9000)), "u"],
        ["E", "u", "two\nlines", "u"],
        ["two\r\nlines", "E", "u", "two\r\nlines"],
        ["E", "u", 'a "quoted" name', 'a "quoted" name'],
    ],
    ids=["after 64 KiB", "after a line break", "of two lines", "with quotes"],
)
def test_a_name_that_occurs_twice_is_refused_wherever_it_is(names, tmp_path):
    write_rows(tmp_path / "a.csv", [names, ["1"] * len(names)])
    with pytest.raises(InvalidInputError, match="more than one"):
        read_table(str(tmp_path / "a.csv"))


@pytest.mark.parametrize("before", range(65_530, 65_540))
def test_a_character_may_lie_across_any_number_of_bytes(before, tmp_path):
    names = ["u", "x" * (before - 3) + "€", "y"]
    write_rows(tmp_path / "a.csv", [names, ["1", "2", "3"]])
    assert read_table(str(tmp_path / "a.csv")).columns == names


@pytest.mark.parametrize("header", ['u,"qu""ote",x', 'u,5" pipe,6" pipe', 'u,"""",x'])
def test_quotes_in_names_are_refused_with_the_name(header, tmp_path):
    (tmp_path / "a.csv").write_text(f"{header}\n1,2,3\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="a quote is part of the name"):
        read_table(str(tmp_path / "a.csv"))


NAMES = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters='\0\r"'), max_size=6),
    min_size=2,
    max_size=5,
    unique=True,
)


@given(NAMES)
def test_any_names_come_back(tmp_path_factory, names):
    path = tmp_path_factory.mktemp("names") / "a.csv"
    write_rows(path, [names, ["1"] * len(names), ["x"] * len(names)])
    frame = read_table(str(path))
    assert frame.columns == names
    assert frame.height == 2


def test_a_quote_that_hides_lines_is_told_with_its_line(tmp_path):
    (tmp_path / "a.csv").write_text('u,x\n1,a\n2,5" pipe\n3,b\n')
    with pytest.raises(InvalidInputError, match=r"row 2 .*quote"):
        read_table(str(tmp_path / "a.csv"))


# --- JSON lines


def read_lines(tmp_path, *lines):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return read_table(str(path))


@pytest.mark.parametrize(
    ("late", "dtype", "value"),
    [
        ('{"u": 1, "x": 2.5}', pl.Float64, 2.5),
        ('{"u": 1, "x": "01"}', pl.String, "01"),
        ('{"u": 1, "x": [1]}', pl.List(pl.Int64), [1]),
    ],
)
def test_a_key_may_come_late_in_json_lines(late, dtype, value, tmp_path):
    found = read_lines(tmp_path, *['{"u": 1}'] * 500, late)
    assert found["x"].dtype == dtype
    assert found["x"].to_list()[-2:] == [None, value]


@pytest.mark.parametrize(
    ("early", "late", "expected"),
    [
        ("1", "2.5", [1.0, 2.5]),
        ("1", '"a"', ["1", "a"]),
        ("null", "2.5", [None, 2.5]),
        ("true", '"a"', ["true", "a"]),
    ],
)
def test_values_may_be_of_another_kind_late_in_json_lines(
    early, late, expected, tmp_path
):
    found = read_lines(tmp_path, *[f'{{"x": {early}}}'] * 500, f'{{"x": {late}}}')
    assert found["x"].to_list()[-2:] == expected


@pytest.mark.parametrize(
    "broken", ['{"x": 1', "[1]", "1", '{"x": 1} {"x": 2}', "\ud800"]
)
def test_a_line_that_is_no_object_is_told_with_its_number(broken, tmp_path):
    path = tmp_path / "a.jsonl"
    lines = ["", '{"x": 1}', broken, '{"x": 2}']
    path.write_bytes("\n".join(lines).encode(errors="surrogatepass"))
    with pytest.raises(InvalidInputError, match=r"row 2 .*JSON"):
        read_table(str(path))


# --- whole numbers that float64 cannot hold


@pytest.mark.parametrize("source", FORMATS)
def test_differences_of_large_whole_numbers_are_exact(source, tmp_path, sigmascale):
    large = 2**53 + 1
    errors = np.resize([1, -1, 2, -2, 3, -3], 60)
    table = pl.DataFrame(
        {"R": large + 7 * np.arange(60) + errors, "V": large + 7 * np.arange(60)}
    )
    table = table.with_columns(u=pl.lit(2.0))
    path = tmp_path / f"a.{source}"
    write_table(table, str(path))
    fit = ("fit", path, "--method", "temperature", "-o", tmp_path / "s.json", "--json")
    factor = np.sqrt(np.mean(errors**2)) / 2
    engines = ["memory", "polars", "duckdb", "dask"] if source == "parquet" else [""]
    for engine in engines:
        done = sigmascale(*fit, *(("--engine", engine) if engine else ()))
        assert done.code == 0
        words = json.loads(done.out)["words"]
        assert f" {factor:.4g}." in words
