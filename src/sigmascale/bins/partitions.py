"""Partitions: which bin each row belongs to, in arrays of any library.

:class:`EqualSizeBins`, :class:`Cells` and :class:`LabelBins` learn limits on one set
and assign codes on any other. :func:`rank_codes` cuts one set by the ranks of its own
rows, which is what scores need: every bin has its share of rows, whatever the ties.
:func:`rank_bins` does so as well, and sorts the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.bits import hashed
from .._support.checks import Floats, Ints, check_count
from .._support.labels import Categories, Label, are_ordered_labels
from .._support.notices import warn
from ..exceptions import FewerBinsWarning
from .libraries import Array, Library, library_of, reduce_runs
from .quantiles import (
    Grid,
    Limits,
    ends_of_runs,
    in_order,
    order_statistics,
    reached,
)

# Of the functions of a library, constants in it, and columns.
Kernel = Callable[..., Array]


def cut_positions(n_rows: int | float, n_bins: int) -> npt.NDArray[Any]:
    """Return the first sorted row of each of `n_bins` bins of nearly equal size.

    Of weighted rows, `n_rows` is the sum of the weights, and positions are sums, too.

    >>> cut_positions(10, 4)
    array([0, 3, 5, 8])
    """
    # floor(k n / N + 1/2) in exact integer arithmetic
    return (2 * np.arange(n_bins) * n_rows + n_bins) // (2 * n_bins)


def sum_by_code(codes: Ints, values: Floats, n_codes: int) -> Floats:
    """Return the sum of the values of each code."""
    sums: Any = np.bincount(codes, weights=values, minlength=n_codes)
    return np.asarray(sums, dtype=np.float64)


MOST_BINS, ROWS_OF_A_BIN = 100, 30  # if nobody asks for a number of bins


def most_bins(n_rows: int | float, n_bins: int, min_size: int) -> int:
    """Return :func:`feasible_bins`, without a warning if these are fewer."""
    return max(1, min(n_bins, int(n_rows // min_size)))


def bins_of(n_bins: Any, n_rows: int | float, name: str = "n_bins") -> int:
    """Return the number of bins that was asked for, or as many as suit the rows.

    If nobody asks for a number, there are as many bins of 30 rows or more as there can
    be, up to 100: for all scores, intervals and pictures, so that they can be compared.

    >>> bins_of(None, 400), bins_of(None, 10**6), bins_of(None, 12), bins_of(7, 400)
    (13, 100, 1, 7)
    """
    if n_bins is None:
        return most_bins(n_rows, MOST_BINS, ROWS_OF_A_BIN)
    return check_count(n_bins, name)


def feasible_bins(n_rows: int | float, n_bins: int, min_size: int = 1) -> int:
    """Return how many bins of at least `min_size` rows there can be, up to `n_bins`."""
    feasible = most_bins(n_rows, n_bins, min_size)
    if feasible < n_bins:
        whole = isinstance(n_rows, int)
        found = f"{n_rows} rows" if whole else f"weights of {n_rows:.4g} rows"
        warn(
            f"{n_bins} bins were asked for, but {found} give at most {feasible} "
            f"of {min_size} or more rows; {feasible} are used.",
            FewerBinsWarning,
            stacklevel=2,
        )
    return feasible


def warn_of_ties(n_bins: int, n_distinct: int) -> None:
    """Say that equal values leave fewer bins than were asked for."""
    warn(
        f"{n_bins} bins were asked for, but equal values of the binning variable "
        f"leave {n_distinct} distinct bins; these are used.",
        FewerBinsWarning,
        stacklevel=3,
    )


@dataclass(frozen=True)
class BinnedRows:
    """Rows in the order of their bins, and the number of rows in each bin."""

    order: npt.NDArray[np.intp]
    sizes: Ints

    @classmethod
    def from_codes(cls, codes: Ints, n_bins: int) -> BinnedRows:
        """Gather rows by their bin codes."""
        library = library_of(codes)
        return cls(library.order_of(codes, n_bins), library.counts(codes, n_bins))

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
        return reduce_runs(how, sorted_values, self.sizes, empty)


def rank_bins(
    x: npt.NDArray[Any],
    n_bins: int,
    *,
    ties: Floats | None = None,
    error: Floats | None = None,
    uncertainty: Floats | None = None,
    min_size: int = 1,
) -> BinnedRows:
    """Sort rows by x and cut them into equal-size bins; labels make one bin each.

    Rows with equal x are ordered by `ties`. Those still equal are shuffled by a fixed
    pseudo-random permutation of their errors' ranks: the result depends neither on
    the order of the rows nor on the unit, and is not biased as sorting by the error
    would be. Equal errors are ordered by the uncertainty, if it is given.
    """
    size = None if error is None else np.abs(error)
    last = [key for key in (uncertainty, size) if key is not None]
    if x.dtype.kind != "f":
        _, codes = np.unique(x, return_inverse=True)
        keys = last if ties is None else [*last, ties]
        return BinnedRows(np.lexsort((*keys, codes)), np.bincount(codes))
    n_bins = feasible_bins(x.size, n_bins, min_size)
    sizes = np.diff(cut_positions(x.size, n_bins), append=x.size)
    keys = [x] if ties is None else [x, ties]
    *keys, order = in_order(*keys, np.arange(x.size), n_keys=len(keys))
    tied = np.logical_and.reduce([key[1:] == key[:-1] for key in keys])
    if error is not None and tied.any():
        places = np.flatnonzero(np.append(tied, False) | np.append(False, tied))
        run = np.append(0, np.cumsum(~tied))[places]
        rows = order[places]
        rows = rows[np.lexsort((*(key[rows] for key in last), run))]
        order[places] = rows[np.lexsort((hashed(places), run))]
    return BinnedRows(order, sizes)


def rank_codes(
    x: Array,
    n_bins: int,
    *,
    ties: Array | None,
    error: Array,
    uncertainty: Array,
    min_size: int = 1,
) -> tuple[Array, int]:
    """Return the bin of each row, and how many: :func:`rank_bins` without sorting."""
    if isinstance(x, np.ndarray) and x.dtype.kind != "f":
        labels, codes = np.unique(x, return_inverse=True)
        return codes, labels.size
    n_rows = int(x.shape[0])
    n_bins = feasible_bins(n_rows, n_bins, min_size)
    cut = _Cut.at(x, cut_positions(n_rows, n_bins)[1:])
    if cut.parts_equal_rows and ties is not None:
        cut = cut.by_ties(ties)
    if not cut.parts_equal_rows:
        return cut.codes, n_bins
    last = [uncertainty, library_of(x).xp.abs(error)]
    return cut.told_apart([] if ties is None else [ties], last), n_bins


@dataclass(frozen=True)
class _Cut:
    """Rows that are cut at some ranks of x.

    Attributes
    ----------
    limits : array
        The x of each cut.
    codes : array of the library of x
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
    def at(cls, x: Array, cuts: Ints) -> _Cut:
        """Cut rows at some ranks."""
        library, limits = library_of(x), order_statistics(x, cuts)
        codes = EqualSizeBins(limits).codes(x)
        counts = library.counts(codes, cuts.size + 1)
        return cls(library, x, cuts, limits, codes, counts)

    @property
    def parts_equal_rows(self) -> bool:
        """Whether some cut parts rows of equal x, so that more must tell them apart."""
        return not np.array_equal(np.cumsum(self.counts)[:-1], self.cuts)

    def _lower(self) -> Array:
        """Return the limit below the rows of each code."""
        return self.library.here(np.append(np.nan, self.limits))

    def _at_limits(self) -> Array:
        """Return whether the x of each row is a limit."""
        library, xp, lower = self.library, self.library.xp, self._lower()
        return library.by_chunks(
            lambda x, codes: library.floats(x) == xp.take(lower, codes, axis=0),
            self.x,
            self.codes,
        )

    def by_ties(self, ties: Array) -> _Cut:
        """Return a cut of numbers that order rows as (x, ties) do, as far as it counts.

        A row at a limit has the code of x and a fraction for `ties`, which unequal ones
        may share, if only just. Other rows come after those at the limit below them.
        """
        library, xp, lower = self.library, self.library.xp, self._lower()
        grid, after = Grid.on(ties, ties.shape[0], 1), library.here(0.75)

        def merged(x: Array, codes: Array, ties: Array) -> Array:
            at_limit = library.floats(x) == xp.take(lower, codes, axis=0)
            fraction = 0 * after
            if grid is not None:
                fraction = 0.5 * grid.positions(library.floats(ties))
            return library.floats(codes) + xp.where(at_limit, fraction, after)

        keys = library.by_chunks(merged, self.x, self.codes, ties)
        return _Cut.at(keys, self.cuts)

    def _first_ranks(self) -> Ints:
        """Return the rank of the first row at a limit, by code."""
        return np.append(0, np.cumsum(self.counts)[:-1])

    def tie_limits(self, ties: Array) -> Floats:
        """Return the `ties` of each cut, if rows of equal x are ordered by these."""
        library, xp = self.library, self.library.xp
        (tied,) = xp.nonzero(self._at_limits())
        code = xp.take(self.codes, tied, axis=0)
        tie = library.floats(xp.take(ties, tied, axis=0))
        order = library.lexsort([tie, code])
        sizes = library.counts(code, self.counts.size)
        of_cut = np.searchsorted(self.limits, self.limits, side="right")
        places = (np.cumsum(sizes) - sizes)[of_cut]
        places += self.cuts - self._first_ranks()[of_cut]
        found = xp.take(xp.take(tie, order, axis=0), library.here(places), axis=0)
        return library.to_host(found)

    def told_apart(self, keys: list[Array], last: list[Array]) -> Array:
        """Return codes of which every cut has its rank, whatever the ties.

        Rows of equal x are ordered by `keys`. Those still equal are shuffled by a hash
        of their ranks by `last`.
        """
        library, xp = self.library, self.library.xp
        at_limits = self._at_limits()
        (tied,) = xp.nonzero(at_limits)
        code = xp.take(self.codes, tied, axis=0)
        keys = [library.floats(xp.take(each, tied, axis=0)) for each in keys]
        last = [library.floats(xp.take(each, tied, axis=0)) for each in last]
        order = library.lexsort([*last, *keys, code])
        code = xp.take(code, order, axis=0)
        keys = [xp.take(each, order, axis=0) for each in keys]
        sizes = library.counts(code, self.counts.size)
        shift = library.here(self._first_ranks() - (np.cumsum(sizes) - sizes))
        ranks = xp.arange(code.shape[0], dtype=xp.int64, device=library.device)
        ranks = ranks + xp.take(shift, code, axis=0)
        changes = [each[1:] != each[:-1] for each in (code, *keys)]
        new_run = xp.astype(reduce(or_, changes), xp.int64)
        run = xp.concat([0 * ranks[:1], xp.cumulative_sum(new_run)])
        order = xp.take(order, library.lexsort([hashed(ranks), run]), axis=0)
        # which cut each rank has reached, for the rows in their own order
        found = xp.searchsorted(library.here(self.cuts), ranks, side="right")
        found = xp.take(library.codes(found), xp.argsort(order), axis=0)
        return library.replaced(self.codes, at_limits, found)


