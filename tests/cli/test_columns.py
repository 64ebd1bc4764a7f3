import numpy as np
import polars as pl
import pytest

from sigmascale.cli.tables.columns import (
    OBVIOUS,
    Choice,
    Columns,
    find_columns,
    find_error,
    find_uncertainty,
    is_numeric,
    known,
    numbers,
    take_rows,
)
from sigmascale.exceptions import DamagedFileError, InvalidInputError

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


@pytest.mark.parametrize("name", ["E", "e", "Error", " error "])
def test_the_error_is_guessed_from_its_name(name):
    assert find_error(Choice(), [name, "u"]) == (name,)


def test_an_error_is_preferred_to_its_parts():
    assert find_error(Choice(), ["R", "V", "E"]) == ("E",)
    assert find_error(Choice(), ["V", "R"]) == ("R", "V")
    found = find_error(Choice(reference="x", prediction=None), ["x", "pred"])
    assert found == ("x", "pred")


def test_every_name_that_leaves_no_doubt_is_guessed():
    for name in OBVIOUS["uncertainty"]:
        assert find_uncertainty(Choice(), [name, "x"]) == (name, False)
    for name in OBVIOUS["variance"]:
        assert find_uncertainty(Choice(), [name, "x"]) == (name, True)
    assert find_uncertainty(Choice(), ["var", "u"]) == ("u", False)


def test_what_is_named_goes_before_what_is_guessed():
    names = ["E", "u", "x", "y"]
    assert find_error(Choice(error="x"), names) == ("x",)
    assert find_error(Choice(reference="x", prediction="y"), names) == ("x", "y")
    assert find_uncertainty(Choice(variance="y"), names) == ("y", True)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Mass", "mass"),
        ("masss", "mass"),
        ("uncertanty", "uncertainty"),
        ("MAS", "mass"),
    ],
)
def test_the_nearest_name_is_suggested(name, near):
    with pytest.raises(InvalidInputError, match=f"Did you mean '{near}'"):
        known(name, ["E", "uncertainty", "mass"], "--feature")


def test_a_name_that_is_far_from_all_gets_no_suggestion():
    with pytest.raises(InvalidInputError) as problem:
        known("qqq", ["E", "u"], "--feature")
    assert "Did you mean" not in str(problem.value)
    assert "--feature needs a column 'qqq'" in str(problem.value)


def test_true_values_and_errors_beside_predictions_are_features_only_if_named():
    frame = FRAME.select("E", "u", "mass", R="mass", V="mass")
    every = Choice(all_features=True)
    assert find_columns(every, frame, ["E"]).numbers == ("mass", "V")
    assert find_columns(every, frame, ["R", "V"]).numbers == ("mass",)
    assert find_columns(every, frame.drop("V"), ["E"]).numbers == ("mass", "R")
    named = Choice(all_features=True, features=["R"])
    assert find_columns(named, frame, ["E"]).numbers == ("R", "mass", "V")


def test_all_other_columns_of_numbers_are_features():
    found = find_columns(Choice(all_features=True), FRAME, ["E"])
    assert found == Columns("u", numbers=("mass",))
    found = find_columns(Choice(all_features=True, groups=["mass"]), FRAME, ["E"])
    assert found == Columns("u", labels=("mass",))


def test_uncertainties_that_were_recalibrated_are_features_only_if_named():
    frame = FRAME.with_columns(u_recalibrated="u", mass_recalibrated="mass")
    every = find_columns(Choice(all_features=True), frame, ["E"])
    assert every.numbers == ("mass",)
    named = Choice(features=["u_recalibrated"], all_features=True)
    assert find_columns(named, frame, ["E"]).numbers == ("u_recalibrated", "mass")
    judged = Choice(uncertainty="u_recalibrated", all_features=True)
    assert find_columns(judged, frame, ["E"]).numbers == ("u", "mass")


def test_features_are_used_once_and_text_is_labels():
    choice = Choice(features=["label", "mass", "mass"], groups=["label"])
    found = find_columns(choice, FRAME, ["E"], by=["mass", "u"])
    assert found == Columns("u", numbers=("mass",), labels=("label",))
    assert found.features == ["mass", "label"]


def test_a_formula_gives_features_that_can_be_binned_by():
    found = find_columns(Choice(formula="formula"), FRAME, ["E"], by=["OxNy"])
    assert found == Columns("u", formula="formula")
    assert found.features == ["mass", "heteroatom_fraction", "OxNy"]
    rows = take_rows(FRAME, found)
    assert rows.X.columns == ["u", *found.features]
    assert rows.X["OxNy"][:4].to_list() == ["O0N0", "O1N0", "O0N1", "O2N0"]
    assert rows.X["mass"][0] == pytest.approx(16.04, abs=0.01)


