"""Fine bins: some ten thousand of them take the place of all rows.

A *fine bin* holds the numbers that round to the same few significant bits. Their sums
add up, limits at any rank are found among them, and bins of any kind are runs of them.
Whoever has rows makes them: the engine of a lazy frame, a device, or a :class:`Tally`
of rows that arrive as arrays, piece by piece. There, the bits of a rounded number are a
place in an array, so that no key has to be looked up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.bits import MAGNITUDE
from .._support.checks import LARGEST, LARGEST_Z, SMALLEST, Floats, Ints
from .partitions import (
    EqualSizeBins,
    cut_positions,
    feasible_bins,
    most_bins,
    warn_of_ties,
)
from .sums import TERMS, BinSums

LARGEST_FEATURE = 1e250  # beyond, rounding to a few bits would overflow
MOST_PLACES = 2**18  # of a column: 64 powers of 2 at 13 bits
_NEAR_ZERO = 1e-290

Arrays = dict[str, npt.NDArray[Any]]
# Ranks of the rows that limits should have, from the number of rows.
Ranks = Callable[[int], Ints]


def round_to(x: Any, bits: int) -> Any:
    """Round numbers, or an expression of some engine, to so many significant bits.

    All engines give the same, as additions and multiplications are all it takes.

    References
    ----------
    T. J. Dekker, Numer. Math. 18, 224 (1971), doi:10.1007/BF01397083

    >>> round_to(np.array([1.0, 1.1, 100.3]), 4)
    array([  1.   ,   1.125, 104.   ])
    """
    shifted = x * float(2 ** (53 - bits) + 1)
    return shifted - (shifted - x)


@dataclass(frozen=True)
class FineBins:
    """Disjoint ranges of x in ascending order, and the sums over their rows.

    Attributes
    ----------
    low, high : array of shape (n_fine,)
        The smallest and the largest x.
    tie_low, tie_high : array of shape (n_fine,)
        The same of u, where rows of equal x are told apart by u; elsewhere 0 and
        infinity.
    n : array of int, shape (n_fine,)
        Number of rows.
    sums : dict of str to array of shape (n_fine,)
        Sums of terms; "u_min" and "u_max" are the range of u.
    """

    low: Floats
    high: Floats
    tie_low: Floats
    tie_high: Floats
    n: Ints
    sums: dict[str, Floats]

    @classmethod
    def of(
        cls,
        low: Floats,
        high: Floats,
        n: Ints,
        sums: dict[str, Floats],
    ) -> FineBins:
        """Return fine bins whose rows were not told apart by u."""
        ties = np.zeros(low.size), np.full(low.size, np.inf)
        return cls(low, high, *ties, n, sums)

    @property
    def n_rows(self) -> int:
        """The number of rows that have an x."""
        return int(self.n.sum())

    @property
    def single(self) -> npt.NDArray[np.bool_]:
        """Whether all rows of a fine bin have the same x."""
        return np.equal(self.low, self.high)

    def holding(self, ranks: Ints) -> npt.NDArray[np.intp]:
        """Return the fine bin that holds the row of each rank."""
        return np.searchsorted(np.cumsum(self.n), ranks, side="right")

    def values_at(self, ranks: Ints) -> Floats:
        """Return the x of the row of each rank, as if x were even within fine bins."""
        at = self.holding(ranks)
        before = ranks - (np.cumsum(self.n) - self.n)[at]
        share = (before + 0.5) / self.n[at]
        return np.where(
            self.single[at],
            self.low[at],
            self.low[at] + share * (self.high - self.low)[at],
        )

    def cut(self, ranks: Ints) -> npt.NDArray[np.intp]:
        """Return the fine bins at which bins begin, the first one's 0 left out.

        The limit is the value of the row of that rank, as in memory, or the nearest
        edge of a fine bin whose rows were not told apart.
        """
        at = self.holding(ranks)
        before = ranks - (np.cumsum(self.n) - self.n)[at]
        wide = ~self.single | (
            (self.tie_high < np.inf) & (self.tie_low < self.tie_high)
        )
        at = at + (wide[at] & (before > self.n[at] / 2))
        return np.unique(at[(at > 0) & (at < self.n.size)])

    def bin_sums(self, cuts: npt.NDArray[np.intp]) -> BinSums:
        """Return the sums of bins that begin at `cuts`, with the range of u."""
        starts = np.concatenate([[0], cuts])
        return BinSums(
            n=np.add.reduceat(self.n, starts),
            x_min=np.minimum.reduceat(self.sums["u_min"], starts),
            x_max=np.maximum.reduceat(self.sums["u_max"], starts),
            **{
                name: np.add.reduceat(values, starts)
                for name, values in self.sums.items()
                if name not in ("u_min", "u_max")
            },
        )

    def even_sums(self, ranks: Ints) -> BinSums:
        """Return the sums of bins that begin at some ranks, with the range of x.

        Terms that fine bins do not have are 0.
        """
        parts, starts = self.split(ranks)
        none = {name: np.zeros(ranks.size) for name in TERMS}
        terms = {
            name: np.add.reduceat(values, starts)
            for name, values in parts.sums.items()
            if name in none
        }
        ends = {
            "x_min": parts.low[starts],
            "x_max": np.maximum.reduceat(parts.high, starts),
        }
        n = np.diff(ranks, append=self.n_rows)
        return BinSums(n=n, **(none | terms | ends))

    def split(self, ranks: Ints) -> tuple[FineBins, Ints]:
        """Return fine bins that begin at every rank, and where these are.

        Rows of a fine bin that were not told apart share its sums evenly: what
        dealing them out at random would give on average.
        """
        starts = np.cumsum(self.n) - self.n
        edges = np.union1d(starts, ranks)
        parent = np.searchsorted(starts, edges, side="right") - 1
        n = np.diff(edges, append=self.n_rows)
        share = n / self.n[parent]
        begin = (edges - starts[parent]) / self.n[parent]
        width = (self.high - self.low)[parent]
        low = self.low[parent] + begin * width
        parts = FineBins(
            low=low,
            high=np.where(share == 1, self.high[parent], low + share * width),
            tie_low=self.tie_low[parent],
            tie_high=self.tie_high[parent],
            n=n,
            sums={
                name: values[parent] * (1 if name in ("u_min", "u_max") else share)
                for name, values in self.sums.items()
            },
        )
        return parts, np.searchsorted(edges, ranks)

    def replaced(self, which: npt.NDArray[np.bool_], finer: FineBins) -> FineBins:
        """Return fine bins of which some were replaced by finer ones."""

        def both(old: Any, new: Any) -> Any:
            return np.concatenate([old[~which], new])[order]

        order = np.lexsort(
            [
                np.concatenate([self.tie_low[~which], finer.tie_low]),
                np.concatenate([self.low[~which], finer.low]),
            ]
        )
        return FineBins(
            low=both(self.low, finer.low),
            high=both(self.high, finer.high),
            tie_low=both(self.tie_low, finer.tie_low),
            tie_high=both(self.tie_high, finer.tie_high),
            n=both(self.n, finer.n),
            sums={name: both(v, finer.sums[name]) for name, v in self.sums.items()},
        )


def equal_size_ranks(n_bins: int, min_size: int = 1) -> Ranks:
    """Return the ranks at which equal-size bins begin, the first one's left out."""

    def ranks(n_rows: int) -> Ints:
        return cut_positions(n_rows, most_bins(n_rows, n_bins, min_size))[1:]

    return ranks


