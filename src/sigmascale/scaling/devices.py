"""Rows on a device: what recalibrators learn from them, and make of them, there.

`scaling.base` asks :func:`fit`, :func:`predict`, :func:`interval` and :func:`score`
where it is given a device array, and knows no more of devices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._support.checks import LARGEST, LARGEST_Z, SMALLEST
from .._support.labels import Categories, Label, in_label_order, numbers_of
from .._support.notices import warn
from ..bins.devices import DeviceRows, column_beside
from ..bins.libraries import Array, Library, library_of, to_numpy
from ..bins.libraries import on_device as on_device
from ..bins.partitions import EqualSizeBins, LabelBins, find, find_label, most_bins
from ..bins.sums import BinSums, CellSums
from ..exceptions import InvalidInputError, UnseenCategoryWarning
from ..maps import Code, Column, Node, in_order
from ..maps.conformal import ConformalScores
from ..maps.nodes import columns_of
from ..maps.prediction import Program, label_numbers
from ..oddities import warn_of_zero_errors
from ..predictions import Predictions, group_codes
from .crossfit import phase
from .summaries import Cap, Levels, Partition, RowSummaries, Variances

MAX_LEVELS = 2**14  # of u that come to the host: more are pooled
MAX_CELLS = 20_000_000  # joint cells of raking that may come to the host


Scaler = Any  # a recalibrator, whose base imports this module


def on_host(*arguments: Any) -> tuple[Any, ...]:
    """Return arguments in memory, if some of them are on a device."""
    if not on_device(*arguments):
        return arguments
    return tuple(None if each is None else to_numpy(each) for each in arguments)


def fit(
    scaler: Scaler, X: Any, y: Any, groups: Any, sample_weight: Any
) -> Predictions | None:
    """Fit rows on a device by their sums; or return them, if these do not do."""
    rows = DeviceRows.table(X)
    scaler._compare_columns(X, rows, fitting=True)
    with rows.library.in_64_bits():
        rows = rows.detached().with_target(y).positive()
        if groups is not None or sample_weight is not None or scaler._needs_rows:
            host = rows.to_host()
            codes = group_codes(groups, host.errors, "X")
            (weights,) = on_host(sample_weight)
            return host.changed(groups=codes).weighted(weights)
        rows, all_zero = _informative(rows)
        if all_zero:
            warn_of_zero_errors(rows.n_rows)
        scaler._learn_sums(DeviceSummaries(rows))
    return None


def predict(scaler: Scaler, X: Any) -> Array:
    """Return recalibrated uncertainties on the device."""
    rows = DeviceRows.table(X)
    scaler._compare_columns(X, rows, fitting=False)
    return recalibrate(scaler.map_, rows, smallest=scaler.min_uncertainty_)


def score(scaler: Scaler, X: Any, y: Any) -> float:
    """Return the mean log-likelihood of errors."""
    rows = DeviceRows.table(X)
    with rows.library.in_64_bits():
        rows.positive()
    judged = DeviceRows.judged(y, predict(scaler, X))
    with judged.library.in_64_bits():
        return -judged.sums(("z2", "log_u2")).nll()


class DeviceSummaries(RowSummaries):
    """The answers of rows on a device: as in memory, or from sums and levels."""

    def __init__(self, rows: DeviceRows) -> None:
        self._rows = rows
        self._library = rows.library
        self.names = rows.names
        self.position, self.positions = rows.position, rows.positions

    def rows_for(self, purpose: str) -> Predictions:
        """Return the rows in memory: what is asked for is computed there."""
        host: Predictions = self._rows.to_host()
        return host

    def by_labels(self, position: int) -> tuple[tuple[Label, ...], BinSums]:
        """Return the distinct labels of a column, sorted, and the sums of each."""
        labels = self._distinct(position)
        codes = find(find_label(numbers_of(labels)), self._rows.columns[position])
        return labels, self._sums(codes - 1, len(labels))

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
        found: list[Partition] = []
        for position, wanted in enumerate(n_bins):
            if position in labelled:
                labels, sums = self.by_labels(position)
                found.append(LabelBins.most_frequent(labels, sums.n, max_labels))
                continue
            x = self._rows.numbers_or_missing(position)
            feasible = most_bins(self._rows.n_rows, wanted, least_rows)
            found.append(EqualSizeBins.quantiles(x, feasible))
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
        total = rows.sums(("z2", "e2", "u2"))
        n_rows = rows.n_rows
        nonzero = library.numbers(xp.sum(xp.astype(rows.errors != 0, xp.int64)))[0]
        most = cap(n_rows, int(nonzero), float(total.zms[0]))
        means = float(total.e2[0]) / n_rows, float(total.u2[0]) / n_rows
        columns = [
            _coded(partition, column)
            for partition, column in zip(partitions, rows.columns, strict=True)
        ]
        sums = np.zeros((3, n_cells))
        for some in library.chunks(n_rows):
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
            sums += [
                library.to_host(library.sums_by_code(cell, n_cells, each))
                for each in terms
            ]
        filled = np.flatnonzero(sums[0])
        *codes, fold_of = np.unravel_index(filled, shape)
        return CellSums(
            np.column_stack(codes), np.asarray(fold_of), *sums[:, filled]
        ).compact()


def _coded(partition: Partition, x: Array) -> Array:
    """Return the codes of rows: 0 if x is missing or unknown."""
    if isinstance(partition, LabelBins):
        return find(find_label(label_numbers(partition)), x)
    return partition.coded(x)


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


def _informative(rows: DeviceRows) -> tuple[DeviceRows, bool]:
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


def recalibrate(root: Node, rows: DeviceRows, *, smallest: float) -> Array:
    """Return recalibrated uncertainties, finite and positive, in the dtype of the rows.

    They are computed in float64, with gradients where the library has them.
    """
    library, xp = rows.library, rows.library.xp
    given = rows.columns[0]
    with library.in_64_bits():
        rows = rows.positive(smallest=smallest)
        for column in columns_of(root):
            if column.kind == "optional":
                rows.numbers_or_missing(column.position)
            elif column.kind == "number" and column.position:
                rows.detached().numbers(column.position)
        _warn_of_unseen(root, rows)
        program = Program(root)
        constants = library.ready(program.constants, rows.n_rows)
        dtype = given.dtype if library.has_kind(given, "real floating") else xp.float64
        bounds = xp.finfo(dtype)
        low, high = float(bounds.smallest_normal), float(bounds.max)

        def some(*columns: Array) -> Array:
            value = program(xp, constants, [library.floats(each) for each in columns])
            return xp.astype(xp.clip(value, low, high), dtype, copy=False)

        return library.by_chunks(some, *rows.columns)


def _warn_of_unseen(root: Node, rows: DeviceRows) -> None:
    library, xp = rows.library, rows.library.xp
    for node in in_order(root):
        if not isinstance(node, Code) or not isinstance(node.partition, LabelBins):
            continue
        assert isinstance(node.x, Column)
        labels = library.detached(rows.columns[node.x.position])
        known = {*node.partition.labels, *node.partition.rare}
        # strings are not numbers
        numbers = in_label_order(each for each in known if not isinstance(each, str))
        codes = find(find_label(numbers_of(numbers)), labels)
        unseen = library.numbers(xp.sum(xp.astype(codes == 0, xp.int64)))[0]
        if unseen:
            warn(
                f"{unseen:.0f} of {rows.n_rows} rows have a label in column "
                f"{rows.names[node.x.position]!r} that was not seen in fit; they take "
                "the average factor.",
                UnseenCategoryWarning,
                stacklevel=4,
            )


def interval(
    scores: ConformalScores,
    predicted: Array,
    level: float,
    *,
    asymmetric: bool,
    by_category: Any,
) -> Array:
    """Return the limits of the errors of rows on a device, shape (n, 2)."""
    library, xp = library_of(predicted), library_of(predicted).xp
    scores.refuse_other_categories(by_category)
    with library.in_64_bits():
        if scores.categories is None:
            codes = xp.astype(xp.zeros_like(predicted), xp.int64)
        else:
            labels = column_beside(library, by_category, "by_category", predicted)
            codes = find(find_label(label_numbers(scores.categories)), labels) - 1
            codes = xp.where(codes < 0, 0 * codes + scores.sizes.size, codes)
        n = library.counts(codes, scores.sizes.size + 1)
        scores.warn_of_few(n, level, asymmetric=asymmetric)
        limits = library.here(scores.limits(level, asymmetric=asymmetric))
        found = xp.take(limits, codes, axis=0) * library.floats(predicted)[:, None]
        return xp.astype(found, predicted.dtype, copy=False)
