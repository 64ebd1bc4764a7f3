"""The interval of a mean, and Student's t: numbers by hand, and coverage."""

import numpy as np
import pytest
from scipy import optimize, stats

from sigmascale.scores.intervals import (
    Estimate,
    Mean,
    abc_limits,
    mean_interval,
    size_interval,
    within_groups,
)
from sigmascale.scores.student import StudentProfile, fit_student


def pareto_groups(rng, n_groups):
    sizes = np.minimum(np.ceil(1 + rng.pareto(1.0, n_groups)), 200).astype(int)
    return np.repeat(np.arange(n_groups), sizes)


def test_rows_get_the_t_interval_of_their_mean():
    x = np.random.default_rng(0).normal(3, 2, 25)
    found = mean_interval(x, confidence=0.9)
    expected = stats.t.interval(0.9, 24, x.mean(), x.std(ddof=1) / 5)
    np.testing.assert_allclose([found.low, found.high], expected, rtol=1e-12)


def test_groups_of_one_row_are_rows_and_equal_weights_are_none():
    x = np.random.default_rng(1).exponential(size=40)
    plain = Mean.of(x)
    for other in (Mean.of(x, np.arange(40)), Mean.of(x, None, np.full(40, 2.5))):
        assert other.value == pytest.approx(plain.value)
        assert other.second == pytest.approx(plain.second)
        assert other.df == pytest.approx(39)
        assert other.n_effective == pytest.approx(plain.n_effective)


def test_unequal_groups_of_one_value_each_have_degrees_of_freedom_of_their_sizes():
    sizes = np.repeat(np.arange(1.0, 31.0), 2)
    group = np.repeat(np.arange(60), sizes.astype(int))
    value = np.resize([1.0, -1.0], 60)[group]
    # of a sum of 60 units with variances s²: (Σ s²)² / Σ s⁴ − 1
    expected = np.sum(sizes**2) ** 2 / np.sum(sizes**4) - 1
    assert Mean.of(value, group).df == pytest.approx(expected)


def test_equal_groups_that_are_the_same_row_over_and_over_count_as_one_row_each():
    x = np.random.default_rng(2).normal(size=30)
    once, often = Mean.of(x), Mean.of(np.repeat(x, 7), np.repeat(np.arange(30), 7))
    assert often.df == pytest.approx(29)
    assert often.second == pytest.approx(once.second)
    assert often.n_effective == pytest.approx(30, rel=0.05)


def test_unequal_units_leave_fewer_degrees_of_freedom_than_their_number():
    rng = np.random.default_rng(3)
    groups = pareto_groups(rng, 60)
    shared = rng.normal(size=60)[groups]
    assert Mean.of(shared, groups).df < 40
    assert Mean.of(rng.normal(size=500), None, 1 + rng.pareto(1.1, 500)).df < 250


def test_limits_of_skewed_means_are_monotone_and_may_be_infinite():
    levels = np.linspace(0.5, 12, 60)
    for third in (0.2, 0.9, -0.9):
        low, high = abc_limits(1.0, 0.0, 1.0, third, levels)
        assert (np.diff(low[np.isfinite(low)]) <= 1e-12).all()
        assert (np.diff(high[np.isfinite(high)]) >= -1e-12).all()
    assert np.isinf(abc_limits(1.0, 0.0, 1.0, 1.0, 8.0)[1])
    low, high = abc_limits(10.0, 2.0, 4.0, 0.0, 1.96)
    assert (low, high) == pytest.approx((2 - 0.392, 2 + 0.392))


def test_no_spread_gives_the_mean_itself():
    found = mean_interval(np.full(9, 2.0), confidence=0.95, skewed=True)
    assert (found.value, found.low, found.high) == (2.0, 2.0, 2.0)