def in_pieces(weights: Floats) -> tuple[Ints, Floats]:
    """Return rows cut into pieces of a weight of at most 1: the row of each, and that.

    >>> in_pieces(np.array([2.0, 0.5, 1.25]))
    (array([0, 0, 1, 2, 2]), array([1.  , 1.  , 0.5 , 1.  , 0.25]))
    """
    counts = np.ceil(weights).astype(np.int64)
    pieces = np.ones(int(counts.sum()))
    pieces[np.cumsum(counts) - 1] = weights - (counts - 1)  # the last one has the rest
    return np.repeat(np.arange(weights.size), counts), pieces


def weighted_bins(
    x: npt.NDArray[Any], n_bins: int, weights: Floats, **tie_breakers: Floats | None
) -> tuple[BinnedRows, Floats]:
    """Sort rows by x and cut them into bins of equal weight, as :func:`rank_bins` does.

    A row counts as pieces of a weight of at most 1, which are shuffled as repeats of a
    row are; limits of bins part pieces, too, so that bins are as equal as those of
    whole rows. Returned are the row of each piece, bin by bin, and the weights of the
    pieces in that order.
    """
    rows, pieces = in_pieces(weights)
    keys: dict[str, Any] = {
        name: None if key is None else key[rows] for name, key in tie_breakers.items()
    }
    binned = rank_bins(x[rows], 1, **keys)
    order, in_order = rows[binned.order], pieces[binned.order]
    if x.dtype.kind != "f":
        return BinnedRows(order, binned.sizes), in_order
    total = float(weights.sum())
    cuts = cut_positions(total, feasible_bins(total, n_bins)).astype(np.float64)
    starts = np.append(0.0, np.cumsum(in_order)[:-1])
    cuts = snapped(cuts, starts)
    parts = np.union1d(starts, cuts)
    sizes = np.diff(np.searchsorted(parts, cuts), append=parts.size)
    which = np.searchsorted(starts, parts, side="right") - 1
    return BinnedRows(order[which], sizes), np.diff(parts, append=total)


