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
import matplotlib.figure
import numpy as np
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV

import sigmascale as ss
from sigmascale.comparison import Comparison
from sigmascale.exceptions import (
    FewerBinsWarning,
    InvalidInputError,
    RepeatedRowsWarning,
    ZeroErrorBinWarning,
)
from sigmascale.report import report_html, write_report

DATA = ss.datasets.make_molecules(1600, seed=4)
# those of heavy molecules are far too small
U = DATA.uncertainty * np.where(DATA.mass > 120, 0.3, 1.0)
TABLE = pl.DataFrame(
    {
        "u": U,
        "mass": DATA.mass,
        "phase": np.where(DATA.mass > 120, "heavy", "light"),
    }
)
CAL, TEST = slice(0, 800), slice(800, 1600)
LEARNED = (TABLE[CAL], DATA.error[CAL])
JUDGED = (DATA.error[TEST], U[TEST], TABLE[TEST].drop("u"))
SCALER = ss.RakedScaling(n_bins=6, shrinkage=5.0).fit(*LEARNED)
SCALED = SCALER.predict(TABLE[TEST])
BEFORE = ss.validate(*JUDGED, tolerance=3)
AFTER = ss.validate(JUDGED[0], SCALED, JUDGED[2], ties=JUDGED[1], tolerance=3)
BOTH = {"recalibrated": AFTER, "scaler": SCALER, "calibration": LEARNED}


def judge(error, u, features=None, *, recalibrated=None, **options):
    """Return what a report takes: the verdicts before, and options with those after."""
    if recalibrated is not None:
        options["recalibrated"] = ss.validate(error, recalibrated, features, ties=u)
    return ss.validate(error, u, features), options


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


def verdicts_of(page):
    """The question, the sentence and the small print of each verdict, by column."""
    cards = page[: page.index("<h2>Reliability</h2>")].split('<div class="card">')[1:]
    item = r"<strong>(.*?)</strong>(.*?)(?:<small>(.*?)</small>)?\s*</div></li>"
    return [
        [tuple(map(text_of, found)) for found in re.findall(item, card, re.DOTALL)]
        for card in cards
    ]


def captions(page, heading):
    """What stands below the pictures of a section."""
    found = re.findall(r"<figcaption>(.*?)</figcaption>", section(page, heading))
    return [text_of(each) for each in found]


def cautions(page):
    """Headings and texts of what one should not conclude."""
    shown = section(page, "What you should not conclude")
    item = r"<li><strong>(.*?)</strong>(.*?)</li>"
    found = re.findall(item, shown, flags=re.DOTALL)
    return {text_of(heading): text_of(text) for heading, text in found}


def methods_of(page):
    """The paragraphs on methods, and the references that they cite."""
    shown = section(page, "Methods")
    return tuple(
        [text_of(each) for each in re.findall(rf"<{tag}>(.*?)</{tag}>", shown)]
        for tag in ("p", "li")
    )


def test_predictions_are_judged_and_reported_as_verdicts_on_them_are():
    rows = ss.Predictions(error=JUDGED[0], y_std=JUDGED[1], features=JUDGED[2])
    new = ss.Predictions(error=JUDGED[0], y_std=SCALED, features=JUDGED[2])
    page = report_html(rows, recalibrated=new, scaler=SCALER)
    before, after = ss.validate(rows), ss.validate(new, ties=rows.uncertainty)
    assert page == report_html(before, recalibrated=after, scaler=SCALER)


def test_predictions_bring_their_times():
    error, u, _ = JUDGED
    rows = ss.Predictions(error=error, y_std=u, time=np.arange(error.size))
    assert '<section id="time">' in report_html(rows)


@pytest.fixture
def words_only(monkeypatch):
    """Draw nothing, which takes most of the time."""
    empty = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>'
    monkeypatch.setattr(
        mpl.figure.Figure, "savefig", lambda _, file, **__: file.write(empty)
    )


@pytest.fixture(scope="module")
def page():
    return report_html(BEFORE, **BOTH, title="My test set", names={"file": "t.csv"})


# --- what is on the page ------------------------------------------------------------


def test_there_is_no_section_on_time_if_times_are_not_known(page):
    assert "Over time" not in page
    assert "martingales" not in page


