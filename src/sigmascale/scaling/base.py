"""What all recalibrators share: input, the path from u to rescaled u, and the score."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .._checks import LARGEST, LARGEST_Z, SMALLEST, Floats, Labels, check_groups
from .._table import Table, check_nonnegative_uncertainty, check_table, check_target
from ..exceptions import DegenerateFitWarning, InvalidInputError
from ..scores import nll

_FLOAT = np.finfo(np.float64)


class VarianceScaler(RegressorMixin, BaseEstimator, ABC):
    """A recalibrator: learns from errors how to rescale uncertainties.

    ``X`` is the conditioning table. Its first column is the uncertainty, the others
    are input features; a one-dimensional array is the uncertainty alone. ``y`` is the
    error, reference minus prediction.
    """

    min_uncertainty_: float
    n_samples_fit_: int

    @abstractmethod
    def _learn(
        self, table: Table, uncertainty: Floats, error: Floats, groups: Labels | None
    ) -> None:
        """Learn from checked rows; errors are not all 0, uncertainties positive."""

    @abstractmethod
    def _rescale(self, table: Table, uncertainty: Floats) -> Floats:
        """Return recalibrated uncertainties of checked rows."""

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learn from the errors of a calibration set.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_columns)
            Conditioning table: uncertainty first, then features.
        y : array-like of shape (n,)
            Errors, reference minus prediction.
        groups : array-like of shape (n,), optional
            Rows of one group stay together in cross-validation. Recalibrators that do
            not cross-validate have no use for it.

        Returns
        -------
        self
        """
        table, u = self._read(X, fitting=True)
        error = check_target(y, table.n_rows, type(self).__name__)
        labels = None if groups is None else check_groups(groups, u)
        return self._fit_checked(table, u, error, labels)

    def _fit_checked(
        self, table: Table, uncertainty: Floats, error: Floats, groups: Labels | None
    ) -> Self:
        """Fit checked rows, with what would trip every method out of the way."""
        # beyond these bounds, squares would overflow or vanish
        bound = np.minimum(LARGEST, LARGEST_Z * uncertainty)
        error = np.clip(error, -bound, bound)
        error = np.where(np.abs(error) < SMALLEST, 0.0, error)
        if not np.any(error):
            warnings.warn(
                f"All {error.size} errors are 0: nothing can be learned from them, and "
                "uncertainties will be left as they are.",
                DegenerateFitWarning,
                stacklevel=3,
            )
            error = uncertainty
        self._learn(table, uncertainty, error, groups)
        return self

    def predict(self, X: Any) -> Floats:
        """Return recalibrated uncertainties, finite and positive.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_columns)
            Conditioning table with the columns seen in `fit`.

        Returns
        -------
        array of shape (n,)
        """
        check_is_fitted(self)
        table, u = self._read(X, fitting=False)
        return self._predict_checked(table, u)

    def _predict_checked(self, table: Table, uncertainty: Floats) -> Floats:
        """Recalibrate checked rows; nothing may leave the range of numbers."""
        return np.clip(self._rescale(table, uncertainty), _FLOAT.tiny, _FLOAT.max)

    def score(self, X: Any, y: Any) -> float:
        """Return the mean log-likelihood of the errors; higher is better.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_columns)
            Conditioning table with the columns seen in `fit`.
        y : array-like of shape (n,)
            Errors, reference minus prediction.
        """
        predicted = self.predict(X)
        return -nll(check_target(y, predicted.size, type(self).__name__), predicted)

    def _read(self, X: Any, *, fitting: bool) -> tuple[Table, Floats]:
        table = check_table(X)
        if not fitting and len(table.columns) == 1 < self.n_features_in_:
            msg = (
                f"X has 1 features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input. Reshape your data to one "
                "column per feature, the uncertainty first."
            )
            raise InvalidInputError(msg)
        # scikit-learn remembers and compares the names and the number of columns
        shaped = (
            X if hasattr(X, "columns") else np.empty((table.n_rows, len(table.columns)))
        )
        validate_data(self, shaped, skip_check_array=True, reset=fitting)
        u = check_nonnegative_uncertainty(
            table.numbers(0), smallest=None if fitting else self.min_uncertainty_
        )
        if fitting:
            self.min_uncertainty_ = float(u.min())
            self.n_samples_fit_ = table.n_rows
        return table, np.clip(u, SMALLEST, LARGEST)

    def __sklearn_tags__(self) -> Tags:
        """Say to scikit-learn what input is for: uncertainties are positive."""
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        tags.regressor_tags.poor_score = True
        return tags