def equal_size_bins(
    fine: FineBins, n_bins: int, *, ties: bool = False
) -> tuple[EqualSizeBins, npt.NDArray[np.intp]]:
    """Return the limits of bins, and the fine bins at which they begin."""
    n_bins = feasible_bins(fine.n_rows, n_bins)
    cuts = fine.cut(cut_positions(fine.n_rows, n_bins)[1:])
    if cuts.size + 1 < n_bins:
        warn_of_ties(n_bins, cuts.size + 1)
    limits = fine.low[cuts]
    if not ties:
        return EqualSizeBins(limits), cuts
    # rows of one x that were not told apart are all on the same side
    whole = np.where(fine.single, fine.sums["u_min"], 0.0)
    tie_limits = np.where(fine.tie_high < np.inf, fine.tie_low, whole)
    return EqualSizeBins(limits, tie_limits[cuts]), cuts


class Tally:
    """Sums of the fine bins of some columns, of rows that arrive piece by piece.

    Two tallies of disjoint rows can be merged: each thread, process or device makes its
    own, and nothing is shared until all rows are read.

    Parameters
    ----------
    columns : dict of str to tuple of str
        The columns, and the terms that are summed by the fine bins of each.
    bits : int
        Significant bits that numbers are rounded to.
    x_range : bool
        Whether the smallest and the largest value of each fine bin are wanted, too.

    Attributes
    ----------
    ok : bool
        Whether all rows so far could be used. If not, the sums mean nothing.
    """

    def __init__(
        self, columns: dict[str, tuple[str, ...]], bits: int, *, x_range: bool
    ) -> None:
        self._columns, self._bits, self._x_range = columns, bits, x_range
        self.ok = True
        self._places = {
            column: _Places(bits, len(terms), x_range=x_range)
            for column, terms in columns.items()
        }
        self._buffers: dict[str, Floats] = {}

    def empty(self) -> Tally:
        """Return a tally of no rows that asks for the same."""
        return Tally(self._columns, self._bits, x_range=self._x_range)

    def _buffer(self, name: str, size: int) -> Floats:
        """Return an array to be used again and again: fresh memory is slow."""
        if name not in self._buffers or self._buffers[name].size < size:
            self._buffers[name] = np.empty(size)
        return self._buffers[name][:size]

    def add(self, rows: dict[str, Floats]) -> None:
        """Add the rows of a piece; `rows` has e, u and the columns asked for."""
        n_rows = rows["u"].size
        if not n_rows:
            return
        ranges = {name: (float(x.min()), float(x.max())) for name, x in rows.items()}
        terms = self._terms(rows) if _usable(ranges) else None
        self.ok = terms is not None and all(
            self._places[column].add(
                rows[column],
                ranges[column],
                [terms[name] for name in wanted],
                self._buffer("place", n_rows),
                self._buffer("other", n_rows),
            )
            for column, wanted in self._columns.items()
        )

    def _terms(self, rows: dict[str, Floats]) -> dict[str, Floats] | None:
        """Return the terms of each row, unless an error is too large to be squared."""
        e, u = rows["e"], rows["u"]
        wanted = {"z2", *(name for names in self._columns.values() for name in names)}
        terms = {name: self._buffer(name, u.size) for name in wanted}
        z2 = terms["z2"]
        np.divide(e, u, out=z2)
        np.multiply(z2, z2, out=z2)
        if not z2.max() <= LARGEST_Z**2:
            return None
        if "z4" in wanted:
            np.multiply(z2, z2, out=terms["z4"])
        if "z6" in wanted:
            np.multiply(terms["z4"], z2, out=terms["z6"])
        if "e2" in wanted:
            np.multiply(e, e, out=terms["e2"])
        if "u2" in wanted:
            np.multiply(u, u, out=terms["u2"])
        if "log_u2" in wanted:
            np.log(u, out=terms["log_u2"])
            terms["log_u2"] *= 2
        if "nonzero" in wanted:
            np.not_equal(e, 0, out=terms["nonzero"], casting="unsafe")
        return terms

    def merge(self, other: Tally) -> None:
        """Add what another tally has summed."""
        self.ok = (
            self.ok
            and other.ok
            and all(
                places.merge(other._places[column])
                for column, places in self._places.items()
            )
        )

    def fine_bins(self) -> dict[str, Arrays]:
        """Return the fine bins of each column that have rows."""
        return {
            column: self._places[column].fine_bins(terms)
            for column, terms in self._columns.items()
        }


