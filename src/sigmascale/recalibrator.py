"""The recalibrator: bias, scale and distribution of errors, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from . import persistence
from ._support.checks import (
    Floats,
    Ints,
    check_choice,
    check_column,
    check_count,
    is_real,
    refuse_values,
    rounded,
)
from ._support.notices import quiet, row_number, warn
from ._support.progress import working
from ._support.text import listed, quoted
from .additive import Additive
from .boosting import boost
from .diagnostics import informative, warn_of_oddities
from .distributions import (
    MOST_QUANTILES,
    Bounds,
    Distributions,
    QuantileTable,
    ZDistribution,
    any_bound,
    check_bounds,
)
from .exceptions import (
    AbsurdScaleWarning,
    ExtrapolationWarning,
    FewRowsWarning,
    InvalidInputError,
    MissingFeatureWarning,
    UnseenCategoryWarning,
    ZeroUncertaintyWarning,
)
from .folds import (
    N_FOLDS,
    canonical_order,
    divided,
    largest_counted,
    make_folds,
    mean,
    simplest,
    some,
    standard_error,
)
from .persistence import (
    by_name,
    floats,
    index,
    integers,
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
from .predictions import Predictions, check_predictions
from .scaling import (
    SCALINGS,
    BoostedScaling,
    Learned,
    Scaling,
    boosted_map,
    codes_of,
    linear_base,
    quantile_axes,
)

LEAST_FOR_SIGN = 40  # rows; with fewer, the distribution is that of ±|z|
LEAST_FOR_BIAS = 100  # fewer do not tell whether a bias is worth it
NUMBERS_OF_TABLES, ROWS_PER_TABLE = (1, 2, 5), 200
ABSURD = 3.0  # times the largest error: no uncertainty should be larger
DECISIVE = 0.5  # share of the sum of z² that a few rows have if they decide
NARROW = 1.3  # ±1.96 u hold 95 % of normal errors; if this does, outliers raised u
TENTHS = np.arange(1, 10) / 10
WORTH_WORDS, SURE = 0.25, 5.0  # a bias in units of u, and in standard errors
MANY = 100_000  # rows; fewer take no time, or have a bar of their own


# -- what a fit keeps of its rows, to compare others with ------------------------------

SHARES = (0.0, 0.05, 0.5, 0.95, 1.0)  # of the rows, below each quantile
N_HASHES = 64  # of rows that are kept
DISTINCT = 0.9  # share of rows that differ, without which equal ones mean nothing
# Of new rows from the same source, 2 of n + 1 are expected outside the range of n, and
# hardly any far outside: as far again from the median as the end of the range.
FAR, OUTSIDE = 10, 20  # of n + 1 rows, so many more than expected that it is told
LEAST_SHARE, FEW = 0.05, 10  # outside, however many there were in the fit
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


@stored(
    columns=many(index), quantiles=floats, missing=integers, hashes=integers, salt=index
)
@dataclass(frozen=True, eq=False)
class Seen:
    """What is kept of fitted rows: ranges, and hashes that recognise a few of them.

    Attributes
    ----------
    columns : tuple of int
        The columns of numbers; 0 is the uncertainty.
    quantiles : array of shape (n_columns, 5)
        Their smallest and largest values, and quantiles in between.
    missing : array of int
        Rows in which they are missing.
    hashes : array of int
        At most 64 of the smallest hashes of u and error, salted: no values; none if
        many rows are the same.
    salt : int
        What makes hashes of the same row differ from set to set.
    """

    columns: tuple[int, ...]
    quantiles: Floats
    missing: Ints
    hashes: Ints
    salt: int

    @classmethod
    def of(cls, p: Predictions) -> Seen:
        """Return what is kept of rows with errors."""
        columns, quantiles, missing = [], [], []
        for position, column in enumerate(p.columns):
            known = column[~np.isnan(column)] if p.categories[position] is None else ()
            if len(known):
                columns.append(position)
                quantiles.append(np.quantile(known, SHARES, method="nearest"))
                missing.append(column.size - len(known))
        salt = int(np.bitwise_xor.reduce(_hashes(p, 0)))
        hashes = np.unique(_hashes(p, salt))
        kept = hashes[:N_HASHES] if hashes.size > DISTINCT * p.n_rows else hashes[:0]
        return cls(tuple(columns), np.array(quantiles), np.array(missing), kept, salt)

    def check(self) -> None:
        """Refuse parts that do not fit together."""
        n, q = len(self.columns), self.quantiles
        wrong: Any = q.shape != (n, len(SHARES)) or self.missing.shape != (n,) or not n
        refuse_if(wrong, "each column of fitted rows must have its quantiles")
        wrong = (np.diff(self.columns) <= 0).any() or self.columns[0] != 0
        refuse_if(wrong, "columns of fitted rows must be in order")
        wrong = (np.diff(q, axis=1) < 0).any() or q[0, 0] <= 0
        refuse_if(wrong, "quantiles of fitted rows must not descend")
        wrong = self.hashes.ndim != 1 or self.hashes.size > N_HASHES
        refuse_if(wrong, f"there must be {N_HASHES} hashes at most")

    def share_of(self, p: Predictions) -> float:
        """Return about which share of rows with errors were among the fitted ones."""
        if not self.hashes.size or p.error is None:
            return 0.0
        found = _hashes(p, self.salt)
        small = found[found <= self.hashes[-1]]
        return float(np.isin(small, self.hashes).mean()) if small.size else 0.0

    def warn_of_others(self, p: Predictions, n_fit: int, used: set[int]) -> None:
        """Warn of rows far outside, and of gaps in columns that had none."""
        for position, quantiles, missing in zip(
            self.columns, self.quantiles, self.missing, strict=True
        ):
            column = p.columns[position]
            if p.categories[position] is not None:
                continue
            low, high = column.min(), column.max()
            if np.isnan(low):
                column = column[~np.isnan(column)]
                if position in used and not missing:
                    warn(
                        f"{p.n_rows - column.size} of {p.n_rows} rows have no "
                        f"{quoted(p.names[position])}, which was never missing in fit: "
                        "their uncertainties are a guess. Fill it in, or leave these "
                        "out.",
                        MissingFeatureWarning,
                        stacklevel=4,
                    )
                if not column.size:
                    continue
                low, high = column.min(), column.max()
            if low >= quantiles[0] and high <= quantiles[-1]:
                continue
            told = _outside(column, quantiles, n_fit, ratios=position == 0)
            if told:
                first, early, _, late, last = (f"{each:.3g}" for each in quantiles)
                warn(
                    f"{told} of {p.n_rows} rows ({told / p.n_rows:.0%}) lie outside "
                    f"the {quoted(p.names[position])} that was seen in fit: {low:.3g} "
                    f"to {high:.3g} here, {first} to {last} there (90 % of them "
                    f"{early} to {late}). Are units and population the same? What was "
                    "learned does not reach that far.",
                    ExtrapolationWarning,
                    stacklevel=4,
                )


def _hashes(p: Predictions, salt: int) -> Ints:
    """Return a hash of uncertainty and error of each row, of 52 bits."""
    found = np.full(p.n_rows, salt, dtype=np.uint64)
    for column in (p.y_std, p.e2):
        found ^= (column + 0.0).view(np.uint64)
        for shift, factor in zip((30, 27), _MIX, strict=True):  # as of splitmix64
            found = (found ^ (found >> np.uint64(shift))) * factor
        found ^= found >> np.uint64(31)
    return (found >> np.uint64(12)).astype(np.int64)


def _outside(x: Floats, quantiles: Floats, n_fit: int, *, ratios: bool) -> int:
    """Return how many rows are outside a range, if that is worth telling; or else 0."""
    low, _, median, _, high = quantiles
    outside = (x < low) | (x > high)
    values = x[outside]
    if ratios:  # uncertainties differ by factors
        low, median, high, values = (
            np.log(each) for each in (low, median, high, values)
        )
    with np.errstate(over="ignore", invalid="ignore"):  # near the largest numbers
        far = (values > 2 * high - median) | (values < 2 * low - median)
    expected = x.size / (n_fit + 1)
    least = max(OUTSIDE * expected, LEAST_SHARE * x.size, FEW)
    worth = np.count_nonzero(far) > FAR * expected or values.size > least
    return values.size if worth else 0


# -- the recalibrator ------------------------------------------------------------------

BiasKind = Literal["constant", "auto"]
_FITTED = {  # what a fit learns: as files name it, and as attributes
    **{"names": "names_", "n_rows": "n_rows_", "n_effective": "n_effective_"},
    **{"smallest": "_smallest", "scale_map": "scale_", "bias_map": "bias_"},
    **{"z": "distribution_", "seen": "_seen", "bias_words": "_bias_words"},
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
    >>> round(float(((low <= q.truth) & (q.truth <= high)).mean()), 2)
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
        self._seen = Seen.of(rows)
        self.names_, self.n_rows_ = rows.names, rows.n_rows
        self.n_effective_, self._smallest = float(rows.total), float(rows.y_std.min())
        self.cautions_, self._bias_words = (), ""
        is_known = bool(rows.e2.any())  # errors that are all 0 tell nothing
        rows = informative(rows)
        if rows.n_rows < MANY:
            return self._fit(rows, scaling, is_known=is_known)
        with working(f"fitting {type(scaling).__name__}"):
            return self._fit(rows, scaling, is_known=is_known)

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

    def _fit(self, rows: Predictions, scaling: Scaling, *, is_known: bool) -> Self:
        """Learn from checked rows."""
        held = None
        if self.hold_out:
            seen, out = divided(rows, self.hold_out, self.random_state)
            held, rows = rows.take(out), rows.take(seen)
        self.bias_ = None
        if self.bias is not None and is_known:
            self.bias_, self._bias_words, rows = _learn_bias(
                rows, self.bias, self.random_state
            )
        learned = scaling.learn(rows)
        self.scale_ = learned.map
        self.distribution_ = ZDistribution(dim=rows.components)
        if self.distribution == "empirical" and is_known:
            if held is not None:
                left = _corrected(held, self.bias_)
                z = left.e / self.scale_.of_rows(left)
                self.distribution_ = _one_table(left, z, infinite=True)
            else:
                self.distribution_ = _learn_distribution(
                    rows, scaling, learned, self.random_state
                )
        if is_known:
            self.cautions_ = _cautions(rows, learned)
            if self.bias is None and not rows.is_vector:
                self.cautions_ += _bias_left(rows, self.scale_.of_rows(rows))
        return self

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
        if (
            isinstance(p, Predictions)
            or not hasattr(p, "ndim")
            or hasattr(p, "columns")
        ):
            return self.scale_.of_rows(self._matched(p))
        return self.scale_.of_array(self._checked_array(p))

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
        scale, z = self.scale_.of_rows(rows), self.distribution_
        new = _corrected(rows, self.bias_)
        location = new.y_pred
        if location is None:
            location = z.centre(p.n_rows)
            if self.bias_ is not None and p.error is None:
                location = self.bias_.of_rows(rows)  # of errors that are not known
        share = self._seen.share_of(rows)
        found = Distributions.of(location, scale, z, bounds, share)
        return new.changed(
            y_std=scale,
            columns=(scale, *p.columns[1:]),
            names=p.names,
            categories=p.categories,
            distributions=found,
        )

    def _matched(self, p: Any) -> Predictions:
        """Return predictions with the columns of `fit`; warn of what is unlike it."""
        rows = check_predictions(p, errors=False)
        numbered = tuple(f"X{j}" for j in range(1, len(rows.names)))
        if rows.names[1:] != self.names_[1:]:
            if rows.names[1:] == numbered and len(rows.names) == len(self.names_):
                rows = rows.changed(names=self.names_)
            elif set(self.names_) <= set(rows.names):
                rows = rows.with_features(self.names_[1:])
            else:
                msg = (
                    "Predictions must have the features of fit: "
                    f"{listed(self.names_[1:])}; found "
                    f"{listed(rows.names[1:]) if rows.names[1:] else 'none'}."
                )
                raise InvalidInputError(msg, "features", columns=list(self.names_[1:]))
        fitted, given = self.distribution_.dim, rows.components
        if given != fitted and (rows.y_pred is not None or rows.error is not None):
            fitted_to, found = (
                "numbers" if d is None else f"vectors of {d} components"
                for d in (fitted, given)
            )
            msg = f"The recalibrator was fitted to {fitted_to}; found {found}."
            raise InvalidInputError(msg, "vectors")
        maps = [each for each in (self.scale_, self.bias_) if each is not None]
        used = set().union(*(each.columns for each in maps))
        for axis in {a.column: a for each in maps for a in each.axes}.values():
            if axis.labels is None:
                continue
            labels = rows.labels(axis.column)
            known = np.array([each in axis.labels for each in labels.labels])
            unseen = int(np.count_nonzero(~known[labels.codes]))
            if unseen:
                warn(
                    f"{unseen} of {rows.n_rows} rows have a label of "
                    f"{quoted(rows.names[axis.column])} that was not seen in fit, or "
                    "too rarely to have a factor; they take the average one.",
                    UnseenCategoryWarning,
                    stacklevel=3,
                )
        self._seen.warn_of_others(rows, self.n_rows_, used)
        return rows

    def _checked_array(self, X: Any) -> Any:
        """Return an array with as many columns as `fit` had, and positive u."""
        n_columns = len(self.names_)
        found = 1 if X.ndim == 1 else X.shape[-1]
        if X.ndim not in (1, 2) or found != n_columns:
            msg = (
                f"An array must have {n_columns} columns, u first: "
                f"{listed(self.names_)}; found shape {tuple(X.shape)}."
            )
            raise InvalidInputError(msg)
        if self.scale_.labelled:
            names = [self.names_[j] for j in sorted(self.scale_.labelled)]
            msg = f"Columns of labels ({listed(names)}) need Predictions, not an array."
            raise InvalidInputError(msg)
        if not isinstance(X, np.ndarray):
            import array_api_compat as api

            xp, u = api.array_namespace(X), X if X.ndim == 1 else X[:, 0]
            least = xp.asarray(self._smallest, dtype=X.dtype, device=api.device(X))
            u = xp.where(u == 0, least, u)
            return u if X.ndim == 1 else xp.concat([u[:, None], X[:, 1:]], axis=1)
        table = X.reshape(len(X), n_columns).astype(np.float64)
        u = check_column(table[:, 0], "u")
        zeros = int(np.count_nonzero(u == 0))
        if zeros:
            warn(
                f"{zeros} of {u.size} uncertainties are exactly 0; they were lifted to "
                f"{self._smallest:g}, the smallest one seen in fit.",
                ZeroUncertaintyWarning,
                stacklevel=3,
            )
            table[:, 0] = np.where(u == 0, self._smallest, u)
        remedy = "Drop or repair these rows."
        refuse_values(u < 0, u, "u", "positive", remedy, "not-positive")
        return table

    @property
    def fingerprint_(self) -> Ints:
        """At most 64 salted hashes of fitted rows."""
        return self._seen.hashes

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
        method, parameters = (
            state["scaling"].get(name) for name in ("method", "parameters")
        )
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
        maps = [each for each in (self.scale_, self.bias_) if each is not None]
        wrong = self.names_[:1] != ("u",) or len(set(self.names_)) < n_columns
        refuse_if(wrong, "it must have columns of different names, u first")
        used = set().union(self._seen.columns, *(each.columns for each in maps))
        refuse_if(max(used) >= n_columns, "its maps must have none but its columns")
        wrong = not self.scale_.log or (self.bias_ is not None and self.bias_.log)
        refuse_if(wrong, "its scale must be a logarithm, and its bias none")
        wrong = self._smallest <= 0 or not self.n_rows_ or self.n_effective_ <= 0
        refuse_if(wrong, "its rows must have positive uncertainties")
        refuse_if(not 0 <= self.hold_out < 1, "`hold_out` must be a share")
        signed = self.bias_ is not None or any_bound(check_bounds(self.bounds))
        wrong = signed and self.distribution_.dim is not None
        refuse_if(wrong, "vectors have neither bias nor bounds")


def scale_words(scale: Additive, names: tuple[str, ...]) -> str:
    """Return what a map does to uncertainties, in words without a full stop.

    >>> scale_words(Additive(constant=float(np.log(2.0))), ("u",))
    'Uncertainties are multiplied by one factor, 2'
    """
    base, factor = scale.base, float(np.exp(scale.constant))
    if base.knots is not None:
        words = f"Every u² is replaced by an isotonic fit of {len(base.knots)} knots"
    elif base.b:
        sign = "+" if base.b > 0 else "−"
        a, b = (f"{factor * abs(each):.4g}" for each in (base.a, base.b))
        words = f"Every u is replaced by sqrt(a² u² {sign} b²), a = {a} and b = {b}"
    elif not scale.tables:
        return f"Uncertainties are multiplied by one factor, {base.a * factor:.3g}"
    else:
        words = ""
    if not scale.tables:
        return words
    columns = listed([names[j] for j in sorted({a.column for a in scale.axes})])
    values = [table.values for table in scale.tables]
    low, high = sum(v.min() for v in values), sum(v.max() for v in values)
    low, high = max(low, scale.bounds[0]), min(high, scale.bounds[1])
    if not words:  # the level belongs to the factors
        low, high = (base.a * factor * np.exp(each) for each in (low, high))
        words = "Uncertainties are multiplied"
    else:
        low, high = np.exp(low), np.exp(high)
        words += ", and multiplied"
    return f"{words} by factors of {columns}, between {low:.3g} and {high:.3g}"


# -- the bias --------------------------------------------------------------------------


def _corrected(rows: Predictions, bias: Additive | None) -> Predictions:
    """Return rows whose predictions, and errors, have their bias corrected."""
    if bias is None:
        return rows
    by = bias.of_rows(rows)
    if rows.y_pred is not None:
        return rows.changed(y_pred=rows.y_pred + by)
    return rows if rows.error is None else rows.changed(error=rows.error - by)


def _learn_bias(
    rows: Predictions, kind: BiasKind, seed: int
) -> tuple[Additive | None, str, Predictions]:
    """Return the bias, what it gains in words, and rows whose bias is corrected.

    It is learned in units of the scale sqrt(a² u² + b²) that errors have on the whole:
    as the mean of z, or as boosted trees on z. The bias of each row is that of a fit
    which has not seen it.
    """
    if kind == "auto" and rows.total < LEAST_FOR_BIAS:
        words = f"The bias is left alone: {rows.n_rows} rows do not tell it."
        return None, words, rows
    order = canonical_order(rows, rows.errors)
    given, rows = rows, rows.take(order)
    base, w = linear_base(rows, subtract=False), rows.weights
    scale = base(rows.y_std)
    z = rows.errors / scale
    cap = float(np.sqrt(largest_counted(z**2, w)))
    counted = np.clip(z, -cap, cap)
    fold = _bias_folds(rows, np.abs(z), seed)
    centre, centres = mean(counted, w), np.zeros(z.size)
    for k in np.unique(fold):
        rest = np.flatnonzero(fold != k)
        if rest.size:
            centres[fold == k] = mean(counted[rest], some(w, rest))
    said = {"none": np.zeros(z.size), "constant": centres}
    maps: dict[str, Additive | None] = {"none": None}
    maps["constant"] = Additive(base, centre, log=False)
    if kind == "auto":
        axes = quantile_axes(rows, 64, least_rows=1, most_labels=254, by_group=True)
        found = boost(
            axes,
            np.column_stack(codes_of(axes, rows)),
            z - centre,
            fold,
            w,
            loss="squared_error",
            cap=cap,
            max_trees=100,
            learning_rate=0.08,
            depth=3,
            prior_rows=20.0,
            random_state=seed,
        )
        if found.tables:
            said["trees"] = centres + found.out_of_fold
            maps["trees"] = boosted_map(
                base, centre, axes, found.tables, found, 1.0, log=False
            )
    lost = {name: np.minimum((z - x) ** 2, cap**2) for name, x in said.items()}
    chosen = "constant" if kind == "constant" else simplest(lost, rows)
    left = np.empty(z.size)
    left[order] = rows.errors - scale * said[chosen]
    what = {
        "none": "The bias is left alone: rows out of fold would gain nothing.",
        "constant": "The bias is corrected by one number times the scale of the error",
        "trees": "The bias is corrected by boosted trees of u and the features",
    }[chosen]
    if chosen != "none":
        gain, before = lost["none"] - lost[chosen], rows.mean(lost["none"])
        share, error = rows.mean(gain) / before, standard_error(gain, rows) / before
        what += (
            f"; squared errors of rows out of fold fall by {100 * share:.2g} ± "
            f"{100 * error:.1g} %."
        )
    return maps[chosen], what, given.changed(y_pred=None, y_true=None, error=left)


def _bias_folds(rows: Predictions, size: Floats, seed: int) -> Ints:
    """Return the fold of each row: stretches of time, or dealt out at random."""
    if rows.time is None:
        return make_folds(size, rows, seed)
    place = np.empty(rows.n_rows)
    place[np.argsort(rows.time, kind="stable")] = np.arange(rows.n_rows)
    if rows.groups is not None:  # a group stands where its first row does
        first = np.full(int(rows.groups.max()) + 1, np.inf)
        np.minimum.at(first, rows.groups, place)
        place = first[rows.groups]
    # equal places stay together
    rank = np.searchsorted(np.sort(place), place)
    return np.asarray(rank * N_FOLDS // rows.n_rows)


# -- the distribution ------------------------------------------------------------------


def _learn_distribution(
    rows: Predictions, scaling: Scaling, learned: Learned, seed: int
) -> ZDistribution:
    """Return the distribution of z-scores of rows out of fold."""
    order = canonical_order(rows, rows.e)
    fold = np.empty(rows.n_rows, dtype=np.int64)
    ordered = rows.take(order)
    fold[order] = make_folds(ordered.size, ordered, seed)
    scale, w = learned.out_of_fold, rows.weights
    if scale is None:
        scale = _scale_out_of_fold(rows, scaling, learned, fold)
    scale = rounded(scale)  # what is equal in one unit is in all
    z, dim = rows.e / scale, rows.components
    if dim is None and rows.total < LEAST_FOR_SIGN:
        warn(
            f"{rows.n_rows} rows tell little of the distribution of errors: it is "
            f"taken to be that of ±|z|. From {LEAST_FOR_SIGN} rows on it is learned "
            "with its sign.",
            FewRowsWarning,
            stacklevel=5,
        )
        return _one_table(rows, z)
    numbers = [
        n for n in NUMBERS_OF_TABLES if n == 1 or rows.total >= n * ROWS_PER_TABLE
    ]
    n_bins = 1
    if len(numbers) > 1 and np.unique(fold).size > 1:
        losses = {n: _losses(n, z, scale, w, fold) for n in numbers}
        n_bins = simplest(losses, rows)
    return ZDistribution.learn(z, scale, w, n_bins, dim)


def _one_table(
    rows: Predictions, z: Floats, *, infinite: bool = False
) -> ZDistribution:
    """Return the distribution of all z-scores together; of rows held out, infinite."""
    if rows.is_vector or rows.total >= LEAST_FOR_SIGN:
        table = QuantileTable.learn(z, rows.weights, MOST_QUANTILES, infinite=infinite)
    else:
        table = QuantileTable.symmetric(np.abs(z), rows.weights, infinite=infinite)
    n_rows = (max(1, int(rows.total)),)
    return ZDistribution((table,), np.empty(0), n_rows, rows.components)


def _losses(n_bins: int, z: Floats, scale: Floats, w: Any, fold: Ints) -> Floats:
    """Return the CRPS of rows out of fold, with so many bins of the scale."""
    scores = np.empty(z.size)
    for k in np.unique(fold):
        own, rest = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        found = ZDistribution.learn(z[rest], scale[rest], some(w, rest), n_bins)
        of_z = found.by_table("crps", found.codes(scale[own]), z[own])
        scores[own] = scale[own] * of_z
    return scores


def _scale_out_of_fold(
    rows: Predictions, scaling: Scaling, learned: Learned, fold: Ints
) -> Floats:
    """Return the scale of each row by a fit without its fold, at the level of all rows.

    A single enormous error makes the level of the folds that have seen it another one.
    """
    whole = learned.map.of_rows(rows)
    scale, level = np.empty(rows.n_rows), rows.mean(np.log(whole))
    for k in np.unique(fold):
        own, rest = fold == k, np.flatnonzero(fold != k)
        found = whole
        if rest.size:
            part = rows.take(rest)
            with quiet():
                part = informative(part)
                found = scaling.learn(part).map.of_rows(rows)
        scale[own] = found[own] * np.exp(level - rows.mean(np.log(found)))
    return scale


# -- what to be careful about ----------------------------------------------------------


def _cautions(rows: Predictions, learned: Learned) -> tuple[str, ...]:
    """Return what is odd about the scale, in sentences."""
    scale = learned.map.of_rows(rows)
    cautions = []
    size = np.sqrt(rows.e2)
    n_absurd = int(np.count_nonzero(scale > ABSURD * size.max()))
    if n_absurd:
        parts = rows.z2 if rows.weights is None else rows.weights * rows.z2
        largest = np.argsort(-parts, kind="stable")
        share = np.cumsum(parts[largest]) / parts.sum()
        count = 1 + int(np.searchsorted(share, DECISIVE))
        places = largest if rows.places is None else rows.places[largest]
        which = listed([str(row_number(place)) for place in places[:count]], 5)
        cautions.append(
            f"{n_absurd} of {rows.n_rows} recalibrated uncertainties exceed {ABSURD:g} "
            f"times the largest error: {count} row{'s' if count > 1 else ''} (row "
            f"{which}) with a tiny uncertainty and a large error make half of <Z²>, "
            "which the scale sets right. Use quantiles and intervals, which do not "
            "depend on it, or look at these rows."
        )
        warn(cautions[0], AbsurdScaleWarning, stacklevel=5)
    z = size / scale
    held = float(np.quantile(z, 0.95))
    if rows.n_rows >= LEAST_FOR_BIAS and held < NARROW and not n_absurd:
        raised = float(np.exp(rows.mean(np.log(scale / rows.y_std))))
        before = float(np.quantile(rows.size, 0.95))
        how = "raised" if raised > 1 else "changed"
        cautions.append(
            f"A few large errors decide on u, which was {how} {raised:.2g} times for "
            f"their sake, while ±{before:.2g} of the old u hold 95 % of the errors. "
            "Use intervals and quantiles, which hold what they claim."
        )
    return tuple(cautions)


def _bias_left(rows: Predictions, scale: Floats) -> tuple[str, ...]:
    """Return a sentence on the largest bias that no scale mends, if there is one.

    It is the mean of z in a tenth of a column, or of a label, if that is worth words
    and far from chance, groups together.
    """
    z = np.clip(rows.errors / scale, -5, 5)
    wz = z if rows.weights is None else rows.weights * z
    worst, where = 0.0, ""
    for name, x in zip(rows.names, rows.columns, strict=True):
        codes = x  # of labels
        if x.dtype.kind == "f":
            codes = np.searchsorted(np.nanquantile(x, TENTHS), x, side="right")
        k = int(codes.max()) + 1
        parts: Any = wz
        of_part = codes
        if rows.groups is not None:
            parts = np.bincount(rows.groups * k + codes, wz)
            of_part = np.arange(parts.size) % k
        sums, size = np.bincount(codes, wz, k), np.bincount(codes, rows.weights, k)
        spread = np.sqrt(np.bincount(of_part, parts**2, k))
        off = np.where(np.abs(sums) > SURE * spread, sums / np.maximum(size, 1e-300), 0)
        most = float(off[np.argmax(np.abs(off))])
        if abs(most) > max(abs(worst), WORTH_WORDS):
            worst, where = most, name
    if not where:
        return ()
    return (
        f"Predictions are too {'low' if worst > 0 else 'high'} by up to "
        f"{abs(worst):.2g} of the new u along {quoted(where)}, which no scale mends: "
        'bias="auto" may, and validate says where.',
    )
