import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning

from sigmascale import RakedScaling, scorecard, validate
from sigmascale.bins.partitions import EqualSizeBins
from sigmascale.bins.sums import CellSums
from sigmascale.exceptions import InvalidInputError, UnseenCategoryWarning
from sigmascale.maps import UNCERTAINTY
from sigmascale.scaling import raked
from sigmascale.scaling.crossfit import canonical_order, largest_ratio, make_folds
from sigmascale.scaling.raked import CrossRaking, rake

RNG = np.random.default_rng(12)
N = 6000
U = RNG.lognormal(sigma=0.5, size=N)
A = RNG.uniform(size=N)
B = 0.5 * A + RNG.uniform(size=N)  # correlated, so that one cycle is not enough
# bounded z, none near the cap
ERROR = U**1.3 * np.exp(0.6 * A - 0.4 * B) * RNG.uniform(-1.7, 1.7, N)
X = np.column_stack([U, A, B])


def relative_zms(scaler, X, error):
    """<Z²> of each filled bin of each variable, over that of all rows."""
    z2 = (error / scaler.predict(X)) ** 2
    codes = [p.coded(x) for p, x in zip(scaler.partitions_, X.T, strict=True)]
    for first, second in scaler.pairs_:
        codes.append(codes[first] * scaler.n_codes_[second] + codes[second])
    for code in codes:
        filled = np.unique(code)
        yield np.array([z2[code == k].mean() for k in filled]) / z2.mean()


# --- raking --------------------------------------------------------------------------


def test_without_shrinkage_every_bin_of_every_variable_is_calibrated_at_once():
    scaler = RakedScaling(shrinkage=0.0).fit(X, ERROR)
    assert scaler.converged_
    found = list(relative_zms(scaler, X, ERROR))
    assert [values.size for values in found] == [20, 20, 20]
    for values in found:
        np.testing.assert_allclose(values, 1, rtol=1e-8)
    before = (ERROR / U) ** 2
    assert before[A > 0.9].mean() / before.mean() > 1.2


def test_pairs_of_columns_are_calibrated_by_cell():
    error = ERROR * np.where((A > 0.5) == (B > 0.75), 2.0, 0.5)
    scaler = RakedScaling(5, shrinkage=0.0, pairs=[(1, "X2")]).fit(X, error)
    assert list(scaler.factors_) == ["u", "X1", "X2", "X1 & X2"]
    assert scaler.factors_["X1 & X2"].shape == (6, 6)
    *_, cells = relative_zms(scaler, X, error)
    assert cells.size > 15
    np.testing.assert_allclose(cells, 1, rtol=1e-8)
    alone = RakedScaling(5, shrinkage=0.0).fit(X, error)
    assert alone.score(X, error) < scaler.score(X, error) - 0.05


def test_the_joint_table_of_parts_gives_what_all_rows_give():
    whole = RakedScaling(pairs=[(0, 1)]).fit(X, ERROR)
    parts = RakedScaling(pairs=[(0, 1)])
    parts.fit(X, 1 + ERROR)  # the bins are those of X, whatever the errors are
    order = canonical_order((U, A, B), ERROR)
    z2 = ((ERROR / U) ** 2)[order]
    fold = make_folds(z2, raked.N_FOLDS, np.random.default_rng(0), None)
    codes = np.column_stack(list(map(EqualSizeBins.coded, parts.partitions_, X.T)))
    codes = codes[order]
    cap = largest_ratio(z2) * z2.mean()
    total = None
    for rows in np.array_split(np.random.default_rng(1).permutation(N), 7):
        cells = CellSums.from_rows(codes[rows], fold[rows], z2[rows], cap)
        total = cells if total is None else total + cells
    assert total.n.sum() == N
    parts.map_, _ = parts._rake(total, UNCERTAINTY)
    assert parts.shrinkage_ == whole.shrinkage_
    assert parts.scale_ == pytest.approx(whole.scale_, rel=1e-10)
    for name, factors in whole.factors_.items():
        np.testing.assert_allclose(parts.factors_[name], factors, rtol=1e-10)
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), rtol=1e-10)


