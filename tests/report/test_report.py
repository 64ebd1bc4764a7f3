"""The content of reports; what a browser makes of them is tested beside this."""

import dataclasses
import os
import re
import subprocess
import sys
import warnings
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV

import sigmascale as ss
from sigmascale._support.citations import (
    ABC,
    BCA,
    BOOSTING,
    RAKING,
    SCORES,
    SKEWNESS,
    STEP_DOWN,
    TAILS,
    WILSON,
    WITHIN,
)
from sigmascale.exceptions import (
    FewerBinsWarning,
    InvalidInputError,
    RepeatedRowsWarning,
    ZeroErrorBinWarning,
)
from sigmascale.judging import verdicts
from sigmascale.report import report_html, write_report
from sigmascale.report.cautions import cautions
from sigmascale.report.evidence import gather
from sigmascale.report.methods import Citations, write_methods
from sigmascale.report.pictures import draw_all, plan_factors, plan_local
from sigmascale.report.questions import MARKS, headline, small_print
from sigmascale.report.tables import tabulate_candidates

DATA = ss.datasets.make_molecules(1600, seed=4)
TABLE = pl.DataFrame(
    {
        "u": DATA.uncertainty,
        "mass": DATA.mass,
        "phase": np.where(DATA.mass > 120, "heavy", "light"),
    }
)
CAL, TEST = slice(0, 800), slice(800, 1600)
LEARNED = (TABLE[CAL], DATA.error[CAL])
JUDGED = (DATA.error[TEST], DATA.uncertainty[TEST], TABLE[TEST].drop("u"))
SCALER = ss.RakedScaling(n_bins=6, shrinkage=5.0).fit(*LEARNED)
SCALED = SCALER.predict(TABLE[TEST])
BEFORE = ss.validate(*JUDGED)
AFTER = ss.validate(JUDGED[0], SCALED, JUDGED[2], ties=JUDGED[1])
BOTH = {"recalibrated": AFTER, "scaler": SCALER, "calibration": LEARNED}


def judge(error, u, features=None, *, recalibrated=None, **options):
    """Return what a report takes: the verdicts before, and options with those after."""
    if recalibrated is not None:
        options["recalibrated"] = ss.validate(error, recalibrated, features, ties=u)
    return ss.validate(error, u, features), options


def evidence_of(*args, **kwargs):
    validation, options = judge(*args, **kwargs)
    return gather(validation, **options)


def page_of(*args, **kwargs):
    validation, options = judge(*args, **kwargs)
    return report_html(validation, **options)


def text_of(page):
    """The text of a page without its tags."""
    page = re.sub(r"<style>.*?</style>", " ", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", "", page)).split())


def svgs(page):
    return [
        ElementTree.fromstring(each)
        for each in re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    ]


def section(page, heading):
    found = re.search(rf"<h2>{heading}</h2>(.*?)</section>", page, flags=re.DOTALL)
    assert found, heading
    return found[1]


@pytest.fixture(scope="module")
def evidence():
    return gather(BEFORE, **BOTH)


@pytest.fixture(scope="module")
def page():
    return report_html(BEFORE, **BOTH, title="My test set", names={"file": "t.csv"})


# --- what is on the page ------------------------------------------------------------


def test_there_is_no_section_on_time_if_times_are_not_known(page):
    assert "Over time" not in page
    assert "martingales" not in page


def test_verdicts_come_first_and_are_those_of_validate(page, evidence):
    text = text_of(page)
    first = text.index("Scores")
    for stage, u in zip(evidence.stages, (JUDGED[1], SCALED), strict=True):
        expected = ss.validate(JUDGED[0], u, JUDGED[2], ties=JUDGED[1])
        assert stage.validation.summary == expected.summary
        assert stage.validation.scores == expected.scores
        for verdict in expected.verdicts.values():
            assert 0 < text.index(verdict.sentence) < first
    marks = marks_of(page)
    shown = [v.answer for s in evidence.stages for v in s.validation.verdicts.values()]
    assert [answer for _, _, answer in marks[:-3]] == shown
    assert {"yes", "no"} <= set(shown)
    # below, what each answer means
    assert [answer for _, _, answer in marks[-3:]] == ["yes", "no", "cannot tell"]


def marks_of(page):
    """The class, the sign that screen readers skip, and the word of each mark."""
    return re.findall(
        r'class="mark (\w+)"><span aria-hidden="true">(.)</span> ([a-z ]+)<', page
    )


def test_each_answer_has_a_sign_a_word_and_a_style_of_its_own(page):
    expected = {
        ("yes", "✓", "yes"),
        ("no", "✗", "no"),
        ("unsure", "?", "cannot tell"),
    }
    assert set(marks_of(page)) == expected
    for name in ("mark.yes", "mark.no", "mark.unsure", "headline.unsure"):
        assert f".{name}" in section_of_style(page)


def section_of_style(page):
    return re.search(r"<style>(.*?)</style>", page, flags=re.DOTALL)[1]


def test_every_verdict_has_its_question_its_sentence_and_its_small_print(page):
    shown = page[: page.index("<h2>Scores</h2>")]
    text = text_of(shown)
    for found in (BEFORE, AFTER):
        for verdict in found.verdicts.values():
            note = " ".join(small_print(verdict, found.confidence).split())
            assert f"{verdict.sentence} {note}" in text
    for question in (
        "Are the errors free of bias?",
        "Are uncertainties right on average?",
        "Are they right at every level of uncertainty?",
        "Are they right for every value of mass?",
        "Are they right for every value of phase?",
        "Are they right for every combination of these?",
        "Does one multiple of u hold 95 % of the errors everywhere?",
    ):
        assert text.count(question) == 2


def test_the_small_print_has_what_a_verdict_rests_on():
    failed = BEFORE.verdicts["mass"]
    low, high = failed.region.interval
    note = small_print(failed, 0.95)
    assert failed.answer == "no"
    assert f"{failed.region.n:,} rows is between {low:.2g} and {high:.2g}" in note
    assert f"corrected p = {failed.p_adjusted:.3f}" in note
    assert f"S = {failed.score:.3f}, attainable {failed.target:.3f} ± " in note
    assert "seen" not in note
    passed = AFTER.verdicts["u"]
    assert passed.answer == "yes"
    seen = f"a factor of {passed.seen:.3g} in a tenth of the rows would have been seen"
    assert seen in small_print(passed, 0.95)
    average = small_print(AFTER.verdicts["average"], 0.95)
    assert average.startswith("interval at 99\u00a0%; u could be off by a factor of ")
    assert "p =" not in average
    assert "S_cal" not in average
    assert "S = " not in small_print(AFTER.verdicts["joint"], 0.95)
    bias = small_print(AFTER.verdicts["bias"], 0.9)
    assert bias.startswith("interval at 99.5\u00a0%; corrected p of regions = ")


def answered(*answers):
    """Verdicts with these answers."""
    one = BEFORE.verdicts["u"]
    return dataclasses.replace(
        BEFORE,
        verdicts={
            str(i): dataclasses.replace(one, answer=answer)
            for i, answer in enumerate(answers)
        },
    )


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (
            ["yes"] * 4 + ["no", "cannot tell"],
            "4 of 6 questions are answered yes, 1 no",
        ),
        (["yes"] * 4 + ["no", "cannot tell"], ", 1 no, 1 cannot be told."),
        (["yes"] * 6, "All 6 questions are answered yes."),
        (["no"] * 3, "All 3 questions are answered no."),
        (["cannot tell"] * 5, "None of the 5 questions can be answered."),
        (["yes", "no"], "1 of 2 questions is answered yes, 1 no."),
        (["no", "cannot tell"], "None of 2 questions is answered yes, 1 no, 1 cannot"),
    ],
)
def test_the_headline_counts_answers(answers, words, evidence):
    stage = dataclasses.replace(evidence.final, validation=answered(*answers))
    assert words in headline(dataclasses.replace(evidence, stages=(stage,)))
    before = dataclasses.replace(evidence.stages[0], validation=answered("no", "yes"))
    both = headline(dataclasses.replace(evidence, stages=(before, stage)))
    assert both.startswith("After recalibration ")
    assert both.endswith(". Before it, 1 of 2 questions is answered yes, 1 no.")


