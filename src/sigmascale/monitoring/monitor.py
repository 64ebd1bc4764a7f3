"""Watched errors and uncertainties as they arrive, and say when they have changed."""

from __future__ import annotations

import math
import pathlib
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from .._support.checks import Floats, Ints, check_count, check_fraction
from .._support.hashing import hash_of_rows
from .._support.render import as_plain
from .._support.text import listed
from ..exceptions import InvalidInputError
from ..predictions.predictions import Predictions, check_predictions
from ..recalibration.fitted_rows import DISTINCT
from ..recalibration.persistence import (
    by_name,
    floats,
    index,
    many,
    number,
    one_of,
    optional,
    plain,
    refuse_if,
    save,
    stored,
    text,
)
from ..recalibration.recalibrator import Recalibrator
from .evidence import Path, Watched
from .ranks import LEAST_UNITS, Units

_PIECE = 2000  # units that are worked on at once, which bounds the memory needed
_FIRST = 200  # rows, or groups, that say what is normal, at least
_EVERY = 10  # units from one point of the history to the next
_FOR_REGIONS = 0.2  # share that is staked on regions, if there are features
_LUCK = 0.5  # by which the best of many regions is ahead without being better
_MOST_NORMAL = 1000  # values that are read off the tables of a distribution
# Neighbours are alike from this correlation of abs(z), and so many standard errors, on.
_ALIKE_NEIGHBOURS = 0.05
_SURELY = 3.0
COLUMNS = ("too small", "too large", "biased up", "biased down", "in a region")
_CHANGES = ("too small", "too large", "biased", "biased")


@stored(
    **dict.fromkeys(("since", "row"), index),
    **dict.fromkeys(("size", "evidence", "confidence"), number),
    **dict.fromkeys(("caution", "column", "region"), optional(text)),
    **dict.fromkeys(("since_time", "time"), plain),
    kind=one_of(*_CHANGES, "region"),
    units=one_of("rows", "groups"),
)
@dataclass(frozen=True)
class Alarm:
    """A change since the rows that show what is normal, and what to do about it.

    Attributes
    ----------
    kind : str
        "too small" or "too large" uncertainties, "biased" predictions, or uncertainties
        that are wrong in a "region" of a feature.
    since : int
        The row of the stream, counted from 0, at which the change most likely began.
    size : float
        How much: the factor by which errors have grown relative to u, so that
        multiplying u by it would make up for it; or, if predictions are biased, how far
        the mean of error / u has moved.
    row : int
        How many rows had been seen when it was found.
    evidence : float
        How many times over the evidence speaks for a change; the alarm is raised at
        1 / (1 − confidence).
    confidence : float
        That of the monitor.
    units : str
        What could have come in any order while nothing changes: "rows" or "groups".
    caution : str or None
        What speaks against that: neighbours that are alike.
    since_time, time : number, str or None
        When the first row of the change came, and that which raised the alarm.
    column, region : str or None
        The feature, and which of its values, if the kind is "region".
    """

    kind: str
    since: int
    size: float
    row: int
    evidence: float
    confidence: float
    units: str
    caution: str | None = None
    since_time: float | str | None = None
    time: float | str | None = None
    column: str | None = None
    region: str | None = None

    @property
    def words(self) -> str:
        """What has happened, how much and since when, in a sentence."""
        when = f"row {self.since}"
        if self.since_time is not None:
            time = self.since_time
            when += f" ({time if isinstance(time, str) else f'time {time:.10g}'})"
        seen = f"since about {when}; seen at row {self.row}"
        if self.kind == "biased":
            way = "low" if self.size > 0 else "high"
            return (
                f"Predictions have become too {way}, by {abs(self.size):.2g} u on "
                f"average, {seen}."
            )
        where = f" for {self.region}" if self.kind == "region" else ""
        way, factor = (
            ("small", self.size) if self.size > 1 else ("large", 1 / self.size)
        )
        return f"u has become {factor:.2f} times too {way}{where}, {seen}."

    @property
    def guarantee(self) -> str:
        """When the alarm may be false, in a sentence or two."""
        share = f"{100 * (1 - self.confidence):.3g} %"
        words = (
            f"While nothing changes, at most {share} of streams ever raise an alarm, "
            f"provided that their {self.units} could as well have come in any order."
        )
        return words if self.caution is None else f"{words} {self.caution}"

    @property
    def suggestion(self) -> str:
        """What to do, in a sentence."""
        if self.kind == "biased":
            return (
                "Retrain the model, or fit the recalibrator anew on the rows since "
                'then, with bias="auto".'
            )
        if self.kind == "region":
            return (
                f"Fit the recalibrator anew on the rows since then, with {self.column} "
                "as a feature."
            )
        return (
            "Fit the recalibrator anew on the rows since then; until there are enough, "
            f"multiply u by {self.size:.2f}."
        )

    def __str__(self) -> str:
        """Return what has happened, what to do, and when that may be false."""
        return f"{self.words} {self.suggestion} {self.guarantee}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, with the words."""
        words = ("words", "suggestion", "guarantee")
        return {**vars(self), **{name: getattr(self, name) for name in words}}