def test_tables_over_different_variables_do_not_add_up():
    zeros = np.zeros(3, dtype=np.int64)
    one = CellSums.from_rows(np.zeros((3, 1), dtype=np.int64), zeros, np.ones(3), 20.0)
    two = CellSums.from_rows(np.zeros((3, 2), dtype=np.int64), zeros, np.ones(3), 20.0)
    with pytest.raises(InvalidInputError, match="the same variables add up"):
        one + two
    assert (one + one).n.tolist() == [6]


def test_without_folds_the_average_is_set_on_all_rows():
    together = RakedScaling(shrinkage=0.0).fit(X, ERROR, groups=np.zeros(N))
    assert np.mean((ERROR / together.predict(X)) ** 2) == pytest.approx(1, rel=1e-9)


def test_convergence_is_reported(monkeypatch):
    scaler = RakedScaling(shrinkage=0.0).fit(X, ERROR)
    assert scaler.converged_ is True
    assert 2 < scaler.n_iter_ < 200

    def impatient(cells, n_codes, pseudo_rows, **options):
        return rake(cells, n_codes, pseudo_rows, **{**options, "max_sweeps": 2})

    monkeypatch.setattr(raked, "rake", impatient)
    with pytest.warns(ConvergenceWarning, match=r"in its last of 2 cycles\. Use fewer"):
        scaler.fit(X, ERROR)
    assert scaler.converged_ is False
    assert scaler.n_iter_ == 2


# --- shrinkage -----------------------------------------------------------------------


def test_more_shrinkage_pulls_factors_towards_1():
    free, some, much, none = (
        RakedScaling(shrinkage=k).fit(X, ERROR).factors_["u"][1:]
        for k in (0.0, 100.0, 10_000.0, np.inf)
    )
    spread = [np.log(factors).std() for factors in (free, some, much)]
    assert spread[0] > 1.1 * spread[1] > 1.1 * spread[2] > 0
    np.testing.assert_array_equal(none, 1)


def test_shrinkage_is_judged_by_the_likelihood_of_rows_held_back():
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, 3, 300), rng.integers(0, 4, 300)])
    z2 = (1.0 + codes[:, 0]) * rng.gamma(1, size=300)
    fold = rng.integers(0, 2, 300)
    cells = CellSums.from_rows(codes, fold, z2, 5.0)
    sums = CrossRaking(cells, [3, 4]).judge([(2.0, 9.0)] * 2)
    found = sums.deviance(), sums.z2.sum()
    log_factor = np.empty(300)
    for k in range(2):
        seen = CellSums.from_rows(*(v[fold != k] for v in (codes, fold, z2)), 5.0)
        a, b = rake(seen, [3, 4], [2.0, 9.0]).log_factors
        log_factor[fold == k] = (a[codes[:, 0]] + b[codes[:, 1]])[fold == k]
    factor = np.exp(log_factor)
    # twice the negative log-likelihood with the best constant factor, but for 1
    deviance = np.log(np.mean(np.minimum(z2, 5) / factor)) + np.mean(log_factor)
    assert found == pytest.approx((deviance, np.mean(z2 / factor)), rel=1e-4)


def test_no_shrinkage_of_the_grid_is_better_than_the_one_chosen():
    rng = np.random.default_rng(1)
    codes = np.column_stack([rng.integers(0, 3, 300), rng.integers(0, 9, 300)])
    z2 = (1.0 + codes[:, 0]) * rng.gamma(0.5, size=300)
    z2[np.argmin(codes[:, 0])] = 1e4  # counts up to the cap
    cells = CellSums.from_rows(codes, rng.integers(0, 5, 300), z2, 20.0)
    scaler = RakedScaling()
    scaler.n_codes_ = [3, 9]
    chosen, _ = scaler._choose(cells)

    def loss(*pseudo):
        return CrossRaking(cells, [3, 9]).judge([pseudo] * 5).deviance()

    assert loss(*chosen) <= min(loss(k, k) for k in raked.GRID) + 1e-4
    assert chosen[0] == chosen[1]


