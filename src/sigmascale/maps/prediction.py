"""From a map and rows to recalibrated uncertainties, finite and positive."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._support.checks import LARGEST, SMALLEST, Floats
from .._support.notices import warn
from ..bins.partitions import LabelBins
from ..exceptions import UnseenCategoryWarning
from ..oddities import Profile
from ..predictions import Predictions, with_positive_uncertainty
from .evaluation import evaluate
from .nodes import Code, Column, Node, columns_of, in_order

_FLOAT = np.finfo(np.float64)


def recalibrate(
    root: Node,
    rows: Predictions,
    *,
    smallest: float,
    seen: Profile | None = None,
    n_fit: int = 0,
) -> Floats:
    """Return the recalibrated uncertainties of rows that nobody has checked yet.

    Uncertainties of 0 are raised to the `smallest` seen in fit, with a warning; so are
    there warnings of labels that were never seen, and of rows unlike the `n_fit` ones
    that were `seen`.
    """
    rows = with_positive_uncertainty(rows, smallest=smallest)
    rows = rows.with_uncertainty(in_range(rows.uncertainty))
    columns = list(columns_of(root))
    if any(column.kind == "label" for column in columns):
        _warn_of_unseen(root, rows)
    if seen is not None:
        kinds = {column.position: column.kind for column in columns}
        seen.warn_of_others(rows, n_fit, kinds)
    return rescale(root, rows)


def rescale(root: Node, rows: Predictions) -> Floats:
    """Return the recalibrated uncertainties of rows whose uncertainties are positive.

    Other columns are checked for what the map takes them. Nothing is said about labels
    that were never seen.
    """
    columns: list[Any] = [rows.uncertainty, *[None] * (len(rows.columns) - 1)]
    for column in columns_of(root):
        position = column.position
        if column.kind == "label":
            columns[position] = rows.labels(position)
        elif column.kind == "optional":
            columns[position] = rows.numbers_or_missing(position)
        elif position:
            columns[position] = rows.numbers(position)
    # what leaves the range of numbers is brought back into it
    result = evaluate(root, columns, rows.n_rows)
    return np.clip(result, _FLOAT.tiny, _FLOAT.max, out=result)


def in_range(u: Floats) -> Floats:
    """Return positive uncertainties in the range of those that can be squared."""
    if u.min() < SMALLEST or u.max() > LARGEST:
        return np.clip(u, SMALLEST, LARGEST)
    return u


def _warn_of_unseen(root: Node, rows: Predictions) -> None:
    for node in in_order(root):
        if not isinstance(node, Code) or not isinstance(node.partition, LabelBins):
            continue
        assert isinstance(node.x, Column)
        position = node.x.position
        unseen = node.partition.count_unseen(rows.labels(position))
        if unseen:
            warn(
                f"{unseen} of {rows.n_rows} rows have a label in column "
                f"{rows.names[position]!r} that was not seen in fit; they take the "
                "average factor.",
                UnseenCategoryWarning,
                stacklevel=4,
            )
