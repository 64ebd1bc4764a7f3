"""Intervals of rows that come in groups."""

import numpy as np
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import FewerBinsWarning, InvalidInputError
from sigmascale.judging.confidence_intervals import METHODS, student_interval
from sigmascale.judging.grouped_intervals import (
    GroupSums,
    design_effect,
    few_groups_quantile,
    grouped_mean_interval,
    within_groups,
)

QUICK = {"confidence": 0.95, "n_resamples": 1500}


def repeats(n_groups, size, rho, rng):
    """Return calibrated errors and uncertainties of 1, in groups."""
    groups = np.repeat(np.arange(n_groups), size)
    z = np.sqrt(rho) * rng.normal(size=n_groups)[groups]
    z += np.sqrt(1 - rho) * rng.normal(size=groups.size)
    return z, np.ones(groups.size), groups


def interval(method, values, groups, seed=0):
    sums = GroupSums.of_rows(values, np.array([values.size]), groups)
    rng = np.random.default_rng(seed)
    low, high = grouped_mean_interval(method, sums, rng=rng, **QUICK)
    return float(low[0]), float(high[0])


# --- sums ----------------------------------------------------------------------------


def test_sums_by_bin_and_group_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    sizes = np.array([7, 1, 12])
    values, groups = rng.random(20), rng.integers(0, 4, 20)
    sums = GroupSums.of_rows(values, sizes, groups)
    expected = [
        (values[rows][groups[rows] == g].sum(), np.sum(groups[rows] == g))
        for rows in np.split(np.arange(20), [7, 8])
        for g in np.unique(groups[rows])
    ]
    np.testing.assert_allclose(np.column_stack([sums.totals, sums.counts]), expected)
    np.testing.assert_array_equal(
        sums.sizes, [np.unique(part).size for part in np.split(groups, [7, 8])]
    )
    means = [values[:7].mean(), values[7], values[8:].mean()]
    np.testing.assert_allclose(sums.mean, means)


# --- methods -------------------------------------------------------------------------


def test_students_interval_of_equal_groups_is_that_of_their_means():
    rng = np.random.default_rng(1)
    means = rng.gamma(2, size=12)
    groups = np.repeat(np.arange(12), 5)
    found = interval("student", means[groups], groups)
    expected = student_interval(means, np.array([12]))
    np.testing.assert_allclose(found, np.ravel(expected))


@pytest.mark.parametrize("method", METHODS)
def test_copies_of_each_row_tell_no_more_than_the_rows(method):
    rng = np.random.default_rng(2)
    z2 = rng.chisquare(1, 60)
    copied = interval(method, np.repeat(z2, 4), np.repeat(np.arange(60), 4))
    single = interval(method, z2, np.arange(60))
    np.testing.assert_allclose(copied, single)


@pytest.mark.parametrize("method", METHODS)
def test_limits_do_not_depend_on_the_order_of_rows_or_the_names_of_groups(method):
    rng = np.random.default_rng(3)
    z2, groups = rng.chisquare(1, 200), rng.integers(0, 40, 200)
    order = rng.permutation(200)
    np.testing.assert_allclose(
        interval(method, z2[order], groups[order] * 3), interval(method, z2, groups)
    )


@pytest.mark.parametrize("method", METHODS)
def test_limits_surround_the_mean_and_scale_with_it(method):
    rng = np.random.default_rng(4)
    z2, groups = rng.chisquare(1, 300), rng.integers(0, 50, 300)
    low, high = interval(method, z2, groups)
    assert 0 < low < z2.mean() < high
    np.testing.assert_allclose(interval(method, 7 * z2, groups), (7 * low, 7 * high))


def test_the_bootstrap_agrees_with_the_closed_form_for_many_groups():
    rng = np.random.default_rng(5)
    z2, groups = rng.chisquare(1, 3000), rng.integers(0, 800, 3000)
    closed = interval("moments", z2, groups)
    for method in ("bca", "bootstrap-t"):
        np.testing.assert_allclose(interval(method, z2, groups), closed, rtol=0.03)


def test_few_groups_get_a_larger_quantile_and_many_the_normal_one():
    few, many = few_groups_quantile(np.array([5, 10**6]), 0.95)
    assert few == pytest.approx(stats.t.ppf(0.975, 4) * np.sqrt(5 / 4))
    assert many == pytest.approx(stats.norm.ppf(0.975), rel=1e-5)


# --- coverage ------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "least"), [("moments", 0.90), ("student", 0.87)])
@pytest.mark.parametrize("shape", [(250, 4, 0.5), (250, 4, 0.9), (500, 2, 0.9)])
def test_intervals_of_calibrated_repeats_contain_1_as_often_as_documented(
    method, least, shape
):
    rng = np.random.default_rng(6)
    valid = bins = 0
    for _ in range(40):
        error, u, groups = repeats(*shape, rng)
        by = rng.random(shape[0])[groups]
        found = ss.local_zms(error, u, by=by, groups=groups, n_bins=10, method=method)
        valid, bins = valid + int(found.valid.sum()), bins + found.valid.size
    assert stats.binomtest(valid, bins, least, alternative="less").pvalue > 1e-3
    assert stats.binomtest(valid, bins, 0.97, alternative="greater").pvalue > 1e-3


def test_without_groups_the_same_intervals_are_far_too_short():
    rng = np.random.default_rng(7)
    valid = []
    for _ in range(40):
        error, u, groups = repeats(250, 4, 0.9, rng)
        by = rng.random(250)[groups]
        valid.append(ss.local_zms(error, u, by=by, n_bins=10, method="moments").valid)
    assert np.mean(valid) < 0.75


