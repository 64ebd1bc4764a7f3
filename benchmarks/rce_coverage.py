"""Measure how often the interval of the relative calibration error contains 0.

Sets are calibrated: u² is drawn from an inverse gamma law with ν degrees of freedom, u²
~ InvGamma(ν/2, ν/2), and errors from N(0, u), so that errors follow Student's t with ν
degrees of freedom. The table also has how often the interval of <Z²> contains 1, how
often [0.945, 0.955] overlaps that of the share within 1.96 u, and how many sets have
skewnesses of u² and E² that let RCE be believed.

    python benchmarks/rce_coverage.py
"""

from __future__ import annotations

import argparse

import numpy as np

import sigmascale as ss
from sigmascale.judging.intervals import bca_of_means
from sigmascale.judging.tails import SKEWED_E2, SKEWED_U2, _skewness


def normal_inverse_gamma(rng, n, df):
    """Return errors and uncertainties of a calibrated set."""
    u = 1 / np.sqrt(rng.gamma(df / 2, 2 / df, n))
    return rng.normal(scale=u), u


def judge(error, u, rng):
    """Return whether RCE, <Z²> and the coverage pass, and whether RCE is reliable."""
    rce = ss.relative_calibration_error(error, u, rng=rng)
    zms = bca_of_means(
        (error / u)[None] ** 2,
        lambda m: m[0],
        confidence=0.95,
        n_resamples=1500,
        rng=rng,
    )
    reliable = _skewness(u**2) <= SKEWED_U2 and _skewness(error**2) <= SKEWED_E2
    return (
        rce.low <= 0 <= rce.high,
        zms.low <= 1 <= zms.high,
        ss.coverage_at_95(error, u).valid,
        reliable,
    )


def main() -> None:
    """Print one line for each number of degrees of freedom."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=1000)
    options = parser.parse_args()
    print("| ν | RCE | ZMS | within 1.96 u | RCE is reliable |")
    print("| --- | --- | --- | --- | --- |")
    for df in (2.5, 3, 4, 6, 10, 20):
        rng = np.random.default_rng(0)
        found = np.mean(
            [
                judge(*normal_inverse_gamma(rng, options.rows, df), rng)
                for _ in range(options.sets)
            ],
            axis=0,
        )
        print(f"| {df} | " + " | ".join(f"{share:.3f}" for share in found) + " |")


if __name__ == "__main__":
    main()
