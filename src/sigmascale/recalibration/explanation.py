"""Why a recalibrated uncertainty is wide: a factor for u, and one for each feature.

ln u_new = ln base(u) + constant + Σ tables is a sum of terms of at most a few columns,
so that its Shapley values (Shapley 1953; Lundberg and Lee 2017) over the calibration
rows are exact: those of a table of d columns need the 2^d means of the table over the
other columns, of which a fit keeps all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from .._support import numerals
from .._support.checks import Bools, Floats, Ints
from .._support.origin import make_frame
from .._support.render import Cells, Result
from ..predictions.ordering import order_of
from ..predictions.predictions import Predictions
from .additive import Additive, Table
from .persistence import floats, many, number, refuse_if, stored

MOST_ROWS = 200_000  # that means are taken over; every k-th of more
SHOWN = 10  # rows of a printed explanation


@stored(base=number, means=many(many(floats)))
@dataclass(frozen=True, eq=False)
class Background:
    """Means over calibration rows, which explanations begin with.

    Attributes
    ----------
    base : float
        The mean of ln base(u).
    means : tuple of tuple of array
        Of each table, the mean over calibration rows of every set of its axes, in the
        order of :func:`_sets_of`; axes that are averaged have length 1.
    """

    base: float
    means: tuple[tuple[Floats, ...], ...]

    @classmethod
    def of(cls, scale: Additive, rows: Predictions) -> Background:
        """Return the means of a scale over rows in canonical order."""
        rows = rows.take(np.arange(0, rows.n_rows, -(-rows.n_rows // MOST_ROWS)))
        codes = [axis.codes_of(rows) for axis in scale.axes]
        w = np.ones(rows.n_rows) if rows.weights is None else rows.weights
        w = w / w.sum()
        means = []
        for table in scale.tables:
            classes = _classes(table, codes)
            means.append(
                tuple(_mean(table, kept, classes, w) for kept in _sets_of(table))
            )
        return cls(float(w @ np.log(scale.base(rows.y_std))), tuple(means))

    def check(self) -> None:
        """Refuse means that are none of a table."""
        refuse_if(not math.isfinite(self.base), "the mean of a base must be finite")
        for means in self.means:
            refuse_if(not means, "a table must have its means")

    def fits(self, scale: Additive) -> bool:
        """Return whether these are means of the tables of a scale."""
        if len(self.means) != len(scale.tables):
            return False
        for table, means in zip(scale.tables, self.means, strict=True):
            shape = table.values.shape
            expected = [
                tuple(size if k in kept else 1 for k, size in enumerate(shape))
                for kept in _sets_of(table)
            ]
            if [mean.shape for mean in means] != expected:
                return False
        return True


def _sets_of(table: Table) -> Iterator[tuple[int, ...]]:
    """Return all sets of the axes of a table but that of all, the empty one first."""
    positions = range(table.values.ndim)
    for size in positions:
        yield from combinations(positions, size)


def _classes(table: Table, codes: list[Ints]) -> list[Ints]:
    """Return the classes of rows along each axis of a table."""
    pairs = zip(table.axes, table.classes, strict=True)
    return [class_of_code[codes[axis]] for axis, class_of_code in pairs]


def _mean(
    table: Table, kept: tuple[int, ...], classes: list[Ints], w: Floats
) -> Floats:
    """Return a table, averaged over rows along all axes but those that are kept."""
    averaged = [k for k in range(table.values.ndim) if k not in kept]
    shape = [table.values.shape[k] for k in averaged]
    cell = np.ravel_multi_index([classes[k] for k in averaged], shape)
    share = np.bincount(cell, w, math.prod(shape)).reshape(shape)
    last = np.moveaxis(table.values, averaged, range(-len(averaged), 0))
    mean = np.tensordot(last, share, axes=len(averaged))
    return np.expand_dims(mean, averaged)


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """What each row's recalibrated u is made of: typical u × one factor a column.

    Attributes
    ----------
    typical : float
        The geometric mean of what calibration rows get.
    names : tuple of str
        The columns: "u" and the features.
    factors : array of shape (n, n_columns)
        What each column multiplies the typical u by.
    u : array of shape (n,)
        The recalibrated uncertainty, ``typical * factors.prod(axis=1)``.
    inside : array of bool, shape (n,)
        Whether a row lies where calibration rows did: in the range of every column, and
        with labels that are known.
    """

    typical: float
    names: tuple[str, ...]
    factors: Floats
    u: Floats
    inside: Bools

    def to_frame(self) -> Any:
        """Return a line for each row, with its index: u, and the factor of each column.

        Returns
        -------
        data frame
            Of the library that the rows came from, with "u", "typical", "by_u" and
            other factors by the names of columns, and "inside".
        """
        columns: dict[str, Any] = {"u": self.u}
        columns["typical"] = np.full_like(self.u, self.typical)
        for name, factor in zip(self.names, self.factors.T, strict=True):
            columns[f"by_{name}"] = factor
        columns["inside"] = self.inside
        return make_frame(columns, self._origin, by_row=True)

    def _cells(self) -> Cells:
        # columns that matter most, on average over rows
        strength = np.abs(np.log(self.factors)).mean(axis=0)
        most = [k for k in order_of(-strength)[:5] if strength[k] > 0]
        by_column = [f"× {self.names[k]}" for k in most]
        head = ("row", "u", "= typical", *by_column, "inside")
        rows = []
        for i in range(min(len(self.u), SHOWN)):
            factors = (numerals.factor(self.factors[i, k]) for k in most)
            is_inside = "yes" if self.inside[i] else "no"
            numbers = numerals.number(self.u[i]), numerals.number(self.typical)
            rows.append((str(i), *numbers, *factors, is_inside))
        return head, rows


def explain(scale: Additive, background: Background, rows: Predictions) -> Explanation:
    """Return the Shapley values of ln u of rows, as factors; `inside` is all True."""
    codes = [axis.codes_of(rows) for axis in scale.axes]
    logs = np.zeros((rows.n_rows, len(rows.names)))
    logs[:, 0] = np.log(scale.base(rows.y_std)) - background.base
    typical = background.base + scale.constant
    for table, means in zip(scale.tables, background.means, strict=True):
        classes = _classes(table, codes)
        # the mean of the table where some columns are the row's own
        value = {}
        for kept, mean in zip(_sets_of(table), means, strict=True):
            at = [classes[k] if k in kept else 0 for k in range(mean.ndim)]
            value[kept] = mean[tuple(at)]
        everything = tuple(range(table.values.ndim))
        value[everything] = table.values[tuple(classes)]
        typical += float(value[()])
        for kept, mean_of_kept in value.items():
            for k in kept:
                without = tuple(other for other in kept if other != k)
                others = len(everything) - len(kept)
                orders = math.factorial(len(without)) * math.factorial(others)
                share = orders / math.factorial(len(everything))
                column = scale.axes[table.axes[k]].column
                logs[:, column] += share * (mean_of_kept - value[without])

    # sums that are clipped: what that takes is shared by the size of the factors
    u = scale.of_rows(rows)
    clipped = np.log(u) - typical - logs.sum(axis=1)
    size = np.abs(logs)
    total = size.sum(axis=1, keepdims=True)
    shares = np.divide(size, total, out=np.zeros_like(size), where=total > 0)
    shares[total[:, 0] == 0, 0] = 1
    logs += clipped[:, None] * shares
    is_inside = np.ones(rows.n_rows, dtype=bool)
    return Explanation(
        float(np.exp(typical)),
        rows.names,
        np.exp(logs),
        u,
        is_inside,
        _origin=rows.origin,
    )
