import numpy as np
import pytest

from sigmascale._support.labels import Categories
from sigmascale.bins.partitions import sum_by_code
from sigmascale.judging.detectability import smallest_seen
from sigmascale.judging.scans import (
    ScannedRows,
    ScannedVariable,
    shift_scan,
    variance_ratios,
    variance_scan,
)
from sigmascale.predictions import as_predictions

RNG = np.random.default_rng(1)
N = 1000
X = RNG.normal(size=N)
Z2 = RNG.normal(size=N) ** 2


def sums_of(variable, values=Z2):
    return sum_by_code(variable.codes, values, variable.n_bins)[None]


def test_numbers_are_cut_into_fifty_bins_and_equal_ones_never_parted():
    variable = ScannedVariable.of("x", X)
    assert variable.n_bins == 50
    assert set(variable.sizes) <= {19, 20, 21}
    few = ScannedVariable.of("x", np.round(X))
    assert few.n_bins == np.unique(np.round(X)).size
    assert few.low.tolist() == few.high.tolist()


def test_labels_have_a_bin_each_but_rare_ones_share_one():
    labels = np.array(["a"] * 600 + ["b"] * 370 + [f"rare {i}" for i in range(30)])
    variable = ScannedVariable.of("kind", Categories.of(labels))
    assert variable.labels == ("a", "b", "rare labels")
    assert variable.sizes.tolist() == [600, 370, 30]


def test_the_statistic_is_the_largest_likelihood_ratio_over_runs():
    variable = ScannedVariable.of("x", X)
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
    assert variance_scan(variable, sums_of(variable))[0] == pytest.approx(best)


def test_the_statistic_of_labels_is_the_largest_over_all_sets_of_them():
    labels = RNG.choice(list("abcde"), N)
    variable = ScannedVariable.of("kind", Categories.of(labels))
    best = 0.0
    for subset in range(1, 31):
        inside = np.isin(labels, [c for i, c in enumerate("abcde") if subset >> i & 1])
        ratio = sum(
            -part.sum() * np.log(Z2[part].mean() / Z2.mean())
            for part in (inside, ~inside)
        )
        best = max(best, ratio)
    assert variance_scan(variable, sums_of(variable))[0] == pytest.approx(best)


def test_the_unit_of_z2_does_not_matter_and_zeros_do_no_harm():
    variable = ScannedVariable.of("x", X)
    same = variance_scan(variable, 7 * sums_of(variable))
    np.testing.assert_allclose(same, variance_scan(variable, sums_of(variable)))
    silent = sums_of(variable, np.where(X < 0, 0.0, Z2))
    assert np.isfinite(variance_ratios(variable, silent)).all()


def test_a_shift_is_measured_in_units_of_its_spread_by_chance():
    variable = ScannedVariable.of("x", X)
    noise = [
        shift_scan(variable, sums_of(variable, z - z.mean()), 1.0)[0]
        for z in RNG.normal(size=(100, N))
    ]
    assert 4 < np.median(noise) < 12
    shifted = RNG.normal(size=N) + np.where(X > 1, 1.0, 0.0)
    found = shift_scan(variable, sums_of(variable, shifted - shifted.mean()), 1.0)[0]
    assert found > 50


def test_sums_of_all_variables_come_at_once():
    labels = RNG.choice(["a", "b"], N)
    rows = as_predictions(RNG.normal(size=N), np.ones(N), {"x": X, "kind": labels})
    variables = [
        ScannedVariable.of(name, rows.labels(name) if rows.is_labelled(name) else x)
        for name, x in zip(rows.names, rows.columns, strict=True)
    ]
    scanned = ScannedRows(rows, variables)
    values = RNG.normal(size=(N, 3))
    for variable, found in zip(variables, scanned.sums(values), strict=True):
        for k in range(3):
            expected = sum_by_code(variable.codes, values[:, k], variable.n_bins)
            np.testing.assert_allclose(found[k], expected, atol=1e-12)
    assert np.mean(np.abs(rows.errors) > scanned.reach) == pytest.approx(0.05, abs=2e-3)


def test_what_would_be_seen_is_smaller_for_more_rows_and_a_lower_limit():
    def seen(n, critical):
        variable = ScannedVariable.of("x", np.arange(n, dtype=float))
        z2 = np.random.default_rng(0).normal(size=(100, n)) ** 2
        sums = np.array([sums_of(variable, each)[0] for each in z2])
        return smallest_seen(variable, sums, critical, np.random.default_rng(0))

    assert seen(10_000, 20) < seen(1000, 20) < seen(300, 20)
    assert seen(1000, 15) <= seen(1000, 30)
    assert seen(60, 1e4) == np.inf
