"""Measure how often intervals of paired differences hold, and tell the better model.

Two models predict the same truths. Their errors have a correlation of 0.9, as those of
models that learned from the same data do, and standard deviations that they know: u,
uniform between 0.5 and 1.5, and `worse` times as much. So the difference of the
expected CRPS is known, too. In groups, a part of the errors is common to all rows:
groups have five rows each, or very unequal sizes (Pareto, up to 200).

    python benchmarks/paired.py                # 500 sets of each kind
    python benchmarks/paired.py --sets 50      # fewer

prints a Markdown table.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import stats

import sigmascale as ss

CORRELATION = 0.9
DISTRIBUTIONS = {"normal": stats.norm(), "t(5)": stats.t(5, scale=np.sqrt(3 / 5))}


def fives(rng, n):
    """Return the groups of five rows each."""
    return np.arange(n) // 5


def unequal(rng, n):
    """Return 30 groups of very unequal sizes, 1 to 200, whatever n is."""
    sizes = np.minimum(np.ceil(5 * (1 + rng.pareto(1.0, 30))), 200).astype(int)
    return np.repeat(np.arange(30), sizes)


GROUPS = {"none": None, "of five": fives, "30 unequal": unequal}


def expected_crps(distribution):
    """Return the expected CRPS of a normal forecast of sd 1, for such errors."""
    z = distribution.ppf((np.arange(200_000) + 0.5) / 200_000)
    crps = z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi)
    return crps.mean()


def study(n_sets, n_rows, worse, name="normal", groups="none", within=0.5, seed=0):
    """Return how often the interval held the true difference, and told the better."""
    rng, distribution = np.random.default_rng(seed), DISTRIBUTIONS[name]
    true = (worse - 1) * expected_crps(distribution)
    held = told = 0
    for _ in range(n_sets):
        codes = None if groups == "none" else GROUPS[groups](rng, n_rows)
        n = n_rows if codes is None else codes.size

        def errors(codes=codes, n=n):
            """Return normal numbers, correlated within groups."""
            own = rng.normal(size=n)
            if codes is None:
                return own
            common = rng.normal(size=codes[-1] + 1)[codes]
            return np.sqrt(1 - within) * own + np.sqrt(within) * common

        u = rng.uniform(0.5, 1.5, n)
        first = errors()
        second = CORRELATION * first + np.sqrt(1 - CORRELATION**2) * errors()
        models = {
            model: ss.Predictions(
                error=distribution.ppf(stats.norm.cdf(z)) * std, y_std=std, groups=codes
            )
            for model, z, std in (("a", first, u), ("b", second, worse * u))
        }
        found = ss.compare(models).differences["b"]["crps"]
        held += found.low <= true <= found.high
        told += found.low > 0
    return held / n_sets, told / n_sets


def table(n_sets):
    """Yield the lines of the table."""
    yield (
        f"`python benchmarks/paired.py --sets {n_sets}`: so many sets of each kind; "
        "standard errors in brackets."
    )
    yield ""
    yield "| errors | rows | groups | within | CRPS differ by | 95 % held | told |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    cases = [
        (name, rows, worse, groups, 0.5)
        for name in DISTRIBUTIONS
        for rows, worse in ((200, 1.1), (2000, 1.05))
        for groups in ("none", "of five")
    ]
    cases += [
        (name, 0, 1.1, "30 unequal", within)
        for name in DISTRIBUTIONS
        for within in (0.5, 0.8)
    ]
    for name, n, worse, groups, within in cases:
        found = study(n_sets, n, worse, name, groups, within, seed=n)
        cells = [f"{x:.3f} ({np.sqrt(x * (1 - x) / n_sets):.3f})" for x in found]
        off = f"{100 * (worse - 1):.0f} %"
        row = [name, n or "Pareto", groups, within, off, *cells]
        yield f"| {' | '.join(map(str, row))} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=500)
    for line in table(parser.parse_args().sets):
        print(line, flush=True)


if __name__ == "__main__":
    main()
