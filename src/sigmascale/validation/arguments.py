"""The arguments of tests: a tolerance and a confidence."""

from __future__ import annotations

import math
from typing import Any, Literal

from .._support.checks import check_fraction, is_real, need

Scope = Literal["u", "intervals", "both"]


def check_tolerance(tolerance: Any) -> float:
    """Return a factor that is larger than 1."""
    is_right = is_real(tolerance) and 1 < tolerance < math.inf
    need(is_right, "tolerance", "be a factor larger than 1, such as 1.25", tolerance)
    return float(tolerance)


def check_confidence(confidence: Any) -> float:
    """Return a confidence of one side, which is above a half."""
    share = check_fraction(confidence, "confidence")
    must = "be between 0.5 and 1, such as 0.95: it is the level of one-sided limits"
    need(share > 0.5, "confidence", must, confidence)
    return share
