"""A smooth factor s(u, features), learned by gradient boosting."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._support.checks import Floats, Ints, Labels, check_count, check_fraction
from .._support.progress import track
from .._support.tables import Table
from ..exceptions import InvalidInputError
from .base import VarianceScaler
from .crossfit import (
    canonical_order,
    deviance,
    largest_ratio,
    make_folds,
)
from .linear import LinearScaling
from .trees import (
    Columns,
    LabelCodes,
    NumberCodes,
    Tree,
    TreeOptions,
    grow,
    sum_of_trees,
)

MAX_BINS = 255  # of a column
PSEUDO_ROWS = 20.0  # rows with <Z²> = 1 that every leaf gets: thin leaves change little
FLOOR = 0.01  # share of the average z² added to each: bounds factors from below
MAX_DEPTH = 10  # 1024 leaves: far more than any sensible model has
PATIENCE = 30  # trees without improvement before growing stops
STANDARD_ERRORS = 1.0  # of out-of-fold gain without which no trees are kept


class BoostedScaling(VarianceScaler):
    """Multiply uncertainties by a smooth learned factor s(u, features).

    What :class:`LinearScaling` leaves of the squared z-scores is boosted with small
    trees under the gamma deviance (log link). `n_folds` boosters grow in step, each on
    all folds but one. Their number of trees minimises the loss on the rows they have
    not seen, the factor is the geometric mean of theirs, and the average calibration
    is set on the unseen rows.

    Labels (text columns, or numeric columns named in `categorical`) and missing values
    of features are handled. An enormous error counts only up to a cap, an error of
    exactly 0 as a small one, and factors stay within the range of the unseen rows'.

    Parameters
    ----------
    max_trees : int, default 500
        Most trees a booster may have.
    learning_rate : float, default 0.05
        Share of the best step that each tree takes.
    depth : int, default 3
        Levels of splits of a tree, which has up to 2**depth leaves.
    min_rows : int, optional
        Least number of rows in a leaf; by default n/50, within 20 and 50.
    n_folds : int, default 5
        Number of folds.
    categorical : list of int or str, optional
        Numeric columns of X whose values are labels. Text columns always are.
    random_state : int, default 0
        Seed of the folds.

    Attributes
    ----------
    n_trees_ : int
        Trees of each booster; 0 where boosting gains less than its standard error.
    cv_loss_ : array of shape (n_tried + 1,)
        Out-of-fold loss by number of trees.
    base_ : LinearScaling
        What the trees multiply.
    boosters_ : list of list of Tree
        The trees of each fold's booster.
    scale_ : float
        The factor that sets the average calibration.

    References
    ----------
    J. H. Friedman, Ann. Statist. 29, 1189 (2001), doi:10.1214/aos/1013203451

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> u, x = rng.uniform(1, 2, 4000), rng.uniform(-1, 1, 4000)
    >>> error = rng.normal(scale=u * np.exp(x))
    >>> scaler = BoostedScaling().fit(np.column_stack([u, x]), error)
    >>> scaler.predict([[1.5, -0.9], [1.5, 0.9]]).round(1)
    array([0.7, 3.8])
    """

    def __init__(
        self,
        *,
        max_trees: int = 500,
        learning_rate: float = 0.05,
        depth: int = 3,
        min_rows: int | None = None,
        n_folds: int = 5,
        categorical: list[int | str] | None = None,
        random_state: int = 0,
    ) -> None:
        self.max_trees = max_trees
        self.learning_rate = learning_rate
        self.depth = depth
        self.min_rows = min_rows
        self.n_folds = n_folds
        self.categorical = categorical
        self.random_state = random_state

    def _learn(
        self, table: Table, uncertainty: Floats, error: Floats, groups: Labels | None
    ) -> None:
        n_folds = check_count(self.n_folds, "n_folds", least=2)
        max_trees = check_count(self.max_trees, "max_trees", least=0)
        depth = check_count(self.depth, "depth")
        if depth > MAX_DEPTH:
            msg = f"`depth` must be at most {MAX_DEPTH}; found {depth}."
            raise InvalidInputError(msg)
        options = TreeOptions(
            depth=depth,
            min_rows=int(np.clip(error.size / 50, 20, 50))
            if self.min_rows is None
            else check_count(self.min_rows, "min_rows"),
            pseudo_rows=PSEUDO_ROWS,
            rate=check_fraction(self.learning_rate, "learning_rate"),
        )
        seed = check_count(self.random_state, "random_state", least=0)
        self.categorical_ = set(table.positions(self.categorical, "categorical"))
        values = self._values(table, uncertainty)
        order = canonical_order(tuple(values), error)
        values = [column[order] for column in values]
        u, error = uncertainty[order], error[order]
        groups = None if groups is None else groups[order]

        self.base_ = LinearScaling().fit(u, error)
        base = self.base_.predict(u)
        z2 = (error / base) ** 2
        ratio = (z2 / z2.mean() + FLOOR) / (1 + FLOOR)
        fold = make_folds(ratio, n_folds, np.random.default_rng(seed), groups)
        self.columns_: Columns = [
            NumberCodes.learn(column, MAX_BINS)
            if column.dtype.kind == "f" and j not in self.categorical_
            else LabelCodes.learn(column, MAX_BINS)
            for j, column in enumerate(values)
        ]
        codes = np.column_stack(self._codes(values))
        cap = largest_ratio(z2)
        out_of_fold = self._boost(codes, ratio, fold, n_folds, max_trees, options, cap)
        self.range_ = (float(out_of_fold.min()), float(out_of_fold.max()))
        # the plain mean: a capped one would leave heavy-tailed errors uncovered
        self.scale_ = float(np.sqrt(np.mean(z2 * np.exp(-out_of_fold))))

    def _boost(
        self,
        codes: Ints,
        ratio: Floats,
        fold: Ints,
        n_folds: int,
        max_trees: int,
        options: TreeOptions,
        cap: float,
    ) -> Floats:
        """Grow the boosters in step; return the log factors of the unseen rows."""
        sizes = np.bincount(fold, minlength=n_folds)
        folds = np.flatnonzero((sizes > 0) & (sizes < fold.size))
        seen = [np.flatnonzero(fold != k) for k in folds]
        unseen = [np.flatnonzero(fold == k) for k in folds]
        codes_seen = [np.asfortranarray(codes[rows]) for rows in seen]
        fitted = [np.zeros(rows.size) for rows in seen]
        boosters: list[list[Tree]] = [[] for _ in folds]
        out = np.zeros(ratio.size)
        losses = _centred(ratio, out, cap)
        start, best_losses, best_out, best = losses, losses, out, 0
        path = [float(losses.mean())]
        for count in track(range(1, max_trees + 1), "boosting", max_trees):
            out = out.copy()
            grown = False
            for k in range(len(folds)):
                r = np.minimum(ratio[seen[k]] * np.exp(-fitted[k]), cap)
                tree, step = grow(codes_seen[k], r / r.mean(), self.columns_, options)
                boosters[k].append(tree)
                fitted[k] += step
                out[unseen[k]] += tree.predict(codes[unseen[k]])
                grown = grown or bool(tree.value.any())
            losses = _centred(ratio, out, cap)
            path.append(float(losses.mean()))
            if path[-1] < path[best]:
                best, best_losses, best_out = count, losses, out
            if not grown or count - best >= PATIENCE:
                break
        gain = start - best_losses
        enough = STANDARD_ERRORS * gain.std() / np.sqrt(gain.size)
        if gain.mean() < enough:
            best, best_out = 0, np.zeros(ratio.size)
        self.cv_loss_ = np.array(path)
        self.n_trees_ = best
        self.boosters_ = [trees[:best] for trees in boosters]
        return best_out

    def _rescale(self, table: Table, uncertainty: Floats) -> Floats:
        log_factor = np.zeros(uncertainty.size)
        if self.n_trees_:
            values = self._values(table, uncertainty)
            trees = [tree for trees in self.boosters_ for tree in trees]
            log_factor = sum_of_trees(
                trees,
                uncertainty.size,
                lambda rows: self._codes([column[rows] for column in values]),
            ) / len(self.boosters_)
        factor = self.scale_ * np.exp(0.5 * np.clip(log_factor, *self.range_))
        return factor * self.base_._predict_checked(table, uncertainty)

    def _values(self, table: Table, uncertainty: Floats) -> list[Any]:
        """Return the columns: numbers, which may be missing, or labels."""
        return [uncertainty, *table.features(self.categorical_)]

    def _codes(self, values: list[Any]) -> list[Ints]:
        pairs = zip(self.columns_, values, strict=True)
        return [column.codes(x) for column, x in pairs]


def _centred(ratio: Floats, log_factor: Floats, cap: float) -> Floats:
    """Return the loss with the best constant: the average is set once, at the end."""
    level = np.log(np.minimum(ratio * np.exp(-log_factor), cap).mean())
    return deviance(ratio, log_factor + level, cap)
