"""Cross-fitting: folds, a loss that no row can own, and a choice by unseen rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from .._support.checks import LARGEST_Z, Floats, Ints, Labels
from .._support.notices import noted, quiet, warn
from .._support.weights import mean_of, total_of
from ..bins.quantiles import in_order
from ..maps import Node, multiplied
from ..maps.prediction import rescale
from ..predictions import Predictions

SAME = 1e-9  # of a mean loss; what differs by less is the same
Scaler = Any  # a recalibrator, whose base imports this module


def largest_ratio(z2: Floats, weights: Floats | None = None) -> float:
    """Return the largest ratio of a squared error to its variance that counts in full.

    At least 20 (normal errors stay below 2 ln n, about 20 for 20,000 rows), and
    sqrt(n) / 2 for larger sets, where single rows matter less. Where nearly all errors
    are exactly 0 the others are no outliers, and it is higher.
    """
    return largest_ratio_of(*counted_squares(z2, weights))


def counted_squares(z2: Floats, weights: Floats | None) -> tuple[float, float]:
    """Return the number of rows and of nonzero errors, or the weights of both."""
    if weights is None:
        return z2.size, int(np.count_nonzero(z2))
    return float(weights.sum()), float(weights[z2 != 0].sum())


def largest_ratio_of(n_rows: float, n_nonzero: float) -> float:
    """Return :func:`largest_ratio` from the number of rows and of nonzero errors."""
    return max(20.0, 0.5 * float(np.sqrt(n_rows)), 2 * n_rows / max(1, n_nonzero))


def largest_counted(z2: Floats, weights: Floats | None = None) -> float:
    """Return up to which value a z² counts: so many times the mean of what counts.

    A few enormous errors make the mean their own, but not this one.
    """
    ratio, mean = largest_ratio(z2, weights), mean_of(z2, weights)
    while (counted := mean_of(np.minimum(z2, ratio * mean), weights)) < 0.999 * mean:
        mean = counted
    return ratio * mean


def capped(r: Floats, cap: float) -> Floats:
    """Return h(r), which is r up to `cap` and grows as its logarithm beyond."""
    h = np.minimum(r, cap)
    beyond = np.flatnonzero(r > cap)
    h[beyond] += cap * np.log(r[beyond] / cap)
    return h


def make_folds(
    size: Floats,
    n_folds: int,
    rng: np.random.Generator,
    groups: Labels | None,
    weights: Floats | None = None,
) -> Ints:
    """Return the fold of each row.

    Rows are dealt out in the order of `size`, so that each fold gets its share of the
    large ones. With groups, a whole group goes to one fold: large groups first, each
    to the emptiest fold. Weighted rows are dealt out as groups of so many repeats.
    """
    n_rows = size.size
    fold = np.empty(n_rows, dtype=np.int64)
    if groups is None and weights is not None:
        groups = np.arange(n_rows)
    if groups is None:
        rounds = -(-n_rows // n_folds)
        deal = rng.permuted(np.tile(np.arange(n_folds), (rounds, 1)), axis=1).ravel()
        fold[in_order(size, np.arange(n_rows))[1]] = deal[:n_rows]
        return fold
    code = in_order_of_appearance(groups)
    count = np.bincount(code, weights)
    order = rng.permutation(count.size)
    of_group, filled = np.empty(count.size, dtype=np.int64), np.zeros(n_folds)
    for group in order[np.argsort(-count[order], kind="stable")]:
        of_group[group] = int(np.argmin(filled))
        filled[of_group[group]] += count[group]
    return of_group[code]


def in_order_of_appearance(labels: Labels) -> Ints:
    """Return the number of each label, counted as they come."""
    _, first, code = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty_like(first)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[code]


def phase(e: Any, u: Any, e2: float, u2: float, seed: int = 0) -> Any:
    """Return a number for each row whose fractional part is as good as random.

    It is a sum of multiples of E² and u², whose means are given, for rows whose order
    nobody knows: columns of a lazy frame, or arrays of a device. Units are powers of
    two: the last bits of a mean depend on the order in which an engine adds up, and
    powers of two do not.
    """
    units = [2.0 ** -np.round(np.log2(max(mean, 1e-290))) for mean in (e2, u2)]
    of_e, of_u = (
        float(1e4 * irrational * unit)
        for irrational, unit in zip(
            (0.6180339887498949, 0.4142135623730951), units, strict=True
        )
    )
    return 0.7548776662466927 * seed + e * e * of_e + u * u * of_u


def canonical_order(
    columns: Sequence[npt.NDArray[np.generic]],
    error: Floats,
    weights: Floats | None = None,
) -> npt.NDArray[np.intp]:
    """Return an order of the rows that does not depend on the order they came in."""
    keys = (np.abs(error), *columns, *([] if weights is None else [weights]))
    return in_order(*keys, np.arange(error.size), n_keys=len(keys))[-1]


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
    scaler : Scaler or None
        The candidate, fitted to all rows, if that was done on the way.
    told : tuple of Warning
        What it warned of then.
    """

    uncertainty: Floats
    shape: Floats
    level: float | None = None
    scaler: Scaler | None = None
    told: tuple[Warning, ...] = ()

    def fitted(self, candidate: Scaler, rows: Predictions) -> Scaler:
        """Return the candidate fitted to all rows, right on average for unseen ones."""
        if self.scaler is not None:
            for each in self.told:
                warn(str(each), type(each), stacklevel=4)
            return self.scaler
        scaler: Scaler = clone(candidate)._fit_rows(rows)
        if self.level is not None:
            typical = rows.mean(np.log(rescale(scaler.map_, rows)))
            factor = float(self.level * np.exp(-typical))
            scaler.map_ = multiplied(scaler.map_, factor)
        return scaler


def judge_unseen(candidate: Scaler, rows: Predictions, fold: Ints) -> Unseen:
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


def predict_unseen(
    candidate: Scaler, rows: Predictions, fold: Ints, whole: Node | None = None
) -> Floats:
    """Return what a candidate predicts for the rows of each fold, fitted on the others.

    Where there are too few rows or groups to hold any back, it has seen them all. With
    the map of all rows, the `whole`, each fit gets its typical level: a single enormous
    error makes that of the folds that have seen it another one.
    """
    predicted = np.empty(rows.n_rows)
    typical = None if whole is None else rows.mean(np.log(rescale(whole, rows)))
    for unseen, fitted in _fits(candidate, rows, fold):
        found = rescale(fitted.map_, rows)
        predicted[unseen] = found[unseen]
        if typical is not None:
            predicted[unseen] *= np.exp(typical - rows.mean(np.log(found)))
    return predicted


def _fits(
    candidate: Scaler, rows: Predictions, fold: Ints
) -> Iterator[tuple[Ints, Scaler]]:
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
        return self.difference[name] <= max(self.standard_error[name], SAME)


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
