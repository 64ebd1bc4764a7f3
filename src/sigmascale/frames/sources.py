"""Parquet files as lazy frames, and lazy frames as Parquet files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from glob import glob
from pathlib import Path
from typing import Any, Literal, get_args

from .._support.checks import check_choice
from .._support.files import as_pattern, is_utf8, whole_file_or_folder
from ..exceptions import InvalidInputError
from .lazy import as_lazy

Engine = Literal["polars", "duckdb", "dask", "spark"]


def scan(
    paths: str | Path | Iterable[str | Path],
    *,
    engine: Engine = "polars",
    scheduler: str | None = None,
) -> Any:
    """Return Parquet files as a lazy frame; nothing is read yet.

    Parameters
    ----------
    paths : str, Path or list of these
        Files, folders of files or patterns such as ``"run/*.parquet"``; also addresses
        such as ``"s3://bucket/*.parquet"`` where the engine can reach them.
    engine : {"polars", "duckdb", "dask", "spark"}, default "polars"
        What runs the queries; it must be installed.
    scheduler : str, optional
        Address of a running cluster: of Dask's scheduler ("tcp://host:8786") or of a
        Spark master ("spark://host:7077"). By default the work is done here.

    Returns
    -------
    polars.LazyFrame, duckdb.DuckDBPyRelation, dask or pyspark DataFrame

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> path = Path(tempfile.mkdtemp()) / "new.parquet"
    >>> sink(pl.LazyFrame({"u": [1.0, 2.0]}), path)
    >>> scan(path.parent).collect()["u"].to_list()
    [1.0, 2.0]
    """
    check_choice(engine, "engine", get_args(Engine))
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    if scheduler is not None and engine not in ("dask", "spark"):
        msg = (
            f'`scheduler` is the address of a cluster, and engine "{engine}" runs on '
            'this machine only. Use engine="dask" or engine="spark".'
        )
        raise InvalidInputError(msg)
    files = [_pattern(path) for path in given]
    if engine == "polars":
        import polars as pl

        return pl.scan_parquet(files)
    if engine == "duckdb":
        import duckdb

        return duckdb.read_parquet(files)
    if engine == "dask":
        import dask.dataframe as dd

        if scheduler is not None:
            from distributed import Client

            # it becomes the one that all queries go to
            Client(scheduler)
        return dd.read_parquet(files)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("sigmascale")
    if scheduler is not None:
        builder = builder.master(scheduler)
    else:  # workers on this machine run this Python, which has all that they need
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return builder.getOrCreate().read.parquet(*files)


def _pattern(path: str | Path) -> str:
    """Return the pattern of Parquet files, of which there must be some."""
    pattern = _as_text(as_pattern(path))
    if "://" not in pattern and not glob(pattern, recursive=True):
        msg = f"{path}: no Parquet file is there. Is the path right?"
        raise InvalidInputError(msg)
    return pattern


def _as_text(path: str) -> str:
    """Return the name of a file, which engines take as text only."""
    if not is_utf8(path):
        msg = (
            f"{path}: engines read and write files with names in UTF-8 only, and this "
            "is none. Rename it, or its folder."
        )
        raise InvalidInputError(msg)
    return path


def sink(frame: Any, path: str | Path) -> None:
    """Write a lazy frame to Parquet, whole or not at all, without holding it in memory.

    Polars and DuckDB write one file; Dask and Spark write a folder of files, one for
    each part of the frame. A file is replaced, a folder is not. Under an address such
    as ``"s3://bucket/new.parquet"`` files appear as the engine writes them.

    Parameters
    ----------
    frame : lazy frame
        Of Polars, DuckDB, Dask or Spark.
    path : str or Path
        Where to write.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> folder = Path(tempfile.mkdtemp())
    >>> sink(pl.LazyFrame({"u": [1.0, 2.0]}), folder / "new.parquet")
    >>> [file.name for file in folder.iterdir()]
    ['new.parquet']
    """
    lazy = as_lazy(frame)
    _as_text(str(path))
    if "://" in str(path):
        _write(lazy, str(path))
        return
    with whole_file_or_folder(Path(path)) as part:
        _write(lazy, str(part))


def _write(lazy: Any, path: str) -> None:
    if lazy.implementation.is_polars():
        # twice as fast as Polars' own choice, zstd, for files a tenth larger
        lazy.to_native().sink_parquet(path, compression="lz4")
    elif lazy.implementation.is_duckdb():
        lazy.to_native().write_parquet(path)
    elif lazy.implementation.is_dask():
        try:
            lazy.to_native().to_parquet(path, write_index=False)  # or it is a column
        except ValueError as problem:
            msg = (
                f"{Path(path).name}: Dask cannot write a column of these types, such "
                "as categories of Parquet files. Store text, or take another engine."
            )
            raise InvalidInputError(msg) from problem
    else:
        lazy.sink_parquet(path)
