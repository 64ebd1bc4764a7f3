"""Several files as one table."""

import os

import polars as pl
import pytest

from sigmascale.cli.tables.files import read_table, write_table
from sigmascale.cli.tables.filesets import matching, named, read_tables
from sigmascale.exceptions import InvalidInputError


def read(files):
    return read_tables(files)[0]


def test_files_patterns_and_folders_are_read_as_one_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pl.DataFrame({"u": [1.0, 2.0, 3.0], "id": ["a", "b", "007"]})
    for i in range(3):
        table[i : i + 1].write_csv(f"{i}.csv")
        table[i : i + 1].write_parquet(f"{i}.parquet")
    table[:0].write_parquet("3.parquet")  # a part without rows
    text = table.with_columns(pl.col("u").cast(pl.String))
    assert read(["0.csv", "1.csv", "2.csv"]).equals(text)
    assert read_tables(["?.csv"])[1]  # no types
    assert not read_tables(["*.parquet"])[1]
    for files in (["."], ["*.parquet"], ["0.parquet", "[123].parquet"]):
        assert read(files).equals(table)
    assert read(["1.parquet", "0.parquet"])["id"].to_list() == ["b", "a"]
    assert read(["2.csv"]).equals(read_table("2.csv"))


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow", "jsonl", "npz"])
def test_a_name_that_looks_like_a_pattern_is_a_name_first(
    ending, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for u, name in enumerate(("run[1]", "run1", "run*")):
        write_table(pl.DataFrame({"u": [u]}), f"{name}.{ending}")
    for u, name in enumerate(("run[1]", "run1", "run*")):
        assert read_table(f"{name}.{ending}")["u"].cast(int).to_list() == [u]
        assert matching([f"{name}.{ending}"]) == [f"{name}.{ending}"]
    assert matching(["r?n1.*", "-"]) == [f"run1.{ending}", "-"]
    assert matching(["none.csv"]) == ["none.csv"]  # which reading it will tell


def test_a_folder_may_have_any_name_and_others_in_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run[1]" / "more").mkdir(parents=True)
    pl.DataFrame({"u": [1]}).write_parquet("run[1]/a.parquet")
    (path,) = matching(["run[1]"])
    assert path == os.path.join("run[1]", "a.parquet")
    assert matching([os.path.join("run[[]1]", "*")]) == [path]
    assert read(["run[1]"])["u"].to_list() == [1]


def test_columns_may_come_in_any_order_and_as_any_numbers(tmp_path):
    pl.DataFrame({"a": [1], "b": [0.5]}).write_parquet(tmp_path / "1.parquet")
    pl.DataFrame({"b": [2], "a": [0.25]}).write_parquet(tmp_path / "2.parquet")
    found = read([str(tmp_path)])
    assert found.to_dict(as_series=False) == {"a": [1.0, 0.25], "b": [0.5, 2.0]}


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ({"a": [1]}, "2.parquet: unlike .*1.parquet, it lacks 'b'"),
        ({"a": [1], "b": [1], "c": [1]}, "it also has 'c'"),
        ({"b": [1], "c": [1]}, "it lacks 'a' and also has 'c'"),
        ({"a": ["1"], "b": [1]}, "types .*'a'"),
        ({"a": [1], "b": [True]}, "types .*'b'"),
        ({"a": [0.5], "b": [1]}, r"'a' has types .*\(Int64 in one\) that only Float64"),
    ],
)
def test_files_that_differ_are_not_one_table(second, words, tmp_path):
    first = pl.DataFrame({"a": [2**53 + 1, None], "b": [1, 1]})
    first.write_parquet(tmp_path / "1.parquet")
    pl.DataFrame(second).write_parquet(tmp_path / "2.parquet")
    with pytest.raises(InvalidInputError, match=words):
        read([str(tmp_path / "*.parquet")])


def test_numbers_do_not_become_text_behind_a_part_without_values(tmp_path):
    for i, values in enumerate(([None], [1], ["text"])):
        pl.DataFrame({"a": values}).write_parquet(tmp_path / f"{i}.parquet")
    with pytest.raises(InvalidInputError, match=r"Int64 in one\) that only String"):
        read([str(tmp_path)])


def test_a_part_without_values_or_rows_has_columns_of_any_type(tmp_path):
    table = pl.DataFrame({"a": [1], "b": ["text"]})
    table.write_parquet(tmp_path / "1.parquet")
    pl.DataFrame({"a": [2], "b": [None]}).write_parquet(tmp_path / "2.parquet")
    pl.DataFrame({"a": [], "b": []}).write_parquet(tmp_path / "0.parquet")
    found = read([str(tmp_path)])
    assert found.to_dict(as_series=False) == {"a": [1, 2], "b": ["text", None]}
    assert found.schema == table.schema


def test_text_stays_text_wherever_it_comes_from(tmp_path):
    table = pl.DataFrame({'a "b"': ["007", "1"]})
    for name in ("1", "2"):
        table.write_parquet(tmp_path / f"{name}.parquet")
        table.write_csv(tmp_path / f"{name}.csv")
    for files, untyped in (("*.parquet", False), ("*.csv", True), ("1.*", False)):
        found = read_tables([str(tmp_path / files)])
        assert found[0].equals(pl.concat([table, table]))
        assert found[1] == untyped


def test_a_file_counts_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("u\n1\n")
    (tmp_path / "link.csv").symlink_to("a.csv")
    for files in (["a.csv", "./a.csv"], ["*.csv"], ["a.csv", "*.csv"], ["-", "-"]):
        with pytest.raises(InvalidInputError, match="is given twice"):
            matching(files)


def test_nothing_to_read_is_said_in_words(tmp_path):
    with pytest.raises(InvalidInputError, match="no file"):
        read([str(tmp_path / "*.csv")])
    with pytest.raises(InvalidInputError, match=r"folder .*Parquet"):
        read([str(tmp_path)])
    for name in ("a", "b"):
        pl.DataFrame({"u": []}).write_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(InvalidInputError, match=r"'u'.* no rows"):
        read([str(tmp_path)])


def test_many_files_have_a_short_name():
    files = [f"{i}.csv" for i in range(5)]
    assert named(files) == "0.csv, 1.csv, 2.csv and 2 more (as one table)"
    assert named(files[:3]) == "0.csv, 1.csv, 2.csv (as one table)"
