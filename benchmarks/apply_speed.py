"""Measure how fast the command line starts and works.

`sigmascale apply` on a CSV file of 10^6 rows and 5 columns is compared with a process
in which Polars reads and writes that file, and `sigmascale --help` with one that
imports NumPy: 3 times as long is acceptable. The two are timed in turn, and the best
of each counts, so that other work on the machine disturbs little.

    python benchmarks/apply_speed.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

ROWS = 1_000_000
LIMIT = 3.0
METHODS = ("temperature", "isotonic", "binwise", "raked", "boosted", "auto")
PYTHON = [sys.executable]
SIGMASCALE = [sys.executable, "-m", "sigmascale"]
POLARS = [*PYTHON, "-c", "import polars as p; p.read_csv('a.csv').write_csv('b.csv')"]


def seconds(command, folder):
    """Return how long a process takes."""
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - started


def compare(name, ours, theirs, folder, repeats):
    """Print how many times longer our process takes than the other."""
    times = [(seconds(ours, folder), seconds(theirs, folder)) for _ in range(repeats)]
    mine, other = (min(column) for column in zip(*times, strict=True))
    verdict = "within" if mine <= LIMIT * other else "ABOVE"
    print(
        f"{name:<20} {mine:6.2f} s, {mine / other:5.2f} times {other:.2f} s "
        f"({verdict} {LIMIT:.0f})",
        flush=True,
    )


def write_tables(folder):
    """Write a large table, and a small one like it with which to fit."""
    rng = np.random.default_rng(0)
    u = rng.gamma(4.0, 0.1, ROWS)
    mass, x, y = rng.uniform(20.0, 140.0, ROWS), *rng.normal(size=(2, ROWS))
    error = rng.normal(scale=u * mass / 60 * np.exp(0.3 * x))
    table = pl.DataFrame({"E": error, "u": u, "mass": mass, "x": x, "y": y})
    table.write_csv(folder / "a.csv")
    table[:5000].write_csv(folder / "cal.csv")


def main():
    """Print the times."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        numpy = [*PYTHON, "-c", "import numpy"]
        compare("--help", [*SIGMASCALE, "--help"], numpy, folder, repeats=9)
        write_tables(folder)
        for method in METHODS:
            options = ["--all-features", "--method", method, "-o", "s.json"]
            seconds([*SIGMASCALE, "fit", "cal.csv", *options], folder)
            ours = [*SIGMASCALE, "apply", "s.json", "a.csv", "-o", "c.csv"]
            compare(f"apply, {method}", ours, POLARS, folder, repeats=3)


if __name__ == "__main__":
    main()
