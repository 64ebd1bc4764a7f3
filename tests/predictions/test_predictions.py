"""Predictions are checked where they are made, and never change."""

import copy
import datetime
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import (
    InvalidInputError,
    NotANumberError,
    ZeroUncertaintyWarning,
)
from sigmascale.predictions.predictions import check_predictions

N = 12
RNG = np.random.default_rng(0)
Y_PRED = RNG.normal(size=N)
Y_STD = RNG.uniform(0.5, 2, N)
Y_TRUE = Y_PRED + Y_STD * RNG.normal(size=N)
FEATURES = {
    "mass": np.append(np.nan, np.arange(N - 1.0)),
    "kind": np.array(["gas", None, "alloy"] * 4, dtype=object),
    "flag": np.array([True, False] * 6),
    "id": np.arange(N),
}


def made(**changes):
    given = {"y_true": Y_TRUE, "features": FEATURES} | changes
    return ss.Predictions(Y_PRED, Y_STD, **given)


def same(p, q):
    for name in ("y_pred", "y_std", "y_true", "error", "groups", "weights", "time"):
        np.testing.assert_array_equal(getattr(p, name), getattr(q, name))
    assert list(p.features) == list(q.features)
    for name, column in p.features.items():
        assert column.dtype == q.features[name].dtype
        np.testing.assert_array_equal(column, q.features[name])
    assert p.categories == q.categories


# -- what was given comes back ---------------------------------------------------------


def test_what_was_given_comes_back():
    p = made(groups=["b", "a"] * 6, weights=np.arange(1.0, N + 1))
    np.testing.assert_array_equal(p.y_true, Y_TRUE)
    np.testing.assert_array_equal(p.y_pred, Y_PRED)
    np.testing.assert_array_equal(p.y_std, Y_STD)
    np.testing.assert_array_equal(p.error, Y_TRUE - Y_PRED)
    np.testing.assert_array_equal(p.z, (Y_TRUE - Y_PRED) / Y_STD)
    np.testing.assert_array_equal(p.z2, p.z**2)
    np.testing.assert_array_equal(p.abs_z, np.abs(p.z))
    assert p.features["kind"].tolist() == ["gas", None, "alloy"] * 4
    assert p.features["flag"].tolist() == ["True", "False"] * 6
    assert p.features["id"].tolist() == FEATURES["id"].tolist()
    assert p.groups.tolist() == [1, 0] * 6
    again = {x: getattr(p, x) for x in ("y_true", "features", "groups", "weights")}
    same(ss.Predictions(p.y_pred, p.y_std, **again), p)
    part = p.take(np.arange(3, 9))
    again = {x: getattr(part, x) for x in ("y_true", "features", "groups")}
    assert part.features["kind"].tolist() == p.features["kind"][3:9].tolist()
    assert len(ss.Predictions(part.y_pred, part.y_std, **again)) == 6


def test_errors_may_take_the_place_of_truth_and_prediction():
    p = ss.Predictions(y_std=Y_STD, error=Y_TRUE - Y_PRED)
    assert p.y_pred is None
    assert p.y_true is None
    np.testing.assert_array_equal(p.z, made().z)
    np.testing.assert_array_equal(p.target, p.error)
    both = ss.Predictions(Y_PRED, Y_STD, error=Y_TRUE - Y_PRED)
    np.testing.assert_allclose(both.target, Y_TRUE)
    assert ss.Predictions(Y_PRED, Y_STD).error is None


def test_nothing_changes_behind_their_back():
    y_true, y_pred, u, x = (each.copy() for each in (Y_TRUE, Y_PRED, Y_STD, Y_STD))
    w, g, t = np.arange(1.0, N + 1), np.arange(N) // 2, np.arange(N * 1.0)
    p = ss.Predictions(
        y_pred, u, y_true=y_true, features={"x": x}, weights=w, groups=g, time=t
    )
    expected = p.z.copy()
    for array in (y_true, y_pred, u, x, w, g, t):
        array[:] = 7
    np.testing.assert_array_equal(p.error / p.y_std, expected)
    np.testing.assert_array_equal(p.features["x"], Y_STD)
    kept = [p.y_true, p.y_pred, p.y_std, p.error, p.z, p.z2, p.abs_z, p.weights, p.time]
    for array in (*kept, p.squared_error, p.groups, *p.columns, *p.features.values()):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError, match="never change"):
        p.error = y_true
    for again in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        same(again, p)
        assert not again.error.flags.writeable
    p.features["x"] = None
    assert p.features["x"] is not None


