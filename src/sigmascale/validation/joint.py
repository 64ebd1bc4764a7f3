"""What u and the features say together: trees that learn from other rows.

Trees expect a z² for each row, from rows that are not its own: this expectation is one
more variable. Where u is wrong along it, a few conditions on variables say which rows
these are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from .._support.checks import Bools, Floats, Ints
from .._support.weighting import ones_if_none
from ..predictions.predictions import Predictions
from ..scores.intervals import some_of, sums_of
from .search import by_unit
from .variables import Variable, label_words

N_TREES = 40
N_LEAVES = 8
RATE = 0.15
LEAST_LEARNED = 60  # rows
MOST_LEARNED = 25_000
MOST_JUDGED = 50_000
SHRUNK = 5.0  # l2 regularisation of leaves
LABELS_TOLD_APART = 200  # that trees tell apart; rarer ones are one
FEW_LABELS = 4  # that words may list
MOST_AXES = 12  # variables that words are made of, those that tell most
AS_GOOD = 0.85  # of the deviation, that a description with fewer conditions may show


def learn_jointly(
    rows: Predictions, rng: np.random.Generator
) -> tuple[Floats, Floats] | None:
    """Return the logarithm of the z² that trees expect, and the weights of rows.

    Each half of the rows is told by the other; groups stay together. Where rows are
    many, trees learn from some, and others have the weight 0. None where there is
    nothing to learn from.
    """
    from threadpoolctl import threadpool_limits

    n = rows.n_rows
    table, is_label = as_table(rows)
    if n < LEAST_LEARNED or len(rows.names) < 2 or not table.shape[1]:
        return None

    # one enormous error teaches nothing about other rows
    z2 = rows.z2 / rows.mean(rows.z2)
    target = np.minimum(z2, np.quantile(z2, 0.99) + 1)

    # two halves; of many rows, those that are judged, and those that trees learn from
    draws = [by_unit(rows.groups, n, rng) for _ in range(3)]
    is_in_half = draws[0] < 0.5
    is_judged = draws[1] < MOST_JUDGED / n
    is_learned = is_judged & (draws[2] < MOST_LEARNED / min(n, MOST_JUDGED))

    # the expectation of each half by trees of the other
    expected = np.zeros(n)
    for half in (is_in_half, ~is_in_half):
        fit = is_learned & ~half
        tell = is_judged & half
        if not target[fit].any() or not tell.any():
            return None
        trees = _trees(int(np.count_nonzero(fit)), is_label)
        with threadpool_limits(1):  # threads that wait for each other cost more
            trees.fit(table[fit], target[fit], some_of(rows.weights, fit))
            of_half = trees.predict(table[tell])
        expected[tell] = np.log(np.maximum(of_half / of_half.mean(), 1e-3))
    weights = ones_if_none(rows.weights, n)
    return expected, np.where(is_judged, weights, 0.0)


def _trees(n_rows: int, is_label: Bools) -> Any:
    """Return trees that are to learn z² from so many rows, of a few leaves each."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        loss="poisson",
        learning_rate=RATE,
        max_iter=N_TREES,
        max_leaf_nodes=N_LEAVES,
        min_samples_leaf=max(10, n_rows // 50),
        l2_regularization=SHRUNK,
        categorical_features=is_label,
        early_stopping=False,
        random_state=0,
    )


def as_table(rows: Predictions) -> tuple[Floats, Bools]:
    """Return the columns that vary as numbers, and which are codes of labels.

    Codes are ranks by frequency; the rarest labels, of many, share one.
    """
    columns = []
    is_label = []
    for column, labels in zip(rows.columns, rows.categories, strict=True):
        if labels is not None:
            counts = np.bincount(column, minlength=len(labels))
            rank = np.empty(len(labels))
            rank[np.argsort(-counts, kind="stable")] = np.arange(len(labels))
            column = np.minimum(rank, LABELS_TOLD_APART)[column]
        if column.min() < column.max():
            columns.append(column)
            is_label.append(labels is not None)
    if not columns:
        return np.empty((rows.n_rows, 0)), np.empty(0, dtype=np.bool_)
    return np.column_stack(columns), np.array(is_label)


@dataclass(frozen=True, eq=False)
class Run:
    """Neighbouring bins of a variable: a condition on rows, and it in words."""

    column: str
    holds: Bools
    words: str


@dataclass(frozen=True, eq=False)
class OrderedBins:
    """A variable whose bins are in order: of numbers, or of what is expected.

    Attributes
    ----------
    variable : Variable
        The variable.
    order : array of int, shape (n_bins,)
        Its bins in that order.
    codes : array of int, shape (n,)
        The place of each row's bin in it.
    """

    variable: Variable
    order: Ints
    codes: Ints

    @classmethod
    def of(cls, v: Variable, value: Floats, w: Floats) -> OrderedBins:
        """Put the bins of a variable in order; of labels, by the mean of a value."""
        order = np.arange(v.n_bins)
        if v.labels is not None:
            sizes = np.maximum(sums_of(v.codes, w, v.n_bins), 1e-300)
            means = sums_of(v.codes, w * value, v.n_bins) / sizes
            order = np.argsort(means, kind="stable")
        place_of_bin = np.argsort(order, kind="stable")
        return cls(v, order, place_of_bin[v.codes])

    @property
    def n(self) -> int:
        """The number of bins."""
        return self.variable.n_bins

    @property
    def runs(self) -> Ints:
        """Where runs start and stop: they reach an end; of labels, the upper one."""
        inner = np.arange(1, self.n)
        upper = np.column_stack([inner, np.full(self.n - 1, self.n)])
        if self.variable.labels is not None:
            return upper[-FEW_LABELS:]
        lower = np.column_stack([0 * inner, inner])
        return np.concatenate([upper, lower])

    def run(self, start: int, stop: int) -> Run:
        """Return the condition that rows are in these bins."""
        v = self.variable
        holds = (self.codes >= start) & (self.codes < stop)
        if v.labels is None:
            return Run(v.name, holds, v.run_words(start, stop))
        farthest_first = self.order[start:stop][::-1]
        labels = [v.labels[i] for i in farthest_first]
        return Run(v.name, holds, label_words(v.name, *labels))


