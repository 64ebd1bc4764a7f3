"""Predictive distributions: those of z, which a fit learns, and those of rows."""

from .rows import (
    Bounds,
    Distributions,
    any_bound,
    check_bounds,
    check_coverage,
    check_levels,
)
from .stretched import Parts, rows_needed_for
from .tables import MOST_QUANTILES, QuantileTable, ZDistribution

__all__ = [
    "MOST_QUANTILES",
    "Bounds",
    "Distributions",
    "Parts",
    "QuantileTable",
    "ZDistribution",
    "any_bound",
    "check_bounds",
    "check_coverage",
    "check_levels",
    "rows_needed_for",
]
