"""Files of what was learned: one strict form of JSON, and nothing in it is ever run.

A class says with :func:`stored` what it is made of: a name and a *kind* for each part.
A kind is a function that returns a part as it was, or refuses it; kinds are given, and
not read from annotations. A file is read only if it has exactly these parts, each of
its kind, with finite numbers and sizes that fit, and if each object says in `check`
that its parts fit together.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

import numpy as np

from .._support.checks import EXACT, Floats, Ints
from .._support.files import parse_json, write_text
from .._support.text import quoted, shorten
from .._support.version import __version__
from ..exceptions import DamagedFileError, InvalidInputError

if TYPE_CHECKING:
    from .recalibrator import Recalibrator

Kind = Any  # a function that returns a part or refuses it, or a class with parts
_Class = TypeVar("_Class", bound=type[Any])
_Saved = TypeVar("_Saved")
_Parts = dict[str, Any]  # of an object, in terms of JSON

FORMAT = "sigmascale"
VERSION = 1  # of the format; the first release has 1
# What makes parts of an older version those of the next one, by the name of the class:
# {1: {"Additive": lambda parts: parts | {"most": None}}}, and VERSION is 2.
CONVERSIONS: dict[int, dict[str, Callable[[_Parts], _Parts]]] = {}
HEAD = 200  # bytes that are looked at before a file is parsed
_BEGINNING = re.compile(rb'\s*{\s*"(format|version|library|sha256|extra|content)"')
LARGEST_FILE = 2**28  # bytes
LARGEST_NUMBER = 1e150  # what is learned of values within their limits is smaller
MOST_DIMENSIONS = 32  # of an array, in all versions of NumPy
# Classes that a file can be of, and where they are.
_ROOTS = {
    "Recalibrator": "recalibration.recalibrator",
    "Monitor": "monitoring",
    "Follower": "monitoring",
}
_PLAIN = (type(None), bool, int, float, str)


def refuse(words: str) -> NoReturn:
    """Refuse a file."""
    raise DamagedFileError(words, "damaged")


def refuse_if(condition: Any, words: str) -> None:
    """Refuse parts that do not fit together, in a method `check`."""
    if condition:
        msg = f"{words}."
        raise InvalidInputError(msg)


# -- kinds -----------------------------------------------------------------------------


def number(value: Any) -> float:
    """Return a number; none is larger than what can be learned, or inexact."""
    if type(value) is int and abs(value) <= EXACT:
        value = float(value)
    if type(value) is not float or not abs(value) <= LARGEST_NUMBER:
        refuse(
            f"there must be a number of at most {LARGEST_NUMBER:g}; "
            f"found {quoted(value)}."
        )
    return value


def index(value: Any) -> int:
    """Return a whole number of at least 0."""
    if type(value) is not int or not 0 <= value <= EXACT:
        refuse(f"there must be a whole number; found {quoted(value)}.")
    return value


def text(value: Any) -> str:
    """Return text."""
    if type(value) is not str:
        refuse(f"there must be text; found {quoted(value)}.")
    return value


def flag(value: Any) -> bool:
    """Return true or false."""
    if type(value) is not bool:
        refuse(f"there must be true or false; found {quoted(value)}.")
    return value


def plain(value: Any) -> Any:
    """Return what JSON has; lists come back as tuples."""
    if isinstance(value, list):
        return tuple(plain(item) for item in value)
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return number(value) if type(value) is float else value


def floats(value: Any) -> Floats:
    """Return an array of numbers."""
    values, shape = _array(value)
    if not {type(item) for item in values} <= {float, int}:
        refuse("an array must hold numbers, and nothing else.")
    array = np.array(values, dtype=np.float64)
    if not (np.abs(array) <= EXACT).all():  # seldom: then one by one
        for item in values:
            number(item)
    return array.reshape(shape)


def integers(value: Any) -> Ints:
    """Return an array of whole numbers."""
    values, shape = _array(value)
    if not {type(item) for item in values} <= {int}:
        refuse("an array must hold whole numbers, and nothing else.")
    if values and max(map(abs, values)) > EXACT:
        refuse("an array holds a whole number that is too large.")
    return np.array(values, dtype=np.int64).reshape(shape)


def _array(value: Any) -> tuple[list[Any], tuple[int, ...]]:
    """Return the values and the shape of an array; one of one dimension is a list."""
    values = value
    shape = None
    if isinstance(value, dict) and set(value) == {"shape", "values"}:
        values = value["values"]
        shape = many(index)(value["shape"])
    if not isinstance(values, list):
        refuse(f"there must be an array; found {quoted(values)}.")
    if shape is None:
        shape = (len(values),)
    if len(shape) > MOST_DIMENSIONS or len(values) != math.prod(shape):
        refuse(f"an array of {len(values)} values has the shape {quoted(shape)}.")
    return values, shape


def many(kind: Kind) -> Kind:
    """Return the kind of a tuple of parts of one kind."""

    def decode_many(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            refuse(f"there must be a list; found {quoted(value)}.")
        return tuple(decode(kind, item) for item in value)

    return decode_many


def pair(kind: Kind) -> Kind:
    """Return the kind of two parts of one kind."""

    def decode_pair(value: Any) -> tuple[Any, ...]:
        items: tuple[Any, ...] = many(kind)(value)
        if len(items) != 2:
            refuse(f"there must be two; found {len(items)}.")
        return items

    return decode_pair


def optional(kind: Kind) -> Kind:
    """Return the kind of a part that may be none."""

    def decode_optional(value: Any) -> Any:
        return None if value is None else decode(kind, value)

    return decode_optional


def one_of(*choices: Any) -> Kind:
    """Return the kind of a part that is one of a few words, or none of them."""

    def decode_one(value: Any) -> Any:
        if not isinstance(value, (str, type(None))) or value not in choices:
            refuse(f"there must be one of {quoted(choices)}; found {quoted(value)}.")
        return value

    return decode_one


def by_name(kind: Kind) -> Kind:
    """Return the kind of a dict of parts of one kind."""

    def decode_by_name(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            refuse(f"there must be names with values; found {quoted(value)}.")
        return {name: decode(kind, item) for name, item in value.items()}

    return decode_by_name


# -- objects ---------------------------------------------------------------------------


def stored(**parts: Kind) -> Callable[[_Class], _Class]:
    """Say what a class is made of, so that it can be written to files.

    An object of the class has attributes of these names, and can be made of them; or it
    has methods `to_state`, which returns a dict of them, and `from_state`, a class
    method which takes one. If it has a method `check`, that refuses parts which do not
    fit together, with InvalidInputError.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @stored(name=text, sizes=floats)
    ... @dataclass(frozen=True)
    ... class Box:
    ...     name: str
    ...     sizes: Floats
    >>> encode(Box("a", np.array([1.0, 2.0])))
    {'is': 'Box', 'name': 'a', 'sizes': [1.0, 2.0]}
    >>> decode(Box, {"is": "Box", "name": "a", "sizes": [1.0, "b"]})
    Traceback (most recent call last):
    sigmascale.exceptions.DamagedFileError: Box, 'sizes': an array must hold numbers, \
