"""Rows to learn from or to judge by, and what rivals' files share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import sigmascale as ss

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
        Truth minus prediction; not in the rows that a rival predicts.
    groups : array of int or None
        Rows with equal numbers belong together.
    """

    frame: pl.DataFrame
    X: np.ndarray
    error: np.ndarray | None
    groups: np.ndarray | None = None

    @property
    def u(self) -> np.ndarray:
        """The uncertainties."""
        return self.X[:, 0]

    @property
    def predictions(self) -> ss.Predictions:
        """The same rows as sigmascale takes them."""
        features = {name: self.frame[name].to_numpy() for name in self.frame.columns}
        u = features.pop("u")
        return ss.Predictions(
            y_std=u, error=self.error, features=features, groups=self.groups
        )

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.X)

    def take(self, rows: Any) -> Part:
        """Return some of the rows."""
        places = np.arange(len(self))[rows]
        arrays = {
            name: None if values is None else values[places]
            for name in ("error", "groups")
            for values in [getattr(self, name)]
        }
        return Part(self.frame[places], self.X[places], **arrays)

    def unlabelled(self) -> Part:
        """Return the rows as a rival gets them to predict."""
        return replace(self, error=None, groups=None)

    def folds(
        self, n_folds: int = 5, seed: int = 0
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the rows within and out of each fold; groups stay together."""
        fold = shuffled(self, np.random.default_rng(seed)) % n_folds
        for k in np.unique(fold):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


def shuffled(part: Part, rng: np.random.Generator) -> np.ndarray:
    """Return a random number of each row's group; without groups, of each row."""
    labels = np.arange(len(part)) if part.groups is None else part.groups
    group = np.unique(labels, return_inverse=True)[1]
    return rng.permutation(group.max() + 1)[group]


def halves(part: Part, seed: int, most: int) -> tuple[Part, Part]:
    """Return a random half to learn from, and one to judge by: `most` rows each."""
    rng = np.random.default_rng(seed)
    number = shuffled(part, rng)
    first = number <= number.max() // 2
    learn, judge = (
        part.take(np.sort(rng.permutation(np.flatnonzero(rows))[:most]))
        for rows in (first, ~first)
    )
    return learn, judge


def part_of(table: pl.DataFrame, where: str = "table") -> Part:
    """Return the rows of a table in the form that docs/benchmark.md describes."""
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
    error = table["E"].cast(pl.Float64).to_numpy()
    return Part(frame, np.column_stack(X), error, groups)


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
    return part_of(read_table(path), str(path))


def read_table(path: Path) -> pl.DataFrame:
    """Read a file of a folder."""
    if path.suffix == ".parquet":
        return pl.read_parquet(path)
    return pl.read_csv(path, infer_schema_length=None)


# -- what several rivals need ----------------------------------------------------------

Scale = Callable[[Part], np.ndarray]


def crossfitted(train: Part, learn: Callable[[Part], Scale]) -> tuple[Scale, Any]:
    """Return what `learn` makes of all rows, and the z-scores of rows out of fold."""
    z = np.empty(len(train))
    for within, out in train.folds():
        z[out] = train.error[out] / learn(train.take(within))(train.take(out))
    return learn(train), z


def scaled(scale: np.ndarray, z: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return quantiles: a scale times those of the z-scores of rows out of fold."""
    return np.multiply.outer(scale, np.quantile(z, levels))
