"""Compare what is learned with an older version of the library, installed beside it.

    python benchmarks/oracle.py /path/to/old/bin/python [--sets FOLDER] [--qm9 FOLDER]

All scalings are fitted to the same rows by both: simulated ones with labels, ties,
groups, times and missing features; those of FOLDER, tables with the columns E, u,
X1, ..., G1, ..., split, group, time; and those of QM9. Uncertainties, quantiles and
CRPS must agree to 1e-10, relative to the scale. Named exceptions: boosted scaling has
other trees, so that only its base is compared (`fits.py` compares how well it does);
edges of raked tables lie between values, so that rows are those of the fit; weights
have another meaning, so that none are compared; z-scores that are equal to nine digits
are dealt to folds as equal, which moves quantiles where there are many of them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

TOLERANCE = 1e-10
LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]
NEEDS_NUMBER = {"binwise_x", "cells"}
NEEDS_LABEL = {"category"}


def simulated(kind, seed):
    """Return made-up rows, in two parts."""
    g = np.random.default_rng(seed)
    n = 1500
    u = np.round(g.lognormal(0, 0.6, n), 2 if kind == "ties" else 12)
    x, k, c = g.normal(size=n), g.integers(0, 9, n).astype(float), g.integers(0, 6, n)
    error = g.standard_t(5, size=n) * u**0.8 * np.exp(0.3 * x + 0.1 * c)
    rows = {"E": error + 0.2 * u, "u": u, "X1": x, "X2": k}
    if kind == "labels":
        rows["G1"] = np.array(list("abcdef"))[c]
    if kind == "missing":
        rows["X1"] = np.where(g.random(n) < 0.2, np.nan, x)
    if kind == "zeros":
        rows["E"] = np.where(g.random(n) < 0.5, 0.0, rows["E"])
    if kind == "groups":
        rows["group"] = g.integers(0, 250, n)
    if kind == "time":
        rows["time"] = g.permutation(n).astype(float)
    rows["is_fit"] = np.arange(n) < 1000
    return rows


def tables(folder):
    """Return the rows of a folder of tables."""
    import polars as pl

    for path in sorted(Path(folder).glob("*.csv.gz")):
        table = pl.read_csv(path, infer_schema_length=None)
        rows = {
            name: table[name].to_numpy()
            for name in table.columns
            if name in ("E", "u") or name[0] == "X"
        }
        rows |= {
            name: table[name].cast(pl.String).fill_null("").to_numpy().astype(str)
            for name in table.columns
            if name[0] == "G" or name == "group"
        }
        rows["is_fit"] = (table["split"] == "cal").to_numpy()
        yield path.name.split(".")[0], rows


def qm9(folder):
    """Return the rows of QM9."""
    import polars as pl

    parts = [
        pl.read_csv(Path(folder) / f"qm9_qm9_E_uncalibrated_{part}.csv")
        for part in ("validation", "test")
    ]
    table = pl.concat(parts)
    rows = {
        "E": (table["E_"] - table["prediction"]).to_numpy(),
        "u": table["uncertainty_total"].sqrt().to_numpy(),
        "X1": table["formula"].str.len_chars().cast(pl.Float64).to_numpy(),
    }
    rows["is_fit"] = np.arange(len(table)) < len(parts[0])
    return rows


def methods(ss, rows):
    """Return recalibrators of either version that suit some rows."""
    old = hasattr(ss, "CategoryScaling")

    def shrunk(name, rows):
        return {{"binwise": "least_rows", "isotonic": "pseudo_rows"}[name]: rows}

    prior = shrunk if old else lambda name, rows: {"prior_rows": rows}

    def bins(by, n, **more):
        return ss.BinwiseScaling(n, by=by, **more)

    found = {
        "temperature": ss.TemperatureScaling(),
        "linear": ss.LinearScaling(),
        "isotonic": ss.IsotonicScaling(),
        "isotonic_alone": ss.IsotonicScaling(**prior("isotonic", 0)),
        "binwise": bins(0 if old else "u", 40),
        "binwise_alone": bins(0 if old else "u", 20, **prior("binwise", 0)),
        "binwise_x": bins("X1", 20),
        "cells": bins((0 if old else "u", "X1"), (8, 5)),
        "category": ss.CategoryScaling(by="G1", min_size=1)
        if old
        else bins("G1", 40, prior_rows=0),
        "raked": ss.RakedScaling(),
        "raked_linear": ss.RakedScaling(base="linear"),
    }
    if "X1" not in rows or not np.isfinite(rows["X1"]).all():
        found = {k: v for k, v in found.items() if k not in NEEDS_NUMBER}
    if "G1" not in rows:
        found = {k: v for k, v in found.items() if k not in NEEDS_LABEL}
    bias = {"shift": "constant"} if old else {"bias": "constant"}
    pairs = [(name, ss.Recalibrator(scaling)) for name, scaling in found.items()]
    pairs.append(("bias", ss.Recalibrator(ss.LinearScaling(), **bias)))
    return pairs


def predictions(ss, rows, which):
    """Return Predictions of some of the rows."""
    features = {k: v[which] for k, v in rows.items() if k[0] in "XG"}
    return ss.Predictions(
        y_std=rows["u"][which],
        error=rows["E"][which],
        features=features or None,
        groups=rows["group"][which] if "group" in rows else None,
        time=rows["time"][which] if "time" in rows else None,
    )


def work(source, target):
    """Fit all methods to all cases in a folder, and write what they say."""
    warnings.simplefilter("ignore")
    import sigmascale as ss

    for path in sorted(Path(source).glob("*.npz")):
        rows = dict(np.load(path))
        fit, new = (predictions(ss, rows, rows["is_fit"] == k) for k in (True, False))
        found = {}
        for name, recalibrator in methods(ss, rows):
            recalibrator.fit(fit)
            parts = [("fit", fit)] + [("new", new)] * (name[:5] != "raked")
            for part, p in parts:
                d = recalibrator.apply(p).distributions
                shift = recalibrator.apply(p).error
                key = f"{name} {part}"
                found[f"{key} scale"] = d.scale
                found[f"{key} quantiles"] = d.quantile(LEVELS) / d.scale[:, None]
                found[f"{key} crps"] = d.crps(shift) / d.scale
        np.savez(Path(target) / path.name, **found)


def main():
    """Make the cases, let both versions work, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", help="the interpreter that has the older version")
    parser.add_argument("--sets", help="folder of tables")
    parser.add_argument("--qm9", help="folder of QM9")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(*given.work)
        return
    cases = {
        f"simulated {kind}": simulated(kind, seed)
        for seed, kind in enumerate(
            ("plain", "labels", "ties", "groups", "missing", "zeros", "time")
        )
    }
    if given.sets:
        cases |= dict(tables(given.sets))
    if given.qm9:
        cases["qm9"] = qm9(given.qm9)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("cases", "old", "new"):
            (folder / part).mkdir()
        for case, rows in cases.items():
            np.savez(folder / "cases" / f"{case}.npz", **rows)
        for python, part in ((given.python, "old"), (sys.executable, "new")):
            command = [python, __file__, "-", "--work", folder / "cases", folder / part]
            subprocess.run(list(map(str, command)), check=True)
        failed = 0
        for case in cases:
            old, new = (
                dict(np.load(folder / part / f"{case}.npz")) for part in ("old", "new")
            )
            worst = {
                key: float(np.max(np.abs(new[key] - old[key]) / _size(key, old)))
                for key in old
            }
            beyond = {key: x for key, x in worst.items() if not x <= TOLERANCE}
            failed += len(beyond)
            print(f"{case}: {len(worst)} numbers, worst {max(worst.values()):.1e}")
            for key, x in beyond.items():
                print(f"    {key}: {x:.2e}")
    sys.exit(failed > 0)


def _size(key, old):
    """Return what a difference is relative to."""
    return old[key] if key.endswith("scale") else 1.0


if __name__ == "__main__":
    main()
