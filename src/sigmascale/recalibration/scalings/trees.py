"""Gradient boosting in folds by scikit-learn, and its trees as tables of few columns.

Each leaf of a tree of depth 3 is a box of at most three columns. So the sum of all
trees is a sum of tables, one for each set of columns that some leaf depends on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any, Literal

import numpy as np

from ..._support.checks import Bools, Floats, Ints
from ..._support.numerals import number
from ..._support.weighting import mean_of, weights_of
from ...predictions.ordering import order_of
from ..additive import Axis, Table, distinct, merged
from ..folds import MANY_ROWS, fold_numbers
from .outlier_caps import slowly_beyond

PATIENCE = 20  # trees without improvement before growing stops
STEP = 30  # trees that are grown at a time
STEP_OF_MANY = 5  # of many rows, which take memory for each of them
ROWS_FOR_THREADS = 50_000  # for which each booster has a thread of its own
ROWS_FOR_OPENMP = 200_000  # and for which these share the other cores
ROWS_TO_SPLIT = 40  # fewer are not split
# Of the gain out of fold without which there are no trees: of 40 sets of 800 rows and 2
# features that tell nothing, 6 grow some; with 0, 16 (test_decisions.py).
STANDARD_ERRORS = 0.5
N_COMPARED = 64  # rows for which tables are compared with the trees


@dataclass(frozen=True)
class Boosted:
    """The mean of one booster for each fold, and what each says of its fold.

    Attributes
    ----------
    tables : tuple of Table
        Their mean, but for the constant; axes are numbered as they were given.
    constant : float
        The constant.
    out_of_fold : array of shape (n,)
        What the booster that has not seen a row says of it.
    losses : array of shape (n,)
        The loss of each row by that.
    """

    tables: tuple[Table, ...]
    constant: float
    out_of_fold: Floats
    losses: Floats


def boost(
    axes: Sequence[Axis],
    codes: Ints,
    y: Floats,
    fold: Ints,
    weights: Floats | None,
    *,
    loss: Literal["gamma", "squared_error"],
    cap: float,
    max_trees: int,
    learning_rate: float,
    depth: int,
    prior_rows: float,
    random_state: int,
) -> Boosted:
    """Boost on all folds but one; keep as many trees as are best for rows out of fold.

    Parameters
    ----------
    axes : list of Axis
        The bins of the columns.
    codes : array of int, shape (n, n_axes)
        The codes of the rows.
    y : array of shape (n,)
        What is learned: its logarithm for "gamma", of which y has the mean 1.
    fold : array of int
        The fold of each row.
    weights : array or None
        Weights of the rows.
    loss : {"gamma", "squared_error"}
        The loss.
    cap : float
        Up to which size y counts.
    max_trees, learning_rate, depth, prior_rows, random_state
        As of :class:`sigmascale.BoostedScaling`.
    """
    total = y.size if weights is None else float(weights.sum())
    options = {
        "loss": loss,
        "learning_rate": learning_rate,
        "max_depth": depth,
        "max_leaf_nodes": None,
        "l2_regularization": prior_rows,
        "min_samples_leaf": int(np.clip(total / 50, 20, 50)),
        "random_state": random_state,
        "early_stopping": False,
        "warm_start": True,
    }

    def losses(out: Floats) -> Floats:
        """Return the loss of each row; the average of ratios is set at the end."""
        if loss == "squared_error":
            return np.minimum((y - out) ** 2, cap**2)
        # the gamma deviance with the best constant
        r = y * np.exp(-out)
        level = mean_of(np.minimum(r, cap), weights)
        return np.asarray(slowly_beyond(r / level, cap) + out + np.log(level))

    # no trees, before which others must come
    nothing = np.zeros(y.size)
    losses_of_nothing = losses(nothing)
    n_best = 0
    best_out = nothing
    best_losses = losses_of_nothing

    boosters = []
    folds = fold_numbers(fold)
    if len(folds) > 1 and y.size >= ROWS_TO_SPLIT:
        for k in folds:
            booster = _Booster(axes, codes, y, weights, fold == k, cap, options)
            boosters.append(booster)
    step = STEP if y.size < MANY_ROWS else STEP_OF_MANY

    # all grow in step: one that stopped by itself would have seen its fold
    n_trees = 0
    out = nothing
    with _Growers(len(boosters), y.size) as growers:
        while boosters and n_trees < max_trees and n_trees - n_best < PATIENCE:
            n_more = min(step, max_trees - n_trees)
            stages = growers.grown(boosters, n_trees, n_more)
            for out_of_folds in zip(*stages, strict=True):
                n_trees += 1
                out = out.copy()
                for booster, out_of_fold in zip(boosters, out_of_folds, strict=True):
                    out[booster.out] = out_of_fold
                losses_of_out = losses(out)
                if mean_of(losses_of_out, weights) < mean_of(best_losses, weights):
                    n_best = n_trees
                    best_out = out
                    best_losses = losses_of_out

    # trees that gain too little are none
    gain = losses_of_nothing - best_losses
    mean_gain = mean_of(gain, weights)
    spread = np.sqrt(mean_of((gain - mean_gain) ** 2, weights))
    if not n_best or mean_gain < STANDARD_ERRORS * spread / np.sqrt(total):
        return Boosted((), 0.0, nothing, losses_of_nothing)
    tables, constant = _tables_of(boosters, n_best)
    with _threads().limit(limits=1, user_api="openmp"):
        _compare(boosters, n_best, tables, constant, codes)
    return Boosted(tables, constant, best_out, best_losses)


class _Growers:
    """Threads in which boosters grow: one for each of many rows, and else one for all.

    Those of OpenMP wait for each other in a loop, and take forty times as long where
    other processes use the cores. Few rows have none but one.
    """

    def __init__(self, n_boosters: int, n_rows: int) -> None:
        n_threads = 1
        if n_rows >= ROWS_FOR_THREADS:
            from joblib import cpu_count

            openmp = _threads().select(user_api="openmp").info()
            numbers = [library["num_threads"] for library in openmp]
            n_threads = min([cpu_count(), *numbers])
        self.n_workers = max(1, min(n_boosters, n_threads))
        self.n_each = 1  # threads of OpenMP
        if n_rows >= ROWS_FOR_OPENMP:
            self.n_each = max(1, n_threads // self.n_workers)

    def __enter__(self) -> _Growers:
        self._pool = None
        if self.n_workers > 1:
            self._pool = ThreadPoolExecutor(self.n_workers)
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def grown(
        self, boosters: list[_Booster], n_trees: int, more: int
    ) -> list[list[Floats]]:
        """Return, of each booster, the sums of trees after each of some more."""

        def grow(booster: _Booster) -> list[Floats]:
            # a limit is that of the thread that sets it
            with _threads().limit(limits=self.n_each, user_api="openmp"):
                return list(booster.grown(n_trees, more, self.n_each))

        if self._pool is None:
            return [grow(booster) for booster in boosters]
        return list(self._pool.map(grow, boosters))


@cache
def _threads() -> Any:
    """Return what limits threads; to look for the libraries of a process takes long."""
    from threadpoolctl import ThreadpoolController

    _growing_booster()  # whose library must be there to be found
    return ThreadpoolController()


@cache
def _growing_booster() -> Any:
    """Return scikit-learn's booster, which goes on where it stopped.

    Its warm start puts all rows into bins once more, and adds up all earlier trees for
    them: a fit in steps then takes the square of the number of steps. Here the bins and
    the sums are kept. Both methods are private to scikit-learn; the comparison at the
    end of each fit tells whether they are what they were.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    class GrowingBooster(HistGradientBoostingRegressor):
        _bin_mapper: Any
        _kept_bins: Any = None
        _kept_mapper: Any = None
        _kept_sums: Any = None

        def _bin_data(self, X: Any, *args: Any, **options: Any) -> Any:
            if self._kept_bins is None:
                self._kept_bins = super()._bin_data(X, *args, **options)
                self._kept_mapper = self._bin_mapper
            self._bin_mapper = self._kept_mapper  # `fit` has made another one
            return self._kept_bins

        def _raw_predict(self, X: Any, n_threads: int | None = None) -> Any:
            if self._kept_bins is None or X is not self._kept_bins:
                return super()._raw_predict(X, n_threads)
            if self._kept_sums is None:
                self._kept_sums = super()._raw_predict(X, n_threads)
            return self._kept_sums  # to which `fit` adds each new tree in place

    return GrowingBooster


