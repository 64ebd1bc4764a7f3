"""What all recalibrators share: input, the path from u to rescaled u, and the score."""

from __future__ import annotations

import reprlib
import sys
import warnings
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import narwhals as nw
import numpy as np

from .._support.checks import (
    LARGEST,
    LARGEST_Z,
    SMALLEST,
    Floats,
    Labels,
    check_errors,
    check_groups,
    for_frames,
    largest_size,
)
from .._support.tables import (
    Table,
    check_nonnegative_uncertainty,
    check_table,
    check_target,
    is_lazy,
)
from ..exceptions import DegenerateFitWarning, InvalidInputError
from ..judging.scores import nll
from ..maps.conformal import ConformalScores

if TYPE_CHECKING:
    from sklearn.utils import Tags
if TYPE_CHECKING or "sigmascale._prediction_only" not in sys.modules:
    from sklearn.base import BaseEstimator, RegressorMixin
else:
    from .._prediction_only import BaseEstimator, RegressorMixin

_FLOAT = np.finfo(np.float64)


def warn_of_zero_errors(n_rows: int) -> None:
    """Say that errors which are all 0 teach nothing."""
    warnings.warn(
        f"All {n_rows} errors are 0: nothing can be learned from them, and "
        "uncertainties will be left as they are.",
        DegenerateFitWarning,
        stacklevel=4,
    )


