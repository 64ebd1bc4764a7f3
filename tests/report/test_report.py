"""What the page says: the results, numbers and names, as text."""

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

from .conftest import NASTY


class Tags(HTMLParser):
    """The elements of a page, as a browser would find them: names and attributes."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


def words(page):
    """Return the text of a piece of a page."""
    page = re.sub(r"(?s)<style>.*?</style>|<[^>]*>", " ", page)
    return plain(unescape(page))


def parts(page, pattern):
    """Return the text of all pieces of a page, by a pattern of what is around it."""
    return [words(each) for each in re.findall(f"(?s){pattern}", page)]


def plain(text):
    return " ".join(text.split())


def test_results_come_first_and_then_pictures_and_a_line_for_each(whole, small):
    for case in (whole, small):
        page = case.page
        boxes = parts(page, '<div class="box [^>]*>(.*?)</div>')
        assert len(boxes) == (3 if case.recalibrator else 1)
        for box, v in zip(boxes, case.stages, strict=False):
            assert v.outcome.split(": ", 1)[1] in box
        assert page.index('class="box') < page.index("<svg") < page.index("<table")
        if case.recalibrator:
            assert case.found.headline.split(": ", 1)[1] in boxes[2]
            assert plain(case.recalibrator.describe()) in words(page)


def test_lines_are_those_that_are_printed(whole, small):
    for case in (whole, small):
        shown = words(case.page)
        for line in str(case.stages[0]).splitlines():
            if line.startswith(("pass ", "FAIL ", "?  ")):
                assert plain(line[6:]) in shown


def test_every_variable_is_drawn_and_the_one_at_fault_first(whole):
    for page in (report_html(whole.stages[0]), whole.page):
        titles = parts(page, "<title[^>]*>(.*?)</title>")
        variables = [x for x in titles if x in ("uncertainty u", "mass", "kind")]
        assert variables == ["uncertainty u", "kind", "mass"]  # alloys were off


def table_of(page):
    """Return the cells of the tables of numbers, by name; the first of each name."""
    rows = {}
    body = page[page.index("<h2>Numbers") :]
    pattern = r'<th scope="row"[^>]*>(.*?)</th>(.*?)</tr>'
    for name, cells in re.findall(pattern, body, re.S):
        found = [unescape(x) for x in re.findall(r"<td>(.*?)</td>", cells)]
        rows.setdefault(plain(unescape(name)), found)
    return rows


def number(text):
    return float(text.split(" ")[0].replace("−", "-").replace(",", ""))


def test_numbers_are_those_of_the_library(whole):
    rows = table_of(whole.page)
    for column, stage in enumerate(whole.stages):
        for name in ("CRPS", "NLL", "RMSE", "RMS z"):
            expected = stage.summary()[name].value
            assert number(rows[name][column]) == pytest.approx(expected, rel=6e-3)
        for name in ("S_u", "S_tot", "ENCE_u", "S_kind"):
            expected = stage.scores[name]
            assert number(rows[name][column]) == pytest.approx(expected, rel=6e-3)
        covered = rows["coverage of 95 % intervals"][column]
        assert covered == stage.summary().rows()["coverage of 95 % intervals"]
    target = whole.found.scores.reference.mean["S_u"]
    assert number(rows["S_u"][2]) == pytest.approx(target, rel=6e-3)


def test_what_two_u_hold_is_said_once(whole, small):
    for case in (whole, small):
        text = words(case.page)
        said = re.findall(r"beyond 2u: ([\d.]+)", text)
        beyond = [100 * np.mean(np.abs(stage.rows.z) > 2) for stage in case.stages]
        assert [float(each) for each in said] == pytest.approx(beyond, rel=6e-3)
        assert not re.findall(r"1\.96\s?u", text)


def predictions(n_rows, seed=0, **more):
    rng = np.random.default_rng(seed)
    u = rng.lognormal(size=n_rows)
    return ss.Predictions(error=rng.normal(scale=u), y_std=u, **more)


def test_size_groups_weights_features_and_times_are_told():
    rng = np.random.default_rng(0)
    more = {"features": {"mass": rng.normal(size=600)}, "time": np.arange(600)}
    more |= {"weights": rng.uniform(1, 2, 600), "groups": np.arange(600) // 2}
    p = predictions(600, **more)
    page = report_html(ss.validate(p))
    (facts,) = parts(page, "<h1>(.*?)</h1>")
    for each in (
        "600 rows",
        "300 groups",
        "weighted",
        "1 feature",
    ):
        assert each in facts
    assert "<dt>Time</dt>" in page


def cautions(page):
    return parts(page, '<ul class="cautions">(.*?)</ul>')[0]


def test_cautions_are_those_that_apply(whole, small):
    told = cautions(small.page)
    assert "30 rows" in told
    assert "every subgroup of features" in told
    for each in ("30 rows", "does not know", "were used in the fit"):
        assert each not in cautions(whole.page)
    # by a recalibrator that knows a column that was not tested
    rows = whole.found.before.rows.with_features(["mass"])
    found = ss.validate(rows.with_y_std(5 * rows.y_std), before=rows)
    assert "does not know" in cautions(report_html(found))
    assert "kind" in cautions(report_html(found, recalibrator=whole.recalibrator))


@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.RepeatedRowsWarning")
def test_repeats_leave_no_result_unless_groups_say_which_they_are():
    repeated = predictions(100, seed=3).take(np.repeat(np.arange(100), 4))
    x = {"x": np.repeat(np.linspace(0, 1, 100), 4)}
    for groups, told in ((None, True), (np.arange(400) // 4, False)):
        rows = {"error": repeated.error, "y_std": repeated.y_std, "features": x}
        page = report_html(ss.validate(ss.Predictions(**rows, groups=groups)))
        (box,) = parts(page, '<div class="box [^>]*>(.*?)</div>')
        assert ("look like repeats" in box) == told


def test_names_of_all_kinds_are_text_and_no_element_nor_template(nasty):
    assert "were used in the fit" in cautions(nasty.page)
    for name in NASTY[:-1]:
        assert plain(name)[:20] in words(nasty.page), name
    assert "49 {%" not in nasty.page
    allowed = (
        "html head meta link title style body header h1 h2 h3 p main section div ul ol "
        "li figure figcaption span small strong table thead tbody tr th td footer "
        "details summary b dl dt dd svg g defs path use text tspan clippath rect desc"
    )
    tags = Tags(nasty.page).found
    assert {tag for tag, _ in tags} <= set(allowed.split())
    assert not any(name.startswith("on") for _, about in tags for name in about)
    assert not re.search("[\x00-\x08\x0e-\x1f\u202a-\u202e]", nasty.page)


def test_the_page_refers_to_nothing_outside_and_its_identifiers_are_unique(whole):
    tags = Tags(whole.page).found
    for tag, about in tags:
        for key in ("src", "href", "xlink:href", "clip-path"):
            value = about.get(key, "#")
            assert value.startswith(("#", "data:,", "url(#")), (tag, value)
    names = [about["id"] for _, about in tags if "id" in about]
    assert len(names) == len(set(names))
    for target in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', whole.page):
        assert "".join(target) in names
    assert "://" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", whole.page)
    assert "default-src 'none'" in whole.page


def test_every_picture_has_a_title_a_description_and_text_that_can_be_searched(whole):
    tags = [tag for tag, _ in Tags(whole.page).found]
    assert tags.count("svg") == tags.count("figcaption") == tags.count("desc") == 9
    assert tags.count("text") > 100


def test_the_same_input_gives_the_same_bytes_in_another_process(small, tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
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
    assert path.read_text("utf-8") == report_html(small.found) == small.page
    assert dict(matplotlib.rcParams) == before


def test_the_file_is_written_whole_or_not_at_all(small, tmp_path):
    path = tmp_path / "new" / "r.html"
    write_report(path, small.found, title="First")
    with pytest.raises(InvalidInputError, match="title"):
        write_report(path, small.found, title=3)
    assert "First" in path.read_text("utf-8")
    assert [each.name for each in path.parent.iterdir()] == ["r.html"]


def test_many_features_stay_small():
    rng = np.random.default_rng(0)
    p = predictions(500, features={f"x{i}": rng.normal(size=500) for i in range(15)})
    page = report_html(ss.validate(p))
    assert len(page) < 2_000_000
    assert page.count("<svg") == 12 + 6


def test_vectors_two_rows_and_errors_of_zero_are_reported():
    u = np.linspace(1, 2, 60)
    vectors = np.random.default_rng(0).normal(size=(60, 3)) * u[:, None]
    for error in (vectors, [0.1, -0.2], np.zeros(40)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            p = ss.Predictions(error=error, y_std=u[: len(error)])
            page = report_html(ss.validate(p))
        assert page.count("<svg") >= 3
        assert ("balls" in page) == p.is_vector


def test_checks_that_one_stage_alone_has_are_no_hindrance():
    rng = np.random.default_rng(0)
    x, error = rng.normal(size=(2, 300))
    others = {"features": {"x": x}, "time": x, "error": error}
    u = rng.lognormal(size=300)
    stages = [ss.Predictions(y_std=y_std, **others) for y_std in (np.ones(300), u)]
    for before in stages:
        for after in stages:
            v = ss.validate(after, before=before)
            boxes = parts(report_html(v), '<div class="box [^>]*>(.*?)</div>')
            assert v.headline.split(": ", 1)[1] in boxes[2]


def test_wrong_arguments_are_refused_with_the_remedy(small):
    for arguments, match in (
        ({"validation": small.found.rows}, r"ss\.validate"),
        ({"validation": small.found, "title": 3}, "title"),
        ({"validation": small.found, "recalibrator": 3}, "recalibrator"),
        ({"validation": small.found, "recalibrator": ss.Recalibrator()}, "fitted"),
    ):
        with pytest.raises(InvalidInputError, match=match):
            report_html(**arguments)


def test_optional_packages_are_loaded_when_they_are_needed(small, monkeypatch):
    code = "import sys, sigmascale.report; print({'jinja2', 'PIL'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "set()"
    for package in ("jinja2", "matplotlib"):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ImportError, match="pip install"):
            report_html(small.found)
