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

from .conftest import NASTY

KINDS = {"yes": "yes", "no": "no", "cannot tell": "unsure"}
SIGNS = {"yes": "✓", "no": "✗", "cannot tell": "?"}


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


def test_the_headline_comes_first_and_then_a_sentence_for_each_question(whole, small):
    for case in (whole, small):
        page, last = case.page, case.after or case.before
        said = case.after.compared_with(case.before) if case.after else last.headline
        assert parts(page, '<p class="headline[^>]*>(.*?)</p>') == [plain(said)]
        assert page.index('class="headline') < page.index("<svg")
        items = re.findall(r'(?s)<li class="(yes|no|unsure)">(.*?)</li>', page)
        for (kind, item), verdict in zip(items, last.verdicts.values(), strict=True):
            assert plain(verdict.sentence) in words(item)
            assert kind == KINDS[verdict.answer]
            assert f'aria-label="{verdict.answer}">{SIGNS[verdict.answer]}<' in item
    for verdict in whole.before.verdicts.values():
        assert plain(verdict.sentence) in words(whole.page)
    assert plain(whole.recalibrator.describe()) in words(whole.page)


def test_every_variable_is_drawn_and_the_one_at_fault_first(whole):
    for page in (report_html(whole.before), whole.page):
        titles = parts(page, "<title[^>]*>(.*?)</title>")
        variables = [x for x in titles if x in ("uncertainty u", "mass", "kind")]
        assert variables[0] == "kind"  # alloys were off by a factor of two
        assert sorted(variables) == ["kind", "mass", "uncertainty u"]


def table_of(page):
    """Return the cells of the tables of scores, by name; the first of each name."""
    rows = {}
    body = page[page.index("<h2>Scores") :]
    pattern = r'<th scope="row"[^>]*>(.*?)</th>(.*?)</tr>'
    for name, cells in re.findall(pattern, body, re.S):
        found = [unescape(x) for x in re.findall(r"<td>(.*?)</td>", cells)]
        rows.setdefault(plain(unescape(name.split("<small>")[0])), found)
    return rows


def test_scores_are_those_of_the_library_with_what_is_right(whole):
    rows = table_of(whole.page)
    for stage, column in ((whole.before, 0), (whole.after, 1)):
        for name in ("CRPS", "NLL", "S_u", "S_tot", "ENCE_u", "S_kind"):
            shown = float(rows[name][column])
            assert shown == pytest.approx(stage.scores[name], rel=6e-3)
        held = float(rows["held by intervals of 95 %"][column].rstrip("\xa0%"))
        assert held == pytest.approx(100 * stage.scores["within_95"], abs=0.06)
    right = whole.after.scores.reference.mean["S_u"]
    assert float(rows["S_u"][2].split(" ± ")[0]) == pytest.approx(right, rel=6e-3)
    rce = ss.scores.tails(whole.after.rows).rce.value
    assert float(rows["RCE"][1].split(" [")[0]) == pytest.approx(rce, rel=6e-3)


def test_what_two_u_hold_is_said_once(whole, small):
    for case in (whole, small):
        text = words(case.page)
        stages = [case.before, *filter(None, [case.after])]
        said = re.findall(r"beyond 2u: ([\d.]+)", text)
        beyond = [100 * np.mean(np.abs(stage.rows.z) > 2) for stage in stages]
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
        f"{p.n_effective:,.0f} rows in effect",
        "mass",
    ):
        assert each in facts
    assert "Over time: " in page


def cautions(page):
    return parts(page, '<ul class="cautions">(.*?)</ul>')[0]


def test_cautions_are_those_that_apply(whole, small):
    told = cautions(small.page)
    assert "30 rows" in told
    assert "no feature" in told
    for each in ("30 rows", "was not told", "repeats", "likelihood", "were fitted"):
        assert each not in cautions(whole.page)
    # worse than before, by a recalibrator that knows a column that was not judged
    rows = whole.before.rows.with_features(["mass"])
    before, after = ss.validate(rows), ss.validate(rows.with_y_std(5 * rows.y_std))
    assert "was not told" in cautions(report_html(before, after))
    told = cautions(report_html(before, after, recalibrator=whole.recalibrator))
    assert "likelihood is worse" in told
    assert "kind" in told


