import json

import numpy as np
import polars as pl
import pytest
from scipy import stats

from sigmascale import local_zms, reference_scores, scorecard, validate
from sigmascale.exceptions import (
    DominantErrorWarning,
    FewerBinsWarning,
    InvalidInputError,
    ZeroErrorBinWarning,
)
from sigmascale.judging.verdicts import _holm

RNG = np.random.default_rng(5)
N = 2000
U = RNG.uniform(1, 3, N)
ERROR = RNG.normal(size=N) * U
MASS = RNG.normal(size=N)
STRATA = RNG.integers(0, 5, N).astype(float)
PHASE = RNG.choice(["gas", "liquid", "solid"], N, p=[0.2, 0.3, 0.5])
FEATURES = {"mass": MASS, "phase": PHASE}
CHEAP = {"method": "moments", "n_draws": 200}


def judge(error, u, features=None, **settings):
    """Validate with settings that answer fast."""
    settings = {"n_bins": 20, "method": "moments", "n_draws": 400, **settings}
    return validate(error, u, features, **settings)


def assert_same(found, expected):
    for name, value in vars(expected).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(found, name), value, err_msg=name)
        elif name != "name":
            assert getattr(found, name) == value, name


# --- verdicts ------------------------------------------------------------------------


def test_an_honest_set_passes_every_verdict():
    found = validate(ERROR, U, {"mass": MASS, "phase": PHASE}, n_bins=20)
    assert found.calibrated
    assert found.consistent
    assert found.adaptive == {"mass": True, "phase": True}
    assert found.passed
    assert all(verdict.region is None for verdict in found.verdicts.values())
    assert found.summary.startswith("Calibrated on average: <Z²> = ")
    assert found.summary.endswith("Consistent. Adaptive for mass. Adaptive for phase.")


def test_uncertainties_wrong_by_a_factor_are_not_calibrated():
    found = validate(ERROR, 3 * U, **CHEAP)
    assert not found.calibrated
    assert not found.passed
    assert found.adaptive == {}
    zms, low, high = found.local["u"].overall
    assert found.verdicts["average"].sentence == (
        f"Not calibrated: uncertainties are {1 / np.sqrt(zms):.1f} times too large "
        f"(multiply by {np.sqrt(zms):.2g}) on average, <Z²> = {zms:.2f} "
        f"[{low:.2f}, {high:.2f}]."
    )
    assert found.verdicts["average"].region is None
    assert found.verdicts["average"].local is None


def test_uncertainties_that_are_right_on_average_only_are_not_consistent():
    # z spreads by 1.5 at one end of u and by less at the other
    factor = np.where(np.median(U) < U, 1.5, 0.5)
    factor /= np.sqrt(np.mean((factor * ERROR / U) ** 2))
    found = validate(factor * ERROR, U, {"mass": MASS}, n_bins=20)
    assert found.calibrated
    assert not found.consistent
    assert found.adaptive == {"mass": True}
    assert not found.passed
    assert found.verdicts["u"].sentence.startswith("Not consistent: uncertainties are ")


def test_uncertainties_wrong_for_some_inputs_are_not_adaptive_for_that_feature():
    factor = np.where(MASS > 0, 1.5, 0.5)
    factor /= np.sqrt(np.mean((factor * ERROR / U) ** 2))
    features = {"mass": MASS, "other": np.roll(MASS, 1)}
    found = validate(factor * ERROR, U, features, n_bins=20)
    assert found.calibrated
    assert found.consistent
    assert found.adaptive == {"mass": False, "other": True}
    assert not found.passed


def test_the_group_that_is_wrong_is_named():
    error = np.where(PHASE == "liquid", 2.0, 1.0) * ERROR
    verdict = validate(error, U, {"phase": PHASE}, **CHEAP).verdicts["phase"]
    assert not verdict.passed
    zms = np.mean((error / U)[PHASE == "liquid"] ** 2)
    assert verdict.sentence == (
        f"Not adaptive for phase: uncertainties are {100 * (1 - zms**-0.5):.0f} % too "
        f"small (multiply by {zms**0.5:.2g}) for phase = liquid."
    )
    assert verdict.region.low == verdict.region.high == "liquid"
    assert verdict.region.n == np.sum(PHASE == "liquid")


