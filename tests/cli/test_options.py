"""What a user can say of columns, rows, methods and intervals, and what comes of it."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.datasets import make_molecules
from sigmascale.scaling import TemperatureScaling, register, unregister

ROWS = 1000
DATA = make_molecules(ROWS, seed=4)
TABLE = pl.DataFrame(
    {
        "split": ["calibration", "test"] * (ROWS // 2),
        "R": 5.0 + DATA.error,
        "V": np.full(ROWS, 5.0) + 0.01 * np.arange(ROWS),
        "E": DATA.error,
        "u": DATA.uncertainty,
        "mass": DATA.mass,
        "hetero": DATA.heteroatom_fraction,
        "OxNy": DATA.group,
        "pair": np.arange(ROWS) // 2,
    }
).with_columns(R=pl.col("V") + pl.col("E"))
CALIBRATION, TEST = (TABLE.filter(split=each) for each in ("calibration", "test"))
LINEAR = ("--method", "linear", "-o", "s.json")


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.write_csv("both.csv")
    CALIBRATION.write_csv("calibration.csv")
    TEST.write_csv("test.csv")


def refused(done, match):
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert re.search(match, done.err), done.err


def told(done):
    """Return what a command told machines."""
    assert done.code in (0, 1), done.err
    return json.loads(done.out)


def lines(done):
    assert done.code in (0, 1), done.err
    return " ".join(done.out.split())


# --- columns


def test_all_features_leave_out_the_old_uncertainty_and_say_so(sigmascale):
    columns = ("--error", "E", "--exclude", "pair", "--exclude", "V")
    fit = ("fit", "calibration.csv", *columns, "--all-features", *LINEAR)
    assert sigmascale(*fit).code == 0
    apply = ("apply", "s.json", "test.csv", "-o", "new.csv")
    assert sigmascale(*apply).code == 0
    check = ("check", "new.csv", *columns, "--uncertainty", "u_recalibrated")
    done = sigmascale(*check, "--all-features")
    assert re.search(r"Left out,[^.]*: R, u\.", lines(done))
    found = told(sigmascale(*check, "--all-features", "--json"))["data"]
    assert found["numbers"] == ["mass", "hetero"]
    assert found["left_out"] == ["R", "u"]


def test_the_prediction_can_be_a_feature(sigmascale):
    parts = ("--reference", "R", "--prediction", "V")
    found = told(sigmascale("check", "test.csv", *parts, "--feature", "V", "--json"))
    assert found["verdicts"]["V"]["score"] > 0
    assert found["data"]["error"] == ["R", "V"]
    fit = ("fit", "calibration.csv", *parts, "--feature", "V", "--method", "binwise")
    assert sigmascale(*fit, "--by", "V", "--bins", "4", "-o", "s.json").code == 0
    assert sigmascale("apply", "s.json", "test.csv", "-o", "new.csv").code == 0
    expected = ss.load("s.json").predict(TEST.select("u", "V"))
    assert pl.read_csv("new.csv")["u_recalibrated"].to_list() == expected.tolist()
    for feature in ("R", "E"):
        options = parts if feature == "R" else ("--error", "E")
        done = sigmascale("check", "test.csv", *options, "--feature", feature)
        refused(done, f"'{feature}' .*part already")


# --- rows


WHERE = ("--where", "split == 'test'")


def test_check_and_fit_take_the_rows_that_meet_conditions(sigmascale):
    done = sigmascale("check", "both.csv", *WHERE)
    assert f"500 rows of 1000, where {WHERE[1]};" in lines(done)
    some = told(sigmascale("check", "both.csv", *WHERE, "--json"))
    alone = told(sigmascale("check", "test.csv", "--json"))
    assert some["verdicts"] == alone["verdicts"]
    data = some["data"]
    assert (data["rows"], data["rows_read"], data["where"]) == (500, 1000, WHERE[1])
    for file, options in (("both.csv", WHERE), ("test.csv", ())):
        name = f"{file}.json"
        fit = ("fit", file, *options, "--method", "raked", "-o", name)
        assert sigmascale(*fit).code == 0
    assert Path("both.csv.json").read_bytes() == Path("test.csv.json").read_bytes()


def test_apply_writes_the_rows_that_meet_conditions(sigmascale):
    assert sigmascale("fit", "calibration.csv", *LINEAR).code == 0
    done = sigmascale("apply", "s.json", "both.csv", *WHERE, "-o", "some.csv")
    assert "some.csv (500 rows; column u_recalibrated)" in done.out
    assert sigmascale("apply", "s.json", "test.csv", "-o", "alone.csv").code == 0
    assert Path("some.csv").read_bytes() == Path("alone.csv").read_bytes()


def test_compare_and_bins_take_the_rows_that_meet_conditions(sigmascale):
    for command in ("compare", "bins"):
        pair = ("calibration.csv", "test.csv")
        some = sigmascale(command, *pair, "--where", "mass > 110", "--json")
        for file, frame in zip(pair, (CALIBRATION, TEST), strict=True):
            frame.filter(pl.col("mass") > 110).write_csv(f"heavy-{file}")
        heavy = (f"heavy-{file}" for file in pair)
        alone = told(sigmascale(command, *heavy, "--json"))
        found = told(some)
        for name in alone.keys() - {"calibration", "test", "comparison"}:
            assert found[name] == alone[name]


def test_conditions_that_are_none_are_refused(sigmascale):
    done = sigmascale("check", "both.csv", "--where", "split = 'test")
    refused(done, 'both.csv: --where "split = \'test" cannot be used')
    done = sigmascale("check", "both.csv", "--where", "mass > 1e9")
    refused(done, "none of 1000 rows")


# --- decimal commas


def write_commas(frame, name):
    frame.write_csv(name, separator=";", decimal_comma=True)


COMMAS = ("--separator", ";", "--decimal", ",")


def test_decimal_commas_are_read_and_written(sigmascale):
    write_commas(CALIBRATION, "c.csv")
    write_commas(TEST, "t.csv")
    hint = sigmascale("check", "t.csv", "--separator", ";")
    refused(hint, "Pass --decimal ,")
    for commas, points in (("c.csv", "calibration.csv"), ("t.csv", "test.csv")):
        ours = told(sigmascale("check", commas, *COMMAS, "--all-features", "--json"))
        other = told(sigmascale("check", points, "--all-features", "--json"))
        assert ours["verdicts"] == other["verdicts"]
    assert sigmascale("fit", "c.csv", *COMMAS, *LINEAR).code == 0
    assert sigmascale("apply", "s.json", "t.csv", *COMMAS, "-o", "o.csv").code == 0
    assert sigmascale("apply", "s.json", "test.csv", "-o", "points.csv").code == 0
    before, after = (Path(name).read_text().splitlines() for name in ("t.csv", "o.csv"))
    assert [line.rpartition(";")[0] for line in after[1:]] == before[1:]
    assert all("." not in line for line in after[1:])
    found = pl.read_csv("o.csv", separator=";", decimal_comma=True)["u_recalibrated"]
    assert found.to_list() == pl.read_csv("points.csv")["u_recalibrated"].to_list()
    apply = ("apply", "s.json", "t.csv", *COMMAS, "-o", "o.parquet")
    assert sigmascale(*apply).code == 0
    assert (
        pl.read_parquet("o.parquet")
        .drop("u_recalibrated")
        .equals(pl.read_csv("test.csv"))
    )


# --- what was learned


METHODS = {
    "none": (),
    "temperature": (),
    "linear": (),
    "isotonic": (),
    "binwise": ("--bins", "4"),
    "category": ("--label", "OxNy"),
    "raked": ("--feature", "mass"),
    "auto": (),
}


@pytest.mark.parametrize("method", METHODS)
def test_fit_and_show_tell_what_was_learned(sigmascale, method):
    options = ("--method", method, *METHODS[method])
    done = sigmascale("fit", "calibration.csv", *options, "-o", "s.json")
    words = ss.load("s.json").describe()
    assert " ".join(words.split()) in lines(done)
    assert max(map(len, done.out.splitlines())) <= 80
    shown = sigmascale("show", "s.json")
    assert shown.code == 0
    assert max(map(len, shown.out.splitlines())) < 80
    assert f"s.json: {' '.join(words.split())}" in lines(shown)
    scaling = type(ss.load("s.json").scaling_).__name__
    assert re.search(f"{scaling}.* 500 rows", shown.out)
    assert "error E; uncertainty u; features: " in lines(shown)
    assert f"Smallest uncertainty: {CALIBRATION['u'].min():g}." in shown.out
    assert "Intervals: those of the law" in shown.out
    assert f"sigmascale {ss.__version__}" in shown.out
    again = sigmascale("fit", "calibration.csv", *options, "-o", "s.json", "--json")
    assert told(again)["words"] == words


def test_show_tells_machines_and_knows_files_of_python(sigmascale):
    fit = ("fit", "calibration.csv", "--feature", "mass", "--conformal-share", "0.2")
    assert sigmascale(*fit, *LINEAR).code == 0
    found = told(sigmascale("show", "s.json", "--json"))
    assert found["method"] == "LinearScaling"
    assert (found["rows"], found["held_back"]) == (400, 100)
    assert found["columns"] == ["u", "mass"]
    assert found["roles"]["error"] == ["E"]
    assert found["library"] == ss.__version__
    assert re.search("100 rows .*held back", sigmascale("show", "s.json").out)
    ss.save(TemperatureScaling().fit(DATA.X, DATA.error), "python.json")
    shown = sigmascale("show", "python.json")
    assert "3 without names" in lines(shown)
    frame = TABLE.select("u", "mass")
    ss.save(TemperatureScaling().fit(frame, DATA.error), "python.json")
    assert "Columns: u, mass." in lines(sigmascale("show", "python.json"))
    assert told(sigmascale("show", "python.json", "--json"))["roles"] is None
    refused(sigmascale("show", "none.json"), "none.json")


# --- methods


class HalfScaling(TemperatureScaling):
    """Uncertainties are halved, whatever the errors say."""

    does = "all uncertainties are halved"

    def __init__(self, n_bins=3, *, random_state=0):
        self.n_bins = n_bins
        self.random_state = random_state


@pytest.fixture
def half():
    register("half", HalfScaling)
    yield "half"
    unregister("half")


def test_a_recalibrator_that_someone_registers_is_a_method(sigmascale, half):
    fit = ("fit", "calibration.csv", "--method", half, "--bins", "7", "--seed", "2")
    done = sigmascale(*fit, "-o", "s.json")
    assert "All uncertainties are halved." in done.out
    scaler = ss.load("s.json")
    assert type(scaler.scaling_) is HalfScaling
    assert (scaler.scaling_.n_bins, scaler.scaling_.random_state) == (7, 2)
    done = sigmascale(*fit, "--by", "mass", "-o", "s.json")
    refused(done, "--by .*--method binwise .*--method category.*half")
    done = sigmascale("fit", "calibration.csv", *LINEAR, "--bins", "7")
    refused(done, "--bins .*--method binwise .*raked .*half")


def test_a_method_that_nobody_knows_is_refused_with_those_that_are(sigmascale):
    done = sigmascale("fit", "calibration.csv", "--method", "magic", "-o", "s.json")
    assert done.code == 2
    words = "".join(each for each in done.err if each.isalnum() or each in ",'")
    assert "'magic'isnotoneofauto,none,temperature" in words


def test_defaults_are_those_of_the_classes_and_ten_bins_for_cells(sigmascale):
    for options, n_bins in (
        (("--method", "binwise"), 40),
        (("--method", "binwise", "--by", "u", "--by", "mass"), 10),
        (("--method", "raked"), 20),
    ):
        done = sigmascale("fit", "both.csv", *options, "-o", "s.json")
        assert done.code == 0, done.err
        assert ss.load("s.json").scaling_.n_bins == n_bins


# --- intervals


def fit_with_intervals(sigmascale, *options, share="0.2"):
    fit = ("fit", "calibration.csv", "--conformal-share", share, *options, "--json")
    return told(sigmascale(*fit, *LINEAR))


def test_limits_hold_the_share_of_errors_that_was_asked_for(sigmascale):
    found = fit_with_intervals(sigmascale)
    assert found["held_back"] == 100
    assert told(sigmascale("show", "s.json", "--json"))["rows"] == 400
    apply = ("apply", "s.json", "test.csv", "--coverage", "0.9", "-o", "new.csv")
    done = sigmascale(*apply)
    written = r"new.csv \(500 rows; column u_recalibrated; .*_low, u_recal\w+_high"
    assert done.says(written)
    new = pl.read_csv("new.csv")
    expected = ss.load("s.json").predict_interval(TEST.select("u"), 0.9)
    assert new["u_recalibrated_low"].to_list() == expected[:, 0].tolist()
    assert new["u_recalibrated_high"].to_list() == expected[:, 1].tolist()
    inside = new["E"].is_between(new["u_recalibrated_low"], new["u_recalibrated_high"])
    assert 0.8 < inside.mean() < 0.98
    assert told(sigmascale(*apply, "--json"))["distribution_of"] == "error"


def test_limits_are_those_of_the_value_where_there_is_a_prediction(sigmascale):
    parts = ("--reference", "R", "--prediction", "V")
    fit_with_intervals(sigmascale, *parts)
    apply = ("apply", "s.json", "--coverage", "0.9", "--name", "s", "-o", "new.csv")
    found = told(sigmascale(*apply, "test.csv", "--json"))
    assert found["distribution"] == ["s_low", "s_high"]
    assert found["distribution_of"] == "value"
    limits = ss.load("s.json").predict_interval(TEST.select("u"), 0.9)
    value = pl.read_csv("new.csv")
    assert np.allclose(value["s_low"], TEST["V"].to_numpy() + limits[:, 0])
    assert np.allclose(value["s_high"], TEST["V"].to_numpy() + limits[:, 1])
    TEST.drop("V").write_csv("without.csv")
    found = told(sigmascale(*apply, "without.csv", "--json"))
    assert found["distribution_of"] == "error"
    TEST.rename({"V": "model"}).write_csv("other.csv")
    found = told(sigmascale(*apply, "other.csv", "--prediction", "model", "--json"))
    assert found["distribution_of"] == "value"
    assert pl.read_csv("new.csv")["s_low"].equals(value["s_low"])


def test_whole_groups_are_held_back(sigmascale):
    found = fit_with_intervals(sigmascale, "--groups", "pair", share="0.3")
    assert 150 <= found["held_back"] <= 152
    doubled = pl.concat([CALIBRATION, CALIBRATION])
    doubled.write_csv("calibration.csv")
    found = fit_with_intervals(sigmascale, "--groups", "pair", share="0.3")
    assert found["held_back"] % 2 == 0


def test_variances_have_limits_of_their_root(sigmascale):
    squared = [frame.with_columns(v=pl.col("u") ** 2) for frame in (CALIBRATION, TEST)]
    for frame, name in zip(squared, ("calibration.csv", "test.csv"), strict=True):
        frame.write_csv(name)
    fit_with_intervals(sigmascale, "--variance", "v")
    apply = ("apply", "s.json", "test.csv", "--coverage", "0.9", "-o", "new.csv")
    assert sigmascale(*apply).code == 0
    new = pl.read_csv("new.csv")
    ratio = new["v_recalibrated_high"] ** 2 / new["v_recalibrated"]
    assert np.allclose(ratio, ratio[0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--quantiles", "0.5,2"), "--quantiles .*between 0 and 1"),
        (("--shift",), "s.json: no shift .*--shift auto"),
        (("--coverage", "1.5"), "must"),
        (("--prediction", "V"), "--prediction .*--coverage"),
    ],
)
def test_limits_that_cannot_be_are_refused(sigmascale, options, words):
    assert sigmascale("fit", "calibration.csv", *LINEAR).code == 0
    apply = ("apply", "s.json", "test.csv", "-o", "new.csv")
    refused(sigmascale(*apply, *options), words)
    assert not Path("new.csv").exists()


@pytest.mark.parametrize(
    ("share", "words"),
    [("0", "between 0 and 1"), ("1", "between 0 and 1"), ("0.999", "too few rows")],
)
def test_a_share_that_cannot_be_held_back_is_refused(sigmascale, share, words):
    fit = ("fit", "calibration.csv", "--conformal-share", share, *LINEAR)
    refused(sigmascale(*fit), words)
    assert not Path("s.json").exists()


def test_infinite_limits_are_warned_of(sigmascale):
    fit_with_intervals(sigmascale, share="0.01")
    apply = ("apply", "s.json", "test.csv", "--coverage", "0.9", "-o", "new.csv")
    done = sigmascale(*apply)
    assert done.code == 0
    assert "at least 9 " in done.err


# --- side by side, and in other formats


def test_columns_of_one_file_are_compared(sigmascale):
    double = TEST.with_columns(two=2 * pl.col("u"), v=pl.col("u") ** 2)
    double.write_csv("models.csv")
    columns = ("--uncertainty", "u", "--uncertainty", "two", "--variance", "v")
    compare = ("compare", "models.csv", "--error", "E", *columns, "--feature", "mass")
    done = sigmascale(*compare)
    assert done.code == 0, done.err
    assert max(map(len, done.out.splitlines())) <= 80
    for name in ("u", "two", "v"):
        assert f"\n{name}\n✓ Unbiased" in done.out
    found = told(sigmascale(*compare, "--json"))["uncertainties"]
    assert list(found) == ["u", "two", "v"]
    assert found["u"]["scores"] == found["v"]["scores"]
    error = TEST["E"].to_numpy()
    for name, u in (("u", TEST["u"]), ("two", double["two"])):
        assert found[name]["scores"]["NLL"] == pytest.approx(ss.nll(error, u))
        alone = told(
            sigmascale(
                *("check", "models.csv", "--error", "E", "--uncertainty", name),
                *("--feature", "mass", "--json"),
            )
        )
        assert found[name]["verdicts"] == alone["verdicts"]
    every = ("--all-features", "--exclude", "pair")
    found = told(sigmascale(*compare[:-2], *every, "--json"))
    assert found["data"]["numbers"] == ["V", "mass", "hetero"]


def test_columns_are_compared_on_the_rows_that_all_of_them_have(sigmascale):
    holes = pl.when(pl.int_range(pl.len()) < 100).then(None).otherwise("u")
    TEST.with_columns(other=holes).write_csv("models.csv")
    compare = ("compare", "models.csv", "--uncertainty", "u", "--uncertainty", "other")
    refused(sigmascale(*compare), "100 of 500 rows .*missing")
    found = told(sigmascale(*compare, "--drop-missing", "--json"))
    assert found["data"]["rows"] == 400
    scores = [each["scores"] for each in found["uncertainties"].values()]
    assert scores[0] == scores[1]
    content = Path("models.csv").read_bytes()
    piped = ("compare", "-", *compare[2:], "--drop-missing", "--json")
    done = sigmascale(*piped, stdin=content)
    assert told(done)["uncertainties"] == found["uncertainties"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("test.csv",), "test.csv .*two columns"),
        (("test.csv", "--uncertainty", "u"), "two columns"),
        (("test.csv", "--uncertainty", "u", "--uncertainty", "u"), "given twice"),
        (
            (
                *("calibration.csv", "test.csv", "--uncertainty", "u"),
                *("--uncertainty", "mass"),
            ),
            "one file",
        ),
        (
            (
                *("test.csv", "--uncertainty", "u", "--uncertainty", "mass"),
                *("--report", "a.html"),
            ),
            "need a TEST file",
        ),
    ],
)
def test_comparisons_that_are_none_are_refused(sigmascale, arguments, words):
    refused(sigmascale("compare", *arguments), words)


COMMANDS = {
    "check": ("check", "test.csv", "--feature", "mass"),
    "compare": ("compare", "calibration.csv", "test.csv"),
    "bins": ("bins", "calibration.csv", "test.csv"),
    "columns": ("compare", "test.csv", "--uncertainty", "u", "--uncertainty", "mass"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_tables_come_as_markdown_and_latex_and_alone(sigmascale, command):
    options = (*COMMANDS[command], "--error", "E")
    text = sigmascale(*options)
    assert sigmascale(*options, "--format", "text").out == text.out
    markdown = sigmascale(*options, "--format", "markdown")
    assert markdown.code == text.code
    rows = markdown.out.splitlines()
    assert all(row.startswith("| ") and row.endswith(" |") for row in rows)
    assert set(rows[1]) == set("|- ")
    first = [cell.strip() for cell in rows[2].split("|")[1:-1]]
    assert " ".join(first).split()[0] in text.out
    latex = sigmascale(*options, "--format", "latex").out.splitlines()
    assert latex[0].startswith(r"\begin{tabular}{lr")
    assert latex[-1] == r"\end{tabular}"
    assert len(latex) == len(rows) + 4
    refused(sigmascale(*options, "--format", "latex", "--json"), "but not both")


def test_a_format_that_nobody_knows_is_wrong_usage(sigmascale):
    done = sigmascale("check", "test.csv", "--format", "word")
    assert done.code == 2
    assert "-h" in done.err


# --- reports


@pytest.fixture
def reports(monkeypatch):
    """What was asked to be written, instead of a report."""
    asked = []

    def write_report(path, validation, **options):
        asked.append((path, validation, options))

    monkeypatch.setattr("sigmascale.report.write_report", write_report)
    return asked


def test_check_judges_once_and_hands_the_verdicts_to_the_report(
    sigmascale, reports, monkeypatch
):
    judged = []

    def note_rows(error, **options):
        judged.extend([] if isinstance(error, dict) else [error])
        return real(error, **options)

    real = ss.validate
    monkeypatch.setattr("sigmascale.judging.verdicts.validate", note_rows)
    check = ("check", "test.csv", "--error", "E", "--feature", "mass")
    done = sigmascale(*check, "--report", "a.html", "--seed", "3")
    assert done.out.endswith("\nReport: a.html\n")
    ((path, found, options),) = reports
    assert str(path) == "a.html"
    given = {name: value for name, value in options.items() if value is not None}
    assert given == {"title": "Uncertainties of test.csv", "rng": 3}
    assert list(found.verdicts)[:4] == ["bias", "average", "u", "mass"]
    assert len(judged) == 1


def test_compare_hands_what_it_found_to_the_report(sigmascale, reports):
    compare = ("compare", "calibration.csv", "test.csv", "--error", "E")
    done = sigmascale(*compare, "--report", "a.html")
    assert done.out.endswith("\nReport: a.html\n")
    ((_, before, options),) = reports
    assert f"Before\n✓ {before.verdicts['bias'].sentence[:20]}" in done.out
    after = options["recalibrated"].verdicts["average"].sentence
    assert after in lines(done)
    nll = {row.name: row.test.nll for row in options["comparison"].rows}
    assert nll["auto"] < nll["none"]
    assert options["scaler"].scaling_.name_ in done.out
    X, error = options["calibration"]
    assert X.columns == ["u"]
    assert error.tolist() == CALIBRATION["E"].to_list()


def test_absurd_uncertainties_are_told_by_fit_and_apply(sigmascale):
    u = CALIBRATION["u"].to_numpy().copy()
    u[:6] = 1e-9
    CALIBRATION.with_columns(u=u).write_csv("calibration.csv")
    fit = ("fit", "calibration.csv", "--method", "temperature", "-o", "s.json")
    done = sigmascale(*fit)
    assert "exceed 3 times the largest error" in " ".join(done.err.split())
    done = sigmascale("apply", "s.json", "test.csv", "-o", "new.csv")
    words = " ".join(done.err.split())
    assert done.code == 0
    assert "s.json: " in words
    assert "Use quantiles and intervals" in words


def test_a_bias_is_told_with_what_a_shift_would_gain_and_shifted_when_asked(sigmascale):
    for frame, name in ((CALIBRATION, "calibration.csv"), (TEST, "test.csv")):
        frame.with_columns(E=pl.col("E") + pl.col("u")).write_csv(name)
    found = told(sigmascale("check", "calibration.csv", "--json"))
    assert re.search(r"lower .* by \d+ ± \d.*--shift auto", found["advice"])
    fit = ("fit", "calibration.csv", "-o", "s.json")
    words = " ".join(sigmascale(*fit).out.split())
    assert found["advice"] in words
    done = sigmascale(*fit, "--shift", "auto")
    assert "Predictions are shifted" in " ".join(done.out.split())
    assert "--shift auto" not in done.out
    apply = ("apply", "s.json", "test.csv", "--shift", "--quantiles", "0.05,0.95")
    assert sigmascale(*apply, "--name", "new", "-o", "new.csv").code == 0
    new = pl.read_csv("new.csv")
    recalibrator = ss.load("s.json")
    shift = recalibrator.predict_shift(new.select("u"))
    expected = recalibrator.predict_quantiles(new.select("u"), [0.05, 0.95])
    np.testing.assert_allclose(new["new_shifted"], shift)
    np.testing.assert_allclose(new.select("new_q0.05", "new_q0.95"), expected)
    inside = new["E"].is_between(new["new_q0.05"], new["new_q0.95"])
    assert 0.84 < inside.mean() < 0.96
