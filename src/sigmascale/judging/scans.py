"""Scans find where z differs along a variable, at any scale.

A variable is cut into fine bins, equal values together. Of a number, all runs of
neighbouring bins of many lengths are compared with the rest of the rows; of labels, all
sets that hold the labels with the smallest or the largest mean. The largest difference
is the statistic, whatever its place. How large it is by chance is told by shuffled
sets: in a calibrated set, any row could have had the z-score of any other.

Three things are compared: the mean of z² (uncertainties too small or too large, by the
likelihood ratio of the gamma law), the mean of z (bias), and the share of errors beyond
the limits that hold 95 % of all (coverage).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._support.checks import Floats, Ints
from .._support.labels import Categories, label_text
from .._support.weights import quantile_of, total_of
from ..bins.partitions import EqualSizeBins, LabelBins
from ..predictions import Predictions

FINE_BINS, ROWS_OF_A_BIN = 50, 5  # of a number: at most, and at least
LENGTHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40)  # of runs, in bins
LEAST_SHARE, LEAST_ROWS = 0.08, 10  # of the rows that a run must have
RARE_ROWS, RARE_SHARE = 20, 0.005  # labels with fewer rows share a bin
AT_ONCE = 2**21  # numbers that are shuffled at a time


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
    low, high : array of shape (n_bins,), or None
        The smallest and the largest number of each bin.
    labels : list of str, or None
        What each bin of labels is called.
    """

    name: str
    codes: Ints
    sizes: npt.NDArray[Any]
    low: Floats | None = None
    high: Floats | None = None
    labels: tuple[str, ...] | None = None

    @classmethod
    def of(
        cls, name: str, x: Floats | Categories, weights: Floats | None = None
    ) -> ScannedVariable:
        """Cut a variable into fine bins; equal values are never parted."""
        total = total_of(x.size, weights)
        if isinstance(x, np.ndarray):
            n_bins = int(np.clip(total // ROWS_OF_A_BIN, 2, FINE_BINS))
            codes = EqualSizeBins.quantiles(x, n_bins, weights).codes(x)
            codes = np.unique(codes, return_inverse=True)[1]
            sizes = np.bincount(codes, weights)
            low, high = np.full(sizes.size, np.inf), np.full(sizes.size, -np.inf)
            np.minimum.at(low, codes, x)
            np.maximum.at(high, codes, x)
            return cls(name, codes, sizes, low, high)
        least = max(RARE_ROWS, int(RARE_SHARE * total))
        bins = LabelBins.learn(x, min_size=least, weights=weights)
        codes = bins.codes(x)
        found, codes = np.unique(codes, return_inverse=True)
        names = [*map(label_text, bins.labels), "rare labels"]
        return cls(
            name,
            codes,
            np.bincount(codes, weights),
            labels=tuple(names[code] for code in found),
        )

    @property
    def n_bins(self) -> int:
        """The number of fine bins."""
        return self.sizes.size

    @cached_property
    def runs(self) -> tuple[Ints, Ints]:
        """Where runs start and end that have enough rows, and leave enough."""
        ends = np.append(0, np.cumsum(self.sizes))
        n_rows = float(ends[-1])
        least = max(LEAST_ROWS, LEAST_SHARE * n_rows)
        starts, stops = [], []
        for length in LENGTHS:
            start = np.arange(max(0, self.n_bins - length + 1))
            rows = ends[start + length] - ends[start]
            fits = (rows >= least) & (n_rows - rows >= least)
            starts.append(start[fits])
            stops.append(start[fits] + length)
        return np.concatenate(starts), np.concatenate(stops)

    def candidates(self, sums: Floats) -> tuple[Floats, Floats]:
        """Return rows and sums of all regions, of sets in rows and bins in columns.

        Regions of labels are those with the smallest means of what is summed.
        """
        if self.labels is None:
            start, stop = self.runs
            ends = np.append(0, np.cumsum(self.sizes))
            total = np.concatenate(
                [np.zeros((sums.shape[0], 1)), np.cumsum(sums, axis=1)], axis=1
            )
            rows = (ends[stop] - ends[start]).astype(np.float64)
            return np.broadcast_to(rows, (sums.shape[0], rows.size)), (
                total[:, stop] - total[:, start]
            )
        order = np.argsort(sums / self.sizes, axis=1, kind="stable")[:, :-1]
        return (
            np.cumsum(self.sizes[order], axis=1).astype(np.float64),
            np.cumsum(np.take_along_axis(sums, order, 1), axis=1),
        )


def variance_scan(variable: ScannedVariable, sums: Floats) -> Floats:
    """Return, for each set, the largest likelihood ratio of a region and the rest.

    With m the mean z² of all n rows, m₁ of the n₁ rows of a region and m₂ of the rest,
    it is −n₁ ln(m₁/m) − n₂ ln(m₂/m): twice as much is chi-squared for exponential z²,
    and about the same as chi-squared, with one degree of freedom, for normal z.
    """
    ratio = variance_ratios(variable, sums)
    return ratio.max(axis=1) if ratio.shape[1] else np.zeros(sums.shape[0])


def variance_ratios(variable: ScannedVariable, sums: Floats) -> Floats:
    """Return the likelihood ratio of every region of every set."""
    n1, s1 = variable.candidates(sums)
    n, total = float(variable.sizes.sum()), sums.sum(axis=1, keepdims=True)
    n2, s2 = n - n1, total - s1
    mean = total / n
    # a region without any error counts as one with half of an average z²
    m1 = np.maximum(s1 / n1 / mean, 0.5 / n1)
    m2 = np.maximum(s2 / n2 / mean, 0.5 / n2)
    result: Floats = -n1 * np.log(m1) - n2 * np.log(m2)
    return result


def shift_scan(variable: ScannedVariable, sums: Floats, variance: float) -> Floats:
    """Return, for each set, the largest squared difference of a region and the rest.

    In units of its variance by chance; of values that have the mean 0, or the same
    values of which each has lost the mean.
    """
    ratio = shift_ratios(variable, sums, variance)
    return ratio.max(axis=1) if ratio.shape[1] else np.zeros(sums.shape[0])


def shift_ratios(variable: ScannedVariable, sums: Floats, variance: float) -> Floats:
    """Return the squared difference of every region of every set."""
    n1, s1 = variable.candidates(sums)
    n = float(variable.sizes.sum())
    # shuffled values of weighted rows have another mean than 0
    s1 = s1 - n1 * (sums.sum(axis=1, keepdims=True) / n)
    result: Floats = s1**2 / (max(variance, 1e-300) * n1 * (n - n1) / n)
    return result


class ScannedRows:
    """All variables of a set, and sums by their bins, as they are or shuffled."""

    def __init__(self, rows: Predictions, variables: Sequence[ScannedVariable]) -> None:
        self.variables = variables
        z = rows.errors / rows.uncertainty
        size = np.abs(z)
        # the multiple of u that holds 95 %
        self.reach = quantile_of(size, 0.95, rows.weights)
        outside = (size > self.reach).astype(np.float64)
        self.weights = rows.weights
        self.values = {
            "z2": z * z,
            "z": z - rows.mean(z),
            "outside": outside - rows.mean(outside),
        }
        ends = np.cumsum([variable.n_bins for variable in variables])
        self._slices = [
            slice(end - variable.n_bins, end)
            for end, variable in zip(ends, variables, strict=True)
        ]
        # one sparse product sums over the bins of all variables at once
        codes = np.column_stack(
            [
                v.codes + part.start
                for v, part in zip(variables, self._slices, strict=True)
            ]
        )
        n_rows, n_variables = codes.shape
        one = np.ones(n_rows) if rows.weights is None else rows.weights
        self._gather = sparse.csc_array(
            (
                np.repeat(one, n_variables),
                codes.ravel().astype(np.int32),
                n_variables * np.arange(n_rows + 1, dtype=np.int32),
            ),
            shape=(int(ends[-1]), n_rows),
        )

    def means(self, values: Floats) -> Any:
        """Return the mean of values of all rows, of each set in columns if weighted.

        Shuffling changes the mean of weighted rows only.
        """
        if self.weights is None:
            return float(self.values["z2"].mean()) or 1.0
        return np.maximum(self.weights @ values / self.weights.sum(), 1e-300)

    def sums(self, values: Floats) -> list[Floats]:
        """Return the sums of each variable's bins, of sets in columns of `values`."""
        found = self._gather @ values
        return [found[part].T for part in self._slices]

    def shuffled(
        self, draw: Callable[[], npt.NDArray[np.uint32]], n_draws: int
    ) -> Iterator[npt.NDArray[np.uint32]]:
        """Yield blocks of shuffled rows, sets in columns."""
        n_rows = self.values["z2"].size
        block = int(np.clip(AT_ONCE // n_rows, 1, 64))
        for first in range(0, n_draws, block):
            count = min(block, n_draws - first)
            yield np.column_stack([draw() for _ in range(count)])
