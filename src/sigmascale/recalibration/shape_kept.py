"""How much of the shapes of rows to keep: shapes that models give are often noise."""

from __future__ import annotations

import numpy as np

from .._support.weighting import weights_of
from ..predictions.predictions import Predictions
from .distributions import Distributions, QuantileTable, ZDistribution
from .folds import fold_numbers, make_folds

SHARES = (0.0, 0.5, 1.0)  # that are tried
ROWS_TO_CHOOSE_BY = 20_000  # about


def share_of_shape(rows: Predictions, seed: int) -> float:
    """Return the share of their shapes that makes the CRPS of rows out of fold least.

    One table of z for all rows tells them apart as well as whole fits do.

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
    folds = fold_numbers(fold)
    if len(folds) < 2:
        return SHARES[-1]
    losses = {}
    for share in SHARES:
        of_share = rows._with_shape_kept(share)
        crps = np.empty(rows.n_rows)
        for k in folds:
            seen = np.flatnonzero(fold != k)
            unseen = of_share.take(fold == k)
            weights = weights_of(rows.weights, seen)
            table = QuantileTable.learn(of_share.z[seen], weights, seen.size)
            z = ZDistribution((table,), np.empty(0), (seen.size,))
            normal = Distributions.normal(unseen)
            q = Distributions.of(normal.location, normal.scale, z, shape=unseen.shape)
            crps[fold == k] = q.crps_of_levels(unseen.target)
        losses[share] = rows.mean(crps)
    return min(losses, key=lambda share: losses[share])
