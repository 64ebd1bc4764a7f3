"""What the commands do: check, fit, apply, compare, watch, show and export."""

import datetime
import json
import shlex

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.recalibration.scalings import SCALINGS

RNG = np.random.default_rng(7)
N = 600
U = RNG.gamma(4.0, 0.1, N)
MASS = RNG.uniform(50, 150, N)
KIND = np.where(RNG.random(N) < 0.3, "01", "b,2")
ERROR = RNG.normal(size=N) * U * np.where(MASS > 100, 3.0, 1.0)
PRED = RNG.normal(5, 2, N)
FRAME = pl.DataFrame(
    {
        "R": PRED + ERROR,
        "V": PRED,
        "u": U,
        "mass": MASS,
        "kind": KIND,
        "mol": [f"m{i // 3}" for i in range(N)],
        "w": RNG.integers(1, 4, N),
        "t": np.arange(N) + 0.5,
    }
)
CODES = {"pass": 0, "FAIL": 1, "inconclusive": 4}
PAIR = ("--reference", "R", "--prediction", "V")


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.write_csv("t.csv")


@pytest.fixture
def run(sigmascale):
    """Run a command that must end well; return its exit code and JSON."""

    def run(*arguments, code=None):
        done = sigmascale(*arguments, "--json")
        assert done.code in ((0, 1, 4) if code is None else (code,)), done.err
        return done.code, json.loads(done.out)

    return run


@pytest.fixture
def fit(sigmascale):
    """Fit a recalibrator by a command that must end well; return its file."""

    def fit(*options, file="t.csv", to="r.json"):
        done = sigmascale("fit", file, *PAIR, *options, "-o", to)
        assert done.code == 0, done.err
        return to

    return fit


def predictions(frame=FRAME, features=("mass",), **others):
    return ss.Predictions.from_frame(
        frame, y_true="R", y_pred="V", y_std="u", features=list(features), **others
    )


def ordered(told):
    """Return results without what the rounding of sums may change."""
    checks = told["checks"].items()
    return {name: (x["result"], x["subgroup"]["n_rows"]) for name, x in checks}


# -- check -----------------------------------------------------------------------------


def test_check_tells_machines_what_python_tells(run):
    code, told = run("check", "t.csv", *PAIR, "--feature", "mass", "--seed", "3")
    found = ss.validate(predictions(), rng=3)
    assert told["headline"] == found.headline
    assert told["scores"] == found.scores.to_dict()
    assert code == CODES[found.result]
    assert list(told["checks"]) == list(found.checks)
    for name, check in found.checks.items():
        assert told["checks"][name]["result"] == check.result
        shown = told["checks"][name]["subgroup"]
        assert shown["estimate"] == check.subgroup.estimate
    data = told["data"]
    assert (data["rows"], data["rows_read"], data["dropped"]) == (N, N, 0)
    assert data["error"] == ["R", "V"]
    assert data["numbers"] == ["mass"]


def test_check_prints_a_first_line_a_line_a_check_and_what_to_do(sigmascale):
    done = sigmascale("check", "t.csv", *PAIR, "--feature", "mass")
    lines = done.out.splitlines()
    assert (done.code, done.err) == (1, "")
    assert len(lines) <= 33
    assert max(map(len, lines)) <= 80
    found = ss.validate(predictions())
    assert done.says(r"t\.csv: 600 rows.*R − V.*uncertainty u.*mass")
    text = " ".join(done.out.split())
    assert text.index(found.headline) < text.index("FAIL calibration all rows")
    assert "guessed u, from their names" in text
    assert "Recalibrator(" not in text
    assert "sigmascale fit CALIBRATION.csv" in text  # never what was tested
    assert "fit t.csv" not in text
    assert "Exit status 1 (FAIL)" in text


def test_the_next_step_that_check_prints_can_be_typed(sigmascale):
    from sigmascale.cli.options import parse

    done = sigmascale("check", "t.csv", *PAIR, "--feature", "mass", "--label", "kind")
    words = typed(done.out)
    command = parse(words)
    assert command.features == ("mass",)
    assert command.labels == ("kind",)
    FRAME.write_csv("CALIBRATION.csv")
    assert sigmascale(*words).code == 0
    assert ss.load("r.json").n_rows_ == N


def typed(out):
    """Return the words of the fit that is printed as the next step."""
    at = out.index("sigmascale fit")
    line = out[at:].split("\n\n")[0].replace("\\\n", " ")
    return shlex.split(line)[1:]


def test_results_have_their_exit_codes_and_may_be_tolerated(sigmascale):
    u, rng = np.resize(U, 20_000), np.random.default_rng(0)
    frame = pl.DataFrame({"E": rng.normal(size=20_000) * u, "u": u})
    frame.write_parquet("good.parquet")
    frame[:40].write_csv("few.csv")
    assert sigmascale("check", "good.parquet").code == 0
    assert sigmascale("check", "few.csv").code == 4
    tolerated = ("--tolerate", "inconclusive")
    assert sigmascale("check", "few.csv", *tolerated).code == 0
    assert sigmascale("check", "t.csv", *PAIR, *tolerated).code == 1
    assert sigmascale("check", "t.csv", *PAIR, "--tolerate", "FAIL").code == 0


def test_groups_weights_and_times_are_those_of_python(run):
    options = ("--groups", "mol", "--weight", "w", "--confidence", "0.9")
    told = run("check", "t.csv", *PAIR, *options)[1]
    p = predictions(features=(), groups="mol", weights="w")
    found = ss.validate(p, confidence=0.9)
    assert told["headline"] == found.headline
    told = run("check", "t.csv", *PAIR, "--time", "t")[1]
    assert told["time"]["answer"] in ("yes", "no", "inconclusive")
    assert told["time"]["n_rows"] == N
    late = FRAME.with_columns(
        R=pl.when(pl.col("t") > 300).then(pl.col("R") + 3).otherwise("R")
    )
    late.sample(fraction=1, shuffle=True, seed=0).write_csv("late.csv")
    assert run("check", "late.csv", *PAIR, "--time", "t")[1]["time"]["answer"] == "yes"


def test_what_json_lacks_is_null_and_control_characters_are_escaped(sigmascale):
    FRAME.rename({"mass": "m\x1b[2J"}).write_csv("odd.csv")
    done = sigmascale("check", "odd.csv", *PAIR, "--feature", "m\x1b[2J", "--json")
    assert "\x1b" not in done.out
    assert "Infinity" not in done.out
    assert json.loads(done.out)["data"]["numbers"] == ["m\x1b[2J"]
    done = sigmascale("check", "odd.csv", *PAIR, "--feature", "m\x1b[2J")
    assert "\x1b" not in done.out


