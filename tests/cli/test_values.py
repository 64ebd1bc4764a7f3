import numpy as np
import polars as pl
import pytest

from sigmascale.cli.tables.memory import MemoryTable
from sigmascale.cli.tables.reading import Reading
from sigmascale.cli.tables.roles import Roles
from sigmascale.cli.tables.values import RawTable
from sigmascale.exceptions import InvalidInputError

N = 8
FRAME = pl.DataFrame(
    {
        "formula": ["CH4", "H2O", "NH3", "CO2"] * 2,
        "E": [f"{i}.5" for i in range(N)],
        "u": [f" {i + 1}e-1" for i in range(N)],
        "mass": [str(i) for i in range(N)],
        "label": list("aabbccdd"),
    }
)


class Fixed:
    """A choice that was made already."""

    def __init__(self, roles):
        self.roles = roles

    def find(self, table):
        return self.roles


def take(frame, roles, **reading):
    how = Reading(**reading)
    raw = RawTable(frame, how.decimal or ".")
    return MemoryTable.take(["a.csv"], how, raw, Fixed(roles))


def test_formulas_give_columns_of_the_conditioning_table():
    table = take(FRAME, Roles("u", formula="formula"))
    assert table.X.columns == ["u", "mass", "heteroatom_fraction", "OxNy"]
    assert table.X["OxNy"][:4].to_list() == ["O0N0", "O1N0", "O0N1", "O2N0"]
    assert table.X["mass"][0] == pytest.approx(16.04, abs=0.01)


def test_errors_are_reference_minus_prediction():
    frame = FRAME.with_columns(R=pl.lit(3.0), V=pl.lit("1"))
    table = take(frame, Roles("u", error=("R", "V"), prediction="V"))
    assert table.error.tolist() == [2.0] * N
    assert table.prediction.tolist() == [1.0] * N
    assert table.X["u"].to_list() == [float(f"{i + 1}e-1") for i in range(N)]


def test_variances_become_uncertainties():
    table = take(FRAME, Roles("u", is_variance=True))
    assert np.array_equal(table.X["u"], np.sqrt(np.arange(1, N + 1) / 10))


@pytest.mark.parametrize(
    "missing", ["", "NA", "nan", " n/a ", "null", "None", "-", None]
)
def test_rows_with_missing_values_are_counted_by_column_or_dropped(missing):
    frame = FRAME.with_columns(
        u=pl.Series([missing, *FRAME["u"][1:]]),
        mass=pl.Series([missing, missing, *FRAME["mass"][2:]]),
    )
    roles = Roles("u", numbers=("mass",), error=("E",))
    with pytest.raises(
        InvalidInputError, match=r"2 of 8 rows .*'u' 1, 'mass' 2.*--drop-missing"
    ):
        take(frame, roles)
    table = take(frame, roles, drop_missing=True)
    assert table.dropped == 2
    assert table.rows.frame.equals(frame[2:])
    assert table.X["mass"].to_list() == [2, 3, 4, 5, 6, 7]
    assert table.error.tolist() == [2.5, 3.5, 4.5, 5.5, 6.5, 7.5]


def test_missing_values_of_columns_without_a_part_do_not_matter():
    frame = FRAME.with_columns(other=pl.lit(None), E=pl.lit(""))
    assert take(frame, Roles("u")).dropped == 0


def test_a_missing_label_is_missing():
    frame = FRAME.with_columns(label=pl.Series([None, *"abbccdd"]))
    with pytest.raises(InvalidInputError, match="'label' 1"):
        take(frame, Roles("u", labels=("label",)))


def test_zeros_are_refused_where_uncertainties_must_be_positive():
    frame = FRAME.with_columns(u=pl.Series([1.0, 0.0, *[1.0] * 6]))
    table = take(frame, Roles("u", error=("E",)))
    assert table.X["u"][1] == 0
    with pytest.raises(InvalidInputError, match=r"row 2 .* 0.0 .*positive"):
        table.validate(None, 0)


def test_the_first_bad_value_is_shown_and_the_others_are_counted():
    table = RawTable(pl.DataFrame({"u": ["1", "x", "2", "y", "z"]}))
    with pytest.raises(InvalidInputError, match=r"row 2 .* 'x' .* 2 more"):
        table.numbers("u")


def test_the_place_of_a_bad_value_is_that_in_the_file_whatever_was_left_out():
    frame = pl.DataFrame({"u": ["1", "", "2", "3", "-1", "4"], "k": list("abaaaa")})
    match = r"row 5 .* -1.0 .*negative"
    with pytest.raises(InvalidInputError, match=match):
        take(frame, Roles("u"), drop_missing=True)
    with pytest.raises(InvalidInputError, match=match):
        take(frame, Roles("u"), where="k == 'a'")
    with pytest.raises(InvalidInputError, match=match):
        take(frame, Roles("u"), where="k >= 'a' and k != 'x'", drop_missing=True)


@pytest.mark.parametrize(
    ("values", "numeric"),
    [
        (["1", "2.5", " -3e-2 "], True),
        (["1", "", "NA"], True),
        (["", "NA", None], False),
        (["1", "a"], False),
        (["1", "inf"], True),  # refused when it is used
        ([1, 2], True),
        ([True, False], False),
        (["2020-01-01"], False),
    ],
)
def test_what_counts_as_a_column_of_numbers(values, numeric):
    assert RawTable(pl.DataFrame({"x": values})).is_numeric("x") is numeric


@pytest.mark.parametrize(
    "values",
    [[[1.0]] * N, [{"a": 1}] * N, [b"\xff"] * N],
    ids=["list", "struct", "bytes"],
)
def test_nested_values_are_no_labels(values):
    frame = FRAME.with_columns(x=pl.Series(values))
    with pytest.raises(InvalidInputError, match=r"'x' .*labels or numbers"):
        take(frame, Roles("u", labels=("x",)))


def test_decimal_commas_are_read_where_they_are_expected():
    texts = ["0,5", " -1,25e-3 ", "2", "NA", ",5"]
    table = RawTable(pl.DataFrame({"x": texts}), ",")
    assert table.numbers("x").to_list() == [0.5, -1.25e-3, 2.0, None, 0.5]
    with pytest.raises(InvalidInputError, match=r"row 1 .*'0,5' .*--decimal ,"):
        RawTable(table.frame).numbers("x")


@pytest.mark.parametrize("text", ["1.5", "1.234,5", "1,234,5"])
def test_points_beside_decimal_commas_are_not_guessed_at(text):
    table = RawTable(pl.DataFrame({"x": ["0,5", text]}), ",")
    with pytest.raises(InvalidInputError, match=r"row 2 .*(has a point|not a number)"):
        table.numbers("x")


def test_no_other_decimal_mark_is_accepted():
    with pytest.raises(InvalidInputError, match=r"--decimal .*point or a comma"):
        Reading(decimal=";")
