"""The bias: what predictions are off by on average, in units of the scale of errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .._support.checks import Floats, Ints
from .._support.numerals import number
from .._support.weighting import mean_of, weights_of
from ..predictions.predictions import Predictions
from .additive import Additive, Base
from .folds import (
    by_fold,
    make_folds,
    number_of_folds,
    simplest,
    standard_error,
)
from .scalings.axes import quantile_axes
from .scalings.boosted import boosted_map
from .scalings.linear import linear_base
from .scalings.outlier_caps import largest_counted
from .scalings.trees import boost

BiasKind = Literal["constant", "auto"]
ROUNDING_OF_ERRORS = 1e-9  # share of an error that may be left of it by rounding alone
# Patience ends them. Of 56 sets 11 gain by 1,000 trees and none loses; but where errors
# drift and no time says so, folds at random let trees learn the drift: 8 such sets lose
# 3.9 %.
MOST_TREES = 1000
MOST_TREES_OF_TIME = 100
LEAST_FOR_BIAS = 100  # rows; fewer do not tell whether a bias is worth it


@dataclass(frozen=True, eq=False)
class LearnedBias:
    """A bias, what it gains in words, and the rows without it.

    Attributes
    ----------
    map : Additive or None
        The bias as a map; None where it is left alone.
    words : str
        What was done, and what rows out of fold gain from it.
    corrected : Predictions
        The rows, each without the bias of a fit that has not seen it.
    """

    map: Additive | None
    words: str
    corrected: Predictions


@dataclass(frozen=True, eq=False)
class _Candidate:
    """One way to correct a bias.

    Attributes
    ----------
    words : str
        What is done.
    map : Additive or None
        The bias as a map.
    out_of_fold : array of shape (n,)
        The bias of each row, in units of its scale, by a fit that has not seen it.
    """

    words: str
    map: Additive | None
    out_of_fold: Floats


def corrected(rows: Predictions, bias: Additive | None) -> Predictions:
    """Return rows whose predictions, and errors, have their bias corrected."""
    return rows if bias is None else rows._moved(bias.of_rows(rows))


def learn_bias(rows: Predictions, kind: BiasKind, seed: int) -> LearnedBias:
    """Return the bias that rows out of fold gain most from, or one number.

    It is learned in units of the scale sqrt(a² u² + b²) that errors have on the whole:
    as the mean of z, or as boosted trees on z.
    """
    if kind == "auto" and rows.n_effective < LEAST_FOR_BIAS:
        words = f"The bias is left alone: {rows.n_rows} rows do not tell it."
        return LearnedBias(None, words, rows)

    # errors in units of their scale on the whole
    base = linear_base(rows, subtract=False)
    scale = base(rows.y_std)
    z = rows.errors / scale
    cap = float(np.sqrt(largest_counted(z**2, rows.weights)))
    fold = _folds(rows, np.abs(z), seed)

    # ways to correct them, and the squared errors that each leaves, up to a cap
    constant = _constant_bias(base, z, fold, cap, rows.weights)
    words = "No bias is corrected: cross-validated errors would not fall."
    nothing = _Candidate(words, None, np.zeros(z.size))
    candidates = {"none": nothing, "constant": constant}
    if kind == "auto":
        trees = _trees_of_bias(rows, base, z, fold, cap, constant, seed)
        if trees is not None:
            candidates["trees"] = trees
    losses = {}
    for name, candidate in candidates.items():
        losses[name] = np.minimum((z - candidate.out_of_fold) ** 2, cap**2)

    # the simplest that is about the best
    name = "constant" if kind == "constant" else simplest(losses, rows)
    chosen = candidates[name]
    words = chosen.words
    if name != "none":
        words += _gain_words(losses["none"], losses[name], rows)

    # the rows without it; what rounding leaves of an error is 0
    remaining = rows.errors - scale * chosen.out_of_fold
    remaining[np.abs(remaining) <= ROUNDING_OF_ERRORS * np.abs(rows.errors)] = 0.0
    unbiased = rows._with(y_pred=None, y_true=None, error=remaining, shape=None)
    return LearnedBias(chosen.map, words, unbiased)


def _constant_bias(
    base: Base, z: Floats, fold: Ints, cap: float, weights: Floats | None
) -> _Candidate:
    """Return the mean of z, up to a cap, times the scale."""
    counted = np.clip(z, -cap, cap)
    out_of_fold = np.zeros(z.size)
    for seen, unseen in by_fold(fold):
        if seen.size:
            out_of_fold[unseen] = mean_of(counted[seen], weights_of(weights, seen))
    words = "The bias is corrected by one number times the scale of the error"
    centre = mean_of(counted, weights)
    return _Candidate(words, Additive(base, centre, log=False), out_of_fold)


def _trees_of_bias(
    rows: Predictions,
    base: Base,
    z: Floats,
    fold: Ints,
    cap: float,
    constant: _Candidate,
    seed: int,
) -> _Candidate | None:
    """Return boosted trees of what the constant leaves; None if they gain nothing."""
    assert constant.map is not None
    centre = constant.map.constant
    axes = quantile_axes(rows, 64, least_rows=1, most_labels=254, by_group=True)
    boosted = boost(
        axes,
        np.column_stack([axis.codes_of(rows) for axis in axes]).astype(np.int16),
        z - centre,
        fold,
        rows.weights,
        loss="squared_error",
        cap=cap,
        max_trees=MOST_TREES if rows.time_words is None else MOST_TREES_OF_TIME,
        learning_rate=0.08,
        depth=3,
        prior_rows=20.0,
        random_state=seed,
    )
    if not boosted.tables:
        return None
    words = "The bias is corrected by boosted trees of u and the features"
    if rows.time_words is not None:
        words += (
            f" ({MOST_TREES_OF_TIME} at most, as {rows.time_words} and may drift: pass "
            "`time` to judge it by other stretches of time)"
        )
    bias = boosted_map(base, centre, axes, boosted, factor=1.0, log=False)
    return _Candidate(words, bias, constant.out_of_fold + boosted.out_of_fold)


def _gain_words(before: Floats, after: Floats, rows: Predictions) -> str:
    """Return by how much squared errors fall, the end of a sentence."""
    gain = before - after
    mean_before = rows.mean(before)
    percent = 100 * (rows.mean(gain) / mean_before)
    error = 100 * (standard_error(gain, rows) / mean_before)
    fall = f"{number(percent, 2)} ± {number(error, 1)} %"
    return f"; cross-validated squared errors fall by {fall}."


def _folds(rows: Predictions, size: Floats, seed: int) -> Ints:
    """Return the fold of each row: stretches of time, or dealt out at random."""
    if rows.time is None:
        return make_folds(size, rows, seed)
    place = np.empty(rows.n_rows)
    place[np.argsort(rows.time, kind="stable")] = np.arange(rows.n_rows)  # as given
    if rows.groups is not None:  # a group stands where its first row does
        first_place = np.full(int(rows.groups.max()) + 1, np.inf)
        np.minimum.at(first_place, rows.groups, place)
        place = first_place[rows.groups]
    # equal places stay together
    rank = np.searchsorted(np.sort(place), place)  # whole numbers
    return np.asarray(rank * number_of_folds(rows.n_rows) // rows.n_rows)
