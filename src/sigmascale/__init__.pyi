"""The public names; :mod:`lazy_loader` imports each where it is first used."""

from . import chemistry, datasets, exceptions, export, frames, maps, plots, report
from ._support.version import __version__
from .comparison import Comparison, compare
from .judging.bin_numbers import BinChoice, BinScan, choose_n_bins, scan_bins
from .judging.confidence_curves import ConfidenceCurve, confidence_curve
from .judging.confidence_intervals import wilson_interval
from .judging.coverage import (
    IntervalScores,
    interval_score,
    interval_scores,
    law_interval,
    mean_width,
    normal_interval,
    picp,
)
from .judging.estimates import Estimate, zeta_score
from .judging.local import LocalZMS, local_zms
from .judging.local_coverage import LocalCoverage, local_coverage
from .judging.metrics import (
    AdversarialGroupCalibration,
    adversarial_group_calibration,
    crps,
    mean_absolute_calibration_error,
    miscalibration_area,
    root_mean_squared_calibration_error,
    sharpness,
)
from .judging.references import ReferenceScores, reference_scores
from .judging.regions import Region
from .judging.scores import (
    Scorecard,
    calibration_error,
    ence,
    local_calibration_error,
    nll,
    scorecard,
    uce,
    zms,
)
from .judging.shift import ShiftWeights, shift_weights
from .judging.tail_scores import (
    CoverageAt95,
    StudentShape,
    coverage_at_95,
    relative_calibration_error,
    skewness_gm,
    student_shape,
)
from .judging.tails import TailStatistics, tails
from .judging.validation import Validation, Verdict
from .judging.verdicts import validate
from .maps.laws import StudentLaw
from .monitoring.alarm import Alarm
from .monitoring.monitor import Monitor
from .persistence import load, save
from .predictions import Predictions
from .regression.regressor import RecalibratedRegressor
from .scaling import (
    BinwiseScaling,
    BoostedScaling,
    ComponentScaling,
    GroupScaling,
    IsotonicScaling,
    LinearScaling,
    NoScaling,
    RakedScaling,
    SelectedScaling,
    TemperatureScaling,
)
from .streaming import RunningScores
from .targets.recalibrated import RecalibratedTargets
from .targets.validation import TargetsValidation, validate_targets

__all__ = [
    "AdversarialGroupCalibration",
    "Alarm",
    "BinChoice",
    "BinScan",
    "BinwiseScaling",
    "BoostedScaling",
    "Comparison",
    "ComponentScaling",
    "ConfidenceCurve",
    "CoverageAt95",
    "Estimate",
    "GroupScaling",
    "IntervalScores",
    "IsotonicScaling",
    "LinearScaling",
    "LocalCoverage",
    "LocalZMS",
    "Monitor",
    "NoScaling",
    "Predictions",
    "RakedScaling",
    "RecalibratedRegressor",
    "RecalibratedTargets",
    "ReferenceScores",
    "Region",
    "RunningScores",
    "Scorecard",
    "SelectedScaling",
    "ShiftWeights",
    "StudentLaw",
    "StudentShape",
    "TailStatistics",
    "TargetsValidation",
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
    "coverage_at_95",
    "crps",
    "datasets",
    "ence",
    "exceptions",
    "export",
    "frames",
    "interval_score",
    "interval_scores",
    "law_interval",
    "load",
    "local_calibration_error",
    "local_coverage",
    "local_zms",
    "maps",
    "mean_absolute_calibration_error",
    "mean_width",
    "miscalibration_area",
    "nll",
    "normal_interval",
    "picp",
    "plots",
    "reference_scores",
    "relative_calibration_error",
    "report",
    "root_mean_squared_calibration_error",
    "save",
    "scan_bins",
    "scorecard",
    "sharpness",
    "shift_weights",
    "skewness_gm",
    "student_shape",
    "tails",
    "uce",
    "validate",
    "validate_targets",
    "wilson_interval",
    "zeta_score",
    "zms",
]
