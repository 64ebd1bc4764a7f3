"""Scores and fits of device arrays are those of NumPy."""

import numpy as np
import pytest
from sklearn.base import clone

import sigmascale as ss
from sigmascale.exceptions import (
    DegenerateFitWarning,
    FewerBinsWarning,
    InvalidInputError,
    ZeroErrorBinWarning,
)

SCORES = {
    "zms": ss.zms,
    "nll": ss.nll,
    "calibration_error": ss.calibration_error,
    "local_calibration_error": ss.local_calibration_error,
    "ence": ss.ence,
    "uce": ss.uce,
}


@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
def test_a_score_is_that_of_numpy(arrays, data_of, score, few_leave):
    X, error = data_of(100_000, 1)
    u = X[:, 0]
    found = score(arrays(error), arrays(u))
    assert type(found) is float
    assert found == pytest.approx(score(error, u), rel=1e-9)


@pytest.mark.parametrize("digits", [None, 1, 0], ids=["distinct", "ties", "few values"])
@pytest.mark.parametrize("n_rows", [500, 100_000])
def test_a_scorecard_is_that_of_numpy_whatever_the_ties(
    arrays, data_of, n_rows, digits, few_leave
):
    if n_rows > 500 and (digits == 0 or arrays.name == "jax"):
        pytest.skip("takes long, and shows nothing that the others do not")
    X, error = data_of(n_rows, 2)
    mass = X[:, 1]
    u = X[:, 0] if digits is None else np.maximum(0.1, X[:, 0].round(digits))
    error = error if digits is None else error.round() + 0.5
    wanted = ss.scorecard(error, u, X[:, 1:3], n_bins=30)
    found = ss.scorecard(arrays(error), arrays(u), arrays(X[:, 1:3]), n_bins=30)
    assert found.to_dict() == pytest.approx(wanted.to_dict(), rel=1e-9)
    wanted = ss.local_calibration_error(error, u, by=mass, ties=error)
    found = ss.local_calibration_error(
        arrays(error), arrays(u), by=arrays(mass), ties=arrays(error)
    )
    assert found == pytest.approx(wanted, rel=1e-9)


def test_local_zms_by_moments_is_that_of_numpy(arrays, data_of, few_leave):
    X, error = data_of(5000, 3)
    wanted = ss.local_zms(error, X[:, 0], by=X[:, 1], method="moments")
    found = ss.local_zms(
        arrays(error), arrays(X[:, 0]), by=arrays(X[:, 1]), method="moments"
    )
    for name in ("zms", "low", "high", "n", "x", "x_min", "x_max"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), 1e-9)
    assert found.overall == pytest.approx(wanted.overall, rel=1e-9)
    with pytest.raises(InvalidInputError, match='method="moments"'):
        ss.local_zms(arrays(error), arrays(X[:, 0]))


def test_float32_is_summed_in_float64(arrays):
    rng = np.random.default_rng(0)
    error = rng.normal(size=1_000_000).astype(np.float32) + np.float32(1000)
    u = rng.uniform(1, 2, 1_000_000).astype(np.float32)
    found = ss.zms(arrays(error, "float32"), arrays(u, "float32"))
    assert found == pytest.approx(ss.zms(error, u), rel=1e-9)


FITS = {
    "temperature": (ss.TemperatureScaling(), 1e-12),
    "none": (ss.NoScaling(), 0),
    "binwise": (ss.BinwiseScaling(40), 1e-12),
    "binwise with ties": (ss.BinwiseScaling(40, by=1), 1e-12),
    "cells": (ss.BinwiseScaling((8, 5), by=(0, 1)), 1e-12),
    "category": (ss.CategoryScaling(2), 1e-12),
    "isotonic alone": (ss.IsotonicScaling(pseudo_rows=0), 1e-9),
    # of many rows: the linear law is fitted to means of neighbours
    "linear": (ss.LinearScaling(), 1e-4),
    "isotonic": (ss.IsotonicScaling(), 1e-4),
    # the average is set on unseen rows of other folds
    "raked": (ss.RakedScaling(8, shrinkage=9.0, categorical=[2]), 0.02),
}


@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.FewerBinsWarning")
@pytest.mark.parametrize("name", FITS)
def test_a_fit_is_that_of_numpy(arrays, data_of, name, few_leave):
    n_rows = 5000 if arrays.name == "jax" else 100_000
    X, error = data_of(n_rows, 4)
    scaler, tolerance = FITS[name]
    wanted = clone(scaler).fit(X, error)
    found = clone(scaler).fit(arrays(X), arrays(error))
    assert (found.n_samples_fit_, found.n_features_in_) == (n_rows, 4)
    assert found.min_uncertainty_ == wanted.min_uncertainty_
    assert found.describe().split()[:5] == wanted.describe().split()[:5]
    np.testing.assert_allclose(found.predict(X), wanted.predict(X), rtol=tolerance)


