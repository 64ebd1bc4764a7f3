import functools
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.exceptions import (
    FewerBinsWarning,
    InvalidInputError,
    ThinBinsWarning,
)
from sigmascale.maps import Lookup, in_order

own_factors = functools.partial(ss.BinwiseScaling, least_rows=0)
few_strata = pytest.mark.filterwarnings("ignore:.*equal values of:UserWarning")


@pytest.fixture(scope="module")
def data():
    """Columns u, a continuous feature, a stratified one; errors that need them all."""
    rng = np.random.default_rng(0)
    u = rng.lognormal(0, 0.6, 403)
    x = rng.normal(size=403)
    strata = rng.choice([1.0, 2.0, 5.0], size=403, p=[0.6, 0.1, 0.3])
    error = rng.normal(scale=2 * u**0.5 * np.exp(0.3 * x) * strata)
    return np.column_stack([u, x, strata]), error


def limits(keys, n_bins):
    """Return the first key of bins 2, 3, ... of sorted keys, each once."""
    keys = sorted(keys)
    firsts = [keys[math.floor(k * len(keys) / n_bins + 0.5)] for k in range(1, n_bins)]
    return sorted({key for key in firsts if key > keys[0]})


def codes(keys, limits):
    return np.array([sum(limit <= key for limit in limits) for key in keys])


def root_mean_square(error, u, code, n_codes):
    z2 = (error / u) ** 2
    return np.array(
        [
            np.sqrt(z2[code == k].mean()) if (code == k).any() else np.sqrt(z2.mean())
            for k in range(n_codes)
        ]
    )


def keys_of(X, by):
    """Return what decides on the bin: u alone, or the pair of a feature and u."""
    u = X[:, 0].tolist()
    return u if by == 0 else list(zip(X[:, by].tolist(), u, strict=True))


@pytest.mark.parametrize("n_bins", [1, 2, 7, 40])
@pytest.mark.parametrize("by", [0, 1, 2, -1])
def test_bins_and_factors_are_those_of_a_plain_computation(data, by, n_bins):
    X, error = data
    new = np.random.default_rng(1).permutation(X, axis=0) * [1.3, 1.1, 1]
    new = np.vstack([new, X.min(axis=0) / 2, 2 * X.max(axis=0)])
    known = limits(keys_of(X, by), n_bins)
    assert len(known) == n_bins - 1
    expected = root_mean_square(error, X[:, 0], codes(keys_of(X, by), known), n_bins)
    scaler = own_factors(n_bins, by=by).fit(X, error)
    np.testing.assert_allclose(scaler.factors_, expected, rtol=1e-12)
    for table in (X, new):
        bins = codes(keys_of(table, by), known)
        np.testing.assert_allclose(
            scaler.predict(table), expected[bins] * table[:, 0], rtol=1e-12
        )


@few_strata
@pytest.mark.parametrize("by", [0, 1, 2, (0, 1), (0, 2)])
def test_changing_any_factor_lowers_the_likelihood(data, by):
    X, error = data
    scaler = own_factors(6, by=by).fit(X, error)
    best = scaler.score(X, error)
    filled = np.flatnonzero(scaler.sums_.n)
    assert filled.size >= 5
    (lookup,) = (node for node in in_order(scaler.map_) if isinstance(node, Lookup))
    inside = lookup.table[(slice(1, None),) * lookup.table.ndim]  # without what lacks
    for k in filled:
        place = np.unravel_index(k, inside.shape)
        for change in (0.98, 1.02):
            factor = inside[place]
            inside[place] *= change
            assert scaler.score(X, error) < best
            inside[place] = factor
    assert scaler.score(X, error) == best


def test_every_bin_is_calibrated_on_the_calibration_set(data):
    X, error = data
    for by in (0, 1, 2):
        scaler = own_factors(10, by=by).fit(X, error)
        bins = codes(keys_of(X, by), limits(keys_of(X, by), 10))
        z2 = (error / scaler.predict(X)) ** 2
        for k in range(10):
            assert z2[bins == k].mean() == pytest.approx(1, rel=1e-12)


def test_strata_are_told_apart_by_the_uncertainty():
    # 6 rows with x = 1 make two bins, cut between u = 3 and u = 4
    X = [[u, 1.0] for u in (6.0, 5.0, 4.0, 3.0, 2.0, 1.0)] + [[u, 2.0] for u in (1, 9)]
    error = [60.0, 50.0, 40.0, 6.0, 4.0, 2.0, 3.0, 27.0]
    with pytest.warns(FewerBinsWarning, match="8 bins were asked for, but 4 rows"):
        own_factors(8, by=1).fit(X[:4], error[:4])
    scaler = own_factors(3, by=1).fit(X, error)  # bins of 3, 2 and 3 rows
    np.testing.assert_array_equal(scaler.partition_.limits, [1, 1])
    np.testing.assert_array_equal(scaler.partition_.tie_limits, [4, 6])
    last = np.sqrt((100 + 9 + 9) / 3)
    new = [[0.5, 1], [3.9, 1], [4, 1], [5.9, 1], [6, 1], [0.1, 2], [100, 0.9], [1, 7]]
    factors = [2, 2, 10, 10, last, last, 2, last]
    np.testing.assert_allclose(scaler.predict(new), factors * np.array(new)[:, 0])


