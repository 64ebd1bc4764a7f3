"""What is normal: ranks among earlier rows, and what bets on new rows pay.

The gaps between the m sorted values of a reference are m + 1. A new value of the same
distribution falls into each of them with the same probability, and a second one into a
gap where i of t new values lie already with probability (1 + i) / (m + 1 + t). For bins
of neighbouring gaps the same holds with their numbers of gaps: this is Pólya's urn,
exact for every continuous distribution and every m, and counts by bin are all that it
needs. Equal values are put in a random order, which makes it exact with ties, too.

A bet is a table of payoffs g by bin, made from ranks alone. A new row in bin k pays
g(k) divided by the mean of g over the reference and all rows before it. As bins follow
Pólya's urn while nothing changes, that mean is the expected payoff exactly: the product
of what rows pay is a test martingale, and by Ville's inequality it ever exceeds 1 / a
with probability a at most. A table for a change that has happened grows fastest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from .._support.checks import Floats, Ints
from ..recalibration.persistence import (
    by_name,
    floats,
    index,
    integers,
    many,
    number,
    refuse,
    refuse_if,
    stored,
    text,
)

# Shares of the reference below the limits of bins, finer in the tails.
_TAIL_SHARES = np.array([1 / 128, 1 / 64])
_LIMIT_SHARES = np.concatenate(
    [_TAIL_SHARES, np.arange(1, 32) / 32, 1 - _TAIL_SHARES[::-1]]
)
_FACTORS = np.array([1.12, 1.3, 1.8, 3.5])  # of errors relative to uncertainties
_BIASES = np.array([0.25, 0.5, 1.0, 2.0])  # of z, in standard deviations
N_SIZES = _FACTORS.size  # of each kind of change
WEIGHTS = (0.1, 0.6, 0.2, 0.1)  # stakes on these sizes, which sum to 1
# The tables are made for Student's t with these degrees of freedom. It lies between
# normal and heavy tails, and loses little to either; whatever the truth is, false
# alarms are as rare.
_ASSUMED_DF = 8
_KEPT = 0.05  # share that is not bet, so that no row can take nearly everything
N_FACTS = 3  # what is summed of each
LEAST_UNITS = 20  # rows of a reference, or of a part of it


def _column(value: Any) -> Any:
    """Return a column from a file: labels as text, whole numbers, or others.

    Numbers may be missing.
    """
    cells = value if isinstance(value, list) else []
    kinds = {type(cell) for cell in cells}
    if str in kinds:
        return np.array(many(text)(value))
    if type(None) not in kinds:
        return integers(value) if kinds == {int} else floats(value)
    is_missing = np.array([cell is None for cell in cells])
    return np.where(is_missing, np.nan, floats([cell or 0.0 for cell in cells]))


@stored(columns=by_name(_column))
@dataclass(frozen=True)
class Units:
    """What is ranked: rows, or groups that count as one, in the order they came.

    Attributes
    ----------
    columns : dict of str to array of shape (n,)
        "size", abs(z), and "z", which vectors have not; of a group, the means of both.
        "tie", random numbers from 0 to 1, which put equal values in order. "counted",
        how many rows of a group the means are of: groups are ranked among those alike.
        "row" and "end", rows of the stream before each, and with it. "time", when it
        came, 0 if that is not known. "of mass", the feature mass: numbers, or text.
    """

    columns: dict[str, Any]

    def check(self) -> None:
        """Refuse columns that are not those of the same units."""
        needed = {"size", "tie", "counted", "row", "end", "time"}
        lengths = {column.size for column in self.columns.values()}
        refuse_if(not needed <= set(self.columns), "units must have all their columns")
        refuse_if(len(lengths) > 1, "columns of units must have the same length")
        for name, column in self.columns.items():
            has_gaps = not name.startswith("of ") and np.isnan(column).any()
            refuse_if(has_gaps, "features of units alone may be missing")

    def to_state(self) -> dict[str, Any]:
        """Return what a file has: none for a number that is missing."""
        columns = {}
        for name, column in self.columns.items():
            cells = column.astype(object)
            cells[column != column] = None  # NaN alone differs from itself
            columns[name] = cells.tolist()
        return {"columns": columns}

    def __len__(self) -> int:
        return int(self["tie"].size)

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    @property
    def ranked(self) -> list[str]:
        """The columns that are ranked."""
        return [name for name in ("size", "z") if name in self.columns]

    def take(self, which: Any) -> Units:
        """Return some of them."""
        return Units({name: column[which] for name, column in self.columns.items()})

    def plus(self, later: Units) -> Units:
        """Return these and later ones."""
        columns = {}
        for name in self.columns:
            columns[name] = np.concatenate([self[name], later[name]])
        return Units(columns)

    @property
    def unsigned(self) -> Units:
        """The same without the sign."""
        columns = dict(self.columns)
        columns.pop("z", None)
        return Units(columns)


class Payment(NamedTuple):
    """What units pay to each bet, and what else is known of them.

    Attributes
    ----------
    ratios : array of shape (n, n_bets)
        Payoffs divided by those expected: on factors, on their inverses, on biases up
        and down.
    facts : array of shape (n, 3)
        To be summed: 1, abs(z) relative to its usual mean, and z less its usual mean.
    places : array of shape (n,)
        The rank of abs(z), from 0 to 1; NaN where nothing is known of it.
    """

    ratios: Floats
    facts: Floats
    places: Floats


@stored(
    **dict.fromkeys(("n_first", "n_later"), index),
    **dict.fromkeys(("mean_size", "mean"), number),
    **dict.fromkeys(("limits", "ties", "paid"), floats),
    positions=integers,
)
@dataclass
class Urn:
    """Ranks among units of one kind, and what bets on further ones have paid.

    Attributes
    ----------
    n_first : int
        How many the reference has.
    positions : array of int, shape (b,)
        How many gaps lie below each limit between bins.
    limits, ties : array of shape (b, 2) or (b, 1)
        The limits, sizes and z of the reference, and where each stands in the random
        order of values that equal it.
    mean_size, mean : float
        The means of abs(z) and of z.
    n_later : int
        How many have come since.
    paid : array of shape (n_bets,)
        Sums of payoffs over the reference and all later ones.
    """

    n_first: int
    positions: Ints
    limits: Floats
    ties: Floats
    mean_size: float
    mean: float
    n_later: int
    paid: Floats

    @classmethod
    def of(cls, units: Units) -> Urn:
        """Return the urn of a reference."""
        ranked = [units[name] for name in units.ranked]
        gaps = len(units) + 1
        # whole numbers
        positions = np.unique(np.rint(_LIMIT_SHARES * gaps).astype(np.int64))
        positions = positions[(positions > 0) & (positions < gaps)]
        limits = []
        ties = []
        for values in ranked:
            order = np.lexsort((units["tie"], values))  # rounded
            at = order[positions - 1]
            limits.append(values[at])
            ties.append(units["tie"][at])
        return cls(
            n_first=len(units),
            positions=positions,
            limits=np.column_stack(limits),
            ties=np.column_stack(ties),
            mean_size=float(ranked[0].mean()) or 1.0,
            mean=float(ranked[-1].mean()),
            n_later=0,
            # the payoffs of the gaps have a mean of 1
            paid=np.full(2 * N_SIZES * len(ranked), float(gaps)),
        )

    def check(self) -> None:
        """Refuse limits that do not ascend, and numbers that no reference gives."""
        gaps = np.diff([0, *self.positions, self.n_first + 1])
        ascends = gaps.min() > 0 <= np.diff(self.limits, axis=0).min(initial=0)
        n_ranked = self.limits.shape[1]
        shape = (self.positions.size, n_ranked)
        fits = self.limits.shape == self.ties.shape == shape
        fits = fits and self.paid.size == 2 * N_SIZES * n_ranked
        if not (ascends and fits and min(self.paid.min(), self.mean_size) > 0):
            refuse("what is normal must have limits that ascend.")

    @cached_property
    def _payoffs(self) -> list[Floats]:
        """By bin of abs(z) for factors and their inverses; by bin of z for biases."""
        shares = self.positions / (self.n_first + 1)
        before = np.diff(shares, prepend=0, append=1)[:, None]

        # what lies below each limit after a change: sizes, and z
        factors = np.concatenate([_FACTORS, 1 / _FACTORS])
        spread = np.sqrt(_ASSUMED_DF / (_ASSUMED_DF - 2))
        moves = np.concatenate([_BIASES, -_BIASES]) * spread
        sizes = special.stdtrit(_ASSUMED_DF, (1 + shares) / 2)[:, None] / factors
        moved = special.stdtrit(_ASSUMED_DF, shares)[:, None] - moves
        sizes_below = 2 * special.stdtr(_ASSUMED_DF, sizes) - 1
        z_below = special.stdtr(_ASSUMED_DF, moved)

        # how much more likely a bin is then
        payoffs = []
        for below in (sizes_below, z_below):
            ratio = np.diff(below, axis=0, prepend=0, append=1) / before
            payoffs.append((1 - _KEPT) * ratio + _KEPT)
        return payoffs

    def _bins(self, values: Floats, ties: Floats, column: int) -> Ints:
        """Return the bin of each; for one that equals a limit, ties decide."""
        limits = self.limits[:, column]
        low: Ints = np.searchsorted(limits, values, side="left")  # rounded
        high = np.searchsorted(limits, values, side="right")  # rounded
        for row in np.flatnonzero(low < high):
            among = self.ties[low[row] : high[row], column]
            low[row] += np.searchsorted(among, ties[row])  # as given
        return low

    def pay(self, units: Units) -> Payment:
        """Return what further units pay, and remember it."""
        ranked = [units[name] for name in units.ranked]
        bins = []
        payoffs_of_bets = []
        for k, values in enumerate(ranked):
            bins.append(self._bins(values, units["tie"], k))
            payoffs_of_bets.append(self._payoffs[k][bins[k]])
        payoffs = np.hstack(payoffs_of_bets)
        paid = self.paid + np.cumsum(payoffs, axis=0)
        n_before = self.n_first + 1 + self.n_later + np.arange(len(units))
        ratios = payoffs * n_before[:, None] / (paid - payoffs)
        sizes = ranked[0] / self.mean_size
        facts = np.column_stack([np.ones(len(units)), sizes, ranked[-1] - self.mean])
        places = (bins[0] + 0.5) / (self.positions.size + 1)
        self.paid = paid[-1]
        self.n_later += len(units)
        return Payment(ratios, facts, places)


@stored(enough=index, known=by_name(Urn), waiting=by_name(Units))
@dataclass
class Urns:
    """One urn for each kind of units; a kind that is new waits until it has enough.

    Attributes
    ----------
    enough : int
        Units that say what is normal, if the reference has none of their kind.
    known : dict of str to Urn
        The urn of each kind, by its number.
    waiting : dict of str to Units
        Units of kinds that are still too few.
    """

    enough: int
    known: dict[str, Urn] = field(default_factory=dict)
    waiting: dict[str, Units] = field(default_factory=dict)

    def learn(self, units: Units, kinds: Ints) -> None:
        """Take a reference; kinds with fewer than 20 units wait for more."""
        for kind in np.unique(kinds[kinds >= 0]).tolist():  # whole numbers
            of_kind = units.take(kinds == kind)
            if len(of_kind) >= LEAST_UNITS:
                self.known[str(kind)] = Urn.of(of_kind)
            else:
                self.waiting[str(kind)] = of_kind

    def pay(self, units: Units, kinds: Ints) -> Payment:
        """Return what units pay: nothing is won or lost where nothing is known.

        A kind below 0 is none.
        """
        n = len(units)
        ratios = np.ones((n, 2 * N_SIZES * len(units.ranked)))
        facts = np.zeros((n, N_FACTS))
        places = np.full(n, np.nan)
        for kind in np.unique(kinds[kinds >= 0]).tolist():  # whole numbers
            at = np.flatnonzero(kinds == kind)
            name = str(kind)
            if name not in self.known:
                at = self._wait(name, units, at)
            if at.size:
                payment = self.known[name].pay(units.take(at))
                ratios[at] = payment.ratios
                facts[at] = payment.facts
                places[at] = payment.places
        return Payment(ratios, facts, places)

    def _wait(self, kind: str, units: Units, at: Ints) -> Ints:
        """Let units of a kind wait, and return those after the last that must."""
        waiting = self.waiting.pop(kind, units.take([]))
        missing = self.enough - len(waiting)
        waiting = waiting.plus(units.take(at[:missing]))
        if len(waiting) < self.enough:
            self.waiting[kind] = waiting
        else:
            self.known[kind] = Urn.of(waiting)
        return at[missing:]
