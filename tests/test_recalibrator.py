"""Recalibrator: shift, scale and law in one estimator."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import sigmascale as ss
from sigmascale.exceptions import (
    AbsurdScaleWarning,
    DegenerateFitWarning,
    FewRowsWarning,
    ForgottenIntervalsWarning,
    InvalidInputError,
)
from sigmascale.persistence import dumps, loads

QUICK = ss.BoostedScaling(max_trees=10, n_folds=3)
CASES = {
    "default": ss.Recalibrator(),
    "one factor": ss.Recalibrator(ss.TemperatureScaling()),
    "normal": ss.Recalibrator(QUICK, law="normal"),
    "shift": ss.Recalibrator(ss.LinearScaling(), shift="auto"),
    "normal with a shift": ss.Recalibrator(law="normal", shift="constant"),
    "all": ss.Recalibrator(QUICK, shift="auto", random_state=3),
    "selected": ss.Recalibrator(
        ss.SelectedScaling(
            {"t": ss.TemperatureScaling(), "l": ss.LinearScaling()}, n_folds=2
        )
    ),
}
every = pytest.mark.parametrize("r", [clone(r) for r in CASES.values()], ids=CASES)
LEVELS = [0.05, 0.3, 0.5, 0.95]


def make_rows(n=600, seed=0, draw=None):
    """Columns u and x; errors that depend on both, and are skewed unless drawn."""
    rng = np.random.default_rng(seed)
    u, x = rng.lognormal(0, 0.5, n), rng.normal(size=n)
    z = rng.exponential(size=n) - 1 if draw is None else draw(rng, n)
    return np.column_stack([u, x]), 2 * u * np.exp(0.5 * np.tanh(x)) * z


def table_of(X):
    return pl.DataFrame({"u": X[:, 0], "x": X[:, 1]})


# --- an estimator like any other -----------------------------------------------------


def expected_failures(r):
    failures = {
        "check_fit1d": "a one-dimensional X is the uncertainty alone",
        "check_positive_only_tag_during_fit": "only the first column must be positive",
    }
    if r.shift == "constant":
        failures["check_sample_weight_equivalence_on_dense_data"] = (
            "repeats without groups are torn apart by the folds, a weighted row is not"
        )
    return failures


@pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.AbsurdScaleWarning",
    "ignore::sigmascale.exceptions.CandidateDroppedWarning",
    "ignore::sigmascale.exceptions.DegenerateFitWarning",
    "ignore::sigmascale.exceptions.RepeatedRowsWarning",
)
@parametrize_with_checks(
    [clone(r) for r in CASES.values()], expected_failed_checks=expected_failures
)
@pytest.mark.usefixtures("positive_input")
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


@every
def test_copies_and_files_say_the_same_bit_for_bit(r):
    X, error = make_rows()
    new, new_error = make_rows(300, seed=1)
    r.fit(X, error).conformalize(new, new_error)
    again = clone(r).fit(X, error).conformalize(new, new_error)
    copies = [again, pickle.loads(pickle.dumps(r)), loads(dumps(r))]
    for copy in copies:
        for what in ("predict", "predict_shift", "predict_interval"):
            found, expected = getattr(copy, what)(new), getattr(r, what)(new)
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(
            copy.predict_quantiles(new, LEVELS), r.predict_quantiles(new, LEVELS)
        )
        d, same = copy.predict_distribution(new), r.predict_distribution(new)
        np.testing.assert_array_equal(d.crps(new_error), same.crps(new_error))
        assert copy.describe() == r.describe()
        assert dumps(copy) == dumps(r)


@every
def test_the_uncertainty_is_that_of_the_scaling(r):
    X, error = make_rows()
    r.fit(X, error)
    np.testing.assert_array_equal(r.predict(X), r.scaling_.predict(X))
    if r.shift is None and r.scaling is not None:
        alone = clone(r.scaling).fit(X, error)
        np.testing.assert_array_equal(r.predict(X), alone.predict(X))


@every
def test_fitting_again_forgets_everything(r):
    X, error = make_rows()
    expected = dumps(clone(r).fit(X, error))
    other = make_rows(150, seed=5)
    refitted = clone(r).fit(*other).conformalize(*other).fit(X, error)
    assert dumps(refitted) == expected


@every
def test_the_order_of_rows_does_not_matter(r):
    X, error = make_rows(400)
    X, error = np.round(X, 1) + np.array([0.1, 0]), np.round(error, 1)  # with ties
    order = np.random.default_rng(0).permutation(error.size)
    one, other = clone(r).fit(X, error), clone(r).fit(X[order], error[order])
    np.testing.assert_allclose(other.predict(X), one.predict(X), rtol=1e-9)
    np.testing.assert_allclose(
        other.predict_quantiles(X, LEVELS), one.predict_quantiles(X, LEVELS), rtol=1e-9
    )


@every
def test_units_of_the_error_do_not_matter(r):
    X, error = make_rows(400)
    one, other = clone(r).fit(X, error), clone(r).fit(X * [1e3, 1], 1e3 * error)
    np.testing.assert_allclose(
        other.predict_quantiles(X * [1e3, 1], LEVELS),
        1e3 * one.predict_quantiles(X, LEVELS),
        rtol=1e-6,
    )


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_names_of_columns_are_known_and_compared(library):
    X, error = make_rows(200)
    frame = library({"u": X[:, 0], "x": X[:, 1]})
    r = ss.Recalibrator(QUICK, shift="constant").fit(frame, error)
    assert list(r.feature_names_in_) == list(r.scaling_.feature_names_in_) == ["u", "x"]
    with_arrays = clone(r).fit(X, error)
    np.testing.assert_array_equal(
        r.predict_quantiles(frame, LEVELS), with_arrays.predict_quantiles(X, LEVELS)
    )
    for ask in (r.predict, r.predict_shift, r.predict_distribution, r.predict_interval):
        with pytest.raises(ValueError, match="feature names"):
            ask(frame[["x", "u"]])


def test_what_does_not_fit_is_refused():
    X, error = make_rows(50)
    for r, match in (
        (ss.Recalibrator(law="student"), '`law` must be one of "empirical", "normal"'),
        (ss.Recalibrator(ss.Recalibrator()), "`scaling` must be a recalibrator of unc"),
        (ss.Recalibrator("linear"), "`scaling` must be .*found str"),
        (ss.Recalibrator(random_state=-1), "`random_state` must be"),
    ):
        with pytest.raises(InvalidInputError, match=match):
            r.fit(X, error)
    r = ss.Recalibrator(QUICK).fit(X, error)
    with pytest.raises(InvalidInputError, match="`levels` must lie between"):
        r.predict_quantiles(X, [0.0])
    with pytest.raises(InvalidInputError, match="must be Predictions; for a table"):
        r.apply(X)


# --- the law -------------------------------------------------------------------------


@pytest.mark.parametrize("scaling", [None, ss.TemperatureScaling(), ss.RakedScaling()])
def test_quantiles_hold_what_they_claim_though_errors_are_skewed(scaling):
    X, error = make_rows(3000)
    new, new_error = make_rows(20_000, seed=1)
    r = ss.Recalibrator(scaling).fit(X, error)
    share = np.mean(new_error[:, None] < r.predict_quantiles(new, LEVELS), axis=0)
    np.testing.assert_allclose(share, LEVELS, atol=0.025)
    # which a normal law does not
    normal = ss.Recalibrator(scaling, law="normal").fit(X, error)
    share = np.mean(new_error[:, None] < normal.predict_quantiles(new, LEVELS), axis=0)
    assert np.abs(share - LEVELS).max() > 0.04
    np.testing.assert_array_equal(normal.predict(new), r.predict(new))
    scores = [
        each.predict_distribution(new).crps(new_error).mean() for each in (r, normal)
    ]
    assert scores[0] < 0.97 * scores[1]


@every
def test_over_all_rows_the_law_has_the_spread_that_the_scale_claims(r):
    r = clone(r).set_params(law="empirical").fit(*make_rows(3000))
    (table,) = r.law_.tables
    assert np.hypot(table.mean, table.std) == pytest.approx(1, rel=0.05)


def test_the_law_is_that_of_rows_that_the_scaling_has_not_seen():
    # bins of ten rows fit these so closely that z of their own rows are all alike
    X, error = make_rows(
        300, draw=lambda rng, n: rng.choice([-1, 1], n) * rng.gamma(1, size=n)
    )
    scaling = ss.BinwiseScaling(30, least_rows=0)
    r = ss.Recalibrator(scaling).fit(X, error)
    new, new_error = make_rows(
        5000, seed=1, draw=lambda rng, n: rng.choice([-1, 1], n) * rng.gamma(1, size=n)
    )
    own = np.quantile(error / r.predict(X), [0.05, 0.95])
    assert ss.picp(new_error, r.predict(new)[:, None] * own) < 0.885
    assert ss.picp(new_error, r.predict_interval(new, 0.9)) == pytest.approx(
        0.9, abs=0.02
    )


def test_rows_of_a_group_are_unseen_together():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 10)
    x = group + 0.001 * rng.normal(size=600)  # gives the group away
    sigma = np.exp(rng.normal(size=60))[group]
    error = sigma * rng.normal(size=600)
    X = np.column_stack([np.ones(600), x])
    scaling = ss.BinwiseScaling(60, by=1, least_rows=0)
    spread = {}
    for labels in (None, group):
        r = ss.Recalibrator(scaling).fit(X, error, labels)
        low, high = r.law_.tables[0].quantiles(np.array([0.05, 0.95]))
        spread[labels is None] = high - low
    assert spread[False] > 1.5 * spread[True]


def changing_shape(n, seed):
    """Errors whose shape changes with u: two values, or heavy tails."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(1, 3, n)
    light, heavy = rng.choice([-1.0, 1.0], n), rng.standard_t(3, n) / np.sqrt(3)
    return u, u * np.where(u < 2, light, heavy)


