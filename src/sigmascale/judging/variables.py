"""A variable cut once: fine bins, the regions they make, and regions in words.

Equal values are never parted. Of a number, runs of neighbouring bins of many lengths
are regions; of labels, each of them; labels with too few rows are one region together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._support.checks import Bools, Floats, Ints
from .._support.labels import label_text
from .._support.text import shorten
from .._support.weighting import WeightLine
from ..predictions import Predictions
from ..scores.intervals import sums_of

# bins of a number: halves, fifths and tenths divide them
FEWEST_FINE_BINS, MOST_FINE_BINS = 50, 100
ROWS_FOR_MOST_BINS = 15_000  # rows from which there are most bins
FEW_VALUES = 20  # distinct values of a number that is judged by value, as labels are
FEWEST_OF_A_VALUE = 20  # rows, below which a label or a number is no region
LEAST_OF_A_REGION = 40  # rows
FINEST = 400  # such a part of many rows is a region at least
SCALES = (0.02, 0.08, 0.25)  # shares between which regions are calibrated alike
RARE = "rare labels"


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable in bins, and its regions.

    Attributes
    ----------
    name : str
        The variable; "u" is the uncertainty.
    codes : array of int, shape (n,)
        The bin of each row.
    w : array of shape (n,)
        The weight of each row; 0 for rows that it says nothing of.
    low, high : array of shape (n_bins,), or None
        The smallest and the largest number of each bin.
    labels : tuple of str, or None
        What each bin of labels is called.
    n_rare : int
        Labels that are too rare to be judged one by one.
    is_by_value : bool
        Whether a number has so few values that each is a bin.
    is_date : bool
        Whether numbers are microseconds since 1970.
    """

    name: str
    codes: Ints
    w: Floats
    low: Floats | None = None
    high: Floats | None = None
    labels: tuple[str, ...] | None = None
    n_rare: int = 0
    is_by_value: bool = False
    is_date: bool = False

    @classmethod
    def of_numbers(cls, name: str, x: Floats, w: Floats) -> Variable:
        """Cut numbers into bins of about equally many rows."""
        used = slice(None) if w.all() else w > 0
        total = float(w.sum())
        n_bins = max(2, int(min(FEWEST_FINE_BINS, total // 5)))
        n_bins = MOST_FINE_BINS if total >= ROWS_FOR_MOST_BINS else n_bins
        starts = np.arange(1, n_bins) * (total / n_bins)
        if (w == 1).all():
            ordered = np.sort(x)
            first_rows = starts.astype(np.int64)
        else:
            order = np.argsort(x[used], kind="stable")
            ordered = x[used][order]
            first_rows = WeightLine(w[used][order]).after(starts)
        limits = np.unique(ordered[np.minimum(first_rows, ordered.size - 1)])
        # a number with few values has a bin for each
        is_new = np.append(True, ordered[1:] > ordered[:-1])
        is_by_value = int(np.count_nonzero(is_new)) <= FEW_VALUES
        limits = ordered[is_new] if is_by_value else limits
        # no bin is empty: limits are values, and the smallest one may start the first
        limits = limits[limits > ordered[0]]
        codes = np.searchsorted(limits, x, side="right")
        first = np.append(0, np.searchsorted(ordered, limits))
        last = np.append(first[1:], ordered.size) - 1
        ends = ordered[first], ordered[last]
        return cls(name, codes, w, *ends, is_by_value=is_by_value)

    @classmethod
    def of_labels(
        cls, name: str, codes: Ints, labels: Sequence[Any], w: Floats
    ) -> Variable:
        """Make a bin of each label; those with few rows share the last one."""
        counts = np.bincount(codes, w, len(labels))
        rare = (counts < max(FEWEST_OF_A_VALUE, w.sum() / FINEST)) & (counts > 0)
        place = np.where(rare, len(labels), np.arange(len(labels)))
        found, new = np.unique(place[codes], return_inverse=True)
        names = [*map(label_text, labels), RARE]
        return cls(
            name,
            new,
            w,
            labels=tuple(names[i] for i in found),
            n_rare=int(np.count_nonzero(rare)),
        )

    @classmethod
    def all_of(cls, rows: Predictions, w: Floats) -> list[Variable]:
        """Cut u and all features."""
        return [
            cls.of_numbers(name, x, w)
            if labels is None
            else cls.of_labels(name, x, labels, w)
            for name, x, labels in zip(
                rows.names, rows.columns, rows.categories, strict=True
            )
        ]

    @property
    def n_bins(self) -> int:
        """The number of bins."""
        return len(self.labels) if self.labels is not None else self._ends[0].size

    @property
    def _ends(self) -> tuple[Floats, Floats]:
        assert self.low is not None
        assert self.high is not None
        return self.low, self.high

    @cached_property
    def is_value(self) -> Bools:
        """Which bins have one value, or are a label."""
        if self.labels is not None:
            return np.array([x != RARE for x in self.labels], dtype=np.bool_)
        low, high = self._ends
        return np.asarray(low == high)

    def sums(self, values: Floats | None = None) -> Floats:
        """Return weighted sums by bin."""
        if values is None:
            return self.counts(self.codes, self.n_bins)
        wx = values if self.is_unweighted else self.w * values
        return sums_of(self.codes, wx, self.n_bins)

    def counts(self, codes: Ints, n: int) -> Floats:
        """Return how much weight the rows of each code have."""
        if self.is_unweighted:
            return np.bincount(codes, minlength=n).astype(np.float64)
        return sums_of(codes, self.w, n)

    @cached_property
    def is_unweighted(self) -> bool:
        """Whether all rows count, and alike."""
        return bool((self.w == 1).all())

    @cached_property
    def sizes(self) -> Floats:
        """Rows of each bin, or their weight."""
        return self.sums()

    @cached_property
    def regions(self) -> tuple[Ints, Ints, Ints]:
        """Where regions start and end, and their scales, which ascend.

        They have enough rows, and leave enough; a label or a value may have fewer.
        """
        ends, found, length = np.append(0, np.cumsum(self.sizes)), [], 1
        total = ends[-1]
        few = max(FEWEST_OF_A_VALUE, total / FINEST)
        least = max(10, min(LEAST_OF_A_REGION, 0.08 * total), total / FINEST)
        few, least = few * (1 - 1e-6), least * (1 - 1e-6)  # but for rounded weights
        while length < self.n_bins and (self.labels is None or length == 1):
            start = np.arange(0, self.n_bins - length, max(1, length // 6))
            start = np.append(start, self.n_bins - length)  # runs reach the end, too
            rows = ends[start + length] - ends[start]
            fits = np.minimum(rows, total - rows) >= least
            if length == 1:
                fits |= (self.is_value | (self.labels is not None)) & (rows >= few)
            found.append(np.array([start, start + length])[:, fits])
            length += max(1, length // 4)
        start, stop = np.concatenate([*found, np.empty((2, 0), np.int64)], axis=1)
        share = np.round((ends[stop] - ends[start]) / max(total, 1e-300), 6)
        scale = np.searchsorted(SCALES, np.minimum(share, 1 - share), side="right")
        order = np.argsort(scale, kind="stable")
        return start[order], stop[order], scale[order]

    @property
    def n_regions(self) -> int:
        """The number of regions."""
        return self.regions[0].size

    @cached_property
    def scales(self) -> tuple[Ints, Ints]:
        """The scales of regions, and the first region of each."""
        return np.unique(self.regions[2], return_index=True)

    def summed(self, by_bin: Floats) -> Floats:
        """Return the sums of regions, from those of bins, along the first axis."""
        ends = np.concatenate([np.zeros_like(by_bin[:1]), np.cumsum(by_bin, axis=0)])
        found: Floats = ends[self.regions[1]] - ends[self.regions[0]]
        return found

    @cached_property
    def n_rows(self) -> Ints:
        """The number of rows of each region."""
        counts = np.bincount(self.codes[self.w > 0], minlength=self.n_bins)
        return self.summed(counts.astype(np.float64)).astype(np.int64)

    @cached_property
    def shares(self) -> Floats:
        """The share of the rows that each region has."""
        found: Floats = self.summed(self.sizes) / self.sizes.sum()
        return found

    @cached_property
    def one_over_n(self) -> tuple[Floats, Floats]:
        """One over the rows in effect, of each region and of the rest."""
        squares = self.sums(self.w)
        inside, n = self.summed(squares), self.summed(self.sizes)
        rest, beyond = self.sizes.sum() - n, squares.sum() - inside
        empty = 1e300  # of some of the rows, a region may have none
        return (
            np.divide(inside, n**2, out=np.full(n.size, empty), where=n > 1e-9),
            np.divide(beyond, rest**2, out=np.full(n.size, empty), where=rest > 1e-9),
        )

    def some(self, which: Ints) -> Variable:
        """Return the same bins and regions, of some of the rows."""
        new = replace(self, codes=self.codes[which], w=self.w[which])
        new.__dict__["regions"] = self.regions
        return new

    @property
    def rare_share(self) -> float:
        """The share of rows whose labels are too rare to be judged one by one."""
        if not self.n_rare:
            return 0.0
        return float(self.sizes[-1] / self.sizes.sum())

    def inside(self, region: int) -> Bools:
        """Return which rows a region has."""
        start, stop = self.regions[0][region], self.regions[1][region]
        found: Bools = (self.codes >= start) & (self.codes < stop) & (self.w > 0)
        return found

    def limits(self, region: int) -> tuple[Any, Any]:
        """Return the ends of a region, None where it is open; or its label, twice."""
        start, stop = int(self.regions[0][region]), int(self.regions[1][region])
        if self.labels is not None:
            return self.labels[start], self.labels[start]
        return self.told(*self.range_of(start, stop))

    def told(self, low: float | None, high: float | None) -> tuple[Any, Any]:
        """Return the ends of a range as people read them: dates as text."""
        if not self.is_date:
            return low, high
        first, last = (None if x is None else date_text(x) for x in (low, high))
        return first, last

    def range_of(self, start: int, stop: int) -> tuple[float | None, float | None]:
        """Return between which numbers some bins lie, None where they are open."""
        low, high = self._ends
        if low[start] == high[stop - 1]:
            return float(low[start]), float(low[start])
        first = float(low[start]) if start > 0 else None
        return first, (float(high[stop - 1]) if stop < self.n_bins else None)

    def run_words(self, start: int, stop: int) -> str:
        """Return some bins of numbers in words."""
        low, high = self.range_of(start, stop)
        return self.range_words(low, high)

    def range_words(self, low: float | None, high: float | None) -> str:
        """Return a range in words, of dates as such."""
        if not self.is_date:
            return range_words(self.name, low, high)
        first, last = self.told(low, high)
        name = shorten(self.name, 30)
        if first is None or last is None:
            if first == last:
                return f"all {name}"
            return f"{name} until {last}" if first is None else f"{name} from {first}"
        return f"{name} from {first} to {last}"

    def words(self, region: int) -> str:
        """Return a region in words."""
        if self.labels is None:
            return self.run_words(*(int(x[region]) for x in self.regions[:2]))
        low, _ = self.limits(region)
        return RARE + f" of {self.name}" if low == RARE else label_words(self.name, low)


def date_text(x: float) -> str:
    """Return microseconds since 1970 as a date, with the time of day if it has one.

    >>> date_text(0.0), date_text(3.6e9)
    ('1970-01-01', '1970-01-01T01:00')
    """
    at = np.datetime64(round(x), "us")
    if at == at.astype("datetime64[D]"):
        return str(at.astype("datetime64[D]"))
    return str(at.astype("datetime64[m]"))


def range_words(name: str, low: float | None, high: float | None) -> str:
    """Return a range of a variable in words; it is open where a limit is None.

    >>> range_words("mass", 3.0, None), range_words("mass", 3.0, 4.5123)
    ('mass above 3', 'mass between 3 and 4.51')
    """
    name = shorten(name, 30)
    first, last = (None if x is None else number(x) for x in (low, high))
    if first is None or last is None:
        if first == last:
            return f"all {name}"
        return f"{name} below {last}" if first is None else f"{name} above {first}"
    if low == high:
        return f"{name} = {first}"
    between = f"near {first}" if first == last else f"between {first} and {last}"
    return f"{name} {between}"


def label_words(name: str, *labels: str) -> str:
    """Return some labels of a variable in words.

    >>> label_words("kind", "a", "b", "c", "d")
    'kind = a, b and 2 more'
    """
    more = f" and {len(labels) - 2} more" if len(labels) > 2 else ""
    known = ", ".join(shorten(each, 30) for each in labels[:2])
    return f"{shorten(name, 30)} = {known}{more}"


def number(x: float) -> str:
    """Return a number to three digits; whole ones as they are.

    >>> number(126.13), number(2015.0), number(123456.7), number(0.000123456)
    ('126', '2015', '123,000', '0.000123')
    """
    if x == round(x) and abs(x) < 1e5:
        return f"{x:.0f}"
    rounded = float(f"{x:.3g}")
    if 100 <= abs(rounded) < 1e6:
        return f"{rounded:,.0f}"
    return f"{rounded:g}"
