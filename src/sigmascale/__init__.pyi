"""The public names; :mod:`lazy_loader` imports each where it is first used."""

from . import chemistry, datasets
from ._version import __version__
from .binscan import BinChoice, BinScan, choose_n_bins, scan_bins
from .comparison import Comparison, compare
from .confidence import ConfidenceCurve, confidence_curve
from .intervals import wilson_interval
from .local import LocalZMS, local_zms
from .persistence import load, save
from .reference import ReferenceScores, reference_scores
from .regions import Region
from .scaling import (
    BinwiseScaling,
    BoostedScaling,
    GroupScaling,
    IsotonicScaling,
    LinearScaling,
    NoScaling,
    RakedScaling,
    SelectedScaling,
    TemperatureScaling,
)
from .scores import (
    Scorecard,
    calibration_error,
    ence,
    local_calibration_error,
    nll,
    scorecard,
    uce,
    zms,
)
from .validation import Validation, Verdict, validate

__all__ = [
    "BinChoice",
    "BinScan",
    "BinwiseScaling",
    "BoostedScaling",
    "Comparison",
    "ConfidenceCurve",
    "GroupScaling",
    "IsotonicScaling",
    "LinearScaling",
    "LocalZMS",
    "NoScaling",
    "RakedScaling",
    "ReferenceScores",
    "Region",
    "Scorecard",
    "SelectedScaling",
    "TemperatureScaling",
    "Validation",
    "Verdict",
    "__version__",
    "calibration_error",
    "chemistry",
    "choose_n_bins",
    "compare",
    "confidence_curve",
    "datasets",
    "ence",
    "load",
    "local_calibration_error",
    "local_zms",
    "nll",
    "reference_scores",
    "save",
    "scan_bins",
    "scorecard",
    "uce",
    "validate",
    "wilson_interval",
    "zms",
]
