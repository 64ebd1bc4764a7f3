"""Calibration over time: periods, dates, and what a monitor says of the order."""

from datetime import UTC, datetime, timedelta, timezone

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError
from sigmascale.monitoring import over_time as module
from sigmascale.predictions import as_predictions
from sigmascale.report import pictures, report_html

N = 2000
BEGIN = datetime(2024, 1, 1)
ELSEWHERE = timezone(timedelta(hours=3))
DATES = [BEGIN + timedelta(hours=i) for i in range(N)]


def over_time(error, u, time):
    return module.over_time(as_predictions(error, u), time)


def as_times(time, error):
    return module.as_times(time, as_predictions(error, np.ones(error.size)))


def changed(factor=1.0, shift=0.0, seed=1):
    """Errors that change in the middle, and their uncertainties."""
    rng = np.random.default_rng(seed)
    u = rng.gamma(4.0, 0.1, N)
    z = rng.normal(size=N)
    z[N // 2 :] = factor * z[N // 2 :] + shift
    return z * u, u


def test_rows_are_sorted_by_time_before_anything_else():
    error, u = changed(1.6)
    sorted_ = over_time(error, u, np.arange(N))
    order = np.random.default_rng(2).permutation(N)
    shuffled = over_time(error[order], u[order], np.arange(N)[order])
    np.testing.assert_array_equal(shuffled.local.zms, sorted_.local.zms)
    assert shuffled.alarm == sorted_.alarm
    assert shuffled.alarm.kind == "too small"
    assert 900 <= shuffled.alarm.since_time <= 1150


def test_periods_have_the_means_of_their_rows():
    error, u = changed(shift=0.7)
    found = over_time(error, u, 3.0 * np.arange(N))
    z = (error / u).reshape(40, 50)
    np.testing.assert_allclose(found.bias, z.mean(axis=1))
    np.testing.assert_allclose(found.local.zms, (z**2).mean(axis=1))
    np.testing.assert_allclose(found.local.x_min, 150.0 * np.arange(40))
    np.testing.assert_allclose(found.local.x_max, 150.0 * np.arange(40) + 147)
    np.testing.assert_allclose(
        found.spread, 1.96 * z.std(axis=1, ddof=1) / np.sqrt(50), rtol=1e-3
    )
    assert found.alarm.kind == "biased"
    assert "the first 500 rows" in found.words


@pytest.mark.parametrize(
    "dates",
    [
        DATES,
        np.array(DATES, dtype="datetime64[s]"),
        [each.isoformat() for each in DATES],
        [str(each) for each in DATES],
        pl.Series(DATES),
        [f"{each.isoformat()}Z" for each in DATES],
        [
            each.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=3)))
            for each in DATES
        ],
    ],
    ids=["datetime", "NumPy", "ISO", "with a space", "Polars", "UTC", "time zone"],
)
def test_dates_of_all_kinds_are_days_and_come_back_as_dates(dates):
    error, u = changed(1.6)
    days, is_dated = as_times(dates, error)
    assert is_dated
    np.testing.assert_allclose(days - days[0], np.arange(N) / 24, atol=1e-9)
    found = over_time(error, u, dates)
    since = datetime.fromisoformat(found.alarm.since_time)
    assert abs(since - DATES[N // 2]) < timedelta(hours=150)
    assert found.to_dict()["periods"][0] == ["2024-01-01", "2024-01-03 01:00:00"]
    assert f"(time {found.alarm.since_time})" in found.words


def test_nothing_is_found_where_nothing_changes_or_rows_are_few():
    error, u = changed()
    quiet = over_time(error, u, np.zeros(N))
    assert quiet.alarm is None
    assert "No change over time was found" in quiet.words
    few = over_time(error[:399], u[:399], np.arange(399))
    assert few.monitor is None
    assert "Too few rows to tell" in few.words
    assert over_time(np.zeros(500), u[:500], np.arange(500)).monitor is None


@pytest.mark.parametrize(
    ("times", "match"),
    [
        (["yesterday", "2024-01-01"], "found 'yesterday' at row 0"),
        (np.array(["2024-01-01", "NaT"], dtype="datetime64[D]"), "at row 1"),
        ([1.0, np.nan], "time"),
        ([1.0], "time"),
    ],
)
def test_what_is_no_time_is_refused(times, match):
    with pytest.raises(InvalidInputError, match=match):
        as_times(times, np.ones(2))


def test_a_report_has_a_section_on_time_where_times_are_known():
    error, u = (each[700:1300] for each in changed(2.0))
    judged, dates = ss.validate(error, u), DATES[700:1300]
    page = report_html(judged, time=dates)
    found = over_time(error, u, dates)
    assert '<section id="time">' in page
    assert found.words in page
    assert found.alarm.suggestion in page
    assert "2024-01-30 04:00:00 to 2024-02-24 03:00:00" in page
    assert "Mean of z of 20 periods of about 30 rows" in page
    assert "Testing randomness online" in page


def test_equal_times_are_drawn_too():
    error, u = changed()
    sketches = pictures.over_time(over_time(error, u, np.ones(N)))
    (zms, bias), (evidence,) = (sketch.parts for sketch in sketches)
    for caption, paint in (zms, bias, evidence):
        ax = plt.figure().subplots()
        paint(ax=ax)
        assert ax.get_xlabel() == "time"
        assert caption.endswith(".")
    plt.close("all")


def test_rows_of_weight_0_are_left_out_and_the_others_keep_their_times():
    error, u = changed(1.6)
    weights = np.where(np.arange(N) % 3 == 0, 0.0, 1.0)
    rows = as_predictions(error, u, sample_weight=weights)
    some = weights > 0
    found = module.over_time(rows, np.arange(N))
    kept = over_time(error[some], u[some], np.arange(N)[some])
    assert found.alarm == kept.alarm
    np.testing.assert_array_equal(found.local.x, kept.local.x)
