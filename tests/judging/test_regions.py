import pytest

from sigmascale.judging.regions import Region, label_words, off_by, range_words


@pytest.mark.parametrize(
    ("zms", "words"),
    [
        (4.0, "50 % too small (multiply by 2)"),
        (1.44, "17 % too small (multiply by 1.2)"),
        (1e8, "10,000 times too small (multiply by 10000)"),
        (1.0, "0 % too large (multiply by 1)"),
        (1 / 1.21, "10 % too large (multiply by 0.91)"),
        (0.26, "96 % too large (multiply by 0.51)"),
        (0.25, "2.0 times too large (multiply by 0.5)"),
        (0.01, "10.0 times too large (multiply by 0.1)"),
        (0.0, "too large (all errors are 0)"),
    ],
)
def test_the_deviation_in_words_is_that_of_the_uncertainty(zms, words):
    assert off_by(zms) == words


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ((None, None), "all x"),
        ((3.0, None), "x above 3"),
        ((None, 0.12345), "x below 0.1235"),
        ((3.0, 4.0), "x between 3 and 4"),
        ((2.50001, 2.50002), "x near 2.5"),
    ],
)
def test_a_range_in_words_is_open_where_it_has_no_limit(limits, words):
    assert range_words("x", *limits) == words


def test_many_labels_are_counted_rather_than_named():
    assert label_words("kind", ["a", "b", "c"]) == "kind = a, b, c"
    assert label_words("kind", list("abcde")) == "kind = a, b, c and 2 more"


def test_a_region_is_a_plain_record():
    found = Region("x above 3", 3.0, None, 4.0, 17, 2.0, (1.5, 2.6))
    assert (
        found.sentence
        == "uncertainties are 50 % too small (multiply by 2) for x above 3"
    )
    assert found.to_dict()["n"] == 17
