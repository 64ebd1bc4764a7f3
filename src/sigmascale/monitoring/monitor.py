"""Watched errors and uncertainties as they arrive, and say when they have changed."""

from __future__ import annotations

import pathlib
from copy import copy
from dataclasses import fields
from typing import Any, Self

from .._support.checks import Floats, check_count, check_fraction
from .._support.render import html_lines
from .._support.text import listed, visible
from ..exceptions import InvalidInputError
from ..predictions.predictions import Predictions, check_predictions
from ..recalibration.persistence import (
    by_name,
    floats,
    index,
    many,
    number,
    one_of,
    optional,
    save,
    stored,
)
from ..recalibration.recalibrator import Recalibrator
from .alarms import Alarm, MonitorState, false_alarms, rounded_number
from .detector import FIRST, Detector, Neighbours
from .evidence import Watched
from .ranks import LEAST_UNITS, Units
from .stream import Stream


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
        that nothing was fitted on. Without either, the first rows of the stream stand
        for them; so they do with a recalibrator whose distribution is normal, or whose
        z-scores tie (ratings, counts): those of its folds are not those of new rows.
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
        normal: Recalibrator | Predictions | None = None,
        *,
        reference: Predictions | None = None,
        confidence: float = 0.95,
        burn_in: int = FIRST,
        random_state: int = 0,
    ) -> None:
        if isinstance(normal, Predictions) and reference is None:
            reference = normal
            normal = None
        is_fitted = normal is None or hasattr(normal, "scale_")
        if isinstance(normal, Predictions) or not is_fitted:
            msg = (
                "`normal` must be a fitted Recalibrator, or Predictions whose errors "
                f"are known, without a `reference`; found {type(normal).__name__}."
            )
            raise InvalidInputError(msg, "no-reference")
        # what batches go through first, whatever becomes of the one that was passed
        self._recalibrator = copy(normal)
        self._stream = Stream(check_count(random_state, "random_state", least=0))
        self._detector = Detector(
            check_fraction(confidence, "confidence"),
            check_count(burn_in, "burn_in", least=LEAST_UNITS),
        )
        if reference is not None:
            rows = check_predictions(reference)
            units = self._stream.ranked(self._recalibrated(rows), 1)
            self._stream = self._stream.of_kind(rows)
            self._detector.begin_with_reference(units, self._stream)
        elif normal is not None:
            self._detector.begin_with_tables(normal.distribution_, self._stream.seed)

    # -- what there is to say ----------------------------------------------------------

    @property
    def alarm(self) -> Alarm | None:
        """The change that was found, or None."""
        return self._detector.alarm

    @property
    def history(self) -> Floats:
        """Rows, time, and the logarithm to base 10 of the evidence for each kind."""
        return self._detector.history

    @property
    def state(self) -> MonitorState:
        """What there is to say now, in numbers and words."""
        now = copy(self)  # to which no other thread adds rows meanwhile
        return MonitorState(
            n_rows=now._stream.n_rows,
            evidence=now._detector.evidence,
            limit=rounded_number(1 / (1 - now._detector.confidence)),
            alarm=now._detector.alarm,
            caution=now._detector.caution(now._stream.units),
            missing=now._detector.missing,
        )

    def __repr__(self) -> str:
        """Return what is watched, what there is to say now, and how rare alarms are."""
        now = copy(self)
        rows = "rows" if now._recalibrator is None else "recalibrated rows"
        watched = now._stream.watched
        features = f", and of regions of {listed(watched)}" if watched else ""
        lines = [
            f"Monitor of all {rows}{features}: {now._stream.n_rows:,} rows seen",
            now.state.words,
        ]
        if now.alarm is None:  # which says it itself
            lines.append(f"{false_alarms(now._detector.confidence)}.")
        return "\n".join(visible(line, keep="") for line in lines)

    def _repr_html_(self) -> str:
        return html_lines(repr(self))

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
        self._stream.check_goes_on(p)
        units = self._stream.ranked(self._recalibrated(p))
        self._detector.check_goes_on(units)
        # copies take the batch: this is as it was until all is taken
        new = copy(self)
        new._stream = self._stream.after(p)
        new._detector = self._detector.after(units, new._stream)
        self.__dict__ = new.__dict__
        return self

    def _recalibrated(self, p: Predictions) -> Predictions:
        """Return rows as they are watched."""
        return p if self._recalibrator is None else self._recalibrator.apply(p)

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
        now = copy(self)
        state = vars(now._stream) | vars(now._detector)
        state["recalibrator"] = now._recalibrator
        parts = type(self).stored_parts  # type: ignore[attr-defined]
        return {name: state[name] for name in parts}

    @classmethod
    def from_state(cls, parts: dict[str, Any]) -> Monitor:
        """Return the monitor of a file; it goes on bit for bit."""
        new = cls()
        new._recalibrator = parts["recalibrator"]
        for name, kind in (("_stream", Stream), ("_detector", Detector)):
            of_kind = {part.name: parts[part.name] for part in fields(kind)}
            setattr(new, name, kind(**of_kind))
        return new

    def check(self) -> None:
        """Refuse parts of a file that no monitor has."""
        self._detector.check(self._stream.watched or {})


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
    burn_in = max(FIRST, n_units // 4)
    return Monitor(confidence=confidence, burn_in=burn_in).update(rows)