def test_laws_by_bins_of_u_are_taken_where_unseen_rows_gain():
    scaling = ss.TemperatureScaling()
    r = ss.Recalibrator(scaling).fit(*changing_shape(3000, 0))
    assert len(r.law_.tables) > 1
    assert "bins of the uncertainty" in r.describe()
    u, error = changing_shape(5000, 1)
    for own in (u < 1.9, u > 2.1):
        limits = r.predict_interval(u[own], 0.8)
        assert ss.picp(error[own], limits) >= 0.77
    few = ss.Recalibrator(scaling).fit(*changing_shape(300, 0))
    assert len(few.law_.tables) == 1
    numbers = [
        len(ss.Recalibrator(scaling).fit(*make_rows(1500, seed)).law_.tables)
        for seed in range(8)
    ]
    assert numbers.count(1) >= 6


def test_levels_beyond_the_rows_are_told_with_the_number_that_is_needed():
    X, error = make_rows(100)
    r = ss.Recalibrator(ss.TemperatureScaling()).fit(X, error)
    r.predict_quantiles(X, [0.01, 0.99])
    with pytest.warns(FewRowsWarning, match=r"100 rows.*need 999 rows"):
        found = r.predict_quantiles(X, [0.001])
    z = found[:, 0] / r.predict(X)
    np.testing.assert_allclose(z, r.law_.tables[0].values[0])


