"""How often verdicts are right and wrong, how large T is, and what they find.

    python benchmarks/verdicts.py --seed 4754 --out benchmarks/studies/verdicts.md
    python benchmarks/verdicts.py --real FOLDER --out benchmarks/studies/real_sets.md

The first judges simulated sets: each line is a kind of errors, with u and three
features, what is wrong with u, and a number of rows. `--only` takes cells whose name
holds a text, `--sets` another number of sets, `--jobs` more cores. The second judges
real sets, before and after `Recalibrator()` fitted on their other part.
"""

from __future__ import annotations

import argparse
import collections
import csv
import functools
import gzip
import math
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, stats

import sigmascale as ss
from sigmascale.validation.parts import ASKED

N_FEATURES = 3
TOLERANCE, RATE = 1.25, 0.05  # what is judged, and the rate of a wrong answer
Draw = Callable[[np.random.Generator, int], np.ndarray]
# what z is multiplied by, and the factor that u is truly off by
Factors = tuple[np.ndarray, np.ndarray]
Change = Callable[[np.random.Generator, dict[str, Any]], Factors]


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


# -- what is wrong with u --------------------------------------------------------------


def ranks(x: np.ndarray) -> np.ndarray:
    """Return the share of rows below each; equal ones stay in their order."""
    return (np.argsort(np.argsort(x, kind="stable"), kind="stable") + 0.5) / x.size


def where(holds: Callable[..., np.ndarray], by: float) -> Change:
    """Make z larger where something holds of random numbers and columns."""

    def change(rng, x):
        times = np.where(holds(rng, x), by, 1.0)
        return times, times

    return change


def everywhere(by: float) -> Change:
    """Make z of all rows larger."""
    return where(lambda rng, x: np.ones(x["u"].size, dtype=bool), by)


def above(column: str, share: float, by: float) -> Change:
    """Make z larger in the upper part of a column."""
    return where(lambda rng, x: ranks(x[column]) > share, by)


def tenth(by: float) -> Change:
    """Make z larger in a tenth of the rows, side by side along a feature."""

    def holds(rng, x):
        start, rank = rng.uniform(0, 0.9), ranks(x["x0"])
        return (rank >= start) & (rank < start + 0.1)

    return where(holds, by)


def label(share: float, by: float) -> Change:
    """Make a feature a label, one of which has a share of the rows and larger z."""

    def holds(rng, x):
        groups = np.unique(x["u"], return_inverse=True)[1]  # rows of a group are alike
        is_bad = rng.random(groups.max() + 1) < share
        others = rng.choice(["a", "b", "c", "d"], is_bad.size)
        x["x0"] = np.where(is_bad, "bad", others)[groups]
        return x["x0"] == "bad"

    return where(holds, by)


def xor(by: float) -> Change:
    """Make z larger where two features are on the same side."""
    return where(lambda rng, x: (x["x0"] > 0) == (x["x1"] > 0), by)


def few_outliers(by: float) -> Change:
    """Make a fifth's ⟨Z²⟩ larger by a few errors alone, one in a hundred."""

    def change(rng, x):
        there = ranks(x["x0"]) > 0.8
        few = there & (rng.random(there.size) < 0.01)
        times = math.sqrt(1 + (by**2 - 1) / 0.01)
        return np.where(few, times, 1.0), np.where(there, by, 1.0)

    return change


# -- sets ------------------------------------------------------------------------------


def plain(draw: Draw) -> Callable[..., ss.Predictions]:
    """Make independent rows."""

    def make(rng, n):
        u = rng.gamma(3, 1, n)
        x = {f"x{i}": rng.normal(size=n) for i in range(N_FEATURES)}
        return ss.Predictions(error=u * draw(rng, n), y_std=u, features=x)

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


