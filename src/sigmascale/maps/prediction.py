"""From a map and rows to recalibrated uncertainties.

A map becomes a program of array functions, which any library of arrays can run. It
knows no library: it is given the functions of the array API standard, its constants as
that library wants them, and columns. NumPy runs it chunk by chunk, within the cache,
devices on larger chunks of rows, and a PyTorch module with its buffers for constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add, mul
from typing import Any, Literal

import numpy as np

from .._support.checks import Floats
from .._support.labels import numbers_of
from .._support.notices import warn
from ..bins.libraries import Array, library_of
from ..bins.partitions import EqualSizeBins, Kernel, LabelBins, find_label
from ..exceptions import UnseenCategoryWarning
from ..oddities import Profile
from ..predictions import Predictions, with_positive_uncertainty
from .nodes import (
    Clip,
    Code,
    Column,
    Constant,
    Exponential,
    Hypotenuse,
    Interpolation,
    Lookup,
    Node,
    Product,
    Root,
    Sum,
    columns_of,
    in_order,
)
from .trees import Trees, tree_kernel

# What a column of labels holds: the codes of its labels, numbers that are labels, or of
# text, which device arrays do not hold, the positions among the labels.
LabelsAs = Literal["codes", "numbers", "positions"]
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

    Uncertainties of 0 are lifted to the `smallest` seen in fit, with a warning; so are
    there warnings of labels that were never seen, and of rows unlike the `n_fit` ones
    that were `seen`.
    """
    rows = with_positive_uncertainty(rows, smallest=smallest)
    columns = list(columns_of(root))
    if any(column.kind == "label" for column in columns):
        _warn_of_unseen(root, rows)
    if seen is not None:
        kinds = {column.position: column.kind for column in columns}
        seen.warn_of_others(rows, n_fit, kinds)
    return rescale(root, rows)


def rescale(root: Node, rows: Predictions) -> Floats:
    """Return the recalibrated uncertainties of rows whose uncertainties are positive.

    Nothing is said about labels that were never seen.
    """
    # what leaves the range of numbers is brought back into it
    result = value_of(root, rows)
    return np.clip(result, _FLOAT.tiny, _FLOAT.max, out=result)


def value_of(root: Node, rows: Predictions) -> Floats:
    """Return the value of a map; columns are checked for what it takes them."""
    columns: list[Any] = [rows.uncertainty, *[None] * (len(rows.columns) - 1)]
    for column in columns_of(root):
        position = column.position
        if column.kind == "label":
            columns[position] = rows.labels(position)
        elif column.kind == "optional":
            columns[position] = rows.numbers_or_missing(position)
        elif position:
            columns[position] = rows.numbers(position)
    return evaluate(root, columns, rows.n_rows)


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


def evaluate(root: Node, columns: Sequence[Any], n_rows: int) -> Floats:
    """Return the value of a map for each row, in an array of its own.

    Parameters
    ----------
    root : Node
        The map.
    columns : sequence of arrays
        The columns of the table, as the map wants them: numbers, or labels. Those that
        it does not read may be None.
    n_rows : int
        The number of rows.

    Returns
    -------
    array of shape (n_rows,)

    Examples
    --------
    >>> from sigmascale.maps import scaled
    >>> evaluate(scaled(2.0), [np.array([1.0, 3.0])], 2)
    array([2., 6.])
    """
    program = Program(root, "codes", n_rows)
    result = np.empty(n_rows)
    library = library_of(result)
    constants = library.ready(program.constants, n_rows)
    # labels are coded all at once, and follow in the end, from the last to the first
    coded = [code.partition.coded(columns[code.x.position]) for code in program.coded]
    given = [*columns, *reversed(coded)]
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in library.chunks(n_rows):
            some = [None if each is None else each[rows] for each in given]
            result[rows] = program(library.xp, constants, some)
    return result