def test_errors_follow_predictions_that_are_changed():
    for p in (made(), ss.Predictions(Y_PRED, Y_STD, error=Y_TRUE - Y_PRED)):
        q = p._with(y_pred=Y_PRED + 1.0, y_std=2 * Y_STD)
        np.testing.assert_allclose(q.error, p.error - 1, atol=1e-12)
        np.testing.assert_allclose(q.z, (p.error - 1) / (2 * Y_STD), atol=1e-12)
        np.testing.assert_array_equal(p.y_pred, Y_PRED)


def test_words_say_what_there_is():
    p = made(groups=np.arange(N) // 3, weights=np.arange(N))
    assert repr(made()).startswith("Predictions: 12 rows, true values known; features:")
    assert "4 groups" in repr(p)
    assert "11 rows" in repr(p)
    assert "errors known" in repr(ss.Predictions(y_std=Y_STD, error=Y_STD))
    html = made(features={"<b>": Y_STD})._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;" in html


def test_columns_are_named_or_counted():
    p = made()
    assert p.names == ("u", "mass", "kind", "flag", "id")
    assert p.position("kind") == p.position(2) == p.position(-3) == 2
    assert p.with_features(["kind", "mass"]).names == ("u", "kind", "mass")
    assert p.is_labelled("kind")
    assert p.labels("kind").labels == ("alloy", "gas", None)
    for key in ("colour", 7, -6, True, 1.5, None):
        with pytest.raises(InvalidInputError, match=r"by.*must name a column"):
            p.position(key)
    with pytest.raises(NotANumberError, match=r"`kind` must hold numbers.*'alloy'"):
        p.numbers("kind")
    with pytest.raises(InvalidInputError, match=r"`mass` must be finite.*row 0"):
        p.numbers("mass")


def test_the_door_of_every_function_asks_for_what_it_needs():
    p = made()
    assert check_predictions(p) is p
    for wrong in (Y_TRUE, (Y_STD, Y_TRUE), None, "p"):
        with pytest.raises(InvalidInputError, match=r"ss\.Predictions\(") as found:
            check_predictions(wrong)
        assert found.value.code == "no-predictions"
    with pytest.raises(InvalidInputError, match="`y_true` or `error`"):
        check_predictions(ss.Predictions(Y_PRED, Y_STD))
    check_predictions(ss.Predictions(Y_PRED, Y_STD), errors=False)
    left_out = made(weights=np.append(0, np.ones(N - 1)))
    check_predictions(left_out, complete=True)
    with pytest.raises(InvalidInputError, match=r"`mass`.*row 0"):
        check_predictions(p, complete=True)
    large = made(features={"x": np.append(np.zeros(N - 1), 1e39)})
    with pytest.raises(InvalidInputError, match=r"`x`.*1e\+38.*row 11"):
        check_predictions(large, complete=True)


# -- features --------------------------------------------------------------------------


def test_features_come_in_every_form_and_mean_the_same():
    table = {
        "x": [1.0, np.nan, 3.0],
        "k": ["a", None, "b"],
        "b": [True, None, False],
        "i": [1, 2, 3],
    }
    frames = [
        table,
        pd.DataFrame(table),
        pd.DataFrame(table).astype({"k": "category", "i": "Int64", "b": "boolean"}),
        pl.DataFrame(table),
        pl.DataFrame(table).with_columns(
            pl.col("k").cast(pl.Categorical), pl.col("x").fill_nan(None)
        ),
        pa.table(pl.DataFrame(table).to_dict(as_series=False)),
    ]
    expected = {
        "x": [1.0, np.nan, 3.0],
        "k": ["a", None, "b"],
        "b": ["True", None, "False"],
        "i": [1.0, 2.0, 3.0],
    }
    for frame in frames:
        p = ss.Predictions(y_std=np.ones(3), features=frame)
        for name, values in expected.items():
            found = p.features[name]
            assert found.dtype == (object if name in "kb" else float)
            np.testing.assert_array_equal(found, np.array(values, dtype=found.dtype))
    array = ss.Predictions(y_std=np.ones(3), features=np.ones((3, 2)))
    assert list(array.features) == ["X1", "X2"]
    assert list(ss.Predictions(y_std=[1.0], features=[2.0]).features) == ["X1"]


def test_numbers_of_every_kind_are_numbers():
    masked = np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])
    for column, expected in [
        (masked, [1, np.nan, 3]),
        (np.array([1, None, 3], dtype=object), [1, np.nan, 3]),
        ([Decimal("1.5"), Decimal(2), None], [1.5, 2, np.nan]),
        (pl.Series([Decimal("1.5"), None, Decimal(3)]), [1.5, np.nan, 3]),
        (pd.Series([1, None, 3], dtype="Int64"), [1, np.nan, 3]),
        (pd.Series([1, pd.NA, 3], dtype=object), [1, np.nan, 3]),
        (pl.Series([1, None, 3], dtype=pl.UInt8), [1, np.nan, 3]),
        (np.array([1, 2, 3], dtype=np.float16), [1, 2, 3]),
        (np.array([1, 2, 3], dtype=np.uint64), [1, 2, 3]),
        ([None, None, None], [np.nan] * 3),
    ]:
        found = ss.Predictions(y_std=np.ones(3), features={"x": column}).features["x"]
        assert found.dtype == float
        np.testing.assert_array_equal(found, expected)


