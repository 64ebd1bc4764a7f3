"""Figures of Predictions and of results; what is drawn was computed elsewhere.

Every function takes one set or two, ``plots.calibration(before, after)``, returns the
Matplotlib Axes it drew on, shows nothing and changes no global setting:
``plots.pit(p).figure.savefig("pit.png")``. Without `ax` it makes a figure of its own
that pyplot does not know, so no display is needed. A set is blue; of two, the first is
vermilion and the second blue, everywhere; what is missed has a black mark.
"""

from .answers import checks, comparison, factors, monitor
from .bins import bin_study
from .canvas import BLUE, GREEN, GREY, INK, ORANGE, SOFT, VERMILION, style
from .curves import calibration, confidence_curve, local_statistics, pit, reliability
from .decisions import acceptance, explanation
from .markup import drawing, svg
from .rows import errors, intervals

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "INK",
    "ORANGE",
    "SOFT",
    "VERMILION",
    "acceptance",
    "bin_study",
    "calibration",
    "checks",
    "comparison",
    "confidence_curve",
    "drawing",
    "errors",
    "explanation",
    "factors",
    "intervals",
    "local_statistics",
    "monitor",
    "pit",
    "reliability",
    "style",
    "svg",
]
