import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.isotonic import IsotonicRegression

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError


def make_set(n=300, seed=0):
    rng = np.random.default_rng(seed)
    u = rng.uniform(0.5, 3, n)
    return u, rng.normal(scale=u**1.5)


def by_scikit_learn(u, error, new):
    fit = IsotonicRegression(out_of_bounds="clip").fit(u**2, error**2)
    return np.sqrt(fit.predict(new**2))


@pytest.mark.parametrize("tied", [False, True])
def test_the_variance_is_scikit_learns_isotonic_fit_of_the_squared_errors(tied):
    u, error = make_set()
    if tied:
        u = np.round(u, 1)
    new = np.linspace(0.1, 5, 777)  # also between and beyond the values seen
    scaler = ss.IsotonicScaling(pseudo_rows=0).fit(u, error)
    for table in (u, new):
        expected = by_scikit_learn(u, error, table)
        np.testing.assert_allclose(scaler.predict(table), expected, rtol=1e-12)


@pytest.mark.parametrize("unit", [1e-30, 1e-9, 1e9])
def test_steps_are_kept_apart_in_any_unit(unit):
    # scikit-learn's estimator takes u² for equal that differ by less than 1e-15
    u, error = make_set()
    expected = by_scikit_learn(u, error, u)
    scaler = ss.IsotonicScaling(pseudo_rows=0).fit(unit * u, unit * error)
    np.testing.assert_allclose(scaler.predict(unit * u), unit * expected, rtol=1e-9)


def test_no_other_monotonic_steps_fit_better():
    # the max-min formula of isotonic regression, by brute force
    u, error = make_set(40)
    order = np.argsort(u)
    y = error[order] ** 2
    expected = [
        max(min(y[i:j].mean() for j in range(k + 1, 41)) for i in range(k + 1))
        for k in range(40)
    ]
    predicted = ss.IsotonicScaling(pseudo_rows=0).fit(u, error).predict(u[order])
    np.testing.assert_allclose(predicted**2, expected, rtol=1e-12)


def test_equal_uncertainties_share_the_mean_of_their_squared_errors():
    u = np.array([1.0, 1.0, 1.0, 2.0, 2.0])
    scaler = ss.IsotonicScaling(pseudo_rows=0).fit(u, [1.0, 2.0, 3.0, 5.0, 7.0])
    np.testing.assert_allclose(scaler.predict([1.0, 2.0]) ** 2, [14 / 3, 37])


def test_only_the_ends_of_steps_are_kept():
    scaler = ss.IsotonicScaling(pseudo_rows=0).fit(
        np.arange(1.0, 10), [1, 1, 1, 1, 2, 2, 2, 3, 3]
    )
    np.testing.assert_array_equal(scaler.variances_in_, [1, 16, 25, 49, 64, 81])
    np.testing.assert_array_equal(scaler.variances_out_, [1, 1, 4, 4, 9, 9])


def test_a_step_of_only_zero_errors_is_raised_to_the_next_one():
    scaler = ss.IsotonicScaling(pseudo_rows=0).fit(
        [1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 2.0, 3.0]
    )
    np.testing.assert_allclose(scaler.predict([0.1, 1, 2, 3, 4, 9]), [2, 2, 2, 2, 3, 3])


positive = st.floats(1e-3, 1e3)


@given(arrays(float, 20, elements=positive), arrays(float, 20, elements=positive))
def test_larger_uncertainties_never_become_smaller_ones(u, error):
    scaler = ss.IsotonicScaling(pseudo_rows=0).fit(u, error)
    predicted = scaler.predict(np.geomspace(1e-4, 1e4, 100))
    assert np.all(np.diff(predicted) >= -1e-12 * predicted[:-1])
    # pooling keeps the mean
    assert np.mean(scaler.predict(u) ** 2) == pytest.approx(np.mean(error**2))


@given(arrays(float, 20, elements=positive), arrays(float, 20, elements=positive))
def test_shrunken_steps_never_make_smaller_uncertainties_of_larger_ones(u, error):
    predicted = ss.IsotonicScaling().fit(u, error).predict(np.geomspace(1e-4, 1e4, 100))
    assert np.all(np.diff(predicted) >= -1e-12 * predicted[:-1])


