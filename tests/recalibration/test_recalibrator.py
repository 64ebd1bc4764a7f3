"""The recalibrator: bias, scale and distribution of errors, and what it warns of."""

import copy
import pickle
import re
import resource
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

import sigmascale as ss
from sigmascale import exceptions as ex
from sigmascale.recalibration.scalings import SCALINGS


def rows(n=1000, seed=0, errors=None, **more):
    rng = np.random.default_rng(seed)
    u, x = rng.lognormal(0, 0.4, n), rng.uniform(-1, 1, n)
    z = rng.normal(size=n) if errors is None else errors(rng, n)
    y_pred = rng.normal(10, 3, n)
    y = y_pred + 2 * u * np.exp(0.5 * x) * z
    return ss.Predictions(y_pred, u, y_true=y, features={"x": x}, **more)


def exponential(rng, n):
    return rng.exponential(size=n) - 1


def covered(r, p, coverage):
    low, high = r.apply(p).distributions.interval(coverage).T
    return float(np.mean((low <= p.y_true) & (p.y_true <= high)))


def test_applied_predictions_carry_new_uncertainties_and_distributions():
    p, new = rows(), rows(seed=1)
    r = ss.Recalibrator().fit(p)
    q = r.apply(new)
    np.testing.assert_array_equal(q.y_std, r.predict(new))
    np.testing.assert_array_equal(q.y_pred, new.y_pred)
    np.testing.assert_array_equal(q.y_true, new.y_true)
    assert q.features.keys() == new.features.keys()
    assert ss.scores.crps(q) < ss.scores.crps(new)
    assert np.mean(q.z2) == pytest.approx(1, abs=0.15)
    assert new.recalibrated is None  # what was given has not changed


def test_intervals_hold_what_they_claim_for_errors_of_any_shape():
    for errors in (None, exponential, lambda g, n: g.standard_t(3, n)):
        r = ss.Recalibrator().fit(rows(2000, errors=errors))
        new = rows(8000, seed=1, errors=errors)
        for coverage in (0.5, 0.9, 0.95):
            assert covered(r, new, coverage) == pytest.approx(coverage, abs=0.03)


def test_a_wrong_kind_of_rows_gets_a_sentence_that_shows_how_to_make_them():
    r = ss.Recalibrator()
    for wrong in ([[1.0, 2.0]], np.ones((3, 2)), None, {"u": [1.0]}):
        with pytest.raises(ex.InvalidInputError, match=r"ss\.Predictions\("):
            r.fit(wrong)
    with pytest.raises(ex.InvalidInputError, match="y_true"):
        r.fit(ss.Predictions(y_std=[1.0, 2.0]))
    with pytest.raises(ex.InvalidInputError, match="x"):
        r.fit(rows()).apply(ss.Predictions(y_std=[1.0]))


def test_parameters_that_cannot_be_are_refused_by_name():
    p = rows(60)
    for name, value in {
        "scaling": "boosted",
        "bias": "yes",
        "distribution": "student",
        "hold_out": 1.5,
        "bounds": (3, 1),
        "random_state": -1,
    }.items():
        with pytest.raises(ex.InvalidInputError, match=name):
            ss.Recalibrator(**{name: value}).fit(p)


def test_fitting_again_forgets_everything():
    r = ss.Recalibrator(bias="auto").fit(rows(seed=1))
    again = r.fit(rows(seed=2))
    fresh = ss.Recalibrator(bias="auto").fit(rows(seed=2))
    new = rows(seed=3)
    np.testing.assert_array_equal(again.predict(new), fresh.predict(new))
    assert again.describe() == fresh.describe()


