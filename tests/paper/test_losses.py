"""The losses of the paper and the search for the factors that minimise them."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sigmascale as ss
from paper.losses import OptimisedScaling, ScaledLoss, minimise
from sigmascale.bins import rank_order

SCORES = {"consistency": "S_con", "adaptivity": "S_ada", "total": "S_tot"}


def mean_abs_log(z2, starts):
    sizes = np.diff(starts, append=z2.size)
    with np.errstate(divide="ignore"):
        return np.abs(np.log(np.add.reduceat(z2, starts) / sizes)).mean()


def by_definition(log_factors, p, codes, features, *, by_uncertainty, n_score_bins):
    """Scale, sort afresh for each term, cut, and take logarithms."""
    n = len(p)
    n_bins = min(n_score_bins, n)
    starts = np.floor(np.arange(n_bins) * n / n_bins + 0.5).astype(int)
    scaled = np.exp(log_factors)[codes] * p.y_std
    z2 = (p.error / scaled) ** 2
    # Only where scaled u are equal: by factor bin, then shuffled as in all scores.
    shuffled = np.argsort(rank_order(p.y_std, None, p.squared_error, p.y_std))
    keys = (shuffled, codes, scaled)
    with np.errstate(divide="ignore"):
        loss = abs(np.log(z2.mean()))
    if by_uncertainty:
        loss += mean_abs_log(z2[np.lexsort(keys)], starts)
    return loss + sum(
        mean_abs_log(z2[np.lexsort((*keys, x))], starts) for x in features
    )


@given(st.data())
def test_the_loss_is_that_of_its_definition_whatever_the_order_of_rows(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="seed"))
    n, n_factors = data.draw(st.integers(1, 300)), data.draw(st.integers(1, 12))
    u = np.exp(data.draw(st.sampled_from([0.1, 1.0, 10.0])) * rng.normal(size=n))
    if data.draw(st.booleans(), label="ties in u"):
        u = np.round(u, 1) + 0.1
    error = u * rng.standard_t(4, n)
    error[rng.random(n) < data.draw(st.sampled_from([0, 0.1, 0.9]))] = 0
    digits = data.draw(st.lists(st.sampled_from([0, 1, 9]), max_size=3))
    features = [np.round(rng.normal(size=n), k) for k in digits]
    codes = rng.integers(n_factors, size=n)
    if data.draw(st.booleans(), label="factor bins of u"):
        limits = np.sort(rng.choice(u, n_factors - 1))
        codes = np.searchsorted(limits, u, side="right")
    options = {
        "by_uncertainty": data.draw(st.booleans()),
        "n_score_bins": data.draw(st.integers(1, 130)),
    }
    factors = data.draw(st.sampled_from([0.0, 0.3, 3.0])) * rng.normal(size=n_factors)
    p = ss.Predictions(y_std=u, error=error)
    found = ScaledLoss(p, codes, n_factors, features, **options)(factors)
    expected = by_definition(factors, p, codes, features, **options)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)
    order = rng.permutation(n)
    shuffled = [x[order] for x in features]
    again = ScaledLoss(p.take(order), codes[order], n_factors, shuffled, **options)
    assert again(factors) == pytest.approx(found, rel=1e-12, abs=1e-12)


@pytest.fixture(scope="module")
def molecules():
    return ss.datasets.make_molecules(2000, seed=1).predictions


def test_optimisation_lowers_the_loss_which_is_the_score_of_the_fitted_set(molecules):
    start = OptimisedScaling("u", 5).learn(molecules).map.of_rows(molecules)
    for by in ("u", "mass"):
        start = OptimisedScaling(by, 5).learn(molecules).map.of_rows(molecules)
        for loss, name in SCORES.items():
            scaling = OptimisedScaling(by, 5, loss=loss, max_evaluations=800)
            u = scaling.learn(molecules).map.of_rows(molecules)
            assert scaling.loss_ < scaling.start_loss_
            for scaled, expected in ((start, scaling.start_loss_), (u, scaling.loss_)):
                card = ss.scores.scorecard(molecules.with_y_std(scaled))
                assert card[name] == pytest.approx(expected, rel=1e-12)


def test_the_closed_solution_minimises_the_log_likelihood(molecules):
    scaling = OptimisedScaling("u", 3)
    scale = scaling.learn(molecules).map
    u, codes = scale.of_rows(molecules), scale.axes[0].codes(molecules.columns) - 1

    def loss(change):
        return ss.scores.nll(molecules.with_y_std(np.exp(change)[codes] * u))

    assert scaling.loss_ == pytest.approx(loss(np.zeros(3)), abs=1e-12)
    found = minimise(loss, np.zeros(3), seed=0, max_evaluations=600)
    assert found.loss >= scaling.loss_ - 1e-12
    back = minimise(loss, np.full(3, 0.3), seed=0, max_evaluations=1500)
    np.testing.assert_allclose(back.x, 0, atol=1e-3)


def test_the_search_keeps_its_budget_and_depends_on_the_seed_alone():
    def rugged(x):
        return np.sum((x - 0.2) ** 2) + 0.01 * np.sum(np.cos(40 * x))

    one, again, other = (
        minimise(rugged, np.zeros(8), seed=seed, max_evaluations=500)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.x, again.x)
    assert not np.array_equal(one.x, other.x)
    assert one.n_evaluations <= 500
    assert one.loss < one.start_loss
    nowhere = minimise(lambda _: np.inf, np.zeros(3), seed=0, max_evaluations=50)
    assert nowhere.x.tolist() == [0, 0, 0]
    assert minimise(rugged, np.zeros(8), seed=0, max_evaluations=1).loss == rugged(
        np.zeros(8)
    )


def test_without_cma_the_remedy_is_named(molecules, monkeypatch):
    monkeypatch.setitem(sys.modules, "cma", None)
    scaling = OptimisedScaling("u", 3, loss="total", max_evaluations=100)
    with pytest.raises(ImportError, match="pip install cma"):
        scaling.learn(molecules)
