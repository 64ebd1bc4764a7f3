"""A scikit-learn regressor whose uncertainties are recalibrated."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from typing import Any, Literal, Self, overload

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import GroupKFold, KFold, check_cv
from sklearn.utils import Tags, _safe_indexing, check_array, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_method_params,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
    validate_data,
)

from .._support import numerals
from .._support.checks import Floats
from .._support.columns import effective_weights
from .._support.notices import gathered, warn
from .._support.progress import working
from .._support.text import listed, quoted
from ..exceptions import (
    ConstantUncertaintyWarning,
    InterpolatingWarning,
    InvalidInputError,
)
from ..predictions.predictions import Predictions
from ..recalibration.distributions import Distributions
from ..recalibration.recalibrator import Recalibrator
from .sources import (
    MeanOfModels,
    fitted_clone,
    has_uncertainty,
    predict_with_std,
    predictions_of,
)

LEAST_BELIEVED = 0.01  # of the median positive uncertainty: no less is believed
MOST_FEATURES = 100  # columns of X that a scale is learned from unless they are named
PREDICTION = "prediction"  # a feature, where a regressor has no uncertainty
INTERPOLATES = 0.05  # largest training error, in units of the cross-validated one
TRAINING_ROWS_ASKED = 1000  # training rows that are predicted for that


class RecalibratedRegressor(MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """Recalibrate the uncertainties of any regressor, or learn them where it has none.

    The counterpart of scikit-learn's ``CalibratedClassifierCV``. Clones of the
    regressor are fitted on all folds but one; their errors and uncertainties for the
    rows that they have not seen teach the recalibrator; the regressor itself is then
    fitted on all rows. Predictions are those of the regressor alone. One that is
    fitted already, wrapped in a ``sklearn.frozen.FrozenEstimator``, stays as it is: all
    rows given to `fit` teach the recalibrator, and must be others than those that it
    was trained on.

    Parameters
    ----------
    regressor : estimator, optional
        By default ``BayesianRidge()``. It may be a pipeline or a search. Its
        uncertainties are those of ``predict(X, return_std=True)`` (Gaussian processes);
        of a distribution (NGBoost, skpro); of a variance beside the mean (CatBoost);
        the width of quantiles (quantile-forest, TabPFN, XGBoost and CatBoost with
        several levels) or of intervals (MAPIE, crepes); or the standard deviation of
        members (random forest, extra trees, bagging, voting). Of one that predicts one
        quantile (LightGBM and others), clones for the levels 0.05, 0.5 and 0.95 are
        fitted. A regressor without any (gradient boosting, ridge, neighbours, networks)
        has one for all rows, the root mean square of cross-validated errors; the
        recalibrator learns where errors are larger from `features` and the prediction.
    recalibrator : Recalibrator, optional
        By default ``Recalibrator()``. Its bias, if it learns one, moves the centre of
        distributions and intervals, and not the predictions. The columns of its `parts`
        are features.
    ensemble : bool, default False
        Predict by the mean of the models of the folds, in place of one that is fitted
        on all rows. Their cross-validated errors are then those of what predicts. Where
        a model interpolates (as many columns as rows, networks, one neighbour) a fit on
        all rows may err quite differently, and intervals hold too little; else it
        hardly matters.
    cv : int, splitter or iterable of (train, test), default 5
        The folds. A number means shuffled folds, of whole groups where `fit` gets
        `groups`. Splits may leave rows out, or test some repeatedly: the rows tested
        are those that teach, as with ``TimeSeriesSplit``.
    features : list of int or str, optional
        The columns of X that the recalibrator may use besides the uncertainty: with
        these, uncertainties can become right for every kind of input (*adaptive*). By
        default none; of a regressor without uncertainty all, unless X is sparse or has
        more than 100.
    n_jobs : int, optional
        Number of folds that are fitted at a time.
    random_state : int, default 0
        Seed of the folds.

    Attributes
    ----------
    regressor_ : estimator
        The regressor, fitted on all rows; or the mean of those of the folds.
    recalibrator_ : Recalibrator
        The fitted one, which can be saved.
    predictions_ : Predictions
        Cross-validated ones of the rows that it was fitted to: ``validate`` tests the
        regressor by these.
    std_ : float or None
        The uncertainty of all rows before they are recalibrated, where the regressor
        has none.
    min_std_ : float
        A hundredth of the median positive uncertainty of these rows. What is less is
        lifted to it: members of a forest may all agree, and quantiles may cross.

    Notes
    -----
    Of quantiles and distributions the prediction and the width are used. To keep their
    shapes, recalibrate :meth:`sigmascale.Predictions.from_quantiles` or
    :meth:`~sigmascale.Predictions.from_distribution` of rows held out.

    With a frozen regressor and ``Recalibrator(hold_out=0.2)``, intervals have the
    guarantee of split conformal prediction. Otherwise coverage is approximate: the
    regressor that predicts has seen more rows than those whose errors set the width,
    which makes intervals slightly too wide. Where it interpolates, training errors say
    nothing of new ones: with as many columns as rows, least squares of minimum norm has
    errors that are several times as large when it is fitted on all rows. `fit` warns if
    training errors are less than a twentieth of cross-validated ones.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> import sigmascale as ss
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = RandomForestRegressor(50, min_samples_leaf=5, random_state=0)
    >>> model = ss.RecalibratedRegressor(forest).fit(X[:300], y[:300])
    >>> ss.scores.zms(model.predictions_)  # of the forest
    2.2
    >>> z = (y[300:] - model.predict(X[300:])) / model.predict_std(X[300:])
    >>> float((z**2).mean())
    1.0

    A regressor without an uncertainty:

    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> boosting = HistGradientBoostingRegressor(max_iter=50, random_state=0)
    >>> model = ss.RecalibratedRegressor(boosting).fit(X[:300], y[:300])
    >>> low, high = model.predict_interval(X[300:], coverage=0.9).T
    >>> round(float(((low <= y[300:]) & (y[300:] <= high)).mean()), 1)
    0.9
    """

    regressor_: Any
    recalibrator_: Recalibrator
    predictions_: Predictions
    std_: float | None
    min_std_: float
    features_: tuple[int, ...]

    def __init__(
        self,
        regressor: Any = None,
        recalibrator: Recalibrator | None = None,
        *,
        ensemble: bool = False,
        cv: Any = 5,
        features: list[int] | list[str] | None = None,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.regressor = regressor
        self.recalibrator = recalibrator
        self.ensemble = ensemble
        self.cv = cv
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the regressor, and the recalibrator to its cross-validated errors.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            What the regressor takes.
        y : array-like of shape (n,)
            Target values.
        sample_weight : array-like of shape (n,), optional
            Importance weights of the rows, for the recalibrator and for a regressor
            whose `fit` takes them; with metadata routing, for one that asked for them.
        groups : array-like of shape (n,), optional
            Rows of one group stay together in all cross-validation.
        **fit_params
            Other parameters of the regressor's `fit`; of those that have a value a row,
            each fold gets its rows.

        Returns
        -------
        self
        """
        new = copy(self)  # which learns: this one stays as it is until all is learned

        # input of one length
        validate_data(new, X, y, skip_check_array=True)
        target = column_or_1d(y, warn=True)
        target = check_array(target, ensure_2d=False, dtype=np.float64, input_name="y")
        X, groups, weights = indexable(X, groups, sample_weight)
        check_consistent_length(X, target)
        if weights is not None:
            effective_weights(weights, target)  # refuses what no weights are
        regressor = self._regressor()
        recalibrator = self._recalibrator()
        has_std = has_uncertainty(regressor)
        options = self._options(regressor, weights, fit_params)

        # what predicts, and the rows whose errors are known, with their predictions
        if isinstance(regressor, FrozenEstimator):
            if self.ensemble:
                msg = (
                    "`ensemble` needs a regressor that can be fitted to folds, and a "
                    "frozen one predicts as it is. Leave `ensemble` out."
                )
                raise InvalidInputError(msg)
            fitted = regressor
            rows = np.arange(target.size)
            y_pred, u = predict_with_std(fitted, X)
        else:
            splits = self._splits(X, target, groups)
            with working("fitting the regressor to each fold"):
                of_folds = Parallel(n_jobs=self.n_jobs)(
                    delayed(_out_of_fold)(regressor, X, target, options, *split)
                    for split in splits
                )
            rows = np.concatenate([np.arange(target.size)[test] for _, test in splits])
            models, predicted, uncertain = zip(*of_folds, strict=True)
            y_pred = np.concatenate(predicted)
            u = np.concatenate(uncertain) if has_std else None
            if self.ensemble:
                fitted = MeanOfModels(models)
            else:
                fitted = fitted_clone(regressor, X, target, options)
                _warn_of_interpolation(fitted, X, target, target[rows] - y_pred)

        # where it has no uncertainty, one number for all rows
        new.std_ = None
        if u is None:
            counted = None if weights is None else np.asarray(weights, float)[rows]
            mean_square = np.average((target[rows] - y_pred) ** 2, weights=counted)
            new.std_ = float(np.sqrt(mean_square)) or 1.0
            u = np.full(rows.size, new.std_)
        _check_positive(u, regressor)
        new.min_std_ = LEAST_BELIEVED * float(np.median(u[u > 0]))

        # out-of-fold rows as Predictions, which the recalibrator learns from
        if groups is not None:
            groups = _safe_indexing(groups, rows)
        elif np.unique(rows).size < rows.size:
            groups = rows  # some of which were tested repeatedly
        new.features_ = new._features(X, recalibrator, has_std=has_std)
        new.predictions_ = new._rows(
            _safe_indexing(X, rows),
            y_pred,
            u,
            y_true=target[rows],
            groups=groups,
            weights=None if weights is None else _safe_indexing(weights, rows),
        )
        new.recalibrator_ = _fitted_quietly(recalibrator, new.predictions_)
        new.regressor_ = fitted
        self.__dict__ = new.__dict__
        return self

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> Floats: ...
    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[Floats, Floats]: ...
    @overload
    def predict(self, X: Any, return_std: bool) -> Floats | tuple[Floats, Floats]: ...
    def predict(
        self, X: Any, return_std: bool = False
    ) -> Floats | tuple[Floats, Floats]:
        """Return the predictions of the regressor.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            With the columns seen in `fit`.
        return_std : bool, default False
            Return recalibrated uncertainties, too, as Gaussian processes do.

        Returns
        -------
        array of shape (n,), or two of them
        """
        fit = self._fit(X)
        y_pred = predictions_of(fit.regressor_, X)
        return (y_pred, fit.predict_std(X)) if return_std else y_pred

    def predict_std(self, X: Any) -> Floats:
        """Return recalibrated uncertainties.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            With the columns seen in `fit`.

        Returns
        -------
        array of shape (n,)
        """
        fit = self._fit(X)
        u: Floats = fit.recalibrator_.predict(fit.to_predictions(X))
        return u

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Return prediction intervals.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            With the columns seen in `fit`.
        coverage : float, default 0.9
            The coverage of the intervals.

        Returns
        -------
        array of shape (n, 2)
        """
        return self.predict_distribution(X).interval(coverage)

    def predict_distribution(self, X: Any) -> Distributions:
        """Return the recalibrated predictive distributions of true values.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            With the columns seen in `fit`.

        Returns
        -------
        Distributions
        """
        fit = self._fit(X)
        rows: Predictions = fit.recalibrator_.apply(fit.to_predictions(X))
        return rows.distributions

    def to_predictions(self, X: Any, y: Any = None, **others: Any) -> Predictions:
        """Return rows as `recalibrator_` takes them: their uncertainties as they came.

        Monitors and followers of the recalibrator watch these, and
        ``recalibrator_.apply`` makes of them what ``validate`` tests.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            With the columns seen in `fit`.
        y : array-like of shape (n,), optional
            True values, where they are known.
        **others
            Such as `groups` or `time`, as for :class:`sigmascale.Predictions`.

        Returns
        -------
        Predictions
        """
        fit = self._fit(X)
        y_pred, u = predict_with_std(fit.regressor_, X)
        if u is None:
            u = np.full(y_pred.size, fit.std_)
        return fit._rows(X, y_pred, u, y_true=y, **others)._from(X)

    def __sklearn_tags__(self) -> Tags:
        """Say to scikit-learn that input is what the regressor takes."""
        tags = super().__sklearn_tags__()
        with suppress(AttributeError):  # of packages without tags
            tags_of_regressor = get_tags(self._regressor()).input_tags
            tags.input_tags.sparse = tags_of_regressor.sparse
            tags.input_tags.allow_nan = tags_of_regressor.allow_nan
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Return who gets which metadata, as scikit-learn asks for it."""
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(regressor=self._regressor(), method_mapping=to_fit)

    def _options(
        self, regressor: Any, weights: Any, fit_params: dict[str, Any]
    ) -> dict[str, Any]:
        """Return what the regressor's `fit` gets beside X and y."""
        options = dict(fit_params)
        if weights is not None:
            options["sample_weight"] = np.asarray(weights, dtype=float)
        if get_config()["enable_metadata_routing"]:
            return dict(process_routing(self, "fit", **options).regressor.fit)
        if not has_fit_parameter(regressor, "sample_weight"):
            options.pop("sample_weight", None)
        return options

    def _regressor(self) -> Any:
        """Return the regressor, unfitted as it was passed; a ridge by default."""
        return BayesianRidge() if self.regressor is None else self.regressor

    def _recalibrator(self) -> Recalibrator:
        """Return a recalibrator to fit, a copy of what was passed."""
        given: Any = self.recalibrator
        if given is None:
            return Recalibrator()
        if not isinstance(given, Recalibrator):
            msg = (
                "`recalibrator` must be a Recalibrator, such as "
                f"Recalibrator(TemperatureScaling()); found {type(given).__name__}."
            )
            raise InvalidInputError(msg)
        copy: Recalibrator = clone(given)
        return copy

    def _splits(self, X: Any, y: Floats, groups: Any) -> list[Any]:
        """Return the rows to fit on and those to test, for each fold."""
        splitter = self.cv
        if isinstance(splitter, (int, np.integer)):
            n_units = y.size if groups is None else np.unique(groups).size
            units = "sample(s)" if groups is None else "group(s)"
            if not 2 <= splitter <= n_units:
                msg = (
                    f"`cv` must be at least 2 and at most the number of {units}; found "
                    f"cv={splitter} and {n_units} {units}. Pass fewer folds or more "
                    "data."
                )
                raise InvalidInputError(msg)
            kind = KFold if groups is None else GroupKFold
            splitter = kind(splitter, shuffle=True, random_state=self.random_state)
        return list(check_cv(splitter).split(X, y, groups))

    def _fit(self, X: Any) -> Self:
        """Return what one fit has learned, whose columns these are.

        Another thread may fit this object anew meanwhile, and not the copy.
        """
        check_is_fitted(self)
        fit = copy(self)
        if getattr(X, "ndim", 2) == 1 and hasattr(fit, "n_features_in_"):
            msg = (
                f"X must be a table of {fit.n_features_in_} columns; found shape "
                f"{X.shape}. Reshape your data: one row is X.reshape(1, -1)."
            )
            raise InvalidInputError(msg)
        validate_data(fit, X, skip_check_array=True, reset=False)
        return fit

    def _features(
        self, X: Any, recalibrator: Recalibrator, *, has_std: bool
    ) -> tuple[int, ...]:
        """Return the numbers of the columns of X that the recalibrator may use."""
        # what was asked for; or all, where nothing else says where errors are large
        names = self._names()
        keys: list[Any] = []
        are_few = len(names) <= MOST_FEATURES and not issparse(X)
        if self.features is not None:
            keys = list(self.features)
        elif not has_std and are_few:
            keys = list(range(len(names)))
        # and what makes parts
        keys += [name for name in recalibrator.parts or [] if name in names]

        numbers = []
        for key in keys:
            number = names.index(key) if key in names else key
            if isinstance(number, str) or not 0 <= number < len(names):
                msg = (
                    "`features` must hold names or numbers of columns of X (named: "
                    f"{listed(names)}); found {quoted(key)}."
                )
                raise InvalidInputError(msg)
            numbers.append(int(number))
        return tuple(dict.fromkeys(numbers))

    def _names(self) -> list[str]:
        """Return the names of the columns of X: those of a table, or x0, x1, ..."""
        numbered = [f"x{i}" for i in range(getattr(self, "n_features_in_", 0))]
        return list(getattr(self, "feature_names_in_", numbered))

    def _rows(self, X: Any, y_pred: Floats, u: Floats, **others: Any) -> Predictions:
        """Return predictions with the columns of X that the recalibrator may use."""
        names = self._names()
        features: dict[str, Any] = {}
        for number in self.features_:
            if issparse(X):
                column = np.ravel(X.tocsr()[:, [number]].toarray())
            elif isinstance(X, (list, tuple)):
                column = np.array([values[number] for values in X])
            else:
                column = _safe_indexing(X, number, axis=1)
            features[names[number]] = column
        if self.std_ is not None and PREDICTION not in names:
            features[PREDICTION] = y_pred
        return Predictions(
            y_pred, u, features=features, min_std=self.min_std_, **others
        )


