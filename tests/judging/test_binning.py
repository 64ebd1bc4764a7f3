"""Judged rows are checked once, and each variable is cut once."""

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.bins.partitions import rank_bins
from sigmascale.exceptions import InvalidInputError
from sigmascale.judging import binning, local, references, scores, verdicts
from sigmascale.judging.binning import bin_variables
from sigmascale.predictions import Predictions, as_predictions

RNG = np.random.default_rng(3)
N = 600
U = RNG.uniform(1, 3, N)
ERROR = RNG.normal(scale=U)
FEATURES = {
    "mass": np.round(RNG.normal(size=N), 1),
    "phase": RNG.choice(["gas", "liquid"], N),
}
FAST = {"n_draws": 40, "n_resamples": 40}


@pytest.fixture
def calls(monkeypatch):
    """Count what checks rows and what cuts them."""
    found = {"checks": 0, "sorted": 0, "coded": 0}

    def counted(name, original):
        def function(*args, **kwargs):
            found[name] += 1
            return original(*args, **kwargs)

        return function

    check = counted("checks", as_predictions)
    for module in (binning, scores, references, verdicts):
        monkeypatch.setattr(module, "as_predictions", check)
    for name, function in (("sorted", "rank_bins"), ("coded", "rank_codes")):
        original = getattr(binning, function)
        monkeypatch.setattr(binning, function, counted(name, original))
    return found


@pytest.mark.parametrize(
    ("method", "sorted_", "coded"),
    [("bca", 3, 0), ("bootstrap-t", 3, 0), ("student", 0, 3), ("moments", 0, 3)],
)
def test_validate_checks_rows_once_and_cuts_each_variable_once(
    calls, method, sorted_, coded
):
    ss.validate(ERROR, U, FEATURES, method=method, **FAST)
    assert calls == {"checks": 1, "sorted": sorted_, "coded": coded}


def test_a_scorecard_and_a_reference_cut_each_variable_once_and_sort_nothing(calls):
    ss.scorecard(ERROR, U, FEATURES)
    assert calls == {"checks": 1, "sorted": 0, "coded": 3}
    ss.reference_scores(U, FEATURES, error=ERROR, n_draws=2)
    assert calls == {"checks": 2, "sorted": 0, "coded": 6}


def test_one_variable_is_cut_without_the_others(calls):
    ss.local_zms(ERROR, U, by=FEATURES["mass"])
    ss.local_calibration_error(ERROR, U, by=FEATURES["mass"])
    ss.local_coverage(ERROR, U, ss.normal_interval(U), by=FEATURES["mass"])
    assert calls == {"checks": 3, "sorted": 1, "coded": 2}


@pytest.mark.parametrize("ties", [None, FEATURES["mass"]])
def test_rows_in_order_fall_in_the_bins_of_rows_as_they_came(ties):
    rows = as_predictions(ERROR, U, FEATURES)
    as_they_came = bin_variables(rows, 17, ties=ties)
    in_order = bin_variables(rows, 17, ties=ties, in_order=True)
    for name, found in in_order.items():
        assert found.name == name
        assert found.n_bins == as_they_came[name].n_bins
        np.testing.assert_array_equal(found.codes, as_they_came[name].codes)
        assert (found.labels is not None) == (name == "phase")


def test_equal_values_of_a_feature_are_ordered_by_u_unless_other_ties_are_given():
    rows = as_predictions(ERROR, U, FEATURES)
    mass = FEATURES["mass"]
    for ties, keys in ((None, {"ties": U}), (ERROR, {"ties": ERROR})):
        found = bin_variables(rows, 9, ties=ties)["mass"]
        expected = rank_bins(mass, 9, error=ERROR, uncertainty=U, **keys)
        np.testing.assert_array_equal(found.codes, expected.codes)


def test_rows_without_errors_are_cut_too():
    found = bin_variables(Predictions.of((U,), ("u",)), 6)["u"]
    expected = bin_variables(as_predictions(ERROR, U), 6)["u"]
    np.testing.assert_array_equal(found.codes, expected.codes)


def test_scores_of_validate_are_those_of_the_scorecard_in_the_same_bins():
    found = ss.validate(ERROR, U, FEATURES, n_bins=20, **FAST)
    assert found.scores == ss.scorecard(ERROR, U, FEATURES, n_bins=20)


# --- lazy frames ---------------------------------------------------------------------

LAZY = pl.LazyFrame({"E": ERROR, "u": U})


