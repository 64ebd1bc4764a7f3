"""Calibration curve, PIT histogram, reliability diagram and confidence curve."""

import numpy as np
import pytest
from scipy import integrate, special, stats

import sigmascale as ss

scores = ss.scores


def make(n=1000, seed=0, factor=1.0, **others):
    rng = np.random.default_rng([seed, 1])
    u = rng.lognormal(size=n)
    return ss.Predictions(y_std=factor * u, error=rng.normal(scale=u), **others)


# --- calibration curve ----------------------------------------------------------------


def test_the_curve_counts_level_by_level():
    p = make(300, factor=0.7)
    for kind in ("interval", "quantile"):
        curve = scores.calibration_curve(p, n_levels=21, kind=kind)
        for level, observed in zip(curve.coverage, curve.observed, strict=True):
            with np.errstate(divide="ignore"):
                quantile = special.ndtri(
                    level if kind == "quantile" else (1 + level) / 2
                )
            z = p.z if kind == "quantile" else np.abs(p.z)
            assert observed == pytest.approx(np.mean(z <= quantile), abs=1e-12)
        assert curve.kind == kind


def test_areas_and_distances_are_those_between_curve_and_diagonal():
    p = make(300, factor=0.7)
    curve = scores.calibration_curve(p, n_levels=11)
    off = curve.observed - curve.coverage
    assert curve.mean_absolute_error == pytest.approx(np.mean(np.abs(off)))
    assert curve.root_mean_squared_error == pytest.approx(np.sqrt(np.mean(off**2)))
    fine = np.linspace(0, 1, 100_001)
    between = np.abs(np.interp(fine, curve.coverage, off))
    assert curve.area == pytest.approx(integrate.trapezoid(between, fine), abs=1e-6)
    assert scores.miscalibration_area(p, n_levels=11) == curve.area
    worse = scores.miscalibration_area(make(300, factor=0.4))
    assert worse > scores.miscalibration_area(p)


@pytest.mark.slow
def test_bands_hold_calibrated_sets_as_often_as_they_say():
    for n in (50, 1000):
        sets = [make(n, seed) for seed in range(400)]
        curves = sum(scores.calibration_curve(p).is_within for p in sets)
        assert stats.binomtest(curves, 400, 0.95).pvalue > 0.001
        histograms = sum(scores.pit_histogram(p).is_within for p in sets)
        assert stats.binomtest(histograms, 400, 0.95, "less").pvalue > 0.001


def test_wrong_uncertainties_leave_the_bands():
    for factor in (0.7, 1.4):
        p = make(1000, factor=factor)
        assert not scores.calibration_curve(p).is_within
        assert not scores.pit_histogram(p).is_within
    above = scores.calibration_curve(make(1000, factor=3.0), n_levels=11)
    assert (above.observed[1:-1] > above.coverage[1:-1]).all()


def test_repeats_of_a_row_are_not_new_rows_and_weights_widen_the_band():
    p = make(200)
    rows = np.repeat(np.arange(200), 5)
    alone = scores.calibration_curve(p)
    for q in (
        p.take(rows)._with(groups=rows),
        ss.Predictions(
            y_std=p.y_std[rows],
            error=p.error[rows],
            groups=rows,
            weights=np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 200),
        ),
    ):
        curve = scores.calibration_curve(q)
        np.testing.assert_allclose(curve.observed, alone.observed, atol=1e-12)
        np.testing.assert_array_equal(curve.low, alone.low)
        histogram = scores.pit_histogram(q, n_bins=5)
        assert histogram.high == scores.pit_histogram(p, n_bins=5).high
    weights = np.random.default_rng(0).lognormal(size=200)
    weighted = make(200, weights=weights)
    wider = scores.calibration_curve(weighted)
    assert (wider.high - wider.low)[50] > (alone.high - alone.low)[50]
    inside = np.average(np.abs(p.z) <= special.ndtri(0.75), weights=weights)
    halves = scores.calibration_curve(weighted, n_levels=3)
    assert halves.observed[1] == pytest.approx(inside)


# --- PIT histogram --------------------------------------------------------------------


def test_truths_below_the_prediction_are_on_the_left_of_a_histogram_of_mean_1():
    p = ss.Predictions(y_std=np.ones(4), error=[-2.0, -1.0, -0.1, 3.0])
    histogram = scores.pit_histogram(p, n_bins=2)
    assert histogram.density.tolist() == [1.5, 0.5]
    found = scores.pit_histogram(make(1000))
    assert found.density.size == 20
    assert found.density.mean() == pytest.approx(1)
    assert found.edges[[0, -1]].tolist() == [0, 1]
    # all of 20 bins at once, each counting 1,000 rows
    limits = stats.binom.ppf([0.025 / 20, 1 - 0.025 / 20], 1000, 1 / 20) / 50
    assert (found.low, found.high) == pytest.approx(tuple(limits))