def test_a_bias_is_learned_where_rows_out_of_fold_gain_from_it():
    def biased(seed):
        p = rows(1500, seed)
        return ss.Predictions(
            p.y_pred - 3 * p.y_std * (p.features["x"] > 0),
            p.y_std,
            y_true=p.y_true,
            features=p.features,
        )

    p, new = biased(0), biased(1)
    plain, auto = ss.Recalibrator().fit(p), ss.Recalibrator(bias="auto").fit(p)
    moved = auto.apply(new)
    off = moved.y_pred - new.y_pred
    high = new.features["x"] > 0
    assert np.mean(off[high] / new.y_std[high]) == pytest.approx(3, abs=0.4)
    assert np.abs(np.mean(off[~high])) < 0.4
    assert ss.scores.crps(moved) < 0.97 * ss.scores.crps(plain.apply(new))
    np.testing.assert_array_equal(moved.y_true, new.y_true)
    none = ss.Recalibrator(bias="auto").fit(rows(1500))
    assert none.bias_ is None
    constant = ss.Recalibrator(bias="constant").fit(p)
    assert constant.apply(new).y_pred.mean() > new.y_pred.mean()


def test_trees_of_a_bias_are_few_where_rows_seem_to_lie_in_the_order_of_time():
    def wavy(n, seed, **more):
        rng = np.random.default_rng(seed)
        x = rng.uniform(0, 1, (n, 3))
        bias = 4 * np.sin(12 * x[:, 0]) * np.cos(9 * x[:, 1])
        features = {"a": x[:, 0], "b": x[:, 1], **more.pop("features", {})}
        error = bias + rng.normal(size=n)
        return ss.Predictions(y_std=np.ones(n), error=error, features=features, **more)

    def of(p):
        r = ss.Recalibrator(bias="auto").fit(p)
        return r, ss.scores.crps(r.apply(new))

    new = wavy(4000, 1)
    many, loss = of(wavy(3000, 0))
    assert "pass `time`" not in many.describe()
    day = np.datetime64("2020-01-01") + np.arange(3000) // 2
    for dates in (day, day.astype(str), np.char.replace(day.astype(str), "-", "")):
        few, loss_of_few = of(wavy(3000, 0, groups=dates))
        assert "groups look like dates" in few.describe()
        assert loss < 0.97 * loss_of_few
    month = day.astype("datetime64[M]").astype("datetime64[D]")
    for name, column in (
        ("year", np.arange(3000.0)),
        ("when", month.astype(str)),
    ):
        p = wavy(3000, 0, features={name: column})
        words = ss.Recalibrator(bias="auto").fit(p).describe()
        assert f"rows lie in the order of '{name}'" in words
    timed = wavy(3000, 0, groups=day, time=day)
    assert "pass `time`" not in ss.Recalibrator(bias="auto").fit(timed).describe()
    assert "pass `time`" not in of(wavy(3000, 0, groups=np.arange(3000)))[0].describe()


def test_noise_has_hardly_ever_trees_of_a_bias():
    taken = 0
    for seed in range(20):
        rng = np.random.default_rng([seed, 41])
        features = {name: rng.normal(size=400) for name in "abcd"}
        p = ss.Predictions(
            y_std=rng.lognormal(0, 0.5, 400),
            error=rng.normal(size=400),
            features=features,
        )
        words = ss.Recalibrator(bias="auto").fit(p).describe()
        taken += "corrected by boosted trees" in words
    assert taken <= 4


def test_a_bias_must_hold_for_another_stretch_of_time():
    rng = np.random.default_rng(0)
    t = np.arange(1200.0)
    wave = 3 * np.sign(np.sin(t / 40))  # features follow time, and time does not recur
    p = ss.Predictions(
        np.zeros(1200),
        np.ones(1200),
        y_true=wave + rng.normal(size=1200),
        features={"t": t},
        time=t,
    )
    ignorant = ss.Predictions(p.y_pred, p.y_std, y_true=p.y_true, features=p.features)
    assert ss.Recalibrator(bias="auto").fit(ignorant).bias_ is not None
    assert ss.Recalibrator(bias="auto").fit(p).bias_ is None


def test_few_rows_have_the_distribution_of_their_sizes():
    p = rows(30)
    r = ss.Recalibrator(ss.TemperatureScaling()).fit(p)
    low, high = r.apply(rows(seed=1)).distributions.interval(0.9)[0]
    assert np.isfinite([low, high]).all()
    d = r.apply(rows(5, seed=1)).distributions
    middle = d.quantile([0.5])[:, 0]
    np.testing.assert_allclose(middle, d.location, atol=1e-9)


