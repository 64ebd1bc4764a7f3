import numpy as np
import pytest
from scipy import stats

from sigmascale import wilson_interval
from sigmascale.bins.partitions import BinnedRows
from sigmascale.bins.sums import BinSums
from sigmascale.exceptions import InvalidInputError
from sigmascale.judging import confidence_intervals
from sigmascale.judging.confidence_intervals import (
    METHODS,
    mean_interval,
    moments_interval,
)

RESAMPLED = ("bca", "bootstrap-t")


def limits(method, bins, *, confidence=0.95, n_resamples=1500, seed=0):
    """Return the limits of the means of a list of bins."""
    sizes = np.array([len(values) for values in bins])
    return mean_interval(
        method,
        np.concatenate(bins).astype(float),
        sizes,
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
def test_bca_takes_the_levels_of_its_formula_from_any_resamples(
    monkeypatch, count, shift
):
    values = np.array([0.2, 0.7, 1.5, 6.0])
    # all below the mean, around it, or all above it
    means = values.mean() + shift + np.random.default_rng(0).uniform(-1, 1, count)
    monkeypatch.setattr(
        confidence_intervals, "_resample", lambda *_: (means.copy()[None], None)
    )
    found = np.ravel(limits("bca", [values], n_resamples=count, confidence=0.9))
    below = np.clip(np.count_nonzero(means < values.mean()), 0.5, count - 0.5)
    bias, quantile = stats.norm.ppf([below / count, 0.95])
    centred = values - values.mean()
    a = np.sum(centred**3) / (6 * np.sum(centred**2) ** 1.5)
    w = bias + quantile * np.array([-1, 1])
    levels = stats.norm.cdf(bias + w / (1 - a * w))
    # ranks level × (count + 1)
    expected = np.quantile(means, levels, method="weibull")
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_the_default_is_95_percent_from_1500_resamples(method):
    values, sizes = squares(3, 20).ravel(), np.full(3, 20)
    expected = limits(method, values.reshape(3, 20))
    rng = np.random.default_rng(0)
    if method == "moments":
        powers = [np.add.reduceat(values**k, [0, 20, 40]) for k in (1, 2, 3)]
        found = moments_interval(sizes, *powers)
    elif method == "student":
        found = confidence_intervals.student_interval(values, sizes)
    elif method == "bca":
        found = confidence_intervals.bca_interval(values, sizes, rng)
    else:
        found = confidence_intervals.bootstrap_t_interval(values, sizes, rng)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


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
    monkeypatch.setattr(confidence_intervals, "_LARGEST_WEIGHTS", 139 * 7)
    in_blocks = limits(method, bins)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(in_blocks, first, rtol=1e-12)
    assert not np.any(np.array(first) == other)


def test_every_resample_of_every_block_has_as_many_values_as_the_bin():
    rng = np.random.default_rng(0)
    weights = confidence_intervals.bootstrap_weights(600, rng, 100)
    means, squares = confidence_intervals._resample(
        np.full((2, 600), 3.0), weights, 100, squares=True
    )
    np.testing.assert_allclose(means, np.full((2, 100), 3), rtol=1e-12)
    np.testing.assert_allclose(squares, np.full((2, 100), 9), rtol=1e-12)


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
    found = confidence_intervals.order_statistics(resamples, *levels)
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
    found = wilson_interval(successes, trials)
    assert found == pytest.approx((low, high), abs=5.1e-5)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("trials", [1, 2, 5, 100])
def test_wilson_agrees_with_scipy_for_every_count(trials, confidence):
    for k in range(trials + 1):
        expected = stats.binomtest(k, trials).proportion_ci(confidence, "wilsoncc")
        found = wilson_interval(k, trials, confidence=confidence)
        assert found == pytest.approx(tuple(expected), rel=0, abs=1e-12)


def test_wilson_agrees_with_golden(golden):
    checked = 0
    for row in golden["rows"].values():
        n = row.get("n_fv_bins", 100)
        for x in ("u", "X1", "X2"):
            found = wilson_interval(round(row[f"fv{x}"] * n), n)
            expected = (row[f"fv{x}_lo"], row[f"fv{x}_up"])
            assert found == pytest.approx(expected, rel=0, abs=1e-9)
            checked += 1
    assert checked == 63


def test_wilson_of_none_starts_at_0_and_of_all_ends_at_1():
    low, high = wilson_interval(0, 50)
    mirrored = tuple(1 - limit for limit in reversed(wilson_interval(50, 50)))
    assert (low, high) == pytest.approx(mirrored, abs=1e-15)
    assert low == 0
    assert 0.05 < high < 0.12


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((5, 4, 0.95), "`successes` must not exceed `trials`; found 5 of 4"),
        ((-1, 4, 0.95), "`successes` must be at least 0; found -1"),
        ((0, 0, 0.95), "`trials` must be at least 1; found 0"),
        ((0.5, 1, 0.95), "`successes` must be an integer; found 0.5"),
        ((1, 4, 1.0), "`confidence` must lie strictly between 0 and 1; found 1.0"),
        (
            (1, 4, "0.95"),
            "`confidence` must lie strictly between 0 and 1; found '0.95'",
        ),
    ],
)
def test_impossible_counts_and_confidences_are_refused(arguments, match):
    with pytest.raises(InvalidInputError, match=match):
        wilson_interval(*arguments[:2], confidence=arguments[2])
