"""What `validate` answers, about which rows, and in which words."""

import json
import math
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import sigmascale as ss
from sigmascale._support.notices import quiet
from sigmascale.exceptions import InvalidInputError, SharedRowsWarning

STUDY = Path(__file__).parents[2] / "benchmarks" / "verdicts.py"
KINDS = ["alloy", "glass", "oxide", "salt", "steel"]


def columns(n, rng):
    """Return u, features and normal z-scores."""
    u, kind = rng.gamma(3, 1, n), rng.choice(KINDS, n)
    features = {"mass": rng.gamma(2, 30, n), "T": rng.normal(300, 80, n), "kind": kind}
    return u, features, rng.normal(size=n)


def rows(n=3000, seed=0, factor=None, bias=None, **others):
    """Return predictions; `factor` and `bias` are functions of u and the features."""
    u, x, z = columns(n, np.random.default_rng(seed))
    z = z * (1 if factor is None else factor(u, x)) + (
        0 if bias is None else bias(u, x)
    )
    return ss.Predictions(error=u * z, y_std=u, features=x, **others)


def upper(x, share=0.7):
    return x > np.quantile(x, share)


@pytest.fixture(scope="module")
def alloy():
    """u is half of what it should be for alloys."""
    return ss.validate(rows(factor=lambda u, x: np.where(x["kind"] == "alloy", 2, 1)))


@pytest.fixture(scope="module")
def right():
    """Nothing is wrong, and rows are many."""
    return ss.validate(rows(30_000))


# -- answers ---------------------------------------------------------------------------


def test_a_fault_of_one_label_is_named_wherever_it_is_told(alloy):
    assert alloy.answer == "no"
    assert not alloy.passed
    for name in ("kind", "joint", "coverage"):
        assert alloy.verdicts[name].answer == "no"
        assert "kind = alloy" in alloy.verdicts[name].sentence
    worst = alloy.verdicts["kind"].worst
    assert worst.where == "kind = alloy"
    assert (worst.column, worst.low_value, worst.high_value) == ("kind",) + 2 * (
        "alloy",
    )
    assert worst.n_rows == np.count_nonzero(alloy.rows.features["kind"] == "alloy")
    assert worst.low < 2 < worst.high
    assert worst.estimate == pytest.approx(2, rel=0.1)
    assert "kind = alloy" in alloy.headline
    assert alloy.worst == worst


def test_rows_that_are_right_pass_once_they_are_many(right):
    assert right.passed
    assert {v.answer for v in right.verdicts.values()} == {"yes"}
    assert right.next_steps == ()
    assert f"T = {math.ceil(100 * right.T) / 100:g} in fifths" in right.closing
    assert max(v.T for n, v in right.verdicts.items() if n != "bias") == right.T
    assert right.worst is None
    assert "30,000 rows" in right.headline
    for name, v in right.verdicts.items():
        low, high = v.limits
        bound = (-1 / 3, 1 / 3) if name == "bias" else (0.8, 1.25)
        assert bound[0] <= low <= high <= bound[1]
        assert v.passed
        assert v.rows_needed is None


def test_few_rows_that_are_right_cannot_be_told():
    v = ss.validate(rows(300))
    assert v.answer == "cannot tell"
    assert "300 rows" in v.headline
    unsure = [x for x in v.verdicts.values() if x.answer == "cannot tell" and x.counts]
    needed = [x.rows_needed for x in unsure]
    assert f"{max(needed):,}" in v.closing
    assert f"{max(needed):,}" in v.headline
    assert 800 < max(needed) < 4000


def test_a_detectable_misfit_within_the_tolerance_is_a_yes():
    v = ss.validate(rows(60_000, factor=lambda u, x: 1.06))
    assert v.passed
    assert v.verdicts["average"].worst.low > 1.03
    with_less = ss.validate(rows(60_000, factor=lambda u, x: 1.06), tolerance=1.02)
    assert with_less.verdicts["average"].answer == "no"


