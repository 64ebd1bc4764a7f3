from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from sigmascale import BoostedScaling, local_zms, nll, scorecard, validate
from sigmascale.exceptions import InvalidInputError, UnseenCategoryWarning
from sigmascale.maps import Clip, Trees, evaluate, in_order
from sigmascale.scaling import boosted, boosting
from sigmascale.scaling.crossfit import largest_counted
from sigmascale.scaling.trees import Grower


def trees_of(scaler):
    """Return the trees in the map of a recalibrator."""
    (trees,) = (node for node in in_order(scaler.map_) if isinstance(node, Trees))
    return trees


def law_of(scaler, X):
    """Return the law of u that the trees multiply."""
    return np.hypot(scaler.a_ * X[:, 0], scaler.b_)


def smooth(n, seed):
    """Rows whose true factor s(u, x) is known."""
    rng = np.random.default_rng([4, seed])
    u, x, noise = rng.lognormal(sigma=0.5, size=n), rng.uniform(-1, 1, n), rng.normal(n)
    factor = 0.5 * np.exp(0.8 * x) * u**-0.3
    X = np.column_stack([u, x, np.full(n, noise)])
    return X, factor * u * rng.normal(size=n), factor * u


X, ERROR, SIGMA = smooth(3000, 0)
FITTED = BoostedScaling().fit(X, ERROR)


def ratio_error(predicted, sigma):
    return np.sqrt(np.mean(np.log(predicted / sigma) ** 2))


# --- what is learned -----------------------------------------------------------------


def test_a_smooth_factor_is_recovered():
    X_new, _, sigma = smooth(5000, 1)
    assert ratio_error(X_new[:, 0], sigma) > 0.8
    assert ratio_error(FITTED.predict(X_new), sigma) < 0.1
    assert FITTED.n_trees_ > 10


def test_perfect_uncertainties_get_no_trees_or_trees_that_change_little():
    counts = []
    for seed in range(10):
        rng = np.random.default_rng([77, seed])
        u, x = rng.lognormal(sigma=0.5, size=800), rng.normal(size=800)
        table = np.column_stack([u, x])
        scaler = BoostedScaling().fit(table, u * rng.normal(size=800))
        counts.append(scaler.n_trees_)
        assert ratio_error(scaler.predict(table), u) < 0.15
    # trees are kept where they gain more than a standard error: by chance, one in six
    assert stats.binomtest(counts.count(0), 10, 0.84).pvalue > 1e-3, counts


def test_the_average_is_right_on_rows_never_seen():
    # Fitted rows have a smaller error than their trees expect: a scale set on these
    # would leave <Z²> of new rows above 1.
    inside, outside = [], []
    for seed in range(8):
        X_fit, error, _ = smooth(400, 100 + seed)
        X_new, error_new, _ = smooth(4000, 200 + seed)
        scaler = BoostedScaling().fit(X_fit, error)
        inside.append(np.mean((error / scaler.predict(X_fit)) ** 2))
        outside.append(np.mean((error_new / scaler.predict(X_new)) ** 2))
    assert stats.ttest_1samp(outside, 1).pvalue > 1e-3, outside
    assert np.mean(inside) < 0.97


def test_the_loss_by_number_of_trees_ends_where_it_stopped_to_improve():
    path = FITTED.cv_loss_
    assert np.argmin(path) == FITTED.n_trees_
    assert path[FITTED.n_trees_] < path[0] - 0.1
    assert path.size <= FITTED.n_trees_ + 31
    assert FITTED.n_boosters_ == 5
    assert trees_of(FITTED).value.shape == (5 * FITTED.n_trees_, 8)


def test_no_more_trees_are_grown_than_allowed():
    few = BoostedScaling(max_trees=3).fit(X, ERROR)
    assert few.n_trees_ == 3
    none = BoostedScaling(max_trees=0).fit(X, ERROR)
    assert none.n_trees_ == 0
    np.testing.assert_allclose(none.predict(X), none.scale_ * law_of(none, X))


# --- what it stands ------------------------------------------------------------------


