"""Paired differences of scores, and which rows may be compared."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "paired.py"
spec = importlib.util.spec_from_file_location("paired_study", SCRIPT)
study = importlib.util.module_from_spec(spec)
spec.loader.exec_module(study)


def made(n=400, seed=0, **others):
    rng = np.random.default_rng(seed)
    y, u = rng.normal(0, 5, n), rng.uniform(1, 2, n)
    return ss.Predictions(y - u * rng.normal(size=n), u, y_true=y, **others)


@pytest.fixture(scope="module")
def sets():
    data = ss.datasets.load_diabetes()
    r = ss.Recalibrator(ss.LinearScaling()).fit(data.calibration)
    wide = data.test.with_y_std(2 * data.test.y_std)
    return {"raw": data.test, "linear": r.apply(data.test), "wide": wide}


def test_scores_are_those_of_the_scores_module(sets):
    found = ss.compare(sets)
    assert found.names == ("raw", "linear", "wide")
    for name, p in sets.items():
        for score in ("crps", "nll", "interval_score", "coverage"):
            expected = getattr(ss.scores, score)(p)
            assert found.scores[name][score] == pytest.approx(expected, rel=1e-10)


def test_differences_are_those_of_scores_and_their_intervals_those_of_a_paired_t(sets):
    found = ss.compare(sets, confidence=0.9)
    p = sets["wide"]
    d = [ss.Distributions.normal(each).crps(p.y_true) for each in (p, sets["raw"])]
    expected = stats.ttest_rel(*d).confidence_interval(0.9)
    crps = found.differences["wide"]["crps"]
    assert (crps.low, crps.high) == pytest.approx(
        (expected.low, expected.high), rel=1e-9
    )
    for name in ("linear", "wide"):
        for score, each in found.differences[name].items():
            gap = found.scores[name][score] - found.scores["raw"][score]
            assert each.value == pytest.approx(gap, rel=1e-8, abs=1e-12)
            assert each.low < each.value < each.high
            assert each.confidence == 0.9


def test_the_best_is_named_with_those_that_cannot_be_told_from_it():
    p = made(4000)
    near, far = (p.with_y_std(f * p.y_std) for f in (1.01, 3.0))
    found = ss.compare({"right": p, "near": near, "far": far})
    assert found.best in ("right", "near")
    assert set(found.alike) == {"right", "near"} - {found.best}
    assert (found.answer("near"), found.answer("far")) == ("inconclusive", "worse")
    assert ss.compare({"far": far, "right": p}).answer("right") == "better"
    assert found.best in found.sentence
    small = ss.compare(
        {name: x.take(np.arange(20)) for name, x in (("right", p), ("near", near))}
    )
    assert "No significant difference" in small.sentence


def test_the_same_predictions_cannot_be_told_apart():
    p = made()
    found = ss.compare({"one": p, "other": p.with_y_std(p.y_std * (1 + 1e-15))})
    assert found.answer("other") == "inconclusive"
    assert len(found.alike) == 1


def test_vectors_are_compared_by_their_energy_score_in_any_orientation():
    rng = np.random.default_rng(0)
    e, turn = rng.normal(size=(500, 3)), np.linalg.qr(rng.normal(size=(3, 3)))[0]
    results = []
    for error in (e, e @ turn):
        p = ss.Predictions(error=error, y_std=np.ones(500))
        found = ss.compare({"right": p, "wide": p.with_y_std(1.5 * p.y_std)})
        assert found.main == "energy_score"
        expected = ss.scores.energy_score(p)
        assert found.scores["right"]["energy_score"] == pytest.approx(expected)
        assert found.answer("wide") == "worse"
        results.append(found.differences["wide"]["energy_score"].high)
    assert results[0] == pytest.approx(results[1], rel=1e-9)


def test_columns_of_one_number_are_numbers():
    p = made()
    line = ss.Predictions(p.y_pred[:, None], p.y_std, y_true=p.y_true[:, None])
    one, other = (
        ss.compare({"a": x, "b": x.with_y_std(2 * x.y_std)}) for x in (p, line)
    )
    for name in ("a", "b"):
        assert other.scores[name] == one.scores[name]


def test_groups_and_weights_are_those_of_whoever_has_them():
    rng = np.random.default_rng(1)
    groups, weights = np.repeat(np.arange(80), 5), rng.uniform(0.5, 2, 400)
    plain, known = made(), made(groups=groups, weights=weights)
    found = ss.compare({"a": plain, "b": known.with_y_std(1.3 * plain.y_std)})
    assert found.units == "groups"
    assert found.scores["a"]["crps"] == pytest.approx(ss.scores.crps(known))
    order = rng.permutation(400)
    sets = {"a": known, "b": known.with_y_std(1.3 * known.y_std)}
    again = ss.compare({name: x.take(order) for name, x in sets.items()})
    one, other = (x.differences["b"]["crps"] for x in (ss.compare(sets), again))
    assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-9)


def test_infinite_intervals_have_no_score_and_the_rest_is_compared():
    p = made(200, seed=3)
    known, new = p.take(np.arange(60)), p.take(np.arange(60, 200))
    r = ss.Recalibrator(ss.TemperatureScaling(), hold_out=0.3).fit(known)
    found = ss.compare({"raw": new, "held out": r.apply(new)})
    assert "interval_score" not in found.scores["raw"]
    assert found.scores["held out"]["coverage"] == 1
    assert np.isfinite(found.differences["held out"]["crps"].high)
    assert "held out" in str(found)


def test_it_is_shown_as_text_html_and_plain_values(sets):
    found = ss.compare({**sets, "a<b": sets["raw"]})
    text = str(found)
    assert max(map(len, text.splitlines())) <= 80
    for name in found.names:
        assert name in text
    assert "better" in text or "cannot tell" in text
    assert "a&lt;b" in found._repr_html_()
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    crps = told["differences"]["wide"]["crps"]
    assert crps["low"] < crps["value"] < crps["high"]
    assert told["answers"]["wide"] == found.answer("wide")
    assert told["sentence"] == found.sentence


def test_other_rows_are_refused_with_what_differs():
    p, other = made(), made(seed=1)
    short, vector = p.take(np.arange(10)), made()._with(error=np.ones((400, 2)))
    groups = (made(groups=np.arange(400) // k) for k in (2, 4))
    for match, given in {
        "two or more": {"a": p},
        "dict": [p, p],
        "found int": {"a": p, "b": 3},
        "true values": {"a": p, "b": other},
        "shapes": {"a": p, "b": short},
        "(400, 2)": {"a": p, "b": vector},
        "groups": dict(zip("ab", groups, strict=True)),
        "y_true": {"a": p, "b": ss.Predictions(p.y_pred, p.y_std)},
    }.items():
        with pytest.raises(InvalidInputError) as raised:
            ss.compare(given)
        assert match in str(raised.value)
    with pytest.raises(InvalidInputError, match="confidence"):
        ss.compare({"a": p, "b": p}, confidence=95)


@pytest.mark.slow
def test_intervals_hold_with_few_very_unequal_groups():
    n = 150
    for groups, rows, within in (("30 unequal", 0, 0.8), ("of five", 300, 0.5)):
        held, _ = study.study(n, rows, 1.1, groups=groups, within=within, seed=7)
        test = stats.binomtest(round(held * n), n, 0.94, alternative="less")
        assert test.pvalue > 0.01, (groups, held)
