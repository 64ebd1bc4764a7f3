"""What has come, and rows as they are ranked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from .._support.checks import Floats, Ints, for_order
from .._support.hashing import hash_of_rows
from .._support.text import listed
from ..exceptions import InvalidInputError
from ..predictions.ordering import in_order_of_appearance
from ..predictions.predictions import Predictions
from ..recalibration.fitted_rows import DISTINCT
from .alarms import UnitKind
from .ranks import LEAST_UNITS, Units


@dataclass(frozen=True)
class Stream:
    """What has come, and what the next batch must go on with.

    Attributes
    ----------
    seed : int
        Seed of the order of equal z-scores.
    n_rows : int
        Rows that have come.
    units : {"rows", "groups"}
        What could have come in any order.
    times : {"none", "numbers", "dates"}
        What tells when rows came.
    last_time : float
        When the last row came.
    last_batch : int
        A hash of the last batch; 0 of one that is small, or whose rows are alike.
    watched : dict of str to str, or None
        The features that are watched, "numbers" or "labels"; None before the first row.
    """

    seed: int
    n_rows: int = 0
    units: UnitKind = "rows"
    times: Literal["none", "numbers", "dates"] = "none"
    last_time: float = 0.0
    last_batch: int = 0
    watched: dict[str, str] | None = None

    def of_kind(self, p: Predictions) -> Stream:
        """Return the same, whose rows are of the kind of these."""
        watched = self.watched
        if watched is None:
            watched = {
                name: "labels" if p.is_labelled(name) else "numbers"
                for name in p.names[1:]
            }
        return replace(self, watched=watched, units=_units_of(p), times=_times_of(p))

    def after(self, p: Predictions) -> Stream:
        """Return what has come when these rows have, too."""
        last_time = self.last_time
        if p.time is not None:
            last_time = float(_seconds(p.time)[-1])
        return replace(
            self.of_kind(p),
            n_rows=self.n_rows + len(p),
            last_time=last_time,
            last_batch=_hash_of(p),
        )

    def check_goes_on(self, p: Predictions) -> None:
        """Refuse a batch that does not go on with the stream."""
        units = _units_of(p)
        times = _times_of(p)
        if self.n_rows and (units, times) != (self.units, self.times):
            msg = (
                "All batches must have groups or none of them, and times of one kind "
                f"or none; earlier ones were of {self.units} with {self.times} for "
                f"times, and this is of {units} with {times}. Begin a new monitor."
            )
            raise InvalidInputError(msg, "other-batch")
        if self.watched is not None and set(p.names[1:]) != set(self.watched):
            msg = (
                "All batches must have the features of the first rows: "
                f"{listed(self.watched) or 'none'}; found "
                f"{listed(p.names[1:]) or 'none'}. Leave others out with "
                "p.with_features, or begin a new monitor."
            )
            raise InvalidInputError(msg, "features")
        begin = 0.0 if p.time is None else _seconds(p.time)[0]
        if self.n_rows and begin < self.last_time:
            msg = (
                "Times must not go back: the first of this batch lies before the last "
                "of those before it. Pass rows in order, or without `time`."
            )
            raise InvalidInputError(msg, "time-goes-back")
        batch = _hash_of(p)
        if batch and batch == self.last_batch:
            msg = (
                "These rows were taken already: they are those of the batch before. "
                "Pass each batch once."
            )
            raise InvalidInputError(msg, "same-batch")

    def ranked(self, p: Predictions, number: int = 0) -> Units:
        """Return rows that come next as they are ranked; `number` is that of a stream.

        Parameters
        ----------
        p : Predictions
            Recalibrated, if that is what is watched.
        number : int, default 0
            1 for those of a reference, whose random numbers are others.
        """
        times = np.zeros(len(p))
        if p.time is not None:
            p = p.take(np.argsort(p.time, kind="stable"))  # as given
            times = _seconds(p.time)
        # each row has its own random number, however rows are divided into batches
        bits = np.random.PCG64([self.seed, number]).advance(self.n_rows)
        row = self.n_rows + np.arange(len(p))
        columns: dict[str, Any] = {"size": p.abs_z}
        if not p.is_vector:
            columns["z"] = p.z
        columns["tie"] = np.random.Generator(bits).random(len(p))
        columns["counted"] = np.ones(len(p), dtype=np.int64)
        columns |= {"row": row, "end": row + 1, "time": times}
        for name, kind in (self.of_kind(p).watched or {}).items():
            columns[f"of {name}"] = _feature(p, name, kind)
        units = Units(columns)
        if p.groups is not None:
            units = _gathered(units, p.groups)
        # ties stay ties, whatever arithmetic has made of them
        in_order = {name: for_order(units[name]) for name in units.ranked}
        return Units(units.columns | in_order)


def _units_of(p: Predictions) -> UnitKind:
    """Return what could have come in any order: rows, or groups."""
    return "rows" if p.groups is None else "groups"


def _times_of(p: Predictions) -> Literal["none", "numbers", "dates"]:
    """Return what tells when rows came."""
    if p.time is None:
        return "none"
    return "dates" if p.time.dtype.kind == "M" else "numbers"


def _seconds(time: Any) -> Floats:
    """Return times in order, as numbers: dates in seconds."""
    times = np.sort(time)
    if times.dtype.kind == "M":
        times = times.astype("datetime64[us]").astype(np.int64) / 1e6
    return np.asarray(times, dtype=np.float64)


def _hash_of(p: Predictions) -> int:
    """Return a hash of a batch of rows that differ; 0 of one that is small or alike."""
    hashes = hash_of_rows([p.y_std, p.squared_error])
    # whole numbers
    if len(p) < LEAST_UNITS or np.unique(hashes).size < DISTINCT * len(p):
        return 0
    return int(np.add.reduce(hashes) >> np.uint64(12))


def _feature(p: Predictions, name: str, kind: str) -> Any:
    """Return a feature that is watched: numbers, or labels as text."""
    column = p.columns[p.position(name, "features")]
    if kind == "labels":
        return np.array([label or "missing" for label in p.labels(name).values()])
    # which refuses labels; numbers may be missing
    return p.numbers(name) if p.is_labelled(name) else column


def _gathered(rows: Units, groups: Ints) -> Units:
    """Return the groups of rows, in the order of the first row of each."""
    code = in_order_of_appearance(groups)
    total = np.bincount(code)
    counted = _counted(total)
    # the place of each row within its group
    by_group = np.argsort(code, kind="stable")  # whole numbers
    starts = np.cumsum(total) - total
    place = np.empty(code.size, dtype=np.int64)
    place[by_group] = np.arange(code.size) - np.repeat(starts, total)
    used = place < counted[code]
    columns = dict(rows.take(by_group[starts]).columns)
    for name in rows.ranked:
        columns[name] = np.bincount(code[used], rows[name][used]) / counted
    end = int(rows["row"][0]) + np.cumsum(total)
    columns |= {"counted": counted, "row": end - total, "end": end}
    return Units(columns)


def _counted(total: Ints) -> Ints:
    """Return the largest of 1, 2, 3, 4, 6, 8, 12, 16, ... that a group has rows for."""
    power = 2 ** np.floor(np.log2(total)).astype(np.int64)
    return np.where(2 * total >= 3 * power, 3 * power // 2, power)
