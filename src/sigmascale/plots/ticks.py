"""Ticks that have room: chosen when a figure is drawn, and its size is known.

Imported only where Matplotlib is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.ticker import Locator

_WITHIN_A_DECADE = ([*range(1, 10)], [1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1])
FACTORS = (  # about 1, the finest first
    (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2),
    (0.25, 0.33, 0.5, 0.67, 0.8, 1, 1.25, 1.5, 2, 3, 4),
    (0.1, 0.2, 0.33, 0.5, 0.67, 1, 1.5, 2, 3, 5, 10),
    (0.1, 0.2, 0.5, 1, 2, 5, 10),
    (0.25, 0.5, 1, 2, 4),
    (0.03, 0.1, 0.3, 1, 3, 10, 30),
    (0.001, 0.01, 0.1, 1, 10, 100, 1000),
)


def plain_numbers(low: float, high: float) -> Iterator[list[float]]:
    """Yield choices of round numbers over decades, the finest first."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in _WITHIN_A_DECADE:
        numbers: list[float] = []
        for power in decades:
            numbers += [digit * 10.0**power for digit in digits]
        yield numbers
    yield [10.0**power for power in decades if power % 2 == 0]


class RoomyLog(Locator):
    """Ticks of a logarithmic axis: the finest choice whose numbers have room."""

    def __init__(self, choices: Any, size: float) -> None:
        self._choices = choices
        self._size = size

    def __call__(self) -> Any:
        """Return where the ticks are."""
        return self.tick_values(*self.axis.get_view_interval())  # type: ignore[union-attr]

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Return the ticks between two values."""
        low, high = sorted((vmin, vmax))
        if not 0 < low < high:
            return []
        inside: list[float] = []
        for choice in self._choices(low, high):
            inside = [tick for tick in choice if low <= tick <= high]
            if len(inside) < 2 or self._has_room(inside, low, high):
                break
        return inside

    def _has_room(self, ticks: list[float], low: float, high: float) -> bool:
        """Whether the numbers beside the ticks keep their distance."""
        axes = self.axis.axes  # type: ignore[union-attr]
        is_x = self.axis.axis_name == "x"  # type: ignore[union-attr]
        pixels = axes.bbox.width if is_x else axes.bbox.height

        # from tick to tick, in points
        places = np.log(np.array(ticks) / low) / math.log(high / low)
        gaps = np.diff(places * pixels * 72 / axes.figure.dpi)

        # one above another, all numbers need the same; side by side, what they are wide
        if not is_x:
            return bool(np.all(gaps >= 1.3 * self._size))
        widths = np.array([0.6 * self._size * len(f"{tick:g}") for tick in ticks])
        needed = (widths[1:] + widths[:-1]) / 2 + 0.4 * self._size
        return bool(np.all(gaps >= needed))
