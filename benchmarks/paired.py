"""Measure how often intervals of paired differences hold, and tell the better model.

Two models predict the same truths. Their errors have a correlation of 0.9, as those of
models that learned from the same data do, and standard deviations that they know: u,
uniform between 0.5 and 1.5, and `worse` times as much. So the difference of the
expected CRPS is known, too. In groups, half of a squared error is common to five rows.

    python -m benchmarks.paired                # 500 sets of each kind
    python -m benchmarks.paired --sets 50      # fewer

prints the Markdown table of `docs/studies/paired.md`; --out writes it there.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

import sigmascale as ss

CORRELATION = 0.9
LAWS = {"normal": stats.norm(), "t(5)": stats.t(5, scale=np.sqrt(3 / 5))}


class Found(NamedTuple):
    """How often the interval held the true difference, and told the better model."""

    held: float
    told: float


def expected_crps(law):
    """Return the expected CRPS of a normal forecast of sd 1, for errors of a law."""
    z = law.ppf((np.arange(200_000) + 0.5) / 200_000)
    crps = z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi)
    return crps.mean()


def study(n_sets, n_rows, size=1, worse=1.1, law="normal", seed=0):
    """Compare two models on so many sets."""
    rng = np.random.default_rng(seed)
    true = (worse - 1) * expected_crps(LAWS[law])
    groups = np.arange(n_rows) // size

    def errors():
        """Return normal numbers, half of their variance common to a group of many."""
        own = rng.normal(size=n_rows)
        if size == 1:
            return own
        return (own + rng.normal(size=groups[-1] + 1)[groups]) / np.sqrt(2)

    def of_law(x):
        return LAWS[law].ppf(stats.norm.cdf(x))

    held = told = 0
    for _ in range(n_sets):
        u = rng.uniform(0.5, 1.5, n_rows)
        first = errors()
        second = CORRELATION * first + np.sqrt(1 - CORRELATION**2) * errors()
        models = {
            name: ss.Predictions(error=of_law(z) * std, y_std=std, groups=groups)
            for name, z, std in (("a", first, u), ("b", second, worse * u))
        }
        found = ss.compare(models, method="moments")["b"].differences["crps"]
        held += found.low <= true <= found.high
        told += found.low > 0
    return Found(held / n_sets, told / n_sets)


def table(n_sets):
    """Yield the lines of the table."""
    yield f"{n_sets} sets of each kind; standard errors in brackets."
    yield ""
    yield "| errors | rows | groups of | CRPS differ by | 95 % held | told |"
    yield "| --- | --- | --- | --- | --- | --- |"
    cases = [
        (law, rows, size, worse)
        for law in LAWS
        for rows, worse in ((200, 1.1), (2000, 1.05))
        for size in (1, 5)
    ]
    for law, n, size, worse in cases:
        found = study(n_sets, n, size, worse, law, seed=n + size)
        cells = [f"{x:.3f} ({np.sqrt(x * (1 - x) / n_sets):.3f})" for x in found]
        off = f"{100 * (worse - 1):.0f} %"
        yield f"| {law} | {n} | {size} | {off} | {cells[0]} | {cells[1]} |"


def main() -> None:
    """Print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=500)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = []
    for line in table(options.sets):
        print(line, flush=True)
        lines.append(line)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
