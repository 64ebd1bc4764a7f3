"""Maps, recalibrators and their parts in terms of JSON, and back.

What is not plain is an object with "is", which names its kind. Only known kinds come
back, and every node of a map checks its own parts.
"""

from __future__ import annotations

import base64
import inspect
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from textwrap import shorten
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..bins.partitions import Cells, EqualSizeBins, LabelBins
from ..bins.sums import BinSums
from ..exceptions import DamagedFileError, InvalidInputError
from ..maps import KINDS, Node, in_order
from ..maps.conformal import ConformalScores
from ..maps.laws import StudentLaw
from ..maps.ranges import check_map
from ..oddities import Profile
from ..scaling.registry import scaler_named

if TYPE_CHECKING:
    from ..scaling import VarianceScaler

_PARTS: dict[str, type[Any]] = {
    each.__name__: each
    for each in (
        BinSums,
        Cells,
        ConformalScores,
        EqualSizeBins,
        LabelBins,
        Profile,
        StudentLaw,
    )
}
_DTYPES = {"f": np.float64, "i": np.int64, "b": np.bool_}
_NUMBERS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
MOST_NODES = 100_000  # of a map, and of references from one to another
LONGEST_MESSAGE = 300
DEEPEST = 100  # nodes from a column to the root
_PADDING = 2**20  # bytes that text may take beyond what a file has for it
# What a fitted recalibrator has beside its parameters and is written elsewhere.
ELSEWHERE = (
    *("map_", "conformal_", "min_uncertainty_", "n_samples_fit_", "seen_"),
    *("n_features_in_", "feature_names_in_"),
)


