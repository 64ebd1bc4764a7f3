"""Partitions: which bin each row belongs to.

:class:`EqualSizeBins`, :class:`Cells` and :class:`Groups` learn limits on one set
and assign codes on any other. :func:`rank_bins` cuts one set by the ranks of its own
rows, which is what scores need: every bin has its share of rows, whatever the ties.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ._checks import Floats, Ints, Labels
from .exceptions import FewerBinsWarning


def cut_positions(n_rows: int, n_bins: int) -> Ints:
    """Return the first sorted row of each of `n_bins` bins of nearly equal size.

    >>> cut_positions(10, 4)
    array([0, 3, 5, 8])
    """
    # floor(k n / N + 1/2) in exact integer arithmetic
    return (2 * np.arange(n_bins) * n_rows + n_bins) // (2 * n_bins)


def sum_by_code(codes: Ints, values: Floats, n_codes: int) -> Floats:
    """Return the sum of the values of each code."""
    sums: Any = np.bincount(codes, weights=values, minlength=n_codes)
    return np.asarray(sums, dtype=np.float64)


def feasible_bins(n_rows: int, n_bins: int, min_size: int = 1) -> int:
    """Return how many bins of at least `min_size` rows there can be, up to `n_bins`."""
    feasible = max(1, min(n_bins, n_rows // min_size))
    if feasible < n_bins:
        warnings.warn(
            f"{n_bins} bins were asked for, but {n_rows} rows give at most {feasible} "
            f"of {min_size} or more rows; {feasible} are used.",
            FewerBinsWarning,
            stacklevel=2,
        )
    return feasible


@dataclass(frozen=True)
class BinnedRows:
    """Rows in the order of their bins, and the number of rows in each bin."""

    order: npt.NDArray[np.intp]
    sizes: Ints

    @classmethod
    def from_codes(cls, codes: Ints, n_bins: int) -> BinnedRows:
        """Gather rows by their bin codes."""
        return cls(
            np.argsort(codes, kind="stable"), np.bincount(codes, minlength=n_bins)
        )

    @property
    def codes(self) -> Ints:
        """The bin of each row, in the rows' own order."""
        codes = np.empty(self.order.size, dtype=np.int64)
        codes[self.order] = np.repeat(np.arange(self.sizes.size), self.sizes)
        return codes

    def reduce(
        self, how: np.ufunc, sorted_values: Floats, empty: float = 0.0
    ) -> Floats:
        """Reduce values, already in bin order, to one number a bin."""
        filled = self.sizes > 0
        starts = (np.cumsum(self.sizes) - self.sizes)[filled]
        result = np.full(self.sizes.size, empty)
        result[filled] = how.reduceat(sorted_values, starts)
        return result


def rank_bins(
    x: Labels,
    n_bins: int,
    *,
    ties: Floats | None = None,
    error: Floats | None = None,
    min_size: int = 1,
) -> BinnedRows:
    """Cut rows into equal-size bins of x by rank; labels make one bin each.

    Rows with equal x are ordered by `ties`. Those still equal are shuffled by a fixed
    pseudo-random permutation of their errors' ranks: the result depends neither on
    the order of the rows nor on the unit, and is not biased as sorting by the error
    would be.
    """
    if x.dtype.kind != "f":
        _, codes = np.unique(x, return_inverse=True)
        size = None if error is None else np.abs(error)
        keys = [key for key in (size, ties) if key is not None]
        return BinnedRows(np.lexsort((*keys, codes)), np.bincount(codes))
    n_bins = feasible_bins(x.size, n_bins, min_size)
    if ties is None:
        order = np.argsort(x, kind="stable")
        tied = x[order[1:]] == x[order[:-1]]
    else:
        order = np.lexsort((ties, x))
        tied = (x[order[1:]] == x[order[:-1]]) & (ties[order[1:]] == ties[order[:-1]])
    if error is not None and tied.any():
        order = _shuffle_tied(order, tied, np.abs(error))
    return BinnedRows(order, np.diff(cut_positions(x.size, n_bins), append=x.size))


