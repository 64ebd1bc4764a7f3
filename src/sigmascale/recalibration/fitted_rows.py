"""What a fit keeps of its rows: ranges, labels and a few hashes to compare by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._support.checks import IN_CACHE, Bools, Floats, Ints, rounded
from .._support.hashing import Hashes, hash_of_rows, scrambled
from .._support.labels import Label
from .._support.numerals import number, percent
from .._support.text import quoted
from ..exceptions import (
    ExtrapolationWarning,
    MissingFeatureWarning,
    UnseenCategoryWarning,
)
from ..predictions.predictions import Predictions
from .additive import Axis
from .persistence import (
    floats,
    index,
    integers,
    many,
    optional,
    refuse_if,
    stored,
    text,
)

SHARES = (0.0, 0.05, 0.5, 0.95, 1.0)  # of the rows, below each quantile
HASH_BITS = 52  # which JSON keeps
DROPPED_BITS = np.uint64(64 - HASH_BITS)
MOST_HASHED = 100_000  # rows among which equal ones are counted
N_HASHES = 64  # of rows that are kept
DISTINCT = 0.9  # share of rows that differ, without which equal ones mean nothing
# Of new rows from the same source, 2 of n + 1 are expected outside the range of n, and
# hardly any far outside: as far again from the median as the end of the range. It is
# told where of each n + 1 new rows more than so many are far outside,
FAR = 10
# or so many are outside, and these are more than a share of the rows, and than a few.
OUTSIDE = 20
SHARE_OUTSIDE = 0.05
FEW_OUTSIDE = 10
MOST_KEPT_LABELS = 100  # of a column that are kept
LEAST_GROUPS = 10  # fewer do not tell how groups vary


class Outside(NamedTuple):
    """Rows outside the range of a column that was seen in fit.

    Attributes
    ----------
    n, n_far : int
        How many they are, and how many of them are far outside.
    low, high : float
        The range of all rows.
    """

    n: int
    n_far: int
    low: float
    high: float

    def plus(self, other: Outside) -> Outside:
        """Return the counts of both."""
        return Outside(
            self.n + other.n,
            self.n_far + other.n_far,
            min(self.low, other.low),
            max(self.high, other.high),
        )

    def is_worth_telling(self, n_rows: int, n_fit: int) -> bool:
        """Return whether so many of all rows are outside that it is no chance."""
        per_range = n_rows / (n_fit + 1)
        most = max(OUTSIDE * per_range, SHARE_OUTSIDE * n_rows, FEW_OUTSIDE)
        return self.n_far > FAR * per_range or self.n > most


class Unlike(NamedTuple):
    """How new rows differ from the fitted ones: counts, which batches add up.

    Attributes
    ----------
    n_rows : int
        Rows that were looked at.
    unseen : dict of str to int
        Rows with a label that is not known, by the column and what they get.
    gaps : dict of str to int
        Rows in which a column is missing that was not in the fit.
    outside : dict of str to Outside
        Rows outside the range of a column.
    """

    n_rows: int
    unseen: dict[str, int]
    gaps: dict[str, int]
    outside: dict[str, Outside]

    def plus(self, other: Unlike) -> Unlike:
        """Return the counts of these rows and others."""
        outside = dict(self.outside)
        for name, theirs in other.outside.items():
            outside[name] = outside[name].plus(theirs) if name in outside else theirs
        return Unlike(
            self.n_rows + other.n_rows,
            dict(Counter(self.unseen) + Counter(other.unseen)),
            dict(Counter(self.gaps) + Counter(other.gaps)),
            outside,
        )


@stored(
    columns=many(index),
    quantiles=floats,
    missing=integers,
    labels=many(many(optional(text))),
    levels_of_groups=floats,
    hashes=integers,
    salt=index,
)
@dataclass(frozen=True, eq=False)
class FittedRows:
    """What is kept of fitted rows: ranges, and hashes that recognise a few of them.

    Attributes
    ----------
    columns : tuple of int
        The columns of numbers; 0 is the uncertainty.
    quantiles : array of shape (n_columns, 5)
        Their smallest and largest values, and quantiles in between.
    missing : array of int
        Rows in which they are missing.
    labels : tuple of tuple
        The labels of each column; none of a column of numbers, or of very many labels.
    levels_of_groups : array of shape (k, 3)
        Of groups, such as the atoms of a structure: how large u is (the mean of ln u in
        a group), and predictions, if they are vectors (the logarithm of their root mean
        square); mean and standard deviation over groups, and the median number of rows.
        Nothing of few groups, or of groups that are all alike.
    hashes : array of int
        At most 64 of the smallest hashes of u and error, salted: no values; none if
        many rows are the same.
    salt : int
        What makes hashes of the same row differ from set to set.
    """

    columns: tuple[int, ...]
    quantiles: Floats
    missing: Ints
    labels: tuple[tuple[Label, ...], ...]
    levels_of_groups: Floats
    hashes: Ints
    salt: int

    @classmethod
    def of(cls, p: Predictions) -> FittedRows:
        """Return what is kept of rows with errors."""
        # the range of each column of numbers, and what is missing
        columns = []
        quantiles = []
        missing = []
        for position, column in enumerate(p.columns):
            if p.categories[position] is not None:
                continue
            ordered = np.sort(column)  # what is missing comes last
            n_known = int(np.count_nonzero(~np.isnan(column)))
            if n_known:
                columns.append(position)
                ranks = np.rint(np.array(SHARES) * (n_known - 1)).astype(np.int64)
                quantiles.append(ordered[ranks])
                missing.append(column.size - n_known)

        # hashes, salted by all rows together
        unsalted = _unsalted(p)
        salt = int(np.bitwise_xor.reduce(unsalted) >> DROPPED_BITS)
        hashes = _salted(unsalted, salt)
        # about so many of the smallest; rows that are the same are all among them
        largest = min(1.0, MOST_HASHED / hashes.size) * 2.0**HASH_BITS
        smallest = hashes[hashes < largest]
        distinct = np.unique(smallest)  # whole numbers
        are_distinct = distinct.size > DISTINCT * smallest.size
        return cls(
            columns=tuple(columns),
            quantiles=np.array(quantiles),
            missing=np.array(missing),
            labels=tuple(_labels(p, position) for position in range(len(p.columns))),
            levels_of_groups=_levels_of_groups(p),
            hashes=distinct[:N_HASHES] if are_distinct else distinct[:0],
            salt=salt,
        )

    def check(self) -> None:
        """Refuse parts that do not fit together."""
        n = len(self.columns)
        fit = self.quantiles.shape == (n, len(SHARES)) and self.missing.shape == (n,)
        must = "each column of fitted rows must have its quantiles"
        refuse_if(not fit or not n, must)
        ascend = (np.diff(self.columns) > 0).all() and self.columns[0] == 0
        refuse_if(not ascend, "columns of fitted rows must be in order")
        descend = (np.diff(self.quantiles, axis=1) < 0).any()
        must = "quantiles of fitted rows must not descend"
        refuse_if(descend or self.quantiles[0, 0] <= 0, must)
        levels = self.levels_of_groups
        fit = levels.ndim == 2 and levels.shape[1] == 3 and len(levels) <= 2
        must = "groups must have a mean, a spread and a size"
        refuse_if(not fit or (levels[:, 1:] <= 0).any(), must)
        are_few = self.hashes.ndim == 1 and self.hashes.size <= N_HASHES
        refuse_if(not are_few, f"there must be {N_HASHES} hashes at most")

    def share_of(self, p: Predictions) -> float:
        """Return about which share of rows with errors were among the fitted ones.

        Of both sets the rows with the smallest hashes are compared: a sample that is
        the same for rows that are.
        """
        if not self.hashes.size or p.error is None:
            return 0.0
        hashes = _salted(_unsalted(p), self.salt)
        sampled = hashes[hashes <= self.hashes[-1]]
        # whole numbers
        return float(np.isin(sampled, self.hashes).mean()) if sampled.size else 0.0

    def holds(self, p: Predictions) -> Bools:
        """Return which rows lie in the range of every column, with known labels."""
        is_inside = np.ones(p.n_rows, dtype=bool)
        for position, quantiles in zip(self.columns, self.quantiles, strict=True):
            if p.categories[position] is None:
                x = p.columns[position]
                is_beyond = (x < quantiles[0]) | (x > quantiles[-1])
                is_inside &= ~is_beyond
        for position, labels in enumerate(self.labels):
            if labels and p.categories[position] is not None:
                is_inside &= _are_known(p, position, labels)
        return is_inside

    def unlike(self, p: Predictions, axes: Mapping[str, Sequence[Axis]]) -> Unlike:
        """Return counts of how new rows differ from the fitted ones.

        Parameters
        ----------
        p : Predictions
            New rows, with the columns of the fit.
        axes : dict of str to sequence of Axis
            Axes whose labels are known; by what rows with other labels get.
        """
        # gaps in columns of numbers, and rows outside their range
        gaps: dict[str, int] = {}
        outside: dict[str, Outside] = {}
        for position, quantiles, n_missing in zip(
            self.columns, self.quantiles, self.missing, strict=True
        ):
            if p.categories[position] is not None:
                continue
            name = p.names[position]
            known = p.columns[position]
            lowest = known.min()
            if np.isnan(lowest):
                known = known[~np.isnan(known)]
                if not n_missing:
                    gaps[name] = p.n_rows - known.size
                if not known.size:
                    continue
                lowest = known.min()
            if lowest < quantiles[0] or known.max() > quantiles[-1]:
                outside[name] = _outside(known, quantiles, ratios=position == 0)

        # labels that are not known
        unseen: dict[str, int] = {}
        for effect, axes_known in axes.items():
            for axis in axes_known:
                if axis.labels is None:
                    continue
                are_known = _are_known(p, axis.column, axis.labels)
                n_unseen = int(np.count_nonzero(~are_known))
                if n_unseen:
                    column = quoted(p.names[axis.column])
                    unseen[f"{column} that was not seen in fit, {effect}"] = n_unseen
        return Unlike(p.n_rows, unseen, gaps, outside)

    def sentences(
        self, unlike: Unlike, names: Sequence[str], n_fit: int, used: set[int]
    ) -> dict[tuple[str, str], tuple[str, type[Warning]]]:
        """Return what is worth telling of new rows, by kind and column.

        Parameters
        ----------
        unlike : Unlike
            How they differ from the fitted ones.
        names : sequence of str
            The names of the columns in fit.
        n_fit : int
            The number of fitted rows.
        used : set of int
            Columns that anything depends on: gaps in others do not matter.
        """
        n_rows = unlike.n_rows
        sentences: dict[tuple[str, str], tuple[str, type[Warning]]] = {}
        for words, n in unlike.unseen.items():
            sentence = f"{n} of {n_rows} rows have a label of {words}."
            sentences["unseen", words] = sentence, UnseenCategoryWarning
        for position, quantiles in zip(self.columns, self.quantiles, strict=True):
            name = names[position]
            if position in used and name in unlike.gaps:
                sentence = _words_of_gaps(name, unlike.gaps[name], n_rows)
                sentences["gap", name] = sentence, MissingFeatureWarning
            outside = unlike.outside.get(name)
            if outside is not None and outside.is_worth_telling(n_rows, n_fit):
                sentence = _words_of_range(name, outside, n_rows, quantiles)
                sentences["outside", name] = sentence, ExtrapolationWarning
        return sentences


def _labels(p: Predictions, position: int) -> tuple[Label, ...]:
    """Return the labels of a column, if these are not very many."""
    categories = p.categories[position]
    if categories is None:
        return ()
    present = np.unique(p.columns[position].astype(np.int64))  # whole numbers
    if present.size > MOST_KEPT_LABELS:
        return ()
    return tuple(categories[code] for code in present)


def _levels_of_groups(p: Predictions) -> Floats:
    """Return how large u and vectors are in groups, and how much that varies."""
    # sums over the rows of each group, of which means are taken below
    if p.groups is None or p.groups.max() + 1 < LEAST_GROUPS:
        return np.empty((0, 3))
    sizes = np.bincount(p.groups)
    sums: list[Any] = [np.bincount(p.groups, np.log(p.y_std))]
    if p.is_vector and p.y_pred is not None:
        squares = np.bincount(p.groups, (p.y_pred**2).sum(axis=1)) / sizes
        if squares.all():
            sums.append(sizes * np.log(squares) / 2)

    # mean and spread over groups
    levels = []
    for sum_of_group in sums:
        means = rounded(sum_of_group / sizes)
        if not means.std():
            return np.empty((0, 3))
        levels.append([means.mean(), means.std(ddof=1), np.median(sizes)])
    return rounded(np.array(levels))


def _unsalted(p: Predictions) -> Hashes:
    """Return a hash of uncertainty and error of each row."""
    return hash_of_rows([p.y_std, p.squared_error])


def _salted(hashes: Hashes, salt: int) -> Ints:
    """Return hashes that differ from set to set, of 52 bits."""
    salted = np.empty(hashes.size, dtype=np.int64)
    for start in range(0, hashes.size, IN_CACHE):
        part = slice(start, start + IN_CACHE)
        salted[part] = scrambled(hashes[part] ^ np.uint64(salt)) >> DROPPED_BITS
    return salted


def _are_known(p: Predictions, position: int, labels: Sequence[Label]) -> Bools:
    """Return which rows have one of the labels in a column."""
    known = set(labels)
    found = p.labels(position)
    return np.array([label in known for label in found.labels])[found.codes]


def _outside(x: Floats, quantiles: Floats, *, ratios: bool) -> Outside:
    """Return how many rows are outside a range, and how many are far outside.

    That is as far again from the median as the end of the range.
    """
    low, _, median, _, high = quantiles
    outside = x[(x < low) | (x > high)]
    if ratios:  # uncertainties differ by factors
        low = np.log(low)
        median = np.log(median)
        high = np.log(high)
        outside = np.log(outside)
    with np.errstate(over="ignore", invalid="ignore"):  # near the largest numbers
        is_far = (outside > 2 * high - median) | (outside < 2 * low - median)
    n_far = int(np.count_nonzero(is_far))
    return Outside(outside.size, n_far, float(x.min()), float(x.max()))


def _words_of_gaps(name: str, n_gaps: int, n_rows: int) -> str:
    """Return what is told of a column that is missing in rows."""
    return (
        f"{n_gaps} of {n_rows} rows have no {quoted(name)}, which was never missing in "
        "fit: their uncertainties are a guess. Fill it in, or leave these out."
    )


def _words_of_range(name: str, outside: Outside, n_rows: int, quantiles: Floats) -> str:
    """Return what is told of rows outside the range of a column."""
    lowest, low, _, high, highest = (number(quantile) for quantile in quantiles)
    return (
        f"{outside.n} of {n_rows} rows ({percent(outside.n / n_rows)}) lie outside the "
        f"{quoted(name)} that was seen in fit: {number(outside.low)} to "
        f"{number(outside.high)} here, {lowest} to {highest} there (90 % of them {low} "
        f"to {high}). Are units and population the same? What was learned does not "
        "reach that far."
    )
