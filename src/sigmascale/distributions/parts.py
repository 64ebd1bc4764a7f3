"""Distributions that are stretched in each part of the rows, until intervals hold.

How far must a distribution be taken to hold a z-score? Its *reach* says it. Up to 1 it
is the share of the central interval, or of the ball, that just holds it; beyond the
outermost quantile it is 1 + log(distance / distance of that quantile), distances being
those from the median. The larger a reach, the wider the interval, on both sides.

A part of the rows has a quantile of their reaches for each coverage: that which
conformal prediction takes. A row belongs to several parts, one for each column that
makes parts, and takes the largest of theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.checks import Floats, Ints
from .._support.notices import warn
from .._support.weighting import weights_of
from ..additive import Axis
from ..exceptions import FewRowsWarning, InfiniteIntervalWarning
from ..persistence import flag, floats, index, many, refuse_if, stored
from .tables import QuantileTable, ZDistribution, levels_of_rows

if TYPE_CHECKING:
    from ..predictions import Predictions

# The coverages for which parts are told apart, closer where they are larger: steps of
# 1/400 up to 0.95, of 1/4000 up to 0.995, and of 1/40000 up to 0.9999.
COVERAGES = np.concatenate(
    [
        np.arange(380) / 400,
        np.arange(3800, 3980) / 4000,
        np.arange(39_800, 39_997) / 40_000,
    ]
)
ROUNDING = 1e-12  # of a level: those that differ by less are the same


# -- how far a distribution must be taken ----------------------------------------------


def reaches(table: QuantileTable, z: Floats, *, are_radii: bool) -> Floats:
    """Return how far a table must be taken to hold each z-score, or radius."""
    outermost = _outermost(table, are_radii=are_radii)
    if are_radii:
        centre = np.zeros(z.size)
        inside = table.below(z)
        end = np.full(z.size, outermost[1])
    else:
        centre = np.full(z.size, _median(table))
        # of a z-score with a probability of its own, its side that is nearer
        inside = np.maximum(1 - 2 * table.cdf(z), 2 * table.below(z) - 1)
        end = np.where(z < centre, outermost[0], outermost[1])
    times = np.abs(z - centre) / end
    beyond = 1 + np.log(np.maximum(times, 1.0))
    return np.where(times > 1, beyond, np.clip(inside, 0.0, 1.0))


def limits(
    table: QuantileTable, reach: Floats, *, are_radii: bool
) -> tuple[Floats, Floats]:
    """Return the limits of the intervals of some reaches; of radii, the lower is 0."""
    share = np.minimum(reach, 1.0)
    times = np.exp(np.maximum(reach - 1, 0.0))
    _, end_above = outermost = _outermost(table, are_radii=are_radii)
    if are_radii:
        radius = table.within(share + ROUNDING)
        return np.zeros(reach.size), np.where(reach > 1, times * end_above, radius)
    centre = _median(table)
    low = table.within((1 - share) / 2 - ROUNDING)
    high = table.within((1 + share) / 2 + ROUNDING)
    return (
        np.where(reach > 1, centre - times * outermost[0], low),
        np.where(reach > 1, centre + times * outermost[1], high),
    )


def _median(table: QuantileTable) -> float:
    return float(table.within(np.array([0.5]))[0])


def _outermost(table: QuantileTable, *, are_radii: bool) -> tuple[float, float]:
    """Return how far the outermost quantiles are from the median, both positive."""
    if are_radii:
        return 1.0, float(table.values[-1]) or 1.0
    centre = _median(table)
    below = float(centre - table.values[0])
    above = float(table.values[-1] - centre)
    # a side without any extent takes that of the other
    below, above = below or above, above or below
    return below or 1.0, above or 1.0


# -- what a part needs -----------------------------------------------------------------


@stored(n_rows=index, reaches=floats)
@dataclass(frozen=True, eq=False)
class Part:
    """How far distributions must be taken to hold their share of the rows of a part.

    Attributes
    ----------
    n_rows : int
        The rows that tell it; of weighted ones, the effective number.
    reaches : array of shape (k,)
        The reach that holds each of the first k of :data:`COVERAGES`. Of rows held out
        there are as many as these tell; else the largest stands for the rest.

    Notes
    -----
    Of n rows held out, the i-th reach stands for the coverages up to i / (n + 1): that
    is what the guarantee needs. Of rows out of fold, which have none, reaches are
    linear between these levels, which costs less where rows are few.
    """

    n_rows: int
    reaches: Floats

    @classmethod
    def learn(cls, reach: Floats, weights: Floats | None, *, held_out: bool) -> Part:
        """Return what rows tell of the reach that holds each coverage."""
        if not reach.size:
            return cls(0, np.zeros(1))
        order = np.argsort(reach, kind="stable")
        ordered = reach[order]
        weights = weights_of(weights, order)
        n_rows = reach.size if weights is None else int(weights.sum())
        levels = levels_of_rows(reach.size, weights)
        if held_out:
            # the next row upwards, as far as there is one
            at = np.searchsorted(levels, COVERAGES - ROUNDING, side="left")
            needed = ordered[at[at < reach.size]]
        else:
            needed = np.interp(COVERAGES, levels, ordered)
        needed[0] = 0.0  # a coverage of 0 is that of the median
        return cls(n_rows, needed)

    def reach(self, at: int) -> float:
        """Return the reach of one of the coverages; infinite beyond what rows tell."""
        return float(self.reaches[at]) if at < self.reaches.size else math.inf

    def check(self) -> None:
        """Refuse what are no reaches."""
        wrong: Any = self.reaches.ndim != 1 or not self.reaches.size
        wrong = wrong or self.reaches.size > COVERAGES.size
        refuse_if(wrong, "a part must have a reach for each coverage that it tells")
        wrong = self.reaches[0] != 0 or (np.diff(self.reaches) < 0).any()
        refuse_if(wrong, "reaches of a part must ascend from 0")


@dataclass(frozen=True, eq=False)
class Lookup:
    """A quantile of z by tables alone, for graphs that know no sets of parts.

    The largest rank of the parts that a row is in is that of its reach, by which its
    quantile is found.

    Attributes
    ----------
    share : float
        What the quantile found is multiplied by before all lookups are added up.
    ranks : tuple of array of int
        Of each axis, the rank of the reach of each of its codes.
    quantiles : array of shape (n_tables, n_ranks)
        The quantile of z, by the bin of the scale and the rank.
    """

    share: float
    ranks: tuple[Ints, ...]
    quantiles: Floats


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
            wrong = axis.n_codes != len(of_axis)
            refuse_if(wrong, "an axis must have a part for each of its codes")

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
        """Return the parts as rows tell them, which no scale has been learned from."""
        score = rows.signed_error / scale
        reach = np.empty(rows.n_rows)
        for table, own in z.of_rows(z.codes(scale)):
            reach[own] = reaches(table, score[own], are_radii=z.dim is not None)

        of_all = Part.learn(reach, rows.weights, held_out=held_out)
        parts = []
        for axis in axes:
            code = codes_along(axis, rows)
            of_axis = []
            for k in range(axis.n_codes):
                own = np.flatnonzero(code == k)
                weights = weights_of(rows.weights, own)
                part = Part.learn(reach[own], weights, held_out=held_out)
                # nothing is known of a part without rows, and nothing was promised
                of_axis.append(part if own.size or held_out else of_all)
            parts.append(tuple(of_axis))
        return cls(tuple(axes), tuple(parts), held_out)

    @property
    def columns(self) -> set[int]:
        """The columns that make parts."""
        return {axis.column for axis in self.axes}

    @property
    def labelled(self) -> set[int]:
        """Those of labels."""
        return {axis.column for axis in self.axes if axis.labels is not None}

    def stretched(
        self, z: ZDistribution, scale: Floats, rows: Predictions
    ) -> tuple[StretchedTables, Ints]:
        """Return the tables of all sets of parts that rows are in, and whose is which.

        Two rows have the same table if they are in the same parts and in the same bin
        of the scale.
        """
        codes = [z.codes(scale), *(codes_along(axis, rows) for axis in self.axes)]
        code_of_row, first = distinct_rows(codes)
        tables = []
        n_rows = []
        for row in first:
            own = [
                of_axis[code[row]]
                for of_axis, code in zip(self.parts, codes[1:], strict=True)
            ]
            tables.append(self._stretched(z.tables[codes[0][row]], own, z.dim))
            n_rows.append(min(part.n_rows for part in own))
        new = StretchedTables(tuple(tables), np.empty(0), tuple(n_rows), z.dim, z.words)
        return new, code_of_row

    def lookups(self, z: ZDistribution, level: float) -> list[Lookup]:
        """Return what a graph needs to find a quantile of z of each row: see Lookup.

        Of rows held out it is one lookup, at the next coverage outwards; else two, of
        the coverages on both sides, between which quantiles are linear.
        """
        coverage = level if z.dim is not None else abs(2 * level - 1)
        last = COVERAGES.size - 1
        if self.held_out:
            at = int(np.searchsorted(COVERAGES, coverage - 2 * ROUNDING))
            return [self._lookup(z, level, at, share=1.0)]
        above = int(np.clip(np.searchsorted(COVERAGES, coverage), 1, last))
        step = COVERAGES[above] - COVERAGES[above - 1]
        share = float(min((coverage - COVERAGES[above - 1]) / step, 1.0))
        return [
            self._lookup(z, level, above - 1, share=1 - share),
            self._lookup(z, level, above, share=share),
        ]

    def _lookup(self, z: ZDistribution, level: float, at: int, share: float) -> Lookup:
        """Return the quantiles of z at one of the coverages, by largest reach."""
        reach_of_codes = [
            np.array([part.reach(at) for part in of_axis]) for of_axis in self.parts
        ]
        reach = np.unique(np.concatenate(reach_of_codes))
        ranks = [np.searchsorted(reach, of_codes) for of_codes in reach_of_codes]
        is_above = z.dim is not None or level >= 0.5
        quantiles = []
        for table in z.tables:
            low, high = limits(table, reach, are_radii=z.dim is not None)
            quantiles.append(high if is_above else low)
        return Lookup(share, tuple(ranks), np.array(quantiles))

    def _stretched(
        self, table: QuantileTable, parts: list[Part], dim: int | None
    ) -> QuantileTable:
        """Return a table whose interval of each coverage has the largest reach."""
        reach = largest(parts)
        coverage = COVERAGES[: reach.size]
        low, high = limits(table, reach, are_radii=dim is not None)
        if dim is not None:
            some = slice(1, None) if reach.size > 1 else slice(0, 1)
            levels = np.maximum(coverage[some], COVERAGES[1] / 2)
            return QuantileTable(levels, high[some], self.held_out)
        levels = np.concatenate([(1 - coverage[:0:-1]) / 2, (1 + coverage) / 2])
        values = np.concatenate([low[:0:-1], high])
        return QuantileTable(levels, values, self.held_out)


def largest(parts: Sequence[Part]) -> Floats:
    """Return the largest reach of some parts, as far as all of them tell one."""
    n_told = min(part.reaches.size for part in parts)
    reach = np.zeros(n_told)
    for part in parts:
        reach = np.maximum(reach, part.reaches[:n_told])
    return reach


def codes_along(axis: Axis, rows: Predictions) -> Ints:
    """Return which part along an axis each row is in."""
    columns: list[Any] = list(rows.columns)
    if axis.labels is not None:
        columns[axis.column] = rows.labels(axis.column)
    return np.asarray(axis.codes(columns))


def distinct_rows(codes: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return a number for each row, the same for the same codes, and first rows."""
    # one whole number for each set of codes
    joint = np.zeros(codes[0].size, dtype=np.int64)
    for code in codes:
        _, joint = np.unique(joint * (int(code.max()) + 1) + code, return_inverse=True)
    _, first = np.unique(joint, return_index=True)
    return joint, first


