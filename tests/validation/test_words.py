"""What a validation says: the same numbers everywhere, and a result that follows."""

import re
from html import escape

import numpy as np
import pytest
from matplotlib.figure import Figure

import sigmascale as ss
from sigmascale import plots
from sigmascale._support import numerals
from sigmascale.exceptions import InvalidInputError
from sigmascale.testing import assert_calibrated

KINDS = np.array(["alloy", "glass", "oxide", "salt"])
LINE = re.compile(
    r"(pass|FAIL|\?) +(calibration|consistency \(u\)|adaptivity|combinations|coverage|"
    r"bias(?:, too (?:low|high))?) {1,}(\S.*?) +(\S+(?: %)? \[[^]]*\])"
)


def rows(n=2000, seed=0, factor=1.0, alloy=1.0, shift=0.0, **others):
    """Return rows with RMS z `factor`, `alloy` times as much for 12 % of them."""
    rng = np.random.default_rng(seed)
    u = rng.gamma(4, 0.25, n)
    kind = rng.choice(KINDS, n, p=[0.12, 0.3, 0.3, 0.28])
    mass = rng.normal(100, 20, n)
    z = rng.normal(size=n) * factor * np.where(kind == "alloy", alloy, 1.0) + shift
    features = {"mass": mass, "kind": kind}
    return ss.Predictions(y_std=u, error=u * z, features=features, **others)


def drawn(seed):
    """Return a set of any size and kind of fault."""
    rng = np.random.default_rng([7, seed])
    n = int(rng.choice([60, 250, 1000, 3000]))
    factor = rng.choice([0.6, 1.0, 1.0, 1.3])
    alloy = rng.choice([1.0, 1.0, 2.0])
    return rows(n, seed, factor, alloy, rng.choice([0.0, 0.0, 0.6]))


def lines_of(text):
    """Return (result, check, where, numbers) of all lines that are printed."""
    joined = re.sub(r"\n {30,}(?=\S+(?: %)? \[)", " ", text)  # numbers on a second line
    return [
        LINE.match(line).groups() for line in joined.splitlines() if LINE.match(line)
    ]


def words_of(check, subgroup):
    """Return a subgroup of JSON as it is printed."""
    values = [subgroup[name] for name in ("estimate", "low", "high")]
    if check["unit"] == "share":
        return numerals.percent_interval(*values)
    return numerals.interval(*values)


def test_a_fault_has_one_number_on_the_screen_in_pictures_and_in_files():
    for seed in range(50):
        v = ss.validate(drawn(seed))
        lines = lines_of(str(v))
        assert lines

        # the printed lines are those of JSON, and each result follows from its limits
        told = v.to_dict()
        known = {}
        for check in told["checks"].values():
            for key in ("subgroup", "all_rows"):
                s = check[key]
                if s is not None:
                    kind = check["kind"].replace("consistency", "consistency (u)")
                    known.setdefault((kind, words_of(check, s)), []).append(check)
                    low, high = check["accepted"]
                    inside = low <= s["low"] and s["high"] <= high
                    outside = s["high"] < low or s["low"] > high
                    result = "pass" if inside else "FAIL" if outside else "inconclusive"
                    assert s["result"] == result
        for mark, name, where, numbers in lines:
            checks = known[name.split(",")[0], numbers]
            results = {"pass": "pass", "FAIL": "FAIL", "?": "inconclusive"}
            found = {
                s["result"] for c in checks for s in (c["subgroup"], c["all_rows"])
            }
            assert results[mark] in found | {checks[0]["result"]}, (seed, name, where)

        # no rows have two numbers of one statistic
        by_rows = {}
        for _, name, where, numbers in lines:
            statistic = {"coverage": "coverage", "bias": "bias"}.get(name.split(",")[0])
            assert by_rows.setdefault((statistic, where), numbers) == numbers

        # notebooks and cards have the same lines
        card = ss.report.card_of(v)
        of_card = [x for t in card["results"]["tables"] for x in t["lines"]]
        html = v._repr_html_()
        for mark, _, where, numbers in lines:
            assert f">{escape(numbers)}<" in html
            assert any((x["mark"], x["numbers"]) == (mark, numbers) for x in of_card), (
                where
            )

        # and so has the bar of the picture
        for column, name in (("u", "consistency"), ("kind", "adaptivity: kind")):
            ax = plots.factors(v, by=column, ax=Figure().subplots())
            bars = [line for line in ax.lines if line.get_linewidth() == 5]
            for bar in bars:
                (estimate,) = set(bar.get_ydata())
                assert estimate == told["checks"][name]["subgroup"]["estimate"]


