import json

import numpy as np
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale import reference_scores, scorecard
from sigmascale.exceptions import InvalidInputError, ZeroErrorBinWarning
from sigmascale.judging import references
from sigmascale.judging.intervals import within_groups
from sigmascale.judging.references import (
    ENOUGH_GROUPS,
    InverseGamma,
    _pools,
    correlated_squares,
    shuffled_rows,
)

RNG = np.random.default_rng(42)
U = RNG.lognormal(size=400)
FEATURES = {"mass": RNG.normal(size=400), "phase": RNG.choice(["gas", "solid"], 400)}


def student_t(df, size, seed):
    return np.random.default_rng(seed).standard_t(df, size) * np.sqrt((df - 2) / df)


# --- what is simulated ---------------------------------------------------------------


def test_every_draw_is_scored_as_the_scorecard_would_score_it():
    found = reference_scores(U, FEATURES, n_draws=5, n_bins=20, rng=3)
    z = np.random.default_rng(3).standard_normal((5, 400))
    for k in range(5):
        expected = scorecard(z[k] * U, U, FEATURES, n_bins=20).to_dict()
        assert {name: v[k] for name, v in found.draws.items()} == pytest.approx(
            expected
        )


def test_without_features_names_are_those_of_a_scorecard_without_features():
    found = reference_scores(U, n_draws=2, n_bins=20)
    assert list(found.draws) == list(scorecard(U, U, n_bins=20).to_dict())
    assert "S_ada" not in found.mean


def test_rows_with_equal_values_are_ordered_by_ties():
    u = np.repeat([1.0, 2.0], 100)
    ties = np.random.default_rng(1).permutation(200.0 + np.arange(200))
    found = reference_scores(u, n_draws=3, n_bins=20, ties=ties).draws
    z = np.random.default_rng(0).standard_normal((3, 200))
    for k in range(3):
        card = scorecard(z[k] * u, u, n_bins=20, ties=ties)
        assert found["S_u"][k] == pytest.approx(card.s["u"])
    assert not np.any(
        found["S_u"] == reference_scores(u, n_draws=3, n_bins=20).draws["S_u"]
    )


@pytest.mark.parametrize("distribution", ["normal", "student_t", "empirical"])
def test_numbers_depend_on_the_seed_alone(distribution, monkeypatch):
    error = U * student_t(5, 400, seed=0)

    def draws(**arguments):
        found = reference_scores(
            U, FEATURES, distribution=distribution, error=error, n_bins=10, **arguments
        )
        return np.array(list(found.draws.values()))

    first = draws(n_draws=70, rng=1)
    np.testing.assert_array_equal(draws(n_draws=70, rng=1), first)
    np.testing.assert_array_equal(
        draws(n_draws=70, rng=np.random.default_rng(1)), first
    )
    assert not np.any(draws(n_draws=70, rng=2) == first)
    # fewer draws are the first ones of many
    np.testing.assert_allclose(draws(n_draws=5, rng=1), first[:, :5], rtol=1e-12)
    monkeypatch.setattr(references, "_BLOCK", 1000)
    np.testing.assert_allclose(draws(n_draws=70, rng=1), first, rtol=1e-12)


@pytest.mark.parametrize("distribution", ["normal", "student_t", "empirical"])
def test_simulated_sets_are_calibrated_on_average(distribution):
    error = 7 * U * student_t(8, 400, seed=0)
    found = reference_scores(
        U, distribution=distribution, error=error, n_bins=10, n_draws=500
    )
    margin = 4 * found.sd["ZMS"] / np.sqrt(500)
    assert found.mean["ZMS"] == pytest.approx(1, abs=margin)
    assert margin < 0.02


