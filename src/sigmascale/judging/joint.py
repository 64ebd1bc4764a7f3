"""Joint failures: what u and the features together say about z².

Small trees learn on some folds which rows have large z², and are tested on the others.
If nothing depends on u and the features, what they have learned is worth nothing there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.checks import Floats
from .._support.weights import mean_of, quantile_of
from ..predictions import Predictions
from ..scaling.crossfit import make_folds
from .regions import range_words

N_FOLDS = 2
LEAST_ROWS = 60
N_TREES, N_LEAVES, RATE = 40, 8, 0.15


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned about rows that it was not learned from.

    Attributes
    ----------
    log_factor : array of shape (n_rows,)
        The logarithm of the expected z² of each, over the average.
    weights : array of shape (n_rows,), or None
        The weights of the rows.
    """

    log_factor: Floats
    weights: Floats | None = None

    def gain(self, ratio: Floats) -> Floats:
        """Return the gain in log-likelihood (gamma law), of sets in columns.

        It is the sum over rows of r (1 − e^−f) − f, with r the ratio of z² to its mean
        and f the logarithm of the factor that was predicted.
        """
        slope, f = -np.expm1(-self.log_factor), self.log_factor
        if self.weights is not None:
            slope, f = self.weights * slope, self.weights * f
        result: Floats = slope @ ratio - f.sum()
        return result


def learn_jointly(rows: Predictions, rng: np.random.Generator) -> Learned | None:
    """Predict the z² of unseen rows; None where there is nothing to learn from."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    table, categorical = numeric_table(rows)
    if rows.n_rows < LEAST_ROWS or not table.shape[1]:
        return None
    if not rows.z2.any():
        return None
    z2 = rows.z2 / rows.mean(rows.z2)
    # one enormous error teaches nothing about other rows
    target = np.minimum(z2, quantile_of(z2, 0.99, rows.weights) + 1)
    fold = make_folds(z2, N_FOLDS, rng, rows.groups, rows.weights)
    log_factor = np.zeros(rows.n_rows)
    for k in range(N_FOLDS):
        seen, unseen = fold != k, fold == k
        if not seen.any() or not unseen.any() or not target[seen].any():
            continue
        learner = HistGradientBoostingRegressor(
            loss="poisson",
            learning_rate=RATE,
            max_iter=N_TREES,
            max_leaf_nodes=N_LEAVES,
            min_samples_leaf=max(10, int(np.count_nonzero(seen)) // 50),
            l2_regularization=5.0,
            categorical_features=categorical,
            early_stopping=False,
            random_state=0,
        )
        with threadpool_limits(1):  # threads that wait for each other cost more
            weights = None if rows.weights is None else rows.weights[seen]
            learner.fit(table[seen], target[seen], weights)
            predicted = learner.predict(table[unseen])
        mean = mean_of(learner.predict(table[seen]), weights)
        log_factor[unseen] = np.log(np.maximum(predicted / mean, 1e-3))
    return Learned(log_factor, rows.weights)


def numeric_table(rows: Predictions) -> tuple[Floats, list[int]]:
    """Return the columns as numbers, and which of them are codes of labels."""
    columns, categorical = [], []
    for column in rows.columns:
        if column.dtype.kind == "f":
            columns.append(column)
            continue
        labels, codes, counts = np.unique(
            column, return_inverse=True, return_counts=True
        )
        frequent = np.argsort(-counts, kind="stable")[:200]
        number = np.full(labels.size, np.nan)  # rare labels are as good as missing
        number[frequent] = np.arange(frequent.size)
        categorical.append(len(columns))
        columns.append(number[codes])
    useful = [i for i, x in enumerate(columns) if np.nanmin(x) < np.nanmax(x)]
    kept = [useful.index(i) for i in categorical if i in useful]
    return np.column_stack(
        [columns[i] for i in useful] or [np.empty((rows.n_rows, 0))]
    ), kept


def describe_region(rows: Predictions, learned: Learned) -> tuple[str, float]:
    """Return the worst region that a few splits find, and its <Z²> over that of all."""
    from sklearn.tree import DecisionTreeRegressor

    numbers = [i for i, labels in enumerate(rows.categories) if labels is None]
    table = np.column_stack([rows.columns[i] for i in numbers])
    least = max(10, rows.n_rows // 50)
    tree = DecisionTreeRegressor(max_depth=3, min_samples_leaf=least, random_state=0)
    tree.fit(table, learned.log_factor, rows.weights)
    leaves = tree.apply(table)
    best = -1.0, 0, 1.0
    for leaf in np.unique(leaves).tolist():
        inside = rows.take(leaves == leaf)
        ratio = max(inside.mean(inside.z2) / rows.mean(rows.z2), 0.5 / inside.n_rows)
        deviance = inside.n_rows * (ratio - 1 - np.log(ratio))
        best = max(best, (deviance, leaf, ratio), key=lambda each: each[0])
    names = [rows.names[i] for i in numbers]
    return _path_words(tree.tree_, best[1], names), best[2]


def _path_words(tree: Any, leaf: int, names: list[str]) -> str:
    """Return the conditions that lead to a leaf, in words."""
    above: dict[str, float] = {}
    below: dict[str, float] = {}
    node = leaf
    while node:
        from_left = tree.children_left == node
        parent = int(np.argmax(from_left | (tree.children_right == node)))
        name, limit = names[tree.feature[parent]], float(tree.threshold[parent])
        if from_left[parent]:
            below[name] = min(below.get(name, np.inf), limit)
        else:
            above[name] = max(above.get(name, -np.inf), limit)
        node = parent
    parts = [
        range_words(name, above.get(name), below.get(name))
        for name in dict.fromkeys([*above, *below])
    ]
    return " and ".join(parts) or "all rows"
