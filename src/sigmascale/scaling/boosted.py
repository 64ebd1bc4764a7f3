"""A smooth factor s(u, features), learned by gradient boosting."""

from __future__ import annotations

import numpy as np

from .._support.checks import Floats, Ints, check_count, check_fraction
from .._support.citations import BOOSTING
from .._support.weights import mean_of
from ..exceptions import InvalidInputError
from ..maps import Clip, Constant, Exponential, Node, Product
from ..maps.prediction import rescale
from ..predictions import Predictions
from .base import VarianceScaler
from .boosting import BinnedTable, boost
from .crossfit import canonical_order, capped, largest_counted, make_folds
from .linear import linear_law
from .summaries import RowSummaries, coded_columns
from .trees import GammaLeaves, TreeOptions

PSEUDO_ROWS = 20.0  # rows with <Z²> = 1 that every leaf gets: thin leaves change little
FLOOR = 0.01  # share of the average z² added to each: bounds factors from below
MAX_DEPTH = 10  # 1024 leaves: far more than any sensible model has


class BoostedScaling(VarianceScaler):
    """Multiply uncertainties by a smooth learned factor s(u, features).

    What :class:`LinearScaling` leaves of the squared z-scores is boosted with small
    trees under the gamma deviance (log link). `n_folds` boosters grow in step, each on
    all folds but one. Their number of trees minimises the loss on the rows they have
    not seen, the factor is the geometric mean of theirs, and the average calibration
    is set on the unseen rows.

    Of more than 30 columns, each booster looks at those, at most 30, whose first split
    gains more than chance explains.

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
        Trees of each booster; 0 where boosting gains less than half its standard error.
    cv_loss_ : array of shape (n_tried + 1,)
        Out-of-fold loss by number of trees.
    a_, b_ : float
        Those of the law sqrt(a² u² + b²), which the trees multiply.
    n_boosters_ : int
        Boosters, one for each fold; their trees are in ``map_``.
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

    does = (
        "uncertainties are multiplied by a smooth factor of u and the features, "
        "learned by gradient boosting under the gamma deviance"
    )
    references = (BOOSTING,)

    def _learn_unseen(self, rows: Predictions) -> tuple[Node, Floats]:
        columns = coded_columns(
            rows, set(rows.positions(self.categorical, "categorical"))
        )
        values = [column.order for column in columns]
        order = canonical_order(values, rows.errors, rows.weights)
        learned, found = self._learn_in_folds(rows.take(order), None)
        unseen = np.empty_like(found)
        unseen[order] = found
        return learned, unseen

    def _learn_in_folds(
        self, rows: Predictions, fold: Ints | None
    ) -> tuple[Node, Floats]:
        n_folds = check_count(self.n_folds, "n_folds", least=2)
        max_trees = check_count(self.max_trees, "max_trees", least=0)
        depth = check_count(self.depth, "depth")
        if depth > MAX_DEPTH:
            msg = f"`depth` must be at most {MAX_DEPTH}; found {depth}."
            raise InvalidInputError(msg)
        options = TreeOptions(
            depth=depth,
            min_rows=int(np.clip(rows.total / 50, 20, 50))
            if self.min_rows is None
            else check_count(self.min_rows, "min_rows"),
            rate=check_fraction(self.learning_rate, "learning_rate"),
        )
        seed = check_count(self.random_state, "random_state", least=0)
        labelled = set(rows.positions(self.categorical, "categorical"))
        weights = rows.weights
        law = linear_law(RowSummaries(rows).variances(), subtract=False)
        self.a_, self.b_ = law.a, law.b
        base = rescale(law.map, rows)
        z2 = (rows.errors / base) ** 2
        ratio = (z2 / rows.mean(z2) + FLOOR) / (1 + FLOOR)
        if fold is None:
            rng = np.random.default_rng(seed)
            fold = make_folds(ratio, n_folds, rng, rows.groups, weights)
        table = BinnedTable.of(rows, labelled)
        cap = largest_counted(ratio, weights)
        found = boost(
            table,
            ratio,
            lambda out: _centred(ratio, out, cap, weights),
            leaves=GammaLeaves(PSEUDO_ROWS, cap),
            options=options,
            max_trees=max_trees,
            fold=fold,
            weights=weights,
        )
        self.n_boosters_, self.n_trees_ = found.n_boosters, found.n_trees
        self.cv_loss_ = found.path
        out_of_fold = found.unseen
        self.range_ = (float(out_of_fold.min()), float(out_of_fold.max()))
        # the plain mean: a capped one would leave heavy-tailed errors uncovered
        self.scale_ = float(np.sqrt(rows.mean(z2 * np.exp(-out_of_fold))))
        unseen: Floats = self.scale_ * np.exp(0.5 * out_of_fold) * base
        if not self.n_trees_:
            return Product((Constant(self.scale_), law.map)), unseen
        mean = found.mean(table.inputs)
        half = Product((Constant(0.5), Clip(mean, *self.range_)))
        factors = (Constant(self.scale_), Exponential(half), law.map)
        return Product(factors), unseen

    def _learned_words(self) -> str:
        return (
            f"{self.n_boosters_} boosters of {self.n_trees_} trees each, on top of "
            f"sqrt(a² u² + b²) with a = {self.a_:.4g} and b = {self.b_:.4g}; overall "
            f"factor {self.scale_:.4g}."
        )


def _centred(
    ratio: Floats, log_factor: Floats, cap: float, weights: Floats | None = None
) -> Floats:
    """Return the loss with the best constant: the average is set once, at the end."""
    r = ratio * np.exp(-log_factor)
    level = mean_of(np.minimum(r, cap), weights)
    losses: Floats = capped(r / level, cap) + log_factor + np.log(level)
    return losses
