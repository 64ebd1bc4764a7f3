"""How much RMS z varies between the parts of a column, beyond chance."""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize, special

from .._support.checks import Floats
from .checks import Tested
from .columns import FEWEST
from .results import Variation


def largest_variation(tested: Tested) -> Variation | None:
    """Return how much RMS z varies between the parts of the column where it is most."""
    regions = tested.regions
    limits = [x for x in tested.limits if x.question.is_by_column]
    if regions is None or not limits or tested.values.n_units < FEWEST:
        return None
    estimates = limits[0].estimates
    found = []
    for i, column in enumerate(tested.columns):
        mine = (regions.owner == i) & regions.is_part & regions.is_usable
        if np.count_nonzero(mine) > 1:
            rest = np.sqrt(np.maximum(1 - regions.share[mine], 0.01))
            numbers = variation(
                estimates.difference[mine], estimates.se[mine] / rest, tested.confidence
            )
            found.append(Variation(column.name, *numbers, tested.confidence))
    return max(found, key=lambda x: x.sd, default=None)


def variation(d: Floats, se: Floats, confidence: float) -> tuple[float, float, float]:
    """Return the root mean square of differences beyond chance, with its limits.

    Q = Σ ((d − d̄) / se)² is noncentral χ², with Σ ((δ − δ̄) / se)², whose limits are
    those at which Q is as small, or as large, by chance (W. Venables, J. R. Stat. Soc.
    B 37, 406 (1975)).
    """
    weight = 1 / np.maximum(se, 1e-9) ** 2  # where all z are equal, there is no noise
    q = float(np.sum(weight * (d - np.average(d, weights=weight)) ** 2))
    df = d.size - 1

    def reached(share: float) -> float:
        def excess(noncentrality: float) -> float:
            return float(special.chndtr(q, df, noncentrality) - share)

        if excess(0.0) <= 0:
            return 0.0
        return float(optimize.brentq(excess, 0, 10 * q + 100))

    ends = (
        max(q - df, 0.0),
        reached((1 + confidence) / 2),
        reached((1 - confidence) / 2),
    )
    sd, low, high = (math.sqrt(x / float(weight.sum())) for x in ends)
    return sd, low, high
