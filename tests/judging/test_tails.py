"""Each statistic is compared with one written here from its formula."""

import json
import math
import statistics

import numpy as np
import pytest
from scipy import optimize, stats

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError
from sigmascale.judging.student import StudentLaw
from sigmascale.judging.tails import _skewness


def make_set(n=400, df=4, seed=0):
    rng = np.random.default_rng(seed)
    u = rng.lognormal(0, 0.4, n)
    return 1.1 * u * rng.standard_t(df, n) / math.sqrt(df / (df - 2)), u


E, U = make_set()


def normal_inverse_gamma(rng, n, df):
    u = np.sqrt(stats.invgamma.rvs(df / 2, scale=df / 2, size=n, random_state=rng))
    return u * rng.normal(size=n), u


# --- relative calibration error -----------------------------------------------------


def rce(e, u):
    """Compute RCE in plain Python."""
    rmv = math.sqrt(math.fsum(x * x for x in u) / len(u))
    rmse = math.sqrt(math.fsum(x * x for x in e) / len(e))
    return (rmv - rmse) / rmv


def test_rce_is_that_of_the_formula():
    assert ss.relative_calibration_error(E, U).value == pytest.approx(
        rce(E.tolist(), U.tolist()), abs=1e-12
    )


def test_rce_has_the_interval_of_scipys_bca_bootstrap():
    found = ss.relative_calibration_error(E, U, n_resamples=20_000)
    theirs = stats.bootstrap(
        (E, U),
        lambda e, u, axis: 1 - np.sqrt((e**2).mean(axis) / (u**2).mean(axis)),
        paired=True,
        n_resamples=20_000,
        batch=500,
        random_state=np.random.default_rng(1),  # `rng` from SciPy 1.15 on
    ).confidence_interval
    width = theirs.high - theirs.low
    # the limits of two bootstraps of 20,000 differ by a percent or two
    assert found.low == pytest.approx(theirs.low, abs=0.03 * width)
    assert found.high == pytest.approx(theirs.high, abs=0.03 * width)


@pytest.mark.parametrize("unit", [1e-60, 1e-9, 1e60])
def test_rce_has_no_unit(unit):
    expected, found = (
        ss.relative_calibration_error(c * E, c * U).to_dict() for c in (1.0, unit)
    )
    assert found == pytest.approx(expected, rel=1e-9)


def test_rce_of_many_rows_has_the_interval_of_whole_rows():
    # more rows than are resampled one by one
    error, u = make_set(30_000, df=20, seed=1)
    found = ss.relative_calibration_error(error, u, rng=1)
    e2, u2 = np.mean(error**2), np.mean(u**2)
    influence = 0.5 * np.sqrt(e2 / u2) * (u**2 / u2 - error**2 / e2)
    half = 1.96 * influence.std() / np.sqrt(u.size)
    assert found.high - found.low == pytest.approx(2 * half, rel=0.1)
    assert found.value == pytest.approx(rce(error.tolist(), u.tolist()), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("df", [6, 20])
def test_the_interval_of_rce_contains_0_as_often_as_it_says(df):
    rng = np.random.default_rng(0)
    hits, n_sets = 0, 300
    for _ in range(n_sets):
        found = ss.relative_calibration_error(
            *normal_inverse_gamma(rng, 1000, df), n_resamples=1000, rng=rng
        )
        hits += found.low <= 0 <= found.high
    assert stats.binomtest(hits, n_sets, 0.95).pvalue > 0.01


def test_the_interval_of_rce_is_too_narrow_where_skewness_says_so():
    rng = np.random.default_rng(0)
    hits, n_sets = 0, 150
    for _ in range(n_sets):
        error, u = normal_inverse_gamma(rng, 1000, 2.5)
        found = ss.relative_calibration_error(error, u, n_resamples=300, rng=rng)
        hits += found.low <= 0 <= found.high
        assert _skewness(u**2) > 0.6
    assert stats.binomtest(hits, n_sets, 0.95, alternative="less").pvalue < 0.001


def test_one_row_has_no_interval():
    with pytest.raises(InvalidInputError, match="at least 2 rows for an interval"):
        ss.relative_calibration_error([1.0], [1.0])


# --- skewness -----------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 400])
def test_skewness_is_that_of_the_formula(n):
    x = ((E / U) ** 2)[:n].tolist()
    median = statistics.median(x)
    spread = math.fsum(abs(each - median) for each in x)
    expected = math.fsum(each - median for each in x) / spread if spread else 0.0
    assert _skewness(np.array(x)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("law", "squares"), [(stats.norm, stats.chi2(1)), (stats.t(5), stats.f(1, 5))]
)
def test_skewness_of_squares_is_that_of_their_law(law, squares):
    median = squares.median()
    # E|x - m| = E x - m + 2 (m F(m) - the part of the mean below m)
    below = squares.expect(lambda x: x, lb=0, ub=median)
    spread = squares.mean() - median + 2 * (0.5 * median - below)
    expected = (squares.mean() - median) / spread
    drawn = law.rvs(size=400_000, random_state=np.random.default_rng(0))
    assert _skewness(drawn**2) == pytest.approx(expected, abs=0.005)


def test_a_constant_has_no_skewness():
    assert _skewness(np.full(3, 2.0)) == 0


# --- Student's t --------------------------------------------------------------------


@pytest.mark.parametrize("df", [2.2, 4, 9])
def test_the_shape_has_the_highest_likelihood_of_squares_from_f(df):
    error, u = make_set(2000, df=df, seed=3)
    z2 = (error / u) ** 2

    def loss(parameters):
        df, scale2 = np.exp(parameters)
        return -stats.f.logpdf(z2, 1, df, scale=scale2).sum()

    theirs = optimize.minimize(
        loss,
        [1.0, 0.0],
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000},
    )
    found = StudentLaw.learn(error / u)
    ours = loss(np.log([found.df, found.scale**2]))
    assert ours <= theirs.fun + 1e-9
    # the likelihood is flat: its optimum is known to half of its digits
    assert [found.df, found.scale**2] == pytest.approx(np.exp(theirs.x), rel=1e-5)