def test_verdicts_come_first_and_are_those_of_validate(page):
    text = text_of(page)
    first = text.index("Scores")
    for found in (BEFORE, AFTER):
        for verdict in found.verdicts.values():
            assert 0 < text.index(verdict.sentence) < first
    marks = marks_of(page)
    shown = [v.answer for found in (BEFORE, AFTER) for v in found.verdicts.values()]
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
    about = ["bias", "average", "level", "mass", "phase", "combination", "95 %"]
    for shown, found in zip(verdicts_of(page), (BEFORE, AFTER), strict=True):
        verdicts = found.verdicts.values()
        for (question, sentence, note), verdict, word in zip(
            shown, verdicts, about, strict=True
        ):
            assert question.endswith("?")
            assert word in question
            assert sentence == verdict.sentence
            assert re.search(r"\d", note)


def test_the_small_print_has_what_a_verdict_rests_on(page):
    before, after = (
        {name: note for name, (*_, note) in zip(found.verdicts, shown, strict=True)}
        for shown, found in zip(verdicts_of(page), (BEFORE, AFTER), strict=True)
    )
    failed = BEFORE.verdicts["mass"]
    low, high = failed.region.interval
    assert failed.answer == "no"
    assert f"{failed.region.n:,} rows" in before["mass"]
    assert f"{low:.2g} and {high:.2g}" in before["mass"]
    assert f"p = {failed.p_adjusted:.3f}" in before["mass"]
    score = f"S = {failed.score:.3f}, attainable {failed.target:.3f} ± "
    assert score in before["mass"]
    passed = AFTER.verdicts["u"]
    assert passed.answer == "yes"
    assert re.search(f"off by a factor of {passed.at_most:.3g} at most", after["u"])
    assert re.match(r"interval at 99\.25 %; .* factor of ", after["average"])
    assert "p =" not in after["average"]
    assert "S = " not in after["joint"]
    assert re.match("interval at 99.88 %; corrected p = ", after["bias"])


@pytest.fixture(scope="module")
def few():
    """Verdicts on a few rows: six questions."""
    return ss.validate(*perfect(60))


def answered(found, answers):
    """Verdicts with other answers."""
    given = zip(found.verdicts.items(), answers, strict=True)
    verdicts = {
        name: dataclasses.replace(each, answer=answer) for (name, each), answer in given
    }
    return dataclasses.replace(found, verdicts=verdicts)


def headline(page):
    return re.search(r'<p class="headline (\w+)">(.*?)</p>', page).groups()


@pytest.mark.parametrize(
    ("answers", "mark", "words"),
    [
        (["yes"] * 4 + ["no", "cannot tell"], "no", "4 of 6 .*yes, 1 no, 1 cannot"),
        (["yes"] * 6, "yes", "All 6 .*yes"),
        (["no"] * 6, "no", "All 6 .*no"),
        (["cannot tell"] * 6, "unsure", "None of the 6 "),
        (["yes"] * 5 + ["no"], "no", "5 of 6 .*yes, 1 no"),
        (["no"] * 2 + ["cannot tell"] * 4, "no", "None of 6 .*yes, 2 no, 4 cannot"),
    ],
)
def test_the_report_shows_and_counts_the_answers_that_it_is_given(
    answers, mark, words, few, words_only
):
    page = report_html(answered(few, answers))
    assert [answer for *_, answer in marks_of(page)[:-3]] == answers
    assert headline(page)[0] == mark
    assert re.match(words, headline(page)[1])


def test_the_headline_is_that_of_the_end_and_names_the_beginning(few, words_only):
    before, after = ["yes"] * 2 + ["no"] * 4, ["yes"] * 6
    page = report_html(answered(few, before), recalibrated=answered(few, after))
    assert headline(page)[0] == "yes"
    assert re.match("After .*6.* Before it, 2 of 6 .*4 no", headline(page)[1])


