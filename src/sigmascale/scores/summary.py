"""The numbers that a table of a paper has, each with its confidence interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from .._support import numerals
from .._support.checks import Floats, check_fraction, for_order
from .._support.render import Cells, Result
from ..predictions.bins import bins_of, cut
from ..predictions.predictions import Predictions, check_predictions
from .curves import rows_in_effect
from .intervals import (
    Estimate,
    mean_interval,
    size_interval,
    sums_of,
    wilson_limits,
)
from .losses_by_row import energy_scores, is_held, normal_nll
from .scoring_rules import LocalScores


@dataclass(frozen=True, repr=False)
class Summary(Result):
    """Numbers with their intervals; ``summary["CRPS"]`` and `to_dict` name them.

    Attributes
    ----------
    n_rows : int
        The number of rows.
    estimates : dict of str to Estimate
        "RMSE", "MAE", "RMS z", "coverage", "CRPS" (of vectors "energy score"), "NLL",
        "ENCE", "sharpness" and "Spearman".
    confidence, coverage : float
        That of the intervals; and the nominal coverage of the prediction intervals
        whose coverage is told.
    """

    n_rows: int
    estimates: dict[str, Estimate]
    confidence: float
    coverage: float

    def __getitem__(self, name: str) -> Estimate:
        """Return one number with its interval."""
        return self.estimates[name]

    def to_dict(self) -> dict[str, Any]:
        """Return one flat row: each number by its name, its limits by "_low", "_high".

        Names are those of `estimates`, and "rows".
        """
        row: dict[str, Any] = {"rows": self.n_rows}
        for name, estimate in self.estimates.items():
            row[name] = estimate.value
            row[f"{name}_low"] = estimate.low
            row[f"{name}_high"] = estimate.high
        return row

    def rows(self) -> dict[str, str]:
        """Return each number with its limits as text, by what it is."""
        rows = {}
        for name, x in self.estimates.items():
            words: Callable[[float, float, float], str] = numerals.measured
            if name == "coverage":
                name = f"coverage of {numerals.level(self.coverage)} intervals"
                words = numerals.percent_interval
            elif name in ("RMS z", "Spearman"):
                words = numerals.interval
            rows[name] = words(x.value, x.low, x.high)
        return rows

    def _cells(self) -> Cells:
        limits = f"[{numerals.level(self.confidence)} limits]"
        return (f"{self.n_rows:,} rows", f"estimate {limits}"), [*self.rows().items()]


def summary(
    p: Predictions, *, confidence: float = 0.95, coverage: float = 0.95
) -> Summary:
    """Return the numbers that a table of a paper has, each with its interval.

    RMSE and MAE of the predictions; RMS z, the root mean square of error / u, whose
    best value is 1; the coverage of prediction intervals; CRPS and NLL, which are
    better the lower they are; ENCE, which is small if u is calibrated, but not 0; the
    sharpness, which is the root mean square of u; and Spearman's correlation of u and
    the size of the error, which is 0 where u does not rank the errors.

    Parameters
    ----------
    p : Predictions
        Rows with known errors. Those that have distributions are scored by these,
        others as normal.
    confidence : float, default 0.95
        Of the intervals. Groups and weights count in all of them.
    coverage : float, default 0.95
        The nominal coverage of the prediction intervals.

    Returns
    -------
    Summary

    Notes
    -----
    Limits of means follow their skewness (ABC); those of coverage are Wilson's; those
    of ENCE are of its linearisation in fixed bins, which leaves its bias upwards; those
    of Spearman's correlation ρ are of atanh ρ, with the variance (1 + ρ²/2) / (n − 3).

    References
    ----------
    D. G. Bonett and T. A. Wright, Psychometrika 65, 23 (2000), doi:10.1007/BF02294183

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 2000)
    >>> s = ss.scores.summary(ss.Predictions(y_std=u, error=rng.normal(scale=u)))
    >>> round(s["RMS z"].value, 2), round(s["coverage"].value, 3)
    (1.0, 0.95)
    """
    p = check_predictions(p)
    confidence = check_fraction(confidence, "confidence")
    coverage = check_fraction(coverage, "coverage")

    def mean(values: Floats, *, skewed: bool = True) -> Estimate:
        about: dict[str, Any] = {"groups": p.groups, "weights": p.weights}
        return mean_interval(values, confidence=confidence, skewed=skewed, **about)

    ence, influence = _ence(p)
    of_ence = mean(ence + influence, skewed=False)
    estimates = {
        "RMSE": _root(mean(p.squared_error)),
        "MAE": mean(np.sqrt(p.squared_error)),
        "RMS z": _root(size_interval(p.z2, confidence, p.groups, p.weights)),
        "coverage": _share(p, is_held(p, coverage).astype(np.float64), confidence),
        "energy score" if p.is_vector else "CRPS": mean(energy_scores(p)),
        "NLL": mean(normal_nll(p), skewed=False),
        "ENCE": Estimate(ence, max(of_ence.low, 0.0), of_ence.high, confidence),
        "sharpness": _root(mean(p.y_std**2)),
    }
    if (spearman := _spearman(p, confidence)) is not None:
        estimates["Spearman"] = spearman
    return Summary(p.n_rows, estimates, confidence, coverage, _origin=p.origin)


def _root(square: Estimate) -> Estimate:
    """Return the root of a mean square."""
    value, low, high = np.sqrt(np.maximum([square.value, square.low, square.high], 0))
    return Estimate(float(value), float(low), float(high), square.confidence)


def _share(p: Predictions, is_inside: Floats, confidence: float) -> Estimate:
    """Return a share of the rows with Wilson's limits."""
    share = p.mean(is_inside)
    n_trials = rows_in_effect(p, is_inside)
    limits = wilson_limits(round(share * n_trials), n_trials, confidence)
    return Estimate(share, *limits, confidence)