def test_the_headline_has_the_mark_of_the_worst_answer(page):
    assert f'<p class="headline {MARKS[AFTER.answer][1]}">' in page
    assert '<p class="headline no">' in report_html(BEFORE)


def test_sixty_rows_cannot_tell_and_the_report_says_what_could_hide():
    error, u, features = perfect(60)
    found = ss.validate(error, u, features)
    assert found.answer == "cannot tell"
    page = report_html(found)
    text = text_of(page)
    assert '<p class="headline unsure">' in page
    assert "cannot be told." in text
    assert ("unsure", "?", "cannot tell") in marks_of(page)[:-3]
    assert found.verdicts["u"].sentence in text
    assert "in a tenth of the rows could hide" in small_print(
        dataclasses.replace(found.verdicts["u"], seen=np.inf), 0.95
    )
    assert "Cannot tell" in text


def test_sections_stand_in_their_order(page):
    assert re.findall(r"<h2>(.*?)</h2>", page) == [
        "Before",
        "After",
        "Scores",
        "Local calibration",
        "Confidence curve",
        "Distribution of z",
        "Tails",
        "Errors against uncertainties",
        "How the uncertainties were recalibrated",
        "What you should not conclude",
        "Methods",
    ]


def test_scores_stand_beside_what_is_attainable(page, evidence):
    table = text_of(section(page, "Scores").replace("</t", " </t"))
    for name in ("NLL", "S_cal", "S_u", "S_mass", "S_phase", "S_tot", "ENCE_mass"):
        row = table[table.index(f"{name} ") :]
        for stage in evidence.stages:
            validation = stage.validation
            target = validation.reference.mean[name], validation.reference.sd[name]
            found = row.index(f"{validation.scores[name]:.3f}")
            row = row[found:]
            assert f"{target[0]:.3f} ± {target[1]:.3f}" in row[:40]
    for stage in evidence.stages:
        local = stage.validation.local["mass"]
        assert f"{100 * local.fraction_valid:.0f} %" in table.replace("\xa0", " ")


def test_the_report_judges_nothing_itself(monkeypatch):
    counts = dict.fromkeys(("validate", "measure", "simulate_scores", "judge"), 0)

    def counted(name):
        original = getattr(verdicts, name)

        def function(*args, **kwargs):
            counts[name] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(verdicts, name, function)

    for name in counts:
        counted(name)
    verdicts.validate(*JUDGED)
    assert set(counts.values()) == {1}  # what is counted is what verdicts need
    report_html(BEFORE, **BOTH)
    assert set(counts.values()) == {1}


