"""What every recalibrator must do, over the registry of all of them."""

import inspect
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import sigmascale as ss
from sigmascale import scaling
from sigmascale.exceptions import (
    DegenerateFitWarning,
    InvalidInputError,
    NotANumberError,
    ZeroUncertaintyWarning,
)
from sigmascale.maps.prediction import rescale
from sigmascale.predictions import read_table
from sigmascale.scaling import VarianceScaler, scalers

SCALERS = tuple(scalers().values())

# Those that search or cross-validate, with less to search.
QUICK = {
    ss.BinwiseScaling: {"n_bins": 5},
    ss.RakedScaling: {"n_bins": 5, "shrinkage": 10.0},
    ss.BoostedScaling: {"max_trees": 5, "n_folds": 2},
    ss.SelectedScaling: {
        "candidates": {
            "temperature": ss.TemperatureScaling(),
            "isotonic": ss.IsotonicScaling(),
            "raked": ss.RakedScaling(5, shrinkage=10.0),
        },
        "n_folds": 2,
    },
}
RECALIBRATES = [each for each in SCALERS if each is not ss.NoScaling]
USES_ALL_COLUMNS = (ss.RakedScaling, ss.BoostedScaling, ss.SelectedScaling)
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}

quiet = pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.AverageOffWarning",
    "ignore::sigmascale.exceptions.FewerBinsWarning",
    "ignore::sigmascale.exceptions.DegenerateFitWarning",
    "ignore::sigmascale.exceptions.ZeroUncertaintyWarning",
    "ignore::sigmascale.exceptions.UnseenCategoryWarning",
    "ignore::sigmascale.exceptions.CandidateDroppedWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)
every_scaler = pytest.mark.parametrize("Scaler", SCALERS, ids=lambda s: s.__name__)
every_recalibrator = pytest.mark.parametrize(
    "Scaler", RECALIBRATES, ids=lambda s: s.__name__
)


def make(Scaler):
    return clone(Scaler(**QUICK.get(Scaler, {})))


def make_data(n=120, seed=0):
    """Columns u, a label of four values, and a feature; errors that need them all."""
    rng = np.random.default_rng(seed)
    u = rng.lognormal(0, 0.5, n)
    label = rng.integers(0, 4, n).astype(float)
    mass = rng.normal(100, 10, n)
    sigma = 2 * u**0.5 * (1 + label) * np.exp((mass - 100) / 20)
    return np.column_stack([u, label, mass]), rng.normal(scale=sigma)


NAMES = ("u", "phase", "mass")


def as_frame(library, X):
    return FRAMES[library](dict(zip(NAMES, X.T, strict=True)))


def expected_failures(scaler):
    failures = {
        "check_fit1d": "a one-dimensional X is the uncertainty alone",
        "check_positive_only_tag_during_fit": "only the first column must be positive",
    }
    if isinstance(scaler, ss.CategoryScaling):
        del failures["check_fit1d"]  # there is no column of labels
    if isinstance(scaler, (ss.RakedScaling, ss.SelectedScaling)):
        failures["check_sample_weight_equivalence_on_dense_data"] = (
            "repeats without groups are torn apart by the folds, a weighted row is not"
        )
    return failures


@quiet
@parametrize_with_checks(
    [make(Scaler) for Scaler in SCALERS], expected_failed_checks=expected_failures
)
@pytest.mark.usefixtures("positive_input")
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


def test_the_registry_lists_every_recalibrator_and_all_of_them_are_public():
    exported = {
        each
        for each in (getattr(scaling, name) for name in scaling.__all__)
        if inspect.isclass(each) and issubclass(each, VarianceScaler)
    }
    assert set(SCALERS) == exported - {VarianceScaler}
    assert {each.__name__ for each in SCALERS} <= set(ss.__all__)


