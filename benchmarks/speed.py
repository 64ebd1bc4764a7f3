"""Measure sigmascale against the limits of the machine and against other packages.

    make bench
    python benchmarks/speed.py --quick

Every number is a ratio within one run, or an exponent of growth: see README.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import large_frames
import numpy as np
import pandas as pd
from default_fit import default_against_lightgbm
from measure import Row, Task, best_seconds, growth, peak_bytes, table
from scipy import stats
from threadpoolctl import threadpool_limits

import sigmascale as ss

QM9_ROWS = 13_885  # the size of the test set of the published study
VALIDATED_ROWS = 10_000
N_RESAMPLES, N_DRAWS = 1500, 1000
TOLERANCE = 0.05  # of a measured exponent


@dataclass(frozen=True)
class Sample:
    """Predictions with a continuous feature and one of few values, as masses are."""

    u: np.ndarray
    error: np.ndarray
    features: dict[str, np.ndarray]

    @cached_property
    def table(self) -> np.ndarray:
        """The conditioning table."""
        return np.column_stack([self.u, *self.features.values()])


def sample(n_rows: int) -> Sample:
    """Return predictions whose uncertainties are too small."""
    rng = np.random.default_rng(n_rows)
    u = rng.gamma(3, 0.1, n_rows)
    features = {
        "charge": rng.normal(size=n_rows),
        "mass": np.round(rng.gamma(20, 6, n_rows)),
    }
    return Sample(u, 1.3 * u * rng.standard_normal(n_rows), features)


# --- one function a thing that is measured -------------------------------------------


def sort(data: Sample) -> Task:
    """Sort the uncertainties: the limit of what needs their order."""
    return partial(np.sort, data.u)


def argsort(data: Sample) -> Task:
    """Sort rows by their uncertainties: the limit of what needs rows in order."""
    return partial(np.argsort, data.u)


def fit_binwise(data: Sample) -> Task:
    """Fit 40 bins of u."""
    return lambda: ss.BinwiseScaling(n_bins=40).fit(data.u, data.error)


def predict_binwise(data: Sample) -> Task:
    """Rescale by 40 bins of u."""
    return partial(ss.BinwiseScaling(n_bins=40).fit(data.u, data.error).predict, data.u)


def fit_binwise_by_mass(data: Sample) -> Task:
    """Fit 40 bins of a feature with ties, resolved by u."""
    X = data.table
    return lambda: ss.BinwiseScaling(n_bins=40, by=2).fit(X, data.error)


def fit_cells(data: Sample) -> Task:
    """Fit cells of two columns."""
    X = data.table
    return lambda: ss.BinwiseScaling(n_bins=10, by=(0, 1)).fit(X, data.error)


def fit_groups(data: Sample) -> Task:
    """Fit one factor for each mass."""
    X = data.table
    return lambda: ss.CategoryScaling(by=2).fit(X, data.error)


def fit_alone(scaler: Any) -> Callable[[Sample], Task]:
    """Fit a recalibrator to uncertainties alone."""
    return lambda data: partial(scaler.fit, data.u, data.error)


def fit(scaler: Any) -> Callable[[Sample], Task]:
    """Fit a recalibrator to uncertainties and features."""
    return lambda data: partial(scaler.fit, data.table, data.error)


def predict(scaler: Any) -> Callable[[Sample], Task]:
    """Rescale, as learned from rows of which there are always as many."""
    few = sample(10**4)
    error = few.error * np.exp(few.features["charge"])  # there is something to learn
    return lambda data: partial(scaler.fit(few.table, error).predict, data.table)


def intervals(data: Sample) -> Task:
    """Learn from all rows how far errors reach, and return intervals of all rows."""
    scaler = ss.Recalibrator(ss.TemperatureScaling(), law="normal")
    scaler = scaler.fit(data.u, data.error)
    return lambda: scaler.conformalize(data.u, data.error).predict_interval(data.u)


def interval_scores(data: Sample) -> Task:
    """Score the intervals of normal errors."""
    return lambda: ss.interval_scores(data.error, ss.normal_interval(data.u))


def local_coverage(data: Sample) -> Task:
    """Return how often such intervals hold, by bins of u."""
    interval = ss.normal_interval(data.u)
    return lambda: ss.local_coverage(data.error, data.u, interval)


def metric(function: Callable[..., object], **options: int) -> Callable[[Sample], Task]:
    """Return one number, or a few, of all rows."""
    return lambda data: partial(function, data.error, data.u, **options)


def validate(data: Sample) -> Task:
    """Judge by u and two features, with as few simulated sets as there may be."""
    return partial(
        ss.validate, data.error, data.u, data.features, n_draws=40, n_resamples=20
    )


def choose_n_bins(data: Sample) -> Task:
    """Choose among three numbers of bins by cross-validation."""
    return lambda: ss.choose_n_bins(data.u, data.error, n_bins=(10, 20, 40))


def scorecard(data: Sample) -> Task:
    """Score by u and two features."""
    return partial(ss.scorecard, data.error, data.u, data.features)


def local_zms_by_mass(data: Sample) -> Task:
    """Return intervals of bins of a feature with ties, resolved by u."""
    by = data.features["mass"]
    return partial(ss.local_zms, data.error, data.u, by=by, n_resamples=20)


def local_zms(method: str, n_resamples: int = N_RESAMPLES) -> Callable[[Sample], Task]:
    """Return intervals of 100 bins."""
    return lambda data: partial(
        ss.local_zms, data.error, data.u, method=method, n_resamples=n_resamples
    )


def reference(n_draws: int) -> Callable[[Sample], Task]:
    """Return scores of simulated sets."""
    return lambda data: partial(
        ss.reference_scores, data.u, data.features, n_draws=n_draws
    )


def confidence_curve(data: Sample) -> Task:
    """Return the error left as uncertain rows are removed, with two simulated sets."""
    return partial(ss.confidence_curve, data.error, data.u, n_draws=2)


def draw_normals(data: Sample) -> Task:
    """Draw what :func:`reference` needs at least."""
    shape = (N_DRAWS, data.u.size)
    return lambda: np.random.default_rng(0).standard_normal(shape)


def scipy_bootstrap(data: Sample) -> Task:
    """Return BCa intervals of 100 bins, bin after bin."""
    z2 = ((data.error / data.u) ** 2)[np.argsort(data.u)]

    def loop() -> None:
        rng = np.random.default_rng(0)
        for values in np.array_split(z2, 100):
            stats.bootstrap(
                (values,), np.mean, n_resamples=N_RESAMPLES, method="BCa", rng=rng
            )

    return loop


def pandas_factors(data: Sample) -> Task:
    """Return bin-wise factors the way of a notebook."""

    def compute() -> pd.Series:
        frame = pd.DataFrame({"u": data.u, "z2": (data.error / data.u) ** 2})
        bins = pd.qcut(frame["u"], 40, labels=False)
        return np.sqrt(frame["z2"].groupby(bins).mean())

    return compute


def uncertainty_toolbox_factor(data: Sample) -> Task:
    """Return the one factor of Uncertainty Toolbox, found by a search."""
    from uncertainty_toolbox.recalibration import get_std_recalibrator

    zeros = np.zeros(data.u.size)
    return partial(get_std_recalibrator, zeros, data.u, data.error)


# --- the rows of the table: each function makes some ---------------------------------


def against_sorting(quick: bool) -> list[Row]:
    """Compare what works on all rows with sorting one column of them."""
    n_rows = 10**6 if quick else 10**7
    data = sample(n_rows)
    seconds = best_seconds(
        {
            "np.sort": sort(data),
            "fit": fit_binwise(data),
            "predict": predict_binwise(data),
            "scorecard": scorecard(data),
            "pandas": pandas_factors(data),
        },
        budget=2 if quick else 20,
    )
    at = f"np.sort(u), {n_rows:.0e} rows"
    return [
        quotient(f"BinwiseScaling.fit / {at}", seconds, "fit", "np.sort", at_most=0.8),
        quotient(f"  predict / {at}", seconds, "predict", "np.sort", at_most=0.8),
        quotient(
            f"scorecard, two features / {at}",
            seconds,
            "scorecard",
            "np.sort",
            at_most=5,
        ),
        quotient(
            f"pandas qcut and groupby / BinwiseScaling.fit, {n_rows:.0e} rows",
            seconds,
            "pandas",
            "fit",
        ),
    ]


def against_bootstrap(quick: bool) -> list[Row]:
    """Compare intervals of 100 bins with a loop over SciPy's."""
    data = sample(QM9_ROWS)
    seconds = best_seconds(
        {
            "scipy": scipy_bootstrap(data),
            "bca": local_zms("bca")(data),
            "moments": local_zms("moments")(data),
        },
        budget=2 if quick else 15,
    )
    loop = f"loop of scipy.stats.bootstrap / local_zms, {QM9_ROWS} rows"
    return [
        quotient(f"{loop}, bca", seconds, "scipy", "bca", at_least=20),
        quotient(f"{loop}, moments", seconds, "scipy", "moments", at_least=200),
    ]


