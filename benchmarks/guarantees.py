"""Measure what guarantees hold: in parts, along a stream, of any regressor.

``python -m benchmarks.guarantees parts`` (or `streams`, `rivals_of_streams`,
`regressors`, `shift`) prints a table; ``--out FILE`` adds it to a file. What it printed
is in benchmarks/studies/guarantees.md.
"""

from __future__ import annotations

import argparse
import os
import time
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
            yield from _cell_of_parts(n_rows, shape, n_sets)


WAYS: dict[str, dict[str, Any]] = {
    "none": {},
    "held out": {"parts": ["label", "u", "x"], "hold_out": 0.5},
    "out of fold": {"parts": ["label", "u", "x"]},
}


def _cell_of_parts(n_rows: int, shape: str, n_sets: int) -> Iterator[str]:
    """Return a line for each coverage and way: coverage of parts over many sets."""
    held: dict[Any, Any] = {}
    whole = defaultdict(list)
    infinite = defaultdict(list)
    ratio = defaultdict(list)
    for seed in range(n_sets):
        known = world(n_rows, [seed, 0], shape)
        new = world(1000, [seed, 1], shape)
        found = {
            way: ss.Recalibrator(ss.TemperatureScaling(), **options).fit(known)
            for way, options in WAYS.items()
        }
        distributions = {way: r.apply(new).distributions for way, r in found.items()}
        for coverage in (0.9, 0.95):
            limits = distributions["none"].interval(coverage)
            plain_score = interval_score(new.error, limits, coverage)
            for way in ("held out", "out of fold"):
                limits = distributions[way].interval(coverage)
                score = interval_score(new.error, limits, coverage)
                is_held = (limits[:, 0] <= new.error) & (new.error <= limits[:, 1])
                is_finite = np.isfinite(limits).all(axis=1)
                cell = (coverage, way)
                parts_of_cell = held.setdefault(cell, defaultdict(list))
                for name, own in parts_of(new, edges_of(found[way])).items():
                    parts_of_cell[name].append(is_held[own].mean())
                whole[cell].append(is_held.mean())
                infinite[cell].append(1 - is_finite.mean())
                # a set in which all rows are infinite has no score
                if is_finite.any():
                    plain = plain_score[is_finite].mean()
                    ratio[cell].append(score[is_finite].mean() / plain)
    for cell, parts_of_cell in held.items():
        coverage, way = cell
        means = {name: mean_and_error(values) for name, values in parts_of_cell.items()}
        least = min(means, key=lambda name: means[name][0])
        in_errors = min((mean - coverage) / error for mean, error in means.values())
        score, error = mean_and_error(ratio[cell])
        yield (
            f"| {n_rows} | {shape} | {coverage} | {way} | {np.mean(whole[cell]):.3f} "
            f"| {means[least][0]:.3f} ± {means[least][1]:.3f} | {least} "
            f"| {in_errors:+.1f} | {np.mean(infinite[cell]):.1%} "
            f"| {score:.3f} ± {error:.3f} |"
        )


# -- streams ---------------------------------------------------------------------------

KNOWN, LENGTH, WINDOW = 1000, 3000, 200
START = 1000  # where changes begin


def stream(kind: str, seed: int) -> tuple[ss.Predictions, ss.Predictions]:
    """Return rows to learn from, and a stream that goes on, changed in some way."""
    rng = np.random.default_rng(seed)
    n = KNOWN + LENGTH
    t = np.arange(n) - KNOWN
    u = rng.lognormal(0, 0.4, n)
    x = rng.uniform(size=n)
    scale = u * np.exp(0.7 * x)
    is_late = t >= START
    factor = {
        "none": np.ones(n),
        "abrupt": np.where(is_late, 2.0, 1.0),
        "pulse": np.where(is_late & (t < START + 700), 2.2, 1.0),
        "slow": 1 + 1.5 * np.maximum(t, 0) / LENGTH,
        "season": np.exp(0.6 * np.sin(2 * np.pi * np.maximum(t, 0) / 800)),
        "region": np.where(is_late & (x > 0.7), 2.5, 1.0),
        "bias": np.ones(n),
    }[kind]
    bias = np.where(is_late, 1.2, 0.0) if kind == "bias" else 0.0
    error = scale * (factor * rng.normal(size=n) + bias)
    p = ss.Predictions(y_std=u, error=error, features={"x": x})
    return p.take(np.arange(KNOWN)), p.take(np.arange(KNOWN, n))