@every_scaler
def test_a_clone_has_the_parameters_but_nothing_that_was_learned(Scaler):
    X, error = make_data()
    scaler = make(Scaler).fit(X, error)
    copy = clone(scaler)
    assert repr(copy.get_params()) == repr(scaler.get_params())
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        copy.predict(X)
    np.testing.assert_array_equal(copy.fit(X, error).predict(X), scaler.predict(X))


@every_scaler
def test_fit_leaves_parameters_and_data_as_they_are(Scaler):
    X, error = make_data()
    X_before, error_before = X.copy(), error.copy()
    scaler = make(Scaler)
    before = repr(scaler.get_params())
    assert scaler.fit(X, error) is scaler
    scaler.predict(X)
    assert repr(scaler.get_params()) == before
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(error, error_before)


@every_scaler
def test_predictions_are_an_array_of_their_own(Scaler):
    X, error = make_data()
    uncertainty = np.ascontiguousarray(X[:, 0])
    scaler = make(Scaler).fit(X, error)
    rows = read_table(X)
    assert not np.shares_memory(rescale(scaler.map_, rows), rows.uncertainty)
    uncertainty.flags.writeable = False
    X = pd.DataFrame({"u": uncertainty, "a": X[:, 1], "b": X[:, 2]})
    assert np.all(make(Scaler).fit(X, error).predict(X) > 0)


@every_scaler
def test_fitting_again_forgets_the_first_fit(Scaler):
    X, error = make_data(seed=1)
    other, other_error = make_data(n=90, seed=2)
    other = np.column_stack([10 * other, other[:, 2]])
    fresh = make(Scaler).fit(X, error)
    first = pd.DataFrame(other, columns=[*NAMES, "extra"])
    again = make(Scaler).fit(first, other_error).fit(X, error)
    assert set(vars(again)) == set(vars(fresh))
    assert again.n_features_in_ == 3
    assert again.min_uncertainty_ == X[:, 0].min()
    np.testing.assert_array_equal(again.predict(X), fresh.predict(X))


@every_scaler
def test_predicting_before_fitting_is_an_error(Scaler):
    X, error = make_data()
    with pytest.raises(NotFittedError, match=f"{Scaler.__name__} .*is not fitted yet"):
        make(Scaler).predict(X)
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        make(Scaler).score(X, error)


@every_scaler
def test_the_score_is_the_mean_log_likelihood_of_the_predictions(Scaler):
    X, error = make_data()
    scaler = make(Scaler).fit(X, error)
    u = scaler.predict(X)
    log_likelihood = -np.log(u) - 0.5 * (error / u) ** 2 - 0.5 * np.log(2 * np.pi)
    assert scaler.score(X, error) == pytest.approx(log_likelihood.mean(), rel=1e-12)


@every_scaler
@pytest.mark.parametrize("c", [2.0**-30, 1e-9, 0.37, 2.0**20])
def test_predictions_follow_the_unit_of_errors_and_uncertainties(Scaler, c):
    X, error = make_data()
    in_other_unit = X * [c, 1, 1]
    expected = make(Scaler).fit(X, error).predict(X)
    scaled = make(Scaler).fit(in_other_unit, c * error).predict(in_other_unit)
    np.testing.assert_allclose(scaled, c * expected, rtol=1e-6)


@every_recalibrator
@pytest.mark.parametrize("c", [2.0**-30, 1e-9, 0.37, 2.0**20])
def test_scaling_uncertainty_by_a_constant_leaves_the_result_unchanged(Scaler, c):
    X, error = make_data()
    scaled = X * [c, 1, 1]
    expected = make(Scaler).fit(X, error).predict(X)
    found = make(Scaler).fit(scaled, error).predict(scaled)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@every_scaler
@pytest.mark.parametrize("tied", [False, True])
@quiet
def test_the_order_of_rows_is_irrelevant(Scaler, tied):
    X, error = make_data()
    if tied:
        X, error = np.ceil(X / [0.5, 1, 10]), np.round(error)
    order = np.random.default_rng(3).permutation(error.size)
    expected = make(Scaler).fit(X, error).predict(X)
    shuffled = make(Scaler).fit(X[order], error[order])
    np.testing.assert_allclose(shuffled.predict(X), expected, rtol=1e-6)
    np.testing.assert_array_equal(
        shuffled.predict(X[order]), shuffled.predict(X)[order]
    )


