"""Recalibrators to and from JSON files: text that runs no code when it is loaded.

A file holds the format and its version, a checksum, what is known of where the
calibration set came from, the nodes of all maps, and the recalibrator: its class, what
it does in words, its parameters and what it learned. Of several targets, what was
learned is a recalibrator for each. A map is all that is needed to predict:
:func:`load_map` reads that and what belongs to it, and :func:`load` the recalibrator.

Loading checks all of it: the codec accepts none but known classes, names and types,
every part checks itself, and the ranges of their values prove that a map predicts
finite positive numbers for any row. Floating-point numbers are written so that they
come back bit for bit, and nothing depends on the date, so that the same fit gives the
same file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .._support.checks import LARGEST, SMALLEST, Floats
from .._support.files import write_text
from .._support.version import __version__
from ..exceptions import DamagedFileError, InvalidInputError
from ..maps import Node
from ..maps.conformal import ConformalScores
from ..maps.laws import EmpiricalLaw, NormalLaw
from ..maps.prediction import recalibrate, value_of
from ..maps.ranges import check_map
from ..oddities import Profile
from ..predictions import Columns, Predictions, default_names
from ..roles import Roles
from .codec import (
    Decoder,
    Encoder,
    construct,
    estimator_named,
    place,
    refuse,
    require_names,
)

if TYPE_CHECKING:
    from ..scaling import VarianceScaler
    from ..targets.recalibrated import RecalibratedTargets

FORMAT, VERSION = "sigmascale recalibrator", 3
_KEYS = {"format", "version", "library", "sha256", "source", "nodes", "recalibrator"}
MOST_COLUMNS = 100_000  # names are made for so many, however small a file is
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
    law : NormalLaw, EmpiricalLaw or None
        The law of errors; None stands for a normal one.
    shift : Node or None
        What predictions are off by on average, as a map.
    conformal : ConformalScores or None
        What prediction intervals with a guarantee are made from.
    caution : str or None
        What those should know who use it, if anything.
    words : str
        What it does, and what it has learned.
    method : str
        The name of the class that learned the scale.
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
    law: NormalLaw | EmpiricalLaw | None
    shift: Node | None
    conformal: ConformalScores | None
    caution: str | None
    words: str
    method: str
    source: Any
    library: str

    def __post_init__(self) -> None:
        """Refuse what could not predict."""
        _check_columns(self.columns, self.n_columns)
        if not SMALLEST <= self.smallest_uncertainty <= LARGEST:
            refuse(f"its smallest uncertainty is {self.smallest_uncertainty!r}.")
        if self.n_rows < 1:
            refuse(f"it was fitted on {self.n_rows!r} rows.")
        if self.seen is not None and self.seen.positions[-1] >= self.n_columns:
            refuse("what was seen is not that of its columns.")
        with place("the map"):
            check_map(self.root, self.n_columns)
        if self.shift is not None:
            with place("the shift"):
                check_map(self.shift, self.n_columns, signed=True)

    @property
    def named(self) -> bool:
        """Whether the columns had names."""
        return self.columns is not None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns; if they had none, these count columns."""
        return default_names(self.n_columns) if self.columns is None else self.columns

    is_several = False

    @property
    def maps(self) -> dict[str, SavedMap]:
        """What it says of the one target, whose name is empty."""
        return {"": self}

    @cached_property
    def roles(self) -> dict[str, Roles]:
        """The columns of files that it was fitted with."""
        return {"": self.roles_from(self.source)}

    def roles_from(self, source: Any) -> Roles:
        """Return the columns that a source tells of, if they fit the map."""
        roles = Roles.from_dict(source)
        if self.names != (roles.uncertainty, *roles.features):
            refuse("the names of columns do not fit the recalibrator; it is damaged.")
        return roles

    def predict(self, rows: Predictions) -> Floats:
        """Return the recalibrated uncertainties of rows with the right columns."""
        return recalibrate(
            self.root,
            rows,
            smallest=self.smallest_uncertainty,
            seen=self.seen,
            n_fit=self.n_rows,
        )

    def shift_of(self, rows: Predictions) -> Floats:
        """Return what predictions are off by on average; 0 without a shift."""
        if self.shift is None:
            return np.zeros(rows.n_rows)
        return value_of(self.shift, rows)

    def z_limits(self, coverage: float) -> Floats | None:
        """Return limits of z that rows held out guarantee, if there were any."""
        if self.conformal is None:
            return None
        how: dict[str, Any] = {"asymmetric": False, "labels": None}
        return np.asarray(self.conformal.interval(np.ones(1), coverage, **how)[0])


