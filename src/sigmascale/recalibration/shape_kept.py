"""How much of the shapes of rows to keep: shapes that models give are often noise."""

from __future__ import annotations

import numpy as np

from .._support.checks import Floats, Ints
from .._support.notices import quiet
from .._support.weighting import weights_of
from ..predictions.predictions import Predictions
from .distributions import Distributions, QuantileTable, ZDistribution
from .folds import by_fold, make_folds, simplest

SHARES = (0.5, 1.0, 0.0)  # that are tried
COVERAGE = 0.9  # of the intervals that are scored
ROWS_TO_CHOOSE_BY = 20_000  # about


def share_of_shape(rows: Predictions, seed: int) -> float:
    """Return the share of their shapes by which rows out of fold score best.

    It is a half, unless another is better by more than a standard error. One table of z
    for all rows tells shares apart as well as whole fits do; CRPS, with the interval
    score at half its weight, tells them apart better than CRPS alone.

    Parameters
    ----------
    rows : Predictions
        With shapes, in canonical order.
    seed : int
        Seed of the folds.
    """
    # every so-many-th of very many rows, which are in the order of their errors
    rows = rows.take(slice(None, None, max(1, rows.n_rows // ROWS_TO_CHOOSE_BY)))
    fold = make_folds(rows.abs_z, rows, seed)
    scores = {share: _scores_out_of_fold(rows, share, fold) for share in SHARES}
    crps, interval_score = (rows.mean(score) or 1.0 for score in scores[SHARES[0]])
    losses = {}
    for share, (crps_of_row, interval_score_of_row) in scores.items():
        losses[share] = crps_of_row / crps + interval_score_of_row / interval_score / 2
    return simplest(losses, rows)


def _scores_out_of_fold(
    rows: Predictions, share: float, fold: Ints
) -> tuple[Floats, Floats]:
    """Return CRPS and interval score of each row, by the z-scores of other folds."""
    of_share = rows._with_shape_kept(share)
    crps = np.empty(rows.n_rows)
    interval_score = np.empty(rows.n_rows)
    for others, of_fold in by_fold(fold):
        seen = others if others.size else of_fold
        weights = weights_of(rows.weights, seen)
        table = QuantileTable.learn(of_share.z[seen], weights, seen.size)
        z = ZDistribution((table,), np.empty(0), (seen.size,))
        unseen = of_share.take(of_fold)
        raw = Distributions.normal(unseen)
        q = Distributions.of(raw.location, raw.scale, z, shape=raw.shape)
        crps[of_fold] = q.crps_of_levels(unseen.target)
        with quiet():  # of levels beyond few rows
            low, high = q.interval(COVERAGE).T
        missed = np.maximum(low - unseen.target, 0)
        missed += np.maximum(unseen.target - high, 0)
        interval_score[of_fold] = high - low + 2 / (1 - COVERAGE) * missed
    return crps, interval_score
