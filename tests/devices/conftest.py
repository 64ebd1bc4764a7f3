"""Rows as arrays of every library that is installed, and a guard of the way out."""

import importlib.util

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.bins.libraries import Library, library_of, to_numpy

HAS = {
    name: importlib.util.find_spec(name) is not None
    for name in ("torch", "jax", "array_api_strict")
}


class Arrays:
    """NumPy's arrays as those of another library."""

    def __init__(self, name):
        self.name = name

    def __call__(self, values, dtype="float64"):
        values = np.asarray(values)
        if self.name == "torch":
            import torch

            return torch.from_numpy(values.copy()).to(getattr(torch, dtype))
        if self.name == "jax":
            import jax

            with library_of(jax.numpy.zeros(1)).in_64_bits():
                return jax.numpy.asarray(values, dtype=dtype)
        import array_api_strict as xp

        # from this device, nothing can be turned into NumPy by accident
        there = xp.Device("device1")
        return xp.asarray(values, dtype=getattr(xp, dtype), device=there)

    @staticmethod
    def back(array):
        return to_numpy(array)


# JAX compiles every function anew for every shape.
SLOW = {"jax": pytest.mark.slow}


@pytest.fixture(params=[pytest.param(name, marks=SLOW.get(name, ())) for name in HAS])
def arrays(request):
    if not HAS[request.param]:
        pytest.skip(f"{request.param} is not installed")
    if request.param == "array_api_strict" and np.lib.NumpyVersion(
        np.__version__
    ) < np.lib.NumpyVersion("2.0.0"):
        pytest.skip("array_api_strict copies by a keyword that NumPy 1 does not have")
    return Arrays(request.param)


@pytest.fixture
def few_leave(monkeypatch):
    """Forbid that more numbers leave the device than sums and limits have."""
    seen = []

    def guarded(to_host):
        def guard(self, array):
            size = int(np.prod(array.shape))
            seen.append(size)
            assert size <= 2**16, f"{size} numbers leave the device"
            return to_host(self, array)

        return guard

    for library in (Library, *Library.__subclasses__()):
        if library.__name__ != "_NumPy" and "to_host" in vars(library):
            monkeypatch.setattr(library, "to_host", guarded(library.to_host))
    return seen


def make_data(n_rows, seed=0, *, new=False):
    """Columns u, a feature with ties, labels, and a feature that may be missing."""
    rng = np.random.default_rng(seed)
    u = rng.lognormal(0, 0.5, n_rows)
    mass = rng.normal(100, 10, n_rows).round()
    label = rng.integers(0, 6 if new else 4, n_rows).astype(float)
    other = rng.normal(size=n_rows)
    sigma = 2 * u**0.5 * (1 + label) * np.exp((mass - 100) / 20 + other / 5)
    error = rng.normal(scale=sigma)
    other[rng.random(n_rows) < 0.1] = np.nan
    if new:
        label[rng.random(n_rows) < 0.01] = np.nan
    return np.column_stack([u, mass, label, other]), error


@pytest.fixture(scope="session")
def fitted():
    """One of each recalibrator, and of those with several ways each of these."""
    X, error = make_data(3000)
    scalers = {
        "auto": ss.SelectedScaling({"raked": ss.RakedScaling(5, shrinkage=9.0)}),
        "none": ss.NoScaling(),
        "temperature": ss.TemperatureScaling(),
        "linear": ss.LinearScaling(),
        "component": ss.ComponentScaling([0, 1]),
        "isotonic": ss.IsotonicScaling(),
        "binwise": ss.BinwiseScaling(40),
        "category": ss.CategoryScaling(2, min_size=5),
        "raked": ss.RakedScaling(categorical=[2], shrinkage=9.0),
        "boosted": ss.BoostedScaling(categorical=[2], max_trees=20, n_folds=2),
        "binwise with ties": ss.BinwiseScaling(40, by=1),
        "cells": ss.BinwiseScaling((8, 5), by=(0, 1)),
        "raked with pairs": ss.RakedScaling(5, pairs=[(0, 1)], shrinkage=9.0),
        "boosted, deep": ss.BoostedScaling(depth=5, max_trees=5, n_folds=2),
        "a tree that does not split": ss.BoostedScaling(max_trees=0, n_folds=2),
    }
    fitted = {name: scaler.fit(X, error) for name, scaler in scalers.items()}
    excess = ss.LinearScaling().fit(X, np.abs(X[:, 0]) ** 2 * np.sign(error))
    assert excess.b_ < 0
    return fitted | {"linear that subtracts": excess}


@pytest.fixture(scope="session")
def data_of():
    """The function that makes data."""
    return make_data
