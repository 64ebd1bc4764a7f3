import numpy as np
import pytest

from sigmascale._support.labels import Categories
from sigmascale.bins.partitions import sum_by_code
from sigmascale.judging.scan import (
    Compared,
    ScannedRows,
    ScannedVariable,
    largest,
    smallest_seen,
    worst_region,
)
from sigmascale.predictions import as_predictions

RNG = np.random.default_rng(1)
N = 1000
X = RNG.normal(size=N)
Z2 = RNG.normal(size=N) ** 2


def scanned(by, name="x"):
    numbers = by.dtype.kind == "f"
    return ScannedVariable.of(name, by if numbers else Categories.of(by))


def sums_of(variable, values=Z2):
    return sum_by_code(variable.codes, values, variable.n_bins)[None]


def test_numbers_are_cut_into_fifty_bins_and_equal_ones_never_parted():
    variable = scanned(X)
    assert variable.n_bins == 50
    assert set(variable.sizes) <= {19, 20, 21}
    few = scanned(np.round(X))
    assert few.n_bins == np.unique(np.round(X)).size
    assert few.low.tolist() == few.high.tolist()


def test_labels_have_a_bin_each_but_rare_ones_share_one():
    labels = np.array(["a"] * 600 + ["b"] * 370 + [f"rare {i}" for i in range(30)])
    variable = scanned(labels)
    assert variable.labels == ("a", "b", "rare labels")
    assert variable.sizes.tolist() == [600, 370, 30]


def test_the_statistic_is_the_largest_likelihood_ratio_over_runs():
    variable = scanned(X)
    start, stop = variable.runs
    best = 0.0
    for first, last in zip(start, stop, strict=True):
        inside = (variable.codes >= first) & (variable.codes < last)
        assert 80 <= inside.sum() <= 920
        ratio = sum(
            -part.sum() * np.log(Z2[part].mean() / Z2.mean())
            for part in (inside, ~inside)
        )
        best = max(best, ratio)
    assert largest(variable.variance_ratios(sums_of(variable)))[0] == pytest.approx(
        best
    )


def test_the_statistic_of_labels_is_the_largest_over_all_sets_of_them():
    labels = RNG.choice(list("abcde"), N)
    variable = scanned(labels)
    best = 0.0
    for subset in range(1, 31):
        inside = np.isin(labels, [c for i, c in enumerate("abcde") if subset >> i & 1])
        ratio = sum(
            -part.sum() * np.log(Z2[part].mean() / Z2.mean())
            for part in (inside, ~inside)
        )
        best = max(best, ratio)
    assert largest(variable.variance_ratios(sums_of(variable)))[0] == pytest.approx(
        best
    )


def test_the_unit_of_z2_does_not_matter_and_zeros_do_no_harm():
    variable = scanned(X)
    same = largest(variable.variance_ratios(7 * sums_of(variable)))
    np.testing.assert_allclose(
        same, largest(variable.variance_ratios(sums_of(variable)))
    )
    silent = sums_of(variable, np.where(X < 0, 0.0, Z2))
    assert np.isfinite(variable.variance_ratios(silent)).all()


def test_a_shift_is_measured_in_units_of_its_spread_by_chance():
    variable = scanned(X)
    noise = [
        largest(variable.shift_ratios(sums_of(variable, z - z.mean()), 1.0))[0]
        for z in RNG.normal(size=(100, N))
    ]
    assert 4 < np.median(noise) < 12
    shifted = RNG.normal(size=N) + np.where(X > 1, 1.0, 0.0)
    sums = sums_of(variable, shifted - shifted.mean())
    assert largest(variable.shift_ratios(sums, 1.0))[0] > 50


def test_sums_of_all_variables_come_at_once():
    labels = RNG.choice(["a", "b"], N)
    rows = as_predictions(RNG.normal(size=N), np.ones(N), {"x": X, "kind": labels})
    every = ScannedRows(rows)
    values = RNG.normal(size=(N, 3))
    for name, found in every.sums(values).items():
        variable = every.variables[name]
        for k in range(3):
            expected = sum_by_code(variable.codes, values[:, k], variable.n_bins)
            np.testing.assert_allclose(found[k], expected, atol=1e-12)
    assert np.mean(np.abs(rows.errors) > every.reach) == pytest.approx(0.05, abs=2e-3)


def test_what_would_be_seen_is_smaller_for_more_rows_and_a_lower_limit():
    def seen(n, critical):
        variable = scanned(np.arange(n, dtype=float))
        z2 = np.random.default_rng(0).normal(size=(100, n)) ** 2
        sums = np.array([sums_of(variable, each)[0] for each in z2])
        return smallest_seen(variable, sums, critical, np.random.default_rng(0))

    assert seen(10_000, 20) < seen(1000, 20) < seen(300, 20)
    assert seen(1000, 15) <= seen(1000, 30)
    assert seen(60, 1e4) == np.inf


# --- the worst region ----------------------------------------------------------------

ROWS = np.random.default_rng(8)
COUNT = 3000
U = ROWS.uniform(1, 2, COUNT)
BY = ROWS.uniform(0, 100, COUNT)
ERROR = U * ROWS.normal(size=COUNT)
KIND = ROWS.choice(["a", "b", "c"], COUNT)