# --- few rows, and odd ones ----------------------------------------------------------


@every
@pytest.mark.parametrize("n", [2, 5, 20, 39, 40])
@pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.AbsurdScaleWarning",
    "ignore::sigmascale.exceptions.CandidateDroppedWarning",
    "ignore::sigmascale.exceptions.DegenerateFitWarning",  # of 2 rows
)
def test_few_rows_have_a_normal_law(r, n):
    X, error = make_rows(n, seed=2)
    r = clone(r)
    if n < 40 and r.law == "empirical":
        with pytest.warns(FewRowsWarning, match=f"{n} rows do not tell.*40") as caught:
            r.fit(X, error)
        assert caught[-1].filename == __file__
    else:
        r.fit(X, error)
    assert (r.law_.words == "normal") == (n < 40 or r.law == "normal")
    found = r.predict_quantiles(X, [0.05, 0.5, 0.95])
    assert np.isfinite(found).all()
    assert (np.diff(found, axis=1) > 0).all()
    assert np.isfinite(r.predict_distribution(X).crps(error)).all()
    np.testing.assert_array_equal(loads(dumps(r)).predict(X), r.predict(X))


@every
def test_a_constant_uncertainty_will_do(r):
    error = np.random.default_rng(0).exponential(size=300) - 1
    r = clone(r).fit(np.ones(300), error)
    limits = r.predict_interval(np.ones(300), 0.9)
    assert np.unique(limits, axis=0).shape == (1, 2)
    if r.law == "empirical":
        assert ss.picp(error, limits) == pytest.approx(0.9, abs=0.02)
        np.testing.assert_allclose(
            limits[0], np.quantile(error, [0.05, 0.95]), rtol=0.1
        )


