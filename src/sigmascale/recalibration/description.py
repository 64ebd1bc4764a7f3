"""What was learned, in words."""

from __future__ import annotations

import numpy as np

from .._support.numerals import number, percent
from .._support.text import listed
from .additive import Additive, Base
from .distributions import Bounds


def scale_words(scale: Additive, names: tuple[str, ...]) -> str:
    """Return what a map does to uncertainties, in words without a full stop.

    >>> scale_words(Additive(constant=float(np.log(2.0))), ("u",))
    'Uncertainties are multiplied by one factor, 2'
    """
    base = scale.base
    level = float(np.exp(scale.constant))
    factor = level * base.a
    if is_one_factor(scale):
        if factor == 1:
            return "Uncertainties stay as they are"
        return f"Uncertainties are multiplied by one factor, {number(factor)}"
    if not scale.tables:
        return _base_words(base, level)

    # the sum of tables lies between the sums of their extremes, and within bounds
    lowest = max(sum(table.values.min() for table in scale.tables), scale.bounds[0])
    highest = min(sum(table.values.max() for table in scale.tables), scale.bounds[1])
    low = np.exp(lowest)
    high = np.exp(highest)
    if base.is_factor:  # it belongs to the factors of the tables
        words = "Uncertainties are multiplied"
        low *= factor
        high *= factor
    else:
        words = f"{_base_words(base, level)}, and multiplied"
    used = sorted({axis.column for axis in scale.axes})
    columns = listed([names[column] for column in used])
    words = f"{words} by factors of {columns}, between {number(low)} and {number(high)}"
    n_unused = len(set(range(1, len(names))) - set(used))
    if n_unused:
        words += f"; {n_unused} of {len(names) - 1} features are not used"
    return words


def is_one_factor(scale: Additive) -> bool:
    """Return whether a map multiplies all uncertainties alike."""
    return not scale.tables and scale.base.is_factor


def shape_words(kept: float | None) -> str:
    """Return how much of the shape of rows is kept, in a sentence; nothing of none.

    >>> shape_words(0.5)
    'Half of the shape of each row is kept, by cross-validated scores.'
    """
    if kept is None:
        return ""
    share = {0.0: "Nothing", 0.5: "Half", 1.0: "All"}.get(kept, percent(kept))
    return f"{share} of the shape of each row is kept, by cross-validated scores."


def bounds_words(bounds: Bounds) -> str:
    """Return what true values are bounded by, in a sentence; nothing without bounds.

    >>> bounds_words((0.0, None))
    'True values are at least 0: quantiles stay within.'
    """
    low, high = bounds
    limits = [] if low is None else [f"at least {number(low)}"]
    limits += [] if high is None else [f"at most {number(high)}"]
    return f"True values are {listed(limits)}: quantiles stay within." if limits else ""


def _base_words(base: Base, level: float) -> str:
    """Return what takes the place of u: a formula, and its numbers."""
    if base.knots is not None:
        return f"Every u² is replaced by a line through {len(base.knots)} knots"
    formula = "a u"
    numbers = [f"a = {number(level * base.a, 4)}"]
    if base.b:
        sign = "+" if base.b > 0 else "−"
        formula = f"sqrt(a² u² {sign} b²)"
        numbers.append(f"b = {number(level * abs(base.b), 4)}")
    if base.power:
        formula += " (u/u₀)^p"
        numbers.append(f"p = {number(base.power)}")
        numbers.append(f"u₀ = {number(base.span[0])}")
    return f"Every u is replaced by {formula}, {listed(numbers)}"
