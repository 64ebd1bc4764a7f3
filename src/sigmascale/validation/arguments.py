"""The arguments of tests: a tolerance, a confidence and a scope."""

from __future__ import annotations

import math
from typing import Any, Literal

from .._support.checks import check_fraction, is_real
from .._support.text import quoted
from ..exceptions import InvalidInputError

Scope = Literal["u", "intervals", "both"]
SCOPES: tuple[Scope, ...] = ("u", "intervals", "both")


def check_tolerance(tolerance: Any) -> float:
    """Return a factor that is larger than 1."""
    if not is_real(tolerance) or not 1 < tolerance < math.inf:
        msg = (
            "`tolerance` must be a factor larger than 1, such as 1.25; found "
            f"{quoted(tolerance)}."
        )
        raise InvalidInputError(msg)
    return float(tolerance)


def check_confidence(confidence: Any) -> float:
    """Return a confidence of one side, which is above a half."""
    share = check_fraction(confidence, "confidence")
    if share <= 0.5:
        msg = (
            "`confidence` must be between 0.5 and 1, such as 0.95: it is the level of "
            f"one-sided limits; found {quoted(confidence)}."
        )
        raise InvalidInputError(msg)
    return share


def check_scope(scope: Any) -> Scope:
    """Return what is to be tested."""
    for known in SCOPES:
        if scope == known:
            return known
    names = ", ".join(f'"{known}"' for known in SCOPES)
    msg = f"`scope` must be one of {names}; found {quoted(scope)}."
    raise InvalidInputError(msg)
