"""Tables larger than memory: a sample to fit and to test, batches to apply.

Frames are lazy ones of Polars, DuckDB, Dask or Spark, by way of Narwhals. Which rows
are in a sample depends on these rows alone: a hash of their numbers, computed by
additions, multiplications and comparisons, which IEEE 754 fixes to the last bit. So all
engines draw the same rows, however they are ordered or divided into files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any
from uuid import uuid4

import narwhals as nw
import numpy as np
import numpy.typing as npt

from .._support.checks import (
    LARGEST,
    SMALLEST,
    Bools,
    Floats,
    check_count,
    from_series,
)
from .._support.labels import Categories
from .._support.notices import quiet
from .._support.parameters import check_is_fitted
from .._support.text import listed, quoted, shorten, unused
from ..exceptions import InvalidInputError, NotANumberError
from ..predictions.predictions import Predictions
from ..predictions.schema import RECALIBRATED, Choice, Schema, find
from ..recalibration.additive import MANY_FOR_TABLES, ROWS_AT_A_TIME
from ..recalibration.fitted_rows import Unlike
from ..recalibration.persistence import dumps, loads
from ..recalibration.recalibrator import Recalibrator
from .clusters import Tally, prepare_dask, prepare_spark

Frame = nw.LazyFrame[Any]

ENGINES = {
    nw.Implementation.POLARS,
    nw.Implementation.DUCKDB,
    nw.Implementation.DASK,
    nw.Implementation.PYSPARK,
    nw.Implementation.PYSPARK_CONNECT,
}
HASHED = 12  # columns of numbers, at most
GOLDEN_RATIO = 0.6180339887498949  # whose multiples are spread out


def sample(
    frame: Any, *, n_rows: int = 1_000_000, seed: int = 0, **columns: Any
) -> Predictions:
    """Return about so many rows of a lazy frame, the same ones in every engine.

    Fits and tests are then done in memory: with a million rows, the sampling error of a
    factor is 0.2 %. The frame is read twice, once for the number of its rows
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
    # which column of the frame is what
    kinds = lazy.collect_schema()
    numeric = [name for name, kind in kinds.items() if kind.is_numeric()]
    schema = find(Choice.of_arguments(columns), list(kinds), numeric, errors=False)
    return draw(lazy, schema, check_count(n_rows, "n_rows", least=100), seed)


