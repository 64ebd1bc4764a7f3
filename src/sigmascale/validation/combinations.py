"""Combinations of columns: sums and differences of ranks, and what trees predict.

Trees predict a z² for each row, from rows of the other half: their ranks are one more
column, and so are x0 − x1 and x0 + x1 of the ranks of the first columns. Where u is
wrong along what trees predict, a few conditions on columns say which rows these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
MOST_CONDITIONS = 3  # that describe rows
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
    """Return what trees predict, and sums and differences of ranks, of some rows."""
    n = values.rows.n_rows
    by_unit = rng.random((3, int(values.unit.max()) + 1))
    tested = np.flatnonzero(by_unit[0][values.unit] < MOST_TESTED / n)
    ranked = {}
    numbers = []
    time = [] if values.rows.time is None else [values.rows.time]
    arrays = [*values.rows.columns, *time]
    for column, x in zip(columns, arrays, strict=False):  # one time is no column
        if column.n_cells > 1:
            ranked[column.name] = _ranks(x[tested])
            if column.labels is None:
                numbers.append(column.name)
    pairs = {}
    for a, b in combinations(numbers[:MOST_PAIRED], 2):
        pairs[f"{a} − {b}"] = ranked[a] - ranked[b]
        pairs[f"{a} + {b}"] = ranked[a] + ranked[b]
    in_half, learned = by_unit[1:, values.unit[tested]]
    is_learned = learned < MOST_LEARNED / n
    table = np.column_stack([*ranked.values(), *map(_ranks, pairs.values())])
    expected = _expected(table, tested, values, in_half < 0.5, is_learned)

    # in cells; trees' fifths are parts, as those of a column are
    w = values.w[tested]
    n_eff = values.rows.n_effective * tested.size / n
    by_trees = column_of_numbers(
        COMBINATIONS, expected, w, n_eff, n_blocks=N_BLOCKS_OF_TREES
    )
    new = [replace(by_trees, rows=tested, kind="trees")]
    for name, x in pairs.items():
        pair = column_of_numbers(name, x, w, n_eff, n_blocks=N_BLOCKS)
        new.append(replace(pair, rows=tested, parts=no_regions(), kind="ranks"))
    return new


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


def described(
    columns: Sequence[Column], z2: Floats, value: Floats, w: Floats
) -> tuple[Condition, ...]:
    """Return a few conditions for the rows where a value is largest.

    They are the path to the best leaf of a small tree on the cells of columns; labels
    are in the order of their mean value. The shortest path is taken whose rows have
    about as large or small a z² as those of the others.
    """
    from sklearn.tree import DecisionTreeRegressor

    # cells as ordered numbers
    varying = [column for column in columns if column.n_cells > 1]
    orders = []
    places = []
    for column in varying:
        order = np.arange(column.n_cells)
        if column.labels is not None:
            weight = np.maximum(sums_of(column.code, w, column.n_cells), 1e-300)
            mean = sums_of(column.code, w * value, column.n_cells) / weight
            order = np.argsort(mean, kind="stable")
        orders.append(order)
        places.append(np.argsort(order)[column.code])
    table = np.column_stack(places)

    # the rows of the best leaf, by depth, and how far off they are
    paths = []
    least = max(float(FEWEST), float(w.sum()) / 50) / float(w.sum())
    for depth in range(1, MOST_CONDITIONS + 1):
        tree = DecisionTreeRegressor(
            max_depth=depth, min_weight_fraction_leaf=least, random_state=0
        )
        leaf = tree.fit(table, value, sample_weight=w).apply(table)
        nodes = tree.tree_
        of_leaves = np.where(nodes.children_left < 0, nodes.value.ravel(), -np.inf)
        best = int(np.argmax(of_leaves))
        inside = (leaf == best) & (w > 0)
        mean_z2 = np.average(z2[inside], weights=w[inside])
        off = abs(float(np.log(max(mean_z2, 1e-300) / np.average(z2, weights=w))))
        split = np.unique(nodes.feature[tree.decision_path(table[inside][:1]).indices])
        paths.append((off, inside, split[split >= 0]))
    farthest = max(off for off, _, _ in paths)
    _, inside, split = next(x for x in paths if x[0] >= AS_GOOD * farthest)
    conditions = []
    for i in split.tolist():
        cells = np.arange(table[inside, i].min(), table[inside, i].max() + 1)
        conditions.append(varying[i].condition(orders[i][cells]))
    return tuple(conditions)
