"""Measure one evaluation of the total loss against the straightforward version.

The straightforward version scales the uncertainties and sorts afresh for each of its
three local scores. Both are timed in turn, many times, so that other work on the
machine hits both.

    SIGMASCALE_QM9=folder python benchmarks/loss_evaluation.py

Without SIGMASCALE_QM9, it runs on 10,000 synthetic molecules.
"""

from __future__ import annotations

import os
import time

import numpy as np
from threadpoolctl import threadpool_limits

from sigmascale import BinwiseScaling
from sigmascale.bins.partitions import cut_positions
from sigmascale.datasets import fetch_qm9, make_molecules
from sigmascale.scaling.losses import ScaledLoss

REPEATS, POINTS = 15, 40  # timings, and evaluations in each
REQUIRED = 10.0


def straightforward(error, u, codes, features):
    """Return the total loss as one would write it down."""
    starts = cut_positions(u.size, 100)
    sizes = np.diff(starts, append=u.size)

    def score(z2, order):
        zms = np.add.reduceat(z2[order], starts) / sizes
        return np.mean(np.abs(np.log(zms)))

    def loss(log_factors):
        scaled = np.exp(log_factors)[codes] * u
        z2 = (error / scaled) ** 2
        total = np.abs(np.log(z2.mean())) + score(z2, np.argsort(scaled))
        for x in features:
            total += score(z2, np.lexsort((scaled, x)))
        return total

    return loss


def seconds(loss, points):
    """Return the time of one evaluation."""
    started = time.perf_counter()
    for point in points:
        loss(point)
    return (time.perf_counter() - started) / len(points)


def measure(data, column, n_bins):
    """Return the times of both versions and their ratios, timing by timing."""
    u, *features = data.X.T
    scaler = BinwiseScaling(n_bins, by=column).fit(data.X, data.error)
    codes = scaler.partition_.codes(data.X[:, column], u)
    fast = ScaledLoss(data.error, u, codes, n_bins, features)
    slow = straightforward(data.error, u, codes, features)
    noise = np.random.default_rng(0).normal(0, 0.05, (POINTS, n_bins))
    points = np.log(scaler.factors_) + noise
    for point in points:
        np.testing.assert_allclose(fast(point), slow(point), rtol=1e-12)
    times = np.array(
        [(seconds(fast, points), seconds(slow, points)) for _ in range(REPEATS)]
    )
    return times[:, 0], times[:, 1], times[:, 1] / times[:, 0]


def main() -> None:
    """Print a line for each way of binning."""
    if os.environ.get("SIGMASCALE_QM9"):
        name, data = "QM9", fetch_qm9().calibration
    else:
        name, data = "synthetic molecules", make_molecules(10_000)
    print(f"One evaluation of the total loss, {len(data)} rows of {name}")
    print("bins of     ours/µs  straightforward/µs  ratio (lowest to highest)")
    with threadpool_limits(limits=1):
        for by, column in (("u", 0), ("mass", 1)):
            for n_bins in (20, 80):
                ours, theirs, ratios = measure(data, column, n_bins)
                print(
                    f"{by:<5}{n_bins:>4}  {1e6 * np.median(ours):>8.0f}"
                    f"  {1e6 * np.median(theirs):>18.0f}  {np.median(ratios):>5.1f}"
                    f" ({ratios.min():.1f} to {ratios.max():.1f})"
                )
    print(f"The ratio for 80 bins should be at least {REQUIRED:.0f}.")


if __name__ == "__main__":
    main()
