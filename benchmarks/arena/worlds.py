"""Simulated worlds: u, features, errors, and the true sigma behind these."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

Columns = dict[str, np.ndarray]
TEST_ROWS = 1000
SIZES = (500,)  # rows to learn from


def _columns(x: np.ndarray) -> Columns:
    return {f"X{k + 1}": column for k, column in enumerate(x.T)}


def one_factor(rng: np.random.Generator, n: int) -> Columns:
    """Errors twice as large as u says; three features that tell nothing."""
    u = rng.lognormal(0, 0.6, n)
    return {"u": u, "sigma": 2 * u, **_columns(rng.normal(size=(n, 3)))}


def calibrated(rng: np.random.Generator, n: int) -> Columns:
    """Nothing to mend, and six features that tempt."""
    u = rng.lognormal(0, 0.5, n)
    return {"u": u, "sigma": u, **_columns(rng.uniform(-1, 1, (n, 6)))}


def floor(rng: np.random.Generator, n: int) -> Columns:
    """Uncertainties that lack a constant part."""
    u = rng.lognormal(0, 0.6, n)
    return {"u": u, "sigma": np.hypot(0.7 * u, 1), **_columns(rng.normal(size=(n, 2)))}


def excess(rng: np.random.Generator, n: int) -> Columns:
    """Uncertainties with a part that errors do not have."""
    sigma = rng.lognormal(0, 0.6, n)
    return {"u": np.hypot(sigma, 1), "sigma": sigma}


def curved(rng: np.random.Generator, n: int) -> Columns:
    """Errors that grow with u by a bent law, and have heavy tails: t(4)."""
    u = rng.lognormal(0, 0.6, n)
    sigma = np.where(u < 1, 0.5 * u, 0.5 * u**2)
    z = rng.standard_t(4, n) / np.sqrt(2)
    return {"u": u, "sigma": sigma, "E": sigma * z, "X1": rng.uniform(size=n)}


def smooth_product(rng: np.random.Generator, n: int) -> Columns:
    """Errors that depend on a smooth product of two features."""
    u, x = rng.lognormal(0, 0.3, n), rng.normal(size=(n, 2))
    return {"u": u, "sigma": u * np.exp(0.35 * x[:, 0] * x[:, 1]), **_columns(x)}


def smooth_sum(rng: np.random.Generator, n: int) -> Columns:
    """Smooth functions of two features out of five, added up."""
    u, x = rng.lognormal(0, 0.3, n), rng.uniform(-1, 1, (n, 5))
    log = 0.5 * np.sin(np.pi * x[:, 0]) + 0.4 * x[:, 1]
    return {"u": u, "sigma": u * np.exp(log), **_columns(x)}


def labels(rng: np.random.Generator, n: int) -> Columns:
    """Errors that depend on a label, and on a threshold of a feature."""
    u, x = rng.lognormal(0, 0.3, n), rng.uniform(-1, 1, (n, 2))
    phase = rng.choice(["gas", "liquid", "solid", "glass"], n)
    factor = np.where(phase == "gas", 2.0, 1.0) * np.where(x[:, 0] > 0.3, 1.6, 0.8)
    return {"u": u, "sigma": u * factor, **_columns(x), "G1": phase}


def crossed(rng: np.random.Generator, n: int) -> Columns:
    """Twice or half as large, by whether two features agree in sign."""
    u, x = rng.lognormal(0, 0.3, n), rng.uniform(-1, 1, (n, 3))
    return {"u": u, "sigma": u * 2 ** np.sign(x[:, 0] * x[:, 1]), **_columns(x)}


def outliers(rng: np.random.Generator, n: int) -> Columns:
    """Outliers: one in a hundred errors is ten times as large."""
    u, x = rng.lognormal(0, 0.5, n), rng.normal(size=(n, 2))
    wild = np.where(rng.uniform(size=n) < 0.01, 10.0, 1.0)
    sigma = u * np.sqrt(0.99 + 1)
    return {"u": u, "sigma": sigma, "E": rng.normal(scale=u * wild), **_columns(x)}


def skewed(rng: np.random.Generator, n: int) -> Columns:
    """Errors of an exponential law, without a mean."""
    u, x = rng.lognormal(0, 0.5, n), rng.uniform(-1, 1, (n, 2))
    sigma = 1.5 * u * np.exp(0.5 * x[:, 0])
    z = rng.exponential(size=n) - 1
    return {"u": u, "sigma": sigma, "E": sigma * z, **_columns(x)}


def repeats(rng: np.random.Generator, n: int) -> Columns:
    """Five rows of each sample, which share features and most of the error."""
    sample = np.arange(n) // 5
    x = rng.uniform(-1, 1, (sample[-1] + 1, 2))[sample]
    z = 0.9 * rng.normal(size=sample[-1] + 1)[sample]
    z += np.sqrt(1 - 0.81) * rng.normal(size=n)
    u = rng.lognormal(0, 0.4, n)
    sigma = 1.5 * u * np.exp(0.5 * x[:, 0])
    return {"u": u, "sigma": sigma, "E": sigma * z, **_columns(x), "group": sample}


WORLDS: dict[str, Callable[[np.random.Generator, int], Columns]] = {
    maker.__name__: maker
    for maker in (
        *(one_factor, calibrated, floor, excess, curved, smooth_product),
        *(smooth_sum, labels, crossed, outliers, skewed, repeats),
    )
}


def make(name: str, n: int, seed: int) -> tuple[pl.DataFrame, int]:
    """Return `n` rows to learn from and then those to judge by, of one draw."""
    number = list(WORLDS).index(name)
    tables = []
    for k, rows in enumerate((n, TEST_ROWS)):
        rng = np.random.default_rng([number, n, seed, k])
        columns = WORLDS[name](rng, rows)
        columns.setdefault("E", rng.normal(scale=columns["sigma"]))
        tables.append(pl.DataFrame(columns).drop("sigma"))
    return pl.concat(tables), n
