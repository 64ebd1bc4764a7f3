"""``sigmascale watch``, in one run and in several."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.datasets import make_molecules

ROWS = 1500


def table(seed, factor=1.0):
    data = make_molecules(ROWS, seed=seed)
    columns = {"E": factor * data.error, "u": data.uncertainty, "mass": data.mass}
    return pl.DataFrame({**columns, "day": np.arange(ROWS) // 50})


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch, sigmascale):
    monkeypatch.chdir(tmp_path)
    table(1).write_csv("calibration.csv")
    table(2).write_csv("good.csv")
    table(3, factor=1.6).write_csv("bad.csv")
    fit = ("fit", "calibration.csv", "--method", "linear")
    assert sigmascale(*fit, "--conformal-share", "0.4", "-o", "held.json").code == 0
    assert sigmascale(*fit, "-o", "scaler.json").code == 0


def test_a_good_stream_ends_with_0_and_a_bad_one_with_1(sigmascale):
    good = sigmascale("watch", "held.json", "good.csv")
    assert good.code == 0
    assert "No alarm after 1500 rows" in good.out
    bad = sigmascale("watch", "held.json", "good.csv", "bad.csv", "--time", "day")
    assert bad.code == 1
    assert bad.says(r"Alarm: .*too small .*row 1\d{3}")
    assert "(time " in " ".join(bad.out.split())
    assert max(map(len, bad.out.splitlines())) < 80


def test_several_runs_with_a_state_are_one_long_run(sigmascale):
    one = sigmascale("watch", "held.json", "good.csv", "bad.csv", "--json")
    state = ("--state", "monitor.json", "--json")
    assert sigmascale("watch", "held.json", "good.csv", *state).code == 0
    two = sigmascale("watch", "held.json", "bad.csv", *state)
    assert two.code == one.code == 1
    alarms = [json.loads(each.out)["alarm"] for each in (one, two)]
    evidence = [alarm.pop("evidence") for alarm in alarms]
    assert alarms[0] == alarms[1]
    assert evidence[0] == pytest.approx(evidence[1])
    assert ss.Monitor.load("monitor.json").n_rows == 2 * ROWS
    # an alarm stays
    assert sigmascale("watch", "held.json", "good.csv", *state).code == 1


@pytest.mark.parametrize(
    ("scaler", "options", "words"),
    [
        ("scaler.json", [], "another recalibrator"),
        ("held.json", ["--confidence", "0.9"], "another --confidence"),
        ("held.json", ["--calibration", "calibration.csv"], "another --calibration"),
        ("held.json", ["--groups", "day"], "another --groups"),
    ],
)
def test_a_state_belongs_to_one_recalibrator_and_its_options(
    scaler, options, words, sigmascale
):
    state = ("--state", "monitor.json")
    assert sigmascale("watch", "held.json", "good.csv", *state).code == 0
    before = Path("monitor.json").read_bytes()
    done = sigmascale("watch", scaler, "good.csv", *state, *options)
    assert done.code == 2
    assert done.says(f"monitor.json: .*{words}.* Go on with that")
    assert Path("monitor.json").read_bytes() == before
    same = ("--confidence", "0.95")
    assert sigmascale("watch", "held.json", "good.csv", *state, *same).code == 0


def test_groups_count_as_one_row_and_without_them_dependence_is_told(sigmascale):
    rng = np.random.default_rng(0)
    day = np.repeat(np.arange(300), 5)
    for name, seed in (("normal", 2), ("stream", 3)):
        u = table(seed)["u"]
        z = (rng.normal(size=300)[day] + rng.normal(size=ROWS)) / np.sqrt(2)
        frame = pl.DataFrame({"E": z * u, "u": u, "mass": u, "day": day})
        frame.write_csv(f"{name}.csv")
    named = ("--calibration", "normal.csv")
    told = sigmascale("watch", "scaler.json", "stream.csv", *named)
    assert told.says("Alarms cannot be trusted")
    watch = ("watch", "scaler.json", "stream.csv", "--groups", "day")
    done = sigmascale(*watch, *named, "--json")
    assert done.code == 0
    assert json.loads(done.out)["caution"] is None
    few = sigmascale(*watch, "--where", "day < 100")
    assert few.code == 4
    assert few.says("the first 200 groups are needed")
    assert sigmascale(*watch).code == 0


@pytest.mark.slow
def test_watches_of_one_state_at_once_lose_no_rows():
    watch = ["watch", "held.json", "good.csv", "--state", "m.json"]
    lines = f"from sigmascale.cli.app import run\nfor _ in 'abc': run({watch})"
    running = [subprocess.Popen([sys.executable, "-c", lines]) for _ in range(4)]
    assert [each.wait() for each in running] == [0] * 4
    assert ss.Monitor.load("m.json").n_rows == 12 * ROWS
    assert not [*Path().glob(".sigmascale-*")]


def test_standard_input_is_a_stream_too(sigmascale):
    text = table(3, factor=1.6).write_csv().encode()
    shown = sigmascale("watch", "held.json", "-", "--json", stdin=text)
    assert shown.code == 1
    assert json.loads(shown.out)["alarm"]["kind"] == "too small"


def test_an_alarm_is_told_while_standard_input_is_still_open():
    header, *lines = table(3, factor=2.0).write_csv().encode().splitlines(True)
    watch = subprocess.Popen(
        [sys.executable, "-m", "sigmascale", "watch", "held.json", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    watch.stdin.write(header + lines[0][:5])  # not even a whole line
    watch.stdin.flush()
    watch.stdin.write(lines[0][5:] + b"".join(lines[1:400]))
    watch.stdin.flush()
    first = watch.stdout.readline().decode()  # the input is still open
    assert re.match("Alarm: .*too small", first)
    rest, _ = watch.communicate(b"".join(lines[400:410]))
    assert "-: 410 rows;" in rest.decode()
    assert rest.decode().count("Alarm:") == 0
    assert watch.returncode == 1


def stream(ending):
    """Return rows with names that lines and quotes are in, as a file has them."""
    names = ["a\nb", 'c"d', "e"]
    rows = table(3, factor=2.0)[:120].with_columns(name=pl.Series(names * 40))
    if ending == "JSON lines":
        return rows.write_ndjson().encode()
    text = rows.write_csv(line_terminator="\r\n" if ending == "Windows" else "\n")
    if ending == "packed":
        return gzip.compress(text.encode(), mtime=0)
    return b"\n\n" * (ending == "Windows") + text.encode()


@pytest.mark.parametrize("size", [1, 7, 64, 10**6])
@pytest.mark.parametrize("ending", ["CSV", "Windows", "JSON lines", "packed"])
def test_however_input_is_cut_into_pieces_the_rows_are_the_same(
    ending, size, sigmascale
):
    text = stream(ending)
    watch = ("watch", "held.json", "-", "--json")
    whole = json.loads(sigmascale(*watch, stdin=stream("CSV")).out)
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    found = json.loads(sigmascale(*watch, stdin=pieces).out)
    assert found["data"]["rows"] == 120
    assert (found["alarm"]["kind"], found["alarm"]["since"]) == (
        *(whole["alarm"]["kind"], whole["alarm"]["since"]),
    )
    assert found["alarm"]["evidence"] == pytest.approx(whole["alarm"]["evidence"])


def test_what_is_wrong_in_a_stream_is_told_with_its_row(sigmascale):
    text = table(2)[:50].write_csv().encode() + b"oops,1,1,1\n"
    done = sigmascale("watch", "held.json", "-", stdin=text)
    assert done.code == 2
    assert "'oops'" in done.err
    assert "row 51" in done.err or "row 50" in done.err
    for empty in (b"", b"\n", b"E,u,mass,day\n"):
        done = sigmascale("watch", "held.json", "-", stdin=empty)
        assert done.code == 2
        assert "standard input is empty" in done.err or "no rows" in done.err


def test_without_rows_that_are_normal_the_first_ones_are(sigmascale):
    few = sigmascale("watch", "scaler.json", "good.csv", "--where", "day < 3")
    assert few.code == 4
    assert few.says("150 rows have come, and the first 200 rows are needed")
    named = ("--calibration", "good.csv")
    bad = sigmascale("watch", "scaler.json", "bad.csv", *named, "--json")
    assert json.loads(bad.out)["alarm"]["since"] < 100
    # the first 200 rows of a bad stream are as bad as the others
    assert sigmascale("watch", "scaler.json", "bad.csv").code == 0


def test_the_evidence_is_drawn(sigmascale, tmp_path):
    assert sigmascale("watch", "held.json", "good.csv", "--plot", "p.png").code == 0
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--state", "good.csv"], "is written as JSON"),
        (["--plot", "p.json"], "is written as PNG"),
        (["--time", "month"], "month"),
        (["--confidence", "2"], "`confidence` must lie"),
    ],
)
def test_what_cannot_be_done_ends_with_2(sigmascale, options, words):
    shown = sigmascale("watch", "held.json", "good.csv", *options)
    assert shown.code == 2
    assert shown.says(words), shown.err


def test_a_damaged_state_ends_with_2_and_stays_as_it_is(sigmascale, tmp_path):
    (tmp_path / "m.json").write_text("{}", "utf-8")
    shown = sigmascale("watch", "held.json", "good.csv", "--state", "m.json")
    assert shown.code == 2
    assert "m.json" in shown.err
    assert (tmp_path / "m.json").read_text("utf-8") == "{}"


def test_check_tells_of_time_in_words_for_machines_and_in_the_report(sigmascale):
    times = {
        "day": np.arange(ROWS).astype(str),
        "date": [str(np.datetime64("2024-01-01") + i) for i in range(ROWS)],
        "word": ["now"] * ROWS,
    }
    changed = pl.concat([table(2)[:700], table(3, factor=2.0)[700:]])
    changed = changed.with_columns(**{k: pl.Series(v) for k, v in times.items()})
    changed.sample(fraction=1.0, shuffle=True, seed=1).write_csv("t.csv")
    done = sigmascale("check", "t.csv", "--time", "date", "--report", "r.html")
    words = " ".join(done.out.split())
    assert done.code == 1
    assert "first 375 rows in time" in words
    page = Path("r.html").read_text(encoding="utf-8")
    assert '<section id="time">' in page
    told = json.loads(sigmascale("check", "t.csv", "--time", "day", "--json").out)
    assert told["time"]["alarm"]["kind"] == "too small"
    assert 600 <= told["time"]["alarm"]["since_time"] <= 800
    refused = sigmascale("check", "t.csv", "--time", "word")
    assert refused.code == 2
    assert "must be numbers or dates" in refused.err
    lazy = sigmascale("check", "t.parquet", "--time", "day", "--engine", "polars")
    assert lazy.code == 2