@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.RepeatedRowsWarning")
def test_repeats_are_cautioned_against_unless_groups_say_which_they_are():
    repeated = predictions(100, seed=3).take(np.repeat(np.arange(100), 4))
    x = {"x": np.repeat(np.linspace(0, 1, 100), 4)}
    for groups, told in ((None, True), (np.arange(400) // 4, False)):
        rows = {"error": repeated.error, "y_std": repeated.y_std, "features": x}
        page = report_html(ss.validate(ss.Predictions(**rows, groups=groups)))
        assert ("repeats" in cautions(page)) == told


def test_names_of_all_kinds_are_text_and_no_element_nor_template(nasty):
    assert "were fitted" in cautions(nasty.page)
    for name in NASTY[:-1]:
        assert plain(name)[:20] in words(nasty.page), name
    assert "49 {%" not in nasty.page
    allowed = (
        "html head meta link title style body header h1 h2 h3 p main section div ul ol "
        "li figure figcaption span small strong table thead tbody tr th td footer "
        "details summary svg g defs path use text tspan clippath rect desc"
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
    assert tags.count("svg") == tags.count("figcaption") == tags.count("desc") == 11
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
    assert path.read_text("utf-8") == report_html(small.before) == small.page
    assert dict(matplotlib.rcParams) == before


def test_the_file_is_written_whole_or_not_at_all(small, tmp_path):
    path = tmp_path / "new" / "r.html"
    write_report(path, small.before, title="First")
    with pytest.raises(InvalidInputError, match="after"):
        write_report(path, small.before, small.before.rows)
    assert "First" in path.read_text("utf-8")
    assert [each.name for each in path.parent.iterdir()] == ["r.html"]


def test_many_features_stay_small_and_those_not_drawn_are_counted():
    rng = np.random.default_rng(0)
    p = predictions(500, features={f"x{i}": rng.normal(size=500) for i in range(15)})
    page = report_html(ss.validate(p))
    assert len(page) < 2_000_000
    assert page.count("<svg") == 2 + 12 + 6
    assert "4 more features" in page


def test_vectors_two_rows_and_errors_of_zero_are_reported():
    u = np.linspace(1, 2, 60)
    vectors = np.random.default_rng(0).normal(size=(60, 3)) * u[:, None]
    for error in (vectors, [0.1, -0.2], np.zeros(40)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            p = ss.Predictions(error=error, y_std=u[: len(error)])
            page = report_html(ss.validate(p))
        assert page.count("<svg") >= 3
        assert ("vectors" in page) == p.is_vector


def test_questions_that_one_stage_alone_has_are_no_hindrance():
    rng = np.random.default_rng(0)
    x, error = rng.normal(size=(2, 300))
    others = {"features": {"x": x}, "time": x}
    u = rng.lognormal(size=300)
    stages = [
        ss.validate(ss.Predictions(y_std=y_std, error=e, **others))
        for y_std, e in ((np.ones(300), error), (u, error), (u, np.zeros(300)))
    ]
    for before in stages:
        for after in stages:
            assert plain(after.compared_with(before)) in words(
                report_html(before, after)
            )
            lines = after.certificate.picture(before.certificate)
            known = [x for x in (before, after) if x.certificate.proofs]
            assert bool(lines) == bool(known)


def test_wrong_arguments_are_refused_with_the_remedy(whole, small):
    other = ss.validate(whole.before.rows.with_features(["mass"]))
    for arguments, match in (
        ({"before": small.before.rows}, r"ss\.validate"),
        ({"before": small.before, "after": 3}, "after"),
        ({"before": small.before, "title": 3}, "title"),
        ({"before": small.before, "recalibrator": 3}, "recalibrator"),
        ({"before": small.before, "recalibrator": ss.Recalibrator()}, "fitted"),
        ({"before": whole.before, "after": small.before}, "rows"),
        ({"before": whole.before, "after": other}, "features"),
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
            report_html(small.before)
