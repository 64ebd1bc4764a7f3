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
) -> dict[str, float]:
    """Return the fraction of bins that would be valid if z2 were the same everywhere.

    It depends on the sizes of the bins alone, so variables with the same sizes share
    one simulation. Where rows come in groups, numbered by `groups`, a group counts as
    one row, of their mean.
    """
    if groups is not None:
        z2 = np.bincount(groups, z2) / np.bincount(groups)
    mean = float(z2.mean())
    pool = z2 / mean if mean > 0 else np.ones(1)
    by_sizes: dict[tuple[int, ...], float] = {}
    fractions = {}
    for name, result in local.items():
        n = result.n if result.n_groups is None else result.n_groups
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