def test_normal_targets_have_the_spread_of_chi_squared():
    found = reference_scores(U, n_draws=4000, n_bins=8)
    # 8 bins of 50 rows: <Z²> is chi-squared with 50 degrees of freedom over 50
    expected = np.log(stats.chi2(50).rvs((4000, 8), random_state=1) / 50)
    s_u = np.abs(expected).mean(axis=1)
    margin = 4 * np.hypot(s_u.std(), found.sd["S_u"]) / np.sqrt(4000)
    assert found.mean["S_u"] == pytest.approx(s_u.mean(), abs=margin)
    assert found.sd["ZMS"] == pytest.approx(np.sqrt(2 / 400), rel=0.06)


def test_heavier_tails_have_higher_targets():
    targets = [
        reference_scores(U, n_draws=200, n_bins=10, distribution="student_t", df=df)
        for df in (3, 6, 1000)
    ]
    normal = reference_scores(U, n_draws=200, n_bins=10)
    s_u = [target.mean["S_u"] for target in targets]
    assert s_u[0] > 1.3 * s_u[1]
    assert s_u[1] > 1.1 * s_u[2]
    assert s_u[2] == pytest.approx(normal.mean["S_u"], rel=0.05)


# --- which z-scores ------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_degrees_of_freedom_of_student_t_are_found(seed):
    u = np.linspace(1, 2, 20_000)
    # the scale of the uncertainties does not matter
    error = 3 * u * student_t(5, 20_000, seed)
    found = reference_scores(u, distribution="student_t", error=error, n_draws=1)
    assert found.df == pytest.approx(5, abs=0.5)


def test_normal_errors_are_fitted_by_many_degrees_of_freedom():
    error = U * np.random.default_rng(0).standard_normal(400)
    found = reference_scores(U, distribution="student_t", error=error, n_draws=1)
    assert found.df > 20


def test_given_degrees_of_freedom_are_used_and_reported():
    given = reference_scores(
        U, distribution="student_t", df=4, error=U, n_draws=3, n_bins=10
    )
    assert given.df == 4.0
    z2 = np.random.default_rng(0).standard_t(4, (3, 400)) ** 2 / 2
    np.testing.assert_allclose(given.draws["ZMS"], z2.mean(axis=1))
    assert reference_scores(U, n_draws=1).df is None


def test_empirical_draws_are_the_set_s_own_z_scores_rescaled():
    error = np.where(np.arange(400) < 100, 2.0, 0.5) * U
    found = reference_scores(
        U, distribution="empirical", error=error, n_draws=50, n_bins=1
    )
    # each z² is 4 / m or 1/4 / m, where m is their mean
    m = (100 * 4 + 300 * 0.25) / 400
    count = (found.draws["ZMS"] * 400 * m - 100) / 3.75
    np.testing.assert_allclose(count, np.round(count), atol=1e-9)
    assert found.draws["ZMS"].std() > 0


def test_the_attainable_target_of_qm9_is_that_of_its_own_z_scores(qm9):
    test = qm9.isotonic_test
    arguments = {"features": test.features, "error": test.error, "n_draws": 200}
    own = reference_scores(test.uncertainty, distribution="empirical", **arguments)
    normal = reference_scores(test.uncertainty, **arguments)
    assert own.mean["S_tot"] == pytest.approx(0.48, abs=0.01)
    assert own.mean["S_u"] == pytest.approx(0.155, abs=0.01)
    assert normal.mean["S_tot"] == pytest.approx(0.295, abs=0.01)


# --- what is reported ----------------------------------------------------------------


def test_mean_sd_and_p_value_are_those_of_the_draws():
    found = reference_scores(U, n_draws=99, n_bins=10)
    draws = found.draws["S_u"]
    assert found.mean["S_u"] == np.mean(draws)
    assert found.sd["S_u"] == pytest.approx(np.std(draws, ddof=1))
    assert found.p_value("S_u", np.inf) == 0.01
    assert found.p_value("S_u", 0.0) == 1.0
    assert found.p_value("S_u", np.sort(draws)[-5]) == 0.06


