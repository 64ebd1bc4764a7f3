"""Recalibrators fitted from the sums of a lazy frame, or from a sample of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

import narwhals as nw
import numpy as np

from .._support.checks import check_count
from ..exceptions import InvalidInputError
from ..maps import Node, Trees
from ..maps.nodes import in_order
from ..maps.prediction import rescale
from ..scaling import VarianceScaler
from ..targets.recalibrated import RecalibratedTargets
from .lazy_rows import Frame, LazyRows, collect, read_rows
from .predicting import with_prediction
from .sampling import HASH, SAMPLE, Sample, check_weight, draw, in_memory
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
    sample_weight: str | None = None,
    sample: int = SAMPLE,
) -> Scaler:
    """Fit a recalibrator to a lazy frame: from sums, or from a sample of its rows.

    TemperatureScaling, LinearScaling, BinwiseScaling (for the log-likelihood),
    CategoryScaling, IsotonicScaling and RakedScaling are fitted from sums of all rows,
    in one or two passes over them. The others need rows. The engine draws a sample of
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
    sample_weight : str, optional
        The column of weights, at least 0. Sums know none, so that all recalibrators are
        then fitted to a sample of rows, and the average is set on all others, weighted.
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
        if sample_weight is not None:
            msg = (
                "RecalibratedTargets are fitted to a lazy frame without weights: leave "
                "`sample_weight` out, or collect rows and use their own `fit`."
            )
            raise InvalidInputError(msg)
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
                one._set_level(_level(one, of_all, part, part.outside))
        return scaler
    if not isinstance(error, str) or not isinstance(uncertainty, str):
        msg = (
            "`error` and `uncertainty` must each name one column; lists of them are "
            "for RecalibratedTargets."
        )
        raise InvalidInputError(msg)
    weight = check_weight(sample_weight, (error, uncertainty, groups, *features))
    columns = features if isinstance(features, str) else [*features, *weight]
    rows = read_rows(frame, error, uncertainty, columns)
    if not scaler._needs_rows and not weight:
        if groups is not None:
            msg = (
                f"{type(scaler).__name__} is fitted from sums, which know no `groups`. "
                "Leave them out, or collect a sample of whole groups and use its own "
                "`fit`."
            )
            raise InvalidInputError(msg)
        return scaler._fit_sums(LazySummaries(rows))
    if groups is not None and groups not in rows.names:
        named = [*rows.names[1:], groups]
        rows = read_rows(frame, error, uncertainty, named, categorical=[groups])
    drawn = draw(rows, most, groups)
    some = drawn.rows.with_features(list(features))
    for name in weight:
        some = some.weighted(drawn.rows.numbers(name), "frame")
    scaler._fit_sample(some, drawn.n_rows, drawn.smallest_uncertainty)
    if drawn.outside is not None:
        scaler._set_level(_level(scaler, rows, drawn, drawn.outside, weight))
    return scaler


def _level(
    scaler: VarianceScaler,
    rows: LazyRows,
    drawn: Sample,
    outside: Frame,
    weight: Sequence[str] = (),
) -> float:
    """Return the factor that makes <Z²> of all rows outside the sample 1."""
    names = ["u", *rows.columns[1 : len(scaler.feature_names_in_)]]
    polars = outside.implementation.is_polars()
    if not polars and any(isinstance(n, Trees) for n in in_order(scaler.map_)):
        z2, n = _in_pieces(scaler.map_, rows, drawn, outside, weight)
    else:
        frame = with_prediction(
            outside, scaler.map_, names, scaler.min_uncertainty_, PREDICTED
        )
        z = nw.col("e") / nw.col(PREDICTED)
        wanted = {"z2": (z * z).sum(), "n": nw.len()}
        for name in weight:
            w = nw.col(rows.columns[rows.names.index(name)])
            wanted = {"z2": (w * z * z).sum(), "n": w.sum()}
        found = collect(frame.select(**wanted))
        z2, n = float(found["z2"][0]), float(found["n"][0])
    return float(np.sqrt(z2 / n)) if z2 > 0 else 1.0


def _in_pieces(
    root: Node, rows: LazyRows, drawn: Sample, outside: Frame, weight: Sequence[str]
) -> tuple[float, float]:
    """Return the sum of z² and the number of rows, of an engine that knows no trees.

    It takes a query for each piece, of which none is larger than memory.
    """
    edges = np.linspace(0, 1, 1 + -(-drawn.n_rows // PIECE))
    z2, n = 0.0, 0.0
    for low, high in pairwise(edges):
        inside = (nw.col(HASH) >= float(low)) & (nw.col(HASH) < float(high))
        some = in_memory(rows, outside.filter(inside))
        w = np.ones(some.n_rows)
        for name in weight:
            w = some.numbers(name)
        z2 += float(w @ (some.errors / rescale(root, some)) ** 2)
        n += float(w.sum())
    return z2, n
