"""Calibration curves and PIT histograms, and the bands of calibrated sets."""

import numpy as np
import pytest
from scipy import special, stats

import sigmascale as ss

RNG = np.random.default_rng(8)
U = RNG.lognormal(0, 0.5, 600)
E = U * RNG.standard_t(5, 600)


@pytest.mark.parametrize("kind", ["interval", "quantile"])
def test_the_curve_counts_level_by_level(kind):
    curve = ss.calibration_curve(E, U, n_levels=7, kind=kind)
    assert curve.level == pytest.approx(np.arange(7) / 6)
    for level, observed in zip(curve.level[1:-1], curve.observed[1:-1], strict=True):
        if kind == "interval":
            low, high = special.ndtri([(1 - level) / 2, (1 + level) / 2])
            held = (low * U <= E) & (high * U >= E)
        else:
            held = special.ndtri(level) * U >= E
        assert observed == held.mean()
    assert curve.observed[-1] == 1


def test_the_calibration_error_is_the_distance_of_the_curve_from_the_diagonal():
    curve = ss.calibration_curve(E, U)
    gap = np.mean(np.abs(curve.observed - curve.level))
    assert ss.mean_absolute_calibration_error(E, U) == pytest.approx(gap)


def test_truths_below_the_prediction_are_on_the_left_of_the_pit_histogram():
    histogram = ss.pit_histogram([-1.0, -1.0, -3.0, 1.0], np.ones(4), n_bins=2)
    np.testing.assert_array_equal(histogram.density, [1.5, 0.5])
    np.testing.assert_array_equal(histogram.edges, [0, 0.5, 1])


def test_the_mean_density_of_pits_is_1():
    assert ss.pit_histogram(E, U).density.mean() == pytest.approx(1)
    weights = RNG.uniform(0.5, 2, 600)
    weighted = ss.pit_histogram(E, U, n_bins=5, sample_weight=weights).density
    assert weighted.mean() == pytest.approx(1)
    codes = np.minimum(5 * special.ndtr(E / U), 4).astype(int)
    by_hand = np.bincount(codes, weights) / weights.sum() * 5
    np.testing.assert_allclose(weighted, by_hand)


def test_equal_weights_change_nothing_and_unequal_ones_widen_the_bands():
    plain = ss.calibration_curve(E, U)
    same = ss.calibration_curve(E, U, sample_weight=np.full(600, 3.0))
    np.testing.assert_allclose(same.observed, plain.observed)
    np.testing.assert_array_equal(same.low, plain.low)
    weights = np.where(np.arange(600) < 60, 20.0, 1.0)
    assert ss.calibration_curve(E, U, sample_weight=weights).low[50] < plain.low[50]
    wide = ss.pit_histogram(E, U, sample_weight=weights)
    assert wide.high > ss.pit_histogram(E, U).high


def test_repeats_of_a_row_are_not_new_rows():
    groups = np.repeat(np.arange(200), 3)
    p = ss.Predictions(error=E[groups], y_std=U[groups], groups=groups)
    alone = ss.calibration_curve(E[:200], U[:200])
    np.testing.assert_allclose(ss.calibration_curve(p).low, alone.low, atol=0.01)
    assert ss.pit_histogram(p, n_bins=9).high == pytest.approx(
        ss.pit_histogram(E[:200], U[:200], n_bins=9).high, rel=0.02
    )


@pytest.mark.parametrize("n", [40, 1000])
def test_bands_hold_calibrated_sets_as_often_as_they_say(n):
    rng = np.random.default_rng(2)
    u, n_sets = np.ones(n), 400
    sets = rng.standard_normal((n_sets, n))
    curves = sum(ss.calibration_curve(each, u).is_within for each in sets)
    assert stats.binomtest(curves, n_sets, 0.95).pvalue > 0.001
    # Bonferroni's bounds for counts never hold less
    pits = sum(ss.pit_histogram(each, u).is_within for each in sets)
    assert stats.binomtest(pits, n_sets, 0.95, alternative="less").pvalue > 0.001


@pytest.mark.parametrize("factor", [0.7, 1.5])
def test_wrong_uncertainties_leave_the_bands(factor):
    error = np.random.default_rng(3).normal(size=1000)
    curve = ss.calibration_curve(error, np.full(1000, factor))
    assert not curve.is_within
    assert (curve.observed[50] < 0.5) == (factor < 1)
    assert not ss.pit_histogram(error, np.full(1000, factor)).is_within


def test_results_print_and_convert():
    curve = ss.calibration_curve(E, U, n_levels=3)
    assert str(curve).splitlines()[0].split() == ["nominal", "observed", "band"]
    assert curve.to_dict()["level"] == [0, 0.5, 1]
    histogram = ss.pit_histogram(E, U, n_bins=4)
    assert len(histogram.to_table("markdown").splitlines()) == 6
