"""What other libraries compute on the same data; docs/neighbours.md is the table."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import special
from sklearn.base import BaseEstimator, RegressorMixin

import sigmascale as ss
from sigmascale.exceptions import InfiniteIntervalWarning
from sigmascale.judging import metrics

RNG = np.random.default_rng(0)
N = 300
PREDICTION = RNG.normal(10, 3, N)
U = RNG.lognormal(0, 0.5, N)
E = RNG.standard_t(4, N) * 1.4 * U + 0.1
TRUTH = PREDICTION + E
E = TRUTH - PREDICTION  # as the others compute it
LABEL = np.arange(N) % 3
FIT, HELD_OUT, NEW = slice(0, 100), slice(100, 237), slice(237, None)


def neighbour(name):
    """Import a library that the group `neighbours` of pyproject.toml installs."""
    with warnings.catch_warnings():  # crepes changes the filters when it is imported
        return pytest.importorskip(
            name, reason=f"{name} is not installed: pip install --group neighbours"
        )


@pytest.fixture(scope="module")
def scaler():
    return ss.Recalibrator(ss.BinwiseScaling(5)).fit(U[FIT], E[FIT])


# --- uncertainty-toolbox ------------------------------------------------------------


@pytest.fixture(scope="module")
def uct():
    return neighbour("uncertainty_toolbox").metrics


@pytest.mark.parametrize("n_levels", [2, 17, 100])
@pytest.mark.parametrize(
    "name",
    [
        "mean_absolute_calibration_error",
        "root_mean_squared_calibration_error",
        "miscalibration_area",
    ],
)
def test_calibration_errors_are_those_of_uncertainty_toolbox(uct, name, n_levels):
    ours = getattr(metrics, name)(E, U, n_levels=n_levels)
    theirs = getattr(uct, name)(PREDICTION, U, TRUTH, num_bins=n_levels)
    assert ours == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("n_levels", [2, 17, 100])
@pytest.mark.parametrize(
    "name",
    [
        "mean_absolute_calibration_error",
        "root_mean_squared_calibration_error",
        "miscalibration_area",
    ],
)
def test_one_sided_calibration_errors_are_those_of_uncertainty_toolbox(
    uct, name, n_levels
):
    ours = getattr(metrics, name)(E, U, n_levels=n_levels, kind="quantile")
    theirs = getattr(uct, name)(
        PREDICTION, U, TRUTH, num_bins=n_levels, prop_type="quantile"
    )
    assert ours == pytest.approx(theirs, abs=1e-9)


def test_sharpness_crps_and_nll_are_those_of_uncertainty_toolbox(uct):
    assert ss.sharpness(U) == pytest.approx(uct.sharpness(U), abs=1e-6)
    rows = (PREDICTION, U, TRUTH)
    assert ss.crps(E, U) == pytest.approx(uct.crps_gaussian(*rows), abs=1e-6)
    assert ss.nll(E, U) == pytest.approx(uct.nll_gaussian(*rows), abs=1e-6)


def test_metrics_under_their_names_are_those_of_uncertainty_toolbox(uct):
    import sigmascale.compat.uncertainty_toolbox as ours

    rows = (PREDICTION, U, TRUTH)
    found, theirs = (each.get_all_metrics(*rows, verbose=False) for each in (ours, uct))
    for group in ("accuracy", "avg_calibration", "sharpness", "scoring_rule"):
        assert found[group] == pytest.approx(theirs[group], abs=1e-9)


def interval_score(level):
    interval = ss.normal_interval(U, level)
    return ss.interval_scores(E, interval, coverage=level).interval_score


def test_the_interval_score_of_uncertainty_toolbox_is_a_mean_over_levels(uct):
    levels = np.linspace(0.01, 0.99, 99)
    ours = [interval_score(p) for p in levels]
    theirs = uct.interval_score(PREDICTION, U, TRUTH)
    assert np.mean(ours) == pytest.approx(theirs, abs=1e-6)
    assert abs(interval_score(0.9) - theirs) > 0.1


def test_the_check_score_of_uncertainty_toolbox_follows_from_interval_scores(uct):
    # the pinball losses at q and 1 - q are the interval score at 1 - 2 q, times q
    tails = np.linspace(0.01, 0.49, 49)
    pairs = [q * interval_score(1 - 2 * q) for q in tails]
    median = np.mean(np.abs(E)) / 2
    theirs = uct.check_score(PREDICTION, U, TRUTH)
    assert (np.sum(pairs) + median) / 99 == pytest.approx(theirs, abs=1e-6)


def test_crps_is_twice_the_check_score_with_all_quantiles(uct):
    ends = {"start_q": 0.5 / 5000, "end_q": 1 - 0.5 / 5000, "resolution": 5000}
    theirs = uct.check_score(PREDICTION, U, TRUTH, **ends)
    assert ss.crps(E, U) == pytest.approx(2 * theirs, rel=1e-4)
    with_99 = uct.check_score(PREDICTION, U, TRUTH)
    assert abs(ss.crps(E, U) - 2 * with_99) > 1e-4


@pytest.mark.parametrize(
    ("kind", "cali_type"),
    [("mean absolute", "mean_abs"), ("root mean square", "root_mean_sq")],
)
def test_adversarial_groups_are_those_of_uncertainty_toolbox(
    uct, monkeypatch, kind, cali_type
):
    ours = ss.adversarial_group_calibration(
        E, U, kind=kind, n_sizes=4, n_trials=3, n_groups=5, rng=1
    )
    # the same draws: theirs come from NumPy's global generator
    monkeypatch.setattr(np.random, "choice", np.random.default_rng(1).choice)
    theirs = uct.adversarial_group_calibration(
        PREDICTION,
        U,
        TRUTH,
        cali_type,
        num_group_bins=4,
        num_trials=3,
        num_group_draws=5,
    )
    np.testing.assert_array_equal(ours.fraction, theirs.group_size)
    np.testing.assert_allclose(ours.worst, theirs.score_mean, atol=1e-6)
    # what they call the standard error is the standard deviation over trials
    np.testing.assert_allclose(ours.spread, theirs.score_stderr, atol=1e-6)


def test_quantiles_of_uncertainty_toolbox_are_another_curve(uct):
    rows = (PREDICTION, U, TRUTH)
    quantiles = uct.mean_absolute_calibration_error(*rows, prop_type="quantile")
    assert abs(metrics.mean_absolute_calibration_error(E, U) - quantiles) > 0.01


# --- netcal -------------------------------------------------------------------------
# It needs PyTorch, several gigabytes, so that it is not in the group `neighbours`. The
# numbers are what netcal 1.4.0 gave for these rows, with a stand-in for PyTorch, which
# its regression metrics do not call: ENCE(bins=12), UCE(bins=12), PICP at 0.9, and
# QCE(bins=12), marginal over 100 levels from 0 to 1 and conditional at 0.9, each
# `.measure((zeros, u), error)`.

ROW = np.arange(600)
NETCAL_U = 0.2 + (ROW * 0.6180339887 % 1) ** 2
NETCAL_E = 1.3 * NETCAL_U * special.ndtri(0.001 + 0.998 * (ROW * 0.7548776662 % 1))
NETCAL = {
    "ENCE": 0.287525361910421,
    "UCE": 0.2540921202445386,
    "PICP": 0.7966666666666666,
    "MPIW": 1.7533414061682473,
    "M-QCE": 0.08113333333333334,
    "C-QCE": 0.10333333333333333,
}


def equal_width_bins(x, n_bins=12):
    edges = np.linspace(x.min(), x.max(), n_bins + 1)
    return np.clip(np.searchsorted(edges, x, side="right") - 1, 0, n_bins - 1)


def test_ence_with_netcal_s_bins_of_equal_width_is_netcal_s():
    labels = equal_width_bins(NETCAL_U).astype(str)
    ours = ss.ence(NETCAL_E, NETCAL_U, by=labels)
    assert ours == pytest.approx(NETCAL["ENCE"], abs=1e-6)
    of_equal_size = ss.ence(NETCAL_E, NETCAL_U, n_bins=12)
    assert abs(of_equal_size - NETCAL["ENCE"]) > 1e-3


def test_uce_of_netcal_weights_bins_by_their_rows():
    codes = equal_width_bins(NETCAL_U**2)
    gaps, weights = [], []
    for code in np.unique(codes):
        rows = codes == code
        gaps.append(abs(np.mean(NETCAL_E[rows] ** 2) - np.mean(NETCAL_U[rows] ** 2)))
        weights.append(rows.mean())
    assert np.dot(gaps, weights) == pytest.approx(NETCAL["UCE"], abs=1e-6)
    ours = ss.uce(NETCAL_E, NETCAL_U, by=codes.astype(str))
    assert ours == pytest.approx(np.mean(gaps))
    assert abs(ours - NETCAL["UCE"]) > 0.01


def test_uce_needs_no_weights_when_bins_have_equal_sizes():
    rows = np.argsort(NETCAL_U).reshape(12, 50)
    gaps = np.abs((NETCAL_E[rows] ** 2 - NETCAL_U[rows] ** 2).mean(axis=1))
    weighted = np.sum(gaps * 50 / 600)
    assert ss.uce(NETCAL_E, NETCAL_U, n_bins=12) == pytest.approx(weighted, abs=1e-12)


def test_picp_and_mpiw_are_netcal_s():
    interval = ss.normal_interval(NETCAL_U, 0.9)
    assert ss.picp(NETCAL_E, interval) == pytest.approx(NETCAL["PICP"], abs=1e-6)
    width = ss.interval_scores(NETCAL_E, interval).mean_width
    assert width == pytest.approx(NETCAL["MPIW"], abs=1e-6)


def test_the_marginal_qce_of_netcal_is_the_mean_absolute_calibration_error():
    ours = metrics.mean_absolute_calibration_error(NETCAL_E, NETCAL_U, n_levels=100)
    assert ours == pytest.approx(NETCAL["M-QCE"], abs=1e-6)


def test_the_conditional_qce_of_netcal_follows_from_local_coverage():
    local = ss.local_coverage(
        NETCAL_E,
        NETCAL_U,
        ss.normal_interval(NETCAL_U, 0.9),
        by=equal_width_bins(NETCAL_U).astype(str),
    )
    ours = np.average(np.abs(local.coverage - 0.9), weights=local.n)
    assert ours == pytest.approx(NETCAL["C-QCE"], abs=1e-6)


# --- MAPIE --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mapie():
    neighbour("mapie")
    return neighbour("mapie.regression"), neighbour("mapie.conformity_scores")


class Column(RegressorMixin, BaseEstimator):
    """A fitted regressor that predicts a function of its input."""

    def __init__(self, function=None):
        self.function = function
        self.coef_ = None  # for MAPIE, the sign of a fit

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.function(X)


def mapie_limits(mapie, scaler, coverage, *, asymmetric=False, held_out=HELD_OUT, **kw):
    """Limits of the truth, with the recalibrated uncertainty as residual model."""
    regression, scores = mapie
    score = scores.ResidualNormalisedScore(
        residual_estimator=Column(lambda X: scaler.predict(X[:, 1])),
        prefit=True,
        sym=not asymmetric,
    )
    regressor = regression.SplitConformalRegressor(
        Column(lambda X: X[:, 0]), confidence_level=coverage, conformity_score=score
    )
    X = np.column_stack([PREDICTION, U])
    regressor.conformalize(X[held_out], TRUTH[held_out])
    return regressor.predict_interval(X[NEW], **kw)[1][:, :, 0]


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95])
def test_limits_are_those_of_mapie(mapie, scaler, coverage, asymmetric):
    scaler.conformalize(U[HELD_OUT], E[HELD_OUT])
    ours = PREDICTION[NEW, None] + scaler.predict_interval(
        U[NEW], coverage, asymmetric=asymmetric
    )
    theirs = mapie_limits(mapie, scaler, coverage, asymmetric=asymmetric)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)


@pytest.mark.parametrize("asymmetric", [False, True])
def test_limits_of_equal_width_are_those_of_mapie_s_absolute_score(mapie, asymmetric):
    regression, scores = mapie
    ones = np.ones(N)
    scaler = ss.Recalibrator(ss.NoScaling()).fit(ones[FIT], E[FIT])
    scaler.conformalize(ones[HELD_OUT], E[HELD_OUT])
    ours = PREDICTION[NEW, None] + scaler.predict_interval(
        ones[NEW], 0.9, asymmetric=asymmetric
    )
    regressor = regression.SplitConformalRegressor(
        Column(lambda X: X[:, 0]),
        confidence_level=0.9,
        conformity_score=scores.AbsoluteConformityScore(sym=not asymmetric),
    )
    X = np.column_stack([PREDICTION, U])
    regressor.conformalize(X[HELD_OUT], TRUTH[HELD_OUT])
    theirs = regressor.predict_interval(X[NEW])[1][:, :, 0]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)


def test_mapie_raises_where_our_limits_are_infinite(mapie, scaler):
    few = slice(100, 110)
    scaler.conformalize(U[few], E[few])
    with pytest.warns(InfiniteIntervalWarning, match="at least 19 held-out rows"):
        assert np.isinf(scaler.predict_interval(U[NEW], 0.95)).all()
    with pytest.raises(ValueError, match=r"(?i)number of (calibration )?samples"):
        mapie_limits(mapie, scaler, 0.95, held_out=few)


def test_mapie_rounds_some_ranks_up_by_one(mapie, scaler):
    # 0.55 × 100 is 55.00000000000001 in floating point
    held_out = slice(100, 199)
    scaler.conformalize(U[held_out], E[held_out])
    sizes = np.sort(np.abs(E[held_out] / scaler.predict(U[held_out])))
    ours = scaler.predict_interval(U[NEW], 0.55)[:, 1]
    theirs = (
        mapie_limits(mapie, scaler, 0.55, held_out=held_out)[:, 1] - PREDICTION[NEW]
    )
    np.testing.assert_allclose(ours, sizes[54] * scaler.predict(U[NEW]), rtol=1e-12)
    np.testing.assert_allclose(theirs, sizes[55] * scaler.predict(U[NEW]), rtol=1e-12)


def test_coverage_width_and_winkler_scores_are_those_of_mapie(scaler):
    metrics = neighbour("mapie.metrics.regression")
    scaler.conformalize(U[HELD_OUT], E[HELD_OUT])
    interval = scaler.predict_interval(U[NEW], 0.9)
    of_truth = (PREDICTION[NEW, None] + interval)[:, :, None]
    ours = ss.interval_scores(E[NEW], interval, coverage=0.9)
    theirs = metrics.regression_coverage_score(TRUTH[NEW], of_truth)
    assert ours.picp == pytest.approx(theirs.item(), abs=1e-9)
    theirs = metrics.regression_mean_width_score(of_truth)
    assert ours.mean_width == pytest.approx(theirs.item(), abs=1e-9)
    theirs = metrics.regression_mwi_score(TRUTH[NEW], of_truth, 0.9)
    assert ours.interval_score == pytest.approx(theirs, abs=1e-9)


# --- crepes -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crepes():
    return neighbour("crepes")


def crepes_limits(regressor, scaler, coverage, *, held_out=HELD_OUT, labels=None):
    """Limits of the error, with the recalibrated uncertainty as difficulty."""
    bins = (None, None) if labels is None else (labels[held_out], labels[NEW])
    regressor.fit(E[held_out], sigmas=scaler.predict(U[held_out]), bins=bins[0])
    return regressor.predict_int(
        np.zeros(U[NEW].size),
        sigmas=scaler.predict(U[NEW]),
        bins=bins[1],
        confidence=coverage,
    )


@pytest.mark.parametrize("labels", [None, LABEL], ids=["all rows", "Mondrian"])
@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95])
def test_limits_are_those_of_crepes(crepes, scaler, coverage, asymmetric, labels):
    held_out, new = (None, None) if labels is None else (labels[HELD_OUT], labels[NEW])
    scaler.conformalize(U[HELD_OUT], E[HELD_OUT], by_category=held_out)
    ours = scaler.predict_interval(
        U[NEW], coverage, asymmetric=asymmetric, by_category=new
    )
    kind = crepes.ConformalPredictiveSystem if asymmetric else crepes.ConformalRegressor
    theirs = crepes_limits(kind(), scaler, coverage, labels=labels)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)


def test_crepes_is_infinite_with_a_warning_where_ours_is(crepes, scaler):
    few = slice(100, 110)
    scaler.conformalize(U[few], E[few])
    with pytest.warns(InfiniteIntervalWarning):
        ours = scaler.predict_interval(U[NEW], 0.95)
    with pytest.warns(UserWarning, match="calibration examples is too small"):
        theirs = crepes_limits(crepes.ConformalRegressor(), scaler, 0.95, held_out=few)
    np.testing.assert_array_equal(ours, theirs)
    assert np.isinf(ours).all()


def test_crepes_rounds_some_ranks_up_by_one(crepes, scaler):
    # (1 - 0.9) × 20 is 1.9999999999999996 in floating point
    held_out = slice(100, 119)
    scaler.conformalize(U[held_out], E[held_out])
    sizes = np.sort(np.abs(E[held_out] / scaler.predict(U[held_out])))
    ours = scaler.predict_interval(U[NEW], 0.9)[:, 1]
    theirs = crepes_limits(crepes.ConformalRegressor(), scaler, 0.9, held_out=held_out)
    np.testing.assert_allclose(ours, sizes[17] * scaler.predict(U[NEW]), rtol=1e-12)
    np.testing.assert_allclose(
        theirs[:, 1], sizes[18] * scaler.predict(U[NEW]), rtol=1e-12
    )


def test_a_group_never_seen_has_no_width_in_crepes_and_infinite_width_here(
    crepes, scaler
):
    labels = np.where(np.arange(N) == N - 1, 7, LABEL)
    scaler.conformalize(U[HELD_OUT], E[HELD_OUT], by_category=labels[HELD_OUT])
    with pytest.warns(InfiniteIntervalWarning, match="7 has 0"):
        ours = scaler.predict_interval(U[NEW], 0.9, by_category=labels[NEW])
    theirs = crepes_limits(crepes.ConformalRegressor(), scaler, 0.9, labels=labels)
    np.testing.assert_allclose(ours[:-1], theirs[:-1], rtol=0, atol=1e-9)
    assert ours[-1].tolist() == [-np.inf, np.inf]
    assert theirs[-1].tolist() == [0, 0]


# --- scoringrules -------------------------------------------------------------------


@pytest.fixture(scope="module")
def scoringrules():
    return neighbour("scoringrules")


def test_the_crps_of_a_normal_law_is_that_of_scoringrules(scoringrules):
    ours = ss.Distributions(PREDICTION, U).crps(TRUTH)
    theirs = scoringrules.crps_normal(TRUTH, PREDICTION, U)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("draw", ["standard_normal", "standard_exponential", "t(3)"])
def test_the_crps_of_an_empirical_law_is_nearly_that_of_an_ensemble(scoringrules, draw):
    rng = np.random.default_rng(1)
    z = rng.standard_t(3, 1000) if draw == "t(3)" else getattr(rng, draw)(1000)
    # with uncertainties that are all 1, and no scale to learn, the law is that of z
    ones = np.ones(1000)
    r = ss.Recalibrator(ss.NoScaling()).fit(ones, z)
    d = r.predict_distribution(ss.Predictions(PREDICTION, U))
    members = PREDICTION[:, None] + U[:, None] * z
    theirs = scoringrules.crps_ensemble(TRUTH, members)
    assert d.crps(TRUTH).mean() == pytest.approx(theirs.mean(), rel=0.002)
    np.testing.assert_allclose(d.crps(TRUTH), theirs, rtol=0.01)


# --- the table ----------------------------------------------------------------------


def test_every_line_of_the_documented_table_names_a_test_of_this_module():
    page = Path(__file__).parents[1] / "docs" / "neighbours.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| `") or "| `test_" in line]
    named = [re.findall(r"`(test_\w+)`", row) for row in rows]
    assert len(rows) > 15
    assert all(named)
    assert {name for names in named for name in names} <= set(globals())
    documented = {name for names in named for name in names}
    here = {name for name in globals() if name.startswith("test_")}
    assert here - documented == {
        "test_every_line_of_the_documented_table_names_a_test_of_this_module"
    }