def test_regions_follow_from_their_limits_alone(alloy, right):
    for v in (alloy, right):
        for name, verdict in v.verdicts.items():
            bound = 1 / 3 if name == "bias" else math.log(1.25)
            for region in (*verdict.regions, verdict.worst):
                low, high = region.low, region.high
                if name != "bias":
                    low, high = (math.log(max(x, 1e-9)) for x in (low, high))
                state = "open"
                if -bound <= low and high <= bound:
                    state = "kept"
                elif low > bound or high < -bound:
                    state = "broken"
                assert region.state == state
                assert region.low <= region.estimate <= region.high


def test_limits_do_not_depend_on_the_tolerance():
    p = rows(1500, factor=lambda u, x: np.where(upper(x["mass"]), 1.4, 1))
    first, second = (ss.validate(p, tolerance=t) for t in (1.1, 2.0))
    assert first.T == second.T
    for name, verdict in first.verdicts.items():
        other = second.verdicts[name]
        assert verdict.limits == other.limits
        ends = [(x.low, x.high) for x in verdict.regions]
        assert ends == [(x.low, x.high) for x in other.regions]
    for one, two in zip(
        first.certificate.proofs, second.certificate.proofs, strict=True
    ):
        assert one == two


def test_a_sentence_for_a_paper_says_the_tolerance_that_was_proved(alloy):
    text = alloy.describe("paper")
    proved = float(re.search(r"within ([\d.]+) times in every fifth", text)[1])
    assert alloy.T <= proved < alloy.T + 0.011


def test_limits_of_the_bias_are_in_units_of_u():
    rng = np.random.default_rng(0)
    u, x = rng.lognormal(size=1000), rng.normal(size=1000)
    error = u * rng.normal(size=1000)

    def most(unit):
        p = ss.Predictions(y_std=unit * u, error=error, features={"x": x})
        return ss.validate(p).certificate.of("bias")[5].at_most

    assert most(16.0) == pytest.approx(most(1.0) / 16, rel=0.05)


def test_all_rows_are_suspected_where_they_are_probably_beyond_the_tolerance():
    for n, factor, is_suspected in ((200, 0.8, True), (300, 0.82, False)):
        rng = np.random.default_rng(1)
        u = rng.lognormal(size=n)
        v = ss.validate(ss.Predictions(y_std=u, error=factor * u * rng.normal(size=n)))
        assert v.answer == "cannot tell"
        assert (v.verdicts["average"].suspect is not None) == is_suspected


def test_at_least_lies_below_at_most_and_finds_the_fault(alloy):
    proofs = alloy.certificate.of("kind")
    assert proofs[5].at_least <= 2 <= proofs[5].at_most
    assert proofs[5].at_least > 1.5
    assert proofs[5].perfect < 1.25
    assert proofs[1].at_most < proofs[5].at_most
    assert proofs[5].where == "kind = alloy"


def test_the_curve_of_pictures_passes_through_T():
    rng = np.random.default_rng(2)
    u, x = rng.gamma(3, 1, 400), {"a": rng.normal(size=400), "b": rng.normal(size=400)}
    v = ss.validate(ss.Predictions(error=u * rng.normal(size=400), y_std=u, features=x))
    # combinations were not looked at, and are in neither
    assert not v.verdicts["joint"].counts
    assert v.verdicts["joint"].T > v.T
    assert v.certificate.curve[5][1:] == (v.T, v.certificate.perfect)


def test_a_fault_finer_than_fifths_is_a_no_beside_a_small_T():
    rng = np.random.default_rng(8)
    n = 20_000
    u, flag = rng.gamma(3, 1, n), (np.arange(n) < 0.045 * n).astype(float)
    z = rng.normal(size=n) * np.where(flag > 0, 2, 1)
    v = ss.validate(ss.Predictions(error=u * z, y_std=u, features={"flag": flag}))
    flagged = v.certificate.of("flag")
    assert v.verdicts["flag"].answer == "no"
    assert flagged[5].at_most < 1.15
    assert flagged[5].at_least < flagged[5].at_most
    assert flagged[20].at_most > 1.9
    assert flagged[20].where == "flag = 1"
    assert "flag = 1" in v.headline


