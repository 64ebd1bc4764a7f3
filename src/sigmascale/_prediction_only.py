"""Stand-ins for scikit-learn's base classes, in a process that only predicts.

Importing scikit-learn takes longer than recalibrating a million rows, and
``sigmascale apply`` would use nothing of it. If this module is imported before the
recalibrators are, they derive from these classes: what was saved can be loaded and can
predict, and that is all.
"""


class BaseEstimator:
    """Takes the place of :class:`sklearn.base.BaseEstimator`."""


class RegressorMixin:
    """Takes the place of :class:`sklearn.base.RegressorMixin`."""