@every
@pytest.mark.parametrize("n", [3, 200])
@pytest.mark.filterwarnings("ignore:.*too few to cross-validate")
def test_errors_that_are_all_0_teach_nothing(r, n):
    u = np.linspace(1, 2, n)
    with pytest.warns(DegenerateFitWarning, match=f"All {n} errors are 0") as caught:
        r = clone(r).fit(u, np.zeros(n))
    assert sum("errors are 0" in str(each.message) for each in caught) == 1
    np.testing.assert_allclose(r.predict(u), u, rtol=1e-9)
    assert r.law_.words == "normal"
    assert not r.predict_shift(u).any()
    assert r.n_absurd_ == 0
    assert r.predict_interval(u)[0, 1] == pytest.approx(1.645, abs=0.001)


@every
@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.AbsurdScaleWarning")
def test_one_enormous_error_moves_no_quantile_far(r):
    X, error = make_rows(500)
    expected = clone(r).set_params(law="empirical").fit(X, error)
    error[7] = 1e9
    found = clone(r).set_params(law="empirical").fit(X, error)
    levels = [0.1, 0.5, 0.9]
    ratio = found.predict_quantiles(X, levels) - expected.predict_quantiles(X, levels)
    size = np.abs(expected.predict_quantiles(X, levels)).mean()
    assert np.median(np.abs(ratio)) < 0.5 * size
    assert np.isfinite(found.predict_distribution(X).crps(error)).all()


def test_half_of_the_errors_may_be_0():
    def half(rng, n):
        return rng.normal(size=n) * (rng.random(n) < 0.5)

    r = ss.Recalibrator().fit(*make_rows(1000, draw=half))
    new, new_error = make_rows(5000, seed=1, draw=half)
    for coverage in (0.5, 0.8, 0.9):
        limits = r.predict_interval(new, coverage)
        assert ss.picp(new_error, limits) >= coverage - 0.03


def test_uncertainties_beyond_all_errors_are_told_with_the_rows_that_decide():
    rng = np.random.default_rng(0)
    u, error = rng.uniform(1, 2, 500), rng.normal(size=500)
    u[[17, 40]], error[[17, 40]] = 1e-4, [2.0, -2.0]
    r = ss.Recalibrator(ss.TemperatureScaling())
    with pytest.warns(AbsurdScaleWarning, match="rows? .*17|40") as caught:
        r.fit(u, error)
    assert caught[0].filename == __file__
    assert r.n_absurd_ == 498
    assert set(r.decisive_rows_) <= {17, 40}
    assert "498 of 500" in r.describe()
    # quantiles do not depend on the scale of these
    assert ss.picp(error, r.predict_interval(u, 0.9)) == pytest.approx(0.9, abs=0.02)
    assert loads(dumps(r)).decisive_rows_ == r.decisive_rows_
    calm = ss.Recalibrator(ss.TemperatureScaling()).fit(u[100:], error[100:])
    assert (calm.n_absurd_, calm.decisive_rows_, calm.caution_) == (0, [], "")
    # rows of weight 0 are counted where they were
    weights = np.where(np.arange(500) < 10, 0.0, 1.0)
    with pytest.warns(AbsurdScaleWarning, match="17|40"):
        r.fit(u, error, sample_weight=weights)


