"""A smooth factor of u and the features, by gradient boosting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..._support.checks import (
    Floats,
    Ints,
    check_count,
    check_fraction,
    check_nonnegative,
)
from ..._support.weighting import mean_of, ones_if_none
from ...exceptions import InvalidInputError
from ...predictions.predictions import Predictions
from ..additive import Additive, Axis, Base, Table, merged, trimmed
from ..folds import make_folds, standard_error
from .axes import quantile_axes
from .linear import linear_base
from .outlier_caps import LEAST_RATIO, largest_counted
from .power import line_or_power
from .scaling import Learned, Scaling
from .trees import Boosted, boost, table_sum

LABEL_PRIOR = 50.0  # rows, times the variance of z², by which factors of labels shrink
# Columns of noise get a few leaves each, and each set of columns is a table.
MANY_TABLES = 60  # more are mostly noise: columns are screened
# share of the variance of the tables that a column must make, and standard errors that
# rows out of fold may lose without the others, step by step
SCREENING = ((0.005, 0.5), (0.01, 0.0), (0.02, 0.0))
ROWS_TO_SCREEN = 5000  # rows that tell it
MOST_DEPTH = 3  # each leaf is then a box of three columns at most


class BoostedScaling(Scaling):
    """Multiply uncertainties by a smooth learned factor s(u, features).

    The start is the line of :class:`LinearScaling`, times a power of u where rows out
    of fold gain from it: where large uncertainties tell more than they say, or less.
    What it leaves of the squared z-scores is boosted with small trees under the gamma
    deviance (log link), by scikit-learn's histogram trees. Five
    boosters each learn from all folds but one. Their number of trees minimises the loss
    on the rows they have not seen, the factor is the geometric mean of theirs, and the
    average is set on rows out of fold.

    Where columns are many and trees split all of them, those that make less than 0.5 %
    of the variance of what the trees say are left out, and the rest is learned again,
    unless rows out of fold lose by it.

    Labels and missing values of features are handled. An enormous error counts only up
    to a cap, an error of exactly 0 as a small one, and factors stay within the range of
    those out of fold.

    Parameters
    ----------
    max_trees : int, default 500
        Most trees a booster may have.
    learning_rate : float, default 0.1
        Share of the best step that each tree takes.
    depth : int, default 3
        Levels of splits of a tree, at most 3: so many columns can interact.
    n_bins : int, default 32
        Bins of each column of numbers, between which trees may split.
    prior_rows : float, default 20
        Rows with <Z²> = 1 that every leaf gets: thin leaves change little.
    random_state : int, default 0
        Seed of the folds.

    References
    ----------
    J. H. Friedman, Ann. Statist. 29, 1189 (2001), doi:10.1214/aos/1013203451

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u, x = rng.uniform(1, 2, 4000), rng.uniform(-1, 1, 4000)
    >>> error = rng.normal(scale=u * np.exp(x))
    >>> p = ss.Predictions(y_std=u, error=error, features={"x": x})
    >>> new = ss.Predictions(y_std=[1.5, 1.5], features={"x": [-0.9, 0.9]})
    >>> ss.BoostedScaling().learn(p).map.of_rows(new).round(1)
    array([0.6, 3.8])
    """

    MOST_LABELS = 254  # that trees tell apart

    def __init__(
        self,
        *,
        max_trees: int = 500,
        learning_rate: float = 0.1,
        depth: int = 3,
        n_bins: int = 32,
        prior_rows: float = 20.0,
        random_state: int = 0,
    ) -> None:
        self.max_trees = max_trees
        self.learning_rate = learning_rate
        self.depth = depth
        self.n_bins = n_bins
        self.prior_rows = prior_rows
        self.random_state = random_state

    def learn(self, rows: Predictions) -> Learned:
        """Return what is learned of rows; see :class:`Scaling`."""
        options = self._checked_options()
        n_bins = options.pop("n_bins")
        weights = rows.weights

        # a line, or a line times a power of u
        line = linear_base(rows, subtract=False)
        z2_of_line = (np.sqrt(rows.squared_error) / line(rows.y_std)) ** 2
        fold = make_folds(_ratios(z2_of_line, weights), rows, options["random_state"])
        base = line_or_power(rows, line, z2_of_line, fold)
        del z2_of_line  # of many rows, each column counts

        # what it leaves of the squared z-scores, as ratios of mean 1
        start = base(rows.y_std)
        z2 = (np.sqrt(rows.squared_error) / start) ** 2
        ratio = _ratios(z2, weights)

        # the logarithm of their mean, as a function of all columns
        axes = quantile_axes(rows, n_bins, least_rows=1, most_labels=self.MOST_LABELS)
        codes: Any = np.column_stack([axis.codes_of(rows) for axis in axes])
        codes = codes.astype(np.int16)
        cap = largest_counted(ratio, weights)
        learn = partial(
            boost, y=ratio, fold=fold, weights=weights, loss="gamma", cap=cap, **options
        )
        boosted = learn(axes=axes, codes=codes)
        steps = SCREENING if len(boosted.tables) > MANY_TABLES else ()
        for least_effect, standard_errors in steps:
            # without columns that are mostly noise, unless rows out of fold lose by it
            effects = _effects(boosted, codes, options["random_state"])
            used = np.flatnonzero(effects > least_effect)
            if used.size == len(axes):
                continue
            fewer_axes = [axes[j] for j in used]
            screened = learn(axes=fewer_axes, codes=codes[:, used])
            loss = screened.losses - boosted.losses
            if rows.mean(loss) > standard_errors * standard_error(loss, rows):
                break
            axes = fewer_axes
            codes = codes[:, used]
            boosted = screened
        if boosted.tables:
            boosted = _right_for_labels(boosted, axes, codes, ratio, fold, weights, cap)

        # the level makes <Z²> of rows out of fold 1: the plain mean, as a capped one
        # would leave heavy-tailed errors uncovered
        log_ratio = boosted.out_of_fold
        level = 0.5 * float(np.log(mean_of(z2 * np.exp(-log_ratio), weights)))
        out_of_fold = start * np.exp(level + 0.5 * log_ratio)
        return Learned(boosted_map(base, level, axes, boosted, factor=0.5), out_of_fold)

    def _checked_options(self) -> dict[str, Any]:
        """Return all parameters, if they are right."""
        options: dict[str, Any] = {
            "max_trees": check_count(self.max_trees, "max_trees", least=0),
            "learning_rate": check_fraction(self.learning_rate, "learning_rate"),
            "depth": check_count(self.depth, "depth"),
            "n_bins": check_count(self.n_bins, "n_bins"),
            "prior_rows": check_nonnegative(self.prior_rows, "prior_rows"),
            "random_state": check_count(self.random_state, "random_state", least=0),
        }
        depth = options["depth"]
        n_bins = options["n_bins"]
        if depth > MOST_DEPTH or n_bins > self.MOST_LABELS:
            msg = (
                f"`depth` must be at most {MOST_DEPTH}, and `n_bins` at most "
                f"{self.MOST_LABELS}; found {depth} and {n_bins}."
            )
            raise InvalidInputError(msg)
        return options


def _ratios(z2: Floats, weights: Floats | None) -> Floats:
    """Return z² over their mean, and none that is 0."""
    return (z2 / mean_of(z2, weights) + LEAST_RATIO) / (1 + LEAST_RATIO)


def _effects(boosted: Boosted, codes: Ints, seed: int) -> Floats:
    """Return the share of the variance of what boosters say that each axis makes.

    That is its total effect (I. M. Sobol', Math. Comput. Simul. 55, 271 (2001)): half
    the mean square of how far what they say moves if the column is permuted.
    """
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(codes))[:ROWS_TO_SCREEN]
    codes = codes[rows]
    permuted = codes[rng.permutation(len(codes))]
    effects = np.zeros(codes.shape[1])
    for j in range(codes.shape[1]):
        tables = [table for table in boosted.tables if j in table.axes]
        moved = codes.copy()
        moved[:, j] = permuted[:, j]
        change = table_sum(tables, moved) - table_sum(tables, codes)
        effects[j] = 0.5 * np.mean(change**2)
    variance = float(np.var(table_sum(boosted.tables, codes)))
    return effects / variance


def _right_for_labels(
    boosted: Boosted,
    axes: Sequence[Axis],
    codes: Ints,
    ratio: Floats,
    fold: Ints,
    weights: Floats | None,
    cap: float,
) -> Boosted:
    """Return boosters whose average is right for every label of a column, too.

    They stop before they have learned all of the factor of a rare label. What rows out
    of fold still want is one more table, shrunk by as many rows as tell <Z²> to 14 %.
    """
    tables = list(boosted.tables)
    out_of_fold = boosted.out_of_fold
    w = ones_if_none(weights, ratio.size)
    n_folds = int(fold.max()) + 1
    for j, axis in enumerate(axes):
        if axis.labels is None:
            continue
        code = codes[:, j]
        # what is left of the ratios, of mean 1 and capped
        remaining = ratio * np.exp(-out_of_fold)
        mean_of_capped = mean_of(np.minimum(remaining, cap), w)
        remaining = np.minimum(remaining / mean_of_capped, cap)
        variance = mean_of((remaining - mean_of(remaining, w)) ** 2, w)
        prior_rows = LABEL_PRIOR * variance

        # rows, and what is left, of each fold and label
        cell = fold * axis.n_codes + code
        shape = (n_folds, axis.n_codes)
        n_cells = n_folds * axis.n_codes
        n = np.bincount(cell, w, n_cells).reshape(shape)
        total = np.bincount(cell, w * remaining, n_cells).reshape(shape)

        # (S + k) / (n + k) of all folds; and, for the rows of each, of all the others
        n_all = n.sum(axis=0)
        total_all = total.sum(axis=0)
        of_all = (total_all + prior_rows) / (n_all + prior_rows)
        of_others = (total_all - total + prior_rows) / (n_all - n + prior_rows)
        tables.append(Table.of((j,), np.log(of_all)))
        out_of_fold = out_of_fold + np.log(of_others)[fold, code]
    simplified = tuple(table.simplified() for table in merged(tables))
    return replace(boosted, tables=simplified, out_of_fold=out_of_fold)


def boosted_map(
    base: Base,
    constant: float,
    axes: Sequence[Axis],
    boosted: Boosted,
    *,
    factor: float,
    log: bool = True,
) -> Additive:
    """Return boosters as a map, whose tables stay in the range of rows out of fold.

    What the boosters say is multiplied by `factor`: 1/2 makes a logarithm of variances
    one of standard deviations.
    """
    if not boosted.tables:
        return Additive(base, constant, log=log)
    # what rows out of fold were told, without the constant
    lowest = factor * (float(boosted.out_of_fold.min()) - boosted.constant)
    highest = factor * (float(boosted.out_of_fold.max()) - boosted.constant)
    tables = [replace(table, values=factor * table.values) for table in boosted.tables]
    axes_used, tables_used = trimmed(axes, tables)
    return Additive(
        base=base,
        constant=constant + factor * boosted.constant,
        axes=axes_used,
        tables=tables_used,
        bounds=(lowest, highest),
        log=log,
    )