def test_time_is_a_column_like_any_other():
    n = 3000
    rng = np.random.default_rng(13)
    u, when = rng.gamma(3, 1, n), np.arange(n).astype("datetime64[h]")
    z = rng.normal(size=n) * np.linspace(1, 2.2, n)
    v = ss.validate(ss.Predictions(error=u * z, y_std=u, time=when))
    assert v.verdicts["time"].answer == "no"
    assert "time" in v.headline
    assert all("One factor" not in step for step in v.next_steps)


def test_a_claim_says_what_is_judged():
    rng = np.random.default_rng(14)
    u, x, _ = columns(6000, rng)
    z = rng.standard_t(2.2, 6000)
    z /= np.quantile(np.abs(z), 0.95) / 1.96  # 95 % intervals are right, ⟨Z²⟩ is not
    p = ss.Predictions(error=u * z, y_std=u, features=x)
    of_u, intervals = (ss.validate(p, claim=claim) for claim in ("u", "intervals"))
    assert list(of_u.verdicts) == ["bias", "average", "u", "mass", "T", "kind", "joint"]
    assert list(intervals.verdicts) == ["bias", "coverage"]
    assert intervals.verdicts["coverage"].answer == "yes"
    assert of_u.answer != "yes"
    assert intervals.T < of_u.T
    both = ss.validate(p)
    assert max(of_u.T, intervals.T) == both.T
    ninety = ss.validate(p, claim="intervals", level=0.9)
    assert "90 %" in ninety.verdicts["coverage"].sentence


def test_local_factors_are_absolute():
    v = ss.validate(
        rows(20_000, factor=lambda u, x: np.where(upper(x["mass"]), 2.1, 1.4))
    )
    worst = v.verdicts["mass"].worst
    assert worst.estimate == pytest.approx(2.1, rel=0.06)
    assert "1.4" in v.verdicts["mass"].sentence
    assert v.verdicts["T"].answer == "no"
    assert v.verdicts["T"].worst.where == "all rows"


def test_regions_of_a_picture_cover_a_variable_in_order(alloy):
    tenths = alloy.verdicts["mass"].regions
    assert len(tenths) == 10
    assert tenths[0].low_value is None
    assert tenths[-1].high_value is None
    starts = [region.low_value for region in tenths[1:]]
    assert starts == sorted(starts)
    assert all(region.column == "mass" for region in tenths)
    assert [region.low_value for region in alloy.verdicts["kind"].regions] == KINDS
    for name in ("bias", "average", "coverage"):
        assert alloy.verdicts[name].regions[0].where == "all rows"


def test_faults_downwards_are_found():
    v = ss.validate(
        rows(2000, factor=lambda u, x: np.where(upper(x["mass"], 0.9), 0.5, 1))
    )
    assert v.verdicts["mass"].answer == "no"
    assert "too large" in v.verdicts["mass"].sentence
    assert v.verdicts["mass"].worst.estimate == pytest.approx(0.5, rel=0.3)


def test_another_shape_is_not_blamed_for_size():
    answers = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        u, x, z = columns(1500, rng)
        heavy = np.exp(rng.normal(size=1500)) - np.exp(0.5)
        z = np.where(upper(x["mass"], 0.8), heavy / heavy.std(), z)
        v = ss.validate(ss.Predictions(error=u * z, y_std=u, features=x))
        answers.append(v.verdicts["mass"].answer)
    assert answers.count("no") <= 1


def test_a_fault_of_a_number_is_found_with_its_place_and_size():
    v = ss.validate(rows(4000, factor=lambda u, x: np.where(x["T"] > 350, 0.5, 1)))
    worst = v.verdicts["T"].worst
    assert v.verdicts["T"].answer == "no"
    assert worst.column == "T"
    assert worst.low_value == pytest.approx(350, abs=15)
    assert worst.estimate == pytest.approx(0.5, rel=0.15)
    assert worst.low <= 0.5 <= worst.high


