"""Several targets in one file: what each has learned, and what holds for all.

Each target is written as a recalibrator alone is, and read back by the same functions,
which are given to those here.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.checks import Floats
from ..predictions import NamedColumns, Predictions, default_names
from ..targets.tables import long_targets, predict_targets, wide_targets
from .coding import Decoder, Encoder, place, refuse

if TYPE_CHECKING:
    from ..scaling.target import TargetScaling
    from ..targets.recalibrated import RecalibratedTargets

CONTENT = ("source", "words", "together", "targets")
_TOGETHER = {"parameters", "half_way", "is_column", "n_columns", "columns"}


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
    is_column : bool
        Whether predictions are one column.
    words : str
        What is done, and what was learned.
    source : object
        What was known of the file that they were fitted on.
    library : str
        The version of the library that wrote the file.
    """

    maps: dict[str, Any]
    columns: tuple[str, ...] | None
    n_columns: int
    by: int | str | None
    is_column: bool
    words: str
    source: Any
    library: str

    def predict(self, table: Predictions) -> Floats:
        """Return the recalibrated uncertainties of a table with the right columns."""
        names = list(self.maps)
        if self.by is None:
            targets = wide_targets(table, names)
        else:
            targets = long_targets(table, self.by, names)
        predict = {name: each.predict for name, each in self.maps.items()}
        found = predict_targets(targets, predict, wide=self.by is None)
        return found.ravel() if self.is_column else found


def content_of(
    targets: RecalibratedTargets,
    source: Any,
    one: Callable[[TargetScaling], dict[str, Any]],
) -> dict[str, Any]:
    """Return what is written of several targets; `one` says what of each."""
    scalers = list(targets.scalers_.values())
    encode = Encoder(scalers[0].map_)
    parameters = targets.get_params(deep=False)
    columns = getattr(targets, "feature_names_in_", None)
    return {
        "source": source,
        "words": targets.describe(),
        "together": {
            "parameters": {k: encode(v) for k, v in sorted(parameters.items())},
            "half_way": encode(targets.half_way_),
            "is_column": bool(targets.is_column_),
            "n_columns": int(targets.n_features_in_),
            "columns": None if columns is None else [str(each) for each in columns],
        },
        "targets": [one(each) for each in scalers],
    }


def saved_targets(
    document: dict[str, Any], one: Callable[[dict[str, Any]], Any]
) -> SavedTargets:
    """Return what a checked document says; `one` reads one target of it."""
    listed, together = document["targets"], document["together"]
    words, library = document["words"], document["library"]
    if not isinstance(words, str) or not isinstance(library, str):
        refuse("its words are not text.")
    if not isinstance(listed, list) or not listed:
        refuse("it has no targets.")
    if not isinstance(together, dict) or set(together) != _TOGETHER:
        refuse("what holds for all targets is not whole.")
    maps: dict[str, Any] = {}
    for number, entry in enumerate(listed):
        with place(f"target {number}"):
            name = entry["recalibrator"]["learned"]["target_"]
            if not isinstance(name, str) or name in maps:
                refuse(f"its name is {name!r}, which is no text or not the first.")
            maps[name] = one({**entry, "library": library})
    by, is_column = together["parameters"]["by"], together["is_column"]
    if type(is_column) is not bool or type(by) not in (type(None), int, str):
        refuse("whether the table is a long one is not said.")
    if is_column and by is None and len(maps) > 1:
        refuse(f"{len(maps)} targets are no column.")
    columns = together["columns"]
    saved = SavedTargets(
        maps,
        None if columns is None else tuple(columns),
        together["n_columns"],
        by,
        is_column,
        words,
        document["source"],
        library,
    )
    with place("the columns"):
        _check_columns(saved)
    return saved


def _check_columns(saved: SavedTargets) -> None:
    """Refuse columns of the table that are not those of the targets."""
    maps = list(saved.maps.values())
    if saved.by is None:
        expected = len(maps) - 1 + maps[0].n_columns
    else:
        expected = 1 + maps[0].n_columns
    if type(saved.n_columns) is not int or saved.n_columns != expected:
        refuse(f"they are {saved.n_columns!r}, and those of targets {expected}.")
    # the columns of one target are those of its uncertainties and of the features
    numbered = NamedColumns()
    numbered.names = saved.columns or default_names(expected)
    if len(numbered.names) != expected or len(set(numbered.names)) < expected:
        refuse("not all have a name of their own.")
    rest = list(numbered.names)
    if saved.by is not None:
        rest.pop(numbered.position(saved.by))
    for k, each in enumerate(maps):
        if each.n_columns != maps[0].n_columns:
            refuse("targets differ in the number of their features.")
        if (each.columns is None) != (saved.columns is None):
            refuse("some are named, and some are not.")
        if each.columns is None:
            continue
        mine = rest if saved.by is not None else [rest[k], *rest[len(maps) :]]
        if each.columns != tuple(mine):
            refuse("those of the targets have other names.")


def fitted_targets(
    document: dict[str, Any],
    saved: SavedTargets,
    one: Callable[[dict[str, Any], Any], Any],
) -> RecalibratedTargets:
    """Return the targets of a checked document; `one` makes one recalibrator."""
    from ..scaling import VarianceScaler
    from ..scaling.target import TargetScaling
    from ..targets.recalibrated import RecalibratedTargets

    together = document["together"]
    parameters = {}
    maps = list(saved.maps.values())
    decode = Decoder(maps[0].n_columns)
    for name, value in together["parameters"].items():
        with place(f"the parameter {name!r}"):
            parameters[name] = decode(value)
    known = set(inspect.signature(RecalibratedTargets).parameters)
    if set(parameters) != known:
        wrong = ", ".join(sorted(set(parameters) ^ known))
        refuse(f"parameters are missing or unknown: {wrong}.")
    scaler, names = parameters["scaler"], parameters["names"]
    if (
        not (scaler is None or isinstance(scaler, VarianceScaler))
        or not (names is None or names == list(saved.maps))
        or type(parameters["random_state"]) is not int
    ):
        refuse("parameters are not what they should be.")
    half_way = decode(together["half_way"])
    if type(half_way) is not float or not half_way > 0:
        refuse(f"the rows at which own fits weigh a half are {half_way!r}.")
    targets = RecalibratedTargets(**parameters)
    targets.half_way_, targets.is_column_ = half_way, saved.is_column
    targets.scalers_ = {}
    for entry, (name, each) in zip(
        document["targets"], saved.maps.items(), strict=True
    ):
        with place(f"target {name!r}"):
            found = one(entry, each)
            if not isinstance(found, TargetScaling):
                refuse("it is no target.")
            _check_numbers(found)
            targets.scalers_[name] = found
    targets.n_features_in_ = saved.n_columns
    if saved.columns is not None:
        targets.feature_names_in_ = np.array(saved.columns, dtype=object)
    with place("the words"):
        if targets.describe() != saved.words:
            refuse("its words are not those of what was learned.")
    return targets


def _check_numbers(target: TargetScaling) -> None:
    """Refuse numbers that nobody could have learned."""
    factors = (target.own_factor_, target.factor_)
    weight = target.own_weight_
    if (
        any(type(each) is not float or not 0 < each < math.inf for each in factors)
        or type(weight) is not float
        or not 0 <= weight <= 1
    ):
        refuse("its factors or weight are no such numbers.")
