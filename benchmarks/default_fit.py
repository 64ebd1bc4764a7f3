"""Measure how long a user of the default recalibrator waits, against LightGBM.

    python benchmarks/default_fit.py 10000 100000

`lightgbm.cv` grows gamma boosters of the same depth, rate and number of trees on the
same folds as `BoostedScaling`: trees that were grown, not only those that were kept.
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
from measure import Row, best_seconds, peak_bytes, table
from threadpoolctl import threadpool_limits

import sigmascale as ss
from sigmascale.scaling.crossfit import make_folds

N_FOLDS = 5


def made(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a conditioning table with few telling columns, and errors."""
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, n_columns))
    X[:, 0] = np.exp(0.3 * X[:, 0])
    log_factor = 0.5 * X[:, 1]
    if n_columns < 100:
        log_factor += 0.25 * X[:, 2] * X[:, 3]
    return X, X[:, 0] * np.exp(log_factor) * rng.normal(size=n_rows)


def boost_with_lightgbm(X: np.ndarray, error: np.ndarray, n_trees: int) -> None:
    """Cross-validate gamma boosters of squared z-scores."""
    import lightgbm

    z2 = (error / X[:, 0]) ** 2 + 1e-9  # a gamma law has no zeros
    fold = make_folds(z2, N_FOLDS, np.random.default_rng(0), None)
    pairs = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]
    options = {
        "objective": "gamma",
        "max_depth": 3,
        "num_leaves": 8,
        "learning_rate": 0.05,
        "min_data_in_leaf": 50,
        "num_threads": 1,
        "verbose": -1,
    }
    lightgbm.cv(options, lightgbm.Dataset(X, z2), num_boost_round=n_trees, folds=pairs)


def rows_for(n_rows: int, n_columns: int, *, budget: float) -> list[Row]:
    """Return the ratios of times, and of memory to the input."""
    X, error = made(n_rows, n_columns)
    boosted = ss.BoostedScaling().fit(X, error)
    n_trees = boosted.cv_loss_.size - 1
    tasks = {
        "lightgbm.cv": partial(boost_with_lightgbm, X, error, n_trees),
        "BoostedScaling": partial(ss.BoostedScaling().fit, X, error),
        "SelectedScaling": partial(ss.SelectedScaling().fit, X, error),
    }
    seconds = best_seconds(tasks, budget=budget, least=1 if n_rows > 2e5 else 3)
    name = f"{n_rows:.0e} x {n_columns}"
    measured = {f"seconds, {task}": taken for task, taken in seconds.items()}
    measured["trees"] = n_trees

    def quotient(over: str, under: str, at_most: float) -> Row:
        ratio = seconds[over] / seconds[under]
        return Row(f"{name}: {over} / {under}", ratio, at_most, measured=measured)

    if n_columns > 100:
        return [quotient("SelectedScaling", "lightgbm.cv", 3.0)]
    input_bytes = X.nbytes + error.nbytes
    memory = peak_bytes(tasks["SelectedScaling"]) / input_bytes
    return [
        quotient("BoostedScaling", "lightgbm.cv", 1.7),
        quotient("SelectedScaling", "BoostedScaling", 1.7),
        Row(f"{name}: memory of SelectedScaling / input", memory, 8.0),
    ]


def default_against_lightgbm(quick: bool) -> list[Row]:
    """Return the rows of all sizes."""
    sizes = [10_000, 100_000] if quick else [10_000, 100_000, 1_000_000]
    rows = rows_for(1000, 200, budget=5.0)
    for n_rows in sizes:
        rows += rows_for(n_rows, 9, budget=10.0)
    return rows


if __name__ == "__main__":
    with threadpool_limits(1):
        for size in map(int, sys.argv[1:] or ["10000"]):
            print(table(rows_for(size, 9, budget=10.0)), flush=True)
        print(table(rows_for(1000, 200, budget=5.0)))
