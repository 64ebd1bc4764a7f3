"""Learning from more rows without the old ones: update, merge, and fading."""

import itertools
import warnings
from copy import deepcopy

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sigmascale as ss
from sigmascale.exceptions import (
    DegenerateFitWarning,
    FewerBinsWarning,
    ForgottenIntervalsWarning,
    InvalidInputError,
)
from sigmascale.persistence import dumps, loads
from sigmascale.scaling import scalers

UPDATABLE = {
    "none": ss.NoScaling(),
    "temperature": ss.TemperatureScaling(),
    "category": ss.CategoryScaling(by="phase", min_size=8),
    "binwise": ss.BinwiseScaling(6),
    "binwise by a feature": ss.BinwiseScaling(6, by="mass", least_rows=0),
    "cells": ss.BinwiseScaling(3, by=("u", "mass")),
}
WITH_LIMITS = ("binwise", "binwise by a feature", "cells")
every = pytest.mark.parametrize("name", UPDATABLE)


def make(n, seed=0, *, scale=1.0):
    rng = np.random.default_rng(seed)
    u = rng.lognormal(0, 0.5, n)
    mass = rng.integers(0, 30, n).astype(float)  # with ties
    phase = rng.choice(["gas", "liquid", "solid", "glass"], n, p=[0.5, 0.3, 0.15, 0.05])
    error = rng.normal(scale=scale * u * (1 + mass / 20) * (1 + (phase == "gas")))
    return pl.DataFrame({"u": u, "mass": mass, "phase": phase}), error


def columns(name, X):
    """Return the columns that a method takes; bins are for numbers."""
    return X if name == "category" else X.drop("phase")


def fit(name, X, error):
    return deepcopy(UPDATABLE[name]).fit(columns(name, X), error)


def update(name, scaler, X, error, **options):
    return scaler.update(columns(name, X), error, **options)


def sizes(scaler):
    """Return the numbers that sums consist of."""
    kept = scaler._kept_sums().sums
    return np.array([kept.n, kept.z2, kept.z4, kept.z6, kept.e2, kept.u2, kept.log_u2])


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    cuts=st.lists(st.integers(1, 299), max_size=6, unique=True),
    name=st.sampled_from(sorted(UPDATABLE)),
)
def test_updates_in_any_division_equal_one_fit(seed, cuts, name):
    X, error = make(300, seed)
    first, *later = [0, *sorted(cuts)] if name not in WITH_LIMITS else [0, 100, *cuts]
    ends = sorted({*later, 300})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewerBinsWarning)
        divided = fit(name, X[first : ends[0]], error[first : ends[0]])
        limits = deepcopy(divided)
        for start, end in itertools.pairwise(ends):
            update(name, divided, X[start:end], error[start:end])
        if name in WITH_LIMITS:  # which stay those of the first fit
            whole = limits
            if ends[0] < 300:
                update(name, whole, X[ends[0] :], error[ends[0] :])
        else:
            whole = fit(name, X, error)
    np.testing.assert_allclose(sizes(divided), sizes(whole), rtol=1e-12, atol=1e-12)
    new, _ = make(200, seed + 1)
    new = columns(name, new)
    np.testing.assert_allclose(divided.predict(new), whole.predict(new), rtol=1e-12)
    assert divided.n_samples_fit_ == whole.n_samples_fit_ == 300
    assert divided.min_uncertainty_ == whole.min_uncertainty_
    for seen in ("positions", "missing", "hashes"):
        np.testing.assert_array_equal(
            getattr(divided.seen_, seen), getattr(whole.seen_, seen)
        )
    np.testing.assert_array_equal(
        divided.seen_.quantiles[:, [0, -1]], whole.seen_.quantiles[:, [0, -1]]
    )


