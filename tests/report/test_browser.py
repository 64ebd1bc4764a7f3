"""Reports in real Chromium: nothing leaves the page, all is drawn, nothing overflows.

What a browser shows depends on its fonts, so nothing here compares pixels.
"""

import time
import warnings

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.report import write_report

WIDTHS = [390, 1280]  # of a phone, of a laptop; CSS pixels
NASTY = [
    "<script>alert(1)</script>",
    "\"quotes' & <img src=x onerror=alert(2)>",
    r"🧪 $x$ \frac{a}{b}",
    "a_name_without_any_space_" * 12,
    "כתובת בעברית",
]


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """One report with everything on it, one with nasty names, one of a few rows."""
    folder = tmp_path_factory.mktemp("reports")
    data = ss.datasets.make_molecules(1200, seed=2)
    table = pl.DataFrame(
        {"u": data.uncertainty, "mass": data.mass, "phase": data.group}
    )
    calibration, test = slice(0, 600), slice(600, 1200)
    learned_from = (table[calibration], data.error[calibration])
    candidates = {"one": ss.TemperatureScaling(), "b": ss.BoostedScaling(max_trees=20)}
    scaler = ss.SelectedScaling(candidates).fit(*learned_from)
    assert scaler.name_ == "b"  # whose factors are shown as ratios
    methods = [ss.TemperatureScaling(), ss.IsotonicScaling()]
    judged = (table[test], data.error[test])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # groups of too few rows
        comparison = ss.compare(methods, learned_from, judged, n_bins=20)
        u, features = data.uncertainty[test], table[test].drop("u")
        before, after = (
            ss.validate(data.error[test], each, features, ties=u)
            for each in (u, scaler.predict(table[test]))
        )
    write_report(
        folder / "whole.html",
        before,
        recalibrated=after,
        scaler=scaler,
        calibration=learned_from,
        comparison=comparison,
        names={"judged set": "molecules.csv"},
    )
    rng = np.random.default_rng(0)
    u = rng.lognormal(size=400)
    error = rng.normal(scale=u)
    features = {name: rng.normal(size=400) for name in NASTY[:-1]}
    features[NASTY[-1]] = rng.choice(NASTY, 400)
    X = pl.DataFrame({"u": u, **features})
    raked = ss.RakedScaling(n_bins=4, shrinkage=20.0).fit(X, error)
    write_report(
        folder / "nasty.html",
        ss.validate(error, u, features),
        recalibrated=ss.validate(error, raked.predict(X), features, ties=u),
        scaler=raked,
        calibration=(X, error),
        comparison=ss.compare(
            {name: ss.TemperatureScaling() for name in NASTY},
            (X, error),
            (X, error),
            n_bins=9,
        ),
        title=" ".join(NASTY),
        names=dict(zip(NASTY, NASTY, strict=True)),
    )
    write_report(folder / "small.html", ss.validate(error[:30], u[:30]))
    return folder


every_report = pytest.mark.parametrize("name", ["whole", "nasty", "small"])
both_widths = pytest.mark.parametrize("width", WIDTHS)


@every_report
@both_widths
def test_no_request_leaves_the_page_and_nothing_goes_wrong(
    browser, reports, name, width
):
    path = reports / f"{name}.html"
    browser.open(path, width=width)
    time.sleep(0.3)  # for what would come late
    assert browser.run("document.readyState") == "complete"
    requests = browser.of_kind("Network.requestWillBeSent")
    addresses = [each["request"]["url"] for each in requests]
    outside = [a for a in addresses if a != path.as_uri() and a != "data:,"]
    assert path.as_uri() in addresses
    assert outside == []
    assert browser.of_kind("Runtime.consoleAPICalled", "Runtime.exceptionThrown") == []
    assert [each["entry"]["text"] for each in browser.of_kind("Log.entryAdded")] == []
    assert browser.of_kind("Page.javascriptDialogOpening") == []


def test_the_browser_would_report_a_request_an_error_and_a_dialog(browser, tmp_path):
    path = tmp_path / "bad.html"
    path.write_text(
        "<script>console.error('x'); alert(1); fetch('http://127.0.0.1:9/')</script>"
    )
    browser.open(path, width=390)
    time.sleep(0.3)
    browser.run("1")
    addresses = [
        each["request"]["url"] for each in browser.of_kind("Network.requestWillBeSent")
    ]
    assert "http://127.0.0.1:9/" in addresses
    assert browser.of_kind("Runtime.consoleAPICalled")
    assert browser.of_kind("Page.javascriptDialogOpening")


PICTURES = """[...document.querySelectorAll('svg.plot')].map(svg => {
  const box = svg.getBoundingClientRect();
  const inner = [...svg.querySelectorAll('path, use, text')].map(e =>
    e.getBoundingClientRect());
  return {
    width: box.width,
    height: box.height,
    marks: inner.filter(b => b.width + b.height > 0).length,
    texts: [...svg.querySelectorAll('text')].filter(t => t.textContent.trim() &&
      t.getBoundingClientRect().width > 0).length,
    outside: [...svg.querySelectorAll('text')].map(t =>
      [t.textContent, t.getBoundingClientRect()]).filter(([, b]) =>
        b.left < box.left - 2 || b.right > box.right + 2 ||
        b.top < box.top - 2 || b.bottom > box.bottom + 2).map(([t]) => t),
  };
})"""


@every_report
@both_widths
def test_all_pictures_are_drawn_and_hold_their_text(browser, reports, name, width):
    browser.open(reports / f"{name}.html", width=width)
    pictures = browser.run(PICTURES)
    assert len(pictures) == {"whole": 16, "nasty": 25, "small": 6}[name]
    for picture in pictures:
        assert picture["width"] > 250
        assert picture["height"] > 150
        assert picture["marks"] > 20
        assert picture["texts"] > 5
        assert picture["outside"] == []


