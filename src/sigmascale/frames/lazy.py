"""Rows of a lazy frame: columns by name, checked, and the terms that are summed.

Everything here goes through Narwhals, in operations that Polars, DuckDB, Dask and
Spark all have. Sums and limits must not depend on the engine: rows are sorted into
fine bins by additions, multiplications and comparisons alone, which IEEE 754 fixes to
the last bit, and never by a logarithm, whose last bit is the library's own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy.typing as npt

from .._support.checks import EXACT, LARGEST, LARGEST_Z, SMALLEST, from_series
from .._support.labels import label_array
from ..bins.fine_bins import LARGEST_FEATURE
from ..exceptions import InvalidInputError, NotANumberError
from ..predictions import Columns

TERMS = ("z2", "z4", "z6", "e2", "u2", "log_u2")

HALF = 2**32  # of the range of a whole number of 64 bits

Frame = nw.LazyFrame[Any]
Arrays = dict[str, npt.NDArray[Any]]  # columns of a small result


def as_lazy(frame: Any) -> Frame:
    """Return a Narwhals lazy frame from one of any library, lazy or not."""
    found = nw.from_native(frame, pass_through=True)
    if isinstance(found, nw.DataFrame):
        return found.lazy()
    if not isinstance(found, nw.LazyFrame):
        msg = (
            "`frame` must be a lazy frame of Polars, DuckDB, Dask or Spark; found "
            f"{type(frame).__name__}. sigmascale.frames.scan makes one of files."
        )
        raise InvalidInputError(msg)
    return found


@dataclass(frozen=True)
class LazyRows(Columns):
    """Rows whose columns are u, e (the error) and x1, x2, ... (the features).

    A row with an unusable error or uncertainty has no u, and no feature that is a
    number; an unusable number is null. :meth:`refuse` says what is wrong with them.

    Attributes
    ----------
    frame : LazyFrame
        These columns.
    names : tuple of str
        What the caller calls u, x1, x2, ...
    labelled : frozenset of str
        The columns, among x1, x2, ..., that hold labels.
    source : LazyFrame
        The caller's frame.
    error : str
        What the caller calls the error.
    unchecked : LazyFrame
        The columns of numbers as they come, for those who check them.
    """

    frame: Frame
    names: tuple[str, ...]
    labelled: frozenset[str]
    source: Frame
    error: str
    unchecked: Frame

    def with_labels(self, positions: Collection[int]) -> LazyRows:
        """Return the same rows, but with numbers of some columns taken for labels."""
        if all(self.columns[position] in self.labelled for position in positions):
            return self
        named = [self.names[position] for position in positions]
        return read_rows(
            self.source, self.error, self.names[0], self.names[1:], categorical=named
        )

    @property
    def columns(self) -> list[str]:
        """The columns: u, x1, x2, ..."""
        return ["u", *(f"x{i}" for i in range(1, len(self.names)))]

    def column(self, name: str) -> str:
        """Return the column that the caller calls by a name."""
        return self.columns[self.names.index(name)]

    def refuse(self, *, missing_allowed: bool = False) -> None:
        """Raise an error that counts what is wrong with the rows, by column.

        Features that are numbers may be missing if that is allowed.
        """
        numbers = {
            name: missing_allowed and position > 1
            for position, name in enumerate((self.error, *self.names))
            if position < 2 or f"x{position - 1}" not in self.labelled
        }
        counts = [nw.len().alias("rows")]
        kinds: dict[str, tuple[str, str]] = {}
        for name, may_be_missing in numbers.items():
            for kind, bad in self._problems(name).items():
                if kind == "missing" and may_be_missing:
                    continue
                alias = f"bad{len(kinds)}"
                kinds[alias] = (name, kind)
                counts.append(nw.when(bad).then(1).otherwise(0).sum().alias(alias))
        found = collect(self.source.select(*counts))
        n_rows = int(found["rows"][0])
        if n_rows == 0:
            msg = "`frame` must have at least 1 row; found 0. Are the files empty?"
            raise InvalidInputError(msg)
        by_column: dict[str, list[str]] = {}
        for alias, (name, kind) in kinds.items():
            if found[alias][0] > 0:
                by_column.setdefault(name, []).append(f"{int(found[alias][0])} {kind}")
        if by_column or not missing_allowed:
            listed = "; ".join(f"`{n}`: {', '.join(k)}" for n, k in by_column.items())
            msg = (
                "Errors must be finite, uncertainties finite and strictly positive, "
                f"and features finite numbers; of {n_rows} rows these are not: "
                f"{listed}. Leave these rows out, repair the column, or lift "
                "uncertainties to a minimum first."
            )
            raise InvalidInputError(msg)

    def _problems(self, name: str) -> dict[str, nw.Expr]:
        x = nw.col(name).cast(nw.Float64)
        finite = is_finite(x)
        problems = {"missing": is_missing(x), "infinite": is_infinite(x)}
        if name == self.names[0]:
            problems["not positive"] = finite & (x <= 0)
            beyond = (x > 0) & ((x < SMALLEST) | (x > LARGEST))
            return problems | {
                f"not between {SMALLEST:g} and {LARGEST:g}": finite & beyond
            }
        if name == self.error:
            u = nw.col(self.names[0]).cast(nw.Float64)
            beyond = (x.abs() > LARGEST) | ((u > 0) & (x.abs() > LARGEST_Z * u))
            many = f"above {LARGEST:g} or {LARGEST_Z:g} times the uncertainty"
            return problems | {many: finite & is_finite(u) & beyond}
        most = _most(self.source.collect_schema()[name])
        return problems | {f"above {most:g}": finite & (x.abs() > most)}


def read_rows(
    frame: Any,
    error: str,
    uncertainty: str,
    features: Iterable[str] = (),
    *,
    categorical: Collection[str] = (),
) -> LazyRows:
    """Return the named columns of a lazy frame; `categorical` numbers are labels."""
    source = as_lazy(frame)
    names = (uncertainty, *names_of(features))
    schema = source.collect_schema()
    _check_names(schema, error, names)
    e, u = (number(schema, name) for name in (error, uncertainty))
    bound = LARGEST_Z * u
    usable = (
        is_finite(e)
        & is_finite(u)
        & (u >= SMALLEST)
        & (u <= LARGEST)
        & (e >= -LARGEST)
        & (e <= LARGEST)
    )
    usable = usable & (e >= -bound) & (e <= bound)
    columns = [e.alias("e"), nw.when(usable).then(u).alias("u")]
    unchecked = [e.alias("e"), u.alias("u")]
    labelled = set()
    for i, name in enumerate(names[1:], start=1):
        if is_text(schema[name]) or name in categorical:
            x = _labels(schema, name)
            labelled.add(f"x{i}")
        else:
            x = number(schema, name)
            unchecked.append(x.alias(f"x{i}"))
            most = _most(schema[name])
            within = is_finite(x) & (x >= -most) & (x <= most)
            x = nw.when(within & usable).then(x + 0.0)  # there is no -0.0
        columns.append(x.alias(f"x{i}"))
    return LazyRows(
        source.select(*columns),
        names,
        frozenset(labelled),
        source,
        error,
        source.select(*unchecked),
    )


def _most(kind: Any) -> float:
    """Return how large a feature may be; float64 rounds larger whole numbers."""
    return float(EXACT) if kind.is_integer() else LARGEST_FEATURE


def number(schema: nw.Schema, name: str) -> nw.Expr:
    """Return a column as float64, or refuse what is no number."""
    if is_text(schema[name]) or not (
        schema[name].is_numeric() or schema[name] == nw.Boolean
    ):
        msg = (
            f"`{name}` must hold numbers; it is a column of {schema[name]}. Convert "
            "it first."
        )
        raise NotANumberError(msg)
    return nw.col(name).cast(nw.Float64)


def _labels(schema: nw.Schema, name: str) -> nw.Expr:
    """Return a column of labels: text, whole numbers as they are, or other numbers."""
    if is_text(schema[name]):
        return nw.col(name).cast(nw.String)
    if schema[name].is_integer():  # float64 would take some of them for the same
        return nw.col(name)
    x = number(schema, name)
    return nw.when(~is_missing(x)).then(x)


def label(frame: Frame, schema: nw.Schema, name: str) -> nw.Expr:
    """Return a column as text that does not depend on the engine, or refuse it.

    Engines differ in how they write real numbers and dates; Polars writes them as it
    does for tables in memory, where dates with times are refused, too.
    """
    x, kind = nw.col(name), schema[name]
    if is_text(kind):
        return x.cast(nw.String)
    if kind.is_integer():
        # Dask reads whole numbers as real ones where some are missing
        return x.cast(nw.String).str.replace_all(r"\.0$", "")
    if kind == nw.Boolean:
        text = nw.when(x).then(nw.lit("true")).otherwise(nw.lit("false"))
        return nw.when(~x.is_null()).then(text)
    written = kind.is_numeric() or kind in (nw.Date, nw.Time)
    if written and frame.implementation.is_polars():
        return x.cast(nw.String)
    remedy = "Store text or whole numbers." if written else "Convert it first."
    msg = f"`{name}` must hold labels; it is a column of {kind}. {remedy}"
    raise InvalidInputError(msg)


def difference(schema: nw.Schema, minuend: str, subtrahend: str) -> nw.Expr:
    """Return the difference of two columns, of whole numbers without loss."""
    if not (schema[minuend].is_integer() and schema[subtrahend].is_integer()):
        return number(schema, minuend) - number(schema, subtrahend)
    # float64 holds the upper and the lower half of a whole number, but not all of it
    x, y = nw.col(minuend), nw.col(subtrahend)
    upper, lower = (
        first.cast(nw.Float64) - second.cast(nw.Float64)
        for first, second in (
            (x // HALF, y // HALF),
            (x - x // HALF * HALF, y - y // HALF * HALF),  # engines differ in %
        )
    )
    return upper * float(HALF) + lower


def is_finite(x: nw.Expr) -> nw.Expr:
    """Return whether numbers are neither NaN nor infinite.

    Comparisons, and `is_nan`, do not do: DuckDB decides them from the range that a
    Parquet file says its columns have, and that range leaves NaN out.
    """
    return x.is_finite()


def is_infinite(x: nw.Expr) -> nw.Expr:
    """Return whether numbers are infinite; null where they are missing."""
    return (x == float("inf")) | (x == -float("inf"))


def is_missing(x: nw.Expr) -> nw.Expr:
    """Return whether numbers are null or NaN."""
    return x.is_null() | (~is_finite(x) & ~is_infinite(x))


def is_text(dtype: nw.dtypes.DType) -> bool:
    """Return whether a column holds labels."""
    return dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object)


def names_of(features: Any) -> list[str]:
    """Return the names of features, which must be a list of them."""
    if isinstance(features, str) or not isinstance(features, Iterable):
        msg = f"`features` must be a list of the names of columns; found {features!r}."
        raise InvalidInputError(msg)
    return list(features)


def _check_names(schema: nw.Schema, error: str, names: tuple[str, ...]) -> None:
    for name in (error, *names):
        if name not in schema:
            known = ", ".join(str(each) for each in schema)
            msg = f"`frame` must have a column {name!r}; its columns are: {known}."
            raise InvalidInputError(msg)
    if len({error, *names}) < 1 + len(names):
        msg = (
            "The error, the uncertainty and the features must be different columns; "
            f"found {', '.join((error, *names))}."
        )
        raise InvalidInputError(msg)


def with_terms(frame: Frame, terms: Collection[str]) -> Frame:
    """Add the terms whose sums are wanted."""
    if not terms:
        return frame
    u, e, z2, z4 = (nw.col(name) for name in ("u", "e", "z2", "z4"))
    frame = frame.with_columns(z2=(e / u) * (e / u))
    if "z4" in terms:
        frame = frame.with_columns(z4=z2 * z2)
    nonzero = nw.when(e != 0).then(1.0).otherwise(0.0)
    others = {"nonzero": nonzero, "z6": z4 * z2, "e2": e * e, "u2": u * u}
    others["log_u2"] = 2 * u.log()
    wanted = {name: term for name, term in others.items() if name in terms}
    return frame.with_columns(**wanted) if wanted else frame


def sums_of(terms: Iterable[str]) -> dict[str, nw.Expr]:
    """Return the number of rows and the sums of the terms, to aggregate by."""
    return {"n": nw.len(), **{term: nw.col(term).sum() for term in terms}}


def collect(frame: Frame) -> Arrays:
    """Run the query and return its (small) result."""
    polars = frame.implementation.is_polars()
    streaming: Any = {"engine": "streaming"} if polars else {}
    table = frame.collect(**streaming)
    return {name: values_of(table[name]) for name in table.columns}


def values_of(series: nw.Series[Any]) -> npt.NDArray[Any]:
    """Return the values of a column in memory: numbers, of which NaN, or objects.

    Whole numbers stay whole, even if some are missing, so that labels stay apart.
    """
    if series.dtype.is_integer() and series.is_null().any():
        return label_array(series.to_list())
    values: npt.NDArray[Any] = from_series(series.to_native())
    return values
