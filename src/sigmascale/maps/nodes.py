"""The nodes of learned maps: an expression over the columns of a conditioning table.

A map says how uncertainties are recalibrated, and nothing else is needed to do it. It
is plain data: a tree of the few kinds of nodes below, each with numbers and arrays.
Whoever wants to use a map somewhere else (in a lazy frame, on a device, in a file)
translates these kinds, and knows no recalibrator by its name.

Nodes have values of two kinds. *Numbers* are one float for each row. *Codes* are one
integer for each row: 0 says that a value is missing or a label unknown, and bin i of a
partition has the code i + 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

import numpy as np

from .._support.checks import LARGEST, SMALLEST, Floats
from ..bins.partitions import EqualSizeBins, LabelBins
from ..exceptions import InvalidInputError

ColumnKind = Literal["number", "optional", "label"]


class Node:
    """A part of a map; its inputs are other nodes."""

    input_fields: ClassVar[tuple[str, ...]] = ()
    """The fields that hold other nodes, one or a tuple of them, or None."""
    gives_codes: ClassVar[bool] = False

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes that this one is computed from, in the order of its fields."""
        found: list[Node] = []
        for name in self.input_fields:
            value = getattr(self, name)
            if value is not None:
                found += value if isinstance(value, tuple) else [value]
        return tuple(found)


def require(holds: bool, must: str) -> None:
    """Refuse a map that is not as it must be."""
    if not holds:
        raise InvalidInputError(must[0].upper() + must[1:] + ".")


@dataclass(frozen=True, eq=False)
class Column(Node):
    """A column of the conditioning table; column 0 is the uncertainty.

    Attributes
    ----------
    position : int
        Which column.
    kind : {"number", "optional", "label"}
        What its values are: finite numbers; numbers that may be missing; or labels.
    """

    position: int
    kind: ColumnKind = "number"


@dataclass(frozen=True, eq=False)
class Constant(Node):
    """The same number for all rows.

    Attributes
    ----------
    value : float
        The number.
    """

    value: float


@dataclass(frozen=True, eq=False)
class Sum(Node):
    """The sum of some numbers, added up from the first to the last.

    Attributes
    ----------
    terms : tuple of Node
        The numbers.
    """

    input_fields = ("terms",)

    terms: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Product(Node):
    """The product of some numbers, multiplied from the first to the last.

    Attributes
    ----------
    factors : tuple of Node
        The numbers.
    """

    input_fields = ("factors",)

    factors: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Hypotenuse(Node):
    """sqrt(x² + y²): how uncertainties add up.

    Attributes
    ----------
    x, y : Node
        The numbers.
    """

    input_fields = ("x", "y")

    x: Node
    y: Node


@dataclass(frozen=True, eq=False)
class Root(Node):
    """The square root of a number that is not negative.

    Attributes
    ----------
    x : Node
        The number.
    """

    input_fields = ("x",)

    x: Node


@dataclass(frozen=True, eq=False)
class Exponential(Node):
    """The exponential function, exp(x).

    Attributes
    ----------
    x : Node
        Its argument.
    """

    input_fields = ("x",)

    x: Node


@dataclass(frozen=True, eq=False)
class Clip(Node):
    """A number, but at least `low` and at most `high`.

    Attributes
    ----------
    x : Node
        The number.
    low, high : float
        The limits.
    """

    input_fields = ("x",)

    x: Node
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Code(Node):
    """The bin of a number among limits, or the code of a label.

    Attributes
    ----------
    x : Node
        A number, or a column of labels.
    partition : EqualSizeBins or LabelBins
        The limits or the labels.
    ties : Node or None
        The number that tells rows with equal x apart, where limits are pairs.
    """

    input_fields = ("x", "ties")

    x: Node
    partition: EqualSizeBins | LabelBins
    ties: Node | None = None

    gives_codes = True

    @property
    def n_codes(self) -> int:
        """The number of codes, with the 0 of what is missing or unknown."""
        return self.partition.n_codes


@dataclass(frozen=True, eq=False)
class Lookup(Node):
    """The entry of a table at the codes of a row.

    Attributes
    ----------
    codes : tuple of Code
        The codes, one for each dimension of the table.
    table : array
        The entries; those at 0 are for what is missing or unknown.
    """

    input_fields = ("codes",)

    codes: tuple[Code, ...]
    table: Floats


@dataclass(frozen=True, eq=False)
class Interpolation(Node):
    """A function that never falls: linear between knots, and constant outside.

    Attributes
    ----------
    x : Node
        Its argument.
    knots, values : array of shape (n_knots,)
        Where the function is given, in ascending order, and its values there, of
        which none is less than the one before it.
    """

    input_fields = ("x",)

    x: Node
    knots: Floats
    values: Floats


UNCERTAINTY = Column(0)


