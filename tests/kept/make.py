"""Write one file of each kind that promises to be read for ever, beside this script.

Nothing is overwritten: what a release has written stays, with the rows that it was
given and the numbers that it gave (``NAME.gave.json``). A new kind is one more line in
``KINDS``; ``python tests/kept/make.py`` writes its files. Where a part is added to
files of a kind there is, give that a new name, and add to ``CONVERSIONS`` in
``persistence.py`` how the older one is read.
"""

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

import sigmascale as ss
from sigmascale.recalibration.additive import Additive
from sigmascale.recalibration.scalings import SCALINGS, Learned

FOLDER = Path(__file__).parent
LEVELS = [0.05, 0.3, 0.5, 0.95]


class MedianScaling(ss.Scaling):
    """A scaling that the library does not have."""

    def learn(self, rows):
        return Learned(Additive(constant=float(np.log(np.median(rows.abs_z) / 0.67))))


# -- rows, as keywords of Predictions --------------------------------------------------


def numbers(n, seed, *, gaps=True, groups=False, weights=False):
    """Return rows of numbers, with a feature that matters, gaps, and labels."""
    rng = np.random.default_rng(seed)
    u = rng.lognormal(0, 0.5, n)
    x = rng.normal(size=n).round(1)
    kind = rng.choice(["a", "b", "é <b>"], n)
    scale = u**1.3 * np.exp(0.6 * x) * np.where(kind == "a", 2, 1)
    y_pred = rng.normal(10, 2, n)
    rows = {
        "y_pred": y_pred,
        "y_std": u,
        "y_true": y_pred + rng.normal(scale=scale) + 0.5 * u + 0.4 * x,
        "features": {"x": x, "kind": kind},
    }
    if gaps:
        rows["features"]["x"] = np.where(rng.random(n) < 0.05, np.nan, x)
    if groups:
        rows["groups"] = np.arange(n) // 3
        rows["y_true"] = rows["y_true"] + np.repeat(rng.normal(size=n), 3)[:n]
    if weights:
        rows["weights"] = rng.uniform(0.5, 2, n)
    return rows


