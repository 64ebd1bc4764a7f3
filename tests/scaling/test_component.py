import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from scipy.stats import binomtest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError


def loss(error, parts, a, b):
    """Return <ln v + E² / v> for v = Σ a² u² + b²."""
    v = (parts * a) ** 2 @ np.ones(parts.shape[1]) + b**2
    return np.mean(np.log(v) + error**2 / v)


def make_parts(n, a=(1.5, 0.5), b=0.3, seed=0):
    """Return two uncertainties, and errors of which each explains a share."""
    rng = np.random.default_rng(seed)
    parts = rng.lognormal(0, 0.7, (n, 2))
    sigma = np.sqrt((parts * a) ** 2 @ np.ones(2) + b**2)
    return parts, rng.normal(scale=sigma)


def fitted(parts, error):
    scaler = ss.ComponentScaling(list(range(parts.shape[1]))).fit(parts, error)
    return scaler, np.array(list(scaler.a_.values()))


def test_known_factors_are_recovered_as_often_as_their_standard_errors_say():
    true, n, replications = np.array([1.5, 0.5, 0.3]), 2000, 100
    # of maximum likelihood: the inverse of the information about a₁, a₂ and b
    parts, _ = make_parts(200_000, true[:2], true[2], seed=999)
    table = np.column_stack([parts**2, np.ones(len(parts))])
    gradient = 2 * true * table / (table @ true**2)[:, None]
    information = n * gradient.T @ gradient / len(parts) / 2
    standard_errors = np.sqrt(np.diag(np.linalg.inv(information)))
    inside = np.zeros(3)
    for seed in range(replications):
        scaler, a = fitted(*make_parts(n, true[:2], true[2], seed=seed))
        inside += np.abs([*a, scaler.b_] - true) < 1.96 * standard_errors
    for count in inside:
        assert binomtest(int(count), replications, 0.95).pvalue > 0.002


def test_a_component_that_errors_do_not_show_gets_the_factor_0():
    parts, _ = make_parts(20_000)
    rng = np.random.default_rng(1)
    counts = 0
    for _ in range(20):
        error = rng.normal(scale=2 * parts[:, 0])
        scaler, a = fitted(parts, error)
        assert a[0] == pytest.approx(2, rel=0.02)
        assert a[1] < 0.2
        assert scaler.b_ < 0.2
        counts += a[1] == 0
    assert counts > 5  # at the edge in half of the sets, more or less


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tails", ["normal", "heavy", "half of them 0"])
def test_no_search_finds_a_higher_likelihood(seed, tails):
    parts, error = make_parts(300, (0.3, 2.0), 0.0, seed=seed)
    rng = np.random.default_rng(seed)
    if tails == "heavy":
        error = error * rng.standard_t(2, 300)
    elif tails == "half of them 0":
        error[rng.permutation(300)[:150]] = 0
    scaler, a = fitted(parts, error)
    found = loss(error, parts, a, scaler.b_)
    for start in rng.normal(size=(12, 3)):
        other = minimize(
            lambda p: loss(error, parts, np.exp(p[:2]), np.exp(p[2])),
            start,
            method="Nelder-Mead",
            options={"xatol": 1e-8, "fatol": 1e-12, "maxiter": 2000},
        )
        assert found <= other.fun + 1e-9


def test_one_component_is_the_linear_law_without_subtraction():
    parts, error = make_parts(500)
    linear = ss.LinearScaling(subtract=False).fit(parts[:, 0], error)
    scaler = ss.ComponentScaling().fit(parts[:, 0], error)
    assert scaler.a_["u"] == pytest.approx(linear.a_, rel=1e-6)
    assert scaler.b_ == pytest.approx(linear.b_, rel=1e-6)


def test_predictions_add_up_scaled_components():
    parts, error = make_parts(500)
    scaler, a = fitted(parts, error)
    expected = np.sqrt((parts * a) ** 2 @ np.ones(2) + scaler.b_**2)
    np.testing.assert_allclose(scaler.predict(parts), expected, rtol=1e-12)


