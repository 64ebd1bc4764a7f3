"""Times of fits and predictions, relative to an earlier release and to a sort.

    python benchmarks/speed.py --old /path/to/python [--quick] [--out speed.md]

`--old` is an interpreter that has the earlier release installed; without it, seconds
are shown alone. Both run the same tasks on the same rows, in turn, each in its own
process, on one thread, and the shortest of several times counts.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything reads it

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row, Task, best_seconds, seconds, table

import sigmascale as ss

N_LEARNED = 10_000  # rows that what predicts was fitted to


def rows(n: int, n_columns: int, seed: int) -> Any:
    """Return predictions with so many columns, the uncertainty among them."""
    rng = np.random.default_rng(seed)
    u, X = rng.lognormal(0, 0.6, n), rng.normal(size=(n, n_columns - 1))
    log = 0.3 * X[:, 0] + 0.2 * np.sin(2 * X[:, 1]) * (X[:, -1] > 0)
    error = rng.standard_t(5, size=n) * u**0.8 * np.exp(log)
    names = [f"x{j}" for j in range(n_columns - 1)]
    features = dict(zip(names, X.T, strict=True))
    return ss.Predictions(y_std=u, error=error, features=features)


def fit(n: int, n_columns: int) -> Task:
    """Fit the default."""
    data = rows(n, n_columns, 0)
    return lambda: ss.Recalibrator().fit(data)


def predict(n: int, n_columns: int) -> Task:
    """Rescale rows as a default fit says."""
    fitted = ss.Recalibrator().fit(rows(N_LEARNED, n_columns, 0))
    return partial(fitted.predict, rows(n, n_columns, 1))


TASKS: dict[str, tuple[Callable[[int, int], Task], int, int, float]] = {
    "fit, 300 rows, 4 columns": (fit, 300, 4, 1.2),
    "fit, 3,000 rows, 4 columns": (fit, 3_000, 4, 1.2),
    "fit, 30,000 rows, 4 columns": (fit, 30_000, 4, 1.2),
    "predict, 1,000 rows, 4 columns": (predict, 1_000, 4, 0.2),
    "predict, 1,000 rows, 20 columns": (predict, 1_000, 20, 0.2),
    "predict, 10⁶ rows, 4 columns": (predict, 10**6, 4, 2.0),
    "predict, 10⁶ rows, 20 columns": (predict, 10**6, 20, 2.0),
}


def serve() -> None:
    """Time one task after the other, as standard input asks for them."""
    fit(300, 4)()  # what is imported where it is first used does not count
    ready: dict[str, Task] = {}
    for line in sys.stdin:
        name = json.loads(line)
        if name not in ready:
            make, n, n_columns, _ = TASKS[name]
            ready = {name: make(n, n_columns)}
        print(json.dumps(seconds(ready[name])), flush=True)


def compared(old: str | None, rounds: int, only: str) -> list[Row]:
    """Return the ratio of our times to those of the earlier release."""
    found, process = [], None
    fit(300, 4)()
    if old is not None:
        command = [old, "-W", "ignore", __file__, "--serve"]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
    for name, (make, n, n_columns, bound) in TASKS.items():
        if not name.startswith(only):
            continue
        ours, mine, theirs = make(n, n_columns), float("inf"), float("inf")
        for _ in range(rounds):
            mine = min(mine, seconds(ours))
            if process is not None and process.stdin and process.stdout:
                process.stdin.write(json.dumps(name) + "\n")
                process.stdin.flush()
                theirs = min(theirs, json.loads(process.stdout.readline()))
        if process is None:
            found.append(Row(f"{name}, seconds", mine))
        else:
            words = f"{mine:.3g} s and {theirs:.3g} s"
            found.append(Row(f"{name}, ratio", mine / theirs, bound, words))
        print(found[-1], flush=True)
    if process is not None:
        process.terminate()
        process.wait()
    return found


def against_a_sort(n: int) -> Row:
    """Return the time of a bin-wise fit, in sorts of the same rows."""
    rng = np.random.default_rng(0)
    u = rng.lognormal(0, 0.6, n)
    data = ss.Predictions(y_std=u, error=rng.normal(size=n) * u)
    scaling = ss.BinwiseScaling(n_bins=40)
    took = best_seconds(
        {"fit": lambda: scaling.learn(data), "sort": lambda: np.sort(u)}
    )
    words = f"{took['fit']:.3g} s and {took['sort']:.3g} s"
    name = f"learn BinwiseScaling(40), {n:.0e} rows, sorts"
    return Row(name, took["fit"] / took["sort"], 1.2, words)


def sizes(columns: tuple[int, ...]) -> list[Row]:
    """Return the sizes of saved defaults."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for n_columns in columns:
            path = Path(folder) / "r.json"
            ss.Recalibrator().fit(rows(30_000, n_columns, 0)).save(path)
            size = path.stat().st_size / 1e6
            found.append(Row(f"saved default, {n_columns} columns, MB", size, 2.0))
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", help="interpreter with the earlier release")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="one round, fewer rows")
    parser.add_argument("--only", default="", help="tasks whose names begin so")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.serve:
        serve()
        return
    found = compared(options.old, 1 if options.quick else 5, options.only)
    if not options.only:
        found.append(against_a_sort(10**6 if options.quick else 10**7))
        found += sizes((3, 10) if options.quick else (3, 10, 30, 100))
    page = table(found)
    print(page)
    if options.out is not None:
        options.out.write_text(page + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
