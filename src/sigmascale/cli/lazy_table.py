"""Parquet files that stay where they are: what the commands do with lazy frames."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, and_
from typing import TYPE_CHECKING, Any, NoReturn

import narwhals as nw
import numpy as np
import polars as pl

from .. import frames
from .._support.progress import working
from ..exceptions import InvalidInputError
from ..frames.lazy import collect, difference, is_missing, label, number
from ..judging.validation import Validations
from ..predictions import check_minimum, tell_lifted
from ..roles import LIMITS, Choice, Expected, Form, Roles, new_names, source_of
from .files import about, first_line, format_of, named, refuse_input
from .options import Engine, Reading
from .table import Columns, Opened, bad_condition, read_condition, refuse_made

if TYPE_CHECKING:
    from ..persistence import SavedMap
    from .options import Wanted

ENGINES = (
    *("polars", "duckdb", "_duckdb", "dask", "distributed", "pyarrow", "pyspark"),
    *("narwhals", "pyo3_runtime"),
)
SOME_ROWS = "Make a file of some of them"
UNCERTAINTY = "__uncertainty__"  # a column that is computed


@dataclass(kw_only=True)
class LazyTable(Opened):
    """Parquet files as one table, of which nothing is read before it is needed.

    Attributes
    ----------
    frame : LazyFrame
        The rows with all columns.
    n_rows : int or None
        The number of rows, known once they were queried.
    may_be_missing : tuple of str
        Features that a recalibrator takes even where they are missing.
    sample : int or None
        Rows that are drawn where sums do not do; None is as many as by default.
    """

    frame: nw.LazyFrame[Any]
    n_rows: int | None = None
    may_be_missing: tuple[str, ...] = ()
    sample: int | None = None

    @classmethod
    def open(
        cls,
        files: Sequence[str],
        reading: Reading,
        choice: Choice | Expected,
        sample: int | None = None,
    ) -> LazyTable:
        """Find the columns of files; nothing else is read."""
        lazy = _scan(files, reading)
        with about(named(files)):
            columns = _without_rows(lazy)
            if (form := choice.form_in(columns.names)) is not None:
                refuse_made(form, columns.names)
                lazy = _with_form(lazy, form)
                columns = _without_rows(lazy)
            if reading.where is not None:
                lazy = _where(lazy, columns, reading)
            roles = choice.find_targets(columns)
            table = cls(
                files=tuple(files),
                reading=reading,
                roles=roles,
                frame=lazy,
                sample=sample,
            )
            if table.first.formula is not None:
                table.require_memory("--formula", "Store what is derived from it")
            if reading.drop_missing and not table.is_several:
                # of several targets, what is missing has an empty result
                table.frame = _with_all_values(lazy, table.first)
        for each in roles.values():
            if each.minimum is not None:
                table._tell_lifted(each)
        return table

    def _tell_lifted(self, roles: Roles) -> None:
        """Say how many uncertainties are below the minimum."""
        minimum = check_minimum(roles.minimum)
        schema = self.frame.collect_schema()
        with self._querying("counting"):
            u, *_ = _standard_deviations(schema, replace(roles, minimum=None))
            counts = nw.when(u < minimum).then(1).otherwise(0).sum().alias("few")
            found = collect(self.frame.select(counts, nw.len().alias("rows")))
            few, rows = (int(found[name][0] or 0) for name in ("few", "rows"))
            tell_lifted(few, rows, minimum)

    def require_memory(self, what: str, remedy: str = SOME_ROWS) -> NoReturn:
        """Refuse what needs rows in memory."""
        msg = f"{what} needs rows in memory. {remedy}, or pass --engine memory."
        raise InvalidInputError(msg)

    def times(self, name: str) -> NoReturn:
        """Refuse to sort rows by time."""
        self.require_memory("--time", "Judge some of them")

    def hold_back(self, share: float, groups: str | None, seed: int) -> NoReturn:
        """Refuse to divide rows at random."""
        self.require_memory("--conformal-share")

    def factors(self, scaler: Any) -> dict[str, float]:
        """Return nothing: what uncertainties are multiplied by takes rows to see."""
        return {}

    def fit(self, scaler: Any, groups: str | None = None) -> None:
        """Fit a recalibrator from sums, or from a sample of rows where it needs them.

        Rows with equal values of `groups` stay together, in a sample of whole groups.
        """
        rows = self._judged_rows()
        with self._querying("fitting"):
            frames.fit(scaler, groups=groups, **rows)
        self.n_rows = scaler.n_samples_fit_
        self._count_missing()

    def _count_missing(self) -> None:
        """Count the rows without a feature: that they are no error is told."""
        schema, labels = self.frame.collect_schema(), self.first.labels
        bad = [
            nw.col(name).is_null()
            if name in labels
            else is_missing(number(schema, name))
            for name in self.first.optional
        ]
        if bad:
            counts = [
                nw.when(each).then(1).otherwise(0).sum().alias(f"c{i}")
                for i, each in enumerate(bad)
            ]
            found = collect(self.frame.select(*counts))
            every = {
                x: int(found[f"c{i}"][0]) for i, x in enumerate(self.first.optional)
            }
            self.missing = {name: count for name, count in every.items() if count}

    def validate(self, *, groups: str | None, **options: Any) -> Validations:
        """Judge the uncertainties by a sample; rows with equal `groups` go together."""
        rows = self._judged_rows()
        with self._querying("judging the uncertainties"):
            found = frames.validate(groups=groups, **rows, **options)
        self.n_rows = found.scores.n_rows
        return Validations({"": found}, found.confidence, found.tolerance)

    def _judged_rows(self) -> dict[str, Any]:
        """Return what is fitted or judged: standard deviations, labels and errors."""
        if self.is_several:
            msg = (
                "Several targets are fitted and judged in memory. Make a file of some "
                "rows, or pass --engine memory."
            )
            raise InvalidInputError(msg)
        roles, schema = self.first, self.frame.collect_schema()
        error = " - ".join(roles.error)  # in the words of the user
        with about(self.file):
            find = number if len(roles.error) == 1 else difference
            made = [find(schema, *roles.error).alias(error)]
            labels = [
                label(self.frame, schema, name).alias(name) for name in roles.labels
            ]
            called = (roles.uncertainty, *roles.components)
            for each, name in zip(
                _standard_deviations(schema, roles), called, strict=True
            ):
                made.append(each.alias(name))
        return {
            "frame": self.frame.with_columns(*made, *labels).to_native(),
            "error": error,
            "uncertainty": roles.uncertainty,
            "features": roles.features,
            "sample_weight": roles.weight,
            **({} if self.sample is None else {"sample": self.sample}),
        }

    def shift_advice(self, groups: str | None = None, seed: int = 0) -> str:
        """Return no advice: that takes rows in memory."""
        return ""

    def recalibrate(
        self, maps: Mapping[str, SavedMap], name: str | None, wanted: Wanted
    ) -> LazyTable:
        """Return the table with new columns: uncertainties, and what else is wanted."""
        made = () if self.first.form is None else self.first.form.made
        frame = self.frame
        names = [name for name in frame.collect_schema() if name not in made]
        may_be_missing: dict[str, None] = {}
        with self._querying("recalibrating"):
            new = new_names(name, self.roles, names, wanted.endings)
            for called, (target, roles) in zip(new, self.roles.items(), strict=False):
                frame = _recalibrate(frame, maps[target], roles, called, wanted)
                if wanted.coverage is not None:
                    frame = _with_limits(frame, maps[target], roles, called, wanted)
                if roles.is_variance:
                    squared = nw.col(called) * nw.col(called)
                    frame = frame.with_columns(squared.alias(called))
                may_be_missing |= dict.fromkeys(_optional(maps[target], roles))
        return replace(
            self,
            frame=frame.select(*names, *new),
            new=tuple(new),
            may_be_missing=tuple(may_be_missing),
        )

    def write(self, output: str, fitted: dict[str, Roles]) -> dict[str, Any]:
        """Write the rows with all their columns; return what is told of them.

        All columns have types of their own, whatever the `fitted` roles.
        """
        if format_of(output) != "parquet":
            msg = (
                f"{output}: what is not read into memory is written as .parquet only. "
                "What fits the memory can be written otherwise: --engine memory."
            )
            raise InvalidInputError(msg)
        refuse_input(output, self.files)
        with self._querying("recalibrating"):
            frames.sink(self.frame.to_native(), output)
        if "://" in output:
            return {}
        return _written(output, self.may_be_missing, self.new[0])

    @contextmanager
    def _querying(self, doing: str) -> Iterator[None]:
        """Show that files are queried, and say what an engine has against them."""
        with about(self.file), working(doing):
            try:
                yield
            except InvalidInputError as problem:
                if " missing" not in str(problem):
                    raise
                msg = f"{problem} --drop-missing leaves out rows with missing values."
                raise InvalidInputError(msg) from problem
            except (Exception, pl.exceptions.PanicException) as problem:
                if type(problem).__module__.split(".")[0] not in ENGINES:
                    raise
                msg = (
                    f"cannot be queried ({first_line(problem)}). Files that are read "
                    "together must have the same columns, of the same types."
                )
                raise InvalidInputError(msg) from problem

    def __str__(self) -> str:
        """Return what is taken from the files, in words."""
        rows = "" if self.n_rows is None else f"{self.n_rows} rows, "
        where = "" if self.reading.where is None else f", where {self.reading.where}"
        words = f"{rows}not read into memory{where}; {self.first}{self._gaps}"
        return f"{self.file}: {words}."

    def to_dict(self) -> dict[str, Any]:
        """Return what is taken from the files, for machines."""
        return {
            "files": list(self.files),
            "rows": self.n_rows,
            "where": self.reading.where,
            **({"missing": self.missing} if self.missing else {}),
            **source_of(self.roles),
        }


def _scan(files: Sequence[str], reading: Reading) -> nw.LazyFrame[Any]:
    """Return Parquet files as a lazy frame of Narwhals."""
    if reading.separator is not None or reading.decimal is not None:
        msg = (
            f"{named(files)}: --separator and --decimal are for text files, which are "
            "read into memory: --engine memory."
        )
        raise InvalidInputError(msg)
    engine: Any = Engine.polars if reading.engine is None else reading.engine
    try:
        native = frames.scan(
            list(files), engine=engine.value, scheduler=reading.scheduler
        )
        lazy: nw.LazyFrame[Any] = nw.from_native(native).lazy()
        lazy.collect_schema()
    except InvalidInputError:
        raise
    except ImportError as problem:
        extra = "frames" if engine == Engine.polars else engine.value
        remedy = f'pip install ".[{extra}]" in a checkout'
        msg = f"{problem}, which --engine {engine.value} needs: {remedy}"
        raise InvalidInputError(msg) from problem
    except (Exception, pl.exceptions.PanicException) as problem:
        # each engine has errors of its own
        words = first_line(problem)
        msg = f"{named(files)}: cannot be read as Parquet files ({words})."
        raise InvalidInputError(msg) from problem
    return lazy


def _without_rows(lazy: nw.LazyFrame[Any]) -> Columns:
    """Return columns of the same names and types, in memory."""
    schema = lazy.collect_schema()
    empty = nw.from_dict({name: [] for name in schema}, schema=schema, backend="polars")
    return Columns(empty.to_native())


def _where(
    lazy: nw.LazyFrame[Any], columns: Columns, reading: Reading
) -> nw.LazyFrame[Any]:
    """Return the rows that meet a condition, in the language of the engine."""
    text, native = str(reading.where), lazy.to_native()
    engine = reading.engine or Engine.polars
    try:
        if engine == Engine.polars:
            condition = read_condition(text, columns.names, "--where")
            columns.frame.filter(condition)  # types that cannot be compared
            kept = native.filter(condition)
        elif engine == Engine.dask:
            kept = native.query(text)
        else:
            kept = native.filter(text)
        found: nw.LazyFrame[Any] = nw.from_native(kept).lazy()
        return found
    except InvalidInputError:
        raise
    except Exception as problem:  # each engine has errors of its own
        raise bad_condition(text, columns.names, "--where", problem) from problem


def _with_all_values(lazy: nw.LazyFrame[Any], roles: Roles) -> nw.LazyFrame[Any]:
    """Leave out rows with missing values."""
    schema = lazy.collect_schema()
    for name in roles.of_numbers:
        lazy = lazy.filter(~is_missing(number(schema, name)))
    for name in roles.labels:
        lazy = lazy.filter(~nw.col(name).is_null())
    return lazy


def _with_form(lazy: nw.LazyFrame[Any], form: Form) -> nw.LazyFrame[Any]:
    """Return a frame with prediction and uncertainty, made of other columns.

    Both are linear in quantiles, whose weights are what Python makes of unit vectors.
    """
    n = len(form.columns)
    weights = form.values(np.eye(n))
    x = [number(lazy.collect_schema(), name) for name in form.columns]
    middle, u = (
        reduce(add, (float(w) * each for w, each in zip(row, x, strict=True)))
        for row in weights
    )
    if not form.levels:
        apart = [each - x[0] for each in x]  # exactly 0 where members are equal
        mean = reduce(add, apart) / n
        u = (reduce(add, ((each - mean) ** 2 for each in apart)) / (n - 1)).sqrt()
    return lazy.with_columns(**dict(zip(form.made, (middle, u), strict=True)))


def _standard_deviations(schema: nw.Schema, roles: Roles) -> list[nw.Expr]:
    """Return the uncertainty, and its components; what is negative stays so."""
    found = [number(schema, name) for name in roles.of_uncertainty]
    if roles.is_variance:  # engines differ in the root of a negative number
        found = [nw.when(u >= 0).then(u.sqrt()).otherwise(u) for u in found]
    if roles.components:
        usable = reduce(and_, (u >= 0 for u in found))
        total = reduce(add, (u * u for u in found)).sqrt()
        found = [nw.when(usable).then(total).otherwise(-1.0), *found]
    if roles.minimum is not None:
        few = found[0] < roles.minimum
        found[0] = nw.when(few).then(roles.minimum).otherwise(found[0])
    return found


def _recalibrate(
    frame: nw.LazyFrame[Any], saved: SavedMap, roles: Roles, called: str, wanted: Wanted
) -> nw.LazyFrame[Any]:
    """Return a frame with the recalibrated uncertainties of one target."""
    levels = [*wanted.quantiles]
    if wanted.coverage is not None and saved.conformal is None:
        levels += wanted.ends
    if saved.shift is not None and (wanted.shift or saved.conformal is not None):
        msg = (
            "shifted predictions, and limits with a guarantee around them, are made in "
            "memory: pass --engine memory, or make a file of some rows."
        )
        raise InvalidInputError(msg)
    schema = frame.collect_schema()
    u, *parts = _standard_deviations(schema, roles)
    values = dict(zip(roles.components, parts, strict=True))
    values |= {each: label(frame, schema, each) for each in roles.labels}
    made = {each: f"__{each}__" for each in values}
    others = [value.alias(made[each]) for each, value in values.items()]
    recalibrated: nw.LazyFrame[Any] = nw.from_native(
        frames.predict(
            saved,
            frame.with_columns(u.alias(UNCERTAINTY), *others).to_native(),
            uncertainty=UNCERTAINTY,
            features=[made.get(each, each) for each in roles.features],
            name=called,
            quantiles=list(dict.fromkeys(levels)),
            prediction=roles.prediction if levels else None,
        )
    )
    return recalibrated


def _with_limits(
    frame: nw.LazyFrame[Any], saved: SavedMap, roles: Roles, u: str, wanted: Wanted
) -> nw.LazyFrame[Any]:
    """Return a frame with limits: of rows held out, or quantiles that are there."""
    assert wanted.coverage is not None
    held = saved.z_limits(wanted.coverage)
    if held is None:
        limits = [nw.col(f"{u}_q{level:g}") for level in wanted.ends]
    else:
        limits = [nw.col(u) * float(each) for each in held]
        if roles.prediction is not None:
            value = number(frame.collect_schema(), roles.prediction)
            limits = [value + each for each in limits]
    names = [f"{u}{end}" for end in LIMITS]
    return frame.with_columns(**dict(zip(names, limits, strict=True)))


def _optional(saved: SavedMap, roles: Roles) -> list[str]:
    """Return the features that a recalibrator takes even where they are missing."""
    from ..maps.nodes import columns_of

    optional = {c.position for c in columns_of(saved.root) if c.kind == "optional"}
    return [
        each
        for position, each in enumerate(roles.features, start=1)
        if position in optional and each in roles.numbers
    ]


def _written(output: str, features: Sequence[str], name: str) -> dict[str, Any]:
    """Return how many rows were written, and warn of those that lack something.

    `features` are those that may be missing.
    """
    counts = {"rows": pl.len(), "empty": pl.col(name).is_null().sum()}
    for feature in features:
        x = pl.col(feature).cast(pl.Float64)
        counts[f"no {feature}"] = (x.is_null() | x.is_nan()).sum()
    found = frames.scan(output).select(**counts).collect(engine="streaming")
    rows, empty, *missing = found.row(0)
    if empty:
        warnings.warn(
            f"{empty} of {rows} rows have no {name}: their uncertainty, or a feature "
            "that is needed, is missing, infinite or negative.",
            stacklevel=2,
        )
    for feature, count in zip(features, missing, strict=True):
        if count:
            warnings.warn(
                f"{count} of {rows} rows have no {feature}. Unless there were such "
                "rows in the fit, their uncertainties are a guess.",
                stacklevel=2,
            )
    return {"rows": rows, "empty": empty}
