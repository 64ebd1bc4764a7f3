"""One factor for all rows, or one for each bin of one or two columns.

The factor that is best by the likelihood has a closed form, sqrt(<Z²>) of the bin;
those that are best by another loss of the paper are searched for from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from ..._support.checks import Floats, Ints, check_choice, check_count
from ..._support.notices import warn
from ..._support.text import quoted
from ..._support.weighting import ones_if_none
from ...exceptions import FewerBinsWarning, InvalidInputError
from ...predictions.predictions import Predictions
from ..additive import Additive, Axis, Table
from .axes import equal_size_axis
from .factors import best_factors
from .scaling import Learned, Scaling

Key = int | str
Loss = Literal["nll", "consistency", "adaptivity", "total"]


class TemperatureScaling(Scaling):
    """Multiply all uncertainties by one factor, sqrt(<Z²>).

    References
    ----------
    M.-H. Laves et al., MIDL (2020), arXiv:2104.12376.

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.Predictions(y_std=[1.0, 2.0], error=[2.0, 4.0])
    >>> float(np.exp(ss.TemperatureScaling().learn(p).map.constant))
    2.0
    """

    def learn(self, rows: Predictions) -> Learned:
        """Return what is learned of rows; see :class:`Scaling`."""
        return Learned(Additive(constant=0.5 * float(np.log(rows.mean(rows.z2)))))


class BinwiseScaling(Scaling):
    """Multiply the uncertainties of each bin by the bin's own factor.

    This is bin-wise variance scaling (BVS): by default, the factor is sqrt(<Z²>).

    Parameters
    ----------
    n_bins : int or pair of int, default 40
        Number of equal-size bins of numbers. Fewer, with a warning, if rows or distinct
        values do not suffice.
    by : "u", name of a feature, or pair of these, default "u"
        What is binned. The uncertainty targets consistency, a feature adaptivity. Each
        label of a category is a bin (stratified scaling); a pair makes joint cells.
    prior_rows : int, default 30
        A bin with fewer rows is filled up to this number by rows of the average <Z²>: a
        factor from a handful of rows is mostly noise. 0 gives every bin its own factor.
    loss : {"nll", "consistency", "adaptivity", "total"}, default "nll"
        What the factors minimise on the rows they are learned of: the negative
        log-likelihood, S_cal + S_u, S_cal + the sum of S_x over the features, or S_cal
        + S_u + that sum. "nll" has a closed form; others take some seconds, and fit
        the noise of the score bins, too. On other rows they seldom score better, and
        "adaptivity" of bins of u leaves u alone: its factors may be far off.
    n_score_bins : int, optional
        Number of equal-size score bins of each numeric variable, of the losses S. By
        default they have 30 rows or more, and there are at most 100, as in a scorecard.
    ties : name of a column or tuple of these, default "u"
        What orders rows with equal values of a feature in its score bins: the
        uncertainty before scaling, or other columns. The tables of the paper have "u"
        where `by` is "u", and ("X1", "u") where it is the feature X1.

    Notes
    -----
    A bin of n < m = `prior_rows` rows gets the factor sqrt(<Z²>') with <Z²>' =
    (n <Z²> + (m − n) <Z²>_all) / m. A bin without rows, and what is missing or unknown,
    gets the average factor. With other losses than "nll" bins of fewer than
    `prior_rows` rows keep this factor, and the others go on from it.

    The losses S are means of abs(ln <Z²>) over score bins. Where score bins do not
    depend on the factors ("adaptivity"), linear programs find the optimum; where they
    follow the scaled u, a search along one factor at a time goes on from there, with
    random numbers that depend on nothing.

    Bins are cut at the smallest value of the next bin, as in the paper, and not halfway
    between values as those of other scalings are: a row at an edge whose last bits
    differ falls into the next bin. Equal values of a feature are parted by u.

    References
    ----------
    L. Frenkel and J. Goldberger, ISBI (2023), doi:10.1109/ISBI53787.2023.10230543;
    P. Pernot, arXiv:2310.11978 (2023).

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 10_000)
    >>> p = ss.Predictions(y_std=u, error=rng.normal(scale=u**2))
    >>> learned = ss.BinwiseScaling(5).learn(p)
    >>> np.exp(learned.map.tables[0].values[1:]).round(1)
    array([1.1, 1.3, 1.5, 1.7, 1.9])
    """

    def __init__(
        self,
        n_bins: int | tuple[int, int] = 40,
        *,
        by: Key | tuple[Key, Key] = "u",
        prior_rows: int = 30,
        loss: Loss = "nll",
        n_score_bins: int | None = None,
        ties: Key | tuple[Key, ...] = "u",
    ) -> None:
        self.n_bins = n_bins
        self.by = by
        self.prior_rows = prior_rows
        self.loss = loss
        self.n_score_bins = n_score_bins
        self.ties = ties

    def learn(self, rows: Predictions) -> Learned:
        """Return what is learned of rows; see :class:`Scaling`."""
        prior_rows = check_count(self.prior_rows, "prior_rows", least=0)
        loss = check_choice(self.loss, "loss", get_args(Loss))
        # the factor of each bin, in closed form or by a search from there
        axes = self._axes(rows)
        n, sum_z2 = _sums_by_bin(rows, axes)
        factors = self._closed_form(rows, n, sum_z2, prior_rows)
        if loss != "nll":
            is_free = (sum_z2 > 0) & (n >= prior_rows)
            best = best_factors(
                rows,
                _cells_of(rows, axes),
                factors.ravel(),
                is_free.ravel(),
                loss=loss,
                n_score_bins=self.n_score_bins,
                ties=self.ties,
            )
            factors = best.reshape(factors.shape)
        table = Table.of(range(len(axes)), factors)
        return Learned(Additive(axes=tuple(axes), tables=(table,)))

    def _closed_form(
        self, rows: Predictions, n: Floats, sum_z2: Floats, prior_rows: int
    ) -> Floats:
        """Return the logarithms of factors of bins that are best by the likelihood."""
        average = sum_z2.sum() / n.sum()
        self._warn_of_thin_bins(rows, n, prior_rows)

        # <Z²> of each bin; errors that are all 0 say nothing of a factor
        z2 = np.divide(sum_z2, n, out=np.full(n.shape, average), where=sum_z2 > 0)
        # <Z²>' = (n <Z²> + (m − n) <Z²>_all) / m where n < m
        n_added = np.maximum(0, prior_rows - n)
        shrunk = np.full(n.shape, average)
        np.divide(n * z2 + n_added * average, n + n_added, out=shrunk, where=n > 0)
        return np.asarray(0.5 * np.log(shrunk))

    def _axes(self, rows: Predictions) -> list[Axis]:
        """Return the axes of the columns to be binned."""
        # the columns
        keys: Any = self.by if isinstance(self.by, (tuple, list)) else (self.by,)
        columns = [rows.position(key) for key in keys]
        if not 1 <= len(set(columns)) == len(columns) <= 2:
            msg = (
                "`by` must be a column, or a pair of different columns; found "
                f"{quoted(self.by)}."
            )
            raise InvalidInputError(msg)

        # and a number of bins for each
        counts: Any = self.n_bins
        if not isinstance(counts, (tuple, list)):
            counts = [counts] * len(columns)
        if len(counts) != len(columns):
            msg = (
                f"`n_bins` must be a number, or one for each of {len(columns)} "
                f"column(s) of `by`; found {quoted(self.n_bins)}."
            )
            raise InvalidInputError(msg)

        axes = []
        for column, count in zip(columns, counts, strict=True):
            n_bins = check_count(count, "n_bins")
            is_alone = len(columns) == 1
            axes.append(equal_size_axis(rows, column, n_bins, parts_ties=is_alone))
        return axes

    def _warn_of_thin_bins(self, rows: Predictions, n: Floats, prior_rows: int) -> None:
        """Warn if the average outweighs the own rows of bins, on the whole."""
        if rows.n_effective >= prior_rows / 2 * np.count_nonzero(n):
            return
        warn(
            f"{rows.n_rows} rows in {n.size - 1} bins are fewer than "
            f"{prior_rows / 2:g} a bin: the average factor outweighs that of a bin's "
            "own rows. Use at most "
            f"{max(1, int(rows.n_effective // prior_rows))} bins, or prior_rows=0 to "
            "give every bin its own factor.",
            FewerBinsWarning,
            stacklevel=6,
        )


def _sums_by_bin(rows: Predictions, axes: Sequence[Axis]) -> tuple[Floats, Floats]:
    """Return the weights, and the weighted sums of z², of each joint bin of axes."""
    shape = tuple(axis.n_codes for axis in axes)
    rows = rows._with()  # or z² would be kept with them
    cell = _cells_of(rows, axes)
    weights = ones_if_none(rows.weights, rows.n_rows)
    n: Any = np.bincount(cell, weights, math.prod(shape))
    sum_z2: Any = np.bincount(cell, weights * rows.z2, math.prod(shape))
    return n.reshape(shape), sum_z2.reshape(shape)


def _cells_of(rows: Predictions, axes: Sequence[Axis]) -> Ints:
    """Return the joint bin of each row."""
    cell = np.zeros(rows.n_rows, dtype=np.int64)
    for axis in axes:
        cell = cell * axis.n_codes + axis.codes_of(rows)
    return cell