@pytest.mark.slow
def test_intervals_hold_what_they_claim_with_unequal_groups_and_heavy_weights():
    for n_groups, rho in ((30, 0.5), (60, 0.8)):
        held = 0
        for seed in range(300):
            rng = np.random.default_rng([seed, n_groups])
            groups = pareto_groups(rng, n_groups)
            x = np.sqrt(rho) * rng.normal(size=n_groups)[groups]
            x += np.sqrt(1 - rho) * rng.normal(size=groups.size)
            found = mean_interval(x, confidence=0.95, groups=groups)
            held += found.low <= 0 <= found.high
        assert held >= 0.93 * 300, (n_groups, rho, held)
    held = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        w = 1 + rng.pareto(1.1, 300)
        found = mean_interval(rng.normal(size=300), confidence=0.95, weights=w)
        held += found.low <= 0 <= found.high
    assert held >= 0.93 * 300


def test_correlation_within_groups_is_found():
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(4000), 5)
    x = np.sqrt(0.3) * rng.normal(size=4000)[groups] + np.sqrt(0.7) * rng.normal(
        size=20_000
    )
    assert within_groups(x - x.mean(), groups) == pytest.approx(0.3, abs=0.03)
    assert within_groups(np.zeros(3), np.arange(3)) == 0.0


def test_estimates_are_shown_with_their_limits():
    found = Estimate(1.2, 1.0, 1.6, 0.95)
    assert found.to_dict()["low"] == 1.0
    assert "1.2" in str(found)


def test_student_is_the_fit_of_the_highest_likelihood():
    for df in (2.5, 6.0):
        z = 1.7 * np.random.default_rng(5).standard_t(df, 3000)

        def loss(p, z=z):
            return -stats.t.logpdf(z, np.exp(p[0]), scale=np.exp(p[1])).sum()

        best = optimize.minimize(loss, [1.0, 0.5], method="Nelder-Mead", tol=1e-10)
        assert fit_student(z) == pytest.approx(np.exp(best.x), rel=1e-4)


def test_normal_scores_have_no_tails_and_weights_count_as_repeats():
    rng = np.random.default_rng(6)
    assert fit_student(rng.uniform(-1, 1, 500))[0] == np.inf
    z, times = rng.standard_t(4, 300), rng.integers(1, 4, 300)
    weighted = fit_student(z, times.astype(float))
    assert weighted == pytest.approx(fit_student(np.repeat(z, times)), rel=1e-9)


def test_errors_of_exactly_zero_do_not_take_all_the_likelihood():
    z = np.where(np.arange(1000) % 2, np.random.default_rng(7).normal(size=1000), 0.0)
    df, scale = fit_student(z)
    assert df > 1
    assert 0 < scale < 1


def test_heavy_tails_widen_the_size_upwards_and_nothing_narrows_it():
    rng = np.random.default_rng(8)
    light = size_interval(rng.normal(size=400) ** 2, 0.99)
    heavy = size_interval(rng.standard_t(3, 400) ** 2 / 3, 0.99)
    assert heavy.high / heavy.value > 1.5 * light.high / light.value
    for each in (light, heavy):
        assert each.low < each.value < each.high


def test_a_few_more_enormous_errors_never_make_uncertainties_look_better():
    z2 = 4 * np.random.default_rng(9).normal(size=500) ** 2
    before = size_interval(z2, 0.99)
    z2[0] = 1e6
    assert before.low > 3
    assert size_interval(z2, 0.99).low > 0.6 * before.low


def test_errors_of_exactly_0_say_nothing_of_tails_and_make_means_smaller():
    z2 = np.random.default_rng(0).standard_t(4, 80) ** 2
    alone = StudentProfile.of(z2, 80.0)
    half_zero = StudentProfile.of(np.concatenate([z2, np.zeros(80)]), 160.0)
    np.testing.assert_allclose(half_zero.loss, alone.loss, rtol=1e-12, atol=1e-12)
    assert half_zero.upper(0.95) == pytest.approx(alone.upper(0.95) / 2, rel=1e-12)
    assert half_zero.best == alone.best
    few = np.concatenate([z2[:4], np.zeros(80)])
    assert StudentProfile.of(few, 84.0) is None
    assert StudentProfile.of(np.append(few, 1.0), 85.0) is not None