STREAMS = ("none", "abrupt", "pulse", "slow", "season", "region", "bias")


def weather(name: str) -> tuple[ss.Predictions, ss.Predictions]:
    """Return the first fifth of the days of a real set, and the others, as groups.

    The folder of sets is that of the environment variable SIGMASCALE_SETS.
    """
    import polars as pl

    table = pl.read_csv(Path(os.environ["SIGMASCALE_SETS"]) / f"{name}.csv.gz")
    features = [column for column in table.columns if column[:1] == "X"]
    days = table["group"].to_numpy()
    first_of_day = {day: k for k, day in enumerate(dict.fromkeys(days.tolist()))}
    number = np.array([first_of_day[day] for day in days.tolist()])
    p = ss.Predictions(
        y_std=table["u"].to_numpy(),
        error=table["E"].to_numpy(),
        features={column: table[column].to_numpy() for column in features},
        groups=number,
    )
    is_known = number < 0.2 * len(first_of_day)
    return p.take(np.flatnonzero(is_known)), p.take(np.flatnonzero(~is_known))


def followed(
    r: ss.Recalibrator, rows: ss.Predictions, batches: list[Numbers]
) -> Numbers:
    """Return the limits that rows were given: by a follower that knows those before."""
    follower = ss.Follower(r, 0.9)
    median = r.apply(rows).distributions.quantile([0.5])
    still = follower.interval(rows) - median  # before any row has come
    limits = np.empty((len(rows), 2))
    for batch in batches:
        limits[batch] = median[batch] + follower.stretch * still[batch]
        follower.update(rows.take(batch))
    return limits


def told_of(error: Numbers, limits: Numbers) -> tuple[float, float, float]:
    """Return coverage, that of the worst window of 200 rows, and the interval score."""
    is_held = (limits[:, 0] <= error) & (error <= limits[:, 1])
    finite = np.isfinite(limits).all(axis=1)
    sums = np.concatenate([[0], np.cumsum(is_held)])
    worst = (sums[WINDOW:] - sums[:-WINDOW]).min() / WINDOW
    score = interval_score(error, limits, 0.9)[finite].mean()
    return float(is_held.mean()), float(worst), float(score)


def without_groups(p: ss.Predictions) -> ss.Predictions:
    """Return rows that are taken one by one."""
    return ss.Predictions(y_std=p.y_std, error=p.error, features=p.features)