def test_check_prints_all_scores_if_asked_to(sigmascale, run):
    done = sigmascale("check", "t.csv", *PAIR, "--scores")
    card = ss.scores.scorecard(predictions(FRAME, ()))
    assert done.says(f"f_v_u.*{card['f_v_u']:.4g}")
    assert not sigmascale("check", "t.csv", *PAIR).says("f_v_u")
    told = run("check", "t.csv", *PAIR)[1]
    assert told["scores"]["f_v_u_low"] == pytest.approx(card["f_v_u_low"])


def test_quiet_prints_nothing_but_what_is_asked_for(sigmascale):
    for options, printed in ((["-q"], False), (["--quiet", "--json"], True)):
        done = sigmascale("check", "t.csv", *PAIR, *options)
        assert (done.code, bool(done.out), done.err) == (1, printed, "")


def test_a_report_is_written_whole_and_under_its_kind_of_name(sigmascale, tmp_path):
    done = sigmascale("check", "t.csv", *PAIR, "--report", "r.html")
    assert done.code == 1
    assert "r.html" in done.out
    assert "</html>" in (tmp_path / "r.html").read_text()
    done = sigmascale("check", "t.csv", *PAIR, "--report", "r.pdf")
    assert (done.code, "HTML" in done.err) == (2, True)


# -- columns ---------------------------------------------------------------------------


def test_errors_variances_and_other_forms_say_the_same(run):
    members = np.random.default_rng(0).normal(size=(N, 5))
    members = (members - members.mean(axis=1, keepdims=True)) / members.std(
        axis=1, ddof=1, keepdims=True
    )
    members = PRED[:, None] + U[:, None] * members
    width = 1.959963984540054 * U
    frame = FRAME.with_columns(
        E=pl.col("R") - pl.col("V"),
        s2=pl.col("u") ** 2,
        low=pl.Series(PRED - width),
        high=pl.Series(PRED + width),
        **{f"m,{i}*": pl.Series(members[:, i]) for i in range(5)},
    )
    frame.write_csv("forms.csv")
    items = [x for i in range(5) for x in ("--members", f"m,{i}*")]
    quantiles = ("--quantile-columns", "low=0.025", "--quantile-columns", "high=0.975")
    interval = ("--interval", "low", "--interval", "high")
    interval += ("--interval-coverage", "0.95")
    forms = [
        (*PAIR, "--uncertainty", "u"),
        ("--error", "E", "--uncertainty", "u"),
        ("--error", "E", "--variance", "s2"),
        ("--reference", "R", *items),
        ("--reference", "R", "--members", "m,*"),
        ("--reference", "R", *quantiles),
        ("--reference", "R", *interval),
    ]
    told = [run("check", "forms.csv", *form)[1] for form in forms]
    for each in told[1:]:
        assert ordered(each) == ordered(told[0])
    assert told[3]["data"]["made_of"] == [f"m,{i}*" for i in range(5)]
    assert told[5]["data"]["levels"] == [0.025, 0.975]


def test_columns_with_odd_names_can_be_chosen(run):
    names = {"u": "u*", "mass": "m,1", "kind": "q=05", "V": "^v", "R": "R[1]"}
    FRAME.rename(names | {"w": "self"}).write_csv("odd.csv")
    told = run(
        *("check", "odd.csv", "--reference", "R[1]", "--prediction", "^v"),
        *("--uncertainty", "u*", "--feature", "m,1", "--label", "q=05"),
        *("--feature", "self"),
    )[1]
    assert told["data"]["numbers"] == ["m,1", "self"]
    assert told["data"]["labels"] == ["q=05"]
    found = run(
        *("check", "t.csv", *PAIR, "--feature", "mass", "--feature", "w"),
        *("--label", "kind"),
    )[1]
    answers = [[x[0] for x in ordered(each).values()] for each in (told, found)]
    assert answers[0] == answers[1]


def test_all_features_are_numbers_without_other_parts_or_counts_of_rows(run):
    frame = FRAME.with_columns(
        row=np.arange(N), u_recalibrated=pl.col("u"), gap=pl.lit(None)
    )
    frame.write_csv("all.csv")
    options = ("--all-features", "--exclude", "w", "--label", "kind")
    data = run("check", "all.csv", *PAIR, *options)[1]["data"]
    assert data["numbers"] == ["mass", "t"]
    assert data["labels"] == ["kind"]


def test_a_guessed_uncertainty_says_that_there_is_a_recalibrated_one(sigmascale):
    frame = FRAME.rename({"R": "y_true", "V": "y_pred", "u": "y_std"})
    frame = frame.with_columns(y_std_recalibrated=pl.col("y_std"))
    frame.write_csv("both.csv")
    hint = "--uncertainty y_std_recalibrated would take what was recalibrated"
    assert sigmascale("check", "both.csv").says(hint)
    named = sigmascale("check", "both.csv", "--uncertainty", "y_std")
    assert not named.says(hint)


def test_labels_are_the_letters_of_the_file(run):
    told = run("check", "t.csv", *PAIR, "--label", "kind")[1]
    assert told["data"]["labels"] == ["kind"]
    subgroups = told["checks"]["adaptivity: kind"]["subgroups"]
    labels = {each["conditions"][0]["labels"][0] for each in subgroups}
    assert labels == {"01", "b,2"}


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (("--feature", "mas"), "'mas'.*'mass'"),
        (("--label", "Mass"), "'Mass'.*'mass'"),
        (("--groups", "molecule"), "--groups.*'molecule'"),
        (("--uncertainty", "u", "--variance", "u"), "not both"),
        (("--error", "u", "--reference", "R"), "not both"),
        (("--feature", "u"), "'u'"),
        (("--exclude", "w"), "--exclude.*--all-features"),
        (("--interval", "u"), "interval.coverage"),
        (("--weight", "kind"), "'kind', row \\d+ .*number"),
        (("--where", "mas < 3"), "'mas'.*'mass'"),
        (("--where", "mass <"), "--where.*condition"),
        (("--where", "mass < 0"), "no row"),
        (("--where", "mass + 1"), "--where"),
        (("--where", "mass < 'a'"), "--where"),
        (("--tolerance", "0.5"), "tolerance.*0.5"),
        (("--confidence", "2"), "confidence.*2"),
    ],
)
def test_options_that_do_not_fit_the_table_are_refused(options, match, sigmascale):
    base = () if "--error" in options else PAIR
    done = sigmascale("check", "t.csv", *base, *options)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
    assert done.says(match), done.err


