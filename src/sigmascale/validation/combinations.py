"""Combinations of columns: sums and differences of ranks, and what trees expect.

Trees expect a z² for each row, from rows of the other half: their ranks are one more
column, and so are x0 − x1 and x0 + x1 of the ranks of the first columns. Where u is
wrong along what trees expect, a few conditions on columns say which rows these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from .._support.checks import Bools, Floats, Ints
from ..scores.intervals import sums_of
from .columns import FEWEST, Column, Condition, column_of_numbers, no_regions
from .values import Values

COMBINATIONS = "combinations"
N_BLOCKS = 10  # of sums and differences: between whose ends runs reach
N_BLOCKS_OF_TREES = 20
MOST_PAIRED = 6  # columns, of which sums and differences are looked at
LEVELS = 128  # of ranks that trees see
LEARNABLE = 200  # units from which trees look for anything
MOST_LEARNED = 25_000  # rows
MOST_TESTED = 50_000
N_TREES = 40
N_LEAVES = 8
RATE = 0.15
SHRUNK = 5.0  # l2 regularisation of leaves
ROWS_OF_TREES = 150.0  # that "no fault found" takes, a unit of likelihood
FEW_LABELS = 4  # that a condition may list
MOST_AXES = 12  # columns that conditions are made of, those that tell most
AS_GOOD = 0.85  # of the deviation, that a description with fewer conditions may show


def rows_of_trees(tolerance: float) -> float:
    """Return how many rows trees take to find combinations that are so far off.

    Where u is t times too small in one half and as much too large in the other, to tell
    them apart gains ln((t² + t⁻²) / 2) a row, as twice a log-likelihood.
    """
    return ROWS_OF_TREES / float(np.log((tolerance**2 + tolerance**-2) / 2))


def has_combinations(columns: Sequence[Column]) -> bool:
    """Return whether more than one column varies."""
    return sum(column.n_cells > 1 for column in columns) > 1


def combined(
    columns: Sequence[Column], values: Values, rng: np.random.Generator
) -> list[Column]:
    """Return what trees expect, and sums and differences of ranks, of some rows."""
    n = values.rows.n_rows
    by_unit = rng.random((3, int(values.unit.max()) + 1))
    tested = np.flatnonzero(by_unit[0][values.unit] < MOST_TESTED / n)
    names = [column.name for column in columns if column.n_cells > 1]
    ranked = {}
    numbers = []
    for name, x, is_label in _numbers_of(values):
        if name in names:
            ranked[name] = _ranks(x[tested])
            if not is_label:
                numbers.append(name)
    pairs = {}
    for a, b in combinations(numbers[:MOST_PAIRED], 2):
        pairs[f"{a} − {b}"] = ranked[a] - ranked[b]
        pairs[f"{a} + {b}"] = ranked[a] + ranked[b]
    in_half, learned = by_unit[1:, values.unit[tested]]
    is_learned = learned < MOST_LEARNED / n
    table = np.column_stack([*ranked.values(), *map(_ranks, pairs.values())])
    expected = _expected(table, tested, values, in_half < 0.5, is_learned)

    # in cells; trees' fifths are parts, as those of a column are
    new = []
    w = values.w[tested]
    n_eff = values.n_eff * tested.size / n
    for name, x in ({COMBINATIONS: expected} | pairs).items():
        n_blocks = N_BLOCKS_OF_TREES if name == COMBINATIONS else N_BLOCKS
        column = column_of_numbers(name, x, w, n_eff, n_blocks=n_blocks)
        parts = column.parts if name == COMBINATIONS else no_regions()
        new.append(replace(column, rows=tested, parts=parts))
    return new


def _numbers_of(values: Values) -> list[tuple[str, Floats, bool]]:
    """Return u, features and time as numbers, and whether these are codes of labels."""
    rows = values.rows
    out = []
    for name, x, labels in zip(rows.names, rows.columns, rows.categories, strict=True):
        out.append((name, x, labels is not None))
    if rows.time is not None:
        name = "time" if "time" not in rows.names else "time of the rows"
        out.append((name, rows.time, False))
    return out


def _ranks(x: Floats) -> Floats:
    """Return ranks between 0 and 1; equal values have the middle of theirs."""
    code, count = np.unique(x, return_inverse=True, return_counts=True)[1:]
    return np.asarray(((np.cumsum(count) - count / 2) / x.size)[code])


def _expected(
    table: Floats, tested: Ints, values: Values, in_half: Bools, is_learned: Bools
) -> Floats:
    """Return ranks of the z² that trees expect, which the other half has taught."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    # few levels: what trees bin anyway, and scikit-learn bins weighted rows slowly
    table = np.floor(LEVELS * table)
    # one enormous error teaches nothing about other rows
    z2 = values.z2[tested]
    target = np.minimum(z2, np.quantile(z2, 0.99))
    target = target / max(float(target.mean()), 1e-300)
    w = values.w[tested]
    expected = np.zeros(tested.size)
    for half in (in_half, ~in_half):
        fit = is_learned & ~half
        if not target[fit].any() or not half.any():
            return np.zeros(tested.size)
        trees = HistGradientBoostingRegressor(
            loss="poisson",
            learning_rate=RATE,
            max_iter=N_TREES,
            max_leaf_nodes=N_LEAVES,
            min_samples_leaf=max(10, int(fit.sum()) // 50),
            l2_regularization=SHRUNK,
            early_stopping=False,
            random_state=0,
        )
        with threadpool_limits(1):  # threads that wait for each other cost more
            trees.fit(table[fit], target[fit], sample_weight=w[fit])
            expected[half] = _ranks(trees.predict(table[half]))
    return expected


# -- in conditions ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Run:
    """Neighbouring cells of a column: a condition on rows."""

    holds: Bools
    condition: Condition


@dataclass(frozen=True, eq=False)
class OrderedCells:
    """A column whose cells are in order: of numbers, or of the mean of a value."""

    column: Column
    order: Ints
    place: Ints

    @classmethod
    def of(cls, column: Column, value: Floats, w: Floats) -> OrderedCells:
        """Put the cells of a column in order; labels by the mean of a value."""
        order = np.arange(column.n_cells)
        if column.labels is not None:
            sizes = np.maximum(sums_of(column.code, w, column.n_cells), 1e-300)
            means = sums_of(column.code, w * value, column.n_cells) / sizes
            order = np.argsort(means, kind="stable")
        return cls(column, order, np.argsort(order, kind="stable")[column.code])

    @property
    def n(self) -> int:
        """The number of cells."""
        return self.column.n_cells

    @cached_property
    def runs(self) -> Ints:
        """Where runs start and stop: they reach an end; of labels, the upper one."""
        inner = np.arange(1, self.n)
        upper = np.column_stack([inner, np.full(self.n - 1, self.n)])
        if self.column.labels is not None:
            return upper[-FEW_LABELS:]
        lower = np.column_stack([0 * inner, inner])
        return np.concatenate([upper, lower])

    def run(self, i: int) -> Run:
        """Return a condition that rows are in some cells."""
        start, stop = self.runs[i]
        holds = (self.place >= start) & (self.place < stop)
        cells = self.order[start:stop]
        if self.column.labels is not None:
            cells = cells[::-1]  # the farthest first
        return Run(holds, self.column.condition(cells))


@dataclass(frozen=True, eq=False)
class Box:
    """Rows for which all of some runs hold, and how surely these rows are off."""

    score: float
    runs: list[Run]

    def holds(self, w: Floats) -> Bools:
        """Return which of the rows that have weight are in it."""
        conditions = [run.holds for run in self.runs]
        return np.asarray(np.logical_and.reduce([w > 0, *conditions]))


def described(
    columns: Sequence[Column], z2: Floats, value: Floats, w: Floats
) -> tuple[Condition, ...]:
    """Return a few conditions for the rows where a value is largest.

    Of all runs of one column, and all pairs of runs of two, those are best whose rows
    are most surely above the mean: by Σ value / √n. A third column may narrow the best
    pair down. The shortest description is taken whose rows have about as large or small
    a z² as those of the others. There is none where rows are too few.
    """
    value = np.where(w > 0, value - np.average(value, weights=w), 0.0)
    axes = [OrderedCells.of(c, value, w) for c in columns if c.n_cells > 1]
    if len(axes) > MOST_AXES:
        scores = [_best_run(axis, value, w, 0.0).score for axis in axes]
        axes = [axes[i] for i in np.argsort(scores)[::-1][:MOST_AXES]]

    # the best boxes of one condition, of two, and of these two with a third
    least = max(float(FEWEST), float(w.sum()) / 50)
    boxes = [_best_of([_best_run(axis, value, w, least) for axis in axes])]
    if len(axes) > 1:
        pairs = combinations(axes, 2)
        pair = _best_of([_best_pair(*two, value, w, least) for two in pairs])
        within = np.where(pair.holds(w), w, 0.0)
        third = _best_of([_best_run(axis, value, within, least) for axis in axes])
        boxes += [pair, Box(third.score, pair.runs + third.runs)]
    boxes = [box for box in boxes if box.score > -np.inf]
    if not boxes:
        return ()

    # the shortest description whose rows are about as wrong as those of the others
    off = []
    for box in boxes:
        inside = box.holds(w)
        mean = np.average(z2[inside], weights=w[inside])
        off.append(abs(float(np.log(max(mean, 1e-300) / np.average(z2, weights=w)))))
    chosen = next(i for i, x in enumerate(off) if x >= AS_GOOD * max(off))
    return tuple(run.condition for run in boxes[chosen].runs)


def _best_of(boxes: list[Box]) -> Box:
    """Return the box that is off most surely."""
    return max(boxes, key=lambda box: box.score)


def _best_run(axis: OrderedCells, value: Floats, w: Floats, least: float) -> Box:
    """Return the run of a column that is off most surely, by Σ w value / √Σ w.

    Its score is minus infinity if no run has at least so many rows.
    """
    start, stop = axis.runs.T

    def sums(x: Floats) -> Floats:
        ends = np.append(0.0, sums_of(axis.place, x, axis.n).cumsum())
        return np.asarray(ends[stop] - ends[start])

    score = _score(sums(w * value), sums(w), least)
    best = int(np.argmax(score))
    return Box(float(score[best]), [axis.run(best)])


def _best_pair(
    one: OrderedCells, other: OrderedCells, value: Floats, w: Floats, least: float
) -> Box:
    """Return the pair of runs, of two columns, whose common rows are off most surely.

    Its score is minus infinity if no pair has at least so many rows.
    """
    codes = one.place * other.n + other.place
    start, stop = one.runs.T[:, :, None]
    start_2, stop_2 = other.runs.T[:, None, :]

    def sums(x: Floats) -> Floats:
        # of all rectangles of cells, from cumulative sums at their four corners
        grid = np.zeros((one.n + 1, other.n + 1))
        grid[1:, 1:] = sums_of(codes, x, one.n * other.n).reshape(one.n, other.n)
        corner = grid.cumsum(axis=0).cumsum(axis=1)
        below = corner[stop, stop_2] - corner[start, stop_2]
        return np.asarray(below - corner[stop, start_2] + corner[start, start_2])

    score = _score(sums(w * value), sums(w), least)
    i, j = np.unravel_index(np.argmax(score), score.shape)
    return Box(float(score[i, j]), [one.run(int(i)), other.run(int(j))])


def _score(values: Floats, rows: Floats, least: float) -> Floats:
    """Return how surely boxes are off; minus infinity of those with too few rows."""
    score = values / np.sqrt(np.maximum(rows, 1e-9))
    return np.asarray(np.where(rows >= least, score, -np.inf))