def test_a_set_that_is_valid_everywhere_is_consistent():
    # The interval of 100 valid bins of 100 starts above 0.95; that is no fault.
    u = np.sort(U)
    found = validate(u * np.tile([0.5, 1.3], N // 2), u, n_bins=100)
    assert found.local["u"].fraction_valid == 1
    assert found.local["u"].fraction_interval[0] > 0.95
    assert found.consistent


def test_the_evidence_is_the_score_against_perfect_sets_with_these_z_scores():
    features = {"mass": MASS, "phase": PHASE}
    error = ERROR * np.where(MASS > 1, 1.2, 1.0)
    found = validate(error, U, features, n_bins=20, method="moments", n_draws=400)
    card = scorecard(error, U, features, n_bins=20)
    reference = reference_scores(
        U, features, distribution="empirical", error=error, n_draws=400, n_bins=20
    )
    assert found.scores == card
    assert found.reference.mean == pytest.approx(reference.mean, rel=1e-12)
    for name, verdict in found.verdicts.items():
        score = "S_cal" if name == "average" else f"S_{name}"
        assert verdict.score == card[score]
        # "moments" draws nothing, so that both simulate the same sets
        assert verdict.target == pytest.approx(reference.mean[score], rel=1e-12)
        assert verdict.target_sd == pytest.approx(reference.sd[score], rel=1e-12)
        assert verdict.p_value == reference.p_value(score, card[score])
    p = {name: verdict.p_value for name, verdict in found.verdicts.items()}
    adjusted = {name: verdict.p_adjusted for name, verdict in found.verdicts.items()}
    assert adjusted == _holm(p)
    assert adjusted != p


def test_the_attainable_fraction_of_heavy_tails_is_below_the_nominal_one():
    rng = np.random.default_rng(17)
    u = rng.uniform(1, 2, 4000)
    normal = validate(u * rng.normal(size=4000), u, **CHEAP).verdicts["u"]
    heavy = validate(u * rng.standard_t(3, 4000), u, **CHEAP).verdicts["u"]
    # measured over 200,000 bins of 63 rows: 0.925 and, of t(3), 0.83 to 0.86
    assert 0.90 < normal.attainable < 0.95
    assert heavy.attainable < normal.attainable - 0.03


def test_the_attainable_fraction_depends_on_how_many_bins_have_which_size():
    # groups of the same two sizes, in other proportions, with z that is rarely large
    rng = np.random.default_rng(3)
    n = 2040
    error = np.where(rng.random(n) < 0.02, 7.0, 0.1)
    few = np.repeat([f"g{i}" for i in range(5)], [10] * 1 + [510] * 3 + [500])
    many = np.repeat([f"g{i:03}" for i in range(105)], [10] * 102 + [510, 500, 10])
    assert set(np.unique(few, return_counts=True)[1]) == {10, 500, 510}
    assert set(np.unique(many, return_counts=True)[1]) == {10, 500, 510}
    found = validate(error, np.ones(n), {"few": few, "many": many}, **CHEAP)
    assert found.verdicts["many"].attainable < found.verdicts["few"].attainable - 0.2


def test_heavy_tails_alone_are_no_fault():
    # compared with normal errors, these would fail: fewer bins are valid than 95 %
    passed = 0
    for seed in range(20):
        z = np.random.default_rng(seed).standard_t(4, N) / np.sqrt(2)
        found = judge(z * U, U, {"mass": MASS})
        passed += found.passed
        assert found.verdicts["u"].attainable < 0.93
    normal = reference_scores(U, n_draws=400, n_bins=20)
    assert found.verdicts["u"].target > 1.2 * normal.mean["S_u"]
    assert stats.binomtest(passed, 20, 0.95).pvalue > 1e-3


def test_the_attainable_fraction_of_valid_bins_is_the_coverage_of_their_intervals():
    # 20 bins of 100 rows of normal z; the closed form covers about 0.94 there
    found = judge(ERROR, U, {"mass": MASS})
    for name in ("u", "mass"):
        assert found.verdicts[name].attainable == pytest.approx(0.94, abs=0.02)
    half = judge(ERROR, U, confidence=0.5)
    assert half.verdicts["u"].attainable == pytest.approx(0.5, abs=0.04)
    assert found.verdicts["average"].attainable is None


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        # sorted p times 5, 4, 3, 2, 1, never below the one before, at most 1
        ([0.01, 0.04, 0.03, 0.005, 0.5], [0.04, 0.09, 0.09, 0.025, 0.5]),
        ([0.9, 0.8, 0.7], [1, 1, 1]),
        ([0.02, 0.02], [0.04, 0.04]),
        ([0.3], [0.3]),
    ],
)
def test_p_values_are_corrected_as_holm_says(p, expected):
    found = _holm({str(i): value for i, value in enumerate(p)})
    assert [found[str(i)] for i in range(len(p))] == pytest.approx(expected)


