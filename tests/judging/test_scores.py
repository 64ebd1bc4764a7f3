import math
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import sigmascale as ss
from sigmascale.bins.libraries import library_of
from sigmascale.exceptions import (
    FewerBinsWarning,
    InvalidInputError,
    NotANumberError,
    ZeroErrorBinWarning,
)

few_rows = pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.FewerBinsWarning",
    "ignore::sigmascale.exceptions.ZeroErrorBinWarning",
)


# --- the scores by plain loops -------------------------------------------------------


def plain_bins(keys, n_bins):
    """Return lists of row numbers: sorted rows cut at floor(k n / N + 1/2)."""
    rows = sorted(range(len(keys)), key=lambda i: keys[i])
    n = len(rows)
    cuts = [math.floor(k * n / n_bins + 0.5) for k in range(n_bins)] + [n]
    return [rows[a:b] for a, b in pairwise(cuts)]


def plain_zms(error, u):
    return sum((e / s) ** 2 for e, s in zip(error, u, strict=True)) / len(error)


def plain_nll(error, u):
    terms = [
        0.5 * (e / s) ** 2 + math.log(s) + 0.5 * math.log(2 * math.pi)
        for e, s in zip(error, u, strict=True)
    ]
    return sum(terms) / len(terms)


def plain_local(error, u, bins):
    """Return S, ENCE and UCE of rows in bins."""
    s = ence = uce = 0.0
    for rows in bins:
        z2 = sum((error[i] / u[i]) ** 2 for i in rows) / len(rows)
        mse = sum(error[i] ** 2 for i in rows) / len(rows)
        mv = sum(u[i] ** 2 for i in rows) / len(rows)
        s += abs(math.log(z2)) / len(bins)
        ence += abs(math.sqrt(mv) - math.sqrt(mse)) / math.sqrt(mv) / len(bins)
        uce += abs(mv - mse) / len(bins)
    return s, ence, uce


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    u = rng.lognormal(0, 0.5, 257)
    features = {
        "mass": rng.normal(size=257),
        "strata": rng.integers(0, 5, 257).astype(float),
        "phase": np.array(["gas", "liquid", "solid"])[rng.integers(0, 3, 257)],
    }
    return rng.normal(scale=1.5 * u), u, features


def test_average_scores_are_those_of_plain_loops(data):
    error, u, _ = data
    assert ss.zms(error, u) == pytest.approx(plain_zms(error, u), rel=1e-12)
    assert ss.nll(error, u) == pytest.approx(plain_nll(error, u), rel=1e-12)
    expected = abs(math.log(plain_zms(error, u)))
    assert ss.calibration_error(error, u) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n_bins", [1, 2, 7, 100, 257])
@pytest.mark.parametrize("by", [None, "mass", "strata"])
def test_local_scores_are_those_of_plain_loops(data, by, n_bins):
    error, u, features = data
    # rows with an equal feature are told apart by u
    keys = u if by is None else list(zip(features[by], u, strict=True))
    s, ence, uce = plain_local(error, u, plain_bins(keys, n_bins))
    options = {"by": None if by is None else features[by], "n_bins": n_bins}
    assert ss.local_calibration_error(error, u, **options) == pytest.approx(s)
    assert ss.ence(error, u, **options) == pytest.approx(ence)
    assert ss.uce(error, u, **options) == pytest.approx(uce)


def test_labels_make_one_bin_each_whatever_the_number_of_bins(data):
    error, u, features = data
    phase = features["phase"]
    bins = [[i for i in range(257) if phase[i] == label] for label in set(phase)]
    s, ence, uce = plain_local(error, u, bins)
    for n_bins in (1, 100):
        options = {"by": phase, "n_bins": n_bins}
        assert ss.local_calibration_error(error, u, **options) == pytest.approx(s)
        assert ss.ence(error, u, **options) == pytest.approx(ence)
        assert ss.uce(error, u, **options) == pytest.approx(uce)


def test_ties_orders_the_rows_with_equal_values(data):
    error, u, features = data
    strata, other = features["strata"], features["mass"]
    keys = list(zip(strata, other, strict=True))
    s, ence, uce = plain_local(error, u, plain_bins(keys, 20))
    options = {"by": strata, "n_bins": 20, "ties": other}
    assert ss.local_calibration_error(error, u, **options) == pytest.approx(s)
    assert ss.ence(error, u, **options) == pytest.approx(ence)
    assert ss.uce(error, u, **options) == pytest.approx(uce)
    assert s != pytest.approx(
        ss.local_calibration_error(error, u, by=strata, n_bins=20), rel=1e-3
    )


