"""What the page says: the verdicts, numbers and names of its results, as text."""

import re
import subprocess
import sys
import warnings
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

import sigmascale as ss
from sigmascale.exceptions import InvalidInputError
from sigmascale.report import report_html, write_report


class Page(HTMLParser):
    """The elements of a page, with their text."""

    VOID = ("meta", "link", "br", "img", "wbr")

    def __init__(self, html):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "text": "", **dict(attributes)}
        self.elements.append(element)
        if tag not in self.VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.elements.append({"tag": tag, "text": "", **dict(attributes)})

    def handle_endtag(self, tag):
        while self.open and self.open.pop()["tag"] != tag:
            pass

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def of(self, tag, kind=None):
        return [
            each
            for each in self.elements
            if each["tag"] == tag and kind in (None, *each.get("class", "").split())
        ]

    def words(self, tag="body"):
        return " ".join(self.of(tag)[0]["text"].split())


def plain(text):
    return " ".join(text.split())


def test_the_headline_comes_first_and_then_a_sentence_for_each_question(whole, small):
    page = Page(small.page)
    (headline,) = page.of("p", "headline")
    assert plain(headline["text"]) == plain(small.before.headline)
    assert page.elements.index(headline) < page.elements.index(page.of("svg")[0])
    for case in (whole, small):
        last = case.after or case.before
        items = [
            each
            for each in Page(case.page).of("li")
            if {*each.get("class", "").split()} & {"yes", "no", "unsure"}
        ]
        assert len(items) == len(last.verdicts)
        for item, verdict in zip(items, last.verdicts.values(), strict=True):
            assert plain(verdict.sentence) in plain(item["text"])
            kind = {"cannot tell": "unsure"}.get(verdict.answer, verdict.answer)
            assert item["class"] == kind


def test_before_and_after_stand_in_one_line_and_beside_each_other(whole):
    from sigmascale.judging import headline_after

    words = Page(whole.page).words()
    assert plain(headline_after(whole.before, whole.after)) in words
    for name, verdict in whole.before.verdicts.items():
        assert plain(verdict.sentence) in words, name
    assert plain(whole.recalibrator.describe()) in words


def test_answers_have_a_sign_and_a_word(whole):
    marks = {
        (each["text"], each["aria-label"])
        for each in Page(whole.page).of("span", "mark")
    }
    assert marks <= {("✓", "yes"), ("✗", "no"), ("?", "cannot tell")}


def test_every_variable_is_drawn_and_the_one_at_fault_first(whole):
    assert whole.after is not None
    page = report_html(whole.before)
    titles = [each["text"] for each in Page(page).of("title")]
    variables = [x for x in titles if x in ("uncertainty u", *whole.before.rows.names)]
    assert sorted(variables) == sorted(["uncertainty u", *whole.before.rows.names[1:]])
    assert variables[0] == "kind"  # alloys are off by a factor of two


def test_scores_are_those_of_the_library_with_what_is_right(whole):
    rows = {}
    body = whole.page[whole.page.index("<h2>Scores") :]
    for name, cells in re.findall(
        r'<th scope="row"[^>]*>(.*?)</th>(.*?)</tr>', body, re.S
    ):
        name = plain(unescape(name.split("<small>")[0]))
        found = [unescape(x) for x in re.findall(r"<td>(.*?)</td>", cells)]
        rows.setdefault(name, found)
    for stage, column in ((whole.before, 0), (whole.after, 1)):
        for name in ("CRPS", "NLL", "S_u", "S_tot", "ENCE_u", "S_kind"):
            assert float(rows[name][column]) == pytest.approx(
                stage.scores[name], rel=6e-3
            )
        held = float(rows["held by intervals of 95 %"][column].rstrip("\xa0%"))
        assert held == pytest.approx(100 * stage.scores["within_95"], abs=0.06)
    right = whole.after.scores.reference.mean["S_u"]
    assert float(rows["S_u"][2].split(" ± ")[0]) == pytest.approx(right, rel=6e-3)
    tails = ss.scores.tails(whole.after.rows)
    assert float(rows["RCE"][1].split(" [")[0]) == pytest.approx(
        tails.rce.value, rel=6e-3
    )


