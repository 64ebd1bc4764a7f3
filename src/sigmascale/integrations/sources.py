"""Where the uncertainty of a regressor comes from; `SOURCES` lists all ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import ARDRegression, BayesianRidge, QuantileRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from .._support.checks import Floats
from ..exceptions import InvalidInputError
from ..predictions.forms import of_distribution, read_quantiles

FITTED_LEVELS = (0.05, 0.5, 0.95)  # that a regressor of one quantile is fitted at

_FORESTS = (RandomForestRegressor, ExtraTreesRegressor)
_ENSEMBLES = (*_FORESTS, BaggingRegressor, VotingRegressor)


# -- fitting ---------------------------------------------------------------------------


class Quantiles:
    """Regressors of one quantile each, at :data:`FITTED_LEVELS`."""

    def __init__(self, regressors: list[Any]) -> None:
        self.regressors = regressors

    def predict(self, X: Any, quantiles: Any = None) -> Any:
        """Return the median, or all quantiles side by side."""
        if quantiles is None:
            return self.regressors[1].predict(X)
        return np.column_stack([regressor.predict(X) for regressor in self.regressors])


def _one_quantile(regressor: Any) -> list[dict[str, Any]]:
    """Return what makes a regressor of one quantile predict each of three.

    These are parameters, of a step in a pipeline or in a search as well; there are none
    if it predicts something else.
    """
    parameters = _parameters(regressor)
    is_linear = isinstance(_last(regressor), QuantileRegressor)
    for name, value in parameters.items():
        *path, parameter = name.split("__")
        loss = str(value)
        level = None
        if is_linear and parameter == "quantile":
            level = name
        elif parameter not in ("loss", "loss_function", "objective"):
            continue
        elif loss == "quantile":
            # LightGBM has `alpha` by default, and does not say so
            beside = "__".join([*path, "quantile"])
            level = beside if beside in parameters else "__".join([*path, "alpha"])
        elif loss == "reg:quantileerror":  # of XGBoost, which takes several, too
            beside = "__".join([*path, "quantile_alpha"])
            level = beside if np.size(parameters.get(beside, 0.5)) == 1 else None
        elif loss.split(":")[0] == "Quantile":  # of CatBoost
            return [{name: f"Quantile:alpha={p}"} for p in FITTED_LEVELS]
        if level is not None:
            return [{level: p} for p in FITTED_LEVELS]
    return []


def fitted_clone(regressor: Any, X: Any, y: Floats, options: dict[str, Any]) -> Any:
    """Return a clone of the regressor that is fitted, or one for each quantile."""
    by_quantile = _one_quantile(regressor)
    if not by_quantile:
        return clone(regressor).fit(X, y, **options)
    clones = [clone(regressor).set_params(**level) for level in by_quantile]
    return Quantiles([model.fit(X, y, **options) for model in clones])


def _last(regressor: Any) -> Any:
    """Return the regressor within pipelines, searches and what is frozen."""
    while True:
        if isinstance(regressor, Pipeline):
            regressor = regressor.steps[-1][1]
        elif isinstance(regressor, FrozenEstimator) or hasattr(regressor, "refit"):
            regressor = regressor.estimator
        else:
            return regressor


def has_uncertainty(regressor: Any) -> bool:
    """Return whether a regressor has an uncertainty; refuse what cannot be fitted."""
    last = _last(regressor)
    is_frozen = isinstance(regressor, FrozenEstimator)
    name = type(last).__name__
    if not (hasattr(last, "fit") or hasattr(last, "predict")):
        msg = (
            f"`regressor` must have `fit` and `predict`; found {name}. Recalibrate its "
            "predictions: ss.Recalibrator().fit(ss.Predictions(y_pred, y_std, "
            "y_true=y)). Of statsmodels these are `predicted_mean` and `se_obs` of "
            "fitted.get_prediction(X)."
        )
        raise InvalidInputError(msg, "no-regressor")
    if not is_frozen and not hasattr(last, "get_params"):
        msg = (
            f"`regressor` must have `get_params`, so that clones of it can be fitted "
            f"to folds; {name} has none. Fit it to other rows, and pass "
            "FrozenEstimator(regressor), from sklearn.frozen."
        )
        raise InvalidInputError(msg, "no-clones")
    if _source_of(last) is not None:
        return True
    if not _one_quantile(last):
        return False
    if is_frozen:
        msg = (
            f"`regressor` is a frozen {name} of one quantile, which has no "
            "uncertainty. Pass it unfrozen: clones for three quantiles are then fitted."
        )
        raise InvalidInputError(msg)
    return True


# -- predicting ------------------------------------------------------------------------


class MeanOfModels:
    """Regressors, each fitted without one of the folds, that predict by their mean."""

    def __init__(self, regressors: Sequence[Any]) -> None:
        self.regressors = regressors

    def predict(self, X: Any) -> Floats:
        """Return the mean of what they predict."""
        predicted = [predictions_of(regressor, X) for regressor in self.regressors]
        return np.asarray(np.mean(predicted, axis=0), dtype=float)

    def predict_with_std(self, X: Any) -> tuple[Floats, Floats | None]:
        """Return the means of what they predict, and of their uncertainties."""
        all_told = [predict_with_std(regressor, X) for regressor in self.regressors]
        predicted, uncertain = zip(*all_told, strict=True)
        u = None if uncertain[0] is None else np.mean(uncertain, axis=0)
        return np.mean(predicted, axis=0), u


def unwrapped(regressor: Any, X: Any) -> tuple[Any, Any]:
    """Return the regressor within pipelines, searches and what is frozen; and its X.

    A member of an ensemble needs what the last step gets; and a pipeline refuses to
    predict by regressors that do not tell scikit-learn that they are fitted.
    """
    while True:
        if isinstance(regressor, Pipeline):
            X = regressor[:-1].transform(X) if len(regressor) > 1 else X
            regressor = regressor.steps[-1][1]
        elif isinstance(regressor, FrozenEstimator):
            regressor = regressor.estimator
        elif hasattr(regressor, "best_estimator_"):
            regressor = regressor.best_estimator_
        else:
            return regressor, X


def predict_with_std(regressor: Any, X: Any) -> tuple[Floats, Floats | None]:
    """Return what a fitted regressor predicts, and its uncertainties if it has some."""
    regressor, X = unwrapped(regressor, X)
    if isinstance(regressor, MeanOfModels):
        return regressor.predict_with_std(X)
    read = _source_of(regressor)
    if read is None:
        return _column(regressor.predict(X), regressor), None
    y_pred, std = read(regressor, X)
    u = _column(std, regressor)
    n_infinite = np.count_nonzero(~np.isfinite(u))
    if n_infinite:
        msg = (
            f"`regressor` must have finite uncertainties; {n_infinite} of {u.size} of "
            f"{type(regressor).__name__} are not. Student's t may have no standard "
            "deviation, and few calibration rows give infinite intervals: choose "
            "another distribution, such as the normal, or more rows."
        )
        raise InvalidInputError(msg, "not-finite")
    return _column(y_pred, regressor), u


def predictions_of(regressor: Any, X: Any) -> Floats:
    """Return what a fitted regressor predicts, without its uncertainties."""
    regressor, X = unwrapped(regressor, X)
    y_pred = regressor.predict(X)
    if _is_column(y_pred):
        return _column(y_pred, regressor)
    return predict_with_std(regressor, X)[0]  # its middle, if it has several


def _is_column(values: Any) -> bool:
    """Return whether there is one number for each row."""
    return np.size(values) == len(values)


def _column(values: Any, regressor: Any) -> Floats:
    """Return one number for each row, or say what to do with several."""
    if not _is_column(values):
        msg = (
            f"`regressor` must predict one number for each row; what "
            f"{type(regressor).__name__} predicts has shape {np.shape(values)}. "
            "Recalibrate its predictions: ss.Recalibrator().fit(p), where p is "
            "ss.Predictions(mean, np.sqrt(variance), y_true=y) or "
            "ss.Predictions.from_quantiles(levels, quantiles, y_true=y)."
        )
        raise InvalidInputError(msg, "several-columns")
    return np.ravel(np.asarray(values, dtype=float))


def _spread(ensemble: Any, X: Any) -> Floats:
    """Return the standard deviation of what the members of an ensemble predict."""
    weights = None
    members = ensemble.estimators_
    if isinstance(ensemble, VotingRegressor):
        predicted = [member.predict(X) for member in members]
        weights = ensemble._weights_not_none
    else:
        # the members were fitted to plain arrays, in bagging to some of the columns
        dtype = np.float32 if isinstance(ensemble, _FORESTS) else None
        X = check_array(
            X, accept_sparse=["csr", "csc"], dtype=dtype, ensure_all_finite=False
        )
        all_columns = [slice(None)] * len(members)
        columns = getattr(ensemble, "estimators_features_", all_columns)
        predicted = []
        for member, columns_of_member in zip(members, columns, strict=True):
            predicted.append(member.predict(X[:, columns_of_member]))
    if len(predicted) < 2:
        msg = (
            f"`regressor` must have several members for a spread; "
            f"{type(ensemble).__name__} has 1. Use more."
        )
        raise InvalidInputError(msg)
    centred = np.asarray(predicted) - np.average(predicted, axis=0, weights=weights)
    spread: Floats = np.sqrt(np.average(centred**2, axis=0, weights=weights))
    return spread


# -- what regressors offer -------------------------------------------------------------


def _takes(option: str) -> Callable[[Any], bool]:
    """Return a function that says whether `predict` of a regressor takes an option."""

    def takes(regressor: Any) -> bool:
        predict = getattr(regressor, "predict", None)
        return predict is not None and option in signature(predict).parameters

    return takes


def _has(name: str) -> Callable[[Any], bool]:
    """Return a function that says whether a regressor has a method."""
    return lambda regressor: callable(getattr(regressor, name, None))


def _parameters(regressor: Any) -> dict[str, Any]:
    """Return the parameters of a regressor, if it has such."""
    parameters: dict[str, Any] = getattr(regressor, "get_params", dict)()
    return parameters


def _loss(regressor: Any) -> str:
    """Return the name of the loss that CatBoost or XGBoost minimises."""
    parameters = _parameters(regressor)
    return str(parameters.get("objective") or parameters.get("loss_function"))


def _levels(regressor: Any) -> list[float]:
    """Return the levels of quantiles that are predicted at once, or none."""
    loss, _, levels = _loss(regressor).partition(":alpha=")
    if loss == "MultiQuantile":
        return [float(level) for level in levels.split(",")]
    if loss != "reg:quantileerror":
        return []
    in_list = np.ravel(_parameters(regressor).get("quantile_alpha", 0.5))
    return [float(level) for level in in_list] if in_list.size > 1 else []


def _of_return_std(regressor: Any, X: Any) -> tuple[Any, Any]:
    """Return what it predicts, and the standard deviation that is returned with it."""
    y_pred = regressor.predict(X)
    if isinstance(regressor, (BayesianRidge, ARDRegression)):
        # these want an array for this, and would miss the names of its columns
        X = check_array(X)
        regressor = copy(regressor)
        vars(regressor).pop("feature_names_in_", None)
    return y_pred, regressor.predict(X, return_std=True)[1]


def _middle_and_width(levels: Any, quantiles: Any) -> tuple[Any, Any]:
    """Return the middle and the width of quantiles; those that cross are sorted."""
    order = np.argsort(levels)
    in_order = np.sort(np.asarray(quantiles, float)[:, order], axis=1)
    q = read_quantiles(np.asarray(levels)[order], in_order)
    return q.middle, q.width


def _of_quantiles(regressor: Any, X: Any) -> tuple[Any, Any]:
    """Return what it predicts, and the width of quantiles that it is asked for."""
    quantiles = regressor.predict(X, quantiles=list(FITTED_LEVELS))
    middle, width = _middle_and_width(FITTED_LEVELS, quantiles)
    y_pred = regressor.predict(X)  # several, if it was made for that
    return y_pred if _is_column(y_pred) else middle, width


def _of_output(regressor: Any, X: Any) -> tuple[Any, Any]:
    """Return what it predicts, and the width of quantiles, which TabPFN lists."""
    asked = {"output_type": "quantiles", "quantiles": list(FITTED_LEVELS)}
    quantiles = np.column_stack(regressor.predict(X, **asked))
    return regressor.predict(X), _middle_and_width(FITTED_LEVELS, quantiles)[1]


def _of_levels(regressor: Any, X: Any) -> tuple[Any, Any]:
    """Return the middle and the width of quantiles that are predicted at once."""
    return _middle_and_width(_levels(regressor), regressor.predict(X))


def _half_width(limits: Any) -> Floats:
    """Return half the width of the outermost interval.

    What coverage it has does not matter: u is recalibrated.
    """
    by_interval = np.asarray(limits, float).reshape(len(limits), 2, -1)
    half: Floats = (by_interval[:, 1] - by_interval[:, 0]).max(axis=1) / 2
    return half


def _of_interval(regressor: Any, X: Any) -> tuple[Any, Any]:
    """Return what MAPIE predicts, and half the width of its interval."""
    y_pred, limits = regressor.predict_interval(X)
    return y_pred, _half_width(limits)


def _of_prediction(results: Any, X: Any) -> tuple[Any, Any]:
    """Return the mean, and the standard error of a new value, of statsmodels."""
    predicted = results.get_prediction(X)
    if not hasattr(predicted, "se_obs"):
        msg = (
            f"{type(results).__name__} of statsmodels has the standard error of the "
            "mean alone, and none of a new value. Pass an estimator of scikit-learn, "
            "which then learns one from its errors."
        )
        raise InvalidInputError(msg, "no-uncertainty")
    return predicted.predicted_mean, predicted.se_obs


def _of_predicted_quantiles(regressor: Any, X: Any) -> tuple[Any, Any]:
    """Return what it predicts, and the width of quantiles, as sktime has them."""
    quantiles = regressor.predict_quantiles(X, alpha=list(FITTED_LEVELS))
    return regressor.predict(X), _middle_and_width(FITTED_LEVELS, quantiles)[1]


def _of_variance(regressor: Any, X: Any) -> tuple[Any, Any]:
    """Return the mean and the root of the variance, of two columns."""
    mean, variance = np.asarray(regressor.predict(X)).T
    return mean, np.sqrt(np.maximum(variance, 0))


def _of_members(ensemble: Any, X: Any) -> tuple[Any, Any]:
    """Return what an ensemble predicts, and the standard deviation of its members."""
    return ensemble.predict(X), _spread(ensemble, X)


_Read = Callable[[Any, Any], tuple[Any, Any]]
SOURCES: tuple[tuple[Callable[[Any], bool], _Read], ...] = (
    # Gaussian processes, BayesianRidge: `predict(X, return_std=True)`
    (_takes("return_std"), _of_return_std),
    # TabPFN: `predict(X, output_type="quantiles")`
    (_takes("output_type"), _of_output),
    # quantile-forest: `predict(X, quantiles=[...])`
    (_takes("quantiles"), _of_quantiles),
    # NGBoost
    (_has("pred_dist"), lambda model, X: of_distribution(model.pred_dist(X))),
    # CatBoost with RMSEWithUncertainty: `predict` gives a mean and a variance
    (lambda model: _loss(model).startswith("RMSEWithUncertainty"), _of_variance),
    # XGBoost with several levels, CatBoost with MultiQuantile: `predict` gives all
    (lambda model: bool(_levels(model)), _of_levels),
    # skpro: `predict_proba(X)` is a distribution
    (_has("predict_proba"), lambda model, X: of_distribution(model.predict_proba(X))),
    # sktime: `predict_quantiles(X, alpha=[...])`
    (_has("predict_quantiles"), _of_predicted_quantiles),
    # MAPIE, fitted and frozen
    (_has("predict_interval"), _of_interval),
    # crepes, calibrated and frozen
    (_has("predict_int"), lambda m, X: (m.predict(X), _half_width(m.predict_int(X)))),
    # results of statsmodels, frozen
    (_has("get_prediction"), _of_prediction),
    # random forests, extra trees, bagging, voting
    (lambda model: isinstance(model, _ENSEMBLES), _of_members),
)
"""How a regressor is known to have an uncertainty, and how it is read with what the
regressor predicts; the first that fits is taken."""


def _source_of(regressor: Any) -> _Read | None:
    """Return how the uncertainty of a regressor is read, if it has one."""
    return next((read for offers, read in SOURCES if offers(regressor)), None)
