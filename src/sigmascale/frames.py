"""Tables larger than memory: a sample to learn from and to judge, batches to apply.

Frames are lazy ones of Polars, DuckDB, Dask or Spark, by way of Narwhals. Which rows
are in a sample depends on these rows alone: a hash of their numbers, computed by
additions, multiplications and comparisons, which IEEE 754 fixes to the last bit. So all
engines draw the same rows, however they are ordered or divided into files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import uuid4

import narwhals as nw
import numpy as np
import numpy.typing as npt

from ._support.checks import LARGEST, SMALLEST, Floats, check_count, from_series
from ._support.labels import Categories
from ._support.notices import quiet
from ._support.parameters import check_is_fitted
from ._support.text import listed, quoted, shorten
from .clusters import Tally, prepare_dask, prepare_spark
from .exceptions import InvalidInputError, NotANumberError
from .persistence import dumps, loads
from .predictions import Predictions
from .recalibrator import Recalibrator
from .schema import RECALIBRATED, Choice, Schema, find
from .schema.choice import PYTHON

Frame = nw.LazyFrame[Any]

HASH = "hash of the row"
HASHED = 12  # columns of numbers, at most
GOLDEN_RATIO = 0.6180339887498949  # whose multiples are spread out
NEW = "new columns"  # a struct of them, before it is taken apart
PARTS = {argument: part for part, argument in PYTHON.items()}


def sample(
    frame: Any, *, n_rows: int = 1_000_000, seed: int = 0, **columns: Any
) -> Predictions:
    """Return about so many rows of a lazy frame, the same ones in every engine.

    What is fitted to them or judged by them is then done in memory: a million rows tell
    a factor to within 0.2 %. The frame is read twice, once for the number of its rows
    and the size of its values; all rows are returned if there are no more.

    Parameters
    ----------
    frame : lazy frame
        Of Polars, DuckDB, Dask or Spark; or a table in memory.
    n_rows : int, default 1,000,000
        How many rows to draw, about.
    seed : int, default 0
        Another one draws other rows.
    **columns
        The columns, as :meth:`Predictions.from_frame` takes them. Rows of one of the
        `groups` are drawn or left together.

    Returns
    -------
    Predictions
        In an order that depends on the rows alone, if not all were drawn.

    Examples
    --------
    >>> import polars as pl
    >>> import sigmascale as ss
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(1, 2, 50_000)
    >>> frame = pl.LazyFrame({"u": u, "E": rng.normal(size=50_000) * u})
    >>> p = ss.frames.sample(frame, n_rows=10_000, y_std="u", error="E")
    >>> round(len(p), -3)
    10000
    """
    lazy = _as_lazy(frame)
    kinds = lazy.collect_schema()
    numeric = [name for name, kind in kinds.items() if kind.is_numeric()]
    given: dict[str, Any] = {
        PARTS.get(part, part): tuple(value) if isinstance(value, list) else value
        for part, value in columns.items()
    }
    if given.get("features") == "all":
        given |= {"features": (), "all_features": True}
    schema = find(Choice(**given), list(kinds), numeric, errors=False)
    return draw(lazy, schema, check_count(n_rows, "n_rows", least=100), seed)


def apply(
    recalibrator: Recalibrator,
    frame: Any,
    *,
    y_std: str | None = None,
    features: Sequence[str] | None = None,
    y_pred: str | None = None,
    quantiles: Sequence[float] = (),
    interval: float | None = None,
    name: str | None = None,
    connection: Any = None,
) -> Any:
    """Return a lazy frame with new columns of what a recalibrator says of its rows.

    NumPy evaluates what was learned in batches of the engine, so that every engine
    applies every recalibrator, and says what it says in memory. Workers of a cluster
    need sigmascale, those of Spark PyArrow as well. Nothing is read until the result
    is. A row whose numbers cannot be used (an uncertainty that is missing or not
    positive, an infinite feature) gets nulls; a missing feature is as good as in
    memory.

    Parameters
    ----------
    recalibrator : Recalibrator
        A fitted one.
    frame : lazy frame
        Of Polars, DuckDB, Dask or Spark; or a table in memory.
    y_std : str, optional
        The column of uncertainties; by default the one that it was fitted on.
    features : list of str, optional
        The columns of features, in the order of `fit`; by default the same ones. Those
        that what was learned does not depend on need not be there.
    y_pred : str, optional
        The column of predictions. Where the recalibrator knows a bias, their corrected
        values become a column, its name with "_recalibrated".
    quantiles : list of float, optional
        Levels whose quantiles become columns: `name` with "_q0.05" and so on. They are
        those of the truth, or without `y_pred` those of the error.
    interval : float, optional
        Coverage of a central interval, which becomes two columns: `name` with "_low"
        and "_high"; of vectors, one: `name` with "_radius".
    name : str, optional
        The new column of uncertainties; by default the name of the old one with
        "_recalibrated". Columns of these names are replaced.
    connection : duckdb.DuckDBPyConnection, optional
        The one that made a relation of DuckDB, unless it is the default one.

    Returns
    -------
    lazy frame
        Of the library of `frame`.

    Examples
    --------
    >>> import polars as pl
    >>> import sigmascale as ss
    >>> p = ss.Predictions(y_std=[1.0, 1.0, 2.0], error=[2.0, -2.0, 4.0])
    >>> r = ss.Recalibrator(ss.TemperatureScaling(), distribution="normal").fit(p)
    >>> frame = pl.LazyFrame({"u": [1.0, 3.0]})
    >>> ss.frames.apply(r, frame).collect().to_dict(as_series=False)
    {'u': [1.0, 3.0], 'u_recalibrated': [2.0, 6.0]}
    """
    check_is_fitted(recalibrator)
    names = recalibrator.names_
    given = names[1:] if features is None else tuple(features)
    if len(given) != len(names) - 1:
        msg = (
            f"`features` must be {len(names) - 1} columns, those for "
            f"{listed(names[1:])} in this order; found {len(given)}."
        )
        raise InvalidInputError(msg)
    columns = (names[0] if y_std is None else y_std, *given)
    labelled = recalibrator.labelled_
    lazy = _as_lazy(frame)
    in_memory = not isinstance(nw.from_native(frame), nw.LazyFrame)
    kinds = lazy.collect_schema()
    # other numbers of the fit are compared with it if they are there
    read = recalibrator.columns_ | {
        k
        for k in recalibrator.fitted_rows_.columns
        if columns[k] in kinds and kinds[columns[k]].is_numeric()
    }
    batches = _Batches(
        recalibrator,
        tuple(x if k in read else None for k, x in enumerate(columns)),
        frozenset(columns[k] for k in labelled),
        y_pred,
        tuple(quantiles),
        interval,
        f"{columns[0]}{RECALIBRATED}" if name is None else name,
        Tally(recalibrator, is_whole=in_memory),
    )
    batches.check(kinds)
    if in_memory:
        return batches.beside(frame)
    native, engine = lazy.to_native(), lazy.implementation
    if engine.is_duckdb():
        return _on_duckdb(native, batches, connection)
    if engine.is_dask():
        return _on_dask(native, batches)
    return (_on_spark if engine.is_spark_like() else _on_polars)(native, batches)


# -- samples ---------------------------------------------------------------------------


def _as_lazy(frame: Any) -> Frame:
    found = nw.from_native(frame, pass_through=True)
    if isinstance(found, nw.DataFrame):
        return found.lazy()
    if not isinstance(found, nw.LazyFrame):
        msg = (
            "`frame` must be a lazy frame of Polars, DuckDB, Dask or Spark; found "
            f"{type(frame).__name__}. Of files, polars.scan_parquet makes one."
        )
        raise InvalidInputError(msg)
    return found


def _finite(name: str) -> nw.Expr:
    """Return numbers as float64, with null for what is missing or infinite.

    Comparisons, and `is_nan`, do not do: DuckDB decides them from the range that a
    Parquet file says its columns have, and that range leaves NaN out.
    """
    x = nw.col(name).cast(nw.Float64)
    return nw.when(x.is_finite()).then(x)


def draw(lazy: Frame, schema: Schema, n_rows: int, seed: int = 0) -> Predictions:
    """Return about so many rows of a lazy frame, whose columns a schema tells."""
    kinds, groups = lazy.collect_schema(), schema.groups
    labels = {*schema.labels, groups}
    numbers = [x for x in schema.columns if kinds[x].is_numeric() and x not in labels]
    needed = [x for x in numbers if x not in schema.features]
    if groups is not None:
        needed.append(groups)
    # the number of rows, the mean size of numbers, and whether what is needed is there
    counts = [
        (nw.col(x) if x == groups else _finite(x)).count().alias(f"count {i}")
        for i, x in enumerate(needed)
    ]
    sizes = [
        _finite(x).abs().mean().alias(f"size {i}")
        for i, x in enumerate(numbers[:HASHED])
    ]
    seen = lazy.select(nw.len().alias("n"), *counts, *sizes).collect()
    n_all = int(seen["n"][0])
    for i, name in enumerate(needed):  # refused whether or not such a row is drawn
        if (short := n_all - int(seen[f"count {i}"][0])) > 0:
            msg = (
                f"`{shorten(name)}` must be known and finite in every row; {short} "
                f"of {n_all} are not. Leave these rows out."
            )
            raise InvalidInputError(msg, "not-finite", name=name, count=short)
    if n_all <= n_rows:
        return schema.read(_collected(lazy, schema).to_native())
    share = n_rows / n_all
    if groups is None:
        units = [float(seen[f"size {i}"][0] or 0) for i in range(len(sizes))]
        hashed = _with_hash(lazy, dict(zip(numbers, units, strict=False)), seed)
        lazy = hashed.filter(nw.col(HASH) < share)
    else:
        lazy = lazy.filter(nw.col(groups).is_in(_some(lazy, groups, share, seed)))
    # rows that are alike are drawn or left together: more may come than was asked for
    table = _collected(lazy.head(2 * n_rows + 1), schema)
    if groups is None and not n_rows / 2 <= len(table) <= 2 * n_rows:
        msg = (
            f"`frame` has rows that are too much alike to be sampled: of {n_all}, "
            f"{n_rows} were wanted, and {len(table)} or more were drawn. Name a "
            "feature that tells rows apart, or collect a sample of your own."
        )
        raise InvalidInputError(msg, "alike")
    found = schema.read(table.to_native())
    error = [] if found.error is None else list(np.atleast_2d(found.error.T))
    return found.take(np.lexsort([*error, *found.columns]))


def _with_hash(lazy: Frame, sizes: Mapping[str, float], seed: int) -> Frame:
    """Return the frame with a number in [0, 1) in each row, as good as random.

    One after the other, numbers are added to what has become of those before, the sum
    is multiplied by something large, and what is left of the point is cut off. Units
    are powers of two: the last bits of a mean depend on the order in which an engine
    adds up, and powers of two do not.
    """
    lazy = lazy.with_columns(nw.lit(GOLDEN_RATIO).alias(HASH))
    value = nw.col(HASH)
    for k, (name, size) in enumerate(sizes.items()):
        unit = 2.0 ** -np.round(np.log2(size)) if size > 1e-290 else 1.0
        many = 1e7 * (1 + (1 + k) * (1 + seed) * GOLDEN_RATIO % 1.0)
        x = _finite(name).fill_null(0.0) * float(many * unit)
        lazy = lazy.with_columns((value + (x - x.floor())).alias(HASH))
        mixed = value * (9973.0 * (1 + GOLDEN_RATIO))
        lazy = lazy.with_columns((mixed - mixed.floor()).alias(HASH))
    return lazy


def _some(lazy: Frame, groups: str, share: float, seed: int) -> list[Any]:
    """Return a share of all groups, the same in every engine."""
    distinct = lazy.select(groups).unique().collect()[groups].to_list()
    ordered = sorted(distinct, key=lambda each: (str(type(each)), each))
    order = np.random.default_rng(seed).permutation(len(ordered))
    return [ordered[i] for i in order[: max(1, round(share * len(ordered)))]]


def _collected(lazy: Frame, schema: Schema) -> nw.DataFrame[Any]:
    streaming: Any = {"engine": "streaming"} if lazy.implementation.is_polars() else {}
    return lazy.select(*schema.columns).collect(**streaming)


# -- batches ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Batches:
    """What becomes of a batch of rows; workers of a cluster get a copy.

    Attributes
    ----------
    recalibrator : Recalibrator
        What is applied.
    columns : tuple of str or None
        The columns of the frame, in the order in which the recalibrator knows them;
        None for those that are not read.
    labelled : set of str
        Those of labels.
    y_pred : str or None
        The column of predictions.
    quantiles : tuple of float
        Levels.
    interval : float or None
        Coverage.
    name : str
        The new column of uncertainties.
    tally : Tally
        What is unlike the rows of the fit, over all batches.
    """

    recalibrator: Recalibrator
    columns: tuple[str | None, ...]
    labelled: frozenset[str]
    y_pred: str | None
    quantiles: tuple[float, ...]
    interval: float | None
    name: str
    tally: Tally

    def __getstate__(self) -> dict[str, Any]:
        """Return what travels to workers: the JSON of the recalibrator, and names."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return fields | {"recalibrator": dumps(self.recalibrator)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Read what has travelled."""
        recalibrator = loads(state["recalibrator"])[0]
        self.__dict__.update(state | {"recalibrator": recalibrator})

    @cached_property
    def inputs(self) -> list[str]:
        """The columns that are read."""
        return [x for x in dict.fromkeys([*self.columns, self.y_pred]) if x is not None]

    @cached_property
    def new(self) -> list[str]:
        """The columns that are written, in order."""
        found = [self.name]
        if self._corrects:
            found.append(f"{self.y_pred}{RECALIBRATED}")
        found += [f"{self.name}_q{p:g}" for p in self.quantiles]
        if self.interval is not None:
            vectors = self.recalibrator.distribution_.dim is not None
            ends = ["radius"] if vectors else ["low", "high"]
            found += [f"{self.name}_{end}" for end in ends]
        return found

    @property
    def _corrects(self) -> bool:
        return self.y_pred is not None and self.recalibrator.bias_ is not None

    def check(self, kinds: nw.Schema) -> None:
        """Refuse columns that are not there, or hold no numbers where they must."""
        for name in self.inputs:
            if name not in kinds:
                msg = (
                    f"`frame` must have a column {quoted(name)}; it has "
                    f"{listed(kinds)}. Pass `y_std` and `features` if they have other "
                    "names."
                )
                raise InvalidInputError(msg, "no-column", columns=list(kinds))
            if name not in self.labelled and not kinds[name].is_numeric():
                msg = (
                    f"`{shorten(name)}` must hold numbers; it is a column of "
                    f"{kinds[name]}. Convert it first."
                )
                raise NotANumberError(msg, "not-a-number", name=name)
        # levels, coverage and what bounds need, by a row that is made up
        nothing = np.array([None], dtype=object)
        made_up = {
            x: nothing if x in self.labelled else np.ones(1) for x in self.inputs
        }
        self._values(made_up, tell=False)

    def beside(self, table: Any) -> Any:
        """Return a table in memory, of any library, with the new columns."""
        frame = nw.from_native(table, eager_only=True)
        old = frame.select(*(x for x in frame.columns if x not in self.new))
        backend, numbers = frame.implementation, self(frame)
        new = [nw.new_series(k, x, backend=backend) for k, x in numbers.items()]
        found = old.with_columns(*new)
        if gaps := [nw.col(k) for k, x in numbers.items() if np.isnan(x).any()]:
            found = found.with_columns(*(nw.when(~x.is_nan()).then(x) for x in gaps))
        return found.to_native()

    def __call__(self, batch: nw.DataFrame[Any]) -> dict[str, Floats]:
        """Return the new columns of a batch; NaN in rows that cannot be used."""
        columns, usable = {}, np.ones(len(batch), dtype=bool)
        for name in self.inputs:
            if name in self.labelled:
                columns[name] = from_series(batch[name].to_native())
                continue
            x = columns[name] = batch[name].cast(nw.Float64).to_numpy()
            # features may be missing
            is_feature = name in self.columns[1:] and name != self.y_pred
            usable &= ~np.isinf(x) if is_feature else np.abs(x) <= LARGEST
            if name == self.columns[0]:
                usable &= x >= SMALLEST
        found = np.full((len(self.new), usable.size), np.nan)
        which = np.flatnonzero(usable)
        if which.size:
            found[:, which] = self._values({k: x[which] for k, x in columns.items()})
        return dict(zip(self.new, found, strict=True))

    def _values(
        self, columns: Mapping[str, npt.NDArray[Any]], *, tell: bool = True
    ) -> Floats:
        """Return the new columns of rows that can be used."""
        u, *others = (None if x is None else columns[x] for x in self.columns)
        assert u is not None
        features: dict[str, Any] = {}
        for name, key, x in zip(
            self.recalibrator.names_[1:], self.columns[1:], others, strict=True
        ):
            features[name] = np.full(u.size, np.nan) if x is None else x
            if key in self.labelled:
                features[name] = Categories.of(features[name])
        about = None if self.y_pred is None else columns[self.y_pred]
        rows = Predictions(about, u, features=features)
        if tell:
            self.tally.take(self.recalibrator._unlike(rows))
        with quiet():
            done = self.recalibrator._applied(rows, rows)
            found: list[Any] = [done.y_std]
            if self._corrects:
                found.append(done.y_pred)
            d = done.distributions
            if self.quantiles:
                found += [*d.quantile(self.quantiles).T]
            if self.interval is not None:
                limits = d.interval if d.z.dim is None else d.radius
                found += [*np.atleast_2d(limits(self.interval).T)]
        return np.array(found)