def test_sixty_rows_cannot_tell_and_the_report_says_what_could_hide(few, words_only):
    assert few.answer == "cannot tell"
    vague = {"limits": (0.2, 4.5)}
    unseen = dataclasses.replace(few.verdicts["u"], **vague)
    page = report_html(dataclasses.replace(few, verdicts=few.verdicts | {"u": unseen}))
    assert headline(page)[0] == "unsure"
    assert ("unsure", "?", "cannot tell") in marks_of(page)[:-3]
    (shown,) = verdicts_of(page)
    _, sentence, note = shown[list(few.verdicts).index("u")]
    assert sentence == few.verdicts["u"].sentence
    assert "off by a factor of 5 at most" in note
    assert "rows would tell" in sentence


def test_sections_stand_in_their_order(page):
    assert re.findall(r"<h2>(.*?)</h2>", page) == [
        "Before",
        "After",
        "Reliability",
        "Scores",
        "Local calibration",
        "Confidence curve",
        "Tails",
        "Errors against uncertainties",
        "How the uncertainties were recalibrated",
        "What you should not conclude",
        "Methods",
    ]


def test_scores_stand_beside_what_is_attainable(page):
    table = text_of(section(page, "Scores").replace("</t", " </t"))
    for name in ("NLL", "S_cal", "S_u", "S_mass", "S_phase", "S_tot", "ENCE_mass"):
        row = table[table.index(f"{name} ") :]
        for found in (BEFORE, AFTER):
            target = found.reference.mean[name], found.reference.sd[name]
            row = row[row.index(f"{found.scores[name]:.3f}") :]
            assert f"{target[0]:.3f} ± {target[1]:.3f}" in row[:40]
    for found in (BEFORE, AFTER):
        assert f"{100 * found.local['mass'].fraction_valid:.0f} %" in table


def test_the_figures_of_the_field_are_drawn_and_their_captions_have_the_numbers(page):
    assert len(svgs(section(page, "Reliability"))) == 3  # there are errors alone
    diagram, curve, _ = captions(page, "Reliability")
    for name, rows in (("before", BEFORE.rows), ("after", AFTER.rows)):
        assert f"{ss.reliability_diagram(rows).ence:.2f} {name}" in diagram
        assert f"{ss.miscalibration_area(rows):.3f} {name}" in curve


def test_predictions_are_drawn_against_truths_where_they_are_known(words_only):
    rows = ss.datasets.load_diabetes().test
    page = report_html(ss.validate(rows, n_draws=60, method="moments"))
    *_, shown = captions(page, "Reliability")
    assert "predictions with intervals of 90 %" in shown


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


def test_a_set_as_it_is_has_one_column_and_no_recalibration(words_only):
    page = report_html(BEFORE)
    assert re.findall(r"<h2>(.*?)</h2>", page)[:2] == ["As they are", "Reliability"]
    assert "recalibrated" not in text_of(page)
    assert len(svgs(page)) == 3 + 3 + 2


def test_a_set_without_features_and_with_two_rows_is_reported():
    page = page_of([0.1, -0.3], [0.1, 0.2])
    assert "No feature was examined" in text_of(page)
    assert len(svgs(page)) == 3 + 3


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
    assert len(drawn) == 3 + 2 * 3 + 2 * 2 + 3
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


@pytest.mark.slow
def test_ten_features_stay_below_three_megabytes():
    rng = np.random.default_rng(0)
    n = 2500
    features = {f"feature {i}": rng.normal(size=n) for i in range(10)}
    u = rng.uniform(1, 2, n)
    page = page_of(rng.normal(scale=u), u, features, recalibrated=1.1 * u)
    assert len(svgs(page)) == 3 + 2 * 11 + 2 * 2 + 11
    assert len(page.encode()) < 3_000_000


