"""Distributions: exact for tables, censored by bounds; balls of vectors."""

import numpy as np
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError
from sigmascale.recalibration.distributions import QuantileTable, ZDistribution

Z = np.array([-2.0, -0.5, 0.0, 0.3, 2.5])


def table():
    return QuantileTable.learn(Z, None, 1001)


def of_table(n=3, bounds=(None, None)):
    z = ZDistribution(tables=(table(),), edges=np.empty(0), n_rows=np.array([Z.size]))
    return ss.Distributions(np.arange(n) + 0.5, np.arange(1.0, n + 1), z, bounds=bounds)


def by_integration(d, y):
    """Return the CRPS of each row by the integral of its definition."""
    p = np.linspace(0, 1, 400_001)[1:-1:2]
    q = d.quantile(p)
    off = y[:, None] - q
    return 2 * np.mean(np.where(off > 0, p * off, (p - 1) * off), axis=1)


def test_the_i_th_of_n_scores_stands_for_the_level_i_over_n_plus_1():
    np.testing.assert_allclose(table().levels, np.arange(1, 6) / 6)
    np.testing.assert_allclose(table().quantile(np.arange(1, 6) / 6), Z)


def test_a_bare_uncertainty_is_a_normal_distribution():
    p = ss.Predictions([1.0, 2.0], [0.5, 2.0], y_true=[1.5, 0.0])
    d = ss.Distributions.normal(p)
    expected = stats.norm([1.0, 2.0], [0.5, 2.0])
    np.testing.assert_allclose(d.quantile([0.3])[:, 0], expected.ppf(0.3))
    np.testing.assert_allclose(d.cdf([1.2, 1.2]), expected.cdf(1.2))
    np.testing.assert_allclose(d.interval(0.9), np.transpose(expected.interval(0.9)))
    np.testing.assert_allclose(d.crps(p.y_true), by_integration(d, p.y_true), 1e-4)


def test_bounds_keep_quantiles_intervals_and_draws_within():
    d = of_table(bounds=(0.0, 2.0))
    for found in (d.quantile([0.01, 0.5, 0.99]), d.interval(0.99), d.sample(100)):
        assert found.min() == 0
        assert found.max() == 2
    # of a censored truth, PIT lies in the middle of the mass at the bound
    assert d.pit(np.zeros(3)) == pytest.approx(of_table().cdf(np.zeros(3)) / 2)


def test_rows_can_be_taken():
    d = of_table()
    np.testing.assert_array_equal(d[1:].quantile([0.4]), d.quantile([0.4])[1:])
    assert len(d[np.array([True, False, True])]) == 2


def test_levels_and_truths_that_cannot_be_are_refused():
    with pytest.raises(InvalidInputError, match="levels"):
        of_table().quantile([0.5, 1.5])
    with pytest.raises(InvalidInputError, match="3"):
        of_table().cdf([1.0, 2.0])
    with pytest.raises(InvalidInputError, match="bounds"):
        ss.Recalibrator(bounds=(1, 0)).fit(ss.Predictions(y_std=[1.0], error=[1.0]))


def test_one_number_is_a_limit_of_all_rows():
    rng = np.random.default_rng(3)
    u = rng.uniform(0.5, 2, 400)
    y = 1 + rng.standard_t(4, 400) * u
    kind = np.where(u > 1, "a", "b")
    p = ss.Predictions(np.ones(400), u, y_true=y, features={"kind": kind})
    scaled = ss.Recalibrator(ss.TemperatureScaling(), bounds=(0.2, None)).fit(p)
    in_parts = ss.Recalibrator(ss.TemperatureScaling(), parts=["kind"], hold_out=0.5)
    levels = [0.05, 0.3, 0.5, 0.8, 0.95]
    skewed = 1 + u[:, None] * stats.gamma(2).ppf(levels)
    shaped = ss.Predictions.from_quantiles(levels, skewed, y_true=y)
    fitted_to_shapes = ss.Recalibrator(ss.TemperatureScaling()).fit(shaped)
    dry = ss.Predictions.from_quantiles(levels, [[0.0, 0.0, 0.0, 1.0, 3.0]])
    for rows in (
        *(p, shaped, dry, scaled.apply(p), scaled.out_of_fold_),
        *(in_parts.fit(p).apply(p), in_parts.out_of_fold_),
        fitted_to_shapes.apply(shaped),
    ):
        d = rows.distributions
        for limit in (-1.0, 0.0, 0.2, 1, np.float64(2.5)):
            at_all = np.full(len(d), float(limit))
            np.testing.assert_array_equal(d.cdf(limit), d.cdf(at_all))
            np.testing.assert_array_equal(d.sf(limit), 1 - d.cdf(at_all))
            below = (d.sample(4000, rng=1) <= limit).mean(axis=1)
            assert np.abs(d.cdf(limit) - below).max() < 0.04
    assert (scaled.apply(p).distributions.cdf(0.19) == 0).all()
    assert (scaled.apply(p).distributions.cdf(0.2) > 0).all()
    assert dry.distributions.cdf(0.0) == pytest.approx([0.5])


def test_balls_of_normal_vectors_hold_what_chi_says():
    rng = np.random.default_rng(0)
    p = ss.Predictions(
        rng.normal(size=(5000, 3)),
        np.full(5000, 2.0),
        error=rng.normal(0, 2, (5000, 3)),
    )
    d = ss.Distributions.normal(p)
    for each in (d, ss.Distributions(p.y_pred, p.y_std)):
        np.testing.assert_allclose(each.radius(0.9), 2 * stats.chi(3).ppf(0.9))
    assert d.contains(p.target, 0.9).mean() == pytest.approx(0.9, abs=0.015)
    draws = d[:1].sample(20_000)
    assert draws.shape == (1, 20_000, 3)
    inside = np.linalg.norm(draws[0] - p.y_pred[0], axis=1) <= d.radius(0.9)[0]
    assert inside.mean() == pytest.approx(0.9, abs=0.01)


def test_the_energy_score_of_vectors_is_that_of_many_draws():
    rng = np.random.default_rng(1)
    p = ss.Predictions(
        rng.normal(size=(800, 2)), np.ones(800), error=rng.standard_t(4, (800, 2))
    )
    for d in (
        ss.Distributions.normal(p),
        ss.Recalibrator(ss.TemperatureScaling()).fit(p).apply(p).distributions,
    ):
        y = np.array([[0.3, -1.0]])
        x = d[:1].sample(40_000, rng=2)[0]
        norm = np.linalg.norm
        expected = (
            norm(x - y, axis=1).mean() - norm(x[::2] - x[1::2], axis=1).mean() / 2
        )
        assert d[:1].energy_score(y)[0] == pytest.approx(expected, rel=0.02)


def test_what_needs_a_sign_says_that_vectors_have_none():
    p = ss.Predictions(np.zeros((4, 3)), np.ones(4), y_true=np.ones((4, 3)))
    d = ss.Distributions.normal(p)
    for ask in (
        lambda: d.quantile([0.5]),
        lambda: d.interval(0.9),
        lambda: d.cdf(p.y_true),
        lambda: d.crps(p.y_true),
    ):
        with pytest.raises(InvalidInputError, match="vectors"):
            ask()
