"""Several targets: do they gain by leaning on each other, and how often is one blamed.

The first table: twelve targets of 30 to 1,000 rows, each in a unit of its own, with
sigma = level * hypot(u, floor); `RecalibratedTargets` against separate fits of the same
template and against one factor for all, by the mean NLL of new rows. The second: force
components of atoms, perfectly calibrated, whose errors have a part in common with the
other atoms of the structure and with the other components; how often
`validate` finds fault with any component, by structures and by atoms.

    python benchmarks/targets.py

prints both as Markdown, those of `docs/targets.md`; --sets sets the number of sets.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import sigmascale as ss

SIZES = [30] * 4 + [60] * 3 + [200] * 3 + [1000] * 2
N_NEW = 2000
LAWS = {
    "one factor is right": {"level_sd": 0.0, "floor": 0.0},
    "one factor each": {"level_sd": 0.3, "floor": 0.0},
    "all alike": {"level_sd": 0.0},
    "levels differ": {"level_sd": 0.3},
    "levels differ much": {"level_sd": 1.0},
    "floors differ": {"level_sd": 0.3, "floor_sd": 1.0},
    "all alike, t(4)": {"level_sd": 0.0, "df": 4},
    "levels differ, t(4)": {"level_sd": 0.3, "df": 4},
}
TEMPLATES = {
    "linear": ss.LinearScaling(),
    "temperature": ss.TemperatureScaling(),
}
STRUCTURES, ATOMS = 60, 20
CORRELATIONS = ((0.0, 0.0), (0.3, 0.5), (0.6, 0.9))  # of atoms, and of components


def make_targets(seed, *, level_sd, floor=0.5, floor_sd=0.0, df=None):
    """Return u and errors to fit, with gaps, and new ones."""
    rng = np.random.default_rng(seed)
    n_targets = len(SIZES)
    level = np.exp(rng.normal(0, level_sd, n_targets))
    floors = np.abs(floor + rng.normal(0, floor_sd, n_targets))
    unit = 10.0 ** rng.uniform(-3, 3, n_targets)

    def draw(n):
        u = rng.lognormal(0, 0.6, (n, n_targets))
        if df is None:
            z = rng.normal(size=u.shape)
        else:
            z = rng.standard_t(df, u.shape) * np.sqrt((df - 2) / df)
        return u * unit, unit * level * np.hypot(u, floors) * z

    u, error = draw(max(SIZES))
    for k, size in enumerate(SIZES):
        error[rng.permutation(len(u))[size:], k] = np.nan
    return u, error, *draw(N_NEW)


def mean_nll(u, error):
    """Return the mean over targets and rows."""
    return float(np.mean(np.log(u) + 0.5 * (error / u) ** 2))


def gains(seed, template, law):
    """Return by how much others are worse: separate fits, and one factor."""
    u, error, u_new, error_new = make_targets(seed, **law)
    known = ~np.isnan(error)
    new = ss.RecalibratedTargets(template).fit(u, error).predict(u_new)
    alone = np.column_stack(
        [
            type(template)().fit(u[k, i], error[k, i]).predict(u_new[:, i])
            for i, k in enumerate(known.T)
        ]
    )
    factor = np.sqrt(np.mean((error[known] / u[known]) ** 2))
    ours = mean_nll(new, error_new)
    return mean_nll(alone, error_new) - ours, mean_nll(factor * u_new, error_new) - ours


def calibrated_forces(of_atoms, of_components, rng):
    """Return errors and uncertainties of shape (n, 3), and the structures."""
    structure = np.repeat(np.arange(STRUCTURES), ATOMS)
    covariance = of_components + (1 - of_components) * np.eye(3)
    common, own = (
        rng.multivariate_normal(np.zeros(3), covariance, n)
        for n in (STRUCTURES, structure.size)
    )
    z = np.sqrt(of_atoms) * common[structure] + np.sqrt(1 - of_atoms) * own
    u = rng.lognormal(0, 0.4, (structure.size, 1)) * rng.lognormal(0, 0.1, z.shape)
    return z * u, u, structure


def false_alarms(of_atoms, of_components, n_sets):
    """Return how often any component is blamed, by structures and by atoms."""
    found = np.zeros(2)
    for seed in range(n_sets):
        rng = np.random.default_rng(seed)
        error, u, structure = calibrated_forces(of_atoms, of_components, rng)
        for i, groups in enumerate((structure, None)):
            answer = ss.validate(ss.split_targets(error, u, groups=groups)).answer
            found[i] += answer == "no"
    return found / n_sets


def main():
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=50)
    parser.add_argument("--alarms", type=int, help="sets of forces, if not as many")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| template | targets | separate fits | one factor | worst |")
    print("| --- | --- | --- | --- | --- |")
    for name, template in TEMPLATES.items():
        for law, numbers in LAWS.items():
            found = np.array([gains(i, template, numbers) for i in range(options.sets)])
            (alone, pooled), error = found.mean(0), found.std(0) / np.sqrt(len(found))
            print(
                f"| {name} | {law} | {alone:+.4f} ± {error[0]:.4f} | {pooled:+.4f} ± "
                f"{error[1]:.4f} | {found[:, 1].min():+.4f} |",
                flush=True,
            )
    n_sets = options.sets if options.alarms is None else options.alarms
    print("\n| atoms | components | by structures | by atoms |")
    print("| --- | --- | --- | --- |")
    for of_atoms, of_components in CORRELATIONS:
        found = false_alarms(of_atoms, of_components, n_sets)
        cells = " | ".join(f"{100 * each:.1f} %" for each in found)
        print(f"| {of_atoms} | {of_components} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
