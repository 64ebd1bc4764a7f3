"""Recalibrators fitted from the sums of a lazy frame, or from a sample of its rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeVar

import narwhals as nw
import numpy as np

from .._support.checks import check_count
from .._support.rows import some_features
from ..exceptions import InvalidInputError
from ..maps import Node, Trees
from ..maps.nodes import in_order
from ..maps.prediction import rescale
from ..scaling import VarianceScaler
from ..targets.recalibrated import RecalibratedTargets
from .lazy_rows import Frame, LazyRows, collect, read_rows
from .predicting import with_prediction
from .sampling import HASH, SAMPLE, Sample, draw, in_memory
from .summaries import LazySummaries
from .targets import fit_targets

Scaler = TypeVar("Scaler", bound=VarianceScaler | RecalibratedTargets)
PIECE = 2_000_000  # rows that are collected at a time
PREDICTED = "recalibrated uncertainty"


def fit(
    scaler: Scaler,
    frame: Any,
    *,
    error: str | list[str],
    uncertainty: str | list[str],
    features: Any = (),
    groups: str | None = None,
    sample: int = SAMPLE,
) -> Scaler:
    """Fit a recalibrator to a lazy frame: from sums, or from a sample of its rows.

    TemperatureScaling, LinearScaling, BinwiseScaling (for the log-likelihood),
    GroupScaling, IsotonicScaling and RakedScaling are fitted from sums of all rows, in
    one or two passes over them. The others need rows. The engine draws a sample of
    them, by a hash of their numbers, which is the same in all engines and however rows
    are divided; it is fitted in memory. Then the average calibration is set: what was
    learned is multiplied by the root of <Z²> of all rows outside the sample.

    Parameters
    ----------
    scaler : recalibrator, or RecalibratedTargets
        Any of them. Several targets are fitted to a sample of the known entries of
        each, which is in proportion smaller; entries of a row are then taken as
        independent, unless `groups` say something else.
    frame : lazy frame
        Of Polars, DuckDB, Dask or Spark.
    error, uncertainty : str, or list of str
        The columns of errors and uncertainties; for several targets, a column of each.
    features : list of str, optional
        The columns of features.
    groups : str, optional
        The column that says which rows belong together, for recalibrators that need
        rows: whole groups are drawn. Sums know no groups, nor do the folds by which
        RakedScaling chooses its smoothing.
    sample : int, default 1000000
        Rows that are drawn where rows are needed; all of them if there are fewer.

    Returns
    -------
    recalibrator
        The same one, fitted: it can be saved, and applied to frames and arrays. If it
        was fitted to a sample, ``n_sample_`` is the number of its rows, and ``level_``
        the factor that the others want.

    Examples
    --------
    >>> import polars as pl
    >>> import sigmascale as ss
    >>> frame = pl.LazyFrame({"u": [1.0, 1.0, 2.0], "E": [2.0, -2.0, 4.0]})
    >>> scaler = ss.TemperatureScaling()
    >>> ss.frames.fit(scaler, frame, error="E", uncertainty="u").factor_
    2.0
    """
    most = check_count(sample, "sample", least=100)
    if isinstance(scaler, RecalibratedTargets):
        found = fit_targets(
            scaler,
            frame,
            error=error,
            uncertainty=uncertainty,
            features=features,
            groups=groups,
            most=most,
        )
        for one, of_all, part in found:
            if part.outside is not None:
                one.set_level(_level(one, of_all, part, part.outside))
        return scaler
    if not isinstance(error, str) or not isinstance(uncertainty, str):
        msg = (
            "`error` and `uncertainty` must each name one column; lists of them are "
            "for RecalibratedTargets."
        )
        raise InvalidInputError(msg)
    rows = read_rows(frame, error, uncertainty, features)
    if not scaler.needs_rows:
        if groups is not None:
            msg = (
                f"{type(scaler).__name__} is fitted from sums, which know no `groups`. "
                "Leave them out, or collect a sample of whole groups and use its own "
                "`fit`."
            )
            raise InvalidInputError(msg)
        return scaler.fit_sums(LazySummaries(rows))
    if groups is not None and groups not in rows.names:
        named = [*rows.names[1:], groups]
        rows = read_rows(frame, error, uncertainty, named, categorical=[groups])
    drawn = draw(rows, most, groups)
    scaler.fit_sample(
        some_features(drawn.rows, list(features)),
        drawn.n_rows,
        drawn.smallest_uncertainty,
    )
    if drawn.outside is not None:
        scaler.set_level(_level(scaler, rows, drawn, drawn.outside))
    return scaler


def _level(
    scaler: VarianceScaler, rows: LazyRows, drawn: Sample, outside: Frame
) -> float:
    """Return the factor that makes <Z²> of all rows outside the sample 1."""
    names = ["u", *rows.columns[1 : len(scaler.feature_names_in_)]]
    polars = outside.implementation.is_polars()
    if not polars and any(isinstance(n, Trees) for n in in_order(scaler.map_)):
        z2, n = _in_pieces(scaler.map_, rows, drawn, outside)
    else:
        frame = with_prediction(
            outside, scaler.map_, names, scaler.min_uncertainty_, PREDICTED
        )
        z = nw.col("e") / nw.col(PREDICTED)
        found = collect(frame.select(z2=(z * z).sum(), n=nw.len()))
        z2, n = float(found["z2"][0]), int(found["n"][0])
    return float(np.sqrt(z2 / n)) if z2 > 0 else 1.0


def _in_pieces(
    root: Node, rows: LazyRows, drawn: Sample, outside: Frame
) -> tuple[float, int]:
    """Return the sum of z² and the number of rows, of an engine that knows no trees.

    It takes a query for each piece, of which none is larger than memory.
    """
    edges = np.linspace(0, 1, 1 + -(-drawn.n_rows // PIECE))
    z2, n = 0.0, 0
    for low, high in pairwise(edges):
        inside = (nw.col(HASH) >= float(low)) & (nw.col(HASH) < float(high))
        some = in_memory(rows, outside.filter(inside))
        z2 += float(np.sum((some.errors / rescale(root, some)) ** 2))
        n += some.n_rows
    return z2, n
