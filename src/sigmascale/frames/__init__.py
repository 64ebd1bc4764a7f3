"""Data larger than memory: lazy frames of Polars, DuckDB, Dask and Spark.

Nearly everything is a function of sums over bins, and sums add up: the engine that
holds the rows computes them, here or on a cluster, and only they come into memory. The
public names stand in ``__init__.pyi``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