def test_what_could_be_several_is_told_as_a_command_to_copy(sigmascale):
    FRAME.with_columns(sigma=pl.col("u")).write_csv("two.csv")
    done = sigmascale("check", "two.csv", *PAIR)
    assert done.code == 2
    assert done.says("--uncertainty u")
    assert done.says("sigma")


# -- missing values, conditions --------------------------------------------------------


def test_missing_values_are_counted_by_column_or_left_out(run, sigmascale):
    gaps = ["NA", "n/a ", None, *FRAME["u"].cast(pl.String)[3:]]
    frame = FRAME.with_columns(u=pl.Series(gaps), mass=pl.Series([None, *MASS[1:]]))
    frame.write_csv("gaps.csv")
    for most in ("1000000", "100"):
        options = ("--feature", "mass", "--most", most)
        done = sigmascale("check", "gaps.csv", *PAIR, *options)
        assert done.code == 2
        assert done.says("3 of 600 rows.*'u' 3.*'mass' 1.*--drop-missing")
        told = run("check", "gaps.csv", *PAIR, *options, "--drop-missing")[1]
        assert (told["data"]["rows"], told["data"]["dropped"]) == (597, 3)
    told = run("check", "gaps.csv", *PAIR, "--drop-missing")[1]
    assert ordered(told) == ordered(ss.validate(predictions(FRAME[3:], ())).to_dict())


def test_a_missing_value_meets_no_condition_whatever_the_size(run):
    frame = FRAME.with_columns(
        x=pl.Series([None, float("nan"), *MASS[2:]]), y=pl.Series(["NA", "", *KIND[2:]])
    )
    frame.write_csv("gaps.csv")
    frame.write_parquet("gaps.parquet")
    frame.write_ndjson("gaps.jsonl")
    keeps = {
        "x > 0": N - 2,
        "NOT x > 0": 0,
        "x <= 100 OR x > 100": N - 2,
        "x IS NOT NULL": N - 2,
        "y <> '01' AND mass > 100": int(((KIND != "01") & (MASS > 100))[2:].sum())
        + int(MASS[0] > 100),
    }
    for where, count in keeps.items():
        for file in ("gaps.csv", "gaps.parquet", "gaps.jsonl"):
            if "y" in where and file != "gaps.csv":
                continue
            for most in ("1000000", "70"):
                options = ("--where", where, "--most", most)
                if count:
                    told = run("check", file, *PAIR, *options)[1]["data"]
                    assert (told["rows"], told["rows_read"]) == (count, N), where


def test_zeros_and_negative_uncertainties_are_refused_or_raised(run, sigmascale):
    frame = FRAME.with_columns(u=pl.Series([0.0, -1.0, *U[2:]]))
    frame.write_csv("zero.csv")
    done = sigmascale("check", "zero.csv", *PAIR)
    assert done.code == 2
    assert done.says("'u', row 2 .*negative.*--min-std")
    done = sigmascale("check", "zero.csv", *PAIR, "--min-std", "0.5")
    assert done.code in (0, 1, 4)
    lifted = predictions(
        FRAME.with_columns(u=pl.Series(np.maximum(frame["u"], 0.5))), ()
    )
    told = run("check", "zero.csv", *PAIR, "--min-std", "0.5")[1]
    assert ordered(told) == ordered(ss.validate(lifted).to_dict())


def test_decimal_commas_and_other_separators_are_read_and_written(run, fit, sigmascale):
    FRAME.write_csv("comma.csv", separator=";", decimal_comma=True)
    options = ("--separator", ";", "--decimal", ",")
    told = run("check", "comma.csv", *PAIR, *options)[1]
    assert ordered(told) == ordered(run("check", "t.csv", *PAIR)[1])
    done = sigmascale("check", "comma.csv", *PAIR, "--separator", ";")
    assert done.says("row 1 .*--decimal ,")
    fit(*options, "--scaling", "temperature", file="comma.csv")
    done = sigmascale("apply", "r.json", "comma.csv", "-o", "o.csv", *options)
    assert done.code == 0
    text = pl.read_csv("o.csv", separator=";", infer_schema=False)
    for ending in ("", "_low", "_high"):
        assert "," in text[f"u_recalibrated{ending}"][0]


# -- fit -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCALINGS)
def test_what_is_fitted_and_applied_is_what_python_fits(name, run, sigmascale):
    options = (*PAIR, "--feature", "mass", "--scaling", name, "--seed", "2")
    told = run("fit", "t.csv", *options, "-o", "r.json", code=0)[1]
    p = predictions()
    r = ss.Recalibrator(SCALINGS[name](), random_state=2).fit(p)
    assert told["words"] == r.describe()
    np.testing.assert_array_equal(ss.load("r.json").predict(p), r.predict(p))
    sigmascale("apply", "r.json", "t.csv", "-o", "o.parquet", "--quantiles", "0.05,0.5")
    found, q = pl.read_parquet("o.parquet"), r.apply(p)
    np.testing.assert_allclose(found["u_recalibrated"], q.y_std, rtol=1e-14)
    limits = found["u_recalibrated_low", "u_recalibrated_high"].to_numpy()
    np.testing.assert_allclose(limits, q.distributions.interval(0.95), rtol=1e-12)
    levels = found["u_recalibrated_q0.05", "u_recalibrated_q0.5"].to_numpy()
    np.testing.assert_allclose(
        levels, q.distributions.quantile([0.05, 0.5]), rtol=1e-12
    )