def test_bins_keep_their_limits_and_get_factors_of_all_rows_in_them():
    X, error = make(400)
    scaler = ss.BinwiseScaling(5, least_rows=0).fit(X["u"], error)
    limits = scaler.partition_.limits
    more, new_error = make(800, 1)
    scaler.update(more["u"], new_error)
    np.testing.assert_array_equal(scaler.partition_.limits, limits)
    z = np.append(error, new_error) / np.append(X["u"], more["u"])
    codes = np.searchsorted(limits, np.append(X["u"], more["u"]), side="right")
    expected = [np.sqrt(np.mean(z[codes == k] ** 2)) for k in range(5)]
    np.testing.assert_allclose(scaler.factors_, expected)


@every
@pytest.mark.parametrize("options", [{"forget": 0.995}, {"half_life": 200.0}])
def test_fading_does_not_depend_on_the_division_either(name, options):
    X, error = make(300)
    at_once, row_by_row = (fit(name, X[:200], error[:200]) for _ in range(2))
    update(name, at_once, X[200:], error[200:], **options)
    for i in range(200, 300):
        update(name, row_by_row, X[i : i + 1], error[i : i + 1], **options)
    np.testing.assert_allclose(sizes(row_by_row), sizes(at_once), rtol=1e-12)
    np.testing.assert_allclose(
        row_by_row.predict(columns(name, X)),
        at_once.predict(columns(name, X)),
        rtol=1e-12,
    )


def test_rows_fade_to_one_half_in_a_half_life():
    scaler = ss.TemperatureScaling().fit(np.ones(2), [1.0, -1.0])
    scaler.update(np.ones(2), [3.0, 3.0], half_life=2)
    old, new = 2 * 0.5, 0.5**0.5 + 1
    expected = (old + 9 * new) / (old + new)
    assert scaler.factor_ == pytest.approx(np.sqrt(expected), rel=1e-14)
    same = ss.TemperatureScaling().fit(np.ones(2), [1.0, -1.0])
    same.update(np.ones(2), [3.0, 3.0], forget=0.5**0.5)
    assert same.factor_ == pytest.approx(scaler.factor_, rel=1e-14)


@pytest.mark.parametrize("step", [3.0, 2.0, 1.5, 1 / 1.5])
@pytest.mark.parametrize("name", ["temperature", "category", "binwise"])
def test_with_a_half_life_factors_follow_a_step_within_10_percent(name, step):
    half_life = 4000
    X, error = make(4 * half_life, 1)
    scaler = fit(name, X, error)
    new, new_error = make(3 * half_life, 2, scale=step)
    before = scaler.predict(columns(name, X))
    update(name, scaler, new, new_error, half_life=half_life)
    after = scaler.predict(columns(name, X))
    assert np.exp(np.mean(np.log(after / before))) == pytest.approx(step, rel=0.1)


def test_where_errors_shrink_to_one_half_the_documented_share_is_left():
    scaler = ss.TemperatureScaling().fit(np.ones(10**5), np.full(10**5, -2.0))
    scaler.update(np.ones(300), np.full(300, -1.0), half_life=100)
    assert scaler.factor_ == pytest.approx(1.17, abs=0.005)
    scaler.update(np.ones(100), np.full(100, -1.0), half_life=100)
    assert scaler.factor_ == pytest.approx(1.09, abs=0.01)


def test_a_large_set_counts_no_more_than_an_endless_stream_that_fades():
    scaler = ss.TemperatureScaling().fit(np.ones(10**5), np.full(10**5, -1.0))
    scaler.update([1.0], [11.0], forget=0.9)
    assert scaler.factor_ == pytest.approx(np.sqrt((9 + 121) / 10), rel=1e-14)


def test_what_has_faded_away_leaves_no_trace_of_rounding():
    X, error = make(200)
    scaler = ss.BinwiseScaling(4, least_rows=0).fit(X["u"], error)
    narrow = np.full(5000, 0.9 * X["u"].min())  # all in the first bin
    scaler.update(narrow, 3 * narrow * np.where(np.arange(5000) % 2, 1, -1), forget=0.5)
    assert (scaler.sums_.n[1:] == 0).all()
    np.testing.assert_allclose(scaler.factors_, 3.0)