def test_labels_of_every_kind_stay_apart():
    for column, expected in [
        (["NA", "nan", "None"], ["NA", "nan", "None"]),
        (["01", "1", "1.0"], ["01", "1", "1"]),
        (pd.Series([1, 2, 1]).astype("category"), ["1", "2", "1"]),
        (pl.Series(["b", "a", "b"], dtype=pl.Enum(["b", "a"])), ["b", "a", "b"]),
        (np.array(["x", "y" * 10, "x"]), ["x", "y" * 10, "x"]),
    ]:
        found = ss.Predictions(y_std=np.ones(3), features={"k": column}).features["k"]
        assert found.dtype == object
        assert found[: len(expected)].tolist() == expected
        assert len(set(found.tolist())) >= 2


def test_features_that_cannot_be_used_are_refused_by_name_and_row():
    day = datetime.date(2024, 5, 1)
    for column, match in [
        (["1", 2.0, 3.0], r"`x` must hold numbers; row 0 is '1'"),
        ([1.0, True, 3.0], r"`x` must hold numbers; row 1 is True"),
        ([1.0, np.inf, 3.0], r"`x` must be finite.*row 1"),
        ([day] * 3, r"`x` must hold numbers.*2024"),
        (np.array(["2024-05-01"] * 3, "M8[ns]"), r"`x` must hold numbers.*2024-05"),
        ([1.0, 2.0], r"`x` must have the same number of rows.*3 and 2|`y_std` and `x`"),
        ([[1.0, 2.0], [2.0, 1.0], [3.0, 0.0]], r"`x` must have shape \(n,\)"),
        ([1.0, [2.0], 3.0], r"`x`"),
        ([1.0, 2j, 3.0], r"`x` must hold numbers; row [01]"),
        ([1.0, object(), 3.0], r"`x` must hold numbers; row 1"),
        ([b"a", b"b", b"c"], r"`x` must hold numbers; row 0 is b'a'"),
    ]:
        with pytest.raises(InvalidInputError, match=match) as found:
            ss.Predictions(y_std=np.ones(3), features={"x": column})
        assert len(str(found.value)) < 400
    for name in ("u", "bias", "joint"):
        with pytest.raises(InvalidInputError, match=f'"{name}".*Rename'):
            ss.Predictions(y_std=[1.0], features={name: [1.0]})
    with pytest.raises(InvalidInputError, match=r"lazy frame.*frames"):
        ss.Predictions(y_std=[1.0], features=pl.LazyFrame({"x": [1.0]}))


# -- values ----------------------------------------------------------------------------


