"""Choosing among candidates: by unseen rows, and the one-standard-error rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from .._support.checks import Floats, Ints, Labels
from .._support.rows import Rows
from .._support.telling import quiet
from ..maps.prediction import rescale
from .base import VarianceScaler


def predict_unseen(candidate: VarianceScaler, rows: Rows, fold: Ints) -> Floats:
    """Return what a candidate predicts for the rows of each fold, fitted on the others.

    Where there are too few rows or groups to hold any back, it has seen them all.
    """
    predicted = np.empty(rows.n_rows)
    for k in np.unique(fold):
        seen, unseen = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        with quiet():
            fitted = clone(candidate)._fit_rows(
                rows.take(seen if seen.size else unseen)
            )
        predicted[unseen] = rescale(fitted.map_, rows.take(unseen))
    return predicted


@dataclass(frozen=True)
class Ranking:
    """Candidates by their losses.

    Attributes
    ----------
    best : str
        The one with the lowest mean loss.
    difference, standard_error : dict of str to float
        The mean loss of each minus that of the best, and its standard error, from the
        differences row by row, or group by group.
    """

    best: str
    difference: dict[str, float]
    standard_error: dict[str, float]

    def is_as_good(self, name: str) -> bool:
        """Return whether a candidate is within one standard error of the best."""
        return self.difference[name] <= self.standard_error[name]


def rank(losses: dict[str, Floats], groups: Labels | None = None) -> Ranking:
    """Rank candidates by the loss of each row; rows of a group are not independent."""
    best = min(losses, key=lambda name: float(losses[name].mean()))
    differences = {name: loss - losses[best] for name, loss in losses.items()}
    codes = None if groups is None else np.unique(groups, return_inverse=True)[1]
    return Ranking(
        best,
        {name: float(d.mean()) for name, d in differences.items()},
        {name: _standard_error(d, codes) for name, d in differences.items()},
    )


def _standard_error(d: Floats, groups: Ints | None) -> float:
    """Return the standard error of a mean of rows, or of rows in groups."""
    if groups is None:
        return float(d.std() / np.sqrt(d.size))
    sums = np.bincount(groups, d - d.mean())
    correction = sums.size / max(1, sums.size - 1)  # few groups have too small a sum
    return float(np.sqrt(correction * np.sum(sums**2)) / d.size)
