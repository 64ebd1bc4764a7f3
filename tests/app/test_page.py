"""The app as a person uses it, in real Chromium."""

import importlib.util
import json
import os
import re
import runpy
import shlex
import shutil
import signal
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.app.views import on_page
from sigmascale.datasets import make_molecules

BROKEN_TABLES = Path(__file__).parents[1] / "cli" / "test_broken_tables.py"


def molecules(n, seed):
    data = make_molecules(n, seed=seed)
    columns = {"E": data.error, "u": data.uncertainty, "mass": data.mass}
    return pl.DataFrame(columns | {"hetero": data.heteroatom_fraction})


def lines_of(person, number):
    """Return the text of a box of lines to copy."""
    return person.run(f"document.querySelectorAll('#take pre')[{number}].textContent")


def run_commands(sigmascale, lines):
    """Type the lines, and return what each tells a machine."""
    told = []
    for line in lines:
        name, *arguments = shlex.split(line)
        assert name == "sigmascale"
        done = sigmascale(*arguments, "--json")
        assert "error" not in done.err, done.err
        told.append(json.loads(done.out))
    return told


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def shown_scores(person, part):
    """Return the scores of a step as the page shows them."""
    script = (
        f"[...document.querySelectorAll('#{part} table')].filter(t => "
        "t.querySelector('th').textContent == 'score').flatMap(t => "
        "[...t.querySelectorAll('tbody tr')]).map(r => [...r.children].map(c => "
        "(c.querySelector('span')?.firstChild ?? c).textContent))"
    )
    return {row[0]: row[1:] for row in person.run(script)}


def assert_scores(shown, told, column=0):
    """Assert that the page shows the numbers of `check --json`."""
    for name, value in told["scores"].items():
        number = float(shown[name][column])
        digits = 3 if abs(value) >= 0.01 or not name.startswith("UCE") else None
        if digits is None:
            assert number == pytest.approx(value, rel=5e-3)
        else:
            assert number == round(value, 3)
        if not name.startswith("UCE"):
            mean, sd = map(float, shown[name][column + 1].split(" ± "))
            attainable = told["attainable"][name]
            assert mean == round(attainable["mean"], 3)
            assert sd == round(attainable["sd"], 3)


def test_the_demo_from_the_first_look_to_the_download_of_everything(
    finished_alone, new_predictions, tmp_path, sigmascale, monkeypatch
):
    person = finished_alone
    assert "test.csv: 2,000 rows" in person.text("#table")
    text = person.text("#recalibrate")
    assert re.search("from 2,000 rows, .* 2,000 other rows", text)
    assert "multiplied by" in text
    downloaded = tmp_path / "downloaded"
    downloaded.mkdir()
    names = person.download(downloaded)
    assert {"test_recalibrated.csv", "test_scaler.json"} < set(names)
    assert ("test_scaler.onnx" in names) == (find_spec("onnx") is not None)
    assert sum(name.endswith(".png") for name in names) > 15

    # the commands that the page shows make the same files, byte by byte
    typed = tmp_path / "typed"
    typed.mkdir()
    monkeypatch.chdir(typed)
    for name in ("calibration.csv", "test.csv"):
        shutil.copy(person.server.folder / "uploads" / name, name)
    shutil.copy(new_predictions, "new.csv")
    told, _, both, *_ = run_commands(sigmascale, lines_of(person, 0).splitlines())
    made = contents(typed)
    taken = contents(downloaded)
    assert {name: made[name] for name in taken} == taken
    assert {Path(name).name for name in taken} == {*names, "methods.txt"} - {
        "sigmascale.zip"
    }

    # as are quantiles of new predictions those of Python
    r, found = ss.load("test_scaler.json"), pl.read_csv("new_recalibrated.csv")
    X = found.select(pl.col("sd").alias("u"), *r.feature_names_in_[1:])
    wanted = found["value"].to_numpy()[:, None] + r.predict_quantiles(X, [0.05, 0.95])
    columns = ["sd_recalibrated_q0.05", "sd_recalibrated_q0.95"]
    np.testing.assert_allclose(found.select(columns), wanted, rtol=0, atol=1e-10)

    methods = (typed / "test_recalibrated_parts" / "methods.txt").read_text()
    assert lines_of(person, 2) == methods

    # numbers on the page are those of the command line
    assert_scores(shown_scores(person, "verdict"), told)
    shown = shown_scores(person, "recalibrate")
    assert_scores(shown, both)
    assert_scores(shown, both["recalibrated"], 2)
    for name, verdict in both["recalibrated"]["verdicts"].items():
        selector = f'#recalibrate [data-stage="After"] [data-verdict="{name}"]'
        assert verdict["sentence"] in person.text(selector)
        assert verdict["answer"] in person.text(selector)


