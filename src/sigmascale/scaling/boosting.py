"""Gradient boosting in folds: boosters that grow in step, judged by rows not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._support.checks import Floats, Ints
from .._support.progress import track
from .._support.weights import mean_of, spread_of, total_of
from ..bins.partitions import LabelBins
from ..maps import UNCERTAINTY, Code, Column, Trees
from ..predictions import Predictions
from .summaries import Partition, coded, coded_columns, learn_partition
from .trees import Forest, Grower, Leaves, TreeOptions

MAX_BINS = 255  # of a column
LEAST_BINS = 64
ROWS_PER_BIN = 100  # where there are rows enough: finer limits tell nothing
MOST_COLUMNS = 30  # that a booster looks at; of more, those that tell most
PATIENCE = 30  # trees without improvement before growing stops
STANDARD_ERRORS = 0.5  # of out-of-fold gain without which no trees are kept


@dataclass(frozen=True)
class BinnedTable:
    """The columns of rows in bins, as trees see them.

    Attributes
    ----------
    codes : array of int, shape (n_rows, n_columns)
        The bin of each row in each column.
    partitions : list of EqualSizeBins or LabelBins
        What the codes stand for.
    """

    codes: Ints
    partitions: list[Partition]

    @classmethod
    def of(cls, rows: Predictions, labelled: set[int]) -> BinnedTable:
        """Bin all columns; text is labels, and so are the columns `labelled`."""
        columns = coded_columns(rows, labelled)
        n_bins = int(np.clip(rows.total // ROWS_PER_BIN, LEAST_BINS, MAX_BINS))
        partitions = [
            learn_partition(column, n_bins, MAX_BINS, rows.weights)
            for column in columns
        ]
        return cls(coded(partitions, columns), partitions)

    @property
    def inputs(self) -> tuple[Code, ...]:
        """The nodes that bin the columns of new rows."""
        return tuple(
            Code(
                Column(j, "label" if isinstance(each, LabelBins) else "optional")
                if j
                else UNCERTAINTY,
                each,
            )
            for j, each in enumerate(self.partitions)
        )


@dataclass(frozen=True)
class Boosters:
    """One booster for each fold, which has not seen it.

    Attributes
    ----------
    forest : Forest
        The trees of all boosters.
    n_boosters, n_trees : int
        How many boosters, and how many trees of each are kept: none where they gain
        less than half their standard error.
    unseen : array of shape (n_rows,)
        What the booster that has not seen a row says of it.
    path : array
        The mean loss of unseen rows by the number of trees.
    """

    forest: Forest
    n_boosters: int
    n_trees: int
    unseen: Floats
    path: Floats

    def mean(self, inputs: tuple[Code, ...]) -> Trees:
        """Return the map of what all boosters say, in the mean."""
        learned = self.forest.first(self.n_trees)
        return Trees(inputs, *learned, divisor=float(self.n_boosters))


def boost(
    table: BinnedTable,
    numbers: Floats,
    losses: Callable[[Floats], Floats],
    *,
    leaves: Leaves,
    options: TreeOptions,
    max_trees: int,
    fold: Ints,
    weights: Floats | None,
) -> Boosters:
    """Grow boosters in step, and keep as many trees as are best for rows not seen.

    Parameters
    ----------
    table : BinnedTable
        The rows.
    numbers : array of shape (n_rows,)
        What leaves are about.
    losses : callable
        Returns the loss of each row, for what is said of it.
    leaves : GammaLeaves or SquaredLeaves
        What a leaf gains, and its step.
    options : TreeOptions
        How trees grow.
    max_trees : int
        Most trees of a booster.
    fold : array of int
        The fold of each row.
    weights : array or None
        The weights of rows.
    """
    codes, partitions = table.codes, table.partitions
    present = np.unique(fold)
    unseen = [np.flatnonzero(fold == k) for k in present if present.size > 1]
    seen = np.ones((len(unseen), fold.size), dtype=bool)
    for own, rows in zip(seen, unseen, strict=True):
        own[rows] = False
    current = np.tile(numbers, (len(unseen), 1))
    grower = None
    if unseen:
        grower = Grower(codes, partitions, seen, options, leaves, weights=weights)
        if len(partitions) > MOST_COLUMNS:
            gains = grower.first_gains(current)
            # the first split of a column of noise gains a chi-squared number times
            # what chance does, and the largest of p such numbers is about 2 ln(p)
            chance = 2 * leaves.chance(numbers, weights) * np.log(gains.shape[1])
            least = np.sort(gains, axis=1)[:, -MOST_COLUMNS, None]
            allowed = gains >= np.maximum(least, chance)
            grower = Grower(codes, partitions, seen, options, leaves, allowed, weights)
    forest = Forest(max(partition.n_codes for partition in partitions))
    out = np.zeros(numbers.size)
    lost = losses(out)
    start, best_lost, best_out, best = lost, lost, out, 0
    path = [mean_of(lost, weights)]
    for count in track(range(1, max_trees + 1), "boosting", max_trees):
        if grower is None:
            break
        trees = grower.grow(current)
        if not trees.value.any():
            break
        out = out.copy()
        for k, rows in enumerate(unseen):
            current[k] = leaves.left_over(current[k], trees.value[k], trees.leaf[k])
            out[rows] += trees.value[k][trees.leaf[k][rows]]
        forest.add(trees)
        lost = losses(out)
        path.append(mean_of(lost, weights))
        if path[-1] < path[best]:
            best, best_lost, best_out = count, lost, out
        if count - best >= PATIENCE:
            break
    gain = start - best_lost
    n_rows = total_of(gain.size, weights)
    enough = STANDARD_ERRORS * spread_of(gain, weights) / np.sqrt(n_rows)
    if mean_of(gain, weights) < enough:
        best, best_out = 0, np.zeros(numbers.size)
    return Boosters(forest, len(unseen), best, best_out, np.array(path))