class Encoder:
    """Turns values into terms of JSON; what is not plain is an object with "is"."""

    def __init__(self, root: Node) -> None:
        self._root = root

    def __call__(self, value: Any) -> Any:
        """Return a value in terms of JSON."""
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, np.bool_):
            return bool(value)
        if isinstance(value, (int, np.integer)):
            return int(value)
        if isinstance(value, (float, np.floating)):
            number = float(value)
            if math.isfinite(number):
                return number
            return {"is": "number", "value": repr(number)}
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, list):
            return [self(each) for each in value]
        if isinstance(value, (tuple, set)):
            items = sorted(value) if isinstance(value, set) else value
            kind = "set" if isinstance(value, set) else "tuple"
            return {"is": kind, "items": [self(each) for each in items]}
        if isinstance(value, dict):
            pairs = [[self(key), self(each)] for key, each in value.items()]
            return {"is": "dict", "items": pairs}
        if value is self._root:
            return {"is": "the map"}
        if isinstance(value, Node):
            return {"is": "map", "nodes": self.nodes(value)}
        name = type(value).__name__
        if _PARTS.get(name) is type(value):
            return {"is": name, "fields": {k: self(v) for k, v in vars(value).items()}}
        if scaler_named(name) is type(value):
            return self.scaler(value)
        msg = f"a {name} cannot be saved."
        raise InvalidInputError(msg)

    def nodes(self, root: Node) -> list[dict[str, Any]]:
        """Return the nodes of a map, each after its inputs."""
        nodes = in_order(root)
        place = {id(node): i for i, node in enumerate(nodes)}

        def part(value: Any) -> Any:
            if isinstance(value, Node):
                return place[id(value)]
            if isinstance(value, tuple):
                return [place[id(each)] for each in value]
            return self(value)

        return [
            {"is": type(node).__name__}
            | {f.name: part(getattr(node, f.name)) for f in fields(node)}  # type: ignore[arg-type]
            for node in nodes
        ]

    def scaler(self, scaler: Any) -> dict[str, Any]:
        """Return the class of a recalibrator, its parameters and what it learned."""
        parameters = scaler.get_params(deep=False)
        outermost = getattr(scaler, "map_", None) is self._root
        elsewhere = ELSEWHERE if outermost else ()
        learned = {
            k: v
            for k, v in vars(scaler).items()
            if k not in parameters and k not in elsewhere
        }
        return {
            "is": type(scaler).__name__,
            "parameters": {k: self(v) for k, v in sorted(parameters.items())},
            "learned": {k: self(v) for k, v in sorted(learned.items())},
        }

    def _array(self, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        shape = list(array.shape)
        if array.dtype.kind in "UO":
            strings = [str(each) for each in array.ravel().tolist()]
            return {"is": "strings", "shape": shape, "values": strings}
        if array.dtype.kind == "b":
            packed = base64.b64encode(np.packbits(array).tobytes()).decode("ascii")
            return {"is": "array", "dtype": "b", "shape": shape, "values": packed}
        kind = "f" if array.dtype.kind == "f" else "i"
        values = [self(each) for each in array.ravel().tolist()]
        return {"is": "array", "dtype": kind, "shape": shape, "values": values}


@contextmanager
def place(name: str = "") -> Iterator[None]:
    """Say where in a file something is that cannot be used."""
    try:
        yield
    except InvalidInputError as problem:
        words = shorten(str(problem), LONGEST_MESSAGE, placeholder=" ...")
        msg = f"{name}: {words}" if name else words
        raise DamagedFileError(msg) from problem
    except MemoryError:
        raise
    except Exception as problem:
        words = str(problem) or type(problem).__name__
        words = shorten(words, LONGEST_MESSAGE, placeholder=" ...")
        msg = f"{name or 'it'} does not fit together ({words})."
        raise DamagedFileError(msg) from problem


def refuse(msg: str) -> NoReturn:
    """Refuse a file; of what is in it, a message shows so much as can be read."""
    raise DamagedFileError(shorten(msg, LONGEST_MESSAGE, placeholder=" ..."))


class Decoder:
    """Returns what :class:`Encoder` was given, or refuses.

    Parameters
    ----------
    n_columns : int
        The number of columns of the conditioning table.
    root : Node, optional
        What "the map" stands for.
    """

    def __init__(self, n_columns: int, root: Node | None = None) -> None:
        self._n_columns, self._root = n_columns, root

    def __call__(self, value: Any) -> Any:
        """Return the value that terms of JSON stand for."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, list):
            return [self(each) for each in value]
        kind = value.get("is")
        if kind == "number":
            number = _NUMBERS[value["value"]]
            if math.isnan(number):
                refuse("it holds a number that is not one (NaN).")
            return number
        if kind in ("tuple", "set"):
            items = [self(each) for each in value["items"]]
            return tuple(items) if kind == "tuple" else set(items)
        if kind == "dict":
            return {self(key): self(each) for key, each in value["items"]}
        if kind == "array":
            return self._numbers(value)
        if kind == "strings":
            return _strings(value)
        if kind == "the map" and self._root is not None:
            return self._root
        if kind == "map":
            return self.nodes(value["nodes"])
        if isinstance(kind, str) and kind in _PARTS:
            return self._part(kind, value["fields"])
        cls = scaler_named(kind) if isinstance(kind, str) else None
        if cls is not None:
            return self._scaler(cls, value)
        refuse(f"it holds a {kind!r}, which this library does not know.")

    def nodes(self, listed: Any) -> Node:
        """Return the map whose nodes are listed, the last of which is its root."""
        if not isinstance(listed, list) or not listed:
            refuse("the map has no nodes.")
        if len(listed) > MOST_NODES:
            refuse(f"the map has {len(listed)} nodes, too many for one.")
        nodes: list[Node] = []
        depth: dict[int, int] = {}
        references = 0
        for number, entry in enumerate(listed):
            if not isinstance(entry, dict):
                refuse(f"node {number} is not one.")
            name = entry.get("is")
            kind = KINDS.get(name) if isinstance(name, str) else None
            if kind is None:
                refuse(f"node {number} is a {name!r}, which is not known.")
            names = [each.name for each in fields(kind)]  # type: ignore[arg-type]
            if set(entry) != {"is", *names}:
                wrong = ", ".join(sorted(set(entry) ^ {"is", *names}))
                refuse(f"parts of node {number} are missing or unknown: {wrong}.")
            with place(f"node {number}, a {name}"):
                node = kind(**{n: self._field(kind, n, entry[n], nodes) for n in names})
                below = [depth[id(each)] for each in node.inputs]
                depth[id(node)] = 1 + max(below, default=0)
                references += len(below)
                if depth[id(node)] > DEEPEST or references > MOST_NODES:
                    refuse("nodes build too much on each other.")
            nodes.append(node)
        root = nodes[-1]
        with place("the map"):
            used = {id(node) for node in in_order(root)}
            for number, node in enumerate(nodes):
                if id(node) not in used:
                    refuse(f"node {number} is of no use to the last one.")
            check_map(root, self._n_columns)
        return root

    def _field(
        self, kind: type[Node], name: str, value: Any, nodes: Sequence[Node]
    ) -> Any:
        """Return a field of a node; inputs are among the nodes before it."""

        def earlier(place: Any) -> Node:
            if type(place) is not int or not 0 <= place < len(nodes):
                refuse(f"there is no node {place!r} before it.")
            return nodes[place]

        if name in kind.input_fields and value is not None:
            many = isinstance(value, list)
            return tuple(map(earlier, value)) if many else earlier(value)
        return self(value)

    def _part(self, kind: str, parts: Any) -> Any:
        part = _PARTS[kind](**{n: self(v) for n, v in parts.items()})
        if not part.is_sound:
            refuse(f"its {kind} are not whole, sorted and finite.")
        return part

    def _numbers(self, value: dict[str, Any]) -> np.ndarray[Any, Any]:
        values, dtype = value["values"], value["dtype"]
        shape, size = _shape(value)
        if dtype == "b":
            packed = np.frombuffer(base64.b64decode(values, validate=True), np.uint8)
            if packed.size != -(-size // 8):  # or a few bytes would unpack to many
                refuse(f"{packed.size} bytes stand for {size} truth values.")
            return np.unpackbits(packed, count=size).astype(bool).reshape(shape)
        if not isinstance(values, list) or len(values) != size:
            refuse(f"an array has not as many numbers as its shape {list(shape)}.")
        allowed = {int} if dtype == "i" else {int, float}
        if any(type(each) is dict for each in values):
            values = [
                _NUMBERS[each["value"]] if type(each) is dict else each
                for each in values
            ]
        wrong = {type(each) for each in values} - allowed
        if wrong:
            names = ", ".join(sorted(each.__name__ for each in wrong))
            refuse(f"an array of numbers holds something else ({names}).")
        flat: np.ndarray[Any, Any] = np.array(values, dtype=_DTYPES[dtype])
        if dtype == "f" and np.isnan(flat).any():
            refuse("it holds a number that is not one (NaN).")
        return flat.reshape(shape)

    def _scaler(self, cls: type[VarianceScaler], value: dict[str, Any]) -> Any:
        parameters = {}
        for name, parameter in value["parameters"].items():
            with place(f"the parameter {name!r}"):
                parameters[name] = self(parameter)
        known = set(inspect.signature(cls).parameters)
        if set(parameters) != known:
            wrong = ", ".join(sorted(set(parameters) ^ known))
            refuse(f"parameters of {cls.__name__} are missing or unknown: {wrong}.")
        scaler = cls(**parameters)
        for name, learned in value["learned"].items():
            if (
                not name.isidentifier()
                or name.startswith("__")
                or name in known
                or hasattr(cls, name)
            ):
                refuse(f"{name!r} is not something that {cls.__name__} learns.")
            with place(f"what was learned, {name!r}"):
                setattr(scaler, name, self(learned))
        if hasattr(scaler, "map_"):  # one within another, which can predict, too
            with place(f"the {cls.__name__} within"):
                _check_fitted(scaler)
        return scaler


def _check_fitted(scaler: Any) -> None:
    """Refuse what could not predict."""
    n_columns, smallest = scaler.n_features_in_, scaler.min_uncertainty_
    names = getattr(scaler, "feature_names_in_", None)
    if (
        not isinstance(scaler.map_, Node)
        or type(n_columns) is not int
        or type(smallest) is not float
        or not 0 < smallest < math.inf
        or (names is not None and np.shape(names) != (n_columns,))
        or not isinstance(getattr(scaler, "conformal_", None), ConformalScores | None)
    ):
        refuse("parts are missing or not what they should be.")
    check_map(scaler.map_, n_columns)
    check_sums(scaler)


def check_sums(scaler: Any) -> None:
    """Refuse sums that `update` could not go on from; there need not be any."""
    if not scaler.is_updatable:
        return
    try:
        kept = scaler._kept()
    except (AttributeError, InvalidInputError):
        return  # an earlier release wrote it
    if not kept.is_sound:
        refuse("the sums are not those of its bins.")


def _shape(value: dict[str, Any]) -> tuple[tuple[int, ...], int]:
    """Return the shape of an array, and its size."""
    shape = value["shape"]
    if not isinstance(shape, list) or not all(
        type(length) is int and length >= 0 for length in shape
    ):
        refuse(f"{shape!r} is not the shape of an array.")
    return tuple(shape), math.prod(shape)


def _strings(value: dict[str, Any]) -> np.ndarray[Any, Any]:
    values = value["values"]
    shape, size = _shape(value)
    if (
        not isinstance(values, list)
        or len(values) != size
        or not all(isinstance(each, str) for each in values)
    ):
        refuse(f"an array has not as many strings as its shape {list(shape)}.")
    lengths = [len(each) for each in values]
    # NumPy gives every string the room of the longest: not if that is a waste
    wasteful = 4 * size * max(lengths, default=0) > _PADDING + 4 * sum(lengths)
    return np.array(values, dtype=object if wasteful else str).reshape(shape)
