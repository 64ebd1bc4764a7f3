"""The public names; :mod:`lazy_loader` imports each where it is first used."""

from . import chemistry, datasets, frames
from ._version import __version__
from .binscan import BinChoice, BinScan, choose_n_bins, scan_bins
from .comparison import Comparison, compare
from .conditional_coverage import LocalCoverage, local_coverage
from .confidence import ConfidenceCurve, confidence_curve
from .coverage import (
    IntervalScores,
    interval_score,
    interval_scores,
    mean_width,
    normal_interval,
    picp,
)
from .intervals import wilson_interval
from .local import LocalZMS, local_zms
from .metrics import (
    AdversarialGroupCalibration,
    adversarial_group_calibration,
    crps,
    mean_absolute_calibration_error,
    miscalibration_area,
    root_mean_squared_calibration_error,
    sharpness,
)
from .persistence import load, save
from .reference import ReferenceScores, reference_scores
from .regions import Region
from .regression import RecalibratedRegressor
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
    "AdversarialGroupCalibration",
    "BinChoice",
    "BinScan",
    "BinwiseScaling",
    "BoostedScaling",
    "Comparison",
    "ConfidenceCurve",
    "GroupScaling",
    "IntervalScores",
    "IsotonicScaling",
    "LinearScaling",
    "LocalCoverage",
    "LocalZMS",
    "NoScaling",
    "RakedScaling",
    "RecalibratedRegressor",
    "ReferenceScores",
    "Region",
    "Scorecard",
    "SelectedScaling",
    "TemperatureScaling",
    "Validation",
    "Verdict",
    "__version__",
    "adversarial_group_calibration",
    "calibration_error",
    "chemistry",
    "choose_n_bins",
    "compare",
    "confidence_curve",
    "crps",
    "datasets",
    "ence",
    "frames",
    "interval_score",
    "interval_scores",
    "load",
    "local_calibration_error",
    "local_coverage",
    "local_zms",
    "mean_absolute_calibration_error",
    "mean_width",
    "miscalibration_area",
    "nll",
    "normal_interval",
    "picp",
    "reference_scores",
    "root_mean_squared_calibration_error",
    "save",
    "scan_bins",
    "scorecard",
    "sharpness",
    "uce",
    "validate",
    "wilson_interval",
    "zms",
]