def test_what_intervals_of_two_u_hold_is_said_once(whole, small):
    for case in (whole, small):
        words = Page(case.page).words()
        ((said, _),) = re.findall(r"([\d.]+) % (beyond|within) 2\s?u", words)
        beyond = 100 * np.mean(np.abs((case.after or case.before).rows.z) > 2)
        assert float(said) == pytest.approx(beyond, rel=6e-3)
        assert not re.findall(r"1\.96\s?u", words)


def test_size_groups_weights_and_features_are_told():
    rng = np.random.default_rng(0)
    u = rng.lognormal(size=300)
    p = ss.Predictions(
        error=rng.normal(scale=u),
        y_std=u,
        features={"mass": rng.normal(size=300)},
        groups=np.arange(300) // 3,
        weights=rng.uniform(1, 2, 300),
    )
    found = ss.validate(p)
    (facts,) = Page(report_html(found)).of("h1")
    for words in ("300 rows", "100 groups", f"{p.total:,.0f} rows in effect", "mass"):
        assert words in facts["text"]


def cautions(page):
    (found,) = Page(page).of("ul", "cautions")
    return found["text"]


def test_cautions_are_those_that_apply(whole, small):
    told = cautions(small.page)
    assert "30 rows" in told
    assert "no feature" in told
    assert "groups" not in told
    assert "30 rows" not in cautions(whole.page)
    assert "this report was not told" not in cautions(whole.page)
    assert "this report was not told" in cautions(
        report_html(whole.before, whole.after)
    )
    # the recalibrator knows a column that was not judged
    rows = whole.before.rows.with_features(["mass"])
    before = ss.validate(rows)
    after = ss.validate(rows.changed(y_std=2 * rows.y_std))
    page = report_html(before, after, recalibrator=whole.recalibrator)
    assert "kind" in cautions(page)


def test_repeats_without_groups_are_cautioned_against_and_with_groups_are_not():
    rng = np.random.default_rng(3)
    u, x = (np.repeat(rng.lognormal(size=100), 4) for _ in range(2))
    error = np.repeat(rng.normal(size=100), 4) * u
    rows = {"error": error, "y_std": u, "features": {"x": x}}
    groups = np.arange(400) // 4
    told = [
        cautions(report_html(ss.validate(ss.Predictions(**rows, **more))))
        for more in ({}, {"groups": groups})
    ]
    assert "repeats" in told[0]
    assert "repeats" not in told[1]


def test_a_likelihood_that_gets_worse_is_said(whole):
    worse = whole.before.rows.changed(y_std=10 * whole.before.rows.y_std)
    assert "likelihood is worse" in cautions(
        report_html(whole.before, ss.validate(worse))
    )
    assert "likelihood is worse" not in cautions(whole.page)


def test_names_of_all_kinds_are_text_and_no_element_nor_template(nasty):
    from .conftest import NASTY

    page = Page(nasty.page)
    text = page.words()
    for name in NASTY[:5]:
        start = plain(name)[:20]
        assert start in text, name
    assert "{{ 7 * 7 }}" in text
    assert "49 {%" not in text
    allowed = "html head meta link title style body header h1 h2 h3 p main section div"
    allowed += (
        " figure figcaption ul ol li span small strong table thead tbody tr th td"
    )
    allowed += " footer details summary svg g defs path use text tspan clippath desc"
    assert {each["tag"] for each in page.elements} <= set(allowed.split())
    assert not any(key.startswith("on") for each in page.elements for key in each)
    assert not re.search("[\x00-\x08\x0e-\x1f\u202a-\u202e]", nasty.page)


def test_the_page_refers_to_nothing_outside_and_its_identifiers_are_unique(whole):
    page = Page(whole.page)
    for element in page.elements:
        for key in ("src", "href", "xlink:href", "clip-path"):
            value = element.get(key, "#")
            assert value.startswith(("#", "data:,", "url(#")), (element["tag"], value)
    names = [each["id"] for each in page.elements if "id" in each]
    assert len(names) == len(set(names))
    for target in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', whole.page):
        assert "".join(target) in names
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", whole.page)
    assert "default-src 'none'" in whole.page


