"""Predictions: the one kind of rows, checked once, where they come in.

Everything in memory is judged, learned from and recalibrated as :class:`Predictions`:
columns with the uncertainty first, errors where they are known, groups and weights
where there are any. Numbers are float64; labels and groups are codes of whole numbers,
whose names are kept once. What lies behind this door trusts what it gets.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from html import escape
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from ._support.checks import (
    EXACT,
    LARGEST,
    SMALLEST,
    Floats,
    Ints,
    as_array,
    as_column,
    as_floats,
    as_frame,
    check_column,
    check_pair,
    check_same_length,
    check_uncertainty,
    from_series,
    is_label,
    no_dates,
    refuse_lazy,
    refuse_other_order,
    refuse_reserved,
    refuse_values,
)
from ._support.forms import ends_of, of_members, of_quantiles
from ._support.labels import Categories, Label
from ._support.notebook import chart, page, ticks_of
from ._support.notices import row_number, rows_at, warn
from ._support.render import html_table
from ._support.weights import check_weights, mean_of, total_of
from .exceptions import InvalidInputError, NotANumberError, ZeroUncertaintyWarning

LARGEST_JUDGED = 1e38  # which trees of scikit-learn take
_TIMES = (datetime.date, datetime.time, datetime.timedelta)

Data = Any  # Predictions, (X, y), (X, y, groups), or (X, y, groups, sample_weight)
Column = npt.NDArray[Any]  # numbers as float64, or codes of labels as int64


class Columns:
    """Columns that can be named or counted; the first is the uncertainty."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def position(self, key: Any, argument: str = "by") -> int:
        """Return the position of the column that `key` names or counts."""
        n_columns = len(self.names)
        if isinstance(key, str):
            if key in self.names:
                return self.names.index(key)
            known = ", ".join(self.names)
            msg = (
                f"`{argument}` must name a column of X; found {key!r}. Columns are: "
                f"{known}."
            )
            raise InvalidInputError(msg)
        if isinstance(key, (bool, np.bool_)) or not isinstance(key, (int, np.integer)):
            msg = f"`{argument}` must be a column's number or name; found {key!r}."
            raise InvalidInputError(msg)
        if not -n_columns <= key < n_columns:
            msg = (
                f"`{argument}` must be a column of X, which has {n_columns} "
                f"feature(s); found {key}. Column 0 is the uncertainty."
            )
            raise InvalidInputError(msg)
        return int(key) % n_columns

    def positions(self, keys: Any, argument: str) -> list[int]:
        """Return the positions of several columns; None stands for none of them."""
        if keys is None:
            return []
        if isinstance(keys, str) or not isinstance(keys, Iterable):
            msg = f"`{argument}` must be a list of columns; found {keys!r}."
            raise InvalidInputError(msg)
        return [self.position(key, argument) for key in keys]


