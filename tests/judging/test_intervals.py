"""Intervals of the means of bins, of rows or groups of them, and of fractions."""

import math
import tracemalloc

import numpy as np
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.bins.partitions import BinnedRows
from sigmascale.bins.sums import BinSums
from sigmascale.exceptions import FewerBinsWarning, InvalidInputError
from sigmascale.judging import intervals
from sigmascale.judging.intervals import (
    METHODS,
    Estimate,
    GroupSums,
    clopper_pearson_limits,
    few_groups_quantile,
    mean_interval,
    moments_interval,
    wilson_limits,
    within_groups,
)

RESAMPLED = ("bca", "bootstrap-t")


def limits(method, bins, *, confidence=0.95, n_resamples=1500, seed=0):
    """Return the limits of the means of a list of bins."""
    sizes = np.array([len(values) for values in bins])
    return mean_interval(
        method,
        GroupSums.of_rows(np.concatenate(bins).astype(float), sizes),
        confidence=confidence,
        n_resamples=n_resamples,
        rng=np.random.default_rng(seed),
    )


def squares(n_bins, size, *, df=None, seed=0):
    """Return squared z-scores of unit variance, one bin a row."""
    rng = np.random.default_rng(seed)
    if df is None:
        return rng.standard_normal((n_bins, size)) ** 2
    return rng.standard_t(df, (n_bins, size)) ** 2 * (df - 2) / df


# --- coverage -----------------------------------------------------------------------

# Share of nominal 95 % intervals that hold the true mean of z², in bins of 139 rows
# (100 bins of the 13885 rows of QM9), as measured with 200,000 bins each: the standard
# error is below 0.001. SciPy's own BCa covers 0.940 for normal z, and an independent
# implementation of the closed form 0.941.
COVERAGE = {
    ("bca", None): 0.942,
    ("bca", 6): 0.914,
    ("bca", 4): 0.881,
    ("bootstrap-t", None): 0.949,
    ("bootstrap-t", 6): 0.932,
    ("bootstrap-t", 4): 0.905,
    ("student", None): 0.938,
    ("student", 6): 0.903,
    ("student", 4): 0.843,
    ("moments", None): 0.941,
    ("moments", 6): 0.914,
    ("moments", 4): 0.879,
}


@pytest.mark.parametrize(("method", "df"), COVERAGE)
def test_intervals_cover_the_true_mean_as_often_as_measured(method, df):
    # Bins of one call share their bootstrap weights; many calls keep them independent.
    covered = []
    for seed in range(60):
        bins = squares(100, 139, df=df, seed=1000 + seed)
        low, high = limits(method, list(bins), seed=seed)
        covered.append((low <= 1) & (high >= 1))
    covered = np.concatenate(covered)
    count = int(np.count_nonzero(covered))
    verdict = stats.binomtest(count, covered.size, COVERAGE[method, df])
    assert verdict.pvalue > 1e-3, count / covered.size


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.99])
@pytest.mark.parametrize("method", METHODS)
def test_coverage_is_near_any_confidence_for_large_bins_of_normal_z(method, confidence):
    bins = squares(1000, 400, seed=5)
    parts = [
        limits(method, list(bins[i::10]), confidence=confidence, seed=i)
        for i in range(10)
    ]
    count = sum(int(np.sum((low <= 1) & (high >= 1))) for low, high in parts)
    assert stats.binomtest(count, 1000, confidence).pvalue > 1e-3


# --- each method against another implementation --------------------------------------


def assert_means_agree(ours, theirs):
    """Compare two sets of noisy limits, each of shape (n_seeds, 2)."""
    error = np.hypot(ours.std(axis=0, ddof=1), theirs.std(axis=0, ddof=1))
    difference = np.abs(ours.mean(axis=0) - theirs.mean(axis=0))
    assert np.all(difference < 4 * error / np.sqrt(len(ours)))
    # and the noise is small enough for the comparison to mean something
    assert np.all(error < 0.05 * np.diff(theirs.mean(axis=0)))


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_bca_agrees_with_scipy_up_to_the_noise_of_the_bootstrap(confidence):
    values = squares(1, 60, df=5, seed=2)[0]
    ours = [
        np.ravel(
            limits("bca", [values], confidence=confidence, n_resamples=4000, seed=s)
        )
        for s in range(10)
    ]
    theirs = [
        stats.bootstrap(
            (values,),
            np.mean,
            confidence_level=confidence,
            n_resamples=4000,
            method="BCa",
            vectorized=True,
            random_state=np.random.default_rng(100 + s),
        ).confidence_interval
        for s in range(10)
    ]
    assert_means_agree(np.array(ours), np.array(theirs))


