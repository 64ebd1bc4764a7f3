"""A sample of a lazy frame, the same for every engine and however rows are divided.

Whether a row is in it depends on the row alone: a hash of its numbers, computed by
additions, multiplications and comparisons, which IEEE 754 fixes to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from .._support.labels import Categories, Label
from ..exceptions import InvalidInputError
from ..predictions import Predictions
from .lazy_rows import Arrays, Frame, LazyRows, collect

SAMPLE = 1_000_000  # rows that are fitted or judged
HASH = "hash of the row"
HASHED_FEATURES = 8  # of those that are numbers
GOLDEN = 0.6180339887498949  # whose multiples are spread out


@dataclass(frozen=True)
class Sample:
    """Rows in memory that stand for those of a lazy frame.

    Attributes
    ----------
    rows : Predictions
        The rows that were drawn, in an order that depends on them alone; or all, as
        they come, where these are few enough.
    n_rows : int
        Rows of the frame.
    smallest_uncertainty : float
        The smallest one of the frame.
    outside : LazyFrame or None
        The rows that were not drawn, with a number in [0, 1) in each, the column HASH;
        None if there are none.
    """

    rows: Predictions
    n_rows: int
    smallest_uncertainty: float
    outside: Frame | None


def check_weight(weight: Any, others: Iterable[Any]) -> list[str]:
    """Return the column of weights, if there is one, which has no other part."""
    if weight is None:
        return []
    if not isinstance(weight, str) or weight in others:
        msg = (
            "`sample_weight` must name a column that has no other part; found "
            f"{weight!r}."
        )
        raise InvalidInputError(msg)
    return [weight]


def draw(rows: LazyRows, most: int, groups: str | None = None) -> Sample:
    """Return about `most` rows of a frame: by a hash of each, or every so many groups.

    `groups` is the name of a feature whose labels stay together.
    """
    seen = _survey(rows)
    n_rows = int(seen["n"][0])
    smallest = float(seen["smallest"][0])
    if n_rows <= most:
        everything = _grouped(in_memory(rows, rows.frame), groups)
        return Sample(everything, n_rows, smallest, None)
    means = {column: float(seen[f"size {column}"][0]) for column in _hashed(rows)}
    frame = with_hash(rows.frame, means)
    if groups is None:
        inside = nw.col(HASH) < most / n_rows
    else:
        column = rows.columns[rows.names.index(groups)]
        distinct = collect(rows.frame.select(column).unique())[column]
        kept = list(Categories.of(distinct).labels[:: -(-n_rows // most)])
        inside = nw.col(column).is_in(kept)
    # rows that are alike are drawn or left together: more may come than was asked for
    drawn = frame.filter(inside).head(2 * most + 1)
    found = in_memory(rows, drawn)
    found = found.take(np.lexsort([*found.columns[::-1], found.errors]))
    if not most / 2 <= found.n_rows <= 2 * most and groups is None:
        msg = (
            f"`frame` has rows that are too much alike to be sampled: of {n_rows}, "
            f"{most} were wanted, and {'over ' if found.n_rows > most else ''}"
            f"{found.n_rows} were drawn. Name a feature that tells rows apart, or "
            "collect a sample of your own."
        )
        raise InvalidInputError(msg)
    return Sample(_grouped(found, groups), n_rows, smallest, frame.filter(~inside))


def with_hash(frame: Frame, means: Mapping[str, float]) -> Frame:
    """Return the frame with a number in [0, 1) in each row, as good as random.

    It depends on the columns that are named, each with the mean size of its values. One
    after the other, they are added to what has become of the others, multiplied by
    something large, and what is left of the point is cut off. Units are powers of two:
    the last bits of a mean depend on the order in which an engine adds up, and powers
    of two do not.
    """
    frame = frame.with_columns(nw.lit(GOLDEN).alias(HASH))
    value = nw.col(HASH)
    for k, (name, mean) in enumerate(means.items()):
        unit = 2.0 ** -np.round(np.log2(mean)) if mean > 1e-290 else 1.0
        many = 1e7 * (1 + (k * GOLDEN) % 1.0)
        x = nw.col(name).fill_null(0.0) * float(many * unit)
        frame = frame.with_columns((value + (x - x.floor())).alias(HASH))
        mixed = value * (9973.0 * (1 + GOLDEN))
        frame = frame.with_columns((mixed - mixed.floor()).alias(HASH))
    return frame


def _hashed(rows: LazyRows) -> list[str]:
    """Return the columns that the hash is made of: numbers, the same in all engines."""
    features = [column for column in rows.columns[1:] if column not in rows.labelled]
    return ["e", "u", *features[:HASHED_FEATURES]]


def _survey(rows: LazyRows) -> Arrays:
    """Return the number of rows and the sizes of values; refuse what cannot be used."""
    numbers = [column for column in rows.columns if column not in rows.labelled]
    wanted = {f"size {name}": nw.col(name).abs().mean() for name in _hashed(rows)}
    counts = {f"count {name}": nw.col(name).count() for name in numbers}
    wanted |= {"n": nw.len(), "smallest": nw.col("u").min(), **counts}
    seen = collect(rows.frame.select(**wanted))
    n_rows = int(seen["n"][0])
    if not n_rows or any(int(seen[name][0]) < n_rows for name in counts):
        rows.refuse(missing_allowed=bool(n_rows))
    return seen


def in_memory(rows: LazyRows, frame: Frame) -> Predictions:
    """Return the rows that a frame has, in the order in which they come."""
    found = collect(frame.select("e", *rows.columns))
    columns: list[Any] = []
    categories: list[tuple[Label, ...] | None] = []
    for column in rows.columns:
        labels = Categories.of(found[column]) if column in rows.labelled else None
        categories.append(None if labels is None else labels.labels)
        columns.append(found[column].astype(float) if labels is None else labels.codes)
    error = found["e"].astype(np.float64)
    return Predictions.of(columns, rows.names, error, categories=categories)


def _grouped(rows: Predictions, groups: str | None) -> Predictions:
    """Return rows whose groups are the labels of a column."""
    if groups is None:
        return rows
    return rows.changed(groups=rows.columns[rows.names.index(groups)])