class Program:
    """A map that is ready to run.

    Parameters
    ----------
    root : Node
        The map.
    labels_as : {"codes", "numbers", "positions"}
        What columns of labels hold.
    n_rows : int, optional
        The number of rows, if NumPy is to run it.

    Attributes
    ----------
    constants : list of array
        What the program needs in the library; see `Library.ready`.
    coded : list
        The codes of labels, which are taken as columns if these hold codes.
    """

    def __init__(
        self, root: Node, labels_as: LabelsAs = "numbers", n_rows: int | None = None
    ) -> None:
        self._made_from = root, labels_as, n_rows
        nodes = in_order(root)
        place = {id(node): i for i, node in enumerate(nodes)}
        self.constants: list[Any] = []
        self.coded: list[Any] = []
        self._steps: list[tuple[int | None, Any, slice, list[int]]] = []
        for node in nodes:
            if isinstance(node, Column):
                self._steps.append((node.position, None, slice(0, 0), []))
                continue
            of_labels = isinstance(node, Code) and isinstance(node.partition, LabelBins)
            if of_labels and labels_as == "codes":
                self.coded.append(node)
                self._steps.append((-len(self.coded), None, slice(0, 0), []))
                continue
            constants, kernel = _kernel(node, labels_as, n_rows)
            start = len(self.constants)
            self.constants += constants
            inputs = [place[id(each)] for each in node.inputs]
            which = slice(start, len(self.constants))
            self._steps.append((None, kernel, which, inputs))

    def __reduce__(self) -> Any:
        """Say how to make it again: functions cannot be copied to another process."""
        return Program, self._made_from

    def __call__(
        self, xp: Any, constants: Sequence[Array], columns: Sequence[Array]
    ) -> Array:
        """Return the value of each row; columns are float64, labels too or codes."""
        values: list[Array] = []
        for position, kernel, which, inputs in self._steps:
            if position is not None:
                values.append(columns[position])
            else:
                given = [values[i] for i in inputs]
                values.append(kernel(xp, constants[which], *given))
        return values[-1]


def _kernel(
    node: Node, labels_as: LabelsAs, n_rows: int | None
) -> tuple[list[Any], Kernel]:
    """Return the constants of a node, and what computes it."""
    match node:
        case Constant():
            return [np.array(node.value)], lambda xp, c: c[0]
        case Sum():
            return [], lambda xp, c, *terms: reduce(add, terms)
        case Product():
            return [], lambda xp, c, *factors: reduce(mul, factors)
        case Hypotenuse():
            return [], lambda xp, c, x, y: xp.hypot(x, y)
        case Root():
            return [], lambda xp, c, x: xp.sqrt(x)
        case Exponential():
            return [], lambda xp, c, x: xp.exp(x)
        case Clip(low=low, high=high):
            return [], lambda xp, c, x: xp.clip(x, low, high)
        case Code(partition=LabelBins() as labels):
            positions = labels_as == "positions"
            return find_label(label_numbers(labels, positions=positions))
        case Code(x=x, partition=EqualSizeBins() as bins):
            optional = isinstance(x, Column) and x.kind == "optional"
            return bins.kernel(1, missing=optional)
        case Lookup():
            return _lookup(node)
        case Interpolation():
            return _interpolation(node, in_numpy=n_rows is not None)
        case Trees():
            return tree_kernel(node, n_rows)
    msg = f"no program for {type(node).__name__}"  # pragma: no cover
    raise NotImplementedError(msg)


def label_numbers(partition: LabelBins, *, positions: bool = False) -> Floats:
    """Return labels that are numbers; of text their positions, or none at all."""
    if partition.are_text:
        return np.arange(float(len(partition.labels) if positions else 0))
    return numbers_of(partition.labels)


def _lookup(node: Lookup) -> tuple[list[Any], Kernel]:
    sizes = node.table.shape[1:]

    def look_up(xp: Any, c: Sequence[Array], code: Array, *others: Array) -> Array:
        for size, other in zip(sizes, others, strict=True):
            code = code * size + other
        return xp.take(c[0], code, axis=0)

    return [node.table.ravel()], look_up


def _interpolation(node: Interpolation, *, in_numpy: bool) -> tuple[list[Any], Kernel]:
    knots, values = node.knots, node.values
    if in_numpy:
        return [], lambda xp, c, x: np.interp(x, knots, values)
    if knots.size == 1:
        return [values], lambda xp, c, x: c[0][0] + 0 * x
    slopes = np.diff(values) / np.diff(knots)
    low, high, last = float(knots[0]), float(knots[-1]), slopes.size - 1

    def interpolate(xp: Any, c: Sequence[Array], x: Array) -> Array:
        x = xp.clip(x, low, high)
        # of the inner knots, so that the last segment ends with the last knot
        found = xp.searchsorted(c[0][1:-1], x, side="right") if last else None
        if found is None:
            return c[1][0] + c[2][0] * (x - c[0][0])
        at = [xp.take(each, found, axis=0) for each in (c[0], c[1], c[2])]
        return at[1] + at[2] * (x - at[0])

    return [knots, values, slopes], interpolate