class _Booster:
    """A booster of scikit-learn that has not seen the rows of one fold."""

    def __init__(
        self,
        axes: Sequence[Axis],
        codes: Ints,
        y: Floats,
        weights: Floats | None,
        is_out: Bools,
        cap: float,
        options: dict[str, Any],
    ) -> None:
        self.out = np.flatnonzero(is_out)
        seen = np.flatnonzero(~is_out)

        # what is learned, up to the cap
        self.is_log = options["loss"] == "gamma"
        w = weights_of(weights, seen)
        # in 32 bits, which is what trees add up: the last bits depend on the unit
        counted = np.clip(y, -cap, cap).astype(np.float32).astype(np.float64)
        if self.is_log:
            counted /= mean_of(counted[seen], w)

        # columns of numbers, between which trees split
        middle = float(self.is_log)  # the mean, which is 1 of ratios
        prior = options["l2_regularization"]
        self.ranks = [
            _ranked(axis, codes[seen, j], counted[seen], w, prior, middle)
            for j, axis in enumerate(axes)
        ]
        self._codes = codes
        self._seen = np.empty(0), counted[seen], w
        self._bins_out = np.empty(0, dtype=np.uint8)
        self._raw_out = np.empty(0)  # the sum of trees so far, for rows out of fold
        self.model = _growing_booster()(**options)

    def columns(self, codes: Ints) -> Floats:
        """Return codes as numbers that trees split."""
        return np.column_stack([rank[codes[:, j]] for j, rank in enumerate(self.ranks)])

    def grown(self, n_trees: int, more: int, n_threads: int) -> Iterator[Floats]:
        """Grow more trees; yield the sum of trees for rows out of fold after each."""
        model = self.model
        if not n_trees:
            self._begin()
        model.set_params(max_iter=n_trees + more).fit(*self._seen)
        missing_bin = model._bin_mapper.missing_values_bin_idx_
        for (tree,) in model._predictors[n_trees:]:
            of_tree = tree.predict_binned(self._bins_out, missing_bin, n_threads)
            self._raw_out = self._raw_out + of_tree
            yield self._raw_out

    def _begin(self) -> None:
        """Cut the bins that all fits keep; none of these then reads the columns."""
        is_seen = np.ones(len(self._codes), dtype=np.bool_)
        is_seen[self.out] = False
        X = self.columns(self._codes[is_seen])
        _, counted, w = self._seen
        self.model.set_params(max_iter=1).fit(X, counted, w)
        self._seen = np.broadcast_to(0.0, X.shape), counted, w
        bins_out = self.model._bin_mapper.transform(self.columns(self._codes[self.out]))
        self._bins_out = np.ascontiguousarray(bins_out)
        self._raw_out = np.full(self.out.size, self.start)

    @property
    def start(self) -> float:
        """What is said of every row before the first tree."""
        return float(np.ravel(self.model._baseline_prediction)[0])


