"""Distributions that are stretched in each part of the rows, until intervals hold.

The interval of a coverage c reaches from the median of a table of z-scores to two of
its quantiles. How many times as far must it reach to contain the z-score of a row? That
is the row's *stretch* at c. A part of the rows has a quantile of their stretches for
each coverage: that which conformal prediction takes. A row belongs to several parts,
one for each column that makes parts, and its interval takes the largest of theirs.
Intervals of larger coverages contain those of smaller ones; together they are a
distribution again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..._support.checks import Floats, Ints
from ..._support.notices import warn
from ..._support.numerals import number
from ..._support.weighting import levels_of_rows, weights_of
from ...exceptions import FewRowsWarning, InfiniteIntervalWarning
from ...predictions.ordering import ascending
from ..additive import Axis
from ..persistence import flag, floats, index, many, refuse_if, stored
from .quantile_tables import QuantileTable, ZDistribution

if TYPE_CHECKING:
    from ...predictions.predictions import Predictions

# The coverages for which parts are told apart, closer where they are larger: steps of
# 1/100 up to 0.95, of 1/400 up to 0.99, and a few more.
HIGHEST = (0.99, 0.9925, 0.995, 0.9975, 0.999, 0.9995, 0.9999)
STRETCHED_COVERAGES = np.concatenate(
    [np.arange(95) / 100, np.arange(380, 396) / 400, HIGHEST]
)
ROUNDING_OF_LEVELS = 1e-12  # of a level: those that differ by less are the same
NARROWEST = 1e-3  # of how far the outermost quantile is: no interval reaches less


# -- intervals of a table, by coverage -------------------------------------------------


@dataclass(frozen=True, eq=False)
class Reaches:
    """How far the intervals of a table reach, for each of :data:`STRETCHED_COVERAGES`.

    Attributes
    ----------
    median : float
        Where intervals begin; 0 for radii.
    below, above : array of shape (k,)
        How far they reach to both sides, positive.
    """

    median: float
    below: Floats
    above: Floats

    @classmethod
    def of(cls, table: QuantileTable, *, are_radii: bool) -> Reaches:
        """Return the reaches of a table of z-scores, or of radii."""
        if are_radii:
            radius = _widened(
                table.within(STRETCHED_COVERAGES), float(table.values[-1])
            )
            return cls(0.0, radius, radius)
        median = float(table.within(np.array([0.5]))[0])
        low = table.within((1 - STRETCHED_COVERAGES) / 2)
        high = table.within((1 + STRETCHED_COVERAGES) / 2)
        # a side without any extent takes that of the other
        far_below = float(median - table.values[0])
        far_above = float(table.values[-1] - median)
        return cls(
            median,
            _widened(median - low, far_below or far_above),
            _widened(high - median, far_above or far_below),
        )

    def stretches(self, z: Floats, at: int) -> Floats:
        """Return how many times as far intervals must reach to contain each z-score."""
        off = z - self.median
        reach = np.where(off < 0, self.below[at], self.above[at])
        return np.asarray(np.abs(off) / reach)


def _widened(reach: Floats, outermost: float) -> Floats:
    """Return reaches that are positive, as those of equal z-scores are not."""
    return np.asarray(np.maximum(reach, NARROWEST * (outermost or 1.0)))


# -- what a part needs -----------------------------------------------------------------


@stored(n_rows=index, stretches=floats)
@dataclass(frozen=True, eq=False)
class Part:
    """How far intervals must be stretched to contain their share of a part's rows.

    Attributes
    ----------
    n_rows : int
        The rows that tell it; of weighted ones, the effective number.
    stretches : array of shape (k,)
        The stretch for each of the first k of :data:`STRETCHED_COVERAGES`. Of rows held
        out there are as many as these tell; else the largest stands for the rest.

    Notes
    -----
    Of n rows held out, the i-th stretch stands for the coverages up to i / (n + 1):
    that is what the guarantee needs. Of rows out of fold, which have none, stretches
    are linear between these levels, which costs less where rows are few.
    """

    n_rows: int
    stretches: Floats

    def check(self) -> None:
        """Refuse what are no stretches."""
        size = self.stretches.size
        fit = self.stretches.ndim == 1 and 0 < size <= STRETCHED_COVERAGES.size
        refuse_if(not fit, "a part must have a stretch for each coverage that it tells")
        refuse_if((self.stretches < 0).any(), "stretches must be at least 0")


def quantile_of_stretches(
    stretches: Floats, weights: Floats | None, coverage: float, *, held_out: bool
) -> float:
    """Return the conformal quantile of stretches: that which contains a share of rows.

    It is infinite if rows were held out and are too few to tell.
    """
    if weights is not None:
        order, stretches = ascending(stretches)
        weights = weights[order]
    levels = levels_of_rows(stretches.size, weights)
    # levels
    row = int(np.searchsorted(levels, coverage - ROUNDING_OF_LEVELS, side="left"))
    if row == stretches.size and held_out:
        return math.inf
    row = min(row, stretches.size - 1)
    before = max(row - 1, 0)
    if weights is None:  # only these two need to be in their places
        stretches = np.partition(stretches, (before, row))
    if held_out:
        return float(stretches[row])
    around = [before, row]
    return float(np.interp(coverage, levels[around], stretches[around]))


@stored(axes=many(Axis), parts=many(many(Part)), held_out=flag)
@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of the rows: one for each code of each axis.

    Attributes
    ----------
    axes : tuple of Axis
        How columns are cut.
    parts : tuple of tuple of Part
        Of each axis, the part of each of its codes.
    held_out : bool
        Whether rows held out tell them: limits are then infinite beyond what they tell.
    """

    axes: tuple[Axis, ...]
    parts: tuple[tuple[Part, ...], ...]
    held_out: bool

    def check(self) -> None:
        """Refuse parts that do not fit their axes."""
        refuse_if(not self.axes, "there must be an axis for parts")
        refuse_if(len(self.axes) != len(self.parts), "each axis must have its parts")
        for axis, of_axis in zip(self.axes, self.parts, strict=True):
            must = "an axis must have a part for each of its codes"
            refuse_if(axis.n_codes != len(of_axis), must)

    @classmethod
    def learn(
        cls,
        axes: Sequence[Axis],
        rows: Predictions,
        scale: Floats,
        z: ZDistribution,
        *,
        held_out: bool,
    ) -> Parts:
        """Return the parts as rows show them, which no scale has been learned from."""
        members = [_members(axis, rows, held_out=held_out) for axis in axes]

        # of each axis, by code and coverage; that of the coverage 0 is the median
        n_coverages = STRETCHED_COVERAGES.size
        stretches = [np.zeros((len(of_codes), n_coverages)) for of_codes in members]
        score = rows.signed_error / scale
        tables = list(z.of_rows(z.codes(scale)))
        reaches = [
            Reaches.of(table, are_radii=z.dim is not None) for table, _ in tables
        ]
        for at in range(1, n_coverages):
            of_row = np.empty(rows.n_rows)
            for reach, (_, rows_of_table) in zip(reaches, tables, strict=True):
                of_row[rows_of_table] = reach.stretches(score[rows_of_table], at)
            for of_axis, of_codes in zip(stretches, members, strict=True):
                for code, rows_of_code in enumerate(of_codes):
                    of_axis[code, at] = quantile_of_stretches(
                        of_row[rows_of_code],
                        weights_of(rows.weights, rows_of_code),
                        STRETCHED_COVERAGES[at],
                        held_out=held_out,
                    )

        parts = []
        for of_axis, of_codes in zip(stretches, members, strict=True):
            parts_of_axis = []
            for stretch, rows_of_code in zip(of_axis, of_codes, strict=True):
                w = weights_of(rows.weights, rows_of_code)
                size = rows_of_code.size if w is None else int(w.sum())
                parts_of_axis.append(Part(size, stretch[np.isfinite(stretch)]))
            parts.append(tuple(parts_of_axis))
        return cls(tuple(axes), tuple(parts), held_out)

    @property
    def columns(self) -> set[int]:
        """The columns that make parts."""
        return {axis.column for axis in self.axes}

    @property
    def labelled(self) -> set[int]:
        """Those of labels."""
        return {axis.column for axis in self.axes if axis.labels is not None}

    @cached_property
    def _stretches(self) -> list[Floats]:
        """Of each axis, stretches[code, coverage]; infinite where rows lack."""
        of_axes = []
        for of_axis in self.parts:
            stretches = np.full((len(of_axis), STRETCHED_COVERAGES.size), math.inf)
            for of_code, part in zip(stretches, of_axis, strict=True):
                of_code[: part.stretches.size] = part.stretches
            of_axes.append(stretches)
        return of_axes

    def stretched(
        self, z: ZDistribution, scale: Floats, rows: Predictions
    ) -> tuple[StretchedTables, Ints]:
        """Return the tables of all sets of parts that rows are in, and whose is which.

        Two rows have the same table if they are in the same parts and in the same bin
        of the scale.
        """
        bin_of_row = z.codes(scale)
        codes_of_axes = [axis.codes_of(rows) for axis in self.axes]
        set_of_row, first_rows = distinct_rows([bin_of_row, *codes_of_axes])
        reaches = [Reaches.of(table, are_radii=z.dim is not None) for table in z.tables]

        # of each set: the largest stretches, and the fewest rows, of its parts
        tables = []
        n_rows = []
        for row in first_rows:
            stretches = []
            sizes = []
            for i, codes in enumerate(codes_of_axes):
                code = codes[row]
                stretches.append(self._stretches[i][code])
                sizes.append(self.parts[i][code].n_rows)
            reach = reaches[bin_of_row[row]]
            tables.append(self._table(reach, np.max(stretches, axis=0), z.dim))
            n_rows.append(min(sizes))
        stretched = StretchedTables(
            tuple(tables), np.empty(0), tuple(n_rows), z.dim, z.words
        )
        return stretched, set_of_row

    def _table(
        self, reaches: Reaches, stretch: Floats, dim: int | None
    ) -> QuantileTable:
        """Return a table whose intervals reach so many times as far."""
        # the interval of a coverage contains those of smaller ones
        is_told = slice(None, int(np.isfinite(stretch).sum()))
        coverage = STRETCHED_COVERAGES[is_told]
        below = np.maximum.accumulate(stretch[is_told] * reaches.below[is_told])
        above = np.maximum.accumulate(stretch[is_told] * reaches.above[is_told])

        # radii have one side
        if dim is not None:
            levels = np.maximum(coverage, STRETCHED_COVERAGES[1] / 2)
            return QuantileTable(levels, above, self.held_out)

        # limits from the lowest to the highest, with the median in the middle
        levels = np.concatenate([(1 - coverage[:0:-1]) / 2, (1 + coverage) / 2])
        values = np.concatenate([-below[:0:-1], above])
        return QuantileTable(levels, reaches.median + values, self.held_out)

    def lookups(self, z: ZDistribution, level: float) -> list[Lookup]:
        """Return what a graph needs to find a quantile of z of each row: see Lookup.

        Of rows held out it is one lookup, at the next coverage outwards; else two, of
        the coverages on both sides, between which quantiles are linear.
        """
        coverage = level if z.dim is not None else abs(2 * level - 1)
        is_above = z.dim is not None or level >= 0.5

        # the next coverage outwards
        if self.held_out:
            rounded = coverage - 2 * ROUNDING_OF_LEVELS
            at = int(np.searchsorted(STRETCHED_COVERAGES, rounded))  # levels
            return [self._lookup(z, at, 1.0, is_above=is_above)]

        # those on both sides, with the shares of a line between them
        last = STRETCHED_COVERAGES.size - 1
        # levels
        above = int(np.clip(np.searchsorted(STRETCHED_COVERAGES, coverage), 1, last))
        step = STRETCHED_COVERAGES[above] - STRETCHED_COVERAGES[above - 1]
        share = float(min((coverage - STRETCHED_COVERAGES[above - 1]) / step, 1.0))
        return [
            self._lookup(z, above - 1, 1 - share, is_above=is_above),
            self._lookup(z, above, share, is_above=is_above),
        ]

    def _lookup(
        self, z: ZDistribution, at: int, share: float, *, is_above: bool
    ) -> Lookup:
        """Return how far intervals of one of the coverages reach, to one side."""
        reaches = [Reaches.of(table, are_radii=z.dim is not None) for table in z.tables]
        of_axes = []
        for stretches in self._stretches:
            of_tables = []
            for of_table in reaches:
                reach = of_table.above if is_above else of_table.below
                # the largest of this coverage and of all smaller ones
                upto = slice(None, at + 1)
                if at < STRETCHED_COVERAGES.size:
                    of_tables.append((stretches[:, upto] * reach[upto]).max(axis=1))
                else:
                    of_tables.append(np.full(len(stretches), math.inf))
            of_axes.append(np.array(of_tables))
        median = np.array([of_table.median for of_table in reaches])
        return Lookup(share, 1.0 if is_above else -1.0, median, tuple(of_axes))


