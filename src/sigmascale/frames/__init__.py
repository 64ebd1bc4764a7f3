"""Data larger than memory: lazy frames of Polars, DuckDB, Dask and Spark.

Nearly everything is a function of sums over bins, and sums add up: the engine that
holds the rows computes them, here or on a cluster, and only they come into memory.
"""

from ._files import scan, sink
from ._fit import fit
from ._predict import predict
from ._scores import local_zms, scorecard, validate

__all__ = [
    "fit",
    "local_zms",
    "predict",
    "scan",
    "scorecard",
    "sink",
    "validate",
]
