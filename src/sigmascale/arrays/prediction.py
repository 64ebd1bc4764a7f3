"""From a map and rows on a device to recalibrated uncertainties, there."""

from __future__ import annotations

from typing import Any

from .._support.labels import in_label_order
from .._support.telling import warn
from ..bins.partitions import LabelBins
from ..exceptions import UnseenCategoryWarning
from ..maps import Code, Column, Node, in_order
from ..maps.conformal import ConformalScores, check_coverage
from ..maps.nodes import columns_of
from .evaluation import Program, finder
from .libraries import Array, Library
from .rows import DeviceRows, column_beside
from .sums import chunks


def recalibrate(root: Node, rows: DeviceRows, *, smallest: float) -> Array:
    """Return recalibrated uncertainties, finite and positive, in the dtype of the rows.

    They are computed in float64, with gradients where the library has them.
    """
    library, xp = rows.library, rows.library.xp
    given = rows.columns[0]
    with library.in_64_bits():
        rows = rows.nonnegative(smallest=smallest)
        for column in columns_of(root):
            if column.kind == "optional":
                rows.numbers_or_missing(column.position)
            elif column.kind == "number" and column.position:
                rows.detached().numbers(column.position)
        _warn_of_unseen(root, rows)
        program = Program(root)
        constants = [library.here(each) for each in program.constants]
        dtype = given.dtype if library.is_floating(given) else xp.float64
        bounds = xp.finfo(dtype)
        low, high = float(bounds.smallest_normal), float(bounds.max)
        parts = []
        for which in chunks(rows.n_rows):
            columns = [library.floats(each[which]) for each in rows.columns]
            value = xp.clip(program(xp, constants, columns), low, high)
            parts.append(xp.astype(value, dtype, copy=False))
        return parts[0] if len(parts) == 1 else xp.concat(parts)


def _warn_of_unseen(root: Node, rows: DeviceRows) -> None:
    library, xp = rows.library, rows.library.xp
    for node in in_order(root):
        if not isinstance(node, Code) or not isinstance(node.partition, LabelBins):
            continue
        assert isinstance(node.x, Column)
        labels = library.floats(library.detached(rows.columns[node.x.position]))
        known = {*node.partition.labels, *node.partition.rare}
        # strings are not numbers
        numbers = (label for label in known if not isinstance(label, str))
        constants, find = finder(LabelBins(in_label_order(numbers)))
        codes = find(xp, [library.here(each) for each in constants], labels)
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
    coverage: Any,
    *,
    asymmetric: bool,
    by_category: Any,
) -> Array:
    """Return the limits of the errors of rows on a device, shape (n, 2)."""
    library, xp = Library.of(predicted), Library.of(predicted).xp
    level = check_coverage(coverage)
    scores.refuse_other_categories(by_category)
    with library.in_64_bits():
        if scores.categories is None:
            codes = xp.astype(xp.zeros_like(predicted), xp.int64)
        else:
            labels = column_beside(library, by_category, "by_category", predicted)
            constants, find = finder(scores.categories)
            here = [library.here(each) for each in constants]
            codes = find(xp, here, library.floats(labels)) - 1
            codes = xp.where(codes < 0, 0 * codes + scores.sizes.size, codes)
        n = library.counts(codes, scores.sizes.size + 1)
        scores.warn_of_few(n, level, asymmetric=asymmetric)
        limits = library.here(scores.limits(level, asymmetric=asymmetric))
        found = xp.take(limits, codes, axis=0) * library.floats(predicted)[:, None]
        return xp.astype(found, predicted.dtype, copy=False)
