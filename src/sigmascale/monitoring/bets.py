"""What is bet on the bins that new z-scores fall into, and when betting starts.

A bet is a table of payoffs g by bin, made from ranks alone. A new row in bin k pays
g(k) divided by the mean of g over the calibration set and all rows before it. As bins
follow Pólya's urn while nothing changes, that mean is the expected payoff exactly: the
product of what rows pay is a test martingale, and by Ville's inequality it ever exceeds
1 / a with probability a at most. A table for a change that has happened grows fastest.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from .._support.checks import Floats
from .ranks import Ranks

FACTORS = (1.12, 1.3, 1.8, 3.5)  # of errors relative to uncertainties
SHIFTS = (0.25, 0.5, 1.0, 2.0)  # of z-scores, in standard deviations
WEIGHTS = (0.1, 0.6, 0.2, 0.1)  # of these, which sum to 1
# The tables are made for this law. It lies between normal and heavy tails, and loses
# little to either; whatever the law is, false alarms are as rare.
_LAW = stats.t(8)
_KEPT = 0.05  # share that is not bet, so that no row can take nearly everything
_PATIENCE = 200  # rows; half of the start times that matter lie in 3 times as many


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


def not_started(rows: Floats) -> Floats:
    """Return the share of the stake that has not been bet after so many rows.

    A change may start at any time. The stake is divided over all start times: what is
    left falls from 1 to 0 as sqrt(p / (p + rows)), so slowly that a late start still
    finds its share.
    """
    left: Floats = np.sqrt(_PATIENCE / (_PATIENCE + rows))
    return left
