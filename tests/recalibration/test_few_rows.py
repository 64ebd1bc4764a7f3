"""Few rows: noise of the distribution of z is taken out; what is wrong with z stays."""

import numpy as np
import pytest

import sigmascale as ss


def rows(n, seed, *, middle=0.0, width=1.0, **more):
    """Rows whose z-scores are normal, with two features of noise."""
    rng = np.random.default_rng([seed, n, 610])
    u = rng.lognormal(0, 0.5, n)
    z = middle + width * rng.normal(size=n)
    features = {"a": rng.normal(size=n), "b": rng.normal(size=n)}
    return ss.Predictions(y_std=u, error=z * u, features=features, **more)


def distribution(p, **options):
    """Return the distribution of z that is learned with one factor."""
    return ss.Recalibrator(ss.TemperatureScaling(), **options).fit(p).distribution_


def losses(n, **more):
    """Return how much CRPS changes on new rows, of 40 fits."""
    changes = []
    for seed in range(40):
        new = rows(2000, seed + 1000, **more)
        after = ss.Recalibrator(ss.TemperatureScaling()).fit(rows(n, seed, **more))
        changes.append(ss.scores.crps(after.apply(new)) / ss.scores.crps(new) - 1)
    return np.array(changes)


@pytest.mark.parametrize(("n", "most"), [(60, 0.008), (250, 0.002)])
def test_a_right_uncertainty_is_hardly_made_worse_by_few_rows(n, most):
    # tables of the rows as they are lose 1.7 and 0.4 %
    assert losses(n).mean() < most


def test_few_rows_keep_what_is_wrong_with_middle_and_width():
    for middle in (0.0, 0.6):
        medians = []
        spreads = []
        for seed in range(40):
            p = rows(80, seed, middle=middle)
            factor = (
                ss.Recalibrator(ss.TemperatureScaling()).fit(p).predict(p) / p.y_std
            )
            low, median, high = distribution(p).quantiles(np.array([0.16, 0.5, 0.84]))[
                0
            ]
            medians.append(median * factor[0])
            spreads.append((high - low) / 2 * factor[0])
        assert np.mean(medians) == pytest.approx(middle, abs=0.06)
        assert np.mean(spreads) == pytest.approx(1.0, abs=0.05)  # 1.166 of the factor


def test_the_middle_of_rows_in_groups_is_told_by_groups():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(12), 10)
    with_groups = []
    without = []
    for _ in range(20):
        common = rng.normal(0, 0.7, 12)[group]
        error = common + rng.normal(0, 0.7, 120)
        p = ss.Predictions(y_std=np.ones(120), error=error)
        grouped = ss.Predictions(y_std=np.ones(120), error=error, groups=group)
        without.append(distribution(p).quantiles(np.array([0.5]))[0, 0])
        with_groups.append(distribution(grouped).quantiles(np.array([0.5]))[0, 0])
    assert np.std(with_groups) < 0.75 * np.std(without)

    # too few groups do not tell what is noise: all is as it is
    few = ss.Predictions(y_std=np.ones(120), error=error, groups=group // 3)
    learned = distribution(few).tables[0].values
    np.testing.assert_allclose(learned, np.sort(error) / error.std(), rtol=0.1)


def test_shapes_that_are_not_normal_stay_what_they_are():
    rng = np.random.default_rng(1)
    level = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    u = np.ones(1000)
    skewed = rng.exponential(size=1000) - 1
    learned = distribution(ss.Predictions(y_std=u, error=skewed)).quantiles(level)[0]
    np.testing.assert_allclose(learned, np.quantile(skewed, level), atol=0.1)

    # errors of exactly 0 stay so
    skewed[:300] = 0
    learned = distribution(ss.Predictions(y_std=u, error=skewed))
    zeros = learned.quantiles(np.linspace(0.5, 0.6, 5))
    np.testing.assert_array_equal(zeros, 0.0)


def test_rows_held_out_and_very_few_rows_tell_the_distribution_as_they_are():
    p = rows(100, 0)
    r = ss.Recalibrator(ss.TemperatureScaling(), hold_out=0.5).fit(p)
    factor = (r.predict(p) / p.y_std)[0]
    seen = np.sort(np.concatenate([table.values for table in r.distribution_.tables]))
    assert np.isin(seen.round(9), (p.z / factor).round(9)).all()
    with pytest.warns(ss.exceptions.FewRowsWarning, match="±"):
        few = distribution(rows(30, 0)).tables[0]
    np.testing.assert_allclose(few.values, -few.values[::-1])


def test_no_uncertainty_explodes_by_few_rows():
    """A single row of a large u and a larger error would decide on a power of u."""
    rng = np.random.default_rng(0)
    for seed in range(20):
        p = rows(40, seed)
        u = 1e-3 * p.y_std
        u[0] = 1.0
        error = p.error * 1e-3
        error[0] = 40.0
        spoilt = ss.Predictions(y_std=u, error=error, features=p.features)
        new = ss.Predictions(
            y_std=rng.lognormal(0, 3, 1000),
            features={"a": rng.normal(size=1000), "b": rng.normal(size=1000)},
        )
        assert ss.Recalibrator().fit(spoilt).predict(new).max() <= 30 * 40.0


def is_one_factor(r):
    """Return whether all uncertainties are multiplied alike."""
    return not r.scale_.tables and r.scale_.base.is_factor


def test_few_rows_multiply_a_right_uncertainty_by_one_factor_near_1():
    factors = []
    for seed in range(30):
        p = rows(80, seed)
        r = ss.Recalibrator().fit(p)
        if is_one_factor(r):
            factors.append(np.exp(r.scale_.constant))
            assert "more than one factor gains too little" in r.describe()
    assert len(factors) >= 10
    # a factor that is noise is shrunk, mostly to 1
    assert np.mean(np.isclose(factors, 1.0)) > 0.3
    assert np.std(np.log(factors)) < 0.07  # 0.079 unshrunk


def test_what_few_rows_tell_of_u_and_features_is_learned():
    kept = []
    for seed in range(20):
        p = rows(250, seed)
        wrong = p.error * np.where(p.features["a"] > 0, 3.0, 1.0)
        spoilt = ss.Predictions(y_std=p.y_std, error=wrong, features=p.features)
        squared = ss.Predictions(y_std=p.y_std**2, error=p.error, features=p.features)
        kept += [is_one_factor(ss.Recalibrator().fit(q)) for q in (spoilt, squared)]
    assert sum(kept) == 0


def test_one_factor_sets_the_level_right():
    factors = []
    for seed in range(20):
        p = rows(100, seed)
        new = (
            ss.Recalibrator()
            .fit(p.with_y_std(p.y_std / 3))
            .predict(p.with_y_std(p.y_std / 3))
        )
        factors.append(np.sqrt(np.mean((p.error / new) ** 2)))
    assert np.mean(factors) == pytest.approx(1.0, abs=0.03)


def test_a_recalibrator_that_nobody_named_a_scaling_for_comes_back_as_one(tmp_path):
    r = ss.Recalibrator().fit(rows(80, 0))
    r.save(tmp_path / "r.json")
    again = ss.load(tmp_path / "r.json")
    assert again.scaling is None
    assert again.describe() == r.describe()
    named = ss.Recalibrator(ss.BoostedScaling(depth=2)).fit(rows(80, 0))
    named.save(tmp_path / "r.json")
    assert ss.load(tmp_path / "r.json").scaling.depth == 2