def test_every_variable_is_drawn_before_and_after_with_the_same_range(page):
    local = section(page, "Local calibration")
    assert re.findall(r"<h3>(.*?)</h3>", local) == ["uncertainty u", "mass", "phase"]
    rows = local.split("<h3>")[1:]
    for row in rows:
        before, after = svgs(row)
        ticks = [
            [t.text for t in svg.iter("text") if "text-anchor:end" in t.get("style")]
            for svg in (before, after)
        ]
        assert ticks[0] == ticks[1] != []


def test_a_set_as_it_is_has_one_column_and_no_recalibration():
    page = report_html(BEFORE)
    assert re.findall(r"<h2>(.*?)</h2>", page)[:2] == ["As they are", "Scores"]
    assert "recalibrated" not in text_of(page)
    assert len(svgs(page)) == 3 + 3


def test_a_set_without_features_and_with_two_rows_is_reported():
    page = page_of([0.1, -0.3], [0.1, 0.2])
    assert "No feature was examined" in text_of(page)
    assert len(svgs(page)) == 4


def test_errors_that_are_all_zero_are_reported():
    with pytest.warns(ZeroErrorBinWarning):
        found = ss.validate(np.zeros(40), np.ones(40), {"x": np.arange(40.0)})
    page = report_html(found)
    assert "All errors are exactly 0" in text_of(page)
    assert "∞" in section(page, "Scores")


def test_title_and_lines_about_the_data_are_shown(page):
    assert "<title>My test set</title>" in page
    assert "<h1>My test set</h1>" in page
    assert "<dt>file</dt><dd>t.csv</dd>" in page


def test_the_same_input_gives_the_same_bytes_in_another_process(page, tmp_path):
    code = (
        "import sys, matplotlib as mpl\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "mpl.rcParams.update({'font.size': 30, 'axes.facecolor': 'red'})\n"
        "import test_report as t\n"
        "t.write_report(sys.argv[2], t.BEFORE, **t.BOTH, title='My test set',"
        " names={'file': 't.csv'})\n"
    )
    out = tmp_path / "again.html"
    subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent), str(out)],
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    assert out.read_text(encoding="utf-8") == page


def test_no_global_setting_changes():
    before = dict(mpl.rcParams)
    report_html(BEFORE)
    assert dict(mpl.rcParams) == before


def test_the_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(InvalidInputError):
        write_report(path, [1.0])
    assert path.read_text() == "old"
    write_report(path, BEFORE)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


# --- one self-contained, valid page -------------------------------------------------


def test_the_page_refers_to_nothing_outside_but_links_to_click(page):
    assert "default-src 'none'" in page
    without_links = re.sub(r'<a href="https://[^"]*"', "<a", page)
    assert "http" not in without_links.replace("http-equiv", "")
    assert not re.search(r"<(script|img|iframe|object|embed|base)\b", page)
    assert "@import" not in page
    assert "url(" not in re.sub(r'clip-path="url\(#[\w-]+\)"', "", page)


def test_identifiers_are_unique_and_every_reference_has_its_target(page):
    identifiers = re.findall(r'\bid="([^"]*)"', page)
    assert len(identifiers) == len(set(identifiers))
    used = set(re.findall(r'(?:href="#|url\(#)([\w-]+)', page))
    labelled = " ".join(re.findall(r'aria-labelledby="([^"]*)"', page)).split()
    assert used | set(labelled) <= set(identifiers)
    assert len(used) > 20


def test_every_picture_has_a_title_and_a_description(page):
    drawn = svgs(page)
    assert len(drawn) == 2 * 3 + 2 * 3 + 3
    for svg in drawn:
        title, description = svg[0], svg[1]
        assert (title.tag, description.tag) == ("title", "desc")
        assert title.text
        assert description.text
        assert f"{title.get('id')} {description.get('id')}" == svg.get(
            "aria-labelledby"
        )


def test_pictures_hold_text_and_points_and_no_style_for_the_whole_page(page):
    for svg in svgs(page):
        assert len([t for t in svg.iter("text") if t.text]) > 4
        assert not list(svg.iter("style"))
        assert not list(svg.iter("metadata"))
        assert not list(svg.iter("image"))


def test_ten_features_stay_below_three_megabytes():
    rng = np.random.default_rng(0)
    n = 2500
    features = {f"feature {i}": rng.normal(size=n) for i in range(10)}
    u = rng.uniform(1, 2, n)
    page = page_of(rng.normal(scale=u), u, features, recalibrated=1.1 * u)
    assert len(svgs(page)) == 2 * 11 + 3 * 2 + 11
    assert len(page.encode()) < 3_000_000


def test_clouds_are_thinned_and_the_caption_says_so(evidence):
    rng = np.random.default_rng(0)
    u = rng.uniform(1, 2, 5000)
    page = page_of(rng.normal(scale=u), u)
    errors = section(page, "Errors against uncertainties")
    assert "2,000 of 5,000 rows are drawn" in text_of(errors)
    assert 1900 < errors.count("<use ") < 2100


# --- names of all kinds -------------------------------------------------------------

NASTY = [
    "<script>alert(1)</script>",
    "\"quotes' &amp;",
    r"$x$ \frac{a}{b}",
    "🧪 👩‍🔬",
    "very long " * 30,
    "כתובת בעברית",
    "</title></style></svg>-->]]>",
    "{{ 7 * 7 }}{% raw %}",
    "nul \x00 and \ud800 and \u202e",
    "__",
]