def test_bad_numbers_are_refused_with_their_place_and_a_remedy():
    def at(value, row=3):
        column = Y_STD.astype(object)
        column[row] = value
        return column

    for name, column, match in [
        ("y_std", at(0.0), r"`y_std` must be positive; 1 of 12.*row 3: 0.*min_std"),
        ("y_std", at(-1.0), r"`y_std` must be positive.*row 3: -1"),
        ("y_std", at(np.nan), r"`y_std` must be finite.*row 3: nan"),
        ("y_std", at(None), r"`y_std` must be finite.*row 3: nan"),
        ("y_std", at(np.inf), r"`y_std` must be finite.*row 3: inf"),
        ("y_std", at(1e-80), r"`y_std` must be between.*row 3.*unit"),
        ("y_std", at(1e80), r"`y_std` must be between.*row 3.*unit"),
        ("y_std", at("1_000"), r"`y_std` must hold numbers; row 3 is '1_000'"),
        ("y_std", at(True), r"`y_std` must hold numbers; row 3 is True"),
        ("y_std", at(1j), r"`y_std` must hold numbers; row 3"),
        ("y_true", at(np.nan), r"`y_true` must be finite.*row 3"),
        ("y_true", at(1e80), r"`error` must be at most.*row 3.*unit"),
        ("y_pred", at("x" * 500), r"`y_pred` must hold numbers; row 3 is 'x"),
        ("error", at(-np.inf), r"`error` must be finite.*row 3"),
        ("weights", at(-1.0), r"`weights` must be at least 0.*row 3"),
        ("weights", np.zeros(N), r"`weights` must have a positive value"),
        ("groups", at(None), r"`groups` must be a label.*row 3.*of its own"),
        ("groups", at(np.nan), r"`groups` must be a label.*row 3"),
        ("y_std", Y_STD[:5], r"same number of rows; found 5 and 12"),
        ("weights", Y_STD[:5], r"`y_std` and `weights`.*12 and 5"),
        ("groups", Y_STD[:5], r"`y_std` and `groups`.*12 and 5"),
        ("y_true", [], r"`y_true` must have at least 1 row"),
        ("y_std", np.full(N, "2024-01-01", "M8[D]"), r"`y_std`.*2024-01-01"),
        ("y_std", np.ones((N, 2, 2, 2)), r"`y_std` must be one number"),
        ("y_pred", np.ones((N, 2, 2)), r"`y_pred` must have shape"),
        ("y_true", [[1.0], [1.0, 2.0]], r"`y_true`.*equal length"),
    ]:
        given = {"y_pred": Y_PRED, "y_std": Y_STD, "y_true": Y_TRUE} | {name: column}
        if name == "error":
            del given["y_true"]
        with pytest.raises(InvalidInputError, match=match) as found:
            ss.Predictions(**given)
        assert len(str(found.value)) < 350
    with pytest.raises(InvalidInputError, match="positive") as found:
        ss.Predictions(y_std=[1.0, 0.0, -1.0])
    assert found.value.code == "not-positive"
    assert found.value.fields == {"name": "y_std", "row": 1, "count": 2}
    both = {"y_pred": [1.0], "y_std": [1.0], "y_true": [1.0], "error": [0.0]}
    for names, match in [
        (["y_pred"], "`y_std` must be given"),
        (["y_std", "y_true"], "`y_true` needs `y_pred`"),
        (both, "not both"),
    ]:
        with pytest.raises(InvalidInputError, match=match):
            ss.Predictions(**{name: both[name] for name in names})


def test_min_std_lifts_and_counts():
    with pytest.warns(ZeroUncertaintyWarning, match=r"2 of 3.*0.5"):
        p = ss.Predictions(y_std=[0.0, -1.0, 2.0], min_std=0.5)
    assert p.y_std.tolist() == [0.5, 0.5, 2.0]
    assert ss.Predictions(y_std=[2.0], min_std=0.5).y_std == 2  # no warning
    for wrong in (0, -1, np.nan, np.inf, "1", True):
        with pytest.raises(InvalidInputError, match="`min_std`"):
            ss.Predictions(y_std=[1.0], min_std=wrong)


def test_rows_in_another_order_are_refused():
    index = np.arange(N)[::-1]
    y_true, u = pd.Series(Y_TRUE), pd.Series(Y_STD, index=index)
    with pytest.raises(InvalidInputError, match=r"another order.*\.loc\[") as found:
        ss.Predictions(Y_PRED, u, y_true=y_true)
    assert found.value.code == "other-order"
    frame = pd.DataFrame({"x": Y_STD}, index=list("abcdefghijkl"))
    shuffled = pd.Series(Y_TRUE, index=list("lkjihgfedcba"))
    with pytest.raises(InvalidInputError, match="another order"):
        ss.Predictions(Y_PRED, Y_STD, y_true=shuffled, features=frame)
    other = pd.Series(Y_STD, index=index + 100)  # of another table, by position
    ss.Predictions(Y_PRED, other, y_true=y_true)
    mixed = pd.Series(Y_STD, index=["a", 1] * 6)
    ss.Predictions(Y_PRED, mixed, y_true=y_true)


