"""Data larger than memory: lazy frames of Polars, DuckDB, Dask and Spark.

Nearly everything is a function of sums over bins, and sums add up: the engine that
holds the rows computes them, here or on a cluster, and only they come into memory.
"""

from .fitting import fit
from .parquet import scan, sink
from .predicting import predict
from .scoring import local_zms, scorecard, validate

__all__ = [
    "fit",
    "local_zms",
    "predict",
    "scan",
    "scorecard",
    "sink",
    "validate",
]