def test_an_interaction_that_no_column_shows_alone_is_found():
    def factor(u, x):
        same = (x["mass"] > np.median(x["mass"])) == (x["T"] > 300)
        return np.where(same, 1.35, 1 / 1.35)

    v = ss.validate(rows(6000, factor=factor))
    assert v.verdicts["joint"].answer == "no"
    assert v.verdicts["average"].answer == "yes"


# -- bias, coverage, labels ------------------------------------------------------------


def test_a_local_bias_is_named_beside_a_global_one():
    for n in (300, 3000):
        v = ss.validate(rows(n, bias=lambda u, x: 0.3 + 1.5 * (x["kind"] == "alloy")))
        bias = v.verdicts["bias"]
        assert bias.answer == "no"
        assert bias.worst.where == "kind = alloy"
        assert bias.worst.estimate == pytest.approx(1.8, abs=0.35)
        assert "too low" in bias.sentence
        assert "on average" in bias.sentence
        assert "alloy" in v.headline
        assert v.next_steps[0].how == {"bias": "auto"}


def test_a_bias_of_all_rows_has_its_sign():
    for bias, side in ((0.5, "too low"), (-0.5, "too high")):
        v = ss.validate(rows(2000, bias=lambda u, x, by=bias: by))
        assert side in v.verdicts["bias"].sentence
        assert v.verdicts["bias"].worst.where == "all rows"
        assert v.next_steps[0].how == {"bias": "constant"}


def test_coverage_asks_for_the_intervals_that_were_claimed():
    half = ss.validate(rows(2000, factor=lambda u, x: 2.0)).verdicts["coverage"]
    assert half.answer == "no"
    assert half.worst.estimate == pytest.approx(2.0, rel=0.1)
    assert re.search(r"hold 6[5-9]", half.sentence)
    rng = np.random.default_rng(0)
    for n, answer in ((90, "cannot tell"), (40_000, "yes")):
        u = rng.gamma(3, 1, n)
        p = ss.Predictions(np.zeros(n), u, y_true=u * rng.uniform(-3, 3, n))
        q = ss.Recalibrator().fit(p).apply(_again(p, rng))
        assert ss.validate(q).verdicts["coverage"].answer == answer


def _again(p, rng):
    """Return other rows of the same kind."""
    y = p.y_std * rng.uniform(-3, 3, p.n_rows)
    return ss.Predictions(np.zeros(p.n_rows), p.y_std, y_true=y)


def test_labels_too_fine_to_judge_are_never_a_yes():
    p = runpy.run_path(str(STUDY))["fine_stations"](np.random.default_rng(0))
    for tolerance in (1.25, 5.0):
        found = ss.validate(p, tolerance=tolerance).verdicts["station"]
        assert found.answer == "cannot tell"
        assert "too fine" in found.sentence
        assert "400" in found.sentence


def test_rare_labels_are_judged_together_unless_they_are_few():
    rng = np.random.default_rng(1)
    n = 30_000
    u = rng.gamma(3, 1, n)

    def judged(n_rare, size, factor=1.0):
        label = rng.choice(["a", "b", "c"], n).astype(object)
        for i in range(n_rare):
            label[i * size : (i + 1) * size] = f"rare {i}"
        z = rng.normal(size=n) * np.where(np.arange(n) < n_rare * size, factor, 1)
        p = ss.Predictions(error=u * z, y_std=u, features={"label": label})
        return ss.validate(p).verdicts["label"]

    few = judged(1, 15)
    assert few.answer == "yes"
    assert "rare labels" in few.sentence
    together = judged(40, 15, 3.0)
    assert together.answer == "no"
    assert "rare labels" in together.sentence
    assert judged(300, 15).answer == "yes"  # 15 % of the rows, together
    assert judged(500, 15).answer == "cannot tell"  # over a fifth


