"""Watch errors and uncertainties as they arrive, and say when they have changed."""

from __future__ import annotations

import json
import math
import pathlib
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np

from .._support.checks import (
    Floats,
    Ints,
    Labels,
    as_array,
    as_column,
    check_column,
    check_count,
    check_fraction,
    check_same_length,
)
from .._support.files import write_text
from .._support.labels import Categories, label_text
from .._support.notices import warn
from ..exceptions import InvalidInputError, RepeatedRowsWarning
from ..maps.prediction import recalibrate, value_of
from ..persistence.codec import (
    Decoder,
    Encoder,
    construct,
    place,
    refuse,
    require_names,
)
from ..persistence.files import from_document, read_json, to_document
from ..predictions import Predictions, as_predictions, fitted_names, group_codes
from .alarm import Alarm, History
from .dependence import Dependence
from .evidence import Evidence, Path, Regions
from .reference import N_SIZES, WEIGHTS, Ranks, Reference, Scores

BLOCK = 10  # rows between two looks
GROUPS = 2  # or groups, which have some rows each
LEAST = 20  # rows of a calibration set, or groups
PIECE = 10_000  # rows that are worked on at once, which bounds the memory needed
FORMAT, VERSION = "sigmascale monitor", 3
# What is staked on uncertainties too small, too large, and on a bias up and down.
_SHARES = np.array([0.36, 0.36, 0.14, 0.14])
_KINDS = ("too small", "too large", "biased", "biased")
_CLEAR, _PATIENCE = 6.0, 200  # log-odds of a shift; rows to wait for them at most
_LOCAL, _LONGER = 3.0, 300  # the same of a region, against a factor for all rows
_LUCK = 0.5  # by which the best of many regions is ahead without being better
_FOR_REGIONS = 0.2  # share that is staked on regions, if there are features
_IN_REGIONS = [1, 2, 5, 6]  # the bets on factors there: two above 1, two below


def _no_scores() -> Scores:
    return Scores(*np.empty((3, 0)))


@dataclass(frozen=True)
class Arrivals:
    """Some rows of a stream, or groups of rows.

    Attributes
    ----------
    scores : Scores
        Their z-scores.
    counts : array of int
        How many rows each stands for.
    features : dict of str to array
        The columns of features by name; those of a group are those of its first row.
    times : list
        Numbers or text; None where there are none. The same.
    """

    scores: Scores = field(default_factory=_no_scores)
    counts: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    features: dict[str, Labels] = field(default_factory=dict)
    times: list[float | str | None] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        z: Floats,
        rng: np.random.Generator,
        features: dict[str, Labels],
        times: list[float | str | None] | None = None,
    ) -> Arrivals:
        """Return rows, each of which draws its place among equal ones."""
        scores = Scores(z, np.abs(z), rng.random(z.size))
        counts = np.ones(z.size, dtype=np.int64)
        return cls(scores, counts, features, times or [None] * z.size)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.scores)

    def plus(self, later: Arrivals) -> Arrivals:
        """Return these and later ones."""
        if not len(self):
            return later
        together = {
            name: np.concatenate([column, later.features[name]])
            for name, column in self.features.items()
        }
        counts = np.concatenate([self.counts, later.counts])
        scores = self.scores.plus(later.scores)
        return Arrivals(scores, counts, together, self.times + later.times)

    def split(self, n: int) -> tuple[Arrivals, Arrivals]:
        """Return the first n, and the others."""
        return self._slice(slice(n)), self._slice(slice(n, None))

    def _slice(self, which: slice) -> Arrivals:
        features = {name: column[which] for name, column in self.features.items()}
        scores, counts = self.scores.take(which), self.counts[which]
        return Arrivals(scores, counts, features, self.times[which])

    def in_groups(self, starts: Ints) -> Arrivals:
        """Return groups that start at some of the rows and reach to the next."""
        counts = np.diff(starts, append=len(self))
        z, size = (
            np.add.reduceat(each, starts) / counts if starts.size else np.empty(0)
            for each in (self.scores.z, self.scores.size)
        )
        features = {name: column[starts] for name, column in self.features.items()}
        times = [self.times[i] for i in starts.tolist()]
        scores = Scores(z, size, self.scores.ties[starts])
        return Arrivals(scores, counts, features, times)

    @property
    def is_sound(self) -> bool:
        """Whether columns have the same length, for those that come from a file."""
        columns = self.counts, *self.features.values()
        return len(self.times) == len(self) and all(
            each.shape == (len(self),) for each in columns
        )