def against_intervals(quick: bool) -> list[Row]:
    """Compare verdicts, with three features, with the intervals of the bins of u."""
    data = sample(VALIDATED_ROWS)
    features = {
        **data.features,
        "noise": np.random.default_rng(1).normal(size=data.u.size),
    }
    judge = partial(ss.validate, data.error, data.u, features)
    seconds = best_seconds(
        {
            "intervals": local_zms("bca")(data),
            "verdicts": partial(judge, joint=False),
            "joint": judge,
        },
        budget=2 if quick else 15,
    )
    name = f"validate, {VALIDATED_ROWS} rows / local_zms, bca"
    # before verdicts looked for regions, they took 33 times as long as the intervals
    return [
        quotient(f"{name}, not jointly", seconds, "verdicts", "intervals", at_most=50),
        quotient(f"{name}, jointly", seconds, "joint", "intervals", at_most=133),
    ]


def verdicts_against_sorting(quick: bool) -> list[Row]:
    """Compare verdicts on many rows, with five features, with sorting all columns."""
    rows = []
    for n_rows, most in ((10**5, 40), (10**6, 15))[: 1 if quick else 2]:
        rng = np.random.default_rng(0)
        u, X = rng.gamma(3, 1, n_rows), rng.normal(size=(n_rows, 5))
        error = rng.normal(scale=u)
        columns = [u, *X.T]
        seconds = best_seconds(
            {
                "sort": lambda columns=columns: [np.sort(each) for each in columns],
                "verdicts": partial(ss.validate, error, u, X),
            },
            budget=2 if quick else 15,
        )
        name = f"validate, {n_rows:.0e} rows, 5 features / np.sort of all columns"
        rows.append(quotient(name, seconds, "verdicts", "sort", at_most=most))
    return rows


