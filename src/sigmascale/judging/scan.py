"""Scans find where z differs along a variable, at any scale, and by how much.

A variable is cut into fine bins, equal values together. Of a number, runs of
neighbouring bins of many lengths are compared with the rest of the rows; of labels,
each of them, and all sets that hold those with the smallest or the largest means. How
large differences are by chance is told by shuffled sets: if z has one law everywhere,
any row could have had the z-score of any other. The largest difference of a shuffled
set, over all regions of all variables, makes the intervals of all regions hold at once.

Three things are compared: the mean of z² (uncertainties too small or too large, by the
likelihood ratio of the gamma law), the mean of z (bias), and the share of errors within
limits that hold the same share of all (coverage).

What u and the features say together is one more variable: the z² that small trees
expect, which have learned from other rows.

References
----------
P. H. Westfall and S. S. Young, Resampling-Based Multiple Testing (1993);
L. Dümbgen and V. G. Spokoiny, Ann. Statist. 29, 124 (2001).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._support.checks import Floats, Ints
from .._support.labels import Categories, label_text
from .._support.weights import mean_of, quantile_of, some_of, spread_of, total_of
from ..bins.partitions import EqualSizeBins, LabelBins
from ..predictions import Predictions
from ..scaling.crossfit import make_folds
from .references import shuffled_rows
from .regions import label_words, range_words
from .validation import BIAS, COVERAGE, JOINT, LocalFactors

FEWEST_BINS, MOST_BINS, ROWS_OF_A_BIN = 50, 400, 100  # of a number; the latter if many
LEAST_ROWS, ENOUGH_ROWS = 10, 100  # of a run: at least, and what is never asked for
LEAST_SHARE, FINE_SHARE = 0.08, 0.0025  # of few rows, and of many
RARE = "rare labels"
RARE_ROWS = 20  # labels, and values of a number, with fewer are no region
SCALES = (0.02, 0.08, 0.25)  # shares between which runs share a critical value
STEPS = 6  # runs of a length start at so many places within that length
AT_ONCE, IN_CACHE = 2**20, 2**15  # numbers that are shuffled, and compared, at a time
EXACT_ROWS = 5000  # of more rows, bin sums are drawn rather than rows
LARGEST, LARGEST_SHARE = 1000, 0.05  # z-scores that are drawn one by one, even then
DRAWN_AT_ONCE = 50  # sets
MOST_SHUFFLED = 50_000  # rows with weights or groups; of more, some are taken
N_FOLDS, LEAST_LEARNED = 2, 60  # folds, and fewest rows, of trees
N_TREES, N_LEAVES, RATE = 40, 8, 0.15
BEHIND = 0.7  # by which some statistics count less, in their spread
LONG = 2  # the scale from which runs count in full
CAP = 12.0  # times the mean; of larger z², so much is compared
TENTH, FLAG = 0.1, 0.05  # share of the rows, or of a label, that a yes is about

Some = npt.NDArray[np.bool_]  # which of the bins


@dataclass(frozen=True, eq=False)
class ScannedVariable:
    """A variable in fine bins.

    Attributes
    ----------
    name : str
        The variable; "u" is the uncertainty.
    codes : array of int, shape (n,)
        The bin of each row.
    sizes : array of shape (n_bins,)
        Rows of each bin, or their weight.
    weights : array of shape (n,), or None
        The weights of the rows.
    low, high : array of shape (n_bins,), or None
        The smallest and the largest number of each bin.
    labels : tuple of str, or None
        What each bin of labels is called.
    every : bool
        Whether all runs are looked at, to tell where one ends.
    """

    name: str
    codes: Ints
    sizes: Floats
    weights: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
    labels: tuple[str, ...] | None = None
    every: bool = False

    @classmethod
    def of(
        cls, name: str, x: Floats | Categories, weights: Floats | None = None
    ) -> ScannedVariable:
        """Cut a variable into fine bins; equal values are never parted."""
        total = total_of(x.size, weights)
        low = high = names = None
        if isinstance(x, np.ndarray):
            n_bins = max(2, min(FEWEST_BINS, total // 5), total // ROWS_OF_A_BIN)
            n_bins = int(min(n_bins, MOST_BINS))
            limits = EqualSizeBins.quantiles(x, n_bins, weights).limits
            codes = np.searchsorted(limits, x, side="right")
            counts = np.bincount(codes, minlength=limits.size + 1)
            codes = (np.cumsum(counts > 0) - 1)[codes]
            low, high = np.full((2, int(codes.max()) + 1), np.inf)
            np.minimum.at(low, codes, x)
            np.minimum.at(high, codes, -x)
            high = -high
        else:
            bins = LabelBins.learn(
                x, min_size=int(np.ceil(_fewest(total))), weights=weights
            )
            found, codes = np.unique(bins.codes(x), return_inverse=True)
            every = [*map(label_text, bins.labels), RARE]
            names = tuple(every[code] for code in found)
        sizes = np.bincount(codes, weights).astype(np.float64)
        return cls(name, codes, sizes, weights, low, high, names)

    def coarser(self) -> ScannedVariable:
        """Return the variable in fewer bins, if there are more than of few rows."""
        step = -(-self.n_bins // FEWEST_BINS)
        if self.low is None or self.high is None or step == 1:
            return self
        first = np.arange(0, self.n_bins, step)
        return replace(
            self,
            codes=self.codes // step,
            sizes=np.add.reduceat(self.sizes, first),
            low=self.low[first],
            high=np.maximum.reduceat(self.high, first),
        )

    @property
    def n_bins(self) -> int:
        """The number of fine bins."""
        return self.sizes.size

    def sums(self, values: Floats) -> Floats:
        """Return sums by bin."""
        weights = 1.0 if self.weights is None else self.weights
        return np.asarray(
            np.bincount(self.codes, weights * values, self.n_bins), dtype=np.float64
        )

    @cached_property
    def is_value(self) -> Some:
        """Which bins have one value, or are a label."""
        if self.low is None or self.high is None:
            return np.ones(self.n_bins, dtype=np.bool_)
        is_value: Some = self.low == self.high
        return is_value

    @cached_property
    def runs(self) -> tuple[Ints, Ints, Ints]:
        """Where runs start and end, and their scales, which ascend.

        Those of numbers have enough rows, and leave enough; a single value may have
        fewer. Labels are in the order of their means: a run is one of them, or those
        with the smallest.
        """
        n_bins, length = self.n_bins, 1
        if self.low is None:
            every = np.arange(n_bins)
            start = np.append(every, np.zeros(max(0, n_bins - 2), dtype=np.int64))
            stop = np.append(every + 1, every[2:])
            return start, stop, np.zeros(start.size, dtype=np.int64)
        ends = np.append(0, np.cumsum(self.sizes))
        total = float(ends[-1])
        least = max(min(ENOUGH_ROWS, LEAST_SHARE * total), FINE_SHARE * total)
        starts, stops = [], []
        while length < n_bins:
            step = 1 if self.every else max(1, length // STEPS)
            start = np.arange(0, n_bins - length + 1, step)
            rows = ends[start + length] - ends[start]
            rows = np.minimum(rows, total - rows)
            fits = rows >= max(LEAST_ROWS, least)
            if length == 1:
                fits |= self.is_value & (rows >= _fewest(total))
            starts.append(start[fits])
            stops.append(start[fits] + length)
            length += 1 if self.every else max(1, length // 4)
        start, stop = np.concatenate(starts), np.concatenate(stops)
        share = (ends[stop] - ends[start]) / total
        scale = np.searchsorted(SCALES, np.minimum(share, 1 - share), side="right")
        order = np.argsort(scale, kind="stable")
        return start[order], stop[order], scale[order]

    @cached_property
    def scales(self) -> tuple[Ints, Ints]:
        """The scales of runs, and the first run of each."""
        return np.unique(self.runs[2], return_index=True)

    def summed(self, values: Floats) -> Floats:
        """Return the sums of all runs, of bins in rows and sets in columns."""
        start, stop, _ = self.runs
        ends = np.concatenate([np.zeros_like(values[:1]), np.cumsum(values, axis=0)])
        result: Floats = ends[stop] - ends[start]
        return result

    def largest(self, sums: Floats, measure: Measure) -> Floats:
        """Return how much runs differ from the rest, at most, of each scale and set.

        Sets are columns of `sums`, of which some are taken at a time.
        """
        bounds, n = [*self.scales[1], None], float(self.sizes.sum())
        found = np.empty((len(bounds) - 1, sums.shape[1]))
        block = max(1, IN_CACHE // (1 + self.runs[0].size))
        for first in range(0, sums.shape[1], block):
            some = np.ascontiguousarray(sums[:, first : first + block])
            sizes = self.sizes[:, None]
            if self.low is None:
                order = np.argsort(some / sizes, axis=0)
                some, sizes = np.take_along_axis(some, order, 0), self.sizes[order]
            n1, s1 = self.summed(sizes), self.summed(some)
            ratios = measure.ratios(n1, s1, n, some.sum(axis=0))
            for scale, (low, high) in enumerate(itertools.pairwise(bounds)):
                found[scale, first : first + block] = ratios[low:high].max(axis=0)
        return found

    def is_region(self, inside: Some) -> bool:
        """Return whether bins are neighbours, or labels."""
        return self.low is None or bool(np.count_nonzero(np.diff(inside)) == 1)

    def sides(self, inside: Some) -> Some:
        """Return as many bins on each side of a run; labels have no sides."""
        sides = np.zeros_like(inside)
        if self.low is not None:
            at = np.flatnonzero(inside)
            sides[max(0, at[0] - at.size) : at[-1] + 1 + at.size] = True
        return sides & ~inside

    def words(self, inside: Some) -> tuple[str, Any, Any]:
        """Return bins in words, and their limits."""
        at = np.flatnonzero(inside)
        if self.labels is not None:
            names = [self.labels[i] for i in at]
            return label_words(self.name, names), names[0], names[-1]
        assert self.low is not None
        assert self.high is not None
        low = float(self.low[at[0]]) if at[0] > 0 else None
        high = float(self.high[at[-1]]) if at[-1] < self.n_bins - 1 else None
        return range_words(self.name, low, high), low, high


def _fewest(total: float) -> float:
    """Return the rows that a label, or a value, must have to be looked at by itself."""
    return max(RARE_ROWS, FINE_SHARE * total)


class Scale:
    """Compares the means of z², as ratios: a number above 1 asks for a larger u."""

    unlimited = (0.0, np.inf)

    def ratios(self, n1: Floats, s1: Floats, n: float, total: Any) -> Floats:
        """Return the likelihood ratio of every region and the rest, of every set.

        With m the mean z² of all n rows, m₁ of the n₁ rows of a region and m₂ of the
        rest, it is −n₁ ln(m₁/m) − n₂ ln(m₂/m).
        """
        n2 = n - n1
        s1 = s1 * (n / np.maximum(total, 1e-300))  # in units of the mean
        # a region without any error counts as one with half of an average z²
        ratios = np.log(np.maximum(s1, 0.5) / n1)
        ratios *= -n1
        ratios -= n2 * np.log(np.maximum(n - s1, 0.5) / n2)
        return ratios

    def limits(
        self, n1: Floats, s1: Floats, n: float, total: float, critical: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return the factors of u, relative to the average, with their limits.

        If the mean of a region is θ times that of the rest, dividing its z² by θ leaves
        a set without any difference: θ is within the limits where the likelihood ratio
        of that set, n ln(p t + q) − n p ln t with t = m₁ / (m₂ θ), is not critical.
        """
        p, q = n1 / n, 1 - n1 / n
        t = np.maximum(s1 / n1, 0.5 * total / n / n1)
        t = t / np.maximum((total - s1) / (n - n1), 0.5 * total / n / (n - n1))
        wanted = critical / n
        found = []
        for y in ((wanted - np.log(p)) / q, (np.log(q) - wanted) / p):
            for _ in range(20):  # Newton's steps, from beyond the root of a convex f
                e = np.exp(y)
                f = np.log(p * e + q) - p * y - wanted
                y = y - f * (p * e + q) / (p * q * np.expm1(y))
            found.append(t * np.exp(np.minimum(-y, 600)))  # or it might overflow
        low, high = (np.sqrt(x / (p * x + q)) for x in found)
        return np.sqrt(t / (p * t + q)), low, high

    def value(self, n1: Floats, s1: Floats, n: float, total: float) -> Floats:
        """Return the factors of u."""
        s1 = np.maximum(s1, 0.5 * total / n)  # of a region without any error
        value: Floats = np.sqrt(s1 / n1 / (total / n))
        return value