@dataclass(frozen=True, eq=False)
class Lookup:
    """A quantile of z by tables alone, for graphs that know no sets of parts.

    It is the median plus `sign` times the largest reach of the parts that a row is in.

    Attributes
    ----------
    share : float
        What the quantile found is multiplied by before all lookups are added up.
    sign : float
        1 for a quantile above the median, and −1 for one below.
    median : array of shape (n_tables,)
        The median, by the bin of the scale.
    reaches : tuple of array of shape (n_tables, n_codes)
        Of each axis, the reach of each of its codes, by the bin of the scale.
    """

    share: float
    sign: float
    median: Floats
    reaches: tuple[Floats, ...]


def _members(axis: Axis, rows: Predictions, *, held_out: bool) -> list[Ints]:
    """Return the rows of each part along an axis.

    Of a part without rows nothing is known: where rows are held out, which have a
    guarantee, it has none, and else those of all parts stand for it.
    """
    code_of_row = axis.codes_of(rows)
    members = []
    for code in range(axis.n_codes):
        rows_of_code = np.flatnonzero(code_of_row == code)
        if not rows_of_code.size and not held_out:
            rows_of_code = np.arange(rows.n_rows)
        members.append(rows_of_code)
    return members


def distinct_rows(codes: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return a number for each row, the same for the same codes, and first rows."""
    # one whole number for each set of codes
    joint = np.zeros(codes[0].size, dtype=np.int64)
    for code in codes:
        # whole numbers
        _, joint = np.unique(joint * (int(code.max()) + 1) + code, return_inverse=True)
    _, first = np.unique(joint, return_index=True)  # whole numbers
    return joint, first


@dataclass(frozen=True, eq=False)
class StretchedTables(ZDistribution):
    """The distribution of z, stretched for each set of parts that rows are in.

    What was stretched is in `of`, in words.
    """

    @property
    def words(self) -> str:
        """What it is, in words."""
        return f"{self.of}; stretched to nominal coverage in each part"

    def _warn_of_few(self, levels: Floats) -> None:
        """Say which levels lie beyond what the rows of a part can tell."""
        coverage = levels if self.dim is not None else np.abs(2 * levels - 1)
        most = float(coverage.max(initial=0.0))
        fewest = min(self.n_rows, default=0)
        needed = rows_needed_for(most)
        if fewest >= needed:
            return
        rows = "rows"
        effect = "the outermost is taken for it"
        remedy = "Fit with more"
        category: type[Warning] = FewRowsWarning
        if any(table.infinite for table in self.tables):
            rows = "rows held out"
            effect = "limits are infinite"
            remedy = "Hold out more"
            category = InfiniteIntervalWarning
        warn(
            f"A part has {fewest} {rows}, and a coverage of {number(most, 4)} needs "
            f"{needed} in each: {effect} there. {remedy}, name fewer parts, or ask for "
            "less.",
            category,
            stacklevel=5,
        )


def rows_needed_for(coverage: float) -> int:
    """Return how many rows a conformal interval of some coverage needs: c / (1 − c).

    >>> rows_needed_for(0.9), rows_needed_for(0.95)
    (9, 19)
    """
    most = min(coverage, 1 - 1e-9)
    return math.ceil(round(most / (1 - most), 6))