@pytest.mark.parametrize("function", [ss.scorecard, ss.validate, ss.local_zms])
@pytest.mark.parametrize(
    ("arguments", "name"), [((LAZY, U), "error"), ((ERROR, LAZY), "uncertainty")]
)
def test_a_lazy_frame_is_refused_and_sent_to_its_own_functions(
    function, arguments, name
):
    match = rf"`{name}` must be in memory; found a lazy frame\. .* sigmascale\.frames"
    with pytest.raises(InvalidInputError, match=match):
        function(*arguments)


@pytest.mark.parametrize("function", [ss.scorecard, ss.validate])
def test_lazy_features_are_refused(function):
    with pytest.raises(InvalidInputError, match="`features` must be in memory"):
        function(ERROR, U, LAZY)


@pytest.mark.parametrize("function", [ss.scorecard, ss.validate, ss.local_zms])
def test_frames_have_no_second_door(function):
    with pytest.raises(TypeError, match="data"):
        function("E", "u", data=LAZY)


def test_measuring_gives_scores_and_intervals_of_the_same_bins():
    rows = as_predictions(ERROR, U, FEATURES)
    settings = local.check_settings(15, "moments")
    found = local.measure(rows, settings, np.random.default_rng(0))
    assert found.scores == ss.scorecard(ERROR, U, FEATURES, n_bins=15)
    for name, each in found.local.items():
        mean_log = np.mean(np.abs(np.log(each.zms)))
        assert mean_log == pytest.approx(found.scores.s[name], rel=1e-12)


# --- predictions ---------------------------------------------------------------------

P = Predictions(error=ERROR, y_std=U, features=FEATURES)
JUDGE = {
    "zms": ss.zms,
    "nll": ss.nll,
    "crps": ss.crps,
    "calibration_error": ss.calibration_error,
    "miscalibration_area": ss.miscalibration_area,
    "adversarial_group_calibration": ss.adversarial_group_calibration,
    "coverage_at_95": ss.coverage_at_95,
    "relative_calibration_error": ss.relative_calibration_error,
    "confidence_curve": ss.confidence_curve,
    "tails": ss.tails,
}


def plain(result):
    return result.to_dict() if hasattr(result, "to_dict") else result


@pytest.mark.parametrize("name", JUDGE)
def test_predictions_are_judged_as_their_errors_and_uncertainties_are(name):
    np.testing.assert_equal(plain(JUDGE[name](P)), plain(JUDGE[name](ERROR, U)))


def test_predictions_bring_their_features_groups_and_weights():
    groups, weights = np.arange(N) % 90, RNG.uniform(0, 1, N).round(1)
    given = {"groups": groups, "sample_weight": weights}
    p = Predictions(
        error=ERROR, y_std=U, features=FEATURES, groups=groups, weights=weights
    )
    how = {"method": "moments", "n_bins": 8}
    same = ss.validate(p, **how, **FAST)
    expected = ss.validate(ERROR, U, FEATURES, **given, **how, **FAST)
    assert same.summary == expected.summary
    np.testing.assert_equal(same.to_dict(), expected.to_dict())
    assert ss.scorecard(P) == ss.scorecard(ERROR, U, FEATURES)
    by_name = ss.local_zms(p, by="mass", **how)
    by_column = ss.local_zms(ERROR, U, by=FEATURES["mass"], **how, **given)
    np.testing.assert_array_equal(by_name.zms, by_column.zms)
    np.testing.assert_array_equal(by_name.high, by_column.high)
    limits = ss.normal_interval(U)
    inside = ss.local_coverage(P, interval=limits, by="phase")
    expected = ss.local_coverage(ERROR, U, limits, by=FEATURES["phase"])
    np.testing.assert_array_equal(inside.low, expected.low)
    references = [
        ss.reference_scores(P, n_draws=3),
        ss.reference_scores(U, FEATURES, error=ERROR, n_draws=3),
    ]
    assert references[0].mean == references[1].mean


@pytest.mark.parametrize(
    "function", [ss.validate, ss.scorecard, ss.local_zms, ss.zms, ss.nll, ss.crps]
)
def test_what_stands_in_predictions_is_refused_beside_them(function):
    with pytest.raises(InvalidInputError, match="Pass everything in `predictions`"):
        function(P, U)
    with pytest.raises(InvalidInputError, match="Pass everything in `predictions`"):
        function(P, sample_weight=U)


@pytest.mark.parametrize("function", [ss.tails, ss.confidence_curve])
def test_weighted_predictions_are_refused_where_all_rows_count_alike(function):
    p = Predictions(error=ERROR, y_std=U, weights=1 + np.arange(N) % 3)
    with pytest.raises(InvalidInputError, match="without weights"):
        function(p)
