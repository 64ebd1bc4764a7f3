"""The recalibrator: bias, scale and distribution of errors, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any, Literal, Self, overload

from .._support.checks import Floats, check_choice, check_count, is_real
from .._support.notices import warn
from .._support.numerals import fixed
from .._support.parameters import Parametrised, check_is_fitted
from .._support.progress import working
from .._support.text import quoted
from ..exceptions import InvalidInputError
from ..predictions.combinations import GroupCorrelation
from ..predictions.diagnostics import warn_of_oddities
from ..predictions.ordering import canonical_order, in_canonical_order
from ..predictions.predictions import Predictions, check_predictions
from . import persistence
from .additive import Additive, Axis
from .bias import BiasKind, corrected
from .cautions import warn_of_few_effective
from .description import bounds_words, is_one_factor, scale_words, shape_words
from .distributions import (
    Bounds,
    Distributions,
    Parts,
    ZDistribution,
    any_bound,
    check_bounds,
)
from .explanation import Background, Explanation, explain
from .fitted_rows import FittedRows, Unlike
from .guarantees import check_parts, parts_words
from .learning import Choices, learn
from .matching import (
    check_components,
    check_shapes,
    checked_array,
    with_columns_of_fit,
)
from .out_of_fold import OutOfFold
from .persistence import (
    by_name,
    index,
    many,
    number,
    one_of,
    optional,
    pair,
    plain,
    refuse_if,
    stored,
    text,
)
from .scalings import SCALINGS, BoostedScaling, Scaling

_OURS = {scaling.__name__: scaling for scaling in SCALINGS.values()}
# What a fit learns, as files name it, and the attribute that it is.
_FITTED = {
    "names": "names_",
    "n_rows": "n_rows_",
    "n_effective": "n_effective_",
    "smallest": "_smallest",
    "scale_map": "scale_",
    "bias_map": "bias_",
    "z": "distribution_",
    "stretched_parts": "parts_",
    "fitted_rows": "fitted_rows_",
    "background": "background_",
    "shape_kept": "shape_kept_",
    "bias_words": "_bias_words",
    "cautions": "cautions_",
}


@stored(
    scaling=by_name(plain),
    bias=one_of(None, "constant", "auto"),
    distribution=one_of("empirical", "normal"),
    hold_out=number,
    bounds=pair(optional(number)),
    parts=plain,
    random_state=index,
    names=many(text),
    n_rows=index,
    n_effective=number,
    smallest=number,
    scale_map=Additive,
    bias_map=optional(Additive),
    z=ZDistribution,
    stretched_parts=optional(Parts),
    fitted_rows=FittedRows,
    background=Background,
    shape_kept=optional(number),
    group_correlation=optional(many(number)),
    bias_words=text,
    cautions=many(text),
)
class Recalibrator(Parametrised):
    """Recalibrate predictive distributions: bias, scale and distribution of errors.

    An error is bias(x) + scale(x) × z: what the prediction is off by on average, the
    recalibrated standard uncertainty, and a random number whose distribution is that of
    rows out of fold.

    Parameters
    ----------
    scaling : Scaling, optional
        What learns the scale. By default it is ``BoostedScaling()``; of 40 to 400
        rows, if rows out of fold gain from it, and else u times one factor. Of fewer
        than 1,000 rows, no uncertainty exceeds 30 times their largest error or u.
    bias : {None, "constant", "auto"}, default None
        Whether the bias of predictions is corrected: not at all; by one number times
        the scale; or by what rows out of fold gain most from, one of these or boosted
        trees of all columns (with fewer than 100 rows, not at all). Where predictions
        have a `time`, rows out of fold are those of another stretch of time. Vectors
        have no sign, and no bias that is asked for.
    distribution : {"empirical", "normal"}, default "empirical"
        The distribution of z. "empirical" is a table of the z-scores of rows that the
        fit has not seen, in a few bins of the scale if rows out of fold gain from that.
        With fewer than 40 rows it is that of ±abs(z).
    hold_out : float, default 0
        Share of the rows, whole groups at a time, that nothing but the distribution is
        learned from. See the notes for the guarantee that intervals then have.
    bounds : pair of float or None, optional
        What a true value cannot be below and above, such as ``(0, None)`` for what
        cannot be negative. Quantiles, intervals and draws stay within.
    parts : list of str, optional
        Columns, such as ``["phase", "u"]``, in each part of which intervals shall have
        nominal coverage: in each label, and in fifths of numbers, or fewer bins where
        these have less than 200 rows ("u" are the uncertainties as they came). See the
        notes for what is guaranteed, and what it costs: name those that matter, three
        at most.
    random_state : int, default 0
        Seed of the folds, and of the rows held out.

    Attributes
    ----------
    scale_ : Additive
        The scale as a map; ``bias_`` is that of the bias, or None.
    distribution_ : ZDistribution
        The distribution of z, before it is stretched in parts.
    parts_ : Parts or None
        How far it is stretched in each part.
    names_ : tuple of str
        The columns of the fit, "u" first.
    n_rows_ : int
        The rows of the fit.
    cautions_ : tuple of str
        What to be careful about.
    group_correlation_ : GroupCorrelation or None
        The correlation of cross-validated z-scores within groups, for sums of rows.
    shape_kept_ : float or None
        How much of the shape of each row is kept, if rows have shapes: 0, ½ or 1.
    out_of_fold_ : Predictions
        The rows of the fit as if it had not seen them; not of what was loaded.
    background_ : Background
        Means over the rows of the fit, by which `explain` explains.
    fitted_rows_ : FittedRows
        What is kept of the rows of the fit, to compare others with.

    Notes
    -----
    `predict` returns the standard uncertainty: the root mean square of the error about
    the (corrected) prediction. The mean of the distribution need not be the prediction,
    as errors may be skewed.

    With ``hold_out`` intervals are those of split conformal prediction: of m rows held
    out, z-scores stand for the levels i / (m + 1), and limits are steps outwards. If
    new rows are exchangeable with those held out (drawn from the same source, one by
    one), an interval of coverage c contains a new true value with a probability of at
    least c, whatever the errors are like and however wrong scale and bias may be. That
    is an average over new rows and sets held out, and no promise for each kind of row.
    With groups, or weights, it is approximate. An interval beyond the outermost level
    is infinite, with a warning; CRPS, mean and standard deviation use the observed
    range.

    With ``parts``, each row has a stretch for each coverage: how many times as far from
    the median an interval must reach to contain it. Each part has the conformal
    quantile of the stretches of its rows, and a new row takes the largest of all parts
    that it is in. With ``hold_out`` as well, an interval of coverage c contains new
    true values *of each part* with a probability of at least c, if rows are
    exchangeable. It is an average over sets held out, for parts that were named before
    rows were held out, whose edges these rows have not moved: they are cut by the other
    rows. A part needs 9 rows held out for 90 %, 19 for 95 %, c / (1 − c) for c;
    intervals are infinite where it has fewer, and `fit` warns. Without ``hold_out``,
    rows out of fold stand for them, and nearly keep to it. A row is in several parts,
    and its interval is the widest: taken together, rows are covered more often than was
    asked for. All of the distribution follows (quantiles, CRPS, spread, PIT); the
    standard uncertainty of `predict` stays as it is. Coverages are told apart in steps
    of 1/100, and finer from 0.95 on; one in between is that of the next step with
    ``hold_out``, and else between the two.

    References
    ----------
    V. Vovk, A. Gammerman and G. Shafer, Algorithmic Learning in a Random World (2005),
    doi:10.1007/b106715; J. Lei et al., J. Am. Stat. Assoc. 113, 1094 (2018),
    doi:10.1080/01621459.2017.1307116, for split conformal prediction;
    R. Foygel Barber, E. J. Candès, A. Ramdas and R. J. Tibshirani, Inf. Inference 10,
    455 (2021), doi:10.1093/imaiai/iaaa017, for the largest of several parts.

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.datasets.make_molecules(2000, seed=1).predictions
    >>> new = ss.datasets.make_molecules(2000, seed=2).predictions
    >>> q = ss.Recalibrator().fit(p).apply(new)
    >>> low, high = q.distributions.interval(0.9).T
    >>> round(float(((low <= q.target) & (q.target <= high)).mean()), 2)
    0.9
    >>> r = ss.Recalibrator(hold_out=0.5, parts=["mass", "u"]).fit(p)
    >>> low, high = r.apply(new).distributions.interval(0.9).T
    >>> heavy = new.features["mass"] > 130
    >>> bool(((low <= new.target) & (new.target <= high))[heavy].mean() > 0.88)
    True
    """

    _unseen: tuple[Predictions, OutOfFold] | None = None  # the rows of a fit in memory
    scale_: Additive
    bias_: Additive | None
    distribution_: ZDistribution
    parts_: Parts | None
    shape_kept_: float | None
    group_correlation_: GroupCorrelation | None
    names_: tuple[str, ...]
    n_rows_: int
    n_effective_: float
    cautions_: tuple[str, ...]
    fitted_rows_: FittedRows
    background_: Background
    _smallest: float  # of the uncertainties of the fit
    _bias_words: str
    _method: str  # the name of the scaling, which may be known by it alone

    def __init__(
        self,
        scaling: Scaling | None = None,
        *,
        bias: BiasKind | None = None,
        distribution: Literal["empirical", "normal"] = "empirical",
        hold_out: float = 0.0,
        bounds: Bounds | None = None,
        parts: list[str] | None = None,
        random_state: int = 0,
    ) -> None:
        self.scaling = scaling
        self.bias = bias
        self.distribution = distribution
        self.hold_out = hold_out
        self.bounds = bounds
        self.parts = parts
        self.random_state = random_state

    # -- learning ----------------------------------------------------------------------

    def fit(self, p: Predictions) -> Self:
        """Learn bias, scale and distribution from predictions with errors.

        Parameters
        ----------
        p : Predictions
            Rows that the model has not learned from, with errors.

        Returns
        -------
        self
        """
        rows = check_predictions(p)
        choices = self._checked(rows)
        warn_of_oddities(rows)
        warn_of_few_effective(rows)

        # from here on nothing depends on how the table was sorted
        rows = in_canonical_order(rows)

        # a copy learns: this one stays as it is until all is learned
        new = copy(self)
        new._method = type(choices.scaling).__name__

        # what others are compared with
        new.fitted_rows_ = FittedRows.of(rows)
        new._smallest = float(rows.y_std.min())
        new.names_ = rows.names
        new.n_rows_ = rows.n_rows
        new.n_effective_ = float(rows.n_effective)

        with working(f"fitting {new._method}"):
            fitted = learn(rows, choices)
        new.scale_ = fitted.scale
        new.background_ = Background.of(fitted.scale, rows)
        new.bias_ = fitted.bias
        new.distribution_ = fitted.distribution
        new.parts_ = fitted.parts
        new.shape_kept_ = fitted.shape_kept
        new.group_correlation_ = fitted.correlation
        new._unseen = p, fitted.unseen
        new._bias_words = fitted.bias_words
        new.cautions_ = fitted.cautions
        self.__dict__ = new.__dict__
        return self

    def _checked(self, rows: Predictions) -> Choices:
        """Return what is to be learned, if all parameters are right."""
        check_choice(self.distribution, "distribution", ("empirical", "normal"))
        check_count(self.random_state, "random_state", least=0)
        if not is_real(self.hold_out) or not 0 <= self.hold_out < 1:
            msg = (
                "`hold_out` must be a share of the rows, at least 0 and below 1; found "
                f"{quoted(self.hold_out)}."
            )
            raise InvalidInputError(msg)
        parts = check_parts(self.parts, rows)

        # what does not go together
        if self.distribution == "normal" and (self.hold_out or parts):
            name = "hold_out" if self.hold_out else "parts"
            msg = (
                f"`{name}` needs distribution='empirical': a normal distribution is "
                "not learned from rows that the scale has not seen."
            )
            raise InvalidInputError(msg)
        needs_sign = any_bound(check_bounds(self.bounds))
        if self.bias is not None:
            check_choice(self.bias, "bias", ("constant", "auto"))
            needs_sign = True
        if needs_sign:
            check_predictions(rows, vectors=False)
        scaling = self.scaling
        if scaling is None:
            scaling = BoostedScaling(random_state=self.random_state)
        elif not hasattr(scaling, "learn"):
            msg = (
                "`scaling` must be a scaling such as BoostedScaling(), with a method "
                f"`learn`; found {type(scaling).__name__}."
            )
            raise InvalidInputError(msg)
        return Choices(
            scaling=scaling,
            may_be_one_factor=self.scaling is None,
            bias=self.bias,
            distribution=self.distribution,
            hold_out=self.hold_out,
            parts=parts,
            random_state=self.random_state,
        )

    # -- what was learned, applied -----------------------------------------------------

    @overload
    def predict(self, p: Predictions) -> Floats: ...
    @overload
    def predict(self, p: Any) -> Any: ...
    def predict(self, p: Any) -> Any:
        """Return recalibrated standard uncertainties, finite and positive.

        Parameters
        ----------
        p : Predictions, or array of shape (n, n_columns) or (n,)
            Predictions with the features of `fit`; or an array of NumPy, PyTorch, CuPy
            or JAX with the uncertainty in its first column and the features, numbers
            all, in the others. Uncertainties of exactly 0 in an array are lifted to the
            smallest one seen in `fit`.

        Returns
        -------
        array of shape (n,)
            Of the library, on the device and with the gradients of what was given.

        Examples
        --------
        >>> import numpy as np
        >>> import sigmascale as ss
        >>> p = ss.Predictions(y_std=[1.0, 2.0] * 30, error=[2.0, -4.0] * 30)
        >>> r = ss.Recalibrator(ss.TemperatureScaling()).fit(p)
        >>> r.predict(np.array([1.0, 3.0]))
        array([2., 6.])
        """
        if not hasattr(self, "scale_"):  # torch.compile traces what is known only
            check_is_fitted(self)
        is_array = hasattr(p, "ndim") and not hasattr(p, "columns")
        if is_array:
            fit = self.__dict__  # of one fit, which another one replaces as a whole
            scale: Additive = fit["scale_"]
            array = checked_array(p, fit["names_"], scale, fit["_smallest"])
            return scale.of_array(array, fit["_smallest"])
        fitted = copy(self)  # which no other thread fits anew meanwhile
        return fitted.scale_.of_rows(fitted._matched(p))

    def apply(self, p: Predictions) -> Predictions:
        """Return recalibrated predictions, which carry their distributions.

        Parameters
        ----------
        p : Predictions
            With the features of `fit`.

        Returns
        -------
        Predictions
            With recalibrated uncertainties, and predictions and errors whose bias is
            corrected if one was learned. :func:`sigmascale.validate`, plots and the
            report test the `distributions` of these.
        """
        check_is_fitted(self)
        fitted = copy(self)
        return fitted._applied(p, fitted._matched(p))

    def _applied(self, p: Predictions, rows: Predictions) -> Predictions:
        """Return recalibrated predictions; `rows` have the columns of `fit`."""
        bounds = check_bounds(self.bounds)
        if any_bound(bounds) and p.y_pred is None:
            msg = "`bounds` are those of true values: pass `y_pred`, not errors alone."
            raise InvalidInputError(msg)

        # the scale and the bias of each row, and which table of z is whose
        fitted_share = self.fitted_rows_.share_of(rows)
        rows = rows._with_shape_kept(self.shape_kept_ or 0.0)
        scale = self.scale_.of_rows(rows)
        unbiased = corrected(rows, self.bias_)
        z = self.distribution_
        codes = z.codes(scale)
        if self.parts_ is not None:
            z, codes = self.parts_.stretched(z, scale, rows)

        # what distributions are about: predictions, or errors that may not be known
        location = unbiased.y_pred
        if location is None:
            location = self.distribution_.centre(rows.n_rows)
            if self.bias_ is not None and rows.error is None:
                location = self.bias_.of_rows(rows)
        distributions = Distributions.of(
            location,
            scale,
            z,
            bounds,
            fitted_share=fitted_share,
            codes=codes,
            shape=unbiased.shape,
            origin=rows.origin,
        )
        return unbiased._with(
            columns=(scale, *p.columns[1:]),
            names=p.names,
            categories=p.categories,
            recalibrated=distributions,
        )

    def _for_many_rows(self) -> Recalibrator:
        """Return the same with tables that are written out."""
        other = copy(self)
        other.scale_ = self.scale_.for_many_rows
        if self.bias_ is not None:
            other.bias_ = self.bias_.for_many_rows
        return other

    @property
    def out_of_fold_(self) -> Predictions:
        """The rows of the fit as if it had not seen them, with their distributions.

        Bias, scale and table of z of each row are those of fits without its fold;
        with `hold_out`, they are the rows held out alone. `places` are the rows of the
        table that was fitted. They are made anew each time, from rows in memory: what
        was loaded, copied or sent to another process has none.

        Examples
        --------
        >>> import sigmascale as ss
        >>> p = ss.datasets.make_molecules(2000, seed=1).predictions
        >>> q = ss.Recalibrator().fit(p).out_of_fold_
        >>> low, high = q.distributions.interval(0.9).T
        >>> round(float(((low <= q.target) & (q.target <= high)).mean()), 2)
        0.9
        """
        check_is_fitted(self)
        fit = self.__dict__  # of one fit, as above
        if fit.get("_unseen") is None:
            msg = (
                "`out_of_fold_` needs the rows of the fit, which are not saved with a "
                "recalibrator. Fit it again, or pass other rows with known errors: "
                "apply(p) recalibrates them, and `calibration=` takes them."
            )
            raise InvalidInputError(msg, "no-rows")
        p, unseen = fit["_unseen"]
        order = canonical_order(p)
        shaped = p._with_shape_kept(fit["shape_kept_"] or 0.0)
        bounds = check_bounds(fit["bounds"])
        z, parts = fit["distribution_"], fit["parts_"]
        rows: Predictions = unseen.rows(shaped, order, z, parts, bounds)
        return rows

    def __getstate__(self) -> dict[str, Any]:
        """Return what is copied or sent elsewhere: all but the rows of the fit."""
        return {k: value for k, value in vars(self).items() if k != "_unseen"}

    def explain(self, p: Predictions) -> Explanation:
        """Return why the recalibrated u of each row is as large as it is.

        It is the typical u of calibration rows, times a factor for the row's own u, and
        one for each feature: the Shapley values of ln u, which multiply up to u.

        Parameters
        ----------
        p : Predictions
            With the features of `fit`.

        Returns
        -------
        Explanation
            With `factors` of each row and column, and whether a row lies `inside` the
            range of the calibration rows.

        Examples
        --------
        >>> import numpy as np
        >>> import sigmascale as ss
        >>> p = ss.datasets.make_molecules(2000, seed=1).predictions
        >>> why = ss.Recalibrator().fit(p).explain(p)
        >>> bool(np.allclose(why.typical * why.factors.prod(axis=1), why.u))
        True
        """
        check_is_fitted(self)
        fit = copy(self)
        rows = fit._matched(p)
        explanation = explain(fit.scale_, fit.background_, rows)
        return replace(explanation, inside=fit.fitted_rows_.holds(rows))

    @property
    def _maps(self) -> list[Additive]:
        """The maps of columns that were learned: the scale, and the bias if any."""
        return [self.scale_] if self.bias_ is None else [self.scale_, self.bias_]

    @property
    def columns_(self) -> set[int]:
        """The columns that anything depends on: the scale, the bias or the parts."""
        used = set[int]().union(*(learned.columns for learned in self._maps))
        return used if self.parts_ is None else used | self.parts_.columns

    @property
    def labelled_(self) -> set[int]:
        """Those of them that have labels."""
        labelled = set[int]().union(*(learned.labelled for learned in self._maps))
        return labelled if self.parts_ is None else labelled | self.parts_.labelled

    def _matched(self, p: Any) -> Predictions:
        """Return predictions with the columns of `fit`; warn of what is unlike it."""
        rows = check_predictions(p, errors=False)
        rows = with_columns_of_fit(rows, self.names_)
        check_components(rows, self.distribution_.dim)
        check_shapes(rows, self.shape_kept_)
        for sentence, category in self._oddities(self._unlike(rows)).values():
            warn(sentence, category, stacklevel=4)
        return rows

    def _unlike(self, rows: Predictions) -> Unlike:
        """Return counts of how rows with the columns of `fit` differ from its rows."""
        # one axis for each column: scale and bias cut it alike
        axes: dict[int, Axis] = {}
        for learned in self._maps:
            axes |= {axis.column: axis for axis in learned.axes}

        # by what rows with labels that these do not know get
        without_factor = "or too rarely to have a factor; they take the average one"
        known: dict[str, Sequence[Axis]] = {without_factor: tuple(axes.values())}
        if self.parts_ is not None:
            known["and are in no part that was"] = self.parts_.axes
        return self.fitted_rows_.unlike(rows, known)

    def _oddities(
        self, unlike: Unlike
    ) -> dict[tuple[str, str], tuple[str, type[Warning]]]:
        """Return what is worth telling of new rows, by kind and column."""
        return self.fitted_rows_.sentences(
            unlike, self.names_, self.n_rows_, self.columns_
        )

    # -- in words ----------------------------------------------------------------------

    def describe(self) -> str:
        """Return in words what was learned.

        Examples
        --------
        >>> import sigmascale as ss
        >>> p = ss.Predictions(y_std=[1, 2, 1, 2] * 15, error=[2, -4, -2, 4] * 15)
        >>> print(ss.Recalibrator(ss.TemperatureScaling()).fit(p).describe())
        Uncertainties are multiplied by one factor, 2.
        TemperatureScaling, fitted to 60 rows.
        The distribution of z is empirical: cross-validated z-scores of 60 rows.
        """
        check_is_fitted(self)
        fit = copy(self)
        rows = f"{fit.n_rows_:,} rows"
        is_weighted = round(fit.n_effective_) != fit.n_rows_
        if is_weighted:
            rows += f" (weighted, {fixed(fit.n_effective_, 0)} effective)"
        learned = f"{fit._method}, fitted to {rows}"
        if fit._method == "BoostedScaling" and is_one_factor(fit.scale_):
            learned += "; more than one factor gains too little, cross-validated"
        sentences = [
            f"{scale_words(fit.scale_, fit.names_)}.",
            f"{learned}.",
            fit._bias_words,
            shape_words(fit.shape_kept_),
            f"The distribution of z is {fit.distribution_.words}.",
            bounds_words(check_bounds(fit.bounds)),
            "" if fit.parts_ is None else parts_words(fit.parts_, fit.names_),
            *fit.cautions_,
        ]
        return "\n".join(filter(None, sentences))

    def __repr__(self) -> str:
        """Return what was learned in words; before that, how it was made."""
        if hasattr(self, "scale_"):
            return self.describe()
        return super().__repr__()

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(line)}</p>" for line in repr(self).splitlines())

    # -- files -------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write it to a JSON file, whole or not at all, for :func:`sigmascale.load`.

        Parameters
        ----------
        path : str or Path
            Where to write; an existing file is replaced.
        """
        persistence.save(self, path)

    def to_state(self) -> dict[str, Any]:
        """Return what is saved."""
        check_is_fitted(self)
        fit = copy(self)
        scaling: Any = fit.scaling
        is_it = type(scaling) is _OURS.get(fit._method)
        parameters = scaling.get_params() if is_it else {}
        state = {
            "scaling": {"method": fit._method, "parameters": parameters},
            "bias": fit.bias,
            "distribution": fit.distribution,
            "hold_out": float(fit.hold_out),
            "bounds": check_bounds(fit.bounds),
            "parts": None if fit.parts is None else list(fit.parts),
            "random_state": int(fit.random_state),
            "group_correlation": None,
            **{name: getattr(fit, attribute) for name, attribute in _FITTED.items()},
        }
        if fit.group_correlation_ is not None:
            state["group_correlation"] = list(fit.group_correlation_.to_dict().values())
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Recalibrator:
        """Return what was saved; it needs no scaling to be applied."""
        method = state["scaling"].get("method")
        parameters = state["scaling"].get("parameters")
        if not isinstance(method, str) or not isinstance(parameters, dict):
            msg = "it must name its scaling."
            raise InvalidInputError(msg)
        # one that nobody named has no parameters: it may be one factor
        is_named = method in _OURS and (parameters or method != "BoostedScaling")
        scaling = _OURS[method](**parameters) if is_named else None
        bounds = state["bounds"]
        recalibrator = cls(
            scaling,
            bias=state["bias"],
            distribution=state["distribution"],
            hold_out=state["hold_out"],
            bounds=bounds if any_bound(bounds) else None,
            parts=None if state["parts"] is None else list(state["parts"]),
            random_state=state["random_state"],
        )
        recalibrator._method = method
        for name, attribute in _FITTED.items():
            setattr(recalibrator, attribute, state[name])
        recalibrator.group_correlation_ = None
        if (numbers := state["group_correlation"]) is not None:
            recalibrator.group_correlation_ = GroupCorrelation.of(*numbers)
        return recalibrator

    def check(self) -> None:
        """Refuse what no fit has learned."""
        check_bounds(self.bounds)
        refuse_if(not 0 <= self.hold_out < 1, "`hold_out` must be a share")

        # columns
        n_columns = len(self.names_)
        differ = len(set(self.names_)) == n_columns
        must = "it must have columns of different names, u first"
        refuse_if(self.names_[:1] != ("u",) or not differ, must)
        used = {*self.fitted_rows_.columns, *self.columns_}
        refuse_if(max(used) >= n_columns, "its maps must have none but its columns")

        # what was learned of them
        lack_tables = self.parts_ is not None and not self.distribution_.tables
        refuse_if(lack_tables, "parts must have tables to stretch")
        bias_is_log = self.bias_ is not None and self.bias_.log
        must = "its scale must be a logarithm, and its bias none"
        refuse_if(not self.scale_.log or bias_is_log, must)
        are_positive = self._smallest > 0 and self.n_rows_ and self.n_effective_ > 0
        must = "its rows must have positive uncertainties"
        refuse_if(not are_positive, must)
        is_other = not self.background_.fits(self.scale_)
        refuse_if(is_other, "means of tables must be those of its scale")
        is_signed = self.bias_ is not None or any_bound(check_bounds(self.bounds))
        is_vector = self.distribution_.dim is not None
        must = "vectors have neither bias nor bounds"
        refuse_if(is_signed and is_vector, must)
        kept = self.shape_kept_
        must = "a share of shapes must be kept, and vectors have none"
        is_share = kept is not None and 0 <= kept <= 1 and not is_vector
        refuse_if(kept is not None and not is_share, must)