@dataclass(frozen=True, eq=False)
class StretchedTables(ZDistribution):
    """The distribution of z, stretched for each set of parts that rows are in.

    Attributes
    ----------
    of : str
        What was stretched, in words.
    """

    of: str = ""

    @property
    def words(self) -> str:
        """What it is, in words."""
        return f"{self.of}; stretched until intervals hold what they claim in each part"

    def _warn_of_few(self, levels: Floats) -> None:
        """Say which levels lie beyond what the rows of a part can tell."""
        coverage = levels if self.dim is not None else np.abs(2 * levels - 1)
        most = float(coverage.max(initial=0.0))
        fewest = min(self.n_rows, default=0)
        needed = rows_needed_for(most)
        if fewest >= needed:
            return
        infinite = any(table.infinite for table in self.tables)
        told = "rows held out" if infinite else "rows"
        what = "limits are infinite" if infinite else "the outermost is taken for it"
        remedy = "Hold out more" if infinite else "Fit with more"
        warn(
            f"A part has {fewest} {told}, and a coverage of {most:.4g} needs {needed} "
            f"in each: {what} there. {remedy}, name fewer parts, or ask for less.",
            InfiniteIntervalWarning if infinite else FewRowsWarning,
            stacklevel=5,
        )


def rows_needed_for(coverage: float) -> int:
    """Return how many rows a conformal interval of some coverage needs: c / (1 − c).

    >>> rows_needed_for(0.9), rows_needed_for(0.95)
    (9, 19)
    """
    most = min(coverage, 1 - 1e-9)
    return math.ceil(round(most / (1 - most), 6))