def vectors(n, seed, *, groups=False):
    """Return rows of three components."""
    rng = np.random.default_rng(seed)
    u = rng.lognormal(0, 0.5, n)
    y_pred = rng.normal(size=(n, 3))
    rows = {
        "y_pred": y_pred,
        "y_std": u,
        "y_true": y_pred + 2 * u[:, None] * rng.normal(size=(n, 3)),
        "features": {"x": rng.normal(size=n)},
    }
    return rows | ({"groups": np.arange(n) // 5} if groups else {})


def shapes(n, seed):
    """Return rows that are quantiles of skewed distributions."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=n)
    width = rng.lognormal(0, 0.4, n)
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    steps = np.array([-1.2, -0.6, 0, 1.0, 3.0])
    return {
        "levels": levels,
        "quantiles": centre[:, None] + width[:, None] * steps,
        "y_true": centre + 1.4 * width * (rng.exponential(1.3, n) - 1),
    }


def predictions(rows):
    """Return Predictions of rows, from the script or from a file."""
    make = ss.Predictions.from_quantiles if "levels" in rows else ss.Predictions
    features = rows.get("features")
    if features is not None:  # gaps are null in JSON
        columns = {}
        for name, column in features.items():
            is_text = isinstance(column[0], str)
            columns[name] = column if is_text else np.array(column, dtype=float)
        rows = rows | {"features": columns}
    return make(**rows)


# -- kinds of files --------------------------------------------------------------------


def fitted(recalibrator, rows_of=numbers, n=100, **options):
    """Return a fitted recalibrator, and new rows for it."""
    new = rows_of(6, 2, **options)
    return recalibrator.fit(predictions(rows_of(n, 1, **options))), new


def monitored(monitor, n=250, **options):
    """Return a monitor that has seen some rows, and rows that come next."""
    monitor.update(predictions(numbers(n, 3, **options)))
    return monitor, numbers(30, 4, **options)


def recalibrator_of_molecules():
    """Return a small recalibrator for monitors."""
    return ss.Recalibrator(ss.LinearScaling()).fit(predictions(numbers(100, 1)))


KINDS = {
    **{
        name: lambda scaling=scaling: fitted(ss.Recalibrator(scaling()), n=200)
        for name, scaling in SCALINGS.items()
    },
    "own-scaling": lambda: fitted(ss.Recalibrator(MedianScaling())),
    "default": lambda: fitted(ss.Recalibrator(), n=60),
    "power-of-u": lambda: fitted(
        ss.Recalibrator(ss.BoostedScaling(max_trees=9)), n=1200
    ),
    "binwise-ties": lambda: fitted(
        ss.Recalibrator(ss.BinwiseScaling(8, by="x")), gaps=False
    ),
    "binwise-pair": lambda: fitted(
        ss.Recalibrator(ss.BinwiseScaling(4, by=("u", "kind")))
    ),
    "raked-on-line": lambda: fitted(ss.Recalibrator(ss.RakedScaling(5, base="linear"))),
    "constant-bias": lambda: fitted(
        ss.Recalibrator(ss.TemperatureScaling(), bias="constant")
    ),
    "trees-of-bias": lambda: fitted(
        ss.Recalibrator(ss.TemperatureScaling(), bias="auto"), n=600
    ),
    "normal": lambda: fitted(
        ss.Recalibrator(ss.LinearScaling(), distribution="normal")
    ),
    "few-rows": lambda: fitted(ss.Recalibrator(ss.LinearScaling()), n=30),
    "held-out": lambda: fitted(ss.Recalibrator(ss.LinearScaling(), hold_out=0.4)),
    "bounds": lambda: fitted(ss.Recalibrator(ss.LinearScaling(), bounds=(8.0, None))),
    "parts": lambda: fitted(ss.Recalibrator(ss.LinearScaling(), parts=["kind", "u"])),
    "held-out-parts": lambda: fitted(
        ss.Recalibrator(ss.LinearScaling(), parts=["kind"], hold_out=0.5)
    ),
    "groups": lambda: fitted(ss.Recalibrator(ss.LinearScaling()), groups=True),
    "weights": lambda: fitted(ss.Recalibrator(ss.LinearScaling()), weights=True),
    "vectors": lambda: fitted(ss.Recalibrator(ss.LinearScaling()), vectors),
    "normal-vectors": lambda: fitted(
        ss.Recalibrator(ss.LinearScaling(), distribution="normal"), vectors
    ),
    "vectors-in-groups": lambda: fitted(
        ss.Recalibrator(ss.LinearScaling(), parts=["u"]), vectors, groups=True
    ),
    "shapes": lambda: fitted(ss.Recalibrator(ss.LinearScaling()), shapes),
    "monitor": lambda: monitored(ss.Monitor(recalibrator_of_molecules())),
    "monitor-begins": lambda: monitored(ss.Monitor(burn_in=70), n=60),
    "monitor-of-groups": lambda: monitored(ss.Monitor(burn_in=40), groups=True),
    "monitor-with-alarm": lambda: monitored(
        ss.Monitor(predictions(numbers(300, 1)).with_y_std(np.full(300, 9.0)))
    ),
    "follower": lambda: monitored(ss.Follower(recalibrator_of_molecules(), 0.8)),
    "follower-of-groups": lambda: monitored(
        ss.Follower(recalibrator_of_molecules(), 0.8), groups=True
    ),
}


# -- what they give --------------------------------------------------------------------


def gave(saved, rows):
    """Return the numbers that a saved object gives for new rows."""
    p = predictions(rows)
    if isinstance(saved, ss.Monitor):
        saved.update(p)
        alarm = saved.alarm
        return {
            "history": saved.history,
            "alarm": alarm if alarm is None else [alarm.kind, alarm.since, alarm.size],
        }
    if isinstance(saved, ss.Follower):
        saved.update(p)
        return {"stretch": saved.stretch, "interval": saved.interval(p)}
    q = saved.apply(p)
    numbers = {"u": q.y_std, "y_pred": q.y_pred, "typical": saved.explain(p).typical}
    if q.components is None:
        numbers["quantiles"] = q.distributions.quantile(LEVELS)
        numbers["crps"] = q.distributions.crps(q.target)
    else:
        numbers["radius"] = q.distributions.radius(0.9)
    correlation = saved.group_correlation_
    if correlation is not None:
        numbers["correlation"] = list(correlation.to_dict().values())
    return numbers


def as_json(value):
    """Return what JSON holds: lists, and null for what is not finite."""
    if isinstance(value, dict):
        return {name: as_json(part) for name, part in value.items()}
    if isinstance(value, (list, np.ndarray)):
        return [as_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def made_by_commands():
    """Write a table, what the commands make of it, and cards."""
    rows = numbers(120, 5, gaps=False)
    columns = {
        "truth": rows["y_true"],
        "prediction": rows["y_pred"],
        "uncertainty": rows["y_std"],
        **rows["features"],
    }
    lines = [",".join(columns)]
    for cells in zip(*columns.values(), strict=True):
        lines.append(",".join("" if cell != cell else str(cell) for cell in cells))
    (FOLDER / "table.csv").write_text("\n".join(lines) + "\n", "utf-8")
    check = "check table.csv --recalibrator fitted.json --card"
    for line in (
        "fit table.csv --all-features --scaling linear -o fitted.json",
        "apply fitted.json table.csv -o applied.csv",
        f"{check} card.json",
        f"{check} card.md",
        f"{check} card.html",
    ):
        command = [sys.executable, "-m", "sigmascale", *line.split()]
        subprocess.run(
            command, cwd=FOLDER, check=False
        )  # what they find does not matter


def main():
    """Write what is not there."""
    for name, make in KINDS.items():
        if (FOLDER / f"{name}.json").exists():
            continue
        print(name)
        saved, rows = make()
        saved.save(FOLDER / f"{name}.json")
        rows = as_json(rows)
        numbers_given = as_json(gave(saved, rows))
        of_file = {"by": ss.__version__, "rows": rows, "gave": numbers_given}
        text = json.dumps(of_file, ensure_ascii=False) + "\n"
        (FOLDER / f"{name}.gave.json").write_text(text, "utf-8")
    if not (FOLDER / "fitted.json").exists():
        made_by_commands()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
