"""Measure how often the interval of the relative calibration error contains 0.

Sets are calibrated: u² is drawn from an inverse gamma distribution with ν degrees of
freedom, u² ~ InvGamma(ν/2, ν/2), and errors from N(0, u), so that errors follow
Student's t with ν degrees of freedom. The table also has how often the interval of <Z²>
contains 1, how often [0.945, 0.955] overlaps that of the share within 1.96 u, and how
many sets have skewnesses of u² and E² that let RCE be believed.

    python benchmarks/rce_coverage.py
"""

from __future__ import annotations

import argparse

import numpy as np

import sigmascale as ss


def calibrated(rng, n, df):
    """Return a calibrated set."""
    u = 1 / np.sqrt(rng.gamma(df / 2, 2 / df, n))
    return ss.Predictions(y_std=u, error=rng.normal(scale=u))


def judge(p, n_resamples):
    """Return whether RCE, <Z²> and the share pass, and whether RCE is reliable."""
    found = ss.scores.tails(p, n_resamples=n_resamples)
    return (
        found.rce.low <= 0 <= found.rce.high,
        found.zms.low <= 1 <= found.zms.high,
        found.share_is_valid,
        found.rce_is_reliable,
    )


def main() -> None:
    """Print one line for each number of degrees of freedom."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=1500)
    options = parser.parse_args()
    print("| ν | RCE | ZMS | within 1.96 u | RCE is reliable |")
    print("| --- | --- | --- | --- | --- |")
    for df in (2.5, 3, 4, 6, 10, 20):
        rng = np.random.default_rng([0, 1])
        sets = (calibrated(rng, options.rows, df) for _ in range(options.sets))
        found = np.mean([judge(p, options.resamples) for p in sets], axis=0)
        print(f"| {df} | " + " | ".join(f"{share:.3f}" for share in found) + " |")


if __name__ == "__main__":
    main()
