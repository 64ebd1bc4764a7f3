"""``--where``: which rows conditions keep."""

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FRAME = pl.DataFrame(
    {
        "split": ["train", "test", "test", None, "test"],
        "mass": ["9", "10", "100", "NA", "-1e1"],
        "my column, really": ["1", "2", "3", "4", "5"],
    }
)


@pytest.fixture
def applied(tmp_path, sigmascale):
    """Apply a recalibrator to the rows of a table that meet conditions."""
    some = pl.DataFrame({"E": [1.0, -3.0] * 20, "u": [1.0] * 40})
    some.write_csv(tmp_path / "some.csv")
    scaler, out = tmp_path / "s.json", tmp_path / "out.csv"
    fit = ("fit", tmp_path / "some.csv", "--method", "temperature", "-o", scaler)
    assert sigmascale(*fit).code == 0

    def apply(text, frame=FRAME, *options):
        path = tmp_path / "a.parquet"
        frame.with_row_index().with_columns(u=pl.lit(1.0)).write_parquet(path)
        return sigmascale(
            *("apply", scaler, path, f"--where={text}", "-o", out, *options)
        )

    return apply


@pytest.fixture
def kept(applied, tmp_path):
    """Return the numbers of the rows that conditions keep."""

    def keep(*arguments):
        done = applied(*arguments)
        assert done.code == 0, done.err
        return pl.read_csv(tmp_path / "out.csv")["index"].to_list()

    return keep


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("split == 'test'", [1, 2, 4]),
        ("split = 'test'", [1, 2, 4]),
        ("split != 'test'", [0]),  # a missing value meets no condition
        ("split > 'test'", [0]),
        ("mass >= 10", [1, 2]),  # as numbers, although they are text
        ("mass > 10.0", [2]),
        ("mass < 1e1", [0, 4]),
        ("mass <= -10", [4]),
        ("mass != 10", [0, 2, 4]),
        ("mass == '10'", [1]),
        ("split == 'test' and mass > 0", [1, 2]),
        ("mass < 0 OR split = 'train'", [0, 4]),
        ("NOT (mass < 50)", [2]),
        ("split IN ('train', 'valid') OR mass BETWEEN 50 AND 200", [0, 2]),
        ("split LIKE 't%n'", [0]),
        ("split IS NULL", [3]),
        ("split == 'test' AND mass > 0 and mass < 50", [1]),
        ("`my column, really` >= 4", [3, 4]),
        ('"my column, really" >= 4', [3, 4]),
        ("  `split`  ==  'train'  ", [0]),
    ],
)
def test_rows_that_meet_all_conditions_are_kept(text, rows, kept):
    assert kept(text) == rows


def test_numbers_with_decimal_commas_are_compared_as_numbers(sigmascale, tmp_path):
    text = "E;u;x\n" + "1,0;2,0;1,5\n-1,0;3,0;12,5\n" * 30
    (tmp_path / "a.csv").write_text(text)
    commas = ("--separator", ";", "--decimal", ",")
    done = sigmascale("check", tmp_path / "a.csv", *commas, "--where", "x > 2.5")
    assert done.says("30 rows of 60")


@pytest.mark.parametrize(
    "text", ["", "split ==", "split == 'test", "mass < 1.2.3", "mass < 5 and", "mass"]
)
def test_what_is_no_condition_is_refused_with_an_example_and_the_columns(text, applied):
    done = applied(text)
    assert done.code == 2
    assert done.says("--where .*split = 'test' AND mass < 120.*'split', 'mass'")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mas < 5", "--where .*'mas'.*'mass'"),
        ("split = test", "--where .*'test'.*The columns are"),
        ("split < 5", "--where .*compare.*numbers are compared with numbers"),
        ("mass > 1000", "none of 5 rows"),
    ],
)
def test_conditions_that_do_not_fit_the_table_are_refused(text, words, applied):
    done = applied(text)
    assert done.code == 2
    assert done.says(words), done.err


@pytest.mark.parametrize("weights", [(), ("--weight", "w")])
def test_messages_count_rows_as_the_file_does(weights, tmp_path, sigmascale):
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"E": rng.normal(size=90), "u": 1.0, "w": 1.0, "n": range(90)})
    odd, at = pl.int_range(90) == 70, pl.int_range(90)
    table = table.with_columns(w=pl.when(at % 7 == 5).then(0.0).otherwise("w"))
    wild = table.with_columns(E=pl.when(odd).then(1e5).otherwise("E"))
    wild.write_csv(tmp_path / "wild.csv")
    where = ("--where", "n > 20", *weights)
    assert "(row 71, z = " in sigmascale("check", tmp_path / "wild.csv", *where).err
    worse = table.with_columns(u=pl.when(odd).then(1e80).otherwise("u"))
    worse.write_csv(tmp_path / "worse.csv")
    for command in (("check",), ("fit", "-o", tmp_path / "f.json")):
        told = sigmascale(*command, tmp_path / "worse.csv", *where)
        assert (told.code, "(first at row 71: 1e+80)" in told.err) == (2, True)


def test_a_column_of_numbers_is_not_compared_with_text(applied):
    done = applied("x = '5'", pl.DataFrame({"x": [5.0]}))
    assert done.code == 2
    assert done.says("--where .*compare.*numbers are compared with numbers")


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
def test_engines_read_conditions_in_their_own_language(engine, applied, tmp_path):
    text = "split == 'test'" if engine == "dask" else "split = 'test'"
    out = ("--engine", engine, "-o", tmp_path / "out.parquet")
    assert applied(text, FRAME, *out).code == 0
    read = pl.read_parquet(
        tmp_path / "out.parquet" / "*.parquet"
        if engine == "dask"
        else tmp_path / "out.parquet"
    )
    assert sorted(read["index"]) == [1, 2, 4]
    done = applied("splitt == 'test'", FRAME, *out)
    assert done.code == 2
    assert done.says("--where .*splitt.*'split', 'mass'")


NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters='"\0'), min_size=1, max_size=5
).filter(lambda name: name not in ("u", "index"))
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
often = settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@often
@given(name=NAMES, number=FINITE, text=TEXTS)
def test_every_name_number_and_text_can_be_asked_for(name, number, text, kept):
    numbers = pl.DataFrame({name: [number, None, number]})
    assert kept(f'"{name}" = {number!r}', numbers) == [0, 2]
    texts = pl.DataFrame({name: [None, f"{text}x", f"{text}y"]})
    doubled = text.replace("'", "''")
    assert kept(f"\"{name}\" != '{doubled}x'", texts) == [2]


@often
@given(text=st.text(alphabet="ab`'\"=<> 019.e-and()", max_size=12))
def test_whatever_is_typed_is_read_or_refused(text, applied):
    assert applied(text, pl.DataFrame({"a": [1.0], "b": ["x"]})).code in (0, 2)