def _ranked(
    axis: Axis, code: Ints, y: Floats, weights: Floats | None, k: float, middle: float
) -> Floats:
    """Return codes as numbers: labels in the order of their means, thin ones shrunk."""
    if not code.any():  # no row knows the column: it tells nothing
        return np.zeros(axis.n_codes)
    rank = np.arange(axis.n_codes, dtype=np.float64)
    if axis.labels is not None:
        n = np.bincount(code, weights, axis.n_codes)
        total = np.bincount(code, y if weights is None else weights * y, axis.n_codes)
        means = (total + k * middle) / np.maximum(n + k, 1e-300)
        rank[order_of(means)] = np.arange(axis.n_codes)
    rank[0] = np.nan  # what is missing, or unknown
    return rank


# leaves by the columns that they depend on: a box, as which codes of each column are
# inside, and a value
_Leaves = dict[tuple[int, ...], list[tuple[list[Bools], float]]]


def _tables_of(
    boosters: list[_Booster], n_trees: int
) -> tuple[tuple[Table, ...], float]:
    """Return the mean of boosters as tables, and a constant."""
    leaves: _Leaves = {(): []}
    for booster in boosters:
        leaves[()].append(([], booster.start))
        for (tree,) in booster.model._predictors[:n_trees]:
            _add_leaves(leaves, tree.nodes, 0, {}, booster.ranks)
    constant = sum(value for _, value in leaves.pop(())) / len(boosters)

    # of each set of columns: Σ value of leaf l · [a in l] · [b in l] · [c in l]
    tables = []
    for columns, boxes_and_values in leaves.items():
        values = np.array([value for _, value in boxes_and_values]) / len(boosters)
        classes = []
        inside = []
        for k in range(len(columns)):
            # codes that lie in the same boxes are one class
            boxes = np.array([box[k] for box, _ in boxes_and_values])
            class_of_code, code_of_class = distinct(boxes.T)
            classes.append(class_of_code)
            inside.append(boxes[:, code_of_class].astype(np.float64))
        letters = "abcdefgh"[: len(columns)]
        terms = ",".join(f"l{letter}" for letter in letters)
        summed = np.einsum(f"l,{terms}->{letters}", values, *inside, optimize=True)
        tables.append(Table(columns, tuple(classes), summed))

    # nine decimals of a logarithm: files are half as long, and nobody sees more
    rounded = []
    for table in merged(tables):
        nine_decimals = np.round(table.values, 9)
        rounded.append(replace(table, values=nine_decimals).simplified())
    return tuple(rounded), constant


