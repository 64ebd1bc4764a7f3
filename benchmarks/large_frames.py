"""Time and memory of a sample and of new columns, in each engine of lazy frames.

    python benchmarks/large_frames.py [--rows 1e7] [--engines polars duckdb dask]

Rows are in a Parquet file; each engine runs in a process of its own, whose peak memory
is shown beside the size of the columns that are read.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = {"y_std": "u", "error": "E", "features": ["mass", "charge", "kind"]}


def write(path: Path, n: int) -> None:
    """Write a table of so many rows."""
    import polars as pl

    rng = np.random.default_rng(0)
    u, mass = rng.lognormal(-1, 0.5, n), rng.uniform(10, 150, n)
    kind = rng.integers(0, 4, n)
    table = {
        "u": u,
        "mass": mass,
        "charge": rng.normal(size=n),
        "kind": np.array(["gas", "liquid", "solid", "glass"])[kind],
        "E": rng.normal(size=n) * u * np.exp(mass / 150 + 0.2 * kind),
    }
    pl.DataFrame(table).write_parquet(path, row_group_size=500_000)


def scan(engine: str, path: Path) -> Any:
    """Return a lazy frame."""
    if engine == "polars":
        import polars as pl

        return pl.scan_parquet(path)
    if engine == "duckdb":
        import duckdb

        return duckdb.read_parquet(str(path))
    import dask.dataframe as dd

    return dd.read_parquet(path, split_row_groups=True)


def run(engine: str, path: Path, out: Path) -> dict[str, float]:
    """Return seconds and memory of a sample, a fit, and new columns in a file."""
    import sigmascale as ss

    frame, took = scan(engine, path), {}
    began = time.perf_counter()
    rows = ss.frames.sample(frame, n_rows=100_000, **COLUMNS)
    took["sample"] = time.perf_counter() - began
    r = ss.Recalibrator().fit(rows)
    began = time.perf_counter()
    new = ss.frames.apply(r, frame, interval=0.95)
    if engine == "polars":
        new.sink_parquet(out)
    elif engine == "duckdb":
        new.write_parquet(str(out))
    else:
        new.to_parquet(out)
    took["apply"] = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return took | {"GB": peak * (1 if sys.platform == "darwin" else 1024) / 1e9}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--engines", nargs="+", default=["polars", "duckdb", "dask"])
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        engine, path, out = options.child
        print(json.dumps(run(engine, Path(path), Path(out))))
        return
    n = int(options.rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, n)
        print(f"{n:.0e} rows, {path.stat().st_size / 1e9:.2f} GB\n")
        print("| engine | sample, s | new columns, s | peak memory, GB |")
        print("| --- | --- | --- | --- |")
        for engine in options.engines:
            command = [sys.executable, "-W", "ignore", __file__, "--child", engine]
            out = Path(folder) / f"{engine}.parquet"
            answer = subprocess.check_output([*command, str(path), str(out)], text=True)
            found = json.loads(answer.strip().splitlines()[-1])
            times = f"{found['sample']:.1f} | {found['apply']:.1f}"
            print(f"| {engine} | {times} | {found['GB']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