def test_new_labels_get_a_factor_and_rare_ones_once_they_have_rows_enough():
    X = pl.DataFrame({"u": np.ones(24), "phase": ["gas"] * 20 + ["solid"] * 4})
    scaler = ss.CategoryScaling("phase", min_size=6).fit(
        X, np.repeat([1.0, 5.0], [20, 4])
    )
    assert scaler.categories_.labels == ("gas",)
    assert scaler.categories_.rare == ("solid",)
    new = pl.DataFrame({"u": np.ones(9), "phase": ["solid"] * 2 + ["a glass"] * 7})
    scaler.update(new, np.repeat([-5.0, 2.0], [2, 7]))
    assert scaler.categories_.labels == ("a glass", "gas", "solid")
    assert not scaler.categories_.rare
    np.testing.assert_allclose(scaler.factors_[:-1], [2.0, 1.0, 5.0])
    np.testing.assert_allclose(scaler.predict(new), [5.0] * 2 + [2.0] * 7)


def test_a_missing_number_is_one_label_before_and_after():
    X = np.column_stack([np.ones(40), np.repeat([1.0, np.nan], 20)])
    error = np.repeat([1.0, 3.0], 20)
    scaler = ss.CategoryScaling(min_size=5).fit(X, error).update(X, error)
    whole = ss.CategoryScaling(min_size=5).fit(np.vstack([X, X]), np.tile(error, 2))
    assert len(scaler.categories_.labels) == 2
    np.testing.assert_allclose(scaler.factors_, whole.factors_, rtol=1e-14)


def test_labels_of_another_kind_are_refused_and_nothing_is_changed():
    scaler = fit("category", *make(100))
    before = dumps(scaler)
    X = pl.DataFrame({"u": [1.0], "mass": [1.0], "phase": [2.0]})
    with pytest.raises(InvalidInputError, match="Labels must be text, as they were in"):
        scaler.update(X, [1.0])
    assert dumps(scaler) == before


@every
def test_merged_fits_equal_one_update_or_fit(name):
    X, error = make(400)
    first = fit(name, X[:200], error[:200])
    if name in WITH_LIMITS:
        other, whole = deepcopy(first), deepcopy(first)
        update(name, whole, X[:200], error[:200])
    else:
        other = fit(name, X[200:], error[200:])
        whole = fit(name, X, error)
    kept = dumps(other)
    assert first.merge(other) is first
    assert dumps(other) == kept
    np.testing.assert_allclose(sizes(first), sizes(whole), rtol=1e-12, atol=1e-12)
    shown = columns(name, X)
    np.testing.assert_allclose(first.predict(shown), whole.predict(shown), rtol=1e-12)
    assert first.n_samples_fit_ == 400
    assert first.min_uncertainty_ == whole.min_uncertainty_


def test_fits_that_differ_are_not_merged():
    X, error = make(300)
    u = X["u"]
    bins = ss.BinwiseScaling(5).fit(u, error)
    for other, match in (
        (ss.BinwiseScaling(5).fit(u[:200], error[:200]), "the same limits of bins"),
        (ss.BinwiseScaling(4).fit(u, error), "n_bins is 5 here and 4 there"),
        (ss.TemperatureScaling().fit(u, error), "a fitted BinwiseScaling, as this is"),
        (ss.BinwiseScaling(5), "a fitted BinwiseScaling, as this is"),
        (
            ss.BinwiseScaling(5).fit(X[["u", "mass"]], error),
            "the same columns; found u",
        ),
    ):
        with pytest.raises(InvalidInputError, match=match):
            bins.merge(other)