def as_shown(name):
    """What cannot be printed is replaced; joiners are kept, they make emoji."""
    shown = "".join(c if c.isprintable() or c == "\u200d" else "\ufffd" for c in name)
    return " ".join(shown.split())


@pytest.fixture(scope="module")
def nasty_page(tmp_path_factory):
    rng = np.random.default_rng(0)
    features = {name: rng.normal(size=800) for name in NASTY[:-1]}
    features[NASTY[-1]] = rng.choice([*NASTY], 800)
    one = ss.compare([ss.TemperatureScaling()], LEARNED, LEARNED, n_bins=9).rows[0]
    rows = tuple(dataclasses.replace(one, name=name) for name in NASTY)
    path = tmp_path_factory.mktemp("nasty") / "page.html"
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a glyph that no font has is no reason to warn
        write_report(
            path,
            ss.validate(*JUDGED[:2], features, n_bins=9),
            recalibrated=ss.validate(
                JUDGED[0], SCALED, features, ties=JUDGED[1], n_bins=9
            ),
            comparison=ss.Comparison(rows),
            title=" ".join(NASTY),
            names=dict(zip(NASTY, NASTY, strict=True)),
        )
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NASTY)
def test_names_of_all_kinds_appear_as_text_everywhere(name, nasty_page):
    isolates = str.maketrans("", "", "\u2068\u2069")
    text = text_of(nasty_page).translate(isolates)
    # title twice, verdicts twice, names twice, features, heading, methods, rows, ...
    assert text.count(as_shown(name)) >= 9
    labels = ["".join(t.itertext()) for s in svgs(nasty_page) for t in s.iter("text")]
    start = as_shown(name)[:6]
    # below the pictures of the variable, and as the name of a group in others
    assert sum(label.startswith(start) for label in labels) >= 3
    assert any(start in (svg[0].text or "") for svg in svgs(nasty_page))


def test_no_name_becomes_an_element_or_a_template(nasty_page):
    assert not re.search(r"<(script|img|b)\b", nasty_page)
    assert "{{ 7 * 7 }}" in nasty_page
    pictures = svgs(nasty_page)
    assert nasty_page.count("</svg>") == len(pictures) == nasty_page.count("<figure>")
    for tag in ("h1", "main", "table", "style", "body"):
        opened = re.findall(rf"<{tag}\b", nasty_page)
        assert nasty_page.count(f"</{tag}>") == len(opened), tag


# --- recalibrators ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scaler", "words", "n_pictures"),
    [
        (ss.NoScaling(), "Uncertainties are left as they are", 0),
        (ss.TemperatureScaling(), "The factor is 0.", 0),
        (ss.LinearScaling(), "a = 0.", 3),
        (ss.IsotonicScaling(), "isotonic fit", 3),
        (ss.BinwiseScaling(5), "The factors of 5 bins", 1),
        (ss.BinwiseScaling(3, by=("u", "mass")), "The factors of 9 bins", 3),
        (ss.BinwiseScaling(5, by="mass"), "The factors of 5 bins", 1),
        (ss.CategoryScaling(by="phase"), "2 groups have a factor", 1),
        (ss.RakedScaling(5, pairs=[(0, 1)], shrinkage=5.0), "joint bins: u & mass", 3),
        (ss.BoostedScaling(max_trees=5), "boosters of", 3),
    ],
    ids=lambda each: type(each).__name__,
)
def test_every_recalibrator_is_described_and_its_factors_drawn(
    scaler, words, n_pictures, evidence
):
    scaler.fit(*LEARNED)
    given = dataclasses.replace(evidence, scaler=scaler)
    drawn = draw_all({"Factors": plan_factors(given)})["Factors"]
    assert sum(len(row.pictures) for row in drawn) == n_pictures
    assert words in scaler.describe()
    (_, _, recalibration), references = write_methods(given)
    assert f"recalibrated by {type(scaler).__name__}(" in recalibration
    assert scaler.does in recalibration
    assert set(scaler.references) <= set(references)


def test_a_selection_shows_every_candidate_with_its_verdict():
    scaler = ss.SelectedScaling().fit(*LEARNED)
    page = page_of(*JUDGED, recalibrated=scaler.predict(TABLE[TEST]), scaler=scaler)
    about = text_of(section(page, "How the uncertainties were recalibrated"))
    for name, verdict in zip(
        scaler.cv_results_["candidate"], scaler.cv_results_["verdict"], strict=True
    ):
        assert name in about
        assert verdict in about
    tried = len(scaler.cv_results_["candidate"])
    assert f"selected among {tried} candidates" in text_of(page)


def test_recalibrators_fitted_on_arrays_get_the_names_of_the_features():
    X = np.column_stack([DATA.uncertainty, DATA.mass])
    scaler = ss.RakedScaling(5, shrinkage=5.0).fit(X[CAL], DATA.error[CAL])
    evidence = evidence_of(
        *JUDGED[:2],
        {"weight": DATA.mass[TEST]},
        recalibrated=scaler.predict(X[TEST]),
        scaler=scaler,
        calibration=(X[CAL], DATA.error[CAL]),
    )
    assert evidence.columns == ("u", "weight")
    assert [shift.name for shift in evidence.calibration.shifts] == ["u", "weight"]
    assert evidence.unexamined == ()


def test_a_calibration_set_with_fewer_columns_leaves_the_others_numbered():
    fewer = (TABLE[CAL].select("u"), DATA.error[CAL])
    given = gather(BEFORE, recalibrated=AFTER, scaler=SCALER, calibration=fewer)
    captions = [caption for plan in plan_factors(given) for caption, _ in plan.parts]
    assert captions == [
        "Factors of the bins of uncertainty u.",
        "Factors of the bins of X1.",
        "Factors of the bins of X2.",
    ]