class Shift:
    """Compares the means of something, as differences, in units of their spread."""

    unlimited = (-np.inf, np.inf)

    def __init__(self, variance: float) -> None:
        self.variance = max(variance, 1e-300)

    def ratios(self, n1: Floats, s1: Floats, n: float, total: Any) -> Floats:
        """Return squared differences from the mean, in units of their variance."""
        ratios: Floats = s1 - n1 * (total / n)
        ratios *= ratios
        ratios *= n / (self.variance * n1 * (n - n1))
        return ratios

    def limits(
        self, n1: Floats, s1: Floats, n: float, total: float, critical: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return differences from the mean of all, with their limits."""
        off = self.value(n1, s1, n, total)
        half = np.sqrt(critical * self.variance * (n - n1) / (n1 * n))
        return off, off - half, off + half

    def value(self, n1: Floats, s1: Floats, n: float, total: float) -> Floats:
        """Return differences from the mean of all."""
        return s1 / n1 - total / n


Measure = Scale | Shift


class Wrong(NamedTuple):
    """The bins of a region, its mean, its limits, and how much more than critical."""

    inside: Some
    value: float
    low: float
    high: float
    excess: float


@dataclass(frozen=True, eq=False)
class Band:
    """Intervals that hold at once, of all regions of a variable.

    Attributes
    ----------
    variable : ScannedVariable
        The variable.
    what : str
        What is compared: "z2", "z" or the name of limits.
    sums : array of shape (n_bins,)
        The same, summed by bin, without what the largest z² exceed a cap by.
    all_sums : array of shape (n_bins,)
        The same with it.
    measure : Scale or Shift
        How it is compared.
    critical : array
        What differences exceed at the level of the test, by scale.
    """

    variable: ScannedVariable
    what: str
    sums: Floats
    all_sums: Floats
    measure: Measure
    critical: Floats

    @cached_property
    def _order(self) -> Ints:
        """Bins in the order in which neighbours make runs."""
        if self.variable.low is not None:
            return np.arange(self.variable.n_bins)
        return np.argsort(self.sums / self.variable.sizes)

    def _summed(self, values: npt.NDArray[Any]) -> Floats:
        return self.variable.summed(values[self._order, None])[:, 0]

    @cached_property
    def n(self) -> Floats:
        """The rows of each region."""
        return self._summed(self.variable.sizes)

    @cached_property
    def regions(self) -> tuple[Floats, Floats, Floats]:
        """The mean of each region relative to that of all, and its limits."""
        sums = self._summed(self.sums), self._summed(self.all_sums)
        return self._limits(self.n, *sums, self.critical[self.variable.runs[2]])

    def _limits(
        self, n1: Floats, s1: Floats, all_s1: Floats, critical: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return means with limits, which hold them whatever the cap has cut off."""
        n = float(self.variable.sizes.sum())
        _, low, high = self.measure.limits(n1, s1, n, float(self.sums.sum()), critical)
        value = self.measure.value(n1, all_s1, n, float(self.all_sums.sum()))
        return value, np.minimum(low, value), np.maximum(high, value)

    @cached_property
    def matters(self) -> Some:
        """Which regions are a tenth of the rows or more, or a label or value of 5 %."""
        start, stop, _ = self.variable.runs
        single = self.variable.is_value[self._order[start]] & (stop == start + 1)
        least = np.where(single, FLAG, 0.98 * TENTH)  # bins do not end at a tenth
        matters: Some = self.n >= least * self.variable.sizes.sum()
        return matters

    @cached_property
    def limits(self) -> tuple[float, float]:
        """Between which the means of all regions that matter are.

        Where some of about a tenth of the rows, or labels or values of 5 %, have too
        few rows to be looked at, there are no limits.
        """
        sizes, is_number = self.variable.sizes, self.variable.low is not None
        n, total = self.n[self.matters], float(sizes.sum())
        few = self.variable.is_value & (sizes < _fewest(total))
        if not is_number and FLAG * total < RARE_ROWS:
            few = np.array([name == RARE for name in self.variable.labels or ()])
        coarse = max(1.5 * TENTH * total, float(sizes.max()))
        if (
            not n.size
            or (is_number and n.min() > coarse)
            or (few & (sizes >= FLAG * total)).any()
        ):
            return self.measure.unlimited
        _, low, high = self.regions
        return float(low[self.matters].min()), float(high[self.matters].max())

    def picture(self) -> LocalFactors:
        """Return the factors of labels, or of runs that matter and hold no other."""
        variable = self.variable
        start, stop, _ = variable.runs
        if variable.low is None or variable.high is None:
            chosen = np.argsort(self._order)
            first = last = np.array(variable.labels, dtype=object)
        else:
            runs = np.flatnonzero(self.matters)
            runs = runs[np.lexsort((-stop[runs], start[runs]))]
            # the nearest end of all runs that start later, or there but are shorter
            later = np.minimum.accumulate(np.append(stop[runs], np.inf)[:0:-1])[::-1]
            chosen = runs[stop[runs] < later]
            first, last = variable.low[start[chosen]], variable.high[stop[chosen] - 1]
        limits = (each[chosen] for each in (self.n, *self.regions))
        return LocalFactors(variable.name, first, last, *limits)

    def wrong(self, most: int = 3) -> list[Wrong]:
        """Return regions that are not right, the worst first.

        Each differs from the rest even if those before it are left out. Runs of all
        lengths are looked at, to tell where one ends.
        """
        if self.variable.low is not None and not self.variable.every:
            fine = replace(self.variable, every=True)
            return replace(self, variable=fine).wrong(most)
        found: list[Wrong] = []
        sizes, sums, (start, stop, scale) = (
            self.variable.sizes,
            self.sums,
            self.variable.runs,
        )
        n1, s1, critical = self.n, self._summed(sums), self.critical[scale]
        n_all = float(sizes.sum())
        differ = self.measure.ratios(n1, s1, n_all, float(sums.sum())) > critical
        left = np.ones(sizes.size, dtype=np.bool_)
        while len(found) < most:
            n, total = float(sizes[left].sum()), sums[left].sum()
            free = np.flatnonzero(differ & (self._summed(~left * 1.0) == 0) & (n1 < n))
            excess = self.measure.ratios(n1[free], s1[free], n, total) - critical[free]
            if not free.size or excess.max() <= 0:
                break
            best = free[np.argmax(excess)]
            inside = np.zeros(sizes.size, dtype=np.bool_)
            inside[self._order[start[best] : stop[best]]] = True
            # of two parts that differ from each other, the smaller one is named
            if n1[best] > n_all / 2 and self.variable.is_region(~inside):
                inside = ~inside
            n_here, s_here, all_here = (
                each[inside].sum(keepdims=True) for each in (sizes, sums, self.all_sums)
            )
            limits = self._limits(n_here, s_here, all_here, critical[[best]])
            value, low, high = (float(each[0]) for each in limits)
            found.append(Wrong(inside, value, low, high, float(excess.max())))
            left &= ~inside
        return found


class Compared:
    """Statistics of a set, and of shuffled sets: many questions, one error rate.

    All statistics of a set come from the same shuffle, so that the distribution of the
    largest of them is known: each is in units of its spread by chance, of those of a
    question the largest counts, in units of its own spread again. So neither the number
    of scales dilutes a question, nor one with many variables the others; bias and
    coverage count less than the size.

    Parameters
    ----------
    questions : list of str, of length n_statistics
        The question that each statistic belongs to.
    observed : array of shape (n_statistics,)
        Statistics, at least 0.
    draws : array of shape (n_statistics, n_draws)
        The same of shuffled sets.
    level : float
        The chance that any question of a shuffled set exceeds its critical value.
    behind : array of shape (n_statistics,), optional
        By how much statistics count less, in their spread, to dilute others less.
    """

    def __init__(
        self,
        questions: list[str],
        observed: Floats,
        draws: Floats,
        level: float,
        behind: Floats | None = None,
    ) -> None:
        # cube roots of what is like chi-squared are about normal
        observed, draws = np.cbrt(observed), np.cbrt(draws)
        self._of = np.array(questions)
        self._mean, self._sd = _moments(draws)
        if behind is not None:
            self._mean = self._mean + behind * self._sd
        observed = (observed - self._mean) / self._sd
        draws = (draws - self._mean[:, None]) / self._sd[:, None]
        self.names = list(dict.fromkeys(questions))
        of_questions = [self._of == name for name in self.names]
        largest = np.array([draws[which].max(axis=0) for which in of_questions])
        self._centre, self._spread = _moments(largest)
        less = np.array([name in (BIAS, COVERAGE) for name in self.names])
        self._centre = self._centre + BEHIND * less * self._spread
        found = np.array([observed[which].max() for which in of_questions])
        found = (found - self._centre) / self._spread
        maxima = ((largest - self._centre[:, None]) / self._spread[:, None]).max(axis=0)
        maxima = np.sort(maxima)[::-1]
        exceeded = np.searchsorted(-maxima, -found, side="right")
        self.p = dict(zip(self.names, (1 + exceeded) / (1 + maxima.size), strict=True))
        # p is at most the level where a statistic is larger than this
        self._limit = maxima[int(level * (1 + maxima.size) + 1e-9) - 1]

    def critical(self, question: str, statistics: slice) -> Floats:
        """Return what statistics of a question exceed at the level of the test."""
        if not self._of[statistics].size:
            return np.empty(0)
        at = self.names.index(question)
        limit = self._centre[at] + self._spread[at] * self._limit
        found: Floats = (self._mean[statistics] + self._sd[statistics] * limit) ** 3
        return np.maximum(found, 0.0)


def _moments(draws: Floats) -> tuple[Floats, Floats]:
    return draws.mean(axis=1), np.maximum(draws.std(axis=1), 1e-9)


@dataclass(frozen=True, eq=False)
class Scan:
    """What a set and its shuffled copies have shown.

    Attributes
    ----------
    rows : Predictions
        The rows that were compared.
    bands : dict of str to list of Band
        The bands of each question.
    p : dict of str to float
        The chance that any question of a shuffled set looks as bad as this one.
    learned, log_factor : Predictions and array, or None
        Rows that trees have learned from, and the logarithm of what they expect of z².
    """

    rows: Predictions
    bands: dict[str, list[Band]]
    p: dict[str, float]
    learned: Predictions
    log_factor: Floats | None

    @classmethod
    def of(
        cls,
        rows: Predictions,
        held: Mapping[str, Some],
        n_draws: int,
        level: float,
        rng: np.random.Generator,
        most_learned: int,
    ) -> Scan:
        """Compare all that is asked, in a set and in shuffled ones.

        `held` are columns that say which errors lie within some limits. Trees learn
        from so many rows at most; of 0, nothing is asked jointly.
        """
        learned, log_factor = rows, None
        plain = rows.groups is None and rows.weights is None
        if rows.n_rows > MOST_SHUFFLED and not plain:
            some = _some_rows(rows, MOST_SHUFFLED, rng)
            rows = learned = rows.take(some)
            held = {name: x[some] for name, x in held.items()}
        elif rows.n_rows > most_learned > 0 and plain:
            learned = rows.take(_some_rows(rows, most_learned, rng))
        # one enormous error says little about the size of others
        cap = CAP * rows.mean(rows.z2)
        values = {"z2": np.minimum(rows.z2, cap), "z": rows.z}
        values |= {name: inside.astype(np.float64) for name, inside in held.items()}
        measures: dict[str, Measure] = {
            what: Shift(spread_of(x, rows.weights) ** 2) for what, x in values.items()
        }
        measures["z2"] = Scale()
        columns = zip(rows.names, rows.columns, rows.categories, strict=True)
        variables = [
            ScannedVariable.of(
                name, x if labels is None else Categories(x, labels), rows.weights
            )
            for name, x, labels in columns
        ]
        asked = [(each.name, "z2", each) for each in variables]
        coarse = [each.coarser() for each in variables]
        asked += [(BIAS, "z", each) for each in coarse]
        asked += [(COVERAGE, what, each) for what in held for each in coarse]
        if most_learned and (log_factor := learn_jointly(learned, rng)) is not None:
            jointly = ScannedVariable.of(JOINT, log_factor, learned.weights)
            asked.append((JOINT, "z2", jointly))
        asked = [each for each in asked if each[2].n_bins > 1]
        questions = [name for name, _, v in asked for _ in v.scales[0]]
        if not questions:
            return cls(rows, {}, {}, learned, log_factor)
        observed = [
            v.sums(np.minimum(learned.z2, cap) if name == JOINT else values[what])
            for name, what, v in asked
        ]
        is_large = plain and rows.n_rows > EXACT_ROWS
        sets = (_drawn_sums if is_large else _shuffled_sums)(
            rows, values, [(what, v) for _, what, v in asked], n_draws, rng
        )
        own, *draws = (
            np.concatenate(
                [
                    v.largest(x, measures[what])
                    for (_, what, v), x in zip(asked, sums, strict=True)
                ]
            )
            for sums in itertools.chain([[x[:, None] for x in observed]], sets)
        )
        # short runs, which are found if they are far off
        behind = [
            BEHIND * (v.low is not None and scale < LONG)
            for _, _, v in asked
            for scale in v.scales[0]
        ]
        compared = Compared(
            questions,
            own[:, 0],
            np.concatenate(draws, axis=1),
            level,
            np.array(behind),
        )
        bands: dict[str, list[Band]] = {name: [] for name, *_ in asked}
        first = 0
        for (name, what, v), sums in zip(asked, observed, strict=True):
            last = first + v.scales[0].size
            critical = np.full(len(SCALES) + 1, np.inf)
            critical[v.scales[0]] = compared.critical(name, slice(first, last))
            as_is = sums
            if what == "z2":
                as_is = v.sums(learned.z2 if name == JOINT else rows.z2)
            bands[name].append(Band(v, what, sums, as_is, measures[what], critical))
            first = last
        return cls(rows, bands, compared.p, learned, log_factor)


Asked = list[tuple[str, ScannedVariable]]  # what is summed, and by which bins


def _shuffled_sums(
    rows: Predictions,
    values: Mapping[str, Floats],
    asked: Asked,
    n_draws: int,
    rng: np.random.Generator,
) -> Iterator[list[Floats]]:
    """Yield sums by bin of shuffled rows, some sets at a time, a set a column."""
    weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    ends = np.arange(rows.n_rows + 1)
    gather = {
        (v.name, v.n_bins): sparse.csc_array(
            (weights, v.codes, ends), (v.n_bins, rows.n_rows)
        )
        for _, v in asked
    }
    draw = shuffled_rows(rows.n_rows, rows.groups, rng)
    block = int(np.clip(AT_ONCE // rows.n_rows, 1, 64))
    for first in range(0, n_draws, block):
        count = min(block, n_draws - first)
        sources = np.column_stack([draw() for _ in range(count)])
        shuffled = {what: x[sources] for what, x in values.items()}
        yield [gather[v.name, v.n_bins] @ shuffled[what] for what, v in asked]


def _drawn_sums(
    rows: Predictions,
    values: Mapping[str, Floats],
    asked: Asked,
    n_draws: int,
    rng: np.random.Generator,
) -> Iterator[list[Floats]]:
    """Yield sums by bin as of shuffled rows, of so many that rows need not be touched.

    The largest z-scores are put into the bins of random rows. What all others add to a
    bin is normal; of shares, binomial. Sums are drawn by themselves, which makes the
    largest of all statistics a little larger if they have something in common.
    """
    n_top = min(LARGEST, int(LARGEST_SHARE * rows.n_rows))
    top = np.argpartition(rows.z2, rows.n_rows - n_top)[-n_top:]
    others = np.ones(rows.n_rows, dtype=np.bool_)
    others[top] = False
    body = {what: (x[others].mean(), x[others].std()) for what, x in values.items()}

    def drawn(what: str, v: ScannedVariable, count: int) -> Floats:
        shape, n_rows, sizes = (v.n_bins, count), v.codes.size, v.sizes[:, None]
        if what not in ("z2", "z"):
            share = values[what].mean()
            counts = rng.binomial(sizes.astype(np.int64), share, shape)
            return counts.astype(np.float64)
        here = np.arange(count * n_top)
        if n_rows < rows.n_rows:  # what trees have learned from gets some of them
            here = here[rng.random(here.size) < n_rows / rows.n_rows]
        cells = v.codes[rng.integers(n_rows, size=here.size)] * count + here // n_top
        number = np.bincount(cells, minlength=v.n_bins * count).reshape(shape)
        left, (mean, spread) = np.maximum(0.0, sizes - number), body[what]
        largest = values[what][top][here % n_top]
        sums = np.bincount(cells, largest, v.n_bins * count).reshape(shape)
        noise = np.sqrt(left) * rng.standard_normal(shape)
        result: Floats = sums + left * mean + spread * noise
        return result

    for first in range(0, n_draws, DRAWN_AT_ONCE):
        count = min(DRAWN_AT_ONCE, n_draws - first)
        yield [drawn(what, v, count) for what, v in asked]


def learn_jointly(rows: Predictions, rng: np.random.Generator) -> Floats | None:
    """Return the logarithm of the z² that trees expect of rows they have not seen.

    It is relative to the average; None where there is nothing to learn from.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    table, categorical = numeric_table(rows)
    if rows.n_rows < LEAST_LEARNED or not table.shape[1]:
        return None
    if not rows.z2.any():
        return None
    z2 = rows.z2 / rows.mean(rows.z2)
    # one enormous error teaches nothing about other rows
    target = np.minimum(z2, quantile_of(z2, 0.99, rows.weights) + 1)
    fold = make_folds(z2, N_FOLDS, rng, rows.groups, rows.weights)
    log_factor = np.zeros(rows.n_rows)
    for k in range(N_FOLDS):
        seen, unseen = fold != k, fold == k
        if not seen.any() or not unseen.any() or not target[seen].any():
            continue
        learner = HistGradientBoostingRegressor(
            loss="poisson",
            learning_rate=RATE,
            max_iter=N_TREES,
            max_leaf_nodes=N_LEAVES,
            min_samples_leaf=max(10, int(np.count_nonzero(seen)) // 50),
            l2_regularization=5.0,
            categorical_features=categorical,
            early_stopping=False,
            random_state=0,
        )
        with threadpool_limits(1):  # threads that wait for each other cost more
            learner.fit(table[seen], target[seen], some_of(rows.weights, seen))
            predicted = learner.predict(table[unseen])
        mean = mean_of(predicted, some_of(rows.weights, unseen))
        log_factor[unseen] = np.log(np.maximum(predicted / mean, 1e-3))
    return log_factor


def numeric_table(rows: Predictions) -> tuple[Floats, list[int]]:
    """Return the columns as numbers, and which of them are codes of labels."""
    columns, categorical = [], []
    for column in rows.columns:
        if column.dtype.kind == "f":
            columns.append(column)
            continue
        labels, codes, counts = np.unique(
            column, return_inverse=True, return_counts=True
        )
        frequent = np.argsort(-counts, kind="stable")[:200]
        number = np.full(labels.size, np.nan)  # rare labels are as good as missing
        number[frequent] = np.arange(frequent.size)
        categorical.append(len(columns))
        columns.append(number[codes])
    useful = [i for i, x in enumerate(columns) if np.nanmin(x) < np.nanmax(x)]
    kept = [useful.index(i) for i in categorical if i in useful]
    return np.column_stack(
        [columns[i] for i in useful] or [np.empty((rows.n_rows, 0))]
    ), kept


def _some_rows(rows: Predictions, most: int, rng: np.random.Generator) -> Ints:
    """Return some of the rows, whole groups of them."""
    if rows.groups is None:
        return np.sort(rng.choice(rows.n_rows, most, replace=False))
    labels, codes, counts = np.unique(
        rows.groups, return_inverse=True, return_counts=True
    )
    order = rng.permutation(labels.size)
    chosen = np.zeros(labels.size, dtype=np.bool_)
    chosen[order[np.cumsum(counts[order]) <= most]] = True
    return np.flatnonzero(chosen[codes])


def describe_region(rows: Predictions, log_factor: Floats, factor: float) -> str:
    """Return where trees expect u to be too small (a factor above 1), or too large.

    It is the region of a few splits that what they expect differs most for.
    """
    from sklearn.tree import DecisionTreeRegressor

    numbers = [i for i, labels in enumerate(rows.categories) if labels is None]
    table = np.column_stack([rows.columns[i] for i in numbers])
    least = max(10, rows.n_rows // 50)
    model = DecisionTreeRegressor(max_depth=3, min_samples_leaf=least, random_state=0)
    expected = model.fit(table, log_factor, rows.weights).predict(table)
    row = table[[np.argmax(expected) if factor > 1 else np.argmin(expected)]]
    limits: dict[str, list[float | None]] = {}
    for node in model.decision_path(row).indices[:-1]:
        at, limit = model.tree_.feature[node], float(model.tree_.threshold[node])
        # splits come from the root: a later one is the narrower
        ends = limits.setdefault(rows.names[numbers[at]], [None, None])
        ends[int(row[0, at] <= limit)] = limit
    return " and ".join(range_words(name, *x) for name, x in limits.items())
