"""Draws of rows: permutations, or whole groups that change places."""

import numpy as np
import pytest
from scipy import stats

from sigmascale.judging.grouped_intervals import within_groups
from sigmascale.judging.resampling import (
    ENOUGH_GROUPS,
    _pools,
    correlated_squares,
    shuffled_rows,
)


def drawn(groups, seed=0, n_rows=None):
    groups = None if groups is None else np.asarray(groups)
    n_rows = n_rows or len(groups)
    return shuffled_rows(n_rows, groups, np.random.default_rng(seed))


def test_without_groups_each_draw_is_another_permutation_of_the_rows():
    draw = drawn(None, n_rows=100)
    first, second = draw(), draw()
    assert first.dtype == np.uint32
    assert sorted(first) == sorted(second) == list(range(100))
    assert (first != second).any()


def test_groups_of_single_rows_are_no_groups():
    labels = np.random.default_rng(0).permutation(50)
    assert (drawn(labels)() == drawn(None, n_rows=50)()).all()


def test_groups_of_one_size_exchange_all_their_rows():
    rng = np.random.default_rng(1)
    groups = rng.permutation(np.repeat(np.arange(30), 4))
    draw = drawn(groups)
    for _ in range(20):
        source = draw()
        assert sorted(source) == list(range(120))
        # the rows of a group get those of one other group
        assert np.unique(groups + 1000 * groups[source]).size == 30


def test_neighbours_within_a_group_stay_neighbours():
    groups = np.repeat(np.arange(30), 5)
    source = drawn(groups)()
    steps = np.diff(source.astype(int).reshape(30, 5), axis=1)
    assert set(steps.ravel()) == {1, -4}
    assert (steps == -4).any()


def test_every_row_gets_every_other_row_equally_often():
    groups = np.repeat(np.arange(4), 3)
    draw = drawn(groups)
    counts = np.zeros((12, 12))
    n_draws = 6000
    for _ in range(n_draws):
        counts[np.arange(12), draw()] += 1
    # all 144 cells, of which 11 in each row and column are free
    statistic = ((counts - n_draws / 12) ** 2 / (n_draws / 12)).sum()
    assert stats.chi2.sf(statistic, 11 * 11) > 1e-4


def test_a_size_with_enough_groups_keeps_to_itself():
    groups = np.concatenate(
        [np.repeat(np.arange(25), 2), np.repeat(np.arange(100, 140), 3)]
    )
    draw = drawn(groups)
    for _ in range(20):
        source = draw()
        assert (source[:50] < 50).all()
        assert sorted(source) == list(range(170))


def test_groups_of_rare_sizes_go_to_similar_ones_cut_or_started_over():
    sizes = np.arange(10, 20)
    groups = np.repeat(np.arange(10), sizes)
    draw = drawn(groups)
    met = set()
    for _ in range(200):
        source = groups[draw()]
        for group in range(10):
            (only,) = set(source[groups == group])
            met.add((group, only))
    assert len(met) == 100


def test_a_group_without_similar_ones_keeps_its_own_rows():
    groups = np.concatenate([np.repeat(0, 500), np.arange(1, 200)])
    source = drawn(groups)()
    assert sorted(source[:500]) == list(range(500))
    assert sorted(source[500:]) == list(range(500, 699))


@pytest.mark.parametrize(
    ("sizes", "pools"),
    [
        ([3] * 5, [(0, 5)]),
        ([1] * 20 + [2] * 20, [(0, 20), (20, 40)]),
        ([1] * 3 + [2] * 20, [(0, 23)]),
        ([2] * 20 + [3] * 3, [(0, 23)]),
        ([1] * 3 + [9] * 3, [(0, 3), (3, 6)]),
        ([4, 5, 8, 9], [(0, 3), (3, 4)]),
    ],
)
def test_pools_hold_groups_of_similar_sizes(sizes, pools):
    assert ENOUGH_GROUPS == 20
    assert _pools(np.array(sizes)) == pools


def test_the_draws_keep_the_spread_of_the_mean_that_dependent_rows_have():
    # a bin of 30 rows, one of each of 30 groups, and one of 10 whole groups
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(200), 3)
    z = np.sqrt(0.9) * rng.normal(size=200)[groups] + np.sqrt(0.1) * rng.normal(
        size=600
    )
    z2 = z**2
    draw = drawn(groups)
    whole, single = (
        np.array([z2[draw()][rows].mean() for _ in range(2000)]).var()
        for rows in (np.arange(30), np.arange(0, 90, 3))
    )
    # 1/30 of var(z²) for single rows; whole groups add twice the covariance 0.81 var
    assert whole / single == pytest.approx(1 + 2 * 0.81, rel=0.2)


def test_with_replacement_a_group_may_be_drawn_several_times():
    groups = np.repeat(np.arange(50), 4)
    draw = shuffled_rows(200, groups, np.random.default_rng(0), replace=True)
    source = groups[draw()].reshape(50, 4)
    assert (source == source[:, :1]).all()
    assert np.unique(source).size < 45
    single = shuffled_rows(200, None, np.random.default_rng(0), replace=True)()
    assert single.dtype == np.uint32
    assert np.unique(single).size < 180


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_squares_are_drawn_as_alike_within_groups_as_the_rows_own(rho):
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(3000), 3)
    z = np.sqrt(rho) * rng.normal(size=3000)[groups]
    z2 = (z + np.sqrt(1 - rho) * rng.normal(size=9000)) ** 2
    draw = correlated_squares(z2, groups, rng.chisquare(1, 100_000), rng)
    squares = np.concatenate([draw() for _ in range(10)])
    assert squares.mean() == pytest.approx(1, abs=0.05)
    assert squares.var() == pytest.approx(2, rel=0.1)
    drawn = within_groups(squares - squares.mean(), np.arange(squares.size) // 3)
    assert drawn == pytest.approx(rho**2, abs=0.08)
