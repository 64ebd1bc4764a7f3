"""Measure how often a monitor raises false alarms, and how soon it finds a change.

Streams without a change have 10,000 rows. The others have 200 rows without a change
and then 4,000 with one: uncertainties too small or too large by a factor of 1.3,
predictions biased by half an uncertainty up or down, uncertainties wrong by 1.5 in a
fifth of one of two features. z-scores are normal, Student's t with 4 degrees of
freedom, or skewed (centred lognormal with a shape of 0.5, and exponential), each with
a calibration set of 1,000 rows. The same is done where both features are watched, and
those of a calibration set of 3,000 rows say what is normal in each region. Blocks of
five rows with a correlation of 0.5 are told as groups, and not. Then the time of 10^6
rows in batches of 10,000 is compared with that of sorting them, and rows are passed one
by one.

    python benchmarks/monitor.py                 # 2,000 streams of each kind
    python benchmarks/monitor.py --streams 100   # less

prints Markdown tables, those of `docs/studies/monitor.md`; --out writes them there.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

import sigmascale as ss

LAWS = {
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


# name: the change of z, the kind of alarm that is right, rows within which to find it
CHANGES = {
    "u too small, 1.3": (lambda z, X: 1.3 * z, "too small", 250),
    "u too large, 1.3": (lambda z, X: z / 1.3, "too large", 250),
    "bias +0.5 u": (lambda z, X: z + 0.5, "biased", 150),
    "bias −0.5 u": (lambda z, X: z - 0.5, "biased", 150),
    "u too small, 1.5, a fifth": (in_a_fifth(1.5), "region", 1500),
    "u too large, 1.5, a fifth": (in_a_fifth(1 / 1.5), "region", 1500),
}
CALIBRATION, BEFORE, AFTER, QUIET = 1000, 200, 4000, 10_000
SIZE, IN_GROUPS = 5, 5000  # rows of a block, and of a stream of blocks
BY_REGION = 3000  # rows of calibration that say what is normal in each region


def alarm_of(law, rng, change=None, *, features=False, own=False, n_rows=QUIET):
    """Return what a monitor says of a stream, None if it says nothing.

    `own` tells it the features of the calibration set, too.
    """
    draw = LAWS[law]
    if own:
        monitor = ss.Monitor(draw(rng, BY_REGION), rng.random((BY_REGION, 2)))
    else:
        monitor = ss.Monitor(draw(rng, CALIBRATION))
    z, u = draw(rng, n_rows), rng.uniform(1, 2, n_rows)
    X = rng.random((n_rows, 2))
    if change is not None:
        z[BEFORE:] = change(z[BEFORE:], X[BEFORE:])
    return monitor.update(z * u, u, X if features else None).alarm


def false_alarms(law, n_streams, *, features=False, own=False, n_rows=QUIET, seed=0):
    """Return how many streams without a change raise an alarm."""
    rngs = np.random.default_rng(seed).spawn(n_streams)
    watched = {"features": features, "own": own}
    alarms = [alarm_of(law, rng, **watched, n_rows=n_rows) for rng in rngs]
    return sum(alarm is not None for alarm in alarms)


def delays(law, name, n_streams, *, own=False, seed=1):
    """Return the rows from change to alarm, and the share with the right kind."""
    change, kind, _ = CHANGES[name]
    rngs = np.random.default_rng(seed).spawn(n_streams)
    watched = {"features": own or kind == "region", "own": own}
    alarms = [
        alarm_of(law, rng, change, **watched, n_rows=BEFORE + AFTER) for rng in rngs
    ]
    rows = [np.inf if each is None else each.row - BEFORE for each in alarms]
    right = [each is not None and each.kind == kind for each in alarms]
    return np.array(rows), float(np.mean(right))


def in_blocks(rng, n_rows, size, law="normal"):
    """Return z-scores in blocks; those of a block have a correlation of 0.5."""
    if size == 1:
        return LAWS[law](rng, n_rows)
    common = np.repeat(rng.normal(size=-(-n_rows // size)), size)[:n_rows]
    return np.sqrt(0.5) * (common + rng.normal(size=n_rows))


def alarm_of_groups(rng, factor=1.0, *, size=SIZE, calibration=True, before=1000):
    """Return what a monitor says of a stream of blocks that are told to it."""
    normal = in_blocks(rng, CALIBRATION, size) if calibration else None
    z, rows = in_blocks(rng, IN_GROUPS, size), np.arange(IN_GROUPS)
    z[before:] *= factor
    labels = {"groups": rows // size} if size > 1 else {}
    first = {"groups": rows[:CALIBRATION] // size} if labels and calibration else {}
    return ss.Monitor(normal, **first).update(z, np.ones(z.size), **labels).alarm


def false_alarms_of_groups(n_streams, *, calibration=True, seed=0):
    """Return how many streams of blocks without a change raise an alarm."""
    rngs = np.random.default_rng(seed).spawn(n_streams)
    return sum(alarm_of_groups(r, calibration=calibration) is not None for r in rngs)


def delays_of_groups(factor, n_streams, *, size=SIZE, seed=1, before=1000):
    """Return the rows from a change of z by a factor to the alarm."""
    alarms = [
        alarm_of_groups(rng, factor, size=size, before=before)
        for rng in np.random.default_rng(seed).spawn(n_streams)
    ]
    return np.array([np.inf if each is None else each.row - before for each in alarms])


def cautions(n_streams, *, size=1, law="normal", seed=0):
    """Return in how many streams rows are said to be dependent, groups not given."""
    found = 0
    for rng in np.random.default_rng(seed).spawn(n_streams):
        z, normal = (in_blocks(rng, n, size, law) for n in (IN_GROUPS, CALIBRATION))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ss.exceptions.RepeatedRowsWarning)
            found += ss.Monitor(normal).update(z, np.ones(z.size)).caution is not None
    return found


def speed():
    """Return the time of batches against sorting, and rows a second one by one."""
    rng = np.random.default_rng(0)
    z, u = rng.normal(size=10**6), np.ones(10**6)

    def seconds(work):
        start = time.process_time()
        work()
        return time.process_time() - start

    def batches():
        monitor = ss.Monitor(rng.normal(size=CALIBRATION))
        for i in range(0, z.size, 10_000):
            monitor.update(z[i : i + 10_000], u[i : i + 10_000])

    def one_by_one():
        monitor = ss.Monitor(rng.normal(size=CALIBRATION))
        for each in z[:5000]:
            monitor.update(each, 1.0)

    sorting = min(seconds(lambda: np.sort(z)) for _ in range(5))
    ratio = min(seconds(batches) for _ in range(3)) / sorting
    return ratio, 5000 / min(seconds(one_by_one) for _ in range(3))


def _table_of_delays(n_streams, *, own):
    yield "\n| change | law | median of rows | 90 % within | right kind | bound |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name, (_, _, bound) in CHANGES.items():
        for law in LAWS:
            rows, right = delays(law, name, n_streams, own=own)
            median, most = np.median(rows), np.quantile(rows, 0.9, method="higher")
            found = f"{median:.0f} | {most:.0f} | {right:.1%} | {bound}"
            yield f"| {name} | {law} | {found} |"


def _table_of_groups(n_streams):
    yield (
        f"\nBlocks of {SIZE} rows with a correlation of 0.5, in streams of "
        f"{IN_GROUPS:,} rows. With their groups, and the calibration set or the first "
        "200 groups as what is normal, false alarms are raised in "
        + " and ".join(
            f"{false_alarms_of_groups(n_streams, calibration=each) / n_streams:.1%}"
            for each in (True, False)
        )
        + " of streams. Without groups, rows are said to be dependent in "
        f"{cautions(n_streams, size=SIZE) / n_streams:.1%} of streams; of independent "
        "rows this is said in "
        + " and ".join(
            f"{cautions(n_streams, law=law) / n_streams:.1%} ({law})"
            for law in ("normal", "t(4)")
        )
        + ".\n"
    )
    yield "| factor | median of rows, independent | groups | ratio |"
    yield "| --- | --- | --- | --- |"
    for factor in (1.3, 1.5, 2.0, 1 / 1.3, 1 / 1.5):
        alone, grouped = (
            float(np.median(delays_of_groups(factor, n_streams, size=size)))
            for size in (1, SIZE)
        )
        yield f"| {factor:.2f} | {alone:.0f} | {grouped:.0f} | {grouped / alone:.1f} |"


def tables(n_streams):
    """Yield the lines of the tables."""
    yield f"{n_streams} streams of each kind; {CALIBRATION} rows of calibration each.\n"
    yield "| law | false alarms in 10,000 rows | two features | own normals |"
    yield "| --- | --- | --- | --- |"
    modes = ({}, {"features": True}, {"features": True, "own": True})
    for law in LAWS:
        shares = [false_alarms(law, n_streams, **each) / n_streams for each in modes]
        yield f"| {law} | {' | '.join(f'{each:.1%}' for each in shares)} |"
    yield from _table_of_delays(n_streams, own=False)
    yield (
        f"\nWith the features of a calibration set of {BY_REGION} rows, which say what "
        "is normal in each region, and both features watched throughout:"
    )
    yield from _table_of_delays(n_streams, own=True)
    yield from _table_of_groups(n_streams)
    ratio, rate = speed()
    yield (
        f"\n10⁶ rows in batches of 10,000 take {ratio:.0f} times as long as sorting "
        f"them; one by one, it is {rate:.0f} rows a second."
    )


def main():
    """Print the tables, and write them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = []
    for line in tables(options.streams):
        print(line, flush=True)
        lines.append(line)
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
