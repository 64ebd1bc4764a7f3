"""Where the uncertainty of a regressor comes from: itself, its members, quantiles."""

from __future__ import annotations

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
from sklearn.utils.validation import has_fit_parameter

from .._support.checks import Floats
from ..exceptions import InvalidInputError
from ..predictions.forms import read_quantiles

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
        if parameter in ("loss", "objective") and str(value) == "quantile":
            for level in ("quantile", "alpha"):
                beside = "__".join([*path, level])
                if beside in parameters:
                    return beside
            return None
    return None


def fitted_clone(regressor: Any, X: Any, y: Floats, weights: Any) -> Any:
    """Return a clone of the regressor that is fitted, or one for each quantile."""
    options = {}
    if weights is not None and has_fit_parameter(regressor, "sample_weight"):
        options["sample_weight"] = np.asarray(weights, dtype=float)
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


def _takes(regressor: Any, option: str) -> bool:
    """Return whether `predict` of a regressor takes an option."""
    predict = getattr(regressor, "predict", None)
    return predict is not None and option in signature(predict).parameters


def has_uncertainty(regressor: Any) -> bool:
    """Return whether a regressor tells an uncertainty; refuse one frozen quantile."""
    last = _last(regressor)
    if (
        isinstance(last, _ENSEMBLES)
        or _takes(last, "return_std")
        or _takes(last, "quantiles")
    ):
        return True
    if _level_parameter(last) is None:
        return False
    if isinstance(regressor, FrozenEstimator):
        msg = (
            f"`regressor` is a frozen {type(last).__name__} of one quantile, which "
            "neither predicts nor tells an uncertainty. Pass it unfrozen: clones for "
            "three quantiles are then fitted."
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
        predicted = [regressor.predict(X) for regressor in self.regressors]
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

    # the width of quantiles; those that cross are put in order
    if _takes(regressor, "quantiles"):
        in_order = np.sort(regressor.predict(X, quantiles=list(FITTED_LEVELS)), axis=1)
        u = read_quantiles(FITTED_LEVELS, in_order).width
        return regressor.predict(X), u

    # a standard deviation that it tells, or the spread of its members
    y_pred = regressor.predict(X)
    if isinstance(regressor, (BayesianRidge, ARDRegression)):
        # these want an array for this, and would miss the names of its columns
        X = check_array(X)
        regressor = copy(regressor)
        vars(regressor).pop("feature_names_in_", None)
    if _takes(regressor, "return_std"):
        u = regressor.predict(X, return_std=True)[1]
    elif isinstance(regressor, _ENSEMBLES):
        u = _spread(regressor, X)
    else:
        return np.asarray(y_pred, dtype=float), None
    return np.asarray(y_pred, dtype=float), np.asarray(u, dtype=float)


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
