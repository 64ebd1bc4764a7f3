"""One codec: dataclasses, estimators and their parts in terms of JSON, and back.

What is not plain is an object with "is", which names its kind. A dataclass is written
field by field, and comes back only if it has exactly its fields, each of the type that
its class declares, and if it says of itself that it is sound. Nodes of maps are written
once, in one list, and what uses a node names its place there. Nothing else is known,
and nothing in a file is ever run.
"""

from __future__ import annotations

import base64
import inspect
import math
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from textwrap import shorten
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

import numpy as np

from ..bins.partitions import Cells, EqualSizeBins, LabelBins
from ..bins.sums import BinSums
from ..exceptions import DamagedFileError, InvalidInputError
from ..maps import KINDS, Node
from ..maps.conformal import ConformalScores
from ..maps.laws import EmpiricalLaw, NormalLaw, QuantileTable
from ..maps.ranges import check_node
from ..oddities import Profile
from ..scaling.registry import scaler_named

PARTS: tuple[type, ...] = (
    *(BinSums, Cells, ConformalScores, EmpiricalLaw, EqualSizeBins, LabelBins),
    *(NormalLaw, Profile, QuantileTable),
)
_DTYPES = {"f": np.float64, "i": np.int64, "b": np.bool_, "O": np.object_}
_ALLOWED = {"f": (int, float), "i": (int,), "O": (str,)}
_NUMBERS = {"inf": math.inf, "-inf": -math.inf}
_PLAIN = (type(None), bool, int, float, str)
_LONGEST_MESSAGE = 300


def refuse(msg: str) -> NoReturn:
    """Refuse a file; of what is in it, a message shows so much as can be read."""
    raise DamagedFileError(shorten(msg, _LONGEST_MESSAGE, placeholder=" ..."))


@contextmanager
def place(name: str = "it") -> Iterator[None]:
    """Say where in a file something is that cannot be used."""
    try:
        yield
    except MemoryError:
        raise
    except InvalidInputError as problem:
        where = "" if name == "it" else f"{name}: "
        words = shorten(f"{where}{problem}", _LONGEST_MESSAGE, placeholder=" ...")
        raise DamagedFileError(words) from problem
    except Exception as problem:
        words = shorten(str(problem) or type(problem).__name__, 200, placeholder=" ...")
        msg = f"{name} does not fit together ({words})."
        raise DamagedFileError(msg) from problem


def estimator_named(name: str) -> type[Any] | None:
    """Return the recalibrator, or the class of several targets, of that name."""
    if name in ("RecalibratedTargets", "TargetScaling"):
        from ..targets import recalibrated

        found: type[Any] = getattr(recalibrated, name)
        return found
    if name == "Recalibrator":
        from ..recalibrator import Recalibrator

        return Recalibrator
    return scaler_named(name)


