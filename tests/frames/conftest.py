"""Lazy frames of every engine."""

import os
import shutil
import sys

import polars as pl
import pytest


@pytest.fixture(
    scope="module",
    params=["polars", "duckdb", "dask", pytest.param("spark", marks=pytest.mark.spark)],
)
def scan(request, tmp_path_factory):
    """A function that makes a lazy frame of each engine that is installed."""
    engine, folder = request.param, tmp_path_factory.mktemp("frames")
    if engine == "spark":
        if os.environ.get("SIGMASCALE_SPARK") != "1" or shutil.which("java") is None:
            pytest.skip("Spark needs Java, and takes half a minute: SIGMASCALE_SPARK=1")
        sql = pytest.importorskip("pyspark.sql")
        os.environ["PYSPARK_PYTHON"] = sys.executable  # that of the workers
        session = sql.SparkSession.builder.master("local[1]").getOrCreate()

    def lazy(table):
        path = folder / f"{len(list(folder.iterdir()))}.parquet"
        table.write_parquet(path, row_group_size=500)
        if engine == "polars":
            return pl.scan_parquet(path)
        if engine == "duckdb":
            return pytest.importorskip("duckdb").read_parquet(str(path))
        if engine == "dask":
            dd = pytest.importorskip("dask.dataframe")
            return dd.read_parquet(path, split_row_groups=True)
        return session.read.parquet(str(path))

    yield lazy
    if engine == "spark":
        session.stop()