def _shuffle_tied(
    order: npt.NDArray[np.intp], tied: npt.NDArray[np.bool_], size: Floats
) -> npt.NDArray[np.intp]:
    run = np.concatenate([[0], np.cumsum(~tied)])
    order = order[np.lexsort((size[order], run))]
    # splitmix64 of the position: a hash that needs no generator and never changes
    with np.errstate(over="ignore"):
        key = np.arange(order.size, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return order[np.lexsort((key ^ (key >> np.uint64(31)), run))]


def _pairs(x: Floats, ties: Floats) -> npt.NDArray[np.complex128]:
    """Return pairs as complex numbers, which NumPy compares lexicographically."""
    pairs = np.empty(x.size, dtype=np.complex128)
    pairs.real, pairs.imag = x, ties
    return pairs


@dataclass(frozen=True)
class EqualSizeBins:
    """Bins of one variable with equal numbers of rows in the set they were learned on.

    Attributes
    ----------
    limits : array of shape (n_bins - 1,)
        The smallest value of bins 2, 3, ...; the first and last bins are open.
    tie_limits : array of shape (n_bins - 1,) or None
        With ties resolved by a second variable, a limit is the pair
        ``(limits[i], tie_limits[i])`` and pairs are compared lexicographically.
    """

    limits: Floats
    tie_limits: Floats | None = None

    @classmethod
    def learn(
        cls, x: Floats, n_bins: int, *, ties: Floats | None = None, min_size: int = 1
    ) -> EqualSizeBins:
        """Learn limits from the rows of one set.

        Limits that ties make equal are merged, with a warning, so that the rows of a
        bin at learning are those that the limits assign to it later.
        """
        n_bins = feasible_bins(x.size, n_bins, min_size)
        keys: npt.NDArray[Any] = np.sort(x if ties is None else _pairs(x, ties))
        limits = keys[cut_positions(x.size, n_bins)[1:]]
        limits = np.unique(limits[limits > keys[0]])
        if limits.size + 1 < n_bins:
            warnings.warn(
                f"{n_bins} bins were asked for, but equal values of the binning "
                f"variable leave {limits.size + 1} distinct bins; these are used.",
                FewerBinsWarning,
                stacklevel=2,
            )
        if ties is None:
            return cls(limits)
        return cls(limits.real.copy(), limits.imag.copy())

    @property
    def n_bins(self) -> int:
        """The number of bins."""
        return self.limits.size + 1

    def codes(self, x: Floats, ties: Floats | None = None) -> Ints:
        """Return the bin of each row: i where limit[i-1] <= x < limit[i]."""
        if self.tie_limits is None or ties is None:
            return np.searchsorted(self.limits, x, side="right")
        limits = _pairs(self.limits, self.tie_limits)
        return np.searchsorted(limits, _pairs(x, ties), side="right")


@dataclass(frozen=True)
class Cells:
    """The cells that the bins of two variables make together, row-major."""

    first: EqualSizeBins
    second: EqualSizeBins

    @classmethod
    def learn(cls, x: Floats, y: Floats, n_bins: tuple[int, int]) -> Cells:
        """Learn the limits of each variable by itself."""
        return cls(EqualSizeBins.learn(x, n_bins[0]), EqualSizeBins.learn(y, n_bins[1]))

    @property
    def n_bins(self) -> int:
        """The number of cells, empty ones included."""
        return self.first.n_bins * self.second.n_bins

    def codes(self, x: Floats, y: Floats) -> Ints:
        """Return the cell of each row."""
        return self.first.codes(x) * self.second.n_bins + self.second.codes(y)


@dataclass(frozen=True)
class Groups:
    """Named groups; labels that were not learned share a last, fallback code."""

    labels: Labels

    @classmethod
    def learn(cls, labels: Labels, *, min_size: int = 1) -> Groups:
        """Learn the labels that have at least `min_size` rows."""
        distinct, counts = np.unique(labels, return_counts=True)
        return cls(distinct[counts >= min_size])

    @property
    def n_bins(self) -> int:
        """The number of groups and, last, the fallback."""
        return self.labels.size + 1

    def codes(self, labels: npt.NDArray[Any]) -> Ints:
        """Return the group of each row, or ``n_bins - 1`` where it is unknown."""
        if (self.labels.dtype.kind == "U") != (labels.dtype.kind == "U"):
            return np.full(labels.size, self.labels.size)  # strings are not numbers
        # known where the search from the left and from the right differ, which, unlike
        # equality, also finds NaN
        found = np.searchsorted(self.labels, labels)
        known = found < np.searchsorted(self.labels, labels, side="right")
        return np.where(known, found, self.labels.size)