@pytest.mark.parametrize("method", [*scalers(), "loss"])
def test_every_recalibrator_is_updated_or_says_what_to_do(method):
    X, error = make(120)
    special = {
        "loss": ss.BinwiseScaling(3, loss="consistency", max_evaluations=20),
        "category": UPDATABLE["category"],
        "binwise": UPDATABLE["binwise"],
        "auto": ss.SelectedScaling({"temperature": ss.TemperatureScaling()}),
        "boosted": ss.BoostedScaling(max_trees=2, n_folds=2),
    }
    scaler = special[method] if method in special else scalers()[method]()
    shown = columns(method, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewerBinsWarning)
        scaler = deepcopy(scaler).fit(shown, error)
    before = scaler.predict(shown)
    if scaler.is_updatable:
        assert scaler.update(shown, error).n_samples_fit_ == 240
        return
    for change in (lambda: scaler.update(shown, error), lambda: scaler.merge(scaler)):
        with pytest.raises(InvalidInputError, match=r"be updated: .*Fit it again"):
            change()
    np.testing.assert_array_equal(scaler.predict(shown), before)
    updatable = {"none", "temperature", "category", "binwise"}
    assert method not in updatable


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"forget": 0.0}, "`forget` must be a number above 0, and at most 1; found 0"),
        ({"forget": 1.5}, "at most 1; found 1.5"),
        ({"forget": "a"}, "found 'a'"),
        ({"half_life": 0}, "`half_life` must be a finite number above 0; found 0"),
        ({"half_life": float("nan")}, "found nan"),
        ({"forget": 0.9, "half_life": 10}, "`forget` or `half_life`, not both"),
    ],
)
def test_other_fading_is_refused(options, match):
    scaler = ss.TemperatureScaling().fit([1.0, 2.0], [1.0, 3.0])
    with pytest.raises(InvalidInputError, match=match):
        scaler.update([1.0], [1.0], **options)


def test_bad_rows_are_refused_and_leave_everything_as_it_was():
    scaler = fit("category", *make(100))
    before = dumps(scaler)
    X, error = make(5, 1)
    for bad_X, bad_y, match in (
        (X, error[:3], "same number of rows"),
        (X, [1.0, np.nan, 1, 1, 1], "must be finite"),
        (X.with_columns(u=-X["u"]), error, "positive"),
        (X.drop("mass"), error, "feature names"),
    ):
        with pytest.raises(ValueError, match=match):
            scaler.update(bad_X, bad_y)
    assert dumps(scaler) == before


def test_errors_of_zero_count_as_such_before_and_after():
    with pytest.warns(DegenerateFitWarning, match="All 3 errors are 0"):
        scaler = ss.TemperatureScaling().fit(np.ones(3), np.zeros(3))
    assert scaler.factor_ == 1.0
    with pytest.warns(DegenerateFitWarning, match="All 4 errors are 0"):
        scaler.update([1.0], [0.0])
    scaler.update([1.0, 1.0], [3.0, 3.0])
    assert scaler.factor_ == pytest.approx(np.sqrt(18 / 6))


def test_an_uncertainty_of_zero_is_refused_and_changes_nothing():
    scaler = ss.TemperatureScaling().fit([0.5, 2.0], [1.0, 1.0])
    before = dumps(scaler)
    with pytest.raises(InvalidInputError, match=r"1 of 2 .*minimum="):
        scaler.update([0.0, 0.25], [0.5, 0.5])
    assert dumps(scaler) == before


def test_intervals_are_forgotten_with_a_word_on_it():
    X, error = make(100)
    scaler = ss.Recalibrator(ss.TemperatureScaling()).fit(X["u"], error)
    scaler.conformalize(X["u"], error)
    with pytest.warns(ForgottenIntervalsWarning, match="Intervals are forgotten"):
        scaler.update(X["u"], error)
    assert not hasattr(scaler, "conformal_")


@every
@pytest.mark.parametrize("half_life", [None, 200.0])
def test_files_carry_the_sums_and_go_on_bit_for_bit(name, half_life):
    X, error = make(300)
    scaler = fit(name, X[:150], error[:150])
    update(name, scaler, X[150:200], error[150:200], half_life=half_life)
    text = dumps(scaler)
    loaded = loads(text)
    assert dumps(loaded) == text
    assert len(text) < 40_000
    for each in (scaler, loaded):
        update(name, each, X[200:], error[200:], half_life=half_life)
    assert dumps(loaded) == dumps(scaler)
