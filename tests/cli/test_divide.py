"""``sigmascale divide``, and what ``check`` says of a recalibrator's uncertainties."""

import json

import numpy as np
import polars as pl
import pytest

from sigmascale.datasets import make_molecules


@pytest.fixture(scope="module")
def molecules():
    data = make_molecules(1200, seed=3)
    columns = {"formula": data.formula, "E": data.error, "u": data.uncertainty}
    columns |= {"mass": data.mass, "hetero": data.heteroatom_fraction}
    table = pl.DataFrame(columns | {"OxNy": data.group})
    return table[:600], table[600:]


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch, molecules):
    monkeypatch.chdir(tmp_path)
    for name, table in zip(("cal.csv", "test.csv"), molecules, strict=True):
        table.write_csv(name)


def divided(sigmascale, *options, code=0):
    done = sigmascale(
        "divide", "test.csv", "--calibration", "a.csv", "--test", "b.csv", *options
    )
    assert done.code == code, done.err
    return done if code else [pl.read_csv(name) for name in ("a.csv", "b.csv")]


def test_both_parts_together_are_the_table_and_none_of_its_cells_changes(
    sigmascale, tmp_path
):
    divided(sigmascale, "--share", "0.3")
    whole, first, rest = (
        (tmp_path / name).read_text().splitlines()
        for name in ("test.csv", "a.csv", "b.csv")
    )
    assert whole[0] == first[0] == rest[0]
    assert len(first) == 1 + 180
    assert sorted(whole[1:]) == sorted(first[1:] + rest[1:])


def test_another_seed_takes_other_rows_and_the_same_seed_the_same(sigmascale, tmp_path):
    contents = []
    for seed in ("0", "0", "1"):
        divided(sigmascale, "--seed", seed)
        contents.append((tmp_path / "a.csv").read_bytes())
    assert contents[0] == contents[1] != contents[2]


def test_rows_of_one_group_stay_together(sigmascale):
    first, rest = divided(sigmascale, "--groups", "OxNy")
    assert not set(first["OxNy"]) & set(rest["OxNy"])
    assert first.height + rest.height == 600


def test_conditions_say_which_rows_come_first(sigmascale):
    first, rest = divided(sigmascale, "--first-where", "mass < 120")
    assert first["mass"].max() < 120 <= rest["mass"].min()
    assert first.height + rest.height == 600


def test_where_takes_rows_out_of_both(sigmascale):
    first, rest = divided(
        sigmascale, "--where", "mass < 120", "--first-where", "u < 0.02"
    )
    assert max(first["mass"].max(), rest["mass"].max()) < 120
    assert first["u"].max() < 0.02 <= rest["u"].min()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--share", "1"], "--share .*0 and 1.*found 1"),
        (["--share", "0.0001"], ""),
        (["--first-where", "mass < 1"], "none of 600 rows"),
        (["--first-where", "mass > 1"], "no rows"),
        (["--first-where", "mass < 120", "--share", "0.5"], "without --share"),
        (["--groups", "OxNx"], "Did you mean 'OxNy'"),
    ],
)
def test_what_cannot_be_divided_is_refused(sigmascale, tmp_path, options, match):
    if not match:  # one row is a part, too
        assert divided(sigmascale, *options)[0].height == 1
        return
    assert divided(sigmascale, *options, code=2).says(match)
    assert not (tmp_path / "a.csv").exists()


def test_a_part_does_not_take_the_place_of_the_table(sigmascale):
    done = sigmascale("divide", "test.csv", "--calibration", "test.csv", "--test", "b")
    assert done.code == 2
    assert "is what is read" in done.err


@pytest.fixture
def scaler(sigmascale):
    fitted = ("cal.csv", "--feature", "mass", "--method", "raked", "-o", "s.json")
    assert sigmascale("fit", *fitted).code == 0
    return "s.json"


def test_check_judges_what_a_recalibrator_makes_as_it_would_judge_its_column(
    sigmascale, scaler
):
    sigmascale("apply", scaler, "test.csv", "-o", "new.csv")
    done = sigmascale("check", "test.csv", "--scaler", scaler, "--json")
    both = json.loads(done.out)
    plain = json.loads(
        sigmascale("check", "test.csv", "--feature", "mass", "--json").out
    )
    assert {k: v for k, v in both.items() if k != "recalibrated"} == plain
    options = ("--uncertainty", "u_recalibrated", "--feature", "mass", "--json")
    alone = json.loads(sigmascale("check", "new.csv", *options).out)
    after = both["recalibrated"]
    # ties of a feature are ordered by the old uncertainties, so that bins are the same
    for name in ("bias", "average", "u"):
        found, wanted = (each["verdicts"][name] for each in (after, alone))
        assert found["answer"] == wanted["answer"]
        assert found["limits"] == pytest.approx(wanted["limits"], rel=0.03)
    assert after["scores"]["ZMS"] == pytest.approx(alone["scores"]["ZMS"])
    assert done.code == {"yes": 0, "no": 1, "cannot tell": 4}[after["answer"]]


def test_the_scores_of_check_come_with_what_is_attainable(sigmascale):
    told = json.loads(sigmascale("check", "test.csv", "--json").out)
    table = pl.read_csv("test.csv")
    zms = np.mean((table["E"] / table["u"]).to_numpy() ** 2)
    assert told["scores"]["ZMS"] == pytest.approx(zms)
    assert told["attainable"].keys() == told["scores"].keys()
    assert told["attainable"]["ZMS"]["mean"] == pytest.approx(1, abs=0.1)
    assert told["attainable"]["S_u"]["mean"] == told["verdicts"]["u"]["target"]


def test_the_parts_of_a_report_are_pictures_and_methods(sigmascale, scaler, tmp_path):
    done = sigmascale(
        *("check", "test.csv", "--scaler", scaler, "--calibration", "cal.csv"),
        *("--report", "r.html", "--parts", "parts"),
    )
    assert done.err == ""
    page = (tmp_path / "r.html").read_text()
    contents = json.loads((tmp_path / "parts" / "contents.json").read_text())
    assert len(contents["pictures"]) == page.count("<svg") > 8
    for picture in contents["pictures"]:
        svg = (tmp_path / "parts" / f"{picture['name']}.svg").read_text()
        assert "prefers-color-scheme" in svg
        assert (tmp_path / "parts" / f"{picture['name']}.png").stat().st_size > 5000
    methods = (tmp_path / "parts" / "methods.txt").read_text()
    assert "recalibrated by RakedScaling" in methods
    assert "none of them judged" in methods
    assert "recalibrated with cal.csv" in page


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--parts", "p"], "--parts is for --report"),
        (["--calibration", "cal.csv"], "--calibration is for --scaler"),
        (["--scaler", "s.json", "--feature", "mass"], "fitted with"),
    ],
)
def test_options_that_need_another_are_refused(sigmascale, scaler, options, match):
    done = sigmascale("check", "test.csv", *options)
    assert done.code == 2
    assert done.says(match), done.err


def test_another_column_than_in_fit_is_refused(sigmascale, scaler, tmp_path):
    table = pl.read_csv(tmp_path / "test.csv").rename({"u": "spread"})
    table.write_csv("renamed.csv")
    done = sigmascale("check", "renamed.csv", "--scaler", scaler)
    assert done.code == 2
    assert done.says("needs a column 'u'")
    done = sigmascale(
        *("check", "renamed.csv", "--uncertainty", "spread"), "--scaler", scaler
    )
    assert done.code == 2
    assert done.says("fitted with 'u' as the uncertainty.*--uncertainty spread")
