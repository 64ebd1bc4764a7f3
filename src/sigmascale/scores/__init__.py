"""Scores: numbers and curves that say how well uncertainties are calibrated.

Each function takes :class:`~sigmascale.Predictions`. Local scores cut the set into
equal-size bins of a variable, the uncertainty itself (*consistency*) or an input
feature (*adaptivity*), and average over the bins. Weights of the rows count; vectors
are welcome wherever no sign is needed.
"""

from ..paper.bin_study import BinStudy, bin_study
from ..paper.references import ReferenceScores, reference_scores
from ..paper.tails import Tails, tails
from ..paper.valid_bins import LocalStatistics, local_statistics
from ..predictions.combinations import GroupCorrelation, group_correlation
from .curves import (
    CalibrationCurve,
    ConfidenceCurve,
    PITHistogram,
    ReliabilityDiagram,
    calibration_curve,
    confidence_curve,
    pit_histogram,
    reliability_diagram,
)
from .scorecard import Scorecard, scorecard
from .scoring_rules import (
    calibration_error,
    coverage,
    crps,
    ence,
    energy_score,
    interval_score,
    local_calibration_error,
    miscalibration_area,
    nll,
    sharpness,
    uce,
    zms,
)
from .summary import Summary, summary

__all__ = [
    "BinStudy",
    "CalibrationCurve",
    "ConfidenceCurve",
    "GroupCorrelation",
    "LocalStatistics",
    "PITHistogram",
    "ReferenceScores",
    "ReliabilityDiagram",
    "Scorecard",
    "Summary",
    "Tails",
    "bin_study",
    "calibration_curve",
    "calibration_error",
    "confidence_curve",
    "coverage",
    "crps",
    "ence",
    "energy_score",
    "group_correlation",
    "interval_score",
    "local_calibration_error",
    "local_statistics",
    "miscalibration_area",
    "nll",
    "pit_histogram",
    "reference_scores",
    "reliability_diagram",
    "scorecard",
    "sharpness",
    "summary",
    "tails",
    "uce",
    "zms",
]
