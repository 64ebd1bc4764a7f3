"""``sigmascale watch``, in one run and in several."""

import json

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
    assert "Alarm: Uncertainties have been too small since about row 1" in bad.out
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


def test_standard_input_is_a_stream_too(sigmascale):
    text = table(3, factor=1.6).write_csv().encode()
    shown = sigmascale("watch", "held.json", "-", "--json", stdin=text)
    assert shown.code == 1
    assert json.loads(shown.out)["alarm"]["kind"] == "too small"


def test_without_rows_that_are_normal_the_first_ones_are(sigmascale):
    few = sigmascale("watch", "scaler.json", "good.csv", "--where", "day < 3")
    assert few.code == 4
    assert "150 rows of the 200" in " ".join(few.out.split())
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
    assert words in shown.err


def test_a_damaged_state_ends_with_2_and_stays_as_it_is(sigmascale, tmp_path):
    (tmp_path / "m.json").write_text("{}", "utf-8")
    shown = sigmascale("watch", "held.json", "good.csv", "--state", "m.json")
    assert shown.code == 2
    assert "m.json" in shown.err
    assert (tmp_path / "m.json").read_text("utf-8") == "{}"