HOSTILE = [
    "<script>alert(1)</script>",
    "'quotes' & <img src=x onerror=alert(2)>",
    "-mass of `it` in kg or $x$",
    "={{7*7}} ${7*7} #{7*7}",
]


@pytest.fixture(scope="module")
def odd_table(tmp_path_factory):
    """Names that are markup, options or formulas, and semicolons between columns."""
    rng = np.random.default_rng(5)
    n = 900
    u, mass = rng.lognormal(size=n), rng.normal(size=n)
    truth = rng.normal(size=n)
    scale = u * np.where(mass > 0.5, 2.0, 1.0)
    table = pl.DataFrame(
        {
            HOSTILE[0]: truth + rng.normal(scale=scale),
            HOSTILE[1]: truth,
            "std dev": u,
            HOSTILE[2]: mass,
            HOSTILE[3]: rng.choice(["<b>x</b>", "javascript:alert(3)", "c"], n),
            "sample": np.repeat(np.arange(300), 3),
        }
    )
    path = tmp_path_factory.mktemp("odd") / "<b>odd & 'own'.csv"
    table.write_csv(path, separator=";")
    return path


def test_ones_own_table_with_odd_names_is_read_by_clicking(
    person, odd_table, tmp_path, sigmascale, monkeypatch
):
    person.open()
    person.drop_file("#table .drop", odd_table)
    person.wait("document.querySelector('#table .problem')")
    person.idle()
    assert "Set “Between columns” ';'" in person.text("#table .problem")
    person.click("#table .problem button", "between columns")
    person.wait("document.querySelector('#table .columns')")
    person.idle()
    assert "No column is plainly the uncertainty" in person.text("#table .problem")
    person.role("std dev", "uncertainty")
    person.role(HOSTILE[0], "reference")
    person.role(HOSTILE[1], "prediction")
    person.role(HOSTILE[2], "feature")
    person.role(HOSTILE[3], "label")
    person.role("sample", "groups")
    assert person.text("#table .problem") == ""
    person.judge()

    # names and cells are text
    page = person.run("document.body.textContent")
    for name in [*HOSTILE, "<b>x</b>", "javascript:alert(3)"]:
        assert name in page
    assert (
        person.run("document.querySelectorAll('main script, main b, img').length") == 0
    )

    # the picture answers: hover, keys, bins, axes, rows of a region
    name = odd_table.name.replace("<", "_").replace(">", "_")
    selector = '[data-control="variable"]'
    person.select(selector, HOSTILE[2])
    chart = "document.querySelector('#verdict svg.chart')"
    box = person.run(
        f"(() => {{ {chart}.scrollIntoView({{block: 'center'}}); const b = "
        f"{chart}.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; }})()"
    )
    where = {"x": box[0] + box[2] * 0.8, "y": box[1] + box[3] / 2}
    person.browser.call("Input.dispatchMouseEvent", type="mouseMoved", **where)
    tip = person.text("#verdict .tip")
    assert re.search(r"Bin \d+ of 30: ", tip)
    assert "⟨Z²⟩ = " in tip
    assert "interval" in tip
    assert "30 rows" in tip
    person.run(f"{chart}.focus()")
    person.press("Home")
    assert "Bin 1 of 30" in person.text("#verdict .tip")
    person.press("ArrowRight")
    assert "Bin 2 of 30" in person.text("#verdict .tip")
    person.press("Enter")
    person.wait("document.querySelector('#verdict .rows')")
    assert "30 rows with" in person.text("#verdict .rows")
    person.click("#verdict .rows button", "Close")

    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(odd_table.read_bytes())
    (line, *_) = lines_of(person, 0).splitlines()
    arguments = shlex.split(line)[1:]
    report = arguments.index("--report")
    told = json.loads(sigmascale(*arguments[:report], "--json").out)
    assert_scores(shown_scores(person, "verdict"), told)
    region = told["verdicts"][HOSTILE[2]]["regions"][0]
    person.click("#verdict [data-verdict] button", "Show these rows")
    person.wait("document.querySelector('#verdict .rows')")
    assert f"{region['n']} rows with" in person.text("#verdict .rows")
    z = person.run(
        "[...document.querySelectorAll('#verdict .rows tbody tr')].map(r => "
        "Math.abs(r.children[1].textContent))"
    )
    assert z == sorted(z, reverse=True)

    # another number of bins is that of `check --bins`
    person.select('[data-control="bins"]', "12")
    person.wait("document.querySelectorAll('#verdict .bin').length == 12")
    kept = "sessionStorage.getItem('sigmascale ' + location.pathname)"
    rebinned = person.run(f"JSON.parse({kept}).views.verdict.local[0]")
    again = json.loads(sigmascale(*arguments[:report], "--bins", "12", "--json").out)
    for variable, local in rebinned.items():
        wanted = again["verdicts"][variable]["local"]
        assert {k: local[k] for k in wanted} == wanted
    low = person.run("document.querySelector('#verdict .grid').getAttribute('y1')")
    person.select('[data-control="y"]', "linear")
    person.wait(
        f"document.querySelector('#verdict .grid').getAttribute('y1') != '{low}'"
    )

    # groups stay together where rows are divided; then reload: nothing is lost
    person.select('[data-key="method"]', "linear")
    person.select('[data-key="plan quantiles"]', "0.05, 0.95")
    person.click("#recalibrate button", "Recalibrate")
    person.wait("document.querySelector('#recalibrate .card')")
    person.idle()
    # what is typed makes the same files; reports are those of the demo's test
    commands = lines_of(person, 0).splitlines()
    run_commands(sigmascale, [each for each in commands if " check " not in each])
    stem = name.removesuffix(".csv")
    for end in ("_recalibrated.csv", "_scaler.json", "_calibration.csv", "_test.csv"):
        made = person.server.folder / "made" / f"{stem}{end}"
        assert made.read_bytes() == (tmp_path / made.name).read_bytes()
    parts = [
        pl.read_csv(tmp_path / f"{stem}_{part}.csv", separator=";")
        for part in ("calibration", "test")
    ]
    assert not set(parts[0]["sample"]) & set(parts[1]["sample"])
    # the Python lines do the same, to the last digit
    (tmp_path / "again.py").write_text(
        lines_of(person, 1)
        + "\npl.DataFrame([new, *more]).write_parquet('a.parquet')\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_path("again.py")
    again = pl.read_parquet("a.parquet")
    table = pl.read_csv(f"{stem}_recalibrated.csv", separator=";")
    assert table.select(again.columns).equals(again)
    assert again.width == 3
    everything = "document.querySelector('main').textContent"
    before = person.run(everything)
    person.run("location.reload()")
    time.sleep(0.5)
    person.wait("document.querySelector('#recalibrate .card')")
    assert person.run(everything) == before


@pytest.mark.slow
def test_a_second_table_and_another_uncertainty_stand_beside_the_first(
    person, tmp_path, sigmascale, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    first, second = molecules(500, seed=4), molecules(500, seed=5)
    split = np.where(np.arange(500) % 3, "learn", "judge")
    first = first.with_columns(std=pl.col("u") * 0.6, split=split)
    first.write_parquet("first.parquet")
    second.write_parquet("second.parquet")
    person.open()
    person.choose_file("table", tmp_path / "first.parquet")
    person.wait("document.querySelector('#table .columns')")
    person.idle()
    assert "Several columns could be the uncertainty" in person.text("#table .problem")
    person.role("u", "uncertainty")
    person.role("E", "error")
    person.judge()
    person.run("document.querySelector('[data-key=beside]').open = true")
    person.click("button", "The same table, with another uncertainty")
    person.wait("document.querySelector('[data-column=std][data-key^=\"role other\"]')")
    person.idle()
    person.role("E", "error", "other")
    person.role("std", "uncertainty", "other")
    person.click("button", "Judge it beside")
    person.wait("document.querySelectorAll('#verdict .card').length == 2")
    person.idle()
    told = json.loads(
        sigmascale("check", "first.parquet", "--uncertainty", "std", "--json").out
    )
    shown = shown_scores(person, "verdict")
    assert float(shown["ZMS"][2]) == round(told["scores"]["ZMS"], 3)

    # the second file is one with known errors, to learn from
    person.click("[data-key='kind file']")
    person.choose_file("known", tmp_path / "second.parquet")
    person.wait("document.querySelector('[data-key=\"columns known\"]')")
    person.idle()
    for column in ("mass", "hetero"):
        person.role(column, "ignored", "known")
    person.select('[data-key="method"]', "temperature")
    person.click("#recalibrate button", "Recalibrate")
    person.wait("document.querySelector('#recalibrate .card')")
    person.idle()
    assert "All uncertainties are multiplied by" in person.text("#recalibrate")
    commands = lines_of(person, 0).splitlines()
    assert not any(" divide " in line for line in commands)
    run_commands(sigmascale, [line for line in commands if " check " not in line])
    work = person.server.folder / "made"
    made = "first_recalibrated.parquet"
    assert (work / made).read_bytes() == (tmp_path / made).read_bytes()
    assert (
        pl.read_parquet(made)
        .drop("u_recalibrated")
        .equals(pl.read_parquet("first.parquet"))
    )

    # or the rows that a column names
    person.click("[data-key='kind column']")
    person.select('[data-key="column"]', "split")
    person.select('[data-key="value"]', "learn")
    person.click("#recalibrate button", "Recalibrate")
    person.wait(
        "document.querySelector('#take pre').textContent.includes('--first-where')"
    )
    person.idle()
    commands = lines_of(person, 0).splitlines()
    run_commands(sigmascale, [line for line in commands if " check " not in line])
    assert (work / made).read_bytes() == (tmp_path / made).read_bytes()


@pytest.mark.slow
def test_work_can_be_stopped_and_begun_again(person, tmp_path):
    molecules(3000, seed=1).write_csv(tmp_path / "long.csv")
    person.open()
    person.choose_file("table", tmp_path / "long.csv")
    person.wait("document.querySelector('#table .columns')")
    person.idle()
    person.click("[data-key='kind random']")
    person.select('[data-key="method"]', "auto")
    person.click("#recalibrate button", "Recalibrate")
    person.wait("document.getElementById('busy').hidden === false")
    person.click("#cancel")
    person.wait("document.querySelector('#recalibrate').innerText.includes('Stopped')")
    assert person.state()["job"] is None
    assert person.run("document.querySelector('#recalibrate .card')") is None
    person.select('[data-key="method"]', "temperature")
    person.click("#recalibrate button", "Recalibrate")
    person.wait("document.querySelector('#recalibrate .card')")
    person.idle()

    # a crash is told, and survived
    worker = next(
        int(status.parent.name)
        for status in Path("/proc").glob("[0-9]*/status")
        if f"PPid:\t{person.server.process.pid}\n" in status.read_text()
    )
    person.click("#recalibrate button", "Recalibrate")
    person.wait("document.getElementById('busy').hidden === false")
    os.kill(worker, signal.SIGKILL)
    person.wait("document.querySelector('#recalibrate .problem')")
    assert "ended unexpectedly" in person.text("#recalibrate .problem")
    person.click("#table button", "Judge")
    person.wait("document.querySelector('#verdict .card')")
    person.idle()


def broken_tables():
    spec = importlib.util.spec_from_file_location("broken_tables", BROKEN_TABLES)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.BROKEN | module.BROKEN_ERRORS


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_every_broken_table_gets_a_sentence_and_never_a_blank_page(
    step, person, tmp_path
):
    person.open()
    tables = broken_tables()
    assert len(tables) > 60
    some = list(tables.items())[::step]
    for number, (name, ((file, content), match)) in enumerate(some):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / file).write_bytes(content)
        revision = person.state()["revision"]
        person.choose_file("table", folder / file)
        # the old table is gone, the new one is there, and it was looked at
        person.wait(f"Number(document.body.dataset.revision) >= {revision + 3}")
        told = person.text("#table .problem")
        said = on_page(match.replace("a.csv: ", ""))
        assert re.search(said, told), (name, told)
        assert not re.search(" --[a-z]", told), (name, told)
        assert person.run("document.querySelectorAll('main h2').length") == 5
        assert "First, a table" not in person.text("main")
        judges = "[...document.querySelectorAll('#table button')].filter(b =>"
        assert person.run(f"{judges} b.textContent.includes('Judge')).length") == 0


def test_rows_that_cannot_be_used_are_shown_and_a_click_leaves_them_out(
    person, tmp_path
):
    rng = np.random.default_rng(0)
    lines = ["E,u,x", *(f"{e},{abs(e) + 0.5},{e * 2}" for e in rng.normal(size=200))]
    lines[10] = "0.1,,3"
    lines[20] = "NA,0.5,3"
    (tmp_path / "holes.csv").write_text("\n".join(lines) + "\n")
    person.open()
    person.choose_file("table", tmp_path / "holes.csv")
    person.wait("document.querySelector('#table .bad-cell')")
    person.idle()
    assert "2 rows of 200 cannot be used as they are" in person.text("#table")
    assert person.run(
        "[...document.querySelectorAll('.notice tbody th')].map(e => e.innerText)"
    ) == ["10", "20"]
    assert "2 of 200 rows have missing values" in person.text("#table .problem")
    person.click("#table .problem button", "Leave out rows with missing values")
    person.wait("!document.querySelector('#table .problem')")
    person.idle()
    person.judge()
    assert "198 rows" in person.text("#verdict")


def test_a_server_that_has_stopped_is_told_on_the_page(browser, tmp_path, start, visit):
    with start(tmp_path) as server:
        person = visit(browser, server)
        person.open()
        assert person.run("document.getElementById('stopped').hidden") is True
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(20)
        person.wait("document.getElementById('stopped').hidden === false")
        assert "sigmascale app" in person.text("#stopped")
        person.click("button", "Take the demo")  # to no avail, but no harm
        time.sleep(0.3)
    assert browser.of_kind("Runtime.exceptionThrown") == []
    assert list(tmp_path.iterdir()) == []


def test_members_and_limits_are_chosen_by_a_click_and_judged(
    person, tmp_path, sigmascale, monkeypatch
):
    rng = np.random.default_rng(0)
    mean, scale = rng.normal(size=(2, 300, 1))
    members = mean + np.abs(scale) * rng.normal(size=(300, 8))
    table = pl.DataFrame({f"m_{i}": column for i, column in enumerate(members.T)})
    truth = mean[:, 0] + scale[:, 0] * rng.normal(size=300)
    others = {"truth": truth, "least": members.min(1), "most": members.max(1)}
    table.with_columns(**others).write_csv(tmp_path / "ensemble.csv")
    monkeypatch.chdir(tmp_path)
    person.open()
    person.choose_file("table", tmp_path / "ensemble.csv")
    person.wait("document.querySelector('#table .problem')")
    person.idle()
    person.role("truth", "reference")
    person.role("m_0", "member")  # and with it all that are called alike
    assert person.text("#table .problem") == ""
    person.judge()
    options = ("--reference", "truth", "--members", "m_*", "--json")
    told = json.loads(sigmascale("check", "ensemble.csv", *options).out)
    assert_scores(shown_scores(person, "verdict"), told)

    person.role("least", "low")
    person.role("most", "high")
    assert "“Intervals claim to hold”" in person.text("#table .problem")
    person.select('[data-setting="interval_coverage"]', "0.8")
    person.wait("!document.querySelector('#table .problem')")
    person.judge()
    interval = ("--interval", "least,most", "--interval-coverage", "0.8")
    told = json.loads(
        sigmascale("check", "ensemble.csv", *options[:2], *interval, "--json").out
    )
    assert_scores(shown_scores(person, "verdict"), told)
