import json
import math
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sigmascale as ss
from sigmascale.cli import table
from sigmascale.cli.options import Engine
from sigmascale.cli.table import stays_lazy
from sigmascale.datasets import make_molecules

DATA = make_molecules(3000, seed=5)
TABLE = pl.DataFrame(
    {
        "id": np.arange(3000),
        "E": DATA.error,
        "u": DATA.uncertainty,
        "mass": DATA.mass,
        "OxNy": DATA.group,
        "s2": DATA.uncertainty**2,
        "R": DATA.error + 5.0,
        "V": np.full(3000, 5.0),
    }
)
RAKED = ("--method", "raked")
BY_TWO_LABELS = ("--method", "category", "--label", "mass", "--label", "OxNy")
FIT = ("--error", "E", "--uncertainty", "u", "--feature", "mass")


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE[:2000].write_parquet("cal.parquet")
    TABLE[2000:2500].write_parquet("new1.parquet")
    TABLE[2500:].write_parquet("new2.parquet")


def test_small_files_are_read_and_what_is_large_or_far_is_only_queried(
    tmp_path, monkeypatch
):
    (tmp_path / "folder").mkdir()
    TABLE.write_parquet("folder/a.parquet")
    TABLE.write_csv("a.csv")
    small = (["cal.parquet"], ["new1.parquet", "new2.parquet"], ["*.parquet"])
    other = (["a.csv"], ["-"], ["a.csv", "cal.parquet"])
    for files in (*small, ["folder"], *other):
        assert not stays_lazy(files, None)
        assert stays_lazy(files, Engine.polars)
    assert stays_lazy(["s3://b/a"], None)
    sizes = [Path(f"new{i}.parquet").stat().st_size for i in (1, 2)]
    for bound in (sum(sizes), sum(sizes) - 1):  # together they are large
        monkeypatch.setattr(table, "LARGE", bound)
        assert stays_lazy(["new*.parquet"], None) == (bound < sum(sizes))
    monkeypatch.setattr(table, "LARGE", 1000)
    for files in (*small, ["folder"]):
        assert stays_lazy(files, None)
        assert not stays_lazy(files, Engine.memory)
    for files in other:
        assert not stays_lazy(files, None)


FROM_VARIANCE = ("--reference", "R", "--prediction", "V", "--variance", "s2")


@pytest.mark.filterwarnings("ignore::sigmascale.exceptions.UnseenCategoryWarning")
@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
@pytest.mark.parametrize(
    ("options", "scaler"),
    [
        ((*FIT, "--method", "binwise", "--bins", "9"), ss.BinwiseScaling(9)),
        ((*FIT, "--method", "raked", "--bins", "5"), ss.RakedScaling(5)),
        ((*FROM_VARIANCE, "--method", "isotonic"), ss.IsotonicScaling()),
        (
            (*FIT, "--method", "category", "--label", "OxNy"),
            ss.CategoryScaling("OxNy"),
        ),
    ],
)
def test_every_engine_gives_what_python_gives(sigmascale, engine, options, scaler):
    fitted = sigmascale(
        "fit", "cal.parquet", *options, "-o", "s.json", "--engine", engine
    )
    assert fitted.code == 0, fitted.err
    assert "2000 rows, not read" in fitted.out
    done = sigmascale(
        *("apply", "s.json", "new1.parquet", "new2.parquet"),
        *("-o", "out.parquet", "--engine", engine),
    )
    assert done.code == 0, done.err
    out = pl.read_parquet("out.parquet/*" if engine == "dask" else "out.parquet")
    features = [] if "s2" in options else ["mass"]
    features += ["OxNy"] if "OxNy" in options else []
    ss.frames.fit(
        scaler, TABLE[:2000].lazy(), error="E", uncertainty="u", features=features
    )
    expected = scaler.predict(TABLE[2000:].select("u", *features))
    name = "s2_recalibrated" if "s2" in options else "u_recalibrated"
    assert out.columns == [*TABLE.columns, name]
    found = out.sort("id")[name].to_numpy()
    found = np.sqrt(found) if "s2" in options else found
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
@pytest.mark.parametrize("method", [(), ("--method", "boosted")], ids=["auto", "trees"])
def test_every_engine_applies_what_it_has_fitted_by_default(sigmascale, engine, method):
    fit = ("fit", "cal.parquet", *FIT, *method, "-o", "s.json", "--engine", engine)
    assert sigmascale(*fit).code == 0
    done = sigmascale(
        *("apply", "s.json", "new1.parquet", "-o", "out.parquet", "--engine", engine)
    )
    assert done.code == 0, done.err
    out = pl.read_parquet("out.parquet/*" if engine == "dask" else "out.parquet")
    expected = ss.load("s.json").predict(out.select("u", "mass"))
    np.testing.assert_allclose(out["u_recalibrated"], expected, rtol=1e-12)