# --- the scorecard -------------------------------------------------------------------


def test_the_scorecard_gathers_the_single_scores(data):
    error, u, features = data
    card = ss.scorecard(error, u, features, n_bins=10)
    assert (card.n_rows, card.n_bins) == (257, 10)
    assert card.zms == pytest.approx(ss.zms(error, u), rel=1e-12)
    assert card.nll == pytest.approx(ss.nll(error, u), rel=1e-12)
    assert card.s_cal == pytest.approx(ss.calibration_error(error, u), rel=1e-12)
    for name, by in {"u": None, **features}.items():
        options = {"by": by, "n_bins": 10}
        assert card.s[name] == ss.local_calibration_error(error, u, **options)
        assert card.ence[name] == ss.ence(error, u, **options)
        assert card.uce[name] == ss.uce(error, u, **options)


def test_consistency_adaptivity_and_total_are_sums_of_the_parts(data):
    error, u, features = data
    card = ss.scorecard(error, u, features, n_bins=10)
    of_features = card.s["mass"] + card.s["strata"] + card.s["phase"]
    assert card.s_con == pytest.approx(card.s_cal + card.s["u"], rel=1e-14)
    assert card.s_ada == pytest.approx(card.s_cal + of_features, rel=1e-14)
    assert card.s_tot == pytest.approx(card.s_con + of_features, rel=1e-14)


def test_scores_have_the_names_of_the_paper(data):
    error, u, features = data
    card = ss.scorecard(error, u, {"X1": features["mass"]}, n_bins=10)
    scores = card.to_dict()
    assert list(scores) == [
        *("NLL", "ZMS", "S_cal", "S_u", "S_X1", "S_con", "S_ada", "S_tot"),
        *("ENCE_u", "ENCE_X1", "UCE_u", "UCE_X1"),
    ]
    assert scores["S_tot"] == card["S_tot"] == card.s_tot
    assert scores["S_X1"] == card.s["X1"]
    assert scores["ENCE_X1"] == card.ence["X1"]
    assert scores["UCE_u"] == card.uce["u"]
    assert all(type(value) is float for value in scores.values())
    # without features there is no adaptivity to speak of
    assert "S_ada" not in ss.scorecard(error, u, n_bins=10).to_dict()


def test_a_scorecard_can_be_read(data):
    error, u, features = data
    card = ss.scorecard(error, u, {"a<b": features["mass"]}, n_bins=10)
    assert f"S_tot         {card.s_tot:.4g}" in str(card).splitlines()
    assert "<td>S_a&lt;b</td>" in card._repr_html_()
    assert repr(card).startswith("Scorecard(n_rows=257, n_bins=10, nll=")


def test_features_may_come_as_dict_frame_array_or_single_column(data):
    error, u, features = data
    numbers = {"X1": features["mass"], "X2": features["strata"]}
    expected = ss.scorecard(error, u, numbers, n_bins=10).to_dict()
    tables = [
        pd.DataFrame(numbers, index=np.arange(257)[::-1]),
        pl.DataFrame(numbers),
        pa.table(numbers),
        np.column_stack(list(numbers.values())),
        np.column_stack(list(numbers.values())).tolist(),
        {"X1": pl.Series(numbers["X1"]), "X2": numbers["X2"].tolist()},
        {"X1": pa.array(numbers["X1"]), "X2": pd.Series(numbers["X2"], dtype="Int64")},
    ]
    for table in tables:
        assert ss.scorecard(error, u, table, n_bins=10).to_dict() == expected
    one = ss.scorecard(error, u, {"X1": numbers["X1"]}, n_bins=10)
    for column in (numbers["X1"], pl.Series(numbers["X1"]), numbers["X1"].tolist()):
        assert ss.scorecard(error, u, column, n_bins=10) == one
    assert ss.scorecard(error, u, {}, n_bins=10) == ss.scorecard(error, u, n_bins=10)