def test_clouds_are_thinned_and_the_caption_says_so():
    rng = np.random.default_rng(0)
    u = rng.uniform(1, 2, 5000)
    page = page_of(rng.normal(scale=u), u)
    errors = section(page, "Errors against uncertainties")
    assert "2,000 of 5,000 rows" in text_of(errors)
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
            comparison=Comparison(rows, NASTY[0], tuple(NASTY[1:3]), "rows"),
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
        (ss.TemperatureScaling(), "The factor is 1.", 0),
        (ss.LinearScaling(), "a = 0 ", 3),
        (ss.IsotonicScaling(), "isotonic fit", 3),
        (ss.BinwiseScaling(5), "The factors of 5 bins", 1),
        (ss.BinwiseScaling(3, by=("u", "mass")), "The factors of 9 bins", 3),
        (ss.BinwiseScaling(5, by="mass"), "The factors of 5 bins", 1),
        (ss.CategoryScaling(by="phase"), "2 categories have a factor", 1),
        (ss.RakedScaling(5, pairs=[(0, 1)], shrinkage=5.0), "joint bins: u & mass", 3),
        (ss.BoostedScaling(max_trees=5), "boosters of", 3),
    ],
    ids=lambda each: type(each).__name__,
)
def test_every_recalibrator_is_described_and_its_factors_drawn(
    scaler, words, n_pictures, words_only
):
    scaler.fit(*LEARNED)
    page = report_html(BEFORE, recalibrated=AFTER, scaler=scaler)
    about = section(page, "How the uncertainties were recalibrated")
    assert len(svgs(about)) == n_pictures
    assert words in scaler.describe()
    assert " ".join(scaler.describe().split()) in text_of(about)
    (_, _, recalibration), references = methods_of(page)
    assert f" {type(scaler).__name__}(" in recalibration
    assert scaler.does in recalibration
    for each in scaler.references:
        assert any(found.startswith(each) for found in references)


def test_a_selection_shows_every_candidate_with_its_verdict(words_only):
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


def test_recalibrators_fitted_on_arrays_get_the_names_of_the_features(words_only):
    X = np.column_stack([DATA.uncertainty, DATA.mass])
    scaler = ss.RakedScaling(5, shrinkage=5.0).fit(X[CAL], DATA.error[CAL])
    page = page_of(
        *JUDGED[:2],
        {"weight": DATA.mass[TEST]},
        recalibrated=scaler.predict(X[TEST]),
        scaler=scaler,
        calibration=(X[CAL], DATA.error[CAL]),
    )
    factors = captions(page, "How the uncertainties were recalibrated")
    assert len(factors) == 2
    assert "weight" in factors[1]
    assert "X1" not in text_of(page)
    assert not any("about" in heading for heading in cautions(page))  # all is examined


def test_a_calibration_set_with_fewer_columns_leaves_the_others_numbered(words_only):
    given = (TABLE[CAL].select("u"), DATA.error[CAL])
    page = report_html(BEFORE, recalibrated=AFTER, scaler=SCALER, calibration=given)
    factors = captions(page, "How the uncertainties were recalibrated")
    for caption, name in zip(factors, ("uncertainty u", "X1", "X2"), strict=True):
        assert caption.endswith(f" {name}.")


def test_a_method_of_ones_own_is_reported_by_its_ratios(words_only):
    class Mine:
        def predict(self, X):
            return X

    page = report_html(BEFORE, recalibrated=AFTER, scaler=Mine())
    about = section(page, "How the uncertainties were recalibrated")
    assert "Mine" in text_of(about)
    assert len(svgs(about)) == 3
    page = report_html(BEFORE, recalibrated=AFTER)
    assert "not told by what method" in text_of(page)


def test_a_recalibrator_of_ones_own_is_drawn_and_described_without_being_known(
    words_only,
):
    class Doubled(ss.BinwiseScaling):
        does = "uncertainties are doubled by a rule of the house"
        references = ("The House, Rules (2020).",)

    scaler = Doubled(5, by="mass").fit(*LEARNED)
    page = report_html(BEFORE, recalibrated=AFTER, scaler=scaler)
    about = section(page, "How the uncertainties were recalibrated")
    assert "Uncertainties are doubled by a rule of the house." in text_of(about)
    assert len(svgs(about)) == 1
    assert "The House, Rules (2020)." in text_of(section(page, "Methods"))


def test_a_search_of_another_library_is_not_taken_for_a_selection(words_only):
    search = GridSearchCV(ss.BinwiseScaling(), {"n_bins": [2, 5]}, cv=2).fit(*LEARNED)
    page = report_html(BEFORE, recalibrated=AFTER, scaler=search)
    about = section(page, "How the uncertainties were recalibrated")
    assert "Why this method" not in about
    assert len(svgs(about)) == 3  # ratios: it has no map of its own


