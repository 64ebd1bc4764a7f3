"""The recalibrator: shift, scale and law of errors, learned one after the other."""

from __future__ import annotations

from html import escape
from typing import Any, Literal, Self, get_args

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ._support.checks import (
    Floats,
    Ints,
    check_choice,
    check_column,
    check_count,
    check_same_length,
    refuse_other_order,
)
from ._support.labels import Categories
from ._support.notebook import chart, page, ticks_of
from ._support.notices import row_number, warn
from ._support.render import html_table
from .exceptions import (
    AbsurdScaleWarning,
    FewRowsWarning,
    InvalidInputError,
)
from .maps import Node
from .maps.conformal import ConformalScores
from .maps.distributions import (
    Distributions,
    check_coverage,
    check_levels,
    with_law,
)
from .maps.laws import NORMAL, EmpiricalLaw, Law
from .maps.prediction import rescale, value_of
from .oddities import squarable
from .predictions import (
    Predictions,
    check_labels,
    group_codes,
    refuse_beside,
    with_known_errors,
    with_positive_uncertainty,
)
from .scaling import devices
from .scaling.base import VarianceScaler
from .scaling.boosted import BoostedScaling
from .scaling.crossfit import make_folds, predict_unseen, rank
from .scaling.devices import on_device, on_host
from .scaling.shift import LEAST_FOR_SHIFT, ShiftKind, learn_shift
from .scaling.summaries import full_order
from .scaling.updating import warn_of_forgotten

LawKind = Literal["empirical", "normal"]
N_FOLDS = 5
LEAST_FOR_LAW = 40  # rows; with fewer, the law is normal
NUMBERS_OF_LAWS = (1, 2, 5)  # bins of the scale with a law each
ROWS_PER_LAW = 200
ABSURD = 3.0  # times the largest error: no uncertainty should be larger
DECISIVE = 0.5  # share of the sum of z² that a few rows have if they decide


