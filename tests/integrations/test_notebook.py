"""A session as in a notebook: a search, a loop, frames in and out, and a test suite."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

import sigmascale as ss


def noisy_rows(n, seed):
    """Return rows whose noise grows with the second column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] + np.exp(X[:, 1]) * rng.normal(size=n)


def test_a_search_by_crps_reports_several_scores():
    X, y = noisy_rows(400, seed=0)
    model = ss.RecalibratedRegressor(Ridge(), ss.Recalibrator(), cv=3)
    scalings = [ss.TemperatureScaling(), ss.RakedScaling()]
    scoring = {"crps": ss.scorers.neg_crps, "rms_z": ss.scorers.neg_rms_z_error}
    search = GridSearchCV(
        model, {"recalibrator__scaling": scalings}, scoring=scoring, refit="crps", cv=3
    ).fit(X, y)
    assert isinstance(search.best_params_["recalibrator__scaling"], ss.RakedScaling)
    crps = -search.cv_results_["mean_test_crps"]
    assert crps[1] < 0.95 * crps[0]
    assert search.cv_results_["mean_test_rms_z"][1] > -0.2
    assert search.predict(X).shape == y.shape
    X_new, y_new = noisy_rows(1000, seed=1)
    assert -search.score(X_new, y_new) == pytest.approx(crps[1], rel=0.15)


def test_rows_asked_for_by_their_std_teach_more_than_those_that_come():
    def height(X):
        return np.sin(3 * X[:, 0]) * np.exp(-(X[:, 1] ** 2))

    rng = np.random.default_rng(0)
    candidates = rng.normal(scale=0.45, size=(600, 2))
    measured = height(candidates) + rng.normal(scale=0.05, size=600)
    process = GaussianProcessRegressor(RBF(0.5) + WhiteKernel(0.01), optimizer=None)
    model = ss.RecalibratedRegressor(process, ss.Recalibrator(ss.LinearScaling()))
    known = np.arange(30)
    for _ in range(3):
        model.fit(candidates[known], measured[known])
        std = model.predict(candidates, return_std=True)[1]
        std[known] = 0
        known = np.append(known, np.argsort(std)[-15:])
    square = rng.uniform(-1, 1, size=(500, 2))
    rmse = []
    for rows in (known, np.arange(known.size)):
        model.fit(candidates[rows], measured[rows])
        rmse.append(np.std(model.predict(square) - height(square)))
    assert rmse[0] < 0.85 * rmse[1]


def table():
    """Return a table of a sample with names, and its uncertainties too small by two."""
    X, y = noisy_rows(300, seed=2)
    names = [f"sample {i}" for i in range(300)]
    u = 0.5 * np.exp(X[:, 1])
    return names, {"y": y, "mean": X[:, 0], "std": u, "dose, mg": X[:, 1]}


ROLES = {"y_true": "y", "y_pred": "mean", "y_std": "std", "features": ["dose, mg"]}


def test_pandas_come_back_with_their_index_and_names():
    names, columns = table()
    frame = pd.DataFrame(columns, index=pd.Index(names, name="sample"))
    p = ss.Predictions.from_frame(frame, **ROLES)
    q = ss.Recalibrator(ss.TemperatureScaling()).fit(p).apply(p)
    out = q.to_frame(coverage=0.9)
    pd.testing.assert_index_equal(out.index, frame.index)
    assert {"y_pred", "y_std", "y_true", "low", "high", "dose, mg"} <= {*out.columns}
    assert out["dose, mg"].equals(frame["dose, mg"])
    covered = (out["low"] <= frame["y"]) & (frame["y"] <= out["high"])
    assert covered.mean() == pytest.approx(0.9, abs=0.03)
    joined = frame.join(q.distributions.to_frame(), rsuffix="_after")
    assert joined.loc["sample 7", "std_after"] == pytest.approx(
        out["y_std"].iloc[7], rel=0.1
    )
    worst = out[out["y_std"] > out["y_std"].quantile(0.9)]
    again = ss.Predictions.from_frame(worst, y_true="y_true").to_frame()
    assert list(again.index) == list(worst.index)
    checks = ss.validate(p).to_frame()
    assert isinstance(checks, pd.DataFrame)
    assert len(checks) > 3


def test_polars_come_back_with_their_names():
    _, columns = table()
    frame = pl.DataFrame(columns)
    p = ss.Predictions.from_frame(frame, **ROLES)
    q = ss.Recalibrator(ss.TemperatureScaling()).fit(p).apply(p)
    out = q.to_frame(coverage=0.9)
    assert isinstance(out, pl.DataFrame)
    assert out["dose, mg"].equals(frame["dose, mg"])
    assert (out["y_std"] / frame["std"]).round(6).n_unique() == 1
    assert isinstance(q.distributions.to_frame(), pl.DataFrame)
    assert isinstance(ss.validate(p).to_frame(), pl.DataFrame)
    back = ss.Predictions.from_frame(out, y_true="y_true")
    np.testing.assert_array_equal(back.y_std, q.y_std)


SUITE = """
import numpy as np
import sigmascale as ss
from sigmascale.testing import assert_calibrated

rng = np.random.default_rng(0)
u = rng.uniform(1, 2, 1000)
error = rng.normal(0, u)


def test_uncertainties_are_calibrated():
    assert_calibrated(ss.Predictions(y_std=u, error=error), tolerance=1.5)


def test_halved_uncertainties_are_calibrated():
    assert_calibrated(ss.Predictions(y_std=u / 2, error=error), tolerance=1.5)


def test_few_rows_are_known_to_be_calibrated():
    p = ss.Predictions(y_std=u[:30], error=error[:30])
    assert_calibrated(p, tolerance=1.5, inconclusive=False)
"""


def test_a_suite_of_tests_shows_the_printed_result_of_what_fails(tmp_path):
    (tmp_path / "test_mine.py").write_text(SUITE)
    asked = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    asked += ["--rootdir", str(tmp_path), str(tmp_path)]
    told = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert "2 failed, 1 passed" in told.stdout
    assert "test_uncertainties_are_calibrated" not in told.stdout
    assert "AssertionError: NOT CALIBRATED: overconfident" in told.stdout
    assert "FAIL  calibration" in told.stdout
    assert "AssertionError: INCONCLUSIVE" in told.stdout
