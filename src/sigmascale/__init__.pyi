"""The public names; :mod:`lazy_loader` imports each where it is first used."""

from . import datasets, exceptions, export, frames, plots, report, scores
from ._support.version import __version__
from .advice import rows_needed, validate
from .distributions import Distributions
from .judging import Validation
from .monitoring import Follower, Monitor
from .persistence import load
from .predictions import Predictions
from .recalibrator import Recalibrator
from .regression import RecalibratedRegressor
from .scaling import (
    BinwiseScaling,
    BoostedScaling,
    IsotonicScaling,
    LinearScaling,
    RakedScaling,
    Scaling,
    TemperatureScaling,
)
from .scores.comparison import compare

__all__ = [
    "BinwiseScaling",
    "BoostedScaling",
    "Distributions",
    "Follower",
    "IsotonicScaling",
    "LinearScaling",
    "Monitor",
    "Predictions",
    "RakedScaling",
    "RecalibratedRegressor",
    "Recalibrator",
    "Scaling",
    "TemperatureScaling",
    "Validation",
    "__version__",
    "compare",
    "datasets",
    "exceptions",
    "export",
    "frames",
    "load",
    "plots",
    "report",
    "rows_needed",
    "scores",
    "validate",
]
