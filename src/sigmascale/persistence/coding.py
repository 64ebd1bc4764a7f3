"""Maps, recalibrators and their parts in terms of JSON, and back.

What is not plain is an object with "is", which names its kind. Only known kinds come
back, and every node of a map checks its own parts.
"""

from __future__ import annotations

import base64
import inspect
import math
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bins.partitions import Cells, EqualSizeBins, LabelBins
from ..bins.sums import BinSums
from ..exceptions import DamagedFileError, InvalidInputError
from ..maps import KINDS, Node, in_order
from ..maps.conformal import ConformalScores
from ..maps.laws import StudentLaw
from ..scaling.registry import scaler_named

if TYPE_CHECKING:
    from ..scaling import VarianceScaler

_PARTS: dict[str, type[Any]] = {
    each.__name__: each
    for each in (BinSums, Cells, ConformalScores, EqualSizeBins, LabelBins, StudentLaw)
}
_DTYPES = {"f": np.float64, "i": np.int64, "b": np.bool_}
_NUMBERS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
# What a fitted recalibrator has beside its parameters and is written elsewhere.
_ELSEWHERE = (
    *("map_", "conformal_", "min_uncertainty_", "n_samples_fit_"),
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
        elsewhere = _ELSEWHERE if outermost else ()
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


class Decoder:
    """Returns what :class:`Encoder` was given, or refuses."""

    def __init__(self, root: Node | None) -> None:
        self._root = root

    def __call__(self, value: Any) -> Any:
        """Return the value that terms of JSON stand for."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, list):
            return [self(each) for each in value]
        kind = value.get("is")
        if kind == "number":
            return _NUMBERS[value["value"]]
        if kind in ("tuple", "set"):
            items = [self(each) for each in value["items"]]
            return tuple(items) if kind == "tuple" else set(items)
        if kind == "dict":
            return {self(key): self(each) for key, each in value["items"]}
        if kind == "array":
            return self._array(value)
        if kind == "strings":
            strings = np.array([str(each) for each in value["values"]], dtype=str)
            return strings.reshape(value["shape"])
        if kind == "the map" and self._root is not None:
            return self._root
        if kind == "map":
            return self.nodes(value["nodes"])
        if kind in _PARTS:
            parts = {k: self(v) for k, v in value["fields"].items()}
            # a missing label is a label, but nothing else may be missing
            if kind != "LabelBins" and any(_has_nan(each) for each in parts.values()):
                msg = "it holds a number that is not one (NaN)."
                raise DamagedFileError(msg)
            return _PARTS[kind](**parts)
        cls = scaler_named(kind) if isinstance(kind, str) else None
        if cls is not None:
            return self._scaler(cls, value)
        msg = f"it holds a {kind!r}, which this library does not know."
        raise DamagedFileError(msg)

    def nodes(self, listed: Any) -> Node:
        """Return the map whose nodes are listed, the last of which is its root."""
        nodes: list[Node] = []
        for number, entry in enumerate(listed):
            kind = KINDS.get(entry.get("is"))
            if kind is None:
                msg = f"node {number} is a {entry.get('is')!r}, which is not known."
                raise DamagedFileError(msg)
            names = [each.name for each in fields(kind)]  # type: ignore[arg-type]
            if set(entry) != {"is", *names}:
                wrong = ", ".join(sorted(set(entry) ^ {"is", *names}))
                msg = f"parts of node {number} are missing or unknown: {wrong}."
                raise DamagedFileError(msg)
            parts = {name: self._part(kind, name, entry[name], nodes) for name in names}
            try:
                nodes.append(kind(**parts))
            except (InvalidInputError, TypeError, ValueError, AttributeError) as why:
                msg = f"node {number}, a {entry['is']}, is not sound ({why})."
                raise DamagedFileError(msg) from why
        if not nodes:
            msg = "the map has no nodes."
            raise DamagedFileError(msg)
        return nodes[-1]

    def _part(
        self, kind: type[Node], name: str, value: Any, nodes: Sequence[Node]
    ) -> Any:
        """Return a field of a node; inputs are among the nodes before it."""

        def earlier(place: Any) -> Node:
            if type(place) is not int or not 0 <= place < len(nodes):
                msg = f"node {len(nodes)} has no node {place!r} before it."
                raise DamagedFileError(msg)
            return nodes[place]

        if name in kind.input_fields and value is not None:
            many = isinstance(value, list)
            return tuple(map(earlier, value)) if many else earlier(value)
        return self(value)

    def _array(self, value: dict[str, Any]) -> np.ndarray[Any, Any]:
        shape = tuple(int(size) for size in value["shape"])
        if value["dtype"] == "b":
            packed = np.frombuffer(base64.b64decode(value["values"]), dtype=np.uint8)
            flat = np.unpackbits(packed, count=math.prod(shape)).astype(bool)
        else:
            numbers = [self(each) for each in value["values"]]
            flat = np.array(numbers, dtype=_DTYPES[value["dtype"]])
        return flat.reshape(shape)

    def _scaler(self, cls: type[VarianceScaler], value: dict[str, Any]) -> Any:
        parameters = {k: self(v) for k, v in value["parameters"].items()}
        known = set(inspect.signature(cls).parameters)
        if set(parameters) != known:
            wrong = ", ".join(sorted(set(parameters) ^ known))
            msg = f"parameters of {cls.__name__} are missing or unknown: {wrong}."
            raise DamagedFileError(msg)
        scaler = cls(**parameters)
        for name, learned in value["learned"].items():
            if not name.isidentifier() or name.startswith("__") or hasattr(cls, name):
                msg = f"{name!r} is not something that {cls.__name__} learns."
                raise DamagedFileError(msg)
            value_learned = self(learned)
            if _has_nan(value_learned):
                msg = f"{name!r} holds a number that is not one (NaN)."
                raise DamagedFileError(msg)
            setattr(scaler, name, value_learned)
        return scaler


def _has_nan(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return bool(value.dtype.kind == "f" and np.isnan(value).any())
    return isinstance(value, float) and math.isnan(value)
