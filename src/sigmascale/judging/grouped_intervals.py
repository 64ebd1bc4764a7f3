"""Confidence intervals of the mean of each bin when rows come in groups.

Rows that belong together resemble each other, so that a bin knows less than it has
rows. All it knows are its groups: the sum S and the number n of its rows in each. The
mean is m = ΣS / Σn, and d = S − m n is what a group contributes to its error. Methods
are those of `confidence_intervals`, with d in the place of a row's deviation and whole
groups in the place of resampled rows.

With few groups, the sum of d² is too small on average and varies much; normal quantiles
are then replaced by sqrt(G / (G − 1)) times Student's for G − 1 degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from .._support.checks import Floats, Ints
from .confidence_intervals import (
    IntervalMethod,
    abc_limits,
    bca_limits,
    bins_by_size,
    bootstrap_weights,
    order_statistics,
)


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums by bin and group, bin after bin.

    Attributes
    ----------
    totals, counts : array of shape (n_sums,)
        The sum of the values, and the number (or weight) of rows, of a group in a bin.
    sizes : array of int, shape (n_bins,)
        Groups in each bin.
    """

    totals: Floats
    counts: Floats
    sizes: Ints

    @classmethod
    def of_rows(
        cls, values: Floats, sizes: Ints, groups: Ints, weights: Floats | None = None
    ) -> GroupSums:
        """Sum consecutive bins of values by the numbers of their groups."""
        bins = np.repeat(np.arange(sizes.size), sizes)
        order = np.lexsort((groups, bins))
        bins, groups = bins[order], groups[order]
        new = np.append(True, (np.diff(bins) != 0) | (np.diff(groups) != 0))
        starts = np.flatnonzero(new)
        n_groups = np.bincount(bins[starts], minlength=sizes.size)
        if weights is not None:
            totals, counts = (
                np.add.reduceat(each[order], starts)
                for each in (weights * values, weights)
            )
            return cls(totals, counts, n_groups)
        return cls(
            np.add.reduceat(values[order], starts),
            np.diff(starts, append=values.size).astype(np.float64),
            n_groups,
        )

    @property
    def starts(self) -> Ints:
        """Where the groups of each bin begin."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def n(self) -> Floats:
        """Rows in each bin."""
        return np.add.reduceat(self.counts, self.starts)

    @property
    def mean(self) -> Floats:
        """The mean of each bin."""
        return np.add.reduceat(self.totals, self.starts) / self.n

    @property
    def squared_counts(self) -> Floats:
        """The sum of the squared numbers, or weights, of a bin's groups."""
        return np.add.reduceat(self.counts**2, self.starts)

    @property
    def n_effective(self) -> Floats:
        """How many groups of equal weight would tell as much, in each bin."""
        number: Floats = self.n**2 / self.squared_counts
        return number

    @property
    def contributions(self) -> Floats:
        """What each group contributes to the error of its bin's mean, times n."""
        return self.totals - np.repeat(self.mean, self.sizes) * self.counts

    def blocks(self) -> Iterator[tuple[Ints, Floats, Floats]]:
        """Yield bins with equally many groups: which, and their sums one bin a row."""
        counts = bins_by_size(self.counts, self.sizes)
        for (which, rows), (_, n) in zip(
            bins_by_size(self.totals, self.sizes), counts, strict=True
        ):
            yield which, rows, n