def test_bootstrap_t_agrees_with_its_textbook_form_up_to_the_noise_of_the_bootstrap():
    values = squares(1, 60, df=5, seed=2)[0]
    ours = [
        np.ravel(limits("bootstrap-t", [values], n_resamples=4000, seed=s))
        for s in range(10)
    ]
    theirs = []
    for s in range(10):
        rng = np.random.default_rng(100 + s)
        drawn = rng.choice(values, (4000, 60))
        t = (drawn.mean(axis=1) - values.mean()) / stats.sem(drawn, axis=1)
        upper, lower = np.quantile(t, [0.975, 0.025])
        theirs.append(values.mean() - np.array([upper, lower]) * stats.sem(values))
    assert_means_agree(np.array(ours), np.array(theirs))


def test_student_agrees_with_the_t_test_of_scipy():
    bins = [squares(1, size, seed=size)[0] for size in (30, 139, 2, 30)]
    low, high = limits("student", bins, confidence=0.9)
    for i, values in enumerate(bins):
        expected = stats.ttest_1samp(values, 1).confidence_interval(0.9)
        assert low[i] == pytest.approx(max(0, expected.low), rel=1e-12)
        assert high[i] == pytest.approx(expected.high, rel=1e-12)


def test_moments_follow_the_published_formula():
    bins = [squares(1, size, df=5, seed=size)[0] for size in (10, 139, 77)]
    low, high = limits("moments", bins, confidence=0.9)
    for i, x in enumerate(bins):
        n, m = x.size, x.mean()
        s2, s3 = np.sum((x - m) ** 2), np.sum((x - m) ** 3)
        a = s3 / (6 * s2**1.5)
        expected = []
        for z in (stats.norm.ppf(0.05), stats.norm.ppf(0.95)):
            w = a + z
            expected.append(m + w / (1 - a * w) ** 2 * np.sqrt(s2) / n)
        assert (low[i], high[i]) == pytest.approx(tuple(expected), rel=1e-11)


def test_moments_are_what_bca_tends_to():
    bins = list(squares(40, 139, df=6, seed=3))
    moments = np.array(limits("moments", bins))
    bca = np.array(limits("bca", bins, n_resamples=40_000))
    width = moments[1] - moments[0]
    assert np.all(np.abs(bca - moments) < [[0.03], [0.15]] * width)
    assert np.all(np.abs(np.mean((bca - moments) / width, axis=1)) < 0.01)


def test_moments_need_only_bin_sums():
    rng = np.random.default_rng(0)
    error, u = rng.normal(size=500), rng.uniform(1, 2, 500)
    binned = BinnedRows.from_codes(rng.integers(4, size=500), 4)
    sums = BinSums.from_rows(binned, error, u)
    found = moments_interval(sums.n, sums.z2, sums.z4, sums.z6)
    direct = limits(
        "moments", [((error / u) ** 2)[binned.codes == k] for k in range(4)]
    )
    np.testing.assert_allclose(found, direct, rtol=1e-12)


@pytest.mark.parametrize("shift", [-9.0, 0.0, 9.0])
@pytest.mark.parametrize("count", [4, 200])
def test_bca_takes_the_levels_of_its_formula_from_any_resamples(count, shift):
    values = np.array([0.2, 0.7, 1.5, 6.0])
    # all below the mean, around it, or all above it
    means = values.mean() + shift + np.random.default_rng(0).uniform(-1, 1, count)
    bias_at, quantile = (
        np.clip(np.count_nonzero(means < values.mean()), 0.5, count - 0.5) / count,
        stats.norm.ppf(0.95),
    )
    centred = values - values.mean()
    found = intervals.bca_limits(
        means.copy()[None], values.mean(keepdims=True), centred[None], quantile
    )
    bias = stats.norm.ppf(bias_at)
    a = np.sum(centred**3) / (6 * np.sum(centred**2) ** 1.5)
    w = bias + quantile * np.array([-1, 1])
    levels = stats.norm.cdf(bias + w / (1 - a * w))
    # ranks level × (count + 1)
    expected = np.quantile(means, levels, method="weibull")
    np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-12)


# --- what all methods share ----------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_higher_confidence_gives_a_wider_interval(method):
    bins = list(squares(20, 50, df=5))
    found = [limits(method, bins, confidence=c) for c in (0.5, 0.9, 0.99)]
    means = np.mean(bins, axis=1)
    lows, highs = np.array(found).transpose(1, 0, 2)
    assert np.all(np.diff(lows, axis=0) <= 0)
    assert np.all(np.diff(highs, axis=0) > 0)
    assert np.all(lows[0] < means)
    assert np.all(means < highs[0])


