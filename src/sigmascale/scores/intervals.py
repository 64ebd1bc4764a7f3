"""The interval of a mean: of rows, of groups of rows, and of weighted rows.

A mean m = Σw x / Σw is off by the sum of what its *units* contribute, d = Σw (x − m) /
Σw, where a unit is a row, or a group of rows that belong together. Contributions of
different units are independent; all that is needed are their squares, their cubes and
how unequal they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from .._support.checks import Bools, Floats, Ints
from .._support.numerals import number
from .._support.render import Cells, Result
from .._support.weighting import ones_if_none, pair_products
from .student import StudentProfile

TRIMMED = 0.95  # the quantile at which a lower limit is taken, too


@dataclass(frozen=True, repr=False)
class Estimate(Result):
    """A number with its confidence interval.

    Attributes
    ----------
    value : float
        The number.
    low, high : float
        The limits of its interval.
    confidence : float
        The coverage of the interval.
    """

    value: float
    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        """Return the number and its interval."""
        low, high = number(self.low, 4), number(self.high, 4)
        return f"{number(self.value, 4)} [{low}, {high}]"

    def _cells(self) -> Cells:
        cells = tuple(number(x, 4) for x in (self.value, self.low, self.high))
        return ("value", "low", "high"), [cells]


@dataclass(frozen=True, eq=False)
class Mean:
    """A mean, and what it takes to tell how far it may be off.

    Attributes
    ----------
    value : float
        The mean.
    second, third : float
        Sums of the squared and the cubed contributions of units.
    df : float
        Degrees of freedom of `second`, in effect.
    n_effective : float
        How many independent rows would tell as much.
    """

    value: float
    second: float
    third: float
    df: float
    n_effective: float

    @classmethod
    def of(
        cls, values: Floats, groups: Ints | None = None, weights: Floats | None = None
    ) -> Mean:
        """Return the mean of values, of groups numbered without gaps.

        A unit with a share s of all weights draws the mean towards itself, so that its
        squared contribution is too small by 1 − s (as with one group of a few).
        Squares of unequal units vary more than those of as many equal ones: their
        degrees of freedom are (Σv)² / Σv² − 1 (Satterthwaite's), with v the variance of
        what a unit adds to the sum; of a group of rows with correlation r, it is
        v = (1 − r) Σw² + r (Σw)².
        """
        w = ones_if_none(weights, values.size)
        total = float(w.sum())
        mean = float(w @ values) / total

        # of each unit: its contribution d, its share s of all weights, its variance v
        d = w * (values - mean) / total
        share = w / total
        v = w * w
        d2_of_rows = float(d @ d)
        if groups is not None:
            w2_of_groups = sums_of(groups, v)
            share = sums_of(groups, share)
            r = within_groups(values - mean, groups)
            v = (1 - r) * w2_of_groups + r * (share * total) ** 2
            d = sums_of(groups, d)

        # Σ d² / (1 − s) and Σ d³ over units, and how many rows would tell as much
        second = float((d * d / np.maximum(1 - share, 1e-3)).sum())
        third = float(d @ (d * d))
        df = max(1.0, float(v.sum() ** 2 / (v @ v)) - 1)
        n_effective = total**2 / float(w @ w)
        if second > 0:
            n_effective *= min(1.0, d2_of_rows / second)
        return cls(mean, second, third, df, n_effective)

    def interval(self, confidence: float, *, skewed: bool) -> Estimate:
        """Return the mean with its limits; `skewed` values get ABC limits."""
        q = float(special.stdtrit(self.df, 0.5 + confidence / 2))
        third = self.third if skewed else 0.0
        low, high = abc_limits(1.0, self.value, self.second, third, q)
        return Estimate(self.value, float(low), float(high), confidence)


def mean_interval(
    values: Floats,
    *,
    confidence: float,
    groups: Ints | None = None,
    weights: Floats | None = None,
    skewed: bool = False,
) -> Estimate:
    """Return the mean of values with an interval that counts groups and weights.

    Parameters
    ----------
    values : array of shape (n,)
        What the mean is taken of.
    confidence : float
        Coverage of the interval.
    groups : array of int, shape (n,), optional
        Numbers, without gaps, of rows that belong together.
    weights : array of shape (n,), optional
        Weights of the rows.
    skewed : bool, default False
        Whether limits follow the skewness of the values (ABC), as those of squares
        should; others, such as differences, get the mean ± t × standard error.

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 3.0, 6.0])
    >>> print(mean_interval(x, confidence=0.9))
    3 [0.4581, 5.542]
    """
    return Mean.of(values, groups, weights).interval(confidence, skewed=skewed)


def abc_limits(
    n: Any, mean: Any, second: Any, third: Any, quantile: Any
) -> tuple[Floats, Floats]:
    """Return ABC limits from the sums of squares and cubes of what is summed.

    With a = Σd³ / (6 (Σd²)^1.5), w = a ± quantile and λ = w / (1 − a w)², they are
    m + λ sqrt(Σd²) / n. Where a w < −1 that would return towards the mean: the limit
    stays at its farthest, λ = −1 / (4 a). Where a w ≥ 1, it is infinite.

    References
    ----------
    T. DiCiccio and B. Efron, Biometrika 79, 231 (1992), doi:10.1093/biomet/79.2.231
    """
    spread = np.sqrt(second)
    cubed = spread**3
    ratio = np.divide(third, cubed, out=np.zeros_like(cubed), where=cubed > 0)
    a = np.clip(ratio, -1, 1) / 6  # at most 1 in size, but for rounding
    limits = []
    for w in (a - quantile, a + quantile):
        aw = np.maximum(a * w, -1.0)
        w = np.where(a * w < -1, -1 / np.where(a == 0, 1, a), w)
        lam = np.where(aw < 1, w / np.maximum(1 - aw, 1e-9) ** 2, np.inf * np.sign(w))
        limits.append(mean + np.where(spread > 0, lam, 0.0) * spread / n)
    return limits[0], limits[1]


def within_groups(deviations: Floats, groups: Ints) -> float:
    """Return the correlation of deviations, of mean 0, within groups; at least 0."""
    products, pairs = pair_products(deviations, groups)
    square = float(np.mean(deviations**2))
    if not pairs.any() or not square:
        return 0.0
    return min(1.0, max(0.0, float(products.sum() / pairs.sum()) / square))


def wilson_limits(k: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Wilson interval, with continuity correction, of a fraction k / n.

    References
    ----------
    R. G. Newcombe, Statist. Med. 17, 857 (1998),
    doi:10.1002/(SICI)1097-0258(19980430)17:8<857::AID-SIM777>3.0.CO;2-E
    """
    # with p = k / n, q = 1 − p, the limits are (2 n p + z² ∓ reach) / (2 (n + z²))
    z = float(special.ndtri((1 + confidence) / 2))
    p = k / n
    q = 1 - k / n
    middle = 2 * n * p + z**2
    low = 0.0
    high = 1.0
    if k > 0:
        reach = 1 + z * math.sqrt(z**2 - 2 - 1 / n + 4 * p * (n * q + 1))
        low = (middle - reach) / (2 * (n + z**2))
    if k < n:
        reach = 1 + z * math.sqrt(z**2 + 2 - 1 / n + 4 * p * (n * q - 1))
        high = (middle + reach) / (2 * (n + z**2))
    return low, high


