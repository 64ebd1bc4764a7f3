"""How often verdicts are wrong, and what they find.

    python benchmarks/verdicts.py --replications 500 --out docs/studies/verdicts.md

Each line is a kind of data; each number the share of replications with that answer.
False alarms are "no" to sets that are perfectly calibrated. At 95 % confidence they
should be at most 5 %, or a little more where tails are heavy or groups few.
"""

from __future__ import annotations

import argparse
import collections
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sigmascale._support.rows import Rows, judged_rows

from sigmascale.judging.intervals import average_of
from sigmascale.judging.scan import shuffle_and_test
from sigmascale.judging.verdicts import AVERAGE_SHARE, Answers, Plan

Law = Callable[[np.random.Generator, int], np.ndarray]


def normal(rng, n):
    """Return normal z-scores."""
    return rng.standard_normal(n)


def student(nu):
    """Return Student-t z-scores of unit variance."""
    return lambda rng, n: rng.standard_t(nu, n) * np.sqrt((nu - 2) / nu)


def zero_inflated(rng, n):
    """Return z-scores of which 30 % are exactly 0."""
    return rng.standard_normal(n) * (rng.random(n) > 0.3) / np.sqrt(0.7)


def lognormal(rng, n):
    """Return centred lognormal z-scores of unit variance."""
    return (np.exp(rng.standard_normal(n)) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)


@dataclass(frozen=True)
class Case:
    """A kind of data: what it is called, how it is made, and how it is judged."""

    title: str
    make: Callable[[np.random.Generator], Rows]
    tolerance: float = 2.0
    blamed: str = ""  # the verdict whose "no" counts beside the overall answer
    fewer: int = 1  # times fewer replications, where one takes long


def calibrated(n: int, n_features: int, law: Law) -> Callable[..., Rows]:
    """Make a calibrated set."""

    def make(rng: np.random.Generator) -> Rows:
        u = rng.gamma(3, 1, n)
        features = {f"x{i}": rng.normal(size=n) for i in range(n_features)}
        return judged_rows(u * law(rng, n), u, features)

    return make


def wrong(n: int, factor: Callable[..., Any], bias: Any = None) -> Callable[..., Rows]:
    """Make a set whose errors are too large by a factor of the ranks of u and x."""

    def make(rng: np.random.Generator) -> Rows:
        u, x, y = rng.gamma(3, 1, n), rng.normal(size=n), rng.normal(size=n)
        rank_u, rank_x, rank_y = ((v.argsort().argsort() + 0.5) / n for v in (u, x, y))
        z = rng.standard_normal(n) * factor(rng, rank_u, rank_x, rank_y)
        z += 0 if bias is None else bias(rank_x)
        return judged_rows(u * z, u, {"x": x, "y": y})

    return make


def tenth(factor: float, of: str = "x", share: float = 0.1) -> Callable[..., Any]:
    """Make errors of a tenth of the rows, side by side in x or u, larger."""

    def factors(rng, rank_u, rank_x, rank_y):
        rank = rank_x if of == "x" else rank_u
        start = rng.uniform(0, 1 - share)
        return np.where((rank >= start) & (rank < start + share), factor, 1.0)

    return factors


def repeats(n_groups: int, size: int, rho: float) -> Callable[..., Rows]:
    """Make calibrated sets whose rows come in groups of correlated z-scores."""

    def make(rng: np.random.Generator) -> Rows:
        groups = np.repeat(np.arange(n_groups), size)
        shared = np.repeat(rng.standard_normal(n_groups), size)
        z = np.sqrt(rho) * shared + np.sqrt(1 - rho) * rng.standard_normal(groups.size)
        u = np.repeat(rng.gamma(3, 1, n_groups), size)
        x = np.repeat(rng.normal(size=n_groups), size)
        return judged_rows(u * z, u, {"x": x}, groups.astype(float))

    return make


def labels(factor: float) -> Callable[..., Rows]:
    """Make sets with a label of a third of the rows, and 30 labels of one row each."""

    def make(rng: np.random.Generator) -> Rows:
        n = 1000
        label = rng.choice(["a", "b", "c"], n).astype(object)
        label[:30] = [f"single {i}" for i in range(30)]
        u = rng.gamma(3, 1, n)
        z = rng.standard_normal(n) * np.where(label == "a", factor, 1.0)
        return judged_rows(u * z, u, {"label": label.astype(str)})

    return make


def few_values(rng: np.random.Generator) -> Rows:
    """Make a feature of five values, independent of all, beside an inconsistent u."""
    n = 1000
    u = rng.gamma(3, 1, n)
    z = rng.standard_normal(n) * np.where(u > np.median(u), 1.5, 0.7)
    return judged_rows(u * z, u, {"x": rng.integers(0, 5, n).astype(float)})


def xor(rng, rank_u, rank_x, rank_y):
    """Return standard deviations that no single variable shows."""
    return np.sqrt(np.where((rank_x > 0.5) == (rank_y > 0.5), 1.9, 0.1))


LAWS = {"normal": normal, "t(5)": student(5), "zero-inflated": zero_inflated}
HEAVY = {"t(3)": student(3), "centred lognormal": lognormal}