def test_a_constant_column_is_cut_by_the_uncertainty_alone(data):
    X, error = data
    constant = np.column_stack([X[:, 0], np.full(len(X), 3.0)])
    by_feature = own_factors(9, by=1).fit(constant, error).predict(constant)
    by_u = own_factors(9).fit(X, error).predict(X)
    np.testing.assert_array_equal(by_feature, by_u)


@few_strata
@pytest.mark.parametrize("n_bins", [(5, 4), (1, 3), 6])
@pytest.mark.parametrize("by", [(0, 1), (1, 0), (1, 2)])
def test_cells_are_those_of_a_plain_computation(data, by, n_bins):
    X, error = data
    counts = (n_bins, n_bins) if isinstance(n_bins, int) else n_bins
    known = [limits(X[:, i].tolist(), n) for i, n in zip(by, counts, strict=True)]
    second = len(known[1]) + 1  # strata have fewer values than bins

    def cells(table):
        first, other = (
            codes(table[:, i], each) for i, each in zip(by, known, strict=True)
        )
        return first * second + other

    n_cells = (len(known[0]) + 1) * second
    expected = root_mean_square(error, X[:, 0], cells(X), n_cells)
    scaler = own_factors(n_bins, by=by).fit(X, error)
    np.testing.assert_allclose(scaler.factors_, expected, rtol=1e-12)
    new = X * [2, 1.5, 1]
    np.testing.assert_allclose(
        scaler.predict(new), expected[cells(new)] * new[:, 0], rtol=1e-12
    )


def test_cells_without_rows_take_the_average_factor():
    # two variables that go together leave the cells beside the diagonal empty
    u = np.arange(1.0, 9)
    X = np.column_stack([u, u])
    error = u * [1, 1, 2, 2, 3, 3, 4, 4]
    scaler = own_factors(4, by=(0, 1)).fit(X, error)
    average = np.sqrt((1 + 4 + 9 + 16) / 4)
    expected = np.full((4, 4), average)
    np.fill_diagonal(expected, [1, 2, 3, 4])
    np.testing.assert_allclose(scaler.factors_.reshape(4, 4), expected)
    np.testing.assert_allclose(
        scaler.predict([[1.0, 8.0], [8.0, 1.0]]), [average, 8 * average]
    )


def test_a_bin_of_only_zero_errors_takes_the_average_factor():
    u = np.arange(1.0, 7)
    scaler = own_factors(3).fit(u, u * [2, 2, 0, 0, 3, 3])
    average = np.sqrt((4 + 0 + 9) / 3)
    np.testing.assert_allclose(scaler.factors_, [2, average, 3])


@few_strata
def test_columns_can_be_named(data):
    X, error = data
    frame = pl.DataFrame(X, schema=["u", "x", "strata"])
    for by, name in [
        (0, "u"),
        (1, "x"),
        ((0, 2), ("u", "strata")),
        ((2, 1), ["strata", 1]),
    ]:
        expected = own_factors(6, by=by).fit(X, error).predict(X)
        named = own_factors(6, by=name).fit(frame, error).predict(frame)
        np.testing.assert_array_equal(named, expected)


def test_fewer_rows_or_values_than_bins_are_announced_and_used(data):
    X, error = data
    with pytest.warns(FewerBinsWarning, match="40 bins were asked for, but 12 rows"):
        few = own_factors().fit(X[:12], error[:12])
    np.testing.assert_allclose(few.predict(X[:12]), np.abs(error[:12]), rtol=1e-12)
    with pytest.warns(FewerBinsWarning, match="5 bins .* leave 1 distinct bins"):
        one = own_factors(5).fit(np.ones(20), error[:20])
    np.testing.assert_allclose(one.factors_, [np.sqrt(np.mean(error[:20] ** 2))])


def test_tied_uncertainties_share_a_bin_in_fit_and_in_predict():
    # 30 rows with u = 1: three of four limits coincide
    u = np.repeat([1.0, 2.0, 3.0], [30, 5, 5])
    rng = np.random.default_rng(0)
    error = rng.normal(scale=u)
    with pytest.warns(FewerBinsWarning, match="4 bins .* leave 2 distinct"):
        scaler = own_factors(4).fit(u, error)
    np.testing.assert_array_equal(scaler.sums_.n, [30, 10])
    np.testing.assert_array_equal(scaler.partition_.limits, [2])


