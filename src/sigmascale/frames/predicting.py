"""Recalibrated uncertainties as a new column of a lazy frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np

from .._support.checks import MISSING, Floats
from .._support.tables import Table, check_table
from ..bins.quantiles import CHUNK, Search
from ..cli.tables.columns import RECALIBRATED
from ..exceptions import InvalidInputError
from ..scaling import (
    BinwiseScaling,
    BoostedScaling,
    GroupScaling,
    IsotonicScaling,
    LinearScaling,
    NoScaling,
    RakedScaling,
    SelectedScaling,
    TemperatureScaling,
    VarianceScaler,
)
from ..scaling.trees import LabelCodes, NumberCodes
from .lazy_rows import Frame, as_lazy, is_finite, is_missing, is_text, number
from .lookups import (
    compute,
    in_chunks,
    literal,
    pick_by_bins,
    pick_by_label,
    pick_by_limits,
)

MANY_LIMITS = 8  # so many take an expression longer than NumPy


def predict(
    scaler: VarianceScaler,
    frame: Any,
    *,
    uncertainty: str | None = None,
    features: list[str] | None = None,
    name: str | None = None,
) -> Any:
    """Return the lazy frame with a new column of recalibrated uncertainties.

    Nothing is read until the result is: values that cannot be used (an uncertainty or
    a feature that is missing, infinite or negative) give a null rather than an error.

    Parameters
    ----------
    scaler : recalibrator
        A fitted one, from a frame or from arrays. BoostedScaling is not a short
        expression, and only Polars can apply it, batch by batch.
    frame : lazy frame
        Of Polars, DuckDB, Dask or Spark.
    uncertainty : str, optional
        The column of uncertainties; by default the one it was fitted on, or the first.
    features : list of str, optional
        The columns of features in the order of `fit`; by default those it was fitted
        on, or those after the first.
    name : str, optional
        The name of the new column; by default that of the uncertainty with
        "_recalibrated".

    Returns
    -------
    lazy frame
        Of the library of `frame`.

    Examples
    --------
    >>> import polars as pl
    >>> import sigmascale as ss
    >>> scaler = ss.TemperatureScaling().fit([1.0, 1.0, 2.0], [2.0, -2.0, 4.0])
    >>> frame = pl.LazyFrame({"u": [1.0, 3.0]})
    >>> ss.frames.predict(scaler, frame).collect().to_dict(as_series=False)
    {'u': [1.0, 3.0], 'u_recalibrated': [2.0, 6.0]}
    """
    if not hasattr(scaler, "min_uncertainty_"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(scaler)  # says so
    lazy = as_lazy(frame)
    schema = lazy.collect_schema()
    names = _names(scaler, list(schema), uncertainty, features)
    new = f"{names[0]}{RECALIBRATED}" if name is None else name
    if name is None and new in schema:
        msg = f"`frame` already has a column {new!r}. Pass `name`, or drop it."
        raise InvalidInputError(msg)
    fitted = tuple(str(each) for each in getattr(scaler, "feature_names_in_", names))
    columns = _Columns(lazy, names, fitted)
    given = number(schema, names[0])
    smallest = nw.lit(scaler.min_uncertainty_)
    u = nw.when(given == 0).then(smallest).otherwise(given)
    result = _rescaled(scaler, u, columns)
    usable = is_finite(given) & (given >= 0)
    for x in columns.needed.values():
        usable = usable & is_finite(x)
    rescaled = nw.when(usable).then(result).alias(new)
    return columns.frame.with_columns(rescaled).drop(columns.temporary).to_native()


def _names(
    scaler: VarianceScaler,
    known: list[str],
    uncertainty: str | None,
    features: list[str] | None,
) -> list[str]:
    n_columns = int(scaler.n_features_in_)
    fitted = getattr(scaler, "feature_names_in_", None)
    names = known[:n_columns] if fitted is None else [str(each) for each in fitted]
    if uncertainty is not None:
        names = [uncertainty, *names[1:]]
    if features is not None:
        names = [*names[:1], *features]
    missing = [each for each in names if each not in known]
    if missing or len(names) != n_columns:
        wanted = f"{n_columns} column(s)" if not missing else ", ".join(missing)
        msg = (
            f"`frame` must have the columns that the recalibrator was fitted on: "
            f"{wanted} not found. Its columns are: {', '.join(known)}. Pass "
            "`uncertainty` and `features` if they have other names."
        )
        raise InvalidInputError(msg)
    return names


class _Columns:
    """The columns of a conditioning table as expressions.

    `names` are those of the frame, `fitted` those that the recalibrator knows them by;
    `needed` are those asked for as numbers, which must be finite; `temporary` are
    columns that the frame has for the time being.
    """

    def __init__(self, frame: Frame, names: list[str], fitted: tuple[str, ...]) -> None:
        self.frame, self.names = frame, names
        self.schema = frame.collect_schema()
        self.table = Table(tuple(np.empty(0) for _ in names), fitted)
        self.needed: dict[str, nw.Expr] = {}
        self.temporary: list[str] = []

    def pick_by_limits(self, x: nw.Expr, limits: Any, values: Any) -> nw.Expr:
        """Return values[i] where limits[i - 1] <= x < limits[i]."""
        if not self.has_numpy_for(limits):
            return pick_by_limits(x, limits, values)
        search, table = Search(np.asarray(limits), CHUNK), np.asarray(values)
        return self.by_numpy([x], in_chunks(lambda part: table[search(part)]))

    def has_numpy_for(self, limits: Any) -> bool:
        """Return whether NumPy is to look values up, rather than an expression."""
        return self.frame.implementation.is_polars() and len(limits) >= MANY_LIMITS

    def by_numpy(
        self, inputs: list[nw.Expr], function: Callable[..., Floats]
    ) -> nw.Expr:
        """Return what NumPy makes of some columns."""
        self.frame, name = compute(self.frame, inputs, function)
        self.temporary.append(name)
        return nw.col(name)

    def by_rows(self, scaler: VarianceScaler, u: nw.Expr) -> nw.Expr:
        """Return what `predict` makes of rows; features may be missing."""
        inputs = [nw.when(is_finite(u) & (u > 0)).then(u).otherwise(nw.lit(1.0))]
        usable = nw.lit(True)
        for name in self.names[1:]:
            if is_text(self.schema[name]):
                inputs.append(nw.col(name).cast(nw.String))
            else:
                x = number(self.schema, name)
                usable = usable & (is_missing(x) | is_finite(x))
                inputs.append(nw.when(is_finite(x)).then(x))

        def rescale(uncertainty: Any, *features: Any) -> Floats:
            if not len(uncertainty):
                return np.empty(0)
            table = check_table(uncertainty.to_frame().hstack(list(features)))
            return scaler._predict_table(Table(table.columns, self.table.names))

        return nw.when(usable).then(self.by_numpy(inputs, rescale))

    def number(self, position: int) -> nw.Expr:
        name = self.names[position]
        self.needed[name] = number(self.schema, name)
        return self.needed[name]

    def by_label(
        self, position: int, labels: Any, values: Any, otherwise: Any
    ) -> nw.Expr:
        name = self.names[position]
        text = is_text(self.schema[name])
        if labels.size and text != (labels.dtype.kind == "U"):
            return literal(otherwise)  # text is not a number
        if text:
            x = nw.col(name).cast(nw.String).fill_null(MISSING)
        else:
            x = number(self.schema, name)
        return pick_by_label(x, labels, values, otherwise)

    def by_code(
        self, position: int, column: NumberCodes | LabelCodes, values: Any
    ) -> nw.Expr:
        """Return the value of each row's code, of which 0 is missing or unknown."""
        if isinstance(column, LabelCodes):
            return self.by_label(position, column.groups.labels, values[1:], values[0])
        x = number(self.schema, self.names[position])
        known = self.pick_by_limits(x, column.limits, values[1:])
        rest = nw.when(is_finite(x)).then(known)
        return nw.when(is_missing(x)).then(literal(values[0])).otherwise(rest)