@every_scaler
@pytest.mark.parametrize("library", FRAMES)
def test_arrays_lists_and_frames_of_all_libraries_give_identical_predictions(
    Scaler, library
):
    X, error = make_data()
    frame = as_frame(library, X)
    expected = make(Scaler).fit(X, error).predict(X)
    from_lists = make(Scaler).fit(X.tolist(), error.tolist()).predict(X.tolist())
    np.testing.assert_array_equal(from_lists, expected)
    series = {"pandas": pd.Series, "polars": pl.Series, "pyarrow": pa.chunked_array}
    y = series[library](error if library != "pyarrow" else [error[:7], error[7:]])
    fitted = make(Scaler).fit(frame, y)
    np.testing.assert_array_equal(fitted.predict(frame), expected)
    assert fitted.score(frame, y) == make(Scaler).fit(X, error).score(X, error)
    assert list(fitted.feature_names_in_) == list(NAMES)


@every_scaler
def test_rows_of_a_pandas_frame_are_taken_in_order_whatever_their_index(Scaler):
    X, error = make_data()
    odd = np.random.default_rng(0).permutation(error.size)
    frame = pd.DataFrame(X, columns=NAMES, index=odd)
    y = pd.Series(error, index=odd)
    expected = make(Scaler).fit(X, error).predict(X)
    np.testing.assert_array_equal(make(Scaler).fit(frame, y).predict(frame), expected)


@every_scaler
@pytest.mark.parametrize("library", FRAMES)
def test_column_names_are_checked_when_predicting(Scaler, library):
    X, error = make_data()
    scaler = make(Scaler).fit(as_frame(library, X), error)
    renamed = FRAMES[library](dict(zip(("u", "phase", "weight"), X.T, strict=True)))
    swapped = FRAMES[library](dict(zip(("u", "mass", "phase"), X.T, strict=True)))
    for wrong in (renamed, swapped):
        with pytest.raises(ValueError, match="feature names should match"):
            scaler.predict(wrong)
    with pytest.raises(ValueError, match="expecting 3 features"):
        make(Scaler).fit(X, error).predict(X[:, :2])
    with pytest.raises(InvalidInputError, match="expecting 3 features"):
        make(Scaler).fit(X, error).predict(X[:, 0])


@every_scaler
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "object"])
def test_other_types_of_numbers_give_what_doubles_give(Scaler, dtype):
    X, error = make_data()
    X, error = np.ceil(8 * X[:, :2]), np.round(error)  # exact in every type
    narrow, narrow_error = X.astype(dtype), np.abs(error).astype(dtype)
    expected = make(Scaler).fit(X, np.abs(error)).predict(X)
    found = make(Scaler).fit(narrow, narrow_error).predict(narrow)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, expected)


@every_scaler
@pytest.mark.parametrize("value", [0.0, -5.0, 1e-200, 1e200])
def test_an_uncertainty_that_no_error_can_be_divided_by_is_refused(Scaler, value):
    X, error = make_data()
    scaler = make(Scaler).fit(X, error)
    X[[17, 30], 0] = value
    remedy, first = "unit" if value > 0 else "minimum=", re.escape(f"{value:g}")
    refused = pytest.raises(
        InvalidInputError,
        match=rf"^`uncertainty` must be .*2 of 120 .*row 17: {first}.*{remedy}",
    )
    with refused:
        make(Scaler).fit(X, error)
    with refused:
        scaler.score(X, error)
    if value:
        with refused:
            scaler.predict(X)


