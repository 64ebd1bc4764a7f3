"""Bin-wise factors that minimise the losses of the paper."""

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError
from sigmascale.recalibration.scalings import factors

pytestmark = pytest.mark.filterwarnings(
    "ignore::sigmascale.exceptions.FewerBinsWarning",
)

SCORES = {"consistency": "S_con", "adaptivity": "S_ada", "total": "S_tot"}


@pytest.fixture(autouse=True)
def _few_moves(request, monkeypatch):
    """Search for a moment only, but where numbers are those of the paper."""
    if "qm9" not in request.fixturenames:
        monkeypatch.setattr(factors, "MOVES", 300)


def rows(n=900, **more):
    """Return molecules with a label and a number with ties, weighted if asked for."""
    rng = np.random.default_rng(2)
    p = ss.datasets.make_molecules(n, seed=1).predictions
    features = {"mass": p.features["mass"], "kind": rng.choice(list("abc"), n)}
    return ss.Predictions(y_std=p.y_std, error=p.error, features=features, **more)


def weights(n=900):
    return np.random.default_rng(3).lognormal(0, 0.5, n)


def score(p, scaling, name, ties=None):
    """Return a score of the fitted rows, ties ordered by u before scaling."""
    q = p.with_y_std(scaling.learn(p).map.of_rows(p))
    ties = p.y_std if ties is None else ties
    return ss.scores.scorecard(q, ties=ties)[name]


@pytest.mark.parametrize("by", ["u", "mass", "kind", ("u", "mass")])
@pytest.mark.parametrize("weight", [None, weights()], ids=["plain", "weighted"])
def test_factors_that_minimise_a_score_have_a_lower_one(by, weight):
    p = rows(weights=weight)
    for loss, name in SCORES.items():
        found, closed = (
            score(p, ss.BinwiseScaling(6, by=by, loss=which), name)
            for which in (loss, "nll")
        )
        # three random labels leave nothing to gain in S of other columns
        assert found < closed or by == "kind", (loss, by)
        assert found <= closed, (loss, by)


def test_a_search_along_one_factor_sees_the_scores_of_the_rows_it_scales():
    for weight in (None, weights(700)):
        p = rows(700, weights=weight)
        codes = np.random.default_rng(4).integers(9, size=700)
        s = np.random.default_rng(5).normal(scale=0.3, size=9)
        options = {"n_score_bins": 13, "ties": "u"}
        order = factors.canonical_order(p)
        sorted_rows, sorted_codes = p.take(order), codes[order]
        loss = factors.FactorLoss.of(
            sorted_rows, sorted_codes, 9, loss="total", **options
        )
        values = s[4] + np.array([-2, -0.1, 0, 0.3, 5])
        losses, log_zms = loss.along(loss.scaled.order(s), s, 4, values)
        for k, value in enumerate(values):
            moved = np.where(np.arange(9) == 4, value, s)
            u = sorted_rows.y_std * np.exp(moved + log_zms[k] / 2)[sorted_codes]
            scaled = sorted_rows.with_y_std(u)
            card = ss.scores.scorecard(scaled, n_bins=13, ties=sorted_rows.y_std)
            assert losses[k] == pytest.approx(card["S_tot"], rel=1e-9)
            assert card["S_cal"] == pytest.approx(0, abs=1e-12)
            assert loss(moved + log_zms[k] / 2) == pytest.approx(losses[k], rel=1e-9)


def test_bins_of_few_rows_keep_the_factor_of_the_likelihood():
    p = rows()
    kind = np.where(np.arange(900) < 20, "rare", "common")
    p = ss.Predictions(y_std=p.y_std, error=p.error, features={"kind": kind})
    one, other = (
        ss.BinwiseScaling(by="kind", loss=loss).learn(p).map.of_rows(p) / p.y_std
        for loss in ("nll", "adaptivity")
    )
    ratio = other / one
    assert ratio[kind == "rare"] == pytest.approx(1, abs=1e-12)


