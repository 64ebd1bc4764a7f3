import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.isotonic import IsotonicRegression

import sigmascale as ss


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
    scaler = ss.IsotonicScaling().fit(u, error)
    for table in (u, new):
        expected = by_scikit_learn(u, error, table)
        np.testing.assert_allclose(scaler.predict(table), expected, rtol=1e-12)


@pytest.mark.parametrize("unit", [1e-30, 1e-9, 1e9])
def test_steps_are_kept_apart_in_any_unit(unit):
    # scikit-learn's estimator takes u² for equal that differ by less than 1e-15
    u, error = make_set()
    expected = by_scikit_learn(u, error, u)
    scaler = ss.IsotonicScaling().fit(unit * u, unit * error)
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
    predicted = ss.IsotonicScaling().fit(u, error).predict(u[order])
    np.testing.assert_allclose(predicted**2, expected, rtol=1e-12)


def test_equal_uncertainties_share_the_mean_of_their_squared_errors():
    u = np.array([1.0, 1.0, 1.0, 2.0, 2.0])
    scaler = ss.IsotonicScaling().fit(u, [1.0, 2.0, 3.0, 5.0, 7.0])
    np.testing.assert_allclose(scaler.predict([1.0, 2.0]) ** 2, [14 / 3, 37])


def test_only_the_ends_of_steps_are_kept():
    scaler = ss.IsotonicScaling().fit(np.arange(1.0, 10), [1, 1, 1, 1, 2, 2, 2, 3, 3])
    np.testing.assert_array_equal(scaler.variances_in_, [1, 16, 25, 49, 64, 81])
    np.testing.assert_array_equal(scaler.variances_out_, [1, 1, 4, 4, 9, 9])


def test_a_step_of_only_zero_errors_is_raised_to_the_next_one():
    scaler = ss.IsotonicScaling().fit([1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 2.0, 3.0])
    np.testing.assert_allclose(scaler.predict([0.1, 1, 2, 3, 4, 9]), [2, 2, 2, 2, 3, 3])


positive = st.floats(1e-3, 1e3)


@given(arrays(float, 20, elements=positive), arrays(float, 20, elements=positive))
def test_larger_uncertainties_never_become_smaller_ones(u, error):
    scaler = ss.IsotonicScaling().fit(u, error)
    predicted = scaler.predict(np.geomspace(1e-4, 1e4, 100))
    assert np.all(np.diff(predicted) >= -1e-12 * predicted[:-1])
    # pooling keeps the mean
    assert np.mean(scaler.predict(u) ** 2) == pytest.approx(np.mean(error**2))