def test_a_method_of_ones_own_is_reported_by_its_ratios():
    class Mine:
        def predict(self, X):
            return X

    page = report_html(BEFORE, recalibrated=AFTER, scaler=Mine())
    about = section(page, "How the uncertainties were recalibrated")
    assert "Mine" in text_of(about)
    assert len(svgs(about)) == 3
    page = report_html(BEFORE, recalibrated=AFTER)
    assert "not told by what method" in text_of(page)


def test_a_recalibrator_of_ones_own_is_drawn_and_described_without_being_known():
    class Doubled(ss.BinwiseScaling):
        does = "uncertainties are doubled by a rule of the house"
        references = ("The House, Rules (2020).",)

    scaler = Doubled(5, by="mass").fit(*LEARNED)
    page = report_html(BEFORE, recalibrated=AFTER, scaler=scaler)
    about = section(page, "How the uncertainties were recalibrated")
    assert "Uncertainties are doubled by a rule of the house." in text_of(about)
    assert len(svgs(about)) == 1
    assert "The House, Rules (2020)." in text_of(section(page, "Methods"))


def test_a_search_of_another_library_is_not_taken_for_a_selection():
    search = GridSearchCV(ss.BinwiseScaling(), {"n_bins": [2, 5]}, cv=2).fit(*LEARNED)
    page = report_html(BEFORE, recalibrated=AFTER, scaler=search)
    about = section(page, "How the uncertainties were recalibrated")
    assert "Why this method" not in about
    assert len(svgs(about)) == 3  # ratios: it has no map of its own


def test_a_comparison_becomes_a_table_with_fewer_columns_for_many_features():
    scalers = {"one factor": ss.TemperatureScaling()}
    table = ss.compare(scalers, LEARNED, (TABLE[TEST], JUDGED[0]), n_bins=20)
    page = report_html(BEFORE, comparison=table)
    shown = text_of(section(page, "Comparison of methods").replace("</t", " </t"))
    assert "method NLL S_cal S_u S_mass S_phase S_tot valid u valid mass valid" in shown
    row = table["one factor"]
    assert f"one factor {row.test.nll:.3f} {row.test.s_cal:.3f}" in shown
    assert "That the best line" in text_of(page)
    assert "S_ada sums" not in shown

    rng = np.random.default_rng(0)
    wide = {f"x{i}": rng.normal(size=800) for i in range(6)}
    X = pl.DataFrame({"u": DATA.uncertainty[CAL], **wide})
    table = ss.compare(scalers, (X, LEARNED[1]), (X, LEARNED[1]), n_bins=20)
    page = page_of(LEARNED[1], X["u"], wide, comparison=table)
    header = re.findall(
        r'<th scope="col"[^>]*>(.*?)</th>', section(page, "Comparison of methods")
    )
    header = [each.replace("<wbr>", "") for each in header]
    assert header == [
        *("method", "NLL", "S_cal", "S_u", "S_ada", "S_tot", "valid u", "least valid")
    ]
    # what is said depends on the table, however few features are judged
    page = page_of(LEARNED[1], X["u"], comparison=table)
    assert "S_ada sums" in text_of(section(page, "Comparison of methods"))


# --- methods ------------------------------------------------------------------------


def test_methods_state_the_actual_numbers(evidence):
    (judging, scoring, recalibration), references = write_methods(evidence)
    bins = evidence.final.validation.local["u"].n.size
    for words in (
        f"sigmascale {ss.__version__}",
        "800 predictions",
        "z = E/u",
        "7 questions share an error rate of 5 %",
        "A share of 20 % is the average's",
        "the 99 % interval of ⟨Z²⟩",
        "a Student's t fitted to z",
        "A share of 5 % is that of bias",
        "the 99.75 % interval of the mean of z contains 0",
        "A share of 60 % is that of scans",
        "up to 50 bins, equal values together",
        "by the gamma law",
        "at least 8 % of the rows (over sets of labels)",
        f"beyond {AFTER.reach:.3g}u, the multiple of u that holds 95 % of all errors",
        "trees by gradient boosting",
        "from 400 sets with shuffled z-scores, and are corrected",
        "step-down maxima",
        "too small by a factor of 2 (the tolerance)",
        "seed 0",
    ):
        assert words in judging.replace("\xa0", " "), words
    assert "groups" not in judging
    for words in (
        f"over {bins} equal-size bins of u",
        f"over {bins} such bins of mass and over the 2 groups of phase",
        "200 simulated",
        "within 1.96u",
    ):
        assert words in scoring
    assert "n_bins=6" in recalibration
    assert "shrinkage=5.0" in recalibration
    assert "on 800 rows, none of them judged" in recalibration
    cited = {
        int(n)
        for p in (judging, scoring, recalibration)
        for marks in re.findall(r"\[([\d, ]+)\]", p)
        for n in marks.split(", ")
    }
    assert set(range(1, len(references) + 1)) == cited
    for reference in (SCORES, BCA, ABC, STEP_DOWN, BOOSTING, WILSON, RAKING):
        assert reference in references
    assert {TAILS, WITHIN, SKEWNESS} <= set(references)


