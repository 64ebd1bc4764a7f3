"""Recalibrators to and from JSON: text that runs no code when it is loaded.

A file holds the format and its version, a summary of the calibration set, the map, what
prediction intervals need, the recalibrator in words, its class with parameters and
what else it learned, and a checksum of these. A file of several targets holds the same
of each, and what holds for all. The map is a list of nodes; each names
its inputs by their place in the list, and these come before it. It is all that is
needed to predict: :func:`load_map` reads that, and :func:`load` the recalibrator, too.

Loading checks all of it: only known classes, parameters and types are accepted, every
node checks its own parts, and the ranges of their values prove that the map predicts
finite positive numbers for any row. Floating-point numbers are written so that they
come back bit for bit, and nothing depends on the date, so that the same fit gives the
same file.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.checks import Floats
from .._support.files import write_text
from .._support.version import __version__
from ..exceptions import DamagedFileError, InvalidInputError
from ..maps import Node
from ..maps.conformal import ConformalScores
from ..maps.prediction import recalibrate
from ..oddities import Profile
from ..predictions import Predictions, default_names
from ..scaling.registry import scaler_named
from . import several
from .coding import ELSEWHERE, Decoder, Encoder, check_sums, place, refuse
from .several import SavedTargets

if TYPE_CHECKING:
    from ..scaling import VarianceScaler
    from ..targets.recalibrated import RecalibratedTargets

FORMAT, SEVERAL = "sigmascale recalibrator", "sigmascale recalibrated targets"
VERSIONS = {FORMAT: 2, SEVERAL: 1}
_CONTENT = ("calibration", "words", "map", "conformal", "recalibrator")
_CONTENTS = {FORMAT: _CONTENT, SEVERAL: several.CONTENT}
_ENVELOPE = {"format", "version", "library", "sha256"}
_CALIBRATION = {
    *("rows", "n_columns", "columns", "smallest_uncertainty", "seen", "source")
}
MOST_COLUMNS = 100_000  # names are made for so many, however small a file is
LETTERS_A_PART, LETTERS_A_STRING = 20, 6  # at least, on average over a large file
_FEW_LETTERS = 20_000  # for which parts may be as small as they like
_STRING_OR_PART = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[{]')
_AT_A_TIME = 2**16
LARGEST_FILE = 256 * 2**20  # bytes; the largest sensible model has a few


@dataclass(frozen=True)
class SavedMap:
    """What a file says of a recalibrator, without the recalibrator itself.

    Attributes
    ----------
    root : Node
        The map.
    columns : tuple of str or None
        The columns of the conditioning table that it was fitted on, if they had names.
    n_columns : int
        How many columns these are.
    smallest_uncertainty : float
        The smallest one seen in `fit`, which stands for those of 0.
    n_rows : int
        Rows that it was fitted on.
    seen : Profile or None
        What new rows are compared with.
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
    columns: tuple[str, ...] | None
    n_columns: int
    smallest_uncertainty: float
    n_rows: int
    seen: Profile | None
    conformal: ConformalScores | None
    words: str
    method: str
    source: Any
    library: str

    @property
    def named(self) -> bool:
        """Whether the columns had names."""
        return self.columns is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns; if they had none, these count columns."""
        return default_names(self.n_columns) if self.columns is None else self.columns

    def predict(self, rows: Predictions) -> Floats:
        """Return the recalibrated uncertainties of rows with the right columns."""
        return recalibrate(
            self.root,
            rows,
            smallest=self.smallest_uncertainty,
            seen=self.seen,
            n_fit=self.n_rows,
        )


def save(
    scaler: VarianceScaler | RecalibratedTargets,
    path: str | Path,
    *,
    source: Any = None,
) -> None:
    """Write a fitted recalibrator to a JSON file, whole or not at all.

    Parameters
    ----------
    scaler : recalibrator, or RecalibratedTargets
        A fitted one, or several targets, which all go to one file.
    path : str or Path
        Where to write; an existing file is replaced.
    source : dict, optional
        What is known about the file it was fitted on, in terms of JSON; it is kept
        in the file, and `sigmascale show` tells it.

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


def load(path: str | Path) -> Any:
    """Read a recalibrator that :func:`save` wrote; nothing in the file is executed.

    Parameters
    ----------
    path : str or Path
        A file written by :func:`save`.

    Returns
    -------
    recalibrator, or RecalibratedTargets
        It predicts bit for bit what the saved one did.
    """
    document, saved = _read(path)
    with _about(path):
        return _fitted(document, saved)


