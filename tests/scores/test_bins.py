"""Rank bins, through the scores that need them and by their own rules."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sigmascale as ss
from sigmascale.predictions.bins import cut, cut_positions, rank_order


@given(st.integers(1, 10**7), st.integers(1, 300))
def test_cuts_are_those_of_the_formula_in_exact_arithmetic(n_rows, n_bins):
    n_bins = min(n_rows, n_bins)
    exact = [int(Fraction(k * n_rows, n_bins) + Fraction(1, 2)) for k in range(n_bins)]
    assert cut_positions(n_rows, n_bins).tolist() == exact
    sizes = np.diff(exact, append=n_rows)
    assert sizes.min() >= 1
    assert sizes.max() - sizes.min() <= 1


def test_bins_hold_consecutive_values_and_lose_no_row():
    rng = np.random.default_rng(0)
    u, x = rng.lognormal(size=(2, 103))
    p = ss.Predictions(y_std=u, error=u, features={"x": x})
    for name, bins in cut(p, 10).items():
        values = u if name == "u" else x
        np.testing.assert_array_equal(values[bins.order], np.sort(values))
        assert bins.sizes.sum() == 103
        first, middle, last = bins.first_middle_last()
        parts = np.split(np.sort(values), np.cumsum(bins.sizes)[:-1])
        np.testing.assert_array_equal(first, [part[0] for part in parts])
        np.testing.assert_array_equal(last, [part[-1] for part in parts])
        np.testing.assert_array_equal(
            middle, [part[(part.size - 1) // 2 + (part.size + 1) % 2] for part in parts]
        )


@given(
    st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
)
def test_the_order_in_which_rows_come_does_not_change_the_bins(rows, random):
    def sums(rows):
        u, x, e, t = (np.array(each, dtype=float) for each in zip(*rows, strict=True))
        # as many weights and groups as there are kinds of rows: nothing else is known
        p = ss.Predictions(
            y_std=u + 1, error=e, features={"x": x}, groups=t, weights=t + 1
        )
        n_bins = max(1, min(5, int(p.n_effective + 1e-6)))
        return np.concatenate([b.sums(p.z2) for b in cut(p, n_bins).values()])

    shuffled = list(rows)
    random.shuffle(shuffled)
    np.testing.assert_allclose(sums(shuffled), sums(rows), rtol=1e-9, atol=1e-12)


def test_the_shuffle_of_equal_rows_is_the_same_today_and_ever_after():
    equal, size = np.ones(8), np.arange(8.0)
    order = rank_order(equal, None, size, equal)
    assert sorted(order.tolist()) == list(range(8))
    assert order.tolist() == [0, 3, 5, 7, 6, 2, 1, 4]
    # which does not sort rows by their errors
    many = rank_order(np.ones(4000), None, np.arange(4000.0), np.ones(4000))
    assert abs(np.corrcoef(many, np.arange(4000))[0, 1]) < 0.05


def test_labels_have_their_rows_whatever_number_of_bins_is_asked_for():
    label = np.array(["b", "a", "b", None, "a", "b"], dtype=object)
    p = ss.Predictions(y_std=np.ones(6), error=np.ones(6), features={"label": label})
    bins = cut(p, 50, by="label")["label"]
    assert bins.sizes.tolist() == [2, 3, 1]
    assert bins.first_middle_last()[0].tolist() == ["a", "b", None]
    some = bins.some(np.array([True, False, True]))
    assert label[some.order].tolist() == ["a", "a", None]


def test_cuts_are_those_of_the_published_code(golden):
    for name, expected in golden["intervals"].items():
        n_rows, n_bins = (int(part.lstrip("Nnb")) for part in name.split("_"))
        cuts = cut_positions(n_rows, n_bins)
        assert (cuts + 1).tolist() == expected["lwindx"]
        assert [*cuts[1:].tolist(), n_rows] == expected["upindx"]


@pytest.mark.parametrize("seed", range(3))
def test_bins_of_weighted_rows_have_equal_weights(seed):
    rng = np.random.default_rng(seed)
    u, w = rng.lognormal(size=(2, 500))
    p = ss.Predictions(y_std=u, error=u, weights=w)
    bins = cut(p, 7)["u"]
    weights = bins.sums(np.ones(500))
    assert weights.sum() == pytest.approx(p.n_effective)
    assert np.ptp(weights[:-1]) <= 1 + 1e-9
    by_row = np.bincount(bins.order, bins.weights)
    np.testing.assert_allclose(by_row, p.weights, rtol=1e-9)
