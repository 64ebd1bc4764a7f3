"""What every recalibrator learns, as plain data: base(u) · exp(constant + Σ tables).

Columns are cut into bins by their axes, once each. A table has a number for each joint
class of the bins of its columns, mostly one to three of them. One evaluator, written
with the functions of the array API standard, serves all libraries: arrays of NumPy,
PyTorch, CuPy and JAX come out as what they are, and arrays of ndonnx as an ONNX graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ._support.checks import Floats, Ints
from ._support.labels import Categories, Label, in_label_order
from ._support.weighting import WeightLine
from .persistence import (
    flag,
    floats,
    index,
    integers,
    label,
    many,
    number,
    optional,
    pair,
    refuse_if,
    stored,
)

if TYPE_CHECKING:
    from .predictions import Predictions

Array = Any  # of any library that speaks the array API standard
Here = Callable[[Any], Array]  # brings a constant of NumPy to where the columns are

UNBOUNDED = (-700.0, 700.0)  # of a logarithm: nothing that is learned is beyond
CHUNK = 2**14  # rows at a time in NumPy, so that what is computed stays in the cache
HALF = 0.5 + 1e-6  # of the way from a value to the next: rounding decides on no place
_FLOAT = np.finfo(np.float64)


@stored(
    column=index,
    edges=optional(floats),
    ties=optional(floats),
    labels=optional(many(label)),
)
@dataclass(frozen=True, eq=False)
class Axis:
    """The bins of a column: codes 1, 2, ..., and 0 for what is missing or unknown.

    Attributes
    ----------
    column : int
        The column; 0 is the uncertainty.
    edges : array or None
        Bins are cut at these: a value belongs to bin i if edges[i-1] <= x < edges[i].
    ties : array or None
        Values of u that part equal values of the column: then edges are pairs (x, u),
        compared lexicographically.
    labels : tuple or None
        In place of edges: labels, in order, of which each has a bin.
    """

    column: int
    edges: Floats | None = None
    ties: Floats | None = None
    labels: tuple[Label, ...] | None = None

    def check(self) -> None:
        """Refuse edges and labels that nobody learns."""
        both = (self.edges is None) == (self.labels is None)
        refuse_if(both, "an axis must have edges, or labels")
        if self.labels is not None:
            wrong = self.labels != in_label_order(set(self.labels))
            wrong = wrong or self.ties is not None
            refuse_if(wrong, "labels of an axis must differ, and be in order")
            return
        assert self.edges is not None
        ascend = np.diff(self.edges) > 0
        if self.ties is not None:
            wrong = self.ties.shape != self.edges.shape or not self.column
            refuse_if(wrong, "an axis must have a tie for each edge")
            ascend |= (np.diff(self.edges) == 0) & (np.diff(self.ties) > 0)
        refuse_if(not ascend.all(), "edges of an axis must ascend")

    @property
    def n_codes(self) -> int:
        """The number of codes."""
        if self.labels is not None:
            return len(self.labels) + 1
        return len(self.edges) + 2  # type: ignore[arg-type]

    def codes(self, columns: Any, xp: Any = np, here: Here = np.asarray) -> Array:
        """Return the code of each row of columns of any array library."""
        x = columns[self.column]
        if self.labels is not None:
            return self._label_codes(x, xp, here)
        if self.ties is not None:
            found = self._tied_codes(x, columns[0], xp, here)
        else:
            found = xp.searchsorted(here(self.edges), x, side="right") + 1
        if not self.column:  # an uncertainty is never missing
            return found
        return xp.where(xp.isnan(x), here(np.int64(0)), found)

    def _tied_codes(self, x: Array, u: Array, xp: Any, here: Here) -> Array:
        """Return 1 + how many pairs (edge, tie) are not above (x, u)."""
        edges, ties = here(self.edges), here(self.ties)
        found = first = xp.searchsorted(edges, x, side="left")
        beyond = xp.searchsorted(edges, x, side="right")
        _, runs = np.unique(np.asarray(self.edges), return_counts=True)
        for k in range(int(runs.max(initial=0))):  # the edges that are equal to x
            equal = first + k < beyond
            tie = xp.take(ties, xp.where(equal, first + k, 0 * first), axis=0)
            # NumPy 1 has no `astype` among its functions
            found = found + xp.where(equal & (u >= tie), here(np.int64(1)), 0 * first)
        return found + 1

    def _label_codes(self, x: Array, xp: Any, here: Here) -> Array:
        assert self.labels is not None
        if isinstance(x, Categories):
            place = {each: i for i, each in enumerate(self.labels, start=1)}
            return np.array([place.get(each, 0) for each in x.labels])[x.codes]
        if isinstance(x, np.ndarray) and x.dtype.kind == "i":  # coded before
            return x
        # a graph has text alone: what is missing is "", unless that is a label
        missing = "\0" if "" in self.labels else ""
        known = np.array([missing if x is None else x for x in self.labels])
        place = here(np.arange(1, len(known) + 1))
        equal = x[:, None] == here(known)
        return xp.sum(xp.where(equal, place, here(np.int64(0))), axis=1)


@stored(axes=many(index), classes=many(integers), values=floats)
@dataclass(frozen=True, eq=False)
class Table:
    """A number for each joint class of the bins of its axes.

    Attributes
    ----------
    axes : tuple of int
        Which axes of the map these are.
    classes : tuple of array of int
        The class of each code of these axes: bins that the table does not tell apart
        have the same.
    values : array
        The number of each joint class; it has a dimension for each axis.
    """

    axes: tuple[int, ...]
    classes: tuple[Ints, ...]
    values: Floats

    @classmethod
    def of(cls, axes: Sequence[int], values: Floats) -> Table:
        """Return a table that tells all codes apart."""
        return cls(tuple(axes), tuple(np.arange(n) for n in values.shape), values)

    def simplified(self) -> Table:
        """Return the same with as few classes as there are different values."""
        classes, values = [], self.values
        for k, code in enumerate(self.classes):
            lines = np.moveaxis(values, k, 0).reshape(values.shape[k], -1)
            same, first = distinct(lines + 0.0)  # no -0, which has other bytes
            classes.append(same[code])
            values = np.take(values, first, axis=k)
        return Table(self.axes, tuple(classes), values)

    def plus(self, other: Table) -> Table:
        """Return the sum with a table that has none but axes of this one."""
        classes, mine, theirs = [], self.values, other.values
        place = {axis: k for k, axis in enumerate(other.axes)}
        theirs = theirs.transpose([place[a] for a in self.axes if a in place])
        shape, at = [], 0
        for k, (axis, code) in enumerate(zip(self.axes, self.classes, strict=True)):
            if axis not in place:
                classes.append(code)
                shape.append(1)
                continue
            n_theirs = theirs.shape[at]
            both = code * n_theirs + other.classes[place[axis]]
            pairs, found = np.unique(both, return_inverse=True)
            classes.append(found)
            mine = np.take(mine, pairs // n_theirs, axis=k)
            theirs = np.take(theirs, pairs % n_theirs, axis=at)
            shape.append(pairs.size)
            at += 1
        return Table(self.axes, tuple(classes), mine + theirs.reshape(shape))


def distinct(lines: Any) -> tuple[Ints, Ints]:
    """Return a number for each line, the same of equal ones, and where each is first.

    Numbers are counted as lines come; these are compared by their bytes.
    """
    number: dict[bytes, int] = {}
    same = [number.setdefault(line.tobytes(), len(number)) for line in lines]
    return np.array(same), np.unique(same, return_index=True)[1]


def merged(tables: Iterable[Table]) -> tuple[Table, ...]:
    """Return fewer tables of the same sum: each is added to one with all of its axes.

    Where the sum would be much larger than both, it is left alone.
    """
    kept: list[Table] = []
    for table in sorted(tables, key=lambda each: -len(each.axes)):
        sums = [
            (host.plus(table), k)
            for k, host in enumerate(kept)
            if set(table.axes) <= set(host.axes)
        ]
        found, k = min(sums, key=lambda each: each[0].values.size, default=(table, -1))
        if k >= 0 and found.values.size <= 2 * kept[k].values.size + 64:
            kept[k] = found
        else:
            kept.append(table)
    return tuple(kept)


def trimmed(
    axes: Sequence[Axis], tables: Iterable[Table]
) -> tuple[tuple[Axis, ...], tuple[Table, ...]]:
    """Return tables that are not 0 everywhere, and none but their axes."""
    kept = [table for table in tables if table.values.any()]
    used = sorted({axis for table in kept for axis in table.axes})
    place = {axis: k for k, axis in enumerate(used)}
    renamed = [
        Table(tuple(place[axis] for axis in table.axes), table.classes, table.values)
        for table in kept
    ]
    return tuple(axes[axis] for axis in used), tuple(renamed)


def quantile_edges(x: Floats, weights: Floats | None, n_bins: int) -> Floats:
    """Return edges of bins with about equally many rows, halfway between values.

    Equal values are never parted. Where the last bits of a value differ, as in a CSV
    file or in ONNX, no row falls into another bin.
    """
    order = np.argsort(x, kind="stable")
    ordered = x[order]
    k = np.arange(1, n_bins)
    if weights is None:
        last = -(-k * x.size // n_bins) - 1  # the last row of bin k, in whole numbers
    else:
        line = WeightLine(weights[order])
        last = line.reaching(k / n_bins * line.total)
    values = np.unique(ordered[last])
    return between(ordered, values[values > ordered[0]])


def between(ordered: Floats, values: Floats) -> Floats:
    """Return the middle between each of some values and the one before it.

    Values are some of the `ordered` ones, and none of them is the first. A new value
    that lies right in the middle, as on a grid, lies below it in any unit.
    """
    before = ordered[np.searchsorted(ordered, values) - 1]
    middle = before + (values - before) * HALF
    return np.where(middle > before, middle, values)


@stored(
    a=number,
    b=number,
    least=number,
    power=number,
    span=pair(number),
    knots=optional(floats),
    values=optional(floats),
)
@dataclass(frozen=True, eq=False)
class Base:
    """What the factors multiply: sqrt(a² u² ± b²) (u/u₀)^p, or an interpolation in u².

    Attributes
    ----------
    a, b, least : float
        The root of max(a² u² + sign(b) b², least²).
    power : float
        The power p; 0 is the root alone.
    span : pair of float
        What u is clipped to before it is raised to the power: the smallest, u₀, and the
        largest that were seen. Beyond them the base is a multiple of the root.
    knots, values : array or None
        In place of these, the root of the line through values at knots of u², constant
        beyond the outermost.
    """

    a: float = 1.0
    b: float = 0.0
    least: float = 0.0
    power: float = 0.0
    span: tuple[float, float] = (1.0, 1.0)
    knots: Floats | None = None
    values: Floats | None = None

    def check(self) -> None:
        """Refuse what does not make positive uncertainties."""
        alone = (self.knots is None) != (self.values is None)
        refuse_if(alone, "knots of a base must have values")
        if self.knots is not None and self.values is not None:
            wrong: Any = self.knots.shape != self.values.shape or not self.knots.size
            refuse_if(wrong, "a base must have a value for each knot")
            wrong = (np.diff(self.knots) <= 0).any() or (self.values <= 0).any()
            refuse_if(wrong, "knots of a base must ascend, and its values be positive")
            refuse_if(self.values.max() > 1e150, "a value of a base is out of range")
            return
        wrong = min(self.a, self.least) < 0 or max(self.a, self.b) <= 0
        wrong = wrong or self.b < 0 == self.least  # where b² is subtracted
        refuse_if(wrong, "a base must be positive")
        lowest, highest = self.span
        refuse_if(not 0 < lowest <= highest, "the span of a base must ascend from 0")
        with np.errstate(divide="ignore"):
            log_factor = self.power * (np.log(highest) - np.log(lowest))
        refuse_if(abs(log_factor) > 700, "the power of a base is out of range")

    def __call__(self, u: Array, xp: Any = np, here: Here = np.asarray) -> Array:
        """Return the base of uncertainties in an array of any library."""
        if self.knots is not None:
            return self._interpolated(u, xp, here)
        root = self._root(u, xp)
        if not self.power:
            return root
        inside = xp.clip(u, *self.span)
        return root * (inside / self.span[0]) ** self.power

    def _root(self, u: Array, xp: Any) -> Array:
        """Return sqrt(a² u² ± b²)."""
        if not self.b:
            return self.a * u
        v = (self.a * u) ** 2 + float(np.copysign(self.b**2, self.b))
        return xp.sqrt(xp.clip(v, self.least**2, float(_FLOAT.max)))

    def _interpolated(self, u: Array, xp: Any, here: Here) -> Array:
        """Return the root of the line through values at knots of u²."""
        assert self.knots is not None
        assert self.values is not None
        if len(self.knots) == 1:
            return 0 * u + float(np.sqrt(self.values[0]))
        x = xp.clip(u * u, float(self.knots[0]), float(self.knots[-1]))
        at = xp.searchsorted(here(self.knots[1:-1]), x, side="right")
        slope = np.diff(self.values) / np.diff(self.knots)
        low, start, rise = (
            xp.take(here(each), at, axis=0)
            for each in (self.knots[:-1], self.values[:-1], slope)
        )
        return xp.sqrt(start + rise * (x - low))


@stored(
    base=Base,
    constant=number,
    axes=many(Axis),
    tables=many(Table),
    bounds=pair(number),
    log=flag,
)
@dataclass(frozen=True, eq=False)
class Additive:
    """base(u) times exp(constant + Σ tables), or times that sum where `log` is false.

    Attributes
    ----------
    base : Base
        What is multiplied.
    constant : float
        The constant.
    axes : tuple of Axis
        The bins of the columns, one axis a column at most.
    tables : tuple of Table
        The tables.
    bounds : pair of float
        What the sum of the tables is clipped to.
    log : bool
        Whether the sum is a logarithm: it is one of a scale, and none of a bias.

    Examples
    --------
    >>> axis = Axis(0, edges=np.array([1.0]))
    >>> table = Table.of((0,), np.log([1.0, 2.0, 3.0]))
    >>> Additive(axes=(axis,), tables=(table,)).evaluate([np.array([0.5, 1.0])])
    array([1., 3.])
    """

    base: Base = field(default_factory=Base)
    constant: float = 0.0
    axes: tuple[Axis, ...] = ()
    tables: tuple[Table, ...] = ()
    bounds: tuple[float, float] = UNBOUNDED
    log: bool = True

    def check(self) -> None:
        """Refuse axes and tables that do not fit together."""
        columns = {axis.column for axis in self.axes}
        many = len(columns) < len(self.axes)
        refuse_if(many, "a map must have one axis for each column")
        wide = self.log and max(map(abs, (*self.bounds, self.constant))) > 700
        refuse_if(wide, "the logarithm of a scale must be at most 700 in size")
        refuse_if(self.bounds[0] > self.bounds[1], "bounds of a map must ascend")
        for table in self.tables:
            twice = len(set(table.axes)) < len(table.axes) or not table.axes
            refuse_if(twice, "a table must have axes, and each of them once")
            beyond = max(table.axes) >= len(self.axes)
            refuse_if(beyond, "a table must have axes of its map")
            n_codes = [self.axes[k].n_codes for k in table.axes]
            wrong = [len(each) for each in table.classes] != n_codes
            refuse_if(wrong, "a table must have a class for each code of its axes")
            wrong = len(n_codes) != table.values.ndim
            refuse_if(wrong, "a table must have a dimension for each axis")
            for code, size in zip(table.classes, table.values.shape, strict=True):
                wrong = code.min() < 0 or code.max() >= size
                refuse_if(wrong, "classes of a table must be those of its values")

    @property
    def columns(self) -> set[int]:
        """The columns that it depends on."""
        return {0, *(axis.column for axis in self.axes)}

    @property
    def labelled(self) -> set[int]:
        """The columns of labels that it depends on."""
        return {axis.column for axis in self.axes if axis.labels is not None}

    @cached_property
    def _ready(self) -> list[tuple[tuple[int, ...], list[Any], Floats]]:
        """Tables with classes that only need to be added up: places in flat values."""
        found = []
        for table in self.tables:
            strides = np.cumprod([1, *table.values.shape[:0:-1]])[::-1]
            places = [
                int(stride)
                if np.array_equal(code, np.arange(code.size))
                else stride * code
                for stride, code in zip(strides, table.classes, strict=True)
            ]
            found.append((table.axes, places, np.ravel(table.values)))
        return found

    def evaluate(self, columns: Any, xp: Any = np, here: Here = np.asarray) -> Array:
        """Return the value of each row of columns of any array library.

        Parameters
        ----------
        columns : sequence of arrays
            The uncertainty, and the features; those it does not need may be None.
        xp : namespace
            The functions of the array API standard.
        here : callable
            Brings constants of NumPy to where the columns are.
        """
        codes = [axis.codes(columns, xp, here) for axis in self.axes]
        total: Any = None
        for axes, places, values in self._ready:
            at: Any = None
            for k, place in zip(axes, places, strict=True):
                if isinstance(place, int):
                    part = codes[k] if place == 1 else place * codes[k]
                else:
                    part = xp.take(here(place), codes[k], axis=0)
                at = part if at is None else at + part
            part = xp.take(here(values), at, axis=0)
            total = part if total is None else total + part
        base = self.base(columns[0], xp, here)
        if total is None:
            return base * (float(np.exp(self.constant)) if self.log else self.constant)
        if self.bounds != UNBOUNDED:  # a pass over all rows that is often not needed
            total = xp.clip(total, *self.bounds)
        total = self.constant + total
        return base * (xp.exp(total) if self.log else total)

    def of_rows(self, rows: Predictions) -> Floats:
        """Return the value of each row of Predictions."""
        columns: list[Any] = list(rows.columns)
        for axis in self.axes:
            if axis.labels is not None:  # numbers may be labels, too
                columns[axis.column] = axis.codes(
                    {axis.column: rows.labels(axis.column)}
                )
        return self._in_chunks(columns, rows.n_rows)

    def of_array(self, X: Array) -> Array:
        """Return the value of each row of an array of any library, where it is."""
        columns = [X] if X.ndim == 1 else [X[:, j] for j in range(X.shape[1])]
        if isinstance(X, np.ndarray):
            columns = [np.asarray(x, dtype=np.float64) for x in columns]
            return self._in_chunks(columns, X.shape[0]).astype(X.dtype)
        import array_api_compat as api

        xp, device = api.array_namespace(X), api.device(X)
        known = xp.__array_namespace_info__().dtypes(kind="real floating")
        wide = known.get("float64", X.dtype)  # JAX has none unless it is told to
        columns = [xp.astype(x, wide) for x in columns]

        def here(constant: Any) -> Array:
            kind = wide if np.asarray(constant).dtype.kind == "f" else None
            return xp.asarray(constant, dtype=kind, device=device)

        return xp.astype(self.evaluate(columns, xp, here), X.dtype)

    def _in_chunks(self, columns: list[Any], n_rows: int) -> Floats:
        """Return the value of each row, some rows at a time."""
        found = np.empty(n_rows)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, n_rows, CHUNK):
                rows = slice(start, start + CHUNK)
                found[rows] = self.evaluate([x[rows] for x in columns])
        if self.log:  # what leaves the range of numbers is brought back into it
            np.clip(found, _FLOAT.tiny, _FLOAT.max, out=found)
        return found