def snapped(cuts: Floats, starts: Floats) -> Floats:
    """Return cuts; one that is the start of a row but for rounding is that start."""
    after = np.minimum(np.searchsorted(starts, cuts), starts.size - 1)
    before = np.maximum(after - 1, 0)
    tolerance = 1e-9 * float(starts[-1])
    cuts = np.where(np.abs(starts[after] - cuts) <= tolerance, starts[after], cuts)
    return np.where(np.abs(starts[before] - cuts) <= tolerance, starts[before], cuts)


def _pairs(x: Floats, ties: Floats) -> npt.NDArray[np.complex128]:
    """Return pairs as complex numbers, which NumPy compares lexicographically."""
    pairs = np.empty(x.size, dtype=np.complex128)
    pairs.real, pairs.imag = x, ties
    return pairs


def _at_weights(
    values: npt.NDArray[Any], weights: Floats, ranks: Floats
) -> npt.NDArray[Any]:
    """Return the sorted values at ranks, of which each takes as many as its weight."""
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(weights[order])
    ends[-1] = np.inf  # rounding must not leave a rank beyond
    # nor move one from the row that begins there to the one before
    tolerance = 1e-9 * float(weights.sum())
    found = np.searchsorted(ends, ranks + tolerance, side="right")
    at_ranks: npt.NDArray[Any] = values[order[found]]
    return at_ranks


