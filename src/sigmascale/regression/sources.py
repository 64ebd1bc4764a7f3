"""What a recalibrator gets of a regressor: its uncertainties, and columns of X."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from copy import copy
from inspect import signature
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
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
from sklearn.utils import _safe_indexing, check_array

from .._support.checks import Floats, as_frame, check_column, check_same_length
from ..exceptions import InvalidInputError

Uncertainty = str | Callable[[Any, Any], Any]
Features = Iterable[int | str] | Callable[[Any], Any] | None

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


def some_rows(X: Any, rows: npt.NDArray[Any]) -> Any:
    """Return some rows of an array, a sparse matrix, a list or any data frame."""
    frame = as_frame(X, "X")
    return _safe_indexing(X, rows) if frame is None else frame[rows].to_native()


def conditioning_table(
    u: Floats, X: Any, features: Features, names: list[str], n_columns: int
) -> Any:
    """Return uncertainties beside some columns of a model's input X.

    `features` names or counts these columns, or is a function of X that returns them;
    `names` and `n_columns` say what the columns of X were in `fit`.
    """
    if features is None:
        return u
    if callable(features):
        part = features(X)
    else:
        part = _some_columns(X, _positions(features, names, n_columns))
    frame = as_frame(part, "features")
    if frame is None:
        return np.column_stack([u, part])
    columns: dict[str, Any] = {str(c.name): c for c in frame.iter_columns()}
    if len(columns) < len(frame.columns):
        msg = (
            "`features` must be columns whose names differ as text; found "
            f"{', '.join(map(repr, frame.columns))}. Rename them."
        )
        raise InvalidInputError(msg)
    free = (f"uncertainty{'_' * n}" for n in itertools.count())
    name = next(each for each in itertools.chain(["u"], free) if each not in columns)
    columns = {name: u, **columns}
    return nw.from_dict(columns, backend=frame.implementation).to_native()


def _positions(features: Any, names: list[str], n_columns: int) -> list[int]:
    if isinstance(features, str) or not isinstance(features, Iterable):
        msg = f"`features` must be a list of columns or a callable; found {features!r}."
        raise InvalidInputError(msg)
    positions: list[int] = []
    for key in features:
        if isinstance(key, str) and key in names:
            positions.append(names.index(key))
        elif isinstance(key, (int, np.integer)) and 0 <= key < n_columns:
            positions.append(int(key))
        else:
            known = ", ".join(names) if names else "none"
            msg = (
                f"`features` must hold names or numbers of columns of X, which has "
                f"{n_columns} (named: {known}); found {key!r}."
            )
            raise InvalidInputError(msg)
    return positions


def _some_columns(X: Any, positions: list[int]) -> Any:
    frame = as_frame(X, "X")
    if frame is not None:
        return frame[:, positions].to_native()
    return X[:, positions].toarray() if issparse(X) else np.asarray(X)[:, positions]