def test_every_picture_has_a_title_a_description_and_text_that_can_be_searched(whole):
    page = Page(whole.page)
    pictures = page.of("svg")
    assert len(pictures) >= 10
    for picture in pictures:
        assert picture["role"] == "img"
        assert picture["class"] == "plot"
    assert len(page.of("desc")) == len(pictures)
    assert len(page.of("text")) > 10 * len(pictures)
    assert len(page.of("figcaption")) == len(pictures)


def test_the_same_input_gives_the_same_bytes_in_another_process(small, tmp_path):
    code = (
        "import sys, numpy as np, sigmascale as ss, matplotlib\n"
        "matplotlib.rcParams['font.size'] = 30\n"
        "rng = np.random.default_rng(1)\n"
        "u = rng.lognormal(size=30)\n"
        "p = ss.Predictions(error=rng.normal(scale=u), y_std=u)\n"
        "ss.report.write_report(sys.argv[1], ss.validate(p))\n"
    )
    path = tmp_path / "a.html"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, path], check=True)
    assert path.read_text("utf-8") == small.page


def test_no_global_setting_changes(small):
    import matplotlib

    before = dict(matplotlib.rcParams)
    report_html(small.before)
    assert dict(matplotlib.rcParams) == before


def test_the_file_is_written_whole_or_not_at_all(small, tmp_path):
    path = tmp_path / "new" / "r.html"
    write_report(path, small.before, title="First")
    assert "First" in path.read_text("utf-8")
    with pytest.raises(InvalidInputError, match="after"):
        write_report(path, small.before, small.before.rows)
    assert "First" in path.read_text("utf-8")
    assert [each.name for each in path.parent.iterdir()] == ["r.html"]


def test_many_features_stay_small_and_those_not_drawn_are_counted():
    rng = np.random.default_rng(0)
    u = rng.lognormal(size=3000)
    features = {f"x{i}": rng.normal(size=3000) for i in range(15)}
    p = ss.Predictions(error=rng.normal(scale=u), y_std=u, features=features)
    page = report_html(ss.validate(p))
    assert len(page) < 3_000_000
    assert "4 more variables" in page


def test_vectors_are_reported():
    rng = np.random.default_rng(0)
    u = rng.lognormal(size=400)
    error = rng.normal(size=(400, 3)) * u[:, None]
    page = report_html(ss.validate(ss.Predictions(error=error, y_std=u)))
    assert "vectors" in page


def test_two_rows_and_errors_of_zero_are_reported():
    for error in ([0.1, -0.2], np.zeros(40)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = ss.validate(ss.Predictions(error=error, y_std=np.ones(len(error))))
            assert "headline" in report_html(found)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"before": 3}, "before"),
        ({"after": 3}, "after"),
        ({"title": 3}, "title"),
        ({"recalibrator": 3}, "recalibrator"),
        ({"recalibrator": ss.Recalibrator()}, "fitted"),
    ],
)
def test_wrong_arguments_are_refused(wrong, match, small):
    arguments = {"before": small.before, **wrong}
    with pytest.raises(InvalidInputError, match=match):
        report_html(**arguments)


def test_predictions_and_verdicts_on_other_rows_are_refused_with_the_remedy(
    whole, small
):
    with pytest.raises(InvalidInputError, match=r"ss\.validate"):
        report_html(small.before.rows)
    with pytest.raises(InvalidInputError, match="rows"):
        report_html(whole.before, small.before)
    other = ss.validate(whole.before.rows.with_features(["mass"]))
    with pytest.raises(InvalidInputError, match="features"):
        report_html(whole.before, other)


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_missing_package_is_named_with_the_remedy(package, small, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match="pip install"):
        report_html(small.before)


def test_importing_the_report_loads_no_optional_package():
    code = "import sys, sigmascale.report; print({'jinja2', 'PIL'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.strip() == "set()"