OVERFLOW = """[...document.querySelectorAll('body *')].filter(e =>
    !e.closest('svg') && !e.closest('.wide') &&
    (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 ||
     e.getBoundingClientRect().right > innerWidth + 1)
  ).map(e => e.tagName + ' ' + e.textContent.slice(0, 60))"""
CELLS = """[...document.querySelectorAll('th, td')].filter(e =>
    e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)"""


@every_report
@both_widths
def test_no_text_overflows(browser, reports, name, width):
    browser.open(reports / f"{name}.html", width=width)
    assert browser.run("innerWidth") == width
    assert browser.run("document.scrollingElement.scrollWidth <= innerWidth")
    assert browser.run(OVERFLOW) == []
    assert browser.run(CELLS) == []
    # what is wider than the page scrolls in a frame of its own
    frames = browser.run(
        "[...document.querySelectorAll('.wide')].map(e => [getComputedStyle(e)"
        ".overflowX, e.getBoundingClientRect().right <= innerWidth])"
    )
    assert frames
    assert all(frame == ["auto", True] for frame in frames)


def test_the_check_would_find_text_that_overflows(browser, tmp_path):
    path = tmp_path / "wide.html"
    path.write_text(f"<meta name=viewport content='width=device-width'><p>{'x' * 999}")
    browser.open(path, width=390)
    assert browser.run(OVERFLOW) != []
    assert not browser.run("document.scrollingElement.scrollWidth <= 390")


@every_report
def test_the_scores_fit_a_phone_where_names_are_ordinary(browser, reports, name):
    browser.open(reports / f"{name}.html", width=390)
    hidden = browser.run(
        "document.querySelector('.wide').scrollWidth"
        " - document.querySelector('.wide').clientWidth"
    )
    assert hidden <= (60 if name == "nasty" else 1)


# The contrast of WCAG 2: (L1 + 0.05) / (L2 + 0.05), 4.5 for text. The background is
# that of the nearest element that has one.
CONTRAST = """(() => {
  const rgb = c => c.match(/[\\d.]+/g).map(Number);
  const light = c => rgb(c).slice(0, 3).map(v => v / 255).map(v =>
    v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const background = e => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if ((rgb(c)[3] ?? 1) > 0.99) return c;
    }
    return 'rgb(255, 255, 255)';
  };
  const own = e => [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim());
  return [...document.querySelectorAll('body *')].filter(own)
    .filter(e => !['title', 'desc'].includes(e.tagName)).map(e => {
      const style = getComputedStyle(e);
      const a = light(e.closest('svg') ? style.fill : style.color);
      const b = light(background(e));
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05),
              e.tagName + ' ' + e.textContent.slice(0, 40), b];
    });
})()"""


@every_report
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_has_contrast_in_light_and_in_dark(browser, reports, name, dark):
    browser.open(reports / f"{name}.html", width=1280, dark=dark)
    found = browser.run(CONTRAST)
    assert len(found) > 100
    assert [text for ratio, text, _ in found if ratio < 4.5] == []
    backgrounds = [background for *_, background in found]
    assert max(backgrounds) < 0.1 if dark else min(backgrounds) > 0.8


MARKS = """[...document.querySelectorAll('svg.plot path, svg.plot use')].map(e =>
  getComputedStyle(e)).flatMap(s => [s.fill, s.stroke]).filter(c => c != 'none')"""


def test_what_is_drawn_stands_out_in_dark(browser, reports):
    browser.open(reports / "whole.html", width=1280, dark=True)
    colours = {tuple(map(int, c[4:-1].split(","))) for c in browser.run(MARKS)}
    # every line and point is lighter than the card behind it
    assert colours
    assert all(max(colour) > 120 for colour in colours)


@both_widths
def test_nasty_names_appear_as_text_and_nothing_of_them_runs(browser, reports, width):
    browser.open(reports / "nasty.html", width=width)
    isolates = str.maketrans("", "", "\u2068\u2069")
    text = browser.run("document.body.textContent").translate(isolates)
    heading = browser.run("document.querySelector('h1').textContent")
    assert heading.translate(isolates) == " ".join(NASTY)
    assert browser.run("document.title").translate(isolates) == " ".join(NASTY)
    for name in NASTY:
        assert text.count(name) >= 8
    labels = browser.run(
        "[...document.querySelectorAll('svg.plot text')].map(t => t.textContent)"
    )
    for name in NASTY:
        assert sum(label.startswith(name[:7]) for label in labels) >= 3
    elements = "script, img, iframe, object, embed, svg b, svg i"
    assert browser.run(f"document.querySelectorAll('{elements}').length") == 0
    assert browser.of_kind("Page.javascriptDialogOpening") == []


def test_paper_is_white_and_nothing_is_cut_off_at_its_edge(browser, reports):
    browser.open(reports / "whole.html", width=700, dark=True)
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    try:
        body = "getComputedStyle(document.body)"
        assert browser.run(f"{body}.backgroundColor") == "rgb(255, 255, 255)"
        assert browser.run("document.scrollingElement.scrollWidth") <= 700
        columns = browser.run(
            "getComputedStyle(document.querySelector('.row')).gridTemplateColumns"
        )
        assert len(columns.split()) == 2
        assert len(browser.call("Page.printToPDF")["data"]) > 50_000
    finally:
        browser.call("Emulation.setEmulatedMedia", media="", features=[])
