"""Measure how often intervals of an empirical law hold new rows, with none held out.

Sets have a column u and a feature x. Errors are those of a standard deviation that
depends on both, 2 u^0.7 exp(tanh(x) / 2), times z: normal, Student's t with 3 degrees
of freedom, lognormal (with a shape of 0.5, centred), exponential (centred), or normal
with every second one exactly 0. `Recalibrator()` is fitted to each set, and its central
intervals are asked for; the table has the mean share of 2,000 new rows that these hold,
with its standard error over the sets.

    python benchmarks/law_coverage.py                      # 200 sets of each kind
    python benchmarks/law_coverage.py --replications 20    # fewer

prints the Markdown table of `docs/studies/law_coverage.md`; --out writes it there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import sigmascale as ss

LAWS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t(3)": lambda rng, n: rng.standard_t(3, n),
    "lognormal": lambda rng, n: rng.lognormal(sigma=0.5, size=n) - np.exp(0.125),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
    "half zero": lambda rng, n: rng.normal(size=n) * (rng.random(n) < 0.5),
}
ROWS = (100, 300, 1000)
ASKED = (0.5, 0.8, 0.9, 0.95)
NEW = 2000


def make_rows(law, n, rng):
    """Return a table of u and x, and errors."""
    u, x = rng.lognormal(0, 0.5, n), rng.normal(size=n)
    sigma = 2 * u**0.7 * np.exp(np.tanh(x) / 2)
    return np.column_stack([u, x]), sigma * LAWS[law](rng, n)


def coverages(law, n, replications, recalibrator=None):
    """Return the share of new rows held, of each set and each coverage asked for."""
    found = np.empty((replications, len(ASKED)))
    for i in range(replications):
        rng = np.random.default_rng([list(LAWS).index(law), n, i])
        r = ss.Recalibrator() if recalibrator is None else recalibrator
        r.fit(*make_rows(law, n, rng))
        X, error = make_rows(law, NEW, rng)
        d = r.predict_distribution(X)
        for k, asked in enumerate(ASKED):
            low, high = d.interval(asked).T
            found[i, k] = np.mean((low <= error) & (error <= high))
    return found


def table(replications):
    """Yield the lines of the table."""
    yield f"{replications} sets of each kind."
    yield ""
    yield "| errors | rows | " + " | ".join(f"asked {each:g}" for each in ASKED) + " |"
    yield "| --- | --- |" + " --- |" * len(ASKED)
    for law in LAWS:
        for n in ROWS:
            found = coverages(law, n, replications)
            error = found.std(axis=0, ddof=1) / np.sqrt(replications)
            cells = [
                f"{mean:.3f} ± {se:.3f}"
                for mean, se in zip(found.mean(axis=0), error, strict=True)
            ]
            yield f"| {law} | {n} | " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = []
    for line in table(options.replications):
        print(line, flush=True)
        lines.append(line)
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
