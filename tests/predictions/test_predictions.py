"""Predictions: checked once, typed from then on, and the same by every door."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.exceptions import ColumnError, IndexColumnWarning, InvalidInputError

RNG = np.random.default_rng(0)
N = 400
U = RNG.lognormal(sigma=0.4, size=N)
X = RNG.normal(size=N)
PHASE = RNG.choice(["gas", "liquid"], N)
PREDICTED = RNG.normal(size=N)
ERROR = RNG.normal(size=N) * U * np.where(PHASE == "gas", 2.0, 1.0)
SIGMA = U**2.5 / 10
VARIANCE, SMALL = SIGMA**2, SIGMA * RNG.normal(size=N)
TRUTH = PREDICTED + ERROR
TABLE = pl.DataFrame({"y_true": TRUTH, "pred": PREDICTED, "std": U, "x": X, "p": PHASE})


def everything(**others):
    features = {"x": X, "phase": PHASE}
    return ss.Predictions(PREDICTED, U, y_true=TRUTH, features=features, **others)


def test_errors_are_truth_minus_prediction_and_z_is_kept():
    p = everything()
    np.testing.assert_allclose(p.error, ERROR, atol=1e-12)
    np.testing.assert_allclose(p.z, ERROR / U, atol=1e-12)
    assert p.z is p.z
    assert len(p) == N
    assert "400 rows" in repr(p)
    assert "x, phase" in repr(p)


def test_verdicts_on_predictions_are_those_on_arrays():
    p = ss.Predictions(error=ERROR, y_std=U, features={"x": X, "phase": PHASE})
    ours = ss.validate(p, n_draws=100)
    theirs = ss.validate(ERROR, U, {"x": X, "phase": PHASE}, n_draws=100)
    assert str(ours) == str(theirs)


def test_what_stands_in_predictions_must_not_be_given_again():
    groups = np.arange(N) // 4
    p = everything(groups=groups)
    with pytest.raises(InvalidInputError, match=r"`groups`.*twice"):
        ss.validate(p, groups=groups)
    with pytest.raises(InvalidInputError, match="errors"):
        ss.validate(ss.Predictions(PREDICTED, U))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "`y_std` must be given"),
        ({"y_std": U, "y_true": TRUTH}, "`y_true` needs `y_pred`"),
        (
            {"y_pred": PREDICTED, "y_std": U, "y_true": TRUTH, "error": ERROR},
            "not both",
        ),
        (
            {"y_std": -U, "error": ERROR},
            r"`y_std` must be strictly positive; 400 of 400",
        ),
        ({"y_std": U, "error": ERROR[1:]}, "same number of rows; found 399 and 400"),
        ({"y_std": U, "weights": -U}, "`weights` must be at least 0"),
        ({"y_std": U, "groups": [None] * N}, "label for every row; 400 of 400"),
        ({"y_std": U, "features": {"S": X, "u": X}}, 'column named "u"'),
        ({"y_std": U, "features": {"x": np.append(X[1:], np.inf)}}, "row 399: inf"),
        ({"y_std": U, "time": X[1:]}, "`time`"),
    ],
)
def test_bad_columns_are_named(given, words):
    with pytest.raises(InvalidInputError, match=words):
        ss.validate(ss.Predictions(**given))


def test_rows_of_weight_0_are_left_out():
    weights = np.where(np.arange(N) < 100, 0.0, 1.0)
    p = everything(weights=weights)
    assert len(p) == 300
    np.testing.assert_array_equal(p.y_pred, PREDICTED[100:])


# --- which column is what -----------------------------------------------------------


def test_a_table_with_plain_names_needs_no_more():
    p = ss.Predictions.from_frame(TABLE, features=["x", "p"])
    np.testing.assert_allclose(p.error, ERROR, atol=1e-12)
    assert p.names == ("u", "x", "p")
    same = ss.Predictions.from_frame(TABLE.to_pandas(), features="all")
    assert same.names == ("u", "x")


@pytest.mark.parametrize("name", ["uE", "uq", "std_pred", "y_std", "u (eV)", "Sigma"])
def test_uncertainties_are_known_by_the_names_of_the_field(name):
    table = TABLE.rename({"std": name, "y_true": "target"})
    p = ss.Predictions.from_frame(table)
    np.testing.assert_array_equal(p.uncertainty, U)
    np.testing.assert_allclose(p.error, ERROR, atol=1e-12)


def test_new_rows_need_no_truth():
    p = ss.Predictions.from_frame(TABLE.drop("y_true"))
    assert p.error is None
    np.testing.assert_array_equal(p.y_pred, PREDICTED)


def test_a_letter_beside_its_prediction_is_a_quantity_and_no_error():
    table = pl.DataFrame({"E": TRUTH, "E_pred": PREDICTED, "u": U})
    with pytest.raises(ColumnError, match=r"'E' .* 'E_pred'.*`error=") as told:
        ss.Predictions.from_frame(table)
    assert told.value.role == "error"
    assert told.value.columns == ("E",)
    p = ss.Predictions.from_frame(table, y_true="E", y_pred="E_pred")
    np.testing.assert_allclose(p.error, ERROR, atol=1e-12)


@pytest.mark.parametrize("first", ["", "Unnamed: 0", "row"])
def test_a_column_that_counts_rows_is_an_index_and_no_feature(first):
    numbers = np.arange(N)
    table = pd.DataFrame({first: numbers, "error": ERROR, "u": U, "x": X})
    with pytest.warns(IndexColumnWarning, match="index"):
        p = ss.Predictions.from_frame(table, features="all")
    assert p.names == ("u", "x")
    if first == "row":
        p = ss.Predictions.from_frame(table, features=["row", "x"])
        assert p.names == ("u", "row", "x")


def test_a_column_that_is_not_there_is_told_with_the_nearest():
    with pytest.raises(ColumnError, match=r"`y_std`.*'sdt'.*Did you mean 'std'"):
        ss.Predictions.from_frame(TABLE, y_std="sdt")


def test_labels_groups_weights_and_times_are_columns():
    table = TABLE.with_columns(
        g=pl.Series(np.arange(N) // 2), w=pl.Series(np.tile([1.0, 3.0], N // 2))
    )
    p = ss.Predictions.from_frame(
        table, features="all", labels=["p"], groups="g", weights="w"
    )
    assert p.names == ("u", "x", "p")
    assert p.categories[2] == ("gas", "liquid")
    assert np.unique(p.groups).size == N // 2
    np.testing.assert_array_equal(p.weights, table["w"])
    variances = TABLE.with_columns(var=pl.col("std") ** 2).drop("std")
    q = ss.Predictions.from_frame(variances)
    np.testing.assert_allclose(q.uncertainty, U)


# --- labels are codes ---------------------------------------------------------------


def test_groups_of_large_whole_numbers_stay_apart():
    groups = 2**60 + np.arange(N)
    assert np.unique(everything(groups=groups).groups).size == N
    # as independent rows, each of which is a group of its own
    ours = ss.validate(ERROR, U, groups=groups, n_draws=100)
    alone = ss.validate(ERROR, U, groups=np.arange(N), n_draws=100)
    assert str(ours) == str(alone)


def test_labels_of_large_whole_numbers_stay_apart():
    label = 2**60 + np.repeat([1, 2], N // 2)
    table = pl.DataFrame({"u": np.ones(N), "label": label})
    error = np.repeat([1.0, 3.0], N // 2) * np.tile([1, -1], N // 2)
    scaler = ss.CategoryScaling("label").fit(table, error)
    assert scaler.predict(table)[[0, -1]].tolist() == [1.0, 3.0]


def test_one_endless_label_among_many_rows_costs_nothing():
    n = 100_000
    label = ["a", "b"] * (n // 2)
    label[7] = "x" * 10**6
    error = np.tile([1.0, -1.0, 2.0, -2.0], n // 4)
    p = ss.Predictions(error=error, y_std=np.ones(n), features={"kind": label})
    assert len(p.categories[1]) == 3
    table = pl.DataFrame({"u": np.ones(n), "kind": label})
    assert ss.CategoryScaling("kind").fit(table, error).predict(table).shape == (n,)
    assert ss.scorecard(error, np.ones(n), {"kind": label}).to_dict()["S_kind"] >= 0


def test_null_and_the_label_missing_differ():
    label = [None, "missing"] * (N // 2)
    table = pl.DataFrame({"u": np.ones(N), "label": label})
    error = np.where(np.arange(N) % 2, 3.0, 1.0) * np.tile([1, 1, -1, -1], N // 4)
    scaler = ss.CategoryScaling("label").fit(table, error)
    assert scaler.predict(table)[:2].tolist() == [1.0, 3.0]


# --- one look -----------------------------------------------------------------------

DOORS = {
    "fit": lambda u, e: ss.TemperatureScaling().fit(u, e),
    "validate": lambda u, e: ss.validate(e, u, n_draws=50, joint=False),
}


@pytest.mark.filterwarnings("error::sigmascale.exceptions.LikelySlipWarning")
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize(
    ("u", "error", "kind", "words"),
    [
        (U, np.abs(ERROR), "AbsoluteErrorsWarning", "400 errors is negative"),
        (VARIANCE, SMALL, "VarianceNotUncertaintyWarning", "square root"),
        (1000 * U, ERROR, "UnitsWarning", "times too large.*eV and meV"),
        (U / 1000, ERROR, "UnitsWarning", "times too small"),
        (np.append(U[1:], 9999.0), ERROR, "SentinelWarning", "9999 in 1 of 400"),
        (U, np.append(ERROR[1:], 9998.0), "SentinelWarning", "1 of 400 rows"),
        (U, ERROR + 50, "TargetsNotErrorsWarning", "targets or predictions"),
    ],
)
def test_fit_and_validate_warn_of_the_same_slips(door, u, error, kind, words):
    with pytest.raises(getattr(ss.exceptions, kind), match=words):
        door(u, error)


def test_swapped_columns_are_told():
    with pytest.raises(InvalidInputError, match="swapped"):
        ss.validate(U, ERROR)
    with pytest.raises(InvalidInputError, match="swapped"):
        ss.TemperatureScaling().fit(ERROR, U)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [1000, 100_000])
def test_ordinary_sets_are_not_odd(n):
    rng = np.random.default_rng(n)
    u, x = rng.lognormal(size=n), rng.integers(0, 9999, n)
    error = rng.standard_t(4, n) * u
    ss.TemperatureScaling().fit(np.column_stack([u, x]), error)


def test_repeats_are_found_among_many_rows():
    n = 200_000
    rng = np.random.default_rng(0)
    u = np.repeat(rng.lognormal(size=n // 4), 4)
    with pytest.warns(ss.exceptions.RepeatedRowsWarning, match="each in 4 of them"):
        ss.TemperatureScaling().fit(u, rng.normal(size=n) * u)
