"""Recalibrators to and from JSON: text that runs no code when it is loaded.

A file holds the format and its version, a summary of the calibration set, the map, what
prediction intervals need, the recalibrator in words, its class with parameters and
what else it learned, and a checksum of these. The map is a list of nodes; each names
its inputs by their place in the list, and these come before it. It is all that is
needed to predict: :func:`load_map` reads that, and :func:`load` the recalibrator, too.

Loading checks all of it: only known classes, parameters and types are accepted, every
node checks its own parts, and the map must predict. Floating-point numbers are written
so that they come back bit for bit, and nothing depends on the date, so that the same
fit gives the same file.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.checks import Floats
from .._support.files import write_text
from .._support.rows import Rows, default_names
from .._support.version import __version__
from ..exceptions import DamagedFileError, InvalidInputError
from ..maps import Node
from ..maps.conformal import ConformalScores
from ..maps.nodes import columns_of
from ..maps.prediction import recalibrate
from ..scaling.registry import scaler_named
from .coding import Decoder, Encoder

if TYPE_CHECKING:
    from ..scaling import VarianceScaler

FORMAT = "sigmascale recalibrator"
VERSION = 2
_CONTENT = ("calibration", "words", "map", "conformal", "recalibrator")
_KEYS = {"format", "version", "library", "sha256", *_CONTENT}
LARGEST_FILE = 256 * 2**20  # bytes; the largest sensible model has a few


@dataclass(frozen=True)
class SavedMap:
    """What a file says of a recalibrator, without the recalibrator itself.

    Attributes
    ----------
    root : Node
        The map.
    names : tuple of str
        The columns of the conditioning table that it was fitted on.
    named : bool
        Whether the table had such names; otherwise they only count columns.
    smallest_uncertainty : float
        The smallest one seen in `fit`, which stands for those of 0.
    n_rows : int
        Rows that it was fitted on.
    conformal : ConformalScores or None
        What prediction intervals are made from.
    words : str
        What it does, and what it has learned.
    method : str
        The name of its class.
    source : object
        What was known of the file that it was fitted on.
    library : str
        The version of the library that wrote the file.
    """

    root: Node
    names: tuple[str, ...]
    named: bool
    smallest_uncertainty: float
    n_rows: int
    conformal: ConformalScores | None
    words: str
    method: str
    source: Any
    library: str

    def predict(self, rows: Rows) -> Floats:
        """Return the recalibrated uncertainties of rows with the right columns."""
        return recalibrate(self.root, rows, smallest=self.smallest_uncertainty)


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
        :func:`load_map`.

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
    document, saved = _read(path)
    with _about(path):
        return _scaler(document, saved)


def load_map(path: str | Path) -> SavedMap:
    """Read what a file says of a recalibrator; scikit-learn is not needed."""
    return _read(path)[1]


def _read(path: str | Path) -> tuple[dict[str, Any], SavedMap]:
    path = Path(path)
    size = path.stat().st_size
    if size > LARGEST_FILE:
        msg = f"{path} is not a recalibrator: it has {size} bytes, too many for one."
        raise DamagedFileError(msg)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        msg = f"{path} is not a recalibrator: it is not text. Was it made by `save`?"
        raise DamagedFileError(msg) from problem
    with _about(path):
        return _parse(text)


@contextmanager
def _about(path: str | Path) -> Iterator[None]:
    """Put the name of a file in front of what is wrong with it."""
    try:
        yield
    except DamagedFileError as problem:
        msg = f"{path}: {problem}"
        raise DamagedFileError(msg) from problem


def dumps(scaler: VarianceScaler, source: Any = None) -> str:
    """Return a fitted recalibrator as JSON text."""
    name = type(scaler).__name__
    if scaler_named(name) is not type(scaler):
        msg = f"`scaler` must be a registered recalibrator; found {name}."
        raise InvalidInputError(msg)
    if not hasattr(scaler, "map_"):
        msg = f"`scaler` must be fitted before it is saved; this {name} is not."
        raise InvalidInputError(msg)
    columns = getattr(scaler, "feature_names_in_", None)
    encoder = Encoder(scaler.map_)
    content = {
        "calibration": {
            "rows": scaler.n_samples_fit_,
            "n_columns": int(scaler.n_features_in_),
            "columns": None if columns is None else [str(name) for name in columns],
            "smallest_uncertainty": scaler.min_uncertainty_,
            "source": source,
        },
        "words": scaler.describe(),
        "map": encoder.nodes(scaler.map_),
        "conformal": encoder(getattr(scaler, "conformal_", None)),
        "recalibrator": encoder.scaler(scaler),
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
    return _scaler(*_parse(text))


def _parse(text: str) -> tuple[dict[str, Any], SavedMap]:
    """Return the checked document, and the map in it."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as problem:
        msg = f"this is not a whole JSON file of a recalibrator ({problem})."
        raise DamagedFileError(msg) from problem
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        msg = f'this is not a file of a recalibrator: "format" is not "{FORMAT}".'
        raise DamagedFileError(msg)
    if document.get("version") == 1:
        msg = (
            "this file has the format's version 1, of a release before maps, and is "
            "no longer read. Fit the recalibrator again and save it."
        )
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
    try:
        checksum = _checksum({name: document[name] for name in _CONTENT})
    except RecursionError as problem:
        msg = "it is nested too deeply for a recalibrator."
        raise DamagedFileError(msg) from problem
    if checksum != document["sha256"]:
        msg = "the checksum does not fit: the file was changed or damaged."
        raise DamagedFileError(msg)
    try:
        return document, _saved_map(document)
    except DamagedFileError:
        raise
    except Exception as problem:
        msg = f"what was learned does not fit together ({problem})."
        raise DamagedFileError(msg) from problem