def test_boosted_trees_are_grown_on_the_host(arrays, data_of):
    X, error = data_of(500, 5)
    scaler = ss.BoostedScaling(max_trees=3, n_folds=2)
    wanted = clone(scaler).fit(X, error).predict(X)
    found = scaler.fit(arrays(X), arrays(error)).predict(arrays(X))
    np.testing.assert_allclose(arrays.back(found), wanted, rtol=1e-12)


def test_another_loss_is_minimised_on_the_host(data_of):
    torch = pytest.importorskip("torch")
    X, error = data_of(300, 5)
    scaler = ss.BinwiseScaling(3, loss="consistency", max_evaluations=50, least_rows=0)
    wanted = clone(scaler).fit(X[:, 0], error)
    found = clone(scaler).fit(torch.from_numpy(X[:, 0].copy()), torch.from_numpy(error))
    np.testing.assert_allclose(found.factors_, wanted.factors_, rtol=1e-6)


def test_what_cannot_be_learned_from_is_said(arrays):
    zeros, ones = arrays(np.zeros(30)), arrays(np.ones(30))
    with pytest.warns(DegenerateFitWarning, match="All 30 errors are 0"):
        scaler = ss.TemperatureScaling().fit(ones, zeros)
    assert scaler.factor_ == 1.0
    with pytest.warns(FewerBinsWarning, match="equal values"):
        ss.BinwiseScaling(4).fit(ones, ones)
    with pytest.warns(ZeroErrorBinWarning):
        assert ss.calibration_error(zeros, ones) == np.inf
    with pytest.raises(InvalidInputError, match=r"30 of 30 .*minimum="):
        ss.TemperatureScaling().fit(zeros, ones)
    with pytest.raises(InvalidInputError, match="too many joint cells"):
        ss.RakedScaling(400).fit(
            arrays(np.random.default_rng(0).random((9000, 4))), arrays(np.ones(9000))
        )


def test_bad_errors_and_uncertainties_are_named(arrays):
    good, bad = arrays(np.ones(5)), arrays([1.0, 2.0, np.nan, 1.0, np.inf])
    for function in (ss.zms, ss.scorecard):
        with pytest.raises(InvalidInputError, match=r"`error` must be finite.*2 of 5"):
            function(bad, good)
        with pytest.raises(InvalidInputError, match="`uncertainty` must be finite"):
            function(good, bad)
    with pytest.raises(InvalidInputError, match=r"positive.*first at row 1: 0"):
        ss.zms(good, arrays([1.0, 0.0, 1.0, 1.0, 1.0]))
    with pytest.raises(InvalidInputError, match="between 1e-70 and"):
        ss.zms(good, arrays([1.0, 1e-90, 1.0, 1.0, 1.0]))
    with pytest.raises(InvalidInputError, match="times its uncertainty"):
        ss.zms(arrays([1e60, 1.0]), arrays([1e-60, 1.0]))
    with pytest.raises(InvalidInputError, match="same number of rows; found 5 and 2"):
        ss.zms(good, arrays([1.0, 1.0]))
    with pytest.raises(InvalidInputError, match="`error` must have at least 1 row"):
        ss.zms(arrays(np.empty(0)), arrays(np.empty(0)))
    with pytest.raises(InvalidInputError, match="`uncertainty` must be one-dim"):
        ss.zms(good, arrays(np.ones((5, 1))))
    with pytest.raises(InvalidInputError, match="`features` must be a table"):
        ss.scorecard(good, good, arrays(np.ones((5, 1, 1))))
    with pytest.raises(InvalidInputError, match="S_cal is a score"):
        ss.scorecard(good, good, {"cal": good})
    with pytest.raises(InvalidInputError, match="`y` must be finite"):
        ss.TemperatureScaling().fit(good, bad)


def test_integers_are_scored_as_numbers(arrays):
    error, u = np.arange(-5, 6), np.arange(1, 12)
    found = ss.nll(arrays(error, "int64"), arrays(u, "int64"))
    assert found == pytest.approx(ss.nll(error, u), rel=1e-12)


def test_weighted_rows_are_fitted_on_the_host_and_scored_nowhere_else(arrays, data_of):
    X, error = data_of(300)
    w = np.random.default_rng(0).gamma(1, size=300)
    expected = ss.LinearScaling().fit(X[:, 0], error, sample_weight=w)
    u, e, weights = (arrays(each) for each in (X[:, 0], error, w))
    found = ss.LinearScaling().fit(u, e, sample_weight=weights)
    assert found.a_ == pytest.approx(expected.a_, rel=1e-6)
    score = expected.score(X[:, 0], error, w)
    assert found.score(u, e, weights) == pytest.approx(score, rel=1e-6)
    for score in (ss.zms, ss.ence, ss.local_zms, ss.scorecard):
        with pytest.raises(InvalidInputError, match="judged without weights: copy"):
            score(e, u, sample_weight=w)