def test_the_shape_solves_the_equations_of_the_likelihood():
    found = StudentLaw.learn(E / U)
    z, step = E / U, 1e-5

    def likelihood(df, scale):
        return stats.t.logpdf(z, df, scale=scale).mean()

    for direction in ((step, 0), (0, step)):
        up, down = (
            likelihood(found.df + s * direction[0], found.scale + s * direction[1])
            for s in (1, -1)
        )
        assert (up - down) / (2 * step) == pytest.approx(0, abs=1e-9)


def test_tails_that_are_lighter_than_normal_have_infinitely_many_degrees_of_freedom():
    error = np.random.default_rng(0).uniform(-1, 1, 500)
    found = StudentLaw.learn(error)
    assert found.df == math.inf
    assert found.scale == pytest.approx(np.sqrt(np.mean(error**2)))


def test_many_errors_of_exactly_0_leave_a_shape():
    error = np.where(np.arange(400) % 3 == 0, E, 0)
    found = StudentLaw.learn(error / U)
    assert found.df > 0
    assert 0 < found.scale < 1


def test_errors_of_only_0_have_no_shape():
    with pytest.raises(InvalidInputError, match="must not be 0 in every row"):
        ss.tails(np.zeros(9), np.ones(9))


# --- coverage -----------------------------------------------------------------------


def test_coverage_and_its_intervals_are_those_of_scipy():
    inside = sum(abs(e) <= 1.96 * u for e, u in zip(E, U, strict=True))
    test = stats.binomtest(inside, E.size)
    found = ss.coverage_at_95(E, U)
    corrected, plain = (
        test.proportion_ci(0.95, method=method) for method in ("wilsoncc", "wilson")
    )
    assert found.picp == inside / E.size
    assert (found.low, found.high) == pytest.approx(tuple(corrected), abs=1e-12)
    assert (found.plain_low, found.plain_high) == pytest.approx(tuple(plain), abs=1e-12)


@pytest.mark.parametrize(
    ("inside", "valid"), [(9404, False), (9405, True), (9591, True), (9592, False)]
)
def test_coverage_is_valid_where_its_interval_overlaps_the_region(inside, valid):
    # of 10,000 rows, these are the last and the first whose interval touches it
    error = np.where(np.arange(10_000) < inside, 0.0, 3.0)
    found = ss.coverage_at_95(error, np.ones(10_000))
    assert found.valid == valid == (found.low <= 0.955 and found.high >= 0.945)


@pytest.mark.parametrize("df", [3.2, 4, 8, 30])
def test_1_96_u_holds_95_percent_of_heavy_tailed_errors_too(df):
    reach = 1.96 * math.sqrt(df / (df - 2))
    assert 0.945 < 1 - 2 * stats.t.sf(reach, df) < 0.955


# --- all at once --------------------------------------------------------------------


@pytest.fixture(scope="module")
def found():
    return ss.tails(E, U, n_draws=300)