def test_methods_number_references_as_they_are_first_cited(evidence):
    text = " ".join(write_methods(evidence)[0])
    marks = [m.split(", ") for m in re.findall(r"\[([\d, ]+)\]", text)]
    first = list(dict.fromkeys(int(n) for mark in marks for n in mark))
    assert first == sorted(first)


def test_methods_state_groups_and_leave_out_what_was_not_asked():
    error, u, features = perfect(400)
    groups = np.repeat(np.arange(100), 4)
    found = ss.validate(error, u, features, groups=groups, joint=False, tolerance=3)
    judging = write_methods(gather(found))[0][0]
    assert "Rows came in 100 groups" in judging
    assert "shuffled z-scores, in which whole groups were kept together" in judging
    assert "5 questions share" in judging
    assert "gradient boosting" not in judging
    assert "by a factor of 3 (the tolerance)" in judging
    page = report_html(found)
    assert "<dt>groups of rows</dt><dd>100</dd>" in page
    assert "take rows as independent" in text_of(section(page, "Tails"))
    assert "Rows of one of the 100 groups were kept together" in text_of(page)
    few = write_methods(evidence_of(error[:9], u[:9]))[0]
    assert "too few rows, or errors, for any other test" in few[0]
    assert "Tails" not in few[1]


def test_the_rows_learned_from_are_stated_where_only_the_recalibrator_knows_them():
    evidence = gather(BEFORE, recalibrated=AFTER, scaler=SCALER)
    (_, _, recalibration), _ = write_methods(evidence)
    assert "fitted on 800 rows: " in recalibration


def test_references_are_numbered_as_they_are_first_cited():
    cite = Citations()
    assert cite(ABC) == " [1]"
    assert cite(BCA, ABC) == " [1, 2]"
    assert cite() == ""
    assert cite.references == [ABC, BCA]


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (
            "bca",
            r"BCa bootstrap \[\d\], 60 resamples; for all rows together its closed",
        ),
        (
            "bootstrap-t",
            "bootstrap-t, 60 resamples; for all rows together BCa's closed",
        ),
        ("student", r"\(Student's t; for all rows together BCa's closed form \["),
        ("moments", r"\(closed form of the BCa bootstrap \[\d\]\)"),
    ],
)
def test_methods_say_how_the_verdicts_that_were_given_were_made(method, words):
    found = ss.validate(*JUDGED, method=method, n_resamples=60, rng=7)
    (judging, scoring), references = write_methods(gather(found))
    assert re.search(words, scoring), scoring
    assert ", seed 7, by" in judging
    assert ABC in references
    unseeded = ss.validate(*JUDGED, rng=np.random.default_rng(0))
    assert "seed" not in write_methods(gather(unseeded))[0][0]


def test_references_link_to_their_identifier(page):
    links = re.findall(r'<a href="(https://[^"]*)"', page)
    assert "https://arxiv.org/abs/2310.11978" in links
    assert "https://doi.org/10.1080/01621459.1987.10478410" in links


# --- cautions -----------------------------------------------------------------------


def headings(*args, **kwargs):
    return [each.heading for each in cautions(evidence_of(*args, **kwargs))]


ALWAYS = [
    "That a single bin whose interval misses 1 is a fault.",
    "That a “yes” is a proof.",
]
FEW = "That a “yes” rules out large faults."
SAME = "That the recalibration would do as well on other rows."
SHIFTED = "That the judged rows are like those the recalibrator learned from."
HEAVY = "That ±2u holds 95 % of the errors, or ±3u nearly all."
DOUBTED = "That the verdict on the average can be trusted."
REPEATS = "That the rows are independent."


def perfect(n, seed=0):
    rng = np.random.default_rng([20, seed])
    u, x = rng.uniform(1, 2, n), rng.normal(size=n)
    return rng.normal(scale=u), u, {"x": x}


def test_a_large_normal_set_gets_only_the_cautions_that_always_apply():
    assert headings(*perfect(2000)) == ALWAYS


def test_a_few_rows_are_said_to_be_few_with_what_they_cannot_tell():
    error, u, features = perfect(60)
    found = cautions(evidence_of(error, u, features))
    assert [each.heading for each in found] == [FEW, *ALWAYS]
    verdicts = ss.validate(error, u, features).verdicts
    most = max(verdicts[name].seen for name in ("u", "x"))
    size = "a factor of 6 or more" if most > 6 else f"nearly a factor of {most:.3g}"
    assert "With 60 rows and errors of this shape, u of a tenth" in found[0].text
    assert f"could be too small by {size}, and no one" in found[0].text


def test_many_rows_in_which_large_faults_could_hide_are_said_too():
    evidence = evidence_of(*perfect(2000))
    verdicts = evidence.final.validation.verdicts
    vague = verdicts | {"x": dataclasses.replace(verdicts["x"], seen=2.5)}
    judged = dataclasses.replace(evidence.final.validation, verdicts=vague)
    stage = dataclasses.replace(evidence.final, validation=judged)
    first, *_ = cautions(dataclasses.replace(evidence, stages=(stage,)))
    assert first.heading == FEW
    assert "ordered by x, could be too small by nearly a factor of 2.5" in first.text


def test_heavy_tails_are_said_and_doubted_where_the_average_has_an_answer():
    rng = np.random.default_rng(0)
    z = rng.standard_t(3, 3000)
    features = {"x": rng.normal(size=3000)}
    evidence = evidence_of(z, np.ones(3000), features)
    average = evidence.final.validation.verdicts["average"]
    assert not evidence.final.tails.zms_is_reliable
    expected = [HEAVY, *([] if average.answer == "cannot tell" else [DOUBTED]), *ALWAYS]
    assert [each.heading for each in cautions(evidence)] == expected
    # errors three times as large leave no doubt of the answer, but of what it rests on
    assert headings(3 * z, np.ones(3000), features) == [HEAVY, DOUBTED, *ALWAYS]