and nothing else.
    """

    def register(cls: _Class) -> _Class:
        cls.stored_parts = parts
        return cls

    return register


def encode(value: Any) -> Any:
    """Return a value in terms of JSON."""
    # numbers and text
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not abs(value) <= LARGEST_NUMBER:
        msg = f"{value} cannot be saved: numbers in files must be finite."
        raise InvalidInputError(msg)
    if isinstance(value, _PLAIN):
        return value

    # what holds several
    if isinstance(value, np.ndarray):
        values = value.ravel().tolist()
        if value.dtype.kind != "f" or not (np.abs(value) <= LARGEST_NUMBER).all():
            values = [encode(item) for item in values]
        if value.ndim == 1:
            return values
        return {"shape": [*value.shape], "values": values}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: encode(item) for name, item in value.items()}

    # objects of classes that say what they are made of
    parts = getattr(type(value), "stored_parts", None)
    if parts is None:
        msg = f"a {type(value).__name__} cannot be saved."
        raise InvalidInputError(msg)
    if hasattr(value, "to_state"):
        state = value.to_state()
    else:
        state = {name: getattr(value, name) for name in parts}
    encoded = {"is": type(value).__name__}
    for name, part in state.items():
        encoded[name] = encode(part)
    return encoded


def decode(kind: Kind, value: Any) -> Any:
    """Return the part of a kind, or the object of a class, that JSON stands for."""
    if not isinstance(kind, type):
        return kind(value)

    # a class: exactly its parts, each of its kind
    class_name = kind.__name__
    kinds = kind.stored_parts  # type: ignore[attr-defined]
    if not isinstance(value, dict) or value.get("is") != class_name:
        refuse(f"there must be a {class_name}; found {quoted(value)}.")
    unlike = value.keys() ^ {"is", *kinds}
    if unlike:
        words = shorten(", ".join(sorted(unlike)))
        refuse(f"parts of a {class_name} are missing or unknown: {words}.")
    parts = {}
    for name, kind_of_part in kinds.items():
        try:
            parts[name] = decode(kind_of_part, value[name])
        except DamagedFileError as problem:
            refuse(f"{class_name}, {quoted(name)}: {problem}")

    # the object, whose parts must fit together
    make = getattr(kind, "from_state", None)
    decoded = kind(**parts) if make is None else make(parts)
    if hasattr(decoded, "check"):
        try:
            decoded.check()
        except InvalidInputError as problem:
            refuse(f"{class_name}: {problem}")
    return decoded


# -- files -----------------------------------------------------------------------------


def dumps(value: Any, extra: dict[str, Any] | None = None) -> str:
    """Return a fitted Recalibrator, a Monitor or a Follower as JSON text.

    Parameters
    ----------
    value : Recalibrator, Monitor or Follower
        What is written.
    extra : dict, optional
        What else the file shall hold, in terms of JSON.
    """
    if type(value).__name__ not in _ROOTS:
        msg = (
            "what is saved must be a fitted Recalibrator, a Monitor or a Follower; "
            f"found {type(value).__name__}."
        )
        raise InvalidInputError(msg)
    content = {"extra": encode(extra or {}), "content": encode(value)}
    header = {"format": FORMAT, "version": VERSION, "library": __version__}
    document = {**header, "sha256": _checksum(content), **content}
    return json.dumps(document, allow_nan=False, ensure_ascii=False) + "\n"


def loads(text: str | bytes) -> tuple[Any, dict[str, Any]]:
    """Return what :func:`dumps` was given: the object, and what else there was."""
    # a file of ours, of a known version, that nobody has changed; others are not parsed
    head = text[:HEAD].encode() if isinstance(text, str) else text[:HEAD]
    if not _BEGINNING.match(head):
        refuse("it is not a file of a recalibrator, a monitor or a follower.")
    document = parse_json(text)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        refuse("it is not a file of a recalibrator, a monitor or a follower.")
    version = document.get("version")
    if type(version) is int and version > VERSION:
        refuse(
            f"it has format {quoted(version)}, which a newer sigmascale "
            f"({quoted(document.get('library'))}) has written; this is {__version__}. "
            "Update it: pip install --upgrade sigmascale"
        )
    if type(version) is not int or version not in {*CONVERSIONS, VERSION}:
        refuse(
            f"it has format {quoted(version)}, which is not known. Fit and save it "
            "again."
        )
    names = {"format", "version", "library", "sha256", "extra", "content"}
    if document.keys() != names or not isinstance(document["content"], dict):
        refuse("parts of the file are missing or unknown.")
    content = {name: document[name] for name in ("extra", "content")}
    if _checksum(content) != document["sha256"]:
        refuse("the checksum does not fit: the file was changed or damaged.")

    # the object in it, whose parts are made those of this version
    name = document["content"].get("is")
    if not isinstance(name, str) or name not in _ROOTS:
        refuse(f"it holds a {quoted(name)}, which is not known.")
    cls = getattr(import_module(f"sigmascale.{_ROOTS[name]}"), name)
    try:
        parts = document["content"]
        for older in range(version, VERSION):
            parts = _converted(parts, CONVERSIONS[older])
        return decode(cls, parts), by_name(plain)(document["extra"])
    except (DamagedFileError, MemoryError):
        raise
    except Exception as problem:  # whatever it is, it comes from the file
        words = shorten(str(problem) or type(problem).__name__)
        msg = f"its parts do not fit together ({words})."
        raise DamagedFileError(msg, "damaged") from problem


def _converted(value: Any, conversions: dict[str, Callable[[_Parts], _Parts]]) -> Any:
    """Return a part of a file in the next version of the format."""
    if isinstance(value, list):
        return [_converted(item, conversions) for item in value]
    if not isinstance(value, dict):
        return value
    parts = {name: _converted(part, conversions) for name, part in value.items()}
    convert = conversions.get(str(parts.get("is")))
    return parts if convert is None else convert(parts)


def save(value: Any, path: str | Path, extra: dict[str, Any] | None = None) -> None:
    """Write a Recalibrator, a Monitor or a Follower to a file, whole or not at all."""
    write_text(Path(path), dumps(value, extra))


@overload
def load(path: str | Path) -> Recalibrator: ...
@overload
def load(path: str | Path, *, kind: type[_Saved]) -> _Saved: ...
def load(path: str | Path, *, kind: Any = None) -> Any:
    """Read a recalibrator, a monitor or a follower; nothing in the file is executed.

    Parameters
    ----------
    path : str or Path
        A file written by `save`, of this version or an older one.
    kind : type, default Recalibrator
        What it holds: Recalibrator, Monitor or Follower. Other files are refused.

    Returns
    -------
    Recalibrator, or what `kind` is
        It gives bit for bit what the saved one did.

    Examples
    --------
    >>> import tempfile
    >>> import sigmascale as ss
    >>> data = ss.datasets.make_molecules(200, seed=1).predictions
    >>> r = ss.Recalibrator(ss.TemperatureScaling()).fit(data)
    >>> path = Path(tempfile.mkdtemp()) / "r.json"
    >>> r.save(path)
    >>> bool((ss.load(path).predict(data) == r.predict(data)).all())
    True
    """
    from .recalibrator import Recalibrator

    return load_with_extra(path, kind or Recalibrator)[0]


def load_with_extra(
    path: str | Path, kind: type[_Saved]
) -> tuple[_Saved, dict[str, Any]]:
    """Read an object of some kind, and what else was saved with it."""
    size = Path(path).stat().st_size
    if size > LARGEST_FILE:
        refuse(f"{path}: it has {size} bytes, too many for a file of this library.")
    try:
        value, extra = loads(Path(path).read_bytes())
    except DamagedFileError as problem:
        msg = f"{path}: {problem}"
        raise DamagedFileError(msg, problem.code, **problem.fields) from problem
    if not isinstance(value, kind):
        found = type(value).__name__
        msg = (
            f"{path}: it holds a {found}, and no {kind.__name__}. Name another file; "
            f"in Python, `kind=ss.{found}` reads it."
        )
        raise InvalidInputError(msg, "kind")
    return value, extra


def checksum(value: Any) -> str:
    """Return the SHA-256 of what a file of an object holds, whoever wrote it."""
    return _checksum({"extra": {}, "content": encode(value)})


def _checksum(content: dict[str, Any]) -> str:
    """Return the SHA-256 of what a file holds, however JSON was laid out."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
