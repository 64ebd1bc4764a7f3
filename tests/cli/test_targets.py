"""Several targets on the command line: columns by patterns, one file for all."""

import json

import numpy as np
import polars as pl
import pytest

import sigmascale as ss

PATTERNS = ("--error", "E_*", "--uncertainty", "u_*")
NAMES = ("gap", "dipole", "alpha")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables whose third target has few errors, in another order of columns."""
    folder = tmp_path_factory.mktemp("targets")
    for seed, name in enumerate(("calibration", "test")):
        rng = np.random.default_rng(seed)
        u = rng.lognormal(0, 0.5, (400, 3))
        error = rng.normal(scale=u * [1.5, 2.0, 2.0])
        error[40:, 2] = np.nan
        table = pl.DataFrame(
            {
                "u_alpha": u[:, 2],
                "id": [f"m{i // 2}" for i in range(400)],
                **{f"E_{each}": error[:, k] for k, each in enumerate(NAMES)},
                "u_dipole": u[:, 1],
                "mass": rng.uniform(10, 100, 400),
                "u_gap": u[:, 0],
                "v_gap": u[:, 0] ** 2,
                "v_dipole": u[:, 1] ** 2,
                "v_alpha": u[:, 2] ** 2,
            },
            nan_to_null=True,
        )
        table.write_csv(folder / f"{name}.csv")
        table.write_parquet(folder / f"{name}.parquet")
    return folder


@pytest.fixture(scope="module")
def saved(folder, sigmascale):
    path = folder / "targets.json"
    run = sigmascale("fit", folder / "calibration.csv", *PATTERNS, "-o", path)
    assert run.code == 0, run.err
    assert run.says("3 targets: gap, dipole, alpha;")
    assert "alpha " in run.out
    return path


def library_fit(folder):
    table = pl.read_csv(folder / "calibration.csv")
    X = table.select(f"u_{each}" for each in NAMES)
    y = table.select(f"E_{each}" for each in NAMES)
    return ss.RecalibratedTargets(ss.LinearScaling(), names=[*NAMES]).fit(X, y)


def test_fit_saves_one_file_that_predicts_as_the_library_does(folder, saved):
    X = pl.read_csv(folder / "test.csv").select(f"u_{each}" for each in NAMES)
    expected = library_fit(folder)
    np.testing.assert_array_equal(ss.load(saved).predict(X), expected.predict(X))
    assert ss.load(saved).describe() == expected.describe()


@pytest.mark.parametrize("engine", ["memory", "polars", "duckdb"])
def test_apply_adds_a_column_for_each_target(folder, saved, sigmascale, engine):
    new = folder / f"{engine}.parquet"
    run = sigmascale(
        *("apply", saved, folder / "test.parquet", "--engine", engine, "-o", new)
    )
    assert run.code == 0, run.err
    table, found = pl.read_parquet(folder / "test.parquet"), pl.read_parquet(new)
    added = [f"u_{each}_recalibrated" for each in NAMES]
    assert found.columns == [*table.columns, *added]
    expected = library_fit(folder).predict(table.select(f"u_{each}" for each in NAMES))
    np.testing.assert_allclose(found.select(added).to_numpy(), expected, rtol=1e-12)
    if engine == "memory":  # what it wrote can be read with the same patterns
        run = sigmascale("check", new, *PATTERNS, "--tolerate", "no", "--bins", 4)
        assert run.code == 0, run.err


def test_apply_replaces_none_of_several_files_that_it_reads(folder, saved, sigmascale):
    table = pl.read_parquet(folder / "test.parquet")
    for k in range(2):
        table.write_csv(folder / f"part{k}.csv")
    before = (folder / "part1.csv").read_bytes()
    run = sigmascale("apply", saved, folder / "part*.csv", "-o", folder / "part1.csv")
    assert run.code == 2
    assert "is what is read" in run.err
    assert (folder / "part1.csv").read_bytes() == before


def test_empty_cells_stay_empty(folder, saved, sigmascale):
    table = pl.read_csv(folder / "test.csv")
    gaps = table.with_columns(
        u_gap=pl.when(pl.int_range(pl.len()) == 3).then(None).otherwise("u_gap")
    )
    gaps.write_csv(folder / "gaps.csv")
    new = folder / "new.csv"
    run = sigmascale(
        *("apply", saved, folder / "gaps.csv", "--name", "s_*", "-o", new, "--json")
    )
    assert run.code == 0, run.err
    assert json.loads(run.out)["columns"] == ["s_gap", "s_dipole", "s_alpha"]
    found = pl.read_csv(new)
    assert found["s_gap"].is_null().arg_true().to_list() == [3]
    assert found["s_alpha"].null_count() == 0
    run = sigmascale("fit", folder / "gaps.csv", *PATTERNS, "-o", folder / "x.json")
    assert run.code == 2
    assert run.says("'u_gap', row 4 .*missing")


def test_variances_and_other_names_are_found_by_patterns(folder, saved, sigmascale):
    new = folder / "variances.csv"
    run = sigmascale(
        *("apply", saved, folder / "test.csv", "--variance", "v_*", "-o", new)
    )
    assert run.code == 0, run.err
    X = pl.read_csv(folder / "test.csv").select(f"u_{each}" for each in NAMES)
    expected = ss.load(saved).predict(X) ** 2
    found = pl.read_csv(new).select(f"v_{each}_recalibrated" for each in NAMES)
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-9)


def test_check_prints_the_table_of_targets_and_ends_with_the_worst_answer(
    folder, saved, sigmascale
):
    test = folder / "test.csv"
    run = sigmascale("check", test, *PATTERNS, "--bins", 4)
    assert run.code == 1, run.err
    for name in NAMES:
        assert f"\n{name}" in run.out
    assert "3 targets:" in run.out
    assert "Not passed." in run.out
    reports = folder / "report_*.html"
    run = sigmascale(
        *("check", test, "--scaler", saved, "--bins", 4, "--json", "--report", reports)
    )
    for name in NAMES:
        page = (folder / f"report_{name}.html").read_text("utf-8")
        assert f"{name}: uncertainties of" in page
    found = json.loads(run.out)
    assert found["answer"] == "no"
    assert found["recalibrated"]["targets"]["gap"]["answer"] != "no"
    assert run.code == {"yes": 0, "cannot tell": 4}[found["recalibrated"]["answer"]]
    assert run.err == ""
    run = sigmascale(
        *("check", folder / "calibration.csv", "--scaler", saved, "--bins", 2),
        *("--where", "mass < 30"),
    )
    assert "% of the rows that" in run.err
    run = sigmascale(
        *("check", test, *PATTERNS, "--bins", 2, "--format", "markdown"),
        *("--where", "mass < 30"),
    )
    assert run.out.startswith("| target | rows |")


def test_features_and_groups_are_those_of_all_targets(folder, sigmascale):
    path = folder / "features.json"
    run = sigmascale(
        *("fit", folder / "calibration.csv", *PATTERNS, "--all-features"),
        *("--exclude", "v_gap", "--exclude", "v_dipole", "--exclude", "v_alpha"),
        *("--method", "binwise", "--bins", 2, "--by", "mass", "--groups", "id"),
        *("-o", path, "--json"),
    )
    assert run.code == 0, run.err
    told = json.loads(run.out)
    assert told["data"]["targets"]["gap"]["numbers"] == ["mass"]
    assert told["learned"]["alpha"]["rows"] == 40
    assert [*ss.load(path).feature_names_in_] == [
        *("u_gap", "u_dipole", "u_alpha", "mass")
    ]
    run = sigmascale("show", path)
    assert run.says("gap: 400 rows.*u_gap, mass")
    run = sigmascale("show", path, "--json")
    assert json.loads(run.out)["targets"]["alpha"]["rows"] == 40


def test_weights_are_a_column_of_the_table(folder, sigmascale):
    path, table = folder / "weighted.json", folder / "calibration.csv"
    run = sigmascale("fit", table, *PATTERNS, "--weight", "mass", "-o", path)
    assert run.code == 0, run.err
    frame = pl.read_csv(table)
    X = frame.select(f"u_{each}" for each in NAMES)
    y = frame.select(f"E_{each}" for each in NAMES)
    expected = ss.RecalibratedTargets(names=[*NAMES]).fit(
        X, y, sample_weight=frame["mass"]
    )
    np.testing.assert_array_equal(ss.load(path).predict(X), expected.predict(X))
    run = sigmascale("apply", path, table, "-o", folder / "weighted.csv")
    assert run.code == 0, run.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--error", "E_*", "--uncertainty", "v_g*"), "the same"),
        (("--error", "F_*", "--uncertainty", "u_*"), r"'F_\*' .*no column"),
        (("--error", "E_*", "--uncertainty", "u_gap"), "must have one star"),
        (("--error", "E_*", "--uncertainty", "*_*"), "must have one star"),
        (("--error", "E_*"), "patterns of both"),
        ((*PATTERNS, "--uncertainty", "v_*"), "given once"),
        ((*PATTERNS, "--conformal-share", "0.2"), "--conformal-share is for one"),
        ((*PATTERNS, "--engine", "polars"), "in memory"),
    ],
)
def test_patterns_that_do_not_pair_are_explained(folder, sigmascale, arguments, words):
    output = folder / "never.json"
    table = folder / "calibration.parquet"
    run = sigmascale("fit", table, *arguments, "-o", output)
    assert run.code == 2
    assert run.says(words), run.err
    assert not output.exists()


def test_files_of_one_and_of_several_targets_are_told_apart(folder, saved, sigmascale):
    one = folder / "one.json"
    columns = ("--error", "E_gap", "--uncertainty", "u_gap")
    run = sigmascale(
        *("fit", folder / "calibration.csv", *columns, "--method", "linear", "-o", one)
    )
    assert run.code == 0, run.err
    run = sigmascale("check", folder / "test.csv", *PATTERNS, "--scaler", one)
    assert run.code == 2
    assert "recalibrator of one target" in run.err
    run = sigmascale("apply", saved, folder / "test.csv", "--name", "s", "-o", "x.csv")
    assert run.code == 2
    assert "must have one star" in run.err
    run = sigmascale(
        *("apply", saved, folder / "test.csv", "--coverage", "0.9", "-o", "x.csv")
    )
    assert run.code == 2
    assert run.says("--coverage .*one target")
    run = sigmascale(
        *("check", folder / "test.csv", *PATTERNS, "--report", folder / "r.html")
    )
    assert run.code == 2
    assert run.says("one star")
    path = folder / "damaged.json"
    ss.save(ss.load(saved), path, source={"targets": {"gap": {}}})
    run = sigmascale("apply", path, folder / "test.csv", "-o", folder / "never.csv")
    assert run.code == 2
    assert run.says("targets .*damaged")


def test_an_uncertainty_of_0_is_refused_only_beside_an_error(tmp_path, sigmascale):
    rows = [f"{(-1) ** i},1,{(-1) ** i},2" for i in range(40)]
    path = tmp_path / "zeros.csv"
    patterns = ("--error", "E_*", "--uncertainty", "u_*")
    for last, code in (("1,1,,0", (0, 1, 4)), ("1,1,3,0", (2,))):
        path.write_text("\n".join(["E_a,u_a,E_b,u_b", *rows, last]))
        done = sigmascale("check", path, *patterns)
        assert done.code in code, done.err
    assert done.says("'u_b', row 41 .*positive")
