"""Columns that are noise are left out, and those that matter are not."""

import numpy as np
import pytest

import sigmascale as ss


def rows(n, n_features, seed=0, labels=False):
    """Rows whose errors depend on x0, and on the sum of x1 and x2."""
    rng = np.random.default_rng([seed, n, n_features])
    u = rng.lognormal(0, 0.6, n)
    X = rng.normal(size=(n, n_features))
    true = u**0.8 * np.exp(0.3 * X[:, 0] + 0.3 * np.tanh(X[:, 1] + X[:, 2]))
    features = {f"x{j}": X[:, j] for j in range(n_features)}
    if labels:
        kind = rng.choice(["alloy", "oxide", "salt"], n, p=[0.1, 0.4, 0.5])
        true = true * np.where(kind == "alloy", 1.8, 1.0)
        features["kind"] = kind
    error = rng.standard_t(5, n) * true
    return ss.Predictions(
        y_std=u, error=error, features=features
    ), true * 5**0.5 / 3**0.5


@pytest.mark.parametrize("labels", [False, True])
def test_columns_of_noise_are_left_out_and_those_of_effects_are_kept(labels):
    new, true = rows(5000, 24, seed=99, labels=labels)
    kept = []
    for seed in range(4):
        p, _ = rows(5000, 24, seed, labels=labels)
        r = ss.Recalibrator().fit(p)
        used = {p.names[column] for column in r.scale_.columns} - {"u"}
        assert {"x0", "x1", "x2"} <= used
        assert not labels or "kind" in used
        kept.append(len(used))
        assert len(r.scale_.tables) < 40
        assert (
            f"{len(p.names) - 1 - len(used)} of {len(p.names) - 1} features are not"
            in (r.describe())
        )
        off = np.log(r.predict(new) / true)
        assert off.std() < 0.16
    assert np.mean(kept) < 10


def test_many_columns_that_all_matter_a_little_are_kept():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 14))
    u = np.ones(8000)
    features = {f"x{j}": X[:, j] for j in range(14)}
    error = rng.normal(size=8000) * np.exp(0.15 * np.sign(X).sum(axis=1))
    r = ss.Recalibrator().fit(ss.Predictions(y_std=u, error=error, features=features))
    assert r.scale_.columns >= set(range(1, 15))
