"""Local <Z²> with its intervals: what they hold, and how often."""

import numpy as np
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import FewerBinsWarning, InvalidInputError

local_statistics = ss.scores.local_statistics
METHODS = ("bca", "moments")


def rows_of(z, u=None, **others):
    u = np.arange(1.0, z.size + 1) if u is None else u
    return ss.Predictions(y_std=u, error=z * u, **others)


def draw(n, seed=0, **others):
    rng = np.random.default_rng(seed)
    u, x = rng.lognormal(size=(2, n))
    return rows_of(rng.standard_t(6, n), u, features={"x": x}, **others)


def test_bins_hold_the_mean_and_the_range_of_their_rows():
    p = draw(500)
    for by in ("u", "x"):
        x = p.y_std if by == "u" else p.features["x"]
        order = np.argsort(x)
        result = local_statistics(p, by=by, n_bins=5)
        assert result.name == by
        for k, rows in enumerate(np.split(order, 5)):
            assert result.value[k] == pytest.approx(p.z2[rows].mean())
            assert (result.x_min[k], result.x_max[k]) == (x[rows].min(), x[rows].max())
            assert result.x[k] == np.sort(x[rows])[50]
            assert result.n[k] == 100
    mean, low, high = result.overall
    assert mean == pytest.approx(p.z2.mean())
    assert low < mean < high


def test_a_bin_is_valid_where_its_interval_holds_1():
    p = draw(3000)
    for method in METHODS:
        result = local_statistics(p, n_bins=60, method=method)
        inside = (result.low <= 1) & (result.high >= 1)
        np.testing.assert_array_equal(result.valid, inside)
        assert result.fraction_valid == inside.mean()
        low, high = result.fraction_interval
        exact = stats.binomtest(int(inside.sum()), 60).proportion_ci(0.95, "wilsoncc")
        assert (low, high) == pytest.approx((exact.low, exact.high))


def test_bca_agrees_with_scipy_up_to_the_noise_of_the_bootstrap():
    p = draw(600)
    for confidence in (0.8, 0.95):
        ours = local_statistics(p, n_bins=6, confidence=confidence, n_resamples=20_000)
        for k, rows in enumerate(np.split(np.argsort(p.y_std), 6)):
            theirs = stats.bootstrap(
                (p.z2[rows],),
                np.mean,
                confidence_level=confidence,
                n_resamples=20_000,
                vectorized=True,
                rng=np.random.default_rng(1),
            ).confidence_interval
            width = theirs.high - theirs.low
            assert ours.low[k] == pytest.approx(theirs.low, abs=0.04 * width)
            assert ours.high[k] == pytest.approx(theirs.high, abs=0.04 * width)


def test_moments_follow_the_published_formula_and_are_what_bca_tends_to():
    p = draw(1600)
    closed = local_statistics(p, n_bins=4, method="moments")
    for k, rows in enumerate(np.split(np.argsort(p.y_std), 4)):
        z2 = p.z2[rows]
        d = z2 - z2.mean()
        second = np.sum(d**2)
        a = np.sum(d**3) / (6 * second**1.5)
        for limit, w in ((closed.low[k], a - 1.959964), (closed.high[k], a + 1.959964)):
            expected = z2.mean() + w / (1 - a * w) ** 2 * np.sqrt(second) / z2.size
            assert limit == pytest.approx(expected, rel=1e-6)
    resampled = local_statistics(p, n_bins=4, n_resamples=20_000)
    width = closed.high - closed.low
    assert np.abs(resampled.low - closed.low).max() < 0.05 * width.min()
    assert np.abs(resampled.high - closed.high).max() < 0.15 * width.max()
    # of large bins, the closed form is taken at once
    large = draw(4000)
    assert local_statistics(large, n_bins=8).low.tolist() == (
        local_statistics(large, n_bins=8, method="moments").low.tolist()
    )


@pytest.mark.slow
def test_intervals_cover_the_truth_as_often_as_documented():
    # 139 rows a bin as on QM9: DESIGN's coverages of a nominal 0.95, within 4 sigma
    for df, expected in ((np.inf, 0.942), (6, 0.914), (4, 0.880)):
        rng = np.random.default_rng(0)
        z = rng.standard_normal((139, 3000))
        if np.isfinite(df):
            z = rng.standard_t(df, z.shape) * np.sqrt((df - 2) / df)
        p = rows_of(z.ravel(), np.tile(np.arange(1.0, 3001), 139))
        bins = ss.Predictions(
            y_std=p.y_std, error=p.error, features={"set": p.y_std.astype(str)}
        )
        for method in METHODS:
            found = local_statistics(bins, by="set", method=method, n_resamples=500)
            margin = 4 * np.sqrt(expected * (1 - expected) / 3000)
            assert found.fraction_valid == pytest.approx(expected, abs=margin + 0.005)