def test_the_p_value_of_a_perfect_set_is_uniform():
    found = reference_scores(U, n_draws=499, n_bins=10)
    rng = np.random.default_rng(7)
    p = [
        found.p_value("S_u", scorecard(rng.normal(size=400) * U, U, n_bins=10)["S_u"])
        for _ in range(300)
    ]
    assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_one_draw_has_no_spread():
    assert set(reference_scores(U, n_draws=1).sd.values()) == {0.0}


def test_results_print_and_serialise():
    found = reference_scores(U, {"<b>": U}, n_draws=3, n_bins=10)
    assert json.loads(json.dumps(found.to_dict()))["mean"] == found.mean
    lines = str(found).splitlines()
    assert lines[0].split() == ["score", "target", "sd"]
    assert len(lines) == 2 + len(found.mean)
    assert "<td>S_&lt;b&gt;</td>" in found._repr_html_()
    assert repr(found) == "ReferenceScores(distribution='normal', df=None)"


def test_bins_of_zero_errors_make_targets_infinite_with_a_warning_but_never_nan():
    error = np.where(np.arange(400) < 360, 0.0, U)
    with pytest.warns(
        ZeroErrorBinWarning, match="20 of 20 simulated sets have a bin in which all"
    ):
        found = reference_scores(
            U, distribution="empirical", error=error, n_draws=20, n_bins=200
        )
    assert found.mean["S_u"] == found.sd["S_u"] == np.inf
    assert np.isfinite(found.sd["ENCE_u"])
    assert found.p_value("S_u", 1.0) == 1.0


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"distribution": "empirical"}, "needs the z-scores of the set: pass `error`"),
        ({"distribution": "student_t"}, "needs the z-scores of the set: pass `error`"),
        ({"distribution": "cauchy"}, '`distribution` must be one of "normal", "stud'),
        ({"distribution": "student_t", "df": 2}, "`df` must be above 2.* found 2"),
        ({"distribution": "empirical", "error": 0 * U}, "must not be 0 in every row"),
        ({"distribution": "student_t", "error": 0 * U}, "must not be 0 in every row"),
        ({"error": U[:3]}, "`error` and `uncertainty` must have the same number"),
        ({"n_draws": 0}, "`n_draws` must be at least 1; found 0"),
        ({"n_bins": 1.5}, "`n_bins` must be an integer; found 1.5"),
        ({"features": {"u": U}}, 'must not have a column named "u"'),
        ({"ties": U[:3]}, "`ties` must have the same number of rows; found 400 and 3"),
        ({"rng": "seed"}, "`rng` must be a seed, a numpy Generator or None"),
    ],
)
def test_wrong_arguments_are_refused(arguments, match):
    with pytest.raises(InvalidInputError, match=match):
        reference_scores(U, **arguments)


# --- rows in groups ------------------------------------------------------------------


def calibrated_repeats(rho, seed):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(250), 4)
    z = np.sqrt(rho) * rng.normal(size=250)[groups]
    z += np.sqrt(1 - rho) * rng.normal(size=1000)
    u = rng.uniform(1, 2, 250)[groups]
    return z * u, u, groups


@pytest.mark.parametrize("distribution", ["empirical", "normal", "student_t"])
def test_references_of_repeats_have_the_spread_that_repeats_have(distribution):
    error, u, groups = calibrated_repeats(0.9, 0)
    settings = {"n_bins": 10, "error": error, "distribution": distribution}
    found = reference_scores(u, groups=groups, n_draws=400, **settings)
    cards = [
        ss.scorecard(*calibrated_repeats(0.9, seed)[:2], n_bins=10)
        for seed in range(1, 201)
    ]
    for name in ("S_cal", "S_u"):
        scores = np.array([card[name] for card in cards])
        assert found.mean[name] == pytest.approx(scores.mean(), rel=0.25)
    alone = reference_scores(u, n_draws=400, **settings)
    assert alone.mean["S_u"] < 0.7 * found.mean["S_u"]


