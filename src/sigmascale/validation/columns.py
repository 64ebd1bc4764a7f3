"""Columns in cells: their parts, which T is about, and the runs that a search looks at.

Each column is cut once into at most 60 cells of equal weight; equal values are never
parted. Parts and runs are sums of neighbouring cells, so that one count by cell gives
the sums of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from .._support.checks import Floats, Ints
from .._support.labels import label_text
from .._support.numerals import number
from .._support.text import shorten
from .._support.threads import in_threads
from .._support.weighting import WeightLine
from .values import Values

N_CELLS = 60  # of a number: parts and ends of runs are some of their ends
N_BLOCKS = 20  # between whose ends runs reach: with 15, half of the tenths are missed
N_PARTS = 5
N_TENTHS = 10
FEWEST = 20  # rows in effect of a region, and units of a set
FEW_VALUES = 20  # distinct values of a number, up to which each is a cell
RARE_SHARE = 0.01  # of the rows with rare labels, from which they are one part
RARE = "rare labels"
LONGEST_NAME = 100  # characters of a name; longer ones are shortened in the middle
TIME = "time"
ColumnKind = Literal["given", "time", "ranks", "trees"]


def no_regions() -> Ints:
    """Return no regions."""
    return np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Column:
    """A column in cells, and the regions that are made of them.

    Attributes
    ----------
    name : str
        What it is called: "u", a feature, "time", or a combination.
    code : array of int
        The cell of each row, or of those that it says something of.
    n_cells : int
        The number of cells.
    parts : array of int, shape (n_parts, 2)
        Disjoint regions that T is about, from a first cell up to another.
    runs : array of int, shape (n_runs, 2)
        Regions that the search looks at, too.
    short_runs : array of int, shape (n_short_runs, 2)
        Runs of one or two cells.
    tenths : array of int, shape (n_tenths, 2)
        Those runs that are tenths, for pictures.
    low, high : arrays of shape (n_cells,)
        The smallest and the largest number of each cell; none of labels.
    labels : tuple of str, or None
        The label of each cell, those that are parts first.
    left_out : float
        The share of the rows whose labels are too rare to be tested alone.
    rows : array of int, or None
        The rows that it says something of; None for all.
    is_date : bool
        Whether numbers are microseconds since 1970.
    kind : {"given", "time", "ranks", "trees"}
        What it is: u or a feature, the time of the rows, a sum or difference of ranks
        of two columns, or what trees predict.
    """

    name: str
    code: Ints
    n_cells: int
    parts: Ints
    runs: Ints
    short_runs: Ints = field(default_factory=no_regions)
    tenths: Ints = field(default_factory=no_regions)
    low: Floats = field(default_factory=lambda: np.empty(0))
    high: Floats = field(default_factory=lambda: np.empty(0))
    labels: tuple[str, ...] | None = None
    left_out: float = 0.0
    rows: Ints | None = None
    is_date: bool = False
    kind: ColumnKind = "given"

    def of_rows(self, x: Any) -> Any:
        """Return what an array of all rows has for those with a cell."""
        return x if self.rows is None else x[self.rows]

    def condition(self, cells: Ints) -> Condition:
        """Return what rows in some cells have in common."""
        if self.labels is not None:
            labels = tuple(self.labels[i] for i in cells)
            return Condition(self.name, labels=labels, kind=self.kind)
        low = float(self.low[cells[0]])
        high = float(self.high[cells[-1]])

        def end(x: float, cell: int, last: int) -> float | str | None:
            if cell == last and low != high:  # the range is open
                return None
            return date_text(x) if self.is_date else x

        last = self.n_cells - 1
        ends = end(low, cells[0], 0), end(high, cells[-1], last)
        return Condition(self.name, *ends, kind=self.kind)

    def cells_of(self, condition: Condition) -> Ints:
        """Return the cells of which all rows fulfil a condition."""
        if self.labels is not None:
            return np.flatnonzero(np.isin(self.labels, condition.labels))
        is_in = np.ones(self.n_cells, dtype=np.bool_)
        if condition.low is not None:
            is_in &= self.low >= _as_number(condition.low)
        if condition.high is not None:
            is_in &= self.high <= _as_number(condition.high)
        return np.flatnonzero(is_in)


@dataclass(frozen=True)
class Condition:
    """What some rows have in common: a range of a column, or labels of it.

    Attributes
    ----------
    column : str
        "u", a feature, "time", "x0 − x1" of ranks, or "combinations" for the error that
        trees expect.
    low, high : float, str or None
        The limits of the range, both within it; None where it is open. Text is a date.
    labels : tuple of str
        The labels.
    kind : {"given", "time", "ranks", "trees"}
        What the column is. Ranks are between 0 and 1; limits of what trees predict mean
        nothing to a reader.
    """

    column: str
    low: float | str | None = None
    high: float | str | None = None
    labels: tuple[str, ...] = ()
    kind: ColumnKind = "given"

    @property
    def text(self) -> str:
        """The condition in words."""
        if self.kind == "trees":
            return "a group found by a tree model"
        if self.labels:
            return label_words(self.column, *self.labels)
        words = range_words(self.column, self.low, self.high)
        return f"{words} (ranks)" if self.kind == "ranks" else words


# -- columns in cells ------------------------------------------------------------------


def columns_of(values: Values) -> list[Column]:
    """Return u, the features and the time of the rows, in cells."""
    rows = values.rows

    def column(i: int) -> Column:
        name, x, labels = rows.names[i], rows.columns[i], rows.categories[i]
        if labels is None:
            return column_of_numbers(name, x, values.w, rows.n_effective)
        return _column_of_labels(name, x, labels, values)

    columns = in_threads(column, range(len(rows.names)), rows.n_rows)
    if rows.time is not None and rows.time.min() < rows.time.max():
        is_date = rows.time.dtype.kind == "M"
        x = (
            rows.time.astype("datetime64[us]").astype(np.int64)
            if is_date
            else rows.time
        )
        name = TIME if TIME not in rows.names else f"{TIME} of the rows"
        moments = x.astype(np.float64)
        of_time = column_of_numbers(name, moments, values.w, rows.n_effective)
        columns.append(replace(of_time, is_date=is_date, kind="time"))
    return columns


def column_of_numbers(
    name: str,
    x: Floats,
    w: Floats,
    n_eff: float,
    *,
    n_blocks: int | None = None,
) -> Column:
    """Cut numbers into cells of about equal weight; few values are cells one by one.

    With a number of blocks, these are the cells, and there are no shorter runs.
    """
    n_cells = N_CELLS if n_blocks is None else n_blocks
    # the numbers in order, and those at which cells of equal weight begin
    if (w == 1).all():
        ordered = np.sort(x)
        first = np.arange(1, n_cells) * x.size // n_cells
    else:
        order = np.argsort(x, kind="stable")
        ordered = x[order]
        line = WeightLine(w[order])
        first = line.after(np.arange(1, n_cells) / n_cells * line.total)
    is_new = np.append(True, ordered[1:] > ordered[:-1])
    by_value = np.count_nonzero(is_new) <= FEW_VALUES
    starts = ordered[is_new] if by_value else np.unique(ordered[first])
    starts = starts[starts > ordered[0]]
    code = np.searchsorted(starts, x, side="right")
    begin = np.append(0, np.searchsorted(ordered, starts))
    end = np.append(begin[1:], x.size) - 1
    share = np.bincount(code, w, starts.size + 1) / w.sum()

    # parts are fifths, or values; runs reach from an end of a block to another
    middle = np.cumsum(share) - share / 2

    def starts_of(n: int) -> Ints:
        """Return the cells at which n blocks of equal weight start, and the end."""
        block = np.minimum((middle * n).astype(np.int64), n - 1)
        if by_value:
            block = np.arange(share.size)
        return np.append(np.flatnonzero(np.diff(block, prepend=-1)), share.size)

    ends = starts_of(n_blocks or N_BLOCKS)
    runs = np.array(list(combinations(ends, 2)))
    short_runs = no_regions()
    if n_blocks is None and not by_value:
        one = np.arange(share.size)
        short_runs = np.array(
            [(i, i + n) for n in (1, 2) for i in one[: one.size + 1 - n]]
        )
    return Column(
        name,
        code,
        share.size,
        parts=_pairs(_joined(starts_of(N_PARTS), share, _least_share(n_eff))),
        runs=runs[np.diff(runs)[:, 0] < share.size],
        short_runs=short_runs,
        tenths=_pairs(starts_of(N_TENTHS)),
        low=ordered[begin],
        high=ordered[end],
    )


def _pairs(ends: Ints) -> Ints:
    """Return regions from each end to the next."""
    return np.column_stack([ends[:-1], ends[1:]])


def _column_of_labels(
    name: str, x: Ints, labels: Sequence[Any], values: Values
) -> Column:
    """Make a cell of each label; those with too few rows to be a region share one."""
    # labels in the order of their cells: those that are parts, others, rare ones as one
    n_eff = values.rows.n_effective
    share = np.bincount(x, values.w, len(labels)) / values.w.sum()
    but_rounding = 1 - 1e-9
    is_part = share >= _least_share(n_eff) * but_rounding
    is_rare = share < FEWEST / n_eff * but_rounding
    is_cell = ~is_rare
    ordered = [*np.flatnonzero(is_part), *np.flatnonzero(is_cell & ~is_part)]
    place = np.full(len(labels), len(ordered))
    place[ordered] = np.arange(len(ordered))
    code = place[x]
    names = [label_text(labels[i]) for i in ordered]
    if share[is_rare].any():
        names.append(RARE)
    share = np.bincount(code, values.w, len(names)) / values.w.sum()

    # parts are the frequent labels, and all others together
    cells = np.arange(len(names))
    n_parts = int(np.count_nonzero(is_part))
    ends = np.arange(n_parts + 1)
    others = float(share[n_parts:].sum())
    has_rest = others >= max(RARE_SHARE, FEWEST / n_eff) * but_rounding
    if has_rest:
        ends = np.append(ends, len(names))
    is_missed = others > (1 / N_PARTS if has_rest else RARE_SHARE)
    return Column(
        name,
        code,
        share.size,
        parts=_pairs(ends),
        runs=np.column_stack([cells, cells + 1]) if cells.size > 1 else no_regions(),
        labels=tuple(names),
        left_out=others if is_missed else 0.0,
    )


def _least_share(n_eff: float) -> float:
    """Return the least share of a part: a quarter of a fifth, and `FEWEST` rows."""
    return max(0.25 / N_PARTS, FEWEST / n_eff)


def _joined(ends: Ints, share: Floats, least: float) -> Ints:
    """Let each part with less than the least share join its smaller neighbour."""
    while ends.size > 2:
        size = np.add.reduceat(share, ends[:-1])
        i = int(np.argmin(size))
        if size[i] >= least * (1 - 1e-9):
            break
        neighbours = [k for k in (i - 1, i + 1) if 0 <= k < size.size]
        other = min(neighbours, key=lambda k: size[k])
        ends = np.delete(ends, max(i, other))
    return ends


# -- in words ------------------------------------------------------------------------


def date_text(x: float) -> str:
    """Return microseconds since 1970 as a date, with the time of day if it has one.

    >>> date_text(0.0), date_text(3.6e9)
    ('1970-01-01', '1970-01-01T01:00')
    """
    at = np.datetime64(round(x), "us")
    if at == at.astype("datetime64[D]"):
        return str(at.astype("datetime64[D]"))
    return str(at.astype("datetime64[m]"))


def _as_number(end: float | str) -> float:
    """Return an end of a range: of dates, in microseconds since 1970."""
    if isinstance(end, str):
        return float(np.datetime64(end, "us").astype(np.int64))
    return end


def range_words(name: str, low: Any, high: Any) -> str:
    """Return a range of a column in words; it is open where a limit is None.

    >>> range_words("mass", 3.0, None), range_words("mass", -3.0, 4.5123)
    ('mass ≥ 3', 'mass −3 to 4.51')
    >>> range_words("x", 1.00012, 1.00034), range_words("day", "2024-05-01", None)
    ('x 1.0001 to 1.0003', 'day ≥ 2024-05-01')
    """
    name = shorten(name, LONGEST_NAME)
    start, end = _ends_in_words(low, high)
    if low is None and high is None:
        return f"any {name}"
    if low is None:
        return f"{name} ≤ {end}"
    if high is None:
        return f"{name} ≥ {start}"
    return f"{name} = {start}" if low == high else f"{name} {start} to {end}"


def _ends_in_words(low: Any, high: Any) -> tuple[str, str]:
    """Return limits with as many digits, three at least, as tell them apart."""
    words: tuple[str, str] = ("", "")
    for digits in range(3, 16):
        start, end = (
            x if isinstance(x, str) else "" if x is None else number(x, digits)
            for x in (low, high)
        )
        words = (start, end)
        if start != end or low == high:
            break
    return words


def label_words(name: str, *labels: str) -> str:
    """Return some labels of a column in words.

    >>> label_words("kind", "a", "b", "c", "d")
    'kind = a, b and 2 more'
    """
    more = f" and {len(labels) - 2} more" if len(labels) > 2 else ""
    listed = ", ".join(shorten(label, LONGEST_NAME) for label in labels[:2])
    return f"{shorten(name, LONGEST_NAME)} = {listed}{more}"
