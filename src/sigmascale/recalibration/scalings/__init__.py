"""Scalings: what learns the scale of errors, each in the same form of plain data.

A scaling has a method `learn`, which takes Predictions with errors and returns what was
learned as an :class:`~sigmascale.recalibration.additive.Additive`. One of your own
needs nothing else: :class:`sigmascale.Recalibrator` applies, saves and exports what it
has learned.
"""

from __future__ import annotations

from .binwise import BinwiseScaling, TemperatureScaling
from .boosted import BoostedScaling
from .isotonic import IsotonicScaling
from .linear import LinearScaling
from .raked import RakedScaling
from .scaling import Learned, Scaling

__all__ = [
    "SCALINGS",
    "BinwiseScaling",
    "BoostedScaling",
    "IsotonicScaling",
    "Learned",
    "LinearScaling",
    "RakedScaling",
    "Scaling",
    "TemperatureScaling",
    "summaries",
]

SCALINGS: dict[str, type[Scaling]] = {
    "boosted": BoostedScaling,
    "raked": RakedScaling,
    "linear": LinearScaling,
    "isotonic": IsotonicScaling,
    "binwise": BinwiseScaling,
    "temperature": TemperatureScaling,
}
"""All scalings by the names that the command line and files have for them."""


def summaries() -> dict[str, str]:
    """Return what each scaling does, by its name: the first line of its docstring.

    >>> summaries()["isotonic"]
    'replace u² by the isotonic (non-decreasing) fit of the squared errors'
    """
    lines = {}
    for name, scaling in SCALINGS.items():
        first = str(scaling.__doc__).splitlines()[0].rstrip(".")
        lines[name] = first[0].lower() + first[1:]
    return lines