@pytest.mark.slow
def test_rows_held_out_give_the_guarantee_of_split_conformal_prediction():
    shapes = {
        "normal": None,
        "t(3)": lambda g, n: g.standard_t(3, n),
        "skewed": exponential,
    }
    for name, errors in shapes.items():
        for coverage in (0.8, 0.9):
            held = [
                covered(
                    ss.Recalibrator(ss.TemperatureScaling(), hold_out=0.5).fit(
                        rows(100, seed, errors)
                    ),
                    rows(50, 10_000 + seed, errors),
                    coverage,
                )
                for seed in range(200)
            ]
            error = np.std(held) / np.sqrt(len(held))
            assert np.mean(held) > coverage - 2.5 * error, name


def test_whole_groups_are_held_out():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(100), 5)
    p = rows(500, groups=groups)
    r = ss.Recalibrator(ss.TemperatureScaling(), hold_out=0.2).fit(p)
    order = rng.permutation(500)
    shuffled = p.take(order)
    again = ss.Recalibrator(ss.TemperatureScaling(), hold_out=0.2).fit(shuffled)
    np.testing.assert_allclose(again.predict(p), r.predict(p), 1e-9)
    # the scale is that of 400 rows, whatever is in the other 20 groups
    assert int(np.sum(r.distribution_.n_rows)) == 100


def test_beyond_the_outermost_level_an_interval_is_infinite_and_says_so():
    r = ss.Recalibrator(ss.TemperatureScaling(), hold_out=0.2).fit(rows(60))
    q = r.apply(rows(seed=1))
    with pytest.warns(ex.InfiniteIntervalWarning):
        limits = q.distributions.interval(0.95)
    assert np.isinf(limits).all()
    assert np.isfinite(ss.scores.crps(q))
    assert np.isfinite(q.distributions.std).all()


def test_bounds_of_rain_make_quantiles_that_can_be_and_a_better_score():
    rng = np.random.default_rng(3)
    forecast = rng.gamma(1.0, 2.0, 3000)
    rain = np.maximum(0, forecast + rng.normal(size=3000) * (1 + 0.5 * forecast))
    p = ss.Predictions(forecast, 1 + 0.3 * forecast, y_true=rain)
    known, new = p.take(np.arange(1500)), p.take(np.arange(1500, 3000))
    plain, bounded = (
        ss.Recalibrator(bounds=bounds).fit(known).apply(new)
        for bounds in (None, (0, None))
    )
    assert plain.distributions.quantile([0.05]).min() < 0
    assert bounded.distributions.quantile([0.01, 0.05, 0.5]).min() == 0
    assert ss.scores.crps(bounded) < ss.scores.crps(plain)


def test_weights_that_leave_few_rows_in_effect_are_warned_of():
    far = np.exp(2 * np.random.default_rng(0).normal(size=300))
    with pytest.warns(ex.FewRowsWarning, match="300 rows count as"):
        ss.Recalibrator(ss.LinearScaling()).fit(rows(300, weights=far))
    near = np.exp(0.5 * np.random.default_rng(0).normal(size=300))
    ss.Recalibrator(ss.LinearScaling()).fit(rows(300, weights=near))


def test_errors_that_are_all_0_change_nothing_and_say_so():
    p = ss.Predictions(np.ones(50), np.ones(50), y_true=np.ones(50))
    with pytest.warns(ex.DegenerateFitWarning):
        r = ss.Recalibrator(ss.LinearScaling()).fit(p)
    np.testing.assert_allclose(r.predict(p), 1)


def test_errors_of_which_a_bias_leaves_nothing_tell_no_scale():
    u = np.random.default_rng(0).lognormal(size=200)
    for error in (2 * u, np.full(200, 0.3)):
        p = ss.Predictions(1000 * u, u, error=error)
        with pytest.warns(ex.DegenerateFitWarning):
            r = ss.Recalibrator(bias="constant").fit(p)
        q = r.apply(p)
        np.testing.assert_allclose(q.y_std, u)
        np.testing.assert_allclose(q.y_pred - p.y_pred, error)


