"""What bets on a stream, and raises the alarm."""

from __future__ import annotations

import math
from collections.abc import Collection
from copy import copy
from dataclasses import dataclass, field, is_dataclass
from typing import Any

import numpy as np

from .._support.checks import Floats, for_order
from ..exceptions import InvalidInputError
from ..recalibration.distributions import ZDistribution
from ..recalibration.persistence import floats, index, number, refuse_if, stored
from .alarms import CHANGES, Alarm, rounded_number
from .evidence import Path, Watched
from .ranks import LEAST_UNITS, Units
from .stream import Stream

_PIECE = 2000  # units that are worked on at once, which bounds the memory needed
FIRST = 200  # rows, or groups, that say what is normal, at least
_EVERY = 10  # units from one point of the history to the next
_FOR_REGIONS = 0.2  # share that is staked on regions, if there are features
_LUCK = 0.5  # by which the best of many regions is ahead without being better
_MOST_NORMAL = 1000  # values that are read off the tables of a distribution
# Of the z-scores that tables of a recalibrator stand for. Of 60 unchanged streams
# 0 to 2 raise an alarm by these where up to 30 % tie, and 25 where all do.
_MOST_TIES = 0.05
# Neighbours are alike from this correlation of abs(z), and so many standard errors, on.
_ALIKE_NEIGHBOURS = 0.05
_SURELY = 3.0
COLUMNS = ("too small", "too large", "biased up", "biased down", "in a region")


@stored(n=index, sums=floats, last=number)
@dataclass
class Neighbours:
    """Whether neighbours are alike, from sums over pairs of them.

    Attributes
    ----------
    n : int
        Pairs.
    sums : array of shape (4,)
        Of the rank of the first, of the second, of the first's square, of products.
    last : float
        The rank of the last unit, whose neighbour is still to come; -1 if none.
    """

    n: int = 0
    sums: Floats = field(default_factory=lambda: np.zeros(4))
    last: float = -1.0

    def check(self) -> None:
        """Refuse sums of another shape."""
        refuse_if(self.sums.shape != (4,), "neighbours have four sums")

    def look_at(self, ranks: Floats) -> None:
        """Take further ranks, from 0 to 1; those that are not known are left out."""
        stream = np.append(self.last, ranks)
        stream = stream[stream >= 0]  # neither -1 nor NaN
        if stream.size:
            a, b = stream[:-1], stream[1:]  # each rank, and the next one
            self.n += a.size
            self.sums = self.sums + np.array([a.sum(), b.sum(), a @ a, a @ b])
            self.last = float(stream[-1])

    @property
    def are_alike(self) -> bool:
        """Whether neighbours resemble each other more than any others do."""
        if self.n < LEAST_UNITS:
            return False
        # the means of a, b, a² and a b give their correlation
        mean_a, mean_b, square, product = self.sums / self.n
        variance = max(square - mean_a**2, 1e-12)
        correlation = (product - mean_a * mean_b) / variance
        return bool(correlation > max(_ALIKE_NEIGHBOURS, _SURELY / math.sqrt(self.n)))