def test_all_statistics_are_those_of_their_functions(found):
    z = E / U
    assert found.coverage == ss.coverage_at_95(E, U)
    assert found.shape == StudentLaw.learn(E / U)
    assert found.skewness_z2 == _skewness(z**2)
    assert found.skewness_u2 == pytest.approx(_skewness(U**2), abs=1e-12)
    assert found.skewness_e2 == pytest.approx(_skewness(E**2), abs=1e-12)
    assert found.beyond == np.mean(abs(z) > 3)
    assert found.zms.value == pytest.approx(ss.zms(E, U), abs=1e-12)
    assert found.rce.value == ss.relative_calibration_error(E, U).value
    curve = ss.confidence_curve(E, U, n_draws=2)
    assert found.area_to_oracle == pytest.approx(curve.area_to_oracle, abs=1e-12)
    expected = np.mean(curve.error - curve.oracle) / curve.error[0]
    assert curve.area_to_oracle == pytest.approx(expected, abs=1e-12)


def test_the_mean_of_z_has_students_interval(found):
    interval = stats.ttest_1samp(E / U, 0).confidence_interval()
    assert found.mean_z.low == pytest.approx(interval.low, abs=1e-12)
    assert found.mean_z.high == pytest.approx(interval.high, abs=1e-12)


@pytest.mark.parametrize("tied", [False, True])
def test_the_rank_correlation_is_spearmans(tied):
    error, u = (np.round(E, 1), np.round(U, 1)) if tied else (E, U)
    expected = stats.spearmanr(np.abs(error), u).statistic
    found = ss.tails(error, u, n_draws=2, n_resamples=20)
    assert found.rank_correlation == pytest.approx(expected, abs=1e-12)


def test_references_are_those_of_simulated_sets(found):
    rng = np.random.default_rng(5)
    draws = [
        stats.spearmanr(np.abs(U * rng.normal(size=400)), U)[0] for _ in range(300)
    ]
    reference = found.rank_correlation_reference
    assert reference.value == pytest.approx(np.mean(draws), abs=0.015)
    low, high = np.quantile(draws, [0.025, 0.975])
    assert reference.low == pytest.approx(low, abs=0.03)
    assert reference.high == pytest.approx(high, abs=0.03)


@pytest.mark.slow
def test_honest_normal_errors_are_mostly_valid():
    valid = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        u = rng.uniform(0.5, 2, 500)
        found = ss.tails(u * rng.normal(size=500), u, n_draws=100, n_resamples=300)
        valid.append([abs(zeta) <= 1 for zeta in found.zeta.values()])
        assert found.zms_is_reliable
        assert found.coverage_is_reliable
    for count in np.sum(valid, axis=0):
        assert stats.binomtest(int(count), 60, 0.95).pvalue > 0.001


def test_zeta_scores_are_signed_by_what_is_too_large():
    rng = np.random.default_rng(0)
    u = rng.uniform(1, 2, 1000)
    zeta = ss.tails(u * (rng.normal(scale=2, size=1000) + 1), u, n_draws=20).zeta
    assert zeta["mean_z"] > 1
    assert zeta["zms"] > 1
    assert zeta["rce"] < -1
    assert zeta["coverage"] < -1
    useless = ss.tails(rng.normal(size=1000), u, n_draws=50).zeta
    assert useless["rank_correlation"] < -1
    assert useless["area_to_oracle"] > 1


def test_words_say_what_cannot_be_believed():
    rng = np.random.default_rng(0)
    wild = ss.tails(rng.standard_t(2, 2000), np.ones(2000), n_draws=2, n_resamples=20)
    said = " ".join(wild.sentences)
    assert "beyond 3 u; 0.27 % of normal" in said
    assert "decide on the mean of z²" in said
    assert "RCE says little" in said
    assert "even that share says little" in said
    tame = ss.tails(rng.normal(size=2000), np.ones(2000), n_draws=2, n_resamples=20)
    assert "little" not in " ".join(tame.sentences)
    assert "that cannot be told from 95 %" in " ".join(tame.sentences)


def test_results_print_and_become_plain_values(found):
    parts = (found, found.coverage, found.rce)
    for each in parts:
        assert json.loads(json.dumps(each.to_dict())) is not None
        assert each._repr_html_().startswith("<table>")
    lines = str(found).splitlines()
    assert max(map(len, lines[:13])) <= 80
    assert lines[-len(found.sentences) :] == list(found.sentences)
    assert found.to_dict()["rce"]["value"] == found.rce.value


def test_the_same_seed_gives_the_same_numbers(found):
    again = ss.tails(E, U, n_draws=300)
    assert again == found
    assert ss.tails(E, U, n_draws=300, rng=1).rce != found.rce


def test_too_few_rows_are_refused():
    with pytest.raises(InvalidInputError, match="at least 5 rows for tails; found 4"):
        ss.tails(E[:4], U[:4])
