"""Answers of validate: how wrong, where, does it matter, what now."""

import numpy as np
import pytest

import sigmascale as ss
from sigmascale import exceptions as ex
from sigmascale.judging import headline_after


def rows(n=3000, seed=0, wrong=None, bias=None, z=None, **more):
    """Return rows with u, two numbers and a label, wrong by a factor of these."""
    rng = np.random.default_rng(seed)
    u = rng.lognormal(0, 0.5, n)
    x, y = rng.uniform(-1, 1, (2, n))
    kind = rng.choice(["alloy", "oxide", "salt", "glass", "gas"], n)
    features = {"x": x, "y": y, "kind": kind}
    factor = np.ones(n) if wrong is None else wrong(u, **features)
    z = rng.normal(size=n) if z is None else z(rng, n)
    error = u * (factor * z + (0 if bias is None else bias(u, **features)))
    return ss.Predictions(y_std=u, error=error, features=features, **more)


def answers(v):
    return {name: verdict.answer for name, verdict in v.verdicts.items()}


def alloys(u, x, y, kind):
    return np.where(kind == "alloy", 2.0, 1.0)


def test_right_uncertainties_of_many_rows_get_a_yes():
    v = ss.validate(rows(40_000))
    assert {**answers(v), "joint": "yes", "coverage": "yes"} == dict.fromkeys(
        ("bias", "average", "u", "x", "y", "kind", "joint", "coverage"), "yes"
    )
    assert v.headline.startswith("Right") or "cannot" in v.headline


def test_right_uncertainties_of_few_rows_are_no_yes_and_no_no():
    v = ss.validate(rows(300, seed=1))
    assert v.answer == "cannot tell"
    assert "300" in v.closing


def test_a_small_misfit_of_many_rows_is_no_no():
    v = ss.validate(rows(40_000, wrong=lambda u, **_: 1.03))
    assert v.verdicts["average"].passed
    assert "no" not in answers(v).values()


def test_u_half_of_what_it_should_be_is_a_no_on_average_and_for_intervals():
    v = ss.validate(rows(2000, wrong=lambda u, **_: 2.0))
    found = answers(v)
    assert found["average"] == found["coverage"] == "no"
    low, high = v.verdicts["average"].limits
    assert low < 2 < high
    assert v.verdicts["average"].worst.estimate == pytest.approx(2, rel=0.06)


def test_the_label_at_fault_is_named_and_others_are_not():
    for seed in range(4):
        v = ss.validate(rows(seed=seed, wrong=alloys))
        assert v.verdicts["kind"].answer == "no"
        assert v.verdicts["kind"].worst.where == "kind = alloy"
        assert "kind = alloy" in v.headline
        assert v.verdicts["kind"].worst.estimate == pytest.approx(2, rel=0.15)
        for name in ("x", "y", "u"):
            worst = v.verdicts[name].worst
            assert v.verdicts[name].answer != "no" or worst.estimate > 1.12


def test_a_fault_of_a_number_is_found_with_its_place_and_size():
    def high(u, x, y, kind):
        return np.where(x > 0.6, 0.5, 1.0)

    v = ss.validate(rows(4000, wrong=high))
    worst = v.verdicts["x"].worst
    assert v.verdicts["x"].answer == "no"
    assert worst.column == "x"
    assert worst.low_value == pytest.approx(0.6, abs=0.1)
    assert worst.estimate == pytest.approx(0.5, rel=0.15)
    assert worst.low <= 0.5 <= worst.high


def test_what_two_columns_do_together_is_found_jointly():
    def crossed(u, x, y, kind):
        return np.where(x * y > 0, 2.0, 0.5)

    v = ss.validate(rows(6000, wrong=crossed))
    assert v.verdicts["joint"].answer == "no"
    assert {"x", "y"} <= set(v.verdicts["joint"].sentence.replace(",", " ").split())


def test_a_global_bias_does_not_silence_a_local_one():
    local = ss.validate(
        rows(3000, bias=lambda u, x, y, kind: np.where(kind == "alloy", 1.5, 0.0))
    )
    assert local.verdicts["bias"].answer == "no"
    assert local.verdicts["bias"].worst.where == "kind = alloy"
    both = ss.validate(
        rows(3000, bias=lambda u, x, y, kind: np.where(kind == "alloy", 2.0, 0.5))
    )
    wheres = {region.where for region in both.verdicts["bias"].regions}
    assert both.verdicts["bias"].answer == "no"
    assert "kind = alloy" in wheres


