import numpy as np
import pytest

from sigmascale import Region
from sigmascale._support.labels import Categories
from sigmascale.bins.partitions import sum_by_code
from sigmascale.judging.regions import off_by, worst_region
from sigmascale.judging.scans import ScannedVariable

RNG = np.random.default_rng(8)
N = 3000
U = RNG.uniform(1, 2, N)
X = RNG.uniform(0, 100, N)
ERROR = U * RNG.normal(size=N)
KIND = RNG.choice(["a", "b", "c"], N)


def worst(error, by=X):
    by = by if by.dtype.kind == "f" else Categories.of(by)
    variable = ScannedVariable.of("by", by)
    sums = sum_by_code(variable.codes, (error / U) ** 2, variable.n_bins)
    return worst_region(variable, sums, critical=15.0)


@pytest.mark.parametrize(
    ("zms", "words"),
    [
        (4.0, "50 % too small (multiply by 2)"),
        (1.44, "17 % too small (multiply by 1.2)"),
        (1e8, "100 % too small (multiply by 10000)"),
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
    ("wrong", "low", "high", "words"),
    [
        (X > 66, 66, None, "by above 6"),
        (X < 30, None, 30, "by below "),
        ((X > 40) & (X < 60), 40, 60, "by between "),
    ],
)
@pytest.mark.parametrize("factor", [0.5, 1.5])
def test_the_worst_region_is_the_run_of_bins_that_is_wrong(
    wrong, low, high, words, factor
):
    found = worst(np.where(wrong, factor, 1.0) * ERROR)
    assert found.where.startswith(words)
    for limit, expected in ((found.low, low), (found.high, high)):
        if expected is None:
            assert limit is None
        else:
            assert limit == pytest.approx(expected, abs=4)
    inside = np.ones(N, dtype=bool)
    inside &= found.low is None or found.low <= X
    inside &= found.high is None or found.high >= X
    assert found.n == np.sum(inside)
    z2 = (np.where(wrong, factor, 1.0) * ERROR / U) ** 2
    assert found.zms == pytest.approx(z2[inside].mean())
    assert found.zms == pytest.approx(factor**2, rel=0.2)
    direction = "too small" if factor > 1 else "too large"
    remedy = f"(multiply by {np.sqrt(found.zms):.2g})"
    assert found.sentence.endswith(f"{direction} {remedy} for {found.where}")


def test_heavy_tails_do_not_hide_the_region():
    hits = 0
    for seed in range(20):
        rng = np.random.default_rng([9, seed])
        error = U * rng.standard_t(5, N) * np.where(X > 66, 1.5, 1.0)
        found = worst(error / np.sqrt(5 / 3))
        hits += found.low is not None and abs(found.low - 66) < 6
    assert hits >= 17


def test_a_single_stratum_is_near_its_value():
    strata = np.repeat([1.0, 2.5, 4.0], N // 3)
    found = worst(np.where(strata == 2.5, 2.0, 1.0) * ERROR, by=strata)
    assert found.where == "by near 2.5"


def test_the_worst_group_is_named_by_its_label():
    found = worst(np.where(KIND == "b", 1.5, 1.0) * ERROR, by=KIND)
    assert (found.where, found.low, found.high) == ("by = b", "b", "b")
    assert found.n == np.sum(KIND == "b")
    assert found.zms == pytest.approx(2.25, rel=0.2)


def test_labels_with_few_rows_are_one_bin_and_do_not_hide_a_wrong_one():
    # 6 rows that are 1.6 times too large by chance, against 2,000 that surely are wrong
    labels = np.where(np.arange(N) < 6, "few", np.where(X < 66, "many", "rest"))
    error = np.where(labels == "many", 1.3, 1.0) * ERROR
    error[:6] = 1.6 * U[:6] * [1.2, -0.7, 1.0, -1.1, 0.8, 1.0]
    assert "many" in worst(error, by=labels).where


def test_the_interval_of_the_factor_holds_the_true_one():
    low, high = worst(np.where(X > 66, 1.5, 1.0) * ERROR).interval
    assert low < 1.5 < high
    assert high / low < 1.6


def test_where_the_rest_is_wrong_the_rest_is_named():
    found = worst(np.where(X > 80, 1.0, 0.3) * ERROR)
    assert found.where.startswith("by below ")
    assert found.zms == pytest.approx(0.09, rel=0.2)


@pytest.mark.parametrize("by", [X, KIND])
def test_a_region_without_any_error_is_the_worst_and_its_zms_is_0(by):
    silent = X < 30 if by is X else KIND == "a"
    found = worst(np.where(silent, 0.0, ERROR), by=by)
    assert found.zms == 0
    assert "(all errors are 0)" in found.sentence
    assert found.where.startswith("by below 2" if by is X else "by = a")


def test_a_region_is_a_plain_record():
    found = Region("x above 3", 3.0, None, 4.0, 17)
    assert (
        found.sentence
        == "uncertainties are 50 % too small (multiply by 2) for x above 3"
    )
