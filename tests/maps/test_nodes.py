import numpy as np
import pytest

import sigmascale as ss
from sigmascale._support.labels import Categories
from sigmascale.bins.libraries import library_of
from sigmascale.bins.partitions import EqualSizeBins, LabelBins
from sigmascale.exceptions import InvalidInputError, UnseenCategoryWarning
from sigmascale.maps import (
    UNCERTAINTY,
    Clip,
    Code,
    Column,
    Constant,
    Exponential,
    Hypotenuse,
    Interpolation,
    Lookup,
    Product,
    Root,
    Sum,
    evaluate,
    factor_tables,
    in_order,
    scaled,
)
from sigmascale.maps.nodes import columns_of
from sigmascale.maps.prediction import recalibrate
from sigmascale.maps.ranges import check_node
from sigmascale.predictions import Predictions

U = np.array([1.0, 2.0, 4.0])
LIMITS = EqualSizeBins(np.array([2.0, 3.0]))
PAIRS = EqualSizeBins(np.array([5.0, 5.0]), np.array([2.0, 4.0]))
LABELS = LabelBins(("a", "b"), ("c",))


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (UNCERTAINTY, [1, 2, 4]),
        (Constant(3.0), [3, 3, 3]),
        (Sum((UNCERTAINTY, Constant(1.0), UNCERTAINTY)), [3, 5, 9]),
        (Product((UNCERTAINTY, Constant(2.0))), [2, 4, 8]),
        (Hypotenuse(Constant(3.0), Constant(4.0)), [5, 5, 5]),
        (Root(UNCERTAINTY), [1, np.sqrt(2), 2]),
        (Exponential(UNCERTAINTY), np.exp([1.0, 2.0, 4.0])),
        (Clip(UNCERTAINTY, 1.5, 3.0), [1.5, 2, 3]),
        (Lookup((Code(UNCERTAINTY, LIMITS),), np.arange(4.0)), [1, 2, 3]),
        (
            Interpolation(UNCERTAINTY, np.array([2.0, 3.0]), np.array([0.0, 9.0])),
            [0, 0, 9],
        ),
        (scaled(2.0, Constant(3.0)), [6, 12, 24]),
    ],
)
def test_each_kind_of_node_has_its_value(node, expected):
    np.testing.assert_allclose(evaluate(node, [U], 3), expected, rtol=1e-15)


def test_a_missing_number_has_the_code_0():
    code = Code(Column(1, "optional"), LIMITS)
    x = np.array([np.nan, 2.5, -9.0, 99.0])
    found = evaluate(Lookup((code,), np.arange(10.0, 14.0)), [None, x], 4)
    assert found.tolist() == [10, 12, 11, 13]


def test_labels_have_codes_and_all_others_the_code_0():
    code = Code(Column(1, "label"), LABELS)
    labels = Categories.of(np.array(["b", "a", "c", "z"]))
    found = evaluate(Lookup((code,), np.arange(3.0)), [None, labels], 4)
    assert found.tolist() == [2, 1, 0, 0]


def test_pairs_of_limits_tell_equal_numbers_apart():
    code = Code(Column(1), PAIRS, UNCERTAINTY)
    x, u = np.array([5.0, 5.0, 5.0, 4.0, 6.0]), np.array([1.0, 2.0, 4.0, 9.0, 0.1])
    found = evaluate(Lookup((code,), np.arange(4.0)), [u, x], 5)
    assert found.tolist() == [1, 2, 3, 1, 3]


def test_tables_of_two_codes_are_looked_up_by_both():
    first, second = Code(UNCERTAINTY, LIMITS), Code(Column(1, "label"), LABELS)
    table = np.arange(12.0).reshape(4, 3)
    labels = Categories.of(np.array(["a", "b", "?"]))
    found = evaluate(Lookup((first, second), table), [U, labels], 3)
    assert found.tolist() == [table[1, 1], table[2, 2], table[3, 0]]


def test_rows_in_many_chunks_are_evaluated_as_one_by_one():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2 * library_of(np.empty(0)).chunk + 7)
    limits = EqualSizeBins(np.sort(rng.normal(size=40)))
    node = Lookup((Code(UNCERTAINTY, limits),), rng.normal(size=42))
    found = evaluate(node, [x], x.size)
    some = rng.integers(0, x.size, 50)
    assert found[some].tolist() == [evaluate(node, [x[[i]]], 1)[0] for i in some]


