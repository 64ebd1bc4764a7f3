"""How often checks pass and fail, of sets whose uncertainties are known.

    python benchmarks/verdicts.py --seed 4754 --workers 16 --out error_rates.md
    python benchmarks/verdicts.py --real FOLDER --out real_sets.md

The first tests simulated sets: each line is a law of errors, with u and some features,
what is wrong with u, and a number of rows. A result is wrong if it contradicts what was
made: a pass of the column whose fifth was made wrong by the tolerance or more, and a
FAIL of anything where nothing is off by more. `--only` takes lines that hold a text,
`--sets` scales the number of sets. The second tests real sets, before and after
`Recalibrator()` fitted on their other part.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import sigmascale as ss

TOLERANCE = 1.25
Rng = np.random.Generator


# -- laws of z, all of mean square 1 ---------------------------------------------------


def normal(rng: Rng, n: int) -> np.ndarray:
    """Return normal z-scores."""
    return rng.standard_normal(n)


def student(df: float) -> Callable[[Rng, int], np.ndarray]:
    """Return a function that draws from Student's t."""
    return lambda rng, n: rng.standard_t(df, n) * math.sqrt((df - 2) / df)


def lognormal(rng: Rng, n: int) -> np.ndarray:
    """Return centred lognormal z-scores."""
    z = np.exp(rng.standard_normal(n)) - math.exp(0.5)
    return z / math.sqrt((math.e - 1) * math.e)


def discrete(rng: Rng, n: int) -> np.ndarray:
    """Return z-scores of eleven values, as of counts."""
    return (rng.binomial(10, 0.5, n) - 5) / math.sqrt(2.5)


LAWS: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "normal": normal,
    "t(5)": student(5),
    "t(4)": student(4),
    "t(3)": student(3),
    "lognormal": lognormal,
    "discrete": discrete,
}


@dataclass
class Made:
    """Rows that are made: u, features, z, and what goes with them."""

    u: np.ndarray
    features: dict[str, np.ndarray]
    z: np.ndarray
    groups: np.ndarray | None = None
    weights: np.ndarray | None = None
    time: np.ndarray | None = None

    @property
    def predictions(self) -> ss.Predictions:
        """The rows, as they are tested."""
        return ss.Predictions(
            error=self.u * self.z,
            y_std=self.u,
            features=self.features,
            groups=self.groups,
            weights=self.weights,
            time=self.time,
        )


