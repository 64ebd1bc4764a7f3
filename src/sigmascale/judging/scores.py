"""Scores: single numbers that say how far uncertainties are from honest.

Every score takes ``error`` and ``uncertainty`` first. Local scores cut the set into
equal-size bins of a variable, the uncertainty itself (*consistency*) or an input
feature (*adaptivity*), and average over the bins.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import (
    Floats,
    Ints,
    Labels,
    check_column,
    check_count,
    check_features,
    check_pair,
    check_variable,
    for_frames,
    refuse_for_frames,
)
from .._support.render import html_table
from ..bins.partitions import BinnedRows, rank_bins, rank_codes
from ..bins.sums import BinSums


def codes_for_scores(
    error: Floats,
    uncertainty: Floats,
    x: Labels | None,
    n_bins: int,
    ties: Floats | None,
    *,
    min_size: int = 1,
) -> tuple[Ints, int]:
    """Return the bin of each row, by `x` (None: by u), and the number of bins."""
    x, ties = _sorting_keys(uncertainty, x, ties)
    return rank_codes(
        x, n_bins, ties=ties, error=error, uncertainty=uncertainty, min_size=min_size
    )


def bin_for_scores(
    error: Floats,
    uncertainty: Floats,
    x: Labels | None,
    n_bins: int,
    ties: Floats | None,
    *,
    min_size: int = 1,
) -> BinnedRows:
    """Return the rows of the same bins, in an order that the data alone determine."""
    x, ties = _sorting_keys(uncertainty, x, ties)
    return rank_bins(
        x, n_bins, ties=ties, error=error, uncertainty=uncertainty, min_size=min_size
    )


def _sorting_keys(
    uncertainty: Floats, x: Labels | None, ties: Floats | None
) -> tuple[Labels, Floats | None]:
    """Return what rows are sorted by: equal x by `ties`, by u if None."""
    if x is None:
        return uncertainty, ties
    return x, uncertainty if ties is None else ties


def _local_sums(
    error: Any, uncertainty: Any, by: Any, n_bins: int, ties: Any
) -> BinSums:
    e, u = check_pair(error, uncertainty)
    n_bins = check_count(n_bins, "n_bins")
    x = None if by is None else check_variable(by, "by", e)
    order = check_ties(ties, e)
    return BinSums.from_codes(*codes_for_scores(e, u, x, n_bins, order), e, u)


def check_ties(ties: Any, rows: npt.NDArray[Any]) -> Floats | None:
    """Return the variable that orders rows with equal values, if there is one."""
    return (
        None
        if ties is None
        else check_column(check_variable(ties, "ties", rows), "ties")
    )


def _global_sums(error: Any, uncertainty: Any) -> BinSums:
    e, u = check_pair(error, uncertainty)
    return BinSums.from_codes(np.zeros(e.size, dtype=np.int64), 1, e, u)


def zms(error: Any, uncertainty: Any) -> float:
    """Return the mean squared z-score <Z²>, Z = error / uncertainty; best is 1.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.

    Examples
    --------
    >>> zms([1.0, -1.0, 2.0], [1.0, 1.0, 2.0])
    1.0
    """
    return float(_global_sums(error, uncertainty).zms[0])


def nll(error: Any, uncertainty: Any) -> float:
    """Return the mean negative log-likelihood of normal errors; lower is better.

    NLL = (<Z²> + <ln u²> + ln 2π) / 2. It rewards uncertainties that are right on
    average and, among these, the sharp ones.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.

    Examples
    --------
    >>> round(nll([1.0, -1.0], [1.0, 1.0]), 4)
    1.4189
    """
    return _global_sums(error, uncertainty).nll()


def calibration_error(error: Any, uncertainty: Any) -> float:
    """Return S_cal = abs(ln <Z²>), the error of average calibration; best is 0.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.

    References
    ----------
    P. Pernot, arXiv:2310.11978 (2023).

    Examples
    --------
    >>> calibration_error([1.0, -1.0], [1.0, 1.0])
    0.0
    """
    return _global_sums(error, uncertainty).local_calibration_error()


def local_calibration_error(
    error: Any, uncertainty: Any, *, by: Any = None, n_bins: int = 100, ties: Any = None
) -> float:
    """Return S_x, the mean over bins of abs(ln <Z²>); best is small but not 0.

    A perfectly calibrated set does not reach 0 because bins are finite;
    :func:`reference_scores` says what it would reach.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    by : array-like of shape (n,), optional
        The variable to bin by: numbers make equal-size bins, labels make groups. By
        default the uncertainty (consistency); pass a feature for adaptivity.
    n_bins : int, default 100
        Number of bins; groups ignore it.
    ties : array-like of shape (n,), optional
        Orders the rows with equal `by`. By default the uncertainty.

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
    return _local_sums(error, uncertainty, by, n_bins, ties).local_calibration_error()


