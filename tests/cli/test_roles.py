import re

import polars as pl
import pytest

from sigmascale.cli.tables.roles import (
    OBVIOUS,
    Choice,
    Expected,
    Roles,
    find_error,
    find_uncertainty,
    free_names,
    known,
)
from sigmascale.cli.tables.values import RawTable
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
    with pytest.raises(InvalidInputError, match=f"mean '{near}'"):
        known(name, ["E", "uncertainty", "mass"], "--feature")


def test_a_name_that_is_far_from_all_gets_no_suggestion():
    with pytest.raises(InvalidInputError) as problem:
        known("qqq", ["E", "u"], "--feature")
    assert "Did you mean" not in str(problem.value)
    assert re.search("--feature .*'qqq'", str(problem.value))


def find(frame=FRAME, **options):
    return Choice(**options).find(RawTable(frame))


def test_true_values_and_errors_beside_predictions_are_features_only_if_named():
    frame = FRAME.select("E", "u", "mass", R="mass", V="mass")
    every = find(frame, all_features=True)
    assert (every.numbers, every.left_out) == (("mass", "V"), ("R",))
    parts = {"reference": "R", "prediction": "V"}
    every = find(frame, all_features=True, **parts)
    assert (every.numbers, every.left_out) == (("mass",), ("E",))
    assert find(frame.drop("V"), all_features=True).numbers == ("mass", "R")
    named = find(frame, all_features=True, features=["R"])
    assert named.numbers == ("R", "mass", "V")


def test_the_prediction_can_be_a_feature_but_the_reference_and_the_error_cannot():
    frame = FRAME.select("u", "mass", "E", R="mass", V="mass")
    parts = {"reference": "R", "prediction": "V"}
    found = find(frame, **parts, features=["V"])
    assert (found.numbers, found.error, found.prediction) == (("V",), ("R", "V"), "V")
    assert find(frame, **parts, features=["V"], all_features=True).numbers == (
        *("V", "mass"),
    )
    for options in (parts | {"features": ["R"]}, {"features": ["E"]}):
        with pytest.raises(InvalidInputError, match="part already"):
            find(frame, **options)


def test_all_other_columns_of_numbers_are_features():
    assert find(all_features=True) == Roles("u", numbers=("mass",), error=("E",))
    found = find(all_features=True, labels=["mass"])
    assert found == Roles("u", labels=("mass",), error=("E",))


def test_columns_can_be_excluded_from_all_features_only():
    frame = FRAME.with_columns(a="mass", b="mass")
    found = find(frame, all_features=True, exclude=["a", "mass"])
    assert (found.numbers, found.left_out) == (("b",), ())
    with pytest.raises(InvalidInputError, match=r"--exclude .*--all-features"):
        find(frame, features=["a"], exclude=["b"])
    with pytest.raises(InvalidInputError, match=r"--exclude .*'c'"):
        find(frame, all_features=True, exclude=["c"])


def test_uncertainties_are_features_only_if_named():
    made = ("u_recalibrated", "u_recalibrated_low", "mass_recalibrated")
    frame = FRAME.with_columns(**{name: "u" for name in (*made, "Sigma", "var")})
    every = find(frame, all_features=True, uncertainty="u")
    assert every.numbers == ("mass",)
    assert every.left_out == (*made, "Sigma", "var")
    features = ["u_recalibrated"]
    named = find(frame, features=features, all_features=True, uncertainty="u")
    assert named.numbers == ("u_recalibrated", "mass")
    judged = find(frame, uncertainty="u_recalibrated", all_features=True)
    assert judged.numbers == ("mass",)
    assert judged.left_out == ("u", *made[1:], "Sigma", "var")


def test_what_was_recalibrated_is_no_feature_whatever_its_name():
    frame = FRAME.with_columns(mine_recalibrated="u", mine="u").drop("u")
    found = find(frame, uncertainty="mine_recalibrated", all_features=True)
    assert (found.numbers, found.left_out) == (("mass",), ("mine",))