def test_a_variable_of_one_value_is_the_average():
    rng = np.random.default_rng(2)
    z = rng.normal(size=30_000)
    p = ss.Predictions(error=z, y_std=np.ones(z.size), features={"x": np.ones(z.size)})
    with quiet():
        v = ss.validate(p)
    assert v.passed
    assert v.verdicts["u"].answer == v.verdicts["average"].answer
    assert "one value" in v.verdicts["x"].sentence


def test_a_flag_is_named_by_its_value():
    rng = np.random.default_rng(3)
    u, flag = rng.gamma(3, 1, 5000), (rng.random(5000) < 0.04).astype(float)
    z = rng.normal(size=5000) * np.where(flag > 0, 2.5, 1)
    v = ss.validate(ss.Predictions(error=u * z, y_std=u, features={"flag": flag}))
    assert v.verdicts["flag"].worst.where == "flag = 1"
    assert v.verdicts["flag"].worst.low_value == 1.0


# -- few rows, odd rows, groups, weights -----------------------------------------------


def test_too_few_rows_tell_nothing_and_say_so():
    for n in (1, 2, 19):
        v = ss.validate(rows(n))
        assert v.answer == "cannot tell"
        assert all(str(n) in x.sentence for x in v.verdicts.values())
        assert v.next_steps == ()
    groups = np.arange(200) // 20
    v = ss.validate(rows(200, groups=groups))
    assert "10 groups" in v.headline


def test_errors_that_are_all_zero_tell_nothing():
    p = ss.Predictions(error=np.zeros(50), y_std=np.linspace(1, 2, 50))
    v = ss.validate(p)
    assert v.answer == "cannot tell"
    assert "errors are 0" in v.headline


def test_questions_are_the_same_whether_or_not_there_is_anything_to_tell():
    rng = np.random.default_rng(0)
    for n, error in (
        (300, rng.normal(size=300)),
        (300, np.zeros(300)),
        (5, np.ones(5)),
    ):
        x = np.arange(n)
        p = ss.Predictions(y_std=1 + x, error=error, features={"x": x}, time=x)
        names = [*ss.validate(p).verdicts]
        assert names == ["bias", "average", "u", "x", "time", "joint", "coverage"]


def test_rows_whose_z_are_all_equal_are_judged():
    u = np.random.default_rng(0).lognormal(size=400)
    kind = np.resize(["a", "b"], 400)
    for factor in (1e-100, 1.0, 2.0, 1e30):
        with quiet():
            p = ss.Predictions(y_std=u, error=factor * u, features={"kind": kind})
            v = ss.validate(p)
            assert str(v)
        assert v.verdicts["average"].worst.estimate == pytest.approx(factor)
        assert v.verdicts["bias"].answer == ("yes" if factor < 0.1 else "no")
        json.dumps(v.to_dict())


def test_uncertainties_that_are_off_by_powers_of_ten_are_judged():
    for factor in (1e-6, 1e-2, 1e2, 1e6):
        with quiet():
            v = ss.validate(rows(500, factor=lambda u, x, f=factor: f))
        average = v.verdicts["average"]
        assert average.answer == "no"
        assert average.worst.estimate == pytest.approx(factor, rel=0.1)
        assert v.verdicts["coverage"].answer == "no"
        json.dumps(v.to_dict())


def test_groups_count_and_not_their_rows():
    rng = np.random.default_rng(4)
    u, x, z = columns(150, rng)
    often = np.repeat(np.arange(150), 20)
    x = {name: column[often] for name, column in x.items()}
    p = ss.Predictions(error=(u * z)[often], y_std=u[often], features=x, groups=often)
    v = ss.validate(p)
    assert v.answer == "cannot tell"
    assert "150 groups" in v.closing


def test_weights_are_those_of_the_population():
    rng = np.random.default_rng(5)
    u, x, z = columns(6000, rng)
    heavy = upper(x["mass"], 0.5)
    p = ss.Predictions(
        error=u * z * np.where(heavy, 1.6, 1.0),
        y_std=u,
        features=x,
        weights=np.where(heavy, 9.0, 1.0),
    )
    average = ss.validate(p).verdicts["average"].worst.estimate
    assert average == pytest.approx(math.sqrt(0.9 * 1.6**2 + 0.1), rel=0.05)