@dataclass(frozen=True)
class MonitorState:
    """What a monitor says at some moment.

    Attributes
    ----------
    n_rows : int
        Rows that have arrived.
    evidence, limit : float
        The evidence for a change, and that at which an alarm is raised.
    alarm : Alarm or None
        The change that was found.
    caution : str or None
        Why the guarantee may not hold: neighbours that are alike.
    missing : int
        Rows, or groups, that are still needed to know what is normal.
    """

    n_rows: int
    evidence: float
    limit: float
    alarm: Alarm | None
    caution: str | None
    missing: int

    @property
    def answer(self) -> str:
        """Whether something has changed: "yes", "no" or "cannot tell"."""
        if self.alarm is not None:
            return "yes"
        return "cannot tell" if self.missing else "no"

    @property
    def words(self) -> str:
        """What is known, in sentences."""
        if self.alarm is not None:
            return str(self.alarm)
        if self.missing:
            return (
                f"Cannot tell yet: {self.n_rows} rows have come, and {self.missing} "
                "more are needed to know what is normal."
            )
        words = (
            f"No change found in {self.n_rows} rows: the evidence for one is "
            f"{self.evidence:.2g}, and an alarm is raised at {self.limit:.3g}."
        )
        return words if self.caution is None else f"{words} {self.caution}"

    def __str__(self) -> str:
        """Return what is known, in sentences."""
        return self.words

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, with the words."""
        alarm = None if self.alarm is None else self.alarm.to_dict()
        words = {"answer": self.answer, "words": self.words}
        return {**as_plain(vars(self)), "alarm": alarm, **words}


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


@stored(
    **dict.fromkeys(("burn_in", "seed", "n_rows", "last_batch"), index),
    **dict.fromkeys(("confidence", "log_evidence", "last_time"), number),
    **dict.fromkeys(("reference", "stream"), Neighbours),
    recalibrator=optional(Recalibrator),
    units=one_of("rows", "groups"),
    times=one_of("none", "numbers", "dates"),
    watched=optional(by_name(one_of("numbers", "labels"))),
    first=optional(Units),
    overall=optional(Watched),
    regions=optional(many(Watched)),
    history=floats,
    alarm=optional(Alarm),
)
class Monitor:
    """Watched whether errors still go with their uncertainties as they used to.

    Batches of rows arrive through :meth:`update`. At any time, `alarm` is None, or says
    that uncertainties have become too small or too large, for all rows or in a region
    of a feature, or that predictions have become biased: how much, since when, and what
    to do.

    While nothing changes, the probability that an alarm is *ever* raised, however long
    the monitor runs and however often one looks, is at most 1 − `confidence`. This
    holds for rows that are exchangeable: they could as well have come in any other
    order. Rows that belong together (frames of a trajectory, hours of a day) are not;
    with `groups` each group counts as one, and groups must be exchangeable. If rows
    next to each other are alike, the monitor says so, but it does not notice every kind
    of dependence: seasons and slowly varying errors look like changes.

    Parameters
    ----------
    normal : Recalibrator or Predictions, optional
        What is normal. A fitted recalibrator: batches are recalibrated first, and what
        it has learned of the distribution of z out of fold is normal, which new rows
        follow but for the small gain of a fit to all rows. Or predictions with errors
        that nothing was fitted on. Without either, or with a recalibrator whose
        distribution is normal, the first rows of the stream stand for them.
    reference : Predictions, optional
        Beside a recalibrator: rows with errors that it was not fitted on; these,
        recalibrated, are normal then.
    confidence : float, default 0.95
        One minus the probability that a stream without a change ever raises an alarm.
    burn_in : int, default 200
        Rows, or groups, at the beginning of the stream that say what is normal, if
        nothing else does, and where the tenths of features lie.
    random_state : int, default 0
        Seed of the order of equal z-scores; others need no random numbers.

    Attributes
    ----------
    alarm : Alarm or None
        The first change that was found. After it nothing more is looked for: mend
        what is wrong, and start a new monitor.
    state : MonitorState
        What there is to say now, in numbers and words.
    history : array of shape (points, 7)
        Rows, time, and the logarithm to base 10 of the evidence for each kind of
        change, after every tenth row.

    Notes
    -----
    What rows pay to bets on their rank among the reference and all rows before them is
    a martingale while nothing changes. Its bets are for changes of many sizes and for
    all start times, so that a late change is found as well; Ville's inequality bounds
    the probability that it ever grows large.

    A group counts by the means of z and abs(z) over its first 1, 2, 3, 4, 6, 8, 12, ...
    rows, as many as it has, and is ranked among groups with as many; where these are
    fewer than 20, the next ones are taken for normal. Regions of a feature, tenths or
    labels, are compared with what was normal in them. Weights do not count.

    References
    ----------
    V. Vovk, Statistical Science 36, 595 (2021), doi:10.1214/20-STS817; A. Ramdas,
    P. Grünwald, V. Vovk and G. Shafer, Statistical Science 38, 576 (2023),
    doi:10.1214/23-STS894

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(1)
    >>> u = rng.uniform(1, 2, size=7000)
    >>> error = u * rng.normal(size=7000) * np.where(np.arange(7000) < 4000, 1, 1.5)
    >>> p = ss.Predictions(error=error, y_std=u)
    >>> monitor = ss.Monitor(p.take(np.arange(1000)))
    >>> monitor.update(p.take(np.arange(1000, 4000))).alarm
    >>> alarm = monitor.update(p.take(np.arange(4000, 7000))).alarm
    >>> alarm.kind, alarm.since, round(alarm.size, 1)
    ('too small', 2999, 1.4)
    """

    def __init__(
        self,
        normal: Any = None,
        *,
        reference: Predictions | None = None,
        confidence: float = 0.95,
        burn_in: int = _FIRST,
        random_state: int = 0,
    ) -> None:
        if isinstance(normal, Predictions) and reference is None:
            reference = normal
            normal = None
        if normal is not None and not hasattr(normal, "scale_"):
            msg = (
                "`normal` must be a fitted Recalibrator, or Predictions whose errors "
                f"are known, without a `reference`; found {type(normal).__name__}."
            )
            raise InvalidInputError(msg, "no-reference")
        # all that follows is what a file has
        self._recalibrator = normal  # what batches go through first
        self._confidence = check_fraction(confidence, "confidence")
        self._burn_in = check_count(burn_in, "burn_in", least=LEAST_UNITS)
        self._seed = check_count(random_state, "random_state", least=0)
        self._n_rows = 0
        self._units = "rows"
        self._times = "none"
        self._last_time = 0.0  # of the rows that have come
        self._last_batch = 0  # a hash of it
        self._watched: dict[str, str] | None = None  # features: "numbers" or "labels"
        # the first of the stream, which are still to say what is normal, or where
        self._first: Units | None = None
        self._overall: Watched | None = None  # all rows; None until something is normal
        self._regions: tuple[Watched, ...] | None = None  # None until they are known
        self._reference = Neighbours()
        self._stream = Neighbours()
        self._log_evidence = 0.0
        self._history: Floats = np.empty((0, 2 + len(COLUMNS)))
        self._alarm: Alarm | None = None
        if reference is not None:
            units = self._ranked(reference, stream=1)
            self._remember_kind(reference)
            self._begin(self._checked(units))
        elif normal is not None:
            self._begin_with(normal)

    # -- what there is to say ----------------------------------------------------------

    @property
    def alarm(self) -> Alarm | None:
        """The change that was found, or None."""
        return self._alarm

    @property
    def history(self) -> Floats:
        """Rows, time, and the logarithm to base 10 of the evidence for each kind."""
        return self._history

    @property
    def state(self) -> MonitorState:
        """What there is to say now, in numbers and words."""
        waits = self._burn_in - (0 if self._first is None else len(self._first))
        return MonitorState(
            n_rows=self._n_rows,
            evidence=_rounded(math.exp(min(self._log_evidence, 700.0))),
            limit=_rounded(1 / (1 - self._confidence)),
            alarm=self._alarm,
            caution=self._caution,
            missing=waits if self._overall is None else 0,
        )

    @property
    def _caution(self) -> str | None:
        """Why the guarantee may not hold, if neighbours are alike."""
        if not (self._reference.are_alike or self._stream.are_alike):
            return None
        larger = "" if self._units == "rows" else "larger "
        return f"Neighbouring {self._units} are alike: give {larger}groups."

    def __repr__(self) -> str:
        """Return what there is to say now."""
        return f"<Monitor: {self.state.words}>"

    # -- rows that arrive --------------------------------------------------------------

    def update(self, p: Predictions) -> Self:
        """Take one more batch of rows, which may be one row.

        Parameters
        ----------
        p : Predictions
            With errors. Rows are taken in the order of their `time`, or in the order
            they have. Groups end with the batch. Features are watched, if the first
            batch (or the reference) has them. All further batches must have the same
            features, groups or none, and times that do not go back; a batch that comes
            twice in a row is refused.

        Returns
        -------
        self
        """
        p = check_predictions(p)
        self._check_goes_on(p)
        # a copy takes the batch: this one is as it was until all is taken
        new = deepcopy(self, {id(self._recalibrator): self._recalibrator})
        new._add(p)
        self.__dict__ = new.__dict__
        return self

    def _add(self, p: Predictions) -> None:
        """Take a batch that goes on with the stream."""
        units = self._ranked(p)
        if self._overall is not None:
            n_ranked = len(self._overall.evidence.stakes) // 2
        else:
            n_ranked = len((self._first or units).ranked)
        if len(units.ranked) != n_ranked:
            msg = "All batches must be vectors, or none, as what is normal is."
            raise InvalidInputError(msg, "vectors")
        self._take(p)  # nothing refuses it any more
        if self._regions is None and self._alarm is None:
            earlier = units.take([]) if self._first is None else self._first
            missing = self._burn_in - len(earlier)
            self._first = earlier.plus(units.take(slice(missing)))
            if self._overall is not None:  # what is normal is known, but not where
                self._look_at(units.take(slice(missing)))
            if len(self._first) < self._burn_in:
                return
            self._begin(self._first)
            self._first = None
            units = units.take(slice(missing, None))
        for start in range(0, len(units), _PIECE):
            self._look_at(units.take(slice(start, start + _PIECE)))

    def _check_goes_on(self, p: Predictions) -> None:
        """Refuse a batch that does not go on with the stream; nothing is changed."""
        units = _units_of(p)
        times = _times_of(p)
        if self._n_rows and (units, times) != (self._units, self._times):
            msg = (
                "All batches must have groups or none of them, and times of one kind "
                f"or none; earlier ones were of {self._units} with {self._times} for "
                f"times, and this is of {units} with {times}. Begin a new monitor."
            )
            raise InvalidInputError(msg, "other-batch")
        if self._watched is not None and set(p.names[1:]) != set(self._watched):
            msg = (
                "All batches must have the features of the first rows: "
                f"{listed(self._watched) or 'none'}; found "
                f"{listed(p.names[1:]) or 'none'}. Leave others out with "
                "p.with_features, or begin a new monitor."
            )
            raise InvalidInputError(msg, "features")
        begin = 0.0 if p.time is None else _seconds(p.time)[0]
        if self._n_rows and begin < self._last_time:
            msg = (
                "Times must not go back: the first of this batch lies before the last "
                "of those before it. Pass rows in order, or without `time`."
            )
            raise InvalidInputError(msg, "time-goes-back")
        batch = _hash_of(p)
        if batch and batch == self._last_batch:
            msg = (
                "These rows were taken already: they are those of the batch before. "
                "Pass each batch once."
            )
            raise InvalidInputError(msg, "same-batch")

    def _take(self, p: Predictions) -> None:
        """Remember of a batch what the next one must go on with."""
        self._remember_kind(p)
        self._n_rows += len(p)
        self._last_batch = _hash_of(p)
        if p.time is not None:
            self._last_time = float(_seconds(p.time)[-1])

    def _remember_kind(self, p: Predictions) -> None:
        """Remember which features rows have, and whether groups and times."""
        self._watched = self._features_of(p)
        self._units = _units_of(p)
        self._times = _times_of(p)

    def _features_of(self, p: Predictions) -> dict[str, str]:
        """Return the features that are watched: those of the first rows."""
        if self._watched is not None:
            return self._watched
        return {
            name: "labels" if p.is_labelled(name) else "numbers" for name in p.names[1:]
        }

    def _ranked(self, p: Predictions, stream: int = 0) -> Units:
        """Return rows as they are ranked, after they are recalibrated."""
        p = check_predictions(p)
        if self._recalibrator is not None:
            p = self._recalibrator.apply(p)
        watched = self._features_of(p)
        times = np.zeros(len(p))
        if p.time is not None:
            p = p.take(np.argsort(p.time, kind="stable"))
            times = _seconds(p.time)
        # each row has its own random number, however rows are divided into batches
        bits = np.random.PCG64([self._seed, stream]).advance(self._n_rows)
        row = self._n_rows + np.arange(len(p))
        columns: dict[str, Any] = {"size": p.abs_z}
        if not p.is_vector:
            columns["z"] = p.z
        columns["tie"] = np.random.Generator(bits).random(len(p))
        columns["counted"] = np.ones(len(p), dtype=np.int64)
        columns |= {"row": row, "end": row + 1, "time": times}
        for name, kind in watched.items():
            columns[f"of {name}"] = _feature(p, name, kind)
        rows = Units(columns)
        return rows if p.groups is None else _gathered(rows, p.groups)

    # -- what is normal ----------------------------------------------------------------

    def _checked(self, units: Units) -> Units:
        """Refuse a reference that is too small; see whether neighbours are alike."""
        if len(units) < LEAST_UNITS:
            msg = (
                f"What is normal must be told by {LEAST_UNITS} {self._units} or more; "
                f"found {len(units)}. Pass more, or none to learn from the first rows."
            )
            raise InvalidInputError(msg, "few-rows")
        ranks = np.argsort(np.argsort(units["size"]))
        self._reference.look_at(ranks / len(units))
        return Units(units.columns | {"end": 0 * units["end"]})  # before the stream

    def _begin_with(self, recalibrator: Recalibrator) -> None:
        """Read what is normal off the quantiles that a recalibrator has learned.

        Tables of the quantiles of n rows stand for n z-scores, or 1,000 if n is more.
        """
        distribution = recalibrator.distribution_
        total = sum(distribution.n_rows)
        if total < LEAST_UNITS:  # or normal, which says nothing of the rows
            return
        z_of_tables = []
        for n_rows, table in zip(distribution.n_rows, distribution.tables, strict=True):
            n = -(-n_rows * min(total, _MOST_NORMAL) // total)  # its share, rounded up
            levels = np.arange(1, n + 1) / (n + 1)
            z_of_tables.append(np.interp(levels, table.levels, table.values))
        z = np.concatenate(z_of_tables)
        zeros = np.zeros(z.size, dtype=np.int64)
        ties = np.random.default_rng([self._seed, 1]).random(z.size)
        columns = {"size": np.abs(z), "tie": ties, "counted": zeros + 1, "end": zeros}
        if distribution.dim is None:
            columns["z"] = z
        normal = Units(columns)
        self._overall = Watched.begin(normal, 1 - _FOR_REGIONS, _FIRST)

    def _begin(self, normal: Units) -> None:
        """Learn what is normal, and where the regions of features are."""
        names = self._watched or {}
        if self._overall is None:
            share = 1 - _FOR_REGIONS if names else 1.0
            self._overall = Watched.begin(normal, share, self._burn_in)
        share = _FOR_REGIONS / max(1, len(names))
        regions = [Watched.begin(normal, share, LEAST_UNITS, name) for name in names]
        self._regions = tuple(region for region in regions if region is not None)

    # -- evidence ----------------------------------------------------------------------

    def _look_at(self, units: Units) -> None:
        """Bet on units, up to the one that shows a change."""
        if self._alarm is not None or self._overall is None or not len(units):
            return
        watches = [self._overall, *(self._regions or ())]
        looks = [watch.look_at(units) for watch in watches]
        best = np.max([path.kinds.max(axis=1) for path, _ in looks], axis=0)
        crossed = best >= -math.log(1 - self._confidence)
        is_alarm = bool(crossed.any())

        # what comes after an alarm is not looked at
        end = int(np.argmax(crossed)) + 1 if is_alarm else len(units)
        looked_at = units.take(slice(end))
        paths = [path.until(end) for path, _ in looks]
        for watch, path in zip(watches, paths, strict=True):
            watch.evidence.keep(path, looked_at)
        _, ranks = looks[0]
        self._stream.look_at(ranks[:end])
        self._log_evidence = float(best[end - 1])
        self._remember(looked_at, paths, last=is_alarm)
        if is_alarm:
            self._raise(watches, paths[0].kinds[-1], looked_at)

    def _remember(self, units: Units, paths: list[Path], *, last: bool) -> None:
        """Add points to the history: after every tenth unit, and at the alarm."""
        overall = paths[0].kinds
        logs = np.zeros((len(units), len(COLUMNS)))
        logs[:, : overall.shape[1]] = overall
        if len(paths) > 1:
            logs[:, -1] = np.max([path.kinds.max(axis=1) for path in paths[1:]], axis=0)
        points = np.column_stack([units["end"], units["time"], logs / math.log(10)])
        n_before = 0 if self._overall is None else self._overall.evidence.n_units
        shown = (n_before - np.arange(len(units))[::-1]) % _EVERY == 0
        shown[-1] |= last
        self._history = np.vstack([self._history, points[shown]])

    def _raise(self, watches: list[Watched], last: Floats, units: Units) -> None:
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
        self._alarm = Alarm(
            kind="region" if watch.name else _CHANGES[kind],
            since=since,
            size=_rounded(facts[2 if is_bias else 1] / facts[0]),
            row=int(units["end"][-1]),
            evidence=self.state.evidence,
            confidence=self._confidence,
            units=self._units,
            caution=self._caution,
            since_time=self._time_of(since + 1),
            time=self._time_of(int(units["end"][-1])),
            column=watch.name,
            region=watch.words(kind) if watch.name else None,
        )

    def _time_of(self, row: int) -> float | str | None:
        """Return when a row came, or the first after it that the history has."""
        time = self.history[np.searchsorted(self.history[:, 0], row), 1]
        if self._times == "dates":
            moment = str(np.datetime64(round(time), "s"))
            return moment.removesuffix("T00:00:00").replace("T", " ")
        return None if self._times == "none" else float(time)

    # -- files -------------------------------------------------------------------------

    def save(self, path: str | pathlib.Path) -> None:
        """Write the state to a file, whole or not at all; `sigmascale.load` reads it.

        Parameters
        ----------
        path : str or Path
            Where to write; an existing file is replaced.
        """
        save(self, path)

    def to_state(self) -> dict[str, Any]:
        """Return what a file has."""
        parts = type(self).stored_parts  # type: ignore[attr-defined]
        return {name: getattr(self, f"_{name}") for name in parts}

    @classmethod
    def from_state(cls, parts: dict[str, Any]) -> Monitor:
        """Return the monitor of a file; it goes on bit for bit."""
        new = cls()
        vars(new).update({f"_{name}": part for name, part in parts.items()})
        return new

    def check(self) -> None:
        """Refuse parts of a file that no monitor has."""
        has_all_columns = self._history.shape[1:] == (2 + len(COLUMNS),)
        must = "a history must have a column for each kind of evidence"
        refuse_if(not has_all_columns, must)
        is_share = 0 < self._confidence < 1
        refuse_if(not is_share, "confidence must lie between 0 and 1")


def _units_of(p: Predictions) -> str:
    """Return what could have come in any order: rows, or groups."""
    return "rows" if p.groups is None else "groups"


def _times_of(p: Predictions) -> str:
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
    if len(p) < LEAST_UNITS or np.unique(hashes).size < DISTINCT * len(p):
        return 0
    return int(np.add.reduce(hashes) >> np.uint64(12))


def _rounded(value: float) -> float:
    """Return a number without the digits that depend on how rows were divided."""
    return float(f"{value:.9g}")


def _feature(p: Predictions, name: str, kind: str) -> Any:
    """Return a feature that is watched: numbers, or labels as text."""
    column = p.columns[p.position(name, "features")]
    if kind == "labels":
        return np.array([label or "missing" for label in p.labels(name).values()])
    # which refuses labels; numbers may be missing
    return p.numbers(name) if p.is_labelled(name) else column


def _gathered(rows: Units, groups: Ints) -> Units:
    """Return the groups of rows, in the order of the first row of each."""
    _, first_row, code, total = np.unique(
        groups, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first_row)
    code = np.argsort(order)[code]
    total = total[order]
    counted = _counted(total)
    # the place of each row within its group
    place = np.empty(code.size, dtype=np.int64)
    starts = np.repeat(np.cumsum(total) - total, total)
    place[np.argsort(code, kind="stable")] = np.arange(code.size) - starts
    used = place < counted[code]
    columns = dict(rows.take(first_row[order]).columns)
    for name in rows.ranked:
        columns[name] = np.bincount(code[used], rows[name][used]) / counted
    end = int(rows["row"][0]) + np.cumsum(total)
    columns |= {"counted": counted, "row": end - total, "end": end}
    return Units(columns)


def _counted(total: Ints) -> Ints:
    """Return the largest of 1, 2, 3, 4, 6, 8, 12, 16, ... that a group has rows for."""
    power = 2 ** np.floor(np.log2(total)).astype(np.int64)
    return np.where(2 * total >= 3 * power, 3 * power // 2, power)


def over_time(p: Predictions, *, confidence: float = 0.95) -> Monitor:
    """Return a monitor that has seen rows in the order of their time.

    The first quarter of the rows, 200 at least, are normal; the others are watched.
    Features are not.

    Parameters
    ----------
    p : Predictions
        With errors and times.
    confidence : float, default 0.95
        One minus the probability of a false alarm.

    Returns
    -------
    Monitor
    """
    rows = check_predictions(p).with_features(())
    n_units = len(rows) if rows.groups is None else int(rows.groups.max()) + 1
    burn_in = max(_FIRST, n_units // 4)
    return Monitor(confidence=confidence, burn_in=burn_in).update(rows)
