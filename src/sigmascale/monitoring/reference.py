"""What is normal: the ranks of a calibration set, and what bets on new rows pay.

The gaps between the m sorted values of a calibration set are m + 1. A new value of the
same law falls into each of them with the same probability, and a second one into a gap
where i of t new values lie already with probability (1 + i) / (m + 1 + t). For bins of
neighbouring gaps the same holds with their numbers of gaps: this is Pólya's urn, exact
for every continuous law and every m, and counts by bin are all that it needs. Equal
values are put in a random order, which makes it exact for laws with ties, too.

A bet is a table of payoffs g by bin, made from ranks alone. A new row in bin k pays
g(k) divided by the mean of g over the calibration set and all rows before it. As bins
follow Pólya's urn while nothing changes, that mean is the expected payoff exactly: the
product of what rows pay is a test martingale, and by Ville's inequality it ever exceeds
1 / a with probability a at most. A table for a change that has happened grows fastest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from .._support.checks import Floats, Ints

# Shares of the calibration set below the limits of bins, finer in the tails.
_TAILS = np.array([1 / 128, 1 / 64])
SHARES = np.concatenate([_TAILS, np.arange(1, 32) / 32, 1 - _TAILS[::-1]])
FACTORS = (1.12, 1.3, 1.8, 3.5)  # of errors relative to uncertainties
SHIFTS = (0.25, 0.5, 1.0, 2.0)  # of z-scores, in standard deviations
WEIGHTS = (0.1, 0.6, 0.2, 0.1)  # of these, which sum to 1
# The tables are made for this law. It lies between normal and heavy tails, and loses
# little to either; whatever the law is, false alarms are as rare.
_LAW = stats.t(8)
_KEPT = 0.05  # share that is not bet, so that no row can take nearly everything
N_SIZES = len(FACTORS)
N_BETS = 4 * N_SIZES


@dataclass(frozen=True)
class Scores:
    """What is ranked: rows, or groups of rows that count as one.

    Attributes
    ----------
    z, size : array of shape (n,)
        The z-score and its absolute value; of a group, the means of both.
    ties : array of shape (n,)
        Random numbers from 0 to 1, which put equal values in order.
    """

    z: Floats
    size: Floats
    ties: Floats

    def __len__(self) -> int:
        """Return how many there are."""
        return self.z.size

    def take(self, which: Any) -> Scores:
        """Return some of them."""
        return Scores(self.z[which], self.size[which], self.ties[which])

    def plus(self, later: Scores) -> Scores:
        """Return these and later ones."""
        both = zip(vars(self).values(), vars(later).values(), strict=True)
        return Scores(*map(np.concatenate, both))

    @property
    def is_sound(self) -> bool:
        """Whether columns have the same length, for those that come from a file."""
        shapes = {each.shape for each in vars(self).values()}
        return shapes == {(self.z.size,)}


@dataclass(frozen=True)
class Ranks:
    """Bins of neighbouring gaps between the sorted values of a calibration set.

    Attributes
    ----------
    n_values : int
        The size of the calibration set.
    positions : array of int
        How many gaps lie below each limit.
    limits, ties : array of float
        The limits, values of the calibration set, and where each stands in the random
        order of values that equal it, from 0 to 1.
    """

    n_values: int
    positions: Ints
    limits: Floats
    ties: Floats

    @classmethod
    def of(cls, values: Floats, ties: Floats) -> Ranks:
        """Return the bins of a calibration set, whose ties are in random order."""
        order = np.lexsort((ties, values))
        gaps = values.size + 1
        positions = np.unique(np.rint(SHARES * gaps).astype(np.int64))
        positions = positions[(positions > 0) & (positions < gaps)]
        at = order[positions - 1]
        return cls(values.size, positions, values[at], ties[at])

    @property
    def edges(self) -> Floats:
        """The shares of gaps at the limits of bins, with 0 and 1."""
        gaps = self.n_values + 1
        return np.concatenate([[0.0], self.positions / gaps, [1.0]])

    def bins(self, values: Floats, ties: Floats) -> Ints:
        """Return the bin of each value; for one that equals a limit, ties decide."""
        low = np.searchsorted(self.limits, values, side="left")
        high = np.searchsorted(self.limits, values, side="right")
        for row in np.flatnonzero(low < high):
            among = self.ties[low[row] : high[row]]
            low[row] += np.searchsorted(among, ties[row])
        return low

    @property
    def is_sound(self) -> bool:
        """Whether limits ascend, for those that come from a file."""
        inner = self.positions
        return (
            inner.shape == self.limits.shape == self.ties.shape == (inner.size,)
            and bool((np.diff([0, *inner, self.n_values + 1]) > 0).all())
            and bool((np.diff(self.limits) >= 0).all())
        )


def factor_bets(ranks: Ranks, factors: Floats) -> Floats:
    """Return payoffs by bin of abs(z), one column a factor that multiplies errors."""
    edges = _LAW.ppf((1 + ranks.edges) / 2)
    return _payoffs(ranks, 2 * _LAW.cdf(edges[:, None] / factors) - 1)


def shift_bets(ranks: Ranks, shifts: Floats) -> Floats:
    """Return payoffs by bin of z, one column a shift of z in standard deviations."""
    edges = _LAW.ppf(ranks.edges)
    return _payoffs(ranks, _LAW.cdf(edges[:, None] - shifts * _LAW.std()))


def _payoffs(ranks: Ranks, below: Floats) -> Floats:
    """Return how much more likely each bin is after a change than before."""
    likelier = np.diff(below, axis=0) / np.diff(ranks.edges)[:, None]
    payoffs: Floats = (1 - _KEPT) * likelier + _KEPT
    return payoffs


class Payment(NamedTuple):
    """What rows pay to each bet: to those on factors, their inverses, and on shifts.

    `ratios` are payoffs divided by those expected, `paid` sums of payoffs up to each
    row, and `bins` the bins of z.
    """

    ratios: Floats
    paid: Floats
    bins: Ints


@dataclass
class Reference:
    """The calibration set as bins, with the payoffs of all rows so far.

    Attributes
    ----------
    size, sign : Ranks
        The bins of abs(z) and of z.
    mean_size, mean, sd : float
        The means of abs(z) and of z, and the standard deviation of z.
    n_rows : int
        How many rows have come since.
    paid : array of shape (bets,)
        Sums of payoffs over the calibration set and these rows.
    """

    size: Ranks
    sign: Ranks
    mean_size: float
    mean: float
    sd: float
    n_rows: int
    paid: Floats

    @classmethod
    def of(cls, scores: Scores) -> Reference:
        """Return what a calibration set says."""
        return cls(
            size=Ranks.of(scores.size, scores.ties),
            sign=Ranks.of(scores.z, scores.ties),
            mean_size=float(scores.size.mean()),
            mean=float(scores.z.mean()),
            sd=float(scores.z.std()),
            n_rows=0,
            paid=np.full(N_BETS, len(scores) + 1.0),  # as gaps have a mean payoff of 1
        )

    def __post_init__(self) -> None:
        """Make the tables of payoffs, which the bins determine."""
        factors, shifts = np.array(FACTORS), np.array(SHIFTS)
        both = np.concatenate([factors, 1 / factors])
        self._of_size = factor_bets(self.size, both)
        self._of_sign = shift_bets(self.sign, np.concatenate([shifts, -shifts]))

    def pay(self, scores: Scores) -> Payment:
        """Return what new rows pay to each bet; nothing is changed."""
        sizes = self.size.bins(scores.size, scores.ties)
        signs = self.sign.bins(scores.z, scores.ties)
        payoffs = np.hstack([self._of_size[sizes], self._of_sign[signs]])
        paid = self.paid + np.cumsum(payoffs, axis=0)
        seen = self.size.n_values + 1 + self.n_rows + np.arange(len(scores))
        return Payment(payoffs * seen[:, None] / (paid - payoffs), paid, signs)

    def keep(self, payment: Payment, n: int) -> None:
        """Remember the first n rows of those that have paid."""
        self.paid = payment.paid[n - 1]
        self.n_rows += n

    def shift_or_factor(self, counts: Floats) -> float:
        """Return how much better a shift of z explains rows than a factor does.

        Where the law is skewed, the ranks of abs(z) after one look much like those
        after the other. This is the difference of the largest log-likelihoods.

        Parameters
        ----------
        counts : array
            How many rows have fallen into each bin of z.
        """
        limits = self.sign.limits
        factors = np.exp(np.linspace(-1.5, 1.5, 61))
        shifts = self.sd * np.linspace(-3, 3, 61)
        below_each = [
            self._share_below(limits / factors[:, None]),
            self._share_below(limits - shifts[:, None]),
        ]
        by_factor, by_shift = (
            (np.log(np.diff(below, prepend=0, append=1) + 1e-4) @ counts).max()
            for below in below_each
        )
        return float(by_shift - by_factor)

    def _share_below(self, values: Floats) -> Floats:
        """Return which share of the calibration set lies below, roughly.

        Between limits it is interpolated; beyond the last it decays exponentially.
        """
        limits, shares = self.sign.limits, self.sign.edges[1:-1]
        tiny = 1e-12 * self.sd
        rise = np.diff(shares) / np.maximum(np.diff(limits), tiny)
        under = np.minimum(values - limits[0], 0) * rise[0] / shares[0]
        over = np.minimum(limits[-1] - values, 0) * rise[-1] / (1 - shares[-1])
        inside: Floats = np.interp(values, limits, shares)
        below: Floats = inside * np.exp(under) + (1 - inside) * (1 - np.exp(over))
        return below

    @property
    def n_bins(self) -> int:
        """How many bins of z there are."""
        return self.sign.limits.size + 1

    @property
    def is_sound(self) -> bool:
        """Whether there are payoffs of all bets, for those that come from a file."""
        paid = self.paid
        return paid.shape == (N_BETS,) and bool((paid > 0).all()) and self.mean_size > 0