def test_a_step_is_shrunk_towards_the_linear_law_by_pseudo_rows():
    # three steps, whose errors no linear law fits
    u = np.repeat([1.0, 2.0, 3.0], [5, 40, 300])
    error = np.repeat([1.0, 3.0, 4.0], [5, 40, 300])
    law = ss.LinearScaling().fit(u, error).predict([1.0, 2.0, 3.0]) ** 2
    n, own = np.array([5, 40, 300]), np.array([1.0, 9.0, 16.0])
    for k in (1.0, 12.0, 100.0):
        expected = (n * own + k * law) / (n + k)
        assert np.all(np.diff(expected) > 0)
        found = ss.IsotonicScaling(pseudo_rows=k).fit(u, error)
        np.testing.assert_allclose(
            found.predict([1.0, 2.0, 3.0]) ** 2, expected, rtol=1e-6
        )


def test_steps_that_shrinking_puts_out_of_order_are_pooled_with_their_pseudo_rows():
    # the linear law is far above the first two steps, and the first is the thinner one
    n, k = np.array([3, 30, 1000, 1000]), 12
    levels, own = np.array([1.0, 1.1, 2.0, 3.0]), np.array([8.0, 9.0, 100.0, 110.0])
    u, error = np.repeat(levels, n), np.repeat(np.sqrt(own), n)
    law = ss.LinearScaling().fit(u, error).predict(levels) ** 2
    shrunk = (n * own + k * law) / (n + k)
    assert shrunk[0] > shrunk[1]
    assert np.all(np.diff(shrunk[1:]) > 0)
    shrunk[:2] = np.average(shrunk[:2], weights=n[:2] + k)
    found = ss.IsotonicScaling(pseudo_rows=k).fit(u, error).predict(levels) ** 2
    np.testing.assert_allclose(found, shrunk, rtol=1e-6)


def test_steps_of_thousands_of_rows_are_nearly_scikit_learns():
    rng = np.random.default_rng(0)
    u = rng.choice([1.0, 1.5, 2.0, 4.0], size=40_000)
    error = rng.normal(scale=u**1.5)
    predicted = ss.IsotonicScaling().fit(u, error).predict(u)
    np.testing.assert_allclose(predicted, by_scikit_learn(u, error, u), rtol=2e-3)


@pytest.mark.parametrize("law", ["lognormal", "uniform", "gamma"])
def test_two_hundred_rows_are_enough_for_new_ones(law):
    draw = {
        "lognormal": lambda rng, n: rng.lognormal(0, 0.5, n),
        "uniform": lambda rng, n: rng.uniform(0.5, 3, n),
        "gamma": lambda rng, n: rng.gamma(2, 1, n),
    }[law]
    means = {0: [], 12: []}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        u = draw(rng, 200)
        error = rng.normal(scale=1.5 * u)
        new = draw(rng, 10_000)
        for k, found in means.items():
            predicted = ss.IsotonicScaling(pseudo_rows=k).fit(u, error).predict(new)
            found.append(np.mean((1.5 * new / predicted) ** 2))
    assert np.mean(means[12]) < 1.1
    assert np.max(means[12]) < 2
    assert np.max(means[0]) > 10


@pytest.mark.parametrize("unit", [1e-30, 1e-9, 1e9])
def test_shrinking_follows_the_unit(unit):
    u, error = make_set()
    expected = ss.IsotonicScaling().fit(u, error).predict(u)
    scaler = ss.IsotonicScaling().fit(unit * u, unit * error)
    np.testing.assert_allclose(scaler.predict(unit * u), unit * expected, rtol=1e-6)


@pytest.mark.parametrize("bad", [-1, np.nan, np.inf, "12", None, True])
def test_pseudo_rows_that_are_no_number_are_refused(bad):
    with pytest.raises(InvalidInputError, match="`pseudo_rows` must be a finite"):
        ss.IsotonicScaling(pseudo_rows=bad).fit(*make_set())
