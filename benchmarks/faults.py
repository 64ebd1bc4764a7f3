"""Follow the step that is advised for simulated faults, and tell what it gains.

    python benchmarks/faults.py --sets 10

The first step is followed literally: a recalibrator so made of 3,000 rows is tested on
3,000 others, in so many sets of each fault.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import sigmascale as ss

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


def follow(name: str, seed: int, n: int = 3000) -> dict[str, Any] | None:
    """Do what the first step says, and test other rows; None if it is no fit."""
    p, new = make(name, n, seed), make(name, n, seed + 1000)
    steps = ss.validate(p).next_steps
    if not steps or steps[0].verb != "fit":
        return None
    r = eval(steps[0].python, {"ss": ss, "calibration": p})  # literally
    v = ss.validate(r.apply(new), before=new)
    sizes = [check for check in v.checks.values() if check.unit == ""]
    off = [abs(math.log(s.estimate)) for check in sizes for s in check.subgroups]
    change = v.change.relative
    return {"line": steps[0].python, "worst": math.exp(max(off)), "crps": change.value}


def main() -> None:
    """Print what the steps gain, a line a fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=10, help="sets of each fault")
    n_sets = parser.parse_args().sets
    warnings.simplefilter("ignore")
    print("| fault | step | worst RMS z of a tenth | change of CRPS |")
    print(f"|{' --- |' * 4}")
    for name in FAULTS:
        found = [x for x in (follow(name, seed) for seed in range(n_sets)) if x]
        cells = [name, "none", "", ""]
        if found:
            worst, change = (
                np.array([x[key] for x in found]) for key in ("worst", "crps")
            )
            error = change.std(ddof=1) / math.sqrt(len(found)) if len(found) > 1 else 0
            numbers = [f"{worst.mean():.2f}", f"{change.mean():+.3f} ± {error:.3f}"]
            cells = [name, f"`{found[0]['line']}`", *numbers]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