def apply(
    recalibrator: Recalibrator,
    frame: Any,
    *,
    y_std: str | None = None,
    features: Sequence[str] | None = None,
    y_pred: str | None = None,
    shape: Mapping[str, float] | None = None,
    quantiles: Sequence[float] = (),
    coverage: float | None = None,
    explain: bool = False,
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
    shape : dict of str to float, optional
        The columns of quantiles that rows are made of, with their levels, in order, if
        it was fitted to such rows: see :meth:`sigmascale.Predictions.from_quantiles`.
        `y_pred` and `y_std` are their median and width.
    quantiles : list of float, optional
        Levels whose quantiles become columns: `name` with "_q0.05" and so on. They are
        those of true values, or without `y_pred` those of errors.
    coverage : float, optional
        Coverage of a central interval, which becomes two columns: `name` with "_low"
        and "_high"; of vectors, one: `name` with "_radius".
    explain : bool, default False
        Why u is as large as it is, as :meth:`sigmascale.Recalibrator.explain` says it:
        the typical u becomes a column, and the factor of u and of each feature that
        the scale depends on; and whether a row lies inside the range of those fitted.
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
    recalibrator = copy(recalibrator)  # rows may be read after it was fitted anew
    names = recalibrator.names_
    given = names[1:] if features is None else tuple(features)
    if len(given) != len(names) - 1:
        msg = (
            f"`features` must be {len(names) - 1} columns, those for "
            f"{listed(names[1:])} in this order; found {len(given)}."
        )
        raise InvalidInputError(msg)
    # columns of the frame, in the order in which the recalibrator knows them
    columns = (names[0] if y_std is None else y_std, *given)
    lazy = _as_lazy(frame)
    kinds = lazy.collect_schema()

    # positions that are read: what scale, bias or parts depend on; and other numbers
    # of the fit, with which rows are compared, if they are there
    read = set(recalibrator.columns_)
    for position in recalibrator.fitted_rows_.columns:
        column = columns[position]
        if column in kinds and kinds[column].is_numeric():
            read.add(position)

    table = nw.from_native(frame)
    in_memory = isinstance(table, nw.DataFrame)
    batches = _Batches(
        recalibrator=recalibrator,
        columns=tuple(
            column if position in read else None
            for position, column in enumerate(columns)
        ),
        labelled=frozenset(columns[k] for k in recalibrator.labelled_),
        y_pred=y_pred,
        shape=dict(shape or {}),
        quantiles=tuple(quantiles),
        coverage=coverage,
        explain=explain,
        name=f"{columns[0]}{RECALIBRATED}" if name is None else name,
        tally=Tally(recalibrator, is_whole=in_memory),
        has_many_rows=not in_memory or len(table) >= MANY_FOR_TABLES,
    )
    batches.check(kinds)

    # each engine runs batches in its own way
    if in_memory:
        return batches.beside(frame)
    native = lazy.to_native()
    engine = lazy.implementation
    if engine.is_duckdb():
        return _on_duckdb(native, batches, connection)
    if engine.is_dask():
        return _on_dask(native, batches)
    if engine.is_spark_like():
        return _on_spark(native, batches)
    return _on_polars(native, batches)


# -- samples ---------------------------------------------------------------------------


def _as_lazy(frame: Any) -> Frame:
    """Return a frame as one of Narwhals; a table in memory becomes lazy."""
    wrapped = nw.from_native(frame, pass_through=True)
    if isinstance(wrapped, nw.DataFrame):
        return wrapped.lazy()
    if isinstance(wrapped, nw.LazyFrame) and wrapped.implementation in ENGINES:
        return wrapped
    library = type(frame).__module__.partition(".")[0]
    remedy = "Of files, polars.scan_parquet makes one."
    if isinstance(wrapped, nw.LazyFrame):  # Ibis and SQLFrame run no batches
        method = "to_polars" if library == "ibis" else "toPandas"
        remedy = f"Call its `.{method}()` first, and pass what it returns."
    msg = (
        "`frame` must be a lazy frame of Polars, DuckDB, Dask or Spark; found "
        f"{type(frame).__name__} of {library}. {remedy}"
    )
    raise InvalidInputError(msg)


def _finite(name: str) -> nw.Expr:
    """Return numbers as float64, with null for what is missing or infinite.

    Comparisons, and `is_nan`, do not do: DuckDB decides them from the range that a
    Parquet file says its columns have, and that range leaves NaN out.
    """
    numbers = nw.col(name).cast(nw.Float64)
    return nw.when(numbers.is_finite()).then(numbers)


def draw(
    lazy: Frame, schema: Schema, n_rows: int, seed: int = 0, place: str | None = None
) -> Predictions:
    """Return about so many rows of a lazy frame, with the columns of a schema.

    The frame is read twice: to count its rows, and to collect those that are drawn.
    Messages name rows by the column `place`, if there is one.
    """
    groups = schema.groups
    n_all, sizes = _counted(lazy, schema)
    if n_all <= n_rows:
        return _rows(_collected(lazy, schema, place), schema, place)

    # a share of the rows, or of the groups
    share = n_rows / n_all
    if groups is None:
        drawn = _some_rows(lazy, sizes, share, seed)
    else:
        groups_drawn = _some_groups(lazy, groups, share, seed)
        drawn = lazy.filter(nw.col(groups).is_in(groups_drawn))

    # rows that are alike are drawn or left together: more may come than was asked for
    table = _collected(drawn.head(2 * n_rows + 1), schema, place)
    if groups is None and not n_rows / 2 <= len(table) <= 2 * n_rows:
        msg = (
            f"`frame` has rows that are too much alike to be sampled: of {n_all}, "
            f"{n_rows} were wanted, and {len(table)} or more were drawn. Name a "
            "feature that tells rows apart, or collect a sample of your own."
        )
        raise InvalidInputError(msg, "alike")

    # an order that depends on the rows alone
    rows = _rows(table, schema, place)
    errors = [] if rows.error is None else list(np.atleast_2d(rows.error.T))
    return rows.take(np.lexsort([*errors, *rows.columns]))


def _counted(lazy: Frame, schema: Schema) -> tuple[int, dict[str, float]]:
    """Return the number of rows, and the mean size of each number that is hashed.

    Rows in which something is not known that has to be are refused, whether or not
    they would be drawn.
    """
    # columns of numbers; which have to be known, and which are hashed
    groups = schema.groups
    kinds = lazy.collect_schema()
    numbers = []
    for name in schema.columns:
        is_label = name in schema.labels or name == groups
        if kinds[name].is_numeric() and not is_label:
            numbers.append(name)
    needed = [name for name in numbers if name not in schema.features]
    if groups is not None:
        needed.append(groups)
    hashed = numbers[:HASHED]

    # all in one pass over the frame
    wanted = [nw.len().alias("n")]
    for i, name in enumerate(needed):
        known = nw.col(name) if name == groups else _finite(name)
        wanted.append(known.count().alias(f"count {i}"))
    for i, name in enumerate(hashed):
        wanted.append(_finite(name).abs().mean().alias(f"size {i}"))
    totals = lazy.select(*wanted).collect()

    n_all = int(totals["n"][0])
    for i, name in enumerate(needed):
        n_unknown = n_all - int(totals[f"count {i}"][0])
        if n_unknown > 0:
            msg = (
                f"`{shorten(name)}` must be known and finite in every row; {n_unknown} "
                f"of {n_all} are not. Leave these rows out."
            )
            raise InvalidInputError(msg, "not-finite", name=name, count=n_unknown)
    sizes = {}
    for i, name in enumerate(hashed):
        sizes[name] = float(totals[f"size {i}"][0] or 0)  # none if nothing is known
    return n_all, sizes


def _some_rows(
    lazy: Frame, sizes: Mapping[str, float], share: float, seed: int
) -> Frame:
    """Return a share of all rows: those whose hash, a number in [0, 1), is below it.

    One after the other, numbers are added to what has become of those before, the sum
    is multiplied by something large, and what is left of the point is cut off. Units
    are powers of two: the last bits of a mean depend on the order in which an engine
    adds up, and powers of two do not.
    """
    hashed = unused("hash of the row", lazy.collect_schema())
    lazy = lazy.with_columns(nw.lit(GOLDEN_RATIO).alias(hashed))
    value = nw.col(hashed)
    for k, (name, size) in enumerate(sizes.items()):
        in_units = 2.0 ** -np.round(np.log2(size)) if size > 1e-290 else 1.0
        many = 1e7 * (1 + (1 + k) * (1 + seed) * GOLDEN_RATIO % 1.0)
        number = _finite(name).fill_null(0.0) * float(many * in_units)
        lazy = lazy.with_columns((value + (number - number.floor())).alias(hashed))
        mixed = value * (9973.0 * (1 + GOLDEN_RATIO))
        lazy = lazy.with_columns((mixed - mixed.floor()).alias(hashed))
    return lazy.filter(nw.col(hashed) < share)


def _some_groups(lazy: Frame, groups: str, share: float, seed: int) -> list[Any]:
    """Return a share of all groups, the same in every engine."""
    distinct = lazy.select(groups).unique().collect()[groups].to_list()
    ordered = sorted(distinct, key=lambda group: (str(type(group)), group))
    shuffled = np.random.default_rng(seed).permutation(len(ordered))
    n_drawn = max(1, round(share * len(ordered)))
    return [ordered[i] for i in shuffled[:n_drawn]]


def _collected(
    lazy: Frame, schema: Schema, place: str | None = None
) -> nw.DataFrame[Any]:
    """Return the columns of a schema in memory, and that of places."""
    streaming: Any = {"engine": "streaming"} if lazy.implementation.is_polars() else {}
    columns = [*schema.columns, *filter(None, [place])]
    return lazy.select(*columns).collect(**streaming)


def _rows(table: nw.DataFrame[Any], schema: Schema, place: str | None) -> Predictions:
    """Return the rows of a table, which know their places if there is such a column."""
    rows = schema.read(table.to_native())
    if place is None:
        return rows
    places = table[place].to_numpy()
    # without those of no weight
    return rows._with(places=places if rows.places is None else places[rows.places])


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
    shape : dict of str to float
        The columns of quantiles, with their levels.
    quantiles : tuple of float
        Levels.
    coverage : float or None
        Coverage.
    explain : bool
        Whether factors of u are written.
    name : str
        The new column of uncertainties.
    tally : Tally
        What is unlike the rows of the fit, over all batches.
    has_many_rows : bool
        Whether tables are worth writing out for all batches together.
    """

    recalibrator: Recalibrator
    columns: tuple[str | None, ...]
    labelled: frozenset[str]
    y_pred: str | None
    shape: dict[str, float]
    quantiles: tuple[float, ...]
    coverage: float | None
    explain: bool
    name: str
    tally: Tally
    has_many_rows: bool

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
        """The columns that are read, each once."""
        names = dict.fromkeys([*self.columns, self.y_pred, *self.shape])
        return [name for name in names if name is not None]

    @cached_property
    def outputs(self) -> list[str]:
        """The columns that are written, in order."""
        names = [self.name]
        if self._corrects:
            names.append(f"{self.y_pred}{RECALIBRATED}")
        names += [f"{self.name}_q{level:g}" for level in self.quantiles]
        if self.coverage is not None:
            is_vector = self.recalibrator.distribution_.dim is not None
            ends = ["radius"] if is_vector else ["low", "high"]
            names += [f"{self.name}_{end}" for end in ends]
        if self.explain:
            names += [f"{self.name}_typical"]
            in_fit = self.recalibrator.names_
            names += [f"{self.name}_by_{in_fit[k]}" for k in self._explained]
            names += [f"{self.name}_inside"]
        return names

    @cached_property
    def _explained(self) -> list[int]:
        """The columns that the scale depends on, which have a factor each."""
        return sorted(self.recalibrator.scale_.columns)

    @cached_property
    def _evaluated(self) -> Recalibrator:
        """The recalibrator; for many rows, its tables are written out.

        What counts are the rows of all batches, not those of one.
        """
        if not self.has_many_rows:
            return self.recalibrator
        return self.recalibrator._for_many_rows()

    @property
    def _corrects(self) -> bool:
        """Whether predictions are corrected: there are some, and a bias is known."""
        return self.y_pred is not None and self.recalibrator.bias_ is not None

    def check(self, kinds: nw.Schema) -> None:
        """Refuse columns that are not there, or hold no numbers where they must."""
        if self.recalibrator.shape_kept_ and not self.shape and len(self.outputs) > 1:
            msg = (
                "The recalibrator keeps the shapes of rows, which quantiles, intervals "
                "and corrected predictions need. Pass the columns that rows are made "
                "of: shape={'q05': 0.05, ...}; or take uncertainties alone."
            )
            raise InvalidInputError(msg, "shapes-of-rows")
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
        for name, times in Counter(self.outputs).items():
            if times > 1:
                msg = (
                    f"{times} new columns would be called {quoted(name)}. Pass other "
                    "`quantiles`, or another `name`."
                )
                raise InvalidInputError(msg, "names", name=name)
        # levels, coverage and what bounds need, by a row that is made up
        no_label = np.array([None], dtype=object)
        made_up = {}
        for name in self.inputs:
            made_up[name] = no_label if name in self.labelled else np.ones(1)
        self._values(made_up, [])

    def beside(self, table: Any) -> Any:
        """Return a table in memory, of any library, with the new columns."""
        frame = nw.from_native(table, eager_only=True)
        unchanged = [name for name in frame.columns if name not in self.outputs]
        written = self(frame)
        new_columns = []
        gaps = []  # NaN in rows that cannot be used becomes a null
        for name, values in written.items():
            series = nw.new_series(name, values, backend=frame.implementation)
            new_columns.append(series)
            if np.isnan(values).any():
                column = nw.col(name)
                gaps.append(nw.when(~column.is_nan()).then(column))
        result = frame.select(*unchanged).with_columns(*new_columns)
        if gaps:
            result = result.with_columns(*gaps)
        return result.to_native()

    def __call__(self, batch: nw.DataFrame[Any]) -> dict[str, Floats]:
        """Return the new columns of a batch; NaN in rows that cannot be used."""
        columns: dict[str, npt.NDArray[Any]] = {}
        for name in self.inputs:
            if name in self.labelled:
                columns[name] = from_series(batch[name].to_native())
            else:
                columns[name] = batch[name].cast(nw.Float64).to_numpy()

        values = np.empty((len(self.outputs), len(batch)))
        unlike: list[Unlike] = []
        for start in range(0, len(batch), ROWS_AT_A_TIME):
            rows = slice(start, start + ROWS_AT_A_TIME)
            chunk = {name: x[rows] for name, x in columns.items()}
            is_usable = self._usable(chunk)
            if is_usable.all():
                values[:, rows] = self._values(chunk, unlike)
                continue
            values[:, rows] = np.nan
            if is_usable.any():
                usable = {name: x[is_usable] for name, x in chunk.items()}
                values[:, start + np.flatnonzero(is_usable)] = self._values(
                    usable, unlike
                )
        if unlike:
            self.tally.take(reduce(Unlike.plus, unlike))
        return dict(zip(self.outputs, values, strict=True))

    def _usable(self, columns: Mapping[str, npt.NDArray[Any]]) -> Bools:
        """Return which rows have numbers in range; features may be missing."""
        is_usable = np.ones(len(next(iter(columns.values()))), dtype=bool)
        for name, numbers in columns.items():
            if name in self.labelled:
                continue
            if name in self.columns[1:] and name != self.y_pred:
                is_usable &= ~np.isinf(numbers)
            else:
                is_usable &= np.abs(numbers) <= LARGEST
            if name == self.columns[0]:
                is_usable &= numbers >= SMALLEST
        return is_usable

    def _values(
        self, columns: Mapping[str, npt.NDArray[Any]], unlike: list[Unlike]
    ) -> Floats:
        """Return the new columns of rows that can be used, one in each line.

        Counts of what is unlike the fit are added to those of other rows.
        """
        # the rows as Predictions; NaN stands for features that are not read
        name_of_u = self.columns[0]
        assert name_of_u is not None
        u = columns[name_of_u]
        features: dict[str, Any] = {}
        names_in_fit = self.recalibrator.names_[1:]
        for in_fit, name in zip(names_in_fit, self.columns[1:], strict=True):
            if name is None:
                features[in_fit] = np.full(u.size, np.nan)
            elif name in self.labelled:
                features[in_fit] = Categories.of(columns[name])
            else:
                features[in_fit] = columns[name]
        y_pred = None if self.y_pred is None else columns[self.y_pred]
        rows = Predictions(y_pred, u, features=features)
        if self.shape:
            given = np.column_stack([columns[name] for name in self.shape])
            levels = np.array(list(self.shape.values()))
            rows = rows._shaped(levels, np.sort(given, axis=1))
        unlike.append(self.recalibrator._unlike(rows))

        # what is said of them, in the order of `outputs`
        with quiet():
            applied = self._evaluated._applied(rows, rows)
            values: list[Any] = [applied.y_std]
            if self._corrects:
                values.append(applied.y_pred)
            distributions = applied.distributions
            if self.quantiles:
                values.extend(distributions.quantile(self.quantiles).T)
            if self.coverage is not None and distributions.z.dim is None:
                values.extend(distributions.interval(self.coverage).T)
            elif self.coverage is not None:
                values.append(distributions.radius(self.coverage))
            if self.explain:
                why = self.recalibrator.explain(rows)
                values.append(np.full(u.size, why.typical))
                values.extend(why.factors[:, self._explained].T)
                values.append(why.inside)
        return np.array(values)


def _on_polars(frame: Any, batches: _Batches) -> Any:
    """Return a lazy frame of Polars, whose threads evaluate batches as structs."""
    import polars as pl

    def evaluate(batch: Any) -> Any:
        table = batches.beside(batch.struct.unnest())
        return table.select(batches.outputs).to_struct()

    kinds = pl.Struct(dict.fromkeys(batches.outputs, pl.Float64))
    written = pl.struct(batches.inputs).map_batches(
        evaluate, return_dtype=kinds, is_elementwise=True
    )
    unchanged = [name for name in frame.collect_schema() if name not in batches.outputs]
    new = unused("new columns", unchanged)
    return frame.select(*unchanged, written.alias(new)).unnest(new)


def _on_dask(frame: Any, batches: _Batches) -> Any:
    """Return a frame of Dask, whose workers evaluate each part as one batch."""
    prepare_dask(batches.tally)
    unchanged = [name for name in frame.columns if name not in batches.outputs]
    meta = frame._meta[unchanged].assign(**dict.fromkeys(batches.outputs, np.empty(0)))
    return frame.map_partitions(batches.beside, meta=meta)


def _on_spark(frame: Any, batches: _Batches) -> Any:
    """Return a frame of Spark, whose workers evaluate batches of Arrow."""
    from pyspark.sql.types import DoubleType, StructField, StructType

    prepare_spark(frame, batches.tally)
    # PySpark looks for a column "a.b" in a struct "a": names travel beside the rows
    names = frame.columns
    numbered = frame.toDF(*map(str, range(len(names))))

    def evaluate(parts: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for part in parts:
            table = pa.Table.from_batches([part]).rename_columns(names)
            yield from batches.beside(table).to_batches()

    unchanged = [
        field for field in frame.schema.fields if field.name not in batches.outputs
    ]
    written = [StructField(name, DoubleType()) for name in batches.outputs]
    return numbered.mapInArrow(evaluate, StructType([*unchanged, *written]))


def _on_duckdb(relation: Any, batches: _Batches, connection: Any) -> Any:
    """Return a relation of DuckDB, which calls a function of ours for each batch."""
    import duckdb
    import pyarrow as pa

    # the function: columns of a batch in, a struct of the new columns out
    def evaluate(*columns: Any) -> Any:
        table = pa.table(dict(zip(batches.inputs, columns, strict=True)))
        return batches.beside(table).select(batches.outputs).to_struct_array()

    ours = duckdb.default_connection() if connection is None else connection
    function = f"sigmascale_{uuid4().hex}"
    kind = duckdb.struct_type(dict.fromkeys(batches.outputs, "DOUBLE"))
    ours.create_function(
        function, evaluate, None, kind, type="arrow", null_handling="special"
    )

    # all of them, in a struct that is taken apart in the end
    new = unused("new columns", relation.columns)

    # names in quotes: DuckDB before 2.0 takes "a.b" for a column of a table else
    column_of = {
        name: duckdb.SQLExpression('"' + name.replace('"', '""') + '"')
        for name in [*relation.columns, new]
    }

    # its call beside the columns that stay
    inputs = []
    for name in batches.inputs:
        column = column_of[name]
        # PyArrow of old does not know small decimals
        is_number = name not in batches.labelled
        inputs.append(column.cast("DOUBLE") if is_number else column)
    call = duckdb.FunctionExpression(function, *inputs)
    unchanged = [
        column_of[name] for name in relation.columns if name not in batches.outputs
    ]
    try:
        rows = relation.select(*unchanged, call.alias(new))
    except duckdb.CatalogException as problem:  # it does not know our function
        ours.remove_function(function)
        msg = (
            "`connection` must be the one that made the relation `frame`, which a "
            "relation does not name. Pass it."
        )
        raise InvalidInputError(msg) from problem

    # the struct, taken apart
    written = []
    for name in batches.outputs:
        field = duckdb.ConstantExpression(name)
        value = duckdb.FunctionExpression("struct_extract", column_of[new], field)
        written.append(value.alias(name))
    return rows.select(*unchanged, *written)
