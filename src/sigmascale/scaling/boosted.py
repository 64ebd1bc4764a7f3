"""A smooth factor s(u, features), learned by gradient boosting."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints, check_count, check_fraction
from .._support.citations import BOOSTING
from .._support.progress import track
from .._support.weights import mean_of, spread_of, total_of
from ..exceptions import InvalidInputError
from ..maps import (
    UNCERTAINTY,
    Clip,
    Code,
    Column,
    Constant,
    Exponential,
    Node,
    Product,
    Trees,
)
from ..maps.prediction import rescale
from ..predictions import Predictions
from .base import Distribution, VarianceScaler
from .crossfit import (
    canonical_order,
    capped,
    largest_counted,
    make_folds,
)
from .linear import linear_law
from .summaries import (
    Partition,
    RowSummaries,
    coded,
    coded_columns,
    learn_partition,
)
from .trees import Forest, Grower, TreeOptions

MAX_BINS = 255  # of a column
LEAST_BINS = 64
ROWS_PER_BIN = 100  # where there are rows enough: finer limits tell nothing
MOST_COLUMNS = 30  # that a booster looks at; of more, those that tell most
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
    distribution : {"normal", "student"}, default "normal"
        The law of errors. With "student", the scale and the degrees of freedom of
        Student's t are learned, too: `predict` returns its standard deviation, and
        `predict_scale`, `predict_quantiles` and `predict_interval` what else it says.

    Attributes
    ----------
    n_trees_ : int
        Trees of each booster; 0 where boosting gains less than its standard error.
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
        distribution: Distribution = "normal",
    ) -> None:
        self.max_trees = max_trees
        self.learning_rate = learning_rate
        self.depth = depth
        self.min_rows = min_rows
        self.n_folds = n_folds
        self.categorical = categorical
        self.random_state = random_state
        self.distribution = distribution

    does = (
        "uncertainties are multiplied by a smooth factor of u and the features, "
        "learned by gradient boosting under the gamma deviance"
    )
    references = (BOOSTING,)

    def _learn(self, rows: Predictions) -> Node:
        columns = coded_columns(
            rows, set(rows.positions(self.categorical, "categorical"))
        )
        values = [column.order for column in columns]
        order = canonical_order(values, rows.errors, rows.weights)
        return self._learn_in_folds(rows.take(order), None)[0]

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
            pseudo_rows=PSEUDO_ROWS,
            rate=check_fraction(self.learning_rate, "learning_rate"),
        )
        seed = check_count(self.random_state, "random_state", least=0)
        columns = coded_columns(
            rows, set(rows.positions(self.categorical, "categorical"))
        )
        weights = rows.weights
        law = linear_law(RowSummaries(rows).variances(), subtract=False)
        self.a_, self.b_ = law.a, law.b
        base = rescale(law.map, rows)
        z2 = (rows.errors / base) ** 2
        ratio = (z2 / rows.mean(z2) + FLOOR) / (1 + FLOOR)
        if fold is None:
            rng = np.random.default_rng(seed)
            fold = make_folds(ratio, n_folds, rng, rows.groups, weights)
        n_bins = int(np.clip(rows.total // ROWS_PER_BIN, LEAST_BINS, MAX_BINS))
        partitions = [learn_partition(c, n_bins, MAX_BINS, weights) for c in columns]
        codes = coded(partitions, columns)
        trees, out_of_fold = self._boost(
            codes, partitions, ratio, weights, fold, max_trees, options
        )
        self.range_ = (float(out_of_fold.min()), float(out_of_fold.max()))
        # the plain mean: a capped one would leave heavy-tailed errors uncovered
        self.scale_ = float(np.sqrt(rows.mean(z2 * np.exp(-out_of_fold))))
        unseen: Floats = self.scale_ * np.exp(0.5 * out_of_fold) * base
        self._unseen_z = rows.errors / unseen, weights
        if not self.n_trees_:
            return Product((Constant(self.scale_), law.map)), unseen
        inputs = [
            UNCERTAINTY
            if j == 0
            else Column(j, "label" if column.labelled else "optional")
            for j, column in enumerate(columns)
        ]
        coded_inputs = tuple(map(Code, inputs, partitions))
        learned = trees.first(self.n_trees_)
        mean = Trees(coded_inputs, *learned, divisor=float(self.n_boosters_))
        half = Product((Constant(0.5), Clip(mean, *self.range_)))
        factors = (Constant(self.scale_), Exponential(half), law.map)
        return Product(factors), unseen

    def _learned_words(self) -> str:
        return (
            f"{self.n_boosters_} boosters of {self.n_trees_} trees each, on top of "
            f"sqrt(a² u² + b²) with a = {self.a_:.4g} and b = {self.b_:.4g}; overall "
            f"factor {self.scale_:.4g}."
        )

    def _boost(
        self,
        codes: Ints,
        partitions: list[Partition],
        ratio: Floats,
        weights: Floats | None,
        fold: Ints,
        max_trees: int,
        options: TreeOptions,
    ) -> tuple[Forest, Floats]:
        """Grow the boosters in step; return them and the unseen rows' log factors."""
        cap = largest_counted(ratio, weights)
        present = np.unique(fold)
        unseen = [np.flatnonzero(fold == k) for k in present if present.size > 1]
        self.n_boosters_ = len(unseen)
        seen = np.ones((len(unseen), fold.size), dtype=bool)
        for own, rows in zip(seen, unseen, strict=True):
            own[rows] = False
        current = np.tile(ratio, (len(unseen), 1))
        grower = None
        if unseen:
            grower = Grower(codes, partitions, seen, options, weights=weights)
            if len(partitions) > MOST_COLUMNS:
                gains = grower.first_gains(current, cap)
                allowed = _allowed_columns(gains, ratio, cap, weights)
                grower = Grower(codes, partitions, seen, options, allowed, weights)
        grown = Forest(max(partition.n_codes for partition in partitions))
        out = np.zeros(ratio.size)
        losses = _centred(ratio, out, cap, weights)
        start, best_losses, best_out, best = losses, losses, out, 0
        path = [mean_of(losses, weights)]
        for count in track(range(1, max_trees + 1), "boosting", max_trees):
            if grower is None:
                break
            trees = grower.grow(current, cap)
            if not trees.value.any():
                break
            out = out.copy()
            for own, value, leaf, rows in zip(
                current, trees.value, trees.leaf, unseen, strict=True
            ):
                own *= np.exp(-value)[leaf]
                out[rows] += value[leaf[rows]]
            grown.add(trees)
            losses = _centred(ratio, out, cap, weights)
            path.append(mean_of(losses, weights))
            if path[-1] < path[best]:
                best, best_losses, best_out = count, losses, out
            if count - best >= PATIENCE:
                break
        gain = start - best_losses
        n_rows = total_of(gain.size, weights)
        enough = STANDARD_ERRORS * spread_of(gain, weights) / np.sqrt(n_rows)
        if mean_of(gain, weights) < enough:
            best, best_out = 0, np.zeros(ratio.size)
        self.cv_loss_ = np.array(path)
        self.n_trees_ = best
        return grown, best_out


def _allowed_columns(
    gains: Floats, ratio: Floats, cap: float, weights: Floats | None
) -> npt.NDArray[np.bool_]:
    """Return which of very many columns each booster looks at.

    The first split of a column of noise gains half the variance of the ratios times a
    chi-squared number, and the largest of p such numbers is about 2 ln(p).
    """
    counted = np.minimum(ratio, cap)
    variance = spread_of(counted / mean_of(counted, weights), weights) ** 2
    chance = variance * np.log(gains.shape[1])
    least = np.sort(gains, axis=1)[:, -MOST_COLUMNS, None]
    return np.asarray(gains >= np.maximum(least, chance))


def _centred(
    ratio: Floats, log_factor: Floats, cap: float, weights: Floats | None = None
) -> Floats:
    """Return the loss with the best constant: the average is set once, at the end."""
    r = ratio * np.exp(-log_factor)
    level = mean_of(np.minimum(r, cap), weights)
    losses: Floats = capped(r / level, cap) + log_factor + np.log(level)
    return losses
