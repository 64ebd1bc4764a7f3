"""Where the uncertainty of a regressor comes from."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from inspect import signature
from typing import Any

import numpy as np
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import ARDRegression, BayesianRidge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from .._support.checks import Floats, check_column, check_same_length
from ..exceptions import InvalidInputError

Uncertainty = str | Callable[[Any, Any], Any]

_FORESTS = (RandomForestRegressor, ExtraTreesRegressor)
_ENSEMBLES = (*_FORESTS, BaggingRegressor, VotingRegressor)
_SEARCHES = (GridSearchCV, RandomizedSearchCV)


def check_source(regressor: Any, uncertainty: Uncertainty) -> None:
    """Refuse, before anything is fitted, a regressor that has no uncertainty."""
    if callable(uncertainty):
        return
    if uncertainty != "auto":
        msg = (
            '`uncertainty` must be "auto" or a callable of the fitted regressor and X; '
            f"found {uncertainty!r}."
        )
        raise InvalidInputError(msg)
    last = regressor
    while True:
        if isinstance(last, (FrozenEstimator, *_SEARCHES)):
            last = last.estimator
        elif isinstance(last, Pipeline):
            last = last.steps[-1][1]
        else:
            break
    if not isinstance(last, _ENSEMBLES) and not _has_return_std(last):
        ensembles = ", ".join(each.__name__ for each in _ENSEMBLES)
        msg = (
            f'`uncertainty="auto"` finds no uncertainty of {type(last).__name__}: it '
            "needs a `predict` with `return_std`, as GaussianProcessRegressor and "
            f"BayesianRidge have it, or an ensemble ({ensembles}). Pass a callable "
            "that returns one standard deviation for each row: "
            "uncertainty=lambda regressor, X: ..."
        )
        raise InvalidInputError(msg)


def predict_with_std(
    regressor: Any, X: Any, uncertainty: Uncertainty
) -> tuple[Floats, Floats]:
    """Return the predictions of a fitted regressor and their raw uncertainties."""
    if callable(uncertainty):
        found = regressor.predict(X), uncertainty(regressor, X)
    else:
        found = _auto(regressor, X)
    prediction, std = (
        check_column(values, name)
        for values, name in zip(found, ("prediction", "uncertainty"), strict=True)
    )
    check_same_length("prediction", prediction, "uncertainty", std)
    return prediction, std


def _has_return_std(regressor: Any) -> bool:
    predict = getattr(regressor, "predict", None)
    return predict is not None and "return_std" in signature(predict).parameters


def _auto(regressor: Any, X: Any) -> tuple[Any, Any]:
    if isinstance(regressor, FrozenEstimator):
        return _auto(regressor.estimator, X)
    if isinstance(regressor, _SEARCHES):
        return _auto(regressor.best_estimator_, X)
    if isinstance(regressor, Pipeline):
        # step by step, because a member of an ensemble needs what the last step gets
        *_, (_, last) = regressor.steps
        return _auto(last, regressor[:-1].transform(X) if len(regressor) > 1 else X)
    if isinstance(regressor, (BayesianRidge, ARDRegression)):
        # these want an array for this, and would miss the names of its columns
        nameless = copy(regressor)
        if hasattr(nameless, "feature_names_in_"):
            del nameless.feature_names_in_
        _, std = nameless.predict(check_array(X), return_std=True)
        return regressor.predict(X), std
    if _has_return_std(regressor):
        prediction, std = regressor.predict(X, return_std=True)
        return prediction, std
    return regressor.predict(X), _spread(regressor, X)


def _spread(ensemble: Any, X: Any) -> Floats:
    """Return the standard deviation of what the members of an ensemble predict."""
    weights = None
    if isinstance(ensemble, VotingRegressor):
        predicted = [member.predict(X) for member in ensemble.estimators_]
        if ensemble.weights is not None:
            pairs = zip(ensemble.estimators, ensemble.weights, strict=True)
            weights = [weight for (_, member), weight in pairs if member != "drop"]
    else:
        # the members were fitted to plain arrays, in bagging to some of the columns
        dtype = np.float32 if isinstance(ensemble, _FORESTS) else None
        rows = check_array(
            X, accept_sparse=["csr", "csc"], dtype=dtype, ensure_all_finite=False
        )
        everything = [slice(None)] * len(ensemble.estimators_)
        columns = getattr(ensemble, "estimators_features_", everything)
        predicted = [
            member.predict(rows[:, which])
            for member, which in zip(ensemble.estimators_, columns, strict=True)
        ]
    if len(predicted) < 2:
        msg = (
            f"The spread of {type(ensemble).__name__} is no uncertainty: it has 1 "
            "member. Use more members or pass a callable as `uncertainty`."
        )
        raise InvalidInputError(msg)
    mean = np.average(predicted, axis=0, weights=weights)
    squares = (np.asarray(predicted) - mean) ** 2
    spread: Floats = np.sqrt(np.average(squares, axis=0, weights=weights))
    return spread