def test_columns_of_errors_and_uncertainties_may_be_of_any_library(data):
    error, u, _ = data
    expected = ss.nll(error, u)
    chunked = pa.chunked_array([error[:100], error[100:]])
    for e in (error.tolist(), pd.Series(error), pl.Series(error), chunked):
        for s in (pd.Series(u, index=range(257, 0, -1)), pl.Series(u), pa.array(u)):
            assert ss.nll(e, s) == expected


def test_labels_may_come_as_text_categories_or_objects_with_some_missing(data):
    error, u, features = data
    text = features["phase"].astype(object)
    text[::7] = None
    present = np.array(["?" if t is None else t for t in text])
    expected = ss.local_calibration_error(error, u, by=present)
    kinds = [
        text,
        text.tolist(),
        pd.Series(text),
        pd.Series(text, dtype="string"),
        pd.Series(text, dtype="category"),
        pl.Series(text.tolist(), dtype=pl.String),
        pl.Series(text.tolist(), dtype=pl.Categorical),
        pa.array(text.tolist()),
        pa.chunked_array([text.tolist()[:9], text.tolist()[9:]]),
        np.ma.array(present, mask=present == "?"),
    ]
    for by in kinds:
        assert ss.local_calibration_error(error, u, by=by) == pytest.approx(expected)


def test_text_and_categories_are_labels_even_if_they_look_like_numbers(data):
    error, u, features = data
    strata = features["strata"]
    expected = ss.local_calibration_error(error, u, by=[f"s{x}" for x in strata])
    for by in (
        strata.astype(str),
        strata.astype(str).astype(object),
        pd.Series(strata, dtype="category"),
        pl.Series(strata.astype(str)),
    ):
        assert ss.local_calibration_error(error, u, by=by) == expected


def test_numbers_in_columns_of_objects_are_numbers(data):
    error, u, features = data
    expected = ss.local_calibration_error(error, u, by=features["strata"], n_bins=9)
    for by in (
        features["strata"].astype(object),
        pl.Series(features["strata"]).cast(pl.Decimal(10, 2)),
        features["strata"].astype("uint8"),
    ):
        assert ss.local_calibration_error(error, u, by=by, n_bins=9) == expected
    truth = features["strata"] > 2
    assert ss.ence(error, u, by=truth, n_bins=9) == ss.ence(
        error, u, by=1.0 * truth, n_bins=9
    )


@pytest.mark.parametrize("name", ["u", "cal", "con", "ada", "tot"])
def test_a_feature_may_not_take_the_name_of_another_score(data, name):
    error, u, features = data
    message = f'must not have a column named "{name}": S_{name} is .*Rename it'
    with pytest.raises(InvalidInputError, match=message):
        ss.scorecard(error, u, {name: features["mass"]})


def test_two_features_may_not_have_one_name(data):
    error, u, features = data
    frame = pd.DataFrame(np.ones((257, 2)), columns=["a", "a"])
    for table in (frame, {1: features["mass"], "1": features["strata"]}):
        with pytest.raises(InvalidInputError, match=r"different names.*Rename them"):
            ss.scorecard(error, u, table)


def test_a_feature_called_error_is_checked_like_any_other(data):
    error, u, _ = data
    message = "`error` and `error` must have the same number of rows; found 257 and 3"
    with pytest.raises(InvalidInputError, match=message):
        ss.scorecard(error, u, {"error": [1.0, 2.0, 3.0]})


@pytest.mark.parametrize(
    "dates",
    [
        np.datetime64("2024-01-01") + np.arange(257),
        np.arange(257).astype("m8[s]"),
        pd.Series(pd.date_range("2024-01-01", periods=257, tz="UTC")),
        pl.Series(np.datetime64("2024-01-01", "us") + np.arange(257)),
        (np.datetime64("2024-01-01") + np.arange(257)).tolist(),
    ],
)
def test_dates_are_neither_numbers_nor_labels(data, dates):
    error, u, _ = data
    message = "`(by|when)` must hold numbers; found dates or times. Convert them"
    with pytest.raises(NotANumberError, match=message):
        ss.ence(error, u, by=dates)
    with pytest.raises(NotANumberError, match=message):
        ss.scorecard(error, u, {"when": dates})


# --- bins and zeros ------------------------------------------------------------------


