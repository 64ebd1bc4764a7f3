"""Predictive distributions: those of z, which a fit learns, and those of rows."""

from .distributions import (
    Bounds,
    Distributions,
    any_bound,
    check_bounds,
    check_coverage,
    check_levels,
)
from .quantile_tables import MOST_QUANTILES, QuantileTable, ZDistribution
from .stretched import Parts, rows_needed_for

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
