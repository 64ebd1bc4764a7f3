"""The public names; :mod:`lazy_loader` imports each where it is first used."""

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