def test_one_bin_is_one_factor_and_more_bins_fit_the_calibration_set_better(data):
    X, error = data
    single = ss.TemperatureScaling().fit(X, error)
    scores = [own_factors(n).fit(X, error).score(X, error) for n in (1, 3, 9, 27)]
    assert scores[0] == pytest.approx(single.score(X, error), rel=1e-12)
    assert scores == sorted(scores)  # each cuts the bins of the one before


def test_a_feature_of_truth_values_counts_and_nullable_numbers_can_be_binned(data):
    X, error = data
    frame = pd.DataFrame(
        {
            "u": pd.array(X[:, 0], dtype="Float64"),
            "odd": pd.array(X[:, 2] > 1, dtype="boolean"),
            "count": pd.array(X[:, 2].astype(int), dtype="Int64"),
        }
    )
    for name, column in [("odd", X[:, 2] > 1), ("count", X[:, 2])]:
        plain = np.column_stack([X[:, 0], column])
        expected = own_factors(6, by=1).fit(plain, error).predict(plain)
        found = own_factors(6, by=name).fit(frame, error).predict(frame)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("by", "n_bins"), [(0, ()), ((0, 1), ()), ((0, 1), (2, 3, 4))])
def test_numbers_of_bins_that_do_not_match_the_columns_are_refused(data, by, n_bins):
    X, error = data
    match = r"`n_bins` must be a number, or one for each of \d column"
    with pytest.raises(InvalidInputError, match=match):
        own_factors(n_bins, by=by).fit(X, error)


def test_a_thin_bin_is_filled_up_by_rows_of_the_average(data):
    X, error = data
    z2 = (error / X[:, 0]) ** 2
    scaler = ss.BinwiseScaling(20).fit(X, error)  # 20 or 21 rows a bin
    bins = codes(keys_of(X, 0), limits(keys_of(X, 0), 20))
    expected = [
        np.sqrt((z2[bins == k].sum() + (30 - n) * z2.mean()) / 30)
        for k, n in enumerate(np.bincount(bins))
    ]
    np.testing.assert_allclose(scaler.factors_, expected, rtol=1e-12)


def test_bins_of_enough_rows_keep_their_own_factors(data):
    X, error = data
    for n_bins, least_rows in [(13, 30), (20, 20), (40, 10)]:  # 31, 20 and 10 rows
        scaler = ss.BinwiseScaling(n_bins, least_rows=least_rows).fit(X, error)
        expected = own_factors(n_bins).fit(X, error).factors_
        np.testing.assert_array_equal(scaler.factors_, expected)
    fuller = ss.BinwiseScaling(13, least_rows=32).fit(X, error).factors_
    assert np.all(fuller != own_factors(13).fit(X, error).factors_)


def test_bins_with_less_than_half_the_rows_that_they_need_are_announced(data):
    X, error = data
    match = "403 rows in 40 bins are fewer than 15 a bin.*at most 13 bins"
    with pytest.warns(ThinBinsWarning, match=match):
        ss.BinwiseScaling().fit(X, error)
    ss.BinwiseScaling(26).fit(X, error)  # a warning would be an error


def test_an_empty_cell_and_one_of_zero_errors_take_the_average_factor_when_filled():
    u = np.repeat(np.arange(1.0, 9), 10)
    X = np.column_stack([u, u])
    error = u * np.repeat([0, 1, 2, 2, 3, 3, 4, 4], 10)
    scaler = ss.BinwiseScaling(8, by=(0, 1), least_rows=12)
    with pytest.warns(ThinBinsWarning):
        factors = scaler.fit(X, error).factors_.reshape(8, 8)
    average = np.sqrt(np.mean((error / u) ** 2))
    assert factors[0, 0] == pytest.approx(average)
    assert factors[3, 5] == pytest.approx(average)
    assert factors[7, 7] == pytest.approx(np.sqrt((160 + 2 * average**2) / 12))


@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.ThinBinsWarning")
@pytest.mark.parametrize("n", [100, 200, 400])
def test_forty_bins_of_few_rows_are_nearly_right_for_new_rows(n):
    means = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        u = rng.lognormal(0, 0.5, n)
        scaler = ss.BinwiseScaling().fit(u, rng.normal(scale=1.5 * u))
        new = rng.lognormal(0, 0.5, 2000)
        means.append(np.mean((1.5 * new / scaler.predict(new)) ** 2))
    assert 0.95 < np.mean(means) < 1.1
    assert np.max(means) < 2


@pytest.mark.parametrize("bad", [-1, 2.5, "30", True])
def test_a_least_number_of_rows_that_is_no_count_is_refused(data, bad):
    with pytest.raises(InvalidInputError, match="`least_rows` must be"):
        ss.BinwiseScaling(5, least_rows=bad).fit(*data)
