"""Reports in real Chromium: nothing leaves the page, all is drawn, nothing overflows.

What a browser shows depends on its fonts, so nothing here compares pixels.
"""

import pytest

NAMES = ("whole", "nasty", "small")
WIDTHS = (390, 1280)  # of a phone, of a laptop; CSS pixels


@pytest.fixture(scope="module")
def reports(tmp_path_factory, request):
    """The three reports as files."""
    folder = tmp_path_factory.mktemp("reports")
    for name in NAMES:
        page = request.getfixturevalue(name).page
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return folder


PICTURES = """[...document.querySelectorAll('svg.plot')].map(svg => {
  const box = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].filter(t => t.textContent.trim());
  const boxes = texts.map(t => [t.textContent, t.getBoundingClientRect()]);
  return {
    width: box.width,
    height: box.height,
    texts: boxes.filter(([, b]) => b.width > 0).length,
    outside: boxes.filter(([, b]) => b.left < box.left - 2 || b.right > box.right + 2 ||
      b.top < box.top - 2 || b.bottom > box.bottom + 2).map(([t]) => t),
  };
})"""


@pytest.mark.parametrize("name", NAMES)
def test_a_report_asks_for_nothing_holds_its_text_and_fits_every_window(
    browser, reports, name
):
    path = reports / f"{name}.html"
    for width in WIDTHS:
        browser.open(path, width=width)
        assert set(browser.requested()) - {"data:,"} == {path.as_uri()}
        assert browser.complaints() == []
        assert browser.run("innerWidth") == width
        assert browser.run("document.scrollingElement.scrollWidth <= innerWidth")
        assert browser.overflowing() == []
        pictures = browser.run(PICTURES)
        assert len(pictures) >= 5
        for picture in pictures:
            assert picture["width"] > 250
            assert picture["height"] > 100
            assert picture["texts"] > 4
            assert picture["outside"] == []


def test_the_browser_would_tell_of_a_request_an_error_a_dialog_and_wide_text(
    browser, tmp_path
):
    path = tmp_path / "bad.html"
    path.write_text(
        "<meta name=viewport content='width=device-width'>"
        "<script>console.error('x'); alert(1); fetch('http://127.0.0.1:9/')</script>"
        f"<p>{'x' * 999}"
    )
    browser.open(path, width=390)
    assert "http://127.0.0.1:9/" in browser.requested()
    assert len(browser.complaints()) >= 2
    assert browser.overflowing() != []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_has_contrast_in_light_and_in_dark(browser, reports, dark):
    for name in ("whole", "small"):
        browser.open(reports / f"{name}.html", width=1280, dark=dark)
        found = browser.contrasts()
        assert len(found) > 100
        assert [text for ratio, text, _ in found if ratio < 4.5] == []
        backgrounds = [background for *_, background in found]
        assert max(backgrounds) < 0.1 if dark else min(backgrounds) > 0.8


def test_nasty_names_are_text_and_nothing_of_them_runs(browser, reports):
    browser.open(reports / "nasty.html", width=390)
    assert "<script>alert(1)</script>" in browser.run("document.title")
    elements = "script, img, iframe, object, embed, svg b, svg i"
    assert browser.run(f"document.querySelectorAll('{elements}').length") == 0
    assert browser.complaints() == []


def test_paper_is_white_and_nothing_is_cut_off_at_its_edge(browser, reports):
    browser.open(reports / "whole.html", width=700, dark=True)
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    try:
        body = "getComputedStyle(document.body)"
        assert browser.run(f"{body}.backgroundColor") == "rgb(255, 255, 255)"
        assert browser.run("document.scrollingElement.scrollWidth") <= 700
        assert len(browser.call("Page.printToPDF")["data"]) > 50_000
    finally:
        browser.call("Emulation.setEmulatedMedia", media="", features=[])
