"""What predictions are off by on average: nothing, one number, or a map of all columns.

A shift is learned in units of the scale sqrt(a² u² + b²) that errors have on the whole:
as the mean of z, or as boosted trees on z. It is taken only if rows that it has not
seen gain: the simplest that is within one standard error of the best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .._support.checks import Floats, Ints
from ..maps import Clip, Constant, Node, Product, Sum
from ..maps.prediction import rescale
from ..predictions import Predictions
from .boosting import BinnedTable, Boosters, boost
from .crossfit import largest_counted, make_folds, rank
from .linear import linear_law
from .summaries import RowSummaries, full_order
from .trees import SquaredLeaves, TreeOptions

ShiftKind = Literal["constant", "auto"]
LEAST_FOR_SHIFT = 100  # fewer do not tell whether a shift is worth it
N_FOLDS = 5
MAX_TREES, DEPTH, RATE, PSEUDO_ROWS = 100, 3, 0.08, 20.0
ROWS_PER_LEAF = 50  # so many leaves would hold all rows


@dataclass(frozen=True)
class Shift:
    """A shift that was learned, or that none was.

    Attributes
    ----------
    kind : {"none", "constant", "trees"}
        What it is.
    map : Node or None
        The shift as a map, in the unit of the error.
    unseen : array of shape (n,)
        The shift of each row by a fit that has not seen it.
    gain, standard_error : float
        By which share the squared z-scores of unseen rows fall, each counted up to a
        cap, and its standard error.
    """

    kind: Literal["none", "constant", "trees"]
    map: Node | None
    unseen: Floats
    gain: float
    standard_error: float

    @property
    def words(self) -> str:
        """What it is and gains, in words."""
        if self.kind == "none":
            return "Predictions are not shifted: unseen rows would gain nothing."
        what = {
            "constant": "one number times the scale of the error",
            "trees": "boosted trees of u and the features",
        }[self.kind]
        return (
            f"Predictions are shifted by {what}; squared errors of unseen rows fall by "
            f"{100 * self.gain:.2g} ± {100 * self.standard_error:.1g} %."
        )


def learn_shift(
    rows: Predictions, kind: ShiftKind, labelled: set[int], seed: int
) -> Shift:
    """Return the shift of rows with errors.

    Parameters
    ----------
    rows : Predictions
        Checked rows; folds follow the order of their time, if they have one.
    kind : {"constant", "auto"}
        One number, or what unseen rows gain most from.
    labelled : set of int
        Columns of numbers whose values are labels.
    seed : int
        Of the folds.
    """
    order = full_order(rows)
    rows = rows.take(order)
    base = linear_law(RowSummaries(rows).variances(), subtract=False).map
    scale = rescale(base, rows)
    z = rows.errors / scale
    cap = float(np.sqrt(largest_counted(z**2, rows.weights)))
    counted = np.clip(z, -cap, cap)
    fold = _folds(rows, np.abs(z), seed)
    centre = rows.mean(counted)
    centres = _centres(counted, rows.weights, fold)

    def losses(found: Floats) -> Floats:
        return np.minimum((z - found) ** 2, cap**2)

    said = {"none": np.zeros(z.size), "constant": centres}
    trees: Boosters | None = None
    if kind == "auto":
        table = BinnedTable.of(rows, labelled)
        trees = boost(
            table,
            z - centre,
            lambda out: losses(centres + out),
            leaves=SquaredLeaves(PSEUDO_ROWS, cap),
            options=TreeOptions(
                depth=DEPTH,
                min_rows=max(20, int(rows.total / ROWS_PER_LEAF)),
                rate=RATE,
            ),
            max_trees=MAX_TREES,
            fold=fold,
            weights=rows.weights,
        )
        said["trees"] = centres + trees.unseen
    lost = {name: losses(found) for name, found in said.items()}
    ranking = rank(lost, rows.groups, weights=rows.weights)
    chosen = next(name for name in said if ranking.is_as_good(name))
    if kind == "constant":
        chosen = "constant"
    pair = {name: lost[name] for name in ("none", chosen)}
    against = rank(pair, rows.groups, weights=rows.weights)
    unseen = np.empty(z.size)
    unseen[order] = scale * said[chosen]
    root: Node | None = None
    if chosen != "none":
        centred: Node = Constant(centre)
        if chosen == "trees" and trees is not None:
            limits = float(trees.unseen.min()), float(trees.unseen.max())
            centred = Sum((centred, Clip(trees.mean(table.inputs), *limits)))
        root = Product((centred, base))
    before = rows.mean(lost["none"])
    return Shift(
        chosen,  # type: ignore[arg-type]
        root,
        unseen,
        gain=1 - rows.mean(lost[chosen]) / before if before else 0.0,
        standard_error=max(against.standard_error.values()) / before if before else 0.0,
    )


def _folds(rows: Predictions, size: Floats, seed: int) -> Ints:
    """Return the fold of each row: in the order of time, or dealt out at random."""
    if rows.time is None:
        rng = np.random.default_rng(seed)
        return make_folds(size, N_FOLDS, rng, rows.groups, rows.weights)
    place = np.empty(rows.n_rows)
    place[np.argsort(rows.time, kind="stable")] = np.arange(rows.n_rows)
    if rows.groups is not None:  # a group stands where its first row does
        first = np.full(rows.groups.max() + 1, np.inf)
        np.minimum.at(first, rows.groups, place)
        place = first[rows.groups]
    # equal places stay together
    rank_of = np.searchsorted(np.sort(place), place)
    return np.asarray(rank_of * N_FOLDS // rows.n_rows)


def _centres(z: Floats, weights: Floats | None, fold: Ints) -> Floats:
    """Return the mean of the rows of all other folds."""
    w = np.ones(z.size) if weights is None else weights
    sums, totals = np.bincount(fold, w * z), np.bincount(fold, w)
    rest = totals.sum() - totals
    means = (sums.sum() - sums) / np.where(rest > 0, rest, np.inf)
    return np.asarray(means[fold])
