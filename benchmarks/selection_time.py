"""Measure how long a user of the default recalibrator waits.

The time is also given as a multiple of sorting 10^7 numbers in the same run, which
says more than seconds on a machine that others use as well.

    python benchmarks/selection_time.py
"""

from __future__ import annotations

import time

import numpy as np
from threadpoolctl import threadpool_limits

from sigmascale import SelectedScaling
from sigmascale.datasets import make_molecules

LIMITS = {10_000: 20.0, 100_000: 120.0}  # rows, and seconds that are acceptable


def seconds(task):
    """Return how long a task takes."""
    started = time.perf_counter()
    task()
    return time.perf_counter() - started


def main():
    """Print the times."""
    unit = seconds(lambda: np.sort(np.random.default_rng(0).random(10_000_000)))
    print(f"sorting 10^7 numbers: {unit:.2f} s")
    for n_rows, limit in LIMITS.items():
        data = make_molecules(n_rows, seed=1)
        scaler = SelectedScaling()
        taken = seconds(lambda s=scaler, d=data: s.fit(d.X, d.error))
        print(
            f"{n_rows:>7} rows x {data.X.shape[1]}: {taken:6.1f} s, "
            f"{taken / unit:5.1f} sorts, {scaler.name_} "
            f"({'within' if taken < limit else 'ABOVE'} {limit:.0f} s)"
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