def grouped_mean_interval(
    method: IntervalMethod,
    sums: GroupSums,
    *,
    confidence: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return limits of the means of bins, none empty, of values >= 0 in groups.

    References
    ----------
    K.-Y. Liang and S. L. Zeger, Biometrika 73, 13 (1986), doi:10.1093/biomet/73.1.13;
    C. A. Field and A. H. Welsh, J. R. Stat. Soc. B 69, 369 (2007),
    doi:10.1111/j.1467-9868.2007.00593.x
    """
    if method in ("moments", "student"):
        d = sums.contributions
        squares = d * d
        second = np.add.reduceat(squares, sums.starts)
        quantile = few_groups_quantile(sums.sizes, confidence)
        if method == "student":
            half = quantile * np.sqrt(second) / sums.n
            return np.maximum(0.0, sums.mean - half), sums.mean + half
        third = np.add.reduceat(squares * d, sums.starts)
        return abc_limits(sums.n, sums.mean, second, third, quantile)
    resampled = _bca if method == "bca" else _bootstrap_t
    low, high = np.empty(sums.sizes.size), np.empty(sums.sizes.size)
    for which, totals, counts in sums.blocks():
        low[which], high[which] = resampled(
            totals, counts, rng, confidence, n_resamples
        )
    return np.maximum(0.0, low), high


def few_groups_quantile(sizes: Ints, confidence: float) -> Floats:
    """Return what takes the place of the normal quantile for so many groups."""
    df = np.maximum(1, sizes - 1)
    quantile: Floats = stats.t.ppf(0.5 + confidence / 2, df) * np.sqrt((df + 1) / df)
    return quantile


def within_groups(deviations: Floats, groups: Ints) -> float:
    """Return the correlation of deviations, of mean 0, within groups; at least 0."""
    sizes = np.bincount(groups)
    pairs = float(np.sum(sizes * (sizes - 1.0)))
    squares = float(np.sum(deviations**2))
    if not pairs or not squares:
        return 0.0
    # a product for each ordered pair: (Σd)² has all of them, and each with itself
    products = float(np.sum(np.bincount(groups, deviations) ** 2)) - squares
    return min(1.0, max(0.0, products / pairs / (squares / groups.size)))


def design_effect(sums: GroupSums, correlation: float) -> Floats:
    """Return how many rows of each bin tell as much as one that is independent."""
    pairs = np.add.reduceat(sums.counts * (sums.counts - 1), sums.starts)
    return 1 + correlation * pairs / sums.n


def _bca(
    totals: Floats,
    counts: Floats,
    rng: np.random.Generator,
    confidence: float,
    n_resamples: int,
) -> tuple[Floats, Floats]:
    """Return BCa limits of bins with equally many groups, a bin a row."""
    n_groups = totals.shape[1]
    mean = totals.sum(axis=1) / counts.sum(axis=1)
    means = np.empty((totals.shape[0], n_resamples))
    for which, weights in bootstrap_weights(n_groups, rng, n_resamples):
        means[:, which] = (totals @ weights) / (counts @ weights)
    quantile = few_groups_quantile(np.array([n_groups]), confidence)
    return bca_limits(means, mean, totals - mean[:, None] * counts, float(quantile[0]))


def _bootstrap_t(
    totals: Floats,
    counts: Floats,
    rng: np.random.Generator,
    confidence: float,
    n_resamples: int,
) -> tuple[Floats, Floats]:
    """Return studentised limits of bins with equally many groups, a bin a row."""
    n = counts.sum(axis=1, keepdims=True)
    mean = totals.sum(axis=1, keepdims=True) / n
    d = totals - mean * counts
    own = np.sqrt((d * d).sum(axis=1, keepdims=True))
    # a resample of one group repeated has no spread: its t is as extreme as can be
    floor = 1e-3 * np.where(own > 0, own, 1)
    t = np.empty((totals.shape[0], n_resamples))
    for which, weights in bootstrap_weights(totals.shape[1], rng, n_resamples):
        rows, off = counts @ weights, d @ weights
        off /= rows  # the resampled mean minus the mean
        # Σ w (d − off n)², the squared error of the resampled mean times rows²
        square = (d * d) @ weights
        square -= 2 * off * ((d * counts) @ weights)
        square += off * off * ((counts * counts) @ weights)
        t[:, which] = off * rows / np.maximum(np.sqrt(np.maximum(0, square)), floor)
    levels = (0.5 - confidence / 2, 0.5 + confidence / 2)
    lower, upper = order_statistics(t, *(np.full(t.shape[0], p) for p in levels))
    return (mean - upper[:, None] * own / n)[:, 0], (mean - lower[:, None] * own / n)[
        :, 0
    ]