def test_a_report_has_the_lines_that_are_printed():
    for seed in (2, 3):
        v = ss.validate(drawn(seed))
        page = " ".join(re.sub(r"<[^>]*>", " ", ss.report.report_html(v)).split())
        for mark, _, _, numbers in lines_of(str(v)):
            assert numbers in page, mark


@pytest.mark.parametrize(
    ("p", "first"),
    [
        (rows(30_000), "CALIBRATED: within a factor of 1."),
        (rows(factor=1.6), "NOT CALIBRATED: overconfident, u is too small overall"),
        (rows(factor=0.6), "NOT CALIBRATED: underconfident, u is too large overall"),
        (rows(4000, alloy=2), "NOT CALIBRATED: overconfident for kind = alloy (1"),
        (rows(8000, shift=0.5), "BIASED: predictions are too low overall"),
        (rows(200), "INCONCLUSIVE: "),
        (rows(8), "INCONCLUSIVE: 8 rows are too few to test"),
    ],
)
def test_the_first_line_says_the_worst_result_and_no_number_twice(p, first):
    v = ss.validate(p)
    assert v.headline.startswith(first)
    assert str(v).startswith(v.headline[:40])
    assert v.to_dict()["headline"] == v.headline


def test_one_factor_is_one_result():
    v = ss.validate(rows(3000, factor=1.5))
    text = str(v)
    assert "same as all rows: consistency (u), mass, kind" in " ".join(text.split())
    assert [x[1] for x in lines_of(text)].count("adaptivity") == 0


def test_two_hundred_and_fifty_rows_with_eight_features_have_few_lines():
    rng = np.random.default_rng(3)
    names = [f"a_feature_with_a_rather_long_name_{i}_of_eight" for i in range(8)]
    features = {name: rng.normal(size=250) for name in names}
    u = rng.gamma(4, 0.25, 250)
    p = ss.Predictions(
        y_std=u, error=0.85 * u * rng.normal(size=250), features=features
    )
    lines = str(ss.validate(p)).splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    for name in names:  # none is shortened
        assert name in text or "more feature" in text
    assert "…" not in text


def test_what_cannot_be_tested_says_so_and_has_no_limits():
    repeated = rows(100).take(np.repeat(np.arange(100), 10))
    with pytest.warns(UserWarning, match="repeat"):
        v = ss.validate(repeated)
    assert v.headline.startswith("INCONCLUSIVE: rows look like repeats")
    assert lines_of(str(v)) == []
    assert "RMS z" in str(v)
    assert [step.verb for step in v.next_steps] == ["groups"]
    known = rows(600)
    with pytest.warns(UserWarning, match="fitted"):
        v = ss.validate(ss.Recalibrator().fit(known).apply(known), before=known)
    assert "used in the fit" in v.headline
    assert v.result == "inconclusive"


def test_ranks_and_what_trees_find_are_named():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 6000))
    u = rng.gamma(4, 0.25, 6000)
    error = u * rng.normal(size=6000) * np.where(np.abs(a - b) < 0.35, 1.8, 1.0)
    p = ss.Predictions(y_std=u, error=error, features={"a": a, "b": b})
    v = ss.validate(p)
    assert v.checks["combinations"].result == "FAIL"
    (line,) = (x for x in str(v).splitlines() if "combinations" in x and "FAIL" in x)
    assert "(ranks)" in line or " and " in line or "tree model" in line


# -- before and after ------------------------------------------------------------------


def test_the_change_is_the_paired_difference_of_the_crps():
    before = rows(3000, factor=1.6)
    after = ss.Recalibrator().fit(rows(3000, seed=1, factor=1.6)).apply(before)
    v = ss.validate(after, before=before)
    compared = ss.compare({"before": before, "after": after})
    gain = compared.differences["after"]["crps"]
    unit = compared.scores["before"]["crps"]
    change = v.change.relative
    assert (change.value, change.low) == pytest.approx(
        (gain.value / unit, gain.low / unit)
    )
    words = numerals.change(change.value, change.low, change.high)
    assert v.headline == f"RECALIBRATION HELPED: CRPS {words} (3,000 rows, paired)"
    text = str(v)
    for stage in (v.before, v):
        s = stage.checks["calibration"].all_rows
        assert numerals.interval(s.estimate, s.low, s.high) in text
    # notebooks say what is printed, and no more
    for topic in ("Variation", "Ranking", "Next"):
        assert (f"<b>{topic}</b>" in v._repr_html_()) == (f"\n{topic} " in text)
    assert v.before.headline == ss.validate(before).headline
    assert ss.validate(after, before=v.before).headline == v.headline
    assert v.next_steps[0].verb == "apply"