def test_labels_missing_values_and_labels_never_seen():
    rng = np.random.default_rng(5)
    n = 3000
    u, kind = rng.uniform(1, 2, n), rng.choice(["a", "b", "c"], n)
    x = np.where(rng.random(n) < 0.3, np.nan, rng.uniform(size=n))
    factor = np.where(kind == "b", 3.0, 1.0) * np.where(np.isnan(x), 2.0, 1.0)
    frame = pl.DataFrame({"u": u, "kind": kind, "x": x})
    scaler = BoostedScaling().fit(frame, factor * u * rng.normal(size=n))
    new = pl.DataFrame(
        {
            "u": [1.5] * 5,
            "kind": ["a", "b", "a", "d", None],
            "x": [0.5, 0.5, np.nan, 0.5, 0.5],
        }
    )
    with pytest.warns(UnseenCategoryWarning, match="^2 of 5 rows .* column 'kind'"):
        a, b, missing, unseen, nothing = scaler.predict(new)
    assert b / a == pytest.approx(3, rel=0.15)
    assert missing / a == pytest.approx(2, rel=0.15)
    assert 0.9 * a < unseen < 1.1 * b
    assert 0.9 * a < nothing < 1.1 * b


def test_numeric_labels_are_split_in_any_order():
    rng = np.random.default_rng(6)
    label = rng.integers(0, 8, 3000).astype(float)
    u = rng.uniform(1, 2, 3000)
    error = u * np.where(label % 2, 3.0, 1.0) * rng.normal(size=3000)
    table = np.column_stack([u, label])
    options = {"depth": 1, "max_trees": 60}
    ordered = BoostedScaling(**options).fit(table, error)
    labels = BoostedScaling(**options, categorical=[1]).fit(table, error)
    assert labels.score(table, error) > ordered.score(table, error) + 0.05


@pytest.mark.parametrize("share", [1 / 3, 0.9])
def test_errors_of_exactly_0_leave_predictions_positive(share):
    error = np.where(np.random.default_rng(7).random(3000) < share, 0.0, ERROR)
    predicted = BoostedScaling().fit(X, error).predict(X)
    assert np.all(np.isfinite(predicted))
    # the true variance is 1 - share of what it was
    ratio = predicted / (SIGMA * np.sqrt(1 - share))
    assert 0.3 < ratio.min() < ratio.max() < 3


def test_a_region_of_zero_errors_has_a_bounded_factor():
    error = np.where(X[:, 1] < 0, 0.0, ERROR)
    predicted = BoostedScaling().fit(X, error).predict(X)
    silent = predicted[X[:, 1] < 0] / SIGMA[X[:, 1] < 0]
    assert silent.max() < 0.75
    assert silent.min() > 0.01


@pytest.mark.parametrize("size", [1e3, 1e8, 1e30])
def test_a_few_enormous_errors_do_not_own_the_factor(size):
    error = ERROR.copy()
    error[[3, 500]] *= size
    predicted = BoostedScaling().fit(X, error).predict(X)
    assert np.all(np.isfinite(predicted))
    if size == 1e3:
        others = np.delete(predicted / SIGMA, [3, 500])
        assert np.ptp(np.log(others)) < np.log(size)


def test_inputs_outside_the_range_seen_get_the_factors_of_its_ends():
    edge = FITTED.predict([[1.0, 0.999, 0.0], [1.0, -0.999, 0.0]])
    outside = FITTED.predict([[1.0, 1e9, 0.0], [1.0, -1e9, 0.0]])
    np.testing.assert_allclose(outside, edge, rtol=0.1)
    small, large = FITTED.predict([[1e-9, 0.0, 0.0], [1e9, 0.0, 0.0]])
    assert 0 < small < 1
    assert 1e8 < large < 1e10


def test_factors_stay_within_the_range_of_rows_held_back():
    scaler = BoostedScaling(max_trees=20).fit(X, ERROR)
    base = law_of(scaler, X)
    low, high = np.exp(0.5 * np.array(scaler.range_)) * scaler.scale_
    factor = scaler.predict(X) / base
    assert low < factor.min() * (1 + 1e-9)
    assert factor.max() < high * (1 + 1e-9)
    (clip,) = (node for node in in_order(scaler.map_) if isinstance(node, Clip))
    assert (clip.low, clip.high) == scaler.range_
    narrower = Clip(clip.x, -0.01, 0.01)  # than what the trees say
    found = evaluate(narrower, list(X.T), X.shape[0])
    assert (found.min(), found.max()) == (-0.01, 0.01)


