"""Split conformal prediction: limits of the error with a coverage guarantee.

The z-scores of n rows that the recalibrator has not seen and the z-score of a new row
are exchangeable: the new one is equally likely to take any of the n + 1 ranks. Limits
at the right ranks of the n therefore cover it with at least the probability asked for,
whatever the distribution of errors, and whether or not uncertainties are right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.checks import Floats, Ints
from .._support.labels import Categories, label_text
from .._support.notices import warn
from ..bins.partitions import BinnedRows, LabelBins
from ..exceptions import InfiniteIntervalWarning, InvalidInputError

_SHOWN = 5  # categories that a warning names


def symmetric_rank(n: int, level: float) -> int:
    """Return which of n sorted sizes |z| is the limit; n + 1 stands for infinity.

    Of 20 × 0.9 = 18.000000000000004, the next integer would be 19: it is rounded first.
    """
    return math.ceil(round((n + 1) * level, 9))


def asymmetric_ranks(n: int, level: float) -> tuple[int, int]:
    """Return which of n sorted z are the limits; 0 and n + 1 stand for infinity."""
    low = math.floor(round((n + 1) * (1 - level) / 2, 9))
    return low, n + 1 - low


def rows_needed(level: float, *, asymmetric: bool) -> int:
    """Return the least number of rows that gives finite limits."""
    tail = (1 - level) / 2 if asymmetric else 1 - level
    return math.ceil(round(1 / tail, 6)) - 1


def at_weight(values: Floats, weights: Floats, share: float) -> float:
    """Return the value up to which rows have a share of all weight, a new row's too.

    A new row weighs 1, which is what new rows weigh on average: (Σw² / Σw) in the unit
    of weights. Where the rows have less than the share, it is infinite.
    """
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(weights[order])
    wanted = float(ends[-1] + 1) * share
    # rounding must not ask for one row more
    rank = int(np.searchsorted(ends, wanted - 1e-9 * wanted))
    return float(values[order[rank]]) if rank < values.size else np.inf


def weights_in_groups(groups: Ints, weights: Floats | None) -> Floats:
    """Return weights of rows of which each group has that of one row.

    A group of weighted rows has the mean weight of its rows, in a unit in which a new
    group weighs 1 on average.
    """
    _, codes = np.unique(groups, return_inverse=True)
    w = np.ones(codes.size) if weights is None else weights
    totals, sizes = np.bincount(codes, w), np.bincount(codes)
    means = totals / sizes
    unit = means.sum() / np.sum(means**2)
    return np.asarray(w * (unit * means / totals)[codes])


@dataclass(frozen=True)
class ConformalScores:
    """The z-scores of held-out rows, sorted, for all rows together or by category.

    Attributes
    ----------
    z : array of shape (n,)
        Recalibrated z-scores, those of one category after those of another.
    sizes : array of int
        Rows of each category; one number if there are no categories.
    categories : LabelBins or None
        The labels, in the order of `sizes`.
    weights : array of shape (n,) or None
        Of the rows, in the order of `z`.
    """

    z: Floats
    sizes: Ints
    categories: LabelBins | None = None
    weights: Floats | None = None

    @classmethod
    def learn(
        cls,
        error: Floats,
        uncertainty: Floats,
        labels: Categories | None,
        weights: Floats | None = None,
        groups: Ints | None = None,
    ) -> ConformalScores:
        """Gather the z-scores of checked rows; those of a group count as one row."""
        with np.errstate(over="ignore"):  # an infinite score is a score like any other
            z = error / uncertainty
        if groups is not None:
            inside = groups
            if labels is not None:  # a group in two categories is two
                inside = groups + labels.codes * (groups.max() + 1)
            weights = weights_in_groups(inside, weights)
        if labels is None:
            if weights is None:
                return cls(np.sort(z), np.array([z.size]))
            order = np.argsort(z, kind="stable")
            return cls(z[order], np.array([z.size]), None, weights[order])
        categories = LabelBins.learn(labels)
        codes = categories.codes(labels)
        sizes = BinnedRows.from_codes(codes, len(categories.labels)).sizes
        order = np.lexsort((z, codes))
        return cls(
            z[order], sizes, categories, None if weights is None else weights[order]
        )

    @property
    def is_sound(self) -> bool:
        """Whether the parts fit together, for those that come from a file."""
        categories: Any = self.categories
        arrays: tuple[Any, ...] = (self.z, self.sizes)
        if not isinstance(categories, LabelBins | None) or not all(
            isinstance(each, np.ndarray) and each.ndim == 1 for each in arrays
        ):
            return False
        n_categories = 1 if self.categories is None else len(self.categories.labels)
        return bool(
            self.z.dtype == np.float64
            and self.sizes.dtype == np.int64
            and self.sizes.size == n_categories
            and ((self.sizes > 0) & (self.sizes <= self.z.size)).all()
            and self.sizes.sum() == self.z.size
            and all((z[1:] >= z[:-1]).all() for z in self._by_category(self.z))
            and self._weights_are_sound
        )

    @property
    def _weights_are_sound(self) -> bool:
        weights: Any = self.weights
        return weights is None or bool(
            isinstance(weights, np.ndarray)
            and weights.shape == self.z.shape
            and weights.dtype == np.float64
            and (np.isfinite(weights) & (weights > 0)).all()
        )

    def _by_category(self, values: Floats) -> list[Floats]:
        return np.split(values, np.cumsum(self.sizes)[:-1])

    @property
    def counts(self) -> Ints:
        """Rows of each category; of weighted ones, the sum of their weights."""
        if self.weights is None:
            return self.sizes
        totals = [each.sum() for each in self._by_category(self.weights)]
        return np.floor(np.array(totals) * (1 + 1e-9)).astype(np.int64)

    def interval(
        self,
        uncertainty: Floats,
        level: float,
        *,
        asymmetric: bool,
        labels: Categories | None,
    ) -> Floats:
        """Return the limits of the errors of checked rows, shape (n, 2)."""
        self.refuse_other_categories(labels)
        limits = self.limits(level, asymmetric=asymmetric)
        if self.categories is None or labels is None:
            codes = np.zeros(uncertainty.size, dtype=np.int64)
        else:
            codes = self.categories.codes(labels)
        self._warn_of_infinite(codes, labels, level, asymmetric=asymmetric)
        with np.errstate(over="ignore"):
            result: Floats = limits[codes] * uncertainty[:, None]
        return result

    def refuse_other_categories(self, labels: Any) -> None:
        """Refuse labels where there were no categories, and none where there were."""
        if (labels is None) != (self.categories is None):
            had, has = (
                ("without", "must not be given")
                if self.categories is None
                else ("with", "must be given, one label per row")
            )
            msg = (
                f"`by_category` {has}: conformalize was called {had} categories. Call "
                "conformalize again, or call both in the same way."
            )
            raise InvalidInputError(msg)

    def limits(self, level: float, *, asymmetric: bool) -> Floats:
        """Return the limits of z of each category and, last, of labels never seen."""
        limits = np.full((self.sizes.size + 1, 2), (-np.inf, np.inf))
        if self.weights is not None:
            parts = zip(
                self._by_category(self.z), self._by_category(self.weights), strict=True
            )
            for i, (z, w) in enumerate(parts):
                if asymmetric:
                    share = (1 + level) / 2
                    limits[i] = -at_weight(-z, w, share), at_weight(z, w, share)
                else:
                    largest = at_weight(np.abs(z), w, level)
                    limits[i] = -largest, largest
            return limits
        for i, z in enumerate(self._by_category(self.z)):
            if asymmetric:
                low, high = asymmetric_ranks(z.size, level)
                if low >= 1:  # as is then high <= n
                    limits[i] = z[low - 1], z[high - 1]
            elif (rank := symmetric_rank(z.size, level)) <= z.size:
                largest = np.partition(np.abs(z), rank - 1)[rank - 1]
                limits[i] = -largest, largest
        return limits

    def warn_of_few(self, n: Ints, level: float, *, asymmetric: bool) -> None:
        """Say how many rows have infinite limits, of `n` by category and unseen."""
        needed = rows_needed(level, asymmetric=asymmetric)
        few = int(n[np.append(self.counts, 0) < needed].sum())
        if few:
            warn(
                f"An interval with coverage {level:g} needs at least {needed} "
                "held-out rows, of each category if there are any. The limits of "
                f"{few} of {n.sum()} rows are infinite. Hold out more rows, or ask for "
                "less coverage.",
                InfiniteIntervalWarning,
                stacklevel=4,
            )

    def _warn_of_infinite(
        self,
        codes: Ints,
        labels: Categories | None,
        level: float,
        *,
        asymmetric: bool,
    ) -> None:
        """Say whose limits are infinite and how many rows would make them finite."""
        needed = rows_needed(level, asymmetric=asymmetric)
        rows = np.append(self.counts, 0)
        few = np.flatnonzero(rows[codes] < needed)
        if not few.size:
            return
        kind = "an asymmetric interval" if asymmetric else "an interval"
        message = (
            f"{kind} with coverage {level:g} needs at least {needed} held-out rows"
        )
        if labels is None:
            message += f"; conformalize was given {self.counts[0]}."
        else:
            which, first = np.unique(labels.codes[few], return_index=True)
            found = [
                f"{label_text(labels.labels[each])} has {rows[codes[few[i]]]}"
                for each, i in zip(which[:_SHOWN], first[:_SHOWN], strict=True)
            ]
            more = [f"and {which.size - _SHOWN} more"] if which.size > _SHOWN else []
            message += f" of a category; {', '.join([*found, *more])}."
        warn(
            f"{message[0].upper()}{message[1:]} The limits of {few.size} of "
            f"{codes.size} rows are infinite. Hold out more rows, or ask for less "
            "coverage.",
            InfiniteIntervalWarning,
            stacklevel=4,
        )
