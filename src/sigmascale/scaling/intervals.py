"""Intervals and quantiles of the error: a law, or z-scores of rows held out."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .._support.checks import (
    Floats,
    check_column,
    check_fraction,
    check_same_length,
    refuse_other_order,
)
from .._support.labels import Categories
from .._support.notices import warn
from ..exceptions import HeavyTailsWarning, InvalidInputError
from ..maps import Node, multiplied
from ..maps.conformal import ConformalScores
from ..maps.laws import NORMAL, StudentLaw
from ..predictions import (
    Predictions,
    check_labels,
    refuse_beside,
    with_known_errors,
)
from .devices import interval as interval_device
from .devices import on_device, on_host


class Intervals(BaseEstimator):
    """The part of a recalibrator that says more of errors than their size."""

    map_: Node
    law_: StudentLaw
    conformal_: ConformalScores

    def _learn_law(self, z: Floats, weights: Floats | None = None) -> None:
        """Learn Student's t, and make its standard deviation what is predicted."""
        law = StudentLaw.learn(z, weights)
        if law.df > 2:
            root = 1.0 if np.isinf(law.df) else float(np.sqrt((law.df - 2) / law.df))
            self.map_ = multiplied(self.map_, law.scale / root)
            law = StudentLaw(law.df, root)
        else:
            warn(
                f"The tails are so heavy (Student's t with {law.df:.2g} degrees of "
                "freedom) that the law has no standard deviation: predict returns "
                "what is right on average for the rows of this set. Use "
                "predict_scale, predict_quantiles or predict_interval.",
                HeavyTailsWarning,
                stacklevel=4,
            )
        self.law_ = law

    def _law_words(self) -> str:
        """Return the law of errors in words; nothing if it is normal."""
        if not hasattr(self, "law_"):
            return ""
        if np.isinf(self.law_.df):
            return "Errors are normal: their tails are not heavier than that."
        return (
            f"Errors follow Student's t with {self.law_.df:.3g} degrees of freedom and "
            f"{self.law_.scale:.3g} times the uncertainty as its scale."
        )

    def predict_scale(self, X: Any) -> Floats:
        """Return the scale of the law of errors.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_columns)
            Conditioning table with the columns seen in `fit`.

        Returns
        -------
        array of shape (n,)
            That of Student's t, with ``law_.df`` degrees of freedom; for normal errors,
            the standard deviation that `predict` returns.
        """
        u = self.predict(X)
        return np.asarray(u * getattr(self, "law_", NORMAL).scale)

    def predict_quantiles(self, X: Any, levels: Any) -> Floats:
        """Return quantiles of the error by its law, normal or Student's t.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_columns)
            Conditioning table with the columns seen in `fit`.
        levels : array-like of shape (k,)
            Probabilities between 0 and 1.

        Returns
        -------
        array of shape (n, k)
            Quantiles of the error: those of the truth are the prediction plus these.

        Examples
        --------
        >>> import sigmascale as ss
        >>> data = ss.datasets.make_molecules(500, seed=1)
        >>> scaler = ss.TemperatureScaling(distribution="student")
        >>> scaler = scaler.fit(data.uncertainty, data.error)
        >>> scaler.predict_quantiles(data.uncertainty[:2], [0.05, 0.95]).shape
        (2, 2)
        """
        p = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        if p.ndim != 1 or not ((p > 0) & (p < 1)).all():
            msg = f"`levels` must lie between 0 and 1; found {levels!r}."
            raise InvalidInputError(msg)
        law: StudentLaw = getattr(self, "law_", NORMAL)
        return np.asarray(self.predict(X)[:, None] * law.quantiles(p))

    def conformalize(
        self,
        X: Any,
        error: Any = None,
        by_category: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from rows not used in `fit` how far errors reach, for intervals.

        Parameters
        ----------
        X : Predictions, array-like or data frame of shape (n, n_columns)
            Conditioning table of held-out rows, with the columns seen in `fit`.
        error : array-like of shape (n,), optional
            Their errors, reference minus prediction; Predictions have their own.
        by_category : array-like of shape (n,), optional
            Labels: the coverage then holds in every category, each from its own rows.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, at least 0: how much more often each is among new rows
            than here (:func:`sigmascale.shift_weights`). The coverage then is that
            of such new rows, as nearly as the weights are known. Whole weights count
            repeats.

        Returns
        -------
        self
        """
        refuse_other_order(
            X=X, error=error, by_category=by_category, sample_weight=sample_weight
        )
        check_is_fitted(self)
        # the scores of held-out rows are kept on the host
        X, error, by_category, sample_weight = on_host(
            X, error, by_category, sample_weight
        )
        rows = self._read(X)
        labels = _labels(by_category, rows.uncertainty)
        if isinstance(X, Predictions):
            refuse_beside(X, (error, sample_weight))
            rows = with_known_errors(X)
        else:
            errors = check_column(error, "error")
            check_same_length("X", rows.uncertainty, "error", errors)
            rows = rows.changed(error=errors).weighted(sample_weight)
            if labels is not None and rows.places is not None:
                labels = labels[rows.places]
        self.conformal_ = ConformalScores.learn(
            rows.errors, self._predict_rows(rows), labels, rows.weights
        )
        return self

    def predict_interval(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        asymmetric: bool = False,
        by_category: Any = None,
    ) -> Any:
        """Return limits that hold an error with at least the probability asked for.

        The limits are the recalibrated uncertainty times quantiles of the z-scores
        seen in `conformalize`. Symmetric ones are ± the ceil((n + 1) coverage)-th
        smallest abs(z) of n; asymmetric ones leave out (1 − coverage) / 2 on each side.
        The guarantee needs no normal errors and no right uncertainties, only that rows
        are drawn as those of `conformalize` were; it is an average over such rows (or
        those of a category), not a promise for each of them.

        Without `conformalize`, a recalibrator with ``distribution="student"`` returns
        the central limits of its law, which no theorem guarantees.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_columns)
            Conditioning table with the columns seen in `fit`.
        coverage : float, default 0.9
            Probability that an error lies within its limits.
        asymmetric : bool, default False
            Whether the two limits are quantiles of their own, for skewed errors.
        by_category : array-like of shape (n,), optional
            Labels, if `conformalize` was given some.

        Returns
        -------
        array of shape (n, 2)
            Lower and upper limits of the error: the truth lies in the prediction plus
            these. Where held-out rows are too few they are infinite, with a warning
            that says how many are needed.

        References
        ----------
        V. Vovk, A. Gammerman and G. Shafer, Algorithmic Learning in a Random World
        (2005), doi:10.1007/b106715; J. Lei et al., J. Am. Stat. Assoc. 113, 1094
        (2018), doi:10.1080/01621459.2017.1307116

        Examples
        --------
        >>> import sigmascale as ss
        >>> fit, held_out, new = (
        ...     ss.datasets.make_molecules(500, seed=i) for i in (1, 2, 3)
        ... )
        >>> scaler = ss.TemperatureScaling().fit(fit.uncertainty, fit.error)
        >>> scaler = scaler.conformalize(held_out.uncertainty, held_out.error)
        >>> interval = scaler.predict_interval(new.uncertainty, coverage=0.9)
        >>> ss.picp(new.error, interval)
        0.9
        """
        check_is_fitted(self)
        if not hasattr(self, "conformal_"):
            if hasattr(self, "law_"):
                level = check_fraction(coverage, "coverage")
                return self.predict_quantiles(X, [0.5 - level / 2, 0.5 + level / 2])
            msg = (
                "Intervals with a coverage guarantee need rows that the recalibrator "
                "was not fitted on: call conformalize(X, error) with held-out rows "
                "first."
            )
            raise NotFittedError(msg)
        predicted = self.predict(X)
        how: dict[str, Any] = {"coverage": coverage, "asymmetric": asymmetric}
        if on_device(predicted):
            return interval_device(
                self.conformal_, predicted, by_category=by_category, **how
            )
        labels = _labels(by_category, predicted)
        return self.conformal_.interval(predicted, labels=labels, **how)


def _labels(by_category: Any, rows: Floats) -> Categories | None:
    if by_category is None:
        return None
    return check_labels(by_category, rows, "by_category")