# --- what goes in --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "expected"), [(2, 1), (5, 1), (18, 3), (100, 10), (400, 20), (20_000, 100)]
)
def test_there_are_as_many_bins_as_the_root_of_the_rows_up_to_100(n, expected):
    rng = np.random.default_rng(n)
    u = rng.uniform(1, 2, n)
    found = validate(u * rng.normal(size=n), u, method="moments", n_draws=20)
    assert found.local["u"].n.size == expected


def test_the_scale_of_errors_and_uncertainties_does_not_matter():
    found = judge(ERROR, U, FEATURES).verdicts
    scaled = judge(ERROR / 1024, U / 1024, FEATURES).verdicts
    for name, verdict in found.items():
        assert scaled[name].p_value == verdict.p_value
        assert scaled[name].sentence == verdict.sentence


def test_validate_gathers_what_local_zms_says_of_each_variable():
    features = {"mass": MASS, "phase": PHASE}
    found = validate(ERROR, U, features, n_bins=20, **CHEAP)
    assert list(found.local) == ["u", "mass", "phase"]
    assert list(found.verdicts) == ["average", "u", "mass", "phase"]
    for name, by in (("u", None), ("mass", MASS), ("phase", PHASE)):
        assert found.local[name].name == name
        assert_same(
            found.local[name], local_zms(ERROR, U, by=by, n_bins=20, method="moments")
        )


@pytest.mark.parametrize(
    "arguments", [{"rng": 3}, {"n_resamples": 200}, {"confidence": 0.9}, {"ties": MASS}]
)
def test_bins_and_intervals_are_made_as_asked(arguments):
    u = np.round(U, 1)
    found = validate(ERROR, u, n_bins=20, n_draws=20, **arguments).local["u"]
    expected = local_zms(ERROR, u, n_bins=20, **arguments)
    np.testing.assert_array_equal(found.low, expected.low)
    assert np.any(found.low != local_zms(ERROR, u, n_bins=20).low)


def test_features_come_as_a_dict_a_data_frame_or_an_array():
    named = {"X1": MASS, "X2": STRATA}
    expected = validate(ERROR, U, named, n_bins=20, **CHEAP)
    for features in (np.column_stack([MASS, STRATA]), pl.DataFrame(named)):
        found = validate(ERROR, U, features, n_bins=20, **CHEAP)
        assert list(found.local) == ["u", "X1", "X2"]
        assert found.summary == expected.summary
        for name, local in found.local.items():
            assert_same(local, expected.local[name])


def test_ties_reach_every_variable():
    features = {"strata": STRATA}
    found = validate(ERROR, U, features, n_bins=20, ties=MASS, **CHEAP)
    expected = local_zms(ERROR, U, by=STRATA, n_bins=20, ties=MASS, method="moments")
    assert_same(found.local["strata"], expected)
    card = scorecard(ERROR, U, features, n_bins=20, ties=MASS)
    assert found.verdicts["strata"].score == card["S_strata"]


def test_a_third_of_zero_errors_are_no_fault_where_the_rest_makes_up_for_them():
    rng = np.random.default_rng(11)
    error = U * rng.normal(size=N) * np.sqrt(1.5) * (rng.random(N) > 1 / 3)
    assert np.mean(error == 0) > 0.3
    assert validate(error, U, {"mass": MASS}, **CHEAP).passed


def test_a_region_of_zero_errors_is_named():
    error = np.where(MASS < -0.5, 0.0, ERROR)
    with pytest.warns(ZeroErrorBinWarning, match="All errors are exactly 0 in"):
        verdict = validate(error, U, {"mass": MASS}, **CHEAP).verdicts["mass"]
    assert not verdict.passed
    assert verdict.region.zms == 0
    assert verdict.sentence.startswith(
        "Not adaptive for mass: uncertainties are too large (all errors are 0) for "
        "mass below -0.5"
    )


def test_a_group_of_zero_errors_is_named():
    error = np.where(PHASE == "gas", 0.0, ERROR)
    with pytest.warns(ZeroErrorBinWarning, match="All errors are exactly 0 in 1 of 3"):
        verdict = validate(error, U, {"phase": PHASE}, **CHEAP).verdicts["phase"]
    assert verdict.sentence == (
        "Not adaptive for phase: uncertainties are too large (all errors are 0) for "
        "phase = gas."
    )


def test_errors_that_are_all_zero_fail_every_verdict():
    with pytest.warns(ZeroErrorBinWarning, match="All errors are exactly 0"):
        found = validate(np.zeros(N), U, {"mass": MASS}, **CHEAP)
    assert not any(verdict.passed for verdict in found.verdicts.values())
    for verdict in found.verdicts.values():
        assert "uncertainties are too large (all errors are 0)" in verdict.sentence