def test_thin_bins_are_shrunk_more_than_full_ones():
    label = np.array(["thin"] * 8 + ["full"] * (N - 8))
    error = U * np.where(np.arange(N) % 2, 1.0, -1.0)
    error[:8] *= 4
    frame = pl.DataFrame({"u": U, "label": label})
    scaler = RakedScaling(shrinkage=40.0).fit(frame, error)
    limits = list(scaler.limits_["label"])
    thin = scaler.factors_["label"][1 + limits.index("thin")]
    full = scaler.factors_["label"][1 + limits.index("full")]
    # (8 * 16 + 40) / (8 + 40) of the variance, rather than 16
    assert thin / full == pytest.approx(np.sqrt(168 / 48), rel=0.05)


def test_a_noise_feature_is_nearly_flat():
    noise = np.random.default_rng(99).normal(size=(N, 3))
    scaler = RakedScaling().fit(np.column_stack([X, noise]), ERROR)
    for name in ("X3", "X4", "X5"):
        assert np.log(scaler.factors_[name]).std() < 0.04
    assert np.ptp(np.log(scaler.factors_["X1"][1:])) > 0.3
    assert np.isfinite(scaler.shrinkage_["X1"])


# --- columns -------------------------------------------------------------------------


def test_the_number_of_bins_is_one_for_all_or_by_column():
    assert [f.size for f in RakedScaling(7).fit(X, ERROR).factors_.values()] == [8] * 3
    frame = pl.DataFrame({"u": U, "a": A, "b": B})
    scaler = RakedScaling({"a": 5, 2: 10}).fit(frame, ERROR)
    sizes = {name: factors.size for name, factors in scaler.factors_.items()}
    assert sizes == {"u": 21, "a": 6, "b": 11}
    assert {name: limits.size for name, limits in scaler.limits_.items()} == {
        "u": 19,
        "a": 4,
        "b": 9,
    }


@pytest.mark.parametrize(("n", "n_bins"), [(9, 1), (29, 2), (30, 3), (6000, 20)])
def test_a_bin_has_at_least_ten_rows(n, n_bins):
    scaler = RakedScaling(shrinkage=1.0).fit(U[:n], ERROR[:n])
    assert scaler.factors_["u"].size == 1 + n_bins  # and one for missing values


def test_factors_and_limits_say_what_predict_does():
    scaler = RakedScaling(5, pairs=[(1, 2)], shrinkage=9.0).fit(X, ERROR)
    expected, bins = scaler.scale_ * U, {}
    for name, x in (("u", U), ("X1", A), ("X2", B)):
        bins[name] = 1 + np.searchsorted(scaler.limits_[name], x, side="right")
        expected = expected * scaler.factors_[name][bins[name]]
    expected = expected * scaler.factors_["X1 & X2"][bins["X1"], bins["X2"]]
    np.testing.assert_allclose(scaler.predict(X), expected, rtol=1e-12)


def test_labels_missing_values_and_labels_never_seen_get_a_factor():
    rng = np.random.default_rng(4)
    phase = rng.choice(["gas", "liquid", "solid"], N)
    gaps = np.where(rng.random(N) < 0.2, np.nan, A)
    factor = np.where(phase == "gas", 3.0, 1.0) * np.where(np.isnan(gaps), 2.0, 1.0)
    error = factor * U * rng.normal(size=N)
    frame = pl.DataFrame({"u": U, "phase": phase, "a": gaps})
    scaler = RakedScaling().fit(frame, error)
    assert scaler.limits_["phase"] == ("gas", "liquid", "solid")
    f = scaler.factors_["phase"]
    assert f[1] / f[2] == pytest.approx(3, rel=0.1)
    missing, *others = scaler.factors_["a"]
    assert missing / np.median(others) == pytest.approx(2, rel=0.1)
    unseen = pl.DataFrame({"u": [1.0], "phase": ["plasma"], "a": [0.5]})
    seen = pl.DataFrame({"u": [1.0] * 2, "phase": ["gas", "solid"], "a": [0.5] * 2})
    gas, solid = scaler.predict(seen)
    with pytest.warns(UnseenCategoryWarning, match="^1 of 1 rows .* column 'phase'"):
        assert solid < scaler.predict(unseen)[0] < gas


