import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brute, minimize, minimize_scalar

import sigmascale as ss


def loss(error, u, a, b, least=0.0):
    """Return <ln v + E² / v> for v = a² u² + b², or a² u² - b² if b is negative."""
    v = np.maximum((a * u) ** 2 + b * abs(b), least**2)
    return np.mean(np.log(v) + error**2 / v)


def loss_of(scaler, error, u):
    return loss(error, u, scaler.a_, scaler.b_, scaler.least_)


def best_by_subtracting(error, u):
    """Return the lowest loss of v = s max(u² - c, q/4), q the 5 % quantile of u²."""
    q = np.quantile(u**2, 0.05, method="lower")

    def of_c(c):
        shape = np.maximum(u**2 - c, q / 4)
        return np.log(np.mean(error**2 / shape)) + np.mean(np.log(shape)) + 1

    grid = np.linspace(0, 0.75 * q, 201)[1:]
    at = int(np.argmin([of_c(c) for c in grid]))
    ends = grid[max(at - 1, 0)], grid[min(at + 1, 199)]
    improved = minimize_scalar(of_c, bounds=ends, options={"xatol": 1e-14})
    return min(of_c(grid[at]), improved.fun)


def best_by_search(error, u):
    """Return the lowest loss of a fine grid, improved from its best point, or edge."""
    largest, log_u = np.log(np.abs(error).max()), np.log(u)

    def of_logs(p):
        return loss(error, u, np.exp(p[0]), np.exp(p[1]))

    grid = [
        (largest - log_u.max() - 20, largest - log_u.min() + 1),
        (largest - 20, largest + 1),
    ]
    start = brute(of_logs, grid, Ns=60, finish=None)
    improved = minimize(
        of_logs, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-14}
    )
    no_floor = loss(error, u, np.sqrt(np.mean((error / u) ** 2)), 0)
    no_factor = loss(error, u, 0, np.sqrt(np.mean(error**2)))
    best = min(improved.fun, no_floor, no_factor)
    subtracting = best_by_subtracting(error, u)
    # ... is only done where the log-likelihood says so
    return subtracting if u.size / 2 * (best - subtracting) > 2 else best


def make_set(name, n=400):
    rng = np.random.default_rng(sum(map(ord, name)))
    u = rng.lognormal(0, 0.7, n)
    z = rng.normal(size=n)
    sets = {
        "a factor and a floor": lambda: (u, z * np.hypot(2 * u, 0.5)),
        "no floor": lambda: (u, 3 * u * z),
        "too wide, so that a floor helps": lambda: (u, np.sqrt(u) * z),
        "too narrow, so that b² is subtracted": lambda: (u, u**3 * z),
        "a part of u that errors do not have": lambda: (np.hypot(u, 1), u * z),
        "only a floor": lambda: (u, z),
        "decreasing, so that no factor can help": lambda: (u, z / u),
        "constant u": lambda: (np.full(n, 0.2), z),
        "two values of u": lambda: (np.where(u > 1, 3.0, 0.01), z * np.hypot(u, 1)),
        "heavy tails": lambda: (u, u * rng.standard_t(1.5, n)),
        "a few enormous errors": lambda: (u, np.where(u > 3, 1e4, 1) * u * z),
        "half of the errors 0": lambda: (u, np.where(z > 0, u * z, 0)),
        "u over ten decades": lambda: (10 ** rng.uniform(-8, 2, n), z),
        "rounded errors": lambda: (u, np.round(u * z)),
        "five rows": lambda: (u[:5], (u * z)[:5]),
        "two rows": lambda: (u[:2], (u * z)[:2]),
        "tiny unit": lambda: (1e-30 * u, 1e-30 * z * np.hypot(2 * u, 0.5)),
    }
    return sets[name]()


SETS = [
    "a factor and a floor",
    "no floor",
    "too wide, so that a floor helps",
    "too narrow, so that b² is subtracted",
    "a part of u that errors do not have",
    "only a floor",
    "decreasing, so that no factor can help",
    "constant u",
    "two values of u",
    "heavy tails",
    "a few enormous errors",
    "half of the errors 0",
    "u over ten decades",
    "rounded errors",
    "five rows",
    "two rows",
    "tiny unit",
]