def test_apply_counts_rows_and_warns_of_what_is_missing(sigmascale):
    assert sigmascale("fit", "cal.parquet", *FIT, *RAKED, "-o", "s.json").code == 0
    row = pl.int_range(pl.len())
    TABLE[2000:].with_columns(
        u=pl.when(row < 3).then(-1.0).otherwise("u"),
        mass=pl.when(row >= 900)
        .then(None)
        .when(row >= 850)
        .then(math.nan)
        .otherwise("mass"),
    ).write_parquet("holes.parquet")
    options = ("-o", "out.parquet", "--engine", "polars")
    done = sigmascale("apply", "s.json", "holes.parquet", *options)
    assert done.code == 0
    assert done.says(r"out.parquet \(1000 rows; column u_recalibrated\)")
    assert done.says("3 of 1000 rows .*u_recalibrated")
    assert done.says("150 of 1000 rows .*mass")
    told = sigmascale("apply", "s.json", "holes.parquet", *options, "--json")
    assert json.loads(told.out)["rows"] == 1000
    assert json.loads(told.out)["empty"] == 3


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGHUP])
def test_an_interrupted_query_leaves_nothing_behind(sigmascale, tmp_path, stop):
    fit = ("fit", "cal.parquet", *FIT, "--method", "boosted", "-o", "s.json")
    assert sigmascale(*fit, "--engine", "memory").code == 0
    pl.concat([TABLE] * 1000).lazy().sink_parquet("large.parquet")
    before = {path.name for path in tmp_path.iterdir()}
    arguments = ("apply", "s.json", "large.parquet", "-o", "out.parquet")

    def written():
        """Return what is there of the output, under whatever name."""
        return {path.name for path in tmp_path.iterdir()} - before

    with subprocess.Popen(
        [sys.executable, "-m", "sigmascale", *arguments, "--engine", "polars"],
        stderr=subprocess.PIPE,
    ) as process:
        while process.poll() is None and not written():
            time.sleep(0.05)
        process.send_signal(stop)
        words = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + stop
    assert words == b"error: interrupted.\n"
    assert {path.name for path in tmp_path.iterdir()} == before


def test_factors_of_bins_are_those_of_memory(sigmascale):
    for engine in ("memory", "polars"):
        options = (*FIT, "--method", "binwise", "--engine", engine)
        sigmascale("fit", "cal.parquet", *options, "-o", f"{engine}.json")
    factors = [
        ss.load(f"{name}.json").scaling_.factors_ for name in ("memory", "polars")
    ]
    np.testing.assert_allclose(*factors, rtol=1e-12)


def test_check_judges_files_that_stay_where_they_are(sigmascale):
    done = sigmascale(
        *("check", "new1.parquet", "new2.parquet", *FIT, "--json"),
        *("--engine", "polars"),
    )
    assert done.code == 1
    told = json.loads(done.out)
    assert told["data"]["files"] == ["new1.parquet", "new2.parquet"]
    expected = ss.validate(
        *(TABLE[2000:]["E"], TABLE[2000:]["u"], TABLE[2000:].select("mass")),
        method="moments",
    )
    for name, verdict in expected.verdicts.items():
        assert told["verdicts"][name]["passed"] == verdict.passed
        assert told["verdicts"][name]["score"] == pytest.approx(verdict.score)


