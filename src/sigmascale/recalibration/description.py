"""What was learned, in words."""

from __future__ import annotations

import numpy as np

from .._support.numerals import number
from .._support.text import listed
from .additive import Additive, Base


def scale_words(scale: Additive, names: tuple[str, ...]) -> str:
    """Return what a map does to uncertainties, in words without a full stop.

    >>> scale_words(Additive(constant=float(np.log(2.0))), ("u",))
    'Uncertainties are multiplied by one factor, 2'
    """
    base = scale.base
    level = float(np.exp(scale.constant))
    factor = level * base.a
    if not scale.tables:
        if base.is_factor:
            return f"Uncertainties are multiplied by one factor, {number(factor)}"
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
    return f"{words} by factors of {columns}, between {number(low)} and {number(high)}"


def _base_words(base: Base, level: float) -> str:
    """Return what takes the place of u: a formula, and its numbers."""
    if base.knots is not None:
        return f"Every u² is replaced by an isotonic fit of {len(base.knots)} knots"
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
