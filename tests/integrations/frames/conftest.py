"""Lazy frames of every engine, and of workers in processes of their own."""

import os
import shutil
import sys
from contextlib import contextmanager, nullcontext

import polars as pl
import pytest

PROCESSES = pytest.param("processes of dask", marks=pytest.mark.slow)
EXECUTORS = pytest.param("executors of spark", marks=pytest.mark.spark)


@contextmanager
def dask_cluster():
    """Start two worker processes of Dask, which whatever is computed goes to."""
    distributed = pytest.importorskip("distributed")
    size = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    cluster = distributed.LocalCluster(**size, dashboard_address="127.0.0.1:0")
    with cluster, distributed.Client(cluster) as client:
        yield client


@contextmanager
def spark_cluster():
    """Start two executors of Spark, with a core and a gigabyte each."""
    if os.environ.get("SIGMASCALE_SPARK") != "1" or shutil.which("java") is None:
        pytest.skip("Spark needs Java, and takes a minute: SIGMASCALE_SPARK=1")
    sql = pytest.importorskip("pyspark.sql")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # that of the workers
    options = {
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",  # both are waited for
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        "spark.ui.enabled": "false",
    }
    builder = sql.SparkSession.builder.master("local-cluster[2,1,1024]")
    session = builder.config(map=options).getOrCreate()
    yield session
    session.stop()


@pytest.fixture(
    scope="module", params=["polars", "duckdb", "dask", PROCESSES, EXECUTORS]
)
def scan(request, tmp_path_factory):
    """A function that makes a lazy frame of each engine that is installed."""
    engine, folder = request.param, tmp_path_factory.mktemp("frames")

    def path_of(table):
        path = folder / f"{len(list(folder.iterdir()))}.parquet"
        table.write_parquet(path, row_group_size=max(500, len(table) // 8))
        return path

    if engine == "polars":
        yield lambda table: pl.scan_parquet(path_of(table))
    elif engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        yield lambda table: duckdb.read_parquet(str(path_of(table)))
    elif engine == "executors of spark":
        with spark_cluster() as session:
            yield lambda table: session.read.parquet(str(path_of(table))).repartition(4)
    else:
        dd = pytest.importorskip("dask.dataframe")
        with dask_cluster() if engine == "processes of dask" else nullcontext():
            yield lambda table: dd.read_parquet(path_of(table), split_row_groups=True)