@dataclass(eq=False, repr=False)
class _State:
    """What a monitor remembers beside its recalibrator, which is what a file has."""

    confidence: float
    burn_in: int
    alarm: Alarm | None = None
    n_rows: int = 0
    history: History = field(default_factory=History)
    belongs_to: dict[str, str] = field(default_factory=dict)
    _log_evidence: float = 0.0
    # below, a row is a group where there are groups; here rows are rows
    _rows_seen: int = 0
    _worked_on: int = 0  # rows; the others wait
    _crossed: int | None = None  # the row at which a change was plain
    _waiting: Arrivals = field(default_factory=Arrivals)
    _columns: list[str] | None = None  # of features; None before all rows
    _grouped: bool | None = None  # the same
    _open: Arrivals = field(default_factory=Arrivals)  # the last group, if it goes on
    _label: str | None = None  # of that group
    _first: Arrivals = field(default_factory=Arrivals)  # of the burn-in, with features
    # the number and the time of the row at which each possible change starts
    _starts: dict[int, tuple[int, float | str | None]] = field(default_factory=dict)
    _dependence: Dependence = field(default_factory=Dependence)
    _reference: Reference | None = None
    _overall: Evidence | None = None  # before all rows
    _regions: list[Regions] | None = None

    @property
    def is_sound(self) -> bool:
        """Whether evidence is that of all kinds of change, and rows are counted."""
        shape = None if self._overall is None else self._overall.stakes.shape
        known = shape == (_SHARES.size, N_SIZES) and self._reference is not None
        least = min(self.n_rows, self._rows_seen, self._worked_on)
        return least >= 0 and (shape is None or known)