class Recalibrator(VarianceScaler):
    """Recalibrate predictive distributions: shift, scale and law of errors.

    An error is shift(x) + scale(x) × law: what the prediction is off by on average, the
    recalibrated standard uncertainty, and the distribution of what is left.

    Parameters
    ----------
    scaling : recalibrator of uncertainties, optional
        What learns the scale; by default ``BoostedScaling()``.
    law : {"empirical", "normal"}, default "empirical"
        The distribution of z = (error − shift) / scale. "empirical" is a table of the
        z-scores of rows that the scaling has not seen, in a few bins of the scale if
        unseen rows gain from that. With fewer than 40 rows it is normal.
    shift : {None, "constant", "auto"}, default None
        Whether predictions are shifted: not at all; by one number times the scale; or
        by what unseen rows gain most from, one of these or boosted trees of all columns
        (with fewer than 100 rows, not at all). Where predictions have a `time`, unseen
        rows are those of another stretch of time.
    random_state : int, default 0
        Seed of the folds.

    Attributes
    ----------
    scaling_ : recalibrator
        What learned the scale; its map is `map_`, too.
    law_ : NormalLaw or EmpiricalLaw
        The law.
    shift_ : Node or None
        The shift as a map.
    shift_kind_ : {"none", "constant", "trees"}
        What the shift is.
    shift_words_ : str
        What the shift gains, in words.
    n_absurd_, decisive_rows_ : int, list of int
        Rows of the fit whose uncertainty is more than three times the largest error,
        and the few rows that decide on that.
    caution_ : str
        What to say of it; nothing if there is none.

    Notes
    -----
    `predict` returns the standard uncertainty: the root mean square of the error about
    the (shifted) prediction. The mean of the distribution need not be the prediction,
    as errors may be skewed.

    Examples
    --------
    >>> import sigmascale as ss
    >>> data = ss.datasets.make_molecules(2000, seed=1)
    >>> p = ss.Predictions(error=data.error, y_std=data.uncertainty)
    >>> r = ss.Recalibrator().fit(p)
    >>> new = ss.datasets.make_molecules(2000, seed=2)
    >>> d = r.predict_distribution(ss.Predictions(y_std=new.uncertainty))
    >>> round(ss.picp(new.error, d.interval(0.9)), 2)
    0.9
    """

    scaling_: VarianceScaler
    law_: Law
    shift_: Node | None
    shift_kind_: str
    shift_words_: str
    n_absurd_: int
    decisive_rows_: list[int]
    caution_: str
    conformal_: ConformalScores

    def __init__(
        self,
        scaling: VarianceScaler | None = None,
        *,
        law: LawKind = "empirical",
        shift: ShiftKind | None = None,
        random_state: int = 0,
    ) -> None:
        self.scaling = scaling
        self.law = law
        self.shift = shift
        self.random_state = random_state

    def _learn_unseen(self, rows: Predictions) -> tuple[Node, Floats | None]:
        template = self._template()
        rows = self._learn_shift(rows, getattr(template, "categorical", None))
        self.scaling_ = clone(template)
        unseen = self.scaling_._fit_unseen(rows)
        if hasattr(self, "feature_names_in_"):
            self.scaling_.feature_names_in_ = self.feature_names_in_
        self._complete(rows, unseen)
        return self.scaling_.map_, None

    def _informative(self, rows: Predictions) -> Predictions:
        """Return rows with errors that can be squared; the scaling knows those of 0."""
        return squarable(rows)

    def _learn_shift(self, rows: Predictions, categorical: Any) -> Predictions:
        """Learn the shift, and return rows with the errors that it leaves."""
        check_choice(self.law, "law", get_args(LawKind))
        if self.shift is not None:
            check_choice(self.shift, "shift", get_args(ShiftKind))
        seed = check_count(self.random_state, "random_state", least=0)
        self.shift_, self.shift_kind_, self.shift_words_ = None, "none", ""
        if not rows.z2.any():  # nothing is known of errors that are all 0
            return rows
        if self.shift == "constant" or (
            self.shift == "auto" and rows.total >= LEAST_FOR_SHIFT
        ):
            labelled = set(rows.positions(categorical, "categorical"))
            found = learn_shift(rows, self.shift, labelled, seed)
            self.shift_, self.shift_kind_ = found.map, found.kind
            self.shift_words_ = found.words
            return rows.changed(error=rows.errors - found.unseen)
        if self.shift == "auto":
            self.shift_words_ = (
                f"Predictions are not shifted: {rows.n_rows} rows do not tell by what."
            )
        return rows

    def _complete(self, rows: Predictions, unseen: Floats | None) -> None:
        """Learn the law, and what is odd about the scale, once that is known.

        `unseen` is the scale of rows by fits that have not seen them, where it is
        known.
        """
        self._note_absurd(rows)
        self.law_ = NORMAL
        if self.law == "normal" or not rows.z2.any():
            return
        if rows.total < LEAST_FOR_LAW:
            warn(
                f"{rows.n_rows} rows do not tell the law of errors: it is taken to be "
                f"normal. From {LEAST_FOR_LAW} rows on it is learned.",
                FewRowsWarning,
                stacklevel=5,
            )
            return
        fold = _folds(rows, self.random_state)
        if unseen is None:
            whole = self.scaling_.map_
            unseen = predict_unseen(self._template(), rows, fold, whole)
        z = rows.errors / unseen
        numbers = [
            n for n in NUMBERS_OF_LAWS if n == 1 or rows.total >= n * ROWS_PER_LAW
        ]
        n_bins = _number_of_laws(numbers, z, unseen, rows, fold)
        self.law_ = EmpiricalLaw.learn(z, unseen, rows.weights, n_bins)

    def _note_absurd(self, rows: Predictions) -> None:
        """Keep how many uncertainties exceed all errors, and which rows decide."""
        u = rescale(self.scaling_.map_, rows)
        self.n_absurd_ = int(np.count_nonzero(u > ABSURD * np.abs(rows.errors).max()))
        self.decisive_rows_, self.caution_ = [], ""
        if not rows.z2.any():  # errors of 0 tell no scale
            self.n_absurd_ = 0
        if not self.n_absurd_:
            return
        parts = rows.z2 if rows.weights is None else rows.weights * rows.z2
        largest = np.argsort(-parts, kind="stable")
        share = np.cumsum(parts[largest]) / parts.sum()
        count = 1 + int(np.searchsorted(share, DECISIVE))
        places = largest if rows.places is None else rows.places[largest]
        self.decisive_rows_ = [row_number(place) for place in places[:count]]
        which = ", ".join(map(str, self.decisive_rows_[:5]))
        which += ", ..." if count > 5 else ""
        many = f"{count} rows" if count > 1 else "1 row"
        self.caution_ = (
            f"{self.n_absurd_} of {self.n_samples_fit_} recalibrated uncertainties "
            f"exceed {ABSURD:g} times the largest error: {many} (row {which}) "
            "with a tiny uncertainty and a large error make half of <Z²>, "
            "which the scale sets right. Use quantiles and intervals, which do not "
            "depend on it, or look at these rows."
        )
        warn(self.caution_, AbsurdScaleWarning, stacklevel=6)

    def _template(self) -> VarianceScaler:
        if self.scaling is None:
            return BoostedScaling()
        found: Any = self.scaling
        if not isinstance(found, VarianceScaler) or isinstance(found, Recalibrator):
            msg = (
                "`scaling` must be a recalibrator of uncertainties, such as "
                f"BoostedScaling(); found {type(found).__name__}."
            )
            raise InvalidInputError(msg)
        return found

    @property
    def _needs_rows(self) -> bool:
        """Whether sums do not do: the law is that of rows."""
        return True

    @property
    def _by_sums(self) -> VarianceScaler | None:
        """What sums can fit: a scale without a shift, if these determine it."""
        template = clone(self._template())
        return None if self.shift is not None or template._needs_rows else template

    @property
    def _chosen(self) -> VarianceScaler:
        return self.scaling_._chosen

    def describe(self) -> str:
        """Return in words what the recalibrator does, and what it has learned.

        Returns
        -------
        str
        """
        return " ".join(self._sentences())

    def _sentences(self) -> list[str]:
        check_is_fitted(self)
        words = [self.scaling_.describe(), self.shift_words_]
        words.append(f"The law of errors is {self.law_.words}.")
        if hasattr(self, "is_updated_"):
            words.append("Updates have changed the scale, and not the law.")
        words.append(self.caution_)
        return list(filter(None, [*words, self._sampled()]))

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return what it has learned in words; before that, how it was made."""
        if hasattr(self, "law_"):
            return "\n".join(self._sentences())
        return str(super().__repr__(N_CHAR_MAX))

    def _html_repr(self) -> str:
        """Return what notebooks show; scikit-learn asks, and shows a diagram else."""
        if not hasattr(self, "law_"):
            return str(super()._html_repr())
        p = np.linspace(0.02, 0.98, 49)
        tables = np.arange(len(getattr(self.law_, "tables", [None])))
        z = self.law_.quantiles(p, tables).ravel()
        normal = np.tile(NORMAL.quantiles(p, tables[:1])[0], tables.size)
        figure = chart(
            normal,
            z,
            labels=("quantile of a normal z", "of z, unseen rows"),
            ticks=(ticks_of(normal), ticks_of(z)),
            lines=[(normal[[0, -1]], normal[[0, -1]])],
        )
        rows = [(name, repr(value)) for name, value in self.get_params().items()]
        table = html_table(("parameter", "value"), rows)
        return page(map(escape, self._sentences()), figure, {"Parameters": table})

    def _set_level(self, level: float) -> None:
        super()._set_level(level)
        self.scaling_.map_ = self.map_

    def _scale_by(self, scaling: VarianceScaler) -> Self:
        """Take the scale from another fit, of more rows; the law stays."""
        self.scaling_ = scaling
        return self._take_over()

    def _forget(self) -> None:
        super()._forget()
        self.__dict__.pop("conformal_", None)
        self.__dict__.pop("is_updated_", None)

    def _with_errors(self, X: Any, y: Any, sample_weight: Any = None) -> Predictions:
        """Return rows with the errors that the shift leaves."""
        rows = super()._with_errors(X, y, sample_weight)
        return rows.changed(error=rows.errors - self._shift_of(rows))

    def _shift_of(self, rows: Predictions) -> Any:
        """Return the shift of rows whose uncertainties were checked; 0 without one."""
        return 0.0 if self.shift_ is None else value_of(self.shift_, rows)

    def predict_shift(self, X: Any) -> Floats:
        """Return what predictions are off by on average: add it to them.

        Parameters
        ----------
        X : Predictions, array-like or data frame of shape (n, n_columns)
            Conditioning table with the columns seen in `fit`.

        Returns
        -------
        array of shape (n,)
            Zeros if no shift was learned.
        """
        check_is_fitted(self)
        rows = self._read(on_host(X)[0])
        return np.asarray(np.zeros(rows.n_rows) + self._shift_of(rows))

    def predict_distribution(self, X: Any) -> Distributions:
        """Return the recalibrated predictive distributions.

        Parameters
        ----------
        X : Predictions, array-like or data frame of shape (n, n_columns)
            Predictions; or a conditioning table with the columns seen in `fit`.

        Returns
        -------
        Distributions
            Of the truth; or of the error, if predictions are not known.
        """
        check_is_fitted(self)
        rows = self._read(on_host(X)[0])
        scale = self._predict_rows(rows)
        location = np.zeros(rows.n_rows) if rows.y_pred is None else rows.y_pred
        return Distributions.of(location + self._shift_of(rows), scale, self.law_)

    def apply(self, predictions: Predictions) -> Predictions:
        """Return recalibrated predictions, which carry their law.

        Parameters
        ----------
        predictions : Predictions
            With the features seen in `fit`.

        Returns
        -------
        Predictions
            With recalibrated uncertainties; predictions and errors are shifted if a
            shift was learned. :func:`sigmascale.validate`, plots and the report judge
            the distributions of these.
        """
        check_is_fitted(self)
        given: object = predictions
        if not isinstance(given, Predictions):
            msg = (
                "`predictions` must be Predictions; for a table, call predict or "
                "predict_distribution."
            )
            raise InvalidInputError(msg)
        rows = self._read(predictions)
        shift, u = self._shift_of(rows), self._predict_rows(rows)
        new = rows.with_uncertainty(u).changed(
            y_pred=None if rows.y_pred is None else rows.y_pred + shift,
            error=None if rows.error is None else rows.error - shift,
        )
        return with_law(new, self.law_)

    def predict_quantiles(self, X: Any, levels: Any) -> Floats:
        """Return quantiles of the truth; or of the error, if predictions are not known.

        Parameters
        ----------
        X : Predictions, array-like or data frame of shape (n, n_columns)
            Predictions; or a conditioning table with the columns seen in `fit`.
        levels : array-like of shape (k,)
            Probabilities between 0 and 1.

        Returns
        -------
        array of shape (n, k)

        Examples
        --------
        >>> import sigmascale as ss
        >>> data = ss.datasets.make_molecules(500, seed=1)
        >>> r = ss.Recalibrator(ss.TemperatureScaling())
        >>> r = r.fit(data.uncertainty, data.error)
        >>> r.predict_quantiles(data.uncertainty[:2], [0.05, 0.95]).shape
        (2, 2)
        """
        p = np.atleast_1d(check_levels(levels))
        return self.predict_distribution(X).quantile(p)

    def conformalize(
        self,
        X: Any,
        error: Any = None,
        by_category: Any = None,
        groups: Any = None,
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
        groups : array-like of shape (n,), optional
            Labels of rows that belong together. The coverage then is that of rows of
            new groups, and each group counts as one row.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, at least 0: how much more often each is among new rows
            than here (:func:`sigmascale.covariate_weights`). The coverage then is that
            of such new rows, as nearly as the weights are known. Whole weights count
            repeats.

        Returns
        -------
        self

        References
        ----------
        Y. Lee, R. F. Barber and R. Willett, arXiv:2306.06342 (2023), for groups.
        """
        given = {"by_category": by_category, "groups": groups}
        refuse_other_order(X=X, error=error, sample_weight=sample_weight, **given)
        check_is_fitted(self)
        # the scores of held-out rows are kept on the host
        X, error, by_category, groups, sample_weight = on_host(
            X, error, by_category, groups, sample_weight
        )
        rows = self._read(X)
        labels = _labels(by_category, rows.uncertainty)
        if isinstance(X, Predictions):
            refuse_beside(X, (error, groups, sample_weight))
            rows = with_known_errors(X)
        else:
            errors = check_column(error, "error")
            check_same_length("X", rows.uncertainty, "error", errors)
            codes = group_codes(groups, errors, "X")
            rows = rows.changed(error=errors, groups=codes).weighted(sample_weight)
            if labels is not None and rows.places is not None:
                labels = labels[rows.places]
            rows = with_positive_uncertainty(rows)
        self.conformal_ = ConformalScores.learn(
            rows.errors - self._shift_of(rows),
            self._predict_rows(rows),
            labels,
            rows.weights,
            rows.groups,
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
        """Return limits that hold the truth with the probability asked for.

        Without `conformalize` they are the central limits of the distribution, which
        hold nearly what they claim. After it they have a guarantee: quantiles of the
        z-scores of rows held out, times the scale. Symmetric ones are ± the
        ceil((n + 1) coverage)-th smallest abs(z) of n; asymmetric ones leave out
        (1 − coverage) / 2 on each side. The guarantee needs no normal errors and no
        right uncertainties, only that rows are drawn as those of `conformalize` were;
        it is an average over such rows (or those of a category), not a promise for each
        of them.

        Parameters
        ----------
        X : Predictions, array-like or data frame of shape (n, n_columns)
            Predictions; or a conditioning table with the columns seen in `fit`.
        coverage : float, default 0.9
            Probability that the truth lies within its limits.
        asymmetric : bool, default False
            Whether the two limits are quantiles of their own, for skewed errors; those
            of the distribution always are.
        by_category : array-like of shape (n,), optional
            Labels, if `conformalize` was given some.

        Returns
        -------
        array of shape (n, 2)
            Lower and upper limits of the truth; or of the error, if predictions are not
            known. Where held-out rows are too few they are infinite, with a warning
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
        >>> r = ss.Recalibrator(ss.TemperatureScaling())
        >>> r = r.fit(fit.uncertainty, fit.error)
        >>> r = r.conformalize(held_out.uncertainty, held_out.error)
        >>> ss.picp(new.error, r.predict_interval(new.uncertainty, coverage=0.9))
        0.9
        """
        check_is_fitted(self)
        share = check_coverage(coverage)
        if not hasattr(self, "conformal_"):
            if by_category is not None:
                msg = (
                    "`by_category` needs rows held out: call conformalize with "
                    "`by_category` first."
                )
                raise InvalidInputError(msg)
            return self.predict_distribution(X).interval(share)
        how: dict[str, Any] = {"level": share, "asymmetric": asymmetric}
        if on_device(X):
            limits = devices.interval(
                self.conformal_, self.predict(X), by_category=by_category, **how
            )
            if self.shift_ is None:
                return limits
            X, limits = on_host(X, limits)
            rows = self._read(X)
        else:
            rows = self._read(X)
            predicted = self._predict_rows(rows)
            labels = _labels(by_category, predicted)
            limits = self.conformal_.interval(predicted, labels=labels, **how)
        location = np.zeros(rows.n_rows) if rows.y_pred is None else rows.y_pred
        return (location + self._shift_of(rows))[:, None] + limits

    @property
    def is_updatable(self) -> bool:
        """Whether `update` and `merge` can go on from a fit: sums say all of the scale.

        The shape of the law, and the shift, stay those of the fit.
        """
        return self._template().is_updatable

    def _why_not_updatable(self) -> str:
        return self._template()._why_not_updatable()

    def update(
        self,
        X: Any,
        y: Any = None,
        *,
        forget: float = 1.0,
        half_life: float | None = None,
    ) -> Self:
        """Learn the scale from more rows, without those of `fit`.

        The shape of the law and the shift stay those of the fit. See
        :meth:`sigmascale.TemperatureScaling.update` for the parameters.

        Parameters
        ----------
        X : Predictions, array-like or data frame of shape (n, n_columns)
            Conditioning table with the columns seen in `fit`.
        y : array-like of shape (n,), optional
            Errors, reference minus prediction.
        forget, half_life : float
            How fast old rows fade.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.scaling_._kept_sums()
        rows = self._with_errors(*on_host(X, y))
        self.scaling_.update(rows, forget=forget, half_life=half_life)
        self.is_updated_ = True
        return self._take_over()

    def merge(self, other: Any) -> Self:
        """Add what another fit has learned of the scale from other rows.

        Parameters
        ----------
        other : Recalibrator
            One with the same parameters and columns. It is not changed.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.scaling_._kept_sums()
        if not isinstance(other, Recalibrator) or not hasattr(other, "map_"):
            msg = (
                "`other` must be a fitted Recalibrator, as this is; found "
                f"{type(other).__name__}."
            )
            raise InvalidInputError(msg)
        self.scaling_.merge(other.scaling_)
        self.is_updated_ = True
        return self._take_over()

    def _kept(self) -> Any:
        return self.scaling_._kept()

    def _take_over(self) -> Self:
        """Take over what the scaling has learned anew."""
        warn_of_forgotten(self)
        self.__dict__.pop("conformal_", None)
        for name in ("map_", "n_samples_fit_", "min_uncertainty_", "seen_"):
            if hasattr(self.scaling_, name):
                setattr(self, name, getattr(self.scaling_, name))
        return self


def _labels(by_category: Any, rows: Floats) -> Categories | None:
    if by_category is None:
        return None
    return check_labels(by_category, rows, "by_category")


def _folds(rows: Predictions, seed: int) -> Ints:
    """Return the fold of each row, whatever their order; groups stay together."""
    order = full_order(rows)
    dealt = rows.take(order)
    fold = np.empty(rows.n_rows, dtype=np.int64)
    rng = np.random.default_rng(seed)
    fold[order] = make_folds(
        np.abs(dealt.errors) / dealt.uncertainty,
        N_FOLDS,
        rng,
        dealt.groups,
        dealt.weights,
    )
    return fold


def _number_of_laws(
    numbers: list[int], z: Floats, scale: Floats, rows: Predictions, fold: Ints
) -> int:
    """Return in how many bins of the scale a law gains, by CRPS of unseen rows."""
    if len(numbers) == 1 or np.unique(fold).size == 1:
        return 1
    losses: dict[str, Floats] = {}
    for n in numbers:
        scores = np.empty(z.size)
        for k in np.unique(fold):
            own = fold == k
            seen = np.flatnonzero(~own)
            w = None if rows.weights is None else rows.weights[seen]
            law = EmpiricalLaw.learn(z[seen], scale[seen], w, n)
            codes = law.codes(scale[own])
            scores[own] = scale[own] * law.ranked_scores(z[own], codes)
        losses[str(n)] = scores
    ranking = rank(losses, rows.groups, weights=rows.weights)
    return next(n for n in numbers if ranking.is_as_good(str(n)))
