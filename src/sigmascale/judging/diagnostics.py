"""What to know before a verdict is believed: the tails of z, and a shifted set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from .._support.checks import Floats, check_pair
from .._support.labels import Categories, label_text

DISTANCE = 0.1  # between two distributions; less changes hardly any conclusion
LEVEL = 0.001  # of a test for each variable, of which there may be many
FEW_OUTSIDE = 0.01  # share of rows outside what was seen that no one needs to know of
HEAVY = 2.0  # times the normal share of z-scores beyond three standard deviations


@dataclass(frozen=True)
class ZScores:
    """The shape of the z-scores of a set.

    Attributes
    ----------
    mean, rms : float
        Mean and root mean square of z; the best are 0 and 1.
    beyond : float
        Share of rows with abs(z) above 3 rms; 0.0027 of normal ones.
    k95 : float
        The multiple of u that holds 95 % of the errors; 1.96 of normal ones.
    heavy : bool
        Whether `beyond` is more than twice the normal share, and not by chance.
    biased : bool
        Whether `mean` is more than a tenth of `rms`, and not by chance.
    """

    mean: float
    rms: float
    beyond: float
    k95: float
    heavy: bool
    biased: bool


def z_scores(error: Any, uncertainty: Any) -> ZScores:
    """Return the shape of z = error / uncertainty: bias and tails.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.

    Examples
    --------
    >>> z = np.random.default_rng(0).standard_t(3, size=5000)
    >>> shape = z_scores(z, np.ones(5000))
    >>> shape.heavy, shape.biased
    (True, False)
    """
    e, u = check_pair(error, uncertainty)
    z = e / u
    mean, rms = float(z.mean()), float(np.sqrt(np.mean(z**2)))
    count = int(np.count_nonzero(np.abs(z) > 3 * rms))
    normal = 2 * stats.norm.sf(3)
    by_chance = stats.binom.sf(count - 1, z.size, normal)
    heavy = count > HEAVY * normal * z.size and by_chance < LEVEL
    noise = stats.norm.isf(LEVEL / 2) * float(z.std()) / np.sqrt(z.size)
    return ZScores(
        mean=mean,
        rms=rms,
        beyond=count / z.size,
        k95=float(np.quantile(np.abs(z), 0.95)),
        heavy=bool(heavy),
        biased=abs(mean) > max(0.1 * rms, float(noise)),
    )


@dataclass(frozen=True)
class Shift:
    """How the distribution of one variable differs between two sets.

    Attributes
    ----------
    name : str
        The variable.
    distance : float
        Largest difference of the cumulative distributions (Kolmogorov and Smirnov);
        for labels, half the sum of the differences of their shares. The best is 0.
    p_value : float
        Of the two-sample test of Kolmogorov and Smirnov; for labels, of chi-squared.
    outside : float
        Share of the new rows outside the range of the old ones, or with a label that
        these do not have.
    unseen : tuple of str
        Those labels.
    shifted : bool
        Whether `distance` is above 0.1 and not by chance, or more than 1 % of the new
        rows are outside.
    """

    name: str
    distance: float
    p_value: float
    outside: float
    unseen: tuple[str, ...]
    shifted: bool


def compare_distributions(
    name: str, old: Floats | Categories, new: Floats | Categories
) -> Shift:
    """Return how a variable's distribution in a new set differs from an old one.

    Parameters
    ----------
    name : str
        The variable.
    old, new : array of shape (n_old,) and (n_new,)
        Its values in both sets: numbers, or labels. Missing numbers do not count.

    Examples
    --------
    >>> x = np.linspace(0, 1, 500)
    >>> compare_distributions("x", x, x).shifted
    False
    >>> compare_distributions("x", x, x + 0.3).distance
    0.3
    """
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        return _compare_numbers(name, old[~np.isnan(old)], new[~np.isnan(new)])
    return _compare_labels(
        name,
        *(
            Categories.of(each) if isinstance(each, np.ndarray) else each
            for each in (old, new)
        ),
    )


def _compare_numbers(name: str, old: Floats, new: Floats) -> Shift:
    if not old.size or not new.size:
        return Shift(name, 0.0, 1.0, 0.0, (), False)
    test = stats.ks_2samp(old, new, method="asymp")
    outside = float(np.mean((new < old.min()) | (new > old.max())))
    return _shift(name, test.statistic, test.pvalue, outside, (), old.size, new.size)


def _compare_labels(name: str, old: Categories, new: Categories) -> Shift:
    both = Categories.of(np.concatenate([old.values(), new.values()]))
    labels, codes = both.labels, both.codes
    counts = np.array(
        [
            np.bincount(part, minlength=len(labels))
            for part in (codes[: old.size], codes[old.size :])
        ]
    )
    shares = counts / counts.sum(axis=1, keepdims=True)
    distance = 0.5 * np.abs(shares[0] - shares[1]).sum()
    p_value = stats.chi2_contingency(counts).pvalue if len(labels) > 1 else 1.0
    unseen = counts[0] == 0
    outside = float(shares[1][unseen].sum())
    names = tuple(label_text(labels[i]) for i in np.flatnonzero(unseen))
    return _shift(name, distance, p_value, outside, names, old.size, new.size)


def _shift(
    name: str,
    distance: float,
    p_value: float,
    outside: float,
    unseen: tuple[str, ...],
    n_old: int,
    n_new: int,
) -> Shift:
    # a few rows beyond the largest of a small set are no surprise
    by_chance = 10 / min(n_old, n_new)
    shifted = (distance > DISTANCE and p_value < LEVEL) or (
        outside > max(FEW_OUTSIDE, by_chance)
    )
    return Shift(name, float(distance), float(p_value), outside, unseen, bool(shifted))


def count_shared_rows(old: tuple[Floats, Floats], new: tuple[Floats, Floats]) -> int:
    """Return how many rows of a new set have error and uncertainty of an old row.

    >>> old = np.array([1.0, 2.0]), np.array([0.1, 0.2])
    >>> count_shared_rows(old, (np.array([2.0, 2.0]), np.array([0.2, 0.3])))
    1
    """
    pairs = [first + 1j * second for first, second in (old, new)]
    return int(np.count_nonzero(np.isin(pairs[1], pairs[0])))