def test_the_seed_alone_matters():
    p = rows(800, factor=lambda u, x: np.where(upper(x["mass"]), 1.5, 1))
    first, again = ss.validate(p).to_dict(), ss.validate(p).to_dict()
    assert first == again
    order = np.random.default_rng(1).permutation(800)
    shuffled = ss.validate(p.take(order)).to_dict()
    assert json.dumps(first) == json.dumps(shuffled)
    other = ss.validate(p, rng=1).to_dict()
    assert other["verdicts"]["mass"] != first["verdicts"]["mass"]


def test_vectors_are_asked_about_balls_and_not_about_bias():
    rng = np.random.default_rng(6)
    n = 3000
    u, kind = rng.gamma(3, 1, n), rng.choice(["C", "H", "O"], n)
    error = rng.normal(size=(n, 3)) * (u * np.where(kind == "O", 1.7, 1))[:, None]
    v = ss.validate(ss.Predictions(error=error, y_std=u, features={"kind": kind}))
    assert "bias" not in v.verdicts
    assert v.verdicts["kind"].worst.where == "kind = O"
    assert v.verdicts["kind"].worst.estimate == pytest.approx(1.7, rel=0.06)
    assert "balls" in v.verdicts["coverage"].sentence


def test_without_features_nothing_is_asked_jointly():
    rng = np.random.default_rng(7)
    u = rng.gamma(3, 1, 400)
    v = ss.validate(ss.Predictions(error=u * rng.normal(size=400), y_std=u))
    assert list(v.verdicts) == ["bias", "average", "u", "coverage"]


def test_bad_arguments_are_refused():
    p = rows(100)
    for tolerance in (1, 0.5, "2", math.inf, True):
        with pytest.raises(InvalidInputError, match="tolerance"):
            ss.validate(p, tolerance=tolerance)
    with pytest.raises(InvalidInputError, match="confidence"):
        ss.validate(p, confidence=1.0)
    with pytest.raises(InvalidInputError, match="rng"):
        ss.validate(p, rng="seed")
    with pytest.raises(InvalidInputError, match="Predictions"):
        ss.validate(p.error)
    gap = {"mass": np.where(np.arange(100) == 3, np.nan, 1.0)}
    missing = ss.Predictions(error=p.error, y_std=p.y_std, features=gap)
    with pytest.raises(InvalidInputError, match="mass"):
        ss.validate(missing)


def test_rows_that_were_fitted_are_recognised():
    p = rows(500)
    q = ss.Recalibrator(ss.TemperatureScaling()).fit(p).apply(p)
    with pytest.warns(SharedRowsWarning, match="judge it by others"):
        ss.validate(q)
    ss.validate(
        ss.Recalibrator(ss.TemperatureScaling()).fit(p).apply(rows(500, seed=1))
    )


# -- words -----------------------------------------------------------------------------


def test_errors_that_decide_alone_are_named_by_their_rows():
    rng = np.random.default_rng(9)
    u, x, z = columns(3000, rng)
    z[rng.choice(3000, 30, replace=False)] *= 20
    v = ss.validate(ss.Predictions(error=u * z, y_std=u, features=x))
    assert "largest" in v.headline
    (step, *_) = v.next_steps
    largest = set(np.argsort(-np.abs(z))[:2].tolist())
    named = re.search(r"rows (\d+) and (\d+)", step)
    assert {int(named[1]), int(named[2])} == largest
    share, beyond = re.search(
        r"([\d.]+) % of the errors are beyond ([\d.]+) u", step
    ).groups()
    assert np.mean(np.abs(z) > float(beyond)) == pytest.approx(
        float(share) / 100, rel=0.1
    )


def test_one_factor_mends_what_is_alike_everywhere():
    v = ss.validate(rows(3000, factor=lambda u, x: 1.5))
    (step,) = v.next_steps
    assert step.how == {"scaling": "temperature"}
    assert "1.49" in step
    assert "temperature" not in step.what


