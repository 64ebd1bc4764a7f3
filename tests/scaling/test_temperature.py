import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import sigmascale as ss


@pytest.fixture(params=["normal", "heavy tails", "zeros", "wide u"])
def data(request):
    rng = np.random.default_rng(len(request.param))
    u = rng.lognormal(0, 4 if request.param == "wide u" else 0.5, 300)
    error = 3 * u * rng.standard_t(2 if request.param == "heavy tails" else 50, 300)
    if request.param == "zeros":
        error[:100] = 0
    return u, error


def test_the_factor_is_the_one_of_maximum_likelihood(data):
    u, error = data

    def loss(log_factor):
        s = np.exp(log_factor)
        return np.mean(0.5 * (error / (s * u)) ** 2 + np.log(s * u))

    scaler = ss.TemperatureScaling().fit(u, error)
    found = minimize_scalar(loss, bounds=(-10, 20), options={"xatol": 1e-10})
    assert np.log(scaler.factor_) == pytest.approx(found.x, abs=1e-6)
    assert loss(np.log(scaler.factor_)) <= found.fun + 1e-14


def test_uncertainties_are_multiplied_and_right_on_average(data):
    u, error = data
    scaler = ss.TemperatureScaling().fit(u, error)
    np.testing.assert_allclose(scaler.predict([1.0, 10.0]) / scaler.factor_, [1, 10])
    assert ss.zms(error, scaler.predict(u)) == pytest.approx(1, rel=1e-12)
    assert ss.calibration_error(error, scaler.predict(u)) == pytest.approx(0, abs=1e-12)


def test_features_make_no_difference(data):
    u, error = data
    X = np.column_stack([u, np.random.default_rng(0).normal(size=(u.size, 2))])
    alone = ss.TemperatureScaling().fit(u, error)
    assert ss.TemperatureScaling().fit(X, error).factor_ == alone.factor_


def test_no_scaling_leaves_uncertainties_as_they_are_whatever_the_errors():
    rng = np.random.default_rng(0)
    u = rng.uniform(1, 2, 50)
    scaler = ss.NoScaling().fit(u, 7 * rng.normal(size=50))
    assert scaler.predict(u[::-1]).tolist() == u[::-1].tolist()
    assert scaler.describe() == "Uncertainties are left as they are."
