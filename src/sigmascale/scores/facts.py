"""What stands beside a verdict: how u and errors go together, in plain numbers.

These are the numbers that a referee asks for, each with limits of its own: errors in
tenths of u, what intervals hold, how heavy tails are, how sharp predictions are, and
whether large u goes with large errors at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._support.checks import Floats
from .._support.numerals import fixed, number
from .._support.render import Cells, Result
from ..predictions.bins import cut
from ..predictions.predictions import Predictions, check_predictions
from .curves import rows_in_effect
from .intervals import Estimate, mean_interval, renumbered, wilson_limits
from .losses import COVERAGES, energy_scores, is_held
from .student import fit_student

TENTHS = 10
ROWS_FOR_TENTHS = 50  # for tenths, of which five rows tell little


@dataclass(frozen=True)
class Tenth(Result):
    """The rows of a tenth of u: their uncertainty, and their error with limits.

    Attributes
    ----------
    n_rows : int
        How many rows.
    u, rmse : float
        Root mean squares of their uncertainties, and of their errors.
    low, high : float
        Limits of the latter.
    """

    n_rows: int
    u: float
    rmse: float
    low: float
    high: float

    def _cells(self) -> Cells:
        header = ("u", "rows", "RMS error", "limits")
        limits = f"[{number(self.low)}, {number(self.high)}]"
        return header, [(number(self.u), f"{self.n_rows}", number(self.rmse), limits)]


@dataclass(frozen=True)
class Evidence(Result):
    """Numbers beside a verdict.

    Attributes
    ----------
    tenths : tuple of Tenth
        Root mean squares of u and of the errors in tenths of u; none of few rows.
    held : dict of str to Estimate
        The share of truths within intervals, by what these claim to hold: "0.95".
    nu : float
        Degrees of freedom of Student's t that fits the z-scores best: below 4, rare
        large errors decide. NaN of vectors.
    sharpness : float
        The root mean square of u.
    crps : Estimate
        The mean CRPS, or energy score, in the unit of the error.
    rank_correlation : float
        Spearman's, of u and the size of the error: 0 is a u that tells nothing.
    """

    tenths: tuple[Tenth, ...]
    held: dict[str, Estimate]
    nu: float
    sharpness: float
    crps: Estimate
    rank_correlation: float

    def _cells(self) -> Cells:
        rows = [
            (f"{100 * float(level):g} % intervals hold", *_with_limits(share, 100))
            for level, share in self.held.items()
        ]
        rows += [
            ("CRPS", *_with_limits(self.crps)),
            ("RMS of u", number(self.sharpness, 4), ""),
            ("degrees of freedom of z", number(self.nu), ""),
            ("rank correlation of u and |error|", fixed(self.rank_correlation, 2), ""),
        ]
        return ("", "value", "limits"), rows


def _with_limits(estimate: Estimate, unit: float = 1.0) -> tuple[str, str]:
    """Return a number and its limits in words, in a unit."""
    value = number(unit * estimate.value, 4)
    return (
        value,
        f"[{number(unit * estimate.low, 4)}, {number(unit * estimate.high, 4)}]",
    )


def evidence(p: Predictions, *, confidence: float = 0.95) -> Evidence:
    """Return the numbers that stand beside a verdict, with limits.

    Parameters
    ----------
    p : Predictions
        Rows with known errors. Those that have distributions are judged by these,
        others as normal. Groups and weights count in all limits.
    confidence : float, default 0.95
        Of the limits.

    Returns
    -------
    Evidence

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 2000)
    >>> found = ss.scores.evidence(ss.Predictions(y_std=u, error=rng.normal(scale=u)))
    >>> round(found.held["0.9"].value, 2), len(found.tenths)
    (0.9, 10)
    """
    p = check_predictions(p)
    return Evidence(
        tenths=_tenths(p, confidence),
        held={f"{level:g}": _held(p, level, confidence) for level in COVERAGES},
        nu=np.nan if p.is_vector else _degrees_of_freedom(p),
        sharpness=float(np.sqrt(p.mean(p.y_std**2))),
        crps=mean_interval(
            energy_scores(p),
            confidence=confidence,
            groups=p.groups,
            weights=p.weights,
            skewed=True,
        ),
        rank_correlation=_rank_correlation(p),
    )


def _tenths(p: Predictions, confidence: float) -> tuple[Tenth, ...]:
    """Return u and errors in tenths of u."""
    if p.n_effective < ROWS_FOR_TENTHS:
        return ()
    (bins,) = cut(p, TENTHS, by=0).values()
    rms_u = np.sqrt(bins.means(p.y_std**2))
    tenths = []
    for u, rows, weights in zip(rms_u, bins.rows, bins.weights_of_rows, strict=True):
        mse = mean_interval(
            p.squared_error[rows],
            confidence=confidence,
            groups=renumbered(p.groups, rows),
            weights=weights,
            skewed=True,
        )
        rmse, low, high = np.sqrt(np.maximum([mse.value, mse.low, mse.high], 0.0))
        tenths.append(Tenth(len(rows), float(u), float(rmse), float(low), float(high)))
    return tuple(tenths)


def _held(p: Predictions, level: float, confidence: float) -> Estimate:
    """Return the share of truths that intervals hold, with Wilson's limits."""
    held = is_held(p, level).astype(np.float64)
    share = p.mean(held)
    n_trials = rows_in_effect(p, held)
    limits = wilson_limits(round(share * n_trials), n_trials, confidence)
    return Estimate(share, *limits, confidence)


def _degrees_of_freedom(p: Predictions) -> float:
    """Return ν of the tails of z; not a number where all errors are 0."""
    if not np.any(p.errors):
        return np.nan
    df, _ = fit_student(p.z, p.weights)
    return df


def _rank_correlation(p: Predictions) -> float:
    """Return Spearman's correlation of u and the size of the error, 0 of constants."""
    size = np.sqrt(p.squared_error)
    if np.ptp(p.y_std) == 0 or np.ptp(size) == 0:
        return 0.0
    return float(np.corrcoef(_ranks(p.y_std), _ranks(size))[0, 1])


def _ranks(values: Floats) -> Floats:
    """Return the ranks of numbers; equal ones have the mean of theirs."""
    # rounded
    _, code, counts = np.unique(values, return_inverse=True, return_counts=True)
    last_rank = np.cumsum(counts)
    mean_rank = last_rank - (counts - 1) / 2
    return np.asarray(mean_rank[code])
