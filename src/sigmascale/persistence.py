"""Recalibrators to and from JSON: text that runs no code when it is loaded.

A file holds the format and its version, a summary of the training set, the class, its
parameters, what it learned, and a checksum of these. Loading checks all of it: only
known classes, parameters and types are accepted, numbers must be numbers, and the
loaded recalibrator must predict. Floating-point numbers are written so that they come
back bit for bit, and nothing depends on the date, so that the same fit gives the same
file.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ._support.files import write_text
from ._support.tables import Table, default_names
from ._support.version import __version__
from .bins.partitions import Cells, EqualSizeBins, Groups
from .bins.sums import BinSums
from .exceptions import DamagedFileError, InvalidInputError
from .maps.conformal import ConformalScores
from .scaling import SCALERS, VarianceScaler
from .scaling.trees import LabelCodes, NumberCodes, Tree

FORMAT = "sigmascale recalibrator"
VERSION = 1
_KEYS = {"format", "version", "library", "sha256", "training", "recalibrator"}
LARGEST_FILE = 256 * 2**20  # bytes; the largest sensible model has a few

_CLASSES: dict[str, type[VarianceScaler]] = {each.__name__: each for each in SCALERS}
_PARTS: dict[str, type[Any]] = {
    each.__name__: each
    for each in (
        BinSums,
        Cells,
        ConformalScores,
        EqualSizeBins,
        Groups,
        LabelCodes,
        NumberCodes,
        Tree,
    )
}
_DTYPES = {"f": np.float64, "i": np.int64, "b": np.bool_}
_NUMBERS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def save(scaler: VarianceScaler, path: str | Path, *, source: Any = None) -> None:
    """Write a fitted recalibrator to a JSON file, whole or not at all.

    Parameters
    ----------
    scaler : recalibrator
        A fitted one.
    path : str or Path
        Where to write; an existing file is replaced.
    source : dict, optional
        What is known about the file it was fitted on, in terms of JSON; see
        `load_with_source`.

    Examples
    --------
    >>> import tempfile
    >>> import sigmascale as ss
    >>> path = Path(tempfile.mkdtemp()) / "scaler.json"
    >>> save(ss.TemperatureScaling().fit([1.0, 2.0], [2.0, 4.0]), path)
    >>> load(path).predict([3.0])
    array([6.])
    """
    write_text(Path(path), dumps(scaler, source))


def load(path: str | Path) -> VarianceScaler:
    """Read a recalibrator that :func:`save` wrote; nothing in the file is executed.

    Parameters
    ----------
    path : str or Path
        A file written by :func:`save`.

    Returns
    -------
    recalibrator
        It predicts bit for bit what the saved one did.
    """
    return load_with_source(path)[0]


def load_with_source(path: str | Path) -> tuple[VarianceScaler, Any]:
    """Return a saved recalibrator, and the `source` it was saved with."""
    path = Path(path)
    size = path.stat().st_size
    if size > LARGEST_FILE:
        msg = f"{path} is not a recalibrator: it has {size} bytes, too many for one."
        raise DamagedFileError(msg)
    try:
        return _loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as problem:
        msg = f"{path} is not a recalibrator: it is not text. Was it made by `save`?"
        raise DamagedFileError(msg) from problem
    except DamagedFileError as problem:
        msg = f"{path}: {problem}"
        raise DamagedFileError(msg) from problem


def dumps(scaler: VarianceScaler, source: Any = None) -> str:
    """Return a fitted recalibrator as JSON text."""
    name = type(scaler).__name__
    if _CLASSES.get(name) is not type(scaler):
        msg = f"`scaler` must be a recalibrator of this library; found {name}."
        raise InvalidInputError(msg)
    if not hasattr(scaler, "min_uncertainty_"):
        msg = f"`scaler` must be fitted before it is saved; this {name} is not."
        raise InvalidInputError(msg)
    columns = getattr(scaler, "feature_names_in_", None)
    content = {
        "training": {
            "rows": scaler.n_samples_fit_,
            "columns": None if columns is None else [str(name) for name in columns],
            "source": source,
        },
        "recalibrator": _encode(scaler),
    }
    document = {
        "format": FORMAT,
        "version": VERSION,
        "library": __version__,
        "sha256": _checksum(content),
        **content,
    }
    return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def loads(text: str) -> VarianceScaler:
    """Return the recalibrator that :func:`dumps` wrote as text."""
    return _loads(text)[0]


def _loads(text: str) -> tuple[VarianceScaler, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as problem:
        msg = f"this is not a whole JSON file of a recalibrator ({problem})."
        raise DamagedFileError(msg) from problem
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        msg = f'this is not a file of a recalibrator: "format" is not "{FORMAT}".'
        raise DamagedFileError(msg)
    if document.get("version") != VERSION:
        msg = (
            f"the format's version is {document.get('version')!r}; this library reads "
            f"version {VERSION}. Use the release of sigmascale that wrote the file."
        )
        raise DamagedFileError(msg)
    if set(document) != _KEYS:
        wrong = ", ".join(sorted(set(document) ^ _KEYS))
        msg = f"parts of the file are missing or unknown: {wrong}."
        raise DamagedFileError(msg)
    content = {name: document[name] for name in ("training", "recalibrator")}
    try:
        checksum = _checksum(content)
    except RecursionError as problem:
        msg = "it is nested too deeply for a recalibrator."
        raise DamagedFileError(msg) from problem
    if checksum != document["sha256"]:
        msg = "the checksum does not fit: the file was changed or damaged."
        raise DamagedFileError(msg)
    try:
        scaler: VarianceScaler = _decode(document["recalibrator"])
        _probe(scaler)
        source = document["training"]["source"]
    except DamagedFileError:
        raise
    except Exception as problem:
        msg = f"what was learned does not fit together ({problem})."
        raise DamagedFileError(msg) from problem
    return scaler, source


def _checksum(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _encode(value: Any) -> Any:
    """Return `value` in terms of JSON; what is not plain is an object with "is"."""
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
        return _encode_array(value)
    if isinstance(value, list):
        return [_encode(each) for each in value]
    if isinstance(value, (tuple, set)):
        items = sorted(value) if isinstance(value, set) else value
        kind = "set" if isinstance(value, set) else "tuple"
        return {"is": kind, "items": [_encode(each) for each in items]}
    if isinstance(value, dict):
        items = [[_encode(key), _encode(each)] for key, each in value.items()]
        return {"is": "dict", "items": items}
    name = type(value).__name__
    if _CLASSES.get(name) is type(value):
        parameters = value.get_params(deep=False)
        learned = {k: v for k, v in vars(value).items() if k not in parameters}
        return {
            "is": name,
            "parameters": {k: _encode(v) for k, v in sorted(parameters.items())},
            "learned": {k: _encode(v) for k, v in sorted(learned.items())},
        }
    if _PARTS.get(name) is type(value):
        return {"is": name, "fields": {k: _encode(v) for k, v in vars(value).items()}}
    msg = f"a {name} cannot be saved."
    raise InvalidInputError(msg)


def _encode_array(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    shape = list(array.shape)
    if array.dtype.kind in "UO":
        strings = [str(each) for each in array.ravel().tolist()]
        return {"is": "strings", "shape": shape, "values": strings}
    if array.dtype.kind == "b":
        packed = base64.b64encode(np.packbits(array).tobytes()).decode("ascii")
        return {"is": "array", "dtype": "b", "shape": shape, "values": packed}
    kind = "f" if array.dtype.kind == "f" else "i"
    values = [_encode(each) for each in array.ravel().tolist()]
    return {"is": "array", "dtype": kind, "shape": shape, "values": values}


def _decode(value: Any) -> Any:
    """Return what :func:`_encode` was given, or refuse."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [_decode(each) for each in value]
    kind = value.get("is")
    if kind == "number":
        return _NUMBERS[value["value"]]
    if kind in ("tuple", "set"):
        items = [_decode(each) for each in value["items"]]
        return tuple(items) if kind == "tuple" else set(items)
    if kind == "dict":
        return {_decode(key): _decode(each) for key, each in value["items"]}
    if kind == "array":
        return _decode_array(value)
    if kind == "strings":
        strings = np.array([str(each) for each in value["values"]])
        return strings.reshape(value["shape"])
    if kind in _PARTS:
        fields = {k: _decode(v) for k, v in value["fields"].items()}
        # a missing label is a label, but nothing else may be missing
        if kind != "Groups" and any(_has_nan(each) for each in fields.values()):
            msg = "it holds a number that is not one (NaN)."
            raise DamagedFileError(msg)
        return _PARTS[kind](**fields)
    if kind in _CLASSES:
        return _decode_scaler(_CLASSES[kind], value)
    msg = f"it holds a {kind!r}, which this library does not know."
    raise DamagedFileError(msg)


