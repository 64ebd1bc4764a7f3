"""The public names; :mod:`lazy_loader` imports each where it is first used."""

from . import exceptions, plots, report, scores
from ._support.version import __version__
from .integrations import export, frames, scorers
from .integrations.regressor import RecalibratedRegressor
from .monitoring import Follower, Monitor
from .predictions import datasets
from .predictions.predictions import Predictions
from .recalibration.distributions import Distributions
from .recalibration.persistence import load
from .recalibration.recalibrator import Recalibrator
from .recalibration.scalings import (
    BinwiseScaling,
    BoostedScaling,
    IsotonicScaling,
    LinearScaling,
    RakedScaling,
    Scaling,
    TemperatureScaling,
)
from .recalibration.together import together
from .scores.comparison import compare
from .validation.acceptance import accept
from .validation.advice import validate
from .validation.planning import rows_needed
from .validation.validation import Validation

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
    "accept",
    "compare",
    "datasets",
    "exceptions",
    "export",
    "frames",
    "load",
    "plots",
    "report",
    "rows_needed",
    "scorers",
    "scores",
    "together",
    "validate",
]