def find(kernel: tuple[list[Any], Kernel], *columns: Array) -> Array:
    """Return the codes that a kernel finds, of columns of any library."""
    library = library_of(columns[0])
    constants, function = kernel
    known = library.ready(constants, int(columns[0].shape[0]))

    def found(*parts: Array) -> Array:
        return library.codes(function(library.xp, known, *map(library.floats, parts)))

    with np.errstate(invalid="ignore"):  # of what is missing
        return library.by_chunks(found, *columns)


def find_label(labels: Floats) -> tuple[list[Any], Kernel]:
    """Return constants and the kernel that codes labels that are numbers: 0 is unknown.

    The labels are sorted; one that is missing (NaN) is the last of them.
    """
    numbers = labels[~np.isnan(labels)]
    missing_code = labels.size if numbers.size < labels.size else 0
    # one that no number equals, so that there always is something to compare with
    known = np.append(numbers, np.nan)

    def code(xp: Any, c: Sequence[Array], x: Array) -> Array:
        found = xp.searchsorted(c[0][:-1], x, side="left")
        none = 0 * found
        equal = xp.take(c[0], found, axis=0) == x
        code = xp.where(equal, found + 1, none)
        return xp.where(xp.isnan(x), none + missing_code, code)

    return [known], code


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

    @property
    def is_sound(self) -> bool:
        """Whether limits are finite and ascend, for those that come from a file."""
        limits, ties = self.limits, self.tie_limits
        if limits.ndim != 1 or (ties is not None and ties.shape != limits.shape):
            return False
        ascend = np.diff(limits) > 0
        if ties is not None:
            ascend |= (np.diff(limits) == 0) & (np.diff(ties) > 0)
        finite = [np.isfinite(x).all() for x in (limits, ties) if x is not None]
        return bool(all(finite) and ascend.all())

    @classmethod
    def learn(
        cls,
        x: Array,
        n_bins: int,
        *,
        ties: Array | None = None,
        min_size: int = 1,
        weights: Floats | None = None,
    ) -> EqualSizeBins:
        """Learn limits from the rows of one set; of weighted ones, at equal weights.

        Limits that ties make equal are merged, with a warning, so that the rows of a
        bin at learning are those that the limits assign to it later.
        """
        total = int(x.shape[0]) if weights is None else float(weights.sum())
        n_bins = feasible_bins(total, n_bins, min_size)
        cuts = cut_positions(total, n_bins)
        limits: npt.NDArray[Any]
        if weights is not None:
            limits = _at_weights(x if ties is None else _pairs(x, ties), weights, cuts)
        elif ties is None:
            limits = order_statistics(x, cuts)
        else:
            cut = _Cut.at(x, cuts)
            limits = cut.limits
            if cut.parts_equal_rows:
                cut = cut.by_ties(ties)
            limits = _pairs(limits, cut.tie_limits(ties))
        limits = np.unique(limits)[1:]  # the first bin is open
        if limits.size + 1 < n_bins:
            warn_of_ties(n_bins, limits.size + 1)
        if ties is None:
            return cls(limits)
        return cls(limits.real.copy(), limits.imag.copy())

    @property
    def n_bins(self) -> int:
        """The number of bins."""
        return self.limits.size + 1

    @classmethod
    def quantiles(
        cls, x: Array, max_bins: int, weights: Floats | None = None
    ) -> EqualSizeBins:
        """Learn limits at quantiles, or between all values where these are few.

        Equal values are never parted, and missing ones (NaN) do not count.
        """
        library, xp = library_of(x), library_of(x).xp
        missing = xp.isnan(x)
        if library.numbers(xp.any(missing))[0]:
            x = x[~missing]
            weights = None if weights is None else weights[~missing]
        if weights is not None:
            values, codes = np.unique(x, return_inverse=True)
            counts = np.bincount(codes, weights)
            if values.size <= max_bins:
                return cls(values[1:])
            rank = np.arange(1, max_bins) * counts.sum() / max_bins
            at_rank = values[np.searchsorted(np.cumsum(counts), rank, side="left")]
            return cls(np.unique(at_rank[at_rank > values[0]]))
        grid = Grid.over(x)
        if grid is None or np.count_nonzero(grid.counts) <= max_bins:
            values = xp.unique_values(library.floats(x))
            if values.shape[0] <= max_bins:  # a bin for each
                return cls(np.sort(library.to_host(values))[1:])
        n_rows = int(x.shape[0])
        ranks = np.ceil(np.arange(1, max_bins) * n_rows / max_bins).astype(np.int64) - 1
        low, *limits = order_statistics(x, np.append(0, ranks), grid)
        found = np.unique(limits)
        return cls(found[found > low])

    @property
    def n_codes(self) -> int:
        """The number of codes: one for each bin, and one for what is missing."""
        return self.n_bins + 1

    def codes(self, x: Array, ties: Array | None = None) -> Array:
        """Return the bin of each row: i where limit[i-1] <= x < limit[i]."""
        return find(self.kernel(), *([x] if self.tie_limits is None else [x, ties]))

    def coded(self, x: Array) -> Array:
        """Return 1 + the bin of each row, and 0 where x is missing (NaN)."""
        return find(self.kernel(1, missing=True), x)

    def kernel(
        self, first: int = 0, *, missing: bool = False
    ) -> tuple[list[Any], Kernel]:
        """Return constants and the kernel that finds bins, counted from `first`.

        A value that is missing has the code 0, if that is asked for.
        """
        if self.tie_limits is not None:
            return self._pair_kernel(first)

        def bin_of(xp: Any, c: Sequence[Any], x: Array) -> Array:
            found = reached(xp, c[0], x)
            return xp.where(xp.isnan(x), c[1], found) if missing else found

        constants = [Limits(self.limits, first), np.array(0)]
        return constants if missing else constants[:1], bin_of

    def _pair_kernel(self, first: int) -> tuple[list[Any], Kernel]:
        """Return the kernel that finds a run of equal limits, and a place within it."""
        assert self.tie_limits is not None
        ends = ends_of_runs(self.limits)
        starts = np.append(0, ends[:-1])[: ends.size]
        steps = int((ends - starts).max(initial=0)).bit_length()
        beyond = np.full(2**steps, np.nan)  # which no number reaches
        constants = [
            Limits(self.limits[ends - 1]),
            np.append(np.nan, self.limits[ends - 1]),
            np.append(0, starts) + first,
            np.append(0, ends) + first,
            np.concatenate([np.full(first + 1, np.nan), self.tie_limits, beyond]),
        ]

        def bin_of(xp: Any, c: Sequence[Any], x: Array, ties: Array) -> Array:
            run = reached(xp, c[0], x)
            is_beyond = x != xp.take(c[1], run, axis=0)
            found, end = xp.take(c[2], run, axis=0), xp.take(c[3], run, axis=0)
            for step in (2**k for k in reversed(range(steps))):
                more = found + step
                is_reached = is_beyond | (ties >= xp.take(c[4], more, axis=0))
                found = xp.where((more <= end) & is_reached, more, found)
            return found

        return constants, bin_of