def test_columns_at_fault_are_what_a_recalibrator_should_know(alloy):
    assert [step.how for step in alloy.next_steps] == [{}]
    assert "kind" in alloy.next_steps[0]
    assert "mass" not in alloy.next_steps[0]


def test_heavy_tails_are_told_by_their_name():
    rng = np.random.default_rng(10)
    u = rng.gamma(3, 1, 400)
    z = rng.standard_t(3, 400) / np.sqrt(3)
    v = ss.validate(ss.Predictions(error=u * z, y_std=u))
    assert v.verdicts["average"].answer == "cannot tell"
    assert any("Student's t" in note for note in v.notes)
    assert 1000 < v.verdicts["u"].rows_needed < 10_000
    assert "rare large errors" in v.verdicts["average"].sentence


def test_names_of_any_length_leave_sentences_short():
    rng = np.random.default_rng(11)
    u, x, z = columns(3000, rng)
    name, label = "temperature of the furnace " * 20, "an alloy of many metals " * 20
    kind = np.where(x["kind"] == "alloy", label, "other")
    p = ss.Predictions(
        error=u * z * np.where(kind == label, 2, 1),
        y_std=u,
        features={name: kind, "<b>x</b>": x["T"]},
    )
    v = ss.validate(p)
    assert v.verdicts[name].answer == "no"
    assert all(len(each.sentence) <= 140 for each in v.verdicts.values())
    assert max(map(len, str(v).splitlines())) <= 80
    assert "<b>" not in v._repr_html_()


def test_a_validation_is_plain_data(alloy):
    found = json.loads(json.dumps(alloy.to_dict()))
    assert found["headline"] == alloy.headline
    assert found["answer"] == "no"
    assert found["verdicts"]["kind"]["worst"]["where"] == "kind = alloy"
    assert found["n_rows"] == 3000
    assert alloy.verdicts["kind"].question.endswith("kind?")
    html = alloy._repr_html_()
    assert "alloy" in html
    assert html.count("text-align: left") == 3 + 3 * len(alloy.verdicts)  # all words
    assert alloy.scores.to_dict()["ZMS"] > 1.4


def test_before_and_after_are_told_in_one_line(alloy):
    train = rows(seed=1, factor=lambda u, x: np.where(x["kind"] == "alloy", 2, 1))
    after = ss.validate(ss.Recalibrator().fit(train).apply(alloy.rows))
    line = after.compared_with(alloy)
    before_fault, after_fault = re.search(r"([\d.]+) → ([\d.]+) times", line).groups()
    assert float(after_fault) < float(before_fault)
    assert "CRPS" in line
    assert re.search(r"hold 9[3-7]", line)


# -- planning --------------------------------------------------------------------------


def test_rows_needed_fall_with_the_tolerance_and_know_the_rows():
    wide = ss.rows_needed(tolerance=2.0, n_features=1)
    narrow = ss.rows_needed(tolerance=1.4, n_features=1)
    assert 150 < wide < narrow < 3000
    rng = np.random.default_rng(12)
    u, groups = rng.gamma(3, 1, 900), np.arange(900) // 3
    p = ss.Predictions(error=u * rng.normal(size=900), y_std=u, groups=groups)
    assert ss.rows_needed(p, tolerance=2.0) < 2 * wide
    with pytest.raises(InvalidInputError, match="n_features"):
        ss.rows_needed(n_features=-1)


# -- statistics ------------------------------------------------------------------------


