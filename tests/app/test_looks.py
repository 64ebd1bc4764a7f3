"""Every step in a wide and a narrow window, in light and in dark.

`SIGMASCALE_PICTURES=docs/images/app pytest tests/app/test_looks.py` takes the pictures
of the documentation.
"""

import importlib.util
import json
import os
import re
from itertools import pairwise
from pathlib import Path

import pytest
from PIL import Image

from sigmascale.scaling import scalers

ROOT = Path(__file__).parents[2]
# What is looked at: where it begins, and the step that it is of.
PARTS = {
    "table": ("#h-table", "table"),
    "verdict": ("#h-verdict", "verdict"),
    "chart": ("#verdict .panel", "verdict"),
    "recalibrate": ("#recalibrate .card", "recalibrate"),
    "new": ("#h-new", "new"),
    "take": ("#h-take", "take"),
}
LOOKS = [(width, dark) for width in (1280, 390) for dark in (False, True)]
TALLEST = 1150  # pixels of a picture
WORDS = ROOT / "src" / "sigmascale" / "app" / "page" / "words.json"


def scripts():
    """Return what the tests of the report look for in a page."""
    path = ROOT / "tests" / "report" / "test_browser.py"
    spec = importlib.util.spec_from_file_location("report_scripts", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_every_step_fits_the_window_and_has_contrast(width, dark, finished):
    person, report = finished, scripts()
    person.browser.resize(width, dark=dark)
    person.run("new Promise(r => requestAnimationFrame(() => setTimeout(r, 300)))")
    assert person.run("innerWidth") == width
    assert person.run("document.scrollingElement.scrollWidth <= innerWidth")
    hidden = "!e.closest('.tip, .tip-words, .skip, option, pre')"
    inner = "!e.closest('svg')"
    found = report.OVERFLOW.replace(inner, f"{hidden} && {inner}")
    assert person.run(found) == []
    contrasts = person.run(report.CONTRAST)
    assert len(contrasts) > 100
    # a button that is asleep may be pale
    assert [text for ratio, text, _ in contrasts if ratio < 4.5] == []
    backgrounds = [background for *_, background in contrasts]
    # but for the buttons and the numbers of steps, which are the other way round
    backgrounds.sort()
    middle = backgrounds[len(backgrounds) // 2]
    assert middle < 0.1 if dark else middle > 0.8
    if "SIGMASCALE_PICTURES" not in os.environ:
        return
    folder = Path(os.environ["SIGMASCALE_PICTURES"])
    folder.mkdir(parents=True, exist_ok=True)
    for part, (begin, step) in PARTS.items():
        top = f"document.querySelector('{begin}')"
        end = f"document.getElementById('step-{step}').getBoundingClientRect().bottom"
        box = person.run(
            f"[{top}.getBoundingClientRect().top + scrollY - 20, {end} + scrollY]"
        )
        path = folder / f"{part}-{width}-{'dark' if dark else 'light'}.png"
        person.picture(path, top=box[0], height=min(box[1] - box[0], TALLEST))
        # of 64 colours, a third as large
        Image.open(path).convert("RGB").quantize(64, dither=0).save(path)


def test_keys_alone_reach_every_control_and_terms_explain_themselves(finished):
    finished.browser.resize(1280)
    finished.run("scrollTo(0, 0); document.activeElement.blur()")
    reached, tips = set(), set()
    total = finished.run(
        "[...document.querySelectorAll('button, select, input, summary, .term, "
        "a[href], svg.chart')].filter(e => e.checkVisibility() && !e.disabled).length"
    )
    for _ in range(total + 40):
        finished.press("Tab")
        found = finished.run(
            "(() => { const e = document.activeElement; const r = getComputedStyle(e);"
            " return [e === document.body ? 'body' : e.dataset.key || e.dataset.term ||"
            " e.textContent.slice(0, 30) || e.id, r.outlineStyle,"
            " tip.hidden ? '' : tip.textContent]; })()"
        )
        reached.add(found[0])
        tips.add(found[2])
        if found[0] != "body":
            assert found[1] != "none", found  # the focus can be seen
    for key in ("file table", "demo", "role table mass", "judge", "verdict bins"):
        assert key in reached
    for key in ("method", "recalibrate", "apply", "copy commands", "Read the report"):
        assert key in reached
    assert any("Right on average" in tip for tip in tips)


def test_controls_have_names_and_pictures_have_words(finished):
    unnamed = finished.run(
        "[...document.querySelectorAll('input, select, button, a[href], img, "
        "svg.chart, summary')].filter(e => !(e.labels?.length || "
        "e.getAttribute('aria-label') || e.textContent.trim() || e.alt))"
        ".map(e => e.outerHTML.slice(0, 90))"
    )
    assert unnamed == []
    headings = finished.run(
        "[...document.querySelectorAll('h1, h2, h3, h4')].map(e => +e.tagName[1])"
    )
    assert headings[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(headings))
    assert finished.run("document.documentElement.lang") == "en"


def test_the_words_of_the_page_are_those_of_the_documentation():
    words = json.loads(WORDS.read_text("utf-8"))
    glossary = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", glossary)
    plain = plain.replace("*", "").replace("`", "")
    for term, sentence in words["terms"].items():
        assert f"{term}\n: {sentence}" in plain
    for method, scaler in scalers().items():
        does = words["methods"][method]
        assert does.rstrip(".").lower() == scaler.does.rstrip(".").lower()
