"""How well recalibrators do on sets of real predictions: NLL and CRPS of test rows.

    python benchmarks/fits.py FOLDER [--oracle /path/to/old/bin/python]

FOLDER has tables with the columns E, u, X1, ..., G1, ..., split, group, as `oracle.py`
reads them. NLL is that of normal errors with the recalibrated u; CRPS is that of the
distribution, relative to a normal one with raw u. With `--oracle`, the same is done by
an older version of the library, and differences are printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings

import numpy as np
from oracle import predictions, tables


def scores(folder):
    """Return the scores of the installed version, by set and method."""
    warnings.simplefilter("ignore")
    import sigmascale as ss

    old = hasattr(ss, "CategoryScaling")
    bias = {"shift": "auto"} if old else {"bias": "auto"}
    methods = {
        "boosted": lambda: ss.Recalibrator(),
        "with bias": lambda: ss.Recalibrator(**bias),
        "raked": lambda: ss.Recalibrator(ss.RakedScaling()),
        "linear": lambda: ss.Recalibrator(ss.LinearScaling()),
    }
    found = {}
    for name, rows in tables(folder):
        fit, new = (predictions(ss, rows, rows["is_fit"] == k) for k in (True, False))
        u, error = rows["u"][~rows["is_fit"]], rows["E"][~rows["is_fit"]]
        raw = ss.Distributions(np.zeros(u.size), u).crps(error).mean()
        found[name] = {}
        for method, make in methods.items():
            start = time.perf_counter()
            q = make().fit(fit).apply(new)
            seconds = time.perf_counter() - start
            scale = q.distributions.scale
            nll = 0.5 * np.mean(np.log(2 * np.pi * scale**2) + (q.error / scale) ** 2)
            crps = q.distributions.crps(q.error).mean() / raw
            found[name][method] = [float(nll), float(crps), seconds]
    return found


def main():
    """Print scores, and differences to those of an older version."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--oracle", help="an interpreter with an older version")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    found = scores(given.folder)
    if given.json:
        print(json.dumps(found))
        return
    other = found
    if given.oracle:
        command = [given.oracle, __file__, given.folder, "--json"]
        other = json.loads(subprocess.run(command, check=True, stdout=-1).stdout)
    methods = list(next(iter(found.values())))
    print(f"{'set':30s}" + "".join(f"{m:>26s}" for m in methods))
    for name in found:
        line = f"{name:30s}"
        for m in methods:
            (nll, crps, _), (nll_0, crps_0, _) = found[name][m], other[name][m]
            line += f"{nll:9.3f}{nll - nll_0:+8.3f}{crps:9.3f}"
            line += "" if crps == crps_0 else f"{crps - crps_0:+7.3f}"
        print(line)
    for m in methods:
        both = [np.array([x[name][m] for name in found]) for x in (found, other)]
        difference = both[0][:, 0] - both[1][:, 0]
        crps = [np.exp(np.log(each[:, 1]).mean()) for each in both]
        better = np.count_nonzero(both[0][:, 1] < 1)
        print(
            f"{m}: NLL {difference.mean():+.4f} on average, {difference.max():+.4f} at "
            f"worst; CRPS {crps[0]:.4f} of raw ({crps[1]:.4f} before), better on "
            f"{better} of {len(found)}; {both[0][:, 2].sum():.1f} s "
            f"({both[1][:, 2].sum():.1f} s before)"
        )


if __name__ == "__main__":
    sys.exit(main())
