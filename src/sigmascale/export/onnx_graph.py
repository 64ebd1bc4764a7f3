"""The nodes of a map in the operators of ONNX."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from .._support.checks import Floats
from ..bins.partitions import EqualSizeBins, LabelBins
from ..maps import (
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
    Trees,
    in_order,
)
from ..maps.nodes import require

ML = "ai.onnx.ml"
OPSET, ML_OPSET, IR_VERSION = 18, 5, 10
_LEQ, _MEMBER = 0, 6  # what a branch asks: at most the split? member of a set?


def free_name(name: str, taken: set[str]) -> str:
    """Return a name that is not empty, and not among those taken, and take it."""
    while not name or name in taken:
        name += "_"
    taken.add(name)
    return name


class Graph:
    """A graph that grows; operators are called by name and return names of results.

    Parameters
    ----------
    dtype : str
        The type of numbers that go in and come out.
    names : list of str
        What inputs are called. No name inside the graph begins as one of these does,
        and an output that would be called as one of them gets an underscore.
    """

    def __init__(self, dtype: str, names: Iterable[str]) -> None:
        self._type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._taken = set(names)
        self._own = "_"
        while any(name.startswith(self._own) for name in self._taken):
            self._own += "_"
        self._nodes: list[Any] = []
        self._constants: dict[Any, Any] = {}
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def node(self, operator: str, *inputs: str, domain: str = "", **how: Any) -> str:
        """Add an operator, and return the name of its result."""
        name = f"{self._own}{operator.lower()}_{len(self._nodes)}"
        self._nodes.append(
            helper.make_node(operator, list(inputs), [name], domain=domain, **how)
        )
        return name

    def constant(self, value: npt.ArrayLike) -> str:
        """Return the name of a constant, in float64 unless it holds integers."""
        array = np.asarray(value)
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._constants:
            name = f"{self._own}constant_{len(self._constants)}"
            self._constants[key] = numpy_helper.from_array(array, name)
        return str(self._constants[key].name)

    def _input(self, name: str, kind: int) -> None:
        self._inputs.append(helper.make_tensor_value_info(name, kind, ["n"]))

    def number_input(self, name: str) -> str:
        """Add an input of numbers, and return them in float64."""
        self._input(name, self._type)
        return self.node("Cast", name, to=onnx.TensorProto.DOUBLE)

    def text_input(self, name: str) -> str:
        """Add an input of strings."""
        self._input(name, onnx.TensorProto.STRING)
        return name

    def output(self, name: str, value: str) -> None:
        """Make an output of numbers."""
        name = free_name(name, self._taken)
        self._nodes.append(
            helper.make_node("Cast", [value], [name], to=int(self._type))
        )
        self._outputs.append(helper.make_tensor_value_info(name, self._type, ["n"]))

    def model(self, told: Mapping[str, str]) -> Any:
        """Return the model, with what is told of it."""
        graph = helper.make_graph(
            self._nodes,
            "sigmascale",
            self._inputs,
            self._outputs,
            list(self._constants.values()),
        )
        model = helper.make_model(
            graph,
            producer_name="sigmascale",
            producer_version=told["sigmascale"],
            ir_version=IR_VERSION,
            opset_imports=[
                helper.make_opsetid("", OPSET),
                helper.make_opsetid(ML, ML_OPSET),
            ],
        )
        helper.set_model_props(model, dict(told))
        return model

    def is_finite(self, x: str) -> str:
        """Return whether numbers are neither missing nor infinite."""
        bad = self.node("Or", self.node("IsNaN", x), self.node("IsInf", x))
        return self.node("Not", bad)

    def clip(self, x: str, low: float, high: float) -> str:
        """Return numbers within limits."""
        return self.node("Clip", x, self.constant(low), self.constant(high))

    def value(self, root: Node, columns: Mapping[int, str]) -> str:
        """Return the value of a map."""
        names: dict[int, str] = {}
        for node in in_order(root):
            if isinstance(node, Column):
                names[id(node)] = columns[node.position]
            else:
                given = [names[id(each)] for each in node.inputs]
                names[id(node)] = self._value(node, given)
        return names[id(root)]

    def _value(self, node: Node, given: list[str]) -> str:
        match node:
            case Constant():
                return self.constant(node.value)
            case Sum():
                return reduce(lambda a, b: self.node("Add", a, b), given)
            case Product():
                return reduce(lambda a, b: self.node("Mul", a, b), given)
            case Hypotenuse():
                x, y = (self.node("Mul", each, each) for each in given)
                return self.node("Sqrt", self.node("Add", x, y))
            case Root():
                return self.node("Sqrt", *given)
            case Exponential():
                return self.node("Exp", *given)
            case Clip():
                return self.clip(given[0], node.low, node.high)
            case Code(partition=LabelBins() as labels):
                return self._label_code(given[0], labels)
            case Code(partition=EqualSizeBins() as bins):
                return self._bin_code(bins, *given)
            case Lookup():
                return self._lookup(node, given)
            case Interpolation():
                return self._interpolation(node, given[0])
            case Trees():
                return self._trees(node, given)
        msg = f"no operators for {type(node).__name__}"  # pragma: no cover
        raise NotImplementedError(msg)

    def _search(self, limits: Floats, reached: Any) -> str:
        """Return how many ascending limits each row has reached: a binary search.

        `reached` says, of the places of limits, whether rows have reached these.
        """
        # beyond the last there is NaN, which no number reaches
        steps = limits.shape[-1].bit_length()
        beyond = 2**steps - 1 - limits.shape[-1]
        padded = np.pad(
            limits, [(0, 0)] * (limits.ndim - 1) + [(0, beyond)], constant_values=np.nan
        )
        found = self.constant(np.zeros(1, dtype=np.int64))
        for step in (2**k for k in reversed(range(steps))):
            at = self.node("Add", found, self.constant(np.int64(step - 1)))
            gained = self.node(
                "Where",
                reached(padded, at),
                self.constant(np.int64(step)),
                self.constant(np.int64(0)),
            )
            found = self.node("Add", found, gained)
        return found

    def _reached(self, x: str) -> Any:
        def reached(limits: Floats, at: str) -> str:
            limit = self.node("Gather", self.constant(limits), at)
            return self.node("GreaterOrEqual", x, limit)

        return reached

    def _bin_code(self, bins: EqualSizeBins, x: str, ties: str | None = None) -> str:
        if bins.tie_limits is None or ties is None:
            limits, reached = bins.limits, self._reached(x)
        else:
            limits = np.stack([bins.limits, bins.tie_limits])

            def reached(pairs: Floats, at: str) -> str:
                limit, tie_limit = (
                    self.node("Gather", self.constant(each), at) for each in pairs
                )
                equal = self.node("Equal", x, limit)
                tied = self.node("GreaterOrEqual", ties, tie_limit)
                tied = self.node("And", equal, tied)
                return self.node("Or", self.node("Greater", x, limit), tied)

        # of as many rows as x, even if there is no limit to be compared with
        missing = self.node("IsNaN", x)
        one, none = (self.constant(np.int64(k)) for k in (1, 0))
        found = self.node("Add", self._search(limits, reached), one)
        return self.node("Where", missing, none, found)

    def _label_code(self, x: str, partition: LabelBins) -> str:
        """Return the code of each label, 0 if it is unknown."""
        labels = partition.labels
        if partition.are_text:
            # there is no missing text: an empty one stands for it
            text = {"" if x is None else x: i for i, x in enumerate(labels, start=1)}
            text |= {x: i for i, x in enumerate(labels, start=1) if x == ""}
            known = {x: i for x, i in text.items() if isinstance(x, str)}
            return self.node(
                "LabelEncoder",
                x,
                domain=ML,
                keys_strings=list(known),
                values_int64s=list(known.values()),
                default_int64=0,
            )
        numbers = np.array([x for x in labels if x is not None], dtype=np.float64)
        distinct = np.unique(numbers).size == numbers.size
        require(distinct, "labels must be text, or numbers that float64 tells apart")
        found = self._search(numbers, self._reached(x))
        # before the first there is what no number equals
        before = self.constant(np.append(np.nan, numbers))
        equal = self.node("Equal", x, self.node("Gather", before, found))
        none = self.constant(np.int64(0))
        code = self.node("Where", equal, found, none)
        missing = len(labels) if None in labels else 0
        return self.node(
            "Where", self.node("IsNaN", x), self.constant(np.int64(missing)), code
        )

    def _lookup(self, node: Lookup, codes: list[str]) -> str:
        code = codes[0]
        for size, other in zip(node.table.shape[1:], codes[1:], strict=True):
            code = self.node("Mul", code, self.constant(np.int64(size)))
            code = self.node("Add", code, other)
        return self.node("Gather", self.constant(node.table.ravel()), code)

    def _interpolation(self, node: Interpolation, x: str) -> str:
        knots, values = node.knots, node.values
        if knots.size == 1:
            zero = self.node("Mul", x, self.constant(0.0))
            return self.node("Add", zero, self.constant(float(values[0])))
        x = self.clip(x, float(knots[0]), float(knots[-1]))
        found = self._search(knots[1:-1], self._reached(x))
        slopes = np.diff(values) / np.diff(knots)
        knot, value, slope = (
            self.node("Gather", self.constant(each), found)
            for each in (knots[:-1], values[:-1], slopes)
        )
        beyond = self.node("Mul", slope, self.node("Sub", x, knot))
        return self.node("Add", value, beyond)

    def _trees(self, trees: Trees, codes: list[str]) -> str:
        columns = []
        for code, node in zip(codes, trees.codes, strict=True):
            column = self.node("Cast", code, to=onnx.TensorProto.DOUBLE)
            if not isinstance(node.partition, LabelBins):  # a missing number is NaN
                is_missing = self.node("Equal", column, self.constant(0.0))
                nan = self.constant(np.nan)
                column = self.node("Where", is_missing, nan, column)
            columns.append(self.node("Unsqueeze", column, self.constant(np.array([1]))))
        table = self.node("Concat", *columns, axis=1)
        how = _Ensemble(trees).attributes()
        total = self.node("TreeEnsemble", table, domain=ML, **how)
        total = self.node("Squeeze", total, self.constant(np.array([1])))
        return self.node("Div", total, self.constant(trees.divisor))


class _Ensemble:
    """Trees as the attributes of ONNX's operator.

    There, a node asks whether a code is at most its split or, of labels, whether it is
    a member of a set.
    """

    def __init__(self, trees: Trees) -> None:
        self._trees = trees
        self._sizes = [code.n_codes for code in trees.codes]
        self._labelled = [isinstance(code.partition, LabelBins) for code in trees.codes]
        self._features: list[int] = []
        self._modes: list[int] = []
        self._splits: list[float] = []
        self._missing: list[int] = []
        self._members: list[float] = []
        self._children: list[tuple[tuple[int, bool], tuple[int, bool]]] = []
        self._weights: list[float] = []

    def _question(self, feature: int, mode: int, split: float, missing: bool) -> int:
        self._features.append(feature)
        self._modes.append(mode)
        self._splits.append(split)
        self._missing.append(int(missing))
        self._children.append(((0, True), (0, True)))  # to be known later
        return len(self._features) - 1

    def _add(self, tree: int, node: int) -> tuple[int, bool]:
        """Add what is below a node; return its place, and whether it is a leaf."""
        trees = self._trees
        n_nodes = trees.feature.shape[1]
        if node >= n_nodes:
            self._weights.append(float(trees.value[tree, node - n_nodes]))
            return len(self._weights) - 1, True
        feature = int(trees.feature[tree, node])
        left = trees.left[tree, node, : self._sizes[feature]]
        if (left == left[0]).all():  # all rows go the same way
            return self._add(tree, 2 * node + 2 - int(left[0]))
        if self._labelled[feature]:
            place = self._question(feature, _MEMBER, 0.0, False)
            self._members += [*np.flatnonzero(left).astype(float).tolist(), np.nan]
        else:
            # the codes of numbers go left up to one of them, or all or none do
            split = 0.5 + np.count_nonzero(left[1:])
            require(
                bool((left[1:] == (np.arange(1, left.size) < split)).all()),
                "trees that are written must split numbers at one place",
            )
            place = self._question(feature, _LEQ, float(split), bool(left[0]))
        # the members of sets must be in the order of nodes: true first, then false
        yes, no = self._add(tree, 2 * node + 1), self._add(tree, 2 * node + 2)
        self._children[place] = yes, no
        return place, False

    def attributes(self) -> dict[str, Any]:
        """Return the attributes."""
        roots = []
        for tree in range(self._trees.feature.shape[0]):
            place, is_leaf = self._add(tree, 0)
            if is_leaf:  # a tree that does not split: both answers lead to its leaf
                root = self._question(0, _LEQ, 0.0, False)
                self._children[root] = (place, True), (place, True)
                place = root
            roots.append(place)
        yes, no = (list(each) for each in zip(*self._children, strict=True))
        found = {
            "n_targets": 1,
            "aggregate_function": 1,
            "post_transform": 0,
            "tree_roots": roots,
            "nodes_featureids": self._features,
            "nodes_modes": numpy_helper.from_array(
                np.array(self._modes, dtype=np.uint8), "modes"
            ),
            "nodes_splits": numpy_helper.from_array(np.array(self._splits), "splits"),
            "nodes_missing_value_tracks_true": self._missing,
            "nodes_truenodeids": [place for place, _ in yes],
            "nodes_trueleafs": [int(is_leaf) for _, is_leaf in yes],
            "nodes_falsenodeids": [place for place, _ in no],
            "nodes_falseleafs": [int(is_leaf) for _, is_leaf in no],
            "leaf_targetids": [0] * len(self._weights),
            "leaf_weights": numpy_helper.from_array(np.array(self._weights), "weights"),
        }
        if self._members:
            found["membership_values"] = numpy_helper.from_array(
                np.array(self._members), "members"
            )
        return found
