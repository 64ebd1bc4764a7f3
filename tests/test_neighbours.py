"""What other libraries compute on the same rows, where they compute the same."""

import warnings

import numpy as np
import pytest
from scipy import special
from sklearn.base import BaseEstimator, RegressorMixin

import sigmascale as ss

scores = ss.scores
RNG = np.random.default_rng(0)
N = 300
PREDICTION = RNG.normal(10, 3, N)
U = RNG.lognormal(0, 0.5, N)
TRUTH = PREDICTION + RNG.standard_t(4, N) * 1.4 * U + 0.1
P = ss.Predictions(PREDICTION, U, y_true=TRUTH)


def neighbour(name):
    """Import a library that the group `neighbours` of pyproject.toml installs."""
    with warnings.catch_warnings():  # crepes changes the filters when it is imported
        return pytest.importorskip(
            name, reason=f"{name} is not installed: pip install --group neighbours"
        )


# --- uncertainty-toolbox ------------------------------------------------------------


@pytest.fixture(scope="module")
def uct():
    return neighbour("uncertainty_toolbox").metrics


def test_calibration_errors_are_those_of_uncertainty_toolbox(uct):
    names = {
        "mean_absolute_calibration_error": "mean_absolute_error",
        "root_mean_squared_calibration_error": "root_mean_squared_error",
        "miscalibration_area": "area",
    }
    for kind in ("interval", "quantile"):
        for n_levels in (2, 17, 100):
            curve = scores.calibration_curve(P, n_levels=n_levels, kind=kind)
            for theirs, ours in names.items():
                expected = getattr(uct, theirs)(
                    PREDICTION, U, TRUTH, num_bins=n_levels, prop_type=kind
                )
                assert getattr(curve, ours) == pytest.approx(expected, abs=1e-6)


def test_sharpness_crps_and_nll_are_those_of_uncertainty_toolbox(uct):
    assert scores.sharpness(P) == pytest.approx(uct.sharpness(U), abs=1e-9)
    rows = (PREDICTION, U, TRUTH)
    assert scores.crps(P) == pytest.approx(uct.crps_gaussian(*rows), abs=1e-6)
    assert scores.nll(P) == pytest.approx(uct.nll_gaussian(*rows), abs=1e-6)


def test_the_interval_score_of_uncertainty_toolbox_is_a_mean_over_levels(uct):
    ours = [scores.interval_score(P, coverage=p) for p in np.linspace(0.01, 0.99, 99)]
    theirs = uct.interval_score(PREDICTION, U, TRUTH)
    assert np.mean(ours) == pytest.approx(theirs, abs=1e-6)


def test_crps_is_twice_the_check_score_of_uncertainty_toolbox_at_all_quantiles(uct):
    ends = {"start_q": 0.5 / 5000, "end_q": 1 - 0.5 / 5000, "resolution": 5000}
    theirs = uct.check_score(PREDICTION, U, TRUTH, **ends)
    assert scores.crps(P) == pytest.approx(2 * theirs, rel=1e-4)


# --- netcal -------------------------------------------------------------------------
# It needs PyTorch, several gigabytes, so that it is not in the group `neighbours`. The
# numbers are what netcal 1.4.0 gave for these rows, with a stand-in for PyTorch, which
# its regression metrics do not call: ENCE(bins=12), UCE(bins=12), PICP at 0.9, and
# QCE(bins=12), marginal over 100 levels from 0 to 1, of (zeros, u) and the errors.

ROW = np.arange(600)
NETCAL_U = 0.2 + (ROW * 0.6180339887 % 1) ** 2
NETCAL_E = 1.3 * NETCAL_U * special.ndtri(0.001 + 0.998 * (ROW * 0.7548776662 % 1))
NETCAL = {
    "ENCE": 0.287525361910421,
    "UCE": 0.2540921202445386,
    "PICP": 0.7966666666666666,
    "M-QCE": 0.08113333333333334,
}


def equal_width_bins(x, n_bins=12):
    edges = np.linspace(x.min(), x.max(), n_bins + 1)
    return np.clip(np.searchsorted(edges, x, side="right") - 1, 0, n_bins - 1)