# -- weights, groups, time -------------------------------------------------------------


def test_weights_are_importance_weights_in_their_effective_number():
    w = np.array([1.0, 2.0, 3.0, 0.0])
    p = ss.Predictions(y_std=np.ones(4), error=[1.0, 2.0, 3.0, 9.0], weights=w)
    assert len(p) == 3
    assert p.places.tolist() == [0, 1, 2]
    np.testing.assert_allclose(p.weights, w[:3] * 6 / 14)
    assert p.n_effective == pytest.approx(36 / 14)
    assert p.mean(p.z2) == pytest.approx((1 + 8 + 27) / 6)
    for scale in (1e-300, 1e-7, 3.0, 1e300):
        other = ss.Predictions(y_std=np.ones(4), weights=scale * w)
        np.testing.assert_allclose(other.weights, p.weights, rtol=1e-12)
    alike = ss.Predictions(y_std=np.ones(4), weights=np.full(4, 7.0))
    assert alike.weights is None
    assert alike.n_effective == 4
    with pytest.raises(InvalidInputError, match="row 2"):
        ss.Predictions(y_std=[1.0, 1.0, 0.0], weights=[0, 1, 2])


@given(st.lists(st.floats(0.1, 100), min_size=2, max_size=30))
def test_rounding_weights_changes_them_by_rounding_alone(weights):
    w = np.array(weights)
    for other in (np.round(w, 1), w + 1e-7, np.round(w) + 1e-7):
        p, q = (ss.Predictions(y_std=np.ones(w.size), weights=x) for x in (w, other))
        a, b = (np.ones(w.size) if x.weights is None else x.weights for x in (p, q))
        if a.size == b.size:
            change = np.abs(other - w).max() / w.min()
            assert np.abs(b / a - 1).max() <= 4 * change + 1e-12
        again = ss.Predictions(y_std=p.y_std, weights=p.weights)
        np.testing.assert_array_equal(again.weights, p.weights)


def test_groups_are_numbered_without_gaps_whatever_their_names():
    names = [("b", "a"), (2**60 + 1, 2**60), (1.5, -3.0), (True, False)]
    names += [(datetime.date(2024, 1, 2), datetime.date(2024, 1, 1))]
    for first, second in names:
        column = np.array([first, second, first, None], dtype=object)[:3]
        p = ss.Predictions(y_std=np.ones(3), groups=column)
        assert p.groups.tolist() == [1, 0, 1]
    p = ss.Predictions(y_std=np.ones(4), groups=[5, 7, 9, 7])
    assert p.take(np.array([1, 2, 3])).groups.tolist() == [0, 1, 0]


def test_times_of_each_kind_become_numbers_or_dates():
    noon = datetime.datetime(2024, 5, 1, 12)
    zone = datetime.timezone(datetime.timedelta(hours=2))
    for times, expected in [
        (["2024-05-01", "2024-05-01T12:00"], "2024-05-01T12:00"),
        ([noon.date(), noon], "2024-05-01T12:00"),
        (pd.Series([noon, noon]), "2024-05-01T12:00"),
        (pd.Series([noon, noon]).dt.tz_localize(zone), "2024-05-01T10:00"),
        (pl.Series([noon, noon]), "2024-05-01T12:00"),
        (["2024-05-01T12:00+02:00", "2024-05-01T12:00Z"], "2024-05-01T12:00"),
        (np.array(["2024-05", "2024-05"], "M8[M]"), "2024-05-01"),
    ]:
        p = ss.Predictions(y_std=np.ones(2), time=times)
        assert p.time.dtype.kind == "M"
        assert p.time[1] == np.datetime64(expected)
    assert ss.Predictions(y_std=np.ones(2), time=[3, 4]).time.tolist() == [3.0, 4.0]


