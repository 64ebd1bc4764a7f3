"""Measure what guarantees hold: in parts, along a stream, of any regressor.

``python -m benchmarks.guarantees parts`` (or `rivals`, `sets`, `streams`, `regressors`,
`shift`) prints a table; ``--out FILE`` adds it to a file. What it printed is in
benchmarks/studies/guarantees.md.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import sigmascale as ss

Numbers = np.ndarray
SHAPES: dict[str, Callable[[Any, int], Numbers]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t(3)": lambda rng, n: rng.standard_t(3, n),
    "skewed": lambda rng, n: rng.exponential(size=n) - 1,
}


def interval_score(error: Numbers, limits: Numbers, coverage: float) -> Numbers:
    """Return the interval score of each row: width, and what misses cost."""
    low, high = limits.T
    below = np.maximum(low - error, 0)
    above = np.maximum(error - high, 0)
    return high - low + 2 / (1 - coverage) * (below + above)


def mean_and_error(values: Any) -> tuple[float, float]:
    """Return the mean of what is known, and its standard error."""
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    error = known.std(ddof=1) / np.sqrt(known.size) if known.size > 1 else np.nan
    return float(known.mean()) if known.size else np.nan, max(float(error), 1e-9)


# -- parts -----------------------------------------------------------------------------


def world(n_rows: int, seed: Any, shape: str) -> ss.Predictions:
    """Return rows with labels of 8 and 20 % and a corner that a line in u misses."""
    rng = np.random.default_rng(seed)
    u = rng.lognormal(0, 0.4, n_rows)
    x = rng.uniform(size=n_rows)
    label = rng.choice(["most", "some", "rare"], n_rows, p=[0.72, 0.2, 0.08])
    scale = u * (1 + 0.7 * (x > 0.8)) * np.where(label == "rare", 1.5, 1.0)
    error = scale * SHAPES[shape](rng, n_rows)
    return ss.Predictions(y_std=u, error=error, features={"x": x, "label": label})


def parts_of(rows: ss.Predictions, edges: dict[str, Numbers]) -> dict[str, Numbers]:
    """Return which rows are in each named part; fifths lie between given edges."""
    labels = rows.features["label"]
    parts = {"rare": labels == "rare", "some": labels == "some"}
    for name, column in (("u", rows.y_std), ("x", rows.features["x"])):
        fifth = np.searchsorted(edges[name], column, side="right")
        for k in range(edges[name].size + 1):
            parts[f"{name}, bin {k + 1}"] = fifth == k
    return parts


def edges_of(recalibrator: ss.Recalibrator) -> dict[str, Numbers]:
    """Return where a recalibrator has cut the columns of numbers."""
    names = recalibrator.names_
    return {
        names[axis.column]: axis.edges
        for axis in recalibrator.parts_.axes
        if axis.edges is not None
    }


def parts(n_sets: int) -> Iterator[str]:
    """Cover parts with rows held out and out of fold, against all rows without."""
    yield (
        "| rows | errors | asked | parts told by rows | held of all | least part "
        "| its name | lowest in s.e. from what was asked | infinite "
        "| score of finite rows, without parts = 1 |"
    )
    yield f"|{' --- |' * 10}"
    for n_rows in (300, 1000):
        for shape in SHAPES:
            for coverage in (0.9, 0.95):
                yield from _cell_of_parts(n_rows, shape, coverage, n_sets)


def _cell_of_parts(
    n_rows: int, shape: str, coverage: float, n_sets: int
) -> Iterator[str]:
    """Return a line for each way: coverage of parts over so many sets."""
    ways = {
        "held out": {"hold_out": 0.5},
        "out of fold": {},
    }
    held = {way: defaultdict(list) for way in ways}
    whole = defaultdict(list)
    infinite = defaultdict(list)
    ratio = defaultdict(list)
    for seed in range(n_sets):
        known = world(n_rows, [seed, 0], shape)
        new = world(2000, [seed, 1], shape)
        plain = ss.Recalibrator(ss.LinearScaling()).fit(known)
        limits = plain.apply(new).distributions.interval(coverage)
        plain_score = interval_score(new.error, limits, coverage)
        for way, options in ways.items():
            names = ["label", "u", "x"]
            found = ss.Recalibrator(ss.LinearScaling(), parts=names, **options)
            limits = found.fit(known).apply(new).distributions.interval(coverage)
            is_held = (limits[:, 0] <= new.error) & (new.error <= limits[:, 1])
            is_finite = np.isfinite(limits).all(axis=1)
            for name, own in parts_of(new, edges_of(found)).items():
                held[way][name].append(is_held[own].mean())
            whole[way].append(is_held.mean())
            infinite[way].append(1 - is_finite.mean())
            score = interval_score(new.error, limits, coverage)[is_finite]
            ratio[way].append(score.mean() / plain_score[is_finite].mean())
    for way in ways:
        means = {name: mean_and_error(values) for name, values in held[way].items()}
        least = min(means, key=lambda name: means[name][0])
        in_errors = min((mean - coverage) / error for mean, error in means.values())
        score, error = mean_and_error(ratio[way])
        yield (
            f"| {n_rows} | {shape} | {coverage} | {way} | {np.mean(whole[way]):.3f} "
            f"| {means[least][0]:.3f} ± {means[least][1]:.3f} | {least} "
            f"| {in_errors:+.1f} | {np.mean(infinite[way]):.1%} "
            f"| {score:.3f} ± {error:.3f} |"
        )


STUDIES = {"parts": (parts, 200)}


def main() -> None:
    """Run a study, and print what it finds as it comes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guarantees")
    parser.add_argument("study", choices=list(STUDIES))
    parser.add_argument("--sets", type=int, help="how many sets, streams or seeds")
    parser.add_argument("--out", type=Path, help="file that the lines are added to")
    options = parser.parse_args()
    study, n_sets = STUDIES[options.study]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in study(options.sets or n_sets):
            print(line, flush=True)
            if options.out is not None:
                with options.out.open("a") as file:
                    file.write(f"{line}\n")


if __name__ == "__main__":
    main()