def test_equal_sizes_of_errors_are_no_outliers():
    u = np.random.default_rng(0).lognormal(size=200)
    p = ss.Predictions(y_std=u, error=2 * u * np.resize([1, -1], 200))
    r = ss.Recalibrator(ss.TemperatureScaling()).fit(p)
    np.testing.assert_allclose(r.predict(p), 2 * u)
    assert r.cautions_ == ()


def test_rows_unlike_those_of_the_fit_are_told():
    p = rows()
    r = ss.Recalibrator(ss.RakedScaling()).fit(p)
    n = 20
    far = ss.Predictions(y_std=np.full(n, 1e4), features={"x": np.zeros(n)})
    with pytest.warns(ex.ExtrapolationWarning):
        r.predict(far)
    with pytest.warns(ex.MissingFeatureWarning):
        r.predict(ss.Predictions(y_std=np.ones(n), features={"x": np.full(n, np.nan)}))
    kinds = ss.Predictions(
        y_std=p.y_std, error=p.error, features={"kind": np.resize(["a", "b"], len(p))}
    )
    r = ss.Recalibrator(ss.BinwiseScaling(by="kind")).fit(kinds)
    with pytest.warns(ex.UnseenCategoryWarning):
        r.predict(ss.Predictions(y_std=[1.0], features={"kind": ["c"]}))


def test_uncertainties_beyond_all_errors_are_told_with_the_rows_that_decide():
    p = rows(500)
    u, error = p.y_std.copy(), p.error.copy()
    u[17], error[17] = 1e-6, 5.0
    with pytest.warns(ex.AbsurdScaleWarning, match=re.compile("row 17|row 18")):
        r = ss.Recalibrator(ss.TemperatureScaling()).fit(
            ss.Predictions(y_std=u, error=error)
        )
    assert r.cautions_


def test_a_few_large_errors_that_have_raised_u_are_told_with_the_factor():
    rng = np.random.default_rng(0)
    z = rng.normal(size=1000)
    z[:2] = 50.0
    factor = np.sqrt(np.mean(z**2))  # 2.4
    for unit, how in ((1.0, "raised"), (2.0, "raised"), (4.0, "changed")):
        p = ss.Predictions(y_std=np.full(1000, unit), error=z)
        (caution,) = ss.Recalibrator(ss.TemperatureScaling()).fit(p).cautions_
        assert f"which was {how} {factor / unit:.2g} times" in caution


def test_rows_that_were_fitted_are_recognised_and_others_are_not():
    p = rows()
    r = ss.Recalibrator(ss.LinearScaling()).fit(p)
    assert len(r.fitted_rows_.hashes) <= 64
    assert r.apply(p).distributions.fitted_share > 0.9
    assert r.apply(rows(seed=1)).distributions.fitted_share < 0.1
    order = np.random.default_rng(0).permutation(len(p))
    assert r.apply(p.take(order)).distributions.fitted_share > 0.9


def test_what_was_learned_is_said_in_words():
    p = rows()
    one = ss.Recalibrator(ss.TemperatureScaling()).fit(p)
    factor = np.sqrt(np.mean(p.z2))
    assert f"{factor:.3g}"[:4] in one.describe()
    for name, scaling in SCALINGS.items():
        words = ss.Recalibrator(scaling()).fit(p).describe()
        assert "1000 rows" in words.replace(",", ""), name
        assert "0 trees" not in words


def test_groups_stay_together_in_folds():
    # rows of a group are copies: whoever parts them learns them by heart
    rng = np.random.default_rng(5)
    x, z = (np.repeat(rng.normal(size=60), 10) for _ in range(2))
    told = ss.Predictions(
        y_std=np.ones(600),
        error=z,
        features={"x": x},
        groups=np.repeat(np.arange(60), 10),
    )
    r = ss.Recalibrator().fit(told)
    new = ss.Predictions(
        y_std=np.ones(4000),
        error=rng.normal(size=4000),
        features={"x": rng.normal(size=4000)},
    )
    assert np.std(np.log(r.predict(new))) < 0.35