def _on_polars(frame: Any, batches: _Batches) -> Any:
    import polars as pl

    def evaluate(batch: Any) -> Any:
        return batches.beside(batch.struct.unnest()).select(batches.new).to_struct()

    kinds = pl.Struct(dict.fromkeys(batches.new, pl.Float64))
    rows = pl.struct(batches.inputs).map_batches(
        evaluate, return_dtype=kinds, is_elementwise=True
    )
    old = [name for name in frame.collect_schema() if name not in batches.new]
    return frame.select(*old, rows.alias(NEW)).unnest(NEW)


def _on_dask(frame: Any, batches: _Batches) -> Any:
    prepare_dask(batches.tally)
    old = frame._meta[[name for name in frame.columns if name not in batches.new]]
    meta = old.assign(**dict.fromkeys(batches.new, np.empty(0)))
    return frame.map_partitions(batches.beside, meta=meta)


def _on_spark(frame: Any, batches: _Batches) -> Any:
    from pyspark.sql.types import DoubleType, StructField, StructType

    prepare_spark(frame, batches.tally)

    def evaluate(parts: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for part in parts:
            yield from batches.beside(pa.Table.from_batches([part])).to_batches()

    kept = [field for field in frame.schema.fields if field.name not in batches.new]
    added = [StructField(name, DoubleType()) for name in batches.new]
    return frame.mapInArrow(evaluate, StructType([*kept, *added]))


def _on_duckdb(relation: Any, batches: _Batches, connection: Any) -> Any:
    import duckdb
    import pyarrow as pa

    def evaluate(*columns: Any) -> Any:
        table = pa.table(dict(zip(batches.inputs, columns, strict=True)))
        return batches.beside(table).select(batches.new).to_struct_array()

    def column(name: str) -> Any:
        return duckdb.ColumnExpression(name)

    ours = duckdb.default_connection() if connection is None else connection
    function = f"sigmascale_{uuid4().hex}"
    kind = duckdb.struct_type(dict.fromkeys(batches.new, "DOUBLE"))
    ours.create_function(
        function, evaluate, None, kind, type="arrow", null_handling="special"
    )
    # PyArrow of old does not know small decimals
    given = [
        column(name) if name in batches.labelled else column(name).cast("DOUBLE")
        for name in batches.inputs
    ]
    call = duckdb.FunctionExpression(function, *given)
    old = [column(name) for name in relation.columns if name not in batches.new]
    try:
        rows = relation.select(*old, call.alias(NEW))
    except duckdb.CatalogException as problem:  # it does not know our function
        ours.remove_function(function)
        msg = (
            "`connection` must be the one that made the relation `frame`, which does "
            "not tell itself. Pass it."
        )
        raise InvalidInputError(msg) from problem
    parts = [
        duckdb.FunctionExpression(
            "struct_extract", column(NEW), duckdb.ConstantExpression(name)
        ).alias(name)
        for name in batches.new
    ]
    return rows.select(*old, *parts)
