"""Weights for covariate shift: how much more often a row is among new inputs.

A classifier learns to tell the inputs of new rows from those of a calibration set. Its
odds, times the ratio of the numbers of rows, are the ratio of the two densities: the
weights with which the calibration set stands for the new rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints, check_count
from .._support.labels import Categories, Label
from .._support.render import Cells, Result
from .._support.weights import effective_number
from ..exceptions import InvalidInputError
from ..predictions import Predictions, read_table
from ..scaling.crossfit import make_folds, rank
from .scan import numeric_table

FEW_ROWS = 100  # in effect, below which little can be learned
FEW_SHARE = 0.2  # of the rows, below which the shift is told to be large
LEAST_ODDS = 1e-6  # so that no logarithm of them is infinite
NONE, LOGISTIC, BOOSTED = "none", "logistic", "boosted"


@dataclass(frozen=True, eq=False)
class CovariateWeights(Result):
    """Weights of a calibration set, with which it stands for new rows.

    They can be passed as `sample_weight` as they are.

    Attributes
    ----------
    weights : array of shape (n,)
        The weight of each row, of mean 1.
    n_effective : float
        How many rows of equal weight would tell as much, (Σw)² / Σw².
    classifier : {"none", "logistic", "boosted"}
        What tells new rows from old ones best; "none" if nothing does, and all weights
        are 1.
    n_clipped : int
        Rows whose weight was reduced to the largest one allowed.
    """

    weights: Floats = field(repr=False)
    n_effective: float
    classifier: str
    n_clipped: int

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return the weights, for all that take arrays."""
        values = np.asarray(self.weights, dtype=dtype)
        return values.copy() if copy else values

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.weights.size

    @property
    def sentence(self) -> str:
        """What is left of the rows, in words."""
        n, left = self.weights.size, self.n_effective
        if self.classifier == NONE:
            return f"No shift was found: all {n} rows count alike."
        words = f"The {n} rows count as {left:.0f} in effect"
        if left < FEW_ROWS:
            return (
                f"{words}, which are few: whatever is learned from them varies much. "
                "Label some of the new rows instead."
            )
        if left < FEW_SHARE * n:
            return f"{words}: the shift is large, and a few rows speak for many."
        return f"{words}."

    def __str__(self) -> str:
        """Return what is left of the rows, in words."""
        return self.sentence

    def _cells(self) -> Cells:
        rows = [
            ("rows", f"{self.weights.size}"),
            ("in effect", f"{self.n_effective:.0f}"),
            ("classifier", self.classifier),
        ]
        return ("shift weights", "value"), rows


def covariate_weights(
    X_cal: Any, X_new: Any, *, n_folds: int = 5, random_state: int = 0
) -> CovariateWeights:
    """Return weights with which a calibration set stands for new rows.

    Two classifiers, a logistic regression and boosted trees, learn to tell new inputs
    from those of the calibration set. The simplest that is as good as the best on rows
    that it has not seen is taken, or none of them if neither is better than a guess.
    Weights are its odds for rows that it has not seen, up to sqrt(n) times their mean.

    Parameters
    ----------
    X_cal : array-like or data frame of shape (n, n_columns)
        Inputs of the calibration set: its conditioning table, or features alone.
    X_new : array-like or data frame of shape (m, n_columns)
        The same columns of the rows that uncertainties are wanted for. Their errors
        need not be known.
    n_folds : int, default 5
        Folds of the cross-fit.
    random_state : int, default 0
        Seed of the folds.

    Returns
    -------
    CovariateWeights
        An array of weights, with how many rows remain in effect.

    Notes
    -----
    The weights are right if errors depend on inputs in the same way in both sets, and
    new inputs lie where the calibration set has some. No weight makes up for regions
    that it does not reach.

    References
    ----------
    M. Sugiyama, T. Suzuki and T. Kanamori, Density Ratio Estimation in Machine Learning
    (2012), doi:10.1017/CBO9781139035613; E. L. Ionides, J. Comput. Graph. Stat. 17, 295
    (2008), doi:10.1198/106186008X320456, which has the largest weight.

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> x, new = rng.normal(size=2000), rng.normal(1, size=2000)
    >>> u = np.ones(2000)
    >>> error = rng.normal(scale=np.exp(x / 2))
    >>> found = ss.covariate_weights(x, new)
    >>> found.classifier
    'logistic'
    >>> scaler = ss.TemperatureScaling().fit(u, error, sample_weight=found)
    >>> new_error = rng.normal(scale=np.exp(new / 2))
    >>> before = ss.zms(new_error, np.full(2000, ss.zms(error, u) ** 0.5))
    >>> round(before), round(ss.zms(new_error, scaler.predict(np.ones(2000))))
    (3, 1)
    """
    seed = check_count(random_state, "random_state", least=0)
    n_folds = check_count(n_folds, "n_folds", least=2)
    old, new = read_table(X_cal), read_table(X_new)
    if len(old.columns) != len(new.columns) or old.names != new.names:
        msg = (
            "`X_cal` and `X_new` must have the same columns, in the same order; found "
            f"{', '.join(old.names)} and {', '.join(new.names)}."
        )
        raise InvalidInputError(msg)
    if min(old.n_rows, new.n_rows) < 2 * n_folds:
        msg = (
            f"`X_cal` and `X_new` must have at least {2 * n_folds} rows each, for "
            f"{n_folds} folds; found {old.n_rows} and {new.n_rows}."
        )
        raise InvalidInputError(msg)
    return _weights(_stacked(old, new), old.n_rows, n_folds, seed)