class Predictions(Columns):
    """Predictions with uncertainties, and errors where the truth is known.

    Parameters
    ----------
    y_pred : array-like of shape (n,), optional
        Predictions. They may be left out where only errors, or uncertainties, matter.
    y_std : array-like of shape (n,)
        Standard uncertainties, positive.
    y_true : array-like of shape (n,), optional
        True values; the error is ``y_true - y_pred``.
    error : array-like of shape (n,), optional
        Errors, truth minus prediction, in place of `y_true`.
    features : data frame, dict or array of shape (n, n_features), optional
        Input features: numbers, of which some may be missing (NaN), or labels. Columns
        of an array are named X1, X2, ...
    groups : array-like of shape (n,), optional
        Labels of rows that belong together: repeats of a sample, frames of a
        trajectory.
    weights : array-like of shape (n,), optional
        Weights of the rows, at least 0. Only their ratios matter; rows of weight 0 are
        left out.
    time : array-like of shape (n,), optional
        When each row came.
    minimum : float, optional
        Uncertainties below it, 0 among them, are lifted to it, with a warning that
        counts them. Without it, uncertainties that are not positive are refused.

    Attributes
    ----------
    uncertainty : array
        The standard uncertainties.
    columns : tuple of array
        The uncertainty, and then the features: numbers, or codes of labels.
    names : tuple of str
        What the columns are called; "u" is the uncertainty.
    categories : tuple
        The labels that the codes of a column stand for; None where it holds numbers.
    error : array or None
        Errors, where they are known.
    groups : array of int or None
        The number of each row's group, counted in the order of their labels.
    weights : array or None
        Positive weights, in a unit in which they count rows.
    places : array of int or None
        Where rows were in the table, if those of weight 0 were left out.
    distributions : Distributions or None
        The predictive distributions, if a recalibrator has made them
        (:meth:`sigmascale.Recalibrator.apply`); None stands for normal ones.

    Examples
    --------
    >>> import sigmascale as ss
    >>> p = ss.Predictions([1.0, 2.0], [0.1, 0.2], y_true=[1.1, 1.8])
    >>> p
    Predictions of 2 rows with errors
    >>> p.z.round(1)
    array([ 1., -1.])
    """

    _FIELDS: ClassVar[tuple[str, ...]] = (
        *("columns", "names", "categories", "error", "groups", "weights", "places"),
        *("y_pred", "time", "distributions"),
    )

    columns: tuple[Column, ...]
    names: tuple[str, ...]
    categories: tuple[tuple[Label, ...] | None, ...]
    error: Floats | None
    groups: Ints | None
    weights: Floats | None
    places: Ints | None
    y_pred: Floats | None
    time: npt.NDArray[Any] | None
    distributions: Any
    # what follows from these
    uncertainty: Floats
    n_rows: int
    errors: Floats  # where they are known

    def __init__(
        self,
        y_pred: Any = None,
        y_std: Any = None,
        *,
        y_true: Any = None,
        error: Any = None,
        features: Any = None,
        groups: Any = None,
        weights: Any = None,
        time: Any = None,
        minimum: float | None = None,
    ) -> None:
        given = {"y_pred": y_pred, "y_std": y_std, "y_true": y_true, "error": error}
        others = {"groups": groups, "weights": weights, "time": time}
        refuse_other_order(
            **{k: v for k, v in (given | others).items() if v is not None},
            features=features,
        )
        if y_std is None:
            msg = "`y_std` must be given: the standard uncertainty of each prediction."
            raise InvalidInputError(msg)
        if error is not None and y_true is not None:
            msg = "Pass `y_true`, with `y_pred`, or `error`; not both."
            raise InvalidInputError(msg)
        if y_true is not None and y_pred is None:
            msg = "`y_true` needs `y_pred`: the error is their difference."
            raise InvalidInputError(msg)
        if minimum is not None:
            y_std = lifted(check_column(y_std, "y_std"), minimum)
        predicted = None if y_pred is None else check_column(y_pred, "y_pred")
        if y_true is not None and predicted is not None:
            truth = check_column(y_true, "y_true")
            check_same_length("y_pred", predicted, "y_true", truth)
            error = truth - predicted
        if error is not None:
            e, u = check_pair(error, y_std, "y_std")
        else:
            e, u = None, check_uncertainty(y_std, "y_std")
        if predicted is not None:
            check_same_length("y_std", u, "y_pred", predicted)
        when = None
        if time is not None:
            when = as_column(time, "time")
            check_same_length("y_std", u, "time", when)
        rows = with_named_features(Predictions.of((u,), ("u",), e), features)
        refuse_reserved(rows.names[1:])
        rows = rows.changed(
            groups=group_codes(groups, u, "y_std"), y_pred=predicted, time=when
        )
        self.__dict__.update(vars(rows.weighted(weights, "y_std", "weights")))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        y_pred: str | None = None,
        y_std: str | None = None,
        y_true: str | None = None,
        error: str | None = None,
        variance: str | None = None,
        features: Any = (),
        labels: Sequence[str] = (),
        groups: str | None = None,
        weights: str | None = None,
        time: str | None = None,
        minimum: float | None = None,
    ) -> Self:
        """Return the predictions of a table; columns with plain names find their part.

        Parameters
        ----------
        frame : data frame of pandas, Polars or PyArrow
            The table.
        y_pred, y_std, y_true, error, variance : str, optional
            The columns of predictions, uncertainties (or variances) and true values, or
            errors. What is not named is guessed from the names of columns; if that
            cannot be told, the message asks. Without true values there are no errors.
        features : list of str or "all", default ()
            Columns of input features. "all" takes all columns of numbers that have no
            other part; one that only counts rows is an index and is left out, with a
            warning.
        labels : list of str, default ()
            Columns whose values are labels, numbers too. Text always is.
        groups, weights, time : str, optional
            Columns of groups, weights and times.
        minimum : float, optional
            Uncertainties below it are lifted to it, with a warning that counts them.

        Returns
        -------
        Predictions

        Examples
        --------
        >>> import polars as pl
        >>> import sigmascale as ss
        >>> table = pl.DataFrame(
        ...     {"y": [1.1, 1.8], "pred": [1.0, 2.0], "std": [0.1, 0.2]}
        ... )
        >>> ss.Predictions.from_frame(table, y_true="y")
        Predictions of 2 rows with errors
        """
        from .roles import Choice, find_columns

        table = as_frame(frame, "frame")
        if table is None:
            msg = (
                "`frame` must be a data frame of pandas, Polars or PyArrow; found "
                f"{type(frame).__name__}."
            )
            raise InvalidInputError(msg)
        every = isinstance(features, str) and features == "all"
        others = [name for name in (groups, time) if name is not None]
        choice = Choice(
            error=error,
            reference=y_true,
            prediction=y_pred,
            uncertainty=y_std,
            variance=variance,
            features=() if every else tuple(features),
            all_features=every,
            exclude=others if every else (),
            labels=tuple(labels),
            weight=weights,
        )
        roles = find_columns(table, choice, groups=groups, time=time)

        def column(name: str | None) -> Any:
            return None if name is None else table[name].to_native()

        u = column(roles.uncertainty)
        if roles.is_variance:
            u = check_column(u, roles.uncertainty)
            must = "at least 0, as variances are|Drop or repair these rows."
            refuse_values(u < 0, u, roles.uncertainty, must)
            u = np.sqrt(u)
        truth, *_ = roles.error if len(roles.error) == 2 else [None]
        errors, *_ = roles.error if len(roles.error) == 1 else [None]
        labelled = {
            name: Categories.of(as_column(column(name), name)) for name in roles.labels
        }
        return cls(
            column(roles.prediction),
            u,
            y_true=column(truth),
            error=column(errors),
            features={name: column(name) for name in roles.numbers} | labelled,
            groups=column(groups),
            weights=column(weights),
            time=column(time),
            minimum=minimum,
        )

    @classmethod
    def from_members(
        cls, members: Any, *, y_true: Any = None, ddof: int = 1, **others: Any
    ) -> Self:
        """Return the predictions of an ensemble: the mean and spread of its members.

        Parameters
        ----------
        members : array-like or data frame of shape (n, m)
            What each of m members predicts, two at least.
        y_true : array-like of shape (n,), optional
            True values.
        ddof : int, default 1
            The variance is a sum of squares over m − ddof.
        **others
            As for :class:`Predictions`: features, groups, weights, time, minimum.

        Returns
        -------
        Predictions

        Examples
        --------
        >>> import sigmascale as ss
        >>> members = [[1.0, 1.2, 1.4, 0.8] * 3, [2.0, 2.4, 1.6, 2.0] * 3]
        >>> p = ss.Predictions.from_members(members, y_true=[1.0, 2.2])
        >>> p.y_pred, p.uncertainty.round(2)
        (array([1.1, 2. ]), array([0.23, 0.3 ]))
        """
        return cls(*of_members(members, ddof), y_true=y_true, **others)

    @classmethod
    def from_quantiles(
        cls, levels: Any, quantiles: Any, *, y_true: Any = None, **others: Any
    ) -> Self:
        """Return the predictions of a quantile model: a middle and a width.

        The prediction is the median, or the middle of the two quantiles next to it. The
        uncertainty is the width of the outermost symmetric pair of quantiles, over that
        of a standard normal. That rows are asymmetric is not kept.

        Parameters
        ----------
        levels : array-like of shape (k,)
            Levels of the quantiles, ascending, between 0 and 1, such as 0.05, 0.5 and
            0.95; there is a pair p, 1 − p.
        quantiles : array-like or data frame of shape (n, k)
            The quantiles of each row. Where those of the pair cross, the width is
            negative: such rows are refused, or lifted to `minimum`.
        y_true : array-like of shape (n,), optional
            True values.
        **others
            As for :class:`Predictions`: features, groups, weights, time, minimum.

        Returns
        -------
        Predictions

        Examples
        --------
        >>> import sigmascale as ss
        >>> p = ss.Predictions.from_quantiles([0.16, 0.5, 0.84], [[1.0, 2.0, 3.0]])
        >>> p.y_pred, p.uncertainty.round(2)
        (array([2.]), array([1.01]))
        """
        return cls(*of_quantiles(levels, quantiles), y_true=y_true, **others)

    @classmethod
    def from_interval(
        cls, low: Any, high: Any, *, coverage: float, y_true: Any = None, **others: Any
    ) -> Self:
        """Return the predictions of intervals: their middle and width.

        Parameters
        ----------
        low, high : array-like of shape (n,)
            Limits.
        coverage : float
            The share of truths that the intervals claim to hold, such as 0.9.
        y_true : array-like of shape (n,), optional
            True values.
        **others
            As for :class:`Predictions`: features, groups, weights, time, minimum.

        Returns
        -------
        Predictions

        Examples
        --------
        >>> import sigmascale as ss
        >>> p = ss.Predictions.from_interval([1.0], [3.0], coverage=0.95)
        >>> p.y_pred, p.uncertainty.round(2)
        (array([2.]), array([0.51]))
        """
        bottom, top = check_column(low, "low"), check_column(high, "high")
        check_same_length("low", bottom, "high", top)
        both = np.column_stack([bottom, top])
        return cls.from_quantiles(ends_of(coverage), both, y_true=y_true, **others)

    @classmethod
    def of(
        cls,
        columns: Sequence[Column],
        names: Sequence[str],
        error: Floats | None = None,
        groups: Ints | None = None,
        weights: Floats | None = None,
        categories: Sequence[tuple[Label, ...] | None] | None = None,
    ) -> Self:
        """Return the predictions of columns that are known to be right."""
        new = cls.__new__(cls)
        new.__dict__.update(dict.fromkeys(cls._FIELDS))
        return new.changed(
            columns=tuple(columns),
            names=tuple(names),
            categories=tuple(categories or [None] * len(columns)),
            error=error,
            groups=groups,
            weights=weights,
        )

    def changed(self, **fields: Any) -> Self:
        """Return the same with some of the fields replaced."""
        new = self.__class__.__new__(self.__class__)
        kept = {name: self.__dict__[name] for name in self._FIELDS} | fields
        u = kept["columns"][0]
        new.__dict__.update(kept, uncertainty=u, n_rows=len(u), errors=kept["error"])
        return new

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.n_rows

    def __repr__(self) -> str:
        """Return what there is, in words."""
        words = f"Predictions of {self.n_rows} rows"
        if self.error is not None:
            words += " with errors"
        if self.groups is not None:
            words += f" in {np.unique(self.groups).size} groups"
        if len(self.names) > 1:
            words += f"; features: {', '.join(self.names[1:])}"
        return words

    def _repr_html_(self) -> str:
        sentences, figure = [escape(f"{self!r}.")], ""
        named = dict(zip(self.names, self.columns, strict=True))
        columns = {k: v for k, v in named.items() if not self.is_labelled(k)}
        if self.error is not None:
            columns = {"error": self.error, **columns}
            both = self.error, self.uncertainty
            rmse, rmv = (np.sqrt(self.mean(x**2)) for x in both)
            sentences.append(
                f"RMSE {rmse:.4g}, root mean variance {rmv:.4g}, "
                f"⟨Z²⟩ = {self.mean(self.z2):.3g}; dashed: ±2u."
            )
            figure = self._chart()
        rows = [
            (k, *(f"{x:.4g}" for x in np.nanquantile(v, (0, 0.25, 0.5, 0.75, 1))))
            for k, v in columns.items()
        ]
        header = ("column", "smallest", "25 %", "median", "75 %", "largest")
        return page(sentences, figure, {"Columns": html_table(header, rows)})

    def _chart(self) -> str:
        """Return errors against uncertainties, as SVG; of many rows, every so many."""
        order = np.argsort(self.uncertainty, kind="stable")
        rows = order[np.linspace(0, self.n_rows - 1, min(self.n_rows, 400)).astype(int)]
        u, error = self.uncertainty[rows], self.errors[rows]
        most = np.quantile(np.abs(error), 0.99)
        u, error = u[np.abs(error) <= most], error[np.abs(error) <= most]
        reach = np.array([u[0], u[-1]])
        return chart(
            u,
            error,
            labels=("uncertainty u", "error E"),
            ticks=(ticks_of(u), ticks_of(error)),
            wrong=np.abs(error) > 2 * u,
            lines=[(reach, 2 * reach), (reach, -2 * reach)],
        )

    @property
    def total(self) -> int | float:
        """The number of rows, or the sum of their weights, which stands for it."""
        return total_of(self.n_rows, self.weights)

    def mean(self, values: npt.NDArray[Any]) -> float:
        """Return the mean of a value of each row, weighted if rows are."""
        return mean_of(values, self.weights)

    @cached_property
    def z(self) -> Floats:
        """The z-scores, error over uncertainty."""
        return self.errors / self.uncertainty

    @cached_property
    def z2(self) -> Floats:
        """The squares of the z-scores."""
        squares: Floats = self.z**2
        return squares

    @property
    def truth(self) -> Floats:
        """What a distribution is of: true values, or errors without predictions."""
        return self.errors if self.y_pred is None else self.y_pred + self.errors

    @cached_property
    def group_codes(self) -> Ints | None:
        """The number of each row's group, without gaps.

        A weighted row without a group is its own, of so many repeats.
        """
        if self.groups is None:
            return None if self.weights is None else np.arange(self.n_rows)
        present = np.bincount(self.groups) > 0
        return (np.cumsum(present) - 1)[self.groups]

    @property
    def features(self) -> dict[str, Column]:
        """The other columns by name: numbers, or codes of labels."""
        return dict(zip(self.names[1:], self.columns[1:], strict=True))

    def take(self, which: npt.NDArray[Any]) -> Self:
        """Return some of the rows."""
        by_row = (
            *("error", "groups", "weights", "places", "y_pred", "time"),
            "distributions",
        )
        known = {name: getattr(self, name) for name in by_row}
        return self.changed(
            columns=tuple(column[which] for column in self.columns),
            **{name: x[which] for name, x in known.items() if x is not None},
        )

    def weighted(
        self, sample_weight: Any, rows_name: str = "X", name: str = "sample_weight"
    ) -> Self:
        """Return rows with weights, without those whose weight is 0."""
        kept, weights = check_weights(sample_weight, self.columns[0], rows_name, name)
        rows = self
        if kept is not None:
            rows = self.changed(places=np.arange(self.n_rows)).take(kept)
        return rows if weights is None else rows.changed(weights=weights)

    def with_uncertainty(self, uncertainty: Floats) -> Self:
        """Return the same rows with other uncertainties, which have no law yet."""
        columns = (uncertainty, *self.columns[1:])
        return self.changed(columns=columns, distributions=None)

    def with_features(self, keys: Sequence[int | str] | None) -> Self:
        """Return the same rows with some of their features; None stands for all."""
        if keys is None:
            return self
        positions = [0, *self.positions(keys, "features")]
        return self.changed(
            columns=tuple(self.columns[i] for i in positions),
            names=tuple(self.names[i] for i in positions),
            categories=tuple(self.categories[i] for i in positions),
        )

    def to_be_judged(self) -> Self:
        """Return the same rows, if no feature is missing or has the name of a score."""
        refuse_reserved(self.names[1:])
        with rows_at(self.places):
            for name, column in self.features.items():
                if column.dtype.kind == "f":
                    large = np.abs(check_column(column, name)) > LARGEST_JUDGED
                    must = f"at most {LARGEST_JUDGED:g} in size|Choose another unit."
                    refuse_values(large, column, name, must)
        return (
            self if self.names[0] == "u" else self.changed(names=("u", *self.names[1:]))
        )

    def is_labelled(self, key: int | str) -> bool:
        """Return whether a column holds labels rather than numbers."""
        return self.categories[self.position(key)] is not None

    def labels(self, key: int | str) -> Categories:
        """Return the labels of a column; numbers are taken as labels, too."""
        position = self.position(key)
        names, column = self.categories[position], self.columns[position]
        return Categories.of(column) if names is None else Categories(column, names)

    def numbers(self, key: int | str) -> Floats:
        """Return a column as finite numbers."""
        column = self.numbers_or_missing(key)
        if np.isnan(column.max()):
            check_column(column, self._shown(self.position(key)))
        return column

    def numbers_or_missing(self, key: int | str) -> Floats:
        """Return a column as numbers, of which some may be missing (NaN)."""
        position = self.position(key)
        names, column = self.categories[position], self.columns[position]
        if names is not None:
            msg = (
                f"`{self._shown(position)}` must hold numbers; it holds labels, such "
                f"as {names[0]!r}. Convert it, or leave it out."
            )
            raise NotANumberError(msg)
        with rows_at(self.places):
            _refuse_infinite(column, self._shown(position))
        return column

    def variable(self, key: int | str) -> Column:
        """Return a column to bin by: finite numbers, or codes of labels."""
        position = self.position(key)
        if self.is_labelled(position):
            return self.columns[position]
        return self.numbers(position)

    def _shown(self, position: int) -> str:
        return f"X[:, {self.names[position]}]"


