import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import sigmascale as ss
from sigmascale.cli import app
from sigmascale.datasets import make_molecules
from sigmascale.exceptions import UnseenCategoryWarning
from sigmascale.scaling import methods

ROWS = 400
DATA = make_molecules(2 * ROWS, seed=3)
TABLE = pl.DataFrame(
    {
        "formula": DATA.formula,
        "E": DATA.error,
        "u": DATA.uncertainty,
        "mass": DATA.mass,
        "hetero": DATA.heteroatom_fraction,
        "OxNy": DATA.group,
        "id": [f"{i:05d}" for i in range(2 * ROWS)],
    }
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with calibration.csv and test.csv."""
    folder = tmp_path_factory.mktemp("data")
    TABLE[:ROWS].write_csv(folder / "calibration.csv")
    TABLE[ROWS:].write_csv(folder / "test.csv")
    return folder


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    for name in ("calibration.csv", "test.csv"):
        os.symlink(data / name, name)


def libraries(*commands):
    """Return which slow libraries a new process has loaded after each command."""
    code = (
        "import sys, json\n"
        "from sigmascale.__main__ import main\n"
        "for command in json.loads(sys.argv[1]):\n"
        "    sys.argv[1:] = command\n"
        "    try:\n        main()\n"
        "    except SystemExit as end:\n        assert end.code == 0\n"
        "    print('loaded:', *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(commands)],
        capture_output=True,
        text=True,
        check=True,
    )
    slow = {"matplotlib", "numpy", "pandas", "polars", "scipy", "sklearn"}
    lines = (line for line in done.stdout.splitlines() if line.startswith("loaded:"))
    return [slow & set(line.split()) for line in lines]


def only_json(done):
    """Return what a command told machines; people it must tell nothing."""
    assert done.err == ""

    def refuse(constant):
        pytest.fail(f"{constant} is not JSON")

    return json.loads(done.out, parse_constant=refuse)


# --- check


def test_check_gives_verdicts_and_its_exit_code(sigmascale):
    done = sigmascale("check", "test.csv", "--feature", "mass")
    assert done.code == 1
    assert done.err == ""
    assert done.says("test.csv: 400 rows; error E; uncertainty u; features: mass")
    assert done.says("Guessed .*: E, u")
    assert "✗ Not consistent" in done.out
    assert done.out.endswith("\nNot passed.\n")

    rng = np.random.default_rng(0)
    u = rng.gamma(4, 0.1, 500)
    pl.DataFrame({"E": rng.normal(scale=u), "u": u}).write_csv("perfect.csv")
    done = sigmascale("check", "perfect.csv")
    assert done.code == 0
    assert "✓ Calibrated on average" in done.out
    assert done.says("features: none.*--feature .*--all-features")
    assert done.out.endswith("\nPassed.\n")


def test_check_plans_how_many_rows_a_yes_takes(sigmascale):
    done = sigmascale("check", "test.csv", "--feature", "mass", "--plan", "1.5")
    assert done.code == 0
    told = only_json(sigmascale("check", "--plan", "1.5", "--json"))
    assert told == {"tolerance": 1.5, "rows_needed": ss.rows_needed(1.5)}
    assert re.search(r"about [\d,]+ rows", " ".join(done.out.split()))
    none = sigmascale("check")
    assert none.code == 2
    assert "FILE" in none.err


def test_check_tells_machines_what_python_tells(sigmascale):
    done = sigmascale("check", "test.csv", "--feature", "mass", "--json", "--bins", "9")
    assert done.code == 1
    told = only_json(done)
    test = TABLE[ROWS:]
    expected = ss.validate(test["E"], test["u"], test.select("mass"), n_bins=9)
    assert told["passed"] is False
    assert told["summary"] == expected.summary
    assert told["verdicts"]["mass"]["score"] == expected.verdicts["mass"].score
    assert told["verdicts"]["mass"]["local"]["zms"] == list(expected.local["mass"].zms)
    assert told["data"]["rows"] == ROWS
    assert told["data"]["numbers"] == ["mass"]
    assert told["data"]["error"] == ["E"]


def test_numbers_that_json_lacks_are_null(sigmascale):
    TABLE[:50].with_columns(E=pl.lit(0.0)).write_csv("zero.csv")
    done = sigmascale("check", "zero.csv", "--json")
    assert json.loads(done.out)["verdicts"]["u"]["score"] is None
    assert re.match("warning: All errors .* 0", done.err)


def test_the_error_is_reference_minus_prediction(sigmascale):
    TABLE[ROWS:].select(
        "u", right=pl.lit(3.0), model=3.0 - pl.col("E"), y_true=1.0, y_pred=2.0
    ).write_csv("parts.csv")
    options = ("--reference", "right", "--prediction", "model", "--json")
    parts = only_json(sigmascale("check", "parts.csv", *options))
    whole = only_json(sigmascale("check", "test.csv", "--json"))
    assert parts["data"]["error"] == ["right", "model"]
    zms = [each["verdicts"]["average"]["score"] for each in (parts, whole)]
    assert zms[0] == pytest.approx(zms[1], rel=1e-9)
    guessed = json.loads(sigmascale("check", "parts.csv", "--json").out)
    assert guessed["data"]["error"] == ["y_true", "y_pred"]


def test_formulas_give_features(sigmascale):
    TABLE[ROWS:].select("formula", "E", "u").write_csv("formulas.csv")
    done = sigmascale("check", "formulas.csv", "--formula", "formula", "--json")
    assert re.fullmatch(r"warning: \d+ of \d+ .*`OxNy`.*\n", done.err)
    told = json.loads(done.out)
    verdicts = list(told["verdicts"])
    features = ["mass", "heteroatom_fraction", "OxNy"]
    assert verdicts == ["bias", "average", "u", *features, "joint", "coverage"]
    same = only_json(sigmascale("check", "test.csv", "--feature", "mass", "--json"))
    scores = [each["verdicts"]["mass"]["score"] for each in (told, same)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-9)


def test_the_seed_decides_and_is_the_only_thing_that_does(sigmascale):
    runs = [
        sigmascale("check", "test.csv", "--feature", "mass", "--json", "--seed", seed)
        for seed in (1, 1, 2)
    ]
    assert runs[0].out == runs[1].out != runs[2].out


def test_rows_with_missing_values_are_left_out_on_demand_only(sigmascale):
    TABLE[:100].with_columns(
        mass=pl.when(pl.col("mass") > pl.col("mass").mean()).then("mass")
    ).write_csv("holes.csv")
    holes = pl.read_csv("holes.csv")["mass"].null_count()
    options = ("holes.csv", "--feature", "mass")
    done = sigmascale("check", *options)
    assert done.code == 2
    assert done.says(f"{holes} of 100 rows .*'mass' {holes}")
    assert "--drop-missing" in done.err
    done = sigmascale("check", *options, "--drop-missing")
    assert done.code in (0, 1, 4)
    assert done.says(f"{holes} rows .*left out")
    told = only_json(sigmascale("check", *options, "--drop-missing", "--json"))
    assert (told["data"]["rows"], told["data"]["dropped"]) == (100 - holes, holes)


def test_any_separator_will_do(sigmascale):
    TABLE.write_csv("semicolons.csv", separator=";")
    assert "--separator ';'" in sigmascale("check", "semicolons.csv").err
    done = sigmascale("check", "semicolons.csv", "--separator", ";", "--json")
    assert only_json(done)["data"]["rows"] == 2 * ROWS


# --- fit and apply

FEATURES = ("--feature", "mass", "--feature", "hetero")
FITS = {
    "none": (),
    "temperature": (),
    "linear": (),
    "isotonic": (),
    "binwise": ("--bins", "5"),
    "binwise by a feature": ("--by", "mass", "--bins", "5"),
    "binwise cells": ("--by", "u", "--by", "mass", "--bins", "3"),
    "category": ("--label", "OxNy"),
    "raked": (*FEATURES, "--label", "OxNy", "--bins", "5"),
    "boosted": (*FEATURES, "--label", "OxNy"),
    "auto": ("--feature", "mass"),
}


@pytest.mark.parametrize("name", FITS)
def test_what_is_fitted_and_applied_predicts_the_same_bits(sigmascale, name):
    method = name.split()[0]
    options = ("--method", method, *FITS[name])
    assert sigmascale("fit", "calibration.csv", *options, "-o", "scaler.json").code == 0
    done = sigmascale("apply", "scaler.json", "test.csv", "-o", "out.parquet")
    assert done.code == 0
    if name in ("category", "raked"):
        assert re.search(r"^warning: \d+ of 400 .*'OxNy'.* not seen", done.err)
    else:
        assert done.err == ""
    found = pl.read_parquet("out.parquet")
    assert found.columns == [*TABLE.columns, "u_recalibrated"]

    loaded = ss.load("scaler.json")
    columns = only_json(sigmascale("show", "scaler.json", "--json"))["roles"]
    names = [columns["uncertainty"], *columns["numbers"], *columns["labels"]]
    train = pl.read_csv("calibration.csv").select(names)
    again = clone(loaded).fit(train, TABLE[:ROWS]["E"])
    test = pl.read_csv("test.csv").select(names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenCategoryWarning)
        for scaler in (loaded, again):
            assert np.array_equal(found["u_recalibrated"], scaler.predict(test))


def test_every_method_is_among_these():
    assert {name.split()[0] for name in FITS} == set(methods()) - {"component"}


def test_the_same_fit_gives_the_same_bytes(sigmascale):
    options = ("calibration.csv", *FEATURES, "--method", "boosted")
    for name, seed in (("a.json", 5), ("b.json", 5), ("c.json", 6)):
        assert sigmascale("fit", *options, "--seed", seed, "-o", name).code == 0
    assert Path("a.json").read_bytes() == Path("b.json").read_bytes()
    assert Path("a.json").read_bytes() != Path("c.json").read_bytes()


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("temperature", "All .* {median:.3g}"),
        (
            "binwise",
            "{min:.3g} to {max:.3g}: 90 % .*{5 %:.3g} to {95 %:.3g}, .*{median:.3g}",
        ),
    ],
)
def test_fit_tells_how_uncertainties_change(method, words, sigmascale):
    u = pl.read_csv("calibration.csv").select("u")
    fit = ("fit", "calibration.csv", "--method", method, "-o", "scaler.json")
    told = json.loads(sigmascale(*fit, "--json").out)["factors"]
    factors = ss.load("scaler.json").predict(u) / u["u"].to_numpy()
    expected = np.quantile(factors, [0, 0.05, 0.5, 0.95, 1])
    assert list(told.values()) == expected.tolist()
    shown = sigmascale(*fit)
    assert shown.says(words.format(**told))
    assert max(map(len, shown.out.splitlines())) < 80


def test_fit_says_all_only_if_all_change_alike(sigmascale):
    few = pl.int_range(pl.len()) % 25 == 0
    pl.read_csv("calibration.csv").with_columns(
        E=pl.when(few).then(10 * pl.col("E")).otherwise("E"),
        kind=pl.when(few).then(pl.lit("a")).otherwise(pl.lit("b")),
    ).write_csv("few.csv")
    options = ("--method", "category", "--label", "kind", "-o", "scaler.json")
    assert "All uncertainties" not in sigmascale("fit", "few.csv", *options).out


def test_fit_tells_what_was_chosen_and_why(sigmascale):
    auto = ("fit", "calibration.csv", "--method", "auto", "-o", "scaler.json")
    done = sigmascale(*auto)
    assert (done.code, done.err) == (0, "")
    assert "Chosen by cross-validation: " in done.out
    assert "verdict" in done.out
    assert "  sigmascale apply scaler.json NEW.csv -o OUT.csv\n" in done.out
    told = only_json(sigmascale(*auto, "--json"))
    assert f"Chosen by cross-validation: {told['chosen']}." in done.out
    assert told["chosen"] in told["candidates"]["candidate"]
    assert told["output"] == "scaler.json"
    assert told["data"]["numbers"] == []


def test_rows_can_stay_together_in_cross_validation(sigmascale):
    options = (*FEATURES, "--method", "boosted", "--json")
    for name, more in (("a.json", ()), ("b.json", ("--groups", "OxNy"))):
        done = sigmascale("fit", "calibration.csv", *options, *more, "-o", name)
        assert done.code == 0
    assert Path("a.json").read_bytes() != Path("b.json").read_bytes()
    loaded = ss.load("b.json")
    train = TABLE[:ROWS]
    again = ss.BoostedScaling().fit(
        train.select("u", "mass", "hetero"), train["E"], groups=train["OxNy"]
    )
    X = train.select("u", "mass", "hetero")
    assert np.allclose(loaded.predict(X), again.predict(X), rtol=1e-9)


def test_a_loss_can_be_chosen(sigmascale):
    options = ("--method", "binwise", "--bins", "3", "--loss", "consistency")
    done = sigmascale("fit", "calibration.csv", *options, "-o", "scaler.json")
    assert done.code == 0
    assert ss.load("scaler.json").scaling_.loss == "consistency"


def test_variances_give_variances(sigmascale):
    TABLE.with_columns(v=pl.col("u") ** 2).drop("u").write_csv("v.csv")
    options = ("--variance", "v", "--method", "linear", "-o")
    assert sigmascale("fit", "v.csv", *options, "v.json").code == 0
    assert sigmascale("apply", "v.json", "v.csv", "-o", "out.csv").code == 0
    TABLE.write_csv("u.csv")
    sigmascale("fit", "u.csv", "--method", "linear", "-o", "u.json")
    sigmascale("apply", "u.json", "u.csv", "-o", "out-u.csv")
    variance = pl.read_csv("out.csv")["v_recalibrated"].to_numpy()
    u = pl.read_csv("out-u.csv")["u_recalibrated"].to_numpy()
    assert np.allclose(variance, u**2, rtol=1e-9)

    # fitted with one, applied to the other
    done = sigmascale("apply", "v.json", "u.csv", "--uncertainty", "u", "-o", "w.csv")
    assert done.code == 0
    assert np.allclose(pl.read_csv("w.csv")["u_recalibrated"], u, rtol=1e-9)


def test_apply_keeps_every_byte_of_the_other_columns(sigmascale):
    lines = Path("test.csv").read_text().splitlines()
    sigmascale("fit", "calibration.csv", "--method", "linear", "-o", "scaler.json")
    done = sigmascale("apply", "scaler.json", "test.csv", "-o", "out.csv")
    assert done.says(r"out.csv \(400 rows; column u_recalibrated\)")
    out = Path("out.csv").read_text().splitlines()
    assert out[0] == lines[0] + ",u_recalibrated"
    assert [line.rpartition(",")[0] for line in out[1:]] == lines[1:]


def test_apply_reads_and_writes_standard_streams(sigmascale):
    sigmascale("fit", "calibration.csv", "--method", "linear", "-o", "scaler.json")
    sigmascale("apply", "scaler.json", "test.csv", "-o", "out.csv")
    content = Path("test.csv").read_bytes()
    done = sigmascale("apply", "scaler.json", "-", "-o", "-", stdin=content)
    assert (done.code, done.err) == (0, "")
    assert done.out == Path("out.csv").read_text()
    done = sigmascale("apply", "scaler.json", "-", "-o", "-", "--json", stdin=content)
    assert done.out == Path("out.csv").read_text()
    assert json.loads(done.err)["rows"] == ROWS


def test_fit_writes_to_standard_output(sigmascale):
    sigmascale("fit", "calibration.csv", "--method", "linear", "-o", "scaler.json")
    done = sigmascale("fit", "calibration.csv", "--method", "linear", "-o", "-")
    assert (done.code, done.err) == (0, "")
    assert done.out == Path("scaler.json").read_text()
    assert not Path("-").exists()


def test_apply_replaces_its_own_input_if_forced_and_names_the_column(sigmascale):
    TABLE.write_parquet("table.parquet")
    sigmascale("fit", "calibration.csv", "--method", "linear", "-o", "scaler.json")
    options = ("-o", "table.parquet", "--name", "better", "--json")
    arguments = ("apply", "scaler.json", "table.parquet", *options)
    refused = sigmascale(*arguments)
    assert (refused.code, refused.out) == (2, "")
    assert "--force" in refused.err
    assert pl.read_parquet("table.parquet").equals(TABLE)
    told = only_json(sigmascale(*arguments, "--force"))
    assert told == {
        "rows": 2 * ROWS,
        "dropped": 0,
        "column": "better",
        "output": "table.parquet",
    }
    found = pl.read_parquet("table.parquet")
    assert found.drop("better").equals(TABLE)


def test_apply_leaves_out_incomplete_rows_on_demand(sigmascale):
    sigmascale("fit", "calibration.csv", "--method", "linear", "-o", "scaler.json")
    TABLE[:10].with_columns(u=pl.Series([None, *TABLE["u"][1:10]])).write_csv("new.csv")
    done = sigmascale("apply", "scaler.json", "new.csv", "-o", "out.csv")
    assert done.code == 2
    assert not Path("out.csv").exists()
    options = ("-o", "out.csv", "--drop-missing")
    done = sigmascale("apply", "scaler.json", "new.csv", *options)
    assert done.says(r"\(9 rows; 1 .*left out")
    assert pl.read_csv("out.csv").height == 9


def test_apply_needs_no_errors_and_one_row_is_enough(sigmascale):
    sigmascale("fit", "calibration.csv", "--method", "linear", "-o", "scaler.json")
    Path("one.csv").write_text("u\n0.10\n")
    assert sigmascale("apply", "scaler.json", "one.csv", "-o", "-").out.startswith(
        "u,u_recalibrated\n0.10,0."
    )


@pytest.mark.parametrize("output", ["o.tsv.gz", "o.feather", "o.jsonl"])
def test_apply_converts_between_formats(sigmascale, output):
    sigmascale("fit", "calibration.csv", "--method", "linear", "-o", "scaler.json")
    done = sigmascale("apply", "scaler.json", "test.csv", "-o", output)
    assert done.code == 0
    done = sigmascale("check", output, "--uncertainty", "u_recalibrated", "--json")
    assert only_json(done)["data"]["rows"] == ROWS


def test_a_process_that_helps_shows_and_applies_loads_no_slow_library(sigmascale):
    fit = ("fit", "calibration.csv", "--method", "boosted", "-o", "s.json")
    assert sigmascale(*fit).code == 0
    assert sigmascale("apply", "s.json", "test.csv", "-o", "here.csv").code == 0
    apply = ("apply", "s.json", "test.csv", "-o", "there.csv")
    helped, shown, applied = libraries(["--help"], ["show", "s.json"], apply)
    assert helped == set()
    assert shown <= {"numpy"}
    assert applied == {"numpy", "polars"}
    assert Path("here.csv").read_bytes() == Path("there.csv").read_bytes()


# --- compare, bins, demo, paper


def test_compare_shows_every_method_and_both_verdicts(sigmascale):
    done = sigmascale("compare", "calibration.csv", "test.csv", "--feature", "mass")
    assert done.code == 0
    assert re.fullmatch("warning: 400 rows in 40 bins .*15.*\n", done.err)
    for name in (each for each in methods() if each not in ("category", "component")):
        assert re.search(rf"^{name} +-?\d", done.out, re.MULTILINE), name
    assert "Before\n✓ Unbiased" in done.out
    assert "After, with auto\n" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_compare_tells_machines(sigmascale):
    done = sigmascale(
        "compare", "calibration.csv", "test.csv", "--bins", "100", "--json"
    )
    assert re.match("warning: 100 bins .* 400 rows", done.err)
    assert done.err.count("100 bins") == 1  # however often it was warned
    told = json.loads(done.out)
    assert told["comparison"]["method"][0] == "none"
    assert told["comparison"]["method"][-1] == "auto"
    assert set(told) == {
        "calibration",
        "test",
        "chosen",
        "comparison",
        "told",
        "before",
        "after",
    }
    nll = dict(
        zip(told["comparison"]["method"], told["comparison"]["test NLL"], strict=True)
    )
    assert nll["none"] == pytest.approx(ss.nll(TABLE[ROWS:]["E"], TABLE[ROWS:]["u"]))


def test_bins_scans_and_chooses(sigmascale):
    done = sigmascale("bins", "calibration.csv", "test.csv", "--by", "mass")
    assert (done.code, done.err) == (0, "")
    assert "\nisotonic " in done.out
    preferred = int(re.search(r"alone prefers (\d+) bins?\.", done.out)[1])
    told = only_json(
        sigmascale("bins", "calibration.csv", "test.csv", "--by", "mass", "--json")
    )
    assert told["choice"]["n_bins"] == preferred
    assert told["choice"]["n_bins"] in told["scan"]["n_bins"]


# --- the pages and the process


def test_long_names_and_many_features_fit_a_terminal(sigmascale):
    rng = np.random.default_rng(0)
    names = [f"{i}{'m' * 59}" for i in range(10)]
    noise = (pl.Series(name, rng.normal(size=TABLE.height)) for name in names)
    wide = TABLE.with_columns(noise)
    wide[:ROWS].write_csv("w-cal.csv")
    wide[ROWS:].write_csv("w-test.csv")
    for arguments in (
        ("check", "w-test.csv", "--all-features"),
        ("fit", "w-cal.csv", "--all-features", "--method", "linear", "-o", "s.json"),
        ("bins", "w-cal.csv", "w-test.csv", "--by", names[0]),
        ("compare", "w-cal.csv", "w-test.csv", "--feature", names[0]),
    ):
        done = sigmascale(*arguments)
        assert done.code in (0, 1), done.err
        assert max(map(len, done.out.splitlines())) <= 80, arguments


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("check",),
        ("check", "test.csv", "--bins", "0"),
        ("check", "test.csv", "--bins", "many"),
        ("check", "test.csv", "--seed", "-1"),
        ("check", "test.csv", "--featre", "mass"),
        ("fit", "calibration.csv"),
        ("fit", "calibration.csv", "-o", "x.json", "--method", "magic"),
        ("fit", "calibration.csv", "-o", "x.json", "--loss", "magic"),
        ("apply", "x.json", "test.csv"),
        ("demo", "--rows", "999"),
        ("demo", "--seed", "-1"),
        ("paper", "--step", "0"),
    ],
)
def test_wrong_usage_is_bad_input(sigmascale, arguments, tmp_path):
    before = sorted(path.name for path in tmp_path.iterdir())
    done = sigmascale(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert "Traceback" not in done.err
    assert "--help" in done.err or "-h" in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_help_fits_two_screens_with_its_groups_in_one_order(sigmascale, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    commands = [each.name or each.callback.__name__ for each in app.registered_commands]
    for command in ([], *([each] for each in commands)):
        done = sigmascale(*command, "--help")
        assert done.code == 0
        lines = done.out.splitlines()
        assert len(lines) <= 80, command
        assert max(map(len, lines)) <= 80
        assert not re.search(r"<\w+(\[|>)|\{|\.\.\.\.", done.out)  # types, not words
        titles = [line[:-1] for line in lines if re.fullmatch(r"\w+:", line)]
        order = ["Arguments", "Options", "Columns", "Reading", "More", "Commands"]
        order.append("Examples")
        assert titles == sorted(titles, key=order.index)
        assert done.out == sigmascale(*command, "-h").out


@pytest.mark.parametrize("command", ["check", "fit"])
def test_six_options_come_first(sigmascale, command):
    page = sigmascale(command, "--help").out
    first = page.split("\nOptions:\n")[1].split("\n\n")[0]
    assert len(re.findall(r"^  -", first, re.M)) == 6


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "test.csv"),
        ("fit", "calibration.csv", "--method", "linear", "-o", "scaler.json"),
        ("divide", "test.csv", "--calibration", "a.csv", "--test", "b.csv"),
    ],
)
def test_quiet_prints_what_is_asked_for_alone(sigmascale, arguments):
    quiet, loud = sigmascale(*arguments, "--quiet"), sigmascale(*arguments)
    assert (quiet.code, quiet.out, quiet.err) == (loud.code, "", loud.err)
    assert loud.out
    asked = sigmascale(*arguments, "-q", "--json")
    assert asked.out == sigmascale(*arguments, "--json").out != ""


def test_without_its_packages_the_command_line_says_what_to_install():
    code = (
        "import sys; sys.modules['typer'] = None; sys.argv = ['sigmascale', 'check']\n"
        "from sigmascale.__main__ import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert 'pip install ".[cli]" in a checkout' in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_reader_that_has_seen_enough_is_no_error(sigmascale):
    sigmascale("fit", "calibration.csv", "--method", "linear", "-o", "scaler.json")
    pl.concat([TABLE] * 20).write_csv("big.csv")
    arguments = ("apply", "scaler.json", "big.csv", "-o", "-")
    with subprocess.Popen(
        [sys.executable, "-m", "sigmascale", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline().startswith(b"formula,E,u")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == -signal.SIGPIPE


def test_ctrl_c_leaves_no_partial_output_and_is_no_verdict(tmp_path):
    pl.concat([TABLE] * 200).write_csv("more.csv")
    Path("scaler.json").write_text("old")
    before = sorted(path.name for path in tmp_path.iterdir())
    arguments = ("fit", "more.csv", "--all-features", "-o", "scaler.json")
    with subprocess.Popen(
        [sys.executable, "-m", "sigmascale", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        wait_for(process, seconds=3)  # all is loaded, and the fit goes on
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert out == b""
    assert Path("scaler.json").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def wait_for(process, seconds):
    """Let a process work for so many seconds of its own, whatever else goes on."""
    ticks = os.sysconf("SC_CLK_TCK")
    stat = Path(f"/proc/{process.pid}/stat")
    while process.poll() is None:
        fields = stat.read_text().rpartition(")")[2].split()
        if (int(fields[11]) + int(fields[12])) / ticks > seconds:
            return
        time.sleep(0.02)
    pytest.fail(f"ended too soon: {process.communicate()}")


def test_the_version_is_told(sigmascale):
    assert sigmascale("--version").out == f"sigmascale {ss.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fit", "own.csv", "-o", "own.csv"), r"JSON.* \*\.json"),
        (("fit", "own.json", "-o", "own.json"), "is what is read"),
        (("check", "own.csv", "--report", "own.csv"), "HTML"),
        (("compare", "own.csv", "own.csv", "--report", "a.pdf"), "HTML"),
    ],
)
def test_no_output_replaces_what_is_read_or_has_a_wrong_ending(
    sigmascale, arguments, words
):
    for name in ("own.csv", "own.json"):
        TABLE.write_csv(name)
    before = Path(arguments[1]).read_bytes()
    done = sigmascale(*arguments)
    assert done.code == 2
    assert done.says(words), done.err
    assert Path(arguments[1]).read_bytes() == before
    assert not Path("a.pdf").exists()


def test_apply_keeps_the_separator(sigmascale):
    TABLE[:ROWS].write_csv("own.csv", separator=";")
    options = ("--separator", ";")
    fit = ("fit", "own.csv", *options, "--method", "linear", "-o", "s.json")
    assert sigmascale(*fit).code == 0
    assert sigmascale("apply", "s.json", "own.csv", *options, "-o", "o.csv").code == 0
    out = pl.read_csv("o.csv", separator=";")
    assert out.columns == [*TABLE.columns, "u_recalibrated"]


def test_comparing_a_set_with_itself_is_warned_of(sigmascale):
    done = sigmascale("compare", "calibration.csv", "calibration.csv")
    assert done.says("warning: .*calibration.csv .*rows of calibration.csv")


def test_check_tells_bias_and_what_cannot_be_told(sigmascale):
    few = TABLE[:60].with_columns(E=pl.col("u") * np.linspace(3, 5, 60))
    few.write_csv("few.csv")
    done = sigmascale("check", "few.csv")
    assert done.code == 1
    assert done.says("✗ Biased: .*4 u above 0")
    assert sigmascale("check", "few.csv", "--tolerate", "no").code == 0
    rng = np.random.default_rng(0)
    u = rng.gamma(4, 0.1, 60)
    pl.DataFrame({"E": rng.normal(scale=u), "u": u}).write_csv("honest.csv")
    done = sigmascale("check", "honest.csv")
    assert done.code == 4
    assert re.search(r"\? Along u, one cannot tell", done.out)
    assert done.out.splitlines()[-1].startswith("Cannot tell")
    assert sigmascale("check", "honest.csv", "--tolerate", "cannot-tell").code == 0


def test_check_takes_groups_and_confidence(sigmascale):
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(150), 4)
    u = np.repeat(rng.gamma(4, 0.1, 150), 4)
    z = 0.95 * np.repeat(rng.normal(size=150), 4) + 0.31 * rng.normal(size=600)
    table = pl.DataFrame({"E": u * z, "u": u, "sample": group})
    table.write_csv("repeats.csv")
    alone = sigmascale("check", "repeats.csv")
    assert "groups" in alone.err
    together = sigmascale("check", "repeats.csv", "--groups", "sample")
    assert together.code in (0, 4), together.out
    assert "groups" not in together.err
    strict = sigmascale("check", "repeats.csv", "--groups", "nothing")
    assert strict.code == 2
    assert "--groups" in strict.err
    assert sigmascale("check", "repeats.csv", "--confidence", "2").code == 2


def test_check_tells_rows_that_the_recalibrator_was_fitted_on(
    data, tmp_path, sigmascale
):
    scaler, some = tmp_path / "scaler.json", tmp_path / "some.csv"
    fitted = sigmascale(
        *("fit", data / "calibration.csv", "--feature", "mass", "--feature", "OxNy"),
        *("--method", "temperature", "-o", scaler),
    )
    assert fitted.code == 0
    shares = {}
    for name, table in {"same": TABLE[:ROWS], "half": TABLE[ROWS // 2 :]}.items():
        table.write_csv(some)
        told = sigmascale("check", some, "--scaler", scaler).err
        shares[name] = int(re.search(r"(\d+)% of the rows", told)[1])
    assert shares["same"] == 100
    assert 35 < shares["half"] < 65
    told = sigmascale("check", data / "test.csv", "--scaler", scaler).err
    assert "% of the rows" not in told
