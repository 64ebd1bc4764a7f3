"""What u and the features say together: trees that learn from other rows.

Trees expect a z² for each row, from rows that are not its own: this expectation is one
more variable. Where u is wrong along it, a few conditions on variables say which rows
these are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from operator import itemgetter

import numpy as np

from .._support.checks import Bools, Floats, Ints
from ..predictions import Predictions
from ..scores.intervals import some_of, sums_of
from .search import by_unit
from .variables import Variable, label_words

N_TREES, N_LEAVES, RATE = 40, 8, 0.15
LEAST_LEARNED, MOST_LEARNED, MOST_JUDGED = 60, 25_000, 50_000  # rows
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
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    n, z2 = rows.n_rows, rows.z2 / rows.mean(rows.z2)
    table, is_label = as_table(rows)
    if n < LEAST_LEARNED or len(rows.names) < 2 or not table.shape[1]:
        return None
    # one enormous error teaches nothing about other rows
    target = np.minimum(z2, np.quantile(z2, 0.99) + 1)
    draws = [by_unit(rows.groups, n, rng) for _ in range(3)]
    half, judged = draws[0] < 0.5, draws[1] < MOST_JUDGED / n
    learned = judged & (draws[2] < MOST_LEARNED / min(n, MOST_JUDGED))
    expected = np.zeros(n)
    for here in (half, ~half):
        fit, tell = learned & ~here, judged & here
        if not target[fit].any() or not tell.any():
            return None
        model = HistGradientBoostingRegressor(
            loss="poisson",
            learning_rate=RATE,
            max_iter=N_TREES,
            max_leaf_nodes=N_LEAVES,
            min_samples_leaf=max(10, int(np.count_nonzero(fit)) // 50),
            l2_regularization=5.0,
            categorical_features=is_label,
            early_stopping=False,
            random_state=0,
        )
        with threadpool_limits(1):  # threads that wait for each other cost more
            model.fit(table[fit], target[fit], some_of(rows.weights, fit))
            found = model.predict(table[tell])
        expected[tell] = np.log(np.maximum(found / found.mean(), 1e-3))
    w = np.ones(n) if rows.weights is None else rows.weights
    return expected, np.where(judged, w, 0.0)


def as_table(rows: Predictions) -> tuple[Floats, Bools]:
    """Return the columns that vary as numbers, and which are codes of labels."""
    columns, is_label = [], []
    for x, labels in zip(rows.columns, rows.categories, strict=True):
        if labels is not None:
            counts = np.bincount(x, minlength=len(labels))
            rank = np.empty(len(labels))
            rank[np.argsort(-counts, kind="stable")] = np.arange(len(labels))
            x = np.minimum(rank, LABELS_TOLD_APART)[x]
        if x.min() < x.max():
            columns.append(x)
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
    """A variable whose bins are in order: of numbers, or of what is expected."""

    variable: Variable
    order: Ints
    codes: Ints

    @classmethod
    def of(cls, v: Variable, value: Floats, w: Floats) -> OrderedBins:
        """Put the bins of a variable in order."""
        order = np.arange(v.n_bins)
        if v.labels is not None:
            sizes = np.maximum(sums_of(v.codes, w, v.n_bins), 1e-300)
            means = sums_of(v.codes, w * value, v.n_bins) / sizes
            order = np.argsort(means, kind="stable")
        return cls(v, order, np.argsort(order, kind="stable")[v.codes])

    @property
    def runs(self) -> Ints:
        """Where runs start and stop: they reach an end; of labels, the upper one."""
        n = self.variable.n_bins
        inner = np.arange(1, n)
        upper = np.column_stack([inner, np.full(n - 1, n)])
        if self.variable.labels is not None:
            return upper[-FEW_LABELS:]
        return np.concatenate([upper, np.column_stack([0 * inner, inner])])

    def run(self, start: int, stop: int) -> Run:
        """Return the condition that rows are in these bins."""
        v, holds = self.variable, (self.codes >= start) & (self.codes < stop)
        if v.labels is None:
            return Run(v.name, holds, v.run_words(start, stop))
        names = [v.labels[i] for i in self.order[start:stop][::-1]]
        return Run(v.name, holds, label_words(v.name, *names))


Box = tuple[float, list[Run]]


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
        told = [_best([a], value, w, 0.0)[0] for a in axes]
        axes = [axes[i] for i in np.argsort(told)[::-1][:MOST_AXES]]
    least = max(20.0, float(w.sum()) / 50)
    found = [max((_best([a], value, w, least) for a in axes), key=itemgetter(0))]
    if len(axes) > 1:
        pairs = (_best(pair, value, w, least) for pair in combinations(axes, 2))
        score, two = max(pairs, key=itemgetter(0))
        inside = np.logical_and.reduce([each.holds for each in two])
        within = np.where(inside, w, 0.0)
        more, third = max(
            (_best([a], value, within, least) for a in axes), key=itemgetter(0)
        )
        found += [(score, two), (more, two + third)]
    boxes = [runs for score, runs in found if score > -np.inf]
    if not boxes:
        return [], np.zeros(w.size, dtype=np.bool_)

    def rows_of(runs: list[Run]) -> Bools:
        found: Bools = np.logical_and.reduce([w > 0, *(each.holds for each in runs)])
        return found

    def off(runs: list[Run]) -> float:
        inside = rows_of(runs)
        mean = np.average(z2[inside], weights=w[inside])
        return sign * float(np.log(max(mean, 1e-300)))

    enough = AS_GOOD * max(map(off, boxes))
    chosen = next(runs for runs in boxes if off(runs) >= enough)
    return chosen, rows_of(chosen)


def _best(axes: Iterable[OrderedBins], value: Floats, w: Floats, least: float) -> Box:
    """Return the box, of a run of one axis or of two, that is off most surely.

    Its score is minus infinity if no box has at least so many rows.
    """
    first, *more = axes
    second = more[0] if more else None
    n, m = first.variable.n_bins, second.variable.n_bins if second else 1
    codes = first.codes * m + (second.codes if second else 0)
    runs = first.runs[:, None], (second.runs if second else np.array([[0, 1]]))[None]

    def sums(x: Floats) -> Floats:  # of all boxes, from those of their corners
        grid = np.zeros((n + 1, m + 1))
        grid[1:, 1:] = sums_of(codes, x, n * m).reshape(n, m)
        corners = grid.cumsum(axis=0).cumsum(axis=1)
        (a, b), (c, d) = (np.moveaxis(each, 2, 0) for each in runs)
        found: Floats = corners[b, d] - corners[a, d] - corners[b, c] + corners[a, c]
        return found

    rows = sums(w)
    score = sums(w * value) / np.sqrt(np.maximum(rows, 1e-9))
    score = np.where(rows >= least, score, -np.inf)
    i, j = np.unravel_index(np.argmax(score), score.shape)
    chosen = [first.run(*map(int, first.runs[i]))]
    if second:
        chosen.append(second.run(*map(int, second.runs[j])))
    return float(score[i, j]), chosen