def test_the_order_of_rows_does_not_matter():
    place = np.random.default_rng(1).permutation(3000)
    again = BoostedScaling().fit(X[place], ERROR[place])
    np.testing.assert_allclose(again.predict(X), FITTED.predict(X), rtol=1e-10)


def test_the_same_seed_gives_the_same_predictions_and_another_other_ones():
    again = BoostedScaling().fit(X, ERROR).predict(X)
    np.testing.assert_array_equal(again, FITTED.predict(X))
    other = BoostedScaling(random_state=1).fit(X, ERROR).predict(X)
    assert np.any(other != again)
    assert ratio_error(other, again) < 0.1


@pytest.mark.parametrize(("n", "n_boosters"), [(1, 0), (2, 2), (7, 5), (30, 5)])
def test_few_rows_give_few_trees_and_finite_predictions(n, n_boosters):
    scaler = BoostedScaling().fit(X[:n], ERROR[:n])
    assert scaler.n_trees_ == 0
    assert scaler.n_boosters_ == n_boosters
    assert np.all(np.isfinite(scaler.predict(X)))
    assert np.all(scaler.predict(X) > 0)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"n_folds": 1}, "`n_folds` must be at least 2; found 1"),
        ({"max_trees": -1}, "`max_trees` must be at least 0; found -1"),
        ({"depth": 0}, "`depth` must be at least 1; found 0"),
        ({"min_rows": 0}, "`min_rows` must be at least 1; found 0"),
        ({"learning_rate": 1.5}, "`learning_rate` must lie strictly between 0 and 1"),
        ({"categorical": ["X7"]}, "must name a column of X; found 'X7'"),
        ({"random_state": -1}, "`random_state` must be at least 0; found -1"),
    ],
)
def test_wrong_parameters_are_refused(arguments, match):
    with pytest.raises(InvalidInputError, match=match):
        BoostedScaling(**arguments).fit(X, ERROR)


# --- the paper's data ----------------------------------------------------------------


def test_qm9_reaches_consistency_and_adaptivity_together(qm9):
    test = qm9.test
    scaler = BoostedScaling().fit(qm9.calibration.X, qm9.calibration.error)
    predicted = scaler.predict(test.X)
    ties = test.uncertainty
    card = scorecard(test.error, predicted, test.features, ties=ties)
    assert card.nll <= -3.09
    assert card.s_tot < 0.6  # isotonic, the paper's reference: 0.78
    for by in (None, test.mass, test.heteroatom_fraction):
        found = local_zms(test.error, predicted, by=by, ties=ties, method="bca")
        assert found.fraction_valid >= 0.83


def test_qm9_becomes_adaptive_which_isotonic_regression_does_not_make_it(qm9):
    test = qm9.test
    scaler = BoostedScaling().fit(qm9.calibration.X, qm9.calibration.error)
    joint = scaler.predict(test.X)
    isotonic = qm9.isotonic_test.uncertainty
    ties = test.uncertainty
    found = validate(test.error, joint, test.features, ties=ties)
    assert found.calibrated
    # what is left: a bias of the model, rows of the rarest kinds, and a few per cent
    assert found.verdicts["bias"].answer == "no"
    reference = validate(test.error, isotonic, test.features, ties=ties)
    assert reference.calibrated
    assert not any(reference.adaptive.values())

    def worst(verdict):
        """Return by how much the worst region is off, of those that tell."""
        rows = 0.02 * test.error.size
        factors = [each.factor for each in verdict.regions if each.n >= rows]
        return max((abs(np.log(each)) for each in factors), default=0.0)

    for name in ("mass", "heteroatom_fraction"):
        assert worst(found.verdicts[name]) < 0.5 * worst(reference.verdicts[name])


@pytest.mark.slow
def test_qm9_does_so_on_average_over_random_splits(qm9):
    pooled = np.concatenate([qm9.calibration.X, qm9.test.X])
    error = np.concatenate([qm9.calibration.error, qm9.test.error])
    total, loss = [], []
    for seed in range(20):
        place = np.random.default_rng([1115, seed]).permutation(error.size)
        fit, rest = place[:10_000], place[10_000:]
        predicted = BoostedScaling().fit(pooled[fit], error[fit]).predict(pooled[rest])
        features = pooled[rest, 1:]
        card = scorecard(error[rest], predicted, features, ties=pooled[rest, 0])
        total.append(card.s_tot)
        loss.append(nll(error[rest], predicted))
    print(
        f"S_tot {np.mean(total):.3f} ± {np.std(total, ddof=1):.3f}, "
        f"NLL {np.mean(loss):.4f} ± {np.std(loss, ddof=1):.4f}"
    )
    assert np.mean(total) <= 0.535
    assert np.mean(loss) <= -3.085


