"""A saved recalibrator remembers its columns: whoever uses it takes these and no other.

In these tables the letter `E` is an energy, and errors are in a column of another name.
"""

import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sigmascale as ss


def table(seed, n=300):
    rng = np.random.default_rng(seed)
    u = rng.gamma(4.0, 0.05, n)
    energies = rng.normal(-4e3, 5.0, n)
    return pl.DataFrame({"diff": rng.normal(scale=1.5 * u), "u": u, "E": energies})


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch, sigmascale):
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("old.csv", "new.csv")):
        table(seed).write_csv(name)
    fit = ("fit", "old.csv", "--error", "diff", "--method", "temperature")
    assert sigmascale(*fit, "-o", "s.json").code == 0


def test_an_update_learns_from_the_column_of_the_fit(sigmascale):
    before = ss.load("s.json").scaling_.factor_
    done = sigmascale("update", "s.json", "new.csv", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["data"]["error"] == ["diff"]
    assert told["factors"]["median"] == pytest.approx(1.5, rel=0.1)
    assert ss.load("s.json").scaling_.factor_ == pytest.approx(before, rel=0.1)


def test_a_watch_of_unchanged_rows_raises_no_alarm(sigmascale):
    done = sigmascale("watch", "s.json", "new.csv", "--json")
    told = json.loads(done.out)
    assert told["alarm"] is None
    assert told["data"]["error"] == ["diff"]


def test_a_check_judges_the_column_of_the_fit(sigmascale):
    done = sigmascale("check", "new.csv", "--scaler", "s.json", "--json")
    told = json.loads(done.out)
    assert told["data"]["error"] == ["diff"]
    assert told["recalibrated"]["answer"] != "no"


@pytest.mark.parametrize(
    "command",
    [("update", "s.json"), ("watch", "s.json"), ("check", "--scaler", "s.json")],
)
def test_columns_that_are_missing_or_others_are_refused(command, sigmascale):
    before = Path("s.json").read_bytes()
    done = sigmascale(*command, "new.csv", "--error", "E")
    assert done.code == 2
    assert done.says("new.csv: .*fitted with 'diff' as the error.*--error E")
    table(2).rename({"diff": "delta"}).write_csv("renamed.csv")
    done = sigmascale(*command, "renamed.csv")
    assert done.code == 2
    assert done.says("renamed.csv: .*'diff'.*The columns are: 'delta', 'u', 'E'")
    assert Path("s.json").read_bytes() == before


def test_nothing_that_a_run_did_not_make_is_removed(sigmascale):
    Path(".sigmascale-backup").write_text("of the user")
    Path(".sigmascale-folder").mkdir()
    fit = ("fit", "old.csv", "--error", "diff", "--method", "linear", "-o", "l.json")
    assert sigmascale(*fit).code == 0
    assert sigmascale("apply", "l.json", "new.csv", "-o", "o.parquet").code == 0
    assert Path(".sigmascale-backup").read_text() == "of the user"
    assert Path(".sigmascale-folder").is_dir()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc here")
@pytest.mark.parametrize("output", ["/proc/o.csv", "pipe.csv"])
def test_what_is_no_place_to_write_is_told_at_once(output, sigmascale):
    os.mkfifo("pipe.csv")
    done = sigmascale("apply", "s.json", "new.csv", "-o", output)
    assert done.code == 2
    assert output in done.err
