"""Predictions from members, quantiles and intervals: what they mean and refuse."""

import warnings

import numpy as np
import polars as pl
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import (
    FewMembersWarning,
    InvalidInputError,
    ZeroUncertaintyWarning,
)

RNG = np.random.default_rng(0)
MEAN, STD = RNG.normal(size=400), RNG.uniform(0.5, 2, 400)
TRUTH = MEAN + 1.5 * STD * RNG.normal(size=400)
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
QUANTILES = MEAN[:, None] + STD[:, None] * stats.norm.ppf(LEVELS)


def test_all_forms_of_one_forecast_say_the_same():
    n = 20_001  # members at the quantiles of the normal law have nearly its spread
    inner = stats.norm.ppf((np.arange(n) + 0.5) / n)
    half = stats.norm.ppf(0.95) * STD
    forms = {
        "quantiles": ss.Predictions.from_quantiles(LEVELS, QUANTILES, y_true=TRUTH),
        "interval": ss.Predictions.from_interval(
            MEAN - half, MEAN + half, coverage=0.9, y_true=TRUTH
        ),
        "members": ss.Predictions.from_members(
            MEAN[:, None] + STD[:, None] * inner, y_true=TRUTH
        ),
        "variance": ss.Predictions.from_frame(
            pl.DataFrame({"y": TRUTH, "pred": MEAN, "var": STD**2}), y_true="y"
        ),
    }
    expected = ss.Predictions(MEAN, STD, y_true=TRUTH)
    scaler = ss.Recalibrator(ss.TemperatureScaling())
    limits = scaler.fit(expected).predict_distribution(expected).interval(0.9)
    answer = ss.validate(expected, n_draws=100).answer
    for name, p in forms.items():
        accuracy = 1e-3 if name == "members" else 1e-12
        np.testing.assert_allclose(p.y_pred, MEAN, atol=1e-9)
        np.testing.assert_allclose(p.uncertainty, STD, rtol=accuracy)
        np.testing.assert_allclose(p.error, TRUTH - MEAN, atol=1e-9)
        found = scaler.fit(p).predict_distribution(p).interval(0.9)
        np.testing.assert_allclose(found, limits, atol=10 * accuracy)
        assert ss.validate(p, n_draws=100).answer == answer


def test_the_prediction_is_the_median_or_the_middle_of_its_neighbours():
    without = [0.05, 0.25, 0.75, 0.95]
    table = QUANTILES[:, [0, 1, 3, 4]] + [0, 0.1, 0.3, 0]
    p = ss.Predictions.from_quantiles(without, table)
    np.testing.assert_allclose(p.y_pred, MEAN + 0.2)
    np.testing.assert_allclose(p.uncertainty, STD)


def test_the_outermost_symmetric_pair_gives_the_width():
    levels = [0.01, 0.1, 0.5, 0.9]  # 0.01 has no partner
    table = MEAN[:, None] + STD[:, None] * stats.norm.ppf(levels)
    table[:, 0] -= 5
    p = ss.Predictions.from_quantiles(levels, pl.DataFrame(table))
    np.testing.assert_allclose(p.uncertainty, STD)