def test_bins_bias_distribution_and_rows_held_out_can_be_chosen(run):
    options = ("--scaling", "binwise", "--by", "mass", "--bins", "3", "-o", "b.json")
    told = run("fit", "t.csv", *PAIR, *options)[1]
    assert told["data"]["numbers"] == ["mass"]
    r = ss.Recalibrator(ss.BinwiseScaling(3, by="mass")).fit(predictions())
    assert told["words"] == r.describe()
    cells = ("--scaling", "binwise", "--by", "u", "--by", "kind", "--bins", "2")
    cells = (*cells, "--label", "kind")
    told = run("fit", "t.csv", *PAIR, *cells, "-o", "c.json", code=0)[1]
    assert told["data"]["labels"] == ["kind"]
    moved = FRAME.with_columns(R=pl.col("R") + 1)
    moved.write_csv("moved.csv")
    options = ("--bias", "constant", "--distribution", "normal", "-o", "m.json")
    run("fit", "moved.csv", *PAIR, "--scaling", "linear", *options, code=0)
    how = {"bias": "constant", "distribution": "normal"}
    r = ss.Recalibrator(ss.LinearScaling(), **how).fit(predictions(moved, ()))
    p = predictions(moved, ())
    np.testing.assert_allclose(ss.load("m.json").apply(p).y_pred, r.apply(p).y_pred)
    run("fit", "t.csv", *PAIR, "--hold-out", "0.3", "-o", "h.json", code=0)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (("--scaling", "nonsense"), "--scaling.*boosted.*nonsense"),
        (("--bins", "3", "--scaling", "linear"), "--bins.*binwise"),
        (("--loss", "total", "--scaling", "linear"), "--loss.*binwise"),
        (("--scaling", "linear", "--by", "mass"), "--by.*binwise"),
        (("--by", "x"), "'x'"),
        (("--test-share", "1.5"), "--test-share.*1.5"),
        (("--test-share", "0.999"), "--test-share.*at least 5"),
        (("--report", "r.html"), "--test-share"),
        (("--hold-out", "2"), "hold_out|hold-out"),
        (("--seed", "-1"), "random_state|seed"),
    ],
)
def test_options_of_fit_that_cannot_be_are_refused(
    options, match, sigmascale, tmp_path
):
    done = sigmascale("fit", "t.csv", *PAIR, "-o", "r.json", *options)
    assert (done.code, done.out) == (2, ""), done
    assert done.says(match), done.err
    assert not (tmp_path / "r.json").exists()


def test_a_share_that_is_held_out_is_tested_before_and_after(run, sigmascale, tmp_path):
    options = (*PAIR, "--feature", "mass", "--groups", "mol", "--test-share", "0.3")
    told = run("fit", "t.csv", *options, "-o", "r.json", code=0)[1]
    assert (told["fitted"], told["tested"]) == (420, 180)
    assert told["before"]["n_rows"] == told["n_rows"] == 180
    assert told["change"]["relative"]["high"] < 0
    assert ss.load("r.json").n_rows_ == 420
    # neither the order of the rows nor the names of groups matter
    other = FRAME.with_columns(mol="x" + pl.col("mol")).sample(
        fraction=1, shuffle=True, seed=3
    )
    other.write_csv("other.csv")
    again = run("fit", "other.csv", *options, "-o", "again.json", code=0)[1]
    assert again["headline"] == told["headline"]
    done = sigmascale("fit", "t.csv", *options, "-o", "r.json", "--report", "r.html")
    assert done.says("On 180 held-out rows.*RECALIBRATION HELPED.*Saved r.json")
    assert max(map(len, done.out.splitlines())) <= 80
    assert (tmp_path / "r.html").exists()


def test_whole_groups_are_divided():
    from sigmascale.cli.fit import parted

    rest, held = parted(predictions(groups="mol"), 0.3, 0)
    assert (len(rest), len(held)) == (420, 180)
    assert set(np.unique(held.groups, return_counts=True)[1].tolist()) == {3}


def test_the_same_fit_gives_the_same_bytes_and_goes_to_standard_output(
    sigmascale, tmp_path
):
    fit = ("fit", "t.csv", *PAIR, "--feature", "mass", "-o")
    for name in ("a.json", "b.json"):
        assert sigmascale(*fit, name).code == 0
    first = (tmp_path / "a.json").read_text()
    assert (tmp_path / "b.json").read_text() == first
    done = sigmascale(*fit, "-")
    assert (done.code, done.out) == (0, first)
    done = sigmascale(*fit, "-", "--json")
    assert json.loads(done.err)["output"] == "-"


def test_scalings_learn_from_rows_with_gaps_and_say_so(sigmascale, run):
    mass = pl.Series([None if i % 10 == 0 else x for i, x in enumerate(MASS)])
    FRAME.with_columns(mass=mass).write_csv("gaps.csv")
    options = (*PAIR, "--feature", "mass", "-o", "g.json")
    told = run("fit", "gaps.csv", *options, code=0)[1]
    assert told["data"]["missing"] == {"mass": 60}
    done = sigmascale("fit", "gaps.csv", *options, "--scaling", "raked")
    assert done.code == 0
    assert done.says("missing 60 values of mass")


# -- check with a recalibrator ---------------------------------------------------------


def test_a_recalibrator_is_tested_by_its_distribution_before_and_after(
    run, fit, sigmascale
):
    FRAME[:300].write_csv("a.csv")
    FRAME[300:].write_csv("b.csv")
    fit("--feature", "mass", file="a.csv")
    code, told = run("check", "b.csv", "--recalibrator", "r.json")
    p = predictions(FRAME[300:])
    found = ss.validate(ss.load("r.json").apply(p), before=p)
    assert told["headline"] == found.headline
    assert told["before"]["headline"] == ss.validate(p).headline
    assert told["result"] == found.result
    assert code == CODES[found.result]
    done = sigmascale("check", "b.csv", "--recalibrator", "r.json")
    text = " ".join(done.out.split())
    assert told["headline"] in text
    assert "guessed" not in text
    assert len(done.out.splitlines()) <= 33
    done = sigmascale("check", "a.csv", "--recalibrator", "r.json")
    assert "warning:" in done.err  # these rows were fitted
    assert done.says("used in the fit")


def test_columns_of_a_recalibrator_are_remembered_or_named_anew(run, fit, sigmascale):
    fit("--feature", "mass", "--scaling", "linear")
    renamed = FRAME.rename({"u": "sd", "V": "pred", "R": "truth"})
    renamed.write_csv("new.csv")
    done = sigmascale("apply", "r.json", "new.csv", "-o", "o.csv")
    assert done.code == 2
    assert done.says("'u'")
    options = ("--uncertainty", "sd", "--prediction", "pred")
    told = run("apply", "r.json", "new.csv", "-o", "o.csv", *options)[1]
    assert told["columns"][0] == "sd_recalibrated"
    assert told["distribution_of"] == "value"
    done = sigmascale("check", "t.csv", "--recalibrator", "r.json", "--feature", "w")
    assert done.code == 2


def test_what_is_no_recalibrator_of_the_command_line_is_refused(sigmascale, tmp_path):
    r = ss.Recalibrator(ss.TemperatureScaling()).fit(predictions())
    r.save("python.json")
    good = (tmp_path / "python.json").read_text()
    (tmp_path / "cut.json").write_text(good[:-100])
    (tmp_path / "other.json").write_text('{"a": 1}')
    (tmp_path / "twice.json").write_text('{"format": 1, "format": 2}')
    for file, match in {
        "python.json": "sigmascale fit",
        "cut.json": "cut.json",
        "other.json": "other.json",
        "twice.json": "twice",
        "nowhere.json": "nowhere.json: No such file",
        "t.csv": "t.csv",
    }.items():
        done = sigmascale("apply", file, "t.csv", "-o", "o.csv")
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), file
        assert done.says(match), done.err
    assert not (tmp_path / "o.csv").exists()


