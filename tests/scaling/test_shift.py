"""The shift of a recalibrator: taken where unseen rows gain, and not where not."""

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError


def make_rows(n=1500, seed=0, bias=0.0, slope=0.0, tail=None):
    """Columns u and x; errors with a bias of so many u, that may depend on x."""
    rng = np.random.default_rng(seed)
    u, x = rng.lognormal(0, 0.4, n), rng.normal(size=n)
    noise = rng.normal(size=n) if tail is None else rng.standard_t(tail, n)
    return np.column_stack([u, x]), u * (noise + bias + slope * np.tanh(2 * x))


def recalibrator(shift, **options):
    return ss.Recalibrator(ss.TemperatureScaling(), shift=shift, **options)


@pytest.mark.parametrize("bias", [-1.0, 0.7])
@pytest.mark.parametrize("shift", ["constant", "auto"])
def test_a_bias_is_found_and_the_scale_is_that_of_what_is_left(shift, bias):
    X, error = make_rows(bias=bias)
    r = recalibrator(shift).fit(X, error)
    assert r.shift_kind_ == "constant"
    np.testing.assert_allclose(r.predict_shift(X), bias * X[:, 0], atol=0.25)
    np.testing.assert_allclose(r.predict(X), X[:, 0], rtol=0.08)
    new_X, new_error = make_rows(bias=bias, seed=1)
    left = new_error - r.predict_shift(new_X)
    assert np.mean(left / new_X[:, 0]) == pytest.approx(0, abs=0.08)
    assert "shifted by one number" in r.describe()
    plain = recalibrator(None).fit(X, error)
    assert plain.shift_ is None
    assert not plain.predict_shift(X).any()
    np.testing.assert_allclose(plain.predict(X), np.hypot(1, bias) * X[:, 0], rtol=0.08)
    scores = {}
    for kind in (shift, None):
        for law in ("normal", "empirical"):
            d = recalibrator(kind, law=law).fit(X, error).predict_distribution(new_X)
            scores[kind, law] = d.crps(new_error).mean()
    assert scores[shift, "normal"] < 0.95 * scores[None, "normal"]
    # a law learns such a bias by itself
    assert scores[shift, "empirical"] == pytest.approx(
        scores[None, "empirical"], rel=0.01
    )


def test_a_bias_that_depends_on_a_feature_is_found_by_trees():
    X, error = make_rows(slope=1.5)
    r = recalibrator("auto").fit(X, error)
    assert r.shift_kind_ == "trees"
    new_X, new_error = make_rows(slope=1.5, seed=1)
    shift = r.predict_shift(new_X)
    expected = new_X[:, 0] * 1.5 * np.tanh(2 * new_X[:, 1])
    assert np.corrcoef(shift, expected)[0, 1] > 0.9
    left = np.mean(((new_error - shift) / new_X[:, 0]) ** 2)
    assert left < 1.25 < np.mean((new_error / new_X[:, 0]) ** 2)
    assert "boosted trees" in r.describe()
    # one number would gain nothing
    constant = recalibrator("constant").fit(X, error)
    assert np.abs(constant.predict_shift(X) / X[:, 0]).max() < 0.1


@pytest.mark.parametrize("tail", [None, 3])
def test_without_a_bias_no_shift_is_taken(tail):
    taken = []
    for seed in range(10):
        X, error = make_rows(n=400, seed=seed, tail=tail)
        r = recalibrator("auto").fit(X, error)
        taken.append(r.shift_kind_)
        if r.shift_kind_ == "none":
            assert r.shift_ is None
            assert "not shifted" in r.describe()
    # one standard error is passed by chance in one case of six, or fewer
    assert taken.count("none") >= 7


def test_few_rows_do_not_tell_a_shift_unless_it_is_asked_for():
    X, error = make_rows(n=99, bias=2.0)
    r = recalibrator("auto").fit(X, error)
    assert r.shift_kind_ == "none"
    assert "99 rows do not tell" in r.describe()
    assert recalibrator("auto").fit(*make_rows(n=100, bias=2.0)).shift_kind_ != "none"
    r = recalibrator("constant").fit(X, error)
    assert np.median(r.predict_shift(X) / X[:, 0]) == pytest.approx(2, abs=0.3)


