"""Confidence curves: the error that is left as the most uncertain rows are removed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._support.checks import (
    Floats,
    Ints,
    check_choice,
    check_count,
    check_fraction,
    rng_from,
)
from .._support.render import Cells, Result
from ..bins.partitions import cut_positions, rank_bins
from ..exceptions import InvalidInputError
from .binning import unweighted

Statistic = str | Callable[[Floats], float]


@dataclass(frozen=True)
class ConfidenceCurve(Result):
    """The error of what is left as the most uncertain rows are pruned.

    Attributes
    ----------
    pruned : array of shape (n_points,)
        Fraction of rows removed, from 0.
    error : array of shape (n_points,)
        The statistic of the remaining errors.
    oracle : array of shape (n_points,)
        The same when rows are removed by their true absolute error: the lowest curve.
    reference, reference_low, reference_high : array of shape (n_points,)
        Mean and interval of the curve for errors drawn from N(0, u), the
        *probabilistic reference* that honest uncertainties of normal errors follow.
    statistic : str
        Name of the statistic.
    """

    pruned: Floats = field(repr=False)
    error: Floats = field(repr=False)
    oracle: Floats = field(repr=False)
    reference: Floats = field(repr=False)
    reference_low: Floats = field(repr=False)
    reference_high: Floats = field(repr=False)
    statistic: str

    @property
    def relative(self) -> Floats:
        """The curve divided by its first value, as the error of all rows."""
        first = self.error[0]
        return self.error / first if first > 0 else np.zeros_like(self.error)

    @property
    def area_to_oracle(self) -> float:
        """The mean distance from the oracle, as a share of the error of all rows.

        It is known as AUCO. 0 would be the oracle, which knows the errors; what honest
        uncertainties reach is in :func:`tails`.
        """
        return _area(self.error, self.oracle)

    def _cells(self) -> Cells:
        shown = np.linspace(0, self.pruned.size - 1, min(11, self.pruned.size)).astype(
            int
        )
        rows = [
            (
                f"{self.pruned[i]:.0%}",
                f"{self.error[i]:.4g}",
                f"{self.reference[i]:.4g}",
            )
            for i in shown
        ]
        return ("pruned", self.statistic, "reference"), rows


def confidence_curve(
    error: Any,
    uncertainty: Any = None,
    *,
    statistic: Statistic = "rmse",
    n_points: int = 100,
    n_draws: int = 500,
    confidence: float = 0.95,
    rng: int | np.random.Generator | None = 0,
) -> ConfidenceCurve:
    """Return the confidence curve with its oracle and probabilistic reference.

    A curve that falls steadily shows that large uncertainties go with large errors. It
    does not depend on the scale of the uncertainties; its reference does.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which hold all of the rows.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    statistic : {"rmse", "mae"} or callable, default "rmse"
        What is computed from the errors that are left.
    n_points : int, default 100
        Number of points: pruned fractions 0, 1/n_points, 2/n_points, ...
    n_draws : int, default 500
        Simulated sets behind the reference.
    confidence : float, default 0.95
        Coverage of the reference band.
    rng : int, Generator or None, default 0
        Seed of the simulation.

    Returns
    -------
    ConfidenceCurve

    References
    ----------
    P. Pernot, arXiv:2206.15272 (2022).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 5, 1000)
    >>> curve = confidence_curve(rng.normal(scale=u), u, n_draws=50)
    >>> bool(curve.error[90] < 0.6 * curve.error[0])
    True
    """
    rows = unweighted(error, uncertainty)
    e, u = rows.errors, rows.uncertainty
    if not callable(statistic):
        check_choice(statistic, "statistic", ("rmse", "mae"))
    n_points = min(check_count(n_points, "n_points"), e.size)
    n_draws = check_count(n_draws, "n_draws")
    tail = (1 - check_fraction(confidence, "confidence")) / 2
    generator = rng_from(rng)

    pruned = cut_positions(e.size, n_points)
    kept = e.size - pruned
    order = rank_bins(u, 1, error=e).order
    in_order, u_in_order = e[order], u[order]
    # only a function may look at the signs
    by_size = e[np.argsort(np.abs(e))] if callable(statistic) else np.sort(np.abs(e))
    simulated = np.array(
        [
            _curve(generator.standard_normal(e.size) * u_in_order, kept, statistic)
            for _ in range(n_draws)
        ]
    )
    return ConfidenceCurve(
        pruned=pruned / e.size,
        error=_curve(in_order, kept, statistic),
        oracle=_curve(by_size, kept, statistic),
        reference=simulated.mean(axis=0),
        reference_low=np.quantile(simulated, tail, axis=0),
        reference_high=np.quantile(simulated, 1 - tail, axis=0),
        statistic=statistic
        if isinstance(statistic, str)
        else getattr(statistic, "__name__", "statistic"),
    )


def area_to_oracle(by_u: Floats, by_size: Floats, kept: Ints) -> float:
    """Return the area between the rmse of errors in the order of u, and the oracle."""
    return _area(_curve(by_u, kept, "rmse"), _curve(by_size, kept, "rmse"))


def _area(curve: Floats, oracle: Floats) -> float:
    return float(np.mean(curve - oracle) / curve[0]) if curve[0] > 0 else 0.0


def _curve(errors: Floats, kept: Ints, statistic: Statistic) -> Floats:
    """Return the statistic of the first `kept` errors, for each number kept."""
    if callable(statistic):
        try:
            values = np.array([float(statistic(errors[:k])) for k in kept])
        except (TypeError, ValueError) as problem:
            msg = f"`statistic` must return a number ({problem})."
            raise InvalidInputError(msg) from problem
        if not np.isfinite(values).all():
            msg = "`statistic` must return a finite number for every subset of errors."
            raise InvalidInputError(msg)
        return values
    if statistic == "mae":
        return np.cumsum(np.abs(errors))[kept - 1] / kept
    return np.sqrt(np.cumsum(errors**2)[kept - 1] / kept)