# -- apply -----------------------------------------------------------------------------


@pytest.fixture
def fitted(fit):
    return fit("--feature", "mass", "--label", "kind")


def test_apply_adds_u_and_an_interval_that_holds_and_keeps_every_letter(
    fitted, sigmascale, tmp_path
):
    done = sigmascale("apply", fitted, "t.csv", "-o", "o.csv")
    assert (done.code, done.err) == (0, "")
    assert done.says("600 rows.*u_recalibrated .*95 % prediction interval")
    before = (tmp_path / "t.csv").read_text().splitlines()
    after = (tmp_path / "o.csv").read_text().splitlines()
    assert all(x.startswith(f"{y},") for x, y in zip(after, before, strict=True))
    found = pl.read_csv("o.csv")
    low, high = (found[f"u_recalibrated_{x}"] for x in ("low", "high"))
    assert 0.9 < ((low < FRAME["R"]) & (FRAME["R"] < high)).mean() < 0.99
    done = sigmascale("apply", fitted, "t.csv", "-o", "p.csv", "--coverage", "0.5")
    narrow = pl.read_csv("p.csv")
    assert (narrow["u_recalibrated_low"] >= low).all()


def test_errors_alone_get_intervals_of_the_error(sigmascale, run):
    FRAME.select(E=pl.col("R") - pl.col("V"), u="u").write_csv("e.csv")
    assert sigmascale("fit", "e.csv", "-o", "e.json").code == 0
    told = run("apply", "e.json", "e.csv", "-o", "o.csv", code=0)[1]
    assert told["distribution_of"] == "error"
    found = pl.read_csv("o.csv")
    assert (found["u_recalibrated_low"] < 0).all()


def test_variances_and_corrected_predictions_are_written(fit, run):
    moved = FRAME.with_columns(R=pl.col("R") + 1, s2=pl.col("u") ** 2).drop("u")
    moved.write_csv("v.csv")
    how = ("--variance", "s2", "--bias", "constant", "--scaling", "temperature")
    fit(*how, file="v.csv")
    told = run("apply", "r.json", "v.csv", "-o", "o.csv", code=0)[1]
    new = ["u_recalibrated", "u_recalibrated_low", "u_recalibrated_high"]
    assert told["columns"] == [*new, "V_recalibrated"]
    assert told["quantity"] == "standard deviation"
    found = pl.read_csv("o.csv")
    ratio = found["u_recalibrated"] / found["s2"].sqrt()
    assert ratio.max() - ratio.min() < 1e-9
    assert abs((found["V_recalibrated"] - found["V"]).mean() - 1) < 0.3


def test_a_variance_called_u_is_hinted_with_the_option_to_pass(sigmascale):
    FRAME.with_columns(
        u=900 * pl.col("u") ** 2, R=30 * pl.col("R"), V=30 * pl.col("V")
    ).write_csv("s.csv")
    done = sigmascale("check", "s.csv", *PAIR, "--uncertainty", "u")
    assert done.says("warning: .*look like variances.*pass --variance u")


def test_what_was_made_of_variances_gets_the_result_that_it_has_in_memory(fit, run):
    FRAME.with_columns(s2=pl.col("u") ** 2).drop("u").write_csv("v.csv")
    fit("--variance", "s2", "--scaling", "linear", file="v.csv")
    run("apply", "r.json", "v.csv", "-o", "o.csv", code=0)
    written = run("check", "o.csv", *PAIR, "--uncertainty", "u_recalibrated")[1]
    p = ss.Predictions(PRED, U, y_true=FRAME["R"])
    q = p.with_y_std(ss.load("r.json").apply(p).y_std)
    in_memory = ss.validate(q, rng=0)
    assert written["headline"] == in_memory.headline
    assert written["result"] == in_memory.result


def test_a_row_with_missing_values_gets_empty_cells_or_is_left_out(
    fitted, sigmascale, run
):
    gaps = FRAME.with_columns(
        u=pl.Series([None, *U[1:]]), V=pl.Series([*PRED[1:], None])
    )
    gaps.write_csv("gaps.csv")
    for most in ("1000000", "100"):
        done = sigmascale("apply", fitted, "gaps.csv", "-o", "o.csv", "--most", most)
        assert done.code == 0
        assert done.says("warning: .*2 of 600 rows.*'u' 1.*'V' 1")
        found = pl.read_csv("o.csv")
        assert found.height == N
        assert found["u_recalibrated"].null_count() == 2
        told = run(
            *("apply", fitted, "gaps.csv", "-o", "d.csv", "--drop-missing"),
            *("--most", most),
        )[1]
        assert (told["rows"], told["dropped"]) == (598, 2)
        assert pl.read_csv("d.csv")["u_recalibrated"].null_count() == 0


def test_conditions_names_and_taken_names(fitted, sigmascale, run):
    where = ("--where", "kind = '01'", "--name", "new u")
    told = run("apply", fitted, "t.csv", "-o", "o.csv", *where, code=0)[1]
    assert told["columns"] == ["new u", "new u_low", "new u_high"]
    kinds = pl.read_csv("o.csv", infer_schema=False)["kind"].to_list()
    assert kinds == ["01"] * told["rows"]
    done = sigmascale("apply", fitted, "t.csv", "-o", "p.csv", "--name", "mass")
    assert done.code == 2
    assert done.says("'mass' already.*--name")
    for option in (("--coverage", "1"), ("--quantiles", "0.5,1.5")):
        done = sigmascale("apply", fitted, "t.csv", "-o", "p.csv", *option)
        assert done.code == 2
        assert done.says("between 0 and 1")


def test_every_format_gets_the_same_cells_in_memory_and_beyond(
    fitted, sigmascale, tmp_path
):
    FRAME.write_parquet("t.parquet")
    FRAME.write_ndjson("t.jsonl")
    FRAME.write_ipc("t.feather")
    cells = {}
    for source in ("t.csv", "t.parquet", "t.jsonl", "t.feather"):
        for most in ("1000000", "77"):
            for ending in ("csv", "parquet", "jsonl", "tsv"):
                out = f"o-{most}.{ending}"
                done = sigmascale("apply", fitted, source, "-o", out, "--most", most)
                assert (done.code, done.err) == (0, "")
                cells.setdefault(ending, set()).add((tmp_path / out).read_bytes())
    assert len(cells["csv"]) == len(cells["tsv"]) == 1
    parquet = pl.read_parquet("o-77.parquet")
    assert parquet.schema["mass"] == pl.Float64
    assert parquet.schema["kind"] == pl.String
    assert parquet.schema["w"] == pl.Int64
    assert pl.read_csv("o-77.csv")["u_recalibrated"].equals(parquet["u_recalibrated"])


