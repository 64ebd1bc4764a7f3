"""Times of what users call, beside the least they could take and an earlier commit.

    python benchmarks/speed.py [--before COMMIT] [--quick] [--only WORDS] [--out FILE]

Every task goes through the public door, checks included. Beside it stands its *limit*,
an operation that it can hardly do without or a peer that does less, and *before*, the
same task as an earlier commit does it, on the same rows with the same packages. Git
takes that commit out of the repository; without its history the column stays empty.
Both versions run in processes of their own, in turn, on one thread; the shortest of
several times counts, of the processor, so that other work disturbs it little.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything reads them
os.environ.setdefault("POLARS_MAX_THREADS", "1")

import argparse
import gc
import io
import json
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import sigmascale as ss

BEFORE = "619bade"  # what times are compared with
ROOT = Path(__file__).parents[1]
N_LEARNED = 10_000  # rows that what predicts was fitted to
N_FEATURES = 4  # beside the uncertainty
TURN = 0.02  # seconds that a task is run for, at least, when it is its turn
COMMAND = "from sigmascale.__main__ import main; main()"

Task = Callable[[], object]
Make = Callable[[int, Path], Task]


# -- data ------------------------------------------------------------------------------


def columns(n: int, seed: int = 0, n_features: int = N_FEATURES) -> dict[str, Any]:
    """Return u, errors and features of so many rows."""
    rng = np.random.default_rng(seed)
    u = rng.lognormal(0, 0.6, n)
    X = rng.normal(size=(n, n_features))
    log_factor = 0.3 * X[:, 0] + 0.2 * np.sin(2 * X[:, 1]) * (X[:, -1] > 0)
    error = rng.standard_t(5, size=n) * u**0.8 * np.exp(log_factor)
    names = [f"x{j}" for j in range(n_features)]
    features = {name: X[:, j].copy() for j, name in enumerate(names)}
    return {"y_std": u, "error": error, "features": features}


def rows(n: int, seed: int = 0) -> Any:
    """Return predictions of u and four features."""
    return ss.Predictions(**columns(n, seed))


def alone(n: int) -> Any:
    """Return predictions of u without features."""
    data = columns(n)
    return ss.Predictions(y_std=data["y_std"], error=data["error"])


def fitted() -> Any:
    """Return a default recalibrator."""
    return ss.Recalibrator().fit(rows(N_LEARNED))


# -- tasks, each made for a number of rows and a folder to write to --------------------


def fit(n: int, _: Path) -> Task:
    """Fit the default."""
    data = rows(n)
    return lambda: ss.Recalibrator().fit(data)


def fit_lightgbm(n: int, _: Path) -> Task:
    """Fit LightGBM to squared errors, in five folds, as many trees as we often take."""
    import lightgbm

    data = columns(n)
    X = np.column_stack([data["y_std"], *data["features"].values()])
    y = (data["error"] / data["y_std"]) ** 2
    fold = np.arange(n) % 5
    model = partial(
        lightgbm.LGBMRegressor,
        objective="gamma",
        n_estimators=100,
        max_depth=3,
        max_bin=32,
        n_jobs=1,
        verbose=-1,
    )

    def fit_folds() -> None:
        for k in range(5):
            model().fit(X[fold != k], y[fold != k])

    return fit_folds


def predict(n: int, _: Path) -> Task:
    """Rescale rows."""
    return partial(fitted().predict, rows(n, seed=1))


def apply(n: int, _: Path) -> Task:
    """Rescale rows, which get their distributions."""
    return partial(fitted().apply, rows(n, seed=1))


def exponentials(n: int, _: Path) -> Task:
    """Take np.exp of one column."""
    return partial(np.exp, columns(n)["features"]["x0"])


def fit_bins(n: int, _: Path) -> Task:
    """Fit 40 bins of u."""
    data = alone(n)
    return lambda: ss.Recalibrator(ss.BinwiseScaling(40)).fit(data)


def check_and_fit_bins(n: int, _: Path) -> Task:
    """Make Predictions of arrays, and fit 40 bins of u."""
    data = columns(n)

    def check_and_fit() -> Any:
        p = ss.Predictions(y_std=data["y_std"], error=data["error"])
        return ss.Recalibrator(ss.BinwiseScaling(40)).fit(p)

    return check_and_fit


def stable_sort(n: int, _: Path) -> Task:
    """Sort u, equal ones as they come."""
    return partial(np.sort, columns(n)["y_std"], kind="stable")


def crps(n: int, _: Path) -> Task:
    """Score recalibrated rows by the CRPS."""
    recalibrated = fitted().apply(rows(n, seed=1))
    return partial(ss.scores.crps, recalibrated)


def crps_scoringrules(n: int, _: Path) -> Task:
    """Score normal distributions by the closed form of scoringrules."""
    import scoringrules

    data = columns(n, seed=1)
    zeros = np.zeros(n)
    return lambda: scoringrules.crps_normal(data["error"], zeros, data["y_std"]).mean()


def scorecard(n: int, _: Path) -> Task:
    """Compute all scores of recalibrated rows."""
    recalibrated = fitted().apply(rows(n, seed=1))
    return partial(ss.scores.scorecard, recalibrated)


def scores_uct(n: int, _: Path) -> Task:
    """Compute average calibration as uncertainty-toolbox has it."""
    import uncertainty_toolbox as uct

    data = columns(n, seed=1)
    arrays = np.zeros(n), data["y_std"], data["error"]
    return partial(uct.metrics.get_all_average_calibration, *arrays, 99, False)


def validate(n: int, _: Path) -> Task:
    """Judge rows."""
    return partial(ss.validate, rows(n))


def validate_wide(n: int, _: Path) -> Task:
    """Judge rows with 300 features."""
    return partial(ss.validate, ss.Predictions(**columns(n, n_features=300)))


def report(n: int, folder: Path) -> Task:
    """Judge rows, and write a report."""
    data = rows(n)
    return lambda: ss.report.write_report(folder / "report.html", ss.validate(data))


def save_and_load(_: int, folder: Path) -> Task:
    """Save a default recalibrator of 30,000 rows, and load it."""
    recalibrator = ss.Recalibrator().fit(rows(30_000))

    def there_and_back() -> Any:
        recalibrator.save(folder / "r.json")
        return ss.load(folder / "r.json")

    return there_and_back


def json_only(n: int, folder: Path) -> Task:
    """Write the same JSON with the standard library, and read it."""
    save_and_load(n, folder)()
    data = json.loads((folder / "r.json").read_text("utf-8"))

    def there_and_back() -> Any:
        (folder / "bare.json").write_text(json.dumps(data), "utf-8")
        return json.loads((folder / "bare.json").read_text("utf-8"))

    return there_and_back


def parquet(n: int, folder: Path) -> Any:
    """Return a lazy frame of a Parquet file with so many rows."""
    import polars as pl

    path = folder / f"{n}.parquet"
    if not path.exists():
        data = columns(n, seed=1)
        table = pl.DataFrame({"u": data["y_std"], **data["features"]})
        table.write_parquet(path, row_group_size=500_000)
    return pl.scan_parquet(path)


def apply_to_parquet(n: int, folder: Path) -> Task:
    """Read rows of a Parquet file, rescale them, and write them to another."""
    recalibrator, frame = fitted(), parquet(n, folder)

    def write() -> None:
        new = ss.frames.apply(recalibrator, frame, y_std="u")
        new.sink_parquet(folder / "new.parquet")

    return write


def copy_parquet(n: int, folder: Path) -> Task:
    """Read rows of a Parquet file, multiply u by a number, and write them."""
    import polars as pl

    new = parquet(n, folder).with_columns((2 * pl.col("u")).alias("new"))
    return lambda: new.sink_parquet(folder / "bare.parquet")


def cold(*words: str) -> Task:
    """Run Python in a process of its own."""
    command = [sys.executable, "-W", "ignore", *words]
    output = subprocess.DEVNULL
    return lambda: subprocess.call(command, stdout=output, stderr=output)


def cold_check(n: int, folder: Path, *words: str) -> Task:
    """Run `sigmascale check` on a table."""
    data = columns(n)
    table = np.column_stack([data["y_std"], data["error"], *data["features"].values()])
    path = folder / f"{n}.csv"
    head = ",".join(["u", "error", *data["features"]])
    np.savetxt(path, table, delimiter=",", header=head, comments="")
    return cold("-c", COMMAND, "check", str(path), *words)


def cold_check_of_all(n: int, folder: Path) -> Task:
    """Run `sigmascale check` on a table, its features and their combinations."""
    return cold_check(n, folder, "--all-features")


def cold_help(*_: Any) -> Task:
    """Run `sigmascale --help`."""
    return cold("-c", COMMAND, "--help")


def cold_imports(*_: Any) -> Task:
    """Import the packages that read a table and judge it."""
    return cold("-c", "import numpy, scipy.special, narwhals, polars")


def cold_trees(*_: Any) -> Task:
    """Import them, and the trees that judge combinations of features."""
    modules = "numpy, scipy.special, narwhals, polars, sklearn.ensemble"
    return cold("-c", f"import {modules}")


def cold_python(*_: Any) -> Task:
    """Start Python."""
    return cold("-c", "pass")


@dataclass(frozen=True)
class Measured:
    """A task, what it is compared with, and what ratios are to be at most.

    Attributes
    ----------
    make : callable
        Makes the task.
    n_rows : int
        Of how many rows.
    limit : callable
        Makes the limit.
    limit_words : str
        What the limit is.
    of_limit, of_before : float, optional
        At most so many times the limit, and the time before.
    rounds : int
        How often both are run.
    """

    make: Make
    n_rows: int
    limit: Make
    limit_words: str
    of_limit: float | None = None
    of_before: float | None = None
    rounds: int = 5


LIGHTGBM = "LightGBM, 5 × 100 trees"
EXPONENTIALS = "np.exp of a column"
STABLE = "a stable sort of u"
AVERAGE = "uncertainty-toolbox, average"
TASKS = {
    "fit, 3,000 × 5": Measured(fit, 3_000, fit_lightgbm, LIGHTGBM, None, 0.8, 7),
    "fit, 30,000 × 5": Measured(fit, 30_000, fit_lightgbm, LIGHTGBM, None, 0.6, 3),
    "fit, 300,000 × 5": Measured(fit, 300_000, fit_lightgbm, LIGHTGBM, None, 0.5, 1),
    "predict, 1,000 × 5": Measured(
        predict, 1_000, exponentials, EXPONENTIALS, None, 1.05, 15
    ),
    "predict, 10⁶ × 5": Measured(
        predict, 10**6, exponentials, EXPONENTIALS, None, 0.32
    ),
    "predict, 10⁷ × 5": Measured(
        predict, 10**7, exponentials, EXPONENTIALS, None, 0.32, 3
    ),
    "apply, 10⁶ × 5": Measured(apply, 10**6, exponentials, EXPONENTIALS, None, 0.32),
    "apply, 10⁷ × 5": Measured(apply, 10**7, exponentials, EXPONENTIALS, None, 0.32, 3),
    "fit 40 bins, 10⁷ rows": Measured(fit_bins, 10**7, stable_sort, STABLE, 4, None, 1),
    "the same with Predictions": Measured(
        check_and_fit_bins, 10**7, stable_sort, STABLE, 8, None, 1
    ),
    "crps, 10⁶ rows": Measured(
        crps, 10**6, crps_scoringrules, "scoringrules, normal", 3, None, 3
    ),
    "scorecard, 10⁶ × 5": Measured(
        scorecard, 10**6, scores_uct, AVERAGE, None, None, 2
    ),
    "validate, 1,000 × 5": Measured(validate, 1_000, scores_uct, AVERAGE, None, 1.2),
    "validate, 10⁵ × 5": Measured(validate, 10**5, scores_uct, AVERAGE, None, 1.3, 2),
    "validate, 10⁶ × 5": Measured(validate, 10**6, scores_uct, AVERAGE, None, 1.4, 1),
    "validate, 1,000 × 300": Measured(
        validate_wide, 1_000, scores_uct, AVERAGE, None, 1.2, 3
    ),
    "validate and report, 10,000 × 5": Measured(
        report, 10_000, scores_uct, AVERAGE, None, None, 1
    ),
    "save and load": Measured(save_and_load, 30_000, json_only, "json", None, 0.5, 9),
    "Parquet, 10⁷ × 5": Measured(
        apply_to_parquet, 10**7, copy_parquet, "a product in Polars", None, 0.75, 3
    ),
    "cold sigmascale check, 1,000 rows": Measured(
        cold_check, 1_000, cold_imports, "importing NumPy and Polars", None, 0.9
    ),
    "cold sigmascale check, 1,000 × 5": Measured(
        cold_check_of_all, 1_000, cold_trees, "importing scikit-learn", None, 0.9
    ),
    "cold sigmascale --help": Measured(cold_help, 0, cold_python, "python -c pass"),
}
COLD = "cold"  # tasks whose names begin so run in processes of their own


def clock_of(name: str) -> Callable[[], float]:
    """Return what tells the time of the processor that a task takes."""
    if not name.startswith(COLD):
        return time.process_time

    def of_children() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    return of_children


# -- measuring -------------------------------------------------------------------------


def seconds(task: Task, clock: Callable[[], float]) -> float:
    """Return the shortest time of one turn of a task."""
    gc.collect()
    best, turn = float("inf"), clock()
    while best == float("inf") or clock() - turn < TURN:
        began = clock()
        task()
        best = min(best, clock() - began)
    return best


def serve(folder: Path) -> None:
    """Time one task after the other, as standard input asks for them."""
    warnings.simplefilter("ignore")
    fit(300, folder)()  # what is imported where it is first used does not count
    ready: dict[str, Task] = {}
    for line in sys.stdin:
        name = json.loads(line)
        if name not in ready:
            ready = {name: TASKS[name].make(TASKS[name].n_rows, folder)}
        print(json.dumps(seconds(ready[name], clock_of(name))), flush=True)


class Version:
    """A version of the library in a process of its own."""

    def __init__(self, source: Path, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        command = [sys.executable, "-W", "ignore", __file__, "--serve", str(folder)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(source)},
        )

    def seconds(self, name: str) -> float:
        """Return how long a task takes there."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(name) + "\n")
        stdin.flush()
        return float(json.loads(stdout.readline()))

    def end(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.wait()


def checked_out(commit: str, folder: Path) -> Path | None:
    """Return a folder with the source of a commit; None where git does not have it."""
    command = ["git", "-C", str(ROOT), "archive", commit, "src"]
    try:
        found = subprocess.run(command, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        print(f"Git has no commit {commit} here: the column *before* stays empty.")
        return None
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def line(name: str, measured: Measured, ours: float, limit: float, was: float) -> str:
    """Return a line of the table."""

    def ratio(other: float, at_most: float | None) -> str:
        if not np.isfinite(other):
            return " | "
        found = f"{ours / other:.2f}"
        if at_most is not None:
            found += f" (at most {at_most:g})"
            found = found if ours / other <= at_most else f"**{found}**"
        return f"{other:.3g} | {found}"

    cells = [name, f"{ours:.3g}", measured.limit_words]
    cells += [ratio(limit, measured.of_limit), ratio(was, measured.of_before)]
    return f"| {' | '.join(cells)} |"


def compared(only: str, folder: Path, before: Path | None, *, quick: bool) -> list[str]:
    """Return a table of all tasks whose names contain some words."""
    head = ["what", "seconds", "limit", "seconds", "ratio", "before", "ratio"]
    lines = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    print(*lines, sep="\n")
    new = Version(ROOT / "src", folder / "new")
    old = None if before is None else Version(before, folder / "old")
    for name, measured in TASKS.items():
        if only not in name:
            continue
        limit = measured.limit(measured.n_rows, folder)
        ours = least = was = float("inf")
        for _ in range(1 if quick else measured.rounds):
            ours = min(ours, new.seconds(name))
            least = min(least, seconds(limit, clock_of(name)))
            if old is not None:
                was = min(was, old.seconds(name))
        lines.append(line(name, measured, ours, least, was))
        print(lines[-1], flush=True)
    for version in (new, old):
        if version is not None:
            version.end()
    return lines


# -- growth ----------------------------------------------------------------------------


def grown(n: int) -> None:
    """Print the seconds of a default fit, and its memory in sizes of its input."""
    warnings.simplefilter("ignore")
    fit(300, Path())()
    data = rows(n)
    arrays = [data.y_std, data.error, *data.features.values()]
    size = sum(array.nbytes for array in arrays)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    ss.Recalibrator().fit(data)
    took = time.process_time() - began
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    more *= 1 if sys.platform == "darwin" else 1024
    print(json.dumps([took, more / size]))


def growth(sizes: tuple[int, ...]) -> list[str]:
    """Return a table of default fits of more and more rows."""
    lines = [
        "| default fit, rows | seconds | × linear | memory, × input |",
        "| --- | --- | --- | --- |",
    ]
    first = 0.0
    for n in sizes:
        command = [sys.executable, __file__, "--grown", str(n)]
        answer = subprocess.run(command, capture_output=True, check=True, text=True)
        took, memory = json.loads(answer.stdout)
        first = first or took / n
        lines.append(f"| {n:,} | {took:.3g} | {took / n / first:.2f} | {memory:.1f} |")
        print(lines[-1], flush=True)
    return lines


# -- columns and threads ---------------------------------------------------------------


def wide(n: int, n_columns: int) -> None:
    """Print the seconds of a fit of so many columns, and those of predictions.

    Predictions are ours, LightGBM's and scikit-learn's, of 100 trees each.
    """
    import lightgbm
    from sklearn.ensemble import HistGradientBoostingRegressor

    warnings.simplefilter("ignore")
    data = columns(min(n, 30_000), n_features=n_columns - 1)
    fit(300, Path())()
    began = time.perf_counter()
    recalibrator = ss.Recalibrator().fit(ss.Predictions(**data))
    times = [time.perf_counter() - began]
    data_new = columns(n, seed=1, n_features=n_columns - 1)
    new = ss.Predictions(**data_new)
    X = np.column_stack([data["y_std"], *data["features"].values()])
    X_new = np.column_stack([data_new["y_std"], *data_new["features"].values()])
    y = (data["error"] / data["y_std"]) ** 2
    threads = int(os.environ["OMP_NUM_THREADS"])
    rivals = [
        lightgbm.LGBMRegressor(n_estimators=100, n_jobs=threads, verbose=-1),
        HistGradientBoostingRegressor(early_stopping=False),
    ]
    tasks: list[Task] = [partial(recalibrator.predict, new)]
    tasks += [partial(rival.fit(X, y).predict, X_new) for rival in rivals]
    for task in tasks:
        task()
        shortest = np.inf
        for _ in range(3):
            began = time.perf_counter()
            task()
            shortest = min(shortest, time.perf_counter() - began)
        times.append(shortest / n * 1e9)
    print(json.dumps(times))


def table_of_columns(*, quick: bool) -> list[str]:
    """Return a table of fits and predictions by columns, rows and threads."""
    lines = [
        "| columns | rows | threads | fit, s | predict, ns | LightGBM | scikit-learn |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    cores = os.cpu_count() or 1
    for n_columns in (5, 21) if quick else (5, 21, 51, 501):
        for n in (1_000, 10_000) if quick else (1_000, 30_000, 1_000_000):
            if n * n_columns > 1e8:  # some 4 GB
                continue
            for threads in (k for k in (1, 2, 4, 16) if k <= cores):
                number = {"OMP_NUM_THREADS": str(threads)}
                command = [sys.executable, __file__, "--wide", str(n), str(n_columns)]
                answer = subprocess.run(
                    command,
                    capture_output=True,
                    check=True,
                    text=True,
                    env=os.environ | number,
                )
                fit_time, *nanoseconds = json.loads(answer.stdout)
                cells = [f"{n_columns}", f"{n:,}", f"{threads}", f"{fit_time:.2f}"]
                cells += [f"{x:.0f}" for x in nanoseconds]
                lines.append(f"| {' | '.join(cells)} |")
                print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", default=BEFORE, help="an earlier commit, or none")
    parser.add_argument("--quick", action="store_true", help="one round, fewer rows")
    parser.add_argument("--only", default="", help="tasks whose names contain this")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--grown", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--wide", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
        return
    if options.grown is not None:
        grown(options.grown)
        return
    if options.wide is not None:
        wide(*options.wide)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = None
        if options.before != "none":
            before = checked_out(options.before, folder / "before")
        lines = compared(options.only, folder, before, quick=options.quick)
        if not options.only:
            sizes = (30_000, 300_000) if options.quick else (30_000, 3_000_000)
            lines += ["", *growth(sizes), "", *table_of_columns(quick=options.quick)]
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
