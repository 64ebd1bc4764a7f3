"""Parquet files that stay where they are: what the commands do with lazy frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._progress import working
from ..exceptions import InvalidInputError
from .methods import load_recalibrator
from .options import Engine

if TYPE_CHECKING:
    from ..columns import Choice, Columns
    from ..scaling import VarianceScaler
    from ..validation import Validation

LARGE = 2**29  # bytes of Parquet files, beyond which they are not read into memory
ERROR, UNCERTAINTY = "__error__", "__uncertainty__"  # columns that are computed


def stays_lazy(files: Sequence[str], engine: Engine | None) -> bool:
    """Return whether files are left where they are, and only queried."""
    if len(files) > 1 and (engine == Engine.memory or not all(map(_is_parquet, files))):
        msg = (
            f"{len(files)} files were given ({', '.join(files)}): only Parquet files "
            "that are not read into memory can be several. Put the rows in one table."
        )
        raise InvalidInputError(msg)
    if engine is not None:
        return engine != Engine.memory
    if len(files) > 1 or any(mark in files[0] for mark in ("*", "://")):
        return True
    path = Path(files[0])
    if not _is_parquet(files[0]) or not path.is_file():
        return path.is_dir() and any(path.glob("*.parquet"))
    return path.stat().st_size > LARGE


def _is_parquet(file: str) -> bool:
    return file.lower().endswith((".parquet", ".pq")) or Path(file).is_dir()


@dataclass(frozen=True)
class LazySet:
    """Columns of Parquet files, as they are and as they are used."""

    files: Sequence[str]
    columns: Columns
    error_columns: tuple[str, ...]
    frame: Any

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

        from ..columns import find_columns, find_error
        from ..loading import about

        lazy = open_files(files, engine, scheduler)
        with about(files[0]):
            if choice.formula is not None:
                msg = "--formula needs rows in memory. Store what is derived from it."
                raise InvalidInputError(msg)
            # a frame without rows has the same names and types
            error = find_error(choice, list(lazy.collect_schema()))
            empty = nw.from_dict(
                {name: [] for name in lazy.collect_schema()},
                schema=lazy.collect_schema(),
                backend="polars",
            )
            columns = find_columns(choice, empty.to_native(), error, by)
        if drop_missing:
            used = (columns.uncertainty, *error, *columns.features)
            lazy = lazy.drop_nulls(list(used))
        computed = [nw.col(error[0]).alias(ERROR)]
        if len(error) == 2:
            computed = [(nw.col(error[0]) - nw.col(error[1])).alias(ERROR)]
        if columns.is_variance:  # under its own name, as in memory
            name = columns.uncertainty
            computed.append(nw.col(name).sqrt().alias(name))
        labels = [nw.col(name).cast(nw.String) for name in columns.labels]
        frame = lazy.with_columns(*computed, *labels)
        return cls(files, columns, error, frame.to_native())

    def fit(self, scaler: VarianceScaler) -> VarianceScaler:
        """Fit a recalibrator from sums."""
        from .. import frames
        from ..loading import about

        with about(self.files[0]), working("fitting"):
            return frames.fit(
                scaler,
                self.frame,
                error=ERROR,
                uncertainty=self.columns.uncertainty,
                features=self.columns.features,
            )

    def validate(self, n_bins: int | None, seed: int) -> Validation:
        """Judge the uncertainties from sums."""
        from .. import frames
        from ..loading import about

        with about(self.files[0]), working("judging the uncertainties"):
            return frames.validate(
                self.frame,
                error=ERROR,
                uncertainty=self.columns.uncertainty,
                features=self.columns.features,
                n_bins=n_bins,
                rng=seed,
            )

    def __str__(self) -> str:
        """Return what is taken from the files, in words."""
        u = self.columns.uncertainty
        return (
            f"{', '.join(self.files)}: not read into memory; "
            f"error {' - '.join(self.error_columns)}; "
            f"uncertainty {f'sqrt({u})' if self.columns.is_variance else u}; "
            f"features: {', '.join(self.columns.features) or 'none'}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what is taken from the files, for machines."""
        return {
            "files": list(self.files),
            "error": list(self.error_columns),
            **self.columns.to_dict(),
        }


def open_files(
    files: Sequence[str], engine: Engine | None, scheduler: str | None
) -> Any:
    """Return Parquet files as a lazy frame of Narwhals."""
    import narwhals as nw

    from .. import frames

    chosen: Any = Engine.polars if engine is None else engine
    try:
        lazy = nw.from_native(
            frames.scan(list(files), engine=chosen.value, scheduler=scheduler)
        ).lazy()
        lazy.collect_schema()
    except (ImportError, InvalidInputError):
        raise
    except Exception as problem:  # each engine has errors of its own
        words = next(iter(str(problem).strip().splitlines()), type(problem).__name__)
        msg = f"{', '.join(files)}: cannot be read as Parquet files ({words})."
        raise InvalidInputError(msg) from problem
    return lazy


def apply_lazily(
    scaler: str,
    files: Sequence[str],
    named: Choice,
    name: str | None,
    output: str,
    engine: Engine | None,
    scheduler: str | None,
) -> dict[str, Any]:
    """Write Parquet files with the new column; return what was done."""
    import narwhals as nw

    from .. import frames
    from ..columns import free_name, known, renamed
    from ..loading import about
    from ..tablefiles import format_of

    if format_of(output) != "parquet":
        msg = f"{output}: what is not read into memory is written as .parquet only."
        raise InvalidInputError(msg)
    recalibrator, saved = load_recalibrator(scaler)
    lazy = open_files(files, engine, scheduler)
    names = list(lazy.collect_schema())
    with about(files[0]), working("recalibrating"):
        columns = renamed(saved, named, names)
        if columns.formula is not None:
            msg = "the recalibrator uses --formula, which needs --engine memory."
            raise InvalidInputError(msg)
        for each in (columns.uncertainty, *columns.features):
            known(each, names, "the recalibrator")
        name = free_name(name, columns, names)
        u = nw.col(columns.uncertainty)
        u = (u.sqrt() if columns.is_variance else u).alias(UNCERTAINTY)
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
    return {"column": name, "output": output}
