"""The numbers of a table of a paper, and their intervals."""

import numpy as np
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale import scores


def drawn(n, seed, factor=1.4, **others):
    rng = np.random.default_rng(seed)
    u = rng.gamma(4, 0.2, n)
    return ss.Predictions(y_std=u, error=factor * u * rng.normal(size=n), **others)


def test_estimates_are_those_of_the_scores():
    p = ss.datasets.load_health().test
    s = scores.summary(p, coverage=0.9)
    e = p.error
    expected = {
        "RMSE": np.sqrt(np.mean(e**2)),
        "MAE": np.mean(np.abs(e)),
        "RMS z": np.sqrt(scores.zms(p)),
        "coverage": scores.coverage(p, coverage=0.9),
        "CRPS": scores.crps(p),
        "NLL": scores.nll(p),
        "ENCE": scores.ence(p),
        "sharpness": np.sqrt(np.mean(p.y_std**2)),
        # errors that are the same but for rounding tie
        "Spearman": stats.spearmanr(p.y_std, np.round(np.abs(e), 9))[0],
    }
    assert {name: x.value for name, x in s.estimates.items()} == pytest.approx(expected)
    for x in s.estimates.values():
        assert x.low <= x.value <= x.high
    (row,) = s.to_frame().to_dict("records")
    assert row == s.to_dict()
    assert row["rows"] == 2003
    assert row["CRPS_low"] == s["CRPS"].low


def test_intervals_cover_the_mean_of_other_sets():
    n_sets = 300
    found = [scores.summary(drawn(1000, seed)) for seed in range(n_sets)]
    truth = drawn(300_000, n_sets)
    expected = {
        name: x.value
        for name, x in scores.summary(truth).estimates.items()
        if name != "ENCE"  # which depends on the size of its bins
    }
    expected["ENCE"] = np.mean([s["ENCE"].value for s in found])
    for name, value in expected.items():
        inside = sum(s[name].low <= value <= s[name].high for s in found)
        assert stats.binomtest(inside, n_sets, 0.955).pvalue > 1e-3, name


def test_weights_count_as_repeated_rows_do_and_groups_widen_intervals():
    p = drawn(500, 0)
    weights = np.random.default_rng(1).integers(1, 4, 500)
    weighted = drawn(500, 0, weights=weights)
    twice = p.take(np.repeat(np.arange(500), weights))
    for name in ("RMSE", "RMS z", "CRPS", "coverage", "sharpness"):
        of_weights = scores.summary(weighted)[name]
        assert of_weights.value == pytest.approx(scores.summary(twice)[name].value)
    pairs = np.arange(1000) // 2
    doubled = p.take(np.repeat(np.arange(500), 2))
    grouped = doubled._with(groups=pairs)
    for name in ("RMSE", "CRPS", "ENCE"):
        one = scores.summary(grouped)[name]
        two = scores.summary(doubled)[name]
        assert (one.high - one.low) > 1.25 * (two.high - two.low), name


def test_vectors_have_an_energy_score_and_a_constant_u_ranks_nothing():
    rng = np.random.default_rng(0)
    p = ss.Predictions(y_std=np.ones(300), error=rng.normal(size=(300, 3)))
    s = scores.summary(p)
    assert s["energy score"].value == pytest.approx(scores.energy_score(p))
    assert "Spearman" not in s.estimates
    assert "CRPS" not in s.to_dict()
