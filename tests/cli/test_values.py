"""What the cells of a table mean: numbers, labels, and nothing."""

import json

import numpy as np
import polars as pl
import pytest

import sigmascale as ss

N = 40
FRAME = pl.DataFrame(
    {
        "E": [f"{i % 7 - 3}.5" for i in range(N)],
        "u": [f" {i % 9 + 1}e-1" for i in range(N)],
        "mass": [f"{i * 7 % 11 + 1}.5" for i in range(N)],  # no count of rows
        "label": list("aabb") * (N // 4),
    }
)
NUMBERS = FRAME.select(pl.exclude("label").str.strip_chars().cast(float))


@pytest.fixture
def check(tmp_path, sigmascale):
    """Check a table that was written as CSV, or as Parquet."""

    def run(frame, *options, ending="csv"):
        path = tmp_path / f"a.{ending}"
        frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)
        return sigmascale("check", path, *options)

    return run


@pytest.fixture
def apply(tmp_path, sigmascale):
    """Apply a recalibrator of u to a table, and return what it writes."""
    scaler, out = tmp_path / "s.json", tmp_path / "out.csv"
    FRAME.write_csv(tmp_path / "fitted.csv")
    fit = ("fit", tmp_path / "fitted.csv", "--method", "temperature", "-o", scaler)
    assert sigmascale(*fit).code == 0
    factor = ss.load(scaler).scaling_.factor_

    def run(frame, *options, separator=","):
        frame.write_csv(tmp_path / "a.csv", separator=separator)
        options = (*options, "--separator", separator)
        done = sigmascale("apply", scaler, tmp_path / "a.csv", *options, "-o", out)
        if done.code == 0:
            return pl.read_csv(out, separator=separator, infer_schema=False), factor
        assert done.code == 2
        return done

    return run


def test_numbers_may_be_written_with_spaces_and_exponents(check):
    told = json.loads(check(FRAME, "--json").out)
    assert told["scores"]["ZMS"] == pytest.approx(ss.zms(NUMBERS["E"], NUMBERS["u"]))


@pytest.mark.parametrize("missing", ["", "NA", "nan", " n/a ", "null", "None", "-"])
def test_rows_with_missing_values_are_counted_by_column_or_dropped(missing, check):
    frame = FRAME.with_columns(
        u=pl.Series([missing, *FRAME["u"][1:]]),
        mass=pl.Series([missing, missing, *FRAME["mass"][2:]]),
    )
    done = check(frame, "--feature", "mass")
    assert done.code == 2
    assert done.says(f"2 of {N} rows .*'u' 1, 'mass' 2.*--drop-missing")
    done = check(frame, "--feature", "mass", "--drop-missing", "--json")
    told = json.loads(done.out)
    assert (told["data"]["rows"], told["data"]["dropped"]) == (N - 2, 2)
    rest = NUMBERS[2:]
    assert told["scores"]["ZMS"] == pytest.approx(ss.zms(rest["E"], rest["u"]))


def test_missing_values_of_columns_without_a_part_do_not_matter(check):
    done = check(FRAME.with_columns(other=pl.lit(None)), "--json")
    assert json.loads(done.out)["data"]["rows"] == N


def test_a_missing_label_is_missing(check):
    frame = FRAME.with_columns(label=pl.Series([None, *FRAME["label"][1:]]))
    done = check(frame, "--label", "label")
    assert done.code == 2
    assert done.says("'label' 1")


def test_zeros_are_refused_where_uncertainties_must_be_positive(check, apply):
    frame = FRAME.with_columns(u=pl.Series(["1", "0", *FRAME["u"][2:]]))
    done = check(frame)
    assert done.code == 2
    assert done.says("row 2 .* 0.0 .*positive")
    written, _ = apply(frame)
    assert written.height == N


def test_the_first_bad_value_is_shown_and_the_others_are_counted(apply):
    done = apply(pl.DataFrame({"u": ["1", "x", "2", "y", "z"]}))
    assert done.says("row 2 .* 'x' .* 2 more")


@pytest.mark.parametrize(
    "options",
    [
        ("--drop-missing",),
        ("--where", "k == 'a'"),
        ("--where", "k >= 'a' and k != 'x'", "--drop-missing"),
    ],
)
def test_the_place_of_a_bad_value_is_that_in_the_file_whatever_was_left_out(
    options, apply
):
    frame = pl.DataFrame({"u": ["1", "", "2", "3", "-1", "4"], "k": list("abaaaa")})
    assert apply(frame, *options).says("row 5 .* -1.0 .*negative")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2.5", " -3e-2 ", "4"], "numbers"),
        (["1", "a", "a", "a"], "labels"),
        (["2020-01-01", "2020-01-02"], "labels"),
        ([1, 2], "numbers"),
        ([True, False], "labels"),
    ],
)
def test_what_counts_as_a_column_of_numbers(values, kind, check):
    frame = FRAME.with_columns(x=pl.Series(np.resize(values, N)))
    ending = "csv" if isinstance(values[0], str) else "parquet"
    done = check(frame, "--feature", "x", "--json", ending=ending)
    assert json.loads(done.out)["data"][kind] == ["x"]


def test_an_infinite_number_is_one_and_refused(check):
    frame = FRAME.with_columns(x=pl.Series(["inf", *FRAME["mass"][1:]]))
    done = check(frame, "--feature", "x")
    assert done.code == 2
    assert done.says("'x', row 1 .*infinite")


@pytest.mark.parametrize(
    "values",
    [[[1.0]] * N, [{"a": 1}] * N, [b"\xff"] * N],
    ids=["list", "struct", "bytes"],
)
def test_nested_values_are_no_labels(values, check):
    frame = FRAME.with_columns(x=pl.Series(values))
    done = check(frame, "--label", "x", ending="parquet")
    assert done.code == 2
    assert done.says("'x' .*labels or numbers")


def test_decimal_commas_are_read_where_they_are_expected(apply):
    frame = pl.DataFrame({"u": ["0,5", " 1,25e-3 ", "2", "NA", ",5"]})
    options = ("--decimal", ",", "--drop-missing")
    written, factor = apply(frame, *options, separator=";")
    found = written["u_recalibrated"].str.replace(",", ".").cast(float)
    np.testing.assert_allclose(found, factor * np.array([0.5, 1.25e-3, 2.0, 0.5]))
    assert apply(frame, separator=";").says("row 1 .*'0,5' .*--decimal ,")


@pytest.mark.parametrize("text", ["1.5", "1.234,5", "1,234,5"])
def test_points_beside_decimal_commas_are_not_guessed_at(text, apply):
    done = apply(pl.DataFrame({"u": ["0,5", text]}), "--decimal", ",", separator=";")
    assert done.says("row 2 .*(has a point|not a number)")


def test_no_other_decimal_mark_is_accepted(apply):
    assert apply(FRAME, "--decimal", ";").says("--decimal .*point or a comma")
