import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError, NotANumberError

RNG = np.random.default_rng(0)
U = RNG.lognormal(0, 0.5, 2000)
E = RNG.normal(scale=U)
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
    assert ss.mean_width(interval) == np.inf
    assert ss.interval_score([1e300, 0.0], interval) == np.inf
    one_sided = np.array([[-np.inf, 0.0], [0.0, np.inf]])
    assert ss.picp([-5.0, -5.0], one_sided) == 0.5
    assert ss.interval_score([-5.0, -5.0], one_sided) == np.inf


def test_the_interval_score_is_width_plus_what_lies_outside():
    # width 3; outside by 0, 2 and 1; times 2 / (1 - 0.5)
    score = ss.interval_score([0.0, 4.0, -2.0], [[-1.0, 2.0]] * 3, 0.5)
    assert score == pytest.approx(3 + 4 * (0 + 2 + 1) / 3)


def test_no_other_quantiles_beat_the_true_ones_in_the_interval_score():
    best = ss.interval_score(E, INTERVAL, 0.9)
    for factor in (0.8, 1.25):
        assert best < ss.interval_score(E, factor * INTERVAL, 0.9)
    assert best < ss.interval_score(E, INTERVAL + 0.3 * U[:, None], 0.9)


def test_interval_scores_gather_the_single_ones():
    scores = ss.interval_scores(E, INTERVAL, coverage=0.9, confidence=0.8)
    inside = round(scores.picp * E.size)
    assert scores.picp == ss.picp(E, INTERVAL)
    assert scores.mean_width == ss.mean_width(INTERVAL)
    assert scores.interval_score == ss.interval_score(E, INTERVAL, 0.9)
    wilson = ss.wilson_interval(inside, 2000, confidence=0.8)
    assert (scores.picp_low, scores.picp_high) == wilson
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
        ss.mean_width([["a", "b"]])


@pytest.mark.parametrize(
    "score",
    [
        lambda c: ss.interval_score(E, INTERVAL, c),
        lambda c: ss.interval_scores(E, INTERVAL, coverage=c),
        lambda c: ss.local_coverage(E, U, INTERVAL, coverage=c),
        lambda c: ss.normal_interval(U, c),
    ],
)
@pytest.mark.parametrize("coverage", [0, 1, -0.5, "0.9"])
def test_coverage_outside_0_and_1_is_refused(score, coverage):
    with pytest.raises(InvalidInputError, match="`coverage` must lie strictly between"):
        score(coverage)
