"""A sample of a lazy frame, the same for every engine and however rows are divided.

Whether a row is in it depends on the row alone: a hash of its numbers, computed by
additions, multiplications and comparisons, which IEEE 754 fixes to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from .._support.checks import check_count
from .._support.labels import Categories, Label
from ..exceptions import InvalidInputError
from ..predictions import Predictions
from .lazy import Arrays, Frame, LazyRows, collect, names_of, read_rows

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
        The rows that were drawn, with their groups and weights, in an order that
        depends on them alone; or all, as they come, where these are few enough.
    n_rows : int
        Rows of the frame.
    smallest_uncertainty : float
        The smallest one of the frame.
    outside : LazyFrame or None
        The rows that were not drawn; None if there are none. Its columns are e, u, x1,
        x2, ..., and of features, the first ones.
    weight : str or None
        Its column of weights.
    """

    rows: Predictions
    n_rows: int
    smallest_uncertainty: float
    outside: Frame | None
    weight: str | None = None


def draw(
    frame: Any,
    error: str,
    uncertainty: str,
    features: Any = (),
    *,
    most: Any = SAMPLE,
    groups: str | None = None,
    weight: Any = None,
) -> Sample:
    """Return about `most` rows of a frame: by a hash of each, or every so many groups.

    `groups` and `weight` are the names of columns.
    """
    most = check_count(most, "sample", least=100)
    features = names_of(features)
    taken = [error, uncertainty, groups, *features]
    if weight is not None and (not isinstance(weight, str) or weight in taken):
        msg = (
            "`sample_weight` must name a column that has no other part; found "
            f"{weight!r}."
        )
        raise InvalidInputError(msg)
    together = [] if groups is None or groups in features else [groups]
    weights = [] if weight is None else [weight]
    rows = read_rows(
        frame,
        error,
        uncertainty,
        [*features, *together, *weights],
        categorical=together,
    )
    sample = _draw(rows, most, None if groups is None else rows.column(groups))
    found = sample.rows.with_features(features)
    if groups is not None:
        found = found.changed(groups=sample.rows.labels(groups).codes)
    if weight is None:
        return replace(sample, rows=found)
    weighted = found.weighted(sample.rows.numbers(weight), "frame")
    return replace(sample, rows=weighted, weight=rows.column(weight))


def _draw(rows: LazyRows, most: int, groups: str | None) -> Sample:
    """Return about so many rows; those with the same label in `groups` together."""
    seen = _survey(rows, groups)
    n_rows = int(seen["n"][0])
    smallest = float(seen["smallest"][0])
    if n_rows <= most:
        return Sample(_in_memory(rows, rows.frame), n_rows, smallest, None)
    means = {column: float(seen[f"size {column}"][0]) for column in _hashed(rows)}
    frame = with_hash(rows.frame, means)
    if groups is None:
        inside = nw.col(HASH) < most / n_rows
    else:
        distinct = collect(rows.frame.select(groups).unique())[groups]
        kept = list(Categories.of(distinct).labels[:: -(-n_rows // most)])
        inside = nw.col(groups).is_in(kept)
    # rows that are alike are drawn or left together: more may come than was asked for
    found = _in_memory(rows, frame.filter(inside).head(2 * most + 1))
    found = found.take(np.lexsort([*found.columns[::-1], found.errors]))
    if not most / 2 <= found.n_rows <= 2 * most and groups is None:
        msg = (
            f"`frame` has rows that are too much alike to be sampled: of {n_rows}, "
            f"{most} were wanted, and {'over ' if found.n_rows > most else ''}"
            f"{found.n_rows} were drawn. Name a feature that tells rows apart, or "
            "collect a sample of your own."
        )
        raise InvalidInputError(msg)
    return Sample(found, n_rows, smallest, frame.filter(~inside))


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


def _survey(rows: LazyRows, groups: str | None) -> Arrays:
    """Return the number of rows and the sizes of values; refuse what cannot be used."""
    numbers = [column for column in rows.columns if column not in rows.labelled]
    wanted = {f"size {name}": nw.col(name).abs().mean() for name in _hashed(rows)}
    counts = {f"count {name}": nw.col(name).count() for name in numbers}
    wanted |= {"n": nw.len(), "smallest": nw.col("u").min(), **counts}
    if groups is not None:
        wanted["grouped"] = nw.col(groups).count()
    seen = collect(rows.frame.select(**wanted))
    n_rows = int(seen["n"][0])
    if not n_rows or any(int(seen[name][0]) < n_rows for name in counts):
        rows.refuse(missing_allowed=bool(n_rows))
    if groups is not None and seen["grouped"][0] < n_rows:
        # as labels, they would all be the same
        name = rows.names[rows.columns.index(groups)]
        msg = (
            f"`groups` must have a label for every row; {n_rows - seen['grouped'][0]} "
            f"of {name!r} are missing. Give a row that belongs to no other a label of "
            "its own."
        )
        raise InvalidInputError(msg)
    return seen


def _in_memory(rows: LazyRows, frame: Frame) -> Predictions:
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