def _stacked(old: Predictions, new: Predictions) -> Predictions:
    """Return the rows of both sets, one after the other."""
    columns: list[npt.NDArray[Any]] = []
    categories: list[tuple[Label, ...] | None] = []
    for position in range(len(old.columns)):
        if old.is_labelled(position) or new.is_labelled(position):
            values = [each.labels(position).values() for each in (old, new)]
            both = Categories.of(np.concatenate(values))
            columns.append(both.codes)
            categories.append(both.labels)
        else:
            parts = [each.numbers_or_missing(position) for each in (old, new)]
            columns.append(np.concatenate(parts))
            categories.append(None)
    return Predictions.of(columns, old.names, categories=categories)


def _weights(
    rows: Predictions, n_old: int, n_folds: int, seed: int
) -> CovariateWeights:
    is_new = np.arange(rows.n_rows) >= n_old
    n_new = rows.n_rows - n_old
    # both sets count as many rows, so that the odds are the ratio of densities
    balance = np.where(is_new, rows.n_rows / (2 * n_new), rows.n_rows / (2 * n_old))
    rng = np.random.default_rng(seed)
    random = rng.random(rows.n_rows)
    # new rows are dealt out after the old ones, so that folds have their share of both
    fold = make_folds(random + is_new, n_folds, rng, None)
    share = {NONE: np.full(rows.n_rows, 0.5)}
    for name, chances in _unseen_chances(rows, is_new, balance, fold):
        share[name] = np.clip(chances, LEAST_ODDS, 1 - LEAST_ODDS)
    losses = {
        name: -np.log(np.where(is_new, each, 1 - each)) for name, each in share.items()
    }
    ranking = rank(losses, weights=balance)
    chosen = next(name for name in share if ranking.is_as_good(name))
    odds = (share[chosen] / (1 - share[chosen]))[:n_old]
    largest = np.sqrt(n_old) * odds.mean()
    clipped = np.minimum(odds, largest)
    return CovariateWeights(
        weights=clipped / clipped.mean(),
        n_effective=effective_number(clipped),
        classifier=chosen,
        n_clipped=int(np.count_nonzero(odds > largest)),
    )


def _unseen_chances(
    rows: Predictions, is_new: npt.NDArray[np.bool_], balance: Floats, fold: Ints
) -> Iterator[tuple[str, Floats]]:
    """Yield the chances that rows are new, by classifiers that have not seen them."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    table, categorical = numeric_table(rows)
    if not table.shape[1]:  # all columns are constant
        return
    boosted = HistGradientBoostingClassifier(
        max_iter=60,
        max_leaf_nodes=8,
        min_samples_leaf=20,
        l2_regularization=5.0,
        categorical_features=categorical,
        early_stopping=False,
        random_state=0,
    )
    linear = LogisticRegression(max_iter=1000)
    for name, learner, inputs in (
        (LOGISTIC, linear, _linear_inputs(table, categorical)),
        (BOOSTED, boosted, table),
    ):
        chances = np.empty(rows.n_rows)
        for k in np.unique(fold):
            seen, unseen = fold != k, fold == k
            with threadpool_limits(1):  # threads that wait for each other cost more
                learner.fit(inputs[seen], is_new[seen], balance[seen])
                chances[unseen] = learner.predict_proba(inputs[unseen])[:, 1]
        yield name, chances


def _linear_inputs(table: Floats, categorical: list[int]) -> Floats:
    """Return numbers of mean 0 and spread 1, and a column for each label."""
    columns = []
    for position, column in enumerate(table.T):
        missing = np.isnan(column)
        if position in categorical:
            codes = np.unique(column[~missing])
            columns += [(column == code).astype(np.float64) for code in codes]
            continue
        known = column[~missing]
        spread = float(known.std()) or 1.0
        columns.append(np.where(missing, 0.0, (column - known.mean()) / spread))
        if missing.any():
            columns.append(missing.astype(np.float64))
    return np.column_stack(columns)
