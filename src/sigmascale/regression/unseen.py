"""Errors of rows that a regressor has not seen, and a recalibrator fitted to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    ShuffleSplit,
    check_cv,
)
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from .._support.checks import Floats, Ints, check_count, check_fraction
from .._support.labels import Categories
from ..exceptions import InvalidInputError
from ..predictions import Predictions
from ..recalibrator import Recalibrator
from .sources import Uncertainty, predict_with_std, some_rows

Splits = list[tuple[Ints, Ints]]


def make_splits(
    cv: Any,
    X: Any,
    y: Floats,
    groups: Ints | None,
    metadata: dict[str, Any],
    seed: int,
) -> Splits:
    """Return the rows to fit on and those to test, for each fold."""
    if isinstance(cv, (int, np.integer)):
        n_folds = check_count(cv, "cv", least=2)
        found = y.size if groups is None else np.unique(groups).size
        if found < n_folds:
            what = "sample(s)" if groups is None else "group(s)"
            msg = (
                f"`cv` must be at most the number of {what}; found cv={n_folds} "
                f"and {found} {what}. Pass fewer folds or more data."
            )
            raise InvalidInputError(msg)
        kind = KFold if groups is None else GroupKFold
        splitter = kind(n_folds, shuffle=True, random_state=seed)
    else:
        splitter = check_cv(cv)
    if groups is not None:
        metadata = {**metadata, "groups": groups}
    return list(splitter.split(X, y, **metadata))


def out_of_fold(
    regressor: Any,
    X: Any,
    y: Floats,
    splits: Splits,
    fit_params: dict[str, Any],
    uncertainty: Uncertainty,
    n_jobs: int | None,
) -> tuple[Ints, Floats, Floats]:
    """Return the rows tested, sorted, with their errors and raw uncertainties."""
    found = Parallel(n_jobs=n_jobs)(
        delayed(_fit_and_predict)(
            clone(regressor), X, y, train, test, fit_params, uncertainty
        )
        for train, test in splits
    )
    rows = np.concatenate([np.arange(y.size)[test] for _, test in splits])
    prediction, u = (np.concatenate(values) for values in zip(*found, strict=True))
    order = np.argsort(rows, kind="stable")
    return rows[order], (y[rows] - prediction)[order], u[order]


def _fit_and_predict(
    regressor: Any,
    X: Any,
    y: Floats,
    train: Ints,
    test: Ints,
    fit_params: dict[str, Any],
    uncertainty: Uncertainty,
) -> tuple[Floats, Floats]:
    """Return predictions and uncertainties of rows that the regressor has not seen."""
    params = _check_method_params(X, fit_params, indices=train)
    regressor.fit(some_rows(X, train), y[train], **params)
    return predict_with_std(regressor, some_rows(X, test), uncertainty)


def calibrate(
    recalibrator: Recalibrator,
    rows: Predictions,
    labels: Categories | None,
    *,
    conformal_size: float | None,
    seed: int,
) -> Recalibrator:
    """Fit the recalibrator, and set rows aside for intervals if that is asked for."""
    groups, error = rows.groups, rows.errors
    if conformal_size is not None:
        size = check_fraction(conformal_size, "conformal_size")
        kind = ShuffleSplit if groups is None else GroupShuffleSplit
        splitter = kind(1, test_size=size, random_state=seed)
        seen, unseen = next(splitter.split(error, groups=groups))
        return recalibrator.fit(_part(rows, seen)).conformalize(
            _part(rows, unseen),
            by_category=None if labels is None else labels[unseen].values(),
        )
    if labels is not None:
        msg = (
            "`by_category` needs rows that set the width of each category's interval: "
            "pass conformal_size, such as 0.2, to RecalibratedRegressor."
        )
        raise InvalidInputError(msg)
    return recalibrator.fit(rows)


def _part(rows: Predictions, which: Ints) -> Predictions:
    """Return some rows, with weights in a unit of their own."""
    part = rows.take(which)
    return part.weighted(part.weights)
