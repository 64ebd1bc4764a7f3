import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigmascale.bins import libraries, quantiles
from sigmascale.bins.libraries import library_of
from sigmascale.bins.partitions import EqualSizeBins
from sigmascale.bins.quantiles import (
    Grid,
    Search,
    ends_of_runs,
    in_order,
    order_statistics,
)

# few rows to a chunk, and no set so small that it is just sorted
SMALL = {"_SORTED_AT_ONCE": 0, "_PILE": 3, "_MOST_PILES": 5}

numbers = st.one_of(
    st.integers(-3, 3).map(float),  # ties
    st.floats(allow_nan=False, allow_infinity=False),  # all exponents
    st.floats(1e-70, 1e70),
    st.floats(1000, 1000.001),
)
columns = st.one_of(
    st.lists(each, min_size=1, max_size=60)
    for each in (numbers, st.floats(1e-70, 1e70), st.integers(1, 9).map(float))
).map(np.array)


def search(limits, x):
    return EqualSizeBins(limits).codes(x)


@pytest.fixture
def small(monkeypatch):
    """Let a few rows take the way of many."""
    for name, value in SMALL.items():
        monkeypatch.setattr(quantiles, name, value)
    monkeypatch.setattr(libraries._NumPy, "chunk", 7)
    monkeypatch.setattr(libraries._NumPy, "few", 0)


def samples(n=50_000):
    rng = np.random.default_rng(0)
    return {
        "positive": rng.gamma(3, size=n),
        "over many decades": np.exp(20 * rng.normal(size=n)),
        "of both signs": rng.normal(size=n),
        "negative": -rng.gamma(3, size=n),
        "with outliers": rng.standard_cauchy(n),
        "of few values": np.round(rng.gamma(3, size=n)),
        "in a narrow range": 1e6 + rng.random(n),
        "nearly all equal": np.where(rng.random(n) < 0.99, 1.0, rng.random(n)),
        "of every size": rng.choice([-1, 1], n) * 10 ** rng.uniform(-308, 308, n),
        "all equal": np.ones(n),
    }


@pytest.mark.parametrize("name", samples())
def test_statistics_and_searches_of_many_rows_are_those_of_numpy(name):
    x = samples()[name]
    ranks = np.arange(0, x.size, 997)
    limits = order_statistics(x, ranks)
    np.testing.assert_array_equal(limits, np.sort(x)[ranks])
    np.testing.assert_array_equal(
        search(limits, x), np.searchsorted(limits, x, side="right")
    )


@pytest.mark.parametrize("name", samples())
def test_many_rows_are_put_in_the_order_of_a_lexical_sort(name, monkeypatch):
    monkeypatch.setattr(quantiles, "_SORTED_AT_ONCE", 0)
    x = samples()[name]
    ties = np.round(np.random.default_rng(1).normal(size=x.size))
    rows = np.arange(x.size)
    for keys in ([x], [x, ties]):
        order = np.lexsort(keys[::-1])
        found = in_order(*keys, rows, -rows, n_keys=len(keys))
        for column, expected in zip(found, [*keys, rows, -rows], strict=True):
            np.testing.assert_array_equal(column, expected[order])


def test_the_number_of_cells_is_bounded_however_many_rows_there_are():
    x = np.random.default_rng(0).gamma(3, size=2**17)
    ranks = np.arange(0, x.size, 997)
    np.testing.assert_array_equal(order_statistics(x, ranks), np.sort(x)[ranks])


@pytest.mark.usefixtures("small")
def test_equal_numbers_keep_the_order_of_their_rows():
    @given(columns)
    def check(x):
        rows = np.arange(x.size)
        expected = np.argsort(x, kind="stable")
        for column, whole in zip(in_order(x, rows), (x, rows), strict=True):
            np.testing.assert_array_equal(column, whole[expected])

    check()


@pytest.mark.usefixtures("small")
def test_every_rank_of_every_column_is_that_of_a_sort():
    @given(columns)
    def check(x):
        ranks = np.arange(x.size)[::-1].reshape(1, -1)
        found = order_statistics(x, ranks)
        np.testing.assert_array_equal(found, np.sort(x)[ranks])

    check()


@pytest.mark.usefixtures("small")
def test_every_search_is_that_of_numpy_also_beyond_the_limits_and_at_equal_ones():
    @given(columns, columns)
    def check(limits, x):
        limits = np.sort(limits)
        x = np.concatenate([x, limits, -limits])
        found = search(limits, x)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, np.searchsorted(limits, x, side="right"))

    check()


