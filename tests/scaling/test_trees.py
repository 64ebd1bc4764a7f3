import numpy as np
import pytest

from sigmascale._support.labels import Categories
from sigmascale.bins.partitions import EqualSizeBins, LabelBins
from sigmascale.scaling.trees import (
    CHUNK,
    GammaLeaves,
    Grower,
    SquaredLeaves,
    TreeOptions,
)

# --- growing -------------------------------------------------------------------------


def walk(trees, codes, booster=0):
    """Return the value of each row, sent down the tree of a booster node by node."""
    found = []
    for row in codes:
        node = 0
        while node < trees.feature.shape[1]:
            goes_left = trees.left[booster, node, row[trees.feature[booster, node]]]
            node = 2 * node + 2 - goes_left
        found.append(trees.value[booster, node - trees.feature.shape[1]])
    return np.array(found)


def gamma(k):
    """Return leaves of ratios that all count in full."""
    return GammaLeaves(k, np.inf)


def grow(codes, ratio, columns, options, leaves):
    """Return the tree of one booster that has seen all rows, and its prediction."""
    seen = np.ones((1, ratio.size), dtype=bool)
    trees = Grower(codes, columns, seen, options, leaves).grow(ratio[None])
    return trees, trees.value[0][trees.leaf[0]]


def with_mean_1(ratio):
    return ratio / ratio.mean()


def leaf(ratio, leaves):
    """Return the value of a leaf, and by how much it reduces the loss."""
    k = leaves.pseudo_rows
    if isinstance(leaves, SquaredLeaves):
        value = ratio.sum() / (ratio.size + k)
        return value, np.sum(ratio**2 - (ratio - value) ** 2) - k * value**2
    value = np.log((ratio.sum() + k) / (ratio.size + k))
    return value, np.sum(ratio - (ratio * np.exp(-value) + value))


def splits(column, codes):
    """Yield every way to send the rows of a node left or right."""
    sent = codes[:, None] == np.arange(column.n_codes)
    if isinstance(column, LabelBins):  # any subset of the labels, the first among them
        for subset in range(1, 2**column.n_codes, 2):
            chosen = [i for i in range(column.n_codes) if subset >> i & 1]
            yield sent[:, chosen].any(axis=1)
        return
    for cut in range(1, column.n_codes):
        yield sent[:, 1 : cut + 1].any(axis=1)
        yield sent[:, : cut + 1].any(axis=1)


def grown_by_force(codes, ratio, columns, options, leaves, depth):
    """Return the values of the rows, from the best of all splits at every node."""
    value, unsplit = leaf(ratio, leaves)
    best, best_gain = None, 0.0
    for column, code in zip(columns, codes.T, strict=True) if depth else ():
        for left in splits(column, code):
            if min(left.sum(), (~left).sum()) >= options.min_rows:
                both = leaf(ratio[left], leaves)[1] + leaf(ratio[~left], leaves)[1]
                gain = both - unsplit
                if gain > best_gain + 1e-9:
                    best, best_gain = left, gain
    if best is None:
        return np.full(ratio.size, options.rate * value)
    values = np.empty(ratio.size)
    for side in (best, ~best):
        values[side] = grown_by_force(
            codes[side], ratio[side], columns, options, leaves, depth - 1
        )
    return values


def code_columns(*values):
    columns = [
        EqualSizeBins.quantiles(x, 5)
        if x.dtype.kind == "f"
        else LabelBins.learn(Categories.of(x))
        for x in values
    ]
    values = [x if x.dtype.kind == "f" else Categories.of(x) for x in values]
    codes = [column.coded(x) for column, x in zip(columns, values, strict=True)]
    return columns, np.column_stack(codes)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("k", [0.5, 4.0])