@dataclass(frozen=True, eq=False)
class Box:
    """Rows for which all of some runs hold, and how surely these rows are off."""

    score: float
    runs: list[Run]

    def holds(self, w: Floats) -> Bools:
        """Return which of the rows that have weight are in it."""
        conditions = [run.holds for run in self.runs]
        return np.asarray(np.logical_and.reduce([w > 0, *conditions]))


def describe(
    variables: Iterable[Variable], z2: Floats, expected: Floats, w: Floats, sign: float
) -> tuple[list[Run], Bools]:
    """Return a few conditions for rows where trees expect most, and these rows.

    `sign` is 1 where u is too small, and −1 where it is too large. Of all runs of one
    variable, and all pairs of runs of two, those are best whose rows are most surely
    off: by Σ value / √n. A third variable may narrow the best pair down. The shortest
    description is taken whose rows are about as wrong as those of the others. There is
    none, and no conditions, where rows are too few.
    """
    value = np.where(w > 0, sign * (expected - np.average(expected, weights=w)), 0.0)
    axes = [OrderedBins.of(v, value, w) for v in variables if v.n_bins > 1]
    if len(axes) > MOST_AXES:
        scores = [_best_run(axis, value, w, 0.0).score for axis in axes]
        axes = [axes[i] for i in np.argsort(scores)[::-1][:MOST_AXES]]

    # the best boxes of one condition, of two, and of these two with a third
    least = max(20.0, float(w.sum()) / 50)
    boxes = [_best_of([_best_run(axis, value, w, least) for axis in axes])]
    if len(axes) > 1:
        pairs = combinations(axes, 2)
        pair = _best_of([_best_pair(*two, value, w, least) for two in pairs])
        within = np.where(pair.holds(w), w, 0.0)
        third = _best_of([_best_run(axis, value, within, least) for axis in axes])
        boxes += [pair, Box(third.score, pair.runs + third.runs)]
    boxes = [box for box in boxes if box.score > -np.inf]
    if not boxes:
        return [], np.zeros(w.size, dtype=np.bool_)

    # the shortest description whose rows are about as wrong as those of the others
    off = []
    for box in boxes:
        inside = box.holds(w)
        mean = np.average(z2[inside], weights=w[inside])
        off.append(sign * float(np.log(max(mean, 1e-300))))
    enough = AS_GOOD * max(off)
    chosen = next(i for i, how_far in enumerate(off) if how_far >= enough)
    return boxes[chosen].runs, boxes[chosen].holds(w)


def _best_of(boxes: list[Box]) -> Box:
    """Return the box that is off most surely."""
    return max(boxes, key=lambda box: box.score)


def _best_run(axis: OrderedBins, value: Floats, w: Floats, least: float) -> Box:
    """Return the run of a variable that is off most surely, by Σ w value / √Σ w.

    Its score is minus infinity if no run has at least so many rows.
    """
    start, stop = axis.runs.T

    def sums(x: Floats) -> Floats:
        ends = np.append(0.0, sums_of(axis.codes, x, axis.n).cumsum())
        return np.asarray(ends[stop] - ends[start])

    score = _score(sums(w * value), sums(w), least)
    best = int(np.argmax(score))
    return Box(float(score[best]), [axis.run(int(start[best]), int(stop[best]))])


def _best_pair(
    one: OrderedBins, other: OrderedBins, value: Floats, w: Floats, least: float
) -> Box:
    """Return the pair of runs, of two variables, whose common rows are off most surely.

    Its score is minus infinity if no pair has at least so many rows.
    """
    codes = one.codes * other.n + other.codes
    start, stop = one.runs.T[:, :, None]
    start_2, stop_2 = other.runs.T[:, None, :]

    def sums(x: Floats) -> Floats:
        # of all rectangles of bins, from cumulative sums at their four corners
        grid = np.zeros((one.n + 1, other.n + 1))
        grid[1:, 1:] = sums_of(codes, x, one.n * other.n).reshape(one.n, other.n)
        corner = grid.cumsum(axis=0).cumsum(axis=1)
        below = corner[stop, stop_2] - corner[start, stop_2]
        return np.asarray(below - corner[stop, start_2] + corner[start, start_2])

    score = _score(sums(w * value), sums(w), least)
    i, j = np.unravel_index(np.argmax(score), score.shape)
    runs = [
        one.run(int(one.runs[i, 0]), int(one.runs[i, 1])),
        other.run(int(other.runs[j, 0]), int(other.runs[j, 1])),
    ]
    return Box(float(score[i, j]), runs)


def _score(values: Floats, rows: Floats, least: float) -> Floats:
    """Return how surely boxes are off; minus infinity of those with too few rows."""
    score = values / np.sqrt(np.maximum(rows, 1e-9))
    return np.asarray(np.where(rows >= least, score, -np.inf))
