"""From a map and rows to recalibrated uncertainties, finite and positive."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._support.checks import LARGEST, SMALLEST, Floats
from .._support.telling import warn
from ..bins.partitions import LabelBins
from ..exceptions import UnseenGroupWarning
from ..oddities import Profile
from ..predictions import Predictions, check_nonnegative_uncertainty
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
    u = check_nonnegative_uncertainty(rows.numbers(0), smallest=smallest)
    rows = rows.with_uncertainty(in_range(u))
    columns = _columns(root, rows)
    _warn_of_unseen(root, rows, columns)
    if seen is not None:
        kinds = {column.position: column.kind for column in columns_of(root)}
        seen.warn_of_others(rows, n_fit, kinds)
    return _rescaled(root, columns, rows.n_rows)


def rescale(root: Node, rows: Predictions) -> Floats:
    """Return the recalibrated uncertainties of rows whose uncertainties are positive.

    Nothing is said about labels that were never seen.
    """
    return _rescaled(root, _columns(root, rows), rows.n_rows)


def in_range(u: Floats) -> Floats:
    """Return positive uncertainties in the range of those that can be squared."""
    if u.min() < SMALLEST or u.max() > LARGEST:
        return np.clip(u, SMALLEST, LARGEST)
    return u


def _columns(root: Node, rows: Predictions) -> list[Any]:
    """Return the columns that a map reads, each checked for what the map takes it."""
    columns: list[Any] = [None] * len(rows.columns)
    for column in columns_of(root):
        if column.kind == "label":
            columns[column.position] = rows.labels(column.position)
        elif column.kind == "optional":
            columns[column.position] = rows.numbers_or_missing(column.position)
        else:
            columns[column.position] = rows.numbers(column.position)
    return columns


def _rescaled(root: Node, columns: list[Any], n_rows: int) -> Floats:
    # what leaves the range of numbers is brought back into it
    result = evaluate(root, columns, n_rows)
    return np.clip(result, _FLOAT.tiny, _FLOAT.max, out=result)


def _warn_of_unseen(root: Node, rows: Predictions, columns: list[Any]) -> None:
    for node in in_order(root):
        if not isinstance(node, Code) or not isinstance(node.partition, LabelBins):
            continue
        assert isinstance(node.x, Column)
        position = node.x.position
        unseen = node.partition.count_unseen(columns[position])
        if unseen:
            warn(
                f"{unseen} of {rows.n_rows} rows have a label in column "
                f"{rows.names[position]!r} that was not seen in fit; they take the "
                "average factor.",
                UnseenGroupWarning,
                stacklevel=4,
            )