def _out_of_fold(
    regressor: Any, X: Any, y: Floats, options: dict[str, Any], train: Any, test: Any
) -> tuple[Any, Floats, Floats | None]:
    """Return a model fitted to `train`; its predictions and uncertainties of `test`."""
    of_train = _check_method_params(X, options, indices=train)
    model = fitted_clone(regressor, _safe_indexing(X, train), y[train], of_train)
    return model, *predict_with_std(model, _safe_indexing(X, test))


def _check_positive(u: Floats, regressor: Any) -> None:
    """Refuse uncertainties that are all 0."""
    if not (u > 0).any():
        msg = (
            f"`regressor` must have a positive uncertainty; none of {u.size} of "
            f"{type(regressor).__name__} is. Do all members of an ensemble agree?"
        )
        raise InvalidInputError(msg)


def _warn_of_interpolation(fitted: Any, X: Any, y: Floats, out_of_fold: Floats) -> None:
    """Warn if training errors are far smaller than cross-validated ones."""
    n_asked = min(y.size, TRAINING_ROWS_ASKED)
    asked = np.unique(np.linspace(0, y.size - 1, n_asked).astype(int))
    in_training = y[asked] - predictions_of(fitted, _safe_indexing(X, asked))
    size_in_training = float(np.sqrt(np.mean(in_training**2)))
    size_out_of_fold = float(np.sqrt(np.mean(out_of_fold**2)))
    if size_in_training < INTERPOLATES * size_out_of_fold:
        warn(
            f"Training errors ({numerals.number(size_in_training, 2)}) are far smaller "
            f"than cross-validated ones ({numerals.number(size_out_of_fold, 2)}): the "
            "regressor interpolates, and the one fitted on all rows may have other "
            "errors than the models of the folds, which set the width. ensemble=True "
            "predicts by the mean of these.",
            InterpolatingWarning,
            stacklevel=3,
        )


def _fitted_quietly(recalibrator: Recalibrator, rows: Predictions) -> Recalibrator:
    """Return the fitted recalibrator; that u is the same in all rows is no news."""
    with gathered() as told:
        recalibrator.fit(rows)
    for message, category in told:
        if category is not ConstantUncertaintyWarning:
            warn(message, category, stacklevel=3)
    return recalibrator
