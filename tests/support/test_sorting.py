"""Orders, which are those of NumPy's stable sort."""

import numpy as np
import pytest

from sigmascale._support.checks import rounded
from sigmascale._support.sorting import stable_order

RNG = np.random.default_rng(0)
NUMBERS = {
    "signed": RNG.normal(size=20_000),
    "far apart": RNG.lognormal(0, 90, 20_000),
    "many equal": np.round(RNG.normal(size=20_000), 1),
    "zeros": np.append(RNG.choice([0.0, -0.0, 1.0], 5000), [np.inf, -np.inf]),
    "alike but for the last bits": 1 + np.arange(20_000)[::-1] % 7000 * 2.0**-52,
    "all the same": np.ones(9000),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_the_order_is_that_of_a_stable_sort(name):
    x = NUMBERS[name]
    np.testing.assert_array_equal(stable_order(x), np.argsort(x, kind="stable"))


@pytest.mark.parametrize("bits", [26, 44])
def test_numbers_are_rounded_to_the_nearest_and_halves_to_even(bits):
    x = np.concatenate([*NUMBERS.values(), np.arange(-70_000, 70_000) / 1024])
    mantissa, exponent = np.frexp(x)
    nearest = np.rint(np.ldexp(mantissa, bits))
    np.testing.assert_array_equal(rounded(x, bits), np.ldexp(nearest, exponent - bits))
