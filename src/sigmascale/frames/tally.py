"""Sums of fine intervals of a Polars frame, taken by NumPy as its rows stream by.

They are those of a group-by of rounded values, at half the cost or less: the bits of
a rounded number are a place in an array, where a group-by has to look its key up.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from .._support.checks import LARGEST, LARGEST_Z, SMALLEST, Floats, Ints
from .lazy_rows import LARGEST_FEATURE, Columns, Frame

MOST_PLACES = 2**18  # of a column: 64 powers of 2 at 13 bits
_MAGNITUDE = np.int64(2**63 - 1)
_NEAR_ZERO = 1e-290


def tally(
    frame: Frame, columns: dict[str, tuple[str, ...]], bits: int, *, x_range: bool
) -> dict[str, Columns] | None:
    """Return the sums of the intervals of each column, as a group-by would.

    The frame has columns e, u and those asked for, and `columns` says which terms to
    sum; with `x_range` intervals have their smallest and largest value, too. If a row
    cannot be used, or a column spans too many powers of 2, the answer is None:
    grouping then takes what it can, and says what is wrong.
    """
    # by thread; not threading.local, which a thread of Polars loses with every call
    workers: dict[int, _Worker] = {}

    def add(batch: Any) -> Any:
        thread = threading.get_ident()
        if thread not in workers:
            workers[thread] = _Worker(columns, bits, x_range=x_range)
        if all(worker.ok for worker in list(workers.values())):
            rows = {name: batch[name].to_numpy() for name in batch.columns}
            workers[thread].add(rows)
        return batch.clear()

    frame.to_native().map_batches(add, streamable=True).collect(engine="streaming")
    total = _Worker(columns, bits, x_range=x_range)
    for worker in workers.values():
        total.merge(worker)
    return total.intervals() if total.ok else None


class _Worker:
    """What one thread has summed: nothing is shared until all rows are read."""

    def __init__(
        self, columns: dict[str, tuple[str, ...]], bits: int, *, x_range: bool
    ) -> None:
        self.columns, self.ok = columns, True
        self.places = {
            column: _Places(bits, len(terms), x_range=x_range)
            for column, terms in columns.items()
        }
        self._buffers: dict[str, Floats] = {}

    def _buffer(self, name: str, size: int) -> Floats:
        """Return an array to be used again and again: fresh memory is slow."""
        if name not in self._buffers or self._buffers[name].size < size:
            self._buffers[name] = np.empty(size)
        return self._buffers[name][:size]

    def add(self, rows: Columns) -> None:
        """Add the rows of a batch, if all of them can be used."""
        n_rows = rows["u"].size
        if not n_rows:
            return
        ranges = {name: (float(x.min()), float(x.max())) for name, x in rows.items()}
        terms = self._terms(rows) if _usable(ranges) else None
        self.ok = terms is not None and all(
            self.places[column].add(
                rows[column],
                ranges[column],
                [terms[name] for name in wanted],
                self._buffer("place", n_rows),
                self._buffer("other", n_rows),
            )
            for column, wanted in self.columns.items()
        )

    def _terms(self, rows: Columns) -> dict[str, Floats] | None:
        """Return the terms of each row, unless an error is too large to be squared."""
        e, u = rows["e"], rows["u"]
        wanted = {"z2", *(name for names in self.columns.values() for name in names)}
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

    def merge(self, other: _Worker) -> None:
        """Add what another thread has summed."""
        self.ok = (
            self.ok
            and other.ok
            and all(
                places.merge(other.places[column])
                for column, places in self.places.items()
            )
        )

    def intervals(self) -> dict[str, Columns]:
        """Return the intervals of each column."""
        return {
            column: self.places[column].intervals(terms)
            for column, terms in self.columns.items()
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
        """Add the terms of rows to their places; return whether places suffice."""
        (low, high), shift = x_range, 53 - self._bits
        near_zero = low < _NEAR_ZERO and high > -_NEAR_ZERO
        # rounded as `round_to` does, but never to -0.0
        given = np.add(x, 0.0, out=other) if near_zero else x
        np.multiply(given, float(2**shift + 1), out=place)
        np.subtract(place, given, out=other)
        np.subtract(place, other, out=place)
        at, sign = place.view(np.int64), other.view(np.int64)
        if near_zero and np.bitwise_and(at, 2**shift - 1, out=sign).any():
            return False  # subnormal numbers, which are not rounded
        if low < 0:
            np.right_shift(at, 63, out=sign)
            at &= _MAGNITUDE
        at >>= shift
        at -= 1  # as unsigned numbers, zeros now come last
        last = int(at.max())
        if last >= 0 and not self._cover(int(at.view(np.uint64).min()) + 1, last + 1):
            return False
        at -= self._first - 2
        if near_zero:
            np.maximum(at, 0, out=at)
        if low < 0:
            sign &= self._sums.shape[2]
            at += sign
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

    def intervals(self, terms: tuple[str, ...]) -> Columns:
        """Return the intervals by their rounded values."""
        sign, place = np.nonzero(self._sums[0])
        bits: Ints = (place - 1 + self._first) << (53 - self._bits)
        key = np.where(place == 0, 0.0, bits.view(np.float64))
        n, *sums = self._sums[:, sign, place]
        found: Columns = {"key": np.where(sign == 1, -key, key)}
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
