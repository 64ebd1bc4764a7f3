"""The recalibrator: bias, scale and distribution of errors, one after the other."""

from __future__ import annotations

from contextlib import nullcontext
from html import escape
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .. import persistence
from .._support.checks import (
    Floats,
    Ints,
    check_choice,
    check_column,
    check_count,
    is_real,
    refuse_values,
)
from .._support.notices import warn
from .._support.progress import working
from .._support.text import listed, quoted
from ..additive import Additive, Base
from ..diagnostics import informative, warn_of_oddities
from ..distributions import (
    Bounds,
    Distributions,
    ZDistribution,
    any_bound,
    check_bounds,
)
from ..exceptions import (
    InvalidInputError,
    UnseenCategoryWarning,
    ZeroUncertaintyWarning,
)
from ..folds import divided
from ..ordering import in_canonical_order
from ..persistence import (
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
from ..predictions import Predictions, check_predictions
from ..scaling import SCALINGS, BoostedScaling, Scaling
from .bias import BiasKind, corrected, learn_bias
from .cautions import caution_of_bias, cautions_of_scale
from .distribution import of_rows_held_out, of_rows_out_of_fold
from .fitted_rows import Seen

MANY = 100_000  # rows; fewer take no time, or have a bar of their own
# What a fit learns, as files name it, and the attribute that it is.
_FITTED = {
    "names": "names_",
    "n_rows": "n_rows_",
    "n_effective": "n_effective_",
    "smallest": "_smallest",
    "scale_map": "scale_",
    "bias_map": "bias_",
    "z": "distribution_",
    "seen": "_seen",
    "bias_words": "_bias_words",
    "cautions": "cautions_",
}


@stored(
    scaling=by_name(plain),
    bias=one_of(None, "constant", "auto"),
    distribution=one_of("empirical", "normal"),
    hold_out=number,
    bounds=pair(optional(number)),
    random_state=index,
    names=many(text),
    n_rows=index,
    n_effective=number,
    smallest=number,
    scale_map=Additive,
    bias_map=optional(Additive),
    z=ZDistribution,
    seen=Seen,
    bias_words=text,
    cautions=many(text),
)
class Recalibrator(BaseEstimator):
    """Recalibrate predictive distributions: bias, scale and distribution of errors.

    An error is bias(x) + scale(x) × z: what the prediction is off by on average, the
    recalibrated standard uncertainty, and a random number whose distribution is that of
    rows out of fold.

    Parameters
    ----------
    scaling : Scaling, optional
        What learns the scale; by default ``BoostedScaling()``.
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
        What a truth cannot be below and above, such as ``(0, None)`` for what cannot be
        negative. Quantiles, intervals and draws stay within.
    random_state : int, default 0
        Seed of the folds, and of the rows held out.

    Attributes
    ----------
    scale_ : Additive
        The scale as a map; ``bias_`` is that of the bias, or None.
    distribution_ : ZDistribution
        The distribution of z.
    names_ : tuple of str
        The columns of the fit, "u" first.
    n_rows_ : int
        The rows of the fit.
    cautions_ : tuple of str
        What to be careful about.
    fingerprint_ : array of int
        At most 64 salted hashes of fitted rows, by which these are recognised if they
        are judged.

    Notes
    -----
    `predict` returns the standard uncertainty: the root mean square of the error about
    the (corrected) prediction. The mean of the distribution need not be the prediction,
    as errors may be skewed.

    With ``hold_out`` intervals are those of split conformal prediction: of m rows held
    out, z-scores stand for the levels i / (m + 1), and limits are steps outwards. If
    new rows are exchangeable with those held out (drawn from the same source, one by
    one), an interval of coverage c holds a new truth with a probability of at least c,
    whatever the errors are like and however wrong scale and bias may be. That is an
    average over new rows and sets held out, and no promise for each kind of row. With
    groups, or weights, it is approximate. An interval beyond the outermost level is
    infinite, with a warning; CRPS, mean and standard deviation use the observed range.

    References
    ----------
    V. Vovk, A. Gammerman and G. Shafer, Algorithmic Learning in a Random World (2005),
    doi:10.1007/b106715; J. Lei et al., J. Am. Stat. Assoc. 113, 1094 (2018),
    doi:10.1080/01621459.2017.1307116, for split conformal prediction.

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.datasets.make_molecules(2000, seed=1).predictions
    >>> new = ss.datasets.make_molecules(2000, seed=2).predictions
    >>> q = ss.Recalibrator().fit(p).apply(new)
    >>> low, high = q.distributions.interval(0.9).T
    >>> round(float(((low <= q.target) & (q.target <= high)).mean()), 2)
    0.9
    """

    scale_: Additive
    bias_: Additive | None
    distribution_: ZDistribution
    names_: tuple[str, ...]
    n_rows_: int
    n_effective_: float
    cautions_: tuple[str, ...]

    def __init__(
        self,
        scaling: Scaling | None = None,
        *,
        bias: BiasKind | None = None,
        distribution: Literal["empirical", "normal"] = "empirical",
        hold_out: float = 0.0,
        bounds: Bounds | None = None,
        random_state: int = 0,
    ) -> None:
        self.scaling = scaling
        self.bias = bias
        self.distribution = distribution
        self.hold_out = hold_out
        self.bounds = bounds
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
        scaling = self._checked(rows)
        warn_of_oddities(rows)
        self._remember(rows)
        is_known = bool(rows.squared_error.any())  # errors that are all 0 tell nothing
        rows = in_canonical_order(informative(rows))
        progress = working(f"fitting {type(scaling).__name__}")
        with progress if rows.n_rows >= MANY else nullcontext():
            self._learn(rows, scaling, is_known=is_known)
        return self

    def _remember(self, rows: Predictions) -> None:
        """Keep what others are compared with, and forget any earlier fit."""
        self._seen = Seen.of(rows)
        self._smallest = float(rows.y_std.min())
        self.names_ = rows.names
        self.n_rows_ = rows.n_rows
        self.n_effective_ = float(rows.n_effective)
        self.bias_ = None
        self._bias_words = ""
        self.cautions_ = ()

    def _learn(self, rows: Predictions, scaling: Scaling, *, is_known: bool) -> None:
        """Learn bias, scale and distribution from checked rows, one after the other."""
        held_out = None
        if self.hold_out:
            seen, unseen = divided(rows, self.hold_out, self.random_state)
            rows, held_out = rows.take(seen), rows.take(unseen)

        if self.bias is not None and is_known:
            learned_bias = learn_bias(rows, self.bias, self.random_state)
            self.bias_ = learned_bias.map
            self._bias_words = learned_bias.words
            rows = learned_bias.corrected

        learned = scaling.learn(rows)
        self.scale_ = learned.map

        self.distribution_ = ZDistribution(dim=rows.components)  # normal
        if not is_known:
            return
        if self.distribution == "empirical":
            if held_out is not None:
                unbiased = corrected(held_out, self.bias_)
                self.distribution_ = of_rows_held_out(unbiased, self.scale_)
            else:
                self.distribution_ = of_rows_out_of_fold(
                    rows, scaling, learned, self.random_state
                )

        scale = self.scale_.of_rows(rows)
        self.cautions_ = cautions_of_scale(rows, scale)
        if self.bias is None and not rows.is_vector:
            self.cautions_ += caution_of_bias(rows, scale)

    def _checked(self, rows: Predictions) -> Scaling:
        """Return the scaling, if all parameters are right."""
        check_choice(self.distribution, "distribution", ("empirical", "normal"))
        check_count(self.random_state, "random_state", least=0)
        if not is_real(self.hold_out) or not 0 <= self.hold_out < 1:
            msg = (
                "`hold_out` must be a share of the rows, at least 0 and below 1; found "
                f"{quoted(self.hold_out)}."
            )
            raise InvalidInputError(msg)
        if self.hold_out and self.distribution == "normal":
            msg = (
                "`hold_out` needs distribution='empirical': a normal distribution is "
                "not learned from the rows held out."
            )
            raise InvalidInputError(msg)
        signed = any_bound(check_bounds(self.bounds))
        if self.bias is not None:
            check_choice(self.bias, "bias", ("constant", "auto"))
            signed = True
        if signed:
            check_predictions(rows, vectors=False)
        if self.scaling is None:
            return BoostedScaling()
        if not hasattr(self.scaling, "learn"):
            msg = (
                "`scaling` must be a scaling such as BoostedScaling(), with a method "
                f"`learn`; found {type(self.scaling).__name__}."
            )
            raise InvalidInputError(msg)
        return self.scaling

    # -- what was learned, applied -----------------------------------------------------

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
        >>> import sigmascale as ss
        >>> p = ss.Predictions(y_std=[1.0, 2.0] * 30, error=[2.0, -4.0] * 30)
        >>> r = ss.Recalibrator(ss.TemperatureScaling()).fit(p)
        >>> r.predict(np.array([1.0, 3.0]))
        array([2., 6.])
        """
        check_is_fitted(self, "scale_")
        is_array = hasattr(p, "ndim") and not hasattr(p, "columns")
        if is_array:
            return self.scale_.of_array(self._checked_array(p))
        return self.scale_.of_rows(self._matched(p))

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
            report judge the `distributions` of these.
        """
        check_is_fitted(self, "scale_")
        rows = self._matched(p)
        bounds = check_bounds(self.bounds)
        if any_bound(bounds) and p.y_pred is None:
            msg = "`bounds` are those of true values: pass `y_pred`, not errors alone."
            raise InvalidInputError(msg)
        scale = self.scale_.of_rows(rows)
        unbiased = corrected(rows, self.bias_)
        distributions = Distributions.of(
            self._location(rows, unbiased),
            scale,
            self.distribution_,
            bounds,
            fitted_share=self._seen.share_of(rows),
        )
        return unbiased._with(
            columns=(scale, *p.columns[1:]),
            names=p.names,
            categories=p.categories,
            distributions=distributions,
        )

    def _location(self, rows: Predictions, unbiased: Predictions) -> Floats:
        """Return what distributions are about: predictions, or errors of 0."""
        if unbiased.y_pred is not None:
            return unbiased.y_pred
        if self.bias_ is not None and rows.error is None:
            return self.bias_.of_rows(rows)  # of errors that are not known
        return self.distribution_.centre(rows.n_rows)

    @property
    def _maps(self) -> list[Additive]:
        """The maps of columns that were learned: the scale, and the bias if any."""
        return [self.scale_] if self.bias_ is None else [self.scale_, self.bias_]

    def _matched(self, p: Any) -> Predictions:
        """Return predictions with the columns of `fit`; warn of what is unlike it."""
        rows = self._with_columns_of_fit(check_predictions(p, errors=False))
        self._check_components(rows)
        self._warn_of_unseen_labels(rows)
        used = set[int]().union(*(each.columns for each in self._maps))
        self._seen.warn_of_others(rows, self.n_rows_, used)
        return rows

    def _with_columns_of_fit(self, rows: Predictions) -> Predictions:
        """Return rows with the features of `fit`, in its order."""
        if rows.names == self.names_:
            return rows
        # features of an array have numbers for names: X1, X2, ...
        numbered = ("u", *(f"X{j}" for j in range(1, len(self.names_))))
        if rows.names == numbered:
            return rows._with(names=self.names_)
        if set(self.names_) <= set(rows.names):
            return rows.with_features(self.names_[1:])
        needed, given = self.names_[1:], rows.names[1:]
        msg = (
            f"Predictions must have the features of fit: {listed(needed)}; found "
            f"{listed(given) if given else 'none'}."
        )
        raise InvalidInputError(msg, "features", columns=list(needed))

    def _check_components(self, rows: Predictions) -> None:
        """Refuse numbers where vectors were fitted, and the other way round."""
        if rows.y_pred is None and rows.error is None:  # neither is known
            return
        fitted, given = self.distribution_.dim, rows.components
        if given != fitted:
            msg = (
                f"The recalibrator was fitted to {_kind_words(fitted)}; found "
                f"{_kind_words(given)}."
            )
            raise InvalidInputError(msg, "vectors")

    def _warn_of_unseen_labels(self, rows: Predictions) -> None:
        """Warn of labels that have no factor."""
        axes = {axis.column: axis for each in self._maps for axis in each.axes}
        for axis in axes.values():
            if axis.labels is None:
                continue
            labels = rows.labels(axis.column)
            is_known = np.array([label in axis.labels for label in labels.labels])
            n_unseen = int(np.count_nonzero(~is_known[labels.codes]))
            if n_unseen:
                warn(
                    f"{n_unseen} of {rows.n_rows} rows have a label of "
                    f"{quoted(rows.names[axis.column])} that was not seen in fit, or "
                    "too rarely to have a factor; they take the average one.",
                    UnseenCategoryWarning,
                    stacklevel=4,
                )

    def _checked_array(self, X: Any) -> Any:
        """Return an array with as many columns as `fit` had, and positive u."""
        n_columns = len(self.names_)
        n_given = 1 if X.ndim == 1 else X.shape[-1]
        if X.ndim not in (1, 2) or n_given != n_columns:
            msg = (
                f"An array must have {n_columns} columns, u first: "
                f"{listed(self.names_)}; found shape {tuple(X.shape)}."
            )
            raise InvalidInputError(msg)
        if self.scale_.labelled:
            names = [self.names_[j] for j in sorted(self.scale_.labelled)]
            msg = f"Columns of labels ({listed(names)}) need Predictions, not an array."
            raise InvalidInputError(msg)
        if isinstance(X, np.ndarray):
            return self._lifted_numpy(X.reshape(len(X), n_columns))
        return self._lifted_elsewhere(X)

    def _lifted_numpy(self, X: Any) -> Floats:
        """Return a table whose zeros of u are lifted, with a warning."""
        table: Floats = X.astype(np.float64)
        u = check_column(table[:, 0], "u")
        remedy = "Drop or repair these rows."
        refuse_values(u < 0, u, "u", "positive", remedy, "not-positive")
        n_zeros = int(np.count_nonzero(u == 0))
        if n_zeros:
            warn(
                f"{n_zeros} of {u.size} uncertainties are exactly 0; they were lifted "
                f"to {self._smallest:g}, the smallest one seen in fit.",
                ZeroUncertaintyWarning,
                stacklevel=4,
            )
            table[:, 0] = np.where(u == 0, self._smallest, u)
        return table

    def _lifted_elsewhere(self, X: Any) -> Any:
        """Return an array of another library, where it is; its values are not read."""
        import array_api_compat as api

        xp = api.array_namespace(X)
        u = X if X.ndim == 1 else X[:, 0]
        smallest = xp.asarray(self._smallest, dtype=X.dtype, device=api.device(X))
        u = xp.where(u == 0, smallest, u)
        return u if X.ndim == 1 else xp.concat([u[:, None], X[:, 1:]], axis=1)

    @property
    def fingerprint_(self) -> Ints:
        """At most 64 salted hashes of fitted rows."""
        return self._seen.hashes

    @property
    def fitted_rows_(self) -> Seen:
        """What is kept of fitted rows, to compare others with."""
        return self._seen

    # -- in words ----------------------------------------------------------------------

    def describe(self) -> str:
        """Return in words what was learned.

        Examples
        --------
        >>> import sigmascale as ss
        >>> p = ss.Predictions(y_std=[1, 2, 1, 2] * 15, error=[2, -4, -2, 4] * 15)
        >>> print(ss.Recalibrator(ss.TemperatureScaling()).fit(p).describe())
        Uncertainties are multiplied by one factor, 2.
        Learned by TemperatureScaling from 60 rows.
        The distribution of z is empirical: the z-scores of 60 rows out of fold.
        """
        check_is_fitted(self, "scale_")
        rows = f"{self.n_rows_} rows"
        if round(self.n_effective_) != self.n_rows_:
            rows += f", weighted, which count as {self.n_effective_:.0f}"
        sentences = [
            f"{scale_words(self.scale_, self.names_)}.",
            f"Learned by {self._method} from {rows}.",
            self._bias_words,
            f"The distribution of z is {self.distribution_.words}.",
            *self.cautions_,
        ]
        return "\n".join(filter(None, sentences))

    @property
    def _method(self) -> str:
        if self.scaling is None:
            return getattr(self, "_saved_method", "BoostedScaling")
        return type(self.scaling).__name__

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return what was learned in words; before that, how it was made."""
        if hasattr(self, "scale_"):
            return self.describe()
        return str(super().__repr__(N_CHAR_MAX))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return what notebooks show."""
        sentences = "".join(f"<p>{escape(x)}</p>" for x in repr(self).splitlines())
        return {"text/plain": repr(self), "text/html": sentences}

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
        check_is_fitted(self, "scale_")
        scaling: Any = self.scaling
        known = SCALINGS.values()
        parameters = scaling.get_params() if type(scaling) in known else {}
        return {
            "scaling": {"method": self._method, "parameters": parameters},
            "bias": self.bias,
            "distribution": self.distribution,
            "hold_out": float(self.hold_out),
            "bounds": check_bounds(self.bounds),
            "random_state": int(self.random_state),
            **{name: getattr(self, own) for name, own in _FITTED.items()},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Recalibrator:
        """Return what was saved; it needs no scaling to be applied."""
        method = state["scaling"].get("method")
        parameters = state["scaling"].get("parameters")
        if not isinstance(method, str) or not isinstance(parameters, dict):
            msg = "it must name its scaling."
            raise InvalidInputError(msg)
        known = {each.__name__: each for each in SCALINGS.values()}
        scaling = known[method](**parameters) if method in known else None
        bounds = state["bounds"]
        new = cls(
            scaling,
            bias=state["bias"],
            distribution=state["distribution"],
            hold_out=state["hold_out"],
            bounds=bounds if any_bound(bounds) else None,
            random_state=state["random_state"],
        )
        new._saved_method = method
        for name, own in _FITTED.items():
            setattr(new, own, state[name])
        return new

    def check(self) -> None:
        """Refuse what no fit has learned."""
        check_bounds(self.bounds)
        n_columns = len(self.names_)
        wrong = self.names_[:1] != ("u",) or len(set(self.names_)) < n_columns
        refuse_if(wrong, "it must have columns of different names, u first")
        used = set(self._seen.columns).union(*(each.columns for each in self._maps))
        refuse_if(max(used) >= n_columns, "its maps must have none but its columns")
        wrong = not self.scale_.log or (self.bias_ is not None and self.bias_.log)
        refuse_if(wrong, "its scale must be a logarithm, and its bias none")
        wrong = self._smallest <= 0 or not self.n_rows_ or self.n_effective_ <= 0
        refuse_if(wrong, "its rows must have positive uncertainties")
        refuse_if(not 0 <= self.hold_out < 1, "`hold_out` must be a share")
        signed = self.bias_ is not None or any_bound(check_bounds(self.bounds))
        wrong = signed and self.distribution_.dim is not None
        refuse_if(wrong, "vectors have neither bias nor bounds")


def _kind_words(n_components: int | None) -> str:
    return (
        "numbers" if n_components is None else f"vectors of {n_components} components"
    )


def scale_words(scale: Additive, names: tuple[str, ...]) -> str:
    """Return what a map does to uncertainties, in words without a full stop.

    >>> scale_words(Additive(constant=float(np.log(2.0))), ("u",))
    'Uncertainties are multiplied by one factor, 2'
    """
    base, level = scale.base, float(np.exp(scale.constant))
    by_one_factor = base.knots is None and not base.b and not base.power
    words = (
        "Uncertainties are multiplied" if by_one_factor else _base_words(base, level)
    )
    if not scale.tables:
        return (
            f"{words} by one factor, {level * base.a:.3g}" if by_one_factor else words
        )
    # the sum of tables lies between the sums of their extremes, and within bounds
    lowest = max(sum(t.values.min() for t in scale.tables), scale.bounds[0])
    highest = min(sum(t.values.max() for t in scale.tables), scale.bounds[1])
    low, high = np.exp(lowest), np.exp(highest)
    if by_one_factor:  # the level belongs to the factors
        low, high = level * base.a * low, level * base.a * high
    else:
        words += ", and multiplied"
    columns = listed([names[j] for j in sorted({axis.column for axis in scale.axes})])
    return f"{words} by factors of {columns}, between {low:.3g} and {high:.3g}"


def _base_words(base: Base, level: float) -> str:
    """Return what takes the place of u: a formula, and its numbers."""
    if base.knots is not None:
        return f"Every u² is replaced by an isotonic fit of {len(base.knots)} knots"
    formula, numbers = "a u", [f"a = {level * base.a:.4g}"]
    if base.b:
        sign = "+" if base.b > 0 else "−"
        formula = f"sqrt(a² u² {sign} b²)"
        numbers.append(f"b = {level * abs(base.b):.4g}")
    if base.power:
        formula += " (u/u₀)^p"
        numbers.append(f"p = {base.power:.3g}")
        numbers.append(f"u₀ = {base.span[0]:.3g}")
    return f"Every u is replaced by {formula}, {listed(numbers)}"