def ranks(x: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the share of the weight up to each value."""
    order = np.argsort(x, kind="stable")
    w = np.ones(x.size) if weights is None else weights
    out = np.empty(x.size)
    out[order] = np.cumsum(w[order]) - w[order] / 2
    return out / w.sum()


def rows_of(law: str, n: int, rng: Rng, n_features: int, correlation: float) -> Made:
    """Return rows whose uncertainties are right; the law may be one of their frame."""
    shared = np.full((n_features, n_features), correlation)
    root = np.linalg.cholesky(shared + np.eye(n_features) * (1 - correlation))
    x = rng.standard_normal((n, n_features)) @ root.T
    u = rng.gamma(3, 1, n)
    if law == "few values of u":
        u = rng.choice([0.5, 1.0, 2.0, 4.0], n, p=[0.4, 0.3, 0.2, 0.1])
    features = {f"x{i}": x[:, i] for i in range(n_features)}
    made = Made(u, features, LAWS.get(law, normal)(rng, n))
    if law in ("groups of 5", "shared scales", "Pareto groups"):
        sizes = np.full(n, 5)
        if law == "Pareto groups":
            sizes = np.minimum(1 + rng.pareto(1, n), n / 10).astype(np.int64)
        made.groups = np.repeat(np.arange(n), sizes[:n])[:n]
        n_groups = int(made.groups[-1]) + 1
        # a property of the group; the others differ by row
        features["x0"] = rng.standard_normal(n_groups)[made.groups]
        features["x0"] += 1e-6 * rng.standard_normal(n)
        if law == "shared scales":
            scale = np.exp(0.35 * rng.standard_normal(n_groups) - 0.35**2)
            made.z *= scale[made.groups]
        else:
            of_group = rng.standard_normal(n_groups)[made.groups]
            made.z = math.sqrt(0.5) * (made.z + of_group)
    if law == "weights":
        made.weights = np.exp(2.4 * ranks(x[:, 1]))
    return made


# -- what is wrong with u --------------------------------------------------------------


def a_fifth(made: Made, factor: float, rng: Rng) -> None:
    """Make u too small in the upper fifth of x0."""
    made.z[ranks(made.features["x0"], made.weights) > 0.8] *= factor


def a_tenth(made: Made, factor: float, rng: Rng) -> None:
    """Make u too small in the seventh tenth of x0."""
    r = ranks(made.features["x0"])
    made.z[(r > 0.6) & (r < 0.7)] *= factor


def everywhere(made: Made, factor: float, rng: Rng) -> None:
    """Make u too small everywhere."""
    made.z *= factor


def a_label(made: Made, factor: float, rng: Rng) -> None:
    """Make u too small for a label of 5 % of the rows."""
    shares = [0.3, 0.3, 0.2, 0.15, 0.05]
    made.features["x0"] = rng.choice(list("abcde"), made.u.size, p=shares)
    made.z[made.features["x0"] == "e"] *= factor


def a_cell(made: Made, factor: float, rng: Rng) -> None:
    """Make u too small where both x0 and x1 are large, in 6 % of the rows."""
    a, b = (ranks(made.features[name]) for name in ("x0", "x1"))
    made.z[(a > 0.755) & (b > 0.755)] *= factor


def a_ridge(made: Made, factor: float, rng: Rng) -> None:
    """Make u too small in the fifth of the rows next to x0 = x1."""
    made.z[ranks(np.abs(made.features["x0"] - made.features["x1"])) < 0.2] *= factor


def a_drift(made: Made, factor: float, rng: Rng) -> None:
    """Make u too small for the last 15 % of the rows."""
    made.time = np.arange(made.u.size, dtype=float)
    made.z[int(0.85 * made.u.size) :] *= factor


def a_bias(made: Made, size: float, rng: Rng) -> None:
    """Make predictions too low in the upper fifth of x0."""
    made.z[ranks(made.features["x0"]) > 0.8] += size


def nothing(made: Made, factor: float, rng: Rng) -> None:
    """Leave u as it is."""


@dataclass(frozen=True)
class Fault:
    """What is wrong, and of which check.

    `is_within` tells that nothing is off by more than the tolerance.
    """

    words: str
    change: Callable[[Made, float, Rng], None]
    factor: float = 1.0
    check: str = ""
    is_within: bool = False
    n_features: int = 3
    correlation: float = 0.0


RIGHT = Fault("nothing", nothing, is_within=True)
MANY = Fault("nothing, 30 features", nothing, is_within=True, n_features=30)
FIFTH = "adaptivity: x0"
FAULTS = {
    "right": [RIGHT],
    "boundary": [
        Fault("a fifth × 1.25", a_fifth, 1.25, FIFTH, is_within=True),
        Fault("all × 1.25", everywhere, 1.25, "calibration", is_within=True),
    ],
    "beyond": [
        Fault("a fifth × 1.5", a_fifth, 1.5, FIFTH),
        Fault("a tenth × 1.5", a_tenth, 1.5, FIFTH),
        Fault("a label of 5 % × 2", a_label, 2.0, FIFTH),
        Fault("a cell of 6 % × 2", a_cell, 2.0, "combinations"),
        Fault("the last 15 % × 1.5", a_drift, 1.5, "adaptivity: time"),
        Fault("bias of 0.5 u in a fifth", a_bias, 0.5, "bias"),
    ],
}
RIDGE = Fault(
    "a ridge × 1.5", a_ridge, 1.5, "combinations", n_features=4, correlation=0.8
)
FRAMES = ("groups of 5", "shared scales", "Pareto groups", "weights", "few values of u")


@dataclass(frozen=True)
class Line:
    """A line of the study."""

    table: str
    law: str
    fault: Fault
    n: int
    n_sets: int

    @property
    def name(self) -> str:
        """What `--only` looks at, and what seeds are made of."""
        return f"{self.table} {self.law} {self.fault.words} {self.n}"


def lines() -> Iterator[Line]:
    """Yield the lines of the study."""
    for n, n_sets in ((200, 200), (1000, 200), (3000, 200), (10_000, 60), (60_000, 12)):
        for law in (*LAWS, *FRAMES):
            yield Line("right", law, RIGHT, n, n_sets)
    for law in ("normal", "t(4)"):
        yield Line("right", law, MANY, 1000, 60)
        yield Line("right", law, MANY, 3000, 60)
    for n, n_sets in ((1000, 120), (3000, 120), (10_000, 40)):
        for law in (*LAWS, *FRAMES):
            for fault in FAULTS["boundary"]:
                yield Line("boundary", law, fault, n, n_sets)
    for n in (1000, 3000):
        for law in ("normal", "t(4)", "groups of 5"):
            for fault in FAULTS["beyond"]:
                yield Line("beyond", law, fault, n, 120)
    for law in ("normal", "t(4)"):
        yield Line("beyond", law, RIDGE, 3000, 60)
        yield Line("beyond", law, RIDGE, 10_000, 60)


@dataclass
class Tally:
    """What was found in the sets of a line."""

    passed: list[bool] = field(default_factory=list)
    failed: list[bool] = field(default_factory=list)
    check_passed: list[bool] = field(default_factory=list)
    check_failed: list[bool] = field(default_factory=list)
    missed: list[bool] = field(default_factory=list)
    bound: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


Job = tuple[Line, int, int]


def test_one(job: Job) -> tuple[Line, tuple[Any, ...]]:
    """Make one set and test it."""
    line, number, seed = job
    rng = np.random.default_rng([zlib.crc32(line.name.encode()), number, seed])
    fault = line.fault
    made = rows_of(line.law, line.n, rng, fault.n_features, fault.correlation)
    fault.change(made, fault.factor, rng)
    p = made.predictions
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        v = ss.validate(p)
    seconds = time.process_time() - start
    at_fault = v.checks.get(fault.check)
    missed = False
    if line.table == "right":  # any simultaneous limit beyond the truth
        for check in v.checks.values():
            if check.kind != "coverage":  # whose truth is that of the law
                for s in check.subgroups:
                    missed |= not s.low <= check.ideal <= s.high
    found = (
        v.result == "pass",
        any(c.result == "FAIL" for c in v.checks.values() if c.kind != "coverage"),
        at_fault is not None and at_fault.result in ("pass", "no fault found"),
        at_fault is not None and at_fault.result == "FAIL",
        missed,
        v.bound,
        seconds,
    )
    return line, found


def simulated(args: argparse.Namespace) -> str:
    """Return the tables of simulated sets."""
    chosen = [line for line in lines() if args.only in line.name]
    jobs: list[Job] = []
    for line in chosen:
        n_sets = max(1, round(line.n_sets * args.sets))
        jobs += [(line, number, args.seed) for number in range(n_sets)]
    jobs.sort(key=lambda job: -job[0].n)  # the longest first
    tallies = {line: Tally() for line in chosen}
    with get_context("fork").Pool(args.workers) as pool:
        for line, found in pool.imap_unordered(test_one, jobs, chunksize=4):
            columns = vars(tallies[line]).values()
            for column, value in zip(columns, found, strict=True):
                column.append(value)
    return page(tallies, args.seed)


def page(tallies: dict[Line, Tally], seed: int) -> str:
    """Return the page of all tables."""
    out = [
        "# How often checks pass and fail",
        "",
        f"`python benchmarks/verdicts.py --seed {seed}`; tolerance {TOLERANCE:g}, "
        "confidence 0.95, u and 3 features but where others are named. *pass* and "
        "*FAIL* are results of the set, FAIL without that of coverage, whose accepted "
        "range is that of normal errors. The standard error of a share p is "
        "√(p (1 − p) / sets).",
    ]
    head = {
        "right": "*limits missed*: any simultaneous limit of the subgroups that "
        "pictures show, of RMS z and mean z.",
        "boundary": "A factor of exactly 1.25: a pass of the check at fault is wrong, "
        "and so is any FAIL.",
        "beyond": "A pass of the check at fault is wrong (*combinations*: no fault "
        "found).",
    }
    titles = {
        "right": "U is right",
        "boundary": "U is off by just the tolerance",
        "beyond": "U is off by more",
    }
    for table, title in titles.items():
        rows = {k: v for k, v in tallies.items() if k.table == table}
        if not rows:
            continue
        out += ["", f"## {title}", "", head[table], ""]
        columns = ["errors", "u", "rows", "sets", "pass", "FAIL"]
        if table == "right":
            columns += ["limits missed"]
        else:
            columns += ["check at fault", "its pass", "its FAIL"]
        columns += ["median bound", "s"]
        out.append(f"| {' | '.join(columns)} |")
        out.append(f"|{' --- |' * len(columns)}")
        for line, t in rows.items():
            cells = [line.law, line.fault.words, f"{line.n:,}", f"{len(t.passed):,}"]
            cells += [_share(t.passed), _share(t.failed)]
            if table == "right":
                cells += [_share(t.missed)]
            else:
                cells += [line.fault.check, _share(t.check_passed)]
                cells += [_share(t.check_failed)]
            cells += [f"{np.median(t.bound):.2f}", f"{np.median(t.seconds):.2f}"]
            out.append(f"| {' | '.join(cells)} |")
        out += ["", *_summary(table, rows)]
    return "\n".join(out) + "\n"


def _share(values: list[bool]) -> str:
    return f"{np.mean(values):.3f}"


def _summary(table: str, rows: dict[Line, Tally]) -> list[str]:
    """Return shares over all lines of a table, with standard errors."""

    def of_all(name: str) -> str:
        values = np.concatenate([getattr(t, name) for t in rows.values()])
        p = values.mean()
        return (
            f"{p:.4f} ± {math.sqrt(p * (1 - p) / values.size):.4f} of {values.size:,}"
        )

    if table == "right":
        missed = of_all("missed")
        return [f"All: FAIL {of_all('failed')} sets; limits missed {missed}."]
    if table == "boundary":
        wrong = of_all("check_passed")
        return [
            f"All: pass of the check at fault {wrong} sets; FAIL {of_all('failed')}."
        ]
    return []


# -- real sets -------------------------------------------------------------------------


def real(args: argparse.Namespace) -> str:
    """Return the table of real sets, raw and after recalibration."""
    out = [
        "# Real sets, raw and after `Recalibrator()`",
        "",
        "`python benchmarks/verdicts.py --real FOLDER`, of tables that have the "
        "columns E, u, X1, ..., split and group.",
        "",
        "| set | rows | raw: result | bound | after: result | bound | RMS z | RMS z "
        "varies along | FAIL after |",
        f"|{' --- |' * 9}",
    ]
    for path in sorted(Path(args.real).glob("*.csv.gz")):
        if args.only not in path.name:
            continue
        known, test = (read(path, part) for part in ("cal", "test"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            raw = ss.validate(test)
            after = ss.validate(ss.Recalibrator().fit(known).apply(test))
        average = after.checks["calibration"].all_rows
        along = "–"
        if after.variation is not None and after.variation.low > 0:
            x = after.variation
            along = f"{x.column} {x.sd:.2f} [{x.low:.2f}, {x.high:.2f}]"
        fails = [n for n, c in after.checks.items() if c.result == "FAIL"]
        cells = [path.name.removesuffix(".csv.gz"), f"{test.n_rows:,}"]
        cells += [raw.result, f"{raw.bound:.2f}", after.result, f"{after.bound:.2f}"]
        if average is not None:
            limits = f"[{average.low:.2f}, {average.high:.2f}]"
            cells += [f"{average.estimate:.2f} {limits}"]
        cells += [along, ", ".join(fails)]
        out.append(f"| {' | '.join(cells)} |")
        print(out[-1], flush=True)
    return "\n".join(out) + "\n"


def read(path: Path, part: str) -> ss.Predictions:
    """Return one part of a real set."""
    with gzip.open(path, "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == part]
    features: dict[str, Any] = {}
    for name in rows[0]:
        if name[0] in "XG" and name[1:].isdigit():
            cells = [row[name] for row in rows]
            features[name] = np.array(cells, float) if name[0] == "X" else cells
    time_of = None
    if "time" in rows[0]:
        time_of = np.array([row["time"][:10] for row in rows], dtype="datetime64[D]")
    return ss.Predictions(
        error=np.array([float(row["E"]) for row in rows]),
        y_std=np.array([float(row["u"]) for row in rows]),
        features=features,
        groups=[row["group"] for row in rows] if "group" in rows[0] else None,
        time=time_of,
    )


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--sets", type=float, default=1.0, help="times as many sets")
    parser.add_argument("--only", default="")
    parser.add_argument("--real", help="folder of real sets")
    parser.add_argument("--out", help="file to write; by default, print")
    args = parser.parse_args()
    text = real(args) if args.real else simulated(args)
    if args.out:
        Path(args.out).write_text(text, "utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