@every_scaler
def test_new_rows_of_zero_uncertainty_take_the_smallest_seen_in_fit(Scaler):
    X, error = make_data()
    scaler = make(Scaler).fit(X, error)
    smallest = X[:, 0].min()
    assert scaler.min_uncertainty_ == smallest
    new = np.array([[0, 1, 100], [0, 2, 90], [smallest / 9, 1, 100], [2, 1, 100]])
    with pytest.warns(ZeroUncertaintyWarning, match=f"^2 of 4 .* to {smallest:g}"):
        found = scaler.predict(new)
    new[:2, 0] = smallest
    np.testing.assert_array_equal(found, scaler.predict(new))


@every_scaler
@pytest.mark.parametrize("tiny", [0.0, 1e-200, 5e-324])
def test_errors_of_only_zero_teach_nothing_and_leave_uncertainties_alone(Scaler, tiny):
    X, error = make_data()
    with pytest.warns(DegenerateFitWarning, match="^All 120 errors are 0: nothing"):
        scaler = make(Scaler).fit(X, np.full_like(error, tiny))
    np.testing.assert_allclose(scaler.predict(X), X[:, 0], rtol=1e-9)


@every_recalibrator
@pytest.mark.parametrize("share", [0.5, 0.9, 0.97])
@quiet
def test_many_zero_errors_do_not_drag_all_uncertainties_to_zero(Scaler, share):
    X, error = make_data(200)
    error[np.random.default_rng(0).permutation(200)[: round(200 * share)]] = 0
    predicted = make(Scaler).fit(X, error).predict(X)
    rms = np.sqrt(np.mean(error**2))
    assert predicted.min() > 1e-3 * rms
    assert predicted.max() < 1e3 * rms


@every_recalibrator
@quiet
def test_constant_columns_leave_one_uncertainty_the_rms_error(Scaler):
    error = np.random.default_rng(0).uniform(-2, 2, 120)  # no outliers to be capped
    X = np.tile([0.3, 1.0, 7.0], (error.size, 1))
    predicted = make(Scaler).fit(X, error).predict(X)
    np.testing.assert_allclose(predicted, np.sqrt(np.mean(error**2)), rtol=1e-9)


@every_recalibrator
@pytest.mark.parametrize("n_rows", [1, 2, 3])
@quiet
def test_a_row_or_three_are_enough_to_fit(Scaler, n_rows):
    X, error = make_data(n_rows)
    scaler = make(Scaler).fit(X, error)
    predicted = scaler.predict(X)
    assert np.isfinite(predicted).all()
    assert predicted.min() > 0
    if n_rows == 1:
        np.testing.assert_allclose(predicted, np.abs(error), rtol=1e-9)
    else:
        # no method may be worse than one factor on the rows that it was fitted to
        single = ss.TemperatureScaling().fit(X, error)
        assert scaler.score(X, error) > single.score(X, error) - 1e-9


@every_scaler
@quiet
def test_inputs_outside_the_range_of_the_fit_get_sensible_uncertainties(Scaler):
    X, error = make_data()
    scaler = make(Scaler).fit(X, error)
    low, high = X.min(axis=0), X.max(axis=0)
    edges = np.array([low, high])
    outside = np.array([[low[0] / 9, -50, -1e6], [9 * high[0], 50, 1e6]])
    ratio = scaler.predict(outside) / scaler.predict(edges)
    assert ratio.min() > 1 / 40
    assert ratio.max() < 40


@every_scaler
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_uncertainty_that_is_not_finite_is_an_error_that_names_the_row(Scaler, bad):
    X, error = make_data()
    scaler = make(Scaler).fit(X, error)
    X[5, 0] = bad
    message = rf"`X\[:, u\]` must be finite.*1 of 120.*row 5: {bad:g}.*Drop or repair"
    with pytest.raises(InvalidInputError, match=message):
        make(Scaler).fit(X, error)
    with pytest.raises(InvalidInputError, match=message):
        scaler.predict(X)