def test_a_comparison_becomes_a_table_with_fewer_columns_for_many_features(words_only):
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
        *("method", "NLL", "S_cal", "S_u", "S_ada", "S_tot", "valid u", "least valid"),
        "CRPS, difference",
    ]
    # what is said depends on the table, however few features are judged
    page = page_of(LEARNED[1], X["u"], comparison=table)
    assert "S_ada sums" in text_of(section(page, "Comparison of methods"))


# --- methods ------------------------------------------------------------------------


def test_methods_state_the_actual_numbers(page):
    (judging, scoring, recalibration), references = methods_of(page)
    bins = AFTER.local["u"].n.size
    for words in (
        f"sigmascale {ss.__version__}",
        "800 predictions",
        "7 questions .*5 %",
        "15 % .*average",
        "99.25 % interval of ⟨Z²⟩",
        "Student's t",
        "2.5 % .*bias",
        "99.88 % interval of the mean of z",
        "80 % .*scans",
        "400 bins",
        "tenth of the rows",
        f"{AFTER.reach:.3g}u.* 95 %",
        "gradient boosting",
        "400 sets .*shuffled",
        "factor of 3 ",
        "seed 0",
    ):
        assert re.search(words, judging), words
    assert "groups" not in judging
    for words in (
        f" {bins} .* bins of u",
        f" {bins} .* bins of mass .* 2 groups of phase",
        "200 simulated",
        "1.96u",
    ):
        assert re.search(words, scoring), words
    assert "n_bins=6" in recalibration
    assert "shrinkage=5.0" in recalibration
    assert "800 rows, none of them judged" in recalibration
    cited = [
        int(number)
        for paragraph in (judging, scoring, recalibration)
        for marks in re.findall(r"\[([\d, ]+)\]", paragraph)
        for number in marks.split(", ")
    ]
    # numbered as they are first cited, each once
    assert list(dict.fromkeys(cited)) == list(range(1, len(references) + 1))
    assert len(set(references)) == len(references)
    for name in ("Pernot", "Efron", "DiCiccio", "Westfall", "Friedman", "Deming"):
        assert any(name in each for each in references)


def test_methods_state_groups_and_leave_out_what_was_not_asked(words_only):
    error, u, features = perfect(400)
    groups = np.repeat(np.arange(100), 4)
    found = ss.validate(error, u, features, groups=groups, joint=False, tolerance=3)
    page = report_html(found)
    (judging, _), _ = methods_of(page)
    assert "100 groups" in judging
    assert "groups were kept together" in judging
    assert "5 questions" in judging
    assert "gradient boosting" not in judging
    assert "factor of 3 " in judging
    assert "<dt>groups of rows</dt><dd>100</dd>" in page
    assert "rows as independent" in text_of(section(page, "Tails"))
    (judging, scoring), _ = methods_of(page_of(error[:9], u[:9]))
    assert "too few rows" in judging
    assert "Tails" not in scoring


def test_the_rows_learned_from_are_stated_where_only_the_recalibrator_knows_them(
    words_only,
):
    page = report_html(BEFORE, recalibrated=AFTER, scaler=SCALER)
    assert "fitted on 800 rows" in methods_of(page)[0][2]


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("bca", r"BCa bootstrap \[\d\], 60 resamples"),
        ("bootstrap-t", "bootstrap-t, 60 resamples"),
        ("student", "Student's t"),
        ("moments", "closed form of the BCa bootstrap"),
    ],
)
def test_methods_say_how_the_verdicts_that_were_given_were_made(
    method, words, words_only
):
    found = ss.validate(*JUDGED, method=method, n_resamples=60, rng=7)
    (judging, scoring), references = methods_of(report_html(found))
    assert re.search(words, scoring), scoring
    assert "seed 7" in judging
    assert any("DiCiccio" in each for each in references)


def test_methods_know_no_seed_of_a_generator(words_only):
    found = ss.validate(*JUDGED, method="moments", rng=np.random.default_rng(0))
    assert "seed" not in methods_of(report_html(found))[0][0]


def test_references_link_to_their_identifier(page):
    links = re.findall(r'<a href="(https://[^"]*)"', page)
    assert "https://arxiv.org/abs/2310.11978" in links
    assert "https://doi.org/10.1080/01621459.1987.10478410" in links


# --- cautions -----------------------------------------------------------------------