@pytest.mark.parametrize("name", SETS)
def test_no_search_finds_a_higher_likelihood(name):
    u, error = make_set(name)
    scaler = ss.LinearScaling().fit(u, error)
    found = loss_of(scaler, error, u)
    assert found <= best_by_search(error, u) + 1e-9
    if scaler.b_ >= 0:
        for a in (0.99, 1.01):
            for b in (0.99, 1.01):
                changed = loss(error, u, a * scaler.a_, b * scaler.b_)
                assert changed > found - 1e-12


@pytest.mark.parametrize(
    ("name", "a_is_0", "b_is_0"),
    [
        ("decreasing, so that no factor can help", True, False),
        ("constant u", False, True),  # of equals, the one without a floor
        ("a factor and a floor", False, False),
    ],
)
def test_an_edge_is_met_exactly_and_only_where_it_is_best(name, a_is_0, b_is_0):
    scaler = ss.LinearScaling().fit(*make_set(name))
    assert (scaler.a_ == 0) == a_is_0
    assert (scaler.b_ == 0) == b_is_0


def test_the_truth_is_recovered_from_many_rows():
    rng = np.random.default_rng(0)
    u = rng.lognormal(0, 0.7, 200_000)
    scaler = ss.LinearScaling().fit(u, rng.normal(scale=np.hypot(2 * u, 0.5)))
    assert scaler.a_ == pytest.approx(2, rel=0.01)
    assert scaler.b_ == pytest.approx(0.5, rel=0.02)


def test_what_errors_do_not_have_is_subtracted_again():
    rng = np.random.default_rng(0)
    truth = rng.uniform(1, 3, 200_000)
    u = np.hypot(truth, 1) / 2
    scaler = ss.LinearScaling().fit(u, rng.normal(scale=truth))
    assert scaler.a_ == pytest.approx(2, rel=0.01)
    assert scaler.b_ == pytest.approx(-1, rel=0.03)
    assert "b² is subtracted" in scaler.describe()
    np.testing.assert_allclose(scaler.predict(u), truth, rtol=0.02)


def test_nothing_is_subtracted_that_chance_explains():
    rng = np.random.default_rng(0)
    signs = []
    for _ in range(300):
        u = rng.lognormal(0, 0.6, 60)
        signs.append(np.sign(ss.LinearScaling().fit(u, rng.normal(scale=u)).b_))
    # without that rule it is a third
    assert 0 < np.mean(np.array(signs) < 0) < 0.1


def test_small_uncertainties_keep_half_of_what_the_factor_gives_the_smallest():
    u, error = make_set("too narrow, so that b² is subtracted")
    scaler = ss.LinearScaling().fit(u, error)
    assert scaler.b_ < 0
    small = np.quantile(u, 0.05, method="lower")
    assert scaler.least_ == pytest.approx(scaler.a_ * small / 2)
    np.testing.assert_allclose(scaler.predict([1e-9, small / 3]), scaler.least_)
    v = (scaler.a_ * 2.0) ** 2 - scaler.b_**2
    assert scaler.predict([2.0])[0] == pytest.approx(np.sqrt(v), rel=1e-12)


def test_many_rows_give_what_all_of_them_want_and_not_their_means():
    rng = np.random.default_rng(0)
    u = rng.lognormal(0, 1.5, 20_000)
    error = rng.normal(scale=np.hypot(0.3 * u, 0.1))
    scaler = ss.LinearScaling().fit(u, error)
    found = loss_of(scaler, error, u)
    for a in (1 - 1e-5, 1 + 1e-5):
        for b in (1 - 1e-5, 1 + 1e-5):
            assert loss(error, u, a * scaler.a_, b * scaler.b_) > found


def test_predictions_follow_the_law_beyond_the_range_of_the_fit():
    scaler = ss.LinearScaling().fit(*make_set("a factor and a floor"))
    u = np.array([1e-6, 0.1, 1.0, 1e6])
    expected = np.sqrt(scaler.a_**2 * u**2 + scaler.b_**2)
    np.testing.assert_allclose(scaler.predict(u), expected, rtol=1e-14)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.floats(0.05, 3))
def test_the_likelihood_is_never_below_that_of_one_factor_or_of_one_value(
    seed, n, spread
):
    rng = np.random.default_rng(seed)
    u, error = rng.lognormal(0, spread, n), rng.standard_t(2, n)
    scaler = ss.LinearScaling().fit(u, error)
    found = loss_of(scaler, error, u)
    one_factor = loss(error, u, np.sqrt(np.mean((error / u) ** 2)), 0)
    one_value = loss(error, u, 0, np.sqrt(np.mean(error**2)))
    assert found <= min(one_factor, one_value) + 1e-11
