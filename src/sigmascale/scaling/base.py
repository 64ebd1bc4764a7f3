"""What all recalibrators share: input, learning a map, and what is made of it."""

from __future__ import annotations

from abc import ABC
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from .._support.checks import (
    LARGEST,
    LARGEST_Z,
    SMALLEST,
    Floats,
    Labels,
    check_errors,
    check_groups,
    check_pair,
    largest_size,
    refuse_other_order,
)
from .._support.repeats import warn_of_repeats
from .._support.rows import (
    Rows,
    check_nonnegative_uncertainty,
    check_target,
    read_table,
    with_target,
)
from .._support.telling import warn
from ..arrays.libraries import to_numpy
from ..arrays.prediction import interval as interval_device
from ..arrays.prediction import recalibrate as recalibrate_device
from ..arrays.rows import DeviceRows, on_device
from ..bins.sums import BinSums
from ..exceptions import DegenerateFitWarning, InvalidInputError
from ..maps import Node
from ..maps.conformal import ConformalScores
from ..maps.prediction import in_range, recalibrate
from ..maps.seen import Seen
from . import device_summaries
from .slips import warn_of_slips
from .summaries import RowSummaries, Summaries

if TYPE_CHECKING:
    from sklearn.utils import Tags


class VarianceScaler(RegressorMixin, BaseEstimator, ABC):
    """A recalibrator: learns from errors how to rescale uncertainties.

    ``X`` is the conditioning table. Its first column is the uncertainty, the others
    are input features; a one-dimensional array is the uncertainty alone. ``y`` is the
    error, reference minus prediction.

    What was learned is a map, an expression of a few kinds of nodes (see
    :mod:`sigmascale.maps`), in ``map_``. A class of its own says how it is learned: in
    `_learn_from_sums`, if sums over bins determine it, which makes it fit lazy frames,
    too; or else in `_learn`, from rows.
    """

    does: ClassVar[str] = "uncertainties are recalibrated by a method of your own"
    """What it does to uncertainties, in words; a clause without a full stop."""
    references: ClassVar[tuple[str, ...]] = ()
    """Whom to cite for it."""

    map_: Node
    min_uncertainty_: float
    n_samples_fit_: int
    seen_: Seen
    column_numbers_: list[int]
    conformal_: ConformalScores

    def _learn(self, rows: Rows) -> Node:
        """Return the map that was learned from rows, and keep what else is of interest.

        Rows are checked, their uncertainties positive, and their errors not all 0.
        """
        return self._learn_from_sums(RowSummaries(rows))

    def _learn_from_sums(self, data: Summaries) -> Node:
        """Return the map that was learned from sums, of rows in memory or elsewhere."""
        msg = (
            f"{type(self).__name__} cannot be fitted from sums, as a lazy frame "
            "needs. Collect a sample of the rows and fit it to that, or use "
            "RakedScaling."
        )
        raise InvalidInputError(msg)

    def _learned_words(self) -> str:
        """Return what was learned in a sentence or two; nothing if it is too much."""
        return ""

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learn from the errors of a calibration set.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_columns)
            Conditioning table: uncertainty first, then features. Lazy frames go to
            :func:`sigmascale.frames.fit`.
        y : array-like of shape (n,)
            Errors, reference minus prediction.
        groups : array-like of shape (n,), optional
            Labels; rows with the same label belong together, as repeats of one sample
            do. They stay together in cross-validation, and choices count groups.
            Recalibrators that do not cross-validate have no other use for them than
            that rows which look like repeats are no surprise (RepeatedRowsWarning).

        Returns
        -------
        self
        """
        self._forget_intervals()
        refuse_other_order(X=X, y=y, groups=groups)
        if on_device(X, y):
            return self._fit_device(X, y, groups)
        rows = self._read(X, fitting=True)
        u = check_nonnegative_uncertainty(rows.numbers(0), smallest=None)
        rows = with_target(rows, y, groups, type(self).__name__)
        warn_of_repeats(rows, stacklevel=2)
        self.min_uncertainty_ = float(u.min())
        self.seen_ = Seen.of(rows.with_uncertainty(u))
        warn_of_slips(rows.with_uncertainty(u), stacklevel=2)
        return self._fit_rows(rows.with_uncertainty(in_range(u)))

    def _fit_device(self, X: Any, y: Any, groups: Any) -> Self:
        """Fit rows on a device; what sums do not determine is learned on the host."""
        rows = self._read_device(X, fitting=True)
        with rows.library.in_64_bits():
            rows = rows.detached().with_target(y).nonnegative(smallest=None)
            if groups is not None or not self._learns_from_sums():
                host = rows.to_host()
                return self.fit(np.column_stack(host.columns), host.errors, groups)
            rows, all_zero = device_summaries.informative(rows)
            if all_zero:
                warn_of_zero_errors(rows.n_rows)
            data = device_summaries.DeviceSummaries(rows)
            self.map_ = self._learn_from_sums(data)
            self._keep_seen(data)
        return self

    @classmethod
    def _learns_from_sums(cls) -> bool:
        return cls._learn is VarianceScaler._learn

    def fit_sums(self, data: Summaries) -> Self:
        """Learn from sums of rows that need not be in memory.

        Parameters
        ----------
        data : Summaries
            What answers for the rows, see `sigmascale.scaling.summaries`;
            :func:`sigmascale.frames.fit` has one for lazy frames.

        Returns
        -------
        self
        """
        self._forget_intervals()
        self.map_ = self._learn_from_sums(data)
        self._keep_seen(data)
        self.n_features_in_ = len(data.names)
        self.feature_names_in_ = np.array(data.names, dtype=object)
        return self

    def _keep_seen(self, data: Summaries) -> None:
        """Keep what new rows are compared with, of rows that only sums are known of."""
        self.n_samples_fit_, smallest, largest = data.seen()
        self.min_uncertainty_ = smallest
        self.seen_ = Seen.of_range(smallest, largest)

    def _fit_rows(self, rows: Rows) -> Self:
        """Fit checked rows, with what would trip every method out of the way."""
        self.n_samples_fit_ = rows.n_rows
        self.map_ = self._learn(informative(rows))
        return self

    def _forget_intervals(self) -> None:
        """Forget the z-scores of another fit: they guarantee nothing."""
        if hasattr(self, "conformal_"):
            del self.conformal_

    def predict(self, X: Any) -> Any:
        """Return recalibrated uncertainties, finite and positive.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_columns)
            Conditioning table with the columns seen in `fit`. Lazy frames go to
            :func:`sigmascale.frames.predict`.

        Returns
        -------
        array of shape (n,)
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        if on_device(X):
            table = self._read_device(X, fitting=False)
            return recalibrate_device(self.map_, table, smallest=self.min_uncertainty_)
        rows = self._read(X, fitting=False)
        return recalibrate(
            self.map_,
            rows,
            smallest=self.min_uncertainty_,
            seen=getattr(self, "seen_", None),
            n_fit=self.n_samples_fit_,
        )

    @property
    def chosen(self) -> VarianceScaler:
        """The recalibrator that does the work: itself, or one that it has chosen."""
        return self

    def describe(self) -> str:
        """Return in words what the recalibrator does, and what it has learned.

        Returns
        -------
        str

        Examples
        --------
        >>> import sigmascale as ss
        >>> ss.TemperatureScaling().fit([1.0, 2.0], [2.0, 4.0]).describe()
        'All uncertainties are multiplied by one factor. The factor is 2.'
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        does = f"{self.does[0].upper()}{self.does[1:]}."
        return f"{does} {self._learned_words()}".strip()

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
        refuse_other_order(X=X, error=error, by_group=by_group)
        predicted = self.predict(X)
        if on_device(predicted):  # the scores of held-out rows are kept on the host
            predicted, error, by_group = (
                None if each is None else to_numpy(each)
                for each in (predicted, error, by_group)
            )
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
    ) -> Any:
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
        predicted = self.predict(X)
        if on_device(predicted):
            return interval_device(
                self.conformal_,
                predicted,
                coverage,
                asymmetric=asymmetric,
                by_group=by_group,
            )
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
        refuse_other_order(X=X, y=y)
        predicted = self.predict(X)
        if on_device(predicted):
            judged = DeviceRows.judged(y, predicted)
            with judged.library.in_64_bits():
                return -judged.total(("z2", "log_u2")).nll()
        error = check_target(y, predicted.size, type(self).__name__)
        return -BinSums.of_all(*check_pair(error, predicted)).nll()

    def _read(self, X: Any, *, fitting: bool) -> Rows:
        """Return the rows of a table whose columns are those seen in `fit`."""
        rows = read_table(X)
        self._compare_columns(X, rows, fitting=fitting)
        return rows

    def _read_device(self, X: Any, *, fitting: bool) -> DeviceRows:
        """Return the rows of a table on a device."""
        rows = DeviceRows.table(X)
        self._compare_columns(X, rows, fitting=fitting)
        return rows

    def _compare_columns(
        self, X: Any, rows: Rows | DeviceRows, *, fitting: bool
    ) -> None:
        """Remember the columns of a table in `fit`, and compare them after it."""
        from sklearn.utils.validation import validate_data

        if not fitting and len(rows.columns) == 1 < self.n_features_in_:
            msg = (
                f"X has 1 features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input. Reshape your data to one "
                "column per feature, the uncertainty first."
            )
            raise InvalidInputError(msg)
        # scikit-learn remembers and compares the names and the number of columns
        shaped = (
            X if hasattr(X, "columns") else np.empty((rows.n_rows, len(rows.columns)))
        )
        validate_data(self, shaped, skip_check_array=True, reset=fitting)
        self._compare_numbered(X, fitting=fitting)

    def _compare_numbered(self, X: Any, *, fitting: bool) -> None:
        """Refuse columns that are named by numbers, in another order than in `fit`.

        scikit-learn compares the names of columns only if all of them are text.
        """
        numbers = [
            int(name)
            for name in getattr(X, "columns", ())
            if isinstance(name, (int, np.integer))
        ]
        if fitting:
            self.__dict__.pop("column_numbers_", None)
            if numbers:
                self.column_numbers_ = numbers
        elif numbers and hasattr(self, "column_numbers_"):
            fitted = self.column_numbers_
            moved = [n for n, m in zip(fitted, numbers, strict=False) if n != m]
            if set(moved) & set(numbers):
                msg = (
                    "X must have its columns in the order of fit, "
                    f"{', '.join(map(str, fitted))}; found "
                    f"{', '.join(map(str, numbers))}. Select them in that order: "
                    f"X[{fitted}]."
                )
                raise InvalidInputError(msg)

    def __sklearn_tags__(self) -> Tags:
        """Say to scikit-learn what input is for: uncertainties are positive."""
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        tags.regressor_tags.poor_score = True
        return tags


def informative(rows: Rows) -> Rows:
    """Return rows whose errors can be squared and are not all 0."""
    error, u = rows.errors, rows.uncertainty
    # beyond these bounds, squares would overflow or vanish
    if largest_size(error) > min(LARGEST, LARGEST_Z * u.min()):
        bound = np.minimum(LARGEST, LARGEST_Z * u)
        error = np.clip(error, -bound, bound)
    tiny = np.abs(error) < SMALLEST
    if tiny.any():
        error = np.where(tiny, 0.0, error)
    if tiny.all():
        warn_of_zero_errors(error.size)
        error = u
    return replace(rows, error=error)


def warn_of_zero_errors(n_rows: int) -> None:
    """Say that errors which are all 0 teach nothing."""
    warn(
        f"All {n_rows} errors are 0: nothing can be learned from them, and "
        "uncertainties will be left as they are.",
        DegenerateFitWarning,
        stacklevel=4,
    )