# --- the parts -----------------------------------------------------------------------


@pytest.mark.parametrize(("n", "least"), [(500, 20), (1500, 30), (3000, 50)])
def test_a_leaf_has_a_fiftieth_of_the_rows_within_20_and_50(monkeypatch, n, least):
    seen = []

    class Spy(Grower):
        def __init__(self, codes, columns, rows, options, *others, **more):
            seen.append(options)
            super().__init__(codes, columns, rows, options, *others, **more)

    monkeypatch.setattr(boosting, "Grower", Spy)
    BoostedScaling(max_trees=1).fit(X[:n], ERROR[:n])
    assert {each.min_rows for each in seen} == {least}
    assert {(each.depth, each.rate) for each in seen} == {(3, 0.05)}
    seen.clear()
    BoostedScaling(max_trees=1, min_rows=7).fit(X[:n], ERROR[:n])
    assert {each.min_rows for each in seen} == {7}


def test_trees_learn_from_ratios_of_unseen_folds_up_to_the_cap_and_above_the_floor(
    monkeypatch,
):
    seen = []

    class Spy(Grower):
        def grow(self, ratio):
            seen.append((ratio.copy(), self._leaves.cap))
            return super().grow(ratio)

    error = ERROR.copy()
    error[:1000] = 0
    error[2000] *= 1e3
    monkeypatch.setattr(boosting, "Grower", Spy)
    BoostedScaling(max_trees=2).fit(X, error)
    z2 = (error / law_of(BoostedScaling(max_trees=0).fit(X, error), X)) ** 2
    expected = np.sort((z2 / z2.mean() + 0.01) / 1.01)
    (first, cap), (second, _) = seen
    assert cap == largest_counted(np.sort(first[0]))
    assert cap < expected[-1]
    assert first.shape == (5, 3000)
    for ratio in first:
        np.testing.assert_allclose(np.sort(ratio), expected)
    assert (first != second).all(axis=1).any()


def test_the_loss_of_a_number_of_trees_is_that_with_the_best_constant():
    rng = np.random.default_rng(0)
    ratio, f = rng.gamma(1, size=200), rng.normal(size=200)
    found = boosted._centred(ratio, f, 1e9)
    np.testing.assert_allclose(boosted._centred(ratio, f + 3, 1e9), found, rtol=1e-9)
    losses = [np.mean(ratio * np.exp(-f - c) + f + c) for c in np.linspace(-3, 3, 6001)]
    assert found.mean() == pytest.approx(min(losses), rel=1e-6)


def test_the_average_is_set_on_rows_held_back_and_each_booster_counts_alike():
    scaler = BoostedScaling(max_trees=10).fit(X, ERROR)
    trees = trees_of(scaler)
    log_factor = evaluate(replace(trees, divisor=5.0), list(X.T), len(X))
    expected = np.exp(0.5 * np.clip(log_factor, *scaler.range_)) * scaler.scale_
    np.testing.assert_allclose(
        scaler.predict(X), expected * law_of(scaler, X), rtol=1e-12
    )


def test_trees_deeper_than_ten_levels_are_refused():
    assert BoostedScaling(depth=10, max_trees=0).fit(X, ERROR).n_trees_ == 0
    with pytest.raises(InvalidInputError, match="`depth` must be at most 10; found 11"):
        BoostedScaling(depth=11, max_trees=0).fit(X, ERROR)


def test_growing_stops_after_thirty_trees_that_do_not_help_and_noise_keeps_none():
    rng = np.random.default_rng(1)
    u, x = rng.uniform(1, 2, (2, 400))
    scaler = BoostedScaling().fit(np.column_stack([u, x]), u * rng.normal(size=400))
    best = np.argmin(scaler.cv_loss_)
    assert scaler.cv_loss_.size == 1 + best + 30
    # a few trees seem better, by less than a standard error
    assert best > 0
    assert scaler.n_trees_ == 0
    assert scaler.n_boosters_ == 5
    assert not any(isinstance(node, Trees) for node in in_order(scaler.map_))
    assert scaler.range_ == (0, 0)
