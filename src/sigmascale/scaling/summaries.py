"""What recalibrators that sums determine ask of their rows, and rows in memory answer.

`devices` has the same for rows on a device, and `frames` for rows that never are in
memory. Such a recalibrator knows only what is written here, and so can be fitted to
all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .._support.checks import Floats, Ints
from .._support.labels import Categories, Label
from ..bins.libraries import Array, library_of
from ..bins.partitions import Cells, EqualSizeBins, LabelBins, most_bins
from ..bins.quantiles import ends_of_runs, in_order
from ..bins.sums import BinSums, CellSums
from ..predictions import Predictions
from .crossfit import canonical_order, counted_squares, make_folds

Partition = EqualSizeBins | LabelBins
Cap = Callable[[float, float, float], float]


@dataclass(frozen=True)
class Variances:
    """Squared errors against squared uncertainties.

    Attributes
    ----------
    u2, e2 : array
        Of each row, or means over rows of nearly equal u.
    n : array or None
        How many rows, or the weight of each; None where each stands for itself.
    """

    u2: Floats
    e2: Floats
    n: Ints | Floats | None


@dataclass(frozen=True)
class Levels:
    """Rows by their level of uncertainty, ascending.

    Attributes
    ----------
    low, high : array
        The range of u² of each level, which in memory is one value.
    e2 : array
        The mean squared error.
    n : array
        The number of rows, or their weight.
    mean_u2 : array, optional
        The mean of u², where it is known; else the middle of the range is taken for it.
    """

    low: Floats
    high: Floats
    e2: Floats
    n: Ints | Floats
    mean_u2: Floats | None = None

    @property
    def u2(self) -> Floats:
        """The mean of u² of each level, or what comes close to it."""
        middle: Floats = 0.5 * (self.low + self.high)
        return middle if self.mean_u2 is None else self.mean_u2


class Summaries(Protocol):
    """What can be asked of rows, by the position of a column; 0 is the uncertainty.

    Errors are not all 0, and uncertainties are positive.
    """

    names: tuple[str, ...]

    def position(self, key: Any, argument: str = "by") -> int:
        """Return the position of the column that `key` names or counts."""

    def positions(self, keys: Any, argument: str) -> list[int]:
        """Return the positions of several columns."""

    def seen(self) -> tuple[int, float, float]:
        """Return the number of rows, the smallest and the largest uncertainty."""

    def rows_for(self, purpose: str) -> Predictions:
        """Return the rows themselves, if they are in memory; else refuse."""

    def total(self) -> BinSums:
        """Return the sums of all rows."""

    def by_bins(self, position: int, n_bins: int) -> tuple[EqualSizeBins, BinSums]:
        """Return equal-size bins and their sums; u tells equal features apart."""

    def by_cells(
        self, positions: tuple[int, int], n_bins: tuple[int, int]
    ) -> tuple[Cells, BinSums]:
        """Return the cells of two columns, and their sums."""

    def by_labels(self, position: int) -> tuple[tuple[Label, ...], BinSums]:
        """Return the distinct labels of a column, sorted, and the sums of each."""

    def variances(self) -> Variances:
        """Return squared errors against squared uncertainties."""

    def levels(self) -> Levels:
        """Return mean squared errors by the level of uncertainty."""

    def partitions(
        self,
        n_bins: Sequence[int],
        labelled: set[int],
        *,
        least_rows: int,
        max_labels: int,
    ) -> list[Partition]:
        """Return a partition of each column, by quantiles or by frequent labels.

        Columns of text hold labels, and so do those `labelled`; numbers may be missing.
        """

    def by_joint_cells(
        self, partitions: Sequence[Partition], n_folds: int, seed: int, cap: Cap
    ) -> CellSums:
        """Return sums over the joint cells of all columns, by fold.

        `cap` says, of the number of rows, that of nonzero errors and the mean of z², up
        to which value a z² counts.
        """


class RowSummaries:
    """The answers of rows in memory."""

    def __init__(
        self, rows: Predictions, fold: Ints | None = None, scale: Floats | None = None
    ) -> None:
        """Answer for `rows`; the joint cells with `fold`, and z = E / `scale`."""
        self._rows: Any = rows
        self._fold = fold
        self._scale = rows.uncertainty if scale is None else scale
        self.names = rows.names
        self.position, self.positions = rows.position, rows.positions

    def seen(self) -> tuple[int, float, float]:
        """Return the number of rows, the smallest and the largest uncertainty."""
        library = library_of(self._rows.uncertainty)
        low, high = library.numbers(*library.extremes(self._rows.uncertainty))
        return self._rows.n_rows, low, high

    def rows_for(self, purpose: str) -> Predictions:
        """Return the rows."""
        rows: Predictions = self._rows
        return rows

    def total(self) -> BinSums:
        """Return the sums of all rows."""
        rows = self._rows
        return BinSums.of_all(rows.errors, rows.uncertainty, rows.weights)

    def _sums(self, codes: Array, n_bins: int) -> BinSums:
        rows = self._rows
        return BinSums.from_codes(
            codes, n_bins, rows.errors, rows.uncertainty, rows.weights
        )

    def by_bins(self, position: int, n_bins: int) -> tuple[EqualSizeBins, BinSums]:
        """Return equal-size bins and their sums; u tells equal features apart."""
        x, u = self._rows.numbers(position), self._rows.uncertainty
        ties = None if position == 0 else u
        weights = self._rows.weights
        bins = EqualSizeBins.learn(x, n_bins, ties=ties, weights=weights)
        return bins, self._sums(bins.codes(x, ties), bins.n_bins)

    def by_cells(
        self, positions: tuple[int, int], n_bins: tuple[int, int]
    ) -> tuple[Cells, BinSums]:
        """Return the cells of two columns, and their sums."""
        x, y = (self._rows.numbers(position) for position in positions)
        cells = Cells.learn(x, y, n_bins, self._rows.weights)
        return cells, self._sums(cells.codes(x, y), cells.n_bins)

    def by_labels(self, position: int) -> tuple[tuple[Label, ...], BinSums]:
        """Return the distinct labels of a column, sorted, and the sums of each."""
        labels = self._rows.labels(position).compact()
        return labels.labels, self._sums(labels.codes, len(labels.labels))

    def variances(self) -> Variances:
        """Return squared errors against squared uncertainties, row by row."""
        u, error = self._rows.uncertainty, self._rows.errors
        return Variances(u**2, error**2, self._rows.weights)

    def levels(self) -> Levels:
        """Return mean squared errors by distinct u²."""
        columns = [self._rows.uncertainty**2, self._rows.errors**2]
        if self._rows.weights is not None:
            columns.append(self._rows.weights)
        u2, e2, *weights = in_order(*columns)
        ends = ends_of_runs(u2)
        starts = np.append(0, ends[:-1])
        n: Ints | Floats = ends - starts
        if weights:
            n = np.add.reduceat(weights[0], starts)
            e2 = weights[0] * e2
        u2 = u2[ends - 1]
        return Levels(u2, u2, np.add.reduceat(e2, starts) / n, n)

    def partitions(
        self,
        n_bins: Sequence[int],
        labelled: set[int],
        *,
        least_rows: int,
        max_labels: int,
    ) -> list[Partition]:
        """Return a partition of each column, by quantiles or by frequent labels."""
        self.coded_columns = coded_columns(self._rows, labelled)
        found: list[Partition] = []
        for values, wanted in zip(self.coded_columns, n_bins, strict=True):
            feasible = most_bins(self._rows.total, wanted, least_rows)
            found.append(
                learn_partition(values, feasible, max_labels, self._rows.weights)
            )
        return found

    def by_joint_cells(
        self, partitions: Sequence[Partition], n_folds: int, seed: int, cap: Cap
    ) -> CellSums:
        """Return sums over the joint cells of all columns, by fold."""
        columns = [column.order for column in self.coded_columns]
        rows = self._rows
        order = canonical_order(columns, rows.errors, rows.weights)
        rows = rows.take(order)
        codes = coded(partitions, self.coded_columns)[order]
        z2 = (rows.errors / self._scale[order]) ** 2
        if self._fold is None:
            rng = np.random.default_rng(seed)
            fold = make_folds(z2, n_folds, rng, rows.groups, rows.weights)
        else:
            fold = self._fold[order]
        self.fold = np.empty_like(fold)  # in the order of the rows
        self.fold[order] = fold
        most = cap(*counted_squares(z2, rows.weights), rows.mean(z2))
        return CellSums.from_rows(codes, fold, z2, most, rows.weights)


@dataclass(frozen=True)
class CodedColumn:
    """The values of a column that is cut into bins, missing ones too, or of labels."""

    values: Floats | Categories

    @property
    def labelled(self) -> bool:
        """Whether it holds labels."""
        return isinstance(self.values, Categories)

    @property
    def order(self) -> Floats | Ints:
        """Numbers in the order of the values."""
        return self.values.codes if isinstance(self.values, Categories) else self.values


def coded_columns(rows: Predictions, labelled: set[int]) -> list[CodedColumn]:
    """Return all columns: numbers, which may be missing, or labels."""
    return [
        CodedColumn(
            rows.labels(i)
            if rows.is_labelled(i) or i in labelled
            else rows.numbers_or_missing(i)
        )
        for i in range(len(rows.columns))
    ]


def full_order(rows: Predictions) -> Ints:
    """Return an order by all that rows hold, whatever order they came in."""
    columns = [column.order for column in coded_columns(rows, set())]
    # of errors of one size, the sign decides
    return canonical_order([rows.errors, *columns], rows.errors, rows.weights)


def coded(partitions: Sequence[Partition], columns: Sequence[CodedColumn]) -> Any:
    """Return the codes of all columns side by side, in as few bytes as hold them."""
    most = max(partition.n_codes for partition in partitions)
    n_rows = columns[0].values.size
    kind = np.min_scalar_type(most)
    codes = np.empty((n_rows, len(columns)), dtype=kind, order="F")
    for j, (partition, column) in enumerate(zip(partitions, columns, strict=True)):
        values: Any = column.values
        codes[:, j] = partition.coded(values)
    return codes


def learn_partition(
    column: CodedColumn, max_bins: int, max_labels: int, weights: Floats | None
) -> Partition:
    """Return quantiles of numbers, or the most frequent labels."""
    if isinstance(column.values, Categories):
        labels = column.values.compact()
        counts = np.bincount(labels.codes, weights)
        return LabelBins.most_frequent(labels.labels, counts, max_labels)
    return EqualSizeBins.quantiles(column.values, max_bins, weights)