def test_members_keep_their_degrees_of_freedom_and_few_are_told():
    members = RNG.normal(size=(5, 4))
    with pytest.warns(FewMembersWarning, match="4 members is off by some 41 %"):
        p = ss.Predictions.from_members(members)
    np.testing.assert_allclose(p.uncertainty, members.std(axis=1, ddof=1))
    with pytest.warns(FewMembersWarning):
        p = ss.Predictions.from_members(members, ddof=0)
    np.testing.assert_allclose(p.uncertainty, members.std(axis=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ss.Predictions.from_members(RNG.normal(size=(5, 10)))


def test_a_minimum_lifts_what_is_below_it_and_says_so():
    with pytest.warns(ZeroUncertaintyWarning, match="2 of 3 .*below 0.1"):
        p = ss.Predictions(y_std=[0.0, 1.0, 0.05], minimum=0.1)
    assert p.uncertainty.tolist() == [0.1, 1.0, 0.1]
    equal = np.ones((3, 12))
    with pytest.warns(ZeroUncertaintyWarning, match="3 of 3"):
        p = ss.Predictions.from_members(equal, minimum=0.5)
    crossing = [[1.0, 2.0, 0.0], [0.0, 1.0, 2.0]]
    with pytest.warns(ZeroUncertaintyWarning, match="1 of 2"):
        p = ss.Predictions.from_quantiles([0.1, 0.5, 0.9], crossing, minimum=0.5)
    assert p.uncertainty[0] == 0.5


WITH_NAN = np.where(np.arange(24).reshape(2, 12) == 15, np.nan, 1.0)
BAD = {
    "one member": (lambda: ss.Predictions.from_members([[1.0]]), "at least 2 columns"),
    "missing members": (
        lambda: ss.Predictions.from_members(WITH_NAN),
        "`members` .*1 of 2 rows lack some .first at row 1.*Drop",
    ),
    "equal members": (
        lambda: ss.Predictions.from_members(np.ones((2, 12))),
        "positive.*minimum=",
    ),
    "no table": (lambda: ss.Predictions.from_members([1.0, 2.0]), "`members` .*table"),
    "text": (lambda: ss.Predictions.from_members([["a", "b"]]), "`members`"),
    "levels outside": (
        lambda: ss.Predictions.from_quantiles([0.0, 0.5, 1.0], [[1.0, 2.0, 3.0]]),
        "`levels` .*between 0 and 1",
    ),
    "levels unsorted": (
        lambda: ss.Predictions.from_quantiles([0.9, 0.5, 0.1], [[1.0, 2.0, 3.0]]),
        "`levels` must ascend",
    ),
    "levels repeated": (
        lambda: ss.Predictions.from_quantiles([0.1, 0.1, 0.9], [[1.0, 2.0, 3.0]]),
        "`levels` must ascend",
    ),
    "no pair": (
        lambda: ss.Predictions.from_quantiles([0.1, 0.5, 0.8], [[1.0, 2.0, 3.0]]),
        "symmetric pair.*found 0.1, 0.5, 0.8",
    ),
    "another number of columns": (
        lambda: ss.Predictions.from_quantiles([0.1, 0.9], [[1.0, 2.0, 3.0]]),
        "2 levels; found shape",
    ),
    "crossing": (
        lambda: ss.Predictions.from_quantiles([0.1, 0.9], [[1.0, 2.0], [3.0, 1.0]]),
        "positive.* row 1.*minimum=",
    ),
    "limits swapped": (
        lambda: ss.Predictions.from_interval([2.0], [1.0], coverage=0.9),
        "positive",
    ),
    "coverage": (
        lambda: ss.Predictions.from_interval([1.0], [2.0], coverage=90),
        "`coverage`",
    ),
    "minimum": (lambda: ss.Predictions(y_std=[1.0], minimum=0), "`minimum` .*positive"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_no_mutated_input_ends_in_another_error():
    rng = np.random.default_rng(0)
    odd = [None, np.nan, np.inf, -np.inf, 0, -1, 1e-200, 1e200, 1.8e308, "x", "", []]
    odd += [True, 1j, np.datetime64("2020"), {}, [[1.0]], ["a"], 90, np.zeros((2, 2))]
    refused = 0
    for _ in range(350):
        given = {
            "levels": LEVELS.tolist(),
            "quantiles": QUANTILES[:9].astype(object),
            "low": QUANTILES[:9, 0].astype(object),
            "high": QUANTILES[:9, 4].astype(object),
            "coverage": 0.9,
            "y_true": TRUTH[:9].astype(object),
            "minimum": 0.1,
        }
        for name in rng.choice([*given], rng.integers(1, 4)):
            value = odd[rng.integers(len(odd))]
            if isinstance(given[name], float) or rng.random() < 0.3:
                given[name] = value
            elif isinstance(given[name], (list, np.ndarray)) and len(given[name]) > 3:
                # or one of its values, or fewer rows
                given[name] = list(given[name])[rng.integers(3) :]
                given[name][rng.integers(len(given[name]))] = value
        truth, levels, table = given["y_true"], given["levels"], given["quantiles"]
        common = {"y_true": truth, "minimum": given["minimum"]}
        limits, share = (given["low"], given["high"]), {"coverage": given["coverage"]}
        for make, positional, named in (
            (ss.Predictions.from_members, (table,), common),
            (ss.Predictions.from_quantiles, (levels, table), common),
            (ss.Predictions.from_interval, limits, common | share),
        ):
            try:
                u = make(*positional, **named).uncertainty
            except InvalidInputError:
                refused += 1
            else:
                assert (u >= 1e-70).all()
                assert (u <= 1e70).all()
    assert 500 < refused < 1000


@pytest.mark.parametrize("case", BAD)
def test_bad_forms_are_refused_with_a_remedy(case):
    make, words = BAD[case]
    with pytest.raises(InvalidInputError, match=words):
        make()