def test_features_are_used_once_and_text_is_labels():
    found = find(features=["label", "mass", "mass"], labels=["label"], by=["mass", "u"])
    assert found == Roles("u", numbers=("mass",), labels=("label",), error=("E",))
    assert found.features == ["mass", "label"]


def test_a_formula_gives_features_that_can_be_binned_by():
    found = find(formula="formula", by=["OxNy"])
    assert found == Roles("u", formula="formula", error=("E",))
    assert found.features == ["mass", "heteroatom_fraction", "OxNy"]


def test_a_column_and_a_derived_feature_cannot_share_a_name():
    with pytest.raises(InvalidInputError, match="'mass'"):
        find(formula="formula", labels=["mass"])


def test_another_table_must_have_what_the_first_one_had():
    roles = find(all_features=True, labels=["label"])
    table = RawTable(FRAME.rename({"u": "v"}))
    with pytest.raises(InvalidInputError, match=r"needs .*'u'"):
        Expected(roles, Choice()).find(table)
    found = Expected(roles, Choice(variance="v")).find(table)
    assert found == Roles("v", True, ("mass",), ("label",))
    found = Expected(roles, Choice(uncertainty="v"), with_error=True).find(table)
    assert found.error == ("E",)


def test_predictions_are_taken_where_they_are_wanted_and_there():
    roles = Roles("u", error=("R", "V"), prediction="V")
    table = RawTable(FRAME.with_columns(V="mass", W="mass"))

    def prediction(table, **options):
        choice = Choice(prediction=options.pop("prediction", None))
        return Expected(roles, choice, **options).find(table).prediction

    assert prediction(table) is None
    assert prediction(table, with_prediction=True) == "V"
    assert prediction(table, with_prediction=True, prediction="W") == "W"
    assert prediction(RawTable(FRAME), with_prediction=True) is None
    with pytest.raises(InvalidInputError, match=r"--prediction .*'X'"):
        prediction(table, with_prediction=True, prediction="X")


def test_new_columns_must_have_new_names():
    assert free_names(None, Roles("u"), ["u"], with_limits=False) == ["u_recalibrated"]
    limits = ["better", "better_low", "better_high"]
    assert free_names("better", Roles("u"), ["u"], with_limits=True) == limits
    with pytest.raises(InvalidInputError, match=r"column 'better_low' already.*--name"):
        free_names("better", Roles("u"), ["better_low"], with_limits=True)
    assert free_names("better", Roles("u"), ["better_low"], with_limits=False)


def test_roles_come_back_from_json_and_nothing_else_does():
    roles = Roles("v", True, ("a",), ("b", "c"), "formula", ("R", "V"), "V", ("s",))
    assert Roles.from_dict(roles.to_dict()) == roles
    with pytest.raises(InvalidInputError, match="`sigmascale fit`"):
        Roles.from_dict(None)
    good = roles.to_dict()
    for bad in (
        [],
        good | {"uncertainty": 1},
        good | {"uncertainty": None},
        good | {"is_variance": "yes"},
        good | {"numbers": "ab"},
        good | {"labels": [1]},
        good | {"formula": []},
        good | {"error": "E"},
        good | {"prediction": 1},
        good | {"more": 1},
        {"uncertainty": "u"},
    ):
        with pytest.raises(DamagedFileError, match="damaged"):
            Roles.from_dict(bad)


def test_no_column_is_looked_for_among_all_others(monkeypatch):
    """What is done once a column must not take longer the more columns there are."""
    made = []
    schema = pl.DataFrame.schema

    def count(frame):
        made.append(frame.width)
        return schema.fget(frame)

    monkeypatch.setattr(pl.DataFrame, "schema", property(count))
    looks = []
    for width in (50, 100):
        made.clear()
        table = RawTable(FRAME.with_columns(**{f"x{i}": 1 for i in range(width)}))
        roles = Choice(all_features=True).find(table)
        assert len(roles.numbers) > width
        Expected(roles, Choice()).find(table)
        looks.append(len(made))
    assert looks[0] == looks[1]