def test_labels_mean_the_same_in_every_format(sigmascale):
    from sigmascale.cli.file_formats import write

    pick = np.random.default_rng(2).integers(0, 4, N)
    days = [datetime.date(2020, 1, 1 + i) for i in pick]
    kinds = {
        "text": ["a", "b", "c c", "d,e"],
        "padded": ["01", "1", "02", "2"],
        "missing": ["NA", "nan", "x", "y"],
    }
    columns = {x: np.array(y)[pick].tolist() for x, y in kinds.items()}
    columns |= {"whole": pick.tolist(), "truth": (pick > 1).tolist(), "day": days}
    frame = FRAME.with_columns(pl.Series(x, y) for x, y in columns.items())
    frame = frame.with_columns(u=pl.col("u") / (1 + pl.Series(pick)))
    for ending in ("csv", "parquet", "jsonl", "xlsx"):
        write(frame.lazy(), f"k.{ending}")
    for name in columns:
        p = predictions(frame, (), labels=[name])
        r = ss.Recalibrator(ss.BinwiseScaling(by=name)).fit(p)
        fit = ("--scaling", "binwise", "--label", name, "--by", name, "-o", "k.json")
        assert sigmascale("fit", "k.csv", *PAIR, *fit).code == 0
        for ending in ("csv", "parquet", "jsonl", "xlsx"):
            done = sigmascale("apply", "k.json", f"k.{ending}", "-o", "o.parquet")
            assert (done.code, done.err) == (0, ""), (name, ending)
            found = pl.read_parquet("o.parquet")["u_recalibrated"]
            np.testing.assert_allclose(found, r.predict(p), rtol=1e-9)


def test_a_sheet_in_gives_a_sheet_out(fitted, sigmascale):
    from sigmascale.cli.file_formats import PLACE, read, write

    write(FRAME.lazy(), "t.xlsx")
    done = sigmascale("apply", fitted, "t.xlsx", "-o", "o.xlsx")
    assert (done.code, done.err) == (0, "")
    found = read(["o.xlsx"], None, 10**6)[0].drop(PLACE).collect()
    assert sigmascale("apply", fitted, "t.csv", "-o", "o.csv").code == 0
    expected = pl.read_csv("o.csv", schema_overrides={"kind": pl.String})
    assert found.schema == expected.schema
    np.testing.assert_allclose(
        found["u_recalibrated"], expected["u_recalibrated"], rtol=1e-12
    )


def test_tables_come_from_and_go_to_standard_streams(fitted, sigmascale, tmp_path):
    content = (tmp_path / "t.csv").read_bytes()
    done = sigmascale("apply", fitted, "-", "-o", "-", stdin=content)
    assert done.code == 0
    assert sigmascale("apply", fitted, "t.csv", "-o", "o.csv").code == 0
    assert done.out == (tmp_path / "o.csv").read_text()
    done = sigmascale("apply", fitted, "-", "-o", "-", "--json", stdin=content)
    assert json.loads(done.err)["rows"] == N


def test_new_rows_that_are_unlike_the_fitted_ones_are_warned_of(fitted, sigmascale):
    odd = FRAME.with_columns(mass=pl.col("mass") + 1e6, kind=pl.lit("new"))
    odd.write_csv("odd.csv")
    done = sigmascale("apply", fitted, "odd.csv", "-o", "o.csv")
    assert done.code == 0
    assert done.err.count("warning:") >= 2


# -- more rows than memory holds -------------------------------------------------------


def test_a_fit_beyond_memory_is_a_fit_of_the_same_sample(run, fit, sigmascale):
    many = pl.concat([FRAME] * 5).with_columns(
        u=pl.Series(np.random.default_rng(1).gamma(4.0, 0.1, 5 * N))
    )
    many.write_parquet("many.parquet")
    options = ("--feature", "mass", "--label", "kind", "--most", "1000")
    named = {"y_true": "R", "y_pred": "V", "y_std": "u", "features": ["mass", "kind"]}
    sample = ss.frames.sample(many.lazy(), n_rows=1000, **named)
    assert 500 < len(sample) < 2000
    told = run("check", "many.parquet", *PAIR, *options)[1]
    assert ordered(told) == ordered(ss.validate(sample).to_dict())
    assert told["data"]["rows"] == 5 * N
    done = sigmascale("check", "many.parquet", *PAIR, *options)
    assert done.says("3,000 rows, of which a sample of about 1,000")
    fit(*options, "--scaling", "linear", file="many.parquet")
    r = ss.Recalibrator(ss.LinearScaling()).fit(sample)
    np.testing.assert_array_equal(ss.load("r.json").predict(sample), r.predict(sample))


# -- standard input --------------------------------------------------------------------


def test_what_comes_from_standard_input_is_called_so(sigmascale, tmp_path):
    content = (tmp_path / "t.csv").read_bytes()
    columns = (*PAIR, "--uncertainty", "u", "--feature", "mass")
    fit = ("fit", "-", *columns, "--scaling", "linear", "-o", "r.json")
    check = ("check", "-", *columns, "--tolerate", "FAIL")
    commands = {
        fit: "standard input: 600 rows error R",
        (*fit, "--test-share", "0.3"): "standard input: 600 rows error R",
        (*check, "--report", "r.html", "--card", "c.html"): "standard input: 600 rows",
        ("compare", "-", "--recalibrator", "r.json"): "standard input: 600 rows",
        ("verify", "c.html", "-"): "agrees with the data: 600 rows",
        ("watch", "r.json", "-"): "^standard input: 600 rows error R − V .* rows",
        ("watch", "r.json", "-", "--follow", "0.9"): "^standard input: 600 rows error",
        ("apply", "r.json", "-", "-o", "-"): "Wrote standard output: 600 rows",
        (
            *("combine", "r.json", "-", "--by", "mass", "--rho", "0", "-o", "-"),
        ): "Wrote standard output: 600 combinations of 600 rows",
    }
    for command, words in commands.items():
        done = sigmascale(*command, stdin=content)
        assert done.code in (0, 1), done.err
        assert done.says(words), command
    for page in ("r.html", "c.html"):
        assert "standard input" in (tmp_path / page).read_text("utf-8")
    told = json.loads(sigmascale(*check, "--json", stdin=content).out)
    assert told["data"]["file"] == "standard input"