def false_alarms() -> list[Case]:
    """Return sets that are calibrated."""
    cases = [
        Case(f"{name}, {n:,} rows, {p} features", calibrated(n, p, law), fewer=fewer)
        for name, law in LAWS.items()
        for n, p, fewer in (
            *((200, 1, 1), (200, 8, 1), (1000, 1, 1), (1000, 8, 1)),
            *((10_000, 1, 2), (10_000, 8, 4)),
        )
    ]
    cases += [
        Case(f"normal, {n:,} rows, 60 features", calibrated(n, 60, normal), fewer=fewer)
        for n, fewer in ((200, 2), (1000, 4))
    ]
    cases += [
        Case(f"{name}, {n:,} rows, 2 features", calibrated(n, 2, law), fewer=fewer)
        for name, law in HEAVY.items()
        for n, fewer in ((200, 1), (1000, 1), (10_000, 2))
    ]
    cases += [
        Case(f"repeats {g} x {size}, correlation {rho}", repeats(g, size, rho))
        for g, size in ((250, 4), (500, 2), (82, 5))
        for rho in (0.5, 0.9)
    ]
    return [
        *cases,
        Case("30 labels of one row", labels(1.0)),
        Case("five values beside an inconsistent u", few_values, blamed="x"),
    ]


def failures() -> list[Case]:
    """Return sets that are wrong somewhere."""
    third = tenth(1 / 0.9, "u", 1 / 3)
    return [
        Case(
            "10,000 rows, u 20 % too small in a tenth of x",
            wrong(10_000, tenth(1 / 0.8)),
            blamed="x",
            fewer=4,
        ),
        Case(
            "10,000 rows, u 10 % too small in a tenth of x",
            wrong(10_000, tenth(1 / 0.9)),
            blamed="x",
            fewer=2,
        ),
        Case(
            "10,000 rows, u 10 % too small in a third of u",
            wrong(10_000, third),
            blamed="u",
            fewer=4,
        ),
        Case(
            "1,000 rows, u 20 % too small in a third of u",
            wrong(1000, tenth(1 / 0.8, "u", 1 / 3)),
            blamed="u",
        ),
        Case("1,000 rows, a label 20 % off", labels(1 / 0.8), blamed="label"),
        Case(
            "10,000 rows, XOR of two features",
            wrong(10_000, xor),
            blamed="joint",
            fewer=5,
        ),
        Case(
            "10,000 rows, bias of 0.1 u and -0.1 u",
            wrong(10_000, lambda *_: 1.0, lambda r: np.where(r > 0.5, 0.1, -0.1)),
            blamed="bias",
            fewer=4,
        ),
        Case("300 rows, a tenth of x off by 2", wrong(300, tenth(2.0))),
        Case("300 rows, a tenth of u off by 2", wrong(300, tenth(2.0, "u"))),
        Case("1,000 rows, a tenth of x off by 2", wrong(1000, tenth(2.0))),
        Case(
            "10,000 rows, a tenth of x off by 1.2, tolerance 1.2",
            wrong(10_000, tenth(1.2)),
            tolerance=1.2,
            fewer=4,
        ),
        Case("300 rows, calibrated", calibrated(300, 2, normal)),
        Case("1,000 rows, calibrated", calibrated(1000, 2, normal)),
    ]


def answers(rows: Rows, tolerance: float, rng: np.random.Generator) -> dict[str, str]:
    """Return the answer to each question, as `validate` gives it."""
    plan = Plan.of(0.95, tolerance, None)
    average = average_of(rows, 1 - plan.level(AVERAGE_SHARE), rng)
    shuffled = shuffle_and_test(rows, plan.n_draws, rng, joint=True)
    asked = Answers(rows, plan, average, shuffled, rng)
    return {name: each.answer for name, each in asked.all(joint=True).items()}


STUDIES = {"Calibrated": false_alarms, "Wrong": failures}


def study(title: str, number: int, replications: int, seed: int) -> list[str]:
    """Return a line of a table."""
    warnings.simplefilter("ignore")
    case = STUDIES[title]()[number]
    rng = np.random.default_rng(seed)
    count: collections.Counter[str] = collections.Counter()
    runs = max(20, replications // case.fewer)
    for _ in range(runs):
        found = answers(case.make(rng), case.tolerance, rng)
        worst = next(a for a in ("no", "cannot tell", "yes") if a in found.values())
        count[worst] += 1
        for name, answer in found.items():
            count[f"{name}: {answer}"] += 1
    shares = [f"{count[each] / runs:.3f}" for each in ("no", "cannot tell", "yes")]
    blamed = f"{count[f'{case.blamed}: no'] / runs:.3f}" if case.blamed else ""
    others = max(
        (
            count[f"{name}: no"] / runs
            for name in ("x", "y", "u")
            if name != case.blamed
        ),
        default=0.0,
    )
    return [case.title, str(runs), *shares, blamed, f"{others:.3f}" if blamed else ""]


HEADER = [
    "data",
    "sets",
    "no",
    "cannot tell",
    "yes",
    "no to the right one",
    "to others",
]


def main() -> None:
    """Print the tables, and write them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    text = ""
    with ProcessPoolExecutor(options.jobs) as pool:
        for title, cases in STUDIES.items():
            text += f"\n### {title}\n\n| {' | '.join(HEADER)} |\n"
            text += f"|{' --- |' * len(HEADER)}\n"
            print(title, flush=True)
            count = len(cases())
            settings = zip(
                *((title, i, options.replications, options.seed) for i in range(count)),
                strict=True,
            )
            for line in pool.map(study, *settings):
                text += f"| {' | '.join(line)} |\n"
                print("  " + "  ".join(line), flush=True)
    if options.out is not None:
        options.out.write_text(text.lstrip(), encoding="utf-8")


if __name__ == "__main__":
    main()
