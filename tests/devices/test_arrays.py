"""Arrays of other libraries: scales where they are, the same, with gradients."""

from functools import cache

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError
from sigmascale.recalibration.additive import Additive, Base
from sigmascale.recalibration.scalings import SCALINGS, Learned


class PowerOfU(ss.Scaling):
    """A line times a power of u, as the default starts from where rows gain by it."""

    def learn(self, rows):
        span = float(rows.y_std.min()), float(rows.y_std.max())
        return Learned(Additive(Base(a=1.2, b=0.3, power=-0.4, span=span)))


KINDS = {
    **{name: kind() for name, kind in SCALINGS.items()},
    "bins of ties": ss.BinwiseScaling(20, by="X2"),
    "cells": ss.BinwiseScaling((8, 5), by=("u", "X1")),
    "power": PowerOfU(),
}


def make(n, seed):
    """Return u, two features, one of few values, and errors."""
    rng = np.random.default_rng(seed)
    u, x = rng.lognormal(0, 0.6, n), rng.normal(size=n)
    shells = rng.integers(0, 9, n)
    error = rng.standard_t(5, n) * u**0.8 * np.exp(0.3 * x + 0.1 * shells)
    return np.column_stack([u, x, shells]), error


@cache
def fitted(name):
    X, error = make(3000, 0)
    p = ss.Predictions(y_std=X[:, 0], error=error, features=X[:, 1:])
    return ss.Recalibrator(KINDS[name]).fit(p)


@cache
def new():
    X, _ = make(2000, 1)
    X[::11, 1] = np.nan
    return X


def rows_of(X):
    return ss.Predictions(y_std=X[:, 0], features=X[:, 1:])


pytestmark = pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.MissingFeatureWarning"
)


@pytest.mark.parametrize("name", KINDS)
def test_tensors_keep_their_device_kind_and_gradients(name):
    torch = pytest.importorskip("torch")
    r, X = fitted(name), new()
    wanted = r.predict(rows_of(X))
    devices = ["cpu"] + ["cuda"] * torch.cuda.is_available()
    for device in devices:
        given = torch.tensor(X, device=device, requires_grad=True)
        found = r.predict(given)
        assert found.device == given.device
        assert found.dtype == given.dtype
        np.testing.assert_allclose(found.detach().cpu(), wanted, rtol=1e-10)
        found.sum().backward()
        small = r.predict(torch.tensor(X, device=device, dtype=torch.float32))
        assert small.dtype == torch.float32
        np.testing.assert_allclose(small.cpu(), wanted, rtol=0.5)
        near = np.isclose(small.cpu(), wanted, rtol=1e-5)
        assert near.mean() > 0.99  # of what is rounded, some fall into other bins
    # a difference quotient, where no edge lies in between
    step = 1e-6 * X[:, 0]
    ahead = X + np.column_stack([step, 0 * step, 0 * step])
    slope = (r.predict(rows_of(ahead)) - wanted) / step
    agree = np.isclose(given.grad[:, 0].cpu(), slope, rtol=1e-3)
    assert agree.mean() > 0.99


@cache
def many_rows():
    """So many that tables are written out, and one uncertainty of 0."""
    X, _ = make(60_000, 2)
    X[::11, 1] = np.nan
    X[7, 0] = 0.0
    return X


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Dynamo detected:UserWarning")  # array-api-compat
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # of PyTorch
@pytest.mark.parametrize("name", KINDS)
def test_torch_compiles_the_same_as_a_whole(name):
    torch = pytest.importorskip("torch")
    r = fitted(name)
    predict = torch.compile(r.predict, fullgraph=True)
    with pytest.warns(ss.exceptions.ZeroUncertaintyWarning):
        wanted = r.predict(many_rows())
    for n_rows in (60_000, 1000):  # and again with another number of rows
        given = torch.tensor(many_rows()[:n_rows])
        np.testing.assert_allclose(predict(given), wanted[:n_rows], rtol=1e-10)
        np.testing.assert_allclose(r.predict(given), wanted[:n_rows], rtol=1e-10)


@pytest.mark.parametrize("name", KINDS)
def test_many_rows_are_evaluated_as_a_few_are(name):
    r = fitted(name)
    X = np.where(many_rows() == 0, 1.0, many_rows())
    parts = [r.predict(X[start : start + 1000]) for start in range(0, len(X), 1000)]
    np.testing.assert_allclose(r.predict(X), np.concatenate(parts), rtol=1e-13)
    np.testing.assert_array_equal(r.predict(X), r.predict(rows_of(X)))


@pytest.mark.parametrize("name", KINDS)
def test_arrays_of_the_standard_never_leave_their_device(name):
    xp = pytest.importorskip("array_api_strict")
    there = xp.Device("device1")  # from which NumPy takes nothing by accident
    found = fitted(name).predict(xp.asarray(new(), device=there))
    assert found.device == there
    host = np.asarray(xp.asarray(found, device=xp.Device("CPU_DEVICE")))
    np.testing.assert_allclose(host, fitted(name).predict(rows_of(new())), rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_jax_compiles_the_same(name):
    jax = pytest.importorskip("jax")
    r, wanted = fitted(name), fitted(name).predict(rows_of(new()))
    with jax.enable_x64(True):
        given = jax.numpy.asarray(new())
        for predict in (r.predict, jax.jit(r.predict)):
            np.testing.assert_allclose(predict(given), wanted, rtol=1e-10)


def test_arrays_of_numpy_are_checked_and_one_column_is_enough():
    alone = ss.Predictions(y_std=make(300, 0)[0][:, 0], error=make(300, 0)[1])
    r = ss.Recalibrator(ss.LinearScaling()).fit(alone)
    u = new()[:, 0]
    wanted = r.predict(ss.Predictions(y_std=u))
    np.testing.assert_array_equal(r.predict(u), wanted)
    np.testing.assert_array_equal(r.predict(u[:, None]), wanted)
    with pytest.raises(InvalidInputError, match="columns"):
        r.predict(new())
    with pytest.raises(InvalidInputError, match="columns"):
        fitted("raked").predict(u)
    with pytest.raises(InvalidInputError, match="positive"):
        r.predict(-u)
    with pytest.warns(ss.exceptions.ZeroUncertaintyWarning, match="1 of 3"):
        assert (r.predict(np.array([0.0, 1.0, 2.0])) > 0).all()


def test_labels_need_predictions():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    kind = rng.choice(["gas", "solid"], 200)
    error = rng.normal(size=200) * np.where(kind == "gas", 3.0, 1.0)
    p = ss.Predictions(y_std=np.ones(200), error=error, features={"kind": kind})
    r = ss.Recalibrator(ss.BinwiseScaling(by="kind")).fit(p)
    with pytest.raises(InvalidInputError, match="kind"):
        r.predict(torch.ones(5, 2))