def against_drawing(quick: bool) -> list[Row]:
    """Compare simulated scores with drawing the random numbers that they need."""
    data = sample(QM9_ROWS)
    seconds = best_seconds(
        {"draw": draw_normals(data), "reference": reference(N_DRAWS)(data)},
        budget=2 if quick else 15,
    )
    name = f"reference_scores / drawing {N_DRAWS} x {QM9_ROWS} normals"
    return [quotient(name, seconds, "reference", "draw", at_most=3)]


def against_uncertainty_toolbox(quick: bool) -> list[Row]:
    """Compare the fit of 40 factors with that of one by Uncertainty Toolbox."""
    n_rows = 10**4 if quick else 10**5
    data = sample(n_rows)
    seconds = best_seconds(
        {"theirs": uncertainty_toolbox_factor(data), "ours": fit_binwise(data)},
        budget=0,
        least=1,
    )
    name = f"uncertainty_toolbox std recalibrator / BinwiseScaling.fit, {n_rows:.0e}"
    least = None if quick else 100
    return [quotient(f"{name} rows", seconds, "theirs", "ours", at_least=least)]


def distributions(quick: bool) -> list[Row]:
    """Compare a fit of distributions with that of its scale, and CRPS with sorting."""
    rows = []
    for n_rows in (10**4,) if quick else (10**4, 10**5):
        data = sample(n_rows)
        seconds = best_seconds(
            {
                "scale": fit(ss.BoostedScaling())(data),
                "all": fit(ss.Recalibrator())(data),
            },
            budget=2 if quick else 20,
        )
        name = f"Recalibrator.fit / BoostedScaling.fit, {n_rows:.0e} rows"
        rows.append(quotient(name, seconds, "all", "scale", at_most=1.25))
    few, many = sample(10**4), sample(10**5 if quick else 10**6)
    found = ss.Recalibrator().fit(few.table, few.error)
    predicted = found.predict_distribution(many.table)
    seconds = best_seconds(
        {"sort": sort(many), "crps": lambda: predicted.crps(many.error)},
        budget=2 if quick else 10,
    )
    name = f"Distributions.crps / np.sort(u), {len(many.u):.0e} rows"
    return [*rows, quotient(name, seconds, "crps", "sort", at_most=5)]