def _add_leaves(
    leaves: _Leaves, nodes: Any, at: int, box: dict[int, Bools], ranks: list[Floats]
) -> None:
    """Add the leaves below a node.

    Parameters
    ----------
    leaves : dict
        What they are added to.
    nodes : array of records
        A tree, as scikit-learn keeps it.
    at : int
        The node.
    box : dict of int to array of bool
        By column, which codes come to this node; all of a column that is not there.
    ranks : list of arrays
        Of each column, the number that trees split, by code.
    """
    node = nodes[at]
    if node["is_leaf"]:
        columns = tuple(sorted(box))
        leaf = [box[j] for j in columns], float(node["value"])
        leaves.setdefault(columns, []).append(leaf)
        return
    j = int(node["feature_idx"])
    goes_left = ranks[j] <= node["num_threshold"]
    goes_left[0] = node["missing_go_to_left"]
    is_here = box.get(j, np.ones(goes_left.size, dtype=np.bool_))
    to_left = {**box, j: is_here & goes_left}
    to_right = {**box, j: is_here & ~goes_left}
    _add_leaves(leaves, nodes, int(node["left"]), to_left, ranks)
    _add_leaves(leaves, nodes, int(node["right"]), to_right, ranks)


def table_sum(tables: Sequence[Table], codes: Ints) -> Floats:
    """Return the sum of tables for rows of codes."""
    total = np.zeros(codes.shape[0])
    for table in tables:
        at = []
        for j, class_of_code in zip(table.axes, table.classes, strict=True):
            at.append(class_of_code[codes[:, j]])
        total += table.values[tuple(at)]
    return total


def _compare(
    boosters: list[_Booster],
    n_trees: int,
    tables: tuple[Table, ...],
    constant: float,
    codes: Ints,
) -> None:
    """Refuse tables that do not say what the boosters say of a few rows."""
    rows = codes[np.linspace(0, len(codes) - 1, N_COMPARED).astype(np.int64)]
    by_boosters = np.zeros(N_COMPARED)
    for booster in boosters:
        stages = booster.model.staged_predict(booster.columns(rows))
        predicted = next(islice(stages, n_trees - 1, None))
        by_boosters += np.log(predicted) if booster.is_log else predicted
    by_boosters /= len(boosters)
    by_tables = constant + table_sum(tables, rows)
    if not np.allclose(by_tables, by_boosters, rtol=1e-6, atol=1e-6):
        import sklearn

        msg = (
            f"The trees of scikit-learn {sklearn.__version__} are not what this "
            "version of sigmascale reads: its tables differ from its predictions by "
            f"{number(np.abs(by_tables - by_boosters).max(), 2)}. Install another "
            "version of scikit-learn, or use RakedScaling."
        )
        raise RuntimeError(msg)
