"""What `validate` finds: results, the subgroups that decide, and their limits."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale._support.notices import quiet
from sigmascale.exceptions import InvalidInputError, SharedRowsWarning
from sigmascale.validation import combinations

GOLDEN = Path(__file__).parent / "golden.json"
KINDS = ["alloy", "glass", "oxide", "salt", "steel"]


def columns(n, rng):
    """Return u, features and normal z-scores."""
    u, kind = rng.gamma(3, 1, n), rng.choice(KINDS, n)
    features = {"mass": rng.gamma(2, 30, n), "T": rng.normal(300, 80, n), "kind": kind}
    return u, features, rng.normal(size=n)


def rows(n=3000, seed=0, factor=None, bias=None, **others):
    """Return predictions; `factor` and `bias` are functions of u and the features."""
    u, x, z = columns(n, np.random.default_rng(seed))
    z = z * (1 if factor is None else factor(u, x))
    z = z + (0 if bias is None else bias(u, x))
    return ss.Predictions(error=u * z, y_std=u, features=x, **others)


def upper(x, share=0.7):
    """Return which values are the largest."""
    return x > np.quantile(x, share)


def student(rng, n, df):
    """Return z-scores of Student's t, of mean square 1."""
    return rng.standard_t(df, n) * np.sqrt((df - 2) / df)


def lognormal(rng, n):
    """Return centred lognormal z-scores of mean square 1."""
    return (np.exp(rng.normal(size=n)) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)


