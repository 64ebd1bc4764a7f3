"""Several targets: what they learn from each other, and what they leave to each."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError, TargetsNotErrorsWarning
from sigmascale.persistence import dumps, loads
from sigmascale.targets.leaning import shrink_logs

SIZES = [30, 30, 30, 30, 60, 60, 60, 200, 200, 200, 1000, 1000]


def make_targets(seed, *, level_sd=0.3, floor_sd=0.0, sizes=SIZES, n_new=500):
    """Return u and errors to fit, with gaps, and new ones; each target has its unit.

    sigma = level hypot(u, floor): levels differ by exp(level_sd), floors by floor_sd.
    """
    rng = np.random.default_rng(seed)
    t, n = len(sizes), max(sizes)
    level = np.exp(rng.normal(0, level_sd, t))
    floor = np.abs(0.5 + rng.normal(0, floor_sd, t))
    unit = 10.0 ** rng.uniform(-3, 3, t)

    def draw(n):
        u = rng.lognormal(0, 0.6, (n, t))
        return u * unit, unit * rng.normal(scale=level * np.hypot(u, floor))

    u, error = draw(n)
    for k, size in enumerate(sizes):
        error[rng.permutation(n)[size:], k] = np.nan
    return u, error, *draw(n_new)


def mean_nll(u, error):
    return float(np.mean(np.log(u) + 0.5 * (error / u) ** 2))


def separate_fits(u, error, u_new, template=None):
    """Return what a template makes of each target alone."""
    columns = []
    for k in range(u.shape[1]):
        known = ~np.isnan(error[:, k])
        fitted = clone(template or ss.LinearScaling()).fit(u[known, k], error[known, k])
        columns.append(fitted.predict(u_new[:, k]))
    return np.column_stack(columns)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.ExtrapolationWarning")
@pytest.mark.parametrize(
    ("template", "law"),
    [
        (ss.TemperatureScaling(), {"level_sd": 0.0}),
        (ss.LinearScaling(), {"level_sd": 0.3}),
        (ss.LinearScaling(), {"level_sd": 1.0}),
        (ss.LinearScaling(), {"level_sd": 0.3, "floor_sd": 1.0}),
    ],
    ids=["equal", "levels differ", "levels differ much", "shapes differ"],
)
def test_leaning_beats_separate_fits_and_never_loses_to_one_factor(template, law):
    gains = []
    for seed in range(4):
        u, error, u_new, error_new = make_targets(seed, **law)
        new = ss.RecalibratedTargets(template).fit(u, error).predict(u_new)
        known = ~np.isnan(error)
        factor = np.sqrt(np.mean((error[known] / u[known]) ** 2))
        ours = mean_nll(new, error_new)
        alone = separate_fits(u, error, u_new, template)
        gains.append(mean_nll(alone, error_new) - ours)
        assert ours < mean_nll(factor * u_new, error_new) + 0.01
    assert np.mean(gains) > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.ExtrapolationWarning")
@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.FewRowsWarning")
@pytest.mark.parametrize(("small", "most"), [(30, 0.02), (100, 0.002)])
def test_a_small_target_of_another_kind_is_not_harmed(small, most):
    worse = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        u, u_new = rng.lognormal(0, 0.6, (2, 1000, 5))
        error = rng.normal(scale=np.hypot(u, 0.5))
        error[:, 4] = rng.normal(size=1000)  # whatever u is
        error[small:, 4] = np.nan
        targets = ss.RecalibratedTargets().fit(u, error)
        ours, alone = (
            each[:, 4]
            for each in (targets.predict(u_new), separate_fits(u, error, u_new))
        )
        # the expected negative log-likelihood of new errors
        worse.append(np.mean(np.log(ours / alone) + (ours**-2 - alone**-2) / 2))
    # 0.12 and 0.02 where all targets lean alike; the mean has an error of 0.005
    assert np.mean(worse) < most


def test_a_target_with_many_rows_stands_by_itself():
    u, error, u_new, _ = make_targets(
        0, floor_sd=2.0, sizes=[4000, 4000, 4000, 4000, 30]
    )
    targets = ss.RecalibratedTargets().fit(u, error)
    weights = [each.own_weight_ for each in targets.scalings.values()]
    assert min(weights[:4]) > 0.9
    assert weights[4] < weights[0]
    ratio = targets.predict(u_new) / separate_fits(u, error, u_new)
    assert np.mean(abs(np.log(ratio[:, :4]))) < 0.03


def test_missing_entries_are_those_of_a_long_table_without_these_rows():
    u, error, *_ = make_targets(1, sizes=[40, 80, 200])
    u[np.isnan(error)] = np.nan  # nothing is known of these
    names = ["a", "b", "c"]
    wide = ss.RecalibratedTargets(names=names).fit(u, error)
    row, target = np.nonzero(~np.isnan(error))
    table = pl.DataFrame({"u": u[row, target], "t": np.array(names)[target]})
    long = ss.RecalibratedTargets(by="t").fit(table, error[row, target], groups=row)
    assert list(long.recalibrators_) == names
    predicted = wide.predict(u)
    assert np.isnan(predicted[np.isnan(u)]).all()
    np.testing.assert_array_equal(predicted[row, target], long.predict(table))
    assert wide.score(u, error) == pytest.approx(long.score(table, error[row, target]))
    # rows without any entry are as good as not there
    padded = [np.vstack([each, np.full((3, 3), np.nan)]) for each in (u, error)]
    again = ss.RecalibratedTargets(names=names).fit(*padded)
    np.testing.assert_array_equal(again.predict(u), predicted)


def test_neither_units_nor_the_order_of_rows_or_targets_matter():
    u, error, u_new, _ = make_targets(2, floor_sd=1.0, sizes=[40, 80, 300, 300])
    expected = ss.RecalibratedTargets().fit(u, error).predict(u_new)
    unit = np.array([1e-3, 10.0, 5e4, 1.0])
    scaled = ss.RecalibratedTargets().fit(u * unit, error * unit).predict(u_new * unit)
    np.testing.assert_allclose(scaled, expected * unit, rtol=1e-9)
    rows = np.random.default_rng(0).permutation(len(u))
    again = ss.RecalibratedTargets().fit(u[rows], error[rows]).predict(u_new)
    np.testing.assert_allclose(again, expected, rtol=1e-9)
    order = [2, 0, 3, 1]
    again = ss.RecalibratedTargets().fit(u[:, order], error[:, order])
    np.testing.assert_allclose(
        again.predict(u_new[:, order]), expected[:, order], rtol=1e-6
    )


def test_one_target_is_recalibrated_as_by_its_template_alone():
    u, error, u_new, _ = make_targets(3, sizes=[300])
    one = ss.RecalibratedTargets().fit(u, error[:, 0])
    alone = ss.LinearScaling().fit(u, error[:, 0])
    assert one.predict(u_new).shape == (500,)
    np.testing.assert_allclose(one.predict(u_new), alone.predict(u_new), rtol=1e-6)
    assert one.score(u, error[:, 0]) == pytest.approx(alone.score(u, error[:, 0]))


@pytest.mark.parametrize(
    "template",
    [
        ss.NoScaling(),
        ss.TemperatureScaling(),
        ss.IsotonicScaling(),
        ss.BinwiseScaling(5),
        ss.CategoryScaling(by=1),
        ss.RakedScaling(4, shrinkage=10.0),
        ss.BoostedScaling(max_trees=3, n_folds=2),
        ss.SelectedScaling(candidates={"t": ss.TemperatureScaling()}, n_folds=2),
        ss.LinearScaling(),
    ],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.ExtrapolationWarning")
def test_every_recalibrator_can_be_the_template(template):
    u, error, u_new, error_new = make_targets(4, sizes=[10, 25, 120, 120])
    label = np.arange(len(u)) % 2
    targets = ss.RecalibratedTargets(template).fit(np.column_stack([u, label]), error)
    X = np.column_stack([u_new, np.arange(500) % 2])
    predicted = targets.predict(X)
    assert predicted.shape == (500, 4)
    assert np.isfinite(predicted).all()
    assert (predicted > 0).all()
    assert targets.score(X, error_new) < 0 or targets.score(X, error_new) > 0
    zms = np.mean((error_new / predicted) ** 2, axis=0)
    assert (abs(np.log(zms[2:])) < 0.7).all()  # of those with 120 rows
    for k, each in enumerate(targets.recalibrators_.values()):
        assert (each.law_.words == "normal") == (k < 2)  # 10 and 25 rows
        limits = each.predict_interval(X[:, [k, 4]], 0.8)
        assert ss.picp(error_new[:, k], limits) == pytest.approx(0.8, abs=0.2)


def test_features_are_shared_and_follow_the_uncertainties():
    rng = np.random.default_rng(0)
    u, x = rng.uniform(1, 2, (2000, 2)), rng.uniform(0, 1, 2000)
    error = rng.normal(scale=u * np.where(x > np.median(x), 3.0, 1.0)[:, None])
    X = pd.DataFrame({"u_a": u[:, 0], "u_b": u[:, 1], "x": x})
    y = pd.DataFrame({"a": error[:, 0], "b": error[:, 1]})
    targets = ss.RecalibratedTargets(ss.BinwiseScaling(2, by="x")).fit(X, y)
    assert list(targets.recalibrators_) == ["a", "b"]
    factor = targets.predict(X) / u
    np.testing.assert_allclose(factor[x > 0.55], 3.0, rtol=0.1)
    np.testing.assert_allclose(factor[x < 0.45], 1.0, rtol=0.1)
    # each is a recalibrator like all others
    alone = targets.recalibrators_["b"].predict(X[["u_b", "x"]])
    np.testing.assert_array_equal(alone, targets.predict(X)[:, 1])
    with pytest.raises(ValueError, match="feature names should match"):
        targets.predict(X[["u_b", "u_a", "x"]])


def make_orbitals(n=2000):
    """Return u and errors of three targets, whose factors differ much."""
    rng = np.random.default_rng(0)
    names = ["gap", "homo", "lumo"]
    u = pd.DataFrame(rng.uniform(1, 2, (n, 3)), columns=names)
    error = u * [1.0, 2.0, 4.0] * rng.normal(size=(n, 3))
    return u, error, {"gap": 1.0, "homo": 2.0, "lumo": 4.0}


@pytest.mark.parametrize("prefix", ["u_", ""], ids=["u_gap", "gap"])
@pytest.mark.parametrize("of_errors", ["", "E_"], ids=["gap", "E_gap"])
def test_columns_are_paired_by_their_names_whatever_their_order(prefix, of_errors):
    u, error, factors = make_orbitals()
    X = u[["lumo", "gap", "homo"]].add_prefix(prefix).assign(x=0.5)
    targets = ss.RecalibratedTargets(ss.TemperatureScaling())
    targets.fit(X, error.add_prefix(of_errors))
    for name, factor in factors.items():
        scaler = targets.recalibrators_[of_errors + name]
        assert scaler.scaling_.own_factor_ == pytest.approx(factor, rel=0.1)
        assert scaler.feature_names_in_.tolist() == [prefix + name, "x"]
    expected = u * [1.0, 2.0, 4.0]
    np.testing.assert_allclose(targets.predict(X), expected, rtol=0.1)
    score = targets.score(X, error.add_prefix(of_errors))
    turned = error.add_prefix(of_errors).iloc[:, ::-1]
    assert targets.score(X, turned) == score
    again = loads(dumps(targets))
    np.testing.assert_array_equal(again.predict(X), targets.predict(X))
    judged = ss.split_targets(error, X.iloc[:, :3])
    zms = [ss.zms(each) for each in judged.values()]
    np.testing.assert_allclose(zms, [1.0, 4.0, 16.0], rtol=0.2)


def test_names_that_contradict_the_order_are_refused():
    u, error, _ = make_orbitals(50)
    X = u.set_axis(["s_homo", "gap_std", "lumo"], axis=1)
    with pytest.raises(InvalidInputError, match="found 's_homo' in the place of 'gap'"):
        ss.RecalibratedTargets().fit(X, error)
    with pytest.raises(InvalidInputError, match="`names` must be in the order"):
        ss.RecalibratedTargets(names=["homo", "gap", "lumo"]).fit(u, error)
    features_first = u.add_prefix("u_").assign(x=0.5)[
        ["x", "u_gap", "u_homo", "u_lumo"]
    ]
    with pytest.raises(InvalidInputError, match="'u_gap' in the place of 'homo'"):
        ss.RecalibratedTargets().fit(features_first, error)
    # names that say nothing leave it to the order
    plain = u.set_axis(["first", "second", "third"], axis=1)
    expected = ss.RecalibratedTargets().fit(u, error).predict(u)
    found = ss.RecalibratedTargets().fit(plain, error).predict(plain)
    np.testing.assert_array_equal(found, expected)


def test_columns_with_numbers_as_names_are_not_taken_in_another_order():
    u, error, _ = make_orbitals(200)
    X = u.set_axis([0, 1, 2], axis=1)
    targets = ss.RecalibratedTargets().fit(X, error)
    with pytest.raises(InvalidInputError, match="in the order of fit, 0, 1, 2"):
        targets.predict(X[[2, 0, 1]])


def test_groups_make_targets_lean_more():
    rng = np.random.default_rng(5)
    n_groups, size = 30, 20
    group = np.repeat(np.arange(n_groups), size)
    common = rng.normal(size=(n_groups, 4))[group]  # all rows of a group share this
    u = rng.uniform(1, 2, (group.size, 4))
    error = u * (0.95 * common + 0.3 * rng.normal(size=u.shape))
    spread = {}
    for labels in (None, group):
        targets = ss.RecalibratedTargets(ss.TemperatureScaling())
        targets.fit(u, error, groups=labels)
        factors = [each.factor_ for each in targets.scalings.values()]
        spread[labels is None] = np.std(np.log(factors))
    assert spread[False] < 0.7 * spread[True]


@pytest.mark.parametrize(
    "template", [ss.LinearScaling(), ss.IsotonicScaling()], ids=["linear", "isotonic"]
)
def test_weights_are_repeats_and_only_their_ratios_matter(template):
    u, error, u_new, _ = make_targets(8, floor_sd=1.0, sizes=[40, 80, 200])
    row = np.arange(len(u))
    weight = np.random.default_rng(0).integers(0, 4, len(u))

    def fit(*arguments):
        return ss.RecalibratedTargets(template).fit(*arguments)

    weighted = fit(u, error, row, weight)
    again = np.repeat(row, weight)
    repeated = fit(u[again], error[again], row[again])
    expected = repeated.predict(u_new)
    np.testing.assert_allclose(weighted.predict(u_new), expected, rtol=1e-9)
    assert weighted.score(u, error, weight) == pytest.approx(
        weighted.score(u[again], error[again])
    )
    np.testing.assert_allclose(
        fit(u, error, row, 0.37 * weight).predict(u_new), expected, rtol=1e-9
    )
    plain = fit(u, error, row)
    ones = fit(u, error, row, np.full(len(u), 2.5))
    np.testing.assert_array_equal(ones.predict(u_new), plain.predict(u_new))
    assert "count as" in weighted.recalibrators_["y0"].describe()


def test_a_target_without_errors_that_differ_from_0_leans_on_the_others():
    u, error, *_ = make_targets(6, sizes=[50, 50, 50])
    error[:, 0] = np.where(np.isnan(error[:, 0]), np.nan, 0.0)
    predicted = ss.RecalibratedTargets().fit(u, error).predict(u)
    assert np.isfinite(predicted).all()
    assert (predicted > 0).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "odd",
    [
        (np.zeros(60), np.ones(60)),
        (np.ones(60), np.ones(60)),
        (np.where(np.arange(60) == 3, 1e44, 1.0), np.linspace(1, 2, 60)),
        (np.where(np.arange(60) < 58, 0.0, 1.0), np.linspace(0.1, 2, 60)),
        (1e-200 * np.linspace(-1, 1, 60), np.linspace(1, 2, 60)),
        (np.where(np.arange(60) == 3, 1.0, np.nan), np.linspace(1, 2, 60)),
    ],
    ids=["zeros", "constant", "enormous", "nearly zeros", "tiny", "one row"],
)
def test_a_degenerate_target_beside_another_gives_numbers(odd):
    rng = np.random.default_rng(0)
    error, u = (np.column_stack([each, rng.uniform(1, 2, 60)]) for each in odd)
    targets = ss.RecalibratedTargets().fit(u, error)
    predicted = targets.predict(u)
    assert np.isfinite(predicted).all()
    assert (predicted > 0).all()
    assert np.isfinite(targets.score(u, error))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda u, e: u.__setitem__((7, 1), np.nan),
            "target 'y1', row 7: the uncertainty is nan",
        ),
        (
            lambda u, e: u.__setitem__((3, 0), -1.0),
            "target 'y0', row 3: the uncertainty is -1",
        ),
        (
            lambda u, e: e.__setitem__((2, 1), np.inf),
            "that of target 'y1' at row 2 is inf",
        ),
        (
            lambda u, e: e.__setitem__((slice(None), 0), np.nan),
            "target 'y0' has no known error",
        ),
    ],
)
def test_what_cannot_be_used_is_named_with_row_and_target(change, message):
    u, error = np.ones((30, 2)), np.random.default_rng(0).normal(size=(30, 2))
    change(u, error)
    with pytest.raises(InvalidInputError, match=message):
        ss.RecalibratedTargets().fit(u, error)


def test_arguments_that_do_not_fit_are_refused():
    u, error = np.ones((30, 2)), np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(InvalidInputError, match="`names` must be a list of 2"):
        ss.RecalibratedTargets(names=["a", "a"]).fit(u, error)
    with pytest.raises(InvalidInputError, match="column of uncertainties for each of"):
        ss.RecalibratedTargets().fit(u[:, :1], error)
    with pytest.raises(InvalidInputError, match="`scaling` must be a recalibrator"):
        ss.RecalibratedTargets("linear").fit(u, error)
    with pytest.raises(InvalidInputError, match="same number of rows"):
        ss.RecalibratedTargets().fit(u[:20], error)
    with pytest.raises(InvalidInputError, match="y` must be one column"):
        ss.RecalibratedTargets(by=1).fit(u, error)
    with pytest.raises(InvalidInputError, match="requires y to be passed"):
        ss.RecalibratedTargets().fit(u, None)
    one = ss.RecalibratedTargets().fit(u, error).recalibrators_["y0"]
    with pytest.raises(InvalidInputError, match="is not fitted alone"):
        one.fit(u[:, 0], error[:, 0])
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        ss.RecalibratedTargets().predict(u)
    table = pl.DataFrame({"u": u[:, 0], "t": ["a", "b"] * 15})
    long = ss.RecalibratedTargets(by="t").fit(table, error[:, 0])
    new = table.with_columns(t=pl.lit("c"))
    with pytest.raises(InvalidInputError, match="not seen in fit: 'c'"):
        long.predict(new)


def test_warnings_name_the_target():
    rng = np.random.default_rng(0)
    u, error = rng.uniform(1, 2, (200, 2)), rng.normal(size=(200, 2))
    error[:, 1] += 1000
    with pytest.warns(TargetsNotErrorsWarning, match="^target 'y1': The median error"):
        ss.RecalibratedTargets().fit(u, error)


def test_variances_are_shrunk_as_far_as_noise_explains_their_scatter():
    rng = np.random.default_rng(0)
    freedom = np.array([20.0] * 10 + [2000.0])
    equal = np.log(rng.chisquare(freedom) / freedom)
    assert np.ptp(shrink_logs(equal, freedom)) < 0.2 * np.ptp(equal)
    apart = equal + np.linspace(-3, 3, 11)
    np.testing.assert_allclose(shrink_logs(apart, freedom), apart, atol=0.3)


def expected_failures(estimator):
    return {
        "check_fit1d": "a one-dimensional X is the uncertainty of one target",
        "check_positive_only_tag_during_fit": "only uncertainties must be positive",
        "check_estimators_pickle": "NaN stands for entries that have no error",
    }


@pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.DegenerateFitWarning",
    "ignore::sigmascale.exceptions.ExtrapolationWarning",
    "ignore::sigmascale.exceptions.LikelySlipWarning",
)
@parametrize_with_checks(
    [ss.RecalibratedTargets()], expected_failed_checks=expected_failures
)
@pytest.mark.usefixtures("positive_input")
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


def test_a_clone_learns_the_same():
    u, error, *_ = make_targets(7, sizes=[40, 80])
    targets = ss.RecalibratedTargets(ss.IsotonicScaling()).fit(u, error)
    again = clone(targets)
    assert not hasattr(again, "recalibrators_")
    np.testing.assert_array_equal(again.fit(u, error).predict(u), targets.predict(u))