def test_curves_of_vectors_count_balls():
    rng = np.random.default_rng(0)
    u = rng.lognormal(size=2000)
    p = ss.Predictions(y_std=u, error=rng.normal(size=(2000, 3)) * u[:, None])
    curve = scores.calibration_curve(p, n_levels=11)
    radii = np.sqrt(stats.chi2(3).ppf(curve.coverage))
    inside = np.linalg.norm(p.error, axis=1)[:, None] <= u[:, None] * radii
    np.testing.assert_allclose(curve.observed, inside.mean(axis=0), atol=1e-12)
    assert curve.is_within
    assert scores.pit_histogram(p).is_within
    assert not scores.calibration_curve(p.with_y_std(1.3 * u)).is_within


# --- reliability diagram --------------------------------------------------------------


def test_the_reliability_diagram_is_computed_bin_by_bin():
    p = make(500, factor=0.5)
    diagram = scores.reliability_diagram(p, n_bins=5)
    for k, rows in enumerate(np.split(np.argsort(p.y_std), 5)):
        assert diagram.rmv[k] == pytest.approx(np.sqrt(np.mean(p.y_std[rows] ** 2)))
        assert diagram.rmse[k] == pytest.approx(np.sqrt(np.mean(p.error[rows] ** 2)))
        assert diagram.low[k] < diagram.rmse[k] < diagram.high[k]
    assert diagram.ence == pytest.approx(scores.ence(p, n_bins=5))
    assert scores.reliability_diagram(make(3000)).n.size == 20
    assert scores.reliability_diagram(make(3000), n_bins=50).n.size == 50


def test_what_is_attainable_is_what_calibrated_sets_attain():
    p = make(2000)
    right, wrong = (
        scores.reliability_diagram(each) for each in (p, p.with_y_std(3 * p.y_std))
    )
    expected = np.sqrt(stats.chi2(100).ppf([0.025, 0.975]) / 100)
    for limit, ratio in zip(
        (right.attainable_low, right.attainable_high), expected, strict=True
    ):
        # about, because rows of a bin differ in u
        assert (limit / right.rmv).mean() == pytest.approx(ratio, rel=0.03)
    np.testing.assert_allclose(wrong.attainable_low, 3 * right.attainable_low)
    assert wrong.attainable_ence == pytest.approx(right.attainable_ence)
    assert right.ence < 2 * right.attainable_ence
    assert wrong.ence > 5 * wrong.attainable_ence


# --- confidence curve -----------------------------------------------------------------


def test_the_oracle_of_equal_errors_with_weights_does_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    rows = {
        "y_std": rng.lognormal(size=300),
        "error": rng.integers(-3, 4, 300).astype(float),
        "weights": rng.uniform(0.2, 2, 300),
    }
    oracle = scores.confidence_curve(ss.Predictions(**rows), n_draws=2).oracle
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(300)
        p = ss.Predictions(**{name: x[order] for name, x in rows.items()})
        found = scores.confidence_curve(p, n_draws=2).oracle
        np.testing.assert_allclose(found, oracle, rtol=1e-12)


def test_each_point_is_the_statistic_of_the_rows_that_are_left():
    p = make(200)
    for statistic, function in (
        ("rmse", lambda e: np.sqrt(np.mean(e**2))),
        ("mae", lambda e: np.mean(np.abs(e))),
    ):
        curve = scores.confidence_curve(p, statistic=statistic, n_points=10, n_draws=2)
        for k in range(10):
            kept = 200 - 20 * k
            by_u = p.error[np.argsort(p.y_std)[:kept]]
            by_size = p.error[np.argsort(np.abs(p.error))[:kept]]
            assert curve.pruned[k] == pytest.approx(k / 10)
            assert curve.error[k] == pytest.approx(function(by_u))
            assert curve.oracle[k] == pytest.approx(function(by_size))
        assert (curve.oracle <= curve.error + 1e-12).all()
        assert curve.relative[0] == 1
    expected = np.mean(curve.error - curve.oracle) / curve.error[0]
    assert curve.area_to_oracle == pytest.approx(expected)


def test_the_reference_is_the_error_that_right_uncertainties_promise():
    p = make(3000)
    curve = scores.confidence_curve(p, n_draws=200)
    kept = np.sort(p.y_std)[: 3000 - 30 * 50]
    assert curve.reference[50] == pytest.approx(np.sqrt(np.mean(kept**2)), rel=0.01)
    inside = (curve.reference_low <= curve.error) & (
        curve.error <= curve.reference_high
    )
    assert inside[:90].mean() > 0.8
    twice = scores.confidence_curve(p.with_y_std(2 * p.y_std), n_draws=200)
    np.testing.assert_allclose(twice.error, curve.error)
    np.testing.assert_allclose(twice.reference, 2 * curve.reference)


# --- all of them ----------------------------------------------------------------------
