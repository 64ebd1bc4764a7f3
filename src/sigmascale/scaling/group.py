"""One factor per named group."""

from __future__ import annotations

import warnings

import numpy as np

from .._support.checks import Floats, Labels, check_count
from .._support.tables import Table
from ..bins.partitions import Groups
from ..bins.sums import BinSums
from ..exceptions import InvalidInputError, UnseenGroupWarning
from .base import VarianceScaler


class GroupScaling(VarianceScaler):
    """Multiply the uncertainties of each named group by the group's own factor.

    Parameters
    ----------
    by : int or str, default 1
        The column of X that holds the labels: strings, or numbers taken as labels. A
        missing label is a label of its own.
    min_size : int, default 10
        Groups with fewer rows in `fit` take the factor of all rows, as do labels never
        seen in `fit` (these with a warning).

    Attributes
    ----------
    groups_ : Groups
        The labels with a factor of their own.
    factors_ : array of shape (n_groups + 1,)
        Their factors; the last one is the average factor for all other labels.
    sums_ : BinSums
        Summary of the calibration set, in the same order.

    Examples
    --------
    >>> import numpy as np
    >>> table = {"u": np.ones(40), "phase": ["gas"] * 20 + ["solid"] * 20}
    >>> import polars as pl
    >>> X = pl.DataFrame(table)
    >>> scaler = GroupScaling(by="phase").fit(X, np.repeat([1.0, 3.0], 20))
    >>> scaler.predict(X)[[0, -1]]
    array([1., 3.])
    """

    def __init__(self, by: int | str = 1, *, min_size: int = 10) -> None:
        self.by = by
        self.min_size = min_size

    def _learn(
        self, table: Table, uncertainty: Floats, error: Floats, groups: Labels | None
    ) -> None:
        labels = table.labels(self._position(table))
        min_size = check_count(self.min_size, "min_size")
        self.groups_ = Groups.learn(labels, min_size=min_size)
        self.seen_ = Groups.learn(labels)
        codes, n_codes = self.groups_.codes(labels), self.groups_.n_bins
        self.sums_ = BinSums.from_codes(codes, n_codes, error, uncertainty)
        self._learn_factors()

    def _position(self, table: Table) -> int:
        """Return the position of the column of labels."""
        position = table.position(self.by)
        if position == 0:
            msg = (
                "`by` must be a column of labels; found column 0, the uncertainty, of "
                f"{len(table.columns)} feature(s)."
            )
            raise InvalidInputError(msg)
        return position

    def _learn_factors(self) -> None:
        """Learn the factors from the sums."""
        self.factors_ = self.sums_.scaling_factors()
        self.factors_[-1] = np.sqrt(self.sums_.total.zms[0])

    def _rescale(self, table: Table, uncertainty: Floats) -> Floats:
        labels = table.labels(self.by)
        unseen = np.count_nonzero(self.seen_.codes(labels) == self.seen_.n_bins - 1)
        if unseen:
            warnings.warn(
                f"{unseen} of {labels.size} rows have a label in column {self.by!r} "
                "that was not seen in fit; they take the average factor.",
                UnseenGroupWarning,
                stacklevel=3,
            )
        return self.factors_[self.groups_.codes(labels)] * uncertainty