def test_missing_rows_are_dropped_on_request_only(sigmascale):
    holes = TABLE[:2000].with_columns(
        pl.when(pl.col("id") < 50).then(None).otherwise("mass").alias("mass")
    )
    holes.write_parquet("holes.parquet")
    options = ("--engine", "polars", "--method", "binwise", "--by", "mass")
    refused = sigmascale("fit", "holes.parquet", *FIT, *options, "-o", "a.json")
    assert refused.code == 2
    assert "mass" in refused.err
    assert "50" in refused.err
    assert "--drop-missing" in refused.err
    done = sigmascale(
        "fit", "holes.parquet", *FIT, *options, "-o", "a.json", "--drop-missing"
    )
    assert done.code == 0
    assert ss.load("a.json").scaling_.sums_.n.sum() == 1950


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("fit", "cal.parquet", *FIT, "-o", "a.json", "--formula", "OxNy", *RAKED),
            "--formula .*in memory",
        ),
        (("check", "cal.parquet", "--error", "Mass"), "mean 'mass'"),
        (("check", "none*.parquet"), "no Parquet file"),
        (("check", "none.parquet", "cal.parquet"), "no Parquet file"),
        (
            ("fit", "cal.parquet", *FIT, "-o", "a.json", *BY_TWO_LABELS),
            "one column of labels.*--label.*mass, OxNy",
        ),
        (
            ("apply", "s.json", "new*.parquet", "-o", "new3.parquet"),
            "is what is read",
        ),
        (
            ("apply", "s.json", "new1.parquet", "new2.parquet", "-o", "new2.parquet"),
            "is what is read",
        ),
        (
            ("apply", "s.json", ".", "-o", "new3.parquet"),
            "is what is read",
        ),
        (
            ("check", "new1.parquet", "single.parquet", *FIT),
            "same columns.* same types",
        ),
        (
            ("apply", "s.json", "new1.parquet", "single.parquet", "-o", "a.parquet"),
            "same columns.* same types",
        ),
        (("check", "cal.csv"), "Parquet"),
        (("apply", "s.json", "new1.parquet", "-o", "a.csv"), "as .parquet only"),
        (
            ("apply", "s.json", "new1.parquet", "-o", "a.parquet", "--name", "V"),
            "column 'V' already",
        ),
        (
            ("apply", "s.json", "cut.parquet", "-o", "a.parquet"),
            "needs a column 'mass'",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(sigmascale, arguments, words):
    TABLE.write_csv("cal.csv")
    TABLE.drop("mass").write_parquet("cut.parquet")
    TABLE.with_columns(pl.col("u").cast(pl.Float32)).write_parquet("single.parquet")
    options = ("--method", "binwise", "--by", "mass", "-o", "s.json")
    sigmascale("fit", "cal.parquet", *FIT, *options)
    done = sigmascale(*arguments, "--engine", "polars")
    assert done.code == 2
    assert done.says(words), done.err
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("engine", ["memory", "polars"])
@pytest.mark.parametrize(
    "files", [("new1.parquet", "new2.parquet"), ("new*.parquet",), ("folder",)]
)
def test_several_files_are_one_table(sigmascale, files, engine):
    Path("folder").mkdir()
    for part in ("new1.parquet", "new2.parquet"):
        shutil.copy(part, "folder")
    TABLE[2000:].write_parquet("whole.parquet")
    options = (*FIT, "--method", "binwise", "--bins", "7", "--engine", engine)
    assert sigmascale("fit", *files, *options, "-o", "parts.json").code == 0
    assert sigmascale("fit", "whole.parquet", *options, "-o", "whole.json").code == 0
    assert Path("parts.json").read_bytes() == Path("whole.json").read_bytes()
    apply = ("-o", "out/all.parquet", "--engine", engine)
    done = sigmascale("apply", "parts.json", *files, *apply)
    assert "(1000 rows; column u_recalibrated)" in done.out
    assert (
        pl.read_parquet("out/all.parquet").drop("u_recalibrated").equals(TABLE[2000:])
    )


@pytest.mark.parametrize("engine", ["memory", "polars"])
@pytest.mark.parametrize(
    ("files", "output"),
    [
        (("new1.parquet", "new2.parquet"), "new2.parquet"),
        (("new*.parquet",), "new3.parquet"),
        (("**/new*.parquet",), "new1.parquet"),
        (("**/new*.parquet",), "folder/deep/new9.parquet"),
        (("folder",), "folder/new.parquet"),
        (("links/*.parquet",), "new1.parquet"),
    ],
)
def test_no_output_takes_the_place_of_one_of_several_inputs(
    sigmascale, files, output, engine
):
    for folder in ("folder/deep", "links"):
        Path(folder).mkdir(parents=True)
    Path("links/a.parquet").symlink_to("../new1.parquet")
    shutil.copy("new1.parquet", "folder")
    fit = ("fit", "cal.parquet", *FIT, "--method", "linear", "-o", "s.json")
    assert sigmascale(*fit).code == 0
    before = Path("new1.parquet").read_bytes()
    done = sigmascale("apply", "s.json", *files, "-o", output, "--engine", engine)
    assert done.code == 2
    assert f"{output}: is what is read, {files[-1]}" in done.err
    assert Path("new1.parquet").read_bytes() == before
    assert not Path("folder/new.parquet").exists()


def test_what_is_in_memory_is_not_written_to_an_address(sigmascale, monkeypatch):
    fit = ("fit", "cal.parquet", *FIT, "--method", "linear", "-o", "s.json")
    assert sigmascale(*fit).code == 0
    asked = []
    monkeypatch.setattr(ss.frames, "sink", lambda frame, path: asked.append(path))
    done = sigmascale("apply", "s.json", "new1.parquet", "-o", "s3://b/out.parquet")
    assert (done.code, asked) == (0, ["s3://b/out.parquet"])


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
def test_a_name_with_brackets_is_no_pattern(sigmascale, engine):
    Path("run[1]").mkdir()
    for i, name in enumerate(("new[1].parquet", "run[1]/a.parquet")):
        shutil.copy(f"new{i + 1}.parquet", name)
        given = name if i == 0 else "run[1]"
        fit = (*FIT, "--method", "linear", "-o", "s.json", "--engine", engine)
        done = sigmascale("fit", given, *fit)
        assert done.code == 0, done.err
        assert f"{given}: 500 rows" in done.out
        expected = ss.LinearScaling()
        part = TABLE[2000 + 500 * i : 2500 + 500 * i].lazy()
        ss.frames.fit(expected, part, error="E", uncertainty="u")
        assert ss.load("s.json").scaling_.a_ == pytest.approx(expected.a_)


def test_several_files_are_told_to_machines_as_a_list(sigmascale):
    files = ["new1.parquet", "new2.parquet"]
    for engine in ("memory", "polars"):
        done = sigmascale("check", *files, *FIT, "--json", "--engine", engine)
        assert json.loads(done.out)["data"]["files"] == files


def test_a_scheduler_needs_an_engine_that_has_one(sigmascale):
    done = sigmascale(
        *("check", "cal.parquet", *FIT, "--engine", "duckdb"),
        *("--scheduler", "tcp://127.0.0.1:1"),
    )
    assert done.code == 2
    assert "address of a cluster" in done.err


def test_a_process_of_its_own_applies_lazily_too(sigmascale):
    sigmascale("fit", "cal.parquet", *FIT, "--method", "linear", "-o", "s.json")
    command = [sys.executable, "-m", "sigmascale", "apply", "s.json", "new*.parquet"]
    subprocess.run([*command, "-o", "out.parquet"], check=True, capture_output=True)
    expected = ss.load("s.json").predict(TABLE[2000:].select("u", "mass"))
    found = pl.read_parquet("out.parquet").sort("id")["u_recalibrated"]
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
def test_nan_is_missing_in_fit_and_apply_as_it_is_in_memory(sigmascale, engine):
    nan = pl.when(pl.col("id") < 50).then(float("nan")).otherwise("mass").alias("mass")
    TABLE[:2000].with_columns(nan).write_parquet("holes.parquet")
    options = ("--method", "binwise", "--by", "mass", "--drop-missing")
    for each in (engine, "memory"):
        fit = ("fit", "holes.parquet", *FIT, *options, "-o", f"{each}.json")
        done = sigmascale(*fit, "--engine", each)
        assert done.code == 0, done.err
    counts = [ss.load(f"{each}.json").scaling_.sums_.n for each in (engine, "memory")]
    np.testing.assert_array_equal(*counts)
    done = sigmascale(
        *("apply", "memory.json", "holes.parquet", "-o", "out.parquet"),
        *("--engine", engine, "--drop-missing"),
    )
    assert done.code == 0, done.err
    out = pl.read_parquet("out.parquet/*" if engine == "dask" else "out.parquet")
    assert out["id"].min() == 50
    assert out["u_recalibrated"].is_finite().all()


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
def test_a_negative_variance_is_named_as_such(sigmascale, engine):
    negative = pl.when(pl.col("id") < 3).then(-1.0).otherwise("s2").alias("s2")
    TABLE.with_columns(negative).write_parquet("bad.parquet")
    done = sigmascale("check", "bad.parquet", *FROM_VARIANCE, "--engine", engine)
    assert done.code == 2, done.err
    assert "`s2`: 3 not positive" in done.err


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
@pytest.mark.parametrize("columns", [("--error", "OxNy"), ("--reference", "OxNy")])
def test_a_column_that_holds_no_errors_is_called_by_its_name(
    sigmascale, engine, columns
):
    done = sigmascale("check", "cal.parquet", *columns, "--engine", engine)
    assert done.code == 2, done.err
    assert done.says("`OxNy` .*numbers")


def test_errors_that_cannot_be_used_are_named_as_the_user_knows_them(sigmascale):
    TABLE.with_columns(R=pl.lit(None).cast(pl.Float64)).write_parquet("bad.parquet")
    options = ("--reference", "R", "--prediction", "V", "--engine", "polars")
    done = sigmascale("check", "bad.parquet", *options)
    assert "`R - V`: 3000 missing" in done.err


@pytest.mark.parametrize(
    ("files", "options", "words"),
    [
        (("a.csv",), ("--engine", "polars"), "a.csv: .*Parquet"),
        (("new1.parquet",), ("--scheduler", "tcp://127.0.0.1:1"), "--scheduler"),
    ],
)
def test_nothing_that_is_given_is_left_aside_in_silence(
    sigmascale, files, options, words
):
    TABLE.write_csv("a.csv")
    done = sigmascale("check", *files, *options)
    assert done.code == 2
    assert done.says(words), done.err


WHERE = ("--where", "id >= 2100 and OxNy != 'O0N0' and mass < 1.2e2")
MEETS = (pl.col("id") >= 2100) & (pl.col("OxNy") != "O0N0") & (pl.col("mass") < 120)


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
def test_conditions_keep_the_same_rows_as_in_memory(sigmascale, engine):
    nan = pl.when(pl.col("id") % 50 == 0).then(float("nan")).otherwise("mass")
    label = pl.when(pl.col("id") % 70 == 0).then(None).otherwise("OxNy")
    if engine == "dask":  # which takes nothing for another than any text
        label = pl.col("OxNy")
    table = TABLE.with_columns(mass=nan, OxNy=label)
    table.write_parquet("all.parquet")
    expected = table.filter(MEETS & pl.col("mass").is_not_nan())
    fit = ("fit", "all.parquet", *FIT, *WHERE, "--method", "linear")
    done = sigmascale(*fit, "-o", "s.json", "--engine", engine)
    assert done.code == 0, done.err
    assert done.says(f"all.parquet: {expected.height} rows,.* where id >=")
    apply = ("apply", "s.json", "all.parquet", *WHERE, "-o")
    assert sigmascale(*apply, "memory.parquet").code == 0
    assert sigmascale(*apply, "lazy.parquet", "--engine", engine).code == 0
    memory = pl.read_parquet("memory.parquet")
    lazy = pl.read_parquet("lazy.parquet/*" if engine == "dask" else "lazy.parquet")
    assert memory["id"].to_list() == expected["id"].to_list()
    assert lazy["id"].sort().to_list() == expected["id"].to_list()
    checked = sigmascale("check", "all.parquet", *FIT, *WHERE, "--engine", engine)
    assert f"{expected.height} rows" in checked.out


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("ID > 3", "--where .*'ID'"),
        ("OxNy > 3", "--where .*compare.*numbers.*'OxNy'"),
        ("mass == '3'", "--where .*compare.*numbers.*'mass'"),
        ("mass > 3 or", "--where .*'mass'"),
    ],
)
def test_conditions_that_do_not_fit_are_refused_lazily(sigmascale, where, words):
    check = ("check", "cal.parquet", *FIT, "--where", where, "--engine", "polars")
    done = sigmascale(*check)
    assert done.code == 2
    assert done.says(words), done.err


