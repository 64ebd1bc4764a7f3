"""Scores: single numbers that say how far uncertainties are from honest.

Every score takes ``error`` and ``uncertainty`` first. Local scores cut the set into
equal-size bins of a variable, the uncertainty itself (*consistency*) or an input
feature (*adaptivity*), and average over the bins.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from .._support.render import WIDTH, Cells, Result
from ..bins.devices import DeviceRows
from ..bins.libraries import on_device
from ..bins.partitions import bins_of
from ..bins.sums import TERMS, BinSums
from ..exceptions import InvalidInputError
from ..predictions import Predictions, as_predictions
from .binning import VariableBins, bin_variables, check_ties, judged_by
from .distributions import DistributionScores, distribution_scores

_LOCAL = ("z2", "e2", "u2")  # the terms of local scores


def _global_sums(
    error: Any, uncertainty: Any, sample_weight: Any, *terms: str
) -> BinSums:
    """Return the sums of all rows; of those on a device, the terms asked for."""
    if on_device(error, uncertainty):
        refuse_weights_on_device(sample_weight)
        there = DeviceRows.judged(error, uncertainty)
        with there.library.in_64_bits():
            return there.sums(terms or TERMS)
    rows = as_predictions(error, uncertainty, sample_weight=sample_weight)
    e, u = rows.errors, rows.uncertainty
    return BinSums.of_all(e, u, rows.weights, terms=terms or TERMS)


def refuse_weights_on_device(sample_weight: Any) -> None:
    """Say that weighted rows are judged in the memory of the host."""
    if sample_weight is not None:
        msg = (
            "Rows on a device are judged without weights: copy them to NumPy, or leave "
            "`sample_weight` out."
        )
        raise InvalidInputError(msg)


def _local_sums(
    error: Any, uncertainty: Any, by: Any, n_bins: Any, ties: Any, sample_weight: Any
) -> BinSums:
    if on_device(error, uncertainty, by):
        refuse_weights_on_device(sample_weight)
        features = None if by is None else {"by": by}
        judged = DeviceRows.judged(error, uncertainty, features)
        count = bins_of(n_bins, judged.n_rows)
        with judged.library.in_64_bits():
            return judged.ranked_sums(len(judged.columns) - 1, count, _LOCAL, ties)
    rows, position = judged_by(error, uncertainty, by, sample_weight=sample_weight)
    count = bins_of(n_bins, rows.total)
    order = check_ties(ties, rows)
    bins = bin_variables(rows, count, only=position, ties=order)
    return bins[rows.names[position]].sums(rows)


def zms(error: Any, uncertainty: Any = None, *, sample_weight: Any = None) -> float:
    """Return the mean squared z-score <Z²>, Z = error / uncertainty; best is 1.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter.

    Examples
    --------
    >>> zms([1.0, -1.0, 2.0], [1.0, 1.0, 2.0])
    1.0
    """
    return float(_global_sums(error, uncertainty, sample_weight, "z2").zms[0])


def nll(
    error: Any,
    uncertainty: Any = None,
    *,
    sample_weight: Any = None,
) -> float:
    """Return the mean negative log-likelihood of normal errors; lower is better.

    NLL = (<Z²> + <ln u²> + ln 2π) / 2. It rewards uncertainties that
    are right on average and, among these, the sharp ones.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter.

    Examples
    --------
    >>> round(nll([1.0, -1.0], [1.0, 1.0]), 4)
    1.4189
    """
    return _global_sums(error, uncertainty, sample_weight, "z2", "log_u2").nll()


def calibration_error(
    error: Any, uncertainty: Any = None, *, sample_weight: Any = None
) -> float:
    """Return S_cal = abs(ln <Z²>), the error of average calibration; best is 0.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter.

    References
    ----------
    P. Pernot, arXiv:2310.11978 (2023).

    Examples
    --------
    >>> calibration_error([1.0, -1.0], [1.0, 1.0])
    0.0
    """
    sums = _global_sums(error, uncertainty, sample_weight, "z2")
    return sums.local_calibration_error()


def local_calibration_error(
    error: Any,
    uncertainty: Any = None,
    *,
    by: Any = None,
    n_bins: int | None = None,
    ties: Any = None,
    sample_weight: Any = None,
) -> float:
    """Return S_x, the mean over bins of abs(ln <Z²>); best is small but not 0.

    A perfectly calibrated set does not reach 0 because bins are finite;
    :func:`reference_scores` says what it would reach.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    by : array-like of shape (n,), optional
        The variable to bin by: numbers make equal-size bins, labels make groups. By
        default the uncertainty (consistency); pass a feature for adaptivity. Of
        Predictions, the name of a column.
    n_bins : int, optional
        Number of bins; groups ignore it. By default bins have 30 rows or more, and
        there are at most 100.
    ties : array-like of shape (n,), optional
        Orders the rows with equal `by`. By default the uncertainty.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter. Bins then have equal
        weights.

    References
    ----------
    P. Pernot, arXiv:2310.11978 (2023).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 10_000)
    >>> error = rng.normal(scale=u)
    >>> round(local_calibration_error(error, u), 2)
    0.12
    >>> round(local_calibration_error(error, 2 * u), 2)
    1.4
    """
    sums = _local_sums(error, uncertainty, by, n_bins, ties, sample_weight)
    return sums.local_calibration_error()


def ence(
    error: Any,
    uncertainty: Any = None,
    *,
    by: Any = None,
    n_bins: int | None = None,
    ties: Any = None,
    sample_weight: Any = None,
) -> float:
    """Return the expected normalised calibration error; best is small but not 0.

    ENCE is the mean over bins of abs(RMV − RMSE) / RMV, with RMV² the mean variance
    and RMSE² the mean squared error of the bin.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    by : array-like of shape (n,), optional
        The variable to bin by; by default the uncertainty. Of Predictions, the name of
        a column.
    n_bins : int, optional
        Number of bins; groups ignore it. By default bins have 30 rows or more, and
        there are at most 100.
    ties : array-like of shape (n,), optional
        Orders the rows with equal `by`. By default the uncertainty.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter. Bins then have equal
        weights.

    References
    ----------
    D. Levi et al., Sensors 22, 5540 (2022), doi:10.3390/s22155540

    Examples
    --------
    >>> ence([2.0, -2.0, 3.0, 3.0], [2.0, 2.0, 6.0, 6.0], n_bins=2)
    0.25
    """
    return _local_sums(error, uncertainty, by, n_bins, ties, sample_weight).ence()


def uce(
    error: Any,
    uncertainty: Any = None,
    *,
    by: Any = None,
    n_bins: int | None = None,
    ties: Any = None,
    sample_weight: Any = None,
) -> float:
    """Return the uncertainty calibration error (error units squared); best is small.

    UCE is the mean over bins of abs(MV − MSE), with MV the mean variance and MSE the
    mean squared error of the bin. As ENCE, it is small but not 0 for a perfect set.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    by : array-like of shape (n,), optional
        The variable to bin by; by default the uncertainty. Of Predictions, the name of
        a column.
    n_bins : int, optional
        Number of bins; groups ignore it. By default bins have 30 rows or more, and
        there are at most 100.
    ties : array-like of shape (n,), optional
        Orders the rows with equal `by`. By default the uncertainty.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter. Bins then have equal
        weights.

    References
    ----------
    L. Frenkel and J. Goldberger, ISBI (2023), doi:10.1109/ISBI53787.2023.10230543

    Examples
    --------
    >>> uce([2.0, -2.0, 3.0, 3.0], [2.0, 2.0, 6.0, 6.0], n_bins=2)
    13.5
    """
    return _local_sums(error, uncertainty, by, n_bins, ties, sample_weight).uce()


def named_scores(
    nll: Any,
    zms: Any,
    s_cal: Any,
    s: Mapping[str, Any],
    ence: Mapping[str, Any],
    uce: Mapping[str, Any],
) -> dict[str, Any]:
    """Return every score by its name; S_ada only where there are features.

    Scores are numbers of one set, or arrays of many; local ones are by variable.
    """
    named = {"NLL": nll, "ZMS": zms, "S_cal": s_cal}
    named |= {f"S_{name}": value for name, value in s.items()}
    named["S_con"] = s_cal + s["u"]
    if len(s) > 1:
        named["S_ada"] = s_cal + sum(value for name, value in s.items() if name != "u")
    named["S_tot"] = s_cal + sum(s.values())
    named |= {f"ENCE_{name}": value for name, value in ence.items()}
    return named | {f"UCE_{name}": value for name, value in uce.items()}


@dataclass(frozen=True)
class Scorecard(Result):
    """All scores of one set; ``card["S_tot"]`` and ``card.to_dict()`` name them.

    Attributes
    ----------
    n_rows, n_bins : int
        Size of the set, and the number of bins asked for.
    nll, zms, s_cal : float
        Average scores.
    s, ence, uce : dict of str to float
        Local scores by variable; "u" is the uncertainty.
    rows : Predictions or None
        The rows, where they are in memory.
    """

    n_rows: int
    n_bins: int
    nll: float
    zms: float
    s_cal: float
    s: dict[str, float] = field(repr=False)
    ence: dict[str, float] = field(repr=False)
    uce: dict[str, float] = field(repr=False)
    rows: Predictions | None = field(default=None, repr=False, compare=False)

    @cached_property
    def distribution(self) -> DistributionScores | None:
        """The scores of distributions; None if rows are not in memory."""
        return None if self.rows is None else distribution_scores(self.rows)

    @classmethod
    def from_sums(cls, sums: dict[str, BinSums], n_bins: int) -> Scorecard:
        """Return the scores of a set from its bin sums by variable."""
        total = sums["u"].total
        return cls(
            n_rows=int(total.n[0]),
            n_bins=n_bins,
            nll=total.nll(),
            zms=float(total.zms[0]),
            s_cal=total.local_calibration_error(),
            s={name: each.local_calibration_error() for name, each in sums.items()},
            ence={name: each.ence() for name, each in sums.items()},
            uce={name: each.uce() for name, each in sums.items()},
        )

    @property
    def s_con(self) -> float:
        """Consistency: S_cal + S_u."""
        return self["S_con"]

    @property
    def s_ada(self) -> float:
        """Adaptivity: S_cal + the sum of S_x over the features."""
        return self.to_dict().get("S_ada", self.s_cal)

    @property
    def s_tot(self) -> float:
        """Consistency and adaptivity: S_cal + S_u + the sum of S_x over features."""
        return self["S_tot"]

    def to_dict(self) -> dict[str, float]:
        """Return every score by its name; S_ada only where there are features."""
        return named_scores(self.nll, self.zms, self.s_cal, self.s, self.ence, self.uce)

    def __getitem__(self, name: str) -> float:
        """Return one score by its name."""
        return self.to_dict()[name]

    def __str__(self) -> str:
        """Return one line a score, and what they are from."""
        lines = [f"{name:<12} {v: .4g}" for name, v in self.to_dict().items()]
        if self.distribution is not None:
            lines += textwrap.wrap(self.distribution.sentence, WIDTH)
        return "\n".join([*lines, f"({self.n_rows} rows, {self.n_bins} bins)"])

    def _cells(self) -> Cells:
        rows = [(name, f"{value:.4g}") for name, value in self.to_dict().items()]
        more = [] if self.distribution is None else self.distribution._cells()[1]
        return ("score", "value"), [*rows, *more]


def scorecard(
    error: Any,
    uncertainty: Any = None,
    features: Any = None,
    *,
    n_bins: int | None = None,
    ties: Any = None,
    sample_weight: Any = None,
) -> Scorecard:
    """Return NLL, S_cal, and S_x, ENCE_x, UCE_x for u and every feature.

    Scores are numbers without intervals. They are the same whether rows belong together
    or not, so that there are no `groups` to pass; what such scores should be depends
    on it, see :func:`reference_scores`.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    features : data frame, dict or array of shape (n, n_features), optional
        Input features; columns of an array are named X1, X2, ... A column of labels
        is scored by group.
    n_bins : int, optional
        Number of equal-size bins of each numeric variable. By default they have 30
        rows or more, and there are at most 100.
    ties : array-like of shape (n,), optional
        Orders the rows with equal values of a variable. By default the uncertainty.
        The order of ties alone can move a score as much as many a ranking's margin.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter. Bins then have equal
        weights.

    Returns
    -------
    Scorecard

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 10_000)
    >>> card = scorecard(rng.normal(scale=u), u, {"mass": rng.uniform(size=10_000)})
    >>> round(card["S_mass"], 2), round(card.s_tot, 2)
    (0.11, 0.24)
    """
    if on_device(error, uncertainty, features):
        refuse_weights_on_device(sample_weight)
        return _score_device(error, uncertainty, features, n_bins, ties)
    rows = as_predictions(error, uncertainty, features, sample_weight=sample_weight)
    count = bins_of(n_bins, rows.total)
    order = check_ties(ties, rows)
    return score(rows, bin_variables(rows, count, ties=order), count)


def _score_device(
    error: Any, uncertainty: Any, features: Any, n_bins: Any, ties: Any
) -> Scorecard:
    rows = DeviceRows.judged(error, uncertainty, features)
    count = bins_of(n_bins, rows.n_rows)
    with rows.library.in_64_bits():
        sums = {
            name: rows.ranked_sums(
                position, count, _LOCAL if position else (*_LOCAL, "log_u2"), ties
            )
            for position, name in enumerate(rows.names)
        }
    return Scorecard.from_sums(sums, count)


def score(
    rows: Predictions, bins: Mapping[str, VariableBins], n_bins: int
) -> Scorecard:
    """Return the scores of checked rows from their bins, of which `n_bins` were asked.

    The bins must hold those of u.
    """
    sums = {name: each.sums(rows) for name, each in bins.items()}
    card = Scorecard.from_sums(sums, n_bins)
    return replace(card, n_rows=rows.n_rows, rows=rows)