def test_one_enormous_error_is_no_bias():
    X, error = make_rows(n=500)
    error[3] = 1e6
    for shift in ("constant", "auto"):
        r = recalibrator(shift).fit(X, error)
        assert np.abs(r.predict_shift(X)).max() < 1e4
    assert r.shift_kind_ == "none"


def test_folds_follow_time_where_it_is_known():
    # a bias that comes and goes: rows nearby know it, rows of another time do not
    rng = np.random.default_rng(0)
    n = 1000
    time = np.arange(n, dtype=float)
    wave = np.repeat(rng.normal(size=10), n // 10)
    error = 0.5 * rng.normal(size=n) + wave
    order = rng.permutation(n)
    columns = {"error": error[order], "y_std": np.ones(n)}
    columns["features"] = {"when": time[order]}
    at_random = recalibrator("auto").fit(ss.Predictions(**columns))
    assert at_random.shift_kind_ == "trees"
    in_time = recalibrator("auto").fit(ss.Predictions(**columns, time=time[order]))
    assert in_time.shift_kind_ != "trees"


def test_groups_stay_together_in_the_folds():
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(40), 20)
    common = rng.normal(size=40)[group]
    x = group + 0.01 * rng.normal(size=800)  # gives the group away
    error = common + 0.3 * rng.normal(size=800)
    X = np.column_stack([np.ones(800), x])
    assert recalibrator("auto").fit(X, error).shift_kind_ == "trees"
    assert recalibrator("auto").fit(X, error, group).shift_kind_ == "none"


@pytest.mark.parametrize("shift", ["constant", "auto"])
def test_neither_the_order_of_rows_nor_the_unit_matters(shift):
    X, error = make_rows(n=600, slope=1.0, bias=0.5)
    X[:, 0], error = X[:, 0].round(1), error.round(1)  # with ties
    X, error = X[X[:, 0] > 0], error[X[:, 0] > 0]
    r = recalibrator(shift).fit(X, error)
    order = np.random.default_rng(0).permutation(error.size)
    again = recalibrator(shift).fit(X[order], error[order])
    np.testing.assert_allclose(again.predict_shift(X), r.predict_shift(X), rtol=1e-9)
    scaled = recalibrator(shift).fit(X * [1000, 1], 1000 * error)
    np.testing.assert_allclose(
        scaled.predict_shift(X * [1000, 1]), 1000 * r.predict_shift(X), rtol=1e-6
    )


def test_labels_are_columns_like_others():
    rng = np.random.default_rng(0)
    phase = rng.choice(["gas", "solid", "glass"], 900)
    error = rng.normal(size=900) + np.where(phase == "glass", 2.0, 0.0)
    p = ss.Predictions(error=error, y_std=np.ones(900), features={"phase": phase})
    r = ss.Recalibrator(shift="auto").fit(p)
    assert r.shift_kind_ == "trees"
    found = r.predict_shift(p)
    assert found[phase == "glass"].mean() == pytest.approx(2, abs=0.3)
    assert found[phase == "gas"].mean() == pytest.approx(0, abs=0.3)


def test_a_shift_that_is_none_is_refused():
    with pytest.raises(InvalidInputError, match='`shift` must be one of "constant"'):
        recalibrator("trees").fit(*make_rows(50))


def test_predictions_are_shifted_where_they_are_known():
    X, error = make_rows(bias=1.0)
    y_pred = np.random.default_rng(3).normal(size=error.size)
    p = ss.Predictions(y_pred, X[:, 0], y_true=y_pred + error)
    r = recalibrator("constant").fit(p)
    shift = r.predict_shift(p)
    d = r.predict_distribution(p)
    np.testing.assert_allclose(d.location, y_pred + shift)
    applied = r.apply(p)
    np.testing.assert_allclose(applied.y_pred, y_pred + shift)
    np.testing.assert_allclose(applied.errors, p.errors - shift)
    np.testing.assert_allclose(applied.truth, p.truth)
    low, high = r.conformalize(p).predict_interval(p, 0.9).T
    np.testing.assert_allclose((low + high) / 2, y_pred + shift)
    assert np.mean((low <= p.truth) & (p.truth <= high)) == pytest.approx(0.9, abs=0.01)
    # the score is that of what is left
    assert r.score(p) == pytest.approx(-ss.nll(applied.errors, r.predict(p)))