def load_map(path: str | Path) -> SavedMap:
    """Read what a file says of a recalibrator; scikit-learn is not needed."""
    saved = load_maps(path)
    if isinstance(saved, SavedTargets):
        msg = (
            f"{path}: it holds {len(saved.maps)} targets, and here one is needed. Save "
            "that alone: save(targets.scalers_[NAME], PATH)."
        )
        raise InvalidInputError(msg)
    return saved


def load_maps(path: str | Path) -> SavedMap | SavedTargets:
    """Read what a file says of one recalibrator, or of several targets."""
    return _read(path)[1]


def _read(path: str | Path) -> tuple[dict[str, Any], SavedMap | SavedTargets]:
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


def dumps(scaler: VarianceScaler | RecalibratedTargets, source: Any = None) -> str:
    """Return a fitted recalibrator, or several targets, as JSON text."""
    from ..targets.recalibrated import RecalibratedTargets

    if not isinstance(scaler, RecalibratedTargets):
        return _sealed(FORMAT, _content(scaler, source))
    if not hasattr(scaler, "scalers_"):
        msg = "`scaler` must be fitted before it is saved; these targets are not."
        raise InvalidInputError(msg)
    return _sealed(SEVERAL, several.content_of(scaler, source, _content))


def _content(scaler: VarianceScaler, source: Any = None) -> dict[str, Any]:
    """Return what is written of a recalibrator."""
    name = type(scaler).__name__
    if scaler_named(name) is not type(scaler):
        msg = f"`scaler` must be a registered recalibrator; found {name}."
        raise InvalidInputError(msg)
    if not hasattr(scaler, "map_"):
        msg = f"`scaler` must be fitted before it is saved; this {name} is not."
        raise InvalidInputError(msg)
    if scaler.n_features_in_ > MOST_COLUMNS:
        msg = (
            f"`scaler` must have at most {MOST_COLUMNS} columns to be saved; this "
            f"{name} has {scaler.n_features_in_}. Fit it to those that matter."
        )
        raise InvalidInputError(msg)
    columns = getattr(scaler, "feature_names_in_", None)
    encoder = Encoder(scaler.map_)
    return {
        "calibration": {
            "rows": scaler.n_samples_fit_,
            "n_columns": int(scaler.n_features_in_),
            "columns": None if columns is None else [str(name) for name in columns],
            "smallest_uncertainty": scaler.min_uncertainty_,
            "seen": encoder(getattr(scaler, "seen_", None)),
            "source": source,
        },
        "words": scaler.describe(),
        "map": encoder.nodes(scaler.map_),
        "conformal": encoder(getattr(scaler, "conformal_", None)),
        "recalibrator": encoder.scaler(scaler),
    }


def _sealed(format: str, content: dict[str, Any]) -> str:
    """Return content with its format and a checksum, as text."""
    document = {
        "format": format,
        "version": VERSIONS[format],
        "library": __version__,
        "sha256": _checksum(content),
        **content,
    }
    return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def loads(text: str) -> Any:
    """Return the recalibrator, or the targets, that :func:`dumps` wrote as text."""
    return _fitted(*_parse(text))


def _fitted(document: dict[str, Any], saved: SavedMap | SavedTargets) -> Any:
    """Return what was saved."""
    if isinstance(saved, SavedMap):
        return _scaler(document, saved)
    with place("the targets"):
        return several.fitted_targets(document, saved, _scaler)


def _parse(text: str) -> tuple[dict[str, Any], SavedMap | SavedTargets]:
    """Return the checked document, and the map or maps in it."""
    # lists, objects and strings take up to a hundred times the memory of a letter
    parts = (match[0] for match in _STRING_OR_PART.finditer(text))
    least = sum(LETTERS_A_PART if part in "[{" else LETTERS_A_STRING for part in parts)
    if least > _FEW_LETTERS + len(text):
        refuse("it has more parts than a recalibrator of its size.")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as problem:
        msg = f"this is not a whole JSON file of a recalibrator ({problem})."
        raise DamagedFileError(msg) from problem
    format = document.get("format") if isinstance(document, dict) else None
    if not isinstance(format, str) or format not in VERSIONS:
        msg = f'this is not a file of a recalibrator: "format" is not "{FORMAT}".'
        raise DamagedFileError(msg)
    if format == FORMAT and document.get("version") == 1:
        msg = (
            "this file has the format's version 1, of a release before maps, and is "
            "no longer read. Fit the recalibrator again and save it."
        )
        raise DamagedFileError(msg)
    if document.get("version") != VERSIONS[format]:
        msg = (
            f"the format's version is {document.get('version')!r}; this library reads "
            f"version {VERSIONS[format]}. Use the release of sigmascale that wrote the "
            "file."
        )
        raise DamagedFileError(msg)
    keys = _ENVELOPE.union(_CONTENTS[format])
    if set(document) != keys:
        wrong = ", ".join(sorted(set(document) ^ keys))
        msg = f"parts of the file are missing or unknown: {wrong}."
        raise DamagedFileError(msg)
    try:
        checksum = _checksum({name: document[name] for name in _CONTENTS[format]})
    except RecursionError as problem:
        msg = "it is nested too deeply for a recalibrator."
        raise DamagedFileError(msg) from problem
    if checksum != document["sha256"]:
        msg = "the checksum does not fit: the file was changed or damaged."
        raise DamagedFileError(msg)
    with place():
        if format == SEVERAL:
            return document, several.saved_targets(document, _saved_map)
        return document, _saved_map(document)


