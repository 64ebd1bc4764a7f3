import json

import numpy as np
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import FewerBinsWarning
from sigmascale.judging.local_coverage import clopper_pearson_interval

RNG = np.random.default_rng(0)
U = RNG.lognormal(0, 0.5, 2000)
E = RNG.normal(scale=U)
X1 = RNG.normal(size=2000)
INTERVAL = ss.normal_interval(U, 0.9)


@pytest.mark.parametrize("by", [None, X1, np.where(X1 > 0.3, "a", "b"), np.round(X1)])
def test_bins_are_those_of_local_zms(by):
    covered = ss.local_coverage(E, U, INTERVAL, by=by, n_bins=17)
    variance = ss.local_zms(E, U, by=by, n_bins=17, method="moments")
    for name in ("n", "x", "x_min", "x_max"):
        np.testing.assert_array_equal(getattr(covered, name), getattr(variance, name))
    assert covered.name == variance.name
    assert covered.is_grouped == variance.is_grouped


def test_coverage_of_a_bin_is_the_fraction_of_its_rows():
    result = ss.local_coverage(E, U, INTERVAL, n_bins=10)
    order = np.argsort(U)
    for i, rows in enumerate(np.split(order, 10)):
        assert result.coverage[i] == ss.picp(E[rows], INTERVAL[rows])
    everything = ss.interval_scores(E, INTERVAL)
    assert result.overall == (
        everything.picp,
        everything.picp_low,
        everything.picp_high,
    )
    assert result.fraction_valid == result.valid.mean()
    assert result.fraction_interval == ss.wilson_interval(int(result.valid.sum()), 10)


def test_intervals_of_bins_are_scipy_s_exact_ones():
    count, n = np.array([0.0, 3.0, 50.0, 50.0]), np.array([20, 20, 60, 50])
    low, high = clopper_pearson_interval(count, n, confidence=0.9)
    for i in range(4):
        exact = stats.binomtest(int(count[i]), int(n[i])).proportion_ci(0.9, "exact")
        assert low[i] == pytest.approx(exact.low, abs=1e-12)
        assert high[i] == pytest.approx(exact.high, abs=1e-12)


def test_a_bin_is_valid_where_its_interval_contains_the_target():
    result = ss.local_coverage(E, U, ss.normal_interval(U, 0.8), coverage=0.9)
    np.testing.assert_array_equal(
        result.valid, (result.low <= 0.9) & (result.high >= 0.9)
    )
    assert result.target == 0.9
    assert result.fraction_valid < 0.5


def test_intervals_that_ignore_a_feature_fail_in_its_bins_but_not_on_average():
    error = E * np.where(X1 > 0, 1.5, 0.5)
    scaler = ss.TemperatureScaling().fit(U[:1000], error[:1000])
    scaler.conformalize(U[1000:1500], error[1000:1500])
    u, e, x = U[1500:], error[1500:], X1[1500:]
    interval = scaler.predict_interval(u)
    average = ss.interval_scores(e, interval)
    assert average.picp_low <= 0.9 <= average.picp_high
    assert ss.local_coverage(e, u, interval, n_bins=5).fraction_valid == 1
    assert ss.local_coverage(e, u, interval, by=x, n_bins=10).fraction_valid < 0.5


def test_small_groups_and_too_many_bins_are_left_out_with_a_warning():
    labels = np.where(np.arange(2000) < 3, "few", "many")
    with pytest.warns(FewerBinsWarning, match="1 of 2 groups of `by`"):
        assert ss.local_coverage(E, U, INTERVAL, by=labels).x.tolist() == ["many"]
    with pytest.warns(FewerBinsWarning, match="400 are used"):
        ss.local_coverage(E, U, INTERVAL, n_bins=2000)


def test_results_print_and_convert():
    result = ss.local_coverage(E, U, INTERVAL, by=np.where(X1 > 0, "<a>", "b"))
    assert str(result).splitlines()[0].split() == [
        *("by", "from", "rows", "coverage", "interval", "valid")
    ]
    assert "&lt;a&gt;" in result._repr_html_()
    assert json.loads(json.dumps(result.to_dict()))["x"] == ["<a>", "b"]
    assert "coverage=" not in repr(result)


@pytest.mark.slow
def test_at_least_the_stated_share_of_bins_of_a_perfect_set_is_valid():
    valid = []
    for seed in range(200):
        error = np.random.default_rng(seed).normal(scale=U)
        valid.append(ss.local_coverage(error, U, INTERVAL, n_bins=20).valid)
    count = int(np.sum(valid))
    assert stats.binomtest(count, 4000, 0.95, alternative="less").pvalue > 0.01
    assert count < 4000 * 0.985  # exact intervals of 100 rows are a little wide
