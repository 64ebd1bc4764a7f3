from contextlib import suppress

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigmascale.cli.tables.values import RawTable
from sigmascale.cli.tables.where import COMPARISONS, Condition, Where
from sigmascale.exceptions import InvalidInputError

FRAME = pl.DataFrame(
    {
        "split": ["train", "test", "test", None, "test"],
        "mass": ["9", "10", "100", "NA", "-1e1"],
        "my column, really": ["1", "2", "3", "4", "5"],
    }
)


def kept(text, frame=FRAME, decimal="."):
    """Return the numbers of the rows that conditions keep."""
    table = Where.parse(text).keep(RawTable(frame.with_row_index(), decimal))
    assert (table.places == table.frame["index"]).all()
    return table.frame["index"].to_list()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("split == 'test'", [1, 2, 4]),
        ('split=="test"', [1, 2, 4]),
        ("split != 'test'", [0]),  # a missing value meets no condition
        ("split > 'test'", [0]),
        ("mass >= 10", [1, 2]),  # as numbers, although they are text
        ("mass > 10.0", [2]),
        ("mass < 1e1", [0, 4]),
        ("mass <= -10", [4]),
        ("mass != 10", [0, 2, 4]),
        ("mass == '10'", [1]),
        ("split == 'test' and mass > 0", [1, 2]),
        ("split == 'test' AND mass > 0 and mass < 50", [1]),
        ("`my column, really` >= 4", [3, 4]),
        ("  `split`  ==  'train'  ", [0]),
    ],
)
def test_rows_that_meet_all_conditions_are_kept(text, rows):
    assert kept(text) == rows


def test_numbers_with_decimal_commas_are_compared_as_numbers():
    frame = pl.DataFrame({"x": ["1,5", "12,5"]})
    assert kept("x > 2.5", frame, ",") == [1]


@pytest.mark.parametrize(
    ("text", "place", "wanted"),
    [
        ("", 1, "a column"),
        ("split = 'test'", 7, "== != <= >= < >"),
        ("split == test", 10, "quotes.* found 'test'"),
        ("split == 'test", 10, "quotes"),
        ("mass < 1.2.3", 8, "a number"),
        ("mass < 5x", 8, "a number"),
        ("mass < 5 or mass > 9", 10, "`and` and another condition"),
        ("mass < 5 and", 13, "a column .*; found the end"),
        ("(mass < 5)", 1, "a column"),
        ("5 < mass", 1, "a column"),
        ("__import__('os')", 11, "one of =="),
    ],
)
def test_what_is_no_condition_is_shown_with_its_place(text, place, wanted):
    with pytest.raises(InvalidInputError, match=f"character {place}: .*{wanted}"):
        Where.parse(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mas < 5", "--where .*'mas'.*'mass'"),
        ("split < 5", "'split', row 1 .*'train' .*number"),
        ("mass > 1000", "none of 5 rows"),
    ],
)
def test_conditions_that_do_not_fit_the_table_are_refused(text, words):
    with pytest.raises(InvalidInputError, match=words):
        kept(text)


def test_a_column_of_numbers_is_not_compared_with_text():
    frame = pl.DataFrame({"x": [5.0]})
    with pytest.raises(InvalidInputError, match=r"'x' .*numbers.*quotes"):
        kept("x == '5'", frame)


NAMES = st.text(st.characters(exclude_characters="`"), min_size=1, max_size=5)
TEXTS = st.text(st.characters(exclude_characters="'"), max_size=5)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.lists(
        st.builds(Condition, NAMES, st.sampled_from(list(COMPARISONS)), FINITE | TEXTS),
        min_size=1,
        max_size=3,
    )
)
def test_every_condition_can_be_written_and_read(conditions):
    words = [
        f"`{c.column}` {c.comparison} "
        + (f"'{c.value}'" if isinstance(c.value, str) else repr(c.value))
        for c in conditions
    ]
    assert Where.parse(" and ".join(words)).conditions == tuple(conditions)


@given(st.text(alphabet="ab`'\"=<> 019.e-and()", max_size=12))
def test_whatever_is_typed_is_read_or_refused(text):
    with suppress(InvalidInputError):
        assert Where.parse(text).conditions
