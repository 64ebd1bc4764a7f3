"""What was learned, in words."""

from __future__ import annotations

import numpy as np

from .._support.text import listed
from ..additive import Additive, Base


def scale_words(scale: Additive, names: tuple[str, ...]) -> str:
    """Return what a map does to uncertainties, in words without a full stop.

    >>> scale_words(Additive(constant=float(np.log(2.0))), ("u",))
    'Uncertainties are multiplied by one factor, 2'
    """
    base, level = scale.base, float(np.exp(scale.constant))
    by_one_factor = base.knots is None and not base.b and not base.power
    words = (
        "Uncertainties are multiplied" if by_one_factor else _base_words(base, level)
    )
    if not scale.tables:
        return (
            f"{words} by one factor, {level * base.a:.3g}" if by_one_factor else words
        )
    # the sum of tables lies between the sums of their extremes, and within bounds
    lowest = max(sum(t.values.min() for t in scale.tables), scale.bounds[0])
    highest = min(sum(t.values.max() for t in scale.tables), scale.bounds[1])
    low, high = np.exp(lowest), np.exp(highest)
    if by_one_factor:  # the level belongs to the factors
        low, high = level * base.a * low, level * base.a * high
    else:
        words += ", and multiplied"
    columns = listed([names[j] for j in sorted({axis.column for axis in scale.axes})])
    return f"{words} by factors of {columns}, between {low:.3g} and {high:.3g}"


def _base_words(base: Base, level: float) -> str:
    """Return what takes the place of u: a formula, and its numbers."""
    if base.knots is not None:
        return f"Every u² is replaced by an isotonic fit of {len(base.knots)} knots"
    formula, numbers = "a u", [f"a = {level * base.a:.4g}"]
    if base.b:
        sign = "+" if base.b > 0 else "−"
        formula = f"sqrt(a² u² {sign} b²)"
        numbers.append(f"b = {level * abs(base.b):.4g}")
    if base.power:
        formula += " (u/u₀)^p"
        numbers.append(f"p = {base.power:.3g}")
        numbers.append(f"u₀ = {base.span[0]:.3g}")
    return f"Every u is replaced by {formula}, {listed(numbers)}"
