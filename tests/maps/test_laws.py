"""Student's t: what is learned of it, and its scores against plain integration."""

import numpy as np
import pytest
from scipy import integrate, stats

import sigmascale as ss
from sigmascale.exceptions import HeavyTailsWarning, InvalidInputError
from sigmascale.maps.laws import NORMAL, StudentLaw, poor_normal

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("df", [1.5, 3.0, 10.0])
def test_the_law_that_made_z_scores_is_found(df):
    law = StudentLaw.learn(0.7 * RNG.standard_t(df, size=40_000))
    assert law.df == pytest.approx(df, rel=0.1)
    assert law.scale == pytest.approx(0.7, rel=0.03)


def test_light_tails_are_normal():
    law = StudentLaw.learn(RNG.uniform(-1, 1, 1000))
    assert law.df == np.inf
    assert law.scale == pytest.approx(np.sqrt(1 / 3), rel=0.05)


@pytest.mark.parametrize("df", [1.2, 2.0, 5.0, np.inf])
@pytest.mark.parametrize("z", [-3.0, 0.1, 20.0])
def test_scores_are_those_of_plain_integration(df, z):
    law = StudentLaw(df, 0.6)
    same = stats.norm(scale=0.6) if np.isinf(df) else stats.t(df, scale=0.6)
    assert law.losses(np.array([z]))[0] == pytest.approx(-same.logpdf(z), rel=1e-12)
    assert law.quantiles(0.9) == pytest.approx(same.ppf(0.9), rel=1e-12)

    def square(x):
        return (same.cdf(x) - (x >= z)) ** 2

    below = integrate.quad(square, -np.inf, z, limit=500)[0]
    above = integrate.quad(square, z, np.inf, limit=500)[0]
    found = law.ranked_scores(np.array([z]))[0]
    assert found == pytest.approx(below + above, rel=1e-5)


def test_without_a_mean_the_ranked_score_is_infinite():
    assert np.isinf(StudentLaw(1.0, 1.0).ranked_scores(np.zeros(2))).all()


def test_scores_of_a_set_are_means_in_the_unit_of_the_error():
    u = RNG.uniform(1, 2, 50)
    error, law = 3 * u * RNG.standard_t(3, size=50), StudentLaw(3.0, 0.5)
    z = error / u
    assert ss.crps(error, u, law=law) == pytest.approx(
        np.mean(u * law.ranked_scores(z))
    )
    assert ss.nll(error, u, law=law) == pytest.approx(
        np.mean(law.losses(z) + np.log(u))
    )
    assert ss.nll(error, u, law=NORMAL) == pytest.approx(ss.nll(error, u))
    assert ss.crps(error, u, law=NORMAL) == pytest.approx(ss.crps(error, u))
    assert law.quantiles(0.9) == pytest.approx(0.5 * stats.t.ppf(0.9, 3))


# --- recalibrators -------------------------------------------------------------------

SCALERS = [
    ss.TemperatureScaling,
    ss.LinearScaling,
    ss.IsotonicScaling,
    lambda **options: ss.BinwiseScaling(5, **options),
    lambda **options: ss.RakedScaling(5, **options),
    lambda **options: ss.BoostedScaling(max_trees=20, **options),
    ss.SelectedScaling,
]


def heavy(df, n=3000, seed=1):
    rng = np.random.default_rng(seed)
    u = rng.uniform(1, 2, n)
    t = rng.normal(size=n) if np.isinf(df) else rng.standard_t(df, size=n)
    return u, 2 * u * t


@pytest.mark.parametrize("make", SCALERS)
def test_a_recalibrator_predicts_the_law_of_new_errors(make, tmp_path):
    u, error = heavy(3.0)
    scaler = make(distribution="student").fit(u, error)
    assert scaler.law_.df == pytest.approx(3, rel=0.25)
    assert scaler.predict_scale(u) == pytest.approx(2 * u, rel=0.25)
    ratio = np.sqrt(scaler.law_.df / (scaler.law_.df - 2))
    assert scaler.predict(u) == pytest.approx(ratio * scaler.predict_scale(u))
    new_u, new_error = heavy(3.0, seed=2)
    interval = scaler.predict_interval(new_u, coverage=0.9)
    assert ss.picp(new_error, interval) == pytest.approx(0.9, abs=0.02)
    low, high = scaler.predict_quantiles(new_u, [0.05, 0.95]).T
    assert low == pytest.approx(-high)
    assert high == pytest.approx(interval[:, 1])
    score = -ss.nll(new_error, scaler.predict(new_u), law=scaler.law_)
    assert scaler.score(new_u, new_error) == pytest.approx(score)
    assert score > make().fit(u, error).score(new_u, new_error) + 0.05
    assert "Student's t with" in scaler.describe()
    ss.save(scaler, tmp_path / "scaler.json")
    again = ss.load(tmp_path / "scaler.json")
    assert again.law_ == scaler.law_
    np.testing.assert_array_equal(again.predict_interval(u), scaler.predict_interval(u))
    # fitted again without tails, it forgets them
    assert not hasattr(scaler.set_params(distribution="normal").fit(u, error), "law_")


def test_where_no_standard_deviation_exists_that_is_said_and_the_scale_is_right():
    u, error = heavy(1.5)
    scaler = ss.TemperatureScaling(distribution="student")
    with pytest.warns(HeavyTailsWarning, match=r"with 1\.\d degrees of freedom"):
        scaler.fit(u, error)
    assert scaler.predict_scale(u) == pytest.approx(2 * u, rel=0.1)
    np.testing.assert_allclose(
        scaler.predict(u), ss.TemperatureScaling().fit(u, error).predict(u)
    )


def test_normal_errors_lose_nothing_by_students_t():
    u, error = heavy(np.inf)
    new_u, new_error = heavy(np.inf, seed=2)
    student, normal = (
        ss.TemperatureScaling(distribution=d).fit(u, error)
        for d in ("student", "normal")
    )
    difference = student.score(new_u, new_error) - normal.score(new_u, new_error)
    assert abs(difference) < 0.002
    assert normal.predict_scale(u) == pytest.approx(normal.predict(u))


def test_other_laws_and_levels_are_refused():
    with pytest.raises(
        InvalidInputError, match='`distribution` must be one of "normal"'
    ):
        ss.TemperatureScaling(distribution="laplace").fit([1.0, 2.0], [1.0, 2.0])
    scaler = ss.TemperatureScaling().fit([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(InvalidInputError, match="`levels` must lie between 0 and 1"):
        scaler.predict_quantiles([1.0], [1.0])


# --- words ---------------------------------------------------------------------------


def test_words_say_when_a_normal_law_is_poor_and_are_silent_otherwise():
    words = poor_normal(RNG.standard_t(2.0, size=5000))
    assert words.startswith("A normal law is a poor description: 1 % of the errors are")
    assert "times as wide" in words
    assert poor_normal(RNG.normal(size=5000)) == ""
    assert poor_normal(np.zeros(3)) == ""


def test_the_default_says_so():
    u, error = heavy(2.0)
    scaler = ss.SelectedScaling().fit(u, error)
    assert scaler.tails_ in scaler.describe()
    assert "A normal law is a poor description" in scaler.explain()
