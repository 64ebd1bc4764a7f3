"""A fit, step by step: bias, scale and distribution of errors, and then the parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..predictions.combinations import GroupCorrelation, correlation_of
from ..predictions.diagnostics import informative
from ..predictions.predictions import Predictions
from .additive import Additive
from .bias import BiasKind, corrected, learn_bias
from .cautions import caution_of_bias, cautions_of_scale
from .distributions import Parts, ZDistribution
from .folds import divided
from .guarantees import axes_of_parts, warn_of_small_parts
from .out_of_fold import (
    OutOfFold,
    beats_one_factor,
    of_rows_out_of_fold,
    one_factor,
    scale_held_out,
    scale_out_of_fold,
    tables_of,
)
from .scalings.scaling import Learned, Scaling
from .shape_kept import share_of_shape

# Of few rows a single one may decide on a power of u, which makes large ones explode.
FEW_ROWS = 1000
# More know whether trees gain: of right uncertainties they make 0.04 % of CRPS worse.
ROWS_OF_ONE_FACTOR = 400
MOST_OF_LARGEST = 30.0


@dataclass(frozen=True, eq=False)
class Choices:
    """What is to be learned, as the parameters of a recalibrator say it.

    Attributes
    ----------
    scaling : Scaling
        What learns the scale.
    may_be_one_factor : bool
        Whether few rows may decide that u times one factor does as well.
    bias : str or None
        Whether a bias is learned.
    distribution : str
        "empirical" or "normal".
    hold_out : float
        Share of the rows from which nothing but the distribution is learned.
    parts : tuple of int
        Columns that make the parts in which intervals have nominal coverage.
    random_state : int
        Seed.
    """

    scaling: Scaling
    may_be_one_factor: bool
    bias: BiasKind | None
    distribution: Literal["empirical", "normal"]
    hold_out: float
    parts: tuple[int, ...]
    random_state: int


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was learned.

    Attributes
    ----------
    scale, bias : Additive
        The maps; the bias is None where it is left alone.
    distribution : ZDistribution
        The distribution of z.
    parts : Parts or None
        How far it is stretched in each part.
    shape_kept : float or None
        How much of the shapes of rows is kept, if they have some.
    unseen : OutOfFold
        The rows that tell the distribution, as fits without them see them.
    correlation : GroupCorrelation or None
        That of z within groups, if there are some.
    bias_words : str
        What was done about the bias.
    cautions : tuple of str
        What to be careful about.
    """

    scale: Additive
    bias: Additive | None
    distribution: ZDistribution
    parts: Parts | None
    shape_kept: float | None
    unseen: OutOfFold
    correlation: GroupCorrelation | None
    bias_words: str
    cautions: tuple[str, ...]


def learn(rows: Predictions, choices: Choices) -> Fitted:
    """Return what rows in canonical order tell.

    Errors that are all 0 tell nothing; neither do those of which a bias leaves nothing.
    """
    # rows that tell nothing but the distribution
    held_out = None
    which_held_out = None
    if choices.hold_out:
        seen, which_held_out = divided(rows, choices.hold_out, choices.random_state)
        held_out = rows.take(which_held_out)
        rows = rows.take(seen)

    # how much of their shapes rows keep; from there on errors are all that matters
    shape_kept = None
    if rows.shape is not None:
        shape_kept = share_of_shape(rows, choices.random_state)
        rows = rows._straightened(shape_kept)
        if held_out is not None:
            held_out = held_out._straightened(shape_kept)

    # the bias; the scale is learned from what it leaves
    bias = None
    bias_words = ""
    is_known = bool(rows.squared_error.any())
    if choices.bias is not None and is_known:
        learned_bias = learn_bias(rows, choices.bias, choices.random_state)
        bias = learned_bias.map
        bias_words = learned_bias.words
        rows = learned_bias.corrected
        is_known = bool(rows.squared_error.any())

    # the scale
    errors = rows.errors
    rows = informative(rows)
    learned = choices.scaling.learn(rows)
    if choices.may_be_one_factor and is_known and rows.n_effective < FEW_ROWS:
        learned = _told_by_few(rows, learned, choices)

    # rows as fits without them see them: those held out, or all, out of fold
    seed = choices.random_state
    witnesses = rows
    if held_out is None:
        told = scale_out_of_fold(rows, choices.scaling, learned, seed)
    else:
        witnesses = corrected(held_out, bias)
        errors = witnesses.errors
        told = scale_held_out(witnesses, learned, seed)
    unseen = replace(
        told,
        fold=told.fold.astype(np.int8),
        error=None if bias is None else errors,
        held_out=which_held_out,
    )
    groups = witnesses.groups
    correlation = None
    if is_known and groups is not None and np.bincount(groups).max() > 1:
        correlation = correlation_of(errors, told.scale, groups, witnesses.weights)

    # the distribution of z; normal, where errors do not tell it, or shall not
    distribution = ZDistribution(dim=rows.components)
    parts = None
    if is_known and choices.distribution == "empirical":
        distribution, parts = _distribution(rows, witnesses, told, learned, choices)

    # what is odd about it
    cautions: tuple[str, ...] = ()
    if is_known:
        scale = learned.map.of_rows(rows)
        cautions = cautions_of_scale(rows, scale)
        if choices.bias is None and not rows.is_vector:
            cautions += caution_of_bias(rows, scale)
    return Fitted(
        learned.map,
        bias,
        distribution,
        parts,
        shape_kept,
        unseen,
        correlation,
        bias_words,
        cautions,
    )


def _told_by_few(rows: Predictions, learned: Learned, choices: Choices) -> Learned:
    """Return one factor where few rows gain from it; and no scale that explodes."""
    if not choices.hold_out and rows.n_effective < ROWS_OF_ONE_FACTOR:
        told = scale_out_of_fold(rows, choices.scaling, learned, choices.random_state)
        if not beats_one_factor(rows, told):
            learned = one_factor(rows)
    if learned.out_of_fold is None:
        return learned
    largest = max(float(np.sqrt(rows.squared_error.max())), float(rows.y_std.max()))
    most = MOST_OF_LARGEST * largest
    bounded = replace(learned.map, most=most)
    return Learned(bounded, np.minimum(learned.out_of_fold, most))


def _distribution(
    rows: Predictions,
    witnesses: Predictions,
    told: OutOfFold,
    learned: Learned,
    choices: Choices,
) -> tuple[ZDistribution, Parts | None]:
    """Return the distribution of z, and how far it is stretched in each part.

    Witnesses are rows held out, if there are any, and else rows out of fold.
    """
    if choices.hold_out and not choices.parts:
        # intervals are then those of split conformal prediction
        z = witnesses.signed_error / told.scale
        return tables_of(witnesses, z, told.scale, 1, infinite=True), None

    out_of_fold = told
    if choices.hold_out:
        out_of_fold = scale_out_of_fold(
            rows, choices.scaling, learned, choices.random_state
        )
    distribution = of_rows_out_of_fold(rows, out_of_fold, as_it_is=choices.hold_out > 0)
    if not choices.parts:
        return distribution, None

    axes = axes_of_parts(rows, choices.parts, witnesses.n_effective)
    parts = Parts.learn(
        axes, witnesses, told.scale, distribution, held_out=choices.hold_out > 0
    )
    warn_of_small_parts(parts, rows.names)
    return distribution, parts
