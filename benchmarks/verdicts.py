"""How often verdicts are right and wrong, how large T is, and what they find.

    python benchmarks/verdicts.py --seed 21 --out benchmarks/studies/verdicts.md
    python benchmarks/verdicts.py --real FOLDER --out benchmarks/studies/real_sets.md

Each line is a kind of data, with u and three features, and a number of rows; each
number is a share of sets, and its standard error is sqrt(p (1 − p) / sets). `--only`
takes cells whose name holds a text, `--sets` another number of sets. The second judges
real sets, before and after `Recalibrator()` fitted on their other part.
"""

from __future__ import annotations

import argparse
import collections
import csv
import gzip
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import sigmascale as ss
from sigmascale.judging.answers import asked_of, variables_of
from sigmascale.judging.certificate import Certified
from sigmascale.judging.questions import Values
from sigmascale.ordering import in_canonical_order

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
        x["u"] = u
        z = z if change is None else change(rng, z, x)
        del x["u"]
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


def fifth(by: float) -> Change:
    """Make z larger in the highest fifth of a feature."""
    return lambda rng, z, x: z * np.where(ranks(x["x0"]) > 0.8, by, 1.0)


def by_u(by: float) -> Change:
    """Make z larger in the highest fifth of u."""
    return lambda rng, z, x: z * np.where(ranks(x["u"]) > 0.8, by, 1.0)


def few_outliers(by: float) -> Change:
    """Make a fifth's ⟨Z²⟩ larger by a few errors alone, one in a hundred."""

    def change(rng, z, x):
        there = ranks(x["x0"]) > 0.8
        few = there & (rng.random(z.size) < 0.01)
        times = math.sqrt(1 + (by**2 - 1) / 0.01)
        return z * np.where(few, times, 1.0)

    return change


