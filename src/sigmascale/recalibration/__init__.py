"""Recalibration: bias, scale and distribution of errors, one after the other."""

from __future__ import annotations

from .bias import BiasKind
from .estimator import Recalibrator
from .words import scale_words

__all__ = ["BiasKind", "Recalibrator", "scale_words"]