def test_metrics_with_netcal_s_bins_of_equal_width_are_netcal_s():
    labels = {
        "width": equal_width_bins(NETCAL_U).astype(str),
        "variance": equal_width_bins(NETCAL_U**2).astype(str),
    }
    p = ss.Predictions(y_std=NETCAL_U, error=NETCAL_E, features=labels)
    assert scores.ence(p, by="width") == pytest.approx(NETCAL["ENCE"], abs=1e-6)
    assert abs(scores.ence(p, n_bins=12) - NETCAL["ENCE"]) > 1e-3
    assert scores.coverage(p, coverage=0.9) == pytest.approx(NETCAL["PICP"], abs=1e-6)
    curve = scores.calibration_curve(p, n_levels=100)
    assert curve.mean_absolute_error == pytest.approx(NETCAL["M-QCE"], abs=1e-6)
    # netcal weights bins by their rows, which makes no difference for equal sizes
    gaps, weights = [], []
    for label in np.unique(labels["variance"]):
        rows = labels["variance"] == label
        gaps.append(abs(np.mean(NETCAL_E[rows] ** 2) - np.mean(NETCAL_U[rows] ** 2)))
        weights.append(rows.mean())
    assert np.dot(gaps, weights) == pytest.approx(NETCAL["UCE"], abs=1e-6)
    assert scores.uce(p, by="variance") == pytest.approx(np.mean(gaps))


# --- conformal intervals: MAPIE and crepes --------------------------------------------


@pytest.fixture(scope="module")
def held_out():
    """A recalibrator with rows held out, these rows' z-scores, and new rows."""
    known, new = P.take(np.arange(240)), P.take(np.arange(240, N))
    r = ss.Recalibrator(ss.TemperatureScaling(), hold_out=0.5).fit(known)
    (table,) = r.distribution_.tables
    assert table.values.size == 120
    return r, table.values, new


def test_intervals_of_rows_held_out_are_those_of_crepes(held_out):
    crepes = neighbour("crepes")
    r, z, new = held_out
    theirs = crepes.ConformalPredictiveSystem().fit(z, sigmas=np.ones(z.size))
    for coverage in (0.5, 0.8, 0.9, 0.95):
        expected = theirs.predict_int(
            new.y_pred, sigmas=r.predict(new), confidence=coverage
        )
        ours = r.apply(new).distributions.interval(coverage)
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-9)


class Column(RegressorMixin, BaseEstimator):
    """A fitted regressor that predicts one column of its input."""

    def __init__(self, column=0):
        self.column = column
        self.coef_ = None  # for MAPIE, the sign of a fit

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X[:, self.column]


def test_intervals_of_rows_held_out_are_those_of_mapie(held_out):
    regression = neighbour("mapie.regression")
    conformity = neighbour("mapie.conformity_scores")
    r, z, new = held_out
    for coverage in (0.5, 0.8, 0.9, 0.95):
        score = conformity.ResidualNormalisedScore(
            residual_estimator=Column(1), prefit=True, sym=False
        )
        theirs = regression.SplitConformalRegressor(
            Column(0), confidence_level=coverage, conformity_score=score
        )
        # the z-scores stand for the rows held out
        theirs.conformalize(np.column_stack([0 * z, 1 + 0 * z]), z)
        X = np.column_stack([new.y_pred, r.predict(new)])
        expected = theirs.predict_interval(X)[1][:, :, 0]
        ours = r.apply(new).distributions.interval(coverage)
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-9)


def test_coverage_and_winkler_scores_are_those_of_mapie():
    metrics = neighbour("mapie.metrics.regression")
    q = ss.Recalibrator(ss.TemperatureScaling()).fit(P).apply(P)
    interval = q.distributions.interval(0.9)[:, :, None]
    theirs = metrics.regression_coverage_score(TRUTH, interval)
    assert scores.coverage(q, coverage=0.9) == pytest.approx(theirs.item(), abs=1e-9)
    theirs = metrics.regression_mwi_score(TRUTH, interval, 0.9)
    assert scores.interval_score(q, coverage=0.9) == pytest.approx(theirs, abs=1e-9)


# --- scoringrules -------------------------------------------------------------------


def test_the_crps_of_normal_distributions_is_that_of_scoringrules():
    scoringrules = neighbour("scoringrules")
    ours = ss.Distributions.normal(P).crps(TRUTH)
    theirs = scoringrules.crps_normal(TRUTH, PREDICTION, U)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


def test_scores_of_empirical_distributions_are_nearly_those_of_ensembles():
    scoringrules = neighbour("scoringrules")
    q = ss.Recalibrator().fit(P).apply(P)
    members = q.distributions.sample(500)
    theirs = scoringrules.crps_ensemble(TRUTH, members)
    assert scores.crps(q) == pytest.approx(theirs.mean(), rel=0.02)
    error = np.random.default_rng(1).normal(size=(50, 3)) * U[:50, None]
    v = ss.Predictions(np.zeros((50, 3)), U[:50], y_true=error)
    for p in (v, ss.Recalibrator(ss.TemperatureScaling()).fit(v).apply(v)):
        theirs = scoringrules.es_ensemble(error, p.distributions.sample(200))
        assert scores.energy_score(p) == pytest.approx(theirs.mean(), rel=0.03)
