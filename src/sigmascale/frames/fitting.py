"""Recalibrators fitted from the sums of a lazy frame."""

from __future__ import annotations

from typing import Any, TypeVar

from ..scaling import VarianceScaler
from .lazy_rows import read_rows
from .summaries import LazySummaries

Scaler = TypeVar("Scaler", bound=VarianceScaler)


def fit(
    scaler: Scaler,
    frame: Any,
    *,
    error: str,
    uncertainty: str,
    features: Any = (),
) -> Scaler:
    """Fit a recalibrator to a lazy frame, in one or two passes over it.

    Rows that belong together make no difference to sums, but for the folds by which
    RakedScaling chooses its smoothing: these divide groups. Where that matters, collect
    a sample of whole groups and pass `groups` to the recalibrator's own `fit`.

    Parameters
    ----------
    scaler : recalibrator
        One that sums determine, such as TemperatureScaling, LinearScaling,
        BinwiseScaling (for the log-likelihood), GroupScaling, IsotonicScaling or
        RakedScaling.
    frame : lazy frame
        Of Polars, DuckDB, Dask or Spark.
    error, uncertainty : str
        The columns of errors and uncertainties.
    features : list of str, optional
        The columns of features.

    Returns
    -------
    recalibrator
        The same one, fitted: it can be saved, and applied to frames and arrays.

    Examples
    --------
    >>> import polars as pl
    >>> import sigmascale as ss
    >>> frame = pl.LazyFrame({"u": [1.0, 1.0, 2.0], "E": [2.0, -2.0, 4.0]})
    >>> scaler = ss.TemperatureScaling()
    >>> ss.frames.fit(scaler, frame, error="E", uncertainty="u").factor_
    2.0
    """
    rows = read_rows(frame, error, uncertainty, features)
    return scaler.fit_sums(LazySummaries(rows))
