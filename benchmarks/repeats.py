"""Measure how often intervals of <Z²> contain the truth when rows come in groups.

Rows of a group have z = sqrt(rho) a + sqrt(1 - rho) e, with a common to the group and
everything normal: perfectly calibrated, but not independent. Rows are judged in ten
bins of a variable that is the same in a whole group ("whole"), in ten bins of one that
differs from row to row ("mixed"), and all together ("overall", the closed form).

    python benchmarks/repeats.py

prints a Markdown table, the one of `docs/repeats.md`; --sets sets the number of sets.
"""

from __future__ import annotations

import argparse

import numpy as np

import sigmascale as ss

SHAPES = ((250, 4), (500, 2), (82, 5))
CORRELATIONS = (0.5, 0.9)
METHODS = ("moments", "student", "bca", "bootstrap-t")
N_BINS = 10


def calibrated_repeats(n_groups, size, rho, rng):
    """Return errors, uncertainties, groups, and a variable of each kind."""
    groups = np.repeat(np.arange(n_groups), size)
    common = rng.normal(size=n_groups)[groups]
    z = np.sqrt(rho) * common + np.sqrt(1 - rho) * rng.normal(size=groups.size)
    u = rng.uniform(1, 2, groups.size)
    variables = {"whole": rng.random(n_groups)[groups], "mixed": rng.random(u.size)}
    return z * u, u, groups, variables


def coverage(n_groups, size, rho, method, n_sets, *, grouped, seed=0):
    """Return the share of intervals that contain 1: of bins, and of all rows."""
    rng = np.random.default_rng(seed)
    hits = {"whole": [], "mixed": [], "overall": []}
    for _ in range(n_sets):
        error, u, groups, variables = calibrated_repeats(n_groups, size, rho, rng)
        for name, by in variables.items():
            local = ss.local_zms(
                error,
                u,
                by=by,
                groups=groups if grouped else None,
                n_bins=N_BINS,
                method=method,
            )
            hits[name].append(local.fraction_valid)
        _, low, high = local.overall
        hits["overall"].append(low <= 1 <= high)
    return {name: float(np.mean(each)) for name, each in hits.items()}


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=2000)
    n_sets = parser.parse_args().sets
    cases = [("rows", "moments"), *(("groups", method) for method in METHODS)]
    print("| groups × rows | ρ | counted | method | whole | mixed | overall |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for n_groups, size in SHAPES:
        for rho in CORRELATIONS:
            for counted, method in cases:
                found = coverage(
                    n_groups, size, rho, method, n_sets, grouped=counted == "groups"
                )
                cells = " | ".join(f"{100 * each:.1f}" for each in found.values())
                print(
                    f"| {n_groups} × {size} | {rho} | {counted} | {method} | {cells} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