def test_groups_without_errors_say_nothing_of_how_alike_their_rows_are():
    _, u, groups = calibrated_repeats(0.9, 0)
    with pytest.raises(InvalidInputError, match="pass `error` as well"):
        reference_scores(u, groups=groups, n_draws=20)


# --- shuffled rows -------------------------------------------------------------------


def drawn(groups, seed=0, n_rows=None):
    groups = None if groups is None else np.asarray(groups)
    n_rows = n_rows or len(groups)
    return shuffled_rows(n_rows, groups, np.random.default_rng(seed))


def test_without_groups_each_draw_is_another_permutation_of_the_rows():
    draw = drawn(None, n_rows=100)
    first, second = draw(), draw()
    assert first.dtype == np.uint32
    assert sorted(first) == sorted(second) == list(range(100))
    assert (first != second).any()


def test_groups_of_single_rows_are_no_groups():
    labels = np.random.default_rng(0).permutation(50)
    assert (drawn(labels)() == drawn(None, n_rows=50)()).all()


def test_groups_of_one_size_exchange_all_their_rows():
    rng = np.random.default_rng(1)
    groups = rng.permutation(np.repeat(np.arange(30), 4))
    draw = drawn(groups)
    for _ in range(20):
        source = draw()
        assert sorted(source) == list(range(120))
        # the rows of a group get those of one other group
        assert np.unique(groups + 1000 * groups[source]).size == 30


def test_neighbours_within_a_group_stay_neighbours():
    groups = np.repeat(np.arange(30), 5)
    source = drawn(groups)()
    steps = np.diff(source.astype(int).reshape(30, 5), axis=1)
    assert set(steps.ravel()) == {1, -4}
    assert (steps == -4).any()


def test_every_row_gets_every_other_row_equally_often():
    groups = np.repeat(np.arange(4), 3)
    draw = drawn(groups)
    counts = np.zeros((12, 12))
    n_draws = 6000
    for _ in range(n_draws):
        counts[np.arange(12), draw()] += 1
    # all 144 cells, of which 11 in each row and column are free
    statistic = ((counts - n_draws / 12) ** 2 / (n_draws / 12)).sum()
    assert stats.chi2.sf(statistic, 11 * 11) > 1e-4


def test_a_size_with_enough_groups_keeps_to_itself():
    groups = np.concatenate(
        [np.repeat(np.arange(25), 2), np.repeat(np.arange(100, 140), 3)]
    )
    draw = drawn(groups)
    for _ in range(20):
        source = draw()
        assert (source[:50] < 50).all()
        assert sorted(source) == list(range(170))


def test_groups_of_rare_sizes_go_to_similar_ones_cut_or_started_over():
    sizes = np.arange(10, 20)
    groups = np.repeat(np.arange(10), sizes)
    draw = drawn(groups)
    met = set()
    for _ in range(200):
        source = groups[draw()]
        for group in range(10):
            (only,) = set(source[groups == group])
            met.add((group, only))
    assert len(met) == 100


def test_a_group_without_similar_ones_keeps_its_own_rows():
    groups = np.concatenate([np.repeat(0, 500), np.arange(1, 200)])
    source = drawn(groups)()
    assert sorted(source[:500]) == list(range(500))
    assert sorted(source[500:]) == list(range(500, 699))


@pytest.mark.parametrize(
    ("sizes", "pools"),
    [
        ([3] * 5, [(0, 5)]),
        ([1] * 20 + [2] * 20, [(0, 20), (20, 40)]),
        ([1] * 3 + [2] * 20, [(0, 23)]),
        ([2] * 20 + [3] * 3, [(0, 23)]),
        ([1] * 3 + [9] * 3, [(0, 3), (3, 6)]),
        ([4, 5, 8, 9], [(0, 3), (3, 4)]),
    ],
)
def test_pools_hold_groups_of_similar_sizes(sizes, pools):
    assert ENOUGH_GROUPS == 20
    assert _pools(np.array(sizes)) == pools


