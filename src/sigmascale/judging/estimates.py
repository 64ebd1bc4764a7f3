"""Numbers with confidence intervals, and their distance from what they should be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from .._support.checks import Floats, Ints, check_nonnegative
from .._support.render import html_table, plain
from ..exceptions import InvalidInputError

_LARGEST_DRAW = 2**20  # rows that are drawn at a time
_MOST_PARTS = 10_000  # of a set that are resampled


@dataclass(frozen=True)
class Estimate:
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

    def zeta(self, reference: float, *, reference_uncertainty: float = 0.0) -> float:
        """Return the zeta-score against a reference; between -1 and 1 is valid.

        Parameters
        ----------
        reference : float
            What the number should be.
        reference_uncertainty : float, default 0.0
            Half the width of the reference's own interval.
        """
        return zeta_score(
            self.value,
            (self.low, self.high),
            reference,
            reference_uncertainty=reference_uncertainty,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all fields."""
        return plain(self)

    def __str__(self) -> str:
        """Return the number and its interval."""
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"

    def _repr_html_(self) -> str:
        cells = tuple(f"{x:.4g}" for x in (self.value, self.low, self.high))
        return html_table(("value", "low", "high"), [cells])


def bca_of_means(
    values: Floats,
    statistic: Callable[[Floats], Floats],
    *,
    confidence: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> Estimate:
    """Return a function of the means of several columns, with its BCa interval.

    `values` has a row for each column; `statistic` takes an array whose rows are the
    means, of one resample or of many. Rows beyond ten thousand are first summed in as
    many random parts, which are then resampled: that is as good, and takes no longer.
    """
    sums, sizes = _parts(values, rng)
    total, n = sums.sum(axis=1, keepdims=True), sizes.sum()
    value = float(statistic(total / n)[0])
    resampled = np.sort(statistic(_resampled_means(sums, sizes, n_resamples, rng)))
    # the bias: how far the value is from the median of the resamples, ties by halves
    below = np.searchsorted(resampled, value) + np.searchsorted(
        resampled, value, side="right"
    )
    share = np.clip(below / 2, 0.5, n_resamples - 0.5) / n_resamples
    bias = special.ndtri(share)
    # the acceleration: the skewness of the values that lack one row each
    lacking = statistic((total - sums) / (n - sizes))
    centred = lacking.mean() - lacking
    largest = np.abs(centred).max()
    centred /= largest if largest > 0 else 1.0  # or cubes might leave the range
    spread = np.sum(centred**2) ** 1.5
    a = float(np.sum(centred**3) / (6 * spread)) if spread > 0 else 0.0
    quantile = special.ndtri(0.5 + confidence / 2)
    w = bias + np.array([-quantile, quantile])
    levels = special.ndtr(bias + w / np.maximum(1 - a * w, 1e-3))
    low, high = np.quantile(resampled, levels, method="weibull")
    return Estimate(value, float(low), float(high), confidence)


def _parts(values: Floats, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Return the sums of random parts of the rows, and how many rows each has."""
    n = values.shape[1]
    if n <= _MOST_PARTS:
        return values, np.ones(n, dtype=np.int64)
    part = rng.permutation(n) % _MOST_PARTS
    sums = np.array([np.bincount(part, weights=column) for column in values])
    return sums, np.bincount(part)


def _resampled_means(
    sums: Floats, sizes: Ints, n_resamples: int, rng: np.random.Generator
) -> Floats:
    """Return the means of bootstrap resamples of parts, one column a resample."""
    n = sizes.size
    means = np.empty((sums.shape[0], n_resamples))
    block = max(1, _LARGEST_DRAW // n)
    for start in range(0, n_resamples, block):
        # a row of numbers for each resample, so that block sizes do not matter
        drawn = rng.integers(n, size=(min(block, n_resamples - start), n))
        rows = sizes[drawn].sum(axis=1)
        for column, out in zip(sums, means, strict=True):
            out[start : start + rows.size] = column[drawn].sum(axis=1) / rows
    return means


def zeta_score(
    value: float,
    interval: tuple[float, float],
    reference: float,
    *,
    reference_uncertainty: float = 0.0,
) -> float:
    """Return the distance of a score from its reference; between -1 and 1 is valid.

    It is (value − reference) / h, with h the distance from the value to the limit of
    its confidence interval on the reference's side: the lower limit if the reference
    is below the value. Scores of different kinds can so be compared.

    Parameters
    ----------
    value : float
        The score.
    interval : pair of float
        The limits of its confidence interval.
    reference : float
        What it should be.
    reference_uncertainty : float, default 0.0
        Half the width of the reference's own interval, at the same confidence, where it
        is known only so well: twice the standard error of a mean over simulated sets.
        h is then the root of the sum of both squares.

    References
    ----------
    P. Pernot, arXiv:2403.00423 (2024).

    Examples
    --------
    >>> round(zeta_score(1.2, (1.1, 1.6), 1.0), 3)
    2.0
    >>> round(zeta_score(1.2, (1.1, 1.6), 1.3), 3)
    -0.25
    """
    numbers = [float(x) for x in (value, *interval, reference)]
    if len(numbers) != 4 or not np.isfinite(numbers).all() or numbers[1] > numbers[2]:
        msg = (
            "`value`, `interval` and `reference` must be finite, and the limits in "
            f"order; found {value!r}, {interval!r} and {reference!r}."
        )
        raise InvalidInputError(msg)
    score, low, high, target = numbers
    own = check_nonnegative(reference_uncertainty, "reference_uncertainty")
    half = np.hypot(score - (low if score >= target else high), own)
    if half == 0:
        return 0.0 if score == target else float(np.copysign(np.inf, score - target))
    return float((score - target) / half)