def _has_nan(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return bool(value.dtype.kind == "f" and np.isnan(value).any())
    return isinstance(value, float) and math.isnan(value)


def _decode_array(value: dict[str, Any]) -> np.ndarray[Any, Any]:
    shape = tuple(int(size) for size in value["shape"])
    if value["dtype"] == "b":
        packed = np.frombuffer(base64.b64decode(value["values"]), dtype=np.uint8)
        flat = np.unpackbits(packed, count=math.prod(shape)).astype(bool)
    else:
        numbers = [_decode(each) for each in value["values"]]
        flat = np.array(numbers, dtype=_DTYPES[value["dtype"]])
    return flat.reshape(shape)


def _decode_scaler(cls: type[VarianceScaler], value: dict[str, Any]) -> VarianceScaler:
    parameters = {k: _decode(v) for k, v in value["parameters"].items()}
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
        value_learned = _decode(learned)
        if _has_nan(value_learned):
            msg = f"{name!r} holds a number that is not one (NaN)."
            raise DamagedFileError(msg)
        setattr(scaler, name, value_learned)
    return scaler


def _probe(scaler: Any) -> None:
    """Predict a row, so that parts that do not fit together fail now, not later."""
    if not isinstance(scaler, VarianceScaler):
        msg = "it holds no recalibrator."
        raise DamagedFileError(msg)
    smallest = float(scaler.min_uncertainty_)
    if not 0 < smallest < math.inf:
        msg = f"its smallest uncertainty is {smallest!r}."
        raise DamagedFileError(msg)
    u = np.array([smallest, 2 * smallest])
    features = [np.zeros(2) for _ in range(int(scaler.n_features_in_) - 1)]
    names = getattr(scaler, "feature_names_in_", None)
    if names is None:
        names = default_names(1 + len(features))
    table = Table((u, *features), tuple(str(name) for name in names))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = scaler._predict_checked(table, u)
    if (
        predicted.shape != u.shape
        or not (np.isfinite(predicted) & (predicted > 0)).all()
    ):
        msg = "it does not predict positive numbers."
        raise DamagedFileError(msg)
    learned = vars(scaler)
    if "conformal_" in learned:
        scores = learned["conformal_"]
        if not (isinstance(scores, ConformalScores) and scores.is_sound):
            msg = "the z-scores of its prediction intervals are not whole or sorted."
            raise DamagedFileError(msg)
