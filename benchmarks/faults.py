"""What verdicts say of simulated faults, and what the steps that they advise gain.

    python benchmarks/faults.py --out benchmarks/studies/faults.md
    python benchmarks/faults.py --follow 10

The first writes a page of headlines, sentences and next steps, of each fault at 300 and
3,000 rows. The second follows the first step literally: what a recalibrator so made of
3,000 rows does to 3,000 others, in so many sets of each fault.
"""

from __future__ import annotations

import argparse
import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sigmascale as ss

INTRODUCTION = """# What verdicts say of faults

Simulated sets, each with one fault, or none, at 300 and at 3,000 rows, and what \
`print(ss.validate(p))` says. Features are `mass` and `T`, which are numbers, and \
`kind`, a label. By `python benchmarks/faults.py --out benchmarks/studies/faults.md`."""

Columns = dict[str, np.ndarray]
Fault = Callable[[np.random.Generator, np.ndarray, Columns], np.ndarray]


def average(rng: np.random.Generator, z: np.ndarray, x: Columns) -> np.ndarray:
    """Make u 1.6 times too small everywhere."""
    return 1.6 * z


def bias(rng: np.random.Generator, z: np.ndarray, x: Columns) -> np.ndarray:
    """Make all predictions too low by 0.6 u."""
    return z + 0.6


def local_bias(rng: np.random.Generator, z: np.ndarray, x: Columns) -> np.ndarray:
    """Make predictions of alloys too low by 1.5 u."""
    return z + 1.5 * (x["kind"] == "alloy")


def by_u(rng: np.random.Generator, z: np.ndarray, x: Columns) -> np.ndarray:
    """Make u twice too small in its lowest third."""
    return z * np.where(x["u"] < np.quantile(x["u"], 1 / 3), 2.0, 1.0)


def by_number(rng: np.random.Generator, z: np.ndarray, x: Columns) -> np.ndarray:
    """Make u 1.8 times too small for masses above 300."""
    return z * np.where(x["mass"] > 300, 1.8, 1.0)


def by_label(rng: np.random.Generator, z: np.ndarray, x: Columns) -> np.ndarray:
    """Make u twice too small for alloys."""
    return z * np.where(x["kind"] == "alloy", 2.0, 1.0)


def rare_flag(rng: np.random.Generator, z: np.ndarray, x: Columns) -> np.ndarray:
    """Make u 2.5 times too small for 3 % of the rows, which have a flag."""
    x["flag"] = (rng.random(z.size) < 0.03).astype(float)
    return z * np.where(x["flag"] > 0, 2.5, 1.0)


def two_numbers(rng: np.random.Generator, z: np.ndarray, x: Columns) -> np.ndarray:
    """Make u twice too small where mass and T are both high, or both low."""
    return z * np.where((x["mass"] > 250) == (x["T"] > 500), 2.0, 1.0)


def number_and_label(rng: np.random.Generator, z: np.ndarray, x: Columns) -> np.ndarray:
    """Make u 2.5 times too small for alloys with T above 500."""
    return z * np.where((x["kind"] == "alloy") & (x["T"] > 500), 2.5, 1.0)


def heavy_tails(rng: np.random.Generator, z: np.ndarray, x: Columns) -> np.ndarray:
    """Draw errors from Student's t with 3 degrees of freedom; their size is right."""
    return rng.standard_t(3, z.size) / math.sqrt(3)


def outliers(rng: np.random.Generator, z: np.ndarray, x: Columns) -> np.ndarray:
    """Make one in a hundred errors 20 times as large."""
    return z * np.where(rng.random(z.size) < 0.01, 20.0, 1.0)


def repeats(rng: np.random.Generator, z: np.ndarray, x: Columns) -> np.ndarray:
    """Take five rows of each sample, with most of an error 1.6 times too large."""
    sample = np.arange(z.size) // 5
    for name in ("mass", "T", "kind"):
        x[name] = x[name][5 * sample]
    x["sample"] = sample
    return 1.6 * (0.9 * rng.normal(size=z.size)[sample] + math.sqrt(0.19) * z)


def nothing(rng: np.random.Generator, z: np.ndarray, x: Columns) -> np.ndarray:
    """Leave everything right."""
    return z


def drift(rng: np.random.Generator, z: np.ndarray, x: Columns) -> np.ndarray:
    """Let errors grow to 2.2 times as large as time goes on."""
    x["time"] = np.arange(z.size)
    return z * np.linspace(1, 2.2, z.size)


def zeros(rng: np.random.Generator, z: np.ndarray, x: Columns) -> np.ndarray:
    """Make 40 % of the errors exactly 0, and the others larger."""
    return np.where(rng.random(z.size) < 0.4, 0.0, z / math.sqrt(0.6))