def scaled(*factors: Node | float) -> Product:
    """Return the map that multiplies the uncertainty by some factors.

    Parameters
    ----------
    *factors : Node or float
        The factors.

    Returns
    -------
    Product

    Examples
    --------
    >>> scaled(2.0).factors[0]
    Constant(value=2.0)
    """
    nodes = [f if isinstance(f, Node) else Constant(float(f)) for f in factors]
    return Product((*nodes, UNCERTAINTY))


def multiplied(root: Node, factor: float) -> Node:
    """Return a map times a number, as flat as it can be.

    Parameters
    ----------
    root : Node
        The map.
    factor : float
        The number.

    Returns
    -------
    Node

    Examples
    --------
    >>> multiplied(scaled(2.0), 3.0).factors[0]
    Constant(value=6.0)
    """
    if abs(factor - 1) < 1e-9:  # it is right already
        return root
    factors = root.factors if isinstance(root, Product) else (root,)
    first = factors[0]
    if isinstance(first, Constant):
        return Product((Constant(factor * first.value), *factors[1:]))
    return Product((Constant(factor), *factors))


def in_order(root: Node) -> list[Node]:
    """Return each node of a map once, its inputs before it.

    Parameters
    ----------
    root : Node
        The map.

    Returns
    -------
    list of Node

    Examples
    --------
    >>> [type(node).__name__ for node in in_order(scaled(2.0))]
    ['Constant', 'Column', 'Product']
    """
    found: dict[int, Node] = {}
    waiting = [root]
    while waiting:
        node = waiting[-1]
        before = [each for each in node.inputs if id(each) not in found]
        if before:
            waiting += reversed(before)
        else:
            found.setdefault(id(node), waiting.pop())
    return list(found.values())


def in_unit(root: Node, unit: float) -> Node:
    """Return the map that does in another unit what a map does.

    Parameters
    ----------
    root : Node
        A map from u to a number in the same unit.
    unit : float
        What one unit of `root` is, in the new one.

    Returns
    -------
    Node
        ``unit * root(u / unit)``. Columns other than the uncertainty stay as they are.

    Examples
    --------
    >>> from sigmascale.maps import evaluate
    >>> root = in_unit(Hypotenuse(UNCERTAINTY, Constant(3.0)), 10.0)
    >>> evaluate(root, [np.array([40.0])], 1)
    array([50.])
    """
    inner = Clip(Product((Constant(1 / unit), Column(0))), SMALLEST, LARGEST)
    new: dict[int, Node] = {}
    for node in in_order(root):
        if isinstance(node, Column) and node.position == 0:
            new[id(node)] = inner
            continue
        inputs = {
            each.name: _renewed(getattr(node, each.name), new)
            for each in fields(node)  # type: ignore[arg-type]
            if each.name in node.input_fields
        }
        new[id(node)] = replace(node, **inputs) if inputs else node  # type: ignore[type-var]
    return multiplied(new[id(root)], unit)


def _renewed(value: Any, new: dict[int, Node]) -> Any:
    """Return what replaces an input, or each of several."""
    if isinstance(value, tuple):
        return tuple(new[id(each)] for each in value)
    return None if value is None else new[id(value)]


def columns_of(root: Node) -> Iterator[Column]:
    """Yield the columns that a map reads."""
    return (node for node in in_order(root) if isinstance(node, Column))


@dataclass(frozen=True)
class FactorTable:
    """Factors of the uncertainty by the bins of one column.

    Attributes
    ----------
    position : int
        The column.
    partition : EqualSizeBins or LabelBins
        Its bins.
    factors : array of shape (n_codes,)
        The factor of what is missing or unknown, and then of each bin.
    """

    position: int
    partition: EqualSizeBins | LabelBins
    factors: Floats


def factor_tables(root: Node) -> list[FactorTable]:
    """Return the factors that a map has for the bins of single columns.

    Their product, with those of joint bins and a constant, multiplies the uncertainty.
    There are none where a map is no such product.

    Parameters
    ----------
    root : Node
        The map.

    Returns
    -------
    list of FactorTable

    Examples
    --------
    >>> import sigmascale as ss
    >>> data = ss.datasets.make_molecules(1000)
    >>> scaler = ss.BinwiseScaling(4).fit(data.X, data.error)
    >>> [table.position for table in factor_tables(scaler.map_)]
    [0]
    """
    if not isinstance(root, Product):
        return []
    tables: list[tuple[Lookup, Floats]] = []
    for factor in root.factors:
        logarithms = isinstance(factor, Exponential)
        inner = factor.x if isinstance(factor, Exponential) else factor
        terms: Sequence[Node] = inner.terms if isinstance(inner, Sum) else (inner,)
        for term in terms:
            if isinstance(term, Lookup):
                tables.append((term, np.exp(term.table) if logarithms else term.table))
            elif not isinstance(term, (Constant, Column)):
                return []
    found = []
    for lookup, factors in tables:
        if len(lookup.codes) == 1 and isinstance(lookup.codes[0].x, Column):
            code = lookup.codes[0]
            assert isinstance(code.x, Column)
            found.append(FactorTable(code.x.position, code.partition, factors))
    return found