@every_scaler
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_error_that_is_not_finite_is_refused_with_its_row(Scaler, bad):
    X, error = make_data()
    scaler = make(Scaler).fit(X, error)
    error[7] = bad
    message = rf"y \(the errors\) must be finite; 1 of 120 .*row 7: {bad:g}\).*Drop"
    with pytest.raises(InvalidInputError, match=message):
        make(Scaler).fit(X, error)
    with pytest.raises(InvalidInputError, match=message):
        scaler.score(X, error)


@every_scaler
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_columns_that_are_not_used_may_hold_anything(Scaler, bad):
    X, error = make_data()
    spoilt = X.copy()
    spoilt[5, 2] = bad
    if Scaler not in USES_ALL_COLUMNS:
        predicted = make(Scaler).fit(spoilt, error).predict(spoilt)
        np.testing.assert_array_equal(predicted, make(Scaler).fit(X, error).predict(X))
    elif np.isnan(bad):
        # a missing value is one more thing to learn from
        predicted = make(Scaler).fit(spoilt, error).predict(spoilt)
        assert np.isfinite(predicted).all()
    else:
        with pytest.raises(InvalidInputError, match=r"X2\]` must be .*row 5: inf"):
            make(Scaler).fit(spoilt, error)


@every_scaler
@pytest.mark.parametrize("library", FRAMES)
def test_columns_of_text_dates_and_missing_values_do_no_harm(Scaler, library):
    X, error = make_data()
    text = np.array(["gas", "liquid", "solid", "plasma"])[X[:, 1].astype(int)]
    when = np.arange(120) + np.datetime64("2024-01-01", "us")
    columns = {"u": X[:, 0], "phase": text, "mass": X[:, 2], "when": when}
    frame = FRAMES[library](columns)
    predicted = make(Scaler).fit(frame, error).predict(frame)
    assert np.isfinite(predicted).all()
    if Scaler not in USES_ALL_COLUMNS:
        np.testing.assert_array_equal(predicted, make(Scaler).fit(X, error).predict(X))


@every_scaler
def test_text_among_the_uncertainties_is_an_error_that_names_the_row(Scaler):
    X, error = make_data()
    mixed = X.astype(object)
    mixed[3, 0] = "n/a"
    message = r"`X\[:, u\]` must hold numbers; row 3 is 'n/a'\. Convert or drop it"
    for table in (mixed, mixed.tolist(), pd.DataFrame(mixed, columns=NAMES)):
        with pytest.raises(NotANumberError, match=message):
            make(Scaler).fit(table, error)


@every_scaler
def test_masked_and_missing_entries_are_not_taken_for_numbers(Scaler):
    X, error = make_data()
    mask = np.zeros(X.shape, dtype=bool)
    mask[4, 0] = True
    message = r"`X\[:, u\]` must be finite.*1 of 120 .*row 4: nan"
    nullable = pd.DataFrame(X, columns=NAMES).astype("Float64")
    nullable.iloc[4, 0] = pd.NA
    with_null = pl.DataFrame(X, schema=NAMES).with_columns(
        u=pl.when(pl.int_range(120) != 4).then(pl.col("u"))
    )
    for table in (np.ma.array(X, mask=mask), nullable, with_null, with_null.to_arrow()):
        with pytest.raises(InvalidInputError, match=message):
            make(Scaler).fit(table, error)
    with pytest.raises(InvalidInputError, match=r"y \(the errors\) .*row 4: nan"):
        make(Scaler).fit(X, np.ma.array(error, mask=mask[:, 0]))


@every_scaler
def test_numbers_in_a_column_of_objects_are_numbers_and_none_is_missing(Scaler):
    X, error = make_data()
    X[::9, 2] = np.nan
    objects = pd.DataFrame(X, columns=NAMES).astype(object)
    objects = objects.where(objects.notna(), None)
    found = make(Scaler).fit(objects, error).predict(objects)
    np.testing.assert_array_equal(found, make(Scaler).fit(X, error).predict(X))


