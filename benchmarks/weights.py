"""Measure what weights promise: honest verdicts, and recalibration for shifted inputs.

    python benchmarks/weights.py alarms

counts how many calibrated sets of weighted rows get a "no" at 95 % confidence. Weights
leave a third of the rows in effect, on average over many sets; they depend on a
feature, on the uncertainty, or on nothing. Errors are normal, or from Student's t with
5 degrees of freedom.

    python benchmarks/weights.py shift

recalibrates for inputs of the density exp(x) times that of the calibration set, with
weights from `covariate_weights`, and compares |ln <Z²>| of the shifted rows with what
it is without weights. Both print a Markdown table; --sets sets the number of sets.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import sigmascale as ss

SPREAD = np.sqrt(np.log(3))  # of the logarithm of weights: n/3 rows in effect
WEIGHTS = ("of a feature", "of u", "random")
LAWS = ("normal", "t(5)")


def calibrated(n_rows, kind, law, rng):
    """Return errors, uncertainties, features and weights of a calibrated set."""
    log_u, x, noise = rng.normal(size=(3, n_rows))
    u = np.exp(0.5 * log_u)
    z = rng.normal(size=n_rows)
    if law != "normal":
        z = rng.standard_t(5, n_rows) * np.sqrt(3 / 5)
    by = {"of a feature": x, "of u": log_u, "random": noise}[kind]
    return u * z, u, {"x": x, "y": rng.random(n_rows)}, np.exp(SPREAD * by)


def alarms(n_sets, n_rows):
    """Print the share of calibrated sets that get a "no"."""
    print("| weights | errors | rows in effect | sets | wrongly found wrong |")
    print("| --- | --- | --- | --- | --- |")
    for kind in WEIGHTS:
        for law in LAWS:
            wrong, share = 0, 0.0
            for seed in range(n_sets):
                rng = np.random.default_rng(seed)
                error, u, features, w = calibrated(n_rows, kind, law, rng)
                share += w.sum() ** 2 / np.sum(w**2) / n_rows / n_sets
                found = ss.validate(
                    error, u, features, sample_weight=w, method="moments", rng=seed
                )
                wrong += found.answer == "no"
            cells = (kind, law, f"{share:.2f} n", n_sets, f"{wrong / n_sets:.1%}")
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def shifted_sets(n_rows, rng):
    """Return a calibration set and one of shifted inputs: tables and errors."""

    def draw(n):
        x, other = rng.uniform(-2, 2, n), rng.normal(size=n)
        u = rng.lognormal(0, 0.3, n)
        error = rng.normal(scale=u * np.exp(0.4 * x))
        return np.column_stack([u, x, other]), error

    X, error = draw(n_rows)
    many, errors = draw(20 * n_rows)
    chance = np.exp(many[:, 1])
    some = rng.choice(errors.size, n_rows, replace=False, p=chance / chance.sum())
    return X, error, many[some], errors[some]


def shift(n_sets, n_rows):
    """Print |ln <Z²>| of shifted rows, without weights and with them."""
    methods = {
        "TemperatureScaling": (ss.TemperatureScaling, 1),
        "IsotonicScaling": (ss.IsotonicScaling, 1),
        "SelectedScaling, with the features": (ss.SelectedScaling, 3),
    }
    found = {name: ([], []) for name in methods}
    effective = []
    for seed in range(n_sets):
        rng = np.random.default_rng(seed)
        X, error, new, new_error = shifted_sets(n_rows, rng)
        weights = ss.covariate_weights(X, new)
        effective.append(weights.n_effective / n_rows)
        for name, (Scaler, n_columns) in methods.items():
            table, new_table = X[:, :n_columns], new[:, :n_columns]
            for each, w in zip(found[name], (None, weights), strict=True):
                scaler = Scaler().fit(table, error, sample_weight=w)
                each.append(ss.calibration_error(new_error, scaler.predict(new_table)))
    print(f"{n_sets} sets of {n_rows} rows, {np.mean(effective):.2f} n in effect\n")
    print("| recalibrator | without weights | with weights | less by |")
    print("| --- | --- | --- | --- |")
    for name, (before, after) in found.items():
        less = 1 - np.mean(after) / np.mean(before)
        print(f"| {name} | {np.mean(before):.3f} | {np.mean(after):.3f} | {less:.0%} |")


def main():
    """Run a study."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=["alarms", "shift"])
    parser.add_argument("--sets", type=int)
    parser.add_argument("--rows", type=int, default=600)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    study, usual = {"alarms": (alarms, 500), "shift": (shift, 50)}[options.study]
    study(options.sets or usual, options.rows)


if __name__ == "__main__":
    main()
