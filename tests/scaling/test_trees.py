import numpy as np
import pytest

from sigmascale.bins.partitions import EqualSizeBins, LabelBins
from sigmascale.scaling.trees import Tree, TreeOptions, grow

# --- growing -------------------------------------------------------------------------


def leaf(ratio, k):
    """Return the value of a leaf, and by how much it reduces the gamma deviance."""
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


def grown_by_force(codes, ratio, columns, options, depth):
    """Return the values of the rows, from the best of all splits at every node."""
    k = options.pseudo_rows
    value, unsplit = leaf(ratio, k)
    best, best_gain = None, 0.0
    for column, code in zip(columns, codes.T, strict=True) if depth else ():
        for left in splits(column, code):
            if min(left.sum(), (~left).sum()) >= options.min_rows:
                gain = leaf(ratio[left], k)[1] + leaf(ratio[~left], k)[1] - unsplit
                if gain > best_gain + 1e-9:
                    best, best_gain = left, gain
    if best is None:
        return np.full(ratio.size, options.rate * value)
    values = np.empty(ratio.size)
    for side in (best, ~best):
        values[side] = grown_by_force(
            codes[side], ratio[side], columns, options, depth - 1
        )
    return values


def code_columns(*values):
    columns = [
        EqualSizeBins.quantiles(x, 5)
        if x.dtype.kind == "f"
        else LabelBins.most_frequent(*np.unique(x, return_counts=True), 5)
        for x in values
    ]
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
    ratio = np.exp(first + np.isnan(second)) * rng.gamma(1, size=60)
    options = TreeOptions(depth=depth, min_rows=6, pseudo_rows=k, rate=0.3)
    tree, predicted = grow(codes, ratio, columns, options)
    expected = grown_by_force(codes, ratio, columns, options, depth)
    np.testing.assert_allclose(predicted, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(tree.predict(codes), predicted)
    assert tree.depth == depth


@pytest.mark.parametrize("seed", range(8))
def test_labels_are_split_as_the_best_of_all_their_subsets(seed):
    rng = np.random.default_rng(seed)
    label = rng.permutation(np.repeat(list("abcde"), 12))
    size = dict(zip("abcde", rng.permutation([1, 2, 3, 5, 8]), strict=True))
    columns, codes = code_columns(label)
    ratio = np.array([size[each] for each in label]) * rng.gamma(2, size=60)
    # with hardly any shrinkage, no other order of labels can be better
    options = TreeOptions(depth=2, min_rows=10, pseudo_rows=1e-9, rate=1.0)
    tree, predicted = grow(codes, ratio, columns, options)
    expected = grown_by_force(codes, ratio, columns, options, 2)
    np.testing.assert_allclose(predicted, expected, rtol=1e-6)
    np.testing.assert_array_equal(tree.predict(codes), predicted)


def test_labels_with_few_rows_are_ordered_by_their_shrunken_means():
    label = np.repeat(list("abc"), [40, 5, 40])
    columns, codes = code_columns(label)
    ratio = np.repeat([0.8, 3.0, 1.5], [40, 5, 40])
    options = TreeOptions(depth=1, min_rows=1, pseudo_rows=20.0, rate=1.0)
    _, predicted = grow(codes, ratio, columns, options)
    expected = grown_by_force(codes, ratio, columns, options, 1)
    np.testing.assert_allclose(predicted, expected, rtol=1e-9)
    assert predicted[0] != predicted[40] == predicted[45]


@pytest.mark.parametrize("min_rows", [1, 20, 21])
def test_a_leaf_has_no_fewer_rows_than_asked_for(min_rows):
    x = np.repeat([1.0, 2.0], [20, 40])
    columns, codes = code_columns(x)
    options = TreeOptions(depth=1, min_rows=min_rows, pseudo_rows=5.0, rate=1.0)
    tree, predicted = grow(codes, np.where(x == 1, 4.0, 0.25), columns, options)
    if min_rows > 20:
        assert not predicted.any()
        assert not tree.value.any()
    else:
        assert tree.value == pytest.approx([np.log(85 / 25), np.log(15 / 45)])


@pytest.mark.parametrize("larger", [1.0, 2.0])
def test_values_missing_only_later_follow_the_larger_side(larger):
    x = np.where(np.arange(60) < 20, 3 - larger, larger)
    columns, codes = code_columns(x)
    options = TreeOptions(depth=1, min_rows=5, pseudo_rows=1.0, rate=0.1)
    tree, _ = grow(codes, x**4, columns, options)
    missing = tree.predict(columns[0].coded(np.array([np.nan]))[:, None])
    assert missing == tree.predict(columns[0].coded(np.array([larger]))[:, None])
    assert np.unique(tree.value).size == 2


def test_columns_without_a_difference_grow_nothing():
    columns, codes = code_columns(np.ones(50), np.full(50, np.nan))
    options = TreeOptions(depth=2, min_rows=1, pseudo_rows=1.0, rate=0.5)
    tree, predicted = grow(codes, np.linspace(1, 9, 50), columns, options)
    assert tree.value.tolist() == [0] * 4
    assert predicted.tolist() == [0] * 50
    assert tree.predict(codes).tolist() == [0] * 50


def test_of_columns_that_split_alike_the_first_is_used():
    x = np.repeat([1.0, 2.0], 20)
    columns, codes = code_columns(np.ones(40), x, x)
    options = TreeOptions(depth=1, min_rows=1, pseudo_rows=1.0, rate=0.5)
    assert grow(codes, x, columns, options)[0].feature.tolist() == [1]


def test_a_row_goes_left_or_right_at_every_node_on_its_way():
    tree = Tree(
        feature=np.array([1, 0, 1]),
        left=np.array([[1, 1, 0], [0, 1, 0], [1, 0, 0]], dtype=bool),
        value=np.array([10.0, 20, 30, 40]),
    )
    codes = np.array([[1, 0], [0, 1], [2, 1], [1, 2], [0, 2]])
    assert tree.predict(codes).tolist() == [10, 20, 20, 40, 40]