def test_fewer_rows_than_bins_are_announced(data):
    error, u, _ = data
    with pytest.warns(FewerBinsWarning, match="100 bins were asked for, but 30 rows"):
        found = ss.ence(error[:30], u[:30], n_bins=100)
    assert found == ss.ence(error[:30], u[:30], n_bins=30)


def test_a_bin_of_only_zero_errors_makes_its_score_infinite_with_a_warning():
    u, error = np.array([1.0, 1, 2, 2]), np.array([0.0, 0, 2, 2])
    with pytest.warns(ZeroErrorBinWarning, match="exactly 0 in 1 of 2 bins.*fewer"):
        assert ss.local_calibration_error(error, u, n_bins=2) == math.inf
    with pytest.warns(ZeroErrorBinWarning, match="exactly 0 in 1 of 1 bins"):
        assert ss.calibration_error(0 * error, u) == math.inf
    with pytest.warns(ZeroErrorBinWarning, match="exactly 0 in 1 of 2 bins"):
        card = ss.scorecard(error, u, {"x": u}, n_bins=2)
    assert card.s_con == card.s_ada == card.s_tot == math.inf
    assert math.isfinite(card.s_cal)
    # these know what to do with an error of 0
    assert ss.ence(error, u, n_bins=2) == 0.5
    assert ss.uce(error, u, n_bins=2) == 0.5
    assert ss.zms(0 * error, u) == 0
    assert math.isfinite(ss.nll(0 * error, u))


def test_a_perfect_set_scores_0():
    u = np.linspace(1, 2, 100)
    error = u * np.where(np.arange(100) % 2, 1, -1)
    card = ss.scorecard(error, u, {"x": u[::-1]}, n_bins=10)
    assert card.zms == pytest.approx(1)
    assert card.s_tot == pytest.approx(0, abs=1e-12)
    for score in (*card.ence.values(), *card.uce.values()):
        assert score == pytest.approx(0, abs=1e-12)


def test_constant_uncertainties_and_features_are_scored():
    rng = np.random.default_rng(0)
    error, ones = rng.normal(size=1000), np.ones(1000)
    card = ss.scorecard(error, ones, {"x": ones}, n_bins=10)
    # bins of equal values hold a fair share of small and large errors
    assert card.s["u"] == card.s["x"]
    assert card.s["u"] < 0.3
    assert card.s_cal == pytest.approx(abs(np.log(np.mean(error**2))))


@pytest.mark.parametrize("n", [10_000, 10_001])
def test_tied_rows_are_dealt_out_as_if_at_random(n):
    rng = np.random.default_rng(n)
    error = rng.normal(size=n)
    tied = ss.local_calibration_error(error, np.ones(n))
    drawn = [
        ss.local_calibration_error(rng.permutation(error), np.linspace(1, 1 + 1e-9, n))
        for _ in range(200)
    ]
    assert abs(tied - np.mean(drawn)) < 4 * np.std(drawn)


# --- properties ----------------------------------------------------------------------


@st.composite
def tied_sets(draw):
    """Rows of few values each, so that ties abound, and a permutation of them."""
    n = draw(st.integers(1, 40))

    def column(least, most):
        values = st.lists(st.integers(least, most), min_size=n, max_size=n)
        return np.array(draw(values), dtype=float)

    error, u = column(-4, 4), column(1, 3)
    label = np.array(["b", "a", "c"])[column(0, 2).astype(int)]
    features = {"x": column(0, 2), "y": column(-30, 30), "label": label}
    order = np.array(draw(st.permutations(range(n))))
    return error, u, features, column(0, 1), draw(st.integers(1, 12)), order


def assert_same_scores(first, second):
    first, second = first.to_dict(), second.to_dict()
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert second[name] == pytest.approx(value, rel=1e-9, abs=1e-9), name


@few_rows
@given(tied_sets(), st.booleans())
def test_the_order_of_rows_is_irrelevant_even_with_many_ties(data, with_ties):
    error, u, features, ties, n_bins, order = data
    shuffled = {name: x[order] for name, x in features.items()}
    assert_same_scores(
        ss.scorecard(
            error, u, features, n_bins=n_bins, ties=ties if with_ties else None
        ),
        ss.scorecard(
            error[order],
            u[order],
            shuffled,
            n_bins=n_bins,
            ties=ties[order] if with_ties else None,
        ),
    )


