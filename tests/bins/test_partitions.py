import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigmascale._support.bits import hashed
from sigmascale._support.labels import Categories
from sigmascale.bins.partitions import (
    BinnedRows,
    Cells,
    EqualSizeBins,
    LabelBins,
    cut_positions,
    feasible_bins,
    rank_bins,
    rank_codes,
)
from sigmascale.exceptions import FewerBinsWarning

# few distinct values, so that ties are everywhere
tied_values = st.integers(-3, 3).map(float)
pairs = st.tuples(tied_values, tied_values)
ignore_fewer_bins = pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.FewerBinsWarning"
)


def columns(rows):
    return np.array(rows, dtype=float).reshape(-1, 2).T


# --- cuts ----------------------------------------------------------------------------


@given(st.integers(1, 10**9), st.integers(1, 200))
def test_cuts_are_those_of_the_formula_in_exact_arithmetic(n_rows, n_bins):
    expected = [(2 * k * n_rows + n_bins) // (2 * n_bins) for k in range(n_bins)]
    assert cut_positions(n_rows, n_bins).tolist() == expected


@given(st.integers(1, 5000), st.data())
def test_bins_share_rows_equally_up_to_one_and_lose_none(n_rows, data):
    n_bins = data.draw(st.integers(1, n_rows))
    cuts = cut_positions(n_rows, n_bins)
    sizes = np.diff(cuts, append=n_rows)
    assert cuts[0] == 0
    assert sizes.sum() == n_rows
    assert sizes.max() - sizes.min() <= 1
    assert sizes.min() >= 1


def test_fewer_bins_than_asked_for_are_announced():
    with pytest.warns(
        FewerBinsWarning,
        match="100 bins were asked for, but 42 rows give at most 8 of 5 or more rows",
    ):
        assert feasible_bins(42, 100, 5) == 8
    with pytest.warns(FewerBinsWarning, match="10 bins .* but 3 rows give at most 1"):
        assert feasible_bins(3, 10, 5) == 1
    assert feasible_bins(42, 8, 5) == 8
    assert feasible_bins(3, 3) == 3


# --- bins of ranks, for scores -------------------------------------------------------


def test_rank_bins_hold_consecutive_values():
    x = np.array([5.0, 1, 4, 2, 3, 0, 6])
    binned = rank_bins(x, 3)
    assert x[binned.order].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert binned.sizes.tolist() == [2, 3, 2]
    assert binned.codes.tolist() == [2, 0, 1, 1, 1, 0, 2]


def test_one_bin_holds_all_rows():
    binned = rank_bins(np.array([3.0, 1.0, 2.0]), 1)
    assert binned.sizes.tolist() == [3]
    assert binned.order.tolist() == [1, 2, 0]


def test_a_single_row_makes_a_single_bin():
    binned = rank_bins(np.array([3.0]), 1, error=np.array([1.0]))
    assert binned.order.tolist() == [0]
    assert binned.sizes.tolist() == [1]


def test_rank_bins_are_fewer_when_there_are_fewer_rows():
    with pytest.warns(FewerBinsWarning, match="3 rows give at most 3 of 1 or more"):
        assert rank_bins(np.arange(3.0), 10).sizes.tolist() == [1, 1, 1]
    with pytest.warns(FewerBinsWarning, match="11 rows give at most 2 of 5 or more"):
        assert rank_bins(np.arange(11.0), 10, min_size=5).sizes.tolist() == [6, 5]


def test_a_stratum_larger_than_a_bin_is_cut_by_the_ties_variable():
    x = np.repeat([1.0, 2.0], 6)
    ties = np.array([5.0, 0, 3, 1, 4, 2] * 2)
    binned = rank_bins(x, 4, ties=ties)
    assert binned.sizes.tolist() == [3, 3, 3, 3]
    assert [sorted(ties[binned.codes == k]) for k in range(4)] == [
        [0, 1, 2],
        [3, 4, 5],
    ] * 2
    assert x[binned.codes < 2].tolist() == [1.0] * 6


triples = st.tuples(tied_values, tied_values, tied_values)


@given(st.lists(triples, min_size=1), st.data())
@pytest.mark.parametrize("with_ties", [True, False])
def test_the_order_of_rows_does_not_change_the_bins(with_ties, rows, data):
    rows = np.array(rows)
    shuffled = rows[data.draw(st.permutations(range(len(rows))))]
    found = []
    for table in (rows, shuffled):
        x, ties, error = table.T
        order = rank_bins(x, 1, ties=ties if with_ties else None, error=error).order
        keys = table[order, : 1 + with_ties].tolist()
        assert keys == sorted(keys)
        found.append([*keys, *np.abs(error[order]).tolist()])
    assert found[0] == found[1]


def test_rows_that_nothing_tells_apart_are_not_sorted_by_their_errors():
    error = np.random.default_rng(0).permutation(1000.0 * np.arange(1, 1001))
    binned = rank_bins(np.ones(1000), 10, error=error)
    means = np.array([error[binned.codes == k].mean() for k in range(10)])
    # sorted by error, the means would run from 50e3 to 950e3
    standard_error = 1000 * np.sqrt(1000**2 / 12 / 100)
    assert np.all(np.abs(means - error.mean()) < 4 * standard_error)
    assert (
        binned.order.tolist()
        == rank_bins(np.ones(1000), 10, error=2 * error).order.tolist()
    )


def test_labels_make_one_bin_each_whatever_number_is_asked_for():
    x = np.array(["gas", "solid", "gas", "liquid"])
    binned = rank_bins(x, 100)
    assert binned.sizes.tolist() == [2, 1, 1]
    assert x[binned.order].tolist() == ["gas", "gas", "liquid", "solid"]


def test_the_order_of_rows_does_not_change_the_rows_of_a_label():
    rng = np.random.default_rng(0)
    x = rng.choice(["a", "b", "c"], 60)
    u, error = rng.integers(1, 4, 60).astype(float), rng.normal(size=60)
    place = rng.permutation(60)
    found = [
        np.column_stack([u[i], error[i]])[
            rank_bins(x[i], 5, ties=u[i], error=error[i]).order
        ]
        for i in (np.arange(60), place)
    ]
    np.testing.assert_array_equal(*found)


def test_binned_rows_reduce_with_a_value_for_empty_bins():
    binned = BinnedRows.from_codes(np.array([3, 0, 0, 3, 3, 2]), 5)
    values = np.array([1.0, 2, 3, 4, 5, 6])[binned.order]
    assert binned.sizes.tolist() == [2, 0, 1, 3, 0]
    assert binned.reduce(np.add, values).tolist() == [5, 0, 6, 10, 0]
    assert binned.reduce(np.minimum, values, 9.0).tolist() == [2, 9, 6, 1, 9]
    assert binned.codes.tolist() == [3, 0, 0, 3, 3, 2]


def test_rows_are_gathered_by_any_number_of_bins():
    codes = np.array([70_000, 65_536, 3, 65_535, 0, 4464])
    binned = BinnedRows.from_codes(codes, 70_001)
    assert codes[binned.order].tolist() == sorted(codes)
    assert binned.codes.tolist() == codes.tolist()


def test_equal_rows_of_unknown_error_keep_their_order():
    order = rank_bins(np.array([2.0] * 20 + [1.0] * 20), 1).order
    assert order.tolist() == [*range(20, 40), *range(20)]


def test_the_shuffle_is_that_of_splitmix64_today_and_ever_after():
    # the first outputs of the generator with seed 0, as published with it:
    # https://prng.di.unimi.it/splitmix64.c
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert hashed(np.array([1, 2, 3])).tolist() == expected


@given(
    st.lists(st.tuples(*4 * [tied_values]), min_size=1, max_size=60),
    st.booleans(),
    st.data(),
)
def test_codes_by_rank_are_those_of_sorted_rows(rows, with_ties, data):
    x, ties, error, u = np.array(rows).T
    ties = ties if with_ties else None
    n_bins = data.draw(st.integers(1, x.size))
    codes, n_codes = rank_codes(x, n_bins, ties=ties, error=error, uncertainty=u)
    # rows that the error does not tell apart are by u
    rank = np.argsort(np.lexsort((u, np.abs(error)))).astype(float)
    expected = rank_bins(x, n_bins, ties=ties, error=rank)
    assert codes.tolist() == expected.codes.tolist()
    assert n_codes == expected.sizes.size


@pytest.mark.parametrize("digits", [0, 1, 2, 3, 17])
@pytest.mark.parametrize("with_ties", [True, False])
def test_codes_by_rank_of_many_rows_are_those_of_sorted_rows(with_ties, digits):
    rng = np.random.default_rng(0)
    x, u, error = np.round(rng.gamma(3, size=(3, 30_000)), digits)
    ties = u if with_ties else None
    codes, _ = rank_codes(x, 100, ties=ties, error=error, uncertainty=u)
    rank = np.argsort(np.lexsort((u, error))).astype(float)
    expected = rank_bins(x, 100, ties=ties, error=rank).codes
    np.testing.assert_array_equal(codes, expected)


def test_labels_have_codes_in_their_order():
    label = np.array(["gas", "solid", "gas", "liquid"])
    codes, n_codes = rank_codes(
        label, 100, ties=None, error=np.ones(4), uncertainty=np.ones(4)
    )
    assert codes.tolist() == [0, 2, 0, 1]
    assert n_codes == 3


# --- bins with limits, for scaling ---------------------------------------------------


@ignore_fewer_bins
@given(st.lists(pairs, min_size=1, max_size=40), st.lists(pairs, min_size=1), st.data())
def test_pair_limits_are_compared_lexicographically(learned, new, data):
    n_bins = data.draw(st.integers(1, len(learned)))
    x, ties = columns(learned)
    bins = EqualSizeBins.learn(x, n_bins, ties=ties)
    # by brute force: the first pair of each bin but the first, in sorted order
    in_order = sorted(learned)
    cuts = [(2 * k * len(learned) + n_bins) // (2 * n_bins) for k in range(1, n_bins)]
    limits = sorted({in_order[cut] for cut in cuts} - {in_order[0]})
    assert list(zip(bins.limits, bins.tie_limits, strict=True)) == limits
    codes = bins.codes(*columns(new))
    assert codes.tolist() == [sum(limit <= pair for limit in limits) for pair in new]
    assert bins.n_bins == len(limits) + 1


@ignore_fewer_bins
@given(
    st.lists(tied_values, min_size=1, max_size=40),
    st.lists(tied_values, min_size=1),
    st.data(),
)
def test_limits_of_one_variable_are_the_smallest_values_of_the_bins(learned, new, data):
    n_bins = data.draw(st.integers(1, len(learned)))
    bins = EqualSizeBins.learn(np.array(learned), n_bins)
    codes = bins.codes(np.array(learned))
    assert sorted(set(codes.tolist())) == list(range(bins.n_bins))
    smallest = [
        min(v for v, c in zip(learned, codes, strict=True) if c == k)
        for k in range(1, bins.n_bins)
    ]
    assert bins.limits.tolist() == smallest
    assert bins.codes(np.array(new)).tolist() == [
        sum(limit <= v for limit in smallest) for v in new
    ]


@pytest.mark.parametrize("digits", [1, 3, 17])
def test_pair_limits_of_many_rows_are_those_of_a_sort(digits):
    x, ties = np.round(np.random.default_rng(0).gamma(3, size=(2, 30_000)), digits)
    bins = EqualSizeBins.learn(x, 40, ties=ties)
    pairs = x + 1j * ties
    limits = np.sort(pairs)[cut_positions(x.size, 40)[1:]]
    np.testing.assert_array_equal(bins.limits + 1j * bins.tie_limits, limits)
    np.testing.assert_array_equal(
        bins.codes(x, ties), np.searchsorted(limits, pairs, side="right")
    )


def test_distinct_values_fill_equal_bins_and_the_outer_ones_are_open():
    x = np.random.default_rng(0).permutation(1000.0 + np.arange(100))
    bins = EqualSizeBins.learn(x, 7)
    sizes = np.bincount(bins.codes(x))
    assert bins.tie_limits is None
    assert bins.n_bins == 7
    assert sizes.tolist() == np.diff(cut_positions(100, 7), append=100).tolist()
    assert bins.codes(np.array([-1e9, 1e9, bins.limits[0]])).tolist() == [0, 6, 1]


def test_a_stratum_is_split_between_bins_by_the_second_variable():
    x, ties = np.ones(6), np.array([3.0, 1, 2, 6, 5, 4])
    bins = EqualSizeBins.learn(x, 3, ties=ties)
    assert bins.limits.tolist() == [1, 1]
    assert bins.tie_limits.tolist() == [3, 5]
    assert bins.codes(x, ties).tolist() == [1, 0, 0, 2, 2, 1]
    assert bins.codes(np.array([0.9, 1.1]), np.array([99.0, 0.0])).tolist() == [0, 2]


def test_a_second_variable_counts_only_if_known_when_learning():
    x, ties = np.array([1.0, 1, 2, 2]), np.array([1.0, 2, 1, 2])
    alone = EqualSizeBins.learn(x, 2)
    assert alone.codes(x, ties).tolist() == [0, 0, 1, 1]
    both = EqualSizeBins.learn(x, 4, ties=ties)
    assert both.codes(x, ties).tolist() == [0, 1, 2, 3]


def test_bins_that_ties_make_equal_are_merged_and_announced():
    x = np.array([1.0] * 8 + [2.0] * 2)
    with pytest.warns(
        FewerBinsWarning, match="5 bins were asked for, but equal values .* leave 2"
    ):
        bins = EqualSizeBins.learn(x, 5)
    assert bins.limits.tolist() == [2.0]
    assert np.bincount(bins.codes(x)).tolist() == [8, 2]
    with pytest.warns(FewerBinsWarning, match="3 bins were asked for, .* leave 2"):
        assert EqualSizeBins.learn(x[-6:], 3).n_bins == 2


def test_a_constant_variable_makes_one_bin():
    with pytest.warns(FewerBinsWarning, match="leave 1 distinct"):
        bins = EqualSizeBins.learn(np.ones(10), 4)
    assert bins.n_bins == 1
    assert bins.codes(np.array([0.0, 1.0, 2.0])).tolist() == [0, 0, 0]


def test_one_bin_needs_no_limit_and_no_warning():
    bins = EqualSizeBins.learn(np.arange(5.0), 1, ties=np.arange(5.0))
    assert bins.n_bins == 1
    assert bins.codes(np.array([-9.0, 9.0]), np.zeros(2)).tolist() == [0, 0]


def test_bins_are_fewer_where_rows_do_not_suffice():
    with pytest.warns(FewerBinsWarning, match="20 bins .* 10 rows give at most 10"):
        assert EqualSizeBins.learn(np.arange(10.0), 20).n_bins == 10
    with pytest.warns(FewerBinsWarning, match="at most 3 of 3 or more rows"):
        assert EqualSizeBins.learn(np.arange(10.0), 20, min_size=3).n_bins == 3


# --- cells ---------------------------------------------------------------------------


@ignore_fewer_bins
@given(st.lists(pairs, min_size=4, max_size=40), st.lists(pairs, min_size=1))
def test_a_cell_is_the_pair_of_the_bins_of_its_variables(learned, new):
    cells = Cells.learn(*columns(learned), (3, 2))
    x, y = columns(new)
    first, second = np.divmod(cells.codes(x, y), cells.second.n_bins)
    assert first.tolist() == cells.first.codes(x).tolist()
    assert second.tolist() == cells.second.codes(y).tolist()
    assert cells.n_bins == cells.first.n_bins * cells.second.n_bins


def test_cells_without_rows_are_counted():
    x = np.arange(8.0)
    cells = Cells.learn(x, x, (2, 4))
    rows = BinnedRows.from_codes(cells.codes(x, x), cells.n_bins)
    assert rows.sizes.reshape(2, 4).tolist() == [[2, 2, 0, 0], [0, 0, 2, 2]]
    assert cells.codes(np.array([0.0]), np.array([9.0])).tolist() == [3]


# --- groups --------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from("abcd"), min_size=1),
    st.lists(st.sampled_from("abcdef"), min_size=1),
)
def test_groups_know_the_labels_they_learned_and_no_others(learned, new):
    groups = LabelBins.learn(Categories.of(np.array(learned)))
    known = sorted(set(learned))
    assert list(groups.labels) == known
    assert groups.n_bins == len(known) + 1
    expected = [known.index(v) if v in known else len(known) for v in new]
    assert groups.codes(Categories.of(np.array(new))).tolist() == expected


def test_labels_with_too_few_rows_share_the_code_of_unseen_ones():
    labels = Categories.of(np.array(["b", "a", "b", "c", "c"]))
    groups = LabelBins.learn(labels, min_size=2)
    assert groups.labels == ("b", "c")
    assert groups.codes(
        Categories.of(np.array(["a", "b", "c", "longer"]))
    ).tolist() == [2, 0, 1, 2]


def test_without_a_label_every_row_is_unseen():
    groups = LabelBins.learn(Categories.of(np.array(["a", "b"])), min_size=2)
    assert groups.n_bins == 1
    assert groups.codes(Categories.of(np.array(["a", "c"]))).tolist() == [0, 0]


def test_numbers_can_be_labels_and_a_missing_number_is_a_label_of_its_own():
    groups = LabelBins.learn(Categories.of(np.array([1.0, np.nan, 10.0, np.nan])))
    codes = groups.codes(Categories.of(np.array([np.nan, 10.0, 1.0, 2.0])))
    assert codes.tolist() == [2, 1, 0, 3]
    one = LabelBins.learn(Categories.of(np.array([1.0])))
    assert one.codes(Categories.of(np.array([np.nan]))).tolist() == [1]


def test_strings_never_match_numbers():
    numbers, strings = np.array([2.0, 10.0]), np.array(["2.0", "a"])
    numbers, strings = Categories.of(numbers), Categories.of(strings)
    assert LabelBins.learn(numbers).codes(strings).tolist() == [2, 2]
    assert LabelBins.learn(strings).codes(numbers).tolist() == [2, 2]


# --- codes from 1, and 0 for what is missing or unknown ------------------------------


def test_few_values_have_a_code_each_and_a_missing_one_has_0():
    x = np.array([30.0, 10, np.nan, 20, 10])
    column = EqualSizeBins.quantiles(x, 3)
    assert column.limits.tolist() == [20, 30]
    assert column.n_codes == 4
    assert column.coded(x).tolist() == [3, 1, 0, 2, 1]
    new = np.array([-99.0, 19.9, 20.1, 99])
    assert column.coded(new).tolist() == [1, 1, 2, 3]


def test_many_values_are_cut_at_their_quantiles():
    x = np.random.default_rng(0).permutation(np.append(np.arange(1.0, 101), np.nan))
    column = EqualSizeBins.quantiles(x, 4)
    assert column.limits.tolist() == [25, 50, 75]
    assert np.bincount(column.coded(x)).tolist() == [1, 24, 25, 25, 26]


def test_quantiles_that_fall_on_the_smallest_value_make_no_empty_bin():
    x = np.repeat([1.0, 2, 3, 4, 5], [60, 1, 1, 60, 1])
    column = EqualSizeBins.quantiles(x, 4)
    assert column.limits.tolist() == [3, 4]
    assert np.bincount(column.coded(x), minlength=4).tolist() == [0, 61, 1, 61]


def test_the_most_frequent_labels_are_learned_the_first_of_equals():
    labels = Categories.of(np.array(list("dbbbccaad")))
    column = LabelBins.most_frequent(labels.labels, np.bincount(labels.codes), 3)
    assert column.labels == ("a", "b", "c")
    assert column.n_codes == 4
    assert column.coded(Categories.of(np.array(list("abcdz")))).tolist() == [
        1,
        2,
        3,
        0,
        0,
    ]


def test_labels_too_rare_for_a_bin_are_known_all_the_same():
    bins = LabelBins.learn(Categories.of(np.array(list("aabbc"))), min_size=2)
    assert bins.labels == ("a", "b")
    assert bins.rare == ("c",)
    assert bins.count_unseen(Categories.of(np.array(list("acdd")))) == 2
    assert LabelBins(("a",)).count_unseen(Categories.of(np.array(["a", "b"]))) == 1