def test_exactly_zero_uncertainties_are_lifted_where_arrays_are_predicted():
    r = ss.Recalibrator(ss.TemperatureScaling()).fit(rows())
    with pytest.warns(ex.ZeroUncertaintyWarning):
        found = r.predict(np.array([[0.0, 0.0], [1.0, 0.0]]))
    assert 0 < found[0] < found[1]


def test_the_share_of_truths_below_quantiles_is_their_level():
    r = ss.Recalibrator().fit(rows(1500, errors=exponential))
    new = rows(4000, seed=9, errors=exponential)
    q = r.apply(new).distributions.quantile([0.1, 0.5, 0.9])
    for k, level in enumerate((0.1, 0.5, 0.9)):
        below = int(np.sum(new.y_true <= q[:, k]))
        assert binomtest(below, 4000, level).proportion_ci(0.9999).low < level + 0.02
        assert binomtest(below, 4000, level).proportion_ci(0.9999).high > level - 0.02


def test_a_bias_that_no_scale_mends_is_told():
    rng = np.random.default_rng(0)
    u, kind = rng.gamma(3, 1, 2000), rng.choice(["a", "b", "c"], 2000)
    z = rng.normal(size=2000)
    for off, told in ((0.0, False), (1.5, True)):
        error = u * (z + off * (kind == "b"))
        p = ss.Predictions(error=error, y_std=u, features={"kind": kind})
        said = ss.Recalibrator().fit(p).describe()
        assert ("along 'kind'" in said) == told
        assert ("too low" in said) == told
        assert 'bias="auto"' not in ss.Recalibrator(bias="auto").fit(p).describe()


