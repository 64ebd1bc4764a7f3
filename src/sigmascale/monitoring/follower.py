"""Intervals that follow a stream: wider after a miss, narrower after a hit."""

from __future__ import annotations

import math
import pathlib
from copy import copy
from fractions import Fraction
from itertools import pairwise
from typing import Any, Self

import numpy as np

from .._support import numerals
from .._support.checks import Floats
from .._support.render import html_lines
from ..exceptions import InvalidInputError
from ..predictions.ordering import in_order_of_appearance
from ..predictions.predictions import Predictions, check_predictions
from ..recalibration import persistence
from ..recalibration.distributions import Distributions, any_bound, check_coverage
from ..recalibration.persistence import index, number, one_of, refuse_if, stored
from ..recalibration.recalibrator import Recalibrator

ROW, GROUP = 0.05, 0.5  # steps of the logarithm: a row's, and a group's
WIDEST = 700.0  # of a logarithm
FINEST_SHARE = (
    1_000_000  # coverages are whole multiples of 1 / this, or of a larger one
)
DIGITS = 9  # of a sum of shares


@stored(
    recalibrator=Recalibrator,
    coverage=number,
    log_stretch=number,
    n_units=index,
    units=one_of("rows", "groups"),
)
class Follower:
    """Intervals of a recalibrator, stretched by a factor t that follows a stream.

    A row that its interval misses makes t larger by exp(0.05 c), where c is the
    coverage asked for, and one that it holds makes t smaller by exp(−0.05 (1 − c)). So
    the share of rows that are held stays near c where u, the model or the world change,
    in whatever way. A group counts once, by its share of misses, with a step of 0.5.

    Parameters
    ----------
    recalibrator : Recalibrator
        A fitted one.
    coverage : float, default 0.9
        Share of the true values that intervals shall hold.

    Attributes
    ----------
    n_units : int
        Rows that have been taken; or groups, where batches have `groups`.
    log_stretch : float
        The logarithm of t, which follows from the number of misses among these.

    Notes
    -----
    Each step is 0.05 (missed − (1 − c)), and log t is their sum. So of n rows, whatever
    they are and however they change, the share of misses is exactly

        1 − c + log t / (0.05 n),

    and with 0.5 in place of 0.05 the mean share of n groups. As t stays between bounds
    wherever errors do, the second part vanishes like 1 / n.

    Misses are counted, and log t is computed from their number: where it comes back to
    0, intervals are those of the recalibrator to the last bit, and hold the same ties.

    *What this is about*: intervals are replayed. A row counts as missed if the interval
    with the t of that moment misses it, which is the one that was given if truths come
    one by one. Where they come late or in batches, rows in between were given older
    intervals; the identity then holds for replayed intervals, and nearly for those that
    were given.

    *What it does not promise*: any window. After a sudden change the next rows are
    missed until t has grown, by a factor of 2 after some 15 misses in a row; in the
    worst 200 rows of nine streams intervals of 90 % held 81 to 87 % where truths came
    one by one, 74 to 85 % where 50 came at a time, and those that stood still 46 to
    84 %. Nor any kind of row: t is one number, so that rows of a region
    that has become worse are missed, and all others get intervals that are too wide.
    And t does not move the centre: for a bias, or a region, fit anew. Without any drift
    the interval score is about 1 % worse than that of intervals that stand still.

    The limits are stretched about the median of each distribution, and stay within the
    bounds of the recalibrator.

    References
    ----------
    I. Gibbs and E. Candès, Adv. Neural Inf. Process. Syst. 34, 1660 (2021),
    arXiv:2106.00170; A. N. Angelopoulos, E. J. Candès and R. J. Tibshirani, ibid. 36,
    23047 (2023), arXiv:2307.16895

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, size=4000)
    >>> error = u * rng.normal(size=4000) * np.where(np.arange(4000) < 2000, 1, 2)
    >>> p = ss.Predictions(y_std=u, error=error)
    >>> r = ss.Recalibrator(ss.TemperatureScaling()).fit(p.take(np.arange(1000)))
    >>> follower = ss.Follower(r, coverage=0.9).update(p.take(np.arange(1000, 3000)))
    >>> low, high = follower.interval(p.take(np.arange(3000, 4000))).T
    >>> round(float(np.mean((low <= error[3000:]) & (error[3000:] <= high))), 1)
    0.9
    >>> round(follower.stretch, 1)
    2.0
    """

    def __init__(self, recalibrator: Recalibrator, coverage: float = 0.9) -> None:
        if not hasattr(recalibrator, "scale_"):
            msg = (
                "`recalibrator` must be a fitted Recalibrator; found "
                f"{type(recalibrator).__name__}. Call fit first."
            )
            raise InvalidInputError(msg, "no-recalibrator")
        self.recalibrator = recalibrator
        self.coverage = check_coverage(coverage)
        self.n_units = 0
        self.units = "rows"
        self._n_missed = 0.0  # of groups, the sum of their shares
        # 1 - 0.9 is 1/10, and not what floats make of it
        self._share = Fraction(1 - self.coverage).limit_denominator(FINEST_SHARE)

    # -- rows that arrive --------------------------------------------------------------

    def update(self, p: Predictions) -> Self:
        """Take rows whose truths have become known, which may be one row.

        Parameters
        ----------
        p : Predictions
            With errors, as they came, not recalibrated. Rows are taken in the order of
            their `time`, or in the order they have. Groups end with the batch, and
            count in the order of their first rows.

        Returns
        -------
        self
        """
        rows = check_predictions(p)
        if rows.time is not None:
            rows = rows.take(np.argsort(rows.time, kind="stable"))  # as given
        new = copy(self)  # which follows: this one is as it was until all are taken
        new.units = "rows" if rows.groups is None else "groups"
        if self.n_units and new.units != self.units:
            msg = f"All batches must have groups, or none; the first had {self.units}."
            raise InvalidInputError(msg, "groups")

        # each row, or group, by the t that those before it have left
        group = np.arange(rows.n_rows)
        if rows.groups is not None:
            group = in_order_of_appearance(rows.groups)
        order = np.argsort(group, kind="stable")  # whole numbers
        numbers = self._limits_and_truths(self.recalibrator.apply(rows))
        lines = numbers[:, order].T.tolist()
        ends = np.cumsum(np.bincount(group)).tolist()
        for start, end in pairwise([0, *ends]):
            t = new.stretch
            n_missed = 0
            for centre, low, high, truth in lines[start:end]:
                low, high = _stretched(centre, low, high, t)
                n_missed += not low <= truth <= high
            share = n_missed / (end - start)
            new._n_missed = round(new._n_missed + share, DIGITS)
            new.n_units += 1
        self.__dict__ = new.__dict__
        return self

    # -- intervals ---------------------------------------------------------------------

    def interval(self, p: Predictions) -> Floats:
        """Return the limits of new rows, with the factor as it is now.

        Parameters
        ----------
        p : Predictions
            Rows as they come, not recalibrated.

        Returns
        -------
        array of shape (n, 2)
        """
        distributions = self.recalibrator.apply(p).distributions
        low, high = _stretched(*self._limits(distributions), self.stretch)
        limits = np.column_stack([low, high])
        bounds = distributions.bounds
        return np.clip(limits, *bounds) if any_bound(bounds) else limits

    def radius(self, p: Predictions) -> Floats:
        """Return the radii of the balls of new rows of vectors, as they are now.

        Parameters
        ----------
        p : Predictions
            Rows as they come, not recalibrated.

        Returns
        -------
        array of shape (n,)
        """
        distributions = self.recalibrator.apply(p).distributions
        return np.asarray(self.stretch * distributions.radius(self.coverage))

    def _limits(self, distributions: Distributions) -> tuple[Floats, Floats, Floats]:
        """Return the median of each row, and its limits without any stretch."""
        tail = (1 - self.coverage) / 2
        low, centre, high = distributions.quantile([tail, 0.5, 1 - tail]).T
        return centre, low, high

    def _limits_and_truths(self, q: Predictions) -> Floats:
        """Return medians, limits and truths of rows; distances, where they are vectors.

        A truth outside the bounds is in no interval, and NaN.
        """
        if q.is_vector:
            radius = q.distributions.radius(self.coverage)
            distance = np.linalg.norm(np.atleast_2d(q.errors), axis=1)
            return np.array([0 * radius, -radius, radius, distance])
        truth = q.target
        bounds = q.distributions.bounds
        if any_bound(bounds):
            truth = np.where(np.clip(truth, *bounds) == truth, truth, np.nan)
        return np.array([*self._limits(q.distributions), truth])

    # -- what there is to say ----------------------------------------------------------

    @property
    def log_stretch(self) -> float:
        """The logarithm of t, in whole steps."""
        now = copy(self)  # which no other thread updates meanwhile
        allowed, of_units = now._share.as_integer_ratio()
        excess = now._n_missed * of_units - now.n_units * allowed
        return (ROW if now.units == "rows" else GROUP) * excess / of_units

    @property
    def stretch(self) -> float:
        """How many times as wide as recalibrated ones intervals are now: t."""
        return math.exp(min(max(self.log_stretch, -WIDEST), WIDEST))

    @property
    def missed(self) -> float:
        """The share of rows, or of groups' rows, that replayed intervals have missed.

        It is 1 − coverage + log t / (step · n).
        """
        now = copy(self)
        return now._n_missed / max(1, now.n_units)

    @property
    def words(self) -> str:
        """What the stream has done to intervals, in sentences."""
        level = numerals.level(self.coverage)
        if not self.n_units:
            return f"No row has come: {level} intervals are those of the recalibrator."
        covered = numerals.percent(1 - self.missed, 1)
        return (
            f"{level} intervals covered {covered} of {self.n_units:,} {self.units}. "
            "They are now those of the recalibrator, stretched by a factor of "
            f"{self.stretch:.3g}."
        )

    def __repr__(self) -> str:
        """Return what the stream has done to intervals."""
        return f"Follower: {self.words}"

    def _repr_html_(self) -> str:
        return html_lines(repr(self))

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, with the words."""
        return {
            "coverage": self.coverage,
            "stretch": self.stretch,
            "n_units": self.n_units,
            "units": self.units,
            "missed": self.missed,
            "words": self.words,
        }

    # -- files -------------------------------------------------------------------------

    def save(self, path: str | pathlib.Path) -> None:
        """Write it to a file, whole or not at all; `sigmascale.load` reads it.

        Parameters
        ----------
        path : str or Path
            Where to write; an existing file is replaced.
        """
        persistence.save(self, path)

    def to_state(self) -> dict[str, Any]:
        """Return what a file has."""
        parts = type(self).stored_parts  # type: ignore[attr-defined]
        return {name: getattr(self, name) for name in parts}

    @classmethod
    def from_state(cls, parts: dict[str, Any]) -> Follower:
        """Return the follower of a file; it goes on bit for bit."""
        new = cls(parts["recalibrator"], parts["coverage"])
        new.n_units = parts["n_units"]
        new.units = parts["units"]
        step = ROW if new.units == "rows" else GROUP
        n_missed = parts["log_stretch"] / step + new.n_units * new._share
        new._n_missed = round(n_missed, 0 if new.units == "rows" else DIGITS)
        return new

    def check(self) -> None:
        """Refuse parts of a file that no follower has."""
        is_share = 0 <= self._n_missed <= self.n_units
        refuse_if(not is_share, "a follower must have missed a share of its rows")


def _stretched(centre: Any, low: Any, high: Any, t: float) -> tuple[Any, Any]:
    """Return limits t times as far from the centre; with t = 1, to the last bit."""
    if t == 1:
        return low, high
    return centre - t * (centre - low), centre + t * (high - centre)
