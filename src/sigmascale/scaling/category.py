"""One factor per category."""

from __future__ import annotations

import numpy as np

from .._support.checks import check_count
from .._support.citations import FRENKEL, SCORES
from ..bins.partitions import LabelBins
from ..exceptions import InvalidInputError
from ..maps import Code, Column, Lookup, Node, scaled
from ..predictions import Columns, fitted_names
from .base import VarianceScaler
from .summaries import Summaries
from .updating import KeptSums, joined, taken, united


class CategoryScaling(VarianceScaler):
    """Multiply the uncertainties of each category by a factor of its own.

    Parameters
    ----------
    by : int or str, default 1
        The column of X that holds the labels: strings, or numbers taken as labels. A
        missing label is a label of its own.
    min_size : int, default 10
        Categories with fewer rows in `fit` take the factor of all rows, as do labels
        never seen in `fit` (these with a warning).

    Attributes
    ----------
    categories_ : LabelBins
        The labels with a factor of their own.
    factors_ : array of shape (n_categories + 1,)
        Their factors; the last one is the average factor for all other labels.
    sums_ : BinSums
        Summary of the calibration set, in the same order.
    rare_sums_ : BinSums
        That of each label without a factor of its own, which it gets if `update`
        brings rows enough.

    Examples
    --------
    >>> import numpy as np
    >>> table = {"u": np.ones(40), "phase": ["gas"] * 20 + ["solid"] * 20}
    >>> import polars as pl
    >>> X = pl.DataFrame(table)
    >>> scaler = CategoryScaling(by="phase").fit(X, np.repeat([1.0, 3.0], 20))
    >>> scaler.predict(X)[[0, -1]]
    array([1., 3.])
    """

    def __init__(
        self,
        by: int | str = 1,
        *,
        min_size: int = 10,
    ) -> None:
        self.by = by
        self.min_size = min_size

    does = "uncertainties are multiplied by a factor for their category"
    references = (FRENKEL, SCORES)

    def _learn_from_sums(self, data: Summaries) -> Node:
        position = data.position(self.by)
        if position == 0:
            msg = (
                "`by` must be a column of labels; found column 0, the uncertainty, of "
                f"{len(data.names)} feature(s)."
            )
            raise InvalidInputError(msg)
        min_size = check_count(self.min_size, "min_size")
        labels, sums = data.by_labels(position)
        frequent = sums.n >= min_size
        self.categories_ = LabelBins.of_counts(labels, frequent)
        self.sums_ = sums.regrouped(
            self.categories_.bins_of(labels), self.categories_.n_bins
        )
        self.rare_sums_ = taken(sums, ~frequent)
        self.factors_ = self.sums_.scaling_factors()
        self.factors_[-1] = self.sums_.total.scaling_factors()[0]
        code = Code(Column(position, "label"), self.categories_)
        return scaled(Lookup((code,), np.roll(self.factors_, 1)))

    def _kept(self) -> KeptSums:
        own = taken(self.sums_, slice(-1))
        labels = LabelBins(united(self.categories_.labels, self.categories_.rare))
        place = labels.bins_of((*self.categories_.labels, *self.categories_.rare))
        sums = taken(joined([own, self.rare_sums_]), np.argsort(place))
        position = Columns(fitted_names(self)).position(self.by)
        return KeptSums(labels, (position,), sums)

    def _learned_words(self) -> str:
        return (
            f"{self.factors_.size - 1} categories have a factor of their own, all "
            f"others {self.factors_[-1]:.3g}."
        )