# A few words of the heading of each caution.
ALWAYS = ["single bin", "a proof"]
FEW = "rules out large faults"
SAME = "on other rows"
SHIFTED = "like those the recalibrator learned from"
HEAVY = "±2u holds 95 %"
DOUBTED = "the average can be trusted"
REPEATS = "rows are independent"
KNOWN = [*ALWAYS, FEW, SAME, SHIFTED, HEAVY, DOUBTED, REPEATS]


def cautions_of(*args, **kwargs):
    """The text of each caution, by the words of its heading that are known here."""
    found = cautions(page_of(*args, **kwargs))
    return {
        next((words for words in KNOWN if words in heading), heading): text
        for heading, text in found.items()
    }


def perfect(n, seed=0):
    rng = np.random.default_rng([20, seed])
    u, x = rng.uniform(1, 2, n), rng.normal(size=n)
    return rng.normal(scale=u), u, {"x": x}


def test_a_large_normal_set_gets_only_the_cautions_that_always_apply(words_only):
    assert list(cautions_of(*perfect(2000))) == ALWAYS


def test_a_few_rows_are_said_to_be_few_with_what_they_cannot_tell(few, words_only):
    found = cautions_of(*perfect(60))
    assert list(found) == [FEW, *ALWAYS]
    known = [few.verdicts[name].at_most for name in ("u", "x")]
    assert "60 rows" in found[FEW]
    assert known == [None, None]  # of no tenth of so few rows
    assert "only gross faults" in found[FEW]


def test_many_rows_in_which_large_faults_could_hide_are_said_too(words_only):
    found = ss.validate(*perfect(2000))
    vague = dataclasses.replace(found.verdicts["x"], limits=(0.6, 2.5))
    judged = dataclasses.replace(found, verdicts=found.verdicts | {"x": vague})
    (heading, text), *_ = cautions(report_html(judged)).items()
    assert FEW in heading
    assert re.search("by x,.* 2.5", text)


def test_heavy_tails_are_said_and_doubted_where_the_average_has_an_answer(words_only):
    rng = np.random.default_rng(0)
    z, u = rng.standard_t(3, 3000), np.ones(3000)
    features = {"x": rng.normal(size=3000)}
    average = ss.validate(z, u, features).verdicts["average"]
    assert not ss.tails(z, u).zms_is_reliable
    doubted = [] if average.answer == "cannot tell" else [DOUBTED]
    assert list(cautions_of(z, u, features)) == [HEAVY, *doubted, *ALWAYS]
    # errors three times as large leave no doubt of the answer, but of what it rests on
    assert list(cautions_of(3 * z, u, features)) == [HEAVY, DOUBTED, *ALWAYS]


def test_bias_is_said_by_its_verdict_alone(words_only):
    error, u, features = perfect(2000)
    assert ss.validate(error + u, u, features).verdicts["bias"].answer == "no"
    assert list(cautions_of(error + u, u, features)) == ALWAYS


def test_repeats_without_groups_are_said_and_with_groups_are_not(words_only):
    u = np.repeat(perfect(300)[1], 4)
    error = np.random.default_rng(3).normal(scale=u)
    with pytest.warns(RepeatedRowsWarning):
        found = cautions_of(error, u)
    assert "No groups" in found[REPEATS]
    judged = ss.validate(error, u, groups=np.repeat(np.arange(300), 4))
    found = cautions(report_html(judged))
    assert not any(REPEATS in heading for heading in found)
    assert "300 groups" in list(found.values())[-1]


def test_questions_are_counted_in_the_caution_that_a_yes_is_no_proof(words_only):
    text = cautions_of(*perfect(2000))["a proof"]
    assert "6 questions" in text
    assert "independent" in text


# --- tails and grey bins ------------------------------------------------------------


def test_tails_are_those_of_the_library_before_and_after(page):
    shown = text_of(section(page, "Tails").replace("</t", " </t"))
    assert "before after right" in shown
    for u in (JUDGED[1], SCALED):
        found = ss.tails(JUDGED[0], u)
        share = found.coverage
        limits = f"[{100 * share.low:.1f}, {100 * share.high:.1f}]"
        assert f"{100 * share.picp:.1f} % {limits}" in shown
        assert f"{found.skewness_z2:.3f}" in shown
        for sentence in found.sentences:
            assert sentence in shown


