"""Scorers of uncertainties for scikit-learn's searches and cross-validation.

Each takes a fitted regressor that has an uncertainty, X and y, and returns a number
that is larger for a better one, as ``scoring=`` expects: the negative of a score, or of
the distance of coverage or RMS z from its ideal value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import scores
from ..exceptions import InvalidInputError
from ..predictions.predictions import Predictions
from .regressor import RecalibratedRegressor
from .sources import predict_with_std, unwrapped

COVERAGE = 0.9  # of the intervals that are scored


def neg_crps(regressor: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return minus the CRPS, in the unit of y; the best value is 0.

    Parameters
    ----------
    regressor : estimator
        A fitted regressor that has an uncertainty, such as a
        :class:`~sigmascale.RecalibratedRegressor`.
    X : array-like of shape (n, n_features)
        Rows that it has not seen.
    y : array-like of shape (n,)
        True values.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import BayesianRidge
    >>> import sigmascale as ss
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ridge = BayesianRidge().fit(X[:300], y[:300])
    >>> round(ss.scorers.neg_crps(ridge, X[300:], y[300:]), 1)
    -29.9
    """
    return -scores.crps(_rows(regressor, X, y, sample_weight))


def neg_interval_score(
    regressor: Any, X: Any, y: Any, sample_weight: Any = None
) -> float:
    """Return minus the interval score of 90 % intervals; the best value is 0.

    Parameters
    ----------
    regressor, X, y, sample_weight
        As for :func:`neg_crps`.

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import BayesianRidge
    >>> import sigmascale as ss
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ridge = BayesianRidge().fit(X[:300], y[:300])
    >>> round(ss.scorers.neg_interval_score(ridge, X[300:], y[300:]))
    -217
    """
    return -scores.interval_score(
        _rows(regressor, X, y, sample_weight), coverage=COVERAGE
    )


def neg_coverage_error(
    regressor: Any, X: Any, y: Any, sample_weight: Any = None
) -> float:
    """Return minus abs(coverage − 0.9) of 90 % intervals; the best value is 0.

    Parameters
    ----------
    regressor, X, y, sample_weight
        As for :func:`neg_crps`.

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import BayesianRidge
    >>> import sigmascale as ss
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ridge = BayesianRidge().fit(X[:300], y[:300])
    >>> round(ss.scorers.neg_coverage_error(ridge, X[300:], y[300:]), 2)
    -0.01
    """
    covered = scores.coverage(_rows(regressor, X, y, sample_weight), coverage=COVERAGE)
    return -abs(covered - COVERAGE)


def neg_rms_z_error(regressor: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return minus abs(ln RMS z); the best value is 0, and RMS z 2 is as bad as 0.5.

    Parameters
    ----------
    regressor, X, y, sample_weight
        As for :func:`neg_crps`.

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import BayesianRidge
    >>> import sigmascale as ss
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ridge = BayesianRidge().fit(X[:300], y[:300])
    >>> round(ss.scorers.neg_rms_z_error(ridge, X[300:], y[300:]), 2)
    -0.05
    """
    mean_square = scores.zms(_rows(regressor, X, y, sample_weight))
    return -0.5 * abs(float(np.log(max(mean_square, 1e-300))))


def _rows(regressor: Any, X: Any, y: Any, weights: Any) -> Predictions:
    """Return what a regressor says of rows, recalibrated if it is."""
    regressor, X = unwrapped(regressor, X)
    if isinstance(regressor, RecalibratedRegressor):
        rows = regressor.to_predictions(X, y, weights=weights)
        return regressor.recalibrator_.apply(rows)
    y_pred, u = predict_with_std(regressor, X)
    if u is None:
        msg = (
            f"{type(regressor).__name__} has no uncertainty to score. Wrap it: "
            "ss.RecalibratedRegressor(regressor)."
        )
        raise InvalidInputError(msg, "no-uncertainty")
    return Predictions(y_pred, u, y_true=y, weights=weights)