class Monitor(_State):
    """Watch whether errors still go with their uncertainties as they used to.

    Rows or batches of rows arrive through :meth:`update`. At any time, `alarm` is None,
    or says that uncertainties have become too small or too large, for all rows or in a
    region of a feature, or that predictions have become biased: since when, how much,
    and what to do. While nothing changes, the probability that an alarm is *ever*
    raised, however long the monitor runs and however often one looks, is at most
    1 − `confidence`.

    Parameters
    ----------
    calibration : recalibrator or array-like of shape (m,), optional
        What is normal. Either z-scores, error / uncertainty, of a calibration set that
        the uncertainties were not fitted on; or a fitted recalibrator, whose
        `conformalize` has seen such rows. Uncertainties that are passed to
        :meth:`update` are then recalibrated first. If there are no such z-scores, the
        first rows of the stream stand for them, see `burn_in`.
    X : array-like or data frame of shape (m, n_features), optional
        Features of a calibration set of z-scores. Each region of them is then compared
        with its own rows of that set; otherwise with all of it, as if z-scores had the
        same law everywhere.
    groups : array-like of shape (m,), optional
        Labels of the rows of a calibration set of z-scores; those with the same label
        belong together, as frames of a trajectory do. Rows that arrive must have
        groups then, too.
    confidence : float, default 0.95
        One minus the probability that a stream without a change ever raises an alarm.
    burn_in : int, default 200
        Rows at the beginning of the stream that say where the tenths of features lie;
        without a calibration set, they say what is normal, too. Groups, where there
        are some.
    random_state : int, default 0
        Seed of the order of equal z-scores; others need no random numbers.

    Attributes
    ----------
    alarm : Alarm or None
        The first change that was found. After it nothing more is looked for: mend
        what is wrong, and start a new monitor.
    n_rows : int
        Rows that have arrived.
    evidence : float
        The evidence for a change; at 1 / (1 − confidence) the alarm is raised.
    history : History
        The evidence over time, for plots: some hundred points however long it runs.
    caution : str or None
        Why alarms cannot be trusted, if rows that follow each other resemble each other
        too much to be independent. While they are independent, the probability that
        this is ever said is at most 1 − `confidence`.
    belongs_to : dict of str to str
        Anything that tells what the state belongs to; it is saved with it.

    Notes
    -----
    What rows pay to bets on their rank among the calibration set and all rows before
    them is a martingale while nothing changes. Its bets are for changes of many sizes
    and for all start times, so that a late change is found as well; Ville's inequality
    bounds the probability that it ever grows large. The rows are looked at in blocks of
    10, whether they arrive alone or in batches. Memory does not grow with the stream.

    All of this needs rows that could have come in any other order. Where they come in
    groups, each group counts as one row, whose z and abs(z) are the means of its rows,
    and is ranked among groups. If nobody says so, neighbours are compared with rows
    further apart: see `caution`.

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
    >>> monitor = ss.Monitor(rng.normal(size=1000))
    >>> u = rng.uniform(1, 2, size=3000)
    >>> monitor.update(u * rng.normal(size=3000), u).alarm
    >>> alarm = monitor.update(1.5 * u * rng.normal(size=3000), u).alarm
    >>> alarm.kind, alarm.since, alarm.row, round(alarm.size, 1)
    ('too small', 3000, 3140, 1.4)
    """

    def __init__(
        self,
        calibration: Any = None,
        X: Any = None,
        *,
        groups: Any = None,
        confidence: float = 0.95,
        burn_in: int = 200,
        random_state: int = 0,
    ) -> None:
        super().__init__(
            check_fraction(confidence, "confidence"),
            check_count(burn_in, "burn_in", least=LEAST),
        )
        seed = check_count(random_state, "random_state", least=0)
        self._rng = np.random.default_rng(seed)
        self.scaler = calibration if hasattr(calibration, "predict") else None
        z = calibration
        if self.scaler is not None:
            if not hasattr(self.scaler, "map_"):
                msg = "`calibration` must be a fitted recalibrator; call its fit first."
                raise InvalidInputError(msg)
            scores = getattr(self.scaler, "conformal_", None)
            z = None if scores is None else scores.z
        if z is None or self.scaler is not None:
            for name, given in (("X", X), ("groups", groups)):
                if given is not None:
                    msg = (
                        f"`{name}` must come with z-scores of its rows as "
                        "`calibration`; a recalibrator keeps them in another order. "
                        "Pass error / predict(...)."
                    )
                    raise InvalidInputError(msg)
        if z is None:
            return
        z = check_column(z, "calibration")
        features: dict[str, Labels] = {}
        if X is not None:
            rows = as_predictions(z, np.ones(z.size), X)
            self._columns = list(rows.names[1:])
            features = _watched(rows)
        normal = Arrivals.of(z, self._rng, features)
        if self.scaler is None:
            self._grouped = groups is not None
        if groups is not None:
            normal = _gathered(normal, group_codes(groups, z, "calibration"))
        self._reference = self._normal(normal.scores)
        if X is not None:
            self._learn_regions(normal, own=True)

    @property
    def evidence(self) -> float:
        """The evidence for a change; at 1 / (1 − confidence) the alarm is raised."""
        return math.exp(min(self._log_evidence, 700.0))

    @property
    def knows_normal(self) -> bool:
        """Whether there is something to compare with: a calibration set or burn-in."""
        return self._reference is not None

    @property
    def is_grouped(self) -> bool:
        """Whether rows come in groups, each of which counts as one."""
        return bool(self._grouped)

    @property
    def caution(self) -> str | None:
        """Why alarms cannot be trusted, if rows are not independent."""
        if self._dependence.log_evidence < self._limit:
            return None
        kind = "groups" if self.is_grouped else "rows"
        return (
            f"Alarms cannot be trusted: {kind} that follow each other resemble each "
            "other, and are not independent. Say which rows belong together (groups), "
            f"or take every tenth of the {kind}."
        )

    @property
    def _limit(self) -> float:
        """The logarithm of the evidence at which something is said."""
        return -math.log(1 - self.confidence)

    @property
    def _block(self) -> int:
        """Rows, or groups, between two looks."""
        return GROUPS if self.is_grouped else BLOCK

    def update(
        self,
        error: Any,
        uncertainty: Any = None,
        X: Any = None,
        time: Any = None,
        groups: Any = None,
    ) -> Self:
        """Take one more row, or more of them, in the order in which they came.

        Parameters
        ----------
        error : float or array-like of shape (n,), or Predictions
            Errors, reference minus prediction; or Predictions, which hold all the rest.
        uncertainty : float or array-like of shape (n,)
            Their uncertainties, strictly positive; if the monitor was given a
            recalibrator, those that it recalibrates.
        X : array-like or data frame of shape (n, n_features), optional
            Features, whose regions are watched: numbers or labels. A recalibrator's
            columns must be among them, but for the uncertainty. Either all calls have
            features, or none.
        time : number, text, date, or array-like of shape (n,), optional
            When rows came, for `alarm.since_time` and plots.
        groups : label, or array-like of shape (n,), optional
            Labels of rows that belong together. Rows of a group come one after another,
            also in several calls, and are looked at when the next group begins; those
            of Predictions end with the call. Either all calls have groups, or none. A
            calibration set must have them, too; a recalibrator's has none, and the
            first groups of the stream take its place.

        Returns
        -------
        self
        """
        labels = None
        if not isinstance(error, Predictions):
            error, uncertainty = np.atleast_1d(error), np.atleast_1d(uncertainty)
            X = _one_row(X) if error.size == 1 else X
            groups = None if groups is None else np.atleast_1d(groups)
        rows = as_predictions(error, uncertainty, X, groups)
        if groups is not None:
            found = Categories.of(as_column(groups, "groups"))
            texts = [label_text(each) for each in found.labels]
            labels = [texts[code] for code in found.codes]
        elif rows.groups is not None:
            labels = [*map(str, rows.groups)]
        z = rows.z if self.scaler is None else self._recalibrated(rows)
        times = _times(rows.time if time is None else time, z)
        self._compare(list(rows.names[1:]), labels is not None)
        arrived = Arrivals.of(z, self._rng, _watched(rows), times)
        if labels is not None:
            arrived = self._whole_groups(arrived, labels, go_on=groups is not None)
        self.n_rows += z.size
        was_told = self.caution
        self._dependence.take(arrived.scores.z, arrived.scores.size)
        if self.caution and not was_told:
            warn(self.caution, RepeatedRowsWarning, stacklevel=2)
        if self.alarm is None:
            self._waiting = self._waiting.plus(arrived)
            self._work()
        return self

    def _compare(self, names: list[str], grouped: bool) -> None:
        """Refuse rows that have other columns than those before them."""
        if self._columns is None:
            self._columns = names
        elif self._columns != names:
            had, has = (", ".join(each) or "none" for each in (self._columns, names))
            msg = f"`X` must have the same features in all calls; had {had}, has {has}."
            raise InvalidInputError(msg)
        if self._grouped is None:
            self._grouped = grouped
            if grouped:
                self._reference = None  # a recalibrator does not know groups of rows
        elif self._grouped != grouped:
            msg = (
                "`groups` must be given in all calls and for the calibration set, or "
                f"nowhere; {'were' if self._grouped else 'were not'} given before."
            )
            raise InvalidInputError(msg)

    def _whole_groups(
        self, rows: Arrivals, labels: list[str], *, go_on: bool
    ) -> Arrivals:
        """Return the groups that have ended; the last waits for more rows."""
        together = self._open.plus(rows)
        names = np.array([self._label] * len(self._open) + labels, dtype=object)
        starts = np.flatnonzero(np.append(True, names[1:] != names[:-1]))
        found = names[starts].tolist()
        if len(set(found)) < len(found):
            again = next(each for i, each in enumerate(found) if each in found[:i])
            msg = (
                f"`groups` must have the rows of a group one after another; {again!r} "
                "comes back after other groups. Sort the rows by group."
            )
            raise InvalidInputError(msg)
        ended, self._open = together.split(int(starts[-1]))
        self._label = labels[-1] if go_on else None
        return ended.in_groups(starts[:-1])

    def _normal(self, scores: Scores, name: str = "calibration") -> Reference:
        """Return what is normal, if these z-scores can say it."""
        n, what = len(scores), "groups" if self.is_grouped else "z-scores"
        if n < LEAST:
            msg = (
                f"`{name}` must have at least {LEAST} {what}; found {n}. Pass more, or "
                "None to learn from the first rows."
            )
            raise InvalidInputError(msg)
        if not scores.size.any():
            msg = f"`{name}` must have errors; all {n} {what} are 0."
            raise InvalidInputError(msg)
        return Reference.of(scores)

    def _recalibrated(self, rows: Predictions) -> Floats:
        """Return the z-scores that the recalibrator leaves."""
        names = fitted_names(self.scaler)
        others, features = list(names[1:]), rows.names[1:]
        if set(others) <= set(features):
            rows = rows.with_features(others)
        elif len(others) != len(features):  # else in the right order, without names
            msg = (
                "`X` must have the features that the recalibrator was fitted on, "
                f"{', '.join(others)}; found {', '.join(features) or 'none'}."
            )
            raise InvalidInputError(msg)
        rows = rows.changed(names=names)
        scaler: Any = self.scaler
        u = recalibrate(scaler.map_, rows, smallest=scaler.min_uncertainty_)
        shift = getattr(scaler, "shift_", None)
        left = rows.errors if shift is None else rows.errors - value_of(shift, rows)
        return np.asarray(left / u)

    def _work(self) -> None:
        """Look at all rows that are enough for a block."""
        if self._reference is None:
            if len(self._waiting) < self.burn_in:
                return
            first, self._waiting = self._waiting.split(self.burn_in)
            self._reference = self._normal(first.scores, "the first rows")
            self._worked_on = self.burn_in
            self._rows_seen = int(first.counts.sum())
            self._learn_regions(first)
        if self._overall is None:
            shares = _SHARES * (1 - _FOR_REGIONS if self._columns else 1)
            self._overall = Evidence.begin(
                shares, self._worked_on, WEIGHTS, 3 + self._reference.n_bins
            )
        block = self._block
        while self.alarm is None and len(self._waiting) >= block:
            n = min(len(self._waiting), PIECE) // block * block
            if self._columns and self._regions is None:
                n = min(n, -(-(self.burn_in - len(self._first)) // block) * block)
            if self._crossed is not None:
                n = block
            rows, self._waiting = self._waiting.split(n)
            seen = self._look_at(rows)
            rows, unseen = rows.split(seen)
            self._waiting = unseen.plus(self._waiting)
            if self._columns and self._regions is None:
                self._first = self._first.plus(rows)
                if len(self._first) >= self.burn_in:
                    self._learn_regions(self._first)
                    self._first = Arrivals()

    def _learn_regions(self, first: Arrivals, *, own: bool = False) -> None:
        """Learn where regions are; if asked to, also what is normal in each."""
        share = _FOR_REGIONS / max(1, len(first.features))
        found = (
            Regions.learn(name, column, share, self._worked_on)
            for name, column in first.features.items()
        )
        self._regions = [regions for regions in found if regions is not None]
        for regions in self._regions if own else []:
            regions.learn_normal(first.scores, first.features[regions.feature])

    def _look_at(self, rows: Arrivals) -> int:
        """Bet on rows, a whole number of blocks, up to the one that shows a change.

        Returns the number of rows that were looked at.
        """
        assert self._reference is not None
        assert self._overall is not None
        scores, block, n_bins = rows.scores, self._block, self._reference.n_bins
        n_blocks = len(rows) // block
        payment = self._reference.pay(scores)
        ratios, bins = payment.ratios, payment.bins
        sums = np.column_stack([np.ones(len(rows)), scores.z, scores.size])
        # what each block of rows pays, and its sums: overall, and by region
        growth = [np.log(ratios.reshape(n_blocks, block, -1, N_SIZES).prod(axis=1))]
        blocks = np.repeat(np.arange(n_blocks), block)
        counts = np.bincount(blocks * n_bins + bins, minlength=n_blocks * n_bins)
        whole = sums.reshape(n_blocks, block, 3).sum(axis=1)
        totals = [np.hstack([whole, counts.reshape(n_blocks, n_bins)])[:, None]]
        watched, payments = [self._overall], []
        for regions in self._regions or []:
            codes = regions.parts(rows.features[regions.feature])
            own = regions.pay(scores, codes)
            logs = np.log(ratios if own is None else own.ratios)[:, _IN_REGIONS]
            paid = regions.totals(codes, blocks, logs)
            payments.append(own)
            growth.append(np.concatenate([paid[..., :2], paid[..., 2:]], axis=1))
            totals.append(np.tile(regions.totals(codes, blocks, sums), (1, 2, 1)))
            watched.append(regions.evidence)
        paths = [
            each.follow(paid, block) for each, paid in zip(watched, growth, strict=True)
        ]
        best = np.max([path.kinds.max(axis=1) for path in paths], axis=0)
        crossed = best >= self._limit
        end = int(np.argmax(crossed)) + 1 if crossed.any() else n_blocks
        for each, path, paid, total in zip(watched, paths, growth, totals, strict=True):
            each.keep(path.until(end), paid[:end], total[:end], self._worked_on, block)
        self._reference.keep(payment, end * block)
        for regions, own in zip(self._regions or [], payments, strict=True):
            if own is not None:
                regions.keep(own, end * block)
        self._remember(rows, paths, watched, end)
        self._worked_on += end * block
        self._rows_seen += int(rows.counts[: end * block].sum())
        self._log_evidence = float(best[end - 1])
        if crossed.any() and self._crossed is None:
            self._crossed = self._worked_on
        if self._crossed is not None:
            last = [path.kinds[end - 1] for path in paths]
            self._name_change(last, watched, rows.times[end * block - 1])
        return end * block

    def _remember(
        self, rows: Arrivals, paths: list[Path], watched: list[Evidence], end: int
    ) -> None:
        """Keep points of the history, and the times of possible starts."""
        ends = np.arange(1, end + 1) * self._block
        inside = [path.kinds[:end].max(axis=1) for path in paths[1:]]
        region = np.max(inside, axis=0) if inside else np.full(end, np.nan)
        points = np.column_stack([paths[0].kinds[:end], region]) / math.log(10)
        times = [rows.times[i - 1] for i in ends]
        numbers = self._rows_seen + np.cumsum(rows.counts)
        self.history.add(numbers[ends - 1], times, points)
        possible = {int(row) for each in watched for row in each.start.flat}
        for row in possible - set(self._starts):
            if 0 <= (at := row - self._worked_on) < len(rows):
                number = int(numbers[at] - rows.counts[at])
                self._starts[row] = number, rows.times[at]
        self._starts = {k: v for k, v in self._starts.items() if k in possible}

    def _name_change(
        self, evidence: list[Floats], watched: list[Evidence], time: float | str | None
    ) -> None:
        """Raise the alarm whose kind the rows speak for most, once that is clear.

        A shift and a factor may look alike in the first rows, and so may a factor for
        all rows and one for a region; a few more tell.
        """
        assert self._reference is not None
        assert self._crossed is not None
        normal, inside = self._reference, watched[1:]
        gained = [each.gained.max() for each in inside]
        where = int(np.argmax(gained)) if gained else 0
        local = max(gained, default=-np.inf) - watched[0].gained.max() - _LUCK
        patience = _LONGER if abs(local) < _LOCAL else 0
        regions, found = None, watched[0]
        if local > 0 and self._regions:
            regions, found = self._regions[where], inside[where]
            kind = int(found.gained.argmax())
        else:
            *_, counts = found.sums_since(int(evidence[0].argmax()))
            odds = normal.shift_or_factor(counts)
            unlikely = odds < 0 and evidence[0][2:].max() < 0
            if abs(odds) < _CLEAR and not unlikely:
                patience = max(patience, _PATIENCE)
            # the better of too small and too large, or of biased up and down
            family = 2 if odds > 0 else 0
            kind = family + int(evidence[0][family : family + 2].argmax())
            if not found.gained[kind]:  # nor does a row since then speak for it
                kind = int(found.gained.argmax())
        if self._worked_on < self._crossed + patience:
            return
        biased = regions is None and kind >= 2
        usual = regions.mean_size(kind) if regions else None
        usual = usual or normal.mean_size
        n, z, size, _ = found.sums_since(kind)
        start = int(found.start[kind, found.best_size(kind)])
        since, since_time = self._starts.get(start, (start, None))
        self.alarm = Alarm(
            kind="region" if regions else _KINDS[kind],
            since=since,
            size=_rounded(z / n - normal.mean if biased else size / n / usual),
            row=self._rows_seen,
            evidence=_rounded(self.evidence),
            since_time=since_time,
            time=time,
            feature=None if regions is None else regions.feature,
            region=None if regions is None else regions.words(kind),
        )

    def __repr__(self) -> str:
        """Return how many rows have come, and what was found."""
        if self.alarm is not None:
            found = f"alarm: {self.alarm.words}"
        elif not self.knows_normal:
            found = (
                f"waits for {self.burn_in} {'groups' if self.is_grouped else 'rows'}"
            )
        else:
            found = f"no alarm, evidence {self.evidence:.3g}"
        if self.caution:
            found += "; not independent, alarms cannot be trusted"
        return f"<Monitor: {self.n_rows} rows; {found}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state in terms of JSON; see :meth:`from_dict`."""
        encode = Encoder(_PARTS)
        return {
            "format": FORMAT,
            "version": VERSION,
            "scaler": None if self.scaler is None else to_document(self.scaler),
            "random": encode(self._rng.bit_generator.state),
            "state": {
                each.name.strip("_"): encode(getattr(self, each.name))
                for each in fields(_State)
            },
        }

    @classmethod
    def from_dict(cls, found: Any) -> Monitor:
        """Return the monitor that :meth:`to_dict` wrote; it goes on bit for bit.

        Parameters
        ----------
        found : dict
            What :meth:`to_dict` returned, or JSON made of it.
        """
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            refuse(f'this is no monitor: "format" is not "{FORMAT}".')
        if found.get("version") != VERSION:
            refuse(
                f"the format's version is {found.get('version')!r}, and this library "
                f"reads version {VERSION}. Start a new monitor."
            )
        with place("the monitor"):
            keys = {"format", "version", "scaler", "random", "state"}
            require_names("the file", found, keys)
            decode, scaler = Decoder(parts=_PARTS), found["scaler"]
            names = {each.name.strip("_"): each.name for each in fields(_State)}
            state: _State = construct(
                _State, {names[key]: decode(x) for key, x in found["state"].items()}
            )
            monitor = cls(confidence=state.confidence, burn_in=state.burn_in)
            vars(monitor).update(vars(state))
            monitor.scaler = None if scaler is None else from_document(scaler)
            monitor._rng.bit_generator.state = decode(found["random"])
        return monitor

    def save(self, path: str | pathlib.Path) -> None:
        """Write the state to a JSON file, whole or not at all.

        Parameters
        ----------
        path : str or Path
            Where to write; an existing file is replaced.
        """
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False, ensure_ascii=False)
        write_text(pathlib.Path(path), text + "\n")

    @classmethod
    def load(cls, path: str | pathlib.Path) -> Monitor:
        """Read a monitor that :meth:`save` wrote; nothing in the file is executed.

        Parameters
        ----------
        path : str or Path
            A file written by :meth:`save`.
        """
        found = read_json(path)
        with place(str(path)):
            return cls.from_dict(found)


_PARTS = (
    *(Alarm, Arrivals, Dependence, Evidence, History),
    *(Ranks, Reference, Regions, Scores),
)


def _rounded(value: float) -> float:
    """Return a number without the digits that depend on how rows were divided."""
    return float(f"{value:.9g}")


def _gathered(rows: Arrivals, codes: Any) -> Arrivals:
    """Return the groups of rows that may be in any order."""
    order = np.argsort(codes, kind="stable")
    scores = rows.scores.take(order)
    features = {name: column[order] for name, column in rows.features.items()}
    starts = np.searchsorted(codes[order], np.unique(codes))
    return Arrivals(scores, rows.counts, features, rows.times).in_groups(starts)


def _times(time: Any, rows: Floats) -> list[float | str | None]:
    """Return the times of rows as JSON knows them."""
    if time is None:
        return [None] * rows.size
    times = np.atleast_1d(as_array(time, "time"))
    check_same_length("error", rows, "time", times)
    if times.dtype.kind in "biuf":
        floats: list[float | str | None] = times.astype(float).tolist()
        return floats
    return [_plain_time(each) for each in times]


def _plain_time(time: Any) -> float | str | None:
    """Return a time as JSON knows it: a number, or text."""
    if time is None or isinstance(time, str):
        return time
    if isinstance(time, (int, float, np.integer, np.floating)):
        return float(time)
    return str(time)


def _one_row(X: Any) -> Any:
    """Return the features of one row, which may be plain values, as a table."""
    if X is None or hasattr(X, "columns"):
        return X
    if isinstance(X, dict):
        return {name: np.atleast_1d(value) for name, value in X.items()}
    return np.reshape(X, (1, -1))


def _watched(rows: Predictions) -> dict[str, Any]:
    """Return the features that are watched: numbers, and labels as text."""
    return {
        name: np.array([label_text(each) for each in rows.labels(name).values()])
        if rows.is_labelled(name)
        else rows.columns[rows.position(name)]
        for name in rows.names[1:]
    }