KINDS: dict[str, Callable[..., ss.Predictions]] = {
    **{name: plain(draw) for name, draw in SHAPES.items()},
    "groups of 5": lambda rng, n: grouped(0.5, fives)(rng, n // 5),
    "Pareto groups": lambda rng, n: grouped(0.5, pareto)(rng, n // 4),
    "weights": weighted(lambda rng, n: rng.lognormal(sigma=0.8, size=n)),
}
# what is wrong, and the question that is about it
FAULTS: dict[str, tuple[Change, str]] = {
    "all × 1.15": (everywhere(1.15), "average"),
    "all × 1.24": (everywhere(1.24), "average"),
    "fifth × 1.24": (above("x0", 0.8, 1.24), "x0"),
    "all × 1.26": (everywhere(1.26), "average"),
    "fifth × 1.26": (above("x0", 0.8, 1.26), "x0"),
    "label of a fifth × 1.26": (label(0.2, 1.26), "x0"),
    "fifth of u × 1.26": (above("u", 0.8, 1.26), "u"),
    "few outliers × 1.26": (few_outliers(1.26), "x0"),
    "XOR × 1.26": (xor(1.26), "joint"),
    "XOR × 1.3": (xor(1.3), "joint"),
    "tenth × 1.5": (tenth(1.5), "x0"),
    "third × 1.4": (above("x0", 2 / 3, 1.4), "x0"),
    "label of 5 % × 2": (label(0.05, 2.0), "x0"),
    "XOR × 1.5": (xor(1.5), "joint"),
}


@dataclass(frozen=True)
class Bound:
    """What is asked of a share of sets: at least so much, or at most.

    Attributes
    ----------
    of : str
        The share.
    least, most : float
        Between which it must lie; two standard errors are added to `most` if it is a
        rate of errors.
    is_rate : bool
        Whether it is.
    """

    of: str
    least: float = 0.0
    most: float = 1.0
    is_rate: bool = False

    def words(self, share: float, sets: int) -> str:
        """Return what is asked, and whether it is met."""
        most, words = self.most, f"{self.of} ≤ {self.most:g}"
        if self.is_rate:
            most += 2 * math.sqrt(self.most * (1 - self.most) / sets)
            words += " + 2 se"
        if self.least:
            words = f"{self.of} ≥ {self.least:g}"
        is_met = self.least <= share + 1e-9 and share <= most + 1e-9
        return f"{words}: {'met' if is_met else '**missed**'}"


@dataclass(frozen=True)
class Cell:
    """A kind of errors, a fault or none, numbers of rows and of sets, what is asked."""

    kind: str
    fault: str
    rows: int
    sets: int
    asked: tuple[Bound, ...] = ()

    @property
    def name(self) -> str:
        """The cell in words."""
        return f"{self.kind}, {self.fault or 'right'}, {self.rows}"

    @property
    def question(self) -> str:
        """The question that the fault is about."""
        return FAULTS[self.fault][1] if self.fault else "average"

    def make(self, seed: int) -> tuple[ss.Predictions, np.ndarray]:
        """Return a set, and the factor that u of each row is truly off by."""
        rng = np.random.default_rng([seed, self.rows, *self.name.encode()])
        p = KINDS[self.kind](rng, self.rows)
        if not self.fault:
            return p, np.ones(p.n_rows)
        x = {name: np.array(column) for name, column in p.features.items()}
        x["u"] = np.array(p.y_std)
        times, truth = FAULTS[self.fault][0](rng, x)
        u = x.pop("u")
        error = p.error * times
        kept = {"groups": p.groups, "weights": p.weights}
        return ss.Predictions(error=error, y_std=u, features=x, **kept), truth


def cells_of_right() -> Iterator[Cell]:
    """Yield sets whose u is right."""
    asked = {
        ("normal", 1000): [Bound("yes", 0.45)]
        + [Bound(f"{of}: yes", 0.8) for of in ("bias", "average", "u, features")],
        ("normal", 3000): [Bound("yes", 0.95)],
        ("t(5)", 3000): [Bound("yes", 0.7)],
        ("t(3)", 10_000): [Bound("yes", 0.6)],
        ("groups of 5", 10_000): [Bound("yes", 0.9)],
        ("weights", 10_000): [Bound("yes", 0.9)],
    }
    for rows, sets in ((1000, 100), (3000, 300), (10_000, 100), (60_000, 20)):
        for kind in KINDS:
            bounds = asked.get((kind, rows), [])
            bounds += [Bound("limits hold", 0.92)] if rows == 3000 else []
            yield Cell(kind, "", rows, sets, tuple(bounds))


def cells_within() -> Iterator[Cell]:
    """Yield sets whose u is off by less than the tolerance."""
    never = Bound("no", most=0.0)
    for rows, sets in ((1000, 100), (3000, 100)):
        yield Cell("normal", "all × 1.15", rows, sets, (never,))
    for rows, sets, least in ((10_000, 100, 0.92), (60_000, 20, 1.0)):
        yield Cell("normal", "all × 1.15", rows, sets, (Bound("yes", least), never))
    for rows in (1000, 3000, 10_000):
        for fault in ("all × 1.24", "fifth × 1.24"):
            for kind in BOUND:
                seldom = Bound("no", most=RATE, is_rate=True)
                yield Cell(kind, fault, rows, 100, (seldom,))
            for kind in FREE if rows == 3000 else ():
                yield Cell(kind, fault, rows, 100)


def cells_just_beyond() -> Iterator[Cell]:
    """Yield sets in which some part is off by little more than the tolerance."""
    asked = (Bound("false yes", most=RATE, is_rate=True),)
    faults = ("all", "fifth", "label of a fifth", "fifth of u")
    for fault in faults:
        for rows in (1000, 3000, 10_000):
            for kind in BOUND:
                yield Cell(kind, f"{fault} × 1.26", rows, 100, asked)
    # combinations are judged from 1,555 units, and found in part if they are few
    for kind in ("normal", "t(5)"):
        yield Cell(kind, "XOR × 1.3", 3000, 100, asked)
    for kind in BOUND:
        yield Cell(kind, "XOR × 1.26", 10_000, 100, asked)
    for fault in faults:
        for kind in FREE:
            yield Cell(kind, f"{fault} × 1.26", 3000, 100)
    for kind in ("t(3)", "lognormal", "weights"):
        yield Cell(kind, "XOR × 1.3", 3000, 100)
    for rows in (1000, 3000, 10_000):
        yield Cell("normal", "few outliers × 1.26", rows, 100)


def cells_beyond() -> Iterator[Cell]:
    """Yield sets with faults that must be found."""
    for fault in ("tenth × 1.5", "third × 1.4", "label of 5 % × 2", "XOR × 1.5"):
        least = 0.5 if "XOR" in fault else 0.8
        few = Bound("no or suspect", least), Bound("its yes", most=0.06, is_rate=True)
        many = Bound("its no", 0.98), Bound("its yes", most=0.0)
        yield Cell("normal", fault, 1000, 200, few)
        yield Cell("normal", fault, 3000, 100)
        yield Cell("normal", fault, 10_000, 100, many)
        yield Cell("normal", fault, 60_000, 20, many)


BOUND = ("normal", "t(5)", "groups of 5")  # kinds of which rates of errors are asked
FREE = ("t(3)", "lognormal", "Pareto groups", "weights")
TABLES = {
    "u is right": cells_of_right,
    "u is off by less than the tolerance": cells_within,
    "u is off by little more than the tolerance": cells_just_beyond,
    "u is off by more": cells_beyond,
}


# -- counting --------------------------------------------------------------------------


def stretch_of(kind: str) -> float:
    """Return the factor by which ±1.96 u must be stretched to hold 95 %; u is right."""
    if kind == "lognormal":
        scale = math.sqrt((math.e - 1) * math.e)

        def held(reach: float) -> float:
            ends = math.exp(0.5) + np.array([-reach, reach]) * scale
            low, high = stats.lognorm.cdf(ends, 1.0)
            return high - low

        reach = optimize.brentq(lambda x: held(x) - 0.95, 0.1, 10)
    elif kind.startswith("t("):
        nu = float(kind[2:-1])
        reach = stats.t.ppf(0.975, nu) * math.sqrt((nu - 2) / nu)
    else:
        return 1.0
    return float(reach / stats.norm.ppf(0.975))


def hold(v: ss.Validation, kind: str) -> bool:
    """Return whether the limits of all shown parts hold, of a u that is right."""
    right = collections.defaultdict(lambda: 1.0, bias=0.0, coverage=stretch_of(kind))
    return all(
        x.low <= right[name] <= x.high
        for name, verdict in v.verdicts.items()
        for x in verdict.regions
    )


def truly_beyond(v: ss.Validation, p: ss.Predictions, truth: np.ndarray) -> set[str]:
    """Return the questions of size of which some part is truly beyond the tolerance."""
    judged = v.judged
    if judged.certified is None:  # too few units to tell anything
        return set()
    of_rows = np.empty(truth.size)  # in the order in which they were judged
    of_rows[np.argsort(judged.rows.error)] = truth[np.argsort(p.error)]
    beyond = set()
    for name, answered in judged.answers.items():
        if name in ("bias", "coverage"):
            continue
        factors = [math.sqrt(np.average(of_rows**2, weights=judged.values.w))]
        for variable in answered.asked.variables:
            parts = judged.certified.parts.get((variable.name, ASKED))
            if parts is None:
                continue
            inside = [parts.inside(i) for i in range(parts.n)]
            factors = [
                math.sqrt(np.average(of_rows[i] ** 2, weights=variable.w[i]))
                for i in inside
            ]
        if max(factors) > TOLERANCE:
            beyond.add(name)
    return beyond


RIGHT_HEADER = (
    "| errors | rows | sets | yes | no | bias: yes | average: yes | u, features: yes "
    "| joint: yes | coverage: yes | limits hold | median T | perfect u | asked | s |"
)
FAULT_HEADER = (
    "| errors | u | rows | sets | yes | no | at fault | its yes | its no | no or "
    "suspect | truly beyond | false yes | coverage: yes | median T | asked | s |"
)


def counted(cell: Cell, total: int, seed: int) -> tuple[str, collections.Counter[str]]:
    """Judge sets of a kind; return a line of the table, and how often what was."""
    count: collections.Counter[str] = collections.Counter()
    T, perfect, start = [], [], time.process_time()
    for i in range(total):
        p, truth = cell.make(1000 * seed + i)
        v = ss.validate(p, tolerance=TOLERANCE, rng=i)
        asked = v.verdicts[cell.question]
        beyond = truly_beyond(v, p, truth)
        count[v.answer] += 1
        for name, verdict in v.verdicts.items():
            count[f"{name}: yes"] += verdict.passed
        count[f"its {asked.answer}"] += 1
        count["no or suspect"] += asked.answer == "no" or asked.suspect is not None
        count["truly beyond"] += cell.question in beyond
        count["false yes"] += cell.question in beyond and asked.passed
        count["limits hold"] += not cell.fault and hold(v, cell.kind)
        T.append(v.T)
        perfect.append(v.certificate.perfect)
    local = ("u", *(f"x{i}" for i in range(N_FEATURES)))
    count["u, features: yes"] = min(count[f"{x}: yes"] for x in local)
    cells = [cell.kind, *([cell.fault] if cell.fault else []), f"{cell.rows:,}"]
    cells += [f"{total}", *shares(count, ("yes", "no"), total)]
    if cell.fault:
        names = ("its yes", "its no", "no or suspect", "truly beyond", "false yes")
        cells += [cell.question, *shares(count, (*names, "coverage: yes"), total)]
        cells.append(in_words(T))
    else:
        names = ("bias", "average", "u, features", "joint", "coverage")
        names = (*(f"{x}: yes" for x in names), "limits hold")
        cells += [*shares(count, names, total), in_words(T), in_words(perfect)]
    bounds = [x.words(count[x.of] / total, total) for x in cell.asked]
    seconds = (time.process_time() - start) / total
    cells += ["; ".join(bounds), f"{seconds:.2f}"]
    return f"| {' | '.join(cells)} |", count


def shares(
    count: collections.Counter[str], names: tuple[str, ...], total: int
) -> Iterator[str]:
    """Yield shares of sets in words."""
    for name in names:
        yield f"{count[name] / total:.2f}"


def in_words(factors: list[float]) -> str:
    """Return the median of T in words; a dash where nothing is known."""
    median = float(np.median(factors))
    return f"{median:.2f}" if median < 20 else "–"


def study(
    only: str, sets: int | None, seed: int, pool: futures.Executor
) -> Iterator[str]:
    """Judge simulated sets, and yield the lines of a page."""
    cells = [x for of_table in TABLES.values() for x in of_table() if only in x.name]
    # the longest first, so that none is waited for alone at the end
    by_length = sorted(cells, key=lambda x: x.rows * x.sets, reverse=True)
    judged = {x: pool.submit(counted, x, sets or x.sets, seed) for x in by_length}
    yield "# How often verdicts are right and wrong, and what they find"
    yield ""
    yield f"`python benchmarks/verdicts.py --seed {seed}`"
    yield ""
    yield (
        f"Tolerance {TOLERANCE}, confidence 0.95, u and {N_FEATURES} features. *Yes* "
        "and *no* are answers to all questions. *Limits hold*: those of all shown "
        "parts, at once. *At fault*: the question that the fault is about. *Truly "
        "beyond*: some part in which it was judged is, by the factors that made the "
        "set; *false yes*: then it said yes. The standard error (se) of a share p is "
        "sqrt(p (1 − p) / sets). T and *perfect u* are medians; the last column is "
        "seconds of one core a set."
    )
    for title, cells_of in TABLES.items():
        cells = [x for x in cells_of() if only in x.name]
        if not cells:
            continue
        header = FAULT_HEADER if cells[0].fault else RIGHT_HEADER
        yield f"\n## {title[0].upper()}{title[1:]}\n"
        yield f"{header}\n|{' --- |' * (header.count('|') - 1)}"
        n_no = n_sets = 0
        for cell in cells:
            total = sets or cell.sets
            line, count = judged[cell].result()
            n_no, n_sets = n_no + count["no"], n_sets + total
            yield line
        if not cells[0].fault:
            pooled = Bound("no", most=0.01).words(n_no / n_sets, n_sets)
            yield f"\nAll of these: no in {n_no} of {n_sets:,} sets. Asked: {pooled}."


# -- other studies ---------------------------------------------------------------------


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


def real_rows(path: Path) -> tuple[ss.Predictions, ss.Predictions]:
    """Return the rows to fit and those to judge of a real set."""
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
    fit, test = (p.take(np.flatnonzero(part == name)) for name in ("cal", "test"))
    return fit, test


def stages_of(known: ss.Predictions, new: ss.Predictions) -> dict[str, ss.Predictions]:
    """Return rows as they are, and after `Recalibrator()` fitted on others."""
    return {"before": new, "after": ss.Recalibrator().fit(known).apply(new)}


def T_words(v: ss.Validation) -> str:
    """Return T in words, rounded up; a dash where nothing is known."""
    return f"{math.ceil(100 * v.T) / 100:.2f}" if v.T < 20 else "–"


def answers_of(v: ss.Validation) -> str:
    """Return the answer, and how many questions have which."""
    count = collections.Counter(x.answer for x in v.verdicts.values())
    each = f"{count['yes']} ✓ {count['no']} ✗ {count['cannot tell']} ?"
    return f"{v.answer}: {each}"


def real_sets(folder: Path) -> Iterator[str]:
    """Judge the test part of each real set, before and after a fit on the other."""
    yield "# Verdicts on real sets, before and after recalibration"
    yield ""
    yield "`python benchmarks/verdicts.py --real FOLDER`"
    yield ""
    yield (
        "Public predictions with known errors, in two parts: `Recalibrator()` is "
        "fitted on one, and the other is judged, with the tolerance 1.25. T: no fifth "
        "is off by more, 95 % sure; a dash if nothing is known. ✓ ✗ ? are questions "
        "answered by yes, no and cannot tell."
    )
    for claim, title in (("both", "u and intervals"), ("intervals", "Intervals alone")):
        count: collections.Counter[str] = collections.Counter()
        yield f"\n## {title} (`--claim {claim}`)\n"
        yield "| set | rows | T before | T after | before | after | headline, after |"
        yield f"|{' --- |' * 7}"
        for path in sorted(folder.glob("*.csv.gz")):
            known, new = real_rows(path)
            cells = [path.name.split(".")[0].replace("_", " "), f"{new.n_rows:,}"]
            judged = {
                when: ss.validate(rows, claim=claim)
                for when, rows in stages_of(known, new).items()
            }
            for when, v in judged.items():
                count[f"sets, {when}, {v.answer}"] += 1
                for verdict in v.verdicts.values():
                    count[f"{when}, {verdict.answer}"] += 1
            cells += [T_words(v) for v in judged.values()]
            cells += [answers_of(v) for v in judged.values()]
            yield f"| {' | '.join([*cells, judged['after'].headline])} |"
        yield ""
        for when in judged:
            answers = ("yes", "no", "cannot tell")
            of_sets = ", ".join(f"{count[f'sets, {when}, {x}']} {x}" for x in answers)
            numbers = [count[f"{when}, {x}"] for x in answers]
            words = ", ".join(f"{n} {x}" for n, x in zip(numbers, answers, strict=True))
            yield f"- {when}: {of_sets}; of {sum(numbers)} questions: {words}."
    yield "\n## QM9\n"
    qm9 = ss.datasets.fetch_qm9()
    stages = stages_of(qm9.calibration.predictions, qm9.test.predictions)
    for when, rows in stages.items():
        v = ss.validate(rows)
        u = v.verdicts["u"]
        yield f"- {when}: {v.headline} Consistency: {u.answer}. {u.sentence}."


def main() -> None:
    """Count, and print a line as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, help="sets of each cell")
    parser.add_argument("--seed", type=int, default=4754)
    parser.add_argument("--jobs", type=int, default=1, help="cores")
    parser.add_argument("--only", default="", help="cells whose name holds this text")
    parser.add_argument("--real", type=Path, help="a folder of real sets")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    quiet = functools.partial(warnings.simplefilter, "ignore")
    pool = futures.ProcessPoolExecutor(options.jobs, initializer=quiet)
    lines = study(options.only, options.sets, options.seed, pool)
    if options.real is not None:
        lines = real_sets(options.real)
    said = ""
    for line in lines:
        print(line, flush=True)
        said += f"{line}\n"
        if options.out is not None:
            options.out.write_text(said, encoding="utf-8")


if __name__ == "__main__":
    main()
