"""What predictive distributions are worth: ranked score, coverage, width, pinball."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .._support.checks import Floats
from .._support.notices import quiet
from .._support.render import Cells, Result
from ..maps.distributions import distributions_of
from ..predictions import as_predictions

COVERAGES = (0.5, 0.8, 0.9, 0.95)
PINBALL_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class DistributionScores(Result):
    """What predictive distributions are worth: ranked score, coverage and width.

    Attributes
    ----------
    law : str
        The law that was judged, in words.
    crps : float
        The mean continuous ranked probability score; lower is better.
    coverage : dict of float to float
        The fraction of truths within central intervals, by what these claim to hold.
    width : float
        The mean width of intervals of 90 %: the *sharpness*; of two that hold what they
        claim, the narrower is better.
    pinball : dict of float to float
        The mean pinball (quantile) loss, by the level of the quantile.
    """

    law: str
    crps: float
    coverage: dict[float, float]
    width: float
    pinball: dict[float, float] = field(repr=False)

    @property
    def sentence(self) -> str:
        """The scores in a sentence."""
        claimed = ", ".join(f"{100 * level:g}" for level in self.coverage)
        held = ", ".join(f"{100 * share:.0f}" for share in self.coverage.values())
        return (
            f"CRPS {self.crps:.4g}; intervals of {claimed} % hold {held} % of the "
            f"errors (law: {self.law})."
        )

    def _cells(self) -> Cells:
        rows = [("CRPS", f"{self.crps:.4g}")]
        rows += [
            (f"within {100 * level:g} %", f"{100 * share:.1f} %")
            for level, share in self.coverage.items()
        ]
        return ("score", "value"), [*rows, ("width of 90 %", f"{self.width:.4g}")]


def distribution_scores(
    error: Any, uncertainty: Any = None, *, sample_weight: Any = None
) -> DistributionScores:
    """Score predictive distributions: CRPS, coverage, sharpness and pinball loss.

    Parameters
    ----------
    error : array-like of shape (n,), or Predictions
        Errors, reference minus prediction; or Predictions, which may carry a law
        (:meth:`sigmascale.Recalibrator.apply`). Without one, errors are normal.
    uncertainty : array-like of shape (n,)
        Standard uncertainties, strictly positive.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least 0; only their ratios matter.

    Returns
    -------
    DistributionScores

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 10_000)
    >>> found = ss.distribution_scores(rng.normal(scale=u), u)
    >>> round(found.coverage[0.9], 2)
    0.9
    """
    rows = as_predictions(error, uncertainty, sample_weight=sample_weight)
    found, y = distributions_of(rows), rows.truth
    levels = sorted({(1 + sign * c) / 2 for c in COVERAGES for sign in (-1, 1)})
    levels = sorted({*levels, *PINBALL_LEVELS})
    with quiet():  # of levels beyond the rows
        quantiles = dict(zip(levels, found.quantile(levels).T, strict=True))

    def ends(coverage: float) -> tuple[Floats, Floats]:
        return quantiles[(1 - coverage) / 2], quantiles[(1 + coverage) / 2]

    coverage = {}
    for share in COVERAGES:
        low, high = ends(share)
        coverage[share] = rows.mean((y >= low) & (y <= high))
    pinball = {
        level: rows.mean((level - (y < quantiles[level])) * (y - quantiles[level]))
        for level in PINBALL_LEVELS
    }
    low, high = ends(0.9)
    return DistributionScores(
        law=found.law.words,
        crps=rows.mean(found.crps(y)),
        coverage=coverage,
        width=rows.mean(high - low),
        pinball=pinball,
    )
