"""What all recalibrators share: input, learning a map, and what is made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from .._support.checks import (
    Floats,
    Ints,
    check_choice,
    check_column,
    check_fraction,
    check_same_length,
    refuse_other_order,
    refuse_swapped,
)
from .._support.labels import Categories
from .._support.progress import working
from .._support.telling import warn
from .._support.weights import effective_number
from ..bins.devices import DeviceRows, on_device
from ..bins.libraries import to_numpy
from ..bins.sums import BinSums
from ..exceptions import (
    HeavyTailsWarning,
    InvalidInputError,
)
from ..maps import Constant, Node, Product, multiplied
from ..maps.conformal import ConformalScores
from ..maps.laws import NORMAL, StudentLaw
from ..maps.prediction import in_range, recalibrate, rescale
from ..oddities import Profile, informative, warn_of_oddities
from ..predictions import (
    Predictions,
    as_predictions,
    check_labels,
    check_nonnegative_uncertainty,
    check_target,
    read_table,
    refuse_negative_uncertainty,
    with_target,
)
from . import devices
from .summaries import RowSummaries, Summaries
from .updating import Updating

if TYPE_CHECKING:
    from sklearn.utils import Tags


Distribution = Literal["normal", "student"]
UnseenZ = tuple[Floats, Floats | None]  # z-scores of unseen rows, and their weights


class VarianceScaler(RegressorMixin, BaseEstimator, Updating):
    """A recalibrator: learns from errors how to rescale uncertainties.

    ``X`` is the conditioning table. Its first column is the uncertainty, the others
    are input features; a one-dimensional array is the uncertainty alone. ``y`` is the
    error, reference minus prediction.

    What was learned is a map, an expression of a few kinds of nodes (see
    `sigmascale.maps`), in ``map_``. A class of its own says how it is learned: in
    `_learn_from_sums`, if sums over bins determine it, which makes it fit lazy frames,
    too; or else in `_learn`, from rows.
    """

    does: ClassVar[str] = "uncertainties are recalibrated by a method of your own"
    """What it does to uncertainties, in words; a clause without a full stop."""
    references: ClassVar[tuple[str, ...]] = ()
    """Whom to cite for it."""
    sets_average: ClassVar[bool] = True
    """Whether uncertainties shall be right on average, as nearly always."""

    map_: Node
    n_sample_: int
    level_: float
    min_uncertainty_: float
    n_samples_fit_: int
    seen_: Profile
    column_numbers_: list[int]
    conformal_: ConformalScores
    law_: StudentLaw
    n_effective_: float
    distribution: Distribution = "normal"

    def _learn(self, rows: Predictions) -> Node:
        """Return the map that was learned from rows, and keep what else is of interest.

        Rows are checked, their uncertainties positive, and their errors not all 0.
        """
        return self._learn_from_sums(RowSummaries(rows))

    def _learn_in_folds(
        self, rows: Predictions, fold: Ints
    ) -> tuple[Node, Floats] | None:
        """Return the map, and what it would be for rows of each fold without them.

        A method that cross-fits anyway returns both, the uncertainties of unseen rows
        at the average of its map; one that does not returns nothing.
        """
        return None

    def _learn_from_sums(self, data: Summaries) -> Node:
        """Return the map that was learned from sums, of rows in memory or elsewhere."""
        msg = f"{type(self).__name__} must learn from sums, or from rows."
        raise NotImplementedError(msg)

    @property
    def needs_rows(self) -> bool:
        """Whether sums do not do, so that lazy frames are fitted by a sample."""
        by_rows = type(self)._learn_from_sums is VarianceScaler._learn_from_sums
        return by_rows or self.distribution == "student"

    def _learned_words(self) -> str:
        """Return what was learned in a sentence or two; nothing if it is too much."""
        return ""

    def fit(
        self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None
    ) -> Self:
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
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, at least 0. Only their ratios matter. A row of weight 0
            is as good as left out; whole weights count repeats of a row, which stay
            together in cross-validation.

        Returns
        -------
        self
        """
        self._forget()
        refuse_other_order(X=X, y=y, groups=groups, sample_weight=sample_weight)
        if on_device(X, y):
            return self._fit_device(X, y, groups, sample_weight)
        rows = self._read(X, fitting=True)
        u = rows.numbers(0)
        rows = with_target(rows, y, groups, type(self).__name__)
        refuse_swapped(rows.errors, u)
        refuse_negative_uncertainty(u)
        rows = rows.with_uncertainty(u).weighted(sample_weight)
        u = check_nonnegative_uncertainty(rows.uncertainty, smallest=None)
        rows = rows.with_uncertainty(u)
        some = warn_of_oddities(rows)
        self.min_uncertainty_ = float(u.min())
        self.seen_ = Profile.of(rows, some)
        with working(f"fitting {type(self).__name__}"):
            return self._fit_rows(rows.with_uncertainty(in_range(u)))

    def _fit_device(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> Self:
        """Fit rows on a device; what sums do not determine is learned on the host."""
        rows = self._read_device(X, fitting=True)
        with rows.library.in_64_bits():
            rows = rows.detached().with_target(y).nonnegative(smallest=None)
            if groups is not None or sample_weight is not None or self.needs_rows:
                host = rows.to_host()
                weights = None if sample_weight is None else to_numpy(sample_weight)
                return self.fit(
                    np.column_stack(host.columns), host.errors, groups, weights
                )
            self.map_, data = devices.fit(rows, self._learn_from_sums)
            self._keep_seen(data)
        return self

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
        self._forget()
        self.map_ = self._learn_from_sums(data)
        self._keep_seen(data)
        self.n_features_in_ = len(data.names)
        self.feature_names_in_ = np.array(data.names, dtype=object)
        return self

    def _keep_seen(self, data: Summaries) -> None:
        """Keep what new rows are compared with, of rows that only sums are known of."""
        self.n_samples_fit_, smallest, largest = data.seen()
        self.min_uncertainty_ = smallest
        self.seen_ = Profile.of_range(smallest, largest)

    def fit_sample(
        self, rows: Predictions, n_rows: int, smallest_uncertainty: float
    ) -> Self:
        """Learn from rows that stand for many others.

        Parameters
        ----------
        rows : Predictions
            Checked rows, with errors.
        n_rows : int
            How many rows they stand for; `set_level` says what those not seen want.
        smallest_uncertainty : float
            The smallest one of all these.

        Returns
        -------
        self
        """
        self._forget()
        self.min_uncertainty_ = smallest_uncertainty
        self.seen_ = Profile.of(rows)
        self.n_features_in_ = len(rows.names)
        self.feature_names_in_ = np.array(rows.names, dtype=object)
        self._fit_rows(rows)
        if n_rows > rows.n_rows:
            self.n_sample_, self.n_samples_fit_ = rows.n_rows, n_rows
        return self

    def set_level(self, level: float) -> None:
        """Multiply what was learned by a factor that all other rows want.

        Parameters
        ----------
        level : float
            The factor of the uncertainties.
        """
        self.level_ = level
        if self.distribution == "normal":  # of a law, the sample has the average, too
            self.map_ = Product((Constant(level), self.map_))

    def _fit_rows(self, rows: Predictions) -> Self:
        """Fit checked rows, with what would trip every method out of the way."""
        check_choice(self.distribution, "distribution", get_args(Distribution))
        # sums that are kept must be those of the errors, even if all of them are 0
        rows = informative(rows, replaced=not self.is_updatable)
        self.n_samples_fit_ = rows.n_rows
        if rows.weights is not None:
            self.n_effective_ = effective_number(rows.weights)
        self.map_ = self._learn(rows)
        # those of rows that a cross-fit has not seen, where there are any
        unseen: UnseenZ | None = self.__dict__.pop("_unseen_z", None)
        if self.distribution == "student":
            if unseen is None:
                unseen = rows.errors / rescale(self.map_, rows), rows.weights
            self._learn_law(*unseen)
        return self

    def _learn_law(self, z: Floats, weights: Floats | None = None) -> None:
        """Learn Student's t, and make its standard deviation what is predicted."""
        law = StudentLaw.learn(z, weights)
        if law.df > 2:
            root = 1.0 if np.isinf(law.df) else float(np.sqrt((law.df - 2) / law.df))
            self.map_ = multiplied(self.map_, law.scale / root)
            law = StudentLaw(law.df, root)
        else:
            warn(
                f"The tails are so heavy (Student's t with {law.df:.2g} degrees of "
                "freedom) that the law has no standard deviation: predict returns "
                "what is right on average for the rows of this set. Use "
                "predict_scale, predict_quantiles or predict_interval.",
                HeavyTailsWarning,
                stacklevel=4,
            )
        self.law_ = law

    def _fit_in_folds(self, rows: Predictions, fold: Ints) -> Floats | None:
        """Fit checked rows, and return what rows of each fold get without them.

        Nothing is done or returned by a method that does not cross-fit.
        """
        found = self._learn_in_folds(informative(rows), fold)
        if found is None:
            return None
        self.n_samples_fit_ = rows.n_rows
        self.map_, unseen = found
        self.__dict__.pop("_unseen_z", None)
        return unseen

    def _forget(self) -> None:
        """Forget what not every fit has, such as z-scores that guarantee nothing."""
        for name in ("conformal_", "n_sample_", "level_", "law_", "n_effective_"):
            if hasattr(self, name):
                delattr(self, name)

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
            return devices.predict(self.map_, table, smallest=self.min_uncertainty_)
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
        words = [does, self._learned_words(), self._law_words()]
        words += [self._sampled(), self._weighted()]
        return " ".join(filter(None, words))

    def _weighted(self) -> str:
        """Return that rows were weighted, in words; nothing if they were not."""
        if not hasattr(self, "n_effective_"):
            return ""
        return (
            f"The {self.n_samples_fit_} rows were weighted, and count as "
            f"{self.n_effective_:.0f} in effect."
        )

    def _law_words(self) -> str:
        """Return the law of errors in words; nothing if it is normal."""
        if not hasattr(self, "law_"):
            return ""
        if np.isinf(self.law_.df):
            return "Errors are normal: their tails are not heavier than that."
        return (
            f"Errors follow Student's t with {self.law_.df:.3g} degrees of freedom and "
            f"{self.law_.scale:.3g} times the uncertainty as its scale."
        )

    def _sampled(self) -> str:
        """Return that a sample was fitted, in words; nothing if all rows were."""
        if not hasattr(self, "level_"):
            return ""
        return (
            f"It was learned from a sample of {self.n_sample_} of "
            f"{self.n_samples_fit_} rows; all others set the average, by a factor of "
            f"{self.level_:.4g}."
        )

    def predict_scale(self, X: Any) -> Floats:
        """Return the scale of the law of errors.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_columns)
            Conditioning table with the columns seen in `fit`.

        Returns
        -------
        array of shape (n,)
            That of Student's t, with ``law_.df`` degrees of freedom; for normal errors,
            the standard deviation that `predict` returns.
        """
        u = self.predict(X)
        return np.asarray(u * getattr(self, "law_", NORMAL).scale)

    def predict_quantiles(self, X: Any, levels: Any) -> Floats:
        """Return quantiles of the error by its law, normal or Student's t.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_columns)
            Conditioning table with the columns seen in `fit`.
        levels : array-like of shape (k,)
            Probabilities between 0 and 1.

        Returns
        -------
        array of shape (n, k)
            Quantiles of the error: those of the truth are the prediction plus these.

        Examples
        --------
        >>> import sigmascale as ss
        >>> data = ss.datasets.make_molecules(500, seed=1)
        >>> scaler = ss.TemperatureScaling(distribution="student")
        >>> scaler = scaler.fit(data.uncertainty, data.error)
        >>> scaler.predict_quantiles(data.uncertainty[:2], [0.05, 0.95]).shape
        (2, 2)
        """
        p = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        if p.ndim != 1 or not ((p > 0) & (p < 1)).all():
            msg = f"`levels` must lie between 0 and 1; found {levels!r}."
            raise InvalidInputError(msg)
        law: StudentLaw = getattr(self, "law_", NORMAL)
        return np.asarray(self.predict(X)[:, None] * law.quantiles(p))

    def conformalize(
        self, X: Any, error: Any, by_group: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from rows not used in `fit` how far errors reach, for intervals.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_columns)
            Conditioning table of held-out rows, with the columns seen in `fit`.
        error : array-like of shape (n,)
            Their errors, reference minus prediction.
        by_group : array-like of shape (n,), optional
            Labels: the coverage then holds in every group, each from its own rows.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, at least 0: how much more often each is among new rows
            than here (:func:`sigmascale.shift_weights`). The coverage then is that
            of such new rows, as nearly as the weights are known. Whole weights count
            repeats.

        Returns
        -------
        self
        """
        refuse_other_order(
            X=X, error=error, by_group=by_group, sample_weight=sample_weight
        )
        predicted = self.predict(X)
        if on_device(predicted):  # the scores of held-out rows are kept on the host
            predicted, error, by_group, sample_weight = (
                None if each is None else to_numpy(each)
                for each in (predicted, error, by_group, sample_weight)
            )
        errors = check_column(error, "error")
        check_same_length("X", predicted, "error", errors)
        labels = self._group_labels(by_group, predicted)
        rows = Predictions.of((predicted,), ("u",), errors).weighted(sample_weight)
        if labels is not None and rows.places is not None:
            labels = labels[rows.places]
        self.conformal_ = ConformalScores.learn(
            rows.errors, rows.uncertainty, labels, rows.weights
        )
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

        Without `conformalize`, a recalibrator with ``distribution="student"`` returns
        the central limits of its law, which no theorem guarantees.

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
            if hasattr(self, "law_"):
                level = check_fraction(coverage, "coverage")
                return self.predict_quantiles(X, [0.5 - level / 2, 0.5 + level / 2])
            msg = (
                "Intervals with a coverage guarantee need rows that the recalibrator "
                "was not fitted on: call conformalize(X, error) with held-out rows "
                "first."
            )
            raise NotFittedError(msg)
        predicted = self.predict(X)
        if on_device(predicted):
            return devices.interval(
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
    def _group_labels(by_group: Any, rows: Floats) -> Categories | None:
        return None if by_group is None else check_labels(by_group, rows, "by_group")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean log-likelihood of the errors; higher is better.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_columns)
            Conditioning table with the columns seen in `fit`.
        y : array-like of shape (n,)
            Errors, reference minus prediction.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, at least 0.
        """
        refuse_other_order(X=X, y=y, sample_weight=sample_weight)
        predicted = self.predict(X)
        if on_device(predicted) and sample_weight is not None:
            predicted, y, sample_weight = map(to_numpy, (predicted, y, sample_weight))
        if on_device(predicted):
            return devices.score(y, predicted)
        error = check_target(y, predicted.size, type(self).__name__)
        rows = as_predictions(error, predicted, sample_weight=sample_weight)
        e, u = rows.errors, rows.uncertainty
        if hasattr(self, "law_"):
            return -rows.mean(self.law_.losses(e / u) + np.log(u))
        return -BinSums.of_all(e, u, rows.weights).nll()

    def _read(self, X: Any, *, fitting: bool) -> Predictions:
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
        self, X: Any, rows: Predictions | DeviceRows, *, fitting: bool
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
