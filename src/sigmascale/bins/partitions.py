"""Partitions: which bin each row belongs to.

:class:`EqualSizeBins`, :class:`Cells` and :class:`LabelBins` learn limits on one set
and assign codes on any other. :func:`rank_codes` cuts one set by the ranks of its own
rows, which is what scores need: every bin has its share of rows, whatever the ties.
:func:`rank_bins` does so as well, and sorts the rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints, check_count
from .._support.labels import Categories, Label, are_ordered_labels
from .._support.telling import warn
from .._support.weights import total_of
from ..exceptions import FewerBinsWarning
from .quantiles import (
    Scale,
    Search,
    chunks,
    ends_of_runs,
    in_order,
    order_statistics,
    search,
)


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
    """Say so if equal values leave fewer bins than were asked for."""
    if n_distinct < n_bins:
        warn(
            f"{n_bins} bins were asked for, but equal values of the binning "
            f"variable leave {n_distinct} distinct bins; these are used.",
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
        small = np.uint16 if n_bins <= 2**16 else np.int64  # the former sorts fast
        return cls(
            np.argsort(codes.astype(small, copy=False), kind="stable"),
            np.bincount(codes, minlength=n_bins),
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
        order[places] = rows[np.lexsort((_shuffled(places), run))]
    return BinnedRows(order, sizes)


def rank_codes(
    x: npt.NDArray[Any],
    n_bins: int,
    *,
    ties: Floats | None,
    error: Floats,
    uncertainty: Floats,
    min_size: int = 1,
) -> tuple[Ints, int]:
    """Return the bin of each row, and how many: :func:`rank_bins` without sorting."""
    if x.dtype.kind != "f":
        labels, codes = np.unique(x, return_inverse=True)
        return codes, labels.size
    n_bins = feasible_bins(x.size, n_bins, min_size)
    cuts = cut_positions(x.size, n_bins)[1:]
    limits = order_statistics(x, cuts)
    codes = search(limits, x)
    if _is_cut_at(cuts, codes):
        return codes, n_bins
    # Some cut parts rows with equal x,
    if ties is not None:
        x = _merge_keys(x, ties, limits, codes)
        limits, tie_limits, codes = _cut_by_ties(cuts, x, ties)
        if _is_cut_at(cuts, codes):
            return codes, n_bins
    # and with equal ties as well: these are shuffled.
    tied = _rows_at(limits, x, codes)
    if ties is not None:
        tied = tied[ties[tied] == tie_limits[codes[tied] - 1]]
    tied = tied[np.lexsort((uncertainty[tied], np.abs(error[tied]), codes[tied]))]
    run = codes[tied]
    sizes = np.bincount(run, minlength=n_bins)
    first = np.cumsum(np.bincount(codes, minlength=n_bins))[run - 1]
    ranks = first + np.arange(tied.size) - (np.cumsum(sizes) - sizes)[run]
    codes[tied[np.lexsort((_shuffled(ranks), run))]] = np.searchsorted(
        cuts, ranks, side="right"
    )
    return codes, n_bins


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


def _is_cut_at(cuts: Ints, codes: Ints) -> bool:
    """Return whether as many rows are below each code as there should be."""
    sizes = np.bincount(codes, minlength=cuts.size + 1)
    return np.array_equal(np.cumsum(sizes)[:-1], cuts)


def _rows_at(limits: Floats, x: Floats, codes: Ints) -> Ints:
    """Return the rows where x is the limit below it."""
    lower = np.append(np.nan, limits)
    return np.concatenate(
        [
            rows.start + np.flatnonzero(x[rows] == lower[codes[rows]])
            for rows in chunks(x.size)
        ]
    )


def _by_limit(
    limits: Floats, x: Floats, codes: Ints
) -> Iterator[tuple[slice, npt.NDArray[np.intp]]]:
    """Yield each run of equal limits: which these are, and the rows at it."""
    at_limit = _rows_at(limits, x, codes)
    binned = BinnedRows.from_codes(codes[at_limit], limits.size + 1)
    rows = np.split(at_limit[binned.order], np.cumsum(binned.sizes)[:-1])
    for start, end in itertools.pairwise([0, *ends_of_runs(limits).tolist()]):
        yield slice(start, end), rows[end]


def _merge_keys(x: Floats, ties: Floats, limits: Floats, codes: Ints) -> Floats:
    """Return numbers that order rows as (x, ties) do, as far as cuts are concerned.

    A row at a limit has the code of x and a fraction for `ties`, which unequal ones may
    share, if only just. Other rows come after those at the limit below them.
    """
    scale = Scale.over(ties)
    lower = np.append(np.nan, limits)
    merged = np.empty(x.size)
    for rows in chunks(x.size):
        fraction = 0.0 if scale is None else 0.5 * scale.positions(ties[rows])
        at_limit = x[rows] == lower[codes[rows]]
        merged[rows] = codes[rows] + np.where(at_limit, fraction, 0.75)
    return merged


def _cut_by_ties(cuts: Ints, x: Floats, ties: Floats) -> tuple[Floats, Floats, Ints]:
    """Return x and `ties` at the cuts of (x, ties), and the code of each row."""
    limits = order_statistics(x, cuts)
    codes = search(limits, x)
    below = np.cumsum(np.bincount(codes, minlength=cuts.size + 1))
    tie_limits = np.empty(cuts.size)
    for which, rows in _by_limit(limits, x, codes):
        tied, ranks = ties[rows], cuts[which] - below[which.stop - 1]
        tie_limits[which] = np.partition(tied, ranks)[ranks]
        within = np.searchsorted(tie_limits[which], tied, side="right")
        codes[rows] = which.start + within
    return limits, tie_limits, codes


def _shuffled(positions: Ints) -> npt.NDArray[np.uint64]:
    """Return numbers in random order: splitmix64, a hash that never changes."""
    with np.errstate(over="ignore"):
        key = positions.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


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


def _are_numbers(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype == float


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
        if not _are_numbers(self.limits) or not np.isfinite(self.limits).all():
            return False
        steps = np.diff(self.limits)
        if self.tie_limits is None:
            return bool((steps > 0).all())
        ties = self.tie_limits
        if not _are_numbers(ties) or ties.shape != self.limits.shape:
            return False
        ascend = (steps > 0) | ((steps == 0) & (np.diff(ties) > 0))
        return bool(np.isfinite(ties).all() and ascend.all())

    @classmethod
    def learn(
        cls,
        x: Floats,
        n_bins: int,
        *,
        ties: Floats | None = None,
        min_size: int = 1,
        weights: Floats | None = None,
    ) -> EqualSizeBins:
        """Learn limits from the rows of one set; of weighted ones, at equal weights.

        Limits that ties make equal are merged, with a warning, so that the rows of a
        bin at learning are those that the limits assign to it later.
        """
        total = total_of(x.size, weights)
        n_bins = feasible_bins(total, n_bins, min_size)
        cuts = cut_positions(total, n_bins)
        limits: npt.NDArray[Any]
        if weights is not None:
            limits = _at_weights(x if ties is None else _pairs(x, ties), weights, cuts)
        else:
            limits = order_statistics(x, cuts)
        if ties is not None and weights is None:
            merged = _merge_keys(x, ties, limits, search(limits, x))
            limits = _pairs(limits, _cut_by_ties(cuts, merged, ties)[1])
        limits = np.unique(limits)[1:]  # the first bin is open
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
        cls, x: Floats, max_bins: int, weights: Floats | None = None
    ) -> EqualSizeBins:
        """Learn limits at quantiles, or between all values where these are few.

        Equal values are never parted, and missing ones (NaN) do not count.
        """
        known = ~np.isnan(x)
        if weights is None:
            values, counts = np.unique(x[known], return_counts=True)
        else:
            values, codes = np.unique(x[known], return_inverse=True)
            counts = np.bincount(codes, weights[known])
        if values.size <= max_bins:
            return cls(values[1:])
        rank = np.arange(1, max_bins) * counts.sum() / max_bins
        at_rank = values[np.searchsorted(np.cumsum(counts), rank, side="left")]
        return cls(np.unique(at_rank[at_rank > values[0]]))

    @property
    def n_codes(self) -> int:
        """The number of codes: one for each bin, and one for what is missing."""
        return self.n_bins + 1

    def codes(self, x: Floats, ties: Floats | None = None) -> Ints:
        """Return the bin of each row: i where limit[i-1] <= x < limit[i]."""
        find = self.finder(x.size)
        codes = np.empty(x.size, dtype=np.int64)
        for rows in chunks(x.size):
            codes[rows] = find(x[rows], None if ties is None else ties[rows])
        return codes

    def coded(self, x: Floats, ties: Floats | None = None) -> Ints:
        """Return 1 + the bin of each row, and 0 where x is missing (NaN)."""
        missing = np.isnan(x)
        if not missing.any():
            return 1 + self.codes(x, ties)
        return np.where(missing, 0, 1 + self.codes(np.where(missing, 0.0, x), ties))

    def finder(self, n_rows: int) -> Callable[[Floats, Floats | None], Ints]:
        """Prepare for so many rows; return what finds the bins of some at a time."""
        search = Search(self.limits, n_rows)
        if self.tie_limits is None:
            return lambda x, _: search(x)
        pairs = _pairs(self.limits, self.tie_limits)
        lower = np.append(np.nan, self.limits)

        def find(x: Floats, ties: Floats | None) -> Ints:
            codes = search(x)
            if ties is not None:
                # only where x is a limit does the second variable decide
                at = np.flatnonzero(x == lower[codes])
                tied = _pairs(x[at], ties[at])
                codes[at] = np.searchsorted(pairs, tied, side="right")
            return codes

        return find


@dataclass(frozen=True)
class Cells:
    """The cells that the bins of two variables make together, row-major."""

    first: EqualSizeBins
    second: EqualSizeBins

    @property
    def is_sound(self) -> bool:
        """Whether both have sound limits, for those that come from a file."""
        both: tuple[Any, Any] = (self.first, self.second)
        return all(isinstance(each, EqualSizeBins) and each.is_sound for each in both)

    @classmethod
    def learn(
        cls,
        x: Floats,
        y: Floats,
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

    def codes(self, x: Floats, y: Floats) -> Ints:
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
        return cls(
            tuple(
                label
                for label, is_own in zip(distinct, frequent, strict=True)
                if is_own
            ),
            tuple(
                label
                for label, is_own in zip(distinct, frequent, strict=True)
                if not is_own
            ),
        )

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
