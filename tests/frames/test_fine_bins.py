"""Sums by the bits of rounded numbers must be those of a group-by."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from sigmascale.bins import fine_bins as tally
from sigmascale.bins.fine_bins import Tally
from sigmascale.frames import fine_bins
from sigmascale.frames.fine_bins import Survey
from sigmascale.frames.lazy import TERMS, read_rows

N_ROWS = 5000
RNG = np.random.default_rng(3)
COLUMNS = {
    "normal": RNG.normal(size=N_ROWS),
    "mostly zeros": RNG.normal(size=N_ROWS) * RNG.integers(0, 2, N_ROWS),
    "zeros of both signs": np.where(np.arange(N_ROWS) % 2, -0.0, 0.0),
    "integers": RNG.integers(-5, 100, N_ROWS).astype(float),
    "one value": np.full(N_ROWS, -7.25),
    "negative": -RNG.gamma(2, 3, N_ROWS),
    "powers of 2": 2.0 ** RNG.integers(-10, 10, N_ROWS),
    "sorted, far apart": np.geomspace(1e-8, 1e8, N_ROWS),
    "smallest numbers": RNG.integers(0, 9, N_ROWS) * 5e-324,
    "smallest negative numbers": RNG.integers(-9, 0, N_ROWS) * 5e-324,
}


def rows_of(x: np.ndarray, *others: pl.Expr):
    u = RNG.gamma(3, 0.1, x.size)
    error = RNG.normal(size=x.size) * u * RNG.integers(0, 2, x.size)
    frame = pl.LazyFrame({"E": error, "u": u, "x": x}).with_columns(*others)
    return read_rows(frame, "E", "u", ["x"])


def first_pass(survey: Survey, rows, columns: list[str]):
    found = survey._first_pass(rows, columns)
    for column, each in found.items():
        order = np.argsort(each["key"])
        found[column] = {name: values[order] for name, values in each.items()}
    return found


def tallied_rows(frame, wanted, bits):
    return fine_bins._tallied(frame, Tally(wanted, bits, x_range=True))


def replace_ok(total):
    total.ok = False
    return total


def both_ways(survey: Survey, rows, columns: list[str], monkeypatch):
    """Return what the tally gives, and what the group-by gives."""
    tallied = first_pass(survey, rows, columns)
    with monkeypatch.context() as patch:
        patch.setattr(fine_bins, "_tallied", lambda frame, total: replace_ok(total))
        return tallied, first_pass(survey, rows, columns)


@pytest.mark.parametrize("bits", [4, 10, 13])
@pytest.mark.parametrize("name", COLUMNS)
def test_a_tally_has_the_fine_bins_and_sums_of_a_group_by(name, bits, monkeypatch):
    survey = Survey((*TERMS, "nonzero"), bits, u_range=False)
    rows = rows_of(COLUMNS[name])
    tallied, grouped = both_ways(survey, rows, ["u", "x1"], monkeypatch)
    for column, each in grouped.items():
        found = tallied[column]
        for exact in ("key", "n", "low", "high"):
            np.testing.assert_array_equal(found[exact], each[exact])
        for term in survey.terms:
            np.testing.assert_allclose(found[term], each[term], rtol=1e-12, atol=1e-300)


def test_batches_and_threads_add_up(monkeypatch):
    x = np.concatenate([np.zeros(300_000), RNG.normal(size=700_000) ** 3])
    survey = Survey(("z2", "e2"), 10, u_range=False)
    calls = []
    add = Tally.add

    def counted(self, rows):
        calls.append(rows["u"].size)
        add(self, rows)

    monkeypatch.setattr(Tally, "add", counted)
    tallied, grouped = both_ways(survey, rows_of(x), ["u", "x1"], monkeypatch)
    assert len(calls) > 1
    assert sum(calls) == x.size
    for column, each in grouped.items():
        for exact in ("key", "n", "low", "high"):
            np.testing.assert_array_equal(tallied[column][exact], each[exact])
        np.testing.assert_allclose(tallied[column]["z2"], each["z2"], rtol=1e-11)


@pytest.mark.parametrize("first_zeros", [0, 100_000])
def test_batches_of_zeros_alone_are_added_to_other_zeros(first_zeros, monkeypatch):
    x = RNG.normal(size=600_000)
    x[first_zeros : first_zeros + 200_000] = 0.0
    x[[-1, -1000, -50_000, -200_000]] = -0.0
    rows = rows_of(x)
    survey = Survey(("z2", "e2"), 10, u_range=False)
    tallied, grouped = both_ways(survey, rows, ["u", "x1"], monkeypatch)
    for exact in ("key", "n", "low", "high"):
        np.testing.assert_array_equal(tallied["x1"][exact], grouped["x1"][exact])
    assert not np.signbit(tallied["x1"]["low"][tallied["x1"]["low"] == 0]).any()


def test_zeros_of_two_threads_share_a_place():
    first, second = (tally._Places(10, 1, x_range=True) for _ in range(2))
    zeros, both = np.zeros(3), np.array([0.0, -2.0, 5.0])
    weights = np.array([1.0, 2.0, 4.0])
    scratch = np.empty(3), np.empty(3)
    assert first.add(zeros, (0.0, 0.0), [weights], *scratch)
    assert second.add(both, (-2.0, 5.0), [weights], *scratch)
    for one, other in ((first, second), (second, first)):
        total = tally._Places(10, 1, x_range=True)
        assert total.merge(one)
        assert total.merge(other)
        found = total.fine_bins(("w",))
        order = np.argsort(found["key"])
        assert found["key"][order].tolist() == [-2.0, 0.0, 5.0]
        assert found["n"][order].tolist() == [1, 4, 1]
        assert found["w"][order].tolist() == [2.0, 8.0, 4.0]


def test_parts_of_few_rows_add_up_as_well(tmp_path, monkeypatch):
    x = np.concatenate([RNG.normal(size=3000) * 10.0 ** RNG.integers(-9, 9, 3000), [0]])
    rows_of(x).source.to_native().sink_parquet(tmp_path / "x", row_group_size=100)
    rows = read_rows(pl.scan_parquet(tmp_path / "x"), "E", "u", ["x"])
    survey = Survey(("z2", "e2"), 13, u_range=False)
    tallied, grouped = both_ways(survey, rows, ["u", "x1"], monkeypatch)
    for column, each in grouped.items():
        for exact in ("key", "n", "low", "high"):
            np.testing.assert_array_equal(tallied[column][exact], each[exact])
        np.testing.assert_allclose(tallied[column]["e2"], each["e2"], rtol=1e-11)


def test_ranges_and_terms_of_u_alone_are_left_out_where_nobody_asks():
    rows = rows_of(COLUMNS["normal"])
    terms = ("z2", "log_u2")
    lean = Survey(terms, 10, u_range=False, lean=True, feature_terms=("z2",))
    found = lean._first_pass(rows, ["u", "x1"])
    assert set(found["u"]) == {"key", "n", "z2", "log_u2"}
    assert set(found["x1"]) == {"key", "n", "z2"}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e251, None])
@pytest.mark.parametrize("column", ["E", "u", "x"])
def test_a_row_that_cannot_be_used_ends_the_tally(column, bad):
    third = pl.int_range(pl.len()) == 2
    value = pl.when(third).then(pl.lit(bad, dtype=pl.Float64)).otherwise(pl.col(column))
    rows = rows_of(COLUMNS["normal"], value.alias(column))
    wanted = {"u": ("z2",), "x1": ("z2",)}
    assert not tallied_rows(rows.unchecked, wanted, 10).ok


@pytest.mark.parametrize(("e", "u"), [(1e50, 1.0), (1.0, 0.0), (1.0, -1.0)])
def test_errors_too_large_and_uncertainties_not_positive_end_the_tally(e, u):
    frame = nw.from_native(pl.LazyFrame({"e": [1.0, e], "u": [1.0, u]}))
    assert not tallied_rows(frame, {"u": ("z2",)}, 10).ok


def test_a_column_of_too_many_powers_of_2_is_grouped(monkeypatch):
    x = np.array([-1e-200, 1e-200, 1.0, 1e200])
    survey = Survey(("z2",), 13, u_range=False)
    rows = rows_of(x)
    wanted = {"u": ("z2",), "x1": ("z2",)}
    assert not tallied_rows(rows.unchecked, wanted, 13).ok
    found, grouped = both_ways(survey, rows, ["u", "x1"], monkeypatch)
    np.testing.assert_array_equal(found["x1"]["n"], grouped["x1"]["n"])
    assert found["x1"]["n"].tolist() == [1, 1, 1, 1]


def test_two_threads_that_see_far_apart_magnitudes_need_too_many_places():
    first, second = (tally._Places(13, 0, x_range=False) for _ in range(2))
    scratch = np.empty(2), np.empty(2)
    assert first.add(np.array([1e-100, 2e-100]), (1e-100, 2e-100), [], *scratch)
    assert second.add(np.array([1e100, 2e100]), (1e100, 2e100), [], *scratch)
    assert not first.merge(second)


def test_no_rows_make_no_fine_bins():
    rows = rows_of(np.empty(0))
    found = tallied_rows(rows.unchecked, {"u": ("z2",)}, 10).fine_bins()
    assert all(values.size == 0 for values in found["u"].values())
