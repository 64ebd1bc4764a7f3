"""A scikit-learn regressor whose uncertainties are recalibrated."""

from __future__ import annotations

from copy import copy
from inspect import signature
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import ARDRegression, BayesianRidge, QuantileRegressor
from sklearn.model_selection import GroupKFold, KFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, _safe_indexing, check_array, get_tags, indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
    validate_data,
)

from ._support.text import listed, quoted
from .distributions import Distributions
from .exceptions import InvalidInputError
from .forms import of_quantiles
from .predictions import Predictions
from .recalibrator import Recalibrator

Floats = npt.NDArray[np.float64]

LEVELS = (0.05, 0.5, 0.95)  # that a regressor of one quantile is fitted at
LEAST = 0.01  # of the median positive uncertainty: no less is believed

_FORESTS = (RandomForestRegressor, ExtraTreesRegressor)
_ENSEMBLES = (*_FORESTS, BaggingRegressor, VotingRegressor)


class RecalibratedRegressor(MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """Recalibrate the uncertainties of any regressor that has some.

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
        By default ``BayesianRidge()``. It may be a pipeline or a search, and needs one
        of: ``predict(X, return_std=True)``, as Gaussian processes have it; members,
        whose spread is taken (random forest, extra trees, bagging, voting); quantiles,
        by ``predict(X, quantiles=[...])`` or by ``loss="quantile"``, of which clones
        for the levels 0.05, 0.5 and 0.95 are then fitted.
    recalibrator : Recalibrator, optional
        By default ``Recalibrator()``. Its bias, if it learns one, moves the centre of
        distributions and intervals, and not the predictions.
    cv : int, splitter or iterable of (train, test), default 5
        The folds. A number means shuffled folds, of whole groups where `fit` gets
        `groups`. Splits may leave rows out, or test some repeatedly: the rows tested
        are those that teach, as with ``TimeSeriesSplit``.
    features : list of int or str, optional
        The columns of X that the recalibrator may use besides the uncertainty: with
        these, uncertainties can become right for every kind of input (*adaptive*).
    n_jobs : int, optional
        Number of folds that are fitted at a time.
    random_state : int, default 0
        Seed of the folds.

    Attributes
    ----------
    regressor_ : estimator
        The regressor, fitted on all rows.
    recalibrator_ : Recalibrator
        The fitted one, which can be saved.
    predictions_ : Predictions
        Of the rows that taught it, out of fold: ``validate`` judges the regressor by
        these.
    min_std_ : float
        A hundredth of the median positive uncertainty of these rows. What is less is
        lifted to it: members of a forest may all agree, and quantiles may cross.

    Notes
    -----
    With a frozen regressor and ``Recalibrator(hold_out=0.2)``, intervals have the
    guarantee of split conformal prediction. Otherwise it holds approximately: the
    regressor that predicts has seen more rows than those whose errors set the width,
    which makes intervals rather too wide.

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
    """

    def __init__(
        self,
        regressor: Any = None,
        recalibrator: Recalibrator | None = None,
        *,
        cv: Any = 5,
        features: list[int] | list[str] | None = None,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.regressor = regressor
        self.recalibrator = recalibrator
        self.cv = cv
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None
    ) -> Self:
        """Fit the regressor, and the recalibrator to what it gets wrong out of fold.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            What the regressor takes.
        y : array-like of shape (n,)
            Target values.
        sample_weight : array-like of shape (n,), optional
            Importance weights of the rows, for the recalibrator and for a regressor
            whose `fit` takes them.
        groups : array-like of shape (n,), optional
            Rows of one group stay together in all cross-validation.

        Returns
        -------
        self
        """
        validate_data(self, X, y, skip_check_array=True)
        target = column_or_1d(y, warn=True)
        target = check_array(target, ensure_2d=False, dtype=np.float64, input_name="y")
        X, groups, weights = indexable(X, groups, sample_weight)
        check_consistent_length(X, target)
        regressor, recalibrator = self._regressor(), self._recalibrator()
        _check_source(regressor)
        if isinstance(regressor, FrozenEstimator):
            fitted, rows = regressor, np.arange(target.size)
            y_pred, u = _predict(fitted, X)
        else:
            splits = self._splits(X, target, groups)
            found = Parallel(n_jobs=self.n_jobs)(
                delayed(_out_of_fold)(regressor, X, target, weights, *each)
                for each in splits
            )
            rows = np.concatenate([np.arange(target.size)[test] for _, test in splits])
            y_pred, u = (np.concatenate(part) for part in zip(*found, strict=True))
            fitted = _fit(regressor, X, target, weights)
        if not (u > 0).any():
            msg = (
                f"`regressor` must have a positive uncertainty; none of {u.size} of "
                f"{type(regressor).__name__} is. Do all members of an ensemble agree?"
            )
            raise InvalidInputError(msg)
        self.min_std_ = LEAST * float(np.median(u[u > 0]))
        if groups is not None:
            groups = _safe_indexing(groups, rows)
        elif np.unique(rows).size < rows.size:
            groups = rows  # some of which were tested repeatedly
        self.predictions_ = self._rows(
            _safe_indexing(X, rows),
            y_pred,
            u,
            y_true=target[rows],
            groups=groups,
            weights=None if weights is None else _safe_indexing(weights, rows),
        )
        self.recalibrator_ = recalibrator.fit(self.predictions_)
        self.regressor_ = fitted
        return self

    def predict(self, X: Any) -> Any:
        """Return the predictions of the regressor.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            With the columns seen in `fit`.

        Returns
        -------
        array of shape (n,)
        """
        self._check_columns(X)
        return self.regressor_.predict(X)

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
        rows = self._new_rows(X)
        found: Floats = self.recalibrator_.predict(rows)
        return found

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Return limits between which the truth lies with the probability asked for.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            With the columns seen in `fit`.
        coverage : float, default 0.9
            Probability that the truth lies within its limits.

        Returns
        -------
        array of shape (n, 2)
        """
        return self.predict_distribution(X).interval(coverage)

    def predict_distribution(self, X: Any) -> Distributions:
        """Return the recalibrated predictive distributions of the truth.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_features)
            With the columns seen in `fit`.

        Returns
        -------
        Distributions
        """
        rows = self._new_rows(X)
        found: Distributions = self.recalibrator_.apply(rows).distributions
        return found

    def __sklearn_tags__(self) -> Tags:
        """Say to scikit-learn that input is what the regressor takes."""
        tags = super().__sklearn_tags__()
        of_regressor = get_tags(self._regressor()).input_tags
        tags.input_tags.sparse = of_regressor.sparse
        tags.input_tags.allow_nan = of_regressor.allow_nan
        return tags

    def _regressor(self) -> Any:
        return BayesianRidge() if self.regressor is None else self.regressor

    def _recalibrator(self) -> Recalibrator:
        given: Any = self.recalibrator
        if given is None:
            return Recalibrator()
        if not isinstance(given, Recalibrator):
            msg = (
                "`recalibrator` must be a Recalibrator, such as "
                f"Recalibrator(TemperatureScaling()); found {type(given).__name__}."
            )
            raise InvalidInputError(msg)
        found: Recalibrator = clone(given)
        return found

    def _splits(self, X: Any, y: Floats, groups: Any) -> list[Any]:
        """Return the rows to fit on and those to test, for each fold."""
        splitter = self.cv
        if isinstance(splitter, (int, np.integer)):
            found = y.size if groups is None else np.unique(groups).size
            what = "sample(s)" if groups is None else "group(s)"
            if not 2 <= splitter <= found:
                msg = (
                    f"`cv` must be at least 2 and at most the number of {what}; found "
                    f"cv={splitter} and {found} {what}. Pass fewer folds or more data."
                )
                raise InvalidInputError(msg)
            kind = KFold if groups is None else GroupKFold
            splitter = kind(splitter, shuffle=True, random_state=self.random_state)
        return list(check_cv(splitter).split(X, y, groups))

    def _check_columns(self, X: Any) -> None:
        """Compare the number and names of columns with those seen in `fit`."""
        check_is_fitted(self)
        if getattr(X, "ndim", 2) == 1 and hasattr(self, "n_features_in_"):
            msg = (
                f"X must be a table of {self.n_features_in_} columns; found shape "
                f"{X.shape}. Reshape your data: one row is X.reshape(1, -1)."
            )
            raise InvalidInputError(msg)
        validate_data(self, X, skip_check_array=True, reset=False)

    def _new_rows(self, X: Any) -> Predictions:
        self._check_columns(X)
        return self._rows(X, *_predict(self.regressor_, X))

    def _rows(self, X: Any, y_pred: Floats, u: Floats, **others: Any) -> Predictions:
        """Return predictions with the columns of X that the recalibrator may use."""
        numbered = [f"x{i}" for i in range(getattr(self, "n_features_in_", 0))]
        names = list(getattr(self, "feature_names_in_", numbered))
        features: dict[str, Any] = {}
        for key in () if self.features is None else self.features:
            which = names.index(key) if key in names else key
            if isinstance(which, str) or not 0 <= which < len(names):
                msg = (
                    "`features` must hold names or numbers of columns of X (named: "
                    f"{listed(names)}); found {quoted(key)}."
                )
                raise InvalidInputError(msg)
            if issparse(X):
                column = np.ravel(X.tocsr()[:, [which]].toarray())
            else:
                column = _safe_indexing(X, int(which), axis=1)
            features[names[which]] = column
        return Predictions(
            y_pred, u, features=features, min_std=self.min_std_, **others
        )


class _Quantiles:
    """Regressors of one quantile each, at :data:`LEVELS`."""

    def __init__(self, regressors: list[Any]) -> None:
        self.regressors = regressors

    def predict(self, X: Any, quantiles: Any = None) -> Any:
        """Return the median, or all quantiles side by side."""
        if quantiles is None:
            return self.regressors[1].predict(X)
        return np.column_stack([each.predict(X) for each in self.regressors])


def _level_parameter(regressor: Any) -> str | None:
    """Return the parameter that says which quantile a regressor predicts, if any."""
    parameters: dict[str, Any] = getattr(regressor, "get_params", dict)()
    linear = isinstance(_last(regressor), QuantileRegressor)
    for name, value in parameters.items():
        *path, last = name.split("__")
        if linear and last == "quantile":
            return name
        if last in ("loss", "objective") and str(value) == "quantile":
            levels = ("__".join([*path, level]) for level in ("quantile", "alpha"))
            return next((level for level in levels if level in parameters), None)
    return None


def _fit(regressor: Any, X: Any, y: Floats, weights: Any) -> Any:
    """Return a clone of the regressor that is fitted, or one for each quantile."""
    options = {}
    if weights is not None and has_fit_parameter(regressor, "sample_weight"):
        options["sample_weight"] = np.asarray(weights, dtype=float)
    level = _level_parameter(regressor)
    if level is None:
        return clone(regressor).fit(X, y, **options)
    clones = [clone(regressor).set_params(**{level: p}) for p in LEVELS]
    return _Quantiles([each.fit(X, y, **options) for each in clones])


def _out_of_fold(
    regressor: Any, X: Any, y: Floats, weights: Any, train: Any, test: Any
) -> tuple[Floats, Floats]:
    """Return predictions and uncertainties of rows that the regressor has not seen."""
    weights = None if weights is None else _safe_indexing(weights, train)
    fitted = _fit(regressor, _safe_indexing(X, train), y[train], weights)
    return _predict(fitted, _safe_indexing(X, test))


def _last(regressor: Any) -> Any:
    """Return the regressor within pipelines, searches and what is frozen."""
    while True:
        if isinstance(regressor, Pipeline):
            regressor = regressor.steps[-1][1]
        elif isinstance(regressor, FrozenEstimator) or hasattr(regressor, "refit"):
            regressor = regressor.estimator
        else:
            return regressor


def _takes(regressor: Any, option: str) -> bool:
    predict = getattr(regressor, "predict", None)
    return predict is not None and option in signature(predict).parameters


def _check_source(regressor: Any) -> None:
    """Refuse, before anything is fitted, a regressor that has no uncertainty."""
    last = _last(regressor)
    frozen = isinstance(regressor, FrozenEstimator)
    if not (
        isinstance(last, _ENSEMBLES)
        or _takes(last, "return_std")
        or _takes(last, "quantiles")
        or (_level_parameter(regressor) is not None and not frozen)
    ):
        ensembles = ", ".join(each.__name__ for each in _ENSEMBLES)
        msg = (
            f"`regressor` must have an uncertainty, and {type(last).__name__} has none:"
            " it needs a `predict` with `return_std`, as GaussianProcessRegressor and "
            f"BayesianRidge have it, or with `quantiles`, or be an ensemble "
            f'({ensembles}) or, unless it is frozen, have loss="quantile". Of your own '
            "model, pass predictions and uncertainties to Predictions, and these to "
            "Recalibrator."
        )
        raise InvalidInputError(msg)


def _predict(regressor: Any, X: Any) -> tuple[Floats, Floats]:
    """Return the predictions of a fitted regressor and their raw uncertainties."""
    if isinstance(regressor, FrozenEstimator):
        return _predict(regressor.estimator, X)
    if hasattr(regressor, "best_estimator_"):
        return _predict(regressor.best_estimator_, X)
    if isinstance(regressor, Pipeline):
        # step by step, because a member of an ensemble needs what the last step gets
        last = regressor.steps[-1][1]
        return _predict(last, regressor[:-1].transform(X) if len(regressor) > 1 else X)
    if _takes(regressor, "quantiles"):
        # quantiles that cross are put in order
        found = np.sort(regressor.predict(X, quantiles=list(LEVELS)), axis=1)
        return regressor.predict(X), of_quantiles(LEVELS, found)[1]
    y_pred = regressor.predict(X)
    if isinstance(regressor, (BayesianRidge, ARDRegression)):
        # these want an array for this, and would miss the names of its columns
        regressor, X = copy(regressor), check_array(X)
        vars(regressor).pop("feature_names_in_", None)
    if _takes(regressor, "return_std"):
        u = regressor.predict(X, return_std=True)[1]
    else:
        u = _spread(regressor, X)
    return np.asarray(y_pred, dtype=float), np.asarray(u, dtype=float)


def _spread(ensemble: Any, X: Any) -> Floats:
    """Return the standard deviation of what the members of an ensemble predict."""
    weights, members = None, ensemble.estimators_
    if isinstance(ensemble, VotingRegressor):
        predicted = [member.predict(X) for member in members]
        weights = ensemble._weights_not_none
    else:
        # the members were fitted to plain arrays, in bagging to some of the columns
        dtype = np.float32 if isinstance(ensemble, _FORESTS) else None
        X = check_array(
            X, accept_sparse=["csr", "csc"], dtype=dtype, ensure_all_finite=False
        )
        every = [slice(None)] * len(members)
        columns = getattr(ensemble, "estimators_features_", every)
        predicted = [
            member.predict(X[:, which])
            for member, which in zip(members, columns, strict=True)
        ]
    if len(predicted) < 2:
        msg = (
            f"`regressor` must have several members for a spread; "
            f"{type(ensemble).__name__} has 1. Use more."
        )
        raise InvalidInputError(msg)
    centred = np.asarray(predicted) - np.average(predicted, axis=0, weights=weights)
    spread: Floats = np.sqrt(np.average(centred**2, axis=0, weights=weights))
    return spread