def streams(n_seeds: int) -> Iterator[str]:
    """Follow seven streams and two real ones, row by row and in batches of 50."""
    yield "| stream | truths come | held | worst 200 rows | static, worst | score |"
    yield f"|{' --- |' * 6}"
    cases: dict[str, list[Any]] = {
        kind: [stream(kind, seed) for seed in range(n_seeds)] for kind in STREAMS
    }
    if "SIGMASCALE_SETS" in os.environ:
        for name in ("weather_temperature_8member", "weather_rain_9member"):
            cases[name] = [weather(name)]
            cases[f"{name}, days as groups"] = cases[name]
    for name, pairs in cases.items():
        found = defaultdict(list)
        for known, rows in pairs:
            r = ss.Recalibrator().fit(known)
            by_day = "groups" in name
            if not by_day:
                rows = without_groups(rows)
            static = r.apply(rows).distributions.interval(0.9)
            still = told_of(rows.error, static)
            ways = {
                "one by one": [np.array([k]) for k in range(len(rows))],
                "50 at a time": np.array_split(
                    np.arange(len(rows)), max(1, len(rows) // 50)
                ),
            }
            if by_day:
                days = dict.fromkeys(rows.groups.tolist())
                ways = {
                    "a day at a time": [
                        np.flatnonzero(rows.groups == day) for day in days
                    ]
                }
            for way, batches in ways.items():
                held, worst, score = told_of(rows.error, followed(r, rows, batches))
                found[way].append((held, worst, still[1], score / still[2] - 1))
        for way, values in found.items():
            held, worst, still_worst, score = np.mean(values, axis=0)
            yield (
                f"| {name} | {way} | {held:.3f} | {worst:.3f} | {still_worst:.3f} "
                f"| {score:+.1%} |"
            )


def rivals_of_streams(n_seeds: int) -> Iterator[str]:
    """Compare with MAPIE's adaptive conformal inference on raw u, row by row."""
    from mapie.regression import TimeSeriesRegressor
    from sklearn.dummy import DummyRegressor

    yield "| stream | who | held | worst 200 rows | score | infinite | ms a row |"
    yield f"|{' --- |' * 7}"
    for kind in STREAMS:
        found = defaultdict(list)
        for seed in range(n_seeds):
            known, rows = stream(kind, seed)
            r = ss.Recalibrator().fit(known)
            start = time.process_time()
            one_by_one = [np.array([k]) for k in range(len(rows))]
            limits = followed(r, rows, one_by_one)
            seconds = time.process_time() - start
            found["Follower"].append((*told_of(rows.error, limits), 0.0, seconds))

            start = time.process_time()
            nothing = np.zeros((1, 1))
            zero = DummyRegressor(strategy="constant", constant=0.0)
            zero.fit(np.zeros((2, 1)), np.zeros(2))
            model = TimeSeriesRegressor(zero, method="aci", cv="prefit")
            model.fit(np.zeros((len(known), 1)), known.error / known.y_std)
            limits = np.empty((len(rows), 2))
            for k in range(len(rows)):
                _, interval = model.predict(
                    nothing, confidence_level=0.9, allow_infinite_bounds=True
                )
                limits[k] = interval[0, :, 0] * rows.y_std[k]
                truth = np.array([rows.error[k] / rows.y_std[k]])
                model.adapt_conformal_inference(
                    nothing, truth, gamma=0.05, confidence_level=0.9
                )
                model.update(nothing, truth)
            seconds = time.process_time() - start
            infinite = 1 - np.isfinite(limits).all(axis=1).mean()
            found["MAPIE, ACI on u"].append(
                (*told_of(rows.error, limits), infinite, seconds)
            )
        for who, values in found.items():
            held, worst, score, infinite, seconds = np.mean(values, axis=0)
            yield (
                f"| {kind} | {who} | {held:.3f} | {worst:.3f} | {score:.3f} "
                f"| {infinite:.1%} | {1000 * seconds / LENGTH:.2f} |"
            )


# -- regressors ------------------------------------------------------------------------


def tables() -> Iterator[tuple[str, Numbers, Numbers]]:
    """Yield eight sets that scikit-learn holds or makes, at most 2,000 rows each."""
    from sklearn import datasets

    X, y = datasets.load_diabetes(return_X_y=True)
    yield "diabetes", X, y
    rng = np.random.default_rng(0)
    for k, make in enumerate(
        (
            datasets.make_friedman1,
            datasets.make_friedman2,
            datasets.make_friedman3,
        )
    ):
        X, y = make(1500, random_state=k)
        # noise that grows along a column
        spread = 0.1 * y.std() * np.exp(1.5 * _scaled(X[:, 0]))
        yield f"friedman {k + 1}", X, y + spread * rng.normal(size=y.size)
    X, y = datasets.load_breast_cancer(return_X_y=True)
    yield "cancer, mean area", np.delete(X, (0, 2, 3, 20, 22, 23), axis=1), X[:, 3]
    X, _ = datasets.load_wine(return_X_y=True)
    yield "wine, proline", X[:, :-1], X[:, -1]
    X, y = datasets.load_digits(return_X_y=True)
    yield "digits, ink", X[:, :40], X[:, 40:].sum(axis=1)
    X = rng.normal(size=(1500, 5))
    y = np.exp(X[:, 0] + 0.5 * X[:, 1]) * np.exp(0.4 * rng.normal(size=1500))
    yield "growing with the prediction", X, y


def _scaled(column: Numbers) -> Numbers:
    return (column - column.min()) / np.ptp(column)


def regressors(n_seeds: int) -> Iterator[str]:
    """Cover with regressors that have no u, against split conformal prediction."""
    from sklearn.base import clone
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import train_test_split
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    network = MLPRegressor(
        hidden_layer_sizes=(50,), max_iter=300, early_stopping=True, random_state=0
    )
    models = {
        "boosting": HistGradientBoostingRegressor(max_iter=60, random_state=0),
        "ridge": make_pipeline(StandardScaler(), Ridge()),
        "k-NN": make_pipeline(StandardScaler(), KNeighborsRegressor(7)),
        "MLP": make_pipeline(StandardScaler(), network),
    }
    yield "| set | regressor | held | lowest fifth of u | highest | score, split = 1 |"
    yield f"|{' --- |' * 6}"
    every = []
    for name, X, y in tables():
        y = (y - y.mean()) / y.std()
        for model_name, model in models.items():
            found = []
            for seed in range(n_seeds):
                X_known, X_new, y_known, y_new = train_test_split(
                    X, y, test_size=0.5, random_state=seed
                )
                ours = ss.RecalibratedRegressor(model).fit(X_known, y_known)
                limits = ours.predict_interval(X_new, 0.9) - y_new[:, None]
                is_held = (limits[:, 0] <= 0) & (limits[:, 1] >= 0)
                u = ours.predict_std(X_new)
                low, high = np.quantile(u, [0.2, 0.8])
                score = interval_score(np.zeros(y_new.size), limits, 0.9).mean()

                half = y_known.size // 2
                split = clone(model).fit(X_known[:half], y_known[:half])
                size = np.abs(y_known[half:] - split.predict(X_known[half:]))
                rank = int(np.ceil(0.9 * (size.size + 1)))
                width = np.sort(size)[rank - 1]
                error = y_new - split.predict(X_new)
                of_split = np.column_stack([-width - 0 * error, width + 0 * error])
                of_split = interval_score(error, of_split, 0.9).mean()
                fifths = is_held[u <= low].mean(), is_held[u >= high].mean()
                found.append((is_held.mean(), *fifths, np.log(score / of_split)))
            held, lowest, highest, log_ratio = np.mean(found, axis=0)
            every.append(log_ratio)
            yield (
                f"| {name} | {model_name} | {held:.3f} | {lowest:.3f} | {highest:.3f} "
                f"| {np.exp(log_ratio):.3f} |"
            )
    yield f"| all | geometric mean | | | | {np.exp(np.mean(every)):.3f} |"


# -- shift of covariates ---------------------------------------------------------------


def shift(n_sets: int) -> Iterator[str]:
    """Weight rows by density ratios where new rows come from elsewhere."""
    yield "| rows | effective rows | weights | held of 90 % | fewest in a set |"
    yield f"|{' --- |' * 5}"
    for n_rows, by in ((1000, 1.0), (1000, 1.5), (300, 1.5)):
        found = defaultdict(list)
        effective = []
        for seed in range(n_sets):
            rng = np.random.default_rng([seed, n_rows])

            def made(n: int, at: float, rng: Any = rng) -> dict[str, Any]:
                x = rng.normal(at, 1, n)
                u = rng.lognormal(0, 0.3, n)
                error = u * np.exp(0.4 * x) * rng.normal(size=n)
                return {"y_std": u, "error": error, "features": {"x": x}}

            known = made(n_rows, 0.0)
            new = ss.Predictions(**made(2000, by))
            # the ratio of two normal densities
            ratio = np.exp(by * known["features"]["x"] - by**2 / 2)
            for name, weights in {"none": None, "density ratios": ratio}.items():
                p = ss.Predictions(**known, weights=weights)
                r = ss.Recalibrator().fit(p)
                low, high = r.apply(new).distributions.interval(0.9).T
                is_held = (low <= new.error) & (new.error <= high)
                found[name].append(is_held.mean())
            effective.append(p.n_effective)
        for name, values in found.items():
            mean, error = mean_and_error(values)
            yield (
                f"| {n_rows} | {np.mean(effective):.0f} | {name} "
                f"| {mean:.3f} ± {error:.3f} | {min(values):.2f} |"
            )


STUDIES = {
    "parts": (parts, 200),
    "streams": (streams, 3),
    "rivals_of_streams": (rivals_of_streams, 1),
    "regressors": (regressors, 3),
    "shift": (shift, 20),
}


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
