"""Reliability diagrams, calibration curves, PIT histograms, and their bands."""

import numpy as np
import pytest
from scipy import special, stats

import sigmascale as ss
from sigmascale.judging import metrics

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
    assert metrics.mean_absolute_calibration_error(E, U) == pytest.approx(gap)


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


def test_a_single_error_of_0_does_not_take_the_curve_out_of_the_band():
    error = np.random.default_rng(0).normal(size=1000)
    error[0] = 0.0
    assert ss.calibration_curve(error, np.ones(1000)).is_within


@pytest.mark.parametrize("factor", [0.7, 1.5])
def test_wrong_uncertainties_leave_the_bands(factor):
    error = np.random.default_rng(3).normal(size=1000)
    curve = ss.calibration_curve(error, np.full(1000, factor))
    assert not curve.is_within
    assert (curve.observed[50] < 0.5) == (factor < 1)
    assert not ss.pit_histogram(error, np.full(1000, factor)).is_within


def test_the_reliability_diagram_is_computed_bin_by_bin():
    diagram = ss.reliability_diagram(E, U, n_bins=6)
    order = np.argsort(U).reshape(6, 100)
    np.testing.assert_allclose(diagram.rmse, np.sqrt((E[order] ** 2).mean(axis=1)))
    np.testing.assert_allclose(diagram.rmv, np.sqrt((U[order] ** 2).mean(axis=1)))
    np.testing.assert_array_equal(diagram.n, 100)
    assert diagram.ence == pytest.approx(ss.ence(E, U, n_bins=6))
    assert np.all((diagram.low < diagram.rmse) & (diagram.rmse < diagram.high))


def test_a_picture_has_at_most_20_bins_unless_more_are_asked_for():
    rng = np.random.default_rng(0)
    error = rng.normal(size=3000)
    u = rng.uniform(1, 2, 3000)
    assert ss.reliability_diagram(error, u).n.size == 20
    assert ss.reliability_diagram(error[:150], u[:150]).n.size == 5
    assert ss.reliability_diagram(error, u, n_bins=50).n.size == 50


def test_what_is_attainable_is_what_calibrated_sets_attain():
    rng = np.random.default_rng(5)
    u = rng.lognormal(0, 0.4, 2000)
    inside, scores = [], []
    for _ in range(60):
        z = rng.standard_t(6, 2000) * np.sqrt(4 / 6)  # t(6) has variance 6 / 4
        diagram = ss.reliability_diagram(u * z, u)
        low, high = diagram.attainable_low, diagram.attainable_high
        inside += [(low <= diagram.rmse) & (diagram.rmse <= high)]
        scores += [(diagram.ence, diagram.attainable_ence)]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.02)
    found, attainable = np.mean(scores, axis=0)
    assert attainable == pytest.approx(found, rel=0.05)


def test_a_factor_of_u_moves_the_diagram_but_not_what_is_attainable():
    first, second = (ss.reliability_diagram(E, k * U) for k in (1, 3))
    np.testing.assert_allclose(second.rmse, first.rmse)
    np.testing.assert_allclose(second.rmv, 3 * first.rmv)
    np.testing.assert_allclose(second.attainable_high, 3 * first.attainable_high)


def test_intervals_of_a_diagram_count_groups_and_weights():
    groups = np.repeat(np.arange(120), 5)
    u = np.repeat(U[:120], 5)
    error = u * np.repeat(RNG.standard_normal(120), 5)  # repeats tell nothing new
    alone = ss.reliability_diagram(error, u, n_bins=4)
    together = ss.reliability_diagram(error, u, n_bins=4, groups=groups)
    np.testing.assert_allclose(together.rmse, alone.rmse)
    assert np.all(together.high - together.low > 1.5 * (alone.high - alone.low))
    same = ss.reliability_diagram(E, U, n_bins=4, sample_weight=np.full(600, 2.0))
    plain = ss.reliability_diagram(E, U, n_bins=4)
    np.testing.assert_allclose(same.rmse, plain.rmse)


def test_results_print_and_convert():
    diagram = ss.reliability_diagram(E, U, n_bins=5)
    assert len(str(diagram).splitlines()) == 7
    assert len(diagram.to_dict()["rmse"]) == 5
    curve = ss.calibration_curve(E, U, n_levels=3)
    assert str(curve).splitlines()[0].split() == ["nominal", "observed", "band"]
    assert curve.to_dict()["level"] == [0, 0.5, 1]
    histogram = ss.pit_histogram(E, U, n_bins=4)
    assert len(histogram.to_table("markdown").splitlines()) == 6


def test_curves_and_histograms_are_those_of_the_law_that_predictions_carry():
    rng = np.random.default_rng(1)
    u = rng.uniform(1, 2, 4000)
    p = ss.Predictions(error=u * (rng.exponential(size=4000) - 1), y_std=u)
    learned, unseen = p.take(np.arange(2000)), p.take(np.arange(2000, 4000))
    applied = ss.Recalibrator(ss.TemperatureScaling()).fit(learned).apply(unseen)
    bare = applied.changed(distributions=None)
    curves = [ss.calibration_curve(each, kind="quantile") for each in (applied, bare)]
    assert curves[0].area < curves[1].area / 4
    density = [ss.pit_histogram(each).density for each in (applied, bare)]
    assert np.std(density[0]) < np.std(density[1]) / 4