@pytest.mark.parametrize("engine", ["polars", "duckdb", "dask"])
@pytest.mark.parametrize("parts", [FIT, FROM_VARIANCE])
def test_limits_are_those_of_memory(sigmascale, engine, parts):
    fit = ("fit", "cal.parquet", *parts, "--method", "linear", "-o", "s.json")
    assert sigmascale(*fit, "--conformal-share", "0.3").code == 0
    apply = ("apply", "s.json", "new1.parquet", "--coverage", "0.8", "--name", "s")
    for each, output in ((engine, "lazy.parquet"), ("memory", "memory.parquet")):
        done = sigmascale(*apply, "-o", output, "--engine", each)
        assert done.code == 0, done.err
        of = "value" if parts is FROM_VARIANCE else "error"
        assert done.says(f"column s; .*{of}: s_low, s_high")
    lazy = pl.read_parquet("lazy.parquet/*" if engine == "dask" else "lazy.parquet")
    lazy, memory = lazy.sort("id"), pl.read_parquet("memory.parquet")
    assert lazy.columns == memory.columns == [*TABLE.columns, "s", "s_low", "s_high"]
    for name in ("s", "s_low", "s_high"):
        np.testing.assert_allclose(lazy[name], memory[name], rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--conformal-share", "0.2"), "--conformal-share .*in memory"),
        (("--separator", ";"), "--separator .*--decimal .*text"),
        (("--decimal", ","), "--separator .*--decimal .*text"),
    ],
)
def test_what_only_memory_can_do_is_refused(sigmascale, options, words):
    fit = ("fit", "cal.parquet", *FIT, *RAKED, *options, "-o", "s.json")
    done = sigmascale(*fit, "--engine", "polars")
    assert done.code == 2
    assert done.says(words), done.err
    assert not Path("s.json").exists()