def size_interval(
    z2: Floats,
    confidence: float,
    groups: Ints | None = None,
    weights: Floats | None = None,
) -> Estimate:
    """Return the mean of z² with an interval of that coverage.

    The mean of a sample of z² says little about rare, enormous errors that the sample
    does not have. Upwards, the interval reaches as far as either of two:

    * that of the set's own moments (ABC), which knows only the errors that are there;
    * that of every Student's t which the set does not rule out.

    Downwards it is that of the moments, or of a set whose largest z² are reduced, which
    can only make the mean smaller: a few more enormous errors never make u look better.
    """
    mean = Mean.of(z2, groups, weights)
    own = mean.interval(confidence, skewed=True)
    if not mean.second:
        return own
    reduced = Mean.of(np.minimum(z2, np.quantile(z2, TRIMMED)), groups, weights)
    of_reduced = reduced.interval(confidence, skewed=True)

    # a few enormous errors do not tell how dependent rows are: reduced ones do
    tails = StudentProfile.of(z2, reduced.n_effective, weights)
    upper = np.inf if tails is None else tails.upper(confidence)
    low = max(0.0, of_reduced.low, own.low)
    return Estimate(own.value, low, max(own.high, upper), confidence)


def sums_of(codes: Ints, values: Floats, n: int = 0) -> Floats:
    """Return sums by code."""
    return np.asarray(np.bincount(codes, values, n), dtype=np.float64)


def renumbered(groups: Ints | None, which: Bools | Ints) -> Ints | None:
    """Return the numbers of the groups of some rows, without gaps."""
    if groups is None:
        return None
    return np.unique(groups[which], return_inverse=True)[1]  # whole numbers
