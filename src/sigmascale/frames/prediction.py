"""Recalibrated uncertainties as a new column of a lazy frame.

NumPy evaluates the map in the batches that an engine hands out. So every map runs on
every engine, and gives what it gives in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import narwhals as nw
import numpy as np

from .._support.checks import LARGEST, SMALLEST, Floats
from .._support.labels import Categories
from ..exceptions import InvalidInputError
from ..maps import Node
from ..maps.distributions import check_levels
from ..maps.laws import NORMAL, EmpiricalLaw, Law
from ..maps.nodes import columns_of
from ..maps.prediction import rescale, value_of
from ..predictions import Predictions
from .lazy import Frame, as_lazy, is_text, number, values_of

if TYPE_CHECKING:
    from ..persistence import SavedMap, SavedTargets
    from ..scaling import VarianceScaler
    from ..targets.recalibrated import RecalibratedTargets

RECALIBRATED = "_recalibrated"  # what the name of the uncertainty gets
SHIFT = "__shift__"  # a column that is computed
STAR = "*"  # in the name of new columns, for that of a target


def predict(
    scaler: VarianceScaler | RecalibratedTargets | SavedMap | SavedTargets,
    frame: Any,
    *,
    uncertainty: str | list[str] | None = None,
    features: list[str] | None = None,
    name: str | None = None,
    quantiles: Sequence[float] = (),
    prediction: str | None = None,
    connection: Any = None,
) -> Any:
    """Return the lazy frame with a new column of recalibrated uncertainties.

    NumPy evaluates what was learned in batches of the engine, so that every engine
    applies every recalibrator. Workers of a cluster need sigmascale, those of Spark
    PyArrow as well. Nothing is read until the result is, but for one case, see
    `connection`. Values that cannot be used (an uncertainty or a feature that is
    missing, infinite or negative) give a null rather than an error.

    Parameters
    ----------
    scaler : recalibrator, or RecalibratedTargets
        A fitted one, from a frame or from arrays; or several targets, of a wide frame,
        each of which gets a new column.
    frame : lazy frame
        Of Polars, DuckDB, Dask or Spark.
    uncertainty : str, or list of str, optional
        The column of uncertainties; by default the one it was fitted on, or the first.
        For several targets, a column of each.
    features : list of str, optional
        The columns of features in the order of `fit`; by default those it was fitted
        on, or those after the first.
    name : str, optional
        The name of the new column; by default that of the uncertainty with
        "_recalibrated". For several targets it has a star, which stands for the name
        of each.
    quantiles : list of float, optional
        Levels of quantiles, each of which gets a column, too: the name of the new
        column with "_q0.05" and so on. They are those of the truth, if `prediction`
        names the column of predictions, and else of the error.
    prediction : str, optional
        The column of predictions, for quantiles.
    connection : duckdb.DuckDBPyConnection, optional
        The one that made a relation of DuckDB, which does not tell itself. It can be
        left out for relations of DuckDB's default connection, as those of
        :func:`scan`. For others, rows are then read at once, and written with the new
        column to a temporary Parquet file, which lasts as long as the process.

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
    targets = _targets_of(scaler)
    lazy = as_lazy(frame)
    if connection is not None and not lazy.implementation.is_duckdb():
        msg = "`connection` is for relations of DuckDB. Leave it out."
        raise InvalidInputError(msg)
    if targets is None:
        if not isinstance(uncertainty, str | None):
            msg = "`uncertainty` must be one column; lists are for several targets."
            raise InvalidInputError(msg)
        targets = {"": scaler}
        columns = {"": (uncertainty, features)}
    else:
        if name is not None and STAR not in name:
            msg = f"`name` must have a star for the names of targets; found {name!r}."
            raise InvalidInputError(msg)
        columns = _wide_columns(lazy, targets, uncertainty, features)
        if prediction is not None:
            msg = "`prediction` is one column, and for one target."
            raise InvalidInputError(msg)
    levels = np.atleast_1d(check_levels(quantiles)) if len(quantiles) else np.empty(0)
    for target, (u, others) in columns.items():
        learned = targets[target]
        root, smallest, n_columns, fitted = _learned(learned)
        known = list(lazy.collect_schema())
        names = _names(known, n_columns, fitted, u, others)
        new = f"{names[0]}{RECALIBRATED}"
        if name is not None:
            new = name.replace(STAR, target) if target else name
        elif new in known:
            msg = f"`frame` already has a column {new!r}. Pass `name`, or drop it."
            raise InvalidInputError(msg)
        lazy = with_prediction(lazy, root, names, smallest, new, connection)
        if levels.size:
            centre = _centre(lazy, prediction)
            shift = getattr(learned, "shift_", getattr(learned, "shift", None))
            if isinstance(shift, Node):
                how = (names, smallest, SHIFT, connection)
                lazy = with_prediction(lazy, shift, *how, signed=True)
                centre = centre + nw.col(SHIFT)
            law = getattr(learned, "law_", getattr(learned, "law", None))
            if not isinstance(law, Law):
                law = NORMAL
            added = {
                f"{new}_q{level:g}": centre + each
                for level, each in zip(
                    levels, quantiles_of(law, nw.col(new), levels), strict=True
                )
            }
            lazy = lazy.with_columns(**added)
            if isinstance(shift, Node):
                lazy = lazy.drop(SHIFT)
    return lazy.to_native()