def test_sums_know_no_groups_and_whole_groups_are_drawn(sigmascale):
    fit = ("fit", "cal.parquet", *FIT, *RAKED, "--groups", "OxNy", "-o", "s.json")
    done = sigmascale(*fit, "--engine", "polars", "--sample", 1000)
    assert done.code == 0, done.err
    scaler = ss.load("s.json")
    assert f"a sample of {scaler.n_sample_} of 2000 rows" in " ".join(done.out.split())


@pytest.mark.parametrize("groups", [(), ("--groups", "OxNy")])
def test_the_default_is_fitted_to_a_sample_and_right_on_average(sigmascale, groups):
    fit = ("fit", "cal.parquet", *FIT, "--feature", "mass", "-o", "s.json", *groups)
    done = sigmascale(*fit, "--engine", "polars", "--sample", 1000)
    assert done.code == 0, done.err
    words = " ".join(done.out.split())
    assert "gradient boosting" in words
    scaler = ss.load("s.json")
    assert f" {scaler.n_sample_} of 2000 rows" in words
    assert scaler.n_sample_ < 1300
    table = pl.read_parquet("cal.parquet")
    z2 = (table["E"] / scaler.predict(table.select("u", "mass"))).to_numpy() ** 2
    assert abs(z2.mean() - 1) < 3 * z2.std() / np.sqrt(z2.size)