def test_the_moments_interval_grows_with_confidence_however_skewed_the_bin():
    one_large = np.zeros(400)
    one_large[0] = 25
    highs = [
        limits("moments", [one_large], confidence=1 - 10.0**-k)[1][0]
        for k in range(1, 14)
    ]
    assert np.all(np.diff(highs) > 0)
    assert np.all(np.isfinite(highs))


@pytest.mark.parametrize("method", METHODS)
def test_limits_carry_the_unit_of_the_values(method):
    bins = list(squares(5, 20, df=5))
    found = np.array(limits(method, [1e-6 * values for values in bins]))
    np.testing.assert_allclose(found, 1e-6 * np.array(limits(method, bins)), rtol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_bins_of_different_sizes_are_answered_in_their_own_order(method):
    sizes = (12, 40, 12, 5, 40)
    bins = [k + squares(1, size, seed=k)[0] for k, size in enumerate(sizes, start=1)]
    low, high = limits(method, bins)
    for k, values in enumerate(bins):
        assert low[k] < values.mean() < high[k]
        assert low[k] > values.min() - 1


@pytest.mark.parametrize("method", RESAMPLED)
def test_limits_depend_on_the_seed_alone_and_not_on_the_size_of_blocks(
    method, monkeypatch
):
    bins = list(squares(4, 139))
    first, again, other = (limits(method, bins, seed=s) for s in (0, 0, 1))
    monkeypatch.setattr(intervals, "_LARGEST_WEIGHTS", 139 * 7)
    in_blocks = limits(method, bins)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(in_blocks, first, rtol=1e-12)
    assert not np.any(np.array(first) == other)


def test_every_resample_of_every_block_has_as_many_values_as_the_bin():
    rng = np.random.default_rng(0)
    blocks = list(intervals.bootstrap_weights(600, rng, 100))
    assert [part.start for part, _ in blocks] == [0, 32, 64, 96]
    for part, weights in blocks:
        assert weights.shape == (600, part.stop - part.start)
        np.testing.assert_array_equal(weights.sum(axis=0), 600)


@pytest.mark.parametrize("method", RESAMPLED)
def test_a_bin_gets_the_same_limits_with_or_without_others_of_its_size(method):
    bins = list(squares(6, 50))
    together, alone = limits(method, bins), limits(method, bins[2:3])
    np.testing.assert_allclose(np.array(together)[:, 2], np.ravel(alone), rtol=1e-12)


@pytest.mark.parametrize(
    ("low", "high"),
    [((0.02, 0.06), (0.94, 0.99)), ((0.4, 0.5), (0.5, 0.6)), ((0.0, 0.0), (1.0, 1.0))],
)
def test_tails_alone_are_sorted_as_if_all_resamples_were(low, high):
    rng = np.random.default_rng(0)
    resamples = rng.normal(size=(50, 200))
    levels = [rng.uniform(*span, 50) for span in (low, high)]
    ordered = np.sort(resamples, axis=1)
    expected = [
        [
            np.interp(p * 201, np.arange(1, 201), row)
            for p, row in zip(level, ordered, strict=True)
        ]
        for level in levels
    ]
    found = intervals.order_statistics(resamples, *levels)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


# --- poor bins -----------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_bin_has_an_interval_without_width(method):
    found = limits(method, [np.full(139, 0.7), np.full(7, 1.3), np.full(1, 0.4)])
    # sums of powers know a spread of 0 only up to the root of the rounding error
    np.testing.assert_allclose(found, [[0.7, 1.3, 0.4]] * 2, rtol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_a_bin_of_zeros_has_the_interval_from_0_to_0(method):
    found = limits(method, [np.zeros(50), np.zeros(2), squares(1, 50)[0]])
    np.testing.assert_array_equal(np.array(found)[:, :2], 0)
    assert np.all(np.array(found)[:, 2] > 0)


@pytest.mark.parametrize("method", METHODS)
def test_two_rows_give_finite_limits_around_their_mean(method):
    low, high = limits(method, [np.array([0.5, 2.0]), np.array([0.0, 1.0])])
    assert np.all(low >= 0)
    assert np.all(low < [1.25, 0.5])
    assert np.all(high > [1.25, 0.5])
    assert np.all(np.isfinite(high))


def test_bca_limits_lie_within_the_values():
    low, high = limits("bca", [np.array([0.5, 2.0]), np.array([0.1, 0.2, 50.0])])
    assert np.all(low >= [0.5, 0.1])
    assert np.all(high <= [2.0, 50.0])


@pytest.mark.parametrize("method", METHODS)
def test_no_limit_of_a_mean_square_is_negative(method):
    one_large = np.zeros(20)
    one_large[0] = 1.0
    assert limits(method, [one_large])[0][0] >= 0


@pytest.mark.parametrize("method", METHODS)
def test_values_whose_cubes_underflow_are_no_trouble(method):
    low, high = limits(method, [np.geomspace(1e-122, 1e-118, 30), np.ones(3)])
    assert 0 <= low[0] < np.geomspace(1e-122, 1e-118, 30).mean() < high[0] < 1e-117


# --- Wilson --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # Newcombe (1998), Table I, method 4
        (81, 263, 0.2535, 0.3682),
        (15, 148, 0.0598, 0.1644),
        (0, 20, 0.0000, 0.2005),
        (1, 29, 0.0018, 0.1963),
    ],
)
def test_wilson_gives_the_published_examples(successes, trials, low, high):
    found = wilson_limits(successes, trials)
    assert found == pytest.approx((low, high), abs=5.1e-5)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("trials", [1, 2, 5, 100])
