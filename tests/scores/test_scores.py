"""Scores that are numbers, and the scorecard that gathers them."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import sigmascale as ss
from sigmascale.exceptions import (
    FewerBinsWarning,
    InvalidInputError,
    ZeroErrorBinWarning,
)

scores = ss.scores
LOCAL = (scores.local_calibration_error, scores.ence, scores.uce)
AVERAGE = (
    *(scores.zms, scores.nll, scores.calibration_error, scores.crps, scores.coverage),
    *(scores.interval_score, scores.miscalibration_area, scores.energy_score),
)


def make(n=2000, seed=0, ties=False, **others):
    rng = np.random.default_rng(seed)
    u, x = rng.lognormal(size=(2, n))
    error = u * rng.standard_t(5, n)
    if ties:
        u, x, error = np.round(u, 1) + 0.1, np.round(x, 1), np.round(error, 1)
    kind = rng.choice(["alloy", "gas", "oxide"], n)
    return ss.Predictions(
        y_std=u, error=error, features={"x": x, "kind": kind}, **others
    )


def by_loops(p, by, n_bins):
    """The definitions, bin after bin: S, ENCE and UCE."""
    if by == "kind":
        codes = np.unique(p.features["kind"], return_inverse=True)[1]
        bins = [np.flatnonzero(codes == k) for k in range(3)]
    else:
        x = p.y_std if by == "u" else p.features["x"]
        order = np.lexsort((p.y_std, x))
        starts = [int(np.floor(k * len(p) / n_bins + 0.5)) for k in range(n_bins)]
        bins = np.split(order, starts[1:])
    s, ence, uce = [], [], []
    for rows in bins:
        e, u = p.error[rows], p.y_std[rows]
        s.append(abs(np.log(np.mean((e / u) ** 2))))
        rmv, rmse = np.sqrt(np.mean(u**2)), np.sqrt(np.mean(e**2))
        ence.append(abs(rmv - rmse) / rmv)
        uce.append(abs(rmv**2 - rmse**2))
    return [np.mean(each) for each in (s, ence, uce)]


def test_local_scores_are_those_of_plain_loops():
    p = make()
    for by, n_bins in (("u", 7), ("x", 30), ("kind", 5)):
        found = [score(p, by=by, n_bins=n_bins) for score in LOCAL]
        assert found == pytest.approx(by_loops(p, by, n_bins), rel=1e-12)


def test_average_scores_are_those_of_their_formulas():
    p = make()
    z2 = (p.error / p.y_std) ** 2
    assert scores.zms(p) == pytest.approx(z2.mean())
    assert scores.calibration_error(p) == pytest.approx(abs(np.log(z2.mean())))
    assert scores.nll(p) == pytest.approx(
        -stats.norm.logpdf(p.error, 0, p.y_std).mean()
    )
    assert scores.sharpness(p) == pytest.approx(np.sqrt(np.mean(p.y_std**2)))
    half = 1.6448536269514722 * p.y_std
    inside = np.abs(p.error) <= half
    assert scores.coverage(p, coverage=0.9) == pytest.approx(inside.mean())
    outside = np.maximum(np.abs(p.error) - half, 0)
    assert scores.interval_score(p, coverage=0.9) == pytest.approx(
        np.mean(2 * half + 20 * outside)
    )


@pytest.mark.parametrize(("error", "u"), [(0.0, 1.0), (2.0, 1.0), (-0.3, 0.2)])
def test_crps_is_the_integral_that_defines_it(error, u):
    def square(x):
        return (stats.norm.cdf(x / u) - (x >= error)) ** 2

    whole = sum(
        integrate.quad(square, *ends)[0] for ends in ((-np.inf, error), (error, np.inf))
    )
    p = ss.Predictions(y_std=[u], error=[error])
    assert scores.crps(p) == scores.energy_score(p) == pytest.approx(whole, abs=1e-8)


def test_the_scorecard_gathers_the_single_scores_under_the_names_of_the_paper():
    p = make()
    card = scores.scorecard(p, n_bins=20)
    for by in ("u", "x", "kind"):
        found = [card[f"{name}_{by}"] for name in ("S", "ENCE", "UCE")]
        assert found == [score(p, by=by, n_bins=20) for score in LOCAL]
    single = {
        "NLL": scores.nll,
        "ZMS": scores.zms,
        "S_cal": scores.calibration_error,
        "CRPS": scores.crps,
    }
    for name, score in single.items():
        assert card[name] == pytest.approx(score(p), rel=1e-12)
    assert card["within_80"] == scores.coverage(p, coverage=0.8)
    s = card.s
    assert card["S_con"] == pytest.approx(card["S_cal"] + s["u"])
    assert card["S_ada"] == pytest.approx(card["S_cal"] + s["x"] + s["kind"])
    assert card["S_tot"] == pytest.approx(card["S_cal"] + sum(s.values()))
    assert "S_ada" not in scores.scorecard(p.with_features([])).to_dict()
    assert card.n_bins == 20
    assert card.n_rows == len(p)


def test_a_scorecard_shows_what_right_uncertainties_would_score():
    p = make()
    card = scores.scorecard(p)
    target = scores.reference_scores(p, n_draws=200)
    assert card.reference.mean == target.mean
    lines = str(card).splitlines()
    (line,) = (line for line in lines if line.startswith("S_tot"))
    assert line.split()[:3] == [
        "S_tot",
        f"{card['S_tot']:.4g}",
        f"{target.mean['S_tot']:.4g}",
    ]
    (line,) = (line for line in lines if line.startswith("f_v_u"))
    assert f"{card.valid['u']}" in line
    own = scores.reference_scores(p, n_draws=200, distribution="empirical")
    assert f"{own.mean['f_v_u']:.4g} ± {own.sd['f_v_u']:.2g}" in line


def test_a_scorecard_has_the_fractions_of_valid_bins_with_their_intervals():
    p = make(1200)
    card = scores.scorecard(p, n_bins=20)
    for name in p.names:
        local = scores.local_statistics(p, by=name, n_bins=20, method="moments")
        found = card.valid[name]
        assert found.value == local.fraction_valid == card[f"f_v_{name}"]
        assert (found.low, found.high) == local.fraction_interval
    simulated = card.reference.mean
    assert simulated["f_v_u"] == pytest.approx(0.93, abs=0.02)
    repeats = make(1200, groups=np.arange(1200) // 4)
    assert scores.scorecard(repeats).valid["u"].value <= 1
    few = scores.scorecard(make(4))
    assert few.valid == {}
    assert "f_v_u" not in few.to_dict()


def test_ties_order_the_rows_with_equal_values_and_u_does_by_default():
    p = make(ties=True)
    kept = ss.Predictions(y_std=p.y_std, error=p.error, features={"x": p.features["x"]})
    order = np.random.default_rng(1).permutation(len(p)).astype(float)
    x, u, z2 = p.features["x"], p.y_std, p.z2
    for ties, second in ((order, order), (None, u + 1e-9 * order)):
        # u of equal rows differs by less than anything that scores see
        rows = np.lexsort((second, x))
        means = [part.mean() for part in np.array_split(z2[rows], 40)]
        expected = np.mean(np.abs(np.log(means)))
        given = kept if ties is not None else kept.with_y_std(u + 1e-9 * order)
        found = scores.local_calibration_error(given, by="x", n_bins=40, ties=ties)
        assert found == pytest.approx(expected, rel=1e-5)


@given(seed=st.integers(0, 50), ties=st.booleans())
def test_neither_the_order_of_rows_nor_the_unit_nor_signs_change_a_score(seed, ties):
    p = make(300, seed, ties)
    order = np.random.default_rng(seed).permutation(len(p))
    card = scores.scorecard(p, n_bins=9).to_dict()
    shuffled = scores.scorecard(p.take(order), n_bins=9).to_dict()
    assert shuffled == pytest.approx(card, rel=1e-12)
    without_unit = [k for k in card if not k.startswith(("NLL", "UCE", "CRPS"))]
    other = ss.Predictions(
        y_std=2.0**-20 * p.y_std, error=-(2.0**-20) * p.error, features=p.features
    )
    found = scores.scorecard(other, n_bins=9).to_dict()
    assert [found[k] for k in without_unit] == pytest.approx(
        [card[k] for k in without_unit], rel=1e-12
    )
    assert found["UCE_u"] == pytest.approx(2.0**-40 * card["UCE_u"], rel=1e-12)


def test_tied_rows_are_dealt_out_as_if_at_random():
    # with one u for all rows, sorting by the error would make S_u huge
    error = np.random.default_rng(0).normal(size=3000)
    p = ss.Predictions(y_std=np.ones(3000), error=error)
    target = scores.reference_scores(p, n_draws=100)
    found = scores.local_calibration_error(p)
    assert abs(found - target.mean["S_u"]) < 4 * target.sd["S_u"]


def test_equal_weights_change_nothing_and_others_count_by_their_ratios():
    p, w = make(500), np.random.default_rng(0).lognormal(size=500)
    weighted = make(500, weights=w)
    card = scores.scorecard(p).to_dict()
    assert scores.scorecard(make(500, weights=np.full(500, 7.0))).to_dict() == card
    found = scores.scorecard(weighted).to_dict()
    again = scores.scorecard(make(500, weights=1e3 * w)).to_dict()
    assert found == pytest.approx(again, rel=1e-9)
    assert found["ZMS"] == pytest.approx(np.average(p.z2, weights=w))
    assert found["CRPS"] == pytest.approx(
        np.average(ss.Distributions.normal(p).crps(p.target), weights=w)
    )
    # of labels, bins have the weight of their rows
    kind = p.features["kind"]
    means = [np.average(p.z2[kind == k], weights=w[kind == k]) for k in np.unique(kind)]
    assert found["S_kind"] == pytest.approx(np.mean(np.abs(np.log(means))))


def test_a_row_of_weight_0_is_as_good_as_none():
    p, w = make(500), np.random.default_rng(0).lognormal(size=500)
    w[::3] = 0
    order = np.random.default_rng(1).random(500)
    kept = p.take(np.flatnonzero(w))
    some = ss.Predictions(
        y_std=kept.y_std, error=kept.error, features=kept.features, weights=w[w > 0]
    )
    found = scores.scorecard(make(500, weights=w), ties=order).to_dict()
    expected = scores.scorecard(some, ties=order[w > 0]).to_dict()
    assert found == pytest.approx(expected, rel=1e-12)


def test_scores_of_vectors_depend_on_no_axes_and_of_d_1_are_those_of_numbers():
    p = make(600)
    flat = ss.Predictions(y_std=p.y_std, error=p.error[:, None], features=p.features)
    card, column = (scores.scorecard(each).to_dict() for each in (p, flat))
    assert column == pytest.approx(card, rel=1e-12)
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(600, 3)) * p.y_std[:, None]
    turned = np.einsum(
        "nij,nj->ni", stats.special_ortho_group.rvs(3, 600, rng), vectors
    )
    first, second = (
        scores.scorecard(
            ss.Predictions(y_std=p.y_std, error=each, features=p.features)
        ).to_dict()
        for each in (vectors, turned)
    )
    assert second == pytest.approx(first, rel=1e-10)
    spread = stats.multivariate_normal(np.zeros(3), np.eye(3))
    nll = -spread.logpdf(vectors / p.y_std[:, None]) + 3 * np.log(p.y_std)
    assert first["NLL"] == pytest.approx(nll.mean())
    assert first["ZMS"] == pytest.approx(
        np.mean(np.sum(vectors**2, axis=1) / (3 * p.y_std**2))
    )


def test_where_a_sign_is_needed_vectors_are_refused():
    p = ss.Predictions(y_std=np.ones(50), error=np.ones((50, 3)))
    for score in (scores.crps, scores.interval_score, scores.tails):
        with pytest.raises(InvalidInputError, match="no sign"):
            score(p)
    with pytest.raises(InvalidInputError, match="no sign"):
        scores.calibration_curve(p, kind="quantile")


def test_distributions_that_rows_have_are_what_is_judged():
    p = make(400)
    shifted = ss.Distributions(np.full(400, 0.5), 2 * p.y_std)
    q = p._with(recalibrated=shifted)
    same = ss.Predictions(y_std=2 * p.y_std, error=p.error - 0.5)
    for score in (scores.crps, scores.coverage, scores.interval_score):
        assert score(q) == pytest.approx(score(same), rel=1e-12)
    assert scores.nll(q) == scores.nll(p)


def test_every_score_asks_for_predictions_with_errors():
    p = ss.Predictions(y_std=np.ones(10))
    for score in (
        *AVERAGE,
        *LOCAL,
        scores.scorecard,
        scores.local_statistics,
        scores.tails,
    ):
        with pytest.raises(InvalidInputError, match="Predictions"):
            score(np.ones(10))
        with pytest.raises(InvalidInputError, match="y_true"):
            score(p)
    assert scores.sharpness(p) == 1


def test_fewer_rows_than_bins_are_announced_once():
    p = make(10)
    with pytest.warns(FewerBinsWarning, match="10 rows") as caught:
        found = scores.scorecard(p, n_bins=50)
    assert len(caught) == 1
    assert found["S_u"] == pytest.approx(np.mean(np.abs(np.log(p.z2))))


def test_a_bin_of_only_zero_errors_makes_its_score_infinite_with_a_warning():
    u, error = np.arange(1.0, 101), np.ones(100)
    error[:50] = 0
    p = ss.Predictions(y_std=u, error=error)
    with pytest.warns(ZeroErrorBinWarning, match="5 of 10"):
        assert scores.local_calibration_error(p, n_bins=10) == np.inf
    assert np.isfinite(scores.ence(p, n_bins=10))
    perfect = ss.Predictions(y_std=u, error=u)
    assert scores.scorecard(perfect, n_bins=10)["S_tot"] == 0


# --- all of them ----------------------------------------------------------------------


def test_results_print_and_become_plain_values():
    p = make(300)
    for result, lines in (
        (scores.scorecard(p), 23),
        (scores.local_statistics(p, n_bins=5), 5),
        (scores.reference_scores(p, n_draws=5), 18),
        (scores.calibration_curve(p, n_levels=5), 5),
        (scores.pit_histogram(p, n_bins=5), 5),
        (scores.reliability_diagram(p, n_bins=5), 5),
        (scores.confidence_curve(p, n_points=5, n_draws=3), 5),
        (scores.tails(p, n_resamples=50), 5),
    ):
        assert len(str(result).splitlines()) == 2 + lines
        assert repr(result) == str(result)
        assert result._repr_html_().count("<tr>") == 1 + lines
        assert json.loads(json.dumps(result.to_dict()))


def test_wrong_arguments_are_refused_by_name():
    p = make(100)
    for score, arguments in (
        (scores.ence, {"n_bins": 0}),
        (scores.ence, {"n_bins": 2.5}),
        (scores.ence, {"ties": np.ones(99)}),
        (scores.ence, {"ties": np.full(100, np.nan)}),
        (scores.uce, {"by": "mass"}),
        (scores.coverage, {"coverage": 1}),
        (scores.interval_score, {"coverage": "0.9"}),
        (scores.local_statistics, {"method": "student"}),
        (scores.local_statistics, {"n_resamples": 3}),
        (scores.local_statistics, {"rng": "x"}),
        (scores.calibration_curve, {"n_levels": 1}),
        (scores.calibration_curve, {"kind": "both"}),
        (scores.pit_histogram, {"n_bins": 0}),
        (scores.pit_histogram, {"confidence": 2}),
        (scores.reliability_diagram, {"n_bins": -1}),
        (scores.confidence_curve, {"statistic": "median"}),
        (scores.confidence_curve, {"n_points": 0}),
        (scores.reference_scores, {"n_draws": 0}),
        (scores.reference_scores, {"distribution": "laplace"}),
        (scores.tails, {"n_resamples": 1}),
    ):
        (name,) = arguments
        with pytest.raises(InvalidInputError, match=name):
            score(p, **arguments)


def test_a_feature_with_gaps_is_refused_by_name():
    features = {"x": [1.0, np.nan]}
    gaps = ss.Predictions(y_std=[1.0, 1.0], error=[1.0, 2.0], features=features)
    for score in (scores.scorecard, scores.local_statistics, scores.reference_scores):
        with pytest.raises(InvalidInputError, match="`x`"):
            score(gaps)
