from dataclasses import FrozenInstanceError, fields
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigmascale import ence, local_calibration_error, nll, uce
from sigmascale.bins.partitions import BinnedRows
from sigmascale.bins.sums import BinSums
from sigmascale.exceptions import InvalidInputError, ZeroErrorBinWarning

N_BINS = 4
NAMES = [field.name for field in fields(BinSums)]

# error, uncertainty, binning variable, bin
rows_of_numbers = st.lists(
    st.tuples(
        st.floats(-100, 100),
        st.floats(0.01, 100),
        st.floats(-1e6, 1e6),
        st.integers(0, N_BINS - 1),
    ),
    max_size=30,
)


def summarise(rows):
    error, u, x, codes = np.array(rows, dtype=float).reshape(-1, 4).T
    binned = BinnedRows.from_codes(codes.astype(int), N_BINS)
    return BinSums.from_rows(binned, error, u, x)


def assert_same(found, expected):
    for name in NAMES:
        np.testing.assert_allclose(
            getattr(found, name),
            getattr(expected, name),
            rtol=1e-9,
            err_msg=name,
            atol=1e-9 if name == "log_u2" else 0,
        )


@given(rows_of_numbers)
def test_sums_are_those_of_a_loop_over_rows(rows):
    found = summarise(rows)
    for k in range(N_BINS):
        own = [row[:3] for row in rows if row[3] == k]
        z = [e / u for e, u, _ in own]
        expected = {
            "n": len(own),
            "z2": sum(v**2 for v in z),
            "z4": sum(v**4 for v in z),
            "z6": sum(v**6 for v in z),
            "e2": sum(e**2 for e, _, _ in own),
            "u2": sum(u**2 for _, u, _ in own),
            "log_u2": sum(np.log(u**2) for _, u, _ in own),
            "x_min": min((x for _, _, x in own), default=np.inf),
            "x_max": max((x for _, _, x in own), default=-np.inf),
        }
        for name in NAMES:
            value = getattr(found, name)[k]
            assert value == pytest.approx(expected[name], rel=1e-9, abs=1e-9), name


@given(st.lists(rows_of_numbers, min_size=1, max_size=5))
def test_summaries_of_any_split_add_up_to_the_summary_of_the_whole(parts):
    whole = summarise([row for part in parts for row in part])
    assert_same(reduce(add, (summarise(part) for part in parts)), whole)


@given(rows_of_numbers, rows_of_numbers, rows_of_numbers)
def test_adding_is_commutative_and_associative(one, two, three):
    a, b, c = (summarise(rows) for rows in (one, two, three))
    assert_same(a + b, b + a)
    assert_same((a + b) + c, a + (b + c))


@given(rows_of_numbers)
def test_the_total_is_the_summary_in_one_bin(rows):
    total = summarise(rows).total
    assert all(getattr(total, name).shape == (1,) for name in NAMES)
    in_one = summarise([(*row[:3], 0) for row in rows])
    for name in NAMES:
        assert getattr(total, name)[0] == pytest.approx(
            getattr(in_one, name)[0], rel=1e-9, abs=1e-9
        )


def test_statistics_of_sums_are_those_of_the_rows():
    rng = np.random.default_rng(0)
    error, u, codes = rng.normal(size=300), rng.uniform(0.5, 2, 300), np.arange(300) % 3
    sums = BinSums.from_rows(BinnedRows.from_codes(codes, 3), error, u)
    labels = np.array(["a", "b", "c"])[codes]
    assert sums.local_calibration_error() == pytest.approx(
        np.mean([abs(np.log(np.mean((error / u)[codes == k] ** 2))) for k in range(3)])
    )
    assert sums.nll() == pytest.approx(
        np.mean(0.5 * (error / u) ** 2 + np.log(u) + 0.5 * np.log(2 * np.pi))
    )
    rmse, rmv = (
        np.array([np.sqrt(np.mean(v[codes == k] ** 2)) for k in range(3)])
        for v in (error, u)
    )
    assert sums.ence() == pytest.approx(np.mean(np.abs(rmv - rmse) / rmv))
    assert sums.uce() == pytest.approx(np.mean(np.abs(rmv**2 - rmse**2)))
    np.testing.assert_allclose(sums.scaling_factors() ** 2, sums.zms)
    # and the public functions say the same
    assert nll(error, u) == pytest.approx(sums.nll())
    for function, method in (
        (local_calibration_error, sums.local_calibration_error),
        (ence, sums.ence),
        (uce, sums.uce),
    ):
        assert function(error, u, by=labels) == pytest.approx(method())


