"""Reference scores: what perfectly calibrated sets reach."""

import numpy as np
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError, ZeroErrorBinWarning

reference_scores = ss.scores.reference_scores


def make(n=1000, seed=0, df=np.inf, **others):
    rng = np.random.default_rng(seed)
    u, x = rng.lognormal(size=(2, n))
    z = rng.standard_normal(n) if np.isinf(df) else rng.standard_t(df, n)
    kind = rng.choice(["a", "b"], n)
    return ss.Predictions(
        y_std=u, error=z * u, features={"x": x, "kind": kind}, **others
    )


def test_every_draw_is_scored_as_the_scorecard_would_score_it():
    for weights in (None, np.random.default_rng(1).lognormal(size=200)):
        p = make(200, weights=weights)
        # numbers are not those of a user's own generator with the same seed
        stream = np.random.default_rng(7).spawn(1)[0]
        z = stream.standard_normal((3, 200))
        found = reference_scores(p, n_draws=3, n_bins=6, rng=7)
        for k in range(3):
            drawn = p._with(error=z[k] * p.y_std)
            # bins are those of the rows; with other errors, ties are told apart as well
            card = ss.scores.scorecard(drawn, n_bins=6).to_dict()
            for name, values in found.draws.items():
                assert values[k] == pytest.approx(card[name], rel=1e-10), name


def test_simulated_sets_are_calibrated_on_average_and_vary_as_chi_squared():
    found = reference_scores(make(500), n_draws=2000, n_bins=5)
    assert found.mean["ZMS"] == pytest.approx(1, abs=4 * found.sd["ZMS"] / 2000**0.5)
    assert found.sd["ZMS"] == pytest.approx(np.sqrt(2 / 500), rel=0.08)
    expected = np.mean(np.abs(np.log(stats.chi2(100).rvs(10**5, random_state=0) / 100)))
    assert found.mean["S_u"] == pytest.approx(expected, rel=0.02)


def test_heavier_tails_have_higher_targets():
    p = make(20_000, df=4)
    normal, own = (
        reference_scores(p, n_draws=20, distribution=each)
        for each in ("normal", "empirical")
    )
    assert 1.2 * normal.mean["S_u"] < own.mean["S_u"]


def test_the_attainable_target_of_qm9_is_that_of_its_own_z_scores(qm9):
    found = reference_scores(
        qm9.isotonic_test.predictions, n_draws=50, n_bins=100, distribution="empirical"
    )
    assert found.mean["S_u"] == pytest.approx(0.15, abs=0.01)
    assert found.mean["S_tot"] == pytest.approx(0.48, abs=0.03)


def test_mean_and_sd_are_those_of_the_draws():
    found = reference_scores(make(100), n_draws=50, n_bins=3)
    draws = found.draws["S_x"]
    assert found.mean["S_x"] == draws.mean()
    assert found.sd["S_x"] == pytest.approx(draws.std(ddof=1))
    assert reference_scores(make(100), n_draws=1, n_bins=3).sd["S_x"] == 0


def test_repeats_have_the_spread_that_repeats_have():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(200), 5)
    z = rng.normal(size=200)[groups]  # the same for all rows of a group
    u = rng.lognormal(size=1000)
    p = ss.Predictions(y_std=u, error=z * u, groups=groups)
    for distribution in ("normal", "empirical"):
        found = reference_scores(p, n_draws=300, distribution=distribution)
        assert found.sd["ZMS"] == pytest.approx(np.sqrt(2 / 200), rel=0.2)
        assert found.mean["ZMS"] == pytest.approx(1, abs=0.02)
    half = np.sqrt(0.5) * (rng.normal(size=200)[groups] + rng.normal(size=1000))
    p = ss.Predictions(y_std=u, error=half * u, groups=groups)
    found = reference_scores(p, n_draws=300)
    # correlation r of z gives r² of z²: 1000 rows count as 1000 / (1 + 4 · 0.25)
    assert found.sd["ZMS"] == pytest.approx(np.sqrt(2 / 500), rel=0.2)


def test_targets_of_vectors_are_those_of_means_of_components():
    u = np.random.default_rng(0).lognormal(size=600)
    error = np.random.default_rng(1).normal(size=(600, 3)) * u[:, None]
    found = reference_scores(ss.Predictions(y_std=u, error=error), n_draws=400)
    assert found.sd["ZMS"] == pytest.approx(np.sqrt(2 / 1800), rel=0.12)


def test_bins_of_zero_errors_make_targets_infinite_with_a_warning_but_never_nan():
    error = np.zeros(60)
    error[:6] = 1
    p = ss.Predictions(y_std=np.arange(1.0, 61), error=error)
    with pytest.warns(ZeroErrorBinWarning, match="simulated") as warned:
        found = reference_scores(p, n_draws=20, distribution="empirical", n_bins=20)
    assert warned[0].filename == __file__
    assert found.mean["S_u"] == np.inf
    assert not np.isnan(list(found.sd.values())).any()


def test_what_cannot_be_simulated_is_refused():
    known, alone = make(50), ss.Predictions(y_std=np.ones(50))
    for p, arguments, match in (
        (alone, {"distribution": "empirical"}, "y_true"),
        (alone, {"distribution": "student_t"}, "distribution"),
        (alone._with(groups=np.arange(50) // 5), {}, "y_true"),
        (known._with(error=np.zeros(50)), {"distribution": "empirical"}, "not be 0"),
    ):
        with pytest.raises(InvalidInputError, match=match):
            reference_scores(p, **arguments)
