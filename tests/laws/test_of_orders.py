"""Computed numbers are put in order in one way: those that tie, tie in every unit."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import sigmascale as ss

SOURCE = Path(ss.__file__).parent
ROOMS = ("recalibration", "monitoring", "scores", "paper")
BINS = "predictions/bins.py"
ORDERS = {
    *("argsort", "argpartition", "lexsort", "searchsorted", "digitize", "unique"),
    *("union1d", "setdiff1d", "intersect1d", "isin", "rankdata"),
}
# Why a line may do without `predictions.ordering`; a comment on it, or above, says so.
REASONS = (
    "whole numbers",
    "as given",  # numbers of the user, and the same function of each alone
    "rounded",  # by `rounded` or `for_order`
    "halfway between values",  # limits that no value comes near
    "levels",  # shares of rows, with a margin for rounding, or random ones
    "snapped",  # sums of weights, to limits that they meet
    "of itself alone",  # an order in which equal numbers are interchangeable
)
REASON = re.compile(rf"# ({'|'.join(REASONS)})$")


def orders(source):
    """Yield each line that puts numbers in order, and why it may."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in ORDERS:
            told = lines[node.lineno - 1 : node.end_lineno]
            above = lines[node.lineno - 2] if node.lineno > 1 else ""
            told += [above] if above.lstrip().startswith("#") else []
            reasons = [REASON.search(line) for line in told]
            yield node.lineno, next(filter(None, reasons), None)


def test_every_order_of_numbers_goes_by_rounded_ones_or_says_why_it_need_not():
    files = [path for room in ROOMS for path in (SOURCE / room).rglob("*.py")]
    found = {
        f"{path.relative_to(SOURCE)}:{line}": reason
        for path in (*files, SOURCE / BINS)
        for line, reason in orders(path.read_text(encoding="utf-8"))
    }
    assert len(found) > 50
    assert [line for line, reason in found.items() if reason is None] == []


def test_an_order_of_raw_numbers_is_found_by_its_line():
    source = "a = np.unique(codes)  # whole numbers\nb = np.argsort(z)\nc = 1\n"
    assert [(line, bool(reason)) for line, reason in orders(source)] == [
        (1, True),
        (2, False),
    ]


def intervals(error, u, weights, unit, **options):
    """Return the intervals of rows in a unit, divided by it, and recalibrated u."""
    p = ss.Predictions(y_std=unit * u, error=unit * error, weights=weights)
    q = ss.Recalibrator(ss.TemperatureScaling(), **options).fit(p).apply(p)
    return q.distributions.interval(0.8) / unit, q.y_std / unit


@pytest.mark.parametrize(
    "options", [{}, {"hold_out": 0.4}, {"parts": ["u"]}, {"bias": "constant"}], ids=str
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_weighted_rows_whose_z_tie_have_the_same_intervals_in_every_unit(options):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([39, 60, 90]))
        most = 4 if seed % 2 else 25  # many ties, or few
        error = rng.integers(-most, most + 1, n).astype(float)
        u = rng.integers(1, 4 + most // 10, n).astype(float)
        weights = np.round(rng.uniform(0.1, 3, n), 2)
        wanted, scale = intervals(error, u, weights, 1.0, **options)
        for unit in (1e-12, 1e-3, 96.4853):
            found, _ = intervals(error, u, weights, unit, **options)
            far = np.isfinite(wanted)
            assert (far == np.isfinite(found)).all()
            off = np.where(far, found - wanted, 0.0) / scale[:, None]
            assert np.abs(off).max() < 1e-9, (seed, unit)
