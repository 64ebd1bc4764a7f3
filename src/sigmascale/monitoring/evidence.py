"""Evidence for changes of several kinds, of all rows and in regions of features.

Each kind of change is a mixture over sizes and start times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .._support.checks import Floats, Ints, Labels
from ..judging.regions import label_words, range_words
from .reference import N_BETS, Payment, Reference, Scores

_PATIENCE = 200  # rows; half of the start times that matter lie in 3 times as many
_NOTHING = -1e9  # the logarithm of what was bet before the first row
N_TENTHS = 10
MOST_LABELS = 20  # the most frequent ones are watched
SIZES = (0.5, 0.5)  # the stakes of the two factors that are bet on in a region
LEAST = 20  # rows of a calibration set in a part; with fewer nothing is bet on it


def not_started(rows: Floats) -> Floats:
    """Return the share of the stake that has not been bet after so many rows.

    A change may start at any time. The stake is divided over all start times: what is
    left falls from 1 to 0 as sqrt(p / (p + rows)), so slowly that a late start still
    finds its share.
    """
    left: Floats = np.sqrt(_PATIENCE / (_PATIENCE + rows))
    return left


class Path(NamedTuple):
    """Evidence after each block of rows.

    `kinds` has the logarithm of the evidence by block and kind, and `sizes` that by
    block, kind and size.
    """

    kinds: Floats
    sizes: Floats

    def until(self, end: int) -> Path:
        """Return the first blocks."""
        return Path(self.kinds[:end], self.sizes[:end])


@dataclass
class Evidence:
    """Stakes on kinds of change, and where each most likely started.

    All arrays have the shape (kinds, sizes), with a last axis for sums.

    Attributes
    ----------
    rows : int
        How many rows were bet on, or could have been.
    stakes : array
        Logarithm of the share of the evidence that each has; shares sum to the share
        of all kinds.
    started : array
        Logarithm of what those that have started betting own.
    growth, lowest : array
        The sum of all logarithms of payoffs, and the lowest it has been: the most
        likely start of a change, if there is one, is where it was lowest.
    sums, sums_before : array
        Sums over rows, now and at that start: how many there are, z, abs(z), and what
        else is summed.
    start : array of int
        The row of that start.
    """

    rows: int
    stakes: Floats
    started: Floats
    growth: Floats
    lowest: Floats
    sums: Floats
    sums_before: Floats
    start: Ints

    @classmethod
    def begin(cls, shares: Floats, row: int, weights: Any, n_sums: int = 3) -> Evidence:
        """Return no evidence, for kinds with these shares, from a row on."""
        stakes = np.log(np.multiply.outer(shares, weights))
        zeros = np.zeros(stakes.shape)
        return cls(
            rows=0,
            stakes=stakes,
            started=zeros + _NOTHING,
            growth=zeros,
            lowest=zeros.copy(),
            sums=np.zeros((*stakes.shape, n_sums)),
            sums_before=np.zeros((*stakes.shape, n_sums)),
            start=np.full(stakes.shape, row),
        )

    def follow(self, growth: Floats, block: int) -> Path:
        """Return the evidence after each block of rows; nothing is changed.

        Parameters
        ----------
        growth : array of shape (blocks, kinds, sizes)
            Logarithms of what the rows of each block pay.
        block : int
            Rows in a block.
        """
        left = not_started(self.rows + block * np.arange(len(growth) + 1.0))
        since = np.cumsum(growth, axis=0)
        # each start time's part of the stake, as if it had been there from the first
        parts = np.log(left[:-1] - left[1:])[:, None, None] - (since - growth)
        parts[0] = np.logaddexp(parts[0], self.started)
        sizes = since + np.logaddexp.accumulate(parts, axis=0)
        owned = np.logaddexp.reduce(sizes + self.stakes, axis=2)
        share = np.logaddexp.reduce(self.stakes, axis=1)
        waiting = np.log(left[1:])[:, None] + share
        return Path(np.logaddexp(owned, waiting), sizes)

    def keep(
        self, path: Path, growth: Floats, sums: Floats, row: int, block: int
    ) -> None:
        """Take over the end of a path.

        Parameters
        ----------
        path : Path
            What :meth:`follow` returned for `growth`, or its beginning.
        growth : array of shape (blocks, kinds, sizes)
            Logarithms of what the rows of each block pay.
        sums : array of shape (blocks, kinds or 1, n_sums)
            The number of rows in each block, and what else is summed.
        row, block : int
            The first row, and the number of rows in a block.
        """
        before = np.cumsum(growth, axis=0) - growth
        at = before.argmin(axis=0)
        least = self.growth + np.take_along_axis(before, at[None], axis=0)[0]
        lower = least < self.lowest
        totals = np.cumsum(sums, axis=0)
        earlier = np.broadcast_to(
            totals - sums, (len(sums), self.stakes.shape[0], sums.shape[2])
        )
        there = self.sums + earlier[at, np.arange(len(self.stakes))[:, None]]
        self.lowest = np.where(lower, least, self.lowest)
        self.start = np.where(lower, row + block * at, self.start)
        self.sums_before = np.where(lower[..., None], there, self.sums_before)
        self.growth = self.growth + growth.sum(axis=0)
        self.sums = self.sums + totals[-1][:, None, :]
        self.started = path.sizes[-1]
        self.rows += block * len(growth)

    def best_size(self, kind: int) -> int:
        """Return the size of a change that has the most evidence."""
        return int(np.argmax(self.started[kind] + self.stakes[kind]))

    @property
    def gained(self) -> Floats:
        """What the rows since the likely start of each kind say for it, at its best.

        It is a logarithm, without stakes: these are for whether there is a change, and
        not for which.
        """
        gained: Floats = (self.growth - self.lowest).max(axis=1)
        return gained

    def sums_since(self, kind: int) -> tuple[float, float, float, Floats]:
        """Return the sums since the likely start: rows, z, abs(z), and the rest."""
        at = kind, self.best_size(kind)
        n, z, size, *rest = (self.sums[at] - self.sums_before[at]).tolist()
        return n, z, size, np.array(rest)

    @property
    def is_sound(self) -> bool:
        """Whether arrays fit together and are finite, for those from a file."""
        shape, n_sums = self.stakes.shape, self.sums.shape[2:]
        arrays = {
            shape: (self.stakes, self.started, self.growth, self.lowest, self.start),
            (*shape, *n_sums): (self.sums, self.sums_before),
        }
        return len(shape) == 2 and all(
            each.shape == wanted and bool(np.isfinite(each).all())
            for wanted, several in arrays.items()
            for each in several
        )


class OwnPayment(NamedTuple):
    """What rows pay, each relative to what is normal in its own part.

    `parts` has the payments of each part that is bet on, and which rows are its own.
    """

    ratios: Floats
    parts: dict[int, tuple[Ints, Payment]]


@dataclass
class Regions:
    """The regions of one feature: tenths and pairs of neighbours, or labels.

    Attributes
    ----------
    feature : str
        Its name.
    limits : array of float, or None
        Numbers between the parts of a feature of numbers.
    labels : list of str, or None
        The labels of one of labels.
    evidence : Evidence
        That of each region, for uncertainties that are too small, and then for those
        that are too large.
    normal : dict of int to Reference
        What is normal in each part, if the calibration set has the feature; otherwise
        it is what is normal for all rows.
    """

    feature: str
    limits: Floats | None
    labels: list[str] | None
    evidence: Evidence
    normal: dict[int, Reference] = field(default_factory=dict)

    @classmethod
    def learn(
        cls, feature: str, values: Labels, share: float, row: int
    ) -> Regions | None:
        """Return the regions of a feature, or None if it has but one value.

        Parameters
        ----------
        feature : str
            Its name.
        values : array
            Its values in some rows.
        share : float
            What is staked on all of its regions.
        row : int
            The row from which on they are watched.
        """
        limits, labels = None, None
        if values.dtype.kind == "f":
            tenths = np.quantile(values, np.arange(1, N_TENTHS) / N_TENTHS)
            limits = np.unique(tenths)
            limits = limits[limits > values.min()]
            n_parts = limits.size + 1
        else:
            found, counts = np.unique(values.astype(str), return_counts=True)
            labels = found[np.argsort(-counts, kind="stable")][:MOST_LABELS].tolist()
            n_parts = len(labels)
        if n_parts < 2:
            return None
        n_regions = _members(n_parts, pairs=limits is not None).shape[1]
        shares = np.full(2 * n_regions, share / (2 * n_regions))
        return cls(feature, limits, labels, Evidence.begin(shares, row, SIZES))

    @property
    def n_parts(self) -> int:
        """How many parts the values are sorted into."""
        if self.limits is not None:
            return self.limits.size + 1
        return len(self.labels or [])

    @property
    def members(self) -> Floats:
        """Which parts (rows) belong to which regions (columns): 1, or else 0."""
        return _members(self.n_parts, pairs=self.limits is not None)

    def parts(self, values: Labels) -> Ints:
        """Return the part of each value; those of unknown labels have the last number.

        This number is one more than there are parts.
        """
        if self.limits is not None:
            return np.searchsorted(self.limits, values, side="right")
        place = {label: i for i, label in enumerate(self.labels or [])}
        return np.array([place.get(str(each), len(place)) for each in values])

    def learn_normal(self, scores: Scores, values: Labels) -> None:
        """Learn what is normal in each part from the rows of a calibration set."""
        codes = self.parts(values)
        for part in range(self.n_parts):
            own = scores.take(codes == part)
            if len(own) >= LEAST and own.size.any():
                self.normal[part] = Reference.of(own)

    def pay(self, scores: Scores, codes: Ints) -> OwnPayment | None:
        """Return what rows pay relative to their own parts, if these are known."""
        if not self.normal:
            return None
        ratios, parts = np.ones((len(scores), N_BETS)), {}
        for part, reference in self.normal.items():
            rows = np.flatnonzero(codes == part)
            if rows.size:
                payment = reference.pay(scores.take(rows))
                parts[part] = rows, payment
                ratios[rows] = payment.ratios
        return OwnPayment(ratios, parts)

    def keep(self, paid: OwnPayment, n: int) -> None:
        """Remember the first n rows of those that have paid."""
        for part, (rows, payment) in paid.parts.items():
            kept = int(np.searchsorted(rows, n))
            if kept:
                self.normal[part].keep(payment, kept)

    def mean_size(self, kind: int) -> float | None:
        """Return the usual mean of abs(z) in the region of a kind, if it is known."""
        members = np.flatnonzero(self.members[:, kind % self.members.shape[1]])
        known = [self.normal[part] for part in members.tolist() if part in self.normal]
        sizes = [each.size.n_values for each in known]
        means = [each.mean_size for each in known]
        return float(np.average(means, weights=sizes)) if known else None

    def totals(self, codes: Ints, blocks: Ints, values: Floats) -> Floats:
        """Return sums of columns of values by block and region, shape (b, r, c)."""
        n_blocks, n_codes = int(blocks[-1]) + 1, self.n_parts + 1
        cell = blocks * n_codes + codes
        sums = [
            np.bincount(cell, each, n_blocks * n_codes).reshape(n_blocks, n_codes)
            for each in values.T
        ]
        by_part = np.stack(sums, axis=1)[:, :, :-1]  # without unknown labels
        return np.moveaxis(by_part @ self.members, 1, 2)

    def words(self, kind: int) -> str:
        """Return which rows belong to the region of a kind."""
        parts = np.flatnonzero(self.members[:, kind % self.members.shape[1]])
        if self.limits is None:
            return label_words(self.feature, (self.labels or [])[parts[0] :][:1])
        limits = [None, *self.limits.tolist(), None]
        return range_words(self.feature, limits[parts[0]], limits[parts[-1] + 1])

    @property
    def is_sound(self) -> bool:
        """Whether limits ascend, with evidence of each region; for those from files."""
        ascends = self.limits is None or bool((np.diff(self.limits) > 0).all())
        wanted = 2 * self.members.shape[1], len(SIZES)
        return ascends and self.evidence.stakes.shape == wanted


def _members(n_parts: int, *, pairs: bool) -> Floats:
    single = np.eye(n_parts)
    return np.hstack([single, single[:, :-1] + single[:, 1:]]) if pairs else single
