"""Parquet files that stay where they are: what the commands do with lazy frames."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._support.progress import working
from ..exceptions import InvalidInputError
from .methods import load_recalibrator
from .options import Engine
from .outputs import refuse_input

if TYPE_CHECKING:
    from ..judging.verdicts import Validation
    from ..scaling import VarianceScaler
    from .tables.columns import Choice, Columns

ENGINES = (
    *("polars", "duckdb", "_duckdb", "dask", "distributed", "pyarrow", "pyspark"),
    "narwhals",
)
LARGE = 2**29  # bytes of Parquet files, beyond which they are not read into memory
UNCERTAINTY = "__uncertainty__"  # a column that is computed


def stays_lazy(
    files: Sequence[str], engine: Engine | None, scheduler: str | None = None
) -> bool:
    """Return whether files are left where they are, and only queried."""
    lazy = _stays_lazy(files, engine)
    if not lazy and scheduler is not None:
        msg = "--scheduler is for --engine dask or spark."
        raise InvalidInputError(msg)
    return lazy


def _stays_lazy(files: Sequence[str], engine: Engine | None) -> bool:
    from .tables.filesets import matching

    if engine is not None:
        return engine != Engine.memory
    if any("://" in file for file in files):
        return True
    there = [Path(file) for file in matching(files)]
    if not all(path.suffix.lower() in (".parquet", ".pq") for path in there):
        return False
    return sum(path.stat().st_size for path in there if path.is_file()) > LARGE


@contextmanager
def querying(files: Sequence[str], doing: str) -> Iterator[None]:
    """Show that files are queried, and say what an engine has against them."""
    from .tables.filesets import named
    from .tables.loading import about

    with about(named(files)), working(doing):
        try:
            yield
        except InvalidInputError as problem:
            if " missing" not in str(problem):
                raise
            msg = f"{problem} --drop-missing leaves out rows with missing values."
            raise InvalidInputError(msg) from problem
        except Exception as problem:
            if type(problem).__module__.split(".")[0] not in ENGINES:
                raise
            msg = (
                f"cannot be queried ({_first_line(problem)}). Files that are read "
                "together must have the same columns, of the same types."
            )
            raise InvalidInputError(msg) from problem


def _first_line(problem: Exception) -> str:
    return next(iter(str(problem).strip().splitlines()), type(problem).__name__)


@dataclass(frozen=True)
class LazySet:
    """Columns of Parquet files, as they are and as they are used."""

    files: Sequence[str]
    columns: Columns
    error_columns: tuple[str, ...]
    frame: Any
    n_rows: int | None = None  # known once they were queried

    @property
    def error(self) -> str:
        """The column of errors in the frame."""
        return " - ".join(self.error_columns)

    @classmethod
    def open(
        cls,
        files: Sequence[str],
        choice: Choice,
        engine: Engine | None,
        scheduler: str | None,
        *,
        by: Sequence[str] = (),
        drop_missing: bool = False,
    ) -> LazySet:
        """Find the columns of files; nothing else is read."""
        import narwhals as nw

        from ..frames.lazy_rows import number
        from .tables.columns import find_columns, find_error
        from .tables.filesets import named
        from .tables.loading import about

        lazy = open_files(files, engine, scheduler)
        with about(named(files)):
            if choice.formula is not None:
                msg = "--formula needs rows in memory. Store what is derived from it."
                raise InvalidInputError(msg)
            schema = lazy.collect_schema()
            error = find_error(choice, list(schema))
            # a frame without rows has the same names and types
            empty = nw.from_dict(
                {name: [] for name in schema}, schema=schema, backend="polars"
            )
            columns = find_columns(choice, empty.to_native(), error, by)
            if drop_missing:
                lazy = _with_all_values(lazy, columns, error)
            parts = [number(schema, name) for name in error]
            difference = parts[0] if len(parts) == 1 else parts[0] - parts[1]
            labels = [nw.col(name).cast(nw.String) for name in columns.labels]
            frame = lazy.with_columns(
                _standard_deviation(schema, columns), *labels
            ).with_columns(difference.alias(" - ".join(error)))
        return cls(files, columns, error, frame.to_native())

    def fit(self, scaler: VarianceScaler) -> VarianceScaler:
        """Fit a recalibrator from sums."""
        from .. import frames

        with querying(self.files, "fitting"):
            return frames.fit(
                scaler,
                self.frame,
                error=self.error,
                uncertainty=self.columns.uncertainty,
                features=self.columns.features,
            )

    def validate(self, n_bins: int | None, seed: int) -> Validation:
        """Judge the uncertainties from sums."""
        from .. import frames

        with querying(self.files, "judging the uncertainties"):
            return frames.validate(
                self.frame,
                error=self.error,
                uncertainty=self.columns.uncertainty,
                features=self.columns.features,
                n_bins=n_bins,
                rng=seed,
            )

    def __str__(self) -> str:
        """Return what is taken from the files, in words."""
        from .tables.filesets import named

        used = self.columns.words(self.error_columns)
        rows = "" if self.n_rows is None else f"{self.n_rows} rows, "
        return f"{named(self.files)}: {rows}not read into memory; {used}."

    def to_dict(self) -> dict[str, Any]:
        """Return what is taken from the files, for machines."""
        return {
            "files": list(self.files),
            "rows": self.n_rows,
            "error": list(self.error_columns),
            **self.columns.to_dict(),
        }


def open_files(
    files: Sequence[str], engine: Engine | None, scheduler: str | None
) -> Any:
    """Return Parquet files as a lazy frame of Narwhals."""
    import narwhals as nw

    from .. import frames
    from .tables.filesets import named

    chosen: Any = Engine.polars if engine is None else engine
    try:
        lazy = nw.from_native(
            frames.scan(list(files), engine=chosen.value, scheduler=scheduler)
        ).lazy()
        lazy.collect_schema()
    except InvalidInputError:
        raise
    except ImportError as problem:
        extra = "frames" if chosen == Engine.polars else chosen.value
        remedy = f'pip install "sigmascale[{extra}]"'
        msg = f"{problem}, which --engine {chosen.value} needs: {remedy}"
        raise InvalidInputError(msg) from problem
    except Exception as problem:  # each engine has errors of its own
        words = _first_line(problem)
        msg = f"{named(files)}: cannot be read as Parquet files ({words})."
        raise InvalidInputError(msg) from problem
    return lazy


def _with_all_values(lazy: Any, columns: Columns, error: Sequence[str] = ()) -> Any:
    """Leave out rows with missing values."""
    import narwhals as nw

    from ..frames.lazy_rows import is_missing, number

    schema = lazy.collect_schema()
    for name in (columns.uncertainty, *error, *columns.numbers):
        lazy = lazy.filter(~is_missing(number(schema, name)))
    for name in columns.labels:
        lazy = lazy.filter(~nw.col(name).is_null())
    return lazy


def _standard_deviation(schema: Any, columns: Columns) -> Any:
    """Return the uncertainty, under its own name; what is negative stays so."""
    import narwhals as nw

    from ..frames.lazy_rows import number

    u = number(schema, columns.uncertainty)
    if columns.is_variance:  # engines differ in the root of a negative number
        u = nw.when(u >= 0).then(u.sqrt()).otherwise(u)
    return u.alias(columns.uncertainty)


def apply_lazily(
    scaler: str,
    files: Sequence[str],
    asked: dict[str, Any],
    name: str | None,
    output: str,
    engine: Engine | None,
    scheduler: str | None,
    *,
    drop_missing: bool,
) -> dict[str, Any]:
    """Write Parquet files with the new column; return what was done."""
    import narwhals as nw

    from .. import frames
    from ..scaling import BoostedScaling, RakedScaling
    from .tables.columns import Choice, free_name, known, renamed
    from .tables.files import format_of

    if format_of(output) != "parquet":
        msg = (
            f"{output}: what is not read into memory is written as .parquet only. What "
            "fits the memory can be written otherwise: --engine memory."
        )
        raise InvalidInputError(msg)
    refuse_input(output, files)
    recalibrator, saved = load_recalibrator(scaler)
    lazy = open_files(files, engine, scheduler)
    names = list(lazy.collect_schema())
    with querying(files, "recalibrating"):
        columns = renamed(saved, Choice(**asked), names)
        if columns.formula is not None:
            msg = "the recalibrator uses --formula, which needs --engine memory."
            raise InvalidInputError(msg)
        for each in (columns.uncertainty, *columns.features):
            known(each, names, "the recalibrator")
        name = free_name(name, columns, names)
        if drop_missing:
            lazy = _with_all_values(lazy, columns)
        u = _standard_deviation(lazy.collect_schema(), columns).alias(UNCERTAINTY)
        labels = {each: f"__{each}__" for each in columns.labels}
        texts = [nw.col(a).cast(nw.String).alias(b) for a, b in labels.items()]
        new = nw.from_native(
            frames.predict(
                recalibrator,
                lazy.with_columns(u, *texts).to_native(),
                uncertainty=UNCERTAINTY,
                features=[labels.get(each, each) for each in columns.features],
                name=name,
            )
        )
        if columns.is_variance:
            new = new.with_columns((nw.col(name) * nw.col(name)).alias(name))
        frames.sink(new.select(*names, name).to_native(), output)
    told = {"column": name, "output": output}
    if "://" in output:
        return told
    learned = getattr(recalibrator, "scaler_", recalibrator)
    features = (
        columns.numbers if isinstance(learned, (BoostedScaling, RakedScaling)) else ()
    )
    return told | _written(output, features, name)


def _written(output: str, features: Sequence[str], name: str) -> dict[str, Any]:
    """Return how many rows were written, and warn of those that lack something.

    `features` are those that may be missing.
    """
    import polars as pl

    from .. import frames

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
