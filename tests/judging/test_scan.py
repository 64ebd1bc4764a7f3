import numpy as np
import pytest

from sigmascale import validate
from sigmascale.judging import scan
from sigmascale.judging.scan import Compared, Scale, Scan, Shift
from sigmascale.predictions import as_predictions

ROWS = np.random.default_rng(8)
COUNT = 3000
U = ROWS.uniform(1, 2, COUNT)
BY = ROWS.uniform(0, 100, COUNT)
ERROR = U * ROWS.normal(size=COUNT)
KIND = ROWS.choice(["a", "b", "c"], COUNT)


def scanned(error, u, features, n_draws=100, level=0.05, seed=0, **more):
    rows = as_predictions(error, u, features, more.get("groups"), None)
    rng = np.random.default_rng(seed)
    held = {"95": np.abs(rows.z) < np.quantile(np.abs(rows.z), 0.95)}
    return Scan.of(rows, held, n_draws, level, rng, 0)


# --- intervals -----------------------------------------------------------------------


@pytest.mark.parametrize("measure", [Scale(), Shift(1.3)])
def test_an_interval_excludes_what_is_right_where_the_difference_is_critical(measure):
    rng = np.random.default_rng(0)
    n, total = 1000.0, 1100.0
    n1 = rng.uniform(10, 990, 300)
    s1 = n1 * rng.uniform(0.3, 1.8, 300)
    s1 = np.minimum(s1, 0.99 * total)
    critical = rng.uniform(1, 40, 300)
    right = 1.0 if isinstance(measure, Scale) else 0.0
    value, low, high = measure.limits(n1, s1, n, total, critical)
    assert ((low < value) & (value < high)).all()
    excluded = (low > right) | (high < right)
    found = measure.ratios(n1, s1, n, total)
    np.testing.assert_array_equal(excluded, found > critical)
    assert 30 < excluded.sum() < 270


def test_limits_of_the_factor_are_where_the_likelihood_ratio_is_critical():
    n1, n, total = np.array([200.0]), 1000.0, 1000.0
    critical = np.array([12.0])
    value, low, high = Scale().limits(n1, np.array([300.0]), n, total, critical)
    assert value**2 == pytest.approx(1.5)
    for factor in (low[0], high[0]):
        # the ratio to the rest that makes this factor relative to all rows
        theta = 0.8 * factor**2 / (1 - 0.2 * factor**2)
        without = 300.0 / theta
        ratio = Scale().ratios(n1, np.array([without]), n, without + 700.0)
        assert ratio == pytest.approx(12.0, rel=1e-6)


def test_the_true_factors_of_all_regions_are_within_their_limits_at_once():
    missed = 0
    for seed in range(60):
        rng = np.random.default_rng([3, seed])
        x = np.linspace(0, 1, 600)
        true = np.exp(0.6 * x)
        found = scanned(rng.normal(size=600) * true, np.ones(600), {"x": x}, seed=seed)
        band = found.bands["x"][0]
        start, stop, _ = band.variable.runs
        _, low, high = band.regions
        squares = np.append(0, np.cumsum(band.variable.sums(true**2)))
        expected = (squares[stop] - squares[start]) / band.n / np.mean(true**2)
        missed += bool(((low > expected**0.5) | (high < expected**0.5)).any())
    assert missed <= 9  # 3 are expected


def test_a_picture_holds_the_smallest_regions_that_matter():
    found = validate(ERROR, U, {"by": BY, "kind": KIND}, joint=False, n_draws=60)
    band = found.verdicts["by"].band
    assert ((band.n >= 298) & (band.n < 330)).all()
    assert band.x_min[0] == BY.min()
    assert band.x_max[-1] == BY.max()
    assert (np.diff(band.x_min) > 0).all()
    for low, high, n in zip(band.x_min, band.x_max, band.n, strict=True):
        assert np.sum((low <= BY) & (high >= BY)) == n
    limits = found.verdicts["by"].limits
    assert limits[0] <= band.low.min() < 1 < band.high.max() <= limits[1]
    kinds = found.verdicts["kind"].band
    assert kinds.x_min.tolist() == ["a", "b", "c"]
    z2 = (ERROR / U) ** 2
    expected = [np.sqrt(z2[k == KIND].mean() / z2.mean()) for k in "abc"]
    np.testing.assert_allclose(kinds.factor, expected)


