"""The rows of a fit as a fit that has not seen them would have recalibrated them.

A fit knows the bias and the scale of each row by fits without its fold, or else rows
were held out. These two columns and the number of the fold are kept; tables of z are
learned again, without each fold, when somebody asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._support.checks import Floats, Ints
from .._support.notices import quiet
from ..predictions.predictions import Predictions
from .distributions import Bounds, Distributions, Parts, ZDistribution
from .distributions.stretched import StretchedTables
from .folds import fold_numbers
from .out_of_fold import tables_of


@dataclass(frozen=True, eq=False)
class Unseen:
    """What fits that have not seen a row say of it; rows are in canonical order.

    Attributes
    ----------
    scale : array of shape (n,)
        The scale of each row.
    fold : array of shape (n,)
        The fold of each row; the tables of z of a row are those of other folds.
    error : array of shape (n,) or None
        The errors without their bias, if a bias was learned.
    held_out : array of shape (n,) or None
        Which of the rows of the fit these are, if some were held out; or all.
    """

    scale: Floats
    fold: Ints
    error: Floats | None
    held_out: Ints | None

    def rows(
        self,
        p: Predictions,
        order: Ints,
        z: ZDistribution,
        parts: Parts | None,
        bounds: Bounds,
    ) -> Predictions:
        """Return the rows, in the order in which they came, with their distributions.

        Parameters
        ----------
        p : Predictions
            The rows of the fit.
        order : array of shape (n,)
            Their canonical order.
        z, parts, bounds
            What was learned of the distributions, from all rows.
        """
        if self.held_out is not None:
            order = order[self.held_out]
        rows = p.take(order)
        places = order if p.places is None else p.places[order]
        if self.error is not None:
            rows = rows._moved(rows.errors - self.error)._with(error=self.error)

        with quiet():
            tables, codes = self._tables(rows, z, parts)
        location = z.centre(rows.n_rows) if rows.y_pred is None else rows.y_pred
        distributions = Distributions.of(
            location,
            self.scale,
            tables,
            bounds,
            codes=codes,
            shape=rows.shape,
            origin=rows.origin,
        )
        recalibrated = rows._with(
            y_std=self.scale, places=places, recalibrated=distributions
        )
        return recalibrated.take(np.argsort(order))  # whole numbers

    def _tables(
        self, rows: Predictions, z: ZDistribution, parts: Parts | None
    ) -> tuple[ZDistribution, Ints]:
        """Return the tables of z without each fold, and which of them is whose."""
        if not z.tables:
            return z, z.codes(self.scale)
        score = rows.signed_error / self.scale
        tables: list[Any] = []
        n_rows: list[int] = []
        code_of_row = np.empty(rows.n_rows, dtype=np.int64)
        folds = fold_numbers(self.fold)
        for k in folds:
            unseen = np.flatnonzero(self.fold == k)
            seen = np.flatnonzero(self.fold != k) if len(folds) > 1 else unseen
            others = rows.take(seen)
            scale = self.scale[unseen]

            # parts of rows held out stretch a table that is told by other rows
            of_fold = z
            if parts is None or not parts.held_out:
                infinite = z.tables[0].infinite
                n_bins = len(z.tables)
                of_fold = tables_of(
                    others, score[seen], self.scale[seen], n_bins, infinite=infinite
                )
            codes = of_fold.codes(scale)
            if parts is not None:
                of_others = Parts.learn(
                    parts.axes,
                    others,
                    self.scale[seen],
                    of_fold,
                    held_out=parts.held_out,
                )
                of_fold, codes = of_others.stretched(of_fold, scale, rows.take(unseen))
            code_of_row[unseen] = codes + len(tables)
            tables += of_fold.tables
            n_rows += of_fold.n_rows
        kind = ZDistribution if parts is None else StretchedTables
        words = f"{z.words}, by fold"
        joined = kind(tuple(tables), np.empty(0), tuple(n_rows), z.dim, words)
        return joined, code_of_row
