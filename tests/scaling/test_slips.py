import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.exceptions import (
    AbsoluteErrorsWarning,
    ConstantUncertaintyWarning,
    LikelySlipWarning,
    NotANumberError,
    TargetsNotErrorsWarning,
    VarianceNotUncertaintyWarning,
)

N = 300


@pytest.fixture
def honest():
    rng = np.random.default_rng(0)
    u = 0.1 * rng.lognormal(sigma=0.7, size=N)
    return rng.normal(size=N) * u, u


def test_targets_in_place_of_errors_are_noticed(honest):
    error, u = honest
    for targets in (error - 400, 3 + 0.5 * np.arange(N) / N, -2 + 10 * error):
        with pytest.warns(TargetsNotErrorsWarning, match="targets or predictions"):
            ss.TemperatureScaling().fit(u, targets)


def test_numbers_that_came_as_text_are_noticed(honest):
    error, u = honest
    x = pd.Series(["1,5", *(u[1:] / 7).astype(str)])
    X = pd.DataFrame({"u": u, "mass": x})
    with pytest.warns(LikelySlipWarning, match="`mass` is text.*, but '1,5'. Convert"):
        ss.CategoryScaling(by="mass").fit(X, error)
    X["mass"] = ["1,5", *(u[1:] / 7)]
    with pytest.raises(NotANumberError, match=r"mass.*row 0 is '1,5' among numbers"):
        ss.BoostedScaling().fit(X, error)


def test_absolute_errors_are_noticed(honest):
    error, u = honest
    with pytest.warns(AbsoluteErrorsWarning, match="None of 300 errors is negative"):
        ss.TemperatureScaling().fit(u, np.abs(error))


def test_a_variance_is_noticed_by_its_size_and_by_its_name(honest):
    error, u = honest
    with pytest.warns(VarianceNotUncertaintyWarning, match="'u', look like variances"):
        ss.TemperatureScaling().fit(u**2, error)
    for name in ("var", "u_var", "Variance (eV2)", "u²", "sigma^2"):
        X = pl.DataFrame({name: np.full(N, 0.01) + u})
        with pytest.warns(VarianceNotUncertaintyWarning, match="square root"):
            ss.TemperatureScaling().fit(X, 30 * error)


def test_a_constant_uncertainty_is_noticed(honest):
    error, _ = honest
    with pytest.warns(ConstantUncertaintyWarning, match="All 300 uncertainties are"):
        ss.TemperatureScaling().fit(np.full(N, 0.1), error)


def test_each_slip_can_be_silenced_by_itself(honest):
    error, u = honest
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", AbsoluteErrorsWarning)
        ss.TemperatureScaling().fit(u, np.abs(error))
        with pytest.raises(ConstantUncertaintyWarning):
            ss.TemperatureScaling().fit(np.full(N, 0.1), np.abs(error))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("factor", [0.1, 0.5, 1.0, 3.0, 30.0])
@pytest.mark.parametrize(
    "kind", ["normal", "t2", "zeros", "biased", "uninformative", "noise beside u"]
)
def test_sets_that_are_only_badly_calibrated_are_no_slips(factor, kind):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        u = rng.lognormal(sigma=0.5, size=N)
        error = rng.normal(size=N) * u
        if kind == "t2":
            error = rng.standard_t(2, size=N) * u
        if kind == "zeros":
            error[::2] = 0
        if kind == "biased":
            error += 0.5 * u
        if kind == "uninformative":
            error = rng.normal(size=N)
        if kind == "noise beside u":
            u *= 0.2  # so that u is about as large as the squares of errors
            error = rng.normal(size=N) * np.hypot(u, 0.3)
        ss.TemperatureScaling().fit(factor * u, error)


def test_all_slips_have_one_name_as_well():
    for each in (
        TargetsNotErrorsWarning,
        AbsoluteErrorsWarning,
        VarianceNotUncertaintyWarning,
        ConstantUncertaintyWarning,
    ):
        assert issubclass(each, LikelySlipWarning)