def _centre(lazy: Frame, prediction: str | None) -> nw.Expr:
    """Return what quantiles are about: predictions, or 0 of errors."""
    if prediction is None:
        return nw.lit(0.0)
    schema = lazy.collect_schema()
    if prediction not in schema:
        msg = f"`prediction` must name a column; there is no {prediction!r}."
        raise InvalidInputError(msg)
    return number(schema, prediction)


def quantiles_of(law: Law, scale: nw.Expr, levels: Any) -> list[nw.Expr]:
    """Return quantiles of the error: multiples of the scale, by its bins."""
    limits = law.bins.limits if isinstance(law, EmpiricalLaw) else np.empty(0)
    codes = np.arange(limits.size + 1)
    found = []
    for z in law.quantiles(np.asarray(levels, dtype=np.float64), codes).T:
        multiple = scale * float(z[-1])
        for limit, each in zip(limits[::-1], z[-2::-1], strict=True):
            below = scale < float(limit)
            multiple = nw.when(below).then(scale * float(each)).otherwise(multiple)
        found.append(multiple)
    return found


def _targets_of(scaler: Any) -> dict[str, Any] | None:
    """Return the recalibrators of several targets by name; None if it is but one."""
    several = getattr(scaler, "is_several", False)  # what a file says
    targets: dict[str, Any] | None = getattr(
        scaler, "recalibrators_", scaler.maps if several else None
    )
    if targets is not None and scaler.by is not None:
        msg = (
            "Several targets of a long table are recalibrated in memory. Collect it, "
            "or make it wide."
        )
        raise InvalidInputError(msg)
    return targets


def _wide_columns(
    lazy: Frame,
    targets: dict[str, Any],
    uncertainty: Any,
    features: list[str] | None,
) -> dict[str, tuple[str | None, list[str] | None]]:
    """Return the columns of each target: its uncertainty, and the features of all."""
    if uncertainty is None:
        _, _, n_columns, fitted = _learned(next(iter(targets.values())))
        if fitted is not None:
            return dict.fromkeys(targets, (None, features))
        # as in `fit`: uncertainties come first
        known = list(lazy.collect_schema())
        uncertainty = known[: len(targets)]
        rest = known[len(targets) : len(targets) + n_columns - 1]
        features = rest if features is None else features
    if isinstance(uncertainty, str) or len(uncertainty) != len(targets):
        msg = (
            f"`uncertainty` must be a list of {len(targets)} columns, one for each "
            f"target: {', '.join(targets)}; found {uncertainty!r}."
        )
        raise InvalidInputError(msg)
    return {
        target: (each, features)
        for target, each in zip(targets, uncertainty, strict=True)
    }


