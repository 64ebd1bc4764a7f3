"""Measure recalibrators that learn from few rows, on new ones.

Errors are drawn from N(0, 1.5 u). A recalibrator learns from a small set, 200 times,
and its uncertainties of 10,000 new rows are compared with the truth: the table has the
mean of <Z²> over the sets, and the largest. The best is 1.

    python benchmarks/small_sets.py
"""

from __future__ import annotations

import warnings

import numpy as np

import sigmascale as ss
from sigmascale.exceptions import ThinBinsWarning

N_SETS, N_NEW = 200, 10_000
LAWS = {
    "lognormal": lambda rng, n: rng.lognormal(0, 0.5, n),
    "uniform": lambda rng, n: rng.uniform(0.5, 3, n),
    "gamma": lambda rng, n: rng.gamma(2, 1, n),
}
METHODS = {
    "isotonic, pseudo_rows=0": ss.IsotonicScaling(pseudo_rows=0),
    "isotonic": ss.IsotonicScaling(),
    "40 bins, least_rows=0": ss.BinwiseScaling(least_rows=0),
    "40 bins": ss.BinwiseScaling(),
    "linear": ss.LinearScaling(),
}


def mean_z2(scaler: ss.IsotonicScaling, law: str, n: int, seed: int) -> float:
    """Return <Z²> of new rows after learning from n."""
    rng = np.random.default_rng(seed)
    u = LAWS[law](rng, n)
    scaler.fit(u, rng.normal(scale=1.5 * u))
    new = LAWS[law](rng, N_NEW)
    return float(np.mean((1.5 * new / scaler.predict(new)) ** 2))


def main() -> None:
    """Print one line for each law of u and number of rows."""
    warnings.simplefilter("ignore", ThinBinsWarning)
    print(f"{'rows':>5} {'u':<10}" + "".join(f"{name:>25}" for name in METHODS))
    for n in (100, 200, 400):
        for law in LAWS:
            cells = []
            for scaler in METHODS.values():
                found = [mean_z2(scaler, law, n, seed) for seed in range(N_SETS)]
                cells.append(f"{np.mean(found):.3g} (largest {np.max(found):.3g})")
            print(f"{n:>5} {law:<10}" + "".join(f"{cell:>25}" for cell in cells))


if __name__ == "__main__":
    main()
