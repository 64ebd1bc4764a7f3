"""The public names; :mod:`lazy_loader` imports each where it is first used."""

from . import datasets, exceptions, export, frames, plots, report
from ._support.version import __version__
from .comparison import compare
from .judging.bin_numbers import choose_n_bins, scan_bins
from .judging.confidence_curves import confidence_curve
from .judging.covariates import covariate_weights
from .judging.coverage import (
    interval_scores,
    local_coverage,
    normal_interval,
    picp,
)
from .judging.distributions import distribution_scores
from .judging.local import local_zms
from .judging.metrics import (
    adversarial_group_calibration,
    crps,
    miscalibration_area,
    sharpness,
)
from .judging.references import reference_scores
from .judging.reliability import (
    calibration_curve,
    pit_histogram,
    reliability_diagram,
)
from .judging.scores import (
    calibration_error,
    ence,
    local_calibration_error,
    nll,
    scorecard,
    uce,
    zms,
)
from .judging.tails import (
    coverage_at_95,
    relative_calibration_error,
    tails,
)
from .judging.validation import Validation
from .judging.verdicts import rows_needed, validate
from .maps.distributions import Distributions
from .monitoring.monitor import Monitor
from .persistence import load, save
from .predictions import Predictions
from .recalibrator import Recalibrator
from .regression.regressor import RecalibratedRegressor
from .scaling import (
    BinwiseScaling,
    BoostedScaling,
    CategoryScaling,
    ComponentScaling,
    IsotonicScaling,
    LinearScaling,
    NoScaling,
    RakedScaling,
    SelectedScaling,
    TemperatureScaling,
)
from .streaming import RunningScores
from .targets.recalibrated import RecalibratedTargets
from .targets.tables import split_targets

__all__ = [
    "BinwiseScaling",
    "BoostedScaling",
    "CategoryScaling",
    "ComponentScaling",
    "Distributions",
    "IsotonicScaling",
    "LinearScaling",
    "Monitor",
    "NoScaling",
    "Predictions",
    "RakedScaling",
    "RecalibratedRegressor",
    "RecalibratedTargets",
    "Recalibrator",
    "RunningScores",
    "SelectedScaling",
    "TemperatureScaling",
    "Validation",
    "__version__",
    "adversarial_group_calibration",
    "calibration_curve",
    "calibration_error",
    "choose_n_bins",
    "compare",
    "confidence_curve",
    "covariate_weights",
    "coverage_at_95",
    "crps",
    "datasets",
    "distribution_scores",
    "ence",
    "exceptions",
    "export",
    "frames",
    "interval_scores",
    "load",
    "local_calibration_error",
    "local_coverage",
    "local_zms",
    "miscalibration_area",
    "nll",
    "normal_interval",
    "picp",
    "pit_histogram",
    "plots",
    "reference_scores",
    "relative_calibration_error",
    "reliability_diagram",
    "report",
    "rows_needed",
    "save",
    "scan_bins",
    "scorecard",
    "sharpness",
    "split_targets",
    "tails",
    "uce",
    "validate",
    "zms",
]