# --- shuffled sets -------------------------------------------------------------------


@pytest.mark.parametrize("heavy", [False, True])
def test_sums_that_are_drawn_are_like_those_of_shuffled_rows(monkeypatch, heavy):
    rng = np.random.default_rng(1)
    n = 6000
    u, x = rng.gamma(3, 1, n), rng.normal(size=n)
    z = rng.standard_t(3, n) if heavy else rng.normal(size=n)
    drawn = scanned(u * z, u, {"x": x}, n_draws=600)
    monkeypatch.setattr(scan, "EXACT_ROWS", n)
    exact = scanned(u * z, u, {"x": x}, n_draws=600)
    for name in ("x", "bias"):
        found, expected = (each.bands[name][-1].critical for each in (drawn, exact))
        # critical values of heavy tails vary much: cube roots are about normal
        np.testing.assert_allclose(np.cbrt(found), np.cbrt(expected), rtol=0.12)


def test_one_question_of_many_fails_by_chance_as_often_as_the_level_says():
    rng, failed = np.random.default_rng(0), 0
    for _ in range(400):
        draws = rng.gamma(2, 1, (8, 200))
        names = ["a", "a", "b", "c", "c", "c", "d", "e"]
        tests = Compared(names, draws[:, 0], draws[:, 1:], 0.1)
        assert set(tests.p) == set("abcde")
        failed += min(tests.p.values()) <= 0.1
    assert 0.06 < failed / 400 < 0.145


def test_a_statistic_beyond_its_critical_value_is_significant():
    draws = np.random.default_rng(0).gamma(2, 1, (3, 199))
    first = Compared(["a", "b", "b"], np.ones(3), draws, 0.05)
    limits = first.critical("b", slice(1, 3))
    for factor, significant in ((1.001, True), (0.999, False)):
        for at in (1, 2):
            observed = np.ones(3)
            observed[at] = limits[at - 1] * factor
            found = Compared(["a", "b", "b"], observed, draws, 0.05)
            assert (found.p["b"] <= 0.05) == significant


# --- the worst region ----------------------------------------------------------------


def worst(error, by=BY):
    settings = {"joint": False, "n_draws": 100, "method": "moments"}
    return validate(error, U, {"by": by}, **settings).verdicts["by"].region


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
    assert found.factor == pytest.approx(np.sqrt(found.zms / z2.mean()))
    assert found.interval[0] < found.factor < found.interval[1]
    direction = "too small" if factor > 1 else "too large"
    assert f"{direction} (multiply by {found.factor:.2g})" in found.sentence


def test_heavy_tails_do_not_hide_the_region():
    hits = 0
    for seed in range(20):
        rng = np.random.default_rng([9, seed])
        error = U * rng.standard_t(5, COUNT) * np.where(BY > 66, 1.5, 1.0)
        found = worst(error / np.sqrt(5 / 3))
        hits += found is not None and abs((found.low or found.high) - 66) < 6
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
    # 6 rows that are 1.6 times too large by chance, against 1,000 that surely are wrong
    labels = np.where(np.arange(COUNT) < 6, "few", np.where(BY < 66, "many", "rest"))
    error = np.where(labels == "rest", 1.3, 1.0) * ERROR
    error[:6] = 1.6 * U[:6] * [1.2, -0.7, 1.0, -1.1, 0.8, 1.0]
    assert "rest" in worst(error, by=labels).where


@pytest.mark.parametrize("by", [BY, KIND])
@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.ZeroErrorBinWarning")
def test_a_region_without_any_error_is_the_worst_and_its_zms_is_0(by):
    silent = BY < 30 if by is BY else KIND == "a"
    found = worst(np.where(silent, 0.0, ERROR), by=by)
    assert found.zms == 0
    assert "(all errors are 0)" in found.sentence
    assert found.where.startswith("by below 2" if by is BY else "by = a")