def test_times_that_cannot_be_ordered_are_refused_with_their_row():
    noon = datetime.datetime(2024, 5, 1, 12)
    for times, row in [
        (["2024-05-01", None], 1),
        (["2024-05-01", "soon"], 1),
        (["2024-05-01", ""], 1),
        (["12:00", "13:00"], 0),
        ([1.0, np.nan], 1),
        ([1.0, noon], 0),
        ([noon, 1.0], 1),
        (np.array(["2024-05-01", "NaT"], "M8[D]"), 1),
        (pd.Series([noon, None]), 1),
        ([noon, pd.NaT], 1),
        ([True, False], 0),
        ([1, None], 1),
        (["2024-05-01T12:00Z", "2024-05-01T12:00"], 1),
        ([noon, noon.replace(tzinfo=datetime.UTC)], 1),
        ([datetime.timedelta(1), datetime.timedelta(2)], 0),
    ]:
        with pytest.raises(InvalidInputError, match=f"`time`.*row {row}"):
            ss.Predictions(y_std=np.ones(2), time=times)


def test_the_distributions_follow_the_rows():
    p = made()._with(recalibrated=np.arange(N))
    assert p.take(np.array([5, 1])).distributions.tolist() == [5, 1]


def test_rows_as_they_were_predicted_have_normal_distributions_or_their_quantiles():
    p = made()
    assert p.recalibrated is None
    found = p.distributions.quantile([0.1, 0.5, 0.9])
    expected = stats.norm.ppf([0.1, 0.5, 0.9], p.y_pred[:, None], p.y_std[:, None])
    np.testing.assert_allclose(found, expected)
    vectors = ss.Predictions(np.zeros((2, 3)), [1.0, 2.0])
    radii = np.sqrt(stats.chi2.ppf(0.9, 3)) * vectors.y_std
    np.testing.assert_allclose(vectors.distributions.radius(0.9), radii)
    quantiles = ss.Predictions.from_quantiles([0.1, 0.5, 0.9], [[1.0, 2.0, 5.0]])
    assert quantiles.distributions.interval(0.8).tolist() == [[1.0, 5.0]]


# -- whatever comes, it is taken or refused in a sentence ------------------------------

CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(width=64),
    st.text(max_size=5),
    st.binary(max_size=3),
    st.decimals(-1000, 1000, places=3),  # Polars panics at others
    st.complex_numbers(),
    st.dates(),
    st.datetimes(),
    st.just(pd.NA),
    st.just(pd.NaT),
    st.lists(st.integers(), max_size=2),
)
PARTS = st.sampled_from(["y_pred", "y_std", "y_true", "x", "groups", "weights", "time"])


def columns_of(cells):
    """Return cells as columns of several libraries, where these take them."""
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    yield cells
    yield column
    yield np.ma.masked_array(column, [i % 2 == 1 for i in range(len(cells))])
    for make in (pd.Series, pl.Series, pa.array, np.array):
        try:
            yield make(cells)
        except Exception:  # what the library does not take is not our concern
            continue


@given(st.lists(CELLS, max_size=4), PARTS)
def test_odd_columns_are_taken_or_refused_and_never_crash(cells, part):
    n, longest = len(cells), 0
    for column in columns_of(cells):
        given = {"y_pred": np.zeros(n), "y_std": np.ones(n), "y_true": np.ones(n)}
        if part == "x":
            given["features"] = {"x": column}
        else:
            given[part] = column
        try:
            p = ss.Predictions(**given)
        except InvalidInputError as problem:
            longest = max(longest, len(str(problem)))
            continue
        assert 1 <= len(p) <= n
        assert np.isfinite(p.z2).all()
        repr(p), p._repr_html_()
    assert longest < 500


def test_whole_numbers_that_floats_do_not_tell_apart_are_refused():
    u = np.ones(3)
    assert ss.Predictions(y_std=u, features={"id": [2**53, 1, -(2**53)]}).n_rows == 3
    with pytest.raises(InvalidInputError, match=r"`id`.*row 1.*text"):
        ss.Predictions(y_std=u, features={"id": np.array([0, 2**60, 2**60 + 1])})


def test_weights_beside_an_enormous_one_are_as_good_as_none():
    weights = [1e308, 1.0, 1e-300, 5e307]
    p = ss.Predictions(y_std=np.ones(4), error=np.ones(4), weights=weights)
    assert p.n_rows == 2
    assert np.isfinite(p.weights).all()


def test_names_that_are_the_same_as_text_are_refused():
    with pytest.raises(InvalidInputError, match="different names"):
        ss.Predictions(y_std=[1.0, 2.0], features={1: [0.0, 1.0], "1": [2.0, 3.0]})