@dataclass(frozen=True)
class SavedTargets:
    """What a file says of several targets, without their recalibrators.

    Attributes
    ----------
    maps : dict of str to SavedMap
        What it says of each.
    columns : tuple of str or None
        The columns of the conditioning table, if they had names.
    n_columns : int
        How many columns these are.
    by : int, str or None
        The column of labels, of a long table.
    order : list of int or None
        The column of the uncertainties of each target, of a wide table.
    is_column : bool
        Whether predictions are one column.
    words : str
        What is done, and what was learned.
    source : object
        What was known of the file that they were fitted on.
    library : str
        The version of the library that wrote the file.
    """

    maps: dict[str, SavedMap]
    columns: tuple[str, ...] | None
    n_columns: int
    by: int | str | None
    order: list[int] | None
    is_column: bool
    words: str
    source: Any
    library: str

    def __post_init__(self) -> None:
        """Refuse targets whose columns are not those of the table."""
        n_targets, wide = len(self.maps), self.by is None
        if not n_targets:
            refuse("it has no targets.")
        if self.is_column and wide and n_targets > 1:
            refuse(f"{n_targets} targets are no column.")
        _check_columns(self.columns, self.n_columns)
        names = self.columns or default_names(self.n_columns)
        with place("the columns"):
            if wide and sorted(self.order or []) != [*range(n_targets)]:
                refuse(f"those of uncertainties are {self.order!r}.")
            if self.by is not None:
                label = Columns(names).position(self.by)
                rest = [name for i, name in enumerate(names) if i != label]
            for k, (target, saved) in enumerate(self.maps.items()):
                if self.order is not None:
                    rest = [names[self.order[k]], *names[n_targets:]]
                own = None if self.columns is None else tuple(rest)
                if saved.n_columns != len(rest) or saved.columns != own:
                    refuse(f"those of target {target!r} are not those of the table.")

    is_several = True

    @cached_property
    def roles(self) -> dict[str, Roles]:
        """The columns of files that each target was fitted with."""
        found: Any = dict.fromkeys(self.maps)
        if self.source is not None:
            found = self.source.get("targets") if isinstance(self.source, dict) else {}
        if not isinstance(found, dict) or list(found) != list(self.maps):
            refuse("the names of targets in the recalibrators' file are damaged.")
        return {name: self.maps[name].roles_from(x) for name, x in found.items()}


_Saved = TypeVar("_Saved", SavedMap, SavedTargets)


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
    document = read_json(path)
    with place(str(path)):
        return from_document(document)


def load_map(path: str | Path) -> SavedMap:
    """Read what a file says of a recalibrator; scikit-learn is not needed."""
    saved = load_maps(path)
    if isinstance(saved, SavedTargets):
        msg = (
            f"{path}: it holds {len(saved.maps)} targets, and here one is needed. Save "
            "that alone: save(targets.recalibrators_[NAME], PATH)."
        )
        raise InvalidInputError(msg)
    return saved


def load_maps(path: str | Path) -> SavedMap | SavedTargets:
    """Read what a file says of one recalibrator, or of several targets."""
    document = read_json(path)
    with place(str(path)):
        document = _checked(document)
        entry, decode = document["recalibrator"], Decoder(document["nodes"])
        about = {name: document[name] for name in ("source", "library")}
        return _saved(entry, decode, **about)


def read_json(path: str | Path) -> Any:
    """Return what a JSON file holds, unless it is too large to be one of ours."""
    size = Path(path).stat().st_size
    if size > LARGEST_FILE:
        refuse(f"{path}: it has {size} bytes, too many for a file of this library.")
    text = Path(path).read_bytes()
    with place(str(path)):
        return _parsed(text)


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text if isinstance(text, str) else text.decode())
    except UnicodeDecodeError as problem:
        msg = "it is not text. Was it made by `save`?"
        raise DamagedFileError(msg) from problem
    except (ValueError, RecursionError) as problem:
        msg = f"this is not a whole JSON file ({problem})."
        raise DamagedFileError(msg) from problem


def dumps(scaler: VarianceScaler | RecalibratedTargets, source: Any = None) -> str:
    """Return a fitted recalibrator, or several targets, as JSON text."""
    document = to_document(scaler, source)
    return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def loads(text: str) -> Any:
    """Return the recalibrator, or the targets, that :func:`dumps` wrote as text."""
    with place():
        return from_document(_parsed(text))


def to_document(scaler: Any, source: Any = None) -> dict[str, Any]:
    """Return a fitted recalibrator, or several targets, in terms of JSON."""
    name = type(scaler).__name__
    if estimator_named(name) is not type(scaler):
        msg = f"`scaler` must be a registered recalibrator; found {name}."
        raise InvalidInputError(msg)
    if not hasattr(scaler, "map_") and not hasattr(scaler, "recalibrators_"):
        msg = f"`scaler` must be fitted before it is saved; this {name} is not."
        raise InvalidInputError(msg)
    if scaler.n_features_in_ > MOST_COLUMNS:
        msg = (
            f"`scaler` must have at most {MOST_COLUMNS} columns to be saved; this "
            f"{name} has {scaler.n_features_in_}. Fit it to those that matter."
        )
        raise InvalidInputError(msg)
    encode = Encoder()
    recalibrator = encode(scaler)
    content = {"source": source, "nodes": encode.nodes, "recalibrator": recalibrator}
    header = {"format": FORMAT, "version": VERSION, "library": __version__}
    return {**header, "sha256": _checksum(header | content), **content}