class Encoder:
    """Turns values into terms of JSON.

    Parameters
    ----------
    parts : list of type
        Dataclasses that are known beside those of recalibrators.

    Attributes
    ----------
    nodes : list of dict
        The nodes of all maps so far, each after its inputs.
    """

    def __init__(self, parts: Iterable[type] = ()) -> None:
        self.nodes: list[dict[str, Any]] = []
        self._parts = (*PARTS, *parts)
        self._places: dict[int, int] = {}

    def __call__(self, value: Any) -> Any:
        """Return a value in terms of JSON."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            return {"is": "number", "value": repr(value)}
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, list):
            return [self(each) for each in value]
        if isinstance(value, tuple):
            return {"is": "tuple", "items": [self(each) for each in value]}
        if isinstance(value, dict):
            pairs = [[self(key), self(each)] for key, each in value.items()]
            return {"is": "dict", "items": pairs}
        if isinstance(value, Node):
            if id(value) not in self._places:
                self.nodes.append(self._fields(value))  # after its inputs
                self._places[id(value)] = len(self.nodes) - 1
            return {"is": "node", "number": self._places[id(value)]}
        if type(value) in self._parts:
            return self._fields(value)
        if estimator_named(type(value).__name__) is type(value):
            return self._estimator(value)
        msg = f"a {type(value).__name__} cannot be saved."
        raise InvalidInputError(msg)

    def _fields(self, value: Any) -> dict[str, Any]:
        parts = {each.name: self(getattr(value, each.name)) for each in fields(value)}
        return {"is": type(value).__name__, **parts}

    def _estimator(self, value: Any) -> dict[str, Any]:
        """Return the class of an estimator, its parameters and what it learned."""
        parameters = value.get_params(deep=False)
        learned = {k: v for k, v in vars(value).items() if k not in parameters}
        return {
            "is": type(value).__name__,
            "words": value.describe() if learned else None,
            "parameters": {k: self(v) for k, v in sorted(parameters.items())},
            "learned": {k: self(v) for k, v in sorted(learned.items())},
        }

    def _array(self, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        kind = array.dtype.kind.replace("U", "O").replace("u", "i")
        values: Any = [self(each) for each in array.ravel().tolist()]
        if kind == "b":
            values = base64.b64encode(np.packbits(array).tobytes()).decode("ascii")
        return {"is": "array", "dtype": kind, "shape": [*array.shape], "values": values}


class Decoder:
    """Returns what :class:`Encoder` was given, or refuses.

    Parameters
    ----------
    nodes : list of dict
        The nodes of all maps.
    parts : list of type
        Dataclasses that are known beside those of recalibrators.
    check : callable, optional
        Is called with each estimator and its words, and refuses those that nobody fits.
    """

    def __init__(
        self,
        nodes: Any = (),
        parts: Iterable[type] = (),
        check: Callable[[Any, Any], None] | None = None,
    ) -> None:
        self._parts = {each.__name__: each for each in (*PARTS, *parts)}
        self._check = check
        self._nodes: list[Node] = []
        for number, entry in enumerate(nodes):
            with place(f"node {number}"):
                kind = KINDS.get(entry["is"])
                if kind is None:
                    refuse(f"it is a {entry['is']!r}, which is not known.")
                with place(f"a {entry['is']}"):
                    self._nodes.append(self._fields(kind, entry))

    def __call__(self, value: Any) -> Any:
        """Return the value that terms of JSON stand for."""
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, list):
            return [self(each) for each in value]
        kind = value.get("is")
        if kind == "number":
            return _number(value)
        if kind == "tuple":
            return tuple([self(each) for each in value["items"]])
        if kind == "dict":
            return dict(map(self._pair, value["items"]))
        if kind == "array":
            return _array(value)
        if kind == "node":
            return self._node(value["number"])
        if isinstance(kind, str) and kind in self._parts:
            return self._fields(self._parts[kind], value)
        cls = estimator_named(kind) if isinstance(kind, str) else None
        if cls is None:
            refuse(f"it holds a {kind!r}, which this library does not know.")
        return self._estimator(cls, value)

    def _pair(self, pair: Any) -> tuple[Any, Any]:
        key, value = pair
        with place(repr(key)):
            return self(key), self(value)

    def _node(self, number: Any) -> Node:
        if type(number) is not int or not 0 <= number < len(self._nodes):
            refuse(f"there is no node {number!r} before it.")
        return self._nodes[number]

    def _fields(self, cls: type[Any], entry: dict[str, Any]) -> Any:
        return construct(
            cls, {name: self(part) for name, part in entry.items() if name != "is"}
        )

    def _estimator(self, cls: type[Any], entry: dict[str, Any]) -> Any:
        name = cls.__name__
        require_names(name, entry, {"is", "words", "parameters", "learned"})
        parameters = {}
        for key, value in entry["parameters"].items():
            with place(f"the parameter {key!r}"):
                parameters[key] = self(value)
        known = set(inspect.signature(cls).parameters)
        require_names(f"the parameters of {name}", parameters, known)
        found = cls(**parameters)
        for key, value in entry["learned"].items():
            taken = key in parameters or hasattr(cls, key)
            if taken or not key.isidentifier() or key.startswith("__"):
                refuse(f"{key!r} is not something that {name} learns.")
            with place(f"what was learned, {key!r}"):
                setattr(found, key, self(value))
        if self._check is not None and entry["learned"]:
            with place(f"the {name}"):
                self._check(found, entry["words"])
        return found


def construct(cls: type[Any], parts: dict[str, Any]) -> Any:
    """Return a dataclass of these fields; refuse what it does not declare.

    >>> construct(LabelBins, {"labels": ("a", "b"), "rare": ()}).n_bins
    3
    >>> construct(LabelBins, {"labels": "ab", "rare": ()})
    Traceback (most recent call last):
    sigmascale.exceptions.DamagedFileError: 'labels' of LabelBins must be tuple[str | \
int | float | None, ...]; found a str.
    """
    name, declared = cls.__name__, _declared(cls)  # type: ignore[arg-type]
    require_names(name, parts, set(declared))
    for key, hint in declared.items():
        if not _fits(parts[key], hint):
            found = type(parts[key]).__name__
            refuse(f"{key!r} of {name} must be {_called(hint)}; found a {found}.")
    made = cls(**parts)
    if isinstance(made, Node):
        check_node(made)
    if not getattr(made, "is_sound", True):
        refuse(f"its {name} are not whole, sorted and finite.")
    return made


@cache
def _declared(cls: type[Any]) -> dict[str, Any]:
    """Return the type of each field of a dataclass."""
    hints = get_type_hints(cls)
    return {each.name: hints[each.name] for each in fields(cls)}


def require_names(name: str, found: Any, wanted: set[str]) -> None:
    """Refuse parts that are missing, or that nobody knows."""
    if set(found) != wanted:
        wrong = ", ".join(sorted(set(found) ^ wanted))
        refuse(f"parts of {name} are missing or unknown: {wrong}.")


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of the type that is declared."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if hint is float:  # a whole number that float64 does not hold is none
        return type(value) is float or (type(value) is int and abs(value) <= 2**53)
    if origin in (Union, types.UnionType):
        return any(_fits(value, each) for each in inside)
    if origin is Literal:
        return value in inside
    if origin is tuple:
        items = value if isinstance(value, tuple) else [...]
        if inside[-1] is Ellipsis:
            return isinstance(value, tuple) and all(_fits(x, inside[0]) for x in items)
        return len(items) == len(inside) and all(map(_fits, items, inside))
    if origin is list:
        return isinstance(value, list) and all(_fits(each, inside[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            _fits(key, inside[0]) and _fits(each, inside[1])
            for key, each in value.items()
        )
    if origin is np.ndarray:
        (dtype,) = get_args(inside[1])
        return isinstance(value, np.ndarray) and dtype in (Any, value.dtype.type)
    if hint in (bool, int, str):
        return type(value) is hint
    return isinstance(value, hint)


def _called(hint: Any) -> str:
    """Return a type as people read it."""
    if get_origin(hint) is np.ndarray:
        (dtype,) = get_args(get_args(hint)[1])
        return "an array" if dtype is Any else f"an array of {dtype.__name__}"
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(map(_called, get_args(hint)))
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)


def _number(value: Any) -> float:
    """Return a number that JSON does not have; NaN is none."""
    if value["value"] not in _NUMBERS:
        refuse(f"it holds a number that is not one ({value['value']}).")
    return _NUMBERS[value["value"]]


def _array(value: dict[str, Any]) -> np.ndarray[Any, Any]:
    kind, shape, values = value["dtype"], value["shape"], value["values"]
    if not isinstance(shape, list) or not all(
        type(length) is int and length >= 0 for length in shape
    ):
        refuse(f"{shape!r} is not the shape of an array.")
    size = math.prod(shape)
    if kind == "b":
        packed = np.frombuffer(base64.b64decode(values, validate=True), np.uint8)
        if packed.size != -(-size // 8):  # or a few bytes would unpack to many
            refuse(f"{packed.size} bytes stand for {size} truth values.")
        return np.unpackbits(packed, count=size).astype(bool).reshape(shape)
    if not isinstance(values, list) or len(values) != size:
        refuse(f"an array has not as many values as its shape {shape}.")
    wrong = {type(each) for each in values}.difference(_ALLOWED[kind])
    if wrong == {dict} and kind == "f":
        values = [_number(each) if type(each) is dict else each for each in values]
    elif wrong:
        names = ", ".join(sorted(each.__name__ for each in wrong))
        refuse(f"an array holds something else than its kind {kind!r} ({names}).")
    return np.array(values, dtype=_DTYPES[kind]).reshape(shape)