@dataclass(frozen=True)
class Cells:
    """The cells that the bins of two variables make together, row-major."""

    first: EqualSizeBins
    second: EqualSizeBins

    @property
    def is_sound(self) -> bool:
        """Whether both have sound limits, for those that come from a file."""
        return self.first.is_sound and self.second.is_sound

    @classmethod
    def learn(
        cls,
        x: Array,
        y: Array,
        n_bins: tuple[int, int],
        weights: Floats | None = None,
    ) -> Cells:
        """Learn the limits of each variable by itself."""
        return cls(
            EqualSizeBins.learn(x, n_bins[0], weights=weights),
            EqualSizeBins.learn(y, n_bins[1], weights=weights),
        )

    @property
    def n_bins(self) -> int:
        """The number of cells, empty ones included."""
        return self.first.n_bins * self.second.n_bins

    def codes(self, x: Array, y: Array) -> Array:
        """Return the cell of each row."""
        return self.first.codes(x) * self.second.n_bins + self.second.codes(y)


@dataclass(frozen=True)
class LabelBins:
    """One bin for each label; labels that have none share a last, fallback code.

    Attributes
    ----------
    labels : tuple
        Distinct labels, in order: numbers, text, and None for what is missing.
    rare : tuple
        Labels that were seen, too, but are too rare for a bin of their own.
    """

    labels: tuple[Label, ...]
    rare: tuple[Label, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether labels are distinct and in order, for those that come from a file."""
        both = (self.labels, self.rare)
        return all(map(are_ordered_labels, both)) and not set(both[0]) & set(both[1])

    @classmethod
    def learn(
        cls, labels: Categories, *, min_size: int = 1, weights: Floats | None = None
    ) -> LabelBins:
        """Learn the labels that have at least `min_size` rows, or as much weight."""
        labels = labels.compact()
        counts = np.bincount(labels.codes, weights)
        return cls.of_counts(labels.labels, counts >= min_size)

    @classmethod
    def of_counts(
        cls, distinct: tuple[Label, ...], frequent: npt.NDArray[Any]
    ) -> LabelBins:
        """Tell labels with a bin of their own from those without."""
        pairs = list(zip(distinct, frequent, strict=True))
        own, rare = ([x for x, is_own in pairs if is_own == kind] for kind in (1, 0))
        return cls(tuple(own), tuple(rare))

    @classmethod
    def most_frequent(
        cls, distinct: tuple[Label, ...], counts: Any, most: int
    ) -> LabelBins:
        """Keep at `most` so many of distinct labels, those with most rows."""
        frequent = np.zeros(len(distinct), dtype=np.bool_)
        frequent[np.argsort(-counts, kind="stable")[:most]] = True
        return cls.of_counts(distinct, frequent)

    @property
    def n_bins(self) -> int:
        """The number of labels and, last, the fallback."""
        return len(self.labels) + 1

    @property
    def n_codes(self) -> int:
        """The number of codes: one for each label, and one for all others."""
        return self.n_bins

    @property
    def are_text(self) -> bool:
        """Whether there is text among the labels."""
        return any(isinstance(label, str) for label in self.labels)

    def codes(self, labels: Categories) -> Ints:
        """Return the bin of each row, or ``n_bins - 1`` where its label has none."""
        return self.bins_of(labels.labels)[labels.codes]

    def bins_of(self, labels: tuple[Label, ...]) -> Ints:
        """Return the bin of each of some labels, or ``n_bins - 1`` if it has none."""
        if labels is self.labels:
            return np.arange(len(labels))
        own = {label: i for i, label in enumerate(self.labels)}
        found = [own.get(label, len(own)) for label in labels]
        return np.array(found, dtype=np.int64)

    def coded(self, labels: Categories) -> Ints:
        """Return 1 + the bin of each row, and 0 where its label has none."""
        return (self.codes(labels) + 1) % self.n_bins

    def count_unseen(self, labels: Categories) -> int:
        """Return how many rows have a label not seen when these were learned."""
        known = {*self.labels, *self.rare}
        unseen = np.array([label not in known for label in labels.labels], dtype=bool)
        return int(np.count_nonzero(unseen[labels.codes]))
