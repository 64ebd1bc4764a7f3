"""A variable cut once: fine bins, the regions they make, and regions in words.

Equal values are never parted. Of a number, runs of neighbouring bins of many lengths
are regions; of labels, each of them; labels with too few rows are one region together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._support.checks import Bools, Floats, Ints
from .._support.labels import label_text
from .._support.text import shorten
from .._support.weighting import WeightLine
from ..predictions.predictions import Predictions
from ..scores.intervals import sums_of

# bins of a number: halves, fifths and tenths divide them
FEWEST_FINE_BINS = 50
MOST_FINE_BINS = 100
ROWS_FOR_MOST_BINS = 15_000  # rows from which there are most bins
FEW_VALUES = 20  # distinct values of a number that is judged by value, as labels are
FEWEST_OF_A_VALUE = 20  # rows, below which a label or a number is no region
LEAST_OF_A_REGION = 40  # rows
FINEST = 400  # such a part of many rows is a region at least
SCALES = (0.02, 0.08, 0.25)  # shares between which regions are calibrated alike
RARE = "rare labels"


class Regions(NamedTuple):
    """Runs of neighbouring bins, or labels, in ascending order of their scales.

    Attributes
    ----------
    start, stop : array of int, shape (n_regions,)
        The first bin of each, and the one that follows its last.
    scale : array of int, shape (n_regions,)
        Between which of `SCALES` its share of the rows lies.
    """

    start: Ints
    stop: Ints
    scale: Ints


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
        # where bins of equal weight would start, as sums of weights
        total = float(w.sum())
        n_bins = max(2, int(min(FEWEST_FINE_BINS, total // 5)))
        if total >= ROWS_FOR_MOST_BINS:
            n_bins = MOST_FINE_BINS
        starts = np.arange(1, n_bins) * (total / n_bins)

        # the numbers in order, and the rows that these sums fall into
        if (w == 1).all():
            ordered = np.sort(x)
            first_rows = starts.astype(np.int64)
        else:
            used = slice(None) if w.all() else w > 0
            order = np.argsort(x[used], kind="stable")
            ordered = x[used][order]
            first_rows = WeightLine(w[used][order]).after(starts)

        # limits between bins are values; a number with few of them has a bin for each
        limits = np.unique(ordered[np.minimum(first_rows, ordered.size - 1)])
        is_new = np.append(True, ordered[1:] > ordered[:-1])
        is_by_value = int(np.count_nonzero(is_new)) <= FEW_VALUES
        if is_by_value:
            limits = ordered[is_new]
        # a bin below the smallest value would be empty
        limits = limits[limits > ordered[0]]

        codes = np.searchsorted(limits, x, side="right")
        first = np.append(0, np.searchsorted(ordered, limits))
        last = np.append(first[1:], ordered.size) - 1
        return cls(
            name,
            codes,
            w,
            low=ordered[first],
            high=ordered[last],
            is_by_value=is_by_value,
        )

    @classmethod
    def of_labels(
        cls, name: str, codes: Ints, labels: Sequence[Any], w: Floats
    ) -> Variable:
        """Make a bin of each label; those with few rows share the last one."""
        counts = np.bincount(codes, w, len(labels))
        is_rare = (counts < max(FEWEST_OF_A_VALUE, w.sum() / FINEST)) & (counts > 0)
        # all rare labels get one code, which is the last
        merged = np.where(is_rare, len(labels), np.arange(len(labels)))
        used, bins = np.unique(merged[codes], return_inverse=True)
        names = [*map(label_text, labels), RARE]
        return cls(
            name,
            bins,
            w,
            labels=tuple(names[code] for code in used),
            n_rare=int(np.count_nonzero(is_rare)),
        )

    @classmethod
    def all_of(cls, rows: Predictions, w: Floats) -> list[Variable]:
        """Cut u and all features."""
        variables = []
        columns = zip(rows.names, rows.columns, rows.categories, strict=True)
        for name, column, labels in columns:
            if labels is None:
                variables.append(cls.of_numbers(name, column, w))
            else:
                variables.append(cls.of_labels(name, column, labels, w))
        return variables

    @property
    def n_bins(self) -> int:
        """The number of bins."""
        return len(self.labels) if self.labels is not None else self._ends[0].size

    @property
    def _ends(self) -> tuple[Floats, Floats]:
        """The smallest and the largest number of each bin."""
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
    def regions(self) -> Regions:
        """Runs of bins of many lengths; of labels, each of them.

        They have enough rows, and leave enough; a label or a value may have fewer.
        """
        ends = np.append(0, np.cumsum(self.sizes))
        total = ends[-1]
        but_rounding = 1 - 1e-6  # of weights
        least = max(10, min(LEAST_OF_A_REGION, 0.08 * total), total / FINEST)
        least *= but_rounding
        least_of_a_value = max(FEWEST_OF_A_VALUE, total / FINEST) * but_rounding

        # where regions start and stop, those of each length side by side
        of_lengths = [np.empty((2, 0), np.int64)]
        length = 1
        while length < self.n_bins and (self.labels is None or length == 1):
            start = np.arange(0, self.n_bins - length, max(1, length // 6))
            start = np.append(start, self.n_bins - length)  # runs reach the end, too
            rows = ends[start + length] - ends[start]
            fits = np.minimum(rows, total - rows) >= least
            if length == 1:
                is_alone = self.is_value | (self.labels is not None)
                fits |= is_alone & (rows >= least_of_a_value)
            of_lengths.append(np.array([start, start + length])[:, fits])
            length += max(1, length // 4)
        start, stop = np.concatenate(of_lengths, axis=1)

        # a region that has nearly all rows is of the scale of those that it leaves
        share = np.round((ends[stop] - ends[start]) / max(total, 1e-300), 6)
        scale = np.searchsorted(SCALES, np.minimum(share, 1 - share), side="right")
        order = np.argsort(scale, kind="stable")
        return Regions(start[order], stop[order], scale[order])

    @property
    def n_regions(self) -> int:
        """The number of regions."""
        return self.regions.start.size

    @cached_property
    def scales(self) -> Ints:
        """The scales that regions have, in ascending order."""
        return np.unique(self.regions.scale)

    @cached_property
    def first_of_scale(self) -> Ints:
        """The first region of each of these scales."""
        return np.searchsorted(self.regions.scale, self.scales)

    def summed(self, by_bin: Floats) -> Floats:
        """Return the sums of regions, from those of bins, along the first axis."""
        ends = np.concatenate([np.zeros_like(by_bin[:1]), np.cumsum(by_bin, axis=0)])
        return np.asarray(ends[self.regions.stop] - ends[self.regions.start])

    @cached_property
    def n_rows(self) -> Ints:
        """The number of rows of each region."""
        counts = np.bincount(self.codes[self.w > 0], minlength=self.n_bins)
        return self.summed(counts.astype(np.float64)).astype(np.int64)

    @cached_property
    def shares(self) -> Floats:
        """The share of the rows that each region has."""
        return np.asarray(self.summed(self.sizes) / self.sizes.sum())

    @cached_property
    def one_over_n(self) -> tuple[Floats, Floats]:
        """One over the rows in effect, Σw² / (Σw)², of each region and of the rest."""
        squares = self.sums(self.w)
        w_inside = self.summed(self.sizes)
        w2_inside = self.summed(squares)
        return (
            _one_over_n(w2_inside, w_inside),
            _one_over_n(squares.sum() - w2_inside, self.sizes.sum() - w_inside),
        )

    def take(self, rows: Ints) -> Variable:
        """Return the same bins and regions, of some of the rows."""
        taken = replace(self, codes=self.codes[rows], w=self.w[rows])
        taken.__dict__["regions"] = self.regions  # not made again of these rows
        return taken

    @property
    def rare_share(self) -> float:
        """The share of rows whose labels are too rare to be judged one by one."""
        if not self.n_rare:
            return 0.0
        return float(self.sizes[-1] / self.sizes.sum())

    def inside(self, region: int) -> Bools:
        """Return which rows a region has."""
        is_from_start = self.codes >= self.regions.start[region]
        is_before_stop = self.codes < self.regions.stop[region]
        return np.asarray(is_from_start & is_before_stop & (self.w > 0))

    def _bins_of(self, region: int) -> tuple[int, int]:
        """Return the first bin of a region, and the one that follows its last."""
        return int(self.regions.start[region]), int(self.regions.stop[region])

    def limits(self, region: int) -> tuple[Any, Any]:
        """Return the ends of a region, None where it is open; or its label, twice."""
        start, stop = self._bins_of(region)
        if self.labels is not None:
            return self.labels[start], self.labels[start]
        return self.as_read(*self.range_of(start, stop))

    def as_read(self, low: float | None, high: float | None) -> tuple[Any, Any]:
        """Return the ends of a range as people read them: dates as text."""
        if not self.is_date:
            return low, high
        return _text_of(low, date_text), _text_of(high, date_text)

    def range_of(self, start: int, stop: int) -> tuple[float | None, float | None]:
        """Return between which numbers some bins lie, None where they are open."""
        lows, highs = self._ends
        low = float(lows[start])
        high = float(highs[stop - 1])
        if low == high:
            return low, high
        return low if start > 0 else None, high if stop < self.n_bins else None

    def run_words(self, start: int, stop: int) -> str:
        """Return some bins of numbers in words."""
        low, high = self.range_of(start, stop)
        return self.range_words(low, high)

    def range_words(self, low: float | None, high: float | None) -> str:
        """Return a range in words, of dates as such."""
        if not self.is_date:
            return range_words(self.name, low, high)
        start, end = self.as_read(low, high)
        name = shorten(self.name, 30)
        if start is None and end is None:
            return f"all {name}"
        if start is None:
            return f"{name} until {end}"
        if end is None:
            return f"{name} from {start}"
        return f"{name} from {start} to {end}"

    def words(self, region: int) -> str:
        """Return a region in words."""
        if self.labels is None:
            return self.run_words(*self._bins_of(region))
        label, _ = self.limits(region)
        return (
            f"{RARE} of {self.name}" if label == RARE else label_words(self.name, label)
        )


def _one_over_n(w2: Floats, w: Floats) -> Floats:
    """Return one over the rows in effect, Σw² / (Σw)²; enormous where there are none.

    A region may have none of some of the rows.
    """
    empty = np.full(w.size, 1e300)
    return np.asarray(np.divide(w2, w**2, out=empty, where=w > 1e-9))


def _text_of(end: float | None, words: Callable[[float], str]) -> str | None:
    """Return an end of a range in words, if it is not open."""
    return None if end is None else words(end)


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
    start = _text_of(low, number)
    end = _text_of(high, number)
    if start is None and end is None:
        return f"all {name}"
    if start is None:
        return f"{name} below {end}"
    if end is None:
        return f"{name} above {start}"
    if low == high:
        return f"{name} = {start}"
    # numbers that differ may look the same to three digits
    return (
        f"{name} near {start}" if start == end else f"{name} between {start} and {end}"
    )


def label_words(name: str, *labels: str) -> str:
    """Return some labels of a variable in words.

    >>> label_words("kind", "a", "b", "c", "d")
    'kind = a, b and 2 more'
    """
    more = f" and {len(labels) - 2} more" if len(labels) > 2 else ""
    listed = ", ".join(shorten(label, 30) for label in labels[:2])
    return f"{shorten(name, 30)} = {listed}{more}"


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
