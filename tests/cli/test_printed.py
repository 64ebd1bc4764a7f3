"""What each command prints for the tables of the README: names and numbers."""

import json
import re
import sys

import pytest

from sigmascale.cli.demo import halves
from sigmascale.datasets import make_molecules

METHODS = {"none", "temperature", "linear", "isotonic", "binwise", "boosted", "auto"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The tables that `sigmascale demo` writes, with fewer rows."""
    folder = tmp_path_factory.mktemp("printed")
    names = ("calibration", "test")
    for name, table in zip(names, halves(make_molecules(3000, seed=0)), strict=True):
        table.write_csv(folder / f"{name}.csv")
    return folder


@pytest.fixture
def printed(folder, monkeypatch, sigmascale):
    """Run a command; return its words, and what it says to machines."""
    monkeypatch.chdir(folder)

    def run(*arguments, codes=(0, 1, 4)):
        done, told = (sigmascale(*arguments, *json) for json in ((), ("--json",)))
        assert done.code in codes, done.err
        assert (done.code, "None" in done.out) == (told.code, False)
        return done.out, json.loads(told.out)

    return run


def test_check_prints_each_question_and_its_answer(printed):
    words, told = printed("check", "test.csv", "--all-features")
    assert (
        "test.csv: 1500 rows; error E; uncertainty u; features: mass, hetero" in words
    )
    assert len(re.findall(r"^[✓✗?] ", words, re.MULTILINE)) == len(told["verdicts"])
    assert f"{told['scores']['S_cal']:.2f}" in words
    closing = {"yes": "Passed.", "no": "Not passed.", "cannot tell": "Cannot tell"}
    assert closing[told["answer"]] in words


def test_fit_show_and_apply_print_what_was_learned_and_written(printed):
    fit = ("fit", "calibration.csv", "--all-features", "--label", "OxNy")
    words, told = printed(*fit, "--method", "linear", "-o", "s.json")
    assert "features: mass, hetero, OxNy" in words.replace("\n", " ")
    assert f"{told['factors']['median']:.3g}" in words
    assert "Saved: s.json" in words
    words, told = printed("show", "s.json")
    assert told["method"] == "LinearScaling"
    assert "Method: LinearScaling, fitted on 1500 rows" in words
    words, told = printed("apply", "s.json", "test.csv", "-o", "o.csv")
    assert words == "Written: o.csv (1500 rows; column u_recalibrated).\n"
    assert told["rows"] == 1500
    after = ("--uncertainty", "u_recalibrated", "--all-features")
    words, told = printed("check", "o.csv", *after)
    assert "uncertainty u_recalibrated" in words
    assert told["data"]["uncertainty"] == "u_recalibrated"


def test_compare_prints_a_row_for_each_method_and_the_number_of_bins(printed):
    words, told = printed("compare", "calibration.csv", "test.csv")
    assert re.search(r"Scores on test.csv, with \d+ bins:", words)
    rows = set(re.findall(r"^(\w+) +-?\d", words, re.MULTILINE))
    assert rows >= METHODS
    assert f"auto is: {told['chosen']}" in words.replace("\n", " ")
    words, _ = printed("compare", "calibration.csv", "test.csv", "--bins", "20")
    assert "with 20 bins:" in words


def test_divide_update_and_watch_print_how_many_rows_there_were(printed):
    parts = ("--calibration", "a.csv", "--test", "b.csv", "--share", "0.4")
    words, told = printed("divide", "test.csv", *parts)
    assert told["calibration_rows"] == 600
    assert "a.csv (600 rows)" in words
    assert "b.csv (900 rows)" in words
    fit = ("fit", "calibration.csv", "--method", "temperature")
    printed(*fit, "--conformal-share", "0.3", "-o", "t.json")
    words, told = printed("watch", "t.json", "test.csv")
    assert "test.csv: 1500 rows" in words
    assert told["rows"] == 1500
    words, told = printed("update", "t.json", "test.csv", "-o", "n.json")
    assert f"Learned from 1500 more rows, {told['rows']} in all." in words


def test_bins_prints_the_number_that_is_preferred(printed):
    words, told = printed("bins", "calibration.csv", "test.csv", "--by", "mass")
    preferred = told["choice"]["n_bins"]
    assert f"prefers {preferred} bin" in words


def test_the_study_says_at_once_what_is_missing(sigmascale, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "cma", None)
    done = sigmascale("paper", "--out", "p")
    assert (done.code, done.out) == (2, "")
    assert done.says(
        r"package cma: in a checkout .*pip install -e '\.\[cli,optimize\]'"
    )
    assert not (tmp_path / "p").exists()
    monkeypatch.undo()
    done = sigmascale("paper", "--data", tmp_path / "none", "--out", tmp_path / "p")
    assert done.code == 2
    assert "none" in done.err
    assert not (tmp_path / "p").exists()