@pytest.mark.usefixtures("small")
def test_zeros_of_either_sign_are_equal():
    x = np.array([0.0, -0.0, 1.0, -0.0, 0.0])
    assert search(np.array([0.0, 1.0]), x).tolist() == [1, 1, 2, 1, 1]
    assert search(np.array([-0.0, 1.0]), x).tolist() == [1, 1, 2, 1, 1]
    assert order_statistics(x, np.array([3, 4])).tolist() == [0, 1]


def test_without_limits_every_row_is_in_the_first_bin():
    assert search(np.empty(0), np.arange(3000.0)).tolist() == [0] * 3000


def test_columns_of_a_table_need_not_be_contiguous():
    table = np.random.default_rng(0).gamma(3, size=(5000, 3))
    x = table[:, 1]
    ranks = np.array([7, 2500])
    limits = order_statistics(x, ranks)
    np.testing.assert_array_equal(limits, np.sort(x)[ranks])
    np.testing.assert_array_equal(
        search(limits, x), np.searchsorted(limits, x, side="right")
    )


@pytest.mark.usefixtures("small")
def test_chunks_cover_every_row_once_and_are_no_smaller_than_asked_for():
    rows = np.arange(100)
    for least, size in ((1, 7), (30, 30)):
        parts = [rows[part] for part in library_of(rows).chunks(100, least)]
        assert [part.size for part in parts[:-1]] == [size] * (100 // size)
        assert np.concatenate(parts).tolist() == rows.tolist()


def test_infinite_numbers_are_beyond_all_limits_even_crowded_ones():
    rng = np.random.default_rng(0)
    crowded = np.sort(np.concatenate([1 + 1e-6 * rng.normal(size=60), [1e-3, 1e3]]))
    x = np.array([np.inf, -np.inf, 1e308, 0.0, 1.0, 2000.0] * 60)
    assert Search(crowded, 10_000)._most > 1
    for found in (Search(crowded, 10_000)(x), search(crowded, x)):
        assert found.tolist() == np.searchsorted(crowded, x, side="right").tolist()


def test_runs_of_equal_values_end_where_the_value_changes():
    assert ends_of_runs(np.array([1.0, 1, 2, 3, 3])).tolist() == [2, 3, 5]
    assert ends_of_runs(np.empty(0)).tolist() == []


# --- the grid: results are exact whatever it is, but a poor one would cost time -------


@pytest.mark.parametrize("n_rows", [1000, 1023, 1024])
def test_a_grid_has_about_as_many_cells_as_there_are_rows_up_to_a_limit(n_rows):
    x = np.linspace(-1, 1, n_rows)
    last = {1000: 511, 1023: 511, 1024: 1023}[n_rows]
    for bits, expected in ((16, last), (5, 31)):
        cells = Grid.on(x, n_rows, bits).cells(x)
        assert np.bincount(cells, minlength=expected + 1).size == expected + 1
        assert np.all(np.diff(cells) >= 0)
        assert np.unique(cells).size > 0.9 * expected


@pytest.mark.parametrize("high", [1 + 1e-15, 1.5, 1e3, 1e300])
def test_a_grid_of_positive_numbers_uses_more_than_half_its_cells(high):
    x = np.geomspace(1, high, 5000)
    cells = Grid.on(x, x.size, 8).cells(x)
    assert np.all(np.diff(cells) >= 0)
    assert cells[0] == 0
    assert min(127, (high - 1) * 2.0**52) <= cells[-1] < 256


def test_a_grid_is_laid_only_over_many_rows_of_different_values():
    narrow = np.array([1.0, 1.001])
    assert Grid.on(narrow, libraries._NumPy.few + 1, 8).bits == 8
    assert Grid.on(narrow, libraries._NumPy.few, 8) is None
    assert Grid.on(narrow[:1], 1000, 8) is None
    assert Grid.on(np.ones(3), 1000, 8) is None
    assert Grid.on(np.array([-1e308, 1e308]), 1000, 8) is None


def test_a_scale_is_linear_but_nearly_logarithmic_for_positive_numbers():
    x = np.array([0.25, 1.0, 4.0])
    assert Grid.on(x, 1000, 8).positions(x).tolist() == [0, 0.5, 1]
    x = np.array([0.0, 1.0, 4.0])
    assert Grid.on(x, 1000, 8).positions(x).tolist() == [0, 0.25, 1]
    x = np.array([-4.0, 0.0, 4.0])
    assert Grid.on(x, 1000, 8).positions(x).tolist() == [0, 0.5, 1]
