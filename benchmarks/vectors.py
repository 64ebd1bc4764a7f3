"""Measure balls and checks of vectors: forces of simulated structures.

A structure has 20 atoms of three species (half, 30 % and 20 % of all), and each of
them an uncertainty u. Errors have three components, all of the same spread: normal,
Student's t with 4 degrees of freedom (of vectors: one factor for all components), or
normal with a factor of 0.6 to 1.3 that all atoms of a structure share ("groups").

Balls: u is wrong by species (0.8, 1 and 1.5) and grows as u to the power 1.2. A
recalibrator is fitted to 150 structures, and 90 % balls of 150 others are counted.
False alarms: u is right; sets of 2,000 atoms of which some check fails.
Power: u of the rarest species is off by 1.5; sets of 2,000 atoms where the check of
species says no and names it.

    python benchmarks/vectors.py                    # 40 sets of balls, 200 of checks
    python benchmarks/vectors.py --sets 10 20       # fewer

prints Markdown tables; ± is one standard error over sets.
"""

from __future__ import annotations

import argparse

import numpy as np

import sigmascale as ss

SPECIES, SHARES = np.array(["H", "C", "O"]), (0.5, 0.3, 0.2)
WRONG = {"H": 0.8, "C": 1.0, "O": 1.5}
ATOMS = 20  # of a structure
KINDS = ("normal", "t(4)", "groups")
COVERAGES = (0.5, 0.9, 0.95)


def forces(rng, n_structures, kind, *, wrong=None, power=1.0, grouped=True):
    """Return errors of the forces of all atoms, with u, species and structure."""
    n = n_structures * ATOMS
    u, x = rng.lognormal(-1, 0.5, n), rng.normal(size=n)
    species, group = (
        rng.choice(SPECIES, n, p=SHARES),
        np.repeat(range(n_structures), ATOMS),
    )
    z = rng.normal(size=(n, 3))
    if kind == "t(4)":
        z *= np.sqrt(2 / rng.chisquare(4, size=n))[:, None]
    elif kind == "groups":
        factor = rng.uniform(0.6, 1.3, n_structures)[group]
        z *= factor[:, None] / np.sqrt((1.3**3 - 0.6**3) / (3 * 0.7))
    factors = np.array([(wrong or {}).get(s, 1.0) for s in species])
    return ss.Predictions(
        y_std=u,
        error=(u**power * factors)[:, None] * z,
        features={"species": species, "coordination": x},
        groups=group if grouped else None,
    )


def balls(kind, n_sets):
    """Return the shares that balls hold in each set: all atoms, and by species."""
    held = []
    for seed in range(n_sets):
        rng = np.random.default_rng(seed)
        known, new = (forces(rng, 150, kind, wrong=WRONG, power=1.2) for _ in range(2))
        after = ss.Recalibrator().fit(known).apply(new)
        inside = [after.distributions.contains(new.error, c) for c in COVERAGES]
        of = new.features["species"]
        held.append(
            [x.mean() for x in inside] + [inside[1][of == s].mean() for s in SPECIES]
        )
    return np.array(held)


def answers(kind, n_sets, wrong=None):
    """Return in which sets a check fails, and species is named with it."""
    found = []
    for seed in range(n_sets):
        rng = np.random.default_rng(10_000 + seed)
        p = forces(rng, 100, kind, wrong=wrong, grouped=kind == "groups")
        v = ss.validate(p)
        check = v.checks["adaptivity: species"]
        named = check.result == "FAIL" and check.subgroup.where == "species = O"
        found.append((v.result == "FAIL", named))
    return np.array(found, dtype=float)


def in_words(x):
    """Return the mean and its standard error."""
    return f"{x.mean():.3f} ± {x.std(ddof=1) / np.sqrt(len(x)):.3f}"


def main():
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sets",
        nargs=2,
        type=int,
        default=(40, 200),
        metavar=("BALLS", "VERDICTS"),
        help="sets of each kind",
    )
    n_balls, n_checks = parser.parse_args().sets
    print("| 90 % balls hold | 50 % | 90 % | 95 % | H | C | O |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for kind in KINDS:
        cells = map(in_words, balls(kind, n_balls).T)
        print(f"| {kind} | {' | '.join(cells)} |", flush=True)
    print("\n| checks | false alarms | a species off by 1.5 is found |")
    print("| --- | --- | --- |")
    pooled = []
    for kind in KINDS:
        alarms = answers(kind, n_checks)[:, 0]
        pooled.append(alarms)
        power = answers(kind, n_checks, {"O": 1.5})[:, 1]
        print(f"| {kind} | {in_words(alarms)} | {in_words(power)} |", flush=True)
    print(f"| all | {in_words(np.concatenate(pooled))} | |")


if __name__ == "__main__":
    main()