MANY = (10**4, 10**5, 10**6, 10**7)
FEWER = MANY[:-1]
FEW = (3 * 10**3, 10**4, 3 * 10**4, 10**5)  # for what would take minutes
IN_MEMORY: dict[str, tuple[Callable[[Sample], Task], tuple[int, ...]]] = {
    "np.sort": (sort, MANY),
    "np.argsort": (argsort, MANY),
    "TemperatureScaling.fit": (fit_alone(ss.TemperatureScaling()), MANY),
    "BinwiseScaling.fit": (fit_binwise, MANY),
    "BinwiseScaling.predict": (predict_binwise, MANY),
    "BinwiseScaling.fit, feature with ties": (fit_binwise_by_mass, MANY),
    "BinwiseScaling.fit, cells": (fit_cells, MANY),
    "CategoryScaling.fit": (fit_groups, MANY),
    "IsotonicScaling.fit": (fit_alone(ss.IsotonicScaling()), MANY),
    "IsotonicScaling.predict": (predict(ss.IsotonicScaling()), MANY),
    "RakedScaling.predict": (predict(ss.RakedScaling()), MANY),
    "scorecard, two features": (scorecard, MANY),
    "local_zms, moments": (local_zms("moments"), MANY),
    "local_zms, bca, 20 resamples": (local_zms("bca", 20), MANY),
    "local_zms, bca, feature with ties": (local_zms_by_mass, MANY),
    "reference_scores, 2 draws": (reference(2), MANY),
    "confidence_curve, 2 draws": (confidence_curve, MANY),
    "conformalize and predict_interval": (intervals, MANY),
    "interval_scores": (interval_scores, MANY),
    "local_coverage": (local_coverage, MANY),
    "crps": (metric(ss.crps), MANY),
    "miscalibration_area": (metric(ss.miscalibration_area), MANY),
    "adversarial_group_calibration": (
        metric(ss.adversarial_group_calibration, n_trials=2, n_groups=2),
        FEWER,
    ),
    "LinearScaling.fit": (fit_alone(ss.LinearScaling()), MANY),
    "RakedScaling.fit": (fit(ss.RakedScaling()), FEWER),
    "BoostedScaling.fit, 5 trees": (fit(ss.BoostedScaling(max_trees=5)), FEWER),
    "BoostedScaling.predict": (predict(ss.BoostedScaling()), MANY),
    "validate, two features, 40 draws": (validate, MANY),
    "choose_n_bins": (choose_n_bins, FEWER),
    "SelectedScaling.fit": (fit(ss.SelectedScaling()), FEW),
}


def growth_with_rows(quick: bool) -> list[Row]:
    """Fit the exponents of time and memory."""
    seconds: dict[str, dict[int, float]] = {name: {} for name in IN_MEMORY}
    memory: dict[str, dict[int, float]] = {name: {} for name in IN_MEMORY}
    for n_rows in sorted({*MANY, *FEW}):
        if quick and n_rows > 10**6:
            break
        data = sample(n_rows)
        tasks = {
            name: make(data)
            for name, (make, sizes) in IN_MEMORY.items()
            if n_rows in sizes
        }
        # twice at least: the first run may have to wait for fresh memory
        for name, best in best_seconds(tasks, budget=2, least=2).items():
            seconds[name][n_rows] = best
        for name, task in tasks.items():
            memory[name][n_rows] = peak_bytes(task)
    rows = [_growth_row("time", *each) for each in seconds.items()]
    return rows + [_growth_row("memory", *each) for each in memory.items()]


