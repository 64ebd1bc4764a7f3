"""Measure how the time of `sigmascale fit --all-features` grows with the columns.

    python benchmarks/columns.py --columns 4000

Processor time of whole processes; twice the columns should take about twice as long.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

ROWS = 40


def seconds_of_fit(n_columns: int, folder: Path) -> float:
    """Return the processor time of a fit with so many features."""
    rng = np.random.default_rng(n_columns)
    features = {f"x{i}": rng.random(ROWS) for i in range(n_columns)}
    table = pl.DataFrame({"E": rng.normal(size=ROWS), "u": np.ones(ROWS), **features})
    table.write_csv(folder / "table.csv")
    arguments = ["--all-features", "--method", "temperature", "-o", "scaler.json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "sigmascale", "fit", "table.csv", *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        msg = f"the fit with {n_columns} features failed"
        raise RuntimeError(msg)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print the times of two widths, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, default=4000)
    n_columns = parser.parse_args().columns
    with tempfile.TemporaryDirectory() as name:
        once, twice = (
            seconds_of_fit(each, Path(name)) for each in (n_columns, 2 * n_columns)
        )
    print(f"{n_columns} columns: {once:.2f} s; {2 * n_columns} columns: {twice:.2f} s")
    print(f"ratio {twice / once:.2f}")


if __name__ == "__main__":
    main()
