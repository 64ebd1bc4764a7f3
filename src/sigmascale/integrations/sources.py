"""Where the uncertainty of a regressor comes from; `SOURCES` lists all ways."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
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


def _level_parameter(regressor: Any) -> str | None:
    """Return the parameter that says which quantile a regressor predicts, if any."""
    parameters: dict[str, Any] = getattr(regressor, "get_params", dict)()
    is_linear = isinstance(_last(regressor), QuantileRegressor)
    for name, value in parameters.items():
        *path, parameter = name.split("__")  # of a step in a pipeline
        if is_linear and parameter == "quantile":
            return name
        if parameter == "quantile_alpha" and isinstance(value, float):
            return name
        if parameter in ("loss", "objective") and str(value) == "quantile":
            for level in ("quantile", "alpha"):
                beside = "__".join([*path, level])
                if beside in parameters:
                    return beside
            # LightGBM has it by default, and does not say so
            is_lightgbm = "__".join([*path, "boosting_type"]) in parameters
            return "__".join([*path, "alpha"]) if is_lightgbm else None
    return None


def fitted_clone(regressor: Any, X: Any, y: Floats, options: dict[str, Any]) -> Any:
    """Return a clone of the regressor that is fitted, or one for each quantile."""
    level = _level_parameter(regressor)
    if level is None:
        return clone(regressor).fit(X, y, **options)
    clones = [clone(regressor).set_params(**{level: p}) for p in FITTED_LEVELS]
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
    """Return whether a regressor tells an uncertainty; refuse what cannot be fitted."""
    last = _last(regressor)
    is_frozen = isinstance(regressor, FrozenEstimator)
    name = type(last).__name__
    if not hasattr(last, "predict"):
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
    if source_of(last) is not None:
        return True
    if _level_parameter(last) is None:
        return False
    if is_frozen:
        msg = (
            f"`regressor` is a frozen {name} of one quantile, which neither predicts "
            "nor tells an uncertainty. Pass it unfrozen: clones for three quantiles "
            "are then fitted."
        )
        raise InvalidInputError(msg)
    return True


# -- predicting ------------------------------------------------------------------------


class MeanOfModels:
    """Regressors, each fitted without one of the folds, that predict by their mean."""

    def __init__(self, regressors: list[Any]) -> None:
        self.regressors = regressors

    def predict(self, X: Any) -> Floats:
        """Return the mean of what they predict."""
        predicted = [predictions_of(regressor, X) for regressor in self.regressors]
        return np.asarray(np.mean(predicted, axis=0), dtype=float)


def predict_with_std(regressor: Any, X: Any) -> tuple[Floats, Floats | None]:
    """Return what a fitted regressor predicts, and its uncertainties if it has some."""
    # what holds other regressors
    if isinstance(regressor, MeanOfModels):
        return _mean_with_std(regressor, X)
    if isinstance(regressor, FrozenEstimator):
        return predict_with_std(regressor.estimator, X)
    if hasattr(regressor, "best_estimator_"):
        return predict_with_std(regressor.best_estimator_, X)
    if isinstance(regressor, Pipeline):
        # step by step, because a member of an ensemble needs what the last step gets
        if len(regressor) > 1:
            X = regressor[:-1].transform(X)
        return predict_with_std(regressor.steps[-1][1], X)

    source = source_of(regressor)
    if source is None:
        return np.ravel(np.asarray(regressor.predict(X), dtype=float)), None
    y_pred, u = source.read(regressor, X)
    return np.ravel(np.asarray(y_pred, float)), np.ravel(np.asarray(u, float))


def predictions_of(regressor: Any, X: Any) -> Any:
    """Return what a fitted regressor predicts, and nothing else of what it tells."""
    is_more = source_of(_last(regressor)) in SEVERAL_COLUMNS
    return predict_with_std(regressor, X)[0] if is_more else regressor.predict(X)


def _mean_with_std(models: MeanOfModels, X: Any) -> tuple[Floats, Floats | None]:
    """Return the means of predictions and of uncertainties over several regressors."""
    predictions = []
    uncertainties = []
    for regressor in models.regressors:
        y_pred, u = predict_with_std(regressor, X)
        predictions.append(y_pred)
        if u is not None:
            uncertainties.append(u)
    mean = np.mean(predictions, axis=0)
    return mean, np.mean(uncertainties, axis=0) if uncertainties else None


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


@dataclass(frozen=True)
class Source:
    """A way in which regressors tell their uncertainty.

    Attributes
    ----------
    words : str
        What it is, and who has it.
    offers : callable
        Whether a regressor, fitted or not, has it.
    read : callable
        What a fitted regressor predicts for X, and its uncertainties.
    """

    words: str
    offers: Callable[[Any], bool]
    read: Callable[[Any, Any], tuple[Any, Any]]


def source_of(regressor: Any) -> Source | None:
    """Return the first way in which a regressor tells its uncertainty, if any."""
    return next((source for source in SOURCES if source.offers(regressor)), None)


def _takes(regressor: Any, option: str) -> bool:
    """Return whether `predict` of a regressor takes an option."""
    predict = getattr(regressor, "predict", None)
    return predict is not None and option in signature(predict).parameters


def _has(name: str) -> Callable[[Any], bool]:
    """Return what tells whether a regressor has a method."""
    return lambda regressor: callable(getattr(regressor, name, None))


def _loss(regressor: Any) -> str:
    """Return the name of the loss that CatBoost minimises."""
    parameters: dict[str, Any] = getattr(regressor, "get_params", dict)()
    return str(parameters.get("loss_function", ""))


def _levels(regressor: Any) -> list[float]:
    """Return the levels of quantiles that are predicted at once, or none."""
    if _loss(regressor).startswith("MultiQuantile:alpha="):
        return [float(level) for level in _loss(regressor).split("=", 1)[1].split(",")]
    parameters: dict[str, Any] = getattr(regressor, "get_params", dict)()
    levels = parameters.get("quantile_alpha")
    is_list = isinstance(levels, (list, tuple, np.ndarray))
    if parameters.get("objective") != "reg:quantileerror" or not is_list:
        return []
    return [float(level) for level in levels or ()]


def _told(regressor: Any, X: Any) -> tuple[Any, Any]:
    """Return the standard deviation that `predict` tells if asked."""
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
    return regressor.predict(X), _middle_and_width(FITTED_LEVELS, quantiles)[1]


def _of_levels(regressor: Any, X: Any) -> tuple[Any, Any]:
    """Return the middle and the width of quantiles that are predicted at once."""
    return _middle_and_width(_levels(regressor), regressor.predict(X))


def _of_interval(regressor: Any, X: Any) -> tuple[Any, Any]:
    """Return what it predicts, and half the width of the outermost interval.

    What coverage an interval has does not matter: u is recalibrated.
    """
    y_pred, limits = regressor.predict_interval(X)
    limits = np.asarray(limits, float).reshape(len(limits), 2, -1)
    return y_pred, (limits[:, 1] - limits[:, 0]).max(axis=1) / 2


def _of_predicted_quantiles(regressor: Any, X: Any) -> tuple[Any, Any]:
    """Return the middle and the width of quantiles, as skpro has them."""
    quantiles = regressor.predict_quantiles(X, alpha=list(FITTED_LEVELS))
    return _middle_and_width(FITTED_LEVELS, quantiles)


def _of_variance(regressor: Any, X: Any) -> tuple[Any, Any]:
    """Return the mean and the root of the variance, of two columns."""
    mean, variance = np.asarray(regressor.predict(X)).T
    return mean, np.sqrt(np.maximum(variance, 0))


SOURCES = (
    Source(
        "`predict(X, return_std=True)`: Gaussian processes, BayesianRidge",
        lambda regressor: _takes(regressor, "return_std"),
        _told,
    ),
    Source(
        "`predict(X, quantiles=[...])`: quantile-forest",
        lambda regressor: _takes(regressor, "quantiles"),
        _of_quantiles,
    ),
    Source(
        "`pred_dist(X)`: NGBoost",
        _has("pred_dist"),
        lambda regressor, X: of_distribution(regressor.pred_dist(X)),
    ),
    Source(
        "a mean and a variance: CatBoost with RMSEWithUncertainty",
        lambda regressor: _loss(regressor).startswith("RMSEWithUncertainty"),
        _of_variance,
    ),
    Source(
        "several quantiles at once: XGBoost with `quantile_alpha`, CatBoost with "
        "MultiQuantile",
        lambda regressor: bool(_levels(regressor)),
        _of_levels,
    ),
    Source(
        "`predict_proba(X)`, a distribution: skpro",
        _has("predict_proba"),
        lambda regressor, X: of_distribution(regressor.predict_proba(X)),
    ),
    Source(
        "`predict_quantiles(X, alpha=[...])`: sktime",
        _has("predict_quantiles"),
        _of_predicted_quantiles,
    ),
    Source(
        "`predict_interval(X)`: MAPIE, fitted and frozen",
        _has("predict_interval"),
        _of_interval,
    ),
    Source(
        "members: random forests, extra trees, bagging, voting",
        lambda regressor: isinstance(regressor, _ENSEMBLES),
        lambda ensemble, X: (ensemble.predict(X), _spread(ensemble, X)),
    ),
)
"""How regressors tell their uncertainty; the first that one offers is taken."""
SEVERAL_COLUMNS = SOURCES[3:5]  # what predict by more than one column