def _growth_row(what: str, name: str, by_rows: dict[int, float]) -> Row:
    sizes, values = list(by_rows), list(by_rows.values())
    # a power law laid through n log n; np.sort and np.argsort show what caches add
    bound = 1.0 if what == "memory" else growth(sizes, [n * np.log(n) for n in sizes])
    limit = what == "time" and name in ("np.sort", "np.argsort")
    return Row(
        f"exponent of {what}, {sizes[0]:.0e} to {sizes[-1]:.0e} rows: {name}",
        growth(sizes, values),
        at_most=None if limit else bound + TOLERANCE,
        measured={"rows": sizes, "seconds" if what == "time" else "bytes": values},
    )


def frames_against_a_plain_query(quick: bool) -> list[Row]:
    """Fit, score and recalibrate Parquet files that are never read whole."""
    n_rows = 10**6 if quick else 10**8
    found = large_frames.measure(n_rows, 3)
    steps = [found[step] for step in ("fit", "scorecard", "predict")]
    seconds = {step: taken["seconds"] for step, taken in found.items()}
    return [
        Row(
            f"frames, {n_rows:.0e} rows: fit + scorecard + predict to Parquet"
            " / plain Polars query",
            large_frames.ratio(found, "predict", "seconds"),
            at_most=5.0,
            measured=dict(found),
        ),
        Row(
            "frames: the same in processor time, also of threads that write the file",
            large_frames.ratio(found, "predict", "cpu"),
        ),
        Row(
            "frames: the same in processor time, without the system's",
            large_frames.ratio(found, "predict", "user"),
        ),
        Row(
            "frames: the same with the new column alone in the file",
            large_frames.ratio(found, "predict, new column only", "seconds"),
        ),
        Row(
            "frames: fit + scorecard / plain Polars query",
            (seconds["fit"] + seconds["scorecard"]) / seconds["plain query"],
        ),
        Row(
            "frames: predict to Parquet / Polars copying the columns and one more",
            seconds["predict"] / seconds["plain copy"],
        ),
        Row("frames: peak memory, GiB", max(s["GiB"] for s in steps), at_most=2.0),
        Row(
            "frames, 1e6 rows: largest difference of factors from those in memory",
            large_frames.agreement(10**6),
            at_most=1e-3,
        ),
    ]


def quotient(
    name: str,
    seconds: dict[str, float],
    over: str,
    under: str,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> Row:
    """Return the row for one time divided by another."""
    measured = {f"seconds, {each}": seconds[each] for each in (over, under)}
    return Row(name, seconds[over] / seconds[under], at_most, at_least, measured)


# Add a function here to have its rows in the table.
SECTIONS: list[Callable[[bool], list[Row]]] = [
    against_sorting,
    against_bootstrap,
    against_intervals,
    verdicts_against_sorting,
    against_drawing,
    against_uncertainty_toolbox,
    distributions,
    growth_with_rows,
    default_against_lightgbm,
    frames_against_a_plain_query,
]


def main() -> None:
    """Print the table and write the JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller sets, a minute")
    parser.add_argument("--out", type=Path, default=Path("bench-output/speed.json"))
    options = parser.parse_args()
    rows = []
    for section in SECTIONS:
        made = section(options.quick)
        print(table(made), end="\n\n", flush=True)
        rows += made
    options.out.parent.mkdir(parents=True, exist_ok=True)
    written = {"quick": options.quick, "rows": [row.to_dict() for row in rows]}
    options.out.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    missed = sum(not row.met for row in rows)
    print(f"{len(rows)} rows, {missed} beyond their bounds; written to {options.out}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