def test_the_interval_of_all_rows_counts_groups():
    rng = np.random.default_rng(8)
    hits = {True: 0, False: 0}
    for _ in range(200):
        error, u, groups = repeats(250, 4, 0.9, rng)
        for counted in hits:
            _, low, high = ss.local_zms(
                error,
                u,
                groups=groups if counted else None,
                n_bins=2,
                method="moments",
            ).overall
            hits[counted] += low <= 1 <= high
    assert stats.binomtest(hits[True], 200, 0.95).pvalue > 1e-3
    assert hits[False] < 165


# --- bins ----------------------------------------------------------------------------


def test_bins_are_fewer_where_these_would_have_too_few_groups():
    rng = np.random.default_rng(9)
    error, u, groups = repeats(100, 10, 0.5, rng)
    by = rng.random(100)[groups]
    with pytest.warns(FewerBinsWarning, match="50 bins were asked for, but rows in"):
        found = ss.local_zms(
            error, u, by=by, groups=groups, n_bins=50, method="moments"
        )
    assert 10 <= found.zms.size <= 22
    assert found.n_groups.min() >= 5
    assert found.n.sum() == 1000


def test_a_bin_of_one_large_group_is_left_out_with_a_warning():
    rng = np.random.default_rng(10)
    by = np.concatenate([rng.random(900), np.full(100, 2.0) + rng.random(100)])
    groups = np.concatenate([np.arange(900), np.full(100, 900)])
    with pytest.warns(FewerBinsWarning, match="1 of 10 bins of `by` have rows of few"):
        found = ss.local_zms(
            rng.normal(size=1000), np.ones(1000), by=by, groups=groups, n_bins=10
        )
    assert found.zms.size == 9
    assert found.x_max.max() < 2


def test_labels_with_rows_of_few_groups_are_left_out():
    rng = np.random.default_rng(11)
    error, u, groups = repeats(60, 5, 0.5, rng)
    by = np.where(groups < 3, "rare", "common")
    with pytest.warns(FewerBinsWarning, match="1 of 2 bins of `by`"):
        found = ss.local_zms(error, u, by=by, groups=groups)
    assert found.x.tolist() == ["common"]


def test_labels_that_are_the_groups_themselves_have_no_interval():
    error, u, groups = repeats(20, 30, 0.5, np.random.default_rng(12))
    with pytest.raises(InvalidInputError, match="at least 5 labels in a bin of `by`"):
        ss.local_zms(error, u, by=groups.astype(str), groups=groups)


# --- input ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(10), "`groups` must have at least 2 labels"),
        (np.arange(9), "`error` and `groups` must have the same number of rows"),
        ([None, *"abcdefghi"], r"a label for every row; 1 of 10 have none \(first at"),
        ([np.nan, *range(9)], "a label for every row; 1 of 10"),
        (np.zeros((10, 2)), "`groups` must be one-dimensional"),
    ],
)
def test_groups_that_cannot_be_used_are_refused(groups, message):
    rng = np.random.default_rng(13)
    with pytest.raises(InvalidInputError, match=message):
        ss.local_zms(rng.normal(size=10), np.ones(10), groups=groups, n_bins=1)


def test_a_group_may_be_called_missing():
    groups = np.array(["missing", "a"] * 50, dtype=object)
    error = np.random.default_rng(14).normal(size=100)
    found = ss.local_zms(error, np.ones(100), groups=groups, n_bins=1)
    assert found.n_groups.tolist() == [2]


# --- coverage of limits --------------------------------------------------------------


def test_the_correlation_within_groups_is_found():
    rng = np.random.default_rng(15)
    z, _, groups = repeats(4000, 3, 0.6, rng)
    assert within_groups(z, groups) == pytest.approx(0.6, abs=0.03)
    assert within_groups(z, rng.permutation(groups)) == pytest.approx(0, abs=0.03)
    assert within_groups(z, np.arange(z.size)) == 0
    assert within_groups(np.zeros(6), np.repeat([0, 1], 3)) == 0


def test_the_design_effect_of_equal_groups_is_the_textbooks():
    sums = GroupSums.of_rows(np.ones(20), np.array([20]), np.repeat(np.arange(4), 5))
    assert design_effect(sums, 0.3).tolist() == [pytest.approx(1 + 0.3 * 4)]


def test_coverage_of_calibrated_repeats_is_judged_fairly():
    rng = np.random.default_rng(16)
    valid = {True: [], False: []}
    for _ in range(60):
        error, u, groups = repeats(250, 4, 0.9, rng)
        by = rng.random(250)[groups]
        for counted, found in valid.items():
            local = ss.local_coverage(
                error,
                u,
                ss.normal_interval(u, 0.9),
                by=by,
                groups=groups if counted else None,
                n_bins=5,
            )
            found.append(local.fraction_valid)
    hits = round(5 * sum(valid[True]))
    assert stats.binomtest(hits, 300, 0.95, alternative="less").pvalue > 1e-3
    assert np.mean(valid[False]) < 0.87


def test_groups_of_single_rows_leave_local_coverage_as_it_is():
    rng = np.random.default_rng(17)
    error, u = rng.normal(size=500), np.ones(500)
    limits = ss.normal_interval(u, 0.9)
    plain = ss.local_coverage(error, u, limits)
    grouped = ss.local_coverage(error, u, limits, groups=rng.permutation(500))
    for name in ("low", "high", "coverage", "n"):
        np.testing.assert_allclose(getattr(grouped, name), getattr(plain, name))
    assert grouped.overall == pytest.approx(plain.overall)