@dataclass(frozen=True)
class _Evaluation:
    """A map with the names of the columns that it reads: batches in, numbers out.

    Attributes
    ----------
    root : Node
        The map.
    names : tuple of str
        The columns of the frame, by their positions in the map.
    smallest : float
        What an uncertainty of 0 counts as.
    signed : bool
        Whether values may be of either sign, as those of a shift are.
    """

    root: Node
    names: tuple[str, ...]
    smallest: float
    signed: bool = False

    @cached_property
    def kinds(self) -> dict[int, str]:
        """What the map takes the columns for that it reads, by position."""
        return {0: "number"} | {c.position: c.kind for c in columns_of(self.root)}

    @property
    def inputs(self) -> list[str]:
        """The names of these columns."""
        return list(dict.fromkeys(self.names[position] for position in self.kinds))

    def refuse(self, schema: nw.Schema) -> None:
        """Refuse columns that are neither numbers nor, where the map takes it, text."""
        for position, kind in self.kinds.items():
            name = self.names[position]
            if kind != "label" or not is_text(schema[name]):
                number(schema, name)

    def __call__(self, batch: Mapping[str, Any]) -> Floats:
        """Return the values of rows; NaN where one that is needed cannot be used."""
        columns: list[Any] = [np.empty(0)] * len(self.names)
        labels: list[Any] = [None] * len(self.names)
        usable: Any = True
        for position, kind in self.kinds.items():
            series = nw.from_native(batch[self.names[position]], series_only=True)
            if kind == "label":
                found = Categories.of(values_of(series))
                columns[position], labels[position] = found.codes, found.labels
                continue
            x = columns[position] = series.cast(nw.Float64).to_numpy()
            usable &= np.isfinite(x) if kind == "number" else ~np.isinf(x)
        u = columns[0]
        usable &= (u == 0) | ((u >= SMALLEST) & (u <= LARGEST))
        result = np.full(u.size, np.nan)
        if usable.any():
            for position in self.kinds:
                columns[position] = columns[position][usable]
            u = columns[0]
            columns[0] = np.where(u == 0, self.smallest, u)
            rows = Predictions.of(columns, self.names, categories=labels)
            value = value_of if self.signed else rescale
            result[usable] = value(self.root, rows)
        return result


def with_prediction(
    lazy: Frame,
    root: Node,
    names: Sequence[str],
    smallest: float,
    new: str,
    connection: Any = None,
    *,
    signed: bool = False,
) -> Frame:
    """Return the frame with the values of a map as a new column.

    `names` are those of the columns that it reads, the uncertainty first. The values of
    a shift are `signed`.
    """
    evaluation = _Evaluation(root, tuple(names), smallest, signed)
    evaluation.refuse(lazy.collect_schema())
    native, engine = lazy.to_native(), lazy.implementation
    if engine.is_polars():
        found = _on_polars(native, evaluation, new)
    elif engine.is_duckdb():
        found = _on_duckdb(native, evaluation, new, connection)
    elif engine.is_dask():
        found = _on_dask(native, evaluation, new)
    elif engine.is_spark_like():
        found = _on_spark(native, evaluation, new)
    else:  # a table in memory, of pandas or PyArrow
        table = lazy.collect()
        values = evaluation({each: table[each] for each in evaluation.inputs})
        column = nw.new_series(new, values, backend=table.implementation)
        return table.with_columns(column).lazy()
    result: Frame = nw.from_native(found)
    return result


def _on_polars(frame: Any, evaluation: _Evaluation, new: str) -> Any:
    import polars as pl

    def evaluate(batch: Any) -> Any:
        table = batch.struct.unnest()
        values = evaluation({name: table[name] for name in table.columns})
        return pl.Series(values, nan_to_null=True)

    computed = pl.struct(evaluation.inputs).map_batches(
        evaluate, return_dtype=pl.Float64, is_elementwise=True
    )
    return frame.with_columns(computed.alias(new))