def test_bias_is_said_by_its_verdict_alone():
    error, u, features = perfect(2000)
    evidence = evidence_of(error + u, u, features)
    assert evidence.final.z.biased
    assert evidence.final.validation.verdicts["bias"].answer == "no"
    assert [each.heading for each in cautions(evidence)] == ALWAYS


def test_repeats_without_groups_are_said_and_with_groups_are_not():
    u = perfect(300)[1]
    rng = np.random.default_rng(3)
    repeated = np.repeat(u, 4)
    errors = rng.normal(scale=repeated)
    with pytest.warns(RepeatedRowsWarning):
        found = ss.validate(errors, repeated)
    said = {each.heading: each.text for each in cautions(gather(found))}
    assert "No groups were given" in said[REPEATS]
    found = ss.validate(errors, repeated, groups=np.repeat(np.arange(300), 4))
    said = {each.heading: each.text for each in cautions(gather(found))}
    assert REPEATS not in said
    assert "300 groups" in said[ALWAYS[1]]


def test_questions_are_counted_in_the_caution_that_a_yes_is_no_proof():
    *_, last = cautions(evidence_of(*perfect(2000)))
    assert "Verdicts are corrected for the 6 questions asked here" in last.text
    assert "rows were taken to be independent" in last.text


# --- tails and grey bins ------------------------------------------------------------


def test_tails_are_those_of_the_library_before_and_after(page, evidence):
    shown = text_of(section(page, "Tails").replace("</t", " </t"))
    assert "before after right" in shown
    for stage in evidence.stages:
        found = ss.tails(JUDGED[0], stage.uncertainty)
        assert stage.tails == found
        share = found.coverage
        limits = f"[{100 * share.low:.1f}, {100 * share.high:.1f}]"
        assert f"{100 * share.picp:.1f} % {limits}" in shown.replace("\xa0", " ")
        assert f"{found.skewness_z2:.3f}" in shown
        for sentence in found.sentences:
            assert sentence in shown


def test_heavy_tails_make_the_report_doubt_the_average():
    rng = np.random.default_rng(0)
    heavy = page_of(rng.standard_t(2.2, 2000), np.ones(2000))
    said = "The verdict on the average cannot be trusted by itself."
    assert said in text_of(section(heavy, "Tails"))
    normal = page_of(*perfect(2000))
    assert said not in text_of(section(normal, "Tails"))


@pytest.mark.parametrize("error", [np.zeros(40), np.linspace(-1, 1, 12)])
def test_there_is_no_section_on_tails_where_there_are_none(error):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of bins without any error
        found = ss.validate(error, 1 + 0.01 * np.arange(error.size))
    assert "<h2>Tails</h2>" not in report_html(found)


def test_bins_that_could_be_off_both_ways_are_drawn_grey_and_counted(page):
    found = ss.validate(*perfect(60), n_bins=12, tolerance=1.5)
    (plan, _) = plan_local(gather(found))
    ((caption, paint),) = plan.parts
    grey = found.local["u"].says_nothing(1.5)
    assert 1 < grey.sum() < grey.size
    assert f"; {grey.sum()} grey bins have too few rows to tell." in caption
    ax = mpl.figure.Figure().subplots()
    paint(ax=ax)
    (line,) = [each for each in ax.lines if each.get_label() == "cannot tell"]
    np.testing.assert_array_equal(line.get_ydata(), found.local["u"].zms[grey])
    assert line.get_color() == "#999999"
    # of a typical bin of the large set, something is known
    assert "grey bin" not in section(page, "Local calibration").split("<h3>")[1]
    assert "Grey bins cannot be judged" in text_of(page)


def as_table(u, features):
    return pl.DataFrame({"u": u, **features})


def test_rows_that_were_learned_from_are_counted():
    error, u, features = perfect(2000)
    options = {"recalibrated": u, "calibration": (as_table(u, features), error)}
    (first, *rest) = cautions(evidence_of(error, u, features, **options))
    assert first.heading == SAME
    assert "All 2,000 judged rows" in first.text
    assert [each.heading for each in rest] == ALWAYS
    other = perfect(2000, seed=1)
    half = np.arange(2000) < 900
    mixed = [np.where(half, a, b) for a, b in zip((error, u), other, strict=False)]
    found = cautions(
        evidence_of(*mixed, features, **options | {"recalibrated": mixed[1]})
    )
    assert "900 of the 2,000 judged rows" in found[0].text


def test_two_honest_sets_are_neither_the_same_nor_shifted_but_a_shifted_one_is():
    error, u, features = perfect(2000)
    error2, u2, features2 = perfect(2000, seed=1)
    calibration = (as_table(u2, features2), error2)
    options = {"recalibrated": u, "calibration": calibration}
    assert headings(error, u, features, **options) == ALWAYS
    moved = {"x": features["x"] + 1}
    (first, *rest) = cautions(evidence_of(error, u, moved, **options))
    assert first.heading == SHIFTED
    assert "They differ in x (distance 0." in first.text
    assert [each.heading for each in rest] == ALWAYS


