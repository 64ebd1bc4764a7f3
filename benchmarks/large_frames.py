"""Work of a sample and of new columns, in each engine of lazy frames.

    python benchmarks/large_frames.py --out benchmarks/studies/large_frames.md

Rows are in Parquet files. Each engine runs in a process of its own: Polars and DuckDB
with their threads, Dask with two processes, Spark with two executors of one core.
All need psutil, Dask also distributed, Spark `pip install sigmascale[spark]` and Java.
Lines are added to a table that is there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = {"y_std": "u", "error": "E", "features": ["mass", "charge", "kind"]}
ROWS_OF_A_FILE = 10_000_000
ROWS_TO_WARM_UP = 200_000

HEAD = f"""# Large frames

Seconds of processors, of all processes of an engine together, so that other \
programs on a shared machine of two cores count little; after a run over \
{ROWS_TO_WARM_UP:,} rows that starts the workers. *Own pass*: the engine reads the \
same columns, and writes them and one product. *Sample*: 100,000 rows by \
`frames.sample`. *New columns*: `frames.apply` with an interval, and the write of \
its three columns beside the others. Dask has two processes, Spark two executors. \
By `python benchmarks/large_frames.py --out benchmarks/studies/large_frames.md`, and \
with `--rows 3e7 1e8 --engines spark`.

| engine | rows | own pass, s | sample, s | new columns, s | rows a second a core | \
new columns : own pass |
| --- | --- | --- | --- | --- | --- | --- |
"""


def write(folder: Path, n: int) -> None:
    """Write so many rows, in files of ten million at most."""
    import polars as pl

    folder.mkdir()
    for start in range(0, n, ROWS_OF_A_FILE):
        rng = np.random.default_rng([n, start])
        size = min(ROWS_OF_A_FILE, n - start)
        u, mass = rng.lognormal(-1, 0.5, size), rng.uniform(10, 150, size)
        kind = rng.integers(0, 4, size)
        table = {
            "u": u,
            "mass": mass,
            "charge": rng.normal(size=size),
            "kind": np.array(["gas", "liquid", "solid", "glass"])[kind],
            "E": rng.normal(size=size) * u * np.exp(mass / 150 + 0.2 * kind),
        }
        path = folder / f"{start:012d}.parquet"
        pl.DataFrame(table).write_parquet(path, row_group_size=500_000)


@contextmanager
def started(engine: str) -> Iterator[tuple[Callable[..., Any], Callable[..., Any]]]:
    """Start an engine; yield what reads a folder lazily, and what writes a frame."""
    if engine == "polars":
        import polars as pl

        yield pl.scan_parquet, lambda frame, out: frame.sink_parquet(out)
    elif engine == "duckdb":
        import duckdb

        yield (
            lambda folder: duckdb.read_parquet(f"{folder}/*"),
            lambda frame, out: frame.write_parquet(out),
        )
    elif engine == "dask":
        import dask.dataframe as dd
        from dask.distributed import Client, LocalCluster

        size = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**size) as cluster, Client(cluster):
            yield (
                lambda folder: dd.read_parquet(folder, split_row_groups=True),
                lambda frame, out: frame.to_parquet(out),
            )
    else:
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        options = {
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # wait for both
            "spark.executor.memory": "2g",
            "spark.sql.files.maxPartitionBytes": "32m",  # both get as many
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        builder = SparkSession.builder.master("local-cluster[2,1,2048]")
        spark = builder.config(map=options).getOrCreate()
        yield spark.read.parquet, lambda frame, out: frame.write.parquet(out)
        spark.stop()


def run(engine: str, folder: Path) -> dict[str, float]:
    """Return seconds, those of the warm-up left out."""
    with started(engine) as (scan, sink):
        once(scan, sink, folder / "few")
        return once(scan, sink, folder / "many")


def used() -> float:
    """Return the seconds of processors of this process, and of all that it started."""
    import psutil

    this = psutil.Process()
    seconds = 0.0
    for process in [this, *this.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            of_those_that_ended = times.children_user + times.children_system
            seconds += times.user + times.system + of_those_that_ended
    return seconds


def once(
    scan: Callable[..., Any], sink: Callable[..., Any], folder: Path
) -> dict[str, float]:
    """Return seconds of the engine's own pass, of a sample, and of new columns."""
    import narwhals as nw

    import sigmascale as ss

    frame = scan(str(folder))
    seconds = {}
    with tempfile.TemporaryDirectory(dir=folder.parent) as out:
        began = used()
        product = nw.from_native(frame).with_columns(v=nw.col("u") * 1.1)
        sink(product.to_native(), f"{out}/own.parquet")
        seconds["own"] = used() - began

        began = used()
        known = ss.frames.sample(frame, n_rows=100_000, **COLUMNS)
        seconds["sample"] = used() - began

        r = ss.Recalibrator().fit(known)
        began = used()
        sink(ss.frames.apply(r, frame, coverage=0.95), f"{out}/new.parquet")
        seconds["apply"] = used() - began
    return seconds


def main() -> None:
    """Measure, and write a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7])
    parser.add_argument(
        "--engines", nargs="+", default=["polars", "duckdb", "dask", "spark"]
    )
    parser.add_argument("--out", type=Path, default=Path("large_frames.md"))
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        engine, folder = options.child
        print(json.dumps(run(engine, Path(folder))))
        return

    if not options.out.exists():
        options.out.write_text(HEAD, "utf-8")
    for n in map(int, options.rows):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder) / "few", ROWS_TO_WARM_UP)
            write(Path(folder) / "many", n)
            for engine in options.engines:
                command = [sys.executable, "-W", "ignore", __file__]
                answer = subprocess.check_output(
                    [*command, "--child", engine, folder], text=True
                )
                found = json.loads(answer.strip().splitlines()[-1])
                cells = [engine, f"{n:.0e}"]
                cells += [f"{found[what]:.1f}" for what in ("own", "sample", "apply")]
                cells.append(f"{n / found['apply']:,.0f}")
                cells.append(f"{found['apply'] / found['own']:.1f}")
                with options.out.open("a", encoding="utf-8") as table:
                    table.write(f"| {' | '.join(cells)} |\n")


if __name__ == "__main__":
    main()