def test_heavy_tails_make_the_report_doubt_the_average(words_only):
    rng = np.random.default_rng(0)
    heavy = page_of(rng.standard_t(2.2, 2000), np.ones(2000))
    said = '<p class="notice">'
    assert said in section(heavy, "Tails")
    assert said not in section(page_of(*perfect(2000)), "Tails")


@pytest.mark.parametrize("error", [np.zeros(40), np.linspace(-1, 1, 12)])
def test_there_is_no_section_on_tails_where_there_are_none(error, words_only):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of bins without any error
        found = ss.validate(error, 1 + 0.01 * np.arange(error.size))
    assert "<h2>Tails</h2>" not in report_html(found)


def test_bins_that_could_be_off_both_ways_are_drawn_grey_and_counted(page):
    found = ss.validate(*perfect(60), n_bins=12, tolerance=1.5)
    small = report_html(found)
    grey = found.local["u"].says_nothing(1.5)
    assert 1 < grey.sum() < grey.size
    assert f"{grey.sum()} grey bins" in captions(small, "Local calibration")[0]
    greys = [
        each
        for each in svgs(section(small, "Local calibration"))[0].iter("g")
        if "grey" in each.get("style", "")
    ]
    assert max(len(list(each.iter("use"))) for each in greys) == grey.sum()
    # of a typical bin of the large set, something is known
    assert "grey bin" not in captions(page, "Local calibration")[0]


def as_table(u, features):
    return pl.DataFrame({"u": u, **features})


def test_rows_that_were_learned_from_are_counted(words_only):
    error, u, features = perfect(2000)
    options = {"recalibrated": u, "calibration": (as_table(u, features), error)}
    found = cautions_of(error, u, features, **options)
    assert list(found) == [SAME, *ALWAYS]
    assert "All 2,000 " in found[SAME]
    other = perfect(2000, seed=1)
    half = np.arange(2000) < 900
    mixed = [np.where(half, a, b) for a, b in zip((error, u), other, strict=False)]
    found = cautions_of(*mixed, features, **options | {"recalibrated": mixed[1]})
    assert "900 of the 2,000 " in found[SAME]


def test_two_honest_sets_are_neither_the_same_nor_shifted_but_a_shifted_one_is(
    words_only,
):
    error, u, features = perfect(2000)
    error2, u2, features2 = perfect(2000, seed=1)
    calibration = (as_table(u2, features2), error2)
    options = {"recalibrated": u, "calibration": calibration}
    assert list(cautions_of(error, u, features, **options)) == ALWAYS
    found = cautions_of(error, u, {"x": features["x"] + 1}, **options)
    assert list(found) == [SHIFTED, *ALWAYS]
    assert re.search(r"in x \(distance 0\.", found[SHIFTED])


def test_labels_never_seen_are_named(words_only):
    error, u, _ = perfect(2000)
    kinds = np.resize(["a", "b", "c"], 2000)
    calibration = (as_table(u, {"kind": np.resize(["a", "b"], 2000)}), error[::-1])
    options = {"recalibrated": u, "calibration": calibration}
    found = cautions_of(error, u, {"kind": kinds}, **options)
    assert re.search("33.3 % .* never seen: c", found[SHIFTED])


def test_what_the_report_was_not_told_it_says(words_only):
    error, u, features = perfect(2000)
    found = cautions_of(error, u, features, recalibrated=u)
    assert list(found) == [SAME, *ALWAYS]


def test_a_likelihood_that_gets_worse_is_said(words_only):
    error, u, features = perfect(2000)
    found = cautions_of(error, u, features, recalibrated=3 * u)
    assert any("better" in heading for heading in found)
    found = cautions_of(3 * error, u, features, recalibrated=3 * u)
    assert not any("better" in heading for heading in found)


def test_features_that_were_not_examined_are_named(words_only):
    error, u, features = perfect(2000)
    (first, *_) = cautions_of(error, u)
    assert "right for every" in first
    table = as_table(u, {**features, "y": features["x"]})
    options = {"recalibrated": u, "calibration": (table, error[::-1])}
    found = cautions_of(error, u, features, **options)
    assert any(heading.endswith("about y.") for heading in found)