def test_the_binning_variable_is_the_uncertainty_unless_another_is_given():
    error, u = np.ones(4), np.array([1.0, 2.0, 3.0, 4.0])
    binned = BinnedRows.from_codes(np.array([1, 0, 0, 1]), 2)
    sums = BinSums.from_rows(binned, error, u)
    assert sums.x_min.tolist() == [2, 1]
    assert sums.x_max.tolist() == [3, 4]


def test_bins_without_rows_change_no_score():
    error, u = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.5, 2.0])
    full = BinSums.from_rows(BinnedRows.from_codes(np.array([0, 0, 1]), 2), error, u)
    gaps = BinSums.from_rows(BinnedRows.from_codes(np.array([1, 1, 3]), 5), error, u)
    for score in ("local_calibration_error", "ence", "uce", "nll"):
        assert getattr(gaps, score)() == getattr(full, score)()
    assert gaps.zms[[0, 2, 4]].tolist() == [1, 1, 1]


def test_bins_that_say_nothing_take_the_average_factor():
    error = np.array([2.0, -2.0, 0.0, 0.0])
    binned = BinnedRows.from_codes(np.array([0, 0, 1, 1]), 3)
    factors = BinSums.from_rows(binned, error, np.ones(4)).scaling_factors()
    # all errors of the second bin are 0; the third is empty
    np.testing.assert_allclose(factors, [2, np.sqrt(2), np.sqrt(2)])


def test_errors_that_are_all_0_leave_uncertainties_alone():
    binned = BinnedRows.from_codes(np.array([0, 1]), 2)
    sums = BinSums.from_rows(binned, np.zeros(2), np.ones(2))
    assert sums.scaling_factors().tolist() == [1, 1]


def test_a_bin_of_zero_errors_makes_the_log_score_infinite_with_a_warning():
    error, u = np.array([0.0, 0.0, 1.0]), np.ones(3)
    sums = BinSums.from_rows(BinnedRows.from_codes(np.array([0, 0, 1]), 3), error, u)
    with pytest.warns(ZeroErrorBinWarning, match="exactly 0 in 1 of 2 bins"):
        assert sums.local_calibration_error() == np.inf
    assert sums.ence() == 0.5
    assert sums.uce() == 0.5


def test_only_summaries_over_the_same_bins_add_up():
    two = BinSums.from_rows(
        BinnedRows.from_codes(np.array([1]), 2), np.ones(1), np.ones(1)
    )
    with pytest.raises(InvalidInputError, match="same bins add up; found 2 and 1 bins"):
        two + two.total
    with pytest.raises(TypeError, match="unsupported operand"):
        two + 1


def test_a_summary_cannot_be_changed():
    codes = np.array([0, 1])
    binned = BinnedRows.from_codes(codes, 2)
    sums = BinSums.from_rows(binned, np.ones(2), np.ones(2))
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'n'"):
        sums.n = np.zeros(2)


def test_a_bin_of_one_row_counts_as_much_as_any_other():
    error, u = np.array([0.5, 1.0, 3.0, 3.0]), np.ones(4)
    binned = BinnedRows.from_codes(np.array([0, 1, 2, 2]), 3)
    sums = BinSums.from_rows(binned, error, u)
    assert sums.zms.tolist() == [0.25, 1, 9]
    assert sums.scaling_factors().tolist() == [0.5, 1, 3]
    expected = (np.log(4) + np.log(9)) / 3
    assert sums.local_calibration_error() == pytest.approx(expected)
    assert sums.ence() == pytest.approx((0.5 + 0 + 2) / 3)
    assert sums.uce() == pytest.approx((0.75 + 0 + 8) / 3)