def test_numeric_labels_are_not_ordered():
    rng = np.random.default_rng(6)
    label = rng.choice([1.0, 2.0, 300.0], N)
    error = U * np.where(label == 2, 2.0, 1.0) * rng.normal(size=N)
    table = np.column_stack([U, label])
    scaler = RakedScaling(categorical=[1]).fit(table, error)
    assert scaler.limits_["X1"] == (1, 2, 300)
    with pytest.warns(UnseenCategoryWarning, match="^1 of 3 rows .* column 'X1'"):
        one, between, never = scaler.predict([[1.0, 1.0], [1.0, 100.0], [1.0, 2.0]])
    assert one < between < never


def test_bins_of_zero_errors_keep_positive_factors():
    error = np.where(A < 0.4, 0.0, ERROR)
    for shrinkage in (0.0, "auto"):
        scaler = RakedScaling(shrinkage=shrinkage).fit(X, error)
        predicted = scaler.predict(X)
        assert np.all(np.isfinite(predicted))
        assert predicted.min() > 1e-3 * U.min()
        assert predicted[A < 0.4].mean() < predicted[A > 0.4].mean()


def test_an_enormous_error_counts_up_to_a_cap():
    error = ERROR.copy()
    error[17] *= 1e4
    spoiled = RakedScaling().fit(X, error).predict(X)
    # the average is squared errors', which one can dominate; the shape is not
    ratio = spoiled / RakedScaling().fit(X, ERROR).predict(X)
    assert np.percentile(ratio, 95) / np.percentile(ratio, 5) < 20
    assert np.all(np.isfinite(spoiled))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"shrinkage": -1.0}, '`shrinkage` must be a number of at least 0 or "auto"'),
        ({"shrinkage": float("nan")}, "`shrinkage` must be a number of at least 0"),
        ({"shrinkage": "some"}, "`shrinkage` must be a number .* found 'some'"),
        ({"n_bins": 0}, "`n_bins` must be at least 1; found 0"),
        ({"n_bins": {"X9": 3}}, "must name a column of X; found 'X9'"),
        ({"pairs": [(1, "X1")]}, "`pairs` must hold pairs of different columns"),
        ({"pairs": [(0, 1, 2)]}, "`pairs` must hold pairs of different columns"),
        ({"random_state": -1}, "`random_state` must be at least 0; found -1"),
    ],
)
def test_wrong_parameters_are_refused(arguments, match):
    with pytest.raises(InvalidInputError, match=match):
        RakedScaling(**arguments).fit(X, ERROR)


# --- the paper's data ----------------------------------------------------------------


def test_qm9_becomes_adaptive_with_a_low_total_score(qm9):
    scaler = RakedScaling().fit(qm9.calibration.X, qm9.calibration.error)
    assert scaler.converged_
    predicted = scaler.predict(qm9.test.X)
    ties = qm9.test.uncertainty
    card = scorecard(qm9.test.error, predicted, qm9.test.features, ties=ties)
    assert card.s_tot < 0.65  # isotonic, the paper's reference: 0.78
    found = validate(qm9.test.error, predicted, qm9.test.features, ties=ties)
    assert found.calibrated
    for name in ("mass", "heteroatom_fraction"):  # isotonic: more than a tenth off
        assert all(abs(each.factor - 1) < 0.1 for each in found.verdicts[name].regions)


@pytest.mark.slow
def test_qm9_does_so_on_average_over_random_splits(qm9):
    pooled = np.concatenate([qm9.calibration.X, qm9.test.X])
    error = np.concatenate([qm9.calibration.error, qm9.test.error])
    total = []
    for seed in range(20):
        place = np.random.default_rng([1115, seed]).permutation(error.size)
        fit, rest = place[:10_000], place[10_000:]
        predicted = RakedScaling().fit(pooled[fit], error[fit]).predict(pooled[rest])
        features, ties = pooled[rest, 1:], pooled[rest, 0]
        total.append(scorecard(error[rest], predicted, features, ties=ties).s_tot)
    print(f"S_tot {np.mean(total):.3f} ± {np.std(total, ddof=1):.3f}")
    assert np.mean(total) <= 0.60
