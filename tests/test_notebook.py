"""What notebooks show of data, verdicts, comparisons and recalibrators."""

import re
import subprocess
import sys
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

import sigmascale as ss
from sigmascale.datasets import load_diabetes

DATA = load_diabetes()
FOUND = ss.validate(DATA.test, n_draws=200)
COMPARED = ss.compare(
    [ss.TemperatureScaling(), ss.LinearScaling()],
    DATA.calibration,
    DATA.test,
    method="moments",
)
FITTED = ss.Recalibrator(ss.LinearScaling()).fit(DATA.calibration)
LAWS = FITTED.predict_distribution(DATA.test)
TARGETS = ss.validate(
    {
        "right": DATA.test.with_uncertainty(FITTED.predict(DATA.test)),
        "<small>": DATA.test.with_uncertainty(0.3 * DATA.test.uncertainty),
    },
    n_draws=200,
    method="moments",
)
SHOWN = {"predictions": DATA.test, "verdicts": FOUND, "comparison": COMPARED}
SHOWN |= {"recalibrator": FITTED, "distributions": LAWS, "targets": TARGETS}
every = pytest.mark.parametrize("shown", SHOWN.values(), ids=SHOWN)


def sentences(page):
    found = re.findall(r"<p[^>]*>(.*?)</p>", page)
    return [unescape(re.sub(r"<[^>]+>", "", each)) for each in found]


def points(page):
    found = re.findall(r'<circle cx="(.*?)" cy="(.*?)" r=".*?" fill="(.*?)"', page)
    return [(float(x), float(y), colour) for x, y, colour in found]


@every
def test_sentences_come_before_a_figure_and_tables_are_folded(shown):
    page = shown._repr_html_()
    assert sentences(page)
    assert page.index("<p") < page.index("<svg") < page.index("<details>")
    (picture,) = re.findall(r"<svg.*?</svg>", page)
    ElementTree.fromstring(picture)  # or it is no XML
    unfolded = re.sub(r"<details>.*?</details>", "", page)
    assert "<table>" in page
    assert "<table>" not in unfolded
    assert "<script" not in page


def test_verdicts_show_each_answer_in_its_colour():
    page = FOUND._repr_html_()
    shown = [
        each.split(" ", 2 if each.startswith("cannot") else 1)[-1]
        for each in sentences(page)
    ]
    assert shown == FOUND.sentences == repr(FOUND).splitlines()
    colours = dict(re.findall(r"background:(#\w+);[^>]*>([^<]+)</span>", page))
    answers = {verdict.answer for verdict in FOUND.verdicts.values()}
    assert set(colours.values()) == answers
    assert len(colours) == len(answers) > 1
    for verdict in FOUND.verdicts.values():
        if verdict.sentence in shown:
            assert f"{verdict.answer} {verdict.sentence}" in sentences(page)


def test_predictions_tell_what_they_are_and_how_large_errors_and_u_are():
    p = DATA.test
    rmse, rmv = np.sqrt(np.mean(p.error**2)), np.sqrt(np.mean(p.uncertainty**2))
    first, second = sentences(p._repr_html_())
    assert first == f"{p!r}."
    assert f"RMSE {rmse:.4g}, root mean variance {rmv:.4g}" in second
    assert f"⟨Z²⟩ = {ss.zms(p):.3g}" in second


def test_predictions_without_errors_have_no_figure():
    p = ss.Predictions([1.0, 2.0], [0.1, 0.2], features={"<b>": [1, 2]})
    page = p._repr_html_()
    assert "<svg" not in page
    assert "<td>&lt;b&gt;</td>" in page
    assert len(sentences(page)) == 1


def test_a_comparison_says_which_is_better_and_draws_the_differences():
    page = COMPARED._repr_html_()
    assert sentences(page) == [COMPARED.sentence]
    assert len(points(page)) == len(COMPARED.rows)


