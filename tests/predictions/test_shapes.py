"""Rows of quantiles: their shapes come out as they came in, and truths are straight."""

import pickle

import numpy as np
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale import exceptions as ex

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
FINE = np.arange(1, 100) / 100


def lognormal(n=2000, seed=0, believed=1.0, levels=LEVELS, **options):
    """Return rows whose skewness differs, and is `believed` times what it is."""
    rng = np.random.default_rng(seed)
    x, centre = rng.uniform(-1, 1, n), rng.normal(size=n)
    s = np.exp(-0.7 + 0.5 * x)
    y = np.exp(centre + s * rng.normal(size=n))
    q = np.exp(centre[:, None] + believed * s[:, None] * stats.norm.ppf(levels))
    options = {"features": {"x": x}, "y_true": y} | options
    return ss.Predictions.from_quantiles(levels, q, **options)


def rain(n=2000, seed=0, levels=LEVELS, **options):
    """Return rows of rain, of which zeros have a probability of their own."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 2))
    dry = 0.6 / (1 + np.exp(-2 * x[:, 0]))
    g = stats.gamma(0.8, scale=np.exp(1 + x[:, 1]))
    y = np.where(rng.random(n) < dry, 0, g.rvs(random_state=rng))
    share = np.clip((levels - dry[:, None]) / (1 - dry[:, None]), 0, 1)
    q = np.where(share > 0, g.ppf(share.T).T, 0)
    features = {"a": x[:, 0], "b": x[:, 1]}
    options = {"features": features, "y_true": y} | options
    return ss.Predictions.from_quantiles(levels, q, **options)


def limits(p, coverage=0.9):
    return p.distributions.interval(coverage)


def held(p, coverage=0.9):
    low, high = limits(p, coverage).T
    return np.mean((low <= p.target) & (p.target <= high))


# -- what was handed in ----------------------------------------------------------------


def test_quantiles_come_out_as_they_came_in():
    q = np.sort(np.random.default_rng(0).gamma(1.0, size=(50, 5)), axis=1)
    q[:10, :2] = 0
    p = ss.Predictions.from_quantiles(LEVELS, q, y_true=q[:, 3])
    d = ss.Distributions.normal(p)
    np.testing.assert_allclose(d.quantile(LEVELS), q, atol=1e-12)
    np.testing.assert_allclose(d.interval(0.9), q[:, [0, 4]], atol=1e-12)
    np.testing.assert_allclose(d.cdf(q[:, 2]), 0.5, atol=1e-12)
    np.testing.assert_allclose(p.y_pred, q[:, 2])
    grid = d.quantile(np.linspace(0.001, 0.999, 999))
    assert (np.diff(grid, axis=1) >= 0).all()
    np.testing.assert_array_equal(d[3:5].quantile(0.3), d.quantile(0.3)[3:5])
    # zeros are a quarter of the probability of the first rows
    np.testing.assert_allclose(d.cdf(np.zeros(50))[:10], 0.25)
    assert (d.pit(np.zeros(50))[:10] < 0.25).all()


def test_scores_of_rows_as_given_are_those_of_their_distributions():
    # of a lognormal by 99 quantiles, whose scores are known
    p = lognormal(400, levels=FINE)
    d = ss.Distributions.normal(p)
    s = np.exp(-0.7 + 0.5 * p.features["x"])
    y, median = p.y_true, p.y_pred
    z = np.log(y / median) / s
    mean = median * np.exp(s**2 / 2)
    phi = stats.norm.cdf
    crps = y * (2 * phi(z) - 1)
    crps -= 2 * mean * (phi(z - s) + phi(s / np.sqrt(2)) - 1)
    np.testing.assert_allclose(d.crps(y).mean(), crps.mean(), rtol=0.003)
    assert ss.scores.crps(p) == pytest.approx(d.crps(y).mean())
    np.testing.assert_allclose(d.mean, mean, rtol=0.03)
    np.testing.assert_allclose(np.median(d.std / mean * s), 0.5 * 0.5, atol=0.1)
    draws = d.sample(2000, rng=1)
    np.testing.assert_allclose(np.median(draws, axis=1), median, rtol=0.15)
    assert np.mean(draws < y[:, None]) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("rows", [lognormal, rain])
def test_true_values_of_true_quantiles_are_straightened_to_normal_errors(rows):
    p = rows(4000, levels=FINE)
    u = stats.norm.cdf(p.z)
    inside = np.histogram(u, [0, *LEVELS, 1])[0] / len(p)
    shares = np.diff([0, *LEVELS, 1])
    off = (inside - shares) / np.sqrt(shares * (1 - shares) / len(p))
    assert np.abs(off).max() < 3.5
    assert np.mean(p.z2) == pytest.approx(1, abs=0.25)  # tails are lines
    for x in p.features.values():
        assert abs(stats.spearmanr(x, p.z).statistic) < 0.06
    plain = rows(4000, levels=FINE, shape=False)
    assert plain.shape is None
    np.testing.assert_array_equal(plain.y_std, p.y_std)
    assert np.abs(np.mean(p.z)) < np.abs(np.mean(plain.z)) / 2


def test_neither_order_nor_unit_nor_a_subset_changes_errors():
    p = rain(600, groups=np.arange(600) // 2, weights=np.arange(600) % 7)
    n = 600
    order = np.random.default_rng(3).permutation(n)
    rng = np.random.default_rng(0)
    q = np.sort(rng.gamma(1, size=(n, 5)), axis=1)
    q[:, :3] *= rng.random(n)[:, None] < 0.6
    y = q[np.arange(n), rng.integers(0, 5, n)]
    x = rng.normal(size=n)
    first, moved = (
        ss.Predictions.from_quantiles(
            LEVELS,
            factor * q[rows],
            y_true=factor * y[rows],
            features={"x": x[rows]},
            min_std=1e-6 * factor,
        )
        for rows, factor in ((np.arange(n), 1.0), (order, 7.3))
    )
    assert len(np.unique(first.z[y == 0])) > 0.9 * np.sum(y == 0)  # each its own
    np.testing.assert_allclose(moved.z, first.z[order], rtol=1e-9, atol=1e-9)
    some = p.take(np.arange(100, 200))
    np.testing.assert_array_equal(some.error, p.error[100:200])
    np.testing.assert_array_equal(
        ss.Distributions.normal(some).quantile(0.9),
        ss.Distributions.normal(p).quantile(0.9)[100:200],
    )
    again = pickle.loads(pickle.dumps(p))
    np.testing.assert_array_equal(again.shape.quantiles, p.shape.quantiles)
    with pytest.raises(ValueError, match="read-only"):
        p.error[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        p.shape.quantiles[0] = 1


def test_rows_of_normal_shape_are_recalibrated_as_a_middle_and_a_width():
    rng = np.random.default_rng(0)
    centre, u, x = rng.normal(size=800), rng.lognormal(size=800), rng.normal(size=800)
    q = centre[:, None] + u[:, None] * stats.norm.ppf(LEVELS)
    y = centre + 1.5 * u * rng.normal(size=800)
    said = {"y_true": y, "features": {"x": x}}
    p = ss.Predictions.from_quantiles(LEVELS, q, **said)
    plain = ss.Predictions.from_quantiles(LEVELS, q, shape=False, **said)
    np.testing.assert_allclose(p.error, plain.error, atol=1e-9)
    r, as_before = (ss.Recalibrator(bias="constant").fit(rows) for rows in (p, plain))
    new, old = r.apply(p), as_before.apply(plain)
    np.testing.assert_allclose(limits(new), limits(old), rtol=1e-6, atol=1e-6)
    # two quantiles have no shape
    pair = ss.Predictions.from_quantiles([0.05, 0.95], q[:, [0, 4]])
    assert pair.shape is None


# -- other doors -----------------------------------------------------------------------


def test_samples_and_objects_with_quantiles_keep_their_shape():
    rng = np.random.default_rng(0)
    s = np.exp(rng.normal(size=60) / 3)
    d = stats.lognorm(s)
    y = d.rvs(random_state=rng)

    class Inverse:  # what knows nothing but quantiles
        def icdf(self, p):
            return d.ppf(p)

    class Bars:  # what TabPFN returns
        def icdf(self, logits, p):
            return stats.lognorm(logits).ppf(p)

    of_scipy = ss.Predictions.from_distribution(d, y_true=y)
    others = [
        ss.Predictions.from_distribution(Inverse(), y_true=y),
        ss.Predictions.from_distribution({"criterion": Bars(), "logits": s}, y_true=y),
    ]
    for p in others:
        np.testing.assert_array_equal(p.error, of_scipy.error)
    np.testing.assert_allclose(of_scipy.z, np.log(y) / s, rtol=0.05)
    samples = ss.Predictions.from_samples(d.rvs((20_000, 60), random_state=rng).T)
    few = ss.Predictions.from_samples(d.rvs((9, 60), random_state=rng).T)
    assert few.shape.z.size == 9
    interval = ss.Distributions.normal(samples).interval(0.9)
    np.testing.assert_allclose(interval, d.ppf([[0.05], [0.95]]).T, rtol=0.2)
    with pytest.raises(ex.InvalidInputError, match="at least 3 columns"):
        ss.Predictions.from_samples(np.ones((5, 2)))

    # normal ones have nothing to keep, and others may be told not to
    normal = ss.Predictions.from_distribution(stats.norm(s, 2 * s), y_true=y)
    np.testing.assert_array_equal(normal.error, y - s)
    np.testing.assert_array_equal(normal.y_std, 2 * s)
    moments = ss.Predictions.from_distribution(d, y_true=y, shape=False)
    np.testing.assert_array_equal(moments.y_std, d.std())
    assert normal.shape is moments.shape is None


# -- recalibration ---------------------------------------------------------------------


def test_as_much_of_the_shape_is_kept_as_is_true():
    p, new = lognormal(believed=0.7), lognormal(seed=1, believed=0.7)
    r = ss.Recalibrator().fit(p)
    assert r.shape_kept_ == 1
    assert "All of the shape" in r.describe()
    after = r.apply(new)
    assert held(after) == pytest.approx(0.9, abs=0.025)
    # a middle and a width are no match
    plain, of_new = (
        lognormal(believed=0.7, shape=False),
        lognormal(seed=1, believed=0.7, shape=False),
    )
    before = ss.Recalibrator().fit(plain).apply(of_new)
    assert ss.scores.crps(after) < 0.995 * ss.scores.crps(before)
    assert ss.scores.interval_score(after) < 0.98 * ss.scores.interval_score(before)
    assert ss.scores.crps(after) < ss.scores.crps(new)  # which are as given

    # a shape that is noise is not kept, and rows are as if it had not been there
    rng = np.random.default_rng(0)
    u, x = rng.lognormal(size=2000), rng.normal(size=2000)
    noise = np.exp(0.8 * rng.normal(size=(2000, 2)))
    q = u[:, None] * np.stack([-noise[:, 0], 0 * u, noise[:, 1]], axis=1)
    width = (q[:, 2] - q[:, 0]) / 2
    y = width * rng.normal(size=2000)
    said = {"y_true": y, "features": {"x": x}}
    p, plain = (
        ss.Predictions.from_quantiles([0.16, 0.5, 0.84], q, shape=shape, **said)
        for shape in (True, False)
    )
    r = ss.Recalibrator().fit(p)
    assert r.shape_kept_ == 0
    as_before = ss.Recalibrator().fit(plain).apply(plain)
    np.testing.assert_allclose(limits(r.apply(p)), limits(as_before), atol=1e-9)


def test_a_bias_moves_rows_along_their_shapes():
    p = lognormal(3000, levels=FINE)
    s = np.exp(-0.7 + 0.5 * p.features["x"])
    y = p.y_true * np.exp(0.6 * s)  # too low by 0.6 of each row's own z
    given = ss.Distributions.normal(p).quantile(FINE)
    biased = ss.Predictions.from_quantiles(FINE, given, y_true=y, features=p.features)
    r = ss.Recalibrator(bias="constant").fit(biased)
    q = r.apply(biased)
    assert r.shape_kept_ > 0
    assert np.mean(q.z) == pytest.approx(0, abs=0.05)
    np.testing.assert_allclose(q.y_pred / p.y_pred, np.exp(0.6 * s), rtol=0.2)
    np.testing.assert_allclose(q.residual, y - q.y_pred)
    np.testing.assert_allclose(q.shape.values(q.error), y, rtol=1e-9)
    assert ss.scores.crps(q) < 0.95 * ss.scores.crps(biased)


@pytest.mark.parametrize(
    "options", [{}, {"bias": "constant"}, {"hold_out": 0.4}, {"parts": ["x"]}]
)
def test_order_weights_groups_and_files_do_not_change_limits(options, tmp_path):
    given = {"groups": np.arange(400) // 2, "weights": 1 + np.arange(400) % 3}
    p, new = lognormal(400, **given), lognormal(300, seed=1)
    r = ss.Recalibrator(bounds=(0, None), **options).fit(p)
    order = np.random.default_rng(1).permutation(400)
    again = ss.Recalibrator(bounds=(0, None), **options).fit(p.take(order))
    r.save(tmp_path / "r.json")
    loaded = ss.load(tmp_path / "r.json")
    assert loaded.shape_kept_ == r.shape_kept_ > 0
    for other in (again, loaded, pickle.loads(pickle.dumps(r))):
        np.testing.assert_allclose(
            limits(other.apply(new)), limits(r.apply(new)), rtol=1e-9
        )
    q = r.out_of_fold_
    assert held(q) == pytest.approx(0.9, abs=0.06)
    np.testing.assert_allclose(q.shape.values(q.error), q.y_true, rtol=1e-9)

    # what was recalibrated is a row with a shape again
    q = r.apply(new)
    twice = ss.Recalibrator(ss.TemperatureScaling()).fit(q).apply(q)
    assert np.mean(twice.z2) == pytest.approx(1, abs=1e-6)
    assert held(twice) == pytest.approx(0.9, abs=0.04)
    assert ss.validate(q).rows is not None
    assert ss.compare({"raw": new, "new": q}) is not None
    ss.Monitor(r).update(new)
    assert ss.Follower(r).update(new).interval(new).shape == (300, 2)


def test_atoms_keep_the_guarantee_of_rows_held_out():
    in_values, strict = [], []
    for seed in range(30):
        p, new = rain(150, seed=seed), rain(500, seed=1000 + seed)
        q = ss.Recalibrator(hold_out=0.5, bounds=(0, None)).fit(p).apply(new)
        in_values.append(held(q, 0.8))
        low, high = q.distributions.of_errors.interval(0.8).T
        strict.append(np.mean((low <= q.error) & (q.error <= high)))
    error = np.std(strict) / np.sqrt(30)
    assert 0.8 - 2 * error < np.mean(strict) < 0.84
    assert np.mean(in_values) >= np.mean(strict)  # zeros at a limit belong


def test_validate_passes_true_quantiles_with_zeros():
    for seed in range(2):
        assert "✗" not in str(ss.validate(rain(4000, seed=seed)))


# -- elsewhere -------------------------------------------------------------------------


def test_lazy_frames_take_the_columns_of_quantiles():
    pl = pytest.importorskip("polars")
    p, new = lognormal(500, believed=0.7), lognormal(300, seed=1, believed=0.7)
    r = ss.Recalibrator(bias="constant").fit(p)
    columns = {f"q{level:g}": level for level in LEVELS}
    given = ss.Distributions.normal(new).quantile(LEVELS)
    frame = pl.LazyFrame(dict(zip(columns, given.T, strict=True))).with_columns(
        u=pl.Series(new.y_std), x=pl.Series(new.features["x"]), m=pl.Series(new.y_pred)
    )
    asked = {"y_std": "u", "y_pred": "m", "coverage": 0.9, "quantiles": [0.5]}
    applied = ss.frames.apply(r, frame, shape=columns, **asked).collect()
    q = r.apply(new)
    for name, values in (
        ("u_recalibrated", q.y_std),
        ("m_recalibrated", q.y_pred),
        ("u_recalibrated_low", limits(q)[:, 0]),
        ("u_recalibrated_q0.5", q.distributions.quantile(0.5)),
    ):
        np.testing.assert_allclose(applied[name], values, rtol=1e-9)
    with pytest.raises(ex.InvalidInputError, match=r"shape=\{"):
        ss.frames.apply(r, frame, **asked)
    alone = ss.frames.apply(r, frame, y_std="u").collect()
    np.testing.assert_array_equal(alone["u_recalibrated"], applied["u_recalibrated"])


def test_what_cannot_know_a_shape_says_so(tmp_path):
    r = ss.Recalibrator().fit(lognormal(500))
    with pytest.raises(ex.InvalidInputError, match=r"from_quantiles.*shape=False"):
        r.apply(ss.Predictions([1.0], [0.1], features={"x": [0.0]}))
    pytest.importorskip("ndonnx")
    with pytest.raises(ex.InvalidInputError, match=r"uncertainties alone.*apply"):
        ss.export.to_onnx(r, tmp_path / "r.onnx", coverage=0.9)
    ss.export.to_onnx(r, tmp_path / "r.onnx")


def test_the_command_line_gives_what_python_gives(sigmascale, tmp_path):
    pl = pytest.importorskip("polars")
    options = []
    for level in LEVELS:
        options += ["--quantile-columns", f"q{level:g}={level:g}"]
    for name, p in (("cal", rain(600)), ("test", rain(400, seed=1))):
        q = ss.Distributions.normal(p).quantile(LEVELS)
        columns = {f"q{level:g}": q[:, i] for i, level in enumerate(LEVELS)}
        table = pl.DataFrame(columns | dict(p.features) | {"y": p.y_true})
        table.write_parquet(tmp_path / f"{name}.parquet")
    cal, test, r, out = (
        str(tmp_path / name)
        for name in ("cal.parquet", "test.parquet", "r.json", "out.parquet")
    )
    columns = ["--reference", "y", "--feature", "a", "--feature", "b", *options]
    assert sigmascale("check", cal, *columns).code in (0, 1, 4)
    done = sigmascale("fit", cal, "-o", r, *columns, "--bias", "constant")
    assert done.says("of the shape of each row is kept"), done.err
    assert sigmascale("apply", r, test, "-o", out, "--coverage", "0.9").code == 0
    of_python = ss.Recalibrator(bias="constant").fit(
        ss.Predictions.from_frame(
            pl.read_parquet(cal),
            y_true="y",
            quantiles={f"q{level:g}": level for level in LEVELS},
            features=["a", "b"],
        )
    )
    written = pl.read_parquet(out)
    q = of_python.apply(rain(400, seed=1))
    low, high = limits(q).T
    for name, values in (("low", low), ("high", high)):
        of_file = written[f"u_recalibrated_{name}"]
        np.testing.assert_allclose(of_file, values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(written["recalibrated"], q.y_pred, rtol=1e-9)


def test_pictures_of_atoms_are_flat_as_their_errors_are_drawn_within_them():
    p = rain(4000, levels=FINE)
    histogram = ss.scores.pit_histogram(p, n_bins=10)
    assert np.abs(histogram.density - 1).max() < 0.2
    of_values = np.histogram(ss.Distributions.normal(p).pit(p.y_true), 10, (0, 1))[0]
    assert np.abs(of_values / 400 - 1).max() > 0.3  # the middles of steps


def test_rows_with_shapes_plan_like_others():
    assert ss.rows_needed(rain(300), tolerance=3.0) > 0