def test_wilson_agrees_with_scipy_for_every_count(trials, confidence):
    for k in range(trials + 1):
        expected = stats.binomtest(k, trials).proportion_ci(confidence, "wilsoncc")
        found = wilson_limits(k, trials, confidence)
        assert found == pytest.approx(tuple(expected), rel=0, abs=1e-12)


def test_wilson_agrees_with_golden(golden):
    checked = 0
    for row in golden["rows"].values():
        n = row.get("n_fv_bins", 100)
        for x in ("u", "X1", "X2"):
            found = wilson_limits(round(row[f"fv{x}"] * n), n)
            expected = (row[f"fv{x}_lo"], row[f"fv{x}_up"])
            assert found == pytest.approx(expected, rel=0, abs=1e-9)
            checked += 1
    assert checked == 63


def test_wilson_of_none_starts_at_0_and_of_all_ends_at_1():
    low, high = wilson_limits(0, 50)
    mirrored = tuple(1 - limit for limit in reversed(wilson_limits(50, 50)))
    assert (low, high) == pytest.approx(mirrored, abs=1e-15)
    assert low == 0
    assert 0.05 < high < 0.12


# --- exact ---------------------------------------------------------------------------


def test_exact_intervals_of_fractions_are_those_of_scipy():
    count, n = np.array([0.0, 3.0, 50.0, 50.0]), np.array([20, 20, 60, 50])
    low, high = clopper_pearson_limits(count, n, 0.9)
    for i in range(4):
        exact = stats.binomtest(int(count[i]), int(n[i])).proportion_ci(0.9, "exact")
        assert low[i] == pytest.approx(exact.low, abs=1e-12)
        assert high[i] == pytest.approx(exact.high, abs=1e-12)


# --- a row is a group of one ---------------------------------------------------------


@pytest.mark.parametrize("method", ["student", "bootstrap-t"])
def test_groups_of_one_row_have_the_limits_of_rows(method):
    values, sizes = squares(1, 61, df=5)[0], np.array([30, 31])
    rows = GroupSums.of_rows(values, sizes)
    groups = GroupSums.of_rows(values, sizes, np.arange(61))
    assert rows.counts is None
    np.testing.assert_array_equal(groups.counts, 1)
    found = [
        mean_interval(method, each, rng=np.random.default_rng(0))
        for each in (rows, groups)
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-10)
    np.testing.assert_allclose(rows.n_effective, groups.n_effective)


# --- zeta-score ----------------------------------------------------------------------


@pytest.mark.parametrize("reference", [-3.0, 0.5, 1.0, 1.7, 9.0])
def test_zeta_is_the_distance_in_halves_of_the_interval(reference):
    half = 0.2 if reference <= 1 else 0.5
    found = Estimate(1.0, 0.8, 1.5, 0.95).zeta(reference)
    assert found == pytest.approx((1 - reference) / half, abs=1e-12)
    assert (abs(found) <= 1) == (0.8 <= reference <= 1.5)


def test_zeta_of_an_interval_without_width_is_0_or_infinite():
    assert Estimate(1.0, 1.0, 1.0, 0.95).zeta(1) == 0
    assert Estimate(1.0, 1.0, 1.0, 0.95).zeta(2) == -math.inf


# --- memory --------------------------------------------------------------------------


