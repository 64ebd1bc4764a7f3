"""Calibration over time: a set in the order in which its rows came."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from scipy import stats

from .._support.checks import Floats, as_array, check_column, check_same_length
from .._support.notices import row_number
from ..bins.partitions import cut_positions, most_bins
from ..exceptions import InvalidInputError
from ..judging.local import LocalZMS, local_zms
from ..predictions import Predictions
from .alarm import Alarm
from .monitor import Monitor

MOST_PERIODS, ROWS_OF_A_PERIOD = 40, 30
FIRST_SHARE, FIRST_ROWS = 4, 200  # a quarter is normal, but so many rows at least
SECONDS_A_DAY = 86_400
_VALUES = ("x", "x_min", "x_max")  # of periods


@dataclass(frozen=True)
class OverTime:
    """<Z²> and bias of periods of equal numbers of rows, and what a monitor says.

    Attributes
    ----------
    local : LocalZMS
        <Z²> of each period with its interval; its `x` are times.
    bias, spread : array of shape (n_periods,)
        The mean of z of each period, and half the width of its interval.
    monitor : Monitor or None
        What has watched the rows, the first of which say what is normal; None if there
        are too few rows, or no errors.
    is_dated : bool
        Whether times are days since 1970-01-01 rather than numbers of any kind.
    """

    local: LocalZMS
    bias: Floats
    spread: Floats
    monitor: Monitor | None
    is_dated: bool

    @property
    def alarm(self) -> Alarm | None:
        """The first change that was found, with its times in words."""
        alarm = None if self.monitor is None else self.monitor.alarm
        if alarm is None or not self.is_dated:
            return alarm
        since, until = (self.shown(each) for each in (alarm.since_time, alarm.time))
        return replace(alarm, since_time=since, time=until)

    def shown(self, time: Any) -> Any:
        """Return a time as text if it is a date."""
        if not self.is_dated or time is None:
            return time
        found = np.datetime64("1970-01-01T00:00:00") + np.timedelta64(
            round(time * SECONDS_A_DAY), "s"
        )
        return str(found).removesuffix("T00:00:00").replace("T", " ")

    @property
    def words(self) -> str:
        """Whether calibration has changed, since when and how much, in words."""
        if self.monitor is None:
            return (
                "Too few rows to tell whether calibration has changed over time: "
                f"{2 * FIRST_ROWS} with errors are needed."
            )
        first = f"the first {self.monitor.burn_in:,} rows"
        if self.alarm is not None:
            return f"Compared with {first} in time: {self.alarm.words}"
        return (
            f"No change over time was found, compared with {first}: the evidence for "
            f"one is {self.monitor.evidence:.2g} in the end, and "
            f"{1 / (1 - self.monitor.confidence):.3g} would show it."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, with the words."""
        ends = zip(self.local.x_min.tolist(), self.local.x_max.tolist(), strict=True)
        return {
            "periods": [[self.shown(each) for each in both] for both in ends],
            "n": self.local.n.tolist(),
            "zms": self.local.zms.tolist(),
            "bias": self.bias.tolist(),
            "alarm": None if self.alarm is None else self.alarm.to_dict(),
            "words": self.words,
        }


def over_time(rows: Predictions, time: Any, *, confidence: float = 0.95) -> OverTime:
    """Return how calibration runs over time; weights of rows do not count.

    Parameters
    ----------
    rows : Predictions
        Checked rows, with errors.
    time : array-like of shape (n,)
        When the rows of the table came, numbers or dates. Rows of equal times keep
        their order.
    confidence : float, default 0.95
        That of intervals, and of the monitor.
    """
    times, is_dated = as_times(time, rows)
    order = np.argsort(times, kind="stable")
    e, u, t = rows.errors[order], rows.uncertainty[order], times[order]
    n_bins = most_bins(e.size, MOST_PERIODS, ROWS_OF_A_PERIOD)
    rank = np.arange(float(e.size))
    local = local_zms(
        e, u, by=rank, n_bins=n_bins, method="moments", confidence=confidence
    )
    at = {name: np.interp(getattr(local, name), rank, t) for name in _VALUES}
    starts = cut_positions(e.size, n_bins)
    z = e / u
    mean = np.add.reduceat(z, starts) / local.n
    square = np.add.reduceat(z**2, starts) / local.n
    sd = np.sqrt(np.maximum(square - mean**2, 0) / np.maximum(local.n - 1, 1))
    monitor = None
    burn_in = max(FIRST_ROWS, e.size // FIRST_SHARE)
    if e.size >= 2 * FIRST_ROWS and e[:burn_in].any():
        monitor = Monitor(burn_in=burn_in, confidence=confidence).update(e, u, time=t)
    return OverTime(
        local=replace(local, name="time", **at),
        bias=mean,
        spread=sd * float(stats.norm.ppf(0.5 + confidence / 2)),
        monitor=monitor,
        is_dated=is_dated,
    )


def as_times(time: Any, rows: Predictions) -> tuple[Floats, bool]:
    """Return times as numbers, and whether these are days since 1970-01-01."""
    values = as_array(time, "time")
    if rows.places is not None and values.size > rows.places.max():
        values = values[rows.places]  # without rows whose weight is 0
    check_same_length("error", rows.errors, "time", values)
    if values.dtype.kind in "biuf":
        return check_column(values, "time"), False
    if values.dtype.kind != "M":
        values = np.array(
            [_date(row, each) for row, each in enumerate(values.tolist())],
            dtype="datetime64[us]",
        )
    days = values.astype("datetime64[us]").astype(np.int64) / (1e6 * SECONDS_A_DAY)
    missing = np.isnat(values)
    if missing.any():
        _date(int(np.argmax(missing)), "nothing")
    return days, True


def _date(row: int, value: Any) -> Any:
    """Return a date as NumPy takes it, in UTC where it names a time zone."""
    try:
        found = value if isinstance(value, date) else datetime.fromisoformat(str(value))
    except ValueError as problem:
        msg = (
            "`time` must be numbers or dates, such as 2024-05-31 or 2024-05-31 18:30; "
            f"found {value!r} at row {row_number(row)}."
        )
        raise InvalidInputError(msg) from problem
    if isinstance(found, datetime) and found.tzinfo is not None:
        found = found.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(found, "us")
