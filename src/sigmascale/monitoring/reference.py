"""What is normal: the z-scores of a calibration set, and what bets on new ones pay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._support.checks import Floats, Ints
from .bets import FACTORS, SHIFTS, factor_bets, shift_bets
from .ranks import Ranks

N_SIZES = len(FACTORS)
N_BETS = 4 * N_SIZES


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
    def of(cls, z: Floats, rng: np.random.Generator) -> Reference:
        """Return what a calibration set says."""
        return cls(
            size=Ranks.of(np.abs(z), rng),
            sign=Ranks.of(z, rng),
            mean_size=float(np.abs(z).mean()),
            mean=float(z.mean()),
            sd=float(z.std()),
            n_rows=0,
            paid=np.full(N_BETS, z.size + 1.0),  # as gaps have a mean payoff of 1
        )

    def __post_init__(self) -> None:
        """Make the tables of payoffs, which the bins determine."""
        factors, shifts = np.array(FACTORS), np.array(SHIFTS)
        both = np.concatenate([factors, 1 / factors])
        self._of_size = factor_bets(self.size, both)
        self._of_sign = shift_bets(self.sign, np.concatenate([shifts, -shifts]))

    def pay(self, z: Floats, rng: np.random.Generator) -> Payment:
        """Return what new rows pay to each bet; nothing is changed."""
        sizes, signs = self.size.bins(np.abs(z), rng), self.sign.bins(z, rng)
        payoffs = np.hstack([self._of_size[sizes], self._of_sign[signs]])
        paid = self.paid + np.cumsum(payoffs, axis=0)
        seen = self.size.n_values + 1 + self.n_rows + np.arange(z.size)
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
