"""Several columns of uncertainties, such as aleatoric and epistemic ones."""

import json

import numpy as np
import polars as pl
import pytest

import sigmascale as ss

PARTS = ("--uncertainty", "al", "--uncertainty", "ep")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table whose second part is three times too small, as CSV and Parquet."""
    rng = np.random.default_rng(0)
    al, ep = rng.lognormal(0, 0.5, (2, 1000))
    table = pl.DataFrame(
        {
            "E": rng.normal(scale=np.hypot(al, 3 * ep)),
            "al": al,
            "ep": ep,
            "al2": al**2,
            "ep2": ep**2,
        }
    )
    folder = tmp_path_factory.mktemp("parts")
    table.write_csv(folder / "t.csv")
    table.write_parquet(folder / "t.parquet")
    return folder, table


def test_the_parts_get_factors_of_their_own_by_default(files, sigmascale):
    folder, table = files
    saved = folder / "auto.json"
    run = sigmascale("fit", folder / "t.csv", *PARTS, "-o", saved)
    assert run.code == 0, run.err
    assert run.says(r"sqrt\(al² \+ ep²\); features: al, ep")
    scaler = ss.load(saved)
    assert scaler.scaling_.name_ == "component"
    assert scaler.scaling_.scaler_.a_["ep"] == pytest.approx(3, rel=0.1)
    new = folder / "new.csv"
    run = sigmascale("apply", saved, folder / "t.csv", "-o", new)
    assert run.code == 0, run.err
    found = pl.read_csv(new)
    assert found.columns == [*table.columns, "u_recalibrated"]
    expected = np.hypot(table["al"], 3 * table["ep"])
    np.testing.assert_allclose(found["u_recalibrated"], expected, rtol=0.15)


@pytest.mark.parametrize("engine", ["memory", "polars", "duckdb"])
def test_variances_and_lazy_tables_give_the_same(files, sigmascale, engine):
    folder, _ = files
    by = {}
    for name, parts in (
        ("u", PARTS),
        ("v", ("--variance", "al2", "--variance", "ep2")),
    ):
        saved, new = (
            folder / f"{engine}-{name}.json",
            folder / f"{engine}-{name}.parquet",
        )
        table = folder / "t.parquet"
        method = ("--method", "component", "--engine", engine)
        run = sigmascale("fit", table, *parts, *method, "-o", saved)
        assert run.code == 0, run.err
        run = sigmascale("apply", saved, table, "--engine", engine, "-o", new)
        assert run.code == 0, run.err
        by[name] = pl.read_parquet(new)["u_recalibrated"].to_numpy()
    np.testing.assert_allclose(by["v"], by["u"] ** 2, rtol=1e-9)
    in_memory = ss.ComponentScaling(["al", "ep"]).fit(
        pl.read_parquet(folder / "t.parquet").select("al", "ep"),
        pl.read_parquet(folder / "t.parquet")["E"],
    )
    np.testing.assert_allclose(
        by["u"], in_memory.predict(pl.read_parquet(table).select("al", "ep")), rtol=1e-9
    )


def test_check_judges_the_sum_of_the_parts(files, sigmascale):
    folder, table = files
    run = sigmascale("check", folder / "t.csv", *PARTS, "--json")
    found = json.loads(run.out)
    total = np.hypot(table["al"], table["ep"])
    assert run.code == 1
    assert found["data"]["components"] == ["al", "ep"]
    average = found["verdicts"]["average"]["interval"][0]
    assert average == pytest.approx(ss.zms(table["E"], total))


def test_other_names_must_be_as_many(files, sigmascale):
    folder, table = files
    saved = folder / "named.json"
    method = ("--method", "component")
    sigmascale("fit", folder / "t.csv", *PARTS, *method, "-o", saved)
    renamed = folder / "renamed.csv"
    table.rename({"al": "a", "ep": "b"}).write_csv(renamed)
    new = folder / "renamed-new.csv"
    names = ("--uncertainty", "a", "--uncertainty", "b")
    run = sigmascale("apply", saved, renamed, *names, "-o", new)
    assert run.code == 0, run.err
    run = sigmascale("apply", saved, renamed, "--uncertainty", "a", "-o", new)
    assert run.code == 2
    assert run.says("fitted with .*al, ep")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--uncertainty", "al", "--method", "component"), "repeat --uncertainty"),
        ((*PARTS, "--variance", "ep2"), "--variance.* not both"),
        (("--uncertainty", "al", "--uncertainty", "al"), "given twice"),
        (("--uncertainty", "al", "--uncertainty", "E"), "both error and uncertainty"),
        ((*PARTS, "--feature", "ep"), "'ep' .*part already"),
    ],
)
def test_what_makes_no_sense_is_refused(files, sigmascale, options, words):
    folder, _ = files
    run = sigmascale("fit", folder / "t.csv", *options, "-o", folder / "no.json")
    assert run.code == 2
    assert run.says(words), run.err
    assert not (folder / "no.json").exists()