def test_every_split_is_the_best_of_all(depth, k, seed):
    rng = np.random.default_rng([depth, seed])
    first, second = rng.normal(size=(2, 60))
    second[rng.random(60) < 0.2] = np.nan
    columns, codes = code_columns(np.ones(60), first, second)
    ratio = with_mean_1(np.exp(first + np.isnan(second)) * rng.gamma(1, size=60))
    options = TreeOptions(depth=depth, min_rows=6, rate=0.3)
    tree, predicted = grow(codes, ratio, columns, options, gamma(k))
    expected = grown_by_force(codes, ratio, columns, options, gamma(k), depth)
    np.testing.assert_allclose(predicted, expected, rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(walk(tree, codes), predicted)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("cap", [30.0, 1.5])
def test_splits_of_numbers_of_either_sign_are_the_best_of_all(cap, seed):
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(2, 60))
    second[rng.random(60) < 0.2] = np.nan
    label = rng.choice(list("abc"), 60)
    columns, codes = code_columns(first, second, label)
    z = first - np.isnan(second) + (label == "b") + rng.standard_t(3, 60)
    options, leaves = (
        TreeOptions(depth=2, min_rows=6, rate=0.3),
        SquaredLeaves(4.0, cap),
    )
    tree, predicted = grow(codes, z, columns, options, leaves)
    counted = np.clip(z, -cap, cap)
    expected = grown_by_force(codes, counted, columns, options, leaves, 2)
    np.testing.assert_allclose(predicted, expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(walk(tree, codes), predicted)


@pytest.mark.parametrize("seed", range(8))
def test_labels_are_split_as_the_best_of_all_their_subsets(seed):
    rng = np.random.default_rng(seed)
    label = rng.permutation(np.repeat(list("abcde"), 12))
    size = dict(zip("abcde", rng.permutation([1, 2, 3, 5, 8]), strict=True))
    columns, codes = code_columns(label)
    ratio = np.array([size[each] for each in label]) * rng.gamma(2, size=60)
    ratio = with_mean_1(ratio)
    # with hardly any shrinkage, no other order of labels can be better
    options = TreeOptions(depth=2, min_rows=10, rate=1.0)
    tree, predicted = grow(codes, ratio, columns, options, gamma(1e-9))
    expected = grown_by_force(codes, ratio, columns, options, gamma(1e-9), 2)
    np.testing.assert_allclose(predicted, expected, rtol=1e-6)
    np.testing.assert_array_equal(walk(tree, codes), predicted)


def test_labels_with_few_rows_are_ordered_by_their_shrunken_means():
    label = np.repeat(list("abc"), [40, 5, 40])
    columns, codes = code_columns(label)
    ratio = with_mean_1(np.repeat([0.8, 3.0, 1.5], [40, 5, 40]))
    options = TreeOptions(depth=1, min_rows=1, rate=1.0)
    _, predicted = grow(codes, ratio, columns, options, gamma(20.0))
    expected = grown_by_force(codes, ratio, columns, options, gamma(20.0), 1)
    np.testing.assert_allclose(predicted, expected, rtol=1e-9)
    assert predicted[0] != predicted[40] == predicted[45]


@pytest.mark.parametrize("min_rows", [1, 20, 21])
def test_a_leaf_has_no_fewer_rows_than_asked_for(min_rows):
    x = np.repeat([1.0, 2.0], [20, 80])
    columns, codes = code_columns(x)
    options = TreeOptions(depth=1, min_rows=min_rows, rate=1.0)
    tree, predicted = grow(
        codes, np.where(x == 1, 4.0, 0.25), columns, options, gamma(5.0)
    )
    if min_rows > 20:
        assert not predicted.any()
        assert not tree.value.any()
    else:
        assert tree.value[0] == pytest.approx([np.log(85 / 25), np.log(25 / 85)])


@pytest.mark.parametrize("larger", [1.0, 2.0])
def test_values_missing_only_later_follow_the_larger_side(larger):
    x = np.where(np.arange(60) < 20, 3 - larger, larger)
    columns, codes = code_columns(x)
    options = TreeOptions(depth=1, min_rows=5, rate=0.1)
    tree, _ = grow(codes, x**4, columns, options, gamma(1.0))
    missing = walk(tree, columns[0].coded(np.array([np.nan]))[:, None])
    assert missing == walk(tree, columns[0].coded(np.array([larger]))[:, None])
    assert np.unique(tree.value).size == 2


def test_columns_without_a_difference_grow_nothing():
    columns, codes = code_columns(np.ones(50), np.full(50, np.nan))
    options = TreeOptions(depth=2, min_rows=1, rate=0.5)
    tree, predicted = grow(codes, np.linspace(1, 9, 50), columns, options, gamma(1.0))
    assert tree.value.tolist() == [[0] * 4]
    assert predicted.tolist() == [0] * 50
    assert walk(tree, codes).tolist() == [0] * 50


def test_of_columns_that_split_alike_the_first_is_used():
    x = np.repeat([1.0, 2.0], 20)
    columns, codes = code_columns(np.ones(40), x, x)
    options = TreeOptions(depth=1, min_rows=1, rate=0.5)
    assert grow(codes, x, columns, options, gamma(1.0))[0].feature.tolist() == [[1]]


# --- several boosters in step --------------------------------------------------------


@pytest.fixture
def table():
    """Return codes of more rows than are summed at a time, with labels and gaps."""
    rng = np.random.default_rng(0)
    n = CHUNK + 500
    x, gappy = rng.normal(size=(2, n))
    gappy[rng.random(n) < 0.1] = np.nan
    label = rng.choice(list("abcd"), n)
    columns, codes = code_columns(x, gappy, label)
    ratio = np.exp(x + (label == "b")) * rng.gamma(0.5, size=n)
    return columns, codes, ratio, rng


OPTIONS = TreeOptions(depth=3, min_rows=50, rate=0.1)
LEAVES = gamma(20.0)


def test_a_booster_grows_as_if_it_had_its_rows_to_itself(table):
    columns, codes, ratio, rng = table
    fold = rng.integers(0, 3, ratio.size)
    seen = np.array([fold != k for k in range(3)])
    together = Grower(codes, columns, seen, OPTIONS, LEAVES).grow(
        np.tile(ratio, (3, 1))
    )
    for k, rows in enumerate(seen):
        alone, predicted = grow(codes[rows], ratio[rows], columns, OPTIONS, LEAVES)
        np.testing.assert_array_equal(together.feature[k], alone.feature[0])
        np.testing.assert_array_equal(together.left[k], alone.left[0])
        np.testing.assert_allclose(together.value[k], alone.value[0], atol=1e-6)
        own = together.value[k][together.leaf[k]]
        np.testing.assert_allclose(own[rows], predicted, atol=1e-6)
        # rows that it has not learned from are sent down as well
        np.testing.assert_array_equal(own, walk(together, codes, k))


def test_ratios_count_up_to_the_cap(table):
    columns, codes, ratio, _ = table
    seen = np.ones((1, ratio.size), dtype=bool)
    capped, whole = (
        Grower(codes, columns, seen, OPTIONS, GammaLeaves(20.0, cap))
        for cap in (2.0, np.inf)
    )
    found = capped.grow(ratio[None]).value
    expected = whole.grow(np.minimum(ratio, 2.0)[None]).value
    np.testing.assert_array_equal(found, expected)
    assert not np.array_equal(found, whole.grow(ratio[None]).value)


def test_a_unit_of_the_ratios_changes_nothing(table):
    columns, codes, ratio, _ = table
    expected, _ = grow(codes, ratio, columns, OPTIONS, LEAVES)
    found, _ = grow(codes, 1024 * ratio, columns, OPTIONS, LEAVES)
    np.testing.assert_array_equal(found.value, expected.value)
