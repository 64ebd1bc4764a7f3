import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import (
    FewerBinsWarning,
    InvalidInputError,
    NotANumberError,
)

RNG = np.random.default_rng(0)
U = RNG.lognormal(0, 0.5, 2000)
E = RNG.normal(scale=U)
X1 = RNG.normal(size=2000)
INTERVAL = ss.normal_interval(U, 0.9)


def test_normal_intervals_hold_the_mass_of_a_normal_that_they_say():
    low, high = ss.normal_interval(U, 0.8).T
    np.testing.assert_allclose(stats.norm.cdf(high / U) - stats.norm.cdf(low / U), 0.8)
    np.testing.assert_array_equal(low, -high)


def test_the_fraction_covered_counts_limits_as_inside():
    interval = [[-1.0, 1.0]] * 4
    assert ss.picp([-1.0, 1.0, 1.0 + 1e-15, 0.0], interval) == 0.75


def test_infinite_limits_cover_everything_at_infinite_width():
    interval = np.array([[-np.inf, np.inf], [-1.0, 1.0]])
    assert ss.picp([1e300, 0.0], interval) == 1
    found = ss.interval_scores([1e300, 0.0], interval)
    assert found.mean_width == found.interval_score == np.inf
    one_sided = np.array([[-np.inf, 0.0], [0.0, np.inf]])
    assert ss.picp([-5.0, -5.0], one_sided) == 0.5
    assert ss.interval_scores([-5.0, -5.0], one_sided).interval_score == np.inf


def test_the_interval_score_is_width_plus_what_lies_outside():
    # width 3; outside by 0, 2 and 1; times 2 / (1 - 0.5)
    found = ss.interval_scores([0.0, 4.0, -2.0], [[-1.0, 2.0]] * 3, coverage=0.5)
    assert found.interval_score == pytest.approx(3 + 4 * (0 + 2 + 1) / 3)
    assert found.mean_width == 3


def test_no_other_quantiles_beat_the_true_ones_in_the_interval_score():
    best = ss.interval_scores(E, INTERVAL).interval_score
    for other in (0.8 * INTERVAL, 1.25 * INTERVAL, INTERVAL + 0.3 * U[:, None]):
        assert best < ss.interval_scores(E, other).interval_score


def test_the_coverage_of_interval_scores_has_its_interval():
    scores = ss.interval_scores(E, INTERVAL, coverage=0.9, confidence=0.8)
    inside = round(scores.picp * E.size)
    assert scores.picp == ss.picp(E, INTERVAL)
    wilson = stats.binomtest(inside, 2000).proportion_ci(0.8, "wilsoncc")
    found = scores.picp_low, scores.picp_high
    assert found == pytest.approx(tuple(wilson), abs=1e-12)
    assert json.loads(json.dumps(scores.to_dict()))["n_rows"] == 2000
    assert "<td>coverage</td>" in scores._repr_html_()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, np.ndarray.tolist])
def test_intervals_may_be_frames_or_lists(make):
    assert ss.picp(E, make(INTERVAL)) == ss.picp(E, INTERVAL)


@pytest.mark.parametrize(
    ("interval", "match"),
    [
        (INTERVAL[:, 0], r"two columns, the lower and the upper limit.*\(2000,\)"),
        (INTERVAL.T, r"two columns.*shape \(2, 2000\)"),
        (INTERVAL[1:], "`error` and `interval` must have the same number of rows"),
        (INTERVAL[:, ::-1], "in this order; 2000 of 2000 values are not"),
        (np.where(np.arange(2000)[:, None] == 7, np.nan, INTERVAL), "row 7: nan"),
    ],
)
def test_wrong_intervals_are_refused_by_name(interval, match):
    with pytest.raises(InvalidInputError, match=match):
        ss.picp(E, interval)


def test_intervals_of_text_are_refused():
    with pytest.raises(NotANumberError, match="`interval` must hold numbers"):
        ss.picp([1.0], [["a", "b"]])


@pytest.mark.parametrize(
    "score",
    [
        lambda c: ss.interval_scores(E, INTERVAL, coverage=c),
        lambda c: ss.local_coverage(E, U, INTERVAL, coverage=c),
        lambda c: ss.normal_interval(U, c),
    ],
)
@pytest.mark.parametrize("coverage", [0, 1, -0.5, "0.9"])
def test_coverage_outside_0_and_1_is_refused(score, coverage):
    with pytest.raises(InvalidInputError, match="`coverage` must lie strictly between"):
        score(coverage)


# --- by bins -------------------------------------------------------------------------


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
    count = stats.binomtest(int(result.valid.sum()), 10)
    expected = count.proportion_ci(method="wilsoncc")
    assert result.fraction_interval == pytest.approx(tuple(expected), abs=1e-12)


def test_a_bin_is_valid_where_its_interval_contains_the_target():
    result = ss.local_coverage(E, U, ss.normal_interval(U, 0.8), coverage=0.9)
    np.testing.assert_array_equal(
        result.valid, (result.low <= 0.9) & (result.high >= 0.9)
    )
    assert result.target == 0.9
    assert result.fraction_valid < 0.5


def test_intervals_that_ignore_a_feature_fail_in_its_bins_but_not_on_average():
    error = E * np.where(X1 > 0, 1.5, 0.5)
    scaler = ss.Recalibrator(ss.TemperatureScaling()).fit(U[:1000], error[:1000])
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


def test_local_results_print_and_convert():
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
