import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigmascale._support.labels import Categories
from sigmascale.exceptions import InfiniteIntervalWarning, InvalidInputError
from sigmascale.maps.conformal import (
    ConformalScores,
    asymmetric_ranks,
    rows_needed,
    symmetric_rank,
)
from sigmascale.maps.distributions import check_coverage

PERCENTS = range(50, 100)


def learn(z, labels=None):
    """Scores of rows whose uncertainties are 1."""
    z = np.asarray(z, dtype=float)
    labels = None if labels is None else Categories.of(labels)
    return ConformalScores.learn(z, np.ones(z.size), labels)


def interval(scores, coverage=0.9, *, asymmetric=False, labels=None, u=(1.0,)):
    labels = None if labels is None else Categories.of(labels)
    return scores.interval(
        np.asarray(u, dtype=float), coverage, asymmetric=asymmetric, labels=labels
    )


# --- ranks --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "as_float",
    [
        lambda percent: percent / 100,
        lambda percent: 1 - (100 - percent) / 100,
        lambda percent: percent * 0.01,
        lambda percent: np.linspace(0.5, 0.99, 50)[percent - 50],
        lambda percent: np.arange(0.5, 0.999, 0.01)[percent - 50],
        lambda percent: np.float32(percent / 100),
    ],
    ids=["k/100", "1 - alpha", "k * 0.01", "linspace", "arange", "single precision"],
)
def test_ranks_are_those_of_exact_arithmetic_for_every_n_and_coverage(as_float):
    for percent in PERCENTS:
        level = check_coverage(as_float(percent))
        for n in range(1, 501):
            # integers only: ceil(a / b) is -(-a // b)
            assert symmetric_rank(n, level) == -(-(n + 1) * percent // 100)
            low, high = asymmetric_ranks(n, level)
            assert low == (n + 1) * (100 - percent) // 200
            assert high == -(-(n + 1) * (100 + percent) // 200)


def test_plain_floating_point_would_get_some_ranks_wrong():
    wrong = [
        (n, percent)
        for percent in PERCENTS
        for n in range(1, 501)
        if math.ceil((n + 1) * (1 - (100 - percent) / 100))
        != -(-(n + 1) * percent // 100)
    ]
    assert len(wrong) > 10


@pytest.mark.parametrize("asymmetric", [False, True])
def test_the_rows_needed_are_the_fewest_with_finite_limits(asymmetric):
    for percent in PERCENTS:
        level = percent / 100
        needed = rows_needed(level, asymmetric=asymmetric)

        def finite(n, level=level):
            if asymmetric:
                low, high = asymmetric_ranks(n, level)
                return low >= 1 and high <= n
            return symmetric_rank(n, level) <= n

        assert finite(needed)
        assert not finite(needed - 1)


@pytest.mark.parametrize("coverage", [0, 1, 0.0, 1.0, -0.1, 1.5, "0.9", None, np.nan])
def test_coverage_outside_0_and_1_is_refused(coverage):
    with pytest.raises(InvalidInputError, match="`coverage` must lie"):
        check_coverage(coverage)


@pytest.mark.parametrize("coverage", [1e-9, 1 - 1e-9])
def test_coverage_that_no_number_of_rows_can_tell_from_0_or_1_is_refused(coverage):
    with pytest.raises(InvalidInputError, match="`coverage` must lie between 0"):
        check_coverage(coverage)


# --- limits -------------------------------------------------------------------------


def test_symmetric_limits_are_an_order_statistic_of_the_sizes():
    z = [-9.0, 1.0, -2.0, 3.0, -4.0, 5.0, 6.0, -7.0, 8.0]  # sizes 1 to 9
    for coverage, expected in ((0.9, 9), (0.8, 8), (0.5, 5), (0.75, 8), (0.1, 1)):
        np.testing.assert_array_equal(
            interval(learn(z), coverage), [[-expected, expected]]
        )


def test_asymmetric_limits_are_two_order_statistics():
    z = np.random.default_rng(0).permutation(np.arange(1.0, 20.0))  # 1 to 19
    for coverage, low, high in (
        (0.9, 1, 19),
        (0.8, 2, 18),
        (0.5, 5, 15),
        (0.85, 1, 19),
    ):
        limits = interval(learn(z), coverage, asymmetric=True)
        np.testing.assert_array_equal(limits, [[low, high]])


def test_limits_are_multiples_of_the_uncertainty():
    limits = interval(learn(np.arange(19) - 4.0), 0.8, asymmetric=True, u=[1, 2, 0.5])
    np.testing.assert_array_equal(limits, [[-3, 13], [-6, 26], [-1.5, 6.5]])


def test_ties_and_zero_errors_are_scores_like_others():
    np.testing.assert_array_equal(interval(learn(np.zeros(20))), [[0, 0]])
    np.testing.assert_array_equal(interval(learn(np.ones(20))), [[-1, 1]])
    mostly_zero = learn(np.append(np.zeros(18), [5.0, -7.0]))
    np.testing.assert_array_equal(interval(mostly_zero, 0.9), [[-5, 5]])
    np.testing.assert_array_equal(interval(mostly_zero, 0.8), [[0, 0]])


def test_one_row_carries_half_and_no_more():
    np.testing.assert_array_equal(interval(learn([-3.0]), 0.5), [[-3, 3]])
    with pytest.warns(InfiniteIntervalWarning, match="needs at least 2 held-out rows"):
        limits = interval(learn([-3.0]), 0.51)
    np.testing.assert_array_equal(limits, [[-np.inf, np.inf]])


@pytest.mark.parametrize(
    ("coverage", "asymmetric", "needed"),
    [(0.9, False, 9), (0.9, True, 19), (0.95, False, 19), (0.99, True, 199)],
)
def test_too_few_rows_give_infinite_limits_and_a_warning_that_counts(
    coverage, asymmetric, needed
):
    z = np.random.default_rng(1).normal(size=needed)
    assert np.isfinite(interval(learn(z), coverage, asymmetric=asymmetric)).all()
    message = f"needs at least {needed} held-out rows; conformalize was given"
    with pytest.warns(InfiniteIntervalWarning, match=message) as caught:
        limits = interval(learn(z[1:]), coverage, asymmetric=asymmetric, u=[1, 2])
    np.testing.assert_array_equal(limits, [[-np.inf, np.inf]] * 2)
    assert f"given {needed - 1}. The limits of 2 of 2 rows" in str(caught[0].message)


def test_scores_and_limits_beyond_the_range_of_numbers_are_infinite_not_nan():
    scores = ConformalScores.learn(np.full(20, 1e300), np.full(20, 1e-300), None)
    np.testing.assert_array_equal(interval(scores), [[-np.inf, np.inf]])
    large = interval(learn(np.full(20, 1e200)), u=[1e200])
    np.testing.assert_array_equal(large, [[-np.inf, np.inf]])


# --- groups -------------------------------------------------------------------------


LABELS = np.array(["b", "a"])[np.arange(40) % 2]


def test_each_group_has_the_limits_of_its_own_rows():
    z = np.random.default_rng(2).normal(size=40) * np.where(LABELS == "a", 1, 10)
    for asymmetric in (False, True):
        limits = interval(
            learn(z, LABELS), 0.8, asymmetric=asymmetric, labels=LABELS, u=np.ones(40)
        )
        for name in ("a", "b"):
            own = interval(learn(z[name == LABELS]), 0.8, asymmetric=asymmetric)
            np.testing.assert_array_equal(limits[name == LABELS], np.tile(own, (20, 1)))


def test_a_group_too_small_or_never_seen_is_infinite_and_named_with_its_rows():
    z, labels = np.arange(15.0), np.array(["a"] * 12 + ["b"] * 3)
    asked = np.array(["a", "b", "c", "b"])
    with pytest.warns(InfiniteIntervalWarning) as caught:
        limits = interval(learn(z, labels), 0.9, labels=asked, u=np.ones(4))
    np.testing.assert_array_equal(np.isfinite(limits[:, 1]), asked == "a")
    assert "at least 9 held-out rows of a category; b has 3, c has 0." in str(
        caught[0].message
    )
    assert "The limits of 3 of 4 rows are infinite" in str(caught[0].message)


def test_a_small_group_that_is_not_asked_for_brings_no_warning():
    z, labels = np.arange(15.0), np.array(["a"] * 12 + ["b"] * 3)
    assert interval(learn(z, labels), 0.9, labels=labels[:1])[0, 1] == 11.0


def test_a_warning_names_a_few_groups_and_counts_the_others():
    labels = np.array([f"g{i}" for i in range(9)])
    with pytest.warns(InfiniteIntervalWarning, match="g4 has 1, and 4 more"):
        interval(learn(np.ones(9), labels), labels=labels, u=np.ones(9))


def test_numbers_and_missing_values_are_labels():
    labels = np.repeat([1.0, np.nan], 10)
    z = np.repeat([2.0, 3.0], 10)
    limits = interval(learn(z, labels), labels=np.array([np.nan, 1.0]), u=[1, 1])
    np.testing.assert_array_equal(limits, [[-3, 3], [-2, 2]])


def test_groups_are_for_both_calls_or_for_neither():
    with pytest.raises(
        InvalidInputError, match="`by_category` must be given, one label"
    ):
        interval(learn(np.ones(40), LABELS))
    with pytest.raises(InvalidInputError, match="`by_category` must not be given"):
        interval(learn(np.ones(40)), labels=LABELS[:1])


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60),
    st.integers(1, 99),
    st.booleans(),
)
@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.InfiniteIntervalWarning")
def test_limits_hold_their_share_of_the_scores_whatever_the_ties(
    z, percent, asymmetric
):
    # of n scores and a new one beyond them all, at least (n + 1) coverage are inside
    low, high = interval(learn(z), percent / 100, asymmetric=asymmetric)[0]
    inside = np.count_nonzero((low <= np.array(z)) & (np.array(z) <= high))
    inside += not np.isfinite(high)
    assert 100 * inside >= percent * (len(z) + 1)


def test_what_does_not_fit_together_is_not_sound():
    z, labels = np.array([3.0, 1.0, 2.0]), np.array(["a", "a", "b"])
    good = learn(z, labels)
    assert good.is_sound
    assert learn(z).is_sound
    assert not ConformalScores(z, np.array([3])).is_sound  # not sorted
    assert not ConformalScores(np.sort(z), np.array([2])).is_sound
    assert not ConformalScores(np.sort(z), np.array([2, 1])).is_sound  # no labels
    assert not ConformalScores(good.z, np.array([3, 0]), good.categories).is_sound
