"""Intervals that hold what they claim in every named part of the rows."""

import numpy as np
import pytest

import sigmascale as ss
from sigmascale import exceptions as ex


def rows(n=300, seed=0, shape="normal", **more):
    """Rows whose scale no line in u knows: a rare label and a corner are worse."""
    rng = np.random.default_rng(seed)
    u, x = rng.lognormal(0, 0.4, n), rng.uniform(size=n)
    phase = rng.choice(["gas", "liquid", "solid"], n, p=[0.72, 0.2, 0.08])
    z = {
        "normal": rng.normal(size=n),
        "t(3)": rng.standard_t(3, n),
        "skewed": rng.exponential(size=n) - 1,
    }[shape]
    scale = u * (1 + 1.5 * (x > 0.8)) * (1 + (phase == "solid"))
    features = {"x": x, "phase": phase}
    return ss.Predictions(y_std=u, error=scale * z, features=features, **more)


def held(r, new, coverage=0.9):
    """Return which rows of new predictions intervals hold."""
    low, high = r.apply(new).distributions.interval(coverage).T
    return (low <= new.error) & (new.error <= high)


def parts_of(p):
    """Return the rows of some parts by name, the way a reader would write them."""
    phase, x = p.features["phase"], p.features["x"]
    return {"solid": phase == "solid", "liquid": phase == "liquid", "corner": x > 0.8}


def fit(p, **options):
    return ss.Recalibrator(ss.LinearScaling(), **options).fit(p)


def test_intervals_hold_in_parts_that_the_scale_knows_nothing_of():
    new = rows(20_000, seed=1)
    shares = {name: [] for name in parts_of(new)}
    for seed in (2, 3, 0):
        p = rows(3000, seed)
        plain, parted = fit(p), fit(p, parts=["phase", "x"])
        for name, own in parts_of(new).items():
            shares[name].append(held(parted, new)[own].mean())
            if name != "liquid":
                assert held(plain, new)[own].mean() < 0.8
    for name, of_fits in shares.items():
        assert np.mean(of_fits) > 0.88, name
    # u stays, and the distribution follows
    np.testing.assert_array_equal(parted.predict(new), plain.predict(new))
    both = [r.apply(new).distributions for r in (plain, parted)]
    assert both[1].crps(new.error).mean() < both[0].crps(new.error).mean()
    assert "each of 8 parts, by phase, x" in parted.describe()


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["normal", "t(3)", "skewed"])
def test_rows_held_out_give_each_part_its_guarantee(shape):
    new = rows(4000, seed=10_000, shape=shape)
    shares = {name: [] for name in parts_of(new)}
    for seed in range(200):
        r = fit(rows(400, seed, shape), parts=["phase", "x"], hold_out=0.5)
        is_held = held(r, new, 0.8)
        for name, own in parts_of(new).items():
            shares[name].append(is_held[own].mean())
    for name, found in shares.items():
        error = np.std(found) / np.sqrt(len(found))
        assert np.mean(found) > 0.8 - 2.5 * error, name


def test_a_part_with_too_few_rows_held_out_is_infinite_and_fit_says_how_many_lack():
    p, new = rows(100), rows(500, seed=1)
    with pytest.warns(ex.FewRowsWarning, match=r"need 9 rows held out.*phase = solid"):
        r = fit(p, parts=["phase"], hold_out=0.5)
    q = r.apply(new)
    with pytest.warns(ex.InfiniteIntervalWarning, match="needs 9"):
        limits = q.distributions.interval(0.9)
    solid = parts_of(new)["solid"]
    np.testing.assert_array_equal(np.isinf(limits[:, 0]), solid)
    assert np.isfinite(q.distributions.crps(new.error)).all()
    assert np.isfinite(q.distributions.std).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_infinite_intervals_hold_anything():
    p, new = rows(40), rows(400, seed=1)
    weights = np.random.default_rng(0).uniform(0.5, 1, 40)
    for q in (p, rows(40, weights=weights)):
        for parts in (None, ["phase"]):
            r = fit(q, hold_out=0.3, parts=parts)
            v = ss.validate(r.apply(new))
            assert np.isinf(v.rows.distributions.interval(0.95)).all()
            assert not v.checks["coverage"].passed
            assert "100.0 %" in str(v)


def test_a_label_that_no_row_held_out_has_gets_infinite_limits():
    p = rows(800)
    r = fit(p, parts=["phase"], hold_out=0.5)
    known, unknown = (
        ss.Predictions(y_std=[1.0], features={"x": [0.5], "phase": [label]})
        for label in ("gas", "plasma")
    )
    assert np.isfinite(r.apply(known).distributions.interval(0.9)).all()
    with pytest.warns(ex.UnseenCategoryWarning, match="in no part"):
        q = r.apply(unknown)
    with pytest.warns(ex.InfiniteIntervalWarning):
        assert np.isinf(q.distributions.interval(0.9)).all()