@dataclass
class Detector:
    """Bets on the units of a stream, and the alarm that they raise.

    Attributes
    ----------
    confidence : float
        One minus the probability that a stream without a change ever raises an alarm.
    burn_in : int
        Units of the stream that say what is normal, if nothing else does, and where the
        regions of features lie.
    first : Units or None
        The first of the stream, which are still to say that.
    overall : Watched or None
        Bets on all rows; None until something is normal.
    regions : tuple of Watched, or None
        Bets on the regions of features; None until they are known.
    reference, stream : Neighbours
        Whether neighbours are alike, before the stream and in it.
    log_evidence : float
        The logarithm of the evidence for a change.
    history : array of shape (points, 7)
        Rows, time, and the logarithm to base 10 of the evidence of each kind.
    alarm : Alarm or None
        The change that was found.
    """

    confidence: float
    burn_in: int
    first: Units | None = None
    overall: Watched | None = None
    regions: tuple[Watched, ...] | None = None
    reference: Neighbours = field(default_factory=Neighbours)
    stream: Neighbours = field(default_factory=Neighbours)
    log_evidence: float = 0.0
    history: Floats = field(default_factory=lambda: np.empty((0, 2 + len(COLUMNS))))
    alarm: Alarm | None = None

    def check(self, features: Collection[str]) -> None:
        """Refuse parts of a file that no monitor of such features has."""
        has_all_columns = self.history.shape[1:] == (2 + len(COLUMNS),)
        must = "a history must have a column for each kind of evidence"
        refuse_if(not has_all_columns, must)
        is_share = 0 < self.confidence < 1
        refuse_if(not is_share, "confidence must lie between 0 and 1")
        names = set(features)
        are_known = {region.name for region in self.regions or ()} <= names
        if self.first is not None:
            of_features = [name for name in self.first.columns if name[:3] == "of "]
            are_known &= {name.removeprefix("of ") for name in of_features} == names
        refuse_if(not are_known, "what is watched must be the features, by their names")

    # -- what there is to say ----------------------------------------------------------

    @property
    def evidence(self) -> float:
        """The evidence for a change."""
        return rounded_number(math.exp(min(self.log_evidence, 700.0)))

    @property
    def missing(self) -> int:
        """Units that are still needed to know what is normal."""
        if self.overall is not None:
            return 0
        return self.burn_in - (0 if self.first is None else len(self.first))

    def caution(self, units: str) -> str | None:
        """Return why the guarantee may not hold, if neighbouring units are alike."""
        if not (self.reference.are_alike or self.stream.are_alike):
            return None
        larger = "" if units == "rows" else "larger "
        return f"Neighbouring {units} are alike: give {larger}groups."

    # -- what is normal ----------------------------------------------------------------

    def begin_with_reference(self, units: Units, stream: Stream) -> None:
        """Take units for what is normal; see whether neighbours are alike."""
        if len(units) < LEAST_UNITS:
            msg = (
                f"What is normal must be told by {LEAST_UNITS} {stream.units} or more; "
                f"found {len(units)}. Pass more, or none to learn from the first rows."
            )
            raise InvalidInputError(msg, "few-rows")
        ranks = np.argsort(np.argsort(units["size"]))  # rounded
        self.reference.look_at(ranks / len(units))
        before_the_stream = Units(units.columns | {"end": 0 * units["end"]})
        self._begin(before_the_stream, stream)

    def begin_with_tables(self, distribution: ZDistribution, seed: int) -> None:
        """Read what is normal off the quantiles that a recalibrator has learned.

        Tables of the quantiles of n rows stand for n z-scores, or 1,000 if n is more.

        Ranks compare values that went through one and the same map. The maps of folds
        make several z-scores of an error and u for which the map of all rows has one:
        where z-scores tie, the first rows of the stream say what is normal.
        """
        total = sum(distribution.n_rows)
        if total < LEAST_UNITS:  # or normal, which says nothing of the rows
            return
        z_of_tables = []
        for n_rows, table in zip(distribution.n_rows, distribution.tables, strict=True):
            n = -(-n_rows * min(total, _MOST_NORMAL) // total)  # its share, rounded up
            levels = np.arange(1, n + 1) / (n + 1)
            z_of_tables.append(np.interp(levels, table.levels, table.values))
        z = for_order(np.concatenate(z_of_tables))
        distinct, counts = np.unique(z, return_counts=True)  # rounded
        is_tied = (counts > 1) & (distinct != 0)  # 0 is 0 by any map, and not one
        if counts[is_tied].sum() > _MOST_TIES * z.size:
            return
        zeros = np.zeros(z.size, dtype=np.int64)
        ties = np.random.default_rng([seed, 1]).random(z.size)
        columns = {"size": np.abs(z), "tie": ties, "counted": zeros + 1, "end": zeros}
        if distribution.dim is None:
            columns["z"] = z
        normal = Units(columns)
        self.overall = Watched.begin(normal, 1 - _FOR_REGIONS, FIRST)

    def _begin(self, normal: Units, stream: Stream) -> None:
        """Learn what is normal, and where the regions of features are."""
        names = stream.watched or {}
        if self.overall is None:
            share = 1 - _FOR_REGIONS if names else 1.0
            self.overall = Watched.begin(normal, share, self.burn_in)
        share = _FOR_REGIONS / max(1, len(names))
        regions = [Watched.begin(normal, share, LEAST_UNITS, name) for name in names]
        self.regions = tuple(region for region in regions if region is not None)

    # -- units that arrive -------------------------------------------------------------

    def check_goes_on(self, units: Units) -> None:
        """Refuse vectors where what is normal is numbers, and the other way round."""
        n_ranked = len((self.first or units).ranked)
        if self.overall is not None:
            n_ranked = len(self.overall.evidence.stakes) // 2
        if len(units.ranked) != n_ranked:
            msg = "All batches must be vectors, or none, as what is normal is."
            raise InvalidInputError(msg, "vectors")

    def after(self, units: Units, stream: Stream) -> Detector:
        """Return what there is when these units, up to the end of a stream, have come.

        This one stays as it is.
        """
        new: Detector = _copy(self)
        new._add(units, stream)
        return new

    def _add(self, units: Units, stream: Stream) -> None:
        """Take units, the first of which may still say what is normal."""
        if self.regions is None and self.alarm is None:
            earlier = units.take([]) if self.first is None else self.first
            missing = self.burn_in - len(earlier)
            self.first = earlier.plus(units.take(slice(missing)))
            if self.overall is not None:  # what is normal is known, but not where
                self._look_at(units.take(slice(missing)), stream)
            if len(self.first) < self.burn_in:
                return
            self._begin(self.first, stream)
            self.first = None
            units = units.take(slice(missing, None))
        for start in range(0, len(units), _PIECE):
            self._look_at(units.take(slice(start, start + _PIECE)), stream)

    def _look_at(self, units: Units, stream: Stream) -> None:
        """Bet on units, up to the one that shows a change."""
        if self.alarm is not None or self.overall is None or not len(units):
            return
        watches = [self.overall, *(self.regions or ())]
        looks = [watch.look_at(units) for watch in watches]
        best = np.max([path.kinds.max(axis=1) for path, _ in looks], axis=0)
        crossed = best >= -math.log(1 - self.confidence)
        is_alarm = bool(crossed.any())

        # what comes after an alarm is not looked at
        end = int(np.argmax(crossed)) + 1 if is_alarm else len(units)
        looked_at = units.take(slice(end))
        paths = [path.until(end) for path, _ in looks]
        for watch, path in zip(watches, paths, strict=True):
            watch.evidence.keep(path, looked_at)
        _, ranks = looks[0]
        self.stream.look_at(ranks[:end])
        self.log_evidence = float(best[end - 1])
        self._remember(looked_at, paths, last=is_alarm)
        if is_alarm:
            self._raise(watches, paths[0].kinds[-1], looked_at, stream)

    def _remember(self, units: Units, paths: list[Path], *, last: bool) -> None:
        """Add points to the history: after every tenth unit, and at the alarm."""
        overall = paths[0].kinds
        logs = np.zeros((len(units), len(COLUMNS)))
        logs[:, : overall.shape[1]] = overall
        if len(paths) > 1:
            logs[:, -1] = np.max([path.kinds.max(axis=1) for path in paths[1:]], axis=0)
        points = np.column_stack([units["end"], units["time"], logs / math.log(10)])
        n_before = 0 if self.overall is None else self.overall.evidence.n_units
        shown = (n_before - np.arange(len(units))[::-1]) % _EVERY == 0
        shown[-1] |= last
        self.history = np.vstack([self.history, points[shown]])

    def _raise(
        self, watches: list[Watched], last: Floats, units: Units, stream: Stream
    ) -> None:
        """Raise the alarm of the kind that the rows since its start speak for most."""
        # all rows are watched first; a region of a feature must clearly gain more
        gained = [watch.evidence.gained.max(axis=1) for watch in watches]
        of_features = [of_kinds.max() for of_kinds in gained[1:]]
        if max(of_features, default=-np.inf) > gained[0].max() + _LUCK:
            at_watch = 1 + int(np.argmax(of_features))
            kind = int(gained[at_watch].argmax())
        else:
            at_watch = 0
            kind = int(last.argmax())

        # what it has summed up since the change most likely started
        watch = watches[at_watch]
        at = watch.evidence.best(kind)
        facts = watch.evidence.facts[at]
        since = int(watch.evidence.start[at])
        is_bias = watch.name is None and kind >= 2
        self.alarm = Alarm(
            kind="region" if watch.name else CHANGES[kind],
            since=since,
            size=rounded_number(facts[2 if is_bias else 1] / max(facts[0], 1e-300)),
            row=int(units["end"][-1]),
            evidence=self.evidence,
            confidence=self.confidence,
            units=stream.units,
            caution=self.caution(stream.units),
            since_time=self._time_of(since + 1, stream.times),
            time=self._time_of(int(units["end"][-1]), stream.times),
            column=watch.name,
            region=watch.words(kind) if watch.name else None,
        )

    def _time_of(self, row: int, times: str) -> float | str | None:
        """Return when a row came, or the first after it that the history has."""
        # whole numbers
        time = self.history[np.searchsorted(self.history[:, 0], row), 1]
        if times == "dates":
            moment = str(np.datetime64(round(time), "s"))
            return moment.removesuffix("T00:00:00").replace("T", " ")
        return None if times == "none" else float(time)


def _copy(value: Any) -> Any:
    """Return a copy of what changes; arrays are replaced, never changed, and shared."""
    if isinstance(value, dict):
        return {name: _copy(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_copy(part) for part in value)
    if is_dataclass(value):
        new = copy(value)
        vars(new).update(_copy(vars(value)))
        return new
    return value