def test_groups_that_are_too_small_are_said_by_the_report_without_a_warning(words_only):
    error, u, _ = perfect(2000)
    kinds = np.array(["large"] * 1998 + ["small"] * 2)
    with pytest.warns(FewerBinsWarning, match="1 of 2 groups of `kind`"):
        found = ss.validate(error, u, {"kind": kinds})
    said = cautions(report_html(found, recalibrated=found))
    (noted,) = (text for heading, text in said.items() if "was judged" in heading)
    assert re.search("1 of 2 groups of `kind` .* 5 rows", noted)


def test_cautions_are_counted_above(page):
    assert f"{len(cautions(page))} cautions" in text_of(page)


# --- wrong input --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (
            {"recalibrated": SCALED},
            r"`recalibrated` .*found ndarray.*ss\.validate\(error, uncertainty",
        ),
        ({"scaler": SCALER}, "`recalibrated` .*`scaler`"),
        (
            {"scaler": ss.RakedScaling(), "recalibrated": AFTER},
            r"`scaler` .*fitted .*RakedScaling\(\)",
        ),
        (
            {"scaler": 3, "recalibrated": AFTER},
            "`scaler` .*found 3",
        ),
        ({"calibration": 3}, r"`calibration` .*\(X, y\)"),
        ({"comparison": "x"}, "`comparison` .*`compare` .*found str"),
        ({"title": None}, "`title` .*found None"),
        ({"names": "x"}, "`names` .*mapping"),
        ({"rng": "x"}, "`rng` .*seed"),
    ],
)
def test_wrong_arguments_are_refused(arguments, match):
    with pytest.raises(InvalidInputError, match=match):
        report_html(BEFORE, **arguments)


def test_rows_that_were_not_judged_are_refused_with_the_remedy(tmp_path):
    match = r"`validation` .*found ndarray.*ss\.validate\(error, uncert"
    with pytest.raises(InvalidInputError, match=match):
        report_html(JUDGED[0])
    with pytest.raises(InvalidInputError, match=match):
        write_report(tmp_path / "report.html", JUDGED[0])
    with pytest.raises(InvalidInputError, match="lazy frame"):
        report_html(dataclasses.replace(BEFORE, rows=None))


def test_verdicts_on_other_rows_or_features_are_refused():
    error, u, features = JUDGED
    other = ss.validate(error[::-1], SCALED, features, ties=u)
    with pytest.raises(InvalidInputError, match="other errors, features or w"):
        report_html(BEFORE, recalibrated=other)
    other = ss.validate(error, SCALED, features.with_columns(pl.col("mass") + 1))
    with pytest.raises(InvalidInputError, match="other errors, features or w"):
        report_html(BEFORE, recalibrated=other)
    other = ss.validate(error, SCALED, features.drop("phase"))
    with pytest.raises(InvalidInputError, match=r"features.*mass and mass, phas"):
        report_html(BEFORE, recalibrated=other)


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_missing_package_is_named_with_the_remedy(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r'pip install "\.\[cli\]" in a checkout'):
        report_html(BEFORE)


def test_importing_the_report_loads_no_optional_package():
    code = (
        "import sys, sigmascale.report\n"
        "print({'matplotlib', 'jinja2', 'polars'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_candidates_that_were_not_tried_or_not_ranked_have_a_dash_in_the_table(
    words_only,
):
    scaler = ss.SelectedScaling({"linear": ss.LinearScaling()}).fit(*LEARNED)
    scaler.cv_results_ = {
        "candidate": ["none", "linear", "group"],
        "loss": [None, 0.4, None],
        "nll": [1.0, 0.5, None],
        "difference": [None, 0.0, None],
        "standard_error": [None, 0.0, None],
        "verdict": ["not ranked", "chosen: best", "needs labels"],
    }
    page = report_html(BEFORE, recalibrated=AFTER, scaler=scaler)
    about = section(page, "How the uncertainties were recalibrated")
    rows = [
        [text_of(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", about, flags=re.DOTALL)[1:]
    ]
    assert [cells[:3] for cells in rows] == [
        ["–", "–", "1.0000"],
        ["0.4000", "0.0000 ± 0.0000", "0.5000"],
        ["–", "–", "–"],
    ]
    assert ["✓" in cells[3] for cells in rows] == [False, True, False]
