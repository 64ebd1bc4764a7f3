"""Measure how often a monitor raises false alarms, and how soon it finds a change.

Streams without a change have 5,000 rows. The others have 200 rows without a change and
then 4,000 with one: u too small or too large by a factor of 1.3, predictions biased by
half of u, u wrong by a factor of 1.5 in a fifth of one of two features. z-scores are
normal, Student's t with 4 degrees of freedom, or skewed, each with a reference of 1,000
rows (3,000 where features are watched). Groups have a correlation of 0.5.

    python benchmarks/monitor.py                 # 400 streams of each kind
    python benchmarks/monitor.py --streams 100   # fewer

prints Markdown tables.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import sigmascale as ss

DISTRIBUTIONS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t(4)": lambda rng, n: rng.standard_t(4, size=n) / np.sqrt(2),
    "lognormal": lambda rng, n: (
        (rng.lognormal(sigma=0.5, size=n) - np.exp(0.125))
        / np.sqrt(np.expm1(0.25) * np.exp(0.25))
    ),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
}


def in_a_fifth(factor):
    """Return the change of a factor in a fifth of the first feature."""
    return lambda z, X: np.where((X[:, 0] >= 0.3) & (X[:, 0] < 0.5), factor * z, z)


# name: the change of z, and the kind of alarm that is right
CHANGES = {
    "u too small, 1.3": (lambda z, X: 1.3 * z, "too small"),
    "u too large, 1.3": (lambda z, X: z / 1.3, "too large"),
    "bias +0.5 u": (lambda z, X: z + 0.5, "biased"),
    "bias −0.5 u": (lambda z, X: z - 0.5, "biased"),
    "u too small, 1.5, a fifth": (in_a_fifth(1.5), "region"),
    "u too large, 1.5, a fifth": (in_a_fifth(1 / 1.5), "region"),
}
REFERENCE, BY_REGION, BEFORE, AFTER, QUIET = 1000, 3000, 200, 4000, 5000


def rows(z, X=None, groups=None):
    """Return predictions with these z-scores."""
    return ss.Predictions(error=z, y_std=np.ones(len(z)), features=X, groups=groups)


def alarm_of(name, rng, change=None, *, features=False, n_rows=QUIET):
    """Return what a monitor says of a stream, None if it says nothing."""
    draw, n_normal = DISTRIBUTIONS[name], BY_REGION if features else REFERENCE
    X = rng.random((n_normal + n_rows, 2))
    z = draw(rng, len(X))
    if change is not None:
        late = slice(n_normal + BEFORE, None)
        z[late] = change(z[late], X[late])
    p = rows(z, X if features else None)
    normal, stream = np.split(np.arange(len(p)), [n_normal])
    return ss.Monitor(p.take(normal)).update(p.take(stream)).alarm


def false_alarms(name, n_streams, *, features=False, n_rows=QUIET, seed=0):
    """Return how many streams without a change raise an alarm."""
    rngs = np.random.default_rng(seed).spawn(n_streams)
    found = [alarm_of(name, rng, features=features, n_rows=n_rows) for rng in rngs]
    return sum(alarm is not None for alarm in found)


def delays(name, change, n_streams, seed=1):
    """Return the rows from change to alarm, and the share with the right kind."""
    how, kind = CHANGES[change]
    options = {"features": kind == "region", "n_rows": BEFORE + AFTER}
    rngs = np.random.default_rng(seed).spawn(n_streams)
    alarms = [alarm_of(name, rng, how, **options) for rng in rngs]
    found = [np.inf if each is None else each.row - BEFORE for each in alarms]
    right = [each is not None and each.kind == kind for each in alarms]
    return np.array(found), float(np.mean(right))


def in_groups(rng, sizes):
    """Return z-scores in groups of these sizes, with a correlation of 0.5."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    common = rng.normal(size=len(sizes))[groups]
    return np.sqrt(0.5) * (common + rng.normal(size=groups.size)), groups


def alarm_of_groups(rng, first, later, factor=1.0, *, told=True):
    """Return a monitor of groups of other sizes than those that are normal."""
    normal, stream = (in_groups(rng, sizes) for sizes in (first(rng), later(rng)))
    reference = rows(normal[0], groups=normal[1] if told else None)
    batch = rows(factor * stream[0], groups=stream[1] if told else None)
    return ss.Monitor(reference).update(batch)


SIZES = {
    "5, then 5": (lambda rng: [5] * 200, lambda rng: [5] * 1000),
    "5, then 2": (lambda rng: [5] * 200, lambda rng: [2] * 2500),
    "1 to 20, then 1 to 20": (
        lambda rng: rng.integers(1, 21, 300),
        lambda rng: rng.integers(1, 21, 500),
    ),
    "10 to 20, then 3 to 20": (
        lambda rng: rng.integers(10, 21, 200),
        lambda rng: rng.integers(3, 21, 500),
    ),
}


def tables(n):
    """Yield the lines of the tables."""
    yield f"`python benchmarks/monitor.py --streams {n}`: so many of each kind.\n"
    yield f"| distribution of z | false alarms in {QUIET:,} rows | two features |"
    yield "| --- | --- | --- |"
    for name in DISTRIBUTIONS:
        shares = [false_alarms(name, n, features=each) / n for each in (False, True)]
        yield f"| {name} | {' | '.join(f'{each:.1%}' for each in shares)} |"
    yield "\n| change | distribution of z | median of rows | 90 % within | right kind |"
    yield "| --- | --- | --- | --- | --- |"
    for change in CHANGES:
        for name in DISTRIBUTIONS:
            found, right = delays(name, change, n)
            median, most = np.median(found), np.quantile(found, 0.9, method="higher")
            yield f"| {change} | {name} | {median:.0f} | {most:.0f} | {right:.1%} |"
    yield "\n| groups of | false alarms | found, × 1.5 | not told: alarms | cautioned |"
    yield "| --- | --- | --- | --- | --- |"
    for name, sizes in SIZES.items():
        rngs = np.random.default_rng(2).spawn(n)
        quiet = [alarm_of_groups(rng, *sizes).alarm for rng in rngs]
        changed = [alarm_of_groups(rng, *sizes, 1.5).alarm for rng in rngs]
        blind = [alarm_of_groups(rng, *sizes, told=False).state for rng in rngs]
        counts = [
            [each is not None for each in quiet],
            [each is not None for each in changed],
            [each.alarm is not None for each in blind],
            [each.caution is not None for each in blind],
        ]
        yield f"| {name} | {' | '.join(f'{np.mean(each):.1%}' for each in counts)} |"
    yield f"\n{speed()}"


def speed():
    """Return the time of many rows, and of single ones, in words."""
    z = np.random.default_rng(0).normal(size=10**6)
    sorting, watching, alone = (_seconds(f, z) for f in (np.sort, _batches, _singly))
    return (
        f"10⁶ rows in batches of 10,000 take {watching / sorting:.0f} times as long as "
        f"sorting them; one by one, it is {1000 / alone:.0f} rows a second."
    )


def _seconds(work, z):
    start = time.process_time()
    work(z)
    return time.process_time() - start


def _batches(z, size=10_000):
    monitor = ss.Monitor(rows(z[:REFERENCE]))
    for i in range(0, z.size, size):
        monitor.update(rows(z[i : i + size]))


def _singly(z):
    _batches(z[:1000], 1)


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=400)
    for line in tables(parser.parse_args().streams):
        print(line, flush=True)


if __name__ == "__main__":
    main()