def test_the_order_of_rows_and_their_unit_change_nothing_and_the_seed_the_bootstrap():
    p = draw(400)
    tied = ss.Predictions(
        y_std=np.round(p.y_std, 1) + 0.1,
        error=np.round(p.error, 1),
        groups=np.arange(400) // 4,
        weights=np.random.default_rng(0).integers(1, 4, 400),
    )
    order = np.random.default_rng(1).permutation(400)
    for rows in (p, tied):
        for method in METHODS:
            one, two, third = (
                local_statistics(each, n_bins=5, method=method)
                for each in (rows, rows.take(order), _times(rows, 2.0**-30))
            )
            for other in (two, third):
                np.testing.assert_allclose(other.low, one.low, rtol=1e-9)
                np.testing.assert_allclose(other.high, one.high, rtol=1e-9)
    again = [local_statistics(p, n_bins=5, rng=seed).low for seed in (0, 0, 1)]
    np.testing.assert_array_equal(again[0], again[1])
    assert not np.array_equal(again[0], again[2])


def _times(p, factor):
    return p._with(y_std=factor * p.y_std, error=factor * p.error)


def test_labels_make_one_bin_each_and_rare_ones_are_left_out_with_a_warning():
    kind = np.repeat(["a", "b", "c"], [50, 30, 4])
    p = ss.Predictions(
        y_std=np.ones(84),
        error=np.random.default_rng(0).normal(size=84),
        features={"kind": kind},
    )
    with pytest.warns(FewerBinsWarning, match="1 of 3"):
        result = local_statistics(p, by="kind")
    assert result.is_labelled
    assert result.x.tolist() == ["a", "b"]
    assert result.n.tolist() == [50, 30]
    assert result.value[1] == pytest.approx(np.mean(p.error[50:80] ** 2))
    with pytest.raises(InvalidInputError, match="Merge labels"):
        local_statistics(p.take(np.r_[0:4, 50:53]), by="kind")
    assert "a" in str(result).splitlines()[2]


# --- rows in groups -------------------------------------------------------------------


def test_groups_of_one_row_have_limits_of_rows_and_copies_tell_nothing_more():
    p = draw(600)
    alone = p._with(groups=np.random.default_rng(0).permutation(600))
    for method in METHODS:
        rows, groups = (
            local_statistics(each, n_bins=5, method=method, n_resamples=5000)
            for each in (p, alone)
        )
        np.testing.assert_allclose(groups.value, rows.value)
        ratio = (groups.high - groups.low) / (rows.high - rows.low)
        assert 0.98 < ratio.mean() < 1.06
        copies = alone.take(np.repeat(np.arange(600), 4))
        repeated = local_statistics(copies, n_bins=5, method=method, n_resamples=5000)
        np.testing.assert_allclose(repeated.value, rows.value)
        width = groups.high - groups.low
        assert np.abs(repeated.low - groups.low).max() < 0.05 * width.min()
        assert repeated.n_groups.tolist() == [120] * 5
        assert repeated.n.tolist() == [480] * 5


def test_by_default_bins_have_30_groups_and_those_with_under_5_are_left_out():
    groups = np.repeat(np.arange(200), 10)
    p = rows_of(np.random.default_rng(0).normal(size=2000), groups=groups)
    assert local_statistics(p).value.size == 200 // 30
    # u ascends, so that a bin of 20 rows has rows of two or three groups
    with pytest.raises(InvalidInputError, match="n_bins"):
        local_statistics(p, n_bins=100)
    sizes = np.r_[np.full(400, 1), 500]
    few = rows_of(
        np.random.default_rng(0).normal(size=900),
        groups=np.repeat(np.arange(401), sizes),
    )
    with pytest.warns(FewerBinsWarning, match="groups"):
        found = local_statistics(few, n_bins=9)
    assert found.value.size == 4
    assert found.x_max.tolist() == [100, 200, 300, 400]


def test_what_has_no_interval_is_refused():
    p = draw(100)
    for rows in (p.take(np.arange(1)), p._with(groups=np.zeros(100, dtype=int))):
        with pytest.raises(InvalidInputError, match="at least 2"):
            local_statistics(rows, n_bins=1)
    with pytest.warns(FewerBinsWarning, match="21 bins"):
        assert local_statistics(p, n_bins=21).n.tolist() == [5] * 20


def test_limits_are_numbers_whatever_the_rows():
    zeros = np.zeros(100)
    zeros[50:] = 1
    result = local_statistics(rows_of(zeros), n_bins=2)
    assert (result.value.tolist(), result.low.tolist()) == ([0, 1], [0, 1])
    assert result.valid.tolist() == [False, True]
    for size in (1e-40, 1e40):
        for method in METHODS:
            tiny = local_statistics(
                rows_of(size * np.arange(50.0)), n_bins=5, method=method
            )
            assert np.isfinite([tiny.low, tiny.high]).all()
            assert (tiny.low >= 0).all()