RIGHT: dict[str, Callable[..., ss.Predictions]] = {
    **{name: plain(draw) for name, draw in SHAPES.items()},
    "groups of 5": lambda rng, n: grouped(0.5, fives)(rng, n // 5),
    "Pareto groups": lambda rng, n: grouped(0.5, pareto)(rng, n // 4),
    "weights": weighted(lambda rng, n: rng.lognormal(sigma=0.8, size=n)),
}
FAULTS: dict[str, tuple[Change, str]] = {
    "all × 1.15": (everywhere(1.15), "average"),
    "all × 1.26": (everywhere(1.26), "average"),
    "fifth × 1.26": (fifth(1.26), "x0"),
    "label of a fifth × 1.26": (label(0.2, 1.26), "x0"),
    "fifth of u × 1.26": (by_u(1.26), "u"),
    "few outliers × 1.26": (few_outliers(1.26), "x0"),
    "all × 1.24": (everywhere(1.24), "average"),
    "fifth × 1.24": (fifth(1.24), "x0"),
    "tenth × 1.5": (somewhere(0.1, 1.5), "x0"),
    "third × 1.4": (upper_third(1.4), "x0"),
    "label of 5 % × 2": (label(0.05, 2.0), "x0"),
    "XOR × 1.5": (xor(1.5), "joint"),
}


@dataclass(frozen=True)
class Cell:
    """A kind of data, a fault or none, a number of rows, and of sets."""

    shape: str
    fault: str
    rows: int
    sets: int

    @property
    def name(self) -> str:
        """The cell in words."""
        return f"{self.shape}, {self.fault or 'right'}, {self.rows}"

    def make(self, seed: int) -> ss.Predictions:
        """Return a set."""
        rng = np.random.default_rng([seed, self.rows, *self.name.encode()])
        if not self.fault:
            return RIGHT[self.shape](rng, self.rows)
        if self.shape in SHAPES:
            change, _ = FAULTS[self.fault]
            return plain(SHAPES[self.shape], change)(rng, self.rows)
        p = RIGHT[self.shape](rng, self.rows)
        x = {name: np.array(column) for name, column in p.features.items()}
        x["u"] = p.y_std
        z = FAULTS[self.fault][0](rng, np.array(p.z), x)
        del x["u"]
        error = p.y_std * z
        kept = {"groups": p.groups, "weights": p.weights}
        return ss.Predictions(error=error, y_std=p.y_std, features=x, **kept)


# those that decide come first
CELLS = (
    *(Cell("normal", x, 1000, 25) for x in list(FAULTS)[-4:]),
    *(Cell("normal", "", 1000, 40), Cell("normal", "all × 1.15", 10_000, 12)),
    *(Cell("normal", x, 10_000, 8) for x in list(FAULTS)[-4:]),
    *(Cell("normal", "all × 1.24", 3000, 40), Cell("t(5)", "", 3000, 30)),
    *(Cell("normal", "all × 1.15", 60_000, 3), Cell("t(3)", "", 10_000, 15)),
    *(Cell(x, "", 10_000, 15) for x in ("groups of 5", "weights")),
    *(Cell("normal", "fifth × 1.26", 3000, 40), Cell("normal", "", 3000, 60)),
)
# of which certificates alone are made, without a search
CERTIFICATES = (
    *(Cell(x, "", 3000, 60) for x in RIGHT),
    *(Cell(x, "fifth × 1.26", 3000, 60) for x in ("normal", "t(5)", "groups of 5")),
    *(Cell(x, "all × 1.26", 3000, 40) for x in RIGHT),
    *(Cell("normal", "", 1000, 60), Cell("normal", "fifth of u × 1.26", 3000, 40)),
    *(Cell("normal", "label of a fifth × 1.26", 3000, 40),),
    *(Cell("normal", "few outliers × 1.26", 3000, 40),),
    *(Cell("t(3)", "", 10_000, 30), Cell("groups of 5", "", 10_000, 30)),
    *(Cell("weights", "", 10_000, 30), Cell("normal", "fifth × 1.26", 1000, 60)),
)


# -- counting --------------------------------------------------------------------------


def hold(v: ss.Validation) -> bool:
    """Return whether the limits of all shown parts hold, of a u that is right."""
    for name, verdict in v.verdicts.items():
        right = 0.0 if name == "bias" else 1.0
        if name != "coverage" and any(
            not x.low <= right <= x.high for x in verdict.regions
        ):
            return False
    return True


def counted(cell: Cell, total: int, seed: int) -> str:
    """Judge sets of a kind; return a line of the table."""
    count: collections.Counter[str] = collections.Counter()
    T, perfect, start = [], [], time.process_time()
    for i in range(total):
        v = ss.validate(cell.make(1000 * seed + i), rng=i)
        verdicts = v.verdicts
        asked = FAULTS[cell.fault][1] if cell.fault else "average"
        count[v.answer] += 1
        count["but coverage"] += all(
            x.passed for n, x in verdicts.items() if n != "coverage" and x.counts
        )
        for name, verdict in verdicts.items():
            count[f"{name} {verdict.answer}"] += 1
        is_named = verdicts[asked].answer == "no" or verdicts[asked].suspect is not None
        count["named"] += is_named
        count[f"asked {verdicts[asked].answer}"] += 1
        count["hold"] += hold(v)
        T.append(v.T)
        perfect.append(v.certificate.perfect)
    local = min(count[f"{x} yes"] for x in ("u", "x0", "x1", "x2"))
    shares = [count["yes"], count["no"], count["but coverage"], count["bias yes"]]
    shares += [count["average yes"], local, count["joint yes"], count["coverage yes"]]
    shares += [count["asked yes"], count["asked no"], count["named"]]
    cells = [cell.shape, cell.fault or "right", f"{cell.rows:,}", f"{total}"]
    cells += [f"{x / total:.2f}" for x in shares]
    cells += ["" if cell.fault else f"{count['hold'] / total:.2f}"]
    cells += [f"{np.median(T):.2f}", f"{np.median(perfect):.2f}"]
    seconds = (time.process_time() - start) / total
    return f"| {' | '.join([*cells, f'{seconds:.2f}'])} |"


HEADER = (
    "| errors | u | rows | sets | yes | no | yes but coverage | bias yes | average yes "
    "| u or feature yes (least) | joint yes | coverage yes | question at fault: yes | "
    "no | no or suspect | limits hold | median T | perfect u | s |\n"
    f"|{' --- |' * 19}"
)


def certified(cell: Cell, total: int, seed: int) -> str:
    """Make certificates of sets of a kind; return a line of their table.

    Nothing is searched, and no trees are grown: a yes is T within the tolerance, and a
    suspect may still withhold it.
    """
    count: collections.Counter[str] = collections.Counter()
    T, start = [], time.process_time()
    for i in range(total):
        values = Values(in_canonical_order(cell.make(1000 * seed + i)), 0.95)
        asked = asked_of(values.rows, variables_of(values), "both")
        asked = [x for x in asked if x.name != "joint"]
        found, far = Certified(values, asked, 0.95), {}
        for x in asked:
            far[x.name] = found.worst(x, 5).far / x.question.bound(1.25)
            count[x.name] += far[x.name] <= 1
        count["all"] += max(far.values()) <= 1
        count["but coverage"] += max(v for k, v in far.items() if k != "coverage") <= 1
        count["hold"] += holds(found)
        T.append(max(v for k, v in far.items() if k != "bias"))
    asked_about = FAULTS[cell.fault][1] if cell.fault else "average"
    local = min(count[x] for x in ("u", "x0", "x1", "x2"))
    shares = [count["all"], count["but coverage"], count["bias"], count["average"]]
    shares += [local, count["coverage"], count[asked_about]]
    cells = [cell.shape, cell.fault or "right", f"{cell.rows:,}", f"{total}"]
    cells += [f"{x / total:.2f}" for x in shares]
    cells += ["" if cell.fault else f"{count['hold'] / total:.2f}"]
    cells += [f"{1.25 ** np.median(T):.2f}"]
    seconds = (time.process_time() - start) / total
    return f"| {' | '.join([*cells, f'{seconds:.2f}'])} |"


def holds(found: Certified) -> bool:
    """Return whether the limits of all shown parts hold, of a u that is right."""
    for asked in found.asked:
        if asked.name == "coverage":
            continue  # whose truth depends on the shape of errors
        whole = found.whole(asked, 1)
        if asked.with_whole and not -whole.up <= whole.off <= whole.down:
            return False
        limits = found.limits[type(asked.question)]
        for v in asked.variables:
            fineness = found.finest.get(v.name)
            if fineness is None:
                continue
            place = found.places[v.name, fineness]
            low, high = limits.all_low[place], limits.all_high[place]
            if (low > 0).any() or (high < 0).any():
                return False
    return True


CERTIFIED = (
    "| errors | u | rows | sets | T of all within 1.25 | but coverage | bias | average "
    "| u or feature (least) | coverage | question at fault | limits hold | median T | "
    f"s |\n|{' --- |' * 14}"
)


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


def short(v: ss.Validation, claim: str) -> str:
    """Return T and the answers of a set in a cell."""
    count = collections.Counter(x.answer for x in v.verdicts.values())
    T = f"{math.ceil(100 * v.T) / 100:.2f}" if v.T < 20 else "–"
    answers = f"{count['yes']} ✓, {count['no']} ✗, {count['cannot tell']} ?"
    return f"{T} ({answers})" if claim == "both" else f"{T} {v.answer}"


def real_sets(folder: Path) -> Iterator[str]:
    """Judge the test part of each real set, before and after a fit on the other."""
    yield "| set | rows | T before | T after | intervals before | after | after |"
    yield f"|{' --- |' * 7}"
    count: collections.Counter[str] = collections.Counter()
    for path in sorted(folder.glob("*.csv.gz")):
        fit, test = real_rows(path)
        stages = {"before": test, "after": ss.Recalibrator().fit(fit).apply(test)}
        cells = [path.name.split(".")[0].replace("_", " "), f"{test.n_rows:,}"]
        for claim in ("both", "intervals"):
            for when, rows in stages.items():
                v = ss.validate(rows, claim=claim)
                cells.append(short(v, claim))
                count[f"{claim}, {when}: {v.answer}"] += 1
                for verdict in v.verdicts.values():
                    count[f"{claim}, {when}, questions: {verdict.answer}"] += 1
                if (claim, when) == ("both", "after"):
                    headline = v.headline
        yield f"| {' | '.join([*cells, headline])} |"
    yield ""
    for key, value in sorted(count.items()):
        yield f"- {key}: {value}"


def main() -> None:
    """Count, and print a line as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, help="sets of each cell")
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--only", default="", help="cells whose name holds this text")
    parser.add_argument("--real", type=Path, help="a folder of real sets")
    parser.add_argument(
        "--certificates", action="store_true", help="make certificates alone"
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines: list[str] = []

    def say(text: str) -> None:
        print(text, flush=True)
        lines.append(text)
        if options.out is not None:
            options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")

    if options.real is not None:
        for line in real_sets(options.real):
            say(line)
        return
    if options.certificates:
        say(CERTIFIED)
        for cell in CERTIFICATES:
            if options.only in cell.name:
                say(certified(cell, options.sets or cell.sets, options.seed))
        return
    say(HEADER)
    for cell in CELLS:
        if options.only in cell.name:
            say(counted(cell, options.sets or cell.sets, options.seed))


if __name__ == "__main__":
    main()