def test_the_draws_keep_the_spread_of_the_mean_that_dependent_rows_have():
    # a bin of 30 rows, one of each of 30 groups, and one of 10 whole groups
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(200), 3)
    z = np.sqrt(0.9) * rng.normal(size=200)[groups] + np.sqrt(0.1) * rng.normal(
        size=600
    )
    z2 = z**2
    draw = drawn(groups)
    whole, single = (
        np.array([z2[draw()][rows].mean() for _ in range(2000)]).var()
        for rows in (np.arange(30), np.arange(0, 90, 3))
    )
    # 1/30 of var(z²) for single rows; whole groups add twice the covariance 0.81 var
    assert whole / single == pytest.approx(1 + 2 * 0.81, rel=0.2)


def test_with_replacement_a_group_may_be_drawn_several_times():
    groups = np.repeat(np.arange(50), 4)
    draw = shuffled_rows(200, groups, np.random.default_rng(0), replace=True)
    source = groups[draw()].reshape(50, 4)
    assert (source == source[:, :1]).all()
    assert np.unique(source).size < 45
    single = shuffled_rows(200, None, np.random.default_rng(0), replace=True)()
    assert single.dtype == np.uint32
    assert np.unique(single).size < 180


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_squares_are_drawn_as_alike_within_groups_as_the_rows_own(rho):
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(3000), 3)
    z = np.sqrt(rho) * rng.normal(size=3000)[groups]
    z2 = (z + np.sqrt(1 - rho) * rng.normal(size=9000)) ** 2
    draw = correlated_squares(z2, groups, rng.chisquare(1, 100_000), rng)
    squares = np.concatenate([draw() for _ in range(10)])
    assert squares.mean() == pytest.approx(1, abs=0.05)
    assert squares.var() == pytest.approx(2, rel=0.1)
    drawn = within_groups(squares - squares.mean(), np.arange(squares.size) // 3)
    assert drawn == pytest.approx(rho**2, abs=0.08)


# --- the law of uncertainties -------------------------------------------------------


def normal_inverse_gamma(n, df):
    rng = np.random.default_rng(0)
    return np.sqrt(stats.invgamma.rvs(df / 2, scale=df / 2, size=n, random_state=rng))


@pytest.mark.parametrize("df", [3, 10])
def test_the_law_of_u_has_the_highest_likelihood(df):
    u = normal_inverse_gamma(3000, df)
    found = InverseGamma.fit(7 * u)
    shape, _, scale = stats.invgamma.fit((7 * u) ** 2, floc=0)
    assert found.df == pytest.approx(2 * shape, rel=1e-4)
    assert found.df / 2 * found.scale**2 == pytest.approx(scale, rel=1e-4)


def test_equal_uncertainties_are_drawn_nearly_equal():
    law = InverseGamma.fit(np.full(50, 3.0))
    drawn = law.draw_like(np.full(50, 3.0), np.random.default_rng(0))
    np.testing.assert_allclose(drawn, 3, rtol=0.01)


def test_drawn_uncertainties_keep_the_order_of_the_set():
    drawn = InverseGamma.fit(U).draw_like(U, np.random.default_rng(0))
    np.testing.assert_array_equal(np.argsort(drawn), np.argsort(U))


def test_whole_simulated_sets_differ_where_the_uncertainty_matters():
    u = normal_inverse_gamma(2000, 5)
    whole, errors_only = (
        ss.reference_scores(u, n_bins=20, n_draws=150, distribution=name)
        for name in ("normal_inverse_gamma", "normal")
    )
    assert whole.df == pytest.approx(5, abs=0.6)
    # scores of z-scores alone do not care, those of u do
    assert whole.mean["S_u"] == pytest.approx(errors_only.mean["S_u"], rel=0.05)
    assert whole.sd["UCE_u"] > 1.2 * errors_only.sd["UCE_u"]