@every_scaler
def test_the_kind_of_table_is_explained_when_it_cannot_be_used(Scaler):
    X, error = make_data()
    wrong = {
        r"0 sample\(s\) .*Pass a data frame": np.empty((0, 3)),
        r"0 feature\(s\) .*Pass a data frame": np.empty((3, 0)),
        "dim 3, .*Pass a data frame": X[:, :, None],
        "at least 1 dimension": 3.0,
        "the uncertainty first: Input should": None,
        "inhomogeneous .*Pass a data frame": [[1.0, 2.0], [3.0]],
        "Complex data not supported": X * 1j,
        r"0 sample\(s\) and 3 feature\(s\) .*Is the file empty": pl.DataFrame(
            X[:0], schema=NAMES
        ),
        "columns of different names .*Rename": pd.DataFrame(X, columns=["u", "a", "a"]),
    }
    for message, table in wrong.items():
        with pytest.raises(InvalidInputError, match=message):
            make(Scaler).fit(table, error)


finite = st.floats(allow_nan=False, allow_infinity=False)
extreme = st.sampled_from([0.0, 5e-324, 1e-300, 1e-70, 1.0, 1e70, 1e300, 1.7e308])
any_number = st.one_of(finite, extreme, extreme.map(lambda x: -x))
uncertainties = st.one_of(st.floats(1e-70, 1e70), st.sampled_from([1e-70, 1.0, 1e70]))


@st.composite
def wild_sets(draw):
    n, m = draw(st.integers(1, 25)), draw(st.integers(1, 5))
    u = draw(arrays(float, n, elements=uncertainties))
    return (
        np.column_stack([u, draw(arrays(float, (n, 2), elements=any_number))]),
        draw(arrays(float, n, elements=any_number)),
        np.column_stack(
            [
                draw(arrays(float, m, elements=st.just(0.0) | uncertainties)),
                draw(arrays(float, (m, 2), elements=any_number)),
            ]
        ),
    )


def zeros_but_for_two(u, error):
    """Return a set whose errors are 0 but for two, the last ones."""
    X = np.zeros((14, 3))
    X[:, 0] = [*12 * [u], 1.0, u]
    return X, np.array([*12 * [0.0], error, 1e-70]), np.zeros((1, 3))


@every_scaler
@quiet
@settings(max_examples=60)
@given(wild_sets())
@example(zeros_but_for_two(1e70, 5.80575114e13))
@example(zeros_but_for_two(6.68168962e69, 3.38220674e13))
def test_predictions_are_finite_and_positive_for_any_finite_input(Scaler, data):
    X, error, new = data
    scaler = make(Scaler).fit(X, error)
    for table in (X, new):
        predicted = scaler.predict(table)
        assert predicted.shape == (table.shape[0],)
        assert np.isfinite(predicted).all()
        assert predicted.min() > 0


EXTREMES = {
    "all sizes": (
        [1e70, 1e-70, 1e-69, 1.0, 1e-70, 1e70, 3.0, 1e-70, 2.0, 1e60, 7.0, 1e-60],
        [1e-300, 1e300, 1.0, 0.0, 5e-324, 1e70, -1e-70, 1e200, 2.0, -3.0, 1.0, 0.0],
    ),
    "a huge z among tiny ones": ([1e-70] + 11 * [1e70], [1e-25] + 11 * [1e-70]),
    "a tiny z among huge ones": ([1e70] + 11 * [1e-70], [1e-70] + 11 * [1e-25]),
}


@every_scaler
@pytest.mark.parametrize("extreme", EXTREMES)
@quiet
def test_predictions_are_finite_and_positive_with_default_parameters(Scaler, extreme):
    u, error = EXTREMES[extreme]
    X = np.column_stack([u, np.arange(12) % 2, error[::-1]])
    predicted = Scaler().fit(X, error).predict(X)
    assert np.isfinite(predicted).all()
    assert predicted.min() > 0
