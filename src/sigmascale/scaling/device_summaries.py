"""What rows on a device answer to recalibrators that sums determine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from .._support.checks import LARGEST, LARGEST_Z, SMALLEST, Floats
from .._support.labels import Categories, Label
from ..arrays.libraries import Array, Library
from ..arrays.ranks import codes_of, learn_bins, learn_quantiles
from ..arrays.rows import DeviceRows
from ..arrays.sums import chunks
from ..bins.cells import CellSums
from ..bins.partitions import Cells, EqualSizeBins, LabelBins, most_bins
from ..bins.sums import BinSums
from ..exceptions import InvalidInputError
from ..predictions import NamedColumns, Predictions
from .crossfit import phase
from .summaries import Cap, Levels, Partition, Variances

MAX_LEVELS = 2**14  # of u that come to the host: more are pooled
MAX_CELLS = 20_000_000  # joint cells of raking that may come to the host


class DeviceSummaries(NamedColumns):
    """The answers of rows on a device; it is a `Summaries`, see `scaling.summaries`.

    Uncertainties are positive.
    """

    def __init__(self, rows: DeviceRows) -> None:
        self._rows = rows
        self._library = rows.library
        self.names = rows.names

    def seen(self) -> tuple[int, float, float]:
        """Return the number of rows, the smallest and the largest uncertainty."""
        extremes = self._library.extremes(self._rows.uncertainty)
        low, high = (self._library.numbers(each)[0] for each in extremes)
        return self._rows.n_rows, low, high

    def rows_for(self, purpose: str) -> Predictions:
        """Return the rows in memory: what is asked for is computed there."""
        return self._rows.to_host()

    def total(self) -> BinSums:
        """Return the sums of all rows."""
        return self._rows.total()

    def by_bins(self, position: int, n_bins: int) -> tuple[EqualSizeBins, BinSums]:
        """Return equal-size bins and their sums; u tells equal features apart."""
        x = self._rows.numbers(position)
        ties = None if position == 0 else self._rows.uncertainty
        bins = learn_bins(self._library, x, n_bins, ties=ties)
        codes = codes_of(self._library, bins, x, ties) - 1
        return bins, self._rows.sums(codes, bins.n_bins)

    def by_cells(
        self, positions: tuple[int, int], n_bins: tuple[int, int]
    ) -> tuple[Cells, BinSums]:
        """Return the cells of two columns, and their sums."""
        columns = [self._rows.numbers(position) for position in positions]
        bins = [
            learn_bins(self._library, x, n)
            for x, n in zip(columns, n_bins, strict=True)
        ]
        first, second = (
            codes_of(self._library, each, x) - 1
            for each, x in zip(bins, columns, strict=True)
        )
        cells = Cells(bins[0], bins[1])
        codes = first * bins[1].n_bins + second
        return cells, self._rows.sums(codes, cells.n_bins)

    def by_labels(self, position: int) -> tuple[tuple[Label, ...], BinSums]:
        """Return the distinct labels of a column, sorted, and the sums of each."""
        labels = self._distinct(position)
        codes = codes_of(self._library, LabelBins(labels), self._rows.columns[position])
        return labels, self._rows.sums(codes - 1, len(labels))

    def _distinct(self, position: int) -> tuple[Label, ...]:
        library, xp = self._library, self._library.xp
        column = library.detached(self._rows.columns[position])
        column = library.floats(column)
        found = library.to_host(xp.unique_values(column[~xp.isnan(column)]))
        missing = (
            found.size < column.shape[0]
            and library.numbers(xp.any(xp.isnan(column)))[0]
        )
        return Categories.of(np.append(found, [np.nan] if missing else [])).labels

    def variances(self) -> Variances:
        """Return squared errors against squared uncertainties: means of neighbours."""
        library, xp = self._library, self._library.xp
        u, e = self._by_uncertainty()
        size = -(-u.shape[0] // MAX_LEVELS)
        n_levels = -(-u.shape[0] // size)
        rest = size * n_levels - u.shape[0]
        fill = xp.zeros((rest,), dtype=xp.float64, device=library.device)
        u2, e2 = (
            library.to_host(
                xp.sum(xp.reshape(xp.concat([x * x, fill]), (n_levels, size)), axis=1)
            )
            for x in (u, e)
        )
        n = np.full(n_levels, size)
        n[-1] -= rest
        return Variances(u2 / n, e2 / n, n)

    def levels(self) -> Levels:
        """Return mean squared errors by the level of uncertainty.

        If there are too many levels, neighbours that no isotonic fit would tell apart
        are pooled first: the squared error of the first is the larger one.
        """
        library, xp = self._library, self._library.xp
        u, e = self._by_uncertainty()
        sums, ranges = xp.stack([0 * u + 1, e * e, u * u]), xp.stack([u, u])
        sums, ranges = _pooled(library, sums, ranges, _are_equal, 0)
        sums, ranges = _pooled(library, sums, ranges, _out_of_order, MAX_LEVELS)
        n, e2, u2 = library.to_host(sums)
        low, high = library.to_host(ranges)
        return Levels(low**2, high**2, e2 / n, n.astype(np.int64), u2 / n)

    def _by_uncertainty(self) -> tuple[Array, Array]:
        """Return u in ascending order, and the errors beside it."""
        library, xp = self._library, self._library.xp
        u = library.floats(self._rows.uncertainty)
        order = xp.argsort(u, stable=True)
        error = library.floats(self._rows.errors)
        return xp.take(u, order, axis=0), xp.take(error, order, axis=0)

    def partitions(
        self,
        n_bins: Sequence[int],
        labelled: set[int],
        *,
        least_rows: int,
        max_labels: int,
    ) -> list[Partition]:
        """Return a partition of each column, by quantiles or by frequent labels."""
        library, xp = self._library, self._library.xp
        found: list[Partition] = []
        for position, wanted in enumerate(n_bins):
            if position in labelled:
                labels, sums = self.by_labels(position)
                found.append(LabelBins.most_frequent(labels, sums.n, max_labels))
                continue
            x = self._rows.numbers_or_missing(position)
            missing = xp.isnan(x)
            if library.numbers(xp.any(missing))[0]:
                x = x[~missing]
            if not x.shape[0]:
                found.append(EqualSizeBins(np.empty(0)))
                continue
            feasible = most_bins(self._rows.n_rows, wanted, least_rows)
            found.append(learn_quantiles(library, x, feasible))
        return found

    def by_joint_cells(
        self, partitions: Sequence[Partition], n_folds: int, seed: int, cap: Cap
    ) -> CellSums:
        """Return sums over the joint cells of all columns, by fold."""
        library, xp, rows = self._library, self._library.xp, self._rows
        shape = [*(partition.n_codes for partition in partitions), n_folds]
        n_cells = math.prod(shape)
        if n_cells > MAX_CELLS:
            msg = (
                f"{len(partitions)} columns make too many joint cells to rake from "
                f"sums; found up to {n_cells}. Use fewer bins or columns."
            )
            raise InvalidInputError(msg)
        total = rows.total(("z2", "e2", "u2"))
        n_rows = rows.n_rows
        nonzero = library.numbers(xp.sum(xp.astype(rows.errors != 0, xp.int64)))[0]
        most = cap(n_rows, int(nonzero), float(total.zms[0]))
        means = float(total.e2[0]) / n_rows, float(total.u2[0]) / n_rows
        columns = [
            codes_of(library, partition, column)
            for partition, column in zip(partitions, rows.columns, strict=True)
        ]
        sums = np.zeros((3, n_cells))
        for some in chunks(n_rows):
            e, u = (
                library.floats(rows.errors[some]),
                library.floats(rows.columns[0][some]),
            )
            number = phase(e, u, *means, seed)
            fold = xp.astype(xp.floor((number - xp.floor(number)) * n_folds), xp.int64)
            cell = 0 * fold
            for size, code in zip(shape, (*columns, fold), strict=True):
                cell = cell * size + (code if code is fold else code[some])
            z2 = (e / u) ** 2
            terms = (0 * z2 + 1, z2, xp.clip(z2, 0.0, most))
            sums += [self._by_cell(cell, n_cells, each) for each in terms]
        filled = np.flatnonzero(sums[0])
        *codes, fold_of = np.unravel_index(filled, shape)
        return CellSums(
            np.column_stack(codes), np.asarray(fold_of), *sums[:, filled]
        ).compact()

    def _by_cell(self, cell: Array, n_cells: int, values: Array) -> Floats:
        library, xp = self._library, self._library.xp
        sums = library.sums_by_code(cell, n_cells, values)
        if sums is not None:
            return library.to_host(sums)
        # a library without such sums: neighbours in the order of cells are added up
        n = library.counts(cell, n_cells)
        values = xp.take(values, xp.argsort(cell, stable=True), axis=0)
        ends = np.cumsum(n)[n > 0]
        starts = np.append(0, ends[:-1])
        parts = [
            xp.sum(values[start:end])
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        found = np.zeros(n_cells)
        found[n > 0] = library.to_host(xp.stack(parts))
        return found


def _are_equal(sums: Array, ranges: Array) -> Array:
    """Return whether a level and the next have the same u."""
    return ranges[1, :-1] == ranges[0, 1:]


def _out_of_order(sums: Array, ranges: Array) -> Array:
    """Return whether the mean E² of a level is not less than that of the next."""
    n, e2 = sums[0, :], sums[1, :]
    return e2[:-1] * n[1:] >= e2[1:] * n[:-1]


def _pooled(
    library: Library,
    sums: Array,
    ranges: Array,
    belong_together: Callable[[Array, Array], Array],
    enough: int,
) -> tuple[Array, Array]:
    """Pool neighbouring levels that belong together, until they are few, or none do.

    Levels have sums, of 1, E² and u², and the range of u. In each round, pairs are
    pooled: of those that begin at an even place, and then of those at an odd one.
    """
    xp, idle, start = library.xp, 0, 0
    while sums.shape[1] > max(1, enough) and idle < 2:
        pairs = belong_together(sums, ranges)
        place = xp.arange(pairs.shape[0], dtype=xp.int64, device=library.device)
        first = pairs & (place % 2 == start)
        start = 1 - start
        if not library.numbers(xp.any(first))[0]:
            idle += 1
            continue
        idle = 0
        pooled = xp.where(first, sums[:, 1:], 0 * sums[:, 1:]) + sums[:, :-1]
        high = xp.where(first, ranges[1, 1:], ranges[1, :-1])
        kept = xp.concat([place[:1] == 0, ~first])  # the second of a pair goes
        sums = xp.concat([pooled, sums[:, -1:]], axis=1)
        ranges = xp.stack([ranges[0, :], xp.concat([high, ranges[1, -1:]])])
        which = xp.nonzero(kept)[0]
        sums, ranges = (xp.take(each, which, axis=1) for each in (sums, ranges))
    return sums, ranges


def informative(rows: DeviceRows) -> tuple[DeviceRows, bool]:
    """Return rows whose errors can be squared, and whether all errors are 0.

    Errors that are all 0 are replaced by the uncertainties.
    """
    library, xp = rows.library, rows.library.xp
    e_range = library.extremes(rows.errors)
    e_low, e_high, u_low = library.numbers(
        *e_range, library.extremes(rows.uncertainty)[0]
    )
    largest = max(e_high, -e_low)
    if largest < SMALLEST:
        return replace(rows, error=rows.uncertainty), True
    error = rows.errors
    if largest > min(LARGEST, LARGEST_Z * u_low):
        bound = xp.clip(LARGEST_Z * library.floats(rows.uncertainty), 0.0, LARGEST)
        error = xp.minimum(xp.maximum(library.floats(error), -bound), bound)
    return replace(rows, error=error), False
