"""Parquet files that stay where they are: what the commands do with lazy frames."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, and_
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ..._support.progress import working
from ...exceptions import InvalidInputError
from ...roles import Choice, Expected, Roles, free_names
from ..outputs import refuse_input
from .files import format_of
from .filesets import about, matching, named
from .parquet_claims import check_claims
from .reading import Engine, Reading
from .sources import first_line
from .values import RawTable

if TYPE_CHECKING:
    import narwhals as nw

    from ...judging.validation import Validation
    from ...persistence import SavedMap
    from ...scaling import VarianceScaler

ENGINES = (
    *("polars", "duckdb", "_duckdb", "dask", "distributed", "pyarrow", "pyspark"),
    *("narwhals", "pyo3_runtime"),
)
SOME_ROWS = "Make a file of some of them"
UNCERTAINTY = "__uncertainty__"  # a column that is computed


@dataclass
class LazyTable:
    """Parquet files as one table, of which nothing is read before it is needed.

    Attributes
    ----------
    files : tuple of str
        Their names.
    reading : Reading
        How they are read.
    roles : Roles
        Which of their columns are used.
    frame : LazyFrame
        The rows with all columns.
    n_rows : int or None
        The number of rows, known once they were queried.
    new : tuple of str
        Columns that were added, the recalibrated uncertainty first.
    may_be_missing : tuple of str
        Features that a recalibrator takes even where they are missing.
    sample : int or None
        Rows that are drawn where sums do not do; None is as many as by default.
    """

    files: tuple[str, ...]
    reading: Reading
    roles: Roles
    frame: nw.LazyFrame[Any]
    n_rows: int | None = None
    new: tuple[str, ...] = ()
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
        import narwhals as nw

        lazy = _scan(files, reading)
        with about(named(files)):
            if reading.where is not None:
                from .where import Where

                lazy = Where.parse(reading.where).keep_lazily(lazy)
            schema = lazy.collect_schema()
            # a frame without rows has the same names and types
            empty = nw.from_dict(
                {name: [] for name in schema}, schema=schema, backend="polars"
            )
            roles = choice.find(RawTable(empty.to_native()))
            table = cls(tuple(files), reading, roles, lazy, sample=sample)
            if roles.formula is not None:
                table.require_memory("--formula", "Store what is derived from it")
            if reading.drop_missing:
                table.frame = _with_all_values(lazy, roles)
            return table

    @property
    def file(self) -> str:
        """What to call the files."""
        return named(self.files)

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

    def conformalize(self, scaler: VarianceScaler) -> NoReturn:
        """Refuse to sort z-scores."""
        self.require_memory("--conformal-share")

    def fit(self, scaler: VarianceScaler, groups: str | None = None) -> None:
        """Fit a recalibrator from sums, or from a sample of rows where it needs them.

        Rows with equal values of `groups` stay together, in a sample of whole groups.
        """
        from ... import frames

        with self._querying("fitting"):
            frames.fit(
                scaler,
                self._with_error(),
                error=self._error,
                uncertainty=self.roles.uncertainty,
                features=self.roles.features,
                groups=groups,
                sample_weight=self.roles.weight,
                **self._sample_size,
            )
        self.n_rows = scaler.n_samples_fit_

    def factors(self, scaler: VarianceScaler) -> dict[str, float]:
        """Return nothing: what uncertainties are multiplied by takes rows to see."""
        return {}

    def validate(
        self,
        n_bins: int | None,
        seed: int,
        *,
        groups: str | None = None,
        **options: Any,
    ) -> Validation:
        """Judge the uncertainties by a sample; rows with equal `groups` go together."""
        from ... import frames

        with self._querying("judging the uncertainties"):
            found = frames.validate(
                self._with_error(),
                error=self._error,
                uncertainty=self.roles.uncertainty,
                features=self.roles.features,
                groups=groups,
                sample_weight=self.roles.weight,
                n_bins=n_bins,
                rng=seed,
                **self._sample_size,
                **options,
            )
        self.n_rows = found.scores.n_rows
        return found

    @property
    def _sample_size(self) -> dict[str, int]:
        """How many rows to draw, if anybody said it."""
        return {} if self.sample is None else {"sample": self.sample}

    @property
    def _error(self) -> str:
        """The column of errors, in the words of the user."""
        return " - ".join(self.roles.error)

    def _with_error(self) -> Any:
        """Return the frame with standard deviations, labels and errors in it."""
        from ...frames.lazy import difference, label, number

        schema = self.frame.collect_schema()
        find = number if len(self.roles.error) == 1 else difference
        error = find(schema, *self.roles.error)
        labels = [
            label(self.frame, schema, name).alias(name) for name in self.roles.labels
        ]
        total, *parts = _standard_deviations(schema, self.roles)
        parts = [
            part.alias(name)
            for part, name in zip(parts, self.roles.components, strict=True)
        ]
        made = [error.alias(self._error), total.alias(self.roles.uncertainty)]
        return self.frame.with_columns(*made, *parts, *labels).to_native()

    def recalibrate(
        self, saved: SavedMap, name: str | None, coverage: float | None
    ) -> LazyTable:
        """Return the table with new columns: uncertainties, and limits if asked for."""
        import narwhals as nw

        from ... import frames
        from ...frames.lazy import label
        from ...maps.nodes import columns_of

        roles, names = self.roles, list(self.frame.collect_schema())
        with self._querying("recalibrating"):
            new = free_names(name, roles, names, with_limits=coverage is not None)
            schema = self.frame.collect_schema()
            u, *parts = _standard_deviations(schema, roles)
            values = dict(zip(roles.components, parts, strict=True))
            values |= {each: label(self.frame, schema, each) for each in roles.labels}
            made = {each: f"__{each}__" for each in values}
            others = [value.alias(made[each]) for each, value in values.items()]
            frame = nw.from_native(
                frames.predict(
                    saved,
                    self.frame.with_columns(u.alias(UNCERTAINTY), *others).to_native(),
                    uncertainty=UNCERTAINTY,
                    features=[made.get(each, each) for each in roles.features],
                    name=new[0],
                )
            )
            if coverage is not None:
                frame = frame.with_columns(*self._limits(saved, new, coverage))
            if roles.is_variance:
                squared = nw.col(new[0]) * nw.col(new[0])
                frame = frame.with_columns(squared.alias(new[0]))
        optional = {c.position for c in columns_of(saved.root) if c.kind == "optional"}
        return replace(
            self,
            frame=frame.select(*names, *new),
            new=tuple(new),
            may_be_missing=tuple(
                each
                for position, each in enumerate(roles.features, start=1)
                if position in optional and each in roles.numbers
            ),
        )

    def _limits(self, saved: SavedMap, new: list[str], coverage: float) -> list[Any]:
        """Return the limits: constants times the uncertainty, plus the prediction."""
        import narwhals as nw
        import numpy as np

        from ...frames.lazy import number

        assert saved.conformal is not None
        constants = saved.conformal.interval(
            np.ones(1), coverage, asymmetric=False, labels=None
        )[0]
        limits = [nw.col(new[0]) * float(each) for each in constants]
        if self.roles.prediction is not None:
            value = number(self.frame.collect_schema(), self.roles.prediction)
            limits = [value + each for each in limits]
        return [limit.alias(each) for limit, each in zip(limits, new[1:], strict=True)]

    def write(self, output: str, fitted: Roles) -> dict[str, Any]:
        """Write the rows with all their columns; return what is told of them.

        All columns have types of their own, whatever the `fitted` roles.
        """
        from ... import frames

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
        import polars as pl

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
        return f"{self.file}: {rows}not read into memory{where}; {self.roles}."

    def to_dict(self) -> dict[str, Any]:
        """Return what is taken from the files, for machines."""
        return {
            "files": list(self.files),
            "rows": self.n_rows,
            "where": self.reading.where,
            **self.roles.to_dict(),
        }


def _scan(files: Sequence[str], reading: Reading) -> Any:
    """Return Parquet files as a lazy frame of Narwhals."""
    import narwhals as nw
    import polars as pl

    from ... import frames

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
        for path in matching([file for file in files if "://" not in file]):
            if Path(path).is_file():
                check_claims(path, Path(path))
        lazy = nw.from_native(native).lazy()
        lazy.collect_schema()
    except InvalidInputError:
        raise
    except ImportError as problem:
        extra = "frames" if engine == Engine.polars else engine.value
        remedy = f'pip install "sigmascale[{extra}]"'
        msg = f"{problem}, which --engine {engine.value} needs: {remedy}"
        raise InvalidInputError(msg) from problem
    except (Exception, pl.exceptions.PanicException) as problem:
        # each engine has errors of its own
        words = first_line(problem)
        msg = f"{named(files)}: cannot be read as Parquet files ({words})."
        raise InvalidInputError(msg) from problem
    return lazy


def _with_all_values(lazy: nw.LazyFrame[Any], roles: Roles) -> nw.LazyFrame[Any]:
    """Leave out rows with missing values."""
    import narwhals as nw

    from ...frames.lazy import is_missing, number

    schema = lazy.collect_schema()
    for name in roles.of_numbers:
        lazy = lazy.filter(~is_missing(number(schema, name)))
    for name in roles.labels:
        lazy = lazy.filter(~nw.col(name).is_null())
    return lazy


def _standard_deviations(schema: nw.Schema, roles: Roles) -> list[nw.Expr]:
    """Return the uncertainty, and its components; what is negative stays so."""
    import narwhals as nw

    from ...frames.lazy import number

    found = [number(schema, name) for name in roles.of_uncertainty]
    if roles.is_variance:  # engines differ in the root of a negative number
        found = [nw.when(u >= 0).then(u.sqrt()).otherwise(u) for u in found]
    if not roles.components:
        return found
    usable = reduce(and_, (u >= 0 for u in found))
    total = reduce(add, (u * u for u in found)).sqrt()
    return [nw.when(usable).then(total).otherwise(-1.0), *found]


def _written(output: str, features: Sequence[str], name: str) -> dict[str, Any]:
    """Return how many rows were written, and warn of those that lack something.

    `features` are those that may be missing.
    """
    import polars as pl

    from ... import frames

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