def test_a_column_and_a_derived_feature_cannot_share_a_name():
    choice = Choice(formula="formula", groups=["mass"])
    with pytest.raises(InvalidInputError, match="derives 'mass', which is a column"):
        find_columns(choice, FRAME, ["E"])


def test_errors_are_reference_minus_prediction():
    frame = FRAME.with_columns(R=pl.lit(3.0), V=pl.lit("1"))
    rows = take_rows(frame, Columns("u"), ["R", "V"])
    assert rows.error.tolist() == [2.0] * N
    assert rows.X["u"].to_list() == [float(f"{i + 1}e-1") for i in range(N)]


def test_variances_become_uncertainties():
    rows = take_rows(FRAME, Columns("u", is_variance=True))
    assert np.array_equal(rows.X["u"], np.sqrt(np.arange(1, N + 1) / 10))


@pytest.mark.parametrize(
    "missing", ["", "NA", "nan", " n/a ", "null", "None", "-", None]
)
def test_rows_with_missing_values_are_counted_by_column_or_dropped(missing):
    frame = FRAME.with_columns(
        u=pl.Series([missing, *FRAME["u"][1:]]),
        mass=pl.Series([missing, missing, *FRAME["mass"][2:]]),
    )
    columns = Columns("u", numbers=("mass",))
    with pytest.raises(
        InvalidInputError, match=r"2 of 8 rows have .*: 'u' 1, 'mass' 2.*--drop-missing"
    ):
        take_rows(frame, columns)
    rows = take_rows(frame, columns, ["E"], drop_missing=True)
    assert rows.dropped == 2
    assert rows.frame.equals(frame[2:])
    assert rows.X["mass"].to_list() == [2, 3, 4, 5, 6, 7]
    assert rows.error.tolist() == [2.5, 3.5, 4.5, 5.5, 6.5, 7.5]


def test_missing_values_of_columns_without_a_part_do_not_matter():
    frame = FRAME.with_columns(other=pl.lit(None), E=pl.lit(""))
    assert take_rows(frame, Columns("u")).dropped == 0


def test_a_missing_label_is_missing():
    frame = FRAME.with_columns(label=pl.Series([None, *"abbccdd"]))
    with pytest.raises(InvalidInputError, match="'label' 1"):
        take_rows(frame, Columns("u", labels=("label",)))


def test_zeros_are_refused_where_uncertainties_must_be_positive():
    frame = FRAME.with_columns(u=pl.Series([1.0, 0.0, *[1.0] * 6]))
    assert take_rows(frame, Columns("u")).X["u"][1] == 0
    with pytest.raises(InvalidInputError, match=r"row 2 .*: 0.0 is no positive number"):
        take_rows(frame, Columns("u"), positive=True)


def test_the_first_bad_value_is_shown_and_the_others_are_counted():
    frame = pl.DataFrame({"u": ["1", "x", "2", "y", "z"]})
    with pytest.raises(InvalidInputError, match=r"row 2 .* 'x' .*So are 2 more"):
        numbers(frame, "u")


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
    assert is_numeric(pl.DataFrame({"x": values}), "x") is numeric


@pytest.mark.parametrize(
    "values",
    [[[1.0]] * N, [{"a": 1}] * N, [b"\xff"] * N],
    ids=["list", "struct", "bytes"],
)
def test_nested_values_are_no_labels(values):
    frame = FRAME.with_columns(x=pl.Series(values))
    with pytest.raises(InvalidInputError, match="'x' must hold labels or numbers"):
        take_rows(frame, Columns("u", labels=("x",)))


def test_columns_come_back_from_json_and_nothing_else_does():
    columns = Columns("v", True, ("a",), ("b", "c"), "formula")
    assert Columns.from_dict(columns.to_dict()) == columns
    with pytest.raises(InvalidInputError, match="not made by `sigmascale fit`"):
        Columns.from_dict(None)
    good = columns.to_dict()
    for bad in (
        [],
        good | {"uncertainty": 1},
        good | {"is_variance": "yes"},
        good | {"numbers": "ab"},
        good | {"labels": [1]},
        good | {"formula": []},
        good | {"more": 1},
        {"uncertainty": "u"},
    ):
        with pytest.raises(DamagedFileError, match="damaged"):
            Columns.from_dict(bad)