def test_what_is_wrong_with_standard_input_names_it_and_the_row(sigmascale, fitted):
    head, first, rest = FRAME.write_csv().split("\n", 2)
    odd = first.replace(first.split(",")[2], "x")
    content = f"{head}\n{first}\n{odd}\n{rest}".encode()
    at = "standard input: column 'u', row 2 .*'x' is not a number"
    for command in (
        ("check", "-", *PAIR),
        ("apply", fitted, "-", "-o", "-"),
        ("watch", fitted, "-"),
    ):
        done = sigmascale(*command, stdin=content)
        assert (done.code, done.out, done.says(f"error: {at}")) == (2, "", True), done
    done = sigmascale("check", "t.csv", "-", *PAIR, stdin=content)
    assert done.says("'u', row 2 of standard input")
    assert sigmascale("check", "-", "-").says("error: standard input: is given twice")
    twice = ("compare", "-", "--calibration", "-", *PAIR)
    done = sigmascale(*twice, stdin=FRAME.write_csv().encode())
    assert done.says("error: standard input: is empty, or was read before")


def test_no_command_writes_what_it_reads(sigmascale, fitted, tmp_path):
    pl.DataFrame({"a": ["x"], "b": [0], "c": [1]}).write_csv("terms.csv")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for command in (
        ("fit", "t.csv", "-o", "./t.csv"),
        ("apply", fitted, "t.csv", "-o", "t.csv"),
        ("check", "t.csv", *PAIR, "--recalibrator", fitted, "--card", fitted),
        ("check", "t.csv", *PAIR, "--report", "t.csv"),
        ("watch", fitted, "t.csv", "--state", fitted),
        ("watch", fitted, "t.csv", "--plot", "t.csv"),
        ("export", fitted, "-o", fitted),
        (
            *("combine", fitted, "t.csv", "--rho", "0"),
            *("--terms", "terms.csv", "-o", "terms.csv"),
        ),
    ):
        done = sigmascale(*command)
        assert (done.code, done.out) == (2, ""), command
        assert done.says("is what is read|Name it so"), done.err
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


# -- compare, watch, show, export, demo ------------------------------------------------


def test_parts_are_named_by_their_columns(fit, run):
    fit("--label", "kind", "--parts", "kind", "--parts", "mass", to="parts.json")
    found = ss.load("parts.json")
    assert found.parts == ["kind", "mass"]
    told = run("show", "parts.json", code=0)[1]
    assert "by kind, mass" in str(told)


def test_parts_are_offered_where_intervals_fail_for_a_label(sigmascale, run):
    rng = np.random.default_rng(0)
    kind = rng.choice(["gas", "solid"], 4000, p=[0.8, 0.2])
    u = rng.lognormal(0, 0.4, 4000)
    error = u * np.where(kind == "solid", 2.5, 1.0) * rng.normal(size=4000)
    frame = pl.DataFrame({"E": error, "u": u, "kind": kind})
    frame[:2000].write_csv("known.csv")
    frame[2000:].write_csv("new.csv")
    fit = ("fit", "known.csv", "--feature", "kind", "--scaling", "temperature")
    assert sigmascale(*fit, "-o", "r.json").code == 0
    check = ("check", "new.csv", "--recalibrator", "r.json", "--scope", "intervals")
    done = sigmascale(*check)
    assert "--parts=kind" in done.out
    assert sigmascale(*fit, "--parts", "kind", "-o", "r.json").code == 0
    assert "--parts" not in sigmascale(*check).out


@pytest.mark.parametrize("told", ["uncertainty", "variance", "members", "interval"])
def test_what_check_prints_names_the_columns_that_a_recalibrator_remembers(
    told, sigmascale, run
):
    rng = np.random.default_rng(0)
    kind = rng.choice([1, 2], 4000, p=[0.8, 0.2])
    u = rng.lognormal(0, 0.4, 4000)
    error = u * np.where(kind == 2, 2.5, 1.0) * rng.normal(size=4000)
    columns = {"obs": 5 + error, "mod": np.full(4000, 5.0), "a code": kind, "mass": u}
    columns |= {"spread": u, "square": u**2, "from": 5 - 1.645 * u}
    columns |= {"to": 5 + 1.645 * u}
    columns |= {f"m {i}": 5 + u * rng.normal(size=4000) for i in range(12)}
    frame = pl.DataFrame(columns)
    frame[:2000].write_csv("known.csv")
    frame[2000:].write_csv("new.csv")
    named = {
        "uncertainty": ("--prediction=mod", "--uncertainty=spread"),
        "variance": ("--prediction=mod", "--variance=square"),
        "members": ("--members=m *",),
        "interval": ("--interval=from", "--interval=to", "--interval-coverage=0.9"),
    }[told]
    options = ("--reference=obs", *named, "--feature=mass", "--label=a code")
    fit = ("fit", "known.csv", *options, "--scaling=temperature")
    assert sigmascale(*fit, "-o", "old.json").code == 0
    check = ("check", "new.csv", "--recalibrator=old.json", "--scope=intervals")
    done = sigmascale(*check)
    frame[2000:].write_csv("CALIBRATION.csv")
    assert sigmascale(*typed(done.out)).code in (0, 1, 4)
    found = ss.load("r.json")
    assert found.parts == ["a code"]
    assert found.names_ == ("u", "mass", "a code")
    old, new = (run("show", file)[1]["schema"] for file in ("old.json", "r.json"))
    assert new.pop("levels") == pytest.approx(old.pop("levels"))
    assert new == old


def test_columns_and_recalibrators_are_compared_on_the_same_rows(run, fit, sigmascale):
    FRAME[:300].write_csv("a.csv")
    frame = FRAME[300:].with_columns(u2=pl.col("u") * 2, bad=pl.lit(0.0))
    frame.write_csv("b.csv")
    saved = []
    for name in ("linear", "temperature"):
        saved += [
            "--recalibrator",
            fit("--scaling", name, file="a.csv", to=f"{name}.json"),
        ]
    p = predictions(FRAME[300:], ())
    told = run("compare", "b.csv", *PAIR, "--uncertainty", "u", "--versus", "u2")[1]
    found = ss.compare(
        {"u": p, "u2": p._with(y_std=2 * p.y_std, columns=(2 * p.y_std,))}
    )
    assert told["comparison"]["scores"] == found.to_dict()["scores"]
    told = run("compare", "b.csv", *saved)[1]
    assert list(told["comparison"]["scores"]) == ["original", "linear", "temperature"]
    known = ("--calibration", "a.csv", "--feature", "mass")
    told = run("compare", "b.csv", *PAIR, *known)[1]
    assert list(told["comparison"]["scores"]) == ["original", *SCALINGS]
    for options, match in {
        (): "--versus.*--recalibrator.*--calibration",
        ("--versus", "u3"): "'u3'",
        ("--versus", "bad"): "'bad', row 1 .*positive",
        ("--versus", "kind"): "'kind', row \\d+ .*number",
        ("--versus", "u2", "--most", "50"): "--most 300",
    }.items():
        done = sigmascale("compare", "b.csv", *PAIR, "--uncertainty", "u", *options)
        assert (done.code, done.out) == (2, ""), options
        assert done.says(match), done.err