def _saved_map(document: dict[str, Any]) -> SavedMap:
    about = document["calibration"]
    with place("the calibration set"):
        if set(about) != _CALIBRATION:
            wrong = ", ".join(sorted(set(about) ^ _CALIBRATION))
            refuse(f"parts are missing or unknown: {wrong}.")
        n_columns = _count(about, "n_columns", MOST_COLUMNS)
        n_rows = _count(about, "rows", None)
        columns, smallest = about["columns"], about["smallest_uncertainty"]
        if columns is not None:
            named = isinstance(columns, list) and all(
                isinstance(name, str) for name in columns
            )
            if not named or len(columns) != n_columns:
                refuse(f"it names {len(columns)} columns of {n_columns}.")
            if len(set(columns)) < n_columns:
                refuse("it has columns of the same name.")
        if type(smallest) not in (int, float) or not 0 < smallest < math.inf:
            refuse(f"its smallest uncertainty is {smallest!r}.")
        decode = Decoder(n_columns)
        seen = decode(about["seen"])
        if seen is not None and (
            not isinstance(seen, Profile) or seen.positions[-1] >= n_columns
        ):
            refuse("what was seen is not that of its columns.")
    words, library = document["words"], document["library"]
    if not isinstance(words, str) or not isinstance(library, str):
        refuse("its words are not text.")
    root = decode.nodes(document["map"])
    with place("what intervals are made from"):
        scores = decode(document["conformal"])
        if scores is not None and not isinstance(scores, ConformalScores):
            refuse("these are no z-scores.")
    return SavedMap(
        root=root,
        columns=None if columns is None else tuple(columns),
        n_columns=n_columns,
        smallest_uncertainty=float(smallest),
        n_rows=n_rows,
        seen=seen,
        conformal=scores,
        words=words,
        method=str(document["recalibrator"]["is"]),
        source=about["source"],
        library=library,
    )


def _count(about: dict[str, Any], name: str, most: int | None) -> int:
    found = about[name]
    if type(found) is not int or found < 1 or (most is not None and found > most):
        refuse(f"{name!r} is {found!r}.")
    return int(found)


def _scaler(document: dict[str, Any], saved: SavedMap) -> VarianceScaler:
    """Return the recalibrator of a checked document."""
    with place("the recalibrator"):
        decode = Decoder(saved.n_columns, saved.root)
        scaler: Any = decode(document["recalibrator"])
        if not hasattr(scaler, "get_params"):
            refuse("it holds no recalibrator.")
        for name in ELSEWHERE:
            if hasattr(scaler, name):
                refuse(f"{name!r} is not something that is learned beside the map.")
        scaler.map_ = saved.root
        scaler.min_uncertainty_ = saved.smallest_uncertainty
        scaler.n_samples_fit_ = saved.n_rows
        scaler.n_features_in_ = saved.n_columns
        if saved.columns is not None:
            scaler.feature_names_in_ = np.array(saved.columns, dtype=object)
        if saved.conformal is not None:
            scaler.conformal_ = saved.conformal
        if saved.seen is not None:
            scaler.seen_ = saved.seen
        check_sums(scaler)
        # what was learned beside the map is what words are made of
        if scaler.describe() != saved.words:
            refuse("its words are not those of what was learned.")
        if hasattr(scaler, "explain"):
            scaler.explain()
    found: VarianceScaler = scaler
    return found


def _checksum(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256()
    for start in range(0, len(text), _AT_A_TIME):  # or there were a second copy
        digest.update(text[start : start + _AT_A_TIME].encode("ascii"))
    return digest.hexdigest()
