"""Several targets, recalibrated one by one and yet together."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin

from .._support.checks import (
    Floats,
    as_array,
    as_frame,
    check_count,
    check_pair,
    refuse_other_order,
)
from .._support.notebook import page
from .._support.notices import warn
from .._support.progress import working
from .._support.render import TableFormat, as_table, html_table, shorten
from .._support.weights import effective_number
from ..bins.sums import BinSums
from ..exceptions import InvalidInputError
from ..maps.prediction import rescale
from ..oddities import Profile, informative, sample_of, slips_found, warn_of_repeats
from ..predictions import (
    Predictions,
    group_codes,
    read_table,
    with_positive_uncertainty,
)
from ..recalibrator import LawKind, Recalibrator
from ..scaling.base import VarianceScaler
from ..scaling.linear import LinearScaling
from ..scaling.shift import ShiftKind
from .leaning import all_rows, choose_half_way, lean
from .tables import (
    TargetRows,
    check_infinite,
    check_names,
    paired,
    predict_targets,
    read_columns,
    target_rows,
    weights_of,
)

if TYPE_CHECKING:
    from sklearn.utils import Tags


class TargetScaling(VarianceScaler):
    """The scale of one target, which leans on those of the others.

    :class:`~sigmascale.RecalibratedTargets` makes one for each of its targets.

    Attributes
    ----------
    target_ : str
        The name of the target.
    own_factor_, factor_ : float
        The factor of the target beside what all targets share: as its own rows have it,
        and as it is used, nearer to that of the others the fewer these rows are.
    own_weight_ : float
        The share of the variance that the target's own fit decides on, between 0 and 1;
        the rest is what all targets share, times the factor.

    Examples
    --------
    >>> import numpy as np
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, (500, 2))
    >>> error = rng.normal(scale=u * [2.0, 3.0])
    >>> targets = ss.RecalibratedTargets(names=["gap", "dipole"]).fit(u, error)
    >>> dipole = targets.recalibrators_["dipole"]
    >>> round(dipole.scaling_.factor_, 1), dipole.predict(u[:2, 1]).shape
    (3.1, (2,))
    """

    does = (
        "uncertainties of one target of several are recalibrated by what all targets "
        "share, times a factor of its own, and by its own fit as far as its rows "
        "justify that"
    )

    target_: str
    own_factor_: float
    factor_: float
    own_weight_: float

    def _learn(self, rows: Predictions) -> NoReturn:
        msg = (
            "TargetScaling is one of several, and is not fitted alone. Fit all targets "
            "with RecalibratedTargets, or one with another recalibrator."
        )
        raise InvalidInputError(msg)

    @property
    def is_sound(self) -> bool:
        """Whether these are numbers that are learned, for those from a file."""
        numbers: tuple[Any, ...] = (self.own_factor_, self.factor_, self.own_weight_)
        return (
            all(type(each) is float for each in numbers)
            and all(0 < each < np.inf for each in numbers[:2])
            and 0 <= self.own_weight_ <= 1
        )

    def _learned_words(self) -> str:
        return (
            f"The target is {self.target_!r}; its factor is {self.factor_:.4g} (from "
            f"its own rows alone {self.own_factor_:.4g}), and its own fit has a weight "
            f"of {self.own_weight_:.2g}."
        )


class RecalibratedTargets(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Recalibrate several targets: one recalibrator each, which lean on each other.

    A model that predicts many properties has many rows for some of them and few for
    others. Here all targets are first fitted together, each in its own unit and at its
    own level, which shows the law that they share. A target then has three parts: this
    law; a factor of its own, which is shrunk towards those of the others by empirical
    Bayes, the more the fewer rows it has; and a fit of its own, whose share of the
    variance is how likely the target is of another kind: n / (n + k) for n rows, with
    the k that is best for rows that were not seen, and at least 0.3, before its errors
    are looked at. With few rows it leans on the others, unless it plainly differs, and
    with many it stands by itself.

    Parameters
    ----------
    scaling : recalibrator of uncertainties, optional
        What learns the scale of all targets together and of each; by default
        ``LinearScaling()``.
    law : {"empirical", "normal"}, default "empirical"
        The law of errors; each target has its own.
    shift : {None, "constant", "auto"}, default None
        Whether predictions are shifted; each target has its own shift.
    by : int or str, optional
        The column of X that holds the labels of targets, if the table is a *long* one
        with a row for each entry. By default it is a *wide* one, with a column for
        each target.
    names : list of str, optional
        The names of the targets of a wide table; by default the columns of y, or y0,
        y1, ... if these have no names.
    random_state : int, default 0
        Seed of the folds.

    Attributes
    ----------
    recalibrators_ : dict of str to Recalibrator
        The recalibrator of each target, by its name; each can predict, be saved,
        watched and exported alone. Only scales lean on each other.
    half_way_ : float
        The number of rows k at which a target's own fit and what all share weigh the
        same; infinite if what all share does for all.
    is_column_ : bool
        Whether predictions have the shape (n,).
    uncertainty_columns_ : list of int or None
        The column of X with the uncertainties of each target, of a wide table.

    Notes
    -----
    *Wide tables.* X begins with the uncertainties of the targets; what follows are
    features, which all targets share. Where the columns of X and of y have names that
    match (gap and u_gap, homo and u_homo), these say which uncertainty belongs to which
    error; otherwise their order does, and names that contradict it are refused. An
    entry of y that
    is missing (NaN, or None) is left out, whatever its uncertainty; an error without an
    uncertainty is refused. In `predict`, an uncertainty that is missing stays so.
    Entries of one row belong together in cross-validation.

    *Long tables.* X has one column of uncertainties, the first, and one of labels, and
    y is one column.

    *Units.* Targets may have units of their own. Features are taken as they are: a
    template that adds a feature to the uncertainty, as ComponentScaling does, gains
    nothing from targets in other units.

    See Also
    --------
    validate : verdicts on several targets, with one error rate; see `split_targets`.

    References
    ----------
    C. N. Morris, J. Am. Stat. Assoc. 78, 47 (1983), doi:10.1080/01621459.1983.10477920;
    R. C. Paule and J. Mandel, J. Res. Natl. Bur. Stand. 87, 377 (1982),
    doi:10.6028/jres.087.022

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, (1000, 3))
    >>> error = rng.normal(scale=u * [1.5, 2.0, 2.5])
    >>> error[50:, 2] = np.nan  # known for few rows
    >>> targets = RecalibratedTargets(names=["gap", "dipole", "alpha"]).fit(u, error)
    >>> targets.predict(u).shape
    (1000, 3)
    >>> print(targets.to_table())
    target  rows  own factor  factor  weight of own fit
    ---------------------------------------------------
    gap     1000        1.47    1.48               0.41
    dipole  1000        2.05    2.05               0.36
    alpha     50        2.56    2.53               0.30
    """

    # groups keep together what belongs together, here as in every splitter of groups
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}

    recalibrators_: dict[str, Recalibrator]
    half_way_: float
    uncertainty_columns_: list[int] | None
    columns_: list[str] | None

    def __init__(
        self,
        scaling: VarianceScaler | None = None,
        *,
        law: LawKind = "empirical",
        shift: ShiftKind | None = None,
        by: int | str | None = None,
        names: list[str] | None = None,
        random_state: int = 0,
    ) -> None:
        self.scaling = scaling
        self.law = law
        self.shift = shift
        self.by = by
        self.names = names
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from the errors of a calibration set.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_targets + n_features)
            Conditioning table: the uncertainties of all targets, and then features. Of
            a long table: the uncertainty, and then features, of which one is a label.
        y : array-like or data frame of shape (n, n_targets)
            Errors, reference minus prediction; NaN where they are missing. Of a long
            table: shape (n,).
        groups : array-like of shape (n,), optional
            Labels; rows with the same label belong together, as the atoms of one
            structure do.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, at least 0. Only their ratios matter; 0 leaves a row
            out.

        Returns
        -------
        self
        """
        refuse_other_order(X=X, y=y, groups=groups, sample_weight=sample_weight)
        self._template()  # is checked before anything is read
        table = read_table(X)
        self._compare_columns(X, table, fitting=True)
        targets = self._targets(table, y, groups, sample_weight)
        one_column = as_frame(y, "y") is None and as_array(y, "y").ndim == 1
        self.is_column_ = self.by is not None or one_column
        if groups is None:
            largest = max(targets, key=lambda each: each.rows.n_rows)
            warn_of_repeats(largest.rows.changed(groups=None))
        return self.fit_rows(targets)

    def fit_rows(self, targets: Sequence[TargetRows]) -> Self:
        """Learn from rows of each target that are checked, or will be.

        Parameters
        ----------
        targets : list of TargetRows
            The rows of each target, with errors;
            :func:`sigmascale.frames.fit` has some of lazy frames.

        Returns
        -------
        self
        """
        template = self._template()
        seed = check_count(self.random_state, "random_state", least=0)
        positive = [_positive(each) for each in targets]
        learning = _informative(positive)
        found = [
            Recalibrator(
                TargetScaling(), law=self.law, shift=self.shift, random_state=seed
            )
            for _ in targets
        ]
        with working("fitting RecalibratedTargets"):
            categorical = getattr(template, "categorical", None)
            learning = [
                each._learn_shift(rows, categorical)
                for each, rows in zip(found, learning, strict=True)
            ]
            self.half_way_, unseen = choose_half_way(learning, template, seed)
            leanings = lean(learning, template)
        for k, (target, rows, leaning) in enumerate(
            zip(targets, positive, leanings, strict=True)
        ):
            scaling = TargetScaling()
            scaling.target_ = target.name
            scaling.own_factor_, scaling.factor_ = leaning.own_factor, leaning.factor
            scaling.own_weight_ = leaning.weight(self.half_way_)
            found[k].scaling_ = scaling
            for each in (scaling, found[k]):
                each.map_ = leaning.root(self.half_way_)
                each.n_samples_fit_ = rows.n_rows
                if rows.weights is not None:
                    each.n_effective_ = effective_number(rows.weights)
                each.min_uncertainty_ = float(rows.uncertainty.min())
                each.seen_ = Profile.of(rows)
                each.n_features_in_ = len(rows.columns)
                if hasattr(self, "feature_names_in_"):
                    each.feature_names_in_ = np.array(rows.names, dtype=object)
            scale = rescale(scaling.map_, learning[k]) if unseen is None else unseen[k]
            with target.told():
                found[k]._complete(learning[k], scale)
        self.recalibrators_ = {
            target.name: each for target, each in zip(targets, found, strict=True)
        }
        return self

    def predict(self, X: Any) -> Floats:
        """Return recalibrated uncertainties, finite and positive.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_targets + n_features)
            Conditioning table with the columns seen in `fit`. Wide lazy frames go to
            :func:`sigmascale.frames.predict`.

        Returns
        -------
        array of shape (n, n_targets)
            NaN where an uncertainty is missing. Shape (n,) if y was one column.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        table = read_table(X)
        self._compare_columns(X, table, fitting=False)
        maps = {name: each._predict_rows for name, each in self.recalibrators_.items()}
        targets = target_rows(
            table, list(maps), by=self.by, order=self.uncertainty_columns_
        )
        found = predict_targets(targets, maps, wide=self.by is None)
        return found.ravel() if self.is_column_ else found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean log-likelihood of all known errors; higher is better.

        Parameters
        ----------
        X : array-like or data frame of shape (n, n_targets + n_features)
            Conditioning table with the columns seen in `fit`.
        y : array-like or data frame of shape (n, n_targets)
            Errors, reference minus prediction; NaN where they are missing.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, at least 0.

        Returns
        -------
        float
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        refuse_other_order(X=X, y=y, sample_weight=sample_weight)
        table = read_table(X)
        self._compare_columns(X, table, fitting=False)
        total, n = 0.0, 0.0
        for target in self._targets(table, y, None, sample_weight, fitting=False):
            recalibrator, rows = self.recalibrators_[target.name], target.rows
            if not rows.n_rows:
                continue
            with target.told():
                left = rows.errors - recalibrator._shift_of(rows)
                e, u = check_pair(left, recalibrator._predict_rows(rows))
            total -= rows.total * BinSums.of_all(e, u, rows.weights).nll()
            n += rows.total
        if not n:
            msg = "`y` must have an error that is known; all are missing."
            raise InvalidInputError(msg)
        return total / n

    def describe(self) -> str:
        """Return in words what is done to the targets, and what was learned.

        Returns
        -------
        str
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        factors = [each.factor_ for each in self.scalings.values()]
        rows = [each.n_samples_fit_ for each in self.recalibrators_.values()]
        alone = (
            "what all share does for all of them"
            if np.isinf(self.half_way_)
            else f"the fit of one with {self.half_way_:g} rows weighs a half"
        )
        count = f"{len(rows)} targets" if len(rows) > 1 else "1 target"
        return (
            f"{count}, of {min(rows)} to {max(rows)} rows, are recalibrated by what "
            f"they share ({self._template().does}), each with a factor of its own, "
            f"shrunk towards the others: {min(factors):.4g} to {max(factors):.4g}; "
            f"{alone}."
        )

    def to_table(self, format: TableFormat = "text") -> str:
        """Return what was learned of each target as text, Markdown or LaTeX.

        Parameters
        ----------
        format : {"text", "markdown", "latex"}, default "text"
            How the table is written.

        Returns
        -------
        str
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        return as_table(_HEADER, self._lines(), format)

    def _lines(self) -> list[tuple[str, ...]]:
        return [
            (
                shorten(name, 24),
                str(each.n_samples_fit_),
                f"{each.own_factor_:.3g}",
                f"{each.factor_:.3g}",
                f"{each.own_weight_:.2f}",
            )
            for name, each in self.scalings.items()
        ]

    @property
    def scalings(self) -> dict[str, TargetScaling]:
        """The scale of each target, by its name."""
        found: dict[str, Any] = self.recalibrators_
        return {name: each.scaling_ for name, each in found.items()}

    @property
    def is_sound(self) -> bool:
        """Whether this can be what was learned, for what comes from a file."""
        template: object = self.scaling
        half_way: object = self.half_way_
        return (
            isinstance(template, VarianceScaler | None)
            and (self.names is None or list(self.names) == list(self.recalibrators_))
            and type(self.random_state) is int
            and isinstance(half_way, float)
            and half_way > 0
            and all(type(each) is TargetScaling for each in self.scalings.values())
            and (self.columns_ is None or len(self.columns_) == self.n_features_in_)
        )

    def _template(self) -> VarianceScaler:
        """Return what learns scales."""
        given: object = LinearScaling() if self.scaling is None else self.scaling
        if not isinstance(given, VarianceScaler) or isinstance(given, Recalibrator):
            msg = (
                "`scaling` must be a recalibrator of uncertainties, such as "
                f"LinearScaling(); found {self.scaling!r}."
            )
            raise InvalidInputError(msg)
        return given

    def _targets(
        self,
        table: Predictions,
        y: Any,
        groups: Any,
        sample_weight: Any,
        *,
        fitting: bool = True,
    ) -> list[TargetRows]:
        """Return the rows with errors of each target; after `fit`, of its targets."""
        if y is None:
            msg = (
                "This RecalibratedTargets estimator requires y to be passed, but the "
                "target y is None. Pass the errors of the calibration set."
            )
            raise InvalidInputError(msg)
        errors, found = read_columns(y, "y")
        labels = group_codes(groups, table.columns[0], "X")
        names = () if fitting else tuple(self.recalibrators_)
        if self.by is not None:
            if errors.shape[1] != 1:
                msg = (
                    "`y` must be one column, as `by` says that the table is a long "
                    f"one; found shape {errors.shape}."
                )
                raise InvalidInputError(msg)
            self.uncertainty_columns_ = None
        else:
            if fitting:
                names = self._name_targets(table, found, errors.shape[1])
            elif errors.shape[1] != len(names):
                msg = (
                    f"`y` must have a column for each of {len(names)} targets; found "
                    f"shape {errors.shape}."
                )
                raise InvalidInputError(msg)
            elif found is not None:
                errors = errors[:, paired(names, found, "y")]
            if labels is None:  # entries of one row belong together
                labels = np.arange(table.n_rows)
        check_infinite(
            errors, names if self.by is None and names else "y", table.n_rows
        )
        return target_rows(
            table,
            names or None,
            by=self.by,
            order=self.uncertainty_columns_,
            errors=errors,
            groups=labels,
            weights=weights_of(sample_weight, table.n_rows),
        )

    def _name_targets(
        self, table: Predictions, found: tuple[str, ...] | None, n_targets: int
    ) -> tuple[str, ...]:
        """Return the names of the targets, and find the uncertainties of each."""
        names = check_names(self.names, found, n_targets)
        self.uncertainty_columns_ = list(range(n_targets))
        called = names if found is None and self.names is not None else found
        if called is not None and self.columns_ is not None:
            columns = table.names[:n_targets]
            self.uncertainty_columns_ = paired(called, columns, "X")
        return names

    def _compare_columns(self, X: Any, table: Predictions, *, fitting: bool) -> None:
        """Remember the columns of a table in `fit`, and compare them after it."""
        from sklearn.utils.validation import validate_data

        if not fitting and len(table.columns) == 1 < self.n_features_in_:
            msg = (
                f"X has 1 features, but RecalibratedTargets is expecting "
                f"{self.n_features_in_} features as input. Reshape your data to one "
                "column per target and feature, uncertainties first."
            )
            raise InvalidInputError(msg)
        named = hasattr(X, "columns")
        shaped = X if named else np.empty((table.n_rows, len(table.columns)))
        validate_data(self, shaped, skip_check_array=True, reset=fitting)
        # scikit-learn looks at names that are text; those of pandas may be numbers
        columns = list(table.names) if named else None
        if fitting:
            self.columns_ = columns
        elif columns and self.columns_ and columns != self.columns_:
            if set(columns) != set(self.columns_):
                return  # other names, but as many columns
            msg = (
                f"X must have its columns in the order of fit, "
                f"{', '.join(self.columns_)}; found {', '.join(columns)}. Select them "
                "in that order."
            )
            raise InvalidInputError(msg)

    def _html_repr(self) -> str:
        """Return what notebooks show; scikit-learn asks, and shows a diagram else."""
        if not hasattr(self, "recalibrators_"):
            return str(super()._html_repr())
        tables = {"Targets": html_table(_HEADER, self._lines())}
        return page([escape(self.describe())], "", tables)

    def __sklearn_tags__(self) -> Tags:
        """Say to scikit-learn what input is for: uncertainties are positive."""
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        assert tags.regressor_tags is not None
        tags.regressor_tags.poor_score = True
        return tags


_HEADER = ("target", "rows", "own factor", "factor", "weight of own fit")


def _positive(target: TargetRows) -> Predictions:
    """Return the rows of a target, whose uncertainties are not 0; warn of slips."""
    if not target.rows.n_rows:
        msg = f"target {target.name!r} has no known error. Leave it out."
        raise InvalidInputError(msg)
    with target.told():
        rows = with_positive_uncertainty(target.rows)
        for words, kind in slips_found(rows, sample_of(rows)):
            warn(words, kind, stacklevel=4)
    return rows


def _informative(targets: list[Predictions]) -> list[Predictions]:
    """Return rows whose errors can be squared and are not all 0 in all targets."""
    errors = informative(all_rows(targets)).errors
    ends = np.cumsum([each.n_rows for each in targets])[:-1]
    return [
        each.changed(error=part)
        for each, part in zip(targets, np.split(errors, ends), strict=True)
    ]
