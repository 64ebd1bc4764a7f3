import numpy as np
import pytest
from scipy import stats

from sigmascale import oddities
from sigmascale._support.labels import Categories
from sigmascale.oddities import z_scores
from sigmascale.predictions import as_predictions

RNG = np.random.default_rng(7)
X = RNG.normal(size=2000)
LABELS = RNG.choice(["gas", "liquid", "solid"], 2000, p=[0.2, 0.3, 0.5])


def compare_distributions(name, old, new):
    columns = (x if x.dtype.kind == "f" else Categories.of(x) for x in (old, new))
    return oddities.compare_distributions(name, *columns)


def test_normal_z_scores_are_neither_heavy_nor_biased():
    shape = z_scores(2 * X, np.full(2000, 2.0))
    assert (shape.heavy, shape.biased) == (False, False)
    assert shape.mean == pytest.approx(X.mean())
    assert shape.rms == pytest.approx(np.sqrt(np.mean(X**2)))
    assert shape.k95 == pytest.approx(1.96, abs=0.1)
    assert shape.beyond == np.mean(np.abs(X) > 3 * shape.rms)


@pytest.mark.parametrize("factor", [1e-9, 1, 1e9])
def test_heavy_tails_are_found_whatever_the_unit(factor):
    z = factor * RNG.standard_t(4, 2000)
    assert z_scores(z, np.ones(2000)).heavy


def test_one_outlier_among_a_few_rows_is_not_a_heavy_tail():
    z = np.append(stats.norm.ppf(np.linspace(0.02, 0.98, 59)), 4.0)
    shape = z_scores(z, np.ones(60))
    assert shape.beyond == 1 / 60
    assert not shape.heavy


def test_a_bias_counts_where_it_is_large_and_not_by_chance():
    assert z_scores(X + 0.3, np.ones(2000)).biased
    assert not z_scores(X + 0.05, np.ones(2000)).biased
    assert not z_scores([0.5, 1.5, -0.5], np.ones(3)).biased


def test_errors_that_are_all_zero_have_a_shape():
    shape = z_scores(np.zeros(9), np.ones(9))
    assert (shape.rms, shape.beyond, shape.heavy, shape.biased) == (0, 0, False, False)


def test_two_draws_of_one_distribution_are_rarely_called_shifted():
    found = []
    for seed in range(200):
        rng = np.random.default_rng([1, seed])
        old, new = rng.normal(size=(2, 150))
        found.append(compare_distributions("x", old, new).shifted)
        old, new = rng.choice(list("abcdefgh"), size=(2, 150))
        found.append(compare_distributions("x", old, new).shifted)
    assert sum(found) <= 4


def test_the_distance_of_numbers_is_that_of_kolmogorov_and_smirnov():
    new = X[:1500] + 0.5
    shift = compare_distributions("x", X, new)
    below = [abs(np.mean(x >= X) - np.mean(x >= new)) for x in np.append(X, new)]
    assert shift.distance == pytest.approx(max(below))
    assert shift.shifted
    assert shift.name == "x"


def test_a_small_but_certain_difference_is_no_shift():
    old, new = np.random.default_rng(0).normal(size=(2, 50_000))
    shift = compare_distributions("x", old, new + 0.1)
    assert shift.p_value < 1e-6
    assert not shift.shifted


def test_rows_beyond_what_was_seen_are_a_shift_however_few_the_distance():
    new = X.copy()
    new[:60] = 50.0
    shift = compare_distributions("x", X, new)
    assert shift.distance < 0.1
    assert shift.outside == 0.03
    assert shift.shifted


def test_missing_numbers_do_not_count():
    holes = np.append(X, [np.nan] * 500)
    assert compare_distributions("x", holes, X).distance == 0
    assert not compare_distributions("x", np.full(3, np.nan), X).shifted


def test_the_distance_of_labels_is_half_the_sum_of_the_differences():
    new = np.where(LABELS == "gas", "solid", LABELS)
    shift = compare_distributions("phase", LABELS, new)
    assert shift.distance == pytest.approx(np.mean(LABELS == "gas"))
    assert shift.shifted
    assert shift.unseen == ()


def test_labels_never_seen_are_named():
    new = LABELS.copy()
    new[:100] = "foam"
    shift = compare_distributions("phase", LABELS, new)
    assert shift.unseen == ("foam",)
    assert shift.outside == 0.05
    assert shift.shifted


def test_numbers_and_labels_are_compared_as_labels():
    shift = compare_distributions("x", np.array([1.0, 2.0]), np.array(["a", "1.0"]))
    assert shift.unseen == ("1.0", "a")  # text is no number


def test_shared_rows_have_both_numbers_equal():
    def rows(x, added):
        return as_predictions(x, np.abs(x) + added)

    old, count = rows(X, 1), oddities.count_shared_rows
    assert count(old, old) == 2000
    assert count(old, rows(X[:10], 2)) == 0
    assert count(old, rows(X[:10], 1)) == 10