@few_rows
@given(tied_sets(), st.floats(1e-20, 1e20))
def test_another_unit_changes_no_score_but_the_likelihood(data, c):
    error, u, features, _, n_bins, _ = data
    # other values must not become equal, nor equal ones different
    assume(np.unique(c * u).size == np.unique(u).size)
    before = ss.scorecard(error, u, features, n_bins=n_bins).to_dict()
    after = ss.scorecard(c * error, c * u, features, n_bins=n_bins).to_dict()
    assert after.pop("NLL") == pytest.approx(
        before.pop("NLL") + math.log(c), rel=1e-9, abs=1e-9
    )
    for name, value in before.items():
        # UCE is in error units squared
        unit = c**2 if name.startswith("UCE_") else 1
        assert after[name] / unit == pytest.approx(value, rel=1e-9, abs=1e-9), name


@few_rows
@given(tied_sets())
def test_the_sign_of_errors_and_the_unit_of_features_are_irrelevant(data):
    error, u, features, _, n_bins, _ = data
    other = {**features, "x": 7 + 2 * features["x"], "y": features["y"] / 1024}
    assert_same_scores(
        ss.scorecard(error, u, features, n_bins=n_bins),
        ss.scorecard(np.abs(error), u, other, n_bins=n_bins),
    )


@few_rows
@given(tied_sets())
def test_scores_are_never_negative_nor_not_a_number(data):
    error, u, features, _, n_bins, _ = data
    for name, value in (
        ss.scorecard(error, u, features, n_bins=n_bins).to_dict().items()
    ):
        assert not math.isnan(value), name
        assert value >= 0 or name == "NLL", name


wide = st.floats(1e-70, 1e70)


@few_rows
@given(st.lists(st.tuples(wide, st.floats(-1e45, 1e45)), min_size=1, max_size=20))
def test_scores_of_any_accepted_numbers_are_numbers(rows):
    u, z = map(np.array, zip(*rows, strict=True))
    error = np.clip(u * z / 1.001, -1e70, 1e70)
    x = np.clip(error, -1e38, 1e38)
    for name, value in ss.scorecard(error, u, {"x": x}).to_dict().items():
        assert not math.isnan(value), name
        assert math.isfinite(value) or name.startswith("S_"), name


# --- size ----------------------------------------------------------------------------


def count_steps(function):
    """Return how many instructions the interpreter takes."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        frame.f_trace_opcodes = True
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "compute",
    [
        lambda e, u, x: ss.scorecard(
            e, u, {"x": x, "u rounded": np.round(u, 1)}, n_bins=20
        ),
        lambda e, u, x: ss.TemperatureScaling().fit(u, e).predict(u),
        lambda e, u, x: ss.IsotonicScaling().fit(u, e).predict(u),
        lambda e, u, x: ss.BinwiseScaling(20, by=1).fit(np.stack([u, x], 1), e),
        lambda e, u, x: ss.CategoryScaling().fit(np.stack([u, x], 1), e),
        lambda e, u, x: ss.scorecard(
            pl.Series(e), pd.Series(u), pa.table({"x": x}), n_bins=20
        ),
    ],
)
def test_no_loop_in_python_is_taken_over_rows_of_numbers(compute):
    rng = np.random.default_rng(0)

    def steps(n):
        u, x = rng.uniform(1, 2, n), np.arange(n) % 10.0
        error = rng.normal(scale=u)
        return count_steps(lambda: compute(error, u, x))

    steps(1000)  # imports, caches
    assert steps(library_of(np.empty(0)).chunk) < steps(1000) + 1000


def test_a_reference_combines_scores_as_a_scorecard_does():
    rng = np.random.default_rng(0)
    u = rng.uniform(1, 2, 400)
    features = {"a": rng.normal(size=400), "b": rng.normal(size=400)}
    draws = ss.reference_scores(u, features, n_draws=5, n_bins=10).draws
    s_cal, s_u, s_a, s_b = (draws[f"S_{name}"] for name in ("cal", "u", "a", "b"))
    np.testing.assert_allclose(draws["S_con"], s_cal + s_u)
    np.testing.assert_allclose(draws["S_ada"], s_cal + s_a + s_b)
    np.testing.assert_allclose(draws["S_tot"], s_cal + s_u + s_a + s_b)