def from_document(document: Any) -> Any:
    """Return what :func:`to_document` was given, or refuse."""
    document = _checked(document)
    decode = Decoder(document["nodes"], check=_check_fitted)
    found = decode(document["recalibrator"])
    if not hasattr(found, "map_") and not hasattr(found, "recalibrators_"):
        refuse("it holds no recalibrator.")
    if hasattr(found, "explain"):
        found.explain()
    return found


def _checked(document: Any) -> dict[str, Any]:
    """Return a document whose format, version and checksum are right."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        refuse(f'this is not a file of a recalibrator: "format" is not "{FORMAT}".')
    if document.get("version") != VERSION:
        refuse(
            f"the format's version is {document.get('version')!r}, and this library "
            f"reads version {VERSION}. Fit the recalibrator again and save it."
        )
    require_names("the file", document, _KEYS)
    sealed = {key: part for key, part in document.items() if key != "sha256"}
    if _checksum(sealed) != document["sha256"]:
        refuse("the checksum does not fit: the file was changed or damaged.")
    return document


# what was learned, under the names that it has in what a file says of it
_LEARNED = {
    "root": "map_",
    "columns": "feature_names_in_",
    "n_columns": "n_features_in_",
    "smallest_uncertainty": "min_uncertainty_",
    "n_rows": "n_samples_fit_",
    "seen": "seen_",
    "conformal": "conformal_",
    "law": "law_",
    "caution": "caution_",
    "shift": "shift_",
    "order": "uncertainty_columns_",
    "is_column": "is_column_",
}


def _saved(
    entry: dict[str, Any], decode: Decoder, **about: Any
) -> SavedMap | SavedTargets:
    """Return what an entry says, without making its recalibrator."""
    wanted, about = _LEARNED.values(), about | {"words": entry["words"]}
    learned = {k: decode(v) for k, v in entry["learned"].items() if k in wanted}
    if entry["is"] != "RecalibratedTargets":
        scaling = entry["learned"].get("scaling_", entry)
        return _of_learned(SavedMap, learned, method=scaling["is"], **about)
    maps: dict[str, Any] = {}
    for name, one in entry["learned"]["recalibrators_"]["items"]:
        with place(f"target {name!r}"):
            if name in maps:
                refuse("it is there twice.")
            maps[name] = _saved(one, decode, **about | {"source": None})
    by = entry["parameters"]["by"]
    return _of_learned(SavedTargets, learned, maps=maps, by=by, **about)


def saved_map(scaler: Any) -> SavedMap:
    """Return what a file would say of a fitted recalibrator."""
    method = type(getattr(scaler, "scaling_", scaler)).__name__
    about = {"words": "", "source": None, "library": __version__, "method": method}
    return _of_learned(SavedMap, vars(scaler), **about)


def _of_learned(cls: type[_Saved], learned: Mapping[str, Any], **others: Any) -> _Saved:
    """Return what was learned as checked parts of one class or the other."""
    parts = {
        each.name: learned.get(_LEARNED[each.name])
        for each in fields(cls)
        if each.name in _LEARNED
    }
    if parts["columns"] is not None:
        parts["columns"] = tuple(parts["columns"])
    found: _Saved = construct(cls, parts | others)
    return found


def _check_fitted(found: Any, words: Any) -> None:
    """Refuse an estimator that could not do what fitted ones do."""
    about = {"words": words, "source": None, "library": "", "method": ""}
    if hasattr(found, "recalibrators_"):
        maps = {
            name: _of_learned(SavedMap, vars(each), **about | {"words": ""})
            for name, each in found.recalibrators_.items()
        }
        del about["method"]
        _of_learned(SavedTargets, vars(found), maps=maps, by=found.by, **about)
    else:
        _of_learned(SavedMap, vars(found), **about)
        if found.is_updatable:
            _check_sums(found)
    if not getattr(found, "is_sound", True):
        refuse("what was learned is nothing that anyone learns.")
    # what was learned beside the map is what words are made of
    if found.describe() != words:
        refuse("its words are not those of what was learned.")


def _check_sums(scaler: Any) -> None:
    """Refuse sums that `update` could not go on from."""
    try:
        kept = scaler._kept()
    except InvalidInputError:
        return  # labels of two kinds, which cannot be updated
    if not kept.is_sound:
        refuse("the sums are not those of its bins.")


def _check_columns(columns: tuple[str, ...] | None, n_columns: int) -> None:
    if not 1 <= n_columns <= MOST_COLUMNS:
        refuse(f"the number of its columns is {n_columns!r}.")
    if columns is not None and len(columns) != n_columns:
        refuse(f"it names {len(columns)} columns of {n_columns}.")
    if columns is not None and len(set(columns)) < n_columns:
        refuse("it has columns of the same name.")


def _checksum(content: dict[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
