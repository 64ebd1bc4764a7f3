"""What every recalibrator learns, as plain data: base(u) · exp(constant + Σ tables).

Columns are cut into bins by their axes, once each. A table has a number for each joint
class of the bins of its columns, mostly one to three of them. One evaluator, written
with the functions of the array API standard, serves all libraries: arrays of NumPy,
PyTorch, CuPy and JAX come out as what they are, and arrays of ndonnx as an ONNX graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.checks import LARGEST_Z, Floats, Ints
from .._support.labels import Categories, Label, in_label_order
from .._support.libraries import NUMPY, Array, Library, library_of
from .._support.places import Places
from .._support.weighting import WeightLine
from .persistence import (
    flag,
    floats,
    index,
    integers,
    many,
    number,
    optional,
    pair,
    refuse_if,
    stored,
    text,
)

if TYPE_CHECKING:
    from ..predictions.predictions import Predictions

UNBOUNDED = (-700.0, 700.0)  # of a logarithm: nothing that is learned is beyond
# Columns of 2^13 numbers stay in the cache, and are small enough for the allocator to
# keep: from 128 KiB on, glibc maps and unmaps every one (half of all time).
ROWS_AT_A_TIME = 2**13
HALF = 0.5 + 1e-6  # of the way from a value to the next: rounding decides on no place
MANY_FOR_TABLES = 50_000  # rows, for which it is worth writing out whole tables
LARGEST_TABLE = 2**17  # numbers in a table that is written out
LARGEST_TABLES = 2**22  # numbers in all of these together
_FLOAT = np.finfo(np.float64)


@stored(
    column=index,
    edges=optional(floats),
    ties=optional(floats),
    labels=optional(many(optional(text))),
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
        both_or_none = (self.edges is None) == (self.labels is None)
        refuse_if(both_or_none, "an axis must have edges, or labels")
        if self.labels is not None:
            are_in_order = self.labels == in_label_order(set(self.labels))
            are_right = are_in_order and self.ties is None
            refuse_if(not are_right, "labels of an axis must differ, and be in order")
            return
        assert self.edges is not None
        ascend = np.diff(self.edges) > 0
        if self.ties is not None:
            have_ties = self.ties.shape == self.edges.shape and self.column
            refuse_if(not have_ties, "an axis must have a tie for each edge")
            ascend |= (np.diff(self.edges) == 0) & (np.diff(self.ties) > 0)
        refuse_if(not ascend.all(), "edges of an axis must ascend")

    @property
    def n_codes(self) -> int:
        """The number of codes."""
        if self.labels is not None:
            return len(self.labels) + 1
        return len(self.edges) + 2  # type: ignore[arg-type]

    @cached_property
    def _places(self) -> Places:
        """The edges, with one below all numbers, so that places count from 1."""
        assert self.edges is not None
        return Places(np.append(-np.inf, self.edges))

    def codes_of(self, rows: Predictions) -> Ints:
        """Return the code of each row of Predictions."""
        columns: Any = rows.columns
        if self.labels is not None:  # numbers may be taken as labels, too
            columns = {self.column: rows.labels(self.column)}
        return np.asarray(self.codes(columns))

    def codes(self, columns: Any, library: Library = NUMPY) -> Array:
        """Return the code of each row of columns of any array library."""
        x = columns[self.column]
        if self.labels is not None:
            return self._label_codes(x, library)
        if self.ties is not None:
            codes = self._tied_codes(x, columns[0], library)
        else:
            codes = library.count(self._places, x)
        if not self.column:  # an uncertainty is never missing
            return codes
        return library.zero_where_missing(codes, x)

    def _tied_codes(self, x: Array, u: Array, library: Library) -> Array:
        """Return 1 + how many pairs (edge, tie) are not above (x, u)."""
        assert self.ties is not None
        where = library.xp.where
        ties = np.append(-np.inf, self.ties)
        # edges below x, and up to x: those in between are equal to x
        below = library.count(self._places, x, side="left")
        up_to = library.count(self._places, x)
        # numbers of the library, as a boolean is none in the standard
        zero = 0 * below
        one = 1 + zero

        # of edges that are equal to x, those count whose tie is not above u
        codes = below
        # as given
        _, n_equal_edges = np.unique(np.asarray(self.edges), return_counts=True)
        for k in range(int(n_equal_edges.max(initial=0))):
            is_equal = below + k < up_to
            tie = library.look_up(ties, where(is_equal, below + k, zero))
            codes = codes + where(is_equal & (u >= tie), one, zero)
        return codes

    def _label_codes(self, x: Array, library: Library) -> Array:
        """Return 1 + the place of each label among those of the axis; 0 of others."""
        assert self.labels is not None
        if isinstance(x, Categories):
            place = {label: i for i, label in enumerate(self.labels, start=1)}
            code_of_category = np.array([place.get(label, 0) for label in x.labels])
            return code_of_category[x.codes]
        if isinstance(x, np.ndarray) and x.dtype.kind == "i":  # coded before
            return x

        # a graph has text alone: what is missing is "", unless that is a label
        missing = "\0" if "" in self.labels else ""
        texts = np.array([missing if text is None else text for text in self.labels])
        is_label = x[:, None] == library.constant(texts)
        place_of_label = library.constant(np.arange(1, len(texts) + 1))
        zero = library.constant(np.int64(0))
        return library.xp.sum(library.xp.where(is_label, place_of_label, zero), axis=1)


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
        values = self.values
        classes = []
        for k, class_of_code in enumerate(self.classes):
            # classes along an axis are one where all of their values are equal
            lines = np.moveaxis(values, k, 0).reshape(values.shape[k], -1)
            merged_class, place = distinct(lines + 0.0)  # no -0, which has other bytes
            classes.append(merged_class[class_of_code])
            values = np.take(values, place, axis=k)
        return Table(self.axes, tuple(classes), values)

    def plus(self, other: Table) -> Table:
        """Return the sum with a table that has none but axes of this one."""
        place = {axis: k for k, axis in enumerate(other.axes)}
        shared = [axis for axis in self.axes if axis in place]
        mine = self.values
        theirs = other.values.transpose([place[axis] for axis in shared])

        # along a shared axis, a class of the sum is a pair of one of each table
        classes = []
        shape = []  # of theirs beside mine: 1 along axes that they do not have
        for k, axis in enumerate(self.axes):
            class_of_code = self.classes[k]
            if axis not in place:
                classes.append(class_of_code)
                shape.append(1)
                continue
            their_k = shared.index(axis)
            n_theirs = theirs.shape[their_k]
            pair_of_code = class_of_code * n_theirs + other.classes[place[axis]]
            # whole numbers
            pairs, class_of_sum = np.unique(pair_of_code, return_inverse=True)
            classes.append(class_of_sum)
            shape.append(pairs.size)
            mine = np.take(mine, pairs // n_theirs, axis=k)
            theirs = np.take(theirs, pairs % n_theirs, axis=their_k)
        return Table(self.axes, tuple(classes), mine + theirs.reshape(shape))


def distinct(lines: Any) -> tuple[Ints, Ints]:
    """Return a number for each line, the same of equal ones, and where each is first.

    Numbers are counted as lines come; these are compared by their bytes.
    """
    number_of: dict[bytes, int] = {}
    numbers = [number_of.setdefault(line.tobytes(), len(number_of)) for line in lines]
    _, places = np.unique(numbers, return_index=True)  # whole numbers
    return np.array(numbers), places


def merged(tables: Iterable[Table]) -> tuple[Table, ...]:
    """Return fewer tables of the same sum: each is added to one with all of its axes.

    Where the sum would be much larger than both, it is left alone.
    """
    sums: list[Table] = []
    for table in sorted(tables, key=lambda table: -len(table.axes)):
        smallest = None
        for k, host in enumerate(sums):
            if set(table.axes) <= set(host.axes):
                candidate = host.plus(table)
                if smallest is None or candidate.values.size < smallest.values.size:
                    smallest = candidate
                    place = k
        if smallest is None or smallest.values.size > 2 * sums[place].values.size + 64:
            sums.append(table)
        else:
            sums[place] = smallest
    return tuple(sums)


def trimmed(
    axes: Sequence[Axis], tables: Iterable[Table]
) -> tuple[tuple[Axis, ...], tuple[Table, ...]]:
    """Return tables that are not 0 everywhere, and none but their axes."""
    nonzero = [table for table in tables if table.values.any()]
    used = sorted(set().union(*(table.axes for table in nonzero)))
    place = {axis: k for k, axis in enumerate(used)}
    renumbered = []
    for table in nonzero:
        places = tuple(place[axis] for axis in table.axes)
        renumbered.append(Table(places, table.classes, table.values))
    return tuple(axes[axis] for axis in used), tuple(renumbered)


def quantile_edges(x: Floats, weights: Floats | None, n_bins: int) -> Floats:
    """Return edges of bins with about equally many rows, halfway between values.

    Equal values are never parted. Where the last bits of a value differ, as in a CSV
    file or in ONNX, no row falls into another bin.
    """
    if n_bins < 2:
        return np.empty(0)
    k = np.arange(1, n_bins)
    if weights is None:
        ordered = np.sort(x)
        last = -(-k * x.size // n_bins) - 1  # the last row of bin k, in whole numbers
    else:
        order = np.argsort(x, kind="stable")  # rounded
        ordered = x[order]
        line = WeightLine(weights[order])
        last = line.reaching(k / n_bins * line.total)
    values = np.unique(ordered[last])  # rounded
    return between(ordered, values[values > ordered[0]])


def between(ordered: Floats, values: Floats) -> Floats:
    """Return the middle between each of some values and the one before it.

    Values are some of the `ordered` ones, and none of them is the first. A new value
    that lies right in the middle, as on a grid, lies below it in any unit.
    """
    before = ordered[np.searchsorted(ordered, values) - 1]  # rounded
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
        # an interpolation
        is_alone = (self.knots is None) != (self.values is None)
        refuse_if(is_alone, "knots of a base must have values")
        if self.knots is not None and self.values is not None:
            are_pairs = self.knots.shape == self.values.shape and self.knots.size
            refuse_if(not are_pairs, "a base must have a value for each knot")
            descend = (np.diff(self.knots) <= 0).any() or (self.values <= 0).any()
            must = "knots of a base must ascend, and its values be positive"
            refuse_if(descend, must)
            return

        # a root, which is bounded from below where b² is subtracted
        is_negative = min(self.a, self.least) < 0 or max(self.a, self.b) <= 0
        is_unbounded = self.b < 0 and self.least == 0
        refuse_if(is_negative or is_unbounded, "a base must be positive")

        # and its power
        lowest, highest = self.span
        refuse_if(not 0 < lowest <= highest, "the span of a base must ascend from 0")
        with np.errstate(divide="ignore"):
            log_factor = self.power * (np.log(highest) - np.log(lowest))
        refuse_if(abs(log_factor) > 700, "the power of a base is out of range")

    def __call__(self, u: Array, library: Library = NUMPY) -> Array:
        """Return the base of uncertainties in an array of any library."""
        if self.knots is not None:
            return self._interpolated(u, library)
        root = self._root(u, library.xp)
        if not self.power:
            return root
        inside = library.xp.clip(u, *self.span)
        return root * (inside / self.span[0]) ** self.power

    def _root(self, u: Array, xp: Any) -> Array:
        """Return sqrt(a² u² ± b²)."""
        if not self.b:
            return self.a * u
        v = (self.a * u) ** 2 + float(np.copysign(self.b**2, self.b))
        return xp.sqrt(xp.clip(v, self.least**2, float(_FLOAT.max)))

    @property
    def is_factor(self) -> bool:
        """Whether it is a multiple of u."""
        return self.knots is None and not self.b and not self.power

    @cached_property
    def _inner_knots(self) -> Places:
        """The knots but the outermost, between which lines change."""
        assert self.knots is not None
        return Places(self.knots[1:-1])

    def _interpolated(self, u: Array, library: Library) -> Array:
        """Return the root of the line through values at knots of u²."""
        assert self.knots is not None
        assert self.values is not None
        if len(self.knots) == 1:
            return 0 * u + float(np.sqrt(self.values[0]))
        u2 = library.xp.clip(u * u, float(self.knots[0]), float(self.knots[-1]))
        at = library.count(self._inner_knots, u2)
        knot = library.look_up(self.knots[:-1], at)
        value = library.look_up(self.values[:-1], at)
        slope = library.look_up(np.diff(self.values) / np.diff(self.knots), at)
        return library.xp.sqrt(value + slope * (u2 - knot))


@stored(
    base=Base,
    constant=number,
    axes=many(Axis),
    tables=many(Table),
    bounds=pair(number),
    log=flag,
    most=optional(number),
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
    most : float or None
        What no value of a row exceeds, if anything.

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
    most: float | None = None

    def check(self) -> None:
        """Refuse axes and tables that do not fit together."""
        # one axis for each column
        columns = {axis.column for axis in self.axes}
        must = "a map must have one axis for each column"
        refuse_if(len(columns) < len(self.axes), must)

        # numbers within their range
        largest = max(map(abs, (*self.bounds, self.constant)))
        must = "the logarithm of a scale must be at most 700 in size"
        refuse_if(self.log and largest > UNBOUNDED[1], must)
        refuse_if(self.bounds[0] > self.bounds[1], "bounds of a map must ascend")
        is_none = self.most is not None and (self.most <= 0 or not self.log)
        refuse_if(is_none, "the largest scale must be positive, and a bias has none")
        if not self.log:
            sizes = [np.abs(table.values).max(initial=0) for table in self.tables]
            is_wide = max(abs(self.constant), *sizes, 0.0) > LARGEST_Z
            must = "a bias must be a z-score times a root"
            refuse_if(is_wide or self.base.power != 0, must)

        # tables of these axes, with a class for each code
        for table in self.tables:
            differ = len(set(table.axes)) == len(table.axes) > 0
            refuse_if(not differ, "a table must have axes, and each of them once")
            is_beyond = max(table.axes) >= len(self.axes)
            refuse_if(is_beyond, "a table must have axes of its map")
            n_codes = [self.axes[k].n_codes for k in table.axes]
            n_classified = [len(class_of_code) for class_of_code in table.classes]
            must = "a table must have a class for each code of its axes"
            refuse_if(n_classified != n_codes, must)
            must = "a table must have a dimension for each axis"
            refuse_if(len(n_codes) != table.values.ndim, must)
            must = "classes of a table must be those of its values"
            shape = table.values.shape
            for class_of_code, n_classes in zip(table.classes, shape, strict=True):
                is_outside = class_of_code.min() < 0 or class_of_code.max() >= n_classes
                refuse_if(is_outside, must)

    @property
    def columns(self) -> set[int]:
        """The columns that it depends on."""
        return {0, *(axis.column for axis in self.axes)}

    @property
    def labelled(self) -> set[int]:
        """The columns of labels that it depends on."""
        return {axis.column for axis in self.axes if axis.labels is not None}

    def evaluate(self, columns: Any, library: Library = NUMPY) -> Array:
        """Return the value of each row of columns of any array library.

        Parameters
        ----------
        columns : sequence of arrays
            The uncertainty, and the features; those it does not need may be None.
        library : Library
            The library of the columns.
        """
        return self._evaluator.evaluate(columns, library)

    @cached_property
    def _evaluator(self) -> _Evaluator:
        """What evaluates rows."""
        return _Evaluator(self)

    @cached_property
    def for_many_rows(self) -> Additive:
        """The same sum of fewer tables, with a value for each code.

        They take some time to write out, and then less for each row.
        """
        tables = _written_out(self.axes, self.tables)
        return self if tables is None else replace(self, tables=tables)

    def _evaluator_for(self, n_rows: int) -> _Evaluator:
        """Return what evaluates so many rows in the shortest time."""
        has_many = self.tables and n_rows >= MANY_FOR_TABLES
        return self.for_many_rows._evaluator if has_many else self._evaluator

    def of_rows(self, rows: Predictions) -> Floats:
        """Return the value of each row of Predictions."""
        columns: list[Any] = list(rows.columns)
        for axis in self.axes:
            if axis.labels is not None:
                columns[axis.column] = axis.codes_of(rows)
        return self._in_chunks(columns, rows.n_rows)

    def of_array(self, X: Array, smallest: float) -> Array:
        """Return the value of each row of an array of any library, where it is.

        Uncertainties of 0 are lifted to the `smallest`.
        """
        n_rows = X.shape[0]
        columns = [X] if X.ndim == 1 else [X[:, j] for j in range(X.shape[1])]
        if isinstance(X, np.ndarray):
            columns = [np.asarray(column, dtype=np.float64) for column in columns]
            return self._in_chunks(columns, n_rows).astype(X.dtype, copy=False)
        library, wide = library_of(X)
        # columns that lie in one piece are quicker to read
        is_part = X.ndim > 1
        columns = [library.xp.astype(column, wide, copy=is_part) for column in columns]
        u = columns[0]
        if library.may_hold_zeros(u):
            least = library.numbers(np.float64(smallest))
            columns[0] = library.xp.where(u == 0, least, u)
        values = self._evaluator_for(n_rows).evaluate(columns, library)
        return library.xp.astype(values, X.dtype, copy=False)

    def _in_chunks(self, columns: list[Any], n_rows: int) -> Floats:
        """Return the value of each row, some rows at a time."""
        evaluator = self._evaluator_for(n_rows)
        values = np.empty(n_rows)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, n_rows, ROWS_AT_A_TIME):
                rows = slice(start, start + ROWS_AT_A_TIME)
                chunk = [np.ascontiguousarray(column[rows]) for column in columns]
                values[rows] = evaluator.evaluate(chunk, NUMPY)
        if self.log:  # what leaves the range of numbers is brought back into it
            np.clip(values, _FLOAT.tiny, _FLOAT.max, out=values)
        return values


# -- evaluation ------------------------------------------------------------------------


_Known = dict[tuple[tuple[int, int], ...], Array]  # by axes, and their strides


@dataclass(frozen=True, eq=False)
class _Lookup:
    """A table as one line of values, and where a row's codes point to in it.

    Attributes
    ----------
    axes : tuple of int
        The axes of the table.
    strides : tuple of int or array
        What each axis adds to the place: a multiple of its code, or a number for each
        code.
    values : array
        The values.
    """

    axes: tuple[int, ...]
    strides: tuple[Any, ...]
    values: Floats

    @classmethod
    def of(cls, table: Table) -> _Lookup:
        """Return a table as it is, with the classes of its codes."""
        strides: list[Any] = []
        steps = _steps(table.values.shape)
        for step, class_of_code in zip(steps, table.classes, strict=True):
            # where each code is a class of its own, a multiple of the code
            is_whole = np.array_equal(class_of_code, np.arange(class_of_code.size))
            strides.append(step if is_whole else step * class_of_code)
        return cls(table.axes, tuple(strides), np.ravel(table.values))

    def places(self, codes: Any, library: Library, known: _Known) -> Array:
        """Return where the value of each row is.

        Tables share axes: what the first of them add up to is looked up among the
        `known`, if it has been kept.
        """
        place: Any = None
        path: tuple[tuple[int, int], ...] = ()
        for axis, stride in zip(self.axes, self.strides, strict=True):
            step = axis, stride if isinstance(stride, int) else id(stride)
            path = (*path, step)
            if path in known:
                place = known[path]
                continue
            shift = known.get((step,))
            if shift is None and isinstance(stride, int):
                shift = codes[axis] if stride == 1 else stride * codes[axis]
            elif shift is None:
                shift = library.look_up_places(stride, codes[axis])
            place = shift if place is None else place + shift
            if library.has_few_rows:
                known[(step,)] = shift
                known[path] = place
        return place


def _steps(shape: tuple[int, ...]) -> list[int]:
    """Return how far apart neighbours along each axis are in one line of values."""
    steps = [1]
    for size in shape[:0:-1]:
        steps.append(steps[-1] * size)
    return steps[::-1]


def _written_out(
    axes: Sequence[Axis], tables: Iterable[Table]
) -> tuple[Table, ...] | None:
    """Return tables that have a value for each code; None if these are too many.

    A table is added to one that has all of its axes.
    """
    whole: dict[tuple[int, ...], Floats] = {}
    for table in sorted(tables, key=lambda table: -len(table.axes)):
        # a value for each code, with the axes in order
        own_axes = tuple(sorted(table.axes))
        n_codes = [axes[axis].n_codes for axis in own_axes]
        if np.prod(n_codes) > LARGEST_TABLE:
            return None
        values = table.values[np.ix_(*table.classes)]
        values = values.transpose(np.argsort(table.axes))  # whole numbers

        # added to the first that has all of its axes
        hosts = [host for host in whole if set(own_axes) <= set(host)]
        if not hosts:
            whole[own_axes] = values.copy()
            continue
        host = hosts[0]
        shape = [axes[axis].n_codes if axis in own_axes else 1 for axis in host]
        whole[host] += values.reshape(shape)
    if sum(values.size for values in whole.values()) > LARGEST_TABLES:
        return None
    return tuple(Table.of(host, values) for host, values in whole.items())


class _Evaluator:
    """What evaluates a map, with all that does not depend on the rows done before.

    Parameters
    ----------
    additive : Additive
        The map.
    """

    def __init__(self, additive: Additive) -> None:
        self.base = additive.base
        self.axes = additive.axes
        self.constant = additive.constant
        self.bounds = additive.bounds
        self.log = additive.log
        self.most = additive.most
        self.lookups = lookups = [_Lookup.of(table) for table in additive.tables]
        # the sum of the values of a row lies between these
        lowest = sum(float(lookup.values.min()) for lookup in lookups)
        highest = sum(float(lookup.values.max()) for lookup in lookups)
        self.may_leave_bounds = lowest < self.bounds[0] or highest > self.bounds[1]
        # of one table, all is done once for each of its values
        self.factors = np.empty(0)
        if len(lookups) == 1:
            self.factors = self._factors(np.clip(lookups[0].values, *self.bounds))

    def _factors(self, sums: Floats) -> Floats:
        """Return what the base, or u if that is a multiple of u, is multiplied by."""
        with np.errstate(over="ignore"):
            factors = np.exp(self.constant + sums) if self.log else self.constant + sums
            return np.asarray(self.base.a * factors if self.base.is_factor else factors)

    def evaluate(self, columns: Any, library: Library) -> Array:
        """Return the value of each row of columns."""
        values = self._unbounded(columns, library)
        return values if self.most is None else library.xp.clip(values, 0.0, self.most)

    def _unbounded(self, columns: Any, library: Library) -> Array:
        """Return the value of each row, however large."""
        u = columns[0]
        if not self.lookups:
            level = float(np.exp(self.constant)) if self.log else self.constant
            return self.base(u, library) * level
        codes = [axis.codes(columns, library) for axis in self.axes]

        # one table, all of which was done before
        if len(self.lookups) == 1:
            at = self.lookups[0].places(codes, library, {})
            values = library.look_up(self.factors, at)
            values *= u if self.base.is_factor else self.base(u, library)
            return values

        # several: base(u) · exp(constant + Σ tables)
        known: _Known = {}
        total: Any = None
        for lookup in self.lookups:
            at = lookup.places(codes, library, known)
            addend = library.look_up(lookup.values, at)
            if total is None:
                total = addend
            else:
                total += addend
        if self.may_leave_bounds:
            total = library.xp.clip(total, *self.bounds)
        total += self.constant
        values = library.xp.exp(total) if self.log else total
        values *= self.base(u, library)
        return values