# --- other statistics, and windows ----------------------------------------------------


def test_each_statistic_is_that_of_its_definition_in_every_bin():
    p = draw(600)
    parts = np.split(np.argsort(p.y_std), 6)
    definitions = {
        "zms": lambda rows: np.mean(p.z2[rows]),
        "mean_z": lambda rows: np.mean(p.z[rows]),
        "coverage": lambda rows: np.mean(np.abs(p.z[rows]) <= stats.norm.ppf(0.9)),
        "rce": lambda rows: (
            1 - np.sqrt(np.mean(p.error[rows] ** 2) / np.mean(p.y_std[rows] ** 2))
        ),
    }
    targets = {"zms": 1, "mean_z": 0, "coverage": 0.8, "rce": 0}
    for name, definition in definitions.items():
        found = local_statistics(p, statistic=name, n_bins=6, coverage=0.8)
        assert found.value == pytest.approx([definition(rows) for rows in parts])
        assert found.target == targets[name]
        inside = (found.low <= targets[name]) & (found.high >= targets[name])
        assert found.fraction_valid == inside.mean()
        assert found.overall[0] == pytest.approx(definition(np.arange(600)))
        assert (found.low <= found.value).all()
        assert (found.value <= found.high).all()


def test_intervals_of_each_statistic_agree_with_scipy():
    p = draw(400)
    rows = np.argsort(p.y_std)[:200]
    z, e2, u2 = p.z[rows], p.error[rows] ** 2, p.y_std[rows] ** 2

    def rce(e2, u2, axis=-1):
        return 1 - np.sqrt(e2.mean(axis=axis) / u2.mean(axis=axis))

    for name, data, statistic in (("mean_z", (z,), np.mean), ("rce", (e2, u2), rce)):
        theirs = stats.bootstrap(
            data,
            statistic,
            paired=len(data) > 1,
            vectorized=True,
            n_resamples=20_000,
            rng=np.random.default_rng(1),
        ).confidence_interval
        width = theirs.high - theirs.low
        for method, margin in (("bca", 0.05), ("moments", 0.12)):
            ours = local_statistics(
                p, statistic=name, n_bins=2, method=method, n_resamples=20_000
            )
            assert ours.low[0] == pytest.approx(theirs.low, abs=margin * width)
            assert ours.high[0] == pytest.approx(theirs.high, abs=margin * width)
    found = local_statistics(p, statistic="coverage", n_bins=2)
    held = int(np.sum(np.abs(z) <= stats.norm.ppf(0.975)))
    exact = stats.binomtest(held, 200).proportion_ci(0.95, "wilsoncc")
    assert (found.low[0], found.high[0]) == pytest.approx((exact.low, exact.high))


def test_groups_and_weights_widen_the_intervals_of_every_statistic():
    rng = np.random.default_rng(3)
    z = np.repeat(rng.normal(size=100), 6)  # repeats that are alike
    for name in ("zms", "mean_z", "coverage", "rce"):
        widths = []
        for groups in (None, np.arange(600) // 6):
            p = rows_of(z, groups=groups)
            found = local_statistics(p, statistic=name, n_bins=3, method="moments")
            widths.append((found.high - found.low).mean())
        assert widths[1] > 1.7 * widths[0], name
        weighted = rows_of(z, weights=rng.lognormal(size=600))
        assert np.isfinite(local_statistics(weighted, statistic=name).high).all()


def test_a_sliding_window_passes_through_the_bins_and_overlaps():
    p = draw(1000)
    for name in ("zms", "coverage"):
        bins = local_statistics(p, statistic=name, n_bins=10, method="moments")
        windows = local_statistics(
            p, statistic=name, n_bins=10, method="moments", slide=True
        )
        assert windows.value.size == 91
        np.testing.assert_allclose(windows.value[::10], bins.value)
        np.testing.assert_allclose(windows.low[::10], bins.low)
        assert (np.diff(windows.x) >= 0).all()
    kind = ss.Predictions(
        y_std=p.y_std, error=p.error, features={"kind": ["a", "b"] * 500}
    )
    with pytest.raises(InvalidInputError, match=r"slide.*labels"):
        local_statistics(kind, by="kind", slide=True)


def test_what_a_statistic_cannot_be_asked_is_refused():
    p = draw(100)
    with pytest.raises(InvalidInputError, match=r'statistic.*"rce".*nll'):
        local_statistics(p, statistic="nll")
    with pytest.raises(InvalidInputError, match="coverage"):
        local_statistics(p, statistic="coverage", coverage=2)
    vectors = ss.Predictions(y_std=np.ones(50), error=np.ones((50, 3)))
    with pytest.raises(InvalidInputError, match="sign"):
        local_statistics(vectors, statistic="mean_z")