def test_a_stream_without_a_change_ends_with_0_and_one_with_it_with_1(sigmascale, run):
    rng = np.random.default_rng(0)
    u = rng.gamma(4.0, 0.1, 6000)
    frame = pl.DataFrame(
        {"E": rng.normal(size=6000) * u, "u": u, "g": np.arange(6000) // 2}
    )
    frame[:2000].write_csv("a.csv")
    frame[2000:4000].write_csv("b.csv")
    frame[4000:].with_columns(E=2 * pl.col("E")).write_csv("c.csv")
    assert sigmascale("fit", "a.csv", "--scaling", "linear", "-o", "r.json").code == 0
    told = run("watch", "r.json", "b.csv", code=0)[1]
    assert (told["n_rows"], told["alarm"]) == (2000, None)
    told = run("watch", "r.json", "c.csv", "--plot", "p.png", code=1)[1]
    assert told["alarm"]["kind"] == "too small"
    assert told["alarm"]["size"] == pytest.approx(2, rel=0.7)
    # several runs with a state, and batches, are one long run
    whole = run("watch", "r.json", "b.csv", "c.csv", code=1)[1]
    parts = run("watch", "r.json", "b.csv", "c.csv", "--most", "333", code=1)[1]
    assert parts["evidence"] == pytest.approx(whole["evidence"], rel=1e-9)
    state = ("--state", "m.json")
    run("watch", "r.json", "b.csv", *state, code=0)
    told = run("watch", "r.json", "c.csv", *state, code=1)[1]
    assert told["n_rows"] == 4000
    assert told["evidence"] == pytest.approx(whole["evidence"], rel=1e-9)
    frame[:20].write_csv("few.csv")
    normal = ("--distribution", "normal", "-o", "n.json")
    assert sigmascale("fit", "a.csv", *normal).code == 0
    run("watch", "n.json", "few.csv", code=4)
    run("watch", "n.json", "few.csv", "--calibration", "b.csv", code=0)
    for options in (("--confidence", "0.9"), ("--groups", "g")):
        done = sigmascale("watch", "r.json", "b.csv", *state, *options)
        assert done.code == 2
        assert done.says("another")
    done = sigmascale("watch", "n.json", "b.csv", *state)
    assert done.code == 2
    done = sigmascale("watch", "r.json", "b.csv", "--state", "r.json")
    assert done.code == 2


def test_intervals_follow_a_stream_in_one_run_or_several(sigmascale, run):
    rng = np.random.default_rng(0)
    u = rng.gamma(4.0, 0.1, 3000)
    error = rng.normal(size=3000) * u * np.where(np.arange(3000) < 1000, 1, 2)
    frame = pl.DataFrame({"E": error, "u": u, "g": np.arange(3000) // 2})
    for name, rows in {"a": (0, 1000), "b": (1000, 2000), "c": (2000, 3000)}.items():
        frame[slice(*rows)].write_csv(f"{name}.csv")
    assert sigmascale("fit", "a.csv", "--scaling", "linear", "-o", "r.json").code == 0
    follow = ("--follow", "0.9")
    whole = run("watch", "r.json", "b.csv", "c.csv", *follow, code=0)[1]
    assert whole["stretch"] == pytest.approx(2, rel=0.25)
    assert whole["missed"] == pytest.approx(0.1, abs=0.02)
    state = ("--state", "f.json")
    run("watch", "r.json", "b.csv", *follow, *state, code=0)
    told = run("watch", "r.json", "c.csv", *follow, *state, code=0)[1]
    assert {**told, "data": None} == {**whole, "data": None}
    for options in (("--follow", "0.8"), (*follow, "--groups", "g"), ()):
        done = sigmascale("watch", "r.json", "b.csv", *state, *options)
        assert done.code == 2
        assert done.says("another")
    done = sigmascale("watch", "r.json", "b.csv", *follow, "--plot", "p.png")
    assert done.code == 2
    assert done.says("--plot")


def test_show_tells_what_was_learned_and_from_which_columns(fitted, sigmascale, run):
    told = run("show", fitted, code=0)[1]
    r = ss.load(fitted)
    assert told["words"] == r.describe()
    assert told["rows"] == N
    assert told["schema"]["uncertainty"] == "u"
    done = sigmascale("show", fitted)
    assert done.says("R − V; uncertainty u.*mass, kind")
    r.save("python.json")
    told = run("show", "python.json", code=0)[1]
    assert (told["schema"], told["features"]) == (None, ["mass", "kind"])


def test_export_writes_a_graph_with_the_same_numbers(sigmascale, fit, run, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    fit("--feature", "mass")
    told = run("export", "r.json", "--quantiles", "0.05,0.95", code=0)[1]
    assert told["output"] == "r.onnx"
    assert told["columns"] == ["u", "mass"]
    session = runtime.InferenceSession("r.onnx")
    inputs = {x.name for x in session.get_inputs()}
    assert {"u", "mass"} <= inputs
    done = sigmascale("export", "r.json", "-o", "r.txt")
    assert (done.code, (tmp_path / "r.txt").exists()) == (2, False)


def test_the_demo_is_a_whole_example_and_writes_what_examples_need(
    sigmascale, tmp_path
):
    done = sigmascale("demo", "--rows", "2000", "--out", "d", "--seed", "1")
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80
    assert len(done.out.splitlines()) <= 15
    assert done.says("NOT CALIBRATED: underconfident.*RECALIBRATION HELPED: CRPS −")
    files = {x.name for x in (tmp_path / "d").iterdir()}
    names = {"calibration.csv", "test.csv", "recalibrator.json"}
    assert files == {*names, "report.html"}
    apply = ("apply", "d/recalibrator.json", "d/test.csv", "-o", "o.csv")
    assert sigmascale(*apply).code == 0
    done = sigmascale("check", "d/test.csv", "--all-features")
    assert done.code == 1
    assert len(done.out.splitlines()) <= 33
    assert max(map(len, done.out.splitlines())) <= 80
    assert sigmascale("demo", "--rows", "10").code == 2
