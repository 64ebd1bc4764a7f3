"""What recalibration with few rows costs a right u, and gains one that is too small.

    python benchmarks/few_rows.py             # 100 sets of each kind; minutes
    python benchmarks/few_rows.py --sets 10   # fewer

A default recalibrator is fitted to so many rows with u and three features that have no
effect; errors are normal or Student's t with 5 degrees of freedom, with a standard
deviation of u, or 1.25 times that. The CRPS of 5,000 other rows is compared with that
of normal errors with standard deviation u. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import sigmascale as ss

TEST_ROWS = 5_000


def made(
    rng: np.random.Generator, n: int, rms_z: float, df: float | None
) -> ss.Predictions:
    """Return rows whose errors are so many times u."""
    u = rng.lognormal(0, 0.4, n)
    if df is None:
        z = rng.normal(size=n)
    else:
        z = rng.standard_t(df, n) / np.sqrt(df / (df - 2))
    features = {f"x{k}": rng.normal(size=n) for k in range(3)}
    return ss.Predictions(y_std=u, error=rms_z * u * z, features=features)


def change(seed: tuple[int, ...], n: int, rms_z: float, df: float | None) -> float:
    """Return the relative change of the CRPS of other rows, in per cent."""
    rng = np.random.default_rng(seed)
    known, new = made(rng, n, rms_z, df), made(rng, TEST_ROWS, rms_z, df)
    recalibrated = ss.Recalibrator().fit(known).apply(new)
    return 100 * (ss.scores.crps(recalibrated) / ss.scores.crps(new) - 1)


def main() -> None:
    """Print one line for each kind of rows and number of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=100)
    n_sets = parser.parse_args().sets
    warnings.simplefilter("ignore")
    print("# What recalibration with few rows costs, and gains\n")
    print(f"`python benchmarks/few_rows.py --sets {n_sets}`; ± one standard error.\n")
    print("| errors | RMS z | rows | change of the CRPS, % |")
    print("| --- | ---: | ---: | ---: |")
    for name, df in (("normal", None), ("t(5)", 5.0)):
        for rms_z in (1.0, 1.25):
            for n in (60, 250, 1000):
                found = [change((k, n), n, rms_z, df) for k in range(n_sets)]
                mean, error = np.mean(found), np.std(found) / np.sqrt(n_sets)
                cells = f"{name} | {rms_z:g} | {n:,} | {mean:+.2f} ± {error:.2f}"
                print(f"| {cells} |", flush=True)


if __name__ == "__main__":
    main()