# --- distributions of predictions ----------------------------------------------------


def test_distributions_are_of_the_truth_where_predictions_are_known():
    X, error = make_rows()
    y_pred = np.linspace(-5, 5, error.size)
    features = {"x": X[:, 1]}
    p = ss.Predictions(y_pred, X[:, 0], y_true=y_pred + error, features=features)
    r = ss.Recalibrator(QUICK).fit(p)
    of_truth = r.predict_quantiles(p, LEVELS)
    of_error = r.predict_quantiles(
        ss.Predictions(y_std=X[:, 0], features=features), LEVELS
    )
    np.testing.assert_allclose(of_truth, y_pred[:, None] + of_error)
    np.testing.assert_allclose(of_error, r.predict_quantiles(table_of(X), LEVELS))
    np.testing.assert_array_equal(
        r.predict_interval(p), r.predict_distribution(p).interval()
    )
    r.conformalize(p)
    low, high = r.predict_interval(p).T
    np.testing.assert_allclose((low + high) / 2, y_pred)


def test_recalibrated_predictions_carry_their_law():
    X, error = make_rows(2000)
    y_pred = np.linspace(-5, 5, error.size)
    p = ss.Predictions(y_pred, X[:, 0], y_true=y_pred + error, features={"x": X[:, 1]})
    r = ss.Recalibrator(QUICK).fit(p)
    found = r.apply(p)
    assert found.distributions.law is r.law_
    assert p.distributions is None
    np.testing.assert_array_equal(found.uncertainty, r.predict(p))
    d = r.predict_distribution(p)
    np.testing.assert_array_equal(found.distributions.quantile(0.9), d.quantile(0.9))
    expected = d.crps(p.truth).mean()
    assert ss.crps(found) == pytest.approx(expected)
    bare = ss.crps(found.errors, found.uncertainty)
    assert abs(bare - expected) > 0.01 * expected
    # parts of them carry it, too
    assert found.take(np.arange(10)).distributions.law is r.law_


def test_the_score_is_the_normal_log_likelihood():
    X, error = make_rows()
    r = ss.Recalibrator(QUICK).fit(X, error)
    assert r.score(X, error) == pytest.approx(-ss.nll(error, r.predict(X)))


# --- updates -------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [None, "constant"])
def test_an_update_changes_the_scale_and_leaves_shift_and_law(shift):
    X, error = make_rows(400)
    more, more_error = make_rows(200, seed=1)
    r = ss.Recalibrator(ss.TemperatureScaling(), shift=shift).fit(X, error)
    law, moved = r.law_, r.predict_shift(X)
    r.conformalize(more, more_error)
    with pytest.warns(ForgottenIntervalsWarning):
        r.update(more, 3 * more_error)
    assert r.law_ is law
    np.testing.assert_array_equal(r.predict_shift(X), moved)
    assert not hasattr(r, "conformal_")
    assert r.n_samples_fit_ == 600
    # of the errors that the shift leaves
    everything = np.concatenate([X, more])
    errors = np.concatenate([error, 3 * more_error])
    left = errors - r.predict_shift(everything)
    expected = ss.TemperatureScaling().fit(everything, left).predict(X)
    np.testing.assert_allclose(r.predict(X), expected, rtol=1e-3 if shift else 1e-12)
    np.testing.assert_array_equal(r.predict(X), r.scaling_.predict(X))
    assert dumps(loads(dumps(r))) == dumps(r)


def test_fits_of_other_rows_are_added():
    parts = [make_rows(300, seed=i) for i in range(2)]
    template = ss.TemperatureScaling()
    one, other = (ss.Recalibrator(template).fit(*each) for each in parts)
    law, X = one.law_, parts[0][0]
    scaling = clone(template).fit(*parts[0]).merge(clone(template).fit(*parts[1]))
    one.merge(other)
    np.testing.assert_array_equal(one.predict(X), scaling.predict(X))
    assert one.law_ is law
    assert one.n_samples_fit_ == 600
    with pytest.raises(InvalidInputError, match="must be a fitted Recalibrator"):
        one.merge(scaling)


