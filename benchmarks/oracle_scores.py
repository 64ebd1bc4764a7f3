"""Compare the scores with those of an older commit, installed in an environment.

    python benchmarks/oracle_scores.py --oracle /path/to/old/python

The older library takes (error, uncertainty, features). Both compute the same scores of
simulated rows with ties, labels, groups and weights (importance weights only: whole
ones were repeats). Shown is the largest relative difference of each kind; equal means
1e-10. What differs on purpose is listed below the table. Reference scores are random
numbers; tests/golden compares their means.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

import numpy as np

N_ROWS, SEEDS = 2000, (0, 1, 2)
EQUAL = 1e-10
ON_PURPOSE = {
    "limits of groups, weights": "one interval of a mean, with the degrees of freedom "
    "that unequal groups and weights leave (overall limits are among `zms`)",
    "groups, ties": "rows that are alike but for their group are in canonical order",
    "weights, ties": "tied rows are shuffled whole, no longer in pieces",
}


def rows_of(seed, ties):
    """Return errors, uncertainties, features, an order of ties, groups and weights."""
    rng = np.random.default_rng(seed)
    u, x = rng.lognormal(size=N_ROWS), rng.normal(size=N_ROWS)
    error = u * rng.standard_t(5, N_ROWS)
    if ties:
        u, x, error = np.round(u, 1) + 0.1, np.round(x, 1), np.round(error, 1)
    label = rng.choice(["alloy", "gas", "oxide"], N_ROWS)
    features = {"x": x, "label": label}
    order, groups = (
        rng.permutation(N_ROWS).astype(float),
        rng.integers(300, size=N_ROWS),
    )
    return error, u, features, order, groups, rng.lognormal(size=N_ROWS)


def old_numbers(error, u, features, order, groups, weights):
    """Return all numbers by name, from the older library."""
    import sigmascale as ss

    w = {"sample_weight": weights}
    card = ss.scorecard(error, u, features, ties=order, **w)
    found = {f"scorecard {k}": v for k, v in card.to_dict().items()}
    for name, by in {"u": None, **features}.items():
        for method in (
            ("moments",)
            if groups is not None or weights is not None
            else (
                "bca",
                "moments",
            )
        ):
            local = ss.local_zms(
                error,
                u,
                by=by,
                groups=groups,
                n_bins=20,
                method=method,
                ties=order,
                **w,
            )
            found[f"zms {name}"] = [*local.zms, *local.overall]
            found[f"limits {name} {method}"] = [*local.low, *local.high]
    scores = ss.distribution_scores(error, u, **w)
    found["crps"] = [ss.crps(error, u, **w), *scores.coverage.values()]
    interval = ss.interval_scores(error, ss.normal_interval(u, 0.9), coverage=0.9, **w)
    found["interval score"] = [interval.interval_score, interval.picp]
    for kind in ("interval", "quantile"):
        curve = ss.calibration_curve(error, u, groups=groups, kind=kind, **w)
        found[f"curve {kind}"] = [*curve.observed, *curve.low, *curve.high, curve.area]
    found["pit"] = [*ss.pit_histogram(error, u, groups=groups, **w).density]
    diagram = ss.reliability_diagram(error, u, groups=groups, **w)
    found["reliability"] = [*diagram.rmv, *diagram.rmse, *diagram.low, diagram.ence]
    if weights is None:
        curve = ss.confidence_curve(error, u, n_draws=5)
        found["confidence"] = [*curve.error, *curve.oracle]
        tails = ss.tails(error, u, n_draws=2)
        found["tails"] = [
            tails.rce.value,
            tails.zms.value,
            tails.shape.df,
            tails.beyond,
        ]
        found["tails"] += [tails.skewness_z2, tails.skewness_u2, tails.skewness_e2]
    return {k: np.atleast_1d(v).astype(float).tolist() for k, v in found.items()}


def new_numbers(error, u, features, order, groups, weights):
    """Return the same, from this library."""
    import sigmascale as ss

    s = ss.scores
    p = ss.Predictions(
        y_std=u, error=error, features=features, groups=groups, weights=weights
    )
    card = s.scorecard(p, ties=order).to_dict()
    found = {f"scorecard {k}": v for k, v in card.items()}
    for name in p.names:
        for method in ("bca", "moments"):
            local = s.local_statistics(p, by=name, n_bins=20, method=method, ties=order)
            found[f"zms {name}"] = [*local.value, *local.overall]
            found[f"limits {name} {method}"] = [*local.low, *local.high]
    covers = [s.coverage(p, coverage=c) for c in (0.5, 0.8, 0.9, 0.95)]
    found["crps"] = [s.crps(p), *covers]
    found["interval score"] = [
        s.interval_score(p, coverage=0.9),
        s.coverage(p, coverage=0.9),
    ]
    for kind in ("interval", "quantile"):
        curve = s.calibration_curve(p, kind=kind)
        found[f"curve {kind}"] = [*curve.observed, *curve.low, *curve.high, curve.area]
    found["pit"] = [*s.pit_histogram(p).density]
    diagram = s.reliability_diagram(p)
    found["reliability"] = [*diagram.rmv, *diagram.rmse, *diagram.low, diagram.ence]
    curve = s.confidence_curve(p, n_draws=5)
    found["confidence"] = [*curve.error, *curve.oracle]
    tails = s.tails(p, n_resamples=20)
    found["tails"] = [tails.rce.value, tails.zms.value, tails.nu, tails.beyond]
    found["tails"] += [tails.skewness_z2, tails.skewness_u2, tails.skewness_e2]
    return {k: np.atleast_1d(v).astype(float).tolist() for k, v in found.items()}


def cases():
    """Yield the name and the rows of each case."""
    for seed in SEEDS:
        for ties in (False, True):
            *rows, order, groups, weights = rows_of(seed, ties)
            kind = ", ties" if ties else ""
            yield f"plain{kind}", (*rows, None, None, None)
            yield f"order{kind}", (*rows, order, None, None)
            yield f"groups{kind}", (*rows, None, groups, None)
            yield f"weights{kind}", (*rows, None, None, weights)


def main():
    """Print the largest difference of each kind of rows and of numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oracle", help="the Python that has the older library")
    parser.add_argument("--old", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.old:
        json.dump([old_numbers(*rows) for _, rows in cases()], sys.stdout)
        return
    command = [options.oracle, "-W", "ignore", __file__, "--old"]
    before = json.loads(subprocess.run(command, stdout=-1, check=True).stdout)
    worst = {}
    for (case, rows), old in zip(cases(), before, strict=True):
        new = new_numbers(*rows)
        for name, values in old.items():
            a, b = np.array(values), np.array(new[name])
            off = np.inf
            if a.shape == b.shape:
                off = float(np.max(np.abs(a - b) / np.maximum(1e-3, np.abs(a))))
            key = case, name.split()[0]
            worst[key] = max(worst.get(key, 0.0), off)
    print("| rows | numbers | largest relative difference |\n| --- | --- | --- |")
    for (case, name), off in worst.items():
        print(f"| {case} | {name} | {off:.1g}{'' if off < EQUAL else ' **differs**'} |")
    print("\nOn purpose:")
    for case, why in ON_PURPOSE.items():
        print(f"- {case}: {why}")


if __name__ == "__main__":
    main()
