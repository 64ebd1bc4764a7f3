"""Parts: disjoint tenths, fifths, halves of a variable, or its labels.

A certificate needs parts that cover all rows, each large enough to tell something of.
At fineness K, a number is cut into K parts of about equal weight, with equal values
together; a part with less than 1/(4 K) of the weight, or 20 rows in effect, joins a
neighbour. Numbers with few distinct values are cut between these, each value a part
that is large enough. Labels of that share are parts; the others are one together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._support.checks import Bools, Floats, Ints
from .questions import FEWEST
from .variables import RARE, Variable, label_words

FINENESS = (1, 2, 3, 5, 10, 20)
ASKED = 5  # the fineness that a yes is about
SMALLEST_PART = 0.25  # of 1 / K: the share of the smallest part
RARE_TOGETHER = 0.01  # share of rare labels from which they are a part together
IN_WORDS = {
    1: "on average",
    2: "in every half",
    3: "in every third",
    5: "in every fifth",
    10: "in every tenth",
    20: "in every twentieth",
}


@dataclass(frozen=True, eq=False)
class Partition:
    """The parts of a variable at one fineness.

    Attributes
    ----------
    variable : Variable
        The variable, in bins.
    fineness : int
        About how many parts it was to be cut into.
    of_bin : array of int, shape (n_bins,)
        The part of each bin; −1 where it is judged in none.
    rest : int or None
        The part of all labels that are too rare to be judged one by one.
    """

    variable: Variable
    fineness: int
    of_bin: Ints
    rest: int | None = None

    @property
    def n(self) -> int:
        """The number of parts."""
        return int(self.of_bin.max()) + 1

    @cached_property
    def matrix(self) -> Floats:
        """What makes sums by part of sums by bin."""
        is_in_part: Bools = self.of_bin == np.arange(self.n)[:, None]
        return is_in_part.astype(np.float64)

    @cached_property
    def counts(self) -> Floats:
        """The number of rows of each part."""
        v = self.variable
        codes = v.codes if v.w.all() else v.codes[v.w > 0]
        return np.asarray(self.matrix @ np.bincount(codes, minlength=v.n_bins))

    @property
    def unjudged(self) -> float:
        """The share of the rows that no part has."""
        sizes = self.variable.sizes
        return float(sizes[self.of_bin < 0].sum() / sizes.sum())

    def inside(self, part: int) -> Bools:
        """Return which rows a part has."""
        v = self.variable
        return np.asarray((self.of_bin[v.codes] == part) & (v.w > 0))

    def ends(self, part: int) -> tuple[Any, Any]:
        """Return between which values a part lies, None where open; a label twice."""
        v = self.variable
        start, stop = self._bins_of(part)
        if v.labels is None:
            return v.as_read(*v.range_of(start, stop))
        label = v.labels[start] if part != self.rest else RARE
        return label, label

    def _bins_of(self, part: int) -> tuple[int, int]:
        """Return the first bin of a part, and the one that follows its last."""
        bins = np.flatnonzero(self.of_bin == part)
        return int(bins[0]), int(bins[-1]) + 1

    def words(self, part: int) -> str:
        """Return a part in words."""
        v = self.variable
        if v.name == "joint":
            return f"{IN_WORDS[self.fineness].replace('in every', 'a')} of all rows"
        if v.labels is None:
            return v.run_words(*self._bins_of(part))
        if part == self.rest:
            return f"{RARE} of {v.name}"
        label, _ = self.ends(part)
        return label_words(v.name, label)


def parts_of(v: Variable, fineness: int, n_rows: float) -> Partition | None:
    """Return the parts of a variable; None where rows are too few for so many.

    Parameters
    ----------
    v : Variable
        The variable.
    fineness : int
        About how many parts.
    n_rows : float
        Rows in effect, (Σw)² / Σw².
    """
    if n_rows < FEWEST * fineness:
        return None
    least = max(SMALLEST_PART / fineness, FEWEST / n_rows) * (1 - 1e-9)
    share = v.sizes / v.sizes.sum()
    if v.labels is not None:
        return _labels(v, fineness, share, least, n_rows)
    if v.is_by_value:
        part = np.arange(share.size)
    else:
        middle = np.cumsum(share) - share / 2
        part = np.minimum((middle * fineness).astype(int), fineness - 1)
    return Partition(v, fineness, _joined(part, share, least))


def _labels(
    v: Variable, fineness: int, share: Floats, least: float, n_rows: float
) -> Partition:
    """Return frequent labels alone, and the others together if they are enough.

    `share` is that of each bin, and `least` the share from which a label is frequent.
    """
    # frequent labels are parts by themselves
    is_alone = (share >= least) & v.is_value
    part = np.where(is_alone, np.cumsum(is_alone) - 1, -1)
    is_other = ~is_alone & (share > 0)
    if float(share[is_other].sum()) < max(RARE_TOGETHER, FEWEST / n_rows):
        return Partition(v, fineness, part)

    # the others are one more part, which has its label's name if it has but one
    rest = int(np.count_nonzero(is_alone))
    part[is_other] = rest
    is_one_label = np.count_nonzero(is_other) == 1 and bool(v.is_value[is_other][0])
    return Partition(v, fineness, part, None if is_one_label else rest)


def _joined(part: Ints, share: Floats, least: float) -> Ints:
    """Return ascending parts of which those that are too small join a neighbour.

    `part` and `share` are those of each bin; a part that has less than the `least`
    share of the rows joins the smaller of its neighbours, the smallest part first.
    """
    part = np.unique(part, return_inverse=True)[1]
    while part.max() > 0:
        size = np.bincount(part, share)
        smallest = int(np.argmin(size))
        if size[smallest] >= least:
            break
        neighbours = [i for i in (smallest - 1, smallest + 1) if 0 <= i < size.size]
        part[part == smallest] = min(neighbours, key=lambda i: size[i])
        part = np.unique(part, return_inverse=True)[1]  # numbered without gaps again
    return part


def stacked(parts: Sequence[Partition]) -> Floats:
    """Return what makes sums by all parts of one variable of sums by bin."""
    return np.concatenate([partition.matrix for partition in parts])
