"""Evidence for changes of several kinds, of all rows and in regions of features.

Each kind of change is a mixture over sizes and start times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._support.checks import Floats, Ints
from ..recalibration.persistence import (
    floats,
    index,
    integers,
    many,
    optional,
    refuse,
    refuse_if,
    stored,
    text,
)
from ..validation.columns import label_words, range_words
from .ranks import N_FACTS, WEIGHTS, Units, Urns

_PATIENT_ROWS = 200  # rows; half of the start times that matter lie in 3 times as many
_NOTHING = -1e9  # the logarithm of what was bet before the first row
_N_TENTHS = 10
_MOST_WATCHED = 20  # the most frequent ones are watched
# What is staked on u too small and too large, and on a bias up and down.
_STAKED_SHARES = np.array([0.36, 0.36, 0.14, 0.14])
_IN_REGIONS = [1, 2, 5, 6]  # the bets on factors there: two above 1, two below


def not_started(rows: Floats) -> Floats:
    """Return the share of the stake that has not been bet after so many rows.

    A change may start at any time. The stake is divided over all start times: what is
    left falls from 1 to 0 as sqrt(p / (p + rows)), so slowly that a late start still
    finds its share.
    """
    left: Floats = np.sqrt(_PATIENT_ROWS / (_PATIENT_ROWS + rows))
    return left


class Path(NamedTuple):
    """What units pay, and the evidence after each of them.

    Attributes
    ----------
    growth : array of shape (n, kinds, sizes)
        Logarithms of what each pays.
    facts : array of shape (n, kinds, n_facts)
        What is summed.
    kinds, sizes : array of shape (n, kinds) and (n, kinds, sizes)
        Logarithms of the evidence.
    """

    growth: Floats
    facts: Floats
    kinds: Floats
    sizes: Floats

    def until(self, end: int) -> Path:
        """Return the beginning of it."""
        return Path(*(array[:end] for array in self))


@stored(
    **dict.fromkeys(("stakes", "started", "gained", "facts"), floats),
    n_units=index,
    start=integers,
)
@dataclass
class Bets:
    """Stakes on kinds of change, and where each most likely started.

    Arrays have the shape (kinds, sizes), those of sums a last axis more.

    Attributes
    ----------
    n_units : int
        How many units were bet on, or could have been.
    stakes : array
        Logarithm of the share of the evidence that each has; shares sum to the share
        of all kinds.
    started : array
        Logarithm of what those that have started betting own.
    gained : array
        The sum of all logarithms of payoffs since it was lowest: there a change most
        likely began, if there is one.
    facts : array
        Sums of facts over units since then.
    start : array of int
        The row of that start.
    """

    n_units: int
    stakes: Floats
    started: Floats
    gained: Floats
    facts: Floats
    start: Ints

    @classmethod
    def begin(cls, stakes: Floats, row: int) -> Bets:
        """Return no evidence, with these stakes, from a row on."""
        zeros = np.zeros(stakes.shape)
        facts = np.zeros((*stakes.shape, N_FACTS))
        start = np.full(stakes.shape, row)
        return cls(0, stakes, zeros + _NOTHING, zeros, facts, start)

    def check(self) -> None:
        """Refuse arrays that do not fit together."""
        shape = self.stakes.shape
        shapes = {self.started.shape, self.gained.shape, self.start.shape}
        if shapes != {shape} or self.facts.shape != (*shape, N_FACTS):
            refuse("evidence must have numbers for each kind and size of change.")
        # a mixture over starts owns no more than the best of them has gained, by units
        too_much = self.started > self.gained + 1e-6 * (1 + np.abs(self.gained))
        of_nothing = (self.gained > 0) & ~(self.facts[..., 0] > 0)
        are_unpaid = (too_much | of_nothing).any()
        refuse_if(are_unpaid, "evidence must be what units have paid")

    def follow(self, growth: Floats, facts: Floats) -> Path:
        """Return the evidence after each unit; nothing is changed.

        With G_k the sum of the growth up to unit k, and p_j the part of the stake that
        starts to bet with unit j, a stake of 1 has become, after unit k,

            Σ_{j≤k} p_j exp(G_k − G_{j−1}) + what had started before · exp(G_k).
        """
        units = self.n_units + np.arange(float(len(growth)))
        total = np.cumsum(growth, axis=0)  # G_k
        before = total - growth

        # ln of p_j exp(−G_{j−1}): each part as if it had been there from the first
        share = -np.expm1(-np.log1p(1 / (_PATIENT_ROWS + units)) / 2)  # of what is left
        begun = np.log(not_started(units) * share)[:, None, None] - before
        begun[0] = np.logaddexp(begun[0], self.started)
        sizes = total + np.logaddexp.accumulate(begun, axis=0)

        # of each kind: what its sizes own, and the stake that has not been bet
        owned = np.logaddexp.reduce(sizes + self.stakes, axis=2)
        not_bet = np.log(not_started(units + 1))[:, None]
        waiting = not_bet + np.logaddexp.reduce(self.stakes, axis=1)
        return Path(growth, facts, np.logaddexp(owned, waiting), sizes)

    def keep(self, path: Path, units: Units) -> None:
        """Take over the end of a path, that of these units.

        A change most likely started where the sum of all growth was lowest: before one
        of these units, or where it was known to be.
        """
        # the unit before which the sum is lowest, and whether it has ever been lower
        growth = path.growth
        before = np.cumsum(growth, axis=0) - growth
        lowest = before.argmin(axis=0)
        least = np.take_along_axis(before, lowest[None], axis=0)[0]
        is_new = least < -self.gained

        # facts since then
        total = path.facts.sum(axis=0)
        earlier = np.cumsum(path.facts, axis=0) - path.facts
        since = total[:, None] - earlier[lowest, np.arange(len(lowest))[:, None]]
        self.facts = np.where(is_new[..., None], since, self.facts + total[:, None])

        self.gained = growth.sum(axis=0) + np.where(is_new, -least, self.gained)
        self.start = np.where(is_new, units["row"][lowest], self.start)
        self.started = path.sizes[-1]
        self.n_units += len(growth)

    def best(self, kind: int) -> tuple[int, int]:
        """Return the place of the size of a change that has the most evidence."""
        return kind, int(np.argmax(self.started[kind] + self.stakes[kind]))


@stored(
    name=optional(text),
    limits=floats,
    labels=many(text),
    urns=Urns,
    evidence=Bets,
)
@dataclass
class Watched:
    """What is watched: all rows, or the regions of a feature.

    Regions are tenths and pairs of neighbours, or labels. Each part is compared with
    what is normal in it, so that a region where uncertainties were wrong from the first
    is no change.

    Attributes
    ----------
    name : str or None
        The feature; None for all rows, which are one region.
    limits : array of float
        Numbers between the parts of a feature of numbers.
    labels : tuple of str
        The labels of one of labels.
    urns : Urns
        What is normal, for each part and size of groups.
    evidence : Bets
        For each region that u is too small, then for each that it is too large; of all
        rows also for a bias up, and down.
    """

    name: str | None
    limits: Floats
    labels: tuple[str, ...]
    urns: Urns
    evidence: Bets

    @classmethod
    def begin(
        cls, units: Units, share: float, enough: int, name: str | None = None
    ) -> Watched | None:
        """Watch all rows, or the regions of a feature unless it has but one value.

        Parameters
        ----------
        units : Units
            Those that are normal.
        share : float
            What is staked on all of it.
        enough : int
            Units that say what is normal where these do not.
        name : str, optional
            The feature.
        """
        limits, labels = _parts_of(None if name is None else units[f"of {name}"])
        if name is None:
            kinds = _STAKED_SHARES[: 2 * len(units.ranked)]
            sizes = np.array(WEIGHTS)
        else:
            if max(limits.size + 1, len(labels)) < 2:
                return None
            n_regions = _members(limits, labels).shape[1]
            kinds = np.ones(2 * n_regions)
            sizes = np.ones(2)
            units = units.unsigned
        stakes = share * np.outer(kinds / kinds.sum(), sizes / sizes.sum())
        evidence = Bets.begin(np.log(stakes), int(units["end"][-1]))
        new = cls(name, limits, labels, Urns(enough), evidence)
        new.urns.learn(units, new._kinds(units))
        return new

    def check(self) -> None:
        """Refuse limits that do not ascend, and evidence of other regions."""
        n_kinds = (2, 4) if self.name is None else (2 * self.members.shape[1],)
        has_all = len(self.evidence.stakes) in n_kinds
        if not has_all or (np.diff(self.limits) <= 0).any():
            refuse("there must be evidence for each region, and limits that ascend.")

    def look_at(self, units: Units) -> tuple[Path, Floats]:
        """Return what units pay and the evidence after each; and the ranks of sizes."""
        # what each unit pays on each kind and size of change
        bets: Any
        if self.name is None:
            ranked, bets = units, slice(None)
        else:
            ranked, bets = units.unsigned, _IN_REGIONS
        payment = self.urns.pay(ranked, self._kinds(units))

        # the regions of each unit; what is unknown is in none
        members = np.vstack([self.members, np.zeros((1, self.members.shape[1]))])
        is_inside = members[self._parts(units)][:, None, :, None]

        # a unit pays in its own regions alone: axes are units, kinds, regions, sizes
        n = len(units)
        n_sizes = self.evidence.stakes.shape[1]
        logs = np.log(payment.ratios[:, bets]).reshape(n, -1, 1, n_sizes)
        growth = (logs * is_inside).reshape(n, -1, n_sizes)
        facts = payment.facts[:, None, None] * is_inside
        facts = np.repeat(facts, logs.shape[1], axis=1).reshape(n, -1, N_FACTS)
        return self.evidence.follow(growth, facts), payment.places

    def _parts(self, units: Units) -> Ints:
        """Return the part of each unit; one more than there are for what is unknown."""
        if self.name is None:
            return np.zeros(len(units), dtype=np.int64)
        values = units[f"of {self.name}"]
        if self.labels:
            place = {label: i for i, label in enumerate(self.labels)}
            return np.array([place.get(label, len(place)) for label in values.tolist()])
        parts = np.searchsorted(self.limits, values, side="right")  # as given
        return np.where(np.isnan(values), self.limits.size + 1, parts)

    def _kinds(self, units: Units) -> Ints:
        """Return a number for each part and size of group; -1 for what is unknown."""
        parts = self._parts(units)
        n_parts = len(self.members)
        return np.where(parts < n_parts, parts + n_parts * units["counted"], -1)

    @property
    def members(self) -> Floats:
        """Which parts (rows) belong to which regions (columns): 1, or else 0."""
        return _members(self.limits, self.labels)

    def words(self, kind: int) -> str:
        """Return which rows belong to the region of a kind."""
        name = self.name or ""
        n_regions = self.members.shape[1]
        parts = np.flatnonzero(self.members[:, kind % n_regions])
        if self.labels:
            return label_words(name, self.labels[parts[0]])
        ends = [None, *self.limits.tolist(), None]
        return range_words(name, ends[parts[0]], ends[parts[-1] + 1])


def _parts_of(values: Any) -> tuple[Floats, tuple[str, ...]]:
    """Return limits between tenths of numbers, or the most frequent labels."""
    if values is not None and values.dtype.kind != "f":
        labels, counts = np.unique(values, return_counts=True)  # as given
        often = np.argsort(-counts, kind="stable")[:_MOST_WATCHED]  # whole numbers
        return np.empty(0), tuple(labels[often].tolist())
    numbers = np.empty(0) if values is None else values[~np.isnan(values)]
    if not numbers.size:
        return numbers, ()
    tenths = np.quantile(numbers, np.arange(1, _N_TENTHS) / _N_TENTHS)
    return np.unique(tenths[tenths > numbers.min()]), ()  # as given


def _members(limits: Floats, labels: tuple[str, ...]) -> Floats:
    """Return which parts belong to which regions; numbers have pairs of parts, too."""
    single = np.eye(len(labels) or limits.size + 1)
    return single if labels else np.hstack([single, single[:, :-1] + single[:, 1:]])