def ence(
    error: Any, uncertainty: Any, *, by: Any = None, n_bins: int = 100, ties: Any = None
) -> float:
    """Return the expected normalised calibration error; best is small but not 0.

    ENCE is the mean over bins of abs(RMV − RMSE) / RMV, with RMV² the mean variance
    and RMSE² the mean squared error of the bin.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    by : array-like of shape (n,), optional
        The variable to bin by; by default the uncertainty.
    n_bins : int, default 100
        Number of bins; groups ignore it.
    ties : array-like of shape (n,), optional
        Orders the rows with equal `by`. By default the uncertainty.

    References
    ----------
    D. Levi et al., Sensors 22, 5540 (2022), doi:10.3390/s22155540

    Examples
    --------
    >>> ence([2.0, -2.0, 3.0, 3.0], [2.0, 2.0, 6.0, 6.0], n_bins=2)
    0.25
    """
    return _local_sums(error, uncertainty, by, n_bins, ties).ence()


def uce(
    error: Any, uncertainty: Any, *, by: Any = None, n_bins: int = 100, ties: Any = None
) -> float:
    """Return the uncertainty calibration error (error units squared); best is small.

    UCE is the mean over bins of abs(MV − MSE), with MV the mean variance and MSE the
    mean squared error of the bin. As ENCE, it is small but not 0 for a perfect set.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    by : array-like of shape (n,), optional
        The variable to bin by; by default the uncertainty.
    n_bins : int, default 100
        Number of bins; groups ignore it.
    ties : array-like of shape (n,), optional
        Orders the rows with equal `by`. By default the uncertainty.

    References
    ----------
    L. Frenkel and J. Goldberger, ISBI (2023), doi:10.1109/ISBI53787.2023.10230543

    Examples
    --------
    >>> uce([2.0, -2.0, 3.0, 3.0], [2.0, 2.0, 6.0, 6.0], n_bins=2)
    13.5
    """
    return _local_sums(error, uncertainty, by, n_bins, ties).uce()


@dataclass(frozen=True)
class Scorecard:
    """All scores of one set; ``card["S_tot"]`` and ``card.to_dict()`` name them.

    Attributes
    ----------
    n_rows, n_bins : int
        Size of the set, and the number of bins asked for.
    nll, zms, s_cal : float
        Average scores.
    s, ence, uce : dict of str to float
        Local scores by variable; "u" is the uncertainty.
    """

    n_rows: int
    n_bins: int
    nll: float
    zms: float
    s_cal: float
    s: dict[str, float] = field(repr=False)
    ence: dict[str, float] = field(repr=False)
    uce: dict[str, float] = field(repr=False)

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
        return self.s_cal + self.s["u"]

    @property
    def s_ada(self) -> float:
        """Adaptivity: S_cal + the sum of S_x over the features."""
        return self.s_cal + sum(v for name, v in self.s.items() if name != "u")

    @property
    def s_tot(self) -> float:
        """Consistency and adaptivity: S_cal + S_u + the sum of S_x over features."""
        return self.s_cal + sum(self.s.values())

    def to_dict(self) -> dict[str, float]:
        """Return every score by its name; S_ada only where there are features."""
        scores = {"NLL": self.nll, "ZMS": self.zms, "S_cal": self.s_cal}
        scores |= {f"S_{name}": value for name, value in self.s.items()}
        scores["S_con"] = self.s_con
        if len(self.s) > 1:
            scores["S_ada"] = self.s_ada
        scores["S_tot"] = self.s_tot
        scores |= {f"ENCE_{name}": value for name, value in self.ence.items()}
        return scores | {f"UCE_{name}": value for name, value in self.uce.items()}

    def __getitem__(self, name: str) -> float:
        """Return one score by its name."""
        return self.to_dict()[name]

    def __str__(self) -> str:
        """Return one line a score, and what they are from."""
        lines = [f"{name:<12} {v: .4g}" for name, v in self.to_dict().items()]
        return "\n".join([*lines, f"({self.n_rows} rows, {self.n_bins} bins)"])

    def _repr_html_(self) -> str:
        rows = [(name, f"{v:.4g}") for name, v in self.to_dict().items()]
        return html_table(("score", "value"), rows)


def scorecard(
    error: Any,
    uncertainty: Any,
    features: Any = None,
    *,
    n_bins: int = 100,
    ties: Any = None,
    data: Any = None,
) -> Scorecard:
    """Return NLL, S_cal, and S_x, ENCE_x, UCE_x for u and every feature.

    Parameters
    ----------
    error : array-like of shape (n,)
        Errors, reference minus prediction.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    features : data frame, dict or array of shape (n, n_features), optional
        Input features; columns of an array are named X1, X2, ... A column of labels
        is scored by group.
    n_bins : int, default 100
        Number of equal-size bins of each numeric variable.
    ties : array-like of shape (n,), optional
        Orders the rows with equal values of a variable. By default the uncertainty.
        The order of ties alone can move a score as much as many a ranking's margin.
    data : data frame or lazy frame, optional
        The frame whose columns `error`, `uncertainty` and `features` name; see
        `sigmascale.frames`.

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
    if data is not None:
        refuse_for_frames(ties=ties)
        of_frame: Scorecard = for_frames().scorecard(
            data,
            error=error,
            uncertainty=uncertainty,
            features=() if features is None else features,
            n_bins=n_bins,
        )
        return of_frame
    e, u = check_pair(error, uncertainty)
    n_bins = check_count(n_bins, "n_bins")
    columns = check_features(features, e)
    order = check_ties(ties, e)
    sums = {
        name: BinSums.from_codes(*codes_for_scores(e, u, x, n_bins, order), e, u)
        for name, x in {"u": None, **columns}.items()
    }
    return Scorecard.from_sums(sums, n_bins)
