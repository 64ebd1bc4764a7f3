"""Rows on a device: what a recalibrator does with them, and what goes to the host."""

from __future__ import annotations

from typing import Any

from ..arrays.libraries import to_numpy
from ..arrays.prediction import interval as interval
from ..arrays.prediction import recalibrate
from ..arrays.rows import DeviceRows
from ..arrays.rows import on_device as on_device
from ..predictions import Predictions, group_codes
from . import device_summaries
from .informative import warn_of_zero_errors

Scaler = Any  # a recalibrator, whose base imports this module


def on_host(*arguments: Any) -> tuple[Any, ...]:
    """Return arguments in memory, if some of them are on a device."""
    if not on_device(*arguments):
        return arguments
    return tuple(None if each is None else to_numpy(each) for each in arguments)


def fit(
    scaler: Scaler, X: Any, y: Any, groups: Any, sample_weight: Any
) -> Predictions | None:
    """Fit rows on a device by their sums; or return them, if these do not do."""
    rows = DeviceRows.table(X)
    scaler._compare_columns(X, rows, fitting=True)
    with rows.library.in_64_bits():
        rows = rows.detached().with_target(y).nonnegative(smallest=None)
        if groups is not None or sample_weight is not None or scaler._needs_rows:
            host = rows.to_host()
            codes = group_codes(groups, host.errors, "X")
            weights = None if sample_weight is None else to_numpy(sample_weight)
            return host.changed(groups=codes).weighted(weights)
        rows, all_zero = device_summaries.informative(rows)
        if all_zero:
            warn_of_zero_errors(rows.n_rows)
        scaler._learn_sums(device_summaries.DeviceSummaries(rows))
    return None


def predict(scaler: Scaler, X: Any) -> Any:
    """Return recalibrated uncertainties on the device."""
    rows = DeviceRows.table(X)
    scaler._compare_columns(X, rows, fitting=False)
    return recalibrate(scaler.map_, rows, smallest=scaler.min_uncertainty_)


def score(scaler: Scaler, X: Any, y: Any) -> float:
    """Return the mean log-likelihood of errors on a device, by a normal law."""
    rows = DeviceRows.judged(y, scaler.predict(X))
    with rows.library.in_64_bits():
        return float(-rows.total(("z2", "log_u2")).nll())