def test_the_figure_of_verdicts_has_a_point_a_bin_and_tells_which_are_not_valid():
    local = FOUND.local["u"]
    found = points(FOUND._repr_html_())
    assert len(found) == local.n.size
    colours = np.array([colour for *_, colour in found])
    assert len(set(colours[local.valid])) == 1
    assert set(colours[local.valid]).isdisjoint(colours[~local.valid])
    x, y, _ = zip(*found, strict=True)
    assert np.corrcoef(x, local.x)[0, 1] > 0.99999
    # downwards in the picture, and logarithmic
    assert np.corrcoef(y, np.log(local.zms))[0, 1] < -0.99999


def test_the_figure_of_predictions_has_their_errors():
    p = DATA.test
    inside = np.abs(p.error) <= np.quantile(np.abs(p.error), 0.99)
    found = points(p._repr_html_())
    assert len(found) == inside.sum()
    order = np.argsort(p.uncertainty, kind="stable")
    order = order[inside[order]]
    x, y, colours = zip(*found, strict=True)
    assert np.corrcoef(x, p.uncertainty[order])[0, 1] > 0.99999
    assert np.corrcoef(y, p.error[order])[0, 1] < -0.99999
    beyond = np.abs(p.z[order]) > 2
    assert len(set(np.array(colours)[beyond])) == 1
    assert set(np.array(colours)[beyond]).isdisjoint(np.array(colours)[~beyond])


def test_a_fitted_recalibrator_says_what_it_learned_in_a_terminal_too():
    said = repr(FITTED).splitlines()
    assert sentences(FITTED._repr_html_()) == said
    assert " ".join(said) == FITTED.describe()
    assert repr(ss.Recalibrator(law="normal")) == "Recalibrator(law='normal')"
    # IPython asks for this first
    assert FITTED._repr_mimebundle_()["text/html"] == FITTED._repr_html_()
    assert "sk-" in ss.Recalibrator()._repr_html_()  # scikit-learn's diagram


def test_the_figure_of_a_recalibrator_has_the_quantiles_of_its_law():
    x, y, _ = zip(*points(FITTED._repr_html_()), strict=True)
    p = np.linspace(0.02, 0.98, 49)
    assert np.corrcoef(x, stats.norm.ppf(p))[0, 1] > 0.99999
    z = ss.Distributions([0.0], [1.0], FITTED.law_).quantile(p)[0]
    assert np.corrcoef(y, z)[0, 1] < -0.99999


def test_distributions_tell_their_law_and_draw_medians():
    page = LAWS._repr_html_()
    assert sentences(page) == repr(LAWS).splitlines()
    assert f"{len(LAWS)} rows; the law is {LAWS.law.words}." in repr(LAWS)
    assert f"{np.median(np.diff(LAWS.interval(0.9))):.4g} wide" in repr(LAWS)
    x, y, _ = map(np.array, zip(*points(page), strict=True))
    rows = np.unique(np.linspace(0, len(LAWS) - 1, 40).astype(int))
    assert np.corrcoef(x, rows)[0, 1] > 0.99999
    assert np.corrcoef(y, LAWS.quantile(0.5)[rows])[0, 1] < -0.99999


def test_targets_show_an_answer_each_and_where_their_averages_are():
    page = TARGETS._repr_html_()
    first, *each = sentences(page)
    assert first == repr(TARGETS).splitlines()[0]
    assert [s.split(":")[0] for s in each] == [
        f"{found.answer} {name}" for name, found in TARGETS.targets.items()
    ]
    (right, _, blue), (small, _, red) = points(page)
    assert small > right  # its z-scores are larger
    assert blue != red


@pytest.mark.parametrize("n", [1, 2, 3000])
def test_sets_of_any_size_are_shown(n):
    rng = np.random.default_rng(0)
    p = ss.Predictions(error=rng.normal(size=n), y_std=np.full(n, 2.0))
    found = points(p._repr_html_())
    assert 1 <= len(found) <= 400
    assert np.isfinite([each[:2] for each in found]).all()


def test_no_optional_package_is_needed():
    code = (
        "import sys, sigmascale as ss; ss.datasets.load_diabetes().test._repr_html_();"
        "print({'matplotlib', 'polars', 'jinja2'} & set(sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "set()"