def test_one_row_and_bad_rows_are_refused():
    with pytest.raises(InvalidInputError, match="An interval needs at least 2 rows"):
        validate([1.0], [1.0])
    with pytest.raises(InvalidInputError, match="first at row 1: nan"):
        validate([1.0, np.nan], [1.0, 1.0])
    with pytest.raises(
        InvalidInputError, match="`uncertainty` must be strictly positive"
    ):
        validate([1.0, 1.0], [1.0, 0.0])
    with pytest.raises(InvalidInputError, match="`mass` must have the same number"):
        validate(ERROR, U, {"mass": MASS[:7]})


def test_labels_with_too_few_rows_are_not_judged_or_refused():
    labels = np.array(["rare"] * 3 + ["common"] * (N - 3))
    with pytest.warns(
        FewerBinsWarning, match="1 of 2 groups of `kind` have fewer than 5 rows"
    ):
        found = validate(ERROR, U, {"kind": labels}, **CHEAP)
    assert found.local["kind"].x.tolist() == ["common"]
    each = np.array([f"row {i}" for i in range(N)])
    with pytest.raises(InvalidInputError, match="`kind` must have a label with at le"):
        validate(ERROR, U, {"kind": each}, **CHEAP)


@pytest.mark.parametrize("name", ["u", "average", "cal", "con", "ada", "tot"])
def test_a_feature_cannot_take_the_name_of_another_verdict_or_score(name):
    with pytest.raises(
        InvalidInputError, match=f'must not have a column named "{name}"'
    ):
        validate(ERROR, U, {name: MASS}, **CHEAP)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (
            {"method": "magic"},
            '`method` must be one of "bca", "bootstrap-t", "student"',
        ),
        ({"n_bins": 0}, "`n_bins` must be at least 1; found 0"),
        ({"n_resamples": 5}, "`n_resamples` must be at least 20; found 5"),
        ({"n_draws": 5}, "`n_draws` must be at least 20; found 5"),
        ({"confidence": 0}, "`confidence` must lie strictly between 0 and 1; found 0"),
        ({"ties": MASS[:5]}, "`error` and `ties` must have the same number of rows"),
        ({"ties": PHASE}, "`ties` must hold numbers; row 0 is"),
        ({"rng": 0.5}, "`rng` must be a seed"),
    ],
)
def test_wrong_arguments_are_refused(arguments, match):
    with pytest.raises(InvalidInputError, match=match):
        validate(ERROR, U, **arguments)


# --- what comes out ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["<mass>", "a b", "S_tot", "{x}", "%s", "µ & 'ü'", ""])
def test_odd_names_of_features_are_shown_as_they_are_and_escaped_in_html(name):
    found = validate(ERROR, np.where(MASS > 0.5, 0.4, 1.0) * U, {name: MASS}, **CHEAP)
    assert list(found.verdicts) == ["average", "u", name]
    sentence = found.verdicts[name].sentence
    assert sentence.startswith(f"Not adaptive for {name}: uncertainties are ")
    assert f" for {name} above 0." in sentence
    assert sentence in str(found)
    page = found._repr_html_()
    assert "<mass>" not in page
    assert ("&lt;mass&gt;" in page) == (name == "<mass>")


def test_verdicts_print_and_serialise():
    found = validate(ERROR, 1.3 * U, {"mass": MASS, "phase": PHASE}, n_bins=20, **CHEAP)
    table = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert table["passed"] is False
    assert table["summary"] == found.summary
    assert table["confidence"] == 0.95
    assert list(table["verdicts"]) == ["average", "u", "mass", "phase"]
    for name, verdict in found.verdicts.items():
        assert table["verdicts"][name]["passed"] is verdict.passed
        assert table["verdicts"][name]["sentence"] == verdict.sentence
    assert "mass" in table["verdicts"]["mass"]["region"]["where"]
    assert table["verdicts"]["u"]["local"]["zms"] == found.local["u"].zms.tolist()
    lines = str(found).splitlines()
    assert lines[:4] == [v.sentence for v in found.verdicts.values()]
    assert [line.split()[0] for line in lines[7:-1]] == list(found.verdicts)
    assert "from 20 bins of u" in lines[-1]
    assert all(line.endswith("no") for line in lines[7:-1])
    assert found._repr_html_().count("<tr>") == 5
    assert len(repr(found)) < 100


