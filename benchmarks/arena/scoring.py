"""What the quantiles of a rival are worth on rows that it has not seen."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GroupKFold

from .parts import LEVELS, Part, shuffled

COVERAGE = 0.9
SLAB, DIRECTIONS = 0.2, 100  # share of the rows in a slab, and directions tried
LOSSES = ("crps", "nll", "interval_score", "slab_gap", "ert")  # less is better
SCORES = (*LOSSES, "coverage", "width")


def score(test: Part, quantiles: np.ndarray, density: np.ndarray | None) -> dict:
    """Return the scores of quantiles at LEVELS, and of log densities at the errors.

    A rival that makes intervals only has NaN in all columns but those of the limits.
    """
    inner = np.isfinite(quantiles).all(axis=0)
    low, high = quantiles[:, LEVELS == 0.05][:, 0], quantiles[:, LEVELS == 0.95][:, 0]
    if not (np.isfinite(low) & np.isfinite(high)).all():
        msg = "limits of 90 % intervals are not finite"
        raise ValueError(msg)
    e, miss = test.error, 2 / (1 - COVERAGE)
    held = (low <= e) & (e <= high)
    below, above = np.maximum(low - e, 0), np.maximum(e - high, 0)
    return {
        "crps": _crps(e, np.sort(quantiles, axis=1)) if inner.all() else np.nan,
        "nll": np.nan if density is None else float(-np.mean(density)),
        "interval_score": float(np.mean(high - low + miss * (below + above))),
        "slab_gap": COVERAGE - worst_slab(test, held),
        "ert": excess_risk(test, held),
        "coverage": float(held.mean()),
        "width": float((high - low).mean()),
    }


def _crps(error: np.ndarray, quantiles: np.ndarray) -> float:
    """Return the mean CRPS: twice the integral of the pinball loss over levels."""
    off = error[:, None] - quantiles
    losses = np.where(off > 0, LEVELS * off, (LEVELS - 1) * off)
    return float(2 * np.sum(losses) / len(error) * (LEVELS[1] - LEVELS[0]))


def worst_slab(test: Part, held: np.ndarray, seed: int = 0) -> float:
    """Return the coverage of the worst slab, on rows that have not chosen it.

    Rows whose projections on a direction lie between two limits are a slab (Cauchois
    et al. 2021). The direction and limits of the lowest coverage are found on one half
    of the rows and judged on the other, and the other way round.
    """
    rng = np.random.default_rng(seed)
    ranks = np.argsort(np.argsort(test.X, axis=0), axis=0) / len(test)
    directions = rng.normal(size=(ranks.shape[1], DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    along = ranks @ np.hstack([np.eye(len(directions)), directions])  # columns, too
    number = shuffled(test, rng)
    one = number <= number.max() // 2
    return float(np.mean([_slab(along, held, half) for half in (one, ~one)]))


def _slab(along: np.ndarray, held: np.ndarray, half: np.ndarray) -> float:
    order = np.argsort(along[half], axis=0)
    sums = np.pad(np.cumsum(held[half][order], axis=0), ((1, 0), (0, 0)))
    n, best = len(order), (np.inf, 0, 0, 0)
    for size in (int(SLAB * n), int(2 * SLAB * n)):
        starts = np.arange(0, n - size + 1, max(1, n // 50))
        mean = (sums[starts + size] - sums[starts]) / size
        at, k = np.unravel_index(np.argmin(mean), mean.shape)
        best = min(best, (mean[at, k], k, starts[at], starts[at] + size - 1))
    _, k, first, last = best
    low, high = along[half][order[[first, last], k], k]
    inside = (low <= along[~half, k]) & (along[~half, k] <= high)
    return held[~half][inside].mean() if inside.sum() >= 10 else COVERAGE


def excess_risk(test: Part, held: np.ndarray) -> float:
    """Return the excess risk of the target coverage (ERT), by |coverage - 90 %|.

    A classifier learns from some rows where intervals hold, and is judged on others:
    how much of the distance to 90 % it finds (Braun et al. 2025, arXiv:2512.11779).
    Of intervals whose coverage is 90 % everywhere the best classifier finds none, and
    a trained one less than none.
    """
    groups = np.arange(len(test)) if test.groups is None else test.groups
    gain = np.empty(len(test))
    for within, out in GroupKFold(3, shuffle=True, random_state=0).split(
        test.X, held, groups
    ):
        p = np.full(out.size, float(held[within].mean()))
        if 0 < held[within].mean() < 1:
            auditor = HistGradientBoostingClassifier(
                max_iter=25, max_depth=3, learning_rate=0.2, random_state=0
            ).fit(test.X[within], held[within])
            p = auditor.predict_proba(test.X[out])[:, 1]
        # of the L1 loss: the side on which the classifier puts a row decides
        gain[out] = np.sign(p - COVERAGE) * (held[out] - COVERAGE)
    return float(gain.mean())
