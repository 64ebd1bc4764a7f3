"""Recalibrators fitted from the sums of a lazy frame, or from a sample of its rows."""

from __future__ import annotations

from typing import Any, TypeVar

import narwhals as nw
import numpy as np

from .._support.checks import check_count
from .._support.notices import about_subject
from ..exceptions import InvalidInputError
from ..scaling import VarianceScaler
from ..targets.recalibrated import RecalibratedTargets
from ..targets.tables import TargetRows, check_names, paired
from .lazy import as_lazy, collect, is_missing, names_of, number, read_rows
from .prediction import with_prediction
from .sampling import SAMPLE, Sample, draw
from .summaries import LazySummaries

Scaler = TypeVar("Scaler", bound=VarianceScaler | RecalibratedTargets)
PREDICTED = "recalibrated uncertainty"
LAW_SAMPLE = 100_000  # rows that the law of errors is learned from


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
    learned is multiplied by the root of <Z²> of all rows outside the sample. The law of
    a Recalibrator is learned from a sample, too.

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
        The column that says which rows belong together. Sums know no groups, so that
        all recalibrators are then fitted to a sample of whole groups.
    sample_weight : str, optional
        The column of weights, at least 0. Sums know none either: recalibrators are then
        fitted to a sample of rows, and the average is set on all others, weighted.
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
    if isinstance(scaler, RecalibratedTargets):
        if sample_weight is not None:
            msg = (
                "RecalibratedTargets are fitted to a lazy frame without weights: leave "
                "`sample_weight` out, or collect rows and use their own `fit`."
            )
            raise InvalidInputError(msg)
        _fit_targets(scaler, frame, error, uncertainty, features, groups, sample)
        return scaler
    if not isinstance(error, str) or not isinstance(uncertainty, str):
        msg = (
            "`error` and `uncertainty` must each name one column; lists of them are "
            "for RecalibratedTargets."
        )
        raise InvalidInputError(msg)
    # a recalibrator without a shift has its scale from sums, if these determine it
    scaling = scaler._by_sums
    if groups is None and sample_weight is None and scaling is not None:
        rows = read_rows(frame, error, uncertainty, features)
        scaling._fit_sums(LazySummaries(rows))
        if scaling is scaler:
            return scaler
        sample = min(sample, LAW_SAMPLE)
    drawn = draw(
        frame,
        error,
        uncertainty,
        features,
        most=sample,
        groups=groups,
        weight=sample_weight,
    )
    scaler._fit_sample(drawn.rows, drawn.n_rows, drawn.smallest_uncertainty)
    if scaling is not None and groups is None and sample_weight is None:
        scaler._scale_by(scaling)
    else:
        _set_level(scaler, drawn)
    return scaler


def _set_level(scaler: VarianceScaler, drawn: Sample) -> None:
    """Multiply what was learned so that <Z²> of all rows outside the sample is 1."""
    if drawn.outside is None:
        return
    names = ["u", *(f"x{i}" for i in range(1, len(drawn.rows.names)))]
    smallest = scaler.min_uncertainty_
    frame = with_prediction(drawn.outside, scaler.map_, names, smallest, PREDICTED)
    z = nw.col("e") / nw.col(PREDICTED)
    wanted = {"z2": (z * z).sum(), "n": nw.len()}
    if drawn.weight is not None:
        w = nw.col(drawn.weight)
        wanted = {"z2": (w * z * z).sum(), "n": w.sum()}
    found = collect(frame.select(**wanted))
    z2, n = float(found["z2"][0]), float(found["n"][0])
    scaler._set_level(float(np.sqrt(z2 / n)) if z2 > 0 else 1.0)


def _fit_targets(
    targets: RecalibratedTargets,
    frame: Any,
    error: Any,
    uncertainty: Any,
    features: Any,
    groups: str | None,
    sample: Any,
) -> None:
    """Fit several targets to a sample of the known entries of each."""
    most = check_count(sample, "sample", least=100)
    errors, uncertainties, features = list(error), list(uncertainty), names_of(features)
    if targets.by is not None or len(errors) != len(uncertainties):
        msg = (
            "`frame` must be wide: `error` and `uncertainty` are lists of a column for "
            "each target, in the same order, and there is no `by`."
        )
        raise InvalidInputError(msg)
    names = check_names(targets.names, errors, len(errors))
    order = paired(errors, uncertainties, "uncertainty")
    uncertainties = [uncertainties[k] for k in order]
    lazy = as_lazy(frame)
    schema = lazy.collect_schema()
    drawn = []
    for name, e, u in zip(names, errors, uncertainties, strict=True):
        if e not in schema:
            msg = f"`error` must name columns of the frame; there is no {e!r}."
            raise InvalidInputError(msg)
        known = lazy.filter(~is_missing(number(schema, e)))
        share = max(most // len(names), 100)
        with about_subject(f"target {name!r}"):
            drawn.append(draw(known, e, u, features, most=share, groups=groups))
    targets.is_column_ = False
    targets.uncertainty_columns_ = list(range(len(names)))
    targets.columns_ = [*uncertainties, *features]
    targets.n_features_in_ = len(targets.columns_)
    targets.feature_names_in_ = np.array(targets.columns_, dtype=object)
    targets.fit_rows(
        [
            TargetRows(name, each.rows, np.arange(each.rows.n_rows), each.rows.n_rows)
            for name, each in zip(names, drawn, strict=True)
        ]
    )
    for scaler, each in zip(targets.recalibrators_.values(), drawn, strict=True):
        scaler.min_uncertainty_ = each.smallest_uncertainty
        if each.outside is not None:
            scaler.n_sample_, scaler.n_samples_fit_ = each.rows.n_rows, each.n_rows
        _set_level(scaler, each)
