"""How often verdicts are wrong, and what they find.

    python benchmarks/verdicts.py --replications 200 --seed 1 --out verdicts.md

Each line is a kind of data, with u and three features unless it says otherwise, and a
number of rows (or groups); each number is a share of replications, with its standard
error. *No*: any question says no; *yes*: all say yes; *but coverage*: all but that one.
`--only` takes lines
that hold a text. `--sets FOLDER` judges real sets, before and after `Recalibrator()`
fitted on their other part.
"""

from __future__ import annotations

import argparse
import collections
import csv
import gzip
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import sigmascale as ss

N_FEATURES = 3
Draw = Callable[[np.random.Generator, int], np.ndarray]
Change = Callable[[np.random.Generator, np.ndarray, dict[str, Any]], np.ndarray]


# -- z-scores of unit variance ---------------------------------------------------------


def normal(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return normal z-scores."""
    return rng.standard_normal(n)


def student(nu: float) -> Draw:
    """Return a function that draws from Student's t."""
    return lambda rng, n: rng.standard_t(nu, n) * math.sqrt((nu - 2) / nu)


def lognormal(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return centred lognormal z-scores."""
    z = np.exp(rng.standard_normal(n)) - math.exp(0.5)
    return z / math.sqrt((math.e - 1) * math.e)


SHAPES = {
    "normal": normal,
    "t(5)": student(5),
    "t(3)": student(3),
    "lognormal": lognormal,
}


# -- what is wrong with u: factors of z ------------------------------------------------


def ranks(x: np.ndarray) -> np.ndarray:
    """Return the share of rows below each."""
    return (np.argsort(np.argsort(x)) + 0.5) / x.size


def everywhere(by: float) -> Change:
    """Make z of all rows larger."""
    return lambda rng, z, x: by * z


def upper_third(by: float) -> Change:
    """Make z larger in the upper third of a feature."""
    return lambda rng, z, x: z * np.where(ranks(x["x0"]) > 2 / 3, by, 1.0)


def somewhere(share: float, by: float) -> Change:
    """Make z larger in a share of the rows, side by side along a feature."""

    def change(rng, z, x):
        start, rank = rng.uniform(0, 1 - share), ranks(x["x0"])
        return z * np.where((rank >= start) & (rank < start + share), by, 1.0)

    return change


def flag(share: float, by: float) -> Change:
    """Make a feature a flag, of a share of the rows whose z is larger."""

    def change(rng, z, x):
        x["x0"] = (rng.random(z.size) < share).astype(float)
        return z * np.where(x["x0"] > 0, by, 1.0)

    return change


def label(share: float, by: float) -> Change:
    """Make a feature a label, one of which has a share of the rows and larger z."""

    def change(rng, z, x):
        others = rng.choice(["a", "b", "c", "d"], z.size)
        x["x0"] = np.where(rng.random(z.size) < share, "bad", others)
        return z * np.where(x["x0"] == "bad", by, 1.0)

    return change


def xor(by: float) -> Change:
    """Make z larger where two features are on the same side."""
    return lambda rng, z, x: z * np.where((x["x0"] > 0) == (x["x1"] > 0), by, 1.0)


def shape(name: str) -> Change:
    """Give z another shape, of the same variance, in a fifth of the rows."""

    def change(rng, z, x):
        return np.where(ranks(x["x0"]) > 0.8, SHAPES[name](rng, z.size), z)

    return change


# -- sets ------------------------------------------------------------------------------


def plain(draw: Draw, change: Change | None = None) -> Callable[..., ss.Predictions]:
    """Make independent rows."""

    def make(rng, n):
        u = rng.gamma(3, 1, n)
        x: dict[str, Any] = {f"x{i}": rng.normal(size=n) for i in range(N_FEATURES)}
        z = draw(rng, n)
        z = z if change is None else change(rng, z, x)
        return ss.Predictions(error=u * z, y_std=u, features=x)

    return make


def grouped(rho: float, sizes: Callable[..., np.ndarray]) -> Callable[..., Any]:
    """Make groups of rows with correlated z; u and features are those of the group."""

    def make(rng, n):
        of = np.repeat(np.arange(n), sizes(rng, n))
        z = math.sqrt(rho) * rng.normal(size=n)[of]
        z += math.sqrt(1 - rho) * rng.normal(size=of.size)
        u = rng.gamma(3, 1, n)[of]
        x = {f"x{i}": rng.normal(size=n)[of] for i in range(N_FEATURES)}
        return ss.Predictions(error=u * z, y_std=u, features=x, groups=of)

    return make


def fives(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return sizes of five."""
    return np.full(n, 5)


def pareto(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return very unequal sizes, of 200 at most."""
    return np.minimum(np.ceil(1 + rng.pareto(1.0, n)), 200).astype(int)


def weighted(draw: Draw) -> Callable[..., ss.Predictions]:
    """Make rows with weights that have nothing to do with anything else."""

    def make(rng, n):
        p = plain(normal)(rng, n)
        return ss.Predictions(
            error=p.error, y_std=p.y_std, features=p.features, weights=draw(rng, n)
        )

    return make


@dataclass(frozen=True)
class Cell:
    """A kind of data, its size, and what is asked of its verdicts."""

    study: str
    title: str
    n: int
    make: Callable[..., ss.Predictions]
    most_no: float = 1.0
    least_no: float = 0.0
    most_yes: float = 1.0
    least_yes: float = 0.0
    but_coverage: bool = False  # whether the least share of a yes is of the others


def cells() -> list[Cell]:
    """Return all kinds of data."""
    found = []
    for n in (300, 1000, 10_000):
        made = {name: plain(draw) for name, draw in SHAPES.items()}
        made["lognormal weights"] = weighted(lambda rng, n: rng.lognormal(size=n))
        for name, make in made.items():
            found.append(Cell("Calibrated", name, n, make, most_no=0.10))
        groups = grouped(0.5, fives)
        found.append(Cell("Calibrated", "groups of 5", n // 5, groups, most_no=0.10))
    within = {
        "everywhere 3 %": everywhere(1.03),
        "everywhere 10 %": everywhere(1.1),
        "a third 10 %": upper_third(1.1),
    }
    for n in (1000, 10_000, 20_000, 50_000):
        for name, change in {"nothing": everywhere(1.0), **within}.items():
            small = name in ("nothing", "everywhere 3 %")
            if n == 20_000 and not small:
                continue
            least = 0.95 if n >= 50_000 or (n >= 20_000 and small) else 0.0
            only = {"most_no": 0.10, "least_yes": least, "but_coverage": n < 50_000}
            make = plain(normal, change)
            found.append(Cell("Within the tolerance", name, n, make, **only))
    beyond = {
        "a tenth × 1.5": somewhere(0.1, 1.5),
        "a third × 1.4": upper_third(1.4),
        "a flag of 2 % × 2": flag(0.02, 2.0),
        "XOR × 1.5": xor(1.5),
        "a label of 5 % × 2": label(0.05, 2.0),
    }
    for n in (1000, 10_000, 20_000):
        for name, change in beyond.items():
            least = 0.95 if n >= 20_000 else 0.0
            make = plain(normal, change)
            only = {"most_yes": 0.05, "least_no": least}
            found.append(Cell("Beyond the tolerance", name, n, make, **only))
    for n in (60, 150):
        for rho in (0.5, 0.8):
            name = f"groups of Pareto sizes, correlation {rho}"
            make = grouped(rho, pareto)
            found.append(Cell("Clusters", name, n, make, most_no=0.07))
    heavy = weighted(lambda rng, n: 1 + rng.pareto(1.1, n))
    for n in (1000, 5000):
        found.append(Cell("Clusters", "Pareto(1.1) weights", n, heavy, most_no=0.07))
    for n, least in ((1000, 0.0), (2000, 0.9)):
        make = plain(normal, somewhere(0.1, 0.5))
        found.append(Cell("Downwards", "a tenth × 0.5", n, make, least_no=least))
    make = plain(normal, somewhere(0.05, 0.25))
    found.append(Cell("Downwards", "5 % × 0.25", 2000, make, least_no=0.8))
    for n in (1000, 3000):
        for name in ("t(3)", "lognormal"):
            make = plain(normal, shape(name))
            title = f"{name} in a fifth"
            found.append(Cell("Only the shape differs", title, n, make, most_no=0.12))
    return found


# -- counting --------------------------------------------------------------------------


def with_error(count: int, total: int) -> str:
    """Return a share and its standard error."""
    share = count / total
    error = math.sqrt(max(share * (1 - share), 1 / total / 4) / total)
    return f"{share:.3f} ± {error:.3f}"


def counted(cell: Cell, total: int, seed: int) -> collections.Counter[str]:
    """Judge sets of a kind, and count their answers."""
    count: collections.Counter[str] = collections.Counter()
    for i in range(total):
        key = [seed, cell.n, i, *cell.title.encode()]
        p = cell.make(np.random.default_rng(key), cell.n)
        v = ss.validate(p, rng=i)
        count[v.answer] += 1
        others = [x.answer for name, x in v.verdicts.items() if name != "coverage"]
        count["others"] += set(others) == {"yes"}
        count.update(
            f"no: {name}" for name, x in v.verdicts.items() if x.answer == "no"
        )
    return count


def line_of(cell: Cell, total: int, count: dict[str, int], seconds: float) -> str:
    """Return a line of the table."""
    no, yes, others = (count[x] for x in ("no", "yes", "others"))
    enough = (others if cell.but_coverage else yes) / total >= cell.least_yes
    met = enough and cell.least_no <= no / total <= cell.most_no
    met = met and yes / total <= cell.most_yes
    asked = [
        f"{words} {number:g}"
        for words, number, default in (
            ("no ≤", cell.most_no, 1.0),
            ("no ≥", cell.least_no, 0.0),
            ("yes ≤", cell.most_yes, 1.0),
            ("others ≥" if cell.but_coverage else "yes ≥", cell.least_yes, 0.0),
        )
        if number != default
    ]
    blamed = [f"{x[4:]} {c}" for x, c in count.items() if x.startswith("no: ")]
    shares = [with_error(x, total) for x in (no, yes, others)]
    cells = [cell.title, f"{cell.n:,}", str(total), *shares]
    cells += [", ".join(asked), "met" if met else "**not met**", ", ".join(blamed)]
    return f"| {' | '.join(cells)} | {seconds / total:.2f} |"


HEADER = (
    "| data | rows | sets | no | yes | but coverage | asked | | who said no | s |\n"
    f"|{' --- |' * 10}"
)


# -- other studies ---------------------------------------------------------------------


def named(total: int, seed: int) -> list[str]:
    """Count how often an alloy is named, of size and of bias."""
    count: collections.Counter[str] = collections.Counter()
    for i in range(total):
        for n, kind in ((3000, "size"), (300, "bias"), (3000, "bias")):
            rng = np.random.default_rng([seed, n, i])
            u, label = rng.gamma(3, 1, n), rng.choice(["alloy", "b", "c", "d", "e"], n)
            x = {"T": rng.normal(size=n), "mass": rng.gamma(2, 1, n), "kind": label}
            is_alloy, z = label == "alloy", rng.normal(size=n)
            z = z * np.where(is_alloy, 2, 1) if kind == "size" else z + 1.5 * is_alloy
            v = ss.validate(ss.Predictions(error=u * z, y_std=u, features=x), rng=i)
            asked = ("kind", "joint") if kind == "size" else ("bias",)
            sentences = [v.verdicts[name].sentence for name in asked]
            count[f"{kind}, {n} rows"] += any("alloy" in each for each in sentences)
            count[f"{kind}, {n} rows, joint"] += "alloy" in v.verdicts["joint"].sentence
            if kind == "size":
                wrong = [x.worst for x in v.verdicts.values() if x.answer == "no"]
                others = [w for w in wrong if w is not None and w.column == "kind"]
                count["another label was named"] += any(
                    w.where != "kind = alloy" for w in others
                )
    return [f"- {key}: {value} of {total}" for key, value in count.items()]


def fine_stations(rng: np.random.Generator) -> ss.Predictions:
    """Return 400 stations of 15 rows, half of them with u 2.6 times too large."""
    station = np.repeat([f"s{k}" for k in range(400)], 15)
    wrong = np.repeat(rng.random(400) < 0.5, 15)
    u = rng.gamma(3, 1, 6000)
    return ss.Predictions(
        error=u * rng.normal(size=6000),
        y_std=u * np.where(wrong, 2.6, 1),
        features={"station": station},
    )


def stations(total: int, seed: int) -> list[str]:
    """Count the answers about stations that are too fine to judge."""
    count: collections.Counter[str] = collections.Counter()
    for i in range(total):
        p = fine_stations(np.random.default_rng([seed, i]))
        found = ss.validate(p, rng=i).verdicts["station"]
        count[f"{found.answer}: {found.sentence}"] += 1
    return [f"- {key}: {value} of {total}" for key, value in count.items()]


def limits_hold(total: int, seed: int) -> list[str]:
    """Count the sets of which all limits hold the true factors, at once."""
    lines = []
    for name in ("normal", "t(5)"):
        held = 0
        for i in range(total):
            rng = np.random.default_rng([seed, i])
            n = 2000
            u, label = rng.gamma(3, 1, n), rng.choice(list("abcde"), n)
            x: dict[str, Any] = {f"x{k}": rng.normal(size=n) for k in range(N_FEATURES)}
            factor = np.exp(0.4 * x["x0"]) * np.where(label == "b", 1.4, 1.0)
            error = u * SHAPES[name](rng, n) * factor
            x["label"] = label
            p = ss.Predictions(error=error, y_std=u, features=x)
            held += all_hold(ss.validate(p, rng=i), x | {"u": u}, factor)
        lines.append(f"- {name}: {with_error(held, total)} of {total} sets")
    return lines


def all_hold(v: ss.Validation, x: dict[str, Any], factor: np.ndarray) -> bool:
    """Return whether the limits of all regions of size hold the true factors."""
    for name, verdict in v.verdicts.items():
        if name in ("bias", "joint", "coverage"):
            continue
        for region in (*verdict.regions, *filter(None, [verdict.worst])):
            inside = np.ones(factor.size, dtype=bool)
            if region.column == "label":
                inside = x["label"] == region.low_value
            elif region.column is not None:
                low, high = region.low_value, region.high_value
                inside &= x[region.column] >= (-math.inf if low is None else low)
                inside &= x[region.column] <= (math.inf if high is None else high)
            true = math.sqrt(np.mean(factor[inside] ** 2))
            if not region.low <= true <= region.high:
                return False
    return True


def real_sets(folder: Path) -> list[str]:
    """Judge the test part of each real set, before and after a fit on the other."""
    lines = ["| set | rows | before | after | headline after |", f"|{' --- |' * 5}"]
    count: collections.Counter[str] = collections.Counter()
    for path in sorted(folder.glob("*.csv.gz")):
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            table = list(csv.DictReader(file))
        part = np.array([row["split"] for row in table])
        x = {k: np.array([row[k] for row in table]) for k in table[0] if k != "split"}
        numbers = {k: v.astype(float) for k, v in x.items() if k[0] in "EuX"}
        features = {k: v for k, v in numbers.items() if k[0] == "X"}
        features |= {k: v for k, v in x.items() if k[0] == "G"}
        p = ss.Predictions(
            error=numbers["E"],
            y_std=numbers["u"],
            features=features or None,
            groups=x.get("group"),
        )
        fit, test = (p.take(np.flatnonzero(part == each)) for each in ("cal", "test"))
        after = ss.validate(ss.Recalibrator().fit(fit).apply(test))
        before = ss.validate(test)
        count[f"before: {before.answer}"] += 1
        count[f"after: {after.answer}"] += 1
        cells = [
            path.name.split(".")[0],
            f"{test.n_rows:,}",
            before.answer,
            after.answer,
        ]
        lines.append(f"| {' | '.join([*cells, after.headline])} |")
        print(lines[-1], flush=True)
    return [*(f"- {key}: {value}" for key, value in sorted(count.items())), "", *lines]


def main() -> None:
    """Count, and print a line as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="lines that hold this text")
    parser.add_argument("--sets", type=Path, help="a folder of real sets")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines: list[str] = []

    def say(text: str) -> None:
        print(text, flush=True)
        lines.append(text)
        if options.out is not None:
            options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")

    total, seed, study, pooled = options.replications, options.seed, "", [0, 0]
    for cell in cells():
        if options.only not in f"{cell.study}: {cell.title}, {cell.n} rows":
            continue
        if cell.study != study:
            study = cell.study
            say(f"\n### {study}\n\n{HEADER}")
        start = time.process_time()
        count = counted(cell, total, seed)
        say(line_of(cell, total, count, time.process_time() - start))
        if study == "Calibrated":
            pooled = [pooled[0] + count["no"], pooled[1] + total]
    if pooled[1]:
        say(f"\nCalibrated, pooled: no {with_error(*pooled)} (asked: at most 0.06)")
    others = {
        "An alloy is named": (named, 20),
        "Stations of 15 rows": (stations, 20),
        "Limits hold at once (asked: 0.93)": (limits_hold, 300),
    }
    for title, (run, most) in others.items():
        if options.only in title:
            found = run(min(total, most), seed)
            say("\n".join([f"\n### {title}\n", *found]))
    if options.sets is not None:
        say("\n".join(["\n### Real sets\n", *real_sets(options.sets)]))


if __name__ == "__main__":
    main()
