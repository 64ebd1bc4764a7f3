import numpy as np
import pytest

from sigmascale.scaling.crossfit import (
    canonical_order,
    capped,
    largest_counted,
    largest_ratio,
    largest_ratio_of,
    make_folds,
)


@pytest.mark.parametrize(
    ("n_rows", "n_nonzero", "expected"),
    [
        (100, 100, 20),  # the least
        (10_000, 10_000, 50),  # half of the root of n
        (1000, 10, 200),  # 2 n / nonzero, where nearly all errors are 0
        (1000, 0, 2000),
    ],
)
def test_the_cap_grows_with_the_rows_and_with_the_share_of_zeros(
    n_rows, n_nonzero, expected
):
    assert largest_ratio_of(n_rows, n_nonzero) == expected
    z2 = np.where(np.arange(n_rows) < n_nonzero, 0.5, 0.0)
    assert largest_ratio(z2) == expected


def test_a_ratio_counts_in_full_up_to_the_cap_and_as_its_logarithm_beyond():
    found = capped(np.array([0.0, 3.0, 10.0, 10 * np.e]), 10.0)
    np.testing.assert_allclose(found, [0, 3, 10, 20])


@pytest.mark.parametrize("n_rows", [3, 50, 52])
def test_every_fold_gets_its_share_of_the_large_rows(n_rows):
    rng = np.random.default_rng(0)
    size = rng.permutation(n_rows).astype(float)
    fold = make_folds(size, 5, rng, None)[np.argsort(size)]
    for start in range(0, n_rows, 5):
        dealt = fold[start : start + 5]
        assert np.unique(dealt).size == dealt.size
        assert set(dealt) <= set(range(5))


def test_groups_go_whole_to_the_emptiest_fold_the_large_ones_first():
    groups = np.repeat(list("abcdef"), [2, 7, 3, 4, 1, 3])
    shuffled = np.random.default_rng(1).permutation(groups)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        fold = make_folds(np.zeros(20), 3, rng, shuffled)
        of = {label: set(fold[shuffled == label]) for label in "abcdef"}
        assert all(len(folds) == 1 for folds in of.values())
        # 7 alone; 4 and one of 3; the other 3 and 2; 1 with the 5
        assert np.bincount(fold).tolist() == [7, 7, 6]
        assert (of["b"], of["d"]) == ({0}, {1})


def test_the_canonical_order_is_by_error_and_then_by_the_columns_in_turn():
    error = np.array([-2.0, 1, 2, 2, -1])
    first, second = np.array([1.0, 5, 1, 0, 4]), np.array([3.0, 0, 2, 9, 0])
    found = canonical_order((first, second), error)
    assert found.tolist() == [4, 1, 3, 2, 0]


def test_one_enormous_error_does_not_make_itself_count():
    z2 = np.random.default_rng(0).gamma(0.5, 2, 1000)
    ordinary = largest_counted(z2)
    assert ordinary == largest_ratio(z2) * z2.mean()  # none is enormous
    z2[7] = 1e9
    assert largest_counted(z2) == pytest.approx(ordinary, rel=0.1)
