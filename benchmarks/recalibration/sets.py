"""The sets that methods are tried on: those of a folder, or a few that are built in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

import sigmascale as ss

ENDINGS = (".csv", ".csv.gz", ".parquet")
SPLITS = {"calibration": "cal", "test": "test"}


@dataclass(frozen=True)
class Part:
    """Rows to learn from, or to judge by.

    Attributes
    ----------
    X : DataFrame
        The uncertainty u, and then features: numbers, or labels as text.
    error : array
        Reference minus prediction.
    groups : array or None
        Labels of rows that belong together.
    """

    X: pl.DataFrame
    error: np.ndarray
    groups: np.ndarray | None

    @property
    def u(self) -> np.ndarray:
        """The uncertainties."""
        return self.X["u"].to_numpy()


@dataclass(frozen=True)
class RecalibrationSet:
    """A set with its two parts."""

    name: str
    calibration: Part
    test: Part


def files_of(folder: Path) -> dict[str, Path]:
    """Return the files of a folder by the names of their sets."""
    found = {}
    for path in sorted(folder.iterdir()):
        for ending in ENDINGS:
            if path.name.endswith(ending) and path.name != "index.csv":
                found[path.name.removesuffix(ending)] = path
                break
    if not found:
        msg = f"{folder}: no set is there, no file that ends in {', '.join(ENDINGS)}."
        raise SystemExit(msg)
    return found


def read_set(name: str, path: Path) -> RecalibrationSet:
    """Read a set; README.md says what its columns are."""
    table = (
        pl.read_parquet(path)
        if path.suffix == ".parquet"
        else pl.read_csv(path, infer_schema_length=None)
    )
    lacking = [column for column in ("E", "u", "split") if column not in table.columns]
    if lacking:
        msg = f"{path}: there is no column {', '.join(lacking)}."
        raise SystemExit(msg)
    parts = {}
    for part, split in SPLITS.items():
        rows = table.filter(pl.col("split") == split)
        if rows.is_empty():
            msg = f"{path}: no row has the split {split!r}."
            raise SystemExit(msg)
        parts[part] = _part(rows)
    return RecalibrationSet(name, **parts)


def _part(rows: pl.DataFrame) -> Part:
    numbers = [c for c in rows.columns if c[0] == "X" and c[1:].isdigit()]
    labels = [c for c in rows.columns if c[0] == "G" and c[1:].isdigit()]
    X = rows.select(
        pl.col("u", *numbers).cast(pl.Float64), *(pl.col(labels).cast(pl.String),)
    )
    groups = rows["group"].cast(pl.String).to_numpy() if "group" in rows else None
    return Part(X, rows["E"].cast(pl.Float64).to_numpy(), groups)


def _one_factor(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """Uncertainties that one factor makes right."""
    u = rng.lognormal(0, 0.6, n)
    return {"u": u, "E": rng.normal(scale=2 * u), "X1": rng.normal(size=n)}


def _floor(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """Uncertainties that are too small where they are smallest."""
    u = rng.lognormal(0, 0.6, n)
    return {"u": u, "E": rng.normal(scale=np.hypot(0.7 * u, 1))}


def _excess(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """Uncertainties with a part that errors do not have."""
    truth = rng.lognormal(0, 0.6, n)
    return {"u": np.hypot(truth, 1.0), "E": rng.normal(scale=truth)}


def _curved(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """Laws that bend, and heavy tails."""
    u = rng.lognormal(0, 0.8, n)
    z = rng.standard_t(4, n) / np.sqrt(2)
    return {"u": u, "E": z * np.where(u < 1, 0.5 * u, u**2), "X1": rng.uniform(size=n)}


def _features(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """Uncertainties that say little, beside features that say more."""
    u, x = rng.lognormal(0, 0.2, n), rng.uniform(-1, 1, (n, 3))
    phase = rng.choice(["gas", "liquid", "solid"], n)
    scale = np.exp(x[:, 0] + x[:, 0] * x[:, 1]) * np.where(phase == "gas", 2.0, 1.0)
    columns = {f"X{k + 1}": x[:, k] for k in range(3)}
    return {"u": u, "E": rng.normal(scale=scale), **columns, "G1": phase}


def _outliers(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """Uncertainties that a hundredth of the errors exceed by far."""
    u = rng.lognormal(0, 0.7, n)
    wild = np.where(rng.uniform(size=n) < 0.01, 30.0, 1.0)
    return {"u": u, "E": rng.normal(scale=u * wild), "X1": rng.normal(size=n)}


def _repeats(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """Ten rows of each sample, which share most of their error."""
    sample = np.arange(n) // 10
    x = rng.uniform(-1, 1, (sample[-1] + 1, 2))[sample]
    shared = rng.normal(size=sample[-1] + 1)[sample]
    u = rng.lognormal(0, 0.4, n)
    z = 0.9 * shared + np.sqrt(1 - 0.81) * rng.normal(size=n)
    columns = {"u": u, "E": 1.5 * u * np.exp(0.5 * x[:, 0]) * z}
    return {**columns, "X1": x[:, 0], "X2": x[:, 1], "group": sample.astype(str)}


def _molecules(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """Synthetic molecules: mass and hetero-atoms tell what u does not."""
    data = ss.datasets.make_molecules(n, seed=int(rng.integers(2**31)))
    columns = {"u": data.uncertainty, "E": data.error, "X1": data.mass}
    return {**columns, "X2": data.heteroatom_fraction}


Maker = Callable[[np.random.Generator, int], dict[str, np.ndarray]]

# The law, and the rows to learn from.
BUILT_IN: dict[str, tuple[Maker, int]] = {
    "one_factor": (_one_factor, 300),
    "floor": (_floor, 300),
    "excess": (_excess, 500),
    "curved": (_curved, 1000),
    "features": (_features, 1500),
    "outliers": (_outliers, 800),
    "repeats": (_repeats, 800),
    "molecules": (_molecules, 1500),
    "few_molecules": (_molecules, 120),
}
TEST_ROWS = 2000


def built_in(name: str) -> RecalibrationSet:
    """Return one of the sets that need no folder: rows of a known law."""
    maker, n = BUILT_IN[name]
    parts = [
        _part(
            pl.DataFrame(
                maker(np.random.default_rng([list(BUILT_IN).index(name), k]), rows)
            )
        )
        for k, rows in enumerate((n, TEST_ROWS))
    ]
    return RecalibrationSet(name, *parts)