def test_labels_too_fine_to_judge_are_never_a_yes():
    rng = np.random.default_rng(0)
    station = np.repeat([f"s{k}" for k in range(400)], 15)
    off = np.repeat(rng.permutation(400) < 200, 15)
    error = rng.normal(size=6000) / np.where(off, 2.6, 1.0)
    p = ss.Predictions(y_std=np.ones(6000), error=error, features={"station": station})
    v = ss.validate(p)
    assert v.verdicts["station"].answer != "yes"
    assert "station" in v.verdicts["station"].sentence


def test_sentences_are_short_and_the_printed_verdict_fits_a_terminal():
    for p in (
        rows(400),
        rows(2000, wrong=alloys),
        rows(3000, wrong=lambda u, **_: 3.0),
    ):
        v = ss.validate(p)
        assert all(len(each.sentence) <= 140 for each in v.verdicts.values())
        assert len(v.next_steps) <= 2
        printed = str(v)
        assert printed.startswith(v.headline[:40])
        assert max(map(len, printed.splitlines())) <= 80


def test_the_order_of_rows_the_names_of_groups_and_units_do_not_matter():
    p = rows(900, wrong=alloys, groups=np.repeat(np.arange(300), 3))
    v = ss.validate(p)
    order = np.random.default_rng(1).permutation(900)
    other = ss.Predictions(
        y_std=1e-10 * p.y_std[order],
        error=1e-10 * p.error[order],
        features={name: x[order] for name, x in p.features.items()},
        groups=[f"g{(8 * k) % 301}" for k in np.repeat(np.arange(300), 3)[order]],
    )
    w = ss.validate(other)
    assert answers(w) == answers(v)
    for name in v.verdicts:
        np.testing.assert_allclose(
            w.verdicts[name].limits, v.verdicts[name].limits, 1e-7
        )


def test_the_seed_alone_decides():
    p = rows(800)
    assert ss.validate(p, rng=3).to_dict() == ss.validate(p, rng=3).to_dict()


def test_distributions_are_judged_by_their_own_intervals():
    def skewed(rng, n):
        return rng.exponential(size=n) - 1

    known, new = rows(4000, z=skewed), rows(4000, seed=1, z=skewed)
    q = ss.Recalibrator(ss.TemperatureScaling()).fit(known).apply(new)
    after = ss.validate(q)
    assert after.verdicts["coverage"].answer != "no"
    assert "CRPS" in headline_after(ss.validate(new), after)


def test_rows_that_were_fitted_are_told():
    p = rows(600)
    r = ss.Recalibrator(ss.TemperatureScaling()).fit(p)
    with pytest.warns(ex.SharedRowsWarning):
        ss.validate(r.apply(p))


def test_what_is_found_can_be_read_by_machines():
    found = ss.validate(rows(500)).to_dict()
    assert found["answer"] in ("yes", "no", "cannot tell")
    assert set(found["verdicts"]["kind"]) >= {"answer", "sentence", "limits"}


def test_too_few_rows_and_wrong_kinds_are_told():
    v = ss.validate(rows(12))
    assert set(answers(v).values()) == {"cannot tell"}
    with pytest.raises(ex.InvalidInputError, match="Predictions"):
        ss.validate([1.0, 2.0])
    with pytest.raises(ex.InvalidInputError, match="tolerance"):
        ss.validate(rows(100), tolerance=1.0)
    p = rows(100)
    gaps = ss.Predictions(
        y_std=p.y_std, error=p.error, features={"x": np.full(100, np.nan)}
    )
    with pytest.raises(ex.InvalidInputError, match="x"):
        ss.validate(gaps)


def test_wider_tolerances_ask_for_fewer_rows():
    assert ss.rows_needed(tolerance=2.0) < ss.rows_needed(tolerance=1.25)


@pytest.mark.slow
def test_calibrated_sets_rarely_get_a_no():
    shapes = {
        "normal": None,
        "t(5)": lambda g, n: g.standard_t(5, n) / np.sqrt(5 / 3),
        "lognormal": lambda g, n: (g.lognormal(0, 0.7, n) - np.exp(0.245)) / 1.02,
    }
    noes = [
        ss.validate(rows(500, 100 + seed, z=z)).answer == "no"
        for z in shapes.values()
        for seed in range(20)
    ]
    assert np.mean(noes) <= 0.12