def test_the_same_seed_gives_the_same_verdict_and_another_a_similar_one():
    first, again, other = (validate(ERROR, U, n_draws=200, rng=r) for r in (0, 0, 1))
    assert str(first) == str(again)
    assert first.verdicts["u"].target != other.verdicts["u"].target
    p, q = first.verdicts["u"].p_value, other.verdicts["u"].p_value
    assert abs(p - q) < 0.15  # four standard errors of 200 draws


# --- statistics ----------------------------------------------------------------------


def draw(seed, errors, n=2000):
    rng = np.random.default_rng([20261115, seed])
    u, features = rng.lognormal(sigma=0.5, size=n), rng.uniform(size=(n, 2))
    z = (
        rng.normal(size=n)
        if errors == "normal"
        else rng.standard_t(5, n) * np.sqrt(3 / 5)
    )
    return u * z, u, features


@pytest.mark.slow
def test_honest_sets_fail_any_verdict_as_rarely_as_confidence_says():
    failed = []
    for seed in range(250):
        rng = np.random.default_rng(seed)
        u, x = rng.uniform(1, 2, (2, 400))
        error = rng.normal(size=400) * u
        failed.append(
            not judge(error, u, {"x": x}, n_bins=10, n_draws=200, confidence=0.8).passed
        )
    # Holm's correction keeps the chance of any false alarm at or below 20 %, and well
    # above half of that, as the three scores are nearly independent
    assert stats.binomtest(sum(failed), 250, 0.2, alternative="greater").pvalue > 1e-3
    assert stats.binomtest(sum(failed), 250, 0.1, alternative="less").pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("errors", ["normal", "t(5)"])
def test_perfect_sets_pass_and_sets_wrong_in_one_third_fail(errors):
    passed, failed, named = 0, 0, 0
    for seed in range(200):
        error, u, features = draw(seed, errors)
        passed += validate(error, u, features, **CHEAP).passed
        halved = np.where(features[:, 0] > 2 / 3, u / 2, u)
        found = validate(error, halved, features, **CHEAP)
        failed += not found.passed
        region = found.verdicts["X1"].region
        named += region is not None and region.high is None and region.low > 0.6
    print(
        f"{errors}: passed {passed / 2} %, failed {failed / 2} %, named {named / 2} %"
    )
    for count in (passed, failed, named):
        assert stats.binomtest(count, 200, 0.9, alternative="less").pvalue > 1e-3


def test_an_error_that_outweighs_all_others_is_named():
    rng = np.random.default_rng(0)
    u = rng.uniform(1, 2, 500)
    error = rng.normal(scale=u)
    error[17] = 1e6
    with pytest.warns(DominantErrorWarning, match=r"row 17, z = .* makes up 100%"):
        validate(error, u)


def test_scores_and_intervals_come_from_the_same_bins():
    rng = np.random.default_rng(0)
    u = rng.uniform(1, 2, 100)
    error = rng.normal(scale=u)
    with pytest.warns(FewerBinsWarning, match="at most 20 of 5 or more"):
        found = validate(error, u, n_bins=80)
    assert (
        found.verdicts["u"].score == validate(error, u, n_bins=20).verdicts["u"].score
    )


# --- what a validation remembers -----------------------------------------------------


def test_a_validation_keeps_the_rows_that_were_judged_the_seed_and_the_resamples():
    found = validate(ERROR, U, FEATURES, n_draws=20, n_resamples=40, rng=4)
    np.testing.assert_array_equal(found.rows.errors, ERROR)
    np.testing.assert_array_equal(found.rows.uncertainty, U)
    assert list(found.rows.features) == ["mass", "phase"]
    assert (found.seed, found.n_resamples, found.notes) == (4, 40, ())
    assert "rows" not in repr(found)
    found = judge(ERROR, U, rng=np.random.default_rng(0))
    assert (found.seed, found.n_resamples) == (None, None)


def test_what_is_warned_about_bins_is_noted_as_well():
    kinds = np.where(np.arange(N) < 3, "few", "many")
    with pytest.warns(FewerBinsWarning) as caught:
        found = validate(ERROR, U, {"kind": kinds}, n_bins=1000, **CHEAP)
    assert [str(each.message) for each in caught] == list(found.notes)
    asked, groups = found.notes
    assert "1000 bins were asked for" in asked
    assert "1 of 2 groups of `kind` have fewer than 5 rows" in groups


def test_other_warnings_are_given_but_not_noted():
    error = np.append(ERROR, 1e6)
    with pytest.warns(DominantErrorWarning) as caught:
        found = validate(error, np.append(U, 1.0), **CHEAP)
    assert found.notes == ()
    assert [each.filename for each in caught] == [__file__]  # the caller's line
