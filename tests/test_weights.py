"""Weights of rows, in whatever takes them: the same promises everywhere."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import config_context
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import cross_validate
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
)

import sigmascale as ss
from sigmascale._support.weights import effective_number, in_unit, quantile_of
from sigmascale.bins.partitions import EqualSizeBins
from sigmascale.exceptions import InvalidInputError
from sigmascale.judging import metrics
from sigmascale.predictions import as_predictions
from sigmascale.scaling import scalers

pytestmark = pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.RepeatedRowsWarning",
    "ignore::sigmascale.exceptions.FewerBinsWarning",
    "ignore::sigmascale.exceptions.ThinBinsWarning",
    "ignore::sigmascale.exceptions.CandidateDroppedWarning",
    "ignore::sigmascale.exceptions.UnseenCategoryWarning",
)
SCALERS = tuple(scalers().values())
QUICK = {
    ss.BoostedScaling: {"max_trees": 8, "n_folds": 3, "min_rows": 10},
    ss.RakedScaling: {"n_bins": 5},
    ss.SelectedScaling: {
        "candidates": {
            "temperature": ss.TemperatureScaling(),
            "isotonic": ss.IsotonicScaling(),
            "raked": ss.RakedScaling(5),
            "boosted": ss.BoostedScaling(max_trees=5),
        },
        "n_folds": 3,
    },
}
every_scaler = pytest.mark.parametrize("Scaler", SCALERS, ids=lambda s: s.__name__)


def make_data(n=240, seed=0, *, tied=False):
    """Columns u, a label of three values, and a feature; errors that need them all."""
    rng = np.random.default_rng(seed)
    u, label = rng.lognormal(0, 0.5, n), rng.integers(0, 3, n).astype(float)
    x = rng.normal(size=n)
    error = rng.normal(scale=2 * u**0.5 * (1 + label) * np.exp(x / 2))
    if tied:
        u, x = np.ceil(3 * u) / 3, np.round(x)
    return np.column_stack([u, label, x]), error


def whole_weights(n, seed=1):
    return np.random.default_rng(seed).integers(0, 4, n)


def real_weights(n, seed=1):
    return np.random.default_rng(seed).gamma(0.7, size=n)


def fitted(Scaler, X, error, groups=None, weights=None, **more):
    scaler = Scaler(**(QUICK.get(Scaler, {}) | more))
    return scaler.fit(X, error, groups, weights)


# --- recalibrators -------------------------------------------------------------------


@every_scaler
@pytest.mark.parametrize("tied", [False, True])
def test_whole_weights_equal_repeats_that_are_kept_together(Scaler, tied):
    X, error = make_data(tied=tied)
    w = whole_weights(error.size)
    rows = np.repeat(np.arange(error.size), w)
    # of repeats in folds, those of a row belong together; others do not mind
    expected = fitted(Scaler, X[rows], error[rows], groups=rows)
    found = fitted(Scaler, X, error, weights=w)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-9)
    assert found.n_samples_fit_ == np.count_nonzero(w)
    assert found.n_effective_ == pytest.approx(w.sum() ** 2 / (w**2).sum())


@every_scaler
@pytest.mark.parametrize("shift", [None, "constant", "auto"])
@pytest.mark.parametrize("n_rows", [240, 1500])  # the latter in several bins
def test_whole_weights_equal_repeats_for_shift_and_law_too(Scaler, shift, n_rows):
    if n_rows > 240 and Scaler not in (ss.LinearScaling, ss.BoostedScaling):
        pytest.skip("the law is learned alike")
    X, error = make_data(n_rows)
    error = error + X[:, 0] * np.where(X[:, 1] == 1, 3, 0)
    w = whole_weights(error.size)
    rows = np.repeat(np.arange(error.size), w)
    scaling = Scaler(**QUICK.get(Scaler, {}))
    repeated, weighted = (ss.Recalibrator(scaling, shift=shift) for _ in range(2))
    repeated.fit(X[rows], error[rows], rows)
    weighted.fit(X, error, sample_weight=w)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9)
    levels = [0.05, 0.5, 0.7, 0.95]
    found, expected = (each.predict_distribution(X) for each in (weighted, repeated))
    np.testing.assert_allclose(
        found.quantile(levels), expected.quantile(levels), rtol=1e-8, atol=1e-9
    )
    np.testing.assert_allclose(found.crps(error), expected.crps(error), rtol=1e-8)
    assert weighted.shift_kind_ == repeated.shift_kind_
    assert weighted.score(X, error, w) == pytest.approx(
        repeated.score(X[rows], error[rows]), rel=1e-9
    )


@every_scaler
def test_equal_weights_change_nothing_bit_for_bit(Scaler):
    X, error = make_data()
    expected = fitted(Scaler, X, error)
    for weight in (1.0, 1, 0.3):
        found = fitted(Scaler, X, error, weights=np.full(error.size, weight))
        np.testing.assert_array_equal(found.predict(X), expected.predict(X))
        assert set(vars(found)) == set(vars(expected))
    ones = np.ones(error.size)
    assert expected.score(X, error, ones) == expected.score(X, error)


@every_scaler
@pytest.mark.parametrize("make", [whole_weights, real_weights])
def test_the_unit_of_weights_changes_nothing(Scaler, make):
    X, error = make_data()
    w = make(error.size)
    expected = fitted(Scaler, X, error, weights=w)
    for c in (2.0**-40, 0.37, 1e9):
        found = fitted(Scaler, X, error, weights=c * w)
        np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-9)
        assert found.score(X, error, c * w) == pytest.approx(
            expected.score(X, error, w), rel=1e-9
        )


@every_scaler
def test_rows_of_weight_0_are_as_good_as_left_out(Scaler):
    X, error = make_data()
    w = real_weights(error.size)
    w[::3] = 0
    error[0], X[3, 0] = 1e6, 0.0  # an outlier and a zero that nobody counts
    expected = fitted(Scaler, X[w > 0], error[w > 0], weights=w[w > 0])
    found = fitted(Scaler, X, error, weights=w)
    new = X[w > 0]
    np.testing.assert_array_equal(found.predict(new), expected.predict(new))
    assert found.min_uncertainty_ == new[:, 0].min()
    X[3, 0] = 1.0
    assert found.score(X, error, w) == pytest.approx(
        found.score(new, error[w > 0], w[w > 0])
    )


@every_scaler
def test_weights_do_not_depend_on_the_order_of_rows(Scaler):
    X, error = make_data(tied=True)
    w = real_weights(error.size)
    order = np.random.default_rng(3).permutation(error.size)
    expected = fitted(Scaler, X, error, weights=w).predict(X)
    found = fitted(Scaler, X[order], error[order], weights=w[order]).predict(X)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@every_scaler
def test_real_weights_are_close_to_whole_ones_in_their_place(Scaler):
    # the code of weights that are no repeats, held against that of repeats
    X, error = make_data(600)
    w = whole_weights(error.size) + 1.0
    nearly = w * np.random.default_rng(0).uniform(1 - 1e-7, 1 + 1e-7, w.size)
    assert in_unit(nearly).sum() != in_unit(w).sum()
    more = {}
    if Scaler is ss.IsotonicScaling:
        more = {"pseudo_rows": 0}  # of which there are more beside fewer rows in effect
    if Scaler is ss.BinwiseScaling:
        more = {"n_bins": 5, "least_rows": 0}
    if Scaler in (ss.RakedScaling, ss.BoostedScaling, ss.SelectedScaling):
        pytest.skip("their shrinkage depends on the number of rows in effect")
    expected = fitted(Scaler, X, error, weights=w, **more)
    found = fitted(Scaler, X, error, weights=nearly, **more)
    ratio = found.predict(X) / expected.predict(X)
    # a row next to the limit of a bin may be on its other side
    assert np.quantile(np.abs(ratio - 1), 0.95) < 0.02


def test_groups_and_weights_go_together():
    X, error = make_data()
    groups, w = np.arange(error.size) // 4, whole_weights(error.size)
    rows = np.repeat(np.arange(error.size), w)
    for Scaler in (ss.RakedScaling, ss.BoostedScaling, ss.SelectedScaling):
        found = fitted(Scaler, X, error, groups, w).predict(X)
        expected = fitted(Scaler, X[rows], error[rows], groups[rows]).predict(X)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("loss", ["consistency", "adaptivity", "total"])
def test_other_losses_of_bins_know_weights(loss):
    X, error = make_data(150)
    w = whole_weights(error.size)
    rows = np.repeat(np.arange(error.size), w)
    more = {"n_bins": 3, "loss": loss, "max_evaluations": 150, "least_rows": 0}
    found = ss.BinwiseScaling(**more).fit(X, error, sample_weight=w)
    expected = ss.BinwiseScaling(**more).fit(X[rows], error[rows])
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-9)
    real = ss.BinwiseScaling(**more).fit(X, error, sample_weight=real_weights(150))
    assert np.isfinite(real.loss_)
    assert real.loss_ <= real.start_loss_


def test_the_loss_of_real_weights_is_the_score_of_the_scaled_set():
    X, error = make_data(300)
    w = real_weights(error.size)
    table = X[:, [0, 2]]
    for loss, score in (("consistency", "S_con"), ("total", "S_tot")):
        more = {"n_bins": 3, "loss": loss, "max_evaluations": 40, "least_rows": 0}
        scaler = ss.BinwiseScaling(**more).fit(table, error, sample_weight=w)
        u = scaler.predict(table)
        card = ss.scorecard(error, u, {"x": X[:, 2]}, sample_weight=w)
        assert scaler.loss_ == pytest.approx(card[score], rel=1e-9)


def test_intervals_of_whole_weights_equal_those_of_repeats():
    X, error = make_data()
    scaler = ss.Recalibrator(ss.TemperatureScaling()).fit(X, error)
    w = whole_weights(error.size)
    rows = np.repeat(np.arange(error.size), w)
    label = X[:, 1].astype(int).astype(str)
    for groups in (None, label):
        some = None if groups is None else groups[rows]
        for asymmetric in (False, True):
            expected = scaler.conformalize(X[rows], error[rows], some)
            limits = expected.predict_interval(
                X, 0.8, asymmetric=asymmetric, by_category=groups
            )
            weighted = scaler.conformalize(X, error, groups, sample_weight=w)
            found = weighted.predict_interval(
                X, 0.8, asymmetric=asymmetric, by_category=groups
            )
            np.testing.assert_array_equal(found, limits)
    same = scaler.conformalize(X, error, sample_weight=np.full(error.size, 5.0))
    assert same.conformal_.weights is None


def test_weighted_intervals_cover_shifted_rows(tmp_path):
    covered, plain = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x, new = rng.normal(size=(2, 400))
        new = new + 1  # inputs of density exp(x) times that of x
        error, u = rng.normal(scale=np.exp(x / 2)), np.ones(400)
        new_error = rng.normal(scale=np.exp(new / 2))
        scaler = ss.Recalibrator(ss.TemperatureScaling(), law="normal").fit(u, error)
        for weights, shares in ((np.exp(x), covered), (None, plain)):
            scaler.conformalize(u, error, sample_weight=weights)
            limits = scaler.predict_interval(u, 0.9)
            shares.append(ss.picp(new_error, limits))
    assert np.mean(plain) < 0.8
    assert np.mean(covered) == pytest.approx(0.9, abs=0.02)
    scaler.conformalize(u, error, sample_weight=np.exp(x))
    path = tmp_path / "scaler.json"
    ss.save(scaler, path)
    np.testing.assert_array_equal(
        ss.load(path).predict_interval(u, 0.9).shape, (400, 2)
    )
    np.testing.assert_array_equal(
        ss.load(path).conformal_.weights, scaler.conformal_.weights
    )


@every_scaler
def test_weighted_recalibrators_are_saved_and_say_so(Scaler, tmp_path):
    X, error = make_data()
    scaler = fitted(Scaler, X, error, weights=real_weights(error.size))
    ss.save(scaler, tmp_path / "scaler.json")
    loaded = ss.load(tmp_path / "scaler.json")
    np.testing.assert_array_equal(loaded.predict(X), scaler.predict(X))
    assert loaded.n_effective_ == scaler.n_effective_
    words = f"rows were weighted, and count as {scaler.n_effective_:.0f} in effect"
    assert words in loaded.describe()
    assert not hasattr(scaler.fit(X, error), "n_effective_")


def test_metadata_routing_brings_weights_to_fit_and_score():
    X, error = make_data()
    w = real_weights(error.size)
    with config_context(enable_metadata_routing=True):
        scaler = ss.TemperatureScaling()
        scaler.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        found = cross_validate(
            scaler,
            X,
            error,
            cv=[(np.arange(120), np.arange(120, 240))],
            params={"sample_weight": w},
            return_estimator=True,
        )
    expected = ss.TemperatureScaling().fit(X[:120], error[:120], sample_weight=w[:120])
    assert found["estimator"][0].factor_ == expected.factor_
    score = expected.score(X[120:], error[120:], w[120:])
    assert found["test_score"][0] == pytest.approx(score)


def test_a_regressor_that_knows_weights_passes_the_check_of_scikit_learn():
    recalibrator = ss.Recalibrator(ss.TemperatureScaling())
    model = ss.RecalibratedRegressor(BayesianRidge(), recalibrator)
    check_sample_weight_equivalence_on_dense_data("model", model)


# --- scores --------------------------------------------------------------------------

INTERVAL = np.array([-1.0, 1.5])
SCORES = {
    "zms": lambda e, u, x, **w: ss.zms(e, u, **w),
    "nll": lambda e, u, x, **w: ss.nll(e, u, **w),
    "calibration_error": lambda e, u, x, **w: ss.calibration_error(e, u, **w),
    "local_calibration_error": lambda e, u, x, **w: ss.local_calibration_error(
        e, u, by=x, n_bins=7, **w
    ),
    "ence": lambda e, u, x, **w: ss.ence(e, u, n_bins=7, **w),
    "uce": lambda e, u, x, **w: ss.uce(e, u, by=x, n_bins=7, **w),
    "scorecard": lambda e, u, x, **w: list(
        ss.scorecard(e, u, {"x": x, "l": (x > 0).astype(str)}, **w).to_dict().values()
    ),
    "local_zms": lambda e, u, x, **w: (
        ss.local_zms(e, u, by=x, n_bins=6, method="moments", **w).zms
    ),
    "local_coverage": lambda e, u, x, **w: (
        ss.local_coverage(e, u, u[:, None] * INTERVAL, by=x, n_bins=6, **w).coverage
    ),
    "crps": lambda e, u, x, **w: ss.crps(e, u, **w),
    "sharpness": lambda e, u, x, **w: ss.sharpness(u, **w),
    "mean_absolute_calibration_error": lambda e, u, x, **w: (
        metrics.mean_absolute_calibration_error(e, u, **w)
    ),
    "root_mean_squared_calibration_error": lambda e, u, x, **w: (
        metrics.root_mean_squared_calibration_error(e, u, kind="quantile", **w)
    ),
    "miscalibration_area": lambda e, u, x, **w: ss.miscalibration_area(e, u, **w),
    "picp": lambda e, u, x, **w: ss.picp(e, u[:, None] * INTERVAL, **w),
    "interval_scores": lambda e, u, x, **w: [
        getattr(ss.interval_scores(e, u[:, None] * INTERVAL, **w), name)
        for name in ("picp", "mean_width", "interval_score")
    ],
    "relative_calibration_error": lambda e, u, x, **w: (
        ss.relative_calibration_error(e, u, n_resamples=20, **w).value
    ),
    "coverage_at_95": lambda e, u, x, **w: ss.coverage_at_95(e, u, **w).picp,
}
every_score = pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)


@every_score
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000), tied=st.booleans(), c=st.floats(1e-6, 1e6))
def test_scores_keep_the_promises_of_weights(score, seed, tied, c):
    X, e = make_data(160, seed, tied=tied)
    u, x = X[:, 0], X[:, 2]
    w = whole_weights(e.size, seed)
    rows = np.repeat(np.arange(e.size), w)
    found = score(e, u, x, sample_weight=w)
    np.testing.assert_allclose(found, score(e[rows], u[rows], x[rows]), rtol=1e-9)
    np.testing.assert_allclose(found, score(e, u, x, sample_weight=c * w), rtol=1e-9)
    np.testing.assert_array_equal(
        score(e, u, x, sample_weight=np.full(e.size, c)), score(e, u, x)
    )
    real = real_weights(e.size, seed)
    real[: e.size // 4] = 0
    kept = real > 0
    found = score(e, u, x, sample_weight=real)
    np.testing.assert_allclose(
        found, score(e[kept], u[kept], x[kept], sample_weight=real[kept]), rtol=1e-9
    )
    np.testing.assert_allclose(found, score(e, u, x, sample_weight=c * real), rtol=1e-9)
    order = np.random.default_rng(seed).permutation(e.size)
    np.testing.assert_allclose(
        found,
        score(e[order], u[order], x[order], sample_weight=real[order]),
        rtol=1e-9,
    )


def test_means_of_real_weights_are_weighted_means():
    X, e = make_data()
    u, w = X[:, 0], real_weights(e.size)
    z2 = (e / u) ** 2
    assert ss.zms(e, u, sample_weight=w) == pytest.approx(np.average(z2, weights=w))
    nll = 0.5 * (z2 + np.log(2 * np.pi * u**2))
    assert ss.nll(e, u, sample_weight=w) == pytest.approx(np.average(nll, weights=w))


def test_bins_of_real_weights_have_equal_weights():
    X, e = make_data(2000)
    w = real_weights(e.size)
    unit = in_unit(w)
    limits = EqualSizeBins.learn(X[:, 0], 10, weights=unit)
    found = np.bincount(limits.codes(X[:, 0]), w) / w.sum()
    np.testing.assert_allclose(found, 0.1, atol=2 * w.max() / w.sum())
    local = ss.local_zms(e, X[:, 0], n_bins=10, sample_weight=w)
    np.testing.assert_allclose(local.n_effective.sum(), unit.sum(), rtol=0.15)


def test_intervals_count_a_row_once_whatever_its_weight():
    X, e = make_data()
    u, w = X[:, 0], whole_weights(e.size)
    rows = np.repeat(np.arange(e.size), w)
    for method in ("bca", "bootstrap-t", "student", "moments"):
        found = ss.local_zms(e, u, n_bins=6, sample_weight=w, method=method)
        repeats = (e[rows], u[rows])
        grouped = ss.local_zms(*repeats, n_bins=6, groups=rows, method=method)
        np.testing.assert_allclose(found.low, grouped.low, rtol=1e-9)
        np.testing.assert_allclose(found.high, grouped.high, rtol=1e-9)
        assert found.overall == pytest.approx(grouped.overall, rel=1e-9)
        np.testing.assert_array_equal(found.x, grouped.x)
    assert found.n_groups is None
    assert found.n.sum() >= np.count_nonzero(w)  # a limit may part a row


def test_reference_scores_are_those_of_the_rows_in_effect():
    rng = np.random.default_rng(0)
    u, w = rng.uniform(1, 2, 3000), rng.gamma(0.5, size=3000)
    few = round(effective_number(w))
    found = ss.reference_scores(u, sample_weight=w, n_bins=10, n_draws=300)
    as_few = ss.reference_scores(u[:few], n_bins=10, n_draws=300)
    as_many = ss.reference_scores(u, n_bins=10, n_draws=300)
    assert found.mean["S_u"] == pytest.approx(as_few.mean["S_u"], rel=0.1)
    assert found.mean["S_u"] > 1.4 * as_many.mean["S_u"]
    ones = ss.reference_scores(u, sample_weight=np.ones(3000), n_bins=10, n_draws=300)
    assert ones.mean == as_many.mean
    error = u * rng.standard_t(4, 3000)
    for distribution in ("empirical", "student_t", "normal_inverse_gamma"):
        one = ss.reference_scores(
            u,
            sample_weight=w,
            error=error,
            distribution=distribution,
            n_bins=10,
            n_draws=40,
        )
        assert one.mean["ZMS"] == pytest.approx(1, abs=0.1)


# --- validate ------------------------------------------------------------------------


def test_verdicts_are_on_the_population_that_weights_stand_for():
    rng = np.random.default_rng(0)
    n = 3000
    x, u = rng.uniform(-1, 1, n), rng.uniform(1, 2, n)
    error = rng.normal(scale=u * np.where(x > 0, 2.0, 1.0))
    left = np.where(x < 0, rng.uniform(0.5, 1, n), 0)
    quick = {"method": "moments", "joint": False}
    found = ss.validate(error, u, {"x": x}, sample_weight=left, **quick)
    assert found.passed
    effect = effective_number(left)
    assert found.n_effective == found.to_dict()["n_effective"] == pytest.approx(effect)
    assert f"of them count as {effect:.0f} in effect" in str(found)
    alone = ss.validate(error[x < 0], u[x < 0], {"x": x[x < 0]}, **quick)
    assert alone.passed
    both = ss.validate(error, u, {"x": x}, sample_weight=rng.gamma(1, size=n), **quick)
    assert both.verdicts["x"].answer == "no"
    assert both.verdicts["average"].answer == "no"
    assert both.verdicts["u"].answer != "no"


def test_verdicts_keep_the_promises_of_weights():
    X, e = make_data(400)
    u, x = X[:, 0], {"x": X[:, 2]}
    quick = {"method": "moments"}
    plain = ss.validate(e, u, x, **quick)
    ones = ss.validate(e, u, x, sample_weight=np.full(e.size, 3.0), **quick)
    assert ones.to_dict() == plain.to_dict()
    w = whole_weights(e.size)
    found = ss.validate(e, u, x, sample_weight=w, **quick)
    scaled = ss.validate(e, u, x, sample_weight=7 * w, **quick)
    assert scaled.to_dict() == found.to_dict()
    rows = np.repeat(np.arange(e.size), w)
    card = ss.scorecard(e[rows], u[rows], {"x": X[rows, 2]})
    assert found.scores.to_dict() == pytest.approx(card.to_dict(), rel=1e-9)
    grouped = ss.validate(e[rows], u[rows], {"x": X[rows, 2]}, groups=rows, **quick)
    assert found.verdicts["average"].interval == pytest.approx(
        grouped.verdicts["average"].interval, rel=0.05
    )


@pytest.mark.slow
def test_calibrated_sets_are_found_wrong_as_rarely_as_promised_with_weights():
    # benchmarks/weights.py does the same with many sets and other weights
    wrong = 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        n = 300
        u, x = rng.uniform(1, 2, n), rng.normal(size=n)
        w = np.exp(np.sqrt(np.log(3)) * x)  # of which a third is in effect
        found = ss.validate(
            rng.normal(scale=u),
            u,
            {"x": x},
            sample_weight=w,
            method="moments",
            joint=False,
        )
        wrong += found.answer == "no"
    assert stats.binomtest(wrong, 24, 0.065, alternative="greater").pvalue > 0.01


def test_too_few_rows_in_effect_tell_nothing():
    rng = np.random.default_rng(0)
    w = np.full(100, 1e-3)
    w[:12] = rng.uniform(1, 1.1, 12)
    found = ss.validate(
        rng.normal(size=100), np.ones(100), sample_weight=w, joint=False
    )
    assert found.answer == "cannot tell"
    assert "weights that leave 12 rows in effect are too few" in found.summary


# --- shifted inputs ------------------------------------------------------------------


@pytest.mark.slow
def test_covariate_weights_are_the_ratio_of_densities():
    rng = np.random.default_rng(0)
    old, new = rng.uniform(size=(2, 3000)), rng.uniform(size=(2, 8000))
    new = new[:, rng.uniform(0, np.e, 8000) < np.exp(new[0])]  # of density exp(x)
    found = ss.covariate_weights(old.T, new.T)
    expected = np.exp(old[0]) / np.exp(old[0]).mean()
    np.testing.assert_allclose(np.log(found.weights), np.log(expected), atol=0.25)
    assert found.n_effective == pytest.approx(effective_number(expected), rel=0.03)
    assert found.classifier == "logistic"
    assert np.mean(found) == pytest.approx(1)
    assert f"The 3000 rows count as {found.n_effective:.0f} in effect" in str(found)
    again = ss.covariate_weights(old.T, new.T)
    np.testing.assert_array_equal(found.weights, again.weights)
    assert found.to_dict()["n_clipped"] == 0


def test_covariate_weights_find_what_no_straight_line_does():
    rng = np.random.default_rng(0)
    old = pl.DataFrame({"x": rng.uniform(-1, 1, 1500), "phase": ["gas", "ice"] * 750})
    new = old.filter((pl.col("x").abs() > 0.5) | (pl.col("phase") == "ice"))
    found = ss.covariate_weights(old, new)
    assert found.classifier == "boosted"
    gone = (old["x"].abs() <= 0.5).to_numpy() & (old["phase"] == "gas").to_numpy()
    assert found.weights[gone].mean() < 0.3 * found.weights[~gone].mean()


def test_without_a_shift_all_rows_count_alike():
    x = np.random.default_rng(0).normal(size=(2, 500, 3))
    found = ss.covariate_weights(*x)
    assert found.classifier == "none"
    np.testing.assert_array_equal(found.weights, 1)
    assert found.sentence == "No shift was found: all 500 rows count alike."
    constant = ss.covariate_weights(np.ones(30), np.ones(30))
    assert constant.n_effective == 30


def test_few_rows_in_effect_are_told():
    rng = np.random.default_rng(0)
    far = ss.covariate_weights(rng.normal(size=400), rng.normal(2.5, size=400))
    assert far.n_effective < 40
    assert "which are few" in far.sentence
    assert far.n_clipped > 0
    assert np.count_nonzero(far.weights == far.weights.max()) == far.n_clipped


@pytest.mark.slow
def test_estimated_weights_recalibrate_for_shifted_inputs():
    # benchmarks/weights.py has the numbers of 50 sets
    before, after = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x, many = rng.uniform(-2, 2, 400), rng.uniform(-2, 2, 8000)
        new = rng.choice(many, 400, p=np.exp(many) / np.exp(many).sum())
        u, new_u = rng.lognormal(0, 0.3, (2, 400))
        error = rng.normal(scale=u * np.exp(0.4 * x))
        new_error = rng.normal(scale=new_u * np.exp(0.4 * new))
        inputs = np.column_stack([u, x]), np.column_stack([new_u, new])
        for weights, found in (
            (None, before),
            (ss.covariate_weights(*inputs), after),
        ):
            scaler = ss.TemperatureScaling().fit(u, error, sample_weight=weights)
            found.append(ss.calibration_error(new_error, scaler.predict(new_u)))
    assert np.mean(after) < 0.7 * np.mean(before)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (np.ones((50, 2)), np.ones((50, 3)), "same columns, in the same order"),
        (
            pl.DataFrame({"a": [1.0] * 20, "b": [1.0] * 20}),
            pl.DataFrame({"b": [1.0] * 20, "a": [1.0] * 20}),
            "found a, b and b, a",
        ),
        (np.ones(50), np.ones(9), "at least 10 rows each, for 5 folds; found 50 and 9"),
    ],
)
def test_inputs_that_cannot_be_compared_are_refused(old, new, message):
    with pytest.raises(InvalidInputError, match=message):
        ss.covariate_weights(old, new)


# --- the parts -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -2.0, 1.0], r"`sample_weight` must be at least 0; 1 of 3 .*row 1: -2"),
        ([1.0, np.nan, 1.0], r"`sample_weight` must be finite.*row 1: nan"),
        ([1.0, np.inf, 1.0], r"`sample_weight` must be finite.*row 1: inf"),
        ([0.0, 0.0, 0.0], "all 3 weights are zero. Leave it out"),
        ([1.0, 1.0], "must have the same number of rows; found 3 and 2"),
        (["a", "b", "c"], "`sample_weight` must hold numbers"),
    ],
)
def test_bad_weights_are_refused_with_the_row_and_a_remedy(weights, message):
    X, y = [1.0, 2.0, 3.0], [1.0, -1.0, 2.0]
    with pytest.raises(InvalidInputError, match=message):
        ss.TemperatureScaling().fit(X, y, sample_weight=weights)
    with pytest.raises(InvalidInputError, match=message):
        ss.zms(y, X, sample_weight=weights)


def test_weights_in_another_order_are_refused():
    import pandas as pd

    y = pd.Series([1.0, -1.0, 2.0])
    with pytest.raises(InvalidInputError, match="same index in another order"):
        ss.zms(y, y.abs(), sample_weight=pd.Series([1.0, 2.0, 3.0], index=[2, 1, 0]))


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([2, 4, 6], [1, 2, 3]),
        ([2, 3], [2, 3]),
        ([0.5, 0.75, 1.0], [2, 3, 4]),
        ([3, 3, 3], None),
        ([1e-300, 3e-300], [1, 3]),
    ],
)
def test_whole_multiples_count_repeats(weights, expected):
    found = in_unit(np.array(weights, dtype=float))
    if expected is None:
        assert found is None
    else:
        np.testing.assert_array_equal(found, expected)


def test_other_weights_add_up_to_the_number_of_rows_in_effect():
    w = real_weights(100)
    assert in_unit(w).sum() == pytest.approx(effective_number(w))
    rounded = np.array([0.01, 2.57, 5.0])  # hundreds of repeats nobody means
    assert in_unit(rounded).sum() == pytest.approx(effective_number(rounded))


@given(seed=st.integers(0, 100), level=st.floats(0, 1))
def test_weighted_quantiles_are_those_of_repeats(seed, level):
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=30), rng.integers(1, 5, 30).astype(float)
    expected = np.quantile(np.repeat(x, w.astype(int)), level)
    assert quantile_of(x, level, w) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_rows_remember_where_they_were_if_some_are_left_out():
    rows = as_predictions(np.ones(4), np.ones(4), sample_weight=[0, 1, 0, 2])
    np.testing.assert_array_equal(rows.places, [1, 3])
    np.testing.assert_array_equal(rows.weights, [1, 2])
    rng = np.random.default_rng(0)
    error, w = rng.normal(size=200), np.ones(200)
    error[50], w[:20] = 1000.0, 0
    scaler = ss.SelectedScaling(
        {"temperature": ss.TemperatureScaling(), "linear": ss.LinearScaling()}
    )
    found = scaler.fit(rng.uniform(1, 2, 200), error, sample_weight=w)
    assert found.decisive_rows_ == [50]


@pytest.mark.slow
def test_reports_and_comparisons_know_weights(tmp_path):
    from sigmascale.report import write_report

    X, error = make_data(400)
    w = real_weights(error.size)
    w[:50] = 0
    quick = {"method": "moments", "joint": False, "sample_weight": w}
    found = ss.validate(error, X[:, 0], {"x": X[:, 2]}, **quick)
    scaler = ss.TemperatureScaling().fit(X[:, 0], error, sample_weight=w)
    after = ss.validate(error, scaler.predict(X[:, 0]), {"x": X[:, 2]}, **quick)
    path = tmp_path / "report.html"
    write_report(path, found, recalibrated=after, scaler=scaler)
    page = path.read_text()
    assert f"{effective_number(w):.0f} rows in effect" in page
    assert "Rows were weighted in all but the confidence curve" in page
    plain = ss.validate(error[50:], X[50:, 0], {"x": X[50:, 2]}, method="moments")
    with pytest.raises(InvalidInputError, match="found other errors, features or w"):
        write_report(path, found, recalibrated=plain, scaler=scaler)
    sets = (X[:, [0, 2]], error, None, w), (X[:, [0, 2]], error, None, w)
    table = ss.compare([ss.TemperatureScaling()], *sets, method="moments")
    assert table["none"].test.zms == pytest.approx(
        ss.zms(error, X[:, 0], sample_weight=w)
    )
    assert table["Temperature"].test.zms == pytest.approx(1)
    rows = np.flatnonzero(w)
    left_out = (X[rows][:, [0, 2]], error[rows], None, w[rows])
    again = ss.compare([ss.TemperatureScaling()], left_out, left_out, method="moments")
    assert again["Temperature"].test == table["Temperature"].test
    with pytest.raises(InvalidInputError, match=r"\(X, y, groups, sample_weight\)"):
        ss.compare([ss.TemperatureScaling()], (*sets[0], None), sets[1])


# --- lazy frames ---------------------------------------------------------------------


def lazy_frame(n=600):
    X, error = make_data(n)
    columns = {"E": error, "u": X[:, 0], "l": X[:, 1], "x": X[:, 2]}
    return pl.DataFrame(columns | {"w": real_weights(n)})


def test_lazy_frames_take_a_column_of_weights():
    frame = lazy_frame()
    e, u, x, w = (frame[name].to_numpy() for name in ("E", "u", "x", "w"))
    named = {"error": "E", "uncertainty": "u", "sample_weight": "w"}
    card = ss.frames.scorecard(frame.lazy(), features=["x"], **named)
    expected = ss.scorecard(e, u, {"x": x}, sample_weight=w)
    assert card.to_dict() == pytest.approx(expected.to_dict(), rel=1e-9)
    local = ss.frames.local_zms(frame.lazy(), by="x", n_bins=5, **named)
    expected = ss.local_zms(e, u, by=x, n_bins=5, method="moments", sample_weight=w)
    np.testing.assert_allclose(local.low, expected.low, rtol=1e-9)
    options = {"method": "moments", "joint": False}
    found = ss.frames.validate(frame.lazy(), features=["x"], **named, **options)
    expected = ss.validate(e, u, {"x": x}, sample_weight=w, **options)
    assert found.verdicts["x"].p_adjusted == expected.verdicts["x"].p_adjusted
    for scaler in (ss.IsotonicScaling(), ss.RakedScaling(5), ss.LinearScaling()):
        found = ss.frames.fit(scaler, frame.lazy(), features=["x"], **named)
        X = frame.select("u", "x")
        expected = type(scaler)(**scaler.get_params()).fit(X, e, sample_weight=w)
        np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-9)
        assert found.n_effective_ == pytest.approx(effective_number(w))


def test_a_weighted_sample_of_a_frame_has_the_average_of_all_rows():
    frame = lazy_frame(3000)
    named = {"error": "E", "uncertainty": "u", "sample_weight": "w"}
    for scaler in (ss.TemperatureScaling(), ss.BoostedScaling(max_trees=3)):
        found = ss.frames.fit(scaler, frame.lazy(), sample=500, **named)
        assert found.n_sample_ < 1000
        predicted = found.predict(frame.select("u"))
        zms = ss.zms(frame["E"], predicted, sample_weight=frame["w"])
        assert zms == pytest.approx(1, abs=0.12)


@pytest.mark.parametrize("weight", ["x", "E", "u", 3])
def test_a_column_with_another_part_holds_no_weights(weight):
    named = {"error": "E", "uncertainty": "u", "features": ["x"]}
    message = "`sample_weight` must name a column that has no other part"
    with pytest.raises(InvalidInputError, match=message):
        ss.frames.scorecard(lazy_frame().lazy(), sample_weight=weight, **named)
    with pytest.raises(InvalidInputError, match=message):
        ss.frames.fit(
            ss.LinearScaling(), lazy_frame().lazy(), sample_weight=weight, **named
        )


def test_errors_count_rows_of_weight_0():
    u, w, x = np.ones(9), np.ones(9), np.arange(9.0)
    w[2], u[5], x[6] = 0.0, 1e80, np.inf
    with pytest.raises(InvalidInputError, match=r"first at row 5: 1e\+80"):
        ss.TemperatureScaling().fit(u, np.ones(9), sample_weight=w)
    with pytest.raises(InvalidInputError, match="first at row 6: inf"):
        ss.BinwiseScaling(2, by=1).fit(
            np.column_stack([w + 1, x]), np.ones(9), sample_weight=w
        )
