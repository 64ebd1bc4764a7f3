"""The fraction of valid bins that a perfectly calibrated set attains."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._support.checks import Floats, Ints
from .confidence_intervals import mean_interval
from .local import BinSettings, LocalZMS

SIMULATED_ROWS = 1_000_000  # behind the attainable fraction of valid bins
SIMULATED_BINS = 1000
LARGE_BIN = 1000  # rows from which the closed form replaces the bootstrap


def attainable_fractions(
    z2: Floats,
    local: dict[str, LocalZMS],
    settings: BinSettings,
    rng: np.random.Generator,
    groups: Ints | None = None,
    weights: Floats | None = None,
) -> dict[str, float]:
    """Return the fraction of bins that would be valid if z2 were the same everywhere.

    It depends on the sizes of the bins alone, so variables with the same sizes share
    one simulation. Where rows come in groups, numbered by `groups`, a group counts as
    one row, of their mean. Weighted rows count with their effective number.
    """
    if groups is not None:
        weighted = z2 if weights is None else weights * z2
        z2 = np.bincount(groups, weighted) / np.bincount(groups, weights)
    mean = float(z2.mean())
    pool = z2 / mean if mean > 0 else np.ones(1)
    by_sizes: dict[tuple[int, ...], float] = {}
    fractions = {}
    for name, result in local.items():
        n = result.n if result.n_groups is None else result.n_groups
        if result.n_effective is not None:
            n = np.maximum(2, np.round(result.n_effective)).astype(np.int64)
        sizes = tuple(sorted(n.tolist()))
        if sizes not in by_sizes:
            by_sizes[sizes] = _valid_fraction(pool, n, settings, rng)
        fractions[name] = by_sizes[sizes]
    return fractions


def _valid_fraction(
    pool: Floats, sizes: Any, settings: BinSettings, rng: np.random.Generator
) -> float:
    wanted = min(
        SIMULATED_BINS, max(sizes.size, SIMULATED_ROWS * sizes.size // sum(sizes))
    )
    repeated = np.resize(sizes, max(1, wanted))
    drawn = pool[rng.integers(pool.size, size=int(repeated.sum()))]
    low, high = mean_interval(
        "moments" if sizes.max() > LARGE_BIN else settings.method,
        drawn,
        repeated,
        confidence=settings.confidence,
        n_resamples=settings.n_resamples,
        rng=rng,
    )
    return float(np.mean((low <= 1) & (high >= 1)))
