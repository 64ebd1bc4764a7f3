"""Fit, scorecard and predict-to-Parquet of a frame larger than memory.

``python large_frames.py --rows 1e8`` writes the data to a temporary folder (6 GB at
1e8 rows, with the output), runs each step in a process of its own, the best of some
runs, and prints its time, its largest resident memory, and the ratio of the three
steps to the plain query: one that reads the four columns and groups by a bin that was
computed beforehand. The plain copy is what Polars needs to read the four columns and
to write them with one more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from make_large import make_large

import sigmascale as ss

NAMES = {"error": "E", "uncertainty": "u"}
FEATURES = ["X1", "X2"]
STEPS = (
    *("plain query", "plain copy", "fit", "scorecard"),
    *("predict", "predict, new column only"),
)


def plain_query(frame: pl.LazyFrame) -> None:
    """Sum what a summary of bins sums, as one would write it down."""
    error, u = pl.col("E"), pl.col("u")
    z = error / u
    frame.group_by("bin").agg(
        pl.len().alias("n"),
        (z**2).sum().alias("z2"),
        (z**4).sum().alias("z4"),
        (z**6).sum().alias("z6"),
        (error**2).sum().alias("e2"),
        (u**2).sum().alias("u2"),
        (u**2).log().sum().alias("log_u2"),
        *(pl.col(c).min().alias(f"{c}_min") for c in ("u", *FEATURES)),
        *(pl.col(c).max().alias(f"{c}_max") for c in ("u", *FEATURES)),
    ).collect(engine="streaming")


def fit(frame: pl.LazyFrame) -> ss.BinwiseScaling:
    """Fit the recalibrator."""
    return ss.frames.fit(ss.BinwiseScaling(40), frame, **NAMES)


def run(step: str, folder: Path) -> None:
    """Do one step and print what it took."""
    frame = ss.frames.scan(folder / "data")
    model, target = folder / "scaler.json", folder / "new.parquet"
    table = frame.select("E", "u", *FEATURES)
    start, before = time.perf_counter(), os.times()
    match step:
        case "plain query":
            plain_query(frame)
        case "plain copy":
            ss.frames.sink(table.with_columns(u_doubled=2 * pl.col("u")), target)
        case "fit":
            ss.save(fit(frame), model)
        case "scorecard":
            ss.frames.scorecard(frame, features=FEATURES, **NAMES)
        case "predict":
            ss.frames.sink(ss.load(model).predict(table), target)
        case _:
            new = ss.load(model).predict(table).select("u_recalibrated")
            ss.frames.sink(new, target)
    seconds, after = time.perf_counter() - start, os.times()
    user, system = after.user - before.user, after.system - before.system
    # not `ru_maxrss`, which begins with the memory of the process that started this
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    peak = int(status.split("VmHWM:")[1].split()[0]) / 2**20
    taken = {"seconds": seconds, "cpu": user + system, "user": user, "GiB": peak}
    print(json.dumps(taken))


def agreement(n_rows: int) -> float:
    """Return the largest relative difference of factors from those in memory."""
    with tempfile.TemporaryDirectory() as folder:
        make_large(Path(folder), n_rows)
        frame = ss.frames.scan(folder)
        table = frame.select("u", "E").collect()
    in_memory = ss.BinwiseScaling(40).fit(table["u"], table["E"])
    return float(np.abs(fit(table.lazy()).factors_ / in_memory.factors_ - 1).max())


def measure(
    n_rows: int, repeat: int, parent: Path | None = None
) -> dict[str, dict[str, float]]:
    """Return what each step takes: seconds, processor seconds and GiB."""
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(dir=parent) as name:
        make_large(Path(name) / "data", n_rows)
        for step in STEPS * repeat:
            (Path(name) / "new.parquet").unlink(missing_ok=True)
            os.sync()  # or a step would pay for what the one before it has written
            command = [sys.executable, __file__, "--step", step, "--folder", name]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            taken = json.loads(done.stdout)
            before = found.setdefault(step, taken)
            found[step] = {
                unit: (max if unit == "GiB" else min)(before[unit], value)
                for unit, value in taken.items()
            }
    return found


def ratio(found: dict[str, dict[str, float]], last: str, unit: str) -> float:
    """Return what the three steps take, in plain queries."""
    ours = sum(found[step][unit] for step in ("fit", "scorecard", last))
    return ours / found["plain query"][unit]


def main() -> None:
    """Make the data, take the times, print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e8)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where there is room for the data")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        run(arguments.step, arguments.folder)
        return
    found = measure(int(arguments.rows), arguments.repeat, arguments.folder)
    print(f"{arguments.rows:.0e} rows           seconds  CPU seconds  user   GiB")
    for step, taken in found.items():
        print(
            f"{step:<25}{taken['seconds']:6.1f}{taken['cpu']:13.1f}"
            f"{taken['user']:6.1f}{taken['GiB']:6.2f}"
        )
    for last in STEPS[-2:]:
        for unit in ("seconds", "cpu", "user"):
            plain = ratio(found, last, unit)
            print(f"fit + scorecard + {last} : plain query = {plain:.2f} ({unit})")
    difference = agreement(1_000_000)
    print(
        f"factors at 1e6 rows differ from those in memory by {difference:.1e} at most"
    )


if __name__ == "__main__":
    main()