def test_two_equal_columns_share_their_factor():
    parts, error = make_parts(500)
    twice = parts[:, [0, 0]]
    scaler, a = fitted(twice, error)
    alone = ss.ComponentScaling().fit(parts[:, 0], error)
    assert np.hypot(*a) == pytest.approx(alone.a_["u"], rel=1e-4)
    np.testing.assert_allclose(
        scaler.predict(twice), alone.predict(parts[:, 0]), rtol=1e-5
    )


def test_components_of_0_are_no_obstacle_and_new_rows_of_only_0_get_something():
    parts, error = make_parts(500, b=0.0)
    parts[::2, 1] = 0
    scaler, _ = fitted(parts, error)
    least = scaler.predict(parts).min()
    with pytest.warns(ss.exceptions.ZeroUncertaintyWarning):
        found = scaler.predict([[0.0, 0.0]])[0]
    assert 0 < found <= least


def test_negative_components_and_unknown_ones_are_refused():
    parts, error = make_parts(50)
    parts[7, 1] = -0.5
    with pytest.raises(InvalidInputError, match=r"X1\]` must be at least 0.*row 7: -0"):
        fitted(parts, error)
    with pytest.raises(InvalidInputError, match="`components` must be a column of X"):
        ss.ComponentScaling([0, 2]).fit(np.abs(parts), error)
    for wrong in ([], [0, 0]):
        with pytest.raises(InvalidInputError, match="`components` must name different"):
            ss.ComponentScaling(wrong).fit(np.abs(parts), error)


def test_a_file_gives_back_what_was_learned(tmp_path):
    parts, error = make_parts(200)
    scaler, _ = fitted(parts, error)
    ss.save(scaler, tmp_path / "scaler.json")
    loaded = ss.load(tmp_path / "scaler.json")
    np.testing.assert_array_equal(loaded.predict(parts), scaler.predict(parts))
    assert loaded.a_ == scaler.a_
    assert "for X1" in loaded.describe()


def test_it_is_a_candidate_where_components_are_named():
    parts, error = make_parts(2000, (3.0, 0.2), 0.0)
    X = np.column_stack([np.hypot(*parts.T), parts])
    scaler = ss.SelectedScaling(components=[1, 2], n_folds=3)
    scaler.fit(X, error)
    assert scaler.name_ == "component"
    plain = ss.SelectedScaling(n_folds=3).fit(X[:200, :1], error[:200])
    assert "component" not in plain.cv_results_["candidate"]
    with pytest.raises(InvalidInputError, match="`components` must be a column of X"):
        ss.SelectedScaling(components=[5]).fit(X, error)


def read_qm9(name):
    """Return the standard deviations total, aleatoric and epistemic, and errors."""
    folder = os.environ.get("SIGMASCALE_QM9")
    if not folder:
        pytest.skip("SIGMASCALE_QM9 does not name a folder with the QM9 files")
    table = pl.read_csv(Path(folder) / f"qm9_qm9_E_uncalibrated_{name}.csv")
    parts = [f"uncertainty_{each}" for each in ("total", "aleatoric", "epistemic")]
    error = (table["E_"] - table["prediction"]).to_numpy()
    return np.sqrt(table.select(parts).to_numpy()), error


def test_qm9_wants_other_factors_of_its_parts_but_gains_no_more_than_by_subtracting():
    X, error = read_qm9("validation")
    new, new_error = read_qm9("test")
    scaler = ss.ComponentScaling([1, 2]).fit(X, error)
    aleatoric, epistemic = scaler.a_.values()
    assert epistemic > 2 * aleatoric

    def nll(scaler):
        return ss.nll(new_error, scaler.fit(X, error).predict(new))

    by_parts, one_factor = nll(scaler), nll(ss.TemperatureScaling())
    assert by_parts < one_factor - 0.05
    assert nll(ss.LinearScaling()) < by_parts