def _rescaled(scaler: VarianceScaler, u: nw.Expr, columns: _Columns) -> nw.Expr:
    match scaler:
        case NoScaling():
            return u
        case TemperatureScaling():
            return u * scaler.factor_
        case LinearScaling():
            return (u * u * scaler.a_**2 + scaler.b_**2).sqrt()
        case BinwiseScaling():
            positions = scaler._plan(columns.table)[0]
            binned = [u if p == 0 else columns.number(p) for p in positions]
            factors = scaler.factors_.tolist()
            return u * pick_by_bins(
                scaler.partition_, binned, u, factors, columns.pick_by_limits
            )
        case GroupScaling():
            *factors, average = scaler.factors_.tolist()
            position = scaler._position(columns.table)
            labels = scaler.groups_.labels
            return u * columns.by_label(position, labels, factors, average)
        case IsotonicScaling():
            return _interpolated(scaler, u * u, columns).sqrt()
        case RakedScaling():
            return u * _raked_factor(scaler, columns)
        case SelectedScaling():
            return _rescaled(scaler.scaler_, u, columns)
        case BoostedScaling() if columns.frame.implementation.is_polars():
            return columns.by_rows(scaler, u)
    msg = (
        f"{type(scaler).__name__} can be applied to lazy frames of Polars only, and "
        "not of this engine. Use frames.scan(...) with Polars, or `predict` on rows "
        "in memory."
    )
    raise InvalidInputError(msg)


def _interpolated(scaler: IsotonicScaling, u2: nw.Expr, columns: _Columns) -> nw.Expr:
    """Return the variance: linear between knots, constant outside."""
    x, y = scaler.variances_in_, scaler.variances_out_
    if columns.has_numpy_for(x):
        return columns.by_numpy([u2], in_chunks(lambda part: np.interp(part, x, y)))
    slope = np.concatenate([[0.0], np.diff(y) / np.diff(x), [0.0]])
    value = np.append(y[0], y)  # at the lower end of each piece
    start = np.append(x[0], x)
    pieces = [
        nw.lit(float(v)) if s == 0 else (u2 - float(x0)) * float(s) + float(v)
        for x0, v, s in zip(start, value, slope, strict=True)
    ]
    return pick_by_limits(u2, x, pieces)


def _raked_factor(scaler: RakedScaling, columns: _Columns) -> nw.Expr:
    factor = nw.lit(scaler.scale_)
    n_columns = len(scaler.columns_)
    for position, column in enumerate(scaler.columns_):
        values = scaler.factors_[scaler.names_[position]].tolist()
        factor = factor * columns.by_code(position, column, values)
    for name, (first, second) in zip(
        scaler.names_[n_columns:], scaler.pairs_, strict=True
    ):
        rows = [
            columns.by_code(second, scaler.columns_[second], row)
            for row in scaler.factors_[name].tolist()
        ]
        factor = factor * columns.by_code(first, scaler.columns_[first], rows)
    return factor