def _saved_map(document: dict[str, Any]) -> SavedMap:
    about = document["calibration"]
    decode = Decoder(None)
    named, n_columns = about["columns"] is not None, int(about["n_columns"])
    names = tuple(about["columns"]) if named else default_names(n_columns)
    if len(names) != n_columns or not all(isinstance(name, str) for name in names):
        msg = f"it names {len(names)} columns of {n_columns}."
        raise DamagedFileError(msg)
    saved = SavedMap(
        root=decode.nodes(document["map"]),
        names=names,
        named=named,
        smallest_uncertainty=float(about["smallest_uncertainty"]),
        n_rows=int(about["rows"]),
        conformal=_sound_scores(decode(document["conformal"])),
        words=str(document["words"]),
        method=str(document["recalibrator"]["is"]),
        source=about["source"],
        library=str(document["library"]),
    )
    _probe(saved)
    return saved


def _scaler(document: dict[str, Any], saved: SavedMap) -> VarianceScaler:
    """Return the recalibrator of a checked document."""
    try:
        scaler: Any = Decoder(saved.root)(document["recalibrator"])
        if not hasattr(scaler, "get_params"):
            msg = "it holds no recalibrator."
            raise DamagedFileError(msg)
    except DamagedFileError:
        raise
    except Exception as problem:
        msg = f"what was learned does not fit together ({problem})."
        raise DamagedFileError(msg) from problem
    scaler.map_ = saved.root
    scaler.min_uncertainty_ = saved.smallest_uncertainty
    scaler.n_samples_fit_ = saved.n_rows
    scaler.n_features_in_ = len(saved.names)
    if saved.named:
        scaler.feature_names_in_ = np.array(saved.names, dtype=object)
    if saved.conformal is not None:
        scaler.conformal_ = saved.conformal
    found: VarianceScaler = scaler
    return found


def _checksum(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _probe(saved: SavedMap) -> None:
    """Predict rows, so that parts that do not fit together fail now, not later."""
    smallest = saved.smallest_uncertainty
    if not 0 < smallest < math.inf:
        msg = f"its smallest uncertainty is {smallest!r}."
        raise DamagedFileError(msg)
    last = max((column.position for column in columns_of(saved.root)), default=0)
    if last >= len(saved.names):
        msg = f"the map reads column {last} of {len(saved.names)}."
        raise DamagedFileError(msg)
    u = np.array([smallest, 2 * smallest])
    rows = Rows((u, *(np.zeros(2) for _ in saved.names[1:])), saved.names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = saved.predict(rows)
    if not (np.isfinite(predicted) & (predicted > 0)).all():
        msg = "it does not predict positive numbers."
        raise DamagedFileError(msg)


def _sound_scores(scores: Any) -> ConformalScores | None:
    if scores is None or (isinstance(scores, ConformalScores) and scores.is_sound):
        return scores
    msg = "the z-scores of its prediction intervals are not whole or sorted."
    raise DamagedFileError(msg)
