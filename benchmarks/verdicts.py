"""How often verdicts are wrong, and what they find.

    python benchmarks/verdicts.py --replications 300 --out docs/studies/verdicts.md

Each line is a kind of data, with u and three features unless it says otherwise; each
number is a share of replications, with its standard error. Sets of 10⁵ rows have a
third of the replications, those of 10⁶ four thirtieths. What was counted is kept in a
file (`--kept`), so that a study which was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import sigmascale as ss
from sigmascale.maps.laws import EmpiricalLaw

Law = Callable[[np.random.Generator, int], np.ndarray]
SIZES = ("u", "x0", "x1", "x2", "label", "joint")


def normal(rng, n):
    """Return normal z-scores."""
    return rng.standard_normal(n)


def student(nu):
    """Return Student-t z-scores of unit variance."""
    return lambda rng, n: rng.standard_t(nu, n) * np.sqrt((nu - 2) / nu)


def lognormal(rng, n):
    """Return centred lognormal z-scores of unit variance."""
    return (np.exp(rng.standard_normal(n)) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)


def mostly_zero(rng, n):
    """Return z-scores of which 90 % are exactly 0."""
    return rng.standard_normal(n) * (rng.random(n) < 0.1) * np.sqrt(10)


@dataclass(frozen=True)
class Case:
    """A kind of data: what it is called, how it is made, and how it is judged."""

    title: str
    make: Callable[[np.random.Generator], tuple[Any, ...]]
    tolerance: float = 2.0
    blamed: str = ""  # the verdict that should be the one to say no
    share: float = 1.0  # of the replications, where one takes long
    lazy: bool = False  # whether rows come as a lazy frame


def ranks(x):
    """Return the share of rows below each."""
    return (np.argsort(np.argsort(x)) + 0.5) / x.size


def made(n: int, law: Law, change: Any = None, n_features: int = 3) -> Callable:
    """Make sets of n rows; `change` returns factors of z, whose mean square is 1."""

    def make(rng: np.random.Generator) -> tuple[Any, ...]:
        u = rng.gamma(3, 1, n)
        features = {f"x{i}": rng.normal(size=n) for i in range(n_features)}
        z = law(rng, n)
        if change is not None:
            factor = change(rng, u, features, z)
            z = factor * z / np.sqrt(np.mean(factor**2))
        return u * z, u, features, None

    return make


def tenth(by: float) -> Callable:
    """Make z of a tenth of the rows, side by side along x0, larger."""

    def change(rng, u, features, z):
        start = rng.uniform(0, 0.9)
        rank = ranks(features["x0"])
        return np.where((rank >= start) & (rank < start + 0.1), by, 1.0)

    return change


def xor(by: float) -> Callable:
    """Make z larger where x0 and x1 are on the same side, and smaller elsewhere."""

    def change(rng, u, features, z):
        same = (features["x0"] > 0) == (features["x1"] > 0)
        return np.where(same, by, 1 / by)

    return change


def flag(share: float, by: float) -> Callable:
    """Make x0 a flag, of a share of the rows whose z is larger."""

    def change(rng, u, features, z):
        features["x0"] = (rng.random(u.size) < share).astype(float)
        return np.where(features["x0"] > 0, by, 1.0)

    return change


def shape(law: Law, by: str = "x0") -> Callable:
    """Give z another law of the same variance in a fifth of the rows."""

    def change(rng, u, features, z):
        rank = ranks(u if by == "u" else features[by])
        z[:] = np.where(rank > 0.8, law(rng, u.size), z)
        return np.ones(u.size)

    return change


def repeats(n_groups: int, size: int, rho: float) -> Callable:
    """Make calibrated sets whose rows come in groups of correlated z-scores."""

    def make(rng: np.random.Generator) -> tuple[Any, ...]:
        groups = np.repeat(np.arange(n_groups), size)
        shared = np.repeat(rng.standard_normal(n_groups), size)
        z = np.sqrt(rho) * shared + np.sqrt(1 - rho) * rng.standard_normal(groups.size)
        u, x = (np.repeat(rng.gamma(3, 1, n_groups), size) for _ in range(2))
        return u * z, u, {"x0": x}, groups

    return make


def labels(n: int, n_labels: int, factors: dict[int, float]) -> Callable:
    """Make sets with labels, some of which are wrong."""

    def make(rng: np.random.Generator) -> tuple[Any, ...]:
        label = rng.integers(0, n_labels, n)
        factor = np.ones(n_labels)
        factor[list(factors)] = list(factors.values())
        u = rng.gamma(3, 1, n)
        names = np.array([f"label {i}" for i in range(n_labels)])[label]
        return u * rng.standard_normal(n) * factor[label], u, {"label": names}, None

    return make


LAWS = {
    "normal": normal,
    "t(5)": student(5),
    "t(4)": student(4),
    "t(3)": student(3),
    "lognormal": lognormal,
}
ROWS = {300: 1.0, 1000: 1.0, 10_000: 1.0, 100_000: 1 / 3, 1_000_000: 4 / 30}


@cache
def known_law(name: str) -> EmpiricalLaw:
    """Return a law as a table of quantiles, from very many draws."""
    z = LAWS[name](np.random.default_rng(0), 10**6)
    return EmpiricalLaw.learn(z, np.ones(z.size), None, 1)


def with_law(n: int, name: str) -> Callable:
    """Make calibrated predictions that carry their distributions."""

    def make(rng: np.random.Generator) -> tuple[Any, ...]:
        error, u, features, _ = made(n, LAWS[name])(rng)
        rows = ss.Predictions(np.zeros(n), u, y_true=error, features=features)
        given = ss.Distributions(np.zeros(n), u, known_law(name))
        return rows.changed(distributions=given), None, None, None

    return make


def calibrated() -> list[Case]:
    """Return sets that are calibrated."""
    cases = [
        Case(f"{name}, {n:,} rows", made(n, law), share=share)
        for n, share in ROWS.items()
        for name, law in LAWS.items()
    ]
    cases += [
        Case(f"{name}, 1,000 rows, its law given", with_law(1000, name))
        for name in LAWS
    ]
    cases += [
        Case(
            "t(3), 1,000,000 rows, as a lazy frame",
            made(10**6, student(3)),
            share=4 / 30,
            lazy=True,
        )
    ]
    cases += [
        Case(f"normal, {n:,} rows, tolerance {t:g}", made(n, normal), tolerance=t)
        for n, t in ((2500, 1.5), (10_000, 1.2))
    ]
    cases += [
        Case(
            f"normal, 10,000 rows, a flag of {share:.0%}, tolerance 1.5",
            made(10_000, normal, flag(share, 1.0)),
            tolerance=1.5,
        )
        for share in (0.05, 0.09)
    ]
    cases += [
        Case("normal, 1,000 rows, 60 features", made(1000, normal, n_features=60)),
        Case("300 labels of 20,000 rows", labels(20_000, 300, {})),
    ]
    return cases + [
        Case(f"repeats {g} x {size}, correlation {rho}", repeats(g, size, rho))
        for g, size, rho in ((250, 4, 0.5), (250, 4, 0.9), (82, 5, 0.9))
    ]


def only_shape() -> list[Case]:
    """Return sets whose z has another shape in a fifth of the rows, but no other size.

    The number of interest is how often size is blamed.
    """
    return [
        Case(f"{title}, {n:,} rows", made(n, normal, shape(law, by)))
        for n in (1000, 10_000)
        for title, law, by in (
            ("t(3) in a fifth of x0", student(3), "x0"),
            ("90 % zeros in a fifth of u", mostly_zero, "u"),
            ("lognormal in a fifth of x0", lognormal, "x0"),
        )
    ]


def wrong() -> list[Case]:
    """Return sets that are wrong somewhere."""
    cases = [
        Case(
            f"{n:,} rows, {name}, a tenth x {by}", made(n, law, tenth(by)), blamed="x0"
        )
        for n, name, law, by in (
            (1000, "normal", normal, 1.5),
            (1000, "t(5)", student(5), 1.5),
            (1000, "t(3)", student(3), 2.0),
            (1000, "normal", normal, 0.5),
            (10_000, "normal", normal, 1.1),
        )
    ]
    cases += [
        Case(f"{n:,} rows, XOR of {by}", made(n, normal, xor(by)), blamed="joint")
        for n, by in ((25, 2.0), (60, 2.0), (10_000, 1.1))
    ]
    cases += [
        Case(
            f"10,000 rows, a flag of {share:.0%} x 2",
            made(10_000, normal, flag(share, 2.0)),
            blamed="x0",
        )
        for share in (0.01, 0.02, 0.05, 0.09)
    ]
    return [
        *cases,
        Case(
            "200,000 rows, labels of 800 x 2 and x 1/2",
            labels(200_000, 250, {7: 2.0, 9: 0.5}),
            blamed="label",
            share=1 / 3,
        ),
    ]


def planned() -> list[Case]:
    """Return calibrated sets of as many rows as a yes is said to take, and others."""
    cases = []
    for name, tolerance in (("normal", 2.0), ("normal", 1.5), ("t(5)", 2.0)):
        error, u, features, _ = made(2000, LAWS[name])(np.random.default_rng(0))
        known = ss.Predictions(error=error, y_std=u, features=features)
        n = ss.rows_needed(tolerance, predictions=known)
        cases += [
            Case(
                f"{name}, tolerance {tolerance:g}, {words} {n:,} rows",
                made(round(n * times), LAWS[name]),
                tolerance=tolerance,
            )
            for words, times in (("2/3 of", 2 / 3), ("all", 1.0), ("3/2 of", 1.5))
        ]
    return cases


STUDIES = {
    "Calibrated": calibrated,
    "Only the shape differs": only_shape,
    "Wrong": wrong,
    "As many rows as `rows_needed` says, fewer and more": planned,
}


def with_error(count: int, total: int) -> str:
    """Return a share and its standard error."""
    share = count / total
    error = math.sqrt(max(share * (1 - share), 1 / total / 4) / total)
    return f"{share:.3f} ± {error:.3f}"


def judged(case: Case, error: Any, u: Any, features: Any, **options: Any) -> Any:
    """Return the verdicts on a set."""
    options |= {"tolerance": case.tolerance, "method": "moments", "n_bins": 10}
    if not case.lazy:
        return ss.validate(error, u, features, **options)
    import polars as pl

    frame = pl.LazyFrame({"E": error, "sd": u, **features})
    del options["groups"]
    names = {"error": "E", "uncertainty": "sd", "features": list(features)}
    return ss.frames.validate(frame, **names, **options)


def counted(case: Case, seed: list[int]) -> Iterator[str]:
    """Yield what is true of the verdicts on a set."""
    error, u, features, groups = case.make(np.random.default_rng(seed))
    found = judged(case, error, u, features, groups=groups, rng=seed[-1])
    yield found.answer
    answers = {name: verdict.answer for name, verdict in found.verdicts.items()}
    yield from (f"{name} {answer}" for name, answer in answers.items())
    size = {name for name in SIZES if answers.get(name) == "no"}
    if size:
        yield "size"
    if answers.get(case.blamed) == "no":
        yield "right"
    if size - {case.blamed, "joint"}:
        yield "innocent"


def line_of(case: Case, total: int, count: dict[str, int]) -> list[str]:
    """Return a line of a table."""
    numbers = ["no", "cannot tell", "yes", "size", "coverage no"]
    numbers += ["right", "innocent"] if case.blamed else []
    shares = (with_error(count.get(x, 0), total) for x in numbers)
    line = [case.title, str(total), *shares]
    return line + [""] * (len(HEADER) - len(line))


HEADER = [
    "data",
    "sets",
    "no",
    "cannot tell",
    "yes",
    "no to size",
    "no to coverage",
    "to the right",
    "to others",
]


def main() -> None:
    """Count, a tenth of all sets at a time; write the tables after each tenth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="lines that hold this text")
    parser.add_argument("--kept", type=Path, help="what was counted; it is continued")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    kept: dict[str, Any] = {}
    if options.kept is not None and options.kept.exists():
        kept = json.loads(options.kept.read_text(encoding="utf-8"))
    studies = {title: cases() for title, cases in STUDIES.items()}
    for tenth_part in range(1, 11):
        for title, cases in studies.items():
            for number, case in enumerate(cases):
                if options.only not in f"{title}: {case.title}":
                    continue
                count = collections.Counter(kept.get(case.title, {}))
                wanted = round(options.replications * case.share * tenth_part / 10)
                while count["sets"] < wanted:
                    seed = [options.seed, number, count["sets"]]
                    count.update(["sets", *counted(case, seed)])
                kept[case.title] = dict(count)
                if options.kept is not None:
                    options.kept.write_text(json.dumps(kept), encoding="utf-8")
        text = tables(studies, kept)
        print(f"{tenth_part} tenths", text, sep="\n", flush=True)
        if options.out is not None:
            options.out.write_text(text, encoding="utf-8")


def tables(studies: dict[str, list[Case]], kept: dict[str, Any]) -> str:
    """Return all that was counted as tables."""
    text = ""
    for title, cases in studies.items():
        text += (
            f"\n### {title}\n\n| {' | '.join(HEADER)} |\n|{' --- |' * len(HEADER)}\n"
        )
        for case in cases:
            count = kept.get(case.title, {})
            if count.get("sets"):
                line = line_of(case, count["sets"], count)
                text += f"| {' | '.join(line)} |\n"
    return text.lstrip()


if __name__ == "__main__":
    main()