def test_no_gain_harm_and_too_few_rows_are_told_first():
    p = rows(5000)
    for factor, n, words in (
        (1.002, 5000, "NO GAIN FROM RECALIBRATION"),
        (1.5, 5000, "RECALIBRATION MADE IT WORSE"),
        (1.3, 40, "INCONCLUSIVE: too few rows to say if recalibration helped"),
    ):
        before = p.take(np.arange(n))
        after = before.with_y_std(factor * before.y_std)
        v = ss.validate(after, before=before)
        assert v.headline.startswith(words)
    with pytest.raises(InvalidInputError, match="rows"):
        ss.validate(rows(300), before=rows(200))


# -- the door --------------------------------------------------------------------------


def test_arrays_are_rows():
    rng = np.random.default_rng(0)
    y, u = rng.normal(size=500), rng.gamma(4, 0.25, 500)
    pred, mass = y + u * rng.normal(size=500), rng.normal(size=500)
    p = ss.Predictions(pred, u, y_true=y, features={"mass": mass})
    found = ss.validate(pred, u, y, features={"mass": mass})
    assert str(found) == str(ss.validate(p))
    for arguments, match in (
        ({"p": pred}, "y_std"),
        ({"p": pred, "y_std": u}, "y_true"),
        ({"p": p, "features": {"mass": mass}}, "features"),
    ):
        with pytest.raises(InvalidInputError, match=match):
            ss.validate(**arguments)


def test_the_cost_is_told_where_it_is_asked_for():
    p = rows(1000, factor=1.5)
    assert "Cost" not in str(ss.validate(p))
    assert "Cost       recalibration would change CRPS by −" in str(
        ss.validate(p, cost=True)
    )


def test_a_summary_has_the_numbers_of_the_checks():
    v = ss.validate(rows(1000, factor=1.2))
    s = v.summary()
    of_all = v.checks["calibration"].all_rows
    assert (s["RMS z"].value, s["RMS z"].low) == (of_all.estimate, of_all.low)
    assert s["coverage"].value == v.checks["coverage"].all_rows.estimate
    assert v.to_dict()["summary"] == s.to_dict()


def test_sentences_for_a_paper_have_the_printed_numbers():
    before = rows(3000, factor=1.6, alloy=1.5)
    after = ss.Recalibrator().fit(rows(3000, 1, 1.6, 1.5)).apply(before)
    v = ss.validate(after, before=before)
    said = v.describe("paper")
    for stage in (v.before, v):
        s = stage.checks["calibration"].all_rows
        words = numerals.interval(s.estimate, s.low, s.high)
        assert words.replace("[", "(").replace(", ", " to ").replace("]", ")") in said
    assert said.startswith("Uncertainties of 3,000 rows were tested")
    with pytest.raises(InvalidInputError, match="kind"):
        v.describe("poster")


def test_the_next_step_in_python_can_be_typed():
    bias = ss.validate(rows(8000, shift=0.5)).next_steps[0]
    names = {"ss": ss, "calibration": rows(300, 2, shift=0.5)}
    r = eval(bias.python, names)
    assert r.bias == "auto"
    step = ss.validate(rows(factor=1.6)).next_steps[0]
    assert isinstance(eval(step.python, names), ss.Recalibrator)
    assert ss.validate(rows(30_000)).next_steps == ()


# -- in a test suite -------------------------------------------------------------------


def test_a_test_suite_fails_with_the_printed_result():
    data = ss.datasets.load_melting()
    after = ss.Recalibrator().fit(data.calibration).apply(data.test)
    assert_calibrated(after, tolerance=1.5)
    with pytest.raises(AssertionError, match=r"NOT CALIBRATED(.|\n)*FAIL  calibration"):
        assert_calibrated(data.test, tolerance=1.5)
    few = after.take(np.arange(100))
    assert_calibrated(few)
    with pytest.raises(AssertionError, match="INCONCLUSIVE"):
        assert_calibrated(few, inconclusive=False)
