"""Choosing among candidates: by unseen rows, and the one-standard-error rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from .._support.checks import LARGEST_Z, Floats, Ints, Labels
from .._support.telling import noted, quiet, warn
from .._support.weights import mean_of, total_of
from ..maps import multiplied
from ..maps.prediction import rescale
from ..predictions import Predictions
from .base import VarianceScaler


@dataclass(frozen=True)
class Unseen:
    """What a candidate says of rows that it has not seen.

    Attributes
    ----------
    uncertainty : array of shape (n,)
        Of each row, by a fit that has not seen its fold.
    shape : array of shape (n,)
        The same, with the average that is right for all unseen rows together.
    level : float or None
        The factor that gives a map of all rows this average. None leaves it alone.
    scaler : VarianceScaler or None
        The candidate, fitted to all rows, if that was done on the way.
    told : tuple of Warning
        What it warned of then.
    """

    uncertainty: Floats
    shape: Floats
    level: float | None = None
    scaler: VarianceScaler | None = None
    told: tuple[Warning, ...] = ()

    def fitted(self, candidate: VarianceScaler, rows: Predictions) -> VarianceScaler:
        """Return the candidate fitted to all rows, right on average for unseen ones."""
        if self.scaler is not None:
            for each in self.told:
                warn(str(each), type(each), stacklevel=4)
            return self.scaler
        scaler: VarianceScaler = clone(candidate)._fit_rows(rows)
        if self.level is not None:
            typical = rows.mean(np.log(rescale(scaler.map_, rows)))
            factor = float(self.level * np.exp(-typical))
            scaler.map_ = multiplied(scaler.map_, factor)
        return scaler


def judge_unseen(candidate: VarianceScaler, rows: Predictions, fold: Ints) -> Unseen:
    """Return what a candidate says of the rows of each fold, without these.

    One that cross-fits anyway is fitted once. Others are fitted for each fold. How the
    averages of these fits differ says nothing of the candidate, and much of a single
    enormous error: they are brought to one average, which all unseen rows set.
    """
    once = clone(candidate)
    with quiet(), noted() as told:
        predicted = once._fit_in_folds(rows, fold)
    if predicted is not None:
        return Unseen(predicted, predicted, scaler=once, told=tuple(told))
    predicted, typical = np.empty(rows.n_rows), np.empty(rows.n_rows)
    for unseen, fitted in _fits(candidate, rows, fold):
        found = rescale(fitted.map_, rows)
        predicted[unseen] = found[unseen]
        typical[unseen] = rows.mean(np.log(found))  # of the same rows for every fold
    if not candidate.sets_average:
        return Unseen(predicted, predicted)
    log_shape = np.log(predicted) - typical
    size = np.minimum(np.abs(rows.errors) * np.exp(-log_shape), LARGEST_Z)
    level = float(np.sqrt(rows.mean(size**2)))
    return Unseen(predicted, level * np.exp(log_shape), level=level)


def predict_unseen(candidate: VarianceScaler, rows: Predictions, fold: Ints) -> Floats:
    """Return what a candidate predicts for the rows of each fold, fitted on the others.

    Where there are too few rows or groups to hold any back, it has seen them all.
    """
    predicted = np.empty(rows.n_rows)
    for unseen, fitted in _fits(candidate, rows, fold):
        predicted[unseen] = rescale(fitted.map_, rows.take(unseen))
    return predicted


def _fits(
    candidate: VarianceScaler, rows: Predictions, fold: Ints
) -> Iterator[tuple[Ints, VarianceScaler]]:
    """Yield the rows of each fold, and a fit to the others."""
    for k in np.unique(fold):
        seen, unseen = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        with quiet():
            fitted = clone(candidate)._fit_rows(
                rows.take(seen if seen.size else unseen)
            )
        yield unseen, fitted


@dataclass(frozen=True)
class Ranking:
    """Candidates by their losses.

    Attributes
    ----------
    best : str
        The one with the lowest mean loss.
    loss : dict of str to float
        The mean loss of each.
    difference, standard_error : dict of str to float
        The mean loss of each minus that of the best, and its standard error, from the
        differences row by row, or group by group.
    """

    best: str
    loss: dict[str, float]
    difference: dict[str, float]
    standard_error: dict[str, float]

    def is_as_good(self, name: str) -> bool:
        """Return whether a candidate is within one standard error of the best."""
        return self.difference[name] <= self.standard_error[name]


def rank(
    losses: dict[str, Floats],
    groups: Labels | None = None,
    uncapped: dict[str, Floats] | None = None,
    weights: Floats | None = None,
) -> Ranking:
    """Rank candidates by the loss of each row; rows of a group are not independent.

    A weighted row counts as a group of so many repeats.

    Standard errors are at least those of the `uncapped` losses: where a few enormous
    errors could undo a difference, it is not certain.
    """
    mean = {name: mean_of(loss, weights) for name, loss in losses.items()}
    best = min(mean, key=lambda name: mean[name])
    differences = {name: loss - losses[best] for name, loss in losses.items()}
    if groups is None and weights is not None:
        groups = np.arange(weights.size)
    codes = None if groups is None else np.unique(groups, return_inverse=True)[1]
    errors = {
        name: _standard_error(d, codes, weights) for name, d in differences.items()
    }
    if uncapped is not None:
        for name, loss in uncapped.items():
            in_full = _standard_error(loss - uncapped[best], codes, weights)
            errors[name] = max(errors[name], in_full)
    return Ranking(
        best,
        mean,
        {name: mean_of(d, weights) for name, d in differences.items()},
        errors,
    )


def _standard_error(d: Floats, groups: Ints | None, weights: Floats | None) -> float:
    """Return the standard error of a mean of rows, or of rows in groups."""
    if groups is None:
        return float(d.std() / np.sqrt(d.size))
    d, total = d - mean_of(d, weights), total_of(d.size, weights)
    sums = np.bincount(groups, d if weights is None else weights * d)
    correction = sums.size / max(1, sums.size - 1)  # few groups have too small a sum
    return float(np.sqrt(correction * np.sum(sums**2)) / total)