@pytest.mark.parametrize("method", RESAMPLED)
def test_bins_are_resampled_some_at_a_time_with_the_same_weights(method, monkeypatch):
    rng = np.random.default_rng(0)
    sizes = np.repeat([6, 7, 40], [50, 30, 5])
    sums = GroupSums.of_rows(rng.chisquare(1, sizes.sum()), sizes)

    def found():
        rng = np.random.default_rng(1)
        return mean_interval(method, sums, n_resamples=200, rng=rng)

    at_once = found()
    monkeypatch.setattr(intervals, "_MEANS_AT_ONCE", 10 * 200)
    np.testing.assert_allclose(found(), at_once, rtol=1e-12)


def test_labels_of_few_rows_take_no_memory_for_each_resample():
    n, n_resamples = 30_000, 1500
    values = np.random.default_rng(0).chisquare(1, n)
    sums = GroupSums.of_rows(values, np.full(n // 6, 6))
    tracemalloc.start()
    mean_interval("bca", sums, n_resamples=n_resamples, rng=np.random.default_rng(1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.8 * 8 * n_resamples * n // 6


@pytest.mark.slow
def test_validating_labels_of_six_rows_takes_at_most_eight_times_the_input():
    n = 6 * 166_667
    rng = np.random.default_rng(0)
    u = rng.uniform(1, 2, n)
    error = rng.normal(size=n) * u
    labels = np.array([f"L{i // 6}" for i in range(n)])
    tracemalloc.start()
    ss.validate(error, u, {"label": labels})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * (u.nbytes + error.nbytes + labels.nbytes)


# --- groups --------------------------------------------------------------------------


def repeats(n_groups, size, rho, rng):
    """Return calibrated errors and uncertainties of 1, in groups."""
    groups = np.repeat(np.arange(n_groups), size)
    z = np.sqrt(rho) * rng.normal(size=n_groups)[groups]
    z += np.sqrt(1 - rho) * rng.normal(size=groups.size)
    return z, np.ones(groups.size), groups


def grouped(method, values, groups, seed=0):
    sums = GroupSums.of_rows(values, np.array([values.size]), groups)
    low, high = mean_interval(method, sums, rng=np.random.default_rng(seed))
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
    found = grouped("student", means[groups], groups)
    expected = limits("student", [means])
    np.testing.assert_allclose(found, np.ravel(expected))


@pytest.mark.parametrize("method", METHODS)
def test_copies_of_each_row_tell_no_more_than_the_rows(method):
    rng = np.random.default_rng(2)
    z2 = rng.chisquare(1, 60)
    copied = grouped(method, np.repeat(z2, 4), np.repeat(np.arange(60), 4))
    single = grouped(method, z2, np.arange(60))
    np.testing.assert_allclose(copied, single)


@pytest.mark.parametrize("method", METHODS)
def test_limits_do_not_depend_on_the_order_of_rows_or_the_names_of_groups(method):
    rng = np.random.default_rng(3)
    z2, groups = rng.chisquare(1, 200), rng.integers(0, 40, 200)
    order = rng.permutation(200)
    np.testing.assert_allclose(
        grouped(method, z2[order], groups[order] * 3), grouped(method, z2, groups)
    )


@pytest.mark.parametrize("method", METHODS)
def test_limits_surround_the_mean_and_scale_with_it(method):
    rng = np.random.default_rng(4)
    z2, groups = rng.chisquare(1, 300), rng.integers(0, 50, 300)
    low, high = grouped(method, z2, groups)
    assert 0 < low < z2.mean() < high
    np.testing.assert_allclose(grouped(method, 7 * z2, groups), (7 * low, 7 * high))


def test_the_bootstrap_agrees_with_the_closed_form_for_many_groups():
    rng = np.random.default_rng(5)
    z2, groups = rng.chisquare(1, 3000), rng.integers(0, 800, 3000)
    closed = grouped("moments", z2, groups)
    for method in ("bca", "bootstrap-t"):
        np.testing.assert_allclose(grouped(method, z2, groups), closed, rtol=0.03)


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


@pytest.mark.parametrize("method", ["bca", "moments"])
def test_bins_above_one_that_is_left_out_keep_their_own_values(method):
    rng = np.random.default_rng(10)
    by = np.concatenate([rng.random(100), 1 + rng.random(900)])
    groups = np.concatenate([np.zeros(100), 1 + np.arange(900)])
    with pytest.warns(FewerBinsWarning, match="1 of 10 bins of `by`"):
        found = ss.local_zms(
            rng.normal(size=1000),
            np.ones(1000),
            by=by,
            groups=groups,
            n_bins=10,
            method=method,
        )
    assert found.x_min.min() > 1
    assert found.x_max.max() == by.max()
    assert (found.x_min <= found.x).all()
    assert (found.x <= found.x_max).all()


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