@contextmanager
def little_memory():
    """Let this process have 500 MB more than it has, and no more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + 500_000_000
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")
def test_many_labels_in_many_groups_need_memory_for_the_rows_alone():
    rng = np.random.default_rng(0)
    n, n_labels = 30_000, 10_000  # a table of labels and groups would have 800 MB
    p = ss.Predictions(
        y_std=np.ones(n),
        error=rng.normal(size=n),
        features={"kind": np.char.add("k", rng.integers(0, n_labels, n).astype(str))},
        groups=rng.integers(0, n_labels, n),
    )
    with little_memory():
        assert ss.Recalibrator(ss.LinearScaling()).fit(p).describe()


# -- the rows of the fit, unseen -------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"scaling": ss.BinwiseScaling(25, by="x", prior_rows=0), "bias": "constant"},
        {"scaling": ss.IsotonicScaling(), "parts": ["x"]},
        {"hold_out": 0.5},
    ],
)
def test_rows_out_of_fold_look_like_new_rows(options):
    of_fit, out_of_fold, of_new = [], [], []
    for seed in range(20):
        p, new = rows(150, seed=seed), rows(2000, seed=100 + seed)
        r = ss.Recalibrator(**options).fit(p)
        for q, values in (
            (r.apply(p), of_fit),
            (r.out_of_fold_, out_of_fold),
            (r.apply(new), of_new),
        ):
            low, high = q.distributions.interval(0.8).T
            held = np.mean((low <= q.y_true) & (q.y_true <= high))
            values.append((q.abs_z.mean(), held))
    seen, unseen, new = (np.mean(v, axis=0) for v in (of_fit, out_of_fold, of_new))
    np.testing.assert_allclose(unseen, new, atol=0.05)
    if "scaling" in options:
        assert new[0] > seen[0] + 0.01  # fitted rows are better than new ones


def test_rows_out_of_fold_are_those_that_were_fitted_in_their_order():
    weights = np.random.default_rng(1).uniform(0.5, 2, 300)
    weights[[3, 77]] = 0
    p = rows(300, groups=np.arange(300) // 3, weights=weights)
    shuffled = np.random.default_rng(2).permutation(p.n_rows)
    for options in ({"bias": "auto"}, {"hold_out": 0.4}, {"parts": ["u"]}):
        r = ss.Recalibrator(**options).fit(p)
        q = r.out_of_fold_
        rows_of_q = np.searchsorted(p.places, q.places)
        assert (np.diff(rows_of_q) > 0).all()
        assert (q.n_rows == p.n_rows) == ("hold_out" not in options)
        for name in ("y_true", "weights"):
            np.testing.assert_array_equal(getattr(q, name), getattr(p, name)[rows_of_q])
        np.testing.assert_array_equal(q.features["x"], p.features["x"][rows_of_q])
        assert q.distributions.fitted_share == 0
        if "hold_out" in options:  # the farthest row is beyond all that others tell
            assert q.distributions.pit(q.y_true).max() == 1
            assert q.distributions.pit(q.y_true).min() == 0

        # the same rows in another order are the same rows
        again = ss.Recalibrator(**options).fit(p.take(shuffled)).out_of_fold_
        back = np.argsort(again.places)
        np.testing.assert_array_equal(again.places[back], q.places)
        for of_q, of_again in (
            (q.y_std, again.y_std),
            (q.y_pred, again.y_pred),
            (q.distributions.quantile(0.9), again.distributions.quantile(0.9)),
        ):
            np.testing.assert_array_equal(of_q, of_again[back])


def test_rows_of_a_fit_are_neither_saved_nor_sent(tmp_path):
    r = ss.Recalibrator().fit(rows(30_000))
    r.save(tmp_path / "r.json")
    sent = pickle.dumps(r)
    assert len(sent) < 200_000  # a column of the rows has 240,000 bytes
    for other in (ss.load(tmp_path / "r.json"), pickle.loads(sent), copy.copy(r)):
        np.testing.assert_array_equal(other.predict(rows(9)), r.predict(rows(9)))
        with pytest.raises(ex.InvalidInputError, match=r"not saved.*calibration="):
            _ = other.out_of_fold_


class Falling(ss.recalibration.scalings.Scaling):
    """What nobody would call isotonic: the larger u is, the less it becomes."""

    def learn(self, rows):
        from sigmascale.recalibration.additive import Additive, Base
        from sigmascale.recalibration.scalings import Learned

        base = Base(knots=np.array([0.5, 2.0]), values=np.array([4.0, 1.0]))
        return Learned(Additive(base))


def test_words_call_no_base_isotonic_but_say_what_it_is():
    rng = np.random.default_rng(0)
    p = ss.Predictions(y_std=rng.lognormal(size=200), error=rng.normal(size=200))
    assert "isotonic" not in str(ss.Recalibrator(Falling()).fit(p).describe())


@pytest.mark.parametrize("scaling", [None, ss.RakedScaling()])
def test_a_column_of_one_value_changes_nothing(scaling):
    rng = np.random.default_rng(1)
    n = 300
    u = rng.lognormal(size=n)
    kind = rng.choice(["a", "b", "c"], n)
    x = rng.normal(size=n)
    error = u * np.exp(0.5 * (kind == "a") + 0.3 * x) * rng.normal(size=n)
    features = {"x": x, "kind": kind}
    for bias in (None, "auto"):
        fitted = []
        for more in ({}, {"one": np.full(n, "gas"), "same": np.full(n, 2.0)}):
            p = ss.Predictions(y_std=u, error=error, features=features | more)
            q = ss.Recalibrator(scaling, bias=bias).fit(p).apply(p)
            fitted.append(np.column_stack([q.y_std, q.distributions.interval(0.9)]))
        np.testing.assert_array_equal(*fitted)


def test_a_recalibrator_shows_itself_before_and_after_the_fit():
    rng = np.random.default_rng(0)
    p = ss.Predictions(
        rng.normal(size=200),
        rng.uniform(1, 2, 200),
        y_true=rng.normal(size=200),
        features={"<b>": rng.normal(size=200)},
    )
    r = ss.Recalibrator(ss.RakedScaling(4), hold_out=0.3, bounds=(-10, None))
    options = "scaling=RakedScaling(n_bins=4), hold_out=0.3, bounds=(-10, None)"
    assert repr(r) == f"Recalibrator({options})"
    r.fit(p)
    for words in (
        *("RakedScaling, fitted to 200 rows", "factors of u, <b>"),
        *("held-out z-scores of 60 rows", "True values are at least −10"),
    ):
        assert words in repr(r)
    assert "<b>" not in r._repr_html_()
    assert "&lt;b&gt;" in r._repr_html_()
