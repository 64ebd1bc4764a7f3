"""``sigmascale update``: more rows, the same columns, one file."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.datasets import make_molecules


def table(seed, factor=1.0, n=400):
    data = make_molecules(n, seed=seed)
    columns = {"E": factor * data.error, "u": data.uncertainty, "mass": data.mass}
    heavy = np.where(data.mass > np.median(data.mass), "heavy", "light")
    return pl.DataFrame({**columns, "kind": heavy, "n": np.arange(n)})


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(1).write_csv("old.csv")
    table(2, 1.5).write_csv("new.csv")


def fitted(sigmascale, method="temperature", *options, output="t.json"):
    fit = ("fit", "old.csv", "--method", method, *options, "-o", output)
    assert sigmascale(*fit).code == 0
    return output


def test_an_update_equals_a_fit_to_all_rows(sigmascale):
    fitted(sigmascale)
    fit = ("fit", "old.csv", "new.csv", "--method", "temperature", "-o", "all.json")
    assert sigmascale(*fit).code == 0
    done = sigmascale("update", "t.json", "new.csv", "-o", "u.json")
    assert done.code == 0
    assert done.err == ""
    before, after, whole = (
        ss.load(f"{name}.json").scaling_.factor_ for name in ("t", "u", "all")
    )
    assert after == pytest.approx(whole, rel=1e-12)
    assert done.says("400 more rows, 800 in all")
    assert done.says(f" {before:.4g} before.* {after:.4g} now")
    assert done.says("Saved: u.json")


AT_ONCE = """
from sigmascale.cli.app import run
for _ in range(10):
    assert run(["update", "t.json", "new.csv"])[0] == 0
"""


@pytest.mark.slow
def test_updates_of_one_file_at_once_lose_nothing(sigmascale):
    fitted(sigmascale)
    command = [sys.executable, "-W", "ignore", "-c", AT_ONCE]
    running = [subprocess.Popen(command) for _ in range(10)]
    assert [each.wait() for each in running] == [0] * 10
    assert ss.load("t.json").n_samples_fit_ == 400 * (1 + 10 * 10)
    assert not [*Path().glob(".sigmascale-*")]


def test_without_an_output_the_file_itself_is_updated_and_knows_its_columns(
    sigmascale,
):
    fitted(sigmascale, "category", "--by", "kind")
    done = sigmascale("update", "t.json", "new.csv", "--half-life", "100", "--json")
    assert done.code == 0
    told = json.loads(done.out)
    assert (told["rows_before"], told["rows"], told["output"]) == (400, 800, "t.json")
    assert told["factors"]["median"] > 1.2 * told["factors_before"]["median"]
    assert sigmascale("apply", "t.json", "new.csv", "-o", "out.csv").code == 0
    assert "800 rows" in sigmascale("show", "t.json").out


def test_one_row_is_enough(sigmascale):
    fitted(sigmascale)
    table(2).head(1).write_csv("one.csv")
    done = sigmascale("update", "t.json", "-", stdin=Path("one.csv").read_bytes())
    assert done.code == 0
    assert ss.load("t.json").n_samples_fit_ == 401


def test_new_labels_are_learned_without_a_warning(sigmascale):
    fitted(sigmascale, "category", "--by", "kind")
    table(3).with_columns(kind=pl.lit("new")).write_csv("labels.csv")
    done = sigmascale("update", "t.json", "labels.csv")
    assert (done.code, done.err) == (0, "")
    assert done.says("3 categories")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("l.json", "new.csv"), "l.json: .*LinearScaling"),
        (("t.json", "new.csv", "-o", "x.csv"), "is written as JSON"),
        (("t.json", "new.csv", "--forget", "2"), "at most 1; found 2"),
        (("t.json", "new.csv", "--half-life", "0"), "above 0; found 0"),
        (
            ("t.json", "new.csv", "--half-life", "9", "--forget", "0.9"),
            "`forget` .*`half_life`",
        ),
        (
            ("t.json", "new.csv", "--error", "e"),
            "fitted with 'E' as the error.* --error e",
        ),
        (("none.json", "new.csv"), "No such file"),
    ],
)
def test_what_cannot_be_ends_with_2_and_changes_no_file(sigmascale, arguments, match):
    fitted(sigmascale)
    fitted(sigmascale, "linear", output="l.json")
    before = Path("t.json").read_bytes()
    done = sigmascale("update", *arguments)
    assert done.code == 2
    assert done.says(match), done.err
    assert Path("t.json").read_bytes() == before
    assert sorted(p.name for p in Path().iterdir()) == [
        *("l.json", "new.csv", "old.csv", "t.json")
    ]


def test_rows_that_were_learned_from_before_are_told(sigmascale):
    fitted(sigmascale)
    done = sigmascale("update", "t.json", "old.csv")
    assert done.code == 0
    assert "and count twice" in done.err


def test_intervals_are_forgotten_with_a_warning(sigmascale):
    fitted(sigmascale, "temperature", "--conformal-share", "0.3")
    done = sigmascale("update", "t.json", "new.csv")
    assert done.code == 0
    assert "Intervals are forgotten" in done.err
    coverage = ("apply", "t.json", "new.csv", "--coverage", "0.9", "-o", "out.csv")
    assert sigmascale(*coverage).code == 0  # of the law, without a guarantee