class VarianceScaler(RegressorMixin, BaseEstimator, ABC):
    """A recalibrator: learns from errors how to rescale uncertainties.

    ``X`` is the conditioning table. Its first column is the uncertainty, the others
    are input features; a one-dimensional array is the uncertainty alone. ``y`` is the
    error, reference minus prediction.
    """

    min_uncertainty_: float
    n_samples_fit_: int
    conformal_: ConformalScores

    @abstractmethod
    def _learn(
        self, table: Table, uncertainty: Floats, error: Floats, groups: Labels | None
    ) -> None:
        """Learn from checked rows; errors are not all 0, uncertainties positive."""

    @abstractmethod
    def _rescale(self, table: Table, uncertainty: Floats) -> Floats:
        """Return recalibrated uncertainties of checked rows, in an array of its own."""

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learn from the errors of a calibration set.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_columns)
            Conditioning table: uncertainty first, then features. It may be a lazy
            frame, see :func:`sigmascale.frames.fit`.
        y : array-like of shape (n,)
            Errors, reference minus prediction; of a lazy frame, the name of the column
            that holds them.
        groups : array-like of shape (n,), optional
            Rows of one group stay together in cross-validation. Recalibrators that do
            not cross-validate have no use for it.

        Returns
        -------
        self
        """
        self._forget_intervals()
        if is_lazy(X):
            return self._fit_lazy(X, y, groups)
        table, u = self._read(X, fitting=True)
        error = check_target(y, table.n_rows, type(self).__name__)
        labels = None if groups is None else check_groups(groups, u)
        return self._fit_checked(table, u, error, labels)

    def _forget_intervals(self) -> None:
        """Forget the z-scores of another fit: they guarantee nothing."""
        if hasattr(self, "conformal_"):
            del self.conformal_

    def _fit_lazy(self, frame: Any, error: Any, groups: Any) -> Self:
        if not isinstance(error, str) or groups is not None:
            msg = (
                "With a lazy frame, `y` must be the name of its column of errors, and "
                f"there are no `groups`; found y={reprlib.repr(error)}."
            )
            raise InvalidInputError(msg)
        names = nw.from_native(frame).collect_schema().names()
        uncertainty, *features = [name for name in names if name != error]
        fitted: Self = for_frames().fit(
            self, frame, error=error, uncertainty=uncertainty, features=features
        )
        return fitted

    def _fit_checked(
        self, table: Table, uncertainty: Floats, error: Floats, groups: Labels | None
    ) -> Self:
        """Fit checked rows, with what would trip every method out of the way."""
        # beyond these bounds, squares would overflow or vanish
        if largest_size(error) > min(LARGEST, LARGEST_Z * uncertainty.min()):
            bound = np.minimum(LARGEST, LARGEST_Z * uncertainty)
            error = np.clip(error, -bound, bound)
        tiny = np.abs(error) < SMALLEST
        if tiny.any():
            error = np.where(tiny, 0.0, error)
        if tiny.all():
            warn_of_zero_errors(error.size)
            error = uncertainty
        self._learn(table, uncertainty, error, groups)
        return self

    def predict(self, X: Any) -> Any:
        """Return recalibrated uncertainties, finite and positive.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_columns)
            Conditioning table with the columns seen in `fit`.

        Returns
        -------
        array of shape (n,)
            Of a lazy frame, the frame with a new column, see
            :func:`sigmascale.frames.predict`.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        if is_lazy(X):
            return for_frames().predict(self, X)
        table, u = self._read(X, fitting=False)
        return self._predict_checked(table, u)

    def _predict_in_memory(self, X: Any, remedy: str) -> Floats:
        """Predict, but refuse what has a frame for its answer."""
        if is_lazy(X):
            msg = f"`X` must not be lazy here. {remedy}"
            raise InvalidInputError(msg)
        predicted: Floats = self.predict(X)
        return predicted

    def _predict_table(self, table: Table) -> Floats:
        """Recalibrate a table that has the columns seen in `fit`."""
        return self._predict_checked(table, self._uncertainty(table, fitting=False))

    def _predict_checked(self, table: Table, uncertainty: Floats) -> Floats:
        """Recalibrate checked rows; nothing may leave the range of numbers."""
        rescaled = self._rescale(table, uncertainty)
        return np.clip(rescaled, _FLOAT.tiny, _FLOAT.max, out=rescaled)

    def conformalize(self, X: Any, error: Any, by_group: Any = None) -> Self:
        """Learn from rows not used in `fit` how far errors reach, for intervals.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_columns)
            Conditioning table of held-out rows, with the columns seen in `fit`.
        error : array-like of shape (n,)
            Their errors, reference minus prediction.
        by_group : array-like of shape (n,), optional
            Labels: the coverage then holds in every group, each from its own rows.

        Returns
        -------
        self
        """
        predicted = self._predict_in_memory(X, "Collect some rows of it.")
        errors = check_errors(error, predicted)
        labels = self._group_labels(by_group, predicted)
        self.conformal_ = ConformalScores.learn(errors, predicted, labels)
        return self

    def predict_interval(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        asymmetric: bool = False,
        by_group: Any = None,
    ) -> Floats:
        """Return limits that hold an error with at least the probability asked for.

        The limits are the recalibrated uncertainty times quantiles of the z-scores
        seen in `conformalize`. Symmetric ones are ± the ceil((n + 1) coverage)-th
        smallest abs(z) of n; asymmetric ones leave out (1 − coverage) / 2 on each side.
        The guarantee needs no normal errors and no right uncertainties, only that rows
        are drawn as those of `conformalize` were; it is an average over such rows (or
        those of a group), not a promise for each of them.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_columns)
            Conditioning table with the columns seen in `fit`.
        coverage : float, default 0.9
            Probability that an error lies within its limits.
        asymmetric : bool, default False
            Whether the two limits are quantiles of their own, for skewed errors.
        by_group : array-like of shape (n,), optional
            Labels, if `conformalize` was given some.

        Returns
        -------
        array of shape (n, 2)
            Lower and upper limits of the error: the truth lies in the prediction plus
            these. Where held-out rows are too few they are infinite, with a warning
            that says how many are needed.

        References
        ----------
        V. Vovk, A. Gammerman and G. Shafer, Algorithmic Learning in a Random World
        (2005), doi:10.1007/b106715; J. Lei et al., J. Am. Stat. Assoc. 113, 1094
        (2018), doi:10.1080/01621459.2017.1307116

        Examples
        --------
        >>> import sigmascale as ss
        >>> fit, held_out, new = (
        ...     ss.datasets.make_molecules(500, seed=i) for i in (1, 2, 3)
        ... )
        >>> scaler = ss.TemperatureScaling().fit(fit.uncertainty, fit.error)
        >>> scaler = scaler.conformalize(held_out.uncertainty, held_out.error)
        >>> interval = scaler.predict_interval(new.uncertainty, coverage=0.9)
        >>> ss.picp(new.error, interval)
        0.9
        """
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        if not hasattr(self, "conformal_"):
            msg = (
                "Intervals with a coverage guarantee need rows that the recalibrator "
                "was not fitted on: call conformalize(X, error) with held-out rows "
                "first."
            )
            raise NotFittedError(msg)
        predicted = self._predict_in_memory(X, "Collect it in batches.")
        return self.conformal_.interval(
            predicted,
            coverage,
            asymmetric=asymmetric,
            labels=self._group_labels(by_group, predicted),
        )

    @staticmethod
    def _group_labels(by_group: Any, rows: Floats) -> Labels | None:
        return None if by_group is None else check_groups(by_group, rows, "by_group")

    def score(self, X: Any, y: Any) -> float:
        """Return the mean log-likelihood of the errors; higher is better.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_columns)
            Conditioning table with the columns seen in `fit`.
        y : array-like of shape (n,)
            Errors, reference minus prediction.
        """
        predicted = self._predict_in_memory(X, "Use sigmascale.frames.scorecard.")
        return -nll(check_target(y, predicted.size, type(self).__name__), predicted)

    def _read(self, X: Any, *, fitting: bool) -> tuple[Table, Floats]:
        from sklearn.utils.validation import validate_data

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
        return table, self._uncertainty(table, fitting=fitting)

    def _uncertainty(self, table: Table, *, fitting: bool) -> Floats:
        """Return the uncertainties of a table, in the range that can be squared."""
        u = check_nonnegative_uncertainty(
            table.numbers(0), smallest=None if fitting else self.min_uncertainty_
        )
        if fitting:
            self.min_uncertainty_ = float(u.min())
            self.n_samples_fit_ = table.n_rows
        if u.min() < SMALLEST or u.max() > LARGEST:
            u = np.clip(u, SMALLEST, LARGEST)
        return u

    def __sklearn_tags__(self) -> Tags:
        """Say to scikit-learn what input is for: uncertainties are positive."""
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        tags.regressor_tags.poor_score = True
        return tags
