"""Several files as one table."""

import json
import os

import polars as pl
import pytest


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch, sigmascale):
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"E": [1.0, -1.0] * 10, "u": [1.0] * 20}).write_csv("fitted.csv")
    fit = ("fit", "fitted.csv", "--method", "temperature", "-o", "s.json")
    assert sigmascale(*fit).code == 0
    monkeypatch.chdir("data")


@pytest.fixture
def apply(sigmascale):
    def run(*files, output="../out.parquet", name="new"):
        return sigmascale("apply", "../s.json", *files, "-o", output, "--name", name)

    return run


@pytest.fixture
def read(apply):
    """Return the rows of files, as `apply` writes them."""

    def rows(*files):
        done = apply(*files)
        assert done.code == 0, done.err
        return pl.read_parquet("../out.parquet").drop("new")

    return rows


def write(name, **columns):
    """Write a table with uncertainties, whatever else is in it."""
    frame = pl.DataFrame(columns)
    if "u" not in columns:
        frame = frame.with_columns(u=pl.lit(1.0))
    frame.write_parquet(f"{name}.parquet")
    return frame


def test_files_patterns_and_folders_are_read_as_one_table(read):
    table = pl.DataFrame({"u": [1.0, 2.0, 3.0], "id": ["a", "b", "007"]})
    for i in range(3):
        table[i : i + 1].write_csv(f"{i}.csv")
        table[i : i + 1].write_parquet(f"{i}.parquet")
    table[:0].write_parquet("3.parquet")  # a part without rows
    for files in (
        *(["."], ["*.parquet"], ["0.parquet", "[123].parquet"]),
        *(["?.csv"], ["0.csv", "1.csv", "2.csv"]),
    ):
        assert read(*files).equals(table)
    assert read("1.parquet", "0.parquet")["id"].to_list() == ["b", "a"]


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow", "jsonl"])
def test_a_name_that_looks_like_a_pattern_is_a_name_first(ending, apply, read):
    names = ("run[1]", "run1", "run*")
    for u, name in enumerate(names, start=1):
        write("a", u=[u])
        assert apply("a.parquet", output=f"{name}.{ending}", name="old").code == 0
    for u, name in enumerate(names, start=1):
        assert read(f"{name}.{ending}")["u"].cast(float).to_list() == [u]
    assert read(f"r?n1.{ending}")["u"].cast(float).to_list() == [2]


def test_a_folder_may_have_any_name_and_others_in_it(read):
    os.makedirs("run[1]/more")
    write("run[1]/a", u=[1])
    for files in ("run[1]", os.path.join("run[[]1]", "*.parquet")):
        assert read(files)["u"].to_list() == [1]


def test_columns_may_come_in_any_order_and_as_any_numbers(read):
    write("1", u=[1], b=[0.5])
    write("2", b=[2], u=[0.25])
    found = read(".").to_dict(as_series=False)
    assert found == {"u": [1.0, 0.25], "b": [0.5, 2.0]}


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ({"a": [1]}, "2.parquet: .*1.parquet.* lacks 'b'"),
        ({"a": [1], "b": [1], "c": [1]}, "also has 'c'"),
        ({"b": [1], "c": [1]}, "lacks 'a' and also has 'c'"),
        ({"a": ["1"], "b": [1]}, "types .*'a'"),
        ({"a": [1], "b": [True]}, "types .*'b'"),
        ({"a": [0.5], "b": [1]}, "'a' .*Int64.* Float64"),
    ],
)
def test_files_that_differ_are_not_one_table(second, words, apply):
    write("1", a=[2**53 + 1, None], b=[1, 1])
    write("2", **second)
    done = apply("*.parquet")
    assert done.code == 2
    assert done.says(words), done.err


def test_numbers_do_not_become_text_behind_a_part_without_values(apply):
    for i, values in enumerate(([None], [1], ["text"])):
        write(i, a=values)
    done = apply(".")
    assert done.code == 2
    assert done.says("'a' .*Int64.* String")


def test_a_part_without_values_or_rows_has_columns_of_any_type(read):
    table = write("1", a=[1], b=["text"])
    write("2", a=[2], b=[None])
    write("0", a=[], b=[])
    found = read(".")
    assert found.drop("u").to_dict(as_series=False) == {
        "a": [1, 2],
        "b": ["text", None],
    }
    assert found.schema == table.schema


@pytest.mark.parametrize("files", ["*.parquet", "*.csv", "1.*"])
def test_text_stays_text_wherever_it_comes_from(files, read):
    name = "a 'b'"
    for each in ("1", "2"):
        table = write(each, **{name: ["007", "1"]}, u=["1.0", "1.0"])
        table.write_csv(f"{each}.csv")
    assert read(files)[name].to_list() == ["007", "1"] * 2


@pytest.mark.parametrize(
    "files", [["a.csv", "./a.csv"], ["*.csv"], ["a.csv", "*.csv"], ["-", "-"]]
)
def test_a_file_counts_once(files, apply):
    pl.DataFrame({"u": [1.0]}).write_csv("a.csv")
    os.symlink("a.csv", "link.csv")
    done = apply(*files)
    assert done.code == 2
    assert done.says("twice")


def test_nothing_to_read_is_said_in_words(apply):
    assert apply("*.csv").says("no file")
    assert apply(".").says("folder .*Parquet")
    for name in ("a", "b"):
        write(name, u=[])
    assert apply(".").says("'u'.* no rows")


def test_many_files_have_a_short_name_and_are_listed_for_machines(sigmascale):
    files = [f"{i}.csv" for i in range(5)]
    for name in files:
        pl.DataFrame({"E": [1.0, -1.0] * 10, "u": [1.0] * 20}).write_csv(name)
    assert sigmascale("check", *files).says("0.csv, 1.csv, 2.csv and 2 more.* 100 rows")
    told = json.loads(sigmascale("check", *files, "--json").out)
    assert told["data"]["files"] == files