def constant_u(rng: np.random.Generator, z: np.ndarray, x: Columns) -> np.ndarray:
    """Say the same u of all rows, and nothing else, though errors differ in size."""
    errors = x["u"] * z
    for name in ("mass", "T", "kind"):
        del x[name]
    x["u"] = np.full(z.size, math.sqrt(np.mean(x["u"] ** 2)))
    return errors / x["u"]


def useless_u(rng: np.random.Generator, z: np.ndarray, x: Columns) -> np.ndarray:
    """Draw u at random, by 10 %, while all errors have one size."""
    x["u"] = rng.lognormal(0, 0.1, z.size)
    return z / x["u"]


def hidden_repeats(rng: np.random.Generator, z: np.ndarray, x: Columns) -> np.ndarray:
    """Take five rows of each sample, with a right u, and do not say so."""
    sample = np.arange(z.size) // 5
    for name in x:
        x[name] = x[name][5 * sample]
    return 0.9 * rng.normal(size=z.size)[sample] + math.sqrt(0.19) * z


FAULTS: dict[str, Fault] = {
    fault.__name__: fault
    for fault in (
        *(average, bias, local_bias, by_u, by_number, by_label, rare_flag),
        *(two_numbers, number_and_label, heavy_tails, outliers, repeats, nothing),
        *(drift, zeros, constant_u, useless_u, hidden_repeats),
    )
}


def make(name: str, n: int, seed: int) -> ss.Predictions:
    """Return a set of a fault."""
    rng = np.random.default_rng([seed, n, *name.encode()])
    x: Columns = {
        "u": rng.lognormal(0, 0.5, n),
        "mass": rng.uniform(10, 490, n),
        "T": rng.uniform(300, 700, n),
        "kind": rng.choice(["alloy", "oxide", "nitride", "glass", "salt"], n),
    }
    z = FAULTS[name](rng, rng.normal(size=n), x)
    u, groups, time = x.pop("u"), x.pop("sample", None), x.pop("time", None)
    return ss.Predictions(error=u * z, y_std=u, features=x, groups=groups, time=time)


def page(seed: int) -> str:
    """Return what verdicts say of all faults, as a page."""
    text = [INTRODUCTION]
    for name, fault in FAULTS.items():
        text.append(f"## {name.replace('_', ' ').capitalize()}\n\n*{fault.__doc__}*")
        for n in (300, 3000):
            text.append(f"```text\n{ss.validate(make(name, n, seed))}\n```")
    return "\n\n".join(text) + "\n"


def follow(name: str, seed: int, n: int = 3000) -> dict[str, Any] | None:
    """Do what the first step says, and judge other rows; None if it is no fit to p."""
    p, new = make(name, n, seed), make(name, n, seed + 1000)
    steps = ss.validate(p).next_steps
    if not steps or steps[0].how is None:
        return None
    line = steps[0].python.split(".apply(new)")[0]
    known = {x: getattr(ss, x) for x in ("Recalibrator", "TemperatureScaling")}
    after = eval(line, known | {"p": p}).apply(new)  # literally
    found = ss.validate(after).verdicts
    regions = [
        region
        for question, verdict in found.items()
        if question not in ("bias", "coverage")
        for region in verdict.regions
    ]
    off = max(abs(math.log(region.estimate)) for region in regions)
    promised = re.search(r"CRPS by ([\d.]+) %", steps[0])
    return {
        "line": line,
        "worst": math.exp(off),
        "crps": ss.scores.crps(after) / ss.scores.crps(new),
        "promised": float(promised[1]) / 100 if promised else None,
    }


def followed(n_sets: int) -> str:
    """Return what the steps gain, in a table."""
    lines = ["| fault | step | worst factor | CRPS, after / before | promised |"]
    lines.append(f"|{' --- |' * 5}")
    for name in FAULTS:
        found = [x for x in (follow(name, seed) for seed in range(n_sets)) if x]
        cells = [name, "none"]
        if found:
            worst, ratio = (
                np.array([x[key] for x in found]) for key in ("worst", "crps")
            )
            error = ratio.std(ddof=1) / math.sqrt(len(found)) if len(found) > 1 else 0
            promised = [1 - x["promised"] for x in found if x["promised"]]
            kept = f"{np.mean(worst):.2f} (within 1.25 in {np.mean(worst < 1.25):.0%})"
            cells = [
                name,
                f"`{found[0]['line']}`",
                kept,
                f"{ratio.mean():.3f} ± {error:.3f}",
            ]
            cells.append(f"{np.mean(promised):.3f}" if promised else "")
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    """Write the page, or follow the steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="the page")
    parser.add_argument("--follow", type=int, default=0, help="sets of each fault")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.out is not None or not options.follow:
        text = page(options.seed)
        print(text) if options.out is None else options.out.write_text(text, "utf-8")
    if options.follow:
        followed(options.follow)


if __name__ == "__main__":
    main()