def test_neither_the_order_nor_the_unit_of_rows_matters_and_groups_do_not_count():
    p = rows(weights=weights())
    order = np.random.default_rng(6).permutation(900)
    for loss in SCORES:
        scaling = ss.BinwiseScaling(5, by="mass", loss=loss)
        found = scaling.learn(p).map.of_rows(p)
        shuffled = scaling.learn(p.take(order)).map.of_rows(p)
        grouped = scaling.learn(rows(weights=weights(), groups=order // 5)).map
        np.testing.assert_allclose(shuffled, found, rtol=1e-9)
        np.testing.assert_allclose(grouped.of_rows(p), found, rtol=1e-9)
        units = ss.Predictions(
            y_std=1e-9 * p.y_std,
            error=1e-9 * p.error,
            features=p.features,
            weights=p.weights,
        )
        in_units = scaling.learn(units).map.of_rows(units)
        np.testing.assert_allclose(1e9 * in_units, found, rtol=1e-7)


def test_vectors_and_missing_features_have_factors_too():
    p = ss.datasets.make_molecules(900, seed=1).predictions
    error = np.column_stack([p.error, -p.error, 0.5 * p.error])
    mass = np.where(np.arange(900) % 9 == 0, np.nan, p.features["mass"])
    p = ss.Predictions(y_std=p.y_std, error=error, features={"mass": mass})
    for loss in SCORES:
        u = ss.BinwiseScaling(4, loss=loss).learn(p).map.of_rows(p)
        assert np.isfinite(u).all()
        assert np.mean(p.z2 * (p.y_std / u) ** 2) == pytest.approx(1, rel=0.1)


def test_a_loss_without_a_meaning_is_refused_with_what_to_do():
    u = np.linspace(1, 2, 300)
    alone = ss.Predictions(y_std=u, error=u)
    with pytest.raises(InvalidInputError, match=r"needs features.*consistency"):
        ss.BinwiseScaling(3, loss="adaptivity").learn(alone)
    with pytest.raises(InvalidInputError, match=r'loss.*"nll".*"total"'):
        ss.BinwiseScaling(3, loss="S_tot").learn(alone)
    with pytest.raises(InvalidInputError, match=r"ties"):
        ss.BinwiseScaling(3, loss="total", ties="weight").learn(rows())
    with pytest.raises(InvalidInputError, match=r"n_score_bins"):
        ss.BinwiseScaling(3, loss="total", n_score_bins=0).learn(alone)
    silent = ss.Predictions(y_std=u, error=np.where(u < 1.3, 0, u), features={"x": -u})
    with pytest.raises(InvalidInputError, match=r"3 of 10 score bins of 'x'.*nll"):
        ss.BinwiseScaling(3, loss="adaptivity").learn(silent)
    with pytest.raises(InvalidInputError, match=r"score bins of 'u'.*nll"):
        ss.BinwiseScaling(3, loss="consistency").learn(silent)


# --- on the paper's data --------------------------------------------------------------

# S_ada of 20, 40 and 80 bins, at most
LOWEST_ADAPTIVITY = {"u": (0.554, 0.466, 0.380), "X1": (0.568, 0.491, 0.263)}
LOWEST_CONSISTENCY = {"u": (0.166, 0.131, 0.086), "X1": (0.139, 0.196, 0.132)}
# CMA-ES with 20,000 evaluations reaches 0.745 with 20 bins of X1
LOWEST_TOTAL = {"u": (0.741, 0.726, 0.588), "X1": (0.763, 0.734, 0.451)}


def in_notation(qm9):
    p = qm9.calibration.predictions
    features = dict(zip(("X1", "X2"), p.features.values(), strict=True))
    return ss.Predictions(y_std=p.y_std, error=p.error, features=features)


def reached(p, loss, bounds):
    """Yield the score of each fit of the paper, and what it must not exceed."""
    for by, most in bounds.items():
        for n_bins, bound in zip((20, 40, 80), most, strict=True):
            scaling = ss.BinwiseScaling(n_bins, by=by, prior_rows=0, loss=loss)
            yield score(p, scaling, SCORES[loss]), bound, (by, n_bins)


def test_linear_programs_find_the_lowest_adaptivity_on_the_paper_s_data(qm9):
    for found, most, fit in reached(in_notation(qm9), "adaptivity", LOWEST_ADAPTIVITY):
        assert found <= most, fit


@pytest.mark.slow
def test_the_search_goes_below_the_published_losses_on_the_paper_s_data(qm9):
    p = in_notation(qm9)
    for loss, bounds in (
        ("consistency", LOWEST_CONSISTENCY),
        ("total", LOWEST_TOTAL),
    ):
        for found, most, fit in reached(p, loss, bounds):
            assert found <= most, (loss, fit)