def _usable(ranges: dict[str, tuple[float, float]]) -> bool:
    """Return whether all numbers can be used; of NaN no comparison is true."""
    limits = {"u": (SMALLEST, LARGEST), "e": (-LARGEST, LARGEST)}
    for name, (low, high) in ranges.items():
        lowest, highest = limits.get(name, (-LARGEST_FEATURE, LARGEST_FEATURE))
        if not (lowest <= low and high <= highest):
            return False
    return True


class _Places:
    """Sums by the magnitude of a number, rounded to a few bits, and by its sign.

    Place 0 is that of zeros, and place 1 + i that of the magnitude whose leading bits
    are `first` + i.
    """

    def __init__(self, bits: int, n_terms: int, *, x_range: bool) -> None:
        self._bits, self._first, self._x_range = bits, 1, x_range
        self._sums = np.zeros((1 + n_terms, 2, 1))  # by term, sign and place
        self._low, self._high = np.full((2, 1), np.inf), np.full((2, 1), -np.inf)

    def add(
        self,
        x: Floats,
        x_range: tuple[float, float],
        terms: list[Floats],
        place: Floats,
        other: Floats,
    ) -> bool:
        """Add the terms of rows to their places; return whether places suffice.

        `place` and `other` are buffers, one number a row.
        """
        (low, high), shift = x_range, 53 - self._bits
        # 1. Round x to a few bits, as `round_to` does, but never to -0.0.
        near_zero = low < _NEAR_ZERO and high > -_NEAR_ZERO
        given = np.add(x, 0.0, out=other) if near_zero else x
        np.multiply(given, float(2**shift + 1), out=place)
        np.subtract(place, given, out=other)
        np.subtract(place, other, out=place)
        # 2. Read the rounded numbers as integers: of positive ones these ascend with
        # the number, and their lowest bits are 0. Subnormal numbers are not rounded.
        at, sign = place.view(np.int64), other.view(np.int64)
        if near_zero and np.bitwise_and(at, 2**shift - 1, out=sign).any():
            return False
        # 3. Take the sign away (-1 where x < 0), and the bits that are 0.
        if low < 0:
            np.right_shift(at, 63, out=sign)
            at &= MAGNITUDE
        at >>= shift
        # 4. Make room for all magnitudes. Zeros are -1 now, the largest of unsigned
        # numbers, so that the least of these is the least magnitude that is not 0.
        at -= 1
        last = int(at.max())
        if last >= 0 and not self._cover(int(at.view(np.uint64).min()) + 1, last + 1):
            return False
        # 5. Count places from the first one; zeros come before it, at place 0.
        at -= self._first - 2
        if near_zero:
            np.maximum(at, 0, out=at)
        # 6. Negative numbers have the second half of the places.
        if low < 0:
            sign &= self._sums.shape[2]
            at += sign
        # 7. Sum the rows of each place, at first the ones, which count them.
        for sums, weights in zip(self._sums, [None, *terms], strict=True):
            by_place = sums.reshape(-1)
            if x.size < by_place.size // 8:  # few rows, for which all places are many
                np.add.at(by_place, at, 1.0 if weights is None else weights)
            else:
                found = np.bincount(at, weights)
                by_place[: found.size] += found
        if self._x_range:
            np.minimum.at(self._low.reshape(-1), at, x)
            np.maximum.at(self._high.reshape(-1), at, x)
        return True

    def _cover(self, first: int, last: int) -> bool:
        """Make room for magnitudes, unless that would be too much."""
        known = self._sums.shape[2] - 1
        if known:
            first = min(first, self._first)
            last = max(last, self._first + known - 1)
        width = last - first + 1
        if width > MOST_PLACES:
            return False
        if width > known:
            start = self._first - first + 1 if known else 1
            self._sums = _wider(self._sums, width, start, 0.0)
            if self._x_range:
                self._low = _wider(self._low, width, start, np.inf)
                self._high = _wider(self._high, width, start, -np.inf)
            self._first = first
        return True

    def merge(self, other: _Places) -> bool:
        """Add the sums of other rows; return whether places suffice."""
        known = other._sums.shape[2] - 1
        if known and not self._cover(other._first, other._first + known - 1):
            return False
        start = other._first - self._first + 1 if known else 1
        at = np.r_[0, start : start + known]
        self._sums[:, :, at] += other._sums
        if self._x_range:
            self._low[:, at] = np.minimum(self._low[:, at], other._low)
            self._high[:, at] = np.maximum(self._high[:, at], other._high)
        return True

    def fine_bins(self, terms: tuple[str, ...]) -> Arrays:
        """Return the fine bins that have rows, by their rounded values."""
        sign, place = np.nonzero(self._sums[0])
        bits: Ints = (place - 1 + self._first) << (53 - self._bits)
        key = np.where(place == 0, 0.0, bits.view(np.float64))
        n, *sums = self._sums[:, sign, place]
        found: Arrays = {"key": np.where(sign == 1, -key, key)}
        found["n"] = n.astype(np.int64)
        if self._x_range:
            found["low"] = self._low[sign, place] + 0.0  # there is no -0.0
            found["high"] = self._high[sign, place] + 0.0
        return found | dict(zip(terms, sums, strict=True))


def _wider(places: Floats, width: int, start: int, fill: float) -> Floats:
    """Return an array with more places, of which the known ones begin at `start`."""
    wider = np.full((*places.shape[:-1], 1 + width), fill)
    wider[..., 0] = places[..., 0]
    wider[..., start : start + places.shape[-1] - 1] = places[..., 1:]
    return wider
