"""What u and the features say together: trees that learn from other rows.

Trees expect a z² for each row, from rows that are not its own: this expectation is one
more variable. Where u is wrong along it, a few conditions on columns that matter say
which rows these are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.checks import Bools, Floats, Ints
from .._support.labels import label_text
from ..predictions import Predictions
from .intervals import some_of
from .scan import by_unit
from .variables import label_words, range_words

N_TREES, N_LEAVES, RATE = 40, 8, 0.15
LEAST_LEARNED, MOST_LEARNED, MOST_JUDGED = 60, 25_000, 50_000  # rows
MOST_LABELS = 200  # that trees tell apart; rarer ones are one
FEW_LABELS = 4  # that words may list
DEPTH = 3  # conditions that words may have
AS_GOOD = 0.85  # of the deviation that is left if a condition is not needed


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
            x = np.minimum(rank, MOST_LABELS)[x]
        if x.min() < x.max():
            columns.append(x)
            is_label.append(labels is not None)
    if not columns:
        return np.empty((rows.n_rows, 0)), np.empty(0, dtype=np.bool_)
    return np.column_stack(columns), np.array(is_label)


@dataclass(frozen=True, eq=False)
class Condition:
    """One condition on rows: a range of a number, or some of the labels.

    It has no words if labels are many.
    """

    column: int
    words: str
    holds: Bools


def describe(
    rows: Predictions, expected: Floats, w: Floats, sign: float
) -> tuple[list[Condition], Bools] | None:
    """Return a few conditions for the rows where trees expect most, and these rows.

    `sign` is 1 where u is too small, and −1 where it is too large. Conditions that are
    not needed are dropped: without them, rows are as wrong.
    """
    from sklearn.tree import DecisionTreeRegressor

    used = np.flatnonzero(w > 0)
    table, ranks = _ordered_table(rows, expected, w)
    least = max(20, used.size // 50)

    def off(chosen: list[Condition]) -> float:
        inside = np.logical_and.reduce([w > 0, *(each.holds for each in chosen)])
        if not chosen or np.count_nonzero(inside) < least:
            return -np.inf
        return sign * float(np.log(np.average(rows.z2[inside], weights=w[inside])))

    found: list[list[Condition]] = []
    for depth in range(1, DEPTH + 1):
        model = DecisionTreeRegressor(
            max_depth=depth, min_samples_leaf=least, random_state=0
        )
        model.fit(table[used], sign * expected[used], w[used])
        leaves, values = model.tree_.children_left < 0, model.tree_.value[:, 0, 0]
        path = _path(model.tree_, int(np.argmax(np.where(leaves, values, -np.inf))))
        found.append([_condition(rows, table, ranks, i, *ends) for i, ends in path])
    # the fewest conditions that leave rows about as wrong
    enough = AS_GOOD * max(map(off, found))
    conditions = next((each for each in found if off(each) >= enough), [])
    while len(conditions) > 1:
        rest = [[x for x in conditions if x is not each] for each in conditions]
        simpler = max(rest, key=off)
        if off(simpler) < AS_GOOD * off(conditions):
            break
        conditions = simpler
    if not conditions or any(not each.words for each in conditions):
        return None
    return conditions, np.logical_and.reduce([w > 0, *(x.holds for x in conditions)])


def _ordered_table(
    rows: Predictions, expected: Floats, w: Floats
) -> tuple[Floats, dict[int, Ints]]:
    """Return all columns as numbers; labels by the rank of what is expected of them."""
    columns, ranks = [], {}
    for i, (x, labels) in enumerate(zip(rows.columns, rows.categories, strict=True)):
        if labels is not None:
            n = np.maximum(np.bincount(x, w, len(labels)), 1e-300)
            means = np.bincount(x, w * expected, len(labels)) / n
            ranks[i] = np.argsort(np.argsort(means, kind="stable"), kind="stable")
            x = ranks[i][x].astype(np.float64)
        columns.append(x)
    return np.column_stack(columns), ranks


def _path(tree: Any, leaf: int) -> list[tuple[int, tuple[float, float]]]:
    """Return the range of each column that leads to a leaf."""
    parents = {
        int(child): (node, side)
        for side, children in enumerate((tree.children_left, tree.children_right))
        for node, child in enumerate(children)
        if child >= 0
    }
    ends: dict[int, tuple[float, float]] = {}
    while leaf in parents:  # from the leaf: what comes first is the narrowest
        leaf, side = parents[leaf]
        column, limit = int(tree.feature[leaf]), float(tree.threshold[leaf])
        low, high = ends.get(column, (-np.inf, np.inf))
        low, high = (max(low, limit), high) if side else (low, min(high, limit))
        ends[column] = low, high
    return list(ends.items())


def _condition(
    rows: Predictions,
    table: Floats,
    ranks: dict[int, Ints],
    column: int,
    low: float,
    high: float,
) -> Condition:
    """Return a range of a column, or of the ranks of its labels, in words."""
    x, name = table[:, column], rows.names[column]
    holds = (x > low) & (x <= high)
    labels = rows.categories[column]
    if labels is None:
        ends = [None if np.isinf(each) else float(each) for each in (low, high)]
        return Condition(column, range_words(name, *ends), holds)
    counts = np.bincount(rows.columns[column][holds], minlength=len(labels))
    named = [label_text(labels[i]) for i in np.argsort(-counts, kind="stable")]
    named = named[: int(np.count_nonzero(counts))]
    words = label_words(name, *named) if len(named) <= FEW_LABELS else ""
    return Condition(column, words, holds)