def lifted(u: Floats, minimum: Any) -> Floats:
    """Return uncertainties that are at least the minimum, and say how many were not."""
    least = check_minimum(minimum)
    tell_lifted(int(np.count_nonzero(u < least)), u.size, least)
    return np.maximum(u, least)


def check_minimum(minimum: Any) -> float:
    """Return what uncertainties are lifted to."""
    if not isinstance(minimum, (int, float, np.number)) or not 0 < minimum < np.inf:
        msg = f"`minimum` must be a positive number; found {minimum!r}."
        raise InvalidInputError(msg)
    return float(minimum)


def tell_lifted(few: int, n_rows: int, minimum: float) -> None:
    """Say how many uncertainties were lifted to the minimum."""
    if few:
        warn(
            f"{few} of {n_rows} uncertainties were below {minimum:g}, and were lifted "
            "to it.",
            ZeroUncertaintyWarning,
            stacklevel=4,
        )


def default_names(n_columns: int) -> tuple[str, ...]:
    """Return the names of the columns of a table that has none.

    >>> default_names(3)
    ('u', 'X1', 'X2')
    """
    return ("u", *(f"X{i}" for i in range(1, n_columns)))


def fitted_names(estimator: Any) -> tuple[str, ...]:
    """Return the names of the columns that an estimator was fitted on."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        return tuple(str(name) for name in names)
    return default_names(getattr(estimator, "n_features_in_", 1))


def _typed(
    values: Any, name: str, *, used: bool = True
) -> tuple[Column, tuple[Label, ...] | None]:
    """Return a feature as numbers, or as the codes of labels and these.

    One that may not be `used` may hold anything: dates are labels, numbers infinite.
    """
    if isinstance(values, Categories):
        return values.codes, values.labels
    column = as_column(values, name)
    dates, whole = column.dtype.kind in "mM", column.dtype.kind in "iu"
    if column.dtype.kind == "O":
        kinds = {type(value) for value in column}
        if any(issubclass(kind, str) for kind in kinds):
            real = tuple(k for k in kinds if issubclass(k, (int, float, np.number)))
            if any(isinstance(x, real) and x == x for x in column):  # no NaN
                row = next(i for i, x in enumerate(column) if isinstance(x, str))
                msg = (
                    f"`{name}` must hold numbers or text, not both; row "
                    f"{row_number(row)} is {column[row]!r} among numbers. Convert or "
                    "drop it."
                )
                raise NotANumberError(msg)
            return _typed(Categories.of(column), name)
        dates = any(issubclass(kind, _TIMES) for kind in kinds)
        whole = kinds == {int}
    if dates and used:
        raise NotANumberError(no_dates(name))
    if (
        dates
        or column.dtype.kind in "UST"
        or (
            # float64 would take different whole numbers for the same
            whole
            and column.size
            and max(int(column.max()), -int(column.min())) > EXACT
            and (column.astype(np.float64).astype(object) != column).any()
        )
    ):
        return _typed(Categories.of(column), name)
    numbers = as_floats(column, name)
    if used:
        _refuse_infinite(numbers, name)
    return numbers, None


def _refuse_infinite(numbers: Floats, name: str) -> None:
    must = "finite, not inf|Drop or repair these rows."
    refuse_values(np.isinf(numbers), numbers, name, must)


def _named_columns(features: Any) -> list[tuple[str, Any]]:
    """Return columns and their names, of a mapping, a data frame or an array."""
    if isinstance(features, Mapping):
        return [(str(name), values) for name, values in features.items()]
    frame = as_frame(features, "features")
    if frame is not None:
        return [(str(c.name), c.to_native()) for c in frame.iter_columns()]
    table = as_array(features, "features")
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2:
        msg = (
            f"`features` must be a table of columns; found shape {table.shape}. Pass a "
            "data frame, a dict of columns or a two-dimensional array."
        )
        raise InvalidInputError(msg)
    return [(f"X{i + 1}", column) for i, column in enumerate(table.T)]


def check_labels(labels: Any, rows: npt.NDArray[Any], name: str) -> Categories:
    """Return the labels of rows, of which some may be missing."""
    column = as_column(labels, name)
    check_same_length("X", rows, name, column)
    return Categories.of(column)


def group_codes(groups: Any, rows: npt.NDArray[Any], rows_name: str) -> Ints | None:
    """Return the numbers of the groups, if there are any, that rows belong to."""
    if groups is None:
        return None
    column = as_column(groups, "groups")
    check_same_length(rows_name, rows, "groups", column)
    found = Categories.of(column)
    if None in found.labels:
        # as a label it would make one large group of rows that have nothing in common
        missing = found.codes == found.labels.index(None)
        msg = (
            f"`groups` must have a label for every row; {np.count_nonzero(missing)} of "
            f"{missing.size} have none (first at row "
            f"{row_number(np.argmax(missing))}). Give a row that belongs to no other "
            "a label of its own."
        )
        raise InvalidInputError(msg)
    return found.codes


def as_predictions(
    error: Any,
    uncertainty: Any = None,
    features: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
) -> Predictions:
    """Return rows that are scored or judged: all features are there, and finite.

    Predictions with errors are taken as they are, and take the place of all else.
    """
    if isinstance(error, Predictions):
        refuse_beside(error, (uncertainty, features, groups, sample_weight))
        rows = with_known_errors(error)
    else:
        refuse_other_order(
            error=error,
            uncertainty=uncertainty,
            features=features,
            groups=groups,
            sample_weight=sample_weight,
        )
        e, u = check_pair(error, uncertainty)
        rows = with_named_features(Predictions.of((u,), ("u",), e), features)
        rows = rows.changed(groups=group_codes(groups, e, "error"))
        rows = rows.weighted(sample_weight, "error")
    return rows.to_be_judged()


def with_named_features(rows: Predictions, features: Any) -> Predictions:
    """Return rows with further columns, which are checked."""
    if features is None:
        return rows
    found = [(name, *_typed(values, name)) for name, values in _named_columns(features)]
    for name, column, _ in found:
        check_same_length("error", rows.uncertainty, name, column)
    names, columns, categories = zip(*found, strict=True) if found else [()] * 3
    if len(set(names)) < len(names):
        msg = "`features` must have columns of different names. Rename them."
        raise InvalidInputError(msg)
    return rows.changed(
        columns=(*rows.columns, *columns),
        names=(*rows.names, *names),
        categories=(*rows.categories, *categories),
    )


def refuse_beside(predictions: Predictions, others: Iterable[Any]) -> None:
    """Refuse what stands in predictions already, as groups do."""
    if any(other is not None for other in others):
        msg = (
            "Pass everything in `predictions`, or nothing: errors, features, `groups` "
            "and weights beside them would be given twice. Make new Predictions with "
            "all of it."
        )
        raise InvalidInputError(msg)


def with_known_errors(predictions: Predictions) -> Predictions:
    """Return predictions, if their errors are known."""
    if predictions.error is None:
        msg = "`predictions` must have errors: pass `y_true` or `error` with them."
        raise InvalidInputError(msg)
    return predictions


def read_table(X: Any) -> Predictions:
    """Return the rows of a conditioning table, an array or any data frame."""
    if isinstance(X, Predictions):
        return X
    if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim in (1, 2) and X.size:
        columns = [X] if X.ndim == 1 else list(X.T)  # the most common, and quickly told
        return Predictions.of(columns, default_names(len(columns)))
    if (frame := as_frame(X, "X")) is not None:
        if not frame.columns or not len(frame):
            msg = (
                f"X has {len(frame)} sample(s) and {len(frame.columns)} feature(s) "
                f"(shape={frame.shape}) while a minimum of 1 is required. "
                "Is the file empty?"
            )
            raise InvalidInputError(msg)
        names = tuple(map(str, frame.columns))
        columns = [
            as_column(c.to_native(), f"X[:, {c.name}]") for c in frame.iter_columns()
        ]
    else:
        columns = list(_table_array(X).T)
        names = default_names(len(columns))
    u = as_floats(columns[0], f"X[:, {names[0]}]")
    typed = [
        _typed(column, f"X[:, {name}]", used=False)
        for name, column in zip(names[1:], columns[1:], strict=True)
    ]
    return Predictions.of(
        (u, *(column for column, _ in typed)),
        names,
        categories=(None, *(labels for _, labels in typed)),
    )


def _table_array(X: Any) -> npt.NDArray[Any]:
    """Return a table as a two-dimensional array, of objects where there is text."""
    refuse_lazy(X, "X")
    from sklearn.utils import check_array

    try:
        given = from_series(X)
        if isinstance(given, (list, tuple)) and _needs_objects(given):
            given = np.array(given, dtype=object)
        array = check_array(given, dtype=None, ensure_all_finite=False, ensure_2d=False)
    except (TypeError, ValueError) as problem:
        # the words are those that scikit-learn's own checks look for
        msg = (
            f"X must be a table, the uncertainty first: {str(problem).splitlines()[0]} "
            "Pass a data frame or a two-dimensional array."
        )
        raise InvalidInputError(msg) from problem
    found: npt.NDArray[Any] = array[:, None] if array.ndim == 1 else array
    return found


def _needs_objects(rows: Sequence[Any]) -> bool:
    cells = (each if isinstance(each, (list, tuple)) else (each,) for each in rows)
    return any(is_label(value) for row in cells for value in row)


def read_pair(data: Any, name: str, *, weighted: bool = False) -> Predictions:
    """Return the rows of Predictions, (X, y) or (X, y, groups), to learn from or judge.

    There may be weights, too, if that is `weighted`.
    """
    if isinstance(data, Predictions):
        return as_predictions(data)
    try:
        X, y, *others = data
        groups, sample_weight = [*others, None, None][: max(2, len(others))]
        if sample_weight is not None and not weighted:
            raise ValueError
    except (TypeError, ValueError) as problem:
        weights = " or (X, y, groups, sample_weight)" if weighted else ""
        msg = (
            f"`{name}` must be a pair (X, y), the conditioning table and errors, or "
            f"(X, y, groups), with labels of rows that belong together{weights}."
        )
        raise InvalidInputError(msg) from problem
    return learned_rows(X, y, groups, sample_weight, "compare")


def learned_rows(
    X: Any, y: Any, groups: Any, sample_weight: Any, estimator: str
) -> Predictions:
    """Return the rows that an estimator is fitted or scored with.

    Errors are known, and uncertainties positive. Predictions with errors are taken as
    they are, and take the place of all else.
    """
    if isinstance(X, Predictions):
        refuse_beside(X, (y, groups, sample_weight))
        return with_known_errors(X)
    refuse_other_order(X=X, y=y, groups=groups, sample_weight=sample_weight)
    rows = read_table(X)
    error = check_target(y, rows.n_rows, estimator)
    rows = rows.changed(error=error)
    if groups is not None:
        rows = rows.changed(groups=group_codes(groups, error, "X"))
    if sample_weight is not None:
        rows = rows.weighted(sample_weight)
    return with_positive_uncertainty(rows)


def check_target(
    y: Any, n_rows: int, estimator: str, *, what: str = "errors"
) -> Floats:
    """Return the errors, or `what` else, an estimator is fitted or scored with."""
    if y is None:
        msg = (
            f"This {estimator} estimator requires y to be passed, but the target y is "
            f"None. Pass the {what} of the calibration set."
        )
        raise InvalidInputError(msg)
    if type(y) is np.ndarray and y.dtype == np.float64 and y.ndim == 1:
        column: Floats = y
    else:
        column = _target_column(y, what)
    bad = ~np.isfinite(column)
    if bad.any():
        # The first sentence is the one that scikit-learn's own checks look for.
        kind = "NaN" if np.isnan(column[bad][0]) else "infinity"
        row = int(np.argmax(bad))
        msg = (
            f"Input y contains {kind} or a value too large for dtype('float64'). "
            f"y (the {what}) must be finite; {np.count_nonzero(bad)} of {bad.size} "
            f"are not (first at row {row_number(row)}: {column[row]:g}). "
            "Drop or repair these rows."
        )
        raise InvalidInputError(msg)
    if column.shape[0] != n_rows:
        msg = (
            f"X and y must have the same number of rows; found {n_rows} and "
            f"{column.shape[0]}. Pass columns of one table."
        )
        raise InvalidInputError(msg)
    return column


def _target_column(y: Any, what: str) -> Floats:
    from sklearn.utils import column_or_1d

    array = as_array(y, "y")
    if array.dtype.kind == "c":
        msg = f"Complex data not supported: y must hold real {what}."
        raise InvalidInputError(msg)
    try:
        array = column_or_1d(array, warn=True)
    except ValueError as problem:
        msg = f"{problem} Pass one column of {what}."
        raise InvalidInputError(msg) from problem
    return as_floats(array, "y")


def with_positive_uncertainty(
    rows: Predictions, *, smallest: float | None = None
) -> Predictions:
    """Return rows whose uncertainties are positive, and can be squared.

    All others are refused. Only in prediction, which must answer, those of exactly 0
    are lifted to the `smallest` seen in fit, with a warning that counts them.
    """
    u = rows.uncertainty
    if u.min() >= SMALLEST and u.max() <= LARGEST:
        return rows
    u = rows.numbers(0)
    zeros = int(np.count_nonzero(u == 0))
    if smallest is not None and zeros:
        warn(
            f"{zeros} of {u.size} uncertainties are exactly 0; they were lifted to "
            f"{smallest:g}, the smallest one seen in fit.",
            ZeroUncertaintyWarning,
            stacklevel=5,
        )
        u = np.where(u == 0, smallest, u)
    with rows_at(rows.places):
        return rows.with_uncertainty(check_uncertainty(u, error=rows.error))
