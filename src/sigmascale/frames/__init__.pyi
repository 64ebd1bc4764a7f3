"""The public names; :mod:`lazy_loader` imports each where it is first used."""

from .fitting import fit
from .judging import local_zms, scorecard, validate
from .prediction import predict
from .sources import scan, sink

__all__ = [
    "fit",
    "local_zms",
    "predict",
    "scan",
    "scorecard",
    "sink",
    "validate",
]
