"""Rows to learn from or to judge by, and the tables that they come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

ENDINGS = (".csv", ".csv.gz", ".parquet")
LEAST_LABEL = 0.02  # labels of a smaller share of the rows get no column of X
LEVELS = np.arange(1, 200) / 200  # of the quantiles that distributions are judged by


@dataclass(frozen=True)
class Part:
    """Rows to learn from, or to judge by.

    Attributes
    ----------
    frame : DataFrame
        The uncertainty u, and then features: numbers, or labels as text.
    X : array of shape (n, n_columns)
        The same as numbers: u first, and a column of 0 and 1 for each label.
    error : array of shape (n,)
        Reference minus prediction; not in the rows that a method predicts.
    groups : array of int or None
        Rows with equal numbers belong together.
    sigma : array or None
        The true standard deviation of errors, where it is known.
    """

    frame: pl.DataFrame
    X: np.ndarray
    error: np.ndarray | None
    groups: np.ndarray | None = None
    sigma: np.ndarray | None = None

    @property
    def u(self) -> np.ndarray:
        """The uncertainties."""
        return self.X[:, 0]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.X)

    def take(self, rows: Any) -> Part:
        """Return some of the rows."""
        arrays = {
            name: None if values is None else values[rows]
            for name in ("error", "groups", "sigma")
            for values in [getattr(self, name)]
        }
        places = np.arange(len(self))[rows]
        return Part(self.frame[places], self.X[rows], **arrays)

    def unlabelled(self) -> Part:
        """Return the rows as a method gets them to predict."""
        return replace(self, error=None, groups=None, sigma=None)

    def folds(
        self, n_folds: int = 5, seed: int = 0
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the rows seen and unseen by each fold; groups stay together."""
        fold = _shuffled(self, np.random.default_rng(seed)) % n_folds
        for k in np.unique(fold):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


def _shuffled(part: Part, rng: np.random.Generator) -> np.ndarray:
    """Return a random number of each row's group; without groups, of each row."""
    labels = np.arange(len(part)) if part.groups is None else part.groups
    group = np.unique(labels, return_inverse=True)[1]
    return rng.permutation(group.max() + 1)[group]


def halves(part: Part, seed: int, most: int) -> tuple[Part, Part]:
    """Return a random half to learn from, and one to judge by: `most` rows each."""
    rng = np.random.default_rng(seed)
    number = _shuffled(part, rng)
    first = number <= number.max() // 2
    return tuple(
        part.take(np.sort(rng.permutation(np.flatnonzero(rows))[:most]))
        for rows in (first, ~first)
    )


def part_of(table: pl.DataFrame, where: str = "table") -> Part:
    """Return the rows of a table in the form that docs/arena.md describes."""
    lacking = [column for column in ("E", "u") if column not in table.columns]
    if lacking:
        msg = f"{where}: there is no column {', '.join(lacking)}."
        raise SystemExit(msg)
    numbers = [c for c in table.columns if c[0] == "X" and c[1:].isdigit()]
    labels = [c for c in table.columns if c[0] == "G" and c[1:].isdigit()]
    frame = table.select(
        pl.col("u", *numbers).cast(pl.Float64), *(pl.col(labels).cast(pl.String),)
    )
    X = [frame[name].to_numpy() for name in ("u", *numbers)]
    for name in labels:
        column = frame[name].to_numpy()
        values, counts = np.unique(column.astype(str), return_counts=True)
        common = values[counts >= max(10, LEAST_LABEL * len(column))]
        X += [(column == value).astype(float) for value in common]
    groups = None
    if "group" in table.columns:
        groups = table["group"].cast(pl.String).rank("dense").to_numpy().astype(int)
    sigma = table["sigma"].to_numpy() if "sigma" in table.columns else None
    error = table["E"].cast(pl.Float64).to_numpy()
    return Part(frame, np.column_stack(X), error, groups, sigma)


def files_of(folder: Path) -> dict[str, Path]:
    """Return the files of a folder by the names of their sets."""
    found = {
        path.name.removesuffix(ending): path
        for path in sorted(folder.iterdir())
        for ending in ENDINGS
        if path.name.endswith(ending) and path.name != "index.csv"
    }
    if not found:
        msg = f"{folder}: no set is there, no file that ends in {', '.join(ENDINGS)}."
        raise SystemExit(msg)
    return found


def read_part(path: Path) -> Part:
    """Read a table of a folder."""
    if path.suffix == ".parquet":
        return part_of(pl.read_parquet(path), str(path))
    return part_of(pl.read_csv(path, infer_schema_length=None), str(path))


def crossfitted(train: Part, learn: Any) -> tuple[Any, np.ndarray]:
    """Return what `learn` makes of all rows, and the z-scores of unseen ones.

    `learn` takes a Part and returns a function from a Part to uncertainties.
    """
    z = np.empty(len(train))
    for seen, unseen in train.folds():
        z[unseen] = train.error[unseen] / learn(train.take(seen))(train.take(unseen))
    return learn(train), z


def with_law(scale: np.ndarray, z: np.ndarray) -> dict[str, np.ndarray]:
    """Return distributions: a scale times the law of the z-scores of unseen rows."""
    quantiles = np.multiply.outer(scale, np.quantile(z, LEVELS))
    return {"std": scale * np.sqrt(np.mean(z**2)), "quantiles": quantiles}