def of_the_golden_file():
    """Yield twelve sets by name: all that checks tell apart is in one of them."""

    def rng(i):
        return np.random.default_rng([62, i])

    def u_and_x(i, n):
        return rng(i).gamma(3, 1, n), {"x": rng(i + 100).normal(size=n)}

    yield "right", rows(1200)
    yield "label", rows(factor=lambda u, x: np.where(x["kind"] == "alloy", 2, 1))
    u, x = u_and_x(1, 900)
    yield (
        "student",
        ss.Predictions(error=u * student(rng(2), 900, 3), y_std=u, features=x),
    )
    yield (
        "lognormal",
        ss.Predictions(error=u * lognormal(rng(3), 900), y_std=u, features=x),
    )
    yield "bias", rows(bias=lambda u, x: np.where(upper(x["mass"]), 0.6, 0))
    groups = np.repeat(np.arange(200), 5)
    shared = rng(4).normal(size=200)[groups]
    u, x = u_and_x(5, 1000)
    error = u * (0.7 * shared + 0.7 * rng(6).normal(size=1000))
    yield "groups", ss.Predictions(error=error, y_std=u, features=x, groups=groups)
    weights = np.exp(rng(7).normal(size=1000))
    error = u * rng(8).normal(size=1000)
    yield "weights", ss.Predictions(error=error, y_std=u, features=x, weights=weights)
    u = rng(9).gamma(3, 1, 800)
    error = rng(10).normal(size=(800, 3)) * u[:, None]
    yield "vectors", ss.Predictions(error=error, y_std=u, features={"v": u[::-1]})
    n = 2500
    a, b = rng(11).normal(size=(2, n))
    ridge = np.abs(a - b) < np.quantile(np.abs(a - b), 0.2)
    u = rng(12).choice([0.5, 1, 2, 4], n)
    error = u * rng(13).normal(size=n) * np.where(ridge, 1.8, 1)
    yield "ridge", ss.Predictions(error=error, y_std=u, features={"a": a, "b": b})
    labels = np.where(np.arange(n) < 300, np.arange(n) // 12, -1).astype(str)
    day = np.datetime64("2026-01-01") + np.arange(n)
    p = ss.Predictions(error=error, y_std=u, features={"station": labels}, time=day)
    yield "rare labels and days", p
    known, new = rows(800, seed=5), rows(700, seed=6)
    yield "intervals", ss.Recalibrator().fit(known).apply(new)
    yield "few", rows(60)


@pytest.fixture(scope="module")
def alloy():
    """u is half of what it should be for alloys."""
    return ss.validate(rows(factor=lambda u, x: np.where(x["kind"] == "alloy", 2, 1)))


@pytest.fixture(scope="module")
def right():
    """Nothing is wrong, and rows are many."""
    return ss.validate(rows(30_000))


def follows_from_limits(v):
    """Assert that estimates lie within limits, and results follow from these."""
    for check in v.checks.values():
        low, high = check.accepted
        subgroups = [check.subgroup, check.all_rows, *check.subgroups]
        for s in filter(None, subgroups):
            assert s.low <= s.estimate <= s.high, (check.name, s)
            inside = low <= s.low and s.high <= high
            outside = s.low > high or s.high < low
            expected = "pass" if inside else "FAIL" if outside else "inconclusive"
            assert s.result == expected
        decides = check.subgroup
        if decides is not None and not check.note and check.counts:
            assert decides.result == check.result
            assert decides.is_simultaneous == (check.result != "pass")


# -- results ---------------------------------------------------------------------------


def test_a_fault_of_one_label_is_found_wherever_it_is_told(alloy):
    assert alloy.result == "FAIL"
    assert not alloy.passed
    for name in ("adaptivity: kind", "combinations", "coverage"):
        check = alloy.checks[name]
        assert check.result == "FAIL"
        # trees may describe rows by conditions
        (condition,) = check.subgroup.described or check.subgroup.conditions
        assert (condition.column, condition.labels) == ("kind", ("alloy",))
    check = alloy.checks["adaptivity: kind"]
    is_alloy = alloy.rows.features["kind"] == "alloy"
    assert np.array_equal(alloy.rows_of(check.subgroup), is_alloy)
    assert check.subgroup.n_rows == np.count_nonzero(is_alloy)
    assert check.subgroup.share == pytest.approx(is_alloy.mean())
    z = alloy.rows.z[is_alloy]
    assert check.subgroup.estimate == pytest.approx(np.sqrt(np.mean(z**2)))
    assert check.subgroup.low < 2 < check.subgroup.high
    assert not check.same_as_all_rows
    covered = np.mean(np.abs(z) <= stats.norm.ppf(0.975))
    assert alloy.checks["coverage"].subgroup.estimate == pytest.approx(covered)


def test_a_right_u_passes_once_rows_are_many(right):
    assert right.passed
    for check in right.checks.values():
        if check.kind == "combinations":
            assert check.result == "no fault found"
            assert not check.counts
        else:
            assert check.passed
            assert not check.subgroup.is_simultaneous
    counted = [c.bound for c in right.checks.values() if c.counts and c.unit != "u"]
    assert right.bound == max(counted) < right.tolerance
    assert right.rows_needed is None


def test_results_follow_from_limits_and_the_accepted_range(alloy, right):
    follows_from_limits(alloy)
    follows_from_limits(right)
    for seed in range(12):
        scale = np.exp(np.random.default_rng(seed).normal(scale=0.3))
        change = lambda u, x, s=scale: np.where(upper(x["mass"], 0.9), 1.6, s)  # noqa: E731
        follows_from_limits(ss.validate(rows(150 * (seed + 1), seed, factor=change)))


def test_accepted_ranges_are_those_of_normal_errors():
    v = ss.validate(rows(300), tolerance=1.25, coverage=0.9)
    assert v.checks["calibration"].accepted == pytest.approx((0.8, 1.25))
    assert v.checks["bias"].accepted == pytest.approx((-1 / 3, 1 / 3))
    z = stats.norm.ppf(0.95)
    shares = [2 * stats.norm.cdf(z / t) - 1 for t in (1.25, 0.8)]
    assert v.checks["coverage"].accepted == pytest.approx(shares)
    assert v.checks["coverage"].ideal == pytest.approx(0.9)
    error = np.random.default_rng(0).normal(size=(300, 3))
    balls = ss.validate(ss.Predictions(error=error, y_std=np.linspace(1, 1.1, 300)))
    radius = stats.chi(3).ppf(0.95)
    shares = [stats.chi(3).cdf(radius / t) for t in (1.25, 0.8)]
    assert balls.checks["coverage"].accepted == pytest.approx(shares)


def test_limits_do_not_depend_on_the_tolerance():
    p = rows(factor=lambda u, x: np.where(upper(x["mass"]), 1.3, 1))
    narrow, wide = (ss.validate(p, tolerance=t) for t in (1.05, 3.0))
    for name, check in narrow.checks.items():
        assert check.bound == pytest.approx(wide.checks[name].bound)
        for one, other in zip(
            check.subgroups, wide.checks[name].subgroups, strict=True
        ):
            assert (one.low, one.high) == pytest.approx((other.low, other.high))


def test_a_misfit_within_the_tolerance_passes():
    v = ss.validate(rows(60_000, factor=lambda u, x: 1.06))
    assert v.passed
    assert v.checks["calibration"].subgroup.low > 1.03
    assert v.checks["adaptivity: mass"].same_as_all_rows
    with_less = ss.validate(rows(60_000, factor=lambda u, x: 1.06), tolerance=1.02)
    assert with_less.checks["calibration"].result == "FAIL"


def test_few_rows_are_inconclusive_and_tell_how_many_would_pass():
    def normal(n, seed):
        rng = np.random.default_rng([19, seed])
        u = rng.gamma(3, 1, n)
        return ss.validate(ss.Predictions(error=u * rng.normal(size=n), y_std=u))

    found = [normal(500, seed) for seed in range(8)]
    needed = [v.rows_needed for v in found if v.rows_needed is not None]
    assert len(needed) >= 4
    assert 600 < min(needed) <= max(needed) < 2500
    assert sum(normal(needed[0], seed).passed for seed in range(10, 20)) >= 6
    off = ss.validate(rows(300, factor=lambda u, x: 1.24))
    assert off.rows_needed is None
    assert ss.validate(rows(factor=lambda u, x: 2)).rows_needed is None


def test_faults_downwards_and_of_a_number_are_found_with_place_and_size():
    def factor(u, x):
        return np.where(upper(x["mass"], 0.8), 0.5, 1)

    check = ss.validate(rows(6000, factor=factor)).checks["adaptivity: mass"]
    assert check.result == "FAIL"
    (condition,) = check.subgroup.conditions
    assert condition.high is None
    assert condition.low > 60
    assert check.subgroup.low < 0.5 < check.subgroup.high < 0.8


def test_an_interaction_that_no_column_shows_alone_is_found():
    def factor(u, x):
        is_odd = upper(x["mass"], 0.5) == upper(x["T"], 0.5)
        return np.where(is_odd, 1.8, 0.55)

    v = ss.validate(rows(4000, factor=factor))
    assert v.checks["combinations"].result == "FAIL"
    assert v.checks["combinations"].counts
    assert v.checks["adaptivity: mass"].same_as_all_rows
    assert v.checks["combinations"].subgroup.column in ("mass + T", "mass − T")
    inside = v.rows_of(v.checks["combinations"].subgroup)
    is_odd = factor(v.rows.y_std, v.rows.features) > 1
    assert np.mean(is_odd[inside]) > 0.9


def test_a_ridge_between_two_columns_is_found_and_named(monkeypatch):
    rng = np.random.default_rng(3)
    a = rng.normal(size=10_000)
    b = 0.8 * a + 0.6 * rng.normal(size=10_000)
    ridge = np.abs(a - b)
    z = rng.normal(size=10_000) * np.where(ridge < np.quantile(ridge, 0.2), 1.5, 1)
    u = rng.gamma(3, 1, 10_000)
    p = ss.Predictions(error=u * z, y_std=u, features={"a": a, "b": b})
    v = ss.validate(p)
    found = v.checks["combinations"]
    assert found.result == "FAIL"
    assert found.subgroup.column == "a − b"
    inside = v.rows_of(found.subgroup)
    assert np.mean(ridge[inside] < np.quantile(ridge, 0.3)) > 0.8
    assert found.subgroup.share == pytest.approx(inside.mean())
    # of more rows than are looked at, the share is still that of all
    monkeypatch.setattr(combinations, "MOST_TESTED", 5000)
    of_some = ss.validate(p)
    subgroup = of_some.checks["combinations"].subgroup
    n_found = np.count_nonzero(of_some.rows_of(subgroup))
    assert subgroup.share == pytest.approx(n_found / 5000, rel=0.05)


def test_features_may_be_called_as_combinations_are():
    rng = np.random.default_rng(3)
    n = 8000
    a, b, noise, x = rng.normal(size=(4, n))
    b = 0.8 * a + 0.6 * b
    ridge = np.abs(a - b)
    is_near = ridge < np.quantile(ridge, 0.2)
    features = {"a": a, "b": b, "a − b": noise, "combinations": x}

    def validated(is_wrong):
        u = rng.gamma(3, 1, n)
        error = u * rng.normal(size=n) * np.where(is_wrong, 1.5, 1)
        return ss.validate(ss.Predictions(error=error, y_std=u, features=features))

    v = validated(x > 1)
    found = v.checks["adaptivity: combinations"].subgroup
    assert found.where.startswith("combinations ≥ ")
    assert found.where in str(v)
    assert np.mean(x[v.rows_of(found)] > 0.9) > 0.9
    v = validated(is_near)
    found = v.checks["combinations"].subgroup
    assert found.where.startswith("a − b ")
    assert found.where.endswith(" (ranks)")
    assert np.mean(is_near[v.rows_of(found)]) > 0.7


def test_a_local_bias_is_found_beside_a_global_one():
    v = ss.validate(
        rows(bias=lambda u, x: np.where(x["kind"] == "salt", -0.9, 0.1)),
        scope="intervals",
    )
    check = v.checks["bias"]
    assert check.result == "FAIL"
    assert check.subgroup.conditions[0].labels == ("salt",)
    assert check.subgroup.estimate == pytest.approx(-0.9, abs=0.12)
    assert check.all_rows.low < -0.1 < check.all_rows.high
    everywhere = ss.validate(rows(bias=lambda u, x: 0.8)).checks["bias"]
    assert everywhere.result == everywhere.all_rows.result == "FAIL"
    assert everywhere.same_as_all_rows


def test_time_is_a_column_unless_a_feature_has_its_name():
    n = 4000
    u, x, z = columns(n, np.random.default_rng(8))
    late = np.arange(n) > 0.8 * n
    day = np.datetime64("2024-01-01") + np.arange(n)
    p = ss.Predictions(
        error=u * z * np.where(late, 1.7, 1), y_std=u, features=x, time=day
    )
    check = ss.validate(p).checks["adaptivity: time"]
    assert check.result == "FAIL"
    assert check.is_time
    assert check.subgroup.conditions[0].low.startswith("2032")
    assert p.time[ss.validate(p).rows_of(check.subgroup)].min() > p.time[int(0.7 * n)]
    hour = ss.Predictions(error=u * z, y_std=u, features={"time": x["T"]}, time=day)
    checks = ss.validate(hour).checks
    assert not checks["adaptivity: time"].is_time
    assert checks["adaptivity: time of the rows"].is_time


def test_a_scope_says_what_is_tested():
    p = rows(400)
    columns = ["consistency", *(f"adaptivity: {x}" for x in ("mass", "T", "kind"))]
    of_u = ["calibration", *columns, "combinations"]
    assert list(ss.validate(p, scope="u").checks) == [*of_u, "bias"]
    assert list(ss.validate(p, scope="intervals").checks) == ["coverage", "bias"]
    assert list(ss.validate(p).checks) == [*of_u, "coverage", "bias"]
    assert ss.validate(p, scope="intervals").variation is None


def test_coverage_is_that_of_the_intervals_that_were_asked_for():
    rng = np.random.default_rng(6)
    u = rng.gamma(3, 1, 4000)
    z = np.where(rng.random(4000) < 0.9, 0.4, 2.5) * rng.choice([-1, 1], 4000)
    p = ss.Predictions(error=u * z, y_std=u)
    assert ss.validate(p, coverage=0.9, scope="intervals").checks["coverage"].passed
    of_half = ss.validate(p, coverage=0.5, scope="intervals").checks["coverage"]
    assert of_half.result == "FAIL"
    assert of_half.all_rows.estimate == pytest.approx(0.9, abs=0.02)


# -- few rows, odd rows, groups, weights -----------------------------------------------


def test_labels_too_rare_to_test_alone_never_pass():
    rng = np.random.default_rng(1)
    n = 30_000
    u = rng.gamma(3, 1, n)

    def tested(n_rare, size, factor=1.0):
        label = rng.choice(["a", "b", "c"], n).astype(object)
        for i in range(n_rare):
            label[i * size : (i + 1) * size] = f"rare {i}"
        z = rng.normal(size=n) * np.where(np.arange(n) < n_rare * size, factor, 1)
        p = ss.Predictions(error=u * z, y_std=u, features={"label": label})
        return ss.validate(p).checks["adaptivity: label"]

    assert tested(1, 15).passed  # too few rows to matter
    together = tested(40, 15, 3.0)
    assert together.result == "FAIL"
    assert together.subgroup.conditions[0].labels == ("rare labels",)
    assert tested(300, 15).passed  # 15 % of the rows, together
    left = tested(500, 15)
    assert left.result == "inconclusive"
    assert left.note == "rare labels"
    assert left.note_share == pytest.approx(0.25)
    assert tested(500, 15, 3.0).result == "FAIL"


def test_a_flag_is_told_by_its_value():
    rng = np.random.default_rng(3)
    u, flag = rng.gamma(3, 1, 5000), (rng.random(5000) < 0.04).astype(float)
    z = rng.normal(size=5000) * np.where(flag > 0, 2.5, 1)
    v = ss.validate(ss.Predictions(error=u * z, y_std=u, features={"flag": flag}))
    (condition,) = v.checks["adaptivity: flag"].subgroup.conditions
    assert (condition.low, condition.high) == (1.0, 1.0)


def test_too_few_rows_or_no_errors_tell_nothing():
    for n in (1, 2, 19):
        v = ss.validate(rows(n))
        assert v.result == "inconclusive"
        assert v.variation is None
        assert all(x.note == "few units" for x in v.checks.values() if x.counts)
        assert v.bound == math.inf
    groups = np.arange(200) // 20
    v = ss.validate(rows(200, groups=groups))
    assert {x.note for x in v.checks.values() if x.counts} == {"few units"}
    zeros = ss.Predictions(error=np.zeros(50), y_std=np.linspace(1, 2, 50))
    assert ss.validate(zeros).result == "inconclusive"


def test_checks_are_the_same_whether_or_not_anything_can_be_told():
    rng = np.random.default_rng(0)
    for n, error in (
        (300, rng.normal(size=300)),
        (300, np.zeros(300)),
        (5, np.ones(5)),
    ):
        x = np.arange(n)
        p = ss.Predictions(y_std=1 + x, error=error, features={"x": x}, time=x)
        names = [*ss.validate(p).checks]
        expected = ["calibration", "consistency", "adaptivity: x", "adaptivity: time"]
        assert names == [*expected, "combinations", "coverage", "bias"]


def test_a_column_of_one_value_is_all_rows():
    z = np.random.default_rng(2).normal(size=30_000)
    p = ss.Predictions(error=z, y_std=np.ones(z.size), features={"x": np.ones(z.size)})
    with quiet():
        v = ss.validate(p)
    assert v.passed
    assert "combinations" not in v.checks
    x = v.checks["adaptivity: x"]
    assert x.subgroup.estimate == pytest.approx(
        v.checks["calibration"].subgroup.estimate
    )
    assert x.same_as_all_rows


def test_u_that_is_off_by_powers_of_ten_is_tested():
    u = np.random.default_rng(0).lognormal(size=400)
    kind = np.resize(["a", "b"], 400)
    for factor in (1e-100, 1e-6, 1.0, 2.0, 1e6, 1e30):
        with quiet():
            p = ss.Predictions(y_std=u, error=factor * u, features={"kind": kind})
            v = ss.validate(p)
        assert v.checks["calibration"].subgroup.estimate == pytest.approx(factor)
        assert v.checks["calibration"].result == ("pass" if factor == 1 else "FAIL")
        follows_from_limits(v)
        json.dumps(v.to_dict())


def test_groups_count_and_not_their_rows():
    rng = np.random.default_rng(4)
    u, x, z = columns(150, rng)
    often = np.repeat(np.arange(150), 20)
    x = {name: column[often] for name, column in x.items()}
    p = ss.Predictions(error=(u * z)[often], y_std=u[often], features=x, groups=often)
    v = ss.validate(p)
    once = ss.validate(ss.Predictions(error=u * z, y_std=u))
    assert v.n_units == 150
    assert v.result == "inconclusive"
    width = [w.checks["calibration"].all_rows for w in (v, once)]
    assert width[0].high == pytest.approx(width[1].high, rel=0.1)


def test_suspected_repeats_make_every_check_inconclusive():
    g = np.repeat(np.arange(60), 25)
    rng = np.random.default_rng(5)
    u, x = rng.gamma(9, 0.1, 60)[g], rng.normal(size=60)[g]
    error = u * (0.8 * rng.normal(size=60)[g] + 0.6 * rng.normal(size=1500)) * 3
    with quiet():
        v = ss.validate(ss.Predictions(error=error, y_std=u, features={"x": x}))
    assert v.doubt == "repeats"
    assert v.repeats
    assert {c.result for c in v.checks.values()} <= {"inconclusive", "not tested"}
    assert {c.note for c in v.checks.values() if c.counts} == {"repeats"}
    named = ss.Predictions(error=error, y_std=u, features={"x": x}, groups=g)
    assert ss.validate(named).checks["calibration"].result == "FAIL"


def test_weights_are_those_of_the_population():
    u, x, z = columns(6000, np.random.default_rng(5))
    heavy = upper(x["mass"], 0.5)
    p = ss.Predictions(
        error=u * z * np.where(heavy, 1.6, 1.0),
        y_std=u,
        features=x,
        weights=np.where(heavy, 9.0, 1.0),
    )
    check = ss.validate(p).checks["calibration"]
    assert check.subgroup.estimate == pytest.approx(
        np.sqrt(0.9 * 1.6**2 + 0.1), rel=0.05
    )


def test_the_seed_alone_matters():
    p = rows(800, factor=lambda u, x: np.where(upper(x["mass"]), 1.5, 1))
    first, again = ss.validate(p).to_dict(), ss.validate(p).to_dict()
    assert first == again
    order = np.random.default_rng(1).permutation(800)
    shuffled = ss.validate(p.take(order)).to_dict()
    assert json.dumps(first) == json.dumps(shuffled)
    other = ss.validate(p, rng=1).to_dict()
    assert other["checks"]["adaptivity: mass"] != first["checks"]["adaptivity: mass"]


def test_vectors_are_asked_about_balls_and_not_about_bias():
    rng = np.random.default_rng(6)
    n = 3000
    u, kind = rng.gamma(3, 1, n), rng.choice(["C", "H", "O"], n)
    error = rng.normal(size=(n, 3)) * (u * np.where(kind == "O", 1.7, 1))[:, None]
    v = ss.validate(ss.Predictions(error=error, y_std=u, features={"kind": kind}))
    assert "bias" not in v.checks
    subgroup = v.checks["adaptivity: kind"].subgroup
    assert subgroup.conditions[0].labels == ("O",)
    assert subgroup.estimate == pytest.approx(1.7, rel=0.06)


def test_bad_arguments_are_refused():
    p = rows(100)
    for tolerance in (1, 0.5, "2", math.inf, True):
        with pytest.raises(InvalidInputError, match="tolerance"):
            ss.validate(p, tolerance=tolerance)
    for name, value in (("confidence", 1.0), ("coverage", 0.0), ("rng", "seed")):
        with pytest.raises(InvalidInputError, match=name):
            ss.validate(p, **{name: value})
    with pytest.raises(InvalidInputError, match="scope"):
        ss.validate(p, scope="U")


def test_rows_that_were_fitted_leave_doubt():
    p = rows(500)
    r = ss.Recalibrator(ss.TemperatureScaling()).fit(p)
    with pytest.warns(SharedRowsWarning, match="test it on others"):
        v = ss.validate(r.apply(p))
    assert v.doubt == "fitted"
    assert v.result == "inconclusive"
    assert not ss.validate(r.apply(rows(500, seed=1))).doubt


# -- what stands beside ----------------------------------------------------------------


def test_what_u_is_worth_is_its_order_alone():
    rng = np.random.default_rng(0)
    sigma = rng.lognormal(0, 0.5, 3000)
    error = sigma * rng.normal(size=3000)
    gains = []
    for power in (1, 2, 3, 4):
        v = ss.validate(ss.Predictions(error=error, y_std=sigma**power))
        gains.append(v.gain_of_u.value)
    assert gains == pytest.approx([gains[0]] * 4, abs=0.3)
    assert 4 < gains[0] < 7
    noise = ss.Predictions(error=rng.normal(size=3000), y_std=sigma)
    gain = ss.validate(noise).gain_of_u
    assert gain.low < 0.1 < 0.2 + gain.high


def test_cost_is_what_recalibration_gains_on_held_out_rows():
    off = ss.validate(rows(1500, factor=lambda u, x: 2)).cost
    assert off.high < -2
    right = ss.validate(rows(1500)).cost
    assert abs(right.value) < 1


def test_variation_is_the_spread_of_rms_z_between_fifths():
    def factor(u, x):
        return np.where(upper(x["mass"], 0.8), 1.5, 1)

    found = ss.validate(rows(12_000, factor=factor)).variation
    true = np.std(np.log([1, 1, 1, 1, 1.5]))
    assert found.column == "mass"
    assert found.low < true < found.high
    assert found.sd == pytest.approx(true, rel=0.15)
    assert ss.validate(rows(12_000)).variation.low == 0


def test_rows_that_decide_are_named_as_they_came():
    u, x, z = columns(3000, np.random.default_rng(9))
    z[[118, 640, 902]] = [60, -50, 40]
    v = ss.validate(ss.Predictions(error=u * z, y_std=u, features=x))
    found = v.rows_that_decide
    assert found.rows[:3] == (118, 640, 902)
    assert found.abs_z[:3] == pytest.approx((60, 50, 40))
    z2 = np.sort(z**2)
    assert found.share_of_z2 == pytest.approx(z2[-30:].sum() / z2.sum())
    assert ss.validate(rows()).rows_that_decide is None


def test_a_few_enormous_errors_never_make_u_look_better():
    u, x, z = columns(1000, np.random.default_rng(14))
    z = 1.5 * z
    without = ss.validate(ss.Predictions(error=u * z, y_std=u, features=x))
    z[:2] = (200, -300)
    with quiet():
        v = ss.validate(ss.Predictions(error=u * z, y_std=u, features=x))
    low = without.checks["calibration"].all_rows.low
    assert low > 1.35
    assert v.checks["calibration"].all_rows.low > 0.85 * low


def test_checks_are_a_table_and_plain_data(alloy):
    frame = alloy.to_frame()
    assert list(frame["check"][:2]) == ["calibration", "consistency"]
    row = frame[frame["column"] == "kind"].iloc[0]
    assert row["result"] == "FAIL"
    assert row["low"] == alloy.checks["adaptivity: kind"].subgroup.low
    found = json.loads(json.dumps(alloy.to_dict()))
    assert found["checks"]["adaptivity: kind"]["subgroup"]["share"] == row["share"]


def test_subgroups_of_a_picture_cover_a_column_in_order(alloy):
    mass = alloy.checks["adaptivity: mass"].subgroups
    assert len(mass) == 10
    assert sum(s.n_rows for s in mass) == 3000
    starts = [s.conditions[0].low for s in mass]
    assert starts[0] is None
    assert starts[1:] == sorted(starts[1:])
    labels = [
        s.conditions[0].labels for s in alloy.checks["adaptivity: kind"].subgroups
    ]
    assert labels == [("alloy",), ("glass",), ("oxide",), ("salt",), ("steel",)]


def test_rows_needed_fall_with_the_tolerance_and_know_the_rows():
    wide = ss.rows_needed(tolerance=2.0, n_features=1)
    narrow = ss.rows_needed(tolerance=1.4, n_features=1)
    assert 100 < wide < narrow < 3000
    rng = np.random.default_rng(12)
    u, groups = rng.gamma(3, 1, 900), np.arange(900) // 3
    p = ss.Predictions(error=u * rng.normal(size=900), y_std=u, groups=groups)
    assert ss.rows_needed(p, tolerance=2.0) < 2 * wide
    with pytest.raises(InvalidInputError, match="n_features"):
        ss.rows_needed(n_features=-1)


# -- numbers ---------------------------------------------------------------------------


def numbers_of(v):
    """Return the bound, and estimate and limits of the subgroup, of each check."""
    found = {}
    for name, check in v.checks.items():
        s = check.subgroup
        of_subgroup = [] if s is None else [s.share, s.estimate, s.low, s.high]
        numbers = [check.bound, *of_subgroup]
        found[name] = [
            check.result,
            *(x if math.isfinite(x) else str(x) for x in numbers),
        ]
    return found


def test_numbers_are_those_of_the_golden_file():
    # to make it anew: python tests/validation/test_checks.py
    golden = json.loads(GOLDEN.read_text("utf-8"))
    for name, p in of_the_golden_file():
        with quiet():
            found = numbers_of(ss.validate(p))
        assert list(found) == list(golden[name])
        for check, (result, *numbers) in found.items():
            expected, *others = golden[name][check]
            assert result == expected, (name, check)
            for number, other in zip(numbers, others, strict=True):
                assert number == pytest.approx(other, rel=1e-9), (name, check)


# -- statistics ------------------------------------------------------------------------


def test_one_sided_limits_miss_as_often_as_they_say():
    # five labels of 200 rows each: 200 sets with 5 subgroups, and both sides
    missed = []
    for seed in range(100):
        rng = np.random.default_rng([41, seed])
        z = student(rng, 1000, 8)
        u = rng.gamma(3, 1, 1000)
        label = np.repeat(list("abcde"), 200)
        v = ss.validate(ss.Predictions(error=u * z, y_std=u, features={"label": label}))
        decides = v.checks["adaptivity: label"]
        missed.append(decides.bound < 1)  # all five are within less than nothing
        inside = [s.low <= 1 <= s.high for s in decides.subgroups]
        missed.append(not all(inside))
    assert sum(missed) <= 10


@pytest.mark.slow
def test_a_right_u_seldom_fails():
    wrong = []
    for seed in range(15):
        for draw in (
            np.random.Generator.standard_normal,
            lambda r, n: student(r, n, 3),
            lognormal,
        ):
            rng = np.random.default_rng([20, seed])
            u, x, _ = columns(1000, rng)
            p = ss.Predictions(error=u * draw(rng, 1000), y_std=u, features=x)
            with quiet():
                wrong.append(ss.validate(p, rng=seed).result == "FAIL")
        rng = np.random.default_rng([21, seed])
        u, x, _ = columns(200, rng)
        of = np.repeat(
            np.arange(200), np.minimum(1 + rng.pareto(1, 200), 100).astype(int)
        )
        z = np.sqrt(0.8) * rng.normal(size=200)[of] + np.sqrt(0.2) * rng.normal(
            size=of.size
        )
        x = {name: column[of] for name, column in x.items()}
        p = ss.Predictions(error=u[of] * z, y_std=u[of], features=x, groups=of)
        wrong.append(ss.validate(p, rng=seed).result == "FAIL")
    assert sum(wrong) <= 3


@pytest.mark.slow
def test_limits_of_the_bias_hold_where_large_errors_have_one_sign():
    missed = 0
    for seed in range(40):
        rng = np.random.default_rng([23, seed])
        u, x = rng.gamma(3, 1, 1000), rng.normal(size=1000)
        p = ss.Predictions(error=u * lognormal(rng, 1000), y_std=u, features={"x": x})
        with quiet():  # of one error that dominates
            v = ss.validate(p, scope="intervals", rng=seed)
        missed += not all(s.low <= 0 <= s.high for s in v.checks["bias"].subgroups)
    assert missed <= 3


@pytest.mark.slow
def test_limits_of_all_subgroups_hold_at_once():
    missed = 0
    for seed in range(25):
        rng = np.random.default_rng([22, seed])
        u, x, z = columns(2000, rng)
        factor = np.exp(0.3 * (x["T"] - 300) / 80) * np.where(
            x["kind"] == "salt", 1.4, 1
        )
        p = ss.Predictions(error=u * z * factor, y_std=u, features=x)
        v = ss.validate(p, rng=seed)
        for check in v.checks.values():
            for s in check.subgroups if check.statistic == "RMS z" else ():
                true = np.sqrt(np.mean(factor[v.rows_of(s)] ** 2))
                missed += not s.low <= true <= s.high
    assert missed <= 2


if __name__ == "__main__":
    with quiet():
        numbers = {name: numbers_of(ss.validate(p)) for name, p in of_the_golden_file()}
    GOLDEN.write_text(json.dumps(numbers, indent=1, ensure_ascii=False), "utf-8")