def test_labels_never_seen_are_named():
    error, u, _ = perfect(2000)
    kinds = np.resize(["a", "b", "c"], 2000)
    calibration = (as_table(u, {"kind": np.resize(["a", "b"], 2000)}), error[::-1])
    found = cautions(
        evidence_of(error, u, {"kind": kinds}, recalibrated=u, calibration=calibration)
    )
    assert "33.3\xa0% of the rows have labels never seen: c" in found[0].text


def test_what_the_report_was_not_told_it_says():
    error, u, features = perfect(2000)
    assert headings(error, u, features, recalibrated=u) == [SAME, *ALWAYS]


def test_a_likelihood_that_gets_worse_is_said():
    error, u, features = perfect(2000)
    found = headings(error, u, features, recalibrated=3 * u)
    assert "That recalibration made the uncertainties better." in found


def test_features_that_were_not_examined_are_named():
    error, u, features = perfect(2000)
    assert headings(error, u)[0].startswith("That uncertainties are right for every")
    table = as_table(u, {**features, "y": features["x"]})
    found = headings(
        error, u, features, recalibrated=u, calibration=(table, error[::-1])
    )
    assert "Anything about y." in found


def test_groups_that_are_too_small_are_said_by_the_report_without_a_warning():
    error, u, _ = perfect(2000)
    kinds = np.array(["large"] * 1998 + ["small"] * 2)
    with pytest.warns(FewerBinsWarning, match="1 of 2 groups of `kind`"):
        found = ss.validate(error, u, {"kind": kinds})
    said = {c.heading: c.text for c in cautions(gather(found, recalibrated=found))}
    noted = said["That every bin and group was judged."]
    assert "1 of 2 groups of `kind` have fewer than 5 rows" in noted
    # nor can anything be told of them by their label
    assert "grouped by kind, could be too small by a factor of 6 or more" in said[FEW]


def test_cautions_are_on_the_page(page, evidence):
    shown = text_of(section(page, "What you should not conclude"))
    found = cautions(evidence)
    for caution in found:
        assert " ".join(f"{caution.heading} {caution.text}".split()) in shown
    assert f"{len(found)} cautions apply" in text_of(page)


# --- wrong input --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (
            {"recalibrated": SCALED},
            r"`recalibrated` must be what `validate` returns; found ndarray\. Call "
            r"ss\.validate\(error, uncertainty, features\) first",
        ),
        ({"scaler": SCALER}, "`recalibrated` must be given with `scaler`"),
        (
            {"scaler": ss.RakedScaling(), "recalibrated": AFTER},
            r"`scaler` must be a fitted recalibrator; found RakedScaling\(\)",
        ),
        (
            {"scaler": 3, "recalibrated": AFTER},
            "must be a fitted recalibrator; found 3",
        ),
        ({"calibration": 3}, r"`calibration` must be a pair \(X, y\)"),
        ({"comparison": "x"}, "`comparison` must be what `compare` returns; found str"),
        ({"title": None}, "`title` must be text; found None"),
        ({"names": "x"}, "`names` must be a mapping"),
        ({"rng": "x"}, "`rng` must be a seed"),
    ],
)
def test_wrong_arguments_are_refused(arguments, match):
    with pytest.raises(InvalidInputError, match=match):
        report_html(BEFORE, **arguments)


def test_rows_that_were_not_judged_are_refused_with_the_remedy(tmp_path):
    match = r"`validation` must be .*; found ndarray\. Call ss\.validate\(error, uncert"
    with pytest.raises(InvalidInputError, match=match):
        report_html(JUDGED[0])
    with pytest.raises(InvalidInputError, match=match):
        write_report(tmp_path / "report.html", JUDGED[0])
    with pytest.raises(InvalidInputError, match="found verdicts on a lazy frame"):
        report_html(dataclasses.replace(BEFORE, rows=None))


def test_verdicts_on_other_rows_or_features_are_refused():
    error, u, features = JUDGED
    other = ss.validate(error[::-1], SCALED, features, ties=u)
    with pytest.raises(InvalidInputError, match="found other errors, features or w"):
        report_html(BEFORE, recalibrated=other)
    other = ss.validate(error, SCALED, features.with_columns(pl.col("mass") + 1))
    with pytest.raises(InvalidInputError, match="found other errors, features or w"):
        report_html(BEFORE, recalibrated=other)
    other = ss.validate(error, SCALED, features.drop("phase"))
    with pytest.raises(InvalidInputError, match=r"features.*found mass and mass, phas"):
        report_html(BEFORE, recalibrated=other)


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_missing_package_is_named_with_the_remedy(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r'pip install "sigmascale\[cli\]"'):
        report_html(BEFORE)


def test_importing_the_report_loads_no_optional_package():
    code = (
        "import sys, sigmascale.report\n"
        "print({'matplotlib', 'jinja2', 'polars'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_candidates_that_were_not_tried_or_not_ranked_have_a_dash_in_the_table():
    results = {
        "candidate": ["none", "linear", "group"],
        "loss": [None, 0.4, None],
        "nll": [1.0, 0.5, None],
        "difference": [None, 0.0, None],
        "standard_error": [None, 0.0, None],
        "verdict": ["not ranked", "chosen: best", "needs labels"],
    }
    rows = tabulate_candidates(results, "linear").rows
    assert [[cell.text for cell in cells[:3]] for *_, cells in rows] == [
        ["–", "–", "1.0000"],
        ["0.4000", "0.0000 ± 0.0000", "0.5000"],
        ["–", "–", "–"],
    ]
    assert [cells[3].chosen for *_, cells in rows] == [False, True, False]