def test_what_sums_do_not_say_cannot_be_updated():
    X, error = make_rows(200)
    r = ss.Recalibrator(QUICK).fit(X, error)
    assert not r.is_updatable
    for change in (lambda: r.update(X, error), lambda: r.merge(r)):
        with pytest.raises(InvalidInputError, match=r"be updated: .*Fit it again"):
            change()


# --- lazy frames ---------------------------------------------------------------------


@pytest.mark.parametrize("scaling", [ss.BinwiseScaling(5), QUICK], ids=["sums", "rows"])
@pytest.mark.parametrize("shift", [None, "constant"])
def test_lazy_frames_are_fitted_as_rows_in_memory_are(scaling, shift):
    X, error = make_rows(500)
    lazy = table_of(X).with_columns(e=error).lazy()
    names = {"error": "e", "uncertainty": "u", "features": ["x"]}
    r = ss.Recalibrator(scaling, shift=shift)
    found = ss.frames.fit(clone(r), lazy, **names)
    expected = clone(r).fit(table_of(X), error)
    np.testing.assert_allclose(
        found.predict_quantiles(table_of(X), LEVELS),
        expected.predict_quantiles(table_of(X), LEVELS),
        rtol=1e-6,
    )
    out = ss.frames.predict(
        found, lazy, uncertainty="u", features=["x"], quantiles=[0.05, 0.95]
    ).collect()
    limits = found.predict_quantiles(table_of(X), [0.05, 0.95])
    made = [name for name in out.columns if name.endswith(("_q0.05", "_q0.95"))]
    np.testing.assert_allclose(out[made].to_numpy(), limits, rtol=1e-9)


def test_lazy_frames_know_laws_by_bins_of_u():
    u, error = changing_shape(3000, 0)
    r = ss.Recalibrator(ss.TemperatureScaling()).fit(pl.DataFrame({"u": u}), error)
    assert len(r.law_.tables) > 1
    new = pl.DataFrame({"u": np.linspace(1, 3, 501), "y": np.linspace(-1, 1, 501)})
    out = ss.frames.predict(
        r, new.lazy(), uncertainty="u", quantiles=[0.1], prediction="y"
    ).collect()
    expected = new["y"] + r.predict_quantiles(new[["u"]], [0.1])[:, 0]
    np.testing.assert_allclose(out["u_recalibrated_q0.1"], expected, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.AbsurdScaleWarning")
@pytest.mark.parametrize("scaling", [ss.TemperatureScaling(), ss.IsotonicScaling()])
@pytest.mark.parametrize("seed", range(3))
def test_intervals_stay_sane_where_one_row_decides_on_the_scale(scaling, seed):
    rng = np.random.default_rng(seed)
    u = rng.uniform(0.5, 1, 2300)
    error = rng.normal(scale=u)
    u[0] = 1e-6
    r = ss.Recalibrator(scaling).fit(u[:300], error[:300])
    limits = r.predict_interval(u[300:], 0.9)
    assert 2 < np.diff(limits).mean() < 3.2  # 2.5 would be right
    assert 0.84 < ss.picp(error[300:], limits) < 0.96


def test_other_uncertainties_do_not_keep_the_distributions_of_old_ones():
    X, error = make_rows(800)
    p = ss.Predictions(error=error, y_std=X[:, 0], features={"x": X[:, 1]})
    carried = ss.Recalibrator(QUICK).fit(p).apply(p)
    assert carried.with_uncertainty(X[:, 0]).distributions is None
    found = ss.compare([ss.TemperatureScaling()], carried, carried, method="moments")
    u = ss.TemperatureScaling().fit(carried).predict(carried)
    scored = found["Temperature"].test.distribution
    assert scored.law == "normal"
    assert scored.crps == pytest.approx(ss.crps(carried.errors, u))
