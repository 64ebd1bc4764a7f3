"""What all recalibrators share: input, learning a map, and what is made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._support.checks import Floats, Ints
from .._support.progress import working
from .._support.weights import effective_number
from ..bins.sums import BinSums
from ..exceptions import InvalidInputError
from ..maps import Constant, Node, Product
from ..maps.prediction import recalibrate
from ..oddities import Profile, informative, warn_of_oddities
from ..predictions import (
    Predictions,
    default_names,
    fitted_names,
    learned_rows,
    read_table,
)
from . import devices
from .devices import on_device, on_host
from .summaries import RowSummaries, Summaries
from .updating import Updating

if TYPE_CHECKING:
    from sklearn.utils import Tags


MANY = 100_000  # rows; fewer take no time, or have a bar of their own


class VarianceScaler(RegressorMixin, Updating):
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
    other_names_: list[str]
    n_effective_: float

    def _learn(self, rows: Predictions) -> Node:
        """Return the map that was learned from rows, and keep what else is of interest.

        Rows are checked, their uncertainties positive, and their errors not all 0.
        """
        return self._learn_from_sums(RowSummaries(rows))

    def _learn_unseen(self, rows: Predictions) -> tuple[Node, Floats | None]:
        """Return the map, and what rows would get from fits that have not seen them.

        The latter are there if the method cross-fits anyway.
        """
        return self._learn(rows), None

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
    def _needs_rows(self) -> bool:
        """Whether sums do not do, so that lazy frames are fitted by a sample."""
        return type(self)._learn_from_sums is VarianceScaler._learn_from_sums

    @property
    def _by_sums(self) -> VarianceScaler | None:
        """What sums can fit: itself, or nothing."""
        return None if self._needs_rows else self

    def _learned_words(self) -> str:
        """Return what was learned in a sentence or two; nothing if it is too much."""
        return ""

    def fit(
        self, X: Any, y: Any = None, groups: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from the errors of a calibration set.

        Parameters
        ----------
        X : Predictions, array-like or data frame of shape (n, n_columns)
            Conditioning table: uncertainty first, then features. Lazy frames go to
            :func:`sigmascale.frames.fit`. Predictions have errors, groups and weights,
            and nothing may be passed beside them.
        y : array-like of shape (n,), optional
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
        if on_device(X, y):
            rows = devices.fit(self, X, y, groups, sample_weight)
            if rows is None:  # sums have said all
                return self
        else:
            rows = learned_rows(X, y, groups, sample_weight, type(self).__name__)
            self._compare_columns(X, rows, fitting=True)
        self.seen_ = Profile.of(rows, warn_of_oddities(rows))
        if rows.n_rows < MANY:
            self._fit_unseen(rows)
            return self
        with working(f"fitting {type(self).__name__}"):
            self._fit_unseen(rows)
        return self

    def _fit_sums(self, data: Summaries) -> Self:
        """Learn from sums of rows that need not be in memory."""
        self._forget()
        self._learn_sums(data)
        self._remember_names(data.names)
        return self

    def _learn_sums(self, data: Summaries) -> None:
        """Learn from sums, and keep what they tell of the range of rows."""
        self.map_ = self._learn_from_sums(data)
        self.n_samples_fit_, self.min_uncertainty_, largest = data.seen()
        self.seen_ = Profile.of_range(self.min_uncertainty_, largest)

    def _fit_sample(
        self, rows: Predictions, n_rows: int, smallest_uncertainty: float
    ) -> Self:
        """Learn from checked rows that stand for so many others.

        The smallest uncertainty is that of all of them; `_set_level` says what those
        that were not drawn want.
        """
        self._forget()
        self._remember_names(rows.names)
        self.seen_ = Profile.of(rows)
        self._fit_rows(rows)
        self.min_uncertainty_ = self._chosen.min_uncertainty_ = smallest_uncertainty
        if n_rows > rows.n_rows:
            self.n_sample_, self.n_samples_fit_ = rows.n_rows, n_rows
        return self

    def _set_level(self, level: float) -> None:
        """Multiply what was learned by a factor that all other rows want."""
        self.level_ = level
        self.map_ = Product((Constant(level), self.map_))

    def _fit_rows(self, rows: Predictions) -> Self:
        """Fit checked rows."""
        self._fit_unseen(rows)
        return self

    def _fit_unseen(self, rows: Predictions) -> Floats | None:
        """Fit checked rows, with what would trip every method out of the way.

        Returns what rows would get from fits that have not seen them, if there is that.
        """
        self._keep_size(rows)
        rows = self._informative(rows)
        if rows.weights is not None:
            self.n_effective_ = effective_number(rows.weights)
        self.map_, unseen = self._learn_unseen(rows)
        return unseen

    def _informative(self, rows: Predictions) -> Predictions:
        """Return rows with errors that can be squared, and that something follows from.

        Sums that are kept must be those of the errors, even if all of them are 0.
        """
        return informative(rows, replaced=not self.is_updatable)

    def _fit_in_folds(self, rows: Predictions, fold: Ints) -> Floats | None:
        """Fit checked rows, and return what rows of each fold get without them.

        Nothing is done or returned by a method that does not cross-fit.
        """
        found = self._learn_in_folds(informative(rows), fold)
        if found is None:
            return None
        self._keep_size(rows)
        self.map_, unseen = found
        return unseen

    def _keep_size(self, rows: Predictions) -> None:
        """Keep the number of rows and columns, and the smallest uncertainty."""
        self.n_samples_fit_, self.n_features_in_ = rows.n_rows, len(rows.columns)
        self.min_uncertainty_ = float(rows.uncertainty.min())

    def _forget(self) -> None:
        """Forget what not every fit has."""
        for name in ("n_sample_", "level_", "n_effective_"):
            if hasattr(self, name):
                delattr(self, name)

    def predict(self, X: Any) -> Any:
        """Return recalibrated uncertainties, finite and positive.

        Parameters
        ----------
        X : Predictions, array-like or data frame of shape (n, n_columns)
            Conditioning table with the columns seen in `fit`. Lazy frames go to
            :func:`sigmascale.frames.predict`.

        Returns
        -------
        array of shape (n,)
        """
        check_is_fitted(self)
        if on_device(X):
            return devices.predict(self, X)
        return self._predict_rows(self._read(X))

    def _predict_rows(self, rows: Predictions) -> Floats:
        """Return recalibrated uncertainties of rows with the columns of `fit`."""
        return recalibrate(
            self.map_,
            rows,
            smallest=self.min_uncertainty_,
            seen=getattr(self, "seen_", None),
            n_fit=self.n_samples_fit_,
        )

    @property
    def _chosen(self) -> VarianceScaler:
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
        check_is_fitted(self)
        does = f"{self.does[0].upper()}{self.does[1:]}."
        words = [does, self._learned_words()]
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

    def _sampled(self) -> str:
        """Return that a sample was fitted, in words; nothing if all rows were."""
        if not hasattr(self, "level_"):
            return ""
        return (
            f"It was learned from a sample of {self.n_sample_} of "
            f"{self.n_samples_fit_} rows; all others set the average, by a factor of "
            f"{self.level_:.4g}."
        )

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-likelihood of the errors; higher is better.

        Parameters
        ----------
        X : Predictions, array-like or data frame of shape (n, n_columns)
            Conditioning table with the columns seen in `fit`.
        y : array-like of shape (n,), optional
            Errors, reference minus prediction; Predictions have their own.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, at least 0.
        """
        check_is_fitted(self)
        if on_device(X):
            # a shift is evaluated in memory
            if sample_weight is None and getattr(self, "shift_", None) is None:
                return devices.score(self, X, y)
            X, y, sample_weight = on_host(X, y, sample_weight)
        rows = self._with_errors(X, y, sample_weight)
        e, u = rows.errors, self._predict_rows(rows)
        return -BinSums.of_all(e, u, rows.weights).nll()

    def _read(self, X: Any) -> Predictions:
        """Return the rows of a table whose columns are those seen in `fit`."""
        rows = read_table(X)
        self._compare_columns(X, rows, fitting=False)
        return rows

    def _with_errors(self, X: Any, y: Any, sample_weight: Any = None) -> Predictions:
        """Return rows with errors, with the columns seen in `fit`."""
        rows = learned_rows(X, y, None, sample_weight, type(self).__name__)
        self._compare_columns(X, rows, fitting=False)
        return rows

    def _remember_names(self, names: tuple[str, ...]) -> None:
        """Remember the columns of rows that scikit-learn has not looked at."""
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)

    def _compare_columns(self, X: Any, rows: Any, *, fitting: bool) -> None:
        """Remember the columns of a table in `fit`, and compare them after it."""
        if isinstance(X, Predictions):
            found, numbered = X.names[1:], default_names(len(X.names))[1:]
            if fitting:
                self._remember_names(X.names)
                if found == numbered:  # as the columns of an array are
                    del self.feature_names_in_
                return
            known = fitted_names(self)[1:]
            same = len(known) == len(found)
            if hasattr(self, "feature_names_in_") and found != numbered:
                same = known == found
            if not same:
                msg = (
                    "`predictions` must have the features of fit, in their order: "
                    f"{', '.join(known) or 'none'}; found {', '.join(found) or 'none'}."
                )
                raise InvalidInputError(msg)
            return
        if not fitting and len(rows.columns) == 1 < self.n_features_in_:
            msg = (
                f"X has 1 features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input. Reshape your data to one "
                "column per feature, the uncertainty first."
            )
            raise InvalidInputError(msg)
        named = hasattr(X, "columns")
        others = [str(n) for n in X.columns if not isinstance(n, str)] if named else []
        if others and len(others) < len(rows.columns):
            msg = (
                f"X must have names of columns that are all text, or none; {others[0]} "
                "is not. Convert them: X.columns = X.columns.map(str)."
            )
            raise InvalidInputError(msg)
        # scikit-learn remembers and compares the number of columns, and names of text
        shaped = X if named else np.empty((rows.n_rows, len(rows.columns)))
        validate_data(self, shaped, skip_check_array=True, reset=fitting)
        if fitting:
            self.__dict__.pop("other_names_", None)
            if others:
                self.other_names_ = others
            return
        fitted = getattr(self, "other_names_", others)
        moved = {old for old, new in zip(fitted, others, strict=False) if old != new}
        if moved & set(others):
            msg = (
                f"X must have its columns in the order of fit, {', '.join(fitted)}; "
                f"found {', '.join(others)}. Select them in that order."
            )
            raise InvalidInputError(msg)

    def __sklearn_tags__(self) -> Tags:
        """Say to scikit-learn what input is for: uncertainties are positive."""
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        tags.regressor_tags.poor_score = True
        return tags
