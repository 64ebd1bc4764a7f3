import itertools

import numpy as np
import pytest

from sigmascale.bins.sums import CellSums
from sigmascale.scaling.raked import FLOOR, rake


def make_cells(n=400, seed=0):
    """Two variables of 3 and 4 bins, and one more bin without rows each."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, 3, n), rng.integers(0, 4, n)])
    z2 = (1 + codes[:, 0]) * np.exp(0.4 * codes[:, 1]) * rng.gamma(1, size=n)
    return CellSums.from_rows(codes, rng.integers(0, 2, n), z2, cap=9.0)


def test_rows_of_a_cell_and_fold_are_summed_up_to_the_cap():
    codes = np.array([[1, 0], [0, 2], [1, 0], [1, 0]])
    z2 = np.array([1.0, 2.0, 30.0, 5.0])
    cells = CellSums.from_rows(codes, np.array([0, 0, 0, 1]), z2, cap=10.0)
    assert cells.codes.tolist() == [[0, 2], [1, 0], [1, 0]]
    assert cells.fold.tolist() == [0, 0, 1]
    assert cells.n.tolist() == [1, 2, 1]
    assert cells.z2.tolist() == [2, 31, 5]
    assert cells.capped.tolist() == [2, 11, 5]


@pytest.mark.parametrize("k", [(0.0, 0.0), (7.0, 50.0), (0.0, np.inf)])
def test_every_factor_is_that_of_its_bin_given_all_others(k):
    cells = make_cells()
    found = rake(cells, [4, 5], k)
    assert found.change < 1e-10
    a, b = found.log_factors
    first, second = cells.codes.T
    mean_square = np.sum(cells.capped * np.exp(-a[first] - b[second])) / cells.n.sum()
    assert found.log_mean == pytest.approx(np.log(mean_square), rel=1e-12)
    np.testing.assert_allclose(
        found.log_variance_factor(cells.codes),
        a[first] + b[second] + np.log(mean_square),
        rtol=1e-12,
    )
    for f, code, other, pseudo in (
        (a, first, b[second], k[0]),
        (b, second, a[first], k[1]),
    ):
        assert f[-1] == 0  # no rows
        if np.isinf(pseudo):
            assert not f.any()
            continue
        n = np.bincount(code, cells.n)
        total = np.bincount(code, cells.capped * np.exp(-other)) / mean_square
        expected = np.log((total + pseudo) / (n + pseudo))
        np.testing.assert_allclose(
            f[:-1], expected - np.average(expected, weights=n), atol=1e-9
        )
        assert np.average(f[:-1], weights=n) == pytest.approx(0, abs=1e-12)


def test_a_bin_of_zero_errors_has_the_floor_of_the_average_variance():
    codes = np.repeat([[0], [1]], 50, axis=0)
    z2 = np.repeat([0.0, 2.0], 50)
    cells = CellSums.from_rows(codes, np.zeros(100, dtype=int), z2, 20.0)
    low, high = rake(cells, [2], [0.0]).log_factors[0]
    level = 2.0 * 50 * np.exp(-high) / 100
    assert low - high == pytest.approx(np.log(FLOOR) - np.log(2 / level))
    assert low + high == pytest.approx(0, abs=1e-12)


def test_no_error_at_all_says_nothing():
    zeros = np.zeros(5)
    cells = CellSums.from_rows(np.zeros((5, 1), int), np.zeros(5, int), zeros, 20.0)
    found = rake(cells, [3], [0.0])
    assert found.log_factors[0].tolist() == [0, 0, 0]
    assert (found.log_mean, found.n_sweeps, found.change) == (0, 0, 0)


def test_cycles_end_when_no_factor_moves_or_when_there_have_been_enough():
    cells = make_cells()
    path = [rake(cells, [4, 5], [0.0, 0.0], max_sweeps=i) for i in range(1, 5)]
    assert [each.n_sweeps for each in path] == [1, 2, 3, 4]
    assert path[0].change == max(np.abs(f).max() for f in path[0].log_factors)
    for before, after in itertools.pairwise(path):
        moved = [
            np.abs(new - old).max()
            for old, new in zip(before.log_factors, after.log_factors, strict=True)
        ]
        assert after.change == pytest.approx(max(moved), rel=1e-9)
    rough = rake(cells, [4, 5], [0.0, 0.0], tolerance=1.001 * path[2].change)
    assert rough.n_sweeps == 3


def test_a_bin_of_one_row_has_a_factor():
    codes = np.array([[0], [0], [0], [1]])
    z2 = np.array([1.0, 1.0, 1.0, 4.0])
    cells = CellSums.from_rows(codes, np.zeros(4, dtype=int), z2, 20.0)
    low, high = rake(cells, [2], [0.0]).log_factors[0]
    assert high - low == pytest.approx(np.log(4))