def test_intervals_are_nested_and_the_distribution_is_one():
    p, new = rows(1000), rows(50, seed=1)
    for options in ({}, {"hold_out": 0.5}):
        d = fit(p, parts=["phase", "u"], **options).apply(new).distributions
        levels = np.linspace(0.1, 0.9, 81)
        quantiles = d.quantile(levels)
        assert (np.diff(quantiles, axis=1) >= 0).all()
        for level, at in zip(levels[::20], quantiles.T[::20], strict=True):
            assert (d.cdf(at) >= level - 0.02).all()
        some = d[3:9]
        np.testing.assert_array_equal(some.interval(0.8), d.interval(0.8)[3:9])
        np.testing.assert_allclose(some.crps(new.error[3:9]), d.crps(new.error)[3:9])


def test_balls_of_vectors_hold_in_parts():
    def vectors(n, seed):
        rng = np.random.default_rng(seed)
        u = rng.lognormal(0, 0.4, n)
        element = rng.choice(["C", "H"], n, p=[0.8, 0.2])
        scale = u * np.where(element == "H", 2.0, 1.0)
        error = scale[:, None] * rng.normal(size=(n, 3))
        return ss.Predictions(
            np.zeros((n, 3)), u, error=error, features={"element": element}
        )

    p, new = vectors(8000, 0), vectors(20_000, 1)
    hydrogen = new.features["element"] == "H"
    for options in ({}, {"hold_out": 0.5}):
        for coverage in (0.3, 0.9):
            d = fit(p, parts=["element"], **options).apply(new).distributions
            inside = d.contains(new.target, coverage)
            assert inside[hydrogen].mean() == pytest.approx(coverage, abs=0.03)
            assert inside[~hydrogen].mean() == pytest.approx(coverage, abs=0.03)


def test_errors_of_exactly_0_and_missing_features_have_parts_too():
    rng = np.random.default_rng(0)
    p, new = rows(2000), rows(4000, seed=1)

    def spoilt(q):
        x = q.features["x"].copy()
        x[::7] = np.nan
        error = q.error * (rng.random(q.n_rows) < 0.5)
        features = {"x": x, "phase": q.features["phase"]}
        return ss.Predictions(y_std=q.y_std, error=error, features=features)

    p, new = spoilt(p), spoilt(new)
    r = fit(p, parts=["x"], hold_out=0.5)
    for coverage in (0.4, 0.9):
        for own in (np.isnan(new.features["x"]), new.features["x"] > 0.8):
            assert held(r, new, coverage)[own].mean() > coverage - 0.03


def test_parts_that_cannot_be_are_refused():
    p = rows(100)
    for parts, words in {
        "phase": "list of columns",
        (): "list of columns",
        ("height",): "`parts` must name a column",
    }.items():
        given = parts if isinstance(parts, str) else list(parts)
        with pytest.raises(ex.InvalidInputError, match=words):
            ss.Recalibrator(parts=given).fit(p)
    with pytest.raises(ex.InvalidInputError, match="empirical"):
        ss.Recalibrator(parts=["u"], distribution="normal").fit(p)


def test_parts_of_many_columns_are_warned_of_with_their_price():
    rng = np.random.default_rng(0)
    features = {name: rng.normal(size=400) for name in "abcd"}
    p = ss.Predictions(
        y_std=np.exp(rng.normal(size=400)),
        error=rng.normal(size=400),
        features=features,
    )
    with pytest.warns(ex.ManyPartsWarning, match="27 ± 20 %"):
        fit(p, parts=list("abcd"))


def test_weights_and_groups_count_in_parts():
    p = rows(2000)
    twice = p.take(np.repeat(np.arange(2000), 2))
    grouped = ss.Predictions(
        y_std=twice.y_std,
        error=twice.error,
        features=twice.features,
        groups=np.repeat(np.arange(2000), 2),
    )
    r = fit(grouped, parts=["phase"], hold_out=0.5)
    new = rows(20_000, seed=1)
    assert held(r, new)[parts_of(new)["solid"]].mean() == pytest.approx(0.9, abs=0.05)
    weighted = rows(2000, weights=np.where(np.arange(2000) % 2, 3.0, 1.0))
    r = fit(weighted, parts=["phase", "x"])
    for name, own in parts_of(new).items():
        assert held(r, new)[own].mean() > 0.87, name
