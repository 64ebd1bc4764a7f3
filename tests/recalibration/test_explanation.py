"""Why a recalibrated uncertainty is wide."""

import math
from itertools import combinations

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.recalibration.scalings import SCALINGS


def shapley(r, p, background):
    """Return typical u and factors by the definition, all sets of columns tried."""
    names = list(p.names)

    def columns(q):
        return dict(zip(names, [q.y_std, *q.features.values()], strict=True))

    own, typical = columns(p), columns(background)
    n, m, d = p.n_rows, background.n_rows, len(names)

    def value(kept):
        mixed = {
            name: np.repeat(own[name], m) if name in kept else np.tile(typical[name], n)
            for name in names
        }
        q = ss.Predictions(y_std=mixed.pop("u"), features=mixed)
        return np.log(r.predict(q)).reshape(n, m).mean(axis=1)

    values = {
        frozenset(kept): value(kept)
        for size in range(d + 1)
        for kept in combinations(names, size)
    }
    logs = np.zeros((n, d))
    for kept, with_all in values.items():
        for name in kept:
            others = math.factorial(len(kept) - 1) * math.factorial(d - len(kept))
            gain = with_all - values[kept - {name}]
            logs[:, names.index(name)] += others / math.factorial(d) * gain
    return np.exp(values[frozenset()][0]), np.exp(logs)


@pytest.mark.parametrize("name", SCALINGS)
def test_factors_are_the_shapley_values_and_multiply_up_to_u(name, tmp_path):
    data = ss.datasets.load_health()
    scaling = SCALINGS[name]
    r = ss.Recalibrator(scaling()).fit(data.calibration)
    rows = data.test.take(np.arange(20))
    why = r.explain(rows)
    product = why.typical * why.factors.prod(axis=1)
    np.testing.assert_allclose(product, r.predict(rows), rtol=1e-12)
    typical, factors = shapley(r, rows.take(np.arange(2)), data.calibration)
    np.testing.assert_allclose(why.typical, typical, rtol=1e-12)
    np.testing.assert_allclose(why.factors[:2], factors, rtol=1e-12)
    # and all of it travels with the file
    r.save(tmp_path / "r.json")
    loaded = ss.load(tmp_path / "r.json").explain(rows)
    np.testing.assert_array_equal(loaded.factors, why.factors)


def test_a_noisier_label_stands_out_and_new_rows_are_outside():
    rng = np.random.default_rng(0)
    phase = rng.choice(["ionic", "metal", "oxide"], 3000)
    u = rng.lognormal(0, 0.3, 3000)
    error = u * np.where(phase == "ionic", 2.5, 1.0) * rng.normal(size=3000)
    x = rng.normal(size=3000)
    p = ss.Predictions(y_std=u, error=error, features={"phase": phase, "x": x})
    r = ss.Recalibrator().fit(p)
    why = r.explain(p)
    by_phase = why.factors[:, why.names.index("phase")]
    ionic = np.median(by_phase[phase == "ionic"])
    assert ionic / np.median(by_phase[phase != "ionic"]) == pytest.approx(2.5, rel=0.15)
    assert why.inside.all()
    new = ss.Predictions(
        y_std=[1.0, 1.0, 1.0],
        features={"phase": ["ionic", "gas", "oxide"], "x": [0.0, 0.0, 99.0]},
    )
    with pytest.warns(UserWarning, match="phase"):
        why = r.explain(new)
    assert why.inside.tolist() == [True, False, False]
