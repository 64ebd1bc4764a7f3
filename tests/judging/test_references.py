import json

import numpy as np
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale import reference_scores, scorecard
from sigmascale.exceptions import InvalidInputError, ZeroErrorBinWarning
from sigmascale.judging import references

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