def test_a_node_that_is_used_twice_is_computed_once(monkeypatch):
    calls = []
    kernel = EqualSizeBins.kernel

    def counted(self, *args, **kwargs):
        constants, found = kernel(self, *args, **kwargs)
        return constants, lambda xp, c, x: calls.append(x.size) or found(xp, c, x)

    monkeypatch.setattr(EqualSizeBins, "kernel", counted)
    code = Code(UNCERTAINTY, LIMITS)
    twice = Sum((Lookup((code,), np.arange(4.0)), Lookup((code, code), np.eye(4))))
    assert evaluate(twice, [U], 3).tolist() == [2, 3, 4]
    assert calls == [3]


def test_nodes_come_in_order_each_once_its_inputs_first():
    square = Product((UNCERTAINTY, UNCERTAINTY))
    root = Root(Sum((square, square)))
    assert in_order(root) == [UNCERTAINTY, square, root.x, root]
    assert list(columns_of(root)) == [UNCERTAINTY]


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Column(-1), "must not be negative"),
        (lambda: Constant(np.nan), "must be finite"),
        (lambda: Sum(()), "something to compute from"),
        (lambda: Root(Column(1, "label")), "computed from numbers"),
        (lambda: Root(Code(UNCERTAINTY, LIMITS)), "computed from numbers"),
        (lambda: Clip(UNCERTAINTY, 2.0, 1.0), "ascending order"),
        (lambda: Code(UNCERTAINTY, LABELS), "labels are coded by labels"),
        (lambda: Code(Column(1, "label"), LIMITS), "labels are coded by labels"),
        (lambda: Code(UNCERTAINTY, PAIRS), "pairs of limits need pairs"),
        (lambda: Code(UNCERTAINTY, LIMITS, UNCERTAINTY), "pairs of limits need"),
        (lambda: Lookup((), np.ones(())), "must have the shape"),
        (lambda: Lookup((Code(UNCERTAINTY, LIMITS),), np.ones(3)), "shape"),
        (
            lambda: Lookup((Code(UNCERTAINTY, LIMITS),), np.full(4, np.inf)),
            "must be finite",
        ),
        (lambda: Interpolation(UNCERTAINTY, np.array([2.0, 1]), np.ones(2)), "ascend"),
        (lambda: Interpolation(UNCERTAINTY, np.ones(1), np.ones(2)), "each knot"),
    ],
)
def test_nodes_that_make_no_sense_are_refused(make, match):
    with pytest.raises(InvalidInputError, match=f"(?i){match}"):
        check_node(make())


def test_labels_never_seen_are_told_once_a_column_and_rare_ones_are_not():
    code = Code(Column(1, "label"), LABELS)
    root = scaled(Lookup((code,), np.array([9.0, 1.0, 2.0])))
    labels = Categories.of(np.array(["b", "c", "z"]))
    names = (None, labels.labels)
    rows = Predictions.of((U, labels.codes), ("u", "kind"), categories=names)
    with pytest.warns(UnseenCategoryWarning, match=r"1 of 3 rows .* 'kind'") as told:
        found = recalibrate(root, rows, smallest=1.0)
    assert len(told) == 1
    assert found.tolist() == [2, 18, 36]


def test_factors_of_single_columns_can_be_read_off_a_map():
    data = ss.datasets.make_molecules(800, seed=0)
    raked = ss.RakedScaling(4, pairs=[(0, 1)]).fit(data.X, data.error)
    tables = factor_tables(raked.map_)
    assert [table.position for table in tables] == [0, 1, 2]
    for table, name in zip(tables, ("u", "X1", "X2"), strict=True):
        np.testing.assert_allclose(table.factors, raked.factors_[name], rtol=1e-14)
        assert table.partition.limits.tolist() == raked.limits_[name].tolist()
    (bins,) = factor_tables(ss.BinwiseScaling(4).fit(data.X, data.error).map_)
    assert (bins.position, bins.factors.size) == (0, 5)
    for scaler in (ss.IsotonicScaling(), ss.LinearScaling(), ss.NoScaling()):
        assert factor_tables(scaler.fit(data.X, data.error).map_) == []
