"""The app as a person uses it, in real Chromium."""

import os
import shlex
import signal
import zipfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.predictions.roles import roles_of_page
from sigmascale.recalibration.scalings import SCALINGS

from .conftest import Person

HOSTILE = ["<img src=x onerror=alert(1)>", "javascript:alert(3)", "$(rm -rf ~) 'q'"]


def molecules(n, seed=0):
    """A table with true values, predictions, uncertainties and two features."""
    rng = np.random.default_rng(seed)
    u, mass, value = rng.lognormal(size=n), rng.normal(120, 10, n), rng.normal(size=n)
    kind = np.where(rng.random(n) < 0.3, "alloy", "organic")
    error = rng.normal(scale=np.where(kind == "alloy", 2.5, 1) * u)
    columns = {"energy_ref": value + error, "energy_pred": value, "energy_std": u}
    table = pl.DataFrame({**columns, "mass": mass, "kind": kind})
    return table.with_columns(pl.selectors.float().round(6))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables as people have them."""
    folder = tmp_path_factory.mktemp("tables")
    molecules(1200).write_csv(folder / "molecules.csv")
    new = molecules(200, seed=7).drop("energy_ref")
    new.rename({"energy_std": "sd"}).write_csv(folder / "new.csv")
    return folder


@pytest.fixture(scope="module")
def walked(browser, folder, start, tmp_path_factory):
    """Someone who has gone through all steps, and what was taken along."""
    with start(tmp_path_factory.mktemp("walk")) as server:
        person = Person(browser, server)
        person.open()
        person.drop_file("#table .drop", folder / "molecules.csv")
        person.click("features table")  # columns without a role, by one click
        person.idle()
        person.click("check")
        person.wait("document.querySelector('#check .boxes')")
        person.set("share", "0.4")
        person.click("fit")
        person.wait("document.querySelector('#fit .boxes')")
        person.choose_file("new", folder / "new.csv")
        person.wait("document.querySelector('[data-column=sd]')")
        person.run("document.querySelector('#apply details').open = true")
        person.set("role new sd", "uncertainty")
        person.idle()
        person.set("quantiles", "0.05, 0.95")
        person.click("apply")
        person.wait("document.querySelector('#apply a[download]')")
        person.idle()
        taken = tmp_path_factory.mktemp("taken")
        names = person.download(taken)
        assert browser.complaints() == []
        assert person.outside() == []
        yield person, taken, names


def test_a_walk_ends_with_what_the_command_line_makes_of_the_same_lines(
    walked, folder, tmp_path, sigmascale, monkeypatch
):
    person, taken, names = walked
    fields = person.server.state()["slots"]["table"]["fields"]
    assert fields == {
        "reference": "energy_ref",
        "prediction": "energy_pred",
        "uncertainty": "energy_std",
        "features": ["mass"],
        "labels": ["kind"],
    }
    monkeypatch.chdir(tmp_path)
    for name in ("molecules.csv", "new.csv"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    lines = person.run("document.getElementById('lines').textContent").splitlines()
    assert [shlex.split(line)[:2] for line in lines] == [
        ["sigmascale", name] for name in ("check", "fit", "apply", "apply")
    ]
    for line in lines:
        done = sigmascale(*shlex.split(line)[1:])
        assert done.code in (0, 1, 4), done.err
    made = [name for name in names if name != "sigmascale.zip"]
    assert sorted(made) == [
        "molecules_before_after.html",
        "molecules_card.html",
        "molecules_recalibrated.csv",
        "molecules_recalibrator.json",
        "molecules_report.html",
        "new_recalibrated.csv",
    ]
    with zipfile.ZipFile(taken / "sigmascale.zip") as archive:
        assert sorted(archive.namelist()) == sorted(made)
        for name in made:
            content = (taken / name).read_bytes()
            assert archive.read(name) == content
            assert (tmp_path / name).read_bytes() == content, name


def test_results_on_the_page_are_those_of_the_library_and_open_at_the_fault(walked):
    person, _, _ = walked
    table = molecules(1200)
    found = ss.validate(
        ss.Predictions.from_frame(
            table,
            y_true="energy_ref",
            y_pred="energy_pred",
            y_std="energy_std",
            features=["mass"],
            labels=["kind"],
        )
    )
    word, rest = found.headline.split(": ", 1)
    assert word == person.text("#check .box b").upper()
    assert rest == person.text("#check .box span")
    shown = person.run(
        "[...document.querySelectorAll('#check .results tr')].map(e =>"
        " [...e.children].map(c => c.textContent.trim()).join(' '))"
    )
    printed = [" ".join(line.split()) for line in str(found).splitlines()]
    lines = [line for line in printed if line.startswith(("pass ", "FAIL ", "? "))]
    plain = [line.replace(" ", "") for line in shown]
    assert all(line.replace(" ", "") in plain for line in lines)
    assert "kind" in person.text("#check .answer")
    along = "document.querySelector('#check [data-along]').dataset.along"
    assert person.run(along) == "kind"
    person.set("along check", "u")
    assert person.run(along) == "u"
    (step,) = found.next_steps
    assert step.what in person.text("#check .next")
    assert "Recalibration helped" in person.text("#fit .boxes")
    assert "--" not in person.text("#check") + person.text("#fit")  # no options
    person.wait(  # until all pictures are there
        "[...document.querySelectorAll('main img')].every(i => i.naturalWidth > 100)"
    )


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_step_fits_the_window_and_has_contrast(walked, dark):
    person, _, _ = walked
    for width in (1280, 390):
        person.open(width=width, dark=dark)
        person.wait("document.querySelector('#fit .boxes')")
        assert person.run("innerWidth") == width
        assert person.run("document.scrollingElement.scrollWidth <= innerWidth")
        assert person.browser.overflowing() == []
        contrasts = person.browser.contrasts()
        assert len(contrasts) > 60
        assert [text for ratio, text, _ in contrasts if ratio < 4.5] == []
        middle = sorted(background for *_, background in contrasts)[len(contrasts) // 2]
        assert middle < 0.1 if dark else middle > 0.8


def test_controls_have_names_headings_are_in_order_and_a_reload_loses_nothing(walked):
    person, _, _ = walked
    everything = "document.querySelector('main').textContent"
    before = person.run(everything)
    person.open()
    person.wait("document.querySelector('#fit .boxes')")
    assert person.run(everything) == before
    controls = "input, select, button, a[href], img, summary"
    unnamed = person.run(
        f"[...document.querySelectorAll('{controls}')].filter(e => !(e.labels?.length"
        " || e.getAttribute('aria-label') || e.textContent.trim() || e.alt))"
        ".map(e => e.outerHTML.slice(0, 90))"
    )
    assert unnamed == []
    levels = person.run(
        "[...document.querySelectorAll('h1, h2, h3, h4')].map(e => +e.tagName[1])"
    )
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    options = "[...document.querySelectorAll('[data-key=scaling] option')]"
    assert set(person.run(f"{options}.map(o => o.value)")) == set(SCALINGS)


def test_names_and_cells_are_text_and_problems_are_mended_by_a_click(person, tmp_path):
    rng = np.random.default_rng(0)
    columns = {"error": rng.normal(size=300), "std": np.full(300, 1.1)}
    columns |= {
        HOSTILE[0]: rng.normal(size=300),
        HOSTILE[1]: ["<b>x</b>", "{{y}}"] * 150,
    }
    columns[HOSTILE[2]] = [None, *range(299)]
    path = tmp_path / "<b>odd.csv"
    pl.DataFrame(columns).write_csv(path, separator=";")
    person.open()
    person.choose_file("table", path)
    person.wait("document.querySelector('#table .problem')")
    person.click("mend table")
    person.wait("document.querySelector('#table .columns')")
    person.click("features table")
    person.idle()
    person.click("check")
    person.wait("document.querySelector('#check .problem')")
    assert person.text("#check .problem") != ""
    person.click("mend check")
    person.idle()
    person.click("check")
    person.wait("document.querySelector('#check .boxes')")
    page = person.run("document.body.textContent")
    for name in [*HOSTILE, "<b>x</b>"]:
        assert name in page
    bold = "[...document.querySelectorAll('main b')].map(e => e.textContent)"
    assert "x" not in person.run(bold)
    selector = "main script, main img:not([width])"
    assert person.run(f"document.querySelectorAll('{selector}').length") == 0
    # the line to type names the same columns
    line = person.run("document.getElementById('lines').textContent")
    assert f"--feature={HOSTILE[0]}" in shlex.split(line)


def test_members_quantiles_and_limits_are_chosen_by_a_click(person, tmp_path):
    rng = np.random.default_rng(0)
    members = rng.normal(size=(300, 1)) + rng.normal(size=(300, 8))
    table = {f"m_{i}": column for i, column in enumerate(members.T)}
    table |= {
        "truth": rng.normal(size=300),
        "q05": members.min(1),
        "q95": members.max(1),
    }
    pl.DataFrame(table).write_csv(tmp_path / "ensemble.csv")
    person.open()
    person.choose_file("table", tmp_path / "ensemble.csv")
    person.wait("document.querySelector('#table .columns')")
    offered = "[...document.querySelector('[data-key=\"role table truth\"]').options]"
    roles = {each["role"] for each in roles_of_page()} - {"interval"}
    assert (
        set(person.run(f"{offered}.map(o => o.value)")) == {"", "low", "high"} | roles
    )
    person.set("role table truth", "reference")
    person.idle()
    person.set("role table m_0", "members")  # and with it all that are called alike
    person.idle()
    fields = person.server.state()["slots"]["table"]["fields"]
    assert fields == {"reference": "truth", "members": [f"m_{i}" for i in range(8)]}
    person.set("role table q05", "quantile_columns")
    person.idle()
    fields = person.server.state()["slots"]["table"]["fields"]
    levels = ["q05=0.05", "q95=0.95"]
    assert fields == {"reference": "truth", "quantile_columns": levels}
    person.set("level q95", "0.9")
    person.idle()
    person.set("role table q05", "low")
    person.idle()
    person.set("role table q95", "high")
    person.idle()
    person.set("interval_coverage table", "0.8")
    person.idle()
    person.click("check")
    person.wait("document.querySelector('#check .boxes')")
    line = person.run("document.getElementById('lines').textContent")
    assert "--interval=q05 --interval=q95 --interval-coverage=0.8" in line


def test_parts_are_offered_where_intervals_fail_for_a_label(person, tmp_path):
    rng = np.random.default_rng(0)
    kind = rng.choice(["gas", "solid"], 4000, p=[0.8, 0.2])
    u = rng.lognormal(0, 0.4, 4000)
    z = rng.normal(size=4000)
    # u is right for both, but errors of the solid are all of one size
    error = u * np.where(kind == "solid", np.sign(z), z)
    pl.DataFrame({"E": error, "u": u, "kind": kind}).write_csv(tmp_path / "kinds.csv")
    person.open()
    person.choose_file("table", tmp_path / "kinds.csv")
    person.click("features table")
    person.idle()
    person.set("share", "0.5")
    person.click("fit")
    person.wait("document.querySelector('#fit .boxes')")
    person.click("do guarantee coverage in each label of kind")
    person.idle()
    assert person.text("#fit .boxes")
    assert "--parts=kind" in person.run("document.getElementById('lines').textContent")
    assert "each of 2 parts, by kind" in person.text("#fit")


def test_work_can_be_stopped_begun_again_and_survives_a_crash(person, tmp_path):
    molecules(20_000).write_parquet(tmp_path / "long.parquet")
    person.open()
    person.choose_file("table", tmp_path / "long.parquet")
    person.click("features table")
    person.idle()
    person.click("fit")
    person.wait("document.getElementById('busy').hidden === false")
    person.run("document.getElementById('cancel').click()")
    person.wait("document.querySelector('#fit').innerText.includes('Stopped')")
    assert person.server.state()["job"] is None
    person.click("fit")
    person.wait("document.getElementById('busy').hidden === false")
    worker = next(
        int(status.parent.name)
        for status in Path("/proc").glob("[0-9]*/status")
        if f"PPid:\t{person.server.process.pid}\n" in status.read_text()
    )
    os.kill(worker, signal.SIGKILL)
    person.wait("document.querySelector('#fit [data-code=crashed]')")
    person.set("scaling", "temperature")
    person.click("fit")
    person.wait("document.querySelector('#fit .boxes')")


def test_a_server_that_has_stopped_is_told_on_the_page(browser, tmp_path, start):
    with start(tmp_path) as server:
        person = Person(browser, server)
        person.open()
        assert person.run("document.getElementById('stopped').hidden") is True
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(60)
        person.wait("document.getElementById('stopped').hidden === false")
        person.click("demo")  # to no avail, but no harm
    assert browser.of_kind("Runtime.exceptionThrown") == []
    assert list(tmp_path.iterdir()) == []
