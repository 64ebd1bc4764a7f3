import itertools

import numpy as np
import pytest

from sigmascale.bins.partitions import EqualSizeBins
from sigmascale.exceptions import InvalidInputError
from sigmascale.maps import Code, Column, Trees, evaluate
from sigmascale.maps.ranges import check_node
from sigmascale.maps.trees import FEW

N_CODES = 9
CODED = EqualSizeBins(np.arange(1.0, N_CODES - 1))  # code i is the number i - 1


def tree_sums(trees, codes):
    """Return the sum of trees for rows of these codes."""
    columns = np.where(codes == 0, np.nan, codes - 1.0).T
    return evaluate(trees, list(columns), len(codes))


def walk(trees, which, codes):
    """Return the value of one tree for each row, sent down node by node."""
    feature, left = trees.feature[which], trees.left[which]
    found = []
    for row in codes:
        node = 0
        while node < feature.size:
            node = 2 * node + 2 - left[node, row[feature[node]]]
        found.append(trees.value[which, node - feature.size])
    return np.array(found)


def some_trees(depth, n_columns, *, ordered=True, n_trees=19, divisor=1.0):
    rng = np.random.default_rng(depth)
    n_nodes = 2**depth - 1
    below = np.arange(N_CODES) < rng.integers(1, N_CODES, (n_trees, n_nodes, 1))
    anything = rng.random((n_trees, n_nodes, N_CODES)) < 0.5
    return Trees(
        codes=tuple(Code(Column(j, "optional"), CODED) for j in range(n_columns)),
        feature=rng.integers(0, n_columns, (n_trees, n_nodes)),
        left=below if ordered else anything,
        value=rng.normal(size=(n_trees, n_nodes + 1)),
        divisor=divisor,
    )


@pytest.mark.parametrize("n_columns", [1, 4])
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("ordered", [False, True])
def test_trees_that_are_summed_at_once_give_the_sum_of_one_after_another(
    depth, n_columns, ordered
):
    trees = some_trees(depth, n_columns, ordered=ordered)
    codes = np.random.default_rng(1).integers(0, N_CODES, (5 * FEW, n_columns))
    expected = np.zeros(codes.shape[0])
    for which in range(trees.feature.shape[0]):
        expected += walk(trees, which, codes)

    def summed(n_rows):
        return tree_sums(trees, codes[:n_rows])

    found = summed(codes.shape[0])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    for n_rows in (1, FEW, FEW + 1):  # the way is another, but not the bits
        assert (summed(n_rows) == found[:n_rows]).all()


def test_the_sum_is_divided():
    codes = np.arange(N_CODES)[:, None]
    whole = tree_sums(some_trees(2, 1), codes)
    third = tree_sums(some_trees(2, 1, divisor=3.0), codes)
    assert (third == whole / 3).all()


def test_bunches_are_small_and_hold_every_tree_once():
    trees = some_trees(3, 4, n_trees=200)
    bunches, _ = trees.bunched
    assert bunches[0].start == 0
    assert bunches[-1].stop == 200
    assert all(a.stop == b.start for a, b in itertools.pairwise(bunches))
    assert len(bunches) > 20


@pytest.mark.parametrize(
    ("spoilt", "match"),
    [
        ({"feature": np.full((19, 3), 4)}, "columns that there are"),
        ({"feature": np.full((19, 3), -1)}, "columns that there are"),
        ({"value": np.full((19, 4), np.inf)}, "Leaves must be finite"),
        ({"value": np.ones((19, 3))}, "must be complete"),
        ({"left": np.ones((19, 3, 4), dtype=bool)}, "a side for each code"),
        ({"divisor": 0.0}, "divisor must be positive"),
        ({"codes": ()}, "look at codes"),
    ],
)
def test_trees_that_are_not_whole_are_refused(spoilt, match):
    trees = some_trees(2, 4)
    whole = {name: getattr(trees, name) for name in trees.__dataclass_fields__}
    with pytest.raises(InvalidInputError, match=match):
        check_node(Trees(**(whole | spoilt)))