def test_a_report_of_a_large_file_rests_on_a_sample(sigmascale):
    check = ("check", "cal.parquet", *FIT, "--feature", "mass", "--report", "a.html")
    done = sigmascale(*check, "--engine", "polars", "--sample", 500)
    assert done.code in (0, 1, 4), done.err
    words = "rows, drawn by a hash, of 2000"
    assert words in " ".join(done.out.split())
    page = Path("a.html").read_text(encoding="utf-8")
    assert words in " ".join(page.split())


def test_a_sample_of_what_is_read_into_memory_is_refused(sigmascale):
    done = sigmascale("fit", "cal.parquet", *FIT, "--sample", 1000, "-o", "s.json")
    assert done.code == 2
    assert done.says("--sample .*memory")


def test_the_old_uncertainty_is_left_out_lazily_too(sigmascale):
    columns = ("--error", "E", "--uncertainty", "u", "--all-features")
    exclude = ("--exclude", "id", "--exclude", "s2", "--engine", "polars")
    fit = ("fit", "cal.parquet", *columns, *exclude, "--method", "linear")
    assert sigmascale(*fit, "-o", "s.json").code == 0
    apply = ("apply", "s.json", "new1.parquet", "-o", "out.parquet")
    assert sigmascale(*apply, "--engine", "polars").code == 0
    check = ("check", "out.parquet", "--error", "E", "--all-features", *exclude)
    done = sigmascale(*check, "--uncertainty", "u_recalibrated", "--json")
    assert done.code in (0, 1), done.err
    data = json.loads(done.out)["data"]
    assert (data["numbers"], data["left_out"]) == (["mass", "V"], ["u", "R"])