def worst(error, by=BY):
    variable = scanned(by, "by")
    sums = sum_by_code(variable.codes, (error / U) ** 2, variable.n_bins)
    return worst_region(variable, sums, critical=15.0)


@pytest.mark.parametrize(
    ("wrong", "low", "high", "words"),
    [
        (BY > 66, 66, None, "by above 6"),
        (BY < 30, None, 30, "by below "),
        ((BY > 40) & (BY < 60), 40, 60, "by between "),
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
    inside = np.ones(COUNT, dtype=bool)
    inside &= found.low is None or found.low <= BY
    inside &= found.high is None or found.high >= BY
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
        error = U * rng.standard_t(5, COUNT) * np.where(BY > 66, 1.5, 1.0)
        found = worst(error / np.sqrt(5 / 3))
        hits += found.low is not None and abs(found.low - 66) < 6
    assert hits >= 17


def test_a_single_stratum_is_near_its_value():
    strata = np.repeat([1.0, 2.5, 4.0], COUNT // 3)
    found = worst(np.where(strata == 2.5, 2.0, 1.0) * ERROR, by=strata)
    assert found.where == "by near 2.5"


def test_the_worst_group_is_named_by_its_label():
    found = worst(np.where(KIND == "b", 1.5, 1.0) * ERROR, by=KIND)
    assert (found.where, found.low, found.high) == ("by = b", "b", "b")
    assert found.n == np.sum(KIND == "b")
    assert found.zms == pytest.approx(2.25, rel=0.2)


def test_labels_with_few_rows_are_one_bin_and_do_not_hide_a_wrong_one():
    # 6 rows that are 1.6 times too large by chance, against 2,000 that surely are wrong
    labels = np.where(np.arange(COUNT) < 6, "few", np.where(BY < 66, "many", "rest"))
    error = np.where(labels == "many", 1.3, 1.0) * ERROR
    error[:6] = 1.6 * U[:6] * [1.2, -0.7, 1.0, -1.1, 0.8, 1.0]
    assert "many" in worst(error, by=labels).where


def test_the_interval_of_the_factor_holds_the_true_one():
    low, high = worst(np.where(BY > 66, 1.5, 1.0) * ERROR).interval
    assert low < 1.5 < high
    assert high / low < 1.6


def test_where_the_rest_is_wrong_the_rest_is_named():
    found = worst(np.where(BY > 80, 1.0, 0.3) * ERROR)
    assert found.where.startswith("by below ")
    assert found.zms == pytest.approx(0.09, rel=0.2)


@pytest.mark.parametrize("by", [BY, KIND])
def test_a_region_without_any_error_is_the_worst_and_its_zms_is_0(by):
    silent = BY < 30 if by is BY else KIND == "a"
    found = worst(np.where(silent, 0.0, ERROR), by=by)
    assert found.zms == 0
    assert "(all errors are 0)" in found.sentence
    assert found.where.startswith("by below 2" if by is BY else "by = a")


# --- many questions, one error rate --------------------------------------------------

DRAWS = np.random.default_rng(0)


def compared(observed, n_draws=999, n=5):
    draws = {f"q{i}": DRAWS.gamma(2, 1, n_draws) for i in range(n)}
    return Compared({f"q{i}": value for i, value in enumerate(observed)}, draws)


def test_the_smallest_corrected_p_depends_on_the_number_of_draws_alone():
    for n in (1, 5, 60):
        tests = compared([1e6, *[1.0] * (n - 1)], n=n)
        assert tests.adjusted()["q0"] == 1 / 1000
        assert tests.p_values()["q0"] == 1 / 1000


def test_corrected_p_are_those_of_step_down_maxima():
    tests = compared([6.0, 7.0, 1.0, 8.0, 2.0])
    found = tests.adjusted()
    scale = {name: (v.mean(), v.std()) for name, v in tests.draws.items()}
    unit = {n: (tests.observed[n] - m) / s for n, (m, s) in scale.items()}
    names = sorted(unit, key=lambda name: -unit[name])
    so_far = 0.0
    for i, name in enumerate(names):
        rest = [(tests.draws[n] - scale[n][0]) / scale[n][1] for n in names[i:]]
        share = (1 + np.sum(np.max(rest, axis=0) >= unit[name])) / 1000
        so_far = max(so_far, share)
        assert found[name] == pytest.approx(so_far)
        assert found[name] >= tests.p_values()[name]


def test_a_statistic_beyond_its_critical_value_is_significant():
    tests = compared([1.0] * 5)
    limit = tests.critical("q2", 0.05)
    for value, significant in ((limit * 1.001, True), (limit * 0.98, False)):
        observed = tests.observed | {"q2": value}
        p = Compared(observed, tests.draws).adjusted()["q2"]
        assert (p <= 0.052) == significant


def test_one_question_of_many_fails_by_chance_as_often_as_the_level_says():
    failed = 0
    for _ in range(400):
        tests = compared(DRAWS.gamma(2, 1, 8), n_draws=199, n=8)
        failed += min(tests.adjusted().values()) <= 0.1
    assert 0.06 < failed / 400 < 0.145