def _ence(p: Predictions) -> tuple[float, Floats]:
    """Return ENCE in bins of u, and the influence of each row on it.

    With r = RMSE / RMV of one of B bins, ENCE is the mean of |1 − r|, and a row with
    error e moves r by (e² / MSE − u² / MV) r / 2, per share of the bin.
    """
    (bins,) = cut(p, bins_of(None, p.n_effective), by=0).values()
    local = LocalScores.of(p, bins)
    ratio = np.sqrt(local.mse / local.variance)
    size = bins.sums(np.ones(p.n_rows))
    slope = np.sign(ratio - 1) * ratio / 2 / ratio.size / (size / size.sum())

    # of each piece of a row, as limits between bins of equal weight part rows
    code = bins.codes
    row = bins.order
    squares = p.squared_error[row] / np.maximum(local.mse, 1e-300)[code]
    variances = p.y_std[row] ** 2 / local.variance[code]
    piece = slope[code] * (squares - variances)
    if p.weights is not None and bins.weights is not None:
        piece *= bins.weights / p.weights[row]
    return local.ence, sums_of(row, piece, p.n_rows)


def _spearman(p: Predictions, confidence: float) -> Estimate | None:
    """Return Spearman's correlation of u and |error|; None where one is constant."""
    size = np.sqrt(p.squared_error)
    if np.ptp(p.y_std) == 0 or np.ptp(size) == 0:
        return None
    from scipy import stats

    # rounded
    ranks = stats.rankdata(for_order(p.y_std)), stats.rankdata(for_order(size))
    value = float(np.corrcoef(*ranks)[0, 1])
    product = (ranks[0] - ranks[0].mean()) * (ranks[1] - ranks[1].mean())
    n = max(rows_in_effect(p, product), 4)
    half = special.ndtri((1 + confidence) / 2) * math.sqrt((1 + value**2 / 2) / (n - 3))
    centre = math.atanh(min(max(value, -0.999999), 0.999999))
    low, high = math.tanh(centre - half), math.tanh(centre + half)
    return Estimate(value, min(low, value), max(high, value), confidence)
