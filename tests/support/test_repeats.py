"""Rows that look like repeats are noticed, and other ties are not."""

import warnings

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.exceptions import RepeatedRowsWarning
from sigmascale.oddities import repeats_found, warn_of_repeats
from sigmascale.predictions import as_predictions

RNG = np.random.default_rng(0)


def found(n, u=None, features=None, error=None, seed=1):
    rng = np.random.default_rng(seed)
    u = rng.uniform(1, 2, n) if u is None else u
    error = u * rng.normal(size=n) if error is None else error
    return repeats_found(as_predictions(error, u, features))


def of_groups(n_groups, sizes, seed=2):
    rng = np.random.default_rng(seed)
    return np.repeat(rng.normal(size=n_groups), sizes)


SHAPES = [(250, 4), (500, 2), (82, 5), (30, 10)]


SIGNS = np.where(np.arange(1000) % 2, 1, -1)  # errors of both kinds


@pytest.mark.parametrize(("n_groups", "size"), SHAPES)
def test_a_feature_that_all_rows_of_a_sample_share_is_noticed(n_groups, size):
    x = of_groups(n_groups, size)
    assert "`x` has about" in found(x.size, features={"x": x})
    own = np.random.default_rng(3).normal(size=x.size)
    assert "`x` has about" in found(x.size, features={"prediction": own, "x": x})


@pytest.mark.parametrize(("n_groups", "size"), SHAPES)
def test_an_uncertainty_that_all_rows_of_a_sample_share_is_noticed(n_groups, size):
    u = np.exp(of_groups(n_groups, size))
    assert "`u` has about" in found(u.size, u=u)


def test_samples_with_different_numbers_of_rows_are_noticed():
    x = of_groups(200, np.random.default_rng(4).integers(1, 11, 200))
    assert found(x.size, features={"x": x})


def test_rows_that_appear_twice_are_noticed():
    rng = np.random.default_rng(5)
    u, error = rng.uniform(1, 2, 500), rng.normal(size=500)
    twice = np.r_[np.arange(500), np.arange(60)]
    assert "have the error and all numbers of another row" in found(
        560, u=u[twice], error=error[twice]
    )
    few = np.r_[np.arange(500), np.arange(10)]
    assert not found(510, u=u[few], error=error[few])


def test_features_that_only_together_are_those_of_a_sample_are_noticed():
    # half of the samples share one value of each, but never of both
    half = np.arange(250) < 125
    first = np.repeat(np.where(half, RNG.normal(size=250), 0.123456), 4)
    second = np.repeat(np.where(half, 0.123456, RNG.normal(size=250)), 4)
    assert found(1000, features={"a": first, "b": second}).startswith("the features")
    assert not found(1000, features={"a": first})


def test_a_large_set_is_judged_by_a_share_of_its_values():
    x = of_groups(50_000, 4)
    assert "about 5" in found(x.size, features={"x": x})
    assert not found(x.size, features={"x": RNG.normal(size=x.size)})


@pytest.mark.parametrize(
    "x",
    [
        np.round(RNG.normal(size=1000), 2),
        np.round(RNG.lognormal(size=1000), 1),
        np.round(RNG.random(1000), 2),
        RNG.integers(0, 250, 1000).astype(float),
        298.15 + 5 * RNG.integers(0, 60, 1000),
        np.linspace(0, 1, 37)[RNG.integers(0, 37, 1000)],
        RNG.normal(size=10)[RNG.integers(0, 10, 1000)],
        np.repeat(RNG.normal(size=5), 200),
        RNG.normal(size=400)[RNG.zipf(1.5, 1000) % 400],  # as isomers share masses
        np.zeros(1000),
        np.where(RNG.random(1000) < 0.5, np.nan, RNG.normal(size=1000)),
    ],
    ids=[
        *("rounded normal", "rounded lognormal", "rounded uniform", "whole numbers"),
        *("steps", "grid", "few values", "few levels", "isomers", "constant"),
        "missing",
    ],
)
def test_ties_that_mean_nothing_are_passed_over(x):
    u = np.random.default_rng(7).uniform(1, 2, 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ss.TemperatureScaling().fit(np.column_stack([u, x]), u * SIGNS)
    if np.isfinite(x).all():
        assert not found(1000, features={"x": x})
        if x.min() > 0:
            assert not found(1000, u=x)


def test_labels_are_no_reason():
    labels = np.repeat([f"molecule {i}" for i in range(250)], 4)
    assert not found(1000, features={"label": labels})


def test_errors_of_exactly_0_are_no_reason():
    u = np.round(np.random.default_rng(8).uniform(1, 2, 1000), 1)
    assert not found(1000, u=u, error=np.where(u < 1.9, 0.0, u - 1.95))


@pytest.mark.parametrize("n", [300, 3000])
def test_synthetic_molecules_are_no_repeats(n):
    data = ss.datasets.make_molecules(n, seed=3)
    ss.LinearScaling().fit(data.X, data.error)  # warnings are errors


def test_the_warning_names_the_remedy_and_points_at_the_caller():
    x = of_groups(250, 4)
    u = np.random.default_rng(9).uniform(1, 2, 1000)
    with pytest.warns(RepeatedRowsWarning, match="Pass `groups`, a label") as caught:
        ss.TemperatureScaling().fit(np.column_stack([u, x]), u)
    assert caught[0].filename == __file__


def test_groups_silence_the_warning():
    x = of_groups(250, 4)
    u = np.random.default_rng(9).uniform(1, 2, 1000)
    ss.TemperatureScaling().fit(np.column_stack([u, x]), u, groups=x)
    warn_of_repeats(as_predictions(u, u, {"x": x}, groups=x))
    with pytest.warns(RepeatedRowsWarning):
        warn_of_repeats(as_predictions(u, u, {"x": x}))
