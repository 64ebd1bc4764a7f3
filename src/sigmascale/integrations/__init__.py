"""A scikit-learn regressor whose uncertainties are recalibrated."""

from .estimator import RecalibratedRegressor

__all__ = ["RecalibratedRegressor"]