@pytest.mark.slow
def test_calibrated_sets_are_seldom_refused():
    def student(rng, n):
        return rng.standard_t(3, n) / np.sqrt(3)

    def lognormal(rng, n):
        return (np.exp(rng.normal(size=n)) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)

    wrong = []
    for seed in range(15):
        for draw in (np.random.Generator.standard_normal, student, lognormal):
            rng = np.random.default_rng([20, seed])
            u, x, _ = columns(1000, rng)
            p = ss.Predictions(error=u * draw(rng, 1000), y_std=u, features=x)
            wrong.append(ss.validate(p, rng=seed).answer == "no")
        rng = np.random.default_rng([21, seed])
        u, x, _ = columns(200, rng)
        of = np.repeat(
            np.arange(200), np.minimum(1 + rng.pareto(1, 200), 100).astype(int)
        )
        z = np.sqrt(0.8) * rng.normal(size=200)[of] + np.sqrt(0.2) * rng.normal(
            size=of.size
        )
        x = {name: column[of] for name, column in x.items()}
        p = ss.Predictions(error=u[of] * z, y_std=u[of], features=x, groups=of)
        wrong.append(ss.validate(p, rng=seed).answer == "no")
    assert sum(wrong) <= 5


@pytest.mark.slow
def test_limits_of_the_bias_hold_where_large_errors_have_one_sign():
    missed = 0
    for seed in range(40):
        rng = np.random.default_rng([23, seed])
        u, x = rng.gamma(3, 1, 1000), rng.normal(size=1000)
        z = (np.exp(rng.normal(size=1000)) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)
        p = ss.Predictions(error=u * z, y_std=u, features={"x": x})
        with quiet():  # of one error that dominates
            v = ss.validate(p, claim="intervals", rng=seed)
        missed += not all(y.low <= 0 <= y.high for y in v.verdicts["bias"].regions)
    assert missed <= 3


@pytest.mark.slow
def test_limits_of_all_regions_hold_at_once():
    missed = 0
    for seed in range(25):
        rng = np.random.default_rng([22, seed])
        u, x, z = columns(2000, rng)
        factor = np.exp(0.3 * (x["T"] - 300) / 80) * np.where(
            x["kind"] == "salt", 1.4, 1
        )
        p = ss.Predictions(error=u * z * factor, y_std=u, features=x)
        v = ss.validate(p, rng=seed)
        for name in ("average", "u", "mass", "T", "kind"):
            for region in v.verdicts[name].regions:
                column = u if name == "u" else x.get(name)
                inside = np.ones(2000, dtype=bool)
                if name == "kind":
                    inside = column == region.low_value
                elif name != "average":
                    if region.low_value is not None:
                        inside &= column >= region.low_value
                    if region.high_value is not None:
                        inside &= column <= region.high_value
                true = np.sqrt(np.mean(factor[inside] ** 2))
                missed += not region.low <= true <= region.high
    assert missed <= 2


def test_intervals_that_fail_for_a_label_are_mended_by_its_parts():
    rng = np.random.default_rng(0)
    kind = rng.choice(["gas", "solid"], 4000, p=[0.8, 0.2])
    u = rng.lognormal(0, 0.4, 4000)
    error = u * np.where(kind == "solid", 2.5, 1.0) * rng.normal(size=4000)
    p = ss.Predictions(y_std=u, error=error, features={"kind": kind})
    known, new = p.take(np.arange(2000)), p.take(np.arange(2000, 4000))
    r = ss.Recalibrator(ss.TemperatureScaling()).fit(known)
    step = ss.validate(r.apply(new), claim="intervals").next_steps[0]
    assert step.how == {"parts": ("kind",)}
    assert "each label of kind" in step.what
    # u is right, errors of one label have no tails: more rows would not mend it
    tailless = u * np.where(kind == "solid", np.sign(error), rng.normal(size=4000))
    q = ss.Predictions(y_std=u, error=tailless, features={"kind": kind})
    fitted = ss.Recalibrator(ss.TemperatureScaling()).fit(q.take(np.arange(2000)))
    v = ss.validate(fitted.apply(q.take(np.arange(2000, 4000))))
    assert [step.how for step in v.next_steps] == [{"parts": ("kind",)}]
    assert v.headline.endswith("Intervals can be made to hold in each part of kind.")
    mended = ss.Recalibrator(ss.TemperatureScaling(), parts=["kind"]).fit(known)
    again = ss.validate(mended.apply(new), claim="intervals")
    assert all(step.how is None for step in again.next_steps)
