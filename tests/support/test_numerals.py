"""What is printed of a limit is never narrower than the limit."""

import math

from hypothesis import given
from hypothesis import strategies as st

from sigmascale._support import numerals

limits = st.floats(-9.9, 9.9) | st.decimals(-9, 9, places=2).map(float)


def _read(text: str) -> float:
    return float(text.replace("−", "-"))


@given(limits)
def test_limits_are_rounded_outwards_by_less_than_a_hundredth(limit):
    up, down = _read(numerals.upper(limit)), _read(numerals.lower(limit))
    assert -1e-7 <= up - limit < 0.01
    assert -1e-7 <= limit - down < 0.01


@given(st.floats(-1e9, 1e9) | st.sampled_from([math.inf, -math.inf, math.nan]))
def test_every_number_has_words_and_none_is_minus_nothing(x):
    for words in (
        numerals.number(x),
        numerals.factor(x),
        numerals.percent(x, 1),
        numerals.interval(x, x, x),
        numerals.percent_interval(x, x, x),
    ):
        assert "-" not in words.replace("e-", "")
        assert "−0.00 " not in f"{words} "
