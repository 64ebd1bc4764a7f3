"""Figures of results; what is drawn was computed elsewhere.

Every function returns the Matplotlib Axes it drew on, shows nothing and changes no
global setting: ``plots.verdicts(v).figure.savefig("verdicts.png")``. Without `ax` it
makes a figure of its own that pyplot does not know, so no display is needed.
"""

from .answers import comparison, local, monitor, verdicts
from .canvas import BLUE, GREEN, GREY, INK, ORANGE, SOFT, VERMILION, drawing, svg
from .curves import (
    calibration,
    confidence_curve,
    errors,
    intervals,
    local_zms,
    pit,
    reliability,
    share_range,
)

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "INK",
    "ORANGE",
    "SOFT",
    "VERMILION",
    "calibration",
    "comparison",
    "confidence_curve",
    "drawing",
    "errors",
    "intervals",
    "local",
    "local_zms",
    "monitor",
    "pit",
    "reliability",
    "share_range",
    "svg",
    "verdicts",
]
