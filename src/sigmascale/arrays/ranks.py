"""Limits at ranks, and the bins of rows on a device; as `bins` has them for NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np

from .._support.checks import Floats, Ints
from ..bins.partitions import (
    EqualSizeBins,
    LabelBins,
    cut_positions,
    feasible_bins,
    warn_of_ties,
)
from .evaluation import finder
from .libraries import Array, Library
from .sums import chunks

_BITS = 16  # rows are counted in at most 2^bits cells
_SORTED = 2**16  # rows for which counting does not pay
_MAGNITUDE = 2**63 - 1


@dataclass(frozen=True)
class Grid:
    """Cells that keep the order of numbers, and how many rows each has.

    Attributes
    ----------
    shift : int
        How many of their last bits numbers lose.
    first : int
        What is left of the smallest number.
    counts : array of int
        The rows of each cell.
    """

    shift: int
    first: int
    counts: Ints

    @classmethod
    def over(cls, library: Library, x: Array) -> Grid | None:
        """Count the rows of each cell; None where sorting is as good."""
        if x.shape[0] <= _SORTED or library.ordered_bits(_part(library, x)) is None:
            return None
        low, high = (_ordered(v) for v in library.numbers(*library.extremes(x)))
        shift = next(s for s in range(64) if (high >> s) - (low >> s) < 2**_BITS)
        n_cells = (high >> shift) - (low >> shift) + 1
        grid = cls(shift, low >> shift, np.zeros(n_cells, dtype=np.int64))
        for rows in chunks(x.shape[0]):
            grid.counts[:] += library.counts(grid.cells(library, x[rows]), n_cells)
        return grid

    def cells(self, library: Library, x: Array) -> Array:
        """Return the cell of each number."""
        return (library.ordered_bits(library.floats(x)) >> self.shift) - self.first


def _part(library: Library, x: Array) -> Array:
    return library.floats(x[:1])


def _ordered(x: float) -> int:
    bits = int(np.float64(x).view(np.int64))
    return bits ^ ((bits >> 63) & _MAGNITUDE)


def order_statistics(
    library: Library, x: Array, ranks: Ints, grid: Grid | None = None
) -> Floats:
    """Return the numbers that would have these ranks if all were sorted.

    Rows are counted by cell, and only those in the cells of a rank are sorted.
    """
    xp = library.xp
    grid = grid or Grid.over(library, x)
    if grid is None:
        near, places = library.floats(x), ranks
    else:
        cell = np.searchsorted(np.cumsum(grid.counts), ranks, side="right")
        wanted = np.zeros(grid.counts.size, dtype=np.bool_)
        wanted[cell] = True
        places = ranks - np.cumsum(np.where(wanted, 0, grid.counts))[cell]
        table = library.here(wanted)
        near = xp.concat(
            [
                library.floats(
                    x[rows][xp.take(table, grid.cells(library, x[rows]), axis=0)]
                )
                for rows in chunks(x.shape[0])
            ]
        )
    found = xp.take(xp.sort(near), library.here(places.ravel()), axis=0)
    return library.to_host(found).reshape(ranks.shape)


def codes_of(
    library: Library,
    partition: EqualSizeBins | LabelBins,
    x: Array,
    ties: Array | None = None,
) -> Array:
    """Return the code of each row: 1 + its bin, and 0 if x is missing or unknown."""
    xp = library.xp
    constants, find = finder(partition)
    here = [library.here(each) for each in constants]
    parts = []
    for rows in chunks(x.shape[0]):
        given = [library.floats(each[rows]) for each in (x, ties) if each is not None]
        parts.append(xp.astype(find(xp, here, *given), xp.int32))
    return parts[0] if len(parts) == 1 else xp.concat(parts)


@dataclass(frozen=True)
class Cut:
    """Rows that are cut at some ranks of x.

    Attributes
    ----------
    limits : array
        The x of each cut.
    codes : array on the device
        How many of the limits each row reaches.
    counts : array of int
        The rows of each code.
    """

    library: Library
    x: Array
    cuts: Ints
    limits: Floats
    codes: Array
    counts: Ints

    @classmethod
    def at(cls, library: Library, x: Array, cuts: Ints) -> Cut:
        """Cut rows at some ranks."""
        limits = order_statistics(library, x, cuts)
        codes = codes_of(library, EqualSizeBins(limits), x) - 1
        return cls(
            library, x, cuts, limits, codes, library.counts(codes, cuts.size + 1)
        )

    @property
    def parts_equal_rows(self) -> bool:
        """Whether some cut parts rows of equal x, so that more must tell them apart."""
        return not np.array_equal(np.cumsum(self.counts)[:-1], self.cuts)

    def at_limits(self) -> Array:
        """Return whether the x of each row is a limit."""
        library, xp = self.library, self.library.xp
        lower = library.here(np.append(np.nan, self.limits))
        parts = [
            library.floats(self.x[rows]) == xp.take(lower, _long(library, code), axis=0)
            for rows, code in (
                (rows, self.codes[rows]) for rows in chunks(self.x.shape[0])
            )
        ]
        return parts[0] if len(parts) == 1 else xp.concat(parts)

    def first_ranks(self) -> Ints:
        """Return the rank of the first row at a limit, by code."""
        return np.append(0, np.cumsum(self.counts)[:-1])

    def tie_limits(self, ties: Array) -> Floats:
        """Return the `ties` of each cut, if rows of equal x are ordered by these."""
        library, xp = self.library, self.library.xp
        tied = self.at_limits()
        code, tie = self.codes[tied], library.floats(ties[tied])
        order = lexsort(library, [tie, code])
        sizes = library.counts(code, self.counts.size)
        of_cut = np.searchsorted(self.limits, self.limits, side="right")
        places = (np.cumsum(sizes) - sizes)[of_cut]
        places += self.cuts - self.first_ranks()[of_cut]
        found = xp.take(xp.take(tie, order, axis=0), library.here(places), axis=0)
        return library.to_host(found)

    def told_apart(self, keys: list[Array], last: list[Array]) -> Array:
        """Return codes of which every cut has its rank, whatever the ties.

        Rows of equal x are ordered by `keys`. Those still equal are shuffled by a hash
        of their ranks by `last`, as `bins.partitions.rank_codes` does.
        """
        library, xp = self.library, self.library.xp
        tied = self.at_limits()
        code = self.codes[tied]
        keys = [*(library.floats(each[tied]) for each in keys)]
        last = [library.floats(each[tied]) for each in last]
        order = lexsort(library, [*last, *keys, code])
        code = xp.take(code, order, axis=0)
        keys = [xp.take(each, order, axis=0) for each in keys]
        sizes = library.counts(code, self.counts.size)
        shift = library.here(self.first_ranks() - (np.cumsum(sizes) - sizes))
        ranks = xp.arange(code.shape[0], dtype=xp.int64, device=library.device)
        ranks = ranks + xp.take(shift, _long(library, code), axis=0)
        changes = [each[1:] != each[:-1] for each in (code, *keys)]
        new_run = xp.astype(reduce(or_, changes), xp.int64)
        run = xp.concat([0 * ranks[:1], xp.cumulative_sum(new_run)])
        order = xp.take(order, lexsort(library, [_hash(ranks), run]), axis=0)
        # which cut each rank has reached, for the rows in their own order
        reached = xp.searchsorted(library.here(self.cuts), ranks, side="right")
        reached = xp.take(reached, xp.argsort(order), axis=0)
        place = xp.cumulative_sum(xp.astype(tied, xp.int64)) - 1
        place = xp.where(tied, place, 0 * place)
        found = xp.astype(xp.take(reached, place, axis=0), self.codes.dtype)
        return xp.where(tied, found, self.codes)


def _long(library: Library, codes: Array) -> Array:
    return library.xp.astype(codes, library.xp.int64)


def lexsort(library: Library, keys: list[Array]) -> Array:
    """Return the order of rows by the last key, and by those before where it ties."""
    xp = library.xp
    order = xp.argsort(keys[0], stable=True)
    for key in keys[1:]:
        by_key = xp.argsort(xp.take(key, order, axis=0), stable=True)
        order = xp.take(order, by_key, axis=0)
    return order


def _hash(positions: Array) -> Array:
    """Return the numbers of `bins.partitions`, splitmix64, in signed integers."""

    def signed(value: int) -> int:
        return value - 2**64 if value >= 2**63 else value

    key = positions * signed(0x9E3779B97F4A7C15)
    key = (key ^ ((key >> 30) & (2**34 - 1))) * signed(0xBF58476D1CE4E5B9)
    key = (key ^ ((key >> 27) & (2**37 - 1))) * signed(0x94D049BB133111EB)
    key = key ^ ((key >> 31) & (2**33 - 1))
    return key ^ signed(2**63)  # so that they are in the order of unsigned ones


def rank_codes(
    library: Library,
    x: Array,
    n_bins: int,
    *,
    ties: Array | None,
    error: Array,
    uncertainty: Array,
) -> Array:
    """Return the bin of each row: equal-size bins by the ranks of the rows."""
    cut = Cut.at(library, x, cut_positions(x.shape[0], n_bins)[1:])
    if not cut.parts_equal_rows:
        return cut.codes
    last = [uncertainty, library.xp.abs(error)]
    return cut.told_apart([] if ties is None else [ties], last)


def learn_bins(
    library: Library, x: Array, n_bins: int, *, ties: Array | None = None
) -> EqualSizeBins:
    """Learn limits as `EqualSizeBins.learn` does."""
    n_bins = feasible_bins(x.shape[0], n_bins)
    cut = Cut.at(library, x, cut_positions(x.shape[0], n_bins))
    pairs = [cut.limits] if ties is None else [cut.limits, cut.tie_limits(ties)]
    distinct = np.unique(np.column_stack(pairs), axis=0)[1:]  # the first bin is open
    warn_of_ties(n_bins, distinct.shape[0] + 1)
    return EqualSizeBins(*(np.ascontiguousarray(each) for each in distinct.T))


def learn_quantiles(library: Library, x: Array, max_bins: int) -> EqualSizeBins:
    """Learn limits as `EqualSizeBins.quantiles` does; none may be missing."""
    n_rows = x.shape[0]
    grid = Grid.over(library, x)
    if grid is None or np.count_nonzero(grid.counts) <= max_bins:
        values = library.xp.unique_values(library.floats(x))
        if values.shape[0] <= max_bins:  # a bin for each
            return EqualSizeBins(np.sort(library.to_host(values))[1:])
    ranks = np.ceil(np.arange(1, max_bins) * n_rows / max_bins).astype(np.int64) - 1
    low, *limits = order_statistics(library, x, np.append(0, ranks), grid)
    found = np.unique(limits)
    return EqualSizeBins(found[found > low])