def _on_dask(frame: Any, evaluation: _Evaluation, new: str) -> Any:
    def add(part: Any) -> Any:
        return part.assign(**{new: evaluation(part)})

    meta = frame._meta.assign(**{new: np.empty(0)})  # of no rows
    return frame.map_partitions(add, meta=meta)


def _on_spark(frame: Any, evaluation: _Evaluation, new: str) -> Any:
    from pyspark.sql.types import DoubleType, StructField, StructType

    inputs = evaluation.inputs

    def add(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            values = evaluation(
                {each: pa.chunked_array([columns[each]]) for each in inputs}
            )
            columns[new] = pa.array(values, from_pandas=True)  # NaN becomes null
            yield pa.RecordBatch.from_arrays(list(columns.values()), list(columns))

    fields = {field.name: field for field in frame.schema.fields}
    fields[new] = StructField(new, DoubleType())
    return frame.mapInArrow(add, StructType(list(fields.values())))


_temporary: list[TemporaryDirectory[str]] = []  # removed when the process ends


def _on_duckdb(
    relation: Any, evaluation: _Evaluation, new: str, connection: Any
) -> Any:
    import duckdb
    import pyarrow as pa

    if connection is not None:
        found = _by_function(relation, evaluation, new, connection)
        if found is None:
            msg = "`connection` must be the one that made the relation `frame`."
            raise InvalidInputError(msg)
        return found
    found = _by_function(relation, evaluation, new, duckdb.default_connection())
    if found is not None:
        return found
    # the relation is of a connection that we do not know: rows go through one of ours
    _temporary.append(TemporaryDirectory(prefix="sigmascale-"))
    path = str(Path(_temporary[-1].name) / "rows.parquet")
    with duckdb.connect() as ours:
        rows = ours.from_arrow(pa.RecordBatchReader.from_stream(relation))
        _by_function(rows, evaluation, new, ours).write_parquet(path)
    escaped = path.replace("'", "''")
    return relation.query("unused", f"SELECT * FROM read_parquet('{escaped}')")


def _by_function(
    relation: Any, evaluation: _Evaluation, new: str, connection: Any
) -> Any:
    """Return a relation with a new column; None if it is of another connection."""
    import duckdb
    import pyarrow as pa

    inputs = evaluation.inputs

    def evaluate(*columns: Any) -> Any:
        values = evaluation(dict(zip(inputs, columns, strict=True)))
        return pa.array(values, from_pandas=True)  # NaN becomes null

    function = f"sigmascale_{uuid4().hex}"
    connection.create_function(
        function, evaluate, None, "DOUBLE", type="arrow", null_handling="special"
    )
    columns = {name: duckdb.ColumnExpression(name) for name in relation.columns}
    call = duckdb.FunctionExpression(function, *(columns[each] for each in inputs))
    columns[new] = call.alias(new)
    try:
        return relation.select(*columns.values())
    except duckdb.CatalogException:  # its connection does not know the function
        connection.remove_function(function)
        return None


def _learned(scaler: Any) -> tuple[Node, float, int, tuple[str, ...] | None]:
    """Return the map, the smallest uncertainty, and the columns that were fitted."""
    if hasattr(scaler, "root"):  # what a file says of a recalibrator
        names = scaler.names if scaler.named else None
        return scaler.root, scaler.smallest_uncertainty, len(scaler.names), names
    if not hasattr(scaler, "map_"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(scaler)  # says so
    fitted = getattr(scaler, "feature_names_in_", None)
    names = None if fitted is None else tuple(str(each) for each in fitted)
    return scaler.map_, scaler.min_uncertainty_, int(scaler.n_features_in_), names


def _names(
    known: list[str],
    n_columns: int,
    fitted: tuple[str, ...] | None,
    uncertainty: str | None,
    features: list[str] | None,
) -> list[str]:
    """Return the columns of the frame that the map reads, in the order of `fit`."""
    names = known[:n_columns] if fitted is None else list(fitted)
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
