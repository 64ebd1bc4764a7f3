"""Places among edges, which a table finds as a binary search would."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sigmascale._support.places import FEW_NUMBERS, MOST_IN_A_CELL, Places

numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)


@settings(max_examples=200, deadline=None)
@given(
    edges=st.lists(numbers, min_size=1, max_size=60),
    seed=st.integers(0, 2**32 - 1),
    open_below=st.booleans(),
    side=st.sampled_from(["left", "right"]),
)
def test_places_are_those_of_a_binary_search(edges, seed, open_below, side):
    rng = np.random.default_rng(seed)
    known = np.sort(edges)
    # edges themselves, their neighbours, and what lies between and beyond
    near = rng.choice(known, FEW_NUMBERS)
    toward = rng.choice([-np.inf, np.inf], near.size)
    with np.errstate(over="ignore"):
        x = np.where(rng.random(near.size) < 0.3, near, np.nextafter(near, toward))
        x[::3] = rng.normal(size=x[::3].size) * 2 * np.abs(known).max()
    x = np.clip(x, -1.7e308, 1.7e308)
    if open_below:
        known = np.append(-np.inf, known)
    found = Places(known).of(x, side=side)
    np.testing.assert_array_equal(found, np.searchsorted(known, x, side=side))


@pytest.mark.parametrize("crowd", [1, MOST_IN_A_CELL, MOST_IN_A_CELL + 1])
def test_edges_that_crowd_are_found_all_the_same(crowd):
    edges = np.sort(np.append(np.linspace(0, 1, 20), np.full(crowd, 0.5)))
    x = np.append(np.random.default_rng(0).random(5000), edges)
    np.testing.assert_array_equal(
        Places(edges).of(x), np.searchsorted(edges, x, side="right")
    )
